"""What the servers of the tests do wrong arrives as that wrong; seeded faults and replies depend on nothing else."""

import asyncio
import http.client
import json
import time
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest

from tests.misbehaviour import (
    CHOICES_EMPTY,
    CHOICES_NULL,
    ERROR_200,
    HTML_200,
    NO_SUCH_MODEL,
    NOT_JSON,
    PASSING,
    SERVER_ERROR,
    UNAUTHORIZED,
    UNAVAILABLE,
    WRONG_CONTENT_TYPE,
    Close,
    Drip,
    Faults,
    Garbage,
    JudgeRequest,
    Misbehaviour,
    Never,
    Reset,
    Respond,
    Truncated,
    completion,
    rate_limited,
    refused_parameter,
    seeded_reply,
)
from tests.servers import JudgeServer
from tests.test_servers import CHAT, HELLO, connected, post, text_of


def body_of(misbehaviour: Misbehaviour) -> tuple[int, dict[str, str], str]:
    """What a client gets from a judge that always does this."""
    with JudgeServer(lambda _: misbehaviour) as judge:
        return post(judge.url, HELLO)


# --- misbehaviours -------------------------------------------------------------------------------------------------

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("misbehaviour", "status", "found"),
    [
        pytest.param(UNAUTHORIZED, 401, "invalid_api_key", id="401"),
        pytest.param(NO_SUCH_MODEL, 404, "model_not_found", id="404"),
        pytest.param(refused_parameter("temperature"), 400, '"param": "temperature"', id="400"),
        pytest.param(rate_limited(), 429, "rate_limit_exceeded", id="429"),
        pytest.param(SERVER_ERROR, 500, "server_error", id="500"),
        pytest.param(UNAVAILABLE, 503, "upstream connect error", id="503"),
        pytest.param(HTML_200, 200, "<html>", id="HTML"),
        pytest.param(ERROR_200, 200, '"error"', id="error object"),
        pytest.param(CHOICES_NULL, 200, '"choices": null', id="choices null"),
        pytest.param(CHOICES_EMPTY, 200, '"choices": []', id="choices empty"),
        pytest.param(Respond(299, "{}"), 299, "{}", id="unknown status"),
    ],
)
def test_a_response_of_any_status_is_sent_as_it_is(misbehaviour: Respond, status: int, found: str) -> None:
    got, headers, body = body_of(misbehaviour)
    assert got == status
    assert found in body
    assert headers["content-type"] == misbehaviour.content_type


@pytest.mark.parametrize(
    ("retry_after", "header"),
    [
        pytest.param(2, "2", id="seconds"),
        pytest.param(0.5, "0.5", id="parts of a second"),
        pytest.param(NOON, "Fri, 02 Jan 2026 12:00:00 GMT", id="date"),
        pytest.param(None, None, id="missing"),
    ],
)
def test_retry_after_is_seconds_or_a_date_or_missing(retry_after: float | datetime | None, header: str | None) -> None:
    assert body_of(rate_limited(retry_after))[1].get("retry-after") == header


def test_a_body_that_is_no_json_cannot_be_read() -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(body_of(NOT_JSON)[2])


def test_a_wrong_content_type_says_nothing_about_the_body() -> None:
    _, headers, body = body_of(WRONG_CONTENT_TYPE)
    assert headers["content-type"] == "text/plain"
    assert text_of(body) == "{}"


def test_a_completion_can_end_for_another_reason_and_say_nothing() -> None:
    choice = json.loads(body_of(Respond(200, completion(None, finish_reason="content_filter")))[2])["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == (None, "content_filter")


@pytest.mark.parametrize(
    ("misbehaviour", "error"),
    [
        pytest.param(Reset(), ConnectionResetError, id="reset"),
        pytest.param(Reset(after_headers=True), ConnectionResetError, id="reset after the headers"),
        pytest.param(Close(), http.client.RemoteDisconnected, id="close"),
        pytest.param(Truncated(completion("{}"), 20), http.client.IncompleteRead, id="truncated"),
        pytest.param(Garbage(), http.client.BadStatusLine, id="garbage"),
    ],
)
def test_a_broken_connection_is_broken_in_that_way(misbehaviour: Misbehaviour, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        body_of(misbehaviour)
    assert type(raised.value) is error


@pytest.mark.parametrize(
    ("misbehaviour", "error"),
    [
        pytest.param(Reset(), aiohttp.ClientOSError, id="reset"),
        pytest.param(Reset(after_headers=True), aiohttp.ClientError, id="reset after the headers"),
        pytest.param(Close(), aiohttp.ServerDisconnectedError, id="close"),
        pytest.param(Truncated(completion("{}"), 20), aiohttp.ClientPayloadError, id="truncated"),
        pytest.param(Garbage(), aiohttp.ClientResponseError, id="garbage"),
        pytest.param(Never(), TimeoutError, id="never"),
        pytest.param(Drip(completion("{}"), 0.1), TimeoutError, id="drip"),
    ],
)
def test_an_asyncio_client_meets_the_same_faults(misbehaviour: Misbehaviour, error: type[Exception]) -> None:
    limit_s = 0.5 if error is TimeoutError else 30

    async def ask(url: str) -> bytes:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=limit_s)) as session,
            session.post(url, json=HELLO) as response,
        ):
            return await response.read()

    with JudgeServer(lambda _: misbehaviour) as judge, pytest.raises(error):
        asyncio.run(ask(judge.url + CHAT))


