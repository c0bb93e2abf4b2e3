"""The review sample: strata, probabilities, which cases, and that a larger one holds the smaller."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from rag_judge.errors import InputError
from rag_judge.records import CaseRow, PairRow
from rag_judge.review.design import (
    Design,
    check_annotator,
    decision_of_row,
    design_fields,
    design_from_fields,
    draw_design,
    is_suspect,
    larger,
    strata_of_cases,
    strata_of_pairs,
)
from rag_judge.review.sheet import make_sheet
from rag_judge.sampling import seeded_order
from tests.review_sheets import ASKED, texts


def row(case_id: str, passes: bool | None, **changes: Any) -> CaseRow:
    """A case that a judge saw three times."""
    outcome = {True: "pass", False: "fail", None: "undecided"}[passes]
    known = {"type": "fact", "judge_pass": passes, "n_planned": 3, "drawn": True, **changes}
    return CaseRow(id=case_id, outcome=outcome, **known)  # type: ignore[arg-type]


def rows(n_pass: int, n_fail: int, n_undecided: int = 0) -> list[CaseRow]:
    verdicts = [True] * n_pass + [False] * n_fail + [None] * n_undecided
    return [row(f"c{i}", verdict) for i, verdict in enumerate(verdicts)]


def drawn(population: list[CaseRow], n: int, seed: int = 0, *, share: float = 1.0, oversample: bool = False) -> Design:
    strata = strata_of_cases(population, n, oversample=oversample)
    return draw_design(strata, n, seed, judge_share=share, oversampled=oversample)


def sizes(design: Design) -> dict[str, tuple[int, int]]:
    """Of each stratum, how many of how many were drawn."""
    return {s.stratum: (s.n_drawn, s.n_cases) for s in design.table}


# --- how many of each ------------------------------------------------------------------------------------------------


def test_each_verdict_gets_four_and_the_rest_goes_by_size() -> None:
    # 12 of 64 + 16: four each; the next four all go to the passes, whose 64 cases weigh most per label
    design = drawn(rows(64, 16), 12)
    assert sizes(design) == {"fact/fail": (4, 16), "fact/pass": (8, 64)}
    assert Counter(design.probabilities.values()) == {8 / 64: 64, 4 / 16: 16}


def test_a_verdict_with_fewer_than_four_cases_is_taken_whole() -> None:
    assert sizes(drawn(rows(77, 3), 12)) == {"fact/fail": (3, 3), "fact/pass": (9, 77)}


@pytest.mark.parametrize(
    ("n_undecided", "n", "expected"),
    [
        pytest.param(3, 12, (3, 3), id="all, while they fill at most half"),
        pytest.param(6, 12, (6, 6), id="all, at just half"),
        pytest.param(10, 12, (6, 10), id="half of the sample is drawn from more"),
        pytest.param(40, 44, (40, 40), id="all again where the others are fewer than half"),
    ],
)
def test_undecided_cases_are_certain_up_to_half_of_the_sample(
    n_undecided: int, n: int, expected: tuple[int, int]
) -> None:
    design = drawn(rows(3, 1, n_undecided) if n == 44 else rows(30, 10, n_undecided), n)
    assert sizes(design)["undecided"] == expected
    share = expected[0] / expected[1]
    assert {design.probabilities[c] for c, name in design.strata.items() if name == "undecided"} == {share}
    assert len(design.drawn) == n


def test_strata_are_by_type_where_each_keeps_four_and_by_verdict_alone_where_not() -> None:
    population = [row(f"c{i}", i % 4 > 0, type=("fact", "table")[i % 2]) for i in range(80)]
    assert set(strata_of_cases(population, 16, oversample=False).values()) == {"fact/fail", "fact/pass", "table/pass"}
    # three strata at four labels are twelve; eleven labels cannot keep four in each
    assert set(strata_of_cases(population, 11, oversample=False).values()) == {"fail", "pass"}


def test_suspects_are_drawn_three_times_as_often_and_known_to_be() -> None:
    population = [row(f"c{i}", True, flipped=i < 20) for i in range(80)]
    design = drawn(population, 24, oversample=True)
    # 20 suspects weigh as much as the other 60
    assert sizes(design) == {"pass": (12, 60), "suspect/pass": (12, 20)}
    assert (design.probabilities["c0"], design.probabilities["c79"]) == (0.6, 0.2)
    assert design.oversampled


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"flipped": True}, True, id="repeats differ"),
        pytest.param({"judges_disagree": True}, True, id="judges differ"),
        pytest.param({"rule_correct": False}, True, id="rules say no"),
        pytest.param({"rule_correct": True, "flipped": False}, False, id="all agree"),
        pytest.param({}, False, id="nothing known"),
        pytest.param({"judge_pass": None, "rule_correct": False}, False, id="no verdict to differ with"),
    ],
)
def test_a_case_is_suspect_where_somebody_differs(changes: dict[str, Any], expected: bool) -> None:
    assert is_suspect(row("c", True, **changes)) is expected


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        pytest.param(row("c", True, rule_correct=False), True, id="the judge"),
        pytest.param(row("c", None, rule_correct=True), None, id="asked, and undecided"),
        pytest.param(CaseRow("c", None, "fail", rule_correct=False), False, id="the rules where no judge was asked"),
        pytest.param(CaseRow("c", None, "not_judged"), None, id="nobody"),
    ],
)
def test_the_decision_is_the_judges_or_where_none_was_asked_the_rules(case: CaseRow, expected: bool | None) -> None:
    assert decision_of_row(case) is expected


def test_scores_are_strata_where_each_keeps_four_and_one_stratum_where_not() -> None:
    population = [row(f"c{i}", None, score=(1.0, 2.5, 4.0, 5.0)[i % 4]) for i in range(80)]
    population.append(row("lost", None))
    assert set(strata_of_cases(population, 17, oversample=False).values()) == {
        "score 1", "score 2.5", "score 4", "score 5", "undecided",
    }  # fmt: skip
    assert set(strata_of_cases(population, 16, oversample=False).values()) == {"scored", "undecided"}


def test_no_score_is_left_without_a_chance_to_be_drawn() -> None:
    population = [row(f"c{i}", None, score=1 + (i % 9) / 2) for i in range(60)]  # nine scores, eight labels
    assert min(drawn(population, 8).probabilities.values()) > 0


def test_pairs_are_strata_by_outcome_and_the_open_ones_together() -> None:
    outcomes = ("a", "b", "tie", "inconsistent", "undecided", "unscored")
    strata = strata_of_pairs([PairRow(f"p{i}", outcome) for i, outcome in enumerate(outcomes)])  # type: ignore[arg-type]
    assert list(strata.values()) == ["a", "b", "tie", "inconsistent", "undecided", "undecided"]


# --- probabilities ---------------------------------------------------------------------------------------------------

POPULATIONS = [
    pytest.param(rows(64, 16), id="plain"),
    pytest.param(rows(8, 0), id="one verdict"),
    pytest.param(rows(60, 5, 15), id="undecided"),
    pytest.param(rows(0, 0, 30), id="undecided alone"),
    pytest.param(rows(1, 1, 1), id="three"),
    pytest.param([row(f"c{i}", i % 3 > 0, type="abc"[i % 3], flipped=i % 5 == 0) for i in range(50)], id="types"),
]


@pytest.mark.parametrize("oversample", [False, True], ids=["plain", "oversampled"])
@pytest.mark.parametrize("population", POPULATIONS)
def test_every_case_has_a_probability_and_the_drawn_ones_stand_for_all(
    population: list[CaseRow], oversample: bool
) -> None:
    for n in range(min(8, len(population)), len(population) + 1):
        design = drawn(population, n, oversample=oversample)
        assert set(design.probabilities) == {case.id for case in population}
        assert all(0 < p <= 1 for p in design.probabilities.values())
        assert sum(1 / design.probabilities[case_id] for case_id in design.drawn) == pytest.approx(len(population))
        assert len(design.drawn) == len(set(design.drawn)) == n


def test_a_judge_sample_multiplies_the_probabilities_and_not_the_strata() -> None:
    whole, part = drawn(rows(64, 16), 12), drawn(rows(64, 16), 12, share=0.4)
    assert part.drawn == whole.drawn
    assert part.probabilities == {case_id: pytest.approx(0.4 * p) for case_id, p in whole.probabilities.items()}
    assert [s.probability for s in part.table] == [s.probability for s in whole.table]


def test_a_case_is_drawn_as_often_as_its_probability_says() -> None:
    population = rows(64, 16)
    counts = Counter(case_id for seed in range(400) for case_id in drawn(population, 12, seed).drawn)
    # the share of 400 draws has a standard error of at most 0.022; 4.5 of them, over 80 cases
    assert counts["c0"] / 400 == pytest.approx(8 / 64, abs=0.075)
    assert max(abs(counts[case.id] / 400 - (8 / 64 if case.judge_pass else 4 / 16)) for case in population) < 0.1


# --- one order per stratum -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("oversample", [False, True], ids=["plain", "oversampled"])
@pytest.mark.parametrize("population", POPULATIONS)
def test_a_larger_sample_is_a_longer_prefix_of_each_strata(population: list[CaseRow], oversample: bool) -> None:
    design = drawn(population, min(8, len(population)), oversample=oversample)
    for n in range(len(design.drawn) + 1, len(population) + 1):
        grown = larger(design, n)
        assert grown.strata == design.strata
        assert set(grown.drawn) > set(design.drawn)
        for s in grown.table:
            of_stratum = [case_id for case_id, name in grown.strata.items() if name == s.stratum]
            assert set(seeded_order(of_stratum, grown.seed)[: s.n_drawn]) == set(grown.drawn) & set(of_stratum)
        design = grown


def test_a_smaller_or_equal_sample_changes_nothing() -> None:
    design = drawn(rows(64, 16), 20)
    assert larger(design, 20) is design
    assert larger(design, 8) is design


def test_the_order_of_the_cases_does_not_matter_and_the_seed_does() -> None:
    population = rows(64, 16, 5)
    shuffled = random.Random(1).sample(population, len(population))
    assert drawn(shuffled, 20).drawn == drawn(population, 20).drawn
    assert drawn(population, 20, seed=1).drawn != drawn(population, 20).drawn


def test_the_order_to_review_in_does_not_sort_by_verdict() -> None:
    design = drawn(rows(40, 40), 40)
    verdicts = [design.strata[case_id] for case_id in design.drawn]
    assert sum(a != b for a, b in pairwise(verdicts)) > 5


# --- on disk ---------------------------------------------------------------------------------------------------------


def with_sheet(design: Design, annotator: str) -> Design:
    shown = {case_id: texts(question=f"Question {case_id}?") for case_id in design.drawn}
    sheet, keys = make_sheet(
        shown,
        annotator,
        mode="passfail",
        fields=ASKED["passfail"],
        lang="en",
        instructions_version="v1",
        rng=random.Random(2),
    )
    return design.with_sheet(sheet, keys, f"sheet-{annotator}.csv")


def test_a_design_is_read_back_as_it_was_written() -> None:
    design = with_sheet(drawn(rows(64, 16, 3), 12, share=0.5), "anna")
    fields = json.loads(json.dumps(design_fields(design)))
    assert design_from_fields(fields) == design
    assert (fields["N"], fields["n_drawn"], fields["seed"], fields["judge_share"]) == (83, 12, 0, 0.5)
    assert fields["cases"]["c0"] == {"stratum": "fact/pass", "probability": design.probabilities["c0"]}
    assert {entry["stratum"]: (entry["N"], entry["n"]) for entry in fields["strata"]} == {
        s.stratum: (s.n_cases, s.n_drawn) for s in design.table
    }


def test_a_grown_design_keeps_its_sheets_and_knows_who_was_given_what() -> None:
    design = with_sheet(drawn(rows(64, 16), 12), "anna")
    grown = larger(design, 30)
    assert (grown.sheets, grown.keys, grown.files) == (design.sheets, design.keys, design.files)
    assert grown.given_to("anna") == set(design.drawn)
    assert grown.given_to("ben") == set()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"format_version": 99}, "format version 99, this program reads 1", id="of a later format"),
        pytest.param({"cases": None}, "not what an export wrote", id="a part is missing"),
        pytest.param({"sheets": [{"file": "x"}]}, "not what an export wrote", id="a sheet without items"),
        pytest.param({"cases": {"c0": 3}}, "not what an export wrote", id="a case that is a number"),
    ],
)
def test_a_changed_design_is_refused_with_words(change: dict[str, Any], message: str) -> None:
    fields = design_fields(with_sheet(drawn(rows(64, 16), 12), "anna"))
    with pytest.raises(InputError, match=message):
        design_from_fields({**fields, **change})


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a1", "li", "王芳", "anna-maria", "x_1", "a" * 39])
def test_a_name_of_letters_and_digits_is_taken(name: str) -> None:
    check_annotator(name)


@pytest.mark.parametrize(
    "name",
    ["", "a b", "../x", "a/b", "a\\b", "a.b", "-rf", "_x", "a:b", "con\n", "a" * 40, "a\u202eb", "x\x00", "*", "{run}"],
)
def test_a_name_that_no_file_should_have_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="letters, digits, - and _"):
        check_annotator(name)


@pytest.mark.parametrize("name", ["adjudicator", "Adjudicator"])
def test_the_third_readers_name_is_nobody_elses(name: str) -> None:
    with pytest.raises(InputError, match="--disagreements"):
        check_annotator(name)
