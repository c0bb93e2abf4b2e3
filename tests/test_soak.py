"""Thousands of calls to a judge that fails in every known way: none is lost or doubled, and no fault decides anything.

Two whole runs over the same cases: at a judge with faults, which writes down what it sends, and at one without. What
must come out is worked out here from what the server wrote down, by a second method. `python -m bench soak` does the
same with 20,000 calls.
"""

import gc
import json
import os
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, Self

import pytest

from rag_judge.pipeline import RunRequest, RunResult, World, run
from rag_judge.settings import load_settings
from tests.eval_sets import numbered_answers, numbered_cases, write_rows
from tests.misbehaviour import LASTING_TROUBLES, LOST_CALLS, ODD_FORMS, PASSING_TROUBLES, SLOW_TROUBLES
from tests.servers import judge_process

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="handles and memory are read from /proc"),
]

N_CALLS = 5_000
N_REPEATS = 5  # odd: where all votes are read, every field has a majority
CONCURRENCY = 32
ATTEMPTS = 4  # one more than a call can need: after two faults in a row the judge lets it through once
FAULTS = ("--fault-rate", "0.2", "--odd-rate", "0.05", "--lasting-rate", "0.1")

# A handle for each request on its way; besides them the journal (2), cases and answers (3), the reply cache (3), the
# event loop (3), and a margin for connections that are being replaced.
MOST_HANDLES = CONCURRENCY + 16
# What has to be held of each call is its id, in two tables, with an offset, and for a minute when it was sent: 2 to 4
# objects and about 400 bytes. A reply that is kept would be 12 objects, a call with its messages 20. What is on its way
# differs between two readings by some thousand objects, and the allocator may hold megabytes that nothing uses.
MOST_OBJECTS_A_CALL, OBJECTS_ON_THEIR_WAY = 4, 8_000
MOST_BYTES_A_CALL, ALLOCATOR_MB = 600, 3

NOT_ANSWERED = ("hangs up", "silence", "slow drip", "reset", "reset after headers", "closed", "truncated", "garbage")
# What a call ends with whose last try this was: in the journal (None: a reply), and as the reason why there is no vote.
MEANT: Mapping[str | None, tuple[str | None, str]] = {
    "filtered": ("content_filter", "content_filter"),
    "filtered reply": (None, "content_filter"),
    "too long": ("context_too_long", "context_too_long"),
    "too large": ("context_too_long", "context_too_long"),
    "cut prompt": (None, "context_too_long"),
    "prose": (None, "unreadable"),
    "two minds": (None, "conflicting"),
    "refusal": (None, "refused"),
    "cut reply": (None, "truncated"),
    "no text": (None, "no_reply"),
    "broken server": ("server_error", "server_error"),
    # A call that is lost anyway may meet a passing fault at its last try: the last try is what is said of it.
    **dict.fromkeys((*PASSING_TROUBLES, *SLOW_TROUBLES), ("server_error", "server_error")),
    **dict.fromkeys(NOT_ANSWERED, ("no_reply", "no_reply")),
}
ASKED_AGAIN = ("unreadable", "conflicting")
TOKENS = ("prompt_tokens", "completion_tokens")
FIELDS = ("grounded", "complete", "should_abstain")

Place = tuple[str, int, str | None]  # case, repeat, variant
Vote = Mapping[str, bool] | str  # the grades, or why there are none


def n_handles() -> int:
    return len(os.listdir("/proc/self/fd")) - 1  # without that of the listing itself


@dataclass(frozen=True, slots=True)
class Memory:
    """What this process holds, without what the next collection would free."""

    resident_mb: float
    n_objects: int

    @classmethod
    def now(cls) -> Self:
        """A reading."""
        gc.collect()
        n_pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return cls(n_pages * os.sysconf("SC_PAGE_SIZE") / 1e6, sys.getallocatedblocks())


@dataclass(slots=True)
class Watch:
    """Handles and memory of this process while the judge is asked, read as the run reports its progress."""

    n_handles_before: int = field(default_factory=n_handles)
    most_handles: int = 0
    half: Memory | None = None
    end: Memory | None = None

    def __call__(self, what: str, n_done: int, n_all: int, note: str = "") -> None:
        """Take a reading: of the handles at every call, of the memory after half of the cases and at their end."""
        if what != "judged":
            return
        self.most_handles = max(self.most_handles, n_handles() - self.n_handles_before)
        if self.half is None and 2 * n_done >= n_all:
            self.half = Memory.now()
        if n_done == n_all:
            self.end = Memory.now()


@dataclass(frozen=True, slots=True)
class Try:
    """What the judge wrote down of one request: the name of what went wrong, if anything, and the body it sent."""

    trouble: str | None
    body: str | None


