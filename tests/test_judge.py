"""One call to a model server over a real socket: retries, refused parameters, what stops the run, what stays secret."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from rag_judge.addresses import endpoint_url, public_url
from rag_judge.dialect import Dialect
from rag_judge.errors import CannotGoOn, InputError
from rag_judge.judge import ModelServer, Server, answering_local_servers
from rag_judge.records import Call, CallFailure, Reply
from tests.misbehaviour import (
    CHOICES_EMPTY,
    ERROR_200,
    HTML_200,
    NO_SUCH_MODEL,
    NOT_JSON,
    SERVER_ERROR,
    UNAUTHORIZED,
    UNAVAILABLE,
    Close,
    Drip,
    Garbage,
    JudgeRequest,
    Misbehaviour,
    Never,
    Reset,
    Respond,
    Truncated,
    completion,
    failure,
    rate_limited,
    refused_parameter,
)
from tests.servers import JudgeServer, RagServer

KEY = "sk-secret-0123456789"
CALL = Call(
    call_id="0" * 40,
    case_id="c",
    repeat=0,
    order=None,
    variant=None,
    messages=({"role": "system", "content": "grade"}, {"role": "user", "content": "this"}),
    parameters={"temperature": 0, "max_tokens": 50, "response_format": {"type": "json_schema", "json_schema": {}}},
)


def scripted(*steps: str | Misbehaviour) -> Callable[[JudgeRequest], str | Misbehaviour]:
    """The steps in order, the last one again and again."""
    return lambda request: steps[min(request.number, len(steps)) - 1]


def ask(server: JudgeServer, n_calls: int = 1, **changes: Any) -> tuple[list[Reply | CallFailure], ModelServer]:
    settings = Server(server.base_url, "m", KEY, timeout_s=5.0, attempts=3, backoff_s=0.0, probe=False)

    async def asked() -> tuple[list[Reply | CallFailure], ModelServer]:
        async with ModelServer(replace(settings, **changes), lambda: datetime.now(UTC), lambda line: None) as judge:
            return [await judge.ask(CALL) for _ in range(n_calls)], judge

    return asyncio.run(asked())


def only(results: Sequence[Reply | CallFailure]) -> Reply:
    assert len(results) == 1
    assert isinstance(results[0], Reply), results[0]
    return results[0]


def test_a_reply_is_kept_whole_with_what_was_sent() -> None:
    with JudgeServer(scripted("hello")) as server:
        reply = only(ask(server)[0])
        request = server.requests[0]
    assert reply.raw == completion("hello", model="judge-1", n_prompt_tokens=5)
    assert (reply.finish_reason, reply.model, reply.attempts) == ("stop", "judge-1", 1)
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (5, 3)
    assert reply.sent == {
        "model": "m",
        "temperature": 0,
        "max_tokens": 50,
        "response_format": {"type": "json_schema"},
    }
    assert request.body["temperature"] == 0
    assert request.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "fault",
    [
        SERVER_ERROR,
        UNAVAILABLE,
        rate_limited(),
        rate_limited(0),
        Reset(),
        Reset(after_headers=True),
        Close(),
        Truncated(completion("x"), 20),
        Garbage(),
        ERROR_200,
        CHOICES_EMPTY,
        NOT_JSON,
        Respond(408, ""),
    ],
    ids=lambda fault: str(fault)[:40],
)
def test_a_passing_fault_is_tried_again(fault: Misbehaviour) -> None:
    with JudgeServer(scripted(fault, fault, "fine")) as server:
        reply = only(ask(server)[0])
        assert len(server.requests) == 3
    assert reply.attempts == 3


@pytest.mark.parametrize(
    ("fault", "cause", "words"),
    [
        (SERVER_ERROR, "server_error", "HTTP 500"),
        (Close(), "no_reply", "connection failed"),
        (CHOICES_EMPTY, "server_error", "without a choice"),
    ],
)
def test_a_fault_that_stays_is_a_failed_call_with_its_cause_and_no_word_of_the_retry_library(
    fault: Misbehaviour, cause: str, words: str
) -> None:
    with JudgeServer(scripted(fault)) as server:
        results, _ = ask(server)
    failed = results[0]
    assert isinstance(failed, CallFailure)
    assert (failed.cause, failed.attempts) == (cause, 3)
    assert words in failed.detail
    assert "RetryError" not in failed.detail


@pytest.mark.parametrize("silence", [Never(), Drip(completion("x"), pause_s=0.2, n_bytes=1)], ids=["never", "drip"])
def test_a_server_that_does_not_come_to_an_end_is_left_after_the_time_limit(silence: Misbehaviour) -> None:
    with JudgeServer(scripted(silence)) as server:
        results, _ = ask(server, timeout_s=0.4, attempts=2)
    failed = results[0]
    assert isinstance(failed, CallFailure)
    assert (failed.cause, failed.detail) == ("no_reply", "no reply within 0.4 s")


def test_the_server_says_how_long_to_wait_and_a_long_wait_is_announced() -> None:
    waits: list[str] = []
    judge = ModelServer(Server("http://127.0.0.1:9/v1", "m", KEY), lambda: datetime.now(UTC), waits.append)

    class Outcome:
        def __init__(self, wait_s: float | None) -> None:
            self.fault = type("Fault", (Exception,), {"wait_s": wait_s})("429")

        def exception(self) -> Any:
            return self.fault

    def pause(wait_s: float | None, attempt: int) -> float:
        return judge._pause(type("State", (), {"outcome": Outcome(wait_s), "attempt_number": attempt})())

    assert pause(7.0, 1) == 7.0
    assert pause(3600.0, 1) == 3600.0
    assert len(waits) == 1
    assert "3600 s" in waits[0]
    assert [pause(None, attempt) for attempt in (1, 2, 3, 20)] == [0.5, 1.0, 2.0, 30.0]


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (UNAUTHORIZED, "auth"),
        (NO_SUCH_MODEL, "config"),
        (HTML_200, "config"),
        (
            failure(429, "You exceeded your current quota", type="insufficient_quota", code="insufficient_quota"),
            "quota",
        ),
        (failure(400, "messages: field required"), "bad_request"),
    ],
    ids=["key", "model", "page", "quota", "request"],
)
def test_what_no_call_can_get_past_is_sent_once_and_stops_the_run(fault: Misbehaviour, cause: str) -> None:
    with JudgeServer(scripted(fault)) as server:
        with pytest.raises(CannotGoOn, match=cause):
            ask(server)
        assert len(server.requests) == 1


def test_a_page_instead_of_a_reply_is_a_passing_fault_once_the_server_has_replied() -> None:
    with JudgeServer(scripted("fine", HTML_200, "fine again")) as server:
        results, _ = ask(server, n_calls=2)
    assert [type(result) for result in results] == [Reply, Reply]


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (
            failure(400, "This model's maximum context length is 8192 tokens", code="context_length_exceeded"),
            "context_too_long",
        ),
        (failure(400, "The prompt was filtered", code="content_filter"), "content_filter"),
    ],
)
def test_what_only_this_case_meets_is_a_failed_call_without_another_try(fault: Misbehaviour, cause: str) -> None:
    with JudgeServer(scripted(fault)) as server:
        failed = ask(server)[0][0]
        assert len(server.requests) == 1
    assert isinstance(failed, CallFailure)
    assert failed.cause == cause


def test_a_refused_parameter_is_given_up_once_for_the_whole_run_and_recorded() -> None:
    def picky(request: JudgeRequest) -> str | Misbehaviour:
        for name in ("temperature", "response_format", "max_tokens"):
            if name in request.body:
                message = f"Unsupported parameter: '{name}' is not supported. Use 'max_completion_tokens' instead."
                return failure(400, message, param=name) if name == "max_tokens" else refused_parameter(name)
        return "fine"

    with JudgeServer(picky) as server:
        results, judge = ask(server, n_calls=2)
        n_requests = len(server.requests)
        last = server.requests[-1].body
    # temperature, json_schema, json_object and max_tokens refused one after another, then two accepted
    assert n_requests == 6
    assert judge.dialect == Dialect(temperature=False, response_format="none", max_tokens_name="max_completion_tokens")
    assert {"temperature", "response_format", "max_tokens"} & set(last) == set()
    assert last["max_completion_tokens"] == 50
    assert isinstance(results[1], Reply)
    assert "temperature" not in results[1].sent


def test_without_a_system_role_the_instructions_stand_before_the_material() -> None:
    def no_system(request: JudgeRequest) -> str | Misbehaviour:
        if request.body["messages"][0]["role"] == "system":
            return failure(400, "System role not supported")
        return "fine"

    with JudgeServer(no_system) as server:
        reply = only(ask(server)[0])
        assert server.requests[-1].body["messages"] == [{"role": "user", "content": "grade\nthis"}]
    assert reply.sent["system_role"] is False


def test_a_key_that_a_server_echoes_is_kept_nowhere() -> None:
    with JudgeServer(scripted(failure(500, f"bad key {KEY}"), f"your key is {KEY}")) as server:
        reply = only(ask(server)[0])
        assert KEY not in reply.raw
        assert "[redacted]" in reply.raw
    with JudgeServer(scripted(failure(401, f"Incorrect API key provided: {KEY}"))) as server:
        with pytest.raises(CannotGoOn) as stopped:
            ask(server)
        assert KEY not in str(stopped.value)
    assert KEY not in repr(Server("http://x", "m", KEY))


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://j.test/v1", "https://j.test/v1/chat/completions"),
        ("https://j.test/v1/", "https://j.test/v1/chat/completions"),
        ("https://j.test", "https://j.test/chat/completions"),
        ("https://j.test/v1/chat/completions", "https://j.test/v1/chat/completions"),
        ("https://j.test/v1?api-version=3", "https://j.test/v1/chat/completions?api-version=3"),
        ("https://j.test/v1/?api-version=3", "https://j.test/v1/chat/completions?api-version=3"),
        (" http://127.0.0.1:8000/v1 ", "http://127.0.0.1:8000/v1/chat/completions"),
    ],
)
def test_the_endpoint_under_a_base_url_is_never_guessed(base_url: str, url: str) -> None:
    assert endpoint_url(base_url) == url


@pytest.mark.parametrize("base_url", ["j.test/v1", "ftp://j.test", "", "http://", "/v1"])
def test_a_base_url_without_scheme_or_host_is_an_error(base_url: str) -> None:
    with pytest.raises(InputError, match="expected http:// or https://"):
        endpoint_url(base_url)


def test_secrets_in_an_address_are_not_written_down_but_sent() -> None:
    assert public_url("https://user:pass@j.test:8443/v1/?key=abcdef") == "https://j.test:8443/v1"
    with JudgeServer(scripted("fine")) as server:
        only(ask(server, base_url=f"{server.base_url}?key=abcdef")[0])
        assert server.requests[0].path == "/v1/chat/completions?key=abcdef"


def test_only_model_servers_that_answer_are_named_and_nothing_but_the_list_of_models_is_asked_for() -> None:
    with JudgeServer(scripted("x")) as judge, RagServer(lambda body: {}) as other:
        ports = [int(server.url.rsplit(":", 1)[1]) for server in (judge, other)]
        assert answering_local_servers([*ports, 9]) == [judge.base_url]
        assert judge.requests == []


def test_what_is_judged_follows_no_redirect_to_another_address() -> None:
    with JudgeServer(scripted("stolen")) as other:
        there = Respond(307, "", (("Location", f"{other.base_url}/chat/completions"),))
        with JudgeServer(scripted(there)) as server, pytest.raises(CannotGoOn, match="it redirects to"):
            ask(server)
        assert other.requests == []


def test_a_server_that_asks_to_wait_for_days_ends_the_run_at_once() -> None:
    with JudgeServer(scripted(rate_limited(99_999_999))) as server, pytest.raises(CannotGoOn, match="go on later"):
        ask(server)


def test_a_reply_of_many_megabytes_is_no_verdict() -> None:
    with JudgeServer(scripted("x" * 9_000_000)) as server:
        failed = ask(server, attempts=1)[0][0]
    assert isinstance(failed, CallFailure)
    assert "9 MB" in failed.detail
