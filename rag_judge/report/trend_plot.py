"""A trend as a picture: small panels, one a metric, with intervals, gaps and the changes that cut a line.

SVG and PNG come from one drawing, the same bytes for the same points. Texts of runs are shown as they are: they are
no markup of a page, no formulas of the drawing library, and hold no control characters.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag_judge.records import Estimate
from rag_judge.report.terminal import printable
from rag_judge.report.trend_table import (
    cell_text,
    change_numbers,
    day,
    level_text,
    line_letters,
    mark_lines,
    paragraphs,
    shown_metrics,
    span_text,
)
from rag_judge.report.trend_words import METRIC_WORDS, TREND_WORDS
from rag_judge.trend import TrendPoint, strokes
from rag_judge.trend_values import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_COLUMNS, N_NOTES = 3, 14
WIDTH_IN, PANEL_IN, HEAD_IN, NOTE_IN = 11.0, 1.75, 0.9, 0.19
NOTE_CHARACTERS = 150
BLUE, RED, GREY, INK = "#1f5fae", "#b3261e", "#8a939d", "#1c2127"
# Fonts with Chinese characters, the first that is installed; the last ones are those of Windows and macOS.
CJK_FONTS = (
    *("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "Noto Sans CJK JP"),
    *("WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback", "Noto Serif CJK SC", "Noto Serif CJK JP"),
    *("Microsoft YaHei", "SimHei", "PingFang SC", "Hiragino Sans GB", "Arial Unicode MS"),
)
_STYLE: Mapping[Any, Any] = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign of a run's name begins no formula
    "text.usetex": False,
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": False,
    "svg.hashsalt": "rag-judge trend",
    "svg.fonttype": "path",
    "path.simplify": False,
}


def installed_fonts() -> frozenset[str]:
    """The names of the fonts that the drawing library finds on this machine."""
    from matplotlib import font_manager

    return frozenset(entry.name for entry in font_manager.fontManager.ttflist)


def drawn_language(lang: str, fonts: frozenset[str]) -> str:
    """The language of a picture's labels: English where no font has the characters that Chinese needs."""
    return lang if lang != "zh" or any(name in fonts for name in CJK_FONTS) else "en"


def trend_svg(points: Sequence[TrendPoint], lang: str, fonts: frozenset[str] | None = None) -> bytes:
    """The picture as an SVG file; `fonts`: the installed ones. The same bytes for the same points."""
    return _svg(points, lang, fonts, has_notes=True)


def _svg(points: Sequence[TrendPoint], lang: str, fonts: frozenset[str] | None, *, has_notes: bool) -> bytes:
    return _saved(points, lang, fonts, has_notes, format="svg", metadata={"Date": None, "Creator": None})


def trend_png(points: Sequence[TrendPoint], lang: str, fonts: frozenset[str] | None = None) -> bytes:
    """The picture as a PNG file; `fonts`: the installed ones. The same bytes for the same points."""
    return _saved(points, lang, fonts, True, format="png", dpi=150, metadata={"Software": None})


def _saved(points: Sequence[TrendPoint], lang: str, fonts: frozenset[str] | None, has_notes: bool, **how: Any) -> bytes:
    from io import BytesIO

    import matplotlib

    fonts = installed_fonts() if fonts is None else fonts
    lang = drawn_language(lang, fonts)
    families = [name for name in CJK_FONTS if name in fonts][:1]
    file = BytesIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # a user's own style would change the bytes
        matplotlib.rcParams.update({**_STYLE, "font.family": ["DejaVu Sans", *families]})
        notes = _notes(points, lang) if has_notes else []
        _figure(points, notes, lang, _drawable(["DejaVu Sans", *families])).savefig(file, **how)
    return file.getvalue()


def _drawable(families: Sequence[str]) -> Callable[[str], str]:
    """A text as these fonts can draw it: on one line, without what a terminal obeys, '?' for an unknown character."""
    from matplotlib import font_manager

    fonts = [font_manager.get_font(font_manager.findfont(name)) for name in families]
    known = frozenset(code for font in fonts for code in font.get_charmap())
    return lambda text: "".join(c if ord(c) in known else "?" for c in printable(text))


# --- the picture ----------------------------------------------------------------------------------------------------


