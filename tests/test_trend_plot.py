"""The picture of a trend and a page's section of it: the same bytes, what is joined, marked and labelled, no markup."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import matplotlib
import pytest

from rag_judge.report.trend_plot import CJK_FONTS, drawn_language, installed_fonts, trend_png, trend_section, trend_svg
from rag_judge.trend import TrendPoint, trend_of
from tests.report_pages import Page, both_languages
from tests.trend_runs import NO_JUDGE, anchors_of, bias_of, judge_with, run_of, summary_of

M2 = judge_with(model="m-2", models_reported=["m-2"])
HOSTILE = [
    "</text></svg><script>alert(1)</script>",
    "--><img src=x onerror=alert(1)>",
    "$\\frac{1}{0}$ $ \\undefined{",
    "[bold]x[/bold] {{ 7*7 }} {0} %s",
    "a\x00\x1b[31m\u202eb\ud800\n\u2028c",
    "\U0001f600 夜间 \u0e01 \ue000",
    "=HYPERLINK(1)",
    "x" * 5_000,
]


DRAWN = {"svg", "g", "defs", "style", "path", "use", "clipPath", "rect"}
PAGE = {"section", "h2", "p", "figure", "details", "summary", "div", "table", "thead", "tbody", "tr", "th", "td"}
# Of one metric alone, where the texts matter and not the numbers: a panel takes a tenth of a second to draw.
SMALL: dict[str, Any] = {
    "summary": {
        "retrieval": {name: value for name, value in summary_of()["retrieval"].items() if name in ("k", "hit")}
    },
    "cost": {},
}


def points(n: int = 6) -> tuple[TrendPoint, ...]:
    runs = [
        run_of(
            f"r{day}", day, n_right=50 + day, bias=bias_of(9, 12), anchors=anchors_of("same"), **(M2 if day > 4 else {})
        )
        for day in range(1, n + 1)
    ]
    return trend_of([*runs, run_of("bridge", 9, purpose="bridge", parent="r4", **M2)]).points


def hostile_points(text: str) -> tuple[TrendPoint, ...]:
    judge: dict[str, Any] = judge_with(model=text, models_reported=[text])
    runs = [
        run_of(text, 1, name=text, **SMALL),
        run_of("b", 2, system={text: text, "model": text}, **judge, **SMALL),
        run_of("c", 3, purpose="bridge", parent=text, **judge, **SMALL),
    ]
    return trend_of(runs).points


def test_the_same_points_give_the_same_bytes_whatever_the_users_own_style() -> None:
    svg, png = trend_svg(points(), "zh"), trend_png(points(), "zh")
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "red", "svg.fonttype": "none"}):
        assert trend_svg(points(), "zh") == svg
        assert trend_png(points(), "zh") == png
    assert b"<dc:date>" not in svg
    assert b"tEXt" not in png


def test_another_process_gives_the_same_bytes() -> None:
    code = (
        "import sys\nfrom tests.test_trend_plot import hostile_points, trend_svg\n"
        "sys.stdout.buffer.write(trend_svg(hostile_points('夜'), 'en'))"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parent.parent,
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone},
            capture_output=True,
            check=True,
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Shanghai"))
    ]
    assert found[0] == found[1] == trend_svg(hostile_points("夜"), "en")


def n_drawn_lines(svg: bytes, color: str, dash: str) -> int:
    root = ElementTree.fromstring(svg)
    styles = [element.get("style") or "" for element in root.iter() if element.tag.endswith("}path")]
    return sum(color in style and dash in style for style in styles)


def test_changes_that_cut_are_dashed_in_the_panels_that_they_cut_and_others_dotted_in_all() -> None:
    same = trend_of([run_of("a", 1), run_of("b", 2)]).points
    assert (n_drawn_lines(trend_svg(same, "en"), "#b3261e", "dasharray"), len(panels(same))) == (0, 13)
    k = trend_of([run_of("a", 1), run_of("b", 2, k=10)]).points
    assert n_drawn_lines(trend_svg(k, "en"), "#b3261e", "dasharray") == 3  # hit, recall, mrr
    judge = trend_of([run_of("a", 1), run_of("b", 2, **M2)]).points
    assert n_drawn_lines(trend_svg(judge, "en"), "#b3261e", "dasharray") == 5
    system = trend_of([run_of("a", 1), run_of("b", 2, system={"model": "s-2"})]).points
    assert n_drawn_lines(trend_svg(system, "en"), "#8a939d", "dasharray") == 13


def panels(of: tuple[TrendPoint, ...]) -> list[str]:
    root = ElementTree.fromstring(trend_svg(of, "en"))
    return [str(e.get("id")) for e in root.iter() if str(e.get("id", "")).startswith("axes_")]


def test_metrics_without_any_number_have_no_panel() -> None:
    bare = trend_of([run_of("a", 1, **NO_JUDGE)]).points
    assert len(panels(bare)) == 8  # end to end, four of rules, three of retrieval
    assert panels(()) == []


def test_a_png_is_of_a_size_that_can_be_read() -> None:
    width, height = struct.unpack(">II", trend_png(points(), "en")[16:24])
    assert (width, 1_200 < height < 2_400) == (1_650, True)


def test_many_runs_and_many_changes_still_make_a_picture() -> None:
    runs = [run_of(f"r{n}", 1 + n % 28, system={"prompt": str(n)}, **SMALL) for n in range(120)]
    found = trend_of(runs).points
    height = struct.unpack(">II", trend_png(found, "en")[16:24])[1]
    assert height < 1_200
    assert "and 79 more changes" in Page(trend_section(found, "en")).text


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@both_languages
def test_a_hostile_text_makes_no_markup_in_picture_or_page(text: str, lang: str) -> None:
    found = hostile_points(text)
    assert trend_png(found, lang).startswith(b"\x89PNG")
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(trend_svg(found, lang)).iter()}
    assert tags <= DRAWN | {"metadata", "RDF", "Work", "type", "format", "creator", "Agent", "title"}
    page = Page(trend_section(found, lang))
    assert page.faults == []
    assert page.tags() <= {tag.lower() for tag in DRAWN - {"style"}} | PAGE
    assert not {name for _, attributes in page.elements for name in attributes if name.startswith("on")}
    assert not set(trend_section(found, lang)) & set("\x00\x1b\u202e\ud800\u2028")


@both_languages
def test_a_section_shows_every_number_and_loads_nothing(lang: str) -> None:
    section = trend_section(points(), lang)
    page = Page(section)
    assert page.faults == []
    assert not page.tags() & {"script", "img", "link", "iframe", "image", "a", "style"}
    links = [
        v for _, attributes in page.elements for name, v in attributes.items() if name in ("src", "href", "xlink:href")
    ]
    assert all((link or "").startswith("#") for link in links)
    assert "url(http" not in section
    assert "+ bridge" in page.text
    ((_, attributes),) = [element for element in page.elements if element[0] == "svg"]
    assert attributes["role"] == "img"
    assert "2026-03-01" in str(attributes["aria-label"])


@both_languages
def test_a_section_without_runs_says_so(lang: str) -> None:
    page = Page(trend_section((), lang))
    assert page.faults == []
    assert page.text.endswith("no run to show" if lang == "en" else "没有可显示的运行")


def test_without_a_chinese_font_the_picture_speaks_english_and_the_page_says_so() -> None:
    bare = frozenset({"DejaVu Sans"})
    assert [drawn_language(lang, bare) for lang in ("en", "zh")] == ["en", "en"]
    assert drawn_language("zh", bare | {CJK_FONTS[3]}) == "zh"
    found = hostile_points("夜")
    assert trend_svg(found, "zh", bare) == trend_svg(found, "en", bare)
    assert "没有安装含中文字符的字体" in Page(trend_section(found, "zh", bare)).text
    has_font = bool(installed_fonts() & set(CJK_FONTS))
    assert ("没有安装含中文字符的字体" in Page(trend_section(found, "zh")).text) == (not has_font)
