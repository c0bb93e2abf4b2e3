"""Rows of a user's file, whatever its format, as a stream and by offset; nothing here knows what a row means.

JSON Lines is read in place. A JSON array, CSV and Parquet are converted once to JSON Lines in a private temporary
file, so that everything after this module sees one format and holds offsets instead of texts.
"""

from __future__ import annotations

import codecs
import csv
import hashlib
import json
import math
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal

from rag_judge.errors import InputError

Format = Literal["jsonl", "array", "csv", "parquet"]

_BLOCK = 1 << 20
_OTHER_BOMS = ((codecs.BOM_UTF16_LE, "UTF-16"), (codecs.BOM_UTF16_BE, "UTF-16"))


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its fields, the place in the user's file (`cases.jsonl:3`) and its offset in the JSON Lines file."""

    fields: Mapping[str, Any]
    where: str
    line: int
    offset: int
    is_text: bool  # from CSV: every value is text and has yet to be given a type


class RowFile:
    """One user's file, open for reading row by row and by offset. Close it, or use it in a `with`."""

    def __init__(self, path: Path, *, unique_keys: bool = False) -> None:
        """Open `path`; with `unique_keys`, an object that holds a key twice is an error.

        Raises InputError when it is missing, empty, a folder, or not UTF-8 (nor Parquet).
        """
        self.path = path
        self._unique_keys = unique_keys
        self.format = _format_of(path)
        self.sha256 = file_sha256(path)
        self._lines: list[int] | None = None
        # Closed by `close`: the rows are read as long as the object lives.
        self._file: IO[bytes] = path.open("rb") if self.format == "jsonl" else tempfile.TemporaryFile("w+b")  # noqa: SIM115
        if self.format != "jsonl":
            self._lines = []
            try:
                for line, fields in _converted(path, self.format):
                    self._file.write(_as_json(fields, f"{path}:{line}"))
                    self._lines.append(line)
            except InputError:
                self.close()
                raise

    def __enter__(self) -> RowFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file; a temporary conversion is gone with it."""
        self._file.close()

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows in file order. Raises InputError with file and line at the first row that is no object."""
        found = False
        for n, (line, offset, raw) in enumerate(_lines_of(self._file)):
            user_line = line if self._lines is None else self._lines[n]
            where = f"{self.path}:{user_line}"
            found = True
            yield Row(
                parse_object(raw, where, unique_keys=self._unique_keys), where, user_line, offset, self.format == "csv"
            )
        if not found:
            raise InputError(f"{self.path} is empty: expected at least one row")

    def read(self, offset: int) -> Row:
        """The row that starts at `offset`, as given by an earlier pass."""
        self._file.seek(offset)
        raw = self._file.readline()
        return Row(parse_object(raw, str(self.path)), str(self.path), 0, offset, self.format == "csv")

    def copy_to(self, target: BinaryIO) -> None:
        """Write the rows as JSON Lines: byte for byte for JSON Lines, one object a line for every other format."""
        self._file.seek(0)
        shutil.copyfileobj(self._file, target, _BLOCK)


def json_line(fields: Mapping[str, Any]) -> bytes:
    """One object as a line of UTF-8 JSON. A lone surrogate, which UTF-8 cannot hold, is written as its escape."""
    text = json.dumps(fields, ensure_ascii=False)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(fields).encode() + b"\n"


def _as_json(fields: Mapping[str, Any], where: str) -> bytes:
    for name, value in fields.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError) as error:
            kind = type(value).__name__
            raise InputError(
                f"{where}: {name}: found a {kind}, expected text, a number, a list or an object"
            ) from error
    return json_line(fields)


def parse_object(raw: bytes, where: str, *, unique_keys: bool = False) -> dict[str, Any]:
    """The JSON object in `raw`. Raises InputError naming `where` for bad encoding, bad JSON or another value."""
    try:
        hook = _no_key_twice if unique_keys else None
        value = json.loads(raw.decode("utf-8-sig"), parse_constant=_no_constant, object_pairs_hook=hook)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{where}: the encoding is not UTF-8 (byte 0x{raw[error.start]:02x}); save the file as UTF-8"
        ) from error
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: not valid JSON: {error.msg} at column {error.colno}") from error
    except (RecursionError, ValueError) as error:
        raise InputError(f"{where}: not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{where}: found {kind_of(value)}, expected one JSON object a line")
    return value


def kind_of(value: object) -> str:
    """A short description of a JSON value for messages, as `5 (number)`."""
    kinds = {str: "text", bool: "true/false", int: "number", float: "number", list: "list", dict: "object"}
    if value is None:
        return "null"
    shown = json.dumps(value, ensure_ascii=True, default=str)
    return f"{shown if len(shown) <= 60 else shown[:57] + '...'} ({kinds.get(type(value), type(value).__name__)})"


