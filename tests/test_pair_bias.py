"""The judge of a comparison held against people, by hand and against scikit-learn."""

from __future__ import annotations

import pytest
from sklearn.metrics import cohen_kappa_score

from rag_judge.gold import Label
from rag_judge.pair_bias import pair_bias_tree
from rag_judge.records import PairRow
from rag_judge.review.design import draw_design, strata_of_pairs


def pairs(outcomes: str) -> list[PairRow]:
    names = {"a": "a", "b": "b", "t": "tie", "i": "inconsistent", "u": "undecided"}
    return [PairRow(f"p{i}", names[letter], type="fact") for i, letter in enumerate(outcomes)]  # type: ignore[arg-type]


def won(case_id: str, winner: str | None, annotator: str = "li") -> Label:
    return Label(case_id, annotator, {"winner": winner})


def test_winners_are_compared_by_system_over_what_the_judge_decided() -> None:
    rows = pairs("aaaabbbbttiu")
    said = ["A", "A", "A", "B", "B", "B", "tie", "B", "tie", "A", "A", "tie"]
    labels = [won(f"p{i}", value) for i, value in enumerate(said)]
    tree = pair_bias_tree(rows, labels, None, {"first_position": None, "consistency": None, "length": {"n": 3}}, 0)
    found = tree["fields"]["winner"]
    judge = ["a"] * 4 + ["b"] * 4 + ["tie"] * 2
    human = [value.lower() for value in said[:10]]
    assert (found["n"], found["agreement"]["value"]) == (10, 0.7)
    assert found["kappa"]["value"] == pytest.approx(cohen_kappa_score(judge, human))
    assert found["table"]["judge_a"] == {"a": 3, "b": 1, "tie": 0}
    assert found["not_decided"] == {"inconsistent": 1, "undecided": 1}
    assert (tree["n_labelled"], tree["verbosity"], tree["position"]["consistency"]) == (12, {"n": 3}, None)


def test_pairs_drawn_by_outcome_are_weighted() -> None:
    rows = pairs("a" * 60 + "b" * 20)
    design = draw_design(strata_of_pairs(rows), 10, 0, judge_share=1.0, oversampled=False)
    labels = [won(c, "A") for c in design.drawn]  # right on every a, wrong on every b
    found = pair_bias_tree(rows, labels, design, {}, 0)["fields"]["winner"]
    assert found["agreement"]["value"] == pytest.approx(0.75)


def test_pairs_picked_by_hand_say_nothing_of_the_others_and_show_their_counts() -> None:
    found = pair_bias_tree(pairs("aabb"), [won("p0", "A")], None, {}, 0)["fields"]["winner"]
    assert (found["agreement"], found["table"]["judge_a"]["a"]) == (None, 1)


def test_two_who_name_a_winner_are_compared_and_what_they_differ_on_is_open() -> None:
    rows = pairs("aabb")
    labels = [won(f"p{i}", "A") for i in range(4)] + [won(f"p{i}", "A" if i else "tie", "wang") for i in range(4)]
    tree = pair_bias_tree(rows, labels, None, {}, 0)
    assert (tree["annotators"]["agreement"]["value"], tree["annotators"]["field"]) == (0.75, "winner")
    assert tree["disagreements"] == {"winner": {"n": 1, "settled": 0, "by_type": {"fact": 1}}}
    assert (tree["fields"]["winner"]["n"], tree["fields"]["winner"]["n_open"]) == (3, 1)
