"""Two finished runs' answers judged side by side, every pair in both orders, into a run of their own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag_judge import manifest as manifests
from rag_judge.answers import AnswerSet
from rag_judge.archive import FinishedRun, RunFolder, copy_into, read_run, write_table
from rag_judge.cases import CaseSet, case_fields, question_hash
from rag_judge.checksums import checksums_of
from rag_judge.errors import CannotGoOn, InputError, LimitReached
from rag_judge.grading import GradingPlan, PairGrading, decision_of
from rag_judge.journal import RecordedReplies, sent_log
from rag_judge.outcomes import gave_no_answer
from rag_judge.pairs import pair_row, summarise_pairs
from rag_judge.pipeline.judging import JudgeAccess, draw_order, judge_accesses, judge_prices, send_to_judge
from rag_judge.pipeline.run import LIMIT_HINT, ended_run, judge_entries, kept_prompt
from rag_judge.pipeline.steps import (
    RunResult,
    World,
    begin,
    can_be_judged,
    check_untouched,
    exit_code,
    lay_prompts,
    say_families,
)
from rag_judge.prompts import language_of, load_prompt, pair_field, prompt_folder
from rag_judge.records import PairRow, Prompt
from rag_judge.report.pairs_html import ReportPair, place_on_page, render_pairs_report
from rag_judge.report.terminal import pair_lines
from rag_judge.rows import file_sha256, json_line
from rag_judge.settings import Settings, changed_settings, resumed_settings

SIDES = ("a", "b")
LONGEST_NAME = 36  # of each run in the name of the comparison
N_PAIRS_IN_REPORT = 200


@dataclass(frozen=True, slots=True)
class PairwiseRequest:
    """Which two runs are compared. With `common`, questions that only one of them has are left out, and counted."""

    settings: Settings
    run_a: RunFolder
    run_b: RunFolder
    common: bool = False


def pairwise(request: PairwiseRequest, world: World) -> RunResult:
    """Compare two finished runs' answers pair by pair; writes the run `DATE-A-vs-B`. See `pairwise_async`."""
    import asyncio

    return asyncio.run(pairwise_async(request, world))


async def pairwise_async(request: PairwiseRequest, world: World) -> RunResult:
    """As `pairwise`, awaited.

    Raises InputError before anything is spent, for runs that are unfinished, changed since, or of other questions;
    CannotGoOn when the judge is lost (what was finished is kept).
    """
    settings = request.settings
    prompts = pair_prompts(settings)
    access = the_judge(settings, world)
    finished = [read_run(folder.path) for folder in (request.run_a, request.run_b)]
    for run in finished:
        if run.manifest.get("kind") == "pairwise":
            raise InputError(f"{run.folder.path}: a comparison, not a run with answers; name two runs")
        check_untouched(run)
    if finished[0].folder.path.resolve() == finished[1].folder.path.resolve():
        raise InputError(f"{finished[0].folder.path}: the same run twice; name two runs")
    names = [str(run.manifest["name"])[:LONGEST_NAME] for run in finished]
    with closing(CaseSet(request.run_a.snapshot)) as cases, closing(CaseSet(request.run_b.snapshot)) as others:
        shared = shared_questions(cases, others, request)
        saved = {
            "pair": {side: _side(run) for side, run in zip(SIDES, finished, strict=True)},
            "n_dropped": len(cases) + len(others) - 2 * len(shared),
        }
        folder = begin(_named(settings, "-vs-".join(names)), saved, world, kind="pairwise")
        copy_into(folder, folder.snapshot.name, lambda file: _write_cases(file, cases, shared))
    for side, run in zip(SIDES, finished, strict=True):
        copy_into(folder, folder.answers_of(side).name, lambda file, run=run: _copy(file, run.folder.answers))  # type: ignore[misc]
    lay_prompts(folder, prompt_folder(settings.judge.prompt, Path(settings.judge.prompts)))
    return await _judged(folder, settings, prompts, access, world)


def resume_pairwise(folder: RunFolder, flags: Mapping[str, Any], today: Settings, world: World) -> RunResult:
    """Go on with an interrupted comparison, with today's patience and secrets; a complete one answers as it did.

    Raises as `pairwise` does, and InputError for a flag that differs from what the comparison was begun with.
    """
    import asyncio

    if folder.manifest().get("kind") != "pairwise":
        raise InputError(f"{folder.path}: not a comparison; go on with: rag-judge run --resume {folder.path}")
    settings = resumed_settings(folder.read_json("request.json")["settings"], flags, today, str(folder.path))
    if folder.is_complete:
        return ended_run(folder, settings)
    kept = kept_prompt(folder)
    if kept is None:
        raise InputError(f"{folder.path}: it ended before anything was asked; start the comparison again")
    access = the_judge(settings, world)
    return asyncio.run(_judged(folder, settings, load_prompt(kept), access, world))


