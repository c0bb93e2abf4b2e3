"""Real questions out of a production log, as cases to be completed."""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rag_judge.cases import CaseSet
from rag_judge.errors import InputError
from rag_judge.mining import Mined, Wishes, check_out, mine
from rag_judge.production_log import log_format, read_log
from tests.eval_sets import write_rows
from tests.test_cli import rag_judge

FINE: dict[str, Any] = {"contexts": ["text"], "answer": "It is so.", "handed_off": False}
WORDS = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel")


def mined(path: Path, rows: Sequence[Mapping[str, Any]], wishes: Wishes | None = None) -> Mined:
    log = write_rows(path / "log.jsonl", rows)
    form = log_format()
    return mine(log, read_log(log, form), form, wishes or Wishes())


def questions(found: Mined) -> list[str]:
    return [row["question"] for row in found.candidates]


def test_askings_of_nearly_the_same_question_are_one_candidate_by_its_usual_wording(tmp_path: Path) -> None:
    asked = ["How many days of annual leave?"] * 3 + [
        "how many days of annual leave",
        "HOW MANY DAYS OF ANNUAL LEAVE!!",
    ]
    asked += ["How many days of annual leave do", "年假有几天", "年假有几天?", "病假怎么请"]
    rows = [FINE | {"q": q, "user": f"u{n}", "time": f"2026-01-{10 + n}T10:00:00Z"} for n, q in enumerate(asked)]
    found = mined(tmp_path, rows)
    by_question = {row["question"]: row for row in found.candidates}
    assert by_question.keys() == {"How many days of annual leave?", "年假有几天", "病假怎么请"}
    leave = by_question["How many days of annual leave?"]
    assert (leave["n_asked"], leave["n_askers"], leave["n_wordings"]) == (6, 6, 2)
    assert (leave["first_seen"], leave["last_seen"]) == ("2026-01-10", "2026-01-15")
    assert found.counts == {"clusters": 3, "covered": 0, "small_talk": 0, "rows": 9, "written": 3, "cut": 0}


def test_what_a_case_asks_already_is_dropped_with_its_cluster(tmp_path: Path) -> None:
    cases = write_rows(tmp_path / "cases.jsonl", [{"id": "a", "question": "How many days of annual leave are there?"}])
    rows = [
        FINE | {"q": "How many days of annual leave are there"},
        FINE | {"q": "how many days of annual leave are there now"},
        FINE | {"q": "How many days of sick leave are there?"},
        FINE | {"q": "Who pays for travel?"},
    ]
    found = mined(tmp_path, rows, Wishes(covered_by=(cases,)))
    assert sorted(questions(found)) == ["How many days of sick leave are there?", "Who pays for travel?"]
    assert found.counts["covered"] == 1


@pytest.mark.parametrize("question", ["你好!", "谢谢", "Hello", "ok", "???", "13800138000 12", "thank you!"])
def test_greetings_and_what_asks_nothing_are_no_candidates(tmp_path: Path, question: str) -> None:
    found = mined(tmp_path, [{"q": question}, {"q": "Who pays for travel?"}])
    assert (questions(found), found.counts["small_talk"]) == (["Who pays for travel?"], 1)


@pytest.mark.parametrize(
    "sign",
    [{"contexts": []}, {"handed_off": True}, {"answer": "I cannot answer that."}],
    ids=["no result", "handed off", "refused"],
)
def test_a_question_with_a_signal_comes_before_those_without(tmp_path: Path, sign: Mapping[str, Any]) -> None:
    topics = ["travel", "parking", "laptops", "health", "visas", "lunch"]
    rows = [FINE | {"q": f"Who pays for {topic} here?"} for topic in topics]
    rows[3] |= sign
    assert questions(mined(tmp_path, rows))[0] == "Who pays for health here?"


def test_asked_again_counts_also_at_the_end_of_the_log(tmp_path: Path) -> None:
    rows = [FINE | {"q": f"怎么申请{what}", "user": what, "time": "2026-01-31T10:00:00Z"} for what in "车房卡"]
    rows.append(FINE | {"q": "怎么申请房", "user": "房", "time": "2026-01-31T10:01:00Z"})
    first = mined(tmp_path, rows).candidates[0]
    assert (first["question"], first["signals"]["asked_again"]) == ("怎么申请房", {"n_true": 1, "n": 2})


def test_the_score_is_the_excess_over_the_log_and_the_rarity(tmp_path: Path) -> None:
    # Of 4 rows 2 have no result: usual 0.5. "a": asked twice, both without: (2 + 0.5) / 3 - 0.5 = 1/3; its rarity is
    # 1 - log2(2) / log2(4) = 0.5, a quarter of it 0.125. "b" and "c": once, (0 + 0.5) / 2 - 0.5 = -0.25; rarity 1.
    rows: list[dict[str, Any]] = [{"q": "alpha?", "contexts": []}] * 2
    rows += [{"q": q, "contexts": ["x"]} for q in ("bravo", "charlie")]
    scores = {row["question"]: row["score"] for row in mined(tmp_path, rows).candidates}
    assert scores == {"alpha?": round(1 / 3 + 0.125, 6), "bravo": 0.0, "charlie": 0.0}


def test_what_is_not_known_neither_raises_nor_lowers_a_rank(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"q": "alpha", "contexts": []}, {"q": "bravo"}, {"q": "charlie", "contexts": ["x"]}]
    found = mined(tmp_path, rows)
    assert questions(found) == ["alpha", "bravo", "charlie"]
    assert found.candidates[1]["signals"] == {}


