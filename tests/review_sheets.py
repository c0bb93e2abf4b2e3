"""Review sheets for tests: laid by hand-made texts, filled in as people and programs do, in every format."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from openpyxl import load_workbook

from rag_judge.records import Mode, VerdictField
from rag_judge.review.html_sheet import EXPORT_FORMAT
from rag_judge.review.instructions import instructions_for
from rag_judge.review.sheet import (
    ReviewContext,
    ReviewTexts,
    Sheet,
    fields_for,
    make_sheet,
    text_digest,
)
from rag_judge.review.writing import Format

ASKED: Mapping[Mode, tuple[VerdictField, ...]] = {
    "passfail": tuple(VerdictField(name, "boolean") for name in ("grounded", "complete", "should_abstain")),
    "scale": (VerdictField("score", "score"),),
    "pairwise": (VerdictField("winner", "choice", choices=("A", "B", "tie")),),
}
LABEL_COLUMNS = ("grounded", "complete", "should_abstain", "did_abstain", "passed", "cause", "critique", "note")
Filled = Mapping[str, Mapping[str, Any]]  # by item id, the cells as a person fills them in


def texts(
    question: str = "How long is the warranty?",
    answer: str = "Two years.",
    contexts: Sequence[tuple[str, str]] = (("doc-1#1", "The warranty is two years."), ("doc-2#4", "Keep the receipt.")),
) -> ReviewTexts:
    return ReviewTexts(question, (answer,), (tuple(ReviewContext(doc, text) for doc, text in contexts),))


def sheet_of(
    drawn: Mapping[str, ReviewTexts] | Sequence[ReviewTexts],
    *,
    lang: str = "en",
    mode: Mode = "passfail",
    annotator: str = "anna",
    seed: int = 1,
) -> Sheet:
    given = drawn if isinstance(drawn, Mapping) else {f"case-{i}": one for i, one in enumerate(drawn)}
    fields = fields_for(mode, ASKED[mode])
    version = instructions_for(mode, fields, lang).version
    sheet, _ = make_sheet(
        given, annotator, mode=mode, fields=fields, lang=lang, instructions_version=version, rng=random.Random(seed)
    )
    return sheet


def known(*sheets: Sheet) -> dict[str, Sheet]:
    return {sheet.sheet_id: sheet for sheet in sheets}


# --- as people fill them in -------------------------------------------------------------------------------------------


def csv_rows(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


def csv_bytes(rows: Sequence[Sequence[str]], encoding: str = "utf-8-sig", separator: str = ",") -> bytes:
    """The rows as a spreadsheet saves them; what the encoding cannot hold becomes a question mark."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator).writerows(rows)
    return text.getvalue().encode(encoding, "replace")


def filled_rows(rows: Sequence[Sequence[str]], filled: Filled) -> list[list[str]]:
    head = list(rows[0])
    return [
        head,
        *([filled.get(row[0], {}).get(name, cell) for name, cell in zip(head, row, strict=True)] for row in rows[1:]),
    ]


def fill_csv(path: Path, filled: Filled) -> Path:
    path.write_bytes(csv_bytes(filled_rows(csv_rows(path), filled)))
    return path


def fill_xlsx(path: Path, filled: Filled) -> Path:
    book = load_workbook(path)
    page = book.worksheets[0]
    at = {str(cell.value): cell.column for cell in page[1]}
    for row in range(2, page.max_row + 1):
        for name, value in filled.get(str(page.cell(row, at["item"]).value), {}).items():
            page.cell(row, at[name]).value = value
    book.save(path)
    return path


def exported(sheet: Sheet, filled: Filled) -> dict[str, Any]:
    """What the page saves of these labels."""
    digests = {item.id: text_digest(item) for item in sheet.items}
    return {
        "format": EXPORT_FORMAT,
        "sheet": sheet.sheet_id,
        "annotator": sheet.annotator,
        "instructions_version": sheet.instructions_version,
        "labels": [
            {"item": item, "digest": digests.get(item, ""), **label, "seconds": 3.5} for item, label in filled.items()
        ],
    }


def fill_html(path: Path, sheet: Sheet, filled: Filled) -> Path:
    saved = path.with_suffix(".labels.json")
    saved.write_text(json.dumps(exported(sheet, filled), ensure_ascii=False), encoding="utf-8")
    return saved


def annotation(label: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """One submitted annotation as Label Studio exports it."""
    result = []
    for name, value in label.items():
        is_text = name in ("critique", "note")
        stated = {"text": [value]} if is_text else {"choices": [value]}
        kind = "textarea" if is_text else "choices"
        result.append({"id": name, "from_name": name, "to_name": "answer", "type": kind, "value": stated})
    return {"id": 7, "completed_by": 3, "was_cancelled": False, "result": result, **more}


def fill_label_studio(path: Path, filled: Filled) -> Path:
    tasks = json.loads(path.read_text(encoding="utf-8"))
    for n, task in enumerate(tasks, 1):
        label = filled.get(task["data"]["item"])
        task |= {"id": n, "project": 1, "annotations": [annotation(label)] if label else [], "predictions": []}
    path.write_text(json.dumps(tasks), encoding="utf-8")
    return path


def fill(path: Path, format: Format, sheet: Sheet, filled: Filled) -> Path:
    """The file that comes back of a sheet that was written to `path`."""
    if format == "html":
        return fill_html(path, sheet, filled)
    return {"xlsx": fill_xlsx, "csv": fill_csv, "label-studio": fill_label_studio}[format](path, filled)
