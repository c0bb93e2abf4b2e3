"""What is known of a project when a change of its RAG system is planned. Pure: facts alone, and no advice."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from rag_judge.lint_cases import expects_refusal, relevant_ids, states_nothing
from rag_judge.records import Case

Change = Literal["prompt", "model", "embedding", "chunking", "online"]
CHANGES: tuple[Change, ...] = get_args(Change)
Options = tuple[tuple[str, str | None], ...]  # as typed: an option and its value; None: a switch


@dataclass(frozen=True, slots=True)
class SetCounts:
    """How many cases of an eval set carry what a change is judged by."""

    n_cases: int = 0
    n_relevant_docs: int = 0
    n_chunk_ids: int = 0  # whose relevant documents are named by a part after #
    n_red_lines: int = 0
    n_tenants: int = 0
    n_forbidden_docs: int = 0
    n_refusals: int = 0
    n_stating_nothing: int = 0


def count_cases(cases: Iterable[Case]) -> SetCounts:
    """What the cases carry."""
    kept = list(cases)
    relevant = [relevant_ids(case) for case in kept]
    return SetCounts(
        n_cases=len(kept),
        n_relevant_docs=sum(bool(ids) for ids in relevant),
        n_chunk_ids=sum(any("#" in doc for doc in ids) for ids in relevant),
        n_red_lines=sum(case.red_line for case in kept),
        n_tenants=sum(case.tenant is not None for case in kept),
        n_forbidden_docs=sum(bool(case.forbidden_docs) for case in kept),
        n_refusals=sum(expects_refusal(case) is True for case in kept),
        n_stating_nothing=sum(states_nothing(case) for case in kept),
    )


@dataclass(frozen=True, slots=True)
class Spend:
    """What grading the whole set once takes, without the one further try at each reply that cannot be read."""

    calls_at_least: int
    calls_at_most: int
    usd_at_most: float | None = None
    price: str | None = None  # where the price is from


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """What is known of a project when a change is planned."""

    change: Change
    cases: str  # the eval set's path, as typed
    counts: SetCounts
    spend: Spend
    expected_rate: float  # of passes, for the labels
    expected_from: str | None = None  # the run that it is from; None: assumed
    options: Options = ()  # what was typed beside the cases; the commands are given the same
    endpoint: str | None = None  # as it may be shown, where the settings or an option name one
    answers_known: bool = False  # so that money could be computed
    baseline: str | None = None  # the id of the pinned run
    same_questions: bool = True  # the baseline was asked what stands in the eval set today
    judge: str | None = None  # None: rules alone
    n_judged: int = 0  # cases that the judge is to see
    pair_calls: tuple[int, int] = (0, 0)  # of a pairwise comparison, at least and at most
    match: str = "exact"
    system: Mapping[str, Any] = field(default_factory=dict)  # what it is made of, as far as it is recorded
    same_family: tuple[str, str] | None = None  # the answering model and its family, where the judge is of it
    archive: str = "runs"
    today: str = ""  # YYYY-MM-DD, for the names of runs to come
    taken: Collection[str] = ()  # ids of runs there are
