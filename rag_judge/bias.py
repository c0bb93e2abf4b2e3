"""The judge held against people: rows and labels of one run → what `bias.json` holds. Pure; nothing is drawn or graded.

Every number comes from `calibration`, `agreement` and `judge_effects`; here is decided which cases and labels go into
which. A number that the labels cannot carry is null beside its reason.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_judge.agreement import Confusion, Weights, krippendorff_alpha, raw_agreement, weighted_kappa
from rag_judge.annotators import annotator_agreement, annotator_names, disagreements
from rag_judge.calibration import (
    NOT_REPRESENTATIVE,
    JudgeAgainstPeople,
    corrected_pass_rate,
    judge_against_people,
)
from rag_judge.estimates import rate
from rag_judge.gold import ADJUDICATOR, Label, by_case, gold, is_disputed
from rag_judge.judge_effects import length_effect
from rag_judge.poststratification import strata_of
from rag_judge.prediction_powered import score_bias, weighted_bias
from rag_judge.records import CaseRow, Estimate, NoEstimate, Value
from rag_judge.review.design import Design
from rag_judge.summary import put

Tree = dict[str, Any]
DerivedPass = Callable[[CaseRow, Mapping[str, Value | None]], bool | None]  # of a label's fields
_Answer = Callable[[CaseRow], bool | None]
HIGH_NON_RESPONSE = 0.10


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A run with its labels: the cases that its rates are of, and what people said."""

    rows: Sequence[CaseRow]
    labels: Sequence[Label]
    design: Design | None
    mode: str
    seed: int
    derived_pass: DerivedPass
    lengths: Mapping[str, int]  # characters of each answer
    level_range: tuple[int, int] = (1, 5)

    def population(self) -> list[CaseRow]:
        """The cases that the judge's rates are of: those it saw."""
        return [row for row in self.rows if row.drawn]


def bias_tree(run: Reviewed) -> Tree:
    """All that the labels say of the judge of a run that graded one answer at a time."""
    rows, labels = run.population(), by_case(run.labels)
    probabilities = probabilities_of([row.id for row in rows], labels, run.design)
    whole = _with_passes(run)
    types = {row.id: row.type or "untyped" for row in run.rows}
    is_scale = any(row.score is not None for row in rows)
    levels = range(run.level_range[0], run.level_range[1] + 1)
    has_pass = not is_scale or any(row.judge_pass is not None for row in rows)
    field = "passed" if has_pass else "score"
    people = annotator_agreement(whole, field, run.seed, None if has_pass else levels)
    tree = about_labels(whole, [row.id for row in rows], run.design, types, field, people) | {"fields": {}}
    answers = {name: (_judge_field(name), _human_field(name, labels)) for name in _boolean_fields(rows)}
    if has_pass:
        human = _human_pass(run, labels)
        answers = {"pass": (lambda row: row.judge_pass, human), **answers}
    for name, (judge, said) in answers.items():
        found = _judged_field([judge(row) for row in rows], [said(row) for row in rows], probabilities, run.seed)
        found["n_open"] = sum(row.id in labels and said(row) is None for row in rows)
        found["people"] = annotator_agreement(whole, "passed" if name == "pass" else name, run.seed)
        tree["fields"][name] = found
    if is_scale:
        tree["fields"]["score"] = _score_tree(run, rows, labels, probabilities)
        tree["fields"]["score"]["people"] = annotator_agreement(whole, "score", run.seed, levels)
    if has_pass:
        tree |= {name: tree["fields"]["pass"][name] for name in ("rule", "rule_reason")}
        tree["by_type"] = _by_type(run, rows, human, probabilities)
        tree["verbosity"] = _verbosity(run, rows, human)
    return tree | {
        "expectation": _expectation(run.rows),
        "rules": _rules(run.rows),
        "causes": _causes(run.rows, labels),
    }


def _with_passes(run: Reviewed) -> list[Label]:
    """The labels, each with its pass where it states or implies one."""
    rows = {row.id: row for row in run.rows}
    return [
        label if label.case_id not in rows else with_pass(label, rows[label.case_id], run.derived_pass)
        for label in run.labels
    ]


