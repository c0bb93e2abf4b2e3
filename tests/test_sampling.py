"""The review sample: what is promised of its size, its order and its probabilities."""

import math
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_judge.sampling import allocate, draw, n_for_fraction, review_strata, seeded_order

sizes_of_strata = st.dictionaries(st.sampled_from(["pass", "fail", "a", "b", "undecided"]), st.integers(0, 60))


@pytest.mark.parametrize(
    ("sizes", "n", "expected"),
    [
        pytest.param({"pass": 60, "fail": 20}, 16, {"pass": 12, "fail": 4}, id="in proportion"),
        pytest.param({"pass": 76, "fail": 4}, 16, {"pass": 12, "fail": 4}, id="the floor of four"),
        pytest.param({"pass": 78, "fail": 2}, 16, {"pass": 14, "fail": 2}, id="a floor of all there are"),
        pytest.param({"pass": 60, "fail": 18, "undecided": 2}, 16, {"pass": 10, "fail": 4, "undecided": 2}, id="whole"),
        pytest.param(
            {"pass": 40, "fail": 20, "undecided": 20}, 16, {"pass": 4, "fail": 4, "undecided": 20}, id="many undecided"
        ),
        pytest.param({"pass": 60, "fail": 20}, 5, {"pass": 3, "fail": 2}, id="below the floors, evenly"),
        pytest.param({"pass": 60, "fail": 20}, 0, {"pass": 0, "fail": 0}, id="none"),
        pytest.param({"pass": 60, "fail": 20}, 99, {"pass": 60, "fail": 20}, id="all"),
        pytest.param({"pass": 80}, 12, {"pass": 12}, id="one stratum"),
        pytest.param({}, 12, {}, id="no case"),
    ],
)
def test_labels_are_allotted(sizes: dict[str, int], n: int, expected: dict[str, int]) -> None:
    assert allocate(sizes, n) == expected


def test_weights_draw_more_of_a_stratum() -> None:
    assert allocate({"pass": 60, "fail": 20}, 16, {"fail": 60}) == {"pass": 8, "fail": 8}
    assert allocate({"pass": 60, "fail": 20}, 16, {"pass": 0}) == {"pass": 4, "fail": 12}


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be negative"):
        allocate({"pass": 3}, -1)
    with pytest.raises(ValueError, match="stands for two cases"):
        draw(["a", "a"], ["pass", "pass"], 1, 0)
    with pytest.raises(ValueError, match="above 0 and at most at 1"):
        n_for_fraction(80, 1.5)


@given(sizes_of_strata, st.integers(0, 200))
def test_no_stratum_gets_fewer_when_more_labels_are_wanted(sizes: dict[str, int], n: int) -> None:
    fewer, more = allocate(sizes, n), allocate(sizes, n + 1)
    assert all(fewer[name] <= more[name] for name in sizes)
    assert all(got <= sizes[name] for name, got in more.items())
    if sum(min(4, size) for name, size in sizes.items() if name != "undecided") <= n:
        assert all(fewer[name] >= min(4, size) for name, size in sizes.items())


@given(st.integers(20, 2000), st.integers(20, 2000), st.integers(50, 500))
def test_well_above_the_floors_labels_are_in_proportion(n_pass: int, n_fail: int, n: int) -> None:
    got = allocate({"pass": n_pass, "fail": n_fail}, n)
    ideal = n * n_pass / (n_pass + n_fail)
    if n <= n_pass + n_fail and 4 <= ideal <= n - 4:
        assert abs(got["pass"] - ideal) <= 1


def test_a_larger_sample_holds_the_smaller_whatever_the_order_of_the_cases() -> None:
    ids = [f"q{i}" for i in range(80)]
    strata = ["fail" if i % 5 == 0 else "undecided" if i == 7 else "pass" for i in range(80)]
    small, large = draw(ids, strata, 12, 3), draw(ids, strata, 30, 3)
    assert set(small.ids) < set(large.ids)
    assert (len(small.ids), len(large.ids)) == (12, 30)
    assert draw(ids[::-1], strata[::-1], 12, 3) == small
    assert set(draw(ids, strata, 12, 4).ids) != set(small.ids)
    assert "q7" in small.ids


