"""Prices, what calls cost, and the limits at which no further call is sent; by hand-worked numbers."""

import random
import tomllib
from typing import Any

import pytest

from rag_judge.money import PRICE_TABLE, Limits, Meter, Price, Spend, estimated_prompt, price_of
from rag_judge.records import Call, CallFailure, Reply, Usage

HOSTED = "https://judge.example.com/v1"
TABLE: dict[str, Any] = tomllib.loads(PRICE_TABLE.read_text(encoding="utf-8"))
LISTED = TABLE["models"]["gpt-4o-mini"]
OWN = {"gpt-4o-mini": {"prompt": 7.0, "completion": 8.0}}
PRICE = Price(prompt=2.0, completion=10.0, source="test")  # US dollars per million


def call(number: int = 0, n_prompt: int = 100, max_tokens: int = 50) -> Call:
    """A call whose messages are estimated as `n_prompt` tokens: four letters are one."""
    messages = ({"role": "system", "content": "a" * 40}, {"role": "user", "content": "a" * (4 * n_prompt - 40)})
    return Call(f"id{number}", f"case{number}", 0, None, None, messages, {"max_tokens": max_tokens})


def reply(prompt: int | None = 100, completion: int | None = 50, *, cached: bool = False) -> Reply:
    return Reply("{}", "stop", "m", Usage(prompt, completion), 0.1, 1, {}, cached=cached)


FAILED = CallFailure("no_reply", "reset", 0.1, 5, {})


# --- what a model costs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "base_url"),
    [
        pytest.param("gpt-4o-mini", HOSTED, id="its plain name"),
        pytest.param("openai/gpt-4o-mini", HOSTED, id="a vendor before it"),
        pytest.param("a/b/gpt-4o-mini", HOSTED, id="two vendors before it"),
        pytest.param("gpt-4o-mini-2024-07-18", HOSTED, id="a date after it"),
        pytest.param("gpt-4o-mini-20240718", HOSTED, id="a date in one piece"),
        pytest.param("openai/gpt-4o-mini-2024-07-18", HOSTED, id="both"),
        pytest.param("GPT-4o-Mini", HOSTED, id="capitals"),
    ],
)
def test_the_table_knows_a_model_without_its_vendor_and_its_date(model: str, base_url: str) -> None:
    price = price_of(model, base_url, {})
    assert price is not None
    assert (price.prompt, price.completion) == (LISTED["prompt"], LISTED["completion"])
    assert TABLE["as_of"] in price.source


def test_a_dated_name_that_the_table_lists_has_its_own_price() -> None:
    dated = TABLE["models"]["gpt-4o-2024-05-13"]
    price = price_of("openai/gpt-4o-2024-05-13", HOSTED, {})
    assert price is not None
    assert (price.prompt, price.completion) == (dated["prompt"], dated["completion"])
    assert dated["prompt"] != TABLE["models"]["gpt-4o"]["prompt"]


@pytest.mark.parametrize(
    ("model", "base_url"),
    [
        pytest.param("nobody-knows-it", HOSTED, id="an unknown model"),
        pytest.param("gpt-4o-mini-like", HOSTED, id="a longer name"),
        pytest.param("gpt-4o-min", HOSTED, id="a shorter name"),
        pytest.param("gpt-4o-mini-2024", HOSTED, id="a year is no date"),
        pytest.param("", HOSTED, id="no name"),
        pytest.param("gpt-4o-mini", "http://127.0.0.1:8000/v1", id="a server on this machine"),
        pytest.param("gpt-4o-mini", "http://localhost:11434/v1", id="by its name"),
        pytest.param("gpt-4o-mini", "http://[::1]:8000/v1", id="by its newer number"),
        pytest.param("gpt-4o-mini", None, id="no server"),
    ],
)
def test_without_a_known_price_there_is_none(model: str, base_url: str | None) -> None:
    assert price_of(model, base_url, {}) is None


