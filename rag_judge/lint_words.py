"""What `lint` says of each weakness, in English and Chinese: what was found, why it matters, how to mend it.

No check here, only words. What was found may have several wordings under one code, `CODE/FAULT`. Words of the user's
file go in as values and are never read as a template.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["error", "advice"]
N_SHOWN = 60  # characters of a quoted text


@dataclass(frozen=True, slots=True)
class Noted:
    """A weakness before it is put into words."""

    code: str
    severity: Severity
    fault: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


def sentences(noted: Noted, lang: str) -> tuple[str, str, str]:
    """What was found, why it matters, and how to mend it; a tuple among the values is listed, each part quoted."""
    key = f"{noted.code}/{noted.fault}" if noted.fault else noted.code
    between = "、" if lang == "zh" else ", "
    values = {
        name: between.join(f"“{_short(part)}”" for part in value) if isinstance(value, tuple) else value
        for name, value in noted.values.items()
    }
    why, mend = REASONS[lang][noted.code]
    return FOUND[lang][key].format_map(values), why, mend


def _short(text: object) -> str:
    shown = str(text)
    return shown if len(shown) <= N_SHOWN else shown[:N_SHOWN] + "…"


FOUND: Mapping[str, Mapping[str, str]] = {
    "en": {
        "duplicate-question": "asks the same as {other} (line {other_line})",
        "near-duplicate-question": "asks nearly the same as {other} (line {other_line})",
        "few-out-of-scope": "{n} of {of} cases expect a refusal, less than {percent} %",
        "no-cross-tenant": "there are tenants, and no case asks for what belongs to another",
        "no-red-line": "no case is marked as a red line",
        "question-copied-from-heading": "the question is the heading of {chunks}",
        "question-copied-from-text": "the question repeats the text of {chunks}",
        "several-questions": "asks more than one question",
        "vague-acceptable/short": "{wordings} is so short that almost any answer holds it",
        "vague-acceptable/common": "{wordings} stands in what more than {percent} % of the other cases accept or need",
        "vague-acceptable/everywhere": "{wordings} stands in more than {percent} % of the corpus",
        "vague-acceptable/refusal": "{wordings} declines, and no refusal is expected",
        "vague-point/short": "{wordings} is so short that almost any answer holds it",
        "vague-point/common": "{wordings} stands in what more than {percent} % of the other cases accept or need",
        "vague-point/everywhere": "{wordings} stands in more than {percent} % of the corpus",
        "relevant-doc-missing-field": "an answer is expected, and no relevant document is named",
        "relevant-doc-not-in-corpus": "{docs} is not in the corpus",
        "key-point-not-in-relevant/nowhere": "{wordings} stands nowhere in the corpus",
        "key-point-not-in-relevant/beside": "{wordings} stands in {chunks}, not in a relevant chunk",
        "key-point-split": "{wordings} stands only across the border of {chunks}",
        "stale-gold": "{wordings} stands in {chunks}, and no longer in the relevant document",
        "type-under-covered": "fewer than {least} cases: {types}",
        "contradictory-expectation/refusal": "expects a refusal, and states {stated}",
        "contradictory-expectation/type": "is of type {type}, and says expect_refusal {flag}",
        "contradictory-expectation/points": "{wordings} is needed and forbidden",
        "contradictory-expectation/acceptable": "{wordings} is acceptable and forbidden",
        "contradictory-expectation/twins": "is the same question as {other} (line {other_line}), and one expects a "
        "refusal, the other an answer",
        "forbidden-doc-matches-nothing": "{docs} matches no id of the corpus",
        "forbidden-doc-is-relevant/forbidden": "{docs} is relevant and forbidden",
        "forbidden-doc-is-relevant/tenant": "{docs} is relevant, and belongs to another tenant",
        "too-few-cases": "{n} cases give a rate of 80 % to within ±{width} points; for ±{wished} it takes {needed}",
        "no-expectation": "states nothing about the right answer",
        "tenant-without-forbidden": "asks for the tenant {tenant}, and forbids no document",
        "question-too-long": "the question has {n} words (or Chinese characters), more than {most}",
        "language-mix": "the question is in another language than its key points and its relevant chunks",
        "saturated": "every case passed in every one of {n} runs",
        "flaky": "ended as {outcomes} in runs of the same system and answers",
        "disputed/judges": "the judges do not agree on it",
        "disputed/repeats": "the judge's first two repeats do not agree on it",
    },
    "zh": {
        "duplicate-question": "与 {other}(第 {other_line} 行)是同一个问题",
        "near-duplicate-question": "与 {other}(第 {other_line} 行)几乎是同一个问题",
        "few-out-of-scope": "{of} 条用例中只有 {n} 条应拒答,不足 {percent} %",
        "no-cross-tenant": "存在多个租户,却没有一条用例去问别人的内容",
        "no-red-line": "没有一条用例标为红线",
        "question-copied-from-heading": "问题就是 {chunks} 的标题",
        "question-copied-from-text": "问题照抄了 {chunks} 的正文",
        "several-questions": "一条用例里问了不止一个问题",
        "vague-acceptable/short": "{wordings} 太短,几乎任何回答都包含它",
        "vague-acceptable/common": "{wordings} 出现在超过 {percent} % 的其他用例的要点中",
        "vague-acceptable/everywhere": "{wordings} 出现在知识库超过 {percent} % 的分块中",
        "vague-acceptable/refusal": "{wordings} 是拒答措辞,而该用例并不期望拒答",
        "vague-point/short": "{wordings} 太短,几乎任何回答都包含它",
        "vague-point/common": "{wordings} 出现在超过 {percent} % 的其他用例的要点中",
        "vague-point/everywhere": "{wordings} 出现在知识库超过 {percent} % 的分块中",
        "relevant-doc-missing-field": "应当作答,却没有写明相关文档",
        "relevant-doc-not-in-corpus": "知识库中没有 {docs}",
        "key-point-not-in-relevant/nowhere": "整个知识库中都没有 {wordings}",
        "key-point-not-in-relevant/beside": "{wordings} 在 {chunks} 中,不在相关分块中",
        "key-point-split": "{wordings} 只能跨 {chunks} 的边界拼出来",
        "stale-gold": "{wordings} 在 {chunks} 中,已不在相关文档中",
        "type-under-covered": "少于 {least} 条用例:{types}",
        "contradictory-expectation/refusal": "期望拒答,却又写了 {stated}",
        "contradictory-expectation/type": "类型是 {type},expect_refusal 却是 {flag}",
        "contradictory-expectation/points": "{wordings} 既必须出现,又不许出现",
        "contradictory-expectation/acceptable": "{wordings} 既可接受,又不许出现",
        "contradictory-expectation/twins": "与 {other}(第 {other_line} 行)是同一个问题,一条期望拒答,一条期望作答",
        "forbidden-doc-matches-nothing": "{docs} 不匹配知识库中的任何 id",
        "forbidden-doc-is-relevant/forbidden": "{docs} 既是相关文档,又被禁止",
        "forbidden-doc-is-relevant/tenant": "{docs} 是相关文档,却属于另一个租户",
        "too-few-cases": "{n} 条用例时,80 % 的比率误差约 ±{width} 个百分点;要做到 ±{wished} 需要 {needed} 条",
        "no-expectation": "对正确回答没有任何说明",
        "tenant-without-forbidden": "以租户 {tenant} 的身份提问,却没有禁止任何文档",
        "question-too-long": "问题有 {n} 个词(或汉字),超过 {most} 个",
        "language-mix": "问题的语言与要点、相关分块都不同",
        "saturated": "{n} 次运行中每条用例都通过",
        "flaky": "同一系统、同一批回答,各次运行的结果却是 {outcomes}",
        "disputed/judges": "几位评审意见不一",
        "disputed/repeats": "评审的前两次重复意见不一",
    },
}

# Why it matters, and how to mend it.
REASONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "en": {
        "duplicate-question": (
            "One question counts twice, and the intervals are narrower than they should be",
            "keep one of them",
        ),
        "near-duplicate-question": (
            "They rise and fall together, and the intervals are narrower than they should be",
            "keep one of them, or let the other ask for something else",
        ),
        "few-out-of-scope": (
            "A system that answers everything looks good here",
            "add questions that the knowledge base cannot answer, with expect_refusal true",
        ),
        "no-cross-tenant": (
            "A leak from one customer to another cannot be seen",
            "add cases with tenant, forbidden_docs of another tenant and expect_refusal true",
        ),
        "no-red-line": (
            "Nothing tells a disaster from a slip",
            "set red_line true where a broken rule would be a disaster, such as another customer's data",
        ),
        "question-copied-from-heading": (
            "Users do not know the headings, and retrieval looks better than it is",
            "ask as somebody who has never seen the document",
        ),
        "question-copied-from-text": (
            "Users do not know the text, and retrieval looks better than it is",
            "ask as somebody who has never seen the document",
        ),
        "several-questions": (
            "An answer to one of them is half right, and a pass or a fail says neither",
            "make a case of each question",
        ),
        "vague-acceptable": (
            "An answer passes that says something else",
            "write the whole value with its unit, or a phrase that only the right answer holds",
        ),
        "vague-point": (
            "An answer passes that says something else",
            "write the whole value with its unit, or a phrase that only the right answer holds",
        ),
        "relevant-doc-missing-field": (
            "Retrieval is not measured on this case, nor a wrong answer told from a missing document",
            "name the chunks that hold the answer in relevant_docs",
        ),
        "relevant-doc-not-in-corpus": (
            "It can never be retrieved, and the case counts as a miss for ever",
            "name the chunk that holds the answer today, or add the document",
        ),
        "key-point-not-in-relevant": (
            "An answer from the relevant documents cannot state it, and one that does counts as unsupported",
            "word the point as the document does, or name the chunk that holds it",
        ),
        "key-point-split": (
            "Both chunks must be retrieved, side by side, for the point to be seen",
            "cut the chunks elsewhere or let them overlap, and name both as relevant",
        ),
        "stale-gold": (
            "The right document counts as a miss, and the wrong one as a hit",
            "name the chunk that holds the answer today",
        ),
        "type-under-covered": (
            "A rate over so few says nothing about that type",
            "add cases of the type, or give it up",
        ),
        "contradictory-expectation": (
            "No answer can be right",
            "decide which of the two is meant, and take the other out",
        ),
        "forbidden-doc-matches-nothing": (
            "The leak check looks for nothing there",
            "write the ids as they stand in the corpus: tenant-b#* for all chunks of tenant-b",
        ),
        "forbidden-doc-is-relevant": (
            "Whoever retrieves the right document leaks",
            "take it out of one of the two lists, or correct the tenant",
        ),
        "too-few-cases": (
            "A smaller difference between two systems cannot be told from chance",
            "add cases, or accept the wider interval with --half-width",
        ),
        "no-expectation": (
            "No rule can check it, and it is not in the rate",
            "say at least expect_refusal, must_include or relevant_docs",
        ),
        "tenant-without-forbidden": (
            "A leak is seen only where the contexts carry a tenant",
            "name the other tenants' documents in forbidden_docs",
        ),
        "question-too-long": (
            "Few users write so much, and retrieval drowns in it",
            "ask for one thing in the user's words; what came before belongs into history",
        ),
        "language-mix": (
            "The right answer, in the language of the question, does not hold the points",
            "give each point a wording in the language of the question",
        ),
        "saturated": (
            "The set no longer tells a good system from a better one",
            "add harder cases, best of all from complaints",
        ),
        "flaky": (
            "The judge decides by chance here, and a difference between two runs may be nothing else",
            "state the answer as key points, or make the question clearer",
        ),
        "disputed": (
            "The case or the prompt can be read in two ways",
            "read the answer yourself, and make clear in the case what is right",
        ),
    },
    "zh": {
        "duplicate-question": ("同一个问题算了两次,区间显得比实际更窄", "只保留一条"),
        "near-duplicate-question": ("两条同涨同落,区间显得比实际更窄", "只保留一条,或让另一条问别的内容"),
        "few-out-of-scope": ("来者不拒的系统在这里看起来很好", "补充知识库答不了的问题,写明 expect_refusal 为 true"),
        "no-cross-tenant": (
            "看不出一个客户的内容是否泄漏给另一个客户",
            "补充用例:写明 tenant、另一租户的 forbidden_docs,expect_refusal 为 true",
        ),
        "no-red-line": ("分不清灾难与小错", "违反规则即为灾难之处(如他人的数据)设 red_line 为 true"),
        "question-copied-from-heading": ("用户不知道标题,检索成绩会虚高", "像从没看过文档的人那样提问"),
        "question-copied-from-text": ("用户不知道正文,检索成绩会虚高", "像从没看过文档的人那样提问"),
        "several-questions": ("只答对其中一个算一半,而通过与失败都说不清", "每个问题单独写一条用例"),
        "vague-acceptable": ("说了别的内容的回答也会通过", "写出带单位的完整数值,或只有正确回答才会有的说法"),
        "vague-point": ("说了别的内容的回答也会通过", "写出带单位的完整数值,或只有正确回答才会有的说法"),
        "relevant-doc-missing-field": (
            "这条用例不计入检索指标,答错时也分不清是否缺了文档",
            "在 relevant_docs 中写明含有答案的分块",
        ),
        "relevant-doc-not-in-corpus": ("它永远检索不到,这条用例永远算未命中", "写明如今含有答案的分块,或补上文档"),
        "key-point-not-in-relevant": (
            "依据相关文档的回答说不出它,说出来的又算没有依据",
            "按文档的说法写要点,或写明含有它的分块",
        ),
        "key-point-split": ("两个分块必须同时相邻检索到,才看得见这个要点", "换一处切分或让分块重叠,并把两块都列为相关"),
        "stale-gold": ("找对文档算未命中,找错反而算命中", "写明如今含有答案的分块"),
        "type-under-covered": ("这么少的用例,比率说明不了该类型", "补充该类型的用例,或取消该类型"),
        "contradictory-expectation": ("没有任何回答能算对", "确定两者以哪个为准,去掉另一个"),
        "forbidden-doc-matches-nothing": (
            "泄漏检查在那里什么也查不到",
            "按知识库中的写法写 id:tenant-b#* 表示 tenant-b 的所有分块",
        ),
        "forbidden-doc-is-relevant": ("检索到正确文档就算泄漏", "从其中一处去掉它,或更正租户"),
        "too-few-cases": (
            "两个系统之间更小的差别与偶然无法区分",
            "补充用例,或用 --half-width 接受更宽的区间",
        ),
        "no-expectation": ("没有规则可查,也不计入比率", "至少写明 expect_refusal、must_include 或 relevant_docs 之一"),
        "tenant-without-forbidden": ("只有检索结果带有租户时才看得出泄漏", "在 forbidden_docs 中写明其他租户的文档"),
        "question-too-long": ("很少有用户写这么长,检索也会被淹没", "用用户的话只问一件事;前文放进 history"),
        "language-mix": ("用问题的语言写成的正确回答里不会出现这些要点", "给每个要点补上与问题同语言的说法"),
        "saturated": ("这套用例已分不出好与更好", "补充更难的用例,最好来自用户投诉"),
        "flaky": ("评审在这里全凭偶然,两次运行的差别可能只是如此", "把答案写成要点,或把问题写得更清楚"),
        "disputed": ("用例或提示词可以有两种读法", "自己读一遍回答,在用例中写清楚怎样才算对"),
    },
}
CODES = tuple(REASONS["en"])
