"""The runs of an archive as a list tells them: manifest, judges, cases, pin, and whether the texts are still there.

A run that cannot be read is named, and hides no other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_judge.archive import RunFolder, find_run, list_runs
from rag_judge.errors import InputError
from rag_judge.pins import Pin, Pinned, pins


@dataclass(frozen=True, slots=True)
class ListedRun:
    """One run that can be read; None for judges or cases that are not known."""

    manifest: Mapping[str, Any]
    judges: str | None  # the models, or `none`
    n_cases: int | None
    pin: Pin | None
    pruned_at: str | None


@dataclass(frozen=True, slots=True)
class Listing:
    """An archive's runs, oldest first; what of it is broken; and pins of runs that are not there."""

    runs: Sequence[ListedRun]
    broken: Sequence[str]
    gone: Mapping[str, Pin]

    def tree(self) -> dict[str, Any]:
        """The listing as JSON: manifests as they stand, and beside them what the archive knows of the runs."""
        by_id = {str(run.manifest["run_id"]): run for run in self.runs}
        return {
            "runs": [dict(run.manifest) for run in self.runs],
            "broken": list(self.broken),
            "pins": {i: pin_tree(run.pin) for i, run in by_id.items() if run.pin}
            | {i: pin_tree(one) for i, one in self.gone.items()},
            "pruned": {i: run.pruned_at for i, run in by_id.items() if run.pruned_at},
        }


def pin_tree(pin: Pin) -> dict[str, str | None]:
    """A pin as JSON."""
    return {"role": pin.role, "note": pin.note, "at": pin.at}


def pinned_tree(pinned: Pinned) -> dict[str, Any]:
    """What pinning changed, as JSON."""
    before = None if pinned.before is None else pin_tree(pinned.before)
    return {"pin": pin_tree(pinned.pin), "before": before, "taken_from": pinned.taken_from}


def listed(archive: Path) -> Listing:
    """The runs of an archive."""
    runs, broken = [], []
    try:
        pinned = pins(archive)
    except InputError as error:
        pinned = {}
        broken.append(str(error))
    folders = list_runs(archive)
    for folder in folders:
        try:
            manifest = folder.manifest()
        except InputError as error:
            broken.append(str(error))
            continue
        judges, n_cases = _judges_and_cases(folder, manifest)
        runs.append(ListedRun(manifest, judges, n_cases, pinned.get(folder.run_id), folder.pruned_at))
    there = {folder.run_id for folder in folders}
    return Listing(runs, broken, {run_id: one for run_id, one in pinned.items() if run_id not in there})


def _judges_and_cases(folder: RunFolder, manifest: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """The judges' models and the number of cases; of an unfinished run, as it was begun."""
    if manifest["status"] == "complete":
        judges = manifest.get("judges") or [manifest.get("judge")]
        eval_set = manifest.get("eval_set")
        n_cases = eval_set.get("n") if isinstance(eval_set, Mapping) else None
        models = [str(one.get("model")) for one in judges if isinstance(one, Mapping)]
        return ",".join(models) or "none", n_cases
    try:
        judge = folder.read_json("request.json")["settings"]["judge"]
        with folder.snapshot.open("rb") as file:
            n = sum(1 for line in file if line.strip())
    except (InputError, OSError, KeyError):
        return None, None  # killed before it had written what it was to do
    if judge.get("prompt") == "none":
        return "none", n
    models = [one["model"] for one in judge.get("panel") or [judge] if one.get("model")]
    return ",".join(models) or None, n


def pin_of(run: RunFolder, say: Callable[[str], None]) -> Pin | None:
    """The pin of a run in the archive that it lies in; None, and said, where the pins cannot be read."""
    archive, run_id = _place(run)
    try:
        return pins(archive).get(run_id)
    except InputError as error:
        say(f"warning: {error}")
        return None


def place_of(archive: Path, name: str) -> tuple[Path, str]:
    """The archive and the id of a run, named by its folder or id; a run that is gone is looked for by its name."""
    try:
        return _place(find_run(archive, name))
    except InputError:
        return archive, Path(name).name


def _place(run: RunFolder) -> tuple[Path, str]:
    path = Path(os.path.abspath(run.path))  # `.` has no name of its own; a link is not followed, it is what is named
    return path.parent, path.name
