"""Why a case failed: one small case a cause, in the order of the questions; what it takes to be sure."""

from dataclasses import replace
from typing import Any

import pytest

from rag_judge.attribution import LAYER_OF, attribute
from rag_judge.passages import Failed
from rag_judge.records import Answer, Case, Context, Decision
from rag_judge.retrieval import score_ranking
from rag_judge.rules import check

TRIAL = Context("trial#1", "Every trial runs for 14 days. No card is needed.")
LONG = Context("trial#2", "Every trial of the school plan runs for 30 days.")
OTHER = Context("seat#1", "Up to 500 seats are included.")
CASE = Case("c", "How long is the trial?", relevant_docs={"trial#1": 1.0}, must_include=(("14 days",),))


def decided(judge_pass: bool | None, *, flipped: bool = False, **values: Any) -> Decision:
    fields = {"grounded": True, "complete": True, "should_abstain": False} | values
    return Decision(fields, judge_pass, 3, 3, 3, flipped, flipped, None, "because")


def cause_of(
    case: Case, text: str, *contexts: Context, judged: Decision | None = None, k: int = 5, **answer: Any
) -> tuple[str, str, str]:
    """Cause, evidence and confidence of an answer."""
    given = Answer(case.id, text, contexts, **answer)
    scores = score_ranking([c.id or "" for c in contexts], case.relevant_docs, k, "exact")
    found = attribute(Failed(case, given, scores, check(case, given), judged))
    assert found.layer == LAYER_OF[found.cause]
    return found.cause, found.evidence, found.confidence


REFUSE = Case("c", "Who is paid most?", expect_refusal=True)
SORRY = "I could not find any information on this."


@pytest.mark.parametrize(
    ("case", "text", "contexts", "more", "cause", "says"),
    [
        pytest.param(replace(CASE, forbidden_docs=("seat#*",)), "500", [OTHER], {}, "leak", "seat#1", id="leak"),
        pytest.param(REFUSE, "Ms Li is.", [OTHER], {}, "answered_out_of_scope", "refusal was expected", id="answered"),
        pytest.param(REFUSE, f"{SORRY} The director earns 90000.", [OTHER], {}, "refused_then_answered",
                     "then answers anyway", id="refused, then answered"),
        pytest.param(CASE, SORRY, [TRIAL], {}, "refused_in_scope", "trial#1 (rank 1) holds “14 days”", id="refused"),
        pytest.param(CASE, "It is free.", [OTHER], {}, "recall_miss", "none of trial#1 in the top k", id="not found"),
        pytest.param(CASE, "It is free.", [OTHER, TRIAL], {"k": 1}, "recall_miss", "first at rank 2", id="found late"),
        pytest.param(CASE, "Every trial of the school plan runs for 30 days.", [LONG, TRIAL], {}, "crowded_out",
                     "the look-alike trial#2 (rank 1); relevant: trial#1 (rank 2)", id="a look-alike"),
        pytest.param(replace(CASE, must_not_include=("500",)), "14 days, 500 seats", [TRIAL, OTHER], {}, "crowded_out",
                     "says “500” of seat#1", id="another passage's value"),
        pytest.param(CASE, "It runs for 1", [Context("trial#1", "It runs for 1"), Context("trial#2", "4 days.")], {},
                     "split_by_chunking", "trial#1 and trial#2", id="cut between two contexts"),
        pytest.param(CASE, "It runs for 1", [Context("trial#1", "It runs for 1")], {}, "split_by_chunking",
                     "trial#1 and its neighbour", id="half of it retrieved"),
        pytest.param(replace(CASE, relevant_docs={"trial#1": 1, "fee#1": 1}, must_include=(("9 USD",),)), "14 days",
                     [TRIAL], {}, "recall_miss", "not retrieved: fee#1", id="one of two documents"),
        pytest.param(CASE, "It is short.", [TRIAL, OTHER], {"sent_contexts": ("seat#1",)}, "lost_in_assembly",
                     "which the prompt does not hold whole", id="not sent"),
        pytest.param(CASE, "It is short.", [TRIAL], {"prompt": "Answer from: Every trial runs"}, "lost_in_assembly",
                     "trial#1 (rank 1)", id="cut off in the prompt"),
        pytest.param(CASE, "No card is needed.", [TRIAL, OTHER], {}, "ignored_context", "“14 days” in trial#1",
                     id="in the contexts, not said"),
        pytest.param(replace(CASE, must_include=(("14 days",), ("No card",))), "It runs for 14 days.", [TRIAL], {},
                     "missing_point", "though in the contexts: “No card”", id="one of two points"),
        pytest.param(replace(CASE, must_include=(("15 days",),)), "It is 15 days.", [TRIAL], {}, "invented",
                     "in no context: 15 days", id="stated without support"),
    ],
)  # fmt: skip
def test_ids_and_texts_decide_the_cause(
    case: Case, text: str, contexts: list[Context], more: dict[str, Any], cause: str, says: str
) -> None:
    found = cause_of(case, text, *contexts, **more)
    assert found[0] == cause
    assert says in found[1]


@pytest.mark.parametrize(
    ("judged", "more", "cause", "confidence"),
    [
        pytest.param(decided(False, complete=False), {}, "missing_point", "low", id="the judge misses something"),
        pytest.param(decided(False, grounded=False), {}, "invented", "low", id="the judge finds it unsupported"),
        pytest.param(
            decided(False), {"citations": ("gone#1",)}, "wrong_citation", "high", id="cites what is not there"
        ),
        pytest.param(decided(False, flipped=True), {}, "ambiguous_question", "low", id="repeats differ"),
        pytest.param(decided(False, should_abstain=True), {}, "unknown", "low", id="nothing explains it"),
    ],
)
def test_what_only_a_judge_says_is_of_low_confidence(
    judged: Decision, more: dict[str, Any], cause: str, confidence: str
) -> None:
    silent = Case("c", "How long is the trial?", relevant_docs={"trial#1": 1.0})
    found = cause_of(silent, "Two weeks, as every child knows.", TRIAL, judged=judged, **more)
    assert (found[0], found[2]) == (cause, confidence)


def test_a_judge_that_fails_what_meets_every_expectation_is_at_fault() -> None:
    found = cause_of(CASE, "Every trial runs for 14 days.", TRIAL, judged=decided(False, complete=False))
    assert (found[0], found[2]) == ("judge_at_fault", "medium")
    assert "every stated expectation is met" in found[1]


def test_a_citation_that_does_not_hold_the_point_is_wrong_where_the_judge_fails_the_answer() -> None:
    found = cause_of(
        CASE, "It runs for 14 days.", OTHER, TRIAL, judged=decided(False, grounded=False), citations=("seat#1",)
    )
    assert found[0] == "wrong_citation"
    assert "“14 days” stands in none of the cited seat#1 (rank 1)" in found[1]


def test_a_passage_that_the_eval_set_does_not_name_puts_the_miss_in_doubt() -> None:
    found = cause_of(CASE, "It is free.", Context("faq#9", "A trial is 14 days long."))
    assert (found[0], found[2]) == ("recall_miss", "medium")
    assert "but faq#9 (rank 1) holds “14 days”" in found[1]
