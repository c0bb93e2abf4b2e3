"""Means of scores and differences of two runs, corrected by human labels; and the judge's bias on scores.

For yes/no verdicts of one run `calibration` is more exact. Sources: Angelopoulos et al. 2023 (Science 382:669) and
PPI++ (arXiv 2311.01453); Särndal, Swensson & Wretman 1992, chapter 5, for weighting; Cochran 1977, chapter 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from rag_judge.estimates import LEVEL
from rag_judge.records import Estimate, NoEstimate, Target

FEWEST_PAIRS = 8
LABELS_FOR_WEIGHTED_T = 50
TOO_FEW = "{n} labelled; {fewest} are the fewest for an interval that covers"


@dataclass(frozen=True, slots=True)
class PredictionPowered:
    """A mean with the power that the judge's scores were given: 0 leaves them out, 1 takes them at their word."""

    estimate: Estimate
    power: float


def prediction_powered_mean(
    human: Sequence[float],
    judge_reviewed: Sequence[float],
    judge_unreviewed: Sequence[float],
    power: float | None = None,
) -> PredictionPowered | NoEstimate:
    """The mean human score over all cases; `human` and `judge_reviewed` pair up, the unreviewed are other cases.

    For a simple random review. `power` None: the best one, estimated (PPI++); 1: PPI. The interval is normal, too
    narrow below about 100 labels, and not clipped. NoEstimate below two labels. Raises ValueError where the reviewed
    lists differ in length.
    """
    if len(human) != len(judge_reviewed):
        raise ValueError(f"{len(human)} human scores for {len(judge_reviewed)} scores of the judge on the same cases")
    n, n_open = len(human), len(judge_unreviewed)
    if n < 2:
        return NoEstimate("fewer than two labelled cases")
    used = best_power(human, judge_reviewed, judge_unreviewed) if power is None else power
    if not n_open:
        used = 0.0
    rest = [h - used * j for h, j in zip(human, judge_reviewed, strict=True)]
    value, variance = _mean(rest), _variance(rest, n) / n
    if n_open and used:
        value += used * _mean(judge_unreviewed)
        variance += used**2 * _variance(judge_unreviewed, n_open) / n_open
    if variance == 0:
        method = "prediction-powered; no interval, as no label differs from its prediction"
        return PredictionPowered(Estimate(value, None, None, LEVEL, n, method), used)
    half = _z() * math.sqrt(variance)
    return PredictionPowered(
        Estimate(value, value - half, value + half, LEVEL, n, "prediction-powered, normal, approximate"), used
    )


def best_power(human: Sequence[float], judge_reviewed: Sequence[float], judge_unreviewed: Sequence[float]) -> float:
    """The power in [0, 1] with the smallest variance of the mean; 0 for a constant judge or with nothing unreviewed.

    Source: PPI++ (arXiv 2311.01453), section 6, with the moments that its authors' package takes.
    """
    n, n_open = len(human), len(judge_unreviewed)
    everywhere = [*judge_reviewed, *judge_unreviewed]
    spread = _variance(everywhere, len(everywhere) - 1) if len(everywhere) > 1 else 0.0
    if not n or not n_open or spread == 0:
        return 0.0
    mean_h, mean_j = _mean(human), _mean(judge_reviewed)
    together = math.fsum((h - mean_h) * (j - mean_j) for h, j in zip(human, judge_reviewed, strict=True)) / n
    return min(1.0, max(0.0, together / ((1 + n / n_open) * spread)))


def corrected_difference(
    judge_a: Sequence[float | None],
    judge_b: Sequence[float | None],
    human_a: Sequence[float | None],
    human_b: Sequence[float | None],
) -> PredictionPowered | NoEstimate:
    """The mean of human B - A over the questions that the judge graded in both runs, yes/no or within [0, 1].

    One entry per question, None for no verdict or label; reviewed are questions with both labels, drawn with equal
    probabilities. Two made-up residuals, +1 and -1, guard the variance: covers 0.95 from 8 pairs on. NoEstimate
    below 8.
    """
    reviewed_j, reviewed_h, unreviewed_j = [], [], []
    for ja, jb, ha, hb in zip(judge_a, judge_b, human_a, human_b, strict=True):
        if ja is None or jb is None:
            continue
        if ha is None or hb is None:
            unreviewed_j.append(float(jb) - float(ja))
        else:
            reviewed_j.append(float(jb) - float(ja))
            reviewed_h.append(float(hb) - float(ha))
    n, n_open = len(reviewed_h), len(unreviewed_j)
    if n < FEWEST_PAIRS:
        return NoEstimate(TOO_FEW.format(n=f"{n} pairs", fewest=FEWEST_PAIRS))
    power = best_power(reviewed_h, reviewed_j, unreviewed_j)
    rest = [h - power * j for h, j in zip(reviewed_h, reviewed_j, strict=True)]
    value, variance = _mean(rest), _guarded_variance(rest)
    if power:
        value += power * _mean(unreviewed_j)
        variance += power**2 * _variance(unreviewed_j, max(1, n_open - 1)) / n_open
    half = _t(n + 1) * math.sqrt(variance)
    low, high = max(-1.0, value - half), min(1.0, value + half)
    method = "prediction-powered difference, guarded t"
    return PredictionPowered(Estimate(min(1.0, max(-1.0, value)), low, high, LEVEL, n, method), power)


