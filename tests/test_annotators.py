"""People against each other, by hand and against scikit-learn and krippendorff."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from rag_judge.annotators import annotator_agreement, annotator_names, disagreements
from rag_judge.gold import ADJUDICATOR, Label


def labels_of(field: str, **said: list[Any]) -> list[Label]:
    """A case a place in the lists, an annotator a list; a dash is no answer."""
    return [
        Label(f"c{i}", name, {field: value})
        for name, values in said.items()
        for i, value in enumerate(values)
        if value != "-"
    ]


def test_two_annotators_agree_as_counted_by_hand() -> None:
    # 6 both yes, 1 and 1 apart, 2 both no: agreement 8/10; by chance 0.7 * 0.7 + 0.3 * 0.3 = 0.58
    one, other = [True] * 7 + [False] * 3, [True] * 6 + [False] + [True] + [False] * 2
    found = annotator_agreement(labels_of("passed", li=one, wang=other), "passed", 0)
    assert (found["pairs"], found["cases"], found["agreement"]["value"]) == (10, 10, 0.8)
    assert found["kappa"]["value"] == pytest.approx((0.8 - 0.58) / (1 - 0.58))
    assert found["kappa"]["value"] == pytest.approx(cohen_kappa_score(one, other))
    # AC1: the mean share of yes is 0.7, so by chance 2 * 0.7 * 0.3
    assert found["ac1"]["value"] == pytest.approx((0.8 - 0.42) / (1 - 0.42))
    assert found["agreement"]["method"] == "wilson"


def test_three_annotators_are_no_more_cases_than_two() -> None:
    rng = random.Random(3)
    said = {name: [rng.random() < 0.7 if rng.random() < 0.9 else "-" for _ in range(40)] for name in ("a", "b", "c")}
    found = annotator_agreement(labels_of("passed", **said), "passed", 0)
    pairs, weights = [], []
    for values in zip(*said.values(), strict=True):
        met = list(combinations([value for value in values if value != "-"], 2))
        pairs += met
        weights += [1 / len(met) for _ in met]
    ones, others = np.array(pairs, bool).T
    n_cases = round(sum(weights))
    assert (found["pairs"], found["cases"], found["agreement"]["n"]) == (len(pairs), n_cases, n_cases)
    assert found["agreement"]["value"] == pytest.approx(np.average(ones == others, weights=weights))
    assert found["kappa"]["value"] == pytest.approx(cohen_kappa_score(ones, others, sample_weight=weights))
    table = [[np.nan if value == "-" else float(value) for value in values] for values in said.values()]
    assert found["alpha"]["value"] == pytest.approx(krippendorff.alpha(table, level_of_measurement="nominal"))


def test_thirds_of_cases_add_up_to_whole_ones() -> None:
    found = annotator_agreement(labels_of("passed", a=[True] * 7, b=[True] * 7, c=[True] * 7), "passed", 0)
    assert (found["agreement"]["value"], found["agreement"]["high"], found["ac1"]["value"]) == (1.0, 1.0, 1.0)
    assert found["kappa"] is None


def test_scores_have_a_quadratic_kappa_over_all_levels_and_an_ordinal_alpha() -> None:
    rng = random.Random(5)
    one = [rng.randint(1, 5) for _ in range(30)]
    other = [min(5, max(1, score + rng.choice((-1, 0, 0, 1)))) for score in one]
    found = annotator_agreement(labels_of("score", li=one, wang=other), "score", 0, range(1, 6))
    assert found["kappa"]["value"] == pytest.approx(
        cohen_kappa_score(one, other, weights="quadratic", labels=[1, 2, 3, 4, 5])
    )
    expected = krippendorff.alpha([one, other], level_of_measurement="ordinal")
    assert found["alpha"]["value"] == pytest.approx(expected)
    assert found["ac1"] is None


def test_winners_have_a_plain_kappa() -> None:
    one, other = ["A", "B", "tie", "A", "B", "A"], ["A", "B", "A", "A", "A", "tie"]
    found = annotator_agreement(labels_of("winner", li=one, wang=other), "winner", 0)
    assert found["agreement"]["value"] == 0.5
    assert found["kappa"]["value"] == pytest.approx(cohen_kappa_score(one, other))


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param([], id="none"),
        pytest.param(labels_of("passed", li=[True, False]), id="one annotator"),
        pytest.param(labels_of("passed", li=[True, "-"], wang=["-", True]), id="no case in common"),
        pytest.param(labels_of("passed", li=[True], wang=[None]), id="one is unsure"),
        pytest.param(labels_of("passed", li=[True], adjudicator=[True]), id="the third reader is no second"),
    ],
)
def test_without_a_pair_there_is_no_agreement_and_a_reason(labels: list[Label]) -> None:
    found = annotator_agreement(labels, "passed", 0)
    assert (found["pairs"], found["agreement"], found["kappa"], found["ac1"]) == (0, None, None, None)
    assert found["agreement_reason"] == found["kappa_reason"] == "no case has the answers of two annotators"
    assert found["alpha"] is None


def test_disagreements_are_counted_by_field_and_type_and_by_what_is_settled() -> None:
    labels = [
        Label("c0", "li", {"grounded": True, "passed": True, "cause": "leak"}),
        Label("c0", "wang", {"grounded": False, "passed": True, "cause": "invented"}),
        Label("c1", "li", {"grounded": True, "passed": True}),
        Label("c1", "wang", {"grounded": False, "passed": False}),
        Label("c2", "li", {"grounded": None}),
        Label("c2", "wang", {"grounded": True}),
        Label("c1", ADJUDICATOR, {"grounded": True}),  # settles one field of the two
    ]
    assert disagreements(labels, {"c0": "fact", "c1": "table"}) == {
        "grounded": {"n": 3, "settled": 1, "by_type": {"fact": 1, "table": 1, "untyped": 1}},
        "passed": {"n": 1, "settled": 0, "by_type": {"table": 1}},
    }
    assert annotator_names(labels) == ["li", "wang"]
