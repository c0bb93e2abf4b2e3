"""Whether the text of an answer declines, told from its wording alone, in Chinese and English.

The wordings stand in `refusal_wordings`; here is the reading. No judge, no context, no flag of the system under test.
A wording that is missed belongs into a group there, never into the reading.

An answer is cut into sentences and clauses, and each clause is one of
    WHOLE    declines the question: "I cannot answer", 没有相关信息, a wording of the case itself
    SIDE     says that the documents are silent: declines too, unless a claim came before it (a partial answer)
    ASIDE    apologies, offers, advice to ask elsewhere, remarks on what the documents are about
    FRAME    a part that says nothing alone: "based on the documents", "if so", the rest of an enumeration
    CLAIM    everything else: it answers
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cache

from rag_judge.records import Abstention
from rag_judge.refusal_wordings import ASIDE, MARKS, SIDE, SIGNS, SPELLED_OUT, VOCABULARY, WHOLE
from rag_judge.text import fold

_Kind = Enum("_Kind", ["WHOLE", "SIDE", "ASIDE", "FRAME", "CLAIM"])
_READ_CHARS = 600  # of a clause, from its beginning: bounds the work on text without punctuation
_SHOWN_CHARS = 200  # of the evidence
_MASK = "□"  # stands for quoted text
_ENDS = ".,;!?。、"  # of a wording of the case itself, which need not stand in the answer

_SIMPLIFIED = str.maketrans(
    "無沒關資訊檔說規內為這個問題確斷導據係聯繫請諮詢們對應範圍識庫權訪檢獲從給準謝歡幫還並過雖僅討論標記載錄數協議費員戶網電話時間"
    "會後來處務業專嗎麼現發見認證實與於暫當類線詳細節條約額號點開歷結顯將須離進體單報總經僱參釋術蓋較夠錯誤遺讀測評轉補團隊屬機尋",
    "无没关资讯档说规内为这个问题确断导据系联系请咨询们对应范围识库权访检获从给准谢欢帮还并过虽仅讨论标记载录数协议费员户网电话时间"
    "会后来处务业专吗么现发见认证实与于暂当类线详细节条约额号点开历结显将须离进体单报总经雇参释术盖较够错误遗读测评转补团队属机寻",
)


def abstention(answer: str, wordings: Sequence[str] = ()) -> Abstention:
    """Whether the answer declines: a refusal wording, and no claim after it.

    `wordings` are the case's own (`refusal_phrases`, and `acceptable` of an out-of-scope case): they decline the
    whole question, compared without case and white space. Total: a text without a refusal wording does not decline.
    """
    if not _may_refuse(answer, wordings):
        return Abstention(False, False, None)
    evidence: str | None = None
    claimed = answered_after = False
    for kind, shown in _clauses(answer, wordings):
        if kind is _Kind.WHOLE or (kind is _Kind.SIDE and not claimed):
            if evidence is None or answered_after:
                evidence, answered_after = shown, False
        elif kind is _Kind.CLAIM:
            claimed, answered_after = True, evidence is not None
    return Abstention(evidence is not None and not answered_after, answered_after, evidence)


def _may_refuse(answer: str, wordings: Sequence[str]) -> bool:
    """Whether any clause can be a refusal: most answers hold no hint, and reading them clause by clause is slow."""
    folded = _fold(answer) if wordings else ""
    return any(_fold(wording).strip(_ENDS) in folded for wording in wordings) or _has("hint", _plain(answer))


def _clauses(answer: str, wordings: Sequence[str]) -> Iterator[tuple[_Kind, str]]:
    """The kind of each clause in order, and the clause as it stands in the answer."""
    text = _masked(answer)
    own = _own_wordings(answer, wordings)
    before = ""
    for start, end, mark in _split("sentence end", text, 0, len(text)):
        spans = [(a, b) for a, b, _ in _split("clause end", text, start, end)]
        plain = [_plain(text[a : min(b, a + _READ_CHARS)]) for a, b in spans]
        kinds = _kinds(plain, [1 in own[a:b] for a, b in spans], mark[:1] in ("?", "？"), before)
        before = plain[-1] if plain else ""
        for (a, b), kind in zip(spans, kinds, strict=True):
            yield kind, answer[a:b].strip().strip("*#> ")[:_SHOWN_CHARS]


def _kinds(plain: Sequence[str], own: Sequence[bool], asks: bool, before: str) -> list[_Kind]:
    """The kinds of one sentence's clauses; one that no table knows is judged by its neighbours."""
    leads = [_compiled(MARKS["lead"])[0].match(clause) for clause in plain]
    bodies = [clause[lead.end() :] if lead else clause for clause, lead in zip(plain, leads, strict=True)]
    for at, last in enumerate([before, *bodies][: len(bodies)]):
        if any(_matches(ASIDE["remark on the documents"], last)):  # whose subject goes on
            bodies[at] = re.sub(r"^(?=[并也]?[未没])", "文档", re.sub(r"^(?:it|they)\b", "the text", bodies[at]))
    known = [_known(body, mine) for body, mine in zip(bodies, own, strict=True)]
    alone = not any(known)
    kinds = []
    turned = listed = False
    for at, (body, lead, kind) in enumerate(zip(bodies, leads, known, strict=True)):
        turned = turned or bool(lead and lead["turn"])
        if kind is None:
            frame = _has("frame", body)
            leans = asks or (frame and at + 1 < len(bodies))
            claims = not leans and _claims(body, turned or alone, listed)
            listed = at > 0 and not claims and not frame
            kind = _Kind.CLAIM if claims else _Kind.FRAME
        turned = turned and kind is _Kind.FRAME
        kinds.append(kind)
    return kinds


