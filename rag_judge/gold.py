"""What one annotator said of one case, and what a field of a case is by all labels of it: the gold label.

No file is read here, and nothing of a sheet is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from rag_judge.records import Value

ADJUDICATOR = "adjudicator"  # the third reader, whose word settles what the others differ on
_ABOUT = ("case_id", "annotator", "critique", "note", "instructions_version", "sheet")


@dataclass(frozen=True, slots=True)
class Label:
    """What one annotator said of one case. A field that is not there was not answered; None is the answer unsure."""

    case_id: str
    annotator: str
    values: Mapping[str, Value | None] = field(default_factory=dict)
    critique: str | None = None
    note: str | None = None
    instructions_version: str | None = None
    sheet: str | None = None
    places: Mapping[str, str] = field(default_factory=dict, compare=False)  # where each field was read, for messages

    @property
    def key(self) -> tuple[str, str]:
        """Whose label of which case it is."""
        return self.case_id, self.annotator

    def fields(self) -> dict[str, Any]:
        """The label as a line of the file."""
        stated = {"critique": self.critique, "note": self.note}
        stated |= {"instructions_version": self.instructions_version, "sheet": self.sheet}
        known = {name: value for name, value in stated.items() if value is not None}
        return {"case_id": self.case_id, "annotator": self.annotator, **self.values, **known}


def label_from_fields(fields: Mapping[str, Any]) -> Label:
    """The label of a line that `Label.fields` gave."""
    values = {name: value for name, value in fields.items() if name not in _ABOUT}
    about = {name: fields[name] for name in _ABOUT if name in fields}
    return Label(values=values, **about)


def by_case(labels: Iterable[Label]) -> dict[str, list[Label]]:
    """The labels of each case."""
    found: dict[str, list[Label]] = {}
    for label in labels:
        found.setdefault(label.case_id, []).append(label)
    return found


def gold(labels: Sequence[Label], name: str) -> Value | None:
    """What a field of a case is, by its labels: as all agree, or as the adjudicator says; None where open or unsure."""
    settled = [label.values[name] for label in labels if label.annotator == ADJUDICATOR and name in label.values]
    if settled:
        return settled[-1]
    said = [label.values[name] for label in labels if name in label.values]
    return said[0] if said and all(value == said[0] for value in said) else None


def is_disputed(labels: Sequence[Label], name: str) -> bool:
    """True where two annotators gave different answers to a field; one who is unsure does not agree with a yes."""
    return len({label.values[name] for label in labels if label.annotator != ADJUDICATOR and name in label.values}) > 1


def paired(labels: Iterable[Label], name: str) -> Iterator[tuple[str, Value, Value]]:
    """Yield each two answers of different annotators to one field of one case, an adjudicator's left out."""
    for case_id, of_case in by_case(labels).items():
        said = [label for label in of_case if label.annotator != ADJUDICATOR]
        known = [
            value
            for label in sorted(said, key=lambda one: one.annotator)
            if (value := label.values.get(name)) is not None
        ]
        for one, other in combinations(known, 2):
            yield case_id, one, other
