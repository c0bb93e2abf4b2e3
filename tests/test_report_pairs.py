"""The page of a comparison: numbers worked by hand, whole and offline, and every text of a pair on it is only text."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from rag_judge.pairs import summarise_pairs
from rag_judge.records import Answer, Case, Context, PairRow
from rag_judge.report import html_words, pairs_words, sentences
from rag_judge.report.html import N_CHARACTERS_SHOWN, N_CONTEXTS_SHOWN
from rag_judge.report.pairs_html import OUTCOMES_IN_ORDER, ReportPair, place_on_page, render_pairs_report
from rag_judge.report.pairs_words import PAGE_WORDS
from tests.report_pages import Page, both_languages, judge, manifest

ORDERS: Mapping[str, tuple[str | None, str | None]] = {
    "a": ("a", "a"),
    "b": ("b", "b"),
    "tie": ("tie", "tie"),
    "inconsistent": ("a", "b"),
    "undecided": ("a", None),
    "unscored": (None, None),
}


def row(name: str, outcome: Any = "a", **columns: Any) -> PairRow:
    order_ab, order_ba = ORDERS[outcome]
    reason = "unreadable" if outcome == "unscored" else None
    told = {"order_ab": order_ab, "order_ba": order_ba, "type": "fact", "unscored_reason": reason, "n_planned": 1}
    return PairRow(id=name, outcome=outcome, **{**told, **columns})


def pair(
    name: str = "q1",
    outcome: Any = "a",
    *,
    case: Case | None = None,
    a: Answer | None = None,
    b: Answer | None = None,
    **columns: Any,
) -> ReportPair:
    case = case or Case(name, "How long is the trial?", "fact", {"trial#1": 1.0}, must_include=(("14 days",),))
    context = Context("trial#1", "Every trial runs for 14 days.", 0.9)
    first = a or Answer(name, "It runs for 14 days.", (context,))
    second = b or Answer(name, "It lasts a month.", (Context("other#1", "Prices."),))
    return ReportPair(row(case.id, outcome, **{"type": case.type, **columns}), case, first, second)


def side(version: str, **changes: Any) -> dict[str, Any]:
    return {
        "run_id": f"2026-03-01-{version}",
        "name": version,
        "answers": {"source": f"{version}.jsonl", "sha256": "cd" * 32},
        "eval_set": {"path": "eval/questions.jsonl", "sha256": "ab" * 32, "n": 4},
        "system": {"embedding": "bge-m3", "chunk_size": 400},
        **changes,
    }


def compared(a: Mapping[str, Any] | None = None, b: Mapping[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    sides = {"a": side("v1", **(a or {})), "b": side("v2", **(b or {}))}
    made = {"kind": "pairwise", "run_id": "2026-03-02-v1-vs-v2", "pair": sides, "system": {}}
    return manifest(**{**made, **changes})


def summary_of(rows: Sequence[PairRow], **changes: Any) -> dict[str, Any]:
    numbers = summarise_pairs(rows, 7)
    return {
        "n_cases": len(rows),
        "n_answered": len(rows),
        "n_errors": 0,
        "no_answer": {"a": 0, "b": 0},
        "n_without_contexts": 0,
        "judge": {"drawn": len(rows), "unscored": numbers["unscored_reasons"], "sampled": None},
        "pairwise": numbers,
        **changes,
    }


def html_of(
    pairs: Sequence[ReportPair],
    lang: str = "en",
    *,
    others: Sequence[PairRow] = (),
    made: Mapping[str, Any] | None = None,
    **changes: Any,
) -> str:
    """The page of a comparison with these pairs shown; `others` count in the summary only."""
    summary = summary_of([*(given.row for given in pairs), *others], **changes)
    return render_pairs_report(compared() if made is None else made, summary, pairs, lang=lang)


def text_of(*args: Any, **named: Any) -> str:
    return Page(html_of(*args, **named)).text


FULL = [pair(f"q-{outcome}", outcome) for outcome in ("unscored", "undecided", "inconsistent", "b", "tie", "a")]

# 17 pairs, 15 of them with both orders decided.
WORKED = [
    *(row(f"a{i}", "a", n_characters_a=30, n_characters_b=20) for i in range(4)),
    row("a4", "a", n_characters_a=20, n_characters_b=20, flipped_ab=True, flipped_ba=False),
    row("b0", "b", n_characters_a=20, n_characters_b=30, flipped_ab=False, flipped_ba=False),
    row("b1", "b", n_characters_a=20, n_characters_b=10, type="policy"),
    row("t", "tie"),
    *(row(f"i{i}", "inconsistent") for i in range(3)),
    row("i3", "inconsistent", order_ab="b", order_ba="a"),
    row("i4", "inconsistent", order_ab="a", order_ba="tie"),
    row("i5", "inconsistent", order_ab="tie", order_ba="b"),
    row("i6", "inconsistent", order_ab="b", order_ba="tie"),
    row("u", "undecided", type=None),
    row("x", "unscored", type=None),
]

# --- the page as a document -----------------------------------------------------------------------------------------


@both_languages
@pytest.mark.parametrize("pairs", [pytest.param(FULL, id="pairs"), pytest.param([], id="no pairs")])
def test_every_element_is_closed_in_turn_and_ids_are_unique(lang: str, pairs: list[ReportPair]) -> None:
    page = Page(html_of(pairs, lang))
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert page.faults == []
    assert len(set(ids)) == len(ids)


@both_languages
def test_the_page_loads_nothing_and_runs_nothing(lang: str) -> None:
    page = Page(html_of(FULL, lang, made=compared(judge=judge(embedded=True, fallbacks=["one"]))))
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
    assert "prefers-color-scheme: dark" in page.style


def test_the_same_input_gives_the_same_page_whatever_the_order_of_kinds() -> None:
    assert html_of(FULL) == html_of(FULL[::-1])


def test_an_unknown_language_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="fr"):
        html_of(FULL, "fr")


# --- texts are data ----------------------------------------------------------------------------------------------

HOSTILE = [
    pytest.param("'\"><img src=x onerror=alert(1)>", id="breaks out of an attribute"),
    pytest.param("</script><script>alert(1)</script>", id="script"),
    pytest.param("</style></title></details><svg onload=alert(1)>", id="closes what is open"),
    pytest.param("{{7*7}}{% for x in y %}{# z #}${x}%s{0}{w}", id="template"),
    pytest.param("&lt;b&gt; &amp; <!-- ]]>", id="entities and comments"),
]


def _answer(**fields: Any) -> str:
    return html_of([pair(b=Answer("q1", **fields))])


POSITIONS: dict[str, Callable[[str], str]] = {
    "id": lambda t: html_of([pair(t)]),
    "question": lambda t: html_of([pair(case=Case("q1", t))]),
    "type": lambda t: html_of([pair(case=Case("q1", "?", t))]),
    "type of a pair that is not shown": lambda t: html_of([], others=[row("q1", type=t)]),
    "key point": lambda t: html_of([pair(case=Case("q1", "?", must_include=((t, "other"),)))]),
    "reference": lambda t: html_of([pair(case=Case("q1", "?", reference=t))]),
    "answer a": lambda t: html_of([pair(a=Answer("q1", t))]),
    "answer b": lambda t: html_of([pair(b=Answer("q1", t))]),
    "error": lambda t: _answer(error=t),
    "context id": lambda t: _answer(answer="a", contexts=(Context(t, "text"),)),
    "context text": lambda t: _answer(answer="a", contexts=(Context("d", t),)),
    "context tenant": lambda t: _answer(answer="a", contexts=(Context("d", "text", tenant=t),)),
    "reason ab": lambda t: html_of([pair(reason_ab=t)]),
    "reason ba": lambda t: html_of([pair(reason_ba=t)]),
    "run id": lambda t: html_of([], made=compared(run_id=t)),
    "run id of a": lambda t: html_of([], made=compared({"run_id": t})),
    "name of b": lambda t: html_of([], made=compared(b={"name": t})),
    "answers of b": lambda t: html_of([], made=compared(b={"answers": {"source": t, "sha256": "x"}})),
    "factor": lambda t: html_of([], made=compared({"system": {t: "value"}})),
    "factor's value": lambda t: html_of([], made=compared({"system": {"embedding": t}})),
    "model": lambda t: html_of([], made=compared(judge=judge(model=t))),
    "fallback": lambda t: html_of([], made=compared(judge=judge(fallbacks=[t]))),
}


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_text_is_shown_and_stays_a_text(position: str, hostile: str) -> None:
    page, harmless = Page(POSITIONS[position](hostile)), Page(POSITIONS[position]("harmless"))
    assert hostile in page.text
    assert page.faults == []
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in harmless.elements]
    assert not [attrs for _, attrs in page.elements for name in attrs if name.startswith("on")]


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
@pytest.mark.parametrize("position", POSITIONS)
def test_control_characters_are_shown_as_spaces(position: str, text: str, shown: str) -> None:
    html = POSITIONS[position](text)
    assert shown in Page(html).text
    assert html.encode("utf-8").decode("utf-8") == html


@pytest.mark.parametrize("position", ["answer a", "answer b", "context text", "reason ab", "reference", "error"])
def test_a_text_of_100_kb_is_cut_and_says_by_how_much(position: str) -> None:
    text = Page(POSITIONS[position]("§" * 100_000)).text
    n_shown = text.count("§")
    assert N_CHARACTERS_SHOWN - len("No answer: ") <= n_shown <= N_CHARACTERS_SHOWN
    assert f"§… {100_000 - n_shown} more characters" in text


# --- what is compared ---------------------------------------------------------------------------------------------


def test_the_head_names_both_runs() -> None:
    text = text_of(FULL)
    assert "A 2026-03-01-v1 · v1 B 2026-03-01-v2 · v2 Date 2026-03-01 Status complete" in text
    assert "Judge judge-model" in text


A_FACTORS, B_FACTORS = {"embedding": "bge-m3", "k": 5, "rerank": True}, {"embedding": "bge-m3", "k": 8}


@pytest.mark.parametrize(
    ("a", "b", "shown"),
    [
        pytest.param(A_FACTORS, B_FACTORS, "Factor A B k 5 8 rerank true unknown 1 more recorded", id="some differ"),
        pytest.param(A_FACTORS, A_FACTORS, "Nothing that was recorded (3 factors).", id="none differs"),
        pytest.param({}, {}, "Unknown: nothing was recorded of either system.", id="nothing recorded"),
        pytest.param({}, {"k": 8}, "Factor A B k unknown 8", id="one side recorded"),
        pytest.param(None, {"k": None}, "Nothing that was recorded", id="a null is no value"),
        pytest.param({"t": 0.12345}, {"t": 0.12346}, "t 0.12345 0.12346", id="shown unrounded"),
        pytest.param({"t": [1, 2]}, {"t": {"x": 1}}, 't [1, 2] {"x": 1}', id="lists and objects"),
        pytest.param({"t": "1"}, {"t": 1}, "Nothing that was recorded (1 factors).", id="text from a flag"),
    ],
)
def test_what_differs_between_the_systems_is_listed(a: Any, b: Any, shown: str) -> None:
    assert shown in text_of([], made=compared({"system": a}, {"system": b}))


def test_runs_of_different_eval_sets_are_told() -> None:
    other = {"eval_set": {"path": "other.jsonl", "sha256": "99" * 32, "n": 9}}
    assert "come from different eval sets" in text_of([], made=compared(b=other))
    assert "come from different eval sets" not in text_of([])


@both_languages
@pytest.mark.parametrize("embedded", [True, False])
def test_the_red_banner_stands_exactly_where_the_embedded_model_judged(lang: str, embedded: bool) -> None:
    page = Page(html_of(FULL, lang, made=compared(judge=judge(embedded=embedded))))
    banners = [attrs for attrs in page.of_class("banner") if "red" in (attrs["class"] or "")]
    assert len(banners) == embedded
    assert (PAGE_WORDS[lang]["embedded"] in page.text) == embedded


@both_languages
def test_the_yellow_note_names_what_the_server_did_not_take(lang: str) -> None:
    fallback = "temperature not sent: the server's default was used"
    with_note = Page(html_of(FULL, lang, made=compared(judge=judge(fallbacks=[fallback]))))
    assert (sentences.SENTENCES_ZH[fallback] if lang == "zh" else fallback) in with_note.text
    assert len([a for a in with_note.of_class("yellow") if "banner" in (a["class"] or "")]) == 1
    assert not [a for a in Page(html_of(FULL, lang)).of_class("yellow") if "banner" in (a["class"] or "")]


@both_languages
def test_a_manifest_that_holds_little_still_gives_a_page(lang: str) -> None:
    page = Page(html_of(FULL, lang, made={"run_id": "r", "kind": "pairwise", "judge": None}))
    assert PAGE_WORDS[lang]["nothing_recorded"] in page.text
    assert page.faults == []


def test_the_page_says_how_the_comparison_was_made() -> None:
    text = text_of(WORKED_PAIRS, made=compared(b={"system": {}}))
    assert "calls 8 answered from cache 0 sent again 1" in text
    assert "A run 2026-03-01-v1 name v1 eval set eval/questions.jsonl · 4 cases · abab" in text
    assert "answers v1.jsonl · cdcd" in text
    assert "embedding bge-m3 chunk_size 400" in text
    assert "System under test Nothing was recorded of it." in text
    assert "95 %, for questions like these bonett-price" in text


# --- numbers ------------------------------------------------------------------------------------------------------

WORKED_PAIRS = [ReportPair(row, Case(row.id, "?"), Answer(row.id, "a"), Answer(row.id, "b")) for row in WORKED]


@pytest.mark.parametrize(
    "shown",
    [
        # Bonett-Price for 5 won, 2 lost of 15: p = 6/17, 3/17; difference 0.1765, half width
        # 1.96 * sqrt((9/17 - 0.0311)/17) = 0.3355; halved and moved: [0.4205, 0.7560]. Value: 0.5 + 3/30.
        pytest.param("Win rate of A 60 % [42 %, 76 %], n = 15", id="win rate"),
        pytest.param("A better 5, B better 2, half a win for each 8.", id="what it counts"),
        # Wilson for 8 of 15: centre (0.5333 + 3.8415/30)/(1 + 3.8415/15) = 0.5265, half width 0.2255.
        pytest.param("Consistency 8/15 = 53 % [30 %, 75 %]", id="consistency"),
        # Clopper-Pearson for 3 of 4: low 4p³ - 3p⁴ = 0.025 at 0.194, high 0.975^(1/4) = 0.9937. p = 2 * 5/16.
        pytest.param("First place preferred 75 % [19 %, 99 %], n = 4", id="first place"),
        pytest.param("3 of 4 such pairs went to the first place. Against one half: p = 0.625", id="its test"),
        pytest.param("One-sided leans 2 to the first place, 1 to the second", id="leans"),
        # Of six pairs won with answers of different lengths the longer won five: Wilson [0.4365, 0.9699]; p = 14/64.
        pytest.param("The longer answer won 5/6 = 83 % [44 %, 97 %]", id="length"),
        # Ratios 1.5 five times, 1 and 0.5.
        pytest.param("p = 0.219 (exact test). In the median, the winner's answer has 1.50 times", id="ratio"),
        # Per pair 1/2 and 0; t with one degree of freedom covers everything.
        pytest.param("Flip rate 25 % [0 %, 100 %], n = 2", id="flips"),
        pytest.param("15 of 17 pairs have both orders decided", id="valid"),
        pytest.param("Type Pairs A better B better Tie Inconsistent No verdict fact 14 5 1 1 7 0", id="type"),
        pytest.param("policy 1 0 1 0 0 0 (no type) 2 0 0 0 0 2", id="other types"),
        pytest.param("Unscored: reply could not be read 1", id="reasons"),
    ],
)
def test_numbers_worked_by_hand_stand_on_the_page(shown: str) -> None:
    assert shown in text_of(WORKED_PAIRS)


def test_the_ends_are_counted_and_sum_up_to_all_pairs() -> None:
    page = text_of(WORKED_PAIRS)
    table = page[page.index("End Pairs") : page.index("Unscored: ")]
    labels = [label for label, _ in pairs_words.ENDS["en"].values()]
    found = [int(table.split(f" {label} ")[1].split()[0]) for label in labels]
    assert found == [5, 2, 1, 3, 1, 2, 1, 1, 1]
    assert sum(found) == len(WORKED)


def test_a_tiny_p_is_no_zero() -> None:
    text = text_of([], others=[row(f"i{i}", "inconsistent") for i in range(40)])
    assert "Against one half: p < 0.001 (exact test)." in text


@both_languages
@pytest.mark.parametrize(
    "others",
    [
        pytest.param([], id="no pair"),
        pytest.param([row("x", "unscored"), row("u", "undecided")], id="nothing decided"),
    ],
)
def test_a_null_number_says_why(lang: str, others: list[PairRow]) -> None:
    numbers = summarise_pairs(others, 7)
    trees = (numbers, numbers["length"])
    reasons = {value for tree in trees for name, value in tree.items() if name.endswith("_reason")}
    text = text_of([], lang, others=others)
    assert len(reasons) == 4
    for reason in reasons:
        assert (sentences.SENTENCES_ZH[reason] if lang == "zh" else reason) in text
    for sign in ("None", "NaN", "nan,", "nan ", "undefined", "inf ", "p ="):
        assert sign not in text


@both_languages
def test_each_number_says_what_it_cannot_tell(lang: str) -> None:
    text = text_of(WORKED_PAIRS, lang)
    for label, says in pairs_words.PAIR_METRICS[lang].values():
        assert label in text
        assert says in text
    assert PAGE_WORDS[lang]["preference"] in text


def test_questions_that_are_no_pair_are_counted_by_reason() -> None:
    text = text_of(
        [pair()], n_cases=9, n_errors=3, no_answer={"a": 1, "b": 2}, n_without_contexts=1,
        judge={"sampled": {"n": 1, "of": 5, "seed": 7}},
    )  # fmt: skip
    assert "8 of 9 questions were not compared: 3 without an answer (from A 1, from B 2), 1 without context" in text
    assert "4 not drawn." in text
    assert "the judge saw 1 of the 5 pairs that it could judge, drawn with seed 7" in text
    assert "were not compared" not in text_of([pair()])


# --- the pairs ----------------------------------------------------------------------------------------------------


def test_decided_pairs_come_first_then_inconsistent_undecided_and_unscored_ones() -> None:
    text = text_of(FULL)
    places = [text.index(f" q-{outcome} ") for outcome in OUTCOMES_IN_ORDER]
    assert places == sorted(places)
    assert [given.row.outcome for given in sorted(FULL, key=lambda given: place_on_page(given.row))] == [
        *OUTCOMES_IN_ORDER
    ]


def test_a_pair_shows_the_question_both_answers_and_what_each_order_said() -> None:
    columns: dict[str, Any] = {"n_planned": 3, "n_votes_ab": 2, "n_asked_ab": 3, "n_votes_ba": 1, "n_asked_ba": 2}
    columns |= {"flipped_ab": True, "n_characters_a": 20, "n_characters_b": 17}
    given = pair(**columns, reason_ab="A says all.", reason_ba="B says all.")
    text = text_of([given])
    assert "A better q1 fact How long is the trial? Question How long is the trial? Expected" in text
    assert "Key points 14 days A 20 characters It runs for 14 days. Contexts, best first (1)" in text
    assert "trial#1 relevant score 0.9 Every trial runs for 14 days. B 17 characters It lasts a month." in text
    first = "A stood first winner A read 2 asked 3 repeats planned 3 first two differ yes"
    assert first + " The judge's reason A says all. The judge's own “A” is answer A here" in text
    second = "B stood first winner A read 1 asked 2 repeats planned 3 The judge's reason B says all."
    assert second + " The judge's own “A” is answer B here" in text


def test_contexts_are_folded_and_many_are_cut_but_never_a_relevant_one() -> None:
    contexts = (*(Context(f"d{i}", "t") for i in range(1, 60)), Context("trial#1", "t"))
    page = Page(html_of([pair(a=Answer("q1", "a", contexts), b=Answer("q1", "b"))]))
    ranks = [attrs["value"] for tag, attrs in page.elements if tag == "li"]
    assert ranks == [str(rank) for rank in range(1, N_CONTEXTS_SHOWN + 1)] + ["60"]
    assert page.of_class("folded") == [{"class": "folded"}] * 2
    assert f"{59 - N_CONTEXTS_SHOWN} more contexts in the run's files" in page.text
    assert "Contexts, best first (0) The answer has no contexts field." in page.text


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        pytest.param(pair(b=Answer("q1", error="HTTP 500")), "No answer: HTTP 500", id="error"),
        pytest.param(pair(b=Answer("q1", "")), "(empty text)", id="empty text"),
        pytest.param(pair(), "(no reason given)", id="no reason"),
        pytest.param(pair(outcome="undecided"), "winner no majority", id="half a swap"),
        pytest.param(pair(outcome="unscored"), "unscored q1 fact reply could not be read", id="nothing read"),
        pytest.param(pair(outcome="tie"), "winner tie", id="a tie"),
    ],
)
def test_what_a_pair_lacks_is_said(given: ReportPair, shown: str) -> None:
    assert shown in text_of([given])


def test_the_page_says_how_many_pairs_it_does_not_show() -> None:
    text = text_of(FULL[:2], others=[row("t", "tie"), row("a", "a"), row("b", "b")])
    assert "Pairs (2)" in text
    assert "3 more in pairs.csv, 1 of them ties" in text
    assert "more in pairs.csv" not in text_of(FULL)


def test_every_column_of_a_row_stands_on_the_page_or_is_left_out_on_purpose() -> None:
    told: dict[str, Any] = {"type": "T-type", "unscored_reason": "truncated", "reason_ab": "R-ab", "reason_ba": "R-ba"}
    told |= {"order_ab": "tie", "order_ba": "b", "flipped_ab": "F-ab", "flipped_ba": "F-ba"}
    columns = [field.name for field in dataclasses.fields(PairRow)]
    numbers = {name: 9_000 + i for i, name in enumerate(columns) if name.startswith("n_")}
    left_out = {"id", "outcome", "question_sha256"}
    assert set(columns) == told.keys() | numbers.keys() | left_out
    columns_told: dict[str, Any] = {**told, **numbers}
    given = pair(outcome="unscored", case=Case("q1", "?", "T-type"), **columns_told)
    text = Page(render_pairs_report(compared(), summary_of([]), [given], lang="en")).text
    shown = columns_told | {"unscored_reason": "reply was cut off", "order_ab": "winner tie", "order_ba": "winner B"}
    assert [name for name, value in shown.items() if str(value) not in text] == []


def test_200_chinese_pairs_with_ten_contexts_a_side_are_all_there() -> None:
    contexts = tuple(Context(f"制度#{i}", f"第{i}条:员工每年享有十天年假。" * 5, 0.5) for i in range(10))
    pairs = [
        pair(f"问-{i}", case=Case(f"问-{i}", f"第{i}个问题:年假可以折现吗?"), a=Answer(f"问-{i}", "可以。", contexts))
        for i in range(200)
    ]
    page = Page(html_of(pairs, "zh"))
    assert len(page.of_class("case")) == 200
    assert page.faults == []
    assert "第199个问题:年假可以折现吗?" in page.text


# --- wording ------------------------------------------------------------------------------------------------------

TABLES = {name: table for name, table in vars(pairs_words).items() if name.isupper()}


@pytest.mark.parametrize("table", TABLES)
def test_both_languages_have_the_same_words(table: str) -> None:
    assert TABLES[table].keys() == {"en", "zh"}
    assert TABLES[table]["en"].keys() == TABLES[table]["zh"].keys()


@both_languages
def test_words_of_a_runs_page_are_replaced_only_where_a_comparison_needs_others(lang: str) -> None:
    assert PAGE_WORDS[lang].keys() & html_words.WORDS[lang].keys() == {
        *("title", "embedded", "embedded_again", "interval_note", "more_contexts", "means", "made")
    }
