"""Which runs of an archive may lose their texts, or go, and the removing. What a run's numbers are is not looked at.

Texts are what users asked and what was answered; manifest, numbers and decisions of a run are small, and stay. What is
to be done is decided on facts (`fates`, pure); a killed prune goes on where it was.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from rag_judge.archive import PRUNED, RunFolder, list_runs
from rag_judge.errors import InputError
from rag_judge.journal import sent_log
from rag_judge.pins import pins

TEXTS = (
    *("questions.snapshot.jsonl", "answers.jsonl", "answers.a.jsonl", "answers.b.jsonl", "calls*.jsonl", "prompts"),
    *("cases.csv", "cases.parquet", "pairs.csv", "pairs.parquet", "report.html", "report.md", "sent.ids", ".*.part"),
    *("probes.jsonl", "answers.part.jsonl", "probes.part.jsonl"),
)
MOST = 100_000  # runs, and days
DOOMED = ".removed-"  # before the name of a folder that is being removed
IN_USE_FOR = timedelta(hours=1)  # an unfinished run whose files changed since then is one that somebody works at
EDITED_AFTER = timedelta(hours=1)  # a sheet that changed so long after its design was not written by us
Action = Literal["prune", "remove", "keep"]
Why = Literal[
    "old",
    "goes_on",
    "link",
    "broken",
    "pinned",
    "asked",
    "labelled",
    "edited_sheet",
    "sample",
    "in_use",
    "unfinished_young",
    "unfinished",
    "last",
    "young",
    "needed",
    "pruned",
]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What of a run decides whether it may be pruned."""

    run_id: str
    status: Literal["complete", "unfinished", "broken"]
    at: datetime  # when it ended; of one that did not, when a file of it last changed
    pinned_as: str | None = None
    has_labels: bool = False
    has_sample: bool = False
    has_edited_sheet: bool = False  # a review sheet that was changed and is not imported
    needs: frozenset[str] = frozenset()  # runs that it was held against, or was made of
    is_pruned: bool = False
    is_link: bool = False
    is_in_use: bool = False
    text_bytes: int = 0
    all_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept: the last so many finished runs, those younger than so many days, and those that are named.

    `whole` removes old runs altogether; `unlabelled` prunes those, too, whose review sample nobody has labelled.
    """

    keep_last: int = 30
    older_than_days: float = 90
    keep: frozenset[str] = frozenset()
    whole: bool = False
    unlabelled: bool = False


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one run, and why; `detail` is the role it is pinned as, or the run that needs it."""

    run_id: str
    action: Action
    why: Why
    detail: str = ""
    freed_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was done to an archive; with `dry_run`, what would have been."""

    fates: Sequence[Fate]
    dry_run: bool

    @property
    def n_pruned(self) -> int:
        """How many runs lost their texts or were removed."""
        return sum(fate.action != "keep" for fate in self.fates)

    @property
    def freed_bytes(self) -> int:
        """What that freed."""
        return sum(fate.freed_bytes for fate in self.fates)


# --- deciding ------------------------------------------------------------------------------------------------------


def fates(facts: Sequence[RunFacts], now: datetime, rules: Retention) -> list[Fate]:
    """What becomes of each run, in the order given."""
    complete = sorted((one for one in facts if one.status == "complete"), key=lambda one: (one.at, one.run_id))
    last = {one.run_id for one in complete[max(0, len(complete) - rules.keep_last) :]}
    reasons = {one.run_id: _stays(one, now, rules, one.run_id in last) for one in facts}
    whole = [one for one in facts if reasons[one.run_id] is not None and not one.is_pruned]
    needed_by = {run_id: one.run_id for one in reversed(whole) for run_id in one.needs}
    return [_fate(one, reasons[one.run_id], needed_by.get(one.run_id), rules) for one in facts]


def prunable(facts: Sequence[RunFacts], now: datetime, rules: Retention) -> list[str]:
    """The ids of the runs that would lose their texts or be removed, in the order given."""
    return [fate.run_id for fate in fates(facts, now, rules) if fate.action != "keep"]


def _stays(run: RunFacts, now: datetime, rules: Retention, is_last: bool) -> tuple[Why, str] | None:
    """Why a run stays, for itself; the first reason that applies. None where none does."""
    is_old = now - run.at >= timedelta(days=rules.older_than_days)
    is_unfinished = run.status == "unfinished"
    reasons: tuple[tuple[bool, Why, str], ...] = (
        (run.is_link, "link", ""),
        (run.status == "broken", "broken", ""),
        (run.pinned_as is not None, "pinned", run.pinned_as or ""),
        (run.run_id in rules.keep, "asked", ""),
        (run.has_labels, "labelled", ""),
        (run.has_edited_sheet, "edited_sheet", ""),
        (run.has_sample and not rules.unlabelled, "sample", ""),
        (is_unfinished and (run.is_in_use or now - run.at < IN_USE_FOR), "in_use", ""),
        (is_unfinished and not is_old, "unfinished_young", ""),
        (is_unfinished and not rules.whole, "unfinished", ""),
        (is_last, "last", ""),
        (not is_old, "young", ""),
    )
    return next(((why, detail) for applies, why, detail in reasons if applies), None)


def _fate(run: RunFacts, stays: tuple[Why, str] | None, needed_by: str | None, rules: Retention) -> Fate:
    if stays is None and needed_by is not None:
        stays = ("needed", needed_by)
    if stays is None and rules.whole:
        return Fate(run.run_id, "remove", "old", freed_bytes=run.all_bytes)
    if run.is_pruned and run.text_bytes and not run.is_link:
        return Fate(run.run_id, "prune", "goes_on", freed_bytes=run.text_bytes)
    if stays is None and run.is_pruned:
        stays = ("pruned", "")
    if stays is not None:
        return Fate(run.run_id, "keep", *stays)
    return Fate(run.run_id, "prune", "old", freed_bytes=run.text_bytes)


# --- the facts -----------------------------------------------------------------------------------------------------


def facts_of(run: RunFolder, now: datetime, pinned_as: str | None = None) -> RunFacts:
    """The facts of one run. What cannot be read of it makes it a broken one, which stays."""
    texts = sum(size_of(path) for path in _texts(run))
    found: dict[str, Any] = {"pinned_as": pinned_as, "text_bytes": texts, "all_bytes": size_of(run.path)}
    found |= {"is_link": run.path.is_symlink(), "is_pruned": run.pruned_at is not None}
    try:
        manifest = run.manifest()
        needs = _needs(run, manifest)
    except InputError:
        return RunFacts(run.run_id, "broken", _changed_at(run.path / "manifest.json", now), **found)
    if manifest["status"] != "complete":
        changed = max((_changed_at(path, now) for path in run.path.rglob("*")), default=now)
        return RunFacts(run.run_id, "unfinished", changed, **found, needs=needs, is_in_use=_is_locked(run))
    at = _told(manifest, now) or _changed_at(run.path / "manifest.json", now)
    return RunFacts(run.run_id, "complete", at, **found, needs=needs, **_review_facts(run.path / "review"))


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files below a folder; a link counts as nothing."""
    if path.is_symlink():
        return 0
    if path.is_dir():
        return sum(size_of(one) for one in path.iterdir())
    return path.stat().st_size


