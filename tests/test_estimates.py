"""Intervals: hand-worked values, statsmodels and scipy as oracles, and simulated coverage."""

import random
import warnings

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from rag_judge.estimates import (
    exact_p,
    exact_share,
    jeffreys_ends,
    mean_in_unit,
    paired_difference,
    rate,
    scaled,
    wilson_ends,
    win_rate,
)
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
    assert exact_share(0, 0, nothing="no reversal") == NoEstimate("no reversal")
    assert win_rate(0, 0, 0, nothing="no pair was decided") == NoEstimate("no pair was decided")
    assert exact_p(0, 0) is None


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


def test_the_jeffreys_interval_is_the_posteriors_with_its_ends_opened_where_all_agree() -> None:
    for n in range(1, 20):
        for x in range(n + 1):
            low, high = stats.beta(x + 0.5, n - x + 0.5).ppf([0.025, 0.975])
            expected = (0.0 if x == 0 else low, 1.0 if x == n else high)
            assert jeffreys_ends(x, n) == pytest.approx(expected, abs=1e-9)
    assert jeffreys_ends(0, 0) == (0.0, 1.0)


def test_wilsons_ends_take_an_effective_number_that_is_not_whole() -> None:
    wider, narrower = wilson_ends(0.7, 10), wilson_ends(0.7, 11)
    low, high = wilson_ends(0.7, 10.5)
    assert wider[0] < low < narrower[0]
    assert narrower[1] < high < wider[1]


def test_a_paired_difference_is_the_win_rates_on_the_scale_of_differences() -> None:
    found, halved = estimate(paired_difference(5, 2, 10)), estimate(win_rate(5, 2, 10))
    assert (found.value, found.low, found.high) == pytest.approx((0.3, -0.2191307, 0.7191307), abs=1e-7)
    assert (found.value, found.low) == pytest.approx((2 * halved.value - 1, 2 * (halved.low or 0) - 1))
    assert paired_difference(0, 0, 0, nothing="no pair") == NoEstimate("no pair")


def test_the_exact_share_agrees_with_a_hand_worked_and_a_published_value() -> None:
    # 0 of 10: the upper end solves (1 - u)^10 = 0.025, u = 1 - 0.025^0.1 = 0.308497
    none = estimate(exact_share(0, 10))
    assert (none.value, none.low, none.high) == pytest.approx((0.0, 0.0, 1 - 0.025**0.1), abs=1e-12)
    # 13 of 16: Fagerland, Lydersen & Laake 2017 (Statistical Analysis of Contingency Tables), as their package prints
    found = estimate(exact_share(13, 16))
    assert (found.low, found.high) == pytest.approx((0.5435, 0.9595), abs=5e-5)
    assert (found.value, found.n, found.level, found.method) == (0.8125, 16, 0.95, "clopper-pearson")


def test_the_exact_share_agrees_with_statsmodels_everywhere() -> None:
    for n in range(1, 20):
        for x in range(n + 1):
            found = estimate(exact_share(x, n))
            assert (found.low, found.high) == pytest.approx(proportion_confint(x, n, method="beta"), abs=1e-9)


@pytest.mark.parametrize(
    ("n_true", "n", "p"),
    [
        pytest.param(5, 5, 2 / 32, id="all of five: either end of 2^5"),
        pytest.param(1, 6, 2 * (1 + 6) / 64, id="one of six: (1 + 6)/64 at either end"),
        pytest.param(2, 8, 2 * (1 + 8 + 28) / 256, id="two of eight: (1 + 8 + 28)/256 at either end"),
        pytest.param(3, 6, 1.0, id="an even split says nothing"),
        pytest.param(0, 1, 1.0, id="one case never says anything"),
    ],
)
def test_the_exact_test_agrees_with_hand_worked_values_from_either_side(n_true: int, n: int, p: float) -> None:
    assert exact_p(n_true, n) == pytest.approx(p, abs=1e-12)
    assert exact_p(n - n_true, n) == pytest.approx(p, abs=1e-12)


def test_the_exact_interval_leaves_out_one_half_just_where_the_exact_test_rejects_it() -> None:
    for n in range(1, 25):
        for x in range(n + 1):
            found = estimate(exact_share(x, n))
            assert found.low is not None
            assert found.high is not None
            p = exact_p(x, n)
            assert p is not None
            assert (p < 0.05) == (not found.low <= 0.5 <= found.high), (x, n)


def test_the_win_rate_agrees_with_a_hand_worked_value() -> None:
    # 5 wins, 2 losses, 3 others: (5 + 3/2)/10 = 0.65. p_win = 6/12, p_loss = 3/12, d = 1/4; variance
    # (9/12 - 1/16)/12 = 11/192, root 0.2393568; half 1.9599640 * 0.2393568 = 0.4691307; d -+ half = -0.2191307 and
    # 0.7191307; 1/2 + half of these = 0.3904346 and 0.8595654
    found = estimate(win_rate(5, 2, 10))
    assert (found.value, found.low, found.high) == pytest.approx((0.65, 0.3904346, 0.8595654), abs=1e-7)
    assert (found.n, found.level, found.method, found.target) == (10, 0.95, "bonett-price", "questions_like_these")


