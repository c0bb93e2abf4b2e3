"""Outcomes, causes in their order, layers and evidence."""

from dataclasses import replace
from typing import Any

import pytest

from rag_judge.attribution import LAYER_OF
from rag_judge.outcomes import GradedCase, conclude, gave_no_answer
from rag_judge.records import Answer, Case, Context, Decision, RetrievalScores, RuleChecks

CASE = Case("c", "q?", relevant_docs={"d#1": 1.0}, acceptable=("x",))
RULES = RuleChecks(
    rule_correct=True,
    must_include_ok=None,
    acceptable_ok=None,
    must_not_include_ok=None,
    faithful=None,
    lexical_support=None,
    did_abstain=False,
    refused_then_answered=False,
    refusal_conflict=False,
    leak=False,
    leak_checked=False,
    leaked_ids=(),
    missing_points=(),
    unsupported_points=(),
    forbidden_found=(),
    n_citations=None,
    dangling_citations=(),
)
FOUND = RetrievalScores(True, 1.0, 1.0, 1.0, 0.2, 1, 0)


def decision(judge_pass: bool | None, n_votes: int = 3, **values: Any) -> Decision:
    fields = {"grounded": True, "complete": True, "should_abstain": False} | values
    reason = None if n_votes else "unreadable"
    return Decision(fields, judge_pass, 3, 3, n_votes, False, False, reason, "because")  # type: ignore[arg-type]


def graded(rules: RuleChecks | None = RULES, judged: Decision | None = None, **parts: Any) -> GradedCase:
    asked = parts.pop("judge_was_asked", judged is not None)
    return GradedCase(parts.pop("case", CASE), Answer("c", "a"), parts.pop("retrieval", FOUND), rules, judged, asked)


@pytest.mark.parametrize(
    ("rule_correct", "judged", "asked", "outcome"),
    [
        pytest.param(True, decision(True), True, "pass", id="both"),
        pytest.param(None, decision(True), True, "pass", id="judge alone"),
        pytest.param(False, decision(True), True, "fail", id="rules fail it, whatever the judge says"),
        pytest.param(True, decision(False), True, "fail", id="judge fails it"),
        pytest.param(True, None, False, "pass", id="rules alone, no judge asked"),
        pytest.param(None, None, False, "not_judged", id="nothing to go by"),
        pytest.param(True, None, True, "not_judged", id="outside the judge sample"),
        pytest.param(False, None, True, "fail", id="outside the judge sample, rules fail"),
        pytest.param(True, decision(None, grounded=None), True, "undecided", id="undecided"),
        pytest.param(False, decision(None, grounded=None), True, "fail", id="undecided, rules fail"),
        pytest.param(True, decision(None, 0), True, "unscored", id="unscored"),
        pytest.param(False, decision(None, 0), True, "fail", id="unscored, rules fail"),
        pytest.param(True, decision(None), True, "not_judged", id="a score without pass_at"),
    ],
)
def test_the_outcome_follows_rules_and_judge(
    rule_correct: bool | None, judged: Decision | None, asked: bool, outcome: str
) -> None:
    case = graded(replace(RULES, rule_correct=rule_correct), judged, judge_was_asked=asked)
    assert conclude(case).outcome == outcome


def test_a_system_that_gave_nothing_has_no_answer() -> None:
    assert conclude(graded(None)).outcome == "no_answer"


@pytest.mark.parametrize(
    ("answer", "judged", "none_given"),
    [
        (Answer("c", "a", error="502"), False, True),
        (Answer("c", None, ()), True, True),
        (Answer("c", None, ()), False, False),
        (Answer("c", None, None), False, True),
        (Answer("c", "", ()), True, False),
        (Answer("c", ""), False, False),
    ],
)
def test_no_answer_is_an_error_or_in_a_judged_run_no_text(answer: Answer, judged: bool, none_given: bool) -> None:
    assert gave_no_answer(answer, judged=judged) is none_given


def test_a_fail_carries_its_cause_with_layer_evidence_and_confidence() -> None:
    rules = replace(RULES, rule_correct=False, leak=True, leaked_ids=("b#1",))
    found = conclude(graded(rules))
    assert (found.outcome, found.cause, found.layer) == ("fail", "leak", LAYER_OF["leak"])
    assert (found.evidence, found.confidence) == ("returned or cited: b#1", "high")


def test_an_unscored_case_says_what_came_in_place_of_a_verdict() -> None:
    lost = replace(decision(None, 0), reason=None, unscored_detail="HTTP 500 from the judge")
    assert conclude(graded(RULES, lost)).evidence == "HTTP 500 from the judge"


def test_a_context_without_an_id_is_named_by_its_rank_when_it_leaks() -> None:
    from rag_judge.rules import leaked_ids

    answer = Answer("c", "a", (Context("x", "t"), Context(None, "t", tenant="b")))
    assert leaked_ids(Case("c", "q?", tenant="a"), answer) == ("context 2",)
