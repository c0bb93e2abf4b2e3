"""A gate's decision for machines and people: JUnit, annotations and job summary of GitHub Actions, lines.

Texts of cases are data: control characters are taken out, and nothing in them can end an attribute or start a workflow
command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import get_args
from xml.sax.saxutils import escape, quoteattr

from rag_judge.gate import Gated, Rule, RuleOutcome
from rag_judge.gate_reasons import reason_text
from rag_judge.records import CaseRow
from rag_judge.report.terminal import printable

MOST_ANNOTATIONS = 9
LARGEST_SUMMARY_BYTES = 900_000
# What XML 1.0 cannot hold, and what would forge a line or move a terminal's cursor.
_UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
WORDS = {
    "en": {
        "ship": "SHIP",
        "hold": "HOLD",
        "not_enough_evidence": "NOT ENOUGH EVIDENCE",
        "passed": "passed",
        "failed": "failed",
        "inconclusive": "open",
        "skipped": "skipped",
        "rule": "{outcome}: {name}: {reason}{more}",
        "more_cases": " -> about {n} more cases would decide",
        "more_labels": " -> about {n} more labels would decide",
        "verdict": "{decision}: {why}",
        "all_passed": "all {n} rules passed{uncorrected}",
        "uncorrected": " (judge numbers uncorrected: no labels)",
        "and_more": "and {n} more",
        "table": "| Rule | Outcome | Value | Threshold | Why |\n|---|---|---|---|---|",
    },
    "zh": {
        "ship": "可以上线",
        "hold": "暂缓上线",
        "not_enough_evidence": "证据不足",
        "passed": "通过",
        "failed": "不通过",
        "inconclusive": "未决",
        "skipped": "跳过",
        "rule": "{outcome}:{name}:{reason}{more}",
        "more_cases": " -> 约需再加 {n} 条用例方可判定",
        "more_labels": " -> 约需再加 {n} 条标注方可判定",
        "verdict": "{decision}:{why}",
        "all_passed": "{n} 条规则全部通过{uncorrected}",
        "uncorrected": "(评审数字未校正:没有标注)",
        "and_more": "另有 {n} 条",
        "table": "| 规则 | 结果 | 数值 | 阈值 | 原因 |\n|---|---|---|---|---|",
    },
}


def gate_lines(gated: Gated, lang: str, outcomes: Sequence[RuleOutcome] = get_args(RuleOutcome)) -> list[str]:
    """A line for each rule that came out as one of these, and last the verdict on one line."""
    words = WORDS[lang]
    lines = [
        words["rule"].format(
            outcome=words[rule.outcome], name=rule.name, reason=_reason(rule, lang), more=_more(rule, words)
        )
        for rule in gated.rules
        if rule.outcome in outcomes
    ]
    return [*lines, verdict_line(gated, lang)]


def _reason(rule: Rule, lang: str) -> str:
    return printable(reason_text(rule.reason, lang))


def verdict_line(gated: Gated, lang: str) -> str:
    """The decision and what decided it, on one line."""
    words = WORDS[lang]
    order = ("failed", "inconclusive", "skipped")
    deciding = next((found for outcome in order if (found := [r for r in gated.rules if r.outcome == outcome])), [])
    if gated.decision == "ship" or not deciding:
        uncorrected = words["uncorrected"] if gated.corrected is False else ""
        why = words["all_passed"].format(n=sum(r.outcome == "passed" for r in gated.rules), uncorrected=uncorrected)
    else:
        why = "; ".join(f"{rule.name} ({_reason(rule, lang)})" for rule in deciding[:3])
        if len(deciding) > 3:
            why += "; " + words["and_more"].format(n=len(deciding) - 3)
    return words["verdict"].format(decision=words[gated.decision], why=why)


def _more(rule: Rule, words: Mapping[str, str]) -> str:
    if rule.more_labels is not None:
        return words["more_labels"].format(n=rule.more_labels)
    return "" if rule.more_cases is None else words["more_cases"].format(n=rule.more_cases)


# --- JUnit -----------------------------------------------------------------------------------------------------------


def junit_xml(gated: Gated, rows: Sequence[CaseRow], run_id: str, *, with_cases: bool) -> str:
    """The gate as a JUnit file: a test case a red line and rule, and with `with_cases` a test case a case of the run.

    A failed rule is a failure, an open one an error: what could not be judged has neither passed nor failed.
    """
    suites = [_suite("gate", [_rule_case(rule) for rule in gated.rules])]
    crossed = [row for row in rows if row.id in set(gated.red_lines)]
    suites.append(_suite("red lines", [_failed_case(row) for row in crossed]))
    if with_cases:
        suites.append(_suite("cases", [_case(row) for row in rows]))
    name = _attribute(f"rag-judge {run_id}")
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name={name}>\n'
    return f"{head}{''.join(suites)}</testsuites>\n"


def _suite(name: str, cases: Sequence[tuple[str, str]]) -> str:
    kinds = [kind for kind, _ in cases]
    counts = " ".join(f'{kind}="{kinds.count(kind)}"' for kind in ("failures", "errors", "skipped"))
    inner = "".join(text for _, text in cases)
    return f'<testsuite name={_attribute(name)} tests="{len(cases)}" {counts} time="0">\n{inner}</testsuite>\n'


def _rule_case(rule: Rule) -> tuple[str, str]:
    kind = {"passed": "", "failed": "failures", "inconclusive": "errors", "skipped": "skipped"}[rule.outcome]
    return kind, _testcase("gate", rule.name, kind, rule.reason)


def _failed_case(row: CaseRow) -> tuple[str, str]:
    return "failures", _testcase(row.layer or "red line", row.id, "failures", row.evidence or row.cause or "red line")


def _case(row: CaseRow) -> tuple[str, str]:
    kind = {"pass": "", "fail": "failures", "not_judged": "skipped"}.get(row.outcome, "errors")
    why = row.evidence or row.unscored_reason or row.outcome
    return kind, _testcase(row.layer or row.type or "case", row.id, kind, f"{row.cause or row.outcome}: {why}")


def _testcase(class_name: str, name: str, kind: str, why: str) -> str:
    start = f'<testcase classname={_attribute(class_name)} name={_attribute(name)} time="0"'
    if not kind:
        return f"{start}/>\n"
    tag = {"failures": "failure", "errors": "error", "skipped": "skipped"}[kind]
    text = "" if tag == "skipped" else escape(plain(why))
    return f"{start}><{tag} message={_attribute(why)}>{text}</{tag}></testcase>\n"


def plain(text: str) -> str:
    """The text without what XML cannot hold or a terminal would obey."""
    return _UNWRITABLE.sub(" ", text)


def _attribute(text: str) -> str:
    return quoteattr(" ".join(plain(text).split()) or "-")


# --- GitHub Actions --------------------------------------------------------------------------------------------------


def workflow_commands(gated: Gated, lang: str) -> list[str]:
    """Workflow commands for what failed or is open: at most nine, then how many more."""
    words = WORDS[lang]
    found = [rule for rule in gated.rules if rule.outcome in ("failed", "inconclusive")]
    lines = []
    for rule in found[:MOST_ANNOTATIONS]:
        kind = "error" if rule.outcome == "failed" else "warning"
        lines.append(f"::{kind} title={_property(f'rag-judge {rule.name}')}::{_data(rule.reason + _more(rule, words))}")
    if len(found) > MOST_ANNOTATIONS:
        lines.append(f"::notice title=rag-judge::{_data(words['and_more'].format(n=len(found) - MOST_ANNOTATIONS))}")
    return lines


def _data(text: str) -> str:
    return plain(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def job_summary(gated: Gated, run_id: str, lang: str) -> str:
    """The decision as Markdown, short enough for a job summary."""
    words = WORDS[lang]
    lines = [f"### {_cell(verdict_line(gated, lang))}", "", f"`{_cell(run_id)}`", "", words["table"]]
    for rule in gated.rules:
        value = "" if rule.value is None else f"{rule.value:.3g}"
        threshold = "" if rule.threshold is None else f"{rule.threshold:.3g}"
        reason = _cell(rule.reason + _more(rule, words))
        lines.append(f"| {_cell(rule.name)} | {words[rule.outcome]} | {value} | {threshold} | {reason} |")
    text = "\n".join(lines) + "\n"
    return text.encode()[:LARGEST_SUMMARY_BYTES].decode(errors="ignore")


def _cell(text: str) -> str:
    """A text inside a table of Markdown: no mark of it is obeyed."""
    flat = " ".join(plain(text).split())
    return re.sub(r"([\\`*_{}\[\]<>|~#&!])", r"\\\1", flat)
