"""How fast a model server is asked: never faster than it wants, and as fast as it can bear.

Requests on their way are bounded by a limit that grows by one for each full round of successes and is halved when the
server says that it is too much (additive increase, multiplicative decrease). Pauses that the server asks for hold for
every request, not for one alone. Time is passed in by the event loop's clock.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

MINUTE_S = 60.0
LONGEST_RESET_S = 3600.0
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


class DeadlinePassed(Exception):
    """A request would go out after the deadline only."""


class Pace:
    """The pace of one server's requests."""

    def __init__(
        self,
        most_at_once: int,
        monotonic: Callable[[], float],
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        deadline: float | None = None,
    ) -> None:
        """At most so many at once, and, where given, so many requests and prompt tokens in any minute.

        `deadline` is on the clock of `monotonic`; no request goes out after it.
        """
        self.deadline = deadline
        self.limit = most_at_once
        self.n_slowed = 0  # how often the server said that it is too much
        self._most = most_at_once
        self._monotonic = monotonic
        self._per_minute = (requests_per_minute, tokens_per_minute)
        self._n_active = 0
        self._n_good = 0  # replies since the limit moved
        self._slowed_at = float("-inf")
        self._paused_until = 0.0
        self._recent: deque[tuple[float, int]] = deque()  # (when, tokens) of the last minute

    async def enter(self, tokens: int) -> float:
        """Wait until a request of so many tokens may go out, and count it as on its way; the time at which it goes.

        Raises DeadlinePassed as soon as it is known that it could go out after the deadline only.
        """
        import asyncio

        while (wait_s := self.wait_s(tokens)) > 0 or self.is_late():
            if self.is_late(wait_s):
                raise DeadlinePassed
            await asyncio.sleep(min(wait_s, 1.0))
        now = self._monotonic()
        self._n_active += 1
        self._recent.append((now, tokens))
        return now

    def is_late(self, in_s: float = 0.0) -> bool:
        """True when the deadline will have passed so many seconds from now."""
        return self.deadline is not None and self._monotonic() + in_s >= self.deadline

    def leave(self) -> None:
        """A request has ended."""
        self._n_active -= 1

    def wait_s(self, tokens: int) -> float:
        """Seconds until a request may go out, as far as can be told now; 0 when it may."""
        now = self._monotonic()
        while self._recent and self._recent[0][0] <= now - MINUTE_S:
            self._recent.popleft()
        if now < self._paused_until:
            return self._paused_until - now
        if self._n_active >= self.limit:
            return 0.02
        most_requests, most_tokens = self._per_minute
        full = most_requests is not None and len(self._recent) >= most_requests
        # A single request larger than the limit goes out alone rather than never.
        if most_tokens is not None and not full:
            used = sum(n for _, n in self._recent)
            full = bool(used) and used + tokens > most_tokens
        return self._recent[0][0] + MINUTE_S - now if full else 0.0

    def succeeded(self, headers: Mapping[str, str]) -> None:
        """A reply came: one more at once after each full round, and a pause where the server's counters are empty."""
        self._n_good += 1
        if self._n_good >= self.limit:
            self.limit, self._n_good = min(self._most, self.limit + 1), 0
        self._heed(headers)

    def too_fast(self, wait_s: float | None, headers: Mapping[str, str], entered_at: float) -> None:
        """The server refused a request as one too many: half as fast, and the pause that it asks for.

        Requests that were on their way together halve the limit once: those after the first say nothing new.
        """
        self.n_slowed += 1
        if entered_at >= self._slowed_at:
            self.limit, self._n_good = max(1, self.limit // 2), 0
            self._slowed_at = self._monotonic()
        self.pause(wait_s)
        self._heed(headers)

    def _heed(self, headers: Mapping[str, str]) -> None:
        """Pause until the server's own counters are full again, where they say that nothing is left."""
        for kind in ("requests", "tokens"):
            if headers.get(f"x-ratelimit-remaining-{kind}", "").strip() == "0":
                seconds = seconds_of(headers.get(f"x-ratelimit-reset-{kind}", ""))
                # Some servers give a time of day there: what is no pause of an hour at most is none.
                self.pause(seconds if seconds is not None and seconds <= LONGEST_RESET_S else None)

    def pause(self, seconds: float | None) -> None:
        """No request goes out for so long."""
        if seconds:
            self._paused_until = max(self._paused_until, self._monotonic() + seconds)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """A request that has entered, until it has ended, however it ends."""
        try:
            yield
        finally:
            self.leave()


def seconds_of(duration: str) -> float | None:
    """A duration as servers write it (`1s`, `6m0s`, `120ms`, `2`), in seconds; None for anything else."""
    text = duration.strip()
    try:
        number = float(text)
    except ValueError:
        found = _DURATION.fullmatch(text)
    else:
        return number if math.isfinite(number) and number >= 0 else None
    if not text or found is None:
        return None
    days, hours, minutes, seconds, milliseconds = (float(part or 0) for part in found.groups())
    return days * 86_400 + hours * 3_600 + minutes * 60 + seconds + milliseconds / 1_000
