"""The documentation against the program: commands, options, settings, columns and names that it tells must exist."""

import re
import shlex
import subprocess
import sys
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from rag_judge.archive import CASE_COLUMNS
from rag_judge.attribution import LAYER_OF
from rag_judge.records import OutcomeName, UnscoredReason
from rag_judge.sections import PLACES, SECTIONS
from rag_judge.settings import Settings, load_settings

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMAND = re.compile(r"(?:\S*/)?rag-judge(?=\s|$)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
CODE_SPAN = re.compile(r"(`+)(.+?)\1", re.DOTALL)
FENCE = re.compile(r"^ {0,3}(```+|~~~+)(.*)$")
LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")


def parted(text: str) -> tuple[list[str], str]:
    """The lines of fenced and indented code, and the text without them."""
    code, kept, fence = [], [], ""
    for line in text.splitlines():
        mark = FENCE.match(line)
        if mark and (not fence or line.strip().startswith(fence)):
            fence = "" if fence else mark[1]
        elif fence or line.startswith(("    ", "\t")):
            code.append(line.strip())
        else:
            kept.append(line)
    return code, "\n".join(kept)


def prose(text: str) -> str:
    return parted(text)[1]


def code_spans(text: str) -> list[str]:
    return [" ".join(span.split()) for _, span in CODE_SPAN.findall(prose(text))]


def command_lines(text: str) -> list[str]:
    """What calls rag-judge, in blocks and in spans; a line that ends in a backslash goes on."""
    lines = re.sub(r"\\\n", "", "\n".join(parted(text)[0])).splitlines()
    return [line for line in (*lines, *code_spans(text)) if COMMAND.match(line)]


def named(text: str) -> set[str]:
    """Every code span, and every word of it."""
    spans = code_spans(text)
    return {*spans, *(word for span in spans for word in re.findall(r"[\w.-]+", span))}


@cache
def help_of(*command: str) -> tuple[frozenset[str], frozenset[str]]:
    """The options and the subcommands that a command's own help lists."""
    ended = subprocess.run(
        [sys.executable, "-m", "rag_judge.cli", *command, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    parts = re.split(r"^(Options|Commands):$", ended.stdout, flags=re.MULTILINE)
    listed = dict(zip(parts[1::2], parts[2::2], strict=True))
    options = re.findall(r"^ {2}(--[a-z-]+)", listed["Options"], re.MULTILINE)
    commands = re.findall(r"^ {2}([a-z-]+)", listed.get("Commands", ""), re.MULTILINE)
    return frozenset(options), frozenset(commands)


def faults_of(line: str) -> list[str]:
    """What a command line names that does not exist."""
    command: list[str] = []
    known, subcommands = help_of()
    for word in shlex.split(line, comments=True)[1:]:
        option = word.partition("=")[0]
        if word in subcommands:
            command.append(word)
            known, subcommands = help_of(*command)
        elif not command and not word.startswith("-"):
            return [f"{line}: no command {word}"]
        elif OPTION.fullmatch(option) and option not in known:
            return [f"{line}: no option {option}"]
    return []


def every_option() -> set[str]:
    options, commands = help_of()
    found = set(options)
    for command in commands:
        own, subcommands = help_of(command)
        found |= own
        for subcommand in subcommands:
            found |= help_of(command, subcommand)[0]
    return found


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("rag-judge run --cases c.jsonl --judge none  # rules", ""),
        ("rag-judge runs show 2026-01-31-x --json", ""),
        ("rag-judge --version", ""),
        ("rag-judge runs show x --k 3", "no option --k"),
        ("rag-judge frobnicate --cases c", "no command frobnicate"),
    ],
)
def test_a_command_line_is_read_as_the_program_reads_it(line: str, fault: str) -> None:
    assert [found.rpartition(": ")[2] for found in faults_of(line)] == ([fault] if fault else [])


def test_code_is_told_from_prose() -> None:
    block = "```sh\nrag-judge run \\\n    --cases c\n```"
    text = f"Use `--k 3`.\n\n    pip install --no-deps x\n\n{block}\nSee `rag-judge runs`."
    assert command_lines(text) == ["rag-judge run --cases c", "rag-judge runs"]
    assert "--no-deps" not in prose(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_command_line_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [fault for line in command_lines(text) for fault in faults_of(line)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_option_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # A span of another program (`pip install --no-deps …`) has options of its own.
    own = CODE_SPAN.sub(lambda span: span[0] if span[2].startswith(("--", "rag-judge")) else " ", prose(text))
    assert sorted(set(OPTION.findall(own)) - every_option()) == []


def slug(heading: str) -> str:
    """The anchor that a Markdown heading gets on a code host."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def headings(page: Path) -> set[str]:
    text = prose(page.read_text(encoding="utf-8"))
    return {slug(heading) for heading in re.findall(r"^#{1,6} +(.+)$", text, re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    broken = []
    for link in LINK.findall(prose(page.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if re.match(r"[a-z]+:", link):
            continue
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in headings(target)):
            broken.append(link)
    assert broken == []


def page_words(name: str) -> set[str]:
    return named((ROOT / "docs" / name).read_text(encoding="utf-8"))


def test_every_column_of_the_case_table_is_told() -> None:
    assert sorted(set(CASE_COLUMNS) - page_words("formats.md")) == []


def test_every_setting_and_every_variable_is_told() -> None:
    settings = {f"{section}.{field.name}" for section, kind in SECTIONS.items() for field in fields(kind)}
    variables = {f"RAG_JUDGE_{name.upper()}" for name in PLACES}
    assert sorted((settings | variables) - page_words("commands.md")) == []


def test_the_settings_file_in_full_is_valid_and_holds_the_defaults(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    in_full = text.partition("### rag-judge.toml in full")[2].partition("```toml\n")[2].partition("```")[0]
    (tmp_path / "full.toml").write_text(in_full, encoding="utf-8")
    assert load_settings(tmp_path / "full.toml", {}, {}) == Settings()


def test_every_outcome_cause_layer_and_unscored_reason_is_told() -> None:
    names = {*get_args(OutcomeName), *get_args(UnscoredReason), *LAYER_OF, *LAYER_OF.values()}
    assert sorted(names - page_words("numbers.md")) == []
