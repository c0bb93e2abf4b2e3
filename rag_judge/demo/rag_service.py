"""A small RAG program over a folder of chunks, and its HTTP service: something real to grade, without key or network.

Here: reading the chunks, BM25 retrieval, an extractive answer, `POST /ask`. Not here: anything that grades, and any
knowledge of the questions that will be asked. Version v1 has the usual weaknesses on purpose: every tenant's chunks
are searched, every question is answered, headings are ignored. v2 has the three remedies. They differ in settings only.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_judge.errors import InputError

if TYPE_CHECKING:
    from aiohttp import web

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything in which two versions of the service may differ."""

    version: str
    prompt_version: str
    k: int
    heading_weight: int = 0  # how often heading, keywords and example questions are indexed beside the text
    tenant_filter: bool = False  # search only what is shared or belongs to the asking tenant
    min_match: float = 0.0  # refuse where no passage matches the question as well (see `_Index.match`); 0: never
    second_share: float = 0.8  # a second passage is quoted if its score is at least this share of the best one's


V1 = Settings(version="v1", prompt_version="extract-1", k=5)
# min_match was chosen on 100 other questions (60 that the knowledge base answers, 40 that it does not) as the lowest
# at which at least 19 of 20 of the latter are refused, before any question of the example was tried with it.
V2 = Settings("v2", prompt_version="extract-2", k=8, heading_weight=1, tenant_filter=True, min_match=9.3)
VERSIONS: Mapping[str, Settings] = {settings.version: settings for settings in (V1, V2)}


# --- the knowledge base ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chunk:
    """One passage of the knowledge base; a tenant of None means that everyone may read it."""

    id: str
    text: str
    heading: str
    tenant: str | None
    search_words: tuple[str, ...] = ()  # keywords, and questions that it answers, as its authors noted them


def load_chunks(folder: Path) -> list[Chunk]:
    """Every chunk of the folder's `*.jsonl`, by file name and then in file order.

    Raises: InputError for an unreadable folder or line, a missing field, a repeated id, or no chunk at all.
    """
    chunks: dict[str, Chunk] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
            if not line.strip():
                continue
            chunk = _read_chunk(line, f"{path}:{number}")
            if chunk.id in chunks:
                raise InputError(
                    f"{path}:{number}: the id {chunk.id!r} stands twice; every chunk needs an id of its own"
                )
            chunks[chunk.id] = chunk
    if not chunks:
        raise InputError(f"{folder}: found no chunk; expected *.jsonl files with one chunk a line")
    return list(chunks.values())


def _read_chunk(line: bytes, where: str) -> Chunk:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not a line of JSON in UTF-8 ({error})") from error
    if not isinstance(row, dict):
        raise InputError(f"{where}: found {type(row).__name__}, expected an object with id, text, heading and tenant")
    for name in ("id", "text"):
        if not isinstance(row.get(name), str) or not row[name].strip():
            raise InputError(f"{where}: {name} is {row.get(name)!r}, expected text that is not empty")
    heading, tenant = row.get("heading", ""), row.get("tenant")
    if not isinstance(heading, str):
        raise InputError(f"{where}: heading is {heading!r}, expected text")
    if tenant is not None and (not isinstance(tenant, str) or not tenant):
        raise InputError(f"{where}: tenant is {tenant!r}, expected a name, or null for a shared chunk")
    search_words: list[str] = []
    for name in ("keywords", "questions"):
        words = row.get(name, [])
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise InputError(f"{where}: {name} is {words!r}, expected a list of texts")
        search_words += words
    return Chunk(row["id"], row["text"], heading, tenant, tuple(search_words))


def corpus_version(chunks: Sequence[Chunk]) -> str:
    """Twelve hex digits that change with any change of the chunks or of their order."""
    content = json.dumps([asdict(chunk) for chunk in chunks])
    return hashlib.sha256(content.encode("ascii")).hexdigest()[:12]


# --- words ---------------------------------------------------------------------------------------------------------

_RUN = re.compile(r"[\u3400-\u9fff]+|[^\W_\u3400-\u9fff]+")
_CHINESE = re.compile(r"[\u3400-\u9fff]")

_FUNCTION_CHARACTERS = (
    "的了在是我你他们这那有没不能可以吗呢吧么什怎谁哪几多少一个还就都也要会到用和与来去把被给上下里该最再对从"
)
_ENGLISH_FUNCTION_WORDS = """
    a an the is are was be do does did have has can could may will i you we they me my your our their it this that there
    to of in on at for from by with and or as not what when where who which why how much many
"""
_FUNCTION_WORDS = {*_FUNCTION_CHARACTERS, *_ENGLISH_FUNCTION_WORDS.split()}


