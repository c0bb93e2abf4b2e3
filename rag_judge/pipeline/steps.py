"""The steps of one run, in the order in which `pipeline.run` takes them: open, begin, answers, judge, grade, finish.

Each step finds what an earlier, killed process left in the run folder and goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from rag_judge import manifest as manifests
from rag_judge.answers import AnswerSet, has_context_texts
from rag_judge.archive import FinishedRun, RunFolder, copy_into, create_run, write_table
from rag_judge.cases import CaseSet
from rag_judge.corpus import Corpus
from rag_judge.endpoint import Collected, Collection, Endpoint, ask_all
from rag_judge.errors import InputError
from rag_judge.journal import RecordedReplies
from rag_judge.outcomes import gave_no_answer
from rag_judge.panel import summarise_panel
from rag_judge.prompt_settings import score_of
from rag_judge.prompts import pass_rule
from rag_judge.records import Answer, CaseRow, Prompt
from rag_judge.report.html import ReportCase, render_report
from rag_judge.report.joined import Joined
from rag_judge.report.terminal import failure_lines, summary_lines
from rag_judge.rows import file_sha256
from rag_judge.settings import Settings
from rag_judge.summary import summarise
from rag_judge.table import Measures, case_rows

N_CASES_IN_REPORT = 200
# What is made of a run after it has ended, `NAME.json`, and what a report cannot be without.
JOINED_FILES: Mapping[str, Sequence[str]] = {
    "bias": ("n_labelled", "fields"),
    "comparison": ("a", "b", "n_common", "n_dropped", "changed_factors", "metrics", "changed_cases", "remarks"),
    "gate": ("decision", "rules", "red_lines"),
    "anchors": ("verdict",),
    "nightly": (),
}


@dataclass(frozen=True, slots=True)
class World:
    """What a run needs from outside: environment, clock, and where lines for people go."""

    environment: Mapping[str, str]
    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    say: Callable[[str], None] = lambda line: None
    progress: Callable[..., None] = lambda what, n_done, n_all, note="": None


@dataclass(frozen=True, slots=True)
class Budget:
    """How many cases the judge sees at most: a number drawn by seed, or as many as fit into a time."""

    sample: int | None = None
    seconds: float | None = None
    at_least: int = 0

    @property
    def is_limited(self) -> bool:
        """True when the judge may see a part of the cases only."""
        return self.sample is not None or self.seconds is not None


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended: its folder, its summary, the lines for people, and the exit code of the command."""

    folder: RunFolder
    summary: Mapping[str, Any]
    lines: Sequence[str]
    exit_code: int
    rows: Sequence[CaseRow] = ()  # of a run that was graded just now; one that had ended keeps them in its table


# --- the run folder ---------------------------------------------------------------------------------------------


def begin(
    settings: Settings,
    saved: Mapping[str, Any],
    world: World,
    parent: str | None = None,
    kind: manifests.Kind = "run",
    purpose: manifests.Purpose | None = None,
) -> RunFolder:
    """A new run folder with what a resume needs in it (`request.json`) and a manifest that says `incomplete`."""
    run = create_run(Path(settings.run.out), settings.run.name, world.now().date())
    run.write_json("request.json", {**saved, "settings": manifests.saved_settings(settings)})
    run.write_json("manifest.json", manifests.started(run, settings, world.now(), parent, kind, purpose))
    return run


def check_untouched(run: FinishedRun, *, needs_replies: bool = True) -> None:
    """Raise InputError when what a finished run was graded from is missing or was changed since."""
    folder, manifest = run.folder, run.manifest
    if needs_replies and manifest["judge"] is not None and not folder.journal.exists():
        raise InputError(f"{folder.journal}: the call journal is missing, so there are no replies to read again")
    is_pair = manifest.get("kind") == "pairwise"
    answers = [folder.answers_of(side) for side in ("a", "b")] if is_pair else [folder.answers]
    digests = manifest["answers"]["sha256"] if is_pair else [manifest["answers"]["sha256"]]
    given = [(folder.snapshot, manifest["eval_set"]["snapshot_sha256"]), *zip(answers, digests, strict=True)]
    for path, digest in given:
        if file_sha256(path) != digest:
            raise InputError(f"{path}: the file was changed after the run; what moved would not be the rules' doing")


