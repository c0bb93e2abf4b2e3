"""What the kinds `export` and `label_import` check: one cell on its way through a review sheet, and a sheet's way back.

A cell of a column that review sheets have goes through a whole sheet, written and read by the product; any other goes
through what writes a single cell. A field or word that is not known makes the case skipped or failed, never passed.
"""

from __future__ import annotations

import csv
import io
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.parsers import expat
from zipfile import ZipFile

from openpyxl import Workbook, load_workbook
from xlsxwriter.workbook import Workbook as NewWorkbook

from rag_judge.errors import InputError
from rag_judge.review.cells import cells_of, utf16_length
from rag_judge.review.csv_sheet import csv_cell, csv_text, decodings, table_of
from rag_judge.review.found import table_rows
from rag_judge.review.labels import is_blank
from rag_judge.review.matching import match, sheets_of
from rag_judge.review.reading import read_sheet
from rag_judge.review.sheet import ReviewContext, ReviewItem, ReviewTexts, Sheet, columns_of
from rag_judge.review.writing import Format, write_sheet
from rag_judge.review.xlsx import put_cell, tables_of
from tests.case_adapters import Case, Skipped, differs, first_difference, none_if_one_holds
from tests.review_sheets import fill, sheet_of, texts

FORMATS: Sequence[Format] = ("csv", "xlsx")
# The names that a column may have, and what a review sheet calls it.
COLUMNS = {"id": "item", "item": "item", "case_id": "item", "question": "question", "answer": "answer"}
CONTEXTS = frozenset({"context", "contexts"})


@dataclass(frozen=True, slots=True)
class Written:
    """One cell as it stands in a file, and as the product reads it back."""

    value: Any  # what was to be written
    raw: Any  # of the CSV, parsed as CSV alone; of the workbook, as it is kept
    read: Any  # by the product
    content: bytes  # the whole file
    kind: str = ""  # of a workbook's cell: string, number, boolean, formula, empty
    imports: str | None = None  # what is wrong when the sheet is read back with a label


# --- export ----------------------------------------------------------------------------------------------------------


def check_export(case: Case, folder: Path) -> str | None:
    """`value` in the column `column`: properties of the CSV and of the workbook."""
    expected, known = case["expect"], {"csv": CSV, "xlsx": XLSX}
    if not expected or set(expected) - set(known):
        return f"expected of csv, xlsx or both; found {sorted(expected)}"
    with tempfile.TemporaryDirectory() as temporary:
        cells = {name: _written(case["column"], case["value"], name, Path(temporary)) for name in expected}
    differences = []
    for name, properties in expected.items():
        if unknown := sorted(set(properties) - set(known[name])):
            return f"expectations that are not known of {name}: {unknown}"
        found = {key: known[name][key](cells[name], value) for key, value in properties.items()}
        differences += [f"{name}, {key}: {difference}" for key, difference in found.items() if difference]
    return first_difference(*differences)


def _written(column: str, value: Any, format: Format, folder: Path) -> Written:
    if isinstance(value, list | dict):
        raise Skipped(f"export: a cell that holds {type(value).__name__} is not known")
    if isinstance(value, str) and (column in COLUMNS or column in CONTEXTS):
        return _in_a_sheet(column, value, format, folder)
    return _alone(value, format, folder)


def _in_a_sheet(column: str, value: str, format: Format, folder: Path) -> Written:
    """The cell in a whole sheet of one item."""
    name = "contexts" if column in CONTEXTS else COLUMNS[column]
    shown = {"question": texts(value), "answer": texts(answer=value), "contexts": texts(contexts=[("doc-1", value)])}
    sheet = sheet_of([shown.get(name, texts())])
    if name == "item":
        sheet = replace(sheet, items=(replace(sheet.items[0], id=value),))
    (item,) = sheet.items
    path = folder / f"sheet.{format}"
    write_sheet(sheet, path, format)
    content = path.read_bytes()
    at = columns_of(sheet).index(name)
    above = cells_of(item.texts, sheet.lang)["contexts"].removesuffix(value) if name == "contexts" else ""
    if format == "csv":
        raw, kind = _csv_rows(content)[1][at], ""
        read = table_of(next(decodings(content))[1], columns_of(sheet), path.name)[1][at]
    else:
        raw, kind = _kept(path, 1, at)
        read = tables_of(path)[0][1][1][at]
    fault = _import_fault(sheet, path, format)
    return Written(value, _below(raw, above), _below(read, above), content, kind, fault)


def _below(cell: Any, above: str) -> Any:
    """The cell without the product's own line over a context."""
    return cell.removeprefix(above) if isinstance(cell, str) else cell


