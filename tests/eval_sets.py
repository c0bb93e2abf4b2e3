"""Small eval sets and answers for the tests of whole runs."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

VERDICT = {"grounded": True, "complete": True, "should_abstain": False, "reason": "ok"}


def verdict(**changes: Any) -> str:
    """A one-line pass/fail verdict; a pass unless changed."""
    return json.dumps(VERDICT | changes)


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write JSON Lines."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def numbered_cases(n: int) -> list[dict[str, Any]]:
    """Cases q0, q1 …; every third is Chinese."""
    return [
        {
            "id": f"q{i}",
            "question": f"第{i}题:有多少个座位?" if i % 3 == 0 else f"Question {i}: how many seats?",
            "type": "fact",
            "must_include": [str(100 + i)],
            "relevant_docs": [f"d#{i}"],
        }
        for i in range(n)
    ]


def numbered_answers(n: int) -> list[dict[str, Any]]:
    """An answer to each of the numbered cases; every fifth lacks the key point."""
    return [
        {
            "id": f"q{i}",
            "answer": f"There are {100 + i} seats." if i % 5 else "There are many seats.",
            "contexts": [
                {"id": f"x#{i}", "text": "Something else.", "score": 0.9},
                {"id": f"d#{i}", "text": f"The hall has {100 + i} seats.", "score": 0.8},
            ],
            "citations": [f"d#{i}"],
            "refused": False,
        }
        for i in range(n)
    ]


def numbered_files(folder: Path, n: int) -> tuple[Path, Path]:
    """Both as files: cases and answers."""
    cases = write_rows(folder / "cases.jsonl", numbered_cases(n))
    return cases, write_rows(folder / "answers.jsonl", numbered_answers(n))
