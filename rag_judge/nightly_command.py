"""The command `nightly`. No logic lives here.

As in `cli`, what a command needs is imported when it runs.
"""

from __future__ import annotations

from typing import Annotated

import typer

from rag_judge.options import Config, Json, Lang, Out, Quiet, flags_of
from rag_judge.printing import let_pipes_end, print_json
from rag_judge.progress import Voice


def nightly(
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin anew where a night was interrupted.")] = False,
    out: Out = None,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The nightly job, as [nightly] of rag-judge.toml says: measure, compare, decide, tell, tidy up.

    Example: rag-judge nightly --config rag-judge.toml
    """
    from rag_judge.pipeline import real_world
    from rag_judge.pipeline.nightly import nightly as night_of
    from rag_judge.settings import load_settings, unknown_variables

    with Voice(quiet=quiet) as voice:
        world = real_world(say=voice.say, progress=voice.progress)
        settings = load_settings(config, world.environment, flags_of({"out": out, "lang": lang}, "out lang"))
        for name in unknown_variables(world.environment, settings):
            voice.say(f"warning: the environment variable {name} is no setting of rag-judge")
        night = night_of(settings, world, fresh=fresh)
    let_pipes_end()
    if as_json:
        folder = None if night.result is None else str(night.result.folder.path)
        print_json({"run": folder, "lines": night.lines, **night.tree()})
    else:
        for line in [*night.commands, *night.lines]:
            typer.echo(line)
    raise typer.Exit(night.exit_code)
