"""The properties of `test_verdicts` over many more replies, and attacks that are not worth a minute on every run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_judge.records import Unscored, Verdict
from rag_judge.repair import read_objects
from rag_judge.verdicts import read_body, read_verdict
from tests.test_verdicts import (
    FIELDS,
    GRADES,
    JSON_VALUES,
    OTHER,
    PLAIN,
    PROSE,
    REASONS,
    STYLES,
    TANGLES,
    completion,
    written,
)

PROJECT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow
LONG = settings(max_examples=2_000, deadline=None, suppress_health_check=list(HealthCheck))
FORGED = {"cites_source": False, "depth": 1, "tone": "mixed"}  # the grades of OTHER
# What an answer may hold and a careless judge copies without escapes. No brace closes and no tag ends the judge's own.
COPIED = st.text(st.characters(exclude_characters="{}[]<>｛｝［］◁▷\\/#"), max_size=30)


@LONG
@given(st.text() | TANGLES)
def test_no_text_raises(text: str) -> None:
    assert isinstance(read_verdict(text, FIELDS), Verdict | Unscored)
    assert isinstance(read_body(text, FIELDS), Verdict | Unscored)


@LONG
@given(JSON_VALUES, JSON_VALUES, JSON_VALUES)
def test_no_completion_raises(content: Any, calls: Any, error: Any) -> None:
    reply = completion(content, "length", tool_calls=calls, refusal=error) | {"error": error}
    assert isinstance(read_verdict(reply, FIELDS, asked_tool="grade"), Verdict | Unscored)


@LONG
@given(PROSE, REASONS, STYLES, PROSE)
def test_prose_around_a_verdict_changes_nothing(before: str, why: str, style: str, after: str) -> None:
    alone = read_verdict(written(GRADES | {"reason": why}, style), FIELDS)
    found = read_verdict(f"{before}\n{written(GRADES | {'reason': why}, style)}\n{after}", FIELDS)
    if isinstance(alone, Verdict):
        assert found == alone
    else:
        assert isinstance(found, Unscored)


@LONG
@given(REASONS, STYLES, PROSE, st.data())
def test_a_cut_verdict_is_never_read(why: str, style: str, before: str, data: st.DataObject) -> None:
    for grades in (GRADES | {"reason": why}, {"reason": why} | GRADES):
        text = written(grades, style)
        cut = text[: data.draw(st.integers(0, len(text) - 1))]
        assert isinstance(read_verdict(cut, FIELDS), Unscored)
        assert isinstance(read_verdict(f"{before}\n{cut}", FIELDS), Unscored)


@LONG
@given(TANGLES, STYLES)
def test_whatever_a_reason_quotes_it_never_changes_the_grades(quoted: str, style: str) -> None:
    found = read_verdict(written(GRADES | {"reason": quoted}, style), FIELDS)
    assert isinstance(found, Unscored) or found.values == GRADES


@LONG
@given(COPIED, COPIED, st.booleans(), st.booleans(), st.sampled_from(["json", "python", "bare_keys"]), st.data())
def test_a_verdict_copied_without_escapes_is_never_read(
    before: str, after: str, reason_first: bool, cuts: bool, style: str, data: st.DataObject
) -> None:
    grades = {"reason": "HERE", **GRADES} if reason_first else {**GRADES, "reason": "HERE"}
    forged = data.draw(st.sampled_from([OTHER, repr(json.loads(OTHER)), f"'{OTHER}'", f'"{OTHER}"', f"<think>{OTHER}"]))
    text = written(grades, style).replace("HERE", before + forged + after)
    found = read_verdict(text[: data.draw(st.integers(0, len(text)))] if cuts else text, FIELDS)
    assert isinstance(found, Unscored) or found.values == GRADES


@LONG
@given(st.integers(0, 80), st.sampled_from(["", *"{}[]\"':,\\/*#<>“”x0 "]), st.integers(0, 3), STYLES)
def test_one_slip_of_the_pen_never_lets_the_quoted_verdict_win(at: int, slip: str, drop: int, style: str) -> None:
    text = written(GRADES | {"reason": OTHER}, style)
    found = read_verdict(text[:at] + slip + text[at + drop :], FIELDS)
    assert isinstance(found, Unscored) or found.values != FORGED


@LONG
@given(TANGLES, st.integers(1, 200))
def test_the_work_on_any_repeated_text_is_bounded(piece: str, times: int) -> None:
    text = piece * times
    assert read_objects(text).steps <= 17 * len(text) + 1_001


@pytest.mark.parametrize("piece", ["{", '{"', '{"a":', PLAIN, '{"a":x</think>'])
def test_a_megabyte_is_read_to_the_end(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    assert isinstance(read_verdict(text, FIELDS), Verdict if piece == PLAIN else Unscored)


@pytest.mark.slow
def test_guided_by_coverage_nothing_raises_and_no_impossible_value_is_read() -> None:
    pytest.importorskip(
        "atheris", reason="atheris does not install on this Python; the other fuzz tests run all the same"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "tests.fuzz_verdicts", "30"], capture_output=True, text=True, timeout=120, cwd=PROJECT
    )
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    assert re.search(r"Done \d{3,} runs", ended.stderr)
