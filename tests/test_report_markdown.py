"""The page of Markdown: short, the same numbers, and no text of a case or a model is anything but text on it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from rag_judge.records import Answer, Case, CaseRow
from rag_judge.report.html import ReportCase
from rag_judge.report.html_words import WORDS
from rag_judge.report.joined import Joined
from rag_judge.report.markdown import JOINER, MOST_BYTES, N_CASES_SHOWN, code, escaped, render_markdown
from rag_judge.summary import summarise
from tests import test_report_joined as joined_pages
from tests.report_pages import FULL, both_languages, graded, judge, manifest

PLAIN = MarkdownIt("commonmark").enable("table")


def page(
    cases: list[ReportCase] | None = None,
    lang: str = "en",
    *,
    joined: Joined | None = None,
    n_not_passed: int | None = None,
    **changes: Any,
) -> str:
    cases = FULL if cases is None else cases
    n = len(cases) if n_not_passed is None else n_not_passed
    summary = summarise([given.row for given in cases], k=5, seed=7, mode="passfail")
    made = manifest(**changes)
    return render_markdown(made, summary, cases, n_not_passed=n, lang=lang, joined=joined or Joined())


def tokens(text: str) -> list[Token]:
    """Every token of a text as CommonMark with tables reads it, inner ones too."""
    found = PLAIN.parse(text)
    return [*found, *(inner for token in found for inner in token.children or ())]


def shape(text: str) -> list[str]:
    """What a page is made of, whatever its texts say."""
    return [token.type for token in tokens(text) if token.type not in ("text", "text_special", "code_inline")]


def seen(text: str) -> str:
    """What a reader sees."""
    inner = ("text", "text_special", "code_inline")
    return " ".join("".join(token.content for token in tokens(text) if token.type in inner).split())


# --- a text is only text ---------------------------------------------------------------------------------------------

HOSTILE = [
    pytest.param("<img src=x onerror=alert(1)><!-- x -->", id="html"),
    pytest.param("</td></tr></table><details>", id="html of a table"),
    pytest.param("[click](https://evil.example/x)", id="link"),
    pytest.param("![i](http://evil.example/x.png)", id="image"),
    pytest.param("see [1](javascript:alert) and [2]: x", id="numbers as link texts"),
    pytest.param("<https://evil.example>", id="angle link"),
    pytest.param("https://evil.example/x", id="bare address"),
    pytest.param("www.evil.example and evil.example", id="host alone"),
    pytest.param("mail me@evil.example", id="mail"),
    pytest.param("@octocat @org/team @all @here", id="mention"),
    pytest.param("fixes #12 GH-34 !56 ~label %milestone $78 &9", id="reference"),
    pytest.param("owner/name@0123456789abcdef0123456789abcdef01234567", id="commit"),
    pytest.param("a | b | c |\n| --- | --- |\n| forged | row |", id="rows of a table"),
    pytest.param("a \\| b \\\\| c", id="escaped bars"),
    pytest.param("\n\n# Heading\n\n> quote\n\n- item\n\n---\n", id="blocks"),
    pytest.param("Heading\n=======\n1. one", id="setext and list"),
    pytest.param("```\ncode\n```\n~~~\n`x`", id="code"),
    pytest.param("**bold** __bold__ *i* _i_ ~~gone~~", id="emphasis"),
    pytest.param("&lt;b&gt; &#60;i&#62; &amp;", id="entities"),
    pytest.param("[x][y] [^1] [ ] [x]\n[y]: http://evil.example", id="definitions"),
    pytest.param(":tada: :+1:", id="emoji"),
    pytest.param("{{ 7 * 7 }} %s {0}", id="template"),
    pytest.param("a\x1b[31mb\u202ec\x00d\ud800", id="controls"),
]


def _case(**fields: Any) -> list[ReportCase]:
    return [graded(case=Case("q1", **{"question": "?", "type": "fact", **fields}))]


POSITIONS: dict[str, Callable[[str], str]] = {
    "id": lambda t: page([graded(t)]),
    "question": lambda t: page(_case(question=t)),
    "type": lambda t: page(_case(type=t)),
    "evidence": lambda t: page([graded(evidence=t)]),
    "cause": lambda t: page([graded(cause=t, layer=t)]),
    "leaked id": lambda t: page([graded(t, leak=True, leak_checked=True)]),
    "run id": lambda t: page(run_id=t),
    "model": lambda t: page(judge=judge(model=t)),
    "fallback": lambda t: page(judge=judge(fallbacks=[t])),
    "family": lambda t: page(same_family=[{"judge": t, "system": t, "family": t}]),
    "factor": lambda t: page(system={t: "v"}),
    "factor's value": lambda t: page(system={"embedding": t}),
    "eval set": lambda t: page(eval_set={"path": t, "sha256": "ab", "n": 1}),
    "compared run": lambda t: page(joined=Joined(comparison=joined_pages.comparison(a=t, b=t))),
    "changed factor": lambda t: page(
        joined=Joined(comparison=joined_pages.comparison(changed_factors=[{"factor": t, "a": t, "b": t}]))
    ),
    "changed case": lambda t: page(
        joined=Joined(comparison=joined_pages.comparison(changed_cases=[{**joined_pages.CHANGED_CASE, "id": t}]))
    ),
    "remark": lambda t: page(joined=Joined(comparison=joined_pages.comparison(remarks=[t]))),
    "red line": lambda t: page(joined=Joined(gate={**joined_pages.gate_tree(), "red_lines": [t]})),
    "rule": lambda t: page(
        joined=Joined(gate={**joined_pages.gate_tree(), "rules": [{**joined_pages.RULE, "name": t, "reason": t}]})
    ),
    "anchors": lambda t: page(joined=Joined(anchors=joined_pages.anchors(verdict="unknown", reason=t, reference=t))),
    "night": lambda t: page(joined=Joined(nightly=joined_pages.nightly(moved=t, steps=[joined_pages.STEP]))),
}


@cache
def harmless_shape(position: str) -> list[str]:
    return shape(POSITIONS[position]("harmless"))


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_text_changes_nothing_of_what_the_page_is_made_of(position: str, hostile: str) -> None:
    text = POSITIONS[position](hostile)
    assert shape(text) == harmless_shape(position)
    assert not {token.type for token in tokens(text)} & {"html_inline", "html_block", "link_open", "image"}
    assert not re.search(r"(?<![\w`])@[A-Za-z0-9]", text)
    assert not re.search(r"https?://|www\.", text)
    assert text.isprintable() or not [c for c in text if not c.isprintable() and c not in f"\n{JOINER}"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("*a* [b] <c> | `d` \\", "*a* [b] <c> | `d` \\", id="marks"),
        pytest.param("ask @you at http://x.yz", "ask @you at http://x.yz", id="mention and address"),
        pytest.param("28 % [16 %, 41 %], n = 40", "28 % [16 %, 41 %], n = 40", id="an interval"),
        pytest.param("line\n\tbreak", "line break", id="one line"),
        pytest.param("x" * 200, "x" * 160 + "…", id="cut"),
    ],
)
def test_an_escaped_text_reads_as_it_is(text: str, shown: str) -> None:
    assert seen(escaped(text)).replace(JOINER, "") == shown


def test_an_interval_stays_readable_as_it_stands() -> None:
    assert escaped("28 % [16 %, 41 %]") == "28 % [16 %, 41 %]"
    assert escaped("[1](x)") == "\\[1\\](x)"


@pytest.mark.parametrize(
    ("text", "is_code"),
    [
        *[("qa-007", True), ("doc.md#3", True), ("问-1", True), ("a/b_c", True)],
        *[("a`b", False), ("a|b", False), ("a b", False), ("@all", False), ("http://x", False), ("www.x.yz", False)],
    ],
)
def test_an_id_is_code_where_code_can_hold_it(text: str, is_code: bool) -> None:
    assert (code(text) == f"`{text}`") is is_code


# --- what it says ----------------------------------------------------------------------------------------------------


@both_languages
def test_the_page_has_the_numbers_with_their_intervals_and_the_cases(lang: str) -> None:
    text = page(lang=lang, joined=joined_pages.everything())
    words = WORDS[lang]
    for heading in (words["numbers"], words["section.judge"], words["where"], words["made"], words["cases"]):
        assert escaped(heading) in text
    assert "| 20/40 = 50 % [35 %, 65 %] |" in text
    assert "`q2`" in text
    assert "<" not in text.replace("&lt;", "")


def test_a_number_that_is_refused_says_why() -> None:
    text = seen(page())
    assert "n/a (no answered case states whether a refusal is expected)" in text


def test_what_the_page_warns_of_stands_above_the_numbers() -> None:
    text = page(judge=judge(embedded=True))
    assert text.index("no better than chance") < text.index("## The numbers")


def test_cases_are_cut_and_counted() -> None:
    cases = [graded(f"q{n}") for n in range(N_CASES_SHOWN + 10)]
    text = page(cases, n_not_passed=500)
    assert f"`q{N_CASES_SHOWN - 1}`" in text
    assert f"`q{N_CASES_SHOWN}`" not in text
    assert f"{500 - N_CASES_SHOWN} more in cases" in text


@pytest.mark.parametrize("text", [pytest.param("@#|<" * 2000, id="marks"), pytest.param("题" * 5000, id="Chinese")])
@both_languages
def test_a_page_of_whatever_texts_stays_below_60_kb(text: str, lang: str) -> None:
    cases = [
        ReportCase(
            CaseRow(id=f"{n}{text}", type=f"{n}{text}", outcome="fail", cause=f"{n}{text}", layer=text, evidence=text),
            Case(f"{n}{text}", text),
            Answer("q", text),
        )
        for n in range(200)
    ]
    made = page(cases, lang, system={f"{n}{text}": text for n in range(200)}, joined=joined_pages.everything())
    assert len(made.encode()) < 60_000
    assert len(made.encode()) <= MOST_BYTES
    assert made.endswith("\n")


def test_the_page_goes_to_stdout_or_to_the_run(tmp_path: Path, two: tuple[Any, Any]) -> None:
    ended = joined_pages.asked(tmp_path, two[1].run_id, "--format", "md", "--out-file", "-", "--lang", "zh")
    assert ended.exit_code == 0
    assert ended.stdout.startswith(f"# RAG 评测报告: `{two[1].run_id}`\n")
    assert not (two[1].path / "report.md").exists()
    ended = joined_pages.asked(tmp_path, two[1].run_id, "--format", "md")
    assert (two[1].path / "report.md").read_text(encoding="utf-8").startswith("# RAG grading report")
    assert ended.stdout.strip() == str(two[1].path / "report.md")


two = joined_pages.two  # the fixture
