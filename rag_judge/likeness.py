"""Questions that are worded nearly alike, found without comparing each with each. What follows is not said here.

Two questions are compared when they share a run of characters, the rarest runs first; of each run only the first
questions that hold it are remembered, and only so many are compared. So the work grows with the number of questions,
and those that share nothing but a template are left alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import takewhile
from operator import add

from rag_judge.text import fold

# Share of different character pairs in common (Jaccard) from which two questions are nearly the same: where one only
# adds to the other, and where something stands in the place of something else.
ADDED, CHANGED = 0.7, 0.8
RUN_CHINESE, RUN_OTHER = 3, 6  # characters that two questions must share in a row
N_REMEMBERED = 50  # questions of one run
N_COMPARED = 20  # earlier questions with one
N_OF_COMMON = 3  # of them, for a run that all these questions and more hold
_MARKS = re.compile(r"""[?!。、;,"'“”‘’…~]""")
_IDEOGRAPH = re.compile(r"[\u3400-\u9fff]")
_NUMBERS = re.compile(r"\d+")


def bare(question: str) -> str:
    """The question folded and without punctuation: two that are equal so ask the same."""
    folded = fold(question)
    return _MARKS.sub("", folded).strip(".:-") or folded


def nearly_alike(bare_questions: Sequence[str], may_be_same: Callable[[int, int], bool]) -> dict[int, int]:
    """Place of a question -> place of the earlier one most like it; questions without one are left out.

    Two with different numbers in them are never alike, nor are those of which `may_be_same(earlier, later)` says no.
    """
    found: dict[int, int] = {}
    holders: dict[int, int | list[int]] = {}
    for place, question in enumerate(bare_questions):
        best = 0.0
        for other in _worth_comparing(_remember(holders, question, place)):
            likeness = _likeness(bare_questions[other], question)
            if likeness > best and may_be_same(other, place):
                best, found[place] = likeness, other
    return found


def _remember(holders: dict[int, int | list[int]], question: str, place: int) -> list[list[int]]:
    """The earlier holders of each run of a question, which is remembered as a holder from now on.

    `holders` is by hash: a collision costs one comparison, and millions of runs cost half the memory. Most runs have
    one holder, and no list.
    """
    is_chinese = 3 * len(_IDEOGRAPH.findall(question)) > len(question)
    length = RUN_CHINESE if is_chinese else RUN_OTHER
    known = []
    for run in dict.fromkeys(hash(question[at : at + length]) for at in range(max(1, len(question) - length + 1))):
        earlier = holders.get(run)
        if earlier is None:
            holders[run] = place
        elif isinstance(earlier, int):
            known.append([earlier])
            holders[run] = [earlier, place]
        else:
            known.append(earlier[:])
            if len(earlier) < N_REMEMBERED:
                earlier.append(place)
    return known


def _worth_comparing(known: list[list[int]]) -> list[int]:
    """The places that hold two of the runs or more, rarest runs first; few of a run that is everywhere.

    A character that two questions hold with the same neighbours stands in several runs.
    """
    held: Counter[int] = Counter()
    for places in sorted(known, key=len):
        held.update(places if len(places) < N_REMEMBERED else places[:N_OF_COMMON])
    least = min(2, len(known))
    return [place for place, n_runs in held.items() if n_runs >= least][:N_COMPARED]


def _likeness(one: str, other: str) -> float:
    """Jaccard over the different pairs of characters; 0 where it is too low, or the numbers in them differ."""
    first, second = _pairs(one), _pairs(other)
    n_both = len(first & second)
    union = len(first) + len(second) - n_both
    if n_both < ADDED * union or not union or _NUMBERS.findall(one) != _NUMBERS.findall(other):
        return 0.0
    n_kept = _n_first_equal(one, other) + _n_first_equal(one[::-1], other[::-1])
    share = n_both / union
    return share if share >= CHANGED or n_kept >= min(len(one), len(other)) else 0.0


@lru_cache(maxsize=10_000)  # the first questions of a run are compared again and again
def _pairs(text: str) -> frozenset[str]:
    return frozenset(map(add, text, text[1:]))


def _n_first_equal(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(one, other, strict=False)))
