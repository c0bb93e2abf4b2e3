"""The lines of `compare` for people, in English and Chinese. No logic but the choice of words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_judge.report.html_numbers import sentence
from rag_judge.report.terminal import printable

Tree = Mapping[str, Any]
NUMBERS = ("recall", "mrr")  # means, shown with two decimals; all else is a share

WORDS = {
    "en": {
        "common": "{n} questions in common; left out: only in A {only_a}, only in B {only_b}, question changed "
        "{changed_question}",
        "one_factor": "what differs: {factor}: {a} -> {b}",
        "several": "{n} FACTORS DIFFER AT ONCE: no difference can be put down to one of them",
        "factor": "  {factor}: {a} -> {b}",
        "no_factor": "nothing that is recorded differs",
        "unknown": "what the system was made of is not recorded in both runs (--set, [system] or meta of answers): "
        "what changed is UNKNOWN",
        "head": "version",
        "hit": "Hit@{k}",
        "correctness": "correctness",
        "fabrication": "fabrication",
        "recall": "Recall@{k}",
        "mrr": "MRR",
        "rule_correct": "all rules kept",
        "pass": "judge pass",
        "wrong_refusal": "refused wrongly",
        "missed_refusal": "answered, should refuse",
        "leak": "leaks",
        "row": "{name}: A {a}, B {b}; B - A {difference}{p}; won {won}, lost {lost}, same {same}{left}",
        "p": " (p = {p:.2g}{holm})",
        "holm": ", Holm {p:.2g}",
        "smallest": "; smallest difference that {n} cases could show: {smallest:.0%}",
        "left": "; {n} cases have a value in one run only",
        "nothing": "{name}: n/a ({why})",
        "corrected": "corrected by people, B - A: {difference}",
        "corrected_none": "corrected by people: n/a ({why})",
        "uncorrected": "no labels in both runs: all judge numbers are uncorrected",
        "changed": "changed cases: {n}",
        "case": "  {id}: {outcome_a}{cause_a} -> {outcome_b}{cause_b}",
        "more": "  and {n} more (comparison.json)",
        "latency": "latency, median: A {a}, B {b}",
        "cost": "cost of judging: A {a}, B {b}",
        "not_known": "not known",
        "nothing_recorded": "what changed is not recorded, so no difference is called better because of anything",
        "several_factors": "more than one thing changed; change one at a time to know which it was",
        "nothing_changed": "nothing that is recorded changed: what moved moved by itself, or is not recorded",
        "more_material_looser": "recall and fabrication rose together: more material, and a looser constraint",
        "above_recall_a": "A: correctness above its recall: right without the material, by luck or from memory",
        "above_recall_b": "B: correctness above its recall: right without the material, by luck or from memory",
        "retrieval_moved": "retrieval moved although only the prompt changed: then it was not held fixed",
        "within_flips": "the difference in pass is smaller than the share of cases on which the judge flips",
        "unscored_on_one_side": "one side has clearly more unscored cases: what is missing may be the hard ones",
    },
    "zh": {
        "common": "共同问题 {n} 个;未计入:仅 A 有 {only_a},仅 B 有 {only_b},问题变了 {changed_question}",
        "one_factor": "不同之处:{factor}:{a} -> {b}",
        "several": "【同时有 {n} 处不同】任何差异都不能归因于其中一处",
        "factor": "  {factor}:{a} -> {b}",
        "no_factor": "有记录的各项都相同",
        "unknown": "两次运行没有都记录被测系统的构成(--set、[system] 或回答的 meta):改了什么【未知】",
        "head": "版本",
        "hit": "Hit@{k}",
        "correctness": "正确性通过率",
        "fabrication": "编造率",
        "recall": "Recall@{k}",
        "mrr": "MRR",
        "rule_correct": "规则全部通过",
        "pass": "评审通过率",
        "wrong_refusal": "误拒",
        "missed_refusal": "应拒而答",
        "leak": "越权泄漏",
        "row": "{name}:A {a},B {b};B - A {difference}{p};变好 {won},变差 {lost},不变 {same}{left}",
        "p": "(p = {p:.2g}{holm})",
        "holm": ",Holm {p:.2g}",
        "smallest": ";{n} 条用例能显出的最小差异:{smallest:.0%}",
        "left": ";{n} 条只有一边有值",
        "nothing": "{name}:无({why})",
        "corrected": "经人工校正,B - A:{difference}",
        "corrected_none": "经人工校正:无({why})",
        "uncorrected": "两次运行并非都有标注:评审的数字都未校正",
        "changed": "有变化的用例:{n} 条",
        "case": "  {id}:{outcome_a}{cause_a} -> {outcome_b}{cause_b}",
        "more": "  另有 {n} 条(见 comparison.json)",
        "latency": "延迟中位数:A {a},B {b}",
        "cost": "评审费用:A {a},B {b}",
        "not_known": "未知",
        "nothing_recorded": "没有记录改了什么,因此不把任何差异说成“因为……而变好”",
        "several_factors": "改动不止一处;一次只改一处,才知道是哪一处",
        "nothing_changed": "有记录的都没变:变化是自发的,或没有记录",
        "more_material_looser": "召回与编造同时上升:资料更多了,约束更松了",
        "above_recall_a": "A:正确性高于召回上限:没有资料也答对,靠运气或模型自己的记忆",
        "above_recall_b": "B:正确性高于召回上限:没有资料也答对,靠运气或模型自己的记忆",
        "retrieval_moved": "只改了提示词,检索却变了:检索没有固定住",
        "within_flips": "通过率的差异小于评审自己前后不一的比例",
        "unscored_on_one_side": "一边未评出的明显更多:缺的可能正是难的",
    },
}
FIRST_THREE = ("hit", "correctness", "fabrication")
MOST_CASES = 12


def compare_lines(tree: Tree, k: int, lang: str) -> list[str]:
    """What differs, the table, what to know before believing it, and the cases that changed."""
    words = WORDS[lang]
    lines = [f"A = {printable(tree['a'])}", f"B = {printable(tree['b'])}"]
    lines.append(words["common"].format(n=tree["n_common"], **tree["n_dropped"]))
    lines += _factors(tree, lang)
    names = {name: words[name].format(k=k) for name in tree["metrics"]}
    lines.append(" | ".join([words["head"], *(names[name] for name in FIRST_THREE)]))
    for side in ("a", "b"):
        values = [_value(tree["metrics"][name], side, name) for name in FIRST_THREE]
        lines.append(" | ".join([side.upper(), *values]))
    if tree["corrected"] is None:
        lines.append(words["uncorrected"])
    elif tree["corrected"]["difference"] is None:
        lines.append(words["corrected_none"].format(why=sentence(tree["corrected"]["difference_reason"], lang)))
    else:
        lines.append(words["corrected"].format(difference=_difference(tree["corrected"], "pass")))
    lines += [_row(names[name], name, metric, lang) for name, metric in tree["metrics"].items()]
    lines += [
        words[key].format(**_sides(tree, field, lang)) for key, field in (("latency", "latency_s"), ("cost", "cost"))
    ]
    lines += [f"! {words[remark]}" for remark in tree["remarks"]]
    return lines + _cases(tree["changed_cases"], words)


def _factors(tree: Tree, lang: str) -> list[str]:
    words, factors = WORDS[lang], tree["changed_factors"]
    shown = [{name: printable(str(value))[:80] for name, value in factor.items()} for factor in factors]
    lines = [] if tree["factors_recorded"] else [words["unknown"]]
    if len(shown) == 1:
        return [*lines, words["one_factor"].format(**shown[0])]
    if shown:
        return [*lines, words["several"].format(n=len(shown)), *(words["factor"].format(**one) for one in shown)]
    return [*lines, words["no_factor"]]


def _value(metric: Tree, side: str, name: str) -> str:
    estimate = metric[side]
    if estimate is None:
        return "n/a"
    return f"{estimate['value']:.2f}" if name in NUMBERS else f"{estimate['value']:.0%}"


def _difference(tree: Tree, name: str) -> str:
    found = tree["difference"]
    form = "+.2f" if name in NUMBERS else "+.0%"
    interval = "" if found["low"] is None else f" [{found['low']:{form}}, {found['high']:{form}}]"
    return f"{found['value']:{form}}{interval}"


def _row(label: str, name: str, metric: Tree, lang: str) -> str:
    words = WORDS[lang]
    if metric["difference"] is None:
        return words["nothing"].format(name=label, why=sentence(metric["difference_reason"], lang))
    holm = "" if metric["p_holm"] is None else words["holm"].format(p=metric["p_holm"])
    p = "" if metric["p_value"] is None else words["p"].format(p=metric["p_value"], holm=holm)
    n_left = metric["n_only_a"] + metric["n_only_b"]
    left = words["left"].format(n=n_left) if n_left else ""
    if metric["smallest_detectable"] is not None:
        left += words["smallest"].format(n=metric["n"], smallest=metric["smallest_detectable"])
    counts = {key: metric[key] for key in ("won", "lost", "same")}
    values = {side: _value(metric, side, name) for side in ("a", "b")}
    return words["row"].format(name=label, difference=_difference(metric, name), p=p, left=left, **counts, **values)


def _sides(tree: Tree, field: str, lang: str) -> dict[str, str]:
    unknown = WORDS[lang]["not_known"]
    shown = {}
    for side, value in tree[field].items():
        if value is None:
            shown[side] = unknown
        else:
            shown[side] = f"{value:.4f} USD" if field == "cost" else f"{value['median']:.2f} s (n = {value['n']})"
    return shown


def _cases(changed: list[Tree], words: Mapping[str, str]) -> list[str]:
    lines = [words["changed"].format(n=len(changed))]
    for case in changed[:MOST_CASES]:
        shown = {"id": printable(case["id"])}
        for side in ("a", "b"):
            shown[f"outcome_{side}"] = case[f"outcome_{side}"]
            cause, layer = case[f"cause_{side}"], case[f"layer_{side}"]
            shown[f"cause_{side}"] = "" if cause is None else f" ({cause}, {layer})"
        lines.append(words["case"].format(**shown))
    if len(changed) > MOST_CASES:
        lines.append(words["more"].format(n=len(changed) - MOST_CASES))
    return lines
