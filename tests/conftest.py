"""What every test needs: nothing a command did to this process outlives its test."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _signals_as_before() -> Iterator[None]:
    """A command that prints results lets a closed pipe end its process; here that would end the whole test run."""
    names = [name for name in ("SIGPIPE", "SIGINT", "SIGTERM") if hasattr(signal, name)]
    before = {name: signal.getsignal(getattr(signal, name)) for name in names}
    yield
    for name, handler in before.items():
        signal.signal(getattr(signal, name), handler)
