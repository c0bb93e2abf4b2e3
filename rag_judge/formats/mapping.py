"""`--map FIELD=PATH`: fields of cases and answers taken from where the user says; the path is JMESPath over a record.

A path of `contexts[].…` is applied context by context: JMESPath leaves out what is null, and the texts would slip
beside other ids.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_judge.cases import READERS
from rag_judge.errors import InputError
from rag_judge.formats.found import Found
from rag_judge.formats.shapes import answer_text, contexts_of, decoded, question_of
from rag_judge.rows import kind_of

ANSWER_FIELDS = ("answer", "contexts", "citations", "refused", "sent_contexts", "prompt", "latency_s", "error")
CONTEXT_FIELDS = ("id", "text", "score", "tenant")
_CASE_FIELDS = tuple(READERS)
_COLUMN = re.compile(r"[\w .:/()?-]+")  # the name of a column, which is no JMESPath where it holds a blank
_TEXTS = ("answer", "reference", "prompt")


@dataclass(frozen=True, slots=True)
class Mapped:
    """One `FIELD=PATH`: `part` is the field of a context, or the name under `meta`."""

    field: str
    part: str | None
    path: str


def parsed_mapping(pairs: Sequence[str]) -> list[Mapped]:
    """The mapping that these `FIELD=PATH` state. Raises InputError for an unknown field or a path that is none."""
    import jmespath
    from jmespath.exceptions import JMESPathError

    mapping = []
    for pair in pairs:
        field, equals, path = (piece.strip() for piece in pair.partition("="))
        if not equals or not field or not path:
            raise InputError(f"--map {pair!r}: expected FIELD=PATH, as question=vars.q or contexts[].text=docs[].body")
        mapped = Mapped(*_named(field, pair), path)
        for expression in _split(path) if mapped.field == "contexts" else (path,):
            try:
                jmespath.compile(expression or "@")
            except JMESPathError as error:
                if not _COLUMN.fullmatch(path):
                    raise InputError(f"--map {pair!r}: {path!r} is not valid JMESPath: {error}") from error
        mapping.append(mapped)
    _once(mapping)
    return mapping


def _named(field: str, pair: str) -> tuple[str, str | None]:
    if field in (*_CASE_FIELDS, *ANSWER_FIELDS):
        return field, None
    head, dot, part = field.partition(".")
    if dot and part and head == "meta":
        return "meta", part
    if dot and head == "contexts[]" and part in CONTEXT_FIELDS:
        return "contexts", part
    known = (*_CASE_FIELDS, *ANSWER_FIELDS, *(f"contexts[].{name}" for name in CONTEXT_FIELDS), "meta.NAME")
    raise InputError(f"--map {pair!r}: no field {field!r}; there are: {', '.join(known)}")


def _once(mapping: Sequence[Mapped]) -> None:
    names = [(mapped.field, mapped.part) for mapped in mapping]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"--map: the field {'.'.join(filter(None, name))!r} is mapped twice")
    if ("contexts", None) in names and any(field == "contexts" and part for field, part in names):
        raise InputError("--map: give either contexts or contexts[].…, not both")


def with_mapping(found: Found, mapping: Sequence[Mapped]) -> Found:
    """The same with the mapped fields in place; a path that finds nothing leaves what the format itself holds.

    Raises InputError for values that do not fit.
    """
    if not mapping:
        return found
    found = replace(found, record=_decoded_fields(found.record))
    case, answer = dict(found.case), dict(found.answer or {})
    is_stated = found.id_is_stated
    for mapped in mapping:
        if mapped.field == "contexts":
            continue
        value = _looked_up(mapped.path, found)
        if value is None:
            continue
        is_stated |= mapped.field == "id"
        if mapped.field == "meta":
            answer["meta"] = {**answer.get("meta", {}), mapped.part: value}
        else:
            row = case if mapped.field in _CASE_FIELDS else answer
            row[mapped.field] = _as_text(mapped.field, value)
    contexts = _contexts([mapped for mapped in mapping if mapped.field == "contexts"], found)
    if contexts is not None:
        answer["contexts"] = contexts
    return replace(found, case=case, answer=answer or found.answer, id_is_stated=is_stated)


def _decoded_fields(record: Any) -> Any:
    """The record with what is JSON in a text, as in a cell of a table, as what it spells."""
    return {name: decoded(value) for name, value in record.items()} if isinstance(record, Mapping) else record


def _as_text(field: str, value: Any) -> Any:
    """The text in a message, or in an object with a known key; whatever holds none stays and is found to be wrong."""
    text = question_of(value)[0] if field == "question" else answer_text(value) if field in _TEXTS else None
    return value if text is None else text


def _contexts(mapping: Sequence[Mapped], found: Found) -> list[dict[str, Any]] | None:
    columns: dict[str, list[Any]] = {}
    for mapped in mapping:
        where = f"{found.where}: --map {mapped.path!r}"
        if mapped.part is None:
            value = _looked_up(mapped.path, found)
            return None if value is None else contexts_of(value, where)
        column = _column(mapped.path, found)
        if column is not None:
            columns[mapped.part] = column
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{n} of contexts[].{name}" for name, n in lengths.items())
        raise InputError(f"{found.where}: --map: found {told}; expected as many of each")
    if not columns:
        return None
    n = next(iter(lengths.values()))
    return [{name: column[i] for name, column in columns.items() if column[i] is not None} for i in range(n)]


def _column(path: str, found: Found) -> list[Any] | None:
    """A value a context, null where one lacks it; None where the record has no such list."""
    head, rest = _split(path)
    values = _looked_up(head, found)
    if values is None:
        return None
    if not isinstance(values, list):
        values = [values]
    return [_searched(rest, value, found) if rest else value for value in values]


def _split(path: str) -> tuple[str, str]:
    """(path of the list, path within one of its elements); the second is empty where the path has no `[]`."""
    path = path.replace("[*]", "[]")
    head, mark, rest = path.rpartition("[]")
    if not mark or rest.count('"') % 2 or rest.count("`") % 2:
        return path, ""
    return (f"{head}[]" if "[]" in head else head or "@"), rest.removeprefix(".")


def finds_something(mapped: Mapped, found: Found) -> bool:
    """True when the path leads to anything in this record."""
    head = _split(mapped.path)[0] if mapped.field == "contexts" else mapped.path
    return _looked_up(head, replace(found, record=_decoded_fields(found.record))) is not None


def _looked_up(path: str, found: Found) -> Any:
    if isinstance(found.record, Mapping) and path in found.record:
        return found.record[path]  # a column whose name is no JMESPath, as `my question`
    return _searched(path, found.record, found)


def _searched(path: str, value: Any, found: Found) -> Any:
    import jmespath
    from jmespath.exceptions import JMESPathError, ParseError

    try:
        return jmespath.search(path, value)
    except ParseError:  # a column's name, of a column that this record lacks
        return None
    except JMESPathError as error:
        raise InputError(f"{found.where}: --map {path!r}: {error}; found {kind_of(value)}") from error
