"""What is said on stderr: a line every 30 seconds, nothing when quiet, a bar on a terminal."""

import os
import pty
import select
import subprocess
import sys

import pytest

from rag_judge.progress import LINE_EVERY_S, Voice

CODE = """
from rag_judge.progress import Voice
with Voice(quiet={quiet}) as voice:
    for done in range(4):
        voice.progress("judged", done, 3)
    voice.say("[doc1] a remark\x1b[31m")
print("the result")
"""


def test_elsewhere_than_on_a_terminal_a_line_comes_every_thirty_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter([0.0, 1.0, LINE_EVERY_S + 1, LINE_EVERY_S + 2, 2 * LINE_EVERY_S + 1])
    with Voice(quiet=False, monotonic=lambda: next(clock)) as voice:
        for done in range(5):
            voice.progress("judged", done, 9)
    assert capsys.readouterr().err.splitlines() == ["judged: 2 of 9", "judged: 4 of 9"]


def test_quiet_says_remarks_and_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter([0.0, 100.0, 200.0])
    with Voice(quiet=True, monotonic=lambda: next(clock)) as voice:
        voice.progress("judged", 1, 2)
        voice.say("warning: one\ntwo")
    assert capsys.readouterr().err == "warning: one\ntwo\n"


def test_on_a_terminal_there_is_a_bar_and_a_remark_is_neither_markup_nor_control_characters() -> None:
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", CODE.format(quiet=False)],
        stderr=slave,
        stdout=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm"},
    ) as process:
        os.close(slave)
        shown = b""
        while select.select([master], [], [], 30)[0]:
            try:
                shown += os.read(master, 4096)
            except OSError:  # the terminal's other end was closed: the process ended
                break
        printed = process.stdout.read() if process.stdout else b""
    os.close(master)
    assert b"judged" in shown
    assert b"[doc1] a remark [31m" in shown
    assert printed == b"the result\n"
