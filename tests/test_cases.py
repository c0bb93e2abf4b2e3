"""Eval sets in either dialect and every format; what is wrong is said with file and line."""

import json
import random
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rag_judge.cases import CaseSet, case_fields, case_from_row, question_hash
from rag_judge.errors import InputError
from rag_judge.records import Case
from rag_judge.rows import Row, RowFile

BOTH_DIALECTS = """\
{"id":"q01","q":"试用期多久可以转正","type":"in_scope","acceptable":["三个月","3 个月"],"relevant_docs":["hr-001#3"]}
{"id":"qa-007","type":"fact","question":"并发多少?","expected_doc_ids":["doc-pricing#3"],"must_include":["500",["a","b"]],"must_not_include":["无限"],"expect_refusal":false}
{"id":"qa-076","type":"refusal","question":"乙方折扣?","tenant":"a","forbidden_docs":["doc-tenant-b#*"],"refusal_phrases":["没有相关信息"],"red_line":true,"owner":"me"}
"""


def written(folder: Path, content: str | bytes, name: str = "cases.jsonl") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def loaded(path: Path) -> list[Case]:
    with closing(CaseSet(path)) as cases:
        return list(cases)


def case(**fields: Any) -> Case:
    return case_from_row(Row(fields, "cases.jsonl:1", 1, 0, False))


def test_both_dialects_load_as_they_stand_and_mix(tmp_path: Path) -> None:
    first, second, third = loaded(written(tmp_path, BOTH_DIALECTS))
    assert (first.question, first.acceptable, first.relevant_docs, first.expect_refusal) == (
        "试用期多久可以转正",
        ("三个月", "3 个月"),
        {"hr-001#3": 1.0},
        None,
    )
    assert (second.must_include, second.relevant_docs, second.expect_refusal) == (
        (("500",), ("a", "b")),
        {"doc-pricing#3": 1.0},
        False,
    )
    assert (third.expect_refusal, third.tenant, third.red_line, third.extra) == (True, "a", True, {"owner": "me"})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("c.jsonl", b"\xef\xbb\xbf" + BOTH_DIALECTS.encode(), id="BOM"),
        pytest.param("c.jsonl", BOTH_DIALECTS.replace("\n", "\r\n"), id="CRLF"),
        pytest.param("c.jsonl", "\n  \n" + BOTH_DIALECTS.replace("\n", "\n\n"), id="blank lines"),
        pytest.param("c.jsonl", BOTH_DIALECTS.rstrip("\n"), id="no last line end"),
        pytest.param("c.json", "[" + ",\n".join(BOTH_DIALECTS.splitlines()) + "]", id="array"),
        pytest.param(
            "c.jsonl",
            b"\xef\xbb\xbf" + json.dumps([json.loads(line) for line in BOTH_DIALECTS.splitlines()], indent=2).encode(),
            id="indented array with BOM under .jsonl",
        ),
    ],
)
def test_every_json_form_gives_the_same_cases(tmp_path: Path, name: str, content: str | bytes) -> None:
    assert loaded(written(tmp_path, content, name)) == loaded(written(tmp_path, BOTH_DIALECTS, "plain.jsonl"))


def test_csv_cells_hold_lists_flags_and_text_that_looks_missing(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "\ufeffid,question,type,must_include,relevant_docs,expect_refusal,reference\r\n"
        '007,"How,\nthen?",fact,"[""500"",[""a"",""b""]]",d#1|d#2,no,NA\r\n'
        "8,null,,,,yes,\r\n",
        "cases.csv",
    )
    first, second = loaded(path)
    assert (first.id, first.question, first.must_include) == ("007", "How,\nthen?", (("500",), ("a", "b")))
    assert (first.relevant_docs, first.expect_refusal, first.reference) == ({"d#1": 1.0, "d#2": 1.0}, False, "NA")
    assert (second.id, second.question, second.type, second.expect_refusal) == ("8", "null", None, True)


