"""People against each other on the same cases: how far they agree before anyone settles it, and where they differ.

Labels in, trees of numbers out, as `bias.json` holds them. An adjudicator's word never enters the agreement.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from rag_judge.agreement import (
    AlphaLevel,
    Confusion,
    cohen_kappa,
    gwet_ac1,
    krippendorff_alpha,
    raw_agreement,
    weighted_kappa,
)
from rag_judge.gold import ADJUDICATOR, Label, by_case, is_disputed, paired
from rag_judge.records import Estimate, NoEstimate, Value
from rag_judge.summary import put

Tree = dict[str, Any]
NO_PAIR = "no case has the answers of two annotators"


def annotator_names(labels: Sequence[Label]) -> list[str]:
    """Who labelled, the third reader apart."""
    return sorted({label.annotator for label in labels} - {ADJUDICATOR})


def annotator_agreement(labels: Sequence[Label], field: str, seed: int, levels: Sequence[int] | None = None) -> Tree:
    """How far annotators agree on a field; two of them on one case are a pair, and one who is unsure makes none.

    With more than two, each case counts once, its pairs sharing its weight: more people are not more cases. `levels`
    are all levels of a score, and make kappa a quadratic one.
    """
    pairs = list(paired(labels, field))
    n_pairs = Counter(case_id for case_id, _, _ in pairs)
    weights: dict[tuple[Value, Value], Fraction] = defaultdict(Fraction)  # exact: three thirds are one case
    for case_id, one, other in pairs:
        weights[one, other] += Fraction(1, n_pairs[case_id])
    met = defaultdict(float, {pair: float(weight) for pair, weight in weights.items()})
    tree: Tree = {"pairs": len(pairs), "cases": len(n_pairs)}
    same = float(sum(weight for (one, other), weight in weights.items() if one == other))
    put(tree, "agreement", raw_agreement(Confusion(same, 0, len(n_pairs) - same, 0, len(n_pairs))))
    if not pairs:
        tree["agreement_reason"] = NO_PAIR
        put(tree, "kappa", NoEstimate(NO_PAIR))
        put(tree, "ac1", NoEstimate(NO_PAIR))
    elif all(isinstance(value, bool) for pair in met for value in pair):
        cells = Confusion(met[True, True], met[True, False], met[False, True], met[False, False], len(n_pairs))
        put(tree, "kappa", cohen_kappa(cells, seed))
        put(tree, "ac1", gwet_ac1(cells, seed))
    else:
        known: Sequence[Value] = levels or sorted({value for pair in met for value in pair}, key=str)
        table = [[met[one, other] for other in known] for one in known]
        put(tree, "kappa", weighted_kappa(table, seed, "quadratic" if levels else "none"))
        put(tree, "ac1", NoEstimate("of yes and no answers alone"))
    put(tree, "alpha", _alpha(labels, field, seed, is_score=levels is not None))
    return tree


def _alpha(labels: Sequence[Label], field: str, seed: int, *, is_score: bool) -> Estimate | NoEstimate:
    names = annotator_names(labels)
    if len(names) < 2:
        return NoEstimate("fewer than two annotators")
    said = {label.key: value for label in labels if (value := label.values.get(field)) is not None}
    words = sorted({str(value) for value in said.values()})
    numbers = {key: float(value) if is_score else float(words.index(str(value))) for key, value in said.items()}
    level: AlphaLevel = "ordinal" if is_score else "nominal"
    cases = sorted({label.case_id for label in labels})
    return krippendorff_alpha([[numbers.get((case_id, name)) for case_id in cases] for name in names], seed, level)


def disagreements(labels: Sequence[Label], types: Mapping[str, str]) -> Tree:
    """By field, the cases on which annotators differ: how many, of which type, and how many a third reader settled.

    One who is unsure differs from one who is not. The cause is left out: nobody settles it.
    """
    found = by_case(labels)
    names = sorted({name for label in labels for name in label.values} - {"cause"})
    tree: Tree = {}
    for name in names:
        disputed = [case_id for case_id, of_case in found.items() if is_disputed(of_case, name)]
        if disputed:
            settled = sum(any(is_word_of_third(label, name) for label in found[case_id]) for case_id in disputed)
            by_type = Counter(types.get(case_id, "untyped") for case_id in disputed)
            tree[name] = {"n": len(disputed), "settled": settled, "by_type": dict(sorted(by_type.items()))}
    return tree


def is_word_of_third(label: Label, name: str) -> bool:
    """True for a third reader's label that answers this field."""
    return label.annotator == ADJUDICATOR and name in label.values
