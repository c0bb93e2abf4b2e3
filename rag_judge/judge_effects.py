"""What moves the judge that should not: the length of an answer, and time. Arrays in, estimates out.

The place of an answer in a pair stands in `pairs`, which counts both orders. Nothing here corrects a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from rag_judge.agreement import confusion, raw_agreement
from rag_judge.estimates import LEVEL
from rag_judge.paired import Changes, changes, mcnemar_p
from rag_judge.planning import smallest_detectable_difference
from rag_judge.records import Estimate, NoEstimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[Any]

LABELS_FOR_LOGIT = 50
MOST_ARRANGEMENTS = 200_000
DRAWS = 10_000
MOST_STEPS = 50
LARGEST_LOG_ODDS = 15.0


@dataclass(frozen=True, slots=True)
class LengthEffect:
    """Whether longer answers pass more often among answers that people judge alike."""

    n: int
    p_value: float
    statistic: float  # sum over human labels of (verdict - mean verdict) * log length; above 0: longer passes more
    n_arrangements: int | None  # that the permutation test went through; None: drawn, or no permutation test
    odds_ratio: Estimate | NoEstimate  # of a pass, per standard deviation of log length at the same human label
    method: str


@dataclass(frozen=True, slots=True)
class Drift:
    """The judge on the same questions and answers, first and now."""

    changes: Changes
    net: Estimate | NoEstimate  # pass rate now minus first
    p_value: float  # McNemar's mid-p; 1 without a change
    agreement: Estimate | NoEstimate  # of now with first
    excess_disagreement: float | None  # beyond the flip rate that the judge has within one run; None: not known
    smallest_detectable: float | None  # net change; None: with so few changes none can be seen
    sensitivity_change: Estimate | NoEstimate  # among the questions that people pass
    specificity_change: Estimate | NoEstimate


def length_effect(
    judge: Sequence[bool | None], human: Sequence[bool | None], lengths: Sequence[float], seed: int
) -> LengthEffect | NoEstimate:
    """The effect of length on the judge's verdict at the same human label; cases without either are left out.

    Below 50 labels an exact permutation test of verdicts within human labels (10,000 seeded ones above 200,000
    arrangements), from 50 a logistic regression. Where a length is not above 0, log(1 + length) stands for all.
    NoEstimate without two cases of different length. Raises ValueError where the lists differ in length.
    """
    import numpy as np

    rows = [
        (float(j), float(h), length)
        for j, h, length in zip(judge, human, lengths, strict=True)
        if j is not None and h is not None
    ]
    if len({length for _, _, length in rows}) < 2:
        return NoEstimate("no two labelled cases differ in length")
    verdicts, labels, sizes = np.array(sorted(rows)).T
    logs = np.log(sizes) if sizes.min() > 0 else np.log1p(sizes)
    statistic = _statistic(verdicts, labels, logs)
    few = NoEstimate(f"{len(rows)} labels; {LABELS_FOR_LOGIT} are the fewest for an odds ratio")
    if len(set(verdicts)) == 1:
        return LengthEffect(len(rows), 1.0, statistic, 1, NoEstimate("the judge says the same of all"), "none needed")
    fitted = _odds_ratio(verdicts, labels, logs) if len(rows) >= LABELS_FOR_LOGIT else few
    if not isinstance(fitted, NoEstimate):
        return LengthEffect(len(rows), fitted[1], statistic, None, fitted[0], "logistic regression, wald")
    p_value, n_arrangements = _permutation_p(verdicts, labels, logs, seed)
    method = "permutation within human labels" + ("" if n_arrangements else ", seeded")
    return LengthEffect(len(rows), p_value, statistic, n_arrangements, fitted, method)


def drift(
    first: Sequence[bool | None],
    now: Sequence[bool | None],
    human: Sequence[bool | None] | None = None,
    flip_rate: float | None = None,
) -> Drift:
    """How far the judge moved on a fixed set of anchors, one entry each; without a verdict in either run: left out.

    `human` labels give the change among what people pass and fail apart; `flip_rate` is that within one run. A changed
    model, prompt or temperature is a change, not drift: that is the caller's to know. Raises ValueError for lengths.
    """
    moved = changes(first, now)
    labels = [None] * len(first) if human is None else human
    passes, fails = (
        changes(*zip(*of_label, strict=True)) if of_label else Changes(0, 0, 0)
        for of_label in (
            [(a, b) for a, b, h in zip(first, now, labels, strict=True) if h is not None and bool(h) is label]
            for label in (True, False)
        )
    )
    share = moved.discordant_share
    missed = Changes(fails.n, fails.lost, fails.gained)  # among fails, a verdict that turns to fail is a gain
    return Drift(
        changes=moved,
        net=moved.difference,
        p_value=mcnemar_p(moved.gained, moved.lost),
        agreement=raw_agreement(confusion(first, now)),
        excess_disagreement=None if share is None or flip_rate is None else share - flip_rate,
        smallest_detectable=smallest_detectable_difference(moved.n, share) if share else None,
        sensitivity_change=passes.difference if passes.n else NoEstimate("no anchor passes by human judgement"),
        specificity_change=missed.difference if missed.n else NoEstimate("no anchor fails by human judgement"),
    )


def _statistic(verdicts: Floats, labels: Floats, logs: Floats) -> float:
    total = 0.0
    for label in (0.0, 1.0):
        here = labels == label
        if here.any():
            total += float(((verdicts[here] - verdicts[here].mean()) * logs[here]).sum())
    return total


def _permutation_p(verdicts: Floats, labels: Floats, logs: Floats, seed: int) -> tuple[float, int | None]:
    """The two-sided p-value over all arrangements of verdicts within labels, with their number, or over drawn ones."""
    import numpy as np

    groups = [(logs[labels == label], int(verdicts[labels == label].sum())) for label in (0.0, 1.0)]
    n_arrangements = math.prod(math.comb(len(group), n_passed) for group, n_passed in groups)
    bound = abs(_statistic(verdicts, labels, logs)) - 1e-9
    if n_arrangements <= MOST_ARRANGEMENTS:
        sums = np.zeros(1)
        for group, n_passed in groups:
            mean = n_passed * group.mean() if len(group) else 0.0
            one = np.array([math.fsum(chosen) - mean for chosen in combinations(group.tolist(), n_passed)])
            sums = np.add.outer(sums, one).ravel()
        return float(np.mean(np.abs(sums) >= bound)), n_arrangements
    rng = np.random.default_rng(seed)
    drawn = np.zeros(DRAWS)
    for group, n_passed in groups:
        if 0 < n_passed < len(group):
            for i in range(DRAWS):
                drawn[i] += rng.permutation(group)[:n_passed].sum() - n_passed * group.mean()
    return (int((np.abs(drawn) >= bound).sum()) + 1) / (DRAWS + 1), None


def _odds_ratio(verdicts: Floats, labels: Floats, logs: Floats) -> tuple[Estimate, float] | NoEstimate:
    """The odds ratio per standard deviation of log length and its Wald p-value, by Newton's method."""
    import numpy as np

    scaled = (logs - logs.mean()) / logs.std(ddof=1)
    columns = [np.ones_like(scaled), scaled] + ([labels] if len(set(labels)) == 2 else [])
    design = np.column_stack(columns)
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return NoEstimate("length and human label cannot be told apart")
    weights = np.zeros(design.shape[1])
    for _ in range(MOST_STEPS):
        chances = 1 / (1 + np.exp(-design @ weights))
        information = design.T @ (design * (chances * (1 - chances))[:, None])
        if np.linalg.cond(information) > 1e12 or np.abs(weights).max() > LARGEST_LOG_ODDS:
            return NoEstimate("length and label separate the verdicts, so that the odds ratio has no bound")
        step = np.linalg.solve(information, design.T @ (verdicts - chances))
        weights = weights + step
        if np.abs(step).max() < 1e-10:
            break
    else:
        return NoEstimate("length and label separate the verdicts, so that the odds ratio has no bound")
    slope, error = float(weights[1]), math.sqrt(float(np.linalg.inv(information)[1, 1]))
    half = NormalDist().inv_cdf(0.5 + LEVEL / 2) * error
    ends = (math.exp(end) for end in (slope, slope - half, slope + half))
    value, low, high = ends
    p_value = math.erfc(abs(slope) / error / math.sqrt(2))
    return Estimate(value, low, high, LEVEL, len(verdicts), "logistic regression, wald"), p_value
