"""Numbers with their intervals: arrays in, `Estimate` out, or `NoEstimate` with what is missing.

No record of a case is read here. Sources: Wilson 1927 (JASA 22:209); Brown, Cai & DasGupta 2001 (Stat. Sci.
16:101) for preferring it to Wald; Efron 1987 (JASA 82:171) for BCa; the others stand at their functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from rag_judge.records import Estimate, NoEstimate, Target

LEVEL = 0.95
BOOTSTRAP_DRAWS = 10_000
# BCa from 30 questions; above 5,000 the mean is normal enough for t, and the resamples would cost seconds.
BCA_FROM, BCA_TO = 30, 5_000


def rate(
    n_true: int, n: int, *, target: Target = "questions_like_these", nothing: str = "no case"
) -> Estimate | NoEstimate:
    """The share n_true/n with Wilson's interval, which never has zero width. NoEstimate(nothing) when n is 0."""
    if n == 0:
        return NoEstimate(nothing)
    low, high = wilson_ends(n_true / n, n)
    return Estimate(n_true / n, low, high, LEVEL, n, "wilson", target)


def wilson_ends(p: float, n: float) -> tuple[float, float]:
    """The ends of Wilson's interval of a share p of n > 0, which may be an effective number and so no whole one."""
    z = NormalDist().inv_cdf(0.5 + LEVEL / 2)
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # Rounding leaves the ends a hair off 0 and 1 where they are exactly that.
    return 0.0 if p == 0 else max(0.0, centre - half), 1.0 if p == 1 else min(1.0, centre + half)


def jeffreys_ends(n_true: int, n: int) -> tuple[float, float]:
    """The ends of the Jeffreys interval of n_true/n, reaching 0 where nothing is true and 1 where all is; (0, 1) of 0.

    Source: Brown, Cai & DasGupta 2001 (Stat. Sci. 16:101), section 4.1, with the ends that they modify.
    """
    from scipy.special import betaincinv

    a, b = n_true + 0.5, n - n_true + 0.5
    low = 0.0 if n_true == 0 else float(betaincinv(a, b, 0.5 - LEVEL / 2))
    high = 1.0 if n_true == n else float(betaincinv(a, b, 0.5 + LEVEL / 2))
    return low, high


def clopper_pearson_ends(n_true: int, n: int) -> tuple[float, float]:
    """The ends of the Clopper-Pearson interval of n_true/n, which covers at least 95 %; (0, 1) of 0."""
    from scipy.special import betaincinv

    low = 0.0 if n_true == 0 else float(betaincinv(n_true, n - n_true + 1, 0.5 - LEVEL / 2))
    high = 1.0 if n_true == n else float(betaincinv(n_true + 1, n - n_true, 0.5 + LEVEL / 2))
    return low, high


def exact_share(n_true: int, n: int, *, nothing: str = "no case") -> Estimate | NoEstimate:
    """The share n_true/n with the Clopper-Pearson interval, the one that `exact_p` goes with: it covers at least 95 %.

    NoEstimate(nothing) when n is 0. Source: Clopper & Pearson 1934 (Biometrika 26:404).
    """
    if n == 0:
        return NoEstimate(nothing)
    low, high = clopper_pearson_ends(n_true, n)
    return Estimate(n_true / n, low, high, LEVEL, n, "clopper-pearson")


def exact_p(n_true: int, n: int) -> float | None:
    """The two-sided p-value of the exact binomial test of n_true/n against 1/2; None when n is 0."""
    if n == 0:
        return None
    from scipy.stats import binomtest

    return float(binomtest(n_true, n, 0.5).pvalue)


