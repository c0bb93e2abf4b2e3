"""Several answers to each question: collected, graded one by one, and counted by question."""

from __future__ import annotations

import json
import math
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from typer.testing import CliRunner

from rag_judge.answers import AnswerSet
from rag_judge.archive import case_rows_of, find_run, read_run
from rag_judge.cases import CaseSet
from rag_judge.cli import app
from rag_judge.comparison import Side, compare_runs
from rag_judge.endpoint import Collection, open_endpoint
from rag_judge.errors import InputError
from rag_judge.estimates import wilson_ends
from rag_judge.gate import GateRules, decide
from rag_judge.records import CaseRow
from rag_judge.sections import EndpointSettings
from rag_judge.summary import summarise
from tests.eval_sets import numbered_answers, numbered_cases, verdict, write_rows
from tests.misbehaviour import JudgeRequest, Misbehaviour, Respond
from tests.servers import JudgeServer, RagServer

N = 6


class Varying:
    """A system that leaves the key point out of every other answer to a question."""

    def __init__(self, *, failing: int = 0) -> None:
        self.asked: Counter[str] = Counter()
        self.failing = failing  # questions that get no answer the third time

    def __call__(self, body: dict[str, Any]) -> dict[str, Any] | Misbehaviour:
        question = body["query"]
        number = next(i for i, case in enumerate(numbered_cases(N)) if case["question"] == question)
        self.asked[question] += 1
        if number < self.failing and self.asked[question] >= 3:
            return Respond(400, "no")
        said = f"There are {100 + number} seats." if self.asked[question] % 2 else "There are many seats."
        return {"answer": said, "contexts": numbered_answers(N)[number]["contexts"]}


def strict(request: JudgeRequest) -> str:
    """Passes what names a number of seats."""
    return verdict(complete="There are many" not in request.text)


def invoked(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, [*map(str, arguments), "--quiet"])


def collected(folder: Path, system: Varying, n: int) -> tuple[Path, Path]:
    cases, out = write_rows(folder / "cases.jsonl", numbered_cases(N)), folder / "answers.jsonl"
    with RagServer(system) as server:
        asked = ("--endpoint", server.ask_url, "--out", out, "--repeat-answers", n)
        result = invoked("collect", "--cases", cases, *map(str, asked))
    assert result.exit_code in (0, 4), result.output
    return cases, out


def row(question: int, answer_no: int | None, **values: Any) -> CaseRow:
    outcome = values.pop("outcome", "pass")
    return CaseRow(f"q{question}", None, outcome, answer_no=answer_no, question_sha256=f"h{question}", **values)


def compared(a: list[CaseRow], b: list[CaseRow]) -> dict[str, Any]:
    sides = [
        Side(name, rows, {"system": {"v": name}}, {"judge": {"mode": "none"}}) for name, rows in (("a", a), ("b", b))
    ]
    return compare_runs(*sides, common=False, declared=[], seed=0)


# --- collecting --------------------------------------------------------------------------------------------------


def test_each_question_is_asked_so_many_times_and_each_answer_has_its_number(tmp_path: Path) -> None:
    system = Varying()
    _, out = collected(tmp_path, system, 3)
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [(r["id"], r["answer_no"]) for r in rows] == [(f"q{i}", n) for i in range(N) for n in range(3)]
    assert set(system.asked.values()) == {3}
    assert rows[0]["answer"] != rows[1]["answer"]


