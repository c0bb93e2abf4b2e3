"""Replies of earlier runs: what tells two requests apart, what is kept and for how long, and one file for many."""

import asyncio
import json
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_judge.addresses import public_url
from rag_judge.cache import DAY_S, PRUNE_EVERY, CachedJudge, ReplyCache, reply_key
from rag_judge.dialect import PROBE_QUESTION, Dialect
from rag_judge.errors import CannotGoOn
from rag_judge.judge import ModelServer, Probed, Server
from rag_judge.records import Call, CallFailure, Reply, Usage
from rag_judge.responses import reply_text
from rag_judge.token_counts import TokenCount
from tests.misbehaviour import (
    SERVER_ERROR,
    UNAUTHORIZED,
    JudgeRequest,
    Misbehaviour,
    Respond,
    completion,
    failure,
    refused_parameter,
)
from tests.servers import PROJECT, JudgeServer, obedient

SECRET = "sk-secret-0123456789"
VERDICT = '{"ok": true}'
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
SERVER = "https://judge.example.com/v1"


@dataclass
class Clock:
    """Seconds since 1970, which pass when the test says so."""

    now: float = 1_000_000_000.0

    def __call__(self) -> float:
        return self.now


def opened(folder: Path, clock: Clock | None = None, *, max_days: float = 30, max_mb: float = 500) -> ReplyCache:
    return ReplyCache(folder / "cache" / "replies.sqlite", max_days=max_days, max_mb=max_mb, clock=clock or Clock())


def call(number: int = 0, text: str = "this", **changes: Any) -> Call:
    made = Call(
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
    return replace(made, **changes)


def reply(raw: str = completion(VERDICT), **changes: Any) -> Reply:
    return replace(Reply(raw, "stop", "m-1", Usage(90, 5), 1.5, 2, {"temperature": 0}), **changes)


def key_of(request: Call, *, base_url: str = SERVER, model: str = "m", api_key: str = "k", **body: Any) -> str:
    """The key of a call as a run would have it."""
    judge = ModelServer(Server(base_url, model, api_key, body=body), lambda: datetime.now(UTC), lambda line: None)
    return reply_key(public_url(base_url), request, judge.body(request))


def with_parameters(**changes: Any) -> Call:
    return call(parameters={**call().parameters, **changes})


# --- what tells two requests apart -----------------------------------------------------------------------------------

OTHERS = {
    "server": key_of(call(), base_url="https://other.example.com/v1"),
    "port": key_of(call(), base_url="https://judge.example.com:8443/v1"),
    "path": key_of(call(), base_url="https://judge.example.com/team-b/v1"),
    "model": key_of(call(), model="m2"),
    "question": key_of(call(text="that")),
    "instructions": key_of(call(messages=({"role": "system", "content": "Grade."}, call().messages[1]))),
    "role": key_of(call(messages=(call().messages[0], {"role": "assistant", "content": "this"}))),
    "order of messages": key_of(call(messages=call().messages[::-1])),
    "temperature": key_of(with_parameters(temperature=1)),
    "a little temperature": key_of(with_parameters(temperature=0.1)),
    "seed": key_of(with_parameters(seed=8)),
    "max_tokens": key_of(with_parameters(max_tokens=16)),
    "schema": key_of(with_parameters(response_format={"type": "json_schema", "json_schema": {"name": "v"}})),
    "no schema": key_of(with_parameters(response_format=None)),
    "a further field": key_of(call(), top_p=0.5),
    "its value": key_of(call(), top_p=0.6),
    "repeat": key_of(call(repeat=1)),
    "order ab": key_of(call(order="ab")),
    "order ba": key_of(call(order="ba")),
    "variant": key_of(call(variant="reask")),
    "case": key_of(call(case_id="c1")),
}


@pytest.mark.parametrize("what", OTHERS)
def test_another_request_has_another_key(what: str) -> None:
    assert OTHERS[what] != key_of(call())
    assert list(OTHERS.values()).count(OTHERS[what]) == 1


@pytest.mark.parametrize(
    "field", ["temperature", "seed", "max_tokens_name", "response_format", "system_role", "stream"]
)
def test_a_request_that_a_server_gets_otherwise_has_another_key(field: str) -> None:
    strict, judge = Dialect(), ModelServer(Server(SERVER, "m", "k"), lambda: datetime.now(UTC), lambda line: None)
    other: Any = {"max_tokens_name": "max_completion_tokens", "response_format": "none", "stream": True}.get(
        field, False
    )
    judge.dialect = replace(strict, **{field: other})
    assert reply_key(SERVER, call(), judge.body(call())) != key_of(call())


def test_neither_a_secret_nor_the_id_of_the_call_is_in_the_key() -> None:
    assert key_of(call(), api_key=SECRET) == key_of(call())
    assert key_of(call(), base_url=f"https://u:{SECRET}@judge.example.com/v1?key={SECRET}") == key_of(call())
    assert key_of(call(call_id="another")) == key_of(call())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)