def win_rate(wins: int, losses: int, n: int, *, nothing: str = "no pair") -> Estimate | NoEstimate:
    """The share of n pairs that are won, every pair that is neither won nor lost counting one half.

    The interval is that of the paired difference (wins - losses)/n, halved and moved to [0, 1]; it never has zero
    width. NoEstimate(nothing) when n is 0. Sources: Bonett & Price 2012 (J. Educ. Behav. Stat. 37:479), the adjusted
    Wald interval; Zheng et al. 2023 (MT-bench, section 3.4) for counting an inconsistent pair as a tie.
    """
    if n == 0:
        return NoEstimate(nothing)
    low, high = bonett_price_ends(wins, losses, n)
    value = 0.5 + (wins - losses) / n / 2
    return Estimate(value, 0.5 + low / 2, 0.5 + high / 2, LEVEL, n, "bonett-price")


def paired_difference(
    gained: int, lost: int, n: int, *, target: Target = "questions_like_these", nothing: str = "no pair"
) -> Estimate | NoEstimate:
    """The difference (gained - lost)/n of two shares over the same n > 0 cases, in [-1, 1]; never of zero width.

    `gained` cases are true in the second and not in the first, `lost` the other way round. NoEstimate(nothing) for
    n = 0. Source: Bonett & Price 2012 (J. Educ. Behav. Stat. 37:479).
    """
    if n == 0:
        return NoEstimate(nothing)
    low, high = bonett_price_ends(gained, lost, n)
    return Estimate((gained - lost) / n, low, high, LEVEL, n, "bonett-price", target)


def bonett_price_ends(gained: int, lost: int, n: int) -> tuple[float, float]:
    """The ends of the interval of the paired difference (gained - lost)/n, within [-1, 1]."""
    z = NormalDist().inv_cdf(0.5 + LEVEL / 2)
    p_gained, p_lost = (gained + 1) / (n + 2), (lost + 1) / (n + 2)
    difference = p_gained - p_lost
    half = z * math.sqrt((p_gained + p_lost - difference**2) / (n + 2))
    return max(-1.0, difference - half), min(1.0, difference + half)


def mean_in_unit(values: Sequence[float], seed: int, *, nothing: str = "no case") -> Estimate | NoEstimate:
    """The mean of per-question values in [0, 1] with an interval over questions.

    BCa bootstrap for 30 to 5,000 questions, Student's t otherwise; without an interval where all values are equal
    or there is one only. The order of the values does not matter: the draws are seeded over their sorted order.
    """
    n = len(values)
    if n == 0:
        return NoEstimate(nothing)
    value = math.fsum(values) / n
    if n == 1 or min(values) == max(values):
        return Estimate(value, None, None, LEVEL, n, "none: all values are equal")
    if BCA_FROM <= n <= BCA_TO:
        low, high = _bca(sorted(values), seed)
        if math.isfinite(low) and math.isfinite(high):
            return Estimate(value, low, high, LEVEL, n, "bca bootstrap over questions")
    half = _t_half_width(values, value)
    return Estimate(value, max(0.0, value - half), min(1.0, value + half), LEVEL, n, "t over questions")


def _bca(values: Sequence[float], seed: int) -> tuple[float, float]:
    import numpy as np
    from scipy.stats import bootstrap

    batch = max(1, 2_000_000 // len(values))  # bounds the resamples held at once to 16 MB
    interval = bootstrap(
        (np.asarray(values),),
        np.mean,
        confidence_level=LEVEL,
        n_resamples=BOOTSTRAP_DRAWS,
        method="BCa",
        batch=batch,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(interval.low), float(interval.high)


def _t_half_width(values: Sequence[float], mean: float) -> float:
    from scipy.special import stdtrit

    n = len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    return float(stdtrit(n - 1, 0.5 + LEVEL / 2)) * math.sqrt(variance / n)


def scaled(estimate: Estimate, factor: float) -> Estimate:
    """The estimate times a known factor in [0, 1], as when a share of the cases is known to be zero."""
    return Estimate(
        estimate.value * factor,
        None if estimate.low is None else estimate.low * factor,
        None if estimate.high is None else estimate.high * factor,
        estimate.level,
        estimate.n,
        estimate.method if factor == 1 else f"{estimate.method}, times the answered share",
        estimate.target,
    )
