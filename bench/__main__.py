"""Speed and memory of rag-judge, as ratios against a bound or a peer in the same run. Nothing is asserted.

usage: python -m bench [NAME …]     names: start, memory, calls, verdicts, lint, soak, coverage, gate, drift
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import aiohttp

from bench.coverage import coverage_lines
from bench.drift import drift_lines
from bench.gate import gate_lines
from bench.lint import lint_lines
from bench.soak import soak_lines
from rag_judge.judge import ModelServer, Server
from rag_judge.records import Call, VerdictField
from rag_judge.verdicts import read_verdict
from tests.servers import judge_process

N_CASES, CONTEXT_MB, MEMORY_BOUND_MB = 100_000, 400, 400
N_CALLS = 1500


def cpu_of(command: list[str]) -> float:
    """CPU seconds of the fastest of five starts."""
    fastest = float("inf")
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        fastest = min(fastest, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return fastest


def start() -> Iterator[str]:
    """CPU of `--help` and of importing the package, against the bound of 0.2 s."""
    for name, code in (
        ("--help", "import sys; sys.argv = ['rag-judge', '--help']; from rag_judge.cli import main; main()"),
        ("import rag_judge", "import rag_judge"),
    ):
        seconds = cpu_of([sys.executable, "-c", code])
        yield f"{name}: {seconds:.3f} s of CPU, {seconds / 0.2:.2f} of the bound of 0.2 s"


def memory() -> Iterator[str]:
    """Peak memory of a run over 100,000 cases with 400 MB of contexts, against the bound of 400 MB."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_large_set(folder)
        size = (folder / "answers.jsonl").stat().st_size
        began = time.monotonic()
        arguments = [
            "run",
            "--cases",
            "cases.jsonl",
            "--answers",
            "answers.jsonl",
            "--judge",
            "none",
            "--json",
            "--quiet",
        ]
        process = subprocess.Popen(
            [sys.executable, "-m", "rag_judge.cli", *arguments],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)},
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
    peak_mb = usage.ru_maxrss / 1024
    yield (
        f"{N_CASES:,} cases, {size / 1e6:.0f} MB of answers: {peak_mb:.0f} MB at most, "
        f"{peak_mb / MEMORY_BOUND_MB:.2f} of the bound, {seconds:.0f} s, exit {os.waitstatus_to_exitcode(status)}"
    )


def write_large_set(folder: Path) -> None:
    """Cases and answers with about 4 kB of contexts each."""
    rng = random.Random(1)
    vocabulary = [f"word{i}" for i in range(3000)]
    with (
        (folder / "cases.jsonl").open("w", encoding="utf-8") as cases,
        (folder / "answers.jsonl").open("w", encoding="utf-8") as answers,
    ):
        for i in range(N_CASES):
            case = {"id": f"q{i}", "question": f"How many seats has hall {i}?", "must_include": [str(100 + i)]}
            cases.write(json.dumps(case | {"relevant_docs": [f"d#{i}"], "expect_refusal": False}) + "\n")
            contexts = [
                {"id": f"{'d' if rank == 1 else 'x'}#{i}", "text": " ".join(rng.choices(vocabulary, k=95))}
                for rank in range(5)
            ]
            answer = {"id": f"q{i}", "answer": f"The hall has {100 + i} seats.", "contexts": contexts}
            answers.write(json.dumps(answer) + "\n")


CALL = Call(
    call_id="0" * 40,
    case_id="c",
    repeat=0,
    order=None,
    variant=None,
    messages=({"role": "user", "content": "grade " * 300},),
    parameters={"temperature": 0, "max_tokens": 50},
)


def calls() -> Iterator[str]:
    """CPU a call of the judge client, against a bare aiohttp session posting the same to the same server."""
    with judge_process() as base_url:
        ours = asyncio.run(timed(lambda: ask_ours(base_url)))
        bare = asyncio.run(timed(lambda: ask_bare(base_url)))
    yield f"judge client: {ours / N_CALLS * 1e3:.2f} ms of CPU a call, {ours / bare:.1f} times bare aiohttp"


async def timed(ask: Callable[[], object]) -> float:
    """CPU seconds of this process while `ask` runs."""
    before = time.process_time()
    await ask()  # type: ignore[misc]
    return time.process_time() - before


async def ask_ours(base_url: str) -> None:
    """All calls through ModelServer, sixteen at a time."""
    server = Server(base_url, "judge-1", "none")
    async with ModelServer(server, lambda: datetime.now(UTC), lambda line: None) as judge:
        for _ in range(N_CALLS // 16):
            await asyncio.gather(*(judge.ask(CALL) for _ in range(16)))


async def ask_bare(base_url: str) -> None:
    """All calls through one aiohttp session, sixteen at a time."""
    body = {"model": "judge-1", "messages": list(CALL.messages), "temperature": 0, "max_tokens": 50}

    async def post(session: aiohttp.ClientSession) -> None:
        async with session.post(f"{base_url}/chat/completions", json=body) as response:
            await response.read()

    async with aiohttp.ClientSession() as session:
        for _ in range(N_CALLS // 16):
            await asyncio.gather(*(post(session) for _ in range(16)))


def verdicts() -> Iterator[str]:
    """Time to read a verdict, against json.loads of the same text, for a clean reply and a chatty one."""
    fields = tuple(VerdictField(name, "boolean") for name in ("grounded", "complete", "should_abstain"))
    line = '{"grounded": true, "complete": true, "should_abstain": false, "reason": "Every claim is in passage 2."}'
    bare = seconds_each(lambda: json.loads(line))
    for name, text in (("clean", line), ("chatty", f"<think>Let me see {{a}}.</think>\n```json\n{line}\n```\nDone.")):
        ours = seconds_each(lambda text=text: read_verdict(text, fields))  # type: ignore[misc]
        yield f"a {name} verdict: {ours * 1e6:.0f} µs, {ours / bare:.0f} times json.loads"


def seconds_each(act: Callable[[], object], n: int = 3000) -> float:
    """Seconds of one act, over many."""
    began = time.perf_counter()
    for _ in range(n):
        act()
    return (time.perf_counter() - began) / n


BENCHES = {
    "start": start,
    "memory": memory,
    "calls": calls,
    "verdicts": verdicts,
    "lint": lint_lines,
    "soak": soak_lines,
    "coverage": coverage_lines,
    "gate": gate_lines,
    "drift": drift_lines,
}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or BENCHES:
        for said in BENCHES[chosen]():
            print(f"{chosen:10}{said}", flush=True)
