"""Notices: what each chat is sent within its limits, what is made of its reply, and that no key is ever shown."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import pytest

from rag_judge.notify import (
    VARIABLES,
    Channel,
    ChannelName,
    Notice,
    NoticeDecision,
    Sent,
    body_of,
    channels_of,
    cut_to_bytes,
    send,
    send_async,
    url_of,
)
from rag_judge.notify_messages import dingtalk_sign, feishu_sign
from rag_judge.notify_words import WORDS, Markup, cut, escaped, one_line, title_of, utf8_size
from tests.chat_receivers import PATHS, TOKEN, ChatReceiver, ReceiverName
from tests.misbehaviour import Close, Drip, Garbage, Misbehaviour, Never, Reset, Respond, Truncated

NOW = datetime(2026, 1, 1, 1, 0, tzinfo=UTC)  # 1767229200 s
NOW_S = 1767229200
SECRET = "SEC-demo"
CHATS: tuple[ReceiverName, ...] = ("slack", "feishu", "dingtalk", "wecom")
ALL: tuple[ReceiverName, ...] = (*CHATS, "webhook")
FAMILY = "👨\u200d👩\u200d👧"  # five code points, one character to people
LINES = ("judge pass rate: 71% [62%, 80%] (n = 100)", "变化的用例:2 (refund_policy_3, 退款_4)")
LINK = "https://ci.example.org/reports/2026-01-01-nightly/report.html"
FACTS: Mapping[str, Any] = {"decision": "hold", "n": 100, "ids": ["退款_4"], "rate": 0.71, "none": None}


def notice(lines: Sequence[str] = LINES, **changed: Any) -> Notice:
    return replace(Notice("hold", "2026-01-01-nightly", tuple(lines), LINK, FACTS), **changed)


def channel_to(chat: ChatReceiver, secret: str | None = None) -> Channel:
    variables = {f"RAG_JUDGE_{chat.name.upper()}_URL": chat.url}
    if secret is not None:
        variables[f"RAG_JUDGE_{chat.name.upper()}_SECRET"] = secret
    (channel,), problems = channels_of(variables)
    assert problems == []
    return channel


def sent_to(
    chat: ChatReceiver,
    told: Notice | None = None,
    *,
    lang: str = "en",
    secret: str | None = None,
    timeout_s: float = 10,
) -> Sent:
    (sent,) = send(told or notice(), [channel_to(chat, secret)], NOW, lang, timeout_s=timeout_s, wait_s=0)
    return sent


def shown(tree: Mapping[str, Any], name: ReceiverName) -> str:
    """All that people would read of an accepted message."""
    match name:
        case "slack":
            return "\n".join(block["text"]["text"] for block in tree["blocks"])
        case "feishu":
            (post,) = tree["content"]["post"].values()
            return "\n".join([post["title"], *(element["text"] for line in post["content"] for element in line)])
        case "dingtalk":
            return str(tree["markdown"]["text"])
        case "wecom":
            return str(tree["markdown"]["content"])
    return json.dumps(tree, ensure_ascii=False)


# --- what the environment names ----------------------------------------------------------------------------------


def test_every_variable_that_is_read_is_on_the_list() -> None:
    assert VARIABLES == (
        "RAG_JUDGE_SLACK_URL",
        "RAG_JUDGE_FEISHU_URL",
        "RAG_JUDGE_FEISHU_SECRET",
        "RAG_JUDGE_DINGTALK_URL",
        "RAG_JUDGE_DINGTALK_SECRET",
        "RAG_JUDGE_WECOM_URL",
        "RAG_JUDGE_WEBHOOK_URL",
    )
    values = {name: "s3cret" if name.endswith("SECRET") else f"https://h.example/{name}" for name in VARIABLES}
    channels, problems = channels_of(values | {"RAG_JUDGE_K": "5", "SLACK_URL": "https://h.example"})
    assert problems == []
    assert [channel.name for channel in channels] == list(ALL)
    assert [channel.secret for channel in channels] == [None, "s3cret", "s3cret", None, None]


def test_nothing_set_or_blank_is_nobody_and_no_problem() -> None:
    assert channels_of({}) == ([], [])
    assert channels_of(dict.fromkeys(VARIABLES, " \n")) == ([], [])


@pytest.mark.parametrize(
    "address",
    [
        "hooks.example/T0/Key-123456",
        "ftp://hooks.example/Key-123456",
        "https:///Key-123456",
        "https://h.example:port/Key-123456",
        "https://[Key-123456",
        "https://h.example/two words/Key-123456",
        "https://h.example/\u202eKey-123456",
        "https://h.example/\udcffKey-123456",
        "Key-123456",
    ],
)
@pytest.mark.parametrize("name", ALL)
def test_an_address_that_is_none_is_a_problem_that_does_not_repeat_it(name: ReceiverName, address: str) -> None:
    variable = f"RAG_JUDGE_{name.upper()}_URL"
    channels, problems = channels_of({variable: address, "RAG_JUDGE_WECOM_URL" if name != "wecom" else "X": "http://w"})
    assert [channel.name for channel in channels] == ([] if name == "wecom" else ["wecom"])
    (problem,) = problems
    assert problem.startswith(variable)
    assert "http://" in problem
    assert "Key-123456" not in problem


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_secret_without_an_address_is_a_problem_that_does_not_repeat_it(lang: str) -> None:
    secrets = {"RAG_JUDGE_FEISHU_SECRET": "sEcReT-1", "RAG_JUDGE_DINGTALK_SECRET": "sEcReT-2"}
    channels, problems = channels_of(secrets, lang)
    assert channels == []
    assert [("RAG_JUDGE_FEISHU_URL" in text, "sEcReT" in text) for text in problems] == [(True, False), (False, False)]
    assert "RAG_JUDGE_DINGTALK_SECRET" in problems[1]


def test_a_secret_of_bytes_that_are_no_text_is_a_problem() -> None:
    given = {"RAG_JUDGE_FEISHU_URL": "https://h.example/x", "RAG_JUDGE_FEISHU_SECRET": "sEcReT\udcff"}
    channels, (problem,) = channels_of(given)
    assert channels == []
    assert "sEcReT" not in problem


def test_a_channel_shows_neither_address_nor_secret() -> None:
    channel = Channel("feishu", f"https://h.example/{TOKEN}", SECRET)
    assert TOKEN not in repr(channel)
    assert SECRET not in repr(channel)


# --- signatures: literal values made with openssl dgst -mac HMAC -------------------------------------------------


def test_feishu_is_signed_with_the_text_as_key() -> None:
    assert feishu_sign(SECRET, NOW_S) == "twu7ALsjrErmEdS89dUSsntifcudYbdm3l1wdAX3ZWg="
    tree = json.loads(body_of(Channel("feishu", "https://h.example/x", SECRET), notice(), "en", NOW))
    assert tree["timestamp"] == "1767229200"
    assert tree["sign"] == "twu7ALsjrErmEdS89dUSsntifcudYbdm3l1wdAX3ZWg="
    unsigned = json.loads(body_of(Channel("feishu", "https://h.example/x"), notice(), "en", NOW))
    assert "sign" not in unsigned
    assert "timestamp" not in unsigned


def test_dingtalk_is_signed_in_the_address() -> None:
    assert dingtalk_sign(SECRET, NOW_S * 1000) == "efK+w6ckw03V7DAcy1pxVldPGA5ag2oIXIQeNjA6ohw="
    signed = "timestamp=1767229200000&sign=efK%2Bw6ckw03V7DAcy1pxVldPGA5ag2oIXIQeNjA6ohw%3D"
    base = "https://h.example/robot/send"
    channel = Channel("dingtalk", f"{base}?access_token=T", SECRET)
    assert url_of(channel, NOW) == f"{base}?access_token=T&{signed}"
    assert url_of(replace(channel, url=base), NOW) == f"{base}?{signed}"
    assert url_of(replace(channel, url=f"{base}?access_token=T&timestamp=1&sign=old#x"), NOW) == (
        f"{base}?access_token=T&{signed}"
    )
    assert url_of(replace(channel, secret=None), NOW) == f"{base}?access_token=T"


@pytest.mark.parametrize("name", ["feishu", "dingtalk"])
@pytest.mark.parametrize("secret", [SECRET, "密钥", "long-" * 40, "a+b/c=&%41 #"])
def test_a_signature_is_taken_by_a_receiver_that_computes_its_own(name: ReceiverName, secret: str) -> None:
    # seconds 4, 5 and 13 give signatures with both + and /, which an address must not lose
    for later_s in (0, 4, 5, 13):
        now = NOW + timedelta(seconds=later_s)
        with ChatReceiver(name, secret=secret, now_s=NOW_S) as chat:
            assert send(notice(), [channel_to(chat, secret)], now, "en")[0].ok


@pytest.mark.parametrize(
    ("name", "secret", "late", "code"),
    [
        pytest.param("feishu", "another", timedelta(), "19021", id="feishu-other-secret"),
        pytest.param("feishu", SECRET, timedelta(hours=1, seconds=1), "19021", id="feishu-old"),
        pytest.param("feishu", None, timedelta(), "19021", id="feishu-unsigned"),
        pytest.param("dingtalk", "another", timedelta(), "310000", id="dingtalk-other-secret"),
        pytest.param("dingtalk", SECRET, timedelta(hours=1, seconds=1), "310000", id="dingtalk-old"),
        pytest.param("dingtalk", None, timedelta(), "310000", id="dingtalk-unsigned"),
    ],
)
def test_a_wrong_or_old_signature_is_told_with_the_vendors_code(
    name: ReceiverName, secret: str | None, late: timedelta, code: str
) -> None:
    with ChatReceiver(name, secret=SECRET, now_s=NOW_S) as chat:
        (sent,) = send(notice(), [channel_to(chat, secret)], NOW - late, "en")
    assert (sent.ok, code in sent.detail, len(chat.bodies)) == (False, True, 1)


# --- what is sent ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CHATS)
@pytest.mark.parametrize(
    ("lang", "title"), [("en", "rag-judge: hold the release (2026-01-01-nightly)"), ("zh", "暂缓上线")]
)
def test_a_chat_is_told_title_lines_and_link(name: ReceiverName, lang: str, title: str) -> None:
    with ChatReceiver(name) as chat:
        sent = sent_to(chat, lang=lang)
    assert sent.ok, sent.detail
    assert chat.content_types == ["application/json; charset=utf-8"]
    text = shown(chat.accepted[0], name)
    assert title in text
    assert "judge pass rate: 71%" in text
    assert "(refund_policy_3, 退款_4)" in text
    assert chat.linked == [LINK] * (2 if name == "slack" else 1)  # Slack shows its blocks, others its text


def test_every_decision_has_a_title_in_both_languages() -> None:
    chinese = ["可以上线", "暂缓上线", "证据不足", "未能测量", "不可比"]
    assert [WORDS["zh"][decision] for decision in get_args(NoticeDecision)] == chinese
    titles = {title_of(decision, None, lang) for decision in get_args(NoticeDecision) for lang in ("en", "zh")}
    assert len(titles) == 10
    assert all(title.startswith("rag-judge") for title in titles)
    assert {*WORDS["en"]} == {*WORDS["zh"]}


def test_the_plain_webhook_gets_the_facts_as_they_are() -> None:
    with ChatReceiver() as chat:
        sent = sent_to(chat, notice(facts=MappingProxyType({**FACTS, "inner": MappingProxyType({"a": 1})})))
    assert sent == Sent("webhook", True, "HTTP 202")
    assert chat.accepted == [{**FACTS, "inner": {"a": 1}}]
    assert "退款".encode() in chat.bodies[0]


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"rate": float("nan")}, id="no-number"),
        pytest.param({("a", "b"): 1}, id="key"),
        pytest.param({"deep": json.loads("[" * 900 + "]" * 900)}, id="deep"),
    ],
)
def test_facts_that_json_cannot_say_are_a_failure_or_sent_and_no_exception(facts: dict[Any, Any]) -> None:
    with ChatReceiver() as chat:
        sent = sent_to(chat, notice(facts=facts))
    assert sent.ok == (len(chat.bodies) == 1)


def test_half_a_surrogate_pair_stops_no_notice() -> None:
    told = notice(["a\ud83d b"], run_id="r\udc00", link="https://h.example/\ud800", facts={"a": "\ud83d"})
    for name in ALL:
        with ChatReceiver(name) as chat:
            sent = sent_to(chat, told)
            assert sent.ok, sent.detail
            if name == "webhook":
                assert chat.accepted == [{"a": "\ud83d"}]
            else:
                assert "a\ufffd b" in shown(chat.accepted[0], name)


@pytest.mark.parametrize("name", CHATS)
def test_without_lines_link_and_run_there_still_is_a_message(name: ReceiverName) -> None:
    with ChatReceiver(name) as chat:
        assert sent_to(chat, notice(["", " \n"], link=None, run_id=None)).ok
    assert "hold the release" in shown(chat.accepted[0], name)
    assert "None" not in chat.bodies[0].decode()


@pytest.mark.parametrize("name", CHATS)
@pytest.mark.parametrize(
    "link",
    [
        pytest.param("https://h.example/a b)](http://evil.example/c|d>e", id="blank"),
        pytest.param("javascript:alert(1)", id="script"),
        pytest.param("/srv/runs/2026-01-01/report.html", id="path"),
        pytest.param("https://h.example/" + "a" * 1000, id="long"),
        pytest.param("https://h.example/" + "报" * 120, id="long-when-quoted"),
        pytest.param("&" * 999, id="all-escaped"),
    ],
)
def test_a_link_that_no_chat_could_open_is_no_link(name: ReceiverName, link: str) -> None:
    with ChatReceiver(name) as chat:
        assert sent_to(chat, notice(link=link)).ok
    assert chat.linked == []


@pytest.mark.parametrize("name", CHATS)
def test_no_link_ends_before_its_end(name: ReceiverName) -> None:
    with ChatReceiver(name) as chat:
        assert sent_to(chat, notice(link='https://h.example/报告(1)?a=1&b=<2>|3"')).ok
    quoted = "https://h.example/%E6%8A%A5%E5%91%8A%281%29?a=1&b=%3C2%3E%7C3%22"
    assert {link.replace("&amp;", "&") for link in chat.linked} == {quoted}


# --- text of others is data --------------------------------------------------------------------------------------

HOSTILE = [
    "<!channel> <!here> <!everyone|x> <@U123> <!subteam^S1> <#C1>",
    '<at user_id="all">所有人</at> <at id=all></at> <at email=a@b.example></at>',
    "@all @所有人 @channel @here @13800000000 <@all> <@zhangsan>",
    "[click](http://evil.example/a) ![x](http://evil.example/p.png) [a] (http://evil.example) <http://evil.example|ok>",
    '<font color="warning">通过</font> <a href="http://evil.example">x</a> <http://evil.example>',
    "&lt;!channel&gt; &lt;@all&gt; &#60;@all&#62; &amp;lt;",
    "\\<@all> \\[a](http://evil.example)",
    "line\n# heading\n> quote\n- item\n1. item\r\n---\r```\n| a | b |\u2028# x\u0085# y\x0b# z",
    "**bold** *b* _i_ __b__ ~s~ ~~s~~ `code` ```block```",
    "[微笑] \x1b[31mred\x1b[0m \u202eright to left \x00",
]


@pytest.mark.parametrize("name", CHATS)
@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_mentions_links_or_styles(name: ReceiverName, text: str) -> None:
    with ChatReceiver(name) as chat:
        assert sent_to(chat, notice([text], run_id=text, link=None)).ok
    assert (chat.pinged, chat.linked) == ([], [])
    kept = shown(chat.accepted[0], name).splitlines()
    body = kept[1:] if name != "dingtalk" else kept[2:]
    assert len(body) == 1  # a text never makes a line of its own, where marks would mean more
    assert body[0].startswith("• ")
    marks = {"slack": "<>*`~@", "feishu": "<>@", "dingtalk": "<>*`~@[]\\&", "wecom": "<>*`~@[]\\&"}[name]
    assert not set(marks) & set(body[0])
    assert all(c.isprintable() for c in body[0])


def test_slacks_own_escapes_are_those_that_it_documents() -> None:
    assert escaped("a < b && c > <!channel>", "slack") == "a &lt; b &amp;&amp; c &gt; &lt;!channel&gt;"


def test_plain_numbers_and_ids_stay_as_they_are() -> None:
    text = "p = 0.031, 57/80 = 71% [62%, 80%] (n = 80), [-4.5%, +0.2%], case r_p_3, +5%; 是 #3 (a|b) 'x' \"y\""
    for markup in get_args(Markup):
        assert escaped(text, markup) == text
    assert escaped("_a_ a_b _", "markdown") == "＿a＿ a_b ＿"


@pytest.mark.parametrize(
    "text", ["[1](http://evil.example)", "[1] (http://evil.example)", "[1]: http://e", "[1][2]", "[x]"]
)
def test_brackets_that_could_be_a_link_are_no_interval(text: str) -> None:
    for markup in get_args(Markup):
        assert markup == "plain" or "]" not in escaped(text, markup).removesuffix("[2]")


def test_joined_emoji_stay_joined_on_one_line() -> None:
    assert one_line(f" a\t{FAMILY}\n\nb ") == f"a {FAMILY} b"


# --- the cut -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "n", "expected"),
    [
        pytest.param("字字字", 9, "字字字", id="exact"),
        pytest.param("字字字", 10, "字字字", id="one-byte-left"),
        pytest.param("字字字", 8, "字…", id="one-byte-short"),  # 3 + 3 of the note; two characters would be 9
        pytest.param("字字字字", 9, "字字…", id="note-counts"),
        pytest.param("😀😀😀", 12, "😀😀😀", id="emoji-exact"),
        pytest.param("😀😀😀", 11, "😀😀…", id="emoji-8-and-3"),
        pytest.param("😀😀😀", 10, "😀…", id="emoji-never-halved"),
        pytest.param("abe\u0301f", 6, "abe\u0301f", id="accent-exact"),
        pytest.param("abe\u0301fg", 6, "ab…", id="accent-stays-with-its-letter"),  # abe and the note would be 6
        pytest.param("ab" + FAMILY + "c", 20, "ab…", id="family-stays-together"),
        pytest.param("👍🏽👍🏽", 15, "👍🏽…", id="skin-tone-stays"),  # 8 and 4 of the second would be 15
        pytest.param("🇩🇪🇫🇷", 11, "…", id="flags"),
        pytest.param("ab\ncd\nefgh", 10, "ab\ncd\nefgh", id="lines-exact"),
        pytest.param("ab\ncd\nefgh", 9, "ab\ncd\n…", id="line-border"),
        pytest.param("a\nbcdefghij", 9, "a\nbcde…", id="line-border-too-early"),
        pytest.param("abcdef", 3, "…", id="only-the-note"),
        pytest.param("abcdef", 2, "ab", id="no-room-for-the-note"),
        pytest.param("字字", 2, "", id="no-room-at-all"),
        pytest.param("字字", 0, "", id="none"),
        pytest.param("", 0, "", id="nothing"),
        pytest.param("a\ud800b", 4, "a…", id="surrogate"),
    ],
)
def test_a_cut_is_between_characters_and_is_told(text: str, n: int, expected: str) -> None:
    found = cut_to_bytes(text, n)
    assert found == expected
    assert utf8_size(found) <= n


def test_a_cut_never_exceeds_and_never_splits_at_any_size() -> None:
    text = f"判定😀e\u0301{FAMILY}\n第二行 two 👍🏽\n" * 3
    for n in range(utf8_size(text) + 2):
        found = cut_to_bytes(text, n, "(截断)")
        assert utf8_size(found) <= n
        kept = found.removesuffix("(截断)")
        rest = text[len(kept) :]
        assert text.startswith((kept, kept.rstrip("\n")))
        if found != text and rest:
            assert not unicodedata.combining(rest[0])
            assert rest[0] not in "\u200d🏽"
            assert n < utf8_size("(截断)") or found.endswith("(截断)")


def test_a_letter_with_a_thousand_accents_is_cut_inside_them() -> None:
    found = cut_to_bytes("a" + "\u0301" * 1000, 500)
    assert 490 <= utf8_size(found) <= 500


def test_the_longest_beginning_is_kept() -> None:
    assert cut("x" * 1000, lambda shown: len(shown) <= 100, "!") == "x" * 99 + "!"


def sized(name: ChannelName, told: Notice, lang: str) -> int:
    """The size on which the vendor's limit is: of the content for WeCom, of the whole body for the others."""
    body = body_of(Channel(name, "https://h.example/x", SECRET), told, lang, NOW)
    return len(json.loads(body)["markdown"]["content"].encode()) if name == "wecom" else len(body)


