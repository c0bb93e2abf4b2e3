"""What a command says on stderr while it works: a bar on a terminal, a line every 30 seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from rag_judge.report.terminal import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LINE_EVERY_S = 30.0


class Voice:
    """Progress and remarks of one command; use it in a `with`, so that the bar is gone before results are printed."""

    def __init__(self, *, quiet: bool, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._quiet = quiet
        self._monotonic = monotonic
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._last_line_at: dict[str, float] = {}

    def __enter__(self) -> Voice:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, line: str) -> None:
        """One remark for people. Also said when quiet: a warning is no progress."""
        if self._bar is not None:
            self._bar.console.print(printable(line), markup=False, highlight=False)
        else:
            print("\n".join(printable(part) for part in line.split("\n")), file=sys.stderr, flush=True)

    def progress(self, what: str, n_done: int, n_all: int, note: str = "") -> None:
        """So many of so many are done; `note` says more about how it goes."""
        if self._quiet:
            return
        if sys.stderr.isatty():
            self._draw(what, n_done, n_all, note)
            return
        now = self._monotonic()
        last = self._last_line_at.setdefault(what, now)
        if now - last >= LINE_EVERY_S:
            self._last_line_at[what] = now
            self.say(f"{what}: {n_done} of {n_all}" + (f" ({note})" if note else ""))

    def _draw(self, what: str, n_done: int, n_all: int, note: str) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.start()
        if what not in self._tasks:
            self._tasks[what] = self._bar.add_task(what, total=n_all)
        # The bar shows its own time left; the description is no markup, because nothing of a case stands in it.
        self._bar.update(self._tasks[what], completed=n_done, total=n_all, description=f"{what} {note}".strip())
