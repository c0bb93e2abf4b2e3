"""A judge that grades its own kind is said: while the run goes, in the manifest, on the page."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rag_judge.pipeline import RunRequest, RunResult, World, run
from rag_judge.settings import load_settings
from tests.eval_sets import numbered_files, verdict
from tests.servers import JudgeServer


def judged(folder: Path, judge: str, said: list[str], *, lang: str = "en", **system: str) -> RunResult:
    cases, answers = numbered_files(folder, 2)
    with JudgeServer(lambda _: verdict()) as server:
        flags = {"out": str(folder / "runs"), "base_url": server.base_url, "model": judge, "lang": lang}
        settings = load_settings(None, {}, {**flags, "system": system, "cache": False}, folder=None)
        world = World({}, lambda: datetime(2026, 1, 31, tzinfo=UTC), time.monotonic, said.append)
        return run(RunRequest(settings, cases, answers), world)


@pytest.mark.parametrize(("lang", "words"), [("en", "may favour its own kind"), ("zh", "可能偏袒同类")])
def test_a_judge_of_the_systems_family_is_said(tmp_path: Path, lang: str, words: str) -> None:
    said: list[str] = []
    result = judged(tmp_path, "qwen3-max", said, lang=lang, model="Qwen/Qwen2.5-7B-Instruct")
    assert any("may favour its own kind" in line for line in said)
    manifest = result.folder.read_json("manifest.json")
    assert manifest["same_family"] == [{"judge": "qwen3-max", "system": "Qwen/Qwen2.5-7B-Instruct", "family": "qwen"}]
    assert words in (result.folder.path / "report.html").read_text(encoding="utf-8")


def test_another_family_and_an_unknown_model_are_not(tmp_path: Path) -> None:
    said: list[str] = []
    first = judged(tmp_path, "gpt-6", said, model="Qwen/Qwen2.5-7B-Instruct")
    second = judged(tmp_path, "qwen3-max", said, embedding="qwen3-embedding")  # an embedding writes no answers
    assert not any("own kind" in line for line in said)
    for result in (first, second):
        assert result.folder.read_json("manifest.json")["same_family"] == []


def test_what_the_answers_say_of_their_model_counts(tmp_path: Path) -> None:
    cases, answers = numbered_files(tmp_path, 2)
    rows = [json.loads(line) | {"meta": {"model": "gpt-6-mini"}} for line in answers.read_text().splitlines()]
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    said: list[str] = []
    with JudgeServer(lambda _: verdict()) as server:
        flags = {"out": str(tmp_path / "runs"), "base_url": server.base_url, "model": "gpt-6", "cache": False}
        world = World({}, lambda: datetime(2026, 1, 31, tzinfo=UTC), time.monotonic, said.append)
        run(RunRequest(load_settings(None, {}, flags, folder=None), cases, answers), world)
    assert any("of one family (openai) with gpt-6-mini" in line for line in said)
