"""What was made of a run after it had ended → the parts that a report joins to it. No markup; nothing is computed.

A part is made of blocks of plain text, which `html` puts on the page and `markdown` into its own: both say the same.
The comparison and the labels have modules of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rag_judge.anchor_words import note_text
from rag_judge.gate_output import WORDS as GATE_WORDS
from rag_judge.gate_reasons import reason_text
from rag_judge.report.html_facts import value_text
from rag_judge.report.html_numbers import estimate_text, missing, percent
from rag_judge.report.joined_words import (
    JOINED_WORDS,
)

Tree = Mapping[str, Any]
Tone = Literal["", "red", "yellow", "green"]
COUNTED_RULES = frozenset({"red_lines", "required_labels"})
DECISION_TONES: Mapping[str, Tone] = {"ship": "green", "hold": "red", "not_enough_evidence": "yellow"}
OUTCOME_TONES: Mapping[str, Tone] = {"passed": "green", "failed": "red", "inconclusive": "yellow"}
VERDICT_TONES: Mapping[str, Tone] = {"same": "green", "changed": "yellow", "drifting": "red", "unknown": "yellow"}
STEP_TONES: Mapping[str, Tone] = {"failed": "red"}


@dataclass(frozen=True, slots=True)
class Joined:
    """What was made of a run since it ended, as its files hold it; None for what was never made.

    `trend_html` is a section of a page, ready and safe.
    """

    bias: Tree | None = None
    comparison: Tree | None = None
    gate: Tree | None = None
    anchors: Tree | None = None
    nightly: Tree | None = None
    trend_html: str | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table: its text, its colour, and whether it is the id of a case."""

    text: str
    tone: Tone = ""
    is_case: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """One piece of a part: whatever of it is filled is shown, in the order of the fields."""

    heading: str = ""
    notice: str = ""  # stands out; in the colour of the tone
    tone: Tone = ""
    lines: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()
    ids: Sequence[str] = ()  # of cases
    note: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One section of a report."""

    name: str
    title: str
    blocks: Sequence[Block]


def joined_say(lang: str, key: str, **values: object) -> str:
    """The wording with values put in."""
    return JOINED_WORDS[lang][key].format_map(values)


def cells(*texts: str) -> list[Cell]:
    """Plain cells of a row."""
    return [Cell(text) for text in texts]


def signed(share: float) -> str:
    """A difference of shares as '+5 %', with more digits where 0 would not be exact."""
    for digits in (0, 1, 2):
        text = f"{share:+.{digits}%}".removesuffix("%")
        if share == 0 or float(text) != 0:
            return f"{text} %"
    return f"{share:+.1e}"


def signed_decimal(value: float) -> str:
    """A difference of means as '+0.05'."""
    return f"{value:+.2f}"


def p_text(value: float) -> str:
    """A p-value with two digits."""
    return f"{value:.2g}"


def number_text(tree: Tree, name: str, lang: str, shown: Callable[[float], str]) -> str:
    """An estimate, or a plain number, with what is said of it; n/a and why where there is none."""
    value = tree.get(name)
    if isinstance(value, Mapping):
        return estimate_text(tree, name, lang, shown)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return missing(reason_text(str(tree.get(f"{name}_reason") or ""), lang), lang)
    return shown(value)


# --- the decision ----------------------------------------------------------------------------------------------------


def gate_part(tree: Tree, lang: str) -> Part:
    """What the gate decided, each of its rules, and the red lines that are crossed."""
    words, of_gate = JOINED_WORDS[lang], GATE_WORDS[lang]
    decision = str(tree["decision"])
    head = Block(
        heading=of_gate.get(decision, decision),
        notice=_decided_by(tree["rules"], lang) + _about_correction(tree, lang),
        tone=DECISION_TONES.get(decision, ""),
    )
    columns = [words[name] for name in ("rule", "outcome", "value", "threshold", "reason")]
    rules = Block(heading=words["rules"], columns=columns, rows=[_rule_row(rule, lang) for rule in tree["rules"]])
    needed = [
        (words[name], str(tree[key]))
        for name, key in (
            ("cases_needed", "more_cases"),
            ("labels_needed", "more_labels"),
            ("exit_code", "exit_code"),
        )
        if tree.get(key) is not None
    ]
    crossed = Block(heading=words["red_lines"], ids=tree["red_lines"], tone="red")
    return Part("gate", words["gate"], [head, *([crossed] if tree["red_lines"] else []), rules, Block(facts=needed)])


def _decided_by(rules: Sequence[Tree], lang: str) -> str:
    """The rules that decided: those that failed, else those that are open, else all that passed."""
    for outcome in ("failed", "inconclusive"):
        names = [str(rule["name"]) for rule in rules if rule["outcome"] == outcome]
        if names:
            return joined_say(lang, "by_rules", names=", ".join(names))
    return joined_say(lang, "all_passed", n=sum(rule["outcome"] == "passed" for rule in rules))


def _about_correction(tree: Tree, lang: str) -> str:
    corrected = tree.get("corrected")
    if corrected is None:
        return ""
    return ("" if lang == "zh" else " ") + JOINED_WORDS[lang]["corrected" if corrected else "uncorrected"]


def _rule_row(rule: Tree, lang: str) -> list[Cell]:
    name, outcome = str(rule["name"]), str(rule["outcome"])
    reason = reason_text(str(rule["reason"]), lang)
    for key in ("more_cases", "more_labels"):
        if rule.get(key) is not None:
            reason += ("。" if lang == "zh" else ". ") + joined_say(lang, key, n=rule[key])
    said = GATE_WORDS[lang].get(outcome, outcome)
    numbers = [_rule_number(name, rule[key]) for key in ("value", "threshold")]
    return [Cell(name), Cell(said, OUTCOME_TONES.get(outcome, "")), *cells(*numbers), Cell(reason)]


def _rule_number(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    if name in COUNTED_RULES:
        return f"{value:g}"
    return f"{value:+.1%}" if name.startswith("regression:") and value < 0 else f"{value:.1%}"


# --- the judge -------------------------------------------------------------------------------------------------------


ANCHOR_NUMBERS: Sequence[tuple[str, Callable[[float], str]]] = (
    ("agreement", percent),
    ("net", signed),
    ("p_value", p_text),
    ("p_holm", p_text),
    ("flip_rate", percent),
    ("excess_disagreement", signed),
    ("smallest_detectable", percent),
    ("tolerance", percent),
    ("sensitivity_change", signed),
    ("specificity_change", signed),
)


def judge_part(anchors: Tree | None, nightly: Tree | None, lang: str) -> Part:
    """Whether the judge is still what it was, by its anchors and by the night that it judged."""
    words = JOINED_WORDS[lang]
    blocks = [_verdict_block(anchors, lang)]
    if nightly is not None and nightly.get("comparable") is False:
        why = str(nightly.get("moved") or words["says_not_comparable"])
        blocks.append(Block(heading=words["not_comparable"], notice=why, tone="yellow"))
    if anchors is not None:
        blocks += _anchor_blocks(anchors, lang)
    if nightly is not None:
        blocks.append(_night_block(nightly, lang))
    return Part("judge", words["judge"], blocks)


def _verdict_block(anchors: Tree | None, lang: str) -> Block:
    words = JOINED_WORDS[lang]
    verdict = "none" if anchors is None else str(anchors["verdict"])
    if f"verdict_{verdict}" not in words:
        return Block(heading=verdict)
    why = "" if anchors is None else _why(anchors, lang)
    says = joined_say(lang, f"says_{verdict}", reason=why or words["not_known"])
    if why and verdict in ("changed", "drifting"):
        says += f"{'' if lang == 'zh' else ' '}{joined_say(lang, 'because', why=why)}"
    return Block(heading=words[f"verdict_{verdict}"], notice=says, tone=VERDICT_TONES.get(verdict, ""))


def _why(anchors: Tree, lang: str) -> str:
    """Why the verdict on the judge is what it is; empty where that is not told."""
    note = anchors.get("why")
    said = _note(note, lang) if isinstance(note, Mapping) else None
    return said or reason_text(str(anchors.get("reason") or anchors.get("net_reason") or ""), lang)


def _note(note: Any, lang: str) -> str | None:
    """One note of the check as a sentence; None for one that only another version of the program can word."""
    try:
        return note_text(note, lang)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _anchor_blocks(anchors: Tree, lang: str) -> list[Block]:
    words = JOINED_WORDS[lang]
    facts = [
        (words[name], value_text(anchors.get(name), lang))
        for name in ("n", "reference", "anchors_run")
        if name in anchors
    ]
    for name, form in ANCHOR_NUMBERS:
        if name in anchors and (name != "p_holm" or anchors[name] is not None):
            facts.append((words[f"anchors_{name}"], number_text(anchors, name, lang, form)))
    labelled = anchors.get("people") or {}
    for name in ("before", "now"):
        if labelled.get(name) is not None:
            facts.append((words[f"people_{name}"], estimate_text(labelled, name, lang)))
    changed = [
        cells(str(one.get("factor")), *(value_text(one.get(key), lang) for key in ("before", "now")))
        for one in anchors.get("changed") or ()
    ]
    remarks = [said for note in anchors.get("remarks") or () if (said := _note(note, lang))]
    blocks = [Block(heading=words["anchors"], lines=remarks, facts=facts)]
    if changed:
        columns = [words[name] for name in ("factor", "was", "now")]
        blocks.insert(0, Block(heading=words["changed_factors"], columns=columns, rows=changed))
    judges = anchors.get("judges") or ()
    if len(judges) > 1:
        blocks.append(Block(heading=words["judges"], lines=[_judge_line(one, lang) for one in judges]))
    return blocks


def _judge_line(judge: Any, lang: str) -> str:
    """One judge of a panel: its model, its verdict and its numbers."""
    if not isinstance(judge, Mapping):
        return value_text(judge, lang)
    words = JOINED_WORDS[lang]
    verdict = str(judge.get("verdict") or "")
    said = [words.get(f"verdict_{verdict}", verdict)] if verdict else []
    for name, form in (("agreement", percent), ("net", signed)):
        if name in judge:
            said.append(f"{words[f'anchors_{name}']} {number_text(judge, name, lang, form)}")
    if judge.get("p_value") is not None:
        said.append(f"p = {number_text(judge, 'p_value', lang, p_text)}")
    return f"{judge.get('model') or judge.get('name') or '?'}: {'; '.join(said)}"


def _night_block(nightly: Tree, lang: str) -> Block:
    words = JOINED_WORDS[lang]
    facts = [
        (words[name], value_text(nightly[name], lang))
        for name in ("baseline", "compared_with", "exit_code")
        if nightly.get(name) is not None
    ]
    if isinstance(nightly.get("comparable"), bool):
        facts.insert(0, (words["comparable"], value_text(nightly["comparable"], lang)))
    rows = []
    for step in nightly.get("steps") or ():
        outcome = str(step.get("outcome"))
        said = Cell(words.get(outcome, outcome), STEP_TONES.get(outcome, ""))
        rows.append([Cell(str(step.get("name"))), said, Cell(str(step.get("detail") or ""))])
    columns = [words["step"], words["outcome"], words["detail"]] if rows else []
    return Block(heading=words["night"], facts=facts, columns=columns, rows=rows)
