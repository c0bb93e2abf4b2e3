"""The example's RAG service: how it reads, searches and answers, and over a real socket."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rag_judge.demo.rag_service import (
    V1,
    V2,
    Assistant,
    Chunk,
    corpus_version,
    load_chunks,
    running_service,
    tokenise,
)
from rag_judge.errors import InputError

KB = Path(__file__).parent.parent / "eval" / "kb"
CASES: list[dict[str, Any]] = json.loads((KB.parent / "rag_cases.json").read_text(encoding="utf-8"))


# --- reading the chunks --------------------------------------------------------------------------------------------

GOOD = '{"id": "d#1", "text": "一", "heading": "h", "tenant": null}'


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        pytest.param([GOOD, GOOD], r"d\.jsonl:2: the id 'd#1' stands twice", id="an id twice"),
        pytest.param([GOOD, "{"], r"d\.jsonl:2: not a line of JSON", id="half a line"),
        pytest.param(["", "[1]"], r"d\.jsonl:2: found list, expected an object", id="no object"),
        pytest.param(['{"id": 3, "text": "x"}'], r"d\.jsonl:1: id is 3, expected text", id="a number as id"),
        pytest.param(['{"id": "d#1", "text": " "}'], r"text is ' ', expected text that is not empty", id="no text"),
        pytest.param(['{"id": "d", "text": "x", "heading": 1}'], r"heading is 1, expected text", id="bad heading"),
        pytest.param(['{"id": "d", "text": "x", "tenant": ""}'], r"tenant is '', expected a name", id="empty tenant"),
        pytest.param(['{"id": "d", "text": "x", "keywords": "y"}'], r"keywords is 'y', expected a list", id="keywords"),
        pytest.param(['{"id": "d", "text": "x", "questions": [1]}'], r"questions is \[1\], expected a", id="questions"),
        pytest.param([""], r"found no chunk", id="nothing"),
    ],
)
def test_a_knowledge_base_that_cannot_be_used_says_where_and_why(
    tmp_path: Path, lines: list[str], message: str
) -> None:
    (tmp_path / "d.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_chunks(tmp_path)


def test_chunks_come_by_file_name_and_a_line_separator_inside_a_text_ends_no_line(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_bytes('{"id": "b#1", "text": "x\u2028y"}\r\n'.encode())
    (tmp_path / "a.jsonl").write_bytes(GOOD.encode() + b"\n\n")
    assert [(chunk.id, chunk.text) for chunk in load_chunks(tmp_path)] == [("d#1", "一"), ("b#1", "x\u2028y")]


# --- words -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        pytest.param("年假", ["年", "假", "年假"], id="characters and pairs"),
        pytest.param("用VPN连", ["用", "vpn", "连"], id="a word between characters"),
        pytest.param("ＡＰＩ 2.5 GB", ["api", "2", "5", "gb"], id="full width and a decimal"),
        pytest.param("Café déjà", ["café", "déjà"], id="accents"),
        pytest.param("？！ …_", [], id="punctuation only"),
    ],
)
def test_terms_are_words_numbers_characters_and_pairs(text: str, terms: list[str]) -> None:
    assert tokenise(text) == terms


# --- answering -----------------------------------------------------------------------------------------------------

SHARED = Chunk("leave#1", "正式员工每年有 12 天年假。", "休假", None)
OF_A = Chunk("tenant-a#1", "甲方合同共 220 个席位。", "合同", "a")
OF_B = Chunk("tenant-b#1", "乙方合同共 145 个席位。", "合同", "b")
SMALL = (SHARED, OF_A, OF_B)


def ids(answer: dict[str, Any]) -> list[str]:
    return [context["id"] for context in answer["contexts"]]


def test_v1_quotes_the_best_passage_with_its_source() -> None:
    answer = Assistant(SMALL).answer("年假有几天")
    assert answer["answer"] == "正式员工每年有 12 天年假。 [leave#1]"
    assert answer["citations"] == ["leave#1"]
    assert answer["refused"] is False


def test_a_second_passage_is_quoted_only_if_it_matches_nearly_as_well() -> None:
    # The two contracts are of the same length and hold the same terms of the question, so their scores are equal.
    both = Assistant(SMALL).answer("合同有多少个席位")
    assert both["answer"] == "甲方合同共 220 个席位。 [tenant-a#1] 乙方合同共 145 个席位。 [tenant-b#1]"
    assert Assistant(SMALL).answer("甲方合同有多少个席位")["citations"] == ["tenant-a#1"]


@pytest.mark.parametrize(
    ("tenant", "seen"),
    [
        pytest.param("a", {"leave#1", "tenant-a#1"}, id="a"),
        pytest.param("b", {"leave#1", "tenant-b#1"}, id="b"),
        pytest.param(None, {"leave#1"}, id="nobody"),
        pytest.param("stranger", {"leave#1"}, id="unknown tenant"),
    ],
)
def test_only_v2_keeps_tenants_apart(tenant: str | None, seen: set[str]) -> None:
    question = "合同有多少个席位"
    assert set(ids(Assistant(SMALL, V1).answer(question, tenant))) == {"leave#1", "tenant-a#1", "tenant-b#1"}
    assert set(ids(Assistant(SMALL, V2).answer(question, tenant))) == seen


@pytest.mark.parametrize(
    ("question", "wording"),
    [
        pytest.param("食堂午饭供应红烧肉吗", "没有相关信息", id="chinese"),
        pytest.param("Is there a canteen?", "no information", id="english"),
        pytest.param("?!", "no information", id="no terms"),
    ],
)
def test_only_v2_refuses_what_the_chunks_do_not_hold(question: str, wording: str) -> None:
    refused = Assistant(SMALL, V2).answer(question)
    assert wording in refused["answer"]
    assert (refused["refused"], refused["citations"]) == (True, [])
    answered = Assistant(SMALL, V1).answer(question)
    assert answered["refused"] is False
    assert answered["citations"]


def test_only_v2_finds_a_chunk_by_its_heading() -> None:
    chunks = [Chunk("x#1", "另有说明。", "运费", None), Chunk("x#2", "满百元免收。", "配送", None)]
    assert ids(Assistant(chunks, V1).answer("配送"))[0] == "x#1"  # no term in common: the order of the corpus
    assert ids(Assistant(chunks, V2).answer("配送"))[0] == "x#2"


def test_only_v2_finds_a_chunk_by_what_its_authors_noted_beside_it(tmp_path: Path) -> None:
    other = '{"id": "d#1", "text": "另有说明。"}'
    noted = '{"id": "d#2", "text": "满百元免收。", "keywords": ["快递"], "questions": ["寄过来要钱吗"]}'
    (tmp_path / "d.jsonl").write_text(f"{other}\n{noted}\n", encoding="utf-8")
    chunks = load_chunks(tmp_path)
    for question in ("快递", "寄过来"):
        assert ids(Assistant(chunks, V1).answer(question))[0] == "d#1"
        assert ids(Assistant(chunks, V2).answer(question))[0] == "d#2"


def test_a_reader_with_nothing_to_read_gets_a_refusal() -> None:
    answer = Assistant([OF_A], V2).answer("席位", tenant="b")
    assert (answer["refused"], answer["contexts"]) == (True, [])


def test_the_corpus_version_follows_the_chunks() -> None:
    assert corpus_version(SMALL) == corpus_version(list(SMALL))
    assert corpus_version(SMALL) != corpus_version(SMALL[:2])
    assert Assistant(SMALL).answer("席位")["meta"]["corpus_version"] == corpus_version(SMALL)


# --- over a real socket --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["v1", "v2"])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    """The base URL of a running service and its k."""
    with running_service(request.param, KB) as url:
        yield url, {"v1": V1, "v2": V2}[request.param].k


def send(url: str, body: bytes | None = None) -> tuple[int, Any]:
    """Status and decoded body; POST where there is a body."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=body), timeout=20) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def ask(url: str, **asked: Any) -> dict[str, Any]:
    status, answer = send(f"{url}/ask", json.dumps(asked).encode())
    assert status == 200
    assert isinstance(answer, dict)
    return answer