BODIES = st.dictionaries(st.sampled_from(["model", "messages", "temperature", "max_tokens"]), JSON, max_size=4)
REQUESTS = st.tuples(
    st.text(max_size=2), st.text(max_size=2), st.integers(0, 2), st.sampled_from([None, "ab", "ba"]),
    st.sampled_from([None, "reask"]), BODIES,
)  # fmt: skip


def made_key(request: tuple[Any, ...]) -> str:
    server, case_id, repeat, order, variant, body = request
    return reply_key(server, call(case_id=case_id, repeat=repeat, order=order, variant=variant), body)


@settings(deadline=None)
@given(REQUESTS, REQUESTS)
def test_keys_are_equal_for_the_same_request_alone(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    # As text, because Python takes 1 and True for the same.
    is_same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (made_key(one) == made_key(other)) is is_same


def turned(value: Any) -> Any:
    """The same value with the keys of every object in the opposite order."""
    if isinstance(value, dict):
        return {name: turned(part) for name, part in reversed(value.items())}
    return [turned(part) for part in value] if isinstance(value, list) else value


@settings(deadline=None)
@given(REQUESTS)
def test_the_order_of_keys_does_not_matter_at_any_depth(request: tuple[Any, ...]) -> None:
    assert made_key((*request[:-1], turned(request[-1]))) == made_key(request)


# --- kept, and for how long ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param(reply(), id="plain"),
        pytest.param(reply("line\none \u2028 汉字 \ud83d \x00"), id="any text"),
        pytest.param(reply(usage=Usage(None, None), model=None, finish_reason=None), id="little said"),
        pytest.param(reply(sent={"response_format": {"type": "json_schema"}, "refused": ["top_k"]}), id="parameters"),
    ],
)
def test_a_kept_reply_comes_back_as_it_was_but_took_no_time_and_no_try(tmp_path: Path, kept: Reply) -> None:
    with closing(opened(tmp_path)) as cache:
        assert cache.get("k") is None
        cache.put("k", kept)
    with closing(opened(tmp_path)) as again:
        assert again.get("k") == replace(kept, latency_s=0.0, attempts=0, cached=True)
        assert again.get("K") is None


def test_of_two_replies_to_one_request_the_later_is_kept(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as cache:
        cache.put("k", reply("first"))
        cache.put("k", reply("second"))
        found = cache.get("k")
    assert found is not None
    assert found.raw == "second"


def n_rows(folder: Path, table: str = "replies") -> int:
    with closing(sqlite3.connect(folder / "cache" / "replies.sqlite")) as database:
        return int(database.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])


def test_a_reply_is_kept_so_many_days_and_then_neither_given_nor_stored(tmp_path: Path) -> None:
    clock = Clock()
    with closing(opened(tmp_path, clock, max_days=2)) as cache:
        cache.put("old", reply())
        clock.now += DAY_S
        cache.put("new", reply())
        clock.now += DAY_S
        assert cache.get("old") is not None  # two days to the second
        clock.now += 1
        assert (cache.get("old"), cache.get("new") is not None) == (None, True)
    assert n_rows(tmp_path) == 2
    opened(tmp_path, clock, max_days=2).close()
    assert n_rows(tmp_path) == 1


def test_a_kept_reply_that_is_read_grows_no_younger(tmp_path: Path) -> None:
    clock = Clock()
    with closing(opened(tmp_path, clock, max_days=1)) as cache:
        cache.put("k", reply())
        for _ in range(4):
            clock.now += DAY_S / 4
            assert cache.get("k") is not None
        clock.now += 1
        assert cache.get("k") is None


def test_a_full_file_loses_the_oldest_replies_and_no_more_than_it_must(tmp_path: Path) -> None:
    clock = Clock()
    with closing(opened(tmp_path, clock)) as cache:
        for number in (3, 1, 4, 2, 0):  # by time, not by name
            cache.put(f"k{number}", reply("x" * 10_000))
            clock.now += 1
    # a reply is a little more than 10 kB: three fit into 35 kB
    with closing(opened(tmp_path, clock, max_mb=0.035)) as cache:
        assert [number for number in range(5) if cache.get(f"k{number}")] == [0, 2, 4]
    with closing(opened(tmp_path, clock, max_mb=0)) as cache:
        assert [number for number in range(5) if cache.get(f"k{number}")] == []


