"""The human review of whole runs, by the commands: a blind sample out, labels back, where it stands, what they say."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from sklearn.metrics import cohen_kappa_score
from typer.testing import CliRunner, Result

from rag_judge.archive import RunFolder, case_rows_of, read_run
from rag_judge.cli import app
from rag_judge.errors import InputError
from rag_judge.pipeline import Budget, PairwiseRequest, RunRequest, World, pairwise, regrade, run
from rag_judge.pipeline.bias import judge_bias
from rag_judge.pipeline.review import ExportRequest, ReviewedRun, export_review, import_review
from rag_judge.pipeline.review_status import review_status
from rag_judge.review.design import Design
from rag_judge.review.sheet import Sheet
from rag_judge.settings import Settings, load_settings
from tests.eval_sets import verdict, write_rows
from tests.misbehaviour import JudgeRequest
from tests.review_sheets import csv_bytes, csv_rows, fill
from tests.servers import JudgeServer
from tests.test_cli import rag_judge

WORLD = World({"OPENAI_API_KEY": "sk-secret-0123456789"}, lambda: datetime(2026, 1, 31, tzinfo=UTC), time.monotonic)
N_CASES = 60
LOST = 11  # the case to which the judge gives no verdict
Truth = Callable[[str], dict[str, Any]]


def number(text: str) -> int:
    """The number of the case that a text is of: each hall has its own count of seats."""
    return int(re.findall(r"hall has (\d+) seats", text)[0]) - 100


def opinion(request: JudgeRequest) -> str:
    n = number(request.text)
    return "I would rather not say." if n == LOST else verdict(grounded=n % 5 > 0, complete=n % 7 > 0)


def settings(folder: Path, base_url: str | None = None, **flags: Any) -> Settings:
    known = {"out": str(folder / "runs"), "base_url": base_url, "model": "judge-model-9", "attempts": 1, **flags}
    made = load_settings(None, {}, {**known, "cache": False}, folder=None)
    return replace(made, judge=replace(made.judge, backoff_s=0.0))


def files(folder: Path, n: int = N_CASES, note: str = "") -> tuple[Path, Path]:
    cases = [
        {"id": f"case-{i:03}", "question": f"How many seats has hall {i}?", "type": ("fact", "table")[i % 2]}
        for i in range(n)
    ]
    answers = [
        {
            "id": f"case-{i:03}",
            "answer": f"It seats {100 + i}{note}.",
            "contexts": [{"id": f"d#{i}", "text": f"The hall has {100 + i} seats."}],
        }
        for i in range(n)
    ]
    return write_rows(folder / "cases.jsonl", cases), write_rows(folder / "answers.jsonl", answers)


def graded(folder: Path, n: int = N_CASES, *, note: str = "", sample: int | None = None, **flags: Any) -> RunFolder:
    """A finished run; 2 % of unscored cases may be passed."""
    paths = files(folder, n, note)
    with JudgeServer(opinion) as server:
        made = settings(folder, server.base_url, **{"name": "hidden-name", "reask": False, "repeats": 1, **flags})
        return run(RunRequest(made, *paths, budget=Budget(sample=sample)), WORLD).folder


@pytest.fixture(scope="module")
def one_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return graded(tmp_path_factory.mktemp("graded"), system={"model": "system-model-7"}).path


@pytest.fixture
def judged(one_run: Path, tmp_path: Path) -> ReviewedRun:
    """A copy of the one run, to be reviewed."""
    return ReviewedRun(Path(shutil.copytree(one_run, tmp_path / "runs" / one_run.name)))


def command(*arguments: str | Path) -> Result:
    """The command, run in this process; what it raises is seen by the caller."""
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)


def refused(*arguments: str | Path) -> str:
    """What is said of a command with bad input. By `main`, an InputError ends with 2: see the test of exit codes."""
    with pytest.raises(InputError) as caught:
        command(*arguments)
    return str(caught.value)


def truth(case_id: str) -> dict[str, Any]:
    """What people say: the judge errs on every sixth case."""
    n = int(case_id[-3:])
    says = n % 5 > 0 and n % 7 > 0
    return {"passed": "yes" if says != (n % 6 == 1) else "no"}


def design_of(reviewed: ReviewedRun) -> Design:
    design = reviewed.design()
    assert design is not None
    return design


def verdicts(reviewed: ReviewedRun) -> dict[str, bool | None]:
    """What the judge said of each case."""
    return {row.id: row.judge_pass for row in case_rows_of(reviewed.run)}


def newest(reviewed: ReviewedRun, annotator: str) -> tuple[Sheet, Path]:
    design = design_of(reviewed)
    sheet = [one for one in design.sheets.values() if one.annotator == annotator][-1]
    return sheet, reviewed.review.path / design.files[sheet.sheet_id]


def filled(reviewed: ReviewedRun, annotator: str, says: Truth = truth, *, skip: int = 0) -> Path:
    """The newest sheet of an annotator as it comes back, its first `skip` items left blank."""
    sheet, path = newest(reviewed, annotator)
    design = design_of(reviewed)
    formats = {".xlsx": "xlsx", ".csv": "csv", ".html": "html", ".json": "label-studio"}
    said = {item.id: says(design.keys[item.id].case_id) for item in sheet.items[skip:]}
    return fill(path, formats[path.suffix], sheet, said)  # type: ignore[arg-type]


def export(reviewed: ReviewedRun, *names: str, **request: Any) -> list[Path]:
    given = {"format": "csv", **({"annotators": names} if names else {}), **request}
    return list(export_review(reviewed, ExportRequest(**given)).files)


def labels_bytes(reviewed: ReviewedRun) -> bytes | None:
    path = reviewed.review.path / "labels.jsonl"
    return path.read_bytes() if path.exists() else None


# --- from export to bias ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["csv", "xlsx", "html", "label-studio"])
def test_a_sample_goes_out_comes_back_and_is_held_against_the_judge(judged: ReviewedRun, format: str) -> None:
    path = judged.folder.path
    sent = command("review", "export", path, "--fraction", "0.4", "--annotators", "li,wang", "--format", format)
    assert sent.exit_code == 0, sent.output
    assert "sample: 24 of 60 cases, seed" in sent.output
    assert "li: 24 items" in sent.output
    assert f"rag-judge review import {path} FILE..." in sent.output
    drawn = design_of(judged).drawn
    apart = next(c for c in drawn if truth(c)["passed"] == "yes")  # of which wang says no
    backs = [filled(judged, "li"), filled(judged, "wang", lambda c: {"passed": "no"} if c == apart else truth(c))]
    got = command("review", "import", path, *backs)
    assert (got.exit_code, "48 labels are new or fuller; 48 in all" in got.output) == (0, True)
    said = command("bias", path)
    assert said.exit_code == 0, said.output
    assert str(path / "bias.json") in said.output
    tree = judged.folder.read_json("bias.json")
    judge = verdicts(judged)
    known = [(judge[c], truth(c)["passed"] == "yes") for c in drawn if c != apart and judge[c] is not None]
    cells = tree["fields"]["pass"]["confusion"]
    assert [cells[name] for name in ("tp", "fn", "fp", "tn")] == [
        known.count(cell) for cell in ((True, True), (False, True), (True, False), (False, False))
    ]
    assert (tree["n_labelled"], tree["n_drawn"], tree["annotators"]["pairs"]) == (24, 24, 24)
    ones = [truth(c)["passed"] == "yes" for c in drawn]
    others = [yes and c != apart for c, yes in zip(drawn, ones, strict=True)]
    assert tree["annotators"]["kappa"]["value"] == pytest.approx(cohen_kappa_score(ones, others))
    assert int(read_run(path).table()["n_labels"].sum()) == 48


def test_the_corrected_rate_is_that_of_the_design(judged: ReviewedRun) -> None:
    export(judged, "li", fraction=0.5)
    import_review(judged, [filled(judged, "li")], replace_labels=False)
    tree = judge_bias(judged)
    design = design_of(judged)
    # by verdict and probability: each group's share of human passes, weighted by its size
    judge = verdicts(judged)
    groups: dict[tuple[bool | None, float], list[str]] = {}
    for case_id, p in design.probabilities.items():
        groups.setdefault((judge[case_id], round(p, 9)), []).append(case_id)
    theta = 0.0
    for ids in groups.values():
        said = [truth(c)["passed"] == "yes" for c in ids if c in design.drawn]
        theta += len(ids) / N_CASES * sum(said) / len(said)
    assert tree["fields"]["pass"]["corrected"]["value"] == pytest.approx(theta)
    assert design.probabilities[f"case-{LOST:03}"] == 1.0  # no verdict: taken with certainty


def test_nothing_else_of_a_finished_run_changes(judged: ReviewedRun) -> None:
    def digests() -> dict[str, str]:
        return {
            str(path.relative_to(judged.folder.path)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in judged.folder.path.rglob("*")
            if path.is_file() and path.name not in ("report.html", "bias.json") and "review" not in path.parts
        }

    before = digests()
    export(judged, "li", fraction=0.5)
    import_review(judged, [filled(judged, "li")], replace_labels=False)
    judge_bias(judged)
    assert digests() == before


# --- blind -----------------------------------------------------------------------------------------------------------


def whole_text(path: Path) -> str:
    if path.suffix != ".xlsx":
        return path.read_text(encoding="utf-8-sig")
    with ZipFile(path) as book:
        return "\n".join(book.read(name).decode("utf-8", "replace") for name in book.namelist())


@pytest.mark.parametrize("format", ["csv", "xlsx", "html", "label-studio"])
def test_no_file_that_leaves_tells_case_run_system_verdict_or_stratum(judged: ReviewedRun, format: str) -> None:
    paths = export(judged, "li", fraction=0.5, format=format)
    design = design_of(judged)
    told = [*design.strata, *set(design.strata.values()), "case-0", "hidden-name", judged.folder.run_id]
    told += ["judge-model-9", "system-model-7", "judge_pass", "stratum", "probability", "fact/", "sk-secret"]
    for path in paths:
        text = whole_text(path)
        assert "It seats 1" in text or path.suffix in (".xml", ".txt")
        assert [word for word in told if word in text] == []


def test_files_are_their_owners_alone(judged: ReviewedRun) -> None:
    umask = os.umask(0)
    try:
        for format in ("csv", "xlsx", "html", "label-studio"):
            export(judged, f"a-{format}", format=format)
        import_review(judged, [filled(judged, "a-csv")], replace_labels=False)
        judge_bias(judged)
    finally:
        os.umask(umask)
    made = [*judged.review.path.iterdir(), judged.folder.path / "bias.json", judged.folder.path / "report.html"]
    fresh = [path for path in made if ".labels." not in path.name]
    assert {oct(stat.S_IMODE(path.stat().st_mode)) for path in fresh} == {"0o600"}
    assert oct(stat.S_IMODE(judged.review.path.stat().st_mode)) == "0o700"


def test_the_order_of_items_is_each_annotators_own(judged: ReviewedRun) -> None:
    export(judged, "li", "wang", fraction=0.5)
    design = design_of(judged)
    orders = [[design.keys[item.id].case_id for item in newest(judged, name)[0].items] for name in ("li", "wang")]
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]
    assert not set(design.sheets[newest(judged, "li")[0].sheet_id].items) & set(newest(judged, "wang")[0].items)


def test_personal_data_is_masked_in_the_sheets_and_in_what_is_kept_of_them(tmp_path: Path) -> None:
    folder = graded(tmp_path, 12, note=", ask anna.berg@example.com")
    reviewed = ReviewedRun(folder.path)
    sent = command("review", "export", folder.path, "--redact", "--format", "csv")
    assert "personal data masked in 8 places" in sent.output
    for path in reviewed.review.path.iterdir():
        assert b"anna.berg" not in path.read_bytes()
    assert "[email]" in newest(reviewed, "a1")[1].read_text(encoding="utf-8-sig")
    assert import_review(reviewed, [filled(reviewed, "a1")], replace_labels=False).n_new == 8


# --- larger samples --------------------------------------------------------------------------------------------------


def test_a_larger_export_holds_the_first_and_gives_each_only_what_is_new(judged: ReviewedRun) -> None:
    export(judged, "li")
    first = design_of(judged)
    assert len(first.drawn) == 9  # 15 % of 60
    import_review(judged, [filled(judged, "li")], replace_labels=False)
    before = labels_bytes(judged)
    (sheet_path, _) = export(judged, "li", "wang", fraction=0.5)[:2]
    second = design_of(judged)
    assert sheet_path.name == "sheet-li-2.csv"
    assert set(first.drawn) < set(second.drawn)
    assert len(newest(judged, "li")[0].items) == 30 - 9
    assert len(newest(judged, "wang")[0].items) == 30  # who joins later is given all
    given = {second.keys[item.id].case_id for item in newest(judged, "li")[0].items}
    assert given == set(second.drawn) - set(first.drawn)
    assert labels_bytes(judged) == before
    import_review(judged, [filled(judged, "li")], replace_labels=False)
    assert len(judged.labels()) == 30


def test_the_design_says_every_cases_stratum_and_probability_as_soon_as_a_sheet_is_out(judged: ReviewedRun) -> None:
    export(judged, "li")
    kept = judged.review.read_json("design.json")
    assert len(kept["cases"]) == kept["N"] == N_CASES
    assert all(0 < case["probability"] <= 1 for case in kept["cases"].values())
    assert sum(1 / kept["cases"][case_id]["probability"] for case_id in kept["drawn"]) == pytest.approx(N_CASES)


def test_what_everybody_was_given_is_not_given_again(judged: ReviewedRun) -> None:
    export(judged, "li")
    message = refused("review", "export", judged.folder.path, "--annotators", "li", "--format", "csv")
    assert "each annotator has been given all of it; draw more with --fraction or --half-width" in message
    assert len(list(judged.review.path.glob("sheet-*.csv"))) == 1


@pytest.mark.parametrize("flag", [("--seed", "5"), ("--oversample",)])
def test_a_sample_that_stands_is_not_drawn_otherwise(judged: ReviewedRun, flag: tuple[str, ...]) -> None:
    export(judged, "li")
    message = refused("review", "export", judged.folder.path, "--fraction", "0.5", *flag)
    assert "a sample was drawn with seed" in message


def test_a_half_width_says_how_many_or_that_more_cases_are_needed(judged: ReviewedRun) -> None:
    message = refused("review", "export", judged.folder.path, "--half-width", "0.05")
    assert "labelling all 60 cases would not reach it" in message
    assert "more cases are needed" in message
    assert judged.design() is None
    sent = command("review", "export", judged.folder.path, "--half-width", "0.2", "--json")
    assert 15 <= json.loads(sent.output)["n_drawn"] <= 25  # Wilson at a rate of about 0.7: 20 or so
    import_review(judged, [filled(judged, "a1")], replace_labels=False)
    more = command("review", "export", judged.folder.path, "--half-width", "0.16", "--format", "csv", "--json")
    assert json.loads(more.output)["n_drawn"] > json.loads(sent.output)["n_drawn"]


def test_of_a_judge_sample_the_cases_that_the_judge_saw_are_drawn_with_both_probabilities(tmp_path: Path) -> None:
    folder = graded(tmp_path, 40, sample=20)
    reviewed = ReviewedRun(folder.path)
    export(reviewed, "li", fraction=0.5)
    design = design_of(reviewed)
    seen = {row["id"] for row in reviewed.run.table().to_dict("records") if row["drawn"] is True}
    assert set(design.strata) == seen
    assert (len(seen), design.judge_share) == (20, 0.5)
    assert sum(1 / design.probabilities[case_id] for case_id in design.drawn) == pytest.approx(40)


# --- refused, and nothing imported -----------------------------------------------------------------------------------


def edited(path: Path, change: Callable[[list[list[str]]], None]) -> Path:
    """A copy of a sheet, changed in its cells."""
    rows = csv_rows(path)
    change(rows)
    target = path.with_name(f"edited-{path.name}")
    target.write_bytes(csv_bytes(rows))
    return target


def put(row: int, column: str, value: str) -> Callable[[list[list[str]]], None]:
    def change(rows: list[list[str]]) -> None:
        rows[row][rows[0].index(column)] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            put(3, "grounded", "maybe"), r"row 4, column grounded \(E\): found 'maybe'", id="an impossible value"
        ),
        pytest.param(
            put(2, "answer", "It seats 7."), r"row 3, column answer \(D\): the text is not", id="a changed text"
        ),
        pytest.param(
            put(1, "item", "bcdfghjkmn-bcdfghjk"), r"row 2.* is of sheet bcdfghjkmn, which is none", id="another sheet"
        ),
        pytest.param(put(1, "item", "17"), "row 2, column item: found '17'", id="an unknown id"),
        pytest.param(
            lambda rows: rows.append([*rows[1][:8], "no", *rows[1][9:]]),
            r"row \d+, column passed \(I\): found no, but .*row 2, column passed \(I\) says yes",
            id="the same item twice",
        ),
    ],
)
def test_a_bad_row_is_named_and_nothing_is_imported(
    judged: ReviewedRun, change: Callable[[list[list[str]]], None], message: str
) -> None:
    export(judged, "li", "wang")
    good, back = filled(judged, "wang"), filled(judged, "li", lambda _: {"passed": "yes"})
    bad = edited(back, change)
    said = refused("review", "import", judged.folder.path, good, bad)
    assert re.search(message, said), said
    assert bad.name in said
    assert labels_bytes(judged) is None


def test_a_sheet_of_another_run_is_refused(judged: ReviewedRun, one_run: Path, tmp_path: Path) -> None:
    other = ReviewedRun(Path(shutil.copytree(one_run, tmp_path / "elsewhere" / one_run.name)))
    export(other, "li")
    back = filled(other, "li")
    assert "no sheet was exported of this run" in refused("review", "import", judged.folder.path, back)
    export(judged, "li")
    assert "which is none of this run's" in refused("review", "import", judged.folder.path, back)
    assert labels_bytes(judged) is None


def test_what_was_said_before_changes_only_when_told_to(judged: ReviewedRun) -> None:
    export(judged, "li")
    import_review(judged, [filled(judged, "li")], replace_labels=False)
    before = labels_bytes(judged)
    back = filled(judged, "li", lambda _: {"passed": "unsure"})
    said = refused("review", "import", judged.folder.path, back)
    assert re.search(
        r"sheet-li.csv, row 2, column passed \(I\): found unsure, but .*labels.jsonl:\d+: passed says", said
    )
    assert labels_bytes(judged) == before
    told = command("review", "import", judged.folder.path, back, "--replace")
    assert "9 labels are new or fuller; 9 in all" in told.output
    assert {label.values["passed"] for label in judged.labels()} == {None}


# --- partial, in any order -------------------------------------------------------------------------------------------


def test_partial_sheets_are_taken_and_what_is_missing_is_counted(judged: ReviewedRun) -> None:
    export(judged, "li", fraction=0.5)
    got = command("review", "import", judged.folder.path, filled(judged, "li", skip=10))
    assert "20 labels are new or fuller; 20 in all" in got.output
    assert "li: 10 items were left blank; they count as not reviewed, never as no" in got.output
    tree = judge_bias(judged)
    assert (tree["non_response"]["n"], tree["non_response"]["of"], tree["non_response"]["is_high"]) == (10, 30, True)
    assert "10 of 30 drawn cases have no label; that is more than a tenth" in command("bias", judged.folder.path).output
    again = command("review", "import", judged.folder.path, filled(judged, "li"), "--json")
    assert (json.loads(again.output)["n_new"], json.loads(again.output)["n_blank"]["li"]) == (10, 0)
    assert command("review", "import", judged.folder.path, filled(judged, "li"), "--json").output.count('"n_new": 0')


def test_a_note_without_an_answer_is_no_label_and_is_shown(judged: ReviewedRun) -> None:
    export(judged, "li")
    design = design_of(judged)
    odd = design.drawn[0]
    back = filled(judged, "li", lambda c: {"note": "the question is broken"} if c == odd else truth(c))
    imported = import_review(judged, [back], replace_labels=False)
    assert (imported.n_new, imported.n_blank["li"]) == (8, 1)
    assert any("has a note and no answer: 'the question is broken'" in warning for warning in imported.warnings)


def test_answers_of_no_without_a_critique_are_counted(judged: ReviewedRun) -> None:
    export(judged, "li")
    got = command("review", "import", judged.folder.path, filled(judged, "li", lambda _: {"grounded": "no"}))
    assert "9 answers of no have no critique" in got.output


# --- several people --------------------------------------------------------------------------------------------------


def test_the_third_reader_is_given_what_two_differ_on_and_settles_it(judged: ReviewedRun) -> None:
    path = judged.folder.path
    assert "nothing was exported yet" in refused("review", "export", path, "--disagreements")
    export(judged, "li", "wang", fraction=0.5)
    assert "no two annotators differ" in refused("review", "export", path, "--disagreements")
    design = design_of(judged)
    apart = set(design.drawn[:4])
    backs = [
        filled(judged, "li", lambda c: {"passed": "yes"}),
        filled(
            judged, "wang", lambda c: {"passed": "unsure" if c == design.drawn[0] else "no" if c in apart else "yes"}
        ),
    ]
    import_review(judged, backs, replace_labels=False)
    status = review_status(judged)
    assert (status["stage"], status["next"], status["disputed"], status["settled"]) == ("criteria", "settle", 4, 0)
    tree = judge_bias(judged)
    assert tree["disagreements"]["passed"]["n"] == sum(tree["disagreements"]["passed"]["by_type"].values()) == 4
    assert tree["fields"]["pass"]["n_open"] == 4
    sent = command("review", "export", path, "--disagreements", "--format", "csv")
    assert "adjudicator: 4 items" in sent.output
    grown = design_of(judged)
    assert grown.given_to("adjudicator") == apart
    import_review(judged, [filled(judged, "adjudicator", lambda _: {"passed": "no"})], replace_labels=False)
    settled = judge_bias(judged)
    assert settled["disagreements"]["passed"]["settled"] == 4
    assert settled["fields"]["pass"]["n_open"] == 0
    assert settled["annotators"]["agreement"] == tree["annotators"]["agreement"]
    assert settled["annotators"]["names"] == ["li", "wang"]
    assert (review_status(judged)["stage"], review_status(judged)["settled"]) == ("labelling", 4)
    assert "no two annotators differ on a case that the third reader has not been given" in refused(
        "review", "export", path, "--disagreements"
    )


@pytest.mark.parametrize(
    ("fraction", "names", "stage", "then"),
    [
        pytest.param(0.15, ["li"], "pilot", "second", id="one person"),
        pytest.param(0.15, ["li", "wang"], "pilot", "second", id="two, on nine cases"),
        pytest.param(0.5, ["li", "wang"], "labelling", "more", id="two, on thirty cases"),
        pytest.param(1.0, ["li", "wang"], "upkeep", "upkeep", id="two, on sixty"),
    ],
)
def test_status_names_the_stage_and_the_next_step(
    judged: ReviewedRun, fraction: float, names: list[str], stage: str, then: str
) -> None:
    empty = command("review", "status", judged.folder.path)
    assert "stage: nothing is labelled yet" in empty.output
    assert f"review export {judged.folder.path} --annotators 2" in empty.output
    export(judged, *names, fraction=fraction)
    import_review(judged, [filled(judged, name) for name in names], replace_labels=False)
    status = review_status(judged)
    assert (status["stage"], status["next"]) == (stage, then)
    assert status["annotators"]["li"]["labels"] == status["annotators"]["li"]["given"] == status["n_labelled"]
    for lang in ("en", "zh"):
        printed = command("review", "status", judged.folder.path, "--lang", lang)
        assert printed.exit_code == 0
        assert "{" not in printed.output


def test_a_small_run_that_two_people_labelled_whole_is_past_its_pilot(tmp_path: Path) -> None:
    reviewed = ReviewedRun(graded(tmp_path, 10).path)
    export(reviewed, "BRUNO", "wang", fraction=1.0)
    import_review(reviewed, [filled(reviewed, "BRUNO"), filled(reviewed, "wang")], replace_labels=False)
    assert review_status(reviewed)["stage"] == "upkeep"
    assert "BRUNO: 10 labels" in command("review", "status", reviewed.folder.path).output  # not the word RUN in it


# --- labels of elsewhere ---------------------------------------------------------------------------------------------


def test_a_labels_file_of_elsewhere_is_taken_and_corrects_only_where_it_is_whole(
    judged: ReviewedRun, tmp_path: Path
) -> None:
    rows = [{"case_id": f"case-{i:03}", "annotator": "li", **truth(f"case-{i:03}")} for i in range(N_CASES)]
    part, whole = write_rows(tmp_path / "part.jsonl", rows[:30]), write_rows(tmp_path / "whole.jsonl", rows)
    assert "30 labels are new" in command("review", "import", judged.folder.path, part).output
    said = command("bias", judged.folder.path)
    assert "R1: some cases entered the review with unknown probability" in said.output
    assert "of the labelled alone, not representative: both pass" in said.output
    assert judged.folder.read_json("bias.json")["fields"]["pass"]["corrected"] is None
    assert "30 labels are new" in command("review", "import", judged.folder.path, whole).output
    tree = judge_bias(judged)
    people = sum(truth(row["case_id"])["passed"] == "yes" for row in rows) / N_CASES
    assert tree["fields"]["pass"]["corrected_this_set"]["value"] == pytest.approx(people)
    assert tree["rule"] in ("R3", "R4")


def test_labels_of_unknown_cases_and_blank_ones_are_no_labels(judged: ReviewedRun, tmp_path: Path) -> None:
    rows: list[Mapping[str, Any]] = [{"case_id": "case-001", "annotator": "li", "passed": True}, {"case_id": "nobody"}]
    said = refused("review", "import", judged.folder.path, write_rows(tmp_path / "l.jsonl", rows))
    assert "l.jsonl:2: case_id: found 'nobody', which this run does not have" in said
    assert labels_bytes(judged) is None
    blank = write_rows(tmp_path / "l.jsonl", [rows[0], {"case_id": "case-002", "annotator": "li", "note": "odd"}])
    imported = import_review(judged, [blank], replace_labels=False)
    assert (imported.n_new, imported.n_blank) == (1, {"li": 1})


def test_sheets_and_label_files_come_in_any_order(judged: ReviewedRun, tmp_path: Path) -> None:
    export(judged, "li")
    design = design_of(judged)
    outside = write_rows(tmp_path / "l.jsonl", [{"case_id": c, "annotator": "x", **truth(c)} for c in design.drawn])
    imported = import_review(judged, [outside, filled(judged, "li")], replace_labels=False)
    assert (imported.n_new, imported.n_labels) == (18, 18)
    assert judge_bias(judged)["annotators"]["agreement"]["value"] == 1.0


def test_pooling_two_versions_of_the_instructions_is_warned_of(judged: ReviewedRun, tmp_path: Path) -> None:
    export(judged, "li")
    import_review(judged, [filled(judged, "li")], replace_labels=False)
    old = [{"case_id": "case-001", "annotator": "x", "passed": True, "instructions_version": "older"}]
    got = command("review", "import", judged.folder.path, write_rows(tmp_path / "l.jsonl", old))
    assert "these labels were made by 2 versions of the instructions" in got.output
    assert "follow 2 versions" in command("review", "status", judged.folder.path).output


# --- other kinds of runs ---------------------------------------------------------------------------------------------


@pytest.fixture
def compared(tmp_path: Path) -> ReviewedRun:
    """A comparison of two runs, in which the judge likes the longer answer."""
    sides = []
    for name, says in (("one", "It seats {} people."), ("two", "{}.")):
        (tmp_path / name).mkdir()
        cases, _ = files(tmp_path / name, 16)
        answers = [
            {"id": f"case-{i:03}", "answer": says.format(100 + i) if i % 4 else "The same.", "contexts": []}
            for i in range(16)
        ]
        answers_path = write_rows(tmp_path / name / "a.jsonl", answers)
        made = settings(tmp_path, judge="none", name=name)
        sides.append(run(RunRequest(made, cases, answers_path), WORLD).folder)

    def longer(request: JudgeRequest) -> str:
        first, second = re.findall(r"<<(?:\w+) answer [AB]\n(.*?)\n", request.text)
        return json.dumps({"winner": "tie" if first == second else "A" if len(first) > len(second) else "B"})

    with JudgeServer(longer) as server:
        made = settings(tmp_path, server.base_url, judge="pairwise", repeats=1)
        return ReviewedRun(pairwise(PairwiseRequest(made, sides[0], sides[1]), WORLD).folder.path)


@pytest.mark.parametrize("format", ["csv", "html"])
def test_of_a_comparison_the_winner_is_named_by_system_whatever_its_place(compared: ReviewedRun, format: str) -> None:
    export(compared, "li", fraction=1.0, format=format)
    sheet, path = newest(compared, "li")
    design = design_of(compared)
    assert {key.is_swapped for key in design.keys.values()} == {True, False}
    said = {}
    for item in sheet.items:  # people like the shorter one
        one, other = item.texts.answers
        said[item.id] = {"winner": "tie" if one == other else "A" if len(one) < len(other) else "B"}
    import_review(compared, [fill(path, format, sheet, said)], replace_labels=False)  # type: ignore[arg-type]
    assert {label.values["winner"] for label in compared.labels()} == {"B", "tie"}
    tree = judge_bias(compared)
    assert tree["fields"]["winner"]["table"] == {
        "judge_a": {"a": 0, "b": 12, "tie": 0},
        "judge_b": {"a": 0, "b": 0, "tie": 0},
        "judge_tie": {"a": 0, "b": 0, "tie": 4},
    }
    assert tree["fields"]["winner"]["agreement"]["value"] == 0.25
    for lang in ("en", "zh"):
        assert command("bias", compared.folder.path, "--lang", lang).exit_code == 0


def test_of_a_comparison_the_sample_is_by_outcome(compared: ReviewedRun) -> None:
    sent = command("review", "export", compared.folder.path, "--json")
    assert json.loads(sent.output)["n_drawn"] == 8
    strata = compared.review.read_json("design.json")["strata"]
    assert [(s["stratum"], s["n"], s["N"]) for s in strata] == [("a", 4, 12), ("tie", 4, 4)]


def test_of_a_scale_the_score_is_asked_and_compared(tmp_path: Path) -> None:
    paths = files(tmp_path, 24)
    with JudgeServer(lambda request: json.dumps({"score": 1 + number(request.text) % 5})) as server:
        made = settings(tmp_path, server.base_url, judge="scale", repeats=1)
        reviewed = ReviewedRun(run(RunRequest(made, *paths), WORLD).folder.path)
    export(reviewed, "li", "wang", fraction=1.0)
    backs = [filled(reviewed, name, lambda c: {"score": str(1 + int(c[-3:]) % 5)}) for name in ("li", "wang")]
    import_review(reviewed, backs, replace_labels=False)
    tree = judge_bias(reviewed)
    assert list(tree["fields"]) == ["score"]
    assert (tree["fields"]["score"]["kappa"]["value"], tree["fields"]["score"]["bias"]["value"]) == (1.0, 0.0)
    assert (tree["annotators"]["field"], tree["annotators"]["kappa"]["value"]) == ("score", 1.0)
    assert "weighted kappa 1.00" in command("bias", reviewed.folder.path).output


def test_without_a_judge_the_rules_make_the_strata_and_there_is_no_bias(tmp_path: Path) -> None:
    paths = files(tmp_path, 20)
    reviewed = ReviewedRun(run(RunRequest(settings(tmp_path, judge="none"), *paths), WORLD).folder.path)
    export(reviewed, "li")
    assert import_review(reviewed, [filled(reviewed, "li")], replace_labels=False).n_new == 8
    assert "no judge was asked of this run" in refused("bias", reviewed.folder.path)


def test_a_regraded_run_is_reviewed_as_any_other(judged: ReviewedRun) -> None:
    again = ReviewedRun(regrade(judged.folder, WORLD, {"out": str(judged.folder.path.parent)}).result.folder.path)
    export(again, "li")
    import_review(again, [filled(again, "li")], replace_labels=False)
    assert judge_bias(again)["n_labelled"] == 9


# --- how it is said --------------------------------------------------------------------------------------------------


def test_json_is_one_object_and_quiet_says_nothing_else(judged: ReviewedRun) -> None:
    path = judged.folder.path
    sent = command("review", "export", path, "--format", "csv", "--json", "--quiet")
    assert (sent.exit_code, sent.stderr) == (0, "")
    printed = json.loads(sent.stdout)
    assert (printed["items"], printed["n_drawn"], printed["n_cases"]) == ({"a1": 9}, 9, 60)
    assert [Path(name).name for name in printed["files"]] == ["sheet-a1.csv", "sheet-a1.instructions.txt"]
    for arguments in (("review", "import", path, filled(judged, "a1")), ("review", "status", path), ("bias", path)):
        ended = command(*arguments, "--json", "--quiet")
        assert (ended.exit_code, ended.stderr) == (0, "")
        assert isinstance(json.loads(ended.stdout), dict)


def test_in_chinese_everything_is_said_in_chinese(judged: ReviewedRun) -> None:
    path = judged.folder.path
    sent = command("review", "export", path, "--lang", "zh", "--format", "csv", "--annotators", "王芳")
    assert "样本:60 条中抽取 9 条" in sent.output
    assert "有依据" in (judged.review.path / "sheet-王芳.instructions.txt").read_text(encoding="utf-8-sig")
    back = filled(judged, "王芳", lambda c: {"passed": "通过" if truth(c)["passed"] == "yes" else "不通过"})
    assert "新增或补全 9 条标注" in command("review", "import", path, back, "--lang", "zh").output
    assert "阶段:试标" in command("review", "status", path, "--lang", "zh").output
    assert "pass:评审" in command("bias", path, "--lang", "zh").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("export", "--fraction", "0"), "--fraction", id="no share"),
        pytest.param(("export", "--fraction", "1.5"), "--fraction", id="more than all"),
        pytest.param(("export", "--fraction", "nan"), "--fraction", id="no number"),
        pytest.param(("export", "--half-width", "0.5"), "--half-width: found 0.5", id="a width that says nothing"),
        pytest.param(("export", "--half-width", "nan"), "--half-width: found nan", id="no width"),
        pytest.param(("export", "--format", "pdf"), "--format: found 'pdf'", id="a format"),
        pytest.param(("export", "--annotators", "0"), "expected 1 to 20 people", id="nobody"),
        pytest.param(("export", "--annotators", "li,"), "--annotators", id="no name"),
        pytest.param(("export", "--annotators", "li,Li"), "names one person twice", id="one person twice"),
        pytest.param(("export", "--annotators", "../x"), "annotator '../x'", id="a path"),
        pytest.param(("export", "--annotators", "adjudicator"), "that is the third reader", id="the third reader"),
        pytest.param(("import", "missing.csv"), "no sheet was exported of this run", id="nothing was exported"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing_behind(
    judged: ReviewedRun, arguments: tuple[str, ...], message: str
) -> None:
    name, *more = arguments
    assert message in refused("review", name, judged.folder.path, *more)
    assert not judged.review.path.exists()


def test_bad_input_ends_with_2(judged: ReviewedRun, tmp_path: Path) -> None:
    for arguments in (("review", "export", judged.folder.path, "--annotators", "a/b"), ("bias", tmp_path)):
        ended = rag_judge(*arguments, cwd=tmp_path)
        assert (ended.returncode, ended.stdout) == (2, ""), arguments
        assert ended.stderr.startswith("rag-judge: ")


def test_a_broken_design_is_refused_with_words(judged: ReviewedRun) -> None:
    export(judged, "li")
    back = filled(judged, "li")
    judged.review.write_json("design.json", {"format_version": 1, "sheets": []})
    assert "not what an export wrote" in refused("review", "import", judged.folder.path, back)
    (judged.review.path / "design.json").write_text("{", encoding="utf-8")
    assert "not valid JSON" in refused("review", "status", judged.folder.path)
