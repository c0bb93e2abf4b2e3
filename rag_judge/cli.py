"""The command line: arguments in, exit codes and lines out. No logic lives here that a Python caller would miss.

What a command needs is imported when it runs, here alone in the project: `--help` answers within 0.2 s of CPU, and
importing everything takes twice that.

Exit codes: 0 done · 1 advice with `lint --strict` · 2 wrong usage, file or setting, nothing spent · 4 too many cases
unscored or unanswered · 5 could not go on, resumable · 70 a fault of ours · 130 interrupted.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag_judge import __version__
from rag_judge.ab_command import ab
from rag_judge.archive_commands import init, regrade
from rag_judge.bridge_command import bridge
from rag_judge.compare_command import compare
from rag_judge.errors import CannotGoOn, InputError, RagJudgeError
from rag_judge.gate_command import gate
from rag_judge.import_command import export, import_
from rag_judge.lint_command import lint
from rag_judge.log_commands import mine, signals
from rag_judge.nightly_command import nightly
from rag_judge.options import (
    Answers,
    Attempts,
    BaseUrl,
    Cases,
    Concurrency,
    Config,
    CorpusPath,
    Deadline,
    EndpointUrl,
    Json,
    JudgeName,
    JudgeSample,
    K,
    Lang,
    Match,
    MaxCalls,
    MaxTokens,
    MaxUsd,
    MaybeCases,
    Models,
    Name,
    NoCache,
    NoEarlyStop,
    NoReask,
    Out,
    Probe,
    PromptLang,
    Quiet,
    Repeats,
    Seed,
    SetValues,
    TimeoutS,
    Vary,
    flags_of,
    run_options,
    switches,
    system_factors,
)
from rag_judge.plan_command import plan
from rag_judge.printing import print_json, print_run, so_far_printed
from rag_judge.progress import Voice
from rag_judge.quick_start import app_for
from rag_judge.report.terminal import printable
from rag_judge.report_command import report
from rag_judge.review_commands import bias, compare_judges, review_app
from rag_judge.runs_commands import runs_app
from rag_judge.trend_command import trend

if TYPE_CHECKING:
    from rag_judge.pipeline import RunRequest
    from rag_judge.settings import Settings

FAULT_OF_OURS = 70
COLLECTED = "{out}: {n} of {n_all} questions answered, {n_failed} failed"
PAIR_FLAGS = (
    "judge repeats base_url prompt_lang judge_sample name out seed concurrency max_tokens timeout_s attempts "
    "vary lang max_usd max_calls deadline"
)
RUN_FLAGS = f"{PAIR_FLAGS} k match endpoint"

app = typer.Typer(
    name="rag-judge",
    help="Grade the answers of a RAG system with rules and an LLM judge, and say how far the grades can be trusted.\n\n"
    "Start with: rag-judge demo",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)


@app.callback(invoke_without_command=True)
def _top(version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False) -> None:
    if version:
        typer.echo(f"rag-judge {__version__}")
        raise typer.Exit


@app.command()
def run(
    cases: MaybeCases = None,
    answers: Answers = None,
    endpoint: EndpointUrl = None,
    judge: JudgeName = None,
    repeats: Repeats = None,
    k: K = None,
    match: Match = None,
    corpus: CorpusPath = None,
    base_url: BaseUrl = None,
    model: Models = None,
    prompt_lang: PromptLang = None,
    judge_sample: JudgeSample = None,
    name: Name = None,
    out: Out = None,
    seed: Seed = None,
    resume: Annotated[
        str | None, typer.Option("--resume", help="Go on with an interrupted run (folder or id).")
    ] = None,
    retry_unscored: Annotated[
        bool, typer.Option("--retry-unscored", help="With --resume: ask unreadable replies again.")
    ] = False,
    concurrency: Concurrency = None,
    max_tokens: MaxTokens = None,
    timeout_s: TimeoutS = None,
    attempts: Attempts = None,
    max_usd: MaxUsd = None,
    max_calls: MaxCalls = None,
    deadline: Deadline = None,
    vary: Vary = None,
    no_early_stop: NoEarlyStop = False,
    no_reask: NoReask = False,
    no_cache: NoCache = False,
    probe: Probe = False,
    set_values: SetValues = None,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Grade a RAG system: rules and a judge over every case of an eval set; writes a run.

    Example: rag-judge run --cases eval/rag_cases.json --endpoint http://127.0.0.1:9000/ask --judge none

    Example: rag-judge run --cases cases.jsonl --answers answers.jsonl --base-url http://127.0.0.1:8000/v1 --model M
    """
    from rag_judge import pipeline
    from rag_judge.archive import find_run
    from rag_judge.settings import load_settings, unknown_variables

    flags = flags_of(locals(), f"{RUN_FLAGS} corpus") | ({"counterfactual": True} if probe else {})
    flags |= run_options(model, switches(no_early_stop, no_reask, no_cache), set_values)
    with Voice(quiet=quiet) as voice, so_far_printed(as_json=as_json):
        world = pipeline.real_world(say=voice.say, progress=voice.progress)
        settings = load_settings(config, world.environment, flags)
        for name in unknown_variables(world.environment, settings):
            voice.say(f"warning: the environment variable {name} is no setting of rag-judge")
        folder = None if resume is None else find_run(Path(settings.run.out), resume)
        if folder is not None:
            request = pipeline.resumed_request(folder, flags, {"cases": cases, "answers": answers}, settings)
        else:
            request = _request(settings, cases, answers)
        if retry_unscored:
            request = pipeline.retrying(request, folder)
        result = pipeline.run(request, world, folder)
    print_run(result, as_json=as_json)


