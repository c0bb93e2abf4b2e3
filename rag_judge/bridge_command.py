"""The command `bridge`. No logic lives here.

As in `cli`, what a command needs is imported when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_judge.options import (
    BaseUrl,
    Config,
    Deadline,
    Json,
    JudgeName,
    Lang,
    MaxCalls,
    MaxUsd,
    Models,
    Out,
    Quiet,
    Repeats,
    flags_of,
    run_options,
)
from rag_judge.printing import let_pipes_end, print_run, so_far_printed
from rag_judge.progress import Voice

FLAGS = "judge repeats base_url name out lang max_usd max_calls deadline"


def bridge(
    run_name: Annotated[str, typer.Argument(metavar="RUN", help="A finished run: its folder or id.")],
    judge: JudgeName = None,
    repeats: Repeats = None,
    base_url: BaseUrl = None,
    model: Models = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the new run. [the run's, with -bridge]")] = None,
    out: Out = None,
    resume: Annotated[str | None, typer.Option("--resume", help="Go on with an interrupted bridge of RUN.")] = None,
    max_usd: MaxUsd = None,
    max_calls: MaxCalls = None,
    deadline: Deadline = None,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Grade an older run's kept answers again with today's judge, and say how far the judge moved.

    Example: rag-judge bridge 2026-01-31-nightly --base-url http://127.0.0.1:8000/v1 --model M
    """
    from rag_judge.anchors import judge_changes
    from rag_judge.archive import find_run
    from rag_judge.bridge_words import bridge_lines
    from rag_judge.pipeline import real_world
    from rag_judge.pipeline.bridge import bridge as bridged
    from rag_judge.pipeline.bridge import bridge_name, taken_labels
    from rag_judge.settings import load_settings, unknown_variables

    flags = flags_of(locals(), FLAGS) | run_options(model, {}, None)
    with Voice(quiet=quiet) as voice, so_far_printed(as_json=as_json):
        world = real_world(say=voice.say, progress=voice.progress)
        archive = Path(load_settings(config, world.environment, flags).run.out)
        parent = find_run(archive, run_name)
        settings = load_settings(config, world.environment, {"name": bridge_name(parent), **flags})
        for variable in unknown_variables(world.environment, settings):
            voice.say(f"warning: the environment variable {variable} is no setting of rag-judge")
        folder = None if resume is None else find_run(archive, resume)
        result = bridged(parent, settings, world, folder, flags=flags)
    comparison, labels = result.folder.read_json("comparison.json"), taken_labels(parent, result.folder)
    changed = judge_changes(parent.manifest(), result.folder.manifest())
    let_pipes_end()
    if not as_json:
        for line in bridge_lines(comparison, changed, labels.n, labels.why, settings.run.lang):
            typer.echo(line)
    told = {"parent": comparison["a"], "judge_changes": changed, "moved": comparison["metrics"]["pass"]}
    print_run(result, as_json=as_json, more=told | {"labels": {"n": labels.n, "why": labels.why}})
