"""A manifest of any format version → one that today's program reads, or a word on what to do. Nothing is written.

A version is added by raising `archive.FORMAT_VERSION` and giving `archive.UPGRADES` the step from the one before. What
a run merely lacks because it is older (a key, a column of a table) needs no version: readers take it as not known.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rag_judge.errors import InputError

Tree = dict[str, Any]
Upgrade = Callable[[Tree], Tree]  # a manifest of one version → the same one of the next


def in_format(manifest: Tree, version: int, upgrades: Mapping[int, Upgrade], folder: Path) -> Tree:
    """The manifest in the format of this version. Raises InputError where no way leads there, saying what to do."""
    found = manifest["format_version"]
    if type(found) is not int:  # True is 1 otherwise
        where = folder / "manifest.json"
        raise InputError(f"{where}: format_version: found {found!r}, expected a whole number; the file was changed")
    if found > version:
        raise InputError(
            f"{folder}: the run has format version {found}, this program reads {version}: it was written by a newer "
            "rag-judge; upgrade rag-judge to read it"
        )
    while found < version:
        if found not in upgrades:
            then = _again(manifest, folder)
            raise InputError(f"{folder}: the run has format version {found}, this program reads {version}; {then}")
        manifest = upgrades[found](manifest)
        found += 1
    return {**manifest, "format_version": version}


def _again(manifest: Tree, folder: Path) -> str:
    """What to do with a run that is too old to be read: the command that grades its answers again, where they are."""
    cases, answers = folder / "questions.snapshot.jsonl", folder / "answers.jsonl"
    if not (cases.is_file() and answers.is_file()):
        by = manifest.get("package_version")
        which = f"rag-judge {by}" if isinstance(by, str) else "the version of rag-judge that wrote it"
        return f"read it with {which}: its answers are not all there, so it cannot be graded again"
    words = ["rag-judge", "run", "--cases", str(cases), "--answers", str(answers), *_judge_words(manifest, folder)]
    name = manifest.get("name")
    words += ["--name", name] if isinstance(name, str) and name else []
    return f"grade its answers again:\n{shlex.join(words)}"


def _judge_words(manifest: Tree, folder: Path) -> list[str]:
    judge = manifest.get("judge")
    if not isinstance(judge, Mapping):
        return ["--judge", "none"]
    kept = sorted((folder / "prompts").glob("*/prompt.toml"))
    words = ["--judge", str(kept[0].parent)] if kept else []
    for option, key in (("--model", "model"), ("--base-url", "base_url")):
        if isinstance(judge.get(key), str):
            words += [option, judge[key]]
    return words
