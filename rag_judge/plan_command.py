"""The command `plan`. No logic lives here.

As in `cli`, what a command needs is imported when it runs.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_judge.errors import InputError
from rag_judge.options import (
    Answers,
    Attempts,
    BaseUrl,
    Cases,
    Concurrency,
    Config,
    Deadline,
    EndpointUrl,
    Json,
    JudgeName,
    JudgeSample,
    K,
    Lang,
    Match,
    MaxCalls,
    MaxTokens,
    MaxUsd,
    Models,
    Name,
    NoCache,
    NoEarlyStop,
    NoReask,
    Out,
    PromptLang,
    Quiet,
    Repeats,
    Seed,
    SetValues,
    TimeoutS,
    Vary,
    flags_of,
    run_options,
    switches,
)
from rag_judge.printing import let_pipes_end, print_json, print_plan
from rag_judge.progress import Voice

if TYPE_CHECKING:
    from rag_judge.pipeline import RunRequest, World

PLAN_FLAGS = (
    "judge repeats base_url prompt_lang judge_sample name out seed concurrency max_tokens timeout_s attempts "
    "vary lang max_usd max_calls deadline k match endpoint"
)


def plan(
    cases: Cases,
    answers: Answers = None,
    endpoint: EndpointUrl = None,
    change: Annotated[
        str | None,
        typer.Option(
            "--change",
            help="Say what a change of your system needs: prompt, model, embedding, chunking, or online (a fault seen "
            "in production).",
        ),
    ] = None,
    judge: JudgeName = None,
    repeats: Repeats = None,
    k: K = None,
    match: Match = None,
    base_url: BaseUrl = None,
    model: Models = None,
    prompt_lang: PromptLang = None,
    judge_sample: JudgeSample = None,
    name: Name = None,
    out: Out = None,
    seed: Seed = None,
    concurrency: Concurrency = None,
    max_tokens: MaxTokens = None,
    timeout_s: TimeoutS = None,
    attempts: Attempts = None,
    max_usd: MaxUsd = None,
    max_calls: MaxCalls = None,
    deadline: Deadline = None,
    vary: Vary = None,
    no_early_stop: NoEarlyStop = False,
    no_reask: NoReask = False,
    no_cache: NoCache = False,
    set_values: SetValues = None,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what a run would spend: calls, tokens, money and the first prompt. Nothing is sent.

    Example: rag-judge plan --cases cases.jsonl --answers answers.jsonl --repeats 5

    Example: rag-judge plan --cases cases.jsonl --change prompt
    """
    from rag_judge import pipeline
    from rag_judge.settings import load_settings, unknown_variables

    flags = flags_of(locals(), PLAN_FLAGS)
    flags |= run_options(model, switches(no_early_stop, no_reask, no_cache), set_values)
    with Voice(quiet=quiet) as voice:
        world = pipeline.real_world(say=voice.say)
        settings = load_settings(config, world.environment, flags)
        for variable in unknown_variables(world.environment, settings):
            voice.say(f"warning: the environment variable {variable} is no setting of rag-judge")
        request = pipeline.RunRequest(settings, cases, answers, pipeline.Budget(sample=settings.judge.sample))
        if change is not None:
            _print_change(change, request, world, flags, config, as_json=as_json)
            return
        planned = pipeline.plan(request, world)
    if as_json:
        print_json(asdict(planned))
    else:
        print_plan(planned)


def _print_change(
    change: str, request: RunRequest, world: World, flags: dict[str, Any], config: Path | None, *, as_json: bool
) -> None:
    from rag_judge.change_facts import CHANGES
    from rag_judge.change_words import change_lines, change_tree
    from rag_judge.pipeline.change_plan import change_plan, typed_options

    known = next((one for one in CHANGES if one == change), None)
    if known is None:
        raise InputError(f"--change {change!r}: expected one of {', '.join(CHANGES)}")
    typed = typed_options(flags, config, request.answers)
    planned, facts = change_plan(known, request, typed, world, flags.get("system"))
    lang = request.settings.run.lang
    if as_json:
        print_json(change_tree(planned, facts, lang))
        return
    let_pipes_end()
    for line in change_lines(planned, facts, lang):
        typer.echo(line)
