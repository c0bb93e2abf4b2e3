"""Two runs on the same questions: tests and intervals of their difference, B - A. Judge verdicts or any per-question
score; nothing is corrected here (`prediction_powered.corrected_difference` is).

Sources: Fagerland, Lydersen & Laake 2013 (BMC Med. Res. Methodol. 13:91) for the mid-p test; Miller 2024 (arXiv
2411.00640) for pairing; the others stand at their functions.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from rag_judge.estimates import LEVEL, mean_in_unit, paired_difference
from rag_judge.records import Estimate, NoEstimate

ALL_FLIPS_UP_TO = 15
DRAWS = 10_000
FEWEST_CLUSTERS = 10
SIGNS_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True)
class Changes:
    """The questions with a verdict in both runs, and on how many of them the verdict changed."""

    n: int
    gained: int  # true in B only
    lost: int  # true in A only

    @property
    def difference(self) -> Estimate | NoEstimate:
        """The share in B minus the share in A, with the Bonett-Price interval."""
        return paired_difference(self.gained, self.lost, self.n, nothing="no question has a verdict in both runs")

    @property
    def discordant_share(self) -> float | None:
        """The share of questions on which the runs differ; None without a question."""
        return (self.gained + self.lost) / self.n if self.n else None


def changes(a: Sequence[bool | None], b: Sequence[bool | None]) -> Changes:
    """What changed from A to B; one entry per question, None (no verdict) left out. Raises ValueError for lengths."""
    both = [(bool(x), bool(y)) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    return Changes(len(both), both.count((False, True)), both.count((True, False)))


def mcnemar_p(gained: int, lost: int, *, is_exact: bool = False) -> float:
    """The two-sided p-value of McNemar's test that a change is as likely in either direction; 1 without a change.

    Mid-p by default; exact, for a gate that blocks, never rejects too often.
    """
    from scipy.special import bdtr, gammaln

    n, least = gained + lost, min(gained, lost)
    if n == 0:
        return 1.0
    at_least = math.exp(gammaln(n + 1) - gammaln(least + 1) - gammaln(n - least + 1) - n * math.log(2))
    if gained == lost:
        return 1.0 if is_exact else 1.0 - at_least
    exact = min(1.0, 2 * float(bdtr(least, n, 0.5)))
    return exact if is_exact else exact - at_least


def sign_flip_p(
    differences: Sequence[float], seed: int, clusters: Sequence[Hashable] | None = None
) -> float | NoEstimate:
    """The two-sided p-value that each question's difference could as well have had the other sign.

    All sign patterns up to 15 differences that are not 0, else 10,000 seeded ones; 1 where all are 0. With `clusters`
    (a document, say) whole clusters flip; below 10 of them NoEstimate. The order of questions does not matter. Source:
    Pitman 1937; Phipson & Smyth 2010 (SAGMB 9:39) for the added hit.
    """
    import numpy as np

    if clusters is not None:
        sums: dict[Hashable, list[float]] = {}
        for cluster, difference in zip(clusters, differences, strict=True):
            sums.setdefault(cluster, []).append(difference)
        if len(sums) < FEWEST_CLUSTERS:
            return NoEstimate(f"{len(sums)} clusters; {FEWEST_CLUSTERS} are the fewest for a test")
        differences = [math.fsum(values) for values in sums.values()]
    moved = np.sort(np.abs([difference for difference in differences if difference]))
    # Thirds and their sums are not exact: what differs from the observed sum by rounding only is a tie with it.
    bound = abs(math.fsum(differences)) - 1e-9 * float(moved.sum())
    m = len(moved)
    if m <= ALL_FLIPS_UP_TO:
        signs = (np.arange(2**m)[:, None] >> np.arange(m)) & 1
        return float(np.mean(np.abs((2.0 * signs - 1) @ moved) >= bound))
    rng = np.random.default_rng(seed)
    n_left, n_hits, at_once = DRAWS, 0, max(1, SIGNS_AT_ONCE // m)
    while n_left:
        n_rows = min(at_once, n_left)
        bits = np.unpackbits(np.frombuffer(rng.bytes(n_rows * -(-m // 8)), np.uint8).reshape(n_rows, -1), axis=1)
        n_hits += int((np.abs(2.0 * (bits[:, :m] @ moved) - moved.sum()) >= bound).sum())
        n_left -= n_rows
    return (n_hits + 1) / (DRAWS + 1)


def mean_difference(differences: Sequence[float], seed: int) -> Estimate | NoEstimate:
    """The mean of per-question differences in [-1, 1] with an interval over questions.

    BCa bootstrap for 30 to 5,000 questions, Student's t otherwise; without an interval where all are equal: then
    `Changes.difference` still has one for verdicts.
    """
    halved = mean_in_unit([(difference + 1) / 2 for difference in differences], seed, nothing="no common question")
    if isinstance(halved, NoEstimate):
        return halved
    low, high = (None if end is None else 2 * end - 1 for end in (halved.low, halved.high))
    value = math.fsum(differences) / len(differences)
    return Estimate(value, low, high, LEVEL, halved.n, halved.method)


def independent_difference(a: Estimate, b: Estimate) -> Estimate | NoEstimate:
    """B - A of two rates in [0, 1] over different cases, from their intervals: wide, and weaker than any pairing.

    From Wilson's intervals this is Newcombe's; from corrected rates, MOVER. `n` is the smaller. NoEstimate where one
    has no interval. Sources: Newcombe 1998 (Stat. Med. 17:873), method 10; Zou & Donner 2008 (Stat. Med. 27:1693).
    """
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return NoEstimate("one of the two rates has no interval")
    value = b.value - a.value
    low = value - math.hypot(b.value - b.low, a.high - a.value)
    high = value + math.hypot(b.high - b.value, a.value - a.low)
    method = f"independent rates, {b.method}"
    return Estimate(value, max(-1.0, low), min(1.0, high), LEVEL, min(a.n, b.n), method, b.target)


def holm(p_values: Mapping[str, float | None]) -> dict[str, float | None]:
    """The p-values adjusted for being several, by name: the chance of any false claim stays at the level.

    For the metrics declared before the run. None leaves the family and stays None. Source: Holm 1979 (Scand. J. Stat.
    6:65).
    """
    known = sorted(((p, name) for name, p in p_values.items() if p is not None))
    adjusted: dict[str, float | None] = dict.fromkeys(p_values)
    largest = 0.0
    for rank, (p, name) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[name] = largest
    return adjusted
