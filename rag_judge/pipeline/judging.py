"""The judge's part of a run: how it is reached, which cases it sees, and every call sent that is not journalled yet."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from rag_judge.addresses import endpoint_url, public_url
from rag_judge.answers import AnswerSet
from rag_judge.archive import RunFolder
from rag_judge.cache import CachedJudge, ReplyCache
from rag_judge.calls import AsksForCase, Progress, send_all
from rag_judge.cases import CaseSet
from rag_judge.engines.local_model import running_model
from rag_judge.errors import InputError, LimitReached
from rag_judge.grading import AnswersGrading, CaseGrading, GradingPlan, vote_of
from rag_judge.journal import Journal
from rag_judge.judge import ModelServer, Server, answering_local_servers
from rag_judge.money import Limits, Meter, Price, price_of
from rag_judge.pace import Pace, seconds_of
from rag_judge.pipeline.steps import Budget, World, can_be_judged, n_answered
from rag_judge.prompts import language_of, load_prompt, prompt_folder
from rag_judge.records import Prompt, Unscored, Verdict
from rag_judge.sections import JudgeSettings
from rag_judge.settings import Settings

EMBEDDED = "embedded"
OPENAI_BASE_URL = "https://api.openai.com/v1"
# The embedded model rambles: a short reason keeps a case within seconds.
EMBEDDED_REASON_LENGTH, EMBEDDED_MAX_TOKENS = 24, 120


@dataclass(frozen=True, slots=True)
class JudgeAccess:
    """How the judge is reached; for the embedded one the address is known only while it runs."""

    model: str
    base_url: str | None
    api_key: str = field(repr=False, default="none")
    limits: Limits = field(default_factory=Limits)
    number: int = 0  # which of several judges

    @property
    def embedded(self) -> bool:
        """True for the embedded demo model."""
        return self.base_url is None


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


def judge_prices(settings: Settings) -> list[Price | None]:
    """What each judge's tokens cost; None for the embedded model, and where no price is known."""
    return [_price(member) for member in settings.judge.members()]


def _price(judge: JudgeSettings) -> Price | None:
    if judge.model is None or judge.model == EMBEDDED:
        return None
    own = {model: {"prompt": price.prompt, "completion": price.completion} for model, price in judge.prices.items()}
    return price_of(judge.model, judge.base_url or OPENAI_BASE_URL, own)


def deadline_s(text: str, now: datetime) -> float:
    """Seconds until a deadline: a duration (`90`, `90s`, `30m`, `2h`) or the next such time of day (`06:30`).

    Raises InputError for anything else.
    """
    seconds = seconds_of(text)
    if seconds is not None:
        return seconds
    try:
        until = datetime.combine(now.date(), time.fromisoformat(text.strip()), now.tzinfo)
    except ValueError:
        wanted = "a duration such as 90s, 30m or 2h, or a time of day such as 06:30"
        raise InputError(f"deadline: found {text!r}, expected {wanted}") from None
    return ((until - now) % timedelta(days=1)).total_seconds()


def limits_of(settings: Settings, world: World) -> Limits:
    """The limits of a run's spending. Raises InputError for a limit of money where no price is known."""
    judge = settings.judge
    unpriced = [m.model for m in judge.members() if m.model not in (None, EMBEDDED) and _price(m) is None]
    if judge.max_usd is not None and unpriced:
        raise InputError(
            f"max_usd: no price of {unpriced[0]} is known; give one in rag-judge.toml, under [judge.prices."
            f'"{unpriced[0]}"], prompt and completion in US dollars per million tokens, or limit calls with max_calls'
        )
    ends = None if judge.deadline is None else world.monotonic() + deadline_s(judge.deadline, world.now())
    return Limits(judge.max_usd, judge.max_calls, ends)


def judge_accesses(settings: Settings, world: World) -> list[JudgeAccess]:
    """How to reach each judge, and within which limits; a deadline counts from here.

    Raises InputError saying what to set, and naming local servers that answer.
    """
    limits = limits_of(settings, world)
    reached = [_access(member, limits, world.environment) for member in settings.judge.members()]
    return [replace(access, number=number) for number, access in enumerate(reached)]


def _access(settings: JudgeSettings, limits: Limits, environment: Mapping[str, str]) -> JudgeAccess:
    if settings.model == EMBEDDED:
        return JudgeAccess(EMBEDDED, None, limits=limits)
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
    return JudgeAccess(settings.model, base_url, key or "none", limits)


# --- the judge ---------------------------------------------------------------------------------------------------


