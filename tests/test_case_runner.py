"""The runner of case files, on the project's own cases and on a case that must fail."""

import json
import subprocess
import sys
from pathlib import Path

from tests.case_runner import run_folder

TESTS = Path(__file__).parent
RUNNER = [sys.executable, str(TESTS / "case_runner.py")]


def test_the_projects_own_cases_pass_and_none_is_skipped() -> None:
    results = list(run_folder(TESTS / "cases"))
    assert len(results) >= 60
    assert [result for result in results if result.verdict != "passed"] == []


def test_a_case_that_does_not_hold_fails_and_an_unknown_kind_is_skipped_with_a_reason(tmp_path: Path) -> None:
    wrong = {"id": "m1", "retrieved": ["a"], "relevant": ["b"], "k": 1, "expect": {"hit": 1}}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(wrong), encoding="utf-8")
    (tmp_path / "weather.jsonl").write_text(json.dumps({"id": "w1", "expect": {}}), encoding="utf-8")
    ended = subprocess.run([*RUNNER, str(tmp_path)], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stdout.splitlines() == [
        "failed m1: found 0, expected 1",
        "skipped w1: weather: not built yet",
        "0 passed, 1 failed, 1 skipped",
    ]


def test_the_runner_wants_one_folder() -> None:
    ended = subprocess.run([*RUNNER, "nowhere"], capture_output=True, text=True, check=False)
    assert (ended.returncode, "usage" in ended.stderr) == (2, True)
