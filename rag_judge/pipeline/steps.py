"""The steps of one run, in the order in which `pipeline.run` takes them: open, begin, answers, judge, grade, finish.

Each step finds what an earlier, killed process left in the run folder and goes on from there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from rag_judge import manifest as manifests
from rag_judge.addresses import endpoint_url, public_url
from rag_judge.answers import AnswerSet, has_context_texts
from rag_judge.archive import RunFolder, copy_into, create_run, write_case_table
from rag_judge.calls import Journal, Progress, RecordedReplies, send_all
from rag_judge.cases import CaseSet
from rag_judge.endpoint import Collected, Collection, Endpoint, ask_all
from rag_judge.engines.local_model import running_model
from rag_judge.errors import InputError
from rag_judge.grading import CaseGrading, GradingPlan, vote_of
from rag_judge.judge import ModelServer, Server, answering_local_servers
from rag_judge.outcomes import gave_no_answer
from rag_judge.prompts import language_of, load_prompt, pass_rule, prompt_folder
from rag_judge.records import Answer, CaseRow, Prompt, Unscored
from rag_judge.refusals import abstention
from rag_judge.report.html import ReportCase, render_report
from rag_judge.report.terminal import failure_lines, summary_lines
from rag_judge.rules import refusal_wordings
from rag_judge.settings import JudgeSettings, Settings
from rag_judge.summary import summarise
from rag_judge.table import Measures, case_rows

EMBEDDED = "embedded"
OPENAI_BASE_URL = "https://api.openai.com/v1"
# The embedded model rambles: a short reason keeps a case within seconds.
EMBEDDED_REASON_LENGTH, EMBEDDED_MAX_TOKENS = 24, 120
N_CASES_IN_REPORT = 200


@dataclass(frozen=True, slots=True)
class World:
    """What a run needs from outside: environment, clock, and where lines for people go."""

    environment: Mapping[str, str]
    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    say: Callable[[str], None] = lambda line: None
    progress: Callable[[str, int, int], None] = lambda what, n_done, n_all: None


@dataclass(frozen=True, slots=True)
class JudgeAccess:
    """How the judge is reached; for the embedded one the address is known only while it runs."""

    model: str
    base_url: str | None
    api_key: str = field(repr=False, default="none")

    @property
    def embedded(self) -> bool:
        """True for the embedded demo model."""
        return self.base_url is None


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


# --- before anything is spent --------------------------------------------------------------------------------------


def loaded_prompts(settings: JudgeSettings, kept: Path | None = None) -> dict[str, Prompt]:
    """The judge's prompt by language, from the folder that a run keeps of it if there is one; empty without a judge."""
    if settings.prompt == "none":
        return {}
    prompts = load_prompt(kept or prompt_folder(settings.prompt, Path(settings.prompts)))
    if any(prompt.mode == "pairwise" for prompt in prompts.values()):
        raise InputError(f"the judge prompt {settings.prompt} compares two answers; a run grades one at a time")
    if settings.prompt_lang != "auto":
        language_of("", settings.prompt_lang, prompts)
    return prompts


def judge_access(settings: JudgeSettings, environment: Mapping[str, str]) -> JudgeAccess:
    """How to reach the judge. Raises InputError saying what to set, and naming local servers that answer."""
    if settings.model == EMBEDDED:
        return JudgeAccess(EMBEDDED, None)
    key = environment.get(settings.api_key_env, "")
    base_url = settings.base_url or (OPENAI_BASE_URL if key else None)
    if base_url is None:
        found = answering_local_servers()
        seen = f"; model servers that answer on this machine: {', '.join(found)}" if found else ""
        raise InputError(
            "no judge is set: give --base-url and --model of an OpenAI-compatible server (or OPENAI_BASE_URL and "
            f"OPENAI_API_KEY in the environment), or --judge none to grade by rules alone{seen}"
        )
    endpoint_url(base_url)
    if "@" in base_url.partition("://")[2].partition("/")[0]:
        raise InputError("base URL: a user and password in it cannot be sent beside a key; leave them out")
    if not settings.model:
        raise InputError(f"no judge model is set: give --model, the name of a model at {public_url(base_url)}")
    if key != key.strip() or not key.isascii() or not key.isprintable():
        raise InputError(f"the key in {settings.api_key_env} holds white space or odd characters; set it again")
    return JudgeAccess(settings.model, base_url, key or "none")


# --- the run folder ---------------------------------------------------------------------------------------------


def begin(settings: Settings, saved: Mapping[str, Any], world: World, parent: str | None = None) -> RunFolder:
    """A new run folder with what a resume needs in it (`request.json`) and a manifest that says `incomplete`."""
    run = create_run(Path(settings.run.out), settings.run.name, world.now().date())
    run.write_json("request.json", {**saved, "settings": manifests.saved_settings(settings)})
    run.write_json("manifest.json", manifests.started(run, settings, world.now(), parent))
    return run


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