@pytest.mark.parametrize(
    ("name", "limit"), [("wecom", 4096), ("feishu", 20_000), ("dingtalk", 20_000)], ids=["wecom", "feishu", "dingtalk"]
)
@pytest.mark.parametrize(
    "filling", ["字", "😀", "e\u0301", "a", '"', "\\"], ids=["zh", "emoji", "accent", "a", "q", "bs"]
)
def test_what_just_fits_is_whole_and_one_byte_more_is_cut_and_told(
    name: ReceiverName, limit: int, filling: str
) -> None:
    """The JSON of a Feishu or DingTalk body has two bytes for a quote; WeCom's limit is on the content without them."""

    def told(n_fillings: int, n_bytes: int) -> Notice:
        return notice([filling * n_fillings, "b" + "a" * n_bytes])

    a_filling = sized(name, told(2, 0), "zh") - sized(name, told(1, 0), "zh")
    n_fillings = (limit - sized(name, told(1, 0), "zh")) // a_filling
    n_more = limit - sized(name, told(n_fillings, 0), "zh")
    assert sized(name, told(n_fillings, n_more - 1), "zh") == limit - 1
    for more, is_cut in ((n_more - 1, False), (n_more, False), (n_more + 1, True)):
        with ChatReceiver(name) as chat:
            sent = sent_to(chat, told(n_fillings, more), lang="zh", secret=None if name == "wecom" else SECRET)
        assert sent.ok, sent.detail
        text = shown(chat.accepted[0], name)
        assert (WORDS["zh"]["cut"] in text) == is_cut
        assert chat.linked == [LINK]
        assert "暂缓上线" in text
        assert is_cut or text.count("a" * more)


