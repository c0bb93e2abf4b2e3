"""The options of the command line that several commands share, each with its help, and what they say as settings."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from rag_judge.errors import InputError

Cases = Annotated[Path, typer.Option("--cases", help="Eval set: JSON Lines, JSON array, CSV or Parquet.")]
MaybeCases = Annotated[Path | None, typer.Option("--cases", help="Eval set: JSON Lines, JSON array, CSV or Parquet.")]
Answers = Annotated[Path | None, typer.Option("--answers", help="Answers file: one row a case, matched by id.")]
EndpointUrl = Annotated[str | None, typer.Option("--endpoint", help="URL of the RAG system, asked every question.")]
JudgeName = Annotated[
    str | None,
    typer.Option("--judge", help="Judge prompt: passfail, a folder in judge_prompts/, or none (rules only)."),
]
Repeats = Annotated[int | None, typer.Option("--repeats", help="Times each case is judged; the majority decides. [3]")]
K = Annotated[int | None, typer.Option("--k", help="Cut of the retrieval metrics. [5]")]
Match = Annotated[
    str | None, typer.Option("--match", help="Level at which ids are matched: exact or document. [exact]")
]
CorpusPath = Annotated[
    str | None,
    typer.Option("--corpus", help="The knowledge base's chunks: a file, or a folder of JSON Lines. Sharpens causes."),
]
BaseUrl = Annotated[str | None, typer.Option("--base-url", help="OpenAI-compatible model server of the judge.")]
Model = Annotated[str | None, typer.Option("--model", help="The judge's model, or 'embedded' (a demo model).")]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="The judge's model, or 'embedded'. Given several times, the models judge as a panel."),
]
PromptLang = Annotated[str | None, typer.Option("--prompt-lang", help="Language of the judge prompt: auto, en or zh.")]
JudgeSample = Annotated[
    int | None, typer.Option("--judge-sample", help="Judge only N answered cases, drawn by seed; rules grade all.")
]
Name = Annotated[str | None, typer.Option("--name", help="Name of the run; its folder is DATE-NAME. [run]")]
Out = Annotated[str | None, typer.Option("--out", help="The archive of runs. [runs]")]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed of every draw. [0]")]
Concurrency = Annotated[int | None, typer.Option("--concurrency", help="Cases judged at once. [8]")]
MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens", help="Tokens a verdict may take, in place of the prompt's.")
]
TimeoutS = Annotated[float | None, typer.Option("--timeout-s", help="Seconds that one judge call may take. [120]")]
Attempts = Annotated[int | None, typer.Option("--attempts", help="Tries of one judge call. [5]")]
Vary = Annotated[
    str | None, typer.Option("--vary", help="order: further repeats show the contexts in another order. [none]")
]
NoEarlyStop = Annotated[
    bool, typer.Option("--no-early-stop", help="Send every repeat, also those that decide nothing.")
]
NoReask = Annotated[bool, typer.Option("--no-reask", help="Never ask once more after an unreadable reply.")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Take no reply from an earlier run, and keep none.")]
Probe = Annotated[
    bool,
    typer.Option("--probe", help="Ask the endpoint unclear fails again, with the right passages from --corpus."),
]
MaxUsd = Annotated[float | None, typer.Option("--max-usd", help="Stop before the run costs more, in US dollars.")]
MaxCalls = Annotated[int | None, typer.Option("--max-calls", help="Stop after that many judge calls.")]
Deadline = Annotated[
    str | None, typer.Option("--deadline", help="Stop then: a duration (90s, 30m, 2h) or a time of day (06:30).")
]
SetValues = Annotated[
    list[str] | None,
    typer.Option("--set", help="key=value of the system under test; also seen by the request template."),
]
Config = Annotated[Path | None, typer.Option("--config", help="Settings file. [rag-judge.toml, if it is there]")]
Lang = Annotated[str | None, typer.Option("--lang", help="Language for people: en or zh. [en]")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]


def flags_of(given: Mapping[str, Any], names: str) -> dict[str, Any]:
    """The flags of these names that were given, for `load_settings`."""
    return {name: given[name] for name in names.split() if given[name] is not None}


def switches(no_early_stop: bool, no_reask: bool, no_cache: bool) -> dict[str, Any]:
    """The settings that these switches turn off."""
    given = {"early_stop": no_early_stop, "reask": no_reask, "cache": no_cache}
    return {name: False for name, off in given.items() if off}


def run_options(models: list[str] | None, off: dict[str, Any], set_values: list[str] | None) -> dict[str, Any]:
    """What `run` and `plan` are told beside plain flags: the judges' models, switches turned off, `--set` values."""
    return ({"models": models} if models else {}) | off | system_factors(set_values)


def system_factors(set_values: list[str] | None) -> dict[str, Any]:
    """`--set key=value` pairs as factors of the system under test; a value that is JSON keeps its type."""
    factors: dict[str, Any] = {}
    for pair in set_values or []:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--set {pair!r}: expected key=value")
        try:
            known = json.loads(value)
            json.dumps(known, allow_nan=False)
        except (ValueError, RecursionError):  # no JSON, or a number that JSON cannot hold: plain text
            known = value
        factors[name.strip()] = known
    return {"system": factors} if factors else {}
