"""The kinds `cache` and `cost` of case files: a case that does not hold fails, one not understood is skipped."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.case_runner import Result, run_folder

REQUEST = {"base_url": "https://judge.example.com/v1", "model": "m", "messages": [{"role": "user", "content": "p"}]}
CALL = {"prompt": 1000, "completion": 100}
PRICE = {"in": 1.0, "out": 2.0, "unit": "per 1M tokens"}


def tried(folder: Path, kind: str, **case: Any) -> Result:
    (folder / f"{kind}.jsonl").write_text(json.dumps({"id": "x1", **case}), encoding="utf-8")
    (result,) = run_folder(folder)
    return result


@pytest.mark.parametrize(
    ("case", "difference"),
    [
        ({"a": REQUEST, "b": REQUEST, "expect": {"same_key": False}}, "found True, expected False"),
        ({"a": REQUEST, "b": {**REQUEST, "repeat": 1}, "expect": {"same_key": True}}, "found False, expected True"),
        ({"reply_status": "ok", "expect": {"stored": False}}, "found True, expected False"),
        ({"reply_status": "invalid", "expect": {"stored": True}}, "found False, expected True"),
    ],
)
def test_a_case_of_the_cache_that_does_not_hold_fails(tmp_path: Path, case: dict[str, Any], difference: str) -> None:
    assert tried(tmp_path, "cache", **case) == Result("x1", "failed", difference)


@pytest.mark.parametrize(
    ("calls", "expect"),
    [
        pytest.param([CALL], {"cost": 0.0013}, id="cost"),
        pytest.param([CALL], {"cost": 0.00120001}, id="by a hundred-millionth"),
        pytest.param([CALL], {"complete": False}, id="complete"),
        pytest.param([CALL, {"usage": None}], {"complete": True}, id="not complete"),
        pytest.param([{"usage": None}], {"calls_without_usage": 0}, id="uncounted"),
        pytest.param([{**CALL, "from_cache": True}], {"cost": 0.0012}, id="replayed"),
        pytest.param([CALL], {"smell": 1}, id="an expectation that is not known"),
    ],
)
def test_a_case_of_cost_that_does_not_hold_fails(
    tmp_path: Path, calls: list[dict[str, Any]], expect: dict[str, Any]
) -> None:
    assert tried(tmp_path, "cost", price=PRICE, calls=calls, expect=expect).verdict == "failed"


@pytest.mark.parametrize(
    ("kind", "case", "reason"),
    [
        ("cache", {"a": REQUEST, "b": {**REQUEST, "mood": 1}, "expect": {"same_key": True}}, "['mood'] of a request"),
        ("cache", {"reply_status": "sung", "expect": {"stored": True}}, "a reply of status 'sung'"),
        ("cost", {"price": PRICE, "calls": [{"outcome": "sung", **CALL}], "expect": {"cost": 0}}, "the outcome 'sung'"),
        ("cost", {"price": PRICE, "calls": [{"mood": 1, **CALL}], "expect": {"cost": 0}}, "['mood'] of a call"),
        ("cost", {"price": {**PRICE, "unit": "per page"}, "calls": [], "expect": {"cost": 0}}, "the unit 'per page'"),
    ],
)
def test_what_is_not_understood_is_skipped_and_never_passes(
    tmp_path: Path, kind: str, case: dict[str, Any], reason: str
) -> None:
    result = tried(tmp_path, kind, **case)
    assert result.verdict == "skipped"
    assert reason in result.detail
