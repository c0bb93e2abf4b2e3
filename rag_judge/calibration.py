"""The judge measured against people: what may be published of the corrected pass rate, of bias and of agreement.

Four rules decide. R1: a case entered the review with unknown probability, nothing is corrected. R2: too few labels, no
corrected rate, its interval alone. R3: the corrected rate is indicative, its interval wide. R4: it is the headline.
R1 and R2 look at the design and the verdicts, never at what people answered, so that refusing does not bend coverage.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from rag_judge.agreement import (
    Confusion,
    cohen_kappa,
    confusion,
    gwet_ac1,
    raw_agreement,
    sensitivity,
    specificity,
    weighted_confusion,
)
from rag_judge.estimates import LEVEL, rate
from rag_judge.planning import HALF_WIDTHS, LabelsNeeded, labels_needed
from rag_judge.poststratification import (
    AGREEMENT,
    FALSE_FAIL,
    FALSE_PASS,
    JUDGE_MINUS_HUMAN,
    Quantity,
    Stratum,
    human_share,
    share_of_questions_like_these,
    share_of_this_set,
    strata_of,
    weighted_sensitivity,
    weighted_specificity,
)
from rag_judge.records import Estimate, NoEstimate, Target

Rule = Literal["R1", "R2", "R3", "R4"]
FEWEST_LABELS = 8
FEWEST_LABELS_OF_STRATUM = 2
SMALL_STRATUM = 0.05
WIDE = 0.10
FEWEST_OF_EITHER_LABEL = 5
NOT_REPRESENTATIVE = "some cases entered the review with unknown probability, so that the labels stand for themselves"


@dataclass(frozen=True, slots=True)
class CorrectedRate:
    """The human pass rate over all cases, as far as verdicts and labels allow."""

    rule: Rule
    reason: str  # why the rule applies
    corrected: Estimate | NoEstimate  # questions like these; NoEstimate under R1 and R2
    corrected_this_set: Estimate | NoEstimate
    interval: tuple[float, float] | None  # of questions like these; under R2 all that is shown, None under R1
    interval_this_set: tuple[float, float] | None
    judge_rate: Estimate | NoEstimate  # not corrected
    human_rate: Estimate | NoEstimate  # from the labels alone
    labels_needed: Mapping[str, LabelsNeeded]  # by half-width, "0.10" and "0.05"; for questions like these


@dataclass(frozen=True, slots=True)
class JudgeAgainstPeople:
    """One yes/no field of the judge against the labels: every number of it that the labels support."""

    rate: CorrectedRate
    confusion: Confusion  # plain counts
    bias: Estimate | NoEstimate  # judge minus human over the cases with a verdict of this set; positive: too lenient
    false_pass: Estimate | NoEstimate  # share of these cases that the judge passes and people fail
    false_fail: Estimate | NoEstimate
    agreement: Estimate | NoEstimate
    kappa: Estimate | NoEstimate
    ac1: Estimate | NoEstimate
    sensitivity: Estimate | NoEstimate
    specificity: Estimate | NoEstimate


def refusal(strata: Sequence[Stratum]) -> tuple[Rule, str] | None:
    """R1 or R2 with its reason, where the corrected rate may not be published; None where it may.

    A part of a verdict's cases (an own sampling probability or type) may lack labels while it is small; the verdict
    as a whole may not.
    """
    if any(not s.probability for s in strata if s.n_cases):
        return "R1", NOT_REPRESENTATIVE
    n_cases, n_labels = sum(s.n_cases for s in strata), sum(s.n_reviewed for s in strata)
    if n_labels < FEWEST_LABELS:
        return "R2", f"{n_labels} labels; {FEWEST_LABELS} are the fewest to correct with"
    for judged, name in ((True, "passed"), (False, "failed")):
        of_verdict = [s for s in strata if s.judged is judged and s.n_cases]
        if of_verdict and not any(s.n_reviewed for s in of_verdict):
            return "R2", f"none of the cases that the judge {name} is labelled"
    names = {True: "passed", False: "failed", None: "left undecided"}
    for s in strata:
        needed = min(FEWEST_LABELS_OF_STRATUM, s.n_cases)
        if s.n_cases >= SMALL_STRATUM * n_cases and s.n_reviewed < needed:
            what = f"{s.n_cases} cases that the judge {names[s.judged]}" + (f" ({s.part})" if s.part else "")
            return "R2", f"of the {what}, {s.n_reviewed} are labelled; {needed} are the fewest to correct with"
    return None


def corrected_pass_rate(strata: Sequence[Stratum], *, is_cautious: bool = False) -> CorrectedRate:
    """The pass rate that people would give to all cases, with the rule that says how it may be shown.

    `is_cautious` takes Clopper-Pearson ends, for a claim that a system is bad. Source: Tenenbein 1970 (JASA 65:1350)
    and Zou & Donner 2008 (Stat. Med. 27:1693) for the interval of questions like these.
    """
    refused = refusal(strata)
    like_these: Estimate | NoEstimate = share_of_questions_like_these(strata, is_cautious=is_cautious)
    this_set: Estimate | NoEstimate = share_of_this_set(strata)
    interval, interval_this_set = _ends(like_these), _ends(this_set)
    if refused is not None:
        rule, reason = refused
        like_these = this_set = NoEstimate(reason)
        if rule == "R1":
            interval = interval_this_set = None
    elif interval is not None and (interval[1] - interval[0]) / 2 > WIDE:
        rule, reason = "R3", f"indicative: the interval reaches further than {WIDE:.2f} to either side"
    else:
        rule, reason = "R4", f"the interval reaches at most {WIDE:.2f} to either side"
    judged = [s for s in strata if s.judged is not None]
    n_passed = sum(s.n_cases for s in judged if s.judged)
    return CorrectedRate(
        rule,
        reason,
        like_these,
        this_set,
        interval,
        interval_this_set,
        rate(n_passed, sum(s.n_cases for s in judged), nothing="no case with a verdict"),
        NoEstimate(NOT_REPRESENTATIVE) if rule == "R1" else human_share(strata),
        {f"{half:.2f}": labels_needed(strata, half) for half in HALF_WIDTHS},
    )


def judge_bias(strata: Sequence[Stratum], target: Target = "this_set") -> Estimate | NoEstimate:
    """The judge's pass rate minus people's, over the cases with a verdict, in [-1, 1]; positive: too lenient.

    A value near 0 can hide false passes and false fails that cancel: show both beside it. NoEstimate where the
    corrected rate of these cases is refused.
    """
    return _published(strata, JUDGE_MINUS_HUMAN, target)


def false_pass_share(strata: Sequence[Stratum], target: Target = "this_set") -> Estimate | NoEstimate:
    """The share of the cases with a verdict that the judge passes and people would fail."""
    if not any(s.judged is True and s.n_cases for s in strata):
        return NoEstimate("the judge passed no case, so that nothing shows what its passes are worth")
    return _published(strata, FALSE_PASS, target)


def false_fail_share(strata: Sequence[Stratum], target: Target = "this_set") -> Estimate | NoEstimate:
    """The share of the cases with a verdict that the judge fails and people would pass."""
    if not any(s.judged is False and s.n_cases for s in strata):
        return NoEstimate("the judge failed no case, so that nothing shows what its fails are worth")
    return _published(strata, FALSE_FAIL, target)


def judge_against_people(
    judge: Sequence[bool | None],
    human: Sequence[bool | None],
    probabilities: Sequence[float | None],
    seed: int,
    parts: Sequence[str] | None = None,
) -> JudgeAgainstPeople:
    """All numbers of one yes/no field, from one entry per case of the run: verdict, label, sampling probability.

    None is no verdict, no label (not reviewed, unsure), or an unknown probability. Under unequal probabilities every
    rate is weighted. Raises ValueError where the lengths differ.
    """
    strata = strata_of(judge, human, probabilities, parts)
    cells = confusion(judge, human)
    if refusal(strata) == ("R1", NOT_REPRESENTATIVE):
        unknown = NoEstimate(NOT_REPRESENTATIVE)
        return JudgeAgainstPeople(corrected_pass_rate(strata), cells, *[unknown] * 8)
    judged = [s for s in strata if s.judged is not None]
    is_simple = len({s.probability for s in judged}) <= 1
    weighted = cells if is_simple else weighted_confusion(judge, human, probabilities)
    # Of a judge that always says the same, the weighted rates are 0 and 1 with no width, whatever the labels.
    same = None if len({s.judged for s in judged}) > 1 else NoEstimate("the judge says the same of every case")
    return JudgeAgainstPeople(
        rate=corrected_pass_rate(strata),
        confusion=cells,
        bias=judge_bias(strata),
        false_pass=false_pass_share(strata),
        false_fail=false_fail_share(strata),
        agreement=raw_agreement(cells) if is_simple else _published(strata, AGREEMENT, "questions_like_these"),
        kappa=cohen_kappa(weighted, seed),
        ac1=gwet_ac1(weighted, seed),
        sensitivity=same or (sensitivity(cells) if is_simple else weighted_sensitivity(strata, seed)),
        specificity=same or (specificity(cells) if is_simple else weighted_specificity(strata, seed)),
    )


def _published(strata: Sequence[Stratum], quantity: Quantity, target: Target) -> Estimate | NoEstimate:
    """The quantity where the rules allow it over the cases with a verdict."""
    judged = [s for s in strata if s.judged is not None]
    refused = refusal(judged)
    if refused is not None:
        return NoEstimate(refused[1])
    share = share_of_this_set if target == "this_set" else share_of_questions_like_these
    return share(judged, quantity)


def _ends(estimate: Estimate | NoEstimate) -> tuple[float, float] | None:
    if isinstance(estimate, NoEstimate) or estimate.low is None or estimate.high is None:
        return None
    return estimate.low, estimate.high


@dataclass(frozen=True, slots=True)
class RoganGladen:
    """A pass rate corrected by sensitivity and specificity; `estimate` is clipped to [0, 1], `raw` is not."""

    estimate: Estimate
    raw: float
    truncated: bool


def rogan_gladen(
    n_judge_pass: int, n_cases: int, calibration: Confusion, fewest: int = FEWEST_OF_EITHER_LABEL
) -> RoganGladen | NoEstimate:
    """The pass rate of n_cases new cases from the judge's passes among them and an older, independent set of labels.

    Only for labels of other cases, on which the judge errs as it does here; the pass rate there may differ. With
    labels of the same cases `corrected_pass_rate` is far better. NoEstimate where either label is rarer than `fewest`
    or the verdicts carry nothing. Sources: Rogan & Gladen 1978 (Am. J. Epidemiol. 107:71); Lang & Reiczigel 2014
    (Prev. Vet. Med. 113:13) for the interval, as Lee et al. 2025 (arXiv 2511.21140) write it.
    """
    m1, m0 = calibration.tp + calibration.fn, calibration.tn + calibration.fp
    if not n_cases:
        return NoEstimate("no case with a verdict")
    if min(m0, m1) < max(1, fewest):
        return NoEstimate(f"{m1:g} human passes and {m0:g} human fails; {max(1, fewest)} of each are the fewest")
    worthless = NoEstimate("the judge's verdicts carry no usable information about the human's")
    p, sens, spec = n_judge_pass / n_cases, calibration.tp / m1, calibration.tn / m0
    z = NormalDist().inv_cdf(0.5 + LEVEL / 2)
    p_s, spec_s, sens_s = (
        (n_judge_pass + z * z / 2) / (n_cases + z * z),
        (calibration.tn + 1) / (m0 + 2),
        (calibration.tp + 1) / (m1 + 2),
    )
    # By counts: the quotients of 0.7 and 0.3 add up to a hair above or below 1.
    if calibration.tp * m0 + calibration.tn * m1 <= m1 * m0 or sens_s + spec_s - 1 <= 1e-12:
        return worthless
    raw = (p + spec - 1) / (sens + spec - 1)
    j = sens_s + spec_s - 1
    theta = (p_s + spec_s - 1) / j
    of_sens, of_spec = sens_s * (1 - sens_s) / (m1 + 2), spec_s * (1 - spec_s) / (m0 + 2)
    shift = 2 * z * z * (theta * of_sens - (1 - theta) * of_spec)
    variance = p_s * (1 - p_s) / (n_cases + z * z) + (1 - theta) ** 2 * of_spec + theta**2 * of_sens
    half = z * math.sqrt(variance) / j
    low, high = (min(1.0, max(0.0, theta + shift + side * half)) for side in (-1, 1))
    clipped = min(1.0, max(0.0, raw))
    estimate = Estimate(clipped, low, high, LEVEL, calibration.n, "rogan-gladen, lang-reiczigel")
    return RoganGladen(estimate, raw, clipped != raw)
