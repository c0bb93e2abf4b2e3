"""The commands around the archive: `init`, and `regrade` of a run in it. No logic lives here.

As in `cli`, what a command needs is imported when it runs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from rag_judge.options import Config, CorpusPath, Json, Lang, Out, Quiet, flags_of
from rag_judge.printing import print_json, print_run
from rag_judge.progress import Voice
from rag_judge.report.terminal import printable


def regrade(
    run_name: Annotated[str, typer.Argument(metavar="RUN", help="A finished run: its folder or id.")],
    judge: Annotated[
        str | None, typer.Option("--judge", help="Prompt by whose fields replies are read. [the run's]")
    ] = None,
    k: Annotated[int | None, typer.Option("--k", help="Cut of the retrieval metrics. [the run's]")] = None,
    match: Annotated[str | None, typer.Option("--match", help="Level of ids: exact or document. [the run's]")] = None,
    corpus: CorpusPath = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the new run. [the run's]")] = None,
    out: Out = None,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read a run's kept replies again with today's parser and rules, into a new run. No call is sent.

    Example: rag-judge regrade runs/2026-01-31-baseline --k 10
    """
    from rag_judge import pipeline
    from rag_judge.archive import find_run

    flags = flags_of(locals(), "judge k match corpus name out lang")
    with Voice(quiet=quiet) as voice:
        world = pipeline.real_world(say=voice.say)
        parent = find_run(archive_of(out, config), run_name)
        regraded = pipeline.regrade(parent, world, flags)
    if not as_json:
        typer.echo(f"{len(regraded.moved)} outcomes moved")
        for case_id, before, after in regraded.moved:
            typer.echo(f"  {printable(case_id)}: {before} -> {after}")
    moved = [{"id": case_id, "before": before, "after": after} for case_id, before, after in regraded.moved]
    print_run(regraded.result, as_json=as_json, more={"moved": moved})


def init(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where to lay the files.")] = Path(),
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Lay judge_prompts/, eval/, runs/, rag-judge.toml and schedules for the night; nothing is overwritten.

    Example: rag-judge init my-eval
    """
    from rag_judge.pipeline import init as lay_project

    written, kept = lay_project(folder)
    if as_json:
        print_json({"written": [str(path) for path in written], "kept": [str(path) for path in kept]})
        return
    said = (
        "{} 个文件已写入,{} 个已存在、未改动"
        if lang == "zh"
        else "{} files written, {} were there and stay as they are"
    )
    typer.echo(said.format(len(written), len(kept)))
    for place in [] if quiet else sorted({path.relative_to(folder).parts[0] for path in written}):
        typer.echo(f"  {folder / place}")
    if lang != "zh" and not quiet:
        typer.echo(
            "next: write your cases, set [endpoint] in rag-judge.toml, then: rag-judge run --cases FILE --judge none"
        )


def archive_of(out: str | None, config: Path | None) -> Path:
    """The archive of runs, by flag, environment, settings file or default."""
    from rag_judge.settings import load_settings

    return Path(load_settings(config, os.environ, {"out": out}).run.out)
