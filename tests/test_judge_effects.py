"""Length and drift: brute force, hand-worked values, and statsmodels as oracle."""

import math
import random
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.discrete.discrete_model import Logit

from rag_judge.judge_effects import LengthEffect, drift, length_effect
from rag_judge.paired import Changes
from rag_judge.records import Estimate, NoEstimate


def effect(value: LengthEffect | NoEstimate) -> LengthEffect:
    assert isinstance(value, LengthEffect)
    return value


def test_the_effect_of_length_agrees_with_a_hand_worked_value() -> None:
    # Lengths e^0 ... e^3, all passed by people; the judge passes the longest two: T = (2 + 3) - 2 * 1.5 = 2. Of the 6
    # pairs, sums 1 2 3 3 4 5 less 3: two reach 2 or -2.
    found = effect(length_effect([False, False, True, True], [True] * 4, [math.exp(i) for i in range(4)], 0))
    assert (found.statistic, found.p_value) == pytest.approx((2.0, 2 / 6))
    assert (found.n, found.n_arrangements) == (4, 6)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(1, 40)), min_size=2, max_size=6))
def test_the_permutation_test_agrees_with_every_order_written_out(rows: list[tuple[bool, bool, int]]) -> None:
    found = length_effect([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows], 0)
    if len({row[2] for row in rows}) == 1:
        assert found == NoEstimate("no two labelled cases differ in length")
        return
    groups = [[row for row in rows if row[1] is label] for label in (True, False)]

    def statistic(verdicts: list[list[bool]]) -> float:
        total = 0.0
        for group, said in zip(groups, verdicts, strict=True):
            mean = sum(said) / len(said) if said else 0
            total += sum((v - mean) * math.log(row[2]) for v, row in zip(said, group, strict=True))
        return total

    observed = statistic([[row[0] for row in group] for group in groups])
    values = [
        statistic([list(one), list(other)])
        for one in permutations([row[0] for row in groups[0]])
        for other in permutations([row[0] for row in groups[1]])
    ]
    expected = sum(abs(value) >= abs(observed) - 1e-9 for value in values) / len(values)
    assert effect(found).statistic == pytest.approx(observed, abs=1e-9)
    assert effect(found).p_value == pytest.approx(expected, abs=1e-9)


def test_where_the_arrangements_are_too_many_they_are_drawn_with_the_seed() -> None:
    rng = random.Random(1)
    lengths = [rng.randint(1, 300) for _ in range(40)]
    judge, human = ([rng.random() < 0.6 for _ in range(40)] for _ in range(2))
    found = effect(length_effect(judge, human, lengths, 1))
    assert found.n_arrangements is None
    assert found == length_effect(judge[::-1], human[::-1], lengths[::-1], 1)
    # Four standard errors of two times 10,000 draws are at most 0.0283.
    assert effect(length_effect(judge, human, lengths, 2)).p_value == pytest.approx(found.p_value, abs=0.0283)


def test_a_judge_that_always_says_the_same_is_not_moved_by_length() -> None:
    found = effect(length_effect([True] * 60, [True, False] * 30, list(range(60)), 0))
    assert (found.p_value, found.odds_ratio) == (1.0, NoEstimate("the judge says the same of all"))


def test_only_labelled_and_judged_cases_count_and_an_empty_answer_has_a_length() -> None:
    found = effect(length_effect([True, False, None, True], [True, True, True, None], [0, 5, 9, 9], 0))
    # log(1 + length) for all, as one is 0: T = log 1 - (log 1 + log 6)/2
    assert (found.n, found.n_arrangements) == (2, 2)
    assert found.statistic == pytest.approx(-math.log(6) / 2)


def test_from_fifty_labels_the_odds_ratio_is_that_of_statsmodels() -> None:
    rng = random.Random(6)
    human = [rng.random() < 0.6 for _ in range(120)]
    lengths = [round(math.exp(rng.gauss(4, 1))) + 1 for _ in human]
    judge = [
        rng.random() < 1 / (1 + math.exp(-(0.8 * (math.log(n) - 4) + (1.5 if h else -1))))
        for n, h in zip(lengths, human, strict=True)
    ]
    found = effect(length_effect(judge, human, lengths, 0))
    logs = np.log(lengths)
    design = np.column_stack([np.ones(120), (logs - logs.mean()) / logs.std(ddof=1), np.array(human, float)])
    fitted = Logit(np.array(judge, float), design).fit(disp=0)
    assert isinstance(found.odds_ratio, Estimate)
    assert found.odds_ratio.value == pytest.approx(math.exp(fitted.params[1]), rel=1e-6)
    ends = np.exp(fitted.conf_int()[1])
    assert (found.odds_ratio.low, found.odds_ratio.high) == pytest.approx(tuple(ends), rel=1e-6)
    assert found.p_value == pytest.approx(fitted.pvalues[1], abs=1e-8)


@pytest.mark.parametrize("human", [[True] * 60, [i % 3 > 0 for i in range(60)]], ids=["one label", "both"])
def test_verdicts_that_length_separates_have_no_odds_ratio_but_a_test(human: list[bool]) -> None:
    found = effect(length_effect([i >= 30 for i in range(60)], human, [float(i + 1) for i in range(60)], 0))
    assert isinstance(found.odds_ratio, NoEstimate)
    assert "separate the verdicts" in found.odds_ratio.reason
    assert found.p_value < 0.001


def test_drift_is_counted_on_anchors_with_a_verdict_in_both_runs() -> None:
    first = [True] * 6 + [False] * 4 + [None]
    now = [True] * 4 + [False] * 2 + [True] + [False] * 3 + [True]
    human = [True] * 5 + [False] * 5 + [True]
    found = drift(first, now, human, flip_rate=0.1)
    assert found.changes == Changes(10, gained=1, lost=2)
    assert isinstance(found.net, Estimate)
    assert found.net.value == pytest.approx(-0.1)
    assert found.p_value == pytest.approx((2 * (1 + 3) - 3) / 8)
    assert isinstance(found.agreement, Estimate)
    assert found.agreement.value == pytest.approx(0.7)
    assert found.excess_disagreement == pytest.approx(0.2)
    # Of what people pass, 5 passed first and 4 now; of what they fail, 1 passed first and 1 now, in other places.
    assert isinstance(found.sensitivity_change, Estimate)
    assert found.sensitivity_change.value == pytest.approx(-1 / 5)
    assert isinstance(found.specificity_change, Estimate)
    assert (found.specificity_change.value, found.specificity_change.n) == (0, 5)


def test_without_labels_or_changes_drift_says_what_it_cannot_say() -> None:
    found = drift([True] * 30, [True] * 30)
    assert (found.p_value, found.smallest_detectable, found.excess_disagreement) == (1.0, None, None)
    assert found.sensitivity_change == NoEstimate("no anchor passes by human judgement")
    assert isinstance(found.net, Estimate)
    assert (found.net.low or 0) < 0 < (found.net.high or 0)
    assert isinstance(drift([], []).net, NoEstimate)