@pytest.mark.parametrize("base_url", [HOSTED, "http://127.0.0.1:8000/v1", None])
def test_the_users_own_price_wins_over_the_table_and_holds_on_this_machine_too(base_url: str | None) -> None:
    assert price_of("gpt-4o-mini", base_url, OWN) == Price(7.0, 8.0, "rag-judge.toml")


def test_the_users_own_price_is_of_the_model_as_it_is_written() -> None:
    price = price_of("openai/gpt-4o-mini", HOSTED, OWN)
    assert price is not None
    assert price.prompt == LISTED["prompt"]


def test_a_price_of_zero_is_a_price() -> None:
    free = price_of("own-model", HOSTED, {"own-model": {"prompt": 0.0, "completion": 0.0}})
    assert free is not None
    assert free.usd(10**6, 10**6) == 0.0


def test_a_price_is_per_million_tokens() -> None:
    # 3 million at 2 USD and half a million at 10 USD
    assert PRICE.usd(3_000_000, 500_000) == pytest.approx(11.0)


# --- what was spent --------------------------------------------------------------------------------------------------


def test_counted_and_estimated_tokens_are_kept_apart_and_the_cost_is_a_lower_bound() -> None:
    spend = Spend()
    spend.add(Usage(1_000, 100), None)
    spend.add(Usage(2_000, 300), Usage(9, 9))  # where the server counted, nothing is estimated
    spend.add(Usage(None, None), Usage(500, 40))
    assert (spend.calls, spend.prompt_tokens, spend.completion_tokens) == (3, 3_000, 400)
    assert (spend.without_usage, spend.estimated_prompt_tokens, spend.estimated_completion_tokens) == (1, 500, 40)
    # 3000 * 2 + 400 * 10 = 10000 millionths; 500 * 2 + 40 * 10 = 1400 more
    assert spend.usd(PRICE) == pytest.approx(0.0100)
    assert spend.usd_with_estimates(PRICE) == pytest.approx(0.0114)


@pytest.mark.parametrize("usage", [Usage(700, None), Usage(None, 30)])
def test_half_a_count_is_none(usage: Usage) -> None:
    spend = Spend()
    spend.add(usage, Usage(500, 40))
    assert (spend.prompt_tokens, spend.completion_tokens, spend.without_usage) == (0, 0, 1)
    assert (spend.estimated_prompt_tokens, spend.estimated_completion_tokens) == (500, 40)


def test_a_count_of_zero_is_a_count() -> None:
    spend = Spend()
    spend.add(Usage(0, 0), None)
    assert (spend.calls, spend.without_usage) == (1, 0)


def test_nothing_spent_costs_nothing() -> None:
    assert (Spend().usd(PRICE), Spend().usd_with_estimates(PRICE)) == (0.0, 0.0)


# --- limits ----------------------------------------------------------------------------------------------------------


def test_a_call_is_reserved_at_all_its_completion_tokens() -> None:
    assert estimated_prompt(call()) == 100
    # 100 * 2 + 50 * 10 = 700 millionths a call: two fit into 0.0014 USD, and a third does not
    meter = Meter(Limits(max_usd=0.0014), PRICE)
    for number in range(2):
        assert meter.refusal(call(number), now=0) is None
        meter.reserve(call(number))
    assert "0.0014 USD" in (meter.refusal(call(2), now=0) or "")


def test_what_a_reply_did_not_use_may_be_spent_again() -> None:
    meter = Meter(Limits(max_usd=0.0014), PRICE)
    for number in range(2):
        meter.reserve(call(number))
    meter.settle(call(0), reply(100, 0), None)  # 200 millionths in place of 700: 200 + 700 + 700 is still too much
    assert meter.refusal(call(2), now=0) is not None
    meter.settle(call(1), reply(100, 30), None)  # 200 + 500 spent, 700 to come
    assert meter.refusal(call(2), now=0) is None


def test_no_price_no_limit_of_money() -> None:
    meter = Meter(Limits(max_usd=0.0), None)
    meter.reserve(call())
    assert meter.refusal(call(1), now=0) is None


