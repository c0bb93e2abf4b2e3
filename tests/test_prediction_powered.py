"""Corrected means and differences: hand-worked values, ppi-python, statsmodels and simulated coverage."""

import random

import numpy as np
import pytest
from scipy import stats
from statsmodels.regression.linear_model import WLS

from rag_judge.prediction_powered import (
    PredictionPowered,
    best_power,
    corrected_difference,
    prediction_powered_mean,
    score_bias,
    stratified_bias,
    weighted_bias,
)
from rag_judge.records import Estimate, NoEstimate, Target


def powered(value: PredictionPowered | NoEstimate) -> PredictionPowered:
    assert isinstance(value, PredictionPowered)
    return value


def estimate(value: Estimate | NoEstimate) -> Estimate:
    assert isinstance(value, Estimate)
    return value


def test_the_power_and_the_mean_agree_with_a_hand_worked_value() -> None:
    # h 1 0 1 1, j 1 0 1 0, unreviewed 1 1 1 0. cov = 2/4 - 3/4 * 2/4 = 1/8; j over all eight: 5 ones, variance
    # 8/7 * 5/8 * 3/8 = 15/56; power (1/8)/((1 + 4/4) * 15/56) = 7/30; mean 3/4 + 7/30 * (3/4 - 2/4) = 97/120
    human, reviewed, unreviewed = [1, 0, 1, 1], [1, 0, 1, 0], [1, 1, 1, 0]
    assert best_power(human, reviewed, unreviewed) == pytest.approx(7 / 30, abs=1e-12)
    found = powered(prediction_powered_mean(human, reviewed, unreviewed))
    assert (found.estimate.value, found.power) == pytest.approx((97 / 120, 7 / 30), abs=1e-12)


@pytest.mark.parametrize("power", [None, 1.0, 0.0, 0.4])
def test_the_mean_and_its_interval_agree_with_ppi_python(power: float | None) -> None:
    ppi_py = pytest.importorskip("ppi_py")
    rng = random.Random(7)
    human = [float(rng.choice([1, 2, 3, 4, 5])) for _ in range(20)]
    reviewed = [min(5.0, max(1.0, score + rng.choice([-1, 0, 1]))) for score in human]
    unreviewed = [float(rng.choice([1, 2, 3, 4, 5])) for _ in range(60)]
    found = powered(prediction_powered_mean(human, reviewed, unreviewed, power)).estimate
    arrays = [np.array(values) for values in (human, reviewed, unreviewed)]
    low, high = ppi_py.ppi_mean_ci(*arrays, alpha=0.05, lam=power)
    assert found.value == pytest.approx(float(np.squeeze(ppi_py.ppi_mean_pointestimate(*arrays, lam=power))), abs=1e-9)
    assert (found.low, found.high) == pytest.approx((float(np.squeeze(low)), float(np.squeeze(high))), abs=1e-9)


@pytest.mark.parametrize(
    ("reviewed", "unreviewed"), [([1, 1, 1], [1, 1]), ([1, 0, 1], [])], ids=["constant judge", "nothing unreviewed"]
)
def test_a_judge_that_tells_nothing_gets_no_power(reviewed: list[float], unreviewed: list[float]) -> None:
    found = powered(prediction_powered_mean([1, 0, 0], reviewed, unreviewed))
    assert (found.power, found.estimate.value) == (0, pytest.approx(1 / 3))  # type: ignore[comparison-overlap]


def test_labels_that_show_no_variation_get_no_interval() -> None:
    found = powered(prediction_powered_mean([1, 1, 1], [1, 0, 1], [0, 1]))
    assert (found.estimate.value, found.estimate.low, found.estimate.high) == (1, None, None)
    assert isinstance(prediction_powered_mean([1], [1], [0, 1]), NoEstimate)
    with pytest.raises(ValueError, match="2 human scores for 1"):
        prediction_powered_mean([1, 1], [1], [])


def test_the_corrected_difference_agrees_with_a_hand_worked_value() -> None:
    # Eight reviewed questions, both labels differ as the verdicts do: d is 1 1 0 0 0 0 0 -1 for both; eight more with
    # d_j 1 0 0 0 0 0 0 0. cov = 3/8 - 1/64 = 23/64; all sixteen: sum 2, squares 4, variance (4 - 4/16)/15 = 1/4;
    # power min(1, (23/64)/(2 * 1/4)) = 23/32. Residuals 9/32 * d: mean 9/256, value 9/256 + 23/256 = 1/8.
    d = [1, 1, 0, 0, 0, 0, 0, -1]
    judge_a, judge_b = [float(x < 0) for x in d], [float(x > 0) for x in d]
    found = powered(
        corrected_difference(
            [*judge_a, *[0.0] * 8, None],
            [*judge_b, 1.0, *[0.0] * 7, 1],
            [*judge_a, *[None] * 9],
            [*judge_b, *[None] * 9],
        )
    )
    assert found.power == pytest.approx(23 / 32, abs=1e-12)
    assert found.estimate.value == pytest.approx(1 / 8, abs=1e-12)
    squares = (9 / 32) ** 2 * (3 - 8 * (1 / 8) ** 2)
    error = ((squares + 2) / (9 * 10) + (23 / 32) ** 2 * (1 / 8) / 8) ** 0.5
    half = float(stats.t.ppf(0.975, 9)) * error
    assert (found.estimate.low, found.estimate.high) == pytest.approx((1 / 8 - half, 1 / 8 + half), abs=1e-8)
    assert found.estimate.n == 8


