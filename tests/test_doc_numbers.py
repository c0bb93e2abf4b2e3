"""What the documentation says of the shipped example against the example: printed lines, counts, single cases.

A page quotes a printed line as code with " for v1" or " for v2" behind it, after the mark *Example:*. A fenced block
that shows what a command prints has a comment before it that names the command. Here: these two, the cases that pages
name, and the scripts of docs/troubleshooting.md. Not here: commands, options and columns (test_docs.py).
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rag_judge.archive import read_run
from tests.test_cli import rag_judge
from tests.test_docs import PAGES, ROOT, code_spans, prose

METRICS, TROUBLE = ROOT / "docs" / "metrics.md", ROOT / "docs" / "troubleshooting.md"
COMMANDS = {
    "rag-judge demo --no-judge": "v1",
    "rag-judge demo --version v1 --no-judge": "v1",
    "rag-judge demo --version v2 --no-judge": "v2",
}
# A passage ends with its paragraph, its item of a list, its row of a table, or where the next one begins.
PASSAGE = re.compile(r"\*Example:\*(.*?)(?=\*Example:\*|\n\s*\n|\n\s*[-|]|\Z)", re.DOTALL)
QUOTED = re.compile(r"(\bprints )?`([^`]+)`(?: for (v[12])\b)?")
CASE_ID = re.compile(r"qa-\d+|q\d+")
PRINTED_BLOCK = re.compile(r"^<!-- printed by: (.+?) -->\n```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MARKER = re.compile(r"<!--\s*printed by", re.IGNORECASE)
RUN_PATH = re.compile(r"\S*\bruns/[^\s/]*?-demo-(v\d)(?:-\d+)?(?=/|\s|$)")


@dataclass(frozen=True, slots=True)
class Demo:
    """One version's demo without a judge: where its run is, what it printed, and its cases by id."""

    folder: Path
    lines: list[str]
    rows: Mapping[str, Mapping[str, Any]]


def undated(line: str) -> str:
    """The line with every path of a demo's run written alike, whatever its date and its place."""
    return RUN_PATH.sub(r"runs/DATE-demo-\1", line).rstrip()


def rows_of(run: Path) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in read_run(run).table().to_dict("records")]


def run_demo(version: str, folder: Path) -> Demo:
    ended = rag_judge("demo", "--version", version, "--no-judge", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    (run,) = (folder / "runs").glob(f"*-demo-{version}")
    rows = {row["id"]: row for row in rows_of(run)}
    return Demo(run, [undated(line) for line in (ended.stderr + ended.stdout).splitlines()], rows)


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Demo]:
    folder = tmp_path_factory.mktemp("demos")
    return {version: run_demo(version, folder) for version in ("v1", "v2")}


def quoted(text: str) -> Iterator[tuple[str, str | None]]:
    """Each text with a number that an example quotes, and the version named behind it.

    What stands behind "prints" is printed by a script of the page, and held by a test of that script.
    """
    for passage in PASSAGE.findall(prose(text)):
        for script, span, version in QUOTED.findall(" ".join(passage.split())):
            if not script and re.search(r"\d", span) and not CASE_ID.fullmatch(span):
                yield span, version or None


def printed_blocks(text: str) -> list[tuple[str, list[str]]]:
    """Each marked block as the command that is said to print it, and its lines; "…" stands for lines left out."""
    return [
        (command, [undated(line) for line in block.splitlines() if line.strip() not in ("", "…")])
        for command, block in PRINTED_BLOCK.findall(text)
    ]


# --- how pages are read --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("*Example:* `a 1` for v1, `b 2` for v2.", [("a 1", "v1"), ("b 2", "v2")], id="two versions"),
        pytest.param("- *Example:* `a\n  1` for\n  v1.\n- `b 2`", [("a 1", "v1")], id="over lines, to the item's end"),
        pytest.param("*Example:* `q01` has `hit`, `qa-002`\n\n`b 2`", [], id="ids and names are no numbers"),
        pytest.param("*Example:* `a 1`, which is so.", [("a 1", None)], id="no version"),
        pytest.param("*Example:* it prints `2 won`.", [], id="a script's line"),
        pytest.param("| *Example:* `a 1` for v1 | x |\n| `b 2` |", [("a 1", "v1")], id="a row of a table"),
    ],
)
def test_an_example_is_read_to_its_end_and_with_its_version(text: str, found: list[tuple[str, str | None]]) -> None:
    assert list(quoted(text)) == found


