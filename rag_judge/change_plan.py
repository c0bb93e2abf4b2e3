"""What a kind of change of the RAG system needs before it is shipped: facts of the project → steps, numbers, gaps.

Pure: nothing is read, asked or written here. Why a step is needed is worded in `change_words`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rag_judge.change_facts import Change, ProjectFacts, Spend
from rag_judge.families import ANSWERING
from rag_judge.planning import HALF_WIDTHS, labels_for_half_width, smallest_detectable_difference

DISCORDANT_SHARES = (0.1, 0.2, 0.3)
OF_RETRIEVAL: tuple[Change, ...] = ("embedding", "chunking")
REVIEW_HALF_WIDTH = HALF_WIDTHS[0]

# Placeholders in commands: what is not known here.
RUN, URL, NEW_ANSWERS, OLD, NEW, CORPUS, LOG = "RUN", "URL", "NEW_ANSWERS", "OLD", "NEW", "NEW_CORPUS", "LOG"
SHEETS, NEW_CASES = "SHEETS", "new_cases.jsonl"

_OF_EVERY_COMMAND = frozenset({"--config", "--lang"})
_OF_READERS = _OF_EVERY_COMMAND | {"--out"}
_OF_PAIRWISE = _OF_READERS | {
    *("--repeats", "--base-url", "--model", "--prompt-lang", "--judge-sample", "--seed", "--concurrency"),
    *("--max-tokens", "--timeout-s", "--attempts", "--max-usd", "--max-calls", "--deadline", "--vary"),
    *("--no-early-stop", "--no-reask", "--no-cache"),
}
_OF_AB = _OF_READERS | {
    *("--judge", "--repeats", "--k", "--base-url", "--model", "--prompt-lang", "--seed", "--concurrency"),
    *("--max-usd", "--max-calls", "--deadline"),
}
_NAMES_OF_FACTORS = {"prompt": "prompt_version", "model": "model", "embedding": "embedding", "chunking": "chunking"}


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do, in order: why stands in `change_words` under its code."""

    code: str
    command: tuple[str, ...] = ()  # after rag-judge; empty: done by hand
    calls: Spend | None = None  # of the judge; None: none
    labels: int | None = None  # by people


@dataclass(frozen=True, slots=True)
class Detectable:
    """The smallest difference that a comparison of two runs finds with a power of 80 %, per share that differs."""

    what: Literal["pass", "retrieval", "rules"]
    n: int
    smallest: tuple[tuple[float, float | None], ...]  # share of cases on which the runs differ, difference or None


@dataclass(frozen=True, slots=True)
class LabelsFor:
    """About the labels that a half-width of the corrected pass rate takes before it is known what the judge is worth.

    They are those of a simple sample without a judge; a good judge needs fewer.
    """

    half_width: float
    n: int  # for questions like these
    n_this_set: int  # for what people would say of exactly these cases
    cases_suffice: bool  # False: more than there are cases, so that more cases are needed


@dataclass(frozen=True, slots=True)
class Said:
    """A gap or a remark, by code, with the values of its sentence."""

    code: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """What a change needs: steps in order, what the numbers can show, and what this eval set cannot say."""

    change: Change
    steps: tuple[Step, ...]
    detectable: tuple[Detectable, ...]
    labels: tuple[LabelsFor, ...]
    gaps: tuple[Said, ...]
    remarks: tuple[Said, ...]


def plan_change(facts: ProjectFacts) -> ChangePlan:
    """The plan of one change."""
    steps = {
        "prompt": _prompt_steps,
        "model": _model_steps,
        "embedding": _retrieval_steps,
        "chunking": _chunking_steps,
        "online": _online_steps,
    }[facts.change](_Commands(facts))
    labels = _labels(facts) if facts.judge is not None else ()
    return ChangePlan(facts.change, tuple(steps), _detectable(facts), labels, _gaps(facts), _remarks(facts))


# --- the commands ----------------------------------------------------------------------------------------------------


