"""Labels out of the sheets that came back, whatever their format and order; all or nothing.

The format is told by content. A row that names no item of a known sheet, a value that cannot be, a text that is not
the one exported and two rows that contradict each other are errors; all of them are collected, and nothing is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_judge.errors import InputError
from rag_judge.review.csv_sheet import decodings, table_of
from rag_judge.review.found import Found, FoundRow, label_row, table_rows
from rag_judge.review.html_sheet import EXPORT_FORMAT
from rag_judge.review.label_studio import answers_of
from rag_judge.review.labels import ReadSheet
from rag_judge.review.matching import match, sheets_of
from rag_judge.review.sheet import Sheet, columns_of
from rag_judge.review.xlsx import tables_of

N_ERRORS_SHOWN = 20
_OLD_OFFICE = b"\xd0\xcf\x11\xe0"


def read_sheet(path: Path, known: Mapping[str, Sheet]) -> ReadSheet:
    """What one file holds of one known sheet. Raises InputError for everything wrong in it, or for several sheets."""
    sheets = read_sheets([path], known)
    if len(sheets) != 1:
        names = ", ".join(sheet.sheet_id for sheet in sheets)
        raise InputError(f"{path}: holds {len(sheets)} sheets ({names}), expected one")
    return sheets[0]


def read_sheets(paths: Sequence[Path], known: Mapping[str, Sheet]) -> list[ReadSheet]:
    """What the files hold, one entry a sheet, in the order first met; several files may hold parts of one sheet.

    Raises InputError that names file, row and column of everything that is wrong in any of them (the first
    N_ERRORS_SHOWN, and how many there are); then nothing counts as read.
    """
    rows: list[FoundRow] = []
    errors: list[str] = []
    for path in paths:
        try:
            found = _rows_of(path, known)
        except InputError as error:
            errors.append(str(error))
            continue
        rows += found.rows
        errors += found.errors
    matched = match(rows, known)
    errors += matched.errors
    if errors:
        raise InputError(_listed(errors))
    return sheets_of(matched, known)


def _listed(errors: Sequence[str]) -> str:
    shown = list(errors[:N_ERRORS_SHOWN])
    if len(errors) > len(shown):
        shown.append(f"… and {len(errors) - len(shown)} more")
    heading = f"{len(errors)} {'thing is' if len(errors) == 1 else 'things are'} wrong, and nothing was imported:"
    return "\n".join([heading, *shown])


# --- one file, by its content ---------------------------------------------------------------------------------------


def _rows_of(path: Path, known: Mapping[str, Sheet]) -> Found:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); is the path right?") from error
    if not content.strip():
        raise InputError(f"{path}: the file is empty; expected a review sheet that was filled in")
    if content.startswith(_OLD_OFFICE):
        raise InputError(
            f"{path}: an old .xls workbook, or one with a password; save it as .xlsx without a password and try again"
        )
    if content.startswith(b"PK"):
        return _workbook_rows(path, known)
    candidates = list(decodings(content))
    start = candidates[0][1].lstrip("\ufeff \t\r\n")
    if start[:1] in ("{", "["):
        return _json_rows(path, start, known)
    if start[:1] == "<":
        raise InputError(
            f"{path}: this is the page itself, which does not hold the labels; open it in the browser it was filled in "
            "with, press Export, and import the .json file that it saves"
        )
    return _csv_rows(path, candidates, known)


def _workbook_rows(path: Path, known: Mapping[str, Sheet]) -> Found:
    found = Found()
    tables = tables_of(path)
    if not tables:
        raise InputError(f"{path}: no worksheet has the column item in its first row; expected the sheet as exported")
    for title, table in tables:
        rows, errors = table_rows(f"{path}, worksheet {title}", table, known)
        found.rows += rows
        found.errors += errors
    return found


def _csv_rows(path: Path, candidates: Sequence[tuple[str, str]], known: Mapping[str, Sheet]) -> Found:
    """The rows in the first decoding; where the code page can only be guessed, in the one that has least wrong."""
    columns = sorted({column for sheet in known.values() for column in columns_of(sheet)} | {"item"})
    best: tuple[int, Found] | None = None
    failure: InputError | None = None
    for encoding, text in candidates:
        try:
            table = table_of(text, columns, str(path))
            rows, errors = table_rows(str(path), table, known, "" if encoding.startswith("utf") else encoding)
        except InputError as error:
            failure = failure or error
            continue
        n_wrong = len(errors) + (len(match(rows, known).errors) if len(candidates) > 1 else 0)
        if best is None or n_wrong < best[0]:
            best = n_wrong, Found(rows, errors)
        if not n_wrong:
            break
    if best is None:
        raise failure or InputError(f"{path}: not text in any encoding known here; save it as CSV UTF-8 and try again")
    return best[1]


def _json_rows(path: Path, text: str, known: Mapping[str, Sheet]) -> Found:
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON ({error}); export the labels again") from error
    if isinstance(value, dict) and value.get("format") == EXPORT_FORMAT:
        return Found(_exported_rows(path, value, known))
    tasks = [value] if isinstance(value, dict) else value
    if not isinstance(tasks, list) or not all(isinstance(task, dict) and _task(task).get("item") for task in tasks):
        raise InputError(
            f"{path}: JSON, but neither what the HTML sheet exports nor a Label Studio export (JSON or JSON-MIN) of "
            "this sheet, whose tasks have an item"
        )
    rows = []
    for n, task in enumerate(tasks, 1):
        told = _task(task)
        rows.append(label_row(f"{path}: task {n}", told["item"], {}, known, told))
        for which, said in answers_of(task):
            rows.append(label_row(f"{path}: task {n}{which}", told["item"], said, known, told))
    return Found(rows)


def _task(task: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the task was made of; in the short export, that and the labels stand side by side."""
    told = task.get("data", task)
    return told if isinstance(told, dict) else {}


def _exported_rows(path: Path, value: Mapping[str, Any], known: Mapping[str, Sheet]) -> list[FoundRow]:
    labels = value.get("labels")
    if not isinstance(labels, list) or not all(isinstance(label, dict) for label in labels):
        raise InputError(f"{path}: labels: expected a list of objects; export the labels again")
    sheet_id = value.get("sheet")
    if not isinstance(sheet_id, str) or sheet_id not in known:
        raise InputError(
            f"{path}: the labels are of sheet {sheet_id!r}, which is none of this run's; import them into the run it "
            "was exported from"
        )
    version = {"instructions": value.get("instructions_version")}
    return [
        label_row(f"{path}: label {n}", label.get("item"), label, known, {**version, **label})
        for n, label in enumerate(labels, 1)
    ]
