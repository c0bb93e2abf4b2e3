"""Finished runs with labels, for tests of what labels say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rag_judge.pipeline.review import ReviewedRun, import_review


def label_all(run: ReviewedRun, folder: Path, passed: Sequence[bool]) -> None:
    """Label the cases q0, q1 … of a run as passed or not, from a labels file written into the folder."""
    path = folder / "labels.jsonl"
    rows = [{"case_id": f"q{n}", "annotator": "li", "passed": value} for n, value in enumerate(passed)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    import_review(run, [path], replace_labels=False)
