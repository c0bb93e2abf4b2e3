"""The servers of the tests themselves: what they send is what was asked for, and nothing of them is left behind."""

import asyncio
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.misbehaviour import (
    LASTING_TROUBLES,
    LOST_CALLS,
    ODD_FORMS,
    PASSING_TROUBLES,
    SERVER_ERROR,
    SLOW_TROUBLES,
    TROUBLES,
    Close,
    Drip,
    Faults,
    JudgeRequest,
    Misbehaviour,
    Never,
    Request,
    Troubles,
    completion,
    seeded_reply,
)
from tests.servers import PROJECT, JudgeServer, RagServer, judge_process

CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "system", "content": "你是评审"}, {"role": "user", "content": "hello"}],
}


def connected(url: str) -> http.client.HTTPConnection:
    """A connection to a server."""
    return http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)


def post(
    url: str, body: Any, path: str = CHAT, headers: Mapping[str, str] | None = None
) -> tuple[int, dict[str, str], str]:
    """Status, headers (lower-case names) and body of one request on a connection of its own."""
    with closing(connected(url)) as connection:
        connection.request("POST", path, body if isinstance(body, str) else json.dumps(body), dict(headers or {}))
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read().decode()


def text_of(body: str) -> str:
    """The text of a chat completion."""
    return str(json.loads(body)["choices"][0]["message"]["content"])


# --- the judge -----------------------------------------------------------------------------------------------------


def test_a_text_becomes_a_chat_completion_with_usage() -> None:
    with JudgeServer(lambda request: request.text + "！") as judge:
        status, headers, body = post(judge.url, HELLO)
    reply = json.loads(body)
    assert (status, headers["content-type"]) == (200, "application/json")
    assert reply["choices"][0]["message"] == {"role": "assistant", "content": "你是评审\nhello！"}
    assert reply["choices"][0]["finish_reason"] == "stop"
    # 10 characters asked and 11 replied, two a token, rounded up
    assert reply["usage"] == {"prompt_tokens": 5, "completion_tokens": 6, "total_tokens": 11}


def test_a_lone_surrogate_in_question_and_reply_is_carried_through() -> None:
    with JudgeServer(lambda request: request.text) as judge:
        body = post(judge.url, {"messages": [{"role": "user", "content": "a\ud800b"}]})[2]
    assert text_of(body) == "a\ud800b"


def test_the_models_are_listed() -> None:
    with JudgeServer(lambda _: "", model="tiny") as judge, closing(connected(judge.base_url)) as connection:
        connection.request("GET", f"{urlsplit(judge.base_url).path}/models")
        listed = json.loads(connection.getresponse().read())
    assert [model["id"] for model in listed["data"]] == ["tiny"]


def test_requests_are_kept_with_path_headers_body_and_how_often_they_came() -> None:
    with JudgeServer(lambda _: "ok") as judge:
        post(judge.url, HELLO, f"{CHAT}?api-version=3", {"X-Rag-Judge-Repeat": "0"})
        post(judge.url, HELLO, headers={"x-rag-judge-repeat": "1"})
        post(judge.url, dict(reversed(HELLO.items())), headers={"x-rag-judge-repeat": "1"})
    assert [(r.number, r.times_seen) for r in judge.requests] == [(1, 1), (2, 1), (3, 2)]
    assert judge.requests[0].path == f"{CHAT}?api-version=3"
    assert judge.requests[0].headers["x-rag-judge-repeat"] == "0"
    assert judge.requests[0].body == HELLO


def test_a_connection_serves_many_requests() -> None:
    with JudgeServer(lambda request: str(request.number)) as judge, closing(connected(judge.url)) as connection:
        replies = []
        for _ in range(3):
            connection.request("POST", CHAT, json.dumps(HELLO))
            replies.append(text_of(connection.getresponse().read().decode()))
            kept = connection.sock
            assert kept is not None
    assert replies == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("body", "path", "status"),
    [
        pytest.param("{", CHAT, 400, id="no JSON"),
        pytest.param("[]", CHAT, 400, id="no object"),
        pytest.param("", CHAT, 400, id="nothing"),
        pytest.param("{}", "/chat/completions", 404, id="without /v1"),
        pytest.param("{}", "/v1/models", 404, id="wrong method"),
    ],
)
def test_what_is_no_request_is_refused_and_not_kept(body: str, path: str, status: int) -> None:
    with JudgeServer(lambda _: "ok") as judge:
        assert post(judge.url, body, path)[0] == status
    assert judge.requests == []


