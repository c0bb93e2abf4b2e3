"""What is joined to a run's page: decision, comparison, the state of its judge, labels; and the command for it."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from rag_judge.archive import RunFolder
from rag_judge.bias import Reviewed, bias_tree
from rag_judge.comparison import Side, compare_runs
from rag_judge.errors import InputError
from rag_judge.gate import GateRules, JudgeMoved, decide
from rag_judge.gate_reasons import reason_text
from rag_judge.gold import Label
from rag_judge.pipeline import RunRequest, run
from rag_judge.pipeline.report import write_joined_report
from rag_judge.pipeline.review import ReviewedRun
from rag_judge.records import CaseRow
from rag_judge.report.html import render_report
from rag_judge.report.joined import Joined, signed
from rag_judge.report.joined_comparison import N_CHANGED_SHOWN
from rag_judge.report.joined_words import JOINED_WORDS
from rag_judge.report_command import report
from rag_judge.settings import Settings
from rag_judge.summary import summarise
from tests import test_pairwise as pairs
from tests.eval_sets import numbered_files, verdict
from tests.labelled_runs import label_all
from tests.report_pages import Page, both_languages, graded, manifest
from tests.servers import JudgeServer

# --- records by hand -------------------------------------------------------------------------------------------------


def row(number: int, *, right: bool, **columns: Any) -> CaseRow:
    given = {"drawn": True, "did_abstain": False, "type": "fact", "question_sha256": f"h{number}", **columns}
    ended: dict[str, Any] = {"outcome": "pass" if right else "fail", "cause": None if right else "invented"}
    ended |= {"layer": None if right else "generation"}
    ended |= dict.fromkeys(("recall", "mrr", "ndcg", "precision"), float(right))
    return CaseRow(id=f"q{number}", **{**ended, "judge_pass": right, "grounded": right, "hit": right, **given})


BEFORE = [row(n, right=n < 20) for n in range(40)]
AFTER = [row(n, right=n < 30) for n in range(40)]
SYSTEM: Mapping[str, Any] = {"prompt_version": "p1", "k": 5}


def comparison(**changes: Any) -> dict[str, Any]:
    """The tree of BEFORE against AFTER, with what differs from it."""
    return {**_compared(), **LATENCY_AND_COST, **changes}


@cache
def _compared() -> Mapping[str, Any]:
    sides = [
        Side(name, rows, {"system": {**SYSTEM, "prompt_version": name}}, summarise(rows, k=5, seed=0, mode="passfail"))
        for name, rows in (("2026-02-28-old", BEFORE), ("2026-03-01-baseline", AFTER))
    ]
    return compare_runs(*sides, common=False, declared=("pass",), seed=0)


LATENCY_AND_COST: Mapping[str, Any] = {
    "latency_s": {"a": None, "b": {"median": 1.25, "n": 40}},
    "cost": {"a": None, "b": 0.0123},
}


def gate_tree(rows: Sequence[CaseRow] = AFTER, rules: GateRules | None = None, **more: Any) -> dict[str, Any]:
    wanted = GateRules({"pass": 0.7, "hit": 0.5}) if rules is None else rules
    given = {"embedded": False, **more}
    summary = _summary() if rows is AFTER else summarise(rows, k=5, seed=0, mode="passfail")
    return decide(rows, summary, wanted, **given).tree()


def estimate(
    value: float, low: float | None, high: float | None, n: int = 40, method: str = "wilson"
) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "level": 0.95, "n": n, "method": method, "target": "this_set"}


def anchors(**changes: Any) -> dict[str, Any]:
    return {
        "verdict": "drifting",
        "reference": "2026-02-01-anchors",
        "anchors_run": "2026-03-01-anchors",
        "n": 40,
        "agreement": estimate(0.85, 0.709, 0.929),
        "net": estimate(-0.15, -0.27, -0.02, method="bonett-price"),
        "p_value": 0.031,
        "p_holm": None,
        "flip_rate": 0.05,
        "excess_disagreement": 0.1,
        "smallest_detectable": 0.22,
        "tolerance": 0.05,
        "changed": [{"factor": "judge.model", "before": "m-1", "now": "m-2"}],
        "sensitivity_change": None,
        "sensitivity_change_reason": "no anchor is labelled",
        "judges": [],
        **changes,
    }


def nightly(**changes: Any) -> dict[str, Any]:
    steps = [{"name": "notify", "outcome": "failed", "detail": "HTTP 500"}]
    return {"comparable": False, "baseline": "2026-02-28-old", "steps": steps, "exit_code": 3, **changes}


def bias(passed: Sequence[bool], n_judged_right: int = 30) -> dict[str, Any]:
    """The labels of the first cases of a run of 40."""
    rows = [row(n, right=n < n_judged_right) for n in range(40)]
    labels = [Label(f"q{n}", "li", {"passed": value}) for n, value in enumerate(passed)]
    return bias_tree(Reviewed(rows, labels, None, "passfail", 0, lambda row, values: None, {}))


def everything() -> Joined:
    return Joined(
        bias([n < 28 for n in range(40)]),
        comparison(),
        gate_tree(),
        anchors(),
        nightly(),
        '<section class="trend"><h2>Over time</h2></section>',
    )


@cache
def _summary() -> Mapping[str, Any]:
    return summarise(AFTER, k=5, seed=0, mode="passfail")


def page_with(joined: Joined, lang: str = "en", rows: Sequence[CaseRow] = AFTER) -> str:
    summary = _summary() if rows is AFTER else summarise(rows, k=5, seed=0, mode="passfail")
    shown = [dataclasses.replace(graded(one.id), row=one) for one in rows if one.outcome != "pass"]
    return render_report(manifest(), summary, shown, n_not_passed=len(shown), lang=lang, joined=joined)


def text_with(joined: Joined, lang: str = "en", rows: Sequence[CaseRow] = AFTER) -> str:
    return Page(page_with(joined, lang, rows)).text


# --- the page as a whole ---------------------------------------------------------------------------------------------


@both_languages
def test_a_page_with_everything_joined_is_whole_loads_nothing_and_links_within_itself(lang: str) -> None:
    page = Page(page_with(everything(), lang))
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert page.faults == []
    assert len(set(ids)) == len(ids)
    assert {"gate", "comparison", "judge", "trend", "numbers"} <= set(ids)
    assert not page.tags() & {"script", "img", "link", "iframe", "form"}
    assert "url(" not in page.style
    for _, attrs in page.elements:
        assert (attrs.get("href") or "#numbers").removeprefix("#") in ids


def test_the_decision_comes_first_and_peoples_rate_before_the_judges() -> None:
    text = text_with(everything()).partition("How this run was made")[2]  # after the links of the head
    places = [text.index(said) for said in ("Exit code", "The numbers", "Pass rate, corrected by people")]
    places += [text.index("People, and what the judge is worth"), text.index("Judge (not corrected)")]
    places += [text.index("What differs"), text.index("On its anchors"), text.index("Where it goes wrong")]
    assert places == sorted(places)


def test_what_was_never_made_leaves_no_place() -> None:
    page = Page(page_with(Joined()))
    ids = {attrs.get("id") for _, attrs in page.elements}
    assert not ids & {"gate", "comparison", "judge", "trend"}
    assert ".joined" not in page.style


def test_both_languages_word_the_same() -> None:
    assert JOINED_WORDS["en"].keys() == JOINED_WORDS["zh"].keys()
    for key, said in JOINED_WORDS["en"].items():
        assert set(re.findall(r"\{(\w+)\}", said)) == set(re.findall(r"\{(\w+)\}", JOINED_WORDS["zh"][key])), key


HOSTILE = "</td></table><img src=x onerror=alert(1)>{{ 7 * 7 }}"
STEP = {"name": HOSTILE, "outcome": HOSTILE, "detail": HOSTILE}
RULE = {"name": HOSTILE, "outcome": HOSTILE, "value": None, "threshold": None, "reason": HOSTILE}
CHANGED_CASE = {"id": HOSTILE, "outcome_a": HOSTILE, "cause_a": HOSTILE, "layer_a": HOSTILE, "outcome_b": "pass"}
POSITIONS: dict[str, Callable[[], Joined]] = {
    "runs": lambda: Joined(comparison=comparison(a=HOSTILE, b=HOSTILE)),
    "factor": lambda: Joined(comparison=comparison(changed_factors=[{"factor": HOSTILE, "a": HOSTILE, "b": None}])),
    "remark": lambda: Joined(comparison=comparison(remarks=[HOSTILE])),
    "changed case": lambda: Joined(comparison=comparison(changed_cases=[CHANGED_CASE])),
    "red line": lambda: Joined(gate={**gate_tree(), "red_lines": [HOSTILE]}),
    "rule": lambda: Joined(gate={**gate_tree(), "rules": [RULE]}),
    "decision": lambda: Joined(gate={**gate_tree(), "decision": HOSTILE}),
    "anchors' runs": lambda: Joined(anchors=anchors(reference=HOSTILE, anchors_run=HOSTILE)),
    "anchors' factor": lambda: Joined(anchors=anchors(changed=[{"factor": HOSTILE, "before": HOSTILE, "now": None}])),
    "anchors' verdict": lambda: Joined(anchors=anchors(verdict=HOSTILE)),
    "anchors' reason": lambda: Joined(anchors=anchors(verdict="unknown", reason=HOSTILE)),
    "judges": lambda: Joined(anchors=anchors(judges=[{"model": HOSTILE, "verdict": HOSTILE}, HOSTILE])),
    "night": lambda: Joined(nightly=nightly(moved=HOSTILE, baseline=HOSTILE, steps=[STEP])),
}


@pytest.mark.parametrize("position", POSITIONS)
def test_a_hostile_text_of_a_record_is_shown_and_stays_a_text(position: str) -> None:
    page = Page(page_with(POSITIONS[position]()))
    assert HOSTILE in page.text
    assert page.faults == []
    assert "img" not in page.tags()


# --- the decision ----------------------------------------------------------------------------------------------------


def test_every_rule_stands_with_outcome_value_threshold_and_reason() -> None:
    # Wilson for 30 of 40: [59.8 %, 85.8 %].
    text = text_with(Joined(gate=gate_tree()))
    assert "NOT ENOUGH EVIDENCE By: floor:pass." in text
    said = "uncorrected judge rate: 75.0% [59.8%, 85.8%], n = 40; at least 70.0% wanted."
    assert f"floor:pass open 75.0% 70.0% {said} About " in text
    assert "floor:hit passed 75.0% 50.0%" in text
    assert "Exit code 3" in text


def test_a_red_line_is_named_and_leads_to_its_case() -> None:
    rows = [*AFTER, row(99, right=False, leak=True, leak_checked=True)]
    html = page_with(Joined(gate=gate_tree(rows)), rows=rows)
    assert "HOLD By: red_lines" in Page(html).text
    assert re.search(r'<a href="#case-11"[^>]*>q99</a>', html)


def test_a_rule_without_a_number_says_why() -> None:
    rules = GateRules({"refusal": 0.9}, {"pass": 0.02})
    text = text_with(Joined(gate=gate_tree(rules=rules)))
    assert "floor:refusal open – 90.0% no answered case states whether a refusal is expected" in text
    assert "regression:pass skipped – 2.0% no baseline was given" in text


GATES: Mapping[str, Callable[[], Mapping[str, Any]]] = {
    "floors": lambda: gate_tree(),
    "a red line": lambda: gate_tree([*AFTER, row(9, right=False, leak=True, leak_checked=True)]),
    "nothing crossed": lambda: gate_tree([dataclasses.replace(one, leak_checked=True) for one in AFTER]),
    "a comparison": lambda: gate_tree(
        rules=GateRules(allowed_regression={"pass": 0.02, "hit": 0.02, "leak": 0.0}), comparison=comparison()
    ),
    "no baseline": lambda: gate_tree(rules=GateRules({"refusal": 0.9}, {"pass": 0.02}, 60)),
    "embedded": lambda: gate_tree(embedded=True, rules=GateRules({"pass": 0.5}, {}, 10)),
    "labels": lambda: gate_tree(bias=bias([n < 28 for n in range(40)])),
    "few labels": lambda: gate_tree(bias=bias([True])),
    "a judge that moved": lambda: gate_tree(moved=JudgeMoved("评审已漂移", is_bridged=False)),
}


@pytest.mark.parametrize("which", GATES)
def test_each_reason_of_a_rule_is_in_chinese_on_a_chinese_page(which: str) -> None:
    for rule in GATES[which]()["rules"]:
        said = reason_text(rule["reason"], "zh")
        assert not re.search(r"[A-Za-z]{3,}", said.replace("red_line", "")), (rule["reason"], said)
        assert reason_text(rule["reason"], "en") == rule["reason"]


# --- the comparison --------------------------------------------------------------------------------------------------


def test_the_first_three_stand_together_with_their_intervals() -> None:
    # 20 and 30 of 40 right; Wilson [35 %, 65 %] and [60 %, 86 %].
    text = text_with(Joined(comparison=comparison()))
    assert "Version Hit@5 correctness fabrication A 20/40 = 50 % [35 %, 65 %] 20/40 = 50 % [35 %, 65 %]" in text
    assert "B 30/40 = 75 % [60 %, 86 %]" in text
    assert re.search(r"B − A \+25 % \[\+\d+ %, \+\d+ %\], n = 40", text)


def test_a_metric_says_its_test_its_changes_and_what_could_be_shown() -> None:
    # 10 of 10 changed questions won: mid-p = 2 * 0.5^10 * 0.5 = 0.00098; with one declared metric, Holm's is the same.
    text = text_with(Joined(comparison=comparison()))
    assert "0.00098 (Holm 0.00098) 10 / 0 / 30" in text
    assert "judge pass 20/40 = 50 % [35 %, 65 %] 30/40 = 75 % [60 %, 86 %] +25 %" in text
    assert "refused wrongly – – n/a (no question has a verdict in both runs) – – –" in text
    assert "Latency, median A not known; B 1.25 s (n = 40)" in text
    assert "Cost of judging A not known; B 0.0123 USD" in text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({}, "Factor A B system.prompt_version 2026-02-28-old 2026-03-01-baseline", id="one factor"),
        pytest.param({"changed_factors": []}, "Nothing that is recorded differs.", id="none"),
        pytest.param({"factors_recorded": False}, "What changed is not known", id="nothing recorded"),
        pytest.param(
            {"changed_factors": [{"factor": f, "a": 1, "b": None} for f in "xy"]}, "2 things differ at once", id="two"
        ),
        pytest.param({"remarks": ["more_material_looser"]}, "recall and fabrication rose together", id="a remark"),
        pytest.param({"corrected": None}, "Not both runs have labels", id="no labels"),
        pytest.param(
            {"corrected": {"n_labelled_in_both": 3, "difference": None, "difference_reason": "too few"}},
            "B − A n/a (too few) 3 cases are labelled in both runs.",
            id="a refused correction",
        ),
        pytest.param(
            {"n_dropped": {"only_a": 1, "only_b": 2, "changed_question": 0}}, "only in A 1, only in B 2", id="left out"
        ),
    ],
)
def test_what_a_reader_must_know_of_a_comparison_is_said(changes: Mapping[str, Any], said: str) -> None:
    assert said in text_with(Joined(comparison=comparison(**changes)))


def test_changed_cases_say_cause_and_layer_and_how_many_are_not_shown() -> None:
    changed: list[dict[str, Any]] = [
        {"id": f"c{n}", "outcome_a": "fail", "cause_a": "invented", "layer_a": "generation"}
        | {"outcome_b": "pass", "cause_b": None, "layer_b": None}
        for n in range(N_CHANGED_SHOWN + 5)
    ]
    text = text_with(Joined(comparison=comparison(changed_cases=changed)))
    assert "Changed cases (41) Case Before (A) Now (B) c0 failed: Invented · generation passed" in text
    assert f"c{N_CHANGED_SHOWN - 1} " in text
    assert f"c{N_CHANGED_SHOWN} " not in text
    assert "5 more in comparison.json." in text


@pytest.mark.parametrize(
    ("share", "shown"), [(0.0, "+0 %"), (0.05, "+5 %"), (-0.13, "-13 %"), (0.004, "+0.4 %"), (-0.00004, "-4.0e-05")]
)
def test_rounding_makes_no_zero_of_a_difference_that_is_none(share: float, shown: str) -> None:
    assert signed(share) == shown


# --- the judge -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict_name", ["same", "first", "unknown", "changed", "drifting"])
@both_languages
def test_the_state_of_the_judge_is_said(verdict_name: str, lang: str) -> None:
    text = text_with(Joined(anchors=anchors(verdict=verdict_name, reason="too few anchors")), lang)
    assert JOINED_WORDS[lang][f"verdict_{verdict_name}"] in text


def test_the_anchors_numbers_stand_with_intervals_and_a_missing_one_with_its_reason() -> None:
    text = text_with(Joined(anchors=anchors()))
    assert "Agreement with the reference 34/40 = 85 % [71 %, 93 %]" in text
    assert "Net change of its passes -15 % [-27 %, -2 %], n = 40" in text
    assert "Smallest net change that so many anchors show 22 %" in text
    assert "Change of sensitivity n/a (no anchor is labelled)" in text
    assert "judge.model m-1 m-2" in text


@pytest.mark.parametrize(
    ("lang", "why", "said"),
    [
        pytest.param("en", {"code": "net", "net": -0.15, "n": 40, "p": 0.031}, "Why: net -15% of 40", id="en"),
        pytest.param("zh", {"code": "net", "net": -0.15, "n": 40, "p": 0.031}, "原因：40 个锚点上净变化 -15%", id="zh"),
        pytest.param("en", {"code": "of another version"}, "Why: moved.", id="unknown code"),
        pytest.param("en", {"code": "net", "net": "?", "n": 40, "p": 1}, "Why: moved.", id="odd values"),
    ],
)
def test_why_the_judge_counts_as_moved_is_said_in_the_pages_language(
    lang: str, why: Mapping[str, Any], said: str
) -> None:
    remark = {"code": "one_repeat", "model": "m-2"}
    text = text_with(Joined(anchors=anchors(why=why, reason="moved", remarks=[remark, {"code": "?"}])), lang)
    assert said in text
    assert {"en": "m-2: each anchor was judged once", "zh": "m-2:每个锚点只评了一次"}[lang] in text


def test_a_night_without_anchors_says_that_a_drift_would_not_be_seen() -> None:
    text = text_with(Joined(nightly=nightly()))
    assert "a drift would not be seen" in text
    assert "Not comparable with the nights before" in text
    assert "notify failed HTTP 500" in text


# --- people ----------------------------------------------------------------------------------------------------------


def test_labels_put_the_corrected_rate_first_with_what_it_rests_on() -> None:
    page = Page(page_with(Joined(bias=bias([n < 28 for n in range(40)]))))
    assert "Pass rate, corrected by people70 % [" in page.text.partition("End to end correct")[0]
    assert "Pass rate by the judge, not corrected 30/40 = 75 % [60 %, 86 %]" in page.text
    assert "Both pass 28, both fail 10, the judge alone passes 2, the judge alone fails 0." in page.text
    assert "Labels needed: " in page.text
    assert "undecided 0, unscored 0." in page.text
    assert "Not checked: that cases are independent" in page.text


@pytest.mark.parametrize(
    ("lang", "said"),
    [
        pytest.param("en", "Pass rate, corrected by people n/a (", id="en"),
        pytest.param("zh", "经人工校正的通过率 不适用（", id="zh"),
    ],
)
def test_a_refused_correction_says_why(lang: str, said: str) -> None:
    tree = bias([True, False])
    text = text_with(Joined(bias=tree), lang)
    assert said + reason_text(tree["fields"]["pass"]["rule_reason"], lang) in text
    assert "None" not in text


def test_a_run_whose_labels_are_gone_shows_none() -> None:
    assert "corrected by people" not in text_with(Joined(bias=bias([])))


# --- finished runs ---------------------------------------------------------------------------------------------------


def settings(folder: Path, name: str, **flags: Any) -> Settings:
    return pairs.settings(folder, **{"judge": "none", "name": name, **flags})


@pytest.fixture
def two(tmp_path: Path) -> tuple[RunFolder, RunFolder]:
    """Two runs by rules alone of the same six questions; the second has a wrong answer less."""
    cases, answers = numbered_files(tmp_path, 6)
    first = run(RunRequest(settings(tmp_path, "v1"), cases, answers), pairs.WORLD).folder
    better = answers.read_text(encoding="utf-8").replace("There are many seats.", "There are 100 seats.", 1)
    answers.write_text(better, encoding="utf-8")
    return first, run(RunRequest(settings(tmp_path, "v2"), cases, answers), pairs.WORLD).folder


app = typer.Typer()
app.command()(report)


def asked(folder: Path, *arguments: str) -> Any:
    clean = {name: None for name in os.environ if name.startswith("RAG_JUDGE_")}
    return CliRunner(env=clean).invoke(app, [*arguments, "--out", str(folder / "runs")], catch_exceptions=True)


def test_report_compares_with_a_baseline_and_rewrites_the_page(
    tmp_path: Path, two: tuple[RunFolder, RunFolder]
) -> None:
    ended = asked(tmp_path, two[1].run_id, "--baseline", two[0].run_id)
    assert (ended.exit_code, ended.stdout.strip()) == (0, str(two[1].path / "report.html"))
    text = Page((two[1].path / "report.html").read_text(encoding="utf-8")).text
    assert f"Compared with {two[0].run_id}" in text
    assert "q0 failed: " in text
    assert (two[1].path / "comparison.json").exists()


def test_everything_that_lies_in_the_folder_is_joined(two: tuple[RunFolder, RunFolder]) -> None:
    for name, tree in (("gate", gate_tree()), ("anchors", anchors()), ("nightly", nightly())):
        two[1].write_json(f"{name}.json", tree)
    made = write_joined_report(two[1], "zh", '<section class="trend"><h2>历次</h2></section>', baseline=two[0])
    assert made.joined == ["comparison", "gate", "anchors", "nightly", "trend_html"]
    assert '<section class="trend">' in made.text
    assert Page(made.text).faults == []


def test_json_names_the_file_and_what_was_joined(tmp_path: Path, two: tuple[RunFolder, RunFolder]) -> None:
    ended = asked(tmp_path, two[1].run_id, "--format", "md", "--json", "--quiet")
    printed = json.loads(ended.stdout)
    assert printed["file"] == str(two[1].path / "report.md")
    assert (printed["format"], printed["joined"]) == ("md", [])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["nothing"], "no run 'nothing'", id="no run"),
        pytest.param(["v2", "--format", "pdf"], "--format: found 'pdf', expected one of html, md", id="format"),
        pytest.param(["v2", "--out-file", "missing/x.html"], "expected a file in a folder that is there", id="folder"),
        pytest.param(["v2", "--out-file", "-", "--json"], "both would print to stdout", id="two outputs"),
        pytest.param(["v2", "--baseline", "v2"], "the same run twice", id="itself"),
    ],
)
def test_what_cannot_be_done_is_an_input_error_and_writes_nothing(
    tmp_path: Path, two: tuple[RunFolder, RunFolder], arguments: list[str], said: str
) -> None:
    before = {path: path.read_bytes() for path in two[1].path.iterdir() if path.is_file()}
    named = [two[1].run_id if word == "v2" else word for word in arguments]
    ended = asked(tmp_path, *named)
    assert isinstance(ended.exception, InputError)
    assert said in str(ended.exception)
    assert {path: path.read_bytes() for path in two[1].path.iterdir() if path.is_file()} == before


def test_an_unfinished_run_and_a_file_of_another_kind_are_named(two: tuple[RunFolder, RunFolder]) -> None:
    two[1].write_json("gate.json", {"decision": "ship"})
    with pytest.raises(InputError, match=r"gate\.json: rules is missing"):
        write_joined_report(two[1], "en")
    two[0].write_json("manifest.json", {**two[0].manifest(), "status": "incomplete"})
    with pytest.raises(InputError, match="not complete"):
        write_joined_report(two[0], "en")


def test_labels_that_came_after_the_bias_are_taken_into_it(tmp_path: Path) -> None:
    cases, answers = numbered_files(tmp_path, 12)
    with JudgeServer(lambda _: verdict()) as server:
        flags = {"judge": "passfail", "base_url": server.base_url, "repeats": 1}
        folder = run(RunRequest(settings(tmp_path, "judged", **flags), cases, answers), pairs.WORLD).folder
    reviewed = ReviewedRun(folder.path)
    label_all(reviewed, tmp_path, [True] * 12)
    assert write_joined_report(folder, "en").joined == ["bias"]
    first = (folder.path / "bias.json").stat().st_mtime_ns
    assert write_joined_report(folder, "en").joined == ["bias"]
    assert (folder.path / "bias.json").stat().st_mtime_ns == first  # it knew all labels


def test_a_pairwise_comparison_has_its_own_page(tmp_path: Path) -> None:
    a, b = pairs.finished(tmp_path, "v1", pairs.ANSWERS_A), pairs.finished(tmp_path, "v2", pairs.ANSWERS_B)
    result = pairs.compare(tmp_path, pairs.longer, a, b)
    before = (result.folder.path / "report.html").read_text(encoding="utf-8")
    assert write_joined_report(result.folder, "en").text == before
    told = write_joined_report(result.folder, "zh", format_name="md").text
    assert "A 的胜率" in told
    with pytest.raises(InputError, match="a pairwise comparison, not a run"):
        write_joined_report(result.folder, "en", baseline=a)
