"""Exports that are broken, hostile or merely odd: what is said of them, and what --map makes of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from rag_judge.errors import InputError
from rag_judge.formats import import_files
from tests.eval_sets import write_rows
from tests.test_formats import brought_in, said

ROW = {"user_input": "Where?", "response": "Here.", "retrieved_contexts": ["It is here."]}


def file_of(folder: Path, content: str | bytes, name: str = "f.jsonl") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def span(trace: str, doc: str, parent: str = "", **attributes: Any) -> dict[str, Any]:
    """A span as the OpenTelemetry SDK prints it; `__` in a name stands for a dot."""
    named = {name.replace("__", "."): value for name, value in attributes.items()}
    return {
        "name": doc,
        "context": {"trace_id": f"0x{trace * 16}", "span_id": f"0x{doc * 8}"},
        "parent_id": f"0x{parent * 8}" if parent else None,
        "attributes": named,
    }


def root(trace: str = "ab", doc: str = "01", **attributes: Any) -> dict[str, Any]:
    return span(trace, doc, openinference__span__kind="CHAIN", input__value="Where?", **attributes)


# --- files that cannot be read ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        pytest.param("ragas", "", "is empty", id="empty"),
        pytest.param("ragas", " \n\n", "is empty", id="blank"),
        pytest.param("ragas", "[]", "is empty", id="no records"),
        pytest.param("ragas", lines(ROW) + '{"user_input": "Wh', "f.jsonl:2: not valid JSON", id="half a line"),
        pytest.param("ragas", '[\n{"user_input": "a"},\n{"user', "f.jsonl:3: not valid JSON", id="half an array"),
        pytest.param("promptfoo", '{\n "results": {\n', "f.jsonl:3: not valid JSON", id="half an object"),
        pytest.param("ragas", "[1]", "found 1 (number), expected an object", id="no object"),
        pytest.param("ragas", '"x"', "expected an object", id="text"),
        pytest.param("ragas", "[" * 100_000, "not valid JSON", id="deep"),
        pytest.param("ragas", b'{"user_input": "\xff"}', "f.jsonl:1: the encoding is not UTF-8", id="not UTF-8"),
        pytest.param("ragas", lines(ROW).encode("utf-16"), "UTF-16", id="UTF-16"),
        pytest.param("ragas", lines({"a": 1}), "f.jsonl:1: found no question among the fields 'a'", id="no field"),
        pytest.param("ragas", lines({"user_input": 5}), "user_input: found 5 (number)", id="question of a wrong type"),
        pytest.param("ragas", lines({**ROW, "response": 5}), "answer: found 5 (number), expected text", id="answer"),
        pytest.param("ragas", lines({**ROW, "user_input": "  "}), "blank text", id="blank question"),
        pytest.param(
            "ragas", lines({**ROW, "retrieved_contexts": [["a"]]}), "retrieved_contexts[0]: found [", id="nested"
        ),
        pytest.param("ragas", lines({**ROW, "retrieved_contexts": 5}), "found 5 (number)", id="contexts"),
        pytest.param(
            "ragas", lines({**ROW, "retrieved_context_ids": ["a", "b"]}), "found 1 texts and 2 ids", id="ids and texts"
        ),
        pytest.param(
            "ragas",
            lines({**ROW, "retrieved_context_ids": [1.5]}),
            "contexts[0].id: found 1.5",
            id="id of a wrong type",
        ),
        pytest.param("ragas", lines({**ROW, "ground_truths": ["a", "b"]}), "found 2 references", id="two references"),
        pytest.param("plain", lines({"id": 1, **ROW}, {"id": 1, **ROW}), "id '1' stands twice, first at", id="ids"),
        pytest.param(
            "plain", lines({"question": "a", "query": "b"}), "found 'question' and 'query'", id="two questions"
        ),
        pytest.param("plain", lines({"q": "a", "contexts": [{"a": 1}]}), "neither an id nor a text", id="no text"),
        pytest.param("deepeval", lines({"testCases": [1]}), "testCases[0]: found 1 (number)", id="no test case"),
        pytest.param("promptfoo", lines({"a": 1}), "found no results", id="no results"),
        pytest.param("langsmith", lines({"a": 1}), "found neither run_type", id="no run"),
        pytest.param("langfuse", lines({"a": 1}), "found no trace, observation or dataset item", id="no trace"),
        pytest.param(
            "langsmith",
            lines({"id": "a", "run_type": "llm", "parent_run_id": [1]}),
            "found a parent that is [1]",
            id="parent",
        ),
        pytest.param(
            "langfuse", lines({"id": "a", "observations": 5}), "observations: found 5 (number)", id="observations"
        ),
        pytest.param("otel", lines({"a": 1}), "found no span", id="no span"),
        pytest.param("otel", lines({"resourceSpans": 5}), "resourceSpans: found 5", id="no list of spans"),
        pytest.param("trec", "a b\n", "found 2 columns", id="columns"),
        pytest.param("trec", "1\twhere?\n1\tagain?\n", "query '1' stands twice", id="two queries"),
        pytest.param("trec", "1 0 d x\n", "found 4 columns", id="no grade"),
        pytest.param("trec", "1 0 d 1\n1 0 d 2\n", "two grades, 1 and 2", id="two grades"),
        pytest.param("trec", "1 Q0 d 1 2 t\n1 Q0 d 2 1 t\n", "stands twice in the ranking", id="ranked twice"),
        pytest.param("trec", "1 0 d 1\n", "found no queries", id="no queries"),
        pytest.param("word", lines(ROW), "no format 'word'; there are: auto, ragas", id="no format"),
        pytest.param("auto", lines({"a": 1}), "the format was not recognised; found the fields 'a'", id="unknown"),
        pytest.param("auto", lines({**ROW, "input": "a", "actual_output": "b"}), "ragas and deepeval", id="ambiguous"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(
    tmp_path: Path, name: str, content: str | bytes, words: str
) -> None:
    path = file_of(tmp_path, content, "f.txt" if name == "trec" else "f.jsonl")
    with pytest.raises(InputError) as raised:
        import_files(name, [path], tmp_path / "out")
    assert words in str(raised.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("['a' 'b']", "a NumPy array as it is printed"),
        ("['a'\n 'b']", "a NumPy array as it is printed"),
        ("['a', 'b", "begins like a list"),
        ("[os.system('x')]", "begins like a list"),
    ],
)
def test_a_cell_whose_list_cannot_be_told_is_refused(tmp_path: Path, cell: str, words: str) -> None:
    path = file_of(tmp_path, f'user_input,retrieved_contexts\nWhere?,"{cell}"\n', "f.csv")
    with pytest.raises(InputError, match=words):
        import_files("ragas", [path], tmp_path / "out")


def test_a_missing_file_and_a_text_that_calls_itself_parquet(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        import_files("auto", [tmp_path / "none.jsonl"], tmp_path / "out")
    with pytest.raises(InputError, match="not a Parquet file"):
        import_files("plain", [file_of(tmp_path, "x", "x.parquet")], tmp_path / "out")


# --- odd, and read all the same --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"\xef\xbb\xbf" + lines(ROW).encode(), id="byte order mark"),
        pytest.param(json.dumps([ROW], indent=2), id="array over many lines"),
        pytest.param(json.dumps(ROW, indent=2), id="one object over many lines"),
        pytest.param("\r\n" + lines(ROW).replace("\n", "\r\n"), id="CRLF"),
        pytest.param(
            '{"user_input": "Where?", "response": "Here.", "retrieved_contexts": ["It is here."], "m": NaN}', id="NaN"
        ),
        pytest.param(lines({"question": "Where?", "answer": "Here.", "contexts": ["It is here."]}), id="ragas 0.1"),
    ],
)
def test_the_same_sample_in_many_spellings(tmp_path: Path, content: str | bytes) -> None:
    cases, answers, _ = brought_in(tmp_path, "ragas", [file_of(tmp_path, content)])
    assert [case["question"] for case in cases] == ["Where?"]
    assert [(row["answer"], row["contexts"]) for row in answers] == [("Here.", [{"text": "It is here."}])]


def test_objects_one_after_another_with_nothing_between_are_all_read(tmp_path: Path) -> None:
    content = json.dumps(ROW, indent=1) + json.dumps({**ROW, "user_input": "When?"}, indent=1)
    cases, _, _ = brought_in(tmp_path, "ragas", [file_of(tmp_path, content)])
    assert [case["question"] for case in cases] == ["Where?", "When?"]


def test_huge_numbers_are_ids_digit_by_digit_and_no_scores(tmp_path: Path) -> None:
    huge = 12345678901234567890123
    row = {"id": huge, "question": "Where?", "contexts": [{"id": huge + 1, "text": "a", "score": 5}]}
    content = lines(row).replace('"score": 5', '"score": 1e999')
    cases, answers, _ = brought_in(tmp_path, "plain", [file_of(tmp_path, content)])
    assert (cases[0]["id"], answers[0]["contexts"]) == (str(huge), [{"id": huge + 1, "text": "a"}])


def test_a_distance_is_no_score(tmp_path: Path) -> None:
    contexts = [{"id": "a", "page_content": "x", "distance": 0.2}, {"node": {"id_": "b", "text": "y"}, "score": 0.7}]
    _, answers, _ = brought_in(tmp_path, "plain", [file_of(tmp_path, lines({"q": "Where?", "documents": contexts}))])
    assert answers[0]["contexts"] == [
        {"id": "a", "text": "x", "metadata": {"distance": 0.2}},
        {"id": "b", "text": "y", "score": 0.7},
    ]


def test_the_same_question_again_gets_an_id_of_its_own(tmp_path: Path) -> None:
    path = file_of(tmp_path, lines(ROW, ROW, {**ROW, "user_input": "When?"}))
    cases, answers, imported = brought_in(tmp_path, "ragas", [path])
    first, second, third = (case["id"] for case in cases)
    assert (second, third != first) == (f"{first}-2", True)
    assert [row["id"] for row in answers] == [first, second, third]
    assert said(imported)["repeated_question"] == 1


@pytest.mark.parametrize(
    ("texts", "cited", "unresolved", "remark"),
    [
        pytest.param(["a [1]", "b [2]"], [["x"], ["y"]], [None, None], "citations_from_1", id="from 1"),
        pytest.param(["a [0]", "b [1]"], [["x"], ["y"]], [None, None], "citations_from_0", id="from 0"),
        pytest.param(["a [0]", "b [2]"], [None, None], [["0"], ["2"]], "citations_undecided", id="both"),
        pytest.param(["a【1】【2】", "b [1, 2]"], [["x", "y"]] * 2, [None, None], "citations_from_1", id="several"),
        pytest.param(["a [1][9]", "[note] [2024]"], [["x"], None], [["9"], None], "citations_from_1", id="dangling"),
        pytest.param(["a [y]", "b [z]"], [["y"], None], [None, None], None, id="by id"),
    ],
)
def test_citations_are_counted_alike_in_all_answers(
    tmp_path: Path, texts: list[str], cited: list[Any], unresolved: list[Any], remark: str | None
) -> None:
    contexts = [{"id": "x", "text": "1"}, {"id": "y", "text": "2"}]
    rows = [{"id": text, "question": "Where?", "answer": text, "contexts": contexts} for text in texts]
    _, answers, imported = brought_in(tmp_path, "plain", [write_rows(tmp_path / "f.jsonl", rows)])
    assert [row.get("citations") for row in answers] == cited
    assert [row.get("citations_unresolved") for row in answers] == unresolved
    assert {name for name in said(imported) if name.startswith("citations_from") or name.endswith("undecided")} == (
        {remark} if remark else set()
    )


def test_stated_citations_are_left_alone(tmp_path: Path) -> None:
    row = {"id": "a", "question": "Where?", "answer": "Here [1]", "contexts": [{"id": "x"}], "citations": []}
    _, answers, _ = brought_in(tmp_path, "plain", [write_rows(tmp_path / "f.jsonl", [row])])
    assert answers[0]["citations"] == []


# --- traces ----------------------------------------------------------------------------------------------------------


def test_spans_of_several_traces_in_any_order_come_together(tmp_path: Path) -> None:
    documents = {"retrieval__documents__0__document__id": "x", "retrieval__documents__0__document__content": "here"}
    rows = [
        span("ab", "02", "01", openinference__span__kind="RETRIEVER", **documents),
        root("cd", "01", output__value="There."),
        root("ab", "01", output__value="Here."),
        root("ab", "01", output__value="Here."),
    ]
    cases, answers, imported = brought_in(tmp_path, "auto", [write_rows(tmp_path / "f.jsonl", rows)])
    assert [case["id"] for case in cases] == ["ab" * 16, "cd" * 16]
    assert [(row["answer"], row.get("contexts")) for row in answers] == [
        ("Here.", [{"id": "x", "text": "here"}]),
        ("There.", None),
    ]
    assert said(imported) == {"repeated_span": 1, "no_contexts": 1}


def test_nested_searches_count_once_and_several_stand_one_after_another(tmp_path: Path) -> None:
    def found(doc: str, parent: str, *ids: str) -> dict[str, Any]:
        named = {f"retrieval__documents__{i}__document__id": one for i, one in enumerate(ids)}
        return span("ab", doc, parent, openinference__span__kind="RETRIEVER", **named)

    rows = [
        root(),
        found("02", "01", "x", "y"),
        found("03", "02", "x"),
        found("04", "02", "y"),
        found("05", "01", "y", "z"),
    ]
    _, answers, imported = brought_in(tmp_path, "openinference", [write_rows(tmp_path / "f.jsonl", rows)])
    assert [context["id"] for context in answers[0]["contexts"]] == ["x", "y", "z"]
    assert said(imported)["several_retrievals"] == 1


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        pytest.param([root(), root(output__value="x")], "stands twice with different contents", id="two contents"),
        pytest.param([span("ab", "01", "02"), span("ab", "02", "01")], "its own ancestor", id="circle"),
        pytest.param([span("ab", "01"), span("cd", "02")], "nothing came in from", id="no question in any"),
    ],
)
def test_broken_traces_are_refused(tmp_path: Path, rows: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(InputError, match=words):
        import_files("openinference", [write_rows(tmp_path / "f.jsonl", rows)], tmp_path / "out")


def test_documents_of_an_unknown_shape_are_said_and_not_guessed(tmp_path: Path) -> None:
    runs = [
        {"id": "r", "trace_id": "r", "run_type": "chain", "inputs": {"question": "Where?"}, "outputs": {"answer": "a"}},
        {"id": "s", "trace_id": "r", "parent_run_id": "r", "run_type": "retriever", "outputs": {"rows": [[1, 2]]}},
    ]
    _, answers, imported = brought_in(tmp_path, "auto", [write_rows(tmp_path / "f.jsonl", runs)])
    assert "contexts" not in answers[0]
    assert said(imported) == {"unreadable_contexts": 1, "no_contexts": 1}


def test_two_experiments_on_a_dataset_answer_the_same_cases(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "e", "dataset_id": "d", "inputs": {"q": "Where?"}, "outputs": {"answer": "Here"}}
    ]
    for i, project in enumerate(["one", "two", "two"]):
        run = {"id": f"r{i}", "run_type": "chain", "session_name": project, "reference_example_id": "e"}
        rows.append({**run, "inputs": {"q": "Where?"}, "outputs": {"answer": f"a{i}"}})
    cases, _, imported = brought_in(tmp_path, "langsmith", [write_rows(tmp_path / "f.jsonl", rows)])
    assert [(case["id"], case["reference"]) for case in cases] == [("e", "Here")]
    assert {Path(path).name: n for path, n in imported.n_answers.items()} == {
        "answers.one.jsonl": 1,
        "answers.two.jsonl": 1,
    }
    assert [(count.remark, count.n) for count in imported.left_out] == [("asked_again", 1)]


# --- --map -----------------------------------------------------------------------------------------------------------


def test_mapped_contexts_keep_text_and_id_together_where_one_is_null(tmp_path: Path) -> None:
    docs = [{"key": "x", "body": None}, {"key": None, "body": "second"}, {"key": "z", "body": "third"}]
    path = write_rows(tmp_path / "f.jsonl", [{"vars": {"q": "Where?"}, "docs": docs, "v": {"n": 3}}])
    mapping = ["question=vars.q", "contexts[].text=docs[].body", "contexts[].id=docs[*].key", "meta.version=v.n"]
    cases, answers, _ = brought_in(tmp_path, "plain", [path], mapping=mapping)
    assert cases[0]["question"] == "Where?"
    assert answers[0]["contexts"] == [{"id": "x"}, {"text": "second"}, {"text": "third", "id": "z"}]
    assert answers[0]["meta"] == {"version": 3}


@pytest.mark.parametrize(
    ("mapping", "contexts"),
    [
        (["contexts[].text=my docs"], [{"text": "a"}, {"text": "b"}]),
        (["contexts=hits"], [{"id": "1", "text": "c"}]),
        (["contexts[].text=hits[].content", "contexts[].id=hits[].id"], [{"text": "c", "id": "1"}]),
    ],
)
def test_columns_of_a_table_can_be_mapped(tmp_path: Path, mapping: list[str], contexts: list[Any]) -> None:
    content = 'my question,my docs,hits\nWhere?,"[""a"", ""b""]","[{""id"": ""1"", ""content"": ""c""}]"\n'
    path = file_of(tmp_path, content, "f.csv")
    cases, answers, _ = brought_in(tmp_path, "csv", [path], mapping=["question=my question", *mapping])
    assert cases[0]["question"] == "Where?"
    assert answers[0]["contexts"] == contexts


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        (["question"], "expected FIELD=PATH"),
        (["quest=a"], "no field 'quest'; there are: id, question"),
        (["question=a["], "is not valid JMESPath"),
        (["question=q", "question=p"], "mapped twice"),
        (["contexts=a", "contexts[].id=b"], "not both"),
        (["contexts[].id=a[].x", "contexts[].text=b[].y"], "found 1 of contexts[].id, 2 of contexts[].text"),
        (["question=a"], "question: found [{"),
        (["question=q", "contexts[].text=nothing[].body"], "'nothing[].body' leads to nothing in any record"),
        (["reference=my column"], "'my column' leads to nothing in any record"),
        (["latency_s=q"], 'latency_s: found "Where?"'),
    ],
)
def test_a_mapping_that_does_not_fit_is_refused(tmp_path: Path, mapping: list[str], words: str) -> None:
    path = write_rows(tmp_path / "f.jsonl", [{"q": "Where?", "a": [{"x": 1}], "b": [{"y": "1"}, {"y": "2"}]}])
    with pytest.raises(InputError) as raised:
        import_files("plain", [path], tmp_path / "out", mapping=mapping)
    assert words in str(raised.value)


def test_a_mapping_finds_the_question_of_a_trace(tmp_path: Path) -> None:
    rows = [span("ab", "01", openinference__span__kind="CHAIN", metadata__ask="Where?", output__value="Here.")]
    path = write_rows(tmp_path / "f.jsonl", rows)
    cases, _, _ = brought_in(tmp_path, "phoenix", [path], mapping=["question=root.metadata.ask", "id=spans[0].id"])
    assert cases == [{"id": "01" * 8, "question": "Where?"}]


def test_the_output_of_a_span_can_be_mapped_by_its_name(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "o", "traceId": "t", "type": "SPAN", "name": "ask", "input": "Where?", "output": "Here."},
        {
            "id": "s",
            "traceId": "t",
            "type": "SPAN",
            "name": "search",
            "parentObservationId": "o",
            "output": [{"id": "x"}],
        },
    ]
    mapping = ["contexts=spans[?name=='search'].attributes.output | [0]"]
    path = write_rows(tmp_path / "f.jsonl", rows)
    _, answers, _ = brought_in(tmp_path, "auto", [path], mapping=mapping)
    assert answers == [{"id": "t", "answer": "Here.", "trace_id": "t", "contexts": [{"id": "x"}]}]
