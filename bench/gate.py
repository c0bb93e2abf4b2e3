"""How often a gate holds a system that is no worse: pairs of identical systems, each run compared with the other.

`python -m bench gate` prints a table; docs/gate.md shows it. The bound is the level of one end of a 95 % interval.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from rag_judge.paired import Changes, mcnemar_p
from rag_judge.records import Estimate

N_PAIRS = 2_000
BOUND = 0.025
RATES = (0.7, 0.85, 0.95)
SIZES = (20, 80, 400)
SAME = (0.0, 0.7)  # share of questions on which both runs give one and the same answer, as retrieval held fixed does


def gate_lines() -> Iterator[str]:
    """The table, a line at a time, and last whether any cell is held more often than the bound, beyond chance."""
    yield "| Cases | Rate | Same answers | Held | Not enough evidence to say it is no worse |"
    yield "|---|---|---|---|---|"
    draw, is_kept = random.Random(11), True
    for size in SIZES:
        for rate in RATES:
            for same in SAME:
                held, open_ = _held(draw, size, rate, same)
                yield (f"| {size} | {rate:.0%} | {same:.0%} | {held / N_PAIRS:.2%} | {open_ / N_PAIRS:.0%} |")
                # Three standard errors above the bound would be a fault.
                is_kept &= held / N_PAIRS <= BOUND + 3 * (BOUND * (1 - BOUND) / N_PAIRS) ** 0.5
    yield f"held at most {BOUND:.1%} in every cell, beyond chance: {'yes' if is_kept else 'NO'}"


def _held(draw: random.Random, size: int, rate: float, same: float) -> tuple[int, int]:
    """Of so many pairs: how many would be held with no regression allowed, and how many left open."""
    held = open_ = 0
    for _ in range(N_PAIRS):
        gained = lost = 0
        for _ in range(size):
            before = draw.random() < rate
            after = before if draw.random() < same else draw.random() < rate
            gained += after and not before
            lost += before and not after
        difference = Changes(size, gained, lost).difference
        assert isinstance(difference, Estimate)
        assert difference.low is not None
        assert difference.high is not None
        low, high = difference.low, difference.high
        # As gate.py: the interval, and the exact test with it.
        is_held = high < 0 and mcnemar_p(gained, lost, is_exact=True) <= 0.05
        held += is_held
        open_ += low <= 0 and not is_held
    return held, open_
