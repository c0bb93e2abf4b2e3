"""Rules, retrieval and the judge's decision of one case → its outcome. Why a case failed is `attribution`'s to say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_judge.attribution import attribute
from rag_judge.corpus import Corpus
from rag_judge.counterfactual import with_probe
from rag_judge.passages import Failed
from rag_judge.records import Answer, Case, Context, Decision, Outcome, OutcomeName, RetrievalScores, RuleChecks
from rag_judge.retrieval import MatchLevel


@dataclass(frozen=True, slots=True)
class GradedCase:
    """All that is known of one case before its outcome. `decision` is None where no judge was asked of it."""

    case: Case
    answer: Answer
    retrieval: RetrievalScores | None
    rules: RuleChecks | None  # None: the system gave no answer
    decision: Decision | None
    judge_was_asked: bool  # of the run, whether or not of this case
    judges_disagree: bool | None = None
    corpus: Corpus | None = None
    match: MatchLevel = "exact"
    gold: Sequence[Context] = ()  # the right passages
    probe: Answer | None = None  # the answer to them, where it was asked for


def conclude(graded: GradedCase) -> Outcome:
    """The outcome of one case; a fail carries its cause, layer and evidence."""
    name = _outcome(graded)
    if name == "no_answer":
        return Outcome(name, evidence=graded.answer.error)
    if name != "fail":
        decision = graded.decision
        return Outcome(name, evidence=None if decision is None else decision.reason or decision.unscored_detail)
    if graded.rules is None:
        raise ValueError("a case without an answer has no cause")
    failed = Failed(
        graded.case,
        graded.answer,
        graded.retrieval,
        graded.rules,
        graded.decision,
        graded.judges_disagree,
        graded.corpus,
        graded.match,
    )
    why = attribute(failed)
    if graded.probe is not None:
        why = with_probe(why, failed, graded.gold, graded.probe)
    return Outcome(name, why.cause, why.layer, why.evidence, why.confidence)


def gave_no_answer(answer: Answer, *, judged: bool) -> bool:
    """True when the system gave none: an error, or in a judged run no text. An empty text is an answer."""
    return answer.error is not None or (answer.answer is None and (judged or answer.contexts is None))


def _outcome(graded: GradedCase) -> OutcomeName:
    rules, decision = graded.rules, graded.decision
    if rules is None:
        return "no_answer"
    judge_pass = None if decision is None else decision.judge_pass
    if rules.rule_correct is False or judge_pass is False:
        return "fail"
    if judge_pass is True or (rules.rule_correct is True and not graded.judge_was_asked):
        return "pass"
    if decision is None:
        return "not_judged"
    if decision.unscored:
        return "unscored"
    return "undecided" if decision.is_undecided else "not_judged"  # a scale without pass_at decides no pass
