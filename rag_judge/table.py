"""Cases, answers and kept replies → one `CaseRow` a case, in snapshot order. No mean over cases, no file written.

This is the one place where retrieval, rules, decision and outcome of a case meet; each is computed in its own module.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rag_judge.answers import AnswerSet, has_context_texts
from rag_judge.cases import CaseSet, question_hash
from rag_judge.claims import unsupported_quantities
from rag_judge.corpus import Corpus
from rag_judge.counterfactual import gold_passages, probe_outcome
from rag_judge.grading import decision_of
from rag_judge.injection import suspicious
from rag_judge.journal import RecordedReplies
from rag_judge.outcomes import GradedCase, conclude, gave_no_answer
from rag_judge.prompt_settings import score_of
from rag_judge.prompts import language_of, pass_rule
from rag_judge.records import Answer, Case, CaseRow, Decision, Prompt, RetrievalScores, RuleChecks, VerdictField
from rag_judge.retrieval import MatchLevel, score_ranking
from rag_judge.rules import check
from rag_judge.votes import judges_disagree, panel_decision

# Verdict fields with a column of their own; every other one stands in `other_fields`.
NAMED_FIELDS = ("grounded", "complete", "should_abstain")
# Columns that are taken from the rule checks and from the decision under the same name.
RULE_COLUMNS = (
    "rule_correct",
    "must_include_ok",
    "acceptable_ok",
    "must_not_include_ok",
    "faithful",
    "lexical_support",
    "did_abstain",
    "refused_then_answered",
    "refusal_conflict",
    "leak",
    "leak_checked",
    "n_citations",
)
VOTE_COLUMNS = ("n_votes", "judge_pass", "unscored_reason", "n_planned", "n_asked", "flipped", "unstable", "alike")


@dataclass(frozen=True, slots=True)
class Measures:
    """How a run is measured; `prompts` is empty when no judge was asked."""

    k: int
    match: MatchLevel
    prompts: Mapping[str, Prompt]
    prompt_lang: str
    n_repeats: int
    models: tuple[str, ...] = ("",)  # one a judge
    corpus: Corpus | None = None  # the knowledge base, where it is at hand: tells why a passage was not retrieved
    probes: Mapping[str, Answer] = field(default_factory=dict)  # by case: the answer to the right passages

    @property
    def judged(self) -> bool:
        """True when a judge was asked of the run."""
        return bool(self.prompts)

    @property
    def fields(self) -> tuple[VerdictField, ...]:
        """What the judge is asked, in whatever language, each once."""
        return tuple(dict.fromkeys(field for prompt in self.prompts.values() for field in prompt.fields))


def case_rows(
    cases: CaseSet,
    answers: AnswerSet,
    measures: Measures,
    replies: RecordedReplies | None = None,
    drawn: frozenset[str] | None = None,
) -> Iterator[CaseRow]:
    """Yield the row of each case, or of each answer to it where cases have several.

    `drawn`: the cases that the judge was to see; None for all that were answered.
    """
    for case in cases:
        for answer in answers.of_case(case.id):
            row = _row_of(case, answer, measures, replies, drawn)
            yield row if answers.most == 1 else replace(row, answer_no=answer.answer_no)


def _row_of(
    case: Case,
    answer: Answer,
    measures: Measures,
    replies: RecordedReplies | None,
    drawn: frozenset[str] | None,
) -> CaseRow:
    if gave_no_answer(answer, judged=measures.judged):
        return _unanswered(case, answer)
    rules = check(case, answer)
    is_drawn = measures.judged and has_context_texts(answer) and (drawn is None or case.id in drawn)
    decision, score = None, None
    decisions: list[Decision] = []
    if is_drawn and replies is not None:
        prompt = measures.prompts[language_of(case.question, measures.prompt_lang, measures.prompts)]
        did_abstain = bool(rules.did_abstain)
        for judge in range(len(measures.models)):
            kept = replies.of_case(case.id, judge=judge, answer_no=answer.answer_no)
            decisions.append(decision_of(kept, prompt, measures.n_repeats, did_abstain))
        decision = panel_decision(decisions, prompt.fields, pass_rule(prompt, did_abstain))
        score = score_of(prompt.fields)
    probe = measures.probes.get(case.id)
    graded = GradedCase(
        case,
        answer,
        ranking_scores(case, answer, measures),
        rules,
        decision,
        measures.judged,
        judges_disagree=judges_disagree(decisions) if decisions else None,
        corpus=measures.corpus,
        match=measures.match,
        gold=() if probe is None or measures.corpus is None else gold_passages(case, measures.corpus),
        probe=probe,
    )
    row = _row(graded, rules, is_drawn, measures, None if score is None else score.name)
    return row if len(decisions) < 2 else _with_judges(row, measures.models, decisions)


def ranking_scores(case: Case, answer: Answer, measures: Measures) -> RetrievalScores | None:
    """The retrieval metrics of a case; None where contexts, an id of theirs or relevant documents are missing."""
    if answer.contexts is None:
        return None
    ids = [context.id for context in answer.contexts if context.id is not None]
    if len(ids) < len(answer.contexts):
        return None
    return score_ranking(ids, case.relevant_docs, measures.k, measures.match)


def _unanswered(case: Case, answer: Answer) -> CaseRow:
    outcome = conclude(GradedCase(case, answer, None, None, None, False))
    return CaseRow(id=case.id, type=case.type, outcome=outcome.outcome, expect_refusal=case.expect_refusal)


def _row(graded: GradedCase, rules: RuleChecks, is_drawn: bool, measures: Measures, score: str | None) -> CaseRow:
    """The row of an answered case; `score` names the field that is its score."""
    case, answer, scores, decision = graded.case, graded.answer, graded.retrieval, graded.decision
    values: dict[str, Any] = {} if decision is None else dict(decision.values)
    columns: dict[str, Any] = {name: values.pop(name, None) for name in NAMED_FIELDS}
    columns["score"] = None if score is None else values.pop(score, None)
    columns |= {name: getattr(rules, name) for name in RULE_COLUMNS}
    if scores is not None:
        columns |= asdict(scores)
    return CaseRow(
        id=case.id,
        type=case.type,
        **asdict(conclude(graded)),
        **columns,
        **_votes(decision),
        expect_refusal=case.expect_refusal,
        red_line=case.red_line,
        n_contexts=None if answer.contexts is None else len(answer.contexts),
        n_dangling_citations=None if rules.n_citations is None else len(rules.dangling_citations),
        drawn=is_drawn,
        other_fields=json.dumps(values, ensure_ascii=False, sort_keys=True) if values else None,
        question_sha256=question_hash(case),
        n_unsupported_figures=_unsupported_figures(case, answer) if rules.rule_correct is None else None,
        probe=None if graded.probe is None else probe_outcome(case, graded.gold, graded.probe),
        suspicious=suspicious(answer.answer or "", measures.fields),
    )


def _unsupported_figures(case: Case, answer: Answer) -> int | None:
    """How many figures of the answer no context holds; None where there is nothing to look in."""
    if not answer.answer or not has_context_texts(answer):
        return None
    texts = [context.text for context in answer.contexts or () if context.text is not None]
    return len(unsupported_quantities(answer.answer, texts, question=case.question))


def _with_judges(row: CaseRow, models: Sequence[str], decisions: Sequence[Decision]) -> CaseRow:
    """The row with what each judge of a panel decided."""
    said = {
        model: {"pass": d.judge_pass, "undecided": d.is_undecided, "unscored": d.unscored_reason, **d.values}
        for model, d in zip(models, decisions, strict=True)
    }
    text = json.dumps(said, ensure_ascii=False)
    return replace(row, judges=text, judges_disagree=judges_disagree(decisions))


def _votes(decision: Decision | None) -> dict[str, Any]:
    """The columns that say how the judge's repeats went."""
    if decision is None:
        return {}
    return {name: getattr(decision, name) for name in VOTE_COLUMNS} | {"undecided": decision.is_undecided}
