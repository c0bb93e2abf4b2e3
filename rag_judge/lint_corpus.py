"""What is weak or wrong in a case, held against the knowledge base. Cases are not compared with each other here."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from rag_judge.corpus import Corpus
from rag_judge.lint_cases import is_in_scope, relevant_ids
from rag_judge.lint_words import Noted, Severity
from rag_judge.records import Answer, Case, Context
from rag_judge.rules import leaked_ids
from rag_judge.text import fold, holds_point, words

COPIED = 0.6  # share of a question's runs of three words that stand in a chunk's text, from which it is copied
FEWEST_RUNS = 4  # of a question that can be called copied
SAME_HEADING = 0.8  # share of the words of question and heading that are in both, from which they are the same
FEWEST_WORDS = 3  # of a heading that can be called copied
N_NAMED = 3  # chunks
_HEADING_PARTS = re.compile(r"\s*[>/|»›·]\s*")
_FUNCTION_WORDS = re.compile(
    r"请问|什么|怎么样?|如何|多少|多久|几|哪[个些里]?|吗|呢|吧|啊|了|的|是|[?？]"
    r"|\b(?:what|which|who|when|where|why|how|is|are|was|were|do|does|did|can|could|the|an?|of|for|to|in|on|at|and|or"
    r"|please|i|we|you|my|our|your|there|much|many|long)\b",
    re.IGNORECASE,
)


class CorpusChecks:
    """The checks of cases against one corpus; what many cases ask of it is worked out once."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._ids = sorted(chunk.id for chunk in corpus)
        self._matched: dict[str, bool] = {}
        self._running_texts: dict[str, str] = {}

    def check(self, case: Case) -> Iterator[Noted]:
        """Yield what is weak or wrong in the case, held against the corpus."""
        relevant = relevant_ids(case)
        chunks = self.relevant_chunks(case)
        absent = tuple(doc for doc in relevant if not self._corpus.chunks_of(doc))
        if absent:
            yield Noted("relevant-doc-not-in-corpus", "error", values={"docs": absent})
        yield from self._forbidden(case, chunks)
        if not is_in_scope(case):
            return
        if chunks and not absent:
            yield from self._points(case, chunks)
        yield from self._copied(case, chunks)

    def relevant_chunks(self, case: Case) -> list[str]:
        """The ids of the relevant chunks that the corpus has; a document stands for all of its chunks."""
        return [chunk for doc in relevant_ids(case) for chunk in self._corpus.chunks_of(doc)]

    # --- documents that must not be seen -------------------------------------------------------------------------

    def _forbidden(self, case: Case, chunks: Sequence[str]) -> Iterator[Noted]:
        unmatched = tuple(pattern for pattern in case.forbidden_docs if not self._matches_any(pattern))
        if unmatched:
            yield Noted("forbidden-doc-matches-nothing", "advice", values={"docs": unmatched})
        if leaked_ids(case, Answer(case.id, citations=tuple(relevant_ids(case)))):
            return  # seen in the case by itself
        forbidden = leaked_ids(case, Answer(case.id, citations=tuple(chunks)))
        if forbidden:
            yield Noted("forbidden-doc-is-relevant", "error", "forbidden", {"docs": forbidden[:N_NAMED]})
            return
        contexts = tuple(Context(chunk, None, tenant=self._corpus.get(chunk).tenant) for chunk in chunks)
        if foreign := leaked_ids(case, Answer(case.id, contexts=contexts)):
            yield Noted("forbidden-doc-is-relevant", "error", "tenant", {"docs": foreign[:N_NAMED]})

    def _matches_any(self, pattern: str) -> bool:
        """Whether a pattern of forbidden_docs matches an id, as the leak check would match it."""
        if pattern not in self._matched:
            plain = re.split(r"[*?]", pattern, maxsplit=1)[0]
            asked = Case("", "", forbidden_docs=(pattern,))
            self._matched[pattern] = any(
                leaked_ids(asked, Answer("", citations=(chunk,))) for chunk in self._ids_from(plain)
            )
        return self._matched[pattern]

    def _ids_from(self, start: str) -> Iterator[str]:
        """The ids that begin so."""
        for at in range(bisect_left(self._ids, start), len(self._ids)):
            if not self._ids[at].startswith(start):
                return
            yield self._ids[at]

    # --- where the key points stand ------------------------------------------------------------------------------

    def _points(self, case: Case, chunks: Sequence[str]) -> Iterator[Noted]:
        for point in case.must_include:
            yield from self._point(point, chunks, is_needed=True)
        if case.acceptable:
            yield from self._point(case.acceptable, chunks, is_needed=False)

    def _point(self, wordings: Sequence[str], chunks: Sequence[str], *, is_needed: bool) -> Iterator[Noted]:
        """What is to be said of a key point with its wordings; one that need not be said word for word is advice."""
        corpus, folded = self._corpus, [fold(wording) for wording in wordings]
        texts = [corpus.folded_text_of(chunk) for chunk in chunks]
        if any(holds_point(text, point) for point in folded for text in texts):
            return
        borders = [
            (wording, pair)
            for wording, point in zip(wordings, folded, strict=True)
            for pair in corpus.holding_across(point)
        ]
        for wording, pair in borders:
            if not set(pair).isdisjoint(chunks):
                yield Noted("key-point-split", "advice", values={"wordings": (wording,), "chunks": pair})
                return
        holders = [chunk for point in folded for chunk in corpus.holding(point)] + [pair[0] for _, pair in borders]
        documents = {_document(chunk) for chunk in chunks}
        beside = [chunk for chunk in holders if _document(chunk) in documents]
        named = {
            "wordings": tuple(wordings[:N_NAMED]),
            "chunks": tuple(dict.fromkeys(beside or holders))[:N_NAMED],
        }
        severity: Severity = "error" if is_needed else "advice"
        if beside or not holders:
            yield Noted("key-point-not-in-relevant", severity, "beside" if beside else "nowhere", named)
        else:
            yield Noted("stale-gold", severity, values=named)

    # --- questions taken from the documents ----------------------------------------------------------------------

    def _copied(self, case: Case, chunks: Sequence[str]) -> Iterator[Noted]:
        headings = {chunk: heading for chunk in chunks if (heading := self._corpus.get(chunk).heading)}
        asked = _content(case.question) if headings else set()
        headed = [chunk for chunk, heading in headings.items() if _is_heading(asked, heading)]
        if headed:
            yield Noted("question-copied-from-heading", "advice", values={"chunks": tuple(headed[:N_NAMED])})
        said = words(case.question)
        runs = {_running(said[at : at + 3]) for at in range(len(said) - 2)}
        if len(runs) < FEWEST_RUNS:
            return
        least = COPIED * len(runs)
        copied = [chunk for chunk in chunks if _n_held(runs, self._running_text(chunk)) >= least]
        if copied:
            yield Noted("question-copied-from-text", "advice", values={"chunks": tuple(copied[:N_NAMED])})

    def _running_text(self, chunk: str) -> str:
        if chunk not in self._running_texts:
            self._running_texts[chunk] = _running(words(self._corpus.text_of(chunk)))
        return self._running_texts[chunk]


def _document(chunk_id: str) -> str:
    return chunk_id.partition("#")[0]


def _running(some_words: Sequence[str]) -> str:
    return f" {' '.join(some_words)} "


def _n_held(runs: set[str], running_text: str) -> int:
    return sum(run in running_text for run in runs)


def _content(text: str) -> set[str]:
    return set(words(_FUNCTION_WORDS.sub(" ", text)))


def _is_heading(asked: set[str], heading: str) -> bool:
    """Whether the content words of a question are those of a heading, or of one part of its path."""
    for part in (heading, *_HEADING_PARTS.split(heading)):
        named = _content(part)
        both = len(asked & named)
        if len(named) >= FEWEST_WORDS and both >= SAME_HEADING * len(asked | named):
            return True
    return False
