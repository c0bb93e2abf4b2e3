"""Two versions of a system in one go: both graded, judged side by side in both orders, compared, decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rag_judge.errors import InputError
from rag_judge.gate import Gated
from rag_judge.pipeline.gate import gate, rules_of
from rag_judge.pipeline.pairwise import PairwiseRequest, pairwise
from rag_judge.pipeline.review import ReviewedRun
from rag_judge.pipeline.run import RunRequest, run
from rag_judge.pipeline.steps import Budget, RunResult, World, limits_left
from rag_judge.settings import Settings

PAIRWISE = "pairwise"


@dataclass(frozen=True, slots=True)
class Version:
    """One of the two: an endpoint's URL or an answers file, and what is set of it."""

    source: str
    factors: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_endpoint(self) -> bool:
        """True for a URL."""
        return self.source.startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class Decided:
    """Both runs, the comparison of their answers by the judge (None without one), the table, and the decision on B."""

    a: RunResult
    b: RunResult
    pairs: RunResult | None
    comparison: Mapping[str, Any]
    gated: Gated


def ab(cases: Path, a: Version, b: Version, settings: Settings, world: World) -> Decided:
    """Grade A and B, let the judge compare their answers, compare the runs, and decide on B with A as its baseline.

    Limits of money and calls hold for all of it. Raises as `run`, `pairwise`, `compare` and `gate` do; what was
    finished by then stands in the archive, each run to be gone on with by itself.
    """
    rules_of(settings)  # a rule that is none is found before anything is spent
    for name, version in (("--a", a), ("--b", b)):
        if not version.is_endpoint and not Path(version.source).is_file():
            raise InputError(f"{name}: found {version.source!r}, expected the URL of an endpoint or an answers file")
    left = settings
    results = []
    for side, version in (("a", a), ("b", b)):
        world.say(f"{side.upper()}: {version.source}")
        of_side = replace(
            left,
            run=replace(left.run, name=f"{settings.run.name}-{side}"),
            endpoint=replace(left.endpoint, url=version.source if version.is_endpoint else None),
            system={**left.system, **version.factors},
        )
        answers = None if version.is_endpoint else Path(version.source)
        request = RunRequest(of_side, cases, answers, Budget(sample=settings.judge.sample))
        results.append(run(request, world))
        left = limits_left(left, results[-1])
    pairs = None
    if settings.judge.prompt != "none":
        side_by_side = replace(
            left, run=replace(left.run, name=f"{settings.run.name}-pairs"), judge=replace(left.judge, prompt=PAIRWISE)
        )
        pairs = pairwise(PairwiseRequest(side_by_side, results[0].folder, results[1].folder), world)
    first, second = (ReviewedRun(result.folder.path) for result in results)
    gated = gate(second, first, settings)
    comparison = second.folder.read_json("comparison.json")  # as the gate has made it
    return Decided(results[0], results[1], pairs, comparison, gated)
