"""Failures with a known cause: right answers of the shipped example, each spoilt in one way as real systems do it.

Here: the plants, what the program makes of them, the tables of docs/attribution.md (renewed by `-m tests.planted`).
Not here: what must hold (test_planted.py). A plant whose right cause two people could dispute is left out. Seeded.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from rag_judge.answers import answer_from_row
from rag_judge.cases import CaseSet
from rag_judge.corpus import Corpus
from rag_judge.demo.rag_service import V2, VERSIONS, Assistant, Chunk, load_chunks
from rag_judge.outcomes import GradedCase, conclude
from rag_judge.records import Answer, Case, Context, Decision, Outcome
from rag_judge.retrieval import MatchLevel, score_ranking
from rag_judge.rows import Row
from rag_judge.rules import check
from rag_judge.text import fold, holds_point, is_chinese

EVAL = Path(__file__).parent.parent / "eval"
PAGE = EVAL.parent / "docs" / "attribution.md"
K = 5
CorpusName = Literal["whole", "gaps", "cut"]
WHOLE = load_chunks(EVAL / "kb")


@dataclass(frozen=True, slots=True)
class Planted:
    """One spoilt answer and the cause that must be found. `kind` says how it was spoilt; corpus None: none is given."""

    cause: str
    kind: str
    case: Case
    answer: Answer
    corpus: CorpusName | None = None
    decision: Decision | None = None
    judges_disagree: bool | None = None
    match: MatchLevel = "exact"


def planted() -> list[Planted]:
    """Every plant, the same each time."""
    return [plant for make in MAKERS for plant in make(random.Random(make.__name__))]


def found(plant: Planted) -> Outcome:
    """What the program makes of a plant."""
    case, answer = plant.case, plant.answer
    ids = [context.id for context in answer.contexts or () if context.id is not None]
    scores = None if answer.contexts is None else score_ranking(ids, case.relevant_docs, K, plant.match)
    corpus = None if plant.corpus is None else _corpus(plant.corpus)
    judged, rules = plant.decision, check(case, answer)
    asked = judged is not None
    return conclude(GradedCase(case, answer, scores, rules, judged, asked, plant.judges_disagree, corpus, plant.match))


# --- the material -----------------------------------------------------------------------------------------------


def _loaded(name: str) -> list[Case]:
    with closing(CaseSet(EVAL / name)) as cases:
        return list(cases)


BOTH = _loaded("rag_cases.json") + _loaded("questions.jsonl")
BY_ID = {case.id: case for case in BOTH}
OUT = [case for case in BOTH if case.expect_refusal]
TENANTS = [case for case in BOTH if case.tenant is not None]
# Cases of one passage that anyone may read: the passage is the right answer.
PLAIN = [case for case in BOTH if len(case.relevant_docs) == 1 and case.tenant is None]


def _made(name: str, question: str, docs: str, *points: str) -> Case:
    """A case of our own; several documents stand with blanks between them."""
    relevant = dict.fromkeys(docs.split(), 1.0)
    return Case(name, question, relevant_docs=relevant, must_include=tuple((p,) for p in points), expect_refusal=False)


# Cases of two points in one passage, and an answer that leaves the second one out.
TWO_POINTS = [
    (_made("t1", "发薪日是哪天，碰上周末怎么办？", "hr#2", "10 日", "提前到周五"), "每月 10 日发放上月工资。"),
    (_made("t2", "密码多久换一次，输错几次会被锁？", "it#1", "180 天", "5 次"), "密码至少 12 位，每 180 天更换一次。"),
    (_made("t3", "夜班补多少，第二天上班吗？", "hr-shifts#3", "165 元", "全天休息"), "夜班每班补贴 165 元。"),
    (_made("t4", "备份多久做一次，留多久？", "security#2", "6 小时", "35 天"), "每 6 小时备份一次，存于异地机房。"),
    (_made("t5", "婚假几天，多久内要休？", "leave-personal#4", "13 天", "10 个月"), "婚假 13 天，须一次休完。"),
    (_made("t6", "转正答辩多长，几分算过？", "hr-probation#2", "40 分钟", "70 分"), "答辩时长是 40 分钟，由三方打分。"),
    (_made("t7", "丢了发票报多少，一年几次？", "travel-expenses#5", "七成", "3 次"), "写一份说明，按票面的七成报销。"),
    (_made("t8", "How much do A and B pay?", "hr-performance#6", "1.6", "0.9"), "Rating A pays 1.6 months of bonus."),
    (_made("t9", "How long do tokens last?", "api#2", "30 days", "180 days"), "Access tokens last for 30 days."),
    (_made("t10", "When is a severity 1 fixed?", "support-levels#1", "4 hours", "6 days"),
     "You get a workaround within 4 hours [support-levels#1]."),
    (_made("t11", "Is a failed webhook tried again?", "api#3", "6 times", "4 hours"), "Yes, it is retried 6 times."),
]  # fmt: skip
# Cases of two points in two passages: the second one is the one that gets lost.
TWO_PASSAGES = [
    _made(
        "p1",
        "标准模板和对方模板的合同，法务各审几天？",
        "legal-contracts#1 legal-contracts#3",
        "1 个工作日",
        "7 个工作日",
    ),
    _made("p2", "去北京出差，酒店和饭补各多少？", "hr#4 travel-meals#1", "550 元", "125 元"),
    _made("p3", "新人券几天有效，推荐券一年几张？", "coupons#1 coupons#2", "14 天", "10 张"),
    _made("p4", "离职的人，邮箱和档案各留多久？", "it#5 privacy-retention#5", "60 天", "7 年"),
    _made("p5", "团队版月付和年付各几天内全退？", "refund#1 refund#2", "3 天内", "15 天内"),
    _made("p6", "一个席位带多大空间，企业版呢？", "product-space#1 product-space#2", "30 GB", "120 GB"),
    _made("p7", "Which Python and Go do the clients need?", "release-api#3 release-api#4", "Python 3.10", "Go 1.22"),
    _made("p8", "When is chat open, and what uptime is promised?", "support#1 support#4", "9:00 to 21:00", "99.9%"),
    _made(
        "p9", "How fast are copies and erasures?", "privacy-requests#1 privacy-requests#2", "12 working", "20 working"
    ),
]
# Figures and names as a model distorts them; where the case is not named, a digit is changed.
DISTORTED = {
    "qa-060": "冯怀谨", "qa-063": "Tang Ruolin", "q26": "财务总监", "qa-048": "9:30 to 17:00",
    "q12": "2026 年 6 月 17 日",
}  # fmt: skip
# A passage that is taken for the right one, though not worded like it, and what is then said.
MISTAKEN = [
    ("qa-072", "travel-meals#5", "市内打车每天最多报 85 元。"),
    ("q32", "it#3", "电脑有问题请拨分机 8021。"),
    ("qa-008", "it-servicedesk#2", "请拨服务台分机 8066。"),
    ("qa-054", "it-servicedesk#2", "请马上拨 8066 找服务台。"),
    ("qa-045", "billing-cycle#3", "逾期 70 天账号会停用。"),
    ("qa-036", "refund-channel#1", "多扣的款 48 小时内处理。"),
    ("qa-042", "partner-affiliate#2", "You need to earn 24 dollars before a payout."),
    ("qa-003", "billing-invoice#1", "要在开票当月 25 日前办理。"),
    ("qa-039", "product#2", "Files of up to 10 GB are fine."),
    ("qa-009", "integration-devtools#1", "We try every 10 minutes."),
]  # fmt: skip
REFUSALS = {
    True: [
        "知识库中没有相关信息，无法回答这个问题。", "抱歉，我没有找到与您问题相关的内容。", "资料中未提及此事。",
        "很抱歉，暂时查不到这方面的规定，请咨询管理员。", "对不起，这个问题我不知道。", "根据现有资料无法确定。",
        "您的问题超出了知识库的范围，建议联系客服。",
    ],
    False: [
        "I could not find any information on this in the documents.", "Sorry, I don't know.",
        "The provided context does not mention this.", "I'm unable to answer this from the documents.",
        "Unfortunately, this is not covered in our documentation. Please contact support.",
    ],
}  # fmt: skip
THEN = {
    True: ["不过，{}", "但根据相关规定，{}", "一般来说，大约是 30 天。", "不过通常是可以的，费用约 200 元。"],
    False: [
        "However, {}",
        "That said, {}",
        "Generally, it is about 30 days.",
        "In most companies it costs 50 dollars.",
    ],
}
OFF_TOPIC = {
    True: ["可以在后台的设置页面里查看，按提示操作即可。", "按公司统一的流程办理，审批通过后即可生效。"],
    False: ["You can manage this from the settings page at any time.", "It follows the usual process of the team."],
}
ADDED = {
    True: ["另外，每超出一次加收 37 元手续费。", "该规定自 2019 年 3 月 4 日起施行。", "如有疑问可联系王建国处理。"],
    False: ["After that a fee of 43 dollars applies.", "This rule has been in force since 4 March 2019.",
            "Ask John Whitfield if in doubt."],
}  # fmt: skip
MADE_UP = {True: "一般是 {} 天左右，具体按公司规定执行。", False: "It usually takes about {} days."}
LEADS = {True: ("", "根据资料，", "您好，"), False: ("", "According to the documents: ", "Hi! ")}
PARAPHRASED = [
    ("qa-002", "您删掉的东西会先进回收站，30 天之内都能自己恢复；找管理员还可以再放宽一些。"),
    ("qa-028", "离开团队的同事留下的私有内容，管理员要赶在 22 天之内移交给别人。"),
    ("qa-064", "Once the patent has been granted, everyone who invented it splits 9,500 yuan among them."),
    ("qa-062", "If you leave it untouched for 55 days, you get one warning and then lose it."),
]
PROMPT = {
    True: "请只根据下面的资料回答。\n\n{}\n\n问题：{}",
    False: "Answer from these passages alone.\n\n{}\n\nQuestion: {}",
}


_folded = cache(fold)


@cache
def _kb(name: CorpusName) -> dict[str, Chunk]:
    chunks = RECUT[0] if name == "cut" else WHOLE
    return {chunk.id: chunk for chunk in chunks if name != "gaps" or chunk.id not in GONE}


@cache
def _corpus(name: CorpusName) -> Corpus:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "kb.jsonl"
        lines = [
            json.dumps({"id": chunk.id, "text": chunk.text, "tenant": chunk.tenant}) for chunk in _kb(name).values()
        ]
        path.write_text("\n".join(lines), encoding="utf-8")
        return Corpus(path)


@cache
def _assistant() -> Assistant:
    return Assistant(WHOLE, replace(V2, k=40, min_match=0.0))


@cache
def _retrieved(question: str, tenant: str | None) -> tuple[str, ...]:
    return tuple(context["text"] for context in _assistant().answer(question, tenant)["contexts"])


@cache
def _by_text(name: CorpusName) -> dict[str, Chunk]:
    return {chunk.text: chunk for chunk in _kb(name).values()}


def _others(case: Case, name: CorpusName = "whole") -> list[Chunk]:
    """What the retriever finds beside the right passages, best first."""
    there = _by_text(name)
    found_chunks = [there[text] for text in _retrieved(case.question, case.tenant) if text in there]
    return [chunk for chunk in found_chunks if chunk.id not in case.relevant_docs]


def _right(case: Case, name: CorpusName = "whole") -> list[Chunk]:
    return [_kb(name)[doc] for doc in case.relevant_docs]


def _among(rng: random.Random, right: Sequence[Chunk], others: Sequence[Chunk]) -> list[Chunk]:
    """K passages with the right ones beside each other somewhere among them."""
    others = others[: K - len(right)]
    at = rng.randint(0, len(others))
    return [*others[:at], *right, *others[at:]]


def _family(chunk: Chunk) -> str:
    return re.split("[-#]", chunk.id)[0]


def _elsewhere(case: Case, others: Sequence[Chunk]) -> Chunk:
    """The best of the found passages that is about another matter."""
    families = {doc.partition("#")[0].partition("-")[0] for doc in case.relevant_docs}
    return next(chunk for chunk in others if _family(chunk) not in families and not _holds(case, chunk.text))


def _by_document(case: Case) -> Case:
    """The case as an eval set writes it that names documents, not passages."""
    return replace(case, relevant_docs={doc.partition("#")[0]: 1.0 for doc in case.relevant_docs})


def _wordings(case: Case) -> list[str]:
    return [wording for point in (*case.must_include, case.acceptable) for wording in point]


def _holds(case: Case, text: str) -> bool:
    return any(holds_point(_folded(text), _folded(wording)) for wording in _wordings(case))


def _literal(case: Case, text: str) -> str | None:
    """The wording of a key point that stands letter for letter in a text."""
    return next((wording for wording in _wordings(case) if wording in text), None)


def _draw(rng: random.Random, cases: Sequence[Case], n: int) -> list[Case]:
    """n cases, every third an English one as far as there are any."""
    shuffled = rng.sample(list(cases), len(cases))
    english = [case for case in shuffled if not is_chinese(case.question)][: n // 3 + 1]
    chinese = [case for case in shuffled if is_chinese(case.question)][: n - len(english)]
    return rng.sample(drawn := chinese + english, len(drawn))


def _corpus_or_none(number: int) -> CorpusName | None:
    return "whole" if number % 2 else None


def _plant(
    cause: str, kind: str, case: Case, text: str, chunks: Sequence[Chunk], corpus: CorpusName | None = None,
    decision: Decision | None = None, judges_disagree: bool | None = None, match: MatchLevel = "exact", **answer: Any,
) -> Planted:  # fmt: skip
    contexts = tuple(
        Context(chunk.id, chunk.text, round(12.7 * 0.86**rank, 4), chunk.tenant) for rank, chunk in enumerate(chunks)
    )
    given = Answer(case.id, text, contexts, **answer)
    return Planted(cause, kind, case, given, corpus, decision, judges_disagree, match)


def _quote(rng: random.Random, *chunks: Chunk) -> tuple[str, tuple[str, ...] | None]:
    """An answer that quotes passages, with marks or without, and its citations."""
    mark = rng.random() < 0.5
    lead = rng.choice(LEADS[is_chinese(chunks[0].text)])
    return lead + " ".join(f"{chunk.text} [{chunk.id}]" if mark else chunk.text for chunk in chunks), tuple(
        chunk.id for chunk in chunks
    )


def _fail(*, unstable: bool = False, flipped: bool = False, **values: bool) -> Decision:
    """A judge's no by majority of three."""
    fields = {"grounded": True, "complete": True, "should_abstain": False} | values
    return Decision(fields, False, 3, 3, 3, flipped, unstable or flipped, None, "The answer does not fit.")


