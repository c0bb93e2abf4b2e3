"""Answers collected from a real RAG endpoint: mapping, retries, failures that are counted, going on after a stop."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rag_judge.addresses import public_address
from rag_judge.endpoint import mapped, open_endpoint
from rag_judge.errors import CannotGoOn, InputError
from rag_judge.pipeline import RunRequest, World, collect, run
from rag_judge.records import Case
from rag_judge.sections import EndpointSettings
from rag_judge.settings import Settings
from tests.eval_sets import write_rows
from tests.misbehaviour import SERVER_ERROR, Close, Misbehaviour, Never, Reset, Respond, Truncated
from tests.servers import RagServer

Answering = Callable[[dict[str, Any]], Mapping[str, Any] | Misbehaviour]


def world(**environment: str) -> World:
    return World(environment, lambda: datetime(2026, 1, 31, tzinfo=UTC), time.monotonic)


def settings(url: str, system: Mapping[str, Any] | None = None, **endpoint: Any) -> Settings:
    patient = EndpointSettings(url=url, attempts=3, backoff_s=0.0, timeout_s=5.0)
    return Settings(endpoint=replace(patient, **endpoint), system=dict(system or {}))


def cases_file(folder: Path, n: int = 4) -> Path:
    rows: list[dict[str, Any]] = [{"id": f"q{i}", "question": f"question {i}?"} for i in range(n)]
    rows[0] |= {"tenant": "a", "history": [{"role": "user", "content": "before"}]}
    return write_rows(folder / "cases.jsonl", rows)


def echo(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "answer": body["query"].upper(),
        "contexts": [{"id": "d", "text": "t", "score": 1}],
        "citations": ["d"],
        "refused": False,
    }


def collected(folder: Path, answering: Answering, n: int = 4, **options: Any) -> tuple[list[dict[str, Any]], RagServer]:
    with RagServer(answering) as server:
        out = folder / "answers.jsonl"
        collect(cases_file(folder, n), out, settings(server.ask_url, **options), world(TOKEN="secret-token"))
        return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()], server


def test_every_question_is_asked_with_its_tenant_and_history_and_kept_in_order(tmp_path: Path) -> None:
    rows, server = collected(tmp_path, echo)
    assert [row["id"] for row in rows] == ["q0", "q1", "q2", "q3"]
    assert rows[1]["answer"] == "QUESTION 1?"
    bodies = {request.body["query"]: request.body for request in server.requests}
    assert bodies["question 0?"] == {
        "query": "question 0?",
        "tenant": "a",
        "history": [{"role": "user", "content": "before"}],
    }
    assert bodies["question 1?"] == {"query": "question 1?"}
    assert all(row["latency_s"] >= 0 for row in rows)


def test_requests_and_responses_are_mapped_and_headers_come_from_the_environment(tmp_path: Path) -> None:
    def nested(body: dict[str, Any]) -> dict[str, Any]:
        hits = [{"chunk_id": "hr#3", "content": "three months", "score": 0.5}]
        return {"data": {"text": body["input"]["q"], "hits": hits}}

    rows, server = collected(
        tmp_path,
        nested,
        n=2,
        system={"top_k": 8},
        headers={"Authorization": "Bearer ${TOKEN}"},
        request={
            "input": {"q": "Q: {{ question }}", "who": "{{ tenant }}", "turns": "{{ history }}"},
            "n": "{{ top_k }}",
        },
        response={"answer": "data.text", "contexts": "data.hits[].{id: chunk_id, text: content, score: score}"},
    )
    assert rows[0]["contexts"] == [{"id": "hr#3", "text": "three months", "score": 0.5}]
    assert rows[0]["answer"] == "Q: question 0?"
    first, second = sorted((r.body for r in server.requests), key=lambda body: str(body["input"]["q"]))
    assert first == {
        "input": {"q": "Q: question 0?", "who": "a", "turns": [{"role": "user", "content": "before"}]},
        "n": 8,
    }
    assert second == {"input": {"q": "Q: question 1?"}, "n": 8}  # what the case does not have is left out
    assert server.requests[0].headers["authorization"] == "Bearer secret-token"


def test_a_question_is_data_and_never_a_template(tmp_path: Path) -> None:
    cases = write_rows(tmp_path / "cases.jsonl", [{"id": "a", "question": "{{ 7*7 }} {% raw %} [1,2]"}])
    with RagServer(echo) as server:
        asked = settings(server.ask_url, request={"query": "{{ question }}"})
        collect(cases, tmp_path / "out.jsonl", asked, world())
        assert server.requests[0].body == {"query": "{{ 7*7 }} {% raw %} [1,2]"}


@pytest.mark.parametrize(
    "fault",
    [SERVER_ERROR, Close(), Reset(), Truncated('{"answer": "x"}', 5), Respond(429, "")],
    ids=lambda f: str(f)[:24],
)
def test_broken_connections_and_5xx_are_tried_again(tmp_path: Path, fault: Misbehaviour) -> None:
    seen: dict[str, int] = {}

    def shaky(body: dict[str, Any]) -> Mapping[str, Any] | Misbehaviour:
        seen[body["query"]] = seen.get(body["query"], 0) + 1
        return fault if seen[body["query"]] < 3 else echo(body)

    rows, _ = collected(tmp_path, shaky)
    assert [row.get("error") for row in rows] == [None] * 4


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (SERVER_ERROR, "HTTP 500 from the endpoint"),
        (Respond(400, '{"detail": "bad"}'), 'HTTP 400 from the endpoint: {"detail": "bad"}'),
        (Respond(200, "<html>"), "not JSON"),
        (Respond(200, "[]"), "found [] (list), expected an object"),
        (Respond(200, "{}"), "holds no answer; map its fields in [endpoint.response]"),
        (Respond(200, '{"answer": "x", "contexts": [5]}'), "contexts[0]: found 5 (number)"),
        (Respond(200, '{"answer": null, "error": "no index"}'), "no index"),
        (Close(), "connection failed"),
        (Never(), "no answer within 0.5 s"),
    ],
    ids=lambda value: str(value)[:32],
)
def test_a_question_that_failed_is_an_answer_with_an_error(tmp_path: Path, fault: Misbehaviour, message: str) -> None:
    def one_fails(body: dict[str, Any]) -> Mapping[str, Any] | Misbehaviour:
        return fault if body["query"] == "question 2?" else echo(body)

    rows, _ = collected(tmp_path, one_fails, timeout_s=0.5, attempts=2)
    assert [row["id"] for row in rows] == ["q0", "q1", "q2", "q3"]
    assert message in rows[2]["error"]
    assert [row.get("error") for row in rows if row["id"] != "q2"] == [None] * 3


def test_a_dead_endpoint_ends_the_collection_and_what_was_answered_is_kept(tmp_path: Path) -> None:
    alive = [3]

    def dying(body: dict[str, Any]) -> Mapping[str, Any] | Misbehaviour:
        alive[0] -= 1
        return echo(body) if alive[0] >= 0 else SERVER_ERROR

    out = tmp_path / "answers.jsonl"
    with RagServer(dying) as server:
        asked = settings(server.ask_url, concurrency=1, attempts=1)
        cases = cases_file(tmp_path, 30)
        with pytest.raises(CannotGoOn, match=r"failed 10 questions in a row; the last: HTTP 500"):
            collect(cases, out, asked, world())
        assert not out.exists()
        n_requests = len(server.requests)
        assert n_requests == 13
        alive[0] = 1000
        result = collect(cases, out, asked, world())
        assert (result.n_kept, result.n_asked, result.n_failed) == (3, 27, 0)
    assert len(out.read_text(encoding="utf-8").splitlines()) == 30
    assert not (tmp_path / "answers.jsonl.part").exists()


def test_an_endpoint_that_answers_nothing_at_all_is_said_at_once(tmp_path: Path) -> None:
    asked, cases = settings("http://127.0.0.1:9/ask", attempts=1), cases_file(tmp_path, 2)
    with pytest.raises(CannotGoOn, match=r"answered none of 2 questions; the last: connection failed"):
        collect(cases, tmp_path / "out.jsonl", asked, world())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"url": "localhost/ask"}, "expected http:// or https://"),
        ({"headers": {"X": "${NOT_SET}"}}, r"endpoint\.headers\.X: the environment variable NOT_SET is not set"),
        ({"response": {"answer": "data.["}}, r"endpoint\.response\.answer: .* is not valid JMESPath"),
        ({"response": {"answr": "data"}}, r"endpoint\.response\.answr: unknown field; there are: answer"),
        ({"request": {"q": "{{ qestion }}"}}, r"'qestion' is undefined"),
        ({"request": {"q": "{{ question"}}, r"endpoint\.request"),
    ],
)
def test_a_wrong_mapping_is_said_before_the_first_question(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with RagServer(echo) as server:
        asked, cases = settings(**{"url": server.ask_url, **changes}), cases_file(tmp_path)
        with pytest.raises(InputError, match=message):
            collect(cases, tmp_path / "o.jsonl", asked, world())
        assert server.requests == []


def test_a_secret_that_an_endpoint_echoes_is_not_kept(tmp_path: Path) -> None:
    def telltale(body: dict[str, Any]) -> Mapping[str, Any] | Misbehaviour:
        return Respond(400, "bad token Bearer secret-token") if body["query"] == "question 1?" else echo(body)

    rows, _ = collected(tmp_path, telltale, headers={"Authorization": "Bearer ${TOKEN}"})
    assert rows[1]["error"] == "HTTP 400 from the endpoint: bad token [redacted]"


def test_a_run_collects_grades_and_counts_what_failed(tmp_path: Path) -> None:
    def one_fails(body: dict[str, Any]) -> Mapping[str, Any] | Misbehaviour:
        return Respond(400, "") if body["query"] == "question 2?" else echo(body)

    with RagServer(one_fails) as server:
        asked = settings(f"{server.ask_url}?token=abcdef")
        asked = replace(
            asked, judge=replace(asked.judge, prompt="none"), run=replace(asked.run, out=str(tmp_path / "runs"))
        )
        result = run(RunRequest(asked, cases_file(tmp_path)), world())
    assert (result.summary["n_errors"], result.summary["n_answered"], result.exit_code) == (1, 3, 4)
    assert "abcdef" not in result.folder.read_json("manifest.json")["answers"]["source"]
    assert not (result.folder.path / "answers.part.jsonl").exists()


def test_the_key_of_a_kept_answer_changes_with_whatever_was_asked() -> None:
    def key(case: Case, **values: Any) -> str:
        asked = EndpointSettings(
            url="http://x/ask", request={"q": "{{ question }}", "t": "{{ tenant }}", "k": "{{ k }}"}
        )
        return open_endpoint(asked, {}, {"k": 1, **values}).key(case)

    assert key(Case("a", "q?")) == key(Case("a", "q?"), unused=2)
    others = [key(Case("a", "r?")), key(Case("a", "q?"), k=2), key(Case("a", "q?", tenant="t"))]
    assert len({key(Case("a", "q?")), *others}) == 4


def test_an_unmapped_response_gives_the_fields_of_their_own_names() -> None:
    assert mapped({"answer": "a", "contexts": [], "other": 1}, {}) == {"answer": "a", "contexts": []}
    assert mapped([{"t": "a"}], {"answer": "[0].t"}) == {"answer": "a"}
    assert public_address("http://u:p@h:1/ask?key=s") == "http://h:1/ask"


def test_a_question_follows_no_redirect_to_another_address(tmp_path: Path) -> None:
    with RagServer(echo) as other:
        there = Respond(307, "", (("Location", other.ask_url),))
        with RagServer(lambda body: there) as server:
            asked, cases = settings(server.ask_url, headers={"X-Key": "${TOKEN}"}), cases_file(tmp_path)
            with pytest.raises(CannotGoOn, match="the endpoint redirects"):
                collect(cases, tmp_path / "o.jsonl", asked, world(TOKEN="secret-token"))
        assert other.requests == []


@pytest.mark.parametrize(("name", "value"), [("A", "b\nc"), ("A b", "c"), ("A", "é中")])
def test_a_header_that_cannot_be_sent_is_said(name: str, value: str) -> None:
    with pytest.raises(InputError, match=r"endpoint\.headers: .* cannot be sent"):
        open_endpoint(EndpointSettings(url="http://x/ask", headers={name: value}), {}, {})


@pytest.mark.parametrize("expression", ["{{ 1/0 }}", "{{ range(10**10)|list }}", "{{ question.nothing.more }}"])
def test_a_request_template_that_fails_is_said(expression: str) -> None:
    endpoint = open_endpoint(EndpointSettings(url="http://x/ask", request={"q": expression}), {}, {})
    with pytest.raises(InputError, match=r"endpoint\.request"):
        endpoint.key(Case("a", "q?"))
