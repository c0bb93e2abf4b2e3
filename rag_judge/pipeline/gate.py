"""The gate of one finished run: rules from the settings, decided on its rows, labels and baseline; files written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rag_judge.archive import case_rows_of
from rag_judge.comparison import METRICS
from rag_judge.errors import InputError
from rag_judge.gate import PLACES, Gated, GateRules, JudgeMoved, decide
from rag_judge.gate_output import job_summary, junit_xml, workflow_commands
from rag_judge.pipeline.bias import judge_bias
from rag_judge.pipeline.compare import compare
from rag_judge.pipeline.review import ReviewedRun
from rag_judge.settings import Settings


def rules_of(settings: Settings) -> GateRules:
    """The rules of the settings. Raises InputError for a metric that no gate knows, and a floor outside [0, 1]."""
    gate = settings.gate
    for place, given, known in (
        ("floors", gate.floors, PLACES),
        ("allowed_regression", gate.allowed_regression, METRICS),
    ):
        for name, value in given.items():
            if name not in known:
                raise InputError(f"gate.{place}: found {name!r}; there are: {', '.join(known)}")
            if not 0 <= value <= 1:
                raise InputError(f"gate.{place}.{name}: found {value}, expected a share from 0 to 1")
    return GateRules(
        gate.floors,
        gate.allowed_regression,
        gate.required_labels,
        settings.run.max_unscored,
        settings.run.max_unanswered,
    )


def gate(
    run: ReviewedRun,
    baseline: ReviewedRun | None,
    settings: Settings,
    *,
    junit_cases: bool = False,
    common: bool = False,
    moved: JudgeMoved | None = None,
) -> Gated:
    """The decision on a run, written to `gate.json` and `junit.xml`.

    Labels of the run are used wherever there are any; the comparison with the baseline is written as `compare` does,
    with `common` of the questions that both were asked. `moved` says that the judge is not the one it was.
    Raises InputError for a comparison in place of a run, for rules that are none, and as `compare` does.
    """
    if run.is_pair:
        raise InputError(f"{run.folder.path}: a pairwise comparison has no gate; name a run")
    rules = rules_of(settings)
    comparison = None if baseline is None else compare(baseline, run, common=common, declared=settings.compare.metrics)
    rows = case_rows_of(run.run, every_answer=True)
    judge = run.run.manifest.get("judge") or {}
    bias = judge_bias(run) if judge and run.labels() else None
    gated = decide(
        rows,
        run.run.summary,
        rules,
        embedded=any(one.get("embedded") for one in run.run.manifest.get("judges") or [judge] if one),
        bias=bias,
        comparison=comparison,
        moved=moved,
    )
    run.folder.write_json("gate.json", gated.tree())
    run.folder.write_text("junit.xml", junit_xml(gated, rows, run.folder.run_id, with_cases=junit_cases))
    return gated


def tell_github(gated: Gated, run_id: str, environment: Mapping[str, str], lang: str) -> list[str]:
    """Append the job summary where a workflow runs us, and give the annotations to print; nothing elsewhere."""
    if environment.get("GITHUB_ACTIONS") != "true":
        return []
    path = environment.get("GITHUB_STEP_SUMMARY")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(job_summary(gated, run_id, lang))
    return workflow_commands(gated, lang)
