"""What may be published of a judge measured against people: the rules, bias, Rogan-Gladen, and simulated coverage."""

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_judge.agreement import Confusion
from rag_judge.calibration import (
    NOT_REPRESENTATIVE,
    RoganGladen,
    corrected_pass_rate,
    false_fail_share,
    false_pass_share,
    judge_against_people,
    judge_bias,
    refusal,
    rogan_gladen,
)
from rag_judge.poststratification import Stratum, share_of_questions_like_these, share_of_this_set, verdict_strata
from rag_judge.records import Estimate, NoEstimate


def estimate(value: Estimate | NoEstimate) -> Estimate:
    assert isinstance(value, Estimate)
    return value


def run_of(counts: Sequence[tuple[bool | None, bool | None, float | None, int]]) -> tuple[list[object], ...]:
    """Verdicts, labels and probabilities of a run, from how many cases have which."""
    rows = [row[:3] for row in counts for _ in range(row[3])]
    return tuple([row[i] for row in rows] for i in range(3))


@pytest.mark.parametrize(
    ("strata", "rule", "reason"),
    [
        pytest.param(
            [Stratum(True, 60, 20, 18, 0.5), Stratum(False, 20, 20, 2, None)], "R1", NOT_REPRESENTATIVE, id="picked"
        ),
        pytest.param(
            [Stratum(True, 60, 20, 18, 0.5), Stratum(False, 20, 0, 0, 0.0)], "R1", NOT_REPRESENTATIVE, id="none drawn"
        ),
        pytest.param(verdict_strata(60, 4, 3, 20, 3, 1), "R2", "7 labels; 8 are the fewest to correct with", id="7"),
        pytest.param(
            verdict_strata(76, 9, 8, 4, 1, 0),
            "R2",
            "of the 4 cases that the judge failed, 1 are labelled; 2 are the fewest to correct with",
            id="one label for 5 % of the cases",
        ),
        pytest.param(
            verdict_strata(79, 9, 8, 1, 0, 0),
            "R2",
            "none of the cases that the judge failed is labelled",
            id="no label",
        ),
        pytest.param(
            (*verdict_strata(60, 9, 8, 15, 4, 1), Stratum(None, 5, 0, 0, 1.0)),
            "R2",
            "of the 5 cases that the judge left undecided, 0 are labelled; 2 are the fewest to correct with",
            id="many undecided",
        ),
        pytest.param([], "R2", "0 labels; 8 are the fewest to correct with", id="nothing"),
    ],
)
def test_a_corrected_rate_is_refused(strata: Sequence[Stratum], rule: str, reason: str) -> None:
    assert refusal(strata) == (rule, reason)
    found = corrected_pass_rate(strata)
    assert (found.rule, found.reason) == (rule, reason)
    assert found.corrected == found.corrected_this_set == NoEstimate(reason)
    assert (found.interval is not None) == (rule == "R2" and bool(strata))
    assert isinstance(found.human_rate, NoEstimate) == (rule == "R1" or not strata)


@pytest.mark.parametrize(
    "strata",
    [
        pytest.param(verdict_strata(60, 6, 5, 20, 2, 1), id="eight labels"),
        pytest.param(verdict_strata(77, 9, 8, 3, 1, 0), id="one label for less than 5 %"),
        pytest.param((*verdict_strata(60, 9, 8, 17, 4, 1), Stratum(None, 3, 0, 0, 1.0)), id="few undecided"),
        pytest.param((*verdict_strata(60, 9, 8, 18, 4, 1), Stratum(True, 2, 0, 0, 1.0, "b")), id="a small part"),
        pytest.param(verdict_strata(80, 9, 8, 0, 0, 0), id="one verdict only"),
        pytest.param((*verdict_strata(9, 8, 8, 6, 4, 1), Stratum(None, 1, 1, 0, 1.0)), id="the one undecided is seen"),
    ],
)
def test_a_corrected_rate_is_shown_as_indicative_where_its_interval_is_wide(strata: Sequence[Stratum]) -> None:
    found = corrected_pass_rate(strata)
    assert found.rule == "R3"
    assert found.corrected == share_of_questions_like_these(strata)
    assert found.corrected_this_set == share_of_this_set(strata)


