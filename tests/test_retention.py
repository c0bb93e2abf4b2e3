"""Pruning: which runs stay and why, what of the others goes and what stays, and a prune that is killed half-way."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rag_judge.archive import RunFolder, list_runs, read_run
from rag_judge.errors import InputError
from rag_judge.pins import pin
from rag_judge.pipeline.trend import trend
from rag_judge.retention import Pruned, Retention, RunFacts, fates, prunable, prune_archive
from rag_judge.runs_commands import runs_app
from tests.archived_runs import NOW, SMALL_FILES, TEXT_FILES, date_back, laid_run, tree_of
from tests.trend_runs import manifest_of, summary_of

STAYS = {*SMALL_FILES, "manifest.json", "summary.json", "hit.txt"}
RULES = Retention(keep_last=1, older_than_days=90)


def old(run_id: str, days: float = 100, **facts: Any) -> RunFacts:
    return RunFacts(run_id, facts.pop("status", "complete"), NOW - timedelta(days=days), **facts)


NEWEST = old("newest", -10)  # takes the one place among the last runs


def fate_of(run: RunFacts, rules: Retention = RULES, *others: RunFacts) -> tuple[str, str, str]:
    found = fates([run, *others, NEWEST], NOW, rules)[0]
    return found.action, found.why, found.detail


# --- which runs stay (pure) ------------------------------------------------------------------------------------------


def test_an_old_run_loses_its_texts() -> None:
    assert fate_of(old("a", text_bytes=7, all_bytes=9)) == ("prune", "old", "")
    assert fates([old("a", text_bytes=7, all_bytes=9), NEWEST], NOW, RULES)[0].freed_bytes == 7


def test_whole_removes_it_altogether() -> None:
    whole = replace(RULES, whole=True)
    assert fate_of(old("a"), whole) == ("remove", "old", "")
    assert fates([old("a", text_bytes=7, all_bytes=9), NEWEST], NOW, whole)[0].freed_bytes == 9


@pytest.mark.parametrize("whole", [False, True], ids=["texts", "whole"])
@pytest.mark.parametrize(
    ("facts", "why"),
    [
        pytest.param({"days": 89.99}, "young", id="young"),
        pytest.param({"days": -5}, "young", id="from a clock ahead of ours"),
        pytest.param({"pinned_as": "baseline"}, "pinned", id="baseline"),
        pytest.param({"pinned_as": "kept", "is_pruned": True}, "pinned", id="pinned and pruned"),
        pytest.param({"has_labels": True, "has_sample": True}, "labelled", id="labelled"),
        pytest.param({"has_labels": True}, "labelled", id="labels without a design"),
        pytest.param({"has_sample": True}, "sample", id="a sample"),
        pytest.param({"has_sample": True, "has_edited_sheet": True}, "edited_sheet", id="a sheet that was filled in"),
        pytest.param({"is_link": True}, "link", id="a link"),
        pytest.param({"status": "broken"}, "broken", id="broken"),
        pytest.param({"status": "unfinished", "days": 0.02}, "in_use", id="unfinished, changed half an hour ago"),
        pytest.param({"status": "unfinished", "is_in_use": True}, "in_use", id="unfinished, locked"),
        pytest.param({"status": "unfinished", "days": 5}, "unfinished_young", id="unfinished, young"),
    ],
)
def test_a_run_stays_and_the_reason_is_told(facts: dict[str, Any], why: str, whole: bool) -> None:
    assert fate_of(old("a", **facts), replace(RULES, whole=whole))[:2] == ("keep", why)


def test_the_last_runs_stay_however_old_and_unfinished_ones_take_no_place() -> None:
    runs = [old(f"r{n}", 200 - n) for n in range(6)]
    unfinished = old("z", 150, status="unfinished")
    assert prunable([*runs, unfinished], NOW, replace(RULES, keep_last=2)) == ["r0", "r1", "r2", "r3"]
    assert prunable(runs, NOW, replace(RULES, keep_last=0)) == [f"r{n}" for n in range(6)]
    assert prunable(runs, NOW, replace(RULES, keep_last=60)) == []


def test_the_last_are_told_by_when_they_ended_and_not_by_their_names() -> None:
    runs = [old("2026-05-02-b", 120), old("2026-05-01-a", 110)]  # the first was begun later, and ended earlier
    assert prunable(runs, NOW, RULES) == ["2026-05-02-b"]


def test_exactly_as_old_as_the_limit_is_old() -> None:
    assert fate_of(old("a", 90))[0] == "prune"


def test_an_old_unfinished_run_goes_only_with_whole() -> None:
    run = old("a", status="unfinished")
    assert fate_of(run) == ("keep", "unfinished", "")
    assert fate_of(run, replace(RULES, whole=True)) == ("remove", "old", "")
    in_use = replace(RULES, whole=True, older_than_days=0)
    assert fate_of(old("a", 0.02, status="unfinished"), in_use)[:2] == ("keep", "in_use")


def test_a_sample_that_nobody_labels_is_pruned_when_asked_for_and_a_label_never_is() -> None:
    rules = replace(RULES, unlabelled=True)
    assert fate_of(old("a", has_sample=True), rules)[0] == "prune"
    assert fate_of(old("a", has_sample=True, has_labels=True), rules)[1] == "labelled"
    assert fate_of(old("a", has_sample=True, has_edited_sheet=True), rules)[1] == "edited_sheet"


def test_a_run_that_a_kept_one_is_held_against_stays_and_so_does_one_that_is_named() -> None:
    young = old("night", 3, needs=frozenset({"a"}))
    assert fate_of(old("a"), RULES, young) == ("keep", "needed", "night")
    assert fate_of(old("a"), replace(RULES, keep=frozenset({"a"}))) == ("keep", "asked", "")


def test_what_an_old_run_needs_keeps_nothing_so_that_no_chain_of_nights_stays_for_ever() -> None:
    runs = [old(f"r{n}", 200 - n, needs=frozenset({f"r{n - 1}"})) for n in range(5)]
    # the last one stays and so does what it was held against; that one's own baseline goes
    assert prunable(runs, NOW, RULES) == ["r0", "r1", "r2"]


def test_a_pruned_run_needs_nothing_and_is_not_pruned_again() -> None:
    done = old("done", pinned_as="kept", is_pruned=True, needs=frozenset({"a"}))
    assert fate_of(old("a"), RULES, done)[0] == "prune"
    assert fate_of(old("a", is_pruned=True)) == ("keep", "pruned", "")
    assert fate_of(old("a", is_pruned=True), replace(RULES, whole=True))[0] == "remove"


def test_a_prune_that_was_begun_is_finished_whatever_came_between() -> None:
    half = old("a", is_pruned=True, text_bytes=5, pinned_as="kept")
    assert fate_of(half) == ("prune", "goes_on", "")


# --- what is removed -------------------------------------------------------------------------------------------------


def pruned(archive: Path, **rules: Any) -> Pruned:
    return prune_archive(archive, NOW, **{"keep_last": 1, "older_than_days": 90, **rules})


def whys(found: Pruned) -> dict[str, tuple[str, str]]:
    return {fate.run_id: (fate.action, fate.why) for fate in found.fates}


def test_texts_go_and_numbers_stay(tmp_path: Path) -> None:
    folder = laid_run(tmp_path, "a", 100)
    for name in ("answers.a.jsonl", "answers.b.jsonl", "pairs.csv", "pairs.parquet", "probes.jsonl", "report.md"):
        (folder / name).write_bytes(b"x" * 100)
    for name in ("junit.xml", "notes.txt"):
        (folder / name).write_bytes(b"small")
    laid_run(tmp_path, "b", 1)
    before = tree_of(tmp_path / "b"), tree_of(folder)
    done = pruned(tmp_path)
    assert whys(done) == {"a": ("prune", "old"), "b": ("keep", "last")}
    assert (done.n_pruned, done.freed_bytes) == (1, 100 * (len(TEXT_FILES) + 1 + 6))
    left = tree_of(folder)
    assert left.keys() == STAYS | {"junit.xml", "notes.txt", "pruned.json"}
    assert {name: text for name, text in left.items() if name != "pruned.json"} == {
        name: text for name, text in before[1].items() if name in left
    }
    told = json.loads(left["pruned.json"])
    assert (told["at"], told["bytes"]) == ("2026-12-01T03:00:00+00:00", done.freed_bytes)
    assert {*TEXT_FILES, "prompts", "probes.jsonl"} <= set(told["files"])
    assert tree_of(tmp_path / "b") == before[0]
    assert not (folder / "prompts").exists()


def test_a_second_prune_finds_nothing_to_do(tmp_path: Path) -> None:
    laid_run(tmp_path, "a", 100)
    laid_run(tmp_path, "b", 1)
    pruned(tmp_path)
    before = tree_of(tmp_path)
    again = pruned(tmp_path)
    assert (again.n_pruned, whys(again)["a"]) == (0, ("keep", "pruned"))
    assert tree_of(tmp_path) == before


def test_a_dry_run_says_the_same_byte_for_byte_and_removes_nothing(tmp_path: Path) -> None:
    laid_run(tmp_path, "2026-01-01-old", 300)
    laid_run(tmp_path, "2026-01-02-unfinished", 200, status="incomplete")
    laid_run(tmp_path, "2026-01-03-kept", 200)
    laid_run(tmp_path, "2026-11-30-new", 1)
    pin(tmp_path, "2026-01-03-kept", "kept", None, NOW)
    (tmp_path / ".removed-2025-01-01-x").mkdir()
    before = tree_of(tmp_path)
    command = ["prune", "--out", str(tmp_path), "--older-than", "90", "--keep", "1", "--whole"]
    dry = CliRunner().invoke(runs_app, [*command, "--dry-run"])
    assert tree_of(tmp_path) == before
    real = CliRunner().invoke(runs_app, command)
    assert (dry.exit_code, real.exit_code) == (0, 0)
    assert dry.stdout == real.stdout
    assert "nothing was removed" in dry.stderr
    assert real.stderr == ""
    assert {run.run_id for run in list_runs(tmp_path)} == {"2026-01-03-kept", "2026-11-30-new"}
    assert "2026-01-03-kept  stays: pinned as kept" in real.stdout
    assert "2025-01-01-x  removed, 0.0 MB (going on" in real.stdout
    assert not (tmp_path / ".removed-2025-01-01-x").exists()


def test_labels_and_their_sample_are_never_removed(tmp_path: Path) -> None:
    for name, labels in (("drawn", ""), ("labelled", "{}\n")):
        review = laid_run(tmp_path, name, 100) / "review"
        review.mkdir()
        (review / "design.json").write_text("{}", encoding="utf-8")
        (review / "labels.jsonl").write_text(labels, encoding="utf-8")
        (review / "sheet-li.xlsx").write_bytes(b"sheet")
        date_back(review, 100)
    laid_run(tmp_path, "new", 1)
    before = tree_of(tmp_path)
    assert whys(pruned(tmp_path, whole=True)) == {
        "drawn": ("keep", "sample"),
        "labelled": ("keep", "labelled"),
        "new": ("keep", "last"),
    }
    assert tree_of(tmp_path) == before
    done = pruned(tmp_path, unlabelled=True)
    assert whys(done)["drawn"] == ("prune", "old")
    assert not (tmp_path / "drawn" / "review").exists()  # its sheets show what users asked
    assert {k: v for k, v in tree_of(tmp_path).items() if not k.startswith("drawn/")} == {
        k: v for k, v in before.items() if not k.startswith("drawn/")
    }


def test_a_sheet_that_somebody_fills_in_keeps_its_run(tmp_path: Path) -> None:
    review = laid_run(tmp_path, "a", 100) / "review"
    review.mkdir()
    for name in ("design.json", "sheet-li.xlsx"):
        (review / name).write_bytes(b"{}")
    date_back(review, 100)
    changed = (NOW - timedelta(days=95)).timestamp()
    os.utime(review / "sheet-li.xlsx", (changed, changed))
    laid_run(tmp_path, "new", 1)
    assert whys(pruned(tmp_path, unlabelled=True, whole=True))["a"] == ("keep", "edited_sheet")


def test_what_nights_and_bridges_name_is_needed(tmp_path: Path) -> None:
    for run_id in ("baseline", "alike", "anchors", "reference", "compared", "bridged", "parent", "nobody"):
        laid_run(tmp_path, run_id, 200)
    night = laid_run(tmp_path, "night", 2)
    nightly = {"baseline": "baseline", "compared_with": "alike", "anchors_run": "anchors"}
    for name, tree in (
        ("nightly.json", nightly),
        ("anchors.json", {"reference": "reference", "anchors_run": None}),
        ("comparison.json", {"a": "compared", "b": "night"}),
    ):
        (night / name).write_text(json.dumps(tree), encoding="utf-8")
    laid_run(tmp_path, "bridge", 3, purpose="bridge", parent="bridged")
    laid_run(tmp_path, "regraded", 3, parent="parent")  # holds copies of all that it was made of
    found = whys(pruned(tmp_path, dry_run=True))
    needed = {run_id for run_id, (_, why) in found.items() if why == "needed"}
    assert needed == {"baseline", "alike", "anchors", "reference", "compared", "bridged"}
    assert {run_id for run_id, (action, _) in found.items() if action == "prune"} == {"parent", "nobody"}


def test_a_run_that_a_process_is_going_on_with_is_let_alone(tmp_path: Path) -> None:
    folder = laid_run(tmp_path, "a", 100, status="incomplete")
    (folder / "sent.ids").touch()
    date_back(folder, 100)
    fd = os.open(folder / "sent.ids", os.O_WRONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    assert whys(pruned(tmp_path, whole=True))["a"] == ("keep", "in_use")
    os.close(fd)
    assert whys(pruned(tmp_path, whole=True))["a"] == ("remove", "old")
    assert list_runs(tmp_path) == []


def test_an_unfinished_run_is_as_old_as_its_last_change(tmp_path: Path) -> None:
    folder = laid_run(tmp_path, "a", 100, status="incomplete")
    changed = (NOW - timedelta(minutes=30)).timestamp()
    os.utime(folder / "calls.jsonl", (changed, changed))
    assert whys(pruned(tmp_path, whole=True, older_than_days=0))["a"] == ("keep", "in_use")


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param({"manifest.json": "{"}, id="manifest"),
        pytest.param({"manifest.json": '{"format_version": 99, "run_id": "a", "status": "complete"}'}, id="newer"),
        pytest.param({"nightly.json": "{"}, id="a file that may name others"),
    ],
)
def test_a_run_that_cannot_be_read_stays(tmp_path: Path, damage: dict[str, str]) -> None:
    folder = laid_run(tmp_path, "a", 100)
    for name, text in damage.items():
        (folder / name).write_text(text, encoding="utf-8")
    assert whys(pruned(tmp_path, whole=True, keep_last=0)) == {"a": ("keep", "broken")}


@pytest.mark.parametrize("said", [None, "yesterday", 3], ids=["missing", "no date", "a number"])
def test_without_a_date_a_run_is_as_old_as_its_manifest(tmp_path: Path, said: object) -> None:
    laid_run(tmp_path, "a", 100, finished_at=said, started_at=said)
    laid_run(tmp_path, "b", 80, finished_at=said, started_at=said)
    assert whys(pruned(tmp_path, keep_last=0)) == {"a": ("prune", "old"), "b": ("keep", "young")}


def test_a_date_without_a_zone_is_taken_as_local(tmp_path: Path) -> None:
    laid_run(tmp_path, "a", 100, finished_at="2026-08-01T00:00:00")
    assert whys(pruned(tmp_path, keep_last=0))["a"] == ("prune", "old")


def test_with_pins_that_cannot_be_read_nothing_is_removed(tmp_path: Path) -> None:
    laid_run(tmp_path, "a", 100)
    (tmp_path / "pins.json").write_text("{", encoding="utf-8")
    before = tree_of(tmp_path)
    with pytest.raises(InputError, match=r"pins\.json: not valid JSON"):
        pruned(tmp_path, keep_last=0)
    assert tree_of(tmp_path) == before


def test_nothing_outside_the_archive_is_removed(tmp_path: Path) -> None:
    archive, elsewhere = tmp_path / "runs", tmp_path / "elsewhere"
    there = laid_run(elsewhere, "linked", 100)
    folder = laid_run(archive, "a", 100)
    (archive / "linked").symlink_to(there)
    shutil.rmtree(folder / "prompts")
    (folder / "prompts").symlink_to(there / "prompts")
    (folder / "answers.jsonl").unlink()
    (folder / "answers.jsonl").symlink_to(there / "answers.jsonl")
    before = tree_of(elsewhere)
    assert whys(pruned(archive, keep_last=0)) == {"a": ("prune", "old"), "linked": ("keep", "link")}
    assert tree_of(elsewhere) == before
    assert not (folder / "prompts").is_symlink()
    assert whys(pruned(archive, keep_last=0, whole=True))["a"] == ("remove", "old")
    assert tree_of(elsewhere) == before


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"older_than_days": -1}, "--older-than: found -1"),
        ({"keep_last": -3}, "--keep: found -3"),
        ({"older_than_days": 10**9}, "--older-than: found 1000000000"),
        ({"older_than_days": float("nan")}, "--older-than: found nan"),
    ],
)
def test_a_limit_that_is_none_is_refused(tmp_path: Path, rules: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        pruned(tmp_path, **rules)


def test_an_archive_that_is_not_there_has_nothing_to_prune(tmp_path: Path) -> None:
    assert pruned(tmp_path / "nowhere").fates == []


# --- a prune that is killed ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_left", range(len(TEXT_FILES) + 2))
def test_a_prune_that_was_killed_anywhere_goes_on_to_the_same_end(tmp_path: Path, n_left: int) -> None:
    """As a kill leaves it: `pruned.json` stands, and the last so many of the texts are still there."""
    plain, killed = tmp_path / "plain", tmp_path / "killed"
    for archive in (plain, killed):
        laid_run(archive, "a", 100)
        laid_run(archive, "b", 1)
    texts = ["prompts", *TEXT_FILES]
    pruned(plain)
    shutil.copyfile(plain / "a" / "pruned.json", killed / "a" / "pruned.json")
    for name in texts[: len(texts) - n_left]:
        shutil.rmtree(killed / "a" / name) if name == "prompts" else (killed / "a" / name).unlink()
    with pytest.raises(InputError, match="pruned on 2026-12-01"):
        read_run(killed / "a")
    done = prune_archive(killed, NOW + timedelta(days=1), keep_last=1)
    assert done.n_pruned == (1 if n_left else 0)
    assert tree_of(killed) == tree_of(plain)


def test_a_removal_that_was_killed_leaves_no_run_and_is_finished_by_the_next_prune(tmp_path: Path) -> None:
    laid_run(tmp_path, "a", 100).rename(tmp_path / ".removed-a")
    laid_run(tmp_path, "b", 1)
    assert [run.run_id for run in list_runs(tmp_path)] == ["b"]
    done = pruned(tmp_path)
    assert (done.n_pruned, whys(done)["a"]) == (1, ("remove", "goes_on"))
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_labels_that_came_between_are_kept_when_a_killed_prune_goes_on(tmp_path: Path) -> None:
    folder = laid_run(tmp_path, "a", 100)
    (folder / "pruned.json").write_text('{"at": "2026-11-30"}', encoding="utf-8")
    (folder / "review").mkdir()
    for name in ("design.json", "labels.jsonl"):
        (folder / "review" / name).write_text("{}\n", encoding="utf-8")
    assert whys(pruned(tmp_path, keep_last=0))["a"] == ("prune", "goes_on")
    assert (folder / "review" / "labels.jsonl").read_text(encoding="utf-8") == "{}\n"
    assert not (folder / "answers.jsonl").exists()


# --- after it --------------------------------------------------------------------------------------------------------


def test_lists_and_trends_go_on_with_pruned_runs(tmp_path: Path) -> None:
    for day, run_id in ((1, "2026-03-01-nightly"), (2, "2026-03-02-nightly")):
        tree = {name: value for name, value in manifest_of(run_id, day).items() if name != "run_id"}
        folder = laid_run(tmp_path, run_id, 200 - day, **tree)
        RunFolder(folder).write_json("summary.json", summary_of(60))
        for name in ("bias.json", "anchors.json"):
            (folder / name).unlink()
    before = trend(tmp_path)
    assert pruned(tmp_path, keep_last=0).n_pruned == 2
    assert trend(tmp_path) == before
    verified = CliRunner().invoke(runs_app, ["verify", "--out", str(tmp_path)])
    assert (verified.exit_code, verified.stdout.count("texts pruned on")) == (0, 2)
    assert [point.run_id for point in before.points] == ["2026-03-01-nightly", "2026-03-02-nightly"]
    told = CliRunner().invoke(runs_app, ["list", "--out", str(tmp_path)]).stdout
    assert told.count("texts pruned on 2026-12-01") == 2
    shown = CliRunner().invoke(runs_app, ["show", "2026-03-01-nightly", "--out", str(tmp_path)])
    assert (shown.exit_code, "a line" in shown.stdout) == (0, True)
    assert "texts pruned on 2026-12-01" in shown.stdout


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_reason_has_its_words(lang: str) -> None:
    from rag_judge.runs_words import prune_lines

    reasons: list[RunFacts] = [
        *(old("a", pinned_as="kept"), old("b", has_labels=True), old("c", has_sample=True), old("d", is_link=True)),
        *(old("e", status="broken"), old("f", status="unfinished"), old("g", 1, status="unfinished")),
        *(old("h", is_in_use=True, status="unfinished"), old("i", is_pruned=True), old("j"), old("k", 2)),
        *(old("l", is_pruned=True, text_bytes=1), old("m", has_sample=True, has_edited_sheet=True)),
        *(old("n"), old("o", 3, needs=frozenset({"n"})), old("p"), NEWEST),
    ]
    found = fates(reasons, NOW, replace(RULES, keep=frozenset({"p"})))
    lines = list(prune_lines(Pruned(found, dry_run=False), lang))
    assert len(lines) == len(reasons) + 1
    assert len(set(found)) == len(found)
    assert not any("{" in line for line in lines)


def test_for_machines_each_run_stands_with_its_fate(tmp_path: Path) -> None:
    laid_run(tmp_path, "a", 5000)
    ended = CliRunner().invoke(runs_app, ["prune", "--keep", "0", "--json", "--out", str(tmp_path)])
    told = json.loads(ended.stdout)
    assert (told["n_pruned"], told["dry_run"], told["fates"][0]["action"]) == (1, False, "prune")
    assert told["freed_bytes"] == 100 * (len(TEXT_FILES) + 1)
