"""The page of one run: whole, offline, the same in both languages, and every text of a case on it is only text."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from importlib import resources
from typing import Any

import pytest

from rag_judge.records import Answer, Case, CaseRow, Context
from rag_judge.report import html_words, sentences
from rag_judge.report.hints import hints_of
from rag_judge.report.html import (
    JUDGE_COLUMNS,
    N_CHARACTERS_SHOWN,
    N_CONTEXTS_SHOWN,
    RANKING_COLUMNS,
    RULE_COLUMNS,
    ReportCase,
)
from tests.report_pages import FULL, Page, both_languages, graded, judge, manifest, page_of, rows, text_of

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
    assert "Earlier turns user: <b>hi</b>" in page.text
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


# --- notes at the head --------------------------------------------------------------------------------------------


@both_languages
@pytest.mark.parametrize("embedded", [True, False])
def test_the_red_banner_stands_exactly_where_the_embedded_model_judged(lang: str, embedded: bool) -> None:
    page = Page(page_of(FULL, lang, made=manifest(judge=judge(embedded=embedded))))
    banners = [attrs for attrs in page.of_class("banner") if "red" in (attrs["class"] or "")]
    assert len(banners) == embedded
    assert (html_words.WORDS[lang]["embedded"] in page.text) == embedded


@both_languages
def test_the_yellow_note_names_what_the_server_did_not_take(lang: str) -> None:
    fallback = "temperature not sent: the server's default was used"
    with_note = Page(page_of(FULL, lang, made=manifest(judge=judge(fallbacks=[fallback]))))
    assert len(with_note.of_class("yellow")) == 1
    assert (sentences.SENTENCES_ZH[fallback] if lang == "zh" else fallback) in with_note.text
    assert Page(page_of(FULL, lang)).of_class("yellow") == []


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
    contexts = (Context("d9", "first", 0.75), Context("d2", "second", None), Context("d4", None, float("nan")))
    columns: dict[str, Any] = {"cause": "invented", "layer": "generation", "red_line": True, "rule_correct": False}
    given = graded(case=case, answer=Answer("q1", "Said.", contexts, ("d2", "d7")), n_votes=2, **columns)
    page = Page(page_of([given]))
    assert "failed q1 fact red line Invented · generation Wie lange? Question Wie lange?" in page.text
    assert "Relevant documents d1 d2 (2) d3 (0) Key points 14 or zwei x Refusal expected no" in page.text
    assert "d9 score 0.75 first d2 relevant second d4 (no text)" in page.text
    assert "Citations d2 d7 · points at nothing retrieved" in page.text
    assert "Rules all rules kept no" in page.text
    assert "read 2" in page.text
    assert [attrs["value"] for tag, attrs in page.elements if tag == "li" and "value" in attrs] == ["1", "2", "3"]


def test_relevance_follows_the_match_level_of_the_run() -> None:
    answer = Answer("q1", "a", (Context("trial#9", "text"),))
    assert Page(page_of([graded(answer=answer)])).of_class("relevant") == []
    assert len(Page(page_of([graded(answer=answer)], made=manifest(match="document"))).of_class("relevant")) == 1


def test_only_the_leaked_contexts_and_citations_are_red() -> None:
    case = Case("q1", "?", tenant="a", forbidden_docs=("secret#*",))
    contexts = (
        Context("d", "t"),
        Context("secret#1", "t"),
        Context("e", "t", tenant="b"),
        Context("f", "t", tenant="a"),
    )
    page = Page(page_of([graded(case=case, answer=Answer("q1", "x", contexts, ("secret#2", "d")), leak=True)]))
    assert [attrs["value"] for attrs in page.of_class("leaked")] == ["2", "3"]
    assert "secret#2 · leaked · points at nothing retrieved d Hints" in page.text


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
    elsewhere = {"id", "type", "outcome", "cause", "layer", "evidence", "red_line", "answer_no"}
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
    assert len(page.of_class("case")) == 200
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


@both_languages
def test_hints_name_what_a_reader_should_look_at_and_are_no_verdict(lang: str) -> None:
    case = Case("q1", "How long?", must_include=(("14 days",),))
    contexts = (Context("d", "The trial lasts at least 14 days."), Context("e", "Refunds take a week."))
    said = "The trial lasts 14 days. It costs 30 EUR. Whales sing beautifully underwater."
    page = Page(page_of([graded(case=case, answer=Answer("q1", said, contexts))], lang=lang))
    hints = hints_of(case, Answer("q1", said, contexts), lang)
    assert all(hint in page.text for hint in hints)
    assert [("30 EUR" in hint, "at least" in hint, "Whales" in hint) for hint in hints] == [
        (True, False, False),
        (False, True, False),
        (True, False, False),
        (False, False, True),
    ]
    assert html_words.WORDS[lang]["hints"] in page.text
    assert ("no verdict" if lang == "en" else "不是结论") in page.text


def test_there_are_no_hints_without_texts_and_no_more_than_a_dozen() -> None:
    case = Case("q1", "?")
    assert hints_of(case, Answer("q1", "30 EUR.", None), "en") == []
    assert hints_of(case, Answer("q1", "30 EUR.", (Context("d", None),)), "en") == []
    assert hints_of(case, Answer("q1", "x" * 30_000, (Context("d", "y"),)), "en") == []
    many = " ".join(f"Whale number {n} sings." for n in range(40))
    assert hints_of(case, Answer("q1", many, (Context("d", "Nothing of it."),)), "en")[-1].startswith("and ")