@pytest.mark.parametrize("name", CHATS)
@pytest.mark.parametrize(
    ("filling", "lang"), [("字", "zh"), ("😀", "en"), (FAMILY, "zh"), ("e\u0301", "en"), ("&", "zh"), ('"', "en")]
)
@pytest.mark.parametrize(
    "lines", [lambda c: [c * 30_000], lambda c: [c * 20] * 3000, lambda c: [c] * 9000], ids=["one", "many", "short"]
)
def test_whatever_is_too_long_is_taken_and_says_that_it_was_cut(
    name: ReceiverName, filling: str, lang: str, lines: Callable[[str], list[str]]
) -> None:
    with ChatReceiver(name) as chat:
        sent = sent_to(chat, notice(lines(filling)), lang=lang)
    assert sent.ok, sent.detail
    text = shown(chat.accepted[0], name)
    assert WORDS[lang]["cut"] in text
    assert WORDS[lang]["report"] in text
    assert "\ufffd" not in text


def test_slack_keeps_to_fifty_sections_of_three_thousand_characters() -> None:
    # a bullet and a blank, then 5 characters for each &: (3000 - 2) / 5 = 599 of them fit
    whole, longer = "&" * 599, "&" * 600
    body = json.loads(body_of(Channel("slack", "https://h.example"), notice([whole, longer]), "en", NOW))
    texts = [block["text"]["text"] for block in body["blocks"]]
    assert texts[1] == "• " + "&amp;" * 599
    assert texts[2].endswith(WORDS["en"]["cut"])
    assert len(texts[2]) <= 3000
    assert texts[2].count("&") == texts[2].count("&amp;")  # no escape is cut apart


