"""Pairs: what two orders decide, by table; every number of a comparison by hand; and what must not move them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_judge.cases import question_hash
from rag_judge.pairs import pair_row, summarise_pairs
from rag_judge.records import Answer, Case, Decision, PairRow, Unscored, UnscoredReason, Verdict, VerdictField
from rag_judge.votes import Vote, decide

WINNER = (VerdictField("winner", "choice", ("A", "B", "tie")),)
CASE = Case("q1", "How long is the warranty?", "policy")
PLACES = {"A": "A", "B": "B", "t": "tie"}
SWAPPED = {"a": "b", "b": "a", "tie": "tie"}


def order(votes: str, unscored: UnscoredReason = "unreadable", n_planned: int | None = None) -> Decision:
    """A, B and t are read votes of one order's repeats, x one that could not be read."""
    read: list[Vote] = [
        Unscored(unscored) if c == "x" else Verdict({"winner": PLACES[c]}, reason=f"says {c}") for c in votes
    ]
    return decide(read, n_planned or len(votes), WINNER, None)


def pair(ab: str, ba: str, case: Case = CASE, a: str = "Two years.", b: str = "One year.") -> PairRow:
    return pair_row(case, order(ab), order(ba), Answer(case.id, a), Answer(case.id, b), "winner")


def value(tree: dict[str, Any], name: str) -> tuple[Any, int]:
    assert tree[name] is not None, tree.get(f"{name}_reason")
    return tree[name]["value"], tree[name]["n"]


# --- one pair ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ab", "ba", "order_ab", "order_ba", "outcome"),
    [
        pytest.param("A", "B", "a", "a", "a", id="a in either place"),
        pytest.param("B", "A", "b", "b", "b", id="b in either place"),
        pytest.param("t", "t", "tie", "tie", "tie", id="a tie twice"),
        pytest.param("A", "A", "a", "b", "inconsistent", id="the first place twice"),
        pytest.param("B", "B", "b", "a", "inconsistent", id="the second place twice"),
        pytest.param("A", "t", "a", "tie", "inconsistent", id="a, then a tie"),
        pytest.param("t", "A", "tie", "b", "inconsistent", id="a tie, then b"),
        pytest.param("B", "t", "b", "tie", "inconsistent", id="b, then a tie"),
        pytest.param("t", "B", "tie", "a", "inconsistent", id="a tie, then a"),
        pytest.param("A", "x", "a", None, "undecided", id="half a swap decides nothing"),
        pytest.param("x", "B", None, "a", "undecided", id="the other half neither"),
        pytest.param("x", "t", None, "tie", "undecided", id="half a tie neither"),
        pytest.param("AB", "BB", None, "a", "undecided", id="an even split in one order"),
        pytest.param("AB", "AB", None, None, "undecided", id="an even split in both"),
        pytest.param("ABt", "BBB", None, "a", "undecided", id="three ways of three"),
        pytest.param("AB", "xx", None, None, "undecided", id="read in one order, without a majority"),
        pytest.param("Axx", "BBB", None, "a", "undecided", id="one of three planned is no majority"),
        pytest.param("AAB", "BxB", "a", "a", "a", id="majorities of the planned repeats"),
        pytest.param("ttA", "xtt", "tie", "tie", "tie", id="majorities for a tie"),
        pytest.param("AAB", "ABA", "a", "b", "inconsistent", id="majorities that differ"),
        pytest.param("x", "x", None, None, "unscored", id="nothing read"),
        pytest.param("xxx", "xxx", None, None, "unscored", id="nothing read in six"),
    ],
)
def test_only_two_orders_that_agree_decide_a_pair(
    ab: str, ba: str, order_ab: str | None, order_ba: str | None, outcome: str
) -> None:
    found = pair(ab, ba)
    assert (found.order_ab, found.order_ba, found.outcome) == (order_ab, order_ba, outcome)


def test_a_row_tells_how_the_repeats_of_each_order_went() -> None:
    ab, ba = order("AA", n_planned=3), order("BxA")
    found = pair_row(CASE, ab, ba, Answer("q1", "保修两年。"), Answer("q1", "One year."), "winner")
    assert found == PairRow(
        id="q1",
        outcome="undecided",
        order_ab="a",
        order_ba=None,
        n_votes_ab=2,
        n_votes_ba=2,
        type="policy",
        unscored_reason=None,
        n_planned=3,
        n_asked_ab=2,
        n_asked_ba=3,
        flipped_ab=False,
        flipped_ba=None,
        n_characters_a=5,
        n_characters_b=9,
        reason_ab="says A",
        reason_ba="says A",
        question_sha256=question_hash(CASE),
    )


