"""The nightly job: what it decides, what it says, and that no night does harm to another."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rag_judge.archive import RunFolder, list_runs
from rag_judge.errors import InputError
from rag_judge.night_lock import night_lock
from rag_judge.pins import pin, pins
from rag_judge.pipeline.night import Night
from rag_judge.pipeline.nightly import nightly
from rag_judge.settings import load_settings
from tests.chat_receivers import ChatReceiver
from tests.eval_sets import write_rows
from tests.night_world import N_CASES, Nights, TestJudge, TestSystem, lay
from tests.servers import JudgeServer, RagServer


@contextmanager
def nights(folder: Path, more: str = "", **told: Any) -> Iterator[tuple[Nights, TestSystem, TestJudge]]:
    system, judge = TestSystem(), TestJudge()
    with RagServer(system) as rag, JudgeServer(judge) as server:
        lay(folder, rag.ask_url, server.base_url, more, **told)
        yield Nights(folder), system, judge


def one(at: Nights, **more: Any) -> Night:
    settings = load_settings(at.folder / "rag-judge.toml", at.environment, {})
    return nightly(settings, at.world(), **more)


def night_file(night: Night) -> dict[str, Any]:
    return night.run_folder.read_json("nightly.json")


def runs_named(at: Nights, name: str) -> list[RunFolder]:
    return [folder for folder in list_runs(at.archive) if folder.manifest()["name"] == name]


# --- good nights -------------------------------------------------------------------------------------------------


def test_the_first_night_has_no_baseline_and_the_second_has_the_first(tmp_path: Path) -> None:
    with nights(tmp_path) as (at, _, _):
        first = one(at)
        assert (first.exit_code, first.baseline) == (0, None)
        assert any("no baseline yet" in line for line in first.lines)
        at.night = 2
        second = one(at)
    assert second.baseline is not None
    assert second.baseline.folder.run_id == first.run_folder.run_id
    assert second.exit_code == 0
    written = night_file(second)
    assert written["finished"] is True
    assert (written["ended"], written["comparable"]) == ("ship", True)
    assert [step["name"] for step in written["steps"]] == [
        *("anchors", "run", "baseline", "gate", "report", "review sample", "notify", "prune"),
    ]
    names = {path.name for path in second.run_folder.path.iterdir()}
    assert {"report.html", "comparison.json", "gate.json", "junit.xml", "anchors.json", "review"} <= names
    assert second.run_folder.read_json("anchors.json")["verdict"] == "same"
    assert [name for name in (second.run_folder.path / "review").iterdir() if "sheet-" in name.name]


def test_a_pinned_baseline_wins_over_the_last_good_night(tmp_path: Path) -> None:
    with nights(tmp_path) as (at, _, _):
        first = one(at)
        for at.night in (2, 3):
            one(at)
        pin(at.archive, first.run_folder.run_id, "baseline", None, at.now)
        at.night = 4
        fourth = one(at)
    assert fourth.baseline is not None
    assert fourth.baseline.folder.run_id == first.run_folder.run_id
    assert any("(pinned)" in line for line in fourth.lines)


def test_a_system_that_got_worse_is_held_and_is_no_baseline(tmp_path: Path) -> None:
    with nights(tmp_path) as (at, system, _):
        first = one(at)
        at.night, system.worse = 2, True
        second = one(at)
        at.night, system.worse = 3, False
        third = one(at)
    assert second.exit_code == 1
    assert night_file(second)["ended"] == "hold"
    assert third.exit_code == 0
    assert third.baseline is not None
    assert third.baseline.folder.run_id == first.run_folder.run_id


def test_an_eval_set_that_grew_is_compared_on_what_both_were_asked(tmp_path: Path) -> None:
    with nights(tmp_path) as (at, _, _):
        cases = tmp_path / "cases.jsonl"
        whole = cases.read_text(encoding="utf-8")
        cases.write_text("".join(whole.splitlines(keepends=True)[:-5]), encoding="utf-8")
        one(at)
        cases.write_text(whole, encoding="utf-8")
        at.night = 2
        second = one(at)
    assert second.exit_code == 0
    comparison = second.run_folder.read_json("comparison.json")
    assert (comparison["n_common"], comparison["n_dropped"]["only_b"]) == (N_CASES - 5, 5)


def test_another_eval_set_altogether_is_not_compared_and_said(tmp_path: Path) -> None:
    with nights(tmp_path) as (at, _, _):
        one(at)
        cases = [json.loads(line) for line in (tmp_path / "cases.jsonl").read_text("utf-8").splitlines()]
        write_rows(tmp_path / "cases.jsonl", [{**case, "id": f"new-{case['id']}"} for case in cases])
        at.night = 2
        second = one(at)
    assert second.exit_code == 0
    assert any("not compared with the baseline" in line and "no question in common" in line for line in second.lines)


def test_a_pinned_run_that_is_gone_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    with nights(tmp_path) as (at, system, _):
        first = one(at)
        pin(at.archive, first.run_folder.run_id, "baseline", None, at.now)
        shutil.rmtree(first.run_folder.path)
        n_asked = system.n_asked
        at.night = 2
        with pytest.raises(InputError, match="pinned as baseline"):
            one(at)
        assert system.n_asked == n_asked


def test_a_damaged_baseline_and_replies_of_earlier_nights_are_told(tmp_path: Path) -> None:
    with nights(tmp_path, link="http://ci.example.org/{run}/") as (at, _, _), ChatReceiver() as chat:
        at.environment["RAG_JUDGE_WEBHOOK_URL"] = chat.url
        first = one(at)
        (first.run_folder.path / "answers.jsonl").write_text("{}", encoding="utf-8")
        at.night = 2
        second = one(at)
        told = json.loads(chat.bodies[-1])
    assert any("is damaged" in line and "answers.jsonl" in line for line in second.lines)
    assert f"{2 * N_CASES} of {2 * N_CASES} verdicts are replies of earlier nights to the same answers" in second.lines
    assert told["link"] == f"http://ci.example.org/{second.run_folder.run_id}/"
    assert told["ended"] == "ship"


def test_a_baseline_that_no_bridge_can_be_built_of_ends_no_night(tmp_path: Path) -> None:
    with nights(tmp_path) as (at, _, judge):
        first = one(at)
        (first.run_folder.path / "answers.jsonl").write_text("{}", encoding="utf-8")
        at.night, judge.model = 2, "judge-2"
        second = one(at)
    assert (second.exit_code, night_file(second)["ended"]) == (3, "not_comparable")
    assert second.alike is None
    assert any("not compared with the baseline" in line and "answers.jsonl" in line for line in second.lines)


# --- the judge ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["changed", "drifting"])
def test_a_judge_that_moved_is_told_apart_from_a_system_that_got_worse(tmp_path: Path, how: str) -> None:
    with nights(tmp_path) as (at, system, judge):
        for at.night in (1, 2):
            assert one(at).exit_code == 0
        at.night = 3
        judge.strictness = 0.6
        if how == "changed":
            judge.model = "judge-2"
        third = one(at)
        assert third.anchors is not None
        assert third.anchors.verdict == how
        assert (third.exit_code, night_file(third)["ended"]) == (3, "not_comparable")
        assert third.alike is not None  # the baseline's answers were graded again
        assert third.alike.purpose == "bridge"
        at.night = 4
        fourth = one(at)
        # against the night before, as today's judge grades it, nothing is worse
        assert (fourth.exit_code, night_file(fourth)["comparable"]) == (0, True)
        at.night, system.worse = 5, True
        assert one(at).exit_code == 1


def test_without_a_bridge_the_nights_stay_not_comparable(tmp_path: Path) -> None:
    with nights(tmp_path, bridge=False) as (at, _, judge):
        one(at)
        judge.strictness = 0.6
        for at.night in (2, 3):
            night = one(at)
            assert (night.exit_code, night_file(night)["ended"]) == (3, "not_comparable")
        assert not runs_named(at, "nightly-bridge")


def test_a_judge_that_moved_does_not_hide_a_system_that_got_worse_by_rules(tmp_path: Path) -> None:
    with nights(tmp_path) as (at, system, judge):
        one(at)
        at.night, judge.model, system.worse = 2, "judge-2", True
        second = one(at)
    assert (second.exit_code, night_file(second)["ended"]) == (1, "hold")
    assert second.moved is not None


def test_a_night_of_unreadable_replies_is_nothing_to_hold_the_judge_against(tmp_path: Path) -> None:
    with nights(tmp_path) as (at, _, judge):
        judge.prose = True
        first = one(at)
        assert first.exit_code == 4
        assert pins(at.archive) == {}
        judge.prose = False
        at.night = 2
        second = one(at)
        assert second.anchors is not None
        assert (second.anchors.verdict, second.exit_code) == ("first", 0)
        assert pins(at.archive)[str(night_file(second)["anchors_run"])].role == "anchors"
        # the judge changes, and cannot be read on that night: it is not what later nights are held against
        at.night, judge.model, judge.prose = 3, "judge-2", True
        assert one(at).exit_code == 4
        assert not runs_named(at, "nightly-bridge")
        at.night, judge.prose = 4, False
        fourth = one(at)
        assert (fourth.exit_code, night_file(fourth)["ended"]) == (3, "not_comparable")
        at.night = 5
        assert one(at).exit_code == 0


def test_without_anchors_another_model_is_still_seen(tmp_path: Path) -> None:
    with nights(tmp_path, anchors=None) as (at, _, judge):
        first = one(at)
        assert any("no anchors" in line for line in first.lines)
        at.night, judge.model = 2, "judge-2"
        second = one(at)
    assert (second.exit_code, night_file(second)["comparable"]) == (3, False)
    assert "judge-2" in str(second.moved)


# --- what goes wrong ----------------------------------------------------------------------------------------------


def test_a_second_start_does_nothing_and_says_so(tmp_path: Path) -> None:
    with nights(tmp_path) as (at, system, _):
        with night_lock(at.archive, at.now):
            night = one(at)
        assert (night.exit_code, night.result, system.n_asked) == (0, None, 0)
        assert "another night is running" in night.lines[0]
        assert str(os.getpid()) in night.lines[0]


@pytest.mark.parametrize("what", ["endpoint", "judge"])
def test_an_outage_is_no_regression_and_the_same_command_goes_on(tmp_path: Path, what: str) -> None:
    with nights(tmp_path) as (at, system, judge):
        one(at)
        at.night = 2
        broken: Any = system if what == "endpoint" else judge
        broken.down = True
        night = one(at)
        assert night.exit_code == 5
        assert any("could not measure" in line for line in night.lines)
        assert not any(folder.path / "gate.json" in folder.path.iterdir() for folder in runs_named(at, "nightly")[1:])
        broken.down = False
        again = one(at)
        assert again.exit_code == 0
        assert len(runs_named(at, "nightly")) == 2  # the same one, gone on with
        assert len(runs_named(at, "anchors")) == 2


def test_fresh_begins_anew(tmp_path: Path) -> None:
    with nights(tmp_path) as (at, system, _):
        system.down = True
        assert one(at).exit_code == 5
        system.down = False
        assert one(at, fresh=True).exit_code == 0
        assert len(runs_named(at, "nightly")) == 2


def test_limits_are_of_the_whole_night(tmp_path: Path) -> None:
    more = "[judge.prices.judge]\nprompt = 1.0\ncompletion = 1.0\n"
    with nights(tmp_path, more) as (at, _, _):
        config = tmp_path / "rag-judge.toml"
        whole = config.read_text(encoding="utf-8")
        config.write_text(whole.replace("repeats = 3", "repeats = 3\nmax_calls = 70"), encoding="utf-8")
        night = one(at)
        # the anchors take two calls each of thirty, and the run gets the other ten
        assert night.exit_code == 5
        assert any("limit" in line for line in night.lines)
        config.write_text(whole.replace("repeats = 3", 'repeats = 3\ndeadline = "0s"'), encoding="utf-8")
        assert one(at).exit_code == 5
        # a limit that was taken out of the settings is none, also for the night that it stopped
        config.write_text(whole, encoding="utf-8")
        assert one(at).exit_code == 0
        assert len(runs_named(at, "nightly")) == 1


def test_a_night_of_other_settings_is_not_gone_on_with(tmp_path: Path) -> None:
    with nights(tmp_path) as (at, system, _), RagServer(TestSystem()) as other:
        system.down = True
        assert one(at).exit_code == 5
        config = tmp_path / "rag-judge.toml"
        text = config.read_text(encoding="utf-8").splitlines()
        config.write_text("\n".join(f'url = "{other.ask_url}"' if "url = " in t and "ask" in t else t for t in text))
        assert one(at).exit_code == 0
        assert len(runs_named(at, "nightly")) == 2
    assert any("had other settings" in line for line in at.said)


def test_an_archive_that_cannot_be_written_is_an_error_of_the_settings(tmp_path: Path, small_disk: Path) -> None:
    with nights(tmp_path) as (at, system, _):
        config = tmp_path / "rag-judge.toml"
        config.write_text(config.read_text("utf-8").replace(str(at.archive), str(small_disk / "runs")), "utf-8")
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
        with pytest.raises(InputError, match="the archive cannot be written: Read-only file system"):
            one(at)
        assert system.n_asked == 0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('cases = ""', "nightly.cases"),
        ('anchors = "nowhere.jsonl"', "nightly.anchors: found 'nowhere.jsonl'"),
        ("tolerance = 2", "nightly.tolerance"),
        ('notify = "sometimes"', "nightly.notify"),
        ("keep_last = 0", "nightly.keep_last"),
    ],
)
def test_a_wrong_setting_is_an_error_before_anything_is_asked(tmp_path: Path, text: str, found: str) -> None:
    with nights(tmp_path) as (at, system, _):
        config = tmp_path / "rag-judge.toml"
        name = text.partition(" ")[0]
        lines = [line for line in config.read_text(encoding="utf-8").splitlines() if not line.startswith(f"{name} =")]
        config.write_text("\n".join(lines).replace("[nightly]", f"[nightly]\n{text}"), encoding="utf-8")
        with pytest.raises(InputError, match=found):
            one(at)
        assert system.n_asked == 0


def test_a_broken_eval_set_costs_nothing(tmp_path: Path) -> None:
    with nights(tmp_path) as (at, system, _):
        (tmp_path / "cases.jsonl").write_text("{", encoding="utf-8")
        with pytest.raises(InputError, match=r"cases\.jsonl:1"):
            one(at)
        assert system.n_asked == 0
        assert not runs_named(at, "anchors")


KILLED = """
import sys
from pathlib import Path
from rag_judge.cli import main
sys.argv = ["rag-judge", "nightly", "--config", sys.argv[1], "--quiet"]
main()
"""


@pytest.mark.parametrize(
    "n_calls", [20, pytest.param(75, marks=pytest.mark.slow), pytest.param(120, marks=pytest.mark.slow)]
)
def test_killed_mid_way_and_started_again_nothing_is_asked_twice(tmp_path: Path, n_calls: int) -> None:
    system, judge = TestSystem(), TestJudge()
    with RagServer(system) as rag, JudgeServer(judge, delay_s=0.01) as server:
        config = lay(tmp_path, rag.ask_url, server.base_url)
        command = [sys.executable, "-c", KILLED, str(config)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while len(server.requests) < n_calls and process.poll() is None:
            pass
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "its lock is taken over" not in done.stdout
        # two calls each of 30 anchors and 40 cases; those on their way at the kill were sent again
        n_needed = 2 * (30 + N_CASES)
        assert n_needed <= len(server.requests) <= n_needed + 8
    assert len(list_runs(tmp_path / "runs")) == 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 200 kB, which only root can make."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"no small file system can be mounted here: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_could_not_measure_and_with_room_the_night_goes_on(tmp_path: Path, small_disk: Path) -> None:
    with nights(tmp_path) as (at, _, _):
        config = tmp_path / "rag-judge.toml"
        config.write_text(config.read_text("utf-8").replace(str(at.archive), str(small_disk / "runs")), "utf-8")
        night = one(at)
        assert night.exit_code == 5
        assert any("could not measure: No space left on device" in line for line in night.lines)
        subprocess.run(["mount", "-o", "remount,size=40m", str(small_disk)], check=True)
        assert one(at).exit_code == 0
        # what was journalled before the disk was full was not asked again under another name
        names = [folder.manifest()["name"] for folder in list_runs(small_disk / "runs")]
        assert sorted(names) == ["anchors", "nightly"]


# --- telling -----------------------------------------------------------------------------------------------------


def test_the_chats_are_told_once_a_change_and_a_failure_changes_no_exit_code(tmp_path: Path) -> None:
    with nights(tmp_path, notify="changes") as (at, system, _), ChatReceiver() as chat:
        at.environment["RAG_JUDGE_WEBHOOK_URL"] = chat.url
        exit_codes = []
        for at.night, system.worse in ((1, False), (2, False), (3, True), (4, True), (5, False)):
            exit_codes.append(one(at).exit_code)
        assert exit_codes == [0, 0, 1, 1, 0]
        told = [json.loads(body) for body in chat.bodies]
        assert [one["ended"] for one in told] == ["ship", "hold", "ship"]
        at.environment["RAG_JUDGE_WEBHOOK_URL"] = "http://127.0.0.1:9/"
        at.night, system.worse = 6, True
        night = one(at)
    assert night.exit_code == 1
    assert night.notices[0]["ok"] is False
    assert any("NOT sent" in line for line in at.said)
