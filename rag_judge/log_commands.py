"""The commands on a production log, `signals` and `mine`. No logic lives here.

As in `cli`, what a command needs is imported when it runs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag_judge.options import Config, Json, Lang, Quiet, Seed, flags_of
from rag_judge.printing import let_pipes_end, print_json
from rag_judge.progress import Voice

if TYPE_CHECKING:
    from rag_judge.production_log import Log, LogFormat

LogPath = Annotated[Path, typer.Argument(metavar="LOG", help="Production log: JSON Lines, JSON array, CSV or Parquet.")]
Maps = Annotated[
    list[str] | None,
    typer.Option("--map", help="FIELD=PATH: the log's own name of a field, or a JMESPath; may be given several times."),
]
Window = Annotated[
    float, typer.Option("--window", help="Minutes within which the same question counts as asked again.")
]
Timezone = Annotated[
    str | None,
    typer.Option("--timezone", help="Zone of the days, and of times without an offset: Asia/Shanghai or +08:00."),
]
SkipBroken = Annotated[bool, typer.Option("--skip-broken", help="Leave out rows that cannot be read, and count them.")]


def signals(
    log: LogPath,
    maps: Maps = None,
    slices: Annotated[
        list[str] | None, typer.Option("--slice", help="A field to show rates by; may be given several times.")
    ] = None,
    window: Window = 30.0,
    timezone: Timezone = None,
    skip_broken: SkipBroken = False,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what a production log points at: no result, asked again, handed off, refused, latency. It proves nothing.

    Example: rag-judge signals log.jsonl --slice channel
    """
    from rag_judge.log_words import signal_lines
    from rag_judge.production_log import log_format
    from rag_judge.settings import load_settings
    from rag_judge.signals import signals_of

    lang = load_settings(config, os.environ, flags_of(locals(), "lang")).run.lang
    form = log_format(maps or (), slices or (), timezone, skip_broken)
    found = signals_of(str(log), _read(log, form, quiet), form, window_s=60 * window, lang=lang)
    if as_json:
        print_json(found)
        return
    let_pipes_end()
    for line in signal_lines(found, lang):
        typer.echo(line)


def mine(
    log: LogPath,
    out: Annotated[Path, typer.Option("--out", help="The cases file to write, JSON Lines.")],
    cases: Annotated[
        list[Path] | None,
        typer.Option("--cases", help="An eval set: questions that it asks are left out; may be given several times."),
    ] = None,
    n: Annotated[int, typer.Option("--n", help="How many candidates to write at most.")] = 50,
    seed: Seed = None,
    no_mask: Annotated[bool, typer.Option("--no-mask", help="Write personal data as it stands in the log.")] = False,
    with_answers: Annotated[
        bool, typer.Option("--with-answers", help="Write up to three answers of the log with each candidate.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    maps: Maps = None,
    window: Window = 30.0,
    timezone: Timezone = None,
    skip_broken: SkipBroken = False,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Pick real questions worth adding to an eval set, as cases to be completed; personal data is masked.

    Example: rag-judge mine log.jsonl --cases eval/rag_cases.json --out candidates.jsonl
    """
    from rag_judge import mining
    from rag_judge.log_words import mined_lines
    from rag_judge.production_log import log_format
    from rag_judge.settings import load_settings

    settings = load_settings(config, os.environ, flags_of(locals(), "lang seed")).run
    covered_by = tuple(cases or ())
    mining.check_out(out, (log, *covered_by), force=force)
    form = log_format(maps or (), (), timezone, skip_broken)
    wishes = mining.Wishes(n, settings.seed, 60 * window, not no_mask, with_answers, covered_by)
    read = _read(log, form, quiet)
    found = mining.report_of(out, read, mining.mine(log, read, form, wishes), settings.lang)
    if as_json:
        print_json(found)
        return
    let_pipes_end()
    for line in mined_lines(found, settings.lang):
        typer.echo(line)


def _read(path: Path, form: LogFormat, quiet: bool) -> Log:
    from rag_judge.production_log import read_log

    with Voice(quiet=quiet) as voice:
        log = read_log(path, form, lambda n_done, n_all: voice.progress(path.name, n_done, n_all))
        for broken in log.broken:
            voice.say(f"warning: {broken}")
    return log
