"""Answers collected from a RAG endpoint into an answers file, without grading them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from rag_judge.answers import AnswerSet
from rag_judge.cases import CaseSet
from rag_judge.endpoint import Collected, open_endpoint
from rag_judge.errors import InputError
from rag_judge.pipeline.steps import World, collect_to
from rag_judge.settings import Settings

MOST_ANSWERS = 100


def collect(cases_path: Path, out: Path, settings: Settings, world: World, n_answers: int = 1) -> Collected:
    """Ask the RAG endpoint every question of an eval set and write the answers file. See `collect_async`."""
    import asyncio

    return asyncio.run(collect_async(cases_path, out, settings, world, n_answers))


async def collect_async(cases_path: Path, out: Path, settings: Settings, world: World, n_answers: int = 1) -> Collected:
    """As `collect`, awaited. Answers grow in `OUT.part`; an interrupted collection goes on from there.

    With several answers a question each row says by `answer_no` which it is. Raises InputError for less than one.
    """
    if not 1 <= n_answers <= MOST_ANSWERS:
        raise InputError(f"--repeat-answers: found {n_answers}, expected 1 to {MOST_ANSWERS}")
    endpoint = open_endpoint(settings.endpoint, world.environment, settings.system)
    with closing(CaseSet(cases_path)) as cases:
        for warning in cases.warnings:
            world.say(f"warning: {warning}")
        endpoint.key(next(iter(cases)))
        part = out.with_name(out.name + ".part")
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            part.touch(mode=0o600)
        except OSError as error:
            raise InputError(f"{out}: cannot be written: {error.strerror}") from error
        finished = False
        try:
            collected = await collect_to(out, part, cases, endpoint, world, n_answers=n_answers)
            finished = True
        finally:
            if not finished:
                world.say(f"what was answered is kept in {part}; give the same command again to go on")
        if n_answers > 1 and _are_all_alike(out, cases):
            world.say(
                "warning: every question got the same answer each time, word for word; if the system or something "
                "before it caches answers, these repeats tell nothing of how it varies"
            )
    return collected


def _are_all_alike(path: Path, cases: CaseSet) -> bool:
    """True when no question has two answers of different words."""
    with closing(AnswerSet(path, cases.offsets)) as answers:
        said = ([one.answer for one in answers.of_case(i) if one.answer is not None] for i in cases.offsets)
        return all(len(set(texts)) == 1 for texts in said if texts)
