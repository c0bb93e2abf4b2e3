"""What one HTTP response of a judge means: a reply, a reason to try again, a parameter to give up, or the end.

Pure: status, headers and body in, a value out. OpenAI-compatible servers differ in the shape of their errors, so
the text is searched where the fields say nothing. How a request is sent, and how often, is in `judge`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from rag_judge.records import Usage

Fallback = Literal[
    "drop_temperature",
    "drop_seed",
    "drop_logprobs",
    "max_completion_tokens",
    "raise_max_tokens",
    "response_format",
    "system_to_user",
    "n_single",
    "stream_only",
    "thinking_off",
    "drop_field",
]
CallCause = Literal["content_filter", "context_too_long", "server_error"]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A chat completion came; whether a verdict stands in it is not said here."""

    finish_reason: str | None
    model: str | None
    usage: Usage


@dataclass(frozen=True, slots=True)
class TryAgain:
    """A passing fault; `wait_s` is what the server asked for, if it did."""

    detail: str
    wait_s: float | None = None
    too_fast: bool = False  # the server refused one request too many


@dataclass(frozen=True, slots=True)
class FallBack:
    """The server refused one parameter; the request may be sent again without it."""

    what: Fallback
    detail: str
    field: str | None = None  # which one, for drop_field


@dataclass(frozen=True, slots=True)
class CaseRefused:
    """This request can never be answered; the run goes on without it."""

    cause: CallCause
    detail: str


@dataclass(frozen=True, slots=True)
class RunRefused:
    """No request can be answered: a wrong key, a spent quota, an unknown model, a wrong address."""

    cause: Literal["quota", "auth", "config", "bad_request"]
    detail: str


Meaning = Accepted | TryAgain | FallBack | CaseRefused | RunRefused

_LONG = re.compile(
    r"context.?(length|size|window)|maximum context|too many tokens|prompt is too long|too long for", re.I
)
_FILTER = re.compile(r"content.?(filter|management)|responsibleai|content policy|safety system", re.I)
_QUOTA = re.compile(
    r"insufficient.?(quota|balance|credit|funds)|exceeded your current quota"
    r"|billing.{0,20}(limit|not active|inactive|disabled)|arrears|余额不足",
    re.I,
)
_MODEL = re.compile(r"model.{0,80}(not (found|exist)|does not exist|unknown)|(unknown|no such|invalid) model", re.I)
_PARAMETERS: tuple[tuple[Fallback, re.Pattern[str]], ...] = (
    # The first whose name stands in the error; max_completion_tokens is the advice given about max_tokens.
    (
        "max_completion_tokens",
        re.compile(r"max_tokens.*(not supported|unsupported|instead|deprecated)|use 'max_completion", re.I | re.S),
    ),
    (
        "raise_max_tokens",
        re.compile(r"max_(completion_)?tokens.{0,60}(too (small|low)|at least|minimum|limit was reached)", re.I | re.S),
    ),
    (
        "thinking_off",
        re.compile(r"enable_thinking.{0,60}(false|not supported)|thinking.{0,60}non-?stream", re.I | re.S),
    ),
    (
        "stream_only",
        re.compile(
            r"only.{0,30}support.{0,20}stream|(requires?|must (use|be|set)).{0,30}stream"
            r"|stream.{0,30}must be (set to )?true|non-?stream\w*.{0,40}(not|un)\s?support|stream.{0,10}(is )?required",
            re.I | re.S,
        ),
    ),
    ("drop_temperature", re.compile(r"temperature", re.I)),
    (
        "response_format",
        re.compile(r"response_format|json_schema|json_object|structured output|json mode|guided", re.I),
    ),
    ("drop_seed", re.compile(r"\bseed\b", re.I)),
    ("drop_logprobs", re.compile(r"logprobs", re.I)),
    ("n_single", re.compile(r"\bn\b.{0,20}(value|must|=|only)|only n ?= ?1|invalid n\b", re.I)),
    ("system_to_user", re.compile(r"system.{0,20}(role|message|prompt)|role.{0,20}system", re.I)),
)


def meaning_of(status: int, headers: Mapping[str, str], body: str, now: datetime, url: str) -> Meaning:
    """What a response means; `headers` with lower-case names, `now` for Retry-After dates, `url` for the message."""
    parsed = _json(body)
    if status == 200:
        return _meaning_of_200(headers, body, parsed, now, url)
    text = error_text(parsed, body)
    detail = f"HTTP {status} from {url}: {text}"
    named = f"{text} {_field(parsed, 'code')} {_field(parsed, 'type')} {_field(parsed, 'param')}"
    if status == 413 or (status in (400, 422) and _LONG.search(named)):
        return CaseRefused("context_too_long", detail)
    if status in (400, 403, 422) and _FILTER.search(f"{named} {body[:2000]}"):
        return CaseRefused("content_filter", detail)
    if status == 402 or (status in (400, 403, 429) and _QUOTA.search(named)):
        return RunRefused("quota", detail)
    if status in (401, 403):
        return RunRefused("auth", detail)
    if 300 <= status < 400:
        target = headers.get("location", "another address")
        return RunRefused("config", f"HTTP {status} from {url}: it redirects to {target}; name the right address")
    passes = status in (408, 409, 425, 429) or status >= 500
    if status in (404, 405) or (_MODEL.search(named) and not passes):
        hint = "" if _MODEL.search(named) else missing_v1_hint(url)
        return RunRefused("config", detail + hint)
    if status in (400, 422):
        return _refused_parameter(named, detail)
    if passes:
        return TryAgain(detail, retry_after_s(headers, now), too_fast=status == 429)
    return RunRefused("bad_request", detail)


