"""Finds the JSON objects in a model's text and reads them with the repairs that cannot change their meaning.

Here: the whole text as strict JSON; else what stands outside reasoning, read by one lenient grammar that contains
strict JSON. Permitted: text and fences around an object, trailing commas, comments, Python quoting and
True/False/None, curly and full-width structural marks, raw line breaks in strings, zero-width characters, unquoted
keys. Never: closing, completing or guessing; no character inside a string is changed.
Not here: what a field means, and whether an object is a verdict.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

ZERO_WIDTH = "\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"  # a range for a regular expression's class
_MAX_DEPTH = 50
_STEPS_PER_CHARACTER = 16  # an honest reply is walked about once; only a text made to be tangled needs more

_DOUBLE, _SINGLE = "“”„‟", "‘’‚‛"
_CLOSERS = (
    {'"': '"', "'": "'", "＂": "＂", "＇": "＇"} | dict.fromkeys(_DOUBLE, _DOUBLE) | dict.fromkeys(_SINGLE, _SINGLE)
)
_STRINGS = {
    opener: re.compile(rf"{opener}((?:[^{closers}\\]+|\\.)*+)[{closers}]", re.DOTALL)
    for opener, closers in _CLOSERS.items()
}
_ESCAPED_OR_QUOTE = re.compile(r'\\(?:x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8})|(.))|"', re.DOTALL)
_LOOSE_JSON = json.JSONDecoder(strict=False)  # raw line breaks in strings
_GAP = re.compile(  # white space or one comment; not the slashes of {https://host}
    rf"[\s{ZERO_WIDTH}]+|(?:(?<!:)//|#)[^\n\r\u2028\u2029]*|/\*.*?\*/", re.DOTALL
)
_BARE_KEY = re.compile(r"[^\W\d][\w \-]{0,63}")
_BARE_VALUE = re.compile(r"[^\s,，:：{}｛｝\[\]［］/#\"'“”„‟‘’‚‛＂＇]+")
_ZERO_WIDTHS = re.compile(f"[{ZERO_WIDTH}]+")
_LOOSE_KEY = re.compile(r"""["'“”‘’＂＇]([^"'“”‘’＂＇:：\n]{1,80})["'“”‘’＂＇]\s{0,9}[:：]""")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|NaN|-?Infinity")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}

_REASONING = "think|thinking|thoughts?|reasoning|reflection|analysis|scratchpad"
_TAG = (
    rf"(?:[<◁]\s?(?P<slash>/?)\s?(?:\w{{1,20}}:)?(?P<name>(?i:{_REASONING}))(?:\s[^<>]{{0,200}})?(?P<empty>/?)[>▷]"
    r"|\[(?P<bracket_slash>/?)THINK\]|<\|channel\|>(?P<channel>analysis|final))"
)
_MARK = re.compile(
    rf"{_TAG}|(?P<object>(?:[\[［]\s*+)?[{{｛](?=[\s{ZERO_WIDTH}]*+(?:[\"'“”„‟‘’‚‛＂＇}}｝/#]|[^\W\d])))"
)
_DOUBLE_QUOTED, _SINGLE_QUOTED = r'"(?:[^"\\]+|\\.)*+"|“[^”]*+”', r"'(?:[^'\\]+|\\.)*+'"
_SHAPE_END = rf"(?P<tag>{_TAG})|(?P<open>[{{｛\[［])|(?P<close>[}}｝\]］])"
_SHAPE = re.compile(rf'{_DOUBLE_QUOTED}|(?P<lost>["“])|{_SHAPE_END}', re.DOTALL)
_PYTHON_SHAPE = re.compile(rf"""{_DOUBLE_QUOTED}|{_SINGLE_QUOTED}|(?P<lost>["“'])|{_SHAPE_END}""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Number:
    """A JSON number, or NaN or an Infinity, as it was written: nothing is rounded and nothing overflows."""

    text: str


class Members(list[tuple[str, Any]]):
    """The members of one object in their order, repeated keys included."""


@dataclass(frozen=True, slots=True)
class Found:
    """An object or array met in a text. Of a broken one, `value` holds the members that were whole before the break."""

    value: Any
    text: str
    intact: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text holds outside its reasoning."""

    found: tuple[Found, ...]
    prose: str  # the text without its reasoning and what was found in it
    open_reasoning: bool = False  # reasoning begins and never ends
    tangled: bool = False  # given up: reading on would take more than linear time
    steps: int = 0  # characters walked by the lenient grammar

    def loose_keys(self) -> list[str]:
        """The quoted keys, each before a colon, that stand in no object."""
        return _LOOSE_KEY.findall(self.prose)


def read_objects(text: str) -> Reading:
    """The objects and arrays in a text: the whole of it if that is strict JSON, else every one outside reasoning.

    A text that is one JSON string is read as what the string holds. After a broken object whose end cannot be
    known (it is cut, or a quote inside a string is not escaped) nothing more is read: what follows may be part of it.
    """
    for _ in range(2):
        whole, value = _strict(text)
        if not whole or not isinstance(value, str):
            break
        text = value
    if whole and isinstance(value, list):
        return Reading((Found(value, text, True),), "")
    return _Scan(text).reading()


def _strict(text: str) -> tuple[bool, Any]:
    try:
        return True, json.loads(
            text, object_pairs_hook=Members, parse_int=Number, parse_float=Number, parse_constant=Number
        )
    except (ValueError, RecursionError):
        return False, None


class _BrokenError(ValueError):
    """The object being read does not go on as the grammar allows."""


class _TangledError(Exception):
    """The walk has used up its steps."""


class _Scan:
    """One walk over a text from left to right, looking for reasoning and objects."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.reader = _Reader(text)
        self.found: list[Found] = []
        self.prose: list[str] = []
        self.prose_from = 0

    def reading(self) -> Reading:
        pos = 0
        open_reasoning = tangled = False
        try:
            while mark := _MARK.search(self.text, pos):
                after = self._object(mark) if mark["object"] else self._tag(mark)
                if after is None:
                    open_reasoning = True
                    break
                pos = after
        except _TangledError:
            tangled = True
        if not open_reasoning:
            self.prose.append(self.text[self.prose_from :])
        return Reading(tuple(self.found), "".join(self.prose), open_reasoning, tangled, self.reader.steps)

    def _tag(self, mark: re.Match[str]) -> int | None:
        """Where reading goes on after a tag; None where the reasoning it opens never ends."""
        if mark["empty"]:
            return mark.end()
        closing = _closes(mark)
        if closing:  # whatever stands before was reasoning too: some chat templates send the opening tag themselves
            self.found.clear()
            self.prose.clear()
        else:
            self.prose.append(self.text[self.prose_from : mark.start()])
            tags = _MARK.finditer(self.text, mark.end())
            end = next((tag for tag in tags if _closes(tag) and _kind(tag) == _kind(mark)), None)
            if end is None:
                return None
            mark = end
        self.prose_from = mark.end()
        return mark.end()

    def _object(self, mark: re.Match[str]) -> int:
        """Where reading goes on after a brace."""
        start = mark.start()
        try:
            value = self.reader.read(start)
        except _BrokenError:
            return self._after_break(start)
        return self._keep(start, value, True)

    def _after_break(self, start: int) -> int:
        if not self.reader.committed:
            return start + 1  # a brace of the prose
        self.reader.leave_broken()
        return self._keep(start, self.reader.open[0], False)

    def _keep(self, start: int, value: Any, intact: bool) -> int:
        end = self.reader.pos
        self.found.append(Found(value, self.text[start:end], intact))
        self.prose.append(self.text[self.prose_from : start])
        self.prose_from = end
        return end


def _closes(mark: re.Match[str]) -> bool:
    return bool(mark["slash"] or mark["bracket_slash"] or mark["channel"] == "final")


def _kind(mark: re.Match[str]) -> str:
    return "channel" if mark["channel"] else (mark["name"] or "think").lower()


class _Reader:
    """The lenient grammar. It stops at the first thing it may not repair and says how far it came."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = self.steps = 0
        self.max_steps = _STEPS_PER_CHARACTER * len(text) + 1000
        self.open: list[Any] = []  # the containers not closed yet, outermost first
        self.committed = False  # this is an object, if perhaps a broken one; else a brace in prose
        self.after_string = False  # the last value or key was a quoted string: its end may have been a quote inside it
        self.single_quoted = False  # as Python writes strings: then an apostrophe is a quote

    def read(self, start: int) -> Any:
        """The object or array that begins at `start`; its end is `pos`."""
        self.pos, self.open = start, []
        self.committed = self.after_string = self.single_quoted = False
        return self._value()

    def leave_broken(self) -> None:
        """Moves `pos` to where reading may go on after the break: the object's end, or a tag that ends reasoning.

        That is the end of the text where the object is cut, and where a string may have ended too early: then what
        follows may still be inside that string, and only a tag beyond the object's end is one.
        """
        depth = len(self.open)
        for mark in (_PYTHON_SHAPE if self.single_quoted else _SHAPE).finditer(self.text, self.pos):
            depth += bool(mark["open"]) - bool(mark["close"])
            if depth <= 0 and not self.after_string:
                self._advance(mark.end())
                return
            if mark["lost"] or (mark["tag"] and not (_closes(mark) and (depth <= 0 or not self.after_string))):
                break
            if mark["tag"]:
                self._advance(mark.start())
                return
        self._advance(len(self.text))

    def _advance(self, end: int) -> None:
        self.steps += end - self.pos + 1
        self.pos = end
        if self.steps > self.max_steps:
            raise _TangledError

    def _skip(self) -> None:
        """Passes white space, zero-width characters and comments."""
        while gap := _GAP.match(self.text, self.pos):
            # A sharp right after a brace is as likely prose, {#each}, as a comment.
            self.committed = self.committed or "/" in gap[0][:1]
            self._advance(gap.end())
        if self.text.startswith("/*", self.pos):
            self.committed = True
            self._advance(len(self.text))
            raise _BrokenError("a comment never ends")

    def _take(self, marks: str) -> bool:
        if self.pos < len(self.text) and self.text[self.pos] in marks:
            self._advance(self.pos + 1)
            return True
        return False

    def _value(self) -> Any:
        self._skip()
        character = self.text[self.pos : self.pos + 1]
        if character in _CLOSERS:
            self.committed = True
            return self._string()
        if self.open and character and character in "{｛[［":
            self.committed = self.committed or isinstance(self.open[-1], Members)
        if self._take("{｛"):
            return self._container(Members(), "}｝")
        if self._take("[［"):
            return self._container([], "]］")
        return self._bare()

    def _container(self, container: Any, closers: str) -> Any:
        self.open.append(container)
        if len(self.open) > _MAX_DEPTH:
            raise _BrokenError("nested too deep")
        self._skip()
        while not self._take(closers):
            entry = self._member() if isinstance(container, Members) else self._value()
            self._skip()
            if not self._take(",，") and self.text[self.pos : self.pos + 1] not in tuple(closers):
                raise _BrokenError("neither a comma nor the end")
            container.append(entry)  # only now: a value that is not followed by either may be a part of one
            self.committed = True
            self._skip()
        self.open.pop()
        self.after_string = False
        return container

    def _member(self) -> tuple[str, Any]:
        quoted = self.text[self.pos : self.pos + 1] in _CLOSERS
        key = self._string() if quoted else self._bare_key()
        self._skip()
        if not self._take(":："):
            raise _BrokenError("a key without a colon")
        self.committed = self.committed or quoted
        return key, self._value()

    def _string(self) -> str:
        self.single_quoted = self.single_quoted or self.text[self.pos] == "'"
        string = _STRINGS[self.text[self.pos]].match(self.text, self.pos)
        self._advance(string.end() if string else len(self.text))
        self.after_string = True
        if string is None:
            raise _BrokenError("a string never ends")
        if "\\" not in string[1]:
            return string[1]
        try:
            return str(_LOOSE_JSON.decode('"' + _ESCAPED_OR_QUOTE.sub(_as_json, string[1]) + '"'))
        except ValueError as error:
            raise _BrokenError("a string with an unknown escape") from error

    def _bare_key(self) -> str:
        key = _BARE_KEY.match(self.text, self.pos)
        if key is None:
            raise _BrokenError("no key")
        self._advance(key.end())
        return key[0].strip()

    def _bare(self) -> Any:
        written = _BARE_VALUE.match(self.text, self.pos)
        word = _ZERO_WIDTHS.sub("", written[0]) if written else ""
        if written is None or not (word in _WORDS or _NUMBER.fullmatch(word)):
            self.after_string = False
            raise _BrokenError("no value")
        self._advance(written.end())
        self.after_string = False
        return _WORDS[word] if word in _WORDS else Number(word)


def _as_json(escaped: re.Match[str]) -> str:
    """The same character as a JSON string writes it."""
    code, character = escaped[1] or escaped[2], escaped[3]
    if code:
        return json.dumps(chr(int(code, 16)))[1:-1]
    if character is None:
        return '\\"'
    return character if character in _CLOSERS and character != '"' else escaped[0]
