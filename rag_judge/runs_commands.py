"""The command `runs` with its subcommands: the archive's upkeep. No logic lives here.

As in `cli`, what a command needs is imported when it runs.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag_judge.errors import InputError
from rag_judge.options import Config, Json, Lang, Out, Quiet
from rag_judge.printing import let_pipes_end, print_json
from rag_judge.progress import Voice

if TYPE_CHECKING:
    from rag_judge.settings import Settings

RunName = Annotated[str, typer.Argument(metavar="RUN", help="A run: its folder or id.")]

runs_app = typer.Typer(
    help="List the runs of the archive; show, pin, verify and prune them.\n\nExample: rag-judge runs",
    rich_markup_mode=None,
    invoke_without_command=True,
)


@dataclass(frozen=True, slots=True)
class Given:
    """What was said before the subcommand; what is said after it wins."""

    out: str | None
    config: Path | None
    lang: str | None
    as_json: bool
    quiet: bool

    def settings(self, out: str | None, lang: str | None) -> Settings:
        """The settings by flags, environment and settings file."""
        from rag_judge.settings import load_settings

        flags = {"out": out or self.out, "lang": lang or self.lang}
        given = {name: value for name, value in flags.items() if value is not None}
        return load_settings(self.config, os.environ, given)


@runs_app.callback()
def runs(
    context: typer.Context,
    out: Out = None,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the runs of the archive; show, pin, verify and prune them.

    Example: rag-judge runs
    """
    context.obj = Given(out, config, lang, as_json, quiet)
    if context.invoked_subcommand is None:
        _list(context.obj.settings(None, None), as_json=as_json)


@runs_app.command("list")
def runs_list(
    context: typer.Context, out: Out = None, as_json: Json = False, lang: Lang = None, quiet: Quiet = False
) -> None:
    """List the runs of the archive, oldest first.

    Example: rag-judge runs list
    """
    _ = quiet  # every command takes it; a list has no progress
    _list(context.obj.settings(out, lang), as_json=as_json or context.obj.as_json)


def _list(settings: Settings, *, as_json: bool) -> None:
    from rag_judge.run_list import listed
    from rag_judge.runs_words import list_lines

    archive = Path(settings.run.out)
    found = listed(archive)
    if as_json:
        print_json(found.tree())
        return
    let_pipes_end()
    for line in list_lines(found, archive, settings.run.lang):
        typer.echo(line)


@runs_app.command("show")
def runs_show(
    context: typer.Context,
    run_name: RunName,
    out: Out = None,
    as_json: Json = False,
    lang: Lang = None,
    quiet: Quiet = False,
) -> None:
    """Show one run: its lines, or with --json its manifest, summary and pin.

    Example: rag-judge runs show 2026-01-31-baseline
    """
    from rag_judge.archive import find_run
    from rag_judge.run_list import pin_of, pin_tree
    from rag_judge.runs_words import go_on_line, show_line

    settings = context.obj.settings(out, lang)
    folder = find_run(Path(settings.run.out), run_name)
    manifest = folder.manifest()
    with Voice(quiet=quiet or context.obj.quiet) as voice:
        pin = pin_of(folder, voice.say)
    if as_json or context.obj.as_json:
        summary = folder.read_json("summary.json") if folder.is_complete else None
        more = {"pin": None if pin is None else pin_tree(pin), "pruned_at": folder.pruned_at}
        print_json({"manifest": manifest, "summary": summary, **more})
        return
    let_pipes_end()
    typer.echo(show_line(manifest, folder.path, pin, folder.pruned_at, settings.run.lang))
    lines = folder.lines() if folder.is_complete else [go_on_line(manifest, folder.path, settings.run.lang)]
    for line in lines:  # a finished run's are shown as it wrote them
        typer.echo(line)


