"""What a bridge says to people: how today's judge differs from the one before, on the very same answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_judge.report.html_numbers import sentence
from rag_judge.report.terminal import printable

Tree = Mapping[str, Any]

WORDS = {
    "en": {
        "head": "the same answers, judged again: {parent} then, {bridge} now",
        "judge": "  {factor}: {before} -> {now}",
        "same_judge": "  nothing that is recorded of the judge differs: what moved is its own drift, or chance",
        "rates": "judge pass rate, not corrected: then {a}, now {b}; now - then {difference}, p = {p:.2g}",
        "cases": "of {n} cases {gained} pass now and failed then, {lost} the other way round, {same} are as they were",
        "doing": "this is the judge's doing and not the system's: the answers are the same",
        "smallest": "a change below about {smallest:.0%} would not show on so many cases",
        "nothing": "how far the judge moved is not known: {why}",
        "labels": "{n} labels are taken along, with the probabilities of their draw; next: rag-judge bias {bridge}",
        "no_labels": "{parent} has no labels, so that nothing tells which of the two judges is right",
        "other_fields": "the labels of {parent} are not taken along: today's judge prompt asks for other fields",
    },
    "zh": {
        "head": "同样的回答,再评一次:当时 {parent},现在 {bridge}",
        "judge": "  {factor}:{before} -> {now}",
        "same_judge": "  有记录的评审设置没有不同:变化来自评审自身的漂移,或是偶然",
        "rates": "评审通过率(未校正):当时 {a},现在 {b};现在 - 当时 {difference},p = {p:.2g}",
        "cases": "{n} 条用例中:{gained} 条当时未通过、现在通过,{lost} 条相反,{same} 条不变",
        "doing": "这是评审的变化,不是系统的变化:回答完全相同",
        "smallest": "这么多用例看不出约 {smallest:.0%} 以下的变化",
        "nothing": "不知道评审移动了多少:{why}",
        "labels": "已带上 {n} 条人工标注及其抽样概率;下一步:rag-judge bias {bridge}",
        "no_labels": "{parent} 没有人工标注,无法知道两个评审哪个更对",
        "other_fields": "没有带上 {parent} 的人工标注:今天的评审提示词询问的字段不同",
    },
}


def bridge_lines(
    comparison: Tree, changed: Sequence[Tree], n_labels: int, why_no_labels: str | None, lang: str
) -> list[str]:
    """The lines for people; `changed` is what the manifests say is otherwise about the judge."""
    words, moved = WORDS[lang], comparison["metrics"]["pass"]
    names = {"parent": comparison["a"], "bridge": comparison["b"]}
    lines = [words["head"].format(**names)]
    lines += [words["judge"].format_map({k: printable(str(v)) for k, v in one.items()}) for one in changed]
    if moved["difference"] is None:
        lines.append(words["nothing"].format(why=sentence(moved["difference_reason"], lang)))
    else:
        lines += [] if changed else [words["same_judge"]]
        shown = {name: _share(moved[name]) for name in ("a", "b")} | {"difference": _signed(moved["difference"])}
        lines.append(words["rates"].format(**shown, p=moved["p_value"]))
        counts = {"gained": moved["won"], "lost": moved["lost"], "same": moved["same"], "n": moved["n"]}
        lines += [words["cases"].format(**counts), words["doing"]]
        if moved["smallest_detectable"] is not None:
            lines.append(words["smallest"].format(smallest=moved["smallest_detectable"]))
    return [*lines, words[why_no_labels or "labels"].format(n=n_labels, **names)]


def _share(estimate: Tree) -> str:
    ends = "" if estimate["low"] is None else f" [{estimate['low']:.0%}, {estimate['high']:.0%}]"
    return f"{estimate['value']:.0%}{ends}"


def _signed(estimate: Tree) -> str:
    ends = "" if estimate["low"] is None else f" [{estimate['low']:+.0%}, {estimate['high']:+.0%}]"
    return f"{estimate['value']:+.0%}{ends}"
