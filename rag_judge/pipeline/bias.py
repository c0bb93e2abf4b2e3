"""What the labels of a run say of its judge: `bias.json`, two judges on the same answers, and labels of another run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from rag_judge.agreement import confusion, weighted_confusion
from rag_judge.answers import AnswerSet
from rag_judge.archive import case_rows_of, pair_rows_of
from rag_judge.bias import Reviewed, bias_tree, probabilities_of
from rag_judge.calibration import rogan_gladen
from rag_judge.cases import CaseSet
from rag_judge.errors import InputError
from rag_judge.gold import by_case
from rag_judge.judge_comparison import JudgedCase, beside, compare_judges
from rag_judge.pair_bias import pair_bias_tree
from rag_judge.pipeline.review import ReviewedRun, said_pass
from rag_judge.pipeline.steps import Graded, score_range, write_report
from rag_judge.records import CaseRow, NoEstimate
from rag_judge.summary import put


def judge_bias(run: ReviewedRun) -> dict[str, Any]:
    """The judge against the labels, written to `bias.json`. Raises InputError for a run without a judge."""
    if run.run.manifest.get("judge") is None:
        raise InputError(f"{run.folder.path}: no judge was asked of this run, so there is none to hold against people")
    labels, design = run.labels(), run.design()
    if run.is_pair:
        tree = pair_bias_tree(pair_rows_of(run.run), labels, design, run.run.summary["pairwise"], run.seed)
    else:
        rows = case_rows_of(run.run)
        lengths = _lengths(run, [row.id for row in rows if row.drawn])
        reviewed = Reviewed(rows, labels, design, run.mode, run.seed, run.derived, lengths, score_range(run.prompts))
        tree = bias_tree(reviewed)
        _show(run, rows, tree)
    run.folder.write_json("bias.json", tree)
    return tree


def _show(run: ReviewedRun, rows: Sequence[CaseRow], tree: Mapping[str, Any]) -> None:
    """Write the run's report again, with what people say."""
    lang = run.folder.read_json("request.json")["settings"]["run"].get("lang", "en")
    graded = Graded(rows, run.run.summary, run.folder.lines())
    with (
        closing(CaseSet(run.folder.snapshot)) as cases,
        closing(AnswerSet(run.folder.answers, cases.offsets)) as answers,
    ):
        write_report(run.folder, run.run.manifest, graded, cases, answers, lang, tree)


def _lengths(run: ReviewedRun, ids: Sequence[str]) -> dict[str, int]:
    with (
        closing(CaseSet(run.folder.snapshot)) as cases,
        closing(AnswerSet(run.folder.answers, cases.offsets)) as answers,
    ):
        return {case_id: len(answers.get(case_id).answer or "") for case_id in ids}


# --- two judges ------------------------------------------------------------------------------------------------------


def judges_compared(a: ReviewedRun, b: ReviewedRun) -> dict[str, Any]:
    """Two runs' judges against the labels of either, on the same answers.

    Raises InputError where the answers or the questions are not the same, or where nothing is labelled.
    """
    for run in (a, b):
        if run.is_pair or run.run.manifest.get("judge") is None:
            raise InputError(
                f"{run.folder.path}: not a run that a judge graded; name two such runs of the same answers"
            )
    for what, key in (("answers", "sha256"), ("eval_set", "snapshot_sha256")):
        if a.run.manifest[what][key] != b.run.manifest[what][key]:
            raise InputError(
                f"{a.folder.path} and {b.folder.path} differ in their {what.replace('_', ' ')}: judges are compared on "
                "the same answers to the same questions; run the second judge with --answers of the first run"
            )
    labels = by_case([*a.labels(), *b.labels()])
    if not labels:
        raise InputError(f"neither run has labels: rag-judge review export {a.folder.path}")
    rows_a, rows_b = case_rows_of(a.run), {row.id: row for row in case_rows_of(b.run)}
    designs = [design for design in (a.design(), b.design()) if design is not None]
    cases = [
        JudgedCase(
            row.id,
            row.judge_pass,
            rows_b[row.id].judge_pass,
            said_pass(a, row, labels.get(row.id, ())),
            next((d.probabilities[row.id] for d in designs if row.id in d.drawn), None),
        )
        for row in rows_a
    ]
    tree = compare_judges(cases, a.seed)
    tree["a"] |= beside(a.run.summary, a.run.manifest)
    tree["b"] |= beside(b.run.summary, b.run.manifest)
    return tree


def external_calibration(run: ReviewedRun, other: ReviewedRun) -> dict[str, Any]:
    """The pass rate of a run without labels of its own, by the judge's errors on another run's labelled cases.

    Lee et al.'s interval. It assumes that the judge errs on these cases as it did on those, which nothing here checks.
    """
    same = [
        (run.run.manifest.get("judge") or {}).get("model") == (other.run.manifest.get("judge") or {}).get("model"),
        run.run.manifest.get("prompts") == other.run.manifest.get("prompts"),
    ]
    labels, design = by_case(other.labels()), other.design()
    rows = [row for row in case_rows_of(other.run) if row.drawn]
    human = [said_pass(other, row, labels.get(row.id, ())) for row in rows]
    judge = [row.judge_pass for row in rows]
    known = probabilities_of([row.id for row in rows], labels, design)
    used = {p for p, h, j in zip(known, human, judge, strict=True) if h is not None and j is not None}
    tree: dict[str, Any] = {
        "run": other.folder.run_id,
        "method": "Rogan-Gladen with the interval of Lee et al.",
        "assumption": "the judge errs on these cases as it did on those that were labelled",
        "same_model": same[0],
        "same_prompt": same[1],
    }
    if None in used or 0 in used:
        put(tree, "corrected", NoEstimate("some of the other run's labels are of cases picked by hand"))
        return tree
    plain = confusion(judge, human)
    cells = plain if len(used) <= 1 else weighted_confusion(judge, human, known)
    tree["confusion"] = {name: int(getattr(plain, name)) for name in ("tp", "fn", "fp", "tn")}
    decided = [row.judge_pass for row in case_rows_of(run.run) if row.judge_pass is not None]
    found = rogan_gladen(sum(decided), len(decided), cells)
    put(tree, "corrected", found if isinstance(found, NoEstimate) else found.estimate)
    if not isinstance(found, NoEstimate):
        tree |= {"raw": found.raw, "truncated": found.truncated}
    return tree
