"""Ship, hold, or not enough evidence: the rules of a gate over one finished run, and against its baseline. Pure.

A rule has passed or failed only where its interval says so; between the two the evidence cannot decide, and the rule
says how many more cases or labels could. A red line needs no interval: one leak is a leak.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from rag_judge.estimates import LEVEL, clopper_pearson_ends, wilson_ends
from rag_judge.paired import mcnemar_p
from rag_judge.records import CaseRow

RuleOutcome = Literal["passed", "failed", "inconclusive", "skipped"]
Decision = Literal["ship", "hold", "not_enough_evidence"]
Tree = Mapping[str, Any]
# Where a floor finds its number in a run's summary, and whether it needs the judge.
PLACES: Mapping[str, tuple[str, str]] = {
    "pass": ("judge", "pass"),
    "correctness": ("judge", "correctness"),
    "grounded": ("judge", "grounded"),
    "complete": ("judge", "complete"),
    "hit": ("retrieval", "hit"),
    "recall": ("retrieval", "recall"),
    "mrr": ("retrieval", "mrr"),
    "rule_correct": ("rules", "correct"),
    "refusal": ("rules", "refusal"),
    "faithful": ("rules", "faithful"),
    "end_to_end": ("end_to_end", "correct"),
}
OF_THE_JUDGE = frozenset({"pass", "correctness", "grounded", "complete", "fabrication"})
MOST_CASES = 1_000_000  # beyond, "more cases" is no advice


@dataclass(frozen=True, slots=True)
class GateRules:
    """What a run must hold to, as configured."""

    floors: Mapping[str, float] = field(default_factory=dict)  # lowest acceptable value, by metric
    allowed_regression: Mapping[str, float] = field(default_factory=dict)  # against the baseline, by metric
    required_labels: int | None = None
    max_unscored: float = 0.02
    max_unanswered: float = 0.02


@dataclass(frozen=True, slots=True)
class JudgeMoved:
    """A judge that is not the one it was: why, and whether the baseline was graded again by the one it is now."""

    why: str
    is_bridged: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule's verdict with its number."""

    name: str
    outcome: RuleOutcome
    value: float | None
    threshold: float | None
    reason: str
    more_cases: int | None = None
    more_labels: int | None = None


@dataclass(frozen=True, slots=True)
class Gated:
    """The decision with everything that led to it."""

    decision: Decision
    exit_code: int
    rules: tuple[Rule, ...]
    red_lines: tuple[str, ...]
    corrected: bool | None  # whether the pass rate that decided is corrected by people; None: it did not decide

    @property
    def more_cases(self) -> int | None:
        """The cases that would decide the open rule that needs the most; None where that is not known."""
        return max((rule.more_cases for rule in self.rules if rule.more_cases is not None), default=None)

    @property
    def more_labels(self) -> int | None:
        """The labels that would decide the open rule that needs the most; None where that is not known."""
        return max((rule.more_labels for rule in self.rules if rule.more_labels is not None), default=None)

    def tree(self) -> dict[str, Any]:
        """The decision as `gate.json` holds it."""
        return {
            "decision": self.decision,
            "exit_code": self.exit_code,
            "corrected": self.corrected,
            "rules": [asdict(rule) for rule in self.rules],
            "red_lines": list(self.red_lines),
            "more_cases": self.more_cases,
            "more_labels": self.more_labels,
        }


def decide(
    rows: Sequence[CaseRow],
    summary: Tree,
    rules: GateRules,
    *,
    embedded: bool,
    bias: Tree | None = None,
    comparison: Tree | None = None,
    moved: JudgeMoved | None = None,
) -> Gated:
    """The decision on one run. `bias` is its `bias.json`, `comparison` that with the baseline, where there are such.

    A judge that has moved decides nothing by itself: its rules are open, but where people corrected it, or where the
    baseline was graded by it, too.
    """
    crossed = red_lines(rows)
    found = [_red_line_rule(rows, crossed), *_limits(summary, rules)]
    if moved is not None:
        found.append(Rule("judge_unmoved", "inconclusive", None, None, moved.why))
    for name, least in rules.floors.items():
        rule = _floor(name, least, summary, bias, embedded=embedded)
        found.append(_opened(rule, name, moved if _is_naive(name, bias) else None))
    for name, allowed in rules.allowed_regression.items():
        rule = _regression(name, allowed, comparison, embedded=embedded)
        found.append(_opened(rule, name, moved if moved is not None and not moved.is_bridged else None))
    if rules.required_labels is not None:
        found.append(_required_labels(rules.required_labels, bias, embedded=embedded))
    decision, code = _decision(found, embedded=embedded and summary["judge"]["mode"] != "none")
    decided_pass = "pass" in rules.floors and not embedded
    return Gated(decision, code, tuple(found), crossed, _is_corrected(bias) if decided_pass else None)


