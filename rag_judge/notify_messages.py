"""The request that each chat is sent for a notice: its body within the vendor's limits, its signature.

Nothing is sent here, and no number is computed: a notice is words that are there already.

What the vendors ask for, and where it was read (November 2026):
    slack     docs.slack.dev/reference/block-kit/composition-objects/text-object: 1 to 3000 characters, `verbatim`;
              50 blocks; some 13,000 characters of blocks in all (github.com/slackapi/bolt-js/issues/2509)
    feishu    open.larkoffice.com/document/ukTMukTMukTM/ucTM5YjL3ETO24yNxkjN.md: body of 20 KB, sign, rich text
    dingtalk  open.dingtalk.com, custom robot: sign in the address; body of 20000 bytes, errcode 460101 beyond
              (github.com/timonwong/prometheus-webhook-dingtalk/pull/222)
    wecom     developer.work.weixin.qq.com/document/path/91770: content of 4096 bytes of UTF-8, `<@userid>`; errcode
              40058 beyond (github.com/dromara/domain-admin/issues/82)
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from rag_judge.addresses import checked_address
from rag_judge.errors import InputError
from rag_judge.notify_words import (
    BULLET,
    WORDS,
    Markup,
    NoticeDecision,
    cut,
    cut_to_bytes,
    escaped,
    one_line,
    title_of,
    utf8_size,
    utf16_size,
)

ChannelName = Literal["slack", "feishu", "dingtalk", "wecom", "webhook"]
Tree = dict[str, Any]

SLACK_SECTION = 3000  # UTF-16 units, after escaping
SLACK_LINES = 9000  # of all sections of lines together
FEISHU_BODY = 20_000  # bytes: "20 KB", taken at its smaller meaning
DINGTALK_BODY = 20_000  # bytes
WECOM_CONTENT = 4096  # bytes
LONGEST_LINK = 1000  # bytes; half a link leads nowhere, so that a longer one is left out


@dataclass(frozen=True, slots=True)
class Notice:
    """What is to be told of a night: the decision, worded lines, where the report is, and the bare facts.

    `lines` may hold anybody's words: they are data, and shown as they are.
    """

    decision: NoticeDecision
    run_id: str | None
    lines: Sequence[str]
    link: str | None
    facts: Mapping[str, Any]  # what the plain webhook gets


@dataclass(frozen=True, slots=True)
class Channel:
    """A receiver that the environment names; its address and secret are never shown."""

    name: ChannelName
    url: str = field(repr=False)
    secret: str | None = field(default=None, repr=False)


def body_of(channel: Channel, notice: Notice, lang: str, now: datetime) -> bytes:
    """The body of the request, within the vendor's limit.

    Too many lines are cut, with a word that they were; title and link are kept. Raises ValueError or TypeError for
    facts that JSON cannot say.
    """
    match channel.name:
        case "slack":
            return _json(_slack(notice, lang))
        case "feishu":
            return _feishu(channel, notice, lang, int(now.timestamp()))
        case "dingtalk":
            return _dingtalk(notice, lang)
        case "wecom":
            return _json({"msgtype": "markdown", "markdown": {"content": _wecom(notice, lang)}})
        case "webhook":
            return _json(dict(notice.facts))


def url_of(channel: Channel, now: datetime) -> str:
    """The address that is asked: as given, and for DingTalk with a secret signed for this moment."""
    if channel.name != "dingtalk" or channel.secret is None:
        return channel.url
    timestamp_ms = int(now.timestamp() * 1000)
    signed = urlencode({"timestamp": timestamp_ms, "sign": dingtalk_sign(channel.secret, timestamp_ms)})
    parts = urlsplit(channel.url)
    kept = [part for part in parts.query.split("&") if part and part.partition("=")[0] not in ("timestamp", "sign")]
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "&".join([*kept, signed]), ""))


def feishu_sign(secret: str, timestamp_s: int) -> str:
    """Feishu's signature. The text to be signed is the key, and nothing is the message: no mistake."""
    return base64.b64encode(hmac.digest(f"{timestamp_s}\n{secret}".encode(), b"", "sha256")).decode()


def dingtalk_sign(secret: str, timestamp_ms: int) -> str:
    """DingTalk's signature, before it is made fit for an address."""
    return base64.b64encode(hmac.digest(secret.encode(), f"{timestamp_ms}\n{secret}".encode(), "sha256")).decode()


def _json(tree: Tree) -> bytes:
    text = json.dumps(tree, ensure_ascii=False, allow_nan=False, default=_as_json)
    return text.encode("utf-8", "backslashreplace")  # for half a surrogate pair that is the escape JSON has for it


