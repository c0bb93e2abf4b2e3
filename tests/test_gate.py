"""Ship, hold, or not enough evidence: each rule by hand, the exit codes, and what machines are told."""

from __future__ import annotations

import json
import random
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rag_judge.cli import app
from rag_judge.comparison import Side, compare_runs
from rag_judge.demo.rag_service import running_service
from rag_judge.estimates import clopper_pearson_ends, rate, wilson_ends
from rag_judge.gate import Gated, GateRules, JudgeMoved, Rule, decide
from rag_judge.gate_output import WORDS, gate_lines, job_summary, junit_xml, verdict_line, workflow_commands
from rag_judge.pipeline import RunRequest, World, run
from rag_judge.pipeline.demo import write_cases
from rag_judge.prompts import shipped_folder
from rag_judge.records import CaseRow, Estimate
from rag_judge.settings import load_settings
from rag_judge.summary import summarise


def row(number: int, **values: Any) -> CaseRow:
    values = {"drawn": True, "did_abstain": False, **values}
    return CaseRow(
        id=f"q{number}", type=None, outcome=values.pop("outcome", "pass"), question_sha256=f"h{number}", **values
    )


def rows_with(n_right: int, n: int, **values: Any) -> list[CaseRow]:
    return [row(i, rule_correct=i < n_right, judge_pass=i < n_right, grounded=i < n_right, **values) for i in range(n)]


def summary_of(rows: Sequence[CaseRow], mode: str = "passfail") -> dict[str, Any]:
    return summarise(rows, k=5, seed=0, mode=mode)


def decided(rows: Sequence[CaseRow], rules: GateRules, **more: Any) -> Gated:
    given = {"embedded": False, **more}
    return decide(rows, summary_of(rows), rules, **given)


def named(gated: Gated, name: str) -> Rule:
    return next(rule for rule in gated.rules if rule.name == name)


# --- red lines and limits --------------------------------------------------------------------------------------------


def test_one_leak_holds_and_no_judge_can_cross_a_red_line() -> None:
    leaking = [*rows_with(50, 50), row(99, leak=True, leak_checked=True, judge_pass=True)]
    gated = decided(leaking, GateRules())
    assert (gated.decision, gated.exit_code, gated.red_lines) == ("hold", 1, ("q99",))
    judged_only = [*rows_with(50, 50), row(99, red_line=True, rule_correct=True, judge_pass=False)]
    assert decided(judged_only, GateRules()).red_lines == ()
    broken = [*rows_with(50, 50), row(99, red_line=True, rule_correct=False)]
    assert decided(broken, GateRules()).red_lines == ("q99",)
    unanswered = [*rows_with(99, 99), row(99, red_line=True, rule_correct=None, outcome="no_answer")]
    assert decided(unanswered, GateRules()).red_lines == ()


def test_no_leak_in_n_cases_is_said_with_its_upper_bound() -> None:
    checked = [row(n, leak=False, leak_checked=True, rule_correct=True) for n in range(20)]
    reason = named(decided(checked, GateRules()), "red_lines").reason
    assert f"{clopper_pearson_ends(0, 20)[1]:.1%}" in reason
    assert "nothing was tried" in named(decided(rows_with(5, 5), GateRules()), "red_lines").reason


def test_limits_come_after_red_lines_and_before_other_rules() -> None:
    rows = [*rows_with(0, 90), *(row(n, unscored_reason="unreadable", outcome="unscored") for n in range(90, 100))]
    rules = GateRules(floors={"rule_correct": 0.9})
    assert (decided(rows, rules).decision, decided(rows, rules).exit_code) == ("hold", 4)
    leaking = [*rows, row(200, leak=True, leak_checked=True)]
    assert decided(leaking, rules).exit_code == 1
    silent = [*rows_with(90, 90), *(row(n, outcome="no_answer") for n in range(90, 100))]
    assert decided(silent, GateRules()).exit_code == 4
    assert decided(silent, GateRules(max_unanswered=0.2)).exit_code == 0


# --- floors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_right", "n", "floor", "outcome", "code"),
    [(95, 100, 0.80, "passed", 0), (60, 100, 0.80, "failed", 1), (17, 20, 0.80, "inconclusive", 3)],
)
def test_a_floor_is_held_against_the_ends_of_the_interval(
    n_right: int, n: int, floor: float, outcome: str, code: int
) -> None:
    gated = decided(rows_with(n_right, n), GateRules(floors={"rule_correct": floor}))
    low, high = wilson_ends(n_right / n, n)
    assert {"passed": low >= floor, "failed": high < floor, "inconclusive": low < floor <= high}[outcome]
    assert (named(gated, "floor:rule_correct").outcome, gated.exit_code) == (outcome, code)


