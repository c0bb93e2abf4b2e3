"""Labels as lines of a file: what is taken, what is refused and where, and how new ones join those that are there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rag_judge.errors import InputError
from rag_judge.gold import ADJUDICATOR, Label, gold, is_disputed, paired
from rag_judge.review.label_file import is_label_file, merged, read_labels
from rag_judge.review.sheet import fields_for
from tests.eval_sets import write_rows
from tests.review_sheets import ASKED

FIELDS = fields_for("passfail", ASKED["passfail"])


def read(folder: Path, rows: Sequence[Mapping[str, Any]], known: set[str] | None = None) -> list[Label]:
    return read_labels(write_rows(folder / "labels.jsonl", rows), FIELDS, known)


# --- reading ---------------------------------------------------------------------------------------------------------


def test_values_are_taken_in_every_spelling_and_null_is_unsure(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"case_id": "q1", "annotator": "li", "grounded": True, "complete": "no", "should_abstain": None},
        {"case_id": "q2", "annotator": "li", "grounded": "是", "complete": "不确定", "passed": "pass"},
        {"case_id": 3, "annotator": "li", "grounded": 0, "cause": "invented", "critique": "why", "note": "n"},
    ]
    labels = read(tmp_path, rows)
    assert [label.values for label in labels] == [
        {"grounded": True, "complete": False, "should_abstain": None},
        {"grounded": True, "complete": None, "passed": True},
        {"grounded": False, "cause": "invented"},
    ]
    assert [label.case_id for label in labels] == ["q1", "q2", "3"]
    assert (labels[2].critique, labels[2].note) == ("why", "n")


def test_what_is_blank_was_not_answered_and_what_is_not_asked_is_left(tmp_path: Path) -> None:
    (label,) = read(tmp_path, [{"case_id": "q1", "grounded": "", "complete": "  ", "mood": "good", "passed": True}])
    assert (label.annotator, label.values) == ("annotator", {"passed": True})


@pytest.mark.parametrize(
    ("row", "message"),
    [
        pytest.param({"annotator": "li"}, "labels.jsonl:2: case_id is missing", id="no case"),
        pytest.param({"case_id": ""}, "labels.jsonl:2: case_id is missing", id="an empty case"),
        pytest.param({"case_id": ["q"]}, "labels.jsonl:2: case_id", id="a list for a case"),
        pytest.param(
            {"case_id": "q2", "grounded": "maybe"},
            r"labels.jsonl:2: grounded: found 'maybe', expected yes, no or unsure",
            id="an impossible answer",
        ),
        pytest.param({"case_id": "q2", "complete": 2}, "labels.jsonl:2: complete: found 2", id="a number"),
        pytest.param({"case_id": "q2", "grounded": [True]}, "labels.jsonl:2: grounded: found", id="a list"),
        pytest.param({"case_id": "q2", "cause": "bad luck"}, "labels.jsonl:2: cause: found 'bad luck'", id="no cause"),
        pytest.param({"case_id": "q2", "grounded": "x" * 9_999}, "labels.jsonl:2: grounded: found .{,70}…", id="long"),
        pytest.param(
            {"case_id": "q1", "annotator": "li", "grounded": True},
            r"labels.jsonl:2: li labels q1 twice, first at .*labels.jsonl:1",
            id="the same case twice",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_line_and_field(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, [{"case_id": "q1", "annotator": "li", "grounded": True}, row])


def test_cases_that_are_not_known_are_all_named_with_their_lines(tmp_path: Path) -> None:
    rows = [{"case_id": case_id, "annotator": "li", "passed": True} for case_id in ("q1", "x", "q2", "y")]
    with pytest.raises(InputError) as caught:
        read(tmp_path, rows, {"q1", "q2"})
    assert "2 labels cannot be taken, and nothing was imported" in str(caught.value)
    assert "labels.jsonl:2: case_id: found 'x', which this run does not have" in str(caught.value)
    assert "labels.jsonl:4: case_id: found 'y'" in str(caught.value)


def test_many_errors_are_counted_and_the_first_are_shown(tmp_path: Path) -> None:
    rows = [{"case_id": f"x{i}", "passed": True} for i in range(50)]
    with pytest.raises(InputError) as caught:
        read(tmp_path, rows, {"q1"})
    assert len(str(caught.value).splitlines()) == 22  # a heading, twenty, and how many more
    assert str(caught.value).endswith("… and 30 more")


def test_a_label_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    label = Label("q1", "li", {"grounded": None, "passed": False, "cause": "leak"}, "why", "note", "v1", "sheet")
    assert read(tmp_path, [label.fields()]) == [label]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param('{"case_id": "q1"}\n', True, id="labels"),
        pytest.param('\ufeff{"annotator": "li", "case_id": "q1"}\n', True, id="with a mark before it"),
        pytest.param('{"format": "x", "labels": [{"critique": "\\"case_id\\" is odd"}]}', False, id="a page's export"),
        pytest.param('[{"data": {"case_id": "q1"}}]', False, id="tasks"),
        pytest.param("item,question,case_id\n", False, id="a table"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_a_labels_file_is_told_from_a_sheet(tmp_path: Path, content: str, expected: bool) -> None:
    path = tmp_path / "file"
    path.write_text(content, encoding="utf-8")
    assert is_label_file(path) is expected
    assert is_label_file(tmp_path / "missing") is False


# --- joining ---------------------------------------------------------------------------------------------------------


def label(case_id: str, annotator: str = "li", /, *, critique: str | None = None, at: str = "", **values: Any) -> Label:
    return Label(case_id, annotator, values, critique, places={name: f"{at}: {name}" for name in (*values, "critique")})


def test_new_labels_are_added_and_blank_fields_are_filled_in() -> None:
    kept = [label("q1", grounded=True)]
    labels, n_new = merged(kept, [label("q1", complete=False), label("q2", grounded=True)], replace=False)
    assert [(one.case_id, one.values) for one in labels] == [
        ("q1", {"grounded": True, "complete": False}),
        ("q2", {"grounded": True}),
    ]
    assert n_new == 2


def test_the_same_again_is_nothing_new() -> None:
    kept = [label("q1", grounded=True, critique="why"), label("q1", "wang", grounded=False)]
    assert merged(kept, kept, replace=False) == (kept, 0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            {"grounded": True}, {"grounded": False}, "b:2: grounded: found no, but a:1: grounded says yes", id="a yes"
        ),
        pytest.param({"grounded": None}, {"grounded": True}, "found yes, but a:1: grounded says unsure", id="unsure"),
        pytest.param(
            {"critique": "one"}, {"critique": "two"}, "found 'two', but a:1: critique says 'one'", id="a text"
        ),
    ],
)
def test_what_is_there_is_not_changed_unless_told_to(old: dict[str, Any], new: dict[str, Any], message: str) -> None:
    kept, changed = [label("q1", at="a:1", **old)], [label("q1", at="b:2", **new), label("q2", passed=True)]
    with pytest.raises(InputError, match=message) as caught:
        merged(kept, changed, replace=False)
    assert "nothing was imported" in str(caught.value)
    assert "give --replace" in str(caught.value)
    labels, n_new = merged(kept, changed, replace=True)
    assert (labels[0].fields()["case_id"], n_new) == ("q1", 2)
    assert labels[0] == label("q1", **new)


def test_new_labels_that_contradict_each_other_are_refused_even_where_they_may_replace() -> None:
    new = [label("q1", at="a:1", passed=True), label("q1", at="b:7", passed=False)]
    with pytest.raises(InputError, match="b:7: passed: found no, but a:1: passed says yes") as caught:
        merged([], new, replace=True)
    assert "--replace" not in str(caught.value)


def test_a_conflict_without_a_known_place_names_case_and_annotator() -> None:
    with pytest.raises(InputError, match="found no, but the label imported before, of case 'q1' by li, says yes"):
        merged([Label("q1", "li", {"passed": True})], [label("q1", passed=False)], replace=False)


# --- several annotators ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "third", "expected_gold", "disputed"),
    [
        pytest.param([], [], None, False, id="nobody"),
        pytest.param([True], [], True, False, id="one"),
        pytest.param([False, False], [], False, False, id="agreed"),
        pytest.param([True, False], [], None, True, id="open"),
        pytest.param([True, None], [], None, True, id="one is unsure"),
        pytest.param([None, None], [], None, False, id="both are unsure"),
        pytest.param([True, False], [False], False, True, id="settled"),
        pytest.param([True, False], [None], None, True, id="the third is unsure"),
        pytest.param([True, True], [False], False, False, id="overruled"),
        pytest.param([True, True, False], [], None, True, id="a majority settles nothing"),
    ],
)
def test_gold_is_what_all_agree_on_or_the_third_reader_says(
    said: list[bool | None], third: list[bool | None], expected_gold: bool | None, disputed: bool
) -> None:
    labels = [Label("q1", f"a{i}", {"passed": value}) for i, value in enumerate(said)]
    labels += [Label("q1", "silent", {"grounded": True})]
    labels += [Label("q1", ADJUDICATOR, {"passed": value}) for value in third]
    for order in (labels, labels[::-1]):
        assert gold(order, "passed") is expected_gold
        assert is_disputed(order, "passed") is disputed


def test_pairs_are_of_different_annotators_on_one_case_without_the_third_reader() -> None:
    labels = [
        Label("q1", "wang", {"passed": False}),
        Label("q1", "li", {"passed": True}),
        Label("q1", ADJUDICATOR, {"passed": True}),
        Label("q2", "li", {"passed": True}),
        Label("q3", "li", {"passed": None}),
        Label("q3", "wang", {"passed": True}),
    ]
    assert list(paired(labels, "passed")) == [("q1", True, False)]  # by name: li first


def test_labels_keep_no_place_on_disk() -> None:
    assert json.dumps(label("q1", at="secret.csv, row 3", passed=True).fields()) == (
        '{"case_id": "q1", "annotator": "li", "passed": true}'
    )
