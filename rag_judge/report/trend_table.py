"""A trend as lines for people: tables that fit the terminal, the changes, what is clear, gaps and what is left out.

Texts of runs are data: on one line, shortened, without what a terminal obeys, and never markup.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rag_judge.records import Estimate, NoEstimate
from rag_judge.report.html_numbers import percent, sentence
from rag_judge.report.terminal import printable
from rag_judge.report.trend_words import (
    CUT_WORDS,
    KIND_WORDS,
    LEFT_OUT_WORDS,
    METRIC_WORDS,
    REASONS_ZH,
    TREND_WORDS,
)
from rag_judge.trend import LeftOut, Trend, TrendPoint, TrendValue, changes_between, last_clear_change
from rag_judge.trend_marks import Mark
from rag_judge.trend_values import METRICS

if TYPE_CHECKING:
    from rich.table import Table

RUN_WIDTH, CELL_WIDTH = 22, 13
N_MARKS_SHOWN, N_NAMED = 40, 8
_LONG_HASH = re.compile(r"\b[0-9a-f]{32,}\b")
SHORT_HASH, SHORT_TEXT = 12, 60


def trend_lines(trend: Trend, lang: str, width: int = 80) -> list[str]:
    """The trend for a terminal of that many columns."""
    points = trend.points
    words = TREND_WORDS[lang]
    lines = [span_text(points, lang)]
    if points:
        for table in _tables(points, lang, width):
            lines += ["", *_rendered(table, width)]
        lines += ["", words["units"].format(level=level_text(points)), words["letters"]]
        lines += paragraphs(points, lang)
    return _wrapped([*lines, *left_out_lines(trend, lang)], width)


def _wrapped(lines: Sequence[str], width: int) -> list[str]:
    """The lines broken at the width, which counts a Chinese character as two; what goes on is set in."""
    from rich.cells import cell_len
    from rich.console import Console
    from rich.text import Text

    console = Console(width=width, color_system=None)
    found: list[str] = []
    for line in lines:
        if cell_len(line) <= width:
            found.append(line)
            continue
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        first, *rest = Text(line.strip()).wrap(console, width - len(indent))
        found += [f"{indent[2:]}{first.plain.rstrip()}", *(f"{indent}{part.plain.rstrip()}" for part in rest)]
    return found


def paragraphs(points: Sequence[TrendPoint], lang: str) -> list[str]:
    """What is to be said of the points beside their numbers: changes, what is clear, gaps, bridges."""
    return [*mark_lines(points, lang), *clear_lines(points, lang), *gap_lines(points, lang), *_notes(points, lang)]


def span_text(points: Sequence[TrendPoint], lang: str) -> str:
    """How many runs, from when to when."""
    words = TREND_WORDS[lang]
    nights = [point for point in points if not point.is_bridge]
    if not points:
        return words["none"]
    ends = (nights or list(points))[0], (nights or list(points))[-1]
    text = words["span"].format(n=len(nights), first=day(ends[0]), last=day(ends[1]))
    n_bridges = len(points) - len(nights)
    return text + (words["bridges"].format(n=n_bridges) if n_bridges else "")


def day(point: TrendPoint) -> str:
    """The day of a point's place, as the manifest writes it."""
    return printable(point.at[:10])


def level_text(points: Sequence[TrendPoint]) -> str:
    """The levels of the intervals shown."""
    levels = {e.level for point in points for v in point.values.values() if isinstance(e := v.estimate, Estimate)}
    return ", ".join(percent(level) for level in sorted(levels))


def shown_metrics(points: Sequence[TrendPoint]) -> list[str]:
    """The metrics of which any run has a number."""
    return [name for name in METRICS if any(isinstance(p.values[name].estimate, Estimate) for p in points)]


def reason_text(reason: str, lang: str) -> str:
    """Why a number is missing, in the language of the reader."""
    return printable(REASONS_ZH.get(reason, sentence(reason, lang)) if lang == "zh" else reason)


# --- numbers --------------------------------------------------------------------------------------------------------