def test_an_interrupted_collection_goes_on_with_the_answers_that_are_missing(tmp_path: Path) -> None:
    cases, out = write_rows(tmp_path / "cases.jsonl", numbered_cases(N)), tmp_path / "answers.jsonl"
    system = Varying()
    _, whole = collected(tmp_path, system, 2)
    first = whole.read_text(encoding="utf-8").splitlines()[0]
    whole.unlink()
    with RagServer(system) as server:
        arguments = ("--endpoint", server.ask_url, "--out", out, "--repeat-answers", "2")
        # the growing file of a collection that was killed after one answer

        part = Collection(out.with_name(out.name + ".part"))
        with closing(CaseSet(cases)) as case_set:
            case = case_set.get("q0")
        part.append(open_endpoint(EndpointSettings(url=server.ask_url), {}, {}).key(case), json.loads(first))
        part.close()
        before = sum(system.asked.values())
        assert invoked("collect", "--cases", cases, *arguments).exit_code == 0
    assert sum(system.asked.values()) - before == 2 * N - 1
    assert len(out.read_text(encoding="utf-8").splitlines()) == 2 * N


def test_a_system_that_always_says_the_same_is_told(tmp_path: Path) -> None:
    cases, out = write_rows(tmp_path / "cases.jsonl", numbered_cases(N)), tmp_path / "answers.jsonl"
    with RagServer(lambda body: {"answer": "always this", "contexts": []}) as server:
        arguments = ["collect", "--cases", str(cases), "--endpoint", server.ask_url, "--out", str(out)]
        result = CliRunner().invoke(app, [*arguments, "--repeat-answers", "2"])
    assert "the same answer each time" in result.stderr


@pytest.mark.parametrize("n", ["0", "-1", "101"])
def test_a_number_of_answers_that_is_none_is_refused_before_anything_is_asked(tmp_path: Path, n: str) -> None:
    cases = write_rows(tmp_path / "cases.jsonl", numbered_cases(N))
    with RagServer(Varying()) as server:
        arguments = ("--endpoint", server.ask_url, "--out", tmp_path / "a.jsonl", "--repeat-answers", n)
        result = invoked("collect", "--cases", cases, *arguments)
        assert not server.requests
    assert f"--repeat-answers: found {n}" in str(result.exception)


# --- reading -----------------------------------------------------------------------------------------------------


