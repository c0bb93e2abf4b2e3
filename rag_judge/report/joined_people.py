"""`bias.json` → what a report says of people's labels and of what the judge is worth. Nothing is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag_judge.gate_reasons import reason_text
from rag_judge.report.html_numbers import (
    Metric,
    Section,
    estimate_text,
    missing,
    people_section,
    percent,
    score,
    sentence,
)
from rag_judge.report.joined import joined_say, number_text, signed, signed_decimal
from rag_judge.report.joined_words import JOINED_WORDS

Tree = Mapping[str, Any]
# What is said of a field beside the pass, and of a score: the place in the sentence, the number, how it is shown.
FIELD_NUMBERS: Sequence[tuple[str, str, Callable[[float], str]]] = (
    ("judge", "judge_rate", percent),
    ("human", "human_rate", percent),
    ("corrected", "corrected", percent),
    ("bias", "bias", signed),
)
SCORE_NUMBERS: Sequence[tuple[str, str, Callable[[float], str]]] = (
    ("bias", "bias", signed_decimal),
    ("agreement", "agreement", percent),
    ("kappa", "kappa", score),
)


def people(bias: Tree, summary: Tree, lang: str) -> Section | None:
    """What people's labels say of the judge: its rate, the corrected one, and what that rests on, in this order.

    None where nothing is labelled, or where the labels are of a choice between two answers.
    """
    fields = bias["fields"]
    if not bias["n_labelled"]:
        return None
    names = [
        name for name in fields if name not in ("pass", "score", "winner") and any(fields[name]["confusion"].values())
    ]
    others = [joined_say(lang, "field", name=name, **_numbers(fields[name], FIELD_NUMBERS, lang)) for name in names]
    if "score" in fields:
        tree = fields["score"]
        others.append(joined_say(lang, "score_note", n=tree["n"], **_numbers(tree, SCORE_NUMBERS, lang)))
    if "pass" not in fields:
        return Section("people", [], others) if others else None
    tree = fields["pass"]
    words = JOINED_WORDS[lang]
    section = people_section(bias, lang)
    rate = Metric(
        "people.judge_rate",
        words["judge_rate"],
        words["judge_rate_says"],
        estimate_text(tree, "judge_rate", lang),
        is_missing=tree.get("judge_rate") is None,
    )
    metrics = [_explained(metric, tree, lang) for metric in section.metrics]
    notes = [_note(note, tree, lang) for note in section.notes]
    return Section("people", [rate, *metrics], [*notes, *_what_it_rests_on(bias, summary, lang), *others])


def _numbers(tree: Tree, shown: Sequence[tuple[str, str, Callable[[float], str]]], lang: str) -> dict[str, str]:
    return {part: number_text(tree, name, lang, form) for part, name, form in shown}


def _note(note: str, tree: Tree, lang: str) -> str:
    """A note of the section, its reason in the report's language."""
    reason = str(tree["rule_reason"])
    return note.replace(sentence(reason, lang), reason_text(reason, lang))


def _explained(metric: Metric, tree: Tree, lang: str) -> Metric:
    """The metric with its reason in words, and the corrected rate with what it is of this set alone."""
    key = metric.name.rpartition(".")[2]
    if metric.is_missing and tree.get(f"{key}_reason"):
        metric = replace(metric, value=missing(reason_text(str(tree[f"{key}_reason"]), lang), lang))
    if key != "corrected":
        return metric
    if tree.get("corrected") is not None:
        of_set = estimate_text(tree, "corrected_this_set", lang)
        return replace(metric, notes=(joined_say(lang, "this_set", value=of_set),))
    if tree.get("interval") is None:
        return metric
    low, high = map(percent, tree["interval"])
    return replace(metric, notes=(joined_say(lang, "no_corrected", low=low, high=high),))


def _what_it_rests_on(bias: Tree, summary: Tree, lang: str) -> list[str]:
    """The design, the labels needed, how far the judge agrees with itself, and what nothing here checks."""
    words, tree, judge = JOINED_WORDS[lang], bias["fields"]["pass"], summary["judge"]
    notes = []
    if design := bias.get("design"):
        strata = [joined_say(lang, "stratum", name=s["stratum"], n=s["n"], of=s["N"]) for s in design["strata"]]
        listed = ("，" if lang == "zh" else ", ").join(strata)
        notes.append(joined_say(lang, "design", n=bias["n_drawn"], of=design["N"], seed=design["seed"], strata=listed))
    needed = [
        words["labels_never"].format(half=half) if more is None else words["labels_for"].format(n=more, half=half)
        for half, more in (tree.get("labels_more") or {}).items()
    ]
    if needed:
        notes.append(joined_say(lang, "labels_more", list=("；" if lang == "zh" else "; ").join(needed)))
    flips = estimate_text(judge, "flip_rate", lang)
    unscored = sum((judge.get("unscored") or {}).values())
    notes.append(joined_say(lang, "judge_open", flips=flips, undecided=judge.get("undecided", 0), unscored=unscored))
    return [*notes, words["assumed"]]