def _import_fault(sheet: Sheet, path: Path, format: Format) -> str | None:
    """Why a sheet that comes back filled in is not read, or not as it was filled in; None where it is."""
    (item,) = sheet.items
    try:
        shown = csv_cell(item.id) if format == "csv" else item.id
        read = read_sheet(fill(path, format, sheet, {shown: {"passed": "yes"}}), {sheet.sheet_id: sheet})
    except InputError as error:
        return str(error)
    return differs({i: dict(label.values) for i, label in read.labels.items()}, {item.id: {"passed": True}})


def _alone(value: Any, format: Format, folder: Path) -> Written:
    path = folder / f"cell.{format}"
    if format == "csv":
        text = io.StringIO(newline="")
        csv.writer(text).writerow([csv_cell(value), "end"])
        content = text.getvalue().encode()
        raw = _csv_rows(content)[0][0]
        return Written(value, raw, csv_text(raw), content)
    with NewWorkbook(str(path)) as book:
        put_cell(book.add_worksheet(), 0, 0, value, None)
    raw, kind = _kept(path, 0, 0)
    return Written(value, raw, raw, path.read_bytes(), kind)


def _csv_rows(content: bytes) -> list[list[str]]:
    csv.field_size_limit(2**31 - 1)
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def _kept(path: Path, row: int, column: int) -> tuple[Any, str]:
    """The value and the kind of a cell of the first worksheet."""
    kinds = {"s": "string", "inlineStr": "string", "n": "number", "b": "boolean", "f": "formula"}
    cell = load_workbook(path).worksheets[0].cell(row + 1, column + 1)
    return cell.value, "empty" if cell.value is None else kinds.get(cell.data_type, cell.data_type)


def _is(found: bool, expected: bool, shown: object) -> str | None:
    return None if found == expected else f"found {found}, expected {expected}: {str(shown)[:100]!r}"


def _round_trip(cell: Written, expected: bool) -> str | None:
    return first_difference(_is(cell.read == cell.value, expected, cell.read), cell.imports if expected else None)


def _is_well_formed(content: bytes) -> bool:
    """True when every part of the workbook is XML that a strict parser takes, illegal characters included."""
    with ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            try:
                expat.ParserCreate().Parse(archive.read(name), True)
            except expat.ExpatError:
                return False
    return True


def _is_cut_visibly(cell: Written) -> bool:
    """True when the cell ends with something that the text does not hold there."""
    return isinstance(cell.raw, str) and not cell.value.startswith(cell.raw) and cell.raw[:100] == cell.value[:100]


Property = Callable[[Written, Any], str | None]
CSV: Mapping[str, Property] = {
    "first_char_not_in": lambda cell, marks: _is(cell.raw[:1] not in set(marks), True, cell.raw),
    "restored_on_import": _round_trip,
    "round_trip": _round_trip,
    "equals": lambda cell, value: differs(cell.raw, value),
    "equals_value": lambda cell, value: _is(cell.raw == cell.value, value, cell.raw),
    "full_length": lambda cell, value: differs(len(cell.read), value),
    "file_starts_with_bom": lambda cell, value: _is(cell.content.startswith(b"\xef\xbb\xbf"), value, cell.content[:9]),
    "written": lambda cell, value: _is(bool(cell.content), value, cell.content[:9]),
}
XLSX: Mapping[str, Property] = {
    "cell_type": lambda cell, value: differs(cell.kind, value),
    "formula": lambda cell, value: _is(cell.kind == "formula", value, cell.raw),
    "equals": lambda cell, value: differs(cell.raw, value),
    "equals_value": lambda cell, value: first_difference(
        _is(cell.raw == cell.value, value, cell.raw), cell.imports if value else None
    ),
    "round_trip": _round_trip,
    "written": lambda cell, value: first_difference(_is(cell.raw is not None, value, cell.raw), cell.imports),
    "no_illegal_xml_char": lambda cell, value: _is(_is_well_formed(cell.content), value, cell.raw),
    "spaces_kept": lambda cell, value: _is(cell.raw.count(" ") == cell.value.count(" "), value, cell.raw),
    "max_len": lambda cell, value: _is(utf16_length(cell.raw) <= value, True, utf16_length(cell.raw)),
    "visible_truncation_mark": lambda cell, value: _is(_is_cut_visibly(cell), value, cell.raw[-40:]),
}


# --- label_import ----------------------------------------------------------------------------------------------------

OF_IMPORT = frozenset({"matched", "unmatched_reported", "silent_drop", "unlabelled", "labels", "mentions", "or"})
LABELS = {True: "pass", False: "fail", None: "unsure"}