def tokenise(text: str) -> list[str]:
    """The text's terms: words and numbers in lower case; of Chinese every character and every pair of neighbours."""
    terms: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _CHINESE.match(run):
            terms.extend(run)
            terms.extend(run[i : i + 2] for i in range(len(run) - 1))
        else:
            terms.append(run)
    return terms


def content_terms(text: str) -> set[str]:
    """The terms of the text that are no mere function words, nor made of their characters alone."""
    return {
        term
        for term in tokenise(text)
        if term not in _FUNCTION_WORDS and not all(character in _FUNCTION_CHARACTERS for character in term)
    }


# --- retrieval -----------------------------------------------------------------------------------------------------


class _Index:
    """BM25 over the chunks that one reader may see; the weight of a term counts only these."""

    def __init__(self, chunks: Sequence[Chunk], heading_weight: int) -> None:
        import bm25s

        self.chunks = tuple(chunks)
        texts = [
            tokenise(chunk.text) + heading_weight * tokenise(" ".join((chunk.heading, *chunk.search_words)))
            for chunk in self.chunks
        ]
        self._terms = [frozenset(terms) for terms in texts]
        self._n_holding = Counter(term for terms in self._terms for term in terms)
        self._bm25 = None
        # The library divides by the mean length: without a single term it has nothing to index.
        if self._n_holding:
            self._bm25 = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
            self._bm25.index(texts, show_progress=False)

    def weight(self, term: str) -> float:
        """The inverse document frequency of the term, above 0; highest for a term that no chunk holds."""
        n_holding = self._n_holding[term]
        return math.log1p((len(self.chunks) - n_holding + 0.5) / (n_holding + 0.5))

    def search(self, question: str, k: int) -> list[tuple[int, float]]:
        """The k best chunks as (position, score), best first, ties in the order of the corpus; fewer if there are."""
        terms = tokenise(question)
        scores = [0.0] * len(self.chunks)
        # The library fails on a question without terms, and its own selection leaves ties in no order.
        if terms and self._bm25 is not None:
            scores = self._bm25.get_scores(terms).tolist()
        order = sorted(range(len(scores)), key=lambda position: -scores[position])
        return [(position, round(scores[position], 4)) for position in order[:k]]

    def match(self, question: str, found: Sequence[tuple[int, float]]) -> float:
        """How well the question is met: the best score, times the most of its weighted content that one passage holds.

        The score alone grows with the length of the question, the share alone forgives a few common words.
        """
        weights = {term: self.weight(term) for term in sorted(content_terms(question))}
        total = sum(weights.values())
        if not total or not found:
            return 0.0
        held = (sum(w for term, w in weights.items() if term in self._terms[position]) for position, _ in found)
        return found[0][1] * max(held) / total


# --- the answer ----------------------------------------------------------------------------------------------------

REFUSAL_ZH = "知识库中没有相关信息，无法回答这个问题。"
REFUSAL_EN = "The knowledge base holds no information on this, so I cannot answer."


class Assistant:
    """Answers questions from the chunks by quoting them; the same question always gets the same answer."""

    def __init__(self, chunks: Sequence[Chunk], settings: Settings = V1) -> None:
        self.settings = settings
        readers: set[str | None] = {None}
        if settings.tenant_filter:
            readers |= {chunk.tenant for chunk in chunks}
        self._indexes = {reader: _Index(self._readable(chunks, reader), settings.heading_weight) for reader in readers}
        self._meta = {
            "version": settings.version,
            "prompt_version": settings.prompt_version,
            "model": "extractive",
            "embedding": "bm25 lucene k1=1.5 b=0.75",
            "chunking": "passage",
            "k": settings.k,
            "heading_weight": settings.heading_weight,
            "tenant_filter": settings.tenant_filter,
            "min_match": settings.min_match,
            "corpus_version": corpus_version(chunks),
        }

    def _readable(self, chunks: Sequence[Chunk], reader: str | None) -> list[Chunk]:
        return [chunk for chunk in chunks if not self.settings.tenant_filter or chunk.tenant in (None, reader)]

    def answer(self, question: str, tenant: str | None = None, history: Sequence[Any] = ()) -> dict[str, Any]:
        """The answer with its contexts in rank order, as the service returns it.

        A tenant without chunks reads what is shared. `history` is taken and not used: each question is searched alone.
        """
        index = self._indexes.get(tenant, self._indexes[None])
        found = index.search(question, self.settings.k)
        if not found or index.match(question, found) < self.settings.min_match:
            text, citations = (REFUSAL_ZH if _CHINESE.search(question) else REFUSAL_EN), []
        else:
            quoted = [index.chunks[position] for position in self._quoted(found)]
            text = " ".join(f"{chunk.text} [{chunk.id}]" for chunk in quoted)
            citations = [chunk.id for chunk in quoted]
        return {
            "answer": text,
            "contexts": [_context(index.chunks[position], score) for position, score in found],
            "citations": citations,
            "refused": not citations,
            "meta": dict(self._meta),
        }

    def answer_from(self, given: Sequence[Chunk]) -> dict[str, Any]:
        """The answer made of given passages, without a search: as from its own, the first two are quoted."""
        text = " ".join(f"{chunk.text} [{chunk.id}]" for chunk in given[:2]) or REFUSAL_EN
        return {
            "answer": text,
            "contexts": [{"id": chunk.id, "text": chunk.text} for chunk in given],
            "citations": [chunk.id for chunk in given[:2]],
            "refused": not given,
            "meta": dict(self._meta),
        }

    def _quoted(self, found: Sequence[tuple[int, float]]) -> list[int]:
        """The best passage, and the next if it is nearly as good."""
        best = found[0][1]
        return [position for position, score in found[:2] if score >= self.settings.second_share * best]