def _figure(points: Sequence[TrendPoint], notes: Sequence[str], lang: str, drawable: Callable[[str], str]) -> Figure:
    from matplotlib.figure import Figure

    metrics = shown_metrics(points)
    n_rows = -(-len(metrics) // N_COLUMNS)
    height = HEAD_IN + n_rows * PANEL_IN + (len(notes) + 1) * NOTE_IN
    figure = Figure(figsize=(WIDTH_IN, height), facecolor="white")
    figure.text(0.045, 1 - 0.28 / height, drawable(span_text(points, lang)), size=11, weight="bold")
    bottom = (len(notes) + 1) * NOTE_IN / height
    if metrics:
        words = TREND_WORDS[lang]
        figure.text(0.045, 1 - 0.48 / height, drawable(words["joined"]), size=7.5, color="#5a6470")
        top = 1 - (HEAD_IN + 0.08) / height
        grid = {"left": 0.045, "right": 0.985, "top": top, "bottom": bottom + 0.3 / height, "hspace": 0.62}
        axes = list(figure.subplots(n_rows, N_COLUMNS, squeeze=False, gridspec_kw={**grid, "wspace": 0.16}).flat)
        for axis, metric in zip(axes, metrics, strict=False):
            _panel(axis, points, metric, lang)
        for axis in axes[len(metrics) :]:
            axis.set_visible(False)
    for i, note in enumerate(notes):
        figure.text(0.045, bottom - (i + 0.75) * NOTE_IN / height, drawable(note), size=7.5)
    return figure


def _notes(points: Sequence[TrendPoint], lang: str) -> list[str]:
    """What stands under the panels: how to read them, and the last changes."""
    if not points:
        return []
    words = TREND_WORDS[lang]
    marks = mark_lines(points, lang)
    n_left = max(0, len(marks) - N_NOTES)
    more = [words["more_marks"].format(n=n_left)] if n_left else []
    notes = [words["legend"], words["units"].format(level=level_text(points)), *marks[:1], *marks[1:][-N_NOTES:], *more]
    return [note if len(note) <= NOTE_CHARACTERS else note[: NOTE_CHARACTERS - 1] + "…" for note in notes]


def _panel(axis: Axes, points: Sequence[TrendPoint], metric: str, lang: str) -> None:
    from matplotlib.ticker import MaxNLocator

    places = _places(points)
    _marks(axis, points, metric, places)
    scale = 1.0 if METRICS[metric].unit in ("count", "usd") else 100.0
    for stroke in strokes(points, metric):
        _stroke(axis, stroke, metric, scale, places)
    axis.set_title(METRIC_WORDS[lang][metric], loc="left", size=9, weight="bold", pad=12)
    axis.set_xlim(-0.6, max(places.values()) + 0.6)
    if scale == 1.0:
        top = max((v.value for p in points if isinstance(v := p.values[metric].estimate, Estimate)), default=0.0) or 1.0
        axis.set_ylim(-0.05 * top, 1.15 * top)
        axis.yaxis.set_major_locator(MaxNLocator(4, integer=METRICS[metric].unit == "count"))
    else:
        axis.set_ylim(-3, 103)
        axis.set_yticks([0, 25, 50, 75, 100])
    axis.grid(axis="y", color="#e6e9ed", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.tick_params(length=2, colors="#5a6470", labelsize=7)
    _date_ticks(axis, points, places)


def _places(points: Sequence[TrendPoint]) -> dict[int, int]:
    """Where each point stands from left to right, by its identity; a bridge at the run whose place it has."""
    places: dict[int, int] = {}
    at = -1
    before: TrendPoint | None = None
    for point in points:
        at += not (point.is_bridge and before is not None and before.at == point.at)
        places[id(point)] = at
        before = point
    return places


def _date_ticks(axis: Axes, points: Sequence[TrendPoint], places: Mapping[int, int]) -> None:
    """Days at up to six places, the first and the last among them."""
    days = {places[id(point)]: day(point) for point in points}
    step = max(1, -(-(len(days) - 1) // 5)) if len(days) > 1 else 1
    shown = [place for place in days if (max(days) - place) % step == 0]
    several_years = len({text[:4] for text in days.values()}) > 1
    axis.set_xticks(shown, [days[place] if several_years and len(shown) < 4 else days[place][-5:] for place in shown])


def _marks(axis: Axes, points: Sequence[TrendPoint], metric: str, places: Mapping[int, int]) -> None:
    """A line before each run at which something changed: dashed where it cuts this metric, dotted where it does not."""
    numbers = change_numbers(points)
    for i, number in numbers.items():
        cuts = any(metric in mark.breaks for mark in points[i].marks)
        is_system = any(mark.kind in ("system", "program") for mark in points[i].marks)
        if not cuts and not is_system:
            continue
        x = places[id(points[i])] - 0.5
        color = RED if cuts else GREY
        axis.axvline(x, color=color, linewidth=0.9, linestyle=(0, (4, 2)) if cuts else (0, (1, 2)), zorder=1)
        if len(numbers) <= 20:
            top = axis.get_xaxis_transform()
            axis.text(x, 1.02, f"({number})", transform=top, ha="center", va="bottom", size=6, color=color)


def _stroke(axis: Axes, stroke: Sequence[TrendPoint], metric: str, scale: float, places: Mapping[int, int]) -> None:
    x = [places[id(point)] for point in stroke]
    found = [e for point in stroke if isinstance(e := point.values[metric].estimate, Estimate)]
    y = [scale * estimate.value for estimate in found]
    held = [
        (place, e.low, e.high) for place, e in zip(x, found, strict=True) if e.low is not None and e.high is not None
    ]
    lows, highs = [scale * low for _, low, _ in held], [scale * high for _, _, high in held]
    axis.vlines([place for place, _, _ in held], lows, highs, color=BLUE, alpha=0.35, linewidth=2.4, zorder=2)
    axis.plot(x, y, color=BLUE, linewidth=1.3, zorder=3)
    for is_bridge, marker, face in ((False, "o", BLUE), (True, "D", "white")):
        shown = [i for i, point in enumerate(stroke) if point.is_bridge == is_bridge]
        across, up = [x[i] for i in shown], [y[i] for i in shown]
        axis.plot(across, up, marker, markersize=4.2, markerfacecolor=face, markeredgecolor=BLUE, zorder=4)


# --- a page's section -------------------------------------------------------------------------------------------------


def trend_section(points: Sequence[TrendPoint], lang: str, fonts: frozenset[str] | None = None) -> str:
    """A section of a page: the picture, what is to be said of it, and the numbers as a table. No script, no link."""
    words = TREND_WORDS[lang]
    parts = ['<section class="trend">', f"<h2>{_escaped(words['title'])}</h2>"]
    parts.append(f"<p>{_escaped(span_text(points, lang))}</p>")
    if points:
        fonts = installed_fonts() if fonts is None else fonts
        parts += [
            _figure_element(points, lang, fonts),
            f'<p class="quiet">{_escaped(words["joined"] + " " + words["legend"])}</p>',
        ]
        if drawn_language(lang, fonts) != lang:
            parts.append(f'<p class="quiet">{_escaped(words["drawn_with"])}</p>')
        parts += [f'<p dir="auto">{_escaped(line)}</p>' for line in paragraphs(points, lang)]
        parts += [_table(points, lang)]
    return "\n".join([*parts, "</section>"]) + "\n"


def _escaped(text: str) -> str:
    return html.escape(printable(text.strip()))


def _figure_element(points: Sequence[TrendPoint], lang: str, fonts: frozenset[str]) -> str:
    """The picture inside a page: without the head of a file, and with ids of its own by the drawing's salt."""
    svg = _svg(points, lang, fonts, has_notes=False).decode("utf-8")
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\n?", "", svg, flags=re.DOTALL)  # the texts, which are drawn as shapes
    svg = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", "", svg, flags=re.DOTALL)  # it would style the page
    title = _escaped(f"{TREND_WORDS[lang]['title']}: {span_text(points, lang)}")
    head, rest = svg.split(">", 1)
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    drawn = "stroke-linejoin: round; stroke-linecap: butt"
    svg = f'{head} role="img" aria-label="{title}" style="{drawn}">{rest}'
    svg = re.sub(r"\n\s*", " ", svg)
    return f'<figure style="margin:0;background:#fff">\n{svg.strip()}\n</figure>'


def _table(points: Sequence[TrendPoint], lang: str) -> str:
    """The numbers behind the picture, folded away; runs as rows."""
    words, metrics, numbers = TREND_WORDS[lang], shown_metrics(points), change_numbers(points)
    letters = {name: line_letters(points, name) for name in metrics}
    heads = [words["run"], words["change"], *(METRIC_WORDS[lang][name] for name in metrics)]
    rows = []
    for i, point in enumerate(points):
        cells = [cell_text(name, point.values[name], letters[name]) for name in metrics]
        run = f"+ {point.run_id}" if point.is_bridge else point.run_id
        change = f"({numbers[i]})" if i in numbers else ""
        found = "".join(f'<td dir="auto">{_escaped(text)}</td>' for text in [run, change, *cells])
        rows.append(f"<tr>{found}</tr>")
    head = "".join(f'<th scope="col">{_escaped(text)}</th>' for text in heads)
    notes = f"{words['units'].format(level=level_text(points))} {words['letters']}"
    return (
        f"<details><summary>{_escaped(words['values'])}</summary>\n"
        f'<p class="quiet">{_escaped(notes)}</p>\n<div style="overflow-x:auto"><table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody></table></div>\n</details>"
    )
