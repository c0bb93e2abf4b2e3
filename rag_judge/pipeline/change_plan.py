"""What a change of the RAG system needs: the project's cases, settings and archive read, and nothing sent."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_judge.addresses import public_address, public_url
from rag_judge.archive import RunFolder, list_runs
from rag_judge.cases import CaseSet, question_hash
from rag_judge.change_facts import Change, Options, ProjectFacts, Spend, count_cases
from rag_judge.change_plan import URL, ChangePlan, plan_change
from rag_judge.errors import InputError
from rag_judge.families import shared_family
from rag_judge.nights import past_runs
from rag_judge.pins import baseline as pinned_baseline
from rag_judge.pipeline.plan import plan
from rag_judge.pipeline.review import EXPECTED_RATE
from rag_judge.pipeline.run import RunRequest
from rag_judge.pipeline.steps import Budget, World
from rag_judge.settings import Settings

_SWITCHES = {"early_stop": "--no-early-stop", "reask": "--no-reask", "cache": "--no-cache"}


def change_plan(
    change: Change, request: RunRequest, typed: Options, world: World, told: Mapping[str, Any] | None = None
) -> tuple[ChangePlan, ProjectFacts]:
    """The plan of a change, and the facts it is made from. Nothing is sent, and no endpoint is needed.

    `typed` are the options that the commands take along, `told` what `--set` says of the system to come. Raises
    InputError for an eval set, a settings file or pins that cannot be read.
    """
    settings = request.settings
    archive = Path(settings.run.out)
    with closing(CaseSet(request.cases)) as cases:
        counts = count_cases(cases)
        asked = {case.id: question_hash(case) for case in cases}
        answers_known = request.answers is not None or cases.has_answers
    is_judged = settings.judge.prompt != "none"
    n_judged = _at_most(counts.n_cases, settings.judge.sample) if is_judged else 0
    baseline = pinned_baseline(archive)
    rate, of_run = _expected_rate(archive, settings.run.name, baseline)
    judge = ", ".join(member.model or "?" for member in settings.judge.members()) if is_judged else None
    facts = ProjectFacts(
        change=change,
        cases=str(request.cases),
        counts=counts,
        spend=_spend(request, world, n_judged, answers_known=answers_known),
        expected_rate=rate,
        expected_from=of_run,
        options=typed,
        endpoint=None if settings.endpoint.url is None else _shown(settings.endpoint.url),
        answers_known=answers_known,
        baseline=None if baseline is None else baseline.run_id,
        same_questions=baseline is None or _questions_of(baseline) == asked,
        judge=judge,
        n_judged=n_judged,
        pair_calls=_pair_calls(settings, n_judged),
        match=settings.run.match,
        system=settings.system,
        same_family=_same_family(settings, (told or {}) if change == "model" else settings.system),
        archive=settings.run.out,
        today=world.now().date().isoformat(),
        taken=tuple(folder.run_id for folder in list_runs(archive)),
    )
    return plan_change(facts), facts


def typed_options(flags: Mapping[str, Any], config: Path | None, answers: Path | None) -> Options:
    """What was typed, as options that a command can be given again; an address that holds a secret is left out."""
    found: list[tuple[str, str | None]] = [] if config is None else [("--config", str(config))]
    found += [] if answers is None else [("--answers", str(answers))]
    for name, value in flags.items():
        if name == "models":
            found += [("--model", model) for model in value]
        elif name == "system":
            found += [("--set", f"{factor}={_as_typed(one)}") for factor, one in value.items()]
        elif name in _SWITCHES:
            found.append((_SWITCHES[name], None))
        elif name == "endpoint":
            found.append(("--endpoint", _shown(value)))
        elif name == "base_url":
            found.append(("--base-url", public_url(value)))
        elif name != "name":
            found.append((f"--{name.replace('_', '-')}", str(value)))
    return tuple(found)


def _shown(url: str) -> str:
    """An address as typed, unless there is in it what may be a key."""
    return url if public_address(url) == url.strip() else URL


def _as_typed(value: Any) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _at_most(n: int, sample: int | None) -> int:
    return n if sample is None else min(n, sample)


def _spend(request: RunRequest, world: World, n_judged: int, *, answers_known: bool) -> Spend:
    """What the full set takes: from the answers where they are at hand, else every case counted and no money."""
    judge = request.settings.judge
    if answers_known:
        # With answers at hand nothing is to be asked, so that no endpoint is needed.
        source = replace(request, answers=request.answers or request.cases, budget=Budget(sample=judge.sample))
        planned = plan(source, world)
        return Spend(planned.calls_at_least, planned.calls_at_most, planned.usd_at_most, planned.price)
    n_judges = len(judge.members())
    least = min(2, judge.repeats) if judge.early_stop else judge.repeats
    return Spend(n_judged * n_judges * least, n_judged * n_judges * judge.repeats)


def _pair_calls(settings: Settings, n_judged: int) -> tuple[int, int]:
    """Calls of a pairwise comparison, both orders of each pair, by one judge."""
    judge = settings.judge
    least = min(2, judge.repeats) if judge.early_stop else judge.repeats
    return 2 * n_judged * least, 2 * n_judged * judge.repeats


def _expected_rate(archive: Path, name: str, baseline: RunFolder | None) -> tuple[float, str | None]:
    """The judge's pass rate in the last run of this name, else in the baseline, else the one that is assumed."""
    named = [past.folder for past in past_runs(archive) if _is_one_of(past.manifest, name) and past.is_complete]
    for folder in (*reversed(named), *(() if baseline is None else (baseline,))):
        try:
            found = folder.read_json("summary.json")["judge"].get("pass")
        except (InputError, KeyError):
            continue  # `runs` names it as broken
        if found is not None:
            return float(found["value"]), folder.run_id
    return EXPECTED_RATE, None


def _is_one_of(manifest: Mapping[str, Any], name: str) -> bool:
    return manifest.get("name") == name and manifest.get("purpose") is None


def _questions_of(run: RunFolder) -> dict[str, str]:
    with closing(CaseSet(run.snapshot)) as cases:
        return {case.id: question_hash(case) for case in cases}


def _same_family(settings: Settings, system: Mapping[str, Any]) -> tuple[str, str] | None:
    if settings.judge.prompt == "none":
        return None
    found = (shared_family(member.model or "", system) for member in settings.judge.members())
    return next((one for one in found if one is not None), None)