def test_an_id_that_stands_twice_without_a_number_is_still_an_error(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", [{"id": "q0", "answer": "x"}, {"id": "q0", "answer": "y"}])
    with pytest.raises(InputError, match=r"stands twice, on lines 1 and 2.*answer_no"):
        AnswerSet(path, {"q0"})


def test_so_is_a_number_that_stands_twice_or_is_none(tmp_path: Path) -> None:
    twice = [{"id": "q0", "answer": "x", "answer_no": 1}, {"id": "q0", "answer": "y", "answer_no": 1}]
    with pytest.raises(InputError, match="stands twice"):
        AnswerSet(write_rows(tmp_path / "a.jsonl", twice), {"q0"})
    for wrong in (-1, 1.5, "first", True):
        path = write_rows(tmp_path / "b.jsonl", [{"id": "q0", "answer": "x", "answer_no": wrong}])
        with pytest.raises(InputError, match=r"answer_no: found .*expected a whole number from 0"):
            AnswerSet(path, {"q0"})


def test_numbers_may_start_anywhere_and_stand_in_any_order(tmp_path: Path) -> None:
    rows = [{"id": "q0", "answer": f"answer {n}", "answer_no": n} for n in (7, 3, 5)]
    answers = AnswerSet(write_rows(tmp_path / "a.jsonl", rows), {"q0"})
    assert [one.answer for one in answers.of_case("q0")] == ["answer 3", "answer 5", "answer 7"]
    assert answers.get("q0").answer == "answer 3"
    answers.close()


def test_a_missing_answer_counts_as_none_so_that_every_question_weighs_the_same(tmp_path: Path) -> None:
    rows = [{"id": f"q{i}", "answer": "x", "answer_no": n} for i, n in ((0, 0), (0, 1), (0, 2), (1, 0))]
    answers = AnswerSet(write_rows(tmp_path / "a.jsonl", rows), {"q0", "q1", "q2"})
    assert [one.error is None for one in answers.of_case("q1")] == [True, False, False]
    assert len(list(answers.of_case("q2"))) == 3
    assert "3 answers a case, but 2 of them are missing" in answers.warnings[0]
    answers.close()


def test_answers_in_csv_keep_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,answer,answer_no\nq0,x,0\nq0,y,1\n", encoding="utf-8")
    answers = AnswerSet(tmp_path / "a.csv", {"q0"})
    with (tmp_path / "copy.jsonl").open("wb") as file:
        answers.copy_to(file)
    answers.close()
    copied = AnswerSet(tmp_path / "copy.jsonl", {"q0"})
    assert [one.answer for one in copied.of_case("q0")] == ["x", "y"]
    copied.close()


# --- a run -------------------------------------------------------------------------------------------------------


def graded(folder: Path, cases: Path, answers: Path, *more: str) -> Any:
    with JudgeServer(strict) as server:
        arguments = ("--answers", answers, "--out", folder / "runs", "--base-url", server.base_url, "--model", "m")
        return invoked("run", "--cases", cases, *arguments, *more), len(server.requests)


def test_a_run_has_a_row_an_answer_and_its_rates_are_by_question(tmp_path: Path) -> None:
    cases, out = collected(tmp_path, Varying(), 4)
    result, n_requests = graded(tmp_path, cases, out)
    assert result.exit_code == 0, result.output
    run = read_run(next((tmp_path / "runs").iterdir()))
    rows = case_rows_of(run, every_answer=True)
    assert [(r.id, r.answer_no) for r in rows] == [(f"q{i}", n) for i in range(N) for n in range(4)]
    assert [r.judge_pass for r in rows[:4]] == [True, False, True, False]
    assert n_requests == 2 * 4 * N  # two repeats each, which agree
    summary = run.summary
    assert (summary["n_cases"], summary["n_answered"], summary["judge"]["drawn"]) == (N, 4 * N, 4 * N)
    assert summary["judge"]["pass"]["value"] == 0.5
    assert summary["repeats"]["judge_differs"]["value"] == 1.0
    assert (summary["repeats"]["n_questions"], summary["repeats"]["n_answers"]) == (N, 4 * N)
    # people review the first answer of each question
    assert [r.answer_no for r in case_rows_of(run)] == [0] * N


def test_answers_of_the_same_words_are_judged_each_by_itself(tmp_path: Path) -> None:
    cases = write_rows(tmp_path / "cases.jsonl", numbered_cases(1))
    answer = numbered_answers(1)[0]
    out = write_rows(tmp_path / "answers.jsonl", [{**answer, "answer_no": n} for n in range(3)])
    _, n_requests = graded(tmp_path, cases, out)
    journal = (next((tmp_path / "runs").iterdir()) / "calls.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in journal]
    assert n_requests == 2 * 3
    assert len({entry["call_id"] for entry in entries}) == 6
    assert Counter(entry["answer_no"] for entry in entries) == {0: 2, 1: 2, 2: 2}


def test_a_failed_repeat_is_an_answer_that_is_missing_not_one_less(tmp_path: Path) -> None:
    cases, out = collected(tmp_path, Varying(failing=2), 3)
    result, _ = graded(tmp_path, cases, out, "--name", "part")
    summary = read_run(find_run(tmp_path / "runs", next((tmp_path / "runs").iterdir()).name).path).summary
    assert (summary["n_errors"], summary["n_answered"]) == (2, 3 * N - 2)
    assert result.exit_code == 4  # 2 of 18 are above two per cent
    assert summary["end_to_end"]["correct"]["n"] == 3 * N


def test_regrade_moves_nothing(tmp_path: Path) -> None:
    cases, out = collected(tmp_path, Varying(), 3)
    graded(tmp_path, cases, out)
    run = next((tmp_path / "runs").iterdir())
    result = invoked("regrade", run, "--out", tmp_path / "again")
    assert result.exit_code == 0
    assert "0 outcomes moved" in result.output
    again = next((tmp_path / "again").iterdir())
    assert (again / "summary.json").read_bytes() == (run / "summary.json").read_bytes()
    assert (again / "cases.csv").read_bytes() == (run / "cases.csv").read_bytes()


# --- numbers -----------------------------------------------------------------------------------------------------


def test_the_interval_of_a_rate_is_that_of_clustered_standard_errors() -> None:
    rng = np.random.default_rng(3)
    skill = rng.beta(2, 1, 40)
    rows = [row(q, n, rule_correct=bool(rng.random() < skill[q])) for q in range(40) for n in range(5)]
    correct = summarise(rows, k=5, seed=0, mode="none")["rules"]["correct"]
    values = np.array([float(bool(r.rule_correct)) for r in rows])
    groups = np.repeat(np.arange(40), 5)
    fit = sm.OLS(values, np.ones_like(values)).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "use_correction": True}
    )
    # statsmodels' correction has (n-1)/(n-k) beside G/(G-1); both are 1 for a constant alone
    p = values.mean()
    effective = min(p * (1 - p) / float(fit.bse[0]) ** 2, 200)
    assert (correct["low"], correct["high"]) == pytest.approx(wilson_ends(p, effective), abs=1e-9)
    assert 40 < effective < 200


