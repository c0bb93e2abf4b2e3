"""Two runs on the same questions: hand-worked values; statsmodels and scipy as oracles."""

import random
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep

from rag_judge.estimates import rate
from rag_judge.paired import (
    Changes,
    changes,
    holm,
    independent_difference,
    mcnemar_p,
    mean_difference,
    sign_flip_p,
)
from rag_judge.records import Estimate, NoEstimate


def estimate(value: Estimate | NoEstimate) -> Estimate:
    assert isinstance(value, Estimate)
    return value


def test_only_questions_with_a_verdict_in_both_runs_are_compared() -> None:
    a = [True, True, False, False, None, True, True]
    b = [True, False, True, True, True, None, True]
    found = changes(a, b)
    assert found == Changes(n=5, gained=2, lost=1)
    assert found.discordant_share == 3 / 5
    assert estimate(found.difference).value == pytest.approx(1 / 5)
    nothing = changes([None], [True])
    assert nothing.discordant_share is None
    assert nothing.difference == NoEstimate("no question has a verdict in both runs")
    with pytest.raises(ValueError, match="argument 2"):
        changes([True], [])


def test_the_difference_has_width_without_any_change_and_agrees_with_a_hand_worked_value() -> None:
    # 6 gained, 1 lost of 40: 7/42 and 2/42, difference 5/42; variance (9/42 - 25/1764)/42, root 0.0690261
    found = estimate(Changes(40, 6, 1).difference)
    assert (found.value, found.low, found.high) == pytest.approx((0.125, -0.0162411, 0.2543363), abs=1e-6)
    none = estimate(Changes(40, 0, 0).difference)
    assert (none.low or 0) < 0 < (none.high or 0)


@pytest.mark.parametrize(
    ("gained", "lost", "exact", "mid"),
    [
        # Of 5 changes 2^5 = 32 patterns. One lost: (1 + 5) * 2; none: 1 * 2; less the chance of the very number.
        pytest.param(4, 1, Fraction(12, 32), Fraction(7, 32), id="4 against 1"),
        pytest.param(0, 5, Fraction(2, 32), Fraction(1, 32), id="all one way"),
        pytest.param(3, 3, Fraction(1), 1 - Fraction(20, 64), id="even"),
        pytest.param(0, 0, Fraction(1), Fraction(1), id="no change"),
        pytest.param(1, 0, Fraction(1), Fraction(1, 2), id="one change"),
    ],
)
def test_mcnemars_test_agrees_with_hand_worked_values(gained: int, lost: int, exact: Fraction, mid: Fraction) -> None:
    assert mcnemar_p(gained, lost, is_exact=True) == pytest.approx(float(exact), abs=1e-12)
    assert mcnemar_p(gained, lost) == pytest.approx(float(mid), abs=1e-12)
    assert mcnemar_p(lost, gained) == pytest.approx(float(mid), abs=1e-12)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemars_test_agrees_with_statsmodels_and_exact_arithmetic(gained: int, lost: int) -> None:
    n, least = gained + lost, min(gained, lost)
    theirs = float(mcnemar([[5, lost], [gained, 5]], exact=True).pvalue)
    assert mcnemar_p(gained, lost, is_exact=True) == pytest.approx(theirs, abs=1e-12)
    if gained != lost:
        tail = Fraction(2 * sum(comb(n, k) for k in range(least + 1)) - comb(n, least), 2**n)
        assert mcnemar_p(gained, lost) == pytest.approx(float(tail), abs=1e-12)


def test_mcnemars_test_holds_for_a_hundred_thousand_changes() -> None:
    assert mcnemar_p(50_400, 49_600) == pytest.approx(float(2 * stats.norm.sf(800 / 100_000**0.5)), rel=1e-3)


