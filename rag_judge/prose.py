"""What a judge's reply in prose says: a verdict by the prompt's own patterns, or why there is none. Pure and total.

Here: which text is searched, and what follows from the values that its matches name. No place in the text weighs more
than another: two values named are a conflict, whichever stands last. Not here: what a pattern may be
(`prompt_settings`), which part of a reply counts and how a judge declines (`verdicts`).

The text is searched without its reasoning, without zero-width characters, and with each run of white space as one
blank, or as one line end where the run holds one. A text that was cut or filtered is never searched: what it would
have gone on to say is not known, and prose shows no whole verdict as an object does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from rag_judge.records import Unscored, Value, Verdict
from rag_judge.repair import ZERO_WIDTH, Reading, read_objects
from rag_judge.verdicts import CUT_SHORT, FILTERED, Evidence, Message, body_of, message_of, unscored, why_unscored

MOST_CHARACTERS = 20_000  # what a pattern is tried on; Python cannot interrupt one that takes too long
_ZERO_WIDTHS = re.compile(f"[{ZERO_WIDTH}]+")
_SPACE = re.compile(r"\s+")
_LINE_END = re.compile(r"[\n\r\v\f\x85\u2028\u2029]")
# Noncharacters. One in front keeps a text from being a JSON value, the others stand in for what would open an object.
_NOT_JSON, _HIDDEN = "\ufdd0", "\ufdd1\ufdd2"
_HIDE = str.maketrans("{｛", _HIDDEN)
_SHOW = str.maketrans(_HIDDEN, "{｛", _NOT_JSON)


def read_prose_body(raw: str, reading: Mapping[str, Mapping[Value, tuple[str, ...]]]) -> Verdict | Unscored:
    """The verdict in the body of a 200, or why there is none. A body that is no chat completion is unscored."""
    body = body_of(raw)
    return body if isinstance(body, Unscored) else read_prose(body, reading)


def read_prose(
    reply: str | Mapping[str, Any], reading: Mapping[str, Mapping[Value, tuple[str, ...]]]
) -> Verdict | Unscored:
    """The verdict of a chat completion, or of an assistant's finished text; else `Unscored` with what was found.

    `reading` holds, for each field and each of its values, the patterns that name the value. The verdict's reason is
    the text as searched.
    """
    message = Message((reply,)) if isinstance(reply, str) else message_of(reply, None)
    if isinstance(message, Unscored):
        return message
    outside = [_outside_reasoning(text) for text in message.texts]
    found: Verdict | Unscored = Unscored("unreadable")
    unsafe = any(part.open_reasoning for part in outside)
    if unsafe:
        found = Unscored("unreadable", "the reply ends while still reasoning")
    elif message.finish_reason not in CUT_SHORT | FILTERED:
        found = _searched(_folded("\n".join(part.prose for part in outside)), reading)
    if isinstance(found, Verdict) or found.reason == "conflicting":
        return found
    return why_unscored(message, outside, Evidence(), found, unsafe)


def _outside_reasoning(text: str) -> Reading:
    """The text as `repair` reads it, with braces as the prose that they are here."""
    part = read_objects(_NOT_JSON + text.translate(_HIDE))
    return Reading((), part.prose.translate(_SHOW), part.open_reasoning)


def _folded(text: str) -> str:
    text = _ZERO_WIDTHS.sub("", text).strip()
    return _SPACE.sub(lambda run: "\n" if _LINE_END.search(run[0]) else " ", text)


def _searched(text: str, reading: Mapping[str, Mapping[Value, tuple[str, ...]]]) -> Verdict | Unscored:
    """What the patterns find: conflicting if they name two values of any field, unreadable if none of some."""
    if len(text) > MOST_CHARACTERS:
        return Unscored("unreadable", f"a text of {len(text)} characters; at most {MOST_CHARACTERS} are searched")
    named = {field: list(_named(text, patterns)) for field, patterns in reading.items()}
    for field, matches in named.items():
        if len(matches) > 1:
            both = " and ".join(f"{_shown(value)} ({passage})" for value, passage in matches[:2])
            return unscored("conflicting", f"{field} is both", both)
    for field, matches in named.items():
        if text and not matches:
            return unscored("unreadable", f"no pattern of {field} matches", text)
    if not text:
        return Unscored("unreadable")
    return Verdict({field: matches[0][0] for field, matches in named.items()}, text)


def _named(text: str, patterns: Mapping[Value, tuple[str, ...]]) -> Iterator[tuple[Value, str]]:
    """Every value that a pattern of it names, with the first passage that does."""
    for value, sources in patterns.items():
        match = next(filter(None, (_compiled(source).search(text) for source in sources)), None)
        if match:
            yield value, match[0]


def _shown(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE)
