"""Two runs side by side: hand-worked pairs, what is said of them, and the command on real runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from typer.testing import CliRunner

from rag_judge.cli import app
from rag_judge.comparison import METRICS, Side, changed_factors, compare_runs, paired_rows
from rag_judge.comparison_words import WORDS, compare_lines
from rag_judge.errors import InputError
from rag_judge.pipeline import RunRequest, World, run
from rag_judge.pipeline.review import ReviewedRun
from rag_judge.records import CaseRow
from rag_judge.settings import load_settings
from tests.eval_sets import numbered_files, verdict
from tests.labelled_runs import label_all
from tests.misbehaviour import JudgeRequest
from tests.servers import JudgeServer

NO_JUDGE: dict[str, Any] = {"judge": {"mode": "none"}}


def row(number: int, **values: Any) -> CaseRow:
    return CaseRow(
        id=f"q{number}", type=None, outcome=values.pop("outcome", "pass"), question_sha256=f"h{number}", **values
    )


def side(rows: Sequence[CaseRow], name: str = "run", **manifest: Any) -> Side:
    summary = manifest.pop("summary", NO_JUDGE)
    return Side(name, rows, {"system": {"model": "m"}, "k": 5, **manifest}, summary)


def compared(a: Sequence[CaseRow], b: Sequence[CaseRow], declared: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    return compare_runs(side(a, "one"), side(b, "two"), common=more.get("common", False), declared=declared, seed=0)


# --- pairs -----------------------------------------------------------------------------------------------------------


def test_questions_are_paired_by_id_and_hash_whatever_their_order() -> None:
    a = [row(1), row(2), row(3)]
    b = [row(3), replace(row(2), question_sha256="other"), row(4)]
    pairs, dropped = paired_rows(a, b)
    assert [(one.id, other.id) for (one,), (other,) in pairs] == [("q3", "q3")]
    assert dropped == {"only_a": ["q1"], "only_b": ["q4"], "changed_question": ["q2"]}
    with pytest.raises(InputError, match="only_a 1, only_b 1, changed_question 1"):
        compared(a, b)
    tree = compared(a, b, common=True)
    assert (tree["n_common"], tree["n_dropped"]) == (1, {"only_a": 1, "only_b": 1, "changed_question": 1})


def test_a_case_without_a_value_on_one_side_leaves_the_metric_and_is_counted() -> None:
    # B looks better only because its hard case was not graded
    a = [row(1, judge_pass=False), row(2, judge_pass=True)]
    b = [row(1, judge_pass=None, unscored_reason="unreadable"), row(2, judge_pass=True)]
    metric = compared(a, b)["metrics"]["pass"]
    assert (metric["n"], metric["n_only_a"], metric["n_only_b"]) == (1, 1, 0)
    assert metric["difference"]["value"] == 0


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("correctness", {"judge_pass": True, "did_abstain": False, "grounded": True}, True),
        ("correctness", {"judge_pass": False, "did_abstain": False, "grounded": False}, False),
        ("correctness", {"judge_pass": True, "did_abstain": True, "grounded": True}, None),
        ("correctness", {"judge_pass": None, "did_abstain": False, "grounded": True}, None),
        ("fabrication", {"judge_pass": False, "did_abstain": False, "grounded": False}, True),
        ("fabrication", {"judge_pass": True, "did_abstain": True, "grounded": None}, False),
        ("fabrication", {"judge_pass": False, "did_abstain": False, "grounded": None}, None),
        ("wrong_refusal", {"expect_refusal": False, "did_abstain": True}, True),
        ("wrong_refusal", {"expect_refusal": True, "did_abstain": True}, None),
        ("missed_refusal", {"expect_refusal": True, "did_abstain": False}, True),
        ("missed_refusal", {"expect_refusal": None, "did_abstain": False}, None),
        ("leak", {"leak": True, "leak_checked": True}, True),
        ("leak", {"leak": False, "leak_checked": False}, None),
    ],
)
def test_each_metric_is_of_the_cases_that_have_it(name: str, values: dict[str, Any], expected: bool | None) -> None:
    assert METRICS[name].value(row(1, **values)) is expected


# --- numbers ---------------------------------------------------------------------------------------------------------


def grown(n_same: int, n_gained: int, n_lost: int) -> tuple[list[CaseRow], list[CaseRow]]:
    first = [True] * n_same + [False] * n_gained + [True] * n_lost
    second = [True] * n_same + [True] * n_gained + [False] * n_lost
    a = [row(n, rule_correct=value) for n, value in enumerate(first)]
    return a, [row(n, rule_correct=value) for n, value in enumerate(second)]


def test_a_share_is_compared_by_mcnemars_mid_p_and_bonett_price() -> None:
    a, b = grown(20, 9, 2)
    metric = compared(a, b)["metrics"]["rule_correct"]
    assert (metric["won"], metric["lost"], metric["same"]) == (9, 2, 20)
    assert metric["difference"]["value"] == pytest.approx(7 / 31)
    from scipy.stats import binom

    exact = mcnemar([[20, 2], [9, 0]], exact=True).pvalue
    assert metric["p_value"] == pytest.approx(exact - binom.pmf(2, 11, 0.5))
    assert metric["difference"]["low"] < 7 / 31 < metric["difference"]["high"]
    assert metric["smallest_detectable"] is not None


def test_lower_is_better_for_leaks_and_refusals() -> None:
    a = [row(n, leak=n < 3, leak_checked=True) for n in range(10)]
    b = [row(n, leak=False, leak_checked=True) for n in range(10)]
    metric = compared(a, b)["metrics"]["leak"]
    assert (metric["won"], metric["lost"], metric["difference"]["value"]) == (3, 0, pytest.approx(-0.3))


def test_a_mean_is_compared_by_sign_flips_over_questions() -> None:
    a = [row(n, recall=0.0) for n in range(4)]
    b = [row(n, recall=1.0 if n else 0.0) for n in range(4)]
    metric = compared(a, b)["metrics"]["recall"]
    assert metric["difference"]["value"] == 0.75
    assert metric["p_value"] == 2 / 2**3  # all three up, or all three down, of eight patterns
    assert (metric["won"], metric["same"], metric["test"]) == (3, 1, "sign flips over questions")


def test_identical_runs_have_no_difference() -> None:
    a, _ = grown(30, 0, 0)
    tree = compared(a, a)
    metric = tree["metrics"]["rule_correct"]
    assert (metric["difference"]["value"], metric["p_value"], metric["won"], metric["lost"]) == (0, 1.0, 0, 0)
    assert tree["changed_cases"] == []


def test_holm_adjusts_the_declared_metrics_and_no_other() -> None:
    a, b = grown(20, 9, 2)
    a = [replace(one, recall=0.0, hit=False) for one in a]
    b = [replace(other, recall=float(n % 2), hit=n % 2 == 1) for n, other in enumerate(b)]
    declared = ["rule_correct", "recall", "hit"]
    metrics = compared(a, b, declared)["metrics"]
    expected = multipletests([metrics[name]["p_value"] for name in declared], method="holm")[1]
    assert [metrics[name]["p_holm"] for name in declared] == pytest.approx(list(expected))
    assert metrics["mrr"]["p_holm"] is None
    with pytest.raises(InputError, match=r"compare\.metrics: found taste; there are: hit, correctness"):
        compared(a, b, ["taste"])


# --- what differs, and what is said ----------------------------------------------------------------------------------


def test_what_differs_is_listed_by_factor() -> None:
    a = {
        "system": {"prompt_version": "1", "k": 5},
        "k": 5,
        "judge": {"model": "m"},
        "prompts": [],
        "package_version": "1",
    }
    b = {**a, "system": {"prompt_version": "2", "k": 5}, "judge": {"model": "n"}}
    assert changed_factors(a, b) == [
        {"factor": "system.prompt_version", "a": "1", "b": "2"},
        {"factor": "judge.model", "a": "m", "b": "n"},
    ]


def judged(flip: float, unscored: int, drawn: int = 100) -> dict[str, Any]:
    estimate = {"value": flip, "low": 0.0, "high": 1.0, "level": 0.95, "n": drawn, "method": "wilson", "target": "x"}
    return {"judge": {"mode": "passfail", "flip_rate": estimate, "unscored": {"unreadable": unscored}, "drawn": drawn}}


MANY = range(60)
CLEAN = {"grounded": True, "did_abstain": False, "judge_pass": True}
INVENTED = {"grounded": False, "did_abstain": False, "judge_pass": False}


@pytest.mark.parametrize(
    ("a", "b", "remark"),
    [
        pytest.param(side([row(1)], system={}), side([row(1)], system={}), "nothing_recorded", id="nothing recorded"),
        pytest.param(
            side([row(1)], system={"x": 1, "y": 1}),
            side([row(1)], system={"x": 2, "y": 2}),
            "several_factors",
            id="two",
        ),
        pytest.param(side([row(1)]), side([row(1)]), "nothing_changed", id="none"),
        pytest.param(
            side([row(n, recall=0.0, **CLEAN) for n in MANY]),
            side([row(n, recall=1.0, **INVENTED) for n in MANY]),
            "more_material_looser",
            id="recall and fabrication up",
        ),
        pytest.param(
            side([row(n, recall=0.5, **CLEAN) for n in MANY]),
            side([row(n, recall=1.0, **CLEAN) for n in MANY]),
            "above_recall_a",
            id="right without material",
        ),
        pytest.param(
            side([row(n, hit=False) for n in MANY], system={"prompt_version": "1"}),
            side([row(n, hit=True) for n in MANY], system={"prompt_version": "2"}),
            "retrieval_moved",
            id="retrieval not held fixed",
        ),
        pytest.param(
            side([row(n, judge_pass=n > 1) for n in MANY], summary=judged(0.2, 0)),
            side([row(n, judge_pass=n > 2) for n in MANY], summary=judged(0.1, 0)),
            "within_flips",
            id="smaller than the flips",
        ),
        pytest.param(
            side([row(1)], summary=judged(0.0, 1)),
            side([row(1)], summary=judged(0.0, 9)),
            "unscored_on_one_side",
            id="unscored",
        ),
    ],
)
def test_what_a_reader_should_know_is_said_in_both_languages(a: Side, b: Side, remark: str) -> None:
    tree = compare_runs(a, b, common=False, declared=(), seed=0)
    assert remark in tree["remarks"]
    tree |= {"cost": {"a": None, "b": 0.5}, "latency_s": {"a": None, "b": {"median": 0.2, "n": 3}}}
    for lang in ("en", "zh"):
        lines = compare_lines(tree, 5, lang)
        assert f"! {WORDS[lang][remark]}" in lines
        first = next(line for line in lines if line.startswith(WORDS[lang]["head"]))
        assert first.split(" | ")[1:] == ["Hit@5", WORDS[lang]["correctness"], WORDS[lang]["fabrication"]]


def test_one_factor_is_a_clean_comparison_and_several_are_loud() -> None:
    one = compare_runs(
        side([row(1)], system={"x": 1}), side([row(1)], system={"x": 2}), common=False, declared=(), seed=0
    )
    assert one["remarks"] == []
    one |= {"cost": {"a": None, "b": None}, "latency_s": {"a": None, "b": None}}
    assert "what differs: system.x: 1 -> 2" in compare_lines(one, 5, "en")
    assert set(WORDS["en"]) == set(WORDS["zh"])


# --- the command -----------------------------------------------------------------------------------------------------


def graded(folder: Path, name: str, reply: Callable[[JudgeRequest], str], n: int = 12, **system: str) -> ReviewedRun:
    cases, answers = numbered_files(folder, n)
    with JudgeServer(reply) as server:
        flags = {"out": str(folder / "runs"), "base_url": server.base_url, "model": "m", "name": name, "cache": False}
        world = World({}, lambda: datetime(2026, 1, 31, tzinfo=UTC), time.monotonic)
        settings = load_settings(None, {}, {**flags, "system": system}, folder=None)
        return ReviewedRun(run(RunRequest(settings, cases, answers), world).folder.path)


def test_the_command_prints_the_table_and_keeps_it_in_the_second_run(tmp_path: Path) -> None:
    first = graded(tmp_path, "v1", lambda _: verdict(grounded=False), prompt="1")
    second = graded(tmp_path, "v2", lambda _: verdict(), prompt="2")
    arguments = ["compare", str(first.folder.path), str(second.folder.path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "what differs: system.prompt: 1 -> 2" in result.output
    assert "judge pass: A 0%, B 100%; B - A +100%" in result.output
    assert "all judge numbers are uncorrected" in result.output
    kept = json.loads((second.folder.path / "comparison.json").read_text(encoding="utf-8"))
    assert kept == json.loads(CliRunner().invoke(app, [*arguments, "--json"]).output)
    assert (kept["a"], kept["b"], kept["n_common"]) == (first.folder.run_id, second.folder.run_id, 12)
    assert {case["outcome_a"] for case in kept["changed_cases"]} == {"fail"}


def test_other_questions_are_refused_with_2_unless_common_allows_them(tmp_path: Path) -> None:
    first = graded(tmp_path, "v1", lambda _: verdict())
    (tmp_path / "more").mkdir()
    second = graded(tmp_path / "more", "v2", lambda _: verdict(), n=15)
    arguments = ["compare", str(first.folder.path), str(second.folder.path)]
    refused = CliRunner().invoke(app, arguments)
    assert isinstance(refused.exception, InputError)
    assert "only_b 3" in str(refused.exception)
    assert CliRunner().invoke(app, [*arguments, "--common"]).exit_code == 0


@pytest.mark.parametrize("n", [12, 40])
def test_with_labels_on_both_the_corrected_difference_leads(tmp_path: Path, n: int) -> None:
    first = graded(tmp_path, "v1", lambda _: verdict(), n=n)  # the judge passes everything of both
    second = graded(tmp_path, "v2", lambda _: verdict(), n=n)
    label_all(first, tmp_path, [i % 2 == 0 for i in range(n)])
    label_all(second, tmp_path, [True] * n)
    result = CliRunner().invoke(app, ["compare", str(first.folder.path), str(second.folder.path), "--json"])
    corrected = json.loads(result.output)["corrected"]
    assert corrected["n_labelled_in_both"] == n
    assert corrected["difference"]["value"] == pytest.approx(0.5, abs=0.04)
    assert corrected["difference"]["low"] > 0
    assert ("guarded" in corrected["difference"]["method"]) is (n == 40)  # from 30 pairs by their differences
