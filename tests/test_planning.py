"""How much is needed: brute force, and scipy and statsmodels as second methods."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm
from statsmodels.stats.proportion import proportion_confint

from rag_judge.planning import (
    LabelsNeeded,
    labels_for_half_width,
    labels_needed,
    neyman_shares,
    smallest_detectable_difference,
)
from rag_judge.poststratification import Stratum, verdict_strata
from rag_judge.records import Target


def wilson_half_width(p: float, n: int) -> float:
    low, high = proportion_confint(p * n, n, method="wilson")
    return float(high - low) / 2


@pytest.mark.parametrize(("p", "half_width"), [(0.5, 0.1), (0.9, 0.1), (0.9, 0.05), (0.99, 0.02), (1.0, 0.03)])
def test_the_labels_for_a_half_width_are_the_least_that_reach_it(p: float, half_width: float) -> None:
    n = labels_for_half_width(half_width, p)
    assert wilson_half_width(p, n) <= half_width
    assert wilson_half_width(p, n - 1) > half_width


def test_a_finite_set_needs_fewer_labels_and_never_more_than_it_has() -> None:
    # p = 0.9, half-width 0.1: 37 labels; of 50 cases 37/(1 + 36/50) = 21.5, rounded up
    assert labels_for_half_width(0.1, 0.9) == 37
    assert labels_for_half_width(0.1, 0.9, 50) == 22
    assert labels_for_half_width(0.001, 0.5, 80) == 80


@pytest.mark.parametrize(("half_width", "p"), [(0, 0.5), (-0.1, 0.5), (0.1, 1.5)])
def test_an_impossible_plan_is_refused(half_width: float, p: float) -> None:
    with pytest.raises(ValueError, match="needs a half-width above 0 and a share"):
        labels_for_half_width(half_width, p)


def test_neymans_shares_agree_with_a_hand_worked_value() -> None:
    # p 7.5/9 and 1.5/5 drawn in: 60 * sqrt(7.5 * 1.5)/9 = 22.360680, 20 * sqrt(1.5 * 3.5)/5 = 9.165151
    shares = neyman_shares(verdict_strata(60, 8, 7, 20, 4, 1))
    assert shares == pytest.approx((22.360680 / 31.525831, 9.165151 / 31.525831), abs=1e-7)


@st.composite
def reviewed(draw: st.DrawFn) -> tuple[Stratum, ...]:
    counts = []
    for _ in range(2):
        n = draw(st.integers(4, 300))
        m = draw(st.integers(1, 4))
        counts += [n, m, draw(st.integers(0, m))]
    return verdict_strata(*counts)


@given(reviewed(), st.sampled_from([0.05, 0.1, 0.2]), st.sampled_from(["questions_like_these", "this_set"]))
def test_the_labels_needed_are_the_least_whose_forecast_variance_suffices(
    strata: tuple[Stratum, ...], half_width: float, target: Target
) -> None:
    total = sum(s.n_cases for s in strata)
    shares = neyman_shares(strata)
    expected = [(s.n_human_pass + 0.5) / (s.n_reviewed + 1) for s in strata]

    def half(n: float) -> float:
        spread = sum(
            (s.n_cases / total) ** 2 * p * (1 - p) / (n * r) for s, p, r in zip(strata, expected, shares, strict=True)
        )
        if target == "this_set":
            spread -= sum(s.n_cases / total * p * (1 - p) for s, p in zip(strata, expected, strict=True)) / total
        else:
            spread += (expected[0] - expected[1]) ** 2 * strata[0].n_cases * strata[1].n_cases / total**3
        return 1.959964 * math.sqrt(max(0.0, spread))

    found = labels_needed(strata, half_width, target)
    if found.n is None:
        assert half(total) > half_width * (1 - 1e-6)
    else:
        assert half(found.n) <= half_width * (1 + 1e-6)
        assert found.n == 1 or half(found.n - 1) > half_width * (1 - 1e-6)
        assert found.more == max(0, found.n - sum(s.n_reviewed for s in strata))


def test_what_no_number_of_labels_reaches_is_said_to_need_more_cases() -> None:
    assert labels_needed(verdict_strata(60, 8, 7, 20, 4, 1), 0.01).n is None
    assert labels_needed([], 0.1) == LabelsNeeded(None, None, ())
    with pytest.raises(ValueError, match="a half-width is above 0"):
        labels_needed([], 0)


@pytest.mark.parametrize(("n", "share"), [(80, 0.15), (80, 0.3), (500, 0.15), (30, 0.3), (1000, 1.0), (8, 0.9)])
def test_the_smallest_detectable_difference_solves_the_equation(n: int, share: float) -> None:
    def missing(d: float) -> float:
        needed = norm.ppf(0.975) * math.sqrt(share) + norm.ppf(0.8) * math.sqrt(max(0.0, share - d * d))
        return float(needed - d * math.sqrt(n))

    assert smallest_detectable_difference(n, share) == pytest.approx(brentq(missing, 0, share, xtol=1e-12), abs=1e-9)


@pytest.mark.parametrize(("n", "share"), [(3, 0.1), (80, 0.0), (10, 0.3)])
def test_too_few_changes_can_show_no_difference_at_all(n: int, share: float) -> None:
    assert smallest_detectable_difference(n, share) is None


def test_a_share_outside_its_range_is_refused() -> None:
    with pytest.raises(ValueError, match="a share lies in"):
        smallest_detectable_difference(80, 1.2)