def test_estimates_count_towards_the_limit() -> None:
    meter = Meter(Limits(max_usd=0.0014), PRICE)
    meter.settle(call(0), reply(None, None), Usage(400, 0))  # 800 millionths, as far as can be told
    assert meter.spend.usd(PRICE) == 0.0
    assert meter.refusal(call(1), now=0) is not None


@pytest.mark.parametrize("seed", range(20))
def test_however_many_are_on_their_way_at_once_no_limit_is_passed(seed: int) -> None:
    """Calls go out and come back in any order; each uses at most the tokens that it was reserved with."""
    rng = random.Random(seed)
    limits = Limits(max_usd=rng.uniform(0.001, 0.05), max_calls=rng.randint(1, 60))
    meter, on_their_way, n_sent = Meter(limits, PRICE), list[Call](), 0
    for number in range(400):
        planned = call(number, n_prompt=rng.randint(20, 400), max_tokens=rng.randint(1, 200))
        if rng.random() < 0.6 and meter.refusal(planned, now=0) is None:
            meter.reserve(planned)
            on_their_way.append(planned)
            n_sent += 1
        elif on_their_way:
            done = on_their_way.pop(rng.randrange(len(on_their_way)))
            used = Usage(estimated_prompt(done), rng.randint(0, done.parameters["max_tokens"]))
            is_counted = rng.random() < 0.7
            came = reply(used.prompt_tokens, used.completion_tokens) if is_counted else reply(None, None)
            meter.settle(done, FAILED if rng.random() < 0.1 else came, used)
        assert meter.spend.usd_with_estimates(PRICE) <= limits.max_usd + 1e-12  # type: ignore[operator]
        assert n_sent <= limits.max_calls  # type: ignore[operator]
        assert meter.spend.calls + len(on_their_way) == n_sent


def test_calls_on_their_way_count_and_the_limit_is_reached_exactly() -> None:
    meter = Meter(Limits(max_calls=3), None)
    for number in range(3):
        assert meter.refusal(call(number), now=0) is None
        meter.reserve(call(number))
    assert meter.refusal(call(3), now=0) == "the limit of 3 calls is reached"
    for number in range(3):
        meter.settle(call(number), reply(), None)
        assert meter.refusal(call(3), now=0) == "the limit of 3 calls is reached"


def test_a_failed_call_is_a_call_and_a_cached_reply_is_none() -> None:
    meter = Meter(Limits(max_calls=2), PRICE)
    meter.reserve(call(0))
    meter.settle(call(0), reply(10**6, 10**6, cached=True), None)
    assert meter.spend == Spend()
    meter.reserve(call(1))
    meter.settle(call(1), FAILED, None)
    assert (meter.spend.calls, meter.spend.usd(PRICE)) == (1, 0.0)
    meter.reserve(call(2))
    meter.settle(call(2), reply(), None)
    assert (meter.spend.calls, meter.refusal(call(3), now=0) is None) == (2, False)


@pytest.mark.parametrize("most", [0, 0.0])
def test_a_limit_of_zero_lets_no_call_out(most: float) -> None:
    assert Meter(Limits(max_calls=int(most)), None).refusal(call(), now=0) is not None
    assert Meter(Limits(max_usd=most), PRICE).refusal(call(), now=0) is not None


@pytest.mark.parametrize(
    ("now", "is_over"),
    [pytest.param(99.9, False, id="before"), pytest.param(100.0, True, id="at"), pytest.param(1e9, True, id="after")],
)
def test_from_the_deadline_on_no_call_goes_out(now: float, is_over: bool) -> None:
    meter = Meter(Limits(deadline=100.0), None)
    assert (meter.refusal(call(), now) == "the deadline has passed") is is_over


def test_without_limits_nothing_is_refused() -> None:
    meter = Meter(Limits(), PRICE)
    for number in range(500):
        meter.reserve(call(number))
    assert meter.refusal(call(500), now=1e12) is None
