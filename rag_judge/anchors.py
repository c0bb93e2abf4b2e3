"""The judge held against its anchors: a frozen set of questions with answers, graded again and compared with before.

Pure: case rows and manifests of two runs in, an `AnchorCheck` out; no judge is asked here (`pipeline.anchors` does).
When a judge counts as drifting is in `anchor_rule`. Where what was asked of it, or what its server calls it, is
otherwise, it has changed, whatever its numbers are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rag_judge.agreement import confusion, raw_agreement
from rag_judge.anchor_judges import About, JudgeOnAnchors, Note, Pair, judged
from rag_judge.anchor_rule import TOLERANCE, Counts, fewest_anchors
from rag_judge.anchor_words import note_text
from rag_judge.errors import InputError
from rag_judge.records import Answer, Case, CaseRow, Estimate, NoEstimate
from rag_judge.rows import kind_of
from rag_judge.summary import put

Tree = Mapping[str, Any]
AnchorVerdict = Literal["first", "same", "changed", "drifting", "unknown"]

MOST_UNREAD = 0.10  # share of the anchors that may lack a verdict in either run
# What is sent beside these is a factor of its own; the fallbacks say what of it a server refused.
TOLD_ELSEWHERE = frozenset({"model", "seed", "refused", "system_role", "response_format", "enable_thinking"})
TOLD_ELSEWHERE |= {"stream", "stream_options"}
HASH_SHOWN = 12
LABELS = frozenset({"passed", "grounded", "complete", "should_abstain", "did_abstain"})


@dataclass(frozen=True, slots=True)
class AnchorRun:
    """One run of the anchors: what it was made with, its rows, and what each anchor was (`anchor_hash`)."""

    run_id: str
    manifest: Tree
    rows: Sequence[CaseRow]
    hashes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AnchorCheck:
    """Whether the judge is still what it was, as far as its anchors show."""

    verdict: AnchorVerdict
    why: Note | None
    reference: str | None
    anchors_run: str
    n_anchors: int
    n_read: int  # with a verdict now
    tolerance: float
    changed: tuple[Tree, ...]  # of the judge: factor, before, now
    left_out: Mapping[str, tuple[str, ...]]  # edited, added and removed anchors
    whole: JudgeOnAnchors  # what all judges together decided; of a panel nothing alarms by it
    judges: tuple[JudgeOnAnchors, ...]
    people_before: Estimate | NoEstimate  # agreement with the anchors' labels
    people_now: Estimate | NoEstimate
    remarks: tuple[Note, ...]

    @property
    def is_drifting(self) -> bool:
        """True when a judge's verdicts have moved, also where it is told as changed."""
        return any(judge.alarm is not None for judge in self.judges)

    def tree(self) -> dict[str, Any]:
        """The check as `anchors.json` holds it."""
        numbers = {name: value for name, value in self.whole.tree().items() if name != "model"}
        if numbers["n"]:
            numbers["p_holm"] = min(judge.p_holm for judge in self.judges)
        numbers["n"] = self.n_read if self.verdict == "first" else numbers["n"]
        people: dict[str, Any] = {}
        put(people, "before", self.people_before)
        put(people, "now", self.people_now)
        return {
            "verdict": self.verdict,
            "is_drifting": self.is_drifting,
            "reason": None if self.why is None else note_text(self.why, "en"),
            "why": None if self.why is None else dict(self.why),
            "reference": self.reference,
            "anchors_run": self.anchors_run,
            "n_anchors": self.n_anchors,
            "n_read": self.n_read,
            **numbers,
            "tolerance": self.tolerance,
            "changed": [dict(one) for one in self.changed],
            "left_out": {name: list(ids) for name, ids in self.left_out.items()},
            "people": people,
            "judges": [judge.tree() | {"verdict": self._of_judge(judge)} for judge in self.judges],
            "remarks": [dict(note) for note in self.remarks],
        }

    def _of_judge(self, judge: JudgeOnAnchors) -> AnchorVerdict:
        if judge.alarm is not None:
            return "drifting"
        return "same" if self.verdict == "drifting" else self.verdict


# --- the check -----------------------------------------------------------------------------------------------------


