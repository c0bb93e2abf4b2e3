"""What judge calls cost: prices, what was spent, and the limits at which no further call is sent.

Pure but for the price table that ships beside this module. Tokens are the server's own count; where it gave none,
they are estimated from the texts, kept apart, and never called a count.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from rag_judge.addresses import is_local
from rag_judge.prompts import estimated_tokens
from rag_judge.records import Call, CallFailure, Reply, Usage

PRICE_TABLE = Path(__file__).parent / "prices.toml"
_DATED = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens, and where the figures are from."""

    prompt: float
    completion: float
    source: str

    def usd(self, prompt_tokens: float, completion_tokens: float) -> float:
        """What so many tokens cost."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1_000_000


def price_of(model: str, base_url: str | None, own: Mapping[str, Mapping[str, float]]) -> Price | None:
    """The price of a model: the user's own, else the table's; None for a model of neither, or on this machine.

    The table knows a model by its name without vendor (`openai/…`) and date (`…-2024-08-06`).
    """
    if model in own:
        return Price(own[model]["prompt"], own[model]["completion"], "rag-judge.toml")
    if base_url is None or is_local(base_url):
        return None
    table = _table()
    name = model.rpartition("/")[2].lower()
    for candidate in (model, name, _DATED.sub("", name)):
        if candidate in table["models"]:
            entry = table["models"][candidate]
            return Price(entry["prompt"], entry["completion"], f"price table of {table['as_of']}")
    return None


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    table = tomllib.loads(PRICE_TABLE.read_text(encoding="utf-8"))
    return {**table, "models": {name.lower(): entry for name, entry in table["models"].items()}}


def estimated_prompt(call: Call) -> int:
    """About how many tokens a call's messages are."""
    return sum(estimated_tokens(str(message["content"])) for message in call.messages)


@dataclass(slots=True)
class Spend:
    """What calls used so far. Counted tokens and estimated ones are kept apart."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    without_usage: int = 0  # replies for which the server counted no tokens
    estimated_prompt_tokens: int = 0  # of those replies
    estimated_completion_tokens: int = 0

    def add(self, usage: Usage, estimate: Usage | None) -> None:
        """Count one reply; `estimate` stands in where the server did not count."""
        self.calls += 1
        if usage.prompt_tokens is not None and usage.completion_tokens is not None:
            self.prompt_tokens += usage.prompt_tokens
            self.completion_tokens += usage.completion_tokens
            return
        self.without_usage += 1
        if estimate is not None:
            self.estimated_prompt_tokens += estimate.prompt_tokens or 0
            self.estimated_completion_tokens += estimate.completion_tokens or 0

    def usd(self, price: Price) -> float:
        """The cost of what was counted: a lower bound where replies came without a count."""
        return price.usd(self.prompt_tokens, self.completion_tokens)

    def usd_with_estimates(self, price: Price) -> float:
        """The cost with the estimated tokens in it."""
        estimated = price.usd(self.estimated_prompt_tokens, self.estimated_completion_tokens)
        return self.usd(price) + estimated


@dataclass(frozen=True, slots=True)
class Limits:
    """At what point no further call is sent; None: no limit. Money and calls are of the whole run."""

    max_usd: float | None = None
    max_calls: int | None = None
    deadline: float | None = None  # on the same clock as `now` of `Meter`


@dataclass(slots=True)
class Meter:
    """What a run has spent and what is on its way, against its limits.

    A call is reserved at its dearest (all its completion tokens) before it is sent, so that calls sent side by side
    do not pass the limit together.
    """

    limits: Limits
    price: Price | None
    spend: Spend = field(default_factory=Spend)
    calls_elsewhere: int = 0  # of the run's other judges
    usd_elsewhere: float = 0.0
    # (prompt tokens for one estimated token, completion budget for one planned token), as the server turned out to be
    scale: Callable[[], tuple[float, int]] = lambda: (1.0, 1)
    # what was spent on getting to know the server: its probe, and prompts sent for their token counts
    overhead: Callable[[], Usage] = lambda: Usage(None, None)
    _on_its_way: dict[str, float] = field(default_factory=dict)

    def refusal(self, call: Call, now: float) -> str | None:
        """Why this call is not to be sent now; None when it may be. `may_pass` says whether waiting can help."""
        limits = self.limits
        if limits.deadline is not None and now >= limits.deadline:
            return "the deadline has passed"
        n_calls = self.calls_elsewhere + self.spend.calls + len(self._on_its_way)
        if limits.max_calls is not None and n_calls >= limits.max_calls:
            return f"the limit of {limits.max_calls} calls is reached"
        if limits.max_usd is not None and self.price is not None:
            spent = self._spent(self.price)
            if spent + sum(self._on_its_way.values()) + self._dearest(call, self.price) > limits.max_usd:
                return f"the next call could pass the limit of {limits.max_usd:g} USD ({spent:.4f} USD are spent)"
        return None

    def may_pass(self, call: Call) -> bool:
        """True when only the money reserved for calls on their way refuses this call: they may turn out cheaper."""
        limit, price = self.limits.max_usd, self.price
        if limit is None or price is None or not self._on_its_way:
            return False
        return self._spent(price) + self._dearest(call, price) <= limit

    def _spent(self, price: Price) -> float:
        known = self.overhead()
        beside = price.usd(known.prompt_tokens or 0, known.completion_tokens or 0)
        return self.usd_elsewhere + self.spend.usd_with_estimates(price) + beside

    def release(self, call: Call) -> None:
        """Note that a reserved call was not sent after all."""
        self._on_its_way.pop(call.call_id, None)

    def reserve(self, call: Call) -> None:
        """Note that a call goes out."""
        self._on_its_way[call.call_id] = 0.0 if self.price is None else self._dearest(call, self.price)

    def settle(self, call: Call, result: Reply | CallFailure, estimate: Usage | None) -> None:
        """Note what came of a call; a reply of an earlier run cost nothing, and was no call."""
        self._on_its_way.pop(call.call_id, None)
        if isinstance(result, CallFailure):
            self.spend.calls += 1
        elif not result.cached:
            self.spend.add(result.usage, estimate)

    def _dearest(self, call: Call, price: Price) -> float:
        per_token, factor = self.scale()
        return price.usd(estimated_prompt(call) * max(1.0, per_token), call.parameters["max_tokens"] * factor)
