"""The command line with only the named command built does what the whole one does."""

from __future__ import annotations

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from rag_judge.cli import app
from rag_judge.quick_start import app_for

NAMES = sorted(get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--help"],
        ["--version"],
        ["nothing"],
        ["--nothing"],
        ["runs", "show", "--help"],
        ["review", "export", "--help"],
        ["review", "nothing"],
        ["run", "--nothing"],
        ["compare"],
        *([name, "--help"] for name in NAMES),
    ],
    ids=" ".join,
)
def test_it_says_the_same_and_ends_the_same(arguments: list[str]) -> None:
    whole, quick = (CliRunner().invoke(one, arguments) for one in (app, app_for(app, arguments)))
    assert (quick.output, quick.exit_code) == (whole.output, whole.exit_code)


def test_every_command_of_the_whole_app_is_listed() -> None:
    assert {"run", "review", "runs", "compare-judges", "import", "gate"} <= set(NAMES)
    assert sorted(get_command(app_for(app, ["--help"])).commands) == NAMES  # type: ignore[attr-defined]
