"""Two systems' answers to one question, judged in both orders → `PairRow`; pair rows → the numbers of a comparison.

A judge leans towards a place, so only what both orders say alike is a win or a tie. Places (first, second answer
shown) become systems here and nowhere else. No reply is read, no file written, nothing asked; and no time, path or
run name stands in the numbers, nor does the order of the rows matter to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Literal

from rag_judge.cases import question_hash
from rag_judge.estimates import exact_p, exact_share, mean_in_unit, rate, win_rate
from rag_judge.records import Answer, Case, Decision, PairOutcome, PairRow
from rag_judge.summary import put

Tree = dict[str, Any]
Winner = Literal["a", "b", "tie"]
# What the judge names is a place; which system stood there depends on the order.
SYSTEMS_AB: Mapping[str, Winner] = {"A": "a", "B": "b", "tie": "tie"}
SYSTEMS_BA: Mapping[str, Winner] = {"A": "b", "B": "a", "tie": "tie"}


def pair_row(
    case: Case, decision_ab: Decision, decision_ba: Decision, answer_a: Answer, answer_b: Answer, field: str
) -> PairRow:
    """The row of one pair from what the repeats of each order decide of `field`, whose values are A, B and tie.

    Half a swap decides nothing: with one order undecided or never read, the pair is undecided. Raises KeyError for
    another value of the field.
    """
    order_ab = _winner(decision_ab, field, SYSTEMS_AB)
    order_ba = _winner(decision_ba, field, SYSTEMS_BA)
    is_unscored = decision_ab.unscored and decision_ba.unscored
    return PairRow(
        id=case.id,
        outcome="unscored" if is_unscored else _outcome(order_ab, order_ba),
        order_ab=order_ab,
        order_ba=order_ba,
        n_votes_ab=decision_ab.n_votes,
        n_votes_ba=decision_ba.n_votes,
        type=case.type,
        unscored_reason=decision_ba.unscored_reason or decision_ab.unscored_reason if is_unscored else None,
        n_planned=decision_ab.n_planned,
        n_asked_ab=decision_ab.n_asked,
        n_asked_ba=decision_ba.n_asked,
        flipped_ab=decision_ab.flipped,
        flipped_ba=decision_ba.flipped,
        n_characters_a=len(answer_a.answer or ""),
        n_characters_b=len(answer_b.answer or ""),
        reason_ab=decision_ab.reason,
        reason_ba=decision_ba.reason,
        question_sha256=question_hash(case),
    )


def _winner(decision: Decision, field: str, systems: Mapping[str, Winner]) -> Winner | None:
    place = decision.values[field]
    return None if place is None else systems[str(place)]


def _outcome(order_ab: Winner | None, order_ba: Winner | None) -> PairOutcome:
    if order_ab is None or order_ba is None:
        return "undecided"
    return order_ab if order_ab == order_ba else "inconsistent"


def summarise_pairs(rows: Sequence[PairRow], seed: int) -> Tree:
    """The numbers of a comparison. Valid are the pairs with both orders decided; the others are counted, no more.

    `seed` is for the interval of the flip rate. A full reversal names a winner in both orders, and not the same
    system: the judge chose the place. With a tie in one order it only leans there, which is reported, not tested.
    """
    n = Counter(row.outcome for row in rows)
    n_consistent = n["a"] + n["b"] + n["tie"]
    valid = n_consistent + n["inconsistent"]
    orders = Counter((row.order_ab, row.order_ba) for row in rows)
    n_first = orders["a", "b"]
    n_reversals = n_first + orders["b", "a"]
    nothing = "no pair has both orders decided"
    tree: Tree = {"pairs": len(rows), "valid": valid}
    tree |= _ends(n) | {"undecided": n["undecided"], "unscored": n["unscored"]}
    put(tree, "consistency", rate(n_consistent, valid, nothing=nothing))
    put(tree, "first_position", exact_share(n_first, n_reversals, nothing="no pair was reversed by its order"))
    tree["first_position_p"] = exact_p(n_first, n_reversals)
    put(tree, "win_rate_a", win_rate(n["a"], n["b"], valid, nothing=nothing))
    tree |= {
        "leans_first": orders["a", "tie"] + orders["tie", "b"],
        "leans_second": orders["b", "tie"] + orders["tie", "a"],
        "n_reversals": n_reversals,
    }
    reasons = Counter(row.unscored_reason for row in rows if row.unscored_reason is not None)
    tree["unscored_reasons"] = dict(sorted(reasons.items()))
    put(tree, "flip_rate", mean_in_unit(_flips(rows), seed, nothing="no order has its first two repeats read"))
    return tree | {"length": _length(rows), "by_type": _by_type(rows)}


def _ends(n: Mapping[PairOutcome, int]) -> dict[str, int]:
    """How the valid pairs ended."""
    return {"a_wins": n["a"], "b_wins": n["b"], "ties": n["tie"], "inconsistent": n["inconsistent"]}


def _flips(rows: Sequence[PairRow]) -> list[float]:
    """Per pair the share of its orders whose first two repeats differ, over the orders where both were read."""
    pairs = [[flip for flip in (row.flipped_ab, row.flipped_ba) if flip is not None] for row in rows]
    return [sum(flips) / len(flips) for flips in pairs if flips]


def _length(rows: Sequence[PairRow]) -> Tree:
    """How often the longer answer won. It shows no bias by itself: a longer answer may be the better one."""
    a_won = [(row.n_characters_a, row.n_characters_b) for row in rows if row.outcome == "a"]
    b_won = [(row.n_characters_b, row.n_characters_a) for row in rows if row.outcome == "b"]
    won = a_won + b_won  # (the winner's length, the loser's)
    n = sum(winner != loser for winner, loser in won)
    n_longer = sum(winner > loser for winner, loser in won)
    ratios = [winner / loser for winner, loser in won if loser > 0]
    tree: Tree = {"n": n, "n_longer_won": n_longer}
    put(tree, "longer_won", rate(n_longer, n, nothing="no pair with answers of different lengths was won"))
    return tree | {"longer_won_p": exact_p(n_longer, n), "median_ratio": median(ratios) if ratios else None}


def _by_type(rows: Sequence[PairRow]) -> Tree:
    types: Tree = {}
    for name in dict.fromkeys(row.type or "untyped" for row in rows):
        n = Counter(row.outcome for row in rows if (row.type or "untyped") == name)
        types[name] = {"n": n.total()} | _ends(n)
    return types
