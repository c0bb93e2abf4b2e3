"""Agreement of two raters: hand-worked values, and scikit-learn, statsmodels and krippendorff as oracles."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import cohen_kappa_score, confusion_matrix
from statsmodels.stats.inter_rater import cohens_kappa

from rag_judge.agreement import (
    AlphaLevel,
    Confusion,
    Weights,
    ac1_standard_error,
    cohen_kappa,
    confusion,
    gwet_ac1,
    kappa_standard_error,
    krippendorff_alpha,
    negative_predictive_value,
    positive_predictive_value,
    rating_table,
    raw_agreement,
    sensitivity,
    specificity,
    weighted_confusion,
    weighted_kappa,
)
from rag_judge.records import Estimate, NoEstimate

LEVELS = (1, 2, 3, 4, 5)
ratings = st.lists(st.tuples(st.sampled_from(LEVELS), st.sampled_from(LEVELS)), min_size=1, max_size=40)


def estimate(value: Estimate | NoEstimate) -> Estimate:
    assert isinstance(value, Estimate)
    return value


def counts(tp: int, fn: int, fp: int, tn: int) -> Confusion:
    return Confusion(tp, fn, fp, tn, tp + fn + fp + tn)


def test_the_counts_leave_out_cases_that_either_did_not_grade() -> None:
    judge = [True, True, False, False, None, True, False]
    human = [True, False, True, False, True, None, False]
    assert confusion(judge, human) == Confusion(tp=1, fn=1, fp=1, tn=2, n=5)
    with pytest.raises(ValueError, match="argument 2"):
        confusion([True], [])


def test_the_counts_agree_with_scikit_learn() -> None:
    rng = random.Random(2)
    judge, human = ([rng.random() < share for _ in range(300)] for share in (0.8, 0.6))
    tn, fp, fn, tp = confusion_matrix(human, judge, labels=[False, True]).ravel().tolist()
    assert confusion(judge, human) == Confusion(tp, fn, fp, tn, 300)


def test_each_rate_stands_on_its_own_denominator() -> None:
    cells = counts(tp=9, fn=1, fp=2, tn=4)
    found = [
        estimate(rate(cells))
        for rate in (sensitivity, specificity, positive_predictive_value, negative_predictive_value, raw_agreement)
    ]
    assert [(one.value, one.n) for one in found] == [(0.9, 10), (4 / 6, 6), (9 / 11, 11), (0.8, 5), (13 / 16, 16)]


@pytest.mark.parametrize(
    ("rate", "cells", "reason"),
    [
        (sensitivity, counts(0, 0, 2, 3), "no labelled case passes by human judgement"),
        (specificity, counts(3, 1, 0, 0), "no labelled case fails by human judgement"),
        (positive_predictive_value, counts(0, 1, 0, 3), "no case that the judge passed is labelled"),
        (negative_predictive_value, counts(2, 0, 1, 0), "no case that the judge failed is labelled"),
        (raw_agreement, counts(0, 0, 0, 0), "no case has both verdicts"),
    ],
)
def test_a_rate_over_nothing_is_refused_with_its_reason(rate: object, cells: Confusion, reason: str) -> None:
    assert callable(rate)
    assert rate(cells) == NoEstimate(reason)


def test_kappa_and_ac1_agree_with_hand_worked_values() -> None:
    # 40, 10, 5, 45 of 100: both agree on 0.85. Margins 0.5 and 0.45: kappa's chance 0.5 * 0.45 + 0.5 * 0.55 = 0.5,
    # kappa 0.35/0.5 = 0.7. AC1: mean pass 0.475, chance 2 * 0.475 * 0.525 = 0.49875, 0.35125/0.50125 = 0.700748
    cells = counts(tp=40, fn=10, fp=5, tn=45)
    assert estimate(cohen_kappa(cells, 0)).value == pytest.approx(0.7, abs=1e-12)
    assert estimate(gwet_ac1(cells, 0)).value == pytest.approx(0.35125 / 0.50125, abs=1e-12)


def test_kappa_of_one_constant_rater_is_0_while_ac1_is_not() -> None:
    # 7 of 8 agree. Kappa: chance 1 * 7/8 + 0 = 7/8, 0. AC1: mean 15/16, chance 2 * 15/16 * 1/16 = 15/128, 97/113
    cells = counts(tp=7, fn=0, fp=1, tn=0)
    assert estimate(cohen_kappa(cells, 0)).value == 0
    assert estimate(gwet_ac1(cells, 0)).value == pytest.approx(97 / 113, abs=1e-12)


@pytest.mark.parametrize("cells", [counts(10, 0, 0, 0), counts(0, 0, 0, 1)])
def test_two_raters_that_never_vary_have_no_kappa_and_a_perfect_ac1(cells: Confusion) -> None:
    assert isinstance(cohen_kappa(cells, 0), NoEstimate)
    found = estimate(gwet_ac1(cells, 0))
    assert (found.value, found.high) == (1, 1)
    assert found.low is not None
    assert found.low < 0.9


def test_no_label_gives_no_coefficient() -> None:
    nothing = counts(0, 0, 0, 0)
    assert cohen_kappa(nothing, 0) == gwet_ac1(nothing, 0) == NoEstimate("no case has both verdicts")
    assert weighted_kappa([[0, 0], [0, 0]], 0) == NoEstimate("no case has both ratings")
    assert kappa_standard_error([[0, 0], [0, 0]]) is None
    assert ac1_standard_error([[1, 0], [0, 0]]) is None


def test_the_interval_is_that_of_dirichlet_tables_made_another_way() -> None:
    cells = counts(tp=10, fn=2, fp=1, tn=3)
    rng = random.Random(4)
    kappas = []
    for _ in range(40_000):
        # Gamma variates over their sum are Dirichlet.
        tp, fn, fp, tn = (rng.gammavariate(n + 0.5, 1) for n in (10, 2, 1, 3))
        total = tp + fn + fp + tn
        chance = ((tp + fn) * (tp + fp) + (tn + fp) * (tn + fn)) / total**2
        kappas.append(((tp + tn) / total - chance) / (1 - chance))
    found = estimate(cohen_kappa(cells, 0))
    # Quantiles of 20,000 and 40,000 draws: at a density near 0.2 out there the standard error is 0.006.
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(kappas, [0.025, 0.975])), abs=0.02)
    assert cohen_kappa(cells, 0) == found


def test_equal_probabilities_leave_the_counts_as_they_are() -> None:
    judge, human = [True, False, True, None, False], [True, False, False, True, None]
    found = weighted_confusion(judge, human, [0.15] * 5)
    assert found == Confusion(1, 0, 1, 1, 3)


def test_weighted_counts_agree_with_a_hand_worked_value() -> None:
    # weights 10, 10, 2: sum 22, of squares 204, effective n 22²/204 = 2.372549; scaled by 22/204
    found = weighted_confusion([True, True, False, True], [True, False, False, None], [0.1, 0.1, 0.5, None])
    assert (found.tp, found.fp, found.tn, found.fn) == pytest.approx((220 / 204, 220 / 204, 44 / 204, 0))
    assert found.total == pytest.approx(484 / 204)
    assert found.n == 3
    assert estimate(raw_agreement(found)).value == pytest.approx(12 / 22)


@pytest.mark.parametrize("probability", [None, 0.0, -0.5])
def test_a_label_of_unknown_probability_cannot_be_weighted(probability: float | None) -> None:
    with pytest.raises(ValueError, match="entered the review with probability"):
        weighted_confusion([True], [True], [probability])


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_kappa_agrees_with_scikit_learn_wherever_it_exists(pairs: list[tuple[bool, bool]]) -> None:
    judge, human = zip(*pairs, strict=True)
    found = cohen_kappa(confusion(judge, human), 0)
    if len({*judge, *human}) == 1:
        assert isinstance(found, NoEstimate)
    else:
        theirs = cohen_kappa_score(judge, human, labels=[False, True])
        kappa = estimate(found)
        assert kappa.value == pytest.approx(theirs, abs=1e-12)
        assert kappa.low is not None
        assert kappa.high is not None
        assert kappa.low <= kappa.value <= kappa.high


def test_weighted_kappa_agrees_with_a_hand_worked_value() -> None:
    # Pairs (1,1) (1,2) (2,2) (3,1), quadratic: mean distance (0 + 1 + 0 + 4)/4 = 5/4. Firsts 2/4, 1/4, 1/4; seconds
    # 2/4, 2/4, 0: expected 2/4 * (0 + 2/4) + 1/4 * (2/4 + 0) + 1/4 * (8/4 + 2/4) = 1/4 + 1/8 + 5/8 = 1: 1 - 5/4
    table = rating_table([1, 1, 2, 3, None], [1, 2, 2, 1, 3], [1, 2, 3])
    assert table == ((1, 1, 0), (0, 1, 0), (1, 0, 0))
    assert estimate(weighted_kappa(table, 0)).value == pytest.approx(-0.25, abs=1e-12)


@given(ratings, st.sampled_from(["quadratic", "linear", "none"]))
def test_weighted_kappa_agrees_with_scikit_learn_with_every_level_kept(
    pairs: list[tuple[int, int]], weights: Weights
) -> None:
    first, second = zip(*pairs, strict=True)
    found = weighted_kappa(rating_table(first, second, LEVELS), 0, weights)
    if len({*first, *second}) == 1:
        assert isinstance(found, NoEstimate)
        return
    known = None if weights == "none" else weights
    assert estimate(found).value == pytest.approx(
        cohen_kappa_score(first, second, labels=list(LEVELS), weights=known), abs=1e-9
    )


@pytest.mark.parametrize(("weights", "theirs"), [("none", None), ("linear", "linear"), ("quadratic", "quadratic")])
def test_the_standard_error_of_kappa_agrees_with_statsmodels(weights: Weights, theirs: str | None) -> None:
    rng = random.Random(8)
    first = [rng.choice(LEVELS) for _ in range(60)]
    second = [rating if rng.random() < 0.6 else rng.choice(LEVELS) for rating in first]
    table = rating_table(first, second, LEVELS)
    assert kappa_standard_error(table, weights) == pytest.approx(cohens_kappa(table, wt=theirs).std_kappa, abs=1e-12)


@pytest.mark.parametrize("table", [[[5, 0], [0, 0]], [[5, 0], [0, 3]]])
def test_a_standard_error_of_nothing_or_0_is_none(table: list[list[int]]) -> None:
    assert kappa_standard_error(table) is None
    assert ac1_standard_error(table) is None


def test_the_standard_error_of_ac1_is_that_of_the_delta_method() -> None:
    table = np.array([[12, 3, 0], [2, 7, 1], [1, 0, 4]], float)
    n = table.sum()

    def ac1(shares: NDArray[np.float64]) -> float:
        mean = (shares.sum(0) + shares.sum(1)) / 2
        chance = float((mean * (1 - mean)).sum()) / 2
        return (float(np.trace(shares)) - chance) / (1 - chance)

    shares, step = table / n, 1e-6
    slopes = np.zeros_like(shares)
    for place in np.ndindex(3, 3):
        moved = np.zeros_like(shares)
        moved[place] = step
        # Derivatives along shares that keep their sum: the mean slope is taken off below.
        slopes[place] = (ac1(shares + moved) - ac1(shares - moved)) / (2 * step)
    variance = float((shares * slopes**2).sum() - (shares * slopes).sum() ** 2) / (n - 1)
    found = ac1_standard_error(table.astype(int).tolist())
    assert found == pytest.approx(math.sqrt(variance), rel=1e-5)


def test_scores_get_an_interval_from_thirty_cases_on() -> None:
    rng = random.Random(6)
    first = [rng.choice(LEVELS) for _ in range(30)]
    second = [min(5, max(1, rating + rng.choice([-1, 0, 0, 1]))) for rating in first]
    found = estimate(weighted_kappa(rating_table(first, second, LEVELS), 1))
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high
    few = estimate(weighted_kappa(rating_table(first[:29], second[:29], LEVELS), 1))
    assert (few.low, few.high) == (None, None)
    same = estimate(weighted_kappa(rating_table(first, first, LEVELS), 1))
    assert (same.value, same.low, same.high) == (1, None, None)


def test_a_rating_outside_the_levels_is_refused() -> None:
    with pytest.raises(ValueError, match="the rating 6 is none of"):
        rating_table([6], [1], LEVELS)


def test_alpha_agrees_with_a_hand_worked_value() -> None:
    # Cases (1,1) (1,0) (0,0), and one with a single rating, left out. Six ratings, three of each. Observed: the pair
    # (1,0) gives 2 unequal of 6; expected 2 * 3 * 3 / (6 * 5) = 0.6: alpha = 1 - (2/6)/0.6 = 4/9
    found = estimate(krippendorff_alpha([[1, 1, 0, 1], [1, 0, 0, None]], 0))
    assert found.value == pytest.approx(4 / 9, abs=1e-12)
    assert (found.n, found.low) == (3, None)


@pytest.mark.parametrize(
    "raters", [[[1, 1, 1], [1, 1, None]], [[1, None], [None, 0]], [[], []]], ids=["constant", "never both", "no case"]
)
def test_alpha_needs_two_different_ratings(raters: list[list[float | None]]) -> None:
    assert isinstance(krippendorff_alpha(raters, 0), NoEstimate)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alpha_agrees_with_the_krippendorff_package_with_gaps(level: AlphaLevel) -> None:
    krippendorff = pytest.importorskip("krippendorff")
    rng = random.Random(9)
    for n_raters in (2, 3, 5):
        base = [rng.choice(LEVELS) for _ in range(25)]
        raters: list[list[float | None]] = [
            [None if rng.random() < 0.3 else rng.choice([at, at, rng.choice(LEVELS)]) for at in base]
            for _ in range(n_raters)
        ]
        with_nan = [[math.nan if rating is None else rating for rating in row] for row in raters]
        theirs = krippendorff.alpha(with_nan, level_of_measurement=level)
        assert estimate(krippendorff_alpha(raters, 0, level)).value == pytest.approx(theirs, abs=1e-9)


def test_alpha_does_not_depend_on_the_order_of_cases_or_raters() -> None:
    rng = random.Random(5)
    raters: list[list[float | None]] = [[rng.choice([1, 2, 3, None]) for _ in range(40)] for _ in range(3)]
    found = estimate(krippendorff_alpha(raters, 7, "ordinal"))
    assert found.low is not None
    assert found.low < found.value < (found.high or 0)
    shuffled = list(zip(*raters, strict=True))
    rng.shuffle(shuffled)
    assert krippendorff_alpha([list(row) for row in zip(*shuffled, strict=True)][::-1], 7, "ordinal") == found
