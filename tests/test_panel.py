"""Several judges on the same cases: the majority of judges, each one's rates, their agreement, what it costs."""

import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rag_judge.archive import RunFolder, read_run
from rag_judge.errors import CannotGoOn, InputError
from rag_judge.panel import summarise_panel
from rag_judge.pipeline import RunRequest, RunResult, World, plan, regrade, resumed_request, run
from rag_judge.records import CaseRow, Decision, VerdictField
from rag_judge.sections import PanelJudge
from rag_judge.settings import Settings, load_settings
from rag_judge.votes import judges_disagree, panel_decision
from tests.eval_sets import numbered_files, verdict
from tests.misbehaviour import SERVER_ERROR, JudgeRequest, Misbehaviour
from tests.servers import JudgeServer

WORLD = World({"OPENAI_API_KEY": "sk-secret-0123456789"}, lambda: datetime(2026, 1, 31, tzinfo=UTC), time.monotonic)
FIELDS = (VerdictField("ok", "boolean"), VerdictField("score", "score"))


def decided(ok: bool | None, score: float | None = None, *, unscored: bool = False) -> Decision:
    """What one judge decided over three repeats."""
    n_votes = 0 if unscored else 3
    reason = "no_reply" if unscored else None
    return Decision({"ok": ok, "score": score}, ok, 3, 3, n_votes, None if unscored else False, None, reason, None)  # type: ignore[arg-type]


# --- the majority of judges ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("judges", "ok"),
    [
        pytest.param([True, True, False], True, id="two of three"),
        pytest.param([True, False], None, id="two that differ"),
        pytest.param([True, None, False], None, id="one each and one undecided"),
        pytest.param([True, None, True], True, id="two of three, one undecided"),
        pytest.param([True, None], None, id="one of two is no majority"),
        pytest.param([False], False, id="a single judge"),
    ],
)
def test_a_field_is_decided_by_more_than_half_of_the_judges(judges: list[bool | None], ok: bool | None) -> None:
    decision = panel_decision([decided(value) for value in judges], FIELDS, lambda values: bool(values["ok"]))
    assert (decision.values["ok"], decision.judge_pass) == (ok, ok)


def test_a_score_is_the_median_of_the_judges_if_more_than_half_decided_one() -> None:
    scores = [decided(True, 2.0), decided(True, 5.0), decided(True, 4.0)]
    assert panel_decision(scores, FIELDS, None).values["score"] == 4.0
    assert panel_decision([decided(True, 2.0), decided(True), decided(True)], FIELDS, None).values["score"] is None


def test_a_judge_without_any_reply_is_a_missing_vote_and_all_without_is_unscored() -> None:
    lost = decided(None, unscored=True)
    most = panel_decision([lost, decided(True), decided(True)], FIELDS, None)
    assert (most.values["ok"], most.n_votes, most.n_planned, most.unscored) == (True, 6, 9, False)
    none = panel_decision([lost, lost], FIELDS, None)
    assert (none.unscored, none.unscored_reason) == (True, "no_reply")


def test_judges_disagree_only_where_two_decided_differently() -> None:
    assert judges_disagree([decided(True), decided(False)]) is True
    assert judges_disagree([decided(True), decided(None)]) is False
    assert judges_disagree([decided(True), decided(None, unscored=True)]) is None


def test_rates_and_agreement_are_counted_over_what_was_decided() -> None:
    def row(case_id: str, a: bool | None, b: bool | None) -> CaseRow:
        said = {
            model: {"pass": value, "undecided": value is None, "unscored": None, "grounded": value}
            for model, value in (("a", a), ("b", b))
        }
        return CaseRow(case_id, None, "pass", judges=json.dumps(said), judges_disagree=a != b and None not in (a, b))

    rows = [row("c1", True, True), row("c2", True, False), row("c3", False, False), row("c4", True, None)]
    panel = summarise_panel(rows, ["a", "b"])
    assert [judge["pass"]["value"] for judge in panel["judges"]] == [0.75, pytest.approx(1 / 3)]
    assert [judge["undecided"] for judge in panel["judges"]] == [0, 1]
    # c1 and c3 agree, c2 does not, c4 has nothing that both decided
    assert panel["pairs"][0]["agreement"]["value"] == pytest.approx(2 / 3)
    assert (panel["n_disagree"], panel["disagree"]) == (1, ["c2"])


# --- whole runs -----------------------------------------------------------------------------------------------------


def says(request: JudgeRequest) -> str | Misbehaviour:
    """`strict` fails every answer, `kind` passes every one, `fair` those with a number."""
    model = request.body["model"]
    fair = "many seats" not in request.text.rsplit("answer", 1)[-1]
    return verdict(grounded={"strict": False, "kind": True}.get(model, fair))


def request(folder: Path, base_url: str, models: list[str], **flags: Any) -> RunRequest:
    cases, answers = numbered_files(folder, 5)
    given = {"out": str(folder / "runs"), "base_url": base_url, "models": models, "attempts": 1, "repeats": 2, **flags}
    settings = load_settings(None, {}, given, folder=None)
    return RunRequest(replace(settings, judge=replace(settings.judge, backoff_s=0.0)), cases, answers)


def table(result: RunResult) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in read_run(result.folder.path).table().to_dict("records")}  # type: ignore[misc]


