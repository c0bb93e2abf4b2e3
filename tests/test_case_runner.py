"""The runner of case files, on the project's own cases and on cases that must fail or be skipped."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.case_runner import Result, run_folder

TESTS = Path(__file__).parent
RUNNER = [sys.executable, str(TESTS / "case_runner.py")]


def test_the_projects_own_cases_pass_and_none_is_skipped() -> None:
    results = list(run_folder(TESTS / "cases"))
    assert len(results) >= 100
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


def tried(tmp_path: Path, setup: dict[str, Any], expect: dict[str, Any]) -> Result:
    """The result of one runtime case."""
    case = {"id": "r1", "setup": setup, "expect": expect}
    (tmp_path / "runtime.jsonl").write_text(json.dumps(case), encoding="utf-8")
    (result,) = run_folder(tmp_path)
    return result


@pytest.mark.parametrize(
    ("setup", "expect", "difference"),
    [
        pytest.param({"server": "ok"}, {"ok": 1}, "ok: found 2, expected 1", id="ok"),
        pytest.param({"server": "ok"}, {"error": ["item_0"]}, "error: found [], expected ['item_0']", id="error"),
        pytest.param({"server": "ok"}, {"exit_code_nonzero": True}, "found False, expected True", id="exit-code"),
        pytest.param({"server": "ok"}, {"stopped": True}, "found False, expected True", id="not-stopped"),
        pytest.param({"server": "ok"}, {"calls_at_most": 2}, "found 3, expected at most 2", id="the-probe-is-a-call"),
        pytest.param({"server": "ok"}, {"calls_at_least": 4}, "found 4, expected at most 3", id="too-few-calls"),
        pytest.param({"server": "ok"}, {"error_message_contains": "x"}, "missing ['x']", id="no-message"),
        pytest.param({"server": "ok"}, {"loop_patched": True}, "found False, expected True", id="loop"),
        pytest.param({"server": "ok"}, {"finishes_within_s": 0}, "expected at most 0", id="too-late"),
        pytest.param({"server": "slow"}, {"concurrency_at_most": 1}, "found 2, expected at most 1", id="window"),
        pytest.param({"server": "401"}, {"cause": "quota"}, "cause: not said: quota; it said '", id="another-cause"),
        pytest.param(
            {"server": "500"}, {"error_message_not_contains": "HTTP 500"}, "present ['HTTP 500']", id="message"
        ),
        pytest.param(
            {"server": "ok then 401", "called_from": "a notebook"},
            {"second_call_works": True},
            "second_call_works: found ",
            id="second-run",
        ),
        pytest.param({"server": "ok"}, {"ok": 2, "sings": True}, "not known: ['sings']", id="unknown-expectation"),
        pytest.param({"server": "ok"}, {}, "nothing is expected", id="no-expectation"),
        pytest.param({"server": "ok"}, {"ok": 1, "or": {"ok": 3}}, "ok: found 2, expected 1", id="neither-of-two"),
    ],
)
def test_a_run_that_ends_otherwise_than_expected_fails_with_the_difference(
    tmp_path: Path, setup: dict[str, Any], expect: dict[str, Any], difference: str
) -> None:
    result = tried(tmp_path, {"items": 2, "max_attempts": 1, **setup}, expect)
    assert result.verdict == "failed"
    assert difference in result.detail


@pytest.mark.parametrize(
    ("setup", "reason"),
    [
        pytest.param({"server": "sings"}, "a server that does 'sings' is not known", id="word"),
        pytest.param({"server": "ok then sings"}, "a server that does 'sings' is not known", id="second-word"),
        pytest.param({"server": "299"}, "a server that does '299' is not known", id="status"),
        pytest.param({"server": {"item_2": "ok"}}, "['item_2'] are not among the items", id="item"),
        pytest.param({"server": "ok", "called_from": "the moon"}, "called from 'the moon' is not known", id="place"),
        pytest.param({"server": "ok", "moon": "full"}, "['moon'] are not known in a setup", id="setting"),
    ],
)
def test_a_setup_that_is_not_understood_is_skipped_and_never_passes(
    tmp_path: Path, setup: dict[str, Any], reason: str
) -> None:
    result = tried(tmp_path, {"items": 2, **setup}, {"error": []})
    assert (result.verdict, result.detail) == ("skipped", f"runtime: {reason}")


def test_a_number_in_an_address_or_a_folder_is_not_taken_for_the_servers_words(tmp_path: Path) -> None:
    unwanted = ["http://", "127.0.0.1", tempfile.gettempdir()]
    result = tried(tmp_path, {"items": 1, "server": "401"}, {"error_message_not_contains": unwanted})
    assert result.verdict == "passed"


def test_another_permitted_end_passes(tmp_path: Path) -> None:
    assert tried(tmp_path, {"items": 1, "server": "ok"}, {"ok": 0, "or": {"ok": 1}}).verdict == "passed"
