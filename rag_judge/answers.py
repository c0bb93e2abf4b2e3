"""The answers of the system under test, read from a file and kept by offset; nothing is dropped without a word.

Collecting answers from a live endpoint is in `endpoint`; what it writes is read back through this module.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from rag_judge.cases import read_flag, read_id, read_ids, read_list
from rag_judge.errors import InputError
from rag_judge.records import Answer, Context
from rag_judge.rows import Row, RowFile, json_line, kind_of

# A field of `meta` with more values than this (a request id, a time) is no factor of the system under test.
MAX_FACTOR_VALUES = 20


class AnswerSet:
    """The answers of one file. Only ids and offsets are held; an answer is read when it is asked for."""

    def __init__(self, path: Path, case_ids: Container[str]) -> None:
        """Read and check every row of `path` once. Raises InputError for a wrong row or a duplicate id."""
        self._rows = RowFile(path)
        self.path = path
        self.sha256 = self._rows.sha256
        self.offsets: dict[str, int] = {}  # of each case's first answer
        self._repeats: dict[str, dict[int, int]] = {}  # offsets by answer_no, of cases with several answers
        self.most = 1  # answers to one case
        self.warnings: list[str] = []
        self.has_texts = False
        self.n_without_contexts = 0  # answers whose contexts, or a text of theirs, are missing: nothing to judge by
        self.factors: dict[str, set[str]] = {}  # what `meta` says of the system under test
        try:
            self._check_rows(case_ids)
        except InputError:
            self.close()
            raise

    def _check_rows(self, case_ids: Container[str]) -> None:
        lines: dict[str | tuple[str, int], int] = {}
        n_unknown = 0
        for row in self._rows:
            answer = answer_from_row(row)
            key = (answer.id, answer.answer_no) if answer.answer_no else answer.id
            if key in lines:
                raise InputError(
                    f"{row.where}: id {answer.id!r} stands twice, on lines {lines[key]} and {row.line}; "
                    "one answer a case is expected, or several that answer_no tells apart"
                )
            lines[key] = row.line
            if answer.id not in case_ids:
                n_unknown += 1
                continue
            if answer.answer_no:
                self._repeats.setdefault(answer.id, {})[answer.answer_no] = row.offset
            else:
                self.offsets[answer.id] = row.offset
            self.has_texts |= answer.answer is not None or answer.error is not None
            self.n_without_contexts += answer.error is None and not has_context_texts(answer)
            for name, value in answer.meta.items():
                values = self.factors.setdefault(name, set())
                if len(values) <= MAX_FACTOR_VALUES:
                    values.add(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        self._gather_repeats()
        if not self.offsets:
            raise InputError(
                f"{self.path}: none of its {n_unknown} answers belongs to a case of the eval set; check the ids"
            )
        if n_unknown:
            self.warnings.append(f"{self.path}: {n_unknown} answers belong to no case of the eval set and are not used")

    def _gather_repeats(self) -> None:
        for case_id, places in self._repeats.items():
            if case_id in self.offsets:
                places[0] = self.offsets[case_id]
            self.offsets[case_id] = places[min(places)]
            self.most = max(self.most, len(places))
        n_missing = self.most * len(self.offsets) - self.n_answers
        if n_missing:
            self.warnings.append(
                f"{self.path}: {self.most} answers a case, but {n_missing} of them are missing; they count as no answer"
            )

    @property
    def n_answers(self) -> int:
        """How many answers the cases have together."""
        return len(self.offsets) + sum(len(places) - 1 for places in self._repeats.values())

    def numbers(self, case_id: str) -> list[int]:
        """The numbers of a case's answers, as many as any case has: those that are missing are counted, too."""
        known = sorted(self._repeats.get(case_id, (0,)))
        unused = (number for number in range(2 * self.most) if number not in known)
        return known + [next(unused) for _ in range(self.most - len(known))]

    def of_case(self, case_id: str) -> Iterator[Answer]:
        """Yield every answer to a case, `most` of them."""
        return (self.get(case_id, number) for number in self.numbers(case_id))

    def get(self, case_id: str, answer_no: int | None = None) -> Answer:
        """The answer to a case: the first, or that of a number. One without a row is an answer whose error says so."""
        places = self._repeats.get(case_id)
        if answer_no is None or (places is None and answer_no == 0):
            offset = self.offsets.get(case_id)
        else:
            offset = (places or {}).get(answer_no)
        if offset is None:
            return Answer(case_id, error="no answer to this case in the answers file", answer_no=answer_no or 0)
        return answer_from_row(self._rows.read(offset))

    def copy_to(self, target: BinaryIO) -> None:
        """Write the answers as judged: the file's bytes for JSON Lines, else one object a line."""
        if self._rows.format == "csv":
            for row in self._rows:
                target.write(json_line(answer_fields(answer_from_row(row))))
        else:
            self._rows.copy_to(target)

    def close(self) -> None:
        """Release the file."""
        self._rows.close()