def missing_v1_hint(url: str) -> str:
    """Advice for an address that answers, but not as a model server: most of them want `/v1` in the base URL."""
    return "" if "/v1" in url else " (no /v1 in the base URL: most servers want it to end in /v1)"


def error_text(parsed: Any, body: str) -> str:
    """The server's own words out of an error body of any shape, on one line and at most 300 characters."""
    for shape in (parsed[0] if isinstance(parsed, list) and parsed else parsed,):
        if isinstance(shape, dict):
            inner = shape.get("error", shape)
            if isinstance(inner, dict):
                found = inner.get("message") or inner.get("detail") or inner.get("code") or inner
            else:
                found = inner
            text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
            return " ".join(text.split())[:300]
    return " ".join(body.split())[:300] or "empty body"


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that the server asks to wait: `retry-after-ms`, or `retry-after` as seconds or as a date."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if value is None:
        return None
    if (seconds := _number(value)) is not None:
        return seconds
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (until if until.tzinfo else until.replace(tzinfo=UTC)).timestamp() - now.timestamp())


def reply_text(raw: str) -> str:
    """The assistant's text in a raw reply, at most 4,000 characters; "" where there is none."""
    try:
        content = json.loads(raw)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return ""
    return content[:4000] if isinstance(content, str) else ""


def whole(body: str) -> str:
    """A streamed reply put together into the chat completion it would have been; any other body as it is.

    A stream that breaks off, without `[DONE]` or a reason for its end, stays what it is: no chat completion.
    """
    if not body.lstrip().startswith(("data:", ":", "event:")):
        return body
    chunks, ended, message = [], False, {"role": "assistant", "content": "", "reasoning_content": ""}
    made: dict[str, Any] = {"object": "chat.completion", "model": None, "usage": None}
    finish = None
    for line in body.splitlines():
        text = line.removeprefix("data:").strip()
        if not line.startswith("data:") or not text:
            continue
        if text == "[DONE]":
            ended = True
            continue
        chunk = _json(text)
        if not isinstance(chunk, dict):
            return body
        if chunk.get("error"):
            return text
        chunks.append(chunk)
        made = {name: chunk.get(name) or made[name] for name in made}
        choices = chunk.get("choices")
        first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        finish = first.get("finish_reason") or finish
        said = first.get("delta")
        delta = said if isinstance(said, dict) else {}
        message["content"] += str(delta.get("content") or "")
        message["reasoning_content"] += str(delta.get("reasoning_content") or delta.get("reasoning") or "")
    if not chunks or not (ended or finish):
        return body
    made["object"] = "chat.completion"
    return json.dumps(made | {"choices": [{"index": 0, "finish_reason": finish, "message": message}]})


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None


def _meaning_of_200(headers: Mapping[str, str], body: str, parsed: Any, now: datetime, url: str) -> Meaning:
    if not isinstance(parsed, dict):
        if "html" in headers.get("content-type", "") or body.lstrip()[:1] == "<":
            return RunRefused(
                "config", f"{url} answers with a web page, not with a model's reply{missing_v1_hint(url)}"
            )
        return TryAgain(
            f"{url} answered 200 with something that is no chat completion: {' '.join(body.split())[:120]!r}"
        )
    if parsed.get("error") and not parsed.get("choices"):
        # Some gateways report a provider's error inside a 200, with the status it would have had as its code.
        code = _field(parsed, "code")
        status = int(code) if code.isdecimal() and 400 <= int(code) < 600 else 500
        return meaning_of(status, headers, body, now, url)
    choices = parsed.get("choices")
    if not isinstance(choices, list) or not choices:
        return TryAgain(f"{url} answered 200 without a choice")
    first = choices[0] if isinstance(choices[0], dict) else {}
    usage = parsed.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    finish, model = first.get("finish_reason"), parsed.get("model")
    return Accepted(
        finish_reason=finish if isinstance(finish, str) else None,
        model=model if isinstance(model, str) else None,
        usage=Usage(_count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens"))),
    )


def _refused_parameter(named: str, detail: str) -> Meaning:
    """The parameter that a 400 is about, from the server's own field or else its words."""
    for what, pattern in _PARAMETERS:
        if pattern.search(named):
            return FallBack(what, detail)
    return RunRefused("bad_request", detail)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12 else None


def _field(parsed: Any, name: str) -> str:
    """A field of the error object as text, wherever the server put it; "" when it is missing."""
    shape = parsed[0] if isinstance(parsed, list) and parsed else parsed
    if not isinstance(shape, dict):
        return ""
    inner = shape.get("error")
    value = inner.get(name) if isinstance(inner, dict) else shape.get(name)
    return "" if value is None else str(value)


def _json(body: str) -> Any:
    try:
        return json.loads(body.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None
