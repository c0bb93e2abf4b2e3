"""Pages for the tests of the report: runs made by hand, rendered, and taken apart again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from typing import Any

import pytest

from rag_judge.records import Answer, Case, CaseRow, Context
from rag_judge.report.html import ReportCase, render_report
from rag_judge.summary import summarise

VOID = frozenset({"meta", "br", "hr", "img", "input", "link", "base", "embed", "source", "area", "col", "track", "wbr"})
BLOCKS = frozenset({"div", "p", "dt", "dd", "td", "th", "li", "h1", "h2", "h3", "h4"})
both_languages = pytest.mark.parametrize("lang", ["en", "zh"])


class Page(HTMLParser):
    """A page taken apart: its elements with their attributes, its text, and whether every element is closed in turn."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.parts: list[str] = []
        self.style = ""
        self.open: list[str] = []
        self.faults: list[str] = []
        self.feed(html)
        self.close()
        self.faults += [f"<{tag}> is never closed" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if len(dict(attrs)) < len(attrs):
            self.faults.append(f"<{tag}> has an attribute twice")
        if tag not in VOID:
            self.open.append(tag)
        if tag in BLOCKS:
            self.parts.append(" ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes another element")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.style += data
        else:
            self.parts.append(data)

    @property
    def text(self) -> str:
        """The text without the style sheet, white space between words made one space."""
        return " ".join("".join(self.parts).split())

    def tags(self) -> set[str]:
        """The names of all elements."""
        return {tag for tag, _ in self.elements}

    def of_class(self, name: str) -> list[dict[str, str | None]]:
        """The attributes of the elements that carry a class."""
        return [attrs for _, attrs in self.elements if name in (attrs.get("class") or "").split()]


def manifest(**changes: Any) -> dict[str, Any]:
    return {
        "format_version": 1,
        "run_id": "2026-03-01-baseline",
        "name": "baseline",
        "parent": None,
        "status": "complete",
        "started_at": "2026-03-01T02:00:00+00:00",
        "finished_at": "2026-03-01T02:05:00+00:00",
        "k": 5,
        "match": "exact",
        "seed": 7,
        "repeats": 3,
        "package_version": "0.1.0",
        "git_commit": "0123456789abcdef0123456789abcdef01234567",
        "eval_set": {"path": "eval/questions.jsonl", "sha256": "ab" * 32, "n": 4},
        "answers": {"source": "answers.jsonl", "sha256": "cd" * 32},
        "system": {"embedding": "bge-m3", "chunk_size": 400},
        "prompts": [{"name": "passfail", "mode": "passfail", "lang": "en", "version": "ef" * 32}],
        "judge": judge(),
        "cost": {"calls": 8, "cached": 0, "resent": 1, "reasked": 0, "not_needed": 4, "prompt_tokens": 4210}
        | {"completion_tokens": 133, "calls_without_usage": 0, "usd": None},
        **changes,
    }


def judge(**changes: Any) -> dict[str, Any]:
    return {
        "base_url": "https://judge.example/v1",
        "model": "judge-model",
        "models_reported": ["judge-model-05"],
        "parameters": {"asked": {"temperature": 0}, "sent": [{"temperature": 0}]},
        "fallbacks": [],
        "embedded": False,
        "model_sha256": None,
        **changes,
    }


def graded(
    case_id: str = "q1",
    outcome: Any = "fail",
    *,
    case: Case | None = None,
    answer: Answer | None = None,
    **columns: Any,
) -> ReportCase:
    """One case with a row of which only the named columns are filled."""
    case = case or Case(case_id, "How long is the trial?", "fact", {"trial#1": 1.0}, must_include=(("14 days",),))
    row = CaseRow(id=case_id, type=case.type, outcome=outcome, **{"drawn": True, **columns})
    context = Context("trial#1", "Every trial runs for 14 days.", 0.9)
    return ReportCase(row, case, answer or Answer(case_id, "It lasts a month.", (context,), ("trial#1",)))


def page_of(
    cases: Sequence[ReportCase],
    lang: str = "en",
    *,
    others: Sequence[CaseRow] = (),
    mode: str = "passfail",
    is_sampled: bool = False,
    made: Mapping[str, Any] | None = None,
    n_not_passed: int | None = None,
) -> str:
    """The page of a run with these cases shown; `others` count in the summary only."""
    rows = [*(given.row for given in cases), *others]
    summary = summarise(rows, k=5, seed=7, mode=mode, is_sampled=is_sampled)
    n = len(cases) if n_not_passed is None else n_not_passed
    return render_report(manifest() if made is None else made, summary, cases, n_not_passed=n, lang=lang)


def text_of(*args: Any, **named: Any) -> str:
    return Page(page_of(*args, **named)).text


FULL = [
    graded("q1", cause="missing_point", layer="generation", evidence="not in the answer: 14 days", rule_correct=False),
    graded(
        "q2",
        cause="leak",
        layer="access",
        leak=True,
        leak_checked=True,
        hit=True,
        recall=1.0,
        mrr=1.0,
        ndcg=1.0,
        precision=0.2,
    ),
    graded("q3", "unscored", unscored_reason="truncated", n_votes=0, n_planned=3, n_asked=3),
    graded("q4", "no_answer", answer=Answer("q4", error="HTTP 500"), drawn=None),
]


def rows(n: int, **columns: Any) -> list[CaseRow]:
    """Rows that pass, all with the same columns."""
    return [CaseRow(id=f"p{i}", type="fact", outcome="pass", **columns) for i in range(n)]
