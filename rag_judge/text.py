"""How texts are compared: folding, key points, words. Chinese and English, without a model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

_SPACE = re.compile(r"\s+")
_WORDS = re.compile(r"[^\W_]+")
_CJK = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af]+")


def fold(text: str) -> str:
    """The text after NFKC, with case and all white space removed."""
    return _SPACE.sub("", unicodedata.normalize("NFKC", text).casefold())


def is_chinese(text: str) -> bool:
    """True when the text holds a CJK ideograph."""
    return any("\u3400" <= c <= "\u9fff" for c in text)


def holds_point(folded_text: str, folded_point: str) -> bool:
    """True when a key point stands in a text, both folded.

    A point that begins or ends with a digit is not found inside a longer number: the text beside it is neither a
    digit, nor `.` or `,` with a digit beyond (500 is not in 1500, 500.5 or 1,500).
    """
    start = folded_text.find(folded_point)
    while start >= 0:
        end = start + len(folded_point)
        cuts_before = folded_point[0].isdecimal() and _number_goes_on(folded_text[max(0, start - 2) : start][::-1])
        cuts_after = folded_point[-1].isdecimal() and _number_goes_on(folded_text[end : end + 2])
        if not cuts_before and not cuts_after:
            return True
        start = folded_text.find(folded_point, start + 1)
    return False


def _number_goes_on(beside: str) -> bool:
    return beside[:1].isdecimal() or (beside[:1] in (".", ",") and beside[1:].isdecimal())


def in_one_or_two(folded_texts: Sequence[str], folded_point: str) -> bool:
    """True when a folded key point stands in one text, or in two neighbours joined without white space."""
    return any(holds_point(text, folded_point) for text in folded_texts) or any(
        holds_point(left + right, folded_point) for left, right in pairwise(folded_texts)
    )


def words(text: str) -> list[str]:
    """The words of a text, folded to NFKC and lower case: runs of letters and digits; CJK runs as character pairs."""
    found: list[str] = []
    for run in _WORDS.findall(unicodedata.normalize("NFKC", text).casefold()):
        if run.isascii():  # most runs, and ten times faster than looking for CJK in them
            found.append(run)
            continue
        at = 0
        for cjk in _CJK.finditer(run):
            if cjk.start() > at:
                found.append(run[at : cjk.start()])
            chars = cjk.group()
            found.extend([chars] if len(chars) == 1 else [chars[i : i + 2] for i in range(len(chars) - 1)])
            at = cjk.end()
        if at < len(run):
            found.append(run[at:])
    return found
