"""The lines that a run prints and keeps in `hit.txt`, in English and Chinese.

Texts of cases are shown with control characters taken out: they are data, and a terminal obeys some of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rag_judge.report.sentences import SENTENCES_ZH

if TYPE_CHECKING:
    from rag_judge.records import Answer, Case, CaseRow

N_FAILURES_SHOWN = 12
N_CHARACTERS_SHOWN = 600

WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "end_to_end": "End-to-end correct",
        "of_drawn": " (of the cases drawn for the judge)",
        "of_part": " (of the cases judged before the limit, no random part)",
        "retrieval": "Retrieval",
        "faithful": "Key points supported by contexts",
        "refusal": "Refusals right",
        "refusal_detail": " (should refuse: {should_and_did} did, {should_but_answered} answered; "
        "should answer: {should_not_and_answered} did, {should_not_but_did} refused)",
        "repeats": "{n_answers} answers to {n_questions} questions: counts are of answers, intervals of questions",
        "then_answered": "Refused, then answered anyway",
        "leaks": "Leaks",
        "of_checked": "of {n} cases that could show one",
        "drawn": "drawn {n} of {of}",
        "open": " ({n} more are open)",
        "part": "judged before the limit {n}/{of}",
        "unlabelled": "No case states an expectation, so rules cannot say what is right. What needs none:",
        "answers_declined": "declined",
        "answers_no_context": "nothing retrieved",
        "answers_unsupported_figures": "a figure in no context",
        "answers_citations": "citations of what was not retrieved",
        "answers_support": "words found in the contexts",
        "probes": "Unclear fails asked again with the right passages",
        "probe_right": "now right",
        "probe_wrong": "still wrong",
        "probe_not_taken": "passages not taken",
        "probe_no_rule": "no rule can tell",
        "probe_failed": "no answer",
        "judge_pass": "Judge pass rate (not corrected)",
        "fabrication": "Fabrication rate",
        "undecided": "undecided",
        "unscored": "unscored",
        "flip": "Flip rate",
        "score": "Mean score (comparable only under one judge and one prompt version)",
        "agreement": "agreement of",
        "disagree": "cases on which the judges disagree",
        "alike": " (the two replies are word for word the same in {n} of {of}; a judge that repeats itself is not "
        "thereby right)",
        "no_answer": "No answer",
        "not_applicable": "n/a ({reason})",
        "failures": "{n} failed cases (details in {path})",
        "failure": "[{type}] {id} expected=[{expected}] got=[{got}] expect_refusal={refusal} layer={layer}",
        "embedded": "WARNING: this run was judged by the embedded demo model, which judges no better than chance. "
        "Its judge numbers show that the pipeline runs, nothing else.",
    },
    "zh": {
        "end_to_end": "端到端正确率",
        "of_drawn": "(仅抽给评审的样本)",
        "of_part": "(仅到达限额前评过的用例,并非随机抽样)",
        "retrieval": "检索",
        "faithful": "生成忠实度",
        "refusal": "拒答正确率",
        "refusal_detail": "(应拒答:{should_and_did} 条已拒,{should_but_answered} 条作答;"
        "应作答:{should_not_and_answered} 条已答,{should_not_but_did} 条误拒)",
        "repeats": "{n_questions} 个问题共 {n_answers} 个回答:计数按回答,区间按问题",
        "then_answered": "先拒后答",
        "leaks": "越权泄漏",
        "of_checked": "条(可查 {n} 条)",
        "drawn": "抽取 {n}/{of}",
        "open": "(另有 {n} 条未决)",
        "part": "到达限额前评了 {n}/{of}",
        "unlabelled": "没有用例写明预期,规则无法判断对错。不需要预期的部分:",
        "answers_declined": "拒答",
        "answers_no_context": "什么都没检索到",
        "answers_unsupported_figures": "有数字不在资料中",
        "answers_citations": "引用了没有检索到的资料",
        "answers_support": "用词见于资料",
        "probes": "用正确资料重问原因不明的失败",
        "probe_right": "答对",
        "probe_wrong": "仍错",
        "probe_not_taken": "未采用所给资料",
        "probe_no_rule": "规则无法判断",
        "probe_failed": "无回答",
        "judge_pass": "评审通过率(未校正)",
        "fabrication": "编造率",
        "undecided": "未定",
        "unscored": "未评出",
        "flip": "翻转率",
        "score": "平均分(只有同一评审、同一提示词版本下才可比)",
        "agreement": "一致率",
        "disagree": "评审之间有分歧的用例",
        "alike": "(两次回复逐字相同 {n}/{of};评审前后一致不等于判得对)",
        "no_answer": "无回答",
        "not_applicable": "不适用({reason})",
        "failures": "失败样本 {n} 条(明细见 {path})",
        "failure": "[{type}] {id} 期望文档=[{expected}] 实际=[{got}] 拒答预期={refusal} 层={layer}",
        "embedded": "警告:本次运行由内置演示模型评审,其判断不优于随机。评审数字只说明流程可运行,别无他用。",
    },
}


PAIR_WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "ends": "{pairs} pairs, each in both orders: A better {a_wins}, B better {b_wins}, ties {ties}, "
        "inconsistent {inconsistent} (undecided {undecided}, unscored {unscored})",
        "part": "stopped at a limit: {n} of {of} pairs were judged, and these are no random part",
        "left_out": "{n} questions that only one of the runs was asked are left out",
        "not_paired": "{n} questions are no pair: no answer from A {a}, from B {b}; without context texts {n_bare}; "
        "the rest was not drawn",
        "win_rate": "Win rate of A (ties and inconsistent pairs count half)",
        "consistency": "Same verdict in both orders",
        "first": "First place preferred, of the pairs reversed by their order",
        "longer": "The longer answer won",
        "flip": "Flip rate of repeats",
        "not_corrected": "This is what the judge prefers; whether people agree is not known before they have labelled.",
    },
    "zh": {
        "ends": "{pairs} 对,两种次序各评:A 胜 {a_wins},B 胜 {b_wins},平 {ties},前后不一 {inconsistent}"
        "(未定 {undecided},未评出 {unscored})",
        "part": "因限额停止:{of} 对中评了 {n} 对,并非随机抽样",
        "left_out": "只有一方被问到的 {n} 个问题未计入",
        "not_paired": "{n} 个问题不成对:A 无回答 {a},B 无回答 {b};缺资料文本 {n_bare};其余未抽中",
        "win_rate": "A 的胜率(平局与前后不一各算半胜)",
        "consistency": "两种次序结论相同",
        "first": "次序一换就翻的对中偏向先出现者",
        "longer": "较长的回答胜出",
        "flip": "重复评审的翻转率",
        "not_corrected": "这是评审的偏好;在人工标注样本之前,不知道人是否同意。",
    },
}


def summary_lines(summary: Mapping[str, Any], lang: str, *, embedded: bool = False) -> list[str]:
    """The lines people know, one a number; a number that does not exist says why."""
    words = WORDS[lang]
    retrieval, rules, judge = summary["retrieval"], summary["rules"], summary["judge"]
    k = retrieval["k"]
    lines = [words["embedded"]] if embedded else []
    if repeats := summary.get("repeats"):
        lines.append(words["repeats"].format_map(repeats))
    end = summary["end_to_end"]
    of_whom = "" if end["population"] == "all cases" else words["of_part" if judge.get("part") else "of_drawn"]
    n_open = words["open"].format(n=end["n_open"]) if end["n_open"] and end["correct"] else ""
    lines.append(f"{words['end_to_end']}: {_fraction(end, 'correct', words, percent=True)}{n_open}{of_whom}")
    lines.append(f"Hit@{k} = {_hit(retrieval, words)}")
    for column, name in (("recall", f"Recall@{k}"), ("mrr", "MRR")):
        lines.append(f"{words['retrieval']} {name}: {_mean(retrieval, column, words)}")
    lines.append(f"{words['faithful']}: {_fraction(rules, 'faithful', words)}")
    detail = words["refusal_detail"].format_map(summary["abstention"]) if rules["refusal"] else ""
    lines.append(f"{words['refusal']}: {_fraction(rules, 'refusal', words)}{detail}")
    if n := summary["abstention"]["refused_then_answered"]:
        lines.append(f"{words['then_answered']}: {n}")
    of_checked = words["of_checked"].format(n=rules["n_leak_checked"])
    lines.append(f"{words['leaks']}: {len(rules['leaks'])} {of_checked}{_ids(rules['leaks'])}")
    if summary["n_answered"] and summary["answers"]["n_without_expectation"] == summary["n_answered"]:
        lines += _unlabelled_lines(summary, words)
    if judge["mode"] != "none":
        reasons = ", ".join(f"{name} {n}" for name, n in judge["unscored"].items())
        left = [
            f"{words['undecided']} {judge['undecided']}",
            f"{words['unscored']} {sum(judge['unscored'].values())}" + (f": {reasons}" if reasons else ""),
        ]
        if judge.get("part"):
            left.insert(0, words["part"].format_map(judge["part"]))
        if judge["sampled"]:
            left.insert(0, words["drawn"].format(n=judge["sampled"]["n"], of=judge["sampled"]["of"]))
        lines.append(f"{words['judge_pass']}: {_fraction(judge, 'pass', words, percent=True)} ({', '.join(left)})")
        if judge.get("score"):
            lines.append(f"{words['score']}: {_with_ends(judge['score'], 'mean', lang)}")
        lines.append(f"{words['fabrication']}: {_fraction(judge, 'fabrication', words, percent=True)}")
        lines.append(f"{words['flip']}: {_fraction(judge, 'flip_rate', words)}{_alike(judge, words)}")
    lines += _panel_lines(judge.get("panel"), lang)
    if summary.get("probes"):
        counted = ", ".join(f"{words['probe_' + name]} {n}" for name, n in summary["probes"].items())
        lines.append(f"{words['probes']}: {counted}")
    if summary["n_errors"]:
        lines.append(f"{words['no_answer']}: {summary['n_errors']}/{summary['n_answered'] + summary['n_errors']}")
    return lines


def _unlabelled_lines(summary: Mapping[str, Any], words: Mapping[str, str]) -> list[str]:
    """What can be said where no case states an expectation."""
    answers, citations = summary["answers"], summary["rules"]["citations"]
    names = ("declined", "no_context", "unsupported_figures")
    return [
        words["unlabelled"],
        *(f"  {words['answers_' + name]}: {_fraction(answers, name, words, percent=True)}" for name in names),
        f"  {words['answers_citations']}: {citations['dangling']}/{citations['checked']}",
        f"  {words['answers_support']}: {_mean(answers, 'lexical_support', words)}",
    ]


def pair_lines(summary: Mapping[str, Any], names: tuple[str, str], lang: str, *, embedded: bool = False) -> list[str]:
    """The lines of a comparison; `names` are what A and B stand for."""
    words, numbers = PAIR_WORDS[lang], summary["pairwise"]
    lines = [WORDS[lang]["embedded"]] if embedded else []
    lines += [f"A = {printable(names[0])}", f"B = {printable(names[1])}", words["ends"].format_map(numbers)]
    if summary.get("part"):
        lines.append(words["part"].format_map(summary["part"]))
    if summary.get("n_left_out"):
        lines.append(words["left_out"].format(n=summary["n_left_out"]))
    if left := summary["n_cases"] - numbers["pairs"]:
        silent = {side: summary["no_answer"][side] for side in ("a", "b")}
        lines.append(words["not_paired"].format(n=left, n_bare=summary["n_without_contexts"], **silent))
    lines.append(f"{words['win_rate']}: {_with_ends(numbers, 'win_rate_a', lang)}")
    lines.append(f"{words['consistency']}: {_fraction(numbers, 'consistency', WORDS[lang], percent=True)}")
    first, length = _with_ends(numbers, "first_position", lang), numbers["length"]
    lines.append(f"{words['first']}: {first}{_p(numbers['first_position_p'])}")
    longer = _fraction(length, "longer_won", WORDS[lang])
    lines.append(f"{words['longer']}: {longer}{_p(length['longer_won_p'])}")
    lines.append(f"{words['flip']}: {_with_ends(numbers, 'flip_rate', lang)}")
    return [*lines, words["not_corrected"]]


def failure_lines(
    failures: Iterable[tuple[CaseRow, Case, Answer]], n_failures: int, path: str, lang: str
) -> Iterator[str]:
    """The heading and the first failed cases; `failures` may hold more than are shown."""
    words = WORDS[lang]
    yield words["failures"].format(n=n_failures, path=path)
    for (row, case, answer), _ in zip(failures, range(N_FAILURES_SHOWN), strict=False):
        got = ", ".join(context.id or "?" for context in answer.contexts or ())
        yield words["failure"].format(
            type=printable(row.type or "-"),
            id=printable(row.id) + ("" if row.answer_no is None else f" ({row.answer_no})"),
            expected=printable(", ".join(case.relevant_docs)),
            got=printable(got),
            refusal=_flag(row.expect_refusal),
            layer=row.layer,
        )


def printable(text: str) -> str:
    """The text on one line, shortened, without control characters, which a terminal would obey."""
    shown = text if len(text) <= N_CHARACTERS_SHOWN else text[:N_CHARACTERS_SHOWN] + "…"
    return "".join(c if c.isprintable() else " " for c in shown)


def _with_ends(tree: Mapping[str, Any], name: str, lang: str) -> str:
    """A number with its interval and n, or why there is none."""
    estimate = tree[name]
    if estimate is None:
        return _missing(tree, name, WORDS[lang])
    if estimate["low"] is None:
        return f"{estimate['value']:.2f} (n = {estimate['n']})"
    ends = f"[{estimate['low']:.2f}, {estimate['high']:.2f}]"
    return f"{estimate['value']:.2f} {ends} (n = {estimate['n']})"


def _p(value: float | None) -> str:
    return "" if value is None else f", p = {value:.3g}"


def _flag(value: bool | None) -> str:
    return "-" if value is None else str(value).lower()


def _ids(ids: list[str]) -> str:
    return "" if not ids else " (" + ", ".join(printable(name) for name in ids[:N_FAILURES_SHOWN]) + ")"


def _missing(tree: Mapping[str, Any], name: str, words: Mapping[str, str]) -> str:
    reason = tree.get(f"{name}_reason", "")
    return words["not_applicable"].format(reason=SENTENCES_ZH.get(reason, reason) if words is WORDS["zh"] else reason)


def _panel_lines(panel: Mapping[str, Any] | None, lang: str) -> Iterator[str]:
    """A line a judge, and how far each two agree."""
    if panel is None:
        return
    words = WORDS[lang]
    for judge in panel["judges"]:
        left = f"{words['undecided']} {judge['undecided']}, {words['unscored']} {sum(judge['unscored'].values())}"
        yield f"  {printable(judge['model'])}: {_fraction(judge, 'pass', words, percent=True)} ({left})"
    for pair in panel["pairs"]:
        both = f"{printable(pair['a'])}, {printable(pair['b'])}"
        yield f"  {words['agreement']} {both}: {_fraction(pair, 'agreement', words, percent=True)}"
    yield f"  {words['disagree']}: {panel['n_disagree']}"


def _alike(judge: Mapping[str, Any], words: Mapping[str, str]) -> str:
    """How often a server answered both repeats alike, as it may at temperature 0."""
    alike = judge.get("alike")
    if judge["flip_rate"] is None or alike is None:
        return ""
    return words["alike"].format(n=round(alike["value"] * alike["n"]), of=alike["n"])


def _fraction(tree: Mapping[str, Any], name: str, words: Mapping[str, str], *, percent: bool = False) -> str:
    estimate = tree[name]
    if estimate is None:
        return _missing(tree, name, words)
    n_true = round(estimate["value"] * estimate["n"])
    if estimate["method"] != "wilson":  # a scaled rate is no fraction of its n
        return f"{estimate['value']:.0%}"
    return f"{n_true}/{estimate['n']}" + (f" = {estimate['value']:.0%}" if percent else "")


def _hit(retrieval: Mapping[str, Any], words: Mapping[str, str]) -> str:
    estimate = retrieval["hit"]
    if estimate is None:
        return _missing(retrieval, "hit", words)
    return f"{round(estimate['value'] * estimate['n'])}/{estimate['n']} = {estimate['value']:.2f}"


def _mean(retrieval: Mapping[str, Any], name: str, words: Mapping[str, str]) -> str:
    estimate = retrieval[name]
    return _missing(retrieval, name, words) if estimate is None else f"{estimate['value']:.2f}"
