"""The nightly job: a list of steps, each of which finds what an earlier, killed process of the same night has left.

Up to the gate a fault ends the night as "could not measure"; after it the decision stands, whatever else goes wrong. A
further step is one line in `MEASURING` or `TELLING`.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from rag_judge.anchors import MOST_UNREAD, judge_changes
from rag_judge.archive import RunFolder
from rag_judge.cases import CaseSet
from rag_judge.checksums import verify
from rag_judge.endpoint import open_endpoint
from rag_judge.errors import CannotGoOn, InputError
from rag_judge.gate import JudgeMoved
from rag_judge.gate_output import gate_lines
from rag_judge.manifest import saved_settings
from rag_judge.night_lock import night_lock
from rag_judge.nightly_words import changed_line, judge_line, number_lines
from rag_judge.nights import (
    ANCHORS,
    BRIDGE,
    NIGHT_FILE,
    Past,
    graded_alike,
    last_good,
    past_runs,
    reference_of,
    to_go_on,
)
from rag_judge.pins import pin, pinned_as
from rag_judge.pipeline.anchors import check_anchors, why_no_anchors
from rag_judge.pipeline.bridge import bridge
from rag_judge.pipeline.gate import gate, rules_of, tell_github
from rag_judge.pipeline.judging import deadline_s
from rag_judge.pipeline.night import Night, tell_chats
from rag_judge.pipeline.report import write_joined_report
from rag_judge.pipeline.review import ExportRequest, ReviewedRun, export_review
from rag_judge.pipeline.run import RunRequest, going_on, run
from rag_judge.pipeline.steps import RunResult, World, limits_left
from rag_judge.pipeline.trend import trend
from rag_judge.report.terminal import printable
from rag_judge.report.trend_plot import trend_section
from rag_judge.retention import prune_archive
from rag_judge.settings import Settings

N_NIGHTS_SHOWN = 60


def nightly(settings: Settings, world: World, *, fresh: bool = False) -> Night:
    """The night as it ended. A second one while one runs does nothing, and says so.

    Raises InputError before anything is spent. A lost endpoint or judge, a limit or a full disk ends the night with
    exit code 5, after that was told; the same command goes on with it.
    """
    night = _opened(settings, world, fresh)
    try:
        _locked(night)
    except OSError as fault:
        if fault.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise InputError(f"{night.archive}: the archive cannot be written: {fault.strerror}") from fault
        _could_not_measure(night, "lock", f"{fault.strerror or fault}: {fault.filename or night.archive}")
    return night


def _locked(night: Night) -> None:
    """Take every step under the archive's lock. Raises OSError where not even that can be had."""
    world = night.world
    with night_lock(night.archive, world.now()) as lock:
        holder = {name: printable(str(value)) for name, value in (lock.holder or {}).items()}
        since = night.words["since"].format_map(holder) if holder else ""
        if not lock.is_ours:
            night.tell(night.words["running"].format(since=since))
            return
        if lock.holder is not None:
            world.say(night.words["taken_over"].format(since=since))
        try:
            for name, step in MEASURING:
                night.steps.append({"name": name, "outcome": "done", "detail": step(night)})
        except CannotGoOn as stopped:
            _could_not_measure(night, name, str(stopped).partition("\n")[0])
            return
        except OSError as fault:  # a full disk, a folder that may not be written
            _could_not_measure(night, name, f"{fault.strerror or fault}: {fault.filename or night.archive}")
            return
        _write_night(night)  # the report shows it
        for name, step in TELLING:
            _after_the_gate(night, name, step)
        night.finished = True
        _write_night(night)


def _opened(settings: Settings, world: World, fresh: bool) -> Night:
    """A night that has done nothing yet. Raises InputError for settings that no night could go by."""
    told = settings.nightly
    if told.cases is None and told.answers is None:
        raise InputError('nightly.cases: name the eval set in rag-judge.toml: [nightly] cases = "eval/my_cases.jsonl"')
    for name, path in (("cases", told.cases), ("answers", told.answers), ("anchors", told.anchors)):
        if path is not None and not Path(path).is_file():
            raise InputError(f"nightly.{name}: found {path!r}, expected a file")
    rules_of(settings)
    for role in ("baseline", ANCHORS):
        pinned_as(Path(settings.run.out), role)  # a pinned run that is gone is told before anything is spent
    with closing(CaseSet(Path(told.cases or told.answers or ""))):
        pass  # a broken eval set is found before the anchors cost anything, and so is an endpoint that is none
    if told.answers is None:
        open_endpoint(settings.endpoint, world.environment, settings.system)
    deadline = settings.judge.deadline
    ends_at = None if deadline is None else world.monotonic() + deadline_s(deadline, world.now())
    of_run = replace(settings.run, name=told.name)
    return Night(replace(settings, run=of_run), world, Path(settings.run.out), ends_at, fresh)


