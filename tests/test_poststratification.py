"""Shares over all cases from labels on a part: hand-worked values, scipy and statsmodels as second methods."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from rag_judge.poststratification import (
    AGREEMENT,
    FALSE_FAIL,
    FALSE_PASS,
    JUDGE_MINUS_HUMAN,
    Stratum,
    human_share,
    share_of_questions_like_these,
    share_of_this_set,
    share_value,
    strata_of,
    verdict_strata,
    weighted_sensitivity,
    weighted_specificity,
)
from rag_judge.records import Estimate, NoEstimate


def estimate(value: Estimate | NoEstimate) -> Estimate:
    assert isinstance(value, Estimate)
    return value


def ends(value: Estimate | NoEstimate) -> tuple[float, float]:
    found = estimate(value)
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


@st.composite
def two_strata(draw: st.DrawFn) -> tuple[Stratum, ...]:
    def counts() -> tuple[int, int, int]:
        n = draw(st.integers(1, 60))
        reviewed = draw(st.integers(0, n))
        return n, reviewed, draw(st.integers(0, reviewed))

    return verdict_strata(*counts(), *counts())


def relabelled(strata: tuple[Stratum, ...]) -> tuple[Stratum, ...]:
    """The same run with pass called fail and fail called pass."""
    return tuple(
        Stratum(not s.judged, s.n_cases, s.n_reviewed, s.n_reviewed - s.n_human_pass, s.probability) for s in strata
    )[::-1]


def mover_by_the_book(strata: tuple[Stratum, ...], ends_name: str) -> tuple[float, float]:
    """The interval for two strata, from scipy and statsmodels alone."""
    passed, failed = strata
    total = passed.n_cases + failed.n_cases
    value, below, above = 0.0, 0.0, 0.0
    for s in strata:
        x, n = s.n_human_pass, s.n_reviewed
        if ends_name == "jeffreys":
            law = stats.beta(x + 0.5, n - x + 0.5)
            low, high = (0.0 if x == 0 else law.ppf(0.025)), (1.0 if x == n else law.ppf(0.975))
        else:
            low, high = proportion_confint(x, n, method="beta")
        value += s.n_cases / total * x / n
        below += (s.n_cases / total * (x / n - low)) ** 2
        above += (s.n_cases / total * (high - x / n)) ** 2
    slope = passed.n_human_pass / passed.n_reviewed - failed.n_human_pass / failed.n_reviewed
    low, high = proportion_confint(passed.n_cases, total, method="wilson")
    down, up = passed.n_cases / total - low, high - passed.n_cases / total
    if slope < 0:
        down, up = up, down
    low = value - math.sqrt(below + (slope * down) ** 2)
    return max(0.0, low), min(1.0, value + math.sqrt(above + (slope * up) ** 2))


def test_the_share_weighs_each_verdict_by_its_cases_not_by_its_labels() -> None:
    # 60 of 80 passed, 6 of 8 of them right; 20 failed, 1 of 8 of them wrong: 0.75 * 6/8 + 0.25 * 1/8 = 0.59375
    strata = verdict_strata(60, 8, 6, 20, 8, 1)
    assert share_value(strata) == pytest.approx(0.59375, abs=1e-12)
    # Bias 0.75 - 0.59375; false passes 0.75 * 2/8, false fails 0.25 * 1/8; agreement is what neither is.
    assert share_value(strata, JUDGE_MINUS_HUMAN) == pytest.approx(0.15625, abs=1e-12)
    assert share_value(strata, FALSE_PASS) == pytest.approx(0.1875, abs=1e-12)
    assert share_value(strata, FALSE_FAIL) == pytest.approx(0.03125, abs=1e-12)
    assert share_value(strata, AGREEMENT) == pytest.approx(0.78125, abs=1e-12)


@pytest.mark.parametrize("is_cautious", [False, True])
@given(strata=two_strata())
def test_the_interval_for_questions_like_these_agrees_with_the_formula(
    is_cautious: bool, strata: tuple[Stratum, ...]
) -> None:
    if all(s.n_reviewed for s in strata):
        found = share_of_questions_like_these(strata, is_cautious=is_cautious)
        book = mover_by_the_book(strata, "beta" if is_cautious else "jeffreys")
        assert ends(found) == pytest.approx(book, abs=1e-9)


def test_this_set_agrees_with_a_hand_worked_value() -> None:
    # 5 passed, 2 labelled and both right; the 3 open ones are beta-binomial(3, 2.5, 0.5): no pass 0.5*1.5*2.5/(3*4*5)
    # = 0.03125, one 3*2.5*0.5*1.5/60 = 0.09375, two 3*2.5*3.5*0.5/60 = 0.21875, three 2.5*3.5*4.5/60 = 0.65625.
    # No pass among them has more than 2.5 %: from 2 to 5 of 5.
    found = share_of_this_set([Stratum(True, 5, 2, 2, 0.4)])
    assert (estimate(found).value, *ends(found)) == (1.0, 0.4, 1.0)
    assert (estimate(found).target, estimate(found).n) == ("this_set", 2)


def test_a_tail_of_just_a_fortieth_belongs_to_the_interval_at_either_end() -> None:
    # 2 of 6 open, 4 of 4 passed: beta-binomial(2, 4.5, 0.5) has no pass with 0.5 * 1.5/(5 * 6) = 0.025.
    assert ends(share_of_this_set([Stratum(True, 6, 4, 4, 0.6)])) == (4 / 6, 1.0)
    assert ends(share_of_this_set([Stratum(False, 6, 4, 0, 0.6)])) == (0.0, 2 / 6)


@given(two_strata())
def test_this_set_agrees_with_scipys_beta_binomial_summed_over_both_strata(strata: tuple[Stratum, ...]) -> None:
    tables = [
        stats.betabinom.pmf(
            np.arange(s.n_cases - s.n_reviewed + 1),
            s.n_cases - s.n_reviewed,
            s.n_human_pass + 0.5,
            s.n_reviewed - s.n_human_pass + 0.5,
        )
        for s in strata
    ]
    known, total = sum(s.n_human_pass for s in strata), sum(s.n_cases for s in strata)
    chances: dict[int, float] = {}
    for i, p in enumerate(tables[0]):
        for k, q in enumerate(tables[1]):
            chances[i + k] = chances.get(i + k, 0.0) + float(p * q)
    low, high = ends(share_of_this_set(strata))
    at_most = {k: math.fsum(chances[i] for i in range(k + 1)) for k in chances}
    first, last = round(low * total) - known, round(high * total) - known
    assert at_most[first] >= 0.025 - 1e-9
    assert first == 0 or at_most[first - 1] < 0.025 + 1e-9
    assert at_most[last] >= 0.975 - 1e-9
    assert last == 0 or at_most[last - 1] < 0.975 + 1e-9


@given(two_strata())
def test_calling_pass_fail_mirrors_every_interval(strata: tuple[Stratum, ...]) -> None:
    other = relabelled(strata)
    for share in (share_of_questions_like_these, share_of_this_set):
        one, mirrored = estimate(share(strata)), estimate(share(other))
        assert mirrored.value == pytest.approx(1 - one.value, abs=1e-9)
        assert ends(mirrored) == pytest.approx(tuple(1 - end for end in ends(one))[::-1], abs=1e-9)
        bias, opposite = share(strata, JUDGE_MINUS_HUMAN), share(other, JUDGE_MINUS_HUMAN)
        assert ends(opposite) == pytest.approx(tuple(-end for end in ends(bias))[::-1], abs=1e-9)


@given(two_strata())
def test_bias_in_this_set_is_the_judges_rate_less_the_corrected_interval(strata: tuple[Stratum, ...]) -> None:
    judged = strata[0].n_cases / sum(s.n_cases for s in strata)
    low, high = ends(share_of_this_set(strata))
    assert ends(share_of_this_set(strata, JUDGE_MINUS_HUMAN)) == pytest.approx((judged - high, judged - low), abs=1e-9)


def test_a_census_gives_the_human_mean_without_width_in_this_set_and_with_some_beyond_it() -> None:
    strata = verdict_strata(10, 10, 9, 5, 5, 1)
    assert (share_value(strata), *ends(share_of_this_set(strata))) == pytest.approx((10 / 15,) * 3)
    low, high = ends(share_of_questions_like_these(strata))
    assert low < 10 / 15 - 0.1
    assert high > 10 / 15 + 0.1


def test_a_verdict_that_the_judge_never_gave_leaves_one_stratum() -> None:
    found = estimate(share_of_questions_like_these(verdict_strata(80, 16, 12, 0, 0, 0)))
    # One stratum: 12/16 with Jeffreys ends; the share of passes, 80 of 80, can only be lower, with the slope of 3/4.
    law, reach = stats.beta(12.5, 4.5), 1 - proportion_confint(80, 80, method="wilson")[0]
    low = 0.75 - math.hypot(0.75 - law.ppf(0.025), 0.75 * reach)
    assert (found.value, found.low, found.high) == pytest.approx((0.75, low, law.ppf(0.975)), abs=1e-9)


def test_an_unreviewed_stratum_counts_from_0_to_1() -> None:
    decided = verdict_strata(60, 12, 10, 18, 6, 1)
    with_two_open = (*decided, Stratum(None, 2, 0, 0, 1.0))
    low, high = ends(share_of_this_set(with_two_open))
    assert low <= ends(share_of_this_set(decided))[0]
    assert estimate(share_of_this_set(with_two_open)).value == pytest.approx((60 * 10 / 12 + 18 / 6 + 1) / 80)
    assert high <= 1


def test_with_many_strata_and_labels_the_interval_is_that_of_the_textbook_variance() -> None:
    strata = (
        Stratum(True, 30_000, 900, 810, 0.03),
        Stratum(True, 20_000, 1500, 1200, 0.075, "b"),
        Stratum(False, 30_000, 1200, 240, 0.04),
        Stratum(False, 15_000, 3000, 1200, 0.2, "b"),
        Stratum(None, 5_000, 1000, 500, 0.2),
    )
    shares = [s.n_cases / 100_000 for s in strata]
    value = sum(w * s.p for w, s in zip(shares, strata, strict=True))
    within = sum(w**2 * s.p * (1 - s.p) / s.n_reviewed for w, s in zip(shares, strata, strict=True))
    between = sum(w * (s.p - value) ** 2 for w, s in zip(shares, strata, strict=True)) / 100_000
    half = 1.959964 * math.sqrt(within + between)
    assert ends(share_of_questions_like_these(strata)) == pytest.approx((value - half, value + half), abs=0.02 * half)
    # This set: known cases have no variance, open ones vary in number and with their uncertain share.
    open_share = sum(
        w**2 * s.p * (1 - s.p) * (1 - s.n_reviewed / s.n_cases) / s.n_reviewed
        for w, s in zip(shares, strata, strict=True)
    )
    half = 1.959964 * math.sqrt(open_share)
    assert ends(share_of_this_set(strata)) == pytest.approx((value - half, value + half), abs=0.03 * half)


def test_strata_come_from_verdict_probability_and_part_whatever_the_order_of_cases() -> None:
    rows = [
        (True, True, 0.2, "fact"),
        (True, None, 0.2, "fact"),
        (True, False, 0.1 + 0.1, "fact"),  # rounding opens no stratum of its own
        (True, None, 1.0, "fact"),
        (False, None, 0.2, "fact"),
        (None, True, 1.0, ""),
        (False, False, 0.2, "list"),
    ]
    found = strata_of(*zip(*rows, strict=True))
    assert found == (
        Stratum(True, 1, 0, 0, 1.0, "fact"),
        Stratum(True, 3, 2, 1, 0.2, "fact"),
        Stratum(False, 1, 0, 0, 0.2, "fact"),
        Stratum(False, 1, 1, 0, 0.2, "list"),
        Stratum(None, 1, 1, 1, 1.0),
    )
    random.Random(1).shuffle(rows)
    assert strata_of(*zip(*rows, strict=True)) == found


@pytest.mark.parametrize("probability", [None, 0.0, -1.0])
def test_an_unknown_probability_is_kept_as_unknown(probability: float | None) -> None:
    assert strata_of([True], [True], [probability]) == (Stratum(True, 1, 1, 1, None),)


@pytest.mark.parametrize("counts", [(5, 6, 0), (5, 3, 4), (5, 3, -1)])
def test_a_stratum_of_impossible_counts_is_refused(counts: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="a stratum cannot have"):
        Stratum(True, *counts, 0.5)


def test_the_human_share_is_wilsons_where_all_probabilities_are_equal() -> None:
    strata = [Stratum(True, 64, 12, 11, 0.2), Stratum(False, 16, 4, 1, 0.2)]
    assert ends(human_share(strata)) == pytest.approx(proportion_confint(12, 16, method="wilson"), abs=1e-9)
    assert estimate(human_share(strata)).method == "wilson"


def test_the_human_share_weighs_labels_that_were_drawn_more_often_less() -> None:
    # Weights 10 (4 labels, 3 passes) and 2 (2 labels, no pass): 30/44, effective n 44²/(4 * 100 + 2 * 4) = 4.745098
    found = estimate(human_share([Stratum(True, 40, 4, 3, 0.1), Stratum(False, 4, 2, 0, 0.5)]))
    assert found.value == pytest.approx(30 / 44)
    n = 44**2 / 408
    z = 1.959964
    p = 30 / 44
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    assert (found.high or 0) - (found.low or 0) == pytest.approx(2 * half, abs=1e-6)


def test_the_human_share_takes_no_notice_of_an_unreviewed_case() -> None:
    strata = verdict_strata(64, 12, 11, 16, 4, 1)
    more = (*strata, Stratum(True, 7, 0, 0, 0.1, "more"))
    assert human_share(more) == human_share(strata)


def test_the_human_share_is_refused_without_labels_or_probabilities() -> None:
    assert human_share([Stratum(True, 9, 0, 0, 0.5)]) == NoEstimate("no case is labelled")
    assert isinstance(human_share([Stratum(True, 9, 4, 2, None)]), NoEstimate)
    assert share_of_questions_like_these([]) == share_of_this_set([]) == NoEstimate("no case with a verdict")


def test_sensitivity_and_specificity_are_weighted_back_to_all_cases() -> None:
    # 60 passed, 6 of 8 right: 45 true passes, 15 false. 20 failed, 1 of 8 wrong: 2.5 false fails, 17.5 true.
    strata = verdict_strata(60, 8, 6, 20, 8, 1)
    sens, spec = estimate(weighted_sensitivity(strata, 0)), estimate(weighted_specificity(strata, 0))
    assert (sens.value, spec.value) == pytest.approx((45 / 47.5, 17.5 / 32.5), abs=1e-12)
    # With these, Rogan and Gladen's estimate is the post-stratified one.
    assert (0.75 + spec.value - 1) / (sens.value + spec.value - 1) == pytest.approx(share_value(strata), abs=1e-12)
    rng = random.Random(3)
    drawn = []
    for _ in range(40_000):
        right, wrong = 60 * rng.betavariate(6.5, 2.5), 20 * rng.betavariate(1.5, 7.5)
        drawn.append(right / (right + wrong))
    assert ends(sens) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=0.01)


@pytest.mark.parametrize(
    ("strata", "reason"),
    [
        pytest.param(verdict_strata(60, 8, 0, 20, 8, 0), "no labelled case passes by human judgement", id="no pass"),
        pytest.param(verdict_strata(60, 8, 6, 20, 0, 0), "a part of the judged cases has no label", id="no label"),
    ],
)
def test_sensitivity_is_refused_where_nothing_shows_it(strata: tuple[Stratum, ...], reason: str) -> None:
    assert weighted_sensitivity(strata, 0) == NoEstimate(reason)


def test_a_hundred_thousand_cases_are_predicted_as_by_the_normal_law() -> None:
    strata = verdict_strata(80_000, 4000, 3000, 20_000, 1000, 100)
    low, high = ends(share_of_this_set(strata))
    variance = 0.8**2 * 0.1875 * 0.95 / 4000 + 0.2**2 * 0.09 * 0.95 / 1000
    half = 1.959964 * math.sqrt(variance)
    assert (low, high) == pytest.approx((0.62 - half, 0.62 + half), abs=0.03 * half)
