"""Two raters on the same cases: counts, agreement, kappa, AC1, alpha, and what a judge's verdicts are worth.

Arrays or counts in, `Estimate` out. The raters may be judge and human or two humans. Nothing here says what people
would have said of the cases that they did not see; that is `poststratification` and `calibration`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rag_judge.estimates import BOOTSTRAP_DRAWS, LEVEL, rate, wilson_ends
from rag_judge.records import Estimate, NoEstimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[Any]

DRAWS = 20_000
CASES_FOR_SCORE_INTERVAL = 30
UNITS_FOR_ALPHA_INTERVAL = 20
TAILS = (0.5 - LEVEL / 2, 0.5 + LEVEL / 2)
Weights = Literal["quadratic", "linear", "none"]
AlphaLevel = Literal["nominal", "ordinal", "interval"]


@dataclass(frozen=True, slots=True)
class Confusion:
    """Judge against human, or second against first rater; positive is pass, as in `tp` = both pass.

    Whole counts, or, under unequal sampling probabilities, shares times the effective number of labels. `n` is the
    number of cases with both verdicts.
    """

    tp: float  # human pass, judge pass
    fn: float  # human pass, judge fail
    fp: float  # human fail, judge pass
    tn: float  # human fail, judge fail
    n: int

    @property
    def total(self) -> float:
        """The number of labels that the counts are worth; `n` where all weigh the same."""
        return self.tp + self.fn + self.fp + self.tn


def confusion(judge: Sequence[bool | None], human: Sequence[bool | None]) -> Confusion:
    """The counts of a judge's verdicts against a human's on the same cases, in the same order.

    Cases where either is None are left out. Raises ValueError where the lengths differ.
    """
    n = Counter(zip(judge, human, strict=True))
    tp, fn, fp, tn = n[True, True], n[False, True], n[True, False], n[False, False]
    return Confusion(tp, fn, fp, tn, tp + fn + fp + tn)


def weighted_confusion(
    judge: Sequence[bool | None], human: Sequence[bool | None], probabilities: Sequence[float | None]
) -> Confusion:
    """The counts with each case weighing 1/probability of its entering the review, scaled to Kish's effective n.

    With equal probabilities these are the plain counts. Raises ValueError for a labelled case whose probability is
    unknown or not above 0. Sources: Begg & Greenes 1983 (Biometrics 39:207); Kish 1965, section 11.7.
    """
    alike: Counter[tuple[bool, bool, float]] = Counter()
    for verdict, label, probability in zip(judge, human, probabilities, strict=True):
        if verdict is None or label is None:
            continue
        if probability is None or not probability > 0:
            raise ValueError(f"a labelled case entered the review with probability {probability}")
        alike[bool(verdict), bool(label), probability] += 1
    if len({probability for _, _, probability in alike}) <= 1:
        return confusion(judge, human)
    weights = [(n / probability, n / probability**2) for (_, _, probability), n in alike.items()]
    scale = math.fsum(w for w, _ in weights) / math.fsum(w2 for _, w2 in weights)

    def cell(verdict: bool, label: bool) -> float:
        return scale * math.fsum(n / p for (said, true, p), n in alike.items() if (said, true) == (verdict, label))

    return Confusion(cell(True, True), cell(False, True), cell(True, False), cell(False, False), alike.total())


def raw_agreement(cells: Confusion) -> Estimate | NoEstimate:
    """The share of cases on which both say the same, with Wilson's interval at the (effective) number of labels."""
    if cells.n == 0:
        return NoEstimate("no case has both verdicts")
    share = min(1.0, (cells.tp + cells.tn) / cells.total)
    low, high = wilson_ends(share, cells.total)
    is_whole = math.isclose(cells.total, cells.n)
    return Estimate(share, low, high, LEVEL, cells.n, "wilson" if is_whole else "weighted, wilson at the effective n")


def sensitivity(cells: Confusion) -> Estimate | NoEstimate:
    """Of the cases that the human passes, the share that the judge passes; for plain counts of a simple sample.

    Where the review was drawn by verdict this is wrong: see `poststratification.weighted_sensitivity`.
    """
    return rate(round(cells.tp), round(cells.tp + cells.fn), nothing="no labelled case passes by human judgement")