# --- what is made of the reply -----------------------------------------------------------------------------------


def ok_json(**tree: Any) -> Respond:
    return Respond(200, json.dumps(tree, ensure_ascii=False))


HTML = Respond(200, "<!doctype html><html><body>Sign in</body></html>", content_type="text/html")


@pytest.mark.parametrize(
    ("name", "reply", "ok", "said"),
    [
        pytest.param("slack", Respond(200, "ok"), True, "ok", id="slack-ok"),
        pytest.param("slack", Respond(200, " ok\n"), True, "ok", id="slack-ok-line"),
        pytest.param("slack", Respond(200, "no_text"), False, "no_text", id="slack-word-in-200"),
        pytest.param("slack", Respond(404, "channel_not_found"), False, "HTTP 404: channel_not_found", id="slack-404"),
        pytest.param("slack", Respond(403, "ok"), False, "HTTP 403", id="slack-ok-in-403"),
        pytest.param("slack", ok_json(ok=True), True, "ok true", id="slack-json"),
        pytest.param("slack", ok_json(success=True), True, "success true", id="slack-other-json"),
        pytest.param("slack", ok_json(ok=False, error="no_service"), False, "ok false: no_service", id="slack-refuses"),
        pytest.param("slack", ok_json(ok=1), False, "no reply that slack gives", id="slack-ok-1"),
        pytest.param("slack", ok_json(errcode=0), False, "no reply that slack gives", id="slack-other-vendor"),
        pytest.param("feishu", ok_json(code=0, msg="success"), True, "code 0: success", id="feishu"),
        pytest.param("feishu", ok_json(StatusCode=0, StatusMessage="success"), True, "StatusCode 0", id="feishu-old"),
        pytest.param(
            "feishu", ok_json(StatusCode=0, code=19024, msg="Key Words"), False, "19024: Key", id="feishu-both"
        ),
        pytest.param("feishu", ok_json(code=19022, msg="Ip Not Allowed"), False, "code 19022: Ip", id="feishu-refuses"),
        pytest.param("feishu", ok_json(code=0.0), False, "no reply that feishu", id="feishu-fraction"),
        pytest.param("feishu", ok_json(code="0"), False, "no reply that feishu", id="feishu-text"),
        pytest.param("feishu", ok_json(code=False), False, "no reply that feishu", id="feishu-false"),
        pytest.param("feishu", ok_json(code=None, StatusCode=0), False, "no reply that feishu", id="feishu-null"),
        pytest.param("feishu", ok_json(errcode=0), False, "no reply that feishu", id="feishu-other-vendor"),
        pytest.param("feishu", Respond(400, '{"code": 9499, "msg": "Bad"}'), False, "HTTP 400, code 9499", id="f-400"),
        pytest.param("feishu", Respond(400, '{"code": 0}'), False, "HTTP 400, code 0", id="feishu-0-in-400"),
        pytest.param("feishu", Respond(200, "[0]"), False, "no reply that feishu", id="feishu-list"),
        pytest.param("feishu", Respond(200, "[" * 9000), False, "no reply that feishu", id="feishu-deep"),
        pytest.param("dingtalk", ok_json(errcode=0, errmsg="ok"), True, "errcode 0: ok", id="dingtalk"),
        pytest.param("dingtalk", ok_json(errcode=310000, errmsg="词"), False, "errcode 310000: 词", id="dingtalk-no"),
        pytest.param("dingtalk", ok_json(code=0), False, "no reply that dingtalk", id="dingtalk-other-vendor"),
        pytest.param("wecom", ok_json(errcode=0, errmsg="ok"), True, "errcode 0: ok", id="wecom"),
        pytest.param("wecom", ok_json(errcode=93000, errmsg={"a": 1}), False, "errcode 93000", id="wecom-odd-message"),
        pytest.param("wecom", ok_json(errcode=-1), False, "errcode -1", id="wecom-busy"),
        pytest.param("webhook", Respond(204, ""), True, "HTTP 204", id="webhook-204"),
        pytest.param("webhook", HTML, True, "HTTP 200", id="webhook-any-2xx"),
        pytest.param("webhook", Respond(401, "who?"), False, "HTTP 401: who?", id="webhook-401"),
        pytest.param("webhook", Respond(404, ""), False, "HTTP 404", id="webhook-404"),
        *(pytest.param(name, HTML, False, f"no reply that {name} gives", id=f"{name}-html") for name in CHATS),
        *(pytest.param(name, Respond(200, ""), False, "empty", id=f"{name}-empty") for name in CHATS),
        *(pytest.param(name, Respond(200, "{}"), False, "no reply", id=f"{name}-nothing-said") for name in CHATS),
        *(pytest.param(name, Garbage(), False, "cannot be sent", id=f"{name}-no-http") for name in ALL),
    ],
)
def test_the_reply_decides_and_is_told(name: ReceiverName, reply: Misbehaviour, ok: bool, said: str) -> None:
    with ChatReceiver(name, instead=[reply]) as chat:
        sent = sent_to(chat)
    assert (sent.channel, sent.ok) == (name, ok)
    assert said in sent.detail
    assert len(chat.bodies) == 1