def test_the_win_rates_interval_is_the_published_one_of_the_paired_difference() -> None:
    # 6 and 16 discordant of 161 pairs: Fagerland, Lydersen & Laake 2017, chapter 8, as their package prints
    found = estimate(win_rate(6, 16, 161))
    assert (2 * (found.low or 0) - 1, 2 * (found.high or 0) - 1) == pytest.approx((-0.1195, -0.0032), abs=5e-5)


def test_a_win_rate_has_some_width_within_its_range_and_mirrors_when_the_systems_swap() -> None:
    for n in range(1, 25):
        for wins in range(n + 1):
            for losses in range(n + 1 - wins):
                found, swapped = estimate(win_rate(wins, losses, n)), estimate(win_rate(losses, wins, n))
                assert found.low is not None
                assert found.high is not None
                assert 0.0 <= found.low <= found.value <= found.high <= 1.0
                assert found.high - found.low > 0.01
                assert (swapped.low, swapped.value, swapped.high) == pytest.approx(
                    (1 - found.high, 1 - found.value, 1 - found.low), abs=1e-12
                )


@pytest.mark.parametrize(("wins", "losses", "value"), [(40, 60, 0.4), (33, 33, 0.5), (0, 0, 0.5), (100, 0, 1.0)])
def test_a_pair_that_nobody_won_counts_one_half(wins: int, losses: int, value: float) -> None:
    assert estimate(win_rate(wins, losses, 100)).value == value


def win_rate_covers(wins: int, losses: int, n: int, truth: float) -> bool:
    found = estimate(win_rate(wins, losses, n))
    return (found.low or 0.0) <= truth <= (1.0 if found.high is None else found.high)


@pytest.mark.parametrize(
    ("n", "p_win", "p_loss", "promised"),
    [
        pytest.param(5, 0.4, 0.3, 0.95, id="five pairs"),
        pytest.param(10, 0.3, 0.3, 0.95, id="ten, even"),
        pytest.param(10, 0.6, 0.1, 0.95, id="ten, one better"),
        pytest.param(20, 0.5, 0.0, 0.93, id="twenty, no loss ever"),
        pytest.param(20, 0.9, 0.05, 0.95, id="twenty, near the end"),
        pytest.param(30, 0.05, 0.02, 0.95, id="thirty, nearly all tied"),
        pytest.param(100, 0.3, 0.3, 0.95, id="a hundred, even"),
        pytest.param(100, 0.6, 0.2, 0.95, id="a hundred, one better"),
    ],
)
def test_the_win_rate_covers_the_truth_about_as_often_as_it_says(
    n: int, p_win: float, p_loss: float, promised: float
) -> None:
    truth = 0.5 + (p_win - p_loss) / 2
    chances = [p_win, p_loss, 1 - p_win - p_loss]
    exact = sum(
        float(stats.multinomial.pmf([wins, losses, n - wins - losses], n, chances))
        for wins in range(n + 1)
        for losses in range(n + 1 - wins)
        if win_rate_covers(wins, losses, n, truth)
    )
    # The sum over all counts has no error of chance. The interval is approximate and counts are few, so what it holds
    # is stated case by case, to a thousandth; above 0.95 there is no limit, as with nearly all pairs tied.
    assert exact >= promised - 0.001
    n_draws = 4000
    drawn = np.random.default_rng(17).multinomial(n, chances, size=n_draws).tolist()
    n_covered = sum(win_rate_covers(wins, losses, n, truth) for wins, losses, _ in drawn)
    # Draws agree with that sum within four standard errors of 4,000 draws, and one draw where that error is nothing.
    assert n_covered / n_draws == pytest.approx(exact, abs=4 * (exact * (1 - exact) / n_draws) ** 0.5 + 1 / n_draws)


def test_at_ten_pairs_without_a_tie_the_win_rates_interval_is_too_narrow_and_we_know_by_how_much() -> None:
    # Wins w are binomial(10, 1/2), d = (w - 5)/6, half = 1.96 * root((1 - d^2)/12). Just left out are w = 2 and 8:
    # |d| = 0.5, half = 1.96 * 0.25 = 0.49. What stays has 120 + 210 + 252 + 210 + 120 = 912 of 1024: 0.8906.
    covered = [wins for wins in range(11) if win_rate_covers(wins, 10 - wins, 10, 0.5)]
    assert covered == [3, 4, 5, 6, 7]
    assert sum(stats.binom.pmf(covered, 10, 0.5)) == pytest.approx(912 / 1024)
