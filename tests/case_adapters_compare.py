"""What the kind `compare` checks: two runs' grades on the questions that both were asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag_judge.cases import question_hash
from rag_judge.comparison import Side, compare_runs
from rag_judge.errors import InputError
from rag_judge.records import Case as EvalCase
from rag_judge.records import CaseRow, OutcomeName
from tests.case_adapters import Case, differs, first_difference

NO_JUDGE: Mapping[str, Any] = {"judge": {"mode": "none"}}


def check_compare(case: Case, folder: Path) -> str | None:
    """What both runs were asked: how many, the difference in pass, and which cases moved or have no grade."""
    a, b = (_side(name, case[name]) for name in ("a", "b"))
    expected = case["expect"]
    try:
        tree = compare_runs(a, b, common=True, declared=(), seed=0)
    except InputError as error:
        return differs(str(error), expected, 0)
    passes = tree["metrics"]["pass"]
    moved = {row["id"]: (row["outcome_a"], row["outcome_b"]) for row in tree["changed_cases"]}
    ungraded = {side: [row.id for row in one.rows if row.judge_pass is None] for side, one in (("a", a), ("b", b))}
    found = {
        "common": passes["n"],  # asked of both, with a grade in both
        "delta": None if passes["difference"] is None else passes["difference"]["value"],
        "improved": [i for i, ends in moved.items() if ends == ("fail", "pass")],
        "worse": [i for i, ends in moved.items() if ends == ("pass", "fail")],
        "ungraded_a": ungraded["a"],
        "ungraded_b": ungraded["b"],
        **{name: tree["dropped"].get(name, []) for name in ("only_a", "only_b", "changed_question")},
    }
    if unknown := sorted(expected.keys() - found.keys()):
        return f"expectations that are not known: {unknown}"
    return first_difference(
        *(f"{name}: {wrong}" for name, want in expected.items() if (wrong := differs(found[name], want, 1e-6)))
    )


def _side(name: str, given: Mapping[str, Any]) -> Side:
    rows = []
    for asked in given["snapshot"]:
        grade = given["grades"].get(asked["id"])
        passed = bool(grade) if grade in (0, 1) else None
        outcome: OutcomeName = "unscored" if passed is None else "pass" if passed else "fail"
        digest = question_hash(EvalCase(asked["id"], asked["question"]))
        rows.append(CaseRow(asked["id"], None, outcome, judge_pass=passed, question_sha256=digest))
    return Side(name, rows, {"system": {}}, NO_JUDGE)
