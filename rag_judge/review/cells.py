"""An item as the text cells of a table, and the rows that a text over the cell limit takes. The same for writing
a sheet and for comparing what came back with it. No file format is known here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rag_judge.review.sheet import ReviewContext, ReviewTexts

WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "earlier": "Earlier turns:",
        "question": "Question:",
        "no_contexts": "(no contexts were recorded)",
        "empty_contexts": "(nothing was retrieved)",
        "no_text": "(no text was recorded)",
        "contexts_of": "Contexts of {name}:",
        "empty_answer": "(the answer is empty)",
        "goes_on": "… [goes on in the next row]",
    },
    "zh": {
        "earlier": "前文:",
        "question": "问题:",
        "no_contexts": "(没有记录资料)",
        "empty_contexts": "(没有检索到任何资料)",
        "no_text": "(没有记录正文)",
        "contexts_of": "{name} 的资料:",
        "empty_answer": "(回答为空)",
        "goes_on": "… [下一行接着]",
    },
}
PLACES = ("A", "B")
_PART = re.compile(r"(?P<id>.+?)\s*[((](?P<part>\d+)/\d+[))]")


def cells_of(texts: ReviewTexts, lang: str) -> dict[str, str]:
    """The item's texts by column: question, contexts, and answer, or answer_a and answer_b."""
    words = WORDS[lang]
    question = texts.question
    if texts.history:
        question = "\n".join([words["earlier"], *texts.history, "", words["question"], texts.question])
    names = ("answer",) if len(texts.answers) == 1 else ("answer_a", "answer_b")
    answers = {name: answer or words["empty_answer"] for name, answer in zip(names, texts.answers, strict=True)}
    return {"question": question, "contexts": _contexts(texts, lang), **answers}


def _contexts(texts: ReviewTexts, lang: str) -> str:
    parts = [contexts_text(contexts, lang) for contexts in texts.contexts]
    if len(parts) == 1:
        return parts[0]
    named = zip(PLACES, parts, strict=True)
    return "\n\n".join(f"{WORDS[lang]['contexts_of'].replace('{name}', name)}\n\n{part}" for name, part in named)


def contexts_text(contexts: Sequence[ReviewContext] | None, lang: str) -> str:
    """Contexts in rank order as one text."""
    words = WORDS[lang]
    if contexts is None:
        return words["no_contexts"]
    if not contexts:
        return words["empty_contexts"]
    return "\n\n".join(
        f"{context_title(rank, context)}\n{words['no_text'] if context.text is None else context.text}"
        for rank, context in enumerate(contexts, 1)
    )


def context_title(rank: int, context: ReviewContext) -> str:
    """The rank of a context, and its id where it has one."""
    return f"[{rank}] {context.id or ''}".rstrip()


def rows_of(cells: Mapping[str, str], limit: int, lang: str) -> list[dict[str, str]]:
    """The rows that the cells take when none may hold more than `limit` UTF-16 units; each cut ends with a mark."""
    parts = {name: _pieces(text, limit, WORDS[lang]["goes_on"]) for name, text in cells.items()}
    n = max(map(len, parts.values()))
    return [{name: pieces[i] if i < len(pieces) else "" for name, pieces in parts.items()} for i in range(n)]


def _pieces(text: str, limit: int, mark: str) -> list[str]:
    pieces = []
    while utf16_length(text) > limit:
        end = _end_of(text, limit - len(mark))
        pieces.append(text[:end] + mark)
        text = text[end:]
    return [*pieces, text]


def _end_of(text: str, limit: int) -> int:
    """How many characters of the text fit in so many UTF-16 units; a pair is never cut in two."""
    if text.isascii():
        return limit
    used = 0
    for i, character in enumerate(text):
        used += 2 if character > "\uffff" else 1
        if used > limit:
            return i
    return len(text)


def utf16_length(text: str) -> int:
    """The length of the text as spreadsheets count it."""
    return len(text) + sum(character > "\uffff" for character in text)


def part_id(item_id: str, part: int, n_parts: int) -> str:
    """What stands in the item column of a row: the id, and from the second row on which part of the item it is."""
    return item_id if part == 1 else f"{item_id} ({part}/{n_parts})"


def id_and_part(cell: str) -> tuple[str, int]:
    """The item id that a cell names, and the part of the item, 1 for its first or only row."""
    found = _PART.fullmatch(cell.strip())
    return (found["id"], int(found["part"])) if found else (cell.strip(), 1)
