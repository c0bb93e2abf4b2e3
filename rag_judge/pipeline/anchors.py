"""The judge asked of its frozen anchors again, and held against what it said of them before."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from rag_judge.anchor_rule import TOLERANCE
from rag_judge.anchors import AnchorCheck, AnchorRun, anchor_hash, check, read_labels
from rag_judge.answers import AnswerSet
from rag_judge.archive import RunFolder, case_rows_of, read_run
from rag_judge.cases import CaseSet
from rag_judge.errors import InputError
from rag_judge.pipeline.judging import EMBEDDED, loaded_prompts
from rag_judge.pipeline.review import ReviewedRun
from rag_judge.pipeline.run import RunRequest, going_on, run
from rag_judge.pipeline.steps import World
from rag_judge.records import CaseRow
from rag_judge.rows import RowFile
from rag_judge.sections import EndpointSettings
from rag_judge.settings import Settings

NAME = "anchors"  # of the runs of anchors


def why_no_anchors(settings: Settings) -> str | None:
    """Why there is no judge to hold against anchors; None where there is one."""
    if settings.judge.prompt == "none":
        return "no judge is asked (judge none), so that there is none to hold against anchors"
    if any(member.model == EMBEDDED for member in settings.judge.members()):
        return "the embedded model judges no better than chance, and its weights are named in every run"
    return None


def check_anchors(
    anchors: Path,
    reference: RunFolder | None,
    settings: Settings,
    world: World,
    *,
    tolerance: float = TOLERANCE,
    resume: RunFolder | None = None,
) -> tuple[RunFolder, AnchorCheck]:
    """Grade the anchors in a run of their own, never from the cache, and hold it against the reference run.

    `resume` goes on with an interrupted one, and takes a complete one as it is. A reference whose texts were pruned is
    none. Raises InputError without a judge, for a broken file or wrong labels, before anything is spent; else as `run`.
    """
    why = why_no_anchors(settings)
    if why is not None:
        raise InputError(f"{anchors}: {why}")
    if resume is None:
        _check_labels(anchors, settings)
        request = RunRequest(_of_anchors(settings), anchors, anchors, purpose="anchors")
    else:
        request = going_on(resume, _of_anchors(settings))
    folder = run(request, world, resume).folder
    pruned = None if reference is None or reference.pruned_at is None else reference.run_id
    before = None if reference is None or pruned is not None else _anchor_run(reference)
    return folder, check(_anchor_run(folder), before, _human_passes(folder), tolerance, pruned)


def _of_anchors(settings: Settings) -> Settings:
    """The settings of the anchors' run: the judge as set, asked of all of them anew, and nothing but the judge."""
    return replace(
        settings,
        run=replace(settings.run, name=NAME, corpus=None, probe=False),
        judge=replace(settings.judge, cache=False, sample=None),
        endpoint=EndpointSettings(),
        system={},
    )


def _check_labels(anchors: Path, settings: Settings) -> None:
    prompts = loaded_prompts(settings.judge)
    fields = [field.name for prompt in prompts.values() for field in prompt.fields]
    with RowFile(anchors) as rows:
        for row in rows:
            read_labels(row.fields.get("labels"), row.where, fields)


def _anchor_run(folder: RunFolder) -> AnchorRun:
    """A finished run of anchors, with what each of them was."""
    found = read_run(folder.path)
    with closing(CaseSet(folder.snapshot)) as cases, closing(AnswerSet(folder.answers, cases.offsets)) as answers:
        hashes = {case.id: anchor_hash(case, answers.get(case.id)) for case in cases}
    return AnchorRun(folder.run_id, found.manifest, case_rows_of(found), hashes)


def _human_passes(folder: RunFolder) -> dict[str, bool | None]:
    """Whether people pass each anchor, by its labels: as they say, or as their fields come to it for the judge."""
    reviewed = ReviewedRun(folder.path)
    fields = [field.name for prompt in reviewed.prompts.values() for field in prompt.fields]
    rows = {row.id: row for row in case_rows_of(reviewed.run)}
    with closing(CaseSet(folder.snapshot)) as cases:
        labels = {
            case.id: read_labels(case.extra.get("labels"), f"{folder.snapshot}: {case.id}", fields) for case in cases
        }
    return {i: _human_pass(reviewed, rows.get(i), said) for i, said in labels.items() if said}


def _human_pass(reviewed: ReviewedRun, row: CaseRow | None, said: dict[str, bool | None]) -> bool | None:
    if "passed" in said or row is None:
        return said.get("passed")
    return reviewed.derived(row, said)