def check(
    now: AnchorRun,
    reference: AnchorRun | None,
    human: Mapping[str, bool | None],
    tolerance: float = TOLERANCE,
    pruned: str | None = None,
) -> AnchorCheck:
    """Whether the judge of the run `now` is that of the reference; without one the verdict is `first`.

    `human` are the labels by anchor, True for a pass. `pruned` names a reference whose texts are gone.
    """
    pairs, left_out = _same_anchors(now, reference)
    changed = () if reference is None else tuple(judge_changes(reference.manifest, now.manifest))
    n_read = sum(row.judge_pass is not None for row in now.rows)
    models = _models(now.manifest)
    unread: Note | None = None
    first: Note | None = None
    if reference is None:
        first = {"code": "no_reference"} if pruned is None else {"code": "pruned", "run": pruned}
    elif not pairs:
        first = {"code": "none_left", "n": len(now.rows), "run": reference.run_id}
    else:
        unread = _too_little(pairs, reference.run_id, max(1, len(models)))
    flips = [row.flipped for row in now.rows if row.flipped is not None]
    of_now = Counts(0, 0, 0, 0, sum(flips), len(flips))
    about = About(human, tolerance, n_read if first else None, of_now, is_unread=unread is not None)
    whole, judges = judged(pairs, models, about)
    alarms = [judge.alarm for judge in judges if judge.alarm is not None]
    verdict, why = _verdict(first, changed, alarms, unread)
    remarks: list[Note] = [{"code": name, "ids": list(ids)} for name, ids in left_out.items() if ids]
    remarks += [_also(alarm) for alarm in alarms if alarm is not why]
    remarks += [note for judge in judges for note in judge.remarks]
    compared = [row for _, row in pairs] or now.rows
    people = [
        raw_agreement(confusion([row.judge_pass for row in rows], [human.get(row.id) for row in rows]))
        for rows in ([row for row, _ in pairs], compared)
    ]
    return AnchorCheck(
        verdict,
        why,
        None if reference is None else reference.run_id,
        now.run_id,
        len(now.rows),
        n_read,
        tolerance,
        changed,
        left_out,
        whole,
        judges,
        people[0],
        people[1],
        tuple(remarks),
    )


def _verdict(
    first: Note | None, changed: Sequence[Tree], alarms: Sequence[Note], unread: Note | None
) -> tuple[AnchorVerdict, Note | None]:
    if first is not None:
        return "first", first
    if changed:
        return "changed", {"code": "factors", "names": [one["factor"] for one in changed]}
    if alarms:
        return "drifting", alarms[0]
    return ("same", None) if unread is None else ("unknown", unread)


def _also(alarm: Note) -> Note:
    """The alarm as a remark beside a verdict that has another reason."""
    return {**alarm, "code": "also_drifting"} if alarm["code"] == "net" else alarm


def _same_anchors(now: AnchorRun, reference: AnchorRun | None) -> tuple[list[Pair], dict[str, tuple[str, ...]]]:
    """The anchors that are in both runs just as they were, and the ids of the others."""
    if reference is None:
        return [], {"edited": (), "added": (), "removed": ()}
    before, of_now = {row.id: row for row in reference.rows}, {row.id for row in now.rows}
    kept = [row for row in now.rows if row.id in before]
    same = [row for row in kept if now.hashes.get(row.id) == reference.hashes.get(row.id)]
    unedited = {row.id for row in same}
    return [(before[row.id], row) for row in same], {
        "edited": tuple(row.id for row in kept if row.id not in unedited),
        "added": tuple(row.id for row in now.rows if row.id not in before),
        "removed": tuple(i for i in before if i not in of_now),
    }


def _too_little(pairs: Sequence[Pair], run_id: str, n_judges: int) -> Note | None:
    """Why nothing can be said of the judge; None where enough was read."""
    n_before, n_now = (sum(pair[side].judge_pass is not None for pair in pairs) for side in (0, 1))
    n_read = sum(one.judge_pass is not None and other.judge_pass is not None for one, other in pairs)
    if len(pairs) - n_read > MOST_UNREAD * len(pairs):
        counted = {"n": len(pairs), "n_read": n_read, "n_now": n_now, "n_before": n_before}
        return {"code": "too_few_read", **counted, "run": run_id, "allowed": MOST_UNREAD}
    fewest = fewest_anchors(n_judges)
    return {"code": "too_few", "n": n_read, "fewest": fewest} if n_read < fewest else None


# --- the judge itself ----------------------------------------------------------------------------------------------


