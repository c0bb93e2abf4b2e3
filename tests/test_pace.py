"""The pace of requests: by a clock that the test moves, and over a real socket after a server asked for a pause."""

import asyncio
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from rag_judge.judge import ModelServer, Server
from rag_judge.pace import LONGEST_RESET_S, DeadlinePassed, Pace, seconds_of
from rag_judge.records import Call, CallFailure, Reply
from tests.misbehaviour import JudgeRequest, Misbehaviour, Respond, completion, rate_limited
from tests.servers import JudgeServer


@dataclass
class Clock:
    """Seconds, which pass when the test says so."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def paced(most_at_once: int = 8, **per_minute: Any) -> tuple[Pace, Clock]:
    clock = Clock()
    return Pace(most_at_once, clock, **per_minute), clock


def enter(pace: Pace, tokens: int = 1) -> None:
    """Send a request that need not wait."""
    assert pace.wait_s(tokens) == 0
    asyncio.run(pace.enter(tokens))


def n_fit(pace: Pace) -> int:
    """How many more requests may go out now; they do."""
    n = 0
    while pace.wait_s(1) == 0:
        asyncio.run(pace.enter(1))
        n += 1
    return n


# --- how many at once ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2, 7])
def test_at_most_so_many_are_on_their_way_and_each_end_makes_room_for_one(most: int) -> None:
    pace, clock = paced(most)
    assert n_fit(pace) == most
    clock.now += 3600
    assert n_fit(pace) == 0  # time alone makes no room
    pace.leave()
    assert n_fit(pace) == 1


def test_room_is_made_however_a_request_ends() -> None:
    pace, _ = paced(1)
    enter(pace)
    with pytest.raises(RuntimeError, match="broken"), pace.counted():
        raise RuntimeError("broken")
    assert n_fit(pace) == 1


def test_each_refusal_halves_what_may_be_on_its_way_down_to_one() -> None:
    pace, clock = paced(8)
    limits = []
    for _ in range(5):
        pace.too_fast(None, {}, clock.now)
        limits.append(pace.limit)
    assert (limits, pace.n_slowed) == ([4, 2, 1, 1, 1], 5)
    assert n_fit(pace) == 1


def test_what_is_on_its_way_when_the_limit_falls_is_waited_for() -> None:
    pace, clock = paced(8)
    assert n_fit(pace) == 8
    pace.too_fast(None, {}, clock.now)
    for _ in range(4):
        pace.leave()
        assert n_fit(pace) == 0
    pace.leave()
    assert n_fit(pace) == 1


@pytest.mark.parametrize("limit", [1, 2, 4, 16])
def test_a_full_round_of_replies_adds_one_and_no_more(limit: int) -> None:
    pace, clock = paced(2 * limit)
    pace.too_fast(None, {}, clock.now)
    assert pace.limit == limit
    for _ in range(limit - 1):
        pace.succeeded({})
    assert pace.limit == limit
    pace.succeeded({})
    assert pace.limit == limit + 1


def test_requests_that_were_on_their_way_together_halve_the_limit_once() -> None:
    pace, clock = paced(64)
    entered_at = clock.now
    clock.now += 1.0
    for _ in range(64):
        pace.too_fast(None, {}, entered_at)
    assert (pace.limit, pace.n_slowed) == (32, 64)
    clock.now += 1.0
    pace.too_fast(None, {}, clock.now)
    assert pace.limit == 16


def test_a_request_that_could_go_out_after_the_deadline_only_is_not_waited_for() -> None:
    clock = Clock()
    pace = Pace(4, clock, deadline=clock.now + 3.0)
    enter(pace)
    pace.pause(5.0)
    for _ in range(2):
        with pytest.raises(DeadlinePassed):
            asyncio.run(pace.enter(1))
        clock.now += 5.0


def test_replies_never_raise_the_limit_above_the_most() -> None:
    pace, _ = paced(3)
    for _ in range(100):
        pace.succeeded({})
    assert (pace.limit, n_fit(pace)) == (3, 3)


# --- pauses ----------------------------------------------------------------------------------------------------------


def test_a_pause_holds_for_all_until_it_is_over_and_the_longest_counts() -> None:
    pace, clock = paced()
    pace.too_fast(5.0, {}, clock.now)
    pace.pause(2.0)  # shorter: it takes nothing from the first
    assert (pace.wait_s(1), pace.wait_s(10**6)) == (5.0, 5.0)
    clock.now += 4.5
    assert pace.wait_s(1) == 0.5
    pace.pause(2.0)
    assert pace.wait_s(1) == 2.0
    clock.now += 2.0
    assert pace.wait_s(1) == 0


@pytest.mark.parametrize("seconds", [None, 0, 0.0, -3.0])
def test_no_pause_is_no_pause(seconds: float | None) -> None:
    pace, _ = paced()
    pace.pause(seconds)
    assert pace.wait_s(1) == 0


# --- so many in a minute ---------------------------------------------------------------------------------------------


def test_no_minute_has_more_requests_than_it_may() -> None:
    pace, clock = paced(100, requests_per_minute=3)
    for _ in range(2):
        enter(pace)
    clock.now += 40
    enter(pace)
    assert pace.wait_s(1) == 20.0  # until the first two are a minute old
    clock.now += 20
    assert n_fit(pace) == 2
    assert pace.wait_s(1) == 40.0  # now the third is the oldest
    clock.now += 40
    assert n_fit(pace) == 1


def test_no_sliding_minute_passes_either_limit_whatever_the_rhythm() -> None:
    pace, clock = paced(1000, requests_per_minute=10, tokens_per_minute=500)
    sent: list[tuple[float, int]] = []
    for step in range(600):
        clock.now += (step * 7 % 11) / 4
        tokens = 1 + step * 37 % 90
        if pace.wait_s(tokens) == 0:
            asyncio.run(pace.enter(tokens))
            sent.append((clock.now, tokens))
    assert len(sent) > 100
    for start, _ in sent:
        minute = [tokens for at, tokens in sent if start <= at < start + 60]
        assert len(minute) <= 10
        assert sum(minute) <= 500


def test_no_minute_has_more_tokens_than_it_may() -> None:
    pace, clock = paced(100, tokens_per_minute=100)
    enter(pace, 60)
    clock.now += 10
    enter(pace, 40)
    assert pace.wait_s(1) == 50.0
    clock.now += 50  # the first is a minute old
    assert pace.wait_s(61) > 0
    enter(pace, 60)


def test_a_request_larger_than_a_minutes_tokens_goes_alone_rather_than_never() -> None:
    pace, clock = paced(100, tokens_per_minute=100)
    enter(pace, 10)
    assert pace.wait_s(5000) == 60.0
    clock.now += 60
    enter(pace, 5000)
    assert pace.wait_s(1) == 60.0
    clock.now += 60
    enter(pace, 1)


def test_a_wait_for_tokens_ends_when_enough_of_them_are_a_minute_old() -> None:
    pace, clock = paced(100, tokens_per_minute=100)
    for _ in range(4):
        enter(pace, 25)
        clock.now += 1
    waited = 0.0
    while (wait := pace.wait_s(100)) > 0:
        clock.now += wait
        waited += wait
    assert waited == 59.0  # until the last of the four, sent a second before, is a minute old


# --- what the server says of its own counters ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        pytest.param({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0, id="6m0s"),
        pytest.param({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms"}, 0.12, id="120ms"),
        pytest.param({"x-ratelimit-remaining-requests": " 0 ", "x-ratelimit-reset-requests": "7"}, 7.0, id="plain"),
        pytest.param(
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "2s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "9s",
            },
            9.0,
            id="the longer of both",
        ),
        pytest.param(
            {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1h"}, LONGEST_RESET_S, id="an hour"
        ),
        pytest.param({"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "6m0s"}, 0, id="one left"),
        pytest.param({"x-ratelimit-remaining-requests": "0"}, 0, id="no reset said"),
        pytest.param({"x-ratelimit-reset-requests": "6m0s"}, 0, id="nothing said of what is left"),
        pytest.param(
            {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1767225600"}, 0, id="a time since 1970"
        ),
        pytest.param(
            {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1767225600000"}, 0, id="in milliseconds"
        ),
        pytest.param(
            {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "2026-01-31T12:00:00Z"}, 0, id="a date"
        ),
        pytest.param({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "inf"}, 0, id="for ever"),
        pytest.param({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "nan"}, 0, id="no number"),
        pytest.param({"x-ratelimit-remaining-tokens": "00"}, 0, id="nothing of use"),
    ],
)
def test_a_reply_that_leaves_no_request_pauses_all_until_the_servers_counter_is_full(
    headers: dict[str, str], wait_s: float
) -> None:
    pace, _ = paced()
    pace.succeeded(headers)
    assert pace.wait_s(1) == pytest.approx(wait_s)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("120ms", 0.12),
        ("2", 2.0),
        ("0.5", 0.5),
        ("1.5s", 1.5),
        ("90", 90.0),
        ("2h", 7200.0),
        ("1h30m", 5400.0),
        ("1h1m1s", 3661.0),
        ("1m1s500ms", 61.5),
        ("1d", 86400.0),
        ("1d2h", 93600.0),
        ("30m", 1800.0),
        ("5m20ms", 300.02),
        ("17.963ms", 0.017963),
        (" 3s ", 3.0),
        ("0s", 0.0),
        ("-3", None),
        ("", None),
        ("  ", None),
        ("soon", None),
        ("3 apples", None),
        ("1.5h", None),
        ("s", None),
        ("06:30", None),
        ("2026-01-31T12:00:00Z", None),
        ("1s2h", None),
    ],
)
def test_durations_are_read_as_servers_write_them(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == (None if seconds is None else pytest.approx(seconds))


# --- over a real socket ----------------------------------------------------------------------------------------------

VERDICT = '{"ok": true}'
TOLERANCE_S = 0.01  # both sides read the same clock; the client's pause begins after the server said it


def call(number: int) -> Call:
    messages = ({"role": "user", "content": f"this, {number}"},)
    return Call(f"{number:040}", f"c{number}", 0, None, None, messages, {"temperature": 0, "max_tokens": 50})


def ask(server: JudgeServer, n: int, pace: Pace, **changes: Any) -> tuple[list[Reply | CallFailure], list[CallFailure]]:
    """All calls at once, without a probe: what came of each, and the failures among it."""
    settings = Server(server.base_url, "m", "k", timeout_s=20.0, backoff_s=0.0, probe=False, **changes)

    async def asked() -> list[Reply | CallFailure]:
        async with ModelServer(settings, lambda: datetime.now(UTC), lambda line: None, pace) as judge:
            return list(await asyncio.gather(*(judge.ask(call(i)) for i in range(n))))

    results = asyncio.run(asked())
    return results, [result for result in results if isinstance(result, CallFailure)]


class Diary:
    """When requests arrived, and when the server said that it is too much."""

    def __init__(self, first: Misbehaviour, n_first: int) -> None:
        """The first `n_first` requests meet `first`, once all of them are there; every later one is answered."""
        self.arrived: list[float] = []
        self.said: list[float] = []
        self._first, self._n_first = first, n_first
        self._all_there = threading.Barrier(n_first)

    def __call__(self, request: JudgeRequest) -> str | Misbehaviour:
        self.arrived.append(time.monotonic())
        if request.number > self._n_first:
            return VERDICT
        self._all_there.wait(10)
        self.said.append(time.monotonic())
        return self._first


@pytest.mark.parametrize("at_once", [1, 4])
def test_after_a_429_no_other_call_goes_out_before_the_pause_is_over(at_once: int) -> None:
    diary = Diary(rate_limited(0.5), at_once)
    pace = Pace(at_once, time.monotonic)
    with JudgeServer(diary) as server:
        results, failures = ask(server, 8, pace)
    assert (len(results), failures) == (8, [])
    assert len(diary.arrived) == 8 + at_once
    over = min(diary.said) + 0.5
    assert all(at >= over - TOLERANCE_S for at in sorted(diary.arrived)[at_once:])
    assert pace.n_slowed == at_once


def test_after_a_reply_that_leaves_no_request_none_goes_out_before_the_counter_is_full() -> None:
    none_left = (("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "400ms"))
    diary = Diary(Respond(200, completion(VERDICT), none_left), 1)
    with JudgeServer(diary) as server:
        _, failures = ask(server, 4, Pace(1, time.monotonic))
    assert failures == []
    assert min(sorted(diary.arrived)[1:]) >= diary.said[0] + 0.4 - TOLERANCE_S


def test_no_more_are_on_their_way_at_once_than_the_pace_allows() -> None:
    with JudgeServer(lambda request: VERDICT, delay_s=0.02) as server:
        _, failures = ask(server, 12, Pace(3, time.monotonic))
        assert (failures, server.max_concurrency) == ([], 3)


def test_after_refusals_fewer_are_on_their_way_at_once() -> None:
    """All 8 are refused, which leaves room for one; a reply a round then adds one a round."""
    diary, busiest, n_now, lock = Diary(rate_limited(0), 8), [0], [0], threading.Lock()

    def counted(request: JudgeRequest) -> str | Misbehaviour:
        if request.number <= 8:
            return diary(request)
        with lock:
            n_now[0] += 1
            busiest.append(n_now[0])
        try:
            return diary(request)
        finally:
            with lock:
                n_now[0] -= 1

    pace = Pace(8, time.monotonic)
    with JudgeServer(counted, delay_s=0.01) as server:
        _, failures = ask(server, 8, pace)
    assert (failures, pace.n_slowed) == ([], 8)
    # 8 replies after the fall to 1: 1 + 1 = 2, then 2.5, 2.9, 3.24, 3.55, 3.83, 4.09: at most 4 at once
    assert max(busiest) <= 4
