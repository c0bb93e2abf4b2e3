"""A small world for nightly jobs: eval set, anchors, and a RAG system and a judge that can change by the night."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from rag_judge.pipeline import World
from tests.eval_sets import numbered_answers, numbered_cases, verdict, write_rows
from tests.misbehaviour import JudgeRequest, Misbehaviour, Respond
from tests.servers import reply_body

ZONE = timezone(timedelta(hours=8))
FIRST_NIGHT = datetime(2026, 3, 1, 2, 17, tzinfo=ZONE)
N_CASES, N_ANCHORS = 40, 30


def share_of(text: str) -> float:
    """A number in [0, 1) that hangs on nothing but the text."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32


@dataclass(slots=True)
class TestSystem:
    """A RAG system that answers every question; `worse` leaves the key point out of half of its answers."""

    __test__ = False
    worse: bool = False
    down: bool = False
    n_asked: int = 0

    def __call__(self, body: Mapping[str, Any]) -> dict[str, Any] | Misbehaviour:
        if self.down:
            return Respond(503, "down")
        self.n_asked += 1
        number = next(i for i, case in enumerate(numbered_cases(N_CASES)) if case["question"] == body["query"])
        said = "There are many seats." if self.worse and number % 2 else f"There are {100 + number} seats."
        return {"answer": said, "contexts": numbered_answers(N_CASES)[number]["contexts"]}


@dataclass(slots=True)
class TestJudge:
    """A judge that passes what names a number, but for a share of answers that hangs on their text alone."""

    __test__ = False
    model: str = "judge-1"
    strictness: float = 0.1  # share of good answers that it fails
    down: bool = False
    prose: bool = False  # answer what no parser reads

    def __call__(self, request: JudgeRequest) -> Misbehaviour:
        if self.down:
            return Respond(503, "down")
        if self.prose:
            return Respond(200, reply_body("I think it is fine.", request, self.model))
        is_good = "There are many seats" not in request.text and share_of(request.text) >= self.strictness
        return Respond(200, reply_body(verdict(complete=is_good), request, self.model))


@dataclass(slots=True)
class Nights:
    """Where nights take place, and their clock."""

    folder: Path
    night: int = 1
    said: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def archive(self) -> Path:
        """The archive of runs."""
        return self.folder / "runs"

    @property
    def now(self) -> datetime:
        """The start of the night."""
        return FIRST_NIGHT + timedelta(days=self.night - 1)

    def world(self) -> World:
        """A world whose clock stands at this night."""
        started = time.monotonic()
        return World(
            self.environment,
            lambda: self.now + timedelta(seconds=time.monotonic() - started),
            time.monotonic,
            self.said.append,
        )


def lay(folder: Path, ask_url: str, judge_url: str, more: str = "", **nightly: Any) -> Path:
    """Eval set, anchors and settings in a folder; returns the settings file."""
    cases = write_rows(folder / "cases.jsonl", numbered_cases(N_CASES))
    rows = zip(numbered_cases(N_ANCHORS), numbered_answers(N_ANCHORS), strict=True)
    anchors = [
        {**case, **answer, "id": f"anchor-{case['id']}", "labels": {"passed": "many" not in answer["answer"]}}
        for case, answer in rows
    ]
    told = {"cases": str(cases), "anchors": str(write_rows(folder / "anchors.jsonl", anchors)), **nightly}
    text = "".join(f"{name} = {_toml(value)}\n" for name, value in told.items() if value is not None)
    config = folder / "rag-judge.toml"
    config.write_text(
        f'[run]\nout = "{folder / "runs"}"\n[endpoint]\nurl = "{ask_url}"\nattempts = 1\nbackoff_s = 0.0\n'
        f'[judge]\nbase_url = "{judge_url}"\nmodel = "judge"\nattempts = 1\nbackoff_s = 0.0\nrepeats = 3\n'
        f"[gate.allowed_regression]\npass = 0.1\nrule_correct = 0.1\n[nightly]\n{text}{more}",
        encoding="utf-8",
    )
    return config


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)