def score_bias(judge: Sequence[float], human: Sequence[float]) -> Estimate | NoEstimate:
    """The mean of judge - human in score points, over labelled cases drawn with equal probabilities; approximate.

    The t interval is guarded by two made-up differences of +1 and -1 point. NoEstimate without a case.
    """
    apart = [float(j) - float(h) for j, h in zip(judge, human, strict=True)]
    if not apart:
        return NoEstimate("no case has both scores")
    value, half = _mean(apart), _t(len(apart) + 1) * math.sqrt(_guarded_variance(apart))
    return Estimate(value, value - half, value + half, LEVEL, len(apart), "guarded t, approximate")


def weighted_bias(
    judge: Sequence[float], human: Sequence[float], probabilities: Sequence[float]
) -> tuple[Estimate, float] | NoEstimate:
    """The mean of judge - human with each case weighing 1/probability (Hájek), and its standard error.

    An interval, t with n - 1 degrees of freedom, from 50 labels on. NoEstimate below two labels. Raises ValueError for
    a probability that is not above 0.
    """
    apart = [float(j) - float(h) for j, h in zip(judge, human, strict=True)]
    if len(apart) < 2:
        return NoEstimate("fewer than two labelled cases")
    if not all(p > 0 for p in probabilities):
        raise ValueError(f"a sampling probability is above 0, not {min(probabilities)}")
    weights = [1 / p for p in probabilities]
    total, n = math.fsum(weights), len(apart)
    value = math.fsum(w * d for w, d in zip(weights, apart, strict=True)) / total
    squares = math.fsum((w * (d - value)) ** 2 for w, d in zip(weights, apart, strict=True))
    error = math.sqrt(n / (n - 1) * squares) / total
    if n < LABELS_FOR_WEIGHTED_T or error == 0:
        method = f"weighted; no interval below {LABELS_FOR_WEIGHTED_T} labels" if error else "weighted; no interval"
        return Estimate(value, None, None, LEVEL, n, method), error
    half = _t(n - 1) * error
    return Estimate(value, value - half, value + half, LEVEL, n, "weighted, t"), error


def stratified_bias(
    strata: Sequence[tuple[int, Sequence[float]]], target: Target = "questions_like_these"
) -> Estimate | NoEstimate:
    """The mean difference over fixed strata, each given as its number of cases and the differences of its labels.

    For scores. In this set a stratum that is labelled whole has no variance. A stratum with one label and more cases
    gives a value without an interval; one with none gives no value. Raises ValueError for more labels than cases.
    """
    kept = [(n_cases, list(apart)) for n_cases, apart in strata if n_cases]
    if not kept or not all(apart for _, apart in kept):
        return NoEstimate("a part of the cases has no label")
    if any(len(apart) > n_cases for n_cases, apart in kept):
        raise ValueError("a stratum has more labels than cases")
    total, n = sum(n_cases for n_cases, _ in kept), sum(len(apart) for _, apart in kept)
    value = math.fsum(n_cases * _mean(apart) for n_cases, apart in kept) / total
    open_strata = [s for s in kept if target != "this_set" or len(s[1]) < s[0]]
    if not open_strata:
        return Estimate(value, value, value, LEVEL, n, "stratified, every case labelled", target)
    variance = 0.0
    for n_cases, apart in open_strata:
        if len(apart) < 2:
            return Estimate(value, None, None, LEVEL, n, "stratified; no interval with one label in a stratum", target)
        known = len(apart) / n_cases if target == "this_set" else 0.0
        variance += (n_cases / total) ** 2 * (1 - known) * _variance(apart, len(apart) - 1) / len(apart)
    if variance == 0:
        return Estimate(value, None, None, LEVEL, n, "stratified; no interval, as no label differs", target)
    half = _t(sum(len(apart) - 1 for _, apart in open_strata)) * math.sqrt(variance)
    return Estimate(value, value - half, value + half, LEVEL, n, "stratified, t, approximate", target)


def _guarded_variance(values: Sequence[float]) -> float:
    """The variance of the mean with one value of +1 and one of -1 added around it."""
    n, mean = len(values), _mean(values)
    return (math.fsum((value - mean) ** 2 for value in values) + 2) / ((n + 1) * (n + 2))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _variance(values: Sequence[float], divisor: int) -> float:
    mean = _mean(values)
    return math.fsum((value - mean) ** 2 for value in values) / divisor


def _z() -> float:
    return NormalDist().inv_cdf(0.5 + LEVEL / 2)


def _t(degrees: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.5 + LEVEL / 2))
