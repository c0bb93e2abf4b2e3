"""The shipped example: its knowledge base, its cases in both dialects and what they expect fit together."""

import hashlib
import json
import re
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from rag_judge.answers import answer_from_row
from rag_judge.attribution import LAYER_OF
from rag_judge.cases import CaseSet
from rag_judge.demo.rag_service import VERSIONS, Assistant, Chunk, load_chunks
from rag_judge.records import Answer, Case, Context
from rag_judge.refusals import abstention
from rag_judge.rows import Row
from rag_judge.rules import check, leaked_ids, refusal_wordings
from rag_judge.text import fold, in_one_or_two, is_chinese

EVAL = Path(__file__).parent.parent / "eval"
CHUNKS = {chunk.id: chunk for chunk in load_chunks(EVAL / "kb")}


def loaded(name: str) -> list[Case]:
    with closing(CaseSet(EVAL / name)) as cases:
        assert cases.warnings == []
        return list(cases)


def answer_of(assistant: Assistant, case: Case) -> Answer:
    """The answer of a version of the service, read as from an answers file."""
    given = assistant.answer(case.question, case.tenant)
    return answer_from_row(Row({"id": case.id, **given}, "", 0, 0, False))


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


def test_every_chunk_has_search_words_that_stand_beside_it_and_give_no_question_of_the_example_away() -> None:
    asked = {fold(case.question).rstrip("?") for case in CASES + QUESTIONS}
    for chunk in CHUNKS.values():
        assert len(chunk.search_words) >= 10, chunk.id
        assert not asked & {fold(word).rstrip("?") for word in chunk.search_words}, chunk.id


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


# --- the two versions of the service ----------------------------------------------------------------------------------

BOTH = CASES + QUESTIONS
ANSWERS = {
    version: {case.id: answer_of(assistant, case) for case in BOTH}
    for version in VERSIONS
    for assistant in [Assistant(list(CHUNKS.values()), VERSIONS[version])]
}


@pytest.mark.parametrize("case", [case for case in BOTH if case.expect_refusal], ids=lambda case: case.id)
def test_v1_answers_what_it_should_refuse_and_v2_refuses_it(case: Case) -> None:
    assert check(case, ANSWERS["v1"][case.id]).did_abstain is False
    assert check(case, ANSWERS["v2"][case.id]).did_abstain is True


def test_v1_shows_one_tenant_what_belongs_to_another_and_v2_never_does() -> None:
    leaking = {version: [c for c in BOTH if check(c, ANSWERS[version][c.id]).leak] for version in VERSIONS}
    assert {case.id for case in BOTH if "cross_tenant" in case.tags} <= {case.id for case in leaking["v1"]}
    assert leaking["v2"] == []


def test_v2_gets_more_right_and_pays_with_refusals_of_what_it_could_answer() -> None:
    checks = {version: [check(case, ANSWERS[version][case.id]) for case in BOTH] for version in VERSIONS}
    right = {version: sum(bool(found.rule_correct) for found in checks[version]) for version in VERSIONS}
    assert right["v2"] > right["v1"]
    wrongly_refused = [c.id for c in BOTH if not c.expect_refusal and check(c, ANSWERS["v2"][c.id]).did_abstain]
    assert 0 < len(wrongly_refused) < 30


# --- the labels -------------------------------------------------------------------------------------------------------

LABELS = {
    version: [json.loads(line) for line in (EVAL / f"demo_labels.{version}.jsonl").read_text("utf-8").splitlines()]
    for version in VERSIONS
}
each_version = pytest.mark.parametrize("version", sorted(VERSIONS))


@each_version
def test_there_is_a_label_for_every_answer_of_today_and_no_other(version: str) -> None:
    assert [label["case_id"] for label in LABELS[version]] == [case.id for case in BOTH]
    for label in LABELS[version]:
        said = ANSWERS[version][label["case_id"]].answer or ""
        assert label["answer_sha256"] == hashlib.sha256(said.encode()).hexdigest(), label["case_id"]
        assert label["annotator"] == "maintainers"


@each_version
def test_a_label_that_passes_agrees_with_its_fields_and_shows_no_leak(version: str) -> None:
    for label in LABELS[version]:
        case = next(case for case in BOTH if case.id == label["case_id"])
        rules = check(case, ANSWERS[version][case.id])
        assert label["did_abstain"] is rules.did_abstain, case.id
        if label["should_abstain"] is None:
            assert label["passed"] is None or label["complete"] is False
        elif label["should_abstain"]:
            fits = label["did_abstain"] and label["grounded"]
            assert label["passed"] == (fits and not rules.leak), case.id
        else:
            fits = not label["did_abstain"] and label["grounded"] and label["complete"]
            assert label["passed"] == (fits and not rules.leak), case.id


@each_version
def test_every_no_has_a_cause_of_the_closed_list_and_a_critique_of_its_own(version: str) -> None:
    failed = [label for label in LABELS[version] if label["passed"] is not True]
    assert all(label["cause"] in LAYER_OF for label in failed)
    assert all(label["cause"] is None for label in LABELS[version] if label["passed"])
    critiques = [label["critique"] for label in failed]
    assert all(critiques)
    assert len(set(critiques)) == len(critiques)
    leaks = {label["case_id"] for label in LABELS[version] if label["cause"] == "leak"}
    assert leaks == {case.id for case in BOTH if check(case, ANSWERS[version][case.id]).leak}