def test_a_marked_block_is_read_without_dates_and_an_unmarked_one_is_not() -> None:
    block = "```text\na 1\n…\n(details in runs/2026-01-31-demo-v1/cases.csv)\n```"
    text = f"{block}\n\n<!-- printed by: rag-judge demo --no-judge -->\n{block}\n"
    lines = ["a 1", "(details in runs/DATE-demo-v1/cases.csv)"]
    assert printed_blocks(text) == [("rag-judge demo --no-judge", lines)]
    assert undated("/tmp/x/runs/2026-02-01-demo-v1-2/report.html") == "runs/DATE-demo-v1/report.html"


# --- what is printed -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [METRICS, TROUBLE], ids=lambda path: path.name)
def test_every_line_that_an_example_quotes_is_printed_for_its_version(page: Path, demos: dict[str, Demo]) -> None:
    lines = list(quoted(page.read_text(encoding="utf-8")))
    assert lines
    assert [line for line, version in lines if version is None] == []
    wrong = [(line, v) for line, v in lines if v is not None and not any(line in given for given in demos[v].lines)]
    assert wrong == []


def test_the_metrics_page_quotes_both_versions() -> None:
    versions = [version for _, version in quoted(METRICS.read_text(encoding="utf-8"))]
    assert min(versions.count("v1"), versions.count("v2")) >= 5


def test_every_line_of_the_readmes_printed_blocks_is_printed(demos: dict[str, Demo]) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = printed_blocks(text)
    assert blocks, "README.md shows nothing that the demo prints"
    assert len(blocks) == len(MARKER.findall(text)), "a marker is not directly before a fence"
    for command, lines in blocks:
        assert command in COMMANDS
        assert lines, f"{command}: the block is empty"
        assert [line for line in lines if line not in demos[COMMANDS[command]].lines] == []


# --- what is said of cases -----------------------------------------------------------------------------------------


def test_every_case_that_a_page_names_exists(demos: dict[str, Demo]) -> None:
    named = {page.name: {*filter(CASE_ID.fullmatch, code_spans(page.read_text(encoding="utf-8")))} for page in PAGES}
    assert named["metrics.md"]
    assert named["troubleshooting.md"]
    missing = {page: sorted(ids - demos["v1"].rows.keys()) for page, ids in named.items()}
    assert [page for page, ids in missing.items() if ids] == [], missing


CUT = {"hit": True, "outcome": "fail", "cause": "split_by_chunking"}


@pytest.mark.parametrize(
    ("page", "version", "case_id", "said"),
    [
        pytest.param(
            METRICS, "v2", "qa-018", {"cause": "crowded_out", "must_not_include_ok": False}, id="neighbour alone"
        ),
        pytest.param(METRICS, "v2", "q12", {"cause": "refused_in_scope"}, id="refused, not in the rate"),
        pytest.param(METRICS, "v2", "q31", {"cause": "refused_in_scope"}, id="another refused, not in the rate"),
        pytest.param(METRICS, "v2", "qa-011", {"hit": False, "cause": "refused_in_scope"}, id="not found, refused"),
        pytest.param(METRICS, "v2", "qa-050", {"hit": False, "cause": "refused_in_scope"}, id="another not found"),
        pytest.param(METRICS, "v2", "q01", {"rule_correct": False}, id="people pass it"),
        pytest.param(METRICS, "v2", "q07", {"rule_correct": True}, id="people fail it"),
        pytest.param(
            TROUBLE, "v2", "qa-043", {"first_relevant_rank": 1, "cause": "refused_in_scope"}, id="found and refused"
        ),
        pytest.param(TROUBLE, "v1", "qa-055", CUT | {"recall": 0.5}, id="cut, half of it found"),
        pytest.param(TROUBLE, "v1", "q01", CUT | {"recall": 0.5}, id="another cut, half of it found"),
        pytest.param(TROUBLE, "v2", "qa-055", CUT | {"recall": 1.0}, id="cut, all of it found"),
        pytest.param(TROUBLE, "v2", "q01", CUT | {"recall": 1.0}, id="another cut, all of it found"),
        pytest.param(TROUBLE, "v2", "qa-018", {"first_relevant_rank": 2}, id="the sister at rank 1"),
        pytest.param(TROUBLE, "v1", "qa-075", {"first_relevant_rank": 2, "cause": "crowded_out"}, id="wrong first"),
        pytest.param(TROUBLE, "v2", "qa-075", {"first_relevant_rank": 1, "cause": "crowded_out"}, id="right first"),
    ],
)  # fmt: skip
def test_a_case_is_as_the_page_says(
    page: Path, version: str, case_id: str, said: dict[str, Any], demos: dict[str, Demo]
) -> None:
    assert case_id in code_spans(page.read_text(encoding="utf-8")), "the page no longer names it: drop this row"
    row = demos[version].rows[case_id]
    assert {name: row[name] for name in said} == said


