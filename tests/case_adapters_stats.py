"""What the kind `stats` checks: how two raters agree, a share with its interval, a mean with its interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rag_judge.agreement import cohen_kappa, confusion, rating_table, raw_agreement, weighted_kappa
from rag_judge.estimates import mean_in_unit, rate
from rag_judge.records import CaseRow, Estimate, NoEstimate
from rag_judge.summary import summarise
from tests.case_adapters import Case, Skipped, differs, first_difference, none_if_one_holds

SEED = 0
TOLERANCE = 1e-4
OF_EXPECTATION = frozenset({"tol", "note", "or"})  # that are not compared by themselves
Found = Mapping[str, Any]


def check_stats(case: Case, folder: Path) -> str | None:
    """`kind` kappa, proportion_ci or bootstrap_mean: a value, its n and its interval, or null and why."""
    if case["kind"] not in KINDS:
        raise Skipped(f"stats: the kind {case['kind']!r} is not known")
    expected = case["expect"]
    wanted = [expected, *([{**expected, **expected["or"]}] if "or" in expected else [])]
    found = KINDS[case["kind"]](case)
    if unknown := sorted({name for want in wanted for name in want} - found.keys() - OF_EXPECTATION):
        return f"expectations that are not known: {unknown}"
    return none_if_one_holds([_stats_differ(found, want) for want in wanted])


def _stats_differ(found: Found, want: Mapping[str, Any]) -> str | None:
    tolerance = want.get("tol", TOLERANCE)
    checks = {name: _differs(found[name], want[name], tolerance) for name in want.keys() - OF_EXPECTATION}
    if "note" in want and not found["reason"]:  # in words of its own
        checks["note"] = f"no reason is given, expected {want['note']!r}"
    return first_difference(*(f"{name}: {difference}" for name, difference in sorted(checks.items()) if difference))


def _differs(found: Any, expected: Any, tolerance: float) -> str | None:
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        return first_difference(*(differs(a, b, tolerance) for a, b in zip(found, expected, strict=True)))
    return differs(found, expected, tolerance)


def _said(name: str, estimate: Estimate | NoEstimate) -> dict[str, Any]:
    """An estimate under the names of the case files."""
    if isinstance(estimate, NoEstimate):
        return {name: None, "ci95": None, "n": 0, "method": None, "reason": estimate.reason}
    has_ends = estimate.low is not None
    return {
        name: estimate.value,
        "ci95": [estimate.low, estimate.high] if has_ends else None,
        "n": estimate.n,
        "method": estimate.method,
        "reason": None if has_ends else estimate.method,
    }


def _kappa(case: Case) -> Found:
    """Two raters: of yes and no (1 and 0), or of levels; `weights` for levels that are closer or further apart."""
    human, judge = case["human"], case["judge"]
    ratings = [rating for rating in (*human, *judge) if rating is not None]
    if "weights" in case or not all(rating in (0, 1) for rating in ratings):
        levels = case.get("levels") or sorted(set(ratings))
        table = rating_table(human, judge, levels)
        kappa = weighted_kappa(table, SEED, case.get("weights") or "none")
        n, agreed = sum(map(sum, table)), sum(row[i] for i, row in enumerate(table))
        agreement = rate(agreed, n)
    else:
        cells = confusion(*([None if r is None else bool(r) for r in said] for said in (judge, human)))
        n, kappa, agreement = cells.n, cohen_kappa(cells, SEED), raw_agreement(cells)
    return {**_said("kappa", kappa), "n": n, "agreement": _said("p", agreement)["p"]}


def _proportion(case: Case) -> Found:
    found = _said("p", rate(case["passed"], case["total"]))
    return {**found, "n": case["total"]}


def _mean(case: Case) -> Found:
    """Values within 0 and 1 are a metric's, one a question; others are the scores of a scale."""
    values = [value for value in case["values"] if value is not None]
    if all(0 <= value <= 1 for value in values):
        return _said("mean", mean_in_unit(values, SEED))
    rows = [
        CaseRow(str(i), None, "not_judged", did_abstain=False, drawn=True, n_votes=1, score=value)
        for i, value in enumerate(values)
    ]
    ends = min(1, *values), max(5, *values)
    told = summarise(rows, k=5, seed=SEED, mode="scale", score_range=ends)["judge"]["score"]
    mean = told["mean"]
    return _said("mean", NoEstimate(told["mean_reason"]) if mean is None else Estimate(**mean))


KINDS: Mapping[str, Callable[[Case], Found]] = {
    "kappa": _kappa,
    "proportion_ci": _proportion,
    "bootstrap_mean": _mean,
}
