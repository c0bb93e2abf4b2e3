"""One night at a time: a lock that the system releases when its holder dies, and a word on who holds it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

LOCK, HOLDER = ".nightly.lock", ".nightly.holder.json"


@dataclass(frozen=True, slots=True)
class Lock:
    """How the lock was found: held now by us, or not; and who held it before without giving it back, if anyone."""

    is_ours: bool
    holder: Mapping[str, Any] | None


@contextmanager
def night_lock(archive: Path, now: datetime) -> Iterator[Lock]:
    """The archive's lock for the length of the block; not ours where another process has it.

    The lock is the system's own on an open file, and so never outlives its process. Raises OSError for an archive that
    cannot be written.
    """
    from filelock import FileLock, Timeout

    archive.mkdir(parents=True, exist_ok=True)
    holder = archive / HOLDER
    lock = FileLock(archive / LOCK, timeout=0, mode=0o600)
    try:
        lock.acquire()
    except Timeout:
        yield Lock(False, _read(holder))
        return
    try:
        before = _read(holder)
        told = {"pid": os.getpid(), "host": socket.gethostname(), "started_at": now.isoformat(timespec="seconds")}
        holder.write_text(json.dumps(told), encoding="utf-8")
        yield Lock(True, before)
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _read(path: Path) -> Mapping[str, Any] | None:
    """Who holds the lock, as far as it is told; None where nothing is."""
    try:
        told = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) and {"pid", "host", "started_at"} <= told.keys() else None
