"""The page of one run: whole, offline, the same in both languages, and every text of a case on it is only text."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from html.parser import HTMLParser
from importlib import resources
from typing import Any

import pytest

from rag_judge.outcomes import LAYER_OF
from rag_judge.records import Answer, Case, CaseRow, Context
from rag_judge.report import html_glossary, html_words
from rag_judge.report.html import (
    JUDGE_COLUMNS,
    N_CHARACTERS_SHOWN,
    N_CONTEXTS_SHOWN,
    N_LEAKS_SHOWN,
    RANKING_COLUMNS,
    RULE_COLUMNS,
    ReportCase,
    render_report,
)
from rag_judge.report.html_numbers import decimal, percent
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

    def texts_of(self, **wanted: str) -> list[dict[str, str | None]]:
        """The attributes of the elements that carry a class."""
        return [attrs for _, attrs in self.elements if wanted["css"] in (attrs.get("class") or "").split()]


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


# --- the page as a document -----------------------------------------------------------------------------------------


@both_languages
@pytest.mark.parametrize("cases", [pytest.param(FULL, id="cases"), pytest.param([], id="no cases")])
def test_every_element_is_closed_in_turn_and_ids_are_unique(lang: str, cases: list[ReportCase]) -> None:
    page = Page(page_of(cases, lang))
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert page.faults == []
    assert len(set(ids)) == len(ids)


@both_languages
def test_the_page_loads_nothing_and_runs_nothing(lang: str) -> None:
    page = Page(page_of(FULL, lang, made=manifest(judge=judge(embedded=True, fallbacks=["one"]))))
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    ids = {attrs.get("id") for _, attrs in page.elements}
    assert ("meta", {"http-equiv": "Content-Security-Policy", "content": policy}) in page.elements
    assert not page.tags() & {"script", "img", "link", "iframe", "object", "embed", "form", "base", "audio", "video"}
    for tag, attrs in page.elements:
        assert not {"src", "srcset", "action", "background", "data"} & attrs.keys(), tag
        assert not [name for name in attrs if name.startswith("on")], tag
        if "href" in attrs:
            assert (attrs["href"] or "").removeprefix("#") in ids
    assert "url(" not in page.style
    assert "@import" not in page.style


@pytest.mark.parametrize(("lang", "tag"), [("en", "en"), ("zh", "zh-CN")])
def test_the_page_names_its_language(lang: str, tag: str) -> None:
    assert ("html", {"lang": tag}) in Page(page_of(FULL, lang)).elements


def test_an_unknown_language_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="fr"):
        page_of(FULL, "fr")


def test_the_same_input_gives_the_same_page() -> None:
    assert page_of(FULL) == page_of(FULL)


def test_the_templates_travel_in_the_package() -> None:
    folder = resources.files("rag_judge.report") / "templates"
    assert {entry.name for entry in folder.iterdir()} >= {"report.html.j2", "report.css"}


# --- texts are data ----------------------------------------------------------------------------------------------

HOSTILE = [
    pytest.param("'\"><img src=x onerror=alert(1)>", id="breaks out of an attribute"),
    pytest.param("<script>alert(1)</script>", id="script"),
    pytest.param("</style></title></details><svg onload=alert(1)>", id="closes what is open"),
    pytest.param("{{ 7 * 7 }}{% for x in y %}{# z #}${x}%s{0}{w}", id="template"),
    pytest.param("&lt;b&gt; &amp; <!-- ]]>", id="entities and comments"),
]


def _case(text: str, **fields: Any) -> list[ReportCase]:
    return [graded(case=Case("q1", **{"question": "?", "type": "fact", **fields}))] if text else []


def _answer(**fields: Any) -> list[ReportCase]:
    return [graded(answer=Answer("q1", **fields))]


POSITIONS: dict[str, Callable[[str], str]] = {
    "id": lambda t: page_of([graded(t)]),
    "leaked id": lambda t: page_of([graded(t, leak=True, leak_checked=True)]),
    "id of a leak that is not shown": lambda t: page_of([], others=[graded(t, leak=True).row]),
    "question": lambda t: page_of(_case(t, question=t)),
    "type": lambda t: page_of(_case(t, type=t)),
    "relevant document": lambda t: page_of(_case(t, relevant_docs={t: 1.0})),
    "key point": lambda t: page_of(_case(t, must_include=((t, "other"),))),
    "acceptable": lambda t: page_of(_case(t, acceptable=(t,))),
    "must not include": lambda t: page_of(_case(t, must_not_include=(t,))),
    "forbidden document": lambda t: page_of(_case(t, forbidden_docs=(t,))),
    "tenant": lambda t: page_of(_case(t, tenant=t)),
    "reference": lambda t: page_of(_case(t, reference=t)),
    "answer": lambda t: page_of(_answer(answer=t)),
    "error": lambda t: page_of(_answer(error=t)),
    "citation": lambda t: page_of(_answer(answer="a", citations=(t,), contexts=())),
    "context id": lambda t: page_of(_answer(answer="a", contexts=(Context(t, "text"),))),
    "context text": lambda t: page_of(_answer(answer="a", contexts=(Context("d", t),))),
    "context tenant": lambda t: page_of(_answer(answer="a", contexts=(Context("d", "text", tenant=t),))),
    "evidence": lambda t: page_of([graded(evidence=t)]),
    "unknown cause": lambda t: page_of([graded(cause=t, layer=t)]),
    "unscored reason": lambda t: page_of([graded(outcome="unscored", unscored_reason=t)]),
    "further fields": lambda t: page_of([graded(other_fields=t)]),
    "run id": lambda t: page_of([], made=manifest(run_id=t)),
    "status": lambda t: page_of([], made=manifest(status=t)),
    "model": lambda t: page_of([], made=manifest(judge=judge(model=t))),
    "reported model": lambda t: page_of([], made=manifest(judge=judge(models_reported=[t]))),
    "base url": lambda t: page_of([], made=manifest(judge=judge(base_url=t))),
    "fallback": lambda t: page_of([], made=manifest(judge=judge(fallbacks=[t]))),
    "eval set": lambda t: page_of([], made=manifest(eval_set={"path": t, "sha256": t, "n": 1})),
    "prompt name": lambda t: page_of(
        [], made=manifest(prompts=[{"name": t, "mode": "scale", "lang": "en", "version": "ef"}])
    ),
    "factor": lambda t: page_of([], made=manifest(system={t: "value"})),
    "factor's value": lambda t: page_of([], made=manifest(system={"embedding": t})),
    "git commit": lambda t: page_of([], made=manifest(git_commit=t)),
    "parent": lambda t: page_of([], made=manifest(parent=t)),
}


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_text_is_shown_and_stays_a_text(position: str, hostile: str) -> None:
    html = POSITIONS[position](hostile)
    page, harmless = Page(html), Page(POSITIONS[position]("harmless"))
    assert hostile in page.text
    assert page.faults == []
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in harmless.elements]
    assert not [attrs for _, attrs in page.elements for name in attrs if name.startswith("on")]


def test_earlier_turns_and_system_objects_are_escaped_json() -> None:
    turn = {"role": "user", "content": "<b>hi</b>"}
    html = page_of([graded(case=Case("q1", "?", history=(turn,)))], made=manifest(system={"nested": {"<i>": ["<u>"]}}))
    page = Page(html)
    assert '"content": "<b>hi</b>"' in page.text
    assert '{"<i>": ["<u>"]}' in page.text
    assert not page.tags() & {"i", "u"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a\x00b\x07c\x1bd\x7fe\x9bf", "a b c d e f", id="controls"),
        pytest.param("a\u202eb\u2066c", "a b c", id="marks that turn the direction"),
        pytest.param("a\u2028b\x85c\rd", "a b c d", id="line separators"),
        pytest.param("a\ud800b", "a\ufffdb", id="lone surrogate"),
        pytest.param("👩‍🔬 e\u0301 \u200fא", "👩‍🔬 e\u0301 \u200fא", id="joiners and marks are kept"),
    ],
)
@pytest.mark.parametrize("position", ["id", "question", "answer", "context text", "evidence", "model", "factor"])
def test_control_characters_are_shown_as_spaces(position: str, text: str, shown: str) -> None:
    html = POSITIONS[position](text)
    assert shown in Page(html).text
    assert html.encode("utf-8").decode("utf-8") == html


def test_line_breaks_of_an_answer_are_kept() -> None:
    assert "one\n\n\ttwo" in page_of(_answer(answer="one\n\n\ttwo"))


def test_a_long_text_is_cut_and_says_by_how_much() -> None:
    text = text_of(_answer(answer="x" * (N_CHARACTERS_SHOWN + 17)))
    assert "x" * N_CHARACTERS_SHOWN + "… 17 more characters" in text
    assert "x" * (N_CHARACTERS_SHOWN + 1) not in text


# --- numbers -------------------------------------------------------------------------------------------------------


def rows(n: int, **columns: Any) -> list[CaseRow]:
    """Rows that pass, all with the same columns."""
    return [CaseRow(id=f"p{i}", type="fact", outcome="pass", **columns) for i in range(n)]


def test_a_rate_is_shown_as_a_fraction_with_its_interval() -> None:
    # Wilson for 3 of 4: centre (0.75 + 3.8415/8) / (1 + 3.8415/4) = 0.6275, half width 0.3269.
    text = text_of([graded()], others=rows(3, judge_pass=True, drawn=True))
    assert "End to end correct 3/4 = 75 % [30 %, 95 %]" in text


def test_a_mean_is_shown_with_its_n_and_a_hit_rate_as_a_fraction() -> None:
    found = rows(3, hit=True, recall=1.0, mrr=1.0, ndcg=1.0, precision=0.2)
    text = text_of([graded(hit=False, recall=0.0, mrr=0.0, ndcg=0.0, precision=0.2)], others=found)
    assert "Hit@5 3/4 = 0.75 [0.30, 0.95]" in text
    # t with 3 degrees of freedom: 0.75 ± 3.182 * 0.5 / 2, cut to [0, 1].
    assert "Recall@5 0.75 [0.00, 1.00], n = 4" in text
    assert "Precision@5 0.20, n = 4 (no interval: all values are equal)" in text


def test_a_scaled_rate_is_no_fraction_of_its_n() -> None:
    drawn = rows(2, judge_pass=True, drawn=True)
    unanswered = [CaseRow(id=f"e{i}", type="fact", outcome="no_answer") for i in range(2)]
    text = text_of([], others=[*drawn, *rows(4, drawn=False), *unanswered], is_sampled=True)
    # 2 of 2 drawn cases pass, and 6 of 8 cases were answered: 75 %; Wilson's lower end 2/(2 + 3.8415) = 34 %.
    assert "End to end correct 75 % [26 %, 75 %], n = 2" in text
    assert "the judge saw 2 of 6 answered cases, drawn with seed 7" in text
    assert "drawn cases, standing for all answered ones" in text


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        *[(0.0, "0 %"), (1.0, "100 %"), (0.7125, "71 %"), (0.005, "0.5 %"), (0.004, "0.4 %"), (0.996, "99.6 %")],
        *[(0.9996, "99.96 %"), (0.99999999, "> 99.99 %"), (0.00000001, "< 0.01 %")],
    ],
)
def test_rounding_makes_no_exact_0_or_1_of_a_share_that_is_neither(share: float, shown: str) -> None:
    assert percent(share) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0.00"), (1.0, "1.00"), (0.8714, "0.87"), (0.998, "0.998"), (0.0004, "0.0004"), (0.9999999, "> 0.9999")],
)
def test_rounding_makes_no_exact_0_or_1_of_a_value_that_is_neither(value: float, shown: str) -> None:
    assert decimal(value) == shown


def reasons(tree: Any) -> set[str]:
    """Every reason for a null in a summary."""
    if not isinstance(tree, dict):
        return set()
    here = {value for name, value in tree.items() if name.endswith("_reason")}
    return here.union(*(reasons(value) for value in tree.values()))


NOTHING_STATED = CaseRow(id="q1", type=None, outcome="unscored", drawn=True, unscored_reason="unreadable")


@pytest.mark.parametrize("given", [pytest.param([], id="no case"), pytest.param([NOTHING_STATED], id="nothing stated")])
@pytest.mark.parametrize("mode", ["passfail", "scale", "none"])
@both_languages
def test_a_null_number_says_why(given: list[CaseRow], mode: str, lang: str) -> None:
    summary = summarise(given, k=5, seed=0, mode=mode)
    text = Page(render_report(manifest(), summary, [], n_not_passed=0, lang=lang)).text
    not_shown = {"no case of this type has a decided pass"} if mode == "none" else set()
    for reason in reasons(summary) - not_shown:
        assert (html_glossary.SENTENCES_ZH[reason] if lang == "zh" else reason) in text
    assert ("不适用（" if lang == "zh" else "n/a (") in text
    for sign in ("None", "NaN", "nan,", "nan ", "undefined", "inf "):
        assert sign not in text


def test_worst_and_best_stand_beside_the_rates_they_bound() -> None:
    text = text_of([graded(judge_pass=False), graded("q3", "undecided")], others=rows(2, judge_pass=True, drawn=True))
    assert text.count("At worst 50 %, at best 75 %") == 2


def test_the_judges_numbers_are_marked_not_corrected() -> None:
    assert "Pass rate, not corrected" in text_of(FULL)
    assert "评审通过率（未校正）" in text_of(FULL, "zh")


def test_unscored_cases_are_counted_by_reason() -> None:
    cases = [graded(f"q{i}", "unscored", unscored_reason=why) for i, why in enumerate(["truncated"] * 2 + ["refused"])]
    text = text_of(cases)
    assert "judge declined 1 · reply was cut off 2" in text


def test_the_flip_rate_says_what_it_cannot_tell() -> None:
    text = text_of([graded(flipped=True, unstable=True)])
    assert "Flip rate 1/1 = 100 % [21 %, 100 %]" in text  # Wilson for 1 of 1: 1/(1 + 3.8415)
    assert "a server may simply repeat itself" in text


def test_refusals_are_shown_expected_against_done() -> None:
    kinds = [(True, True)] * 5 + [(True, False)] * 4 + [(False, True)] * 3 + [(False, False)] * 2 + [(None, True)]
    others = [
        CaseRow(id=f"r{i}", type="t", outcome="fail", expect_refusal=expected, did_abstain=did)
        for i, (expected, did) in enumerate(kinds)
    ]
    text = text_of([], others=others)
    assert "Refusals right 7/14 = 50 %" in text
    assert "refused answered Should refuse 5 4 Should answer 3 2" in text
    assert "1 more cases do not state whether a refusal is expected; 1 of them were refused" in text


def test_scores_are_shown_with_their_histogram() -> None:
    others = [
        CaseRow(id=f"s{i}", type="t", outcome="not_judged", drawn=True, score=s) for i, s in enumerate((2.0, 4.0, 4.0))
    ]
    text = text_of([], others=others, mode="scale")
    assert "Mean score (1 to 5) 3.33 [" in text
    assert "2: 1 · 4: 2" in text


def test_leaks_are_listed_in_red_and_lead_to_their_case() -> None:
    page = Page(page_of([graded("q2", leak=True, leak_checked=True)], others=rows(3, leak_checked=True)))
    assert "Leaks 1/4" in page.text
    assert len(page.texts_of(css="alarming")) == 2  # the tile and the line
    assert ("a", {"href": "#case-1", "dir": "auto"}) in page.elements


def test_many_leaks_are_cut_and_say_by_how_much() -> None:
    others = [dataclasses.replace(row, leak=True, leak_checked=True) for row in rows(N_LEAKS_SHOWN + 9)]
    assert "9 more in cases.csv" in text_of([], others=others)


def test_unchecked_leaks_and_citations_are_not_zero() -> None:
    text = text_of([graded()])
    assert "Leaks n/a (no answered case names forbidden documents or a tenant)" in text
    assert "Dangling citations n/a (no answer carries citations)" in text


def test_dangling_citations_are_counted_over_all() -> None:
    assert "Dangling citations 1/3" in text_of([graded(n_citations=3, n_dangling_citations=1)])


def test_types_causes_and_layers_are_counted() -> None:
    text = text_of(FULL, others=rows(1))
    assert "fact 5 0/1 = 0 % [0 %, 79 %]" in text  # Wilson for 0 of 1: 3.8415/4.8415
    assert "Key point missing missing_point 1 generation The answer leaves out something it must say." in text
    assert "Leak leak 1 access" in text
    assert "Layer n access 1 generation 1" in text


# --- notes at the head --------------------------------------------------------------------------------------------


@both_languages
@pytest.mark.parametrize("embedded", [True, False])
def test_the_red_banner_stands_exactly_where_the_embedded_model_judged(lang: str, embedded: bool) -> None:
    page = Page(page_of(FULL, lang, made=manifest(judge=judge(embedded=embedded))))
    banners = [attrs for attrs in page.texts_of(css="banner") if "red" in (attrs["class"] or "")]
    assert len(banners) == embedded
    assert (html_words.WORDS[lang]["embedded"] in page.text) == embedded


@both_languages
def test_the_yellow_note_names_what_the_server_did_not_take(lang: str) -> None:
    fallback = "temperature not sent: the server's default was used"
    with_note = Page(page_of(FULL, lang, made=manifest(judge=judge(fallbacks=[fallback]))))
    assert len(with_note.texts_of(css="yellow")) == 1
    assert (html_glossary.SENTENCES_ZH[fallback] if lang == "zh" else fallback) in with_note.text
    assert Page(page_of(FULL, lang)).texts_of(css="yellow") == []


@both_languages
def test_a_run_without_a_judge_says_so_and_shows_no_judge_numbers(lang: str) -> None:
    cases = [graded(drawn=None, rule_correct=False)]
    text = text_of(cases, lang, mode="none", made=manifest(judge=None, prompts=[]))
    assert html_words.WORDS[lang]["no_judge_note"] in text
    assert html_words.WORDS[lang]["section.judge"] not in text


def test_an_incomplete_run_says_so() -> None:
    assert "This run is not complete" in text_of(FULL, made=manifest(status="incomplete"))
    assert "This run is not complete" not in text_of(FULL)


def test_the_head_says_what_was_graded_and_by_whom() -> None:
    text = text_of(FULL)
    head = "Date 2026-03-01 Status complete Eval set questions.jsonl · 4 cases · abababababab Judge judge-model "
    assert head + "Judge prompt passfail (en) efefefefefef" in text


# --- cases -----------------------------------------------------------------------------------------------------


def test_a_case_shows_what_was_asked_expected_retrieved_and_said() -> None:
    case = Case("q1", "Wie lange?", "fact", {"d1": 1.0, "d2": 2.0, "d3": 0.0}, must_include=(("14", "zwei"), ("x",)))
    case = dataclasses.replace(case, expect_refusal=False)
    contexts = (Context("d9", "first", 0.75), Context("d2", "second", None), Context(None, None, float("nan")))
    columns = {"cause": "invented", "layer": "generation", "red_line": True, "rule_correct": False, "n_votes": 2}
    given = graded(case=case, answer=Answer("q1", "Said.", contexts, ("d2", "d7")), **columns)
    page = Page(page_of([given]))
    assert "failed q1 fact red line Invented · generation Wie lange? Question Wie lange?" in page.text
    assert "Relevant documents d1 d2 (2) d3 (0) Key points 14 or zwei x Refusal expected no" in page.text
    assert "d9 score 0.75 first d2 relevant second (no id) (no text)" in page.text
    assert "Citations d2 d7 · points at nothing retrieved" in page.text
    assert "Rules all rules kept no" in page.text
    assert "read 2" in page.text
    assert [attrs["value"] for tag, attrs in page.elements if tag == "li"] == ["1", "2", "3"]


def test_relevance_follows_the_match_level_of_the_run() -> None:
    answer = Answer("q1", "a", (Context("trial#9", "text"),))
    assert Page(page_of([graded(answer=answer)])).texts_of(css="relevant") == []
    assert len(Page(page_of([graded(answer=answer)], made=manifest(match="document"))).texts_of(css="relevant")) == 1


def test_only_the_leaked_contexts_and_citations_are_red() -> None:
    case = Case("q1", "?", tenant="a", forbidden_docs=("secret#*",))
    contexts = (
        Context("d", "t"),
        Context("secret#1", "t"),
        Context("e", "t", tenant="b"),
        Context("f", "t", tenant="a"),
    )
    page = Page(page_of([graded(case=case, answer=Answer("q1", "x", contexts, ("secret#2", "d")), leak=True)]))
    assert [attrs["value"] for attrs in page.texts_of(css="leaked")] == ["2", "3"]
    assert "secret#2 · leaked · points at nothing retrieved d Expected" in page.text


def test_many_contexts_are_cut_but_never_a_relevant_one() -> None:
    contexts = (*(Context(f"d{i}", "t") for i in range(1, 60)), Context("trial#1", "t"))
    page = Page(page_of([graded(answer=Answer("q1", "a", contexts))]))
    ranks = [attrs["value"] for tag, attrs in page.elements if tag == "li"]
    assert ranks == [str(rank) for rank in range(1, N_CONTEXTS_SHOWN + 1)] + ["60"]
    assert f"{59 - N_CONTEXTS_SHOWN} more contexts in answers.jsonl" in page.text


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        pytest.param(Answer("q1", error="HTTP 500"), "No answer: HTTP 500", id="error"),
        pytest.param(Answer("q1"), "(no answer text)", id="no text"),
        pytest.param(Answer("q1", ""), "(empty text)", id="empty text"),
        pytest.param(Answer("q1", "a"), "The answer has no contexts field.", id="no contexts field"),
        pytest.param(Answer("q1", "a", ()), "Nothing was retrieved.", id="nothing retrieved"),
    ],
)
def test_what_an_answer_lacks_is_said(answer: Answer, shown: str) -> None:
    assert shown in text_of([graded(answer=answer)])


def test_every_column_of_a_row_stands_on_the_page_or_is_left_out_on_purpose() -> None:
    elsewhere = {"id", "type", "outcome", "cause", "layer", "evidence", "red_line"}
    not_for_people = {"leak_checked", "question_sha256"}
    shown = RULE_COLUMNS.keys() | RANKING_COLUMNS.keys() | JUDGE_COLUMNS.keys()
    assert shown | elsewhere | not_for_people == {field.name for field in dataclasses.fields(CaseRow)}


@pytest.mark.parametrize(
    ("cases", "n_not_passed", "others", "shown"),
    [
        pytest.param([], 0, [], "The run has no cases.", id="no case"),
        pytest.param([], 0, rows(2), "Every case passed.", id="all passed"),
        pytest.param(FULL, 204, rows(2), "200 more in cases.csv", id="more than are shown"),
        pytest.param([], 3, rows(2), "3 more in cases.csv", id="none of them shown"),
    ],
)
def test_the_page_says_how_many_cases_it_does_not_show(
    cases: list[ReportCase], n_not_passed: int, others: list[CaseRow], shown: str
) -> None:
    assert shown in text_of(cases, others=others, n_not_passed=n_not_passed)


def test_nothing_more_is_promised_when_all_are_shown() -> None:
    assert "more in cases.csv" not in text_of(FULL)


def test_200_chinese_cases_with_ten_contexts_each_are_all_there() -> None:
    contexts = tuple(Context(f"制度#{i}", f"第{i}条:员工每年享有十天年假,须提前两周申请。" * 5, 0.5) for i in range(10))
    cases = [
        graded(
            f"问-{i}",
            case=Case(f"问-{i}", f"第{i}个问题:年假可以折现吗?"),
            answer=Answer(f"问-{i}", "可以。", contexts),
        )
        for i in range(200)
    ]
    page = Page(page_of(cases, "zh"))
    assert len(page.texts_of(css="case")) == 200
    assert page.faults == []
    assert "第199个问题:年假可以折现吗?" in page.text


# --- how the run was made -------------------------------------------------------------------------------------------


def test_the_page_says_how_the_run_was_made() -> None:
    text = text_of(FULL, made=manifest(judge=judge(parameters={"asked": {"temperature": 0}, "sent": [{"seed": 1}]})))
    assert "git commit 0123456789abcdef0123456789abcdef01234567" in text
    assert "k 5 ids matched at level exact repeats 3 seed 7" in text
    assert 'parameters asked {"temperature": 0} parameters sent [{"seed": 1}]' in text
    assert "calls 8 answered from cache 0 sent again 1" in text
    assert "saved by stopping early 4 prompt tokens 4210 completion tokens 133" in text
    assert "System under test embedding bge-m3 chunk_size 400" in text
    assert "95 %, for questions like these wilson" in text


@pytest.mark.parametrize(
    ("usd", "shown"), [(None, "price not set"), (0.0, "US dollars 0"), (1.2345, "US dollars 1.234")]
)
def test_a_missing_price_is_not_a_zero(usd: float | None, shown: str) -> None:
    assert shown in text_of(FULL, made=manifest(cost={"calls": 8, "usd": usd}))


@both_languages
def test_a_manifest_that_holds_little_still_gives_a_page(lang: str) -> None:
    page = Page(page_of(FULL, lang, made={"run_id": "r"}))
    assert html_words.WORDS[lang]["not_recorded"] in page.text
    assert html_words.WORDS[lang]["factors_unknown"] in page.text
    assert page.faults == []


# --- wording ------------------------------------------------------------------------------------------------------

TABLES = {
    name: table
    for module in (html_words, html_glossary)
    for name, table in vars(module).items()
    if name.isupper() and name != "SENTENCES_ZH"
}


@pytest.mark.parametrize("table", TABLES)
def test_both_languages_have_the_same_words(table: str) -> None:
    assert TABLES[table].keys() == {"en", "zh"}
    assert TABLES[table]["en"].keys() == TABLES[table]["zh"].keys()


@both_languages
def test_every_cause_and_layer_has_its_wording(lang: str) -> None:
    assert html_glossary.CAUSES[lang].keys() == LAYER_OF.keys()
    assert html_words.LAYERS[lang].keys() == set(LAYER_OF.values())
    for parts in html_glossary.CAUSES[lang].values():
        assert all(parts)