# --- access and abstention --------------------------------------------------------------------------------------


def _leaks(rng: random.Random) -> Iterator[Planted]:
    kinds = ("forbidden id", "tenant", "citation", "said", "refused", "no text")
    for number, case in enumerate([*TENANTS, *TENANTS[:4]]):
        kind = kinds[number % len(kinds)]
        others = _others(case)
        chunks = _among(rng, _right(case), others)
        (other,) = {"a", "b"} - {case.tenant}
        theirs = rng.choice([chunk for chunk in WHOLE if chunk.tenant == other])
        text, cited = _quote(rng, *(_right(case) or others[:1]))
        hidden = replace(theirs, tenant=None)
        if kind == "citation":
            cited = (*(cited or ()), theirs.id)
        else:
            at = -1 if chunks[-1].id not in case.relevant_docs else 0
            chunks[at] = hidden if kind in ("forbidden id", "refused") else theirs
        if kind == "said":
            text += theirs.text
        if kind == "refused":
            text, cited = rng.choice(REFUSALS[is_chinese(case.question)]), ()
        if kind in ("tenant", "no text"):
            case = replace(case, forbidden_docs=())
        plant = _plant("leak", kind, case, text, chunks, _corpus_or_none(number), citations=cited)
        if kind == "no text":
            bare = tuple(replace(context, text=None) for context in plant.answer.contexts or ())
            plant = replace(plant, answer=replace(plant.answer, contexts=bare))
        yield plant


