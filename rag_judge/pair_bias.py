"""The judge of a comparison held against people: winners by system, and what the place of an answer does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rag_judge.annotators import annotator_agreement
from rag_judge.bias import Tree, about_labels, probabilities_of, put_agreement
from rag_judge.gold import Label, by_case, gold
from rag_judge.records import PairRow
from rag_judge.review.design import Design

WINNERS = ("a", "b", "tie")
POSITION = (
    "first_position",
    "first_position_reason",
    "first_position_p",
    "leans_first",
    "leans_second",
    "consistency",
)


def pair_bias_tree(
    rows: Sequence[PairRow], labels: Sequence[Label], design: Design | None, pairwise: Mapping[str, Any], seed: int
) -> Tree:
    """All that the labels say of the judge of a comparison; winners are named by system.

    Agreement is over the pairs that the judge decided alike in both orders; those that it did not are counted.
    """
    found, ids = by_case(labels), [row.id for row in rows]
    people = annotator_agreement(labels, "winner", seed)
    tree = about_labels(labels, ids, design, {row.id: row.type or "untyped" for row in rows}, "winner", people)
    probabilities = probabilities_of(ids, found, design)
    said = {row.id: gold(found.get(row.id, ()), "winner") for row in rows}
    both = [
        (row.outcome, str(said[row.id]).lower(), probability)
        for row, probability in zip(rows, probabilities, strict=True)
        if row.outcome in WINNERS and said[row.id] is not None
    ]
    winner: Tree = {"n": len(both)}
    put_agreement(winner, both, WINNERS, seed, "none")
    winner["table"] = {f"judge_{j}": {h: sum((j, h) == (a, b) for a, b, _ in both) for h in WINNERS} for j in WINNERS}
    not_decided = Counter(row.outcome for row in rows if said[row.id] is not None and row.outcome not in WINNERS)
    winner["not_decided"] = dict(sorted(not_decided.items()))
    winner["n_open"] = sum(row.id in found and said[row.id] is None for row in rows)
    tree["fields"] = {"winner": winner}
    tree["position"] = {name: pairwise[name] for name in POSITION if name in pairwise}
    tree["verbosity"] = dict(pairwise.get("length", {}))
    return tree
