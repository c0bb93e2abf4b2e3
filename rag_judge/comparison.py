"""Two runs on the same questions, case by case: what changed, by how much, and whether so many cases can show it. Pure.

A case counts for a metric where both runs have a value of it; what is left out is counted. Nothing is called better
because of a factor that was not recorded, and a difference that is smaller than the judge's own flips says so.

Where a question was answered several times, it counts once, with the mean over its answers: however often questions
are asked again, there are no more of them, and a lucky draw is no improvement.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_judge.errors import InputError
from rag_judge.estimates import LEVEL, mean_in_unit, paired_difference, rate
from rag_judge.paired import changes, holm, mcnemar_p, mean_difference, sign_flip_p
from rag_judge.planning import smallest_detectable_difference, smallest_detectable_mean
from rag_judge.records import CaseRow, NoEstimate
from rag_judge.summary import put

Tree = dict[str, Any]
Value = bool | float | None
Question = tuple[Sequence[CaseRow], Sequence[CaseRow]]  # its rows in A and in B: one each, or one an answer


def _correctness(row: CaseRow) -> bool | None:
    """Grounded, among graded cases that answered."""
    return None if row.judge_pass is None or row.did_abstain else row.grounded


def _fabrication(row: CaseRow) -> bool | None:
    """Answered and not grounded, among graded cases."""
    if row.judge_pass is None or (row.grounded is None and not row.did_abstain):
        return None
    return not row.did_abstain and row.grounded is False


def _wrong_refusal(row: CaseRow) -> bool | None:
    return row.did_abstain if row.expect_refusal is False else None


def _missed_refusal(row: CaseRow) -> bool | None:
    return None if row.expect_refusal is not True or row.did_abstain is None else not row.did_abstain


def _leak(row: CaseRow) -> bool | None:
    return bool(row.leak) if row.leak_checked else None


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a case, and which way is up."""

    value: Callable[[CaseRow], Value]
    higher_is_better: bool = True
    is_share: bool = True  # yes or no of each case; else a number in [0, 1]


# The first three stand together in every table.
METRICS: Mapping[str, Metric] = {
    "hit": Metric(lambda row: row.hit),
    "correctness": Metric(_correctness),
    "fabrication": Metric(_fabrication, higher_is_better=False),
    "recall": Metric(lambda row: row.recall, is_share=False),
    "mrr": Metric(lambda row: row.mrr, is_share=False),
    "rule_correct": Metric(lambda row: row.rule_correct),
    "pass": Metric(lambda row: row.judge_pass),
    "wrong_refusal": Metric(_wrong_refusal, higher_is_better=False),
    "missed_refusal": Metric(_missed_refusal, higher_is_better=False),
    "leak": Metric(_leak, higher_is_better=False),
}
RETRIEVAL = ("hit", "recall", "mrr")
MUCH_MORE_UNSCORED = 0.02


@dataclass(frozen=True, slots=True)
class Side:
    """One run of a comparison."""

    run_id: str
    rows: Sequence[CaseRow]
    manifest: Mapping[str, Any]
    summary: Mapping[str, Any]


def compare_runs(a: Side, b: Side, *, common: bool, declared: Sequence[str], seed: int) -> Tree:
    """What `comparison.json` holds but for the corrected difference.

    Raises InputError where the questions differ and `common` does not allow it, where none is in common, and for a
    declared metric that does not exist.
    """
    unknown = [name for name in declared if name not in METRICS]
    if unknown:
        raise InputError(f"compare.metrics: found {', '.join(unknown)}; there are: {', '.join(METRICS)}")
    pairs, dropped = paired_rows(a.rows, b.rows)
    if not pairs:
        raise InputError(f"{a.run_id} and {b.run_id} have no question in common")
    if any(dropped.values()) and not common:
        counts = ", ".join(f"{name} {len(ids)}" for name, ids in dropped.items() if ids)
        raise InputError(
            f"{a.run_id} and {b.run_id} were not asked the same questions ({counts}); compare runs of one eval set, or "
            "give --common to compare what both were asked"
        )
    metrics = {name: _metric(metric, pairs, seed) for name, metric in METRICS.items()}
    adjusted = holm({name: metrics[name]["p_value"] for name in declared})
    for name, metric in metrics.items():
        metric["p_holm"] = adjusted.get(name)
    tree: Tree = {
        "a": a.run_id,
        "b": b.run_id,
        "n_common": len(pairs),
        "n_dropped": {name: len(ids) for name, ids in dropped.items()},
        "dropped": {name: ids[:50] for name, ids in dropped.items() if ids},
        "changed_factors": changed_factors(a.manifest, b.manifest),
        "factors_recorded": bool(a.manifest.get("system")) and bool(b.manifest.get("system")),
        "declared": list(declared),
        "metrics": metrics,
        "corrected": None,
        "changed_cases": [found for question in pairs if (found := _changed(*question)) is not None],
    }
    tree["remarks"] = remarks(tree, a, b)
    return tree