PASSING: tuple[Misbehaviour, ...] = (
    Respond(500, "rollup_error"),
    Respond(503, "<html>bad gateway</html>", content_type="text/html"),
    Respond(429, "rate_limited", (("Retry-After", "0"),)),
    Respond(429, '{"code": 11232, "msg": "frequency limited"}'),
    Reset(),
    Reset(after_headers=True),
    Close(),
    Truncated("ok" * 40, 10),
)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("fault", PASSING, ids=[str(i) for i in range(len(PASSING))])
def test_a_passing_fault_is_tried_once_more_and_no_more(name: ReceiverName, fault: Misbehaviour) -> None:
    with ChatReceiver(name, instead=[fault]) as chat:
        assert sent_to(chat).ok
        assert len(chat.bodies) == 2
        assert chat.bodies[0] == chat.bodies[1]
    with ChatReceiver(name, instead=[fault] * 3) as chat:
        sent = sent_to(chat)
        assert not sent.ok
        assert sent.detail
        assert len(chat.bodies) == 2


@pytest.mark.parametrize("after", ["6", "3600", "9" * 400])
def test_who_asks_for_a_long_wait_is_not_asked_again(after: str) -> None:
    started = time.monotonic()
    with ChatReceiver("slack", instead=[Respond(429, "rate_limited", (("Retry-After", after),))]) as chat:
        sent = sent_to(chat)
    assert (sent.ok, len(chat.bodies)) == (False, 1)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("name", ALL)
