"""Answers files: every form of a row, what is missing, what is wrong."""

import json
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from rag_judge.answers import AnswerSet, answer_from_row
from rag_judge.errors import InputError
from rag_judge.records import Answer, Context
from rag_judge.rows import Row


def answer(is_text: bool = False, **fields: Any) -> Answer:
    return answer_from_row(Row({"id": "q1", **fields}, "answers.jsonl:1", 1, 0, is_text))


def test_a_full_row_is_read_whole() -> None:
    found = answer(
        answer="500 [1]",
        contexts=[
            {"id": "p#3", "text": "500 sessions", "score": 0.8, "tenant": "a", "page": 7},
            {"id": 4, "text": "x"},
        ],
        citations=["p#3", 4, {"id": "z"}],
        refused=False,
        sent_contexts=["p#3"],
        prompt="…",
        meta={"k": 5},
        latency_s=1,
        error=None,
    )
    assert found.contexts == (Context("p#3", "500 sessions", 0.8, "a"), Context("4", "x"))
    assert (found.citations, found.sent_contexts, found.refused) == (("p#3", "4", "z"), ("p#3",), False)
    assert (found.meta, found.latency_s, found.error) == ({"k": 5}, 1.0, None)


def test_what_is_missing_stays_unknown_and_is_not_what_is_empty() -> None:
    bare = answer()
    assert (bare.answer, bare.contexts, bare.citations, bare.refused) == (None, None, None, None)
    empty = answer(answer="", contexts=[], citations=[])
    assert (empty.answer, empty.contexts, empty.citations) == ("", (), ())


def test_contexts_as_texts_have_no_id() -> None:
    assert answer(contexts=["one", "two"]).contexts == (Context(None, "one"), Context(None, "two"))


def test_in_csv_an_empty_answer_is_an_answer_and_words_stay_words() -> None:
    assert answer(is_text=True, answer="").answer == ""
    assert answer(is_text=True, answer="NA").answer == "NA"
    found = answer(
        is_text=True, answer="x", contexts="one text", latency_s="0.5", refused="yes", meta='{"k":1}', error=""
    )
    assert (found.contexts, found.latency_s, found.refused) == ((Context(None, "one text"),), 0.5, True)
    assert (found.meta, found.error) == ({"k": 1}, None)
    assert answer(is_text=True, contexts='[{"id":"a","text":"t"}]').contexts == (Context("a", "t"),)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"answer": 5}, "answers.jsonl:1: answer: found 5 (number), expected text or null"),
        ({"contexts": "text"}, None),
        ({"contexts": {"id": "a"}}, "contexts: found"),
        ({"contexts": [5]}, "contexts[0]: found 5 (number), expected an object with id, text and score"),
        ({"contexts": [{"id": True}]}, "contexts[0].id: found true (true/false)"),
        (
            {"contexts": [{"id": "a", "score": "high"}]},
            'contexts[0].score: found "high" (text), expected a finite number',
        ),
        ({"latency_s": True}, "latency_s: found true"),
        ({"meta": []}, "meta: found [] (list), expected an object"),
        ({"refused": "no"}, 'refused: found "no" (text), expected true or false'),
    ],
)
def test_a_bad_type_is_said_with_its_place(fields: dict[str, Any], message: str | None) -> None:
    if message is None:
        assert answer(**fields).contexts == (Context(None, "text"),)
        return
    with pytest.raises(InputError) as caught:
        answer(**fields)
    assert message in str(caught.value)


def test_an_error_of_any_shape_is_kept_as_text() -> None:
    assert answer(error={"code": 502}).error == '{"code": 502}'
    assert answer(error="").error is None
    assert answer(error=False).error is None


def write(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "answers.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def test_rows_of_unknown_cases_give_one_warning_with_their_count(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": "a", "answer": "1"}, {"id": "x", "answer": "2"}, {"id": "y", "answer": "3"})
    with closing(AnswerSet(path, {"a", "b"})) as answers:
        assert answers.warnings == [f"{path}: 2 answers belong to no case of the eval set and are not used"]
        assert answers.get("a").answer == "1"
        assert answers.get("b").error == "no answer to this case in the answers file"


def test_a_duplicate_id_is_an_error_also_among_unknown_cases(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": "x"}, {"id": "a"}, {"id": "x"})
    with pytest.raises(InputError, match=r"id 'x' stands twice, on lines 1 and 3"):
        AnswerSet(path, {"a"})


def test_a_row_without_id_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"answers\.jsonl:1: id is missing"):
        AnswerSet(write(tmp_path, {"answer": "x"}), {"a"})


def test_what_meta_says_of_the_system_is_gathered(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": "a", "meta": {"k": 5, "v": "1"}}, {"id": "b", "meta": {"k": 5, "v": "2"}})
    with closing(AnswerSet(path, {"a", "b"})) as answers:
        assert answers.factors == {"k": {"5"}, "v": {"1", "2"}}


def test_a_csv_is_written_into_the_run_with_its_types(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("id,answer,citations,refused\na,,d#1|d#2,no\nb,NA,,\n", encoding="utf-8")
    target = BytesIO()
    with closing(AnswerSet(path, {"a", "b"})) as answers:
        answers.copy_to(target)
    rows = [json.loads(line) for line in target.getvalue().splitlines()]
    assert rows == [
        {"id": "a", "answer": "", "citations": ["d#1", "d#2"], "refused": False},
        {"id": "b", "answer": "NA"},
    ]


def test_answers_none_of_which_belongs_to_a_case_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none of its 2 answers belongs to a case"):
        AnswerSet(write(tmp_path, {"id": "A"}, {"id": "b "}), {"a", "b"})