def the_judge(settings: Settings, world: World) -> JudgeAccess:
    """How the one judge of a comparison is reached. Raises InputError for a panel."""
    if len(settings.judge.members()) > 1:
        raise InputError(
            "a comparison has one judge: give one --model (it wins over judge.panel), and compare once for each judge"
        )
    return judge_accesses(settings, world)[0]


def pair_prompts(settings: Settings) -> dict[str, Prompt]:
    """The pairwise prompt by language. Raises InputError for a prompt that grades one answer at a time."""
    prompts = load_prompt(prompt_folder(settings.judge.prompt, Path(settings.judge.prompts)))
    if any(prompt.mode != "pairwise" for prompt in prompts.values()):
        name = settings.judge.prompt
        raise InputError(f"the judge prompt {name} grades one answer; a comparison needs one of mode pairwise")
    if settings.judge.prompt_lang != "auto":
        language_of("", settings.judge.prompt_lang, prompts)
    return prompts


def shared_questions(cases: CaseSet, others: CaseSet, request: PairwiseRequest) -> list[str]:
    """The ids of the questions that both runs were asked. Raises InputError for others, unless `common` allows them."""
    asked = {case.id: question_hash(case) for case in others}
    shared = [case.id for case in cases if asked.get(case.id) == question_hash(case)]
    n_other = len(cases) + len(others) - 2 * len(shared)
    if not shared:
        raise InputError(f"{request.run_a.run_id} and {request.run_b.run_id} have no question in common")
    if n_other and not request.common:
        raise InputError(
            f"{request.run_a.run_id} and {request.run_b.run_id} differ in {n_other} questions; compare runs of one "
            "eval set, or give --common to compare what both were asked"
        )
    return shared


def _side(run: FinishedRun) -> dict[str, Any]:
    """What a comparison keeps of one of its runs."""
    return {
        "run_id": run.manifest["run_id"],
        "name": run.manifest["name"],
        "answers": run.manifest["answers"],
        "eval_set": run.manifest["eval_set"],
        "system": run.manifest["system"],
    }


def _named(settings: Settings, name: str) -> Settings:
    is_default = settings.run.name == Settings().run.name
    return replace(settings, run=replace(settings.run, name=name)) if is_default else settings


def _write_cases(file: Any, cases: CaseSet, shared: Sequence[str]) -> None:
    if len(shared) == len(cases):
        cases.copy_to(file)
        return
    file.writelines(json_line(case_fields(cases.get(case_id))) for case_id in shared)


def _copy(file: Any, source: Path) -> None:
    with source.open("rb") as original:
        shutil.copyfileobj(original, file)


# --- asking, and what the replies decide -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pairs:
    """The material of a comparison: its cases, and both sides' answers."""

    cases: CaseSet
    a: AnswerSet
    b: AnswerSet

    def to_judge(self, settings: Settings) -> list[str]:
        """The cases that both systems answered, with contexts to judge by; a seeded part of them with a sample."""
        order = list(self.cases.offsets)
        if settings.judge.sample is not None:
            order = draw_order(self.cases, self.a, settings.run.seed)
        both = [c for c in order if can_be_judged(self.a.get(c)) and can_be_judged(self.b.get(c))]
        return both[: settings.judge.sample]

    def gradings(self, plan: GradingPlan, prompt_lang: str, ids: Sequence[str]) -> Iterator[PairGrading]:
        """Yield what there is to ask of each pair."""
        for case_id in ids:
            case = self.cases.get(case_id)
            prompt = plan.prompts[language_of(case.question, prompt_lang, plan.prompts)]
            yield PairGrading(case, self.a.get(case_id), self.b.get(case_id), prompt, plan)


@contextmanager
def opened_pairs(folder: RunFolder) -> Iterator[Pairs]:
    """The material that a comparison keeps."""
    with (
        closing(CaseSet(folder.snapshot)) as cases,
        closing(AnswerSet(folder.answers_of("a"), cases.offsets)) as a,
        closing(AnswerSet(folder.answers_of("b"), cases.offsets)) as b,
    ):
        yield Pairs(cases, a, b)


