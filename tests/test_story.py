"""The lines with which the demo ends: counted from the run and the labels, in both languages."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rag_judge.answers import AnswerSet
from rag_judge.demo.story import Reading, answer_sha256, load_readings, story_lines
from rag_judge.errors import InputError
from rag_judge.records import CaseRow

# Six answers: two right by rules; one leak, one answered out of scope, one not found, one refused without need.
ROWS = [
    CaseRow("c1", "fact", "pass", rule_correct=True, did_abstain=False, expect_refusal=False, hit=True, leak=False),
    CaseRow("c2", "refusal", "pass", rule_correct=True, did_abstain=True, expect_refusal=True, leak=False),
    CaseRow("c3", "fact", "fail", "leak", "access", rule_correct=False, did_abstain=False, hit=True, leak=True),
    CaseRow(
        "c4", "refusal", "fail", "answered_out_of_scope", "abstention",
        rule_correct=False, did_abstain=False, expect_refusal=True, leak=False,
    ),
    CaseRow("c5", "fact", "fail", "recall_miss", "retrieval", rule_correct=False, did_abstain=False, hit=False),
    CaseRow("c6", "fact", "fail", "refused_in_scope", "abstention", rule_correct=False, did_abstain=True, hit=True),
]  # fmt: skip
JUDGED = {"c1": True, "c3": True, "c4": True, "c5": False}  # what the judge says of four of them
READ = {"c1": True, "c2": True, "c3": False, "c4": False, "c5": True, "c6": False}


def story(tmp_path: Path, lang: str = "en", *, judged: bool = True, changed: tuple[str, ...] = ()) -> list[str]:
    """The story of the six answers; the labels of `changed` are of other answers."""
    given = tmp_path / "answers.jsonl"
    given.write_text("".join(json.dumps({"id": row.id, "answer": f"says {row.id}"}) + "\n" for row in ROWS), "utf-8")
    readings = [
        Reading(name, passed, passed, answer_sha256("other" if name in changed else f"says {name}"))
        for name, passed in READ.items()
    ]
    rows = [replace(row, judge_pass=JUDGED.get(row.id), grounded=True) if judged else row for row in ROWS]
    summary = {"rules": {"leaks": ["c3"]}, "retrieval": {"k": 5}}
    with closing(AnswerSet(given, {row.id: index for index, row in enumerate(ROWS)})) as answers:
        return story_lines("v1", summary, rows, answers, readings, lang)


def test_the_story_has_ten_lines_and_every_number_is_counted(tmp_path: Path) -> None:
    lines = story(tmp_path)
    assert len(lines) == 10
    assert lines[1] == "Rules: 2 of 6 answers are right (33%)."
    assert lines[2] == "Wrong by rules, by layer: abstention 2, access 1, retrieval 1."
    assert lines[3].startswith("Leaks: 1 answers show a customer what belongs to another (c3)")
    assert "of 2 questions it cannot know, 1 were answered all the same; of 4 it can know, 1 were refused" in lines[4]
    assert "among the first 5 for 3 of 4 questions" in lines[5]
    # Of c1, c3, c4, c5 the judge passes the first three; people pass c1 and c5.
    assert lines[6] == "The embedded judge graded 4 answers: it passes 3 and calls 4 grounded."
    assert lines[7] == "The maintainers read the same 4 answers: they pass 2 and call 2 grounded."
    assert lines[8] == "Of the 2 they fail, the judge passed 2; of the 2 they pass, it failed 1."
    assert "rag-judge demo --version v2" in lines[9]


def test_without_a_judge_the_maintainers_reading_is_of_all_answers(tmp_path: Path) -> None:
    lines = story(tmp_path, judged=False)
    assert "No judge was asked" in lines[6]
    assert lines[7] == "The maintainers read all 6 answers and pass 3 (50%)."


def test_a_label_of_another_answer_is_left_out_and_said(tmp_path: Path) -> None:
    lines = story(tmp_path, changed=("c3", "c4"))
    assert lines[7] == "The maintainers read the same 2 answers: they pass 2 and call 2 grounded."
    assert "2 labels are of other answers and were left out." in lines


def test_the_story_is_told_in_chinese(tmp_path: Path) -> None:
    lines = story(tmp_path, "zh")
    assert len(lines) == 10
    assert lines[2] == "规则判错的,按层:拒答 2, 权限 1, 检索 1。"


@pytest.mark.parametrize("text", ["{", "[]", '{"case_id": "c"}'])
def test_a_broken_label_file_says_where(tmp_path: Path, text: str) -> None:
    (tmp_path / "labels.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"labels\.jsonl:1: not a label"):
        load_readings(tmp_path / "labels.jsonl")
    with pytest.raises(InputError, match="cannot be read"):
        load_readings(tmp_path / "none.jsonl")
