"""What a night says to people, in English and Chinese; numbers are those of its records, none is computed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_judge.anchor_words import note_text
from rag_judge.report.terminal import printable

Tree = Mapping[str, Any]
N_IDS_SHOWN = 5
WORDS = {
    "en": {
        "running": "another night is running{since}; nothing was done",
        "since": ", since {started_at}, as process {pid} on {host}",
        "taken_over": "the last night{since} ended without a word; its lock is taken over",
        "went_on": "going on with the night that was interrupted: {run}",
        "no_baseline": "no baseline yet: this night is compared with none",
        "baseline": "baseline: {run}{why}",
        "pinned": " (pinned)",
        "last_good": " (the last night that could be shipped)",
        "bridged": ", its answers graded again by today's judge in {bridge}",
        "not_bridged": ", graded by another judge: judge numbers are not compared",
        "not_compared": "not compared with the baseline: {why}",
        "numbers": "{name}: {value}",
        "pass": "judge pass rate, not corrected",
        "correctness": "correctness",
        "fabrication": "fabrication",
        "hit": "Hit@{k}",
        "rule_correct": "rules correct",
        "from_cache": "{n} of {of} verdicts are replies of earlier nights to the same answers",
        "other_settings": "the night that was interrupted had other settings; a new one begins: {run} is left as it is",
        "damaged": "{run} is damaged, see `rag-judge runs verify`: {what}",
        "leaks": "leaks: {n}{ids}",
        "moved_same": "judge: no move seen on its {n} anchors (net {net}); so many show about {smallest} or more",
        "moved_first": "judge: first time on its {n} anchors, nothing to hold them against",
        "moved_unknown": "judge: not known whether it moved: {why}",
        "moved_changed": "THE JUDGE CHANGED: {what}",
        "moved_drifting": "THE JUDGE DRIFTED: {what}",
        "moved_none": "judge: no anchors are set, so that a drift would not be seen",
        "not_comparable": "not comparable with the nights before: the difference is the judge's, not the system's",
        "still": "nights have ended like this since {since}",
        "changed_cases": "cases that changed: {n}{ids}",
        "stopped": "could not measure: {why}",
        "again": "this does not say that the system got worse; mend the cause and start the same command again: it "
        "goes on for 18 hours, --fresh begins anew",
        "review": "review sample: {n} cases for {annotators} people in {folder}",
        "no_review": "no review sample: {why}",
        "pruned": "archive: {n} old runs pruned, {mb:.1f} MB",
        "notice": "notice to {channel}: {said}",
        "sent": "sent",
        "not_sent": "NOT sent: {detail}",
    },
    "zh": {
        "running": "另一个夜间任务正在运行{since};本次什么也没有做",
        "since": ",开始于 {started_at},进程 {pid},主机 {host}",
        "taken_over": "上一个夜间任务{since}未正常结束;已接管它的锁",
        "went_on": "继续被中断的夜间任务:{run}",
        "no_baseline": "还没有基线:本次不与任何运行比较",
        "baseline": "基线:{run}{why}",
        "pinned": "(已固定)",
        "last_good": "(最近一次可上线的夜间运行)",
        "bridged": ",其回答已由今天的评审重新评分,见 {bridge}",
        "not_bridged": ",由另一个评审评分:不比较评审数字",
        "not_compared": "未与基线比较:{why}",
        "numbers": "{name}:{value}",
        "pass": "评审通过率(未校正)",
        "correctness": "正确性",
        "fabrication": "编造率",
        "hit": "Hit@{k}",
        "rule_correct": "规则正确",
        "from_cache": "{of} 个判定中有 {n} 个沿用以前夜间对相同回答的回复",
        "other_settings": "被中断的夜间任务用的是别的设置;重新开始:{run} 保持原样",
        "damaged": "{run} 已损坏,见 `rag-judge runs verify`:{what}",
        "leaks": "泄漏:{n}{ids}",
        "moved_same": "评审:在 {n} 个锚点上没有看出变动(净变化 {net});这么多锚点能看出约 {smallest} 或更大的变化",
        "moved_first": "评审:首次在 {n} 个锚点上评分,尚无对照",
        "moved_unknown": "评审:不知道是否变动:{why}",
        "moved_changed": "评审已更换:{what}",
        "moved_drifting": "评审已漂移:{what}",
        "moved_none": "评审:没有设置锚点,漂移不会被发现",
        "not_comparable": "与此前的夜间运行不可比:差异来自评审,而不是系统",
        "still": "自 {since} 起,各夜都是这个结果",
        "changed_cases": "变化的用例:{n}{ids}",
        "stopped": "未能测量:{why}",
        "again": "这并不表示系统变差了;排除原因后再次运行同一命令:18 小时内可继续,--fresh 则重新开始",
        "review": "人工复核样本:{n} 条,{annotators} 人,位于 {folder}",
        "no_review": "没有复核样本:{why}",
        "pruned": "归档:清理了 {n} 个旧运行,{mb:.1f} MB",
        "notice": "通知 {channel}:{said}",
        "sent": "已发送",
        "not_sent": "未发送:{detail}",
    },
}


def number_lines(summary: Tree, lang: str) -> list[str]:
    """The night's main numbers, a line each, with their intervals."""
    words = WORDS[lang]
    places = [
        ("pass", summary["judge"].get("pass")),
        ("correctness", summary["judge"].get("correctness")),
        ("fabrication", summary["judge"].get("fabrication")),
        ("hit", summary["retrieval"].get("hit")),
        ("rule_correct", summary["rules"].get("correct")),
    ]
    lines = [
        words["numbers"].format(name=words[name].format(k=summary["retrieval"]["k"]), value=_share(estimate))
        for name, estimate in places
        if estimate is not None
    ]
    leaks = summary["rules"]["leaks"]
    return [*lines, words["leaks"].format(n=len(leaks), ids=_ids(leaks))]


def changed_line(comparison: Tree, lang: str) -> str:
    """How many cases changed, and the first of them."""
    ids = [case["id"] for case in comparison["changed_cases"]]
    return WORDS[lang]["changed_cases"].format(n=len(ids), ids=_ids(ids))


def judge_line(anchors: Tree | None, lang: str) -> str:
    """What is known of the judge against its anchors; None: none are set."""
    words = WORDS[lang]
    if anchors is None:
        return words["moved_none"]
    why = anchors.get("why")
    said = "" if why is None else printable(note_text(why, lang))
    factors = "; ".join(
        f"{printable(str(one['factor']))}: {printable(str(one['before']))} -> {printable(str(one['now']))}"
        for one in anchors.get("changed") or ()
    )
    net, smallest = anchors.get("net"), anchors.get("smallest_detectable")
    shown = {
        "net": "?" if net is None else f"{net['value']:+.0%}",
        "smallest": "?" if smallest is None else f"{smallest:.0%}",
    }
    return words[f"moved_{anchors['verdict']}"].format(n=anchors["n"], why=said, what=factors or said, **shown)


def _share(estimate: Tree) -> str:
    ends = "" if estimate["low"] is None else f" [{estimate['low']:.0%}, {estimate['high']:.0%}]"
    return f"{estimate['value']:.0%}{ends} (n = {estimate['n']})"


def _ids(ids: Sequence[str]) -> str:
    if not ids:
        return ""
    shown = ", ".join(printable(one) for one in ids[:N_IDS_SHOWN])
    return f" ({shown}, …)" if len(ids) > N_IDS_SHOWN else f" ({shown})"
