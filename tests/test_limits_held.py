"""Limits, pauses and a broken cache in whole runs: what is enough is enough, and what is late is not sent."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rag_judge.errors import CannotGoOn
from rag_judge.pipeline import resumed_request, run
from tests.eval_sets import verdict
from tests.misbehaviour import JudgeRequest, Misbehaviour, Respond, failure, rate_limited
from tests.servers import JudgeServer
from tests.test_limits import cost, counted, journal, request, stopped, world


@pytest.mark.parametrize("concurrency", [1, 2, 8])
def test_a_limit_that_is_enough_is_enough_however_many_calls_are_sent_at_once(tmp_path: Path, concurrency: int) -> None:
    # 12 calls of 220 millionths are 0.00264 USD; the dearest call is about 0.0045
    with JudgeServer(lambda _: counted(10), delay_s=0.01) as server:
        result = run(request(tmp_path, server.base_url, max_usd=0.009, priced=True, concurrency=concurrency), world())
    assert cost(result)["usd"] == pytest.approx(12 * 220e-6)


def test_the_message_says_what_is_spent_not_what_is_reserved(tmp_path: Path) -> None:
    # the dearest call is about 0.0045: after three of 0.00022 the next could pass 0.005
    with JudgeServer(lambda _: counted(10), delay_s=0.05) as server, pytest.raises(CannotGoOn) as found:
        run(request(tmp_path, server.base_url, max_usd=0.005, priced=True, concurrency=8), world())
    spent = float(str(found.value).split("limit of 0.005 USD (")[1].split(" USD")[0])
    assert 0 < spent < 0.002


def test_a_server_that_wants_a_larger_budget_does_not_pass_the_limit(tmp_path: Path) -> None:
    def thinks(req: JudgeRequest) -> str | Misbehaviour:
        if req.body["max_tokens"] < 1000:
            return failure(400, "max_tokens is too low, it must be at least 1000")
        return counted(100, req.body["max_tokens"])

    with JudgeServer(thinks, on_probe=thinks) as server:
        folder = stopped(request(tmp_path, server.base_url, n=30, max_usd=0.05, priced=True, cache=False), "limit")
    spent = sum(x["usage"]["prompt_tokens"] * 2 + x["usage"]["completion_tokens"] * 10 for x in journal(folder)) / 1e6
    assert spent <= 0.05


def test_kept_replies_need_no_money(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict()) as server:
        run(request(tmp_path, server.base_url, priced=True), world())
        for limit in ({"max_usd": 0.001}, {"max_calls": 0}):
            assert cost(run(request(tmp_path, server.base_url, priced=True, **limit), world()))["cached"] == 12


def test_a_call_that_waits_for_the_servers_pause_is_not_sent_after_the_deadline(tmp_path: Path) -> None:
    arrived: list[float] = []

    def reply(req: JudgeRequest) -> str | Misbehaviour:
        arrived.append(time.monotonic())
        return rate_limited(2) if req.number == 1 else verdict()

    with JudgeServer(reply) as server:
        started = time.monotonic()
        flags: dict[str, Any] = {"deadline": "1s", "attempts": 3, "concurrency": 4, "cache": False}
        with pytest.raises(CannotGoOn, match="deadline"):
            run(request(tmp_path, server.base_url, **flags), world())
    assert max(arrived) - started < 1.5


def paused(fault: Respond, tmp_path: Path) -> list[float]:
    """When requests came after one that met this fault, in seconds; two calls at a time."""
    arrived: list[float] = []

    def reply(req: JudgeRequest) -> str | Misbehaviour:
        arrived.append(time.monotonic())
        return fault if req.number == 1 else verdict()

    with JudgeServer(reply) as server:
        run(request(tmp_path, server.base_url, attempts=3, cache=False, concurrency=1), world())
    return [at - arrived[0] for at in arrived[1:]]


def test_the_reset_beside_a_429_is_a_pause(tmp_path: Path) -> None:
    headers = (("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "1s"))
    assert min(paused(Respond(429, rate_limited().body, headers), tmp_path)) >= 0.99


def test_retry_after_beside_a_503_holds_for_all(tmp_path: Path) -> None:
    arrived: list[float] = []

    def reply(req: JudgeRequest) -> str | Misbehaviour:
        arrived.append(time.monotonic())
        return Respond(503, "busy", (("Retry-After", "1"),)) if req.number == 1 else verdict()

    with JudgeServer(reply) as server:
        run(request(tmp_path, server.base_url, attempts=3, cache=False, concurrency=2), world())
    # the other worker's first call may be on its way; its next ones are not
    assert sum(at - arrived[0] < 0.99 for at in arrived) <= 3


BREAK = {
    "a field is missing": 'UPDATE replies SET reply = \'{"raw": "x"}\'',
    "a field is new": "UPDATE replies SET reply = json_insert(reply, '$.newer', 1)",
    "no JSON": "UPDATE replies SET reply = '{half'",
    "a server of another version": "UPDATE servers SET learned = json_insert(learned, '$.dialect.newer', 1)",
    "another table of that name": "DROP TABLE servers; CREATE TABLE servers (a)",
    "no table": "DROP TABLE replies; CREATE TABLE replies (key TEXT, at REAL, size INTEGER)",
}


@pytest.mark.parametrize("what", BREAK)
def test_a_cache_that_turns_out_broken_costs_replies_and_no_run(tmp_path: Path, what: str) -> None:
    with JudgeServer(lambda _: verdict()) as server:
        asked = request(tmp_path, server.base_url)
        run(asked, world())
        with closing(sqlite3.connect(tmp_path / ".rag-judge" / "replies.sqlite")) as database:
            database.executescript(BREAK[what])
            database.commit()
        assert run(asked, world()).exit_code == 0


def test_a_cache_whose_pages_are_lost_costs_replies_and_no_run(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict(reason="x" * 120)) as server:
        asked = request(tmp_path, server.base_url, n=60)
        run(asked, world())
        path = tmp_path / ".rag-judge" / "replies.sqlite"
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        raw = bytearray(path.read_bytes())
        raw[len(raw) // 2 : len(raw) // 2 + 8192] = bytes(8192)
        path.write_bytes(raw)
        assert run(asked, world()).exit_code == 0


def test_a_call_that_failed_and_is_then_taken_from_the_cache_counts_as_cached(tmp_path: Path) -> None:
    sick = [True]

    def reply(req: JudgeRequest) -> str | Misbehaviour:
        return Respond(503, "busy") if sick[0] and req.number == 2 else verdict()

    with JudgeServer(reply) as server:
        folder = stopped(request(tmp_path, server.base_url, max_calls=3, concurrency=1), "3 calls")
        sick[0] = False
        run(request(tmp_path, server.base_url, name="other"), world())
        result = run(resumed_request(folder, {"max_calls": 100}, {}), world(), folder)
    kept = {line["call_id"]: line["cached"] for line in journal(result.folder)}
    assert cost(result)["cached"] == sum(kept.values())