@app.command()
def collect(
    cases: Cases,
    out: Annotated[Path, typer.Option("--out", help="The answers file to write.")],
    endpoint: EndpointUrl = None,
    repeat_answers: Annotated[
        int, typer.Option("--repeat-answers", help="Answers to collect for each question; the questions stay the unit.")
    ] = 1,
    set_values: SetValues = None,
    concurrency: Annotated[int | None, typer.Option("--concurrency", help="Questions asked at once. [4]")] = None,
    timeout_s: Annotated[float | None, typer.Option("--timeout-s", help="Seconds one answer may take. [60]")] = None,
    attempts: Annotated[int | None, typer.Option("--attempts", help="Tries of one question. [3]")] = None,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask the RAG system every question and keep answers, contexts and errors.

    Example: rag-judge collect --cases eval/rag_cases.json --endpoint http://127.0.0.1:9000/ask --out answers.jsonl
    """
    from rag_judge import pipeline
    from rag_judge.settings import load_settings, unknown_variables

    flags = {"endpoint": endpoint, "endpoint_concurrency": concurrency, "endpoint_timeout_s": timeout_s}
    flags |= {"endpoint_attempts": attempts, "lang": lang} | system_factors(set_values)
    with Voice(quiet=quiet) as voice:
        world = pipeline.real_world(say=voice.say, progress=voice.progress)
        settings = load_settings(config, world.environment, flags)
        for name in unknown_variables(world.environment, settings):
            voice.say(f"warning: the environment variable {name} is no setting of rag-judge")
        collected = pipeline.collect(cases, out, settings, world, repeat_answers)
    n_all = collected.n_kept + collected.n_asked
    if as_json:
        print_json({"out": str(out), "n_answers": n_all, **asdict(collected)})
    else:
        said = "{out}: {n_all} 个问题答了 {n} 个,失败 {n_failed} 个" if settings.run.lang == "zh" else COLLECTED
        n = n_all - collected.n_failed
        typer.echo(said.format(out=out, n_all=n_all, n=n, n_failed=collected.n_failed))
    raise typer.Exit(4 if collected.n_failed > settings.run.max_unanswered * n_all else 0)


@app.command()
def demo(
    version: Annotated[str, typer.Option("--version", help="Version of the example's RAG service: v1 or v2.")] = "v1",
    no_judge: Annotated[bool, typer.Option("--no-judge", help="Rules only, without the embedded model.")] = False,
    every_case: Annotated[bool, typer.Option("--all", help="Judge every case, however long it takes.")] = False,
    out: Out = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the whole pipeline on the shipped example: no key, no network, about two minutes.

    Example: rag-judge demo --no-judge
    """
    from rag_judge import pipeline
    from rag_judge.settings import load_settings

    with Voice(quiet=quiet) as voice:
        world = pipeline.real_world(say=voice.say, progress=voice.progress)
        settings = load_settings(None, world.environment, {"out": out, "lang": lang}, folder=None)
        options = pipeline.DemoOptions(version, judged=not no_judge, every_case=every_case)
        result = pipeline.demo(options, settings, world)
    print_run(result, as_json=as_json, exit_code=0)


@app.command()
def pairwise(
    run_a: Annotated[str | None, typer.Argument(metavar="RUN_A", help="A finished run: its folder or id.")] = None,
    run_b: Annotated[str | None, typer.Argument(metavar="RUN_B", help="Another, of the same questions.")] = None,
    judge: Annotated[str | None, typer.Option("--judge", help="Judge prompt of mode pairwise. [pairwise]")] = None,
    common: Annotated[bool, typer.Option("--common", help="Compare only the questions that both were asked.")] = False,
    repeats: Annotated[int | None, typer.Option("--repeats", help="Times each order of a pair is judged. [3]")] = None,
    base_url: BaseUrl = None,
    model: Models = None,
    prompt_lang: PromptLang = None,
    judge_sample: JudgeSample = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the comparison. [A-vs-B]")] = None,
    out: Out = None,
    seed: Seed = None,
    resume: Annotated[str | None, typer.Option("--resume", help="Go on with an interrupted comparison.")] = None,
    concurrency: Concurrency = None,
    max_tokens: MaxTokens = None,
    timeout_s: TimeoutS = None,
    attempts: Attempts = None,
    max_usd: MaxUsd = None,
    max_calls: MaxCalls = None,
    deadline: Deadline = None,
    vary: Vary = None,
    no_early_stop: NoEarlyStop = False,
    no_reask: NoReask = False,
    no_cache: NoCache = False,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Let the judge compare two runs' answers, every pair in both orders; writes a run DATE-A-vs-B.

    Example: rag-judge pairwise 2026-01-31-v1 2026-01-31-v2 --base-url http://127.0.0.1:8000/v1 --model M
    """
    from rag_judge import pipeline
    from rag_judge.archive import find_run
    from rag_judge.settings import load_settings

    flags = flags_of(locals(), PAIR_FLAGS)
    flags |= run_options(model, switches(no_early_stop, no_reask, no_cache), None)
    with Voice(quiet=quiet) as voice, so_far_printed(as_json=as_json):
        world = pipeline.real_world(say=voice.say, progress=voice.progress)
        settings = load_settings(config, world.environment, {"judge": "pairwise", **flags})
        archive = Path(settings.run.out)
        if resume is not None:
            result = pipeline.resume_pairwise(find_run(archive, resume), flags, settings, world)
        elif run_a is None or run_b is None:
            raise InputError("two runs are needed: rag-judge pairwise RUN_A RUN_B")
        else:
            request = pipeline.PairwiseRequest(settings, find_run(archive, run_a), find_run(archive, run_b), common)
            result = pipeline.pairwise(request, world)
    print_run(result, as_json=as_json)


app.command()(plan)
app.command()(regrade)
app.command()(init)
app.command()(lint)
app.command("import")(import_)
app.command()(export)
app.command()(signals)
app.command()(mine)
app.command()(compare)
app.command()(ab)
app.command()(gate)
app.command()(nightly)
app.command()(bridge)
app.command()(trend)
app.command()(report)
app.command()(bias)
app.command("compare-judges")(compare_judges)
app.add_typer(review_app, name="review")
app.add_typer(runs_app, name="runs")


def main() -> None:
    """Run the command line and end the process with its exit code; never a traceback for what a user can mend."""
    # A stop from outside ends a run as Ctrl-C does: calls in flight are dropped, what came back is kept. A job that a
    # shell put into the background (`nohup … &`) is started deaf to Ctrl-C, and would be deaf to a stop, too.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    try:
        app_for(app, sys.argv[1:])()
    except RagJudgeError as error:
        print("\n".join(f"rag-judge: {printable(line)}" for line in str(error).split("\n")), file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as fault:  # a full disk, a folder that may not be written: the user's to mend, and kept till then
        print(f"rag-judge: cannot go on: {fault}; what was finished is kept", file=sys.stderr)
        sys.exit(CannotGoOn.exit_code)
    except Exception as fault:  # noqa: BLE001 - the contract's exit code 70: any fault of ours ends with a message
        sys.exit(_our_fault(fault))


def _our_fault(fault: Exception) -> int:
    """Keep the details of a fault of ours in a private file, say where, and answer the exit code."""
    handle, path = tempfile.mkstemp(prefix="rag-judge-fault-", suffix=".txt")
    with open(handle, "w", encoding="utf-8", errors="replace") as file:
        traceback.print_exception(fault, file=file)
    print(f"rag-judge: a fault of ours: {type(fault).__name__}; details in {path}; please report it", file=sys.stderr)
    return FAULT_OF_OURS


# --- arguments to settings ------------------------------------------------------------------------------------------


def _request(settings: Settings, cases: Path | None, answers: Path | None) -> RunRequest:
    from rag_judge.pipeline import Budget, RunRequest

    if cases is None and answers is not None:
        cases, answers = answers, None  # a log: its rows hold the questions, too
    if cases is None:
        raise InputError("--cases is missing: give the eval set (or --resume RUN to go on with an interrupted run)")
    return RunRequest(settings, cases, answers, Budget(sample=settings.judge.sample))


if __name__ == "__main__":
    main()
