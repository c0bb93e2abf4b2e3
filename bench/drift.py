"""How often the nightly check of the judge's anchors alarms for nothing, and how much of a drift it sees.

`python -m bench drift` prints a table. A judge's flips stand on a part of the anchors where it tosses a coin, which is
the worst case: there another night differs as often as another repeat. A drift turns that share of all anchors from a
certain pass to a certain fail; an exchange turns half of that share each way, so that the pass rate stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from rag_judge.anchor_rule import Counts, is_drift, smallest_net

N_HISTORIES, N_NIGHTS, N_REPEATS = 2_000, 30, 3
SIZES, FLIPS, NETS, EXCHANGED = (30, 60), (0.0, 0.05, 0.15), (0.1, 0.2, 0.3), 0.4
PASS_RATE = 0.6  # of the anchors on which the judge is certain

Grid = np.ndarray


def drift_lines() -> Iterator[str]:
    """The table, a line at a time; a history is one reference run and thirty nights held against it."""
    seen = " | ".join([*(f"{net:.0%} drift seen" for net in NETS), f"{EXCHANGED:.0%} exchange seen"])
    yield f"| Anchors | Flip rate | False alarm a night | In 30 nights | {seen} | Planned |"
    yield "|---|---|---|---|---|---|---|---|---|"
    draw = np.random.default_rng(13)
    for size in SIZES:
        for flip in FLIPS:
            alarms = _alarms(draw, size, flip, n_nights=N_NIGHTS)
            power = [_alarms(draw, size, flip, to_fail=net) for net in NETS]
            power.append(_alarms(draw, size, flip, to_fail=EXCHANGED / 2, to_pass=EXCHANGED / 2))
            smallest = smallest_net(size, flip)
            yield (
                f"| {size} | {flip:.0%} | {alarms.mean():.1%} | {alarms.any(axis=1).mean():.0%} "
                f"| {' | '.join(f'{seen.mean():.0%}' for seen in power)} "
                f"| {'none' if smallest is None else f'{smallest:.0%}'} |"
            )


def _alarms(
    draw: np.random.Generator, size: int, flip: float, *, to_fail: float = 0.0, to_pass: float = 0.0, n_nights: int = 1
) -> Grid:
    """Whether each night of each history alarms."""
    chances = _chances(draw, size, flip)
    turned = chances.copy()
    for before, now in zip(chances, turned, strict=True):
        now[np.flatnonzero(before == 1.0)[: round(to_fail * size)]] = 0.0
        now[np.flatnonzero(before == 0.0)[: round(to_pass * size)]] = 1.0
    first, first_flips = _judged(draw, chances)
    alarms = np.zeros((N_HISTORIES, n_nights), bool)
    for night in range(n_nights):
        now, flips = _judged(draw, turned)
        gained, lost = (now & ~first).sum(axis=1), (first & ~now).sum(axis=1)
        counted = zip(gained.tolist(), lost.tolist(), (first_flips + flips).tolist(), strict=True)
        alarms[:, night] = [_is_drift(size, *numbers) for numbers in counted]
    return alarms


def _chances(draw: np.random.Generator, size: int, flip: float) -> Grid:
    """The chance of a pass on each anchor: a coin on twice the flip rate of them, the others certain."""
    chances = (draw.random((N_HISTORIES, size)) < PASS_RATE).astype(float)
    chances[draw.random((N_HISTORIES, size)) < 2 * flip] = 0.5
    return chances


def _judged(draw: np.random.Generator, chances: Grid) -> tuple[Grid, Grid]:
    """The majority of three repeats on each anchor, and on how many the first two differ."""
    votes = draw.random((N_REPEATS, *chances.shape)) < chances
    return votes.sum(axis=0) * 2 > N_REPEATS, (votes[0] != votes[1]).sum(axis=1)


@cache
def _is_drift(size: int, gained: int, lost: int, n_flipped: int) -> bool:
    return is_drift(Counts(size, gained, lost, n_flipped=n_flipped, n_twice=2 * size))
