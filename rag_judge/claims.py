"""What an answer claims, held against its contexts without a model: figures, clauses, sentences. Pure and total.

Here: which figures stand in no context, and hints for people (`clause_hints`, `sentence_support`), which are never
verdicts. Not here: how a figure is read (`quantities`), and key points of a case (`rules`). An answer that computes a
figure from others (a sum, a difference) claims what no context holds: that is found too, and may be right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from rag_judge.quantities import CITED, DATE, TIME, Quantity, held_quantities, plain_characters, quantities
from rag_judge.text import fold, holds_point, words

_Key = tuple[str, Fraction]  # two figures with a key in common are equal, as far as a text can say

# --- figures ----------------------------------------------------------------------------------------------------------

_SECONDS: Mapping[str, int | Fraction] = {
    "week": 604_800,
    "day": 86_400,
    "hour": 3600,
    "minute": 60,
    "second": 1,
    "millisecond": Fraction(1, 1000),
}
_MONTHS = {"year": 12, "quarter": 3, "month": 1}  # a month has no fixed number of days
_BYTES = ("kb", "mb", "gb", "tb", "pb")
_BORDER_CHARS = 40  # read on either side of a border between contexts
_MOST_BORDERS = 20  # contexts that end, or begin, in the middle of a figure
_NUMBER_END = re.compile("[0-9〇零一二两三四五六七八九十百千万亿][.,]?$")


def unsupported_quantities(answer: str, contexts: Sequence[str], question: str = "") -> tuple[Quantity, ...]:
    """The figures of the answer that neither a context nor the question holds in an equal value, in order.

    Units are converted where that is exact (两周 = 14 days, half a year = 6 months); a bare number equals one with any
    unit; counters (个, 人, 次, "people") equal each other. 八折 equals 80 % and 20 %. A date equals one that states
    less or more of it. A figure cut by the border of two contexts is held if it shows when they are joined, whatever
    their ranks, since retrieval brings them in any order.
    """
    claimed = quantities(answer)
    if not claimed:
        return ()
    missing = _not_held(claimed, (held for text in (question, *contexts) for held in held_quantities(text)))
    return tuple(_not_held(missing, _over_borders(contexts))) if missing else ()


def _not_held(claimed: Sequence[Quantity], held: Iterable[Quantity]) -> list[Quantity]:
    known = {key for value, unit in {(q.value, q.unit) for q in held} for key in _held_keys(value, unit)}
    return [quantity for quantity in claimed if known.isdisjoint(_wanted_keys(quantity.value, quantity.unit))]


def _wanted_keys(value: Fraction, unit: str) -> set[_Key]:
    """The keys of which a context must hold one, to hold the figure."""
    if unit == "":
        return {("number", value)}
    if unit == DATE:
        year, month, day = _date_parts(value)
        keys = {("date", value)}
        if year and month:
            keys.add(("date without year", value % 10_000))
        elif year:
            keys.add(("bare", Fraction(year)))
        elif not day:
            keys.add(("months", Fraction(month)))  # 3 月 for 3 个月
        return keys
    if unit == TIME:
        return {(TIME, value), ("bare", value / 60)}
    if unit == "discount":
        return {(unit, value), ("percent", value), ("percent", 100 - value), ("bare", value), ("bare", value / 10)}
    return {*_unit_keys(value, unit), ("bare", value), *([("price", value)] if unit == "percent" else [])}


def _held_keys(value: Fraction, unit: str) -> set[_Key]:
    """The keys of what a context's figure can hold; "number" is for bare numbers, "bare" what only a bare one holds."""
    if unit == "":
        return {("number", value), ("bare", value)}
    if unit == DATE:
        year, month, day = _date_parts(value)
        stated = {value, value % 10_000, value - day, value - value % 10_000, Fraction(month * 100)} - {0}
        keys = {("date", part) for part in stated}
        keys |= {("number", Fraction(part)) for part in (year, month, day) if part}
        keys |= set() if year else {("date without year", part) for part in stated}
        return keys | (set(_unit_keys(Fraction(day), "day")) if day else set())
    if unit == TIME:
        return {(TIME, value), ("number", Fraction(value // 60))}
    if unit == "discount":
        return {(unit, value), ("price", value), ("price", 100 - value), ("number", value), ("number", value / 10)}
    return {*_unit_keys(value, unit), ("number", value)}


def _unit_keys(value: Fraction, unit: str) -> list[_Key]:
    if unit in _SECONDS:
        return [("seconds", value * _SECONDS[unit])]
    if unit in _MONTHS:
        return [("months", value * _MONTHS[unit])]
    if unit in _BYTES:  # a GB is 1000 MB or 1024, and no text says which
        power = _BYTES.index(unit)
        return [("kilobytes", value * 1000**power), ("kibibytes", value * 1024**power)]
    return [(unit, value)]


def _date_parts(value: Fraction) -> tuple[int, int, int]:
    return int(value) // 10_000, int(value) // 100 % 100, int(value) % 100


def _over_borders(contexts: Sequence[str]) -> Iterator[Quantity]:
    """The figures that begin in one context and end in another, after white space between them is removed."""
    stripped = [text.strip() for text in contexts]
    lefts = [(at, text[-_BORDER_CHARS:]) for at, text in enumerate(stripped) if _NUMBER_END.search(_end_of(text))]
    rights = [(at, text[:_BORDER_CHARS]) for at, text in enumerate(stripped) if text[:1].isalnum()]
    for left_at, left in lefts[:_MOST_BORDERS]:
        for right_at, right in rights[:_MOST_BORDERS]:
            if left_at != right_at:
                yield from (q for q in held_quantities(left + right) if q.start < len(left) < q.end)


def _end_of(text: str) -> str:
    return plain_characters(text[-2:])


# --- clauses: hints for people ----------------------------------------------------------------------------------------

ClauseKind = Literal["negation", "only", "exception", "condition", "at least", "at most"]

# Wordings in which a sign means something else stand first, without a group.
_CLAUSE_SIGNS: dict[ClauseKind, re.Pattern[str]] = {
    "negation": re.compile(
        r"不[仅但同久断管论止限光错妨少超多低高]|不过(?!期)|除非|未[来成必]|无[线论薪息锡非]|非[常洲]|没关系"
        r"|not only|no\.|no (?:less|fewer|more|later|longer) than"
        r"|(?P<sign>不|没有?|未|无|勿|莫|非|禁止|严禁|拒绝|\b(?:not|no|never|without|cannot|none|neither|nor)\b|n't\b)"
    ),
    "only": re.compile(r"不[仅只]|not only|(?P<sign>仅|只[有能限在对可看读给]?|唯一|\b(?:only|solely|exclusively)\b)"),
    "exception": re.compile(
        r"(?P<sign>除非|除了|除外|除[^法以]{1,20}?[外之]|例外|\b(?:unless|except(?:ion)?|excluding|other than)\b)"
    ),
    "condition": re.compile(
        r"(?P<sign>如果|若|假如|只要|一旦|前提|的话|须先|凭|\b(?:if|provided|when|once|subject to|as long as)\b)"
    ),
    "at least": re.compile(
        r"(?P<sign>至少|最少|最低|不[少低]于|不得[少低]于|(?<!不)(?<!不得)超[过出]|以上|起码|(?<![不得])[多大]于|满"
        r"|\b(?:at least|minimum|no (?:less|fewer) than|(?<!no )more than|over|above|exceed(?:s|ing)?)\b)"
    ),
    "at most": re.compile(
        r"(?P<sign>至多|最多|最高|最[晚迟长]|上限|封顶|不[超多高]过?于?|不得[超多高]|以[内下]|之内|(?<![不得])[少小]于|不[到足满]"
        r"|\b(?:at most|maximum|up to|no (?:more|later|longer) than|within|under|below|less than|fewer than)\b)"
    ),
}
_CLAUSE_END = re.compile(
    r"[。！？!?；;，\n]|,(?!\d)|[:：](?!\d)|\.(?=\s|$)|(?=但|然而)|(?<=\s)(?=(?:but|however|though)\b)"
)
_SHOWN_CHARS = 200
_MOST_CLAUSES = 50  # of one text, that hold the point


@dataclass(frozen=True, slots=True)
class ClauseHint:
    """A sign that stands beside a key point on one side only: reason to look, and no verdict."""

    kind: ClauseKind
    sign: str  # as it stands, in small letters
    stands_in: Literal["answer", "context"]
    answer_clause: str
    context_clause: str
    context: int  # its place among the contexts, from 0


def clause_hints(answer: str, contexts: Sequence[str], point: str) -> tuple[ClauseHint, ...]:
    """Where a negation or a condition stands in the point's clause in the answer and not in the context, or reversed.

    At most one hint a kind, with the context clause most like the answer's. Empty where the answer or every context
    lacks the point, or where any of their clauses agree.
    """
    said = _clauses_with(answer, point)
    held = [(at, clause) for at, text in enumerate(contexts) for clause in _clauses_with(text, point)][:_MOST_CLAUSES]
    if not said or not held:
        return ()
    spoken = set(words(said[0]))
    at, shown = max(held, key=lambda place: len(spoken.intersection(words(place[1]))))
    hints = []
    for kind in _CLAUSE_SIGNS:
        said_signs, held_signs = [_sign(kind, clause) for clause in said], [_sign(kind, clause) for _, clause in held]
        if {sign is None for sign in said_signs}.isdisjoint({sign is None for sign in held_signs}):
            sign = said_signs[0] or _sign(kind, shown) or ""
            side: Literal["answer", "context"] = "answer" if said_signs[0] else "context"
            hints.append(ClauseHint(kind, sign, side, said[0][:_SHOWN_CHARS], shown[:_SHOWN_CHARS], at))
    return tuple(hints)


def _clauses_with(text: str, point: str) -> list[str]:
    """The clauses of a text that hold a key point; its sentences, where the point goes over clauses."""
    folded = fold(point)
    if not folded:
        return []
    for parts in (_CLAUSE_END.split(text), sentences(text)):
        found = [part.strip() for part in parts if holds_point(fold(part), folded)]
        if found:
            return found[:_MOST_CLAUSES]
    return []


def _sign(kind: ClauseKind, clause: str) -> str | None:
    plain = plain_characters(clause).replace("’", "'")
    return next((found["sign"] for found in _CLAUSE_SIGNS[kind].finditer(plain) if found["sign"]), None)


# --- sentences --------------------------------------------------------------------------------------------------------

_STOP = re.compile(r"[。！？；｡]+|[.!?;]+|…+|[\r\n\v\f\x85\u2028\u2029]+")
_AFTER_STOP = re.compile(rf"(?:[\"'”’」』»)）\]*_]{{1,20}}|[ \t]{{0,3}}(?:{CITED}))*")
_NEVER_LAST = re.compile(  # before a full stop: an abbreviation that something follows, or the mark of a list
    r"(?:^|[^a-z.])(?:e\.g|i\.e|cf|vs|approx|figs?|dr|mrs?|ms|prof|dept|est|pp?|vol|ver|jan|feb|aug|sept?|oct|nov|dec)$"
    r"|(?:^|\n)[ \t]{0,20}(?:[-*•>#][ \t]{0,3}){0,3}\(?(?:\d{1,3}|[a-z])$"
)
_SELDOM_LAST = re.compile(r"(?:^|[^a-z.])(?:etc|inc|ltd|co|corp|al|[ap]\.m|u\.s)$")
_NUMBER_SIGN = re.compile(r"(?:^|[^a-z.])nos?$")
_FUNCTION_WORDS = frozenset(
    re.findall(
        "[a-z]+",
        "a an the is are was were be been do does did have has had can could may will would i you we they he she it "
        "its my your our their this that these those there to of in on at for from by with and or as not no when what "
        "where who which how if",
    )
)
_FUNCTION_CHARACTERS = frozenset("的了在是我你他她它们这那有没不能可以吗呢吧么和与或及也都就而则其之于为被把对从到等")


@dataclass(frozen=True, slots=True)
class SentenceSupport:
    """How much of a sentence stands in the one context that holds most of it: a hint, never a verdict."""

    sentence: str
    share: float | None  # of its content words (Chinese: pairs of characters), in [0, 1]; None: it has none
    context: int | None  # the context's place, from 0, the first of equal ones; None: no context holds a word of it


def sentences(text: str) -> list[str]:
    """The sentences of a text in order, each stripped and with a letter or digit in it.

    A line end always ends one. Quotes, brackets and citations after the stop stay with it.
    """
    plain = plain_characters(text)
    found = []
    start = at = 0
    while stop := _STOP.search(plain, at):
        at = end = stop.end()
        if not stop[0].isspace():
            after = _AFTER_STOP.match(plain, end)
            at = end = after.end() if after else end
            if not _ends(plain, text, stop, end):
                at = stop.end()
                continue
        found.append(text[start:end].strip())
        start = end
    found.append(text[start:].strip())
    return [sentence for sentence in found if any(char.isalnum() for char in sentence)]


def _ends(plain: str, text: str, stop: re.Match[str], end: int) -> bool:
    """Whether a stop ends its sentence; `end` is where its closing quotes and citations end."""
    mark = stop[0]
    following = text[end : end + 1]
    if mark[0] in "。！？；｡" or not following:
        return True
    if mark[0] == "…" or mark.startswith("..."):
        return following.isspace()
    before = plain[max(0, stop.start() - 30) : stop.start()]
    if not following.isspace() and not (following > "\u2e80" and not before[-1:].isdecimal()):
        return False
    then = text[end : end + 5].lstrip(" \t")[:1]
    if mark != "." or then in ("", "\n", "\r"):
        return True
    if _NUMBER_SIGN.search(before):
        return not then.isdecimal()
    return not _NEVER_LAST.search(before) and not (_SELDOM_LAST.search(before) and then.islower())


def sentence_support(answer: str, contexts: Sequence[str]) -> tuple[SentenceSupport, ...]:
    """Each sentence of the answer with the context that holds most of it. Citations and function words are left out."""
    known = [set(words(text)) for text in contexts]
    return tuple(_support(sentence, known) for sentence in sentences(answer))


def _support(sentence: str, known: Sequence[set[str]]) -> SentenceSupport:
    said = [word for word in words(re.sub(CITED, " ", plain_characters(sentence))) if not _is_function_word(word)]
    if not said:
        return SentenceSupport(sentence, None, None)
    counts = [sum(word in context for word in said) for context in known]
    best = max(counts, default=0)
    return SentenceSupport(sentence, best / len(said), counts.index(best) if best else None)


def _is_function_word(word: str) -> bool:
    return word in _FUNCTION_WORDS or all(char in _FUNCTION_CHARACTERS for char in word)
