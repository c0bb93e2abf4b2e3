"""The command `compare`. No logic lives here.

As in `cli`, what a command needs is imported when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_judge.options import Config, Json, Lang, Out, Quiet, flags_of
from rag_judge.printing import let_pipes_end, print_json
from rag_judge.progress import Voice


def compare(
    run_a: Annotated[str, typer.Argument(metavar="RUN_A", help="A finished run: its folder or id.")],
    run_b: Annotated[str, typer.Argument(metavar="RUN_B", help="Another, of the same questions.")],
    common: Annotated[bool, typer.Option("--common", help="Compare only the questions that both were asked.")] = False,
    out: Out = None,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare two runs on the same questions: what differs, by how much, and which cases changed.

    Example: rag-judge compare 2026-01-31-v1 2026-01-31-v2
    """
    from rag_judge.archive import find_run
    from rag_judge.comparison_words import compare_lines
    from rag_judge.pipeline import real_world
    from rag_judge.pipeline.compare import compare as compared
    from rag_judge.pipeline.review import ReviewedRun
    from rag_judge.settings import load_settings

    with Voice(quiet=quiet) as voice:
        environment = real_world(say=voice.say).environment
        settings = load_settings(config, environment, flags_of({"out": out, "lang": lang}, "out lang"))
        first, second = (ReviewedRun(find_run(Path(settings.run.out), run).path) for run in (run_a, run_b))
        tree = compared(first, second, common=common, declared=settings.compare.metrics)
    let_pipes_end()
    if as_json:
        print_json(tree)
        return
    for line in compare_lines(tree, second.run.summary["retrieval"]["k"], settings.run.lang):
        typer.echo(line)
    typer.echo(str(second.folder.path / "comparison.json"))
