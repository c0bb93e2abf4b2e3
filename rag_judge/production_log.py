"""A production log, read row by row: what each row says of its question, and what it does not say.

Only what the signals need is kept of a row; answers and contexts are read and let go. What is missing is None, never
false or zero. No rate is computed here.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, tzinfo
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

from rag_judge.cases import read_list
from rag_judge.errors import InputError
from rag_judge.log_times import read_time, zone_of
from rag_judge.records import Abstention
from rag_judge.refusals import abstention
from rag_judge.rows import RowFile, kind_of, parse_object

# What a field may be called; of several that a row has, the first that says something counts.
NAMES: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "q", "query", "user_input"),
    "answer": ("answer", "response"),
    "contexts": ("contexts",),
    "time": ("time", "timestamp", "created_at"),
    "conversation": ("conversation", "conversation_id", "session", "session_id"),
    "user": ("user", "user_id"),
    "latency_s": ("latency_s",),
    "latency_ms": ("latency_ms",),
    "handed_off": ("handed_off",),
    "refused": ("refused",),
}
NOBODY = frozenset({"", "-", "anonymous", "guest", "nan", "none", "null", "undefined", "unknown"})  # no id of anyone
N_BROKEN_SHOWN = 3
PROGRESS_EVERY = 1_000  # rows
_FLAGS = {"true": True, "yes": True, "1": True, "是": True, "false": False, "no": False, "0": False, "否": False}
_COLUMN = re.compile(r"[\w /-]+")

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Turn:
    """One question of the log. None: the row does not say."""

    line: int
    question: str
    at: float | None  # seconds since 1970
    day: str | None
    conversation: str | None
    user: str | None
    no_result: bool | None
    refused: bool | None
    handed_off: bool | None
    latency_s: float | None
    slices: tuple[str | None, ...] = ()

    @property
    def asker(self) -> str | None:
        """Who asked, as far as it is known: the user, else the conversation."""
        return f"u:{self.user}" if self.user else f"c:{self.conversation}" if self.conversation else None


@dataclass(frozen=True, slots=True)
class Log:
    """The turns of a log in file order, and what was found on the way."""

    turns: Sequence[Turn]
    n_broken: int
    broken: tuple[str, ...]  # the first of them, each with its place
    n_refusal_conflicts: int  # the flag `refused` and the answer's text disagree; the text counts
    clocks: Mapping[str, int]  # UTC offset, "epoch", "none" or "date" -> rows whose time is written so
    unfound: tuple[str, ...]  # mapped fields and slices that no row has


@dataclass(frozen=True, slots=True)
class LogFormat:
    """How to read a log: other names of fields, fields to slice by, the time zone of its days, broken rows left out."""

    mapping: Mapping[str, str]
    slices: tuple[str, ...] = ()
    zone: tzinfo | None = None
    skip_broken: bool = False


def log_format(
    maps: Sequence[str] = (), slices: Sequence[str] = (), timezone_name: str | None = None, skip_broken: bool = False
) -> LogFormat:
    """The format that the options say. Raises InputError for an unknown field, a path that is none, an unknown zone."""
    mapping = {}
    for pair in maps:
        name, equals, path = (part.strip() for part in pair.partition("="))
        if not equals or not path:
            raise InputError(f"--map {pair!r}: expected FIELD=PATH")
        if name not in NAMES:
            raise InputError(f"--map {pair!r}: unknown field {name!r}; there are: {', '.join(NAMES)}")
        _check_path(path, f"--map {pair!r}")
        mapping[name] = path
    for path in slices:
        _check_path(path, f"--slice {path!r}")
    zone = None if timezone_name is None else zone_of(timezone_name)
    return LogFormat(mapping, tuple(dict.fromkeys(slices)), zone, skip_broken)


def _check_path(path: str, where: str) -> None:
    import jmespath
    from jmespath.exceptions import JMESPathError

    if not path.strip():
        raise InputError(f"{where}: found blank text, expected the name of a field")
    if _COLUMN.fullmatch(path):
        return
    try:
        jmespath.compile(path)
    except JMESPathError as error:
        raise InputError(f"{where}: {path!r} is no name of a field and no valid JMESPath: {error}") from error


# --- a file -> turns --------------------------------------------------------------------------------------------------


def read_log(path: Path, form: LogFormat, progress: Progress | None = None) -> Log:
    """The log. Raises InputError at the first row that cannot be read, unless such rows are to be left out.

    Also where none is left, and where times with and without a UTC offset stand side by side and no zone is given.
    """
    reader = _Reader(form)
    turns: list[Turn] = []
    n_broken, broken = 0, []
    for row in _rows(path, progress):
        try:
            turns.append(reader.turn(row))
        except InputError as error:
            if not form.skip_broken:
                raise InputError(f"{error}; --skip-broken leaves such rows out and counts them") from error
            n_broken += 1
            if n_broken <= N_BROKEN_SHOWN:
                broken.append(_sound(str(error)))
    if not turns:
        first = f"; the first of {n_broken} broken ones: {broken[0]}" if broken else ""
        raise InputError(f"{path}: found no row that can be read, expected at least one question{first}")
    reader.check_clocks(path)
    return Log(turns, n_broken, tuple(broken), reader.n_conflicts, dict(reader.clocks), reader.unfound())


def answers_at(path: Path, form: LogFormat, lines: Collection[int]) -> dict[int, str]:
    """Line -> the answer there, for lines of turns that were read before: a second pass over the log."""
    reader, found = _Reader(form), {}
    for row in _rows(path, None):
        if row.line in lines:
            answer = reader.value("answer", _fields_of(row), row)
            if isinstance(answer, str):
                found[row.line] = answer
    return found


class _RawRow(NamedTuple):
    """A row, its fields still as bytes in JSON Lines: one that cannot be parsed must not end the pass."""

    line: int
    where: str
    content: bytes | Mapping[str, Any]
    is_text: bool


def _fields_of(row: _RawRow) -> Mapping[str, Any]:
    return parse_object(row.content, row.where) if isinstance(row.content, bytes) else row.content


def _rows(path: Path, progress: Progress | None) -> Iterator[_RawRow]:
    if path.suffix.lower() == ".parquet":
        yield from _parquet_rows(path, progress)
        return
    with RowFile(path) as file:  # also says what is no log at all: missing, a folder, empty, another encoding
        if file.format == "jsonl":
            yield from _lines(path, progress)
            return
        for n, row in enumerate(file, start=1):
            if progress is not None and n % PROGRESS_EVERY == 0:
                progress(n, 0)
            yield _RawRow(row.line, row.where, row.fields, row.is_text)


def _lines(path: Path, progress: Progress | None) -> Iterator[_RawRow]:
    n_bytes, n_all = 0, path.stat().st_size
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            n_bytes += len(raw)
            if progress is not None and number % PROGRESS_EVERY == 0:
                progress(n_bytes, n_all)
            if raw.strip(b"\xef\xbb\xbf \t\r\n"):
                yield _RawRow(number, f"{path}:{number}", raw, False)


def _parquet_rows(path: Path, progress: Progress | None) -> Iterator[_RawRow]:
    """Parquet with its times, which the reader of eval sets has no use for."""
    import pyarrow
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path)
        n_all, number = file.metadata.num_rows, 0
        for batch in file.iter_batches(batch_size=256):
            for fields in batch.to_pylist():
                number += 1
                if progress is not None and number % PROGRESS_EVERY == 0:
                    progress(number, n_all)
                yield _RawRow(number, f"{path}:{number}", {name: _plain(v) for name, v in fields.items()}, False)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file: {error}") from error


def _plain(value: Any) -> Any:
    """A Parquet cell as JSON would hold it; a number that is none is missing."""
    if isinstance(value, date):  # datetime is one
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    return None if isinstance(value, float) and math.isnan(value) else value


class _Reader:
    """What the rows of one log say, by its format; counts what is odd on the way."""

    def __init__(self, form: LogFormat) -> None:
        self._form = form
        self._paths = {name: (form.mapping[name],) if name in form.mapping else NAMES[name] for name in NAMES}
        self._searches = {path: _search(path) for path in (*form.mapping.values(), *form.slices)}
        self._found: set[str] = set()
        self.clocks: Counter[str] = Counter()
        self._first_line: dict[str, int] = {}
        self.n_conflicts = 0

    def value(self, name: str, fields: Mapping[str, Any], row: _RawRow) -> Any:
        """What a row says of a field: of its names the first that says something, else None."""
        for path in self._paths[name]:
            value = self._at(path, fields, row.where)
            if value is not None and not (row.is_text and not str(value).strip()):
                return value
        return None

    def _at(self, path: str, fields: Mapping[str, Any], where: str) -> Any:
        value = fields.get(path)
        search = self._searches.get(path)
        if search is not None:
            value = value if path in fields else search(fields, where)
            if value is not None:
                self._found.add(path)
        return value

    def turn(self, row: _RawRow) -> Turn:
        """The turn that a row holds. Raises InputError with the place for a missing question or a bad value."""
        fields, is_text, where = _fields_of(row), row.is_text, row.where
        given = {name: self.value(name, fields, row) for name in NAMES}
        question = _text(given["question"], f"{where}: question")
        if question is None or not question.strip():
            known = ", ".join(list(fields)[:12])
            raise InputError(f"{where}: question is missing; the row has: {known} (name it with --map question=FIELD)")
        answer, flag = _text(given["answer"], f"{where}: answer"), _flag(given["refused"], f"{where}: refused")
        moment = None if given["time"] is None else read_time(given["time"], f"{where}: time", self._form.zone)
        turn = Turn(
            line=row.line,
            question=question,
            at=None if moment is None else moment.at,
            day=None if moment is None else intern(moment.day),
            conversation=_id(given["conversation"], f"{where}: conversation"),
            user=_id(given["user"], f"{where}: user"),
            no_result=_no_result(given["contexts"], f"{where}: contexts", is_text),
            refused=flag if answer is None else _abstention(answer).did_abstain,
            handed_off=_flag(given["handed_off"], f"{where}: handed_off"),
            latency_s=_latency(given, where),
            slices=tuple(_slice_value(self._at(path, fields, where), is_text) for path in self._form.slices),
        )
        # Counted when nothing can fail any more: a broken row is counted as that alone.
        self.n_conflicts += answer is not None and flag is not None and flag != turn.refused
        if moment is not None:
            self.clocks[moment.clock] += 1
            self._first_line.setdefault(moment.clock, row.line)
        return turn

    def unfound(self) -> tuple[str, ...]:
        """The fields that were mapped, and slices, that no row has."""
        mapped = [f"--map {name}={path}" for name, path in self._form.mapping.items() if path not in self._found]
        return (*mapped, *(f"--slice {path}" for path in self._form.slices if path not in self._found))

    def check_clocks(self, path: Path) -> None:
        """Raise InputError where times with and without an offset cannot be put in one order."""
        others = sorted(line for clock, line in self._first_line.items() if clock not in ("none", "date"))
        if self._form.zone is None and "none" in self._first_line and others:
            raise InputError(
                f"{path}: the time on line {self._first_line['none']} has no UTC offset, the one on line {others[0]} "
                "has; say with --timezone in which zone those without are"
            )


def _search(path: str) -> Callable[[Mapping[str, Any], str], Any]:
    """The JMESPath of a mapped field; one that is just a name of a column finds nothing beyond the column."""
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        expression = jmespath.compile(path)
    except JMESPathError:
        return lambda fields, where: None

    def search(fields: Mapping[str, Any], where: str) -> Any:
        try:
            return expression.search(fields)
        except JMESPathError as error:  # valid, over a value of the wrong kind
            raise InputError(f"{where}: {path!r}: {error}") from error

    return search


# --- one reader per kind of value -------------------------------------------------------------------------------------


@lru_cache(maxsize=1_000)  # refusals of one system are word for word the same
def _abstention(answer: str) -> Abstention:
    return abstention(answer)


def _text(value: Any, where: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InputError(f"{where}: found {kind_of(value)}, expected text")
    return value


def _id(value: Any, where: str) -> str | None:
    if isinstance(value, float) and value.is_integer():  # a column of whole numbers, some of them missing
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    text = _text(value, where)
    return None if text is None or text.strip().casefold() in NOBODY else intern(text.strip())


def _flag(value: Any, where: str) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():  # a column of flags, some of them missing
        value = int(value)
    text = str(value).strip().casefold() if isinstance(value, int | str) else ""
    if text not in _FLAGS:
        raise InputError(f"{where}: found {kind_of(value)}, expected true or false")
    return _FLAGS[text]


def _no_result(value: Any, where: str, is_text: bool) -> bool | None:
    """True for an empty list; a whole number is how many results there were."""
    if value is None or value == "":
        return None
    if is_text and str(value).strip().isdecimal():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value == 0
    return not read_list(value, where, is_text or isinstance(value, str))


def _latency(given: Mapping[str, Any], where: str) -> float | None:
    name, per_second = ("latency_ms", 1_000) if given["latency_s"] is None else ("latency_s", 1)
    value = given[name]
    if value is None:
        return None
    try:
        number = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if not 0 <= number < math.inf:
        raise InputError(f"{where}: {name}: found {kind_of(value)}, expected a number, at least 0")
    return number / per_second


def _slice_value(value: Any, is_text: bool) -> str | None:
    if value is None or (is_text and not str(value).strip()):
        return None
    return intern(_sound(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)))


def _sound(text: str) -> str:
    """The text without halves of characters, which JSON can hold and UTF-8 cannot."""
    return text.encode("utf-8", "backslashreplace").decode()
