"""What a trend shows of one run: the numbers of its summary, labels, anchors and cost, each with its interval. Pure.

Nothing is computed that a run's files do not hold, but for the two ways of refusing wrongly, which are shares of what
the summary counts. A number that a run does not have is `NoEstimate` with its reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rag_judge.estimates import LEVEL, rate
from rag_judge.records import Estimate, NoEstimate, Target

Tree = Mapping[str, Any]
Number = Estimate | NoEstimate
NO_JUDGE = "no judge was asked of this run"
EMBEDDED = "judged by the embedded demo model, whose numbers are not shown"
NO_LABELS = "no labels were held against the judge (bias.json)"
NO_PASS_LABELS = "the labels say nothing of a pass"
NO_ANCHORS = "the judge graded no anchors with this run (anchors.json)"
NO_LEAK_CHECK = "no case could show a leak"
NO_PRICE = "no price of the judge's model is set"
NOT_THERE = "the run's files do not hold it"
UNREADABLE = "the file that holds it cannot be read"
PART = "a limit was reached, and what the judge saw is no random part"
NO_REFUSAL = "no answered case states that a refusal is expected"
NO_ANSWER_EXPECTED = "no answered case states that an answer is expected"


@dataclass(frozen=True, slots=True)
class TrendRun:
    """One run as its folder holds it; `bias` and `anchors` where those files are there.

    `unread` names such files that are there and cannot be read.
    """

    run_id: str
    manifest: Tree
    summary: Tree
    bias: Tree | None = None
    anchors: Tree | None = None
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrendMetric:
    """One number over time, and what it is: a share or a mean in [0, 1], a count, or US dollars."""

    name: str
    unit: Literal["share", "mean", "count", "usd"]
    value: Callable[[TrendRun], Number]
    is_judged: bool = False  # made of what a judge said


def judges_of(manifest: Tree) -> list[Tree]:
    """The judges that a manifest names: one, several, or none."""
    return [one for one in manifest.get("judges") or [manifest.get("judge")] if isinstance(one, Mapping)]


def is_embedded(manifest: Tree) -> bool:
    """True when the embedded demo model judged, alone or with others."""
    return any(bool(judge.get("embedded")) for judge in judges_of(manifest))


def is_judged(manifest: Tree) -> bool:
    """True when a judge was asked whose numbers mean something."""
    return bool(judges_of(manifest)) and not is_embedded(manifest)


def values_of(run: TrendRun) -> dict[str, Number]:
    """Every metric of a run, by name."""
    return {metric.name: _value(metric, run) for metric in METRICS.values()}


def _value(metric: TrendMetric, run: TrendRun) -> Number:
    if (metric.is_judged or metric.name == "end_to_end") and is_embedded(run.manifest):
        return NoEstimate(EMBEDDED)
    if metric.is_judged and not judges_of(run.manifest):
        return NoEstimate(NO_JUDGE)
    return metric.value(run)


def _tree(tree: Any, *keys: str) -> Tree:
    """The tree at a path; an empty one where there is none."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return tree if isinstance(tree, Mapping) else {}


def _finite(value: Any) -> float | None:
    """A number as such; None for what is none, and for what JSON should not hold."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


def _estimate(tree: Tree, key: str, nothing: str = NOT_THERE) -> Number:
    """An estimate as a run's files hold it, or the reason that stands beside it."""
    found = _tree(tree, key)
    value = _finite(found.get("value"))
    if value is None:
        return NoEstimate(str(tree.get(f"{key}_reason") or nothing))
    low, high = _finite(found.get("low")), _finite(found.get("high"))
    n = _finite(found.get("n"))
    target: Target = "this_set" if found.get("target") == "this_set" else "questions_like_these"
    level, method = _finite(found.get("level")) or LEVEL, str(found.get("method") or NOT_THERE)
    return Estimate(value, low, high, level, int(n or 0), method, target)


def _of_summary(*path: str) -> Callable[[TrendRun], Number]:
    return lambda run: _estimate(_tree(run.summary, *path[:-1]), path[-1])


def _of_judge(key: str) -> Callable[[TrendRun], Number]:
    return lambda run: NoEstimate(PART) if _tree(run.summary, "judge", "part") else _of_summary("judge", key)(run)