def test_a_corrected_rate_is_the_headline_where_its_interval_is_narrow() -> None:
    found = corrected_pass_rate(verdict_strata(400, 120, 114, 100, 60, 6))
    assert (found.rule, found.labels_needed["0.10"].more) == ("R4", 0)
    low, high = found.interval or (0, 1)
    assert (high - low) / 2 <= 0.10


def test_refusing_looks_at_no_answer_of_a_person() -> None:
    for n1 in range(9):
        for n0 in range(9):
            refused = {refusal(verdict_strata(60, n1, x1, 20, n0, x0)) for x1 in range(n1 + 1) for x0 in range(n0 + 1)}
            assert len(refused) == 1


def test_the_cautious_interval_holds_the_default_one() -> None:
    strata = verdict_strata(66, 12, 10, 14, 4, 1)
    default, cautious = corrected_pass_rate(strata).interval, corrected_pass_rate(strata, is_cautious=True).interval
    assert default is not None
    assert cautious is not None
    assert cautious[0] < default[0]
    assert cautious[1] > default[1]


def test_bias_is_shown_in_its_two_parts() -> None:
    # 50 of 80 passed, 9 of 10 right; 30 failed, 2 of 6 wrong: false passes 5/80, false fails 10/80, bias -5/80
    strata = verdict_strata(50, 10, 9, 30, 6, 2)
    for target in ("this_set", "questions_like_these"):
        bias, passes, fails = (
            estimate(share(strata, target)) for share in (judge_bias, false_pass_share, false_fail_share)
        )
        assert (bias.value, passes.value, fails.value) == pytest.approx((-5 / 80, 5 / 80, 10 / 80), abs=1e-12)
        assert {bias.target, passes.target, fails.target} == {target}
        assert all((one.low or 0) < one.value < (one.high or 0) for one in (bias, passes, fails))


def test_bias_leaves_out_what_the_judge_did_not_decide() -> None:
    decided = verdict_strata(50, 10, 9, 30, 6, 2)
    assert judge_bias((*decided, Stratum(None, 10, 10, 0, 1.0))) == judge_bias(decided)


@pytest.mark.parametrize(
    ("share", "strata", "reason"),
    [
        (judge_bias, verdict_strata(50, 4, 3, 30, 3, 2), "7 labels; 8 are the fewest to correct with"),
        (false_fail_share, verdict_strata(80, 16, 15, 0, 0, 0), "the judge failed no case"),
        (false_pass_share, verdict_strata(0, 0, 0, 80, 16, 15), "the judge passed no case"),
    ],
)
def test_a_bias_without_material_is_refused(share: object, strata: Sequence[Stratum], reason: str) -> None:
    assert callable(share)
    found = share(strata)
    assert isinstance(found, NoEstimate)
    assert reason in found.reason


def test_all_numbers_of_a_field_drawn_at_random_are_the_plain_ones() -> None:
    judge, human, drawn = run_of(
        [
            (True, True, 0.2, 10),
            (True, False, 0.2, 2),
            (True, None, 0.2, 48),
            (False, True, 0.2, 1),
            (False, False, 0.2, 3),
            (False, None, 0.2, 16),
        ]
    )
    found = judge_against_people(judge, human, drawn, 0)  # type: ignore[arg-type]
    assert found.confusion == Confusion(tp=10, fn=1, fp=2, tn=3, n=16)
    assert estimate(found.rate.corrected).value == pytest.approx(0.75 * 10 / 12 + 0.25 / 4)
    assert estimate(found.rate.judge_rate).value == 0.75
    assert estimate(found.rate.human_rate).value == 11 / 16
    assert (estimate(found.agreement).value, estimate(found.agreement).method) == (13 / 16, "wilson")
    assert estimate(found.sensitivity).value == pytest.approx(10 / 11)
    assert estimate(found.specificity).value == pytest.approx(3 / 5)
    # Kappa: margins 11/16 and 12/16, chance (11 * 12 + 5 * 4)/256 = 152/256, (208 - 152)/104
    assert estimate(found.kappa).value == pytest.approx(56 / 104)