def test_a_long_run_keeps_to_the_size_as_well(tmp_path: Path) -> None:
    clock = Clock()
    with closing(opened(tmp_path, clock, max_mb=0.1)) as cache:
        for number in range(PRUNE_EVERY):
            cache.put(f"k{number}", reply("x" * 10_000))
            clock.now += 1
        kept = [number for number in range(PRUNE_EVERY) if cache.get(f"k{number}")]
    assert kept == list(range(PRUNE_EVERY - 9, PRUNE_EVERY))  # nine of a little more than 10 kB


# --- the file --------------------------------------------------------------------------------------------------------


def test_the_file_is_its_owners_alone_and_no_version_control_takes_it(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as cache:
        cache.put("k", reply())
        folder = tmp_path / "cache"
        files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / ".gitignore").read_text(encoding="utf-8") == "*\n"
    assert files.pop(".gitignore")
    assert files.keys() >= {"replies.sqlite", "replies.sqlite-wal"}
    assert set(files.values()) == {0o600}


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\x00" + b"\xff" * 4000])
def test_a_file_that_is_no_cache_is_an_error_and_stays_as_it_is(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cache").mkdir()
    path = tmp_path / "cache" / "replies.sqlite"
    path.write_bytes(content)
    with pytest.raises(sqlite3.Error):
        opened(tmp_path)
    assert path.read_bytes() == content


WRITER = """
import sys
from pathlib import Path
from rag_judge.cache import ReplyCache
from rag_judge.records import Reply, Usage
path, name = Path(sys.argv[1]), sys.argv[2]
sys.stdin.readline()  # both begin when both are there
cache = ReplyCache(path, max_days=30, max_mb=500, clock=lambda: 1e9)
for number in range(300):
    for key in (f"{name}-{number}", f"both-{number}"):
        cache.put(key, Reply(key, "stop", "m", Usage(1, 1), 0.1, 1, {}))
        found = cache.get(key)
        assert found is not None and found.raw == key
cache.close()
"""


def test_processes_that_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "replies.sqlite"
    names = ["a", "b", "c"]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name], cwd=PROJECT, stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for name in names
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    assert [process.communicate()[1] for process in processes] == [b""] * 3
    assert [process.returncode for process in processes] == [0] * 3
    with closing(opened(tmp_path)) as cache:
        keys = [f"{name}-{number}" for name in [*names, "both"] for number in range(300)]
        assert [found.raw for key in keys if (found := cache.get(key))] == keys


# --- what is kept of a real server's replies -------------------------------------------------------------------------


def ask(
    server: JudgeServer, cache: ReplyCache, calls: Sequence[Call] = (call(),), *, at_once: bool = False, **changes: Any
) -> tuple[list[Reply | CallFailure], ModelServer]:
    """Calls one after another, or all at once, as a process of its own would that has this cache."""
    told = Server(server.base_url, "m", SECRET, timeout_s=5.0, attempts=2, backoff_s=0.0)

    async def asked() -> tuple[list[Reply | CallFailure], ModelServer]:
        async with ModelServer(replace(told, **changes), lambda: datetime.now(UTC), lambda line: None) as judge:
            cached = CachedJudge(
                judge, cache, public_url(server.base_url), lambda call, reply: reply_text(reply.raw) == VERDICT
            )
            if at_once:
                return list(await asyncio.gather(*map(cached.ask, calls))), judge
            return [await cached.ask(one) for one in calls], judge

    return asyncio.run(asked())


def cached_of(results: Sequence[Reply | CallFailure]) -> list[bool]:
    return [isinstance(result, Reply) and result.cached for result in results]


def test_the_very_same_request_is_asked_once(tmp_path: Path) -> None:
    with JudgeServer(lambda request: VERDICT) as server, closing(opened(tmp_path)) as cache:
        first, _ = ask(server, cache)
        again, _ = ask(server, cache)
        assert (len(server.requests), len(server.probes)) == (1, 1)
    assert (cached_of(first), cached_of(again)) == ([False], [True])
    assert isinstance(first[0], Reply)
    assert again == [replace(first[0], latency_s=0.0, attempts=0, cached=True)]