def test_an_open_floor_says_how_many_more_cases_would_decide() -> None:
    rule = named(decided(rows_with(17, 20), GateRules(floors={"rule_correct": 0.8})), "floor:rule_correct")
    assert rule.more_cases is not None
    assert wilson_ends(0.85, 20 + rule.more_cases)[0] >= 0.8
    assert wilson_ends(0.85, int((20 + rule.more_cases) * 0.9))[0] < 0.8


def test_a_judge_rate_without_labels_is_called_uncorrected() -> None:
    gated = decided(rows_with(95, 100), GateRules(floors={"pass": 0.8}))
    assert "uncorrected judge rate" in named(gated, "floor:pass").reason
    assert gated.corrected is False
    assert "uncorrected" in verdict_line(gated, "en")


def bias(
    value: float | None, low: float, high: float, *, n: int = 40, cautious_high: float | None = None
) -> dict[str, Any]:
    corrected = None if value is None else {"value": value}
    field = {
        "corrected": corrected,
        "interval": [low, high],
        "interval_cautious": [low, high if cautious_high is None else cautious_high],
        "rule_reason": "7 labels; 8 are the fewest to correct with",
        "labels_more": {"0.05": 33},
    }
    return {"n_labelled": n, "fields": {"pass": field}}


@pytest.mark.parametrize(
    ("labels", "outcome", "more"),
    [
        pytest.param(bias(0.9, 0.82, 0.95), "passed", None, id="lower end above"),
        pytest.param(bias(0.5, 0.40, 0.60), "failed", None, id="upper end below"),
        pytest.param(bias(0.7, 0.60, 0.79, cautious_high=0.81), "inconclusive", 33, id="bad needs the cautious end"),
        pytest.param(bias(0.8, 0.70, 0.88), "inconclusive", 33, id="between"),
        pytest.param(bias(None, 0.70, 0.88, n=7), "inconclusive", 33, id="refused"),
    ],
)
def test_with_labels_the_corrected_rate_decides_whatever_the_judge_says(
    labels: dict[str, Any], outcome: str, more: int | None
) -> None:
    gated = decided(rows_with(100, 100), GateRules(floors={"pass": 0.8}), bias=labels)  # the judge passes everything
    rule = named(gated, "floor:pass")
    assert (rule.outcome, rule.more_labels) == (outcome, more)
    assert gated.corrected is (labels["fields"]["pass"]["corrected"] is not None)


def test_the_embedded_model_decides_nothing_and_never_ships() -> None:
    rules = GateRules(floors={"pass": 0.8, "rule_correct": 0.8}, required_labels=5)
    gated = decided(rows_with(100, 100), rules, embedded=True)
    assert named(gated, "floor:pass").outcome == named(gated, "required_labels").outcome == "skipped"
    assert named(gated, "floor:rule_correct").outcome == "passed"
    assert (gated.decision, gated.exit_code) == ("not_enough_evidence", 3)
    leaking = [*rows_with(100, 100), row(200, leak=True, leak_checked=True)]
    assert decided(leaking, rules, embedded=True).exit_code == 1
    assert decided(rows_with(10, 100), rules, embedded=True).exit_code == 1


def test_required_labels_are_counted() -> None:
    rules = GateRules(required_labels=50)
    gated = decided(rows_with(9, 9), rules, bias=bias(0.9, 0.8, 1.0, n=40))
    assert (gated.exit_code, gated.more_labels) == (3, 10)
    assert decided(rows_with(9, 9), rules, bias=bias(0.9, 0.8, 1.0, n=50)).exit_code == 0


# --- against a baseline ----------------------------------------------------------------------------------------------


def against(before: Sequence[bool], after: Sequence[bool], rules: GateRules) -> Gated:
    a = [row(n, rule_correct=value) for n, value in enumerate(before)]
    b = [row(n, rule_correct=value) for n, value in enumerate(after)]
    sides = [Side(name, rows, {}, summary_of(rows, "none")) for name, rows in (("a", a), ("b", b))]
    tree = compare_runs(sides[0], sides[1], common=False, declared=(), seed=0)
    return decide(b, summary_of(b, "none"), rules, embedded=False, comparison=tree)


def compared(a: Sequence[CaseRow], b: Sequence[CaseRow]) -> dict[str, Any]:
    sides = [Side(name, rows, {}, summary_of(rows)) for name, rows in (("a", a), ("b", b))]
    return compare_runs(sides[0], sides[1], common=False, declared=(), seed=0)


