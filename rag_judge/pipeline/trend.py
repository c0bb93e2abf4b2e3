"""The runs of an archive read as a trend, and the files of one written. Nothing is graded; no run is changed."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_judge.archive import RunFolder, find_run, list_runs, write_csv
from rag_judge.errors import InputError
from rag_judge.report.terminal import printable
from rag_judge.report.trend_plot import drawn_language, installed_fonts, trend_png, trend_svg
from rag_judge.trend import LeftOut, Trend, trend_of, why_left_out
from rag_judge.trend_output import CSV_COLUMNS, csv_rows
from rag_judge.trend_values import TrendRun

# What a trend reads of a manifest, by the type that it must have where it is there.
_TEXTS = ("name", "parent", "kind", "purpose", "status")
_TREES = ("eval_set", "judge", "system", "cost", "corpus")
_LISTS = ("judges", "prompts")


def trend(archive: Path, names: Sequence[str] = (), *, name: str | None = None, last: int | None = None) -> Trend:
    """The trend of the named runs, or of all of the archive, of those called `name`, of the `last` of these.

    A run that is no point is left out with its reason. Raises InputError for a run that does not exist, for a `last`
    below 1, and where runs are both named and filtered.
    """
    if names and (name is not None or last is not None):
        raise InputError("runs are named, and filtered by --name or --last; do one of these")
    if last is not None and last < 1:
        raise InputError(f"--last: found {last}, expected 1 or more")
    folders = [find_run(archive, one) for one in names] if names else list_runs(archive)
    folders = list({folder.path.resolve(): folder for folder in folders}.values())
    read = [_read(folder) for folder in folders]
    runs = [one for one in read if isinstance(one, TrendRun)]
    left_out = [one for one in read if isinstance(one, LeftOut)]
    elsewhere = _parents(archive, {folder.run_id for folder in folders}) if names else []
    return trend_of(runs, left_out, is_named=bool(names), name=name, last=last, elsewhere=elsewhere)


def write_files(
    found: Trend, lang: str, *, svg: Path | None = None, png: Path | None = None, csv: Path | None = None
) -> str:
    """Write a trend's pictures and table where they are asked for, and give the language that the pictures speak.

    That is English where no installed font can draw Chinese. Raises InputError for a place that cannot be written.
    """
    fonts = installed_fonts() if svg is not None or png is not None else frozenset()
    texts: dict[Path, bytes] = {}
    if svg is not None:
        texts[svg] = trend_svg(found.points, lang, fonts)
    if png is not None:
        texts[png] = trend_png(found.points, lang, fonts)
    if csv is not None:
        texts[csv] = _csv(found)
    for path, content in texts.items():
        try:
            path.write_bytes(content)
        except OSError as error:
            raise InputError(
                f"{path}: cannot be written: {error.strerror}; name a file in a folder that exists"
            ) from error
    return drawn_language(lang, fonts) if fonts else lang


def _csv(found: Trend) -> bytes:
    """The table, each text on one line and none a formula."""
    file = io.StringIO(newline="")
    rows = ([printable(cell) if isinstance(cell, str) else cell for cell in row] for row in csv_rows(found.points))
    write_csv(file, CSV_COLUMNS, rows)
    return file.getvalue().encode("utf-8")


def _read(folder: RunFolder) -> TrendRun | LeftOut:
    """One run, as far as a trend needs it; of one that cannot be read, why."""
    try:
        manifest = folder.manifest()
        if fault := _fault(manifest):
            return LeftOut(folder.run_id, "broken", f"{folder.path / 'manifest.json'}: {fault}")
        reason = why_left_out(manifest)
        if reason is not None:
            return LeftOut(folder.run_id, reason)
        summary = folder.read_json("summary.json")
    except InputError as error:
        return LeftOut(folder.run_id, "broken", str(error))
    found: dict[str, dict[str, Any]] = {}
    unread = []
    for file in ("bias.json", "anchors.json"):
        try:
            if (folder.path / file).exists():
                found[file] = folder.read_json(file)
        except InputError:
            unread.append(file)
    return TrendRun(folder.run_id, manifest, summary, found.get("bias.json"), found.get("anchors.json"), tuple(unread))


def _fault(manifest: Mapping[str, Any]) -> str | None:
    """What of a manifest is not as a run writes it, so that nothing can be said of the run."""
    for key in _TEXTS:
        if not isinstance(manifest.get(key), str | None):
            return f"{key}: expected a text"
    for key in _TREES:
        if not isinstance(manifest.get(key), Mapping | None):
            return f"{key}: expected an object"
    for key in _LISTS:
        if not all(isinstance(one, Mapping) for one in _list(manifest.get(key))):
            return f"{key}: expected a list of objects"
    for judge in [manifest.get("judge") or {}, *_list(manifest.get("judges"))]:
        if fault := _judge_fault(judge):
            return fault
    return None


def _judge_fault(judge: Mapping[str, Any]) -> str | None:
    if not all(isinstance(judge.get(key), list | None) for key in ("models_reported", "fallbacks")):
        return "judge: expected lists of models_reported and fallbacks"
    parameters = judge.get("parameters")
    if not isinstance(parameters, Mapping | None):
        return "judge.parameters: expected an object"
    for tree in (parameters or {}).values():
        if not all(isinstance(one, Mapping) for one in ([tree] if isinstance(tree, Mapping) else _list(tree))):
            return "judge.parameters: expected objects"
    return None


def _list(value: Any) -> list[Any]:
    """A list as such, an empty one of nothing; anything else is one odd entry."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _parents(archive: Path, known: set[str]) -> list[Mapping[str, Any]]:
    """The manifests of the archive's other finished runs, by which a bridge finds its place."""
    found: list[Mapping[str, Any]] = []
    for folder in list_runs(archive):
        if folder.run_id in known:
            continue
        try:
            manifest = folder.manifest()
        except InputError:
            continue  # a run that nobody named and that cannot be read gives no place
        if _fault(manifest) is None and why_left_out(manifest) is None:
            found.append(manifest)
    return found
