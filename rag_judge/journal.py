"""`calls.jsonl` of one run: append-only, a line a call, whole again after a crash, and read back for grading.

A line is written and flushed before the call's place in the window is used again, and synced to disk at least every
second, so that a killed run loses at most what was on its way. What a reply means is not known here.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rag_judge.errors import CannotGoOn, InputError
from rag_judge.money import Spend, estimated_prompt
from rag_judge.prompts import estimated_tokens
from rag_judge.records import Call, CallFailure, Reply, Usage
from rag_judge.responses import reply_text
from rag_judge.rows import json_line

SYNC_EVERY_S = 1.0
Result = Reply | CallFailure


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
        self._lock()
        self._size = 0
        self.spends: dict[int, Spend] = defaultdict(Spend)  # by judge, of what stands in the journal
        self.n_cached = 0  # replies of earlier runs, appended by this process
        self._synced_at = time.monotonic()
        self._unsynced = False
        with path.open("rb") as file:
            for raw in file:
                entry = json.loads(raw)
                self._note(entry["call_id"], entry["status"], self._size)
                self._size += len(raw)
                spend = self.spends[entry.get("judge", 0)]
                if entry.get("cached"):
                    continue
                if entry["status"] == "ok":
                    spend.add(_usage(entry.get("usage")), _usage(entry.get("estimated")))
                else:
                    spend.calls += 1

    def _lock(self) -> None:
        """Keep other processes from sending the same calls. Raises InputError when one does already."""
        try:
            fcntl.flock(self._sent_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._fd)
            os.close(self._sent_fd)
            raise InputError(
                f"{self.path.parent}: another process is going on with this run; wait for its end"
            ) from None

    def _note(self, call_id: str, status: str, offset: int) -> None:
        self._offsets[call_id] = offset
        if status == "ok":
            self._failed.discard(call_id)
        else:
            self._failed.add(call_id)

    def holds(self, call_id: str) -> bool:
        """True when a line of this call is there, whether or not it brought a reply."""
        return call_id in self._offsets

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
        self.n_cached += isinstance(result, Reply) and result.cached

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

    def drop_all_but(self, needed: Set[str], judge: int = 0) -> None:
        """Rewrite the journal without calls of a judge that the finished run does not need.

        Such calls come from an interruption alone: a call fails on a dying server, a further repeat is asked in its
        place, and after the resume the first succeeds. What an undisturbed run would hold is what stays.
        """
        if self._offsets.keys() <= needed:
            return

        def is_kept(raw: bytes) -> bool:
            entry = json.loads(raw)
            return entry["call_id"] in needed or entry.get("judge", 0) != judge

        _rewrite(self.path, is_kept)

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
        self._offsets: dict[str, dict[tuple[int, str | None, int, int, str | None], int]] = {}
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
            judge, order, answer_no = entry.get("judge", 0), entry.get("order"), entry.get("answer_no", 0)
            place = (judge, order, answer_no, entry["repeat"], entry["variant"])
            of_case = self._offsets.setdefault(entry["case_id"], {})
            self.cost.add(entry, is_new=place not in of_case)
            self.cost.cached += bool(entry.get("cached"))  # a line that replaces another never replaces a cached one
            of_case[place] = offset
            offset += len(raw)

    def of_case(
        self, case_id: str, order: str | None = None, judge: int = 0, answer_no: int = 0
    ) -> dict[tuple[int, str | None], Result]:
        """The replies of one judge to one answer to a case, or to one order of a pair, by (repeat, variant)."""
        found = {}
        for (of_judge, of_order, of_answer, repeat, variant), offset in self._offsets.get(case_id, {}).items():
            if (of_judge, of_order, of_answer) == (judge, order, answer_no):
                self._file.seek(offset)
                found[repeat, variant] = _result(json.loads(self._file.readline()))
        return found

    def close(self) -> None:
        """Release the journal."""
        self._file.close()


@dataclass(slots=True)
class JudgeShare:
    """One judge's part of a journal: what it cost, and what it really was sent."""

    spend: Spend = field(default_factory=Spend)
    models: set[str] = field(default_factory=set)
    sent: set[str] = field(default_factory=set)  # distinct parameters, as JSON


@dataclass(slots=True)
class JournalCost:
    """What a journal's calls cost, together and by judge; the tokens of every line count."""

    calls: int = 0
    cached: int = 0  # of these, replayed from an earlier run: they cost nothing now
    resent: int = 0
    reasked: int = 0
    judges: dict[int, JudgeShare] = field(default_factory=lambda: defaultdict(JudgeShare))

    def add(self, entry: Mapping[str, Any], *, is_new: bool) -> None:
        """Count one journal line; a later line of the same call is no new call."""
        self.calls += is_new
        self.reasked += is_new and entry["variant"] == "reask"
        share = self.judges[entry.get("judge", 0)]
        share.sent.add(json.dumps(entry["sent"], sort_keys=True))
        if entry["model"]:
            share.models.add(entry["model"])
        if entry["status"] == "ok" and not entry.get("cached"):
            share.spend.add(_usage(entry["usage"]), _usage(entry.get("estimated")))


class RecordedJudge:
    """A judge that replays a run's kept replies; nothing is sent. It knows the calls of that run and no other."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def ask(self, call: Call) -> Reply | CallFailure:
        """The kept reply. Raises CannotGoOn for a call that the run never made."""
        if not self._journal.holds(call.call_id):
            raise CannotGoOn(f"{self._journal.path}: the recorded run never made this call of case {call.case_id!r}")
        return self._journal.result(call.call_id)

    async def is_alive(self, call: Call) -> bool:
        """Always True: a record does not go down."""
        return True

    async def kept(self, call: Call) -> Reply | None:
        """Always None: what the run kept is what it is asked for."""
        return None


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
            "cached": result.cached,
            "estimated": None if (guess := token_estimate(call, result)) is None else asdict(guess),
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
        "cached": False,
        "estimated": None,
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
    return Reply(
        entry["raw"],
        entry["finish_reason"],
        entry["model"],
        _usage(entry["usage"]),
        entry["latency_s"],
        entry["attempts"],
        entry["sent"],
        (entry.get("failure") or {}).get("detail"),
        bool(entry.get("cached")),
    )


def _usage(counted: Mapping[str, Any] | None) -> Usage:
    known = counted or {}
    return Usage(known.get("prompt_tokens"), known.get("completion_tokens"))


def token_estimate(call: Call, result: Result) -> Usage | None:
    """About how many tokens a reply took, where the server did not count them."""
    if not isinstance(result, Reply) or None not in (result.usage.prompt_tokens, result.usage.completion_tokens):
        return None
    return Usage(estimated_prompt(call), estimated_tokens(reply_text(result.raw)))
