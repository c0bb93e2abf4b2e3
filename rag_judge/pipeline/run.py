"""The main job: cases and answers (or an endpoint) in, a finished run out; interrupted, it goes on where it was."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rag_judge import manifest as manifests
from rag_judge.addresses import public_address, public_url
from rag_judge.answers import AnswerSet
from rag_judge.archive import RunFolder, copy_into, read_run
from rag_judge.cases import CaseSet
from rag_judge.checksums import checksums_of
from rag_judge.endpoint import Endpoint, open_endpoint
from rag_judge.errors import CannotGoOn, InputError, LimitReached
from rag_judge.journal import JournalCost, RecordedReplies, sent_log
from rag_judge.pipeline.judging import (
    JudgeAccess,
    ask_judges,
    grading_plan,
    judge_accesses,
    judge_prices,
    limits_of,
    loaded_prompts,
)
from rag_judge.pipeline.probing import ask_probes, kept_probes, probe_endpoint, say_how_it_went
from rag_judge.pipeline.steps import (
    Budget,
    Graded,
    RunResult,
    World,
    begin,
    collect_to,
    exit_code,
    grade,
    lay_cases,
    lay_prompts,
    measures_of,
    say_families,
    write_report,
)
from rag_judge.prompts import prompt_folder
from rag_judge.records import Prompt
from rag_judge.rows import file_sha256
from rag_judge.settings import Settings, resumed_settings
from rag_judge.table import Measures, case_rows

LIMIT_HINT = " and a higher limit (--max-usd, --max-calls or --deadline)"


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What one run is to grade. Without answers or an endpoint, the cases file itself must hold the answers."""

    settings: Settings
    cases: Path
    answers: Path | None = None
    budget: Budget = field(default_factory=Budget)
    retry_unscored: bool = False
    cases_name: str | None = None  # what the manifest calls the eval set, in place of the path
    purpose: manifests.Purpose | None = None  # None: an ordinary run
    parent: str | None = None  # the run whose answers are graded again
    sources: Mapping[str, str] | None = None  # what the manifest says of cases and answers, in place of the files


def real_world(**front_end: Any) -> World:
    """The world of a real process: its environment, the system clock, and the front end's ways of speaking."""
    return World(dict(os.environ), lambda: datetime.now(UTC).astimezone(), time.monotonic, **front_end)


def run(request: RunRequest, world: World, resume: RunFolder | None = None) -> RunResult:
    """Grade a RAG system on an eval set and write a run; `resume` goes on with one that was interrupted.

    Raises InputError before anything is spent, CannotGoOn when the judge or the endpoint is lost (what was finished
    is kept), KeyboardInterrupt on Ctrl-C.
    """
    import asyncio

    return asyncio.run(run_async(request, world, resume))


async def run_async(request: RunRequest, world: World, resume: RunFolder | None = None) -> RunResult:
    """As `run`, awaited inside a running event loop."""
    import asyncio

    if resume is not None and resume.is_complete:
        return ended_run(resume, request.settings)
    settings = request.settings
    with ExitStack() as opened:
        from_snapshot = resume is not None and resume.snapshot.exists()
        cases = opened.enter_context(closing(CaseSet(resume.snapshot if resume and from_snapshot else request.cases)))
        check_unchanged(cases, resume)
        prompts = loaded_prompts(settings.judge, kept_prompt(resume))
        measures = measures_of(settings, prompts)
        accesses = judge_accesses(settings, world) if prompts else []
        collected = resume is not None and resume.answers.exists()
        source = replace(request, answers=resume.answers) if resume is not None and collected else request
        deadline = accesses[0].limits.deadline if accesses else limits_of(settings, world).deadline
        probing = probe_endpoint(settings, world)
        given, endpoint = answers_or_endpoint(source, cases, world)
        if given is not None:
            opened.callback(given.close)
            check_answers(given, judged=bool(prompts))
        for warning in [*cases.warnings, *(given.warnings if given else [])]:
            world.say(f"warning: {warning}")
        if prompts and given is not None and given.n_without_contexts:
            world.say(
                f"warning: {given.n_without_contexts} answers have no context texts; the judge is not asked about them"
            )
        saved = _saved_request(request, cases)
        folder = resume or begin(settings, saved, world, request.parent, purpose=request.purpose)
        try:
            lay_cases(folder, cases)
            if prompts and kept_prompt(folder) is None:
                lay_prompts(folder, prompt_folder(settings.judge.prompt, Path(settings.judge.prompts)))
            await _lay_answers(folder, cases, given, endpoint, world, deadline)
            return await _finish(folder, request, cases, measures, accesses, probing, deadline, world)
        except (CannotGoOn, asyncio.CancelledError) as stopped:
            command = f"bridge {request.parent}" if request.purpose == "bridge" else "run"
            hint = f"what was finished is kept in {folder.path}; go on with: rag-judge {command} --resume {folder.path}"
            if isinstance(stopped, LimitReached):
                raise LimitReached(f"{stopped}\n{hint}{LIMIT_HINT}", stopped.finished, stopped.result) from stopped
            if isinstance(stopped, CannotGoOn):
                other = "" if folder.answers.exists() else "; with other settings, start a new run"
                raise CannotGoOn(f"{stopped}\n{hint}{other}") from stopped
            world.say(hint)
            raise