# --- measuring -----------------------------------------------------------------------------------------------------


def _held_against_anchors(night: Night) -> str:
    """Grade the judge's anchors again, first of all, and hold it against what it said of them before."""
    settings = night.settings
    path = settings.nightly.anchors
    if path is None or why_no_anchors(settings) is not None:
        night.tell(judge_line(None, settings.run.lang))
        return "no anchors"
    past = past_runs(night.archive)
    again = None if night.fresh else to_go_on(past, ANCHORS, ANCHORS, night.world.now())
    tonight = None if again is None else again.folder.run_id
    reference = reference_of(past, _pinned_id(night, ANCHORS), tonight)
    night.anchors_run, night.anchors = check_anchors(
        Path(path),
        None if reference is None else reference.folder,
        night.limited(ANCHORS),
        night.world,
        tolerance=settings.nightly.tolerance,
        resume=None if again is None else again.folder,
    )
    night.settings = _left(night, night.anchors_run)
    if reference is not None:
        _hold_against(night, reference.folder)
    elif _reads_anchors(night):
        _hold_against(night, night.anchors_run)
    line = judge_line(night.anchors.tree(), settings.run.lang)
    night.tell(line)
    night.judge_since = _started_at(night.anchors_run) if reference is None else reference.started_at
    if night.anchors.verdict in ("changed", "drifting"):
        night.moved, night.judge_since = line, _started_at(night.anchors_run)
    return night.anchors.verdict


def _asked_and_graded(night: Night) -> str:
    """Collect and grade: anew, or where an interrupted process of this night was."""
    told = night.settings.nightly
    past = past_runs(night.archive)
    again = None if night.fresh else to_go_on(past, told.name, None, night.world.now())
    settings = night.limited(told.name)
    if again is not None and not _is_as_before(again.folder, settings):
        night.world.say(night.words["other_settings"].format(run=again.folder.run_id))
        again = None
    if again is None:
        cases, answers = told.cases or told.answers, told.answers if told.cases else None
        request = RunRequest(settings, Path(cases or ""), None if answers is None else Path(answers))
        night.result = run(request, night.world)
    else:
        night.world.say(night.words["went_on"].format(run=again.folder.run_id))
        night.result = run(going_on(again.folder, settings), night.world, again.folder)
        night.notices = list((again.night or {}).get("notices") or ())
    night.settings = _left(night, night.result.folder)
    for line in number_lines(night.result.summary, settings.run.lang):
        night.tell(line)
    cost = night.result.folder.manifest().get("cost") or {}
    if cost.get("cached"):
        night.tell(night.words["from_cache"].format(n=cost["cached"], of=cost["calls"]))
    return night.result.folder.run_id


def _is_as_before(folder: RunFolder, settings: Settings) -> bool:
    """Whether an interrupted run asks the system and the judge that are set today, about the eval set of today."""
    saved, today = folder.read_json("request.json"), saved_settings(settings)
    told = settings.nightly
    cases = str(Path(told.cases or told.answers or "").resolve())
    same = {"endpoint": ("url", "request"), "judge": ("model", "base_url", "prompt")}
    return saved["cases_path"] == cases and all(
        saved["settings"].get(section, {}).get(name) == today[section][name]
        for section, names in same.items()
        for name in names
    )


