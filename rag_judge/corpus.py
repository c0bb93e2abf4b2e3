"""The chunks of a knowledge base, and where in them a key point stands. Nothing is graded or retrieved here.

A key point is looked for as the rules look for it (`text.holds_point`): in one chunk, or over the border of two chunks
that follow one another in their document. All texts are held in memory; the index is built when it is first needed.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from rag_judge.cases import read_id, read_text
from rag_judge.errors import InputError
from rag_judge.rows import Row, RowFile
from rag_judge.text import fold, holds_point

BLOCK_CHARACTERS, BLOCK_TEXTS = 4_000_000, 1 << 20  # of the index
FEW = 20  # texts that are read sooner than told apart by the index


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk of a knowledge base; a tenant of None means that everyone may read it."""

    id: str
    text: str
    heading: str = ""
    tenant: str | None = None


class Corpus:
    """The chunks of a knowledge base in file order."""

    def __init__(self, path: Path) -> None:
        """Read a folder of `*.jsonl`, by name, or one file of any format of rows.

        Raises InputError for a row that is wrong, an id that stands twice, or no chunk at all.
        """
        self.path = path
        self._chunks: list[Chunk] = []
        self._places: dict[str, int] = {}
        digest = hashlib.sha256()
        wheres: dict[str, str] = {}
        for file in _files(path):
            with RowFile(file, unique_keys=True) as rows:
                digest.update(f"{file.name}\n{rows.sha256}\n".encode(errors="surrogateescape"))
                self.sha256 = rows.sha256
                for row in rows:
                    self._add(_chunk_from_row(row), row.where, wheres)
        if path.is_dir():  # of a folder: changes with the name or content of any file
            self.sha256 = digest.hexdigest()

    def _add(self, chunk: Chunk, where: str, wheres: dict[str, str]) -> None:
        if chunk.id in wheres:
            raise InputError(f"{where}: id {chunk.id!r} stands twice, first at {wheres[chunk.id]}; ids must be unique")
        wheres[chunk.id] = where
        self._places[chunk.id] = len(self._chunks)
        self._chunks.append(chunk)

    def __len__(self) -> int:
        return len(self._chunks)

    def __iter__(self) -> Iterator[Chunk]:
        """Yield the chunks in file order."""
        return iter(self._chunks)

    def __contains__(self, chunk_id: object) -> bool:
        return chunk_id in self._places

    def get(self, chunk_id: str) -> Chunk:
        """The chunk of that id. Raises KeyError for an unknown one."""
        return self._chunks[self._places[chunk_id]]

    def text_of(self, chunk_id: str) -> str:
        """The text of a chunk as it stands. Raises KeyError for an unknown id."""
        return self.get(chunk_id).text

    def folded_text_of(self, chunk_id: str) -> str:
        """The text of a chunk, folded. Raises KeyError for an unknown id."""
        return self._folded[self._places[chunk_id]]

    def chunks_of(self, doc_id: str) -> tuple[str, ...]:
        """The ids that a relevant document stands for: the chunk of that id, else all chunks of that document."""
        if doc_id in self._places:
            return (doc_id,)
        return tuple(self._chunks[place].id for place in self._documents.get(doc_id, ()))

    def neighbours(self, chunk_id: str) -> tuple[str | None, str | None]:
        """The chunks before and after one in file order, of the same document; None where there is none.

        A document is what stands before the first `#` of an id. Raises KeyError for an unknown id.
        """
        before, after = self._neighbours[self._places[chunk_id]]
        return (
            None if before is None else self._chunks[before].id,
            None if after is None else self._chunks[after].id,
        )

    def holding(self, folded_point: str) -> tuple[str, ...]:
        """The ids of the chunks that hold a folded key point, in file order; none hold an empty one."""
        return tuple(self._chunks[place].id for place in self._index.holders(folded_point))

    def holding_across(self, folded_point: str) -> tuple[tuple[str, str], ...]:
        """The neighbours (first, second) that hold a folded key point when joined, and neither of them alone."""
        found = {}
        for cut in range(1, len(folded_point)):
            for left, right in self._borders.get(folded_point[cut - 1 : cut + 1], ()):
                if self._holds_over_border(left, right, folded_point, cut):
                    found[left] = right
        return tuple((self._chunks[left].id, self._chunks[found[left]].id) for left in sorted(found))

    def is_common(self, folded_point: str, most: float) -> bool:
        """True when more than `most` chunks hold a folded key point."""
        return self._index.is_common(folded_point, most)

    def _holds_over_border(self, left: int, right: int, point: str, cut: int) -> bool:
        first, second = self._folded[left], self._folded[right]
        if not (first.endswith(point[:cut]) and second.startswith(point[cut:])):
            return False
        # Two characters beyond the point tell whether a number goes on.
        joined = first[-cut - 2 :] + second[: len(point) - cut + 2]
        return holds_point(joined, point) and not holds_point(first, point) and not holds_point(second, point)

    @cached_property
    def _folded(self) -> list[str]:
        return [fold(chunk.text) for chunk in self._chunks]

    @cached_property
    def _index(self) -> PairIndex:
        return PairIndex(self._folded)

    @cached_property
    def _documents(self) -> dict[str, list[int]]:
        """Document -> the places of its chunks, in file order."""
        found = defaultdict(list)
        for place, chunk in enumerate(self._chunks):
            found[chunk.id.partition("#")[0]].append(place)
        return dict(found)

    @cached_property
    def _neighbours(self) -> list[tuple[int | None, int | None]]:
        found: list[tuple[int | None, int | None]] = [(None, None)] * len(self)
        for places in self._documents.values():
            for at, place in enumerate(places):
                found[place] = (places[at - 1] if at else None, places[at + 1] if at + 1 < len(places) else None)
        return found

    @cached_property
    def _borders(self) -> dict[str, list[tuple[int, int]]]:
        """The last character of a chunk with the first of the next -> the places of both."""
        found = defaultdict(list)
        for place, (_, after) in enumerate(self._neighbours):
            if after is not None:
                found[self._folded[place][-1:] + self._folded[after][:1]].append((place, after))
        return dict(found)


