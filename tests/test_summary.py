"""The summary: every rate by hand, with its denominator."""

from typing import Any

import pytest

from rag_judge.records import CaseRow
from rag_judge.summary import summarise


def row(case_id: str, outcome: str = "pass", **columns: Any) -> CaseRow:
    columns = {"did_abstain": False, "leak": False} | columns
    return CaseRow(case_id, columns.pop("type", "fact"), outcome, **columns)  # type: ignore[arg-type]


def judged(case_id: str, judge_pass: bool | None, **columns: Any) -> CaseRow:
    columns = {
        "drawn": True,
        "undecided": judge_pass is None and "unscored_reason" not in columns and "score" not in columns,
        "n_votes": 3,
        "grounded": True,
        "complete": True,
        "should_abstain": False,
    } | columns
    return row(case_id, {True: "pass", False: "fail", None: "undecided"}[judge_pass], judge_pass=judge_pass, **columns)


def no_answer(case_id: str) -> CaseRow:
    return CaseRow(case_id, "fact", "no_answer")


def summary(rows: list[CaseRow], **options: Any) -> dict[str, Any]:
    return summarise(rows, **{"k": 5, "seed": 0, "mode": "passfail", **options})


def value(tree: dict[str, Any], name: str) -> tuple[Any, int]:
    assert tree[name] is not None, tree.get(f"{name}_reason")
    return tree[name]["value"], tree[name]["n"]


def test_retrieval_is_taken_over_answered_cases_with_relevant_documents_alone() -> None:
    scores: dict[str, Any] = {"recall": 0.5, "mrr": 0.25, "ndcg": 0.5, "precision": 0.2, "n_duplicates": 2}
    zeros: dict[str, Any] = dict.fromkeys(scores, 0)
    rows = [row("a", hit=True, **scores), row("b", hit=False, **zeros),
            row("c"), no_answer("d")]  # fmt: skip
    retrieval = summary(rows)["retrieval"]
    assert (retrieval["k"], retrieval["n"], retrieval["n_excluded"], retrieval["n_duplicates"]) == (5, 2, 1, 2)
    assert value(retrieval, "hit") == (0.5, 2)
    assert value(retrieval, "recall") == (0.25, 2)
    assert value(retrieval, "mrr") == (0.125, 2)


def test_a_number_without_a_case_is_null_with_its_reason() -> None:
    tree = summary([row("a")], mode="none")
    assert tree["retrieval"]["hit"] is None
    assert "relevant documents" in tree["retrieval"]["hit_reason"]
    assert tree["rules"]["correct"] is None
    assert tree["judge"] == {"mode": "none"}


def test_rules_leave_empty_columns_out_of_their_denominators() -> None:
    rows = [
        row("a", rule_correct=True, must_include_ok=True, faithful=True, expect_refusal=False),
        row("b", "fail", rule_correct=False, must_include_ok=False, expect_refusal=True, leak_checked=True, leak=True),
        row("c", rule_correct=True, did_abstain=True, expect_refusal=True, n_citations=3, n_dangling_citations=1),
        row("d"),
        no_answer("e"),
    ]
    rules = summary(rows)["rules"]
    assert value(rules, "correct") == (pytest.approx(2 / 3), 3)
    assert value(rules, "must_include") == (0.5, 2)
    assert value(rules, "faithful") == (1.0, 1)
    assert value(rules, "refusal") == (pytest.approx(2 / 3), 3)
    assert (rules["leaks"], rules["n_leak_checked"]) == (["b"], 1)
    assert rules["citations"] == {"dangling": 1, "checked": 3}


def test_declining_is_a_table_of_its_own() -> None:
    rows = [
        row("a", expect_refusal=True, did_abstain=True),
        row("b", expect_refusal=True, did_abstain=False, refused_then_answered=True),
        row("c", expect_refusal=False, did_abstain=True, refusal_conflict=True),
        row("d", expect_refusal=False),
        row("e", did_abstain=True),
        no_answer("f"),
    ]
    assert summary(rows)["abstention"] == {
        "should_and_did": 1,
        "should_but_answered": 1,
        "should_not_but_did": 1,
        "should_not_and_answered": 1,
        "unstated": 1,
        "unstated_and_did": 1,
        "refused_then_answered": 1,
        "flag_against_text": 1,
    }