def test_three_judges_of_one_server_decide_by_majority_and_each_is_shown(tmp_path: Path) -> None:
    with JudgeServer(says) as server:
        result = run(request(tmp_path, server.base_url, ["strict", "kind", "fair"]), WORLD)
        assert len(server.requests) == 5 * 2 * 3
    rows = table(result)
    # q0 says "many seats": strict and fair find it not grounded; the others only strict
    assert [rows[f"q{i}"]["grounded"] for i in range(5)] == [False, True, True, True, True]
    assert [rows[f"q{i}"]["judges_disagree"] for i in range(5)] == [True] * 5
    panel = result.summary["judge"]["panel"]
    assert [(judge["model"], judge["pass"]["value"]) for judge in panel["judges"]] == [
        ("strict", 0.0),
        ("kind", 1.0),
        ("fair", 0.8),
    ]
    agreement = {(pair["a"], pair["b"]): pair["agreement"]["value"] for pair in panel["pairs"]}
    assert agreement == {("strict", "kind"): 0.0, ("strict", "fair"): 0.2, ("kind", "fair"): 0.8}
    manifest = read_run(result.folder.path).manifest
    assert [judge["model"] for judge in manifest["judges"]] == ["strict", "kind", "fair"]
    assert manifest["cost"]["calls"] == 30
    assert any("agreement of strict, kind: 0/5" in line for line in result.lines)


def test_a_member_of_the_panel_may_live_elsewhere_and_a_resume_asks_only_what_is_missing(tmp_path: Path) -> None:
    def down(asked: JudgeRequest) -> str | Misbehaviour:
        return SERVER_ERROR

    asked = request(tmp_path, "http://127.0.0.1:1/v1", ["kind", "fair"], judge="passfail")
    with JudgeServer(says) as first:
        with JudgeServer(down) as second:
            port = int(second.base_url.split(":")[2].split("/")[0])
            panel = [PanelJudge("kind", first.base_url), PanelJudge("fair", second.base_url)]
            elsewhere = replace(asked, settings=_with_panel(asked.settings, panel))
            with pytest.raises(CannotGoOn):
                run(elsewhere, WORLD)
        folder = next((tmp_path / "runs").iterdir())
        assert len(first.requests) == 10
        with JudgeServer(says, port=port):
            result = run(resumed_request(RunFolder(folder), {}, {}), WORLD, RunFolder(folder))
        assert len(first.requests) == 10  # its replies are kept
    assert [judge["drawn"] for judge in result.summary["judge"]["panel"]["judges"]] == [5, 5]


def _with_panel(settings: Settings, panel: list[PanelJudge]) -> Settings:
    return replace(settings, judge=replace(settings.judge, panel=panel))


def test_limits_prices_and_plans_are_of_all_judges_together(tmp_path: Path) -> None:
    with JudgeServer(says) as server:
        asked = request(tmp_path, server.base_url, ["kind", "fair"], max_calls=13)
        assert plan(asked, WORLD).calls_at_most == 20
        with pytest.raises(CannotGoOn, match="the limit of 13 calls is reached"):
            run(asked, WORLD)
        assert len(server.requests) == 13


def test_a_regraded_panel_is_read_as_it_was(tmp_path: Path) -> None:
    with JudgeServer(says) as server:
        result = run(request(tmp_path, server.base_url, ["strict", "kind", "fair"]), WORLD)
    again = regrade(result.folder, WORLD, {})
    assert again.moved == []
    assert (again.result.folder.path / "summary.json").read_bytes() == (
        result.folder.path / "summary.json"
    ).read_bytes()


@pytest.mark.parametrize(
    ("text", "models", "names"),
    [
        pytest.param("", ["a"], ["a"], id="one flag"),
        pytest.param("", ["a", "b"], ["a", "b"], id="two flags"),
        pytest.param('[[judge.panel]]\nmodel = "a"\n[[judge.panel]]\nmodel = "b"', [], ["a", "b"], id="the file"),
        pytest.param('[[judge.panel]]\nmodel = "a"\n[[judge.panel]]\nmodel = "b"', ["c"], ["c"], id="a flag wins"),
    ],
)
def test_flags_and_file_say_who_judges(tmp_path: Path, text: str, models: list[str], names: list[str]) -> None:
    (tmp_path / "rag-judge.toml").write_text(text, encoding="utf-8")
    settings = load_settings(None, {}, {"models": models} if models else {}, tmp_path)
    assert [member.model for member in settings.judge.members()] == names


def test_a_flag_takes_a_members_address_from_the_file_and_a_model_stands_once(tmp_path: Path) -> None:
    file = tmp_path / "rag-judge.toml"
    file.write_text('[[judge.panel]]\nmodel = "b"\nbase_url = "http://127.0.0.1:2/v1"', encoding="utf-8")
    settings = load_settings(None, {}, {"models": ["a", "b"], "base_url": "http://127.0.0.1:1/v1"}, tmp_path)
    assert [member.base_url for member in settings.judge.members()] == [
        "http://127.0.0.1:1/v1",
        "http://127.0.0.1:2/v1",
    ]
    with pytest.raises(InputError, match="each model once"):
        load_settings(None, {}, {"models": ["a", "a"]}, None)
