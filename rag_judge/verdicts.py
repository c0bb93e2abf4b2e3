"""What a judge's reply says: a verdict, or why there is none. Pure and total: no reply of any shape raises.

Here: which part of a reply counts, which values a field may have, when several objects agree, and the reason a reply
stays unscored. Not here: how objects are found and repaired (`repair`), and how prose is read (`prose`).

Values. boolean: true/false, yes/no, 1/0, also as text in any case, and 是/否 (对/错 are not read: 对 may speak of the
answer as well as of the field). score: a whole number of the scale, also 4.0, "4" and, on a scale to 5, "4/5".
choice: one of the menu in any case, returned in the menu's spelling. All else is no value: nothing is defaulted,
clamped, rounded or completed. Keys are compared without case, spaces, hyphens and underscores.

Several objects. An object with a field of the prompt speaks for the reply. Those that are intact must agree; one with
an invalid value or with other grades makes the reply conflicting. A broken one contributes nothing, but what is
legible in it may contradict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_judge.records import Unscored, UnscoredReason, Value, Verdict, VerdictField
from rag_judge.repair import ZERO_WIDTH, Found, Members, Number, Reading, read_objects

_MAX_DETAIL = 200
_BOOLEANS = {"true": True, "yes": True, "1": True, "是": True, "false": False, "no": False, "0": False, "否": False}
_WHOLE_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]{0,17}))(?:\.0+)?(?:[eE][+-]?0+)?")
_SCORE_TEXT = re.compile(r"(-?(?:0|[1-9][0-9]{0,17}))(?:\.0+)?(?:\s*/\s*([1-9][0-9]{0,17}))?")
_PADDING = re.compile(f"[{ZERO_WIDTH}]+")
_KEY_NOISE = re.compile(rf"[\s_\-\u2010-\u2015{ZERO_WIDTH}]+")
CUT_SHORT = frozenset({"length", "maxtokens", "maxoutputtokens"})
FILTERED = frozenset({"contentfilter", "contentfiltered", "safety"})

# --- how a model declines to judge; a sentence must begin so, for an answer may be quoted anywhere ----------------
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|[。！？；\n]+")
_PREFACE = (
    r"(?:(?:(?:(?:i'?m|i am|we'?re|we are) )?(?:\w+ )?(?:sorry|afraid)|(?:my \w* ?)?apologies"
    r"|i (?:\w+ )?apologi[sz]e|unfortunately|regrettably|as an? [^.;,]{0,80}?(?:,| (?=i\b))"
    r"|thank(?:s| you)[^.;,!]{0,80},)(?: (?:for|about) [^,.;]{0,60})?[\s,:!-]*(?:but|that|however|and)?[\s,]*){0,3}"
)
_UNABLE = (
    r"(?:(?:can ?not|can't|could not|couldn't|will not|won't) (?:be able to )?|(?:(?:am|are|'m|'re) )?(?:"
    r"unable to |not (?:able|allowed|permitted|willing|going) to |not comfortable (?:with )?"
    r"|(?:prohibited|forbidden) from )|(?:(?:must|have to|will|need to) )?(?:\w+ly )?(?:decline|refuse) to "
    r"|(?:would|'d) rather not |prefer not to )(?:(?:really|directly|ethically|currently|fully|in good conscience) )?"
)
_TASK = (
    r"(?:(?:help(?! but)|assist|comply|provid\w+ (?!it |the answer )|fulfil|respond|continu|engag|process|perform"
    r"|discuss|participat|accommodat|work with|proceed|(?:do|complete) (?:this|that|so|it|your|the (?:task|request))\b)"
    r"|(?:evaluat|judg|assess|review|grad(?:e|ing)|rate\b|rating|scor(?:e|ing)|answer|compar|analy[sz])"
    # A grade in prose, "I cannot rate this higher than 3", declines nothing.
    r"(?!.*\b(?:as (?:a pass|\w+ly|complete|grounded|correct|good)|higher|above|more than|whether|if)\b))"
)
_REFUSAL_ENGLISH = re.compile(
    rf"{_PREFACE}(?:(?:i|we)\s?)?(?:really |simply |just |also |respectfully |therefore )?"
    rf"(?:{_UNABLE}{_TASK}|(?:must|have to) (?:\w+ly )?(?:decline|refuse)\b)"
    rf"|{_PREFACE}(?:this|that|your|the) (?:\w+ )?(?:request|prompt|task|conversation|content)\b[^.]{{0,40}}?"
    r"(?:violates?|goes against|is against|conflicts with)[^.]{0,40}(?:guideline|polic(?:y|ies)|principle|terms|rules)"
)
_REFUSAL_CHINESE = re.compile(
    r"(?:作为[^。；]{0,40}?[,，])?"
    r"(?:(?:非常|很|十分|实在|真的|真|深感)?(?:抱歉|对不起|對不起|不好意思|遗憾|遺憾)(?:(?!答案|资料|文档|上下文)[^。；]){0,20}?)?"
    r"(?:(?:但|但是)?(?:我们|我們|我|本助手|本模型)[^。；]{0,8}?)?"
    r"(?:(?:无法|無法|不能|不可以|不便|没有?办法|沒有?辦法|不会|不會|拒绝|拒絕|不方便|恕难|恕難|难以|難以|不予)[^。；,，]{0,10}?"
    r"(?:协助|協助|帮|幫|提供|评估|評估|评价|評價|评分|評分|评判|評判|打分|回答|回应|回應|回复|回覆|处理|處理|完成|满足|滿足"
    r"|讨论|討論|继续|繼續|参与|參與|执行|執行|遵从|從命|从命|支持|给出(?!满分|高分)|進行|进行|审核|審核|比较|比較)(?!为)"
    r"|(?:(?:您|你)的?|(?:这|该|此|這|該)[个一项個項]?)(?:请求|內容|内容|问题|要求|請求)[^。；]{0,20}违反[^。；]{0,20}"
    r"(?:政策|规定|准则|规范|原则))"
)


@dataclass(frozen=True, slots=True)
class Message:
    """The parts of a chat completion that may hold a verdict, and what the server says of its end."""

    texts: tuple[str, ...]
    finish_reason: str = ""
    refusal: str = ""


@dataclass(slots=True)
class Evidence:
    """What the objects of a reply say, sorted by what may be done with it."""

    verdicts: list[Verdict] = field(default_factory=list)
    legible: list[dict[str, Value]] = field(default_factory=list)  # grades of objects that are no verdict
    invalid: list[str] = field(default_factory=list)  # intact objects with a value that is none, or in the wrong place
    incomplete: list[str] = field(default_factory=list)  # intact objects without some field
    broken: list[str] = field(default_factory=list)
    clashes: list[str] = field(default_factory=list)  # one key twice with different values


def read_body(raw: str, fields: Sequence[VerdictField], *, asked_tool: str | None = None) -> Verdict | Unscored:
    """The verdict in the body of a 200, or why there is none. A body that is no chat completion is unscored."""
    body = body_of(raw)
    return body if isinstance(body, Unscored) else read_verdict(body, fields, asked_tool=asked_tool)


def body_of(raw: str) -> Mapping[str, Any] | Unscored:
    """The body of a 200 as an object, or why it is none."""
    if _is_blank(raw):
        return Unscored("no_reply", "the body is empty")
    try:
        body = json.loads(raw.removeprefix("\ufeff"), parse_int=_integer)
    except (ValueError, RecursionError):
        return unscored("unreadable", "the body is not JSON", raw)
    body = body[0] if isinstance(body, list) and body and isinstance(body[0], dict) and body[0].get("error") else body
    return body if isinstance(body, dict) else unscored("unreadable", "the body is not a chat completion", raw)


def read_verdict(
    reply: str | Mapping[str, Any], fields: Sequence[VerdictField], *, asked_tool: str | None = None
) -> Verdict | Unscored:
    """The verdict of a chat completion, or of an assistant's finished text; else `Unscored` with what was found.

    Of several choices the first counts. Reasoning never counts. The arguments of a tool call count as content when
    the function is `asked_tool`, else never.
    """
    message = Message((reply,)) if isinstance(reply, str) else message_of(reply, asked_tool)
    if isinstance(message, Unscored):
        return message
    readings = [read_objects(text) for text in message.texts]
    evidence = _weighed([found for reading in readings for found in reading.found], fields)
    unsafe = _out_of_order(readings, fields)
    verdict = unsafe or _agreed(evidence)
    if isinstance(verdict, Verdict) or verdict.reason == "conflicting":
        return verdict
    return why_unscored(message, readings, evidence, verdict, unsafe is not None)


def why_unscored(
    message: Message, readings: Sequence[Reading], evidence: Evidence, fault: Unscored, unsafe: bool
) -> Unscored:
    """The reason that says most about a reply without a verdict."""
    said = " ".join(message.texts)
    complete = bool(evidence.invalid or evidence.incomplete) and not unsafe
    if message.finish_reason in FILTERED and not complete:
        return unscored("content_filter", "the server's filter cut the reply", said)
    if message.refusal:
        return unscored("refused", "the judge refused", message.refusal)
    silent = not (complete or evidence.broken or evidence.verdicts)
    if silent and any(_refuses(reading.prose) for reading in readings):
        return unscored("refused", "the judge refused", said)
    if message.finish_reason in CUT_SHORT and not complete:
        return unscored("truncated", "the reply was cut at the token limit", said)
    if _is_blank(said):
        return Unscored("no_reply", "the reply has no text")
    return fault if fault.detail else unscored("unreadable", "no verdict", said)


# --- the parts of a reply ----------------------------------------------------------------------------------------


def message_of(reply: object, asked_tool: str | None) -> Message | Unscored:
    """The parts of a chat completion, the first of several choices; or why there are none."""
    if not isinstance(reply, Mapping):
        return unscored("unreadable", "not a chat completion", repr(type(reply)))
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    error = reply.get("error") or (choice.get("error") if isinstance(choice, Mapping) else None)
    if not error and not choices and reply.get("object") == "error":
        error = reply
    if error:
        said = error.get("message") if isinstance(error, Mapping) else error
        return unscored("server_error", "the server answered with an error", said if isinstance(said, str) else "")
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        return Unscored("no_reply", "the reply has no message")
    texts, refusals = _content(message.get("content"))
    refusal = message.get("refusal")
    if isinstance(refusal, str) and not _is_blank(refusal):
        refusals.insert(0, refusal)
    finish = choice.get("finish_reason")
    texts.extend(_asked_arguments(message, asked_tool))
    return Message(tuple(texts), _plain(finish) if isinstance(finish, str) else "", " ".join(refusals))


def _content(content: object) -> tuple[list[str], list[str]]:
    """The text of a message and its refusals; of a list of parts only text parts count, joined as they stand."""
    if isinstance(content, str):
        return [content], []
    texts: list[str] = []
    refusals: list[str] = []
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping):
            text, refusal = part.get("text"), part.get("refusal")
            if part.get("type") in ("text", "output_text") and isinstance(text, str):
                texts.append(text)
            elif part.get("type") == "refusal" and isinstance(refusal, str) and not _is_blank(refusal):
                refusals.append(refusal)
    return (["".join(texts)] if texts else []), refusals


def _asked_arguments(message: Mapping[str, Any], asked_tool: str | None) -> Iterator[str]:
    if asked_tool is None:
        return
    calls = message.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
    for function in [*functions, message.get("function_call")]:
        if isinstance(function, Mapping) and function.get("name") == asked_tool:
            yield _as_text(function.get("arguments"))


def _integer(digits: str) -> int | float:
    """The number; as a float where Python would refuse to convert so many digits."""
    return int(digits) if len(digits) < 4000 else float(digits)


def _as_text(arguments: object) -> str:
    """Arguments as JSON text: some servers send them as an object instead."""
    if isinstance(arguments, str):
        return arguments
    try:
        return json.dumps(arguments)
    except (ValueError, TypeError, RecursionError):
        return ""


# --- what the objects say ----------------------------------------------------------------------------------------


def _weighed(found: Sequence[Found], fields: Sequence[VerdictField]) -> Evidence:
    evidence = Evidence()
    names = {_plain(entry.name) for entry in fields}
    for one in found:
        speakers = list(_speakers(one.value, names))
        if not one.intact:
            if speakers or any(name in _plain(one.text) for name in names):
                evidence.broken.append(one.text)
            evidence.legible.extend(_grades(members, fields).values for members, _ in speakers)
            continue
        for members, n_around in speakers:
            _weigh(evidence, _grades(members, fields), n_around, one.text)
    return evidence


def _weigh(evidence: Evidence, grades: _Grades, n_around: int, text: str) -> None:
    if grades.clash:
        evidence.clashes.append(f"{grades.clash} twice with different values: {text[:_MAX_DETAIL]}")
    elif n_around > 1:
        evidence.invalid.append(f"the verdict stands too deep: {text[:_MAX_DETAIL]}")
    elif grades.invalid:
        evidence.invalid.append(grades.invalid)
    elif grades.missing:
        evidence.incomplete.append(f"{grades.missing} is missing: {text[:_MAX_DETAIL]}")
        evidence.legible.append(grades.values)
    else:
        evidence.verdicts.append(Verdict(grades.values, grades.reason))


def _speakers(value: object, names: set[str]) -> Iterator[tuple[Members, int]]:
    """The outermost objects that hold a field, in their order, each with the number of containers around it."""
    waiting: list[tuple[object, int]] = [(value, 0)]
    while waiting:
        inner, n_around = waiting.pop()
        if isinstance(inner, Members):
            if any(_plain(key) in names for key, _ in inner):
                yield inner, n_around
                continue
            inner = [member for _, member in inner]
        if isinstance(inner, list):
            waiting.extend((entry, n_around + 1) for entry in reversed(inner))


@dataclass(slots=True)
class _Grades:
    """One object read as a verdict: the values that are valid, and the first of each kind of fault."""

    values: dict[str, Value] = field(default_factory=dict)
    reason: str | None = None
    missing: str = ""
    invalid: str = ""
    clash: str = ""


def _grades(members: Members, fields: Sequence[VerdictField]) -> _Grades:
    by_key: dict[str, list[Any]] = {}
    for key, value in members:
        by_key.setdefault(_plain(key), []).append(value)
    grades = _Grades()
    for entry in fields:
        given = by_key.pop(_plain(entry.name), [])
        read = [_value(value, entry) for value in given]
        if not read:
            grades.missing = grades.missing or entry.name
        elif any(value != read[0] for value in read):
            grades.clash = grades.clash or entry.name
        elif read[0] is None:
            grades.invalid = grades.invalid or f"{entry.name} is {_shown(given[0])}, expected {_menu(entry)}"
        else:
            grades.values[entry.name] = read[0]
    for key, extras in by_key.items():  # lists and objects are not compared: no reason is one
        if len({value for value in extras if not isinstance(value, list)}) > 1:
            grades.clash = grades.clash or key
    reason = by_key.get("reason", [None])[0]
    grades.reason = reason if isinstance(reason, str) else None
    return grades


def _agreed(evidence: Evidence) -> Verdict | Unscored:
    """The verdict that all objects allow; else unreadable (with no detail where there is nothing) or conflicting."""
    if evidence.clashes:
        return unscored("conflicting", "", evidence.clashes[0])
    if not evidence.verdicts:
        faults = evidence.invalid or evidence.incomplete
        if faults:
            return unscored("unreadable", "", faults[0])
        return unscored("unreadable", "broken JSON", evidence.broken[0]) if evidence.broken else Unscored("unreadable")
    first = evidence.verdicts[0]
    for other in [verdict.values for verdict in evidence.verdicts[1:]] + evidence.legible:
        for name, value in other.items():
            if value != first.values[name]:
                return unscored("conflicting", f"{name} is both", f"{first.values[name]} and {value}")
    if evidence.invalid:
        return unscored("conflicting", "a verdict beside an invalid one", evidence.invalid[0])
    return first


def _out_of_order(readings: Sequence[Reading], fields: Sequence[VerdictField]) -> Unscored | None:
    """Why nothing found in the readings can be trusted; None where it can."""
    names = {_plain(entry.name) for entry in fields}
    for reading in readings:
        if reading.open_reasoning:
            return Unscored("unreadable", "the reply ends while still reasoning")
        if reading.tangled:
            return Unscored("unreadable", "the reply is too tangled to read")
        # A verdict that lost its brace, or whose string was left too early: what was found may be quoted in it.
        if any(_plain(key) in names for key in reading.loose_keys()):
            return unscored("unreadable", "a field stands outside any object", reading.prose)
    return None


# --- single values and texts --------------------------------------------------------------------------------------


def _value(value: object, entry: VerdictField) -> Value | None:
    """The value of a field as its kind allows it; None for everything else."""
    text = _PADDING.sub("", value).strip() if isinstance(value, str) else None
    if entry.kind == "score":
        return _score(value, text, entry)
    if entry.kind == "boolean":
        if isinstance(value, bool):
            return value
        if isinstance(value, Number):
            return _BOOLEANS.get(value.text)
        return None if text is None else _BOOLEANS.get(text.casefold())
    if isinstance(value, Number):
        text = value.text
    menu = {choice.casefold(): choice for choice in entry.choices}
    return None if text is None else menu.get(text.casefold())


def _score(value: object, text: str | None, entry: VerdictField) -> int | None:
    if isinstance(value, Number):
        match = _WHOLE_NUMBER.fullmatch(value.text)
    else:
        match = None if text is None else _SCORE_TEXT.fullmatch(text)
        if match and match[2] is not None and int(match[2]) != entry.high:
            return None
    return int(match[1]) if match and entry.low <= int(match[1]) <= entry.high else None


def _menu(entry: VerdictField) -> str:
    if entry.kind == "boolean":
        return "true or false"
    return f"a whole number from {entry.low} to {entry.high}" if entry.kind == "score" else " or ".join(entry.choices)


def _plain(key: str) -> str:
    return _KEY_NOISE.sub("", key).casefold()


def _is_blank(text: str) -> bool:
    return not _PADDING.sub("", text).strip()


def _refuses(prose: str) -> bool:
    """True when one of the first sentences declines to judge."""
    start = re.sub(r"^\W+|[*_]", "", prose[:1000].replace("’", "'").lower())
    sentences = [re.sub(r"^\W+", "", sentence) for sentence in _SENTENCE_END.split(start)[:3]]
    return any(_REFUSAL_ENGLISH.match(sentence) or _REFUSAL_CHINESE.match(sentence) for sentence in sentences)


def _shown(value: object) -> str:
    if isinstance(value, Number):
        return value.text[:_MAX_DETAIL]
    if isinstance(value, list):
        return "an object" if isinstance(value, Members) else "a list"
    return "null" if value is None else json.dumps(value)[:_MAX_DETAIL] if isinstance(value, bool) else repr(value)


def unscored(reason: UnscoredReason, said: str, found: str) -> Unscored:
    """`Unscored` whose detail is one printable line."""
    text = f"{said}: {found[:1000]}" if said and found else said or found[:1000]
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return Unscored(reason, line if len(line) <= _MAX_DETAIL else line[: _MAX_DETAIL - 1] + "…")