def _answered_out_of_scope(rng: random.Random) -> Iterator[Planted]:
    for number, case in enumerate(_draw(rng, OUT, 14)):
        chunks, zh = _others(case)[:K], is_chinese(case.question)
        quoted, cited = _quote(rng, *chunks[: rng.randint(1, 2)])
        kind, text = (
            ("quotes", quoted),
            ("made up", MADE_UP[zh].format(30)),
            ("says yes", "可以的。" if zh else "Yes, that is possible."),
            ("off topic", rng.choice(OFF_TOPIC[zh])),
        )[number % 4]
        marked = cited if kind == "quotes" else None
        yield _plant("answered_out_of_scope", kind, case, text, chunks, _corpus_or_none(number), citations=marked)


def _refused_in_scope(rng: random.Random) -> Iterator[Planted]:
    for number, case in enumerate(_draw(rng, PLAIN, 18)):
        zh = is_chinese(case.question)
        chunks = _among(rng, _right(case), _others(case))
        text = REFUSALS[zh][number % len(REFUSALS[zh])]
        if number % 3 == 2:
            kind = "flagged"
        elif number % 3:
            kind, text = (
                "with a courtesy",
                text + ("希望对您有帮助！" if zh else " Is there anything else I can help with?"),
            )
        else:
            kind = "plain"
        flag = True if kind == "flagged" else None
        yield _plant("refused_in_scope", kind, case, text, chunks, _corpus_or_none(number), refused=flag, citations=())


