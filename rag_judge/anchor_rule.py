"""When a judge counts as drifting: counts of one judge on its anchors in, the rule's answer out. No record is read.

A judge that samples disagrees with itself, so that only what goes beyond its own flips counts. Two rules, either of
which suffices. Net: its pass rate moved by more than the tolerance, McNemar's mid-p is below 0.05, and it changed on
more anchors than it flips on within one run. Scatter: it changed in whatever direction on so many anchors, beside what
the tolerance lets pass, that flips at the upper end of what its two runs show would do so less than once in a hundred
nights; a judge that was exchanged for another one of the same mean strictness is seen by this alone. How often either
errs: `bench/drift.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from rag_judge.estimates import LEVEL, wilson_ends
from rag_judge.paired import Changes, mcnemar_p
from rag_judge.planning import smallest_detectable_difference

TOLERANCE = 0.05
ALPHA = 0.05  # of the net change, over all judges
SCATTER_ALPHA = 0.01  # likewise
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Counts:
    """How one judge's verdicts moved over the anchors that both runs have."""

    n: int  # with a verdict in both runs
    gained: int
    lost: int
    n_open: int = 0  # without one in either run
    n_flipped: int = 0  # in the two runs together: anchors whose first two repeats differ
    n_twice: int = 0  # of so many that were judged twice

    @property
    def flip_rate(self) -> float | None:
        """The judge's disagreement with itself within one run; None where no anchor was judged twice."""
        return self.n_flipped / self.n_twice if self.n_twice else None

    @property
    def most_flips(self) -> float:
        """The upper end of the flip rate's interval, an anchor counting once although it was read in two runs."""
        return wilson_ends(self.n_flipped / self.n_twice, max(1.0, self.n_twice / 2))[1] if self.n_twice else 1.0

    @property
    def net(self) -> float:
        """The pass rate now minus before; 0 without an anchor."""
        return (self.gained - self.lost) / self.n if self.n else 0.0

    @property
    def share(self) -> float:
        """The share of anchors that changed; 0 without an anchor."""
        return (self.gained + self.lost) / self.n if self.n else 0.0

    @property
    def changes(self) -> Changes:
        """The same as paired changes."""
        return Changes(self.n, self.gained, self.lost)

    @property
    def doubtful(self) -> Counts:
        """As if every anchor without a verdict had moved against the rest."""
        n = self.n + self.n_open
        if self.net < 0:
            return replace(self, n=n, gained=self.gained + self.n_open, n_open=0)
        return replace(self, n=n, lost=self.lost + self.n_open, n_open=0)


def is_beyond_flips(counts: Counts) -> bool:
    """True where more anchors changed than the judge flips on within one run, or where its flips are not known.

    Without them McNemar's test stands alone, which noise that goes either way does not mislead.
    """
    return counts.flip_rate is None or counts.share > counts.flip_rate + ROUNDING


def has_moved(counts: Counts, p: float, tolerance: float = TOLERANCE) -> bool:
    """The rule of the net change; `p` is McNemar's mid-p, adjusted where there are several judges."""
    return p < ALPHA and abs(counts.net) > tolerance + ROUNDING and is_beyond_flips(counts)


def has_moved_anyway(counts: Counts, tolerance: float = TOLERANCE, n_judges: int = 1) -> bool:
    """True where the rule of the net change holds whatever the missing verdicts were."""
    worst = counts.doubtful
    p = min(1.0, mcnemar_p(worst.gained, worst.lost) * n_judges)
    return worst.net * counts.net > 0 and has_moved(worst, p, tolerance)


def scatter_p(counts: Counts, tolerance: float = TOLERANCE) -> float:
    """The chance that so many anchors or more change by flips alone; 1 where the flips are not known.

    What of the net change the tolerance lets pass is not counted. A verdict of a majority changes from run to run at
    most as often as two single repeats differ, so that the flip rate is the most that can be expected.
    """
    from scipy.special import bdtrc

    tolerated = math.floor(min(abs(counts.gained - counts.lost), tolerance * counts.n) + ROUNDING)
    n_changed = counts.gained + counts.lost - tolerated
    return float(bdtrc(n_changed - 1, counts.n, counts.most_flips)) if n_changed > 0 and counts.n_twice else 1.0


def has_scattered(counts: Counts, tolerance: float = TOLERANCE, n_judges: int = 1) -> bool:
    """The rule of the changes in either direction."""
    return scatter_p(counts, tolerance) * n_judges < SCATTER_ALPHA


def is_drift(counts: Counts, tolerance: float = TOLERANCE) -> bool:
    """Both rules for a single judge."""
    return has_moved(counts, mcnemar_p(counts.gained, counts.lost), tolerance) or has_scattered(counts, tolerance)


def fewest_anchors(n_judges: int = 1) -> int:
    """The fewest anchors on which a change, all of them turning one way, is told from chance: 5 for one judge."""
    n = 1
    while mcnemar_p(n, 0) * n_judges >= ALPHA:
        n += 1
    return n


def smallest_net(n: int, flip_rate: float | None, n_judges: int = 1) -> float | None:
    """The least net change that n anchors show in four of five nights; None where they show none.

    Planned for a judge that turns all one way, on top of flips at its rate (0 where that is not known).
    """

    def is_shown(net: float) -> bool:
        share = min(1.0, net + (flip_rate or 0.0))
        least = smallest_detectable_difference(n, share, level=1 - (1 - LEVEL) / n_judges)
        return least is not None and least <= net

    if n < fewest_anchors(n_judges) or not is_shown(1.0):
        return None
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if is_shown(middle) else (middle, high)
    return high
