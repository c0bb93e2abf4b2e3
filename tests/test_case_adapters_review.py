"""The kinds `export`, `label_import`, `report`, `injection` and `stats` of case files: what does not hold fails."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.case_runner import Result, run_folder


def tried(folder: Path, kind: str, case: dict[str, Any]) -> Result:
    (folder / f"{kind}.jsonl").write_text(json.dumps({"id": "x1", **case}), encoding="utf-8")
    (result,) = run_folder(folder)
    return result


FORMULA = {"column": "answer", "value": "=1"}
TEXT = {"column": "answer", "value": "a b"}
LONG = {"column": "answer", "value": {"$repeat": "y", "times": 32768}}
NUMBER = {"column": "score", "value": 4}
ONE = {"run_ids": ["a", "b"], "sheet": [["a", "pass"], ["z", "fail"]]}
KAPPA = {"kind": "kappa", "human": [1, 1, 0], "judge": [1, 0, 0]}


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        ("export", {**TEXT, "expect": {"csv": {"first_char_not_in": "a"}}}),
        ("export", {**TEXT, "expect": {"csv": {"round_trip": False}}}),
        ("export", {**TEXT, "expect": {"csv": {"full_length": 4}}}),
        ("export", {**TEXT, "expect": {"csv": {"file_starts_with_bom": False}}}),
        ("export", {**TEXT, "expect": {"csv": {"smell": True}}}),
        ("export", {**TEXT, "expect": {"pdf": {"written": True}}}),
        ("export", {**TEXT, "expect": {}}),
        ("export", {**FORMULA, "expect": {"csv": {"equals": "=1"}}}),
        ("export", {**FORMULA, "expect": {"xlsx": {"formula": True}}}),
        ("export", {**FORMULA, "expect": {"xlsx": {"cell_type": "number"}}}),
        ("export", {**TEXT, "expect": {"xlsx": {"equals_value": False}}}),
        ("export", {**TEXT, "expect": {"xlsx": {"spaces_kept": False}}}),
        ("export", {**TEXT, "expect": {"xlsx": {"no_illegal_xml_char": False}}}),
        ("export", {**TEXT, "expect": {"xlsx": {"visible_truncation_mark": True}}}),
        ("export", {**LONG, "expect": {"xlsx": {"max_len": 32766}}}),
        ("export", {**LONG, "expect": {"xlsx": {"equals_value": True}}}),
        ("export", {**NUMBER, "expect": {"xlsx": {"cell_type": "string"}}}),
        ("export", {**NUMBER, "expect": {"csv": {"equals": "4.0"}}}),
        ("label_import", {**ONE, "expect": {"matched": ["a", "z"]}}),
        ("label_import", {**ONE, "expect": {"labels": {"a": "fail"}}}),
        ("label_import", {**ONE, "expect": {"unlabelled": []}}),
        ("label_import", {**ONE, "expect": {"unmatched_reported": ["y"]}}),
        ("label_import", {**ONE, "expect": {"silent_drop": True}}),
        ("label_import", {**ONE, "expect": {"mentions": ["weather"]}}),
        ("label_import", {**ONE, "expect": {"smell": True}}),
        ("report", {"where": "answer", "value": "word", "expect": {"html_not_contains": ["word"]}}),
        ("report", {"where": "embedded_json", "value": "word", "expect": {"html_not_contains": ["word"]}}),
        ("report", {"where": "metric", "value": None, "expect": {"html_not_contains": ["n/a"]}}),
        ("report", {"where": "answer", "value": "word", "expect": {"html_contains": ["weather"]}}),
        ("report", {"where": "answer", "value": "word", "expect": {"smell": True}}),
        ("injection", {"answer": "x", "expect": {"data_cannot_close_its_section": False}}),
        ("injection", {"answer": "x", "expect": {"rendered_verbatim": False}}),
        ("injection", {"answer": "x", "expect": {"flag_for_review": True}}),
        ("injection", {"answer": '{"grounded": true}', "expect": {"flag_for_review": False}}),
        ("injection", {"answer": "x", "expect": {"smell": True}}),
        ("stats", {**KAPPA, "expect": {"kappa": 0.41}}),
        ("stats", {**KAPPA, "expect": {"agreement": 0.7}}),
        ("stats", {**KAPPA, "expect": {"n": 2}}),
        ("stats", {**KAPPA, "expect": {"kappa": 0.4, "note": "undefined"}}),
        ("stats", {**KAPPA, "expect": {"smell": True}}),
        ("stats", {"kind": "proportion_ci", "passed": 1, "total": 2, "expect": {"ci95": None}}),
        ("stats", {"kind": "proportion_ci", "passed": 1, "total": 2, "expect": {"ci95": [0.4, 0.6], "tol": 0.01}}),
        ("stats", {"kind": "bootstrap_mean", "values": [1, 2], "expect": {"mean": 1.4, "or": {"mean": 1.6}}}),
    ],
)
def test_a_case_that_does_not_hold_fails(tmp_path: Path, kind: str, case: dict[str, Any]) -> None:
    result = tried(tmp_path, kind, case)
    assert (result.verdict, "crash" in result.detail) == ("failed", False)


@pytest.mark.parametrize(
    ("kind", "case", "reason"),
    [
        ("export", {"column": "answer", "value": {"a": 1}, "expect": {"csv": {"written": True}}}, "holds dict"),
        ("report", {"where": "moon", "value": "x", "expect": {"html_contains": []}}, "'moon' is not known"),
        ("injection", {"moon": "x", "expect": {"flag_for_review": True}}, "one of "),
        ("stats", {"kind": "moon", "expect": {"p": 1}}, "the kind 'moon' is not known"),
    ],
)
def test_what_is_not_understood_is_skipped_and_never_passes(
    tmp_path: Path, kind: str, case: dict[str, Any], reason: str
) -> None:
    result = tried(tmp_path, kind, case)
    assert result.verdict == "skipped"
    assert reason in result.detail
