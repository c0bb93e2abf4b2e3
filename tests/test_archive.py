"""Run folders: names that stay inside, files that are private and whole, tables that read back."""

import csv
import stat
from datetime import date
from pathlib import Path

import pytest

from rag_judge.archive import (
    CASE_COLUMNS,
    RunFolder,
    checked_name,
    create_run,
    find_run,
    list_runs,
    read_run,
    write_table,
)
from rag_judge.errors import InputError
from rag_judge.records import CaseRow

TODAY = date(2026, 1, 31)


@pytest.mark.parametrize("name", ["../x", "a/b", "a\\b", "", ".hidden", "-x", "a b", "x" * 81, "a\n", "..", "~", "a:b"])
def test_a_run_name_cannot_leave_the_archive(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="run name"):
        create_run(tmp_path, name, TODAY)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["baseline", "v1.2", "夜间", "a_b-c+d", "x" * 80])
def test_ordinary_names_are_taken_as_they_are(name: str) -> None:
    assert checked_name(name) == name


def test_a_taken_name_gets_a_number(tmp_path: Path) -> None:
    ids = [create_run(tmp_path, "a", TODAY).run_id for _ in range(3)]
    assert ids == ["2026-01-31-a", "2026-01-31-a-2", "2026-01-31-a-3"]


def test_folders_and_files_are_private_to_the_user(tmp_path: Path) -> None:
    run = create_run(tmp_path / "runs", "a", TODAY)
    run.write_json("manifest.json", {"a": 1})
    write_table(run, "cases", [], CaseRow)
    assert stat.S_IMODE(run.path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in run.path.iterdir()} == {0o600}


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    run = create_run(tmp_path, "a", TODAY)
    run.write_text("x.txt", "before")
    with pytest.raises(RuntimeError), run.replacing("x.txt") as file:  # noqa: PT012
        file.write(b"half")
        raise RuntimeError
    assert (run.path / "x.txt").read_text(encoding="utf-8") == "before"


def test_the_case_table_has_the_contracts_columns_first_and_its_cell_forms(tmp_path: Path) -> None:
    run = create_run(tmp_path, "a", TODAY)
    rows = [
        CaseRow(
            "=1+1", "事实", "fail", hit=True, recall=2 / 3, n_votes=3, evidence='@SUM("x"),\n2', leak=False, mrr=1.0
        ),
        CaseRow("007", None, "no_answer"),
        CaseRow("\ud83d\x1b", "x", "pass", score=2.5),
    ]
    write_table(run, "cases", rows, CaseRow)
    text = (run.path / "cases.csv").read_bytes().decode()
    assert text.startswith(
        "id,type,outcome,cause,layer,hit,recall,mrr,ndcg,precision,rule_correct,must_include_ok,must_not_include_ok,"
        "faithful,lexical_support,did_abstain,expect_refusal,leak,n_votes,grounded,complete,should_abstain,judge_pass,"
        "score,unscored_reason,evidence,"
    )
    first, second, third = csv.DictReader(text.splitlines(keepends=True))
    assert (first["id"], first["hit"], first["recall"], first["mrr"], first["n_votes"], first["leak"]) == (
        "'=1+1",
        "true",
        "0.666667",
        "1",
        "3",
        "false",
    )
    assert first["evidence"] == '\'@SUM("x"),\n2'
    assert second["id"] == "007"
    assert {second[name] for name in CASE_COLUMNS if name not in ("id", "outcome")} == {""}
    assert (third["id"], third["score"]) == ("? ", "2.5")


def test_the_table_of_a_finished_run_is_a_data_frame_with_types(tmp_path: Path) -> None:
    run = create_run(tmp_path, "a", TODAY)
    write_table(run, "cases", [CaseRow("007", None, "pass", hit=True, recall=0.5), CaseRow("b", "x", "fail")], CaseRow)
    run.write_json("summary.json", {})
    run.write_json("manifest.json", {"format_version": 1, "run_id": "a", "status": "complete"})
    table = read_run(run.path).table()
    assert list(table["id"]) == ["007", "b"]
    assert table["hit"].isna().tolist() == [False, True]
    assert table["recall"].mean() == 0.5
    assert bool(table["hit"][0]) is True


def test_an_unfinished_a_newer_and_a_missing_run_are_said(tmp_path: Path) -> None:
    run = create_run(tmp_path, "a", TODAY)
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_run(run.path)
    run.write_json("manifest.json", {"format_version": 1, "run_id": "a", "status": "incomplete"})
    with pytest.raises(InputError, match="not complete; finish it with `rag-judge run --resume"):
        read_run(run.path)
    run.write_json("manifest.json", {"format_version": 99, "run_id": "a", "status": "complete"})
    with pytest.raises(InputError, match=r"format version 99, this program reads 1: .* upgrade rag-judge"):
        read_run(run.path)
    run.write_json("manifest.json", {})
    with pytest.raises(InputError, match="not the manifest of a run; the file was changed"):
        read_run(run.path)
    with pytest.raises(InputError, match="no run 'nowhere'"):
        find_run(tmp_path, "nowhere")


def test_runs_are_found_by_id_and_by_path_and_listed(tmp_path: Path) -> None:
    run = create_run(tmp_path, "a", TODAY)
    run.write_json("manifest.json", {"status": "incomplete"})
    (tmp_path / "notes").mkdir()
    assert find_run(tmp_path, run.run_id) == find_run(Path("elsewhere"), str(run.path)) == RunFolder(run.path)
    (tmp_path / ".removed-x").mkdir()  # as a prune that was killed leaves it
    (tmp_path / ".removed-x" / "manifest.json").write_text("{}", encoding="utf-8")
    assert list_runs(tmp_path) == [RunFolder(run.path)]
    assert list_runs(tmp_path / "nowhere") == []
