"""What a finished run's files were when it ended, as its manifest keeps it, and whether they still are.

Of files that are never written again alone: labels, reports and what is found out later may change. Nothing is mended.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rag_judge.archive import FORMAT_VERSION, PRUNED, RunFolder
from rag_judge.errors import InputError
from rag_judge.rows import file_sha256

FINAL = (
    *("questions.snapshot.jsonl", "answers.jsonl", "answers.a.jsonl", "answers.b.jsonl", "calls*.jsonl"),
    *("probes.jsonl", "cases.csv", "cases.parquet", "pairs.csv", "pairs.parquet"),
    *("summary.json", "hit.txt", "request.json", "prompts/*/*"),
)
KEPT_WHEN_PRUNED = frozenset({"summary.json", "hit.txt", "request.json"})
# Written again, or made after the run had ended; `sent.ids` outlives a process that is killed at the very end.
CHANGING = frozenset(
    {
        *(
            "manifest.json",
            PRUNED,
            "report.html",
            "report.md",
            "bias.json",
            "comparison.json",
            "gate.json",
            "junit.xml",
        ),
        *("anchors.json", "nightly.json", "audit.json", "sent.ids"),
    }
)
GROWING = ("answers.part.jsonl", "probes.part.jsonl")  # of an unfinished run
REVIEW = "review/"
_SHA256 = re.compile("[0-9a-f]{64}")
State = Literal["ok", "damaged", "pruned", "unfinished", "no_checksums", "unreadable_format"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One file that is not what it was."""

    file: str
    kind: Literal["changed", "missing", "unreadable"]
    found: str
    expected: str


@dataclass(frozen=True, slots=True)
class Verified:
    """How a run's files were found; `extra` names files that are none of a run's, which is no damage."""

    run_id: str
    state: State
    problems: tuple[Problem, ...] = ()
    extra: tuple[str, ...] = ()
    n_files: int = 0
    n_bytes: int = 0
    detail: str = ""  # the day of pruning, or why nothing can be said


def checksums_of(run: RunFolder) -> dict[str, dict[str, Any]]:
    """By name, what `manifest.json` keeps of each file that is never written again: its sha256 and its bytes."""
    paths = {name: run.path / name for name in _final(run)}
    return {name: {"sha256": file_sha256(path), "bytes": path.stat().st_size} for name, path in paths.items()}


def _final(run: RunFolder) -> list[str]:
    found = {path for pattern in FINAL for path in run.path.glob(pattern) if path.is_file()}
    return sorted(path.relative_to(run.path).as_posix() for path in found if not path.name.startswith("."))


def verify(run: RunFolder) -> Verified:
    """The run's files held against its manifest; the manifest itself by what follows from the others alone."""
    state: State
    try:
        manifest = run.manifest()
    except InputError as error:
        return _unreadable(run, str(error))
    files, day = manifest.get("files"), run.pruned_at
    if manifest["status"] != "complete":
        return Verified(run.run_id, "unfinished", extra=_extra(run, (*_final(run), *GROWING)))
    if files is None:
        state = "no_checksums" if day is None else "pruned"
        return Verified(run.run_id, state, extra=_extra(run, _final(run)), detail=day or "")
    problems = list(_manifest_problems(manifest))
    if problems:
        return Verified(run.run_id, "damaged", tuple(problems), _extra(run, _final(run)))
    there = [name for name in files if day is None or name in KEPT_WHEN_PRUNED or (run.path / name).exists()]
    problems = [found for name in there if (found := _problem(run.path / name, name, files[name])) is not None]
    state = "damaged" if problems else "ok" if day is None else "pruned"
    n_bytes = sum(files[name]["bytes"] for name in there)
    return Verified(run.run_id, state, tuple(problems), _extra(run, files), len(there), n_bytes, day or "")