def check_label_import(case: Case, folder: Path) -> str | None:
    """`sheet` is what came back of a sheet with the items `run_ids`, as CSV and as a workbook."""
    expected = case["expect"]
    wanted = [expected, *([{**expected, **expected["or"]}] if "or" in expected else [])]
    if unknown := sorted({name for want in wanted for name in want} - OF_IMPORT):
        return f"expectations that are not known: {unknown}"
    laid = sheet_of([texts() for _ in case["run_ids"]])
    items = tuple(ReviewItem(str(i), one.texts) for i, one in zip(case["run_ids"], laid.items, strict=True))
    sheet = replace(laid, items=items)
    with tempfile.TemporaryDirectory() as temporary:
        found = {name: _came_back(sheet, case["sheet"], name, Path(temporary)) for name in FORMATS}
    differences = [
        first_difference(*(f"{name}: {d}" for name, one in found.items() if (d := _import_differs(one, want))))
        for want in wanted
    ]
    return none_if_one_holds(differences)


@dataclass(frozen=True, slots=True)
class CameBack:
    """What the product makes of a sheet: the rows it could match, what it read of them, and what it says is wrong."""

    labels: Mapping[str, str]
    unlabelled: Sequence[str]
    message: str  # with which the import stops; "" where it does not
    lost: Sequence[str]  # labelled rows that are neither among the labels nor named in the message


def _came_back(sheet: Sheet, rows: Sequence[Sequence[Any]], format: Format, folder: Path) -> CameBack:
    known = {sheet.sheet_id: sheet}
    table = _table(sheet, rows)
    path = folder / f"back.{format}"
    if format == "csv":
        text = io.StringIO(newline="")
        csv.writer(text).writerows(table)
        path.write_bytes(text.getvalue().encode("utf-8-sig"))
        read = table_of(next(decodings(path.read_bytes()))[1], columns_of(sheet), path.name)
    else:
        book = Workbook()
        for row in table:
            book.worksheets[0].append(row)
        book.save(path)
        read = tables_of(path)[0][1]
    found, errors = table_rows(path.name, read, known)
    matched = match(found, known)
    back = sheets_of(matched, known)
    values = {item: label.values["passed"] for one in back for item, label in one.labels.items()}
    labels = {item: LABELS[value] for item, value in values.items()}  # type: ignore[index]
    blank = [item for one in back for item in one.blank] if back else [item.id for item in sheet.items]
    try:
        read_sheet(path, known)
        message = ""
    except InputError as error:
        # The message lists the first of many; that nothing is dropped is seen in all of them.
        message = "\n".join([str(error), *errors, *matched.errors])
    labelled = [(n, str(item)) for n, (item, label) in enumerate(rows, 2) if not is_blank(label)]
    lost = [item for n, item in labelled if item not in labels and not re.search(rf"\brow {n}\b", message)]
    return CameBack(labels, blank, message, lost)


def _table(sheet: Sheet, rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The sheet as it came back, its columns those that were exported."""
    columns = columns_of(sheet)
    shown = cells_of(ReviewTexts(**_texts_of(sheet)), sheet.lang)
    return [
        list(columns),
        *([{"item": item, "passed": label, **shown}.get(name, "") for name in columns] for item, label in rows),
    ]


def _texts_of(sheet: Sheet) -> dict[str, Any]:
    one = sheet.items[0].texts
    contexts: tuple[tuple[ReviewContext, ...] | None, ...] = one.contexts
    return {"question": one.question, "answers": one.answers, "contexts": contexts}


def _import_differs(found: CameBack, want: Mapping[str, Any]) -> str | None:
    is_lost = bool(found.lost)
    silent = [item for item in want.get("unmatched_reported", ()) if repr(str(item)) not in found.message]
    missing = [text for text in want.get("mentions", ()) if text.lower() not in found.message.lower()]
    checks: Mapping[str, Callable[[Any], str | None]] = {
        "matched": lambda value: differs(sorted(found.labels), sorted(map(str, value))),
        "labels": lambda value: differs(dict(found.labels), value),
        "unlabelled": lambda value: differs(sorted(found.unlabelled), sorted(map(str, value))),
        "unmatched_reported": lambda value: f"not said: {silent}, in {found.message!r}" if silent else None,
        "mentions": lambda value: f"not said: {missing}, in {found.message!r}" if missing else None,
        "silent_drop": lambda value: None if is_lost == value else f"found {is_lost} ({found.lost}), expected {value}",
    }
    named = {name: check(want[name]) for name, check in checks.items() if name in want}
    return first_difference(*(f"{name}: {difference}" for name, difference in named.items() if difference))
