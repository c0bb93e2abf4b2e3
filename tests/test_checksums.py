"""A finished run's files against its manifest: what is listed, what a change, a loss and an addition are called."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rag_judge.archive import RunFolder
from rag_judge.checksums import checksums_of, verify
from rag_judge.errors import InputError
from rag_judge.pipeline import PairwiseRequest, RunRequest, World, pairwise, regrade, run
from rag_judge.runs_commands import runs_app
from rag_judge.settings import load_settings
from tests.archived_runs import laid_run, tree_of
from tests.eval_sets import numbered_files, verdict
from tests.servers import JudgeServer

WORLD = World({}, lambda: datetime(2026, 1, 31, tzinfo=UTC), time.monotonic)
OF_A_RUN = {
    *("answers.jsonl", "calls.jsonl", "cases.csv", "cases.parquet", "hit.txt", "questions.snapshot.jsonl"),
    *("request.json", "summary.json"),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunFolder]:
    folder = tmp_path_factory.mktemp("finished")
    with JudgeServer(lambda _: verdict()) as server:
        flags = {"out": str(folder / "runs"), "base_url": server.base_url, "model": "m", "name": "a", "repeats": 1}
        settings = load_settings(None, {}, flags, folder=None)
        yield run(RunRequest(settings, *numbered_files(folder, 3)), WORLD).folder


@pytest.fixture
def copied(finished: RunFolder, tmp_path: Path) -> RunFolder:
    """A run of its own, to be damaged."""
    return RunFolder(Path(shutil.copytree(finished.path, tmp_path / "runs" / finished.run_id)))


def changed(folder: RunFolder, change: Callable[[dict[str, Any]], object]) -> RunFolder:
    """The run with another manifest."""
    manifest = folder.read_json("manifest.json")
    change(manifest)
    folder.write_json("manifest.json", manifest)
    return folder


def test_the_manifest_holds_hash_and_bytes_of_every_file_that_is_never_written_again(finished: RunFolder) -> None:
    files = finished.manifest()["files"]
    of_prompts = {name for name in files if name.startswith("prompts/")}
    assert files.keys() - of_prompts == OF_A_RUN
    assert {"prompts/passfail/prompt.toml", "prompts/passfail/en.j2", "prompts/passfail/zh.j2"} <= of_prompts
    for name, known in files.items():
        text = (finished.path / name).read_bytes()
        assert known == {"sha256": hashlib.sha256(text).hexdigest(), "bytes": len(text)}


def test_a_run_as_it_ended_is_ok(finished: RunFolder) -> None:
    found = verify(finished)
    assert (found.state, found.problems, found.extra) == ("ok", (), ())
    assert found.n_files == len(finished.manifest()["files"])
    assert found.n_bytes == sum((finished.path / name).stat().st_size for name in finished.manifest()["files"])


def test_a_regraded_run_and_a_comparison_list_theirs(finished: RunFolder, tmp_path: Path) -> None:
    again = regrade(finished, WORLD, {"out": str(tmp_path), "name": "again"}).result.folder
    assert verify(again).state == "ok"
    with JudgeServer(lambda _: json.dumps({"winner": "A", "reason": "r"})) as server:
        flags = {"out": str(tmp_path), "base_url": server.base_url, "model": "m", "repeats": 1, "judge": "pairwise"}
        settings = load_settings(None, {}, flags, folder=None)
        pair = pairwise(PairwiseRequest(settings, finished, again), WORLD).folder
    assert {"answers.a.jsonl", "answers.b.jsonl", "pairs.csv", "pairs.parquet"} <= pair.manifest()["files"].keys()
    assert verify(pair).state == "ok"


def test_what_is_made_later_is_neither_damage_nor_unknown(copied: RunFolder) -> None:
    for name in ("bias.json", "comparison.json", "gate.json", "anchors.json", "nightly.json"):
        copied.write_json(name, {})
    for name in ("report.html", "report.md", "junit.xml"):
        copied.write_text(name, "new")
    (copied.path / "review").mkdir()
    (copied.path / "review" / "labels.jsonl").write_text("{}", encoding="utf-8")
    found = verify(copied)
    assert (found.state, found.extra) == ("ok", ())


def one_byte_more(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def other_bytes(path: Path) -> None:
    path.write_bytes(b"#" * path.stat().st_size)


@pytest.mark.parametrize("name", [*sorted(OF_A_RUN), "prompts/passfail/en.j2"])
@pytest.mark.parametrize(
    ("damage", "kind", "found"),
    [
        pytest.param(one_byte_more, "changed", "bytes", id="longer"),
        pytest.param(other_bytes, "changed", "sha256", id="same length"),
        pytest.param(Path.unlink, "missing", "no such file", id="missing"),
    ],
)
def test_one_damaged_file_is_named_with_what_was_found_and_expected(
    copied: RunFolder, name: str, damage: Callable[[Path], None], kind: str, found: str
) -> None:
    known = copied.manifest()["files"][name]
    damage(copied.path / name)
    verified = verify(copied)
    assert verified.state == "damaged"
    (problem,) = verified.problems
    assert (problem.file, problem.kind) == (name, kind)
    assert found in problem.found
    assert problem.expected == (f"sha256 {known['sha256']}" if found == "sha256" else f"{known['bytes']} bytes")


def test_a_file_that_is_none_of_the_runs_is_told_and_is_no_damage(copied: RunFolder) -> None:
    for name in ("notes.txt", "prompts/passfail/fr.j2", ".hit.txt.part", "answers.a.jsonl"):
        (copied.path / name).write_text("x", encoding="utf-8")
    found = verify(copied)
    assert found.state == "ok"
    assert found.extra == (".hit.txt.part", "answers.a.jsonl", "notes.txt", "prompts/passfail/fr.j2")


# --- the manifest itself ---------------------------------------------------------------------------------------------


def test_a_manifest_that_is_no_json_is_damage(copied: RunFolder) -> None:
    (copied.path / "manifest.json").write_text("{", encoding="utf-8")
    (problem,) = verify(copied).problems
    assert (verify(copied).state, problem.file, problem.kind) == ("damaged", "manifest.json", "unreadable")


@pytest.mark.parametrize(
    ("change", "found"),
    [
        pytest.param(lambda m: m.update(files=[]), "files: list", id="no object"),
        pytest.param(lambda m: m["files"].pop("answers.jsonl"), "files: no answers.jsonl", id="one file less"),
        pytest.param(lambda m: m.update(files={}), "files: no answers.jsonl", id="none left"),
        pytest.param(lambda m: m["files"].update({"../x": {}}), "'../x'", id="a path out of the folder"),
        pytest.param(lambda m: m["files"].update({"/etc/hostname": {}}), "'/etc/hostname'", id="an absolute path"),
        pytest.param(lambda m: m["files"].update({"report.html": {}}), "'report.html'", id="a file that may change"),
        pytest.param(lambda m: m["files"]["hit.txt"].update(sha256="zz"), "'hit.txt'", id="no hash"),
        pytest.param(lambda m: m["files"]["hit.txt"].update(bytes=True), "'hit.txt'", id="no number"),
        pytest.param(lambda m: m["files"].update({"hit.txt": "x"}), "'hit.txt'", id="no entry"),
        pytest.param(
            lambda m: m["files"]["answers.jsonl"].update(sha256="0" * 64), "answers.jsonl: two hashes", id="answers"
        ),
        pytest.param(
            lambda m: m["eval_set"].update(snapshot_sha256="0" * 64), "snapshot.jsonl: two hashes", id="snapshot"
        ),
    ],
)
def test_a_manifest_that_contradicts_itself_was_changed(
    copied: RunFolder, change: Callable[[dict[str, Any]], object], found: str
) -> None:
    verified = verify(changed(copied, change))
    assert (verified.state, verified.problems[0].file) == ("damaged", "manifest.json")
    assert any(found in problem.found for problem in verified.problems)


def test_a_run_of_a_version_that_kept_no_checksums_cannot_be_verified_and_is_no_error(copied: RunFolder) -> None:
    assert verify(changed(copied, lambda m: m.pop("files"))).state == "no_checksums"


@pytest.mark.parametrize("version", [0, 2])
def test_a_run_of_another_format_cannot_be_verified_and_is_no_damage(copied: RunFolder, version: int) -> None:
    found = verify(changed(copied, lambda m: m.update(format_version=version)))
    assert (found.state, f"format version {version}" in found.detail) == ("unreadable_format", True)


def test_an_unfinished_run_has_nothing_to_be_held_against(tmp_path: Path) -> None:
    folder = RunFolder(laid_run(tmp_path, "r", status="incomplete"))
    (folder.path / "answers.part.jsonl").write_text("x", encoding="utf-8")
    (folder.path / "sent.ids").write_text("x", encoding="utf-8")
    assert (verify(folder).state, verify(folder).extra) == ("unfinished", ())


def test_a_pruned_run_is_verified_in_what_stays(copied: RunFolder) -> None:
    copied.write_json("pruned.json", {"at": "2026-12-01T03:00:00+00:00"})
    for name in ("answers.jsonl", "calls.jsonl", "cases.csv", "cases.parquet", "questions.snapshot.jsonl"):
        (copied.path / name).unlink()
    found = verify(copied)
    assert (found.state, found.detail, found.problems) == ("pruned", "2026-12-01", ())
    one_byte_more(copied.path / "summary.json")
    assert verify(copied).state == "damaged"


def test_a_large_file_is_not_held_in_memory(tmp_path: Path) -> None:
    folder = RunFolder(laid_run(tmp_path, "r"))
    with folder.journal.open("wb") as file:
        file.truncate(300_000_000)
    tracemalloc.start()
    assert checksums_of(folder)["calls.jsonl"]["bytes"] == 300_000_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_verifies_all_or_the_named_and_ends_with_2_only_where_one_is_damaged(copied: RunFolder) -> None:
    archive = copied.path.parent
    other = RunFolder(Path(shutil.copytree(copied.path, archive / "2026-02-01-older")))
    changed(other, lambda m: m.pop("files"))
    at = ["--out", str(archive)]
    fine = CliRunner().invoke(runs_app, ["verify", *at])
    assert fine.exit_code == 0, fine.output
    assert f"{copied.run_id}  ok: " in fine.output
    assert "2026-02-01-older  cannot be verified" in fine.output
    assert "2 runs: 1 ok, 0 damaged, 1 cannot be verified" in fine.output
    other_bytes(copied.path / "hit.txt")
    bad = CliRunner().invoke(runs_app, ["verify", "--json", *at])
    told = json.loads(bad.stdout)
    assert (told["exit_code"], [one["state"] for one in told["runs"]]) == (2, ["damaged", "no_checksums"])
    assert told["runs"][0]["problems"][0]["file"] == "hit.txt"
    assert isinstance(bad.exception, InputError)
    assert "1 of 2 runs are damaged, the first in hit.txt of" in str(bad.exception)
    assert CliRunner().invoke(runs_app, ["verify", other.run_id, *at]).exit_code == 0


def test_verifying_changes_nothing(copied: RunFolder) -> None:
    before = tree_of(copied.path)
    verify(copied)
    assert tree_of(copied.path) == before