def test_asking_again_what_never_varies_makes_no_interval_narrower() -> None:
    once = [row(q, None, rule_correct=q % 3 > 0) for q in range(30)]
    often = [replace(r, answer_no=n) for r in once for n in range(5)]
    one, five = (summarise(rows, k=5, seed=0, mode="none")["rules"]["correct"] for rows in (once, often))
    assert five["value"] == one["value"]
    assert five["high"] - five["low"] >= one["high"] - one["low"] - 1e-9


def test_a_mean_is_over_questions_of_the_mean_over_answers() -> None:
    # recall 1 and 0 of one question, 1 of the other: (1/2 + 1)/2
    rows = [row(1, 0, hit=True, recall=1.0, mrr=1.0, ndcg=1.0, precision=1.0)]
    rows += [row(1, 1, hit=False, recall=0.0, mrr=0.0, ndcg=0.0, precision=0.0)]
    rows += [row(2, 0, hit=True, recall=1.0, mrr=1.0, ndcg=1.0, precision=1.0)]
    recall = summarise(rows, k=5, seed=0, mode="none")["retrieval"]["recall"]
    assert (recall["value"], recall["n"]) == (0.75, 2)


def test_a_question_counts_once_in_a_comparison_with_the_mean_over_its_answers() -> None:
    # q1: 1 of 2 -> 2 of 2; q2: 2 of 2 -> 2 of 2; q3: 0 of 2 -> 1 of 2. Difference (1/2 + 0 + 1/2)/3
    a = [
        row(q, n, rule_correct=v)
        for q, vs in ((1, (True, False)), (2, (True, True)), (3, (False, False)))
        for n, v in enumerate(vs)
    ]
    b = [
        row(q, n, rule_correct=v)
        for q, vs in ((1, (True, True)), (2, (True, True)), (3, (False, True)))
        for n, v in enumerate(vs)
    ]
    metric = compared(a, b)["metrics"]["rule_correct"]
    assert metric["n"] == 3
    assert metric["difference"]["value"] == pytest.approx(1 / 3)
    assert (metric["won"], metric["lost"], metric["same"]) == (2, 0, 1)
    # signs of two moved questions: ++, +-, -+, --; two of four are as far from 0
    assert metric["p_value"] == 0.5
    assert metric["test"] == "sign flips over questions"
    # standard deviation of 1/2, 0, 1/2 is sqrt(1/12); (1.95996 + 0.84162) * sqrt(1/12) / sqrt(3)
    assert metric["smallest_detectable"] == pytest.approx(2.80158 * math.sqrt(1 / 12) / math.sqrt(3), rel=1e-4)


