"""`runs/`: one folder a run, created, written, finished, read and listed. Nothing is graded here.

A folder has its final name from the first moment; `manifest.json` is replaced by rename, and the one that says
`complete` is written last. Folders and files are readable by their owner alone: they hold what users asked.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from rag_judge.errors import InputError
from rag_judge.gold import by_case, gold, label_from_fields
from rag_judge.records import CaseRow, PairRow
from rag_judge.run_format import Upgrade, in_format

if TYPE_CHECKING:
    import pandas as pd

FORMAT_VERSION = 1
UPGRADES: Mapping[int, Upgrade] = {}  # from a version to the next; there has been one only
PRUNED = "pruned.json"
_NAME = re.compile(r"[^\W_][\w.+-]{0,79}")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
CASE_COLUMNS = tuple(f.name for f in fields(CaseRow))


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run's folder and the names of what it holds."""

    path: Path

    @property
    def run_id(self) -> str:
        """The folder's name, `YYYY-MM-DD-NAME`."""
        return self.path.name

    @property
    def snapshot(self) -> Path:
        """The cases as used."""
        return self.path / "questions.snapshot.jsonl"

    @property
    def answers(self) -> Path:
        """The answers as judged."""
        return self.path / "answers.jsonl"

    def answers_of(self, side: str) -> Path:
        """Where a comparison keeps the answers of one side, `a` or `b`."""
        return self.path / f"answers.{side}.jsonl"

    @property
    def journal(self) -> Path:
        """The call journal."""
        return self.path / "calls.jsonl"

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        """Replace one JSON file by rename, so that a reader sees the old one or the new one, whole."""
        text = json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False)
        self.write_text(name, text + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Replace one text file by rename. A lone surrogate, which UTF-8 cannot hold, becomes `?`."""
        with self.replacing(name) as file:
            file.write(text.encode("utf-8", "replace"))

    @contextmanager
    def replacing(self, name: str) -> Iterator[BinaryIO]:
        """A file that takes the place of `name` when the block ends, and not before."""
        draft = self.path / f".{name}.part"
        with open_private(draft, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path / name)

    def read_json(self, name: str) -> dict[str, Any]:
        """One JSON file of the run. Raises InputError when it is missing or unreadable."""
        path = self.path / name
        try:
            value = json.loads(path.read_bytes())
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise InputError(f"{path}: not valid JSON: {error}") from error
        if not isinstance(value, dict):
            raise InputError(f"{path}: expected a JSON object")
        return value

    def manifest(self) -> dict[str, Any]:
        """The run's manifest. Raises InputError for one that is broken or of a format that is not read here."""
        manifest = self.read_json("manifest.json")
        if "format_version" in manifest:
            manifest = in_format(manifest, FORMAT_VERSION, UPGRADES, self.path)
        if not {"format_version", "run_id", "status"} <= manifest.keys():
            raise InputError(f"{self.path / 'manifest.json'}: not the manifest of a run; the file was changed")
        return manifest

    def lines(self) -> list[str]:
        """The terminal lines of a finished run. Raises InputError when they are missing."""
        try:
            return (self.path / "hit.txt").read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise InputError(f"{self.path / 'hit.txt'}: cannot be read: {error.strerror}") from error

    @property
    def is_complete(self) -> bool:
        """True when the manifest says that the run was finished."""
        return (self.path / "manifest.json").is_file() and self.manifest()["status"] == "complete"

    @property
    def pruned_at(self) -> str | None:
        """The day on which the run's texts were pruned, `?` where that is not told; None for a run that has them."""
        if not (self.path / PRUNED).exists():
            return None
        try:
            return str(self.read_json(PRUNED)["at"])[:10]
        except (InputError, KeyError):
            return "?"

    def check_texts(self) -> None:
        """Raise InputError for a run whose texts were pruned: it has its numbers and nothing to make others of."""
        day = self.pruned_at
        if day is None:
            return
        there = sorted(path.name for path in self.path.iterdir() if path.is_file() and path.name != PRUNED)
        raise InputError(
            f"{self.path}: the texts of this run (cases, answers, replies, tables) were pruned on {day}; still there: "
            f"{', '.join(there)}\nits numbers are shown by `rag-judge runs show` and `rag-judge trend`; for anything "
            "else, name a run that has its texts, and keep one with `rag-judge runs pin`"
        )


def open_private(path: Path, mode: str) -> BinaryIO:
    """Open a binary file that only its owner can read, whatever the process's umask."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, 0o600))  # type: ignore[return-value]


def checked_name(name: str) -> str:
    """A run name that stays inside the archive. Raises InputError for path parts, spaces and odd characters."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"run name {name!r}: expected up to 80 letters, digits and . _ + - with a letter or digit first; no path"
        )
    return name


