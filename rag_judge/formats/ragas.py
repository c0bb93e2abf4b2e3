"""ragas' evaluation datasets, of today and of 0.1, single and multi turn → cases and answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_judge.errors import InputError
from rag_judge.formats.found import Found, LeftOut, without_none
from rag_judge.formats.shapes import conversation, zipped
from rag_judge.formats.source import Record, records_of, structured
from rag_judge.rows import kind_of

_OLD_NAMES = {"question": "user_input", "contexts": "retrieved_contexts", "answer": "response"}
_OLD_REFERENCES = ("ground_truth", "ground_truths")
_LISTS = ("user_input", "retrieved_contexts", "retrieved_context_ids", "reference_contexts", "reference_context_ids")
_KNOWN = ("id", "user_input", "response", "reference", "retrieved_contexts", "retrieved_context_ids")


def read_ragas(paths: Sequence[Path]) -> Iterator[Found | LeftOut]:
    """Yield a case and an answer a sample. Raises InputError for a sample without user_input or of another shape."""
    for record in (record for path in paths for record in records_of(path)):
        yield _found(record)


def _found(record: Record) -> Found:
    where = record.where
    fields = {_OLD_NAMES.get(name, name): value for name, value in record.fields.items() if value is not None}
    for name in _LISTS:
        # The text of a question is left alone: only a conversation is a list there.
        if record.is_text and (name != "user_input" or str(fields.get(name, "")).startswith("[{")):
            fields[name] = structured(fields.get(name), f"{where}: {name}")
    question, history, reply = _asked(fields.get("user_input"), where)
    contexts = zipped(
        fields.get("retrieved_contexts"), fields.get("retrieved_context_ids"), f"{where}: retrieved_contexts"
    )
    rest = {name: part for name, part in fields.items() if name not in (*_KNOWN, *_OLD_REFERENCES) and part is not None}
    ids = rest.pop("reference_context_ids", None)
    case = {
        "id": fields.get("id"),
        "question": question,
        "history": history or None,
        "relevant_docs": ids,
        "reference": _reference(fields, where),
        "imported": rest or None,
    }
    answer = without_none({"answer": fields.get("response", reply), "contexts": contexts})
    return Found(without_none(case), answer or None, where, record.fields, id_is_stated="id" in fields)


def _asked(user_input: Any, where: str) -> tuple[str | None, list[dict[str, str]], str | None]:
    if user_input is None or isinstance(user_input, str):
        return user_input, [], None
    if not isinstance(user_input, list) or not all(isinstance(turn, Mapping) for turn in user_input):
        raise InputError(f"{where}: user_input: found {kind_of(user_input)}, expected text or a list of messages")
    return conversation(user_input)


def _reference(fields: Mapping[str, Any], where: str) -> Any:
    """The reference; of version 0.1, which allowed several, the only one."""
    value = next((fields[name] for name in ("reference", *_OLD_REFERENCES) if name in fields), None)
    if fields.get("ground_truths") is not value:
        return value
    texts = structured(value, f"{where}: ground_truths")
    if isinstance(texts, list) and len(texts) > 1:
        raise InputError(f"{where}: ground_truths: found {len(texts)} references, expected one; keep one of them")
    return (texts[0] if texts else None) if isinstance(texts, list) else texts
