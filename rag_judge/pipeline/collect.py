"""Answers collected from a RAG endpoint into an answers file, without grading them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from rag_judge.archive import RunFolder, copy_into
from rag_judge.cases import CaseSet
from rag_judge.endpoint import Collected, Collection, ask_all, open_endpoint
from rag_judge.errors import InputError
from rag_judge.pipeline.steps import World
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
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            collection = Collection(out.with_name(out.name + ".part"))
        except OSError as error:
            raise InputError(f"{out}: cannot be written: {error.strerror}") from error
        finished = False
        try:
            progress = lambda c: world.progress("questions", c.n_kept + c.n_asked, len(cases))  # noqa: E731
            collected = await ask_all(cases, endpoint, collection, progress)
            copy_into(RunFolder(out.parent), out.name, lambda file: collection.write_to(file, cases.offsets))
            finished = True
        finally:
            collection.close(and_remove=finished)
            if not finished:
                world.say(f"what was answered is kept in {out}.part; give the same command again to go on")
    return collected
