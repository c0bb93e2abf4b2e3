"""`comparison.json` → the part of a report that compares the run with another. No markup; nothing is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rag_judge.comparison_words import FIRST_THREE
from rag_judge.comparison_words import NUMBERS as MEANS
from rag_judge.comparison_words import WORDS as COMPARISON_WORDS
from rag_judge.gate_reasons import reason_text
from rag_judge.report.html_facts import value_text
from rag_judge.report.html_numbers import decimal, estimate_text, missing, percent
from rag_judge.report.html_terms import CAUSES
from rag_judge.report.html_words import LAYERS, OUTCOMES
from rag_judge.report.joined import (
    Block,
    Cell,
    Part,
    Tone,
    cells,
    joined_say,
    p_text,
    signed,
    signed_decimal,
)
from rag_judge.report.joined_words import JOINED_WORDS

Tree = Mapping[str, Any]
N_CHANGED_SHOWN = 36
N_FACTORS_SHOWN = 30
END_TONES: Mapping[str, Tone] = {"pass": "green", "fail": "red", "no_answer": "red"}


def comparison_part(tree: Tree, k: int, lang: str) -> Part:
    """What differs between two runs, by how much, what to know before believing it, and which cases changed."""
    words = JOINED_WORDS[lang]
    names = {name: COMPARISON_WORDS[lang].get(name, name).format(k=k) for name in tree["metrics"]}
    remarks = [COMPARISON_WORDS[lang].get(one, one) for one in tree["remarks"]]
    blocks = [
        Block(facts=_about(tree, lang)),
        *_what_differs(tree, lang),
        _first_three(tree, names, lang),
        *([Block(heading=words["before_believing"], lines=remarks, tone="yellow")] if remarks else []),
        _corrected(tree.get("corrected"), lang),
        _all_metrics(tree, names, lang),
        Block(facts=_latency_and_cost(tree, lang)),
        _changed_cases(tree["changed_cases"], lang),
    ]
    return Part("comparison", joined_say(lang, "comparison", a=tree["a"]), blocks)


def _about(tree: Tree, lang: str) -> list[tuple[str, str]]:
    words = JOINED_WORDS[lang]
    facts = [
        (words["of_a"], str(tree["a"])),
        (words["of_b"], joined_say(lang, "this_run", b=tree["b"])),
        (words["common"], str(tree["n_common"])),
    ]
    if any(tree["n_dropped"].values()):
        facts.append((words["left_out"], joined_say(lang, "dropped", **tree["n_dropped"])))
    return facts


def _what_differs(tree: Tree, lang: str) -> list[Block]:
    words, factors = JOINED_WORDS[lang], tree["changed_factors"]
    blocks = []
    if not tree["factors_recorded"]:
        says = COMPARISON_WORDS[lang]["unknown"]
        blocks.append(Block(heading=words["unknown"], notice=says, tone="yellow"))
    if len(factors) > 1:
        title = joined_say(lang, "several", n=len(factors))
        blocks.append(Block(heading=title, notice=words["several_says"], tone="yellow"))
    if not factors:
        return [*blocks, Block(heading=words["differs"], lines=[words["no_factor"]])]
    columns = [words[name] for name in ("factor", "of_a", "of_b")]
    rows = [
        cells(str(one["factor"]), *(_factor_value(one.get(side), lang) for side in ("a", "b")))
        for one in factors[:N_FACTORS_SHOWN]
    ]
    left = len(factors) - len(rows)
    note = joined_say(lang, "more_ids", n=left) if left else ""
    return [*blocks, Block(heading=words["differs"], columns=columns, rows=rows, note=note)]


def _factor_value(value: Any, lang: str) -> str:
    return JOINED_WORDS[lang]["not_recorded"] if value is None else value_text(value, lang)


def _first_three(tree: Tree, names: Mapping[str, str], lang: str) -> Block:
    """Found, right and made up: these three are read together, or they mislead."""
    words = JOINED_WORDS[lang]
    rows = [
        cells(words[label], *(_shown(tree["metrics"][name], side, name, lang) for name in FIRST_THREE))
        for label, side in (("of_a", "a"), ("of_b", "b"), ("difference", "difference"))
    ]
    columns = [words["version"], *(names[name] for name in FIRST_THREE)]
    return Block(heading=words["together"], columns=columns, rows=rows, note=words["together_says"])


def _shown(metric: Tree, key: str, name: str, lang: str) -> str:
    """A metric's value in A or B, or its difference, with its interval; n/a and why."""
    is_mean = name in MEANS
    if key == "difference":
        form: Callable[[float], str] = signed_decimal if is_mean else signed
    else:
        form = decimal if is_mean else percent
    if metric[key] is None:
        return missing(reason_text(str(metric.get(f"{key}_reason") or ""), lang), lang)
    return estimate_text(metric, key, lang, form)


