"""The shipped example: its knowledge base, its cases in both dialects and what they expect fit together."""

import re
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from rag_judge.cases import CaseSet
from rag_judge.demo.rag_service import Chunk, load_chunks
from rag_judge.records import Answer, Case, Context
from rag_judge.refusals import abstention
from rag_judge.rules import check, leaked_ids, refusal_wordings
from rag_judge.text import fold, in_one_or_two, is_chinese

EVAL = Path(__file__).parent.parent / "eval"
CHUNKS = {chunk.id: chunk for chunk in load_chunks(EVAL / "kb")}


def loaded(name: str) -> list[Case]:
    with closing(CaseSet(EVAL / name)) as cases:
        assert cases.warnings == []
        return list(cases)


CASES, QUESTIONS = loaded("rag_cases.json"), loaded("questions.jsonl")
each = pytest.mark.parametrize("case", CASES + QUESTIONS, ids=lambda case: case.id)


def expected(case: Case) -> list[Chunk]:
    """The chunks that a case expects, neighbours beside each other."""
    return [CHUNKS[doc] for doc in sorted(case.relevant_docs, key=lambda doc: (doc.partition("#")[0], number(doc)))]


def number(doc: str) -> int:
    return int(doc.partition("#")[2])


# --- the knowledge base ---------------------------------------------------------------------------------------------


def test_the_knowledge_base_is_of_the_size_and_mix_that_the_story_needs() -> None:
    assert len(CHUNKS) >= 320
    assert max(len(chunk.text) for chunk in CHUNKS.values()) <= 150
    share_english = sum(not is_chinese(chunk.text) for chunk in CHUNKS.values()) / len(CHUNKS)
    assert 0.1 <= share_english <= 0.3
    tenants = Counter(chunk.tenant for chunk in CHUNKS.values())
    assert tenants["a"] >= 12
    assert tenants["b"] >= 12


def test_every_chunk_has_a_heading_and_an_id_of_its_document_and_none_is_there_twice() -> None:
    for chunk in CHUNKS.values():
        document = chunk.id.partition("#")[0]
        assert re.fullmatch(r"[a-z0-9-]+#[1-9][0-9]*", chunk.id)
        assert chunk.heading, chunk.id
        assert (EVAL / "kb" / f"{document}.jsonl").is_file()
        assert (chunk.tenant is not None) == document.startswith("tenant-"), chunk.id
        assert chunk.tenant is None or document.startswith(f"tenant-{chunk.tenant}"), chunk.id
    assert len({fold(chunk.text) for chunk in CHUNKS.values()}) == len(CHUNKS)


# --- the cases ------------------------------------------------------------------------------------------------------


def test_the_cases_are_of_the_kinds_that_the_story_needs() -> None:
    assert Counter(case.type for case in CASES) == {"fact": 50, "policy": 20, "refusal": 10}
    assert sum("cross_tenant" in case.tags for case in CASES) == 3
    kinds = Counter(case.type for case in QUESTIONS)
    assert kinds.total() == 40
    assert kinds["out_of_scope"] >= 15
    both = CASES + QUESTIONS
    assert len({case.id for case in both}) == len({fold(case.question) for case in both}) == 120
    assert 0.15 <= sum(not is_chinese(case.question) for case in both) / 120 <= 0.35


@each
def test_what_a_case_expects_exists_and_may_be_read_by_the_one_who_asks(case: Case) -> None:
    for chunk in expected(case):
        assert chunk.tenant in (None, case.tenant)
    answer = Answer(case.id, "x", tuple(Context(chunk.id, chunk.text, tenant=chunk.tenant) for chunk in expected(case)))
    assert leaked_ids(case, answer) == ()


@each
def test_an_answer_made_of_the_expected_chunks_is_right_and_a_case_expects_an_answer_or_a_refusal(case: Case) -> None:
    if case.expect_refusal:
        assert not case.relevant_docs
        assert not case.must_include
        assert all(abstention(f"{wording}。", refusal_wordings(case)).did_abstain for wording in refusal_wordings(case))
        return
    assert case.relevant_docs
    assert case.must_include or case.acceptable
    texts = [fold(chunk.text) for chunk in expected(case)]
    for alternatives in case.must_include:
        assert any(in_one_or_two(texts, fold(point)) for point in alternatives), alternatives
    if case.acceptable:
        assert any(in_one_or_two(texts, fold(wording)) for wording in case.acceptable), case.acceptable
    contexts = tuple(Context(chunk.id, chunk.text) for chunk in expected(case))
    said = "".join(chunk.text for chunk in expected(case))
    assert check(case, Answer(case.id, said, contexts)).rule_correct is True


@each
def test_what_must_not_be_said_is_the_value_of_another_chunk(case: Case) -> None:
    for wording in case.must_not_include:
        assert any(fold(wording) in fold(chunk.text) for chunk in CHUNKS.values()), wording


@each
def test_no_question_is_copied_from_a_heading_or_a_chunk(case: Case) -> None:
    asked = fold(case.question).rstrip("?")
    for chunk in CHUNKS.values():
        assert asked not in fold(chunk.text), chunk.id
        assert asked != fold(chunk.heading), chunk.id


@pytest.mark.parametrize("case", [case for case in CASES if case.forbidden_docs], ids=lambda case: case.id)
def test_forbidden_documents_exist_and_are_another_tenants_whole(case: Case) -> None:
    matched = {
        chunk.id
        for chunk in CHUNKS.values()
        if leaked_ids(Case("c", "q?", forbidden_docs=case.forbidden_docs), Answer("c", "a", (Context(chunk.id, "x"),)))
    }
    others = {chunk.id for chunk in CHUNKS.values() if chunk.tenant not in (None, case.tenant)}
    assert matched == others


@pytest.mark.parametrize("case", [case for case in CASES if "cross_tenant" in case.tags], ids=lambda case: case.id)
def test_a_cross_tenant_case_is_a_red_line(case: Case) -> None:
    assert case.red_line
    assert case.expect_refusal
    assert case.forbidden_docs
