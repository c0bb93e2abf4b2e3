"""Many calls to a judge: a bounded window, limits, resume. What a reply means is not known here.

Repeats of a case are sent one after another: a server's prompt cache can then serve the later ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rag_judge.errors import CannotGoOn, LimitReached
from rag_judge.journal import SYNC_EVERY_S, Journal, Result, token_estimate
from rag_judge.judge import Judge
from rag_judge.money import Limits, Meter
from rag_judge.pace import DeadlinePassed
from rag_judge.records import Call, CallFailure, Reply

LATE = "the deadline has passed"
DEAD_AFTER = 10  # calls in a row, each after all its tries, without one reply between them


class AsksForCase(Protocol):
    """One case that may need calls: the next one depends on the replies so far, which are given by call id."""

    @property
    def case_id(self) -> str:
        """The case's id."""
        ...

    def next_call(self, replies: Mapping[str, Result]) -> Call | None:
        """The call that is needed next, or None when the case is finished."""
        ...


@dataclass(slots=True)
class Progress:
    """Where the sending stands, for a progress line."""

    n_cases_done: int = 0
    n_calls_sent: int = 0
    n_cached: int = 0
    usd: float | None = None  # of the whole run so far, estimates included; None without a price


async def send_all(
    cases: Iterable[AsksForCase],
    judge: Judge,
    journal: Journal,
    *,
    concurrency: int,
    forget: Callable[[str], bool] = lambda call_id: False,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    meter: Meter | None = None,
    monotonic: Callable[[], float] = time.monotonic,
    judge_no: int = 0,
) -> None:
    """Ask the judge every call that the cases need and the journal does not hold; `concurrency` cases at a time.

    At the end the journal holds, of this judge, just the calls that the cases need. `forget(call_id)` says of a kept
    reply that it is to be asked again. Raises CannotGoOn when the judge can answer no call any more, LimitReached when
    a limit of `meter` is: then calls on their way are waited for first. What came back is journalled.
    """
    meter = meter or Meter(Limits(), None)
    meter.spend = journal.spends[judge_no]  # what earlier processes of the run have spent counts, too
    progress, window = Progress(), _Window(journal, forget, meter, monotonic)
    waiting = iter(cases)

    async def worker() -> None:
        for case in waiting:  # shared by all workers: each case is taken by one of them, when its turn comes
            await _ask_case(case, judge, window, progress, on_progress)
            if case.case_id not in window.finished:
                return
            progress.n_cases_done += 1
            on_progress(progress)

    await _side_by_side(worker, concurrency, journal)
    if window.limit_reached is not None:
        raise LimitReached(window.limit_reached, frozenset(window.finished))
    window.check_any_reply()
    journal.drop_all_but(window.needed, judge_no)


async def _side_by_side(worker: Callable[[], Coroutine[Any, Any, None]], n_workers: int, journal: Journal) -> None:
    """Run so many workers until all have ended, the journal being synced all the while."""
    import asyncio

    syncing = asyncio.create_task(_keep_synced(journal))
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(n_workers):
                group.create_task(worker())
    except* CannotGoOn as stopped:
        raise stopped.exceptions[0] from None
    finally:
        syncing.cancel()
        journal.sync()


async def _keep_synced(journal: Journal) -> None:
    import asyncio

    while True:
        await asyncio.sleep(SYNC_EVERY_S / 2)
        journal.sync(now=time.monotonic())


class _Window:
    """What the workers share: the journal, the calls that are needed, and how many in a row brought no reply."""

    def __init__(
        self, journal: Journal, forget: Callable[[str], bool], meter: Meter, monotonic: Callable[[], float]
    ) -> None:
        import asyncio

        self.meter = meter
        self.settled = asyncio.Event()  # a call on its way has ended
        self.limit_reached: str | None = None
        self._monotonic = monotonic
        self.journal = journal
        self.forget = forget
        self.n_dead = 0  # in a row
        self.n_failed = 0
        self.n_replied = 0
        self.last_failure = ""
        self.needed: set[str] = set()
        self.finished: set[str] = set()  # ids of cases whose every needed reply is there

    async def may_send(self, call: Call) -> bool:
        """False, and remembered, when a limit is reached; else the call is reserved.

        Where only money reserved for calls on their way stands against it, they are waited for.
        """
        while self.limit_reached is None:
            refusal = self.meter.refusal(call, self._monotonic())
            if refusal is None:
                self.meter.reserve(call)
                return True
            if not self.meter.may_pass(call):
                self.limit_reached = refusal
                break
            self.settled.clear()
            await self.settled.wait()
        return False

    def give_back(self, call: Call, reason: str) -> None:
        """A reserved call was not sent: no further one is."""
        self.limit_reached = self.limit_reached or reason
        self.meter.release(call)
        self.settled.set()

    def keep(self, call: Call, result: Result) -> None:
        self.journal.append(call, result)
        self.meter.settle(call, result, token_estimate(call, result))
        self.settled.set()
        out_of_reach = isinstance(result, CallFailure) and result.cause in ("no_reply", "server_error")
        self.n_dead = self.n_dead + 1 if out_of_reach else 0
        self.n_failed += out_of_reach
        self.n_replied += not out_of_reach
        if isinstance(result, CallFailure) and out_of_reach:
            self.last_failure = result.detail

    async def check_alive(self, call: Call, judge: Judge) -> None:
        """After many calls in a row without a reply, raise CannotGoOn unless the judge answers a probe.

        Some cases may fail for good, and on a resume they come one after another: they must not end the run.
        """
        if self.n_dead < DEAD_AFTER:
            return
        n_dead, self.n_dead = self.n_dead, 0
        if not self.n_replied or not await judge.is_alive(call):
            raise CannotGoOn(f"the judge gave no reply to {n_dead} calls in a row; the last: {self.last_failure}")

    def check_any_reply(self) -> None:
        """Raise CannotGoOn when calls were sent and not one of them, nor one kept from before, brought a reply."""
        if self.n_failed and not self.n_replied:
            raise CannotGoOn(f"the judge gave no reply to any of {self.n_failed} calls; the last: {self.last_failure}")


async def _sent(call: Call, judge: Judge, window: _Window) -> Result | None:
    """What came of a call that had to be sent; None, and remembered, when a limit stood against it."""
    if not await window.may_send(call):
        return None
    window.journal.about_to_send(call)
    try:
        return await judge.ask(call)
    except DeadlinePassed:
        window.give_back(call, LATE)
        return None


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
        try:
            result: Result | None = await judge.kept(call)
        except DeadlinePassed:  # before the server was known
            window.limit_reached = window.limit_reached or LATE
            return
        if result is None:
            result = await _sent(call, judge, window)
        if result is None:
            return
        window.keep(call, result)
        try:
            await window.check_alive(call, judge)
        except DeadlinePassed:
            window.limit_reached = window.limit_reached or LATE
            return
        replies[call.call_id] = result
        progress.n_calls_sent += 1
        progress.n_cached += isinstance(result, Reply) and result.cached
        progress.usd = None if window.meter.price is None else window.meter.spend.usd_with_estimates(window.meter.price)
        on_progress(progress)
    window.finished.add(case.case_id)
