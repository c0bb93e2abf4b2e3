"""Two versions in one command: one endpoint with two settings, two endpoints, two files; decided at the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rag_judge.archive import list_runs
from rag_judge.cli import app
from rag_judge.demo.rag_service import running_service
from rag_judge.pipeline.demo import write_cases
from rag_judge.prompts import shipped_folder
from tests.eval_sets import numbered_answers, numbered_cases, verdict, write_rows
from tests.misbehaviour import JudgeRequest
from tests.servers import JudgeServer, RagServer

N = 12


def rag(body: dict[str, Any]) -> dict[str, Any]:
    """A system whose second prompt version leaves the key point out of half of its answers."""
    number = next(i for i, case in enumerate(numbered_cases(N)) if case["question"] == body["question"])
    answer = dict(numbered_answers(N)[number])
    said = f"There are {100 + number} seats." if body["prompt"] == "1" or number % 2 else "There are many seats."
    return {"answer": said, "contexts": answer["contexts"], "meta": {"prompt": body["prompt"]}}


def judge(request: JudgeRequest) -> str:
    if '"winner"' in str(request.body["messages"][0]["content"]):
        return '{"winner": "tie", "reason": "alike"}'
    return verdict()


def files(folder: Path) -> tuple[Path, Path]:
    cases = write_rows(folder / "cases.jsonl", numbered_cases(N))
    config = folder / "rag-judge.toml"
    config.write_text(
        '[endpoint.request]\nquestion = "{{ question }}"\nprompt = "{{ prompt }}"\n'
        "[gate.allowed_regression]\nrule_correct = 0.05\n"
    )
    return cases, config


def invoked(folder: Path, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["ab", *arguments, "--out", str(folder / "runs"), "--name", "trial", "--quiet"])


def test_one_endpoint_with_two_settings_is_graded_paired_compared_and_decided(tmp_path: Path) -> None:
    cases, config = files(tmp_path)
    with RagServer(rag) as system, JudgeServer(judge) as server:
        result = invoked(
            tmp_path,
            *("--cases", str(cases), "--a", system.ask_url, "--set-a", 'prompt="1"'),
            *("--b", system.ask_url, "--set-b", 'prompt="2"', "--config", str(config)),
            *("--base-url", server.base_url, "--model", "m"),
        )
        assert [req.body["prompt"] for req in system.requests].count("2") == N
    assert result.exit_code in (1, 3), result.output
    assert "what differs: system.prompt: 1 -> 2" in result.output
    assert "ties 12" in result.output or "12 ties" in result.output or "tie 12" in result.output
    assert result.output.splitlines()[-1].startswith(("HOLD", "NOT ENOUGH EVIDENCE"))
    names = sorted(folder.manifest()["name"] for folder in list_runs(tmp_path / "runs"))
    assert names == ["trial-a", "trial-b", "trial-pairs"]


def test_two_answer_files_without_a_judge(tmp_path: Path) -> None:
    cases, _ = files(tmp_path)
    answers = write_rows(tmp_path / "a.jsonl", numbered_answers(N))
    arguments = ["--cases", str(cases), "--a", str(answers), "--b", str(answers), "--judge", "none", "--json"]
    result = invoked(tmp_path, *arguments)
    assert result.exit_code == 0, result.output
    tree = json.loads(result.stdout)
    assert sorted(tree["runs"]) == ["a", "b"]
    assert tree["gate"]["decision"] == "ship"
    assert tree["comparison"]["changed_cases"] == []


def test_a_limit_of_calls_is_one_for_all_of_it(tmp_path: Path) -> None:
    cases, _ = files(tmp_path)
    answers = write_rows(tmp_path / "a.jsonl", numbered_answers(N))
    with JudgeServer(judge) as server:
        arguments = ["--cases", str(cases), "--a", str(answers), "--b", str(answers), "--max-calls", "30"]
        result = invoked(tmp_path, *arguments, "--base-url", server.base_url, "--model", "m")
        # A takes 24 calls; B finds the same requests in the cache, and so the pairs get the other six
        assert len(server.requests) == 30
    assert "the limit of 6 calls is reached" in str(result.exception)


@pytest.mark.parametrize("wrong", ["nothing.jsonl", "ftp://x"])
def test_a_version_that_is_neither_is_an_error_before_anything_is_asked(tmp_path: Path, wrong: str) -> None:
    cases, _ = files(tmp_path)
    answers = write_rows(tmp_path / "a.jsonl", numbered_answers(N))
    result = invoked(tmp_path, "--cases", str(cases), "--a", str(answers), "--b", wrong, "--judge", "none")
    assert f"--b: found {wrong!r}" in str(result.exception)
    assert not list_runs(tmp_path / "runs")


def test_the_example_through_ab_holds_the_version_that_leaks(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    write_cases(shipped_folder("eval"), cases)
    kb = shipped_folder("eval") / "kb"

    def decided(a: str, b: str, folder: str) -> Any:
        arguments = [
            "--cases",
            str(cases),
            "--a",
            f"{a}/ask",
            "--b",
            f"{b}/ask",
            "--judge",
            "none",
            "--corpus",
            str(kb),
        ]
        return invoked(tmp_path / folder, *arguments)

    versions: list[Callable[[], Any]] = []
    with running_service("v1", kb) as first, running_service("v2", kb) as second:
        versions = [lambda: decided(first, second, "up"), lambda: decided(second, first, "down")]
        better, worse = (act() for act in versions)
    assert better.exit_code == 0, better.output
    assert "qa-012: fail (leak, access) -> pass" in better.output
    assert worse.exit_code == 1
    assert worse.output.splitlines()[-1].startswith("HOLD: red_lines (7 cases")