async def _judged(
    folder: RunFolder, settings: Settings, prompts: Mapping[str, Prompt], access: JudgeAccess, world: World
) -> RunResult:
    """All steps once the comparison holds its own copies; each goes on from what an earlier process left."""
    import asyncio

    with opened_pairs(folder) as pairs:
        if max(pairs.a.most, pairs.b.most) > 1:
            world.say("warning: of several answers to a question the first are compared")
        ids = pairs.to_judge(settings)
        if not ids:
            raise InputError(f"{folder.path}: no question was answered by both systems with contexts to judge by")
        lang = settings.judge.prompt_lang
        try:
            part = await send_to_judge(
                folder, prompts, settings, access, world, len(ids), lambda plan: pairs.gradings(plan, lang, ids)
            )
        except (CannotGoOn, asyncio.CancelledError) as stopped:
            hint = f"what was finished is kept in {folder.path}; go on with: rag-judge pairwise --resume {folder.path}"
            if isinstance(stopped, LimitReached):
                so_far = _so_far(folder, pairs, ids, stopped.finished, prompts, settings, embedded=access.embedded)
                raise LimitReached(f"{stopped}\n{hint}{LIMIT_HINT}", stopped.finished, so_far) from stopped
            if isinstance(stopped, CannotGoOn):
                raise CannotGoOn(f"{stopped}\n{hint}") from stopped
            world.say(hint)
            raise
        with closing(RecordedReplies(folder.journal)) as replies:
            rows = list(pair_rows(pairs, ids, prompts, replies, settings))
            parts = _parts(folder, pairs, rows, replies, settings, prompts)
            parts |= judge_entries(settings, [access], prompts, replies.cost, [part])
            systems = [parts["pair"][side]["system"] for side in SIDES]
            parts["same_family"] = manifests.same_family([access.model], systems)
            say_families(parts["same_family"], world)
            return _finished(folder, settings, pairs, rows, parts, world)


def regrade_pairs(
    before: FinishedRun, flags: Mapping[str, Any], world: World
) -> tuple[RunResult, list[tuple[str, str, str]]]:
    """A finished comparison's kept replies read again into a new one, and what moved: (id, before, after).

    `flags` may set name, archive and the judge prompt by which replies are read. No call is sent.
    """
    check_untouched(before)
    parent = before.folder
    saved = parent.read_json("request.json")
    settings = changed_settings(saved["settings"], flags)
    kept = kept_prompt(parent)
    source = prompt_folder(flags["judge"], Path(settings.judge.prompts)) if flags.get("judge") else kept
    if source is None:
        raise InputError(f"{parent.path}: the prompt that it kept is missing; name one with --judge")
    prompts = load_prompt(source)
    folder = begin(settings, saved, world, parent=before.manifest["run_id"], kind="pairwise")
    for name in (parent.snapshot.name, parent.journal.name, *(parent.answers_of(side).name for side in SIDES)):
        copy_into(folder, name, lambda file, name=name: _copy(file, parent.path / name))  # type: ignore[misc]
    lay_prompts(folder, source)
    was = {str(row["id"]): str(row["outcome"]) for row in before.table()[["id", "outcome"]].to_dict("records")}
    with opened_pairs(folder) as pairs, closing(RecordedReplies(folder.journal)) as replies:
        rows = list(pair_rows(pairs, pairs.to_judge(settings), prompts, replies, settings))
        parts = _parts(folder, pairs, rows, replies, settings, prompts)
        parts |= {name: before.manifest[name] for name in ("judge", "judges", "cost")}
        result = _finished(folder, settings, pairs, rows, parts, world)
    return result, [(row.id, was[row.id], row.outcome) for row in rows if was[row.id] != row.outcome]


def pair_rows(
    pairs: Pairs, ids: Sequence[str], prompts: Mapping[str, Prompt], replies: RecordedReplies, settings: Settings
) -> Iterator[PairRow]:
    """Yield what the kept replies decide of each pair."""
    judged = frozenset(ids)
    for case_id in (c for c in pairs.cases.offsets if c in judged):
        case = pairs.cases.get(case_id)
        prompt = prompts[language_of(case.question, settings.judge.prompt_lang, prompts)]
        ab, ba = (
            decision_of(replies.of_case(case_id, order), prompt, settings.judge.repeats, did_abstain=False)
            for order in ("ab", "ba")
        )
        yield pair_row(case, ab, ba, pairs.a.get(case_id), pairs.b.get(case_id), pair_field(prompt))