async def _finish(
    folder: RunFolder,
    request: RunRequest,
    cases: CaseSet,
    measures: Measures,
    accesses: Sequence[JudgeAccess],
    probing: Endpoint | None,
    deadline: float | None,
    world: World,
) -> RunResult:
    """All steps once the answers stand; each goes on from what an earlier process left."""
    settings, prompts = request.settings, measures.prompts
    with closing(AnswerSet(folder.answers, cases.offsets)) as answers:
        material = Material(folder, cases, answers, measures, settings, accesses)
        try:
            drawn, asked = await ask_judges(
                folder,
                cases,
                answers,
                prompts,
                settings,
                accesses,
                request.budget,
                world,
                retry_unscored=request.retry_unscored,
            )
        except LimitReached as stopped:
            stopped.result = _so_far(material, stopped.finished, world)
            raise
        if probing is not None:
            with closing(RecordedReplies(folder.journal)) as replies:
                rows = list(case_rows(cases, answers, measures, replies, drawn))
            await ask_probes(folder, cases, rows, measures, probing, world, deadline)
            material = replace(material, measures=replace(measures, probes=kept_probes(folder, cases)))
        graded, parts = _graded(material, drawn, asked)
        say_families(parts["same_family"], world)
        say_how_it_went(graded.summary.get("probes", {}), world)
        return complete(folder, parts, graded, cases, answers, settings, world)


@dataclass(frozen=True, slots=True)
class Material:
    """What a run is graded from, once its answers stand."""

    folder: RunFolder
    cases: CaseSet
    answers: AnswerSet
    measures: Measures
    settings: Settings
    accesses: Sequence[JudgeAccess]


def _graded(
    material: Material, drawn: frozenset[str] | None, asked: Sequence[Mapping[str, Any]], *, is_part: bool = False
) -> tuple[Graded, dict[str, Any]]:
    """Every case graded by what the journal holds, and what the manifest says of it."""
    folder, settings, prompts = material.folder, material.settings, material.measures.prompts
    cases, answers, accesses = material.cases, material.answers, material.accesses
    with closing(RecordedReplies(folder.journal)) as replies:
        embedded = any(access.embedded for access in accesses)
        graded = grade(
            folder, cases, answers, replies, material.measures, settings, drawn, embedded=embedded, is_part=is_part
        )
        saved = folder.read_json("request.json")
        sources = saved.get("sources") or saved
        parts = manifests.inputs(cases, file_sha256(folder.snapshot), answers, sources, settings.system)
        corpus = manifests.corpus_entry(material.measures.corpus)
        parts |= {"prompts": manifests.prompt_entries(prompts), "corpus": corpus}
        parts |= judge_entries(settings, accesses, prompts, replies.cost, asked)
        parts["same_family"] = manifests.same_family([access.model for access in accesses], [parts["system"]])
        not_needed = sum((row.n_planned or 0) - (row.n_asked or 0) for row in graded.rows)
        parts["cost"] = manifests.cost_entry(replies.cost, not_needed, judge_prices(settings))
    return graded, parts


