"""A finished run's kept replies read again with today's parser and rules, into a new run. No call is sent."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag_judge import manifest as manifests
from rag_judge.answers import AnswerSet
from rag_judge.archive import FinishedRun, RunFolder, case_rows_of, read_run
from rag_judge.cases import CaseSet
from rag_judge.journal import RecordedReplies
from rag_judge.pipeline.pairwise import regrade_pairs
from rag_judge.pipeline.probing import kept_probes
from rag_judge.pipeline.run import complete
from rag_judge.pipeline.steps import (
    RunResult,
    World,
    begin,
    check_untouched,
    grade,
    lay_cases,
    lay_prompts,
    measures_of,
)
from rag_judge.prompts import load_prompt, prompt_folder
from rag_judge.records import CaseRow
from rag_judge.settings import Settings, changed_settings


@dataclass(frozen=True, slots=True)
class Regraded:
    """A new run made of an older one's replies, and the outcomes that moved: (case id, before, after)."""

    result: RunResult
    moved: Sequence[tuple[str, str, str]]


def regrade(parent: RunFolder, world: World, flags: Mapping[str, Any]) -> Regraded:
    """The run again, as today's parser and rules read it, and what moved.

    `flags` may set name, archive, k, match level and the judge prompt by which replies are read. Raises InputError
    for a run that is not complete.
    """
    before = read_run(parent.path)
    if before.manifest.get("kind") == "pairwise":
        return Regraded(*regrade_pairs(before, flags, world))
    check_untouched(before)
    saved = parent.read_json("request.json")
    settings = changed_settings(saved["settings"], flags)
    prompts_from = _prompt_source(parent, settings, flags.get("judge"))
    was = {(row.id, row.answer_no): row for row in case_rows_of(before, every_answer=True)}
    with closing(CaseSet(parent.snapshot)) as cases:
        folder = begin(settings, saved, world, parent=before.manifest["run_id"])
        lay_cases(folder, cases)
        lay_prompts(folder, prompts_from)
        _copy_replies(parent, folder)
        result, rows = _graded_again(before, folder, cases, settings, prompts_from, list(was.values()), world)
    both = [(was[row.id, row.answer_no].outcome, row) for row in rows]
    return Regraded(result, [(row.id, outcome, row.outcome) for outcome, row in both if outcome != row.outcome])


def _prompt_source(parent: RunFolder, settings: Settings, name: str | None) -> Path | None:
    """The folder of the prompt by which replies are read: the named one, none, or the one that the run used."""
    if name == "none":
        return None
    if name is not None:
        return prompt_folder(name, Path(settings.judge.prompts))
    used = sorted((parent.path / "prompts").glob("*/prompt.toml"))
    return used[0].parent if used else None


def _copy_replies(parent: RunFolder, folder: RunFolder) -> None:
    probes = (parent.path / "probes.jsonl", folder.path / "probes.jsonl")
    for source, target in ((parent.answers, folder.answers), (parent.journal, folder.journal), probes):
        if source.exists():
            shutil.copyfile(source, target)
            target.chmod(0o600)


def _graded_again(
    before: FinishedRun,
    folder: RunFolder,
    cases: CaseSet,
    settings: Settings,
    prompts_from: Path | None,
    was: Sequence[CaseRow],
    world: World,
) -> tuple[RunResult, Sequence[CaseRow]]:
    prompts = {} if prompts_from is None else load_prompt(prompts_from)
    measures = replace(measures_of(settings, prompts), probes=kept_probes(folder, cases))
    is_part = bool(before.summary["judge"].get("sampled"))
    drawn = frozenset(row.id for row in was if row.drawn) if is_part else None
    embedded = bool(before.manifest["judge"] and before.manifest["judge"]["embedded"])
    with (
        closing(AnswerSet(folder.answers, cases.offsets)) as answers,
        closing(RecordedReplies(folder.journal)) as replies,
    ):
        graded = grade(folder, cases, answers, replies, measures, settings, drawn, embedded=embedded)
        kept = {name: before.manifest[name] for name in ("eval_set", "answers", "system", "cost")}
        judges = {name: before.manifest[name] for name in ("judge", "judges")}
        parts = {**kept, **(judges if prompts else {"judge": None, "judges": []})}
        parts |= {"prompts": manifests.prompt_entries(prompts), "corpus": manifests.corpus_entry(measures.corpus)}
        return complete(folder, parts, graded, cases, answers, settings, world), graded.rows