def _found_baseline(night: Night) -> str:
    """Find the pinned or last good run, as graded by today's judge; grade its answers again where it was not."""
    past, words, folder = past_runs(night.archive), night.words, night.run_folder
    pinned = _pinned_id(night, "baseline")
    by_pin = next((one for one in past if one.folder.run_id == pinned), None)
    night.baseline = by_pin or last_good(past, folder.run_id)
    if night.baseline is None:
        night.tell(words["no_baseline"])
        _take_as_reference(night)
        return "none"
    manifest = folder.manifest()
    night.alike = graded_alike(
        past, night.baseline, night.judge_since, lambda other: not judge_changes(other, manifest)
    )
    why = words["pinned" if by_pin else "last_good"]
    if night.alike is None:
        if night.moved is None:
            changed = judge_changes(night.baseline.manifest, manifest)
            night.moved = judge_line({"verdict": "changed", "n": 0, "changed": changed}, night.settings.run.lang)
            night.tell(night.moved)
        if night.settings.nightly.bridge and _reads_anchors(night):
            try:
                night.alike = _bridged(night)
            except InputError as refused:  # a baseline that was changed or pruned since: the night goes on without it
                night.tell(words["not_compared"].format(why=printable(str(refused))))
        why += words["not_bridged"] if night.alike is None else ""
    if night.alike is not None and night.alike is not night.baseline:
        why += words["bridged"].format(bridge=night.alike.folder.run_id)
    night.tell(words["baseline"].format(run=night.baseline.folder.run_id, why=why))
    for one in dict.fromkeys((night.baseline.folder, (night.alike or night.baseline).folder)):
        problems = verify(one).problems
        if problems:
            what = "; ".join(printable(f"{problem.file}: {problem.kind}") for problem in problems[:3])
            night.tell(words["damaged"].format(run=one.run_id, what=what))
    return night.baseline.folder.run_id


def _bridged(night: Night) -> Past:
    """The baseline's answers, graded by tonight's judge."""
    assert night.baseline is not None
    name = f"{night.settings.nightly.name}-{BRIDGE}"
    again = None if night.fresh else to_go_on(past_runs(night.archive), name, BRIDGE, night.world.now())
    resume = None
    if again is not None and not again.is_complete and again.manifest.get("parent") == night.baseline.folder.run_id:
        resume = again.folder
    result = bridge(night.baseline.folder, night.limited(name), night.world, resume)
    night.settings = _left(night, result.folder)
    return Past(result.folder, result.folder.manifest(), None)


def _take_as_reference(night: Night) -> None:
    """With no baseline to grade again, what the judge says tonight is what it is held against from now on."""
    if night.moved is not None and night.anchors_run is not None and _reads_anchors(night):
        _hold_against(night, night.anchors_run)


def _reads_anchors(night: Night) -> bool:
    """True unless too many of tonight's replies about the anchors could not be read to say anything of the judge."""
    return night.anchors is None or night.anchors.n_read >= (1 - MOST_UNREAD) * night.anchors.n_anchors


def _hold_against(night: Night, anchors_run: RunFolder) -> None:
    """Pin what the judge is held against, so that it is never pruned."""
    if _pinned_id(night, ANCHORS) != anchors_run.run_id:
        pin(night.archive, anchors_run.run_id, ANCHORS, "the judge's reference", night.world.now())


def _decided(night: Night) -> str:
    """Compare with the baseline, and decide by the rules."""
    settings = night.settings
    if night.anchors is not None:
        night.run_folder.write_json("anchors.json", night.anchors.tree())
    moved = None if night.moved is None else JudgeMoved(night.moved, is_bridged=night.alike is not None)
    against = night.alike or night.baseline
    reviewed = ReviewedRun(night.run_folder.path)
    try:
        baseline = None if against is None else ReviewedRun(against.folder.path)
        night.gated = gate(reviewed, baseline, settings, common=True, moved=moved)
    except InputError as refused:  # pruned texts, or not one question in common
        if against is None:
            raise
        night.tell(night.words["not_compared"].format(why=printable(str(refused))))
        against = None
        night.gated = gate(reviewed, None, settings, moved=moved)
    night.exit_code = night.gated.exit_code
    if against is not None:
        night.tell(changed_line(night.run_folder.read_json("comparison.json"), settings.run.lang))
    if night.moved is not None:
        night.tell(night.words["not_comparable"])
    for line in gate_lines(night.gated, settings.run.lang, ("failed", "inconclusive")):
        night.tell(line)
    night.commands = tell_github(night.gated, night.run_folder.run_id, night.world.environment, settings.run.lang)
    return night.gated.decision


