"""How often the attribution finds the planted cause, and the labelled one; the tables of docs/attribution.md."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from rag_judge.attribution import LAYER_OF
from rag_judge.demo.rag_service import VERSIONS
from rag_judge.records import Outcome
from rag_judge.text import is_chinese
from tests.planted import PAGE, CorpusName, Planted, found, labelled, planted, with_tables

PLANTS = planted()
RESULTS = [(plant, found(plant)) for plant in PLANTS]
IDS = [f"{plant.cause}-{plant.kind}-{plant.case.id}".replace(" ", "_") for plant in PLANTS]
CERTAIN = {"leak", "answered_out_of_scope", "refused_in_scope", "refused_then_answered"}
THROUGH_A_JUDGE = {"wrong_citation", "ambiguous_question", "judge_at_fault"}
each = pytest.mark.parametrize(("plant", "outcome"), RESULTS, ids=IDS)


def share_right(chosen: Callable[[Planted, Outcome], bool]) -> float:
    right = [plant.cause == outcome.cause for plant, outcome in RESULTS if chosen(plant, outcome)]
    return sum(right) / len(right)


# --- the plants -----------------------------------------------------------------------------------------------------


def test_every_cause_is_planted_often_in_several_ways_and_in_both_languages() -> None:
    counts = Counter(plant.cause for plant in PLANTS)
    assert set(counts) == set(LAYER_OF) - {"unknown"}
    assert len(PLANTS) >= 160
    assert min(counts.values()) >= 10
    for cause in counts:
        mine = [plant for plant in PLANTS if plant.cause == cause]
        assert len({is_chinese(plant.case.question) for plant in mine}) == 2, cause
        assert len({plant.kind for plant in mine}) >= 2, cause
        assert len({plant.case.id for plant in mine}) >= 6, cause


def test_the_plants_are_the_same_each_time() -> None:
    assert planted() == PLANTS


@each
def test_a_plant_fails_with_a_cause_its_layer_and_a_confidence(plant: Planted, outcome: Outcome) -> None:
    assert outcome.outcome == "fail"
    assert outcome.cause is not None
    assert outcome.layer == LAYER_OF[outcome.cause]
    assert outcome.confidence in ("high", "medium", "low")


# --- how often the cause is right -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", sorted(CERTAIN))
def test_leaks_and_the_causes_of_abstention_are_always_found(cause: str) -> None:
    assert share_right(lambda plant, _: plant.cause == cause) == 1


def test_nothing_else_is_taken_for_a_leak_or_a_cause_of_abstention() -> None:
    assert [plant for plant, outcome in RESULTS if outcome.cause in CERTAIN and outcome.cause != plant.cause] == []


def test_what_ids_and_texts_decide_is_right_nine_times_of_ten() -> None:
    assert share_right(lambda plant, _: plant.cause not in THROUGH_A_JUDGE and plant.decision is None) >= 0.9


@pytest.mark.parametrize("cause", sorted(set(LAYER_OF) - CERTAIN - {"unknown"}))
def test_each_cause_is_found_more_often_than_not(cause: str) -> None:
    assert share_right(lambda plant, _: plant.cause == cause) > 0.5


def test_a_higher_confidence_is_right_more_often() -> None:
    def rate(name: str) -> float:
        return share_right(lambda _, outcome: outcome.confidence == name)

    high, medium, low = rate("high"), rate("medium"), rate("low")
    assert high > medium - 0.05
    assert medium > low - 0.05
    assert high > low + 0.1


# --- what is shown for it -------------------------------------------------------------------------------------------


@each
def test_the_evidence_names_a_passage_or_quotes_what_is_missing_or_was_said(plant: Planted, outcome: Outcome) -> None:
    case, answer = plant.case, plant.answer
    assert outcome.evidence
    if case.expect_refusal and outcome.cause != "leak":
        return  # nothing was to be found or said
    if outcome.cause in THROUGH_A_JUDGE or outcome.confidence == "low":
        return  # the judge's words
    names = [context.id for context in answer.contexts or ()] + [*(answer.citations or ()), *case.relevant_docs]
    names += [f"context {rank}" for rank in range(1, 6)]
    points = [wording for point in (*case.must_include, case.acceptable) for wording in point] + [
        *case.must_not_include
    ]
    shown = [text for text in (*names, *points) if text and text in outcome.evidence]
    quoted = [part for part in outcome.evidence.partition(": ")[2].split(", ") if part in (answer.answer or "")]
    declined = outcome.cause == "refused_in_scope"
    assert shown or quoted or declined, outcome.evidence


# --- the labels of the shipped example ------------------------------------------------------------------------------


@pytest.mark.parametrize("corpus", [None, "whole"], ids=["without corpus", "with corpus"])
@pytest.mark.parametrize("version", sorted(VERSIONS))
def test_the_cause_is_the_labelled_one_nine_times_of_ten(version: str, corpus: CorpusName | None) -> None:
    plants = labelled(version)
    assert len(plants) >= 20
    right = [found(replace(plant, corpus=corpus)).cause == plant.cause for plant in plants]
    assert sum(right) / len(right) >= 0.9


def test_the_page_shows_the_tables_that_the_program_makes() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_tables(page)
