"""A finished run's report written again, with what was made of the run since: labels, comparison, decision, nights."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal, cast, get_args

from rag_judge.answers import AnswerSet
from rag_judge.archive import RunFolder, pair_rows_of, rows_not_passed
from rag_judge.cases import CaseSet
from rag_judge.errors import InputError
from rag_judge.pipeline.bias import judge_bias
from rag_judge.pipeline.compare import compare
from rag_judge.pipeline.pairwise import N_PAIRS_IN_REPORT
from rag_judge.pipeline.review import ReviewedRun
from rag_judge.pipeline.steps import N_CASES_IN_REPORT, joined_records, with_texts
from rag_judge.report.html import render_report
from rag_judge.report.joined import Joined
from rag_judge.report.markdown import render_markdown, render_pairs_markdown
from rag_judge.report.pairs_html import ReportPair, place_on_page, render_pairs_report

Format = Literal["html", "md"]
FORMATS = get_args(Format)
FILES = {"html": "report.html", "md": "report.md"}


@dataclass(frozen=True, slots=True)
class Reported:
    """A report: its text, the file that it was written to (None: to none), and what was joined to the run's numbers."""

    text: str
    file: Path | None
    joined: Sequence[str]


def write_joined_report(
    run: RunFolder,
    lang: str,
    trend_html: str | None = None,
    *,
    format_name: str = "html",
    out_file: Path | None = None,
    baseline: RunFolder | None = None,
    common: bool = False,
    declared: Sequence[str] = (),
) -> Reported:
    """Write the report of a finished run, by default to its folder; `-` as the file writes none.

    With a baseline the two are compared first, as `compare` does. Labels that came after `bias.json` are taken into
    it. `trend_html` is a section that is ready and safe; a page of Markdown has none. Raises InputError for a run that
    is not complete, for an unknown format or a file that cannot be, and as `compare` does.
    """
    wanted = _checked(format_name, out_file)
    reviewed = ReviewedRun(run.path)
    if baseline is not None:
        compare(ReviewedRun(baseline.path), reviewed, common=common, declared=declared)
    if reviewed.is_pair:
        text, joined = _pairs_page(reviewed, lang, wanted), Joined()
    else:
        if _has_newer_labels(reviewed):
            judge_bias(reviewed)
        joined = replace(joined_records(run), trend_html=trend_html if wanted == "html" else None)
        text = _page(reviewed, joined, lang, wanted)
    known = [f.name for f in fields(joined) if getattr(joined, f.name) is not None]
    return Reported(text, _written(text, run, wanted, out_file), known)


def _checked(format_name: str, out_file: Path | None) -> Format:
    """The format, before anything is made. Raises InputError for one that does not exist, and for no place to write."""
    if format_name not in FORMATS:
        raise InputError(f"--format: found {format_name!r}, expected one of {', '.join(FORMATS)}")
    if out_file is not None and str(out_file) != "-" and (out_file.is_dir() or not out_file.parent.is_dir()):
        raise InputError(f"--out-file: found {str(out_file)!r}, expected a file in a folder that is there, or -")
    return cast(Format, format_name)


def _has_newer_labels(run: ReviewedRun) -> bool:
    """True when people said something that `bias.json` does not know yet."""
    labels, bias = run.review.path / "labels.jsonl", run.folder.path / "bias.json"
    if run.run.manifest.get("judge") is None or not labels.exists() or not labels.stat().st_size:
        return False
    return not bias.exists() or bias.stat().st_mtime_ns < labels.stat().st_mtime_ns


def _page(run: ReviewedRun, joined: Joined, lang: str, wanted: Format) -> str:
    rows, n_not_passed = rows_not_passed(run.run, N_CASES_IN_REPORT)
    with (
        closing(CaseSet(run.folder.snapshot)) as cases,
        closing(AnswerSet(run.folder.answers, cases.offsets)) as answers,
    ):
        first = with_texts(rows, cases, answers)
    render = render_report if wanted == "html" else render_markdown
    return render(run.run.manifest, run.run.summary, first, n_not_passed=n_not_passed, lang=lang, joined=joined)


def _pairs_page(run: ReviewedRun, lang: str, wanted: Format) -> str:
    manifest, summary, folder = run.run.manifest, run.run.summary, run.folder
    if wanted == "md":
        return render_pairs_markdown(manifest, summary, lang)
    rows = sorted((row for row in pair_rows_of(run.run) if row.outcome != "tie"), key=place_on_page)
    with (
        closing(CaseSet(folder.snapshot)) as cases,
        closing(AnswerSet(folder.answers_of("a"), cases.offsets)) as a,
        closing(AnswerSet(folder.answers_of("b"), cases.offsets)) as b,
    ):
        shown = [ReportPair(row, cases.get(row.id), a.get(row.id), b.get(row.id)) for row in rows[:N_PAIRS_IN_REPORT]]
    return render_pairs_report(manifest, summary, shown, lang=lang)


def _written(text: str, run: RunFolder, wanted: Format, out_file: Path | None) -> Path | None:
    if out_file is None:
        run.write_text(FILES[wanted], text)
        return run.path / FILES[wanted]
    if str(out_file) == "-":
        return None
    RunFolder(out_file.parent).write_text(out_file.name, text)
    return out_file