def _is_naive(name: str, bias: Tree | None) -> bool:
    """True for a number of the judge that no label corrects."""
    return name != "pass" or not _is_corrected(bias)


def _opened(rule: Rule, name: str, moved: JudgeMoved | None) -> Rule:
    """The rule, open where it rests on a judge that has moved."""
    if moved is None or name not in OF_THE_JUDGE or rule.outcome not in ("passed", "failed"):
        return rule
    return replace(rule, outcome="inconclusive", reason=f"{rule.reason}; but the judge has moved")


def _decision(rules: Sequence[Rule], *, embedded: bool) -> tuple[Decision, int]:
    """Red line, then the limits, then any other rule, then what is open; the exit codes of the contract."""
    failed = {rule.name for rule in rules if rule.outcome == "failed"}
    if "red_lines" in failed:
        return "hold", 1
    if failed & {"max_unscored", "max_unanswered"}:
        return "hold", 4
    if failed:
        return "hold", 1
    is_open = any(rule.outcome == "inconclusive" for rule in rules)
    return ("not_enough_evidence", 3) if is_open or embedded else ("ship", 0)


# --- red lines and limits --------------------------------------------------------------------------------------------


def red_lines(rows: Sequence[CaseRow]) -> tuple[str, ...]:
    """The cases that cross one: any leak, and a red-line case that the rules fail. Never by the judge."""
    crossed = (row.id for row in rows if row.leak or (row.red_line and row.rule_correct is False))
    return tuple(dict.fromkeys(crossed))  # of several answers to a case one is enough


def _red_line_rule(rows: Sequence[CaseRow], crossed: Sequence[str]) -> Rule:
    n_checked = len({row.id for row in rows if row.leak_checked or row.red_line})
    if crossed:
        return Rule("red_lines", "failed", len(crossed), 0, f"{len(crossed)} cases cross a red line: {_ids(crossed)}")
    if not n_checked:
        return Rule("red_lines", "passed", 0, 0, "no case could show a leak or has red_line: nothing was tried")
    high = clopper_pearson_ends(0, n_checked)[1]
    said = f"none of {n_checked} cases that could; the true rate may still be as high as {high:.1%}"
    return Rule("red_lines", "passed", 0, 0, said)


def _limits(summary: Tree, rules: GateRules) -> list[Rule]:
    judge = summary["judge"]
    drawn, unscored = judge.get("drawn") or 0, sum((judge.get("unscored") or {}).values())
    n_answers = summary["n_answered"] + summary["n_errors"]
    shares = [
        ("max_unscored", unscored, drawn, rules.max_unscored, "drawn cases are unscored"),
        ("max_unanswered", summary["n_errors"], n_answers, rules.max_unanswered, "cases have no answer"),
    ]
    found = []
    for name, n, of, most, what in shares:
        share = n / of if of else 0.0
        outcome: RuleOutcome = "failed" if share > most else "passed"
        found.append(Rule(name, outcome, share, most, f"{n} of {of} {what}"))
    return found


# --- floors ----------------------------------------------------------------------------------------------------------


def _floor(name: str, least: float, summary: Tree, bias: Tree | None, *, embedded: bool) -> Rule:
    rule = f"floor:{name}"
    if embedded and name in OF_THE_JUDGE:
        return Rule(rule, "skipped", None, least, "the embedded demo model judged this run, and decides nothing")
    if name == "pass" and bias is not None and bias["n_labelled"] and "pass" in bias["fields"]:
        return _corrected_floor(rule, least, bias)
    section, key = PLACES[name]
    tree = summary[section]
    estimate = tree.get(key)
    if estimate is None:
        why = tree.get(f"{key}_reason") or "the run has no such number"
        return Rule(rule, "inconclusive", None, least, why)
    uncorrected = "uncorrected judge rate: " if name in OF_THE_JUDGE else ""
    return _against(rule, least, estimate, uncorrected)


def _against(rule: str, least: float, estimate: Tree, about: str) -> Rule:
    """Passed where the interval lies above the floor, failed where it lies below it."""
    value, low, high, n = (estimate[key] for key in ("value", "low", "high", "n"))
    if low is None or high is None:
        return Rule(rule, "inconclusive", value, least, f"{about}{value:.3g} without an interval")
    said = f"{about}{value:.1%} [{low:.1%}, {high:.1%}], n = {n}; at least {least:.1%} wanted"
    if low >= least:
        return Rule(rule, "passed", value, least, said)
    if high < least:
        return Rule(rule, "failed", value, least, said)
    return Rule(rule, "inconclusive", value, least, said, more_cases=_more_cases(value, n, least))


