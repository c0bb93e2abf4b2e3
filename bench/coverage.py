"""How often the intervals of the corrected pass rate hold the truth: a seeded simulation over rates, judges and labels.

Independent cases, people without error, one sensitivity and specificity per cell. The corrected rate is scored against
the true rate, the one of this set against what people would say of exactly these cases, the judge's own rate, not
corrected, against the true rate. Where the rules refuse a corrected rate, its interval is what is shown, and counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_judge.calibration import refusal
from rag_judge.estimates import wilson_ends
from rag_judge.poststratification import Stratum, share_of_questions_like_these, share_of_this_set
from rag_judge.records import Estimate
from rag_judge.sampling import allocate

RATES = (0.5, 0.7, 0.85, 0.95)
JUDGES = ((0.95, 0.90), (0.95, 0.65), (0.80, 0.92), (0.92, 0.40), (0.60, 0.45))  # sensitivity, specificity
SIZES = {80: (8, 12, 16, 32, 64), 500: (8, 16, 32, 64, 100)}
N_DRAWS = {80: 2000, 500: 500}
SEED = 20
MEAN_COVERAGE, WORST_COVERAGE = 0.94, 0.90
Ints = NDArray[np.int64]
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """The simulated runs of one rate, judge, size and design: shares of them, and mean widths."""

    like_these: float  # intervals that hold the true rate
    too_high: float  # lower ends above the true rate: a gate would pass a system that is worse
    this_set: float
    naive: float
    width: float
    width_this_set: float
    refused: float


def coverage_lines() -> Iterator[str]:
    """One markdown table, and whether the default interval holds what is asked of it at 80 cases."""
    began = time.process_time()
    table = [
        f"{len(RATES)} rates x {len(JUDGES)} judges a row; shares: mean / worst of {len(RATES) * len(JUDGES)} cells",
        "",
        "| cases | labels | drawn | corrected rate | its width | lower end above the truth | this set | its width "
        "| judge's rate, not corrected | refused |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    of_80: list[float] = []
    for n_cases, sizes in SIZES.items():
        for n_labels in sizes:
            for name, drawn in (("at random", simple), ("by verdict", by_verdict)):
                cells = [
                    cell(n_cases, n_labels, rate, judge, drawn, np.random.default_rng([SEED, n_cases, n_labels, i, k]))
                    for i, rate in enumerate(RATES)
                    for k, judge in enumerate(JUDGES)
                ]
                of_80 += [one.like_these for one in cells] if n_cases == 80 else []
                table.append(row(n_cases, n_labels, name, cells))
    yield "\n" + "\n".join(table)
    held = np.mean(of_80) >= MEAN_COVERAGE and min(of_80) >= WORST_COVERAGE
    yield (
        f"80 cases: mean {np.mean(of_80):.3f} (asked {MEAN_COVERAGE}), lowest cell {min(of_80):.3f} "
        f"(asked {WORST_COVERAGE:.2f}): {'held' if held else 'NOT HELD'}; {time.process_time() - began:.0f} s of CPU"
    )


def row(n_cases: int, n_labels: int, name: str, cells: list[Cell]) -> str:
    """One row of the table."""

    def both(values: list[float], worst: Callable[[list[float]], float] = min) -> str:
        return f"{np.mean(values):.3f} / {worst(values):.3f}"

    return (
        f"| {n_cases} | {n_labels} | {name} | {both([c.like_these for c in cells])} "
        f"| {np.mean([c.width for c in cells]):.2f} | {both([c.too_high for c in cells], max)} "
        f"| {both([c.this_set for c in cells])} | {np.mean([c.width_this_set for c in cells]):.2f} "
        f"| {both([c.naive for c in cells])} | {np.mean([c.refused for c in cells]):.0%} |"
    )


def cell(
    n_cases: int, n_labels: int, rate: float, judge: tuple[float, float], drawn: Any, rng: np.random.Generator
) -> Cell:
    """The runs of one cell; equal counts are estimated once."""
    sens, spec = judge
    chances = [rate * sens, (1 - rate) * (1 - spec), rate * (1 - sens), (1 - rate) * spec]
    runs = rng.multinomial(n_cases, chances, N_DRAWS[n_cases])  # true and false passes, false and true fails
    n_passed, truth_here = runs[:, 0] + runs[:, 1], (runs[:, 0] + runs[:, 2]) / n_cases
    counts, where = np.unique(np.column_stack([n_passed, drawn(runs, n_labels, rng)]), axis=0, return_inverse=True)
    found = np.array([ends(n_cases, *one) for one in counts.tolist()])[where.ravel()]
    naive = np.array([wilson_ends(n / n_cases, n_cases) for n in range(n_cases + 1)])[n_passed]
    holds = [inside(rate, found[:, 0:2]), inside(truth_here, found[:, 2:4]), inside(rate, naive)]
    return Cell(
        like_these=float(holds[0].mean()),
        too_high=float((found[:, 0] > rate).mean()),
        this_set=float(holds[1].mean()),
        naive=float(holds[2].mean()),
        width=float((found[:, 1] - found[:, 0]).mean()),
        width_this_set=float((found[:, 3] - found[:, 2]).mean()),
        refused=float(found[:, 4].mean()),
    )


def inside(truth: float | Numbers, found: Numbers) -> NDArray[np.bool_]:
    """Which of the intervals hold the truth; ends that rounding moved off it do."""
    held: NDArray[np.bool_] = (found[:, 0] <= truth + 1e-9) & (truth <= found[:, 1] + 1e-9)
    return held


def simple(runs: Ints, n_labels: int, rng: np.random.Generator) -> Ints:
    """Labels drawn at random: reviewed and human passes among judge passes, then among judge fails, a row a run."""
    labels = np.array([rng.multivariate_hypergeometric(run, n_labels) for run in runs])
    return np.column_stack([labels[:, 0] + labels[:, 1], labels[:, 0], labels[:, 2] + labels[:, 3], labels[:, 2]])


def by_verdict(runs: Ints, n_labels: int, rng: np.random.Generator) -> Ints:
    """As `simple`, with the labels allotted to the verdicts as the product does."""
    n_cases = int(runs[0].sum())
    allotted = np.array([allotment(n_cases, n, n_labels) for n in range(n_cases + 1)])[runs[:, 0] + runs[:, 1]]
    passes = rng.hypergeometric(runs[:, 0], runs[:, 1], allotted[:, 0])
    fails = rng.hypergeometric(runs[:, 2], runs[:, 3], allotted[:, 1])
    return np.column_stack([allotted[:, 0], passes, allotted[:, 1], fails])


@cache
def allotment(n_cases: int, n_passed: int, n_labels: int) -> tuple[int, int]:
    """The labels for the cases that the judge passed and failed."""
    got = allocate({"pass": n_passed, "fail": n_cases - n_passed}, n_labels)
    return got["pass"], got["fail"]


@cache
def ends(n_cases: int, n_passed: int, n1: int, x1: int, n0: int, x0: int) -> tuple[float, ...]:
    """Both intervals' ends and whether the rules refuse, for one run's counts."""
    strata = [
        Stratum(judged, n, reviewed, passes, 1.0)
        for judged, n, reviewed, passes in ((True, n_passed, n1, x1), (False, n_cases - n_passed, n0, x0))
        if n
    ]
    both = (share_of_questions_like_these(strata), share_of_this_set(strata))
    known = [end for one in both if isinstance(one, Estimate) for end in (one.low, one.high) if end is not None]
    return (*known, float(refusal(strata) is not None))
