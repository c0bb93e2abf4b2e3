"""What a format's reader finds: a case with its answer, or a record left out with the reason. No file is read here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from rag_judge.errors import InputError

Remark = Literal[
    "no_question",  # left out
    "no_turns",
    "repeated_span",
    "no_query",
    "asked_again",
    "made_ids",  # brought in, and worth knowing
    "repeated_question",
    "no_answer",
    "no_contexts",
    "unreadable_contexts",
    "several_retrievals",
    "joined_contexts",
    "no_context_ids",
    "no_context_texts",
    "citations_from_0",
    "citations_from_1",
    "citations_unresolved",
    "citations_undecided",
    "template_asserts",
]


@dataclass(frozen=True, slots=True)
class Found:
    """A case and, where the export holds one, its answer (a row without id), as read from one record."""

    case: Mapping[str, Any]
    answer: Mapping[str, Any] | None
    where: str  # file and line, or file and trace
    record: Any  # what --map is applied to
    system: str | None = None  # which of several systems answered; None: the export tells of one alone
    remarks: tuple[Remark, ...] = ()
    id_is_stated: bool = True  # False: the id was made here, and a repeated one is numbered

    def with_remarks(self, *remarks: Remark) -> Found:
        """The same, with further remarks."""
        return replace(self, remarks=(*self.remarks, *remarks))


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A record, or a part of one, that did not come in."""

    reason: Remark
    where: str


Reader = Callable[[Sequence[Path]], Iterator[Found | LeftOut]]


@dataclass(frozen=True, slots=True)
class Count:
    """How often a remark was made, and where first."""

    remark: Remark
    n: int
    first: str


@dataclass(slots=True)
class Tally:
    """Remarks counted in the order in which each was first made."""

    counts: dict[Remark, Count] = field(default_factory=dict)

    def add(self, remark: Remark, where: str) -> None:
        """Count one more."""
        known = self.counts.get(remark)
        self.counts[remark] = Count(remark, 1, where) if known is None else replace(known, n=known.n + 1)

    def listed(self) -> tuple[Count, ...]:
        """Every count."""
        return tuple(self.counts.values())


def without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that hold something: null says the same as a field left out."""
    return {name: value for name, value in fields.items() if value is not None}


def single(paths: Sequence[Path], what: str) -> Path:
    """The one file. Raises InputError where several were given to a format that is read from one."""
    if len(paths) != 1:
        raise InputError(f"{what} is read from one file; found {len(paths)}: {', '.join(map(str, paths))}")
    return paths[0]
