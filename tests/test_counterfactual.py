"""Fails asked again with the right passages: what that says of their cause, on real servers from request to table."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rag_judge.corpus import Corpus
from rag_judge.counterfactual import gold_passages, is_unclear, probe_outcome, with_probe
from rag_judge.demo.rag_service import running_service
from rag_judge.errors import InputError, LimitReached
from rag_judge.passages import Failed
from rag_judge.pipeline import RunRequest, RunResult, World, regrade, resumed_request, run
from rag_judge.pipeline.demo import write_cases
from rag_judge.prompts import shipped_folder
from rag_judge.records import Answer, Attribution, Case, CaseRow, Context
from rag_judge.retrieval import score_ranking
from rag_judge.rules import check
from rag_judge.settings import load_settings
from tests.misbehaviour import Misbehaviour, failure
from tests.servers import RagServer

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
CHUNKS = [
    {"id": "trial#1", "text": "The trial runs for 14 days."},
    {"id": "trial#2", "text": "A trial can be extended once."},
    {"id": "refund#1", "text": "退款在 5 个工作日内到账。"},
    {"id": "prices#1", "text": "The team plan costs 30 EUR a month."},
    {"id": "secret#1", "text": "The code is 4711.", "tenant": "b"},
]
TEXTS = {chunk["id"]: chunk["text"] for chunk in CHUNKS}


def corpus(folder: Path) -> Corpus:
    path = folder / "chunks.jsonl"
    path.write_text("".join(json.dumps(chunk) + "\n" for chunk in CHUNKS), encoding="utf-8")
    return Corpus(path)


def context(chunk_id: str) -> Context:
    return Context(chunk_id, TEXTS[chunk_id])


def case(point: str = "14 days", *relevant: str, **more: Any) -> Case:
    return Case(
        "q", "How long is the trial?", must_include=((point,),), relevant_docs=dict.fromkeys(relevant, 1.0), **more
    )


def after_probe(
    cause: tuple[str, str, str], asked: Case, retrieved: list[str], said: str, probe: str, known: Corpus
) -> Attribution:
    """The attribution of a wrong answer to what was retrieved, once the probe has said something."""
    answer = Answer("q", said, tuple(map(context, retrieved)))
    scores = score_ranking(retrieved, asked.relevant_docs, 5)
    failed = Failed(asked, answer, scores, check(asked, answer), None, corpus=known)
    before = Attribution(cause[0], cause[1], "seen", cause[2])  # type: ignore[arg-type]
    gold = gold_passages(asked, known)
    return with_probe(before, failed, gold, Answer("q", probe, tuple(gold)))


# --- which cases, which passages -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "unclear"),
    [
        ({"outcome": "fail", "confidence": "low", "layer": "generation"}, True),
        ({"outcome": "fail", "confidence": "medium", "layer": "retrieval"}, True),
        ({"outcome": "fail", "confidence": "medium", "layer": "abstention"}, True),
        ({"outcome": "fail", "confidence": "low", "layer": "unknown"}, True),
        ({"outcome": "fail", "confidence": "high", "layer": "generation"}, False),
        ({"outcome": "fail", "confidence": "medium", "layer": "access"}, False),
        ({"outcome": "fail", "confidence": "medium", "layer": "judge"}, False),
        ({"outcome": "fail", "confidence": "medium", "layer": "knowledge_base"}, False),
        ({"outcome": "fail", "confidence": "medium", "layer": "generation", "expect_refusal": True}, False),
        ({"outcome": "undecided"}, False),
        ({"outcome": "pass"}, False),
    ],
)
def test_unclear_are_fails_that_passages_could_explain(row: dict[str, Any], unclear: bool) -> None:
    assert is_unclear(CaseRow(id="q", type=None, **row)) is unclear


def test_the_right_passages_are_the_relevant_chunks_that_the_tenant_may_read(tmp_path: Path) -> None:
    known = corpus(tmp_path)
    graded = Case("q", "?", relevant_docs={"trial": 1.0, "refund#1": 2.0, "prices#1": 0.0, "gone#1": 1.0})
    assert [one.id for one in gold_passages(graded, known)] == ["refund#1", "trial#1", "trial#2"]
    assert gold_passages(case("4711", "secret#1"), known) == []
    assert [one.text for one in gold_passages(case("4711", "secret#1", tenant="b"), known)] == ["The code is 4711."]


@pytest.mark.parametrize(
    ("probe", "outcome"),
    [
        (Answer("q", "It runs for 14 days.", (context("trial#1"),)), "right"),
        (Answer("q", "It runs for 14 days."), "right"),  # a system that does not say what it was given
        (Answer("q", "It runs for 30 days.", (context("trial#1"),)), "wrong"),
        (Answer("q", "It runs for 14 days.", (context("prices#1"),)), "not_taken"),
        (Answer("q", "It runs for 30 days.", ()), "not_taken"),  # what came back is not what was given
        (Answer("q", error="HTTP 400"), "failed"),
        (Answer("q", None, (context("trial#1"),)), "failed"),
    ],
)
def test_a_probe_counts_only_when_its_passages_were_taken(probe: Answer, outcome: str) -> None:
    assert probe_outcome(case("14 days", "trial#1"), [context("trial#1")], probe) == outcome
    if outcome == "right":
        assert probe_outcome(Case("q", "?", relevant_docs={"trial#1": 1.0}), [context("trial#1")], probe) == "no_rule"


# --- what it says of the cause ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cause", "relevant", "retrieved", "said", "probe", "expected"),
    [
        pytest.param(
            ("missing_point", "generation", "low"),
            ["trial#1"],
            ["prices#1"],
            "Two weeks.",
            "14 days.",
            ("recall_miss", "high"),
            id="it can, but was not given the passage",
        ),
        pytest.param(
            ("invented", "generation", "medium"),
            ["trial#1"],
            ["prices#1", "trial#1"],
            "It costs 30 EUR.",
            "14 days.",
            ("crowded_out", "medium"),
            id="it can, but not among the others",
        ),
        pytest.param(
            ("recall_miss", "retrieval", "medium"),
            ["trial#1"],
            ["prices#1"],
            "30 EUR.",
            "14 days.",
            ("recall_miss", "high"),
            id="retrieval it was",
        ),
        pytest.param(
            ("recall_miss", "retrieval", "medium"),
            ["trial#1"],
            ["prices#1"],
            "30 EUR.",
            "It depends.",
            ("ignored_context", "medium"),
            id="better retrieval would not have helped",
        ),
        pytest.param(
            ("ignored_context", "generation", "medium"),
            ["trial#1"],
            ["trial#1"],
            "It depends.",
            "It depends on you.",
            ("ignored_context", "high"),
            id="generation it was",
        ),
        pytest.param(
            ("refused_in_scope", "abstention", "medium"),
            ["trial#1"],
            ["prices#1"],
            "I could not find that in the documents.",
            "I could not find that in the documents.",
            ("refused_in_scope", "high"),
            id="declines even then",
        ),
        pytest.param(
            ("unknown", "unknown", "low"),
            ["trial#1"],
            ["trial#1"],
            "It depends.",
            "It depends.",
            ("ignored_context", "medium"),
            id="now it is known",
        ),
    ],
)
def test_the_answer_to_the_right_passages_tells_what_came_before_the_model_from_the_model(
    tmp_path: Path,
    cause: tuple[str, str, str],
    relevant: list[str],
    retrieved: list[str],
    said: str,
    probe: str,
    expected: tuple[str, str],
) -> None:
    why = after_probe(cause, case("14 days", *relevant), retrieved, said, probe, corpus(tmp_path))
    assert (why.cause, why.confidence) == expected
    rightly = "rightly" if "14" in probe else "wrongly, too"
    assert why.evidence.startswith(f"given trial#1 alone, it answers {rightly}: “{probe}”")


def test_what_was_retrieved_but_not_sent_is_lost_in_assembly(tmp_path: Path) -> None:
    asked, known = case("14 days", "trial#1"), corpus(tmp_path)
    answer = Answer("q", "Two weeks.", (context("prices#1"), context("trial#1")), sent_contexts=("prices#1",))
    scores = score_ranking(["prices#1", "trial#1"], asked.relevant_docs, 5)
    failed = Failed(asked, answer, scores, check(asked, answer), None, corpus=known)
    before = Attribution("missing_point", "generation", "seen", "low")
    why = with_probe(before, failed, [context("trial#1")], Answer("q", "14 days."))
    assert (why.cause, why.layer, why.confidence) == ("lost_in_assembly", "assembly", "high")


# --- a whole run -----------------------------------------------------------------------------------------------------

QUESTIONS: list[dict[str, Any]] = [
    # answers wrongly from what it retrieves, rightly from the right passage
    {"id": "lost", "question": "How long is the trial?", "must_include": ["14 days"], "relevant_docs": ["trial#1"]},
    # says it in other words whatever it is given
    {"id": "words", "question": "退款几天到账?", "must_include": ["5 个工作日"], "relevant_docs": ["refund#1"]},
    {"id": "right", "question": "What is the price?", "must_include": ["30 EUR"], "relevant_docs": ["prices#1"]},
]
ANSWERS = {"lost": "It is 2 weeks.", "words": "大约一周。", "right": "30 EUR a month."}
RETRIEVED = {"lost": ["prices#1"], "words": ["refund#1", "prices#1"], "right": ["prices#1"]}


def rag(body: dict[str, Any]) -> Mapping[str, Any] | Misbehaviour:
    """A system that quotes the first passage it is given, of which there may be one from outside."""
    name = next(q["id"] for q in QUESTIONS if q["question"] == body["query"])
    if "contexts" not in body:
        contexts = [{"id": chunk, "text": TEXTS[chunk]} for chunk in RETRIEVED[name]]
        return {"answer": ANSWERS[name], "contexts": contexts}
    said = ANSWERS[name] if name == "words" else body["contexts"][0]["text"]
    return {"answer": said, "contexts": body["contexts"]}


def request(folder: Path, url: str, **flags: Any) -> RunRequest:
    corpus(folder)
    cases = folder / "cases.jsonl"
    cases.write_text("".join(json.dumps(q, ensure_ascii=False) + "\n" for q in QUESTIONS), encoding="utf-8")
    given = {"out": str(folder / "runs"), "endpoint": url, "judge": "none", "corpus": str(folder / "chunks.jsonl")}
    return RunRequest(load_settings(None, {}, {**given, "counterfactual": True, **flags}, folder=None), cases)


def world(said: list[str]) -> World:
    return World({}, lambda: NOW, time.monotonic, said.append)


def rows_of(result: RunResult) -> dict[str, CaseRow]:
    return {row.id: row for row in result.rows}


def test_a_run_probes_unclear_fails_alone_and_a_regrade_reads_the_kept_probes(tmp_path: Path) -> None:
    said: list[str] = []
    with RagServer(rag) as server:
        result = run(request(tmp_path, server.ask_url), world(said))
        probes = [dict(req.body) for req in server.requests if "contexts" in req.body]
    assert [body["query"] for body in probes] == ["退款几天到账?"]  # that `lost` missed its passage is clear without
    assert probes[0]["contexts"] == [{"id": "refund#1", "text": TEXTS["refund#1"]}]
    rows = rows_of(result)
    assert (rows["words"].probe, rows["words"].layer) == ("wrong", "generation")
    assert "given refund#1 alone, it answers wrongly, too: “大约一周。”" in str(rows["words"].evidence)
    assert (rows["lost"].probe, rows["lost"].cause, rows["right"].probe) == (None, "recall_miss", None)
    assert result.summary["probes"] == {"wrong": 1}
    assert not (result.folder.path / "probes.part.jsonl").exists()
    again = regrade(result.folder, world(said), {}).result
    assert again.summary == result.summary
    assert rows_of(again) == rows


def test_a_system_that_takes_no_passages_costs_the_probes_and_not_the_run(tmp_path: Path) -> None:
    said: list[str] = []
    deaf = RagServer(lambda body: rag({"query": body["query"]}))
    with deaf as server:
        result = run(request(tmp_path, server.ask_url), world(said))
    assert rows_of(result)["words"].probe == "not_taken"
    assert any("the endpoint does not take `contexts`" in line for line in said)
    said.clear()
    with RagServer(lambda body: failure(400, "unknown field contexts") if "contexts" in body else rag(body)) as server:
        result = run(request(tmp_path, server.ask_url), world(said))
    assert rows_of(result)["words"].probe == "failed"
    assert any("the causes stand without it" in line for line in said)
    assert result.exit_code == 0


def test_a_deadline_before_the_probe_is_resumed_to_the_same_end(tmp_path: Path) -> None:
    said: list[str] = []
    late = [False]

    def slow(body: dict[str, Any]) -> Mapping[str, Any] | Misbehaviour:
        late[0] = late[0] or body["query"] == QUESTIONS[-1]["question"]
        return rag(body)

    with RagServer(slow) as server:
        flags = {"endpoint_concurrency": 1, "deadline": "10s"}
        hurried = World({}, lambda: NOW, lambda: 100.0 if late[0] else 0.0, said.append)
        with pytest.raises(LimitReached, match="the deadline has passed"):
            run(request(tmp_path, server.ask_url, **flags), hurried)
        folder = next((tmp_path / "runs").iterdir())
        from rag_judge.archive import RunFolder

        result = run(resumed_request(RunFolder(folder), {"deadline": "1h"}, {}), world(said), RunFolder(folder))
    assert result.summary["probes"] == {"wrong": 1}


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ({"endpoint": None}, "give its --endpoint"),
        ({"corpus": None}, "name the knowledge base's --corpus"),
    ],
)
def test_what_a_probe_needs_is_asked_for_before_anything_is_sent(
    tmp_path: Path, flags: dict[str, Any], found: str
) -> None:
    with RagServer(rag) as server, pytest.raises(InputError, match=found):
        run(request(tmp_path, server.ask_url, **flags), world([]))
    assert not server.requests


def test_a_request_template_needs_a_place_for_the_passages(tmp_path: Path) -> None:
    from dataclasses import replace

    with RagServer(lambda body: rag({**body, "query": body["q"]})) as server:
        asked = request(tmp_path, server.ask_url)
        template = {"q": "{{ question }}"}
        endpoint = replace(asked.settings.endpoint, request=template)
        with pytest.raises(InputError, match="no place for the passages"):
            run(replace(asked, settings=replace(asked.settings, endpoint=endpoint)), world([]))
        endpoint = replace(endpoint, request=template | {"contexts": "{{ contexts }}"})
        result = run(replace(asked, settings=replace(asked.settings, endpoint=endpoint)), world([]))
        assert [sorted(req.body) for req in server.requests] == [["q"], ["q"], ["q"], ["contexts", "q"]]
    assert result.summary["probes"] == {"wrong": 1}


def test_the_examples_first_version_answers_better_from_the_right_passages(tmp_path: Path) -> None:
    kb = shipped_folder("eval") / "kb"
    cases = tmp_path / "cases.jsonl"
    write_cases(shipped_folder("eval"), cases)
    with running_service("v1", kb) as url:
        flags = {"out": str(tmp_path / "runs"), "endpoint": f"{url}/ask", "judge": "none", "corpus": str(kb)}
        settings = load_settings(None, {}, {**flags, "counterfactual": True}, folder=None)
        result = run(RunRequest(settings, cases), world([]))
    probed = [row for row in result.rows if row.probe]
    assert probed
    assert all(row.probe in ("right", "wrong") for row in probed)
    assert result.summary["probes"] == {
        name: n for name in ("right", "wrong") if (n := sum(row.probe == name for row in probed))
    }