def test_nothing_read_has_the_reason_of_the_order_asked_last_and_half_read_has_none() -> None:
    both = pair_row(
        CASE, order("x", "truncated"), order("x", "refused"), Answer("q1", "x"), Answer("q1", "y"), "winner"
    )
    assert (both.outcome, both.unscored_reason) == ("unscored", "refused")
    half = pair_row(CASE, order("x", "truncated"), order("B"), Answer("q1", "x"), Answer("q1", "y"), "winner")
    assert (half.outcome, half.unscored_reason, half.n_votes_ab) == ("undecided", None, 0)


def test_the_field_is_the_one_named_and_a_value_that_is_no_place_is_refused() -> None:
    better = VerdictField("better", "choice", ("A", "B", "tie", "neither"))
    both = (*WINNER, better)
    ab = decide([Verdict({"winner": "B", "better": "A"})], 1, both, None)
    ba = decide([Verdict({"winner": "A", "better": "B"})], 1, both, None)
    assert pair_row(CASE, ab, ba, Answer("q1", "x"), Answer("q1", "y"), "better").outcome == "a"
    neither = decide([Verdict({"winner": "A", "better": "neither"})], 1, both, None)
    with pytest.raises(KeyError, match="neither"):
        pair_row(CASE, ab, neither, Answer("q1", "x"), Answer("q1", "y"), "better")


def test_an_answer_without_text_has_no_characters() -> None:
    found = pair_row(CASE, order("A"), order("B"), Answer("q1", None), Answer("q1", ""), "winner")
    assert (found.n_characters_a, found.n_characters_b) == (0, 0)


# --- many pairs -------------------------------------------------------------------------------------------------


def pairs(*orders: str) -> list[PairRow]:
    """One pair for each `votes of ab / votes of ba`."""
    split = [both.split("/") for both in orders]
    return [pair(ab, ba, replace(CASE, id=f"q{i}")) for i, (ab, ba) in enumerate(split)]


def test_the_contracts_keys_come_first_and_in_order() -> None:
    names = "pairs valid a_wins b_wins ties inconsistent undecided unscored consistency first_position first_position_p"
    assert list(summarise_pairs(pairs("A/B", "A/A"), seed=0))[:12] == [*names.split(), "win_rate_a"]


def test_every_pair_is_counted_once_and_rates_are_taken_over_the_valid_ones() -> None:
    tree = summarise_pairs(pairs("A/B", "A/B", "A/B", "B/A", "t/t", "A/A", "B/B", "A/t", "A/x", "x/x"), seed=0)
    counts = ("pairs", "valid", "a_wins", "b_wins", "ties", "inconsistent", "undecided", "unscored")
    assert [tree[name] for name in counts] == [10, 8, 3, 1, 1, 3, 1, 1]
    # 3 + 1 + 1 of 8 pairs say the same in both orders
    assert value(tree, "consistency") == (5 / 8, 8)
    assert tree["consistency"]["method"] == "wilson"
    # 3 wins, and half of one tie and three inconsistent pairs: 5 of 8
    assert value(tree, "win_rate_a") == (5 / 8, 8)
    assert tree["win_rate_a"]["method"] == "bonett-price"
    assert tree["unscored_reasons"] == {"unreadable": 1}


def test_the_first_position_is_taken_over_full_reversals_and_a_one_sided_tie_only_leans() -> None:
    # Reversals: the first place four times, the second once. A tie with the first place: A/t and t/A; with the
    # second: B/t.
    tree = summarise_pairs(pairs("A/A", "A/A", "A/A", "A/A", "B/B", "A/t", "t/A", "B/t", "A/B", "t/t", "A/x"), seed=0)
    assert value(tree, "first_position") == (4 / 5, 5)
    assert tree["first_position"]["method"] == "clopper-pearson"
    # (1 + 5) / 32 at either end
    assert tree["first_position_p"] == pytest.approx(12 / 32)
    assert (tree["n_reversals"], tree["leans_first"], tree["leans_second"], tree["inconsistent"]) == (5, 2, 1, 8)


@pytest.mark.parametrize(
    ("orders", "leans"),
    [("A/t", (1, 0)), ("t/A", (1, 0)), ("B/t", (0, 1)), ("t/B", (0, 1)), ("A/A", (0, 0)), ("B/B", (0, 0)),
     ("t/t", (0, 0)), ("A/B", (0, 0)), ("t/x", (0, 0))],
)  # fmt: skip
def test_a_lean_is_towards_the_place_that_won_where_the_other_order_tied(orders: str, leans: tuple[int, int]) -> None:
    tree = summarise_pairs(pairs(orders), seed=0)
    assert (tree["leans_first"], tree["leans_second"]) == leans


