"""Manifest, summary and the cases that did not pass → `report.html`, one page that opens offline. Nothing is computed.

What was made of the run since it ended is joined to it: decision, comparison, the state of its judge, labels, a trend.

Every text of a case, an answer or a model is data: escaped by the template engine, never a template, with control
characters shown as spaces. The page holds no script and names nothing outside itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rag_judge.attribution import LAYER_OF
from rag_judge.cases import turn_text
from rag_judge.records import Answer, Case, CaseRow, Context
from rag_judge.report.hints import hints_of
from rag_judge.report.html_facts import about, facts, value_text
from rag_judge.report.html_numbers import (
    HEADLINES,
    Section,
    estimate_text,
    intervals,
    percent,
    sections,
    sentence,
)
from rag_judge.report.html_terms import CAUSES, COLUMNS
from rag_judge.report.html_words import LAYERS, OUTCOMES, UNSCORED, WORDS
from rag_judge.report.joined import Joined, Part, gate_part, judge_part
from rag_judge.report.joined_comparison import comparison_part
from rag_judge.report.joined_people import people
from rag_judge.report.joined_words import JOINED_WORDS
from rag_judge.retrieval import MatchLevel, at_level
from rag_judge.rules import dangling_citations, leaked_ids

if TYPE_CHECKING:
    from jinja2 import Template

Tree = Mapping[str, Any]

# A page of 200 cases must stay readable on a phone, whatever the texts; the run's files hold them whole.
N_CHARACTERS_SHOWN, N_CONTEXTS_SHOWN, N_LEAKS_SHOWN = 4_000, 30, 50
NOTHING_JOINED = Joined()
CORRECTED = "people.corrected"  # the first headline, where a run is labelled
# The columns of a case's row by who filled them, each with the value of it that is shown as bad.
RULE_COLUMNS: Mapping[str, bool | None] = {
    "rule_correct": False,
    "must_include_ok": False,
    "acceptable_ok": False,
    "must_not_include_ok": False,
    "faithful": False,
    "lexical_support": None,
    "expect_refusal": None,
    "did_abstain": None,  # bad where it is not what was expected
    "refused_then_answered": True,
    "refusal_conflict": True,
    "leak": True,
    "n_citations": None,
    "n_dangling_citations": None,
    "confidence": None,
    "probe": None,
    "n_unsupported_figures": None,
    "suspicious": None,
}
RANKING_COLUMNS: Mapping[str, bool | None] = {
    "hit": False,
    **dict.fromkeys(("recall", "mrr", "ndcg", "precision", "first_relevant_rank", "n_contexts", "n_duplicates")),
}
JUDGE_COLUMNS: Mapping[str, bool | None] = {
    **dict.fromkeys(("judge_pass", "grounded", "complete"), False),
    "judges_disagree": True,
    **dict.fromkeys(("should_abstain", "score", "other_fields", "unscored_reason", "drawn")),
    **dict.fromkeys(("n_planned", "n_asked", "n_votes", "undecided", "flipped", "unstable", "alike", "judges")),
}
# Controls but tab and line feed, line separators, and the marks that turn the direction of what follows them.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ReportCase:
    """One case as the page shows it: its row, and the texts it was graded on."""

    row: CaseRow
    case: Case
    answer: Answer


@dataclass(frozen=True, slots=True)
class Cell:
    """One column of a case's row, named and spelled out."""

    label: str
    value: str
    is_bad: bool


@dataclass(frozen=True, slots=True)
class ShownContext:
    """One context at its place in the order returned, with what is known of its id."""

    rank: int
    context: Context
    score: str | None
    is_relevant: bool
    is_leaked: bool


@dataclass(frozen=True, slots=True)
class ShownCase:
    """Everything the page says of one case."""

    given: ReportCase
    outcome: str
    cause: str | None
    layer: str | None
    expected: Sequence[tuple[str, Sequence[str]]]
    contexts: Sequence[ShownContext]
    n_contexts_left: int
    citations: Sequence[tuple[str, bool, bool]]  # id, leaked, dangling
    groups: Sequence[tuple[str, Sequence[Cell]]]
    evidence: str | None
    hints: Sequence[str]