def _of_people(key: str) -> Callable[[TrendRun], Number]:
    """A number of the labels on the judge's pass."""

    def value(run: TrendRun) -> Number:
        if run.bias is None:
            return NoEstimate(UNREADABLE if "bias.json" in run.unread else NO_LABELS)
        return _estimate(_tree(run.bias, "fields", "pass"), key, NO_PASS_LABELS)

    return value


def _of_anchors(run: TrendRun) -> Number:
    if run.anchors is None:
        return NoEstimate(UNREADABLE if "anchors.json" in run.unread else NO_ANCHORS)
    return _estimate(run.anchors, "agreement")


def _wrong_way(wrong: str, right: str, nothing: str) -> Callable[[TrendRun], Number]:
    """The share of the answered cases that state their expectation and end in the wrong way."""

    def value(run: TrendRun) -> Number:
        counts = _tree(run.summary, "abstention")
        n_wrong, n_right = _finite(counts.get(wrong)), _finite(counts.get(right))
        if n_wrong is None or n_right is None:
            return NoEstimate(NOT_THERE)
        found = rate(int(n_wrong), int(n_wrong + n_right), nothing=nothing)
        if isinstance(found, NoEstimate) or "repeats" not in run.summary:
            return found
        # Several answers to one question are no further questions, and the counts do not say which belong together.
        return Estimate(found.value, None, None, LEVEL, found.n, "of answers, without an interval")

    return value


def _leaks(run: TrendRun) -> Number:
    rules = _tree(run.summary, "rules")
    leaks, n_checked = rules.get("leaks"), _finite(rules.get("n_leak_checked"))
    if not isinstance(leaks, list):
        return NoEstimate(NOT_THERE)
    if not leaks and not n_checked:
        return NoEstimate(NO_LEAK_CHECK)
    return Estimate(float(len(leaks)), None, None, LEVEL, int(n_checked or 0), "count", "this_set")


def _cost(run: TrendRun) -> Number:
    cost = _tree(run.manifest, "cost")
    usd = _finite(cost.get("usd"))
    if usd is None:
        return NoEstimate(NO_PRICE if judges_of(run.manifest) else NO_JUDGE)
    method = "sum" if cost.get("usd_is_complete") is not False else "sum, a lower bound"
    return Estimate(usd, None, None, LEVEL, int(_finite(cost.get("calls")) or 0), method, "this_set")


def _end_to_end(run: TrendRun) -> Number:
    return NoEstimate(PART) if _tree(run.summary, "judge", "part") else _of_summary("end_to_end", "correct")(run)


_ALL = (
    TrendMetric("end_to_end", "share", _end_to_end),
    TrendMetric("pass_corrected", "share", _of_people("corrected"), is_judged=True),
    TrendMetric("pass", "share", _of_judge("pass"), is_judged=True),
    TrendMetric("correctness", "share", _of_judge("correctness"), is_judged=True),
    TrendMetric("fabrication", "share", _of_judge("fabrication"), is_judged=True),
    TrendMetric("rule_correct", "share", _of_summary("rules", "correct")),
    TrendMetric("missed_refusal", "share", _wrong_way("should_but_answered", "should_and_did", NO_REFUSAL)),
    TrendMetric(
        "wrong_refusal", "share", _wrong_way("should_not_but_did", "should_not_and_answered", NO_ANSWER_EXPECTED)
    ),
    TrendMetric("leaks", "count", _leaks),
    TrendMetric("cost", "usd", _cost),
    TrendMetric("hit", "share", _of_summary("retrieval", "hit")),
    TrendMetric("recall", "mean", _of_summary("retrieval", "recall")),
    TrendMetric("mrr", "mean", _of_summary("retrieval", "mrr")),
    TrendMetric("flip_rate", "share", _of_judge("flip_rate"), is_judged=True),
    TrendMetric("agreement_people", "share", _of_people("agreement"), is_judged=True),
    TrendMetric("agreement_anchors", "share", _of_anchors, is_judged=True),
)
METRICS: Mapping[str, TrendMetric] = {metric.name: metric for metric in _ALL}