@dataclass(frozen=True, slots=True)
class Soaked:
    """Both runs, and what the judge with faults was asked, try by try."""

    faulty: RunResult
    plain: RunResult
    asked: Mapping[Place, Sequence[Try]]
    watch: Watch
    n_handles_after: int
    seconds: tuple[float, float]  # of the run with faults, and of the one without

    @property
    def n_calls(self) -> int:
        """Planned repeats of all cases."""
        return len(self.faulty.rows) * N_REPEATS

    @property
    def met(self) -> Counter[str | None]:
        """How many requests met each trouble; None: no trouble."""
        return Counter(one.trouble for tries in self.asked.values() for one in tries)

    @property
    def grown(self) -> Memory:
        """What the memory grew by in the second half of the calls."""
        half, end = self.watch.half, self.watch.end
        assert half is not None
        assert end is not None
        return Memory(end.resident_mb - half.resident_mb, end.n_objects - half.n_objects)

    @property
    def most_growth(self) -> Memory:
        """The bounds of that."""
        n = self.n_calls / 2
        return Memory(ALLOCATOR_MB + n * MOST_BYTES_A_CALL / 1e6, int(OBJECTS_ON_THEIR_WAY + n * MOST_OBJECTS_A_CALL))


# --- the two runs ----------------------------------------------------------------------------------------------------


