"""Citations that stand in the text of answers (`[2]`, `【2】`, `[doc#3]`), resolved to ids of contexts.

Whether numbers count from 0 or from 1 is decided once for all answers of an import and said. What does not resolve is
kept under `citations_unresolved`; an answer whose export states its citations is left alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag_judge.formats.found import Found, Remark

_MARK = re.compile(r"[\[\u3010]([^\[\]\u3010\u3011]{1,80})[\]\u3011]")
_SEPARATOR = re.compile(r"[,;\u3001\s]+")
_NUMBER = re.compile(r"\d{1,3}")


def with_citations(found: Sequence[Found]) -> tuple[list[Found], Remark | None]:
    """(the same with citations read from the answers' texts, how numbers were counted); None: no number was used."""
    marked = {i: marks for i, one in enumerate(found) if (marks := _marks_of(one.answer))}
    numbers = [(int(m), found[i].answer) for i, marks in marked.items() for m in marks if _NUMBER.fullmatch(m)]
    base = _base(numbers)
    told: Remark | None = None
    if numbers:
        told = "citations_undecided" if base is None else "citations_from_0" if base == 0 else "citations_from_1"
    return [_resolved(one, marked[i], base) if i in marked else one for i, one in enumerate(found)], told


def _marks_of(answer: Mapping[str, Any] | None) -> list[str]:
    """What the brackets of an answer hold, where every part is a number or the id of a context."""
    if answer is None or not isinstance(answer.get("answer"), str) or not answer.get("contexts"):
        return []
    if answer.get("citations") is not None:
        return []
    ids = set(_ids(answer))
    marks: list[str] = []
    for bracket in _MARK.findall(unicodedata.normalize("NFKC", answer["answer"])):
        parts = [bracket.strip()] if bracket.strip() in ids else [p for p in _SEPARATOR.split(bracket) if p]
        if parts and all(_NUMBER.fullmatch(part) or part in ids for part in parts):
            marks += parts
    return marks


def _ids(answer: Mapping[str, Any]) -> Iterator[str]:
    return (str(context["id"]) for context in answer["contexts"] if "id" in context)


def _base(numbers: Sequence[tuple[int, Mapping[str, Any] | None]]) -> int | None:
    """0 or 1; None where both are used, or where contexts have numbers as ids, which a number could mean, too."""
    if any(_NUMBER.fullmatch(doc) for _, answer in numbers if answer is not None for doc in _ids(answer)):
        return None
    counts_from_0 = any(n == 0 for n, _ in numbers)
    counts_from_1 = any(answer is not None and n == len(answer["contexts"]) for n, answer in numbers)
    return None if counts_from_0 and counts_from_1 else 0 if counts_from_0 else 1


def _resolved(found: Found, marks: Sequence[str], base: int | None) -> Found:
    answer = dict(found.answer or {})
    contexts, ids = answer["contexts"], set(_ids(answer))
    cited: list[str] = []
    unresolved: list[str] = []
    for mark in dict.fromkeys(marks):
        place = int(mark) - base if base is not None and _NUMBER.fullmatch(mark) else None
        if mark in ids and not _NUMBER.fullmatch(mark):
            cited.append(mark)
        elif place is not None and 0 <= place < len(contexts) and "id" in contexts[place]:
            cited.append(str(contexts[place]["id"]))
        else:
            unresolved.append(mark)
    if cited:
        answer["citations"] = list(dict.fromkeys(cited))
    if unresolved:
        answer["citations_unresolved"] = unresolved
    same = replace(found, answer=answer)
    return same.with_remarks("citations_unresolved") if unresolved else same