def _refused_then_answered(rng: random.Random) -> Iterator[Planted]:
    for number, case in enumerate(_draw(rng, OUT, 14)):
        chunks, zh = _others(case)[:K], is_chinese(case.question)
        then = THEN[zh][number % 4]
        text = f"{rng.choice(REFUSALS[zh][:4])} {then.format(chunks[0].text)}"
        kind = "then quotes" if "{}" in then else "then guesses"
        yield _plant("refused_then_answered", kind, case, text, chunks, _corpus_or_none(number))


# --- knowledge base, retrieval ----------------------------------------------------------------------------------


def _rare(case: Case) -> bool:
    """Whether no passage but the right one holds a key point."""
    return not any(_holds(case, chunk.text) for chunk in WHOLE if chunk.id not in case.relevant_docs)


RARE = [case for case in PLAIN if _rare(case)]
# What the corpus "gaps" lacks: the passages of some cases, and of the cases of two passages the second one.
_GAPS = _draw(random.Random("gaps"), RARE, 8) + _draw(random.Random("common"), [c for c in PLAIN if c not in RARE], 4)
_HALF_GAPS = TWO_PASSAGES[1::2]
GONE = {doc for case in _GAPS for doc in case.relevant_docs} | {list(case.relevant_docs)[1] for case in _HALF_GAPS}


def _not_in_kb(rng: random.Random) -> Iterator[Planted]:
    for number, case in enumerate(_GAPS):
        chunks, zh = _others(case, "gaps")[:K], is_chinese(case.question)
        kind = "gone" if case in RARE else "gone, its point said elsewhere"
        text, cited = _quote(rng, chunks[0])
        if number % 3 == 1:
            text, cited = MADE_UP[zh].format(17), ()
        if number % 4 == 3 and case in RARE:
            kind, case = "no document named", replace(case, relevant_docs={})
        yield _plant("not_in_kb", kind, case, text, chunks, "gaps", citations=cited)
    for case in _HALF_GAPS:
        there = _kb("whole")[next(iter(case.relevant_docs))]
        chunks = _among(rng, [there], _others(case, "gaps"))
        text, cited = _quote(rng, there)
        yield _plant("not_in_kb", "one of two gone", case, text, chunks, "gaps", citations=cited)


