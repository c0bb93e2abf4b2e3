"""The check of a large eval set: 100,000 cases against a corpus of 20,000 chunks, in Chinese and English.

One case in fifty is weak on purpose, so that the slow ways (a point that is looked for everywhere) are gone as well.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from rag_judge.cases import CaseSet
from rag_judge.corpus import Corpus
from rag_judge.lint import lint
from tests.eval_sets import write_rows

N_CASES, N_CHUNKS, BOUND_S = 100_000, 20_000, 60
WEAK_ONE_IN = 50
_CHARACTERS = [chr(0x4E00 + at * 7) for at in range(2500)]


def lint_lines() -> Iterator[str]:
    """Seconds to read and check everything, against the bound, and what was found of what was planted."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, rng = Path(temporary), random.Random(1)
        chunks = [_chunk(number, rng) for number in range(N_CHUNKS)]
        write_rows(folder / "corpus.jsonl", chunks)
        write_rows(folder / "cases.jsonl", [_case(number, chunks, rng) for number in range(N_CASES)])
        began = time.monotonic()
        corpus = Corpus(folder / "corpus.jsonl")
        with closing(CaseSet(folder / "cases.jsonl")) as cases:
            read = time.monotonic() - began
            found = lint(cases, corpus)
        seconds = time.monotonic() - began
    yield (
        f"{N_CASES:,} cases, {N_CHUNKS:,} chunks: {seconds:.0f} s, {seconds / BOUND_S:.2f} of the bound, "
        f"{read:.0f} s of them reading"
    )
    counts = Counter(finding.code for finding in found)
    yield f"found of {N_CASES // WEAK_ONE_IN:,} planted: " + ", ".join(f"{n:,} {code}" for code, n in counts.items())


def _words(rng: random.Random, n: int) -> list[str]:
    return ["".join(rng.choices("etaoinshrdlucmfwypvbgk", k=rng.randrange(2, 9))) for _ in range(n)]


def _chunk(number: int, rng: random.Random) -> dict[str, Any]:
    """About 300 Chinese characters or 70 English words, with a value of its own in their midst."""
    if number % 2:
        text = f"{''.join(rng.choices(_CHARACTERS, k=150))}须付 {number} 元{''.join(rng.choices(_CHARACTERS, k=150))}。"
    else:
        text = f"{' '.join(_words(rng, 35))} costs {number} dollars {' '.join(_words(rng, 35))}."
    return {"id": f"d{number // 8}#{number % 8}", "heading": "", "text": text}


def _case(number: int, chunks: list[dict[str, Any]], rng: random.Random) -> dict[str, Any]:
    place = number % N_CHUNKS
    if place % 2:
        question, point = f"{''.join(rng.choices(_CHARACTERS, k=14))}多少？", f"{place} 元"
    else:
        question, point = f"How much {' '.join(_words(rng, 7))}?", f"{place} dollars"
    if number % 4 == 0:
        return {"id": f"q{number}", "type": "refusal", "question": question, "expect_refusal": True}
    case: dict[str, Any] = {"id": f"q{number}", "type": "fact", "question": question, "must_include": [point]}
    case |= {"relevant_docs": [chunks[place]["id"]], "expect_refusal": False, "red_line": number % 10 == 1}
    if number % WEAK_ONE_IN == 1:
        weak = number // WEAK_ONE_IN % 4
        case |= (
            {"must_include": [f"{''.join(_words(rng, 3))} {number}"]},
            {"relevant_docs": [chunks[place - 9]["id"]]},
            {"question": f"How much is it? {question}"},
            {"forbidden_docs": [f"d{number}-*"]},
        )[weak]
    return case