def _texts(run: RunFolder) -> Iterator[Path]:
    """What there is of a run's texts, in the order in which they are removed."""
    for pattern in TEXTS:
        yield from sorted(run.path.glob(pattern))
    review = _review_facts(run.path / "review")
    if review.get("has_sample") and not review["has_labels"]:
        yield run.path / "review"  # its sheets show what users asked


def _needs(run: RunFolder, manifest: Mapping[str, Any]) -> frozenset[str]:
    """The runs that this one was held against, or is a new grading of; of these it may be asked again."""
    names = [manifest.get("parent")] if manifest.get("purpose") == "bridge" else []
    for file, keys in (
        ("nightly.json", ("baseline", "compared_with", "anchors_run")),
        ("anchors.json", ("reference", "anchors_run")),
        ("comparison.json", ("a",)),
    ):
        if (run.path / file).exists():
            tree = run.read_json(file)
            names += [tree.get(key) for key in keys]
    return frozenset(name for name in names if isinstance(name, str) and name != run.run_id)


def _told(manifest: Mapping[str, Any], now: datetime) -> datetime | None:
    """When the run ended, as its manifest says; None where it says nothing that can be read."""
    for name in ("finished_at", "started_at"):
        try:
            told = datetime.fromisoformat(manifest[name])
        except (KeyError, TypeError, ValueError):
            continue
        return told if told.tzinfo is not None else told.replace(tzinfo=now.tzinfo)
    return None