def estimate_text(metric: str, found: Estimate, *, ends: bool = True) -> str:
    """A number and the ends of its interval, shortly: '71 60-80' of a share, '3' of a count."""
    if METRICS[metric].unit == "count":
        return f"{found.value:g}"
    if METRICS[metric].unit == "usd":
        return ("> " if found.method.endswith("lower bound") else "") + f"{found.value:.4g}"
    text = _hundredths(found.value)
    if not ends or found.low is None or found.high is None:
        return text
    return f"{text} {_hundredths(found.low)}-{_hundredths(found.high)}"


def _hundredths(share: float) -> str:
    return percent(share).removesuffix(" %").replace(" ", "")


def line_letters(points: Sequence[TrendPoint], metric: str) -> Mapping[int, str]:
    """A letter a line, where a metric has numbers on more than one."""
    held = [v for p in points if (v := p.values[metric]).line is not None and isinstance(v.estimate, Estimate)]
    lines = sorted({value.line for value in held if value.line is not None})
    if len(lines) < 2:
        return {}
    return {line: chr(ord("a") + i) if i < 26 else str(i + 1) for i, line in enumerate(lines)}


def cell_text(metric: str, value: TrendValue, letters: Mapping[int, str]) -> str:
    """A number as a cell shows it, with the letter of its line; '-' for a gap."""
    if isinstance(value.estimate, NoEstimate):
        return "-"
    letter = "" if value.line is None else letters.get(value.line, "")
    return f"{estimate_text(metric, value.estimate)} {letter}".strip()


