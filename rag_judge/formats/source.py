"""The records of a foreign file, whatever its container: JSON in any arrangement, CSV, Parquet. No meaning here.

Other tools write JSON Lines, one array, one object over many lines, or object after object with nothing between; all
are read. What RowFile refuses for our own files is met here: a column that stands twice, a date in Parquet, a list in
the spelling of Python.
"""

from __future__ import annotations

import ast
import codecs
import csv
import io
import json
import math
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from rag_judge.errors import InputError
from rag_judge.rows import kind_of

_FIELD_LIMIT = 2**31 - 1
_OTHER_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class Record:
    """One record: its fields and its place, as `runs.jsonl:3`."""

    fields: dict[str, Any]
    where: str
    is_text: bool = False  # from CSV: every value is text


def records_of(path: Path) -> Iterator[Record]:
    """Yield the records of a file in order.

    Raises InputError for a file that is missing, empty, a folder, cut off, not UTF-8, or holds something that is no
    object.
    """
    head = _head(path)
    found = False
    if head.startswith(b"PAR1"):
        records = _from_parquet(path)
    elif path.suffix.lower() == ".csv":
        records = _from_csv(path)
    else:
        records = _from_json(path)
    for record in records:
        found = True
        yield record
    if not found:
        raise InputError(f"{path} is empty: expected at least one record")


def text_of(path: Path) -> str:
    """A whole file as text, without byte order mark. Raises InputError when it cannot be read or is not UTF-8."""
    _head(path)
    raw = path.read_bytes()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}:{line}: the encoding is not UTF-8 (byte 0x{raw[error.start]:02x}); save the file as UTF-8"
        ) from error


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if not head.strip():
        raise InputError(f"{path} is empty: expected at least one record")
    if head.startswith(_OTHER_BOMS):
        raise InputError(f"{path}: the encoding is UTF-16, expected UTF-8; save the file as UTF-8")
    if path.suffix.lower() == ".parquet" and not head.startswith(b"PAR1"):
        raise InputError(f"{path}: not a Parquet file (its first bytes are {head[:4]!r})")
    return head


def _from_json(path: Path) -> Iterator[Record]:
    """Line by line where the first line is an object by itself, else value by value over the whole text."""
    with path.open("rb") as file:
        first = next((raw for raw in file if raw.removeprefix(codecs.BOM_UTF8).strip()), b"")
    if _is_whole_object(first):
        yield from _from_lines(path)
        return
    text = text_of(path)
    decoder = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
    at, line = _skip_space(text, 0), 1 + text.count("\n", 0, _skip_space(text, 0))
    while at < len(text):
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise InputError(f"{path}:{line + text.count(chr(10), at, error.pos)}: {_not_json(error.msg)}") from error
        except (RecursionError, ValueError) as error:
            raise InputError(f"{path}:{line}: {_not_json(str(error))}") from error
        yield from _objects_in(value, f"{path}:{line}")
        after = _skip_space(text, end)
        line += text.count("\n", at, after)
        at = after


def _not_json(what: str) -> str:
    return f"not valid JSON: {what}; the file may be cut off, export it again"


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _is_whole_object(raw: bytes) -> bool:
    try:
        return isinstance(json.loads(raw.decode("utf-8-sig")), dict)
    except (ValueError, RecursionError):
        return False


def _from_lines(path: Path) -> Iterator[Record]:
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if raw.removeprefix(codecs.BOM_UTF8).strip():
                yield from _objects_in(_value_of(raw, f"{path}:{number}"), f"{path}:{number}")


def _value_of(raw: bytes, where: str) -> Any:
    try:
        return json.loads(raw.decode("utf-8-sig"), parse_constant=_no_constant, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{where}: the encoding is not UTF-8 (byte 0x{raw[error.start]:02x}); save the file as UTF-8"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: {_not_json(str(error))}") from error


def _objects_in(value: Any, where: str) -> Iterator[Record]:
    """The object itself, or those of an array, each with its place in it."""
    parts = [(value, where)] if not isinstance(value, list) else [(v, f"{where}[{i}]") for i, v in enumerate(value)]
    for part, place in parts:
        if not isinstance(part, dict):
            raise InputError(f"{place}: found {kind_of(part)}, expected an object")
        yield Record(part, place)


def _no_constant(name: str) -> None:
    """NaN and Infinity, which Python writes for a number that is missing, as null."""
    _ = name


def _finite(digits: str) -> float | None:
    """The number, or null for one that is too large to be any."""
    number = float(digits)
    return number if math.isfinite(number) else None


def _from_csv(path: Path) -> Iterator[Record]:
    csv.field_size_limit(_FIELD_LIMIT)
    reader = csv.reader(io.StringIO(text_of(path), newline=""), strict=True)
    try:
        header = next(reader)
        start = reader.line_num + 1
        for cells in reader:
            where = f"{path}:{start}"
            start = reader.line_num + 1
            if not cells:
                continue
            if len(cells) > len(header):
                raise InputError(f"{where}: more cells than the header has columns ({len(header)})")
            yield Record(_row(header, cells, where), where, is_text=True)
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: not valid CSV: {error}") from error


def _row(header: list[str], cells: list[str], where: str) -> dict[str, Any]:
    """The cells that are not empty, by column; a column that stands twice (an index written along) must agree."""
    row: dict[str, Any] = {}
    for name, cell in zip(header, cells, strict=False):
        if cell == "":
            continue
        if row.get(name, cell) != cell:
            raise InputError(f"{where}: the column {name!r} stands twice with different values")
        row[name] = cell
    return row


def _from_parquet(path: Path) -> Iterator[Record]:
    import pyarrow
    import pyarrow.parquet

    try:
        number = 0
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=256):
            for row in batch.to_pylist():
                number += 1
                yield Record(_plain(row), f"{path}:{number}")
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file: {error}") from error


def _plain(value: Any) -> Any:
    """The value as JSON would hold it: no NaN, no null in an object, dates as text, bytes as text."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str | bool | int | float | None) else str(value)


def structured(cell: Any, where: str) -> Any:
    """A list or an object out of a text that spells one, in JSON or in Python; any other value as it is.

    Raises InputError for a NumPy array's spelling, whose texts cannot be told apart, and for a text that begins like
    a list and does not end like one.
    """
    if not isinstance(cell, str) or cell.lstrip()[:1] not in ("[", "{"):
        return cell
    try:
        return json.loads(cell, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        return _python_literal(cell, where)


def _python_literal(cell: str, where: str) -> Any:
    try:
        value = ast.literal_eval(cell.strip())
        if _texts_stand_side_by_side(cell.strip()):
            raise InputError(
                f"{where}: found a NumPy array as it is printed, whose texts cannot be told apart; "
                "export it as JSON Lines or Parquet"
            )
    except (ValueError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError) as error:
        raise InputError(
            f"{where}: found a cell that begins like a list or an object and is none: {cell[:60]!r}"
        ) from error
    return value if isinstance(value, list | dict) else cell


def _texts_stand_side_by_side(cell: str) -> bool:
    """True for `['a' 'b']`, which Python reads as one text."""
    kinds = [
        token.type
        for token in tokenize.generate_tokens(io.StringIO(cell).readline)
        if token.type not in (tokenize.NL, tokenize.NEWLINE)
    ]
    return any(kind == after == tokenize.STRING for kind, after in pairwise(kinds))
