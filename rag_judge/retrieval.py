"""Ranking metrics of one case by id: Hit@k, Recall@k, MRR, nDCG@k, precision@k. No means over cases here.

Source: Järvelin & Kekäläinen 2002 for nDCG (linear gain, as in trec_eval); the rest are the field's usual forms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from rag_judge.records import RetrievalScores

MatchLevel = Literal["exact", "document"]


def at_level(doc_id: str, level: MatchLevel) -> str:
    """The id at which documents are matched: as it stands, or the part before the first `#` (`hr-001#3` → `hr-001`)."""
    return doc_id.partition("#")[0] if level == "document" else doc_id


def without_repeats(ids: Iterable[str]) -> list[str]:
    """The ids in order, each at its first place only."""
    return list(dict.fromkeys(ids))


def score_ranking(
    retrieved: Sequence[str], qrels: Mapping[str, float], k: int, level: MatchLevel = "exact"
) -> RetrievalScores | None:
    """The metrics of one ranking, best first, cut at `k` after later duplicates are removed.

    None when no document is relevant (a grade above 0): an unanswerable question is no retrieval failure.
    Nothing retrieved is a real zero. Recall divides by all relevant documents, precision by k, even where fewer
    were returned. A document's grade at document level is the highest of its chunks.
    """
    grades: dict[str, float] = {}
    for doc, grade in qrels.items():
        if grade > 0:
            name = at_level(doc, level)
            grades[name] = max(grade, grades.get(name, 0.0))
    if not grades:
        return None
    ranking = without_repeats(at_level(doc, level) for doc in retrieved)
    first = next((rank for rank, doc in enumerate(ranking, 1) if doc in grades), None)
    top = ranking[:k]
    n_found = sum(doc in grades for doc in top)
    return RetrievalScores(
        hit=n_found > 0,
        recall=n_found / len(grades),
        mrr=1 / first if first is not None and first <= k else 0.0,
        ndcg=_dcg([grades.get(doc, 0.0) for doc in top]) / _dcg(sorted(grades.values(), reverse=True)[:k]),
        precision=n_found / k,
        first_relevant_rank=first,
        n_duplicates=len(retrieved) - len(ranking),
    )


def _dcg(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
