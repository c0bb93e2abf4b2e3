"""The lines of `review` and `bias` for people, in English and Chinese. No logic but the choice of words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_judge.report.html_numbers import sentence
from rag_judge.report.terminal import printable

Tree = Mapping[str, Any]

WORDS = {
    "en": {
        "sample": "sample: {n} of {of} cases, seed {seed}",
        "stratum": "  {name}: {n} of {of}, each with probability {p:.3g}",
        "given": "{name}: {n} items",
        "masked": "personal data masked in {n} places",
        "then": "fill them in, then: rag-judge review import {run} FILE...",
        "imported": "{new} labels are new or fuller; {n} in all",
        "blank": "{name}: {n} items were left blank; they count as not reviewed, never as no",
        "critiques": "{n} answers of no have no critique: ask for them, they say what to mend",
        "status": "labelled: {n} cases{of}; by two people: {both}",
        "of_drawn": " ({n} were drawn)",
        "annotator": "  {name}: {labels} labels{given}",
        "of_given": " of {n} given",
        "disputed": "people differ on {n} cases, {settled} of them settled by a third reader",
        "stage_none": "stage: nothing is labelled yet",
        "stage_pilot": "stage: pilot",
        "stage_criteria": "stage: criteria",
        "stage_labelling": "stage: 50 to 100 labels",
        "stage_upkeep": "stage: upkeep",
        "next_pilot": "next: a pilot of 20 to 30 cases by two people: review export {run} --annotators 2 --fraction F",
        "next_second": "next: finish the pilot: the same 20 to 30 cases by two people, blind to each other",
        "next_settle": "next: let a third reader settle what they differ on (review export {run} --disagreements), and "
        "write down what the instructions should have said",
        "next_more": "next: with the criteria written down, label 50 to 100 cases; one person will do",
        "next_upkeep": "next: 10 to 20 % of each run, and again whenever judge, prompt or system change",
        "labels": "labels: {n} cases{drawn}, by {annotators}",
        "non_response": "{n} of {of} drawn cases have no label{much}",
        "much": "; that is more than a tenth: those left out may be unlike the others",
        "other": "{n} labels are of cases that the judge did not see",
        "people": "people agree with each other on “{field}”: {agreement}; kappa {kappa}; AC1 {ac1} ({pairs} pairs)",
        "differ": "  they differ on {field}: {n} cases ({settled} settled){types}",
        "versions": "the labels follow {n} versions of the instructions; pooled, they may mean different things",
        "no_labels": "no case is labelled yet, so nothing is known of the judge's errors: rag-judge review export RUN",
        "rule": "{rule}: {reason}",
        "field": "{name}: judge {judge}; people {human}",
        "corrected": "  corrected: {value}; of just these cases: {this_set}",
        "interval": "  no corrected rate; the interval alone: [{low:.0%}, {high:.0%}]",
        "bias": "  judge minus people: {bias}; passes that people fail {fp}, fails that people pass {fn}",
        "open": "  {n} labelled cases are open, as people differ or are unsure; they count as not labelled, and are "
        "seldom like the others: settle them (review export --disagreements)",
        "counts": "  of the labelled alone, not representative: both pass {tp}, both fail {tn}, judge alone passes "
        "{fp}, judge alone fails {fn}",
        "cells": "  both pass {tp}, both fail {tn}, judge alone passes {fp}, judge alone fails {fn}; kappa {kappa}; "
        "AC1 {ac1}",
        "rates": "  of what people pass the judge passes {sensitivity}; of what they fail it fails {specificity}",
        "needed": "  labels needed: {needed}",
        "needed_one": "{more} more for ±{half}",
        "needed_none": "no number of labels gives ±{half}: more cases are needed",
        "score": "score: {n} labelled; judge minus people {bias}; the same on {agreement}; weighted kappa {kappa}",
        "winner": "winner: {n} labelled; the same on {agreement}; kappa {kappa}",
        "expectation": "judge's should_abstain against the eval set (needs no label): {agreement}",
        "rules": "judge against rules (no label needed): {agreement}; passes {a} they fail, fails {b} they pass",
        "verbosity": "length: longer answers pass {more} often at the same label (p = {p:.2g}, n = {n})",
        "no_verbosity": "length: no sign that the judge goes by it (p = {p:.2g}, n = {n})",
        "more": "more",
        "less": "less",
        "causes": "cause named rightly: {accuracy}",
        "position": "place: the first answer is preferred in {value} of the pairs that changed with the order",
        "external": "by the labels of {run} (Rogan-Gladen, Lee et al.'s interval): {value}; it assumes that the judge "
        "errs here as it did there",
        "external_other": "  but model or prompt of the judge are not the same in both runs: do not rely on it",
        "judge": "{side}: {model}, {prompt}: agrees with people on {agreement}; kappa {kappa}; flips {flips}; "
        "{calls} calls, {usd}",
        "not_known": "not known",
        "compared": "compared on {n} labelled cases ({left} more not decided by both); the judges agree on {agree}",
        "closer": "B minus A: {difference} (p = {p:.2g}); only A is right on {a}, only B on {b}",
        "weighted": "  over all cases, by how they were drawn: {difference}",
        "smallest": "  the smallest difference that this many cases could have shown: {smallest:.0%}",
        "deciding": "  {id}: people: {human}; A: {a}; B: {b}",
        "passes": "pass",
        "fails": "fail",
        "none": "n/a ({why})",
    },
    "zh": {
        "sample": "样本:{of} 条中抽取 {n} 条,随机种子 {seed}",
        "stratum": "  {name}:{of} 条中 {n} 条,每条入样概率 {p:.3g}",
        "given": "{name}:{n} 条",
        "masked": "已遮盖 {n} 处个人信息",
        "then": "填好后:rag-judge review import {run} FILE...",
        "imported": "新增或补全 {new} 条标注;共 {n} 条",
        "blank": "{name}:{n} 条留空,按未评审计,绝不当作“否”",
        "critiques": "{n} 处“否”没有写理由:请补上,理由才说得出该改哪里",
        "status": "已标注 {n} 条{of};两人都标的 {both} 条",
        "of_drawn": "(抽取 {n} 条)",
        "annotator": "  {name}:{labels} 条{given}",
        "of_given": "(发出 {n} 条)",
        "disputed": "标注不一致 {n} 条,其中第三人已裁定 {settled} 条",
        "stage_none": "阶段:尚无标注",
        "stage_pilot": "阶段:试标",
        "stage_criteria": "阶段:定标准",
        "stage_labelling": "阶段:标注 50 到 100 条",
        "stage_upkeep": "阶段:日常维护",
        "next_pilot": "下一步:两人各标同样的 20 到 30 条:review export {run} --annotators 2 --fraction F",
        "next_second": "下一步:完成试标:两人互不知情地标同样的 20 到 30 条",
        "next_settle": "下一步:请第三人裁定分歧(review export {run} --disagreements),并写下标注说明本该写清的地方",
        "next_more": "下一步:标准写清之后,标 50 到 100 条;一人即可",
        "next_upkeep": "下一步:每次运行标 10 % 到 20 %;评审、提示词或系统改变后再标",
        "labels": "标注:{n} 条{drawn},标注人 {annotators}",
        "non_response": "抽取的 {of} 条中有 {n} 条没有标注{much}",
        "much": ";超过一成:缺的可能与其余不同",
        "other": "{n} 条标注的用例评审没有看过",
        "people": "标注人之间在“{field}”上一致:{agreement};kappa {kappa};AC1 {ac1}({pairs} 对)",
        "differ": "  {field} 不一致:{n} 条(已裁定 {settled} 条){types}",
        "versions": "标注依据 {n} 个版本的说明;混在一起,含义可能不同",
        "no_labels": "还没有标注,评审的误差无从谈起:rag-judge review export RUN",
        "rule": "{rule}:{reason}",
        "field": "{name}:评审 {judge};人 {human}",
        "corrected": "  校正后:{value};仅就这批用例:{this_set}",
        "interval": "  不给校正后的数值,只给区间:[{low:.0%}, {high:.0%}]",
        "bias": "  评审减去人:{bias};评审通过而人不通过 {fp},评审不通过而人通过 {fn}",
        "open": "  已标注的有 {n} 条悬而未决(标注人不一致或不确定),按未标注计;它们往往与其余不同,请先裁定"
        "(review export --disagreements)",
        "counts": "  仅就已标注的、不代表全部:都通过 {tp},都不通过 {tn},仅评审通过 {fp},仅人通过 {fn}",
        "cells": "  都通过 {tp},都不通过 {tn},仅评审通过 {fp},仅人通过 {fn};kappa {kappa};AC1 {ac1}",
        "rates": "  人通过的,评审通过 {sensitivity};人不通过的,评审不通过 {specificity}",
        "needed": "  还需标注:{needed}",
        "needed_one": "再标 {more} 条可到 ±{half}",
        "needed_none": "标多少条也到不了 ±{half}:需要更多用例",
        "score": "评分:已标 {n} 条;评审减去人 {bias};相同 {agreement};加权 kappa {kappa}",
        "winner": "胜者:已标 {n} 条;相同 {agreement};kappa {kappa}",
        "expectation": "评审的 should_abstain 与评测集预期(不需要标注):{agreement}",
        "rules": "评审与规则(不需要标注):{agreement};规则不通过而评审通过 {a},规则通过而评审不通过 {b}",
        "no_verbosity": "长度:没有迹象表明评审看长度(p = {p:.2g},n = {n})",
        "verbosity": "长度:人给出同样标注时,较长的回答{more}通过(p = {p:.2g},n = {n})",
        "more": "更常",
        "less": "更少",
        "causes": "失败原因判断正确:{accuracy}",
        "position": "次序:换序即变的各对中,偏向先出现者 {value}",
        "external": "用 {run} 的标注校正(Rogan-Gladen,Lee 等人的区间):{value};前提是评审在这里犯的错与那里一样",
        "external_other": "  但两次运行的评审模型或提示词不同:不要以此为准",
        "judge": "{side}:{model},{prompt}:与人一致 {agreement};kappa {kappa};翻转 {flips};调用 {calls} 次,{usd}",
        "not_known": "未知",
        "compared": "在 {n} 条已标注用例上比较(另有 {left} 条并非两者都有结论);两个评审一致 {agree}",
        "closer": "B 减 A:{difference}(p = {p:.2g});只有 A 对 {a} 条,只有 B 对 {b} 条",
        "weighted": "  按抽样方式推及全部用例:{difference}",
        "smallest": "  这么多用例能显出的最小差异:{smallest:.0%}",
        "deciding": "  {id}:人:{human};A:{a};B:{b}",
        "passes": "通过",
        "fails": "不通过",
        "none": "无({why})",
    },
}


RULES_ZH = {
    "R1": "有用例不是按已知概率抽取的,标注只代表它们自己,不作校正",
    "R2": "标注太少,不作校正({reason})",
    "R3": "仅供参考:区间单侧宽于 0.10",
    "R4": "区间单侧不超过 0.10",
}


def estimate_text(tree: Tree, name: str, lang: str, *, percent: bool = True) -> str:
    """'83 % [69 %, 92 %] (n = 40)', or n/a and why."""
    estimate = tree.get(name)
    if estimate is None:
        return WORDS[lang]["none"].format(why=printable(sentence(str(tree.get(f"{name}_reason", "?")), lang)))
    value, low, high = estimate["value"], estimate["low"], estimate["high"]
    form = ".0%" if percent else ".2f"
    interval = "" if low is None or high is None else f" [{low:{form}}, {high:{form}}]"
    return f"{value:{form}}{interval}"


def export_lines(design: Any, n_items: Mapping[str, int], n_masked: int, run: str, lang: str) -> list[str]:
    """What was drawn and written."""
    words = WORDS[lang]
    lines = [words["sample"].format(n=len(design.drawn), of=len(design.strata), seed=design.seed)]
    for s in design.table:
        p = s.probability * design.judge_share
        lines.append(words["stratum"].format(name=printable(s.stratum), n=s.n_drawn, of=s.n_cases, p=p))
    lines += [words["given"].format(name=printable(name), n=n) for name, n in n_items.items()]
    if n_masked:
        lines.append(words["masked"].format(n=n_masked))
    return [*lines, words["then"].format(run=run)]


def import_lines(imported: Any, lang: str) -> list[str]:
    """What came back."""
    words = WORDS[lang]
    lines = [words["imported"].format(new=imported.n_new, n=imported.n_labels)]
    lines += [words["blank"].format(name=printable(name), n=n) for name, n in imported.n_blank.items() if n]
    if imported.n_critiques_missing:
        lines.append(words["critiques"].format(n=imported.n_critiques_missing))
    return lines


def status_lines(status: Tree, run: str, lang: str) -> list[str]:
    """Where the review of a run, named as the user named it, stands, and what comes next."""
    words = WORDS[lang]
    of = "" if status["n_drawn"] is None else words["of_drawn"].format(n=status["n_drawn"])
    lines = [words["status"].format(n=status["n_labelled"], of=of, both=status["n_labelled_twice"])]
    for name, counts in status["annotators"].items():
        given = "" if counts["given"] is None else words["of_given"].format(n=counts["given"])
        lines.append(words["annotator"].format(name=printable(name), labels=counts["labels"], given=given))
    if status["disputed"]:
        lines.append(words["disputed"].format(n=status["disputed"], settled=status["settled"]))
    if len(status["instructions_versions"]) > 1:
        lines.append(words["versions"].format(n=len(status["instructions_versions"])))
    return [*lines, words[f"stage_{status['stage']}"], words[f"next_{status['next']}"].format(run=run)]


def bias_lines(tree: Tree, lang: str) -> list[str]:
    """What the labels say of the judge."""
    words, lines = WORDS[lang], _about(tree, lang)
    if not tree["n_labelled"]:
        lines.append(words["no_labels"])
    for name, field in tree["fields"].items() if tree["n_labelled"] else ():
        if name == "winner":
            agreement, kappa = estimate_text(field, "agreement", lang), _plain(field, "kappa", lang)
            lines.append(words["winner"].format(n=field["n"], agreement=agreement, kappa=kappa))
        elif name == "score":
            kappa, bias = _plain(field, "kappa", lang), estimate_text(field, "bias", lang, percent=False)
            agreement = estimate_text(field, "agreement", lang)
            lines.append(words["score"].format(n=field["n"], bias=bias, agreement=agreement, kappa=kappa))
        else:
            lines += _field_lines(name, field, lang)
    for name in ("expectation", "rules"):
        if name in tree and tree[name]["n"]:
            counts = {
                "a": tree[name].get("judge_passes_what_rules_fail"),
                "b": tree[name].get("judge_fails_what_rules_pass"),
            }
            lines.append(words[name].format(agreement=estimate_text(tree[name], "agreement", lang), **counts))
    verbosity = tree.get("verbosity") or {}
    if verbosity.get("p_value") is not None and "statistic" in verbosity:
        more = words["more" if verbosity["statistic"] > 0 else "less"]
        key = "verbosity" if verbosity["p_value"] < 0.05 else "no_verbosity"
        lines.append(words[key].format(more=more, p=verbosity["p_value"], n=verbosity["n"]))
    if (tree.get("position") or {}).get("first_position"):
        lines.append(words["position"].format(value=estimate_text(tree["position"], "first_position", lang)))
    if tree.get("external"):
        outside = tree["external"]
        lines.append(
            words["external"].format(run=printable(outside["run"]), value=estimate_text(outside, "corrected", lang))
        )
        if not (outside["same_model"] and outside["same_prompt"]):
            lines.append(words["external_other"])
    if tree.get("causes"):
        lines.append(words["causes"].format(accuracy=estimate_text(tree["causes"], "accuracy", lang)))
    return lines


def judge_lines(tree: Tree, lang: str) -> list[str]:
    """Which of two judges is closer to people."""
    words = WORDS[lang]
    lines = []
    for side in ("a", "b"):
        one = tree[side]
        usd = words["not_known"] if one["usd"] is None else f"{one['usd']:.4f} USD"
        flips = estimate_text(one, "flip_rate", lang) if one["flip_rate"] else words["not_known"]
        lines.append(
            words["judge"].format(
                side=side.upper(),
                model=printable(str(one["model"])),
                prompt=printable(", ".join(one["prompt"])),
                agreement=estimate_text(one, "agreement", lang),
                kappa=_plain(one, "kappa", lang),
                flips=flips,
                calls=one["calls"],
                usd=usd,
            )
        )
    lines.append(
        words["compared"].format(n=tree["n"], left=tree["n_left_out"], agree=estimate_text(tree, "judges_agree", lang))
    )
    if tree["p_value"] is not None:
        difference = estimate_text(tree, "difference", lang)
        only = {"a": tree["only_a_right"], "b": tree["only_b_right"]}
        lines.append(words["closer"].format(difference=difference, p=tree["p_value"], **only))
        if tree["weighted_difference"] is not None:
            lines.append(words["weighted"].format(difference=estimate_text(tree, "weighted_difference", lang)))
        if tree["smallest_detectable"] is not None:
            lines.append(words["smallest"].format(smallest=tree["smallest_detectable"]))
    said = {True: words["passes"], False: words["fails"], None: "?"}
    for case in tree["deciding_cases"]:
        named = {side: said[case[side]] for side in ("human", "a", "b")}
        lines.append(words["deciding"].format(id=printable(case["id"]), **named))
    return lines


def _about(tree: Tree, lang: str) -> list[str]:
    words, people = WORDS[lang], tree["annotators"]
    drawn = "" if tree["n_drawn"] is None else words["of_drawn"].format(n=tree["n_drawn"])
    names = ", ".join(map(printable, people["names"])) or "-"
    lines = [words["labels"].format(n=tree["n_labelled"], drawn=drawn, annotators=names)]
    missing = tree["non_response"]
    if missing and missing["n"]:
        much = words["much"] if missing["is_high"] else ""
        lines.append(words["non_response"].format(n=missing["n"], of=missing["of"], much=much))
    if tree["n_labels_of_other_cases"]:
        lines.append(words["other"].format(n=tree["n_labels_of_other_cases"]))
    if people["pairs"]:
        lines.append(
            words["people"].format(
                field=people["field"],
                agreement=estimate_text(people, "agreement", lang),
                kappa=_plain(people, "kappa", lang),
                ac1=_plain(people, "ac1", lang),
                pairs=people["pairs"],
            )
        )
    lines += [
        words["differ"].format(field=name, types=_types(counts["by_type"]), **counts)
        for name, counts in tree["disagreements"].items()
    ]
    if len(tree["instructions_versions"]) > 1:
        lines.append(words["versions"].format(n=len(tree["instructions_versions"])))
    return lines


def _types(by_type: Mapping[str, int]) -> str:
    """'; fact 3, table 1', where there is more than one type."""
    return "; " + ", ".join(f"{printable(name)} {n}" for name, n in by_type.items()) if len(by_type) > 1 else ""


def _field_lines(name: str, field: Tree, lang: str) -> list[str]:
    words = WORDS[lang]
    judge, human = estimate_text(field, "judge_rate", lang), estimate_text(field, "human_rate", lang)
    lines = [words["field"].format(name=name, judge=judge, human=human)]
    if field["corrected"] is not None:
        this_set = estimate_text(field, "corrected_this_set", lang)
        lines.append(words["corrected"].format(value=estimate_text(field, "corrected", lang), this_set=this_set))
    elif field["interval"] is not None:
        lines.append(words["interval"].format(low=field["interval"][0], high=field["interval"][1]))
    reason = (
        RULES_ZH[field["rule"]].format(reason=sentence(field["rule_reason"], lang))
        if lang == "zh"
        else field["rule_reason"]
    )
    lines.append("  " + words["rule"].format(rule=field["rule"], reason=reason))
    n_labelled = field["n_open"] + sum(field["confusion"].values())
    if field["n_open"] > 0.1 * n_labelled:
        lines.append(words["open"].format(n=field["n_open"]))
    if field["rule"] == "R1":
        return [*lines, words["counts"].format(**field["confusion"])]
    bias, fp, fn = (estimate_text(field, part, lang) for part in ("bias", "false_pass", "false_fail"))
    lines.append(words["bias"].format(bias=bias, fp=fp, fn=fn))
    kappa, ac1 = _plain(field, "kappa", lang), _plain(field, "ac1", lang)
    lines.append(words["cells"].format(**field["confusion"], kappa=kappa, ac1=ac1))
    rates = {part: estimate_text(field, part, lang) for part in ("sensitivity", "specificity")}
    lines.append(words["rates"].format(**rates))
    needed = [
        words["needed_none"].format(half=half) if more is None else words["needed_one"].format(more=more, half=half)
        for half, more in field["labels_more"].items()
    ]
    return [*lines, words["needed"].format(needed="; ".join(needed))]


def _plain(tree: Tree, name: str, lang: str) -> str:
    return estimate_text(tree, name, lang, percent=False)
