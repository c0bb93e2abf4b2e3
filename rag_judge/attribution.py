"""Why a case failed: one cause of a closed list, the layer where it is mended, what shows it, and how sure that is.

The causes are asked in the order of `CAUSES`, and the first that applies is the cause, so that a leak is never hidden
behind a missing key point. Ids and texts decide wherever they can; what only a judge says is of low confidence. A
corpus, where one is given, tells what was not retrieved from what was never written. Nothing here grades.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

from rag_judge.claims import unsupported_quantities
from rag_judge.corpus import Corpus
from rag_judge.passages import (
    Failed,
    Passage,
    Seen,
    document_of,
    is_altered,
    is_used,
    named,
    quoted,
    sent_reversed,
    similarity,
    states,
)
from rag_judge.quantities import quantities
from rag_judge.records import Attribution, Confidence
from rag_judge.retrieval import at_level
from rag_judge.text import fold, holds_point

# The closed list, in the order in which it is asked, with the layer where each is mended.
LAYER_OF = {
    "leak": "access",
    "answered_out_of_scope": "abstention",
    "refused_in_scope": "abstention",
    "refused_then_answered": "abstention",
    "not_in_kb": "knowledge_base",
    "recall_miss": "retrieval",
    "crowded_out": "retrieval",
    "split_by_chunking": "chunking",
    "lost_in_assembly": "assembly",
    "ignored_context": "generation",
    "missing_point": "generation",
    "invented": "generation",
    "wrong_citation": "generation",
    "ambiguous_question": "question",
    "judge_at_fault": "judge",
    "unknown": "unknown",
}
ALIKE = 0.3  # share of words that two passages have in common, from which one can be taken for the other
SHOWN = 24  # characters of a passage's beginning that show it in a prompt
LEAST_HALF = 2  # characters of a key point at a chunk's edge that show that the chunk was cut inside it
SENTENCE_ENDS = frozenset("。．.!?！？;；:：”」』\"')）]】")
Finding = tuple[str, Confidence] | None


def attribute(failed: Failed) -> Attribution:
    """The cause of a failed case."""
    seen = Seen(failed)
    for cause, look in _QUESTIONS:
        found = look(failed, seen)
        if found is not None:
            return Attribution(cause, LAYER_OF[cause], found[0], found[1])
    return Attribution("unknown", LAYER_OF["unknown"], _judge_reason(failed), "low")


# --- access and abstention --------------------------------------------------------------------------------------


def _leak(failed: Failed, seen: Seen) -> Finding:
    rules = failed.rules
    return (f"returned or cited: {', '.join(rules.leaked_ids)}", "high") if rules.leak else None


def _answered_out_of_scope(failed: Failed, seen: Seen) -> Finding:
    if failed.case.expect_refusal and failed.rules.did_abstain is False and not failed.rules.refused_then_answered:
        return "answers; a refusal was expected", "high"
    return None


def _refused_in_scope(failed: Failed, seen: Seen) -> Finding:
    if failed.case.expect_refusal or not failed.rules.did_abstain:
        return None
    held = [passage for point in seen.missing for passage in seen.holders(point)]
    if held:
        return f"declines, though {named(held[:3])} holds {quoted(seen.missing[:1])}", "high"
    scores = failed.retrieval
    if scores is not None and not scores.hit:
        wanted = ", ".join(doc for doc, grade in failed.case.relevant_docs.items() if grade > 0)
        return f"declines; none of {wanted} was retrieved, so mend the retrieval first", "medium"
    return "declines; no refusal was expected", "medium" if seen.missing else "high"


def _refused_then_answered(failed: Failed, seen: Seen) -> Finding:
    if failed.case.expect_refusal and failed.rules.refused_then_answered:
        return "declines, then answers anyway; a refusal was expected", "high"
    return None


# --- knowledge base, retrieval, chunking, assembly --------------------------------------------------------------


def _not_in_kb(failed: Failed, seen: Seen) -> Finding:
    corpus, case = failed.corpus, failed.case
    if corpus is None or case.expect_refusal:
        return None
    gone = [doc for doc in case.relevant_docs if doc not in corpus and not corpus.chunks_of(doc)]
    if case.relevant_docs and not gone:
        return None
    absent = [point for point in seen.missing if not any(_in_corpus(corpus, fold(wording)) for wording in point)]
    if absent:
        return f"no chunk of the corpus holds {quoted(absent)}", "high" if gone else "medium"
    if gone and len(gone) == len(case.relevant_docs):
        return f"not in the corpus: {', '.join(gone)}", "medium"
    return None


def _in_corpus(corpus: Corpus, folded_point: str) -> bool:
    return bool(corpus.holding(folded_point)) or bool(corpus.holding_across(folded_point))


def _recall_miss(failed: Failed, seen: Seen) -> Finding:
    scores = failed.retrieval
    if scores is None or scores.hit:
        return None
    wanted = ", ".join(doc for doc, grade in failed.case.relevant_docs.items() if grade > 0)
    rank = scores.first_relevant_rank
    where = "" if rank is None else f"; first at rank {rank}"
    # A passage that the eval set does not name may hold the point all the same: then the eval set is in doubt.
    elsewhere = [passage for point in seen.missing for passage in seen.holders(point)]
    doubt = f"; but {named(elsewhere[:2])} holds {quoted(seen.missing[:1])}" if elsewhere else ""
    return f"none of {wanted} in the top k{where}{doubt}", "medium" if doubt else "high"


def _crowded_out(failed: Failed, seen: Seen) -> Finding:
    relevant = [passage for passage in seen.passages if passage.is_relevant and passage.is_sent is not False]
    if seen.prompt is not None:
        relevant = [passage for passage in relevant if passage.folded[:SHOWN] in seen.prompt]
    if not relevant or not seen.breaks_a_rule:
        return None
    for passage in seen.passages:
        if passage.is_relevant:
            continue
        said = [wording for wording in failed.rules.forbidden_found if fold(wording) in passage.folded]
        if said:
            return f"says “{said[0]}” of {named([passage])}; relevant: {named(relevant)}", "high"
        if not is_used(passage, seen):
            continue
        alike = max(similarity(passage, other) for other in relevant)
        if alike >= ALIKE or document_of(passage) in map(document_of, relevant):
            sure: Confidence = "high" if passage.rank < relevant[0].rank else "medium"
            return f"uses the look-alike {named([passage])}; relevant: {named(relevant)}", sure
    taken = _taken_figure(seen, relevant)
    return None if taken is None else (f"says “{taken[0]}” of {taken[1]}; relevant: {named(relevant)}", "medium")


def _taken_figure(seen: Seen, relevant: Sequence[Passage]) -> tuple[str, str] | None:
    """A figure of the answer that is another passage's, in the unit of a missing key point, and not quoted whole."""
    units = {q.unit for point in seen.missing for wording in point for q in quantities(wording)}
    texts = [passage.text for passage in relevant]
    for figure in unsupported_quantities(seen.said, texts, question=seen.failed.case.question):
        for passage in seen.passages:
            is_other = not passage.is_relevant and passage.folded not in seen.folded_answer
            if is_other and figure.unit in units and not unsupported_quantities(figure.text, [passage.text]):
                return figure.text, named([passage])
    return None


