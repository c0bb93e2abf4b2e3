"""What the judge's anchors show, in words: English and Chinese. Numbers are those of the check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Tree = Mapping[str, Any]
N_IDS_SHOWN = 5

WORDS = {
    "en": {
        # why the verdict is what it is
        "no_reference": "no earlier run of the anchors to hold it against",
        "pruned": "the texts of {run} were pruned, so that nothing tells which anchors are still the same",
        "none_left": "none of the {n} anchors is as it was in {run}: all were edited or added since",
        "too_few_read": "of {n} anchors {n_read} have a verdict in both runs ({n_now} now, {n_before} in {run}); "
        "at most {allowed:.0%} may lack one",
        "too_few": "{n} anchors have a verdict in both runs; {fewest} are the fewest that can show anything",
        "factors": "what judges is not what it was: {names}",
        "net": "net {net:+.0%} of {n} anchors, p = {p:.2g}",
        "scatter": "{n_changed} of {n} anchors changed in either direction, where a judge that flips as within one run "
        "({flip:.0%}) changes {expected:.0f}; p = {p:.2g}",
        # what else to know
        "edited": "edited since the reference and left out: {ids}",
        "added": "not in the reference and left out: {ids}",
        "removed": "in the reference and no more among the anchors: {ids}",
        "also_drifting": "its verdicts have moved, too: {net:+.0%} of {n} anchors, p = {p:.2g}",
        "scatters": "disagrees with itself more than within a run: {share:.0%} of the anchors changed, its own flip "
        "rate is {flip:.0%}",
        "one_repeat": "each anchor was judged once, so that the judge's own flips are not known",
        "within_tolerance": "its change of {net:+.0%} is no accident (p = {p:.2g}), and within the tolerance of "
        "{tolerance:.0%}",
        "within_flips": "its change of {net:+.0%} (p = {p:.2g}) is on no more anchors than it flips on within one run",
        "of_judge": "{model}: {said}",
        "smallest": "so many anchors show a net change of about {smallest:.0%} or more",
        "smallest_none": "so few anchors show no net change of any size",
    },
    "zh": {
        "no_reference": "还没有可对照的锚点运行",
        "pruned": "{run} 的文本已被清理,无法知道哪些锚点仍然相同",
        "none_left": "{n} 个锚点中没有一个与 {run} 中相同:全部被修改或是新增的",
        "too_few_read": "{n} 个锚点中只有 {n_read} 个在两次运行中都有判定(本次 {n_now} 个,{run} 中 {n_before} 个);"
        "最多允许 {allowed:.0%} 缺失",
        "too_few": "只有 {n} 个锚点在两次运行中都有判定;至少要 {fewest} 个才能看出变化",
        "factors": "评审本身已不同:{names}",
        "net": "{n} 个锚点上净变化 {net:+.0%},p = {p:.2g}",
        "scatter": "{n} 个锚点中有 {n_changed} 个判定改变(两个方向都算),而按单次运行内的翻转率({flip:.0%})预期为 "
        "{expected:.0f} 个;p = {p:.2g}",
        "edited": "自参照运行以来被修改、不参与比较:{ids}",
        "added": "参照运行中没有、不参与比较:{ids}",
        "removed": "参照运行中有、现在已不在锚点中:{ids}",
        "also_drifting": "其判定也移动了:{n} 个锚点上净变化 {net:+.0%},p = {p:.2g}",
        "scatters": "与自己的不一致超过单次运行内:{share:.0%} 的锚点改变,其翻转率为 {flip:.0%}",
        "one_repeat": "每个锚点只评了一次,因此不知道评审自身的翻转率",
        "within_tolerance": "{net:+.0%} 的变化并非偶然(p = {p:.2g}),但在 {tolerance:.0%} 的容许范围内",
        "within_flips": "{net:+.0%} 的变化(p = {p:.2g})涉及的锚点不多于它在单次运行内翻转的",
        "of_judge": "{model}:{said}",
        "smallest": "这么多锚点能看出约 {smallest:.0%} 或更大的净变化",
        "smallest_none": "这么少的锚点看不出任何大小的净变化",
    },
}


def note_text(note: Tree, lang: str) -> str:
    """One note of a check, its code and values, as a sentence without an end."""
    words = WORDS[lang]
    values = {name: _listed(value) if isinstance(value, list | tuple) else value for name, value in note.items()}
    said = words[note["code"]].format_map(values)
    return words["of_judge"].format(model=note["model"], said=said) if note.get("model") else said


def note_lines(anchors: Tree, lang: str) -> list[str]:
    """Everything beside the verdict and its reason: remarks, and how small a change so many anchors show."""
    smallest, words = anchors["smallest_detectable"], WORDS[lang]
    last = words["smallest_none"] if smallest is None else words["smallest"].format(smallest=smallest)
    return [*(note_text(note, lang) for note in anchors["remarks"]), last]


def _listed(ids: list[Any] | tuple[Any, ...]) -> str:
    shown = ["".join(c if c.isprintable() else "?" for c in str(one)) for one in ids[:N_IDS_SHOWN]]
    return ", ".join(shown) + (f", … ({len(ids)})" if len(ids) > N_IDS_SHOWN else "")
