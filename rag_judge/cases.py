"""The eval set: read in either dialect, checked, and kept by offset. Nothing is repaired or guessed here.

A row may be of either dialect (`question` or `q`, `relevant_docs` or `expected_doc_ids` …); both may stand in one
file. What is wrong is an InputError with file and line, what was found and what was expected.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from rag_judge.errors import InputError
from rag_judge.records import Case
from rag_judge.rows import Row, RowFile, json_line, kind_of

ALIASES = {
    "q": "question",
    "query": "question",
    "user_input": "question",
    "expected_doc_ids": "relevant_docs",
    "reference_context_ids": "relevant_docs",
}
MAY_BE_BLANK = frozenset({"type", "tenant", "reference"})  # "" says the same as leaving the field out
REFUSAL_TYPES = frozenset({"refusal", "out_of_scope"})


class CaseSet:
    """The cases of one file in file order. Only ids and offsets are held; a case is read when it is asked for."""

    def __init__(self, path: Path) -> None:
        """Read and check every row of `path` once. Raises InputError at the first row that is wrong."""
        self._rows = RowFile(path, unique_keys=True)
        self.path = path
        self.sha256 = self._rows.sha256
        self.offsets: dict[str, int] = {}
        self.warnings: list[str] = []
        self.has_answers = False
        try:
            self._check_rows()
        except InputError:
            self.close()
            raise

    def _check_rows(self) -> None:
        lines: dict[str, int] = {}
        n_integer_ids = 0
        for row in self._rows:
            case = case_from_row(row)
            if case.id in self.offsets:
                raise InputError(
                    f"{row.where}: id {case.id!r} stands twice, on lines {lines[case.id]} and {row.line}; "
                    "ids must be unique"
                )
            self.offsets[case.id] = row.offset
            lines[case.id] = row.line
            n_integer_ids += isinstance(row.fields.get("id"), int)
            self.has_answers |= not row.fields.keys().isdisjoint(("answer", "contexts", "error"))
        if n_integer_ids:
            self.warnings.append(f"{self.path}: {n_integer_ids} ids are numbers; they are read as text")

    def __len__(self) -> int:
        return len(self.offsets)

    def __iter__(self) -> Iterator[Case]:
        """Yield the cases in file order."""
        return (self.get(case_id) for case_id in self.offsets)

    def get(self, case_id: str) -> Case:
        """The case of that id, read from the file. Raises KeyError for an unknown one."""
        return case_from_row(self._rows.read(self.offsets[case_id]))

    def copy_to(self, target: BinaryIO) -> None:
        """Write the snapshot: the file's bytes for JSON Lines, else one object a line, with the types of CSV cells."""
        if self._rows.format == "csv":
            for case in self:
                target.write(json_line(case_fields(case)))
        else:
            self._rows.copy_to(target)

    def close(self) -> None:
        """Release the file."""
        self._rows.close()


def case_from_row(row: Row) -> Case:
    """The case that a row states, in either dialect. Raises InputError for a missing id or question or a bad type."""
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in row.fields.items():
        canonical = ALIASES.get(name, name)
        if canonical not in READERS:
            extra[name] = value
        elif value is not None and not (value == "" and (row.is_text or canonical in MAY_BE_BLANK)):
            if canonical in fields and fields[canonical] != value:
                raise InputError(
                    f"{row.where}: {canonical} stands twice under two names with different values, once as {name!r}; "
                    "keep one of them"
                )
            fields[canonical] = value
    if "id" not in fields:
        raise InputError(
            f"{row.where}: id is missing; every case needs one (rag-judge import plain gives a log ids){_columns(row)}"
        )
    if "question" not in fields:
        others = ", ".join(alias for alias, name in ALIASES.items() if name == "question")
        raise InputError(f"{row.where}: question is missing (it may also be called {others}){_columns(row)}")
    read = {name: READERS[name](value, f"{row.where}: {name}", row.is_text) for name, value in fields.items()}
    if read.get("expect_refusal") is None and read.get("type") in REFUSAL_TYPES:
        read["expect_refusal"] = True
    return Case(**read, extra=extra)


def _columns(row: Row) -> str:
    """For the message about a CSV: which columns there are, since a blank or another separator hides one."""
    return f"; the columns are: {', '.join(map(repr, row.fields))}" if row.is_text else ""