def test_no_reply_answers_another_repeat_order_case_or_try(tmp_path: Path) -> None:
    others = [call(repeat=1), call(order="ab"), call(order="ba"), call(1), call(variant="reask")]
    with JudgeServer(lambda request: VERDICT) as server, closing(opened(tmp_path)) as cache:
        results, _ = ask(server, cache, [call(), *others])
        assert len(server.requests) == 6
    assert not any(cached_of(results))


def drops_the_front(request: JudgeRequest) -> Respond:
    """A server that holds 2048 tokens and answers all the same."""
    said = obedient(request) if PROBE_QUESTION in request.text else VERDICT
    return Respond(200, completion(said, n_prompt_tokens=min(2048, round(len(request.text) / 4))))


FILTERED = failure(400, "filtered", code="content_filter")


@pytest.mark.parametrize(
    ("says", "text"),
    [
        pytest.param("I would rather not say.", "this", id="unreadable"),
        pytest.param("", "this", id="nothing said"),
        pytest.param(SERVER_ERROR, "this", id="failed after all its tries"),
        pytest.param(FILTERED, "this", id="refused"),
        pytest.param(drops_the_front, "Every trial runs for 14 days. " * 700, id="cut"),
    ],
)
def test_what_holds_no_verdict_is_not_kept(tmp_path: Path, says: Any, text: str) -> None:
    def reply(request: JudgeRequest) -> str | Misbehaviour:
        return says(request) if callable(says) else says  # type: ignore[no-any-return]

    probe = drops_the_front if callable(says) else obedient
    with JudgeServer(reply, on_probe=probe, on_count=probe) as server, closing(opened(tmp_path)) as cache:
        for _ in range(2):
            n_before = len(server.requests)
            results, _ = ask(server, cache, [call(text=text)])
            assert len(server.requests) > n_before
            assert cached_of(results) == [False]
    assert n_rows(tmp_path) == 0


def test_a_fault_of_the_whole_run_is_raised_through_the_cache(tmp_path: Path) -> None:
    with JudgeServer(lambda request: UNAUTHORIZED) as server, closing(opened(tmp_path)) as cache:
        for _ in range(2):
            with pytest.raises(CannotGoOn, match="auth"):
                ask(server, cache)
    assert n_rows(tmp_path) == 0


def test_no_secret_gets_into_the_file_though_the_server_repeats_it(tmp_path: Path) -> None:
    """The text stays readable: the key stands in another field of the reply."""
    raw = json.dumps({**json.loads(completion(VERDICT)), "echo": f"Bearer {SECRET}"})
    with JudgeServer(lambda request: Respond(200, raw)) as server, closing(opened(tmp_path)) as cache:
        ask(server, cache)
        results, _ = ask(server, cache)
        kept = b"".join(path.read_bytes() for path in (tmp_path / "cache").iterdir())
    assert cached_of(results) == [True]
    assert b"[redacted]" in kept
    assert SECRET.encode() not in kept


# --- what a server accepts -------------------------------------------------------------------------------------------


def refusing(*names: str) -> Any:
    """A server that refuses the first of these parameters that it is sent; else it says VERDICT, or obeys the probe."""

    def reply(request: JudgeRequest) -> str | Misbehaviour:
        for name in names:
            sent = request.body.get(name)
            if name == "json_schema":
                sent = (request.body.get("response_format") or {}).get("type") == "json_schema" or None
            if sent is not None:
                return failure(400, f"Unsupported parameter: '{name}' is not supported.", param=name)
        return obedient(request) if PROBE_QUESTION in request.text else VERDICT

    return reply


def test_what_a_server_accepts_comes_back_as_it_was_learned(tmp_path: Path) -> None:
    dialect = Dialect(seed=False, response_format="json_object", dropped=frozenset({"top_k", "n"}))
    probed = Probed(False, TokenCount(100, 400, 110), Usage(110, 9))
    clock = Clock()
    with closing(opened(tmp_path, clock, max_days=1)) as cache:
        cache.keep_learned("s", "m", dialect, probed)
        # the tokens of a probe are of the run that sent it
        assert cache.learned("s", "m") == (dialect, replace(probed, usage=Usage(None, None)))
        assert cache.learned("s", "m2") is None
        assert cache.learned("s2", "m") is None
        cache.keep_learned("s", "m", Dialect(), Probed(None, None, Usage(None, None)))
        assert cache.learned("s", "m") == (Dialect(), Probed(None, None, Usage(None, None)))
        clock.now += DAY_S + 1
        assert cache.learned("s", "m") is None