def test_without_the_expected_key_nothing_is_answered() -> None:
    with JudgeServer(lambda _: "ok", api_key="k") as judge:
        assert post(judge.url, HELLO)[0] == 401
        assert post(judge.url, HELLO, headers={"Authorization": "Bearer other"})[0] == 401
        assert post(judge.url, HELLO, headers={"Authorization": "Bearer k"})[0] == 200
    assert len(judge.requests) == 1


def test_the_most_requests_at_a_time_are_counted() -> None:
    together = threading.Barrier(5, timeout=30)

    def reply(request: JudgeRequest) -> str:
        together.wait()
        return "ok"

    async def ask_five(url: str) -> list[int]:
        async with aiohttp.ClientSession() as session:

            async def ask() -> int:
                async with session.post(url, json=HELLO) as response:
                    await response.read()
                    return response.status

            return await asyncio.gather(*(ask() for _ in range(5)))

    with JudgeServer(reply) as judge:
        assert asyncio.run(ask_five(judge.url + CHAT)) == [200] * 5
        assert asyncio.run(ask_five(judge.url + CHAT)) == [200] * 5
    assert judge.max_concurrency == 5
    assert sorted(request.number for request in judge.requests) == list(range(1, 11))


def test_requests_one_after_another_are_never_counted_as_two_at_a_time() -> None:
    with JudgeServer(lambda _: "ok") as judge, closing(connected(judge.url)) as connection:
        for _ in range(200):
            connection.request("POST", CHAT, json.dumps(HELLO))
            connection.getresponse().read()
    assert judge.max_concurrency == 1


def test_each_answer_can_be_delayed() -> None:
    with JudgeServer(lambda _: "ok", delay_s=0.2) as judge:
        started = time.monotonic()
        post(judge.url, HELLO)
        assert time.monotonic() - started >= 0.2


def test_what_a_reply_function_raises_is_raised_where_the_block_ends() -> None:
    def reply(request: JudgeRequest) -> str:
        raise ZeroDivisionError("in the reply")

    def ask() -> None:
        with JudgeServer(reply) as judge, pytest.raises(http.client.RemoteDisconnected):
            post(judge.url, HELLO)

    with pytest.raises(ZeroDivisionError, match="in the reply"):
        ask()


# --- a process of its own ------------------------------------------------------------------------------------------


def test_a_judge_process_replies_as_one_in_this_process_and_again_after_a_restart() -> None:
    bodies = [HELLO | {"n": i} for i in range(5)]
    with judge_process("--seed", "7") as base_url:
        first = [text_of(post(base_url, body)[2]) for body in bodies]
    with judge_process("--seed", "7") as base_url:
        again = [text_of(post(base_url, body)[2]) for body in reversed(bodies)]
    with JudgeServer(seeded_reply(7)) as judge:
        here = [text_of(post(judge.url, body)[2]) for body in bodies]
    assert first == again[::-1] == here


def test_a_judge_process_writes_down_what_it_was_asked_and_can_fail(tmp_path: Path) -> None:
    record = tmp_path / "asked.jsonl"
    with judge_process("--fault-rate", "1", "--seed", "3", "--record", str(record)) as base_url:
        for _ in range(2):
            # A fault is a broken connection or a body without a text: every kind of PASSING is one of these.
            with pytest.raises((OSError, http.client.HTTPException, ValueError, TypeError, KeyError)):
                assert json.loads(text_of(post(base_url, HELLO)[2]))
        kept = text_of(post(base_url, HELLO)[2])
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    assert [(line["number"], line["times_seen"]) for line in lines] == [(1, 1), (2, 2), (3, 3)]
    assert json.loads(lines[0]["identity"]) == [None, HELLO]
    assert {line["trouble"] for line in lines[:2]} <= PASSING_TROUBLES.keys() | SLOW_TROUBLES.keys()
    assert (lines[2]["trouble"], text_of(lines[2]["body"])) == (None, kept)