def regressed(n: int, points: int) -> tuple[list[bool], list[bool]]:
    """A baseline of 80 %, and as many points fewer; a few cases change both ways."""
    before = [i % 5 != 0 for i in range(n)]
    after = list(before)
    right = [i for i in range(n) if before[i]]
    for i in right[: n * points // 100]:
        after[i] = False
    return before, after


RULES = GateRules(allowed_regression={"rule_correct": 0.03})


def test_a_regression_of_ten_points_is_held_in_400_cases_and_open_in_20() -> None:
    held = against(*regressed(400, 10), RULES)
    assert (held.decision, held.exit_code) == ("hold", 1)
    open_ = against(*regressed(20, 10), RULES)
    assert (open_.decision, open_.exit_code) == ("not_enough_evidence", 3)
    assert open_.more_cases is not None
    assert 20 < open_.more_cases < 1000
    assert f"{open_.more_cases} more cases" in "\n".join(gate_lines(open_, "en"))


def test_identical_runs_pass_and_are_not_called_better() -> None:
    before, _ = regressed(400, 0)
    gated = against(before, before, RULES)
    assert gated.decision == "ship"
    assert named(gated, "regression:rule_correct").value == 0
    assert (
        against(before, before, GateRules(allowed_regression={"rule_correct": 0.0})).exit_code == 3
    )  # no proof of none


def test_without_a_baseline_a_regression_rule_is_skipped_and_said() -> None:
    gated = decided(rows_with(9, 9), RULES)
    assert named(gated, "regression:rule_correct").outcome == "skipped"
    assert gated.exit_code == 0
    assert any("no baseline" in line for line in gate_lines(gated, "en"))


def test_a_judge_that_has_moved_decides_nothing_but_rules_and_red_lines_still_do() -> None:
    rules = GateRules(floors={"pass": 0.9, "rule_correct": 0.9}, allowed_regression={"pass": 0.05})
    worse = rows_with(40, 100)
    moved = JudgeMoved("the judge changed: m -> n", is_bridged=False)
    comparison = compared(rows_with(90, 100), worse)
    gated = decided(worse, rules, comparison=comparison, moved=moved)
    assert named(gated, "judge_unmoved").outcome == "inconclusive"
    assert named(gated, "floor:pass").outcome == "inconclusive"
    assert named(gated, "regression:pass").outcome == "inconclusive"
    assert "the judge has moved" in named(gated, "floor:pass").reason
    assert named(gated, "floor:rule_correct").outcome == "failed"
    assert (gated.decision, gated.exit_code) == ("hold", 1)
    judge_alone = GateRules(floors={"pass": 0.9}, allowed_regression={"pass": 0.05})
    gated = decided(worse, judge_alone, comparison=comparison, moved=moved)
    assert (gated.decision, gated.exit_code) == ("not_enough_evidence", 3)


def test_against_a_baseline_graded_by_the_same_judge_a_regression_is_one() -> None:
    worse, rules = rows_with(40, 100), GateRules(allowed_regression={"pass": 0.05})
    comparison = compared(rows_with(90, 100), worse)
    gated = decided(worse, rules, comparison=comparison, moved=JudgeMoved("drifted", is_bridged=True))
    assert named(gated, "regression:pass").outcome == "failed"
    same = decided(worse, rules, comparison=compared(worse, worse), moved=JudgeMoved("drifted", is_bridged=True))
    # nothing got worse, and still a night on which the judge moved is one to look at
    assert named(same, "regression:pass").outcome == "passed"
    assert (same.decision, same.exit_code) == ("not_enough_evidence", 3)


def test_identical_systems_are_held_no_more_often_than_the_level_says() -> None:
    draw, n_held, n_pairs = random.Random(4), 0, 400
    for _ in range(n_pairs):
        p = draw.choice([0.7, 0.85, 0.95])
        before, after = ([draw.random() < p for _ in range(80)] for _ in range(2))
        n_held += against(before, after, GateRules(allowed_regression={"rule_correct": 0.0})).decision == "hold"
    found = rate(n_held, n_pairs)
    assert isinstance(found, Estimate)
    assert found.low is not None
    assert found.low <= 0.025  # one side of a 95 % interval; bench/gate.py counts 2,000 pairs


# --- what machines and people are told -------------------------------------------------------------------------------


def hostile() -> Gated:
    reason = 'a <b> & "c" \x1b[31m ]]>\n::error::forged%0A'
    return Gated("hold", 1, tuple(Rule(f"rule,{n}:x", "failed", 1.0, 2.0, reason) for n in range(12)), ("q1",), None)


def test_junit_is_valid_and_holds_no_control_character() -> None:
    rows = [
        row(1, leak=True, outcome="fail", cause="leak", layer="access", evidence="\x00secret ]]> <x>"),
        row(2, outcome="unscored", unscored_reason="unreadable"),
        row(3, outcome="not_judged"),
        row(4, outcome="pass"),
    ]
    text = junit_xml(hostile(), rows, "2026-01-31-run", with_cases=True)
    root = ElementTree.fromstring(text)
    gate, red, cases = root
    assert (gate.get("tests"), gate.get("failures"), red.get("failures")) == ("12", "12", "1")
    assert (cases.get("tests"), cases.get("failures"), cases.get("errors"), cases.get("skipped")) == (
        "4",
        "1",
        "1",
        "1",
    )
    assert red[0].get("classname") == "access"
    assert "\x1b" not in text
    assert len(ElementTree.fromstring(junit_xml(hostile(), rows, "r", with_cases=False))) == 2
    for suite in root:
        counted = [len(suite.findall(f"testcase/{tag}")) for tag in ("failure", "error", "skipped")]
        assert counted == [int(suite.get(name, "-1")) for name in ("failures", "errors", "skipped")]


def test_no_text_can_forge_a_workflow_command_and_no_more_than_nine_are_given() -> None:
    lines = workflow_commands(hostile(), "en")
    assert len(lines) == 10
    assert lines[-1].endswith("and 3 more")
    assert all("\n" not in line and "%0A::error::forged%250A" in line for line in lines[:-1])
    assert all(line.startswith("::error title=rag-judge rule%2C") for line in lines[:-1])
    summary = job_summary(hostile(), "run|x", "en")
    assert "<b>" not in summary.replace("\\<b\\>", "")
    big = Gated("hold", 1, tuple(Rule("r", "failed", None, None, "字" * 100_000) for _ in range(20)), (), None)
    assert len(job_summary(big, "r", "zh").encode()) <= 900_000


def test_the_last_line_is_the_verdict_in_both_languages() -> None:
    gated = decided(rows_with(9, 9), GateRules())
    assert gate_lines(gated, "en")[-1] == "SHIP: all 3 rules passed"
    assert gate_lines(gated, "zh")[-1] == "可以上线:3 条规则全部通过"
    assert set(WORDS["en"]) == set(WORDS["zh"])


# --- the command on the example --------------------------------------------------------------------------------------


def graded(folder: Path, version: str) -> Path:
    cases = folder / "cases.jsonl"
    write_cases(shipped_folder("eval"), cases)
    with running_service(version, shipped_folder("eval") / "kb") as url:
        flags = {"out": str(folder / "runs"), "endpoint": f"{url}/ask", "judge": "none", "name": version}
        world = World({}, lambda: datetime(2026, 1, 31, tzinfo=UTC), time.monotonic)
        return run(RunRequest(load_settings(None, {}, flags, folder=None), cases), world).folder.path


def test_the_examples_leaks_hold_it_and_its_second_version_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = graded(tmp_path, "v1"), graded(tmp_path, "v2")
    config = tmp_path / "rag-judge.toml"
    config.write_text("[gate.floors]\nhit = 0.9\n[gate.allowed_regression]\nhit = 0.02\nwrong_refusal = 0.05\n")
    held = CliRunner().invoke(app, ["gate", str(first), "--config", str(config)])
    assert held.exit_code == 1
    assert held.output.splitlines()[-1].startswith("HOLD: red_lines (7 cases cross a red line: qa-012")
    tree = json.loads((first / "gate.json").read_text(encoding="utf-8"))
    assert (tree["decision"], tree["exit_code"], len(tree["red_lines"])) == ("hold", 1, 7)
    ElementTree.parse(first / "junit.xml")
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    arguments = ["gate", str(second), "--baseline", str(first), "--config", str(config)]
    compared = CliRunner().invoke(app, arguments)
    assert compared.exit_code == 1  # it refuses 14 questions that the first version answered
    assert "::error title=rag-judge regression%3Awrong_refusal::" in compared.output
    assert "passed: floor:hit" in compared.output
    assert "| regression:wrong\\_refusal | failed |" in summary.read_text(encoding="utf-8")
    assert (second / "comparison.json").exists()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[gate.floors]\ntaste = 0.5\n", r"gate\.floors: found 'taste'; there are: pass"),
        ("[gate.floors]\nhit = 50\n", r"gate\.floors\.hit: found 50"),
        ("[gate.allowed_regression]\nx = 0.1\n", r"gate\.allowed_regression: found 'x'"),
        ("[gate]\nflors = 1\n", "unknown setting"),
        ("[gate]\nrequired_labels = -1\n", "required_labels"),
    ],
)
def test_a_rule_that_is_none_is_an_error(tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "c.toml").write_text(text)
    path = graded(tmp_path, "v2")
    result = CliRunner().invoke(app, ["gate", str(path), "--config", str(tmp_path / "c.toml")])
    assert result.exception is not None
    import re

    assert re.search(found, str(result.exception))
