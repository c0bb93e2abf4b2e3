"""Results of the command line on stdout: lines for people, one JSON object for machines."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from rag_judge.errors import LimitReached

if TYPE_CHECKING:
    from rag_judge.pipeline import PlannedSpend, RunResult


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