async def ask_judges(
    run: RunFolder,
    cases: CaseSet,
    answers: AnswerSet,
    prompts: Mapping[str, Prompt],
    settings: Settings,
    accesses: Sequence[JudgeAccess],
    budget: Budget,
    world: World,
    *,
    retry_unscored: bool = False,
) -> tuple[frozenset[str] | None, list[dict[str, Any]]]:
    """Send every call that the journal does not hold, judge after judge, all of the same cases.

    Returns the drawn case ids (None: all) and, by judge, what was asked.
    """
    drawn: frozenset[str] | None = None
    parts = []
    for access in accesses:
        try:
            drawn, part = await _ask_judge(
                run, cases, answers, prompts, settings, access, budget, world, retry_unscored=retry_unscored
            )
        except LimitReached as stopped:
            if access is not accesses[-1]:
                stopped.finished = frozenset()  # no case has been seen by every judge
            raise
        parts.append(part)
    return drawn, parts


async def _ask_judge(
    run: RunFolder,
    cases: CaseSet,
    answers: AnswerSet,
    prompts: Mapping[str, Prompt],
    settings: Settings,
    access: JudgeAccess,
    budget: Budget,
    world: World,
    *,
    retry_unscored: bool,
) -> tuple[frozenset[str] | None, dict[str, Any]]:
    taken: list[str] = []
    n_all = len(cases)
    order: Iterable[str] = cases.offsets
    if budget.is_limited:
        order = draw_order(cases, answers, settings.run.seed)
        n_all = min(len(list(order)), budget.sample or n_all)

    def to_grade(plan: GradingPlan) -> Iterator[AsksForCase]:
        ids = _within(order, budget, world, taken)
        return _by_case(gradings(cases, answers, plan, settings.judge.prompt_lang, ids))

    forget = _unread(run, prompts, cases, settings) if retry_unscored else None
    part = await send_to_judge(run, prompts, settings, access, world, n_all, to_grade, forget)
    is_part = budget.is_limited and len(taken) < n_answered(cases, answers)
    return frozenset(taken) if is_part else None, part


async def send_to_judge(
    run: RunFolder,
    prompts: Mapping[str, Prompt],
    settings: Settings,
    access: JudgeAccess,
    world: World,
    n_all: int,
    to_grade: Callable[[GradingPlan], Iterable[AsksForCase]],
    forget: Callable[[str], bool] | None = None,
) -> dict[str, Any]:
    """Send every call that is needed and not journalled yet. Returns what was asked, for the manifest.

    `to_grade` makes the cases, once the plan is known; `forget` says which kept replies are asked again.
    """
    with (
        opened_server(access, settings.judge) as (server, server_name, model_sha256),
        closing(Journal(run.journal)) as journal,
    ):
        if journal.n_dropped:
            world.say(
                f"warning: {journal.n_dropped} broken lines of {run.journal} were dropped; their calls are sent again"
            )
        plan = grading_plan(prompts, settings, access, server_name)
        at_once = 1 if access.embedded else settings.judge.concurrency
        pace = _pace(settings.judge, at_once, access.limits, world)
        prompt = next(iter(prompts.values()))
        async with ModelServer(server, world.now, world.say, pace) as judge:
            with opened_cache(judge, server_name, prompt, settings, world) as cached:
                await send_all(
                    to_grade(plan),
                    cached or judge,
                    journal,
                    concurrency=at_once,
                    forget=forget or (lambda call_id: False),
                    on_progress=_judge_progress(world, n_all),
                    meter=_meter(journal, access, judge_prices(settings), judge),
                    monotonic=world.monotonic,
                    judge_no=access.number,
                )
        if journal.n_cached:
            world.say(f"{journal.n_cached} replies of {access.model} are of earlier runs; --no-cache asks anew")
        return {"model_sha256": model_sha256, "probe": judge.probed, "n_slowed": pace.n_slowed}


def _pace(judge: JudgeSettings, at_once: int, limits: Limits, world: World) -> Pace:
    return Pace(at_once, world.monotonic, judge.requests_per_minute, judge.tokens_per_minute, limits.deadline)


def _meter(journal: Journal, access: JudgeAccess, prices: Sequence[Price | None], judge: ModelServer) -> Meter:
    """The meter of one judge, which knows what the run's other judges have spent."""
    others = [(n, spend) for n, spend in journal.spends.items() if n != access.number]
    priced = [(spend, price) for n, spend in others if (price := prices[n]) is not None]
    return Meter(
        access.limits,
        prices[access.number],
        calls_elsewhere=sum(spend.calls for _, spend in others),
        usd_elsewhere=sum(spend.usd_with_estimates(price) for spend, price in priced),
        scale=judge.scale,
        overhead=judge.overhead,
    )


