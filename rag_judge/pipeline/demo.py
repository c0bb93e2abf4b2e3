"""The whole pipeline on the shipped example: no key, no network beyond this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from rag_judge.answers import AnswerSet
from rag_judge.cases import CaseSet
from rag_judge.demo.rag_service import running_service
from rag_judge.demo.story import Reading, load_readings, story_lines
from rag_judge.pipeline.judging import EMBEDDED
from rag_judge.pipeline.run import RunRequest, run
from rag_judge.pipeline.steps import Budget, RunResult, World
from rag_judge.prompts import shipped_folder
from rag_judge.settings import Settings

SECONDS, AT_LEAST = 120.0, 12
CASE_FILES = ("rag_cases.json", "questions.jsonl")


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """Which version of the example's RAG service is graded, and how much of it the embedded judge sees."""

    version: str = "v1"
    judged: bool = True
    every_case: bool = False


def demo(options: DemoOptions, settings: Settings, world: World) -> RunResult:
    """Grade the example's RAG service by rules, and as many of its answers as fit in two minutes by the embedded judge.

    At least twelve cases are judged, however slow the machine; `every_case` judges all of them.
    """
    folder = shipped_folder("eval")
    with running_service(options.version, folder / "kb") as base_url, tempfile.TemporaryDirectory() as temporary:
        cases = Path(temporary) / "example.jsonl"
        write_cases(folder, cases)
        settings = replace(
            settings,
            run=replace(settings.run, name=f"demo-{options.version}", corpus=str(folder / "kb")),
            endpoint=replace(settings.endpoint, url=f"{base_url}/ask", request=None, response={}, headers={}),
            judge=replace(
                settings.judge,
                prompt="passfail" if options.judged else "none",
                # The tiny model needs a third fewer tokens for English instructions, so more cases fit into the time.
                prompt_lang="en",
                model=EMBEDDED,
                base_url=None,
                sample=None,
                cache=False,
            ),
        )
        world.say("asking the example's RAG service every question of the example")
        if options.judged:
            world.say(
                "judging with the embedded model: " + ("every case" if options.every_case else "up to two minutes")
            )
        budget = Budget() if options.every_case else Budget(seconds=SECONDS, at_least=AT_LEAST)
        result = run(RunRequest(settings, cases, budget=budget, cases_name="the shipped example"), world)
    readings = load_readings(folder / f"demo_labels.{options.version}.jsonl")
    return replace(result, lines=[*result.lines, *_story(options.version, result, readings, settings.run.lang)])


def _story(version: str, result: RunResult, readings: Sequence[Reading], lang: str) -> list[str]:
    """The lines that tell what the example shows, from the run's own files."""
    with (
        closing(CaseSet(result.folder.snapshot)) as cases,
        closing(AnswerSet(result.folder.answers, cases.offsets)) as answers,
    ):
        return story_lines(version, result.summary, result.rows, answers, readings, lang)


def write_cases(folder: Path, target: Path) -> None:
    """Write the example's cases, which stand in a file for each dialect, into one."""
    with target.open("wb") as file:
        for name in CASE_FILES:
            with closing(CaseSet(folder / name)) as cases:
                cases.copy_to(file)
