"""Notices of a nightly job to chats: which ones the environment names, and what each said to the notice it was sent.

Whatever a receiver does, the night goes on: a failure is a `Sent` that says so. Addresses and secrets come from the
environment alone; both are keys, and neither stands in any text that leaves here, save the request itself. What is
sent is made in `notify_messages`.

The reply's own code decides: HTTP is 200 when Feishu, DingTalk or WeCom refuse. Slack says "ok", or a word and a 4xx
(api.slack.com/changelog/2016-05-17-changes-to-errors-for-incoming-webhooks); some that speak its language, JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_plus, urlsplit

from rag_judge.addresses import is_local
from rag_judge.notify_messages import Channel, ChannelName, Notice, body_of, is_address, url_of
from rag_judge.notify_words import WORDS, NoticeDecision, cut_to_bytes, one_line

if TYPE_CHECKING:
    import aiohttp

__all__ = [
    "VARIABLES",
    "Channel",
    "ChannelName",
    "Notice",
    "NoticeDecision",
    "Sent",
    "body_of",
    "channels_of",
    "cut_to_bytes",
    "send",
    "send_async",
    "url_of",
]

PLACES: Mapping[ChannelName, tuple[str, str | None]] = {  # where its address and its secret stand in the environment
    "slack": ("RAG_JUDGE_SLACK_URL", None),
    "feishu": ("RAG_JUDGE_FEISHU_URL", "RAG_JUDGE_FEISHU_SECRET"),
    "dingtalk": ("RAG_JUDGE_DINGTALK_URL", "RAG_JUDGE_DINGTALK_SECRET"),
    "wecom": ("RAG_JUDGE_WECOM_URL", None),
    "webhook": ("RAG_JUDGE_WEBHOOK_URL", None),
}
VARIABLES = tuple(variable for place in PLACES.values() for variable in place if variable is not None)

TIMEOUT_S = 10.0
WAIT_S = 1.0  # before the second try, when the receiver names no time
LONGEST_WAIT_S = 5.0  # a receiver that asks for more is not tried again
LONGEST_REPLY = 65_536  # bytes that are read
LONGEST_DETAIL = 200  # characters

_SLACK_WORD = re.compile(r"[\w .,:-]{1,100}")  # ok, or what was wrong, such as invalid_payload
_CODES: Mapping[ChannelName, Sequence[tuple[str, str]]] = {  # where a code stands, and its message; the first decides
    "slack": (("ok", "error"), ("success", "error")),
    "feishu": (("code", "msg"), ("StatusCode", "StatusMessage")),
    "dingtalk": (("errcode", "errmsg"),),
    "wecom": (("errcode", "errmsg"),),
}
_LEAST_KEY = 4  # characters of a part of an address that is kept out of texts
_NO_KEYS = ("services", "open-apis", "cgi-bin", "webhook", "webhooks", "robot", "send", "hook", "hooks", "workflows")


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a notice at one receiver, in words that hold no address and no secret."""

    channel: ChannelName
    ok: bool
    detail: str  # the receiver's own code and message, or why there is none


def channels_of(environment: Mapping[str, str], lang: str = "en") -> tuple[list[Channel], list[str]]:
    """The receivers that the environment names, and what is wrong with those that cannot be used; blank is not set."""
    channels, problems = [], []
    for name, (url_variable, secret_variable) in PLACES.items():
        url = environment.get(url_variable, "").strip()
        secret = environment.get(secret_variable or "", "").strip() or None
        variable = url_variable
        problem = None
        if secret is not None and not url:
            problem, variable = "secret_alone", secret_variable or ""
        elif url and not is_address(url):
            problem = "no_address"
        elif secret is not None and not secret.isprintable():
            problem, variable = "no_secret", secret_variable or ""
        if problem is not None:
            words = WORDS[lang][problem]
            problems.append(words.format(variable=variable, url_variable=url_variable, channel=name))
        elif url:
            channels.append(Channel(name, url, secret))
    return channels, problems


# --- sending -------------------------------------------------------------------------------------------------------


def send(
    notice: Notice,
    channels: Sequence[Channel],
    now: datetime,
    lang: str,
    *,
    timeout_s: float = TIMEOUT_S,
    wait_s: float = WAIT_S,
) -> list[Sent]:
    """What became of the notice at each receiver, in their order; all are asked at once.

    Each gets a second try after a broken connection, a 5xx or a 429. It takes at most twice `timeout_s` and a wait of
    `LONGEST_WAIT_S`. Inside a running event loop, await `send_async`.
    """
    import asyncio

    return asyncio.run(send_async(notice, channels, now, lang, timeout_s=timeout_s, wait_s=wait_s))


async def send_async(
    notice: Notice,
    channels: Sequence[Channel],
    now: datetime,
    lang: str,
    *,
    timeout_s: float = TIMEOUT_S,
    wait_s: float = WAIT_S,
) -> list[Sent]:
    """As `send`."""
    import asyncio

    waits = (timeout_s, min(wait_s, LONGEST_WAIT_S))
    return list(await asyncio.gather(*(_sent(channel, notice, now, lang, *waits) for channel in channels)))


@dataclass(frozen=True, slots=True)
class _Reply:
    """What a receiver said; without status, why it said nothing."""

    said: str
    status: int | None = None
    wait_s: float | None = None  # before another try; None: another try would not be better