def _recall_misses(rng: random.Random) -> Iterator[Planted]:
    for number, case in enumerate(_draw(rng, PLAIN, 15)):
        others = [chunk for chunk in _others(case) if not _holds(case, chunk.text)]
        kind = ("not found", "found late", "made up")[number % 3]
        text, cited = _quote(rng, others[number % 2])
        chunks = others[:K]
        if kind == "found late":
            chunks = [*others[: K + number % 2], *_right(case), *others[K + 1 : K + 3]]
        elif kind == "made up":
            text, cited = MADE_UP[is_chinese(case.question)].format(17), ()
        yield _plant("recall_miss", kind, case, text, chunks, _corpus_or_none(number // 3), citations=cited)
    for number, case in enumerate(TWO_PASSAGES):
        there = _right(case)[0]
        missing = case.must_include[1]
        others = [c for c in _others(case) if not holds_point(fold(c.text), fold(missing[0]))]
        text, cited = _quote(rng, there)
        chunks = _among(rng, [there], others)
        yield _plant("recall_miss", "one of two", case, text, chunks, _corpus_or_none(number), citations=cited)
    for case in _draw(rng, [c for c in RARE if len(_same_document(c)) > 1], 4):
        chunks = _among(rng, _same_document(case)[:1], [c for c in _others(case) if not _holds(case, c.text)])
        text, cited = _quote(rng, chunks[0])
        case, kind = _by_document(case), "another passage of its document"
        yield _plant("recall_miss", kind, case, text, chunks, "whole", match="document", citations=cited)
    yield _plant("recall_miss", "nothing found", PLAIN[0], MADE_UP[True].format(17), [], "whole")


def _same_document(case: Case) -> list[Chunk]:
    """The other passages of the right one's document that do not look like it."""
    (right,) = _right(case)
    document = right.id.partition("#")[0]
    alike = {right.id, *(chunk.id for chunk in _siblings(right))}
    return [chunk for chunk in WHOLE if chunk.id.partition("#")[0] == document and chunk.id not in alike]


def _siblings(chunk: Chunk) -> list[Chunk]:
    """The passages on the same matter for another group, plan or region."""
    parent, _, _ = chunk.heading.rpartition(" > ")
    document = chunk.id.partition("#")[0]
    if " > " not in parent:
        return []
    return [
        c for c in WHOLE
        if c.id != chunk.id and c.id.partition("#")[0] == document and c.heading.rpartition(" > ")[0] == parent
    ]  # fmt: skip


def _value(case: Case, sibling: Chunk) -> str | None:
    """What a look-alike says in the place of the key point."""
    (right,) = _right(case)
    wording = _literal(case, right.text) or ""
    before = right.text[: right.text.index(wording)][-2:]
    pattern = re.sub(r"\d[\d.:,]*", "N", wording)
    hit = re.search(re.escape(before + pattern).replace("N", r"\d[\d.:,]*"), sibling.text)
    if hit is None or pattern == wording or _holds(case, hit.group()):
        return None
    return hit.group()[len(before) :]


def _crowded_out(rng: random.Random) -> Iterator[Planted]:
    able = [c for c in PLAIN if any(_value(c, s) for s in _siblings(_right(c)[0]))]
    for number, case in enumerate(_draw(rng, able, 16)):
        (right,) = _right(case)
        sibling = next(s for s in _siblings(right) if _value(case, s))
        value = _value(case, sibling) or ""
        others = [c for c in _others(case) if c.id != sibling.id and value not in c.text and not _holds(case, c.text)]
        chunks = [*others[: number % 2], sibling, right, *others[2:]][:K]
        text, cited = _quote(rng, sibling)
        plain = replace(case, must_not_include=())
        sentence = f"是 {value}。" if is_chinese(sibling.text) else f"It is {value}."
        said = sentence if number % 3 else value
        kind, case, text, cited = (
            ("quoted and cited", plain, text, cited),
            ("quoted, no citation", plain, sibling.text, None),
            ("value said, cited", plain, said, cited),
            ("value said", plain, said, None),
            ("both quoted", replace(case, must_not_include=(value,)), f"{sibling.text} {right.text}", None),
        )[number % 5]
        match: MatchLevel = "document" if number > 11 else "exact"
        case = case if match == "exact" else _by_document(case)
        yield _plant("crowded_out", kind, case, text, chunks, _corpus_or_none(number), match=match, citations=cited)
    for number, (name, doc, said) in enumerate(MISTAKEN):
        case, other = BY_ID[name], _kb("whole")[doc]
        others = [c for c in _others(case) if c.id != doc and c.tenant is None]
        chunks = [other, *_among(rng, _right(case), others)][:K]
        if _right(case)[0] not in chunks:
            chunks[-1] = _right(case)[0]
        cited = (doc,) if number % 2 else None
        yield _plant("crowded_out", "taken for it", case, said, chunks, _corpus_or_none(number), citations=cited)


# --- chunking, assembly -----------------------------------------------------------------------------------------


def _spans(case: Case) -> bool:
    """Whether a key point stands in no passage alone."""
    texts = [chunk.text for chunk in _right(case)]
    return len(texts) == 2 and not any(_holds(case, text) for text in texts) and _holds(case, "".join(texts))


SPLIT = [case for case in BOTH if _spans(case)]
SPLIT.append(_made("s1", "要请四天事假，得提前几天提交？", "leave-personal#6 leave-personal#7", "8 个工作日"))


def _recut() -> tuple[list[Chunk], list[Case]]:
    """The knowledge base with passages cut inside a key point, numbered anew, and the cases that this hits."""
    rng = random.Random("recut")
    able = [c for c in PLAIN if (w := _literal(c, _right(c)[0].text)) and len(fold(w)) > 2]
    cases = list({next(iter(case.relevant_docs)).partition("#")[0]: case for case in _draw(rng, able, 16)}.values())
    cuts = {}
    for case in cases:
        text = _right(case)[0].text
        wording = _literal(case, text) or ""
        cuts[_right(case)[0].id] = text.index(wording) + rng.randint(1, len(wording) - 1)
    chunks: list[Chunk] = []
    new: dict[str, dict[str, float]] = {}
    numbers: Counter[str] = Counter()
    for chunk in WHOLE:
        document, at = chunk.id.partition("#")[0], cuts.get(chunk.id)
        for text in [chunk.text] if at is None else [chunk.text[:at].strip(), chunk.text[at:].strip()]:
            numbers[document] += 1
            chunks.append(replace(chunk, id=f"{document}#{numbers[document]}", text=text))
            new.setdefault(chunk.id, {})[chunks[-1].id] = 1.0
    return chunks, [replace(case, relevant_docs=new[next(iter(case.relevant_docs))]) for case in cases]


RECUT = _recut()


def _split_by_chunking(rng: random.Random) -> Iterator[Planted]:
    material: list[tuple[Case, CorpusName]] = [(c, "whole") for c in SPLIT] + [(c, "cut") for c in RECUT[1]]
    kinds = ("first half", "second half", "both", "first half", "the wrong way round")
    for number, (case, name) in enumerate(material + material[: len(SPLIT)]):
        one, two = _right(case, name)
        others = [chunk for chunk in _others(case, name) if not _holds(case, chunk.text)]
        kind = kinds[(number + number // len(SPLIT)) % len(kinds)]
        right = {"first half": [one], "second half": [two], "the wrong way round": [two, one]}.get(kind, [one, two])
        text, cited = _quote(rng, *(right[:1] if kind == "both" else right))
        corpus = name if rng.random() < 0.5 else None
        chunks = _among(rng, right, others)
        match: MatchLevel = "document" if number % 6 == 5 else "exact"
        case = case if match == "exact" else _by_document(case)
        yield _plant("split_by_chunking", kind, case, text, chunks, corpus, match=match, citations=cited)


def _prompt(case: Case, texts: Sequence[str]) -> str:
    passages = "\n".join(f"[{number}] {text}" for number, text in enumerate(texts, 1))
    return PROMPT[is_chinese(case.question)].format(passages, case.question)


def _lost_in_assembly(rng: random.Random) -> Iterator[Planted]:
    able = [case for case in PLAIN if (text := _right(case)[0].text).find(_literal(case, text) or "") > 4]
    for number, case in enumerate(_draw(rng, able, 16)):
        (right,) = _right(case)
        others = [chunk for chunk in _others(case) if not _holds(case, chunk.text)][: K - 1]
        chunks = [*others[:2], right, *others[2:]] if number % 2 else [*others, right]
        text, cited = _quote(rng, _elsewhere(case, others) if number % 3 else others[0])
        kind = ("not sent", "not in the prompt", "only its beginning", "neither")[number % 4]
        more: dict[str, Any] = {}
        if kind in ("not sent", "neither"):
            more["sent_contexts"] = tuple(chunk.id for chunk in others)
        if kind in ("not in the prompt", "neither"):
            more["prompt"] = _prompt(case, [chunk.text for chunk in others])
        if kind == "only its beginning":
            cut = right.text[: right.text.index(_literal(case, right.text) or "")]
            more["prompt"] = _prompt(case, [chunk.text for chunk in chunks if chunk is not right] + [cut])
            text, cited = (cut, (right.id,)) if number % 8 > 3 else (text, cited)
        corpus = _corpus_or_none(number // 4)
        yield _plant("lost_in_assembly", kind, case, text, chunks, corpus, citations=cited, **more)
    for number, case in enumerate(SPLIT[:6]):
        one, two = _right(case)
        chunks = [one, two, *_others(case)[:3]]
        sent = [chunks[number % 3 + 2], two, one] if number % 2 else [*chunks[:1:-1], two, one]
        text, cited = _quote(rng, two, one)
        more = {"sent_contexts": tuple(chunk.id for chunk in sent)}
        if number % 3 == 2:
            more = {"prompt": _prompt(case, [chunk.text for chunk in sent])}
        corpus = _corpus_or_none(number)
        yield _plant("lost_in_assembly", "the wrong way round", case, text, chunks, corpus, citations=cited, **more)


# --- generation -------------------------------------------------------------------------------------------------


def _ignored_context(rng: random.Random) -> Iterator[Planted]:
    kinds = ("quotes another", "all sent", "whole prompt", "shortened prompt", "off topic", "off topic, cites it")
    for number, case in enumerate(_draw(rng, PLAIN, 18)):
        (right,), zh, kind = _right(case), is_chinese(case.question), kinds[number % 6]
        others = _others(case)
        other = _elsewhere(case, others)
        chunks = _among(rng, [right], [other, *(chunk for chunk in others if chunk is not other)])
        text, cited = _quote(rng, other)
        more: dict[str, Any] = {}
        if kind == "all sent":
            more["sent_contexts"] = tuple(chunk.id for chunk in chunks)
        if kind == "whole prompt":
            more["prompt"] = _prompt(case, [chunk.text for chunk in chunks])
        if kind == "shortened prompt":  # every passage ends behind the key point, or loses its full stop
            literal = _literal(case, right.text) or right.text[:-1]
            more["prompt"] = _prompt(case, [c.text.rpartition(literal)[0] + literal if c is right else c.text[:-1]
                                            for c in chunks])  # fmt: skip
        if kind.startswith("off topic"):
            text, cited = rng.choice(OFF_TOPIC[zh]), (right.id,) if kind.endswith("it") else ()
        corpus = _corpus_or_none(number // 6)
        match: MatchLevel = "document" if number % 5 == 4 else "exact"
        case = case if match == "exact" else _by_document(case)
        yield _plant("ignored_context", kind, case, text, chunks, corpus, match=match, citations=cited, **more)


def _missing_point(rng: random.Random) -> Iterator[Planted]:
    for number, (case, text) in enumerate(TWO_POINTS):
        chunks = _among(rng, _right(case), _others(case))
        sent = tuple(chunk.id for chunk in chunks) if number % 3 == 0 else None
        kind, corpus = "half of a passage", _corpus_or_none(number)
        yield _plant("missing_point", kind, case, text, chunks, corpus, sent_contexts=sent, citations=())
    for number, case in enumerate(TWO_PASSAGES):
        chunks = _among(rng, _right(case), _others(case))
        text, cited = _quote(rng, _right(case)[0])
        yield _plant("missing_point", "one of two", case, text, chunks, _corpus_or_none(number), citations=cited)


def _distorted(case: Case, wording: str, texts: Sequence[str], rng: random.Random) -> str:
    """A key point with a digit changed (or as the table has it) so that no passage holds it."""
    if case.id in DISTORTED:
        return DISTORTED[case.id]
    places = [at for at, char in enumerate(wording) if char.isdigit()]
    while True:
        at = rng.choice(places)
        changed = wording[:at] + rng.choice("123456789".replace(wording[at], "")) + wording[at + 1 :]
        if not any(holds_point(fold(text), fold(changed)) for text in texts):
            return changed


def _invented(rng: random.Random) -> Iterator[Planted]:
    able = [case for case in PLAIN if re.fullmatch(r"[^:]*\d[^:]*", _literal(case, _right(case)[0].text) or "")]
    drawn = [BY_ID[name] for name in DISTORTED] + _draw(rng, [c for c in able if c.id not in DISTORTED], 10)
    for number, case in enumerate(drawn):
        right = _right(case)
        chunks = _among(rng, right, _others(case))
        whole = right[-1].text
        wording = _literal(case, whole) or ""
        changed = _distorted(case, wording, [chunk.text for chunk in chunks], rng)
        short = f"是{changed}。" if is_chinese(whole) else f"It is {changed}."
        kind, text = ("changed, short", short) if number % 2 else ("changed", whole.replace(wording, changed))
        own = (right[-1].id,) if number % 3 else None
        yield _plant("invented", kind, case, text, chunks, _corpus_or_none(number), citations=own)
    forbidding = [case for case in PLAIN if case.must_not_include]
    for number, case in enumerate(_draw(rng, forbidding, 6)):
        wording = case.must_not_include[0]
        others = [chunk for chunk in _others(case) if fold(wording) not in fold(chunk.text)]
        chunks = _among(rng, _right(case), others)
        text = _quote(rng, *_right(case))[0] + (f"也有人是 {wording}。" if is_chinese(wording) else f" Or {wording}.")
        yield _plant("invented", "forbidden, not in any context", case, text, chunks, _corpus_or_none(number))
    for number, case in enumerate(_draw(rng, PLAIN, 6)):
        text, cited = _quote(rng, *_right(case))
        more = ADDED[is_chinese(case.question)]
        chunks = _among(rng, _right(case), _others(case))
        judged = _fail(grounded=False)
        text = f"{text} {more[number % len(more)]}"
        yield _plant("invented", "added", case, text, chunks, _corpus_or_none(number), judged, citations=cited)


def _wrong_citation(rng: random.Random) -> Iterator[Planted]:
    for number, case in enumerate(_draw(rng, PLAIN, 15)):
        right, zh = _right(case), is_chinese(case.question)
        others = [chunk for chunk in _others(case) if not _holds(case, chunk.text)]
        chunks = _among(rng, right, others)
        beside = next(chunk for chunk in chunks if chunk not in right)
        far = next(chunk for chunk in reversed(_others(case)) if chunk not in chunks)
        kind, cited = (
            ("cites another passage", (beside.id,)),
            ("cites what was not retrieved", (far.id,)),
            ("cites what does not exist", (f"{right[0].id.partition('#')[0]}#99",)),
            ("right and not retrieved", (right[0].id, far.id)),
            ("cites two others", tuple(chunk.id for chunk in chunks if chunk not in right)[:2]),
        )[number % 5]
        text = f"{LEADS[zh][1]}{right[0].text} [{cited[-1]}]"
        judged = (_fail(grounded=False), _fail(), _fail(grounded=False, complete=False))[number % 3]
        yield _plant("wrong_citation", kind, case, text, chunks, _corpus_or_none(number), judged, citations=cited)


# --- question and judge -----------------------------------------------------------------------------------------

_NOS: tuple[dict[str, bool], ...] = ({"complete": False}, {"grounded": False}, {"should_abstain": True})


def _ambiguous_question(rng: random.Random) -> Iterator[Planted]:
    for number, case in enumerate(_draw(rng, PLAIN, 12)):
        text, cited = _quote(rng, *_right(case))
        chunks = _among(rng, _right(case), _others(case))
        kind = ("flipped", "unstable", "judges disagree")[number % 3]
        judged = _fail(flipped=kind == "flipped", unstable=kind == "unstable", **_NOS[number // 3 % 3])
        disagree = True if kind == "judges disagree" else None
        yield _plant("ambiguous_question", kind, case, text, chunks, None, judged, disagree, citations=cited)


def _judge_at_fault(rng: random.Random) -> Iterator[Planted]:
    for number, case in enumerate(_draw(rng, PLAIN, 9)):
        text, cited = _quote(rng, *_right(case))
        chunks = _among(rng, _right(case), _others(case))
        judged, disagree = _fail(**_NOS[number % 3]), False if number % 2 else None
        corpus = _corpus_or_none(number)
        yield _plant("judge_at_fault", "quoted", case, text, chunks, corpus, judged, disagree, citations=cited)
    for number, (name, text) in enumerate(PARAPHRASED):
        case = BY_ID[name]
        chunks = _among(rng, _right(case), _others(case))
        judged = _fail(**_NOS[number % 3])
        yield _plant("judge_at_fault", "in other words", case, text, chunks, _corpus_or_none(number), judged)
    for number, case in enumerate(_draw(rng, OUT, 4)):
        refusals = REFUSALS[is_chinese(case.question)]
        text, chunks = refusals[number % len(refusals)], _others(case)[:K]
        judged = _fail(should_abstain=number % 2 == 1, complete=number % 2 == 0)
        yield _plant("judge_at_fault", "a right refusal", case, text, chunks, None, judged)


MAKERS: tuple[Callable[[random.Random], Iterator[Planted]], ...] = (
    _leaks,
    _refused_then_answered,
    _answered_out_of_scope,
    _refused_in_scope,
    _not_in_kb,
    _recall_misses,
    _crowded_out,
    _split_by_chunking,
    _lost_in_assembly,
    _ignored_context,
    _missing_point,
    _invented,
    _wrong_citation,
    _ambiguous_question,
    _judge_at_fault,
)


# --- the tables of docs/attribution.md --------------------------------------------------------------------------


def confusion_table(plants: Sequence[Planted]) -> str:
    """Planted cause by found cause, a row a planted cause."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for plant in plants:
        counts[plant.cause][found(plant).cause or ""] += 1
    lines = ["| Planted | Plants | Found | Taken for |", "|---|---|---|---|"]
    for planted_as, by_cause in counts.items():
        others = [f"`{cause}` {n}" for cause, n in sorted(by_cause.items(), key=_most) if cause != planted_as]
        lines.append(f"| `{planted_as}` | {by_cause.total()} | {by_cause[planted_as]} | {', '.join(others)} |")
    n_right = sum(by_cause[planted_as] for planted_as, by_cause in counts.items())
    return "\n".join([*lines, f"| all | {len(plants)} | {n_right} | |"])


def confidence_table(plants: Sequence[Planted]) -> str:
    """How often a cause is right, by the confidence that is stated."""
    counts: dict[str, Counter[bool]] = {"high": Counter(), "medium": Counter(), "low": Counter()}
    for plant in plants:
        outcome = found(plant)
        counts[outcome.confidence or ""][outcome.cause == plant.cause] += 1
    lines = ["| Confidence | Causes | Right |", "|---|---|---|"]
    lines += [f"| {name} | {n.total()} | {n[True]} ({n[True] / n.total():.0%}) |" for name, n in counts.items()]
    return "\n".join(lines)


def labelled(version: str) -> list[Planted]:
    """The answers of a version of the example's service that the rules fail, with the labelled cause."""
    assistant = Assistant(WHOLE, VERSIONS[version])
    plants = []
    for line in (EVAL / f"demo_labels.{version}.jsonl").read_text("utf-8").splitlines():
        label = json.loads(line)
        case = BY_ID[label["case_id"]]
        given = {"id": case.id, **assistant.answer(case.question, case.tenant)}
        answer = answer_from_row(Row(given, "", 0, 0, False))
        if label["cause"] is not None and check(case, answer).rule_correct is False:
            plants.append(Planted(label["cause"], version, case, answer))
    return plants


def labels_table() -> str:
    """How often the cause is the labelled one, by version, with the corpus and without."""
    lines = ["| Version | Failed by rules | Without corpus | With corpus | Else, with corpus (labelled: found) |"]
    lines.append("|---|---|---|---|---|")
    for version in VERSIONS:
        plants = labelled(version)
        causes = {name: [found(replace(plant, corpus=name)).cause for plant in plants] for name in (None, "whole")}
        right = {
            name: sum(plant.cause == cause for plant, cause in zip(plants, found_causes, strict=True))
            for name, found_causes in causes.items()
        }
        pairs = zip(plants, causes["whole"], strict=True)
        other = Counter(f"`{plant.cause}`: `{cause}`" for plant, cause in pairs if cause != plant.cause)
        else_ = ", ".join(f"{pair} {n}" for pair, n in sorted(other.items(), key=_most))
        lines.append(f"| {version} | {len(plants)} | {right[None]} | {right['whole']} | {else_} |")
    return "\n".join(lines)


def _most(counted: tuple[str, int]) -> tuple[int, str]:
    return -counted[1], counted[0]


def page_tables() -> dict[str, str]:
    """The tables by their names in the page."""
    plants = planted()
    return {
        "planted": confusion_table(plants),
        "confidence": confidence_table(plants),
        "labels": labels_table(),
    }


def with_tables(page: str) -> str:
    """The page with its tables as the program makes them."""
    for name, table in page_tables().items():
        start, end = f"<!-- table: {name} -->\n", "<!-- end -->"
        before, _, rest = page.partition(start)
        page = f"{before}{start}{table}\n{end}{rest.partition(end)[2]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text("utf-8")), "utf-8")