@runs_app.command("pin")
def runs_pin(
    context: typer.Context,
    run_name: RunName,
    role: Annotated[
        str | None,
        typer.Option("--as", help="baseline, anchors (what the judge is held against), or kept. [kept]"),
    ] = None,
    note: Annotated[str | None, typer.Option("--note", help="Why, for people.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Pin it no more.")] = False,
    out: Out = None,
    as_json: Json = False,
    lang: Lang = None,
    quiet: Quiet = False,
) -> None:
    """Pin a run, so that it is never pruned; as baseline, later runs are held against it.

    Example: rag-judge runs pin 2026-01-31-nightly --as baseline --note "released as 1.4"
    """
    from rag_judge.pins import pin, unpin
    from rag_judge.pipeline import real_world
    from rag_judge.run_list import pin_tree, pinned_tree, place_of
    from rag_judge.runs_words import pinned_line, unpinned_line

    _ = quiet
    if remove and (role is not None or note is not None):
        raise InputError("--remove takes a pin away; it goes with neither --as nor --note")
    settings = context.obj.settings(out, lang)
    archive, run_id = place_of(Path(settings.run.out), run_name)
    if remove:
        was = unpin(archive, run_id)
        line = unpinned_line(run_id, was, settings.run.lang)
        tree = {"pin": None, "before": pin_tree(was), "taken_from": None}
    else:
        pinned = pin(archive, run_id, role or "kept", note, real_world().now())
        line, tree = pinned_line(pinned, settings.run.lang), pinned_tree(pinned)
    print_json({"run": run_id, **tree}) if as_json or context.obj.as_json else typer.echo(line)


@runs_app.command("verify")
def runs_verify(
    context: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN]...", help="Runs: folders or ids. [all of the archive]")
    ] = None,
    out: Out = None,
    as_json: Json = False,
    lang: Lang = None,
    quiet: Quiet = False,
) -> None:
    """Hold the files of finished runs against the checksums in their manifests; ends with 2 where one is damaged.

    Example: rag-judge runs verify
    """
    from rag_judge.archive import find_run, list_runs
    from rag_judge.checksums import verify
    from rag_judge.runs_words import verify_lines

    settings = context.obj.settings(out, lang)
    archive = Path(settings.run.out)
    folders = [find_run(archive, name) for name in names] if names else list_runs(archive)
    found = []
    with Voice(quiet=quiet or context.obj.quiet) as voice:
        for n, folder in enumerate(folders):
            voice.progress("runs", n, len(folders))
            found.append(verify(folder))
    damaged = [one for one in found if one.state == "damaged"]
    if as_json or context.obj.as_json:
        print_json({"runs": [asdict(one) for one in found], "exit_code": 2 if damaged else 0})
    else:
        let_pipes_end()
        for line in verify_lines(found, settings.run.lang):
            typer.echo(line)
    if damaged:
        first = damaged[0]
        raise InputError(
            f"{len(damaged)} of {len(found)} runs are damaged, the first in {first.problems[0].file} of "
            f"{first.run_id}; restore them from a copy, or grade again"
        )


@runs_app.command("prune")
def runs_prune(
    context: typer.Context,
    older_than: Annotated[
        int | None, typer.Option("--older-than", metavar="DAYS", help="Only runs as old as that. [90]")
    ] = None,
    keep: Annotated[int | None, typer.Option("--keep", metavar="N", help="Keep the last N finished runs. [30]")] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Remove old runs altogether, unfinished ones, too.")] = False,
    unlabelled: Annotated[
        bool, typer.Option("--unlabelled", help="Also runs whose review sample nobody has labelled.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done; remove nothing.")] = False,
    out: Out = None,
    as_json: Json = False,
    lang: Lang = None,
    quiet: Quiet = False,
) -> None:
    """Remove the texts of old runs; their numbers stay. Pinned and labelled runs are never touched.

    Example: rag-judge runs prune --older-than 180 --dry-run
    """
    from rag_judge.pipeline import real_world
    from rag_judge.retention import prune_archive
    from rag_judge.runs_words import WORDS, prune_lines

    settings = context.obj.settings(out, lang)
    told = settings.nightly
    pruned = prune_archive(
        Path(settings.run.out),
        real_world().now(),
        keep_last=told.keep_last if keep is None else keep,
        older_than_days=told.keep_days if older_than is None else older_than,
        whole=whole,
        unlabelled=unlabelled,
        dry_run=dry_run,
    )
    if as_json or context.obj.as_json:
        print_json({**asdict(pruned), "n_pruned": pruned.n_pruned, "freed_bytes": pruned.freed_bytes})
        return
    let_pipes_end()
    for line in prune_lines(pruned, settings.run.lang):
        typer.echo(line)
    if dry_run:
        Voice(quiet=quiet).say(WORDS[settings.run.lang]["dry_run"])