class _Commands:
    """The commands of one project, with what was typed carried along, and the ids that today's runs will have."""

    def __init__(self, facts: ProjectFacts) -> None:
        self.facts = facts
        self.baseline = facts.baseline or RUN
        self.is_judged = facts.judge is not None
        self._taken = set(facts.taken)

    def run_id(self, name: str) -> str:
        """The id that a run of this name begun today gets, were the commands before it given."""
        stem = f"{self.facts.today}-{name}"
        run_id = next(one for one in (stem, *(f"{stem}-{n}" for n in range(2, 10_000))) if one not in self._taken)
        self._taken.add(run_id)
        return run_id

    def options(self, known: Collection[str] | None = None, without: Collection[str] = ()) -> list[str]:
        """What was typed, as far as a command knows it; without `known`, `run` does."""
        words: list[str] = []
        for option, value in self.facts.options:
            if option not in without and (known is None or option in known):
                words += [option] if value is None else [option, value]
        return words

    def run(
        self,
        name: str,
        cases: str | None = None,
        answers: str | None = None,
        *,
        judged: bool = True,
        extra: Sequence[str] = (),
    ) -> tuple[str, ...]:
        """Ask, or take answers that are there, and grade."""
        source = ["--answers", answers] if answers else []
        if not answers and self.facts.endpoint is None:
            source = ["--answers", NEW_ANSWERS] if self._typed("--answers") else ["--endpoint", URL]
        replaced = {"--answers", "--name", *extra[::2]}
        replaced |= {"--endpoint"} if answers else set()
        replaced |= set() if judged else {"--judge"}
        words = ["run", "--cases", cases or self.facts.cases, *source, *self.options(without=replaced)]
        words += ["--name", name] + ([] if judged else ["--judge", "none"])
        return tuple(words + self._factor() + list(extra))

    def compare(self, run_id: str, baseline: str | None = None) -> tuple[str, ...]:
        """Hold a run against the baseline, on the questions that both were asked."""
        common = [] if self.facts.same_questions else ["--common"]
        return ("compare", baseline or self.baseline, run_id, *common, *self.options(_OF_READERS))

    def gate(self, run_id: str, baseline: str | None = None) -> tuple[str, ...]:
        """Decide; with a baseline of other questions, by red lines and floors alone."""
        against = ["--baseline", baseline or self.baseline] if self.facts.same_questions else []
        return ("gate", run_id, *against, *self.options(_OF_READERS))

    def pairwise(self, run_id: str) -> tuple[str, ...]:
        """Show the judge both answers."""
        common = [] if self.facts.same_questions else ["--common"]
        return ("pairwise", self.baseline, run_id, *common, *self.options(_OF_PAIRWISE))

    def both(self, name: str) -> tuple[str, ...]:
        """Both versions in one go, where there is no run to hold the new one against."""
        models = [value for option, value in self.facts.options if option == "--model"]
        without = ["--model"] if len(models) > 1 else []  # it has one judge
        factor, url = self._factor_name(), self.facts.endpoint or URL
        words = ["ab", "--cases", self.facts.cases, "--a", url, "--set-a", f"{factor}={OLD}"]
        words += ["--b", url, "--set-b", f"{factor}={NEW}", "--name", name]
        return tuple(words + self.options(_OF_AB, without))

    def of_run(self, *words: str) -> tuple[str, ...]:
        """A command that reads a run of the archive."""
        return (*words, *self.options(_OF_READERS))

    def of_cases(self, *words: str) -> tuple[str, ...]:
        """A command that reads files alone."""
        return (*words, *self.options(_OF_EVERY_COMMAND))

    def pair_spend(self) -> Spend:
        """What a pairwise comparison takes; its prompts are not known before both answers are."""
        return Spend(*self.facts.pair_calls)

    def spend_of_both(self) -> Spend:
        """What both versions and their comparison take; money as far as the two runs go."""
        one, pairs = self.facts.spend, self.pair_spend()
        least = 2 * one.calls_at_least + pairs.calls_at_least
        return Spend(least, 2 * one.calls_at_most + pairs.calls_at_most)

    def _typed(self, option: str) -> bool:
        return any(name == option for name, _ in self.facts.options)

    def _factor(self) -> list[str]:
        """What is to change, told to the manifest; nothing where it was typed, and for a fault that is mended."""
        told = self.facts.change == "online" or self._typed("--set")
        return [] if told else ["--set", f"{self._factor_name()}={NEW}"]

    def _factor_name(self) -> str:
        """The name under which what changes is recorded, or is to be."""
        change, system = self.facts.change, self.facts.system
        alike = ANSWERING if change == "model" else [name for name in system if change[:5] in name]
        return next((name for name in alike if name in system), _NAMES_OF_FACTORS[change])