def put_agreement(
    tree: Tree,
    both: Sequence[tuple[Hashable, Hashable, float | None]],
    levels: Sequence[Hashable],
    seed: int,
    weights: Weights,
) -> None:
    """Set agreement and kappa of judge and people over cases that weigh 1/probability; null where one is unknown."""
    if any(not probability for _, _, probability in both):
        for name in ("agreement", "kappa"):
            put(tree, name, NoEstimate(NOT_REPRESENTATIVE))
        return
    # Kish's effective number of cases; with equal probabilities their number.
    total, squares = sum(1 / (p or 1) for _, _, p in both), sum(1 / (p or 1) ** 2 for _, _, p in both)
    scale = total / squares if both and len({p for _, _, p in both}) > 1 else None
    counts: dict[tuple[Hashable, Hashable], float] = defaultdict(float)
    for judge, human, p in both:
        counts[judge, human] += scale / (p or 1) if scale is not None else 1
    same = sum(n for (judge, human), n in counts.items() if judge == human)
    put(tree, "agreement", raw_agreement(Confusion(same, 0, sum(counts.values()) - same, 0, len(both))))
    put(tree, "kappa", weighted_kappa([[counts[a, b] for b in levels] for a in levels], seed, weights))


# --- what stands above the fields ------------------------------------------------------------------------------------


def about_labels(
    labels: Sequence[Label],
    population: Sequence[str],
    design: Design | None,
    types: Mapping[str, str],
    field: str,
    people: Tree,
) -> Tree:
    """What stands above the fields: how many are labelled, by whom, by which design, and how far people agree."""
    known, found = set(population), by_case(labels)
    drawn = set(design.drawn) if design is not None else set()
    missing = sorted(case_id for case_id in drawn if case_id not in found)
    is_high = len(missing) > HIGH_NON_RESPONSE * len(drawn)
    names = annotator_names(labels)
    return {
        "n_labelled": sum(case_id in known for case_id in found),
        "n_labels_of_other_cases": sum(case_id not in known for case_id in found),
        "n_drawn": len(drawn) if design is not None else None,
        "non_response": {"n": len(missing), "of": len(drawn), "is_high": is_high, "ids": missing[:50]}
        if drawn
        else None,
        "design": None if design is None else _design(design),
        "annotators": {"n": len(names), "names": names, "field": field, **people},
        "disagreements": disagreements(labels, types),
        "instructions_versions": sorted({label.instructions_version for label in labels if label.instructions_version}),
    }


def _design(design: Design) -> Tree:
    strata = [
        {"stratum": s.stratum, "N": s.n_cases, "n": s.n_drawn, "probability": s.probability} for s in design.table
    ]
    return {"N": len(design.strata), "seed": design.seed, "judge_share": design.judge_share, "strata": strata}


# --- what the judge said, and people ---------------------------------------------------------------------------------


def probabilities_of(
    population: Sequence[str], labels: Mapping[str, Sequence[Label]], design: Design | None
) -> list[float | None]:
    """With which probability each case entered the review; None for one that was labelled without being drawn."""
    if population and all(case_id in labels for case_id in population):
        return [1.0] * len(population)  # every case is labelled: whoever drew them, they stand for all
    if design is None:
        return [None] * len(population)
    drawn = set(design.drawn)
    return [
        None if case_id in labels and case_id not in drawn else design.probabilities.get(case_id)
        for case_id in population
    ]


def _boolean_fields(rows: Sequence[CaseRow]) -> list[str]:
    """The judge's yes/no fields: those with a column, and those of a prompt of one's own."""
    named = [
        name for name in ("grounded", "complete", "should_abstain") if any(getattr(r, name) is not None for r in rows)
    ]
    own = {name for row in rows for name, value in _own_fields(row).items() if isinstance(value, bool)}
    return named + sorted(own)


def _own_fields(row: CaseRow) -> dict[str, Any]:
    return json.loads(row.other_fields) if row.other_fields else {}


def _judge_field(name: str) -> Callable[[CaseRow], bool | None]:
    if name in ("grounded", "complete", "should_abstain"):
        return lambda row: getattr(row, name)
    return lambda row: _own_fields(row).get(name)