@contextmanager
def opened_cache(
    judge: ModelServer, server_name: str, prompt: Prompt, settings: Settings, world: World
) -> Iterator[CachedJudge | None]:
    """The judge with the replies of earlier runs at hand; None with the cache switched off, or its file unusable."""
    import sqlite3

    if not settings.judge.cache:
        yield None
        return
    path = cache_path(settings)
    try:
        cache = ReplyCache(
            path,
            max_days=settings.judge.cache_days,
            max_mb=settings.judge.cache_mb,
            clock=lambda: world.now().timestamp(),
        )
    except (sqlite3.Error, OSError) as error:
        world.say(f"warning: the cache {path} cannot be used ({error}); every reply is asked for")
        yield None
        return
    with closing(cache):
        # The fields are the same in each language of a prompt, so any of them tells whether a verdict stands there.
        yield CachedJudge(
            judge, cache, server_name, lambda call, reply: isinstance(vote_of(reply, prompt), Verdict), world.say
        )


def cache_path(settings: Settings) -> Path:
    """Where the replies of earlier runs are: in a folder of its own beside the archive."""
    return Path(settings.run.out).resolve().parent / ".rag-judge" / "replies.sqlite"


def _judge_progress(world: World, n_all: int) -> Callable[[Progress], None]:
    """Says how far the judging is, how fast, what it has cost and how long it will take."""
    started = world.monotonic()

    def say(progress: Progress) -> None:
        elapsed = max(1e-9, world.monotonic() - started)
        n_done = progress.n_cases_done
        parts = [f"{progress.n_calls_sent / elapsed:.1f} calls/s"]
        if progress.usd is not None:
            parts.append(f"{progress.usd:.4f} USD")
        if n_done:
            parts.append(f"{(n_all - n_done) * elapsed / n_done:.0f} s left")
        world.progress("judged", n_done, n_all, ", ".join(parts))

    return say


@contextmanager
def opened_server(access: JudgeAccess, settings: JudgeSettings) -> Iterator[tuple[Server, str, str | None]]:
    """The server to ask, its name in call ids, and the hash of an embedded model's weights."""
    patience: dict[str, Any] = {
        "timeout_s": settings.timeout_s,
        "attempts": settings.attempts,
        "backoff_s": settings.backoff_s,
        "probe": settings.probe,
    }
    if access.base_url is not None:
        server = Server(access.base_url, access.model, access.api_key, body=settings.body, **patience)
        yield server, public_url(access.base_url), None
        return
    with running_model() as model:
        server = Server(model.base_url, model.model, model.api_key, body=settings.body, counts_parts=False, **patience)
        yield server, f"embedded:{model.weights_sha256}", model.weights_sha256


def grading_plan(
    prompts: Mapping[str, Prompt], settings: Settings, access: JudgeAccess, server_name: str
) -> GradingPlan:
    """How one judge grades the cases of a run."""
    judge, embedded = settings.judge, access.embedded
    return GradingPlan(
        prompts=prompts,
        server=server_name,
        model=access.model,
        judge=access.number,
        n_repeats=judge.repeats,
        seed=settings.run.seed,
        early_stop=judge.early_stop,
        reask=judge.reask,
        max_tokens=judge.max_tokens or (EMBEDDED_MAX_TOKENS if embedded else None),
        reason_max_length=EMBEDDED_REASON_LENGTH if embedded else None,
        vary_order=judge.vary == "order",
    )


def draw_order(cases: CaseSet, answers: AnswerSet, seed: int) -> list[str]:
    """The answered cases in a seeded order that does not depend on the file's: a larger sample is a longer prefix."""
    answered = [case_id for case_id in cases.offsets if any(map(can_be_judged, answers.of_case(case_id)))]
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
    """Yield what there is to ask of each answer that has contexts to judge it by, case by case in this order."""
    for case_id in order:
        case = cases.get(case_id)
        prompt = plan.prompts[language_of(case.question, prompt_lang, plan.prompts)]
        for answer in answers.of_case(case_id):
            if can_be_judged(answer):
                yield CaseGrading(case, answer, prompt, plan)


def _by_case(asked: Iterable[CaseGrading]) -> Iterator[AsksForCase]:
    """The same, with the several answers to a case as one, so that a case is finished when all of them are."""
    for case_id, of_case in groupby(asked, key=lambda grading: grading.case_id):
        answers = list(of_case)
        yield answers[0] if len(answers) == 1 else AnswersGrading(case_id, answers)


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
