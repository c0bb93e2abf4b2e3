"""Answers without an eval set: what needs no expectation is said, and of the rest that it is not known."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rag_judge.cli import app
from rag_judge.pipeline import RunRequest, RunResult, World, run
from rag_judge.settings import load_settings
from tests.eval_sets import verdict
from tests.servers import JudgeServer

LOG: list[dict[str, Any]] = [
    {
        "id": "1",
        "question": "How long is the trial?",
        "answer": "It runs 14 days.",
        "contexts": [{"id": "a#1", "text": "It runs for 14 days."}],
    },
    {"id": "2", "question": "By card?", "answer": "I could not find that in the documents.", "contexts": []},
    {
        "id": "3",
        "question": "退款要多久?",
        "answer": "退款 7 个工作日到账。",
        "contexts": [{"id": "b#1", "text": "退款 5 个工作日内到账。"}],
        "citations": ["b#9"],
    },
    # the figure is the question's own
    {
        "id": "4",
        "question": "买 3 件呢?",
        "history": [{"role": "user", "content": "买一件多少钱?"}],
        "answer": "3 件也可以。",
        "contexts": [{"id": "c#1", "text": "可以多买。"}],
    },
    {"id": "5", "question": "Anything?", "answer": "Yes, 99 things."},  # says nothing of what was retrieved
]


def log_file(folder: Path) -> Path:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in LOG), encoding="utf-8")
    return path


def graded(folder: Path, **flags: Any) -> RunResult:
    settings = load_settings(None, {}, {"out": str(folder / "runs"), "judge": "none", **flags}, folder=None)
    world = World({}, lambda: datetime(2026, 1, 31, tzinfo=UTC), time.monotonic)
    return run(RunRequest(settings, log_file(folder)), world)


def test_what_needs_no_expectation_is_counted_and_nothing_else_is_claimed(tmp_path: Path) -> None:
    result = graded(tmp_path)
    answers = result.summary["answers"]
    assert (answers["declined"]["value"], answers["declined"]["n"]) == (1 / 5, 5)
    assert (answers["no_context"]["value"], answers["no_context"]["n"]) == (1 / 4, 4)
    assert (answers["unsupported_figures"]["value"], answers["unsupported_figures"]["n"]) == (1 / 4, 4)
    assert [row.n_unsupported_figures for row in result.rows] == [0, 0, 1, 0, None]
    assert {row.outcome for row in result.rows} == {"not_judged"}
    rules = result.summary["rules"]
    assert (rules["correct"], rules["refusal"], rules["citations"]) == (None, None, {"dangling": 1, "checked": 1})
    assert result.summary["retrieval"]["hit"] is None
    assert result.summary["end_to_end"]["correct"] is None


@pytest.mark.parametrize(
    ("lang", "said"),
    [
        ("en", ["No case states an expectation", "declined: 1/5 = 20%", "a figure in no context: 1/4 = 25%"]),
        ("zh", ["没有用例写明预期", "拒答: 1/5 = 20%", "有数字不在资料中: 1/4 = 25%"]),
    ],
)
def test_the_command_takes_a_log_alone(tmp_path: Path, lang: str, said: list[str]) -> None:
    arguments = ["run", "--answers", str(log_file(tmp_path)), "--judge", "none", "--out", str(tmp_path / "runs")]
    result = CliRunner().invoke(app, [*arguments, "--lang", lang])
    assert result.exit_code == 0, result.output
    assert all(line in result.output for line in said)


def test_a_run_with_expectations_does_not_say_that_there_are_none(tmp_path: Path) -> None:
    with_one = [{**LOG[0], "must_include": ["14 days"]}, *LOG[1:]]
    path = tmp_path / "some.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in with_one), encoding="utf-8")
    settings = load_settings(None, {}, {"out": str(tmp_path / "runs"), "judge": "none"}, folder=None)
    result = run(RunRequest(settings, path), World({}, lambda: datetime(2026, 1, 31, tzinfo=UTC), time.monotonic))
    assert result.summary["answers"]["unsupported_figures"]["n"] == 3  # of the cases that state nothing
    assert not any("No case states" in line for line in result.lines)


def test_a_judge_sees_earlier_turns_of_a_log(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict()) as server:
        result = graded(tmp_path, judge="passfail", base_url=server.base_url, model="m", cache=False)
        texts = [str(request.body["messages"][-1]["content"]) for request in server.requests]
    assert any("earlier turns\nuser: 买一件多少钱?\n" in text or "user: 买一件多少钱?" in text for text in texts)
    assert result.summary["judge"]["drawn"] == 4  # one row has no contexts to judge by
