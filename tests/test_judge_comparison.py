"""Which of two judges is closer to people; and a rate corrected by another run's labels."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from statsmodels.stats.contingency_tables import mcnemar
from typer.testing import CliRunner

from rag_judge.cli import app
from rag_judge.errors import InputError
from rag_judge.judge_comparison import JudgedCase, compare_judges
from rag_judge.pipeline import RunRequest, World, run
from rag_judge.pipeline.bias import external_calibration, judges_compared
from rag_judge.pipeline.review import ReviewedRun
from rag_judge.settings import load_settings
from tests.eval_sets import numbered_files, verdict
from tests.labelled_runs import label_all
from tests.misbehaviour import JudgeRequest
from tests.servers import JudgeServer

# --- from cases ------------------------------------------------------------------------------------------------------


def judged(a: str, b: str, human: str, probabilities: Sequence[float | None] | None = None) -> list[JudgedCase]:
    """A case a letter: `p` pass, `f` fail, `-` nothing."""
    said = {"p": True, "f": False, "-": None}
    known: Sequence[float | None] = probabilities or [0.5] * len(a)
    return [
        JudgedCase(f"c{n}", said[x], said[y], said[h], known[n])
        for n, (x, y, h) in enumerate(zip(a, b, human, strict=True))
    ]


def test_the_difference_is_of_cases_that_both_judges_and_people_decided() -> None:
    #                              A right 4 of 8, B right 7 of 8; B alone on 4, A alone on 1
    tree = compare_judges(judged("ppppffffp-", "pppfffpfff", "pppffffp-p"), 0)
    rights = [(a == h, b == h) for a, b, h in zip("ppppffff", "pppfffpf", "pppffffp", strict=True)]
    only_b, only_a = rights.count((False, True)), rights.count((True, False))
    assert (tree["n_labelled"], tree["n"], tree["n_left_out"]) == (9, 8, 1)
    assert (tree["only_a_right"], tree["only_b_right"]) == (only_a, only_b) == (1, 1)
    assert tree["a"]["agreement"]["value"] == sum(a for a, _ in rights) / 8
    assert tree["b"]["agreement"]["value"] == sum(b for _, b in rights) / 8
    assert tree["difference"]["value"] == 0
    assert [case["id"] for case in tree["deciding_cases"]] == ["c3", "c6"]
    assert tree["judges_agree"]["n"] == 9  # also where nobody said what is right


def test_the_test_is_mcnemars_mid_p() -> None:
    a, b, human = "p" * 20, "p" * 10 + "f" * 10, "p" * 10 + "f" * 8 + "p" * 2
    tree = compare_judges(judged(a, b, human), 0)
    assert (tree["only_a_right"], tree["only_b_right"]) == (2, 8)
    exact = mcnemar([[10, 2], [8, 0]], exact=True).pvalue
    from scipy.stats import binom

    assert tree["p_value"] == pytest.approx(exact - binom.pmf(2, 10, 0.5))
    assert tree["difference"]["value"] == pytest.approx(6 / 20)
    assert tree["smallest_detectable"] is not None


def test_where_the_sample_was_drawn_by_verdict_the_difference_is_weighted_too() -> None:
    probabilities: Sequence[float | None] = [0.1] * 50 + [1.0] * 10
    a, b = "p" * 50 + "f" * 10, "p" * 50 + "p" * 10
    human = "p" * 50 + "f" * 10
    tree = compare_judges(judged(a, b, human, probabilities), 0)
    assert tree["difference"]["value"] == pytest.approx(-10 / 60)
    assert tree["weighted_difference"]["value"] == pytest.approx(-10 / (500 + 10))
    nobody_drew: list[float | None] = [None] * 60
    by_hand = compare_judges(judged(a, b, human, nobody_drew), 0)
    assert by_hand["weighted_difference"] is None
    assert "unknown probability" in by_hand["weighted_difference_reason"]


def test_without_a_case_in_common_nothing_is_said() -> None:
    tree = compare_judges(judged("p-", "-p", "pp"), 0)
    assert (tree["n"], tree["difference"], tree["p_value"], tree["smallest_detectable"]) == (0, None, None, None)
    assert tree["deciding_cases"] == []


# --- whole runs ------------------------------------------------------------------------------------------------------


def lenient(_: JudgeRequest) -> str:
    return verdict()


def strict(_: JudgeRequest) -> str:
    return verdict(grounded=False)


def graded(folder: Path, name: str, reply: Any, n: int = 12) -> ReviewedRun:
    cases, answers = numbered_files(folder, n)
    with JudgeServer(reply) as server:
        flags = {"out": str(folder / "runs"), "base_url": server.base_url, "model": name, "name": name, "cache": False}
        world = World({}, lambda: datetime(2026, 1, 31, tzinfo=UTC), time.monotonic)
        result = run(RunRequest(load_settings(None, {}, flags, folder=None), cases, answers), world)
    return ReviewedRun(result.folder.path)


def test_the_command_names_the_closer_judge_and_the_cases_that_decide(tmp_path: Path) -> None:
    first, second = graded(tmp_path, "lenient", lenient), graded(tmp_path, "strict", strict)
    label_all(first, tmp_path, [True] * 9 + [False] * 3)
    arguments = ["compare-judges", str(first.folder.path), str(second.folder.path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "A: lenient" in result.output
    assert "agrees with people on 75%" in result.output
    assert "only A is right on 9, only B on 3" in result.output
    assert "q0: people: pass; A: pass; B: fail" in result.output
    tree = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).output)
    assert (tree["a"]["agreement"]["value"], tree["b"]["agreement"]["value"]) == (0.75, 0.25)
    assert (tree["a"]["calls"], tree["a"]["flip_rate"]["value"]) == (24, 0.0)
    chinese = CliRunner().invoke(app, [*arguments, "--lang", "zh"])
    assert "只有 A 对 9 条,只有 B 对 3 条" in chinese.output


def test_other_answers_or_no_labels_are_refused(tmp_path: Path) -> None:
    first, second = graded(tmp_path, "lenient", lenient), graded(tmp_path, "strict", strict)
    with pytest.raises(InputError, match="neither run has labels"):
        judges_compared(first, second)
    (tmp_path / "other").mkdir()
    other = graded(tmp_path / "other", "other", lenient, n=11)
    label_all(first, tmp_path, [True] * 12)
    with pytest.raises(InputError, match="differ in their answers"):
        judges_compared(first, other)


def test_labels_of_another_run_correct_a_rate_and_the_assumption_is_printed(tmp_path: Path) -> None:
    def half(request: JudgeRequest) -> str:
        digest = hashlib.sha256(str(request.body["messages"][-1]["content"].splitlines()[1]).encode()).digest()
        return verdict(grounded=digest[0] % 2 == 0)

    calibrated = graded(tmp_path, "one", half, n=40)
    decided = {row["id"]: row["judge_pass"] for row in calibrated.run.table().to_dict("records")}
    assert set(decided.values()) == {True, False}
    # people: as the judge, but for a few
    passed = [bool(decided[f"q{n}"]) if n % 10 else not decided[f"q{n}"] for n in range(40)]
    label_all(calibrated, tmp_path, passed)
    new = graded(tmp_path, "one", half, n=40)
    tree = external_calibration(new, calibrated)
    assert tree["same_model"]
    assert tree["same_prompt"]
    assert "errs on these cases as it did on those" in tree["assumption"]
    cells = tree["confusion"]
    sens, spec = cells["tp"] / (cells["tp"] + cells["fn"]), cells["tn"] / (cells["tn"] + cells["fp"])
    p = sum(map(bool, decided.values())) / 40
    assert tree["raw"] == pytest.approx((p + spec - 1) / (sens + spec - 1))
    other = graded(tmp_path, "two", half, n=40)
    assert external_calibration(other, calibrated)["same_model"] is False


def test_the_table_of_a_run_has_what_people_said_beside_what_the_judge_did(tmp_path: Path) -> None:
    judged_run = graded(tmp_path, "lenient", lenient)
    assert "n_labels" not in judged_run.run.table().columns
    label_all(judged_run, tmp_path, [True] * 9 + [False] * 2)
    table = judged_run.run.table().set_index("id")
    assert (bool(table.loc["q0", "human_passed"]), bool(table.loc["q10", "human_passed"])) == (True, False)
    assert dict(table["n_labels"]) == {**{f"q{n}": 1 for n in range(11)}, "q11": 0}
    assert bool(table["human_passed"].isna()["q11"])
    assert bool(table.loc["q0", "judge_pass"])