def file_sha256(path: Path) -> str:
    """Hex sha256 of a file's bytes. Raises InputError when it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    return digest.hexdigest()


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value; use null or leave the field out")


def _format_of(path: Path) -> Format:
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if not head:
        raise InputError(f"{path} is empty: expected JSON Lines, a JSON array, CSV or Parquet")
    if head.startswith(b"PAR1"):
        return "parquet"
    for bom, name in _OTHER_BOMS:
        if head.startswith(bom):
            raise InputError(f"{path}: the encoding is {name}, expected UTF-8; save the file as UTF-8")
    if path.suffix.lower() == ".csv":
        return "csv"
    if path.suffix.lower() == ".parquet":
        raise InputError(f"{path}: not a Parquet file (its first bytes are {head[:4]!r})")
    return "array" if head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[") else "jsonl"


def _lines_of(file: IO[bytes]) -> Iterator[tuple[int, int, bytes]]:
    """(line number from 1, offset, bytes) of each line that is not blank; only LF ends a line."""
    file.seek(0)
    offset = 0
    number = 0
    while True:
        # The position is set anew for each line: `read` may have moved it between two rows.
        file.seek(offset)
        raw = file.readline()
        if not raw:
            return
        number += 1
        content = raw.removeprefix(codecs.BOM_UTF8) if offset == 0 else raw
        if content.strip():
            yield number, offset, raw
        offset += len(raw)


def _converted(path: Path, kind: Format) -> Iterable[tuple[int, dict[str, Any]]]:
    """(line in the user's file, fields) of each row of a file that is not JSON Lines."""
    if kind == "csv":
        return _csv_rows(path)
    if kind == "parquet":
        return _parquet_rows(path)
    return _array_rows(path)


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    csv.field_size_limit(2**31 - 1)  # contexts in a cell exceed the module's default of 128 kB
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        start = 1
        try:
            header = reader.fieldnames or []
            if len(set(header)) != len(header):
                raise InputError(f"{path}:1: a column name stands twice in the header: {', '.join(header)}")
            start = reader.line_num + 1
            for row in reader:
                if None in row:
                    raise InputError(f"{path}:{start}: more cells than the header has columns ({len(header)})")
                yield start, {name: cell for name, cell in row.items() if cell is not None}
                start = reader.line_num + 1
        except csv.Error as error:
            raise InputError(f"{path}:{start}: not valid CSV: {error}") from error
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path}: the encoding is not UTF-8 (after line {reader.line_num}); save the file as CSV UTF-8"
            ) from error


def _parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    import pyarrow
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path)
        number = 0
        for batch in file.iter_batches(batch_size=256):
            for row in batch.to_pylist():
                number += 1
                yield number, {name: _without_nan(value) for name, value in row.items() if value is not None}
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file: {error}") from error


def _without_nan(value: Any) -> Any:
    """The value with NaN, which is how data frames store a missing number, as null at any depth."""
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _array_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON array, one at a time: the file may be larger than memory."""
    text = _TextWindow(path)
    text.expect("[")
    if text.peek() == "]":
        raise InputError(f"{path} is empty: the array has no rows")
    while True:
        line = text.skip_space()
        value = text.value()
        if not isinstance(value, dict):
            raise InputError(f"{path}:{line}: found {kind_of(value)}, expected an array of JSON objects")
        yield line, value
        if text.peek() == "]":
            text.expect("]")
            text.expect_end()
            return
        text.expect(",")


class _TextWindow:
    """A sliding window over a text file from which JSON values are read one after another."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.line = 1
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._chunks = self._read()
        self._text = ""
        self._at = 0
        self._ended = False

    def _read(self) -> Iterator[str]:
        with self.path.open("rb") as file:
            while block := file.read(_BLOCK):
                yield self._decode.decode(block)
            yield self._decode.decode(b"", final=True)

    def _more(self, at_least: int) -> bool:
        """Grow the window; False at the end of the file."""
        self._text, self._at = self._text[self._at :], 0
        goal = len(self._text) + at_least
        try:
            while len(self._text) < goal:
                self._text += next(self._chunks)
        except StopIteration:
            self._ended = True
        except UnicodeDecodeError as error:
            raise InputError(
                f"{self.path}: the encoding is not UTF-8 (after line {self.line}); save the file as UTF-8"
            ) from error
        return not self._ended

    def skip_space(self) -> int:
        """The line number of the next character that is not white space."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in " \t\r\n":
                self.line += self._text[self._at] == "\n"
                self._at += 1
            if self._at < len(self._text) or self._ended:
                return self.line
            self._more(1)

    def peek(self) -> str:
        """The next character that is not white space, or "" at the end."""
        self.skip_space()
        return self._text[self._at : self._at + 1]

    def expect(self, mark: str) -> None:
        """Step over `mark`; InputError when something else stands there."""
        found = self.peek()
        if found != mark:
            raise InputError(f"{self.path}:{self.line}: not a valid JSON array: found {found!r}, expected {mark!r}")
        self._at += 1

    def expect_end(self) -> None:
        """InputError when anything but white space follows."""
        if found := self.peek():
            raise InputError(f"{self.path}:{self.line}: not a valid JSON array: found {found!r} after its end")

    def value(self) -> Any:
        """The JSON value at the current place, which the window is grown to hold."""
        decoder = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_no_key_twice)
        growth = _BLOCK
        while True:
            try:
                value, end = decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                # The window may end inside the value: it is grown until the value is whole or the file ends.
                if not self._ended:
                    self._more(growth)
                    growth *= 2
                    continue
                line = self.line + self._text.count("\n", self._at, error.pos)
                raise InputError(f"{self.path}:{line}: not valid JSON: {error.msg}") from error
            except (RecursionError, ValueError) as error:
                raise InputError(f"{self.path}:{self.line}: not valid JSON: {error}") from error
            self.line += self._text.count("\n", self._at, end)
            self._at = end
            return value