def soak(folder: Path, n_calls: int) -> Soaked:
    """Both runs over so many planned calls, at servers of one address, so that call ids can be compared."""
    files = eval_set(folder, n_calls // N_REPEATS)
    record, watch = folder / "asked.jsonl", Watch()
    with judge_process("--seed", "11", "--record", str(record), *FAULTS) as base_url:
        faulty, with_faults_s = judged(folder / "faulty", files, base_url, watch)
    n_handles_after = n_handles()
    port = base_url.rpartition(":")[2].partition("/")[0]
    with judge_process("--seed", "11", "--port", port) as base_url:
        plain, plain_s = judged(folder / "plain", files, base_url)
    asked = read_record(record)
    record.unlink()
    return Soaked(faulty, plain, asked, watch, n_handles_after, (with_faults_s, plain_s))


def eval_set(folder: Path, n: int) -> tuple[Path, Path]:
    """Cases q1, q2 … and answers, with contexts so long that a cut prompt shows; the first prompt is English."""
    answers = numbered_answers(n + 1)[1:]
    for answer in answers:
        answer["contexts"].append({"id": f"y#{answer['id']}", "text": f"Of {answer['id']} no more is known. " * 40})
    cases = write_rows(folder / "cases.jsonl", numbered_cases(n + 1)[1:])
    return cases, write_rows(folder / "answers.jsonl", answers)


def judged(
    folder: Path, files: tuple[Path, Path], base_url: str, progress: Callable[..., None] = lambda *_: None
) -> tuple[RunResult, float]:
    """A run with a folder of its own, and so with a reply cache of its own; and how long it took."""
    began = time.monotonic()
    flags = {"out": str(folder / "runs"), "base_url": base_url, "model": "judge-1", "repeats": N_REPEATS}
    flags |= {"early_stop": False, "concurrency": CONCURRENCY, "timeout_s": 3.0, "attempts": ATTEMPTS}
    settings = load_settings(None, {}, flags, folder=None)
    settings = replace(settings, judge=replace(settings.judge, backoff_s=0.0))
    world = World({}, lambda: datetime.now(UTC), time.monotonic, progress=progress)
    return run(RunRequest(settings, *files), world), time.monotonic() - began


def read_record(path: Path) -> Mapping[Place, Sequence[Try]]:
    """The tries of each call in their order, the call being told from the request alone."""
    asked: defaultdict[Place, dict[int, Try]] = defaultdict(dict)
    with path.open(encoding="utf-8") as file:
        for entry in map(json.loads, file):
            place = place_of(json.loads(entry["identity"])[1])
            asked[place][entry["times_seen"]] = Try(entry["trouble"], entry["body"])
    return {place: [tries[n] for n in sorted(tries)] for place, tries in asked.items()}


def place_of(body: Mapping[str, Any]) -> Place:
    found = re.search(r"Question (\d+):|第(\d+)题", body["messages"][1]["content"])
    assert found is not None
    is_reask = any(message["role"] == "assistant" for message in body["messages"])
    return f"q{found[1] or found[2]}", body["seed"], "reask" if is_reask else None


# --- what must come out, from what the judge sent --------------------------------------------------------------------


def vote_in(tries: Sequence[Try]) -> Vote:
    """The vote of a call: what the judge sent last says it."""
    if (trouble := tries[-1].trouble) in MEANT:
        return MEANT[trouble][1]
    content = json.loads(json.loads(tries[-1].body or "")["choices"][0]["message"]["content"])
    return {name: content[name] for name in FIELDS}


def votes_of(case_id: str, asked: Mapping[Place, Sequence[Try]]) -> list[Vote]:
    """The votes of a case's repeats; a second asking stands in for a reply that could not be read."""
    votes = []
    for repeat in range(N_REPEATS):
        vote = vote_in(asked[case_id, repeat, None])
        again = asked.get((case_id, repeat, "reask"))
        votes.append(vote_in(again) if again and vote in ASKED_AGAIN else vote)
    return votes


def row_by_hand(case_id: str, votes: Sequence[Vote]) -> dict[str, Any]:
    """The columns of a case that hang on the judge: majorities of the planned repeats, and the pass they allow."""
    read = [vote for vote in votes if not isinstance(vote, str)]
    values: dict[str, bool | None] = {}
    for name in FIELDS:
        n_true = sum(vote[name] for vote in read)
        values[name] = True if 2 * n_true > N_REPEATS else False if 2 * (len(read) - n_true) > N_REPEATS else None
    options = [(True, False) if value is None else (value,) for value in values.values()]
    # The answers never decline: a case passes if it is grounded and complete and need not have declined.
    ends = {grounded and complete and not abstain for grounded, complete, abstain in product(*options)}
    judge_pass = ends.pop() if read and len(ends) == 1 else None
    lacks_key_point = int(case_id[1:]) % 5 == 0
    outcome = "undecided" if read else "unscored"
    if judge_pass is not None:
        outcome = "pass" if judge_pass else "fail"
    return values | {
        "id": case_id,
        "judge_pass": judge_pass,
        "outcome": "fail" if lacks_key_point else outcome,
        "undecided": bool(read) and judge_pass is None,
        "unscored_reason": None if read else votes[-1],
        "n_votes": len(read),
        "n_planned": N_REPEATS,
        "n_asked": N_REPEATS,
        "drawn": True,
    }


def counts_by_hand(soaked: Soaked) -> dict[str, Any]:
    """The counts of summary and manifest."""
    rows = [row_by_hand(row.id, votes_of(row.id, soaked.asked)) for row in soaked.faulty.rows]
    n, outcomes = len(rows), Counter(row["outcome"] for row in rows)
    passes = [row["judge_pass"] for row in rows if row["judge_pass"] is not None]
    unscored = Counter(row["unscored_reason"] for row in rows if row["unscored_reason"])
    replies = [tries[-1].body or "" for tries in soaked.asked.values() if not MEANT.get(tries[-1].trouble, (None,))[0]]
    usage = [json.loads(reply)["usage"] for reply in replies]
    n_reasked = sum(variant == "reask" for _, _, variant in soaked.asked)
    counts: dict[str, Any] = {"n_cases": n, "n_answered": n, "by type": n, "drawn": n, "calls_without_usage": 0}
    counts |= {"outcomes": outcomes, "graded": len(passes), "unscored": unscored}
    counts |= {"undecided": sum(row["undecided"] for row in rows), "pass": sum(passes) / len(passes)}
    counts |= {"end to end": (outcomes["pass"], outcomes["undecided"] + outcomes["unscored"], n)}
    counts |= {"calls": n * N_REPEATS + n_reasked, "reasked": n_reasked, "resent": 0, "cached": 0}
    counts |= {"exit code": 4 if unscored.total() > 0.02 * n else 0}
    return counts | {name: sum(part[name] for part in usage) for name in TOKENS}


def calls_needed(case_ids: Sequence[str], asked: Mapping[Place, Sequence[Try]]) -> set[Place]:
    """Every planned repeat, and a second asking of each whose reply could not be read."""
    planned: set[Place] = {(case_id, repeat, None) for case_id in case_ids for repeat in range(N_REPEATS)}
    unread = {place for place in planned if place in asked and vote_in(asked[place]) in ASKED_AGAIN}
    return planned | {(case_id, repeat, "reask") for case_id, repeat, _ in unread}


# --- what is wrong: each of these is empty -----------------------------------------------------------------------


def wrong_calls(soaked: Soaked) -> Iterator[str]:
    """Calls that the journal lacks, doubles or holds otherwise than the judge last answered them."""
    lines = journal(soaked.faulty)
    places = [(line["case_id"], line["repeat"], line["variant"]) for line in lines]
    needed = calls_needed([row.id for row in soaked.faulty.rows], soaked.asked)
    yield from (f"{place}: journalled {n} times" for place, n in Counter(places).items() if n > 1)
    yield from (f"{place}: missing in the journal" for place in needed - set(places))
    yield from (f"{place}: journalled, not needed" for place in set(places) - needed)
    yield from (f"{place}: asked, not needed" for place in set(soaked.asked) - needed)
    ids = Counter(line["call_id"] for line in lines)
    yield from (f"{call_id}: the id of {n} calls" for call_id, n in ids.items() if n > 1)
    for place, line in zip(places, lines, strict=True):
        tries = soaked.asked.get(place, [Try(None, None)])
        cause = MEANT.get(tries[-1].trouble, (None,))[0]
        kept = line["raw"] if line["status"] == "ok" else line["failure"]["cause"]
        if kept != (cause or tries[-1].body):
            yield f"{place}: kept {kept!r}, but the last of {tries} was sent"
        if line["attempts"] < len(tries):
            yield f"{place}: {line['attempts']} attempts, but {len(tries)} requests came"
    # After a drip the server hangs up unannounced; a try that meets the closed connection never comes to it.
    met = soaked.met
    n_unseen, n_drips = sum(line["attempts"] for line in lines) - met.total(), met["dripped"]
    if n_unseen > n_drips:
        yield f"{n_unseen} tries never came, but only {n_drips} connections were closed unannounced"


def wrong_decisions(soaked: Soaked) -> Iterator[str]:
    """Cases whose row says something else than the replies that were sent."""
    for row in soaked.faulty.rows:
        expected = row_by_hand(row.id, votes_of(row.id, soaked.asked))
        found = {name: getattr(row, name) for name in expected}
        if found != expected:
            yield f"found {found}, expected {expected}"


def wrong_counts(soaked: Soaked) -> Iterator[str]:
    """Numbers of summary and manifest that are not the counts of the cases and of what was sent."""
    summary, cost = soaked.faulty.summary, soaked.faulty.folder.read_json("manifest.json")["cost"]
    judge, end = summary["judge"], summary["end_to_end"]
    found = {name: judge[name] for name in ("drawn", "graded", "undecided", "unscored")}
    found |= {name: summary[name] for name in ("n_cases", "n_answered", "outcomes")}
    found |= {"pass": judge["pass"]["value"], "exit code": soaked.faulty.exit_code}
    found |= {"end to end": (end["n_passed"], end["n_open"], end["n"])}
    found |= {"by type": sum(entry["n"] for entry in summary["by_type"].values())}
    found |= {name: cost[name] for name in ("calls", "reasked", "resent", "cached", "calls_without_usage", *TOKENS)}
    expected = counts_by_hand(soaked)
    yield from (
        f"{name}: found {found[name]}, expected {expected[name]}" for name in found if found[name] != expected[name]
    )


def changed_by_faults(soaked: Soaked) -> Iterator[str]:
    """Calls and decisions that differ from the run without faults, of cases that were in no lasting trouble."""
    lasting = LASTING_TROUBLES.keys() | LOST_CALLS.keys()
    in_trouble = {place[0] for place, tries in soaked.asked.items() if any(one.trouble in lasting for one in tries)}
    for row, plain in zip(soaked.faulty.rows, soaked.plain.rows, strict=True):
        if row.id not in in_trouble and row != plain:
            yield f"with faults {asdict(row)}, without {asdict(plain)}"
    planned, without = (
        sorted(line["call_id"] for line in journal(result) if line["variant"] is None)
        for result in (soaked.faulty, soaked.plain)
    )
    if planned != without:
        yield f"{len(planned)} calls were planned with faults, {len(without)} others without"


def journal(result: RunResult) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.folder.journal.read_text(encoding="utf-8").split("\n") if line]