def test_parquet_rows_load_with_their_missing_values_left_out(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "question": "a?", "must_include": ["x"], "tenant": None, "weight": float("nan")},
        {"id": 2, "question": "b?", "must_include": None, "tenant": "t", "weight": 1.5},
    ]
    path = tmp_path / "cases.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    with closing(CaseSet(path)) as cases:
        first, second = cases
        assert cases.warnings == [f"{path}: 2 ids are numbers; they are read as text"]
    assert (first.id, first.must_include, first.tenant) == ("1", (("x",),), None)
    assert (second.id, second.must_include, second.tenant, second.extra) == ("2", (), "t", {"weight": 1.5})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("", "is empty", id="empty file"),
        pytest.param("\n \n", "is empty", id="only blank lines"),
        pytest.param('{"id":"a","q":"x"}\n\n{"id":', "cases.jsonl:3: not valid JSON", id="broken JSON, physical line"),
        pytest.param('{"id":"a","q":"x"}\n{"id":"b"}', "cases.jsonl:2: question is missing", id="question missing"),
        pytest.param('{"q":"x"}', "cases.jsonl:1: id is missing", id="id missing"),
        pytest.param('{"id":" ","q":"x"}', "cases.jsonl:1: id: found blank text", id="blank id"),
        pytest.param('{"id":true,"q":"x"}', "id: found true (true/false), expected text", id="id of a bad type"),
        pytest.param('{"id":1.5,"q":"x"}', "id: found 1.5 (number), expected text", id="id that is no whole number"),
        pytest.param('{"id":"a","q":5}', "question: found 5 (number), expected text", id="question of a bad type"),
        pytest.param(
            '{"id":"a","q":"x"}\n{"id":"b","q":"y"}\n{"id":"a","q":"z"}',
            "id 'a' stands twice, on lines 1 and 3",
            id="duplicate id",
        ),
        pytest.param('{"id":1,"q":"x"}\n{"id":"1","q":"y"}', "id '1' stands twice, on lines 1 and 2", id="1 and '1'"),
        pytest.param('["a"]', 'found "a" (text), expected an array of JSON objects', id="array of texts"),
        pytest.param('[{"id":"a","q":"x"}', "not a valid JSON array: found '', expected ','", id="array cut off"),
        pytest.param('[{"id":"a","q":"x"}] 1', "found '1' after its end", id="something after the array"),
        pytest.param('[{"id":"a","q":"x"},\n{"id": nul}]', "cases.jsonl:2: not valid JSON", id="array, bad element"),
        pytest.param("[]", "the array has no rows", id="empty array"),
        pytest.param("7", "cases.jsonl:1: found 7 (number), expected one JSON object a line", id="a number"),
        pytest.param('{"id":"a","q":"x","score":NaN}', "NaN is no JSON value", id="NaN"),
        pytest.param(
            '{"id":"a","q":"x","must_include":[[]]}', "must_include[0]: found an empty list", id="empty any-of"
        ),
        pytest.param('{"id":"a","q":"x","must_include":[""]}', "must_include[0][0]: found blank", id="empty key point"),
        pytest.param(
            '{"id":"a","q":"x","must_include":[5]}', "must_include[0]: found 5 (number)", id="number as point"
        ),
        pytest.param('{"id":"a","q":"x","acceptable":{"b":1}}', 'acceptable: found {"b": 1} (object)', id="object"),
        pytest.param('{"id":"a","q":"x","expect_refusal":"no"}', "expected true or false", id="text as flag"),
        pytest.param(
            '{"id":"a","q":"x","question":"y"}',
            "question stands twice under two names with different values, once as 'question'",
            id="two names",
        ),
        pytest.param('{"id":"a","q":"x","id":"b"}', "the key 'id' stands twice", id="one key twice"),
        pytest.param('[{"id":"a","q":"x","q":"y"}]', "the key 'q' stands twice", id="one key twice in an array"),
        pytest.param("[" * 100_000, "not valid JSON", id="deep nesting"),
        pytest.param(b'{"id":"a","q":"\xc1\xbd"}', "the encoding is not UTF-8 (byte 0xc1)", id="GBK"),
        pytest.param('{"id":"a","q":"x"}'.encode("utf-16"), "the encoding is UTF-16", id="UTF-16"),
    ],
)
def test_what_is_wrong_is_said_with_file_line_found_and_expected(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        loaded(written(tmp_path, content))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("id,question\na,b,c\n", "cases.csv:2: more cells than the header has columns (2)", id="cells"),
        pytest.param("id,id\na,b\n", "a column name stands twice", id="header"),
        pytest.param('id,question\na,"b\nc\n', "not valid CSV", id="quote never closed"),
        pytest.param("id,question\na,x\nb,\n", "cases.csv:3: question is missing", id="empty cell"),
        pytest.param("id,question,red_line\na,x,maybe\n", 'red_line: found "maybe" (text)', id="flag"),
        pytest.param("id,question,tags\na,x,[1\n", "a cell that starts like a JSON array but is none", id="list cell"),
        pytest.param("id,question\n", "is empty", id="header alone"),
        pytest.param(b"id,question\na,\xc1\xbd\n", "the encoding is not UTF-8", id="GBK"),
    ],
)
def test_what_is_wrong_in_a_csv_is_said_with_its_line(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        loaded(written(tmp_path, content, "cases.csv"))
    assert message in str(caught.value)


def test_a_missing_file_a_folder_and_a_false_parquet_are_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        CaseSet(tmp_path / "nowhere.jsonl")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        CaseSet(tmp_path)
    with pytest.raises(InputError, match="not a Parquet file"):
        CaseSet(written(tmp_path, "id,question\n", "x.parquet"))
    with pytest.raises(InputError, match="not a readable Parquet file"):
        CaseSet(written(tmp_path, b"PAR1 and nothing more", "y.parquet"))


def test_the_snapshot_of_json_lines_is_the_file_byte_for_byte(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + BOTH_DIALECTS.replace("\n", "\r\n\n").encode()
    with closing(CaseSet(written(tmp_path, content))) as cases:
        target = BytesIO()
        cases.copy_to(target)
    assert target.getvalue() == content


@pytest.mark.parametrize("name", ["c.json", "c.csv", "c.parquet"])
def test_the_snapshot_of_every_other_format_reads_back_as_the_same_cases(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    rows = [
        {"id": "1", "question": "x?", "must_include": ["a|b", "c"]},
        {"id": "2", "question": "y?", "red_line": True},
    ]
    if name.endswith("json"):
        path.write_text(json.dumps(rows), encoding="utf-8")
    elif name.endswith("csv"):
        path.write_text('id,question,must_include,red_line\n1,x?,"[""a|b"",""c""]",\n2,y?,,true\n', encoding="utf-8")
    else:
        pq.write_table(
            pa.Table.from_pylist(
                rows,
                schema=pa.schema(
                    [
                        ("id", pa.string()),
                        ("question", pa.string()),
                        ("must_include", pa.list_(pa.string())),
                        ("red_line", pa.bool_()),
                    ]
                ),
            ),
            path,
        )
    snapshot = tmp_path / "snapshot.jsonl"
    with closing(CaseSet(path)) as cases, snapshot.open("wb") as target:
        cases.copy_to(target)
        expected = list(cases)
    assert loaded(snapshot) == expected
    assert expected[0].must_include == (("a|b",), ("c",))


def test_a_case_written_as_fields_reads_back_equal() -> None:
    original = case(id="a", question="x?", expect_refusal=False, must_include=["p", ["q", "r"]], mine=[1], tags=["t"])
    assert case(**json.loads(json.dumps(case_fields(original)))) == original


def test_a_case_is_read_by_id_without_reading_the_others(tmp_path: Path) -> None:
    lines = [json.dumps({"id": f"q{i}", "question": f"question {i}?"}) for i in range(500)]
    with closing(CaseSet(written(tmp_path, "\n".join(lines)))) as cases:
        for i in random.Random(1).sample(range(500), 40):
            assert cases.get(f"q{i}").question == f"question {i}?"
        with pytest.raises(KeyError):
            cases.get("q500")


def test_reading_by_offset_does_not_disturb_a_pass_over_the_rows(tmp_path: Path) -> None:
    with RowFile(written(tmp_path, BOTH_DIALECTS)) as rows:
        seen = [(row.line, rows.read(row.offset).fields["id"]) for row in rows]
    assert seen == [(1, "q01"), (2, "qa-007"), (3, "qa-076")]


def test_an_array_larger_than_the_window_is_read_element_by_element(tmp_path: Path) -> None:
    rows = [{"id": str(i), "question": "长" * 100_000} for i in range(12)]
    path = written(tmp_path, json.dumps(rows, ensure_ascii=False, indent=1), "big.json")
    with closing(CaseSet(path)) as cases:
        assert list(cases.offsets) == [str(i) for i in range(12)]
        assert len(cases.get("11").question) == 100_000


def test_a_raw_line_separator_inside_a_string_ends_no_line(tmp_path: Path) -> None:
    assert (
        loaded(written(tmp_path, '{"id":"a","q":"one\u2028two\u0085three"}'))[0].question == "one\u2028two\u0085three"
    )


def test_the_question_hash_is_of_what_is_asked_alone() -> None:
    one = case(id="a", question="x?")
    assert question_hash(one) == question_hash(case(id="b", q="x?", must_include=["p"]))
    assert question_hash(one) != question_hash(case(id="a", question="y?"))
    assert question_hash(one) != question_hash(case(id="a", question="x?", history=["earlier"]))


def test_empty_optional_text_says_the_same_as_leaving_it_out() -> None:
    assert case(id="a", question="x?", tenant="", type="", reference="") == case(id="a", question="x?")


@pytest.mark.parametrize("value", ["2020-01-01T00:00:00", b"bytes"])
def test_a_parquet_column_of_times_or_bytes_is_said_with_its_row(tmp_path: Path, value: str | bytes) -> None:
    kind = pa.array([value]) if isinstance(value, bytes) else pa.array([value]).cast(pa.timestamp("us"))
    pq.write_table(pa.table({"id": kind, "question": ["q?"]}), tmp_path / "p.parquet")
    with pytest.raises(InputError, match=r"p\.parquet:1: id: found a (datetime|bytes), expected text"):
        loaded(tmp_path / "p.parquet")


def test_the_columns_of_a_csv_are_named_when_one_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"id is missing.*; the columns are: ' id ', ' question '"):
        loaded(written(tmp_path, " id , question \na,x?\n", "c.csv"))