def render_report(
    manifest: Mapping[str, Any],
    summary: Mapping[str, Any],
    cases: Sequence[ReportCase],
    *,
    n_not_passed: int,
    lang: str,
    joined: Joined = NOTHING_JOINED,
) -> str:
    """The page as HTML, with what was made of the run since it ended.

    `cases` are those shown of the `n_not_passed` that did not pass, in the order of the page. The text holds no lone
    surrogate and can be written as UTF-8. Raises KeyError for a language without wording.
    """
    shown_sections = joined_sections(summary, joined, lang)
    by_name = {metric.name: metric for section in shown_sections for metric in section.metrics}
    first, others = parts_of(summary, joined, lang)
    return page_of(
        "report.html.j2",
        manifest,
        WORDS[lang],
        lang,
        about=about(manifest, summary, lang),
        is_judged=summary["judge"]["mode"] != "none",
        first_parts=first,
        other_parts=others,
        trend=(JOINED_WORDS[lang]["trend"], joined.trend_html or ""),
        sheets=["report.css", "joined.css"] if first or others or joined.trend_html else ["report.css"],
        headlines=[by_name[name] for name in (CORRECTED, *HEADLINES) if name in by_name],
        sections=shown_sections,
        levels=", ".join(dict.fromkeys(percent(level) for level, _, _ in intervals(summary))),
        abstention=summary["abstention"],
        **tables(summary, lang),
        cases=[_shown(given, manifest.get("match", "exact"), lang) for given in cases],
        anchors={given.row.id: f"case-{i}" for i, given in enumerate(cases, 1)},
        n_cases=summary["n_cases"],
        n_more=n_not_passed - len(cases),
        n_not_passed=n_not_passed,
        facts=facts(manifest, summary, lang),
    )


def joined_sections(summary: Tree, joined: Joined, lang: str) -> list[Section]:
    """Every number of a run in the order of a report; what people's labels say first, where there are any."""
    labelled = None if joined.bias is None else people(joined.bias, summary, lang)
    return [*([] if labelled is None else [labelled]), *sections(summary, lang)]


def parts_of(summary: Tree, joined: Joined, lang: str) -> tuple[list[Part], list[Part]]:
    """What is joined before the numbers of a run, and after them."""
    first = [] if joined.gate is None else [gate_part(joined.gate, lang)]
    others = []
    if joined.comparison is not None:
        others.append(comparison_part(joined.comparison, summary["retrieval"]["k"], lang))
    if joined.anchors is not None or joined.nightly is not None:
        others.append(judge_part(joined.anchors, joined.nightly, lang))
    return first, others


def page_of(template: str, manifest: Tree, words: Mapping[str, str], lang: str, **values: Any) -> str:
    """A page of ours as HTML without lone surrogates: its values, its words, and what every page says of its run."""
    judge = manifest.get("judge") or {}
    page = _template(template).render(
        w=words,
        say=lambda key, **named: words[key].format_map(named),
        run_id=value_text(manifest.get("run_id"), lang),
        is_complete=manifest.get("status") == "complete",
        is_embedded=bool(judge.get("embedded")),
        same_family=manifest.get("same_family") or (),
        fallbacks=[sentence(text, lang) for text in judge.get("fallbacks", ())],
        version=manifest.get("package_version") or "",
        n_leaks_shown=N_LEAKS_SHOWN,
        **values,
    )
    return _SURROGATES.sub("\ufffd", page)


@lru_cache
def _template(name: str) -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("rag_judge.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cut"] = lambda text: text[:N_CHARACTERS_SHOWN]
    environment.filters["n_left"] = lambda text: max(0, len(text) - N_CHARACTERS_SHOWN)
    environment.filters["turn_text"] = turn_text
    return environment.get_template(name)


def _printable(value: Any) -> Any:
    """What an expression of the template puts on the page: text without control characters; markup of ours as it is."""
    is_plain_text = isinstance(value, str) and not hasattr(value, "__html__")
    return _CONTROLS.sub(" ", value) if is_plain_text else value


# --- where it goes wrong ------------------------------------------------------------------------------------------


def tables(summary: Tree, lang: str) -> dict[str, Any]:
    """The tables by type, cause and layer, as the template names them."""
    causes, layers = _most(summary, "causes"), _most(summary, "layers")
    return {
        "types": _types(summary, lang),
        "causes": [(name, n, CAUSES[lang].get(name), _layer(LAYER_OF.get(name), lang)) for name, n in causes],
        "layers": [(_layer(name, lang), n) for name, n in layers],
    }


def _types(summary: Tree, lang: str) -> list[tuple[str, int, Sequence[str]]]:
    untyped = WORDS[lang]["untyped"]
    columns = ("rules", "judge", "end_to_end") if summary["judge"]["mode"] != "none" else ("rules", "end_to_end")
    return [
        (untyped if name == "untyped" else name, entry["n"], [estimate_text(entry, column, lang) for column in columns])
        for name, entry in summary["by_type"].items()
    ]