def _as_json(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


def _title(notice: Notice, lang: str, markup: Markup) -> str:
    return escaped(title_of(notice.decision, notice.run_id, lang), markup)


def _lines(notice: Notice, markup: Markup) -> str:
    """The lines that say anything, each behind a bullet."""
    return "\n".join(BULLET + line for line in (escaped(line, markup) for line in notice.lines) if line)


def _href(notice: Notice) -> str | None:
    """The link as no markup can misread it; None where there is none that a chat could open."""
    link = one_line(notice.link or "")
    if not is_address(link):
        return None
    href = quote(link, safe="/:?#@!$&'+,;=%[]*~", errors="replace")
    return href if utf8_size(href) <= LONGEST_LINK else None


def _where(notice: Notice, lang: str, markup: Markup) -> str | None:
    """In words, a place of the report that no chat can open, such as a path."""
    if not notice.link or _href(notice) is not None or utf8_size(notice.link) > LONGEST_LINK:
        return None
    return escaped(WORDS[lang]["report_at"].format(link=notice.link), markup)


def _slack(notice: Notice, lang: str) -> Tree:
    words, title, href = WORDS[lang], _title(notice, lang, "slack"), _href(notice)
    link = _where(notice, lang, "slack") if href is None else f"<{href.replace('&', '&amp;')}|{words['report']}>"
    end = [] if link is None or utf16_size(link) > SLACK_SECTION else [link]
    lines: list[str] = []
    n_left = SLACK_LINES
    for text in notice.lines:
        line = BULLET + escaped(cut(one_line(text)[: SLACK_SECTION + 1], _fits_a_section, words["cut"]), "slack")
        n_left -= utf16_size(line) + 1
        if n_left < 0:
            lines.append(words["cut"])
            break
        if line != BULLET:
            lines.append(line)
    texts = [f"*{title}*", *_sections(lines), *end]
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}} for text in texts]
    return {"text": "\n".join([title, *lines, *end]), "blocks": blocks}


def _fits_a_section(text: str) -> bool:
    return utf16_size(BULLET + escaped(text, "slack")) <= SLACK_SECTION


def _sections(lines: Sequence[str]) -> list[str]:
    """The lines in as few texts as hold them, none longer than a section may be."""
    texts: list[str] = []
    for line in lines:
        if texts and utf16_size(texts[-1]) + 1 + utf16_size(line) <= SLACK_SECTION:
            texts[-1] += "\n" + line
        else:
            texts.append(line)
    return texts


def _feishu(channel: Channel, notice: Notice, lang: str, timestamp_s: int) -> bytes:
    words, href, where = WORDS[lang], _href(notice), _where(notice, lang, "plain")
    title = _title(notice, lang, "plain")
    signed: Tree = {}
    if channel.secret is not None:
        signed = {"timestamp": str(timestamp_s), "sign": feishu_sign(channel.secret, timestamp_s)}

    def body(text: str) -> bytes:
        content = [[{"tag": "text", "text": line}] for line in (*text.split("\n"), where) if line]
        if href is not None:
            content.append([{"tag": "a", "text": words["report"], "href": href}])
        post = {"title": title, "content": content or [[{"tag": "text", "text": title}]]}
        return _json({**signed, "msg_type": "post", "content": {"post": {"zh_cn" if lang == "zh" else "en_us": post}}})

    return _longest(body, _lines(notice, "plain"), FEISHU_BODY, words["cut"])


def _dingtalk(notice: Notice, lang: str) -> bytes:
    words, title = WORDS[lang], _title(notice, lang, "markdown")
    head, tail = f"### {title}", _markdown_link(notice, lang)

    def body(text: str) -> bytes:
        # a single line end is none in its Markdown
        shown = "\n\n".join([head, *filter(None, text.split("\n")), *filter(None, [tail])])
        return _json({"msgtype": "markdown", "markdown": {"title": title, "text": shown}, "at": {"isAtAll": False}})

    return _longest(body, _lines(notice, "markdown"), DINGTALK_BODY, words["cut"])


def _wecom(notice: Notice, lang: str) -> str:
    head, tail = f"**{_title(notice, lang, 'markdown')}**", _markdown_link(notice, lang)
    n_left = WECOM_CONTENT - utf8_size(head) - 1 - (utf8_size(tail) + 1 if tail else 0)
    lines = cut_to_bytes(_lines(notice, "markdown"), n_left, WORDS[lang]["cut"])
    return "\n".join(filter(None, [head, lines, tail]))


def _markdown_link(notice: Notice, lang: str) -> str:
    href = _href(notice)
    return _where(notice, lang, "markdown") or "" if href is None else f"[{WORDS[lang]['report']}]({href})"


def _longest(body: Callable[[str], bytes], text: str, n: int, note: str) -> bytes:
    """The body of the text, or of as much of it as keeps the body within `n` bytes."""
    return body(cut(text[: n + 1], lambda shown: len(body(shown)) <= n, note))


def is_address(text: str) -> bool:
    """True for http:// or https:// with a host, and nothing that no address holds."""
    try:
        checked_address(text, "")
    except InputError:
        return False
    return True
