"""Spans of traces, whoever recorded them: gathered by trace, with roots, ancestors and what was retrieved.

No format is read here; what an attribute means is the format's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rag_judge.errors import InputError
from rag_judge.formats.found import Found, LeftOut, Remark, without_none
from rag_judge.formats.shapes import contexts_of
from rag_judge.rows import kind_of


@dataclass(frozen=True, slots=True)
class Span:
    """One step of a trace; `attributes` is a tree, whatever the export's own spelling."""

    trace: str
    id: str
    parent: str | None
    name: str
    attributes: Mapping[str, Any]
    where: str
    start: float | None = None  # seconds
    end: float | None = None
    error: str | None = None

    @property
    def latency_s(self) -> float | None:
        """Seconds from start to end."""
        return None if self.start is None or self.end is None else round(self.end - self.start, 6)


@dataclass(frozen=True, slots=True)
class Trace:
    """The spans of one trace, in order of time."""

    id: str
    spans: tuple[Span, ...]
    parents: Mapping[str, Span | None] = field(default_factory=dict)

    @property
    def roots(self) -> tuple[Span, ...]:
        """Spans without a parent among these."""
        return tuple(span for span in self.spans if self.parents[span.id] is None)

    @property
    def where(self) -> str:
        """The place of the first root."""
        return f"{self.roots[0].where}: trace {self.id}"

    def outermost(self, fits: Callable[[Span], bool]) -> list[Span]:
        """The spans that fit and have no ancestor that does: a search over several indexes counts once."""
        return [span for span in self.spans if fits(span) and not any(fits(above) for above in self._above(span))]

    def _above(self, span: Span) -> Iterator[Span]:
        above = self.parents[span.id]
        while above is not None:
            yield above
            above = self.parents[above.id]

    def record(self) -> dict[str, Any]:
        """What --map sees of a trace: the root's attributes under `root`, every span under `spans`."""
        seen = [{"id": s.id, "parent": s.parent, "name": s.name, "attributes": s.attributes} for s in self.spans]
        return {"trace_id": self.id, "root": dict(self.roots[0].attributes), "spans": seen}


def traces_of(spans: Iterable[Span]) -> Iterator[Trace | LeftOut]:
    """Yield the traces in the order in which they begin in the file; a span delivered again is left out and said.

    Raises InputError for one span id with two contents, and for spans that are each other's parents.
    """
    by_trace: dict[str, dict[str, Span]] = {}
    for span in spans:
        known = by_trace.setdefault(span.trace, {})
        if span.id in known:
            if (known[span.id].attributes, known[span.id].parent) != (span.attributes, span.parent):
                raise InputError(
                    f"{span.where}: span {span.id!r} of trace {span.trace!r} stands twice with different contents, "
                    f"first at {known[span.id].where}"
                )
            yield LeftOut("repeated_span", span.where)
        else:
            known[span.id] = span
    for trace_id, known in by_trace.items():
        parents = {s.id: known.get(s.parent) if s.parent and s.parent != s.id else None for s in known.values()}
        _check_acyclic(parents, trace_id)
        ordered = sorted(known.values(), key=lambda s: (s.start is None, s.start or 0.0))
        yield Trace(trace_id, tuple(ordered), parents)


def _check_acyclic(parents: Mapping[str, Span | None], trace_id: str) -> None:
    done: set[str] = set()
    for first in parents:
        chain: list[str] = []
        at: str | None = first
        while at is not None and at not in done:
            if at in chain:
                raise InputError(f"trace {trace_id!r}: span {at!r} is its own ancestor; the export is broken")
            chain.append(at)
            above = parents[at]
            at = None if above is None else above.id
        done.update(chain)