# --- the properties --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> Soaked:
    found = soak(tmp_path_factory.mktemp("soak"), N_CALLS)
    print(f"{N_CALLS} calls: {found.seconds[0]:.0f} s with faults, {found.seconds[1]:.0f} s without")
    return found


def test_the_judge_did_everything_wrong_that_it_can(soaked: Soaked) -> None:
    # The slow ones are too few to be sure of each.
    assert soaked.met.keys() >= {*PASSING_TROUBLES, *ODD_FORMS, *LASTING_TROUBLES}
    assert soaked.met.keys() & LOST_CALLS.keys()


def test_every_call_is_journalled_once_with_what_the_judge_sent_last(soaked: Soaked) -> None:
    assert list(wrong_calls(soaked)) == []


def test_every_case_is_decided_by_the_replies_or_unscored_for_the_true_reason(soaked: Soaked) -> None:
    assert list(wrong_decisions(soaked)) == []


def test_the_counts_add_up(soaked: Soaked) -> None:
    assert list(wrong_counts(soaked)) == []


def test_faults_that_pass_change_no_call_and_no_decision(soaked: Soaked) -> None:
    assert list(changed_by_faults(soaked)) == []


def test_handles_and_memory_stay_flat(soaked: Soaked) -> None:
    watch = soaked.watch
    assert 0 < watch.most_handles <= MOST_HANDLES
    assert soaked.n_handles_after == watch.n_handles_before
    assert soaked.grown.resident_mb <= soaked.most_growth.resident_mb
    assert soaked.grown.n_objects <= soaked.most_growth.n_objects