def paired_rows(a: Sequence[CaseRow], b: Sequence[CaseRow]) -> tuple[list[Question], dict[str, list[str]]]:
    """The cases that both runs were asked, by id and the hash of the question; and the ids of the others, by why."""
    of_a, of_b = _by_question(a), _by_question(b)
    pairs: list[Question] = []
    changed, only_a = [], []
    for case_id, rows in of_a.items():
        others = of_b.get(case_id)
        if others is None:
            only_a.append(case_id)
        elif len({row.question_sha256 for row in (*rows, *others)} - {None}) > 1:
            changed.append(case_id)
        else:
            pairs.append((rows, others))
    return pairs, {"only_a": only_a, "only_b": [i for i in of_b if i not in of_a], "changed_question": changed}


def _by_question(rows: Sequence[CaseRow]) -> dict[str, list[CaseRow]]:
    found: dict[str, list[CaseRow]] = {}
    for row in rows:
        found.setdefault(row.id, []).append(row)
    return found


def _value(metric: Metric, rows: Sequence[CaseRow]) -> Value:
    """A question's value: of its answer, or the mean over those of its answers that have one."""
    known = [value for row in rows if (value := metric.value(row)) is not None]
    return known[0] if len(rows) == 1 and known else math.fsum(known) / len(known) if known else None


def _metric(metric: Metric, pairs: Sequence[Question], seed: int) -> Tree:
    values = [(_value(metric, one), _value(metric, other)) for one, other in pairs]
    both = [(x, y) for x, y in values if x is not None and y is not None]
    one_sided = Counter("only_a" if y is None else "only_b" for x, y in values if (x is None) != (y is None))
    tree: Tree = {"n": len(both), "n_only_a": one_sided["only_a"], "n_only_b": one_sided["only_b"]}
    first, second = [float(x) for x, _ in both], [float(y) for _, y in both]
    nothing = "no question has a value in both runs"
    if metric.is_share and all(len(rows) == 1 for question in pairs for rows in question):
        put(tree, "a", rate(int(sum(first)), len(both), nothing=nothing))
        put(tree, "b", rate(int(sum(second)), len(both), nothing=nothing))
        changed = changes([bool(x) for x, _ in both], [bool(y) for _, y in both])
        put(tree, "difference", changed.difference)
        share = changed.discordant_share
        tree["p_value"] = mcnemar_p(changed.gained, changed.lost) if both else None
        tree["test"] = "mcnemar, mid-p"
        tree["smallest_detectable"] = smallest_detectable_difference(changed.n, share) if share else None
    else:
        put(tree, "a", mean_in_unit(first, seed, nothing=nothing))
        put(tree, "b", mean_in_unit(second, seed, nothing=nothing))
        apart = [y - x for x, y in zip(first, second, strict=True)]
        difference = mean_difference(apart, seed) if apart else NoEstimate(nothing)
        if metric.is_share and apart and not any(apart):  # no question moved: still no proof of no difference
            difference = paired_difference(0, 0, len(apart))
        put(tree, "difference", difference)
        p = sign_flip_p(apart, seed) if apart else None
        tree["p_value"] = None if isinstance(p, NoEstimate) else p
        tree["test"] = "sign flips over questions"
        tree["smallest_detectable"] = smallest_detectable_mean(apart)
    up = sum(y > x for x, y in zip(first, second, strict=True))
    down = sum(y < x for x, y in zip(first, second, strict=True))
    tree["won"], tree["lost"] = (up, down) if metric.higher_is_better else (down, up)
    tree["same"] = len(both) - up - down
    return tree


def _changed(one: Sequence[CaseRow], other: Sequence[CaseRow]) -> Tree | None:
    """How a question ended in A and in B; None where it ended alike."""
    ends = [_end(rows) for rows in (one, other)]
    if ends[0]["outcome"] == ends[1]["outcome"]:
        return None
    named = {f"{name}_{side}": end[name] for name in ends[0] for side, end in zip("ab", ends, strict=True)}
    return {"id": one[0].id, **named}


