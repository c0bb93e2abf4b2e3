"""Which tool a file is from, told from its first record; nothing is guessed where two formats fit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_judge.errors import InputError
from rag_judge.formats.plain import QUESTION_NAMES
from rag_judge.formats.source import records_of

_JSON_STARTS = (b"{", b"[")
_DEEPEVAL = (
    "actual_output",
    "actualOutput",
    "expected_output",
    "expectedOutput",
    "retrieval_context",
    "retrievalContext",
)


def detected(paths: Sequence[Path]) -> str:
    """The name of the format. Raises InputError where none fits, or more than one."""
    if any(path.is_dir() for path in paths) or any(_is_columns(path) for path in paths):
        return "trec"
    fields = next(records_of(paths[0])).fields
    fitting = [name for name, fits in _SIGNS.items() if fits(fields)]
    if len(fitting) == 1:
        return fitting[0]
    shown = ", ".join(map(repr, list(fields)[:20]))
    if fitting:
        raise InputError(f"{paths[0]}: found fields of {' and '.join(fitting)} ({shown}); name the format")
    if any(name in fields for name in QUESTION_NAMES):
        return "plain"
    raise InputError(
        f"{paths[0]}: the format was not recognised; found the fields {shown}; name the format, "
        "or `plain` with --map question=…"
    )


def _is_columns(path: Path) -> bool:
    """True for text in columns: no JSON, no CSV, no Parquet."""
    try:
        with path.open("rb") as file:
            head = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    is_other = path.suffix.lower() in (".csv", ".json", ".jsonl", ".parquet") or head.startswith(
        (b"PAR1", *_JSON_STARTS)
    )
    return bool(head) and not is_other


def _promptfoo(fields: Mapping[str, Any]) -> bool:
    return ("results" in fields and "evalId" in fields) or {"promptIdx", "testIdx"} <= fields.keys()


def _spans(fields: Mapping[str, Any]) -> bool:
    context = fields.get("context")
    return (
        "resourceSpans" in fields
        or "resource_spans" in fields
        or "context.span_id" in fields
        or (isinstance(context, Mapping) and "span_id" in context)
    )


def _openinference(fields: Mapping[str, Any]) -> bool:
    if not _spans(fields):
        return False
    kind = fields.get("span_kind")
    return (
        (isinstance(kind, str) and kind.isupper())
        or '"openinference.' in json.dumps(fields, default=str)
        or any(name.startswith("attributes.openinference.") for name in fields)
    )


def _otel(fields: Mapping[str, Any]) -> bool:
    return _spans(fields) and not _openinference(fields)


def _langsmith(fields: Mapping[str, Any]) -> bool:
    return {"run_type", "id"} <= fields.keys() or {"inputs", "dataset_id"} <= fields.keys()


def _langfuse(fields: Mapping[str, Any]) -> bool:
    return (
        {"observations", "id"} <= fields.keys()
        or {"traceId", "type"} <= fields.keys()
        or {"trace_id", "type", "parent_observation_id"} <= fields.keys()
        or {"datasetId", "input"} <= fields.keys()
    )


def _ragas(fields: Mapping[str, Any]) -> bool:
    is_old = "contexts" in fields and ("ground_truth" in fields or "ground_truths" in fields)
    return "user_input" in fields or "retrieved_contexts" in fields or is_old


def _deepeval(fields: Mapping[str, Any]) -> bool:
    is_golden = "input" in fields and "datasetId" not in fields and any(name in fields for name in _DEEPEVAL)
    is_talk = "scenario" in fields and any(n in fields for n in ("turns", "expected_outcome", "expectedOutcome"))
    return is_golden or is_talk or isinstance(fields.get("testCases"), list) or "testRunData" in fields


def _beir(fields: Mapping[str, Any]) -> bool:
    return {"_id", "text"} <= fields.keys()


_SIGNS = {
    "promptfoo": _promptfoo,
    "openinference": _openinference,
    "otel": _otel,
    "langsmith": _langsmith,
    "langfuse": _langfuse,
    "ragas": _ragas,
    "deepeval": _deepeval,
    "trec": _beir,
}