def descending(scores: Sequence[float]) -> bool:
    return list(scores) == sorted(scores, reverse=True)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_served_answer_holds_k_ranked_contexts_and_cites_among_them(
    served: tuple[str, int], case: dict[str, Any]
) -> None:
    url, k = served
    answer = ask(url, query=case["question"], tenant=case.get("tenant"))
    assert len(answer["contexts"]) == k == answer["meta"]["k"]
    assert len(set(ids(answer))) == k
    assert descending([context["score"] for context in answer["contexts"]])
    assert set(answer["citations"]) <= set(ids(answer))
    assert answer["refused"] == (not answer["citations"])
    for context in answer["contexts"]:
        chunk = next(chunk for chunk in load_chunks(KB) if chunk.id == context["id"])
        assert context["text"] == chunk.text
        assert context.get("tenant") == chunk.tenant
        assert ("tenant" in context) == (chunk.tenant is not None)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"", "not JSON", id="empty"),
        pytest.param(b"{", "not JSON", id="half"),
        pytest.param(b"\xff\xfe\xfa", "not JSON", id="no text"),
        pytest.param(b"[" * 50_000, "not JSON", id="too deep"),
        pytest.param(b'["query"]', "not a JSON object", id="a list"),
        pytest.param(b"{}", "query is missing", id="no query"),
        pytest.param(b'{"query": "  "}', "query is missing", id="blank query"),
        pytest.param(b'{"query": 3}', "query is missing", id="a number"),
        pytest.param(b'{"query": "x", "tenant": 1}', "tenant is not text", id="a number as tenant"),
        pytest.param(b'{"query": "x", "history": "y"}', "history is not a list", id="history as text"),
    ],
)
def test_a_bad_request_gets_400_and_a_reason(served: tuple[str, int], body: bytes, message: str) -> None:
    status, answer = send(f"{served[0]}/ask", body)
    assert status == 400
    assert message in answer["error"]