def test_below_eight_reviewed_pairs_no_difference_is_corrected() -> None:
    found = corrected_difference([1.0] * 20, [0.0] * 20, [1.0] * 7 + [None] * 13, [0.0] * 20)
    assert found == NoEstimate("7 pairs labelled; 8 are the fewest for an interval that covers")


def test_labels_without_any_change_still_leave_some_width() -> None:
    same = [True] * 40
    found = powered(corrected_difference(same, same, same, same)).estimate
    assert (found.low or 0) < 0 < (found.high or 0)


@pytest.mark.parametrize(("n_reviewed", "leniency"), [(8, 0.0), (16, 0.15), (30, 0.15)])
def test_the_corrected_difference_covers_where_the_judge_favours_one_version(n_reviewed: int, leniency: float) -> None:
    rng = np.random.default_rng(3)
    n_draws, n_covered = 500, 0
    for _ in range(n_draws):
        quality = rng.random(80)
        human_a, human_b = (rng.random(80) < 0.3 + 0.6 * quality).astype(float), (rng.random(80) < 0.35 + 0.6 * quality)
        judge_a = np.where(rng.random(80) < 0.1, 1 - human_a, human_a)
        judge_b = np.where(rng.random(80) < leniency, 1.0, human_b.astype(float))
        seen = rng.permutation(80) < n_reviewed
        labels = [[float(x) if s else None for x, s in zip(h, seen, strict=True)] for h in (human_a, human_b)]
        found = powered(corrected_difference(judge_a.tolist(), judge_b.tolist(), *labels)).estimate
        n_covered += (found.low or 0) <= 0.05 <= (found.high or 0)
    # 0.95 is promised; three standard errors of 500 draws there are 0.029.
    assert n_covered / n_draws >= 0.95 - 0.029


def test_the_bias_of_scores_agrees_with_a_hand_worked_value() -> None:
    # d = 1 0 0 -1 1 0: mean 1/6, squares 3 - 6/36 = 17/6; guarded (17/6 + 2)/7, over 8; t with 7 degrees of freedom
    found = estimate(score_bias([5, 4, 3, 2, 5, 1], [4, 4, 3, 3, 4, 1]))
    half = float(stats.t.ppf(0.975, 7)) * ((17 / 6 + 2) / 56) ** 0.5
    assert (found.value, found.low, found.high) == pytest.approx((1 / 6, 1 / 6 - half, 1 / 6 + half), abs=1e-8)
    assert score_bias([], []) == NoEstimate("no case has both scores")


def test_the_weighted_bias_agrees_with_statsmodels() -> None:
    rng = random.Random(1)
    human, judge = ([float(rng.random() < 0.7) for _ in range(60)] for _ in range(2))
    drawn = [rng.choice([0.1, 0.2, 0.5]) for _ in range(60)]
    fitted = WLS([j - h for j, h in zip(judge, human, strict=True)], np.ones(60), weights=[1 / p for p in drawn]).fit(
        cov_type="HC1", use_t=True
    )
    found = weighted_bias(judge, human, drawn)
    assert not isinstance(found, NoEstimate)
    assert (found[0].value, found[1]) == pytest.approx((fitted.params[0], fitted.bse[0]), abs=1e-12)
    assert (found[0].low, found[0].high) == pytest.approx(tuple(fitted.conf_int()[0]), abs=1e-8)
    fewer = weighted_bias(judge[:49], human[:49], drawn[:49])
    assert not isinstance(fewer, NoEstimate)
    assert fewer[0].low is None


def test_a_weight_that_cannot_be_is_refused() -> None:
    assert isinstance(weighted_bias([1], [0], [0.5]), NoEstimate)
    with pytest.raises(ValueError, match="a sampling probability is above 0"):
        weighted_bias([1, 1], [0, 1], [0.5, 0.0])


@pytest.mark.parametrize(("target", "known"), [("questions_like_these", (0, 0)), ("this_set", (4 / 60, 3 / 20))])
def test_the_stratified_bias_agrees_with_a_hand_worked_value(target: Target, known: tuple[float, float]) -> None:
    # 60 cases with d = 1 0 0 1: mean 1/2, variance 1/3; 20 with -1 0 -1: mean -2/3, variance 1/3
    found = estimate(stratified_bias([(60, [1, 0, 0, 1]), (20, [-1, 0, -1]), (0, [])], target))
    assert found.value == pytest.approx(0.75 / 2 - 0.25 * 2 / 3)
    error = (0.75**2 * (1 - known[0]) / 12 + 0.25**2 * (1 - known[1]) / 9) ** 0.5
    assert (found.high or 0) - found.value == pytest.approx(float(stats.t.ppf(0.975, 5)) * error, abs=1e-8)


@pytest.mark.parametrize(
    ("strata", "ends"),
    [
        pytest.param([(9, [1.0]), (2, [0.0, 1.0])], (None, None), id="one label of nine"),
        pytest.param([(1, [1.0]), (2, [0.0, 1.0])], (2 / 3, 2 / 3), id="a census"),
        pytest.param([(9, [1.0, 1.0])], (None, None), id="no label differs"),
    ],
)
def test_a_stratum_without_variance_to_estimate(
    strata: list[tuple[int, list[float]]], ends: tuple[float | None, float | None]
) -> None:
    found = estimate(stratified_bias(strata, "this_set"))
    assert (found.low, found.high) == ends


def test_a_stratum_without_a_label_or_with_too_many_has_no_bias() -> None:
    assert stratified_bias([(9, []), (2, [0.0])]) == NoEstimate("a part of the cases has no label")
    with pytest.raises(ValueError, match="more labels than cases"):
        stratified_bias([(1, [0.0, 1.0])])
