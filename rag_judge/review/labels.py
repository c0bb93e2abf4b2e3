"""What people said: the values a field of a sheet can take, in every spelling a sheet may come back with.

No file format and no sheet is known here. Blank is not a value: it means that nobody answered.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_judge.records import Value, VerdictField

YES = frozenset({"yes", "y", "true", "t", "1", "是", "对"})
NO = frozenset({"no", "n", "false", "f", "0", "否", "不是", "错"})
UNSURE = frozenset({"unsure", "u", "?", "null", "不确定", "不清楚"})
# Of the field `passed` alone.
PASS = frozenset({"pass", "passed", "通过"})
FAIL = frozenset({"fail", "failed", "不通过", "未通过", "没通过"})
CHOICE_WORDS: Mapping[str, str] = {"平局": "tie", "平": "tie", "equal": "tie", "draw": "tie"}
_LONGEST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class ItemLabel:
    """What one annotator said of one item: only fields that were answered; None is the answer unsure."""

    values: Mapping[str, Value | None] = field(default_factory=dict)
    critique: str | None = None
    note: str | None = None
    places: Mapping[str, str] = field(default_factory=dict, compare=False)  # file, row and column of each field


@dataclass(frozen=True, slots=True)
class ReadSheet:
    """What came back of one sheet. Nothing is counted as answered that was left blank."""

    sheet_id: str
    annotator: str
    instructions_version: str
    n_items: int
    labels: Mapping[str, ItemLabel]  # by item id, of items with at least one answered field
    notes_only: Mapping[str, ItemLabel]  # items with a critique or a note and no answered field
    blank: tuple[str, ...]  # the items of the sheet without an answered field, in its order
    n_blank_of: Mapping[str, int]  # per field, the items of the sheet without an answer to it
    n_critiques_missing: int  # labels with an answer that asks for a critique, and none given
    seconds: Mapping[str, float] = field(default_factory=dict)  # spent on an item, where the sheet measured it
    warnings: tuple[str, ...] = ()

    @property
    def n_blank(self) -> int:
        """The number of items nobody judged: absent, or without an answered field."""
        return len(self.blank)


def is_blank(found: Any) -> bool:
    """True for nothing, and for text of white space alone."""
    return found is None or (isinstance(found, str) and not found.strip())


def read_value(asked: VerdictField, found: Any) -> Value | None:
    """The value that a cell or a choice states, None for unsure. Raises ValueError, saying what was expected."""
    value = {"boolean": _boolean, "score": _score, "choice": _choice}[asked.kind](asked, found)
    if value is _IMPOSSIBLE:
        raise ValueError(f"expected {expected(asked)}, or blank")
    return value  # type: ignore[return-value]


_IMPOSSIBLE = object()


def _boolean(asked: VerdictField, found: Any) -> object:
    if isinstance(found, bool):
        return found
    word = str(int(found)) if isinstance(found, float) and found.is_integer() else folded(str(found))
    passes = asked.name == "passed"
    if word in YES or (passes and word in PASS):
        return True
    if word in NO or (passes and word in FAIL):
        return False
    return None if word in UNSURE else _IMPOSSIBLE


def _score(asked: VerdictField, found: Any) -> object:
    if isinstance(found, bool):
        return _IMPOSSIBLE
    if not isinstance(found, int | float):
        word = folded(str(found))
        if word in UNSURE:
            return None
        try:
            found = float(word) if word.replace(".", "", 1).isdecimal() else None
        except ValueError:
            found = None
    if found is None or found != found or not asked.low <= found <= asked.high or int(found) != found:
        return _IMPOSSIBLE
    return int(found)


def _choice(asked: VerdictField, found: Any) -> object:
    if not isinstance(found, str):
        return _IMPOSSIBLE
    word = folded(found)
    word = CHOICE_WORDS.get(word, word)
    for choice in asked.choices:
        # A drop-down may show a meaning behind the name: `recall_miss · not retrieved`.
        if word == folded(choice) or found.strip().startswith(f"{choice} · "):
            return choice
    return None if word in UNSURE else _IMPOSSIBLE


def folded(text: str) -> str:
    """The word as compared: NFKC, lower case, without white space at its ends."""
    return unicodedata.normalize("NFKC", text).strip().casefold()


def expected(asked: VerdictField) -> str:
    """The values of a field, for a message."""
    if asked.kind == "boolean":
        return "yes, no or unsure (是, 否, 不确定)"
    if asked.kind == "score":
        return f"a whole number from {asked.low} to {asked.high}, or unsure (不确定)"
    return f"one of {', '.join(asked.choices)}, or unsure (不确定)"


def shown(found: Any) -> str:
    """What was found, for a message: short, on one line, quoted if it is text."""
    text = repr(found) if isinstance(found, str) else str(found)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