def _unreadable(run: RunFolder, why: str) -> Verified:
    """A run whose manifest cannot be read: of another format version, or damaged."""
    try:
        version = run.read_json("manifest.json").get("format_version")
    except InputError:
        version = None
    if type(version) is int and version != FORMAT_VERSION:
        return Verified(run.run_id, "unreadable_format", detail=why)
    return Verified(run.run_id, "damaged", (Problem("manifest.json", "unreadable", why, "the manifest of a run"),))


def _problem(path: Path, name: str, known: Mapping[str, Any]) -> Problem | None:
    """What is wrong with one file; its text is read only where its length is right."""
    if not path.is_file():
        return Problem(name, "missing", "no such file", f"{known['bytes']} bytes")
    n_bytes = path.stat().st_size
    if n_bytes != known["bytes"]:
        return Problem(name, "changed", f"{n_bytes} bytes", f"{known['bytes']} bytes")
    try:
        digest = file_sha256(path)
    except InputError as error:
        return Problem(name, "unreadable", str(error), f"sha256 {known['sha256']}")
    if digest != known["sha256"]:
        return Problem(name, "changed", f"sha256 {digest}", f"sha256 {known['sha256']}")
    return None


def _manifest_problems(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """What in a manifest contradicts itself: a list of files that is none, is not whole, or has other hashes."""
    files = manifest["files"]
    if not isinstance(files, Mapping):
        yield Problem("manifest.json", "changed", f"files: {type(files).__name__}", "files: an object")
        return
    for name, known in files.items():
        if not _is_final(name) or not _is_checksum(known):
            yield Problem("manifest.json", "changed", f"files: {name!r}: {known!r}"[:200], "sha256 and bytes of a file")
            return
    needed = _needed(manifest)
    for name in sorted(needed.keys() - files.keys()):
        yield Problem("manifest.json", "changed", f"files: no {name}", "every file of the run")
    for name, digest in needed.items():
        if digest is not None and name in files and files[name]["sha256"] != digest:
            yield Problem("manifest.json", "changed", f"{name}: two hashes", "the same hash wherever it stands")


def _needed(manifest: Mapping[str, Any]) -> dict[str, str | None]:
    """The files that a run cannot be without, each with the hash that stands elsewhere in its manifest, if one does."""
    is_pair = manifest.get("kind") == "pairwise"
    stem, sides = ("pairs", ("answers.a.jsonl", "answers.b.jsonl")) if is_pair else ("cases", ("answers.jsonl",))
    digests = _entry(manifest, "answers", "sha256")
    of_sides = digests if isinstance(digests, list) and is_pair else [digests]
    needed: dict[str, str | None] = dict.fromkeys(("summary.json", "hit.txt", f"{stem}.csv", f"{stem}.parquet"))
    needed["questions.snapshot.jsonl"] = _entry(manifest, "eval_set", "snapshot_sha256")
    return needed | dict.fromkeys(sides) | dict(zip(sides, of_sides, strict=False))


def _entry(manifest: Mapping[str, Any], part: str, key: str) -> Any:
    tree = manifest.get(part)
    return tree.get(key) if isinstance(tree, Mapping) else None


def _is_final(name: str) -> bool:
    """True for a name that a run gives to a file that is never written again; no other is looked at."""
    path = Path(name)
    inside = not path.is_absolute() and ".." not in path.parts and path.as_posix() == name
    return inside and any(len(path.parts) == len(Path(one).parts) and path.match(one) for one in FINAL)


def _is_checksum(known: Any) -> bool:
    if not isinstance(known, Mapping):
        return False
    digest, n_bytes = known.get("sha256"), known.get("bytes")
    return isinstance(digest, str) and bool(_SHA256.fullmatch(digest)) and type(n_bytes) is int and n_bytes >= 0


def _extra(run: RunFolder, known: Collection[str]) -> tuple[str, ...]:
    """Files in the folder that are none of a run's, beside those that are known."""
    names = (path.relative_to(run.path).as_posix() for path in run.path.rglob("*") if not path.is_dir())
    return tuple(sorted(n for n in names if n not in CHANGING and n not in known and not n.startswith(REVIEW)))
