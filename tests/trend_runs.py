"""Runs as their folders hold them, for tests of trends: written by hand, so that each number is known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag_judge.estimates import rate
from rag_judge.records import Estimate
from rag_judge.summary import put
from rag_judge.trend_values import TrendRun

JUDGE: dict[str, Any] = {
    "model": "m-1",
    "models_reported": ["m-1"],
    "parameters": {"asked": {"temperature": 0.0}, "sent": [{"temperature": 0.0, "max_tokens": 200}]},
    "fallbacks": [],
    "embedded": False,
}
PROMPT = {"name": "passfail", "mode": "passfail", "lang": "en", "version": "a" * 64}


def manifest_of(run_id: str, day: int = 1, **changes: Any) -> dict[str, Any]:
    """A finished run's manifest; its time is that day of March, unless changed."""
    return {
        "format_version": 1,
        "run_id": run_id,
        "kind": "run",
        "name": "nightly",
        "parent": None,
        "status": "complete",
        "started_at": f"2026-03-{day:02}T02:00:00+00:00",
        "k": 5,
        "match": "exact",
        "repeats": 3,
        "vary": "none",
        "package_version": "1",
        "eval_set": {"path": "cases.jsonl", "sha256": "e" * 64, "snapshot_sha256": "f" * 64, "n": 80},
        "system": {"model": "s-1"},
        "judge": JUDGE,
        "judges": [JUDGE],
        "prompts": [PROMPT],
        "corpus": None,
        "cost": {"calls": 240, "usd": 0.5, "usd_is_complete": True},
        **changes,
    }


def judge_with(**changes: Any) -> dict[str, Any]:
    """What a manifest says of another judge."""
    judge = {**JUDGE, **changes}
    return {"judge": judge, "judges": [judge]}


NO_JUDGE: dict[str, Any] = {"judge": None, "judges": [], "prompts": [], "cost": {"calls": 0, "usd": None}}


def summary_of(n_right: int = 60, n: int = 80, judge: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A summary whose every rate is n_right of n; `judge` replaces entries of the judge's part."""

    def rates(*names: str) -> dict[str, Any]:
        tree: dict[str, Any] = {}
        for name in names:
            put(tree, name, rate(n_right, n))
        return tree

    of_judge = {"mode": "passfail", **rates("pass", "correctness", "fabrication", "flip_rate"), **(judge or {})}
    return {
        "n_cases": n,
        "retrieval": {"k": 5, **rates("hit", "recall", "mrr")},
        "rules": {**rates("correct"), "leaks": [], "n_leak_checked": 4},
        "abstention": {
            "should_and_did": 6,
            "should_but_answered": 2,
            "should_not_but_did": 3,
            "should_not_and_answered": 57,
        },
        "judge": of_judge,
        "end_to_end": rates("correct"),
    }


def run_of(run_id: str, day: int = 1, *, n_right: int = 60, **changes: Any) -> TrendRun:
    """A run; `bias`, `anchors` and `summary` among the changes are files, the others are of its manifest."""
    files = {name: changes.pop(name, None) for name in ("bias", "anchors", "summary")}
    manifest = manifest_of(run_id, day, **changes)
    summary = summary_of(n_right) if files["summary"] is None else files["summary"]
    return TrendRun(run_id, manifest, summary, files["bias"], files["anchors"])


def bias_of(n_right: int, n: int) -> dict[str, Any]:
    """What labels say of a judge's pass, as far as a trend reads it."""
    tree: dict[str, Any] = {}
    put(tree, "corrected", rate(n_right, n))
    put(tree, "agreement", rate(n_right, n))
    return {"n_labelled": n, "fields": {"pass": tree}}


def anchors_of(verdict: str, reference: str | None = "first", n_right: int = 28, **more: Any) -> dict[str, Any]:
    """What a night's anchors say of its judge."""
    tree: dict[str, Any] = {"verdict": verdict, "reference": reference, "changed": [], **more}
    put(tree, "agreement", rate(n_right, 30))
    return tree


def write_run(archive: Path, run: TrendRun) -> Path:
    """The run's folder in an archive, with the files that a trend reads."""
    folder = archive / run.run_id
    folder.mkdir(parents=True)
    files: dict[str, Mapping[str, Any] | None] = {
        "manifest.json": run.manifest,
        "summary.json": run.summary,
        "bias.json": run.bias,
        "anchors.json": run.anchors,
    }
    for name, tree in files.items():
        if tree is not None:
            (folder / name).write_text(json.dumps(tree), encoding="utf-8")
    return folder


def value_at(estimate: object) -> float | None:
    """The number of an estimate; None where there is none."""
    return estimate.value if isinstance(estimate, Estimate) else None