def judge_changes(before: Tree, now: Tree) -> list[dict[str, Any]]:
    """What two runs' manifests say is otherwise about the judge, as `factor`, `before` and `now`; empty: nothing.

    Models asked for and as their servers report them, prompt version, parameters as sent, fallbacks, repeats, weights.
    A seed is no factor: it says which draw of the same judge is taken. A server that names no model, and a run that
    sent nothing, say nothing of a change.
    """
    one, other = _models(before), _models(now)
    if set(one) != set(other):
        return [_changed("judge.model", one, other)]
    if not one:
        return []
    asked = [
        _changed("judge.prompt", *(_prompt_versions(tree) for tree in (before, now))),
        _changed("judge.repeats", *([str(tree.get("repeats"))] for tree in (before, now))),
        _changed("judge.vary", *([str(tree.get("vary") or "none")] for tree in (before, now))),
    ]
    found = [each for each in asked if each["before"] != each["now"]]
    for model in one:
        of_model = [next(j for j in _judges(tree) if str(j["model"]) == model) for tree in (before, now)]
        named = f" ({model})" if len(one) > 1 else ""
        found += [{**each, "factor": each["factor"] + named} for each in _of_one_judge(*of_model)]
    return found


def _judges(manifest: Tree) -> list[Tree]:
    alone = manifest.get("judge")
    return list(manifest.get("judges") or ([alone] if alone else []))


def _models(manifest: Tree) -> list[str]:
    return [str(judge["model"]) for judge in _judges(manifest)]


def _prompt_versions(manifest: Tree) -> list[str]:
    return [str(prompt["version"])[:HASH_SHOWN] for prompt in manifest.get("prompts") or ()]


def _changed(factor: str, before: Iterable[str], now: Iterable[str]) -> dict[str, Any]:
    return {"factor": factor} | {
        name: ", ".join(sorted(set(values))) or None for name, values in (("before", before), ("now", now))
    }


def _of_one_judge(before: Tree, now: Tree) -> list[dict[str, Any]]:
    """What is otherwise about one judge, as far as both runs say it."""
    reported = _changed("judge.models_reported", *(one.get("models_reported") or () for one in (before, now)))
    weights = _changed("judge.weights", *([str(one.get("model_sha256") or "")[:HASH_SHOWN]] for one in (before, now)))
    found = [one for one in (reported, weights) if one["before"] and one["now"] and one["before"] != one["now"]]
    sent = [(one.get("parameters") or {}).get("sent") or () for one in (before, now)]
    if not all(sent):
        return found
    fallbacks = _changed("judge.fallbacks", *(one.get("fallbacks") or ("none",) for one in (before, now)))
    found += [fallbacks] if fallbacks["before"] != fallbacks["now"] else []
    names = dict.fromkeys(_renamed(name) for run in sent for tree in run for name in tree if name not in TOLD_ELSEWHERE)
    for name in names:
        one, other = ({_parameter(tree, name) for tree in run} for run in sent)
        # What a part of the calls was sent while the server's ways were being learned makes no difference.
        if not one <= other and not other <= one:
            found.append(_changed(f"judge.{name}", one, other))
    return found


def _renamed(name: str) -> str:
    return "max_tokens" if name == "max_completion_tokens" else name


def _parameter(sent: Tree, name: str) -> str:
    known = {_renamed(key): value for key, value in sent.items()}
    return json.dumps(known[name], ensure_ascii=False, sort_keys=True) if name in known else "not sent"


# --- the anchors themselves ----------------------------------------------------------------------------------------


def anchor_hash(case: Case, answer: Answer) -> str:
    """Hex sha256 of all of an anchor that the judge sees or that its pass hangs on, so not of its labels and tags."""
    of_case: list[Any] = [case.question, case.history, case.reference, case.must_include, case.acceptable]
    of_case += [case.expect_refusal, case.refusal_phrases]
    of_answer = (answer.answer, answer.error, answer.sent_contexts, answer.citations, answer.refused)
    contexts = None if answer.contexts is None else [asdict(context) for context in answer.contexts]
    text = json.dumps([case.id, of_case, of_answer, contexts], ensure_ascii=True, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def read_labels(value: Any, where: str, fields: Iterable[str] = ()) -> dict[str, bool | None]:
    """The labels of one anchor, by field; {} where it has none. A cell of a CSV holds them as JSON.

    `fields` are those of the judge's prompt. Raises InputError naming `where` for anything but true, false or null of
    a known field.
    """
    if isinstance(value, str) and value.strip():
        try:
            value = json.loads(value)
        except ValueError as error:
            raise InputError(f"{where}: labels: found a cell that is not JSON: {error}") from error
    if value in (None, ""):
        return {}
    if not isinstance(value, dict):
        raise InputError(f"{where}: labels: found {kind_of(value)}, expected an object of true, false or null")
    known = LABELS | set(fields)
    for name, said in value.items():
        if name not in known:
            raise InputError(f"{where}: labels: found {name!r}, expected one of: {', '.join(sorted(known))}")
        if said is not None and not isinstance(said, bool):
            raise InputError(f"{where}: labels.{name}: found {kind_of(said)}, expected true, false or null")
    return value
