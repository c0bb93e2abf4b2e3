"""CSV, JSON Lines, JSON and Parquet of nobody's format → cases and answers, by the names that fields usually have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_judge.cases import ALIASES, READERS, read_flag, read_list
from rag_judge.errors import InputError
from rag_judge.formats.found import Found, LeftOut, without_none
from rag_judge.formats.mapping import ANSWER_FIELDS
from rag_judge.formats.shapes import answer_text, contexts_of, decoded, question_of
from rag_judge.formats.source import Record, records_of, structured

QUESTION_NAMES = ("question", "q", "query", "user_input", "input", "prompt")
ANSWER_NAMES = ("answer", "response", "output", "actual_output", "completion")
CONTEXTS_NAMES = ("contexts", "context", "retrieved_contexts", "documents", "chunks", "source_documents")
REFERENCE_NAMES = ("reference", "ground_truth", "expected_output", "expected_answer", "reference_answer")
_CASE_NAMES = frozenset(READERS) | frozenset(ALIASES)


def read_plain(paths: Sequence[Path]) -> Iterator[Found | LeftOut]:
    """Yield a case, and an answer where the record holds one. Fields of ours keep their meaning."""
    for record in (record for path in paths for record in records_of(path)):
        yield _found(record)


def _found(record: Record) -> Found:
    fields, where = record.fields, record.where
    for name in filter(_may_be_list, list(fields)):
        value = fields[name]
        fields = {**fields, name: structured(value, f"{where}: {name}") if record.is_text else decoded(value)}
    fields = without_none(fields)
    names = {
        "question": _first(fields, QUESTION_NAMES),
        "answer": _first(fields, ANSWER_NAMES),
        "contexts": _first(fields, CONTEXTS_NAMES),
        "reference": _first(fields, REFERENCE_NAMES),
    }
    _no_second_question(fields, names["question"], where)
    question, history = question_of(fields.get(names["question"] or ""))
    used = {name for name in names.values() if name}
    case = {ALIASES.get(k, k): v for k, v in fields.items() if k in _CASE_NAMES and k not in used}
    answer = {k: v for k, v in fields.items() if k in (*ANSWER_FIELDS, "meta") and k not in used}
    if record.is_text:
        case = {k: v if isinstance(v, list | dict) else READERS[k](v, f"{where}: {k}", True) for k, v in case.items()}
        answer = {k: _typed(k, v, f"{where}: {k}") for k, v in answer.items()}
    if history:
        case["history"] = history
    case |= without_none({"question": question, "reference": fields.get(names["reference"] or "")})
    output = fields.get(names["answer"] or "")
    answer |= without_none(
        {
            "answer": output if isinstance(output, str) else answer_text(output),
            "contexts": contexts_of(fields.get(names["contexts"] or ""), f"{where}: {names['contexts']}"),
        }
    )
    rest = {k: v for k, v in fields.items() if k not in used and k not in _CASE_NAMES and k not in answer}
    return Found(
        case | ({"imported": rest} if rest else {}), answer or None, where, record.fields, id_is_stated="id" in case
    )


def _typed(name: str, cell: Any, where: str) -> Any:
    """A cell of text as the value that it spells."""
    if name == "refused":
        return read_flag(cell, where, True)
    if name in ("citations", "sent_contexts") and isinstance(cell, str):
        return read_list(cell, where, True)
    if name != "latency_s":
        return cell
    try:
        return float(cell)
    except ValueError as error:
        raise InputError(f"{where}: found {cell!r} (text), expected a number") from error


def _may_be_list(name: str) -> bool:
    return (
        name in CONTEXTS_NAMES
        or name in ("citations", "sent_contexts", "meta", "history", "must_include")
        or (ALIASES.get(name, name) in ("relevant_docs", "acceptable", "must_not_include", "forbidden_docs", "tags"))
    )


def _first(fields: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in fields), None)


def _no_second_question(fields: Mapping[str, Any], name: str | None, where: str) -> None:
    """A prompt beside a question is the prompt; any other second question is not ours to choose from."""
    others = [n for n in QUESTION_NAMES[:-1] if n in fields and n != name and fields[n] != fields.get(name or "")]
    if name and others:
        raise InputError(f"{where}: found {name!r} and {others[0]!r}; say which is the question with --map question=…")
