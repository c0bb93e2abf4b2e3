"""Every value that crosses a module border: frozen, slotted, without behaviour beyond what a field implies.

No file, no network, no pandas here, and no NaN, -1 or magic string in any field: what is not known is None,
and what could not be computed is a value of its own (`Unscored`, `NoEstimate`) that says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# --- the eval set and the system under test -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Case:
    """One question of an eval set with what is known of its right answer."""

    id: str
    question: str
    type: str | None = None
    relevant_docs: Mapping[str, float] = field(default_factory=dict)  # id -> grade; a grade above 0 is relevant
    acceptable: tuple[str, ...] = ()  # any one suffices; refusal wordings on an out-of-scope case
    must_include: tuple[tuple[str, ...], ...] = ()  # every entry is needed; one alternative of an entry suffices
    must_not_include: tuple[str, ...] = ()
    expect_refusal: bool | None = None  # None: the eval set states nothing
    refusal_phrases: tuple[str, ...] = ()
    tenant: str | None = None
    forbidden_docs: tuple[str, ...] = ()  # ids or globs (* and ?)
    red_line: bool = False
    reference: str | None = None
    history: tuple[Any, ...] = ()  # earlier turns, as JSON
    tags: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Context:
    """One retrieved chunk. None for id or text: the answers gave none, and what needs it cannot be computed."""

    id: str | None
    text: str | None
    score: float | None = None
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the system under test returned for a case; contexts stand in rank order."""

    id: str
    answer: str | None = None
    contexts: tuple[Context, ...] | None = None  # None: the field is missing; (): nothing was retrieved
    citations: tuple[str, ...] | None = None
    refused: bool | None = None
    sent_contexts: tuple[str, ...] | None = None
    prompt: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    latency_s: float | None = None
    error: str | None = None
    answer_no: int = 0


# --- what rules and retrieval say of one answer ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RetrievalScores:
    """Ranking metrics of one case at a cut k; all in [0, 1]. None of them exists where nothing is relevant."""

    hit: bool
    recall: float
    mrr: float
    ndcg: float
    precision: float
    first_relevant_rank: int | None  # 1-based, over the whole ranking after duplicates are removed
    n_duplicates: int  # later repeats of an id, removed before the cut


@dataclass(frozen=True, slots=True)
class Abstention:
    """Whether the answer's text declines, and what showed it."""

    did_abstain: bool
    refused_then_answered: bool  # a refusal wording, then a substantive answer; counts as not abstained
    evidence: str | None  # the refusal wording found, as it stands in the answer


@dataclass(frozen=True, slots=True)
class RuleChecks:
    """What can be said of an answer without any model. None = the case states nothing to check."""

    rule_correct: bool | None
    must_include_ok: bool | None
    acceptable_ok: bool | None
    must_not_include_ok: bool | None
    faithful: bool | None  # the key points that the answer states occur in the contexts
    lexical_support: float | None  # share of the answer's words found in the contexts: a hint, never a verdict
    did_abstain: bool | None
    refused_then_answered: bool | None
    refusal_conflict: bool  # the flag `refused` and the text disagree; the text wins
    leak: bool
    leak_checked: bool  # the case names forbidden documents or a tenant, and the answer shows documents
    leaked_ids: tuple[str, ...]
    missing_points: tuple[str, ...]
    unsupported_points: tuple[str, ...]  # stated by the answer, in no context
    forbidden_found: tuple[str, ...]
    n_citations: int | None  # different ones; None: there are none to check, or no contexts with ids to check against
    dangling_citations: tuple[str, ...]  # point at nothing retrieved


# --- the judge -----------------------------------------------------------------------------------------------------

Mode = Literal["passfail", "scale", "pairwise"]
FieldKind = Literal["boolean", "score", "choice"]


@dataclass(frozen=True, slots=True)
class VerdictField:
    """One field that a prompt asks of the judge. `choices` for a choice, `low`..`high` (whole numbers) for a score."""

    name: str
    kind: FieldKind
    choices: tuple[str, ...] = ()
    low: int = 1
    high: int = 5


