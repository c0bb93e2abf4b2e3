"""Spans out of OpenTelemetry's exports: OTLP as JSON, the SDK's own JSON, and Phoenix's rows. Meaning comes later."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_judge.errors import InputError
from rag_judge.formats.source import Record, records_of, structured
from rag_judge.formats.spans import Span, seconds, tree_of
from rag_judge.rows import kind_of

_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{16}|[0-9a-fA-F]{32})")


def spans_of(paths: Sequence[Path]) -> Iterator[Span]:
    """Yield every span of the files. Raises InputError for a record that is no span and holds none."""
    for path in paths:
        for record in records_of(path):
            resources = record.fields.get("resourceSpans", record.fields.get("resource_spans"))
            if resources is not None:
                yield from _of_otlp(resources, record.where)
            else:
                yield _of_row(record)


def _of_otlp(resources: Any, where: str) -> Iterator[Span]:
    for resource in _objects(resources, f"{where}: resourceSpans"):
        scopes = resource.get("scopeSpans", resource.get("scope_spans", resource.get("instrumentationLibrarySpans")))
        for scope in _objects(scopes or [], f"{where}: scopeSpans"):
            for span in _objects(scope.get("spans") or [], f"{where}: spans"):
                fields = {_camel(name): value for name, value in span.items()}
                yield Span(
                    trace=_id(fields.get("traceId"), f"{where}: traceId"),
                    id=_id(fields.get("spanId"), f"{where}: spanId"),
                    parent=_id(fields["parentSpanId"], where) if fields.get("parentSpanId") else None,
                    name=str(fields.get("name", "")),
                    attributes=tree_of(_attributes(fields.get("attributes") or [], where)),
                    where=where,
                    start=seconds(fields.get("startTimeUnixNano")),
                    end=seconds(fields.get("endTimeUnixNano")),
                    error=_error(fields.get("status"), fields.get("events")),
                )


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda mark: mark[1].upper(), name)


def _objects(value: Any, where: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(part, Mapping) for part in value):
        raise InputError(f"{where}: found {kind_of(value)}, expected a list of objects")
    return value


def _id(value: Any, where: str) -> str:
    """An id in hexadecimal; protobuf's own JSON writes it in base64."""
    if not isinstance(value, str) or not value:
        raise InputError(f"{where}: found {kind_of(value)}, expected an id")
    if known := _HEX.fullmatch(value):
        return known[1].lower()
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return value
    return raw.hex() if len(raw) in (8, 16) else value


def _attributes(pairs: Any, where: str) -> dict[str, Any]:
    if isinstance(pairs, Mapping):
        return dict(pairs)
    return {str(pair.get("key")): _any_value(pair.get("value")) for pair in _objects(pairs, f"{where}: attributes")}


def _any_value(value: Any) -> Any:
    """A value of OTLP, which says its type as the key of an object."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    kind, held = next(iter(value.items()))
    match _camel(kind):
        case "stringValue" | "boolValue" | "doubleValue" | "bytesValue":
            return held
        case "intValue":
            return int(held) if isinstance(held, str) and re.fullmatch(r"-?\d{1,20}", held) else held
        case "arrayValue":
            return [_any_value(part) for part in (held or {}).get("values", [])]
        case "kvlistValue":
            return {str(pair.get("key")): _any_value(pair.get("value")) for pair in (held or {}).get("values", [])}
    return value


def _of_row(record: Record) -> Span:
    """A span of the SDK's JSON or of Phoenix, whose tables have a column for each attribute."""
    fields, where = record.fields, record.where
    held = fields.get("context")
    context: Mapping[str, Any] = held if isinstance(held, Mapping) else {}
    trace, span = (fields.get(f"context.{key}", context.get(key)) for key in ("trace_id", "span_id"))
    if trace is None or span is None:
        raise InputError(
            f"{where}: found no span: expected resourceSpans, or context with trace_id and span_id, "
            f"among {', '.join(map(repr, fields))}"
        )
    columns = {name.removeprefix("attributes."): value for name, value in fields.items() if name[:11] == "attributes."}
    if record.is_text:
        columns = {name: _cell(name, value, where) for name, value in columns.items()}
    attributes = fields.get("attributes")
    if isinstance(attributes, Mapping):
        columns |= attributes
    kind = fields.get("span_kind")
    if isinstance(kind, str) and "openinference.span.kind" not in columns and kind.isupper():
        columns["openinference.span.kind"] = kind
    parent = fields.get("parent_id")
    status = fields.get("status") or {"code": fields.get("status_code"), "message": fields.get("status_message")}
    return Span(
        trace=_id(trace, f"{where}: trace_id"),
        id=_id(span, f"{where}: span_id"),
        parent=_id(parent, f"{where}: parent_id") if parent else None,
        name=str(fields.get("name", "")),
        attributes=tree_of(columns),
        where=where,
        start=seconds(fields.get("start_time")),
        end=seconds(fields.get("end_time")),
        error=_error(status, structured(fields.get("events"), f"{where}: events")),
    )


def _cell(name: str, value: Any, where: str) -> Any:
    """Documents in a table of text are a list in Python's spelling; other cells stay text, whatever they begin with."""
    return structured(value, f"{where}: {name}") if name.endswith(("documents", "metadata")) else value


def _error(status: Any, events: Any) -> str | None:
    """What a failed span says of its failure: the status's message, else the recorded exception's."""
    if not isinstance(status, Mapping):
        return None
    code = status.get("code", status.get("status_code"))
    if code not in (2, "2", "ERROR", "STATUS_CODE_ERROR"):
        return None
    if message := status.get("message", status.get("description")):
        return str(message)
    for event in events if isinstance(events, list) else []:
        told = _attributes(event.get("attributes") or {}, "events") if isinstance(event, Mapping) else {}
        if told.get("exception.message"):
            return str(told["exception.message"])
    return "the span ended with an error"