def _split_by_chunking(failed: Failed, seen: Seen) -> Finding:
    for point in seen.missing:
        if seen.holders(point) or sent_reversed(failed, seen, point) is not None:
            continue
        for wording in point:
            folded = fold(wording)
            borders = _borders(failed, seen, folded)
            if borders is not None:
                return f"“{wording}” stands only across the border of {borders[0]}", borders[1]
    return None


def _borders(failed: Failed, seen: Seen, folded: str) -> Finding:
    """Between which chunks a key point is cut, and how sure that is."""
    if failed.corpus is not None and not failed.corpus.holding(folded):
        across = failed.corpus.holding_across(folded)
        return (f"{across[0][0]} and {across[0][1]}", "high") if across else None
    for left, right in permutations(seen.passages, 2):
        if document_of(left) == document_of(right) and holds_point(left.folded + right.folded, folded):
            return f"{left.id} and {right.id}", "high"
    returned = {passage.id for passage in seen.passages}
    for passage in seen.passages:
        before = _before(passage.id)
        lost_before = before in failed.case.relevant_docs and before not in returned
        if passage.is_relevant and _is_cut_inside(passage.folded, folded, lost_before=lost_before):
            return f"{passage.id} and its neighbour", "medium"
    return None


def _is_cut_inside(folded_text: str, folded_point: str, *, lost_before: bool) -> bool:
    """Whether a text ends with the beginning of a key point, or begins with its end.

    A single character is enough where the text breaks off without the end of a sentence, and at its front where the
    passage before it was not retrieved.
    """
    breaks_off = bool(folded_text) and folded_text[-1] not in SENTENCE_ENDS
    ends = range(1 if breaks_off else LEAST_HALF, len(folded_point))
    least = 1 if lost_before else LEAST_HALF
    return any(folded_text.endswith(folded_point[:n]) for n in ends) or any(
        folded_text.startswith(folded_point[n:]) for n in range(1, len(folded_point) - least + 1)
    )


