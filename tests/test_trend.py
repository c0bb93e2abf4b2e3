"""Runs over time: what is a point, what cuts a line, where a bridge stands, what is said; the command on real runs."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.cells import cell_len
from typer.testing import CliRunner

from rag_judge import trend_values
from rag_judge.archive import RunFolder
from rag_judge.errors import InputError
from rag_judge.estimates import wilson_ends
from rag_judge.pipeline import RunRequest, World, regrade, run
from rag_judge.pipeline.bias import judge_bias
from rag_judge.pipeline.review import ReviewedRun
from rag_judge.pipeline.trend import trend as read_trend
from rag_judge.records import Estimate, NoEstimate
from rag_judge.report.trend_table import trend_lines
from rag_judge.report.trend_words import (
    CUT_WORDS,
    KIND_WORDS,
    LEFT_OUT_WORDS,
    METRIC_WORDS,
    REASONS_ZH,
    TREND_WORDS,
)
from rag_judge.settings import load_settings
from rag_judge.summary import put
from rag_judge.trend import Trend, changes_between, last_clear_change, strokes, trend_of
from rag_judge.trend_command import trend as command
from rag_judge.trend_marks import CUTS
from rag_judge.trend_values import EMBEDDED, METRICS, NO_ANCHORS, NO_JUDGE, NO_LABELS
from tests import trend_runs
from tests.eval_sets import numbered_files, verdict
from tests.labelled_runs import label_all
from tests.misbehaviour import JudgeRequest
from tests.servers import JudgeServer
from tests.trend_runs import PROMPT, anchors_of, bias_of, judge_with, run_of, summary_of, value_at, write_run

app = typer.Typer()
app.command()(command)
M2 = judge_with(model="m-2", models_reported=["m-2"])
OTHER_SET = {"path": "b.jsonl", "sha256": "1" * 64, "snapshot_sha256": "2" * 64, "n": 96}
JUDGED = {name for name, metric in METRICS.items() if metric.is_judged}
RULES = {"rule_correct", "missed_refusal", "wrong_refusal", "leaks"}
RETRIEVAL = {"hit", "recall", "mrr"}
# Numbers that the hand-written runs have unless labels and anchors are added.
PLAIN = set(METRICS) - {"pass_corrected", "agreement_people", "agreement_anchors"}


def joined(found: Trend, metric: str) -> list[list[str]]:
    return [[point.run_id for point in stroke] for stroke in strokes(found.points, metric)]


def cut(found: Trend) -> set[str]:
    """The metrics with numbers of which the points are not all joined."""
    return {name for name in METRICS if len(joined(found, name)) > 1}


def two(**changes: Any) -> Trend:
    return trend_of([run_of("a", 1), run_of("b", 2, **changes)])


# --- points ----------------------------------------------------------------------------------------------------------


def test_points_stand_by_their_time_whatever_its_zone_and_equal_times_keep_the_archives_order() -> None:
    runs = [
        run_of("late", started_at="2026-03-02T01:00:00+00:00"),
        run_of("same-1", started_at="2026-03-01T12:00:00+00:00"),
        run_of("same-2", started_at="2026-03-01T20:00:00+08:00"),  # the same instant
        run_of("early", started_at="2026-03-01T23:30:00+14:00"),  # 09:30 in UTC
        run_of("no-zone", started_at="2026-03-01T13:00:00"),  # taken as UTC
    ]
    found = trend_of(runs)
    assert [point.run_id for point in found.points] == ["early", "same-1", "same-2", "no-zone", "late"]


@pytest.mark.parametrize("time", [None, "", "yesterday", "2026-13-01T00:00:00+00:00", 7])
def test_a_run_without_a_time_is_left_out_and_told(time: object) -> None:
    found = trend_of([run_of("a"), run_of("b", started_at=time)])
    assert [point.run_id for point in found.points] == ["a"]
    assert [(left.run_id, left.reason) for left in found.left_out] == [("b", "no_time")]
    assert "without a time in the manifest: b" in "\n".join(trend_lines(found, "en"))


def test_what_is_no_point_is_left_out_with_its_reason() -> None:
    runs = [
        run_of("point"),
        run_of("anchors", purpose="anchors"),
        run_of("pairs", kind="pairwise"),
        run_of("open", status="incomplete"),
        run_of("audit", purpose="audit"),
        run_of("again", parent="point"),
    ]
    found = trend_of(runs)
    assert [point.run_id for point in found.points] == ["point"]
    assert {left.run_id: left.reason for left in found.left_out} == {
        "anchors": "anchors",
        "pairs": "pairwise",
        "open": "unfinished",
        "audit": "other_purpose",
        "again": "regraded",
    }
    named = trend_of([runs[0], runs[5]], is_named=True)
    assert [point.run_id for point in named.points] == ["point", "again"]
    assert [p.run_id for p in trend_of([run_of("again", parent="gone")]).points] == ["again"]


def test_name_and_last_choose_and_count_what_they_leave_out() -> None:
    runs = [run_of(f"r{day}", day, name="nightly" if day % 2 else "other") for day in range(1, 8)]
    found = trend_of(runs, name="nightly", last=2)
    assert [point.run_id for point in found.points] == ["r5", "r7"]
    reasons = [left.reason for left in found.left_out]
    assert (reasons.count("other_name"), reasons.count("older")) == (3, 2)


# --- numbers ---------------------------------------------------------------------------------------------------------


def test_each_number_comes_from_its_place_with_its_interval() -> None:
    summary = summary_of(60, 80)
    for n, (tree, name) in enumerate(
        [
            ("end_to_end", "correct"),
            ("judge", "pass"),
            ("judge", "correctness"),
            ("judge", "fabrication"),
            ("rules", "correct"),
            ("retrieval", "hit"),
            ("retrieval", "recall"),
            ("retrieval", "mrr"),
            ("judge", "flip_rate"),
        ]
    ):
        put(summary[tree], name, Estimate(n / 100, 0.0, 0.5, 0.95, 80, "wilson"))
    summary["rules"]["leaks"] = ["q1", "q2"]
    (point,) = trend_of([run_of("a", summary=summary, bias=bias_of(9, 12), anchors=anchors_of("same"))]).points
    values = {name: value_at(value.estimate) for name, value in point.values.items()}
    assert values == pytest.approx(
        {
            "end_to_end": 0.0,
            "pass": 0.01,
            "correctness": 0.02,
            "fabrication": 0.03,
            "rule_correct": 0.04,
            "hit": 0.05,
            "recall": 0.06,
            "mrr": 0.07,
            "flip_rate": 0.08,
            "pass_corrected": 0.75,
            "agreement_people": 0.75,
            "agreement_anchors": 28 / 30,
            "missed_refusal": 0.25,  # 2 of the 8 that should have been refused
            "wrong_refusal": 0.05,  # 3 of the 60 that should have been answered
            "leaks": 2.0,
            "cost": 0.5,
        }
    )
    missed = point.values["missed_refusal"].estimate
    assert isinstance(missed, Estimate)
    assert (missed.low, missed.high, missed.n) == (*wilson_ends(0.25, 8), 8)


@pytest.mark.parametrize(
    ("metric", "changes", "reason"),
    [
        pytest.param("pass", trend_runs.NO_JUDGE, NO_JUDGE, id="no judge"),
        pytest.param("cost", trend_runs.NO_JUDGE, NO_JUDGE, id="no judge, no cost"),
        pytest.param(
            "cost", {"cost": {"usd": None, "calls": 3}}, "no price of the judge's model is set", id="no price"
        ),
        pytest.param("pass_corrected", {}, NO_LABELS, id="no labels"),
        pytest.param("agreement_anchors", {}, NO_ANCHORS, id="no anchors"),
        pytest.param("pass", judge_with(embedded=True), EMBEDDED, id="embedded"),
        pytest.param("end_to_end", judge_with(embedded=True), EMBEDDED, id="embedded judge ends cases, too"),
        pytest.param(
            "pass",
            {"summary": summary_of(judge={"pass": None, "pass_reason": "because"})},
            "because",
            id="its own reason",
        ),
        pytest.param("pass", {"summary": {}}, "the run's files do not hold it", id="not in the summary"),
        pytest.param(
            "pass",
            {"summary": summary_of(judge={"pass": {"value": float("nan"), "n": 1}})},
            "the run's files do not hold it",
            id="not a number",
        ),
        pytest.param(
            "leaks",
            {"summary": {**summary_of(), "rules": {"leaks": [], "n_leak_checked": 0}}},
            "no case could show a leak",
            id="no case could leak",
        ),
        pytest.param(
            "pass",
            {"summary": summary_of(judge={"part": {"n": 3, "of": 9}})},
            "a limit was reached, and what the judge saw is no random part",
            id="stopped at a limit",
        ),
    ],
)
def test_a_missing_number_is_a_gap_with_its_reason_and_never_zero(
    metric: str, changes: dict[str, Any], reason: str
) -> None:
    found = trend_of([run_of("a", 1), run_of("b", 2, **changes), run_of("c", 3)])
    assert found.points[1].values[metric].estimate == NoEstimate(reason)
    assert ["a", "b"] not in joined(found, metric)
    assert all("b" not in stroke for stroke in joined(found, metric))


def test_a_gap_parts_a_line_and_is_not_a_change_of_judge() -> None:
    found = trend_of([run_of("a", 1), run_of("b", 2, **trend_runs.NO_JUDGE), run_of("c", 3), run_of("d", 4)])
    assert joined(found, "pass") == [["a"], ["c", "d"]]
    assert {point.values["pass"].line for point in found.points} == {0}
    assert joined(found, "hit") == [["a", "b", "c", "d"]]
    # Without a judge a case ends otherwise: by rules alone.
    assert joined(found, "end_to_end") == [["a"], ["b"], ["c", "d"]]
    assert [[mark.kind for mark in point.marks] for point in found.points] == [[], ["judged"], ["judged"], []]


def test_of_repeated_answers_the_shares_of_refusals_have_no_interval() -> None:
    (point,) = trend_of([run_of("a", summary={**summary_of(), "repeats": {"n_questions": 40, "n_answers": 80}})]).points
    found = point.values["missed_refusal"].estimate
    assert isinstance(found, Estimate)
    assert (found.value, found.low, found.high) == (0.25, None, None)


# --- what cuts a line ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "kind", "expected"),
    [
        pytest.param({}, None, set(), id="nothing"),
        pytest.param({"system": {"model": "s-2"}}, "system", set(), id="system"),
        pytest.param({"system": {"model": "s-1", "prompt": "2"}}, "system", set(), id="new factor of the system"),
        pytest.param({"corpus": {"sha256": "c"}}, "system", set(), id="knowledge base"),
        pytest.param({"package_version": "2"}, "program", set(), id="our own program"),
        pytest.param({"k": 10}, "k", RETRIEVAL, id="k"),
        pytest.param({"match": "document"}, "k", RETRIEVAL, id="match"),
        pytest.param(judge_with(model="m-2"), "judge", JUDGED | {"end_to_end"}, id="model"),
        pytest.param(judge_with(models_reported=["m-1-0301"]), "judge", JUDGED | {"end_to_end"}, id="model reported"),
        pytest.param(
            judge_with(parameters={"sent": [{"temperature": 0.7}]}), "judge", JUDGED | {"end_to_end"}, id="temperature"
        ),
        pytest.param(
            judge_with(parameters={"asked": {"temperature": 0.0}, "sent": [{"max_tokens": 9}]}),
            "judge",
            JUDGED | {"end_to_end"},
            id="temperature not sent",
        ),
        pytest.param(judge_with(fallbacks=["seed not sent"]), "judge", JUDGED | {"end_to_end"}, id="fallbacks"),
        pytest.param({"repeats": 1}, "judge", JUDGED | {"end_to_end"}, id="repeats"),
        pytest.param(
            {"prompts": [{**PROMPT, "version": "b" * 64}]}, "prompt", JUDGED | {"end_to_end"}, id="prompt version"
        ),
        pytest.param({"eval_set": OTHER_SET}, "eval_set", set(METRICS) - {"agreement_anchors"}, id="eval set"),
        pytest.param(
            {"eval_set": {"sha256": "0", "snapshot_sha256": "f" * 64, "n": 80}},
            None,
            set(),
            id="same cases, other file",
        ),
        pytest.param(
            {"eval_set": {"sha256": "0", "n": 80}}, "eval_set", set(METRICS) - {"agreement_anchors"}, id="no snapshot"
        ),
        pytest.param(judge_with(models_reported=[]), None, set(), id="a server that names no model"),
        pytest.param(judge_with(parameters={"asked": {}, "sent": []}), None, set(), id="a run that sent nothing"),
    ],
)
def test_a_change_is_marked_and_cuts_the_lines_that_it_bears_on_and_no_other(
    changes: dict[str, Any], kind: str | None, expected: set[str]
) -> None:
    files: dict[str, Any] = {"bias": bias_of(9, 12), "anchors": anchors_of("same")}
    found = trend_of([run_of("a", 1, **files), run_of("b", 2, **files, **changes)])
    assert cut(found) == expected
    assert {mark.kind for mark in found.points[1].marks} == ({kind} if kind else set())
    for mark in found.points[1].marks:
        assert set(mark.breaks) == expected


@pytest.mark.parametrize("verdict_of_night", ["changed", "drifting"])
def test_a_judge_that_moved_on_its_anchors_cuts_what_it_says(verdict_of_night: str) -> None:
    runs = [
        run_of("a", 1, anchors=anchors_of("same")),
        run_of("b", 2, anchors=anchors_of(verdict_of_night)),
        run_of("c", 3, anchors=anchors_of("same", "b-anchors")),
    ]
    found = trend_of(runs)
    assert joined(found, "pass") == [["a"], ["b", "c"]]
    assert joined(found, "agreement_anchors") == [["a"], ["b"], ["c"]]  # c is held against another run
    assert joined(found, "hit") == [["a", "b", "c"]]
    assert [mark.kind for mark in found.points[1].marks] == ["anchors"]
    assert [mark.kind for mark in found.points[2].marks] == ["reference"]


@pytest.mark.parametrize("verdict_of_night", ["same", "first", "unknown", None])
def test_other_verdicts_of_the_anchors_cut_nothing(verdict_of_night: str | None) -> None:
    anchors = None if verdict_of_night is None else anchors_of(verdict_of_night)
    found = trend_of([run_of("a", 1, anchors=anchors_of("same")), run_of("b", 2, anchors=anchors)])
    assert joined(found, "pass") == [["a", "b"]]


def test_one_change_told_every_night_is_one_cut_and_a_drift_told_again_is_another() -> None:
    def nights(verdict_of_night: str) -> Trend:
        told = anchors_of(verdict_of_night, changed=[{"factor": "judge.model", "before": "m-0", "now": "m-1"}])
        return trend_of([run_of("a", 1), run_of("b", 2, anchors=told), run_of("c", 3, anchors=told)])

    assert joined(nights("changed"), "pass") == [["a"], ["b", "c"]]
    assert joined(nights("drifting"), "pass") == [["a"], ["b"], ["c"]]


def test_a_judge_that_comes_back_begins_a_new_line() -> None:
    found = trend_of([run_of("a", 1), run_of("b", 2, **M2), run_of("c", 3)])
    assert joined(found, "pass") == [["a"], ["b"], ["c"]]
    assert joined(found, "rule_correct") == [["a", "b", "c"]]


# --- bridges ---------------------------------------------------------------------------------------------------------


def test_a_bridge_begins_the_newer_judges_line_in_the_place_of_its_parent() -> None:
    runs = [
        run_of("a", 1),
        run_of("b", 2),
        run_of("c", 5, **M2, anchors=anchors_of("changed")),
        run_of("d", 6, **M2),
        run_of("bridge", 7, purpose="bridge", parent="b", n_right=40, **M2),
    ]
    found = trend_of(runs)
    assert [point.run_id for point in found.points] == ["a", "b", "bridge", "c", "d"]
    assert (found.points[2].at, found.points[2].made_at) == (
        runs[1].manifest["started_at"],
        runs[4].manifest["started_at"],
    )
    assert joined(found, "pass") == [["a", "b"], ["bridge", "c", "d"]]
    assert joined(found, "end_to_end") == [["a", "b"], ["bridge", "c", "d"]]
    for metric in RULES | RETRIEVAL | {"cost"}:  # no point of its own in time
        assert joined(found, metric) == [["a", "b", "c", "d"]]
    assert found.points[2].marks == ()


def test_bridges_of_several_runs_make_one_line_over_the_older_judges() -> None:
    runs = [run_of(name, day) for day, name in enumerate("abc", 1)]
    bridges = [run_of(f"{name}2", 10, purpose="bridge", parent=name, **M2) for name in "ca"]
    found = trend_of([*runs, *bridges])
    assert joined(found, "pass") == [["a", "b", "c"], ["a2", "c2"]]
    with_next = trend_of([*runs, *bridges, run_of("d", 11, **M2)])
    assert ["a2", "c2", "d"] in joined(with_next, "pass")


def test_a_bridge_over_a_drift_belongs_to_the_judge_of_the_night_before_it() -> None:
    runs = [
        run_of("a", 1),
        run_of("b", 3, anchors=anchors_of("drifting")),
        run_of("bridge", 4, purpose="bridge", parent="a"),
        run_of("c", 5),
    ]
    assert joined(trend_of(runs), "pass") == [["a"], ["bridge", "b", "c"]]


def test_a_bridge_is_not_joined_to_other_questions() -> None:
    runs = [
        run_of("a", 1),
        run_of("bridge", 2, purpose="bridge", parent="a", **M2),
        run_of("b", 3, eval_set=OTHER_SET, **M2),
    ]
    assert joined(trend_of(runs), "pass") == [["a"], ["bridge"], ["b"]]


def test_a_bridge_of_a_bridge_stands_at_the_run_of_the_answers() -> None:
    m3 = judge_with(model="m-3")
    runs = [
        run_of("a", 1),
        run_of("b1", 5, purpose="bridge", parent="a", **M2),
        run_of("b2", 6, purpose="bridge", parent="b1", **m3),
        run_of("z", 7),
    ]
    assert [point.run_id for point in trend_of(runs).points] == ["a", "b1", "b2", "z"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"parent": "gone", **M2}, "bridge_without_parent", id="parent not here"),
        pytest.param({"parent": None, **M2}, "bridge_without_parent", id="no parent"),
        pytest.param({"parent": "bridge", **M2}, "bridge_without_parent", id="its own parent"),
        pytest.param({"parent": "a", **trend_runs.NO_JUDGE}, "bridge_without_judge", id="no judge"),
        pytest.param({"parent": "a", **judge_with(embedded=True)}, "bridge_without_judge", id="embedded"),
        pytest.param({"parent": "a"}, "bridge_of_same_judge", id="the very judge"),
    ],
)
def test_a_bridge_without_a_place_or_a_newer_judge_is_left_out(changes: dict[str, Any], reason: str) -> None:
    found = trend_of([run_of("a", 1), run_of("bridge", 2, purpose="bridge", **changes)])
    assert [point.run_id for point in found.points] == ["a"]
    assert [(left.run_id, left.reason) for left in found.left_out] == [("bridge", reason)]


def test_a_bridge_goes_with_the_run_that_it_stands_for() -> None:
    runs = [run_of("a", 1), run_of("b", 2), run_of("bridge", 3, purpose="bridge", parent="a", name="x", **M2)]
    assert [(left.run_id, left.reason) for left in trend_of(runs, last=1).left_out][-1] == ("bridge", "older")
    assert [point.run_id for point in trend_of(runs, name="nightly").points] == ["a", "bridge", "b"]
    named = trend_of([runs[1], runs[2]], is_named=True, elsewhere=[runs[0].manifest])
    assert [point.run_id for point in named.points] == ["bridge", "b"]


# --- what is said ----------------------------------------------------------------------------------------------------


def test_a_change_is_clear_only_between_joined_neighbours_whose_intervals_are_apart() -> None:
    far = [run_of("a", 1, n_right=20), run_of("b", 2, n_right=70), run_of("c", 3, n_right=71)]
    found = trend_of(far)
    clear = last_clear_change(found.points, "hit")
    assert clear is not None
    assert (clear.before.run_id, clear.after.run_id) == ("a", "b")
    near = trend_of([run_of("a", 1, n_right=60), run_of("b", 2, n_right=64)])
    assert last_clear_change(near.points, "hit") is None
    parted = trend_of([far[0], run_of("b", 2, n_right=70, k=10)])
    assert last_clear_change(parted.points, "hit") is None
    assert last_clear_change(parted.points, "rule_correct") is not None
    assert last_clear_change(found.points, "leaks") is None


def test_a_clear_change_is_said_without_a_cause() -> None:
    found = trend_of([run_of("a", 1, n_right=20), run_of("b", 2, n_right=70, system={"model": "s-2"})])
    text = " ".join(" ".join(trend_lines(found, "en")).split())
    assert "Hit@k: last clear change from 25 17-35 (a) to 88 78-93 (b)" in text
    assert "Changed in between: (1)." in text
    assert "need not be the cause" in text
    assert "because" not in text
    assert "better" not in text
    clear = last_clear_change(found.points, "hit")
    assert clear is not None
    assert [mark.factor for mark in changes_between(found.points, clear)] == ["system.model"]


def test_gaps_embedded_runs_and_bridges_are_counted_in_words() -> None:
    runs = [
        run_of("a", 1),
        run_of("b", 2, **trend_runs.NO_JUDGE),
        run_of("c", 3, **judge_with(embedded=True)),
        run_of("bridge", 4, purpose="bridge", parent="a", **M2),
    ]
    text = " ".join(" ".join(trend_lines(trend_of(runs), "en", 100)).split())
    assert "no number in 2 of 4 runs" in text
    assert "no judge was asked of this run (1)" in text
    assert "judged by the embedded demo model" in text
    assert "bridge is a bridge: today's answer of judge m-2 to what a answered" in text


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [80, 60, 200])
def test_every_line_fits_the_terminal_and_no_cell_is_lost(lang: str, width: int) -> None:
    files: dict[str, Any] = {"bias": bias_of(12, 12), "anchors": anchors_of("same", n_right=30)}
    runs = [run_of(f"2026-03-{day:02}-夜间评测-{day}", day, n_right=80, k=day, **files) for day in range(1, 12)]
    lines = trend_lines(trend_of(runs), lang, width)
    assert max(map(cell_len, lines)) <= width
    assert sum(line.count("100 95-100") for line in lines) == 9 * len(runs)  # the nine rates of the summary


def test_words_exist_in_both_languages_for_all_that_can_be_said() -> None:
    for words in (METRIC_WORDS, KIND_WORDS, CUT_WORDS, LEFT_OUT_WORDS, TREND_WORDS):
        assert set(words["en"]) == set(words["zh"])
    assert set(METRIC_WORDS["en"]) == set(METRICS) == set(CUTS)
    assert set(KIND_WORDS["en"]) == set(CUT_WORDS["en"]) >= {kind for kinds in CUTS.values() for kind in kinds}
    reasons = [value for name, value in vars(trend_values).items() if name.isupper() and isinstance(value, str)]
    assert set(reasons) <= set(REASONS_ZH)


# --- the archive and the command -------------------------------------------------------------------------------------


def invoked(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_what_cannot_be_read_is_left_out_and_hides_no_other(tmp_path: Path) -> None:
    for day, name in enumerate(("good", "cut", "newer", "odd", "bare", "half"), 1):
        write_run(tmp_path, run_of(name, day, bias=bias_of(9, 12)))
    (tmp_path / "cut" / "manifest.json").write_text("{", encoding="utf-8")
    for name, change in (("newer", {"format_version": 9}), ("odd", {"judge": "m"})):
        path = tmp_path / name / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change), encoding="utf-8")
    (tmp_path / "bare" / "summary.json").unlink()
    (tmp_path / "half" / "bias.json").write_text("[]", encoding="utf-8")
    found = read_trend(tmp_path)
    assert [point.run_id for point in found.points] == ["good", "half"]
    assert {left.run_id for left in found.left_out} == {"cut", "newer", "odd", "bare"}
    assert {left.reason for left in found.left_out} == {"broken"}
    assert found.unread == (("half", "bias.json"),)
    assert found.points[1].values["pass_corrected"].estimate == NoEstimate("the file that holds it cannot be read")


@pytest.mark.parametrize(
    "change",
    [
        {"judges": [1]},
        {"prompts": "x"},
        {"system": []},
        {"eval_set": 3},
        {"parent": ["a"]},
        {"name": {}},
        {"judge": {"models_reported": 3}},
        {"judge": {"parameters": []}},
        {"judge": {"parameters": {"sent": [1]}}},
        {"cost": "1"},
    ],
)
def test_no_oddity_of_a_manifest_is_a_fault_of_ours(tmp_path: Path, change: dict[str, Any]) -> None:
    write_run(tmp_path, run_of("a", 1))
    odd = run_of("odd", 2)
    write_run(tmp_path, replace(odd, manifest={**odd.manifest, **change}))
    found = read_trend(tmp_path)
    assert [point.run_id for point in found.points] == ["a"]
    assert [left.reason for left in found.left_out] == ["broken"]
    assert invoked("--out", tmp_path, "--json").exit_code == 0


def test_named_runs_are_shown_alone_and_a_bridge_still_finds_its_place(tmp_path: Path) -> None:
    write_run(tmp_path, run_of("a", 1))
    write_run(tmp_path, run_of("b", 2, **M2))
    bridge = write_run(tmp_path, run_of("bridge", 3, purpose="bridge", parent="a", **M2))
    found = read_trend(tmp_path, [str(bridge), "b", "b"])
    assert [point.run_id for point in found.points] == ["bridge", "b"]
    with pytest.raises(InputError, match="no run 'c'"):
        read_trend(tmp_path, ["c"])
    with pytest.raises(InputError, match="do one of these"):
        read_trend(tmp_path, ["b"], last=3)
    with pytest.raises(InputError, match="--last: found 0"):
        read_trend(tmp_path, last=0)


def test_an_empty_archive_is_said_and_is_no_error(tmp_path: Path) -> None:
    ended = invoked("--out", tmp_path / "none", "--png", tmp_path / "t.png", "--csv", tmp_path / "t.csv")
    assert (ended.exit_code, ended.stdout.splitlines()[0]) == (0, "no run to show")
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "t.csv").read_text(encoding="utf-8").startswith("place,run_id,")


def test_a_file_that_cannot_be_written_is_the_users_to_mend(tmp_path: Path) -> None:
    write_run(tmp_path / "runs", run_of("a"))
    ended = invoked("--out", tmp_path / "runs", "--csv", tmp_path / "no" / "t.csv")
    assert isinstance(ended.exception, InputError)
    assert "cannot be written" in str(ended.exception)


HOSTILE = "=1+1</text><script>alert(1)</script>[bold]$x^2$\x1b[31m\u202e\ud800\n|夜"


def test_hostile_texts_reach_neither_terminal_nor_csv(tmp_path: Path) -> None:
    write_run(tmp_path, run_of("a", 1, name=HOSTILE, system={"model": "x", HOSTILE: "y"}))
    hostile = judge_with(model=HOSTILE)
    write_run(tmp_path, run_of("b", 2, name=HOSTILE, system={"model": HOSTILE}, **hostile))
    write_run(tmp_path, run_of("c", 3, purpose="bridge", parent="a", **hostile))
    ended = invoked("--out", tmp_path, "--csv", tmp_path / "t.csv")
    assert ended.exit_code == 0, ended.exception
    printed = invoked("--out", tmp_path, "--json")
    for text in (ended.stdout, printed.stdout, (tmp_path / "t.csv").read_text(encoding="utf-8")):
        assert not set(text) & {"\x1b", "\u202e", "\ud800"}
    assert "[bold]" in ended.stdout
    assert json.loads(printed.stdout)["points"][0]["name"] == HOSTILE
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * len(METRICS)
    assert {row["name"][:2] for row in rows if row["run_id"] != "c"} == {"'="}
    assert all("\n" not in cell for row in rows for cell in row.values())


def test_the_csv_has_a_row_a_run_and_metric_with_empty_cells_for_what_is_missing(tmp_path: Path) -> None:
    write_run(tmp_path / "runs", run_of("a", 1, n_right=20))
    invoked("--out", tmp_path / "runs", "--csv", tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["metric"]: row for row in csv.DictReader(file)}
    assert (rows["hit"]["value"], rows["hit"]["n"], rows["hit"]["line"]) == ("0.25", "80", "0")
    assert (rows["pass_corrected"]["value"], rows["pass_corrected"]["reason"]) == ("", NO_LABELS)


def graded(
    folder: Path, name: str, day: int, reply: Callable[[JudgeRequest], str] | None, model: str = "m", **system: str
) -> RunFolder:
    """A real run of twelve cases, by a judge on loopback or by rules alone."""
    cases, answers = numbered_files(folder, 12)
    flags: dict[str, Any] = {"out": str(folder / "runs"), "name": name, "cache": False, "system": system}
    world = World({}, lambda: datetime(2026, 1, day, tzinfo=UTC), time.monotonic)
    if reply is None:
        settings = load_settings(None, {}, {**flags, "judge": "none"}, folder=None)
        return run(RunRequest(settings, cases, answers), world).folder
    with JudgeServer(reply) as server:
        settings = load_settings(None, {}, {**flags, "base_url": server.base_url, "model": model}, folder=None)
        return run(RunRequest(settings, cases, answers), world).folder


def test_real_runs_become_a_trend_with_their_labels_and_their_bridge(tmp_path: Path) -> None:
    first = graded(tmp_path, "nightly", 1, lambda _: verdict(grounded=False), version="1")
    graded(tmp_path, "nightly", 2, lambda _: verdict(), version="2")
    graded(tmp_path, "nightly", 3, None, version="2")
    graded(tmp_path, "nightly", 4, lambda _: verdict(), model="newer", version="2")
    bridge = graded(tmp_path, "bridge", 4, lambda _: verdict(), model="newer", version="2")
    manifest = bridge.manifest() | {"purpose": "bridge", "parent": "2026-01-02-nightly"}
    bridge.write_json("manifest.json", manifest)
    regrade(first, World({}, lambda: datetime(2026, 1, 9, tzinfo=UTC), time.monotonic), {})
    reviewed = ReviewedRun(first.path)
    label_all(reviewed, tmp_path, [False] * 11 + [True])
    judge_bias(reviewed)

    ended = invoked("--out", tmp_path / "runs", "--json")
    assert ended.exit_code == 0, ended.exception
    tree = json.loads(ended.stdout)
    ids = [f"2026-01-{day:02}-nightly" for day in (1, 2, 3, 4)]
    assert [p["run_id"] for p in tree["points"]] == [ids[0], ids[1], bridge.run_id, ids[2], ids[3]]
    assert tree["strokes"]["pass"] == [ids[:2], [bridge.run_id, ids[3]]]
    assert tree["strokes"]["hit"] == [ids]
    assert tree["points"][0]["values"]["agreement_people"]["value"] == pytest.approx(11 / 12)
    assert [left["reason"] for left in tree["left_out"]] == ["regraded"]
    assert {c["metric"] for c in tree["clear_changes"]} >= {"pass", "correctness", "fabrication"}
    assert [mark["factor"] for mark in tree["points"][1]["marks"]] == ["system.version"]
    assert tree["points"][3]["values"]["pass"] == {"value": None, "reason": NO_JUDGE, "line": 0}
    shown = invoked("--out", tmp_path / "runs", "--lang", "zh", "--quiet", "--last", "2")
    assert shown.stdout.splitlines()[0] == "2 次运行,2026-01-03 至 2026-01-04"


def test_help_has_an_example_and_loads_no_drawing_library() -> None:
    code = (
        "import sys, typer\nfrom rag_judge.trend_command import trend\napp = typer.Typer(rich_markup_mode=None)\n"
        "app.command()(trend)\nsys.argv = ['trend', '--help']\n"
        "try: app()\nexcept SystemExit: pass\n"
        "print([n for n in ('matplotlib', 'numpy', 'pandas', 'rich') if n in sys.modules], file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Example: rag-judge trend" in ended.stdout
    assert ended.stderr.strip() == "[]"