def answer_from_row(row: Row) -> Answer:
    """The answer that a row states. Raises InputError for a missing id or a bad type."""
    fields = row.fields
    if fields.get("id") in (None, ""):
        raise InputError(f"{row.where}: id is missing; an answer needs the id of its case")
    # In CSV an empty cell is an empty answer (a system may answer with nothing), and elsewhere a missing value.
    given = {k: v for k, v in fields.items() if v is not None and not (row.is_text and v == "" and k != "answer")}
    return Answer(
        id=read_id(given["id"], f"{row.where}: id"),
        answer=_text(given.get("answer"), f"{row.where}: answer"),
        contexts=_contexts(given.get("contexts"), f"{row.where}: contexts", row.is_text),
        citations=_optional_ids(given, "citations", row),
        refused=read_flag(given["refused"], f"{row.where}: refused", row.is_text) if "refused" in given else None,
        sent_contexts=_optional_ids(given, "sent_contexts", row),
        prompt=_text(given.get("prompt"), f"{row.where}: prompt"),
        meta=_meta(given.get("meta"), f"{row.where}: meta", row.is_text),
        latency_s=_number(given.get("latency_s"), f"{row.where}: latency_s", row.is_text),
        error=error_of(given.get("error")),
        answer_no=_answer_no(given.get("answer_no"), f"{row.where}: answer_no", row.is_text),
    )


def has_context_texts(answer: Answer) -> bool:
    """True when the contexts are recorded with their texts (an empty list is recorded: nothing was retrieved)."""
    return answer.contexts is not None and all(context.text is not None for context in answer.contexts)


def answer_fields(answer: Answer) -> dict[str, Any]:
    """The answer as a JSON object that reads back as the same answer; what it does not state is left out."""
    stated = {name: value for name, value in dataclasses.asdict(answer).items() if value not in (None, {})}
    if not answer.answer_no:
        stated.pop("answer_no")
    return stated


def _text(value: Any, where: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InputError(f"{where}: found {kind_of(value)}, expected text or null")
    return value


def error_of(value: Any) -> str | None:
    """What went wrong, as text; servers put objects here, too. Nothing, false, 0 and what is empty mean no error."""
    if not value:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _number(value: Any, where: str, is_text: bool = False) -> float | None:
    if value is None:
        return None
    if is_text:
        try:
            value = float(value)
        except ValueError as error:
            raise InputError(f"{where}: found {kind_of(value)}, expected a number") from error
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{where}: found {kind_of(value)}, expected a finite number")
    return float(value)


def _answer_no(value: Any, where: str, is_text: bool) -> int:
    """Which of several answers to one question this is; 0 where nothing says."""
    if value is None:
        return 0
    if is_text and str(value).isascii() and str(value).isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**9:
        raise InputError(f"{where}: found {kind_of(value)}, expected a whole number from 0")
    return value


def _meta(value: Any, where: str, is_text: bool) -> Mapping[str, Any]:
    if value is None:
        return {}
    if is_text:
        try:
            value = json.loads(value)
        except json.JSONDecodeError as error:
            raise InputError(f"{where}: found a cell that is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{where}: found {kind_of(value)}, expected an object")
    return value


def _optional_ids(given: Mapping[str, Any], name: str, row: Row) -> tuple[str, ...] | None:
    """Ids, or None where the field is missing. An entry may be an object with an id."""
    if name not in given:
        return None
    where = f"{row.where}: {name}"
    parts = read_list(given[name], where, row.is_text)
    return read_ids([part.get("id") if isinstance(part, dict) else part for part in parts], where)


def _contexts(value: Any, where: str, is_text: bool) -> tuple[Context, ...] | None:
    if value is None:
        return None
    if is_text and not str(value).lstrip().startswith("["):
        return (Context(None, value),)  # one text cell: one context without an id
    return tuple(_context(part, f"{where}[{i}]") for i, part in enumerate(read_list(value, where, is_text)))


def _context(value: Any, where: str) -> Context:
    if isinstance(value, str):
        return Context(None, value)
    if not isinstance(value, dict):
        raise InputError(f"{where}: found {kind_of(value)}, expected an object with id, text and score, or text")
    doc, tenant = value.get("id"), value.get("tenant")
    return Context(
        id=None if doc is None else read_id(doc, f"{where}.id"),
        text=_text(value.get("text"), f"{where}.text"),
        score=_number(value.get("score"), f"{where}.score"),
        tenant=None if tenant in (None, "") else read_id(tenant, f"{where}.tenant"),
    )