def test_a_judge_process_gives_odd_forms_and_refuses_for_good_at_the_rates_it_is_told(tmp_path: Path) -> None:
    record = tmp_path / "asked.jsonl"
    with judge_process("--odd-rate", "1", "--record", str(record)) as base_url:
        odd = json.loads(post(base_url, HELLO)[2])
    with judge_process("--lasting-rate", "1", "--seed", "3", "--record", str(record)) as base_url:
        for _ in range(2):
            with pytest.raises((OSError, http.client.HTTPException, ValueError, TypeError, KeyError)):
                assert json.loads(text_of(post(base_url, HELLO)[2]))
    with JudgeServer(seeded_reply(1)) as judge:
        assert odd == json.loads(post(judge.url, HELLO)[2])
    names = [json.loads(line)["trouble"] for line in record.read_text(encoding="utf-8").splitlines()]
    assert names[0] in ODD_FORMS
    assert names[1] == names[2] in LASTING_TROUBLES


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_judge_process_ends_cleanly_on_a_signal(number: signal.Signals) -> None:
    command = [sys.executable, "-W", "error", "-m", "tests.servers", "judge"]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert post(url, HELLO)[0] == 200
        process.send_signal(number)
        assert process.communicate(timeout=30) == ("", "")
        assert process.returncode == 0
    with pytest.raises(ConnectionRefusedError):
        post(url, HELLO)


STARTER = """
import subprocess, sys
subprocess.Popen([sys.executable, "-m", "tests.servers", "judge"])
sys.stdin.read()
"""


def test_a_judge_process_does_not_outlive_the_process_that_started_it() -> None:
    command = [sys.executable, "-c", STARTER]
    with subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        starter.stdout.readline()
        starter.kill()
        assert starter.stdout.read() == ""  # returns when the last process that holds it has ended


# --- troubles by name ------------------------------------------------------------------------------------------------


def call_of(case: int, repeat: int = 0, times_seen: int = 1, *, is_reask: bool = False) -> JudgeRequest:
    """A request as rag-judge sends it for a repeat of a case."""
    messages = [{"role": "system", "content": "judge"}, {"role": "user", "content": f"case {case}"}]
    if is_reask:
        messages += [{"role": "assistant", "content": "?"}, {"role": "user", "content": "again"}]
    return JudgeRequest(CHAT, {}, {"messages": messages, "seed": repeat}, 1, times_seen)


@pytest.mark.parametrize("name", list(ODD_FORMS))
def test_in_an_odd_form_the_reply_is_whole(name: str) -> None:
    body = completion('{"关": true}')
    with JudgeServer(lambda _: ODD_FORMS[name](body)) as judge:
        status, _, got = post(judge.url, HELLO)
    assert (status, json.loads(got)) == (200, json.loads(body))


@pytest.mark.parametrize("name", sorted(PASSING_TROUBLES.keys() | LASTING_TROUBLES.keys() | {"429 until a date"}))
def test_a_trouble_is_no_reply_with_the_verdict(name: str) -> None:
    text = '{"grounded": true}'
    with JudgeServer(lambda _: TROUBLES[name](completion(text))) as judge:
        try:
            status, _, got = post(judge.url, HELLO)
            said = json.loads(got)["choices"][0]["message"]["content"]
        except (OSError, http.client.HTTPException, ValueError, TypeError, KeyError, IndexError):
            return
    # The one whose fault stands in the count of the prompt's tokens alone says it all the same.
    assert (status, said == text) == (200, name == "cut prompt")


def test_troubles_depend_on_seed_request_and_try_alone() -> None:
    asked = [call_of(case, repeat, n) for case in range(100) for repeat in range(3) for n in (1, 2)]
    shares = {"passing": 0.3, "odd": 0.3, "lasting": 0.3}
    picked = [Troubles(1, **shares)(r) for r in asked]
    again = Troubles(1, **shares)
    assert [again(r) for r in reversed(asked)] == picked[::-1]
    assert [Troubles(2, **shares)(r) for r in asked] != picked
    assert {name for name in picked if name} <= TROUBLES.keys()
    assert [Troubles(1)(r) for r in asked] == [None] * len(asked)


@pytest.mark.parametrize(
    ("share", "names"),
    [("passing", PASSING_TROUBLES), ("odd", ODD_FORMS), ("lasting", LASTING_TROUBLES)],
)
def test_every_trouble_of_a_kind_comes_and_all_together_at_their_share(share: str, names: Mapping[str, Any]) -> None:
    picked = [Troubles(1, **{share: 0.3})(call_of(case)) for case in range(2000)]
    rare = SLOW_TROUBLES.keys() if share == "passing" else LOST_CALLS.keys() if share == "lasting" else set()
    assert {name for name in picked if name} - rare == names.keys()
    # Of the cases in lasting trouble a third is met in about half of its calls: 0.3 * (2/3 + 1/6) = 0.25.
    expected = 0.25 if share == "lasting" else 0.3
    # standard deviation of the count: at most sqrt(2000 * 0.3 * 0.7) = 20.5; four of them
    assert abs(sum(name is not None for name in picked) - 2000 * expected) < 82


