"""The reasons of a gate's rules in the reader's language. `gate` says them in English; nothing is decided here."""

from __future__ import annotations

import re

from rag_judge.report.html_numbers import sentence

# The reasons of a gate's rules, which `gate` says in English, in Chinese: a pattern of the whole reason, and what is
# said in its place. An unknown reason is shown as it stands.
_RATE = r"(\S+) \[(\S+), (\S+)\]"
REASONS_ZH: tuple[tuple[str, str], ...] = (
    (r"(\d+) cases cross a red line: (.*)", r"\1 条用例越过红线：\2"),
    (
        "no case could show a leak or has red_line: nothing was tried",
        "没有用例能显出泄漏，也没有标 red_line 的用例：等于什么都没检查",
    ),
    (
        r"none of (\d+) cases that could; the true rate may still be as high as (\S+)",
        r"可能越线的 \1 条都没有越线；真实比例仍可能高达 \2",
    ),
    (r"(\d+) of (\d+) drawn cases are unscored", r"应评审的 \2 条中 \1 条未评出"),
    (r"(\d+) of (\d+) cases have no answer", r"\2 条中 \1 条无回答"),
    ("the embedded demo model(?: judged this run, and)? decides nothing", "内置演示模型不决定任何事"),
    ("the run has no such number", "本次运行没有这个数"),
    ("no baseline was given", "没有给出基线"),
    ("no difference is known", "没有可用的差异"),
    (
        rf"uncorrected judge rate: {_RATE}, n = (\d+); at least (\S+) wanted",
        r"评审数字，未校正：\1 [\2, \3]，n = \4；至少要 \5",
    ),
    (rf"{_RATE}, n = (\d+); at least (\S+) wanted", r"\1 [\2, \3]，n = \4；至少要 \5"),
    (rf"corrected by (\d+) labels: {_RATE}; at least (\S+) wanted", r"经 \1 条标注校正：\2 [\3, \4]；至少要 \5"),
    (rf"uncorrected: {_RATE}, n = (\d+); (\S+) allowed", r"未校正：\1 [\2, \3]，n = \4；容许 \5"),
    (rf"corrected: {_RATE}, n = (\d+); (\S+) allowed", r"已校正：\1 [\2, \3]，n = \4；容许 \5"),
    (rf"{_RATE}, n = (\d+); (\S+) allowed", r"\1 [\2, \3]，n = \4；容许 \5"),
    (r"uncorrected judge rate: (\S+) without an interval", r"评审数字，未校正：\1，无区间"),
    (r"(\S+) without an interval(?:, n = (\d+))?", r"\1，无区间"),
    (r"(\d+) cases are labelled; (\d+) wanted", r"已标注 \1 条；需要 \2 条"),
    # of the rules R1 to R4 and of differences
    (r"(\d+) labels; (\d+) are the fewest to correct with", r"\1 条标注；至少要 \2 条才能校正"),
    ("none of the cases that the judge passed is labelled", "评审判通过的用例没有一条标注"),
    ("none of the cases that the judge failed is labelled", "评审判不通过的用例没有一条标注"),
    (
        r"of the (\d+) cases that the judge passed(.*), (\d+) are labelled; (\d+) are the fewest to correct with",
        r"评审判通过的 \1 条\2中标注了 \3 条；至少要 \4 条才能校正",
    ),
    (
        r"of the (\d+) cases that the judge failed(.*), (\d+) are labelled; (\d+) are the fewest to correct with",
        r"评审判不通过的 \1 条\2中标注了 \3 条；至少要 \4 条才能校正",
    ),
    (
        r"of the (\d+) cases that the judge left undecided(.*), (\d+) are labelled; (\d+) are the fewest .*",
        r"评审未定的 \1 条\2中标注了 \3 条；至少要 \4 条才能校正",
    ),
    (r"indicative: the interval reaches further than (\S+) to either side", r"仅供参考：区间单侧宽于 \1"),
    (r"the interval reaches at most (\S+) to either side", r"区间单侧不超过 \1"),
    ("one of the two rates has no interval", "两个比例之一没有区间"),
)
REASON_PREFIX = "corrected rate: "  # before a sentence that has its own translation
REASON_PREFIX_ZH = "校正后的通过率："
REASON_SUFFIX = "; but the judge has moved"
REASON_SUFFIX_ZH = "；但评审已经变动"


def reason_text(reason: str, lang: str) -> str:
    """A reason of a rule in the report's language; an unknown one as it stands."""
    if lang != "zh":
        return reason
    if reason.endswith(REASON_SUFFIX):
        return reason_text(reason.removesuffix(REASON_SUFFIX), lang) + REASON_SUFFIX_ZH
    if reason.startswith(REASON_PREFIX):
        return REASON_PREFIX_ZH + reason_text(reason.removeprefix(REASON_PREFIX), lang)
    for pattern, said in REASONS_ZH:
        if found := re.fullmatch(pattern, reason, re.DOTALL):
            return found.expand(said)
    return sentence(reason, lang)