def _human_field(name: str, labels: Mapping[str, Sequence[Label]]) -> Callable[[CaseRow], bool | None]:
    def said(row: CaseRow) -> bool | None:
        value = gold(labels.get(row.id, ()), name)
        return value if isinstance(value, bool) else None

    return said


def _human_pass(run: Reviewed, labels: Mapping[str, Sequence[Label]]) -> _Answer:
    return lambda row: human_pass(row, labels.get(row.id, ()), run.derived_pass)


def human_pass(row: CaseRow, labels: Sequence[Label], derived: DerivedPass) -> bool | None:
    """Whether people pass a case: as all say or imply, or as the third reader does; None where open or unsure.

    Where the third reader settles single fields alone, and where no label implies a pass by itself, it is derived
    from what the fields are by all labels together.
    """
    said = [with_pass(label, row, derived) for label in labels]
    passed = gold(said, "passed")
    third = [label for label in said if label.annotator == ADJUDICATOR]
    is_told = any("passed" in label.values for label in third or said)
    if passed is None and not is_told and not is_disputed(labels, "passed"):
        names = {name for label in labels for name in label.values} - {"passed"}
        passed = derived(row, {name: gold(labels, name) for name in names})
    return passed if isinstance(passed, bool) else None


def with_pass(label: Label, row: CaseRow, derived: DerivedPass) -> Label:
    """The label with its pass, derived from its fields where it does not state one."""
    if "passed" in label.values:
        return label
    passed = derived(row, label.values)
    return label if passed is None else replace(label, values={**label.values, "passed": passed})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- trees -----------------------------------------------------------------------------------------------------------


def _judged_field(
    judge: Sequence[bool | None], human: Sequence[bool | None], probabilities: Sequence[float | None], seed: int
) -> Tree:
    tree = _field_tree(judge_against_people(judge, human, probabilities, seed))
    # For the claim that a system is bad: Clopper-Pearson ends, which err less to that side.
    cautious = corrected_pass_rate(strata_of(judge, human, probabilities), is_cautious=True).interval
    return tree | {"interval_cautious": None if cautious is None else list(cautious)}


def _field_tree(found: JudgeAgainstPeople) -> Tree:
    rates = found.rate
    tree: Tree = {"confusion": _cells(found.confusion), "rule": rates.rule, "rule_reason": rates.reason}
    named: Mapping[str, Estimate | NoEstimate] = {
        "judge_rate": rates.judge_rate,
        "human_rate": rates.human_rate,
        "corrected": rates.corrected,
        "corrected_this_set": rates.corrected_this_set,
        "bias": found.bias,
        "false_pass": found.false_pass,
        "false_fail": found.false_fail,
        "agreement": found.agreement,
        "kappa": found.kappa,
        "ac1": found.ac1,
        "sensitivity": found.sensitivity,
        "specificity": found.specificity,
    }
    for name, estimate in named.items():
        put(tree, name, estimate)
    tree["interval"] = list(rates.interval) if rates.interval is not None else None
    tree["interval_this_set"] = list(rates.interval_this_set) if rates.interval_this_set is not None else None
    tree["labels_needed"] = {half: needed.n for half, needed in rates.labels_needed.items()}
    tree["labels_more"] = {half: needed.more for half, needed in rates.labels_needed.items()}
    return tree


def _cells(cells: Confusion) -> Tree:
    return {"tp": int(cells.tp), "fn": int(cells.fn), "fp": int(cells.fp), "tn": int(cells.tn)}


