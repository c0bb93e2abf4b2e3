"""What a failed case answers when it is given the right passages in place of those it retrieved (`run --probe`).

Pure: which cases are worth it, which passages they are given, and what the answer says of the cause. The answer itself
is asked for in `pipeline.probing`. The question behind it: would mending what comes before the model have helped?
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rag_judge.attribution import LAYER_OF, attribute
from rag_judge.corpus import Corpus
from rag_judge.passages import Failed, Seen, named
from rag_judge.records import Answer, Attribution, Case, CaseRow, Confidence, Context, RetrievalScores
from rag_judge.retrieval import score_ranking
from rag_judge.rules import check

# Faults that lie outside what passages can change, or that the rules do not see.
NOT_PROBED = frozenset({"access", "question", "judge", "knowledge_base"})
LONGEST_SHOWN = 120  # characters of the probe's answer in the evidence
ProbeOutcome = Literal["right", "wrong", "not_taken", "no_rule", "failed"]


def is_unclear(row: CaseRow) -> bool:
    """True for a fail whose cause is not sure, and on which the passages could shed light."""
    return row.outcome == "fail" and row.confidence != "high" and row.layer not in NOT_PROBED and not row.expect_refusal


def gold_passages(case: Case, corpus: Corpus) -> list[Context]:
    """The chunks of a case's relevant documents, most relevant first; none that its tenant must not see."""
    graded = sorted(case.relevant_docs.items(), key=lambda item: -item[1])
    ids = [chunk for doc, grade in graded if grade > 0 for chunk in corpus.chunks_of(doc)]
    chunks = [corpus.get(chunk) for chunk in dict.fromkeys(ids)]
    readable = [chunk for chunk in chunks if chunk.tenant in (None, case.tenant)]
    return [Context(chunk.id, chunk.text, None, chunk.tenant) for chunk in readable]


def probe_outcome(case: Case, gold: Sequence[Context], probe: Answer) -> ProbeOutcome:
    """How the answer to the right passages came out, by the rules; `not_taken` where others came back."""
    if probe.error is not None or probe.answer is None:
        return "failed"
    if probe.contexts is not None:
        came_back = {context.id for context in probe.contexts}
        if not came_back or came_back - {context.id for context in gold}:
            return "not_taken"
    right = check(case, _with_gold(probe, gold)).rule_correct
    return "no_rule" if right is None else "right" if right else "wrong"


def with_probe(why: Attribution, failed: Failed, gold: Sequence[Context], probe: Answer) -> Attribution:
    """The cause of a fail in the light of its probe; as it was where the probe says nothing."""
    outcome = probe_outcome(failed.case, gold, probe)
    if outcome not in ("right", "wrong"):
        return why
    given = ", ".join(str(context.id) for context in gold)
    said = " ".join((probe.answer or "").split())
    shown = said if len(said) <= LONGEST_SHOWN else f"{said[:LONGEST_SHOWN]}…"
    told = f"given {given} alone, it answers {'rightly' if outcome == 'right' else 'wrongly, too'}: “{shown}”"
    cause, sure, seen = _answered_rightly(why, failed) if outcome == "right" else _still_wrong(why, failed, gold, probe)
    evidence = "; ".join(part for part in (told, seen) if part)
    return Attribution(cause, LAYER_OF[cause], evidence, sure)


def _answered_rightly(why: Attribution, failed: Failed) -> tuple[str, Confidence, str]:
    """The model can do it: what it was given was at fault."""
    if why.cause == "refused_in_scope":
        return why.cause, "high", f"{why.evidence}; it declines for want of the passage"
    if why.layer not in ("generation", "unknown"):
        return why.cause, "high", why.evidence
    seen = Seen(failed)
    relevant = [passage for passage in seen.passages if passage.is_relevant]
    wanted = [doc for doc, grade in failed.case.relevant_docs.items() if grade > 0]
    scores = failed.retrieval
    if scores is None or scores.recall < 1:
        return "recall_miss", "high", f"wanted: {', '.join(wanted)}; retrieved of them: {named(relevant) or 'none'}"
    if any(passage.is_sent is False for passage in relevant):
        return "lost_in_assembly", "high", f"retrieved: {named(relevant)}, not all of it sent"
    return "crowded_out", "medium", f"{named(relevant)} among {len(seen.passages)} passages did not suffice"


def _still_wrong(
    why: Attribution, failed: Failed, gold: Sequence[Context], probe: Answer
) -> tuple[str, Confidence, str]:
    """Better passages would not have helped: what is made of them is at fault."""
    if why.layer in ("generation", "abstention"):
        return why.cause, "high", why.evidence
    answer = _with_gold(probe, gold)
    again = attribute(
        Failed(
            failed.case,
            answer,
            _all_found(failed, gold),
            check(failed.case, answer),
            None,
            corpus=failed.corpus,
            match=failed.match,
        )
    )
    if again.layer in ("generation", "abstention"):
        return again.cause, "medium", again.evidence
    return why.cause, why.confidence, why.evidence


def _with_gold(probe: Answer, gold: Sequence[Context]) -> Answer:
    """The answer as one to just these passages."""
    return Answer(probe.id, probe.answer, tuple(gold), probe.citations, probe.refused)


def _all_found(failed: Failed, gold: Sequence[Context]) -> RetrievalScores | None:
    ids = [str(context.id) for context in gold]
    return score_ranking(ids, failed.case.relevant_docs, len(ids), failed.match)
