"""The command `trend`. No logic lives here.

As in `cli`, what a command needs is imported when it runs.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from rag_judge.options import Config, Json, Lang, Out, Quiet, flags_of
from rag_judge.printing import let_pipes_end
from rag_judge.progress import Voice


def trend(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="[RUNS]...", help="Runs: folders or ids. [all of the archive]")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Only the runs that were given this name.")] = None,
    last: Annotated[int | None, typer.Option("--last", help="Only the last so many of them.")] = None,
    svg: Annotated[Path | None, typer.Option("--svg", help="Write the picture as SVG.")] = None,
    png: Annotated[Path | None, typer.Option("--png", help="Write the picture as PNG.")] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write the numbers, a row a run and metric.")] = None,
    out: Out = None,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the numbers of finished runs over time, joined only where they can be compared.

    Example: rag-judge trend --name nightly --last 30 --png trend.png
    """
    from rag_judge.pipeline.trend import trend as read_trend
    from rag_judge.pipeline.trend import write_files
    from rag_judge.report.trend_table import trend_lines
    from rag_judge.report.trend_words import TREND_WORDS
    from rag_judge.settings import load_settings
    from rag_judge.trend_output import json_text, trend_tree

    of_run = load_settings(config, os.environ, flags_of({"out": out, "lang": lang}, "out lang")).run
    with Voice(quiet=quiet) as voice:
        found = read_trend(Path(of_run.out), runs or [], name=name, last=last)
        if write_files(found, of_run.lang, svg=svg, png=png, csv=csv) != of_run.lang:
            voice.say(f"warning: {TREND_WORDS[of_run.lang]['drawn_with']}")
    let_pipes_end()
    if as_json:
        typer.echo(json_text(trend_tree(found)))
        return
    for line in trend_lines(found, of_run.lang, shutil.get_terminal_size((80, 24)).columns):
        typer.echo(line)
    for path in (svg, png, csv):
        if path is not None:
            typer.echo(str(path))