def _parts(
    folder: RunFolder,
    pairs: Pairs,
    rows: Sequence[PairRow],
    replies: RecordedReplies,
    settings: Settings,
    prompts: Mapping[str, Prompt],
) -> dict[str, Any]:
    """What the manifest says of a comparison beside its judge."""
    saved = folder.read_json("request.json")
    first = saved["pair"]["a"]
    not_needed = sum(2 * row.n_planned - row.n_asked_ab - row.n_asked_ba for row in rows)
    return {
        "pair": {**saved["pair"], "n_dropped": saved["n_dropped"]},
        "eval_set": {**first["eval_set"], "n": len(pairs.cases), "snapshot_sha256": file_sha256(folder.snapshot)},
        "answers": {
            "source": " vs ".join(saved["pair"][side]["run_id"] for side in SIDES),
            "sha256": [pairs.a.sha256, pairs.b.sha256],
        },
        "system": {},
        "prompts": manifests.prompt_entries(prompts),
        "cost": manifests.cost_entry(replies.cost, not_needed, judge_prices(settings)),
    }


def _finished(
    folder: RunFolder,
    settings: Settings,
    pairs: Pairs,
    rows: Sequence[PairRow],
    parts: Mapping[str, Any],
    world: World,
) -> RunResult:
    """Write the table, the summary, the lines, the report and, last, the manifest that says `complete`."""
    summary, lines = _numbers(folder, settings, pairs, rows, {}, embedded=bool(parts["judge"]["embedded"]))
    manifest = manifests.finished(folder.read_json("manifest.json"), world.now(), parts)
    shown = sorted((row for row in rows if row.outcome != "tie"), key=place_on_page)[:N_PAIRS_IN_REPORT]
    page = [ReportPair(row, pairs.cases.get(row.id), pairs.a.get(row.id), pairs.b.get(row.id)) for row in shown]
    folder.write_text("report.html", render_pairs_report(manifest, summary, page, lang=settings.run.lang))
    folder.write_json("manifest.json", {**manifest, "files": checksums_of(folder)})
    sent_log(folder.journal).unlink(missing_ok=True)
    return RunResult(folder, summary, lines, exit_code(summary, settings))


def _numbers(
    folder: RunFolder,
    settings: Settings,
    pairs: Pairs,
    rows: Sequence[PairRow],
    more: Mapping[str, Any],
    *,
    embedded: bool,
) -> tuple[dict[str, Any], list[str]]:
    """Write the table, the summary with what `more` says of it, and the lines; the last two are returned."""
    saved = folder.read_json("request.json")
    summary = comparison_summary(pairs, rows, settings) | {"n_left_out": saved["n_dropped"], **more}
    write_table(folder, "pairs", rows, PairRow)
    folder.write_json("summary.json", summary)
    names = (saved["pair"]["a"]["run_id"], saved["pair"]["b"]["run_id"])
    lines = pair_lines(summary, names, settings.run.lang, embedded=embedded)
    folder.write_text("hit.txt", "\n".join(lines) + "\n")
    return summary, lines


def _so_far(
    folder: RunFolder,
    pairs: Pairs,
    ids: Sequence[str],
    finished: frozenset[str],
    prompts: Mapping[str, Prompt],
    settings: Settings,
    *,
    embedded: bool,
) -> RunResult:
    """The numbers of a comparison that a limit has stopped, over the pairs of which every needed reply is there."""
    with closing(RecordedReplies(folder.journal)) as replies:
        rows = list(pair_rows(pairs, [c for c in ids if c in finished], prompts, replies, settings))
    part = {"part": {"n": len(rows), "of": len(ids)}}
    summary, lines = _numbers(folder, settings, pairs, rows, part, embedded=embedded)
    return RunResult(folder, summary, lines, LimitReached.exit_code)


def comparison_summary(pairs: Pairs, rows: Sequence[PairRow], settings: Settings) -> dict[str, Any]:
    """The summary of a comparison: how many questions could be compared, and the pairwise numbers."""
    answers = {c: (pairs.a.get(c), pairs.b.get(c)) for c in pairs.cases.offsets}
    silent = {
        side: sum(gave_no_answer(both[index], judged=True) for both in answers.values())
        for index, side in enumerate(SIDES)
    }
    n_errors = sum(any(gave_no_answer(answer, judged=True) for answer in both) for both in answers.values())
    n_both = sum(all(can_be_judged(answer) for answer in both) for both in answers.values())
    numbers = summarise_pairs(rows, settings.run.seed)
    n_sampled = settings.judge.sample
    return {
        "n_cases": len(answers),
        "n_answered": len(answers) - n_errors,
        "n_errors": n_errors,
        "no_answer": silent,
        "n_without_contexts": len(answers) - n_errors - n_both,
        "judge": {
            "mode": "pairwise",
            "drawn": len(rows),
            "unscored": numbers["unscored_reasons"],
            "sampled": {"n": len(rows), "of": n_both, "seed": settings.run.seed} if n_sampled else None,
        },
        "pairwise": numbers,
    }
