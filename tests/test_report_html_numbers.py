"""What the page says of each number of a summary: text, interval, reason for a null, and wording in both languages."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from rag_judge.attribution import LAYER_OF
from rag_judge.records import CaseRow
from rag_judge.report import html_glossary, html_terms, html_words, sentences
from rag_judge.report.html import N_LEAKS_SHOWN, render_report
from rag_judge.report.html_numbers import decimal, percent
from rag_judge.summary import summarise
from tests.report_pages import FULL, Page, both_languages, graded, manifest, page_of, rows, text_of

# --- numbers -------------------------------------------------------------------------------------------------------


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
        assert (sentences.SENTENCES_ZH[reason] if lang == "zh" else reason) in text
    assert ("不适用（" if lang == "zh" else "n/a (") in text
    for sign in ("None", "NaN", "nan,", "nan ", "undefined", "inf "):
        assert sign not in text


def test_worst_and_best_stand_beside_the_rates_they_bound() -> None:
    text = text_of(
        [graded(judge_pass=False), graded("q3", "undecided", undecided=True)],
        others=rows(2, judge_pass=True, drawn=True),
    )
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
    assert "Mean score 3.33 [" in text
    assert "2: 1 · 4: 2" in text


def test_leaks_are_listed_in_red_and_lead_to_their_case() -> None:
    page = Page(page_of([graded("q2", leak=True, leak_checked=True)], others=rows(3, leak_checked=True)))
    assert "Leaks 1/4" in page.text
    assert len(page.of_class("alarming")) == 2  # the tile and the line
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


# --- wording ------------------------------------------------------------------------------------------------------

TABLES = {
    name: table for module in (html_words, html_glossary) for name, table in vars(module).items() if name.isupper()
}


@pytest.mark.parametrize("table", TABLES)
def test_both_languages_have_the_same_words(table: str) -> None:
    assert TABLES[table].keys() == {"en", "zh"}
    assert TABLES[table]["en"].keys() == TABLES[table]["zh"].keys()


@both_languages
def test_every_cause_and_layer_has_its_wording(lang: str) -> None:
    assert html_terms.CAUSES[lang].keys() == LAYER_OF.keys()
    assert html_words.LAYERS[lang].keys() == set(LAYER_OF.values())
    for parts in html_terms.CAUSES[lang].values():
        assert all(parts)
