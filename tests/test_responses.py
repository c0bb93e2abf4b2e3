"""One response of a judge: reply, try again, give one parameter up, leave the case, or stop the run."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from rag_judge.records import Usage
from rag_judge.responses import (
    Accepted,
    CaseRefused,
    FallBack,
    Meaning,
    RunRefused,
    TryAgain,
    error_text,
    meaning_of,
    retry_after_s,
)

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
URL = "http://judge.test/v1"


def meaning(status: int, body: Any, **headers: str) -> Meaning:
    text = body if isinstance(body, str) else json.dumps(body)
    return meaning_of(status, {name.replace("_", "-"): value for name, value in headers.items()}, text, NOW, URL)


def completion(**parts: Any) -> dict[str, Any]:
    return {"object": "chat.completion", "model": "m", "choices": [{"message": {"content": "x"}, **parts}]}


def test_a_completion_is_accepted_with_its_counts() -> None:
    body = completion(finish_reason="stop") | {"usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    assert meaning(200, body) == Accepted("stop", "m", Usage(7, 2))


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": None}, {"prompt_tokens": "7"}, {"prompt_tokens": True}, []]
)
def test_a_count_that_the_server_did_not_give_is_unknown_and_not_zero(usage: Any) -> None:
    accepted = meaning(200, completion() | {"usage": usage})
    assert isinstance(accepted, Accepted)
    assert accepted.usage == Usage(None, None)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        pytest.param(408, {"error": {"message": "timeout"}}, id="408"),
        pytest.param(429, "slow down", id="429 as plain text"),
        pytest.param(500, {"error": {"message": "oops"}}, id="500"),
        pytest.param(502, "<html>Bad gateway</html>", id="502 as HTML"),
        pytest.param(503, "", id="503 empty"),
        pytest.param(529, {"error": "overloaded"}, id="529"),
        pytest.param(200, {"error": {"message": "provider failed", "code": 502}}, id="error object in a 200"),
        pytest.param(200, {"error": "no code at all"}, id="error text in a 200"),
        pytest.param(200, {"choices": None}, id="choices null"),
        pytest.param(200, {"choices": []}, id="no choice"),
        pytest.param(200, "\x00\x01 garbage", id="garbage in a 200"),
        pytest.param(200, '{"choices": [{"mess', id="a completion cut off"),
        pytest.param(200, "", id="an empty 200"),
    ],
)
def test_a_fault_that_may_pass_is_tried_again(status: int, body: Any) -> None:
    assert isinstance(meaning(status, body), TryAgain)


@pytest.mark.parametrize(
    ("status", "body", "cause"),
    [
        (401, {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}, "auth"),
        (403, {"detail": "forbidden"}, "auth"),
        (402, {"error": {"message": "Payment required"}}, "quota"),
        (429, {"error": {"message": "quota", "type": "insufficient_quota"}}, "quota"),
        (429, {"error": {"message": "You exceeded your current quota"}}, "quota"),
        (200, {"error": {"message": "Insufficient credits", "code": 402}}, "quota"),
        (404, {"error": {"message": "The model `x` does not exist"}}, "config"),
        (400, [{"error": {"message": "model: x is not found", "status": "NOT_FOUND"}}], "config"),
        (404, "404 page not found", "config"),
        (200, "<!doctype html><title>sign in</title>", "config"),
        (400, {"error": {"message": "messages must not be empty"}}, "bad_request"),
        (418, "teapot", "bad_request"),
    ],
)
def test_what_no_call_can_get_past_stops_the_run(status: int, body: Any, cause: str) -> None:
    found = meaning(status, body)
    assert isinstance(found, RunRefused)
    assert found.cause == cause
    assert URL in found.detail


@pytest.mark.parametrize(
    ("status", "body", "cause"),
    [
        (400, {"error": {"message": "maximum context length is 8192 tokens"}}, "context_too_long"),
        (400, {"error": {"code": 400, "type": "exceed_context_size_error", "message": "too long"}}, "context_too_long"),
        (
            400,
            {"error": {"message": "maximum context length exceeded with response_format json_object"}},
            "context_too_long",
        ),
        (413, "", "context_too_long"),
        (400, {"error": {"message": "blocked", "code": "content_filter"}}, "content_filter"),
        (
            400,
            {"error": {"message": "filtered", "innererror": {"code": "ResponsibleAIPolicyViolation"}}},
            "content_filter",
        ),
    ],
)
def test_what_only_this_case_meets_leaves_the_run_going(status: int, body: Any, cause: str) -> None:
    found = meaning(status, body)
    assert isinstance(found, CaseRefused)
    assert found.cause == cause


@pytest.mark.parametrize(
    ("message", "what"),
    [
        ("Unsupported value: 'temperature' does not support 0", "drop_temperature"),
        ("`temperature` is deprecated for this model.", "drop_temperature"),
        ("invalid temperature: only 1 is allowed for this model", "drop_temperature"),
        ("'max_tokens' is not supported. Use 'max_completion_tokens' instead.", "max_completion_tokens"),
        ("'response_format.type' must be 'json_schema' or 'text'", "response_format"),
        ("json_schema is not supported by this model", "response_format"),
        ("Unknown parameter: seed", "drop_seed"),
        ("System role not supported", "system_to_user"),
        ("Only n = 1 is supported", "n_single"),
        ("logprobs is not allowed", "drop_logprobs"),
    ],
)
@pytest.mark.parametrize("shape", ["openai", "text", "detail", "bare", "list"])
def test_a_refused_parameter_is_recognised_in_an_error_of_any_shape(message: str, what: str, shape: str) -> None:
    bodies: dict[str, Any] = {
        "openai": {"error": {"message": message, "type": "invalid_request_error"}},
        "text": {"error": message},
        "detail": {"detail": message},
        "bare": {"object": "error", "message": message, "code": 400},
        "list": [{"error": {"message": message}}],
    }
    found = meaning(400, bodies[shape])
    assert isinstance(found, FallBack)
    assert found.what == what


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "3600"}, 3600.0),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, NOW) == seconds


def test_the_missing_v1_is_hinted_at() -> None:
    found = meaning_of(404, {}, "not found", NOW, "http://judge.test")
    assert isinstance(found, RunRefused)
    assert "most servers want it to end in /v1" in found.detail


@pytest.mark.parametrize(
    "body", ["", "{}", "[]", "null", "7", '"x"', "[[]]", '{"error": null}', '{"error": []}', "[" * 9999]
)
@pytest.mark.parametrize("status", [200, 400, 404, 429, 500])
def test_no_body_makes_it_fail(status: int, body: str) -> None:
    assert isinstance(meaning(status, body), TryAgain | RunRefused | Accepted)


def test_error_text_is_short_and_on_one_line() -> None:
    text = error_text({"error": {"message": "a\n b" * 500}}, "")
    assert len(text) == 300
    assert "\n" not in text
