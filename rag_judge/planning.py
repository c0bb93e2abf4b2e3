"""How much is needed: labels for a width, cases for a width, the smallest difference that can be seen.

What is planned from are shares as they look now, so that every number is a forecast.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, stdev

from rag_judge.estimates import LEVEL, wilson_ends
from rag_judge.poststratification import Stratum
from rag_judge.records import Target

POWER = 0.8
HALF_WIDTHS = (0.10, 0.05)


@dataclass(frozen=True, slots=True)
class LabelsNeeded:
    """The labels that a half-width of the corrected pass rate takes. None: no number of labels reaches it."""

    n: int | None  # in all, those there are included
    more: int | None
    shares: tuple[float, ...]  # of the labels, per stratum in the order given: Neyman's allocation


def neyman_shares(strata: Sequence[Stratum]) -> tuple[float, ...]:
    """The share of the labels that each stratum should get: in proportion to W * sqrt(p(1 - p)), from those so far.

    p is drawn half a label towards one half, so that a stratum in which all agree keeps a share. Source: Neyman 1934;
    Cochran 1977, section 5.5.
    """
    sizes = [s.n_cases * math.sqrt(_spread(s)) for s in strata]
    return tuple(size / math.fsum(sizes) for size in sizes) if any(sizes) else tuple(0.0 for _ in sizes)


def labels_needed(
    strata: Sequence[Stratum], half_width: float, target: Target = "questions_like_these"
) -> LabelsNeeded:
    """The labels with which the corrected pass rate's interval has about this half-width.

    For questions like these the cases themselves set a bound that no label can pass: more cases are needed then.
    Raises ValueError for a half-width that is not above 0.
    """
    if not half_width > 0:
        raise ValueError(f"a half-width is above 0, not {half_width}")
    n_cases = sum(s.n_cases for s in strata)
    shares = neyman_shares(strata)
    if not n_cases:
        return LabelsNeeded(None, None, shares)
    within = math.fsum((s.n_cases / n_cases) ** 2 * _spread(s) / r for s, r in zip(strata, shares, strict=True) if r)
    allowed = (half_width / _z(0.5 + LEVEL / 2)) ** 2
    if target == "this_set":
        allowed += math.fsum(s.n_cases * _spread(s) for s in strata) / n_cases**2
    else:
        mean = math.fsum(s.n_cases * _drawn_in(s) for s in strata) / n_cases
        allowed -= math.fsum(s.n_cases * (_drawn_in(s) - mean) ** 2 for s in strata) / n_cases**2
    n = math.ceil(within / allowed) if allowed > 0 else None
    if n is None or n > n_cases:
        return LabelsNeeded(None, None, shares)
    return LabelsNeeded(n, max(0, n - sum(s.n_reviewed for s in strata)), shares)


def labels_for_half_width(half_width: float, p: float, n_cases: int | None = None) -> int:
    """The labels of a simple sample at which Wilson's half-width is at most this, when the share is p.

    With `n_cases`: for what people would say of exactly these cases, of which the labelled ones are known. Raises
    ValueError for a half-width that is not above 0 or a p outside [0, 1].
    """
    if not half_width > 0 or not 0 <= p <= 1:
        raise ValueError(f"needs a half-width above 0 and a share in [0, 1], not {half_width} and {p}")

    def is_enough(n: int) -> bool:
        low, high = wilson_ends(p, n)
        return (high - low) / 2 <= half_width

    most = 1
    while not is_enough(most):
        most *= 2
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if is_enough(middle) else (middle, most)
    return most if n_cases is None else -(-most * n_cases // (n_cases + most - 1))


def smallest_detectable_difference(
    n: float, discordant_share: float, power: float = POWER, level: float = LEVEL
) -> float | None:
    """The least paired difference that a McNemar test over n cases finds with this power; None where none can be.

    `discordant_share` is the share of cases on which the two runs differ, in (0, 1]; with clusters, n is divided by
    the design effect. Sources: Connor 1987 (Biometrics 43:207); Miettinen 1968. Raises ValueError for a share outside
    [0, 1].
    """
    if not 0 <= discordant_share <= 1:
        raise ValueError(f"a share lies in [0, 1], not {discordant_share}")
    z_level, z_power = _z(0.5 + level / 2), _z(power)
    root = math.sqrt(discordant_share)

    def missing(difference: float) -> float:
        needed = z_level * root + z_power * math.sqrt(max(0.0, discordant_share - difference**2))
        return needed - difference * math.sqrt(n)

    if discordant_share == 0 or missing(discordant_share) > 0:
        return None
    # What is missing falls as the difference grows, from above 0 to at most 0: halved until a double cannot tell.
    low, high = 0.0, discordant_share
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if missing(middle) > 0 else (low, middle)
    return high


def smallest_detectable_mean(differences: Sequence[float], power: float = POWER, level: float = LEVEL) -> float | None:
    """The least mean of paired differences that so many questions find with this power, when they spread as these do.

    None for fewer than two questions, and where all differ alike. Source: Miller 2024 (arXiv 2411.00640), section 5.
    """
    if len(differences) < 2 or min(differences) == max(differences):
        return None
    return (_z(0.5 + level / 2) + _z(power)) * stdev(differences) / math.sqrt(len(differences))


def _z(p: float) -> float:
    return NormalDist().inv_cdf(p)


def _drawn_in(stratum: Stratum) -> float:
    return (stratum.n_human_pass + 0.5) / (stratum.n_reviewed + 1)


def _spread(stratum: Stratum) -> float:
    return _drawn_in(stratum) * (1 - _drawn_in(stratum))
