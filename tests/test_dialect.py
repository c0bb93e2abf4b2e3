"""What one probe teaches of a server, over a real socket; streams; and prompts of which a part was not read."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from rag_judge.dialect import PROBE_QUESTION, Dialect, obeys_schema
from rag_judge.errors import CannotGoOn
from rag_judge.grading import vote_of
from rag_judge.judge import ModelServer, Server
from rag_judge.records import Call, CallFailure, Prompt, Reply, Unscored, VerdictField
from rag_judge.responses import whole
from tests.misbehaviour import SERVER_ERROR, UNAUTHORIZED, JudgeRequest, Misbehaviour, Respond, completion, failure
from tests.servers import JudgeServer

SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
VERDICT = '{"ok": true}'
PROMPT = Prompt("p", "passfail", "en", "v", (VerdictField("ok", "boolean"),), "ok", None, 50, "")


def call(number: int = 0, text: str = "this") -> Call:
    return Call(
        call_id=f"{number:040}",
        case_id=f"c{number}",
        repeat=0,
        order=None,
        variant=None,
        messages=({"role": "system", "content": "You grade answers. " * 20}, {"role": "user", "content": text}),
        parameters={
            "temperature": 0,
            "seed": 7,
            "max_tokens": 50,
            "response_format": {"type": "json_schema", "json_schema": {"name": "verdict", "schema": SCHEMA}},
        },
    )


def ask(
    server: JudgeServer, calls: Sequence[Call] = (call(),), **changes: Any
) -> tuple[list[Reply | CallFailure], ModelServer]:
    """All calls at once, with the probe before them."""
    settings = Server(server.base_url, "m", "k", timeout_s=5.0, attempts=3, backoff_s=0.0)

    async def asked() -> tuple[list[Reply | CallFailure], ModelServer]:
        async with ModelServer(replace(settings, **changes), lambda: datetime.now(UTC), lambda line: None) as judge:
            return list(await asyncio.gather(*map(judge.ask, calls))), judge

    return asyncio.run(asked())


def reply_of(results: Sequence[Reply | CallFailure]) -> Reply:
    assert isinstance(results[0], Reply), results[0]
    return results[0]


# --- the probe -------------------------------------------------------------------------------------------------------


def test_many_calls_at_once_are_preceded_by_one_probe_with_the_calls_own_instructions() -> None:
    with JudgeServer(lambda request: VERDICT) as server:
        results, judge = ask(server, [call(n) for n in range(8)])
        assert len(server.probes) == 1
        assert len(server.requests) == 8
        probe = server.probes[0].body
    assert probe["messages"] == [call().messages[0], {"role": "user", "content": PROBE_QUESTION}]
    assert (probe["temperature"], probe["seed"], probe["max_tokens"]) == (0, 7, 50)
    assert "JSON" in PROBE_QUESTION  # some servers refuse a response format without the word
    assert judge.probed is not None
    assert judge.probed.schema_obeyed is True
    assert judge.dialect == Dialect()
    assert reply_of(results).sent["response_format"] == {"type": "json_schema"}


@pytest.mark.parametrize("said", ['{"sky": "blue"}', "Blue.", VERDICT, '["zq7"]'])
def test_a_server_that_takes_a_schema_and_ignores_it_is_found_out(said: str) -> None:
    with JudgeServer(lambda request: VERDICT, on_probe=lambda request: said) as server:
        results, judge = ask(server)
    assert judge.probed is not None
    assert judge.probed.schema_obeyed is False
    assert reply_of(results).sent["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize(
    ("content", "finish_reason", "obeys"),
    [
        pytest.param('{"p": "zq7"}', "stop", True, id="one value"),
        pytest.param(' {"p":"xk2"}\n', "stop", True, id="the other"),
        pytest.param('{"p": "blue"}', "stop", False, id="another value"),
        pytest.param("", "stop", None, id="nothing said"),
        pytest.param('{"p": ', "length", None, id="the budget ran out while it was thinking"),
    ],
)
def test_what_a_reply_to_the_probe_shows(content: str, finish_reason: str, obeys: bool | None) -> None:
    assert obeys_schema(content, finish_reason) is obeys


def picky(*refused: tuple[Callable[[dict[str, Any]], bool], Misbehaviour]) -> Callable[[JudgeRequest], Any]:
    """A server that refuses what these say of a request's body, the first that holds; else it says VERDICT."""

    def reply(request: JudgeRequest) -> str | Misbehaviour:
        return next((fault for holds, fault in refused if holds(dict(request.body))), VERDICT)

    return reply


THINKING = "parameter.enable_thinking must be set to false for non-streaming calls"