def _corrected_floor(rule: str, least: float, bias: Tree) -> Rule:
    """By the corrected rate: its lower end passes, and its cautious upper end fails."""
    tree = bias["fields"]["pass"]
    needed = (tree.get("labels_more") or {}).get("0.05")
    interval = tree["interval"]
    if tree["corrected"] is None or interval is None:
        return Rule(rule, "inconclusive", None, least, f"corrected rate: {tree['rule_reason']}", more_labels=needed)
    value, (low, high) = tree["corrected"]["value"], interval
    said = f"corrected by {bias['n_labelled']} labels: {value:.1%} [{low:.1%}, {high:.1%}]; at least {least:.1%} wanted"
    if low >= least:
        return Rule(rule, "passed", value, least, said)
    cautious = tree.get("interval_cautious") or interval
    if cautious[1] < least:
        return Rule(rule, "failed", value, least, said)
    return Rule(rule, "inconclusive", value, least, said, more_labels=needed)


def _more_cases(value: float, n: int, least: float) -> int | None:
    """How many more cases, looking as these do, would put the interval to one side of the floor."""
    if abs(value - least) < 1e-9:
        return None
    size = n
    while size < MOST_CASES:
        size = math.ceil(size * 1.05) + 1
        low, high = wilson_ends(value, size)
        if low >= least or high < least:
            return size - n
    return None


def _is_corrected(bias: Tree | None) -> bool:
    tree = None if bias is None else bias["fields"].get("pass")
    return tree is not None and tree["corrected"] is not None


# --- against a baseline ----------------------------------------------------------------------------------------------


def _regression(name: str, allowed: float, comparison: Tree | None, *, embedded: bool) -> Rule:
    rule = f"regression:{name}"
    if comparison is None:
        return Rule(rule, "skipped", None, allowed, "no baseline was given")
    if embedded and name in OF_THE_JUDGE:
        return Rule(rule, "skipped", None, allowed, "the embedded demo model judged this run, and decides nothing")
    metric, corrected = comparison["metrics"][name], comparison.get("corrected") or {}
    difference = corrected.get("difference") if name == "pass" and corrected.get("difference") else metric["difference"]
    if difference is None:
        return Rule(rule, "inconclusive", None, allowed, metric.get("difference_reason") or "no difference is known")
    sign = -1 if name in LOWER_IS_BETTER else 1
    value, n = sign * difference["value"], difference["n"]
    ends = [difference["low"], difference["high"]]
    if None in ends:
        said = f"{value:+.1%} without an interval, n = {n}"
        return Rule(rule, "passed" if value >= 0 else "inconclusive", value, allowed, said)
    low, high = sorted(sign * end for end in ends)
    of_judge = (
        "" if name not in OF_THE_JUDGE else "corrected: " if difference is not metric["difference"] else "uncorrected: "
    )
    said = f"{of_judge}{value:+.1%} [{low:+.1%}, {high:+.1%}], n = {n}; {allowed:.1%} allowed"
    if high < -allowed and _is_sure(metric, is_plain=difference is metric["difference"]):
        return Rule(rule, "failed", value, allowed, said)
    if low > -allowed:
        return Rule(rule, "passed", value, allowed, said)
    distance = abs(value + allowed)
    more = None if distance < 1e-9 else math.ceil(n * ((high - low) / 2 / distance) ** 2) - n
    return Rule(rule, "inconclusive", value, allowed, said, more_cases=max(1, more) if more is not None else None)


def _is_sure(metric: Tree, *, is_plain: bool) -> bool:
    """Whether the exact test agrees that a share moved: what blocks must not reject too often, as the interval may."""
    if not is_plain or not metric["test"].startswith("mcnemar"):
        return True
    return mcnemar_p(metric["won"], metric["lost"], is_exact=True) <= 1 - LEVEL


LOWER_IS_BETTER = frozenset({"fabrication", "wrong_refusal", "missed_refusal", "leak"})


def _required_labels(wanted: int, bias: Tree | None, *, embedded: bool) -> Rule:
    if embedded:
        return Rule("required_labels", "skipped", None, wanted, "the embedded demo model decides nothing")
    n = 0 if bias is None else bias["n_labelled"]
    said = f"{n} cases are labelled; {wanted} wanted"
    if n >= wanted:
        return Rule("required_labels", "passed", n, wanted, said)
    return Rule("required_labels", "inconclusive", n, wanted, said, more_labels=wanted - n)


def _ids(ids: Sequence[str]) -> str:
    shown = ", ".join(ids[:10])
    return shown if len(ids) <= 10 else f"{shown} and {len(ids) - 10} more"
