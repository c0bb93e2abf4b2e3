"""`pins.json` of an archive: runs that stay, and what for. No run's own folder is touched.

The file may be written by hand: an object by run id of {"role", "note", "at"}, or of a role alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rag_judge.archive import RunFolder
from rag_judge.errors import InputError

PINS, _LOCK = "pins.json", ".pins.lock"
ROLES = ("baseline", "anchors", "kept")
SINGLE_ROLES = ("baseline", "anchors")  # one run at most
_LOCK_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Pin:
    """What a run is pinned for, with a note, and since when; None where the file does not say."""

    role: str
    note: str | None = None
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Pinned:
    """What pinning changed: the run's own pin from before, and the run that had the role until now."""

    run_id: str
    pin: Pin
    before: Pin | None
    taken_from: str | None


def pins(archive: Path) -> dict[str, Pin]:
    """The pins of an archive by run id. Raises InputError for a file that says what no pin can be."""
    path = archive / PINS
    try:
        raw = json.loads(path.read_bytes(), object_pairs_hook=_no_key_twice)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON: {error}; mend it, or remove it and pin anew") from error
    if not isinstance(raw, dict):
        raise InputError(f'{path}: found {_shown(raw)}, expected an object: {{"RUN": {{"role": "kept"}}}}')
    found = {run_id: _pin(path, run_id, value) for run_id, value in raw.items()}
    for role in SINGLE_ROLES:
        having = [run_id for run_id, one in found.items() if one.role == role]
        if len(having) > 1:
            raise InputError(f"{path}: {' and '.join(having)} are pinned as {role}, which one run can be; remove a pin")
    return found


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree = dict(pairs)
    if len(tree) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} stands there twice")
    return tree


def _pin(path: Path, run_id: str, value: Any) -> Pin:
    """One entry of the file. Raises InputError naming it."""
    if not run_id or run_id != Path(run_id).name:
        raise InputError(f"{path}: {run_id!r}: expected the id of a run: its folder's name, without a path")
    tree = {"role": value} if isinstance(value, str) else value
    if not isinstance(tree, dict):
        raise InputError(f'{path}: {run_id}: found {_shown(value)}, expected {{"role": "kept"}}')
    role = tree.get("role")
    if role not in ROLES:
        raise InputError(f"{path}: {run_id}: role: found {_shown(role)}, expected one of {', '.join(ROLES)}")
    for name in ("note", "at"):
        if not isinstance(tree.get(name), str | None):
            raise InputError(f"{path}: {run_id}: {name}: found {_shown(tree[name])}, expected a text")
    return Pin(role, tree.get("note"), tree.get("at"))


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:80]


def pinned_as(archive: Path, role: str) -> RunFolder | None:
    """The run that has a role which one run can have. Raises InputError where that run is gone."""
    run_id = next((run_id for run_id, one in pins(archive).items() if one.role == role), None)
    if run_id is None:
        return None
    if not (archive / run_id / "manifest.json").is_file():
        raise InputError(
            f"{archive / PINS}: {run_id} is pinned as {role} and is not in the archive; pin another run, or "
            f"rag-judge runs pin {run_id} --remove"
        )
    return RunFolder(archive / run_id)


def baseline(archive: Path) -> RunFolder | None:
    """The run that is pinned as baseline; None without one. Raises InputError where that run is gone."""
    return pinned_as(archive, "baseline")


def pin(archive: Path, run_id: str, role: str, note: str | None, now: datetime) -> Pinned:
    """Pin a run. A role that one run can have is taken from the run that had it, which is pinned no more.

    Raises InputError for an unknown role, for a run that is not in the archive, or one that cannot have the role.
    """
    if role not in ROLES:
        raise InputError(f"role {role!r}: expected one of {', '.join(ROLES)}")
    if run_id != Path(run_id).name or not (archive / run_id / "manifest.json").is_file():
        raise InputError(f"no run {run_id!r} in {archive}; `rag-judge runs` lists them")
    _check_role(RunFolder(archive / run_id), role)
    new = Pin(role, note or None, now.isoformat(timespec="seconds"))
    with _changing(archive) as known:
        before = known.pop(run_id, None)
        taken_from = None
        if role in SINGLE_ROLES:
            taken_from = next((other for other, one in known.items() if one.role == role), None)
            known.pop(taken_from or "", None)
        known[run_id] = new
    return Pinned(run_id, new, before, taken_from)


def unpin(archive: Path, run_id: str) -> Pin:
    """Remove a run's pin, and give what it was. Raises InputError for a run that is not pinned."""
    with _changing(archive) as known:
        if run_id not in known:
            raise InputError(f"{run_id} is not pinned in {archive}; `rag-judge runs` shows the runs that are")
        return known.pop(run_id)


def _check_role(run: RunFolder, role: str) -> None:
    """Raise InputError for a run that cannot have this role."""
    if role not in SINGLE_ROLES:
        return
    manifest = run.manifest()
    if manifest["status"] != "complete":
        raise InputError(f"{run.path}: the run is not complete, so it cannot be pinned as {role}; finish it first")
    run.check_texts()
    purpose = manifest.get("purpose")
    if manifest.get("kind", "run") != "run":
        raise InputError(f"{run.path}: a comparison of two runs cannot be pinned as {role}; name a run")
    if role == "baseline" and purpose is not None:
        raise InputError(f"{run.path}: a run of purpose {purpose} cannot be the baseline; name a run of the system")
    if role == "anchors" and purpose != "anchors":
        raise InputError(f"{run.path}: not a run of the judge's anchors; those are made by `rag-judge nightly`")


@contextmanager
def _changing(archive: Path) -> Iterator[dict[str, Pin]]:
    """The pins, written when the block ends; other processes wait. Raises InputError where one holds them too long."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(archive / _LOCK, timeout=_LOCK_TIMEOUT_S, mode=0o600):
            known = pins(archive)
            yield known
            RunFolder(archive).write_json(PINS, {run_id: _fields(one) for run_id, one in known.items()})
    except Timeout:
        raise InputError(f"{archive / _LOCK}: another process is changing the pins; try again") from None


def _fields(one: Pin) -> Mapping[str, Any]:
    return {"role": one.role, "note": one.note, "at": one.at}