def _claims(body: str, free: bool, listed: bool) -> bool:
    """Whether a clause of no known kind answers; one that is not `free` stands beside a refusal or an aside."""
    if not any(c.isalnum() or c == _MASK for c in body) or _has("no claim", body):
        return False
    return free or (not listed and not _has("enumeration", body) and _has("assertion", body))


def _known(body: str, own: bool) -> _Kind | None:
    """The kind of a clause that a table knows, None where none does."""
    if own and not _has("condition", body):
        return _Kind.WHOLE
    if _has("hint", body) and not _has("condition", body) and not _has("reported", body):
        for kind, table in ((_Kind.WHOLE, WHOLE), (_Kind.SIDE, SIDE)):
            found = next((m for group in table.values() for m in _matches(group, body) if _refuses(m)), None)
            if found:
                return _Kind.SIDE if _has("side point", body[found.start() :]) else kind
    return _Kind.ASIDE if any(any(_matches(group, body)) for group in ASIDE.values()) else None


def _refuses(found: re.Match[str]) -> bool:
    """Whether a wording is the speaker's: not about what someone else cannot do, nor part of a rule's condition."""
    before, after = found.string[: found.start()], found.string[found.end() :]
    return not _has("someone", before) and (any(_matches(("我", "<资料>"), before)) or not _has("relative", after))


def _has(sign: str, text: str) -> bool:
    return any(_matches(SIGNS[sign], text))


def _matches(group: tuple[str, ...], text: str) -> Iterator[re.Match[str]]:
    return (found for pattern in _compiled(group) for found in pattern.finditer(text))


@cache
def _compiled(group: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """The patterns of a group with their `<NAME>`s filled in; compiled on first use, for a quick start."""
    named = r"<([A-Z]+|[一-鿿]+)>"
    return tuple(re.compile(re.sub(named, lambda name: VOCABULARY[name[1]][0], pattern)) for pattern in group)


def _plain(clause: str) -> str:
    """The clause as the tables spell it: NFKC, lower case, simplified characters, contractions written out."""
    text = unicodedata.normalize("NFKC", clause).replace("’", "'").lower().translate(_SIMPLIFIED)
    for full, group in SPELLED_OUT.items():
        for short in _compiled(group):
            text = " ".join(short.sub(f" {full.strip('-')} ", text).split())
    return re.sub(r"(?<=[一-鿿]) (?=[一-鿿])", "", text).strip(" .,!?\"'、*-~")


def _masked(answer: str) -> str:
    """The answer, equally long, without what is not its own wording: reasoning, quotations, citations, markup."""
    start, end = answer.find("<think>"), answer.find("</think>")
    if 0 <= start < end:
        answer = answer[:start] + " " * (end + 8 - start) + answer[end + 8 :]
    quote = _compiled(MARKS["quote"])[0]
    lines = (
        line if quote.fullmatch(line.strip(" .。")) else quote.sub(lambda found: _MASK * len(found[0]), line)
        for line in answer.split("\n")
    )
    return _compiled(MARKS["not text"])[0].sub(lambda found: " " * len(found[0]), "\n".join(lines))


def _split(edge: str, text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Start, end and closing mark of the parts of text[start:end] that are not blank."""
    for found in (*_compiled(MARKS[edge])[0].finditer(text, start, end), None):
        stop, after = found.span() if found else (end, end)
        if text[start:stop].strip():
            yield start, stop, found[0] if found else ""
        start = after


def _own_wordings(answer: str, wordings: Sequence[str]) -> bytearray:
    """For each character of the answer, 1 where it is part of one of the case's own wordings."""
    owned = bytearray(len(answer))
    places = [(at, folded) for at, char in enumerate(answer) for folded in _fold(char)] if wordings else []
    text = "".join(folded for _, folded in places)
    for wording in filter(None, (_fold(w).strip(_ENDS) for w in wordings)):
        for found in re.finditer(re.escape(wording), text):
            for at, _ in places[found.start() : found.end()]:
                owned[at] = 1
    return owned


def _fold(text: str) -> str:
    return fold(text).replace("’", "'")
