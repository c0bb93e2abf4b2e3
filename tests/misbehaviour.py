"""What the servers of the tests say and do wrong, as small values, and the requests they get; no socket is opened here.

The servers themselves are in `servers`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import takewhile
from typing import Any

REPEAT_HEADER = "x-rag-judge-repeat"
PASS_FAIL = {name: {"type": "boolean"} for name in ("grounded", "complete", "should_abstain")} | {
    "reason": {"type": "string"}
}

# --- what a server can do instead of replying ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Respond:
    """A whole HTTP response, right or wrong."""

    status: int
    body: str
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Truncated:
    """A 200 that promises the whole body, sends its first bytes, and closes."""

    body: str
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Drip:
    """A 200 whose body comes a few bytes at a time, with a pause before each."""

    body: str
    pause_s: float
    n_bytes: int = 1


@dataclass(frozen=True, slots=True)
class Reset:
    """A connection reset (RST): before anything is sent, or after the headers and the start of a body."""

    after_headers: bool = False


@dataclass(frozen=True, slots=True)
class Close:
    """An orderly end of the connection instead of a response."""


@dataclass(frozen=True, slots=True)
class Never:
    """No answer at all, until the client goes away or the server is closed."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """Bytes that are no HTTP, then the end of the connection."""

    sent: bytes = b"\x00\x9f\xfe no protocol \xff\r\n\r\n"


Misbehaviour = Respond | Truncated | Drip | Reset | Close | Never | Garbage


def completion(
    text: str | None, *, finish_reason: str = "stop", model: str = "judge-1", n_prompt_tokens: int = 1
) -> str:
    """The body of a chat completion that says this text; tokens are counted as one for two characters."""
    n_tokens = (len(text or "") + 1) // 2
    message = {"role": "assistant", "content": text}
    usage = {
        "prompt_tokens": n_prompt_tokens,
        "completion_tokens": n_tokens,
        "total_tokens": n_prompt_tokens + n_tokens,
    }
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": model, "usage": usage}
    return json.dumps(body | {"choices": [choice]}, ensure_ascii=False)


def failure(
    status: int, message: str, *, type: str = "invalid_request_error", code: str | None = None, param: str | None = None
) -> Respond:
    """An error as OpenAI words it."""
    error = {"message": message, "type": type, "param": param, "code": code}
    return Respond(status, json.dumps({"error": error}))


def rate_limited(retry_after: float | datetime | None = None) -> Respond:
    """A 429; Retry-After as seconds, as an HTTP date (of an aware UTC time), or missing."""
    error = failure(429, "Rate limit reached", type="requests", code="rate_limit_exceeded")
    if retry_after is None:
        return error
    is_date = isinstance(retry_after, datetime)
    value = format_datetime(retry_after, usegmt=True) if is_date else f"{retry_after:g}"  # type: ignore[arg-type]
    return Respond(429, error.body, (("Retry-After", value),))


def refused_parameter(param: str) -> Respond:
    """A 400 that names the parameter which is not supported."""
    message = f"Unsupported parameter: '{param}' is not supported with this model."
    return failure(400, message, code="unsupported_parameter", param=param)


UNAUTHORIZED = failure(401, "Incorrect API key provided.", code="invalid_api_key")
NO_SUCH_MODEL = failure(404, "The model `judge-9` does not exist.", code="model_not_found")
SERVER_ERROR = failure(500, "The server had an error.", type="server_error")
UNAVAILABLE = Respond(503, "upstream connect error or disconnect", content_type="text/plain")
HTML_200 = Respond(200, "<!doctype html><html><body>Sign in</body></html>", content_type="text/html")
ERROR_200 = Respond(200, json.dumps({"error": {"message": "Provider returned error", "code": 502}}))
CHOICES_NULL = Respond(200, json.dumps({"object": "chat.completion", "model": "judge-1", "choices": None}))
CHOICES_EMPTY = Respond(200, json.dumps({"object": "chat.completion", "model": "judge-1", "choices": []}))
NOT_JSON = Respond(200, '{"choices": [{"message": {"content": "cut')
WRONG_CONTENT_TYPE = Respond(200, completion("{}"), content_type="text/plain")

# What may be over at the next try. Left out are Never and Drip, which end by the client's own limit of time.
PASSING: tuple[Misbehaviour, ...] = (
    rate_limited(0),
    SERVER_ERROR,
    UNAVAILABLE,
    Reset(),
    Reset(after_headers=True),
    Close(),
    Truncated(completion("{}"), 20),
    Garbage(),
    HTML_200,
    ERROR_200,
    CHOICES_NULL,
    NOT_JSON,
)

# --- troubles by name: what becomes of the body of a reply ---------------------------------------------------------

Trouble = Callable[[str], Misbehaviour]


def _instead(what: Misbehaviour) -> Trouble:
    """This in place of the reply."""
    return lambda body: what


def _with_prompt_tokens(body: str, n_prompt_tokens: int) -> str:
    """The reply of a server that says it read so many tokens of the prompt."""
    reply = json.loads(body)
    reply["usage"]["prompt_tokens"] = n_prompt_tokens
    return json.dumps(reply)


# Over at the next try.
PASSING_TROUBLES: Mapping[str, Trouble] = {
    "408": _instead(failure(408, "Request timeout")),
    "409": _instead(failure(409, "The resource is locked", type="conflict")),
    "429": _instead(rate_limited()),
    "429 for no time": _instead(rate_limited(0)),
    "500": _instead(SERVER_ERROR),
    "502": _instead(Respond(502, "<html><h1>502 Bad Gateway</h1></html>", content_type="text/html")),
    "503": _instead(UNAVAILABLE),
    "529": _instead(failure(529, "Overloaded", type="overloaded_error")),
    "reset": _instead(Reset()),
    "reset after headers": _instead(Reset(after_headers=True)),
    "closed": _instead(Close()),
    "truncated": lambda body: Truncated(body, len(body) // 2),
    "garbage": _instead(Garbage()),
    "garbage in a 200": _instead(Respond(200, "\x00\x01 no reply", content_type="application/octet-stream")),
    "HTML": _instead(HTML_200),
    "error in a 200": _instead(ERROR_200),
    "choices null": _instead(CHOICES_NULL),
    "choices empty": _instead(CHOICES_EMPTY),
    "empty body": _instead(Respond(200, "")),
    "half a body": lambda body: Respond(200, body[: len(body) // 2]),
}
# Over at the next try as well, but each costs the client a second, or its whole time limit.
SLOW_TROUBLES: Mapping[str, Trouble] = {
    "429 for a second": _instead(rate_limited(1)),
    "429 until a date": lambda body: rate_limited(datetime.now(UTC) + timedelta(seconds=1)),
    "silence": _instead(Never()),
    "slow drip": lambda body: Drip(body, 0.5, 8),
}
# The reply itself, whole, in a form that servers and proxies are known to give it.
ODD_FORMS: Mapping[str, Trouble] = {
    "as text/plain": lambda body: Respond(200, body, content_type="text/plain"),
    "as text/html": lambda body: Respond(200, body, content_type="text/html; charset=utf-8"),
    "without a content type": lambda body: Respond(200, body, content_type=""),
    "after blank lines": lambda body: Respond(200, f"\n\n   \n{body}\n"),
    "indented": lambda body: Respond(200, json.dumps(json.loads(body), indent=4)),
    "and no more": lambda body: Respond(200, body, (("Connection", "close"),)),
    "dripped": lambda body: Drip(body, 0.01, len(body) // 4),
}
# The same at each try.
LASTING_TROUBLES: Mapping[str, Trouble] = {
    "filtered": _instead(failure(400, "The prompt was blocked.", code="content_filter")),
    "filtered reply": _instead(Respond(200, completion(None, finish_reason="content_filter"))),
    "too long": _instead(failure(400, "This model's maximum context length is 8192 tokens.")),
    "too large": _instead(Respond(413, "<html>Request Entity Too Large</html>", content_type="text/html")),
    "cut prompt": lambda body: Respond(200, _with_prompt_tokens(body, 256)),
    "prose": _instead(Respond(200, completion("The answer looks fine to me."))),
    "two minds": _instead(
        Respond(200, completion("".join(json.dumps(dict.fromkeys(PASS_FAIL, said)) for said in (True, False))))
    ),
    "refusal": _instead(Respond(200, completion("I'm sorry, but I can't help with that."))),
    "cut reply": _instead(Respond(200, completion('{"grounded": tr', finish_reason="length"))),
    "no text": _instead(Respond(200, completion(""))),
    "broken server": _instead(SERVER_ERROR),
    "hangs up": _instead(Close()),
}
# The same at each try as well; each costs the client its time limit as often as it tries.
LOST_CALLS: Mapping[str, Trouble] = {name: SLOW_TROUBLES[name] for name in ("silence", "slow drip")}
TROUBLES: Mapping[str, Trouble] = {**PASSING_TROUBLES, **SLOW_TROUBLES, **ODD_FORMS, **LASTING_TROUBLES}

# --- what arrives --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it arrived; header names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    number: int  # of this server, from 1
    times_seen: int  # how often this body came with this repeat header, this time included

    @property
    def identity(self) -> str:
        """What makes it the same request at another try: the repeat header and the body, whatever its key order."""
        return json.dumps([self.headers.get(REPEAT_HEADER), self.body], sort_keys=True)


@dataclass(frozen=True, slots=True)
class JudgeRequest(Request):
    """A request for a chat completion."""

    @property
    def text(self) -> str:
        """The contents of all messages, one after another."""
        return "\n".join(str(message.get("content")) for message in self.body.get("messages", ()))

    @property
    def opening(self) -> str:
        """The contents before the first message of the assistant, which all calls of a case have in common."""
        before = takewhile(lambda message: message.get("role") != "assistant", self.body.get("messages", ()))
        return "\n".join(str(message.get("content")) for message in before)


class Faults:
    """Picks a misbehaviour, or None, by the seed, the request and which try it is: not by order or time."""

    def __init__(
        self, seed: int, rate: float, kinds: Sequence[Misbehaviour] = PASSING, *, most_in_a_row: int = 2
    ) -> None:
        """`rate` in [0, 1]; after `most_in_a_row` faults in a row a request is let through once."""
        self._seed, self._rate, self._kinds, self._most = seed, rate, tuple(kinds), most_in_a_row

    def __call__(self, request: Request) -> Misbehaviour | None:
        """What goes wrong with this try of this request; None when nothing does."""
        chance = self.chance(request)
        return None if chance is None else chance.choice(self._kinds)

    def chance(self, request: Request) -> random.Random | None:
        """What to draw the fault of this try from; None when nothing goes wrong with it."""
        if not self._rate:
            return None  # without a look at the tries before: a benchmark sends one body thousands of times
        n_in_a_row, found = 0, None
        for attempt in range(1, request.times_seen + 1):
            chance = random.Random(f"{self._seed}\n{attempt}\n{request.identity}")
            is_faulty = chance.random() < self._rate and n_in_a_row < self._most
            n_in_a_row = n_in_a_row + 1 if is_faulty else 0
            found = chance if is_faulty else None
        return found


class Troubles:
    """Picks what happens to a reply, by its name in TROUBLES, or None: by seed, request and try, as `Faults` does."""

    SLOW = 0.01  # share of the passing faults that are slow ones
    LOST = 0.0005  # share of the calls that are lost, if there are lasting troubles at all

    def __init__(self, seed: int, *, passing: float = 0.0, odd: float = 0.0, lasting: float = 0.0) -> None:
        """Shares in [0, 1]: of the tries that go wrong, of the replies in an odd form, of the cases in lasting trouble.

        A lasting trouble meets every call of its case, about half of them, or those alone that are no second asking.
        """
        self._seed, self._odd, self._lasting = seed, odd, lasting
        self._faults = Faults(seed, passing)

    def __call__(self, request: JudgeRequest) -> str | None:
        """The name of what happens to the reply to this request; None when it is sent as it should be."""
        chance = self._faults.chance(request)
        if chance is not None:
            return chance.choice(list(SLOW_TROUBLES if chance.random() < self.SLOW else PASSING_TROUBLES))
        of_call = random.Random(f"{self._seed}\ncall\n{request.identity}")
        is_lost, is_among_half, is_odd = (
            of_call.random() < share for share in (self.LOST * (self._lasting > 0), 0.5, self._odd)
        )
        if is_lost:
            return of_call.choice(list(LOST_CALLS))
        return self._lasting_trouble(request, is_among_half) or (of_call.choice(list(ODD_FORMS)) if is_odd else None)

    def _lasting_trouble(self, request: JudgeRequest, is_among_half: bool) -> str | None:
        of_case = random.Random(f"{self._seed}\ncase\n{request.opening}")
        if of_case.random() >= self._lasting:
            return None
        name = of_case.choice(list(LASTING_TROUBLES))
        meets = of_case.choice((True, is_among_half, request.text == request.opening))
        return name if meets else None


def seeded_reply(seed: int) -> Callable[[JudgeRequest], str]:
    """A reply function whose verdicts obey the request's JSON schema and depend on nothing but seed and request.

    Neither order nor restarts count: the draw is from the messages and the repeat header; without one, the body.
    Without a schema the verdict is one of pass and fail.
    """

    def reply(request: JudgeRequest) -> str:
        told_apart_by = request.headers.get(REPEAT_HEADER) or json.dumps(request.body, sort_keys=True)
        chance = random.Random(f"{seed}\n{told_apart_by}\n{request.text}")
        schema = (request.body.get("response_format") or {}).get("json_schema", {}).get("schema", {})
        fields = schema.get("properties") or PASS_FAIL
        return json.dumps({name: _drawn(kind, chance) for name, kind in fields.items()})

    return reply


def _drawn(kind: Mapping[str, Any], chance: random.Random) -> Any:
    """A value that a property of a JSON schema admits."""
    if "enum" in kind:
        return chance.choice(kind["enum"])
    if kind["type"] == "boolean":
        return chance.random() < 0.5
    if kind["type"] == "integer":
        return chance.randint(kind.get("minimum", 1), kind.get("maximum", 5))
    return f"seeded {chance.randrange(1000)}"[: kind.get("maxLength")]
