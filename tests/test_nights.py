"""What the archive says of earlier nights."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from rag_judge.archive import RunFolder
from rag_judge.night_lock import HOLDER, night_lock
from rag_judge.nights import ended_before, graded_alike, last_good, past_runs, reference_of, to_go_on

ZONE = timezone(timedelta(hours=8))
NOON = datetime(2026, 3, 10, 12, tzinfo=ZONE)


def made(
    archive: Path,
    run_id: str,
    hours_ago: float,
    night: dict[str, Any] | None = None,
    *,
    graded: int = 30,
    **manifest: Any,
) -> None:
    folder = archive / run_id
    folder.mkdir(parents=True)
    started_at = (NOON - timedelta(hours=hours_ago)).isoformat()
    manifest = {"name": "nightly", "status": "complete", **manifest}
    tree = {"format_version": 1, "run_id": run_id, "kind": "run", "started_at": started_at, **manifest}
    (folder / "manifest.json").write_text(json.dumps(tree), encoding="utf-8")
    (folder / "summary.json").write_text(json.dumps({"judge": {"drawn": 30, "graded": graded}}), encoding="utf-8")
    if night is not None:
        (folder / "nightly.json").write_text(json.dumps(night), encoding="utf-8")


def ended(decision: str = "ship", **more: Any) -> dict[str, Any]:
    return {"finished": True, "decision": decision, "ended": decision, "comparable": True, **more}


def ids(*found: Any) -> list[str | None]:
    return [None if one is None else one.folder.run_id for one in found]


def test_the_last_good_night_is_the_last_that_shipped_and_was_comparable(tmp_path: Path) -> None:
    made(tmp_path, "one", 96, ended())
    made(tmp_path, "two", 72, ended())
    made(tmp_path, "three", 48, ended("hold"))
    made(tmp_path, "four", 24, ended("ship", comparable=False))
    made(tmp_path, "by-hand", 12, None)
    made(tmp_path, "tonight", 1, ended())
    past = past_runs(tmp_path)
    assert ids(last_good(past, "tonight")) == ["two"]
    assert last_good([one for one in past if one.folder.run_id == "three"], "tonight") is None


def test_runs_are_ordered_by_time_whatever_their_names_and_a_broken_one_hides_no_other(tmp_path: Path) -> None:
    made(tmp_path, "b", 2)
    made(tmp_path, "a", 1)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_text("{", encoding="utf-8")
    made(tmp_path, "pairs", 1, kind="pairwise")
    assert ids(*past_runs(tmp_path)) == ["b", "a"]


@pytest.mark.parametrize(
    ("hours_ago", "status", "night", "goes_on"),
    [
        pytest.param(2, "incomplete", None, True, id="killed while it ran"),
        pytest.param(2, "complete", None, True, id="killed after its run"),
        pytest.param(2, "complete", {"finished": False}, True, id="killed while it told"),
        pytest.param(2, "complete", ended(), False, id="over"),
        pytest.param(30, "incomplete", None, False, id="too long ago"),
    ],
)
def test_a_night_goes_on_where_it_was_interrupted(
    tmp_path: Path, hours_ago: float, status: str, night: dict[str, Any] | None, goes_on: bool
) -> None:
    made(tmp_path, "older", 26, ended())
    made(tmp_path, "run", hours_ago, night, status=status)
    found = to_go_on(past_runs(tmp_path), "nightly", None, NOON)
    assert ids(found) == (["run"] if goes_on else [None])


def test_anchors_of_a_night_that_is_over_are_not_gone_on_with(tmp_path: Path) -> None:
    made(tmp_path, "anchors-1", 3, purpose="anchors", name="anchors")
    assert ids(to_go_on(past_runs(tmp_path), "anchors", "anchors", NOON)) == ["anchors-1"]
    made(tmp_path, "run", 2, ended(anchors_run="anchors-1"))
    assert to_go_on(past_runs(tmp_path), "anchors", "anchors", NOON) is None


def test_the_judge_is_held_against_its_first_anchors_until_a_bridge_was_built(tmp_path: Path) -> None:
    for n, hours in enumerate((100, 76, 52, 28), 1):
        made(tmp_path, f"anchors-{n}", hours, purpose="anchors", name="anchors")
    past = past_runs(tmp_path)
    assert ids(reference_of(past, None, "anchors-4")) == ["anchors-1"]
    assert ids(reference_of(past, "anchors-2", "anchors-4")) == ["anchors-2"]
    assert reference_of([], None, None) is None
    # on the night of anchors-3 the judge had moved, and the baseline was graded again
    made(tmp_path, "bridge", 51, purpose="bridge", parent="one", name="nightly-bridge")
    assert ids(reference_of(past_runs(tmp_path), "anchors-1", "anchors-4")) == ["anchors-3"]


def test_a_baseline_counts_as_graded_alike_if_it_or_a_bridge_of_it_is_of_todays_judge(tmp_path: Path) -> None:
    made(tmp_path, "base", 100, judge={"model": "old"})
    made(tmp_path, "bridge", 50, purpose="bridge", parent="base", judge={"model": "new"})
    made(tmp_path, "other", 50, purpose="bridge", parent="another", judge={"model": "new"})
    past = past_runs(tmp_path)
    base = next(one for one in past if one.folder.run_id == "base")

    def is_new(manifest: Any) -> bool:
        return bool(manifest["judge"]["model"] == "new")

    assert ids(graded_alike(past, base, None, is_new)) == ["bridge"]
    assert ids(graded_alike(past, base, None, lambda manifest: not is_new(manifest))) == ["base"]
    # the judge became what it is after that bridge: neither counts
    assert graded_alike(past, base, NOON - timedelta(hours=10), is_new) is None


def test_a_night_whose_replies_could_not_be_read_is_no_reference_and_no_bridge(tmp_path: Path) -> None:
    made(tmp_path, "base", 100)
    made(tmp_path, "poor", 90, purpose="anchors", name="anchors", graded=26)  # of 30: below nine in ten
    made(tmp_path, "poor-bridge", 89, purpose="bridge", parent="base", graded=0)
    past = past_runs(tmp_path)
    assert reference_of(past, "poor", None) is None
    base = next(one for one in past if one.folder.run_id == "base")
    assert ids(graded_alike(past, base, None, lambda manifest: True)) == ["base"]
    made(tmp_path, "good", 50, purpose="anchors", name="anchors", graded=27)
    assert ids(reference_of(past_runs(tmp_path), "poor", None)) == ["good"]


def test_it_is_known_since_when_nights_have_ended_alike(tmp_path: Path) -> None:
    assert ended_before([], "tonight") == (None, None)
    for n, decision in enumerate(("hold", "ship", "hold", "hold")):
        made(tmp_path, f"run-{n}", 100 - 24 * n, ended(decision))
    last, since = ended_before(past_runs(tmp_path), "tonight")
    assert (last, since) == ("hold", NOON - timedelta(hours=52))


# --- the lock ----------------------------------------------------------------------------------------------------

HOLDING = """
import sys, time
from datetime import datetime
from pathlib import Path
from rag_judge.night_lock import night_lock
with night_lock(Path(sys.argv[1]), datetime.now().astimezone()) as lock:
    print(lock.is_ours, flush=True)
    sys.stdin.read()
"""


def holding(archive: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(archive)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    return process


def test_a_second_one_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    archive = tmp_path / "runs"
    process = holding(archive)
    with night_lock(archive, NOON) as lock:
        assert not lock.is_ours
        assert lock.holder is not None
        assert lock.holder["pid"] == process.pid
    assert (archive / HOLDER).exists()
    process.communicate("")
    with night_lock(archive, NOON) as lock:
        assert lock.is_ours
        assert lock.holder is None


def test_the_lock_of_a_killed_process_is_taken_over_and_told(tmp_path: Path) -> None:
    process = holding(tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    with night_lock(tmp_path, NOON) as lock:
        assert lock.is_ours
        assert lock.holder is not None
        assert lock.holder["pid"] == process.pid
        with night_lock(tmp_path, NOON) as second:
            assert not second.is_ours
    assert not (tmp_path / HOLDER).exists()


def test_a_word_about_the_holder_that_is_none_is_no_fault(tmp_path: Path) -> None:
    RunFolder(tmp_path).write_text(HOLDER, "[1, 2")
    with night_lock(tmp_path, NOON) as lock:
        assert (lock.is_ours, lock.holder) == (True, None)