def test_a_case_has_changed_where_most_of_its_answers_end_otherwise() -> None:
    def rows(*ends: str) -> list[CaseRow]:
        return [row(1, n, outcome=end, cause="missing_point" if end == "fail" else None) for n, end in enumerate(ends)]

    assert compared(rows("pass", "pass", "fail"), rows("pass", "fail", "pass"))["changed_cases"] == []
    (changed,) = compared(rows("pass", "pass", "fail"), rows("fail", "fail", "pass"))["changed_cases"]
    assert (changed["outcome_a"], changed["outcome_b"], changed["cause_b"]) == ("pass", "fail", "missing_point")
    assert changed["outcomes_b"] == {"fail": 2, "pass": 1}
    (changed,) = compared(rows("pass", "pass"), rows("pass", "fail"))["changed_cases"]
    assert (changed["outcome_b"], changed["cause_b"]) == ("undecided", None)


def test_a_lucky_draw_is_no_improvement() -> None:
    # one system twice, 40 questions with 5 answers each: how often is the second called better or worse?
    rng = np.random.default_rng(11)
    n_claims, n_times = 0, 300
    for _ in range(n_times):
        skill = rng.beta(1, 1, 40)
        runs = [
            [row(q, n, rule_correct=bool(rng.random() < skill[q])) for q in range(40) for n in range(5)] for _ in "ab"
        ]
        difference = compared(*runs)["metrics"]["rule_correct"]["difference"]
        n_claims += difference["low"] > 0 or difference["high"] < 0
    # at most 5 %: 15 of 300, and three standard deviations sqrt(300 * 0.05 * 0.95) = 3.8 above it
    assert n_claims <= 15 + 3 * 3.8


def test_one_leak_among_several_answers_crosses_the_red_line_once() -> None:
    rows = [row(1, n, leak=n == 2, leak_checked=True, rule_correct=n != 2) for n in range(4)]
    summary = summarise(rows, k=5, seed=0, mode="none")
    gated = decide(rows, summary, GateRules(), embedded=False)
    assert gated.red_lines == ("q1",)
    assert summary["rules"]["leaks"] == ["q1"]
    # four answers to one question are one try: 1 - 0.025 ** (1 / 1)
    clean = [replace(r, leak=False, rule_correct=True) for r in rows]
    rule = decide(clean, summarise(clean, k=5, seed=0, mode="none"), GateRules(), embedded=False).rules[0]
    assert "none of 1 cases" in rule.reason
    assert "97.5%" in rule.reason


def test_labels_stand_beside_the_answer_that_people_saw(tmp_path: Path) -> None:
    cases, out = collected(tmp_path, Varying(), 2)
    graded(tmp_path, cases, out)
    run = next((tmp_path / "runs").iterdir())
    labels = write_rows(
        tmp_path / "l.jsonl", [{"case_id": f"q{i}", "annotator": "li", "passed": i < 3} for i in range(N)]
    )
    assert invoked("review", "import", run, labels).exit_code == 0
    table = read_run(run).table()
    assert list(table["n_labels"]) == [1, 0] * N
    assert list(table["human_passed"].dropna()) == [True] * 3 + [False] * 3
    assert invoked("bias", run).exit_code == 0
    found = json.loads((run / "bias.json").read_text(encoding="utf-8"))
    assert found["n_labelled"] == N
    assert pd.notna(found["fields"]["pass"]["judge_rate"]["value"])


def test_the_lines_and_the_page_say_what_is_counted(tmp_path: Path) -> None:
    cases, out = collected(tmp_path, Varying(), 2)
    result, _ = graded(tmp_path, cases, out)
    assert "12 answers to 6 questions" in result.output
    assert "[fact] q0 (1) expected" in result.output
    page = (next((tmp_path / "runs").iterdir()) / "report.html").read_text(encoding="utf-8")
    assert "12 answers to 6 questions" in page
    assert "q0 (1)</b>" in page
