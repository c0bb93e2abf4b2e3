"""A review sheet as a value: which items one annotator sees, in which order, and which fields are asked.

Blind by its types: a sheet holds no case id, no run, no system and no verdict; what its random ids stand for is in the
keys that `make_sheet` returns beside it. No file is read or written here.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_judge.attribution import LAYER_OF
from rag_judge.cases import turn_text
from rag_judge.errors import InputError
from rag_judge.records import Answer, Case, Mode, Value, VerdictField

TEXT_COLUMNS = ("question", "contexts", "answer", "answer_a", "answer_b")
FREE_FIELDS = ("critique", "note")
CAUSE = VerdictField("cause", "choice", choices=tuple(LAYER_OF))
# Facts of an item rather than faults of its answer: no critique is asked for a no.
NEUTRAL_FIELDS = frozenset({"should_abstain", "did_abstain"})
# Consonants alone: no spreadsheet takes such an id for a number, a date or a formula, and none spells a word.
_ID_LETTERS = "bcdfghjkmnpqrstvwxz"
_N_SHEET_LETTERS, _N_ITEM_LETTERS = 10, 8
ITEM_ID = re.compile(rf"([{_ID_LETTERS}]{{{_N_SHEET_LETTERS}}})-[{_ID_LETTERS}]{{{_N_ITEM_LETTERS}}}")

_PICTURE_OF = {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A, 0x0D)} | {0x7F: 0x2421}
_UNWRITABLE = re.compile("[\ud800-\udfff\ufffe\uffff]")
_ESCAPE = re.compile("_x(00[01][0-9A-Fa-f]|007[Ff]|005[Ff])_")
_MARKS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u2400-\u2421\ufffd\ufffe\uffff\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ReviewContext:
    """One retrieved chunk as a reviewer sees it: without its score, which would be a hint."""

    id: str | None
    text: str | None


@dataclass(frozen=True, slots=True)
class ReviewTexts:
    """What is judged: one answer, or two of one question; contexts per answer, or once where both had the same."""

    question: str
    answers: tuple[str, ...]
    contexts: tuple[tuple[ReviewContext, ...] | None, ...]  # in rank order; None: the answers recorded none
    history: tuple[str, ...] = ()  # the turns before the question


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """One item of a sheet under its random id."""

    id: str
    texts: ReviewTexts


@dataclass(frozen=True, slots=True)
class Sheet:
    """One annotator's sheet, its items in this annotator's order."""

    sheet_id: str
    annotator: str
    mode: Mode
    fields: tuple[VerdictField, ...]
    lang: str
    instructions_version: str
    items: tuple[ReviewItem, ...]


@dataclass(frozen=True, slots=True)
class ItemKey:
    """What an item id stands for; kept out of every sheet."""

    case_id: str
    is_swapped: bool  # of two answers, the second stands as A

    def winner(self, seen: Value | None) -> Value | None:
        """The winner by system, of one that was named by its place on the sheet; tie and unsure stay as they are."""
        return {"A": "B", "B": "A"}.get(str(seen), seen) if self.is_swapped else seen


def fields_for(mode: Mode, asked: Sequence[VerdictField]) -> tuple[VerdictField, ...]:
    """What people are asked beside what the judge is asked: for pass/fail also did_abstain, passed and the cause.

    Raises InputError for a field whose name a column of the sheet already has.
    """
    taken = {"item", *TEXT_COLUMNS, *FREE_FIELDS, "case_id", "annotator", "instructions_version", "sheet"}
    for field in asked:
        if field.name.casefold() in taken:
            raise InputError(f"a review sheet cannot ask for {field.name!r}: it has a column of that name; rename it")
        taken.add(field.name.casefold())
    own = () if mode != "passfail" else (_boolean("did_abstain"), _boolean("passed"), CAUSE)
    return (*asked, *(field for field in own if field.name not in taken))


def _boolean(name: str) -> VerdictField:
    return VerdictField(name, "boolean")


def texts_of(case: Case, *answers: Answer) -> ReviewTexts:
    """What a reviewer is to see of a case and the one or two answers to it. An answer of None counts as empty."""
    contexts = [None if a.contexts is None else tuple(ReviewContext(c.id, c.text) for c in a.contexts) for a in answers]
    return ReviewTexts(
        question=case.question,
        answers=tuple(a.answer or "" for a in answers),
        contexts=tuple(contexts[:1] if contexts.count(contexts[0]) == len(contexts) else contexts),
        history=tuple(turn_text(turn) for turn in case.history),
    )


def make_sheet(
    drawn: Mapping[str, ReviewTexts],
    annotator: str,
    *,
    mode: Mode,
    fields: tuple[VerdictField, ...],
    lang: str,
    instructions_version: str,
    rng: random.Random,
) -> tuple[Sheet, dict[str, ItemKey]]:
    """A sheet of the drawn cases, and what each of its item ids stands for.

    Ids, order, and which of two answers stands as A come from `rng`; nobody who does not know its state can guess them.
    """
    sheet_id = _letters(rng, _N_SHEET_LETTERS)
    case_ids = list(drawn)
    rng.shuffle(case_ids)
    items: list[ReviewItem] = []
    keys: dict[str, ItemKey] = {}
    for case_id in case_ids:
        texts = drawn[case_id]
        is_swapped = len(texts.answers) == 2 and rng.random() < 0.5
        if is_swapped:
            texts = dataclasses.replace(texts, answers=texts.answers[::-1], contexts=texts.contexts[::-1])
        item_id = f"{sheet_id}-{_letters(rng, _N_ITEM_LETTERS)}"
        while item_id in keys:
            item_id = f"{sheet_id}-{_letters(rng, _N_ITEM_LETTERS)}"
        keys[item_id] = ItemKey(case_id, is_swapped)
        items.append(ReviewItem(item_id, texts))
    return Sheet(sheet_id, annotator, mode, fields, lang, instructions_version, tuple(items)), keys


def _letters(rng: random.Random, n: int) -> str:
    return "".join(rng.choice(_ID_LETTERS) for _ in range(n))


def columns_of(sheet: Sheet) -> tuple[str, ...]:
    """The columns of the sheet as a table, in order."""
    answers = ("answer_a", "answer_b") if sheet.mode == "pairwise" else ("answer",)
    return ("item", "question", "contexts", *answers, *(field.name for field in sheet.fields), *FREE_FIELDS)


def asks_why(field: VerdictField, value: Value | None) -> bool:
    """True where a critique is asked for: a no that faults the answer, or a score in the lower half or the middle."""
    if field.kind == "boolean":
        return value is False and field.name not in NEUTRAL_FIELDS
    return field.kind == "score" and isinstance(value, int) and value <= (field.low + field.high) // 2


# --- texts as they can be written, and compared ---------------------------------------------------------------------


def writable(text: str) -> str:
    """The text with control characters shown as their pictures and what no file format holds as the mark for it."""
    return _UNWRITABLE.sub("\ufffd", text.translate(_PICTURE_OF))


def essence(text: str) -> str:
    """The text as compared with what came back: white space as single blanks, without characters that files lose."""
    return " ".join(_MARKS.sub("", unescaped(text)).split())


def unescaped(text: str) -> str:
    """The text with what a workbook may keep as `_x000D_` as the control character itself, and `_x005F_` as `_`."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)