def case_fields(case: Case) -> dict[str, Any]:
    """The case as a JSON object that reads back as the same case; what it does not state is left out."""
    stated = {f.name: getattr(case, f.name) for f in dataclasses.fields(case) if f.name != "extra"}
    return {
        name: value
        for name, value in stated.items()
        if value not in (None, (), {}) and (name, value) != ("red_line", False)
    } | dict(case.extra)


def question_hash(case: Case) -> str:
    """Hex sha256 of what is asked: the question and the turns before it. Two runs are compared by it."""
    asked = json.dumps([case.question, list(case.history)], ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(asked.encode()).hexdigest()


# --- one reader per type of value: (value, place, whether it is a CSV cell) -> checked value ----------------------


def read_id(value: Any, where: str, is_text: bool = False) -> str:
    """An id as text; a whole number becomes its digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return read_text(value, where, is_text)


def read_text(value: Any, where: str, is_text: bool = False) -> str:
    """Text that is not blank."""
    if not isinstance(value, str):
        raise InputError(f"{where}: found {kind_of(value)}, expected text")
    if not value.strip():
        raise InputError(f"{where}: found blank text, expected something in it")
    return value


def read_flag(value: Any, where: str, is_text: bool = False) -> bool:
    """True or false; in CSV also yes/no and 1/0."""
    if is_text:
        flag = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}.get(
            str(value).strip().lower()
        )
        if flag is not None:
            return flag
    if not isinstance(value, bool):
        raise InputError(f"{where}: found {kind_of(value)}, expected true or false")
    return value


def read_list(value: Any, where: str, is_text: bool = False) -> list[Any]:
    """A list; text alone counts as a list of one. A CSV cell holds a JSON array, or values separated by `|`."""
    if is_text and isinstance(value, str):
        if value.lstrip().startswith("["):
            try:
                value = json.loads(value)
            except json.JSONDecodeError as error:
                raise InputError(f"{where}: found a cell that starts like a JSON array but is none: {error}") from error
        else:
            return [part.strip() for part in value.split("|") if part.strip()]
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise InputError(f"{where}: found {kind_of(value)}, expected a list")
    return value


def read_texts(value: Any, where: str, is_text: bool = False) -> tuple[str, ...]:
    """A list of texts."""
    return tuple(read_text(part, f"{where}[{i}]") for i, part in enumerate(read_list(value, where, is_text)))


def read_ids(value: Any, where: str, is_text: bool = False) -> tuple[str, ...]:
    """A list of ids."""
    return tuple(read_id(part, f"{where}[{i}]") for i, part in enumerate(read_list(value, where, is_text)))


def _read_points(value: Any, where: str, is_text: bool) -> tuple[tuple[str, ...], ...]:
    points = []
    for i, part in enumerate(read_list(value, where, is_text)):
        alternatives = read_texts(part, f"{where}[{i}]")
        if not alternatives:
            raise InputError(f"{where}[{i}]: found an empty list, expected at least one wording of the key point")
        points.append(alternatives)
    return tuple(points)


def _read_grades(value: Any, where: str, is_text: bool) -> dict[str, float]:
    if isinstance(value, dict):
        for doc, grade in value.items():
            if isinstance(grade, bool) or not isinstance(grade, int | float) or not math.isfinite(grade):
                raise InputError(f"{where}[{doc!r}]: found {kind_of(grade)}, expected a grade (a number)")
        return {doc: float(grade) for doc, grade in value.items()}
    return dict.fromkeys(read_ids(value, where, is_text), 1.0)


def turn_text(turn: Any) -> str:
    """An earlier turn as people and judges read it: `user: …` of an object with role and content, else as it stands."""
    if isinstance(turn, str):
        return turn
    if isinstance(turn, dict) and set(turn) == {"role", "content"} and all(isinstance(v, str) for v in turn.values()):
        return f"{turn['role']}: {turn['content']}"
    return json.dumps(turn, ensure_ascii=False)


def _read_history(value: Any, where: str, is_text: bool) -> tuple[Any, ...]:
    return tuple(read_list(value, where, is_text))


READERS: Mapping[str, Callable[[Any, str, bool], Any]] = {
    "id": read_id,
    "question": read_text,
    "type": read_text,
    "relevant_docs": _read_grades,
    "acceptable": read_texts,
    "must_include": _read_points,
    "must_not_include": read_texts,
    "expect_refusal": read_flag,
    "refusal_phrases": read_texts,
    "tenant": read_id,
    "forbidden_docs": read_ids,
    "red_line": read_flag,
    "reference": read_text,
    "history": _read_history,
    "tags": read_texts,
}