def retrieved(places: Sequence[tuple[Any, str]]) -> tuple[list[dict[str, Any]] | None, list[Remark]]:
    """(contexts of every retrieval in order, each id once; remarks) of (documents, place) of each retrieval.

    None where there was no retrieval, or where none of them holds documents that can be read.
    """
    remarks: list[Remark] = []
    lists = []
    for value, where in places:
        try:
            contexts = contexts_of(value, where)
        except InputError:
            contexts = None
            remarks.append("unreadable_contexts")
        if contexts is not None:
            lists.append(contexts)
    if not lists:
        return None, remarks
    if len(lists) > 1:
        remarks.append("several_retrievals")
    kept: dict[Any, dict[str, Any]] = {}
    for context in (context for contexts in lists for context in contexts):
        kept.setdefault(("id", context["id"]) if "id" in context else ("text", context["text"]), context)
    contexts = list(kept.values()) if len(lists) > 1 else lists[0]
    return contexts, remarks


@dataclass(slots=True)
class Draft:
    """What a format read out of one trace, before it is a case and an answer."""

    question: str | None
    history: list[dict[str, str]]
    answer: str | None
    contexts: list[dict[str, Any]] | None
    remarks: list[Remark]
    meta: Mapping[str, Any] = field(default_factory=dict)
    tags: Any = None
    error: str | None = None
    case_id: str | None = None  # the export names the example that was asked
    system: str | None = None


def found_in(trace: Trace, draft: Draft) -> Found | LeftOut:
    """The case and the answer of a trace; its id is the example's where there is one, else the trace's.

    A trace that asks nothing is still given as found, without question: a mapping may know where it is.
    """
    root = trace.roots[0]
    case = without_none(
        {
            "id": draft.case_id or trace.id,
            "question": draft.question,
            "history": draft.history or None,
            "tags": draft.tags or None,
        }
    )
    answer = without_none(
        {
            "answer": draft.answer,
            "contexts": draft.contexts,
            "latency_s": root.latency_s,
            "error": (draft.error or root.error) if draft.answer is None else None,
            "meta": dict(draft.meta) or None,
            "trace_id": trace.id,
        }
    )
    return Found(
        case,
        answer,
        trace.where,
        trace.record(),
        system=draft.system,
        remarks=tuple(draft.remarks),
        id_is_stated=draft.case_id is None,
    )


def parent_id(value: Any, where: str) -> str | None:
    """The id of the span above; None for a root. Raises InputError for what is no id."""
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise InputError(f"{where}: found a parent that is {kind_of(value)}, expected an id")
    return value


def seconds(value: Any) -> float | None:
    """A time as seconds since 1970: ISO text, or nanoseconds as a number or its digits; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float) or (isinstance(value, str) and value.isdecimal()):
        number = float(value)
        return number / 1e9 if number > 1e15 else number / 1e3 if number > 1e11 else number
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value).timestamp()
    except ValueError:
        return None


def tree_of(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes with dotted names as a tree; `documents.0.id` becomes a list. A name that holds both a value and
    names below it keeps the value under "".
    """
    tree: dict[str, Any] = {}
    for name, value in attributes.items():
        if value is None:
            continue
        at = tree
        *above, last = str(name).split(".")
        for part in above:
            below = at.setdefault(part, {})
            if not isinstance(below, dict):
                below = at[part] = {"": below}
            at = below
        value = _tree_value(value)
        held = at.get(last)
        if isinstance(held, dict):
            held |= value if isinstance(value, dict) else {"": value}
        else:
            at[last] = value
    return {name: _lists_in(value) for name, value in tree.items()}


def _tree_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tree_of(value)
    return [_tree_value(part) for part in value] if isinstance(value, list) else value


def _lists_in(value: Any) -> Any:
    """The tree with every object whose names are 0, 1, 2 … as a list."""
    if isinstance(value, list):
        return [_lists_in(part) for part in value]
    if not isinstance(value, dict):
        return value
    if value and all(name.isdecimal() for name in value):
        return [_lists_in(value[name]) for name in sorted(value, key=int)]
    return {name: _lists_in(part) for name, part in value.items()}


def at(tree: Any, path: str) -> Any:
    """The value at a dotted path of a tree; None where there is none."""
    for part in path.split("."):
        if not isinstance(tree, Mapping):
            return None
        tree = tree.get(part)
    return tree.get("") if isinstance(tree, Mapping) and "" in tree else tree
