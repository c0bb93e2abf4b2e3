"""What a file says, row by row, before any of it is believed: where it stands, its item, its cells as found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_judge.errors import InputError
from rag_judge.review.cells import id_and_part
from rag_judge.review.labels import folded, is_blank, shown
from rag_judge.review.sheet import FREE_FIELDS, TEXT_COLUMNS, Sheet, columns_of
from rag_judge.review.xlsx import Formula, column_letter


@dataclass(frozen=True, slots=True)
class FoundRow:
    """One row of a table, or one label of a JSON file."""

    where: str  # file and row
    item: str  # as found
    part: int  # of an item whose texts take several rows
    texts: Mapping[str, tuple[str, str]]  # by text column: its name for a message, the text found
    said: Mapping[str, tuple[str, Any]]  # by field, critique and note: its name for a message, the cell as found
    encoding: str = ""  # a code page that cannot hold every character; "": Unicode
    digest: str | None = None  # of the texts that were judged, where the file states it
    instructions: str | None = None  # their version, where the file states it
    seconds: float | None = None
    remarks: tuple[str, ...] = ()  # on the table that the row is of


def item_index(known: Mapping[str, Sheet]) -> dict[str, str]:
    """The sheet of every item id."""
    return {item.id: sheet.sheet_id for sheet in known.values() for item in sheet.items}


def table_rows(
    name: str, table: Sequence[Sequence[Any]], known: Mapping[str, Sheet], encoding: str = ""
) -> tuple[list[FoundRow], list[str]]:
    """The rows of a table whose first row is the header, and what is wrong with its columns and items.

    Raises InputError where the columns are not those of a sheet.
    """
    header = ["" if is_blank(cell) else folded(str(cell)) for cell in table[0]]
    columns = _columns(name, header, known)
    remarks = _remarks(name, table, header, columns)
    rows: list[FoundRow] = []
    errors: list[str] = []
    for number, cells in enumerate(table[1:], 2):
        if all(map(is_blank, cells)):
            continue
        where = f"{name}, row {number}"
        found = {key: cells[at] if at < len(cells) else None for key, at in columns.items()}
        named = {key: f"{key} ({column_letter(at)})" for key, at in columns.items()}
        said = {key: (named[key], found[key]) for key in columns if key not in ("item", *TEXT_COLUMNS)}
        if not all(map(is_blank, cells[len(header) :])):
            errors.append(f"{where}: more cells than the header has columns ({len(header)})")
        elif isinstance(found["item"], Formula) or is_blank(found["item"]):
            if not all(is_blank(cell) for _, cell in said.values()):
                what = "a formula" if isinstance(found["item"], Formula) else "nothing"
                errors.append(f"{where}, column {named['item']}: found {what}, expected the id of the item")
        else:
            item, part = id_and_part(str(found["item"]))
            texts = {key: (named[key], _text(found[key])) for key in TEXT_COLUMNS if key in columns}
            rows.append(FoundRow(where, item, part, texts, said, encoding, remarks=remarks))
    missing = _missing(name, rows, columns, known)
    return rows, [*missing, *errors]


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell)


def _columns(name: str, header: Sequence[str], known: Mapping[str, Sheet]) -> dict[str, int]:
    """Where each column that some sheet has stands in the header."""
    ours = {folded(column): column for sheet in known.values() for column in columns_of(sheet)}
    counts = Counter(key for key in header if key in ours)
    if twice := [ours[key] for key, n in counts.items() if n > 1]:
        raise InputError(f"{name}, row 1: column {', '.join(twice)} stands twice; keep one of them")
    if "item" not in header:
        found = ", ".join(filter(None, header)) or "nothing"
        raise InputError(f"{name}, row 1: column item is missing (found {found[:200]}); put it back as exported")
    return {ours[key]: at for at, key in enumerate(header) if key in ours}


def _remarks(
    name: str, table: Sequence[Sequence[Any]], header: Sequence[str], columns: Mapping[str, int]
) -> tuple[str, ...]:
    """The columns that are left unread, though something stands in them."""
    read = set(columns.values())
    extra = [
        f"{key or 'without a name'} ({column_letter(at)})"
        for at, key in enumerate(header)
        if at not in read and any(at < len(cells) and not is_blank(cells[at]) for cells in table[1:])
    ]
    return (f"{name}: not part of the sheet and not read: column {', '.join(extra)}",) if extra else ()


def _missing(name: str, rows: Iterable[FoundRow], columns: Mapping[str, int], known: Mapping[str, Sheet]) -> list[str]:
    """The columns for labels that the sheets of these rows have and the table has not."""
    index = item_index(known)
    sheets = dict.fromkeys(index[row.item] for row in rows if row.item in index)
    needed = [field.name for sheet_id in sheets for field in known[sheet_id].fields]
    missing = [key for key in dict.fromkeys([*needed, *(FREE_FIELDS if sheets else ())]) if key not in columns]
    if not missing:
        return []
    return [f"{name}, row 1: column {', '.join(missing)} is missing; put it back as exported (its cells may be empty)"]


def label_row(
    where: str, item: Any, said: Mapping[str, Any], known: Mapping[str, Sheet], stated: Mapping[str, Any]
) -> FoundRow:
    """The row that one label of a JSON file makes; `stated` is what the file says of digest, instructions and time."""
    fields = {field.name for sheet in known.values() for field in sheet.fields} | set(FREE_FIELDS)
    seconds = stated.get("seconds")
    return FoundRow(
        where=where,
        item=item if isinstance(item, str) else shown(item),
        part=1,
        texts={},
        said={key: (key, value) for key, value in said.items() if key in fields},
        digest=_optional(stated.get("digest")),
        instructions=_optional(stated.get("instructions")),
        seconds=float(seconds) if isinstance(seconds, int | float) and not isinstance(seconds, bool) else None,
    )


def _optional(value: Any) -> str | None:
    return None if value is None else str(value)


@dataclass(slots=True)
class Found:
    """The rows of one file so far, and what is wrong with it."""

    rows: list[FoundRow] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
