"""Pins: one file by hand or by command, roles that one run can have, and what is said when a role moves."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rag_judge.archive import RunFolder
from rag_judge.errors import InputError
from rag_judge.pins import PINS, Pin, baseline, pin, pins, unpin
from rag_judge.runs_commands import runs_app
from tests.archived_runs import NOW, laid_run, tree_of

AT = "2026-12-01T03:00:00+00:00"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    for run_id in ("2026-01-01-a", "2026-01-02-b"):
        laid_run(tmp_path, run_id)
    return tmp_path


def by_hand(archive: Path, text: str) -> Path:
    path = archive / PINS
    path.write_text(text, encoding="utf-8")
    return path


def test_an_archive_without_pins_has_none(tmp_path: Path) -> None:
    assert (pins(tmp_path), baseline(tmp_path)) == ({}, None)


def test_a_pin_is_kept_beside_the_runs_and_touches_no_run(archive: Path) -> None:
    before = tree_of(archive / "2026-01-01-a")
    done = pin(archive, "2026-01-01-a", "kept", "for the audit", NOW)
    assert (done.before, done.taken_from) == (None, None)
    assert pins(archive) == {"2026-01-01-a": Pin("kept", "for the audit", AT)}
    assert tree_of(archive / "2026-01-01-a") == before
    assert (archive / PINS).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("role", ["baseline", "anchors"])
def test_a_role_that_one_run_can_have_moves_and_that_is_said(tmp_path: Path, role: str) -> None:
    purpose = "anchors" if role == "anchors" else None
    for run_id in ("2026-01-01-a", "2026-01-02-b"):
        laid_run(tmp_path, run_id, purpose=purpose)
    pin(tmp_path, "2026-01-01-a", role, None, NOW)
    moved = pin(tmp_path, "2026-01-02-b", role, None, NOW)
    assert moved.taken_from == "2026-01-01-a"
    assert pins(tmp_path) == {"2026-01-02-b": Pin(role, None, AT)}


def test_any_number_of_runs_is_kept(archive: Path) -> None:
    for run_id in ("2026-01-01-a", "2026-01-02-b"):
        assert pin(archive, run_id, "kept", None, NOW).taken_from is None
    assert len(pins(archive)) == 2


def test_pinning_again_changes_the_role_and_says_what_it_was(archive: Path) -> None:
    pin(archive, "2026-01-01-a", "baseline", "first", NOW)
    again = pin(archive, "2026-01-01-a", "kept", None, NOW)
    assert (again.before, again.taken_from) == (Pin("baseline", "first", AT), None)
    assert baseline(archive) is None


def test_the_baseline_is_the_run_pinned_as_such(archive: Path) -> None:
    pin(archive, "2026-01-02-b", "baseline", None, NOW)
    assert baseline(archive) == RunFolder(archive / "2026-01-02-b")


def test_a_baseline_that_is_gone_is_said_and_not_passed_over(archive: Path) -> None:
    by_hand(archive, '{"2025-01-01-old": "baseline"}')
    with pytest.raises(InputError, match=r"2025-01-01-old is pinned as baseline and is not in the archive.*--remove"):
        baseline(archive)


@pytest.mark.parametrize(
    ("role", "manifest", "words"),
    [
        pytest.param("baseline", {"status": "incomplete"}, "not complete", id="unfinished"),
        pytest.param("baseline", {"kind": "pairwise"}, "a comparison of two runs", id="comparison"),
        pytest.param("baseline", {"purpose": "anchors"}, "purpose anchors cannot be the baseline", id="anchors"),
        pytest.param("baseline", {"purpose": "bridge"}, "purpose bridge cannot be the baseline", id="bridge"),
        pytest.param("anchors", {}, "not a run of the judge's anchors", id="ordinary run"),
        pytest.param("reference", {}, "expected one of baseline, anchors, kept", id="no such role"),
    ],
)
def test_a_run_that_cannot_have_a_role_is_refused(
    tmp_path: Path, role: str, manifest: dict[str, Any], words: str
) -> None:
    laid_run(tmp_path, "r", **manifest)
    with pytest.raises(InputError, match=words):
        pin(tmp_path, "r", role, None, NOW)
    assert not (tmp_path / PINS).exists()


def test_a_pruned_run_is_no_baseline_but_can_be_kept(archive: Path) -> None:
    (archive / "2026-01-01-a" / "pruned.json").write_text('{"at": "2026-11-01"}', encoding="utf-8")
    with pytest.raises(InputError, match="pruned on 2026-11-01"):
        pin(archive, "2026-01-01-a", "baseline", None, NOW)
    assert pin(archive, "2026-01-01-a", "kept", None, NOW).pin.role == "kept"


@pytest.mark.parametrize("run_id", ["nowhere", "../elsewhere", "", ".", "sub/2026-01-01-a"])
def test_only_a_run_of_the_archive_is_pinned(archive: Path, run_id: str) -> None:
    with pytest.raises(InputError, match="no run"):
        pin(archive, run_id, "kept", None, NOW)


def test_a_pin_is_removed_also_of_a_run_that_is_gone(archive: Path) -> None:
    by_hand(archive, '{"2025-01-01-old": {"role": "kept"}, "2026-01-01-a": {"role": "kept"}}')
    assert unpin(archive, "2025-01-01-old") == Pin("kept")
    assert list(pins(archive)) == ["2026-01-01-a"]
    with pytest.raises(InputError, match="2025-01-01-old is not pinned"):
        unpin(archive, "2025-01-01-old")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("{}", {}, id="empty"),
        pytest.param('{"a": "kept"}', {"a": Pin("kept")}, id="a role alone"),
        pytest.param('{"a": {"role": "kept"}}', {"a": Pin("kept")}, id="no note"),
        pytest.param('{"a": {"role": "kept", "note": null, "by": "li"}}', {"a": Pin("kept")}, id="more keys"),
        pytest.param(
            '\ufeff{"夜": {"role": "kept", "note": "为审计"}}', {"夜": Pin("kept", "为审计")}, id="a mark first"
        ),
    ],
)
def test_a_file_written_by_hand_is_read(tmp_path: Path, text: str, found: dict[str, Pin]) -> None:
    by_hand(tmp_path, text)
    assert pins(tmp_path) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", "not valid JSON", id="empty file"),
        pytest.param('{"a": "kept",}', "not valid JSON", id="a comma too many"),
        pytest.param('["a"]', r'found \["a"\], expected an object', id="a list"),
        pytest.param(
            '{"a": "basline"}', 'a: role: found "basline", expected one of baseline, anchors, kept', id="typo"
        ),
        pytest.param('{"a": 3}', 'a: found 3, expected {"role"', id="a number"),
        pytest.param('{"a": {"note": "x"}}', "a: role: found null", id="no role"),
        pytest.param('{"a": {"role": ["kept"]}}', "a: role: found", id="a list of roles"),
        pytest.param(
            '{"a": {"role": "kept", "note": 3}}', "a: note: found 3, expected a text", id="a note that is none"
        ),
        pytest.param('{"runs/a": "kept"}', "expected the id of a run", id="a path"),
        pytest.param('{"a": "kept", "a": "baseline"}', "'a' stands there twice", id="a run twice"),
        pytest.param('{"a": "baseline", "b": "baseline"}', "a and b are pinned as baseline", id="two baselines"),
        pytest.param("[" * 100_000, "not valid JSON", id="nested without end"),
    ],
)
def test_a_file_that_says_what_no_pin_can_be_is_named_with_what_was_found(
    tmp_path: Path, text: str, words: str
) -> None:
    path = by_hand(tmp_path, text)
    with pytest.raises(InputError, match=words) as refused:
        pins(tmp_path)
    assert str(refused.value).startswith(str(path))


def test_a_broken_file_is_not_written_over(archive: Path) -> None:
    by_hand(archive, '{"2026-01-01-a": "kept"')
    with pytest.raises(InputError, match="not valid JSON"):
        pin(archive, "2026-01-02-b", "kept", None, NOW)
    assert (archive / PINS).read_text(encoding="utf-8") == '{"2026-01-01-a": "kept"'


def test_pins_that_are_made_at_once_are_all_kept(tmp_path: Path) -> None:
    ids = [f"run-{n}" for n in range(12)]
    for run_id in ids:
        laid_run(tmp_path, run_id)
    threads = [threading.Thread(target=pin, args=(tmp_path, run_id, "kept", None, NOW)) for run_id in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(pins(tmp_path)) == sorted(ids)


# --- the command -----------------------------------------------------------------------------------------------------


def said(*arguments: str | Path, code: int = 0) -> str:
    ended = CliRunner().invoke(runs_app, [str(argument) for argument in arguments])
    assert ended.exit_code == code, ended.output
    return ended.output


def test_the_command_pins_moves_and_removes_and_lists_show_it(archive: Path) -> None:
    at = ("--out", archive)
    assert said("pin", "2026-01-01-a", "--as", "baseline", "--note", "as released", *at) == (
        "2026-01-01-a is pinned as baseline\n"
    )
    assert "2026-01-01-a  complete  cases=1  judge=none  pinned as baseline (as released)" in said("list", *at)
    assert "pinned as baseline (as released)" in said("show", "2026-01-01-a", *at)
    moved = said("pin", archive / "2026-01-02-b", "--as", "baseline", *at)
    assert moved == "2026-01-02-b is pinned as baseline; 2026-01-01-a was it until now, and is pinned no more\n"
    assert "不再固定" in said("pin", "2026-01-02-b", "--remove", "--lang", "zh", *at)
    assert "pinned" not in said("list", *at)


def test_for_machines_pins_stand_beside_the_manifests(archive: Path) -> None:
    at = ("--out", archive, "--json")
    told = json.loads(said("pin", "2026-01-01-a", *at))
    assert (told["run"], told["pin"]["role"], told["before"], told["taken_from"]) == (
        "2026-01-01-a",
        "kept",
        None,
        None,
    )
    listed = json.loads(said("list", *at))
    assert {run_id: one["role"] for run_id, one in listed["pins"].items()} == {"2026-01-01-a": "kept"}
    assert json.loads(said("show", "2026-01-01-a", *at))["pin"]["role"] == "kept"
    assert json.loads(said("show", "2026-01-02-b", *at))["pin"] is None


def test_broken_pins_hide_no_run_and_a_pinned_run_that_is_gone_is_named(archive: Path) -> None:
    by_hand(archive, '{"2025-01-01-old": "kept"}')
    assert "pinned as kept, but not in the archive: 2025-01-01-old" in said("list", "--out", archive)
    by_hand(archive, "{")
    listed = said("list", "--out", archive)
    assert "2026-01-01-a  complete" in listed
    assert "broken: " in listed
    assert "warning: " in said("show", "2026-01-01-a", "--out", archive)


def test_a_run_is_pinned_where_one_stands_in_it(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(archive / "2026-01-01-a")
    said("pin", ".")
    assert list(pins(archive)) == ["2026-01-01-a"]


def test_control_characters_of_a_note_reach_no_terminal(archive: Path) -> None:
    pin(archive, "2026-01-01-a", "kept", "a\x1b[31m\nb", NOW)
    assert "\x1b" not in said("list", "--out", archive)
    assert "(a [31m b)" in said("list", "--out", archive)


def test_remove_goes_with_nothing_else(archive: Path) -> None:
    ended = CliRunner().invoke(runs_app, ["pin", "2026-01-01-a", "--remove", "--as", "kept", "--out", str(archive)])
    assert isinstance(ended.exception, InputError)