class PairIndex:
    """Which of many folded texts hold a key point: only those are read that hold each of its pairs of characters."""

    def __init__(self, folded_texts: Sequence[str]) -> None:
        self._texts = folded_texts
        self._blocks = [_Block(folded_texts, start, end) for start, end in _spans(folded_texts)]

    def holders(self, folded_point: str) -> list[int]:
        """The places of the texts that hold a folded key point, in order; none hold an empty one."""
        if not folded_point:
            return []
        if len(folded_point) == 1:
            return [place for place, text in enumerate(self._texts) if holds_point(text, folded_point)]
        pairs = _pairs_of(folded_point)
        candidates = [place for block in self._blocks for place in block.holding_all(pairs)]
        return [place for place in candidates if holds_point(self._texts[place], folded_point)]

    def is_common(self, folded_point: str, most: float) -> bool:
        """True when more than `most` texts hold a folded key point."""
        if len(folded_point) > 1:  # mostly a pair is rare, and no text need be read
            pairs = _pairs_of(folded_point)
            if (
                min(sum(counts) for counts in zip(*(block.counts(pairs) for block in self._blocks), strict=True))
                <= most
            ):
                return False
        return len(self.holders(folded_point)) > most


class _Block:
    """The pairs of characters of some of the texts, sorted, each with the places of the texts that hold it."""

    def __init__(self, folded_texts: Sequence[str], start: int, end: int) -> None:
        import numpy as np

        texts = folded_texts[start:end]
        codes = _codes("\0".join(texts))
        owners = np.repeat(np.arange(end - start), [len(text) + 1 for text in texts])[: len(codes)]
        # One number for each: two characters of 21 bits, and the text, of which a block has fewer than 2**20.
        found = np.sort((codes[:-1] << 41) | (codes[1:] << 20) | owners[:-1])
        found = found[np.diff(found, prepend=-1) > 0]
        pairs = found >> 20
        firsts = np.flatnonzero(np.diff(pairs, prepend=-1))
        self._n, self._start = end - start, start
        self._pairs = np.append(pairs[firsts], -1)  # the last one is no pair: what is looked for beyond all others
        self._ends = np.append(firsts, (len(pairs), len(pairs)))
        self._places = (found & 0xFFFFF).astype(np.uint32)

    def counts(self, pairs: Any) -> Any:
        """How many of the texts hold each of the pairs."""
        begins, ends = self._ranges(pairs)
        return ends - begins

    def holding_all(self, pairs: Any) -> list[int]:
        """The places of the texts that hold every one of the pairs, in order."""
        import numpy as np

        begins, ends = self._ranges(pairs)
        rarest, *others = np.argsort(ends - begins)
        left = self._places[begins[rarest] : ends[rarest]]
        for pair in others:
            if len(left) < FEW:
                break
            holds = np.zeros(self._n, dtype=bool)
            holds[self._places[begins[pair] : ends[pair]]] = True
            left = left[holds[left]]
        return [self._start + place for place in left.tolist()]

    def _ranges(self, pairs: Any) -> tuple[Any, Any]:
        """Where the places of each pair begin and end; the same twice for a pair that no text holds."""
        import numpy as np

        at = np.searchsorted(self._pairs[:-1], pairs)
        return self._ends[at], np.where(self._pairs[at] == pairs, self._ends[at + 1], self._ends[at])


def _codes(text: str) -> Any:
    """The characters of a text as an array of whole numbers."""
    import numpy as np

    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.int64)


def _pairs_of(text: str) -> Any:
    """The different pairs of neighbouring characters of a text, each as one number."""
    import numpy as np

    codes = _codes(text)
    return np.unique((codes[:-1] << 21) | codes[1:])


def _spans(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Where to cut the texts into blocks of a few million characters, which bounds the memory of building one."""
    cuts, n_characters = [0], 0
    for place, text in enumerate(texts):
        n_characters += len(text)
        if n_characters > BLOCK_CHARACTERS or place - cuts[-1] >= BLOCK_TEXTS:
            cuts.append(place)
            n_characters = len(text)
    return [(start, end) for start, end in pairwise([*cuts, len(texts)]) if end > start]


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("*.jsonl"))
    if not found:
        raise InputError(f"{path}: found no *.jsonl in the folder; expected files with one chunk a line")
    return found


def _chunk_from_row(row: Row) -> Chunk:
    """The chunk that a row states. Raises InputError for a missing id or text or a bad type."""
    for name in ("id", "text"):
        if row.fields.get(name) in (None, ""):
            raise InputError(f"{row.where}: {name} is missing; every chunk needs an id and a text")
    heading = row.fields.get("heading") or row.fields.get("title") or ""
    tenant = row.fields.get("tenant")
    return Chunk(
        read_id(row.fields["id"], f"{row.where}: id"),
        read_text(row.fields["text"], f"{row.where}: text"),
        _read_heading(heading, f"{row.where}: heading"),
        None if tenant in (None, "") else read_id(tenant, f"{row.where}: tenant"),
    )


def _read_heading(value: Any, where: str) -> str:
    return value if value == "" else read_text(value, where)
