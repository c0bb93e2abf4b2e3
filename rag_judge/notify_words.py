"""The words of a notice, and what makes them fit for a chat: titles, the marks of a chat's markup, the cut to a size.

No vendor's limit or address stands here and nothing is sent; that is `notify`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Literal

NoticeDecision = Literal["ship", "hold", "not_enough_evidence", "could_not_measure", "not_comparable"]
Markup = Literal["slack", "markdown", "plain"]

LONGEST_RUN_ID = 120  # characters shown
LONGEST_CHARACTER = 32  # code points of what people see as one character; more is somebody's joke
BULLET = "• "  # no text of others stands at the start of a line, where a mark would mean a heading, quote or list

WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "title": "rag-judge: {decision}",
        "title_of_run": "rag-judge: {decision} ({run})",
        "ship": "ready to ship",
        "hold": "hold the release",
        "not_enough_evidence": "not enough evidence",
        "could_not_measure": "could not measure",
        "not_comparable": "not comparable",
        "report": "Report",
        "report_at": "Report: {link}",
        "cut": "… (cut: too long for this chat)",
        "no_address": "{variable} is not an address that begins with http:// or https://; no notice goes to {channel}",
        "no_secret": "{variable} holds characters that no secret has; no notice goes to {channel}",
        "secret_alone": "{variable} is set without {url_variable}; no notice goes to {channel}",
        "no_answer": "no answer within {timeout_s:g} s",
        "fault": "connection failed: {said}",
        "cannot_send": "cannot be sent: {said}",
        "redirect": "HTTP {status}: it redirects to another address, which is not followed",
        "code": "{name} {code}: {said}",
        "code_alone": "{name} {code}",
        "foreign": "HTTP {status}, and no reply that {channel} gives: {said}",
        "empty": "HTTP {status} and an empty reply",
    },
    "zh": {
        "title": "rag-judge:{decision}",
        "title_of_run": "rag-judge:{decision}({run})",
        "ship": "可以上线",
        "hold": "暂缓上线",
        "not_enough_evidence": "证据不足",
        "could_not_measure": "未能测量",
        "not_comparable": "不可比",
        "report": "报告",
        "report_at": "报告:{link}",
        "cut": "……(内容过长,已截断)",
        "no_address": "{variable} 不是以 http:// 或 https:// 开头的地址;不向 {channel} 发送通知",
        "no_secret": "{variable} 含有密钥中不可能出现的字符;不向 {channel} 发送通知",
        "secret_alone": "设置了 {variable},却没有设置 {url_variable};不向 {channel} 发送通知",
        "no_answer": "{timeout_s:g} 秒内没有回应",
        "fault": "连接失败:{said}",
        "cannot_send": "无法发送:{said}",
        "redirect": "HTTP {status}:对方要求转到另一个地址,未跟随",
        "code": "{name} {code}:{said}",
        "code_alone": "{name} {code}",
        "foreign": "HTTP {status},且不是 {channel} 的回复:{said}",
        "empty": "HTTP {status},回复为空",
    },
}


def title_of(decision: NoticeDecision, run_id: str | None, lang: str) -> str:
    """The title of a notice, on one line, without any markup; it always holds "rag-judge", as a bot's keyword may."""
    words = WORDS[lang]
    if run_id is None:
        return words["title"].format(decision=words[decision])
    return words["title_of_run"].format(decision=words[decision], run=one_line(run_id)[:LONGEST_RUN_ID])


# --- markup --------------------------------------------------------------------------------------------------------

# What would be markup becomes its full-width twin: which backslashes and entities the chats understand is told nowhere.
# Slack alone documents its escapes; the other marks there are those of receivers that speak Markdown in its place.
_WIDE = {"@": "＠", "*": "＊", "`": "｀", "[": "［", "]": "］", "~": "～"}
_TAGS = {"<": "＜", ">": "＞"}
_TABLES: Mapping[Markup, Mapping[int, str]] = {
    "slack": str.maketrans(_WIDE | {"&": "&amp;", "<": "&lt;", ">": "&gt;"}),
    "markdown": str.maketrans(_WIDE | _TAGS | {"&": "＆", "\\": "＼"}),
    "plain": str.maketrans(_TAGS | {"@": "＠"}),
}
_LOOSE_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")  # inside a word it is no mark, and part of many ids
# the ends of an interval stay as they are, where no Markdown could see the text of a link in them
_INTERVAL = re.compile(r"［([-+\d.,% ]+)］(?= \(n = \d+\)|(?!\s*[(:［]))")
_JOINERS = "\u200c\u200d"


def one_line(text: str) -> str:
    """The text on one line, without control and direction characters; half a surrogate pair becomes U+FFFD."""
    return " ".join("".join(_visible(c) for c in text).split())


def _visible(c: str) -> str:
    if c.isprintable() or c in _JOINERS:
        return c
    return "\ufffd" if "\ud800" <= c <= "\udfff" else " "


def escaped(text: str, markup: Markup) -> str:
    """The text on one line, with nothing that this markup takes for a mention, a link, a tag or a style."""
    shown = one_line(text).translate(_TABLES[markup])
    return shown if markup == "plain" else _INTERVAL.sub(r"[\1]", _LOOSE_UNDERSCORE.sub("＿", shown))


# --- the cut -------------------------------------------------------------------------------------------------------


def utf8_size(text: str) -> int:
    """The bytes of a text in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))


def utf16_size(text: str) -> int:
    """The UTF-16 units of a text: what JavaScript and Java call its length, never less than its code points."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut_to_bytes(text: str, n: int, note: str = "…") -> str:
    """The text, if its UTF-8 has at most `n` bytes; else its beginning and the note, together in at most `n`."""
    return cut(text, lambda shown: utf8_size(shown) <= n, note)


def cut(text: str, fits: Callable[[str], bool], note: str) -> str:
    """The text if it fits; else its beginning and the note that it was cut, as much as fits together.

    The cut is at the end of a line where that keeps at least half, else between two characters as people see them. A
    note that does not fit by itself is left out. What fits must fit still when it is made shorter.
    """
    if fits(text):
        return text
    if not fits(note):
        note = ""
    low, high = 0, len(text)  # the longest beginning that fits has at least low characters, and fewer than high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(text[:middle] + note) else (low, middle)
    line_end = text.rfind("\n", 0, low)
    if line_end > 0 and 2 * line_end >= low:
        return text[: line_end + 1] + note if note else text[:line_end]
    return text[: _border(text, low)] + note


def _border(text: str, at: int) -> int:
    """The last place up to `at` that no visible character spans; `at` itself where that would be far away."""
    for place in range(at, max(at - LONGEST_CHARACTER, 0), -1):
        if not _belong_together(text[place - 1], text[place]):
            return place
    return 0 if at <= LONGEST_CHARACTER else at


def _belong_together(left: str, right: str) -> bool:
    """True when a second code point changes the first: accents, variants, skin tones, joined emoji, flags."""
    if right in _JOINERS or left == "\u200d" or unicodedata.category(right) in ("Mn", "Mc", "Me"):
        return True
    is_flag = all("\U0001f1e6" <= c <= "\U0001f1ff" for c in (left, right))
    return is_flag or "\U0001f3fb" <= right <= "\U0001f3ff"