def test_a_lasting_trouble_meets_all_calls_of_its_case_or_some_or_no_second_asking_and_every_try_alike() -> None:
    troubles = Troubles(1, lasting=1.0)
    met = set()
    for case in range(300):
        names = [troubles(call_of(case, repeat, is_reask=is_reask)) for is_reask in (False, True) for repeat in (0, 1)]
        assert names == [troubles(call_of(case, r, 5, is_reask=again)) for again in (False, True) for r in (0, 1)]
        assert len({name for name in names if name} - LOST_CALLS.keys()) <= 1
        met.add(tuple(name is not None for name in names))
    # first askings of two repeats, then second askings: each half of them falls out in every way
    assert {(True, True, True, True), (True, True, False, False), (True, False, True, False)} < met


def test_without_faults_no_try_is_drawn_however_often_a_request_came() -> None:
    assert Faults(1, 0.0)(call_of(1, times_seen=10**12)) is None


# --- the RAG system ------------------------------------------------------------------------------------------------


def test_a_rag_system_answers_with_an_object_and_keeps_what_it_was_asked() -> None:
    with RagServer(lambda body: {"answer": f"关于{body['query']}", "contexts": []}) as rag:
        status, _, body = post(rag.ask_url, {"query": "年假", "tenant": "a"}, "/ask", {"X-Key": "s"})
        assert post(rag.ask_url, {"query": "x"}, "/other")[0] == 404
    assert (status, json.loads(body)) == (200, {"answer": "关于年假", "contexts": []})
    assert [dict(r.body) for r in rag.requests] == [{"query": "年假", "tenant": "a"}]
    assert rag.requests[0].headers["x-key"] == "s"
    assert type(rag.requests[0]) is Request


def test_a_rag_system_misbehaves_in_the_same_ways() -> None:
    with RagServer(lambda body: Close() if body["query"] == "x" else SERVER_ERROR) as rag:
        with pytest.raises(http.client.RemoteDisconnected):
            post(rag.ask_url, {"query": "x"}, "/ask")
        assert post(rag.ask_url, {"query": "y"}, "/ask")[0] == 500


# --- the end -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("misbehaviour", [Never(), Drip("x" * 1000, 60.0), Drip("x" * 10_000_000, 0.0, 10_000_000)])
def test_closing_ends_open_requests_idle_connections_and_every_thread(misbehaviour: Misbehaviour) -> None:
    before, n_files = threading.active_count(), len(os.listdir("/dev/fd"))
    arrived = threading.Event()

    def reply(request: JudgeRequest) -> str | Misbehaviour:
        arrived.set()
        return misbehaviour

    with JudgeServer(reply) as judge:
        waiting, idle = connected(judge.url), connected(judge.url)
        idle.connect()
        waiting.request("POST", CHAT, json.dumps(HELLO))
        assert arrived.wait(30)
        started = time.monotonic()
    assert time.monotonic() - started < 20  # not the 60 s of the pause
    waiting.close()
    idle.close()
    assert threading.active_count() == before
    assert len(os.listdir("/dev/fd")) == n_files


def test_clients_that_vanish_are_no_error() -> None:
    arrived = threading.Event()

    def reply(request: JudgeRequest) -> Misbehaviour:
        arrived.set()
        return Drip("x" * 100, 0.01)

    with JudgeServer(reply) as judge:
        half = socket.create_connection(("127.0.0.1", int(judge.url.rpartition(":")[2])))
        half.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
        half.close()
        reset = connected(judge.url)
        reset.request("POST", CHAT, json.dumps(HELLO))
        assert arrived.wait(30)
        reset.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        reset.close()
    assert len(judge.requests) == 1


def test_a_server_can_come_back_where_it_was() -> None:
    with JudgeServer(lambda _: "first") as judge:
        port = int(judge.url.rpartition(":")[2])
        assert text_of(post(judge.url, HELLO)[2]) == "first"
    with pytest.raises(ConnectionRefusedError):
        post(judge.url, HELLO)
    with JudgeServer(lambda _: "second", port=port) as again:
        assert again.url == judge.url
        assert text_of(post(again.url, HELLO)[2]) == "second"
