"""The dated table of list prices that the package carries."""

import math
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import rag_judge

PATH = Path(rag_judge.__file__).with_name("prices.toml")
TABLE: dict[str, Any] = tomllib.loads(PATH.read_text(encoding="utf-8"))  # a name given twice is an error of the syntax
MODELS: dict[str, dict[str, Any]] = TABLE["models"]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_has_two_prices_above_zero_and_a_known_source(name: str) -> None:
    model = MODELS[name]
    assert set(model) == {"prompt", "completion", "source"}
    for price in (model["prompt"], model["completion"]):
        assert type(price) in (int, float)
        assert math.isfinite(price)
        assert price > 0
    assert model["source"] in TABLE["sources"]


def test_most_completions_cost_at_least_as_much_as_prompts() -> None:
    dearer = sum(model["completion"] >= model["prompt"] for model in MODELS.values())
    assert dearer / len(MODELS) > 0.9


def test_the_prices_are_per_million_tokens() -> None:
    # A price per token or per thousand would lie far below, and one in cents far above.
    assert all(0.01 <= model[side] <= 200 for model in MODELS.values() for side in ("prompt", "completion"))


def test_names_differ_by_more_than_case_or_space() -> None:
    assert len({name.strip().casefold() for name in MODELS}) == len(MODELS)


def test_every_source_is_used_and_says_what_it_is() -> None:
    assert {model["source"] for model in MODELS.values()} == set(TABLE["sources"])
    assert all(isinstance(text, str) and text.strip() for text in TABLE["sources"].values())


def test_the_table_says_its_day_as_an_iso_date() -> None:
    assert isinstance(TABLE["as_of"], str)
    assert date.fromisoformat(TABLE["as_of"]).isoformat() == TABLE["as_of"]
    assert set(TABLE) == {"as_of", "sources", "models"}
