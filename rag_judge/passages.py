"""A failed case as its attribution looks at it: where its key points stand, and what the answer made of the contexts.

Only looked up and compared here; which cause that shows is for `attribution` to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import pairwise

from rag_judge.claims import unsupported_quantities
from rag_judge.corpus import Corpus
from rag_judge.quantities import Quantity
from rag_judge.records import Answer, Case, Decision, RetrievalScores, RuleChecks
from rag_judge.retrieval import MatchLevel, at_level
from rag_judge.text import fold, holds_point, words

WELL_SUPPORTED = 0.8  # share of an answer's words found in its contexts, from which a judge alone shows no invention
NEARLY_THE_SAME = 0.85  # likeness of an answer to a passage, from which it is that passage, altered
LONGEST_COMPARED = 2_000  # characters; comparing takes their product
_CITATION = re.compile(r"\[[^\[\]]{1,200}\]")


@dataclass(frozen=True, slots=True)
class Failed:
    """All that is known of a failed case."""

    case: Case
    answer: Answer
    retrieval: RetrievalScores | None
    rules: RuleChecks
    decision: Decision | None
    judges_disagree: bool | None = None
    corpus: Corpus | None = None
    match: MatchLevel = "exact"


@dataclass(frozen=True, slots=True)
class Passage:
    """One context at its rank, with what the case and the answer make of it."""

    rank: int
    id: str
    text: str
    folded: str
    words: frozenset[str]
    is_relevant: bool
    is_cited: bool
    is_sent: bool | None  # by `sent_contexts`; None: the answer does not say


@dataclass(slots=True)
class Seen:
    """The key points of a case, and where they stand."""

    failed: Failed
    folded_answer: str = field(init=False)
    passages: list[Passage] = field(init=False)
    missing: list[tuple[str, ...]] = field(init=False)  # key points that the answer does not state, each any-of
    n_stated: int = field(init=False)
    prompt: str | None = field(init=False)  # folded
    said: str = field(init=False)  # the answer without its citations
    figures: tuple[Quantity, ...] = field(init=False)  # of the answer, in no context

    def __post_init__(self) -> None:
        case, answer = self.failed.case, self.failed.answer
        self.folded_answer = fold(answer.answer or "")
        self.passages = list(_passages(case, answer, self.failed.match))
        points = list(case.must_include)
        if case.acceptable and not case.expect_refusal:
            points.append(case.acceptable)
        self.missing = [point for point in points if not states(self.folded_answer, point)]
        self.n_stated = len(points) - len(self.missing)
        self.prompt = None if answer.prompt is None else fold(answer.prompt)
        if self.failed.match == "document":
            self.passages = _holding_ones(self.passages, points)
        texts = [passage.text for passage in self.passages]
        self.said = _CITATION.sub(" ", answer.answer or "")
        self.figures = unsupported_quantities(self.said, texts, question=case.question) if texts else ()

    def holders(self, point: Sequence[str]) -> list[Passage]:
        """The contexts that hold a key point by themselves."""
        return [passage for passage in self.passages if states(passage.folded, point)]

    def reached(self, passage: Passage, point: Sequence[str]) -> bool:
        """False when a passage's key point is known not to have been in the prompt."""
        return passage.is_sent is not False and (self.prompt is None or states(self.prompt, point))

    @property
    def is_supported(self) -> bool:
        """True when nearly all that the answer says stands in its contexts, figures included."""
        known = frozenset(word for passage in self.passages for word in passage.words)
        said = words(self.said)
        return bool(said) and not self.figures and sum(w in known for w in said) / len(said) >= WELL_SUPPORTED

    @property
    def breaks_a_rule(self) -> bool:
        """True when the answer lacks a key point or says what it must not."""
        return bool(self.missing or self.failed.rules.forbidden_found)


def _passages(case: Case, answer: Answer, match: MatchLevel) -> Iterator[Passage]:
    """The contexts whose text is known."""
    relevant = {at_level(doc, match) for doc, grade in case.relevant_docs.items() if grade > 0}
    sent = None if answer.sent_contexts is None else set(answer.sent_contexts)
    for rank, context in enumerate(answer.contexts or (), 1):
        if context.text is None:
            continue
        folded = fold(context.text)
        yield Passage(
            rank,
            context.id or f"context {rank}",
            context.text,
            folded,
            frozenset(words(context.text)),
            context.id is not None and at_level(context.id, match) in relevant,
            context.id in (answer.citations or ()),
            None if sent is None else context.id in sent,
        )


def _holding_ones(passages: Sequence[Passage], points: Sequence[Sequence[str]]) -> list[Passage]:
    """The passages, of a whole relevant document only those being relevant that hold what is asked, if any does."""
    named = [passage for passage in passages if passage.is_relevant]
    holding = [passage.rank for passage in named if any(states(passage.folded, point) for point in points)]
    return [replace(p, is_relevant=p.rank in holding) if holding else p for p in passages]


def states(folded_text: str, alternatives: Sequence[str]) -> bool:
    """True when a folded text holds one of the wordings of a key point."""
    return any(holds_point(folded_text, fold(wording)) for wording in alternatives)


def quoted(points: Sequence[Sequence[str]]) -> str:
    """Key points as evidence names them."""
    return ", ".join(f"“{point[0]}”" for point in points)


def named(passages: Sequence[Passage]) -> str:
    """Passages as evidence names them."""
    return ", ".join(f"{passage.id} (rank {passage.rank})" for passage in passages)


def similarity(one: Passage, other: Passage) -> float:
    """The share of words that two passages have in common, in [0, 1]."""
    union = one.words | other.words
    return len(one.words & other.words) / len(union) if union else 0.0


def document_of(passage: Passage) -> str:
    """The document of a passage: what stands before the first # of its id."""
    return passage.id.partition("#")[0] if "#" in passage.id else passage.id


def is_used(passage: Passage, seen: Seen) -> bool:
    """Whether the answer cites a passage or repeats it."""
    return passage.is_cited or (bool(passage.folded) and passage.folded in seen.folded_answer)


def is_altered(seen: Seen) -> bool:
    """Whether the answer says a figure that no context holds, or repeats a passage but for a few characters."""
    if seen.figures:
        return True
    said = fold(seen.said)
    if any(passage.folded and passage.folded in said for passage in seen.passages):
        return False  # it repeats another passage, which may be alike
    holders = {passage.folded for point in seen.missing for passage in seen.holders(point)}
    return len(said) <= LONGEST_COMPARED and any(
        SequenceMatcher(None, held, said, autojunk=False).ratio() >= NEARLY_THE_SAME
        for held in holders
        if len(held) <= LONGEST_COMPARED
    )


def sent_reversed(failed: Failed, seen: Seen, point: Sequence[str]) -> tuple[str, str] | None:
    """Two neighbours, as sent, that hold a key point only the other way round."""
    ranked = {passage.id: passage for passage in seen.passages}
    for one, other in pairwise(doc for doc in failed.answer.sent_contexts or () if doc in ranked):
        of_one = document_of(ranked[one]) == document_of(ranked[other])
        if of_one and states(ranked[other].folded + ranked[one].folded, point):
            return one, other
    return None