def _score_tree(
    run: Reviewed, rows: Sequence[CaseRow], labels: Mapping[str, Sequence[Label]], probabilities: Sequence[float | None]
) -> Tree:
    both = [
        (row.score, float(str(said)), probability)
        for row, probability in zip(rows, probabilities, strict=True)
        if row.score is not None and _is_number(said := gold(labels.get(row.id, ()), "score"))
    ]
    judge, human = [j for j, _, _ in both], [h for _, h, _ in both]
    low, high = run.level_range
    # A median of repeats may fall between two levels, and one of two judges' medians between two of these.
    quarters = [level / 4 for level in range(4 * low, 4 * high + 1)]
    tree: Tree = {"n": len(both)}
    put_agreement(tree, both, quarters, run.seed, "quadratic")
    known = [p for _, _, p in both if p]
    if len(known) < len(both):
        put(tree, "bias", NoEstimate(NOT_REPRESENTATIVE))
    elif len(set(known)) <= 1:
        put(tree, "bias", score_bias(judge, human))
    else:
        weighted = weighted_bias(judge, human, known)
        put(tree, "bias", weighted if isinstance(weighted, NoEstimate) else weighted[0])
    put(tree, "alpha", krippendorff_alpha([judge, human], run.seed, "ordinal"))
    return tree


def _by_type(
    run: Reviewed,
    rows: Sequence[CaseRow],
    human: Callable[[CaseRow], bool | None],
    probabilities: Sequence[float | None],
) -> Tree:
    tree: Tree = {}
    for name in dict.fromkeys(row.type or "untyped" for row in rows):
        of_type = [(row, p) for row, p in zip(rows, probabilities, strict=True) if (row.type or "untyped") == name]
        judge, people = [r.judge_pass for r, _ in of_type], [human(r) for r, _ in of_type]
        found = judge_against_people(judge, people, [p for _, p in of_type], run.seed)
        entry: Tree = {"n": len(of_type), "n_labelled": sum(p is not None for p in people), "rule": found.rate.rule}
        entry["confusion"] = _cells(found.confusion)
        for key, estimate in (("agreement", found.agreement), ("corrected", found.rate.corrected)):
            put(entry, key, estimate)
        tree[name] = entry
    return tree


def _expectation(rows: Sequence[CaseRow]) -> Tree:
    """The judge's should_abstain against the eval set's expectation: needs no human."""
    known = [row for row in rows if row.should_abstain is not None and row.expect_refusal is not None]
    tree: Tree = {"n": len(known)}
    same = sum(row.should_abstain == row.expect_refusal for row in known)
    put(tree, "agreement", rate(same, len(known), nothing="no judged case states whether a refusal is expected"))
    return tree


def _rules(rows: Sequence[CaseRow]) -> Tree:
    """The judge's pass against the rules: needs no human either, and neither side is the truth."""
    known = [row for row in rows if row.judge_pass is not None and row.rule_correct is not None]
    tree: Tree = {"n": len(known)}
    same = sum(row.judge_pass == row.rule_correct for row in known)
    put(tree, "agreement", rate(same, len(known), nothing="no judged case states an expectation"))
    counts = Counter((row.rule_correct, row.judge_pass) for row in known)
    tree["judge_passes_what_rules_fail"] = counts[False, True]
    tree["judge_fails_what_rules_pass"] = counts[True, False]
    return tree


def _verbosity(run: Reviewed, rows: Sequence[CaseRow], human: Callable[[CaseRow], bool | None]) -> Tree:
    known = [row for row in rows if run.lengths.get(row.id)]
    found = length_effect(
        [row.judge_pass for row in known],
        [human(row) for row in known],
        [run.lengths[row.id] for row in known],
        run.seed,
    )
    if isinstance(found, NoEstimate):
        return {"p_value": None, "p_value_reason": found.reason}
    tree: Tree = {"n": found.n, "p_value": found.p_value, "statistic": found.statistic, "method": found.method}
    put(tree, "odds_ratio", found.odds_ratio)
    return tree


def _causes(rows: Iterable[CaseRow], labels: Mapping[str, Sequence[Label]]) -> Tree | None:
    """How often the cause that the program names is the one that people name; None where no label has one."""
    known = [
        (row.cause, str(said))
        for row in rows
        if row.cause is not None and (said := gold(labels.get(row.id, ()), "cause")) is not None
    ]
    if not known:
        return None
    tree: Tree = {"n": len(known)}
    put(tree, "accuracy", rate(sum(found == said for found, said in known), len(known)))
    wrong = Counter((said, found) for found, said in known if found != said)
    tree["taken_for"] = [{"labelled": said, "found": found, "n": n} for (said, found), n in sorted(wrong.items())]
    return tree
