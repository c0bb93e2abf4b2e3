"""Which cases people are to label: strata, how many of each, and which ones, with known probabilities.

Each stratum has one seeded order, and a sample is the front of it: a larger sample holds every smaller one, and
neither depends on the order of the cases. Nothing here looks at a label. Source: Cochran 1977, chapter 5.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

FLOOR = 4
PASSED, FAILED, UNDECIDED = "pass", "fail", "undecided"


@dataclass(frozen=True, slots=True)
class DrawnStratum:
    """One stratum of a review sample."""

    stratum: str
    n_cases: int
    n_drawn: int
    probability: float  # with which each of its cases was drawn


@dataclass(frozen=True, slots=True)
class ReviewSample:
    """The drawn cases, in the order to review them in, and the design that makes them count for all."""

    ids: tuple[str, ...]
    strata: tuple[DrawnStratum, ...]  # by name
    probabilities: Mapping[str, float]  # of every case, drawn or not
    seed: int


def review_strata(judge: Sequence[bool | None], n: int, types: Sequence[str] | None = None) -> list[str]:
    """The stratum of each case: `pass`, `fail` or `undecided`, each divided by type (`fact/pass`) where all the
    divisions would still get at least four of n labels, or all their cases.

    Raises ValueError where the lengths differ.
    """
    names = [UNDECIDED if verdict is None else PASSED if verdict else FAILED for verdict in judge]
    if types is None:
        return names
    divided = [name if name == UNDECIDED else f"{kind}/{name}" for name, kind in zip(names, types, strict=True)]
    sizes = {name: size for name, size in Counter(divided).items() if name != UNDECIDED}
    n_undecided = names.count(UNDECIDED)
    return divided if sum(min(FLOOR, size) for size in sizes.values()) <= n - n_undecided else names


def allocate(
    sizes: Mapping[str, int],
    n: int,
    weights: Mapping[str, float] | None = None,
    certain: Collection[str] = (UNDECIDED,),
) -> dict[str, int]:
    """How many of n labels each stratum gets: at least min(4, its size), the rest in proportion to its size.

    The `certain` strata are taken whole. They count towards n but never take the floors of the others, so that the sum
    can pass n where many cases are undecided; below the sum of the floors, these are filled evenly. `weights` replace
    the sizes: twice the size of the failed draws twice as many of them; Neyman's come from `planning.neyman_shares`.
    No stratum gets fewer when n grows. Raises ValueError for a negative n, size or weight.
    """
    if n < 0 or any(size < 0 for size in sizes.values()) or any(w < 0 for w in (weights or {}).values()):
        raise ValueError("the number of labels, sizes and weights cannot be negative")
    given = {name: sizes[name] for name in sorted(sizes) if name in certain}
    open_sizes = {name: sizes[name] for name in sorted(sizes) if name not in certain}
    n_floors = sum(min(FLOOR, size) for size in open_sizes.values())
    n_left = min(sum(open_sizes.values()), max(n - sum(given.values()), min(n, n_floors)))
    pulls = {name: float((weights or {}).get(name, size)) for name, size in open_sizes.items()}
    got = dict.fromkeys(open_sizes, 0)
    for _ in range(n_left):
        below = [name for name, size in open_sizes.items() if got[name] < min(FLOOR, size)]
        if below:
            chosen = min(below, key=lambda name: (got[name], -pulls[name], name))
        else:
            # Webster's divisors, a label at a time: no stratum ever loses one when n grows.
            free = [name for name, size in open_sizes.items() if got[name] < size]
            chosen = max(free, key=lambda name: (pulls[name] / (2 * got[name] + 1), open_sizes[name], name))
        got[chosen] += 1
    return {name: (given | got)[name] for name in sizes}


def draw(
    ids: Sequence[str],
    strata: Sequence[str],
    n: int,
    seed: int,
    weights: Mapping[str, float] | None = None,
    certain: Collection[str] = (UNDECIDED,),
) -> ReviewSample:
    """The sample of about n cases, simple random within each stratum, `allocate` saying how many.

    One id and one stratum per case. The sample for a larger n, all else the same, holds this one; the order to review
    in mixes the strata, so that it tells nobody the verdict. Raises ValueError for repeated ids or differing lengths.
    """
    if len(set(ids)) != len(ids):
        raise ValueError("an id stands for two cases")
    by_stratum: dict[str, list[str]] = {}
    for case_id, stratum in zip(ids, strata, strict=True):
        by_stratum.setdefault(stratum, []).append(case_id)
    sizes = {name: len(by_stratum[name]) for name in sorted(by_stratum)}
    n_of = allocate(sizes, n, weights, certain)
    drawn: list[str] = []
    for name in sizes:
        drawn += seeded_order(by_stratum[name], seed)[: n_of[name]]
    shares = {name: n_of[name] / size for name, size in sizes.items()}
    return ReviewSample(
        ids=tuple(seeded_order(drawn, seed, purpose="review")),
        strata=tuple(DrawnStratum(name, sizes[name], n_of[name], shares[name]) for name in sizes),
        probabilities={case_id: shares[stratum] for case_id, stratum in zip(ids, strata, strict=True)},
        seed=seed,
    )


def seeded_order(ids: Sequence[str], seed: int, purpose: str = "draw") -> list[str]:
    """The ids in an order that depends on the seed and on nothing else: not on how they came, nor on the other ids."""

    def place(case_id: str) -> bytes:
        return hashlib.sha256(f"{purpose}\0{seed}\0{case_id}".encode("utf-8", "surrogatepass")).digest()

    return sorted(ids, key=place)


def n_for_fraction(n_cases: int, fraction: float) -> int:
    """The number of cases that a fraction in (0, 1] comes to, rounded up. Raises ValueError outside it."""
    if not 0 < fraction <= 1:
        raise ValueError(f"a fraction of the cases lies above 0 and at most at 1, not {fraction}")
    # 0.15 of 80 is 12; in floating point it is 12.000000000000002 or so, and must not become 13.
    return math.ceil(round(n_cases * fraction, 9))
