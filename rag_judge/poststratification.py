"""Shares over all cases of a run, from human labels on a part of them drawn with known probabilities.

The cases stand in strata by the judge's verdict, and within it by sampling probability. Every share is the sum over
the strata of W * p, W the stratum's share of the cases and p the human passes (or fails) among its labels. What may be
published is decided in `calibration`. Sources: Tenenbein 1970 (JASA 65:1350) for double sampling; Cochran 1977,
chapter 5; Zou & Donner 2008 (Stat. Med. 27:1693) for MOVER.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_judge.estimates import LEVEL, clopper_pearson_ends, jeffreys_ends, wilson_ends
from rag_judge.records import Estimate, NoEstimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[Any]

DRAWS = 20_000
TAILS = (0.5 - LEVEL / 2, 0.5 + LEVEL / 2)
LARGEST_DIRECT_CONVOLUTION = 4_000_000
ROUNDING = 1e-12
Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Stratum:
    """The cases with one verdict and one sampling probability, and what people said of the reviewed ones.

    Raises ValueError unless 0 <= n_human_pass <= n_reviewed <= n_cases.
    """

    judged: bool | None  # None: undecided or unscored
    n_cases: int
    n_reviewed: int
    n_human_pass: int
    probability: float | None  # with which each case entered the review; None or 0: unknown, picked by hand
    part: str = ""  # a further division, such as the type

    def __post_init__(self) -> None:
        """Refuse counts that cannot be."""
        if not 0 <= self.n_human_pass <= self.n_reviewed <= self.n_cases:
            found = f"{self.n_human_pass} human passes among {self.n_reviewed} reviewed of {self.n_cases} cases"
            raise ValueError(f"a stratum cannot have {found}")

    @property
    def p(self) -> float:
        """The share that people pass among the reviewed; one half where nothing is reviewed."""
        return self.n_human_pass / self.n_reviewed if self.n_reviewed else 0.5


# What is summed, by verdict: `(a, b)` for a + b * p. A verdict that is left out has no part in the quantity.
Quantity = Mapping[bool | None, tuple[int, int]]
HUMAN_PASS: Quantity = {True: (0, 1), False: (0, 1), None: (0, 1)}
JUDGE_MINUS_HUMAN: Quantity = {True: (1, -1), False: (0, -1)}
FALSE_PASS: Quantity = {True: (1, -1), False: (0, 0)}
FALSE_FAIL: Quantity = {True: (0, 0), False: (0, 1)}
AGREEMENT: Quantity = {True: (0, 1), False: (1, -1)}


def strata_of(
    judge: Sequence[bool | None],
    human: Sequence[bool | None],
    probabilities: Sequence[float | None],
    parts: Sequence[str] | None = None,
) -> tuple[Stratum, ...]:
    """The strata of a run, from one entry per case: verdict, label (None: not reviewed), sampling probability.

    Cases with the same verdict, probability and, where given, part share a stratum; the order of cases does not
    matter. Raises ValueError where the lengths differ.
    """
    n: Counter[tuple[bool | None, str, float | None]] = Counter()
    reviewed, passed = n.copy(), n.copy()
    for verdict, label, probability, part in zip(judge, human, probabilities, parts or [""] * len(judge), strict=True):
        # A probability is a quotient of counts; what rounding makes of it must not open a stratum of its own.
        known = round(probability, 12) if probability is not None and probability > 0 else None
        key = (None if verdict is None else bool(verdict), part, known)
        n[key] += 1
        reviewed[key] += label is not None
        passed[key] += bool(label)
    order = sorted(n, key=lambda key: (key[0] is None, not key[0], key[1], -(key[2] or 0)))
    return tuple(Stratum(key[0], n[key], reviewed[key], passed[key], key[2], key[1]) for key in order)


def verdict_strata(
    n_pass: int, n_pass_reviewed: int, n_pass_human_pass: int, n_fail: int, n_fail_reviewed: int, n_fail_human_pass: int
) -> tuple[Stratum, ...]:
    """The two strata of a review drawn at random, within each verdict or over both; an empty one is left out.

    From counts alone it cannot be told which: the probability is the share reviewed of each verdict, and where none of
    one was, that of both together.
    """
    overall = (n_pass_reviewed + n_fail_reviewed) / (n_pass + n_fail) if n_pass + n_fail else None
    counts = (
        (True, n_pass, n_pass_reviewed, n_pass_human_pass),
        (False, n_fail, n_fail_reviewed, n_fail_human_pass),
    )
    return tuple(Stratum(judged, n, m, x, m / n if m else overall) for judged, n, m, x in counts if n)


def share_value(strata: Sequence[Stratum], quantity: Quantity = HUMAN_PASS) -> float:
    """The quantity's share of the cases whose verdict has a part in it; there must be one."""
    kept = _kept(strata, quantity)
    return math.fsum(s.n_cases * _value(s, quantity) for s in kept) / sum(s.n_cases for s in kept)