def test_the_order_of_the_log_changes_nothing_and_ties_are_drawn_by_seed(tmp_path: Path) -> None:
    rows = [FINE | {"q": f"What is {word}"} for word in WORDS]
    first = mined(tmp_path, rows)
    assert mined(tmp_path, rows[::-1]).candidates == first.candidates
    others = {tuple(questions(mined(tmp_path, rows, Wishes(seed=seed)))) for seed in range(5)}
    assert len(others) > 1
    few = mined(tmp_path, rows, Wishes(n=3))
    assert (few.candidates, few.counts["cut"]) == (first.candidates[:3], 5)


def test_slow_is_slower_than_nearly_all_of_a_log_that_is_long_enough(tmp_path: Path) -> None:
    words = [f"{a}{b}" for a in "天地玄黄宇宙洪荒日月" for b in "山水木火土金风云雨雪"]
    rows = [FINE | {"q": f"{word}怎么办", "latency_s": float(n)} for n, word in enumerate(words)]
    slow = [row["question"] for row in mined(tmp_path, rows).candidates if row["signals"]["slow"]["n_true"]]
    assert sorted(slow) == sorted(f"{word}怎么办" for word in words[95:])
    assert "slow" not in mined(tmp_path, rows[:71]).candidates[0]["signals"]


def test_personal_data_is_masked_unless_it_is_asked_for(tmp_path: Path) -> None:
    rows = [
        {"q": "我的手机号是13800138000,怎么改绑?", "answer": "请致电 a@example.com,13900139000。"},
        {"q": "我的手机号是13811112222,怎么改绑?", "answer": "请去营业厅。"},
    ]
    safe = mined(tmp_path, rows, Wishes(with_answers=True))
    (row,) = safe.candidates
    assert row["question"] == "我的手机号是【手机号】,怎么改绑?"
    assert row["example_answers"] == ["请致电 【邮箱】,【手机号】。", "请去营业厅。"]
    assert (row["n_asked"], safe.masked) == (2, {"email": 1, "phone": 2})
    bare = mined(tmp_path, rows, Wishes(masked=False))
    assert (bare.candidates[0]["question"], bare.masked) == ("我的手机号是13800138000,怎么改绑?", None)
    assert "example_answers" not in bare.candidates[0]


@pytest.mark.parametrize("n", [0, -1])
def test_fewer_than_one_candidate_is_refused(tmp_path: Path, n: int) -> None:
    with pytest.raises(InputError, match=f"--n: found {n}, expected at least 1"):
        mined(tmp_path, [{"q": "Who pays?"}], Wishes(n=n))


def test_what_is_read_is_never_written_over(tmp_path: Path) -> None:
    log = write_rows(tmp_path / "log.jsonl", [{"q": "q"}])
    for force in (False, True):
        with pytest.raises(InputError, match="found a file that is read"):
            check_out(log, [log], force=force)
    with pytest.raises(InputError, match="there is no folder"):
        check_out(tmp_path / "nowhere" / "c.jsonl", [log], force=True)
    with pytest.raises(InputError, match="expected the name of a file"):
        check_out(tmp_path, [log], force=True)


# --- as a user --------------------------------------------------------------------------------------------------------


def test_candidates_load_as_cases_and_say_what_is_to_be_completed(tmp_path: Path) -> None:
    rows = [FINE | {"q": "How is 13800138000 unlocked?"}, FINE | {"q": "年假有几天"}, {"q": "half \ud800 a sign"}]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    ended = rag_judge("mine", "log.jsonl", "--out", "c.jsonl", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "c.jsonl: 3 candidates" in ended.stdout
    assert "masked: phone 1" in ended.stdout
    with closing(CaseSet(tmp_path / "c.jsonl")) as cases:
        found = {case.question: case for case in cases}
    case = found["How is [phone] unlocked?"]
    assert (case.type, case.expect_refusal, case.tags) == (None, None, ("mined",))
    assert case.extra["to_complete"] == ["type", "expect_refusal", "must_include or acceptable", "relevant_docs"]
    linted = rag_judge("lint", "c.jsonl", cwd=tmp_path)
    assert linted.stdout.count("no-expectation") == 3
    again = rag_judge("mine", "log.jsonl", "--out", "d.jsonl", "--cases", "c.jsonl", "--json", cwd=tmp_path)
    assert json.loads(again.stdout) | {"remarks": []} == {
        "out": None, "clusters": 3, "covered": 3, "small_talk": 0, "rows": 3, "written": 0, "cut": 0, "n_broken": 0,
        "masked": {}, "remarks": [],
    }  # fmt: skip
    assert not (tmp_path / "d.jsonl").exists()


def test_a_file_that_is_there_is_kept_unless_forced(tmp_path: Path) -> None:
    write_rows(tmp_path / "log.jsonl", [{"q": "年假有几天"}])
    (tmp_path / "c.jsonl").write_text("mine\n", encoding="utf-8")
    refused = rag_judge("mine", "log.jsonl", "--out", "c.jsonl", cwd=tmp_path)
    assert (refused.returncode, "--force writes over it" in refused.stderr) == (2, True)
    assert (tmp_path / "c.jsonl").read_text(encoding="utf-8") == "mine\n"
    forced = rag_judge("mine", "log.jsonl", "--out", "c.jsonl", "--force", "--lang", "zh", "--no-mask", cwd=tmp_path)
    assert forced.stdout.splitlines()[0] == "c.jsonl:1 条候选,出自 1 行中的 1 个不同问题"
    assert "个人信息未遮盖" in forced.stdout
    assert json.loads((tmp_path / "c.jsonl").read_text(encoding="utf-8"))["question"] == "年假有几天"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.jsonl", "log.jsonl"]