async def collect_to(target: Path, part: Path, cases: CaseSet, endpoint: Endpoint, world: World) -> Collected:
    """Ask the endpoint every question and write the answers file, in the order of the cases.

    The answers grow in `part`, from which an interrupted collection goes on; it is gone when `target` stands.
    """
    collection = Collection(part)
    finished = False
    try:
        collected = await ask_all(
            cases,
            endpoint,
            collection,
            lambda so_far: world.progress("questions", so_far.n_kept + so_far.n_asked, len(cases)),
        )
        copy_into(RunFolder(target.parent), target.name, lambda file: collection.write_to(file, cases.offsets))
        finished = True
    finally:
        collection.close(and_remove=finished)
    return collected


# --- the judge ---------------------------------------------------------------------------------------------------


async def ask_judge(
    run: RunFolder,
    cases: CaseSet,
    answers: AnswerSet,
    prompts: Mapping[str, Prompt],
    settings: Settings,
    access: JudgeAccess,
    budget: Budget,
    world: World,
    *,
    retry_unscored: bool = False,
) -> tuple[frozenset[str] | None, dict[str, Any]]:
    """Send every call that the journal does not hold. Returns the drawn case ids (None: all) and what was asked."""
    with (
        opened_server(access, settings.judge) as (server, server_name, model_sha256),
        closing(Journal(run.journal)) as journal,
    ):
        if journal.n_dropped:
            world.say(
                f"warning: {journal.n_dropped} broken lines of {run.journal} were dropped; their calls are sent again"
            )
        plan = grading_plan(prompts, settings, server_name, embedded=access.embedded)
        taken: list[str] = []
        n_all = len(cases)
        order: Iterable[str] = cases.offsets
        if budget.is_limited:
            order = draw_order(cases, answers, settings.run.seed)
            n_all = min(len(list(order)), budget.sample or n_all)
        to_grade = gradings(cases, answers, plan, settings.judge.prompt_lang, _within(order, budget, world, taken))
        async with ModelServer(server, world.now, world.say) as judge:
            await send_all(
                to_grade,
                judge,
                journal,
                concurrency=1 if access.embedded else settings.judge.concurrency,
                forget=_unread(run, prompts, cases, settings) if retry_unscored else lambda call_id: False,
                on_progress=_judge_progress(world, n_all),
            )
        is_part = budget.is_limited and len(taken) < n_answered(cases, answers)
        return frozenset(taken) if is_part else None, {"model_sha256": model_sha256}


def n_answered(cases: CaseSet, answers: AnswerSet) -> int:
    """How many cases have an answer that a judge can be shown."""
    return sum(can_be_judged(answers.get(case_id)) for case_id in cases.offsets)


def can_be_judged(answer: Answer) -> bool:
    """True when there is an answer, and contexts with texts to judge it by."""
    return not gave_no_answer(answer, judged=True) and has_context_texts(answer)


def _judge_progress(world: World, n_all: int) -> Callable[[Progress], None]:
    return lambda progress: world.progress("judged", progress.n_cases_done, n_all)


@contextmanager
def opened_server(access: JudgeAccess, settings: JudgeSettings) -> Iterator[tuple[Server, str, str | None]]:
    """The server to ask, its name in call ids, and the hash of an embedded model's weights."""
    patience = {"timeout_s": settings.timeout_s, "attempts": settings.attempts, "backoff_s": settings.backoff_s}
    if access.base_url is not None:
        server = Server(access.base_url, access.model, access.api_key, body=settings.body, **patience)  # type: ignore[arg-type]
        yield server, public_url(access.base_url), None
        return
    with running_model() as model:
        server = Server(model.base_url, model.model, model.api_key, body=settings.body, **patience)  # type: ignore[arg-type]
        yield server, f"embedded:{model.weights_sha256}", model.weights_sha256


def grading_plan(prompts: Mapping[str, Prompt], settings: Settings, server_name: str, *, embedded: bool) -> GradingPlan:
    """How the cases of a run are graded."""
    judge = settings.judge
    return GradingPlan(
        prompts=prompts,
        server=server_name,
        model=judge.model or "",
        n_repeats=judge.repeats,
        seed=settings.run.seed,
        early_stop=judge.early_stop,
        reask=judge.reask,
        max_tokens=judge.max_tokens or (EMBEDDED_MAX_TOKENS if embedded else None),
        reason_max_length=EMBEDDED_REASON_LENGTH if embedded else None,
    )


