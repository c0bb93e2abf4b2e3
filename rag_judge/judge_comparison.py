"""Two judges on the same answers, held against the same labels: which one is closer to people. Pure.

A case counts where both judges decided and people did. The test asks whether the two are right equally often; which
cases decide that is listed, because a handful of cases is read sooner than argued about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_judge.agreement import cohen_kappa, confusion, raw_agreement
from rag_judge.estimates import rate
from rag_judge.paired import Changes, changes, mcnemar_p
from rag_judge.planning import smallest_detectable_difference
from rag_judge.prediction_powered import weighted_bias
from rag_judge.records import NoEstimate
from rag_judge.summary import put

Tree = dict[str, Any]
MOST_LISTED = 50


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """One case with a label: what each judge decided of it, and people."""

    id: str
    a: bool | None
    b: bool | None
    human: bool | None
    probability: float | None  # with which it entered the review; None: not known


def compare_judges(cases: Sequence[JudgedCase], seed: int) -> Tree:
    """Agreement of each judge with people, their difference, and the cases that make it."""
    labelled = [case for case in cases if case.human is not None]
    both = [case for case in labelled if case.a is not None and case.b is not None]
    human = [case.human for case in both]
    tree: Tree = {"n_labelled": len(labelled), "n": len(both), "n_left_out": len(labelled) - len(both)}
    for side in ("a", "b"):
        verdicts = [getattr(case, side) for case in both]
        cells = confusion(verdicts, human)
        entry: Tree = {"confusion": {name: int(getattr(cells, name)) for name in ("tp", "fn", "fp", "tn")}}
        put(entry, "agreement", raw_agreement(cells))
        put(entry, "kappa", cohen_kappa(cells, seed))
        tree[side] = entry
    right_a, right_b = [case.a == case.human for case in both], [case.b == case.human for case in both]
    changed = changes(right_a, right_b)
    put(tree, "difference", changed.difference)
    put(tree, "weighted_difference", _weighted(both, right_a, right_b))
    tree |= {
        "p_value": mcnemar_p(changed.gained, changed.lost) if both else None,
        "smallest_detectable": _smallest(changed),
        "only_a_right": changed.lost,
        "only_b_right": changed.gained,
        "deciding_cases": [
            {"id": case.id, "human": case.human, "a": case.a, "b": case.b} for case in both if case.a != case.b
        ][:MOST_LISTED],
    }
    same = sum(case.a == case.b for case in cases if case.a is not None and case.b is not None)
    n = sum(case.a is not None and case.b is not None for case in cases)
    put(tree, "judges_agree", rate(same, n, nothing="no case was decided by both judges"))
    return tree


def _weighted(both: Sequence[JudgedCase], right_a: Sequence[bool], right_b: Sequence[bool]) -> Any:
    """The difference with each case weighing 1/probability: of all cases, where the sample was drawn by a verdict."""
    known = [case.probability for case in both if case.probability]
    if len(known) < len(both) or not both:
        return NoEstimate("some cases entered the review with unknown probability")
    if len(set(known)) == 1:
        return NoEstimate("all were drawn with one probability: the plain difference is it")
    found = weighted_bias([float(b) for b in right_b], [float(a) for a in right_a], known)
    return found if isinstance(found, NoEstimate) else found[0]


def _smallest(changed: Changes) -> float | None:
    share = changed.discordant_share
    return smallest_detectable_difference(changed.n, share) if share else None


def beside(summary: Mapping[str, Any], manifest: Mapping[str, Any]) -> Tree:
    """What stands beside a judge's closeness to people: its own flips, what it cost, and which judge it is."""
    judge = manifest.get("judge") or {}
    cost = manifest.get("cost") or {}
    return {
        "run_id": manifest.get("run_id"),
        "model": judge.get("model"),
        "prompt": [f"{p['name']} ({p['lang']}) {p['version'][:12]}" for p in manifest.get("prompts") or ()],
        "flip_rate": summary["judge"].get("flip_rate"),
        "undecided": summary["judge"].get("undecided"),
        "unscored": sum((summary["judge"].get("unscored") or {}).values()),
        "calls": cost.get("calls"),
        "usd": cost.get("usd"),
    }
