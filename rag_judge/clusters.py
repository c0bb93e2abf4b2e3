"""Rates and quantiles over rows that come in clusters, as the questions of one person do: arrays in, `Estimate` out.

Rows of a cluster resemble each other, so that a hundred questions of one person tell less than those of a hundred.
Where every cluster is a single row, a rate is that of `estimates`. What a cluster is, is not said here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence

from rag_judge.estimates import LEVEL, rate, wilson_ends
from rag_judge.records import Estimate, NoEstimate

BEYOND = (1 - LEVEL) / 2  # chance that may be left outside either end of an interval


def clustered_rate(
    values: Sequence[bool], clusters: Sequence[Hashable], *, nothing: str = "no row"
) -> Estimate | NoEstimate:
    """The share of true values, with Wilson's interval at the effective number of rows.

    NoEstimate(nothing) where there is no value.
    """
    n = len(values)
    if not n or len(set(clusters)) == n:
        return rate(sum(values), n, nothing=nothing)
    p = sum(values) / n
    low, high = wilson_ends(p, effective_n(values, clusters))
    return Estimate(p, low, high, LEVEL, n, "wilson at the effective n of clusters")


def effective_n(values: Sequence[bool], clusters: Sequence[Hashable]) -> float:
    """How many independent rows would tell the share of true values as closely; from 1 to the number of rows.

    The number of clusters where all values are equal, 1 for a single cluster. Sources: the sandwich variance with its
    small-sample factor (CR1), Cameron & Miller 2015 (J. Hum. Resour. 50:317); n from it, Korn & Graubard 1998.
    """
    n, n_true = len(values), sum(values)
    residuals: dict[Hashable, float] = defaultdict(float)
    p = n_true / n
    for value, cluster in zip(values, clusters, strict=True):
        residuals[cluster] += value - p
    n_clusters = len(residuals)
    if n_clusters in (1, n):
        return n_clusters
    squares = math.fsum(residual**2 for residual in residuals.values())
    variance = n_clusters / (n_clusters - 1) * squares / n**2
    if n_true in (0, n) or variance < 1e-18:
        return n_clusters
    return min(p * (1 - p) / variance, n)


def clustered_quantile(
    values: Sequence[float], q: float, clusters: Sequence[Hashable], *, nothing: str = "no row"
) -> Estimate | NoEstimate:
    """The quantile q of the values, linear between neighbours; its interval is where Wilson's interval of q leads.

    Without an interval where too many values are equal. NoEstimate(nothing) for no value.
    Source: Woodruff 1952 (JASA 47:635).
    """
    if not values:
        return NoEstimate(nothing)
    ordered = sorted(values)
    value = _quantile(ordered, q)
    ends = wilson_ends(q, effective_n([one <= value for one in values], clusters))
    low, high = (_quantile(ordered, end) for end in ends)
    if low == high:
        return Estimate(value, None, None, LEVEL, len(values), "none: too many values are equal")
    return Estimate(value, low, high, LEVEL, len(values), "woodruff at the effective n of clusters")


def rows_for_quantile(q: float) -> int:
    """The least number of independent rows of which the largest lies above quantile q (of 0.5 or more) surely enough.

    With fewer the interval has no upper end: the quantile may lie above all that was seen.
    """
    return math.ceil(math.log(BEYOND) / math.log(q))


def _quantile(ordered: Sequence[float], q: float) -> float:
    at = q * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    if ordered[below] == ordered[above]:
        return ordered[below]
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])
