"""Rules, retrieval and the judge's decision of one case → its outcome, the cause of a fail, the layer, the evidence.

The causes are asked in one documented order and the first that applies is the cause, so that a leak is never
hidden behind a missing key point. Causes that need a corpus, the full ranking or a probe are not seen here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rag_judge.records import Answer, Case, Decision, Outcome, OutcomeName, RetrievalScores, RuleChecks

# The closed list, in the order in which it is asked, with the layer where each is mended.
LAYER_OF = {
    "leak": "access",
    "answered_out_of_scope": "abstention",
    "refused_in_scope": "abstention",
    "refused_then_answered": "abstention",
    "not_in_kb": "knowledge_base",
    "recall_miss": "retrieval",
    "crowded_out": "retrieval",
    "split_by_chunking": "chunking",
    "lost_in_assembly": "assembly",
    "ignored_context": "generation",
    "missing_point": "generation",
    "invented": "generation",
    "wrong_citation": "generation",
    "ambiguous_question": "question",
    "judge_at_fault": "judge",
    "unknown": "unknown",
}


@dataclass(frozen=True, slots=True)
class GradedCase:
    """All that is known of one case before its outcome. `decision` is None where no judge was asked of it."""

    case: Case
    answer: Answer
    retrieval: RetrievalScores | None
    rules: RuleChecks | None  # None: the system gave no answer
    decision: Decision | None
    judge_was_asked: bool  # of the run, whether or not of this case


def conclude(graded: GradedCase) -> Outcome:
    """The outcome of one case; a fail carries its cause, layer and evidence."""
    name = _outcome(graded)
    if name == "no_answer":
        return Outcome(name, evidence=graded.answer.error)
    if name != "fail":
        decision = graded.decision
        return Outcome(name, evidence=None if decision is None else decision.reason or decision.unscored_detail)
    for cause, seen in _QUESTIONS:
        evidence = seen(graded)
        if evidence is not None:
            return Outcome(name, cause, LAYER_OF[cause], evidence)
    return Outcome(name, "unknown", LAYER_OF["unknown"], _judge_reason(graded))


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


# --- the causes: each looks for its evidence and answers None where it does not apply -------------------------------


def _leak(graded: GradedCase) -> str | None:
    rules = _rules(graded)
    return f"returned or cited: {', '.join(rules.leaked_ids)}" if rules.leak else None


def _refused_then_answered(graded: GradedCase) -> str | None:
    if graded.case.expect_refusal and _rules(graded).refused_then_answered:
        return "declines, then answers anyway; a refusal was expected"
    return None


def _answered_out_of_scope(graded: GradedCase) -> str | None:
    if graded.case.expect_refusal and _rules(graded).did_abstain is False:
        return "answers; a refusal was expected"
    return None


def _refused_in_scope(graded: GradedCase) -> str | None:
    if not graded.case.expect_refusal and _rules(graded).did_abstain:
        return "declines; no refusal was expected"
    return None


def _recall_miss(graded: GradedCase) -> str | None:
    scores = graded.retrieval
    if scores is None or scores.hit:
        return None
    wanted = ", ".join(doc for doc, grade in graded.case.relevant_docs.items() if grade > 0)
    rank = scores.first_relevant_rank
    return f"none of {wanted} in the top k" + ("" if rank is None else f"; first at rank {rank}")


def _missing_point(graded: GradedCase) -> str | None:
    rules = _rules(graded)
    if rules.missing_points:
        return f"not in the answer: {', '.join(rules.missing_points)}"
    if rules.acceptable_ok is False:
        return f"none of the acceptable wordings in the answer: {', '.join(graded.case.acceptable)}"
    return _judge_reason(graded) if _judged(graded, "complete") is False else None


def _invented(graded: GradedCase) -> str | None:
    rules = _rules(graded)
    if rules.unsupported_points:
        return f"stated, but in no context: {', '.join(rules.unsupported_points)}"
    if rules.forbidden_found:
        return f"must not be in the answer: {', '.join(rules.forbidden_found)}"
    return _judge_reason(graded) if _judged(graded, "grounded") is False else None


_QUESTIONS: tuple[tuple[str, Callable[[GradedCase], str | None]], ...] = (
    ("leak", _leak),
    ("refused_then_answered", _refused_then_answered),
    ("answered_out_of_scope", _answered_out_of_scope),
    ("refused_in_scope", _refused_in_scope),
    ("recall_miss", _recall_miss),
    ("missing_point", _missing_point),
    ("invented", _invented),
)


def _rules(graded: GradedCase) -> RuleChecks:
    if graded.rules is None:
        raise ValueError("a case without an answer has no cause")
    return graded.rules


def _judged(graded: GradedCase, field: str) -> object:
    return None if graded.decision is None else graded.decision.values.get(field)


def _judge_reason(graded: GradedCase) -> str:
    reason = None if graded.decision is None else graded.decision.reason
    return f"judge: {reason}" if reason else "judge: no reason given"
