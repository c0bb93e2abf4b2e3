"""The soak of the slow tests at full length: 20,000 calls to a judge that fails in every known way.

What is printed are the bounds that the test holds, and how many calls, decisions and counts are wrong: none should be.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.test_soak import (
    MOST_HANDLES,
    Soaked,
    changed_by_faults,
    soak,
    wrong_calls,
    wrong_counts,
    wrong_decisions,
)

N_CALLS = 20_000


def soak_lines() -> Iterator[str]:
    """Handles and growth of memory against their bounds, what the faults cost, and what is wrong after all of them."""
    with tempfile.TemporaryDirectory() as temporary:
        soaked = soak(Path(temporary), N_CALLS)
        yield from _costs(soaked)
        yield from _bounds(soaked)
        for name, wrong in (
            ("calls lost, doubled or kept otherwise than sent", wrong_calls(soaked)),
            ("cases decided otherwise than by what was sent", wrong_decisions(soaked)),
            ("counts that do not add up", wrong_counts(soaked)),
            ("cases or calls changed by faults that pass", changed_by_faults(soaked)),
        ):
            found = list(wrong)
            yield "\n    ".join([f"{len(found)} {name}", *found[:5]])


def _costs(soaked: Soaked) -> Iterator[str]:
    met = soaked.met
    with_faults, without = soaked.seconds
    yield (
        f"{soaked.n_calls:,} calls planned, {len(soaked.asked):,} needed, {met.total():,} requests came, "
        f"{met.total() - met[None]:,} of them in one of {len(met) - 1} troubles"
    )
    yield f"{with_faults:.0f} s with faults, {with_faults / without:.2f} times as long as without"
    outcomes = ", ".join(f"{n:,} {outcome}" for outcome, n in soaked.faulty.summary["outcomes"].items())
    reasons = ", ".join(f"{n} {reason}" for reason, n in soaked.faulty.summary["judge"]["unscored"].items())
    yield f"cases: {outcomes}; without a vote: {reasons}"


def _bounds(soaked: Soaked) -> Iterator[str]:
    n, left = soaked.watch.most_handles, soaked.n_handles_after - soaked.watch.n_handles_before
    yield f"{n} handles at most, {n / MOST_HANDLES:.2f} of the bound; {left} left over"
    grown, most = soaked.grown, soaked.most_growth
    yield (
        f"memory in the second half of the calls: {grown.resident_mb:+.1f} MB, "
        f"{grown.resident_mb / most.resident_mb:.2f} of the bound; {grown.n_objects:+,} objects, "
        f"{grown.n_objects / most.n_objects:.2f} of the bound"
    )
