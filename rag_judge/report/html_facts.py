"""What a page says of its run: its head, what it was made of and with, and how its intervals were made."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from rag_judge.report.html_numbers import intervals, models_of, percent, say, sentence
from rag_judge.report.html_words import FACTS, WORDS

Tree = Mapping[str, Any]
Pairs = list[tuple[str, str]]
SHORT_HASH = 12


def value_text(value: Any, lang: str) -> str:
    """A value of manifest or row in words: yes and no, short numbers, objects as JSON."""
    if value is None or value == "":
        return WORDS[lang]["not_recorded"]
    if isinstance(value, bool):
        return WORDS[lang]["yes" if value else "no"]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else WORDS[lang]["not_applicable"]
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def about(manifest: Tree, summary: Tree, lang: str) -> Pairs:
    """What the page is about, for its head."""
    words = WORDS[lang]
    status = manifest.get("status")
    eval_set = manifest.get("eval_set") or {}
    parts = [
        _base_name(eval_set.get("path"), lang),
        say(lang, "n_cases", n=summary["n_cases"]),
        str(eval_set.get("sha256") or "")[:SHORT_HASH],
    ]
    prompts = [
        f"{prompt['name']} ({prompt['lang']}) {str(prompt['version'])[:SHORT_HASH]}"
        for prompt in manifest.get("prompts") or ()
    ]
    return [
        (words["date"], str(manifest.get("started_at") or words["not_recorded"])[:10]),
        (words["status"], words.get(status, status) if isinstance(status, str) else words["not_recorded"]),
        (words["eval_set"], " · ".join(part for part in parts if part)),
        (words["judge"], models_of(manifest, lang)),
        (words["prompt"], ", ".join(prompts) or words["no_judge"]),
    ]


def _base_name(path: Any, lang: str) -> str:
    return re.split(r"[\\/]", path)[-1] if isinstance(path, str) and path else WORDS[lang]["not_recorded"]


def facts(manifest: Tree, summary: Tree, lang: str) -> list[tuple[str, Pairs]]:
    """What the run was made of and with, and how its intervals were made."""
    words = WORDS[lang]
    system = [(str(name), value_text(value, lang)) for name, value in (manifest.get("system") or {}).items()]
    made = [*made_of(manifest, lang), (words["system"], system or [("", words["factors_unknown"])])]
    how = _intervals(summary, lang)
    return [*made, (words["intervals"], how)] if how else made


def made_of(manifest: Tree, lang: str) -> list[tuple[str, Pairs]]:
    """What the run was made of and with, the system under test apart: (heading, [(fact, value)])."""
    words, names = WORDS[lang], FACTS[lang]
    judge, cost = manifest.get("judge") or {}, manifest.get("cost") or {}

    def of(tree: Tree, keys: str) -> Pairs:
        return [(names[key], value_text(tree.get(key), lang)) for key in keys.split() if tree.get(key) is not None]

    run = of(manifest, "run_id name parent started_at finished_at package_version git_commit")
    asked = of(judge, "base_url model models_reported model_sha256") + of(judge.get("parameters") or {}, "asked sent")
    if judge.get("fallbacks"):
        asked.append((names["fallbacks"], "; ".join(sentence(text, lang) for text in judge["fallbacks"])))
    spent = of(cost, "calls cached resent reasked not_needed prompt_tokens completion_tokens calls_without_usage")
    if cost:
        usd = cost.get("usd")
        spent.append((names["usd"], words["price_not_set"] if usd is None else value_text(usd, lang)))
    made = [
        (words["run"], run),
        (words["inputs"], inputs_of(manifest, lang)),
        (words["measuring"], of(manifest, "k match repeats seed")),
        (words["judge"], asked),
        (words["cost"], spent),
    ]
    return [(heading, pairs) for heading, pairs in made if pairs]


def inputs_of(manifest: Tree, lang: str) -> Pairs:
    """Eval set, answers and prompts, with their hashes."""
    names = FACTS[lang]
    eval_set, answers = manifest.get("eval_set") or {}, manifest.get("answers") or {}
    pairs = [
        (names["eval_set"], [eval_set.get("path"), say(lang, "n_cases", n=eval_set.get("n")), eval_set.get("sha256")]),
        (names["answers"], [answers.get("source"), answers.get("sha256")]),
    ]
    for prompt in manifest.get("prompts") or ():
        pairs.append((names["prompts"], [f"{prompt['name']} ({prompt['lang']}, {prompt['mode']})", prompt["version"]]))
    return [(name, " · ".join(value_text(part, lang) for part in parts)) for name, parts in pairs]


def _intervals(summary: Tree, lang: str) -> Pairs:
    return [
        (say(lang, "interval", level=percent(level), target=WORDS[lang].get(target, target)), sentence(method, lang))
        for level, target, method in intervals(summary)
    ]