def test_sign_flips_agree_with_a_hand_worked_value() -> None:
    # 1, 1/2, -1/2, 0: sums of the 8 patterns are 2, 1, 1, 0 and their opposites; observed 1: six reach it.
    assert sign_flip_p([1, 0.5, -0.5, 0], 0) == 6 / 8
    assert sign_flip_p([0, 0, 0], 0) == 1
    assert sign_flip_p([], 0) == 1


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9))
def test_sign_flips_count_ties_though_thirds_are_not_exact(thirds: list[int]) -> None:
    patterns = [
        abs(sum(s * d for s, d in zip(signs, thirds, strict=True))) for signs in product((1, -1), repeat=len(thirds))
    ]
    exact = sum(value >= abs(sum(thirds)) for value in patterns) / len(patterns)
    assert sign_flip_p([d / 3 for d in thirds], 0) == pytest.approx(exact, abs=1e-12)


def test_many_sign_flips_are_drawn_as_scipy_draws_them_and_do_not_depend_on_the_order() -> None:
    rng = random.Random(2)
    differences = [rng.choice([-1, -0.5, 0, 0, 0.5, 1, 1]) for _ in range(60)]
    found = sign_flip_p(differences, 5)
    theirs = stats.permutation_test(
        (np.array(differences),),
        np.mean,
        permutation_type="samples",
        n_resamples=20_000,
        rng=np.random.default_rng(1),
    )
    # Four standard errors of 10,000 and 20,000 draws near 0.5 are 0.025.
    assert found == pytest.approx(float(theirs.pvalue), abs=0.025)
    assert sign_flip_p(differences[::-1], 5) == found


def test_whole_clusters_flip() -> None:
    # Ten clusters of two equal differences are ten differences; fewer claim nothing.
    singles = [1, 1, 1, 1, 1, 1, 1, 1, -1, -1]
    twice = [float(d) for d in singles for _ in range(2)]
    clusters = [i // 2 for i in range(20)]
    assert sign_flip_p(twice, 0, clusters) == sign_flip_p(singles, 0) == pytest.approx(112 / 1024)
    assert sign_flip_p(twice[:18], 0, clusters[:18]) == NoEstimate("9 clusters; 10 are the fewest for a test")


def test_below_thirty_questions_the_mean_difference_has_students_interval() -> None:
    differences = [1.0, 0.0, -0.5, 0.5, 0.25, 0.25]
    found = estimate(mean_difference(differences, 0))
    expected = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert (found.value, found.low, found.high) == pytest.approx((0.25, expected.low, expected.high), abs=1e-8)
    assert estimate(mean_difference([0.0] * 40, 0)).low is None
    assert mean_difference([], 0) == NoEstimate("no common question")


def test_of_different_questions_the_difference_is_newcombes() -> None:
    for x, n, y, m in ((7, 20, 12, 25), (0, 10, 4, 9), (30, 30, 28, 31)):
        low, high = confint_proportions_2indep(y, m, x, n, method="newcomb", compare="diff")
        found = estimate(independent_difference(estimate(rate(x, n)), estimate(rate(y, m))))
        assert (found.value, found.low, found.high) == pytest.approx((y / m - x / n, low, high), abs=1e-9)
        assert found.n == min(n, m)
    without = Estimate(0.5, None, None, 0.95, 3, "none")
    assert independent_difference(without, without) == NoEstimate("one of the two rates has no interval")


def test_holm_agrees_with_a_hand_worked_value() -> None:
    # 0.01 * 4, 0.02 * 3, 0.03 * 2 raised to the 0.06 before it, 0.6; what has no p-value stays out.
    given_p = {"pass": 0.03, "recall": 0.01, "hit": None, "mrr": 0.6, "leak": 0.02}
    found = holm(given_p)
    assert list(found) == list(given_p)
    assert found["hit"] is None
    assert [found[name] for name in ("recall", "leak", "pass", "mrr")] == pytest.approx([0.04, 0.06, 0.06, 0.6])
    assert holm({}) == {}


@settings(max_examples=10)  # theirs collects garbage at every call
@given(st.lists(st.sampled_from([0.0, 1e-9, *(k / 200 for k in range(1, 201))]), min_size=1, max_size=12))
def test_holm_agrees_with_statsmodels(p_values: list[float]) -> None:
    found = holm({str(i): p for i, p in enumerate(p_values)})
    assert list(found.values()) == pytest.approx(multipletests(p_values, method="holm")[1].tolist(), abs=1e-12)