def specificity(cells: Confusion) -> Estimate | NoEstimate:
    """Of the cases that the human fails, the share that the judge fails; as `sensitivity`, for plain counts."""
    return rate(round(cells.tn), round(cells.tn + cells.fp), nothing="no labelled case fails by human judgement")


def positive_predictive_value(cells: Confusion) -> Estimate | NoEstimate:
    """Of the cases that the judge passes, the share that the human passes; right under sampling by verdict, too."""
    return rate(round(cells.tp), round(cells.tp + cells.fp), nothing="no case that the judge passed is labelled")


def negative_predictive_value(cells: Confusion) -> Estimate | NoEstimate:
    """Of the cases that the judge fails, the share that the human fails; right under sampling by verdict, too."""
    return rate(round(cells.tn), round(cells.tn + cells.fn), nothing="no case that the judge failed is labelled")


def cohen_kappa(cells: Confusion, seed: int) -> Estimate | NoEstimate:
    """Cohen's kappa of two yes/no raters; its interval is that of 20,000 seeded Dirichlet tables, half a case added
    to each cell, and always holds the value.

    NoEstimate where both always give one and the same verdict: 0/0. Source: Cohen 1960 (EPM 20:37).
    """
    if cells.n == 0:
        return NoEstimate("no case has both verdicts")
    if cells.fn == cells.fp == 0 and 0 in (cells.tp, cells.tn):
        return NoEstimate("both give one and the same verdict on every case, so that kappa is 0/0")
    return _dirichlet(cells, seed, _kappa)


def gwet_ac1(cells: Confusion, seed: int) -> Estimate | NoEstimate:
    """Gwet's AC1 of two yes/no raters; 1 where they are unanimous. The interval is as for `cohen_kappa`.

    Source: Gwet 2008 (Br. J. Math. Stat. Psychol. 61:29).
    """
    return NoEstimate("no case has both verdicts") if cells.n == 0 else _dirichlet(cells, seed, _ac1)


def _kappa(tp: Any, fn: Any, fp: Any, tn: Any) -> Any:
    """Kappa of shares that sum to 1; numbers or arrays."""
    expected = (tp + fn) * (tp + fp) + (tn + fp) * (tn + fn)
    return (tp + tn - expected) / (1 - expected)


def _ac1(tp: Any, fn: Any, fp: Any, tn: Any) -> Any:
    """AC1 of shares that sum to 1; numbers or arrays."""
    passing = tp + (fn + fp) / 2
    expected = 2 * passing * (1 - passing)
    return (tp + tn - expected) / (1 - expected)


def _dirichlet(cells: Confusion, seed: int, coefficient: Any) -> Estimate:
    import numpy as np

    counts = np.array([cells.tp, cells.fn, cells.fp, cells.tn], float)
    value = float(coefficient(*(counts / counts.sum())))
    draws = np.random.default_rng(seed).dirichlet(counts + 0.5, DRAWS)
    low, high = np.quantile(coefficient(*draws.T), TAILS)
    # Half a case in every cell draws the tables inwards, away from perfect agreement.
    return Estimate(value, min(float(low), value), max(float(high), value), LEVEL, cells.n, "dirichlet, seeded")


