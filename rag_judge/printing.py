"""Results of the command line on stdout: lines for people, one JSON object for machines."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rag_judge.errors import InputError, LimitReached
from rag_judge.report.terminal import printable

if TYPE_CHECKING:
    from rag_judge.archive import RunFolder
    from rag_judge.pipeline import PlannedSpend, RunResult


def print_runs(archive: Path, *, as_json: bool) -> None:
    """Print the runs of an archive, oldest first; a broken one is named and hides no other."""
    from rag_judge.archive import list_runs

    found, known, broken = [], [], []
    for folder in list_runs(archive):
        try:
            manifest = folder.manifest()
            found.append(manifest)
            known.append(_judges_and_cases(folder, manifest))
        except InputError as error:
            broken.append(str(error))
    if as_json:
        print_json({"runs": found, "broken": broken})
        return
    let_pipes_end()
    if not found and not broken:
        typer.echo(f"no runs in {archive}")
    for manifest, (judge, n) in zip(found, known, strict=True):
        parent = f"  regraded from {manifest['parent']}" if manifest.get("parent") else ""
        kind = "  comparison" if manifest.get("kind") == "pairwise" else ""
        status = f"{manifest['status']}{kind}"
        typer.echo(f"{manifest['run_id']}  {status}  cases={n}  judge={judge}{parent}")
    for fault in broken:
        typer.echo(f"broken: {printable(fault)}")


def _judges_and_cases(folder: RunFolder, manifest: Mapping[str, Any]) -> tuple[str, str]:
    """The judges' models and the number of cases; of an unfinished run, as it was begun."""
    if manifest["status"] == "complete":
        models = [one["model"] for one in manifest.get("judges") or [manifest["judge"]] if one]
        return ",".join(models) or "none", str(manifest["eval_set"]["n"])
    try:
        judge = folder.read_json("request.json")["settings"]["judge"]
        with folder.snapshot.open("rb") as file:
            n = str(sum(1 for line in file if line.strip()))
    except (InputError, OSError, KeyError):
        return "?", "?"  # killed before it had written what it was to do
    if judge.get("prompt") == "none":
        return "none", n
    return ",".join(one["model"] for one in judge.get("panel") or [judge] if one.get("model")) or "?", n


def let_pipes_end() -> None:
    """From here on only results are printed: a reader that has seen enough (`| head`) ends the process quietly."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def print_run(
    result: RunResult, *, as_json: bool, exit_code: int | None = None, more: Mapping[str, Any] | None = None
) -> None:
    """Print how a run ended and end the command with its exit code."""
    let_pipes_end()
    code = result.exit_code if exit_code is None else exit_code
    if as_json:
        print_json({"run": str(result.folder.path), "exit_code": code, "summary": result.summary, **(more or {})})
    else:
        for line in result.lines:
            typer.echo(line)
        typer.echo(f"{result.folder.path / 'report.html'}")
    raise typer.Exit(code)


@contextmanager
def so_far_printed(*, as_json: bool) -> Iterator[None]:
    """Where a limit stops what is done inside, print the numbers so far before the error goes on its way."""
    from rag_judge.pipeline import RunResult

    try:
        yield
    except LimitReached as stopped:
        if not isinstance(stopped.result, RunResult):
            raise
        so_far = stopped.result
        if as_json:
            what = {"run": str(so_far.folder.path), "exit_code": so_far.exit_code, "stopped": str(stopped)}
            print_json({**what, "summary": so_far.summary})
        else:
            for line in so_far.lines:
                typer.echo(line)
        raise


def print_plan(planned: PlannedSpend) -> None:
    """Print what a run would spend, and its first prompt."""
    let_pipes_end()
    unknown = "not known before the answers are collected"
    tokens = planned.prompt_tokens_at_most
    usd = planned.usd_at_most
    no_price = 'not known: no price of the model; give one under [judge.prices."MODEL"] in rag-judge.toml'
    typer.echo(f"cases: {planned.n_cases}")
    typer.echo(f"questions to ask the endpoint: {planned.n_questions_to_ask}")
    typer.echo(f"cases to judge: {planned.n_to_judge}")
    typer.echo(f"judge calls: {planned.calls_at_least} to {planned.calls_at_most}")
    if planned.reasks_at_most:
        typer.echo(f"and one more for each reply that cannot be read: up to {planned.reasks_at_most}")
    typer.echo(f"prompt tokens, estimated: {unknown if tokens is None else f'up to {tokens}'}")
    typer.echo(f"completion tokens: up to {planned.completion_tokens_at_most}")
    typer.echo(f"money: {no_price if usd is None else f'up to {usd:.4f} USD ({planned.price})'}")
    for message in planned.first_messages:
        typer.echo(f"--- first prompt, {message['role']}")
        typer.echo(message["content"])


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object."""
    let_pipes_end()
    typer.echo(json.dumps(value, ensure_ascii=False, indent=1))