def test_all_numbers_of_a_field_drawn_by_verdict_are_weighted_back() -> None:
    # 60 passed, 6 of 8 right: 45 and 15; 20 failed, 1 of 8 wrong: 2.5 and 17.5
    judge, human, drawn = run_of(
        [
            (True, True, 8 / 60, 6),
            (True, False, 8 / 60, 2),
            (True, None, 8 / 60, 52),
            (False, True, 8 / 20, 1),
            (False, False, 8 / 20, 7),
            (False, None, 8 / 20, 12),
            (None, True, 1.0, 2),
        ]
    )
    found = judge_against_people(judge, human, drawn, 0)  # type: ignore[arg-type]
    assert found.confusion == Confusion(tp=6, fn=1, fp=2, tn=7, n=16)
    assert estimate(found.agreement).value == pytest.approx(62.5 / 80)
    assert estimate(found.sensitivity).value == pytest.approx(45 / 47.5)
    assert estimate(found.specificity).value == pytest.approx(17.5 / 32.5)
    assert estimate(found.bias).value == pytest.approx(12.5 / 80)
    chance = (47.5 * 60 + 32.5 * 20) / 80**2
    assert estimate(found.kappa).value == pytest.approx((62.5 / 80 - chance) / (1 - chance))
    assert estimate(found.rate.corrected).value == pytest.approx(49.5 / 82)
    assert estimate(found.rate.human_rate).value == pytest.approx(49.5 / 82)


def test_labels_picked_by_hand_give_counts_and_no_rate() -> None:
    judge, human, drawn = run_of([(True, True, None, 9), (True, False, None, 3), (False, None, 0.1, 8)])
    found = judge_against_people(judge, human, drawn, 0)  # type: ignore[arg-type]
    assert found.confusion == Confusion(9, 0, 3, 0, 12)
    for one in (found.bias, found.agreement, found.kappa, found.sensitivity, found.rate.corrected):
        assert one == NoEstimate(NOT_REPRESENTATIVE)
    assert estimate(found.rate.judge_rate).value == 12 / 20


def test_no_order_of_the_cases_changes_a_number() -> None:
    rng = random.Random(5)
    rows = [
        (verdict := rng.random() < 0.7, rng.random() < 0.6 if rng.random() < 0.4 else None, 0.4 if verdict else 0.5)
        for _ in range(80)
    ]
    judge, human, drawn = zip(*rows, strict=True)
    rng.shuffle(rows)
    others = list(zip(*rows, strict=True))
    assert judge_against_people(others[0], others[1], others[2], 0) == judge_against_people(judge, human, drawn, 0)


def test_rogan_gladen_agrees_with_a_hand_worked_value() -> None:
    # p = 0.7, sens 18/20, spec 8/10: (0.7 + 0.8 - 1)/0.7 = 5/7. Drawn in: p (56 + 1.920729)/(80 + 3.841459) =
    # 0.690836, spec 9/12, sens 19/22, J 0.613636, theta 0.440836/0.613636 = 0.718400; sens 0.117769/22 = 0.00535313,
    # spec 0.1875/12 = 0.015625; shift 7.682918 * (0.7184 * 0.00535313 - 0.2816 * 0.015625) = -0.004258;
    # variance 0.213582/83.841459 + 0.079299 * 0.015625 + 0.516099 * 0.00535313 = 0.0065492, root 0.0809271, over J and
    # times 1.959964 0.258483: 0.718400 - 0.004258 -+ 0.258483
    found = rogan_gladen(56, 80, Confusion(tp=18, fn=2, fp=2, tn=8, n=30))
    assert isinstance(found, RoganGladen)
    assert found.raw == pytest.approx(5 / 7, abs=1e-12)
    assert (found.estimate.low, found.estimate.high) == pytest.approx((0.455659, 0.972625), abs=2e-5)
    assert (found.truncated, found.estimate.value) == (False, found.raw)


