"""The command `lint`. No logic lives here.

As in `cli`, what a command needs is imported when it runs.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag_judge.errors import InputError
from rag_judge.options import Config, Json, Lang, Quiet, flags_of
from rag_judge.printing import let_pipes_end
from rag_judge.progress import Voice
from rag_judge.report.terminal import printable

if TYPE_CHECKING:
    from rag_judge.cases import CaseSet
    from rag_judge.lint import Finding

WORDS = {
    "en": {
        "error": "error",
        "advice": "advice",
        "line": " (line {line})",
        "finding": "{severity} {code}{case}: {what}. {why}. -> {mend}",
        "count": "{cases} cases: {errors} errors, {advice} pieces of advice",
    },
    "zh": {
        "error": "错误",
        "advice": "建议",
        "line": "(第 {line} 行)",
        "finding": "{severity} {code}{case}: {what}。{why}。-> {mend}",
        "count": "{cases} 条用例:{errors} 个错误,{advice} 条建议",
    },
}


def lint(
    cases: Annotated[Path, typer.Argument(metavar="CASES", help="Eval set: JSON Lines, JSON array, CSV or Parquet.")],
    corpus: Annotated[
        str | None,
        typer.Option("--corpus", help="The knowledge base's chunks: a file, or a folder of JSON Lines."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="End with 1 where there is advice.")] = False,
    runs: Annotated[
        list[str] | None,
        typer.Option("--runs", help="A finished run of these cases (folder or id); may be given several times."),
    ] = None,
    half_width: Annotated[
        float, typer.Option("--half-width", help="How closely a rate of 80 % should be known, plus or minus.")
    ] = 0.1,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what is wrong or weak in an eval set. Nothing is asked or changed.

    Example: rag-judge lint eval/rag_cases.json --corpus eval/kb
    """
    from rag_judge import lint as checks
    from rag_judge.cases import CaseSet
    from rag_judge.corpus import Corpus
    from rag_judge.settings import load_settings

    of_run = load_settings(config, os.environ, flags_of(locals(), "corpus lang")).run
    with Voice(quiet=quiet) as voice, closing(CaseSet(cases)) as case_set:
        for warning in case_set.warnings:
            voice.say(f"warning: {warning}")
        known = None if of_run.corpus is None else Corpus(Path(of_run.corpus))
        found = checks.lint(case_set, known, half_width=half_width, lang=of_run.lang)
        found += _of_runs(case_set, runs or [], Path(of_run.out), of_run.lang)
        n_cases = len(case_set)
    found = checks.in_order(found)
    _print(found, n_cases, lang=of_run.lang, as_json=as_json)
    n_errors = sum(finding.severity == "error" for finding in found)
    raise typer.Exit(2 if n_errors else 1 if strict and found else 0)


def _of_runs(case_set: CaseSet, names: list[str], archive: Path, lang: str) -> list[Finding]:
    from rag_judge.archive import find_run, read_run
    from rag_judge.lint import grading_of, lint_runs

    finished = [read_run(find_run(archive, name).path) for name in names]
    for run in finished:
        if run.manifest.get("kind") == "pairwise":
            raise InputError(f"--runs {run.folder.path}: found a comparison, expected a run of these cases")
    if not finished:
        return []
    gradings = [grading_of(run.manifest) for run in finished]
    return lint_runs([run.table() for run in finished], case_set, gradings=gradings, lang=lang)


def _print(found: list[Finding], n_cases: int, *, lang: str, as_json: bool) -> None:
    let_pipes_end()
    n_errors = sum(finding.severity == "error" for finding in found)
    counts = {"cases": n_cases, "errors": n_errors, "advice": len(found) - n_errors}
    if as_json:
        text = json.dumps(counts | {"findings": [asdict(finding) for finding in found]}, ensure_ascii=False, indent=1)
        typer.echo(re.sub(r"[^\n -~]", lambda c: c[0] if c[0].isprintable() else json.dumps(c[0])[1:-1], text))
        return
    words = WORDS[lang]
    for finding in found:
        typer.echo(_line(finding, words))
    typer.echo(words["count"].format_map(counts))


def _line(finding: Finding, words: dict[str, str]) -> str:
    case = "" if finding.case_id is None else f" {printable(finding.case_id)}"
    if finding.line is not None:
        case += words["line"].format(line=finding.line)
    parts = {name: printable(getattr(finding, name)) for name in ("code", "what", "why", "mend")}
    return words["finding"].format(severity=words[finding.severity], case=case, **parts)
