"""Unclear fails asked again, with the right passages in place of the retrieved (`run --probe`).

The answers are kept in the run's `probes.jsonl`, so that a resume and a regrade see them; what they say of a cause is
for `counterfactual`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from rag_judge.answers import AnswerSet
from rag_judge.archive import RunFolder, copy_into
from rag_judge.cases import CaseSet
from rag_judge.counterfactual import gold_passages, is_unclear
from rag_judge.endpoint import Collection, Endpoint, ask_all, open_endpoint
from rag_judge.errors import CannotGoOn, InputError, LimitReached
from rag_judge.pipeline.steps import World
from rag_judge.records import Answer, CaseRow
from rag_judge.settings import Settings
from rag_judge.table import Measures


def probe_endpoint(settings: Settings, world: World) -> Endpoint | None:
    """Where unclear fails are asked again; None where that is not wished.

    Raises InputError where no endpoint is named, where it has no place for passages, or without a corpus.
    """
    if not settings.run.probe:
        return None
    if settings.endpoint.url is None:
        raise InputError("--probe asks the RAG system again: give its --endpoint, also beside --answers")
    if settings.run.corpus is None:
        raise InputError("--probe gives the RAG system the right passages: name the knowledge base's --corpus")
    endpoint = open_endpoint(settings.endpoint, world.environment, settings.system)
    if not endpoint.takes_passages:
        raise InputError(
            "--probe: endpoint.request has no place for the passages; put them where your system takes them, such as "
            'contexts = "{{ contexts }}" (a list of objects with id and text)'
        )
    return endpoint


def kept_probes(folder: RunFolder, cases: CaseSet) -> dict[str, Answer]:
    """The probes' answers that a run keeps, by case; empty without any."""
    path = _probes(folder)
    if not path.exists() or not path.stat().st_size:
        return {}
    with closing(AnswerSet(path, cases.offsets)) as answers:
        return {case_id: answers.get(case_id) for case_id in answers.offsets}


async def ask_probes(
    folder: RunFolder,
    cases: CaseSet,
    rows: Iterable[CaseRow],
    measures: Measures,
    endpoint: Endpoint,
    world: World,
    deadline: float | None,
) -> None:
    """Ask the RAG system the unclear fails again, unless that was done before; what fails is kept as failed.

    Raises LimitReached at the deadline. A system that takes no passages costs the probes, never the run.
    """
    if _probes(folder).exists() or measures.corpus is None:
        return
    unclear = list(dict.fromkeys(row.id for row in rows if is_unclear(row)))
    passages = {case_id: gold_passages(cases.get(case_id), measures.corpus) for case_id in unclear}
    known = {case_id: gold for case_id, gold in passages.items() if gold}
    world.say(f"probing {len(known)} fails with the right passages" + _without(len(unclear) - len(known)))
    part = Collection(folder.path / "probes.part.jsonl")
    finished = False
    try:
        try:
            await ask_all(
                (cases.get(case_id) for case_id in known),
                replace(endpoint, passages=known),
                part,
                lambda so_far: world.progress("probes", so_far.n_kept + so_far.n_asked, len(known)),
                lambda: deadline is not None and world.monotonic() >= deadline,
            )
        except LimitReached:
            raise
        except CannotGoOn as stopped:
            world.say(f"warning: the probe: {stopped}; the causes stand without it")
        copy_into(folder, _probes(folder).name, lambda file: part.write_to(file, [(i, 0) for i in known]))
        finished = True
    finally:
        part.close(and_remove=finished)


def say_how_it_went(outcomes: Mapping[str, int], world: World) -> None:
    """A warning where the RAG system did not take the passages that it was given."""
    counts = Counter(outcomes)
    if n := counts["not_taken"]:
        world.say(
            f"warning: to {n} of {counts.total()} probes other passages came back than were given: the endpoint does "
            "not take `contexts`; their causes stand without the probe"
        )
    if n := counts["failed"]:
        world.say(f"warning: {n} of {counts.total()} probes brought no answer; their causes stand without it")


def _probes(folder: RunFolder) -> Path:
    return folder.path / "probes.jsonl"


def _without(n: int) -> str:
    return f" ({n} more have no relevant chunk in the corpus that their tenant may read)" if n else ""