def create_run(archive: Path, name: str, today: date) -> RunFolder:
    """A new, empty run folder `YYYY-MM-DD-NAME`, with -2, -3 … when that is taken."""
    checked_name(name)
    try:
        archive.mkdir(parents=True, exist_ok=True)
        for number in range(1, 10_000):
            path = archive / (f"{today.isoformat()}-{name}" + ("" if number == 1 else f"-{number}"))
            try:
                path.mkdir(mode=0o700)  # atomic: two runs started at once get two folders
            except FileExistsError:
                continue
            return RunFolder(path)
    except OSError as error:
        raise InputError(f"{archive}: no run can be written there: {error.strerror}") from error
    raise InputError(f"{archive}: there are 9,999 runs named {name} of today already")


def find_run(archive: Path, run: str) -> RunFolder:
    """The run named by a path or by its id inside the archive. Raises InputError when there is none."""
    for path in (Path(run), archive / run):
        if (path / "manifest.json").is_file():
            return RunFolder(path)
    raise InputError(f"no run {run!r}: neither a run folder nor an id in {archive}; `rag-judge runs` lists them")


def list_runs(archive: Path) -> list[RunFolder]:
    """The runs of an archive, oldest first."""
    if not archive.is_dir():
        return []
    folders = (path for path in sorted(archive.iterdir()) if not path.name.startswith("."))
    return [RunFolder(path) for path in folders if (path / "manifest.json").is_file()]


# --- the case table -----------------------------------------------------------------------------------------------


def cell(value: object) -> str:
    """A value as it stands in `cases.csv`: empty for None, true/false, numbers as %.6g, text that is no formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    text = _CONTROLS.sub(" ", str(value))  # a terminal that shows the file would obey them
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def write_table(run: RunFolder, stem: str, rows: Sequence[CaseRow] | Sequence[PairRow], kind: type) -> None:
    """Write `STEM.csv` and `STEM.parquet`: a row each, in the order given; the columns are the fields of `kind`."""
    import io

    columns = [f.name for f in fields(kind)]
    with run.replacing(f"{stem}.csv") as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="", write_through=True)
        write_csv(text, columns, ([getattr(row, name) for name in columns] for row in rows))
        text.detach()
    _write_parquet(run, stem, rows, kind)


def write_csv(file: TextIO, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV with LF line ends, each value as `cell` gives it."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([cell(value) for value in row] for row in rows)


def _write_parquet(run: RunFolder, stem: str, rows: Sequence[CaseRow] | Sequence[PairRow], kind: type) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    types = {"bool": pa.bool_(), "int": pa.int64(), "float": pa.float64()}
    columns = {}
    for f in fields(kind):
        cell_type = str(f.type).split(" |")[0]
        values = [getattr(row, f.name) for row in rows]
        if cell_type not in types:
            values = [None if value is None else value.encode("utf-8", "replace").decode() for value in values]
        columns[f.name] = pa.array(values, types.get(cell_type, pa.string()))
    with run.replacing(f"{stem}.parquet") as file:
        pyarrow.parquet.write_table(pa.table(columns), file)


# --- reading a finished run ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run as it stands in the archive."""

    folder: RunFolder
    manifest: Mapping[str, Any]
    summary: Mapping[str, Any]

    def table(self) -> pd.DataFrame:
        """The cases (of a comparison, the pairs), a row each, in snapshot order; missing values are pandas' own.

        Where people have labelled some, `human_FIELD` is what they agree on or a third reader settled, and `n_labels`
        how many labels a case has; empty where they differ, are unsure, or were not asked.
        """
        import pandas as pd

        self.folder.check_texts()
        stem = "pairs" if self.manifest.get("kind") == "pairwise" else "cases"
        table = pd.read_parquet(self.folder.path / f"{stem}.parquet", dtype_backend="pyarrow")
        labels = self.folder.path / "review" / "labels.jsonl"
        if not labels.exists():
            return table
        ids = table["id"].mask(table["id"].duplicated(), "")  # of several answers people review the first
        return table.join(pd.DataFrame(human_columns(labels, ids)))