def _changed_at(path: Path, now: datetime) -> datetime:
    return datetime.fromtimestamp(path.lstat().st_mtime, now.tzinfo)


def _review_facts(review: Path) -> dict[str, Any]:
    """Whether people have labelled a run, were to, or have begun to."""
    labels, design = review / "labels.jsonl", review / "design.json"
    if not design.exists():
        return {"has_labels": labels.exists() and labels.stat().st_size > 0}
    drawn_at = design.stat().st_mtime
    sheets = [path for path in review.iterdir() if path.is_file() and path.name not in (labels.name, design.name)]
    edited = any(path.stat().st_mtime > drawn_at + EDITED_AFTER.total_seconds() for path in sheets)
    has_labels = labels.exists() and labels.stat().st_size > 0
    return {"has_labels": has_labels, "has_sample": True, "has_edited_sheet": edited and not has_labels}


def _is_locked(run: RunFolder) -> bool:
    """True while a process is asking the judge for this run."""
    try:
        fd = os.open(sent_log(run.journal), os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


# --- doing ---------------------------------------------------------------------------------------------------------


def prune_archive(
    archive: Path,
    now: datetime,
    *,
    keep_last: int = 30,
    older_than_days: float = 90,
    whole: bool = False,
    unlabelled: bool = False,
    keep: frozenset[str] | set[str] = frozenset(),
    dry_run: bool = False,
) -> Pruned:
    """Prune an archive, and say what became of each run. Raises InputError for rules or pins that cannot be."""
    for name, value in (("--older-than", older_than_days), ("--keep", keep_last)):
        if not 0 <= value <= MOST:
            raise InputError(f"{name}: found {value}, expected 0 to {MOST}")
    now = now if now.tzinfo is not None else now.astimezone()
    rules = Retention(keep_last, older_than_days, frozenset(keep), whole, unlabelled)
    pinned = pins(archive)
    doomed = sorted(archive.glob(f"{DOOMED}*")) if archive.is_dir() else []
    found = [Fate(one.name.removeprefix(DOOMED), "remove", "goes_on", "", size_of(one)) for one in doomed]
    roles = {run_id: one.role for run_id, one in pinned.items()}
    folders = {run.run_id: run for run in list_runs(archive)}
    facts = [facts_of(run, now, roles.get(run_id)) for run_id, run in folders.items()]
    of_runs = fates(facts, now, rules)
    if not dry_run:
        for path in doomed:
            _remove(path)
        for fate in of_runs:
            _carry_out(folders[fate.run_id], fate, now)
    return Pruned([*found, *of_runs], dry_run)


def _carry_out(run: RunFolder, fate: Fate, now: datetime) -> None:
    if fate.action == "remove":
        grave = run.path.with_name(f"{DOOMED}{run.run_id}")
        _remove(grave)
        run.path.rename(grave)  # from one moment to the next there is no such run; a kill leaves no half of one
        _remove(grave)
    elif fate.action == "prune":
        texts = list(_texts(run))
        if run.pruned_at is None:  # said first: a killed prune leaves no run that looks whole
            told = {"at": now.isoformat(timespec="seconds"), "files": [path.name for path in texts]}
            run.write_json(PRUNED, {**told, "bytes": fate.freed_bytes})
        for path in texts:
            if path.name == "review":  # under a name that a later prune takes for what it is, also where half is gone
                path = path.rename(run.path / ".review.part")
            _remove(path)


def _remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all that is in it; nothing where there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
