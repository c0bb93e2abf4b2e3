"""Ranking metrics: hand-worked values, and pytrec_eval (trec_eval) as the independent implementation."""

import math
import random

import pytest
import pytrec_eval

from rag_judge.retrieval import score_ranking


def of(retrieved: str, relevant: str, k: int) -> tuple[bool, float, float, float, float]:
    scores = score_ranking(retrieved.split(), dict.fromkeys(relevant.split(), 1.0), k)
    assert scores is not None
    return scores.hit, scores.recall, scores.mrr, scores.ndcg, scores.precision


@pytest.mark.parametrize(
    ("retrieved", "relevant", "k", "expected"),
    [
        # dcg = 1/log2(3), ideal = 1/log2(2) = 1
        pytest.param("c a b", "a", 3, (True, 1.0, 0.5, 1 / math.log2(3), 1 / 3), id="second of three"),
        # a counts once: ranking a b; of two relevant one is found; ideal = 1 + 1/log2(3)
        pytest.param("a a b", "a c", 3, (True, 0.5, 1.0, 1 / (1 + 1 / math.log2(3)), 1 / 3), id="repeat counts once"),
        # after the repeat of a is removed, b stands second and within k = 2
        pytest.param("a a b", "b", 2, (True, 1.0, 0.5, 1 / math.log2(3), 0.5), id="repeats go before the cut"),
        pytest.param("x y z d", "d", 3, (False, 0.0, 0.0, 0.0, 0.0), id="below k counts as not found"),
        pytest.param("", "d", 3, (False, 0.0, 0.0, 0.0, 0.0), id="nothing retrieved is a real zero"),
        # recall divides by all three relevant, not by k = 2; ideal at k = 2 is 1 + 1/log2(3)
        pytest.param("a b", "a b c", 2, (True, 2 / 3, 1.0, 1.0, 1.0), id="recall is not capped at k"),
        pytest.param("a", "a", 5, (True, 1.0, 1.0, 1.0, 0.2), id="precision divides by k, also when fewer came"),
    ],
)
def test_metrics_agree_with_hand_worked_values(
    retrieved: str, relevant: str, k: int, expected: tuple[bool, float, float, float, float]
) -> None:
    assert of(retrieved, relevant, k) == pytest.approx(expected)


@pytest.mark.parametrize("qrels", [{}, {"a": 0.0}, {"a": -1.0}])
def test_a_case_without_relevant_documents_has_no_metrics(qrels: dict[str, float]) -> None:
    assert score_ranking(["a", "b"], qrels, 5) is None


def test_the_first_relevant_rank_is_known_below_the_cut_too() -> None:
    scores = score_ranking(["x", "y", "z", "d"], {"d": 1.0}, 2)
    assert scores is not None
    assert (scores.hit, scores.mrr, scores.first_relevant_rank) == (False, 0.0, 4)


def test_chunk_and_document_ids_are_matched_at_the_level_that_is_set() -> None:
    retrieved, qrels = ["doc1#2", "doc1#5", "doc2#1"], {"doc2": 1.0}
    exact = score_ranking(retrieved, qrels, 2, "exact")
    document = score_ranking(retrieved, qrels, 2, "document")
    assert exact is not None
    assert not exact.hit
    # At document level doc1, doc1, doc2 collapse to doc1, doc2 before the cut at 2.
    assert document is not None
    assert (document.hit, document.mrr, document.n_duplicates) == (True, 0.5, 1)


def test_a_document_has_the_highest_grade_of_its_chunks() -> None:
    # gains by rank: b=3, a=2 -> dcg 3 + 2/log2(3); that is already the ideal order
    scores = score_ranking(["b#1", "a#9"], {"a#1": 1.0, "a#2": 2.0, "b#1": 3.0}, 2, "document")
    assert scores is not None
    assert scores.ndcg == pytest.approx(1.0)


def test_metrics_agree_with_trec_eval_on_random_rankings() -> None:
    rng = random.Random(7)
    docs = [f"d{i}" for i in range(12)]
    for _ in range(300):
        ranking = rng.sample(docs, rng.randint(1, 10))
        qrels = {doc: rng.randint(0, 3) for doc in rng.sample(docs, 5)}
        k = rng.choice([1, 3, 5])
        ours = score_ranking(ranking, {doc: float(grade) for doc, grade in qrels.items()}, k)
        # trec_eval sorts by score, so the cut ranking is handed over with descending scores; its MRR has no cut.
        run = {doc: float(-i) for i, doc in enumerate(ranking)}
        top = {doc: float(-i) for i, doc in enumerate(ranking[:k])}
        measures = {f"recall.{k}", f"ndcg_cut.{k}", f"P.{k}"}
        theirs = pytrec_eval.RelevanceEvaluator({"q": qrels}, measures).evaluate({"q": run})["q"]
        mrr = pytrec_eval.RelevanceEvaluator({"q": qrels}, {"recip_rank"}).evaluate({"q": top})["q"]["recip_rank"]
        if ours is None:
            assert max(qrels.values()) == 0
            continue
        assert ours.recall == pytest.approx(theirs[f"recall_{k}"])
        assert ours.ndcg == pytest.approx(theirs[f"ndcg_cut_{k}"])
        assert ours.precision == pytest.approx(theirs[f"P_{k}"])
        assert ours.mrr == pytest.approx(mrr)
        assert ours.hit == (theirs[f"recall_{k}"] > 0)
