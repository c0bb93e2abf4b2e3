"""Real receivers of notices on loopback, which check what they are sent as Slack, Feishu, DingTalk and WeCom do.

    with ChatReceiver("feishu", secret="s", now_s=1767229200) as chat:
        ...  # chat.url, chat.bodies, chat.accepted, chat.pinged

Without a name it takes any JSON. `instead` says what it does in place of its own reply: to the first request, the
second, and so on; None, and after the last, it replies as the vendor does. Signatures are computed from RFC 2104 and
markup is read by rules of this module: nothing of what is tested helps to test it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Self
from urllib.parse import parse_qs, urlsplit

from tests.misbehaviour import Misbehaviour, Request, Respond
from tests.servers import _Loopback

ReceiverName = Literal["slack", "feishu", "dingtalk", "wecom", "webhook"]
TOKEN = "Tok3n-9f8e7d6c5b4a"  # part of every address here but the plain one's, as in the vendors' own
PATHS: Mapping[ReceiverName, str] = {
    "slack": f"/services/T00000001/B00000001/{TOKEN}",
    "feishu": f"/open-apis/bot/v2/hook/{TOKEN}",
    "dingtalk": f"/robot/send?access_token={TOKEN}",
    "wecom": f"/cgi-bin/webhook/send?key={TOKEN}",
    "webhook": "/",
}
HOUR_S = 3600


def hmac_sha256(key: bytes, message: bytes) -> bytes:
    """The HMAC of RFC 2104, section 2, over SHA-256."""
    if len(key) > 64:
        key = hashlib.sha256(key).digest()
    key = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key) + message).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in key) + inner).digest()


class Refusal(Exception):
    """What a vendor says when it does not take a message."""

    def __init__(self, status: int, body: str) -> None:
        """The HTTP status and body of its reply."""
        super().__init__(body)
        self.status, self.body = status, body


class ChatReceiver(_Loopback[Request]):
    """A receiver of one kind."""

    def __init__(
        self,
        name: ReceiverName = "webhook",
        *,
        secret: str | None = None,
        now_s: float | None = None,
        instead: Iterable[Misbehaviour | Callable[[str, bytes], Misbehaviour] | None] = (),
        port: int = 0,
    ) -> None:
        """`now_s` is its clock, against which time stamps are checked; a function in `instead` gets path and body."""
        super().__init__(port=port)
        self.name: ReceiverName = name
        self.bodies: list[bytes] = []  # of every request that came, in order
        self.content_types: list[str] = []
        self.accepted: list[dict[str, Any]] = []
        self.pinged: list[str] = []  # whom an accepted message would have mentioned
        self.linked: list[str] = []  # where its links lead
        self._secret, self._now_s, self._instead = secret, now_s, iter(instead)

    def __enter__(self) -> Self:
        super().__enter__()
        self.url += PATHS[self.name]
        return self

    def _respond(self, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> Misbehaviour:
        self.bodies.append(raw)
        self.content_types.append(headers.get("content-type", ""))
        planned = next(self._instead, None)
        if planned is not None:
            return planned(path, raw) if callable(planned) else planned
        if method != "POST" or urlsplit(path).path != urlsplit(PATHS[self.name]).path:
            return Respond(404, "no_service", content_type="text/plain")
        try:
            tree = json.loads(raw.decode("utf-8"))
            return self._CHECKS[self.name](self, path, raw, tree)
        except (ValueError, KeyError, TypeError, AttributeError) as fault:
            return Respond(400, f"cannot be read: {type(fault).__name__}", content_type="text/plain")
        except Refusal as refused:
            return Respond(refused.status, refused.body)

    # --- as the vendors do -----------------------------------------------------------------------------------------

    def _slack(self, path: str, raw: bytes, tree: dict[str, Any]) -> Misbehaviour:
        texts = [tree["text"]]
        if not tree["text"]:
            raise Refusal(400, "no_text")
        for block in tree["blocks"]:
            text = block["text"]["text"]
            if block["type"] != "section" or not 1 <= _utf16(text) <= 3000:
                raise Refusal(400, "invalid_blocks")
            texts.append(text)
        if len(tree["blocks"]) > 50:
            raise Refusal(400, "invalid_blocks")
        if sum(_utf16(text) for text in texts[1:]) > 13_000:
            raise Refusal(400, "msg_blocks_too_long")
        for text in texts:
            self.pinged += re.findall(r"<([!@#][^>]*)>", text)
            self.linked += re.findall(r"<(https?:[^|>]*)[|>]", text)
        self.accepted.append(tree)
        return Respond(200, "ok", content_type="text/html")

    def _feishu(self, path: str, raw: bytes, tree: dict[str, Any]) -> Misbehaviour:
        if len(raw) > 20_480:
            raise _refusal(9499, "Bad Request")
        if self._secret is not None:
            stamp, sign = tree.get("timestamp"), tree.get("sign")
            key = f"{stamp}\n{self._secret}".encode()
            if not isinstance(stamp, str) or not self._is_signed(stamp, 1, sign, hmac_sha256(key, b"")):
                raise _refusal(19021, "sign match fail or timestamp is not within one hour from current time")
        if tree["msg_type"] != "post":
            raise _refusal(9499, "Bad Request")
        (post,) = tree["content"]["post"].values()
        if not post["title"] or not post["content"]:
            raise _refusal(9499, "Bad Request")
        for element in (element for paragraph in post["content"] for element in paragraph):
            self._note_feishu(element)
        self.accepted.append(tree)
        return Respond(200, json.dumps({"code": 0, "msg": "success", "data": {}}))

    def _note_feishu(self, element: dict[str, str]) -> None:
        """An element as it would be shown: `at` mentions, and so does its tag inside a text."""
        if element["tag"] == "at":
            self.pinged.append(element["user_id"])
        if element["tag"] == "a":
            self.linked.append(element["href"])
        if not element["text"]:
            raise _refusal(9499, "Bad Request")
        self.pinged += re.findall(r"<at\b[^>]*>|@\w+", element["text"])

    def _dingtalk(self, path: str, raw: bytes, tree: dict[str, Any]) -> Misbehaviour:
        query = {name: values[0] for name, values in parse_qs(urlsplit(path).query, strict_parsing=True).items()}
        if query.get("access_token") != TOKEN:
            raise _refusal(300001, "token is not exist", "errcode", "errmsg")
        if self._secret is not None:
            stamp = query.get("timestamp", "")
            digest = hmac_sha256(self._secret.encode(), f"{stamp}\n{self._secret}".encode())
            if not self._is_signed(stamp, 1000, query.get("sign"), digest):
                raise _refusal(310000, "sign not match", "errcode", "errmsg")
        if len(raw) > 20_000:
            raise _refusal(460101, "message too long, exceed 20000 bytes", "errcode", "errmsg")
        if tree["msgtype"] != "markdown" or not tree["markdown"]["title"] or not tree["markdown"]["text"]:
            raise _refusal(40035, "param error", "errcode", "errmsg")
        if tree.get("at", {}).get("isAtAll"):
            self.pinged.append("all")
        self._note_markdown(tree["markdown"]["text"])
        self.accepted.append(tree)
        return Respond(200, json.dumps({"errcode": 0, "errmsg": "ok"}))

    def _wecom(self, path: str, raw: bytes, tree: dict[str, Any]) -> Misbehaviour:
        if parse_qs(urlsplit(path).query).get("key") != [TOKEN]:
            raise _refusal(93000, "invalid webhook url", "errcode", "errmsg")
        content = tree["markdown"]["content"]
        if tree["msgtype"] != "markdown" or not content:
            raise _refusal(40008, "invalid message type", "errcode", "errmsg")
        if len(content.encode("utf-8")) > 4096:
            raise _refusal(40058, "markdown.content exceed max length 4096", "errcode", "errmsg")
        self._note_markdown(content)
        self.accepted.append(tree)
        return Respond(200, json.dumps({"errcode": 0, "errmsg": "ok"}))

    def _webhook(self, path: str, raw: bytes, tree: dict[str, Any]) -> Misbehaviour:
        self.accepted.append(tree)
        return Respond(202, "taken", content_type="text/plain")

    _CHECKS: Mapping[str, Callable[[ChatReceiver, str, bytes, dict[str, Any]], Misbehaviour]] = {
        "slack": _slack,
        "feishu": _feishu,
        "dingtalk": _dingtalk,
        "wecom": _wecom,
        "webhook": _webhook,
    }

    def _is_signed(self, stamp: str, per_s: int, sign: object, digest: bytes) -> bool:
        """True when the signature is this digest and the time stamp is within an hour of the receiver's clock."""
        now_s = time.time() if self._now_s is None else self._now_s
        is_near = stamp.isdecimal() and abs(int(stamp) / per_s - now_s) <= HOUR_S
        return is_near and sign == base64.b64encode(digest).decode()

    def _note_markdown(self, text: str) -> None:
        self.pinged += re.findall(r"<@[^>]*>|@\w+|<at\b[^>]*>", text)
        self.linked += re.findall(r"\]\(([^)]*)\)", text)


def _refusal(code: int, message: str, code_name: str = "code", message_name: str = "msg") -> Refusal:
    return Refusal(200, json.dumps({code_name: code, message_name: message}))


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