def test_rogan_gladen_beyond_the_range_is_cut_and_says_so() -> None:
    found = rogan_gladen(79, 80, Confusion(tp=16, fn=4, fp=2, tn=8, n=30))
    assert isinstance(found, RoganGladen)
    assert found.truncated
    assert (found.estimate.value, found.estimate.high) == (1.0, 1.0)
    assert found.raw == pytest.approx((79 / 80 - 0.2) / 0.6)


@pytest.mark.parametrize(
    ("cells", "fewest", "reason"),
    [
        (Confusion(18, 2, 1, 3, 24), 5, "20 human passes and 4 human fails; 5 of each are the fewest"),
        (Confusion(0, 0, 3, 9, 12), 0, "0 human passes and 12 human fails; 1 of each are the fewest"),
        (Confusion(7, 3, 7, 3, 20), 5, "the judge's verdicts carry no usable information about the human's"),
        (Confusion(3, 17, 6, 4, 30), 5, "the judge's verdicts carry no usable information about the human's"),
    ],
)
def test_rogan_gladen_is_refused(cells: Confusion, fewest: int, reason: str) -> None:
    assert rogan_gladen(40, 80, cells, fewest) == NoEstimate(reason)
    assert rogan_gladen(0, 0, Confusion(9, 1, 1, 9, 20)) == NoEstimate("no case with a verdict")


@given(st.integers(5, 60), st.integers(5, 60), st.data())
def test_rogan_gladen_calling_pass_fail_is_mirrored(m1: int, m0: int, data: st.DataObject) -> None:
    tp, tn, x = data.draw(st.integers(0, m1)), data.draw(st.integers(0, m0)), data.draw(st.integers(0, 80))
    found = rogan_gladen(x, 80, Confusion(tp, m1 - tp, m0 - tn, tn, m1 + m0))
    other = rogan_gladen(80 - x, 80, Confusion(tn, m0 - tn, m1 - tp, tp, m1 + m0))
    if isinstance(found, NoEstimate) or isinstance(other, NoEstimate):
        assert isinstance(found, NoEstimate)
        assert isinstance(other, NoEstimate)
        return
    assert other.raw == pytest.approx(1 - found.raw, abs=1e-9)
    one, mirrored = found.estimate, other.estimate
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - (one.high or 0), 1 - (one.low or 0)), abs=1e-9)


@pytest.mark.parametrize(
    ("rate", "sens", "spec", "n_labels"),
    [(0.7, 0.95, 0.65, 8), (0.85, 0.92, 0.4, 16), (0.95, 0.6, 0.45, 16), (0.5, 0.95, 0.9, 32)],
)
def test_both_intervals_hold_the_truth_about_as_often_as_they_say(
    rate: float, sens: float, spec: float, n_labels: int
) -> None:
    rng = np.random.default_rng(23)
    n_draws, held, held_here = 600, 0, 0
    for _ in range(n_draws):
        human = rng.random(80) < rate
        judge = np.where(human, rng.random(80) < sens, rng.random(80) >= spec)
        seen = rng.permutation(80) < n_labels
        counts = [int(part.sum()) for v in (judge, ~judge) for part in (v, v & seen, v & seen & human)]
        strata = verdict_strata(*counts)
        both = estimate(share_of_questions_like_these(strata)), estimate(share_of_this_set(strata))
        held += (both[0].low or 0) <= rate <= (both[0].high or 0)
        held_here += (both[1].low or 0) - 1e-9 <= human.mean() <= (both[1].high or 0) + 1e-9
    # No cell may fall below 0.90; three standard errors of 600 draws at 0.92 are 0.033.
    assert held / n_draws >= 0.92 - 3 * math.sqrt(0.92 * 0.08 / n_draws)
    assert held_here / n_draws >= 0.93 - 3 * math.sqrt(0.93 * 0.07 / n_draws)
