"""Two finished runs held against each other on the same questions; written to `comparison.json` of the second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from statistics import median
from typing import Any

from rag_judge.answers import AnswerSet
from rag_judge.archive import case_rows_of
from rag_judge.bias import probabilities_of
from rag_judge.calibration import corrected_pass_rate
from rag_judge.cases import CaseSet
from rag_judge.comparison import Side, compare_runs
from rag_judge.errors import InputError
from rag_judge.gold import Label, by_case
from rag_judge.paired import independent_difference
from rag_judge.pipeline.review import ReviewedRun, said_pass
from rag_judge.poststratification import strata_of
from rag_judge.prediction_powered import corrected_difference
from rag_judge.records import CaseRow, Estimate, NoEstimate
from rag_judge.summary import put

BOTH_LABELLED_FIRST = 30  # pairs reviewed in both runs, from which the corrected difference leads


def compare(a: ReviewedRun, b: ReviewedRun, *, common: bool, declared: Sequence[str] = ()) -> dict[str, Any]:
    """The comparison of two runs, B against A. Raises InputError for runs that cannot be compared."""
    for run in (a, b):
        if run.is_pair:
            raise InputError(f"{run.folder.path}: a pairwise comparison, not a run; name two runs")
    if a.folder.path.resolve() == b.folder.path.resolve():
        raise InputError(f"{a.folder.path}: the same run twice; name two runs")
    rows = [case_rows_of(run.run, every_answer=True) for run in (a, b)]
    sides = [
        Side(run.folder.run_id, of_run, run.run.manifest, run.run.summary)
        for run, of_run in zip((a, b), rows, strict=True)
    ]
    tree = compare_runs(sides[0], sides[1], common=common, declared=declared, seed=a.seed)
    tree["corrected"] = _corrected(a, b, case_rows_of(a.run), case_rows_of(b.run))
    tree["cost"] = {name: (run.run.manifest.get("cost") or {}).get("usd") for name, run in (("a", a), ("b", b))}
    tree["latency_s"] = {name: _latency(run) for name, run in (("a", a), ("b", b))}
    b.folder.write_json("comparison.json", tree)
    return tree


def _corrected(
    a: ReviewedRun, b: ReviewedRun, rows_a: Sequence[CaseRow], rows_b: Sequence[CaseRow]
) -> dict[str, Any] | None:
    """The difference of the pass rates that people would give; None where a run has no labels.

    On questions that are labelled in both runs by their difference; else each rate is corrected for itself.
    """
    labels = [by_case(run.labels()) for run in (a, b)]
    if not all(labels):
        return None
    of_b = {row.id: row for row in rows_b if row.drawn}
    common = [(row, of_b[row.id]) for row in rows_a if row.drawn and row.id in of_b]
    human = [
        (said_pass(a, one, labels[0].get(one.id, ())), said_pass(b, other, labels[1].get(other.id, ())))
        for one, other in common
    ]
    n_both = sum(x is not None and y is not None for x, y in human)
    tree: dict[str, Any] = {"n_labelled_in_both": n_both}
    ids = [one.id for one, _ in common]
    drawn = {
        p for p, (x, y) in zip(probabilities_of(ids, labels[0], a.design()), human, strict=True) if None not in (x, y)
    }
    if n_both >= BOTH_LABELLED_FIRST and len(drawn) == 1 and None not in drawn:
        found = corrected_difference(
            [_number(one.judge_pass) for one, _ in common],
            [_number(other.judge_pass) for _, other in common],
            [_number(x) for x, _ in human],
            [_number(y) for _, y in human],
        )
        put(tree, "difference", found if isinstance(found, NoEstimate) else found.estimate)
        return tree
    rates = [_corrected_rate(run, rows, of) for run, rows, of in ((a, rows_a, labels[0]), (b, rows_b, labels[1]))]
    for name, found_rate in zip(("a", "b"), rates, strict=True):
        put(tree, name, found_rate)
    refused = next((one for one in rates if isinstance(one, NoEstimate)), None)
    known = [one for one in rates if isinstance(one, Estimate)]
    put(tree, "difference", refused if refused is not None else independent_difference(known[0], known[1]))
    return tree


def _corrected_rate(
    run: ReviewedRun, rows: Sequence[CaseRow], labels: Mapping[str, Sequence[Label]]
) -> Estimate | NoEstimate:
    drawn = [row for row in rows if row.drawn]
    human = [said_pass(run, row, labels.get(row.id, ())) for row in drawn]
    known = probabilities_of([row.id for row in drawn], labels, run.design())
    return corrected_pass_rate(strata_of([row.judge_pass for row in drawn], human, known)).corrected


def _number(value: bool | None) -> float | None:
    return None if value is None else float(value)


def _latency(run: ReviewedRun) -> dict[str, Any] | None:
    """The median of the answers' own latency, and over how many; None where none says."""
    with (
        closing(CaseSet(run.folder.snapshot)) as cases,
        closing(AnswerSet(run.folder.answers, cases.offsets)) as answers,
    ):
        given = (answer for case_id in cases.offsets for answer in answers.of_case(case_id))
        known = [answer.latency_s for answer in given if answer.latency_s is not None]
    return {"median": median(known), "n": len(known)} if known else None
