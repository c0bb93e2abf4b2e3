"""A review sheet as CSV: UTF-8 with BOM, texts guarded against being read as formulas; and CSV as spreadsheets save it.

What comes back may be separated by commas, semicolons or tabs, and be in UTF-8, UTF-16 or the code page of the machine.
"""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from rag_judge.errors import InputError
from rag_judge.review.cells import cells_of
from rag_judge.review.labels import folded
from rag_judge.review.sheet import Sheet, columns_of

# At the beginning of a cell these make some spreadsheet read a formula, the wide forms too.
_STARTS = frozenset("=+-@\t\r\n＝＋－＠")
# The narrower of two before the wider, so that what it lacks is not looked for.
_LEGACY = ("gbk", "gb18030", "big5", "cp932", "cp949", "cp1252", "latin-1")
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_MOSTLY_NUL = 0.2  # of the first bytes; text in UTF-16 without its mark
SEPARATORS = (",", ";", "\t", "|")


def csv_cell(value: str | int | float | bool | None) -> str:
    """The value as a cell: numbers as they are, text with an apostrophe before what could start a formula.

    Empty for None, and for a float that is no number.
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return str(value)
    text = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return f"'{text}" if _is_guarded(text) else text


def csv_text(cell: str) -> str:
    """The text that a cell stands for: `csv_cell` undone."""
    return cell[1:] if cell.startswith("'") and _is_guarded(cell) else cell


def _is_guarded(text: str) -> bool:
    return text.lstrip("'")[:1] in _STARTS and bool(text.lstrip("'"))


def write_csv(sheet: Sheet, path: Path) -> None:
    """Write the sheet, one row an item, its label cells empty."""
    columns = columns_of(sheet)
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for item in sheet.items:
            cells = {"item": item.id, **cells_of(item.texts, sheet.lang)}
            writer.writerow([csv_cell(cells.get(column, "")) for column in columns])


def decodings(content: bytes) -> Iterator[tuple[str, str]]:
    """Yield (encoding, text) of each way in which the bytes may be read, the likeliest first.

    More than one only where the bytes are no Unicode text: which code page they are in, only their content can tell.
    """
    for bom, encoding in _UTF_16.items():
        if content.startswith(bom):
            yield encoding, content.decode(encoding, "replace")
            return
    head = content[:512]
    if head and head.count(0) > _MOSTLY_NUL * len(head):
        encoding = "utf-16-le" if head[1::2].count(0) >= head[::2].count(0) else "utf-16-be"
        yield encoding, content.decode(encoding, "replace")
        return
    if content.isascii():
        # Nothing is left of what may have been there before: programs put question marks for what they cannot save.
        yield "ascii", content.decode("ascii")
        return
    try:
        yield "utf-8", content.decode("utf-8-sig")
    except UnicodeDecodeError:
        for encoding in _LEGACY:
            try:
                yield encoding, content.decode(encoding)
            except UnicodeDecodeError:
                continue
        # Chinese Windows has a euro sign where the standard has nothing.
        yield "gbk", content.decode("gbk", "replace")


def table_of(text: str, known: Iterable[str], name: str) -> list[list[str]]:
    """The records of a CSV text, the header first, separated by whatever makes most of its header known columns.

    Raises InputError where the text is not CSV, or no column of it is known.
    """
    if found := re.match(r"sep=(.)\r?\n", text):  # a line that some spreadsheets write and read before the header
        return _records(text[found.end() :], found[1], name)
    names = set(known)
    first = text.split("\n", 1)[0]
    n_known = {separator: len(names & set(map(folded, _header(first, separator)))) for separator in SEPARATORS}
    best = max(SEPARATORS, key=lambda separator: n_known[separator])
    if not n_known[best]:
        raise InputError(
            f"{name}: row 1: found no column of a review sheet ({first[:80]!r}); expected the columns of the sheet as "
            f"it was exported, the item column among them"
        )
    return _records(text, best, name)


def _header(line: str, separator: str) -> list[str]:
    return next(csv.reader([line], delimiter=separator), [])


def _records(text: str, separator: str, name: str) -> list[list[str]]:
    csv.field_size_limit(2**31 - 1)  # contexts in a cell exceed the module's default of 128 kB
    records: list[list[str]] = []
    try:
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True):
            records.append([csv_text(cell) for cell in record])
    except csv.Error as error:
        raise InputError(
            f"{name}: row {len(records) + 1}: not valid CSV ({error}); open it in a spreadsheet and save it again"
        ) from error
    return records
