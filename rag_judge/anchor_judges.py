"""What each judge said of its anchors, before and now: counts, tests and what is to be said of them. Pure.

The rules themselves are in `anchor_rule`; what they come to over all judges is in `anchors`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_judge.anchor_rule import (
    ALPHA,
    ROUNDING,
    Counts,
    has_moved,
    has_moved_anyway,
    has_scattered,
    scatter_p,
    smallest_net,
)
from rag_judge.judge_effects import Drift, drift
from rag_judge.paired import holm, mcnemar_p
from rag_judge.records import CaseRow
from rag_judge.summary import put

Note = Mapping[str, Any]  # a code of `anchor_words` with its values
Pair = tuple[CaseRow, CaseRow]  # one anchor, before and now


@dataclass(frozen=True, slots=True)
class JudgeOnAnchors:
    """One judge on its anchors, before and now."""

    model: str | None
    counts: Counts
    drift: Drift
    p_holm: float
    scatter_p: float
    smallest_detectable: float | None
    alarm: Note | None  # why it is drifting
    remarks: tuple[Note, ...] = ()

    def tree(self) -> dict[str, Any]:
        """Its numbers as `anchors.json` holds them."""
        counts, has_any = self.counts, self.counts.n > 0
        tree: dict[str, Any] = {"model": self.model, "n": counts.n, "n_open": counts.n_open}
        tree |= {"gained": counts.gained, "lost": counts.lost}
        put(tree, "agreement", self.drift.agreement)
        put(tree, "net", self.drift.net)
        tree["p_value"] = self.drift.p_value if has_any else None
        tree["p_holm"] = self.p_holm if has_any else None
        tree["flip_rate"] = counts.flip_rate
        if counts.flip_rate is None:
            tree["flip_rate_reason"] = "no anchor was judged twice in one run"
        tree["excess_disagreement"] = self.drift.excess_disagreement
        tree["scatter_p"] = self.scatter_p if has_any and counts.n_twice else None
        tree["smallest_detectable"] = self.smallest_detectable
        put(tree, "sensitivity_change", self.drift.sensitivity_change)
        put(tree, "specificity_change", self.drift.specificity_change)
        return tree


@dataclass(frozen=True, slots=True)
class About:
    """What the numbers of every judge need beside its verdicts."""

    human: Mapping[str, bool | None]
    tolerance: float
    n_planned: int | None  # anchors that the next check has, where this one has no reference
    flips: Counts  # of tonight alone, for that
    is_unread: bool


def judged(
    pairs: Sequence[Pair], models: Sequence[str], about: About
) -> tuple[JudgeOnAnchors, tuple[JudgeOnAnchors, ...]]:
    """What the judges together said, before and now, and what each of several did; Holm's p-values are over these."""
    whole = [(one.judge_pass, other.judge_pass) for one, other in pairs]
    by_model = _by_model(pairs) if len(models) > 1 else {}
    said = by_model or {models[0] if models else "": whole}
    counts = {model: _counts(pairs, verdicts) if pairs else about.flips for model, verdicts in said.items()}
    adjusted = holm({model: mcnemar_p(one.gained, one.lost) for model, one in counts.items()})
    judges = tuple(
        _one(model, pairs, said[model], counts[model], adjusted[model] or 0.0, len(said), about) for model in said
    )
    if not by_model:
        return judges[0], judges
    all_counts = _counts(pairs, whole) if pairs else about.flips
    p = mcnemar_p(all_counts.gained, all_counts.lost)
    return replace(_one("", pairs, whole, all_counts, p, 1, about), alarm=None, remarks=()), judges


def _by_model(pairs: Sequence[Pair]) -> dict[str, list[tuple[bool | None, bool | None]]]:
    """The verdicts of each judge that a panel had before and has now."""
    said = [[{} if row.judges is None else json.loads(row.judges) for row in pair] for pair in pairs]
    models = dict.fromkeys(model for one, other in said for model in other if model in one)
    return {
        model: [(one.get(model, {}).get("pass"), other.get(model, {}).get("pass")) for one, other in said]
        for model in models
    }


def _counts(pairs: Sequence[Pair], verdicts: Sequence[tuple[bool | None, bool | None]]) -> Counts:
    """What changed. Of a panel the flips are those of any of its judges, so more than each one's."""
    flips = [row.flipped for pair in pairs for row in pair if row.flipped is not None]
    read = [(one, other) for one, other in verdicts if one is not None and other is not None]
    gained, lost = read.count((False, True)), read.count((True, False))
    return Counts(len(read), gained, lost, len(verdicts) - len(read), sum(flips), len(flips))


def _one(
    model: str,
    pairs: Sequence[Pair],
    verdicts: Sequence[tuple[bool | None, bool | None]],
    counts: Counts,
    p: float,
    n_judges: int,
    about: About,
) -> JudgeOnAnchors:
    human = [about.human.get(row.id) for row, _ in pairs]
    moved = drift([one for one, _ in verdicts], [other for _, other in verdicts], human, counts.flip_rate)
    named = {"model": model} if n_judges > 1 else {}
    alarm, remarks = _notes(counts, p, n_judges, about) if about.n_planned is None else (None, [])
    n = counts.n if about.n_planned is None else about.n_planned
    return JudgeOnAnchors(
        model or None,
        counts,
        moved,
        p,
        scatter_p(counts, about.tolerance),
        smallest_net(n, counts.flip_rate, n_judges),
        None if alarm is None else {**alarm, **named},
        tuple({**note, **named} for note in remarks),
    )


def _notes(counts: Counts, p: float, n_judges: int, about: About) -> tuple[Note | None, list[Note]]:
    """Why the judge is drifting, by which rule, and what else is to be said of its change.

    Where too little was read, that alone is an alarm which the missing verdicts could not undo.
    """
    flips, of_flips = counts.flip_rate or 0.0, scatter_p(counts, about.tolerance)
    of_net = {"net": counts.net, "n": counts.n, "p": p, "tolerance": about.tolerance}
    of_scatter = {"n_changed": counts.gained + counts.lost, "n": counts.n, "share": counts.share, "flip": flips}
    of_scatter |= {"expected": flips * counts.n, "p": of_flips}
    remarks: list[Note] = [{"code": "one_repeat"}] if counts.flip_rate is None else []
    if about.is_unread:
        is_certain = has_moved_anyway(counts, about.tolerance, n_judges)
        return {"code": "net", **of_net} if is_certain else None, remarks
    if has_moved(counts, p, about.tolerance):
        return {"code": "net", **of_net}, remarks
    if has_scattered(counts, about.tolerance, n_judges):
        return {"code": "scatter", **of_scatter}, remarks
    if p < ALPHA:
        is_small = abs(counts.net) <= about.tolerance + ROUNDING
        remarks.append({"code": "within_tolerance" if is_small else "within_flips", **of_net})
    elif of_flips * n_judges < ALPHA:
        remarks.append({"code": "scatters", **of_scatter})
    return None, remarks
