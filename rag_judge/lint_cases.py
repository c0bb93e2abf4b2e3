"""What is weak or wrong in one case, seen by itself. What needs the other cases or the corpus is not looked at here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from rag_judge.cases import REFUSAL_TYPES
from rag_judge.lint_words import Noted
from rag_judge.records import Answer, Case
from rag_judge.refusals import abstention
from rag_judge.rules import leaked_ids
from rag_judge.text import fold, words

MOST_WORDS = 100  # of a question; Chinese characters count one each
_EDGES = ".,;:!?。、()[]\"'“”‘’-"
_ASKED = re.compile(r"[?？][?？!！]*(?=\s|$|[^\x00-\x7f]|[\"')\]])")
_INTERROGATIVE = re.compile(
    r"什么|怎么|如何|多少|多久|多长|多大|多远|多高|何时|为何|哪|谁|几[个天次年月日号点人种元成折份位周小分]|吗|是否|能不能|可不可以|有没有|会不会"
    r"|\b(?:what|which|who|whom|whose|when|where|why|how)\b"
    r"|\b(?:can|could|do|does|did|is|are|will|would|may|must|should)"
    r" (?:i|we|you|they|it|he|she|there|the|my|our|your)\b",
    re.IGNORECASE,
)
_CONNECTIVE = re.compile(
    r"以及|还有|另外|并且|同时|顺便|\band also\b|\bas well as\b|\balso,|\bplus\b"
    r"|\band (?=(?:what|which|who|when|where|why|how|can|do|does|is|are)\b)",
    re.IGNORECASE,
)
_BOTH = re.compile(r"\w+\s*$")  # "when and where" asks for one thing: nothing stands before the first word
_IDEOGRAPH = re.compile(r"[\u3400-\u9fff]")
_LATIN_WORD = re.compile(r"[^\W\d_]{2,}")
_PLAIN_WORD = re.compile(r"\b[a-z]{3,}\b")  # no unit, and no name


def check_case(case: Case) -> Iterator[Noted]:
    """Yield what is weak or wrong in the case by itself."""
    yield from _contradictions(case)
    yield from _vague(case)
    if forbidden := leaked_ids(case, Answer(case.id, citations=tuple(relevant_ids(case)))):
        yield Noted("forbidden-doc-is-relevant", "error", "forbidden", {"docs": forbidden})
    if states_nothing(case):
        yield Noted("no-expectation", "advice")
    elif is_in_scope(case) and not relevant_ids(case):
        yield Noted("relevant-doc-missing-field", "advice")
    if case.tenant is not None and not case.forbidden_docs:
        yield Noted("tenant-without-forbidden", "advice", values={"tenant": case.tenant})
    if asks_several(case.question):
        yield Noted("several-questions", "advice")
    if len(case.question) > MOST_WORDS:
        n_words = len(words(case.question))
        if n_words > MOST_WORDS:
            yield Noted("question-too-long", "advice", values={"n": n_words, "most": MOST_WORDS})


def is_in_scope(case: Case) -> bool:
    """True unless the right answer declines."""
    return case.expect_refusal is not True


def relevant_ids(case: Case) -> list[str]:
    """The documents with a grade above 0."""
    return [doc for doc, grade in case.relevant_docs.items() if grade > 0]


def states_nothing(case: Case) -> bool:
    """True when neither a rule, nor retrieval, nor a judge is told anything of the right answer."""
    stated = (case.must_include, case.acceptable, case.must_not_include, case.forbidden_docs, case.relevant_docs)
    return not any(stated) and case.expect_refusal is None and case.reference is None


def expects_refusal(case: Case) -> bool | None:
    """Whether a refusal is expected; None where the case leaves it open."""
    if case.expect_refusal is None and (case.must_include or relevant_ids(case)):
        return False
    return case.expect_refusal


def is_short(wording: str) -> bool:
    """True for a single character, punctuation at its ends aside."""
    return len(fold(wording).strip(_EDGES)) <= 1


def asks_several(question: str) -> bool:
    """True for a second question mark, or an interrogative on either side of a connective ("and also", 以及)."""
    if len(_ASKED.findall(question)) > 1:
        return True
    for joint in _CONNECTIVE.finditer(question):
        before, after = question[: joint.start()], question[joint.end() :]
        is_pair = _BOTH.match(before.strip()) is not None and before.isascii()
        if not is_pair and _INTERROGATIVE.search(before) and _INTERROGATIVE.search(after):
            return True
    return False


def key_points(case: Case) -> list[str]:
    """Every wording of every entry of must_include."""
    return [point for alternatives in case.must_include for point in alternatives]


def is_in_other_language(case: Case, chunk_texts: Sequence[str]) -> bool:
    """True when question and key points are in different languages, every point and every relevant chunk.

    To a Chinese question without chunks, only a point with two plain words is English: "5 GB" is of any language.
    """
    asked = _language(case.question)
    wordings = [*key_points(case), *(case.acceptable if is_in_scope(case) else ())]
    if asked == "zh" and not chunk_texts:
        wordings = [wording for wording in wordings if _is_worded(wording)]
    said = {_language(wording) for wording in wordings} - {None}
    if asked is None or not said or asked in said:
        return False
    return asked not in {_language(text) for text in chunk_texts}


def _language(text: str) -> Literal["zh", "other"] | None:
    n_ideographs = len(_IDEOGRAPH.findall(text))
    n_words = len(_LATIN_WORD.findall(_IDEOGRAPH.sub(" ", text)))
    if n_ideographs == n_words == 0:
        return None
    return "zh" if n_ideographs >= n_words else "other"


def _is_worded(wording: str) -> bool:
    return _IDEOGRAPH.search(wording) is not None or len(_PLAIN_WORD.findall(wording)) > 1


def _contradictions(case: Case) -> Iterator[Noted]:
    stated = [
        name for name, value in (("must_include", case.must_include), ("relevant_docs", relevant_ids(case))) if value
    ]
    if case.expect_refusal and stated:
        yield _contradiction("refusal", stated=" + ".join(stated))
    says_otherwise = (case.type in REFUSAL_TYPES and case.expect_refusal is False) or (
        case.type == "in_scope" and case.expect_refusal is True
    )
    if says_otherwise:
        yield _contradiction("type", type=case.type, flag=str(case.expect_refusal).lower())
    forbidden = [fold(wording) for wording in case.must_not_include]
    for fault, wordings in (("points", key_points(case)), ("acceptable", case.acceptable)):
        both = [wording for wording in wordings if any(part in fold(wording) for part in forbidden)]
        if both:
            yield _contradiction(fault, wordings=tuple(both))


def _contradiction(fault: str, **values: object) -> Noted:
    return Noted("contradictory-expectation", "error", fault, values)


def _vague(case: Case) -> Iterator[Noted]:
    if short := tuple(point for point in key_points(case) if is_short(point)):
        yield Noted("vague-point", "advice", "short", {"wordings": short})
    if not is_in_scope(case):
        return
    if short := tuple(wording for wording in case.acceptable if is_short(wording)):
        yield Noted("vague-acceptable", "advice", "short", {"wordings": short})
    if declining := tuple(wording for wording in case.acceptable if abstention(wording).did_abstain):
        yield Noted("vague-acceptable", "error", "refusal", {"wordings": declining})
