"""Production logs as they come, and the rates that they point with."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from statsmodels.stats.proportion import proportion_confint

from rag_judge.errors import InputError
from rag_judge.log_times import read_time, zone_of
from rag_judge.production_log import Log, Turn, log_format, read_log
from rag_judge.signals import asked_again, signals_of
from tests.eval_sets import write_rows
from tests.test_cli import rag_judge

MINUTE = 60.0
NOTHING = Turn(0, "q", None, None, None, None, None, None, None, None)


def turn(line: int, question: str = "q", **known: Any) -> Turn:
    return replace(NOTHING, line=line, question=question, **known)


def read(path: Path, *maps: str, **options: Any) -> Log:
    return read_log(path, log_format(maps, **options))


def one(tmp_path: Path, **row: Any) -> Turn:
    return read(write_rows(tmp_path / "log.jsonl", [{"question": "问?"} | row])).turns[0]


# --- times ------------------------------------------------------------------------------------------------------------

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("value", "at", "day", "clock"),
    [
        ("2026-01-31T12:00:00Z", NOON, "2026-01-31", "+00:00"),
        ("2026-02-01T01:00:00+13:00", NOON, "2026-02-01", "+13:00"),
        ("2026-01-31 20:00:00 +0800", NOON, "2026-01-31", "+08:00"),
        ("2026-01-31 12:00:00.500 UTC", NOON + 0.5, "2026-01-31", "+00:00"),
        ("2026/1/31 12:00:00", NOON, "2026-01-31", "none"),
        ("2026-01-31", None, "2026-01-31", "date"),
        (NOON, NOON, "2026-01-31", "epoch"),
        (NOON * 1_000, NOON, "2026-01-31", "epoch"),
        (str(int(NOON)), NOON, "2026-01-31", "epoch"),
        (int(NOON) * 10**9, NOON, "2026-01-31", "epoch"),
    ],
)
def test_a_time_is_read_as_it_is_written(value: object, at: float | None, day: str, clock: str) -> None:
    assert read_time(value, "x", None) == (at, day, clock)


@pytest.mark.parametrize(
    "value", ["yesterday", "31/01/2026 12:00", "2026-02-30", 0, -5, 123, 20260131, 1e30, True, [], ""]
)
def test_what_is_no_time_is_said_with_its_place(value: object) -> None:
    with pytest.raises(InputError, match=r"log:3: time: found .*, expected ISO 8601"):
        read_time(value, "log:3: time", None)


@pytest.mark.parametrize(
    ("zone", "day"),
    [("Asia/Shanghai", "2026-02-01"), ("+08:00", "2026-02-01"), ("UTC", "2026-01-31"), ("-3", "2026-01-31")],
)
def test_days_are_those_of_the_time_zone(zone: str, day: str) -> None:
    late = "2026-01-31T23:30:00+00:00"
    assert read_time(late, "x", zone_of(zone)).day == day


def test_a_time_without_offset_is_in_the_time_zone() -> None:
    assert read_time("2026-01-31 20:00:00", "x", zone_of("Asia/Shanghai")) == (NOON, "2026-01-31", "none")


@pytest.mark.parametrize("zone", ["Mars", "", "Asia", "+99:00", "../etc"])
def test_an_unknown_zone_is_refused(zone: str) -> None:
    with pytest.raises(InputError, match="--timezone: found"):
        zone_of(zone)


def test_times_with_and_without_offset_are_not_mixed_by_guessing(tmp_path: Path) -> None:
    times = ["2026-01-31T12:00:00+08:00", "2026-01-31 12:00:00"]
    log = write_rows(tmp_path / "log.jsonl", [{"question": "q", "time": time} for time in times])
    with pytest.raises(
        InputError, match="time on line 2 has no UTC offset, the one on line 1 has; say with --timezone"
    ):
        read(log)
    assert len({turn.at for turn in read(log, timezone_name="+08:00").turns}) == 1


# --- rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "known"),
    [
        pytest.param({}, {"no_result": None, "refused": None, "handed_off": None, "latency_s": None}, id="nothing"),
        pytest.param({"contexts": []}, {"no_result": True}, id="empty list"),
        pytest.param({"contexts": [{"id": "a"}]}, {"no_result": False}, id="a context"),
        pytest.param({"contexts": None}, {"no_result": None}, id="null is not empty"),
        pytest.param({"contexts": 0}, {"no_result": True}, id="a number of results"),
        pytest.param({"answer": "资料中没有相关信息。"}, {"refused": True}, id="refusal, Chinese"),
        pytest.param({"answer": "I cannot answer that."}, {"refused": True}, id="refusal, English"),
        pytest.param({"answer": "It is 5 days.", "refused": True}, {"refused": False}, id="the text counts"),
        pytest.param({"refused": True}, {"refused": True}, id="the flag alone"),
        pytest.param({"handed_off": 0}, {"handed_off": False}, id="0 is false"),
        pytest.param({"handed_off": "是"}, {"handed_off": True}, id="yes in Chinese"),
        pytest.param({"latency_ms": 1500}, {"latency_s": 1.5}, id="milliseconds"),
        pytest.param({"latency_s": "0.5"}, {"latency_s": 0.5}, id="number as text"),
        pytest.param({"session_id": 7, "user_id": 8}, {"conversation": "7", "user": "8"}, id="ids as numbers"),
        pytest.param({"user": "anonymous", "session": ""}, {"conversation": None, "user": None}, id="nobody"),
    ],
)
def test_what_a_row_does_not_say_is_unknown(tmp_path: Path, row: dict[str, Any], known: dict[str, Any]) -> None:
    found = one(tmp_path, **row)
    assert {name: getattr(found, name) for name in known} == known


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"question": "cut', r"log.jsonl:2: not valid JSON"),
        ("[1]", r"log.jsonl:2: found \[1\] \(list\), expected one JSON object"),
        ('{"text": "q"}', r"log.jsonl:2: question is missing; the row has: text \(name it with --map question=FIELD\)"),
        ('{"q": 5}', r"log.jsonl:2: question: found 5 \(number\), expected text"),
        ('{"q": "q", "time": "soon"}', r'log.jsonl:2: time: found "soon" \(text\)'),
        ('{"q": "q", "latency_s": -1}', r"log.jsonl:2: latency_s: found -1 \(number\), expected a number, at least 0"),
        ('{"q": "q", "latency_s": 1' + "0" * 400 + "}", r"log.jsonl:2: latency_s: found"),
        ('{"q": "q", "handed_off": "maybe"}', r'log.jsonl:2: handed_off: found "maybe" \(text\), expected true'),
        ('{"q": "q", "contexts": {"a": 1}}', r"log.jsonl:2: contexts: found .* \(object\), expected a list"),
        ('{"q": "q", "user": [1]}', r"log.jsonl:2: user: found \[1\] \(list\), expected text"),
        ('{"q": "q", "answer": 1}', r"log.jsonl:2: answer: found 1 \(number\), expected text"),
    ],
)  # fmt: skip
def test_a_broken_row_is_said_or_left_out_and_counted(tmp_path: Path, line: str, words: str) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(f'{{"q": "fine"}}\n{line}\n{{"q": "fine too"}}\n', encoding="utf-8")
    with pytest.raises(InputError, match=words + ".*--skip-broken"):
        read(log)
    kept = read(log, skip_broken=True)
    assert ([turn.line for turn in kept.turns], kept.n_broken) == ([1, 3], 1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\n \n", "found no row that can be read"),
        ('{"q": "年假"}\n'.encode("gbk"), "log.jsonl:1: the encoding is not UTF-8"),
        ('{"q": "年假"}\n'.encode("utf-16"), "the encoding is UTF-16"),
    ],
)
def test_a_file_that_is_no_log_is_said(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "log.jsonl").write_bytes(content)
    with pytest.raises(InputError, match=words):
        read(tmp_path / "log.jsonl")


def test_fields_of_other_names_are_mapped_by_name_or_path(tmp_path: Path) -> None:
    row = {"用户问题": "问?", "a.b": "u1", "trace": {"docs": [], "ms": 250}, "x-session": "s"}
    log = write_rows(tmp_path / "log.jsonl", [row])
    maps = ["question=用户问题", "user=a.b", "contexts=trace.docs", "latency_ms=trace.ms", "conversation=x-session"]
    found = read(log, *maps, "handed_off=nowhere").turns[0]
    assert (found.question, found.user, found.no_result, found.latency_s, found.conversation) == (
        "问?",
        "u1",
        True,
        0.25,
        "s",
    )
    assert read(log, *maps, "handed_off=nowhere", slices=["trace.docs", "b.c"]).unfound == (
        "--map handed_off=nowhere",
        "--slice b.c",
    )


@pytest.mark.parametrize("pair", ["question", "question=", "nonsense=x", "user=a["])
def test_a_mapping_that_says_nothing_is_refused(pair: str) -> None:
    with pytest.raises(InputError, match="--map"):
        log_format([pair])


def test_csv_and_parquet_say_the_same_as_json_lines(tmp_path: Path) -> None:
    csv = tmp_path / "log.csv"
    csv.write_text(
        "﻿question,answer,contexts,time,user_id,latency_s,handed_off,n\n"
        '问?,无法回答该问题。,[],2026-01-31 12:00:00,7,1.5,true,1\n"a ""b""?",,,,,,,\n',
        encoding="utf-8",
    )
    table = {
        "question": ["问?", 'a "b"?'],
        "answer": ["无法回答该问题。", None],
        "contexts": [[], None],
        "time": [datetime(2026, 1, 31, 12), None],
        "user_id": [7.0, float("nan")],
        "latency_s": [Decimal("1.5"), None],
        "handed_off": [True, None],
        "day": [date(2026, 1, 31), None],
    }
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "log.parquet")
    text, binary = read(csv).turns, read(tmp_path / "log.parquet").turns
    first = {"question": "问?", "answer": "无法回答该问题。", "contexts": [], "time": "2026-01-31 12:00:00"}
    known = {"user_id": 7, "latency_s": 1.5, "handed_off": True}
    lines = write_rows(tmp_path / "log.jsonl", [first | known, {"question": 'a "b"?'}])
    expected = [
        (t.question, t.at, t.user, t.no_result, t.refused, t.handed_off, t.latency_s) for t in read(lines).turns
    ]
    assert expected[0] == ("问?", NOON, "7", True, True, True, 1.5)
    for turns in (text, binary):
        assert [
            (t.question, t.at, t.user, t.no_result, t.refused, t.handed_off, t.latency_s) for t in turns
        ] == expected


# --- asked again ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("How do I reset my password?", "how do i reset my password", True),
        ("How do I reset my password?", "reset my password please!!", True),
        ("How do I reset my password?", "How do I reset my API key?", False),
        ("How many days of annual leave?", "How many days of sick leave?", False),
        ("Price for 10 users?", "Price for 20 users?", False),
        ("年假有几天", "年假有几天?", True),
        ("年假有几天", "我有几天年假", True),
        ("怎么退款", "退款怎么弄", True),
        ("年假有几天", "病假有几天", False),
        ("怎么申请 VPN", "怎么申请年假", False),
        ("ok", "ok", True),
    ],
)
def test_the_same_question_is_known_in_other_order_and_with_other_small_words(
    first: str, second: str, same: bool
) -> None:
    turns = [turn(1, first, at=0.0, user="u"), turn(2, second, at=60.0, user="u")]
    assert asked_again(turns, 30 * MINUTE) == [same, False]


def test_the_earlier_question_is_marked_and_only_within_the_window_of_the_same_asker() -> None:
    turns = [
        turn(1, "年假有几天", at=0.0, user="u"),
        turn(2, "年假有几天", at=600.0, user="u"),
        turn(3, "年假有几天", at=1_300.0, user="u"),  # 700 s after the second
        turn(4, "年假有几天", at=1_300.0, user="u"),  # the very same moment: the same row twice
        turn(5, "年假有几天", at=1_350.0, user="v"),
        turn(6, "年假有几天", at=1_400.0),  # nobody knows whose
        turn(7, "年假有几天", user="u"),  # nobody knows when
        turn(8, "年假有几天", at=1_360.0, conversation="c"),
        turn(9, "年假有几天", at=1_370.0, user="w", conversation="c"),
    ]
    found = asked_again(turns, 650.0)
    assert found == [True, False, False, False, False, None, None, True, False]
    shuffled = [4, 8, 1, 0, 6, 3, 7, 2, 5]
    assert asked_again([turns[place] for place in shuffled], 650.0) == [found[place] for place in shuffled]


# --- rates ------------------------------------------------------------------------------------------------------------


def of(turns: Sequence[Turn], lang: str = "en", **options: Any) -> dict[str, Any]:
    return signals_of("log", Log(turns, 0, (), 0, {}, ()), log_format(**options), window_s=30 * MINUTE, lang=lang)


def test_a_rate_is_over_the_rows_that_say_and_the_others_are_counted() -> None:
    turns = [turn(n, user=f"u{n}", no_result=n < 3) for n in range(12)] + [turn(n, user=f"u{n}") for n in range(12, 17)]
    signal = of(turns)["overall"]["signals"]["no_result"]
    assert (signal["n_true"], signal["n"], signal["n_unknown"], signal["n_askers"]) == (3, 12, 5, 12)
    low, high = proportion_confint(3, 12, method="wilson")
    assert signal["rate"]["value"] == 0.25
    assert (signal["rate"]["low"], signal["rate"]["high"]) == pytest.approx((low, high))


def test_many_questions_of_one_asker_widen_the_interval() -> None:
    apart = [turn(n, user=f"u{n}", handed_off=n % 4 == 0) for n in range(80)]
    together = [turn(n, user=f"u{n % 20}", handed_off=n % 4 == 0) for n in range(80)]  # five users, always
    narrow, wide = (of(turns)["overall"]["signals"]["handed_off"]["rate"] for turns in (apart, together))
    assert narrow["value"] == wide["value"] == 0.25
    assert wide["high"] - wide["low"] > 1.8 * (narrow["high"] - narrow["low"])


@pytest.mark.parametrize(("lang", "words"), [("en", "askers: 9, fewer than 10"), ("zh", "只有 9 位提问者,少于 10")])
def test_too_few_askers_make_no_rate(lang: str, words: str) -> None:
    turns = [turn(n, user=f"u{n % 9}", refused=True, latency_s=1.0) for n in range(90)]
    overall = of(turns, lang)["overall"]
    assert (overall["signals"]["refused"]["rate"], overall["signals"]["refused"]["rate_reason"]) == (None, words)
    assert (overall["latency_s"]["median"], overall["latency_s"]["median_reason"]) == (None, words)
    assert overall["signals"]["refused"]["n_true"] == 90


def test_where_the_log_ends_before_the_window_asking_again_is_unknown() -> None:
    # Twelve users ask at minutes 0, 5 … 55 and the first six ask again a minute later; the last time is minute 55, so
    # that what was asked after minute 25 has not been watched for 30 minutes: 0, 1, 5, 6 … 25 are known, 11 rows.
    asked = [turn(n, "年假有几天", at=5 * n * MINUTE, user=f"u{n}") for n in range(12)]
    again = [turn(20 + n, "年假有几天?", at=(5 * n + 1) * MINUTE, user=f"u{n}") for n in range(6)]
    signal = of(asked + again)["overall"]["signals"]["asked_again"]
    assert (signal["n_true"], signal["n"], signal["n_unknown"]) == (6, 11, 7)
    late = of([turn(n, at=n * MINUTE, user="u") for n in range(20)])["overall"]["signals"]["asked_again"]
    assert (late["n"], late["rate_reason"][:27]) == (0, "the log ends within 30 minu")


def test_the_p95_needs_72_rows_and_the_median_does_not() -> None:
    turns = [turn(n, user=f"u{n}", latency_s=float(n)) for n in range(72)]
    latency, short = (of(some)["overall"]["latency_s"] for some in (turns, turns[:71]))
    assert (latency["median"]["value"], latency["median"]["n"]) == (35.5, 72)
    assert latency["p95"]["value"] == pytest.approx(0.95 * 71)
    assert latency["p95"]["low"] < latency["p95"]["value"] < latency["p95"]["high"] <= 71
    assert (short["p95"], short["median"]["value"]) == (None, 35.0)
    assert "worth 71 independent rows, 72 are needed" in short["p95_reason"]


def test_days_and_slices_hold_every_row_once() -> None:
    turns = [
        turn(n, user=f"u{n}", day=None if n == 0 else f"2026-01-0{1 + n % 2}", slices=("web" if n % 3 else None,))
        for n in range(30)
    ]
    found = of(turns, slices=["channel"])
    assert [(group["day"], group["n"]) for group in found["by_day"]] == [
        ("2026-01-01", 14),
        ("2026-01-02", 15),
        (None, 1),
    ]
    assert [(group["field"], group["value"], group["n"]) for group in found["by_slice"]] == [
        ("channel", "web", 20),
        ("channel", None, 10),
    ]


# --- as a user --------------------------------------------------------------------------------------------------------


def log_of(folder: Path, n: int = 60) -> Path:
    rows = [
        {
            "question": f"第{n}题怎么办" if n % 2 else f"What about topic {n}",
            "answer": "资料中没有相关信息。" if n % 5 == 0 else "请在系统中提交申请。",
            "contexts": [] if n % 6 == 0 else ["文本"],
            "time": f"2026-01-31T{8 + n // 6:02}:{n % 60:02}:00+08:00",
            "user_id": f"u{n % 30}",
            "latency_s": 0.1 * n,
            "channel": "[bold]网页" if n % 2 else None,
        }
        for n in range(n)
    ]
    return write_rows(folder / "log.jsonl", rows)


# Both questions of each of the 30 users end alike, so that the 60 tell as much as 29: Wilson at 29 is [7.2, 33.9].
@pytest.mark.parametrize(
    ("lang", "lines", "point"),
    [
        ("en", ["no result: 16.7 % [7.2, 33.9] (10 of 60; 0 unknown)", "refused: 20.0 % ["], "They prove nothing"),
        ("zh", ["无检索结果:16.7 % [7.2, 33.9](10/60;未知 0)", "拒答:20.0 % ["], "不能证明什么"),
    ],
)
def test_signals_prints_rates_what_they_can_mean_and_that_they_prove_nothing(
    tmp_path: Path, lang: str, lines: list[str], point: str
) -> None:
    ended = rag_judge("signals", log_of(tmp_path), "--slice", "channel", "--lang", lang, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    printed = ended.stdout.splitlines()
    for line in lines:
        assert any(shown.startswith(line) for shown in printed), ended.stdout
    assert point in printed[-1]
    assert any("2026-01-31" in line for line in printed[1:])
    assert "[bold]网页" in ended.stdout


def test_signals_as_json_is_one_object_with_reasons_for_what_is_null(tmp_path: Path) -> None:
    ended = rag_judge("signals", log_of(tmp_path), "--json", "--quiet", "--timezone", "UTC", cwd=tmp_path)
    found = json.loads(ended.stdout)
    assert [group["day"] for group in found["by_day"]] == ["2026-01-31"]
    assert found["overall"]["signals"]["handed_off"] == {
        "n_true": 0, "n": 0, "n_unknown": 60, "n_askers": 0, "rate": None, "rate_reason": "no row says",
    }  # fmt: skip
    assert "They prove nothing" in found["note"]
    assert found["overall"]["latency_s"]["p95"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.jsonl"], "nowhere.jsonl: cannot be read"),
        (["log.jsonl", "--window", "0"], "--window: found 0, expected minutes"),
        (["log.jsonl", "--window", "nan"], "--window: found nan"),
        (["log.jsonl", "--timezone", "Mars"], "--timezone: found 'Mars'"),
        (["log.jsonl", "--map", "user=a["], "no valid JMESPath"),
        (["log.jsonl", "--lang", "fr"], "lang"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_is_expected(tmp_path: Path, arguments: list[str], words: str) -> None:
    log_of(tmp_path, 2)
    ended = rag_judge("signals", *arguments, cwd=tmp_path)
    assert (ended.returncode, words in ended.stderr) == (2, True), ended.stderr


def test_odd_rows_of_a_log_are_remarked_on(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(
        '{"q": "a", "time": "2026-01-31T10:00:00+08:00", "answer": "5 days.", "refused": true}\n'
        '{"q": "b", "time": "2026-01-31T10:00:00Z", "user": "\\ud800"}\n'
        '{"q": "cut\n{"q": "c", "s": "\\ud800\\u001b[31m"}\n',
        encoding="utf-8",
    )
    ended = rag_judge("signals", log, "--skip-broken", "--slice", "s", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "log.jsonl:3: not valid JSON" in ended.stderr
    for remark in ("left out: 1", "flag `refused`: 1", "neither user nor conversation: 2", "+08:00: 1, +00:00: 1"):
        assert remark in ended.stdout
    assert "\u001b" not in ended.stdout
    as_json = rag_judge("signals", log, "--skip-broken", "--slice", "s", "--json", cwd=tmp_path)
    assert json.loads(as_json.stdout)["n_broken"] == 1