def test_a_reset_after_the_headers_comes_after_the_headers() -> None:
    with JudgeServer(lambda _: Reset(after_headers=True)) as judge, closing(connected(judge.url)) as connection:
        connection.request("POST", CHAT, json.dumps(HELLO))
        response = connection.getresponse()
        assert response.status == 200
        with pytest.raises(ConnectionResetError):
            response.read()


def test_a_drip_brings_the_whole_body_slowly() -> None:
    body = completion("ok")
    started = time.monotonic()
    assert text_of(body_of(Drip(body, 0.02, n_bytes=len(body) // 10))[2]) == "ok"
    assert time.monotonic() - started >= 0.2  # ten pauses


def test_never_answers_until_the_server_is_closed() -> None:
    with closing(connected("//x")) as connection:
        with JudgeServer(lambda _: Never()) as judge:
            connection = connected(judge.url)
            connection.request("POST", CHAT, json.dumps(HELLO))
            sock = connection.sock
            sock.settimeout(0.2)
            with pytest.raises(TimeoutError):
                sock.recv(1)
            sock.settimeout(30)
        assert sock.recv(1) == b""
        connection.close()


def test_a_misbehaviour_ends_with_its_request() -> None:
    with JudgeServer(lambda request: Reset() if request.times_seen < 3 else "ok") as judge:
        for _ in range(2):
            with pytest.raises(ConnectionResetError):
                post(judge.url, HELLO)
        assert text_of(post(judge.url, HELLO)[2]) == "ok"


# --- faults by seed ------------------------------------------------------------------------------------------------


def request(text: str, times_seen: int = 1, repeat: str | None = None, **body: Any) -> JudgeRequest:
    """A request as a judge would get it."""
    headers = {} if repeat is None else {"x-rag-judge-repeat": repeat}
    return JudgeRequest(CHAT, headers, {"messages": [{"role": "user", "content": text}]} | body, 1, times_seen)


def test_faults_depend_on_seed_request_and_try_alone() -> None:
    asked = [request(str(i), times_seen) for i in range(200) for times_seen in (1, 2)]
    picked = [Faults(1, 0.5)(r) for r in asked]
    again = Faults(1, 0.5)
    assert [again(r) for r in reversed(asked)] == picked[::-1]
    assert [Faults(2, 0.5)(r) for r in asked] != picked
    assert set(picked) == {None, *PASSING}


def test_faults_come_at_their_rate() -> None:
    n_faults = sum(Faults(1, 0.3)(request(str(i))) is not None for i in range(2000))
    # standard deviation of the count: sqrt(2000 * 0.3 * 0.7) = 20.5; four of them
    assert abs(n_faults - 600) < 82


def test_no_request_fails_more_often_in_a_row_than_allowed() -> None:
    tries = [Faults(1, 1.0, most_in_a_row=2)(request("x", n)) is None for n in range(1, 8)]
    assert tries == [False, False, True, False, False, True, False]
    assert Faults(1, 0.0)(request("x")) is None


# --- replies by seed -----------------------------------------------------------------------------------------------


def test_seeded_replies_do_not_depend_on_order_restarts_or_retries() -> None:
    asked = [request(str(i), repeat=str(k)) for i in range(30) for k in range(3)]
    first = [seeded_reply(1)(r) for r in asked]
    second = seeded_reply(1)
    assert [second(r) for r in reversed(asked)] == first[::-1]
    assert seeded_reply(1)(request("0", times_seen=9, repeat="0")) == first[0]
    assert [seeded_reply(2)(r) for r in asked] != first


def test_with_a_repeat_header_the_rest_of_the_body_does_not_count_and_without_it_does() -> None:
    reply = seeded_reply(1)
    texts = [str(i) for i in range(30)]
    assert [reply(request(t, repeat="0", temperature=0)) for t in texts] == [
        reply(request(t, repeat="0")) for t in texts
    ]
    assert [reply(request(t, temperature=0)) for t in texts] != [reply(request(t)) for t in texts]
    assert [reply(request(t, repeat="0")) for t in texts] != [reply(request(t, repeat="1")) for t in texts]


def test_seeded_replies_obey_the_schema_of_the_request() -> None:
    fields = {
        "score": {"type": "integer", "enum": [1, 2, 3, 4, 5]},
        "rank": {"type": "integer", "minimum": 2, "maximum": 3},
        "winner": {"type": "string", "enum": ["A", "B", "tie"]},
        "reason": {"type": "string", "maxLength": 4},
    }
    schema = {"type": "json_schema", "json_schema": {"schema": {"properties": fields}}}
    replies = [json.loads(seeded_reply(1)(request(str(i), response_format=schema))) for i in range(200)]
    assert {reply["score"] for reply in replies} == {1, 2, 3, 4, 5}
    assert {reply["rank"] for reply in replies} == {2, 3}
    assert {reply["winner"] for reply in replies} == {"A", "B", "tie"}
    assert {reply["reason"] for reply in replies} == {"seed"}


def test_without_a_schema_a_verdict_is_one_of_pass_and_fail() -> None:
    replies = [json.loads(seeded_reply(1)(request(str(i)))) for i in range(100)]
    assert {tuple(reply) for reply in replies} == {("grounded", "complete", "should_abstain", "reason")}
    assert {reply["complete"] for reply in replies} == {True, False}
