"""OpenTelemetry's GenAI spans → cases and answers. The spans themselves are read by `otlp`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rag_judge.formats.found import Found, LeftOut, without_none
from rag_judge.formats.otlp import spans_of
from rag_judge.formats.shapes import answer_text, decoded, question_of
from rag_judge.formats.spans import Draft, Span, Trace, at, found_in, retrieved, traces_of

_WHOLE = ("invoke_workflow", "invoke_agent")
_MODEL = ("chat", "generate_content", "text_completion")


def read_genai(paths: Sequence[Path]) -> Iterator[Found | LeftOut]:
    """Yield a case and an answer a trace.

    The question is what the outermost workflow or agent was told, else the retrieval's query, else the model's last
    user message, which often holds the whole prompt.
    """
    for trace in traces_of(spans_of(paths)):
        yield trace if isinstance(trace, LeftOut) else found_in(trace, _draft(trace))


def _draft(trace: Trace) -> Draft:
    whole = trace.outermost(lambda span: _operation(span) in _WHOLE)
    models = [span for span in trace.spans if _operation(span) in _MODEL or _said(span) is not None]
    retrievals = trace.outermost(lambda span: _operation(span) == "retrieval")
    asked: tuple[str | None, list[dict[str, str]]] = (None, [])
    for value in [
        *(_told(span) for span in whole),
        *(at(span.attributes, "gen_ai.retrieval.query.text") for span in retrievals),
        *(_told(span) for span in models),
    ]:
        asked = asked if asked[0] else question_of(value)
    answers = [text for span in [*models, *whole] if (text := answer_text(_said(span))) is not None]
    contexts, remarks = retrieved([(_documents(span), span.where) for span in retrievals])
    names = [name for span in models if (name := _model(span))]
    session = at(trace.roots[0].attributes, "gen_ai.conversation.id")
    failed = next((span.error for span in trace.spans if span.error), None)
    return Draft(
        question=asked[0],
        history=asked[1],
        answer=answers[-1] if answers else None,
        contexts=contexts,
        remarks=remarks,
        meta=without_none({"model": names[-1] if names else None, "session": session}),
        error=failed,
    )


def _operation(span: Span) -> str:
    return str(at(span.attributes, "gen_ai.operation.name") or "")


def _told(span: Span) -> Any:
    """Messages in: by today's attribute, or by the one that OpenLLMetry wrote."""
    value = at(span.attributes, "gen_ai.input.messages")
    return decoded(value if value is not None else at(span.attributes, "gen_ai.prompt"))


def _said(span: Span) -> Any:
    value = at(span.attributes, "gen_ai.output.messages")
    return decoded(value if value is not None else at(span.attributes, "gen_ai.completion"))


def _documents(span: Span) -> Any:
    """The documents; None, which is not the same as none found, where content was not recorded."""
    return decoded(at(span.attributes, "gen_ai.retrieval.documents"))


def _model(span: Span) -> Any:
    return at(span.attributes, "gen_ai.response.model") or at(span.attributes, "gen_ai.request.model")
