"""What changed from one run to the next, as marks, and which metrics' lines each kind of change cuts. Pure.

Manifests alone say what changed, and the anchors of a night whether its judge moved by itself. A server that names no
model, and a run that sent nothing, say nothing of a change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rag_judge.trend_values import METRICS, TrendRun, is_embedded, is_judged, judges_of

Tree = Mapping[str, Any]
Kind = Literal["judge", "prompt", "anchors", "judged", "reference", "eval_set", "k", "system", "program"]
Factors = Mapping[tuple[Kind, str], str | None]
JUDGE_KINDS: tuple[Kind, ...] = ("judge", "prompt", "anchors")
# What cuts a metric's line; `system` and `program` cut none: they are what a trend is for.
CUTS: Mapping[str, tuple[Kind, ...]] = {
    "end_to_end": (*JUDGE_KINDS, "judged", "eval_set"),
    **dict.fromkeys(("pass_corrected", "pass", "correctness", "fabrication"), (*JUDGE_KINDS, "eval_set")),
    **dict.fromkeys(("flip_rate", "agreement_people"), (*JUDGE_KINDS, "eval_set")),
    "agreement_anchors": (*JUDGE_KINDS, "reference"),
    **dict.fromkeys(("rule_correct", "missed_refusal", "wrong_refusal", "leaks", "cost"), ("eval_set",)),
    **dict.fromkeys(("hit", "recall", "mrr"), ("eval_set", "k")),
}
MOVED = ("changed", "drifting")
SAID_BY_SERVER = ("judge.models_reported", "judge.temperature")
HASH_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing that changed between a run and the one before it; None: not recorded, or not there."""

    kind: Kind
    factor: str
    before: str | None
    after: str | None

    @property
    def breaks(self) -> tuple[str, ...]:
        """The metrics whose lines end here."""
        return tuple(name for name in METRICS if self.kind in CUTS[name])


def marks_of(nights: Sequence[TrendRun]) -> list[tuple[Mark, ...]]:
    """Per run, in the order of time, what changed since the one before; of the judge, since the last judged run."""
    found: list[tuple[Mark, ...]] = []
    judged: TrendRun | None = None
    for i, run in enumerate(nights):
        marks = [] if i == 0 else _unjudged_marks(nights[i - 1], run)
        if is_judged(run.manifest):
            if judged is not None:
                of_judge = judge_marks(judged, run)
                marks += [*of_judge, *_anchor_marks(judged, run, was_changed=bool(of_judge))]
            judged = run
        found.append(tuple(marks))
    return found


def judge_marks(before: TrendRun, after: TrendRun) -> list[Mark]:
    """What differs between the judges of two runs and what they were asked."""
    return _differing(_judge_factors(before.manifest), _judge_factors(after.manifest))


def measured_alike(before: TrendRun, after: TrendRun, metric: str) -> bool:
    """False when eval set, cut or reference differ in a way that bears on a metric. The judge is not looked at."""
    marks = [*_unjudged_marks(before, after), *_reference_marks(before, after)]
    return not any(mark.kind in CUTS[metric] and mark.kind != "judged" for mark in marks)


def _unjudged_marks(before: TrendRun, after: TrendRun) -> list[Mark]:
    one, other = before.manifest, after.manifest
    marks = [*_eval_marks(one, other), *_differing(_factors(one), _factors(other))]
    states = [_state(tree) for tree in (one, other)]
    return marks if states[0] == states[1] else [*marks, Mark("judged", "judge", *states)]


def _state(manifest: Tree) -> str:
    return "embedded" if is_embedded(manifest) else "judge" if is_judged(manifest) else "none"


def _differing(before: Factors, after: Factors) -> list[Mark]:
    keys = [*before, *(key for key in after if key not in before)]
    return [
        Mark(*key, before.get(key), after.get(key))
        for key in keys
        if before.get(key) != after.get(key)
        and not (key[1] in SAID_BY_SERVER and None in (before.get(key), after.get(key)))
    ]


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str, sort_keys=True)


