"""The commands `review export`, `review import`, `review status` and `bias`. No logic lives here.

As in `cli`, what a command needs is imported when it runs.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from rag_judge.errors import InputError
from rag_judge.options import Config, Json, Lang, Out, Quiet, flags_of
from rag_judge.printing import let_pipes_end, print_json
from rag_judge.progress import Voice

if TYPE_CHECKING:
    from rag_judge.pipeline.review import ReviewedRun
    from rag_judge.review.writing import Format
    from rag_judge.settings import Settings

FORMATS = ("xlsx", "csv", "html", "label-studio")
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A finished run: its folder or id.")]

review_app = typer.Typer(
    help="Have people judge a part of a run, blind: export a sample, import the labels, see where it stands.\n\n"
    "Example: rag-judge review export 2026-01-31-judged --annotators 2",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@review_app.command("export")
def export(
    run: RunArgument,
    fraction: Annotated[float, typer.Option("--fraction", help="Share of the cases to review; at least 8.")] = 0.15,
    half_width: Annotated[
        float | None, typer.Option("--half-width", help="Review as many as this half-width of the pass rate takes.")
    ] = None,
    annotators: Annotated[str, typer.Option("--annotators", help="How many people, or their names: li,wang.")] = "1",
    format: Annotated[str, typer.Option("--format", help="xlsx, csv, html or label-studio.")] = "xlsx",
    disagreements: Annotated[
        bool, typer.Option("--disagreements", help="A sheet for a third reader: what two people differ on.")
    ] = False,
    redact: Annotated[bool, typer.Option("--redact", help="Mask personal data in what the sheets show.")] = False,
    oversample: Annotated[
        bool, typer.Option("--oversample", help="Draw more of what the judge is unsure of; for finding its errors.")
    ] = False,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the draw. [the run's]")] = None,
    out: Out = None,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw a sample of a run for people to judge, and write a blind sheet for each of them.

    Example: rag-judge review export 2026-01-31-judged --annotators 2 --format html
    """
    from rag_judge.pipeline.review import ExportRequest, export_review
    from rag_judge.review_words import export_lines

    if format not in FORMATS:
        raise InputError(f"--format: found {format!r}, expected one of {', '.join(FORMATS)}")
    with Voice(quiet=quiet) as voice:
        reviewed, settings = _opened(run, config, flags_of({"out": out, "lang": lang}, "out lang"), voice)
        request = ExportRequest(
            fraction,
            half_width,
            _names(annotators),
            cast("Format", format),
            disagreements,
            redact,
            oversample,
            lang,
            seed,
        )
        if reviewed.run.manifest.get("judge") is None:
            voice.say(
                "warning: no judge was asked of this run: labels say how good it is, and bias has no judge to check"
            )
        exported = export_review(reviewed, request)
    let_pipes_end()
    if as_json:
        n = {"n_drawn": len(exported.design.drawn), "n_cases": len(exported.design.strata)}
        print_json({"files": [str(path) for path in exported.files], "items": dict(exported.n_items), **n})
        return
    for line in export_lines(exported.design, exported.n_items, exported.n_masked, run, settings.run.lang):
        typer.echo(line)
    for path in exported.files:
        typer.echo(str(path))


@review_app.command("import")
def import_(
    run: RunArgument,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Sheets that came back, or label files.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Let these labels win over those imported before.")
    ] = False,
    out: Out = None,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take the labels of sheets that came back, in any of the formats; all of them or none.

    Example: rag-judge review import 2026-01-31-judged sheet-a1.xlsx sheet-a2.xlsx
    """
    from rag_judge.pipeline.review import import_review
    from rag_judge.review_words import import_lines

    with Voice(quiet=quiet) as voice:
        reviewed, settings = _opened(run, config, flags_of({"out": out, "lang": lang}, "out lang"), voice)
        imported = import_review(reviewed, files, replace_labels=replace)
        for warning in imported.warnings:
            voice.say(f"warning: {warning}")
    let_pipes_end()
    if as_json:
        print_json(asdict(imported))
        return
    for line in import_lines(imported, settings.run.lang):
        typer.echo(line)


@review_app.command("status")
def status(
    run: RunArgument,
    out: Out = None,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say how far the review of a run is, and what comes next.

    Example: rag-judge review status 2026-01-31-judged
    """
    from rag_judge.pipeline.review_status import review_status
    from rag_judge.review_words import status_lines

    with Voice(quiet=quiet) as voice:
        reviewed, settings = _opened(run, config, flags_of({"out": out, "lang": lang}, "out lang"), voice)
        found = review_status(reviewed)
    let_pipes_end()
    if as_json:
        print_json(found)
        return
    for line in status_lines(found, run, settings.run.lang):
        typer.echo(line)


