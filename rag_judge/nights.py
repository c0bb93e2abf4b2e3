"""What the archive says of earlier nights: which was good, which judge graded it, and what was interrupted. Pure.

Everything is read from the runs themselves, so that a night that is killed leaves nothing behind that could be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from rag_judge.anchors import MOST_UNREAD
from rag_judge.archive import RunFolder, list_runs
from rag_judge.errors import InputError

ANCHORS, BRIDGE = "anchors", "bridge"
NIGHT_FILE = "nightly.json"
GOES_ON_FOR = timedelta(hours=18)  # a night that was interrupted longer ago is over
Tree = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Past:
    """One run of the archive, with what its night wrote beside it."""

    folder: RunFolder
    manifest: Tree
    night: Tree | None  # nightly.json; None for a run of no night, or of one that has not come so far
    read_share: float | None = None  # of the answers that the judge was to see, those with a decided pass

    @property
    def started_at(self) -> datetime:
        """When the run was begun; a time without a zone is of this machine's."""
        at = datetime.fromisoformat(self.manifest["started_at"])
        return at if at.tzinfo is not None else at.astimezone()

    @property
    def is_complete(self) -> bool:
        """True for a finished run."""
        return bool(self.manifest["status"] == "complete")

    @property
    def is_read(self) -> bool:
        """True when the judge's replies could be read: few enough answers are without a verdict to stand for it."""
        return self.read_share is not None and self.read_share >= 1 - MOST_UNREAD

    @property
    def purpose(self) -> str | None:
        """`anchors`, `bridge`, or None for an ordinary run."""
        return self.manifest.get("purpose")


def past_runs(archive: Path) -> list[Past]:
    """The runs of an archive by the time at which they were begun; what cannot be read is none."""
    found = []
    for folder in list_runs(archive):
        try:
            manifest = folder.manifest()
            night = folder.read_json(NIGHT_FILE) if (folder.path / NIGHT_FILE).exists() else None
            datetime.fromisoformat(manifest["started_at"])
            share = _read_share(folder) if manifest.get("purpose") and manifest["status"] == "complete" else None
        except (InputError, KeyError, TypeError, ValueError):
            continue  # `runs` names it as broken; it is no baseline
        if manifest.get("kind", "run") == "run":
            found.append(Past(folder, manifest, night, share))
    return sorted(found, key=lambda past: (past.started_at.timestamp(), past.folder.run_id))


def _read_share(folder: RunFolder) -> float:
    judge = folder.read_json("summary.json")["judge"]
    return float(judge["graded"] / judge["drawn"]) if judge.get("drawn") else 0.0


def to_go_on(past: Sequence[Past], name: str, purpose: str | None, now: datetime) -> Past | None:
    """The run of a night that was interrupted and is young enough to go on with; None starts a new one.

    A complete run of a night that did not come to its end is one, too: what came after it is still to do.
    """
    ended = {one.night.get("anchors_run") for one in past if one.night is not None and one.night.get("finished")}
    for one in reversed(past):
        if one.purpose != purpose or one.manifest.get("name") != name or now - one.started_at > GOES_ON_FOR:
            continue
        is_over = one.folder.run_id in ended if purpose == ANCHORS else bool(one.night and one.night.get("finished"))
        return None if is_over else one
    return None


def last_good(past: Iterable[Past], tonight: str) -> Past | None:
    """The last night before this one that could be shipped and was comparable with those before it."""
    good = [
        one
        for one in past
        if one.folder.run_id != tonight
        and one.is_complete
        and one.purpose is None
        and one.night is not None
        and one.night.get("decision") == "ship"
        and one.night.get("comparable") is True
    ]
    return good[-1] if good else None


def ended_before(past: Iterable[Past], tonight: str) -> tuple[str | None, datetime | None]:
    """How the night before this one ended, by the name of its notice, and since when nights have ended so."""
    ends = [
        (str(one.night.get("ended")), one.started_at)
        for one in past
        if one.night is not None and one.night.get("finished") and one.folder.run_id != tonight
    ]
    if not ends:
        return None, None
    last = ends[-1][0]
    since = ends[-1][1]
    for ended, started_at in reversed(ends):
        if ended != last:
            break
        since = started_at
    return last, since


def reference_of(past: Sequence[Past], pinned: str | None, tonight: str | None) -> Past | None:
    """The anchors run that the judge is held against: the pinned or first one, or the last before a later bridge.

    A bridge says that the judge has moved and that this was dealt with: from then on it is held against what it was
    then. None where the judge has never been asked of its anchors. Where its replies could not be read, a run says
    nothing of the judge and counts for neither.
    """
    anchors = [one for one in past if one.purpose == ANCHORS and one.is_read and one.folder.run_id != tonight]
    if not anchors:
        return None
    first = next((one for one in anchors if one.folder.run_id == pinned), anchors[0])
    bridged_at = max((one.started_at for one in past if one.purpose == BRIDGE and one.is_read), default=None)
    if bridged_at is None or bridged_at <= first.started_at:
        return first
    return [one for one in anchors if one.started_at <= bridged_at][-1]


def graded_alike(
    past: Sequence[Past], baseline: Past, since: datetime | None, is_same_judge: Callable[[Tree], bool]
) -> Past | None:
    """The baseline's answers as today's judge graded them: the baseline itself, or the newest bridge of it.

    `since` is when the judge became what it is. None where neither is of this judge.
    """
    bridges = [
        one
        for one in past
        if one.purpose == BRIDGE and one.is_read and one.manifest.get("parent") == baseline.folder.run_id
    ]
    alike = [
        one
        for one in (baseline, *bridges)
        if is_same_judge(one.manifest) and (since is None or one.started_at >= since)
    ]
    return alike[-1] if alike else None
