"""Case rows of a run with several judges → what each judge says, and how far they agree. One judge has no panel."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from rag_judge.estimates import rate
from rag_judge.records import CaseRow
from rag_judge.summary import put

Tree = dict[str, Any]


def summarise_panel(rows: Sequence[CaseRow], models: Sequence[str]) -> Tree:
    """Each judge's rates, the share of cases on which each two agree, and how many cases are worth a person's look.

    Two judges agree on a case when all that both decided is the same. Agreement is not accuracy: judges of one family
    err alike.
    """
    said = [json.loads(row.judges) for row in rows if row.judges is not None]
    pairs = []
    for first, second in combinations(models, 2):
        verdicts = [same for of_case in said if (same := _agree(of_case[first], of_case[second])) is not None]
        pair: Tree = {"a": first, "b": second}
        put(pair, "agreement", rate(sum(verdicts), len(verdicts), nothing="no case was decided by both judges"))
        pairs.append(pair)
    return {
        "judges": [{"model": model} | _rates([of_case[model] for of_case in said]) for model in models],
        "pairs": pairs,
        "n_disagree": sum(bool(row.judges_disagree) for row in rows),
        "disagree": [row.id for row in rows if row.judges_disagree],
    }


def _rates(decided: Sequence[Mapping[str, Any]]) -> Tree:
    """One judge's rates over the cases it was asked about, by pass and by each of its true/false fields."""
    tree: Tree = {"drawn": len(decided)}
    _put_share(tree, "pass", [of_case["pass"] for of_case in decided])
    names = dict.fromkeys(name for of_case in decided for name in of_case)
    for name in names:
        values = [of_case[name] for of_case in decided]
        if name not in ("pass", "undecided", "unscored") and any(isinstance(value, bool) for value in values):
            _put_share(tree, name, values)
    tree["undecided"] = sum(bool(of_case["undecided"]) for of_case in decided)
    reasons = Counter(of_case["unscored"] for of_case in decided if of_case["unscored"] is not None)
    return tree | {"unscored": dict(sorted(reasons.items()))}


def _put_share(tree: Tree, name: str, values: Sequence[bool | None]) -> None:
    known = [value for value in values if value is not None]
    put(tree, name, rate(sum(known), len(known), nothing="no case has this field decided"))


def _agree(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool | None:
    """Whether all that both decided of a case is the same; None where they share nothing decided."""
    shared = [
        name
        for name in first
        if name not in ("undecided", "unscored") and first[name] is not None and second.get(name) is not None
    ]
    return all(first[name] == second[name] for name in shared) if shared else None