@pytest.mark.parametrize(
    ("orders", "absent"),
    [
        pytest.param([], {"consistency", "first_position", "win_rate_a", "flip_rate"}, id="no pair"),
        pytest.param(["x/x", "A/x"], {"consistency", "first_position", "win_rate_a", "flip_rate"}, id="none valid"),
        pytest.param(["A/B", "A/t"], {"first_position", "flip_rate"}, id="no reversal"),
        pytest.param(["AA/AA"], set(), id="all there"),
    ],
)
def test_a_number_without_its_pairs_is_null_with_the_reason_beside_it(orders: list[str], absent: set[str]) -> None:
    tree = summarise_pairs(pairs(*orders), seed=0)
    names = ("consistency", "first_position", "win_rate_a", "flip_rate")
    assert {name for name in names if tree[name] is None} == absent
    assert {name.removesuffix("_reason") for name in tree if name.endswith("_reason")} == absent
    assert (tree["first_position_p"] is None) == ("first_position" in absent)


def test_what_cannot_be_read_is_counted_by_its_reason() -> None:
    reasons: list[UnscoredReason] = ["no_reply", "truncated", "no_reply"]
    rows = [PairRow(f"q{i}", "unscored", unscored_reason=reason) for i, reason in enumerate(reasons)]
    tree = summarise_pairs([*rows, *pairs("A/B", "A/x")], seed=0)
    assert (tree["unscored"], tree["unscored_reasons"]) == (3, {"no_reply": 2, "truncated": 1})


def test_the_flip_rate_is_a_mean_over_pairs_of_the_share_of_their_orders() -> None:
    # AB/BB: one of two orders flips, 1/2. AB/Bx: of the one order with both read, 1. AA/BB: 0. Ax/x: left out.
    tree = summarise_pairs(pairs("AB/BB", "AB/Bx", "AA/BB", "Ax/x"), seed=0)
    assert value(tree, "flip_rate") == (pytest.approx(1.5 / 3), 3)


def lengths(*won: tuple[str, int, int]) -> dict[str, Any]:
    """The numbers of pairs with (winning system or other outcome, characters of a, characters of b)."""
    rows = [
        PairRow(f"q{i}", outcome, n_characters_a=a, n_characters_b=b)  # type: ignore[arg-type]
        for i, (outcome, a, b) in enumerate(won)
    ]
    tree = summarise_pairs(rows, seed=0)["length"]
    assert isinstance(tree, dict)
    return tree


def test_length_is_that_of_the_winner_against_the_loser_over_won_pairs() -> None:
    tree = lengths(("a", 30, 10), ("b", 10, 20), ("b", 40, 10), ("a", 5, 5), ("a", 8, 0), ("tie", 1, 9),
                   ("inconsistent", 1, 9), ("undecided", 1, 9))  # fmt: skip
    # of four won pairs with different lengths the longer won three: 30 > 10, 20 > 10, 8 > 0, and not 10 < 40
    assert (tree["n"], tree["n_longer_won"]) == (4, 3)
    assert value(tree, "longer_won") == (3 / 4, 4)
    assert tree["longer_won"]["method"] == "wilson"
    # (1 + 4) / 16 at either end
    assert tree["longer_won_p"] == pytest.approx(10 / 16)
    # ratios 3, 2, 1/4 and 1; nothing is divided by the empty answer: the median is (1 + 2) / 2
    assert tree["median_ratio"] == 1.5


def test_without_a_won_pair_of_different_lengths_there_is_no_share_of_the_longer() -> None:
    tree = lengths(("a", 5, 5), ("tie", 1, 9))
    assert (tree["n"], tree["longer_won"], tree["longer_won_p"], tree["median_ratio"]) == (0, None, None, 1.0)
    assert "different lengths" in tree["longer_won_reason"]
    assert lengths(("a", 5, 0))["median_ratio"] is None