def text_digest(item: ReviewItem) -> str:
    """Hex sha256 of all that a reviewer judges of an item, its white space and control characters apart."""
    texts = item.texts
    contexts = [
        None if part is None else [[essence(c.id or ""), essence(c.text or "")] for c in part]
        for part in texts.contexts
    ]
    judged = [[*map(essence, texts.history), essence(texts.question)], [*map(essence, texts.answers)], contexts]
    return hashlib.sha256(json.dumps(judged).encode()).hexdigest()


# --- kept in design.json --------------------------------------------------------------------------------------------


def sheet_fields(sheet: Sheet) -> dict[str, Any]:
    """The sheet with its texts as a JSON object that `sheet_from_fields` reads back."""
    return dataclasses.asdict(sheet)


def sheet_from_fields(fields: Mapping[str, Any]) -> Sheet:
    """The sheet that `sheet_fields` gave."""
    return Sheet(
        **{
            **fields,
            "fields": tuple(
                VerdictField(**{**field, "choices": tuple(field["choices"])}) for field in fields["fields"]
            ),
            "items": tuple(ReviewItem(item["id"], _texts(item["texts"])) for item in fields["items"]),
        }
    )


def _texts(fields: Mapping[str, Any]) -> ReviewTexts:
    return ReviewTexts(
        question=fields["question"],
        answers=tuple(fields["answers"]),
        contexts=tuple(
            None if part is None else tuple(ReviewContext(**context) for context in part) for part in fields["contexts"]
        ),
        history=tuple(fields["history"]),
    )
