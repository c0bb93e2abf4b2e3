"""OpenInference traces (Phoenix, Arize) → cases and answers. The spans themselves are read by `otlp`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rag_judge.formats.found import Found, LeftOut, without_none
from rag_judge.formats.otlp import spans_of
from rag_judge.formats.shapes import answer_text, decoded, question_of
from rag_judge.formats.spans import Draft, Span, Trace, at, found_in, retrieved, traces_of


def read_openinference(paths: Sequence[Path]) -> Iterator[Found | LeftOut]:
    """Yield a case and an answer a trace: the root's input and output, and the documents last handed on.

    A reranker's output stands for the retrieval before it.
    """
    for trace in traces_of(spans_of(paths)):
        yield trace if isinstance(trace, LeftOut) else found_in(trace, _draft(trace))


def _draft(trace: Trace) -> Draft:
    root = next((span for span in trace.roots if at(span.attributes, "input.value") is not None), trace.roots[0])
    question, history = question_of(at(root.attributes, "input.value"))
    retrievers = trace.outermost(lambda span: _kind(span) == "RETRIEVER")
    if question is None and retrievers:
        question, history = question_of(at(retrievers[0].attributes, "input.value"))
    contexts, remarks = retrieved(_documents(trace, retrievers))
    llms = [span for span in trace.spans if _kind(span) == "LLM"]
    models = [model for span in llms if (model := at(span.attributes, "llm.model_name"))]
    session = at(root.attributes, "session.id")
    tags = at(root.attributes, "tag.tags")
    return Draft(
        question=question,
        history=history,
        answer=answer_text(at(root.attributes, "output.value")),
        contexts=contexts,
        remarks=remarks,
        meta=without_none({"model": models[-1] if models else None, "session": session}),
        tags=decoded(tags) if isinstance(tags, str) else tags,
    )


def _kind(span: Span) -> str:
    return str(at(span.attributes, "openinference.span.kind") or "").upper()


def _documents(trace: Trace, retrievers: list[Span]) -> list[tuple[Any, str]]:
    """The last reranker's documents, or those of every retriever; where these are not recorded, its output."""
    rerankers = [span for span in trace.spans if _kind(span) == "RERANKER"]
    for span in reversed(rerankers):
        documents = at(span.attributes, "reranker.output_documents")
        if documents is not None:
            return [(documents, span.where)]
    return [(_recorded(span), span.where) for span in retrievers]


def _recorded(span: Span) -> Any:
    """An empty result leaves no attribute; it is told from one that was not recorded by the span's output."""
    documents = at(span.attributes, "retrieval.documents")
    output = decoded(at(span.attributes, "output.value"))
    return documents if documents is not None else output if isinstance(output, list) else None
