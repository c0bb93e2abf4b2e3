"""Rows that came back against the sheets that were sent out: the right item, the text exported, one value a field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_judge.records import Value
from rag_judge.review.cells import cells_of, rows_of, utf16_length
from rag_judge.review.found import FoundRow, item_index
from rag_judge.review.labels import ItemLabel, ReadSheet, is_blank, read_value, shown
from rag_judge.review.sheet import (
    FREE_FIELDS,
    ITEM_ID,
    ReviewItem,
    Sheet,
    asks_why,
    essence,
    text_digest,
    unescaped,
    writable,
)
from rag_judge.review.xlsx import CELL_LIMIT, Formula

# A cell of at least so many units that is a beginning of the exported text was cut by a spreadsheet, not by a person.
_CUT_FROM = 32_000
_N_CHARACTERS_SHOWN = 30


@dataclass(slots=True)
class Said:
    """What was said of one item so far, each with the place where it stands."""

    values: dict[str, tuple[Value | None, str]] = field(default_factory=dict)
    free: dict[str, tuple[str, str]] = field(default_factory=dict)
    seconds: float | None = None


@dataclass(slots=True)
class Matched:
    """What the rows say, by sheet and item, and everything that is wrong with them."""

    said: dict[str, dict[str, Said]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    remarks: dict[str, dict[str, None]] = field(default_factory=dict)  # by sheet, each once


def match(rows: Sequence[FoundRow], known: Mapping[str, Sheet]) -> Matched:
    """The rows of any number of files, matched by item id."""
    matched = Matched()
    index = item_index(known)
    items = {item.id: item for sheet in known.values() for item in sheet.items}
    strangers: dict[str, list[FoundRow]] = {}
    for row in rows:
        item_id = row.item if row.item in index else row.item.strip().casefold()
        if item_id not in index:
            _take_stranger(row, item_id, known, strangers, matched)
            continue
        sheet = known[index[item_id]]
        remarks = matched.remarks.setdefault(sheet.sheet_id, {})
        remarks.update(dict.fromkeys(row.remarks))
        matched.errors += _text_errors(row, items[item_id], sheet, remarks)
        _take_labels(row, matched.said.setdefault(sheet.sheet_id, {}).setdefault(item_id, Said()), sheet, matched)
    for sheet_id, theirs in strangers.items():
        matched.errors.append(
            f"{theirs[0].where}: item {theirs[0].item!r} is of sheet {sheet_id}, which is none of this run's "
            f"({len(theirs)} such rows); import it into the run it was exported from"
        )
    return matched


def _take_stranger(
    row: FoundRow,
    item_id: str,
    known: Mapping[str, Sheet],
    strangers: dict[str, list[FoundRow]],
    matched: Matched,
) -> None:
    ours = ITEM_ID.fullmatch(item_id)
    if ours and ours[1] not in known:
        strangers.setdefault(ours[1], []).append(row)
        return
    matched.errors.append(
        f"{row.where}, column item: found {shown(row.item)}, which is no item of this run's sheets; "
        "copy the id from the sheet as it was exported"
    )


# --- is it the text that was judged? --------------------------------------------------------------------------------


def _text_errors(row: FoundRow, item: ReviewItem, sheet: Sheet, remarks: dict[str, None]) -> list[str]:
    errors = []
    if row.digest is not None and row.digest != text_digest(item):
        errors.append(f"{row.where}: item {item.id}: the texts that were judged are not those of this run's sheet")
    if row.instructions is not None and row.instructions != sheet.instructions_version:
        errors.append(
            f"{row.where}: judged by version {row.instructions} of the instructions, but sheet {sheet.sheet_id} was "
            f"exported with {sheet.instructions_version}"
        )
    if not row.texts:
        return errors
    whole = cells_of(item.texts, sheet.lang)
    parts = rows_of(whole, CELL_LIMIT, sheet.lang)
    if row.part > len(parts):
        return [*errors, f"{row.where}, column item: item {item.id} has {len(parts)} rows, found part {row.part}"]
    for name, (column, found) in row.texts.items():
        exported = [parts[row.part - 1].get(name, ""), *([whole.get(name, "")] if row.part == 1 else [])]
        if any(_is_same(found, text, row.encoding) for text in exported):
            continue
        if utf16_length(found) >= _CUT_FROM and essence(exported[-1]).startswith(essence(found)):
            remarks[f"{row.where}, column {column}: cut by a spreadsheet at {utf16_length(found)} characters"] = None
            continue
        errors.append(f"{row.where}, column {column}: {_difference(essence(found), essence(exported[-1]))}")
    return errors


def _is_same(found: str, exported: str, encoding: str) -> bool:
    if not encoding:
        return essence(found) == essence(exported)
    return _kept(found, encoding) == _kept(exported, encoding)


def _kept(text: str, encoding: str) -> str:
    """The characters that survive in a code page; programs put question marks, or nothing, in place of the others."""
    return "".join(essence(text).encode(encoding, "ignore").decode(encoding).replace("?", "").split())


def _difference(found: str, exported: str) -> str:
    at = next(
        (i for i, (a, b) in enumerate(zip(found, exported, strict=False)) if a != b), min(len(found), len(exported))
    )
    start = max(0, at - _N_CHARACTERS_SHOWN // 3)
    return (
        f"the text is not the one that was exported: found {found[start : start + _N_CHARACTERS_SHOWN]!r} where "
        f"{exported[start : start + _N_CHARACTERS_SHOWN]!r} stood (character {at + 1}); labels hold only for the text "
        "that was exported, so put it back"
    )


# --- what is said of it ---------------------------------------------------------------------------------------------


def _take_labels(row: FoundRow, said: Said, sheet: Sheet, matched: Matched) -> None:
    """Add what the row says to what is known of its item; what contradicts it is an error."""
    for asked in sheet.fields:
        column, cell = row.said.get(asked.name, ("", None))
        if is_blank(cell):
            continue
        place = f"{row.where}, column {column}"
        try:
            if isinstance(cell, Formula):
                raise ValueError("expected a value; paste the cell as a value")
            value = read_value(asked, cell)
        except ValueError as error:
            matched.errors.append(f"{place}: found {shown(cell)}, {error}")
            continue
        _put(said.values, asked.name, value, place, matched.errors)
    for name in FREE_FIELDS:
        column, cell = row.said.get(name, ("", None))
        if is_blank(cell):
            continue
        place = f"{row.where}, column {column}"
        if isinstance(cell, Formula):
            matched.errors.append(
                f"{place}: found the formula {shown(cell)}, expected text; put an apostrophe before it"
            )
            continue
        _put(said.free, name, _free_text(cell), place, matched.errors)
    if row.seconds is not None:
        said.seconds = max(row.seconds, said.seconds or 0.0)


def _free_text(cell: Any) -> str:
    text = str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
    return writable(unescaped(text)).replace("\r\n", "\n").replace("\r", "\n").strip()


def _put(into: dict[str, Any], name: str, value: object, place: str, errors: list[str]) -> None:
    if name not in into:
        into[name] = (value, place)
    elif into[name][0] != value:
        before, where = into[name]
        errors.append(
            f"{place}: found {spelled(value)}, but {where} says {spelled(before)} of the same item; keep one of them"
        )


def spelled(value: object) -> str:
    """A value as a sheet shows it, for a message."""
    if isinstance(value, str):
        return shown(value)
    return {True: "yes", False: "no", None: "unsure"}[value] if value is None or isinstance(value, bool) else str(value)


# --- what came of each sheet ----------------------------------------------------------------------------------------


def sheets_of(matched: Matched, known: Mapping[str, Sheet]) -> list[ReadSheet]:
    """What was read of each sheet of which anything came back."""
    return [_read_sheet(known[sheet_id], said, matched) for sheet_id, said in matched.said.items()]


def _read_sheet(sheet: Sheet, said: Mapping[str, Said], matched: Matched) -> ReadSheet:
    ids = [item.id for item in sheet.items]
    found = {item_id: _label(said[item_id]) for item_id in ids if item_id in said}
    labels = {item_id: label for item_id, label in found.items() if label.values}
    return ReadSheet(
        sheet_id=sheet.sheet_id,
        annotator=sheet.annotator,
        instructions_version=sheet.instructions_version,
        n_items=len(ids),
        labels=labels,
        notes_only={i: label for i, label in found.items() if not label.values and (label.critique or label.note)},
        blank=tuple(item_id for item_id in ids if item_id not in labels),
        n_blank_of={f.name: sum(f.name not in _values(labels, i) for i in ids) for f in sheet.fields},
        n_critiques_missing=sum(
            not label.critique
            and any(asks_why(f, label.values[f.name]) for f in sheet.fields if f.name in label.values)
            for label in labels.values()
        ),
        seconds={i: one.seconds for i, one in said.items() if one.seconds is not None},
        warnings=tuple(matched.remarks.get(sheet.sheet_id, ())),
    )


def _values(labels: Mapping[str, ItemLabel], item_id: str) -> Mapping[str, Value | None]:
    return labels[item_id].values if item_id in labels else {}


def _label(said: Said) -> ItemLabel:
    free = {name: text for name, (text, _) in said.free.items()}
    values = {name: value for name, (value, _) in said.values.items()}
    places = {name: place for name, (_, place) in (said.values | said.free).items()}
    return ItemLabel(values, free.get("critique"), free.get("note"), places)