def _full_run(commands: _Commands, code: str, name: str, answers: str | None = None, **more: Any) -> tuple[str, Step]:
    """The whole set graded, as a step, and the id of its run."""
    spend = commands.facts.spend if commands.is_judged else None
    step = Step(code, commands.run(name, answers=answers, **more), spend)
    return commands.run_id(name), step


def _review_steps(commands: _Commands, run_id: str) -> list[Step]:
    """People look at a sample of the new run: the judge's errors may be others on it."""
    needed = labels_for_half_width(REVIEW_HALF_WIDTH, commands.facts.expected_rate)
    n_cases = commands.facts.n_judged
    size = ["--half-width", f"{REVIEW_HALF_WIDTH:g}"] if needed <= n_cases else ["--fraction", "1"]
    export = commands.of_run("review", "export", run_id, *size, "--annotators", "2")
    return [
        Step("review_sample", export, labels=min(needed, n_cases)),
        Step("review_import", commands.of_run("review", "import", run_id, SHEETS)),
        Step("bias", commands.of_run("bias", run_id)),
    ]


# --- the steps of each change ----------------------------------------------------------------------------------------


def _prompt_steps(commands: _Commands) -> list[Step]:
    new, graded = _full_run(commands, "full_set", "prompt-change")
    steps = [graded, Step("retrieval_held", commands.compare(new))]
    if commands.is_judged:
        steps.append(Step("pairwise", commands.pairwise(new), commands.pair_spend()))
    steps.append(Step("gate", commands.gate(new)))
    if commands.facts.baseline is None and commands.is_judged:
        steps.append(Step("both_instead", commands.both("prompt-change"), commands.spend_of_both()))
    return steps


def _model_steps(commands: _Commands) -> list[Step]:
    new, graded = _full_run(commands, "full_set", "model-change")
    steps = [graded, Step("retrieval_held", commands.compare(new))]
    if commands.is_judged:
        steps += _review_steps(commands, new)
        steps.append(Step("pairwise", commands.pairwise(new), commands.pair_spend()))
    return [*steps, Step("gate", commands.gate(new))]


def _retrieval_steps(commands: _Commands) -> list[Step]:
    """Retrieval first and without a judge; then generation on the very same answers."""
    return _retrieval_then_generation(commands, "embedding", commands.baseline, ())


def _retrieval_then_generation(commands: _Commands, change: str, baseline: str, extra: Sequence[str]) -> list[Step]:
    retrieved = commands.run(f"{change}-retrieval", judged=False, extra=extra)
    first = commands.run_id(f"{change}-retrieval")
    steps = [Step("retrieval_first", retrieved), Step("retrieval_compared", commands.compare(first, baseline))]
    if not commands.is_judged:
        return [*steps, Step("gate", commands.gate(first, baseline))]
    answers = f"{commands.facts.archive}/{first}/answers.jsonl"
    new, graded = _full_run(commands, "then_generation", f"{change}-change", answers, extra=extra)
    return [
        *steps,
        graded,
        Step("compared", commands.compare(new, baseline)),
        Step("gate", commands.gate(new, baseline)),
    ]


def _chunking_steps(commands: _Commands) -> list[Step]:
    """Ids first: what the eval set names may be gone. Then as for an embedding, matched by document."""
    facts = commands.facts
    lint = commands.of_cases("lint", facts.cases, "--corpus", CORPUS)
    steps = [Step("lint_corpus", lint), Step("map_ids")]
    extra = ["--match", "document", "--corpus", CORPUS]
    baseline = commands.baseline
    if facts.match != "document":
        regrade = ("regrade", baseline, "--match", "document", "--name", "baseline-by-document")
        steps.append(Step("baseline_by_document", commands.of_run(*regrade)))
        baseline = commands.run_id("baseline-by-document")
    return steps + _retrieval_then_generation(commands, "chunking", baseline, extra)


def _online_steps(commands: _Commands) -> list[Step]:
    facts = commands.facts
    steps = [
        Step("mine", commands.of_cases("mine", LOG, "--cases", facts.cases, "--out", NEW_CASES)),
        Step("write_case"),
        Step("lint_cases", commands.of_cases("lint", NEW_CASES)),
        Step("fails_today", commands.run("fault-before", NEW_CASES, judged=False)),
        Step("add_case"),
    ]
    new, graded = _full_run(commands, "fixed", "fault-fixed")
    # The set has grown since the baseline: what both were asked is compared, and red lines decide on all.
    compared = ("compare", commands.baseline, new, "--common")
    return [
        *steps,
        graded,
        Step("compared_common", commands.of_run(*compared)),
        Step("gate_red_lines", commands.of_run("gate", new)),
    ]