# --- telling -------------------------------------------------------------------------------------------------------


def _after_the_gate(night: Night, name: str, step: Callable[[Night], str]) -> None:
    """Take one step that changes no decision; what goes wrong in it is told, and the next one is taken."""
    try:
        night.steps.append({"name": name, "outcome": "done", "detail": step(night)})
    except (InputError, CannotGoOn, OSError) as fault:
        night.steps.append({"name": name, "outcome": "failed", "detail": str(fault)})
        night.world.say(f"warning: {name}: {fault}")
    _write_night(night)


def _write_night(night: Night) -> None:
    try:
        night.run_folder.write_json(NIGHT_FILE, night.tree())
    except OSError as fault:
        night.world.say(f"warning: {NIGHT_FILE}: {fault}")


def _reported(night: Night) -> str:
    lang = night.settings.run.lang
    points = trend(night.archive, name=night.settings.nightly.name, last=N_NIGHTS_SHOWN).points
    write_joined_report(night.run_folder, lang, trend_section(points, lang) if len(points) > 1 else None)
    return str(night.run_folder.path / "report.html")


def _drew_sample(night: Night) -> str:
    """Draw the sample for people, unless this night has one."""
    told, words = night.settings.nightly, night.words
    if not told.review_fraction:
        return "none wanted"
    reviewed = ReviewedRun(night.run_folder.path)
    design = reviewed.design()
    if design is None:
        people = tuple(f"a{n}" for n in range(1, told.annotators + 1))
        request = ExportRequest(told.review_fraction, annotators=people, lang=night.settings.run.lang)
        try:
            design = export_review(reviewed, request).design
        except InputError as refused:
            night.tell(words["no_review"].format(why=printable(str(refused))))
            return str(refused)
    folder = reviewed.review.path
    night.tell(words["review"].format(n=len(design.drawn), annotators=told.annotators, folder=folder))
    return f"{len(design.drawn)} cases"


def _noticed(night: Night) -> str:
    """Tell the chats; what was told by an earlier process of this night is not told again."""
    if any(one["ok"] and one["ended"] == night.ended for one in night.notices):
        return "told already"
    return tell_chats(night)


def _pruned(night: Night) -> str:
    told = night.settings.nightly
    keep = {past.folder.run_id for past in (night.baseline, night.alike) if past is not None}
    keep |= {folder.run_id for folder in (night.anchors_run,) if folder is not None}
    done = prune_archive(
        night.archive,
        night.world.now(),
        keep_last=told.keep_last,
        older_than_days=told.keep_days,
        unlabelled=True,  # nearly every night has a sample; those that nobody took up go with their run
        keep=keep,
    )
    if done.n_pruned:
        night.tell(night.words["pruned"].format(n=done.n_pruned, mb=done.freed_bytes / 1e6))
    return f"{done.n_pruned} runs"


MEASURING: tuple[tuple[str, Callable[[Night], str]], ...] = (
    ("anchors", _held_against_anchors),
    ("run", _asked_and_graded),
    ("baseline", _found_baseline),
    ("gate", _decided),
)
TELLING: tuple[tuple[str, Callable[[Night], str]], ...] = (
    ("report", _reported),
    ("review sample", _drew_sample),
    ("notify", _noticed),
    ("prune", _pruned),
)


# --- what steps share ------------------------------------------------------------------------------------------------


def _could_not_measure(night: Night, name: str, why: str) -> None:
    """End the night with exit code 5, and tell it: nothing was found to be worse."""
    night.exit_code = CannotGoOn.exit_code
    night.steps.append({"name": name, "outcome": "failed", "detail": why})
    night.tell(night.words["stopped"].format(why=printable(why)))
    night.tell(night.words["again"])
    tell_chats(night)
    if night.result is not None:
        _after_the_gate(night, "notify", lambda night: "could not measure")


def _left(night: Night, folder: RunFolder) -> Settings:
    return limits_left(night.settings, RunResult(folder, {}, (), 0))


def _started_at(folder: RunFolder) -> datetime:
    return datetime.fromisoformat(folder.manifest()["started_at"])


def _pinned_id(night: Night, role: str) -> str | None:
    folder = pinned_as(night.archive, role)
    return None if folder is None else folder.run_id