@pytest.mark.parametrize(
    ("refuses", "fault", "learned"),
    [
        pytest.param(
            lambda body: "seed" in body, failure(400, "Unsupported parameter: seed", param="seed"),
            Dialect(seed=False), id="seed",
        ),
        pytest.param(
            lambda body: "temperature" in body, failure(400, "`temperature` is deprecated for this model."),
            Dialect(temperature=False), id="temperature",
        ),
        pytest.param(
            lambda body: body.get("enable_thinking") is not False, failure(400, THINKING),
            Dialect(thinking=False), id="thinking",
        ),
        pytest.param(
            lambda body: body["max_tokens"] < 300, failure(400, "max_tokens is too low, it must be at least 300"),
            Dialect(max_tokens_factor=8), id="too small a budget",
        ),
        pytest.param(
            lambda body: body.get("response_format", {}).get("type") == "json_schema",
            failure(400, "'response_format.type' must be 'json_object' or 'text'"),
            Dialect(response_format="json_object"), id="schema",
        ),
        pytest.param(
            lambda body: "logprobs" in body, failure(400, "logprobs are not supported here"),
            Dialect(dropped=frozenset({"logprobs", "top_logprobs"})), id="logprobs",
        ),
        pytest.param(
            lambda body: "top_k" in body, failure(400, "Extra inputs are not permitted: top_k"),
            Dialect(dropped=frozenset({"top_k"})), id="a field of the settings",
        ),
    ],
)  # fmt: skip
def test_what_the_server_refuses_is_learned_from_the_probe_and_no_call_meets_it(
    refuses: Callable[[dict[str, Any]], bool], fault: Misbehaviour, learned: Dialect
) -> None:
    server_says = picky((refuses, fault))
    probe_says = picky((refuses, fault), (lambda body: True, Respond(200, completion('{"p": "zq7"}'))))
    with JudgeServer(server_says, on_probe=probe_says) as server:
        results, judge = ask(
            server, [call(n) for n in range(4)], body={"logprobs": True, "top_logprobs": 2, "top_k": 1}
        )
        assert len(server.probes) == 2  # refused, then accepted
        assert len(server.requests) == 4
    assert judge.dialect == learned
    assert all(isinstance(result, Reply) for result in results)


def test_a_server_that_only_streams_is_streamed_and_the_reply_is_put_together() -> None:
    chunks = [
        {"model": "s-1", "choices": [{"delta": {"role": "assistant", "reasoning_content": "let me see"}}]},
        {"model": "s-1", "choices": [{"delta": {"content": '{"ok"'}}]},
        {"model": "s-1", "choices": [{"delta": {"content": ": true}"}, "finish_reason": "stop"}]},
        {"model": "s-1", "choices": [], "usage": {"prompt_tokens": 90, "completion_tokens": 5}},
    ]
    stream = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    only_streams = picky(
        (lambda body: not body.get("stream"), failure(400, "This model only supports streaming output.")),
        (lambda body: True, Respond(200, stream, content_type="text/event-stream")),
    )
    with JudgeServer(only_streams, on_probe=only_streams) as server:
        results, judge = ask(server)
        assert server.requests[-1].body["stream_options"] == {"include_usage": True}
    reply = reply_of(results)
    assert (reply.model, reply.finish_reason, reply.usage.prompt_tokens) == ("s-1", "stop", 90)
    assert json.loads(reply.raw)["choices"][0]["message"]["reasoning_content"] == "let me see"
    assert not isinstance(vote_of(reply, PROMPT), Unscored)
    assert judge.dialect.stream


@pytest.mark.parametrize(
    ("body", "same"),
    [
        pytest.param('{"choices": []}', True, id="no stream"),
        pytest.param('data: {"choices": [{"delta": {"content": "{"}}]}\n\n', True, id="a stream that broke off"),
        pytest.param("data: not json\n\ndata: [DONE]\n", True, id="garbage"),
        pytest.param('data: {"error": {"message": "overloaded"}}\n\n', False, id="an error in the stream"),
    ],
)
def test_a_stream_that_did_not_end_is_no_reply(body: str, same: bool) -> None:
    assert (whole(body) == body) is same


def test_a_wrong_key_ends_the_run_at_the_probe() -> None:
    with JudgeServer(lambda request: VERDICT, on_probe=lambda request: UNAUTHORIZED) as server:
        with pytest.raises(CannotGoOn, match="auth"):
            ask(server, [call(n) for n in range(4)])
        assert (len(server.probes), len(server.requests)) == (1, 0)


def test_a_probe_that_meets_a_passing_fault_is_not_repeated_and_nothing_is_assumed() -> None:
    with JudgeServer(lambda request: VERDICT, on_probe=lambda request: SERVER_ERROR) as server:
        results, judge = ask(server, [call(n) for n in range(3)])
        assert len(server.probes) == 1
    assert judge.probed is not None
    assert judge.probed.schema_obeyed is None
    assert all(isinstance(result, Reply) for result in results)