def share_of_questions_like_these(
    strata: Sequence[Stratum], quantity: Quantity = HUMAN_PASS, *, is_cautious: bool = False
) -> Estimate | NoEstimate:
    """The quantity for questions like these, by MOVER: Jeffreys ends per stratum, Wilson's for the verdict shares.

    Cautious: Clopper-Pearson ends in place of Jeffreys', for a claim that needs at least 95 %. A stratum without a
    label counts one half, from 0 to 1: whether such a value may be shown is the caller's to decide.
    """
    kept = _kept(strata, quantity)
    if not kept:
        return NoEstimate("no case with a verdict")
    n_cases = sum(s.n_cases for s in kept)
    below, above = _verdict_share_terms(kept, quantity)
    ends_of = clopper_pearson_ends if is_cautious else jeffreys_ends
    for stratum in kept:
        down, up = _within_terms(stratum, quantity, ends_of)
        below, above = below + (stratum.n_cases / n_cases * down) ** 2, above + (stratum.n_cases / n_cases * up) ** 2
    value = share_value(kept, quantity)
    least, most = _bounds(quantity)
    low, high = max(least, value - math.sqrt(below)), min(most, value + math.sqrt(above))
    method = f"post-stratified, mover, {'clopper-pearson' if is_cautious else 'jeffreys'}"
    return Estimate(value, low, high, LEVEL, _n_labels(kept), method)


def share_of_this_set(strata: Sequence[Stratum], quantity: Quantity = HUMAN_PASS) -> Estimate | NoEstimate:
    """The quantity over exactly these cases: what the labels say and, of the other cases, its beta-binomial
    prediction, exact and without a seed. A census has no width: then nothing is left to predict.
    """
    import numpy as np

    kept = _kept(strata, quantity)
    if not kept:
        return NoEstimate("no case with a verdict")
    n_known, chances = 0, np.ones(1)
    for stratum in kept:
        base, sign = quantity[stratum.judged]
        n_open = stratum.n_cases - stratum.n_reviewed
        n_known += base * stratum.n_cases + sign * stratum.n_human_pass
        if n_open and sign:
            passes = _beta_binomial(n_open, stratum.n_human_pass + 0.5, stratum.n_reviewed - stratum.n_human_pass + 0.5)
            # k passes count -k where the sign is negative: the same as n_open - k, less n_open.
            chances = _convolved(chances, passes if sign > 0 else passes[::-1])
            n_known -= n_open if sign < 0 else 0
    below = np.cumsum(chances)
    # A tail of just 2.5 % (2 of 6 cases open, 4 of 4 passed) belongs to the interval at either end, however it rounds.
    tails = (TAILS[0] - ROUNDING, TAILS[1] + ROUNDING)
    low, high = (n_known + int(np.searchsorted(below, tail)) for tail in tails)
    n_cases = sum(s.n_cases for s in kept)
    value = share_value(kept, quantity)
    method = "post-stratified, beta-binomial prediction"
    return Estimate(value, low / n_cases, high / n_cases, LEVEL, _n_labels(kept), method, "this_set")


def human_share(strata: Sequence[Stratum]) -> Estimate | NoEstimate:
    """The human pass rate without any use of verdicts: labels weighing 1/probability, Wilson at Kish's effective n.

    With equal probabilities this is Wilson's interval of the plain share. NoEstimate where no case is labelled or a
    probability is unknown.
    """
    labelled = [s for s in strata if s.n_reviewed]
    if not labelled:
        return NoEstimate("no case is labelled")
    weights = [1 / s.probability if s.probability else 0.0 for s in labelled]
    if 0.0 in weights:
        return NoEstimate("some labelled cases entered the review with unknown probability")
    n = _n_labels(labelled)
    if len(set(weights)) == 1:
        weights = [1.0] * len(labelled)
    total = math.fsum(w * s.n_reviewed for w, s in zip(weights, labelled, strict=True))
    share = math.fsum(w * s.n_human_pass for w, s in zip(weights, labelled, strict=True)) / total
    effective = total**2 / math.fsum(w * w * s.n_reviewed for w, s in zip(weights, labelled, strict=True))
    low, high = wilson_ends(min(1.0, share), effective)
    method = "wilson" if len(set(weights)) == 1 else "weighted, wilson at the effective n"
    return Estimate(min(1.0, share), low, high, LEVEL, n, method)


def weighted_sensitivity(strata: Sequence[Stratum], seed: int) -> Estimate | NoEstimate:
    """Of the cases that people would pass, the share that the judge passes, for reviews drawn by verdict.

    The interval pushes 20,000 seeded draws from each stratum's Jeffreys posterior through. NoEstimate where no label
    passes, or a verdict has cases and no label. Source: Begg & Greenes 1983 (Biometrics 39:207).
    """
    return _weighted_rate(strata, seed, judged=True)


def weighted_specificity(strata: Sequence[Stratum], seed: int) -> Estimate | NoEstimate:
    """Of the cases that people would fail, the share that the judge fails; as `weighted_sensitivity`."""
    return _weighted_rate(strata, seed, judged=False)


