"""deepeval's goldens, test cases and test runs → cases and answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_judge.errors import InputError
from rag_judge.formats.found import Found, LeftOut, Remark, without_none
from rag_judge.formats.shapes import contexts_of, conversation
from rag_judge.formats.source import Record, records_of, structured
from rag_judge.rows import kind_of

_DELIMITER = "|"
_MARKED = re.compile(r"deepeval_source=(.*?),deepeval_context=(.*)", re.DOTALL)
ID_KEY = "rag_judge_id"  # where an export of ours states the id, for which deepeval's files have no place
_USED = ("input", "actual_output", "expected_output", "retrieval_context", "tags", "id", "turns", "completion_time")


def read_deepeval(paths: Sequence[Path]) -> Iterator[Found | LeftOut]:
    """Yield a case, and an answer where the record holds one; a scenario without turns is left out."""
    for record in (record for path in paths for record in records_of(path)):
        for one in _test_cases(record):
            fields = {_snake(name): value for name, value in one.fields.items() if value is not None}
            if "scenario" in fields or "turns" in fields:
                yield _of_turns(fields, one)
            else:
                yield _of_golden(fields, one)


def _test_cases(record: Record) -> list[Record]:
    """The test cases of a test run; any other record is one itself."""
    inner = record.fields.get("testRunData")
    fields = inner if isinstance(inner, dict) else record.fields
    lists = [(name, fields[name]) for name in _RUN if isinstance(fields.get(name), list)]
    found = []
    for name, cases in lists:
        for i, case in enumerate(cases):
            where = f"{record.where}: {name}[{i}]"
            if not isinstance(case, dict):
                raise InputError(f"{where}: found {kind_of(case)}, expected a test case")
            found.append(Record(case, where))
    return found if lists else [record]


_RUN = ("testCases", "conversationalTestCases", "test_cases", "conversational_test_cases")


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", lambda mark: f"_{mark[1].lower()}", name)


def _of_golden(fields: Mapping[str, Any], record: Record) -> Found:
    contexts, remarks = _contexts(fields.get("retrieval_context"), f"{record.where}: retrieval_context")
    answer = {
        "answer": fields.get("actual_output"),
        "contexts": contexts,
        "latency_s": None if record.is_text else fields.get("completion_time"),
    }
    about = structured(fields.get("additional_metadata"), f"{record.where}: additional_metadata")
    case_id = about.get(ID_KEY) if isinstance(about, Mapping) else None
    case = {
        "id": fields.get("id", case_id),
        "question": fields.get("input"),
        "reference": fields.get("expected_output"),
    }
    return _found(case, answer, fields, record, remarks)


def _found(
    case: Mapping[str, Any],
    answer: Mapping[str, Any],
    fields: Mapping[str, Any],
    record: Record,
    remarks: Sequence[Remark],
) -> Found:
    rest = {name: structured(part, f"{record.where}: {name}") for name, part in fields.items() if name not in _USED}
    about = rest.pop("additional_metadata", None)
    if isinstance(about, Mapping):
        about = {name: part for name, part in about.items() if name != ID_KEY}
    rest |= {"additional_metadata": about} if about else {}
    full = without_none({**case, "tags": fields.get("tags") or None, "imported": rest or None})
    given = without_none(answer)
    return Found(
        full,
        given or None,
        record.where,
        record.fields,
        remarks=tuple(remarks),
        id_is_stated=case.get("id") is not None,
    )


def _of_turns(fields: Mapping[str, Any], record: Record) -> Found | LeftOut:
    """The last question of a conversation, the turns before it, and what was answered to it."""
    turns = structured(fields.get("turns"), f"{record.where}: turns") or []
    if not isinstance(turns, list) or not all(isinstance(turn, Mapping) for turn in turns):
        raise InputError(f"{record.where}: turns: found {kind_of(turns)}, expected a list of turns")
    question, history, reply = conversation(turns)
    if question is None:
        return LeftOut("no_turns", record.where)
    last = turns[-1] if turns[-1].get("role") == "assistant" else {}
    value = last.get("retrieval_context", last.get("retrievalContext"))
    contexts, remarks = _contexts(value, f"{record.where}: turns: retrieval_context")
    case = {"id": fields.get("id"), "question": question, "history": history or None}
    return _found(case, {"answer": reply, "contexts": contexts}, fields, record, remarks)


def _contexts(value: Any, where: str) -> tuple[list[dict[str, Any]] | None, list[Remark]]:
    """Contexts of a list, or of the text into which deepeval joins them in JSON Lines and CSV."""
    remarks: list[Remark] = []
    if isinstance(value, str) and not value.lstrip().startswith("["):
        remarks = ["joined_contexts"] if _DELIMITER in value else []
        value = [part for part in value.split(_DELIMITER) if part]
    value = structured(value, where)
    if isinstance(value, list):
        value = [_unmarked(part) for part in value]
    return contexts_of(value, where), remarks


def _unmarked(part: Any) -> Any:
    """A context that deepeval wrote together with its source, taken apart; the source is its id."""
    marked = _MARKED.fullmatch(part) if isinstance(part, str) else None
    if marked:
        return {"id": marked[1], "text": marked[2]}
    if isinstance(part, Mapping) and "context" in part:
        return {"id": part.get("source"), "text": part["context"]}
    return part
