"""Runs of other versions: an older one is read or said what to do with, a newer one says so, and a pruned one too."""

from __future__ import annotations

import json
import shlex
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from rag_judge.archive import RunFolder, case_rows_of, pair_rows_of, read_run
from rag_judge.cli import app
from rag_judge.errors import InputError
from rag_judge.pipeline import PairwiseRequest, RunRequest, World, pairwise, run
from rag_judge.pipeline.bias import judge_bias
from rag_judge.pipeline.compare import compare
from rag_judge.pipeline.gate import gate
from rag_judge.pipeline.report import write_joined_report
from rag_judge.pipeline.review import ReviewedRun
from rag_judge.pipeline.trend import trend
from rag_judge.retention import prune_archive
from rag_judge.run_format import in_format
from rag_judge.settings import load_settings
from tests.eval_sets import numbered_files, verdict
from tests.labelled_runs import label_all
from tests.servers import JudgeServer

NOW = datetime(2026, 1, 31, tzinfo=UTC)
WORLD = World({}, lambda: NOW, time.monotonic)
N = 12
# What the first versions did not know; what they wrote had no `files`, either.
LATER_COLUMNS = (
    *("undecided", "alike", "judges", "judges_disagree", "confidence", "n_unsupported_figures", "probe", "suspicious"),
    "answer_no",
)
LATER_KEYS = ("files", "same_family", "purpose", "corpus", "kind", "vary", "judges")
LATER_COST = ("reasked", "cached", "calls_without_usage", "usd_is_complete", "usd_with_estimates", "prices")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with two judged runs, `b` of them labelled, and a comparison of their answers."""
    folder = tmp_path_factory.mktemp("runs")
    files = numbered_files(folder, N)

    def reply(request: Any) -> str:
        return json.dumps({"winner": "A", "reason": "r"}) if "winner" in request.text else verdict()

    with JudgeServer(reply) as server:
        flags = {"out": str(folder / "runs"), "base_url": server.base_url, "model": "m", "repeats": 1, "cache": False}
        a, b = (
            run(RunRequest(load_settings(None, {}, {**flags, "name": name}, folder=None), *files), WORLD).folder
            for name in ("a", "b")
        )
        pair_settings = load_settings(None, {}, {**flags, "judge": "pairwise", "name": "pair"}, folder=None)
        pairwise(PairwiseRequest(pair_settings, a, b), WORLD)
    label_all(ReviewedRun(b.path), folder, [n % 5 > 0 for n in range(N)])
    return folder / "runs"


@pytest.fixture
def copied(archive: Path, tmp_path: Path) -> Path:
    """The archive, to be changed."""
    return Path(shutil.copytree(archive, tmp_path / "runs"))


def of(archive: Path, name: str) -> RunFolder:
    return RunFolder(archive / f"2026-01-31-{name}")


def made_old(folder: RunFolder) -> None:
    """A run as a first version would have left it: without later keys of its manifest and columns of its table."""
    manifest = {key: value for key, value in folder.read_json("manifest.json").items() if key not in LATER_KEYS}
    for key in LATER_COST:
        manifest["cost"].pop(key, None)
    folder.write_json("manifest.json", manifest)
    table = pq.read_table(folder.path / "cases.parquet")
    pq.write_table(table.drop_columns(list(LATER_COLUMNS)), folder.path / "cases.parquet")


@pytest.fixture
def older(copied: Path) -> Path:
    """The archive as a first version would have left its two runs."""
    for name in ("a", "b"):
        made_old(of(copied, name))
    return copied


def reviewed(archive: Path, name: str) -> ReviewedRun:
    return ReviewedRun(of(archive, name).path)


def said(*arguments: str | Path, code: int = 0) -> str:
    ended = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert ended.exit_code == code, (ended.output, ended.exception)
    return ended.output


# --- older runs are read ---------------------------------------------------------------------------------------------


def test_the_rows_of_an_older_run_have_none_where_it_kept_nothing(older: Path) -> None:
    rows = case_rows_of(read_run(of(older, "a").path))
    assert [row.id for row in rows] == [f"q{n}" for n in range(N)]
    assert {(row.undecided, row.alike, row.confidence, row.answer_no) for row in rows} == {(None,) * 4}
    assert len(read_run(of(older, "a").path).table()) == N


def test_an_older_run_is_listed_shown_and_verified(older: Path) -> None:
    assert "2026-01-31-a  complete  cases=12  judge=m" in said("runs", "list", "--out", older)
    assert "Hit@5" in said("runs", "show", "2026-01-31-a", "--out", older)
    assert "2026-01-31-a  cannot be verified" in said("runs", "verify", "--out", older)
    assert said("runs", "pin", "2026-01-31-a", "--as", "baseline", "--out", older)


def test_an_older_run_can_be_held_against_people_gated_and_reported(older: Path) -> None:
    of_now = judge_bias(reviewed(older, "b"))
    assert (of_now["n_labelled"], of_now["fields"]["pass"]["human_rate"]["n"]) == (N, N)
    settings = load_settings(None, {}, {}, folder=None)
    assert gate(reviewed(older, "b"), None, settings).decision in ("ship", "hold", "not_enough_evidence")
    write_joined_report(of(older, "b"), "en")
    assert "2026-01-31-b" in (of(older, "b").path / "report.html").read_text(encoding="utf-8")


def test_older_runs_are_a_trend(older: Path) -> None:
    assert [point.run_id for point in trend(older).points] == ["2026-01-31-a", "2026-01-31-b"]


@pytest.mark.parametrize("which", [("a",), ("b",), ("a", "b")], ids=["the first", "the second", "both"])
def test_runs_one_or_both_of_which_are_older_are_compared(copied: Path, which: tuple[str, ...]) -> None:
    for name in which:
        made_old(of(copied, name))
    tree = compare(reviewed(copied, "a"), reviewed(copied, "b"), common=False)
    assert (tree["n_common"], tree["metrics"]["rule_correct"]["same"]) == (N, N)


def test_an_older_comparison_is_read(copied: Path) -> None:
    folder = of(copied, "pair")
    manifest = {key: value for key, value in folder.read_json("manifest.json").items() if key not in ("files", "vary")}
    folder.write_json("manifest.json", manifest)
    table = pq.read_table(folder.path / "pairs.parquet")
    columns = ["id", "outcome", "order_ab", "order_ba", "n_votes_ab", "n_votes_ba"]
    pq.write_table(table.select(columns), folder.path / "pairs.parquet")
    assert len(pair_rows_of(read_run(folder.path))) == N
    assert "2026-01-31-pair  complete  comparison" in said("runs", "list", "--out", copied)


# --- other format versions -------------------------------------------------------------------------------------------


def with_version(folder: RunFolder, version: Any) -> RunFolder:
    folder.write_json("manifest.json", {**folder.read_json("manifest.json"), "format_version": version})
    return folder


def test_a_newer_run_says_to_upgrade_and_hides_no_other(copied: Path) -> None:
    folder = with_version(of(copied, "a"), 2)
    with pytest.raises(InputError, match=r"format version 2, this program reads 1: .* upgrade rag-judge"):
        read_run(folder.path)
    listed = said("runs", "list", "--out", copied)
    assert "upgrade rag-judge" in listed
    assert "2026-01-31-b  complete" in listed


@pytest.mark.parametrize("version", [True, 1.0, "1", None, [1]], ids=repr)
def test_a_version_that_is_no_whole_number_is_a_changed_file(copied: Path, version: Any) -> None:
    with pytest.raises(InputError, match=r"manifest\.json: format_version: found .*, expected a whole number"):
        with_version(of(copied, "a"), version).manifest()


def test_a_run_too_old_to_be_read_names_the_command_that_grades_its_answers_again(
    archive: Path, tmp_path: Path
) -> None:
    """The command is run as it stands, from a folder whose name a shell would split."""
    place = Path(shutil.copytree(archive, tmp_path / "old runs" / "x"))
    folder = of(place, "a")
    folder.write_json("manifest.json", {**folder.read_json("manifest.json"), "judge": None})
    with pytest.raises(InputError, match="format version 0, this program reads 1") as refused:
        with_version(folder, 0).manifest()
    command = str(refused.value).splitlines()[-1]
    assert command.startswith("rag-judge run --cases ")
    said(*shlex.split(command)[1:], "--out", tmp_path / "new")
    assert len(case_rows_of(read_run(next((tmp_path / "new").iterdir())))) == N


def test_it_names_the_judge_and_the_prompt_that_the_run_kept(copied: Path) -> None:
    folder = with_version(of(copied, "a"), 0)
    with pytest.raises(InputError) as refused:
        folder.manifest()
    words = shlex.split(str(refused.value).splitlines()[-1])
    told = dict(zip(words[2::2], words[3::2], strict=True))
    assert told["--judge"] == str(folder.path / "prompts" / "passfail")
    assert (told["--model"], told["--name"]) == ("m", "a")
    assert told["--base-url"].startswith("http://127.0.0.1:")


def test_without_its_answers_an_older_run_names_the_version_that_reads_it(copied: Path) -> None:
    folder = with_version(of(copied, "a"), 0)
    folder.answers.unlink()
    with pytest.raises(InputError, match=r"read it with rag-judge .*: its answers are not all there"):
        folder.manifest()


def test_a_manifest_is_taken_from_version_to_version(tmp_path: Path) -> None:
    steps: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
        1: lambda tree: {**tree, "status": tree["state"]},
        2: lambda tree: {**tree, "k": tree.get("k", 5)},
    }
    old = {"format_version": 1, "state": "complete"}
    read = in_format(old, 3, steps, tmp_path)
    assert read == {"format_version": 3, "state": "complete", "status": "complete", "k": 5}
    assert old == {"format_version": 1, "state": "complete"}
    with pytest.raises(InputError, match="format version 0, this program reads 3"):
        in_format({"format_version": 0}, 3, steps, tmp_path)


# --- pruned runs -----------------------------------------------------------------------------------------------------


@pytest.fixture
def pruned(copied: Path) -> Path:
    """The archive with run `a` and the comparison pruned; `b` has labels, and keeps its texts."""
    found = prune_archive(copied, NOW, keep_last=0, older_than_days=0)
    assert {fate.run_id: fate.action for fate in found.fates} == {
        "2026-01-31-a": "prune",
        "2026-01-31-b": "keep",
        "2026-01-31-pair": "prune",
    }
    return copied


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["regrade", "A"], id="regrade"),
        pytest.param(["regrade", "PAIR"], id="regrade of a comparison"),
        pytest.param(["pairwise", "A", "B", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"], id="pairwise"),
        pytest.param(["compare", "A", "B"], id="compare"),
        pytest.param(["compare", "B", "A"], id="compare, the other way round"),
        pytest.param(["compare-judges", "A", "B"], id="compare-judges"),
        pytest.param(["gate", "A"], id="gate"),
        pytest.param(["gate", "B", "--baseline", "A"], id="gate with a pruned baseline"),
        pytest.param(["bias", "A"], id="bias"),
        pytest.param(["bias", "PAIR"], id="bias of a comparison"),
        pytest.param(["bias", "B", "--external", "A"], id="labels of a pruned run"),
        pytest.param(["review", "export", "A", "--fraction", "0.5"], id="review export"),
        pytest.param(["review", "status", "A"], id="review status"),
        pytest.param(["lint", "CASES", "--runs", "A"], id="lint"),
        pytest.param(["export", "A", "--format", "ragas", "--runs", "ARCHIVE"], id="export"),
    ],
)
def test_what_needs_the_texts_of_a_pruned_run_says_when_they_went_and_what_is_there(
    pruned: Path, arguments: list[str]
) -> None:
    cases = of(pruned, "b").snapshot
    places = {"A": of(pruned, "a").path, "B": of(pruned, "b").path, "PAIR": of(pruned, "pair").path, "CASES": cases}
    command = [str(places.get(word, pruned if word == "ARCHIVE" else word)) for word in arguments]
    out = pruned.parent / "made"
    before = sorted(path.name for path in pruned.iterdir())
    ended = CliRunner().invoke(app, command if command[0] in ("gate", "lint") else [*command, "--out", str(out)])
    assert isinstance(ended.exception, InputError), ended.output
    assert "the texts of this run (cases, answers, replies, tables) were pruned on 2026-01-31; still there: " in str(
        ended.exception
    )
    assert "hit.txt, manifest.json, request.json, summary.json" in str(ended.exception)
    assert ended.exception.exit_code == 2
    assert not out.exists()
    assert sorted(path.name for path in pruned.iterdir()) == before


def test_so_does_its_report_and_its_table(pruned: Path) -> None:
    with pytest.raises(InputError, match="pruned on 2026-01-31"):
        write_joined_report(of(pruned, "a"), "en")
    numbers = read_run(of(pruned, "a").path, texts=False)
    assert numbers.summary["n_cases"] == N
    for reading in (numbers.table, lambda: case_rows_of(numbers)):
        with pytest.raises(InputError, match="pruned on 2026-01-31"):
            reading()


def test_a_pruned_run_is_resumed_as_it_ended(pruned: Path) -> None:
    told = json.loads(said("run", "--resume", of(pruned, "a").path, "--json"))
    assert (told["exit_code"], told["summary"]["n_cases"]) == (0, N)
    assert "12 pairs" in said("pairwise", "--resume", of(pruned, "pair").path)


def test_a_pruned_json_that_cannot_be_read_is_a_pruned_run_still(copied: Path) -> None:
    (of(copied, "a").path / "pruned.json").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"were pruned on \?; still there: answers\.jsonl"):
        read_run(of(copied, "a").path)