def _context(chunk: Chunk, score: float) -> dict[str, Any]:
    context = {"id": chunk.id, "text": chunk.text, "score": score}
    return context if chunk.tenant is None else {**context, "tenant": chunk.tenant}


# --- the service ---------------------------------------------------------------------------------------------------


@contextmanager
def running_service(version: str, kb_folder: Path) -> Iterator[str]:
    """The base URL of the service while it runs, on a free port of the loopback interface, in a thread of its own.

    Works inside and outside a running event loop; thread, loop and sockets are gone when the block ends.
    Raises: InputError for an unknown version or an unusable folder.
    """
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    from aiohttp import web

    if version not in VERSIONS:
        raise InputError(
            f"version {version!r} of the demo service does not exist; expected one of {', '.join(VERSIONS)}"
        )
    assistant = Assistant(load_chunks(kb_folder), VERSIONS[version])
    # One worker runs the loop through all its steps, so that an error in any of them reaches the caller.
    with ThreadPoolExecutor(1, "rag-demo") as thread, closing(asyncio.new_event_loop()) as loop:
        runner = web.AppRunner(_application(assistant), access_log=None, shutdown_timeout=1.0)
        try:
            url = thread.submit(loop.run_until_complete, _start(runner)).result()
            serving = thread.submit(loop.run_forever)
            try:
                yield url
            finally:
                loop.call_soon_threadsafe(loop.stop)
                serving.result()
        finally:
            thread.submit(loop.run_until_complete, runner.cleanup()).result()


async def _start(runner: web.AppRunner) -> str:
    from aiohttp import web

    await runner.setup()
    await web.TCPSite(runner, HOST, 0).start()
    return f"http://{HOST}:{runner.addresses[0][1]}"


def _application(assistant: Assistant) -> web.Application:
    from aiohttp import web

    async def ask(request: web.Request) -> web.Response:
        try:
            question, tenant, history, given = _read_question(await request.read())
        except InputError as error:
            return web.json_response({"error": str(error)}, status=400)
        if given is not None:
            return web.json_response(assistant.answer_from(given))
        return web.json_response(assistant.answer(question, tenant, history))

    async def health(request: web.Request) -> web.Response:
        return web.json_response({"status": "ok", "version": assistant.settings.version})

    application = web.Application()
    application.add_routes([web.post("/ask", ask), web.get("/health", health)])
    return application


def _read_question(body: bytes) -> tuple[str, str | None, list[Any], list[Chunk] | None]:
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError("the body is not JSON; expected an object with query") from error
    if not isinstance(asked, dict):
        raise InputError("the body is not a JSON object; expected an object with query")
    question, tenant, history = asked.get("query"), asked.get("tenant"), asked.get("history")
    if not isinstance(question, str) or not question.strip():
        raise InputError("query is missing; expected text that is not empty")
    if tenant is not None and not isinstance(tenant, str):
        raise InputError("tenant is not text; expected a name, or null")
    if history is not None and not isinstance(history, list):
        raise InputError("history is not a list; expected the earlier turns, or null")
    return question, tenant, history or [], _read_passages(asked.get("contexts"))


def _read_passages(given: Any) -> list[Chunk] | None:
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise InputError("contexts is not a list of objects; expected passages with id and text, or null")
    if not all(isinstance(one.get(name), str) for one in given for name in ("id", "text")):
        raise InputError("a passage of contexts has no id or no text; expected both")
    return [Chunk(one["id"], one["text"], "", None) for one in given]