def _factors(manifest: Tree) -> dict[tuple[Kind, str], str | None]:
    """What a run was made of and measured with, the judge apart."""
    corpus, system = manifest.get("corpus") or {}, manifest.get("system") or {}
    found: dict[tuple[Kind, str], str | None] = {("system", f"system.{k}"): _text(v) for k, v in system.items()}
    return found | {
        ("system", "corpus"): _text(corpus.get("sha256")),
        ("k", "k"): _text(manifest.get("k")),
        ("k", "match"): _text(manifest.get("match")),
        ("program", "rag-judge"): _text(manifest.get("package_version")),
    }


def _judge_factors(manifest: Tree) -> dict[tuple[Kind, str], str | None]:
    judges = judges_of(manifest)
    reported = [str(name) for judge in judges for name in judge.get("models_reported") or ()]
    prompts = {_prompt_text(prompt) for prompt in manifest.get("prompts") or ()}
    temperatures = [_temperature(judge) for judge in judges]
    return {
        ("judge", "judge.model"): ", ".join(str(judge.get("model")) for judge in judges) or None,
        ("judge", "judge.models_reported"): ", ".join(reported) or None,
        ("judge", "judge.temperature"): "; ".join(temperatures) if all(temperatures) else None,
        ("judge", "judge.fallbacks"): _joined(sorted({str(t) for j in judges for t in j.get("fallbacks") or ()})),
        ("judge", "judge.repeats"): _text(manifest.get("repeats")),
        ("judge", "judge.vary"): _text(manifest.get("vary")),
        ("prompt", "judge.prompt"): _joined(sorted(prompts)),
    }


def _joined(texts: Sequence[str]) -> str | None:
    return "; ".join(texts) or None


def _prompt_text(prompt: Tree) -> str:
    return f"{prompt.get('name')} {prompt.get('lang')} {prompt.get('version')}"


def _temperature(judge: Tree) -> str:
    """The temperatures that a judge really was sent, or else was asked for; empty where neither is known."""
    parameters = judge.get("parameters") or {}
    sent = parameters.get("sent") or parameters.get("asked") or ()
    trees = [sent] if isinstance(sent, Mapping) else sent
    return ", ".join(sorted({str(tree.get("temperature", "not sent")) for tree in trees}))


def _eval_marks(before: Tree, after: Tree) -> list[Mark]:
    """Whether the cases as used differ; without both snapshots' hashes, the files' decide."""
    one, other = before.get("eval_set") or {}, after.get("eval_set") or {}
    key = "snapshot_sha256" if one.get("snapshot_sha256") and other.get("snapshot_sha256") else "sha256"
    if one.get(key) == other.get(key):
        return []
    return [Mark("eval_set", "eval_set", *(_eval_text(tree, key) for tree in (one, other)))]


def _eval_text(eval_set: Tree, key: str) -> str | None:
    if not eval_set.get(key):
        return None
    return f"{str(eval_set[key])[:HASH_SHOWN]} (n = {eval_set.get('n')})"


def _anchor_marks(before: TrendRun, after: TrendRun, *, was_changed: bool) -> list[Mark]:
    """The anchors' verdict that the judge moved, and a change of the run that they are held against."""
    one, other = before.anchors or {}, after.anchors or {}
    verdict = other.get("verdict")
    # A judge that was changed is told "changed" every night until it has a reference of its own: one change, one mark.
    is_told = verdict == "changed" and all(one.get(k) == other.get(k) for k in ("verdict", "reference", "changed"))
    found = _reference_marks(before, after)
    if verdict in MOVED and (was_changed or not is_told):
        found.insert(0, Mark("anchors", "anchors.verdict", _text(one.get("verdict")), _text(verdict)))
    return found


def _reference_marks(before: TrendRun, after: TrendRun) -> list[Mark]:
    one, other = ((run.anchors or {}).get("reference") for run in (before, after))
    return [Mark("reference", "anchors.reference", _text(one), _text(other))] if one and other and one != other else []