def lay_cases(run: RunFolder, cases: CaseSet) -> None:
    """Write the snapshot of the cases, unless it is there already."""
    if not run.snapshot.exists():
        copy_into(run, run.snapshot.name, cases.copy_to)


def lay_prompts(run: RunFolder, folder: Path | None) -> None:
    """Write the templates as used to `prompts/NAME/`, unless they are there already."""
    if folder is None:
        return
    target = run.path / "prompts" / folder.name
    for place in (target.parent, target):
        place.mkdir(exist_ok=True, mode=0o700)
    for source in (folder / "prompt.toml", *sorted(folder.glob("*.j2"))):
        if not (target / source.name).exists():
            copy_into(RunFolder(target), source.name, lambda file, source=source: _write(file, source.read_bytes()))  # type: ignore[misc]


def _write(file: Any, content: bytes) -> None:
    file.write(content)


# --- answers -----------------------------------------------------------------------------------------------------


async def collect_to(
    target: Path,
    part: Path,
    cases: CaseSet,
    endpoint: Endpoint,
    world: World,
    deadline: float | None = None,
    n_answers: int = 1,
) -> Collected:
    """Ask the endpoint every question, `n_answers` times, and write the answers file, in the order of the cases.

    The answers grow in `part`, from which an interrupted collection goes on; it is gone when `target` stands.
    `deadline` is on the world's monotonic clock.
    """
    collection = Collection(part)
    finished = False
    try:
        collected = await ask_all(
            cases,
            endpoint,
            collection,
            lambda so_far: world.progress("questions", so_far.n_kept + so_far.n_asked, n_answers * len(cases)),
            lambda: deadline is not None and world.monotonic() >= deadline,
            n_answers,
        )
        numbered = [(case_id, number) for case_id in cases.offsets for number in range(n_answers)]
        copy_into(RunFolder(target.parent), target.name, lambda file: collection.write_to(file, numbered))
        finished = True
    finally:
        collection.close(and_remove=finished)
    return collected


def n_answered(cases: CaseSet, answers: AnswerSet) -> int:
    """How many cases have an answer that a judge can be shown."""
    return sum(any(map(can_be_judged, answers.of_case(case_id))) for case_id in cases.offsets)


def can_be_judged(answer: Answer) -> bool:
    """True when there is an answer, and contexts with texts to judge it by."""
    return not gave_no_answer(answer, judged=True) and has_context_texts(answer)


# --- grades and files ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Graded:
    """A graded run before its manifest is written."""

    rows: Sequence[CaseRow]
    summary: Mapping[str, Any]
    lines: Sequence[str]


def grade(
    run: RunFolder,
    cases: CaseSet,
    answers: AnswerSet,
    replies: RecordedReplies | None,
    measures: Measures,
    settings: Settings,
    drawn: frozenset[str] | None,
    *,
    embedded: bool,
    is_part: bool = False,
) -> Graded:
    """Grade every case and write the tables, the summary and `hit.txt`. Pure but for these files.

    A part: `drawn` is what the judge saw before a limit was reached.
    """
    rows = list(case_rows(cases, answers, measures, replies, drawn))
    mode = next((prompt.mode for prompt in measures.prompts.values()), "none")
    has_rule = any(pass_rule(prompt, did_abstain=False) is not None for prompt in measures.prompts.values())
    summary = summarise(
        rows,
        k=measures.k,
        seed=settings.run.seed,
        mode=mode,
        is_sampled=drawn is not None and not is_part,
        is_part=is_part,
        has_pass_rule=has_rule,
        score_range=score_range(measures.prompts),
    )
    if len(measures.models) > 1 and mode != "none":
        summary["judge"]["panel"] = summarise_panel(rows, measures.models)
    write_table(run, "cases", rows, CaseRow)
    run.write_json("summary.json", summary)
    lang = settings.run.lang
    failed = [row for row in rows if row.outcome == "fail"]
    shown = ((row, cases.get(row.id), answers.get(row.id, row.answer_no)) for row in failed)
    lines = summary_lines(summary, lang, embedded=embedded)
    lines += failure_lines(shown, len(failed), str(run.path / "cases.csv"), lang)
    run.write_text("hit.txt", "\n".join(lines) + "\n")
    return Graded(rows, summary, lines)


