"""What a run would spend, before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from rag_judge.answers import AnswerSet
from rag_judge.cases import CaseSet
from rag_judge.pipeline.judging import EMBEDDED, JudgeAccess, grading_plan, gradings, judge_prices, loaded_prompts
from rag_judge.pipeline.run import RunRequest, answers_or_endpoint
from rag_judge.pipeline.steps import World
from rag_judge.prompts import estimated_tokens, messages_for
from rag_judge.records import Prompt
from rag_judge.settings import Settings


@dataclass(frozen=True, slots=True)
class PlannedSpend:
    """What a run would send. Tokens are estimates from the texts' lengths; None where answers are yet to be asked."""

    n_cases: int
    n_questions_to_ask: int
    n_to_judge: int
    calls_at_least: int
    calls_at_most: int  # without the one further try at each reply that cannot be read
    reasks_at_most: int
    prompt_tokens_at_most: int | None
    completion_tokens_at_most: int
    usd_at_most: float | None
    price: str | None  # where the price is from
    first_messages: Sequence[Mapping[str, str]]


def plan(request: RunRequest, world: World) -> PlannedSpend:
    """What `run` would spend with the same arguments; nothing is sent and nothing is written.

    With an endpoint the answers are not known yet: every case is counted as one to judge, and there is no prompt.
    """
    settings, judge = request.settings, request.settings.judge
    with closing(CaseSet(request.cases)) as cases:
        prompts = loaded_prompts(judge)
        given, _ = answers_or_endpoint(request, cases, world)
        rendered = _Rendered(len(cases) if prompts else 0, len(cases), None, ())
        if given is not None:
            with closing(given):
                rendered = _rendered(cases, given, prompts, settings)
        n_cases = len(cases)
    n, tokens = rendered.n_to_judge, rendered.tokens
    if request.budget.sample is not None and request.budget.sample < rendered.n_cases:
        share = request.budget.sample / rendered.n_cases
        n, tokens = round(n * share), None if tokens is None else round(tokens * share)
    n_judges = len(judge.members()) if prompts else 0
    calls = n * judge.repeats * n_judges
    longest = judge.max_tokens or max((prompt.max_tokens for prompt in prompts.values()), default=0)
    each = None if tokens is None else tokens * judge.repeats
    prices = judge_prices(settings) if prompts else []
    known = [price for price in prices if price is not None]
    usd = None
    if each is not None and known and len(known) == len(prices):
        usd = sum(price.usd(each, n * judge.repeats * longest) for price in known)
    return PlannedSpend(
        n_cases=n_cases,
        n_questions_to_ask=n_cases if given is None else 0,
        n_to_judge=n,
        calls_at_least=n * n_judges * (min(2, judge.repeats) if judge.early_stop else judge.repeats),
        calls_at_most=calls,
        reasks_at_most=calls if judge.reask else 0,
        prompt_tokens_at_most=None if each is None else each * max(1, n_judges),
        completion_tokens_at_most=calls * longest,
        usd_at_most=usd,
        price=", ".join(dict.fromkeys(price.source for price in known)) or None,
        first_messages=rendered.first_messages,
    )


@dataclass(frozen=True, slots=True)
class _Rendered:
    n_to_judge: int  # answers
    n_cases: int  # that these answers belong to
    tokens: int | None  # of one repeat of every case
    first_messages: Sequence[Mapping[str, str]]


def _rendered(cases: CaseSet, answers: AnswerSet, prompts: Mapping[str, Prompt], settings: Settings) -> _Rendered:
    """Every prompt rendered once: how many, how long together, and the first."""
    if not prompts:
        return _Rendered(0, 0, 0, ())
    model = settings.judge.members()[0].model or ""
    access = JudgeAccess(model, None if model == EMBEDDED else "planned")
    plan_of_run = grading_plan(prompts, settings, access, "planned")
    n_to_judge, tokens, ids = 0, 0, set()
    first: Sequence[Mapping[str, str]] = ()
    for one in gradings(cases, answers, plan_of_run, settings.judge.prompt_lang, cases.offsets):
        messages = messages_for(one.prompt, one.case, one.answer, settings.run.seed)
        first = first or messages
        n_to_judge += 1
        ids.add(one.case_id)
        tokens += sum(estimated_tokens(message["content"]) for message in messages)
    return _Rendered(n_to_judge, len(ids), tokens, first)
