"""Answers collected from a RAG endpoint into an answers file, without grading them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from rag_judge.cases import CaseSet
from rag_judge.endpoint import Collected, open_endpoint
from rag_judge.errors import InputError
from rag_judge.pipeline.steps import World, collect_to
from rag_judge.settings import Settings


def collect(cases_path: Path, out: Path, settings: Settings, world: World) -> Collected:
    """Ask the RAG endpoint every question of an eval set and write the answers file. See `collect_async`."""
    import asyncio

    return asyncio.run(collect_async(cases_path, out, settings, world))


async def collect_async(cases_path: Path, out: Path, settings: Settings, world: World) -> Collected:
    """As `collect`, awaited. Answers grow in `OUT.part`; an interrupted collection goes on from there."""
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
            collected = await collect_to(out, part, cases, endpoint, world)
            finished = True
        finally:
            if not finished:
                world.say(f"what was answered is kept in {part}; give the same command again to go on")
    return collected
