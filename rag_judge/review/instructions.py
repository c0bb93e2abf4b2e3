"""How to judge, in English and Chinese: what each field asks, what each cause means. No markup, no file format here.

The instructions of a set of fields have one version, the hash of their words in both languages. It stands with every
label, since labels that were made by different instructions are no longer answers to the same question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rag_judge.records import Mode, VerdictField

LANGS = ("en", "zh")


@dataclass(frozen=True, slots=True)
class FieldWords:
    """One field as a reviewer reads it: its name, what it asks, and how to decide."""

    label: str
    question: str
    how: str


@dataclass(frozen=True, slots=True)
class Instructions:
    """All that a reviewer is told, in one language."""

    title: str
    intro: tuple[str, ...]
    fields: Mapping[str, FieldWords]  # of the sheet, then critique and note
    causes: Mapping[str, str]  # empty where no cause is asked
    version: str


_TITLE = {"en": "How to judge", "zh": "评审说明"}
_INTRO: Mapping[str, Mapping[Mode, tuple[str, ...]]] = {
    "en": {
        "passfail": (
            "Judge each answer by the contexts beside it alone. What you know yourself does not count, not even where "
            "the contexts are wrong.",
            "Answer each question with yes, no or unsure. Unsure is an answer: use it rather than guess. What you "
            "leave empty counts as not judged, never as no.",
            "Say why for every no to grounded, complete or passed: one or two sentences that name the words at fault.",
            "Do not talk about items with the other reviewers before all sheets are back.",
        ),
        "scale": (
            "Grade each answer by the contexts beside it alone. What you know yourself does not count.",
            "What you leave empty counts as not judged. Say why for every grade of 3 or less.",
            "Do not talk about items with the other reviewers before all sheets are back.",
        ),
        "pairwise": (
            "Compare answers A and B, each by the contexts it was given alone. What you know yourself does not count.",
            "Which system gave which answer changes from item to item. Length, style and place do not count.",
            "What you leave empty counts as not judged. A tie is an answer; unsure is one, too.",
            "Do not talk about items with the other reviewers before all sheets are back.",
        ),
    },
    "zh": {
        "passfail": (
            "只凭旁边的资料判断每个回答。自己知道的不算,即使资料本身有错。",
            "每个问题答“是”“否”或“不确定”。“不确定”也是答案,没把握时选它,不要猜。留空表示没有评,不算“否”。",
            "“有依据”“完整”“通过”三项答“否”时,都请写明原因:一两句话,指出有问题的原文。",
            "所有评审表交回之前,请不要与其他评审人讨论题目。",
        ),
        "scale": (
            "只凭旁边的资料给每个回答打分。自己知道的不算。",
            "留空表示没有评。打 3 分及以下时请写明原因。",
            "所有评审表交回之前,请不要与其他评审人讨论题目。",
        ),
        "pairwise": (
            "比较回答 A 和 B,各自只看它得到的资料。自己知道的不算。",
            "哪个系统给出哪个回答,每题都不一定。长短、文风、先后都不计。",
            "留空表示没有评。平局是答案,“不确定”也是。",
            "所有评审表交回之前,请不要与其他评审人讨论题目。",
        ),
    },
}
_FIELDS: Mapping[str, Mapping[str, FieldWords]] = {
    "en": {
        "grounded": FieldWords(
            "Grounded",
            "Is every claim of the answer supported by the contexts?",
            "Yes only if every statement, number and name can be found in the contexts or follows from them. One claim "
            "without support makes it no, even if it is true. An answer that declines and claims nothing: yes.",
        ),
        "complete": FieldWords(
            "Complete",
            "Does the answer say all that the question asks for?",
            "No if a part of the question stays open, or a condition or exception that changes the outcome is left "
            "out. Extra detail is not needed. An answer that declines: no, unless nothing could be said.",
        ),
        "should_abstain": FieldWords(
            "Should decline",
            "Do the contexts fail to hold what is needed to answer?",
            "This is about the contexts, not about the answer. Yes: they do not hold what is needed, so declining is "
            "right. No: the answer can be given from them. Decide it without looking at the answer.",
        ),
        "did_abstain": FieldWords(
            "Did decline",
            "Did the answer decline?",
            "Yes: it says that it cannot answer or found nothing, and then gives no answer. No: it answers, even "
            "partly, or declines first and answers anyway.",
        ),
        "passed": FieldWords(
            "Passed",
            "All in all, is this answer good enough to send?",
            "Usually: grounded and complete where the contexts hold the answer, declined where they do not. Leave it "
            "empty to let it follow from your other answers.",
        ),
        "cause": FieldWords(
            "Cause",
            "If it did not pass: what is the main cause?",
            "Choose the first that applies, from the top of the list. Leave it empty if the answer passed.",
        ),
        "score": FieldWords(
            "Score",
            "How good is the answer, from 1 to 5?",
            "5: right, complete and supported. 4: right, something minor is missing. 3: partly right, or unclear. "
            "2: mostly wrong or unsupported. 1: wrong, invented, or harmful.",
        ),
        "winner": FieldWords(
            "Winner",
            "Which answer is better?",
            "Stop at the first difference. 1: an answer with a claim its contexts do not support loses. 2: declining "
            "is right where its contexts hold no answer, and wrong where they do. 3: the more complete one wins. "
            "Else: tie.",
        ),
        "critique": FieldWords(
            "Critique",
            "What is wrong, and how do you know?",
            "Name the words at fault and the context that shows it (for example: “30 days” stands nowhere, context 2 "
            "says 14).",
        ),
        "note": FieldWords(
            "Note",
            "Anything else?",
            "For example that the item is broken or the question makes no sense. Not part of your judgement.",
        ),
    },
    "zh": {
        "grounded": FieldWords(
            "有依据",
            "回答的每个说法都有资料支持吗?",
            "每句话、每个数字和名称都能在资料中找到,或能由资料推出,才是“是”。有一处没有依据就是“否”,即使说得对。拒答且没有断言:是。",
        ),
        "complete": FieldWords(
            "完整",
            "问题所问的都答到了吗?",
            "有一部分没有答,或漏了会改变结论的条件、例外,就是“否”。不要求多余的细节。拒答:否,除非确实无话可说。",
        ),
        "should_abstain": FieldWords(
            "应当拒答",
            "资料里缺少作答所需的内容吗?",
            "只看资料,不看回答。是:资料里没有所需内容,应当拒答。否:凭资料可以作答。请先不看回答再判断。",
        ),
        "did_abstain": FieldWords(
            "已经拒答",
            "回答拒答了吗?",
            "是:说明无法回答或没有找到,并且没有再作答。否:作了回答,哪怕只答一部分,或先说不知道又接着作答。",
        ),
        "passed": FieldWords(
            "通过",
            "总的来说,这个回答可以发出去吗?",
            "通常是:资料里有答案时有依据且完整,没有答案时拒答。留空则由其他各项推出。",
        ),
        "cause": FieldWords("原因", "没有通过的话,主要原因是什么?", "从上往下选第一个符合的。通过的留空。"),
        "score": FieldWords(
            "得分",
            "这个回答有多好?1 到 5 分",
            "5:正确、完整、有依据。4:正确,缺少次要内容。3:部分正确,或说得不清。2:大部分错误或没有依据。1:错误、编造或有害。",
        ),
        "winner": FieldWords(
            "胜者",
            "哪个回答更好?",
            "先出现差别的一条定胜负。1:有说法得不到自己资料支持的负。2:资料中没有答案时拒答对、作答错;有答案时相反。"
            "3:更完整的胜。都没有差别:平局。",
        ),
        "critique": FieldWords(
            "评语",
            "错在哪里?依据是什么?",
            "指出有问题的原文和能说明问题的资料(例如:“30 天”在资料中没有,资料 2 写的是 14 天)。",
        ),
        "note": FieldWords("备注", "还有别的吗?", "例如题目损坏、问题不通。不算评审结论。"),
    },
}
# A field of a prompt of the user's own, of which only the name is known.
_UNKNOWN_FIELD = {
    "en": ("Does “{name}” hold for this answer?", "Decide it as the criterion of that name was explained to you."),
    "zh": ("这个回答符合“{name}”吗?", "按给你说明过的同名标准判断。"),
}
CAUSE_WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "leak": "a context or citation that this user must not see",
        "answered_out_of_scope": "answered, though the material does not cover the question",
        "refused_in_scope": "declined, though an answer was possible",
        "refused_then_answered": "declined first, then answered anyway",
        "not_in_kb": "what is needed stands in no document at all",
        "recall_miss": "what is needed was not among the contexts",
        "crowded_out": "what is needed was there, and a look-alike was used in its place",
        "split_by_chunking": "what is needed was cut in two between contexts",
        "lost_in_assembly": "retrieved, but it seems not to have reached the model",
        "ignored_context": "it stands in the contexts and the answer did not use it",
        "missing_point": "a needed point is left out",
        "invented": "a claim that no context supports",
        "wrong_citation": "a citation that does not support what it stands beside",
        "ambiguous_question": "the question can be read in more than one way",
        "judge_at_fault": "the answer is fine and an automatic grade was wrong (only where you were told that grade)",
        "unknown": "none of these, or you cannot tell",
    },
    "zh": {
        "leak": "出现了该用户无权看到的资料或引用",
        "answered_out_of_scope": "资料范围以外的问题却作了回答",
        "refused_in_scope": "可以回答却拒答",
        "refused_then_answered": "先拒答,后来又作答",
        "not_in_kb": "知识库里根本没有所需内容",
        "recall_miss": "所需内容没有检索到",
        "crowded_out": "所需内容在,用的却是相似的另一段",
        "split_by_chunking": "所需内容被切到两段资料里",
        "lost_in_assembly": "检索到了,但似乎没有送到模型",
        "ignored_context": "资料里有,回答没有用",
        "missing_point": "漏了必要的要点",
        "invented": "有资料不支持的说法",
        "wrong_citation": "引用不能支持所在的说法",
        "ambiguous_question": "问题有不止一种理解",
        "judge_at_fault": "回答没有问题,是自动评分错了(仅在告诉过你评分时使用)",
        "unknown": "都不是,或看不出来",
    },
}


def instructions_for(mode: Mode, fields: Sequence[VerdictField], lang: str) -> Instructions:
    """What reviewers of these fields are told, in `lang`; the version is the same in every language.

    Raises KeyError for a language without wording.
    """
    told = {each: _told(mode, fields, each) for each in LANGS}
    return _with_version(told[lang], hashlib.sha256(json.dumps([_as_list(told[each]) for each in LANGS]).encode()))


def _told(mode: Mode, fields: Sequence[VerdictField], lang: str) -> Instructions:
    names = [*(field.name for field in fields), "critique", "note"]
    asks_cause = any(field.name == "cause" for field in fields)
    return Instructions(
        title=_TITLE[lang],
        intro=_INTRO[lang][mode],
        fields={name: _field_words(name, lang) for name in names},
        causes=CAUSE_WORDS[lang] if asks_cause else {},
        version="",
    )


def _field_words(name: str, lang: str) -> FieldWords:
    known = _FIELDS[lang].get(name)
    if known is not None:
        return known
    question, how = _UNKNOWN_FIELD[lang]
    return FieldWords(name, question.replace("{name}", name), how)


def _as_list(told: Instructions) -> list[object]:
    fields = [[name, words.label, words.question, words.how] for name, words in told.fields.items()]
    return [told.title, *told.intro, fields, list(told.causes.items())]


def _with_version(told: Instructions, digest: hashlib._Hash) -> Instructions:
    return Instructions(told.title, told.intro, told.fields, told.causes, version=digest.hexdigest()[:16])


def as_lines(told: Instructions) -> list[str]:
    """The instructions as plain lines of text."""
    lines = [told.title, "", *told.intro, ""]
    for name, words in told.fields.items():
        lines += [f"{name} ({words.label}): {words.question}", f"    {words.how}"]
    if told.causes:
        lines += ["", *(f"{cause}: {meaning}" for cause, meaning in told.causes.items())]
    return [*lines, "", told.version]


def version_warning(versions: Iterable[str]) -> str | None:
    """What to say of labels to be pooled that were made by different instructions; None where all were made by one."""
    found = sorted(set(versions))
    if len(found) < 2:
        return None
    return (
        f"these labels were made by {len(found)} versions of the instructions ({', '.join(found)}): they answer "
        "different questions, and numbers over all of them mix the two; compare them apart or label anew"
    )