# --- numbers, gaps, remarks ------------------------------------------------------------------------------------------


def _detectable(facts: ProjectFacts) -> tuple[Detectable, ...]:
    """Of the judge (of rules, where there is none), and of retrieval where its cases are another number."""
    counts = facts.counts
    found = [_of("rules", counts.n_cases) if facts.judge is None else _of("pass", facts.n_judged)]
    if counts.n_relevant_docs:
        found.append(_of("retrieval", counts.n_relevant_docs))
    return tuple(found)


def _of(what: Literal["pass", "retrieval", "rules"], n: int) -> Detectable:
    return Detectable(what, n, tuple((share, smallest_detectable_difference(n, share)) for share in DISCORDANT_SHARES))


def _labels(facts: ProjectFacts) -> tuple[LabelsFor, ...]:
    found = []
    for half_width in HALF_WIDTHS:
        n = labels_for_half_width(half_width, facts.expected_rate)
        of_set = labels_for_half_width(half_width, facts.expected_rate, facts.n_judged) if facts.n_judged else 0
        found.append(LabelsFor(half_width, n, of_set, cases_suffice=n <= facts.n_judged))
    return tuple(found)


def _gaps(facts: ProjectFacts) -> tuple[Said, ...]:
    """What this eval set cannot say of this change; the worst first."""
    counts, change = facts.counts, facts.change
    n, n_relevant = counts.n_cases, counts.n_relevant_docs
    of_retrieval = change in OF_RETRIEVAL
    all_unseen = all(smallest is None for of in _detectable(facts) for _, smallest in of.smallest)
    found: list[tuple[str, bool, dict[str, Any]]] = [
        ("no_relevant_docs", of_retrieval and not n_relevant, {"change": change}),
        ("retrieval_unseen", change in ("prompt", "model") and not n_relevant, {}),
        ("too_few_cases", all_unseen, {"n": n}),
        ("few_relevant_docs", of_retrieval and 0 < n_relevant < n - counts.n_refusals, {"n": n_relevant, "of": n}),
        ("chunk_ids", change == "chunking" and counts.n_chunk_ids > 0, {"n": counts.n_chunk_ids}),
        (
            "ids_of_what",
            change == "chunking" and counts.n_chunk_ids < n_relevant,
            {"n": n_relevant - counts.n_chunk_ids},
        ),
        ("no_red_lines", not counts.n_red_lines, {}),
        ("no_leak_checks", not counts.n_tenants and not counts.n_forbidden_docs, {}),
        ("no_refusals", not counts.n_refusals, {}),
        ("only_refusals", 0 < n == counts.n_refusals, {}),
        ("states_nothing", counts.n_stating_nothing > 0, {"n": counts.n_stating_nothing, "of": n}),
        ("no_judge", facts.judge is None, {}),
    ]
    return tuple(Said(code, values) for code, applies, values in found if applies)


def _remarks(facts: ProjectFacts) -> tuple[Said, ...]:
    """What is to be known of the commands: placeholders, and what was assumed."""
    told = [str(value).partition("=")[0] for option, value in facts.options if option == "--set"]
    is_named = any(name in ANSWERING for name in told)
    model, family = facts.same_family or ("", "")
    is_judged_model = facts.change == "model" and facts.judge is not None
    found: list[tuple[str, bool, dict[str, Any]]] = [
        ("same_family", facts.same_family is not None, {"judge": facts.judge, "model": model, "family": family}),
        ("model_unknown", is_judged_model and not is_named, {"judge": facts.judge}),
        ("no_baseline", facts.baseline is None, {}),
        ("other_questions", not facts.same_questions and facts.change != "online", {"run": facts.baseline}),
        ("hidden_endpoint", facts.endpoint == URL, {}),
        ("no_endpoint", facts.endpoint is None, {}),
        ("answers_unknown", facts.judge is not None and not facts.answers_known, {}),
        ("run_ids", True, {"today": facts.today}),
    ]
    return tuple(Said(code, values) for code, applies, values in found if applies)
