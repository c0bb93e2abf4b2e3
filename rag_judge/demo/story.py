"""What the shipped example shows, in ten lines: the rules' findings, the judge's claim, and what people say of both.

The labels are the maintainers' reading of every answer of both versions. They are of exactly these answers: a label
whose answer has changed is left out and counted.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_judge.answers import AnswerSet
from rag_judge.errors import InputError
from rag_judge.records import CaseRow
from rag_judge.report.html_words import LAYERS

WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "title": "--- what the example shows: version {version} ---",
        "rules": "Rules: {right} of {n} answers are right ({share:.0%}).",
        "layers": "Wrong by rules, by layer: {layers}.",
        "leaks": "Leaks: {n} answers show a customer what belongs to another ({ids}).",
        "no_leaks": "Leaks: none.",
        "refusals": "Refusals: of {should} questions it cannot know, {answered} were answered all the same; "
        "of {others} it can know, {refused} were refused.",
        "retrieval": "Retrieval: the right passage is among the first {k} for {hit} of {n} questions.",
        "judge": "The embedded judge graded {n} answers: it passes {passed} and calls {grounded} grounded.",
        "no_judge": "No judge was asked: these are rules alone.",
        "people": "The maintainers read the same {n} answers: they pass {passed} and call {grounded} grounded.",
        "errors": "Of the {n_fail} they fail, the judge passed {false_pass}; "
        "of the {n_pass} they pass, it failed {false_fail}.",
        "people_all": "The maintainers read all {n} answers and pass {passed} ({share:.0%}).",
        "moral": "A judge's pass rate is worth what labels say of that judge: measure yours before you ship on it. "
        "Next: rag-judge demo --version {other}",
        "stale": "{n} labels are of other answers and were left out.",
    },
    "zh": {
        "title": "--- 这个示例说明什么:{version} 版 ---",
        "rules": "规则:{n} 个回答中 {right} 个正确({share:.0%})。",
        "layers": "规则判错的,按层:{layers}。",
        "leaks": "越权:{n} 个回答把别家客户的资料给了提问者({ids})。",
        "no_leaks": "越权:没有。",
        "refusals": "拒答:答不了的 {should} 个问题中 {answered} 个照样作答;答得了的 {others} 个中误拒 {refused} 个。",
        "retrieval": "检索:{n} 个问题中有 {hit} 个在前 {k} 条里找到了对的段落。",
        "judge": "内置评审评了 {n} 个回答:判 {passed} 个通过,称 {grounded} 个有依据。",
        "no_judge": "没有请评审:以上只凭规则。",
        "people": "维护者读了同样这 {n} 个回答:判 {passed} 个通过,认为 {grounded} 个有依据。",
        "errors": "维护者判不通过的 {n_fail} 个中,评审放过了 {false_pass} 个;"
        "判通过的 {n_pass} 个中,评审误判 {false_fail} 个。",
        "people_all": "维护者读了全部 {n} 个回答,判 {passed} 个通过({share:.0%})。",
        "moral": "评审的通过率值多少,要看人工标注怎么评价这个评审:上线前先量一量你的评审。"
        "下一步:rag-judge demo --version {other}",
        "stale": "{n} 条标注对应的是别的回答,未计入。",
    },
}


@dataclass(frozen=True, slots=True)
class Reading:
    """How one reader saw one answer of the example."""

    case_id: str
    passed: bool | None
    grounded: bool | None
    answer_sha256: str


def load_readings(path: Path) -> list[Reading]:
    """The labels of one version's answers. Raises InputError for a file that is missing or broken."""
    readings = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        try:
            label = json.loads(line)
            readings.append(Reading(label["case_id"], label["passed"], label["grounded"], label["answer_sha256"]))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}:{number}: not a label with case_id, passed and answer_sha256") from error
    return readings


def answer_sha256(text: str | None) -> str:
    """The hash by which a label knows its answer."""
    return hashlib.sha256((text or "").encode()).hexdigest()


def story_lines(
    version: str,
    summary: Mapping[str, Any],
    rows: Sequence[CaseRow],
    answers: AnswerSet,
    readings: Sequence[Reading],
    lang: str,
) -> list[str]:
    """The story of a finished run of the example, for people; every number is counted from the run and the labels."""
    words = WORDS[lang]
    current = {
        reading.case_id: reading
        for reading in readings
        if reading.answer_sha256 == answer_sha256(answers.get(reading.case_id).answer)
    }
    lines = [words["title"].format(version=version), *_by_rules(words, LAYERS[lang], summary, rows)]
    lines += _by_judge(words, rows, current)
    if n_stale := len(readings) - len(current):
        lines.append(words["stale"].format(n=n_stale))
    return [*lines, words["moral"].format(other="v1" if version == "v2" else "v2")]


def _by_rules(
    words: Mapping[str, str], named: Mapping[str, str], summary: Mapping[str, Any], rows: Sequence[CaseRow]
) -> list[str]:
    checked = [row for row in rows if row.rule_correct is not None]
    right = sum(row.rule_correct is True for row in checked)
    layers = Counter(named[row.layer or "unknown"] for row in checked if row.rule_correct is False)
    leaks = summary["rules"]["leaks"]
    should = [row for row in rows if row.expect_refusal]
    others = [row for row in rows if not row.expect_refusal]
    hits = [row.hit for row in rows if row.hit is not None]
    return [
        words["rules"].format(right=right, n=len(checked), share=right / max(1, len(checked))),
        words["layers"].format(layers=", ".join(f"{layer} {n}" for layer, n in layers.most_common()) or "-"),
        words["leaks"].format(n=len(leaks), ids=", ".join(leaks)) if leaks else words["no_leaks"],
        words["refusals"].format(
            should=len(should),
            answered=sum(row.did_abstain is False for row in should),
            others=len(others),
            refused=sum(row.did_abstain is True for row in others),
        ),
        words["retrieval"].format(k=summary["retrieval"]["k"], hit=sum(hits), n=len(hits)),
    ]


def _by_judge(words: Mapping[str, str], rows: Sequence[CaseRow], readings: Mapping[str, Reading]) -> list[str]:
    """What the judge claims of the answers it graded, and what people say of the same ones."""
    read = {case_id: reading for case_id, reading in readings.items() if reading.passed is not None}
    graded = [row for row in rows if row.judge_pass is not None and row.id in read]
    if not graded:
        n_passed = sum(bool(reading.passed) for reading in read.values())
        share = n_passed / max(1, len(read))
        return [words["no_judge"], words["people_all"].format(n=len(read), passed=n_passed, share=share)]
    both = [(bool(row.judge_pass), bool(read[row.id].passed)) for row in graded]
    n_judged, n_people = sum(judged for judged, _ in both), sum(reading for _, reading in both)
    n_grounded = sum(row.grounded is True for row in graded)
    n_read_grounded = sum(read[row.id].grounded is True for row in graded)
    return [
        words["judge"].format(n=len(both), passed=n_judged, grounded=n_grounded),
        words["people"].format(n=len(both), passed=n_people, grounded=n_read_grounded),
        words["errors"].format(
            n_fail=len(both) - n_people,
            false_pass=sum(judged and not reading for judged, reading in both),
            n_pass=n_people,
            false_fail=sum(reading and not judged for judged, reading in both),
        ),
    ]
