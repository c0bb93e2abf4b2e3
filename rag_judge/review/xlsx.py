"""A review sheet as an Excel workbook, and the cells of one that came back.

Every cell that is written is a string, never a formula, a link or a number; ids are text for good.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width
from xml.etree.ElementTree import ParseError
from zipfile import BadZipFile

from rag_judge.errors import InputError
from rag_judge.records import VerdictField
from rag_judge.review.cells import cells_of, part_id, rows_of
from rag_judge.review.instructions import FieldWords, Instructions
from rag_judge.review.labels import folded
from rag_judge.review.sheet import NEUTRAL_FIELDS, Sheet, columns_of, writable

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.workbook import Workbook
    from xlsxwriter.worksheet import Worksheet

CELL_LIMIT = 32_767  # UTF-16 units that Excel holds in a cell
_TITLE_LIMIT, _MESSAGE_LIMIT = 32, 255  # of what Excel shows beside a chosen cell
# No time of writing and no name of a machine's user: a workbook tells nothing but its sheet.
_WRITTEN = datetime(2000, 1, 1)
_WIDTHS = {"item": 22, "question": 36, "contexts": 80, "answer": 60, "answer_a": 50, "answer_b": 50}
_FREE_WIDTHS = {"cause": 24, "critique": 44, "note": 30}
_LABEL_WIDTH = 13
_LINE_HEIGHT, _HIGHEST_ROW = 15.0, 409.0  # points
_TOLD_WIDTHS = (26, 44, 100)
WORDS = {
    "en": {
        "review": "review",
        "instructions": "instructions",
        "lists": "lists",
        "yes": "yes",
        "no": "no",
        "unsure": "unsure",
        "tie": "tie",
        "not_allowed": "Choose one of the list, or leave the cell empty.",
        "how": "One row an item. Choose in the columns on the right; the texts are locked so that they stay as judged. "
        "Rows may be sorted. A row whose item ends in (2/2) goes on with the texts of the row before: label the first.",
        "version": "Version of these instructions",
        "sheet": "Sheet",
    },
    "zh": {
        "review": "评审",
        "instructions": "说明",
        "lists": "列表",
        "yes": "是",
        "no": "否",
        "unsure": "不确定",
        "tie": "平局",
        "not_allowed": "请从列表中选择,或留空。",
        "how": "一行一题,在右边各列选择。文字列已锁定,以免评审后改动。可以排序。"
        "编号以 (2/2) 结尾的行接着上一行的文字,请在第一行填写。",
        "version": "本说明的版本",
        "sheet": "评审表",
    },
}


def put_cell(page: Worksheet, row: int, column: int, value: str | int | float | None, style: Format | None) -> None:
    """Write one cell: a number as a number, a text as a string whatever it looks like. Texts must fit in a cell."""
    if value is None or value == "" or (isinstance(value, float) and not math.isfinite(value)):
        page.write_blank(row, column, None, style)
    elif isinstance(value, str):
        page.write_string(row, column, writable(value), style)
    else:
        page.write_number(row, column, value, style)


def write_xlsx(sheet: Sheet, told: Instructions, path: Path) -> None:
    """Write the workbook: the items, the instructions, and the lists behind the drop-downs."""
    from xlsxwriter.workbook import Workbook

    words = WORDS[sheet.lang]
    with Workbook(str(path)) as book:
        book.set_properties({"created": _WRITTEN})
        page = book.add_worksheet(words["review"])
        text_page = book.add_worksheet(words["instructions"])
        lists = book.add_worksheet(words["lists"])
        lists.hide()
        _write_items(sheet, told, book, page)
        _write_choices(sheet, told, page, lists)
        _mark_missing_critiques(sheet, book, page)
        _write_instructions(sheet, told, book, text_page)


def _write_items(sheet: Sheet, told: Instructions, book: Workbook, page: Worksheet) -> None:
    columns = columns_of(sheet)
    top = {"text_wrap": True, "valign": "top", "border": 1, "border_color": "#D0D5DB"}
    head = book.add_format({**top, "bold": True, "bg_color": "#1F5FAE", "font_color": "#FFFFFF"})
    text = book.add_format({**top, "num_format": "@"})
    more = book.add_format({**top, "num_format": "@", "bg_color": "#F5F6F8"})
    label = book.add_format({**top, "locked": False, "bg_color": "#FFFDF2"})
    for column, name in enumerate(columns):
        page.set_column(column, column, _WIDTHS.get(name) or _FREE_WIDTHS.get(name, _LABEL_WIDTH))
        put_cell(page, 0, column, name, head)
    row = 1
    for item in sheet.items:
        parts = rows_of(cells_of(item.texts, sheet.lang), CELL_LIMIT, sheet.lang)
        for n, cells in enumerate(parts, 1):
            shown = {"item": part_id(item.id, n, len(parts)), **cells}
            for column, name in enumerate(columns):
                is_text = name in shown
                style = more if n > 1 else text if is_text else label
                put_cell(page, row, column, shown.get(name), style)
            page.set_row(row, height_of((text, _WIDTHS[name]) for name, text in shown.items()))
            row += 1
    page.freeze_panes(1, 1)
    page.autofilter(0, 0, max(row - 1, 1), len(columns) - 1)
    page.set_landscape()
    page.fit_to_pages(1, 0)
    page.repeat_rows(0)
    # Without a password: it guards against slips, and whoever wants to can lift it.
    page.protect("", {"format_columns": True, "format_rows": True, "sort": True, "autofilter": True})


def height_of(cells: Iterable[tuple[str, int]]) -> float:
    """The points that a row needs to show its wrapped cells (text, width in characters), up to the most there is.

    Not every program fits rows to their text by itself when it opens a workbook.
    """
    lines = max(sum(1 + _n_columns(line) // width for line in text.split("\n")) for text, width in cells)
    return min(_LINE_HEIGHT * lines + 2, _HIGHEST_ROW)


def _n_columns(line: str) -> int:
    return len(line) if line.isascii() else sum(1 + (east_asian_width(one) in "WF") for one in line)


def _n_rows(sheet: Sheet) -> int:
    return sum(len(rows_of(cells_of(item.texts, sheet.lang), CELL_LIMIT, sheet.lang)) for item in sheet.items)


def _write_choices(sheet: Sheet, told: Instructions, page: Worksheet, lists: Worksheet) -> None:
    """The drop-down of each field, with its question beside the chosen cell; the lists stand on a page of their own."""
    words, columns, last = WORDS[sheet.lang], columns_of(sheet), max(_n_rows(sheet), 1)
    for at, field in enumerate(sheet.fields):
        choices = choices_shown(field, told, words)
        for row, choice in enumerate(choices):
            put_cell(lists, row, at, choice, None)
        letter = column_letter(at)
        column = columns.index(field.name)
        source = f"='{words['lists']}'!${letter}$1:${letter}${len(choices)}"
        page.data_validation(1, column, last, column, _validation(told.fields[field.name], source, words))
    for name in ("critique", "note"):
        hint = _hint(told.fields[name])
        page.data_validation(1, columns.index(name), last, columns.index(name), {"validate": "any", **hint})


def choices_shown(field: VerdictField, told: Instructions, words: dict[str, str]) -> list[str | int]:
    """What the drop-down of a field offers."""
    if field.kind == "boolean":
        return [words["yes"], words["no"], words["unsure"]]
    if field.kind == "score":
        return [*range(field.low, field.high + 1), words["unsure"]]
    if field.name == "cause":
        return [f"{cause} · {meaning}" for cause, meaning in told.causes.items()]
    return [*(words.get(folded(choice), choice) for choice in field.choices), words["unsure"]]


def _validation(told: FieldWords, source: str, words: dict[str, str]) -> dict[str, Any]:
    return {"validate": "list", "source": source, "error_message": words["not_allowed"], **_hint(told)}


def _hint(told: FieldWords) -> dict[str, Any]:
    return {
        "ignore_blank": True,
        "input_title": told.label[:_TITLE_LIMIT],
        "input_message": f"{told.question}\n{told.how}"[:_MESSAGE_LIMIT],
    }


def _mark_missing_critiques(sheet: Sheet, book: Workbook, page: Worksheet) -> None:
    """An empty critique beside a no that asks for one turns yellow."""
    columns = columns_of(sheet)
    asking = [f.name for f in sheet.fields if f.kind == "boolean" and f.name not in NEUTRAL_FIELDS]
    if not asking:
        return
    no = WORDS[sheet.lang]["no"]
    said_no = ",".join(f'${column_letter(columns.index(name))}2="{no}"' for name in asking)
    at = columns.index("critique")
    criteria = f"=AND(OR({said_no}),LEN(${column_letter(at)}2)=0)"
    yellow = book.add_format({"bg_color": "#FFE699"})
    page.conditional_format(
        1, at, max(_n_rows(sheet), 1), at, {"type": "formula", "criteria": criteria, "format": yellow}
    )


def _write_instructions(sheet: Sheet, told: Instructions, book: Workbook, page: Worksheet) -> None:
    words = WORDS[sheet.lang]
    wrap = book.add_format({"text_wrap": True, "valign": "top"})
    bold = book.add_format({"text_wrap": True, "valign": "top", "bold": True})
    title = book.add_format({"bold": True, "font_size": 14})
    page.set_landscape()
    page.fit_to_pages(1, 0)
    for column, width in enumerate(_TOLD_WIDTHS):
        page.set_column(column, column, width)
    put_cell(page, 0, 0, told.title, title)
    row = 2
    for line in (words["how"], *told.intro):
        page.merge_range(row, 0, row, 2, "", wrap)
        put_cell(page, row, 0, line, wrap)
        page.set_row(row, height_of([(line, sum(_TOLD_WIDTHS))]))
        row += 1
    row += 1
    for name, field in told.fields.items():
        texts = (f"{name} ({field.label})", field.question, field.how)
        for column, text in enumerate(texts):
            put_cell(page, row, column, text, bold if column == 0 else wrap)
        page.set_row(row, height_of(zip(texts, _TOLD_WIDTHS, strict=True)))
        row += 1
    row += 1
    for name, meaning in told.causes.items():
        put_cell(page, row, 0, name, bold)
        page.merge_range(row, 1, row, 2, "", wrap)
        put_cell(page, row, 1, meaning, wrap)
        row += 1
    for name, value in ((words["version"], told.version), (words["sheet"], sheet.sheet_id)):
        row += 1
        put_cell(page, row, 0, name, bold)
        put_cell(page, row, 1, value, wrap)


def column_letter(at: int) -> str:
    """The letter of a column in a spreadsheet, from 0."""
    letters = ""
    at += 1
    while at:
        at, rest = divmod(at - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


# --- reading back ---------------------------------------------------------------------------------------------------


def tables_of(path: Path) -> list[tuple[str, list[list[Any]]]]:
    """(name, cells row by row) of each worksheet whose first row has the column item; formulas are `Formula` values.

    Raises InputError for what is no workbook.
    """
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    tables = []
    try:
        with warnings.catch_warnings():
            # What openpyxl does not know of a workbook (extensions of drop-downs, a theme) is not read here either.
            warnings.simplefilter("ignore")
            book = load_workbook(path, read_only=True, data_only=False)
            try:
                for page in book.worksheets:
                    page.reset_dimensions()  # some programs write them wrong, and cells would be missed
                    rows = [[_value(cell) for cell in row] for row in page.iter_rows()]
                    if rows and any(isinstance(cell, str) and folded(cell) == "item" for cell in rows[0]):
                        tables.append((page.title, rows))
            finally:
                book.close()
    except (BadZipFile, InvalidFileException, KeyError, ValueError, IndexError, ParseError, EOFError) as error:
        raise InputError(
            f"{path}: not a readable Excel workbook ({error}); open it, save it as .xlsx and try again"
        ) from error
    return tables


class Formula(str):
    """The text of a formula found in a cell where a value was expected."""

    __slots__ = ()


def _value(cell: Any) -> Any:
    return Formula(cell.value) if isinstance(cell.value, str) and cell.data_type == "f" else cell.value


def row_values(row: Sequence[Any], n: int) -> list[Any]:
    """The row with exactly `n` cells."""
    return [*row[:n], *([None] * (n - len(row)))]
