"""The command `gate`. No logic lives here.

As in `cli`, what a command needs is imported when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_judge.options import Config, Json, Lang, Out, Quiet, flags_of
from rag_judge.printing import let_pipes_end, print_json
from rag_judge.progress import Voice


def gate(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A finished run: its folder or id.")],
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="The run to compare with: its folder or id.")
    ] = None,
    junit_cases: Annotated[bool, typer.Option("--junit-cases", help="Every case as a test case of junit.xml.")] = False,
    out: Out = None,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ship, hold, or not enough evidence: the rules of rag-judge.toml on a run; writes gate.json and junit.xml.

    Example: rag-judge gate 2026-01-31-v2 --baseline 2026-01-31-v1
    """
    from rag_judge.archive import find_run
    from rag_judge.gate_output import gate_lines
    from rag_judge.pipeline import real_world
    from rag_judge.pipeline.gate import gate as gated_run
    from rag_judge.pipeline.gate import tell_github
    from rag_judge.pipeline.review import ReviewedRun
    from rag_judge.settings import load_settings

    with Voice(quiet=quiet) as voice:
        environment = real_world(say=voice.say).environment
        settings = load_settings(config, environment, flags_of({"out": out, "lang": lang}, "out lang"))
        archive = Path(settings.run.out)
        reviewed = ReviewedRun(find_run(archive, run).path)
        other = None if baseline is None else ReviewedRun(find_run(archive, baseline).path)
        gated = gated_run(reviewed, other, settings, junit_cases=junit_cases)
        commands = tell_github(gated, reviewed.folder.run_id, environment, settings.run.lang)
    let_pipes_end()
    if as_json:
        print_json(gated.tree())
    else:
        for line in [*commands, *gate_lines(gated, settings.run.lang)]:
            typer.echo(line)
    raise typer.Exit(gated.exit_code)
