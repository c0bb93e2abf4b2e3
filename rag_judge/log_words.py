"""What `signals` and `mine` say to people, in English and Chinese. No number is computed here.

Texts of the log go in as values, and are never read as a template.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rag_judge.report.terminal import printable

N_GROUPS_SHOWN = 31  # days, or values of a slice; the rest stands in --json

REASONS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "nothing": "no row says",
        "few_askers": "askers: {n}, fewer than {least}",
        "few_rows": "its interval would have no upper end: worth {n} independent rows, {least} are needed",
        "no_window": "the log ends within {minutes:g} minutes of every question; a longer log or a smaller --window",
        "no_asker": "no row has both a time and a user or conversation",
    },
    "zh": {
        "nothing": "没有一行记录此项",
        "few_askers": "只有 {n} 位提问者,少于 {least}",
        "few_rows": "区间没有上端:只相当于 {n} 行独立数据,需要 {least}",
        "no_window": "每个问题之后不到 {minutes:g} 分钟日志就结束了;请用更长的日志或更小的 --window",
        "no_asker": "没有一行同时有时间与用户或会话",
    },
}

NAMES: Mapping[str, Mapping[str, str]] = {
    "en": {
        "no_result": "no result",
        "asked_again": "asked again",
        "handed_off": "handed off",
        "refused": "refused",
        "median": "latency, median",
        "p95": "latency, p95",
    },
    "zh": {
        "no_result": "无检索结果",
        "asked_again": "再次提问",
        "handed_off": "转人工",
        "refused": "拒答",
        "median": "延迟中位数",
        "p95": "延迟 p95",
    },
}

MEANINGS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "no_result": "the search found nothing. A gap in the knowledge base, a filter or an index that broke, or a "
        "question that is none of its business",
        "asked_again": "the same asker soon asked nearly the same. An answer that did not help, a slow page, or "
        "somebody trying it out; a new wording with other words is not seen",
        "handed_off": "a person took over. A failed answer, a wish for a person, or a rule that says so",
        "refused": "the answer declines. Wrong where the knowledge base holds the answer, right where it does not",
        "latency_s": "slow answers may be long ones; waiting is not being wrong",
    },
    "zh": {
        "no_result": "检索一无所获。可能是知识库有缺口,过滤条件或索引出了错,也可能问题本不该由它回答",
        "asked_again": "同一提问者很快又问了几乎一样的问题。可能是回答没帮上忙,页面太慢,或有人在试用;"
        "换了说法的追问看不出来",
        "handed_off": "转给了人。可能是回答失败,用户想找人,或规则如此",
        "refused": "回答是拒答。知识库里有答案就是误拒,没有就是对的",
        "latency_s": "慢的可能只是回答长;等得久不等于答错",
    },
}

WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "rows": "{log}: questions: {n}, askers: {n_askers}, {days} ({clock})",
        "days": "{first} to {last}",
        "clock_own": "days as the log writes them",
        "no_time": "no time",
        "rate": "{name}: {value} ({n_true} of {n}; {n_unknown} unknown)",
        "quantile": "{name}: {value} (n = {n}; {n_unknown} unknown)",
        "withheld": "n/a, {reason}",
        "by_day": "By day:",
        "by_slice": "By {field}:",
        "group": "  {name} (n = {n}): {rates}",
        "missing": "(not stated)",
        "more": "  and {n} more, in --json",
        "few": "too few",
        "between": "; ",
        "meaning": "- {name}: {meaning}.",
        "meanings": "What each can mean:",
        "point": "These signals point to where to look. They prove nothing: none of them says that an answer was right "
        "or wrong, and no rate of quality follows from them. Read the questions behind a number before you act on it.",
        "broken": "rows that could not be read and are left out: {n}",
        "conflicts": "answers that disagree with their flag `refused`: {n}; the text counts",
        "no_asker": "rows with neither user nor conversation: {n}; each counts as an asker of its own, and intervals "
        "may be too narrow",
        "clocks": "times carry different UTC offsets ({clocks}); each row's day is its own. --timezone puts all in one",
        "unfound": "{what}: no row has it",
        "no_rows_time": "rows without a time of day: {n}; whether they were asked again is not known",
        "mined": "{out}: {written} candidates of {clusters} different questions in {rows} rows",
        "none_mined": "no candidate: {clusters} different questions in {rows} rows, none is left",
        "dropped": "left out: {covered} already covered by the cases, {small_talk} greetings and the like, {cut} "
        "beyond --n",
        "masked": "masked: {masked}",
        "nothing_masked": "nothing was masked",
        "mask_off": "personal data is NOT masked: treat the file like the log",
        "mask_remark": "Masking finds what has a form (numbers, addresses, names after a title). Names and stories in "
        "free text stay: read the file before you share it.",
        "complete": "Each candidate is a question alone. Complete what stands in its to_complete, then take "
        "to_complete out; `lint` says what is still missing.",
        "not_a_sample": "They were picked because something looked wrong: a rate over them is no rate of production.",
    },
    "zh": {
        "rows": "{log}:{n} 个问题,{n_askers} 位提问者,{days}({clock})",
        "days": "{first} 至 {last}",
        "clock_own": "日期按日志所写",
        "no_time": "无时间",
        "rate": "{name}:{value}({n_true}/{n};未知 {n_unknown})",
        "quantile": "{name}:{value}(n = {n};未知 {n_unknown})",
        "withheld": "不适用,{reason}",
        "by_day": "按天:",
        "by_slice": "按 {field}:",
        "group": "  {name}(n = {n}):{rates}",
        "missing": "(未写明)",
        "more": "  另有 {n} 项,见 --json",
        "few": "太少",
        "between": ";",
        "meaning": "- {name}:{meaning}。",
        "meanings": "各信号可能意味着什么:",
        "point": "这些信号只指出该看哪里,不能证明什么:没有一项说明某个回答是对是错,也推不出质量的比率。"
        "据此行动之前,请先读一读数字背后的问题。",
        "broken": "{n} 行无法读取,未计入",
        "conflicts": "{n} 个回答与其 refused 标记不一致;以文本为准",
        "no_asker": "{n} 行既无用户也无会话;各自算作一位提问者,区间可能偏窄",
        "clocks": "时间带有不同的 UTC 偏移({clocks});每行的日期按其自身。--timezone 可统一",
        "unfound": "{what}:没有一行有它",
        "no_rows_time": "{n} 行没有具体时刻;是否再次提问不得而知",
        "mined": "{out}:{written} 条候选,出自 {rows} 行中的 {clusters} 个不同问题",
        "none_mined": "没有候选:{rows} 行中有 {clusters} 个不同问题,没有剩下的",
        "dropped": "未收入:用例已覆盖 {covered},寒暄之类 {small_talk},超出 --n 的 {cut}",
        "masked": "已遮盖:{masked}",
        "nothing_masked": "没有需要遮盖的内容",
        "mask_off": "个人信息未遮盖:请像对待日志一样对待该文件",
        "mask_remark": "遮盖只找有固定形式的内容(号码、地址、称谓旁的姓名)。行文中的姓名与经历仍在:分享前请先读一遍。",
        "complete": "每条候选只有问题。请补全其 to_complete 所列各项,再删去 to_complete;lint 会指出还缺什么。",
        "not_a_sample": "它们因为看起来有异样才被挑出:其上的比率不是线上的比率。",
    },
}

KINDS_ZH = {
    "email": "邮箱",
    "phone": "手机号",
    "id_card": "身份证号",
    "bank_card": "银行卡号",
    "ip": "IP 地址",
    "url": "网址参数",
    "token": "密钥",
    "number": "号码",
    "name": "姓名",
    "plate": "车牌号",
}


def remarks(counts: Mapping[str, Any], lang: str) -> list[str]:
    """What is odd about a log and the numbers on it, a sentence each; a count of 0 is no oddity."""
    words = WORDS[lang]
    found = [words[name].format(n=counts[name]) for name in ("broken", "conflicts", "no_asker") if counts[name]]
    if counts["no_time"]:
        found.append(words["no_rows_time"].format(n=counts["no_time"]))
    if len(counts["clocks"]) > 1:
        found.append(words["clocks"].format(clocks=", ".join(f"{clock}: {n}" for clock, n in counts["clocks"].items())))
    return found + [words["unfound"].format(what=what) for what in counts["unfound"]]


def signal_lines(found: Mapping[str, Any], lang: str) -> Iterator[str]:
    """The lines that `signals` prints: rates over all rows, by day and by slice, and what they can mean."""
    words, names, whole = WORDS[lang], NAMES[lang], found["overall"]
    clock = found["timezone"] or words["clock_own"]
    days = [group["day"] for group in found["by_day"] if group["day"]]
    from_to = words["days"].format(first=days[0], last=days[-1]) if days else words["no_time"]
    yield words["rows"].format(
        log=printable(found["log"]), n=whole["n"], n_askers=whole["n_askers"], days=from_to, clock=clock
    )
    for name, signal in whole["signals"].items():
        yield words["rate"].format(name=names[name], value=_value(signal, "rate", words), **_counts(signal))
    for name in ("median", "p95"):
        latency = whole["latency_s"]
        yield words["quantile"].format(name=names[name], value=_value(latency, name, words), **_counts(latency))
    yield from _group_lines(words["by_day"], [(group["day"], group) for group in found["by_day"]], lang)
    for field in dict.fromkeys(group["field"] for group in found["by_slice"]):
        groups = [(group["value"], group) for group in found["by_slice"] if group["field"] == field]
        yield from _group_lines(words["by_slice"].format(field=printable(field)), groups, lang)
    yield from (f"! {printable(remark)}" for remark in found["remarks"])
    yield words["meanings"]
    for name, meaning in MEANINGS[lang].items():
        yield words["meaning"].format(name=names.get(name, names["p95"].split("p95")[0].strip(" ,")), meaning=meaning)
    yield words["point"]


def _group_lines(heading: str, groups: list[tuple[str | None, Mapping[str, Any]]], lang: str) -> Iterator[str]:
    words, names = WORDS[lang], NAMES[lang]
    yield heading
    for value, group in groups[:N_GROUPS_SHOWN]:
        rates = [
            f"{names[name]} {_short(signal, 'rate', words)}"
            for name, signal in group["signals"].items()
            if signal["n"] or signal["n_unknown"] < group["n"]
        ]
        if group["latency_s"]["n"]:
            rates += [f"{names[name]} {_short(group['latency_s'], name, words)}" for name in ("median", "p95")]
        shown = words["missing"] if value is None else printable(value)
        yield words["group"].format(name=shown, n=group["n"], rates=words["between"].join(rates) or "-")
    if len(groups) > N_GROUPS_SHOWN:
        yield words["more"].format(n=len(groups) - N_GROUPS_SHOWN)


def _counts(signal: Mapping[str, Any]) -> dict[str, Any]:
    return {name: signal[name] for name in ("n_true", "n", "n_unknown") if name in signal}


def _value(tree: Mapping[str, Any], name: str, words: Mapping[str, str]) -> str:
    if tree[name] is None:
        return words["withheld"].format(reason=tree[f"{name}_reason"])
    return _number(tree[name], is_rate=name == "rate")


def _short(tree: Mapping[str, Any], name: str, words: Mapping[str, str]) -> str:
    if tree[name] is not None:
        return _number(tree[name], is_rate=name == "rate")
    return f"{tree['n_true']}/{tree['n']} ({words['few']})" if name == "rate" and tree["n"] else f"({words['few']})"


def _number(estimate: Mapping[str, Any], *, is_rate: bool) -> str:
    factor, unit, digits = (100, " %", 1) if is_rate else (1, " s", 2)
    value = f"{factor * estimate['value']:.{digits}f}{unit}"
    if estimate["low"] is None:
        return value
    return f"{value} [{factor * estimate['low']:.{digits}f}, {factor * estimate['high']:.{digits}f}]"


def mined_lines(found: Mapping[str, Any], lang: str) -> Iterator[str]:
    """The lines that `mine` prints: what was written, what was left out, and what still has to be done."""
    words = WORDS[lang]
    counts = {name: found[name] for name in ("written", "clusters", "rows", "covered", "small_talk", "cut")}
    yield words["mined" if found["written"] else "none_mined"].format(out=printable(str(found["out"])), **counts)
    yield words["dropped"].format_map(counts)
    if found["masked"] is None:
        yield words["mask_off"]
    else:
        kinds = [f"{KINDS_ZH[kind] if lang == 'zh' else kind} {n}" for kind, n in found["masked"].items()]
        yield words["masked"].format(masked=", ".join(kinds)) if kinds else words["nothing_masked"]
        yield words["mask_remark"]
    yield from (f"! {printable(remark)}" for remark in found["remarks"])
    if found["written"]:
        yield words["complete"]
    yield words["not_a_sample"]
