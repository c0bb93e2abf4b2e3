"""Rates and quantiles over clustered rows, against hand-worked values, statsmodels and a simulation."""

import numpy as np
import pytest
import statsmodels.api as sm
from statsmodels.stats.proportion import proportion_confint

from rag_judge.clusters import clustered_quantile, clustered_rate, effective_n, rows_for_quantile
from rag_judge.records import Estimate, NoEstimate


def estimated(estimate: Estimate | NoEstimate) -> Estimate:
    assert isinstance(estimate, Estimate)
    return estimate


def test_rows_that_are_all_of_different_askers_have_the_plain_wilson_interval() -> None:
    found = estimated(clustered_rate([True, False, False, False], "abcd"))
    low, high = proportion_confint(1, 4, method="wilson")
    assert (found.value, found.n, found.method) == (0.25, 4, "wilson")
    assert (found.low, found.high) == pytest.approx((low, high))


def test_the_effective_n_is_that_of_the_sandwich_variance() -> None:
    # p = 3/6. Residuals: a 2 - 1.5 = 0.5, b 0 - 1 = -1, c 1 - 0.5 = 0.5; squares 1.5. Variance 3/2 x 1.5/36 = 1/16.
    # n = 0.25 / (1/16) = 4.
    values, askers = [True, True, False, False, False, True], "aaabbc"
    assert effective_n(values, askers) == pytest.approx(4)
    found = estimated(clustered_rate(values, askers))
    assert (found.low, found.high) == pytest.approx(proportion_confint(2, 4, method="wilson"))
    assert found.n == 6


def test_the_variance_is_that_of_statsmodels() -> None:
    rng = np.random.default_rng(5)
    askers = rng.integers(0, 40, 300)
    values = rng.random(300) < (0.1 + 0.6 * (askers % 3 == 0))
    fit = sm.OLS(values.astype(float), np.ones(300)).fit(
        cov_type="cluster", cov_kwds={"groups": askers, "use_correction": True}
    )
    p = values.mean()
    expected = p * (1 - p) / fit.bse[0] ** 2
    assert effective_n(values.tolist(), askers.tolist()) == pytest.approx(expected, rel=1e-9)
    assert expected < 150  # they are far from independent
    found = estimated(clustered_rate(values.tolist(), askers.tolist()))
    assert (found.low, found.high) == pytest.approx(proportion_confint(p * expected, expected, method="wilson"))


@pytest.mark.parametrize(
    ("values", "askers", "n"),
    [
        pytest.param([True] * 6, "aabbcc", 3, id="all equal: the number of askers"),
        pytest.param([True, False, True], "aaa", 1, id="one asker"),
        pytest.param([True, False, True, False], "aabb", 2, id="no residual: the number of askers"),
    ],
)
def test_where_the_variance_is_nothing_askers_are_counted(values: list[bool], askers: str, n: int) -> None:
    assert effective_n(values, askers) == n


def test_without_rows_there_is_no_rate_and_no_quantile() -> None:
    assert clustered_rate([], [], nothing="none") == NoEstimate("none")
    assert clustered_quantile([], 0.5, [], nothing="none") == NoEstimate("none")


def test_a_quantile_is_that_of_numpy_and_its_interval_holds_it() -> None:
    values = np.random.default_rng(2).lognormal(size=500).tolist()
    for q in (0.5, 0.95):
        found = estimated(clustered_quantile(values, q, range(500)))
        assert found.value == pytest.approx(np.quantile(values, q))
        assert found.low is not None
        assert found.high is not None
        assert found.low < found.value < found.high


def test_equal_values_have_no_interval() -> None:
    found = estimated(clustered_quantile([2.0] * 50, 0.95, range(50)))
    assert (found.value, found.low, found.high) == (2.0, None, None)


def test_a_quantile_needs_rows_beyond_it() -> None:
    # 0.95^71 = 0.0262, 0.95^72 = 0.0249; 0.5^5 = 0.031, 0.5^6 = 0.016; half of 5 % is left outside an end.
    assert (rows_for_quantile(0.95), rows_for_quantile(0.5)) == (72, 6)


@pytest.mark.parametrize("q", [0.5, 0.95])
def test_the_interval_of_a_quantile_covers_it_when_askers_differ(q: float) -> None:
    rng = np.random.default_rng(11)
    truth = float(np.quantile(rng.normal(size=(2_000_000,)) * 2**0.5, q))
    n_covered = 0
    for _ in range(400):
        own = np.repeat(rng.normal(size=80), 4)  # half of the variance lies between askers
        found = estimated(
            clustered_quantile((own + rng.normal(size=320)).tolist(), q, np.repeat(range(80), 4).tolist())
        )
        n_covered += found.low is not None and found.high is not None and found.low <= truth <= found.high
    # 95 % less three standard errors of 400 draws (0.011 each), and two points for CR1 at 80 askers
    assert n_covered / 400 > 0.95 - 3 * 0.011 - 0.02
