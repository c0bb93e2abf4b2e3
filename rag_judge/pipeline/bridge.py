"""An older run's kept answers graded again by today's judge, so that numbers before and after it can be compared.

What moves between the two runs is the judge's doing: the answers are the same, and so are the rules, the cut and the
judge sample. Labels are of answers, and their sampling probabilities were fixed when they were drawn, so that the new
run takes them along: strata are then the old probability by the new verdict (`poststratification.strata_of`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from rag_judge.archive import FinishedRun, RunFolder, case_rows_of, copy_into, read_run
from rag_judge.errors import InputError
from rag_judge.pipeline.compare import compare
from rag_judge.pipeline.review import ReviewedRun
from rag_judge.pipeline.run import RunRequest, going_on, resumed_request, run
from rag_judge.pipeline.steps import Budget, RunResult, World, check_untouched
from rag_judge.sections import EndpointSettings
from rag_judge.settings import Settings

COMPARISON = "comparison.json"
SUFFIX, LONGEST_NAME = "-bridge", 80
TAKEN = ("design.json", "labels.jsonl")  # of review/, the labels last: with them it is done


@dataclass(frozen=True, slots=True)
class TakenLabels:
    """How many labels the bridge has of its parent, and why it has none."""

    n: int
    why: Literal["no_labels", "other_fields"] | None


def bridge(
    parent: RunFolder,
    settings: Settings,
    world: World,
    resume: RunFolder | None = None,
    *,
    use_cache: bool = False,
    flags: Mapping[str, Any] | None = None,
) -> RunResult:
    """The parent's answers as the judge of these settings grades them, in a new run; with how far it moved beside it.

    Replies of earlier runs are of a judge that may have been another one under the same name: with `use_cache` the
    settings must let those of today's in alone (`cache_days`). `resume` goes on with an interrupted bridge of the same
    parent; `flags` are then checked against what it was begun with. Raises InputError without a judge, for a parent
    that is unfinished, pruned, changed since, a comparison or a run of anchors; else as `run`.
    """
    before = _bridgeable(parent)
    if settings.judge.prompt == "none":
        raise InputError(f"{parent.path}: a bridge needs today's judge, and none is asked; give --judge and --model")
    if resume is None:
        request = _request(before, _as_before(before, settings, world, use_cache))
    else:
        _check_same_parent(resume, before)
        today = replace(settings, judge=replace(settings.judge, cache=settings.judge.cache and use_cache))
        checked = None if flags is None else {**flags, "cache": today.judge.cache}
        request = going_on(resume, today) if checked is None else resumed_request(resume, checked, {}, today)
    result = run(request, world, resume)
    _compare(parent, result.folder)
    _take_labels(parent, result.folder)
    return result


def _bridgeable(parent: RunFolder) -> FinishedRun:
    before = read_run(parent.path)
    if before.manifest.get("kind") == "pairwise":
        raise InputError(f"{parent.path}: a comparison of two runs; name a run")
    if before.manifest.get("purpose") == "anchors":
        raise InputError(f"{parent.path}: a run of anchors, which every night grades again; name an ordinary run")
    check_untouched(before, needs_replies=False)
    return before


def _as_before(before: FinishedRun, settings: Settings, world: World, use_cache: bool) -> Settings:
    """Today's judge and limits, and all else as it was for the parent."""
    manifest, corpus = before.manifest, before.manifest.get("corpus")
    path = None if corpus is None else str(corpus["path"])
    if path is not None and not Path(path).exists():
        world.say(f"warning: the knowledge base {path} of {manifest['run_id']} is gone; causes are less sharp")
        path = None
    as_then = {name: manifest[name] for name in ("k", "match", "seed") if name in manifest}
    return replace(
        settings,
        run=replace(settings.run, **as_then, corpus=path, probe=False),
        judge=replace(settings.judge, sample=None, cache=settings.judge.cache and use_cache),
        endpoint=EndpointSettings(),
        system=dict(manifest["system"]),
    )


def _request(before: FinishedRun, settings: Settings) -> RunRequest:
    manifest, folder = before.manifest, before.folder
    judged = before.summary["judge"]
    is_sample = bool(judged.get("sampled"))
    drawn = {row.id for row in case_rows_of(before) if row.drawn} if is_sample else set()
    return RunRequest(
        settings,
        folder.snapshot,
        folder.answers,
        Budget(sample=len(drawn) if is_sample else None),  # the same seed draws the same cases
        purpose="bridge",
        parent=str(manifest["run_id"]),
        sources={
            "cases": manifest["eval_set"]["path"],
            "cases_sha256": manifest["eval_set"]["sha256"],
            "answers": manifest["answers"]["source"],
        },
    )


def _check_same_parent(resume: RunFolder, before: FinishedRun) -> None:
    manifest, run_id = resume.manifest(), before.manifest["run_id"]
    if manifest.get("purpose") != "bridge" or manifest.get("parent") != run_id:
        raise InputError(f"{resume.path}: not a bridge of {run_id}; start a new one without --resume")


def _compare(parent: RunFolder, folder: RunFolder) -> None:
    """Hold the two judges' verdicts against each other, once: later the bridge has labels, which are the parent's."""
    if not (folder.path / COMPARISON).exists():
        compare(ReviewedRun(parent.path), ReviewedRun(folder.path), common=False, declared=["pass"])


def bridge_name(parent: RunFolder) -> str:
    """The name of a run's bridge where none is given: the run's own, marked, and no longer than a name may be."""
    name = str(parent.manifest().get("name") or "run")
    return name if name.endswith(SUFFIX) else name[: LONGEST_NAME - len(SUFFIX)] + SUFFIX


def taken_labels(parent: RunFolder, folder: RunFolder) -> TakenLabels:
    """What a bridge has of its parent's labels, or why it has none; those that the parent got later are not in it."""
    of_parent, of_bridge = ReviewedRun(parent.path), ReviewedRun(folder.path)
    if not of_parent.labels():
        return TakenLabels(0, "no_labels")
    if of_parent.fields != of_bridge.fields:
        return TakenLabels(0, "other_fields")
    return TakenLabels(len(of_bridge.labels()), None)


def _take_labels(parent: RunFolder, folder: RunFolder) -> None:
    """Copy the parent's labels and their design to the bridge, unless it has some or its prompt asks other fields."""
    if taken_labels(parent, folder) != TakenLabels(0, None):
        return
    review = RunFolder(folder.path / "review")
    review.path.mkdir(mode=0o700, exist_ok=True)
    for source in (parent.path / "review" / name for name in TAKEN):
        if source.exists():
            copy_into(review, source.name, lambda file, source=source: _write(file, source.read_bytes()))  # type: ignore[misc]


def _write(file: Any, content: bytes) -> None:
    file.write(content)
