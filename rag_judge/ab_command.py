"""The command `ab`. No logic lives here.

As in `cli`, what a command needs is imported when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_judge.options import (
    BaseUrl,
    Concurrency,
    Config,
    CorpusPath,
    Deadline,
    Json,
    JudgeName,
    K,
    Lang,
    MaxCalls,
    MaxUsd,
    Model,
    Name,
    Out,
    PromptLang,
    Quiet,
    Repeats,
    Seed,
    flags_of,
    system_factors,
)
from rag_judge.printing import let_pipes_end, print_json, so_far_printed
from rag_judge.progress import Voice

FLAGS = "judge repeats base_url model prompt_lang name out seed concurrency max_usd max_calls deadline lang k corpus"


def ab(
    cases: Annotated[Path, typer.Option("--cases", help="Eval set: JSON Lines, JSON array, CSV or Parquet.")],
    a: Annotated[str, typer.Option("--a", help="The version that is in use: its endpoint's URL, or its answers file.")],
    b: Annotated[str, typer.Option("--b", help="The version that is to be shipped: URL or answers file.")],
    set_a: Annotated[list[str] | None, typer.Option("--set-a", help="key=value of A; seen by its request.")] = None,
    set_b: Annotated[list[str] | None, typer.Option("--set-b", help="key=value of B; seen by its request.")] = None,
    judge: JudgeName = None,
    repeats: Repeats = None,
    k: K = None,
    corpus: CorpusPath = None,
    base_url: BaseUrl = None,
    model: Model = None,
    prompt_lang: PromptLang = None,
    name: Name = None,
    out: Out = None,
    seed: Seed = None,
    concurrency: Concurrency = None,
    max_usd: MaxUsd = None,
    max_calls: MaxCalls = None,
    deadline: Deadline = None,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Two versions in one go: both graded, judged side by side in both orders, compared, and decided on.

    Example: rag-judge ab --cases cases.jsonl --a http://127.0.0.1:9000/ask --set-a prompt=1
    --b http://127.0.0.1:9000/ask --set-b prompt=2 --base-url http://127.0.0.1:8000/v1 --model M
    """
    from rag_judge.comparison_words import compare_lines
    from rag_judge.gate_output import gate_lines
    from rag_judge.pipeline import real_world
    from rag_judge.pipeline.ab import Version
    from rag_judge.pipeline.ab import ab as both
    from rag_judge.settings import load_settings

    flags = flags_of(locals(), FLAGS)
    with Voice(quiet=quiet) as voice, so_far_printed(as_json=as_json):
        world = real_world(say=voice.say, progress=voice.progress)
        settings = load_settings(config, world.environment, flags)
        versions = [
            Version(source, system_factors(given).get("system", {})) for source, given in ((a, set_a), (b, set_b))
        ]
        decided = both(cases, versions[0], versions[1], settings, world)
    let_pipes_end()
    runs = {"a": decided.a, "b": decided.b, **({} if decided.pairs is None else {"pairs": decided.pairs})}
    if as_json:
        folders = {side: str(result.folder.path) for side, result in runs.items()}
        print_json({"runs": folders, "comparison": decided.comparison, "gate": decided.gated.tree()})
        raise typer.Exit(decided.gated.exit_code)
    language = settings.run.lang
    if decided.pairs is not None:
        for line in decided.pairs.lines:
            typer.echo(line)
    for line in [*compare_lines(decided.comparison, settings.run.k, language), *gate_lines(decided.gated, language)]:
        typer.echo(line)
    raise typer.Exit(decided.gated.exit_code)
