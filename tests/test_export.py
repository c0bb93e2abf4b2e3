"""Finished runs as files of other tools, and back."""

import json
from pathlib import Path

import pytest

from rag_judge.archive import FinishedRun, read_run
from rag_judge.errors import InputError
from rag_judge.formats import READERS, WRITERS, export_run
from tests.eval_sets import write_rows
from tests.test_cli import rag_judge
from tests.test_formats import FEE, HOW_LONG, RETURNS, WHO_PAYS, brought_in

CONTEXTS = [{"id": "returns#1", "text": RETURNS, "score": 0.9}, {"id": "fee#1", "text": FEE, "score": 0.4}]
EARLIER = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]


def run_of(folder: Path, cases: list[dict[str, object]], answers: list[dict[str, object]]) -> FinishedRun:
    files = [write_rows(folder / "c.jsonl", cases), write_rows(folder / "a.jsonl", answers)]
    arguments = ("--cases", files[0], "--answers", files[1], "--judge", "none", "--json", "--quiet")
    ended = rag_judge("run", *arguments, cwd=folder)
    return read_run(folder / json.loads(ended.stdout)["run"])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """A run with a case that states what the formats carry, a Chinese one, and one that they cannot hold whole."""
    cases: list[dict[str, object]] = [
        {"id": "a", "question": HOW_LONG, "relevant_docs": {"returns#1": 2}, "reference": "30 days"},
        {"id": "b", "question": WHO_PAYS, "relevant_docs": ["fee#1"]},
        {"id": "c", "question": "How much?", "history": EARLIER, "must_include": ["12"], "tags": ["=x"]},
    ]
    answers: list[dict[str, object]] = [
        {"id": "a", "answer": "30 days.", "contexts": CONTEXTS},
        {"id": "b", "answer": "买家承担。", "contexts": CONTEXTS[1:]},
        {"id": "c", "answer": "=12", "contexts": [{"id": "x"}, {"id": "x", "score": 2}, {"id": "y", "score": 3}]},
    ]
    return run_of(tmp_path_factory.mktemp("run"), cases, answers)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("ragas", "out.jsonl"),
        ("deepeval", "out.json"),
        ("plain", "out.jsonl"),
        ("plain", "out.csv"),
        ("plain", "out.parquet"),
    ],
)
def test_a_run_that_goes_out_comes_in_again_as_it_was(
    tmp_path: Path, finished: FinishedRun, name: str, file: str
) -> None:
    assert export_run(finished, name, tmp_path / file).n_rows == 3
    cases, answers, _ = brought_in(tmp_path, name, [tmp_path / file])
    assert [(case["id"], case["question"], case.get("reference")) for case in cases] == [
        ("a", HOW_LONG, "30 days"),
        ("b", WHO_PAYS, None),
        ("c", "How much?", None),
    ]
    assert [(row["id"], row["answer"]) for row in answers[:2]] == [("a", "30 days."), ("b", "买家承担。")]
    shown = [[(context["id"], context["text"]) for context in row["contexts"]] for row in answers[:2]]
    assert shown == [[("returns#1", RETURNS), ("fee#1", FEE)], [("fee#1", FEE)]]
    assert (cases[2].get("history") == EARLIER) == (name != "deepeval")


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("ragas", {"contexts": 1, "must_include": 1}),
        ("deepeval", {"contexts": 1, "history": 1, "relevant_docs": 2, "must_include": 1}),
        ("trec-run", {"scores": 1}),
        ("trec-qrels", {}),
        ("plain", {}),
    ],
)
def test_what_a_format_cannot_hold_is_counted(
    tmp_path: Path, finished: FinishedRun, name: str, lost: dict[str, int]
) -> None:
    assert export_run(finished, name, tmp_path / "out").lost == lost


def test_rankings_and_grades_go_out_in_columns(tmp_path: Path, finished: FinishedRun) -> None:
    export_run(finished, "trec-run", tmp_path / "out.run")
    assert (tmp_path / "out.run").read_text(encoding="utf-8").splitlines() == [
        "a Q0 returns#1 1 0.9 rag-judge",
        "a Q0 fee#1 2 0.4 rag-judge",
        "b Q0 fee#1 1 0.4 rag-judge",
        "c Q0 x 1 2 rag-judge",  # a score is missing: the places stand in for them, and x counts once
        "c Q0 y 2 1 rag-judge",
    ]
    export_run(finished, "trec-qrels", tmp_path / "out.qrels")
    assert (tmp_path / "out.qrels").read_text(encoding="utf-8") == "a 0 returns#1 2\nb 0 fee#1 1\n"


def test_a_table_for_a_spreadsheet_holds_no_formula(tmp_path: Path, finished: FinishedRun) -> None:
    export_run(finished, "plain", tmp_path / "out.csv")
    assert ",'=12," in (tmp_path / "out.csv").read_text(encoding="utf-8")


def test_nothing_is_overwritten_unless_asked(tmp_path: Path, finished: FinishedRun) -> None:
    (tmp_path / "out").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="already there"):
        export_run(finished, "ragas", tmp_path / "out")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "mine"
    assert export_run(finished, "ragas", tmp_path / "out", overwrite=True).n_rows == 3


def test_an_id_with_a_blank_cannot_stand_in_columns(tmp_path: Path) -> None:
    run = run_of(tmp_path, [{"id": "a 1", "question": "?"}], [{"id": "a 1", "contexts": [{"id": "d"}]}])
    with pytest.raises(InputError, match="the id 'a 1' holds white space"):
        export_run(run, "trec-run", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_says_what_went_out_in_both_languages(tmp_path: Path, finished: FinishedRun) -> None:
    run = finished.folder.path
    ended = rag_judge("export", run, "--format", "deepeval", "--out", "x.json", cwd=tmp_path)
    assert ended.stdout.splitlines()[:2] == ["x.json: 3 rows (deepeval)", "left out: relevant_docs of 2 cases"]
    ended = rag_judge("export", run, "--format", "ragas", "--out", "x.jsonl", "--lang", "zh", cwd=tmp_path)
    assert ended.stdout.startswith("x.jsonl:3 行(ragas)\n")
    ended = rag_judge("export", run, "--format", "word", "--out", "y", cwd=tmp_path)
    assert (ended.returncode, "there are: ragas, deepeval" in ended.stderr) == (2, True)


def test_every_format_is_named_in_the_help_and_on_the_page() -> None:
    help_of = " ".join(rag_judge("import", "--help").stdout.split())
    page = (Path(__file__).parent.parent / "docs" / "formats-foreign.md").read_text(encoding="utf-8")
    for name in READERS:
        assert name in help_of
        assert f"`{name}`" in page
    help_of = " ".join(rag_judge("export", "--help").stdout.split())
    for name in WRITERS:
        assert name in help_of
        assert f"`{name}`" in page
