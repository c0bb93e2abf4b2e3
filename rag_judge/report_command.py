"""The command `report`. No logic lives here.

As in `cli`, what a command needs is imported when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag_judge.errors import InputError
from rag_judge.options import Config, Json, Lang, Out, Quiet, flags_of
from rag_judge.printing import let_pipes_end, print_json
from rag_judge.progress import Voice

if TYPE_CHECKING:
    from rag_judge.archive import RunFolder
    from rag_judge.pipeline.report import Reported


Baseline = Annotated[str | None, typer.Option("--baseline", help="Compare with this run first: its folder or id.")]
Common = Annotated[bool, typer.Option("--common", help="With --baseline: only the questions that both were asked.")]
OutFile = Annotated[
    Path | None, typer.Option("--out-file", help="Where to write it; - for stdout. [RUN/report.html or report.md]")
]
N_RUNS_OF_TREND = 60


def report(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A finished run: its folder or id.")],
    baseline: Baseline = None,
    common: Common = False,
    format_name: Annotated[str, typer.Option("--format", help="html or md (Markdown).")] = "html",
    out_file: OutFile = None,
    out: Out = None,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a finished run's report again, with what was made since: labels, comparison, gate, nightly job.

    Example: rag-judge report 2026-01-31-v2 --baseline 2026-01-31-v1
    """
    from rag_judge.archive import find_run
    from rag_judge.pipeline import real_world
    from rag_judge.pipeline.report import write_joined_report
    from rag_judge.pipeline.trend import trend
    from rag_judge.report.trend_plot import trend_section
    from rag_judge.settings import load_settings

    if as_json and out_file is not None and str(out_file) == "-":
        raise InputError("--json and --out-file -: both would print to stdout; give one of them")
    with Voice(quiet=quiet) as voice:
        environment = real_world(say=voice.say).environment
        settings = load_settings(config, environment, flags_of({"out": out, "lang": lang}, "out lang"))
        archive = Path(settings.run.out)
        folder = find_run(archive, run)
        same_name = trend(archive, name=folder.manifest().get("name"), last=N_RUNS_OF_TREND).points
        made = write_joined_report(
            folder,
            settings.run.lang,
            trend_section(same_name, settings.run.lang) if format_name == "html" and len(same_name) > 1 else None,
            format_name=format_name,
            out_file=out_file,
            baseline=None if baseline is None else find_run(archive, baseline),
            common=common,
            declared=settings.compare.metrics,
        )
    _printed(made, folder, as_json=as_json, format_name=format_name)


def _printed(made: Reported, folder: RunFolder, *, as_json: bool, format_name: str) -> None:
    let_pipes_end()
    if as_json:
        file = None if made.file is None else str(made.file)
        print_json({"run": str(folder.path), "file": file, "format": format_name, "joined": list(made.joined)})
    elif made.file is None:
        typer.echo(made.text, nl=False)
    else:
        typer.echo(str(made.file))