def test_the_probability_of_every_case_is_recorded_and_weighs_the_sample_up_to_all() -> None:
    ids = [f"q{i}" for i in range(80)]
    strata = ["fail" if i % 5 == 0 else "undecided" if i == 7 else "pass" for i in range(80)]
    sample = draw(ids, strata, 20, 3)
    assert sample.probabilities.keys() == set(ids)
    totals: Counter[str] = Counter()
    for case_id in sample.ids:
        totals[strata[ids.index(case_id)]] += 1 / sample.probabilities[case_id]  # type: ignore[assignment]
    assert totals == pytest.approx({"fail": 16, "undecided": 1, "pass": 63})
    assert {one.stratum: (one.n_cases, one.n_drawn) for one in sample.strata} == {
        "fail": (16, 4),
        "pass": (63, 15),
        "undecided": (1, 1),
    }
    assert all(one.probability == one.n_drawn / one.n_cases for one in sample.strata)


def test_every_case_of_a_stratum_is_as_likely_to_be_drawn() -> None:
    ids, strata = [f"q{i}" for i in range(20)], ["pass"] * 12 + ["fail"] * 8
    n_seeds = 3000
    drawn = Counter(case_id for seed in range(n_seeds) for case_id in draw(ids, strata, 10, seed).ids)
    for case_id, stratum in zip(ids, strata, strict=True):
        expected = {"pass": 6 / 12, "fail": 4 / 8}[stratum]
        # Four and a half standard errors of 3,000 draws: 20 cases stay within them all but one time in 7,000.
        bound = 4.5 * math.sqrt(expected * (1 - expected) / n_seeds)
        assert drawn[case_id] / n_seeds == pytest.approx(expected, abs=bound)


def test_the_order_to_review_in_tells_nobody_the_stratum() -> None:
    ids, strata = [f"q{i}" for i in range(200)], ["pass"] * 100 + ["fail"] * 100
    order = ["pass" if int(case_id[1:]) < 100 else "fail" for case_id in draw(ids, strata, 100, 0).ids]
    n_changes = sum(one != other for one, other in pairwise(order))
    # Mixed at random, 99 neighbours differ 50 times, give or take 5; in blocks they differ once.
    assert 30 <= n_changes <= 70
    assert order.count("pass") == 50


def test_one_seed_orders_by_the_id_alone() -> None:
    assert seeded_order(["b", "a", "c"], 1) == seeded_order(["c", "b", "a"], 1)
    everyone = seeded_order([f"q{i}" for i in range(50)], 1)
    assert [one for one in everyone if one in ("q3", "q9", "q30")] == seeded_order(["q3", "q9", "q30"], 1)


def test_strata_are_divided_by_type_where_each_division_still_gets_its_labels() -> None:
    judge = [True] * 30 + [False] * 10 + [None] * 2
    types = (["fact"] * 20 + ["list"] * 10) + ["fact"] * 10 + ["fact", "list"]
    divided = Counter({"fact/pass": 20, "list/pass": 10, "fact/fail": 10, "undecided": 2})
    assert Counter(review_strata(judge, 14, types)) == divided
    plain = Counter({"pass": 30, "fail": 10, "undecided": 2})
    assert Counter(review_strata(judge, 13, types)) == plain
    assert Counter(review_strata(judge, 42)) == plain


@pytest.mark.parametrize(("n_cases", "fraction", "n"), [(80, 0.15, 12), (81, 0.15, 13), (100, 0.07, 7), (3, 1, 3)])
def test_a_fraction_is_rounded_up_to_whole_cases(n_cases: int, fraction: float, n: int) -> None:
    assert n_for_fraction(n_cases, fraction) == n


def test_a_hundred_thousand_cases_are_drawn_from() -> None:
    ids = [str(i) for i in range(100_000)]
    sample = draw(ids, ["fail" if i % 3 == 0 else "pass" for i in range(100_000)], 15_000, 0)
    assert len(sample.ids) == 15_000