def test_types_stand_apart() -> None:
    fact, untyped = replace(CASE, type="fact"), replace(CASE, type=None)
    rows = [pair("A", "B"), pair("A", "A"), pair("x", "x"), pair("B", "A", fact), pair("t", "t", untyped)]
    assert summarise_pairs(rows, seed=0)["by_type"] == {
        "policy": {"n": 3, "a_wins": 1, "b_wins": 0, "ties": 0, "inconsistent": 1},
        "fact": {"n": 1, "a_wins": 0, "b_wins": 1, "ties": 0, "inconsistent": 0},
        "untyped": {"n": 1, "a_wins": 0, "b_wins": 0, "ties": 1, "inconsistent": 0},
    }


# --- what must not matter -----------------------------------------------------------------------------------------

VOTES = st.text(alphabet="ABtx", min_size=1, max_size=3)
ANSWERS = st.tuples(st.text(max_size=8), st.text(max_size=8))
PAIRS = st.lists(st.tuples(VOTES, VOTES, ANSWERS, st.sampled_from(["fact", "policy", None])), max_size=40)


def judged(drawn: Sequence[tuple[str, str, tuple[str, str], str | None]], swapped: bool = False) -> list[PairRow]:
    """The rows of drawn pairs; swapped, the same replies with the systems called the other way round."""
    rows = []
    for i, (ab, ba, (a, b), kind) in enumerate(drawn):
        case = Case(f"q{i}", "?", kind)
        rows.append(pair(ba, ab, case, b, a) if swapped else pair(ab, ba, case, a, b))
    return rows


@given(PAIRS)
def test_calling_the_systems_the_other_way_round_mirrors_the_rows(drawn: list[Any]) -> None:
    for row, swapped in zip(judged(drawn), judged(drawn, swapped=True), strict=True):
        assert swapped.outcome == SWAPPED.get(row.outcome, row.outcome)
        assert (swapped.order_ab, swapped.order_ba) == (
            SWAPPED.get(row.order_ba or ""),
            SWAPPED.get(row.order_ab or ""),
        )


@given(PAIRS)
def test_calling_the_systems_the_other_way_round_mirrors_the_win_rate_and_keeps_all_that_is_of_the_judge(
    drawn: list[Any],
) -> None:
    found, swapped = summarise_pairs(judged(drawn), seed=0), summarise_pairs(judged(drawn, swapped=True), seed=0)
    assert (found["a_wins"], found["b_wins"]) == (swapped["b_wins"], swapped["a_wins"])
    kept = "pairs valid ties inconsistent undecided unscored consistency first_position first_position_p"
    for name in f"{kept} leans_first leans_second n_reversals flip_rate length".split():
        assert found[name] == swapped[name], name
    if found["win_rate_a"] is None:
        assert swapped["win_rate_a"] is None
        return
    ours, theirs = found["win_rate_a"], swapped["win_rate_a"]
    assert (ours["value"], ours["low"], ours["high"]) == pytest.approx(
        (1 - theirs["value"], 1 - theirs["high"], 1 - theirs["low"]), abs=1e-12
    )


@given(PAIRS, st.randoms(use_true_random=False))
def test_neither_the_order_of_the_rows_nor_their_ids_matter(drawn: list[Any], random: Any) -> None:
    rows = judged(drawn)
    moved = [replace(row, id=f"other-{row.id}", question_sha256="0") for row in rows]
    random.shuffle(moved)
    assert summarise_pairs(moved, seed=0) == summarise_pairs(rows, seed=0)


@given(PAIRS)
def test_the_counts_add_up_and_inconsistent_pairs_are_reversals_or_lean(drawn: list[Any]) -> None:
    tree = summarise_pairs(judged(drawn), seed=0)
    assert tree["valid"] == tree["a_wins"] + tree["b_wins"] + tree["ties"] + tree["inconsistent"]
    assert tree["pairs"] == tree["valid"] + tree["undecided"] + tree["unscored"]
    assert tree["inconsistent"] == tree["n_reversals"] + tree["leans_first"] + tree["leans_second"]
    assert tree["unscored"] == sum(tree["unscored_reasons"].values())
    for name in ("a_wins", "b_wins", "ties", "inconsistent"):
        assert tree[name] == sum(of_type[name] for of_type in tree["by_type"].values())
    assert tree["pairs"] == sum(of_type["n"] for of_type in tree["by_type"].values())


def test_a_judge_that_only_knows_places_gives_nobody_a_win() -> None:
    tree = summarise_pairs(pairs(*["A/A"] * 12), seed=0)
    assert value(tree, "win_rate_a") == (0.5, 12)
    assert value(tree, "consistency") == (0.0, 12)
    assert value(tree, "first_position") == (1.0, 12)
    # twelve of twelve: 1/2^12 at either end
    assert tree["first_position_p"] == pytest.approx(2 / 4096)
