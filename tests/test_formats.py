"""Files that the tools' own libraries made (`foreign/`), and the exact cases and answers that they become."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rag_judge.answers import AnswerSet
from rag_judge.cases import CaseSet
from rag_judge.formats import Imported, import_files
from tests.eval_sets import write_rows
from tests.test_cli import rag_judge

FOREIGN = Path(__file__).parent / "foreign"
RETURNS = "Kites can be returned within 30 days if the line was never cut."
FEE = "退货运费由买家承担,质量问题除外。"
RETURN_ID, FEE_ID, CUP_ID, SAIL_ID = "q-c20c2befc5", "q-f63ebea081", "q-0522ce384f", "q-b66208a8e8"
HOW_LONG, WHO_PAYS = "How long can I return a kite?", "退货的运费谁出?"
TRACE_1, TRACE_2 = "60a8ce2a1c8d8254be09d4f084ab0026", "a69aa91663249d144d3502667186a000"


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def brought_in(
    folder: Path, name: str, paths: Sequence[Path], **options: Any
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Imported]:
    """(cases, answers, what is said of them)."""
    imported = import_files(name, paths, folder / "imported", **options)
    answers = folder / "imported" / "answers.jsonl"
    return rows_of(Path(imported.cases)), rows_of(answers) if answers.exists() else [], imported


def said(imported: Imported) -> dict[str, int]:
    return {count.remark: count.n for count in (*imported.left_out, *imported.remarks)}


def without(rows: Sequence[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


@pytest.mark.parametrize("file", ["ragas.jsonl", "ragas.csv"])
def test_ragas_samples_become_cases_and_answers(tmp_path: Path, file: str) -> None:
    cases, answers, imported = brought_in(tmp_path, "auto", [FOREIGN / file])
    assert imported.format == "ragas"
    assert cases == [
        {
            "id": RETURN_ID,
            "question": HOW_LONG,
            "relevant_docs": ["returns#1"],
            "reference": "30 days, if the line was never cut.",
            "imported": {"reference_contexts": [RETURNS], "query_style": "PERFECT_GRAMMAR"},
        },
        {"id": FEE_ID, "question": WHO_PAYS, "reference": "买家承担"},
        {"id": CUP_ID, "question": "Who won the kite cup?"},
        {"id": SAIL_ID, "question": "Do you repair sails?", "reference": "Yes, for 12 euros."},
    ]
    assert answers == [
        {
            "id": RETURN_ID,
            "answer": "Within 30 days [1].",
            "contexts": [{"text": RETURNS, "id": "returns#1"}, {"text": FEE, "id": 7}],
            "citations_unresolved": ["1"],  # one document has a number as its id: [1] could mean place or id
        },
        {"id": FEE_ID, "answer": "买家出。", "contexts": [{"text": FEE}]},
        {"id": CUP_ID, "answer": "I do not know; the handbook says nothing about it.", "contexts": []},
    ]
    assert said(imported) == {
        "citations_undecided": 1,
        "citations_unresolved": 1,
        "made_ids": 4,
        "no_context_ids": 1,
        "no_answer": 1,
        "no_contexts": 1,
    }


def test_ragas_in_parquet_keeps_whole_numbers_as_ids(tmp_path: Path) -> None:
    cases, answers, _ = brought_in(tmp_path, "auto", [FOREIGN / "ragas.parquet"])
    assert without(cases, "id") == [{"question": "Do kites float?", "relevant_docs": [7]}]
    assert [context["id"] for context in answers[0]["contexts"]] == [7, 12345678901234567]


@pytest.mark.parametrize("file", ["ragas_turns.jsonl", "deepeval_turns.json", "langfuse_traces.json"])
def test_of_a_conversation_the_last_question_is_asked_and_the_rest_is_history(tmp_path: Path, file: str) -> None:
    cases, answers, _ = brought_in(tmp_path, "auto", [FOREIGN / file])
    assert cases[0]["question"] == "运费谁出?"
    first, second = cases[0]["history"]
    assert first == {"role": "user", "content": "我想退一只风筝。"}
    assert (second["role"], second["content"][:2]) == ("assistant", "可以")
    assert answers[0]["answer"] == "由买家承担。"
    texts = [context["text"] for context in answers[0].get("contexts", [])]
    assert texts == ([] if file.startswith("ragas") else [FEE])


def test_deepeval_goldens_tell_no_contexts_from_none_recorded(tmp_path: Path) -> None:
    cases, answers, _ = brought_in(tmp_path, "auto", [FOREIGN / "deepeval.json"])
    assert cases[0] == {
        "id": RETURN_ID,
        "question": HOW_LONG,
        "reference": "30 days",
        "imported": {"context": [RETURNS], "name": "returns", "additional_metadata": {"topic": "returns"}},
    }
    assert [case["question"] for case in cases[1:]] == [
        "Do you repair sails?",
        "谁赢了风筝杯?",
        "How heavy is the Swift kite?",
    ]
    assert without(answers, "id") == [
        {"answer": "Within 30 days.", "contexts": [{"id": "returns#1", "text": RETURNS}, {"text": FEE}]},
        {
            "answer": "For 12 euros.",
            "contexts": [{"text": "A torn sail is repaired for 12 euros | frames are not repaired."}],
        },
        {"answer": "不知道。", "contexts": []},
    ]


@pytest.mark.parametrize(("file", "third"), [("deepeval.jsonl", []), ("deepeval.csv", None)])
def test_contexts_that_deepeval_joined_are_taken_apart_and_that_is_said(
    tmp_path: Path, file: str, third: list[str] | None
) -> None:
    _, answers, imported = brought_in(tmp_path, "auto", [FOREIGN / file])
    assert answers[0]["contexts"] == [{"id": "returns#1", "text": RETURNS}, {"text": FEE}]
    assert answers[2].get("contexts") == third  # CSV has one spelling for "nothing found" and "not recorded"
    assert said(imported)["joined_contexts"] == 2


def test_a_test_run_of_deepeval_and_a_scenario_without_turns(tmp_path: Path) -> None:
    cases, answers, _ = brought_in(tmp_path, "auto", [FOREIGN / "deepeval_run.json"])
    assert (cases[0]["question"], cases[0]["tags"]) == (HOW_LONG, ["returns"])
    assert answers == [{"id": RETURN_ID, "answer": "30 days.", "contexts": [{"text": RETURNS}]}]
    _, _, imported = brought_in(tmp_path, "auto", [FOREIGN / "deepeval_turns.json"], overwrite=True)
    assert [(count.remark, count.n) for count in imported.left_out] == [("no_turns", 1)]


@pytest.mark.parametrize("file", ["promptfoo.json", "promptfoo.jsonl"])
def test_each_provider_of_promptfoo_has_answers_of_its_own_to_the_same_cases(tmp_path: Path, file: str) -> None:
    cases, none, imported = brought_in(tmp_path, "auto", [FOREIGN / file])
    assert (none, [Path(path).name for path in imported.n_answers]) == ([], ["answers.v1.jsonl", "answers.v2.jsonl"])
    by_id = {case["id"]: case for case in cases}
    assert by_id == {
        RETURN_ID: {
            "id": RETURN_ID,
            "question": HOW_LONG,
            "must_include": ["30 days"],
            "must_not_include": ["60 days"],
            "imported": {"metadata": {"topic": "returns"}},
        },
        FEE_ID: {"id": FEE_ID, "question": WHO_PAYS, "must_include": [["买家承担", "买家出"]]},
        CUP_ID: {"id": CUP_ID, "question": "Who won the kite cup?"},
    }
    v2 = {row["id"]: row for row in without(rows_of(tmp_path / "imported" / "answers.v2.jsonl"), "latency_s")}
    assert v2 == {
        # The failed assertion on this one is promptfoo's verdict, not an error of the system.
        RETURN_ID: {
            "id": RETURN_ID,
            "answer": "60 days.",
            "contexts": [{"text": RETURNS}],
            "meta": {"provider": "v2"},
        },
        FEE_ID: {"id": FEE_ID, "answer": "买家承担。", "contexts": [{"text": FEE}], "meta": {"provider": "v2"}},
        CUP_ID: {"id": CUP_ID, "contexts": [], "error": "upstream timeout", "meta": {"provider": "v2"}},
    }


def test_langsmith_runs_become_a_case_a_trace(tmp_path: Path) -> None:
    cases, answers, imported = brought_in(tmp_path, "auto", [FOREIGN / "langsmith.jsonl"])
    assert without(cases, "id") == [
        {"question": WHO_PAYS, "tags": ["shop"]},
        {"question": "Who won the kite cup?", "tags": ["shop"]},
    ]
    meta = {"model": "kite-1", "project": "00000000-0000-0000-0000-00000000000a"}
    found = {"id": "fee#1", "text": FEE, "tenant": "eu", "metadata": {"distance": 0.21, "tenant": "eu"}}
    assert without(answers, "id", "trace_id", "latency_s") == [
        {"answer": "由买家承担【1】。", "contexts": [found], "meta": meta, "citations": ["fee#1"]},
        {"contexts": [], "error": "TimeoutError('model timed out')", "meta": meta},
    ]
    assert said(imported) == {"no_question": 1, "citations_from_1": 1}


@pytest.mark.parametrize(
    ("file", "case"),
    [
        pytest.param(
            "langsmith_dataset.jsonl",
            {
                "id": "00000000-0000-0000-0000-0000000000e1",
                "question": HOW_LONG,
                "reference": "30 days",
                "imported": {
                    "metadata": {"dataset_split": ["base"]},
                    "dataset_id": "00000000-0000-0000-0000-0000000000d1",
                },
            },
            id="langsmith",
        ),
        pytest.param(
            "langfuse_dataset.jsonl",
            {
                "id": "d1",
                "question": WHO_PAYS,
                "reference": "买家承担",
                "imported": {"metadata": {"level": 1}, "dataset": "shop"},
            },
            id="langfuse",
        ),
    ],
)
def test_a_dataset_becomes_cases_without_answers(tmp_path: Path, file: str, case: dict[str, Any]) -> None:
    cases, answers, imported = brought_in(tmp_path, "auto", [FOREIGN / file])
    assert (cases, answers, imported.n_answers, said(imported)) == ([case], [], {}, {})


def test_langfuse_observations_become_a_case_a_trace(tmp_path: Path) -> None:
    cases, answers, imported = brought_in(tmp_path, "auto", [FOREIGN / "langfuse.jsonl"])
    assert cases == [
        {"id": "t1", "question": HOW_LONG, "tags": ["shop"]},
        {"id": "t2", "question": "谁赢了风筝杯?"},
    ]
    contexts = [
        {"id": "returns#1", "text": RETURNS, "score": 0.83},
        {"id": "fee#1", "text": FEE, "score": 0.4},
    ]
    assert without(answers, "trace_id", "latency_s") == [
        {
            "id": "t1",
            "answer": "30 days [returns#1]",
            "contexts": contexts,
            "meta": {"model": "kite-1"},
            "citations": ["returns#1"],
        },
        {"id": "t2", "error": "timeout"},
    ]
    assert said(imported) == {"no_question": 1, "no_contexts": 1}


@pytest.mark.parametrize("file", ["openinference.json", "phoenix.jsonl", "phoenix.csv", "phoenix.parquet"])
def test_openinference_traces_are_read_alike_from_otlp_and_from_phoenix(tmp_path: Path, file: str) -> None:
    cases, answers, imported = brought_in(tmp_path, "auto", [FOREIGN / file])
    assert imported.format == "openinference"
    assert {case["id"]: case["question"] for case in cases} == {TRACE_1: HOW_LONG, TRACE_2: WHO_PAYS}
    by_id = {answer["id"]: answer for answer in without(answers, "latency_s", "trace_id")}
    for context in by_id[TRACE_1]["contexts"]:
        context["score"] = round(context["score"], 9)
    assert by_id == {
        TRACE_1: {
            "id": TRACE_1,
            "answer": "30 days [1]",
            # The reranker's order, not the retriever's.
            "contexts": [
                {"id": "returns#1", "text": RETURNS, "score": 0.4, "metadata": {"page": 1}},
                {"id": "fee#1", "text": FEE, "score": 0.6, "metadata": {"page": 2}},
            ],
            "meta": {"model": "kite-1", "session": "s1"},
            "citations": ["returns#1"],
        },
        TRACE_2: {
            "id": TRACE_2,
            "answer": "买家承担。",
            "contexts": [{"id": "fee#1", "text": FEE, "score": 0.9, "metadata": {"page": 1}}],
        },
    }
    assert said(imported) == {"no_question": 1, "citations_from_1": 1}


@pytest.mark.parametrize("file", ["otel.json", "otel_console.txt"])
def test_genai_spans_are_read_from_otlp_and_from_the_console(tmp_path: Path, file: str) -> None:
    cases, answers, imported = brought_in(tmp_path, "auto", [FOREIGN / file])
    assert imported.format == "otel"
    earlier = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello! What about?"}]
    assert without(cases, "id") == [{"question": HOW_LONG, "history": earlier}, {"question": WHO_PAYS}]
    assert without(answers, "id", "trace_id", "latency_s") == [
        {
            "answer": "30 days [1]",
            "contexts": [{"id": "returns#1", "score": 0.9}, {"id": "fee#1", "score": 0.3}],
            "meta": {"model": "kite-1"},
            "citations": ["returns#1"],
        },
        {"answer": "买家承担。", "meta": {"model": "kite-1"}},
    ]
    assert said(imported) == {"citations_from_1": 1, "no_context_texts": 1, "no_contexts": 1}


def test_a_corpus_gives_contexts_their_text_by_id(tmp_path: Path) -> None:
    corpus = write_rows(tmp_path / "corpus.jsonl", [{"id": "returns#1", "text": RETURNS}])
    _, answers, imported = brought_in(tmp_path, "otel", [FOREIGN / "otel.json"], corpus=corpus)
    assert [context.get("text") for context in answers[0]["contexts"]] == [RETURNS, None]
    assert said(imported)["no_context_texts"] == 1


def test_a_beir_folder_becomes_graded_cases(tmp_path: Path) -> None:
    cases, answers, _ = brought_in(tmp_path, "auto", [FOREIGN / "beir"])
    assert cases == [
        {"id": "1", "question": HOW_LONG, "relevant_docs": {"returns": 2.0, "fee": 0.0}},
        {"id": "2", "question": WHO_PAYS, "relevant_docs": {"fee": 1.0}},
        {"id": "3", "question": "Is there a kite cup?"},
    ]
    assert answers == []


def test_a_trec_run_is_ranked_by_score_and_takes_texts_from_the_corpus(tmp_path: Path) -> None:
    files = [FOREIGN / "beir" / "queries.jsonl", FOREIGN / "beir" / "corpus.jsonl", FOREIGN / "trec.qrels"]
    cases, answers, _ = brought_in(tmp_path, "trec", [*files, FOREIGN / "trec.run"])
    assert cases[0]["relevant_docs"] == {"returns": 2.0, "fee": 0.0}
    assert answers == [
        {
            "id": "1",
            "contexts": [
                {"id": "returns", "text": f"Returns\n{RETURNS}", "score": 0.75},
                {"id": "fee", "text": FEE, "score": 0.25},
            ],
        },
        {"id": "2", "contexts": [{"id": "fee", "text": FEE, "score": 12.5}]},
    ]


# --- what came in can be graded --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(FOREIGN.glob("*.*")) if path.suffix not in (".md", ".py")],
    ids=lambda path: path.name,
)
def test_every_imported_file_loads_as_cases_and_answers(tmp_path: Path, path: Path) -> None:
    queries = [FOREIGN / "beir" / "queries.jsonl"] if path.suffix in (".run", ".qrels") else []
    imported = import_files("auto", [*queries, path], tmp_path / "in")
    cases = CaseSet(Path(imported.cases))
    assert (len(cases), cases.warnings) == (imported.n_cases, [])
    for file in imported.n_answers:
        answers = AnswerSet(Path(file), cases.offsets)
        assert answers.warnings == []
        answers.close()
    cases.close()


def test_what_was_imported_can_be_graded(tmp_path: Path) -> None:
    ended = rag_judge("import", "auto", FOREIGN / "langfuse.jsonl", "--out", "in", "--json", "--quiet", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["n_answers"] == {"in/answers.jsonl": 2}
    files = ("--cases", "in/cases.jsonl", "--answers", "in/answers.jsonl")
    ended = rag_judge("run", *files, "--judge", "none", "--json", cwd=tmp_path)
    assert ended.returncode == 4, ended.stderr  # one of the two traces failed
    assert json.loads(ended.stdout)["summary"]["n_answered"] == 1


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_says_what_came_in_and_overwrites_nothing_unasked(tmp_path: Path) -> None:
    write_rows(
        tmp_path / "f.jsonl",
        [{"user_input": "Where?", "response": "Here.", "retrieved_contexts": ["Here."]}, {"user_input": "When?"}],
    )
    ended = rag_judge("import", "ragas", "f.jsonl", "--out", "in", cwd=tmp_path)
    assert ended.stdout.splitlines() == [
        "in/cases.jsonl: 2 cases (ragas)",
        "in/answers.jsonl: 1 answers",
        "note: 2 x no id in the export; one was made from the question (first: f.jsonl:1)",
        "note: 1 x contexts without id: no retrieval metrics (first: f.jsonl:1)",
        "note: 1 x no answer (first: f.jsonl:2)",
        "note: 1 x no contexts recorded: no retrieval metrics, and no judging (first: f.jsonl:2)",
        "next: rag-judge run --cases in/cases.jsonl --answers in/answers.jsonl --judge none",
    ]
    before = (tmp_path / "in" / "cases.jsonl").read_bytes()
    ended = rag_judge("import", "ragas", "f.jsonl", "--out", "in", cwd=tmp_path)
    assert (ended.returncode, "in/cases.jsonl, in/answers.jsonl: already there" in ended.stderr) == (2, True)
    ended = rag_judge("import", "ragas", "f.jsonl", "--out", "in", "--overwrite", "--lang", "zh", cwd=tmp_path)
    assert ended.stdout.startswith("in/cases.jsonl:2 条用例(ragas)\n")
    assert (tmp_path / "in" / "cases.jsonl").read_bytes() == before


def test_control_characters_of_an_export_never_reach_the_terminal(tmp_path: Path) -> None:
    write_rows(tmp_path / "f.jsonl", [{"id": "a\u001b[31m", "question": 5}])
    ended = rag_judge("import", "plain", "f.jsonl", "--out", "in\u001b[31m", cwd=tmp_path)
    assert (ended.returncode, "\u001b" in ended.stderr + ended.stdout) == (2, False)
