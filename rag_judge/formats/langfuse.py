"""Langfuse's traces, observations and dataset items → cases and answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_judge.errors import InputError
from rag_judge.formats.found import Found, LeftOut, without_none
from rag_judge.formats.shapes import answer_text, decoded, question_of
from rag_judge.formats.source import records_of
from rag_judge.formats.spans import Draft, Span, Trace, found_in, parent_id, retrieved, seconds, traces_of
from rag_judge.rows import kind_of

_TRACE = "trace of Langfuse"  # what stands as the type of a trace itself


def read_langfuse(paths: Sequence[Path]) -> Iterator[Found | LeftOut]:
    """Yield a case and an answer a trace, and a case an item of a dataset.

    Observations may stand inside their trace, or in rows of their own, with the traces in another file or without.
    Contexts are the output of observations of type RETRIEVER.
    """
    spans: list[Span] = []
    for record in (record for path in paths for record in records_of(path)):
        fields = {_camel(name): decoded(value) for name, value in record.fields.items()}
        if "datasetId" in fields or "expectedOutput" in fields:
            yield _item(fields, record.where)
        elif isinstance(fields.get("observations"), list) or "htmlPath" in fields or "type" not in fields:
            spans += _of_trace(fields, record.where)
        else:
            spans.append(_observation(fields, record.where, None))
    for trace in traces_of(_under_their_traces(spans)):
        yield trace if isinstance(trace, LeftOut) else found_in(trace, _draft(trace))


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda mark: mark[1].upper(), name)


def _of_trace(fields: dict[str, Any], where: str) -> list[Span]:
    """The trace as the root of its observations."""
    if not isinstance(fields.get("id"), str):
        raise InputError(
            f"{where}: found no trace, observation or dataset item; expected an id among {', '.join(map(repr, fields))}"
        )
    latency = fields.get("latency")
    start = seconds(fields.get("timestamp"))
    is_timed = isinstance(latency, int | float) and start is not None
    root = Span(
        trace=fields["id"],
        id=f"trace {fields['id']}",
        parent=None,
        name=str(fields.get("name", "")),
        attributes={**fields, "type": _TRACE, "observations": None},
        where=where,
        start=start,
        end=start + latency if is_timed and start is not None and latency is not None else None,
    )
    parts = fields.get("observations") or []
    if not isinstance(parts, list):
        raise InputError(f"{where}: observations: found {kind_of(parts)}, expected a list")
    inside = [part for part in parts if isinstance(part, Mapping)]  # else their ids alone
    camel = [{_camel(name): decoded(value) for name, value in part.items()} for part in inside]
    return [root, *(_observation(part, f"{where}: observations[{i}]", root) for i, part in enumerate(camel))]


def _observation(fields: dict[str, Any], where: str, root: Span | None) -> Span:
    trace = fields.get("traceId") or (root.trace if root else None)
    if not isinstance(fields.get("id"), str) or not isinstance(trace, str):
        raise InputError(f"{where}: found an observation without id or traceId, expected both")
    is_error = fields.get("level") == "ERROR"
    return Span(
        trace=trace,
        id=fields["id"],
        parent=parent_id(fields.get("parentObservationId"), where),
        name=str(fields.get("name", "")),
        attributes=fields,
        where=where,
        start=seconds(fields.get("startTime")),
        end=seconds(fields.get("endTime")),
        error=str(fields.get("statusMessage") or "the observation ended with an error") if is_error else None,
    )


def _under_their_traces(spans: Sequence[Span]) -> Iterator[Span]:
    """The spans, with the observations that have no parent under their trace, where that is there, too."""
    traces = {span.trace: span.id for span in spans if span.attributes.get("type") == _TRACE}
    known = {span.id for span in spans}
    for span in spans:
        is_top = span.parent is None or span.parent not in known
        above = traces.get(span.trace) if is_top else None
        yield span if above is None or above == span.id else replace(span, parent=above)


def _draft(trace: Trace) -> Draft:
    marked = [span for span in trace.spans if span.attributes.get("isRootObservation")]
    roots = [*trace.roots, *marked, *(s for s in trace.spans if trace.parents[s.id] in trace.roots)]
    root = trace.roots[0]
    question, history = next((asked for s in roots if (asked := question_of(s.attributes.get("input")))[0]), (None, []))
    answer = next(
        (text for s in roots if (text := answer_text(s.attributes.get("output"))) is not None and _whole(s)), None
    )
    retrievers = trace.outermost(lambda span: str(span.attributes.get("type", "")).upper() == "RETRIEVER")
    contexts, remarks = retrieved([(span.attributes.get("output"), span.where) for span in retrievers])
    models = [model for span in trace.spans if (model := span.attributes.get("model"))]
    session = root.attributes.get("sessionId")
    return Draft(
        question=question,
        history=history,
        answer=answer,
        contexts=contexts,
        remarks=remarks,
        meta=without_none({"model": models[-1] if models else None, "session": session}),
        tags=root.attributes.get("tags"),
        error=next((span.error for span in trace.spans if span.error), None),
    )


def _whole(span: Span) -> bool:
    """False for a step whose output is no answer."""
    return str(span.attributes.get("type", "")).upper() not in ("RETRIEVER", "EMBEDDING", "TOOL", "EVALUATOR")


def _item(fields: dict[str, Any], where: str) -> Found:
    question, history = question_of(fields.get("input"))
    case = {
        "id": fields.get("id"),
        "question": question,
        "history": history or None,
        "reference": answer_text(fields.get("expectedOutput")),
        "imported": without_none({"metadata": fields.get("metadata"), "dataset": fields.get("datasetName")}) or None,
    }
    return Found(without_none(case), None, where, fields, id_is_stated="id" in fields)