def _weighted_rate(strata: Sequence[Stratum], seed: int, *, judged: bool) -> Estimate | NoEstimate:
    """Of the cases that people would judge so, the share that the judge judges so."""
    import numpy as np

    kept = [s for s in strata if s.judged is not None and s.n_cases]
    if any(s.n_reviewed == 0 for s in kept):
        return NoEstimate("a part of the judged cases has no label")
    counts = [s.n_cases * (s.p if judged else 1 - s.p) for s in kept]
    if math.fsum(counts) == 0:
        return NoEstimate(f"no labelled case {'passes' if judged else 'fails'} by human judgement")
    value = math.fsum(n for s, n in zip(kept, counts, strict=True) if s.judged is judged) / math.fsum(counts)
    rng = np.random.default_rng(seed)
    same: Floats = np.zeros(DRAWS)
    total = same.copy()
    for s in kept:
        passes = rng.beta(s.n_human_pass + 0.5, s.n_reviewed - s.n_human_pass + 0.5, DRAWS)
        drawn = s.n_cases * (passes if judged else 1 - passes)
        total += drawn
        same += drawn if s.judged is judged else 0
    low, high = np.quantile(same / total, TAILS)
    method = "weighted, jeffreys posteriors, seeded"
    return Estimate(value, min(float(low), value), max(float(high), value), LEVEL, _n_labels(kept), method)


def _kept(strata: Sequence[Stratum], quantity: Quantity) -> list[Stratum]:
    return [s for s in strata if s.judged in quantity and s.n_cases]


def _n_labels(strata: Sequence[Stratum]) -> int:
    return sum(s.n_reviewed for s in strata)


def _value(stratum: Stratum, quantity: Quantity) -> float:
    base, sign = quantity[stratum.judged]
    return base + sign * stratum.p


def _bounds(quantity: Quantity) -> Ends:
    """The least and the most that the quantity can be."""
    ends = [end for base, sign in quantity.values() for end in (base, base + sign)]
    return float(min(ends)), float(max(ends))


def _within_terms(stratum: Stratum, quantity: Quantity, ends_of: Callable[[int, int], Ends]) -> Ends:
    """How far the stratum's own share may lie below and above its value."""
    _, sign = quantity[stratum.judged]
    low, high = ends_of(stratum.n_human_pass, stratum.n_reviewed)
    down, up = stratum.p - low, high - stratum.p
    return (down * abs(sign), up * abs(sign)) if sign >= 0 else (up, down)


def _verdict_share_terms(strata: Sequence[Stratum], quantity: Quantity) -> Ends:
    """The squared terms for the strata's shares of the cases, below and above.

    The strata are split in two, and the halves again; shares of successive splits are uncorrelated, so that the
    squares add up to the variance of all shares together. Undecided cases first, then passes from fails, then parts.
    """
    undecided = [s for s in strata if s.judged is None]
    passes, fails = ([s for s in strata if s.judged is judged] for judged in (True, False))
    splits = [([s], undecided[i + 1 :] + passes + fails) for i, s in enumerate(undecided)]
    splits += [([s], group[i + 1 :]) for group in (passes, fails) for i, s in enumerate(group)]
    splits = [split for split in splits if split[1]]
    if passes or fails:
        splits.append((passes, fails))  # of an absent verdict the value is 0 here
    n_cases = sum(s.n_cases for s in strata)
    below = above = 0.0
    for one, other in splits:
        n_one, n_both = sum(s.n_cases for s in one), sum(s.n_cases for s in [*one, *other])
        slope = (_mean(one, quantity) - _mean(other, quantity)) * n_both / n_cases
        low, high = wilson_ends(n_one / n_both, n_both)
        down, up = n_one / n_both - low, high - n_one / n_both
        if slope < 0:
            down, up = up, down
        below, above = below + (slope * down) ** 2, above + (slope * up) ** 2
    return below, above


def _mean(strata: Sequence[Stratum], quantity: Quantity) -> float:
    n_cases = sum(s.n_cases for s in strata)
    return math.fsum(s.n_cases * _value(s, quantity) for s in strata) / n_cases if n_cases else 0.0


def _beta_binomial(n: int, a: float, b: float) -> Floats:
    """The chances of 0 ... n successes under a beta-binomial law."""
    import numpy as np
    from scipy.special import betaln, gammaln

    k = np.arange(n + 1)
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    chances: Floats = np.exp(ways + betaln(k + a, n - k + b) - betaln(a, b))
    return chances


def _convolved(one: Floats, other: Floats) -> Floats:
    """The chances of sums. By Fourier transform where the direct way would take seconds: exact to about 1e-15."""
    import numpy as np

    size = len(one) + len(other) - 1
    if len(one) * len(other) <= LARGEST_DIRECT_CONVOLUTION:
        return np.convolve(one, other)
    length = 1 << (size - 1).bit_length()  # of a prime length a transform is many times slower
    summed: Floats = np.fft.irfft(np.fft.rfft(one, length) * np.fft.rfft(other, length), length)[:size]
    return summed