def test_judge_rates_say_what_was_left_out_and_what_it_could_make_of_them() -> None:
    rows = [
        judged("a", True),
        judged("b", False, grounded=False),
        judged("c", None, grounded=None),
        judged("d", None, n_votes=0, grounded=None, complete=None, should_abstain=None, unscored_reason="truncated"),
        judged("e", True, should_abstain=True, did_abstain=True, expect_refusal=False),
        no_answer("f"),
    ]
    judge = summary(rows)["judge"]
    assert (judge["drawn"], judge["graded"], judge["undecided"], judge["unscored"]) == (5, 3, 1, {"truncated": 1})
    assert value(judge, "pass") == (pytest.approx(2 / 3), 3)
    assert (judge["pass_worst"], judge["pass_best"]) == (pytest.approx(2 / 5), pytest.approx(4 / 5))
    assert value(judge, "grounded") == (pytest.approx(2 / 3), 3)
    assert value(judge, "complete") == (1.0, 4)
    # of three graded cases, b answered without support; of the two that answered, a is supported
    assert value(judge, "fabrication") == (pytest.approx(1 / 3), 3)
    assert value(judge, "correctness") == (0.5, 2)
    assert judge["expectation_conflict"] == 1


def test_an_undecided_grounded_counts_neither_as_invented_nor_as_supported() -> None:
    rows = [judged("a", False, grounded=None, complete=False), judged("b", True)]
    judge = summary(rows)["judge"]
    assert value(judge, "fabrication") == (0.0, 1)
    assert value(judge, "correctness") == (1.0, 1)


def test_flips_are_taken_over_cases_whose_first_two_repeats_were_read() -> None:
    rows = [judged("a", True, flipped=True, unstable=True), judged("b", True, flipped=False, unstable=True),
            judged("c", True, flipped=None, unstable=None)]  # fmt: skip
    judge = summary(rows)["judge"]
    assert value(judge, "flip_rate") == (0.5, 2)
    assert value(judge, "unstable_share") == (1.0, 2)


def test_end_to_end_counts_a_missing_answer_as_wrong_and_open_cases_at_both_ends() -> None:
    rows = [judged("a", True), judged("b", False), judged("c", None, grounded=None), no_answer("d")]
    tree = summary(rows)["end_to_end"]
    assert value(tree, "correct") == (pytest.approx(1 / 3), 3)
    assert (tree["worst"], tree["best"], tree["population"]) == (0.25, 0.5, "all cases")


def test_with_a_judge_sample_the_drawn_cases_stand_for_all_answered_ones() -> None:
    rows = [
        judged("a", True),
        judged("b", False),
        row("c", "not_judged", rule_correct=True, drawn=False),
        row("d", "fail", rule_correct=False, drawn=False),
        no_answer("e"),
    ]
    tree = summary(rows, is_sampled=True)
    # half of the drawn pass; four of five cases were answered, and the fifth is known to be wrong
    assert tree["end_to_end"]["correct"]["value"] == pytest.approx(0.5 * 0.8)
    assert tree["judge"]["sampled"] == {"n": 2, "of": 4, "seed": 0}
    assert tree["judge"]["drawn"] == 2


def test_a_scale_is_reported_by_its_mean_and_histogram() -> None:
    rows = [judged("a", None, score=4.0), judged("b", None, score=2.0), judged("c", None, score=4.0)]
    judge = summary(rows, mode="scale")["judge"]
    assert judge["score"]["mean"]["value"] == pytest.approx(10 / 3)
    assert judge["score"]["histogram"] == {"2": 1, "4": 2}
    assert judge["undecided"] == 0


def test_types_stand_apart_and_causes_are_counted() -> None:
    rows = [
        row("a", rule_correct=True),
        row("b", "fail", rule_correct=False, cause="invented", layer="generation", type="policy"),
        row("c", "fail", rule_correct=False, cause="leak", layer="access", type=None),
    ]
    tree = summary(rows, mode="none")
    assert list(tree["by_type"]) == ["fact", "policy", "untyped"]
    assert value(tree["by_type"]["policy"], "end_to_end") == (0.0, 1)
    assert tree["causes"] == {"invented": 1, "leak": 1}
    assert tree["layers"] == {"access": 1, "generation": 1}
    assert tree["outcomes"] == {"fail": 2, "pass": 1}