def test_a_redirect_is_not_followed_and_where_to_is_not_told(name: ReceiverName) -> None:
    with ChatReceiver() as elsewhere:
        for status in (301, 302, 303, 307, 308):
            there = Respond(status, "", (("Location", elsewhere.url + TOKEN),))
            with ChatReceiver(name, instead=[there]) as chat:
                sent = sent_to(chat)
            assert not sent.ok
            assert f"HTTP {status}" in sent.detail
            assert TOKEN not in sent.detail
        assert elsewhere.bodies == []


@pytest.mark.parametrize("silence", [Never(), Drip("ok" * 500, 0.05)], ids=["hangs", "drips"])
def test_a_receiver_that_hangs_is_given_up_after_one_time_limit(silence: Misbehaviour) -> None:
    started = time.monotonic()
    with ChatReceiver("wecom", instead=[silence] * 2) as chat:
        sent = sent_to(chat, timeout_s=0.3)
        assert len(chat.bodies) == 1
    assert sent == Sent("wecom", False, "no answer within 0.3 s")
    assert time.monotonic() - started < 5


def test_all_receivers_are_asked_at_once_and_one_that_fails_harms_no_other() -> None:
    started = time.monotonic()
    with (
        ChatReceiver("slack", instead=[Never()]) as hanging,
        ChatReceiver("feishu", instead=[Never()]) as silent,
        ChatReceiver("wecom") as chat,
    ):
        channels = [channel_to(one) for one in (hanging, silent, chat)] + [Channel("webhook", "http://127.0.0.1:9/")]
        sent = send(notice(), channels, NOW, "zh", timeout_s=2.0, wait_s=0.0)
    assert [(one.channel, one.ok) for one in sent] == [
        ("slack", False),
        ("feishu", False),
        ("wecom", True),
        ("webhook", False),
    ]
    assert sent[0].detail == "2 秒内没有回应"
    assert sent[3].detail.startswith("连接失败")
    assert time.monotonic() - started < 4  # one after another, the two that hang would take that long


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nno gz", id="gzip"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 5\r\n\r\nno br", id="brotli"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n", id="chunks"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\nok", id="long-header"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nok", id="length"),
        pytest.param(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", id="101"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" * 50, id="100"),
        pytest.param(b"HTTP/1.1 999 What\r\nContent-Length: 2\r\n\r\nok", id="999"),
        pytest.param(b"SSH-2.0-OpenSSH_9.9\r\n", id="ssh"),
        pytest.param(b"", id="nothing"),
    ],
)
@pytest.mark.parametrize("name", ["slack", "wecom", "webhook"])
def test_what_is_hardly_http_is_a_failure_and_no_exception(name: ReceiverName, sent: bytes) -> None:
    with ChatReceiver(name, instead=[Garbage(sent)] * 2) as chat:
        became = sent_to(chat)
    assert not became.ok
    assert became.detail


