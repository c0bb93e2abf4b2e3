"""Review sheets: blind, whole in every format, the same labels back from each, none from another sheet."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import random
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from rag_judge.errors import InputError
from rag_judge.records import Answer, Case, Context, VerdictField
from rag_judge.review.cells import rows_of, utf16_length
from rag_judge.review.csv_sheet import csv_cell, csv_text
from rag_judge.review.instructions import CAUSE_WORDS, as_lines, instructions_for, version_warning
from rag_judge.review.labels import ItemLabel, read_value
from rag_judge.review.reading import N_ERRORS_SHOWN, read_sheet, read_sheets
from rag_judge.review.sheet import (
    CAUSE,
    ITEM_ID,
    ItemKey,
    ReviewTexts,
    columns_of,
    fields_for,
    make_sheet,
    sheet_fields,
    sheet_from_fields,
    text_digest,
    texts_of,
)
from rag_judge.review.writing import SUFFIXES, Format, write_sheet
from rag_judge.review.xlsx import CELL_LIMIT, height_of, tables_of
from tests.review_sheets import (
    ASKED,
    annotation,
    csv_bytes,
    csv_rows,
    exported,
    fill,
    fill_csv,
    fill_xlsx,
    filled_rows,
    known,
    sheet_of,
    texts,
)

FORMATS: tuple[Format, ...] = ("xlsx", "csv", "html", "label-studio")
every_format = pytest.mark.parametrize("format", FORMATS)
both_languages = pytest.mark.parametrize("lang", ["en", "zh"])
COLUMNS = "item,question,contexts,answer,grounded,complete,should_abstain,did_abstain,passed,cause,critique,note"


def written(sheet: Any, tmp_path: Path, format: Format) -> Path:
    return write_sheet(sheet, tmp_path / f"sheet-{sheet.annotator}{SUFFIXES[format]}", format)[0]


# --- the sheet as a value -------------------------------------------------------------------------------------------


def test_ids_are_letters_that_no_spreadsheet_takes_for_something_else() -> None:
    sheet = sheet_of([texts() for _ in range(200)])
    ids = [item.id for item in sheet.items]
    assert len(set(ids)) == 200
    assert all(ITEM_ID.fullmatch(one) and one.startswith(f"{sheet.sheet_id}-") for one in ids)


def test_each_annotator_has_an_order_and_ids_of_their_own() -> None:
    drawn = {f"case-{i}": texts(question=f"Question {i}?") for i in range(20)}
    one, other = sheet_of(drawn, seed=1), sheet_of(drawn, seed=2, annotator="ben")
    assert one == sheet_of(drawn, seed=1)
    assert not {item.id for item in one.items} & {item.id for item in other.items}
    assert [item.texts for item in one.items] != [item.texts for item in other.items]
    assert {item.texts.question for item in one.items} == {item.texts.question for item in other.items}


def test_which_of_two_answers_stands_as_a_changes_and_is_undone_by_the_key() -> None:
    pair = ReviewTexts("q?", ("of a", "of b"), ((), None))
    fields = fields_for("pairwise", ASKED["pairwise"])
    sheet, keys = make_sheet(
        {f"c{i}": pair for i in range(40)},
        "anna",
        mode="pairwise",
        fields=fields,
        lang="en",
        instructions_version="v",
        rng=random.Random(3),
    )
    assert {keys[item.id].is_swapped for item in sheet.items} == {True, False}
    for item in sheet.items:
        swapped = keys[item.id].is_swapped
        assert item.texts.answers == (("of b", "of a") if swapped else ("of a", "of b"))
        assert item.texts.contexts == ((None, ()) if swapped else ((), None))
        assert keys[item.id].winner("A") == ("B" if swapped else "A")
    assert [ItemKey("c", True).winner(seen) for seen in ("B", "tie", None)] == ["A", "tie", None]


def test_the_columns_are_those_of_the_contract() -> None:
    assert ",".join(columns_of(sheet_of([texts()]))) == COLUMNS
    pair = ReviewTexts("q?", ("a", "b"), ((),))
    assert columns_of(sheet_of([pair], mode="pairwise"))[3:] == ("answer_a", "answer_b", "winner", "critique", "note")
    assert columns_of(sheet_of([texts()], mode="scale"))[3:] == ("answer", "score", "critique", "note")


@pytest.mark.parametrize("name", ["item", "Answer", "note"])
def test_a_field_named_like_a_column_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="rename it"):
        fields_for("passfail", [VerdictField(name, "boolean")])


def test_scores_tenants_and_settings_do_not_reach_a_sheet() -> None:
    case = Case("q1", "How long?", history=({"role": "user", "content": "hi"}, "plain"), must_include=(("secret",),))
    answer = Answer("q1", "Two.", (Context("d#1", "Two years.", 0.87654, "tenant-x"),), meta={"model": "sys-x"})
    sheet = sheet_of({"q1": texts_of(case, answer)})
    kept = json.dumps(sheet_fields(sheet))
    assert "user: hi" in kept
    assert not [hint for hint in ("0.87654", "tenant-x", "sys-x", "secret", "q1") if hint in kept]


def test_a_sheet_is_read_back_as_kept() -> None:
    pair = ReviewTexts("q?", ("a", "b"), (texts().contexts[0], None), ("earlier",))
    for sheet in (sheet_of([texts(), texts(contexts=())]), sheet_of([pair], mode="pairwise", lang="zh")):
        assert sheet_from_fields(json.loads(json.dumps(sheet_fields(sheet)))) == sheet


def test_the_digest_sees_every_text_and_no_white_space() -> None:
    (item,) = sheet_of([texts()]).items
    digest = text_digest(item)
    for other in (texts(question="x"), texts(answer="x"), texts(contexts=(("doc-1#1", "x"),)), texts(contexts=())):
        assert text_digest(dataclasses.replace(item, texts=other)) != digest
    assert text_digest(dataclasses.replace(item, texts=texts(answer="Two \r\n\u00a0years.\x07"))) == digest


# --- instructions ---------------------------------------------------------------------------------------------------


def test_every_cause_is_explained_in_both_languages() -> None:
    assert list(CAUSE_WORDS["en"]) == list(CAUSE_WORDS["zh"]) == list(CAUSE.choices)


def test_the_version_is_of_the_words_and_not_of_the_language() -> None:
    fields = fields_for("passfail", ASKED["passfail"])
    versions = {lang: instructions_for("passfail", fields, lang).version for lang in ("en", "zh")}
    assert versions["en"] == versions["zh"]
    assert instructions_for("passfail", fields[1:], "en").version != versions["en"]
    assert instructions_for("scale", ASKED["scale"], "en").version != versions["en"]


def test_a_field_of_the_users_own_is_asked_by_its_name() -> None:
    polite = VerdictField("polite", "boolean")
    lines = as_lines(instructions_for("passfail", fields_for("passfail", [polite]), "zh"))
    assert any("polite" in line and "符合" in line for line in lines)


def test_pooling_versions_is_warned_of() -> None:
    assert version_warning(["v1", "v1"]) is None
    assert "2 versions" in str(version_warning(["v1", "v2", "v1"]))


# --- what stands in the files ---------------------------------------------------------------------------------------

HOSTILE = [
    pytest.param("=1+1", id="formula"),
    pytest.param("-5 degrees is stated in the manual", id="minus"),
    pytest.param("@SUM(A1:A9)", id="at sign"),
    pytest.param("+1 555 0100", id="plus"),
    pytest.param("\tTab first", id="tab"),
    pytest.param("\rReturn first", id="carriage return"),
    pytest.param("＝1+1", id="wide equals sign"),
    pytest.param("'=1+1", id="apostrophe and formula"),
    pytest.param("'quoted' as it is", id="apostrophe"),
    pytest.param("007", id="leading zeros"),
    pytest.param("12345678901234567", id="17 digits"),
    pytest.param("1E5", id="looks like a number"),
    pytest.param("TRUE", id="looks like a truth value"),
    pytest.param("2024-01-02", id="looks like a date"),
    pytest.param("https://example.com/x", id="link"),
    pytest.param("{=A1}", id="array formula"),
    pytest.param('line one\nline two; "quoted", comma', id="line feed, quotes, separators"),
    pytest.param("bell\x07 vertical\x0btab esc\x1b[0m nul\x00 del\x7f", id="control characters"),
    pytest.param("_x0041_ and _x005F_", id="escape of the workbook format"),
    pytest.param("half a pair \ud83d and \udc00", id="lone surrogates"),
    pytest.param("noncharacters \ufffe \uffff", id="noncharacters"),
    pytest.param("退款需要几天?🙂", id="Chinese and emoji"),
    pytest.param("  spaces kept  ", id="outer spaces"),
    pytest.param("<script>alert(1)</script>", id="markup"),
    pytest.param("{{ 7 * 7 }}{% raw %}%s{0}", id="template"),
]
UNWRITABLE = str.maketrans(dict.fromkeys("\ud83d\udc00\ufffe\uffff", "\ufffd"))
PICTURES = str.maketrans("\x07\x0b\x1b\x00\x7f", "␇␋␛␀␡")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_is_a_string_in_the_workbook_whatever_it_looks_like(text: str, tmp_path: Path) -> None:
    sheet = sheet_of([texts(answer=text)])
    path = written(sheet, tmp_path, "xlsx")
    assert load_workbook(path).worksheets[0]["D2"].data_type == "s"
    ((_, rows),) = tables_of(path)
    # openpyxl takes the escape of an underscore away wherever it stands, and leaves that of a carriage return.
    shown = text.translate(UNWRITABLE).translate(PICTURES).replace("x005F_", "")
    assert rows[1][3].replace("_x000D_", "\r") == shown
    assert read_sheet(path, known(sheet)).n_blank == 1


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_in_csv_starts_no_formula_and_is_restored(text: str, tmp_path: Path) -> None:
    sheet = sheet_of([texts(answer=text)])
    path = written(sheet, tmp_path, "csv")
    content = path.read_bytes()
    assert content.startswith(b"\xef\xbb\xbf")
    cell = csv_rows(path)[1][3]
    assert cell[:1] not in set("=+-@\t\r＝")
    assert csv_text(cell) == text.replace("\ud83d", "\ufffd").replace("\udc00", "\ufffd")
    assert read_sheet(path, known(sheet)).n_blank == 1


@pytest.mark.parametrize(
    ("value", "cell"), [(-1.5, "-1.5"), (4, "4"), (None, ""), (True, "true"), ("-1.5", "'-1.5"), ("'", "'"), ("", "")]
)
def test_numbers_stay_numbers_in_csv(value: Any, cell: str) -> None:
    assert csv_cell(value) == cell


def test_the_workbook_is_made_for_reviewing(tmp_path: Path) -> None:
    sheet = sheet_of([texts(), texts(answer="x")])
    book = load_workbook(written(sheet, tmp_path, "xlsx"))
    page, instructions, lists = book.worksheets
    assert [cell.value for cell in page[1]] == COLUMNS.split(",")
    assert page.freeze_panes == "B2"
    assert page["C2"].alignment.wrap_text
    assert page["C2"].value == "[1] doc-1#1\nThe warranty is two years.\n\n[2] doc-2#4\nKeep the receipt."
    assert page["A2"].number_format == "@"
    assert page["A2"].protection.locked
    assert not page["E2"].protection.locked
    choices = {str(rule.sqref): rule.formula1 for rule in page.data_validations.dataValidation if rule.type == "list"}
    assert choices["E2:E3"] == "'lists'!$A$1:$A$3"
    assert choices["J2:J3"] == "'lists'!$F$1:$F$16"
    assert [lists.cell(row, 1).value for row in (1, 2, 3)] == ["yes", "no", "unsure"]
    assert lists.sheet_state == "hidden"
    told = " ".join(str(cell.value) for row in instructions.iter_rows() for cell in row if cell.value)
    assert sheet.instructions_version in told
    assert "supported by the contexts" in told


@both_languages
@every_format
def test_nothing_but_the_sheet_stands_in_a_file(format: Format, lang: str, tmp_path: Path) -> None:
    drawn = {f"secret-case-{i}": texts(question=f"Question {i}?") for i in range(3)}
    paths = write_sheet(sheet_of(drawn, lang=lang), tmp_path / f"s{SUFFIXES[format]}", format)
    for path in paths:
        parts = [path.read_bytes()]
        if format == "xlsx":
            with zipfile.ZipFile(path) as archive:
                parts = [archive.read(name) for name in archive.namelist()]
        assert b"secret-case" not in b"".join(parts)
        assert str(tmp_path).encode() not in b"".join(parts)


@every_format
def test_the_same_sheet_gives_the_same_file(format: Format, tmp_path: Path) -> None:
    sheet = sheet_of([texts(), texts(answer="x")])
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    assert written(sheet, tmp_path / "1", format).read_bytes() == written(sheet, tmp_path / "2", format).read_bytes()


def test_a_sheet_laid_by_other_instructions_is_not_written(tmp_path: Path) -> None:
    sheet = dataclasses.replace(sheet_of([texts()]), instructions_version="old")
    with pytest.raises(InputError, match="export a new sample"):
        write_sheet(sheet, tmp_path / "s.csv", "csv")


LONG = [
    pytest.param("汉" * 32_767, 1, id="exactly the limit"),
    pytest.param("汉" * 32_768, 2, id="one over"),
    pytest.param("🙂" * 20_000, 2, id="pairs count twice"),
    pytest.param("word " * 20_000, 4, id="100,000 characters"),
]


@pytest.mark.parametrize(("text", "n_rows"), LONG)
def test_a_text_over_the_cell_limit_is_whole_on_further_rows(text: str, n_rows: int, tmp_path: Path) -> None:
    sheet = sheet_of([texts(answer=text)])
    path = written(sheet, tmp_path, "xlsx")
    page = load_workbook(path).worksheets[0]
    cells = [str(page.cell(row, 4).value) for row in range(2, page.max_row + 1)]
    mark = "… [goes on in the next row]"
    assert len(cells) == n_rows
    assert all(utf16_length(cell) <= CELL_LIMIT for cell in cells)
    assert [cell.endswith(mark) for cell in cells] == [True] * (n_rows - 1) + [False]
    assert "".join(cell.removesuffix(mark) for cell in cells) == text
    item = sheet.items[0].id
    assert [page.cell(row, 1).value for row in range(2, page.max_row + 1)] == [
        item if row == 1 else f"{item} ({row}/{n_rows})" for row in range(1, n_rows + 1)
    ]
    assert read_sheet(fill_xlsx(path, {item: {"grounded": "no"}}), known(sheet)).labels[item].values == {
        "grounded": False
    }
    assert csv_rows(written(sheet, tmp_path, "csv"))[1][3] == text


def test_a_row_is_as_high_as_its_wrapped_text(tmp_path: Path) -> None:
    assert height_of([("one line", 10)]) == 17
    assert height_of([("one\ntwo", 10), ("x" * 35, 10)]) == 62  # 4 lines of 15 points, and 2
    assert height_of([("汉" * 15, 10)]) == 62  # each takes the room of two
    assert height_of([("long " * 10_000, 10)]) == 409  # the most a row can have
    page = load_workbook(written(sheet_of([texts(answer="line\n" * 7)]), tmp_path, "xlsx")).worksheets[0]
    assert page.row_dimensions[2].height == 122.25  # in whole pixels


def test_rows_of_a_cell_never_cut_a_pair() -> None:
    rows = rows_of({"answer": "a" + "🙂" * 60}, 50, "en")
    assert all(utf16_length(row["answer"]) <= 50 for row in rows)
    assert all("\ufffd" not in row["answer"].encode("utf-16", "replace").decode("utf-16") for row in rows)


@both_languages
def test_the_labelling_configuration_is_xml_that_asks_for_every_field(lang: str, tmp_path: Path) -> None:
    sheet = sheet_of([texts()], lang=lang)
    _, configuration, _ = write_sheet(sheet, tmp_path / "s.json", "label-studio")
    view = ElementTree.fromstring(configuration.read_text(encoding="utf-8"))
    names = {element.get("name") for element in view.iter() if element.tag in ("Choices", "TextArea")}
    assert names == {*(field.name for field in sheet.fields), "critique", "note"}
    hotkeys = [element.get("hotkey") for element in view.iter("Choice") if element.get("hotkey")]
    assert len(hotkeys) == len(set(hotkeys))
    (task,) = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    assert task.keys() == {"data"}
    shown = {str(element.get("value")).lstrip("$") for element in view.iter("Text")}
    assert shown == {"question", "answer", "contexts[{{idx}}].text"}


# --- the same labels from each --------------------------------------------------------------------------------------

MIXED = [
    texts("How long is the warranty?", "=1+1 two years\x07", (("d#1", "-2 years\r\nor so"),)),
    texts("试用期多久?", "三个月。🙂", (("hr#1", "试用期为三个月。"),)),
    texts("Third?", "", ()),
    dataclasses.replace(texts("Fourth?"), contexts=(None,), history=("user: hi",)),
]


@both_languages
@every_format
def test_the_same_labels_come_back_from_every_format(format: Format, lang: str, tmp_path: Path) -> None:
    sheet = sheet_of(MIXED, lang=lang)
    one, two, three, four = (item.id for item in sheet.items)
    critique = "=“30 天”在资料中没有\nsee context 1 <b>"
    filled = {
        one: {"grounded": "yes", "complete": "no", "passed": "no", "cause": "missing_point", "critique": critique},
        two: {"grounded": "unsure", "should_abstain": "no", "did_abstain": "yes", "note": "007"},
        three: {"note": "the item is broken"},
    }
    if format == "csv":  # where the spreadsheet that a person types this in shows the same guard
        filled[one]["critique"] = csv_cell(critique)
    if format == "xlsx":
        filled[one]["critique"] = f" {critique}"  # typed with an equals sign first, it would be a formula
    back = read_sheet(fill(written(sheet, tmp_path, format), format, sheet, filled), known(sheet))
    assert back.labels == {
        one: ItemLabel({"grounded": True, "complete": False, "passed": False, "cause": "missing_point"}, critique),
        two: ItemLabel({"grounded": None, "should_abstain": False, "did_abstain": True}, None, "007"),
    }
    assert back.notes_only == {three: ItemLabel({}, None, "the item is broken")}
    assert (back.sheet_id, back.annotator, back.instructions_version, back.n_items) == (
        sheet.sheet_id,
        "anna",
        sheet.instructions_version,
        4,
    )
    assert set(back.blank) == {three, four}
    assert back.n_blank == 2
    assert back.n_blank_of == {
        "grounded": 2, "complete": 3, "should_abstain": 3, "did_abstain": 3, "passed": 3, "cause": 3,
    }  # fmt: skip
    assert back.n_critiques_missing == 0
    assert back.warnings == ()


@every_format
@pytest.mark.parametrize(
    ("mode", "field", "said"),
    [
        pytest.param("scale", "score", {"4": 4, "unsure": None, "1": 1}, id="scale"),
        pytest.param("pairwise", "winner", {"A": "A", "tie": "tie", "unsure": None}, id="pairwise"),
    ],
)
def test_scores_and_winners_come_back_from_every_format(
    format: Format, mode: Any, field: str, said: dict[str, Any], tmp_path: Path
) -> None:
    answers = ("x", "y") if mode == "pairwise" else ("x",)
    sheet = sheet_of([ReviewTexts(f"q{i}?", answers, ((), None)[: len(answers)]) for i in range(3)], mode=mode)
    ids = [item.id for item in sheet.items]
    filled = {item: {field: word} for item, word in zip(ids, said, strict=True)}
    back = read_sheet(fill(written(sheet, tmp_path, format), format, sheet, filled), known(sheet))
    assert [back.labels[item].values[field] for item in ids] == list(said.values())
    assert back.n_critiques_missing == list(said.values()).count(1)


@every_format
def test_an_untouched_sheet_is_all_non_response(format: Format, tmp_path: Path) -> None:
    sheet = sheet_of([texts(), texts(answer="x")])
    path = written(sheet, tmp_path, format)
    if format == "html":
        path = fill(path, format, sheet, {})
        path.write_text(json.dumps({**exported(sheet, {}), "labels": [{"item": sheet.items[0].id}]}), encoding="utf-8")
    back = read_sheet(path, known(sheet))
    assert (dict(back.labels), back.n_blank) == ({}, 2)


def test_a_no_without_a_critique_is_counted(tmp_path: Path) -> None:
    sheet = sheet_of([texts(), texts(answer="x"), texts(answer="y")])
    one, two, three = (item.id for item in sheet.items)
    filled = {one: {"grounded": "no"}, two: {"passed": "no", "critique": "why"}, three: {"should_abstain": "no"}}
    assert read_sheet(fill_csv(written(sheet, tmp_path, "csv"), filled), known(sheet)).n_critiques_missing == 1


SPELLED = [
    *((word, True) for word in ("yes", "Y", " Yes ", "TRUE", "1", "是", "对", True, 1, 1.0, "ｙｅｓ")),
    *((word, False) for word in ("no", "N", "False", "0", "否", "不是", False, 0, 0.0)),
    *((word, None) for word in ("unsure", "U", "?", "？", "不确定", "null")),
]


@pytest.mark.parametrize(("word", "value"), SPELLED)
def test_yes_no_and_unsure_are_read_in_every_spelling(word: Any, value: bool | None) -> None:
    assert read_value(VerdictField("grounded", "boolean"), word) is value


@pytest.mark.parametrize(("word", "value"), [("pass", True), ("fail", False), ("通过", True), ("未通过", False)])
def test_pass_and_fail_answer_passed_alone(word: str, value: bool) -> None:
    assert read_value(VerdictField("passed", "boolean"), word) is value
    with pytest.raises(ValueError, match="yes, no or unsure"):
        read_value(VerdictField("grounded", "boolean"), word)


@pytest.mark.parametrize(("word", "value"), [("4", 4), (4, 4), (4.0, 4), ("4.0", 4), ("４", 4), ("u", None)])
def test_a_score_is_a_whole_number(word: Any, value: int | None) -> None:
    assert read_value(VerdictField("score", "score"), word) == value


@pytest.mark.parametrize("word", [0, 6, 3.5, "3.5", "4/5", "four", True, float("nan"), float("inf"), "-1", "1e0"])
def test_no_other_score_is_read(word: Any) -> None:
    with pytest.raises(ValueError, match="whole number from 1 to 5"):
        read_value(VerdictField("score", "score"), word)


@pytest.mark.parametrize(
    ("word", "cause"), [("recall_miss", "recall_miss"), ("Recall_Miss ", "recall_miss"), ("leak · 看不得的", "leak")]
)
def test_a_cause_is_read_with_or_without_its_meaning(word: str, cause: str) -> None:
    assert read_value(CAUSE, word) == cause


# --- as it comes back from spreadsheets -----------------------------------------------------------------------------

SAVED_AS = [
    pytest.param("utf-8-sig", ",", id="as exported"),
    pytest.param("utf-8", ",", id="without the mark"),
    pytest.param("utf-8-sig", ";", id="semicolons"),
    pytest.param("utf-16", "\t", id="UTF-16 with tabs, Excel's Unicode text"),
    pytest.param("utf-16", ",", id="UTF-16"),
    pytest.param("utf-16-le", ",", id="UTF-16 without the mark"),
    pytest.param("gbk", ",", id="GBK"),
    pytest.param("gb18030", ",", id="GB18030"),
    pytest.param("gbk", ";", id="GBK with semicolons"),
    pytest.param("big5", ",", id="Big5"),
    pytest.param("cp932", ",", id="Japanese"),
    pytest.param("cp936", ",", id="GBK of Windows"),
    pytest.param("cp1252", ";", id="Western"),
    pytest.param("ascii", ",", id="ASCII"),
]


@pytest.mark.parametrize(("encoding", "separator"), SAVED_AS)
def test_csv_comes_back_as_spreadsheets_save_it(encoding: str, separator: str, tmp_path: Path) -> None:
    sheet = sheet_of(
        [*MIXED[:2], texts("Café – “quoted” naïve?", "It costs 5 €, says Zoë."), texts("臺灣的退款規定?", "十四天內。")]
    )
    path = written(sheet, tmp_path, "csv")
    ids = [item.id for item in sheet.items]
    filled = {item: {"grounded": "no", "critique": "context 2 says 14"} for item in ids[:3]}
    content = csv_bytes(filled_rows(csv_rows(path), filled), "gbk" if encoding == "cp936" else encoding, separator)
    path.write_bytes(content.replace(b"costs 5 ?", b"costs 5 \x80") if encoding == "cp936" else content)
    back = read_sheet(path, known(sheet))
    assert back.labels == {item: ItemLabel({"grounded": False}, "context 2 says 14") for item in ids[:3]}


def test_chinese_values_and_critiques_survive_gbk(tmp_path: Path) -> None:
    sheet = sheet_of(MIXED, lang="zh")
    path = written(sheet, tmp_path, "csv")
    item = sheet.items[0].id
    rows = filled_rows(csv_rows(path), {item: {"grounded": "否", "complete": "不确定", "critique": "资料里没有"}})
    path.write_bytes(csv_bytes(rows, "gbk"))
    assert read_sheet(path, known(sheet)).labels == {
        item: ItemLabel({"grounded": False, "complete": None}, "资料里没有")
    }


def test_a_changed_text_is_noticed_in_a_code_page_too(tmp_path: Path) -> None:
    sheet = sheet_of([texts("试用期多久?", "三个月。🙂")])
    path = written(sheet, tmp_path, "csv")
    rows = csv_rows(path)
    rows[1][3] = "四个月。🙂"
    path.write_bytes(csv_bytes(rows, "gbk"))
    with pytest.raises(InputError, match=r"column answer \(D\): the text is not the one that was exported"):
        read_sheet(path, known(sheet))


def test_rows_columns_and_line_ends_may_come_in_any_order(tmp_path: Path) -> None:
    sheet = sheet_of(MIXED)
    path = written(sheet, tmp_path, "csv")
    filled = {item.id: {"grounded": "yes"} for item in sheet.items}
    head, *rows = filled_rows(csv_rows(path), filled)
    order = random.Random(5).sample(range(len(head)), len(head))
    rows = [[row[i] for i in order] for row in reversed(rows)]
    content = csv_bytes([[f" {head[i].upper()} " for i in order], [""] * len(head), *rows])
    path.write_bytes(content.replace(b"\r\n", b"\n") + b"\n\n")
    assert len(read_sheet(path, known(sheet)).labels) == len(MIXED)


def test_a_text_cut_at_the_limit_of_a_spreadsheet_is_warned_of(tmp_path: Path) -> None:
    sheet = sheet_of([texts(answer="word " * 10_000)])
    path = written(sheet, tmp_path, "csv")
    rows = filled_rows(csv_rows(path), {sheet.items[0].id: {"grounded": "yes"}})
    rows[1][3] = rows[1][3][:CELL_LIMIT]
    path.write_bytes(csv_bytes(rows))
    back = read_sheet(path, known(sheet))
    assert len(back.labels) == 1
    assert "cut by a spreadsheet at 32767 characters" in back.warnings[0]


def test_a_workbook_saved_as_csv_is_read_with_its_further_rows(tmp_path: Path) -> None:
    sheet = sheet_of([texts(answer="word " * 10_000)])
    page = load_workbook(written(sheet, tmp_path, "xlsx")).worksheets[0]
    rows = [[str(cell.value or "") for cell in row] for row in page.iter_rows()]
    rows[1][4] = "是"
    path = tmp_path / "saved.csv"
    path.write_bytes(csv_bytes(rows))
    assert read_sheet(path, known(sheet)).labels[sheet.items[0].id].values == {"grounded": True}


def test_an_own_column_of_the_reviewer_is_left_and_said(tmp_path: Path) -> None:
    sheet = sheet_of([texts()])
    path = written(sheet, tmp_path, "csv")
    rows = [[*row, extra] for row, extra in zip(csv_rows(path), ["my notes", "look again"], strict=True)]
    path.write_bytes(csv_bytes(rows))
    assert "column my notes (M)" in read_sheet(path, known(sheet)).warnings[0]


def test_a_workbook_with_typed_values_is_read(tmp_path: Path) -> None:
    sheet = sheet_of([texts()], mode="scale")
    item = sheet.items[0].id
    path = fill_xlsx(written(sheet, tmp_path, "xlsx"), {item: {"score": 4, "critique": 14}})
    assert read_sheet(path, known(sheet)).labels[item] == ItemLabel({"score": 4}, "14")
    sheet = sheet_of([texts()])
    item = sheet.items[0].id
    path = fill_xlsx(written(sheet, tmp_path, "xlsx"), {item: {"grounded": True, "complete": 0}})
    assert read_sheet(path, known(sheet)).labels[item].values == {"grounded": True, "complete": False}


@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is not installed")
@pytest.mark.slow
def test_the_workbook_opens_in_libreoffice_and_its_csv_is_read(tmp_path: Path) -> None:
    sheet = sheet_of(MIXED, lang="zh")
    item = sheet.items[1].id
    path = fill_xlsx(written(sheet, tmp_path, "xlsx"), {item: {"grounded": "否", "critique": "没有依据"}})
    profile = f"-env:UserInstallation=file://{tmp_path / 'profile'}"
    filters = "csv:Text - txt - csv (StarCalc):44,34,76,1"  # comma, quote, UTF-8, from the first row
    command = ["soffice", profile, "--headless", "--convert-to", filters, "--outdir", str(tmp_path / "out"), str(path)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    saved = tmp_path / "out" / f"{path.stem}.csv"
    assert csv_rows(saved)[0] == COLUMNS.split(",")
    assert read_sheet(saved, known(sheet)).labels == {item: ItemLabel({"grounded": False}, "没有依据")}


# --- several files and sheets ---------------------------------------------------------------------------------------


def test_parts_of_a_sheet_and_several_annotators_come_back_together(tmp_path: Path) -> None:
    drawn = {f"case-{i}": texts(question=f"Question {i}?") for i in range(4)}
    anna, ben = sheet_of(drawn), sheet_of(drawn, seed=2, annotator="ben")
    paths = []
    for part in (0, 1):
        path = written(anna, tmp_path, "csv")
        rows = filled_rows(csv_rows(path), {item.id: {"grounded": "yes"} for item in anna.items})
        paths.append(tmp_path / f"part-{part}.csv")
        paths[-1].write_bytes(csv_bytes([rows[0], *rows[1 + part :: 2]]))
    paths.append(fill_xlsx(written(ben, tmp_path, "xlsx"), {ben.items[0].id: {"grounded": "no"}}))
    back = read_sheets(paths, known(anna, ben))
    assert [(one.annotator, len(one.labels), one.n_blank) for one in back] == [("anna", 4, 0), ("ben", 1, 3)]


def test_a_label_studio_project_of_two_sheets_gives_both(tmp_path: Path) -> None:
    anna, ben = sheet_of([texts()]), sheet_of([texts()], seed=2, annotator="ben")
    tasks = []
    for sheet, value in ((anna, "yes"), (ben, "no")):
        (task,) = json.loads(written(sheet, tmp_path, "label-studio").read_text(encoding="utf-8"))
        tasks.append({**task, "annotations": [annotation({"grounded": value}), annotation({}, was_cancelled=True)]})
    path = tmp_path / "project.json"
    path.write_text(json.dumps(tasks), encoding="utf-8")
    back = read_sheets([path], known(anna, ben))
    assert [list(one.labels.values()) for one in back] == [
        [ItemLabel({"grounded": True})],
        [ItemLabel({"grounded": False})],
    ]
    with pytest.raises(InputError, match="holds 2 sheets"):
        read_sheet(path, known(anna, ben))


def test_the_short_export_of_label_studio_is_read(tmp_path: Path) -> None:
    sheet = sheet_of([texts()])
    (task,) = json.loads(written(sheet, tmp_path, "label-studio").read_text(encoding="utf-8"))
    short = {**task["data"], "id": 1, "annotator": 3, "grounded": "no", "critique": "why", "lead_time": 3.5}
    path = tmp_path / "min.json"
    path.write_text(json.dumps([short]), encoding="utf-8")
    assert list(read_sheet(path, known(sheet)).labels.values()) == [ItemLabel({"grounded": False}, "why")]


def test_equal_duplicates_are_one_label_and_fill_each_other(tmp_path: Path) -> None:
    sheet = sheet_of([texts()])
    item = sheet.items[0].id
    path = written(sheet, tmp_path, "csv")
    head, row = filled_rows(csv_rows(path), {item: {"grounded": "yes"}})
    other = [*row]
    other[5], other[11] = "no", "a note"
    path.write_bytes(csv_bytes([head, row, row, other]))
    assert read_sheet(path, known(sheet)).labels == {
        item: ItemLabel({"grounded": True, "complete": False}, None, "a note")
    }


# --- errors: nothing is imported ------------------------------------------------------------------------------------

Cells = list[list[str]]


def _change(row: int, column: int, value: str) -> Any:
    def changed(rows: Cells) -> Cells:
        rows[row][column] = value
        return rows

    return changed


WRONG = [
    pytest.param(
        _change(1, 0, "7"), r"row 2, column item: found '7', which is no item of this run's sheets", id="mangled id"
    ),
    pytest.param(_change(1, 0, "1.23457E+16"), r"found '1.23457E\+16'", id="id as a number"),
    pytest.param(
        _change(1, 0, "bcdfghjkmn-bcdfghjk"), "is of sheet bcdfghjkmn, which is none of this run's", id="another run"
    ),
    pytest.param(_change(1, 4, "maybe"), r"row 2, column grounded \(E\): found 'maybe', expected yes, no", id="value"),
    pytest.param(
        _change(1, 9, "laziness"), r"column cause \(J\): found 'laziness', expected one of leak, ", id="cause"
    ),
    pytest.param(_change(1, 3, "Two year."), r"column answer \(D\): the text is not the one", id="changed answer"),
    pytest.param(_change(1, 1, ""), r"column question \(B\): the text is not the one", id="emptied question"),
    pytest.param(_change(1, 2, "[1] x"), r"column contexts \(C\): the text is not the one", id="changed contexts"),
    pytest.param(_change(0, 4, "supported"), "row 1: column grounded is missing", id="renamed column"),
    pytest.param(_change(0, 0, "id"), "row 1: column item is missing", id="renamed item"),
    pytest.param(_change(0, 5, "grounded"), "row 1: column grounded stands twice", id="column twice"),
    pytest.param(lambda rows: [rows[0], [*rows[1], "x"]], "row 2: more cells than the header has", id="ragged row"),
    pytest.param(
        lambda rows: [rows[0], ["", "", "", "", "yes", *[""] * 7]],
        r"row 2, column item \(A\): found nothing",
        id="no id",
    ),
    pytest.param(
        lambda rows: [rows[0], [*rows[1][:4], "yes", *rows[1][5:]], [*rows[1][:4], "no", *rows[1][5:]]],
        r"row 3, column grounded \(E\): found no, but .*row 2, column grounded \(E\) says yes of the same item",
        id="conflicting duplicates",
    ),
    pytest.param(lambda rows: [["a", "b"], ["c", "d"]], "found no column of a review sheet", id="another table"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_what_is_wrong_in_a_table_is_named_by_row_and_column(change: Any, message: str, tmp_path: Path) -> None:
    sheet = sheet_of([texts()])
    path = written(sheet, tmp_path, "csv")
    path.write_bytes(csv_bytes(change(csv_rows(path))))
    with pytest.raises(InputError, match=message) as error:
        read_sheet(path, known(sheet))
    assert str(path) in str(error.value)


def test_all_that_is_wrong_is_said_at_once_and_the_rest_counted(tmp_path: Path) -> None:
    sheet = sheet_of([texts(question=f"{i}?") for i in range(30)])
    path = fill_csv(written(sheet, tmp_path, "csv"), {item.id: {"grounded": "maybe"} for item in sheet.items})
    with pytest.raises(InputError) as error:
        read_sheets([path, tmp_path / "absent.csv"], known(sheet))
    lines = str(error.value).splitlines()
    assert lines[0] == "31 things are wrong, and nothing was imported:"
    assert len(lines) == N_ERRORS_SHOWN + 2
    assert lines[-1] == "… and 11 more"


def test_another_runs_sheet_is_one_error(tmp_path: Path) -> None:
    theirs, ours = sheet_of(MIXED, seed=1), sheet_of(MIXED, seed=2)
    with pytest.raises(InputError, match=r"1 thing is wrong.*\n.*none of this run's \(4 such rows\)"):
        read_sheet(written(theirs, tmp_path, "csv"), known(ours))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "the file is empty", id="empty"),
        pytest.param(b"\xd0\xcf\x11\xe0rest", r"old \.xls workbook, or one with a password", id="old workbook"),
        pytest.param(b"PK\x03\x04rest", "not a readable Excel workbook", id="broken workbook"),
        pytest.param(b"<!DOCTYPE html><html>", "press Export", id="the page itself"),
        pytest.param(b"{broken", "not valid JSON", id="broken JSON"),
        pytest.param(b"[" * 100_000, "not valid JSON", id="deep JSON"),
        pytest.param(b"[1]", "neither what the HTML sheet exports", id="other JSON"),
        pytest.param(
            b'{"format":"rag-judge-review-labels","labels":[],"sheet":"x"}', "none of this run's", id="other sheet"
        ),
        pytest.param(b'item,question\n"a', "not valid CSV", id="open quote"),
        pytest.param(bytes(range(256)) * 4, "found no column of a review sheet", id="no text"),
    ],
)
def test_a_file_that_is_no_sheet_is_refused_with_what_to_do(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "back"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_sheet(path, known(sheet_of([texts()])))


def test_formulas_and_dates_in_a_workbook_are_no_labels(tmp_path: Path) -> None:
    import datetime

    sheet = sheet_of([texts()])
    item = sheet.items[0].id
    cells = {"grounded": "=1=1", "complete": datetime.date(2026, 1, 2), "critique": "=A1"}
    path = fill_xlsx(written(sheet, tmp_path, "xlsx"), {item: cells})
    with pytest.raises(InputError) as error:
        read_sheet(path, known(sheet))
    assert "worksheet review, row 2, column grounded (E): found '=1=1', expected a value" in str(error.value)
    assert "column complete (F): found 2026-01-02" in str(error.value)
    assert "column critique (K): found the formula '=A1'" in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"digest": "0" * 64}, "the texts that were judged are not those", id="changed text"),
        pytest.param({"grounded": "perhaps"}, "label 1, column grounded: found 'perhaps'", id="value"),
        pytest.param({"grounded": ["yes", "no"]}, "column grounded: found", id="two values"),
        pytest.param({"item": 7}, "found '7', which is no item", id="number as id"),
        pytest.param({"item": None}, "found 'None', which is no item", id="no id"),
        pytest.param({"instructions": "old"}, "judged by version old of the instructions", id="other instructions"),
    ],
)
def test_what_is_wrong_in_an_exported_file_is_named(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    sheet = sheet_of([texts()])
    saved = exported(sheet, {sheet.items[0].id: {"grounded": "yes"}})
    saved["labels"][0] |= change
    path = tmp_path / "labels.json"
    path.write_text(json.dumps(saved), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_sheet(path, known(sheet))


def test_two_annotations_that_differ_are_a_conflict(tmp_path: Path) -> None:
    sheet = sheet_of([texts()])
    (task,) = json.loads(written(sheet, tmp_path, "label-studio").read_text(encoding="utf-8"))
    task["annotations"] = [annotation({"grounded": "yes"}), annotation({"grounded": "no"})]
    path = tmp_path / "labels.json"
    path.write_text(json.dumps([task]), encoding="utf-8")
    with pytest.raises(InputError, match=r"task 1, annotation 2, column grounded: found no, but .*annotation 1"):
        read_sheet(path, known(sheet))


def test_the_time_spent_comes_back_from_the_page(tmp_path: Path) -> None:
    sheet = sheet_of([texts()])
    item = sheet.items[0].id
    path = tmp_path / "labels.json"
    path.write_text(json.dumps(exported(sheet, {item: {"grounded": "yes"}})), encoding="utf-8")
    assert read_sheet(path, known(sheet)).seconds == {item: 3.5}


def test_a_csv_with_a_line_that_names_its_separator_is_read(tmp_path: Path) -> None:
    sheet = sheet_of([texts()])
    path = written(sheet, tmp_path, "csv")
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=";").writerows(csv_rows(path))
    path.write_bytes(b"\xef\xbb\xbfsep=;\r\n" + text.getvalue().encode())
    assert read_sheet(path, known(sheet)).n_blank == 1
