"""A sheet onto disk in one of the four formats, with what a reviewer needs beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from rag_judge.errors import InputError
from rag_judge.review.csv_sheet import write_csv
from rag_judge.review.html_sheet import render_html
from rag_judge.review.instructions import Instructions, as_lines, instructions_for
from rag_judge.review.label_studio import configuration_of, tasks_of
from rag_judge.review.sheet import Sheet
from rag_judge.review.xlsx import write_xlsx

Format = Literal["xlsx", "csv", "html", "label-studio"]
SUFFIXES: Mapping[Format, str] = {"xlsx": ".xlsx", "csv": ".csv", "html": ".html", "label-studio": ".json"}


def write_sheet(sheet: Sheet, path: Path, format: Format) -> list[Path]:
    """Write the sheet to `path`; returns the files written, the sheet first.

    CSV and Label Studio cannot hold the instructions: they stand beside the sheet as text, and the labelling
    configuration of Label Studio as XML. Raises InputError for a sheet that was laid by other instructions.
    """
    told = instructions_for(sheet.mode, sheet.fields, sheet.lang)
    if told.version != sheet.instructions_version:
        raise InputError(
            f"sheet {sheet.sheet_id} was laid with version {sheet.instructions_version} of the instructions, and this "
            f"program has {told.version}; export a new sample"
        )
    return _WRITERS[format](sheet, told, path)


def _xlsx(sheet: Sheet, told: Instructions, path: Path) -> list[Path]:
    write_xlsx(sheet, told, path)
    return [path]


def _csv(sheet: Sheet, told: Instructions, path: Path) -> list[Path]:
    write_csv(sheet, path)
    return [path, _write_instructions(told, path)]


def _html(sheet: Sheet, told: Instructions, path: Path) -> list[Path]:
    path.write_text(render_html(sheet, told), encoding="utf-8", newline="\n")
    return [path]


def _label_studio(sheet: Sheet, told: Instructions, path: Path) -> list[Path]:
    configuration = path.with_suffix(".xml")
    path.write_text(tasks_of(sheet), encoding="utf-8", newline="\n")
    configuration.write_text(configuration_of(sheet, told), encoding="utf-8", newline="\n")
    return [path, configuration, _write_instructions(told, path)]


def _write_instructions(told: Instructions, path: Path) -> Path:
    beside = path.with_suffix(".instructions.txt")
    beside.write_text("\n".join(as_lines(told)) + "\n", encoding="utf-8-sig", newline="\r\n")
    return beside


_WRITERS: Mapping[Format, Callable[[Sheet, Instructions, Path], list[Path]]] = {
    "xlsx": _xlsx,
    "csv": _csv,
    "html": _html,
    "label-studio": _label_studio,
}