async def _sent(channel: Channel, notice: Notice, now: datetime, lang: str, timeout_s: float, wait_s: float) -> Sent:
    import asyncio

    words = WORDS[lang]
    if not is_address(channel.url):
        shown = {"variable": PLACES[channel.name][0], "channel": channel.name}
        return Sent(channel.name, False, words["no_address"].format(**shown))
    url = url_of(channel, now)
    try:
        body = body_of(channel, notice, lang, now)
    except (TypeError, ValueError, RecursionError) as fault:
        return Sent(channel.name, False, words["cannot_send"].format(said=type(fault).__name__))
    reply = await _post(url, body, words, timeout_s, wait_s)
    if reply.wait_s is not None:
        await asyncio.sleep(reply.wait_s)
        reply = await _post(url, body, words, timeout_s, wait_s)
    ok, detail = _outcome(channel.name, reply, words, lambda text: _redacted(text, channel, url))
    return Sent(channel.name, ok, one_line(detail)[:LONGEST_DETAIL])


async def _post(url: str, body: bytes, words: Mapping[str, str], timeout_s: float, wait_s: float) -> _Reply:
    import aiohttp

    limit = aiohttp.ClientTimeout(total=timeout_s)
    headers = {"Content-Type": "application/json; charset=utf-8"}
    try:
        async with (
            aiohttp.ClientSession(timeout=limit, trust_env=not is_local(url)) as session,
            session.post(url, data=body, headers=headers, allow_redirects=False) as response,
        ):
            raw = await _beginning(response)
            may_pass = response.status >= 500 or response.status == 429
            wait = _wait_of(response.headers.get("Retry-After", ""), wait_s) if may_pass else None
            return _Reply(raw.decode("utf-8", "replace"), response.status, wait)
    except TimeoutError:  # aiohttp's own are connection errors as well; it may have arrived, and is not sent twice
        return _Reply(words["no_answer"].format(timeout_s=timeout_s))
    except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as fault:
        return _Reply(words["fault"].format(said=_name_of(fault)), None, wait_s)
    except (aiohttp.ClientError, OSError, ValueError) as fault:
        return _Reply(words["cannot_send"].format(said=_name_of(fault)))


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    """The reply's body, or as much of it as is worth reading."""
    raw = b""
    async for piece in response.content.iter_chunked(8192):
        raw += piece
        if len(raw) >= LONGEST_REPLY:
            break
    return raw[:LONGEST_REPLY]


def _wait_of(retry_after: str, wait_s: float) -> float | None:
    """How long to wait before the second try; None when the receiver asks for longer than a night should wait."""
    asked_s = float(retry_after) if retry_after.strip().isdecimal() else wait_s
    return asked_s if asked_s <= LONGEST_WAIT_S else None


def _name_of(fault: Exception) -> str:
    """A fault without its text, which may hold the address."""
    reason = fault.strerror if isinstance(fault, OSError) else None
    return f"{type(fault).__name__}: {reason}" if reason else type(fault).__name__


# --- what it said --------------------------------------------------------------------------------------------------


def _outcome(
    name: ChannelName, reply: _Reply, words: Mapping[str, str], hide: Callable[[str], str]
) -> tuple[bool, str]:
    """Whether the receiver took the notice, by its own word where it has one, and what it said, keys hidden."""
    if reply.status is None:
        return False, hide(reply.said)
    if 300 <= reply.status < 400:
        return False, words["redirect"].format(status=reply.status)
    is_2xx = 200 <= reply.status < 300
    said = reply.said.strip()
    if name == "webhook":
        return is_2xx, f"HTTP {reply.status}" if is_2xx or not said else f"HTTP {reply.status}: {hide(said)}"
    if not said:
        return False, words["empty"].format(status=reply.status)
    if name == "slack" and _SLACK_WORD.fullmatch(said):
        return is_2xx and said == "ok", hide(said) if is_2xx else f"HTTP {reply.status}: {hide(said)}"
    found = _code_of(name, said)
    if found is None:
        return False, words["foreign"].format(status=reply.status, channel=name, said=hide(said))
    place, code, message = found
    shown = {"name": place, "code": json.dumps(code), "said": hide(message)}
    worded = words["code" if message else "code_alone"].format(**shown)
    is_success = code is True or (code is not False and code == 0)
    return is_2xx and is_success, worded if is_2xx else f"HTTP {reply.status}, {worded}"


def _code_of(name: ChannelName, said: str) -> tuple[str, int | bool, str] | None:
    """Where the vendor's code stands, the code, and its message; None when this is no reply of the vendor."""
    try:
        tree = json.loads(said)
    except (ValueError, RecursionError):
        return None
    for place, message in _CODES.get(name, ()):
        if isinstance(tree, dict) and place in tree:
            code, text = tree[place], tree.get(message)
            if type(code) is not (bool if name == "slack" else int):  # a False is no 0
                return None
            return place, code, text if isinstance(text, str) else ""
    return None


def _redacted(text: str, channel: Channel, url: str) -> str:
    """The text without the address, any telling part of it, or the secret, should a receiver repeat them."""
    parts = urlsplit(url)
    pairs = [pair.partition("=") for pair in parts.query.split("&")]
    pieces = {url, channel.url, channel.secret or "", parts.netloc, parts.hostname or "", parts.path, parts.query}
    pieces |= {parts.username or "", parts.password or "", parts.fragment, *parts.path.split("/")}
    pieces |= {value or name for name, _, value in pairs}
    pieces |= {unquote_plus(piece) for piece in pieces} | {quote(piece, safe="") for piece in pieces}
    telling = [piece for piece in pieces if len(piece) >= _LEAST_KEY and piece.lower() not in _NO_KEYS]
    for piece in sorted(telling, key=lambda piece: (-len(piece), piece)):
        text = re.sub(re.escape(piece), "[redacted]", text, flags=re.IGNORECASE)
    return text