def case_rows_of(run: FinishedRun, *, every_answer: bool = False) -> list[CaseRow]:
    """The rows of a finished run's case table, in snapshot order; columns that are not known here are left out.

    Of several answers to a case the first alone, which is the one that people review; with `every_answer` all.
    """
    rows = [CaseRow(**row) for row in _kept_rows(run.folder.path / "cases.parquet", CaseRow)]
    if every_answer or all(row.answer_no is None for row in rows):
        return rows
    first: dict[str, CaseRow] = {}
    for row in rows:
        first.setdefault(row.id, row)
    return list(first.values())


def rows_not_passed(run: FinishedRun, most: int) -> tuple[list[CaseRow], int]:
    """The first rows of a finished run that did not pass, in snapshot order, and how many there are."""
    import pyarrow.compute

    table = _kept_table(run.folder.path / "cases.parquet")
    left = table.filter(pyarrow.compute.field("outcome") != "pass")
    return [CaseRow(**row) for row in _known_rows(left.slice(0, most), CaseRow)], left.num_rows


def pair_rows_of(run: FinishedRun) -> list[PairRow]:
    """The rows of a finished comparison."""
    return [PairRow(**row) for row in _kept_rows(run.folder.path / "pairs.parquet", PairRow)]


def _kept_rows(path: Path, kind: type) -> Iterator[dict[str, Any]]:
    return _known_rows(_kept_table(path), kind)


def _kept_table(path: Path) -> Any:
    import pyarrow.parquet

    RunFolder(path.parent).check_texts()
    try:
        return pyarrow.parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


def _known_rows(table: Any, kind: type) -> Iterator[dict[str, Any]]:
    known = {f.name for f in fields(kind)}
    for batch in table.to_batches():
        for row in batch.to_pylist():
            yield {name: value for name, value in row.items() if name in known}


def read_run(path: str | Path, *, texts: bool = True) -> FinishedRun:
    """A finished run; without `texts`, for its numbers alone, also one whose texts were pruned.

    Raises InputError for a folder that is none, an unfinished or pruned run, or a format that is not read here.
    """
    folder = RunFolder(Path(path))
    manifest = folder.manifest()
    if manifest.get("status") != "complete":
        command = "pairwise" if manifest.get("kind") == "pairwise" else "run"
        raise InputError(f"{path}: the run is not complete; finish it with `rag-judge {command} --resume {path}`")
    if texts:
        folder.check_texts()
    return FinishedRun(folder, manifest, folder.read_json("summary.json"))


def human_columns(path: Path, ids: Iterable[str]) -> dict[str, list[Any]]:
    """The columns that the labels of a run add to its table, by name, in the order of the ids."""
    with path.open(encoding="utf-8") as file:
        found = by_case(label_from_fields(json.loads(line)) for line in file if line.strip())
    names = sorted({name for labels in found.values() for label in labels for name in label.values})
    columns: dict[str, list[Any]] = {f"human_{name}": [] for name in names}
    columns["n_labels"] = []
    for case_id in ids:
        labels = found.get(case_id, [])
        columns["n_labels"].append(len(labels))
        for name in names:
            columns[f"human_{name}"].append(gold(labels, name))
    return columns


def copy_into(run: RunFolder, name: str, write: Callable[[BinaryIO], None]) -> None:
    """Fill one file of the run by a function that writes bytes, replacing it as a whole."""
    with run.replacing(name) as file:
        write(file)