def _tables(points: Sequence[TrendPoint], lang: str, width: int) -> Iterator[Table]:
    from rich.table import Table
    from rich.text import Text

    metrics, numbers = shown_metrics(points), change_numbers(points)
    n_columns = max(1, (width - RUN_WIDTH - 6) // CELL_WIDTH)
    for start in range(0, len(metrics), n_columns):
        part = metrics[start : start + n_columns]
        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
        table.add_column(Text(TREND_WORDS[lang]["run"]), max_width=RUN_WIDTH, overflow="fold")
        table.add_column(Text(TREND_WORDS[lang]["change"]), max_width=4, overflow="fold")
        for name in part:
            table.add_column(Text(METRIC_WORDS[lang][name]), max_width=CELL_WIDTH - 1, overflow="fold", justify="right")
        letters = {name: line_letters(points, name) for name in part}
        for i, point in enumerate(points):
            cells = [cell_text(name, point.values[name], letters[name]) for name in part]
            run = f"+ {printable(point.run_id)}" if point.is_bridge else printable(point.run_id)
            table.add_row(Text(run), Text(_bracketed(numbers.get(i))), *map(Text, cells))
        yield table


def _bracketed(number: int | None) -> str:
    return "" if number is None else f"({number})"


def _rendered(table: Table, width: int) -> list[str]:
    from io import StringIO

    from rich.console import Console

    file = StringIO()
    console = Console(file=file, width=width, color_system=None, markup=False, emoji=False, highlight=False)
    console.print(table)
    return [line.rstrip() for line in file.getvalue().splitlines()]


# --- sentences ------------------------------------------------------------------------------------------------------


def change_numbers(points: Sequence[TrendPoint]) -> dict[int, int]:
    """The number under which the changes at a point are told, by the point's place."""
    changed = [i for i, point in enumerate(points) if point.marks]
    return {place: number for number, place in enumerate(changed, 1)}


def mark_lines(points: Sequence[TrendPoint], lang: str) -> list[str]:
    """Every change, with what it cuts."""
    numbers, words = change_numbers(points), TREND_WORDS[lang]
    lines = [mark_text(points[i], mark, number, lang) for i, number in numbers.items() for mark in points[i].marks]
    if not lines:
        return []
    more = [words["more_marks"].format(n=len(lines) - N_MARKS_SHOWN)] if len(lines) > N_MARKS_SHOWN else []
    return [words["changes"], *(f"  {line}" for line in [*lines[-N_MARKS_SHOWN:], *more])]


def mark_text(point: TrendPoint, mark: Mark, number: int, lang: str) -> str:
    """One change in words."""
    return TREND_WORDS[lang]["mark"].format(
        number=number,
        run=printable(point.run_id),
        kind=KIND_WORDS[lang][mark.kind],
        factor=short(mark.factor, lang),
        before=short(mark.before, lang),
        after=short(mark.after, lang),
        cut=CUT_WORDS[lang][mark.kind],
    )


def short(text: str | None, lang: str) -> str:
    """A value of a manifest on one line; long hashes by their beginning."""
    if text is None:
        return TREND_WORDS[lang]["unknown"]
    text = _LONG_HASH.sub(lambda found: found[0][:SHORT_HASH], printable(text))
    return text if len(text) <= SHORT_TEXT else text[: SHORT_TEXT - 1] + "…"


def clear_lines(points: Sequence[TrendPoint], lang: str) -> list[str]:
    """The last clear change of each metric, without a word of why, and the metrics that have none."""
    words, names, numbers = TREND_WORDS[lang], METRIC_WORDS[lang], change_numbers(points)
    number_of = {id(mark): number for place, number in numbers.items() for mark in points[place].marks}
    lines, without = [], []
    for metric in shown_metrics(points):
        found = last_clear_change(points, metric)
        if found is None:
            without.append(names[metric])
            continue
        ends = [_ends(metric, point.values[metric].estimate) for point in (found.before, found.after)]
        runs = [printable(point.run_id) for point in (found.before, found.after)]
        line = words["clear"].format(metric=names[metric], before=ends[0], after=ends[1], run_a=runs[0], run_b=runs[1])
        marks = sorted({number_of[id(mark)] for mark in changes_between(points, found)})
        at_once = words["at_once"].format(numbers=", ".join(f"({n})" for n in marks))
        lines.append(line + (at_once if marks else words["nothing_at_once"]))
    if lines:
        lines.append(words["no_cause"])
    if not lines:
        return [words["none_clear"]] if without else []
    return [*lines, words["not_clear"].format(metrics=" · ".join(without))] if without else lines


def _ends(metric: str, found: Estimate | NoEstimate) -> str:
    return estimate_text(metric, found) if isinstance(found, Estimate) else "-"


def gap_lines(points: Sequence[TrendPoint], lang: str) -> list[str]:
    """Per metric, in how many runs there is no number of it, and why."""
    words = TREND_WORDS[lang]
    of_text: dict[str, list[str]] = {}
    for metric in METRICS:
        held = [point for point in points if point.values[metric].line is not None]
        reasons = Counter(e.reason for point in held if isinstance(e := point.values[metric].estimate, NoEstimate))
        if reasons:
            why = "; ".join(f"{reason_text(reason, lang)} ({n})" for reason, n in reasons.most_common())
            text = words["gap"].format(n=sum(reasons.values()), of=len(held), reasons=why)
            of_text.setdefault(text, []).append(METRIC_WORDS[lang][metric])
    return [f"{' · '.join(metrics)}: {text}" for text, metrics in of_text.items()]


def _notes(points: Sequence[TrendPoint], lang: str) -> Iterator[str]:
    words = TREND_WORDS[lang]
    for point in points:
        if point.is_bridge:
            named = {"run": point.run_id, "parent": point.parent or "", "judge": point.judge or ""}
            yield words["bridge"].format_map({name: short(text, lang) for name, text in named.items()})
    n_embedded = sum(point.is_embedded for point in points)
    if n_embedded:
        yield words["embedded"].format(n=n_embedded)


def left_out_lines(trend: Trend, lang: str) -> list[str]:
    """The runs that are no points, counted by reason, and named where they are few or broken."""
    words, lines = TREND_WORDS[lang], []
    by_reason: dict[str, list[LeftOut]] = {}
    for left in trend.left_out:
        by_reason.setdefault(left.reason, []).append(left)
    if by_reason:
        counts = (f"{LEFT_OUT_WORDS[lang][name]} {len(found)}" for name, found in by_reason.items())
        lines.append(words["left_out"].format(counts=", ".join(counts)))
    for name, found in by_reason.items():
        if name in ("older", "other_name"):  # what was asked for needs no list
            continue
        ids = ", ".join(printable(left.run_id) for left in found[:N_NAMED]) + (" …" if len(found) > N_NAMED else "")
        lines.append(f"  {LEFT_OUT_WORDS[lang][name]}: {ids}")
        lines += [f"    {printable(left.detail)}" for left in found[:N_NAMED] if name == "broken"]
    return [*lines, *(words["unread"].format(run=printable(run), file=file) for run, file in trend.unread)]
