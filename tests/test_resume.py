"""A run that is really killed, again and again, ends as an undisturbed one does."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rag_judge.archive import RunFolder, list_runs
from tests.eval_sets import numbered_files
from tests.servers import judge_process

pytestmark = pytest.mark.slow
COMMAND = [sys.executable, "-m", "rag_judge.cli"]
ENVIRONMENT = {**os.environ, "OPENAI_API_KEY": "k"}


def started(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "run", *arguments], env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def resume_of(archive: Path) -> list[str]:
    """The arguments that go on with the one run of an archive, if it was begun at all."""
    return [part for run in list_runs(archive) for part in ("--resume", str(run.path))]


def wait_for_end(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait as long, or until the process ends by itself."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=seconds)


def wait_for_lines(archive: Path, n_more: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the journal of the archive's run has grown by so many lines, or the process has ended."""
    n_before = n_lines(archive)
    while n_lines(archive) < n_before + n_more and process.poll() is None:
        wait_for_end(process, 0.005)


def n_lines(archive: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in archive.glob("*/calls.jsonl"))


def call_ids(folder: RunFolder) -> list[str]:
    return [json.loads(line)["call_id"] for line in folder.journal.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_killed_ten_times_ends_with_the_calls_and_bytes_of_an_undisturbed_one(tmp_path: Path, seed: int) -> None:
    cases, answers = numbered_files(tmp_path, 60)
    rng = random.Random(seed)
    with judge_process("--seed", str(seed), "--delay", "0.02") as base_url:
        arguments = ["--cases", str(cases), "--answers", str(answers), "--base-url", base_url, "--model", "judge-1"]
        arguments += ["--repeats", "5", "--concurrency", "4", "--seed", "3"]
        undisturbed = started(*arguments, "--out", str(tmp_path / "plain"))
        assert undisturbed.communicate()[1] == b"" or undisturbed.returncode == 0
        assert undisturbed.returncode == 0

        archive = tmp_path / "killed"
        for n_killed in range(10):
            process = started(*arguments, "--out", str(archive), *resume_of(archive))
            if n_killed < 3:  # somewhere in the start: before the folder, the snapshot, the first call
                wait_for_end(process, rng.uniform(0.2, 1.2))
            else:  # somewhere in the middle of the calls
                wait_for_lines(archive, rng.randint(2, 14), process)
            assert process.poll() is None, "the run ended before it could be killed"
            process.kill()
            process.communicate()
        ended = started(*arguments, "--out", str(archive), *resume_of(archive))
        _, errors = ended.communicate()
        assert ended.returncode == 0, errors
    (plain,), (killed,) = list_runs(tmp_path / "plain"), list_runs(archive)
    assert set(call_ids(killed)) == set(call_ids(plain))
    assert len(call_ids(killed)) == len(set(call_ids(killed)))
    for name in ("summary.json", "cases.csv"):
        assert (killed.path / name).read_bytes() == (plain.path / name).read_bytes()
    assert killed.read_json("manifest.json")["cost"]["resent"] <= 4 * 10  # at most the concurrency, each time


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_ends_within_seconds_keeps_its_replies_and_says_how_to_go_on(
    tmp_path: Path, number: signal.Signals
) -> None:
    cases, answers = numbered_files(tmp_path, 200)
    with judge_process("--delay", "0.05") as base_url:
        arguments = ["--cases", str(cases), "--answers", str(answers), "--base-url", base_url, "--model", "judge-1"]
        process = started(*arguments, "--out", str(tmp_path / "runs"))
        journal = None
        deadline = time.monotonic() + 30
        while (journal is None or journal.stat().st_size == 0) and time.monotonic() < deadline:
            journal = next((tmp_path / "runs").glob("*/calls.jsonl"), None)
        process.send_signal(number)
        stopped_at = time.monotonic()
        _, errors = process.communicate(timeout=20)
        assert time.monotonic() - stopped_at < 10
    assert process.returncode == 130
    assert b"go on with: rag-judge run --resume" in errors
    assert b"Traceback" not in errors
    assert journal is not None
    kept = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    assert kept
    assert json.loads((journal.parent / "manifest.json").read_text(encoding="utf-8"))["status"] == "incomplete"


def test_a_run_in_the_background_ends_on_sigterm_though_it_was_started_deaf_to_ctrl_c(tmp_path: Path) -> None:
    cases, answers = numbered_files(tmp_path, 200)
    with judge_process("--delay", "0.05") as base_url:
        arguments = ["--cases", str(cases), "--answers", str(answers), "--base-url", base_url, "--model", "judge-1"]
        out = tmp_path / "runs"
        # as `nohup rag-judge … &` does in a script
        deaf = "import os, sys, signal as s; s.signal(s.SIGINT, s.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
        command = [
            sys.executable,
            "-c",
            deaf,
            sys.executable,
            "-m",
            "rag_judge.cli",
            "run",
            *arguments,
            "--out",
            str(out),
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for_lines(out, 2, process)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"go on with: rag-judge run --resume" in errors
    assert b"Traceback" not in errors
