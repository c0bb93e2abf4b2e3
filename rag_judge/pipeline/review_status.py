"""How far the human review of a run is, and what comes next: pilot, criteria, more labels, upkeep."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rag_judge.annotators import is_word_of_third
from rag_judge.gold import ADJUDICATOR, by_case, is_disputed
from rag_judge.pipeline.review import ReviewedRun, disputed_cases

PILOT, MANY = 20, 50


def review_status(run: ReviewedRun) -> dict[str, Any]:
    """The stage that the review is in, the next step, and the counts behind them.

    Of a run with fewer cases than a stage asks for, all of them are enough.
    """
    design, labels = run.design(), run.labels()
    found = by_case(labels)
    both = sum(len({one.annotator for one in of_case} - {ADJUDICATOR}) > 1 for of_case in found.values())
    given = Counter[str]()
    for sheet in () if design is None else design.sheets.values():
        given[sheet.annotator] += len(sheet.items)
    by_name = Counter(label.annotator for label in labels)
    names = [f.name for f in run.fields if f.name != "cause"]
    disputed = disputed_cases(run)
    settled = sum(
        all(any(is_word_of_third(one, n) for one in found[c]) for n in names if is_disputed(found[c], n))
        for c in disputed
    )
    n_cases = None if design is None else len(design.strata)
    stage, then = _stage(len(found), both, len(disputed) - settled, n_cases)
    return {
        "stage": stage,
        "next": then,
        "n_drawn": None if design is None else len(design.drawn),
        "n_cases": n_cases,
        "n_labelled": len(found),
        "n_labelled_twice": both,
        "annotators": {
            name: {"labels": by_name[name], "given": given.get(name)} for name in sorted({*by_name, *given})
        },
        "disputed": len(disputed),
        "settled": settled,
        "instructions_versions": sorted({one.instructions_version for one in labels if one.instructions_version}),
    }


def _stage(n_labelled: int, n_twice: int, n_open: int, n_cases: int | None) -> tuple[str, str]:
    """The stage, and what comes next."""
    pilot, many = (least if n_cases is None else min(least, n_cases) for least in (PILOT, MANY))
    if not n_labelled:
        return "none", "pilot"
    if n_twice < pilot:
        return "pilot", "second"
    if n_open:
        return "criteria", "settle"
    return ("labelling", "more") if n_labelled < many else ("upkeep", "upkeep")
