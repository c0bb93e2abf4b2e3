"""Intervals: hand-worked values, statsmodels and scipy as oracles, and simulated coverage."""

import random
import warnings

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from rag_judge.estimates import mean_in_unit, rate, scaled
from rag_judge.records import Estimate, NoEstimate


def estimate(value: Estimate | NoEstimate) -> Estimate:
    assert isinstance(value, Estimate)
    return value


def test_wilson_agrees_with_a_hand_worked_value() -> None:
    # x = 7, n = 8, z = 1.959964: centre (0.875 + z²/16)/(1 + z²/8) = 0.753345, half 0.224226
    found = estimate(rate(7, 8))
    assert (found.value, found.low, found.high) == pytest.approx((0.875, 0.529112, 0.977583), abs=1e-6)
    assert (found.n, found.level, found.method, found.target) == (8, 0.95, "wilson", "questions_like_these")


def test_wilson_agrees_with_statsmodels_everywhere() -> None:
    for n in range(1, 60):
        for x in range(n + 1):
            found = estimate(rate(x, n))
            assert (found.low, found.high) == pytest.approx(proportion_confint(x, n, method="wilson"), abs=1e-12)


@pytest.mark.parametrize(("x", "n"), [(0, 1), (1, 1), (0, 20), (20, 20)])
def test_an_interval_never_has_zero_width_and_ends_exactly_at_the_border(x: int, n: int) -> None:
    found = estimate(rate(x, n))
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.high
    assert (found.low == 0.0) if x == 0 else (found.high == 1.0)


def test_no_case_gives_no_number_but_a_reason() -> None:
    assert rate(0, 0, nothing="nobody asked") == NoEstimate("nobody asked")
    assert mean_in_unit([], seed=0) == NoEstimate("no case")


@pytest.mark.parametrize("values", [[0.5], [1.0] * 50, [0.0] * 8])
def test_equal_values_have_a_mean_and_no_interval(values: list[float]) -> None:
    found = estimate(mean_in_unit(values, seed=0))
    assert (found.value, found.low, found.high, found.n) == (values[0], None, None, len(values))


def test_below_thirty_questions_the_interval_is_students_t() -> None:
    values = [0.0, 0.5, 1.0, 1.0, 0.25]
    found = estimate(mean_in_unit(values, seed=0))
    low, high = stats.t.interval(0.95, 4, loc=np.mean(values), scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx((max(0.0, low), min(1.0, high)))


def test_from_thirty_questions_the_interval_is_bca_and_does_not_depend_on_order_only_on_the_seed() -> None:
    values = [random.Random(3).random() ** 2 for _ in range(1)] + [i / 40 for i in range(40)]
    found = estimate(mean_in_unit(values, seed=1))
    again = estimate(mean_in_unit(values[::-1], seed=1))
    assert found == again
    assert found.method.startswith("bca")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = stats.bootstrap((np.array(values),), np.mean, method="BCa", rng=np.random.default_rng(99))
    interval = theirs.confidence_interval
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=0.015)


def test_wilson_covers_the_true_rate_about_as_often_as_it_says() -> None:
    rng = random.Random(11)
    n_covered = 0
    n_draws = 4000
    for _ in range(n_draws):
        p = rng.uniform(0.05, 0.95)
        found = estimate(rate(sum(rng.random() < p for _ in range(40)), 40))
        n_covered += (found.low or 0.0) <= p <= (found.high or 1.0)
    # Mean coverage of Wilson over p is 0.95; four standard errors of 4,000 draws are 0.0138.
    assert n_covered / n_draws == pytest.approx(0.95, abs=0.014)


def test_scaling_by_the_answered_share_says_so_in_the_method() -> None:
    found = scaled(estimate(rate(4, 8)), 0.5)
    assert found.value == 0.25
    assert found.high is not None
    assert found.high < 0.5
    assert "answered share" in found.method