def rating_table(
    first: Sequence[Hashable | None], second: Sequence[Hashable | None], levels: Sequence[Hashable]
) -> tuple[tuple[int, ...], ...]:
    """The counts of two raters' ratings, rows the first, over all `levels` in their order; None is left out.

    Raises ValueError for a rating that is none of the levels.
    """
    n = Counter((a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None)
    unknown = {rating for pair in n for rating in pair} - set(levels)
    if unknown:
        raise ValueError(f"the rating {min(map(repr, unknown))} is none of {list(levels)}")
    return tuple(tuple(n[row, column] for column in levels) for row in levels)


def weighted_kappa(
    table: Sequence[Sequence[float]], seed: int, weights: Weights = "quadratic"
) -> Estimate | NoEstimate:
    """Kappa of scores that are closer or further apart, from a `rating_table` that keeps every level.

    The counts of cases that weigh unequally sum to the effective number of cases.

    The interval is a percentile bootstrap over cases, seeded; below 30 cases there is none. NoEstimate where both
    give one and the same level everywhere. Source: Cohen 1968 (Psychol. Bull. 70:213).
    """
    import numpy as np

    counts = np.asarray(table, float)
    n = round(counts.sum())
    if not counts.any():
        return NoEstimate("no case has both ratings")
    shares, apart = counts / counts.sum(), _distances(len(counts), weights)
    value = float(_kappa_of_tables(shares[None], apart)[0])
    if math.isnan(value):
        return NoEstimate("both give one and the same rating on every case, so that kappa is 0/0")
    method = f"{weights} weights" if weights != "none" else "unweighted"
    if n < CASES_FOR_SCORE_INTERVAL:
        return Estimate(value, None, None, LEVEL, n, f"{method}; no interval below {CASES_FOR_SCORE_INTERVAL} cases")
    drawn = np.random.default_rng(seed).multinomial(n, shares.ravel(), BOOTSTRAP_DRAWS)
    kappas = _kappa_of_tables(drawn.reshape(-1, *counts.shape) / n, apart)
    return _bootstrapped(value, kappas, n, method)


def _distances(n_levels: int, weights: Weights) -> Floats:
    import numpy as np

    steps = np.abs(np.subtract.outer(np.arange(n_levels), np.arange(n_levels))).astype(float)
    powers: dict[Weights, Floats] = {"quadratic": steps**2, "linear": steps, "none": (steps > 0).astype(float)}
    return powers[weights]


def _kappa_of_tables(shares: Floats, apart: Floats) -> Floats:
    """Kappa per table of shares, stacked along the first axis; NaN where it is 0/0."""
    import numpy as np

    expected = np.einsum("ti,tj,ij->t", shares.sum(2), shares.sum(1), apart)
    observed = np.einsum("tij,ij->t", shares, apart)
    return np.where(expected > 0, 1 - observed / np.where(expected > 0, expected, 1), np.nan)


def kappa_standard_error(table: Sequence[Sequence[int]], weights: Weights = "none") -> float | None:
    """The asymptotic standard error of (weighted) kappa; None where kappa is 0/0 or the error comes out as 0.

    Too small below about 100 cases: for a comparison with other tools, no interval rests on it. Source: Fleiss, Cohen
    & Everitt 1969 (Psychol. Bull. 72:323).
    """
    import numpy as np

    counts = np.asarray(table, float)
    n = counts.sum()
    if n == 0:
        return None
    shares, apart = counts / n, _distances(len(counts), weights)
    close = 1 - apart / max(1.0, apart.max())
    kappa = float(_kappa_of_tables(shares[None], apart)[0])
    if math.isnan(kappa):
        return None
    rows, columns = shares.sum(1), shares.sum(0)
    expected = float(rows @ close @ columns)
    means = (close @ columns)[:, None] + (rows @ close)[None, :]
    spread = (shares * (close - means * (1 - kappa)) ** 2).sum() - (kappa - expected * (1 - kappa)) ** 2
    error = math.sqrt(max(0.0, float(spread)) / n) / (1 - expected)
    return error if error > 1e-12 else None


def ac1_standard_error(table: Sequence[Sequence[int]]) -> float | None:
    """The asymptotic standard error of AC1 over all levels of the table; None below two cases or where it is 0.

    As `kappa_standard_error`, no interval rests on it. Source: Gwet 2008 (Br. J. Math. Stat. Psychol. 61:29).
    """
    import numpy as np

    counts = np.asarray(table, float)
    n, n_levels = counts.sum(), len(counts)
    if n < 2 or n_levels < 2:
        return None
    mean = (counts.sum(1) + counts.sum(0)) / (2 * n)
    expected = float((mean * (1 - mean)).sum()) / (n_levels - 1)
    by_case = (np.eye(n_levels) - expected) / (1 - expected)
    value = float((counts * by_case).sum() / n)
    expected_by_case = (1 - (mean[:, None] + mean[None, :]) / 2) / (n_levels - 1)
    by_case = by_case - 2 * (1 - value) * (expected_by_case - expected) / (1 - expected)
    error = math.sqrt(float((counts * (by_case - value) ** 2).sum()) / (n * (n - 1)))
    return error if error > 1e-12 else None


def krippendorff_alpha(
    raters: Sequence[Sequence[float | None]], seed: int, level: AlphaLevel = "nominal"
) -> Estimate | NoEstimate:
    """Krippendorff's alpha of two or more raters with gaps: a row a rater, a column a case, None a missing rating.

    Cases with fewer than two ratings are left out. The interval resamples cases, seeded; below 20 cases there is none.
    NoEstimate below two different ratings. Source: Hayes & Krippendorff 2007 (Commun. Methods Meas. 1:77).
    """
    import numpy as np

    units = Counter(tuple(sorted(r for r in unit if r is not None)) for unit in zip(*raters, strict=True))
    units = Counter({unit: n for unit, n in units.items() if len(unit) >= 2})
    levels = sorted({rating for unit in units for rating in unit})
    if len(levels) < 2:
        return NoEstimate("fewer than two different ratings on cases with two or more of them")
    patterns = np.array([_coincidences(unit, levels) for unit in sorted(units)]).reshape(len(units), -1)
    counts = np.array([units[unit] for unit in sorted(units)])
    n = int(counts.sum())
    value = float(_alpha((counts[None] @ patterns), levels, level)[0])
    if n < UNITS_FOR_ALPHA_INTERVAL:
        return Estimate(value, None, None, LEVEL, n, f"{level}; no interval below {UNITS_FOR_ALPHA_INTERVAL} cases")
    drawn = np.random.default_rng(seed).multinomial(n, counts / n, BOOTSTRAP_DRAWS)
    return _bootstrapped(value, _alpha(drawn @ patterns, levels, level), n, level)


def _bootstrapped(value: float, resampled: Floats, n: int, method: str) -> Estimate:
    """The value with the middle of its resampled values; without an interval where they do not differ."""
    import numpy as np

    low, high = np.nanquantile(resampled, TAILS)
    if high - low < 1e-9:
        return Estimate(value, None, None, LEVEL, n, f"{method}; no interval, as no resampled value differs")
    return Estimate(value, float(low), float(high), LEVEL, n, f"{method}, bootstrap over cases, seeded")


def _coincidences(unit: Sequence[float], levels: Sequence[float]) -> Floats:
    """How often each two ratings of a case meet, over the pairs of different raters."""
    import numpy as np

    counts = np.array([unit.count(rating) for rating in levels], float)
    return (np.outer(counts, counts) - np.diag(counts)) / (len(unit) - 1)


def _alpha(coincidences: Floats, levels: Sequence[float], level: AlphaLevel) -> Floats:
    """Alpha per row of flattened coincidence matrices; NaN where only one rating occurs."""
    import numpy as np

    size = len(levels)
    met = coincidences.reshape(-1, size, size)
    n_each = met.sum(2)
    n = n_each.sum(1)
    apart = np.broadcast_to(_metric(n_each, levels, level), met.shape)
    expected = np.einsum("ti,tj,tij->t", n_each, n_each, apart)
    observed = (met * apart).sum((1, 2))
    return np.where(expected > 0, 1 - (n - 1) * observed / np.where(expected > 0, expected, 1), np.nan)


def _metric(n_each: Floats, levels: Sequence[float], level: AlphaLevel) -> Floats:
    """The squared distance of each two ratings; for ordinal ones it depends on how often those between occur."""
    import numpy as np

    if level == "nominal":
        return 1 - np.eye(len(levels))
    if level == "interval":
        steps: Floats = np.subtract.outer(np.asarray(levels, float), np.asarray(levels, float))
        return steps**2
    middle = n_each.cumsum(1) - n_each / 2  # the mid-rank of each level
    between: Floats = middle[:, :, None] - middle[:, None, :]
    return between**2