def test_a_long_reply_is_read_no_further_than_its_beginning() -> None:
    with ChatReceiver("feishu", instead=[Respond(200, "<html>" + "x" * 5_000_000)]) as chat:
        sent = sent_to(chat)
    assert not sent.ok
    assert len(sent.detail) <= 200


def test_a_channel_with_no_usable_address_is_a_failure_and_no_exception() -> None:
    bad = ["", "nothing", "http://[", "ftp://h.example/x", "http://127.0.0.1:0/x", "http://a..b/x"]
    sent = send(notice(), [Channel(name, url, SECRET) for name, url in product(ALL, bad)], NOW, "en", wait_s=0.0)
    assert [one.ok for one in sent] == [False] * len(sent)
    assert send(notice(), [], NOW, "en") == []


def test_inside_an_event_loop_the_same_is_awaited() -> None:
    async def awaited(chat: ChatReceiver) -> list[Sent]:
        return await send_async(notice(), [channel_to(chat)], NOW, "en")

    with ChatReceiver("dingtalk") as chat:
        assert asyncio.run(awaited(chat)) == [Sent("dingtalk", True, "errcode 0: ok")]


# --- no key is shown ---------------------------------------------------------------------------------------------


def echo(path: str, raw: bytes) -> Misbehaviour:
    """A receiver that repeats what it was sent, as error pages do."""
    said = f"POST {path} {path.upper()} key {TOKEN} secret {SECRET} {raw[:60].decode('utf-8', 'replace')}"
    return Respond(400, said.replace("\n", " "), content_type="text/plain")