def test_the_counts_that_the_pages_give_in_words_are_those_of_the_runs(demos: dict[str, Demo]) -> None:
    v1, v2 = demos["v1"].rows.values(), demos["v2"].rows.values()
    forbidden = [row for row in v2 if row["must_not_include_ok"] is False]
    assert [row["hit"] for row in forbidden] == [True] * 8
    assert sorted(row["cause"] for row in forbidden) == ["crowded_out"] * 8
    refused = [row for row in v2 if row["cause"] == "refused_in_scope"]
    assert (len(refused), sum(row["hit"] is True for row in refused)) == (16, 14)
    assert sum(row["first_relevant_rank"] == 1 for row in refused) == 12
    assert [sum(row["must_include_ok"] is False for row in rows) for rows in (v1, v2)] == [39, 19]
    failed = [row for row in v2 if row["outcome"] == "fail"]
    assert (len(failed), sum(row["hit"] is True for row in failed)) == (31, 29)


def test_people_and_rules_differ_as_the_page_says(demos: dict[str, Demo]) -> None:
    lines = (ROOT / "eval" / "demo_labels.v2.jsonl").read_text(encoding="utf-8").splitlines()
    people = {label["case_id"]: label["passed"] for label in map(json.loads, lines)}
    rules = {case_id: row["rule_correct"] for case_id, row in demos["v2"].rows.items()}
    kinder = {case_id for case_id in rules if people[case_id] and not rules[case_id]}
    stricter = {case_id for case_id in rules if rules[case_id] and not people[case_id]}
    assert (len(kinder), len(stricter)) == (8, 4)
    assert {"q01", "qa-011"} <= kinder
    assert "q07" in stricter


# --- the scripts of the troubleshooting page -----------------------------------------------------------------------


def output_of_script(heading: str, demos: dict[str, Demo], folder: Path) -> list[str]:
    """What the first script under the heading prints for the two runs, started in the folder."""
    section = TROUBLE.read_text(encoding="utf-8").partition(f"\n### {heading}\n")[2]
    script = section.partition("```python\n")[2].partition("\n```")[0].replace("eval/kb", f"{ROOT.as_posix()}/eval/kb")
    for version, demo in demos.items():
        script = script.replace(f"runs/2026-01-31-demo-{version}", demo.folder.as_posix())
    ended = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )
    return ended.stdout.splitlines()


def test_comparing_the_two_runs_prints_what_the_page_says(demos: dict[str, Demo], tmp_path: Path) -> None:
    printed = output_of_script("Compare two runs", demos, tmp_path)
    assert "58 won, 3 lost" in printed
    assert "`58 won, 3 lost`" in TROUBLE.read_text(encoding="utf-8")
    assert sum(line.startswith("changed: ") for line in printed) == 6
    (p,) = (float(line.removeprefix("p = ")) for line in printed if line.startswith("p = "))
    assert p < 1e-6
    assert sum("refused_in_scope" in line for line in printed) == 3


def test_seven_points_are_split_between_chunks(demos: dict[str, Demo], tmp_path: Path) -> None:
    printed = output_of_script("Points that no chunk holds", demos, tmp_path)
    assert len(printed) == 7
    assert all(line.endswith("split between chunks") for line in printed)
    ids = [line.partition(" ")[0] for line in printed]
    assert {"qa-055", "q01"} <= {*ids}
    assert {demos[version].rows[case_id]["outcome"] for version in demos for case_id in ids} == {"fail"}


def test_of_swapped_answers_only_refusals_that_were_expected_pass(demos: dict[str, Demo], tmp_path: Path) -> None:
    output_of_script("Swap the answers", demos, tmp_path)
    snapshot = demos["v2"].folder / "questions.snapshot.jsonl"
    ended = rag_judge("run", "--cases", snapshot, "--answers", "swapped.jsonl", "--judge", "none", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    (run,) = (tmp_path / "runs").iterdir()
    passed = [row for row in rows_of(run) if row["outcome"] == "pass"]
    assert len(passed) == 21
    assert all(row["did_abstain"] and row["expect_refusal"] for row in passed)