def _most(summary: Tree, name: str) -> list[tuple[str, int]]:
    """The counted names, the most frequent first."""
    return sorted(summary[name].items(), key=lambda entry: (-entry[1], entry[0]))


def _layer(name: str | None, lang: str) -> str | None:
    return None if name is None else LAYERS[lang].get(name, name)


# --- one case -----------------------------------------------------------------------------------------------------


def _shown(given: ReportCase, match: str, lang: str) -> ShownCase:
    row, answer = given.row, given.answer
    cause = None if row.cause is None else CAUSES[lang].get(row.cause, (row.cause, "", ""))[0]
    contexts, n_contexts_left = shown_contexts(given.case, answer, match, has_leak=bool(row.leak))
    groups = [("rules", RULE_COLUMNS), ("section.retrieval", RANKING_COLUMNS), ("judge_says", JUDGE_COLUMNS)]
    cells = [(WORDS[lang][heading], _cells(row, columns, lang)) for heading, columns in groups]
    dangling = dangling_citations(answer)
    return ShownCase(
        given=given,
        outcome=OUTCOMES[lang].get(row.outcome, row.outcome),
        cause=cause,
        layer=_layer(row.layer, lang),
        expected=expected(given.case, lang),
        contexts=contexts,
        n_contexts_left=n_contexts_left,
        citations=[
            (doc, bool(row.leak) and _is_leaked(given.case, answer, (), (doc,)), doc in dangling)
            for doc in answer.citations or ()
        ],
        groups=[(heading, found) for heading, found in cells if found],
        evidence=row.evidence,
        hints=hints_of(given.case, answer, lang),
    )


def expected(case: Case, lang: str) -> list[tuple[str, Sequence[str]]]:
    """What the case states of a right answer: (field, values)."""
    words = WORDS[lang]
    graded = [doc if grade == 1 else f"{doc} ({grade:g})" for doc, grade in case.relevant_docs.items()]
    refusal = () if case.expect_refusal is None else (words["yes" if case.expect_refusal else "no"],)
    fields: list[tuple[str, Sequence[str]]] = [
        ("relevant_docs", graded),
        ("must_include", [words["or"].join(alternatives) for alternatives in case.must_include]),
        ("acceptable", case.acceptable),
        ("must_not_include", case.must_not_include),
        ("refusal", refusal),
        ("forbidden_docs", case.forbidden_docs),
        ("tenant", () if case.tenant is None else (case.tenant,)),
        ("reference", () if case.reference is None else (case.reference,)),
    ]
    return [(words[name], values) for name, values in fields if values]


def shown_contexts(case: Case, answer: Answer, match: str, *, has_leak: bool) -> tuple[list[ShownContext], int]:
    """The contexts to show, and the number of those left out; leaked ones are marked where the rules found a leak."""
    level: MatchLevel = "document" if match == "document" else "exact"
    relevant = {at_level(doc, level) for doc, grade in case.relevant_docs.items() if grade > 0}
    contexts = [
        ShownContext(
            rank=rank,
            context=context,
            score=None if context.score is None or not math.isfinite(context.score) else f"{context.score:.4g}",
            is_relevant=context.id is not None and at_level(context.id, level) in relevant,
            is_leaked=has_leak and _is_leaked(case, answer, (context,), ()),
        )
        for rank, context in enumerate(answer.contexts or (), 1)
    ]
    shown = [c for c in contexts if c.rank <= N_CONTEXTS_SHOWN or c.is_relevant or c.is_leaked]
    return shown, len(contexts) - len(shown)


def _is_leaked(case: Case, answer: Answer, contexts: tuple[Context, ...], citations: tuple[str, ...]) -> bool:
    """Whether these of the answer's contexts or citations are what the rules call a leak."""
    return bool(leaked_ids(case, replace(answer, contexts=contexts, citations=citations)))


def _cells(row: CaseRow, columns: Mapping[str, bool | None], lang: str) -> list[Cell]:
    """The columns of a row that apply to it."""
    cells = []
    for column, bad in columns.items():
        value = getattr(row, column)
        if value is None:
            continue
        is_bad = value is bad
        if column == "did_abstain" and row.expect_refusal is not None:
            is_bad = value != row.expect_refusal
        text = UNSCORED[lang].get(value, value) if column == "unscored_reason" else value_text(value, lang)
        cells.append(Cell(COLUMNS[lang][column], text, is_bad))
    return cells
