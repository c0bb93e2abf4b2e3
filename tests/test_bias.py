"""The judge held against people, on small runs worked by hand and against scikit-learn and statsmodels."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.proportion import proportion_confint

from rag_judge.bias import Reviewed, bias_tree, human_pass
from rag_judge.gold import ADJUDICATOR, Label
from rag_judge.records import CaseRow, Value
from rag_judge.review.design import Design, draw_design, strata_of_cases

Y, N = True, False


def derived(row: CaseRow, values: Mapping[str, Value | None]) -> bool | None:
    """A pass takes both fields; one no is enough for a fail."""
    said = [values.get("grounded"), values.get("complete")]
    return False if False in said else None if None in said else True


def row(case_id: str, passes: bool | None, **changes: Any) -> CaseRow:
    known = {"type": "fact", "judge_pass": passes, "n_planned": 3, "drawn": True, **changes}
    return CaseRow(id=case_id, outcome="pass" if passes else "fail", **known)


def passed(case_id: str, value: bool | None, annotator: str = "li", **more: Any) -> Label:
    return Label(case_id, annotator, {"passed": value, **more})


def design_of(rows: Sequence[CaseRow], n: int, share: float = 1.0) -> Design:
    return draw_design(strata_of_cases(rows, n, oversample=False), n, 0, judge_share=share, oversampled=False)


def tree_of(rows: Sequence[CaseRow], labels: Sequence[Label], design: Design | None = None, **changes: Any) -> Any:
    known: dict[str, Any] = {"mode": "passfail", "seed": 0, "derived_pass": derived, "lengths": {}, **changes}
    tree = bias_tree(Reviewed(rows, labels, design, **known))
    json.dumps(tree, allow_nan=False)  # what stands in the file
    return tree


def census(judge: str, human: str) -> tuple[list[CaseRow], list[Label]]:
    """A case a letter, `y` or `n`; every one labelled, but for a dash."""
    rows = [row(f"c{i}", said == "y") for i, said in enumerate(judge)]
    return rows, [passed(f"c{i}", said == "y") for i, said in enumerate(human) if said != "-"]


# --- drawn by verdict ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn_tree() -> Any:
    """64 judged to pass and 16 to fail; of 12 and 4 labelled ones, people pass 11 and 1."""
    rows = [row(f"c{i}", i < 64) for i in range(80)]
    design = design_of(rows, 16)
    by_verdict = [[c for c in design.drawn if (int(c[1:]) < 64) is verdict] for verdict in (True, False)]
    assert [len(ids) for ids in by_verdict] == [12, 4]
    labels = [passed(c, i != 0) for i, c in enumerate(by_verdict[0])]
    labels += [passed(c, i == 0) for i, c in enumerate(by_verdict[1])]
    return tree_of(rows, labels, design)


def test_the_corrected_rate_weighs_each_verdict_by_its_cases(drawn_tree: Any) -> None:
    found = drawn_tree["fields"]["pass"]
    assert found["confusion"] == {"tp": 11, "fn": 1, "fp": 1, "tn": 3}
    theta = 0.8 * 11 / 12 + 0.2 * 1 / 4
    assert found["corrected"]["value"] == pytest.approx(theta)
    assert (found["judge_rate"]["value"], found["rule"], drawn_tree["rule"]) == (0.8, "R3", "R3")
    assert found["bias"]["value"] == pytest.approx(0.8 - theta)
    assert found["false_pass"]["value"] == pytest.approx(0.8 * 1 / 12)
    assert found["false_fail"]["value"] == pytest.approx(0.2 * 1 / 4)
    # 63 labels take the half-width to 0.10: 47 more
    assert (found["labels_needed"]["0.10"], found["labels_more"]["0.10"]) == (63, 47)


def test_its_interval_is_mover_with_jeffreys_ends(drawn_tree: Any) -> None:
    (l1, u1), (l0, u0) = (beta.ppf([0.025, 0.975], x + 0.5, n - x + 0.5) for x, n in ((11, 12), (1, 4)))
    low_w, high_w = proportion_confint(64, 80, method="wilson")
    p1, p0, w = 11 / 12, 1 / 4, 0.8
    theta = w * p1 + (1 - w) * p0
    low = theta - np.sqrt((w * (p1 - l1)) ** 2 + ((1 - w) * (p0 - l0)) ** 2 + ((p1 - p0) * (w - low_w)) ** 2)
    high = theta + np.sqrt((w * (u1 - p1)) ** 2 + ((1 - w) * (u0 - p0)) ** 2 + ((p1 - p0) * (high_w - w)) ** 2)
    found = drawn_tree["fields"]["pass"]["corrected"]
    assert (found["low"], found["high"]) == pytest.approx((low, high), abs=1e-9)
    assert drawn_tree["fields"]["pass"]["interval"] == [found["low"], found["high"]]


def test_sensitivity_and_specificity_are_weighted_by_the_design(drawn_tree: Any) -> None:
    passes = [64 * 11 / 12, 16 * 1 / 4]  # of what people would pass, by the judge's verdict
    fails = [64 * 1 / 12, 16 * 3 / 4]
    found = drawn_tree["fields"]["pass"]
    assert found["sensitivity"]["value"] == pytest.approx(passes[0] / sum(passes))
    assert found["specificity"]["value"] == pytest.approx(fails[1] / sum(fails))
    # unweighted they would be 11/12 and 3/4; the probabilities of both verdicts are not the same
    assert found["specificity"]["value"] < 0.75


def test_agreement_and_kappa_are_weighted_too(drawn_tree: Any) -> None:
    table = np.array([[64 * 11 / 12, 64 * 1 / 12], [16 * 1 / 4, 16 * 3 / 4]])
    found = drawn_tree["fields"]["pass"]
    assert found["agreement"]["value"] == pytest.approx(np.trace(table) / 80)
    assert found["kappa"]["value"] == pytest.approx(cohens_kappa(table).kappa)
    share = (table.sum(0)[0] + table.sum(1)[0]) / 160
    chance = 2 * share * (1 - share)
    assert found["ac1"]["value"] == pytest.approx((np.trace(table) / 80 - chance) / (1 - chance))


def test_the_design_stands_beside_the_numbers(drawn_tree: Any) -> None:
    assert (drawn_tree["n_labelled"], drawn_tree["n_drawn"]) == (16, 16)
    assert drawn_tree["design"]["strata"] == [
        {"stratum": "fact/fail", "N": 16, "n": 4, "probability": 0.25},
        {"stratum": "fact/pass", "N": 64, "n": 12, "probability": 12 / 64},
    ]
    assert drawn_tree["non_response"] == {"n": 0, "of": 16, "is_high": False, "ids": []}
    assert drawn_tree["by_type"]["fact"]["confusion"] == drawn_tree["fields"]["pass"]["confusion"]


def test_the_judge_sample_changes_no_share() -> None:
    rows = [row(f"c{i}", i < 64) for i in range(80)]
    labels = [passed(c, int(c[1:]) % 7 > 0) for c in design_of(rows, 16).drawn]
    whole, part = (tree_of(rows, labels, design_of(rows, 16, share))["fields"] for share in (1.0, 0.25))
    assert part == whole


def test_undecided_cases_are_a_stratum_of_their_own() -> None:
    rows = [row(f"c{i}", (True, False, None)[i % 3]) for i in range(30)]
    design = design_of(rows, 20)
    labels = [passed(c, int(c[1:]) % 3 == 0) for c in design.drawn]  # people fail all undecided ones
    found = tree_of(rows, labels, design)["fields"]["pass"]
    assert found["corrected"]["value"] == pytest.approx(10 / 30)  # all passes, no fail, none of the undecided
    assert (found["judge_rate"]["value"], found["judge_rate"]["n"]) == (0.5, 20)


# --- every case labelled ---------------------------------------------------------------------------------------------


def test_a_census_gives_peoples_own_rate_without_a_design() -> None:
    rows, labels = census("yyyyyyyynnnn", "yyyyyyynnnny")
    tree = tree_of(rows, labels)
    found = tree["fields"]["pass"]
    assert found["confusion"] == {"tp": 7, "fn": 1, "fp": 1, "tn": 3}
    this_set = found["corrected_this_set"]
    assert (this_set["value"], this_set["low"], this_set["high"]) == pytest.approx((8 / 12, 8 / 12, 8 / 12))
    judge = [row.judge_pass for row in rows]
    human = [label.values["passed"] for label in labels]
    assert found["kappa"]["value"] == pytest.approx(cohen_kappa_score(judge, human))
    assert found["agreement"]["value"] == pytest.approx(10 / 12)
    assert found["sensitivity"]["value"] == pytest.approx(7 / 8)
    assert found["specificity"]["value"] == pytest.approx(3 / 4)
    assert (tree["n_drawn"], tree["design"], tree["non_response"]) == (None, None, None)


# --- what is not said ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_design", [False, True], ids=["never drawn", "beside a drawn sample"])
def test_labels_picked_by_hand_correct_nothing(has_design: bool) -> None:
    rows = [row(f"c{i}", i < 64) for i in range(80)]
    design = design_of(rows, 16) if has_design else None
    picked = [f"c{i}" for i in range(50, 80)]
    found = tree_of(rows, [passed(c, int(c[1:]) % 2 == 0) for c in picked], design)
    assert found["rule"] == "R1"
    assert "unknown probability" in found["rule_reason"]
    field = found["fields"]["pass"]
    assert {name: field[name] for name in ("corrected", "corrected_this_set", "bias", "kappa", "human_rate")} == (
        dict.fromkeys(("corrected", "corrected_this_set", "bias", "kappa", "human_rate"))
    )
    assert "unknown probability" in field["bias_reason"]
    assert field["confusion"] == {"tp": 7, "fn": 8, "fp": 7, "tn": 8}  # the counts are shown
    assert field["judge_rate"]["value"] == 0.8


def test_few_labels_give_the_interval_alone_and_how_many_are_needed() -> None:
    rows = [row(f"c{i}", i < 64) for i in range(80)]
    design = design_of(rows, 16)
    field = tree_of(rows, [passed(c, True) for c in design.drawn[:7]], design)["fields"]["pass"]
    assert (field["rule"], field["corrected"], field["bias"]) == ("R2", None, None)
    assert 0 <= field["interval"][0] < field["interval"][1] <= 1
    assert field["labels_needed"]["0.10"] is not None
    assert field["human_rate"]["value"] == 1.0


def test_without_any_label_the_judge_stands_alone() -> None:
    rows = [row(f"c{i}", i < 64) for i in range(80)]
    tree = tree_of(rows, [], design_of(rows, 16))
    assert (tree["n_labelled"], tree["rule"]) == (0, "R2")
    assert tree["non_response"]["n"] == 16
    assert tree["non_response"]["is_high"]


def test_a_tenth_missing_is_not_yet_high() -> None:
    rows = [row(f"c{i}", i < 64) for i in range(80)]
    design = design_of(rows, 20)
    high = [
        tree_of(rows, [passed(c, True) for c in design.drawn[n_missing:]], design)["non_response"]["is_high"]
        for n_missing in (2, 3)
    ]
    assert high == [False, True]


def test_labels_of_cases_that_the_judge_did_not_see_are_counted_and_not_used() -> None:
    rows, labels = census("yyyyyyyynnnn", "yyyyyyynnnny")
    rows += [row(f"x{i}", None, drawn=False) for i in range(5)]
    tree = tree_of(rows, labels + [passed(f"x{i}", False) for i in range(3)])
    assert (tree["n_labelled"], tree["n_labels_of_other_cases"]) == (12, 3)
    assert tree["fields"]["pass"]["human_rate"]["n"] == 12
    assert tree["rule"] != "R1"


# --- what people say -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param([{"passed": Y}], Y, id="stated"),
        pytest.param([{"passed": None, "grounded": Y, "complete": Y}], None, id="unsure is not derived over"),
        pytest.param([{"grounded": Y, "complete": Y}], Y, id="derived"),
        pytest.param([{"grounded": N}], N, id="derived from one no"),
        pytest.param([{"grounded": Y}], None, id="not enough"),
        pytest.param([{"passed": N, "grounded": Y, "complete": Y}], N, id="what is stated goes before"),
        pytest.param([{"passed": Y}, {"grounded": Y, "complete": Y}], Y, id="stated and derived agree"),
        pytest.param([{"passed": Y}, {"grounded": N}], None, id="stated and derived differ"),
        pytest.param([{"grounded": Y}, {"complete": Y}], Y, id="two halves of a case"),
    ],
)
def test_a_pass_is_stated_or_derived_as_for_the_judge(said: list[dict[str, Any]], expected: bool | None) -> None:
    labels = [Label("c0", f"a{i}", values) for i, values in enumerate(said)]
    assert human_pass(row("c0", True), labels, derived) is expected


@pytest.mark.parametrize(
    ("said", "third", "expected"),
    [
        pytest.param([{"passed": Y}, {"passed": N}], {"passed": Y}, Y, id="says so"),
        pytest.param([{"passed": Y}, {"passed": N}], {"passed": None}, None, id="is unsure"),
        pytest.param(
            [{"grounded": Y, "complete": Y}, {"grounded": N, "complete": Y}], {"grounded": N}, N, id="implies a fail"
        ),
        pytest.param(
            [{"grounded": Y, "complete": Y}, {"grounded": N, "complete": Y}], {"grounded": Y}, Y, id="settles one field"
        ),
        pytest.param(
            [{"passed": Y, "grounded": Y}, {"passed": N, "grounded": N}],
            {"grounded": Y},
            None,
            id="leaves the pass open",
        ),
    ],
)
def test_the_third_reader_settles_what_it_answers(
    said: list[dict[str, Any]], third: dict[str, Any], expected: bool | None
) -> None:
    labels = [Label("c0", f"a{i}", values) for i, values in enumerate(said)] + [Label("c0", ADJUDICATOR, third)]
    assert human_pass(row("c0", True), labels, derived) is expected


def test_two_annotators_are_compared_before_the_third_and_the_judge_after() -> None:
    rows, labels = census("yyyyyyyyyynnnnnn", "yyyyyyyyynnnnnnn")
    labels += [passed(f"c{i}", i < 7, "wang") for i in range(16)]  # differs on c7 and c8
    labels.append(passed("c7", True, ADJUDICATOR))
    tree = tree_of(rows, labels)
    people = tree["annotators"]
    assert (people["n"], people["names"], people["pairs"], people["field"]) == (2, ["li", "wang"], 16, "passed")
    assert people["agreement"]["value"] == 14 / 16
    ones, others = [i < 9 for i in range(16)], [i < 7 for i in range(16)]
    assert people["kappa"]["value"] == pytest.approx(cohen_kappa_score(ones, others))
    assert tree["disagreements"] == {"passed": {"n": 2, "settled": 1, "by_type": {"fact": 2}}}
    field = tree["fields"]["pass"]
    assert (field["n_open"], sum(field["confusion"].values())) == (1, 15)  # c8 is open
    assert field["confusion"] == {"tp": 8, "fn": 0, "fp": 1, "tn": 6}


def test_annotators_who_leave_the_pass_out_are_compared_by_what_follows_from_their_fields() -> None:
    rows = [row(f"c{i}", True, grounded=True, complete=True) for i in range(10)]
    labels = [Label(f"c{i}", "li", {"grounded": True, "complete": True}) for i in range(10)]
    labels += [Label(f"c{i}", "wang", {"grounded": i < 8, "complete": True}) for i in range(10)]
    tree = tree_of(rows, labels)
    assert (tree["annotators"]["pairs"], tree["annotators"]["agreement"]["value"]) == (10, 0.8)
    assert tree["fields"]["grounded"]["people"]["agreement"]["value"] == 0.8
    assert tree["fields"]["complete"]["people"]["agreement"]["value"] == 1.0
    assert {name: counts["n"] for name, counts in tree["disagreements"].items()} == {"grounded": 2, "passed": 2}


def test_each_field_of_the_judge_is_held_against_its_own_label() -> None:
    rows = [
        row(f"c{i}", True, grounded=i < 9, complete=True, other_fields=json.dumps({"polite": i % 2 == 0, "tone": "x"}))
        for i in range(12)
    ]
    labels = [passed(f"c{i}", True, grounded=i < 8, complete=i > 0, polite=i % 2 == 0) for i in range(12)]
    fields = tree_of(rows, labels)["fields"]
    assert list(fields) == ["pass", "grounded", "complete", "polite"]
    assert fields["grounded"]["confusion"] == {"tp": 8, "fn": 0, "fp": 1, "tn": 3}
    assert fields["complete"]["confusion"] == {"tp": 11, "fn": 0, "fp": 1, "tn": 0}
    assert fields["polite"]["confusion"] == {"tp": 6, "fn": 0, "fp": 0, "tn": 6}


def test_types_have_their_own_counts_and_a_rate_where_they_allow() -> None:
    rows = [row(f"c{i}", i % 4 > 0, type=("fact", None)[i >= 20]) for i in range(24)]
    tree = tree_of(rows, [passed(f"c{i}", i % 4 > 1) for i in range(24)])
    assert list(tree["by_type"]) == ["fact", "untyped"]
    fact, untyped = tree["by_type"].values()
    assert (fact["n"], fact["n_labelled"], fact["confusion"]) == (20, 20, {"tp": 10, "fn": 0, "fp": 5, "tn": 5})
    assert fact["corrected"]["value"] == 0.5
    assert (untyped["n"], untyped["rule"], untyped["corrected"]) == (4, "R2", None)
    assert "4 labels; 8 are the fewest" in untyped["corrected_reason"]


# --- what needs no human ---------------------------------------------------------------------------------------------


def test_expectation_and_rules_are_compared_without_a_label() -> None:
    rows = [
        row("c0", True, should_abstain=False, expect_refusal=False, rule_correct=True),
        row("c1", True, should_abstain=True, expect_refusal=False, rule_correct=False),
        row("c2", False, should_abstain=True, expect_refusal=True, rule_correct=True),
        row("c3", False, should_abstain=None, expect_refusal=True, rule_correct=None),
        row("c4", None, should_abstain=True, expect_refusal=None, rule_correct=True),
    ]
    tree = tree_of(rows, [])
    assert (tree["expectation"]["n"], tree["expectation"]["agreement"]["value"]) == (3, pytest.approx(2 / 3))
    assert (tree["rules"]["n"], tree["rules"]["agreement"]["value"]) == (3, pytest.approx(1 / 3))
    assert (tree["rules"]["judge_passes_what_rules_fail"], tree["rules"]["judge_fails_what_rules_pass"]) == (1, 1)


def test_nothing_to_compare_is_null_with_a_reason() -> None:
    tree = tree_of([row("c0", None)], [])
    for name in ("expectation", "rules"):
        assert (tree[name]["n"], tree[name]["agreement"]) == (0, None)
        assert tree[name]["agreement_reason"]
    assert tree["causes"] is None


def test_causes_are_compared_where_people_name_one() -> None:
    causes = ("invented", "missing_point", "invented", None)
    rows = [row(f"c{i}", False, cause=cause) for i, cause in enumerate(causes)]
    said = ("invented", "recall_miss", "recall_miss", "leak")
    tree = tree_of(rows, [passed(f"c{i}", False, cause=cause) for i, cause in enumerate(said)])
    assert (tree["causes"]["n"], tree["causes"]["accuracy"]["value"]) == (3, pytest.approx(1 / 3))
    assert tree["causes"]["taken_for"] == [
        {"labelled": "recall_miss", "found": "invented", "n": 1},
        {"labelled": "recall_miss", "found": "missing_point", "n": 1},
    ]


def test_a_judge_that_passes_the_longer_at_the_same_label_is_seen() -> None:
    rows, labels = census("yyyyynnnnn", "yyyyyyyyyy")
    lengths = {f"c{i}": 500 if i < 5 else 50 for i in range(10)}
    found = tree_of(rows, labels, lengths=lengths)["verbosity"]
    assert found["statistic"] > 0
    assert found["p_value"] == pytest.approx(2 / 252)  # of 10 over 5 arrangements, the two extreme ones
    assert tree_of(rows, labels)["verbosity"]["p_value"] is None


def test_versions_of_the_instructions_are_named() -> None:
    rows, labels = census("yyyy", "yyyy")
    labels = [Label(x.case_id, x.annotator, x.values, instructions_version=f"v{i % 2}") for i, x in enumerate(labels)]
    assert tree_of(rows, labels)["instructions_versions"] == ["v0", "v1"]


# --- scores ----------------------------------------------------------------------------------------------------------


def scored(n: int, seed: int = 1) -> tuple[list[CaseRow], list[Label]]:
    rng = random.Random(seed)
    rows = [row(f"c{i}", None, score=float(rng.randint(1, 5))) for i in range(n)]
    labels = [
        Label(r.id, "li", {"score": min(5, max(1, round(r.score or 0) + rng.choice((-1, 0, 0, 1))))}) for r in rows
    ]
    return rows, labels


def test_scores_are_compared_by_quadratic_kappa_and_mean_difference() -> None:
    rows, labels = scored(40)
    tree = tree_of(rows, labels, mode="scale")
    judge = [int(r.score or 0) for r in rows]
    human = [int(str(label.values["score"])) for label in labels]
    found = tree["fields"]["score"]
    assert list(tree["fields"]) == ["score"]  # without a pass rule there is no pass to compare
    assert "by_type" not in tree
    assert found["kappa"]["value"] == pytest.approx(
        cohen_kappa_score(judge, human, weights="quadratic", labels=[1, 2, 3, 4, 5])
    )
    assert found["bias"]["value"] == pytest.approx(np.mean(np.subtract(judge, human)))
    assert found["agreement"]["value"] == pytest.approx(np.mean(np.equal(judge, human)))
    assert (found["n"], tree["annotators"]["field"]) == (40, "score")


def test_scores_between_levels_are_scores() -> None:
    rows, labels = scored(12)
    halves = [row(r.id, None, score=min(5.0, (r.score or 0) + (0.5, 0.25, 0)[i % 3])) for i, r in enumerate(rows)]
    found = tree_of(halves, labels, mode="scale")["fields"]["score"]
    assert found["n"] == 12
    assert -1 <= found["kappa"]["value"] <= 1


def test_scores_drawn_unequally_are_weighted() -> None:
    rows = [row(f"c{i}", None, score=5.0 if i < 90 else 1.0) for i in range(100)]
    design = design_of(rows, 20)
    assert len({design.probabilities[r.id] for r in rows}) == 2
    labels = [Label(c, "li", {"score": 5}) for c in design.drawn]  # right on each 5, wrong on each 1
    found = tree_of(rows, labels, design, mode="scale")["fields"]["score"]
    assert found["agreement"]["value"] == pytest.approx(0.9)
    assert found["bias"]["value"] == pytest.approx(-0.4)


def test_scores_picked_by_hand_say_nothing_of_the_others() -> None:
    rows, labels = scored(40)
    found = tree_of(rows, labels[:20], mode="scale")["fields"]["score"]
    assert (found["bias"], found["agreement"], found["kappa"], found["n"]) == (None, None, None, 20)


def test_two_who_score_are_compared_by_quadratic_kappa() -> None:
    rows, labels = scored(12)
    others = [Label(x.case_id, "wang", {"score": max(1, int(str(x.values["score"])) - 1)}) for x in labels]
    people = tree_of(rows, labels + others, mode="scale")["annotators"]
    one, other = ([int(str(x.values["score"])) for x in said] for said in (labels, others))
    expected = cohen_kappa_score(one, other, weights="quadratic", labels=[1, 2, 3, 4, 5])
    assert (people["field"], people["kappa"]["value"]) == ("score", pytest.approx(expected))


def test_a_scale_with_a_pass_rule_has_both() -> None:
    rows = [row(f"c{i}", i < 6, score=5.0 if i < 6 else 2.0) for i in range(12)]
    labels = [Label(f"c{i}", "li", {"score": 5 if i < 7 else 1}) for i in range(12)]

    def at_four(case: CaseRow, values: Mapping[str, Value | None]) -> bool | None:
        score = values.get("score")
        return None if score is None else float(score) >= 4

    tree = tree_of(rows, labels, mode="scale", derived_pass=at_four)
    assert list(tree["fields"]) == ["pass", "score"]
    assert tree["fields"]["pass"]["confusion"] == {"tp": 6, "fn": 1, "fp": 0, "tn": 5}