def bias(
    run: RunArgument,
    external: Annotated[
        str | None, typer.Option("--external", help="Also correct by the labels of another run of the same judge.")
    ] = None,
    out: Out = None,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Hold the judge of a run against people's labels: agreement, bias, the corrected rate; writes bias.json.

    Example: rag-judge bias 2026-01-31-judged
    """
    from rag_judge.pipeline.bias import external_calibration, judge_bias
    from rag_judge.review_words import bias_lines

    with Voice(quiet=quiet) as voice:
        reviewed, settings = _opened(run, config, flags_of({"out": out, "lang": lang}, "out lang"), voice)
        tree = judge_bias(reviewed)
        if external is not None:
            other, _ = _opened(external, config, flags_of({"out": out, "lang": lang}, "out lang"), voice)
            tree["external"] = external_calibration(reviewed, other)
            reviewed.folder.write_json("bias.json", tree)
    let_pipes_end()
    if as_json:
        print_json(tree)
        return
    for line in bias_lines(tree, settings.run.lang):
        typer.echo(line)
    typer.echo(str(reviewed.folder.path / "bias.json"))


def compare_judges(
    run_a: Annotated[str, typer.Argument(metavar="RUN_A", help="A judged run: its folder or id.")],
    run_b: Annotated[str, typer.Argument(metavar="RUN_B", help="Another judge on the same answers.")],
    out: Out = None,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say which of two judge prompts or models is closer to people, on the same answers and labels.

    Example: rag-judge compare-judges 2026-01-31-judged 2026-02-01-other-judge
    """
    from rag_judge.pipeline.bias import judges_compared
    from rag_judge.review_words import judge_lines

    with Voice(quiet=quiet) as voice:
        flags = flags_of({"out": out, "lang": lang}, "out lang")
        first, settings = _opened(run_a, config, flags, voice)
        second, _ = _opened(run_b, config, flags, voice)
        tree = judges_compared(first, second)
    let_pipes_end()
    if as_json:
        print_json(tree)
        return
    for line in judge_lines(tree, settings.run.lang):
        typer.echo(line)


def _opened(run: str, config: Path | None, flags: dict[str, object], voice: Voice) -> tuple[ReviewedRun, Settings]:
    from rag_judge.archive import find_run
    from rag_judge.pipeline import real_world
    from rag_judge.pipeline.review import ReviewedRun
    from rag_judge.settings import load_settings

    settings = load_settings(config, real_world(say=voice.say).environment, flags)
    return ReviewedRun(find_run(Path(settings.run.out), run).path), settings


def _names(given: str) -> list[str]:
    """Annotators by number (`2`: a1, a2) or by name (`li,wang`). Raises InputError for none, or one named twice."""
    if given.strip().isdecimal():
        n = int(given)
        if not 1 <= n <= 20:
            raise InputError(f"--annotators: found {given}, expected 1 to 20 people, or their names: li,wang")
        return [f"a{number}" for number in range(1, n + 1)]
    names = [name.strip() for name in given.split(",")]
    if not all(names):
        raise InputError(f"--annotators: found {given!r}, expected a number, or names: li,wang")
    if len({name.casefold() for name in names}) < len(names):
        raise InputError(f"--annotators: found {given!r}, which names one person twice")
    return names