def _before(chunk_id: str) -> str:
    """The id of the chunk before, for ids that count within a document (`doc#3`); else the empty text."""
    document, _, number = chunk_id.partition("#")
    return f"{document}#{int(number) - 1}" if number.isdecimal() and len(number) < 10 else ""


def _rest_of_recall(failed: Failed, seen: Seen) -> Finding:
    """A key point that stands in a relevant passage which was not retrieved, though another one was."""
    lost = [point for point in seen.missing if not seen.holders(point)]
    if failed.retrieval is None or not lost or not seen.passages:
        return None
    returned = {passage.id for passage in seen.passages}
    wanted = {at_level(doc, failed.match) for doc, grade in failed.case.relevant_docs.items() if grade > 0}
    if failed.corpus is None:
        absent = sorted(wanted - {at_level(doc, failed.match) for doc in returned})
        return (f"{quoted(lost)} in no context; not retrieved: {', '.join(absent)}", "medium") if absent else None
    found = [doc for wording in lost[0] for doc in failed.corpus.holding(fold(wording))]
    holds = [doc for doc in dict.fromkeys(found) if at_level(doc, failed.match) in wanted and doc not in returned]
    return (f"{quoted(lost[:1])} stands in {', '.join(holds)}, which was not retrieved", "high") if holds else None


def _lost_in_assembly(failed: Failed, seen: Seen) -> Finding:
    for point in seen.missing:
        holders = seen.holders(point)
        if holders and not any(seen.reached(passage, point) for passage in holders):
            return f"{quoted([point])} in {named(holders)}, which the prompt does not hold whole", "high"
        turned = None if holders else sent_reversed(failed, seen, point)
        if turned is not None:
            return (
                f"{quoted([point])} runs from {turned[1]} to {turned[0]}, which were sent the other way round",
                "high",
            )
    return None


# --- generation, question, judge --------------------------------------------------------------------------------


def _ignored_context(failed: Failed, seen: Seen) -> Finding:
    held = [(point, holders) for point in seen.missing if (holders := seen.holders(point))]
    if not held or seen.n_stated or len(held) < len(seen.missing) or is_altered(seen):
        return None
    if any(_same_figure(point, seen) for point in seen.missing):
        return None  # it may say the point in other words
    point, holders = held[0]
    sure: Confidence = "medium" if any(passage.is_cited for passage in holders) else "high"
    return f"{quoted([point])} in {named(holders[:3])}; the answer states none of it", sure


def _same_figure(point: Sequence[str], seen: Seen) -> bool:
    """Whether the answer states the figure of a missing key point, written otherwise: 十天 for 10 天."""
    said = {(q.value, q.unit) for q in quantities(seen.said)}
    wanted = [[(q.value, q.unit) for q in quantities(wording)] for wording in point]
    return any(figures and all(unit and (value, unit) in said for value, unit in figures) for figures in wanted)


