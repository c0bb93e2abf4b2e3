"""What can be said of an answer without any model: key points, wording, refusal, citations, leaks.

Everything here is a lookup in text or ids; nothing here asks a judge, and nothing here is a mean over cases.
"""

from __future__ import annotations

from collections.abc import Sequence

from rag_judge.records import Abstention, Answer, Case, RuleChecks
from rag_judge.refusals import abstention
from rag_judge.text import fold, holds_point, in_one_or_two, words


def check(case: Case, answer: Answer) -> RuleChecks:
    """What the rules say of an answer that was given (it may hold contexts alone: then only leaks are checked).

    `rule_correct` is true when everything the case states holds, false when anything does not, and None when the
    case states nothing or the answer has no text to hold it against.
    """
    leaked = leaked_ids(case, answer)
    declined = _abstention(case, answer)
    folded_answer = None if answer.answer is None else fold(answer.answer)
    missing = _missing_points(case, folded_answer)
    unsupported = _unsupported_points(case, answer, folded_answer)
    forbidden = () if folded_answer is None else tuple(p for p in case.must_not_include if fold(p) in folded_answer)
    text_given = folded_answer is not None
    must_include_ok = not missing if case.must_include and text_given else None
    must_not_include_ok = not forbidden if case.must_not_include and text_given else None
    acceptable_ok = _acceptable_ok(case, folded_answer)
    faithful = None if unsupported is None else not unsupported
    refusal_ok = (
        None if declined is None or case.expect_refusal is None else declined.did_abstain == case.expect_refusal
    )
    no_leak = False if leaked else (True if case.forbidden_docs and text_given else None)
    return RuleChecks(
        rule_correct=_all_of(must_include_ok, acceptable_ok, must_not_include_ok, faithful, refusal_ok, no_leak),
        must_include_ok=must_include_ok,
        acceptable_ok=acceptable_ok,
        must_not_include_ok=must_not_include_ok,
        faithful=faithful,
        lexical_support=lexical_support(answer),
        did_abstain=None if declined is None else declined.did_abstain,
        refused_then_answered=None if declined is None else declined.refused_then_answered,
        refusal_conflict=declined is not None and answer.refused is not None and answer.refused != declined.did_abstain,
        leak=bool(leaked),
        leak_checked=(bool(case.forbidden_docs) or case.tenant is not None) and _shows_documents(answer),
        leaked_ids=leaked,
        missing_points=missing,
        unsupported_points=unsupported or (),
        forbidden_found=forbidden,
        n_citations=len(set(answer.citations or ())) if _citations_can_be_checked(answer) else None,
        dangling_citations=dangling_citations(answer),
    )


def refusal_wordings(case: Case) -> tuple[str, ...]:
    """The case's own refusal wordings: its refusal_phrases, and `acceptable` where a refusal is expected."""
    return case.refusal_phrases + (case.acceptable if case.expect_refusal else ())


def leaked_ids(case: Case, answer: Answer) -> tuple[str, ...]:
    """Ids of what the answer must not have seen: forbidden contexts and citations, contexts of another tenant.

    A context without tenant is shared; a case without tenant has no tenant check. A leaked context without an id
    is named by its rank.
    """
    found = []
    for rank, context in enumerate(answer.contexts or (), 1):
        other_tenant = None not in (context.tenant, case.tenant) and context.tenant != case.tenant
        forbidden = context.id is not None and _matches_any(context.id, case.forbidden_docs)
        if other_tenant or forbidden:
            found.append(context.id if context.id is not None else f"context {rank}")
    found += [doc for doc in answer.citations or () if _matches_any(doc, case.forbidden_docs)]
    return tuple(dict.fromkeys(found))


def dangling_citations(answer: Answer) -> tuple[str, ...]:
    """Citations that point at nothing retrieved, each once. Empty where they cannot be checked."""
    if not _citations_can_be_checked(answer):
        return ()
    retrieved = {context.id for context in answer.contexts or ()}
    return tuple(doc for doc in dict.fromkeys(answer.citations or ()) if doc not in retrieved)


def lexical_support(answer: Answer) -> float | None:
    """Share of the answer's words (Chinese: character pairs) that stand in its contexts, in [0, 1].

    A hint for people, never a verdict: a copied sentence with one number changed scores high. None where the
    answer has no words or the contexts no text.
    """
    texts = _context_texts(answer)
    said = words(answer.answer or "")
    if texts is None or not said:
        return None
    known = {word for text in texts for word in words(text)}
    return sum(word in known for word in said) / len(said)


def _citations_can_be_checked(answer: Answer) -> bool:
    """Citations need contexts with ids to be held against."""
    contexts = answer.contexts
    return answer.citations is not None and contexts is not None and all(c.id is not None for c in contexts)


def _shows_documents(answer: Answer) -> bool:
    return answer.contexts is not None or answer.citations is not None


def _all_of(*checks: bool | None) -> bool | None:
    stated = [ok for ok in checks if ok is not None]
    return all(stated) if stated else None


def _abstention(case: Case, answer: Answer) -> Abstention | None:
    if answer.answer is None:
        return None
    return abstention(answer.answer, refusal_wordings(case))


def _acceptable_ok(case: Case, folded_answer: str | None) -> bool | None:
    """Whether one acceptable wording stands in the answer; on an out-of-scope case they are refusal wordings."""
    if not case.acceptable or case.expect_refusal or folded_answer is None:
        return None
    return any(holds_point(folded_answer, fold(wording)) for wording in case.acceptable)


def _missing_points(case: Case, folded_answer: str | None) -> tuple[str, ...]:
    """The entries of must_include of which no alternative stands in the answer, each by its first wording."""
    if folded_answer is None:
        return ()
    return tuple(
        alternatives[0]
        for alternatives in case.must_include
        if not any(holds_point(folded_answer, fold(point)) for point in alternatives)
    )


def _unsupported_points(case: Case, answer: Answer, folded_answer: str | None) -> tuple[str, ...] | None:
    """Key points that the answer states and no context holds; None when it states none or there is no context text."""
    texts = _context_texts(answer)
    if folded_answer is None or texts is None:
        return None
    points = [point for alternatives in case.must_include for point in alternatives]
    stated = [point for point in points if holds_point(folded_answer, fold(point))]
    if not stated:
        return None
    folded_texts = [fold(text) for text in texts]
    return tuple(point for point in stated if not in_one_or_two(folded_texts, fold(point)))


def _context_texts(answer: Answer) -> list[str] | None:
    """The texts of the contexts in rank order; None where the field or any text is missing."""
    if answer.contexts is None:
        return None
    texts = [context.text for context in answer.contexts if context.text is not None]
    return texts if len(texts) == len(answer.contexts) else None


def _matches_any(doc_id: str, patterns: Sequence[str]) -> bool:
    return any(_matches(pattern, doc_id) for pattern in patterns)


def _matches(pattern: str, doc_id: str) -> bool:
    """`*` and `?` alone are wild; case matters, and `[` is an ordinary character (so not `fnmatch`).

    Walked from left to right with one step back to the last star: a pattern of many stars costs no more than its
    length times the id's, where a regular expression would try every way of sharing the id among them.
    """
    at, place, star, mark = 0, 0, -1, 0
    while place < len(doc_id):
        if at < len(pattern) and pattern[at] == "*":
            star, mark = at, place
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", doc_id[place]):
            at += 1
            place += 1
        elif star >= 0:
            mark += 1
            at, place = star + 1, mark
        else:
            return False
    return not pattern[at:].strip("*")
