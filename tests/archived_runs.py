"""Run folders laid by hand, for tests of an archive's upkeep: every kind of file, each a few bytes, ages as wanted."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

NOW = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)
TEXT_FILES = ("answers.jsonl", "calls.jsonl", "cases.csv", "cases.parquet", "questions.snapshot.jsonl", "report.html")
SMALL_FILES = ("anchors.json", "bias.json", "comparison.json", "gate.json", "nightly.json", "request.json")


def laid_run(archive: Path, run_id: str, days: float = 0, status: str = "complete", **manifest: Any) -> Path:
    """A run that ended so many days before `NOW`, with texts of 100 bytes each and its small files."""
    folder = archive / run_id
    (folder / "prompts" / "passfail").mkdir(parents=True)
    ended = NOW - timedelta(days=days)
    tree = {
        "format_version": 1,
        "run_id": run_id,
        "kind": "run",
        "name": "nightly",
        "parent": None,
        "status": status,
        "started_at": (ended - timedelta(minutes=5)).isoformat(),
        "finished_at": ended.isoformat() if status == "complete" else None,
        "judges": [],
        "judge": None,
        "eval_set": {"n": 1},
        **manifest,
    }
    for name in (*TEXT_FILES, "prompts/passfail/prompt.toml"):
        (folder / name).write_bytes(b"x" * 100)
    for name in (*SMALL_FILES, "summary.json"):
        (folder / name).write_text("{}", encoding="utf-8")
    (folder / "hit.txt").write_text("a line\n", encoding="utf-8")
    (folder / "manifest.json").write_text(json.dumps(tree), encoding="utf-8")
    date_back(folder, days)
    return folder


def date_back(folder: Path, days: float) -> None:
    """Let every file of a folder have been changed so many days before `NOW`."""
    changed = (NOW - timedelta(days=days)).timestamp()
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (changed, changed))


def tree_of(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its name, with what it holds."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