def measures_of(settings: Settings, prompts: Mapping[str, Prompt]) -> Measures:
    """How a run with these settings is measured. Raises InputError for a corpus that cannot be read."""
    models = tuple(member.model or "" for member in settings.judge.members())
    judge, of_run = settings.judge, settings.run
    corpus = None if of_run.corpus is None else Corpus(Path(of_run.corpus))
    return Measures(of_run.k, of_run.match, prompts, judge.prompt_lang, judge.repeats, models, corpus)


def score_range(prompts: Mapping[str, Prompt]) -> tuple[int, int]:
    """Lowest and highest level of the prompt's score; 1 to 5 where it has none."""
    scores = [field for prompt in prompts.values() if (field := score_of(prompt.fields)) is not None]
    return (scores[0].low, scores[0].high) if scores else (1, 5)


def write_report(
    run: RunFolder,
    manifest: Mapping[str, Any],
    graded: Graded,
    cases: CaseSet,
    answers: AnswerSet,
    lang: str,
    bias: Mapping[str, Any] | None = None,
) -> None:
    """Write `report.html` with every number, the first cases that did not pass, and what was made since the run ended.

    `bias` takes the place of a `bias.json` that is yet to be written.
    """
    worth_reading = [row for row in graded.rows if row.outcome != "pass"]
    first = with_texts(worth_reading[:N_CASES_IN_REPORT], cases, answers)
    joined = joined_records(run)
    joined = joined if bias is None else replace(joined, bias=bias)
    page = render_report(manifest, graded.summary, first, n_not_passed=len(worth_reading), lang=lang, joined=joined)
    run.write_text("report.html", page)


def with_texts(rows: Sequence[CaseRow], cases: CaseSet, answers: AnswerSet) -> list[ReportCase]:
    """The cases of these rows as a page shows them."""
    return [ReportCase(row, cases.get(row.id), answers.get(row.id, row.answer_no)) for row in rows]


def joined_records(run: RunFolder) -> Joined:
    """What was made of a run since it ended. Raises InputError for a file that is none of ours."""
    found: dict[str, Any] = {}
    for name, needed in JOINED_FILES.items():
        path = run.path / f"{name}.json"
        if not path.exists():
            continue
        found[name] = run.read_json(path.name)
        if lacking := [key for key in needed if key not in found[name]]:
            raise InputError(f"{path}: {lacking[0]} is missing; the file was changed, or is of another version")
    return Joined(**found)


def say_families(found: Sequence[Mapping[str, str]], world: World) -> None:
    """A warning for each judge of one family with a model whose answers it judges."""
    for one in found:
        world.say(
            f"warning: the judge {one['judge']} is of one family ({one['family']}) with {one['system']}, whose answers "
            "it judges, and may favour its own kind; let people check it, or add a judge of another family"
        )


def exit_code(summary: Mapping[str, Any], settings: Settings) -> int:
    """0, or 4 when more cases went unscored or unanswered than the settings allow."""
    n_answers, judge = summary["n_answered"] + summary["n_errors"], summary["judge"]
    unanswered = summary["n_errors"] / n_answers if n_answers else 0.0
    drawn = judge.get("drawn", 0)
    unscored = sum(judge.get("unscored", {}).values()) / drawn if drawn else 0.0
    return 4 if unanswered > settings.run.max_unanswered or unscored > settings.run.max_unscored else 0


def limits_left(settings: Settings, result: RunResult) -> Settings:
    """The settings with what a run has spent taken off its limits of money and calls."""
    judge, cost = settings.judge, result.folder.manifest().get("cost") or {}
    calls = (cost.get("calls") or 0) - (cost.get("cached") or 0)  # replies of earlier runs cost nothing
    usd = cost.get("usd_with_estimates") or cost.get("usd") or 0.0
    return replace(
        settings,
        judge=replace(
            judge,
            max_calls=None if judge.max_calls is None else max(0, judge.max_calls - calls),
            max_usd=None if judge.max_usd is None else max(0.0, judge.max_usd - usd),
        ),
    )
