"""Many calls to a judge: a bounded window, the journal, resume. What a reply means is not known here.

The journal is append-only and holds a line a call. A line is written and flushed before the call's place in the
window is used again, and synced to disk at least every second, so that a killed run loses at most what was on its
way. Repeats of a case are sent one after another: a server's prompt cache can then serve the later ones.
"""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rag_judge.errors import CannotGoOn, InputError
from rag_judge.judge import Judge
from rag_judge.records import Call, CallFailure, Reply, Usage
from rag_judge.rows import json_line

SYNC_EVERY_S = 1.0
DEAD_AFTER = 10  # calls in a row, each after all its tries, without one reply between them
Result = Reply | CallFailure


class AsksForCase(Protocol):
    """One case that may need calls: the next one depends on the replies so far, which are given by call id."""

    @property
    def case_id(self) -> str:
        """The case's id."""
        ...

    def next_call(self, replies: Mapping[str, Result]) -> Call | None:
        """The call that is needed next, or None when the case is finished."""
        ...


class Journal:
    """`calls.jsonl` of one run, open for appending. Call ids are held in memory, replies are read back from disk."""

    def __init__(self, path: Path) -> None:
        """Open or create the journal; what a crash left broken in it is taken out first (see `mend`)."""
        self.path = path
        self.n_dropped = mend(path) if path.exists() else 0
        self._offsets: dict[str, int] = {}
        self._failed: set[str] = set()
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._sent_fd = os.open(sent_log(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._size = 0
        self._synced_at = time.monotonic()
        self._unsynced = False
        with path.open("rb") as file:
            for raw in file:
                entry = json.loads(raw)
                self._note(entry["call_id"], entry["status"], self._size)
                self._size += len(raw)

    def _note(self, call_id: str, status: str, offset: int) -> None:
        self._offsets[call_id] = offset
        if status == "ok":
            self._failed.discard(call_id)
        else:
            self._failed.add(call_id)

    def is_kept(self, call_id: str) -> bool:
        """True when a reply to this call is on disk; a call that failed on the way is to be sent again."""
        return call_id in self._offsets and call_id not in self._failed

    def about_to_send(self, call: Call) -> None:
        """Note that a call goes out, so that one that a kill catches on its way is known to be sent twice."""
        os.write(self._sent_fd, f"{call.call_id}\n".encode())

    def append(self, call: Call, result: Result) -> None:
        """Write one finished call and hand it to the operating system; a later line of the same id replaces it."""
        raw = json_line(_line(call, result))
        os.write(self._fd, raw)
        self._note(call.call_id, "ok" if isinstance(result, Reply) else "failed", self._size)
        self._size += len(raw)
        self._unsynced = True

    def sync(self, *, now: float | None = None) -> None:
        """Force what was written to disk, if a second has passed since the last time (or `now` is None)."""
        if self._unsynced and (now is None or now - self._synced_at >= SYNC_EVERY_S):
            os.fsync(self._fd)
            self._synced_at = time.monotonic()
            self._unsynced = False

    def result(self, call_id: str) -> Result:
        """What came of a journalled call, read from disk."""
        with self.path.open("rb") as file:
            file.seek(self._offsets[call_id])
            return _result(json.loads(file.readline()))

    def entries(self) -> Iterator[dict[str, Any]]:
        """Every line of the journal, in order."""
        with self.path.open("rb") as file:
            for raw in file:
                yield json.loads(raw)

    def drop_all_but(self, needed: Set[str]) -> None:
        """Rewrite the journal without calls that the finished run does not need.

        Such calls come from an interruption alone: a call fails on a dying server, a further repeat is asked in its
        place, and after the resume the first succeeds. What an undisturbed run would hold is what stays.
        """
        if self._offsets.keys() <= needed:
            return
        _rewrite(self.path, lambda raw: json.loads(raw)["call_id"] in needed)

    def close(self) -> None:
        """Sync and close."""
        self.sync()
        os.close(self._fd)
        os.close(self._sent_fd)


def mend(path: Path) -> int:
    """Make a journal whole again after a crash; the number of broken lines that were dropped from its middle.

    A half-written last line is cut off, a last line that lost its end gets it back. A broken line elsewhere (a disk
    that lost a block) is taken out: its call is asked again.
    """
    size, n_broken, ends, is_entry = 0, 0, True, False
    with path.open("rb+") as file:
        for raw in file:
            is_entry = _entry(raw) is not None
            ends = raw.endswith(b"\n")
            if is_entry or ends:
                size += len(raw)
            n_broken += ends and not is_entry
        file.truncate(size)
        if is_entry and not ends:
            file.seek(size)
            file.write(b"\n")
    if n_broken:
        _rewrite(path, lambda raw: _entry(raw) is not None)
    return n_broken


def _rewrite(path: Path, is_kept: Callable[[bytes], bool]) -> None:
    """Replace a journal, as a whole, by those of its lines that are kept."""
    draft = path.with_name(f".{path.name}.part")
    with open(draft, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as kept:
        with path.open("rb") as file:
            kept.writelines(raw for raw in file if is_kept(raw))
        kept.flush()
        os.fsync(kept.fileno())
    draft.replace(path)


def sent_log(journal: Path) -> Path:
    """Beside a growing journal: the id of every call at the moment it went out."""
    return journal.with_name("sent.ids")


def n_resent(journal: Path) -> int:
    """How many calls went out more than once: after a kill caught them on their way, or after they failed."""
    path = sent_log(journal)
    ids = path.read_text(encoding="ascii").split() if path.exists() else []
    return len(ids) - len(set(ids))


class RecordedReplies:
    """The kept replies of a journal by case, for grading; offsets are held, replies are read when asked for."""

    def __init__(self, path: Path) -> None:
        """Read the journal once; of two lines of one call the later counts. A missing journal holds nothing."""
        self._file = path.open("rb") if path.exists() else io.BytesIO()
        self._offsets: dict[str, dict[tuple[str | None, int, str | None], int]] = {}
        self.cost = JournalCost(resent=n_resent(path))
        try:
            self._load(path)
        except InputError:
            self.close()
            raise

    def _load(self, path: Path) -> None:
        offset = 0
        for number, raw in enumerate(self._file, 1):
            entry = _entry(raw)
            if entry is None or not {"case_id", "repeat", "variant", "sent", "model", "usage"} <= entry.keys():
                raise InputError(f"{path}:{number}: not a line of the call journal; the file was changed")
            place = (entry.get("order"), entry["repeat"], entry["variant"])
            of_case = self._offsets.setdefault(entry["case_id"], {})
            self.cost.add(entry, is_new=place not in of_case)
            of_case[place] = offset
            offset += len(raw)

    def of_case(self, case_id: str, order: str | None = None) -> dict[tuple[int, str | None], Result]:
        """The replies to one case, or to one order of a pair, by (repeat, variant)."""
        found = {}
        for (of_order, repeat, variant), offset in self._offsets.get(case_id, {}).items():
            if of_order == order:
                self._file.seek(offset)
                found[repeat, variant] = _result(json.loads(self._file.readline()))
        return found

    def close(self) -> None:
        """Release the journal."""
        self._file.close()


@dataclass(slots=True)
class JournalCost:
    """What a journal's calls cost together, and what was really sent; the tokens of every line count."""

    calls: int = 0
    resent: int = 0
    reasked: int = 0
    without_usage: int = 0  # replies for which the server counted no tokens
    prompt_tokens: int = 0
    completion_tokens: int = 0
    models: set[str] = field(default_factory=set)
    sent: set[str] = field(default_factory=set)  # distinct parameters, as JSON

    def add(self, entry: Mapping[str, Any], *, is_new: bool) -> None:
        """Count one journal line; a later line of the same call is no new call."""
        self.calls += is_new
        self.reasked += is_new and entry["variant"] == "reask"
        self.sent.add(json.dumps(entry["sent"], sort_keys=True))
        if entry["model"]:
            self.models.add(entry["model"])
        usage = entry["usage"] or {}
        counted = None not in (usage.get("prompt_tokens"), usage.get("completion_tokens"))
        self.without_usage += entry["status"] == "ok" and not counted
        self.prompt_tokens += usage.get("prompt_tokens") or 0
        self.completion_tokens += usage.get("completion_tokens") or 0


@dataclass(slots=True)
class Progress:
    """Where the sending stands, for a progress line."""

    n_cases_done: int = 0
    n_calls_sent: int = 0


async def send_all(
    cases: Iterable[AsksForCase],
    judge: Judge,
    journal: Journal,
    *,
    concurrency: int,
    forget: Callable[[str], bool] = lambda call_id: False,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> None:
    """Ask the judge every call that the cases need and the journal does not hold; `concurrency` cases at a time.

    At the end the journal holds just the calls that the cases need. `forget(call_id)` says of a kept reply that it
    is to be asked again. Raises CannotGoOn when the judge can answer no call any more; what came back is journalled.
    """
    import asyncio

    progress, window = Progress(), _Window(journal, forget)
    waiting = iter(cases)

    async def worker() -> None:
        for case in waiting:  # shared by all workers: each case is taken by one of them, when its turn comes
            await _ask_case(case, judge, window, progress, on_progress)
            progress.n_cases_done += 1
            on_progress(progress)

    syncing = asyncio.create_task(_keep_synced(journal))
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(worker())
    except* CannotGoOn as stopped:
        raise stopped.exceptions[0] from None
    finally:
        syncing.cancel()
        journal.sync()
    window.check_any_reply()
    journal.drop_all_but(window.needed)


async def _keep_synced(journal: Journal) -> None:
    import asyncio

    while True:
        await asyncio.sleep(SYNC_EVERY_S / 2)
        journal.sync(now=time.monotonic())


class _Window:
    """What the workers share: the journal, the calls that are needed, and how many in a row brought no reply."""

    def __init__(self, journal: Journal, forget: Callable[[str], bool]) -> None:
        self.journal = journal
        self.forget = forget
        self.n_dead = 0  # in a row
        self.n_replied = 0
        self.last_failure = ""
        self.needed: set[str] = set()

    def keep(self, call: Call, result: Result) -> None:
        self.journal.append(call, result)
        out_of_reach = isinstance(result, CallFailure) and result.cause in ("no_reply", "server_error")
        self.n_dead = self.n_dead + 1 if out_of_reach else 0
        self.n_replied += not out_of_reach
        if isinstance(result, CallFailure) and out_of_reach:
            self.last_failure = result.detail
            if self.n_dead >= DEAD_AFTER:
                raise CannotGoOn(f"the judge gave no reply to {self.n_dead} calls in a row; the last: {result.detail}")

    def check_any_reply(self) -> None:
        """Raise CannotGoOn when calls were sent and not one of them, nor one kept from before, brought a reply."""
        if self.n_dead and not self.n_replied:
            raise CannotGoOn(f"the judge gave no reply to any of {self.n_dead} calls; the last: {self.last_failure}")


async def _ask_case(
    case: AsksForCase, judge: Judge, window: _Window, progress: Progress, on_progress: Callable[[Progress], None]
) -> None:
    """Ask one case's calls in turn, taking from the journal what it holds."""
    replies: dict[str, Result] = {}
    while (call := case.next_call(replies)) is not None:
        window.needed.add(call.call_id)
        if window.journal.is_kept(call.call_id) and not window.forget(call.call_id):
            replies[call.call_id] = window.journal.result(call.call_id)
            window.n_replied += 1
            continue
        window.journal.about_to_send(call)
        result = await judge.ask(call)
        window.keep(call, result)
        replies[call.call_id] = result
        progress.n_calls_sent += 1
        on_progress(progress)


def _entry(raw: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(raw)
    except ValueError:
        return None
    known = (
        isinstance(value, dict) and isinstance(value.get("call_id"), str) and value.get("status") in ("ok", "failed")
    )
    return value if known else None


def _line(call: Call, result: Result) -> dict[str, Any]:
    line: dict[str, Any] = {
        "call_id": call.call_id,
        "case_id": call.case_id,
        "repeat": call.repeat,
        "order": call.order,
        "variant": call.variant,
        "judge": call.judge,
        "answer_no": call.answer_no,
    }
    if isinstance(result, Reply):
        return line | {
            "status": "ok",
            "raw": result.raw,
            "finish_reason": result.finish_reason,
            "model": result.model,
            "usage": asdict(result.usage),
            "latency_s": round(result.latency_s, 6),
            "attempts": result.attempts,
            "sent": dict(result.sent),
            "failure": None if result.cut is None else {"cause": "context_too_long", "detail": result.cut},
        }
    return line | {
        "status": "failed",
        "raw": None,
        "finish_reason": None,
        "model": None,
        "usage": None,
        "latency_s": round(result.latency_s, 6),
        "attempts": result.attempts,
        "sent": dict(result.sent),
        "failure": {"cause": result.cause, "detail": result.detail},
    }


def _result(entry: Mapping[str, Any]) -> Result:
    if entry["status"] == "failed":
        failure = entry["failure"]
        return CallFailure(failure["cause"], failure["detail"], entry["latency_s"], entry["attempts"], entry["sent"])
    usage = entry["usage"] or {}
    return Reply(
        entry["raw"],
        entry["finish_reason"],
        entry["model"],
        Usage(usage.get("prompt_tokens"), usage.get("completion_tokens")),
        entry["latency_s"],
        entry["attempts"],
        entry["sent"],
        (entry.get("failure") or {}).get("detail"),
    )