@dataclass(frozen=True, slots=True)
class Prompt:
    """One grader prompt in one language, as loaded from `judge_prompts/NAME/`."""

    name: str
    mode: Mode
    lang: str
    version: str  # sha256 of prompt.toml and every template, with LF line ends
    fields: tuple[VerdictField, ...]
    pass_when: str | None
    pass_at: int | None
    max_tokens: int
    template: str
    reading: Mapping[str, Mapping[Value, tuple[str, ...]]] = field(default_factory=dict)  # of prose; empty: JSON


@dataclass(frozen=True, slots=True)
class Call:
    """One request to the judge as planned; `call_id` is the hash of all that determines the reply."""

    call_id: str
    case_id: str
    repeat: int  # 0-based
    order: str | None  # pairwise: "ab" or "ba"
    variant: str | None  # "reask": the one further try at an unreadable reply
    messages: tuple[Mapping[str, str], ...]
    parameters: Mapping[str, Any]  # as planned: temperature, max_tokens, response_format
    judge: int = 0  # which of several judges
    answer_no: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the server counted them; None where it did not say."""

    prompt_tokens: int | None
    completion_tokens: int | None

    def __add__(self, other: Usage) -> Usage:
        """Both together; what neither says stays unknown."""
        return Usage(
            _known_sum(self.prompt_tokens, other.prompt_tokens),
            _known_sum(self.completion_tokens, other.completion_tokens),
        )


def _known_sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other


@dataclass(frozen=True, slots=True)
class Reply:
    """What the judge sent back, whole: the body of a 200, as text."""

    raw: str
    finish_reason: str | None
    model: str | None
    usage: Usage
    latency_s: float
    attempts: int
    sent: Mapping[str, Any]  # the parameters that were really sent
    cut: str | None = None  # what shows that the server did not read the whole prompt
    cached: bool = False  # a kept reply of an earlier run to the very same request


@dataclass(frozen=True, slots=True)
class CallFailure:
    """A call that brought no reply. `cause` is for the unscored reason, `detail` for people."""

    cause: Literal["no_reply", "server_error", "content_filter", "context_too_long"]
    detail: str
    latency_s: float
    attempts: int
    sent: Mapping[str, Any]


UnscoredReason = Literal[
    "unreadable",
    "conflicting",
    "refused",
    "truncated",
    "content_filter",
    "context_too_long",
    "no_reply",
    "server_error",
]
Value = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A reply that was read: one value per field of the prompt. Values are never defaulted, clamped or rounded."""

    values: Mapping[str, Value]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Unscored:
    """A reply that could not be read, or never came. Never a pass, a fail or a zero."""

    reason: UnscoredReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the planned repeats of one case decide: per field a value, or None where undecided."""

    values: Mapping[str, Value | None]
    judge_pass: bool | None
    n_planned: int
    n_asked: int  # planned repeats that were asked before asking stopped
    n_votes: int  # planned repeats whose reply was read
    flipped: bool | None  # the first two planned repeats differ; None unless both were read
    unstable: bool | None  # any two read repeats differ; None below two
    unscored_reason: UnscoredReason | None  # of the last planned repeat; None unless no repeat was read
    reason: str | None  # the judge's own words, of the last read repeat
    alike: bool | None = None  # the first two replies are the same text; None unless both came
    unscored_detail: str | None = None  # what was found in place of the last planned repeat's verdict, if none was read

    @property
    def is_undecided(self) -> bool:
        """True when replies were read, no pass follows from them, and some field has no majority."""
        return not self.unscored and self.judge_pass is None and None in self.values.values()

    @property
    def unscored(self) -> bool:
        """True when no planned repeat could be read."""
        return self.n_votes == 0


# --- the end of a case, and numbers ----------------------------------------------------------------------------

OutcomeName = Literal["pass", "fail", "undecided", "unscored", "not_judged", "no_answer"]
Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Attribution:
    """Why a case failed; cause and layer are from the closed lists in `attribution`."""

    cause: str
    layer: str
    evidence: str
    confidence: Confidence


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one case; cause and layer of a fail are from the closed lists in `attribution`."""

    outcome: OutcomeName
    cause: str | None = None
    layer: str | None = None
    evidence: str | None = None
    confidence: Confidence | None = None  # in the cause


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One row of `cases.csv`, in its column order; None is an empty cell. Later columns may be added at the end."""

    id: str
    type: str | None
    outcome: OutcomeName
    cause: str | None = None
    layer: str | None = None
    hit: bool | None = None
    recall: float | None = None
    mrr: float | None = None
    ndcg: float | None = None
    precision: float | None = None
    rule_correct: bool | None = None
    must_include_ok: bool | None = None
    must_not_include_ok: bool | None = None
    faithful: bool | None = None
    lexical_support: float | None = None
    did_abstain: bool | None = None
    expect_refusal: bool | None = None
    leak: bool | None = None
    n_votes: int | None = None
    grounded: bool | None = None
    complete: bool | None = None
    should_abstain: bool | None = None
    judge_pass: bool | None = None
    score: float | None = None
    unscored_reason: str | None = None
    evidence: str | None = None
    acceptable_ok: bool | None = None
    refused_then_answered: bool | None = None
    refusal_conflict: bool | None = None
    leak_checked: bool | None = None
    red_line: bool | None = None
    first_relevant_rank: int | None = None
    n_contexts: int | None = None
    n_duplicates: int | None = None
    n_citations: int | None = None
    n_dangling_citations: int | None = None
    drawn: bool | None = None  # the judge was to see this case
    n_planned: int | None = None
    n_asked: int | None = None
    undecided: bool | None = None  # a field of a read case has no majority, and the pass hangs on it
    flipped: bool | None = None
    unstable: bool | None = None
    other_fields: str | None = None  # decided values of a prompt's further fields, as JSON
    question_sha256: str | None = None
    alike: bool | None = None  # the first two replies are word for word the same
    judges: str | None = None  # of several judges, what each decided, as JSON by model
    judges_disagree: bool | None = None  # two judges decided a field differently
    confidence: str | None = None  # in the cause: high, medium or low
    n_unsupported_figures: int | None = None  # in no context; only of cases that state no expectation
    probe: str | None = None  # how the answer to the right passages came out: right, wrong, not_taken, no_rule, failed
    suspicious: str | None = None  # what of the answer speaks to the judge: verdict, mark or order, with its words
    answer_no: int | None = None  # which of several answers to the case; None where each case has one


# --- two answers side by side -----------------------------------------------------------------------------------

PairOutcome = Literal["a", "b", "tie", "inconsistent", "undecided", "unscored"]


@dataclass(frozen=True, slots=True)
class PairRow:
    """One row of `pairs.csv`, in its column order; None is an empty cell. Systems are named `a` and `b` throughout.

    `order_ab` is who won when A's answer stood first, `order_ba` when B's did: by system, never by place.
    """

    id: str
    outcome: PairOutcome
    order_ab: str | None = None  # a, b or tie; None without a majority of the planned repeats
    order_ba: str | None = None
    n_votes_ab: int = 0
    n_votes_ba: int = 0
    type: str | None = None
    unscored_reason: UnscoredReason | None = None  # of the last planned repeat; None unless no repeat was read
    n_planned: int = 0  # repeats per order
    n_asked_ab: int = 0
    n_asked_ba: int = 0
    flipped_ab: bool | None = None  # the first two repeats of this order differ; None unless both were read
    flipped_ba: bool | None = None
    n_characters_a: int = 0
    n_characters_b: int = 0
    reason_ab: str | None = None  # the judge's own words, of the last read repeat
    reason_ba: str | None = None
    question_sha256: str | None = None


Target = Literal["questions_like_these", "this_set"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval; rates in [0, 1]. `low` and `high` are None only where no interval exists."""

    value: float
    low: float | None
    high: float | None
    level: float
    n: int
    method: str
    target: Target = "questions_like_these"


@dataclass(frozen=True, slots=True)
class NoEstimate:
    """A number that the material cannot support; the reason says what is missing."""

    reason: str
