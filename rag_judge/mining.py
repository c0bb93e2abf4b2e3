"""Real questions worth adding to an eval set: clustered, those covered dropped, ranked, masked, still to be completed.

A candidate is a question and why it was picked; what its right answer is, people say. Signals pick, they do not grade.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import log2
from pathlib import Path
from typing import Any

from rag_judge.cases import CaseSet
from rag_judge.clusters import rows_for_quantile
from rag_judge.errors import InputError
from rag_judge.likeness import bare, nearly_alike
from rag_judge.log_words import remarks
from rag_judge.masking import mask
from rag_judge.production_log import Log, LogFormat, Turn, answers_at
from rag_judge.rows import json_line
from rag_judge.signals import SIGNALS, marks_of, oddities

SLOW_FROM = 0.95  # quantile of the log's own latencies
WEIGHTS: Mapping[str, float] = {**dict.fromkeys(SIGNALS, 1.0), "slow": 0.5}
WEIGHT_OF_RARITY = 0.25
N_ANSWERS = 3
TO_COMPLETE = ("type", "expect_refusal", "must_include or acceptable", "relevant_docs")
_SMALL_TALK = frozenset(
    {"hi", "hello", "hey", "hithere", "thanks", "thankyou", "thx", "ok", "okay", "yes", "no", "bye", "goodbye", "test"}
    | {
        "你好",
        "您好",
        "你好啊",
        "在吗",
        "谢谢",
        "谢谢你",
        "多谢",
        "好的",
        "好",
        "嗯",
        "是的",
        "不是",
        "再见",
        "测试",
        "人工",
        "转人工",
        "哈喽",
    }
)
_SIGN = re.compile(r"【[^】]*】|\[[^\]]*\]")  # of what was masked


@dataclass(frozen=True, slots=True)
class Wishes:
    """What to mine, and how: how many candidates, what is covered, what may be shown."""

    n: int = 50
    seed: int = 0
    window_s: float = 1_800.0
    masked: bool = True
    with_answers: bool = False
    covered_by: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Cluster:
    """Askings of nearly the same question: their places in the log, and the wording that was used most."""

    key: str  # the wording without case, white space and punctuation, masked
    question: str
    places: tuple[int, ...]
    n_wordings: int


@dataclass(frozen=True, slots=True)
class Mined:
    """Candidates in the order of their rank, as rows of a cases file, and what was left out."""

    candidates: Sequence[Mapping[str, Any]]
    counts: Mapping[str, int]
    masked: Mapping[str, int] | None  # kind -> how often in what is written; None: masking is off


def mine(path: Path, log: Log, form: LogFormat, wishes: Wishes) -> Mined:
    """The candidates of a log. The same log, cases and seed give the same candidates.

    Raises InputError for fewer than one candidate, a bad window, or a cases file that cannot be read.
    """
    if wishes.n < 1:
        raise InputError(f"--n: found {wishes.n}, expected at least 1")
    marks = dict(marks_of(log.turns, wishes.window_s).values) | {"slow": _slow(log.turns)}
    found, counts = _clusters(log.turns, _covering(wishes.covered_by))
    average = {name: _share(marks[name], range(len(log.turns))) for name in WEIGHTS}
    scored = [(_score(cluster, marks, average, len(log.turns)), cluster) for cluster in found]
    scored.sort(key=lambda pair: (-pair[0], _draw(wishes.seed, pair[1].key)))
    picked = scored[: wishes.n]
    hidden: Counter[str] = Counter()

    def shown(text: str) -> str:
        if not wishes.masked:
            return text
        safe = mask(text)
        hidden.update(safe.counts)
        return safe.text

    answers = _answers(path, form, log.turns, [cluster for _, cluster in picked]) if wishes.with_answers else {}
    candidates = []
    for score, cluster in picked:
        row = _candidate(cluster, score, log.turns, marks) | {"question": shown(cluster.question)}
        if wishes.with_answers:
            row["example_answers"] = [shown(text) for text in answers.get(cluster.key, [])]
        candidates.append(row)
    counts |= {"rows": len(log.turns), "written": len(picked), "cut": len(scored) - len(picked)}
    return Mined(candidates, counts, dict(sorted(hidden.items())) if wishes.masked else None)


# --- clusters ---------------------------------------------------------------------------------------------------------


def _covering(paths: Iterable[Path]) -> list[str]:
    found: dict[str, None] = {}
    for path in paths:
        with closing(CaseSet(path)) as cases:
            found.update((bare(mask(case.question).text), None) for case in cases)
    return list(found)


def _clusters(turns: Sequence[Turn], covering: Sequence[str]) -> tuple[list[Cluster], dict[str, int]]:
    """The clusters that no case covers and that ask something, and how many there are of each kind."""
    places: dict[str, list[int]] = defaultdict(list)
    keys: dict[str, str] = {}  # many ask in the very same words
    for place, turn in enumerate(turns):
        key = keys.get(turn.question)
        if key is None:
            key = keys[turn.question] = bare(mask(turn.question).text)
        places[key].append(place)
    # The wording used most comes first and gives its cluster the name, whatever the order of the log.
    order = sorted(places, key=lambda key: (-len(places[key]), key))
    covered = _covered(order, covering)
    groups: dict[str, list[str]] = defaultdict(list)
    roots = _roots(order)
    for key in order:
        groups[roots[key]].append(key)
    found, counts = [], {"clusters": len(groups), "covered": 0, "small_talk": 0}
    for root, members in groups.items():
        if not covered.isdisjoint(members):
            counts["covered"] += 1
        elif root in _SMALL_TALK or not any(char.isalpha() for char in _SIGN.sub("", root)):
            counts["small_talk"] += 1
        else:
            where = sorted(place for key in members for place in places[key])
            wordings = Counter(turns[place].question.strip() for place in places[root])
            question = min(wordings, key=lambda wording: (-wordings[wording], wording))
            found.append(Cluster(root, question, tuple(where), len(members)))
    return found, counts


def _covered(keys: Sequence[str], covering: Sequence[str]) -> set[str]:
    """The wordings that a case asks, or nearly so."""
    n = len(covering)
    alike = nearly_alike([*covering, *keys], lambda earlier, later: earlier < n <= later) if n else {}
    return set(covering).intersection(keys) | {keys[place - n] for place in alike if place >= n}


def _roots(keys: Sequence[str]) -> dict[str, str]:
    """Each wording with the one that names its cluster: itself, or that of the earlier wording most like it."""
    alike = nearly_alike(keys, lambda earlier, later: True)
    roots: dict[str, str] = {}
    for place, key in enumerate(keys):
        roots[key] = roots[keys[alike[place]]] if place in alike else key
    return roots


# --- rank -------------------------------------------------------------------------------------------------------------


def _slow(turns: Sequence[Turn]) -> list[bool | None]:
    """Whether an answer took longer than nearly all of this log; None where too few are known to say so."""
    known = sorted(turn.latency_s for turn in turns if turn.latency_s is not None)
    if len(known) < rows_for_quantile(SLOW_FROM):
        return [None] * len(turns)
    limit = known[int(SLOW_FROM * (len(known) - 1))]
    return [None if turn.latency_s is None else turn.latency_s > limit for turn in turns]


def _share(column: Sequence[bool | None], places: Iterable[int]) -> float | None:
    known = [value for place in places if (value := column[place]) is not None]
    return sum(known) / len(known) if known else None


def _score(
    cluster: Cluster, marks: Mapping[str, Sequence[bool | None]], average: Mapping[str, float | None], n_rows: int
) -> float:
    """How far a cluster's signals lie above the log's own, and how rare its question is.

    A share is drawn towards the log's average as if by one more asking: a single bad one is no rate of 100 %. What is
    not known adds nothing.
    """
    excess = 0.0
    for name, weight in WEIGHTS.items():
        usual = average[name]
        known = [value for place in cluster.places if (value := marks[name][place]) is not None]
        if usual is not None and known:
            excess += weight * ((sum(known) + usual) / (len(known) + 1) - usual)
    rarity = 1 - log2(len(cluster.places)) / log2(n_rows) if n_rows > 1 else 1.0
    return excess + WEIGHT_OF_RARITY * rarity


def _draw(seed: int, key: str) -> str:
    return hashlib.sha256(f"{seed}:{key}".encode("utf-8", "surrogatepass")).hexdigest()


# --- rows of a cases file ---------------------------------------------------------------------------------------------


def _candidate(
    cluster: Cluster, score: float, turns: Sequence[Turn], marks: Mapping[str, Sequence[bool | None]]
) -> dict[str, Any]:
    asked = [turns[place] for place in cluster.places]
    days = sorted(turn.day for turn in asked if turn.day is not None)
    signals = {}
    for name in WEIGHTS:
        known = [value for place in cluster.places if (value := marks[name][place]) is not None]
        if known:
            signals[name] = {"n_true": sum(known), "n": len(known)}
    return {
        "id": f"mined-{hashlib.sha256(cluster.key.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}",
        "question": "",  # put in by the caller, who knows what may be shown
        "type": None,
        "to_complete": list(TO_COMPLETE),
        "tags": ["mined"],
        "n_asked": len(asked),
        "n_askers": len({turn.asker or f"row:{turn.line}" for turn in asked}),
        "n_wordings": cluster.n_wordings,
        "first_seen": days[0] if days else None,
        "last_seen": days[-1] if days else None,
        "signals": signals,
        "score": round(score, 6),
    }


def _answers(path: Path, form: LogFormat, turns: Sequence[Turn], clusters: Sequence[Cluster]) -> dict[str, list[str]]:
    """The first different answers to each cluster, by its key."""
    lines = {turns[place].line: cluster.key for cluster in clusters for place in cluster.places[: 4 * N_ANSWERS]}
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for line, answer in answers_at(path, form, lines.keys()).items():
        if len(found[lines[line]]) < N_ANSWERS:
            found[lines[line]][answer] = None
    return {key: list(texts) for key, texts in found.items()}


def report_of(out: Path, log: Log, mined: Mined, lang: str) -> dict[str, Any]:
    """What was written and left out, as one JSON object, after the candidates were written; none, and no file is."""
    if mined.candidates:
        _write(out, mined.candidates)
    return {
        "out": str(out) if mined.candidates else None,
        **mined.counts,
        "n_broken": log.n_broken,
        "masked": mined.masked,
        "remarks": remarks(oddities(log), lang),
    }


def _write(out: Path, candidates: Sequence[Mapping[str, Any]]) -> None:
    """Write the candidates as JSON Lines, whole or not at all."""
    part = out.with_name(out.name + ".part")
    with part.open("wb") as file:
        file.writelines(json_line(row) for row in candidates)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, out)


def check_out(out: Path, inputs: Iterable[Path], *, force: bool) -> None:
    """Raise InputError where the candidates may not be written: over what is read, over a file, into no folder."""
    if any(out.exists() and path.exists() and out.samefile(path) for path in inputs):
        raise InputError(f"--out {out}: found a file that is read, expected another name")
    if out.exists() and (out.is_dir() or not force):
        hint = "expected the name of a file" if out.is_dir() else "--force writes over it"
        raise InputError(f"--out {out}: it is there already; {hint}")
    if not out.parent.is_dir():
        raise InputError(f"--out {out}: there is no folder {out.parent}; make it first")