def _so_far(material: Material, finished: frozenset[str], world: World) -> RunResult:
    """The numbers of a run that a limit has stopped: tables, summary and report of what is known, no manifest."""
    unknown = [{"model_sha256": None, "probe": None}] * len(material.accesses)
    graded, parts = _graded(material, finished, unknown, is_part=True)
    manifest = manifests.finished(material.folder.read_json("manifest.json"), world.now(), parts)
    manifest["status"] = "incomplete"
    lang = material.settings.run.lang
    write_report(material.folder, manifest, graded, material.cases, material.answers, lang)
    return RunResult(material.folder, graded.summary, graded.lines, LimitReached.exit_code, graded.rows)


async def _lay_answers(
    folder: RunFolder,
    cases: CaseSet,
    given: AnswerSet | None,
    endpoint: Endpoint | None,
    world: World,
    deadline: float | None,
) -> None:
    """Write the answers as they are judged: asked of the endpoint, or as given, unless they are there already."""
    if endpoint is not None:
        await collect_to(folder.answers, folder.path / "answers.part.jsonl", cases, endpoint, world, deadline)
    elif given is not None and not folder.answers.exists():
        copy_into(folder, folder.answers.name, given.copy_to)


def complete(
    folder: RunFolder,
    parts: Mapping[str, Any],
    graded: Graded,
    cases: CaseSet,
    answers: AnswerSet,
    settings: Settings,
    world: World,
) -> RunResult:
    """Write the report and, last, the manifest that says `complete`."""
    manifest = manifests.finished(folder.read_json("manifest.json"), world.now(), parts)
    write_report(folder, manifest, graded, cases, answers, settings.run.lang)
    folder.write_json("manifest.json", {**manifest, "files": checksums_of(folder)})
    sent_log(folder.journal).unlink(missing_ok=True)  # only a run that may be resumed needs it
    return RunResult(folder, graded.summary, graded.lines, exit_code(graded.summary, settings), graded.rows)


def ended_run(folder: RunFolder, settings: Settings) -> RunResult:
    """How a complete run answered when it ended; nothing is sent or written."""
    summary = read_run(folder.path, texts=False).summary
    return RunResult(folder, summary, folder.lines(), exit_code(summary, settings))


def kept_prompt(folder: RunFolder | None) -> Path | None:
    """The folder of the prompt that a run keeps, once it is laid whole."""
    if folder is None:
        return None
    laid = sorted((folder.path / "prompts").glob("*/prompt.toml"))
    return laid[0].parent if laid else None


def check_unchanged(cases: CaseSet, resume: RunFolder | None) -> None:
    """Raise InputError when a run that was killed before it kept its cases is resumed with other ones."""
    if resume is None or resume.snapshot.exists():
        return
    if cases.sha256 != resume.read_json("request.json")["cases_sha256"]:
        raise InputError(f"{cases.path} has changed since {resume.path} was begun; start a new run")


def resumed_request(
    folder: RunFolder, flags: Mapping[str, Any], given: Mapping[str, Path | None], today: Settings | None = None
) -> RunRequest:
    """The request of an interrupted run, with today's patience (concurrency, time limits, tries) and secrets.

    Raises InputError when a flag or file is given that differs from what the run was started with.
    """
    if folder.manifest().get("kind") == "pairwise":
        raise InputError(f"{folder.path}: a comparison; go on with: rag-judge pairwise --resume {folder.path}")
    saved = folder.read_json("request.json")
    settings = resumed_settings(saved["settings"], flags, today or Settings(), str(folder.path))
    for name, path in given.items():
        if path is not None and saved[f"{name}_path"] != str(path.resolve()):
            raise InputError(f"{folder.path} was started with --{name} {saved[f'{name}_path']}, not {path}")
    answers = saved["answers_path"]
    more: dict[str, Any] = {name: saved.get(name) for name in ("purpose", "parent", "sources")}
    return RunRequest(
        settings, Path(saved["cases_path"]), Path(answers) if answers else None, Budget(**saved["budget"]), **more
    )


