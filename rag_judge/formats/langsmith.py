"""LangSmith's runs and datasets → cases and answers: JSON of the API, nested or flat, and bulk exports in Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_judge.errors import InputError
from rag_judge.formats.found import Found, LeftOut, without_none
from rag_judge.formats.shapes import answer_text, decoded, question_of
from rag_judge.formats.source import Record, records_of
from rag_judge.formats.spans import Draft, Span, Trace, found_in, parent_id, retrieved, seconds, traces_of


def read_langsmith(paths: Sequence[Path]) -> Iterator[Found | LeftOut]:
    """Yield a case and an answer a trace, and a case an example of a dataset.

    A trace that was run on an example has the example's id, so that two experiments on a dataset pair; the project
    or experiment (`session_id`) is the system that answered.
    """
    runs: list[Span] = []
    for record in (record for path in paths for record in records_of(path)):
        if "run_type" in record.fields:
            runs += _spans(record.fields, record.where, None)
        elif "inputs" in record.fields:
            yield _example(record)
        else:
            raise InputError(
                f"{record.where}: found neither run_type (a run) nor inputs (an example), "
                f"among {', '.join(map(repr, record.fields))}"
            )
    for trace in traces_of(runs):
        yield trace if isinstance(trace, LeftOut) else found_in(trace, _draft(trace))


def _spans(run: Mapping[str, Any], where: str, above: Span | None) -> list[Span]:
    """A run and, where they are nested in it, its children."""
    fields = {name: decoded(value) for name, value in run.items() if name != "child_runs"}
    if not isinstance(fields.get("id"), str):
        raise InputError(f"{where}: id: found {fields.get('id')!r}, expected the id of a run")
    parent = parent_id(fields.get("parent_run_id"), where) or (above.id if above else None)
    span = Span(
        trace=str(fields.get("trace_id") or (above.trace if above else fields["id"])),
        id=fields["id"],
        parent=parent,
        name=str(fields.get("name", "")),
        attributes=fields,
        where=where,
        start=seconds(fields.get("start_time")),
        end=seconds(fields.get("end_time")),
        error=str(fields["error"]).split("\n", 1)[0] if fields.get("error") else None,
    )
    children = decoded(run.get("child_runs")) or []
    return [span, *(one for child in children if isinstance(child, Mapping) for one in _spans(child, where, span))]


def _draft(trace: Trace) -> Draft:
    root = trace.roots[0].attributes
    question, history = question_of(root.get("inputs"))
    contexts, remarks = retrieved(
        [
            (_documents(span), span.where)
            for span in trace.outermost(lambda s: s.attributes.get("run_type") == "retriever")
        ]
    )
    models = [name for span in trace.spans if (name := _metadata(span.attributes).get("ls_model_name"))]
    example, project = root.get("reference_example_id"), root.get("session_name") or root.get("session_id")
    return Draft(
        question=question,
        history=history,
        answer=answer_text(root.get("outputs")),
        contexts=contexts,
        remarks=remarks,
        meta=without_none({"model": models[-1] if models else None, "project": project}),
        tags=root.get("tags"),
        case_id=str(example) if example else None,
        system=str(project) if example and project else None,
    )


def _documents(span: Span) -> Any:
    """The documents of a retriever; None where it failed or its outputs were not exported."""
    outputs = span.attributes.get("outputs")
    if isinstance(outputs, Mapping):
        return next((outputs[key] for key in ("documents", "output") if outputs.get(key) is not None), outputs or None)
    return outputs


def _metadata(run: Mapping[str, Any]) -> Mapping[str, Any]:
    extra = run.get("extra")
    metadata = extra.get("metadata") if isinstance(extra, Mapping) else None
    return metadata if isinstance(metadata, Mapping) else {}


def _example(record: Record) -> Found:
    fields = {name: decoded(value) for name, value in record.fields.items()}
    question, history = question_of(fields["inputs"])
    case = {
        "id": fields.get("id"),
        "question": question,
        "history": history or None,
        "reference": answer_text(fields.get("outputs")),
        "imported": without_none({"metadata": fields.get("metadata"), "dataset_id": fields.get("dataset_id")}) or None,
    }
    return Found(without_none(case), None, record.where, fields, id_is_stated="id" in fields)