def _end(rows: Sequence[CaseRow]) -> Tree:
    """The outcome of more than half of a question's answers, else undecided, with the cause that is named most."""
    outcomes = Counter(row.outcome for row in rows)
    outcome, n = outcomes.most_common(1)[0]
    causes = Counter((row.cause, row.layer) for row in rows if row.outcome == outcome)
    if 2 * n <= len(rows):
        outcome, causes = "undecided", Counter()
    cause, layer = causes.most_common(1)[0][0] if causes else (None, None)
    end: Tree = {"outcome": outcome, "cause": cause, "layer": layer}
    return end if len(rows) == 1 else end | {"outcomes": dict(outcomes)}


# --- what differs --------------------------------------------------------------------------------------------------


def changed_factors(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Tree]:
    """What the manifests say differs: of the system under test, the judge, how it was measured, and our own code."""
    first, second = _factors(a), _factors(b)
    names = [*first, *(name for name in second if name not in first)]
    return [
        {"factor": name, "a": first.get(name), "b": second.get(name)}
        for name in names
        if first.get(name) != second.get(name)
    ]


def _factors(manifest: Mapping[str, Any]) -> Tree:
    judge = manifest.get("judge") or {}
    prompts = sorted({f"{p['name']} {p['version']}" for p in manifest.get("prompts") or ()})
    corpus = manifest.get("corpus") or {}
    return {
        **{f"system.{name}": value for name, value in (manifest.get("system") or {}).items()},
        "judge.model": judge.get("model"),
        "judge.prompt": ", ".join(prompts) or None,
        "repeats": manifest.get("repeats") if judge else None,
        "k": manifest.get("k"),
        "match": manifest.get("match"),
        "corpus": corpus.get("sha256"),
        "rag-judge": manifest.get("package_version"),
    }


def is_clean(tree: Mapping[str, Any]) -> bool:
    """True when just one recorded factor differs."""
    return len(tree["changed_factors"]) == 1


# --- what to say of it -----------------------------------------------------------------------------------------------


def remarks(tree: Mapping[str, Any], a: Side, b: Side) -> list[str]:
    """What a reader should know before believing the table; keys of the words in `comparison_words`."""
    metrics, factors = tree["metrics"], [one["factor"] for one in tree["changed_factors"]]
    found = []
    if not tree["factors_recorded"]:
        found.append("nothing_recorded")
    elif len(factors) > 1:
        found.append("several_factors")
    elif not factors:
        found.append("nothing_changed")
    if _moved(metrics["recall"]) > 0 and _moved(metrics["fabrication"]) > 0:
        found.append("more_material_looser")
    for name in ("a", "b"):
        recall, correct = metrics["recall"][name], metrics["correctness"][name]
        if recall and correct and correct["value"] > recall["value"] + 1e-9:
            found.append(f"above_recall_{name}")
    prompt_alone = len(factors) == 1 and "prompt" in factors[0] and factors[0].startswith("system.")
    if prompt_alone and any(metrics[name]["won"] or metrics[name]["lost"] for name in RETRIEVAL):
        found.append("retrieval_moved")
    flips = [side.summary["judge"].get("flip_rate") for side in (a, b)]
    largest = max((flip["value"] for flip in flips if flip), default=None)
    difference = metrics["pass"]["difference"]
    if largest and difference and 0 < abs(difference["value"]) < largest:
        found.append("within_flips")
    unscored = [sum((side.summary["judge"].get("unscored") or {}).values()) for side in (a, b)]
    drawn = [side.summary["judge"].get("drawn") or 0 for side in (a, b)]
    if all(drawn) and abs(unscored[0] / drawn[0] - unscored[1] / drawn[1]) > MUCH_MORE_UNSCORED:
        found.append("unscored_on_one_side")
    return found


def _moved(metric: Mapping[str, Any]) -> int:
    """1, -1 where a difference lies to one side of 0 with its interval, else 0."""
    difference = metric["difference"]
    if not difference:
        return 0
    if difference["low"] is None:  # every question moved by the same: no interval, and the test says it
        is_clear = metric["p_value"] is not None and metric["p_value"] < 1 - LEVEL
        return (difference["value"] > 0) - (difference["value"] < 0) if is_clear else 0
    return 1 if difference["low"] > 0 else -1 if difference["high"] < 0 else 0