def draw_order(cases: CaseSet, answers: AnswerSet, seed: int) -> list[str]:
    """The answered cases in a seeded order that does not depend on the file's: a larger sample is a longer prefix."""
    answered = [case_id for case_id in cases.offsets if can_be_judged(answers.get(case_id))]
    return sorted(
        answered, key=lambda case_id: hashlib.sha256(f"{seed}\n{case_id}".encode("utf-8", "replace")).digest()
    )


def _within(order: Iterable[str], budget: Budget, world: World, taken: list[str]) -> Iterator[str]:
    """The ids in order until the budget is used up; each one given out is noted in `taken`."""
    ends_at = None if budget.seconds is None else world.monotonic() + budget.seconds
    for case_id in order:
        if budget.sample is not None and len(taken) >= budget.sample:
            return
        if ends_at is not None and len(taken) >= budget.at_least and world.monotonic() >= ends_at:
            return
        taken.append(case_id)
        yield case_id


def gradings(
    cases: CaseSet, answers: AnswerSet, plan: GradingPlan, prompt_lang: str, order: Iterable[str]
) -> Iterator[CaseGrading]:
    """Yield what there is to ask of each case in this order that has an answer and contexts to judge it by."""
    for case_id in order:
        answer = answers.get(case_id)
        if can_be_judged(answer):
            case = cases.get(case_id)
            prompt = plan.prompts[language_of(case.question, prompt_lang, plan.prompts)]
            did_abstain = abstention(answer.answer or "", refusal_wordings(case)).did_abstain
            yield CaseGrading(case, answer, prompt, plan, did_abstain)


def _unread(run: RunFolder, prompts: Mapping[str, Prompt], cases: CaseSet, settings: Settings) -> Callable[[str], bool]:
    """Which kept replies are asked again: those that today's parser cannot read."""
    unread = set()
    with closing(Journal(run.journal)) as journal:
        for entry in journal.entries():
            case = cases.get(entry["case_id"])
            prompt = prompts[language_of(case.question, settings.judge.prompt_lang, prompts)]
            vote = vote_of(journal.result(entry["call_id"]), prompt)
            if isinstance(vote, Unscored):
                unread.add(entry["call_id"])
    return unread.__contains__


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
) -> Graded:
    """Grade every case and write the tables, the summary and `hit.txt`. Pure but for these files."""
    rows = list(case_rows(cases, answers, measures, replies, drawn))
    mode = next((prompt.mode for prompt in measures.prompts.values()), "none")
    has_rule = any(pass_rule(prompt, did_abstain=False) is not None for prompt in measures.prompts.values())
    summary = summarise(
        rows,
        k=measures.k,
        seed=settings.run.seed,
        mode=mode,
        is_sampled=drawn is not None,
        has_pass_rule=has_rule,
        score_range=score_range(measures.prompts),
    )
    write_case_table(run, rows)
    run.write_json("summary.json", summary)
    lang = settings.run.lang
    failed = [row for row in rows if row.outcome == "fail"]
    shown = ((row, cases.get(row.id), answers.get(row.id)) for row in failed)
    lines = summary_lines(summary, lang, embedded=embedded)
    lines += failure_lines(shown, len(failed), str(run.path / "cases.csv"), lang)
    run.write_text("hit.txt", "\n".join(lines) + "\n")
    return Graded(rows, summary, lines)


def score_range(prompts: Mapping[str, Prompt]) -> tuple[int, int]:
    """Lowest and highest level of the prompt's score; 1 to 5 where it has none."""
    scores = [field for prompt in prompts.values() for field in prompt.fields if field.kind == "score"]
    return (scores[0].low, scores[0].high) if scores else (1, 5)


def write_report(
    run: RunFolder, manifest: Mapping[str, Any], graded: Graded, cases: CaseSet, answers: AnswerSet, lang: str
) -> None:
    """Write `report.html` with every number and the first cases that did not pass, in the order of the eval set."""
    worth_reading = [row for row in graded.rows if row.outcome != "pass"]
    first = [ReportCase(row, cases.get(row.id), answers.get(row.id)) for row in worth_reading[:N_CASES_IN_REPORT]]
    page = render_report(manifest, graded.summary, first, n_not_passed=len(worth_reading), lang=lang)
    run.write_text("report.html", page)


def exit_code(summary: Mapping[str, Any], settings: Settings) -> int:
    """0, or 4 when more cases went unscored or unanswered than the settings allow."""
    n_cases, judge = summary["n_cases"], summary["judge"]
    unanswered = summary["n_errors"] / n_cases if n_cases else 0.0
    drawn = judge.get("drawn", 0)
    unscored = sum(judge.get("unscored", {}).values()) / drawn if drawn else 0.0
    return 4 if unanswered > settings.run.max_unanswered or unscored > settings.run.max_unscored else 0
