"""One case (or pair) at the judge: which call comes next, and what its replies decide. Pure; both ask the same walk.

The plan of a case is its repeats in order, of a pair those of both orders. A repeat whose reply cannot be read may be
asked once more in a call of its own; asking stops early when nothing can change any more.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rag_judge.prompts import json_schema, messages_for, pair_messages_for, pass_rule, reask_message
from rag_judge.prose import read_prose_body
from rag_judge.records import Answer, Call, CallFailure, Case, Decision, Prompt, Reply, Unscored
from rag_judge.responses import reply_text
from rag_judge.verdicts import read_body
from rag_judge.votes import Vote, decide, is_settled

Result = Reply | CallFailure
# Only a reply that came in the wrong form is worth asking again; a refusal or a filter would answer the same.
ASKED_AGAIN = frozenset({"unreadable", "conflicting"})
ORDERS = ("ab", "ba")  # of a pair: whose answer is shown first


@dataclass(frozen=True, slots=True)
class GradingPlan:
    """How every case of a run is graded: all that its calls depend on besides the case itself."""

    prompts: Mapping[str, Prompt]  # by language
    server: str  # normalised base URL, or `embedded:` and the model's hash
    model: str
    n_repeats: int
    seed: int
    early_stop: bool = True
    reask: bool = True
    max_tokens: int | None = None  # in place of the prompt's own
    reason_max_length: int | None = None
    judge: int = 0  # which of several judges
    vary_order: bool = False  # show the contexts of each further repeat in another order


@dataclass(frozen=True, slots=True)
class Walk:
    """Where a sequence of repeats stands: the votes so far, and the call that is needed next (None: finished)."""

    votes: list[Vote]
    next_call: Call | None
    n_reasked: int


@dataclass(frozen=True, slots=True)
class Repeats:
    """The planned repeats of one question to the judge: of a case, or of a pair in one order."""

    case_id: str
    prompt: Prompt
    plan: GradingPlan
    order: str | None
    messages: Callable[[int], tuple[Mapping[str, str], ...]]  # of one repeat
    answer_no: int = 0  # which of several answers to the case

    def walk(self, replies: Mapping[str, Result]) -> Walk:
        """Go through the planned repeats as far as replies are known."""
        votes: list[Vote] = []
        n_reasked = 0
        for repeat in range(self.plan.n_repeats):
            if self.plan.early_stop and is_settled(votes, self.plan.n_repeats, self.prompt.fields):
                break
            call = self.planned(repeat)
            if call.call_id not in replies:
                return Walk(votes, call, n_reasked)
            vote = vote_of(replies[call.call_id], self.prompt)
            again = self.reasked(call, replies[call.call_id], vote)
            if again is not None:
                if again.call_id not in replies:
                    return Walk(votes, again, n_reasked)
                n_reasked += 1
                vote = vote_of(replies[again.call_id], self.prompt)
            votes.append(vote)
        return Walk(votes, None, n_reasked)

    def planned(self, repeat: int) -> Call:
        """The call of one planned repeat."""
        return self._call(repeat, self.messages(repeat), variant=None)

    def reasked(self, call: Call, result: Result, vote: Vote) -> Call | None:
        """The one further call after a reply that could not be read; None where none is due."""
        if not self.plan.reask or isinstance(result, CallFailure):
            return None
        if not isinstance(vote, Unscored) or vote.reason not in ASKED_AGAIN:
            return None
        request = reask_message(self.prompt)
        if request is None:
            return None
        said = {"role": "assistant", "content": reply_text(result.raw)}
        return self._call(call.repeat, (*call.messages, said, {"role": "user", "content": request}), variant="reask")

    def _call(self, repeat: int, messages: tuple[Mapping[str, str], ...], variant: str | None) -> Call:
        parameters: dict[str, Any] = {
            "temperature": 0,
            # Another seed for each repeat: where the server samples all the same, repeats are draws of their own.
            "seed": self.plan.seed + repeat,
            "max_tokens": self.plan.max_tokens or self.prompt.max_tokens,
        }
        if not self.prompt.reading:  # a judge that is read in prose must not be held to a form
            schema = json_schema(self.prompt.fields, self.plan.reason_max_length)
            parameters["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "verdict", "strict": True, "schema": schema},
            }
        call = Call(
            "", self.case_id, repeat, self.order, variant, messages, parameters, self.plan.judge, self.answer_no
        )
        return replace(call, call_id=call_id(self.plan, self.prompt.version, call))


@dataclass(slots=True)
class CaseGrading:
    """One case with its answer, ready to be asked about. Messages are rendered when the first call is planned."""

    case: Case
    answer: Answer
    prompt: Prompt
    plan: GradingPlan
    _messages: tuple[Mapping[str, str], ...] | None = field(default=None, init=False)

    @property
    def case_id(self) -> str:
        """The id of the case."""
        return self.case.id

    @property
    def repeats(self) -> Repeats:
        """The planned repeats of the case."""
        return Repeats(self.case.id, self.prompt, self.plan, None, self.messages, self.answer.answer_no)

    def next_call(self, replies: Mapping[str, Result]) -> Call | None:
        """The call that is needed next, given the replies so far by call id; None when the case is finished."""
        return self.repeats.walk(replies).next_call

    def messages(self, repeat: int) -> tuple[Mapping[str, str], ...]:
        """The messages of one repeat; with `vary_order` each after the first has the contexts in another order."""
        if self.plan.vary_order and repeat:
            return messages_for(self.prompt, self.case, self._varied(repeat), self.plan.seed)
        if self._messages is None:
            self._messages = messages_for(self.prompt, self.case, self.answer, self.plan.seed)
        return self._messages

    def _varied(self, repeat: int) -> Answer:
        return with_contexts_varied(self.answer, self.plan.seed, repeat)


@dataclass(slots=True)
class AnswersGrading:
    """One case with each of its answers, asked about one after the other."""

    case_id: str
    answers: Sequence[CaseGrading]

    def next_call(self, replies: Mapping[str, Result]) -> Call | None:
        """The call that is needed next, of the first answer that is not finished; None when all are."""
        for grading in self.answers:
            call = grading.next_call(replies)
            if call is not None:
                return call
        return None


@dataclass(slots=True)
class PairGrading:
    """One case with the answers of two systems, to be compared in both orders."""

    case: Case
    answer_a: Answer
    answer_b: Answer
    prompt: Prompt
    plan: GradingPlan
    _messages: dict[str, tuple[Mapping[str, str], ...]] = field(default_factory=dict, init=False)

    @property
    def case_id(self) -> str:
        """The id of the case."""
        return self.case.id

    def next_call(self, replies: Mapping[str, Result]) -> Call | None:
        """The call that is needed next, of order ab first; None when both orders are finished."""
        for order in ORDERS:
            call = self.repeats(order).walk(replies).next_call
            if call is not None:
                return call
        return None

    def repeats(self, order: str) -> Repeats:
        """The planned repeats of one order."""
        return Repeats(self.case.id, self.prompt, self.plan, order, lambda repeat: self.messages(order, repeat))

    def messages(self, order: str, repeat: int) -> tuple[Mapping[str, str], ...]:
        """The messages of one repeat in one order: A's answer first in `ab`, B's in `ba`."""
        if self.plan.vary_order and repeat:
            varied = [with_contexts_varied(a, self.plan.seed, repeat) for a in (self.answer_a, self.answer_b)]
            return self._rendered(order, varied[0], varied[1])
        if order not in self._messages:
            self._messages[order] = self._rendered(order, self.answer_a, self.answer_b)
        return self._messages[order]

    def _rendered(self, order: str, a: Answer, b: Answer) -> tuple[Mapping[str, str], ...]:
        first, second = (a, b) if order == "ab" else (b, a)
        return pair_messages_for(self.prompt, self.case, first, second, self.plan.seed)


def with_contexts_varied(answer: Answer, seed: int, repeat: int) -> Answer:
    """The answer with its contexts in another order, fixed by seed, case and repeat."""
    contexts = list(answer.contexts or ())
    random.Random(f"{seed}\n{answer.id}\n{repeat}".encode("utf-8", "surrogatepass")).shuffle(contexts)
    return replace(answer, contexts=tuple(contexts))


def vote_of(result: Result, prompt: Prompt) -> Vote:
    """The verdict in a reply, or why there is none."""
    if isinstance(result, CallFailure):
        return Unscored(result.cause, result.detail)
    if result.cut is not None:
        return Unscored("context_too_long", result.cut)
    if prompt.reading:
        return read_prose_body(result.raw, prompt.reading)
    return read_body(result.raw, prompt.fields)


def decision_of(
    recorded: Mapping[tuple[int, str | None], Result], prompt: Prompt, n_planned: int, did_abstain: bool
) -> Decision:
    """What the kept replies of one case decide, by (repeat, variant), read with today's parser.

    A further try stands in for a reply that cannot be read. No reply at all is a case whose reply never came.
    """
    votes: list[Vote] = []
    for repeat in range(n_planned):
        if (repeat, None) not in recorded:
            break
        vote = vote_of(recorded[repeat, None], prompt)
        again = recorded.get((repeat, "reask"))
        if again is not None and isinstance(vote, Unscored) and vote.reason in ASKED_AGAIN:
            vote = vote_of(again, prompt)
        votes.append(vote)
    votes = votes or [Unscored("no_reply", "no reply is kept")]
    decision = decide(votes, n_planned, prompt.fields, pass_rule(prompt, did_abstain))
    return replace(decision, alike=_alike(recorded.get((0, None)), recorded.get((1, None))))


def _alike(first: Result | None, second: Result | None) -> bool | None:
    """Whether the first two planned repeats brought word for word the same reply; None unless both brought one."""
    if not isinstance(first, Reply) or not isinstance(second, Reply):
        return None
    return reply_text(first.raw) == reply_text(second.raw)


def call_id(plan: GradingPlan, prompt_version: str, call: Call) -> str:
    """40 hex digits of the sha256 over all that determines a reply, as planned; the order of keys does not matter."""
    determining = {
        "server": plan.server,
        "model": plan.model,
        "case_id": call.case_id,
        "prompt_version": prompt_version,
        "repeat": call.repeat,
        "order": call.order,
        "variant": call.variant,
        "messages": [dict(message) for message in call.messages],
        "parameters": dict(call.parameters),
    }
    if call.answer_no:  # two answers of the same words are still two
        determining["answer_no"] = call.answer_no
    return hashlib.sha256(json.dumps(determining, sort_keys=True).encode()).hexdigest()[:40]