@pytest.mark.parametrize("question", ["?!", "\ud800", "年" * 5_000, "{{ 7 * 7 }} %s"], ids=ascii)
def test_an_odd_question_is_answered_all_the_same(served: tuple[str, int], question: str) -> None:
    assert len(ask(served[0], query=question, history=[{"role": "user", "content": "x"}])["contexts"]) == served[1]


def test_two_services_run_side_by_side() -> None:
    with running_service("v1", KB) as first, running_service("v2", KB) as second:
        assert first != second
        assert send(f"{first}/health") == (200, {"status": "ok", "version": "v1"})
        assert send(f"{second}/health") == (200, {"status": "ok", "version": "v2"})


def test_the_service_leaves_no_thread_and_no_open_port() -> None:
    before = set(threading.enumerate())
    with running_service("v1", KB) as url:
        ask(url, query="年假")
        host, port = url.removeprefix("http://").split(":")
        idle = socket.create_connection((host, int(port)), timeout=20)  # a client that never says anything
    with idle:
        assert idle.recv(1) == b""
    assert set(threading.enumerate()) == before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=20)


def test_the_service_ends_when_the_block_fails() -> None:
    before = set(threading.enumerate())
    with pytest.raises(ZeroDivisionError), running_service("v1", KB):
        _ = 1 / 0
    assert set(threading.enumerate()) == before


def test_the_service_can_be_used_inside_a_running_event_loop() -> None:
    async def inside() -> dict[str, Any]:
        with running_service("v1", KB) as url:
            return await asyncio.to_thread(ask, url, query="年假")

    assert asyncio.run(inside())["contexts"]


def test_an_unknown_version_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="expected one of v1, v2"), running_service("v9", KB):
        pass