def going_on(folder: RunFolder, today: Settings, **patience: Any) -> RunRequest:
    """The request of an interrupted run with today's limits and patience, and whatever of it is given."""
    judge = today.judge
    names = ("concurrency", "timeout_s", "attempts", "max_usd", "max_calls", "deadline", "cache")
    request = resumed_request(folder, {name: getattr(judge, name) for name in names} | patience, {}, today)
    # A limit that is set no more is none: what was given as nothing has left the run's own in place.
    limits = {name: patience.get(name, getattr(judge, name)) for name in ("max_usd", "max_calls", "deadline")}
    return replace(request, settings=replace(request.settings, judge=replace(request.settings.judge, **limits)))


def retrying(request: RunRequest, folder: RunFolder | None) -> RunRequest:
    """The request, asking unreadable replies again. Raises InputError without an unfinished run to go on with."""
    if folder is None:
        raise InputError("--retry-unscored goes with --resume RUN")
    if folder.is_complete:
        raise InputError(f"{folder.path} is complete, and a finished run is never rewritten; start a new run")
    return replace(request, retry_unscored=True)


def _saved_request(request: RunRequest, cases: CaseSet) -> dict[str, Any]:
    """What `request.json` keeps so that a killed run can go on."""
    source = request.answers or (None if request.settings.endpoint.url else request.cases)
    budget = request.budget
    return {
        "cases_path": str(request.cases.resolve()),
        "answers_path": str(request.answers.resolve()) if request.answers else None,
        "cases": request.cases_name or str(request.cases),
        "cases_sha256": cases.sha256,
        "answers": str(source) if source else public_address(request.settings.endpoint.url or ""),
        "budget": {"sample": budget.sample, "seconds": budget.seconds, "at_least": budget.at_least},
        "purpose": request.purpose,
        "parent": request.parent,
        "sources": None if request.sources is None else dict(request.sources),
    }


def answers_or_endpoint(request: RunRequest, cases: CaseSet, world: World) -> tuple[AnswerSet | None, Endpoint | None]:
    """Where the answers come from: a file, the endpoint, or the cases file itself. InputError when nothing says."""
    settings = request.settings
    if request.answers is not None:
        return AnswerSet(request.answers, cases.offsets), None
    if settings.endpoint.url is not None:
        endpoint = open_endpoint(settings.endpoint, world.environment, settings.system)
        endpoint.key(next(iter(cases)))  # a template that cannot be filled is found before the first question
        return None, endpoint
    if cases.has_answers:
        return AnswerSet(request.cases, cases.offsets), None
    raise InputError(
        "no answers: give --answers FILE or --endpoint URL, or put answer and contexts into the rows of "
        f"{request.cases}"
    )


def check_answers(answers: AnswerSet, *, judged: bool) -> None:
    """Raise InputError when a judge is asked of answers none of which has a text, or none contexts to judge by."""
    if judged and not answers.has_texts:
        raise InputError(f"{answers.path}: no row has an answer, so no judge can be asked; use --judge none")
    if judged and answers.offsets and answers.n_without_contexts == answers.n_answers:
        raise InputError(
            f"{answers.path}: no row has contexts with texts, so no judge can say what is supported; use --judge none"
        )


def judge_entries(
    settings: Settings,
    accesses: Sequence[JudgeAccess],
    prompts: Mapping[str, Prompt],
    cost: JournalCost,
    parts: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """What the manifest says of the judges, `judge` being the only or first one; `parts` are by judge, as asked."""
    entries = [
        _judge_entry(settings, access, prompts, cost, part) for access, part in zip(accesses, parts, strict=True)
    ]
    return {"judge": entries[0] if entries else None, "judges": entries}


def _judge_entry(
    settings: Settings,
    access: JudgeAccess,
    prompts: Mapping[str, Prompt],
    cost: JournalCost,
    part: Mapping[str, Any],
) -> dict[str, Any]:
    plan = grading_plan(prompts, settings, access, "")
    first = next(iter(prompts.values()))
    asked = {
        "temperature": 0,
        "seed": settings.run.seed,
        "max_tokens": plan.max_tokens or first.max_tokens,
        **({} if first.reading else {"response_format": "json_schema"}),
        **settings.judge.body,
    }
    base_url = None if access.base_url is None else public_url(access.base_url)
    return manifests.judge_entry(
        base_url,
        access.model,
        asked,
        cost.judges[access.number],
        embedded=access.embedded,
        model_sha256=part["model_sha256"],
        probed=part["probe"],
    )