def _missing_point(failed: Failed, seen: Seen) -> Finding:
    if failed.case.expect_refusal or is_altered(seen):
        return None
    otherwise = [point for point in seen.missing if _same_figure(point, seen)]
    if otherwise:
        return f"not in these words: {quoted(otherwise)}; the answer states the same figure otherwise", "low"
    held = [point for point in seen.missing if seen.holders(point)]
    if held:
        return f"not in the answer, though in the contexts: {quoted(held)}", "high"
    if seen.missing:
        return f"not in the answer: {quoted(seen.missing)}; it may say it in other words", "low"
    says_all = failed.rules.must_include_ok is True or failed.rules.acceptable_ok is True
    if _judged(failed, "complete") is False and not says_all:
        return _judge_reason(failed), "low"
    return None


def _invented(failed: Failed, seen: Seen) -> Finding:
    rules = failed.rules
    if rules.unsupported_points:
        return f"stated, but in no context: {', '.join(rules.unsupported_points)}", "high"
    if rules.forbidden_found:
        return f"must not be in the answer: {', '.join(rules.forbidden_found)}", "medium"
    if seen.figures and not rules.did_abstain:
        return f"in no context: {', '.join(dict.fromkeys(q.text for q in seen.figures))}", "medium"
    if seen.missing and is_altered(seen):
        return f"repeats a passage, but not {quoted(seen.missing[:1])} of it", "medium"
    if _judged(failed, "grounded") is False and not seen.is_supported and _wrong_citation(failed, seen) is None:
        return _judge_reason(failed), "low"
    return None


def _wrong_citation(failed: Failed, seen: Seen) -> Finding:
    dangling = failed.rules.dangling_citations
    if dangling:
        return f"cites what was not retrieved: {', '.join(dangling)}", "high"
    cited = [passage for passage in seen.passages if passage.is_cited]
    points = [*failed.case.must_include, *([failed.case.acceptable] if failed.case.acceptable else [])]
    stated = [p for p in points if states(seen.folded_answer, p) and seen.holders(p)]
    unheld = [point for point in stated if not any(states(passage.folded, point) for passage in cited)]
    if cited and unheld:
        return f"{quoted(unheld)} stands in none of the cited {named(cited)}", "medium"
    return None


def _ambiguous_question(failed: Failed, seen: Seen) -> Finding:
    decision = failed.decision
    if failed.rules.rule_correct is False or decision is None:
        return None
    if failed.judges_disagree:
        return "the judges disagree", "medium"
    if decision.flipped or decision.unstable:
        return "repeats of the same call disagree", "low"
    return None


def _judge_at_fault(failed: Failed, seen: Seen) -> Finding:
    if failed.rules.rule_correct is True and failed.decision is not None and failed.decision.judge_pass is False:
        return f"every stated expectation is met; {_judge_reason(failed)}", "medium"
    return None


_QUESTIONS: tuple[tuple[str, Callable[[Failed, Seen], Finding]], ...] = (
    ("leak", _leak),
    ("refused_then_answered", _refused_then_answered),
    ("answered_out_of_scope", _answered_out_of_scope),
    ("refused_in_scope", _refused_in_scope),
    ("not_in_kb", _not_in_kb),
    ("recall_miss", _recall_miss),
    ("crowded_out", _crowded_out),
    ("split_by_chunking", _split_by_chunking),
    ("recall_miss", _rest_of_recall),
    ("lost_in_assembly", _lost_in_assembly),
    ("ignored_context", _ignored_context),
    ("missing_point", _missing_point),
    ("invented", _invented),
    ("wrong_citation", _wrong_citation),
    ("ambiguous_question", _ambiguous_question),
    ("judge_at_fault", _judge_at_fault),
)


def _judged(failed: Failed, name: str) -> object:
    return None if failed.decision is None else failed.decision.values.get(name)


def _judge_reason(failed: Failed) -> str:
    reason = None if failed.decision is None else failed.decision.reason
    return f"judge: {reason}" if reason else "judge: no reason given"