def _all_metrics(tree: Tree, names: Mapping[str, str], lang: str) -> Block:
    words = JOINED_WORDS[lang]
    columns = [words[name] for name in ("metric", "of_a", "of_b", "difference", "p_value", "changes", "smallest")]
    rows = [_metric_row(names[name], name, metric, lang) for name, metric in tree["metrics"].items()]
    return Block(heading=words["all_metrics"], columns=columns, rows=rows, note=words["metrics_note"])


def _metric_row(label: str, name: str, metric: Tree, lang: str) -> list[Cell]:
    difference = _shown(metric, "difference", name, lang)
    if metric["difference"] is None:
        return cells(label, "–", "–", difference, "–", "–", "–")
    p, holm, smallest = metric["p_value"], metric["p_holm"], metric["smallest_detectable"]
    p_shown = "–" if p is None else p_text(p)
    if p is not None and holm is not None:
        p_shown = joined_say(lang, "holm", p=p_shown, holm=p_text(holm))
    changes = f"{metric['won']} / {metric['lost']} / {metric['same']}"
    if one_sided := metric["n_only_a"] + metric["n_only_b"]:
        changes += joined_say(lang, "one_sided", n=one_sided)
    smallest_shown = "–" if smallest is None else decimal(smallest) if name in MEANS else percent(smallest)
    sides = [_shown(metric, side, name, lang) for side in ("a", "b")]
    return cells(label, *sides, difference, p_shown, changes, smallest_shown)


def _corrected(tree: Tree | None, lang: str) -> Block:
    words = JOINED_WORDS[lang]
    if tree is None:
        return Block(heading=words["corrected_rates"], lines=[words["no_labels"]])
    facts = [(words[label], _shown(tree, side, "pass", lang)) for label, side in _SIDES if side in tree]
    facts.append((words["difference"], _shown(tree, "difference", "pass", lang)))
    both = joined_say(lang, "corrected_both", n=tree["n_labelled_in_both"])
    return Block(heading=words["corrected_rates"], facts=facts, note=both)


_SIDES = (("of_a", "a"), ("of_b", "b"))


def _latency_and_cost(tree: Tree, lang: str) -> list[tuple[str, str]]:
    words = JOINED_WORDS[lang]
    facts = []
    for name, key in (("latency", "latency_s"), ("cost", "cost")):
        shown = []
        for label, side in _SIDES:
            value = (tree.get(key) or {}).get(side)
            if value is None:
                text = words["not_known"]
            else:
                text = f"{value:.4f} USD" if key == "cost" else f"{value['median']:.2f} s (n = {value['n']})"
            shown.append(f"{words[label]} {text}")
        facts.append((words[name], ("；" if lang == "zh" else "; ").join(shown)))
    return facts


def _changed_cases(changed: Sequence[Tree], lang: str) -> Block:
    words = JOINED_WORDS[lang]
    heading = joined_say(lang, "changed_cases", n=len(changed))
    if not changed:
        return Block(heading=heading, lines=[words["no_changes"]])
    rows = [
        [Cell(str(case["id"]), is_case=True), _end(case, "a", lang), _end(case, "b", lang)]
        for case in changed[:N_CHANGED_SHOWN]
    ]
    left = len(changed) - len(rows)
    note = joined_say(lang, "more_changed", n=left) if left else ""
    return Block(heading=heading, columns=[words[n] for n in ("case", "before", "after")], rows=rows, note=note)


def _end(case: Tree, side: str, lang: str) -> Cell:
    """How a case ended in one run: outcome, and of a fail its cause and layer."""
    outcome, cause, layer = (case.get(f"{name}_{side}") for name in ("outcome", "cause", "layer"))
    said = OUTCOMES[lang].get(str(outcome), str(outcome))
    if cause is not None:
        label = CAUSES[lang].get(cause, (cause, "", ""))[0]
        where = "" if layer is None else f" · {LAYERS[lang].get(layer, layer)}"
        said += f"{'：' if lang == 'zh' else ': '}{label}{where}"
    return Cell(said, END_TONES.get(str(outcome), ""))