def echo_in_json(path: str, raw: bytes) -> Misbehaviour:
    said = f"{path} {TOKEN.lower()} {SECRET}"
    return ok_json(code=1, msg=said, errcode=1, errmsg=said, ok=False, error=said)


@pytest.mark.parametrize("name", CHATS)
@pytest.mark.parametrize("answer", [echo, echo_in_json, Reset(), HTML, Garbage(), Close()])
def test_no_address_token_or_secret_is_in_what_is_told(
    name: ReceiverName, answer: Misbehaviour, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with ChatReceiver(name, instead=[answer] * 2) as chat:
        channel = replace(channel_to(chat), secret=SECRET if name in ("feishu", "dingtalk") else None)
        told = repr(send(notice(), [channel], NOW, "en", wait_s=0.0))
        forbidden = [chat.url, TOKEN, PATHS[name], chat.url.partition("//")[2].partition("/")[0]]
    out, err = capfd.readouterr()
    for key in [*forbidden, *([SECRET] if channel.secret else [])]:
        assert key.lower() not in (told + caplog.text + out + err).lower()


def test_a_word_of_the_address_changes_no_code_and_no_word_of_ours() -> None:
    reply = ok_json(code=12345, msg="12345 of code, at /code/12345/feishu")
    with ChatReceiver("feishu", instead=[reply, HTML]) as chat:
        url = chat.url.replace("/open-apis/", "/code/12345/feishu/reply/")
        details = [send(notice(), [Channel("feishu", url)], NOW, "en")[0].detail for _ in range(2)]
    assert details[0] == "code 12345: [redacted] of [redacted], at /[redacted]/[redacted]/[redacted]"
    assert details[1].startswith("HTTP 200, and no reply that feishu gives: <!doctype")


def test_user_password_and_escaped_parts_of_an_address_are_not_told() -> None:
    def repeat(path: str, raw: bytes) -> Misbehaviour:
        return Respond(
            400, "me-user pass-word a%2Fb%2Fkey a/b/key q+v/1 q%2Bv%2F1 bare-token", content_type="text/plain"
        )

    with ChatReceiver(instead=[repeat]) as chat:
        host = chat.url.removeprefix("http://").rstrip("/")
        url = f"http://me-user:pass-word@{host}/a%2Fb%2Fkey?t=q%2Bv%2F1&bare-token"
        (sent,) = send(notice(), [Channel("webhook", url)], NOW, "en")
    assert sent.detail == "HTTP 400: " + " ".join(["[redacted]"] * 7)


# --- proxies -----------------------------------------------------------------------------------------------------

SEND_TO = """
import sys
from datetime import UTC, datetime
from rag_judge.notify import Channel, Notice, send
notice = Notice("ship", None, ["a"], None, {"a": 1})
print([one.ok for one in send(notice, [Channel("webhook", sys.argv[1])], datetime.now(UTC), "en", wait_s=0.0)])
"""


def test_a_proxy_is_used_for_others_and_never_for_this_machine() -> None:
    taken = Respond(200, "")
    with ChatReceiver(instead=[taken] * 9) as proxy, ChatReceiver() as chat:
        plain = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        environment = plain | {"http_proxy": proxy.url, "PYTHONPATH": str(Path(__file__).parents[1])}

        def run(url: str) -> str:
            command = [sys.executable, "-c", SEND_TO, url]
            return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

        assert run(chat.url) == "[True]"
        assert (len(chat.bodies), len(proxy.bodies)) == (1, 0)
        assert run("http://chat.invalid/x") == "[True]"
        assert (len(chat.bodies), len(proxy.bodies)) == (1, 1)