def test_a_known_server_is_not_probed_and_no_call_meets_what_it_refuses(tmp_path: Path) -> None:
    picky = refusing("seed", "json_schema")
    with JudgeServer(picky, on_probe=picky) as server, closing(opened(tmp_path)) as cache:
        _, first = ask(server, cache)
        n_probes = len(server.probes)
        _, second = ask(server, cache, [call(1)])
        assert (len(server.probes), len(server.requests)) == (n_probes, 2)
        sent = server.requests[-1].body
    assert first.dialect == second.dialect == Dialect(seed=False, response_format="json_object")
    assert ("seed" in sent, sent["response_format"]) == (False, {"type": "json_object"})
    assert second.probed is not None
    assert first.probed is not None
    assert second.probed.tokens == first.probed.tokens


def test_what_a_known_server_begins_to_refuse_is_learned_and_remembered(tmp_path: Path) -> None:
    refused: list[str] = []
    changing = lambda request: refusing(*refused)(request)  # noqa: E731
    with JudgeServer(changing, on_probe=changing) as server, closing(opened(tmp_path)) as cache:
        ask(server, cache)
        refused.append("temperature")
        results, judge = ask(server, cache, [call(1), call(2)])
        assert len(server.requests) == 1 + 3  # one refused, two answered
        ask(server, cache, [call(3)])
        assert (len(server.requests), len(server.probes)) == (5, 1)
    assert judge.dialect == Dialect(temperature=False)
    assert all(isinstance(result, Reply) and "temperature" not in result.sent for result in results)


def test_a_reply_to_a_weaker_request_does_not_answer_a_stronger_one(tmp_path: Path) -> None:
    """What was learned of the server is too old on day 35, the reply of day 20 is not."""
    refused = ["json_schema"]
    changing = lambda request: refusing(*refused)(request)  # noqa: E731
    clock = Clock()
    with JudgeServer(changing, on_probe=changing) as server, closing(opened(tmp_path, clock)) as cache:
        ask(server, cache, [call(1)])
        clock.now += 20 * DAY_S
        ask(server, cache, [call()])
        weak, _ = ask(server, cache, [call()])
        refused.clear()
        clock.now += 15 * DAY_S
        strong, _ = ask(server, cache, [call()])
        again, _ = ask(server, cache, [call()])
        assert server.requests[-1].body["response_format"]["type"] == "json_schema"
    assert [cached_of(results) for results in (weak, strong, again)] == [[True], [False], [True]]


def test_the_reply_that_taught_what_is_refused_is_kept_as_the_weaker_request_that_it_answers(tmp_path: Path) -> None:
    picky = refusing("seed")
    # the probe is let through, so that the call itself meets the refusal
    with JudgeServer(picky) as server, closing(opened(tmp_path)) as cache:
        first, judge = ask(server, cache)
        name = public_url(server.base_url)
        assert len(server.requests) == 2
        assert "seed" not in judge.body(call())
        assert cache.get(reply_key(name, call(), judge.body(call()))) is not None
        assert cache.get(reply_key(name, call(), {**judge.body(call()), "seed": 7})) is None
        again, _ = ask(server, cache)
        assert len(server.requests) == 2
    assert (cached_of(first), cached_of(again)) == ([False], [True])


def test_a_reply_to_a_request_that_is_no_longer_sent_so_is_not_kept_for_the_one_that_is(tmp_path: Path) -> None:
    """The first call goes out with a seed; before its reply comes, the second learns that seeds are refused."""
    learned = threading.Event()

    def moody(request: JudgeRequest) -> str | Misbehaviour:
        if request.text.endswith("second"):
            if "seed" in request.body:
                return refused_parameter("seed")
            learned.set()
        elif not learned.wait(10):
            return SERVER_ERROR
        return VERDICT

    first, second = call(0, "first"), call(1, "second")
    with JudgeServer(moody) as server, closing(opened(tmp_path)) as cache:
        results, judge = ask(server, cache, [first, second], at_once=True)
        name = public_url(server.base_url)
        kept = [cache.get(reply_key(name, one, judge.body(one))) is not None for one in (first, second)]
    assert [isinstance(result, Reply) and "seed" in result.sent for result in results] == [True, False]
    assert kept == [False, True]


def test_without_a_probe_replies_are_kept_as_well(tmp_path: Path) -> None:
    with JudgeServer(lambda request: VERDICT) as server, closing(opened(tmp_path)) as cache:
        ask(server, cache, probe=False)
        results, _ = ask(server, cache, probe=False)
        assert (len(server.requests), len(server.probes)) == (1, 0)
    assert cached_of(results) == [True]
