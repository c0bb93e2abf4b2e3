"""Case rows → `summary.json`: counts, and rates with their intervals. Nothing is graded here.

Every rate says over how many cases it is taken; a case that is left out of one is counted somewhere. No time, path,
run name or cost stands in a summary, so that the same material gives the same bytes.

Where cases have several answers, there is a row an answer, and the questions are the clusters: rates and counts are of
answers, and their intervals those of so many questions, however often each was asked.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any

from rag_judge.clusters import clustered_rate
from rag_judge.estimates import mean_in_unit, rate, scaled
from rag_judge.records import CaseRow, Estimate, NoEstimate

Tree = dict[str, Any]
DRAWN = "drawn cases, standing for all answered ones"
PART = "the cases that the judge saw before a limit was reached, which is no random part"


def summarise(
    rows: Sequence[CaseRow],
    *,
    k: int,
    seed: int,
    mode: str,
    is_sampled: bool = False,
    is_part: bool = False,
    has_pass_rule: bool = True,
    score_range: tuple[int, int] = (1, 5),
) -> Tree:
    """The summary of a run's case rows; `mode` is the judge's, or "none".

    Sampled: the judge saw a drawn part only. A part: a limit came first, and what the judge saw was not drawn. Without
    a pass rule (a scale without pass_at) no pass can exist.
    """
    answered = [row for row in rows if row.outcome != "no_answer"]
    summary: Tree = {
        "n_cases": len({row.id for row in rows}),
        "n_answered": len(answered),
        "n_errors": len(rows) - len(answered),
        "by_type": _by_type(rows, is_sampled or is_part),
        "retrieval": _retrieval(answered, k, seed),
        "rules": _rules(answered),
        "answers": _answers(answered, seed),
        "judge": {"mode": mode},
        "abstention": _abstention(answered),
        "end_to_end": _end_to_end(rows, is_sampled, is_part),
        "outcomes": _counts(row.outcome for row in rows),
        "causes": _counts(row.cause for row in rows),
        "layers": _counts(row.layer for row in rows),
    }
    if any(row.answer_no is not None for row in rows):
        summary["repeats"] = _repeats(rows)
    if any(row.probe is not None for row in rows):
        summary["probes"] = _counts(row.probe for row in rows)
    if mode != "none":
        summary["judge"] |= _judge(answered, seed, is_sampled, has_pass_rule)
        if is_part:
            summary["judge"]["part"] = {"n": summary["judge"]["drawn"], "of": len(answered)}
        summary["judge"]["score"] = _scores([row for row in answered if row.drawn], seed, score_range)
    return summary


def put(tree: Tree, name: str, estimate: Estimate | NoEstimate) -> None:
    """Set `name` to an estimate, or to null with the reason beside it as `name_reason`."""
    if isinstance(estimate, NoEstimate):
        tree[name] = None
        tree[f"{name}_reason"] = estimate.reason
    else:
        tree[name] = asdict(estimate)


def share(rows: Sequence[CaseRow], column: str, nothing: str) -> Estimate | NoEstimate:
    """The share of true among the rows where a true/false column is not empty."""
    return _share_of([row for row in rows if getattr(row, column) is not None], attrgetter(column), nothing)


def _share_of(rows: Sequence[CaseRow], holds: Callable[[CaseRow], Any], nothing: str) -> Estimate | NoEstimate:
    return clustered_rate([bool(holds(row)) for row in rows], [row.id for row in rows], nothing=nothing)


def _mean(rows: Sequence[CaseRow], value: Callable[[CaseRow], float], seed: int, nothing: str) -> Estimate | NoEstimate:
    """The mean over questions of the mean over a question's answers."""
    of_question: dict[str, list[float]] = {}
    for row in rows:
        of_question.setdefault(row.id, []).append(value(row))
    return mean_in_unit([math.fsum(v) / len(v) for v in of_question.values()], seed, nothing=nothing)


def _repeats(rows: Sequence[CaseRow]) -> Tree:
    """How the answers to one question differ: by rules, and by the judge."""
    of_question: dict[str, list[CaseRow]] = {}
    for row in rows:
        of_question.setdefault(row.id, []).append(row)
    tree: Tree = {"n_questions": len(of_question), "n_answers": len(rows)}
    for name, column in (("rules_differ", "rule_correct"), ("judge_differs", "judge_pass")):
        known = [{getattr(row, column) for row in of_one} - {None} for of_one in of_question.values()]
        decided = [values for values in known if values]
        put(tree, name, rate(sum(len(values) > 1 for values in decided), len(decided), nothing="nothing was decided"))
    return tree


def _counts(values: Iterable[str | None]) -> dict[str, int]:
    counted = Counter(value for value in values if value is not None)
    return dict(sorted(counted.items()))


def _by_type(rows: Sequence[CaseRow], is_sampled: bool) -> Tree:
    types: Tree = {}
    for name in dict.fromkeys(row.type or "untyped" for row in rows):
        of_type = [row for row in rows if (row.type or "untyped") == name]
        entry: Tree = {"n": len(of_type)}
        put(entry, "rules", share(of_type, "rule_correct", "no case of this type states an expectation"))
        put(entry, "judge", share(of_type, "judge_pass", "no case of this type has a decided pass"))
        put(entry, "end_to_end", _correct([row for row in of_type if row.drawn] if is_sampled else of_type))
        types[name] = entry
    return types


def _retrieval(answered: Sequence[CaseRow], k: int, seed: int) -> Tree:
    scored = [row for row in answered if row.hit is not None]
    tree: Tree = {
        "k": k,
        "n": len(scored),
        "n_excluded": len(answered) - len(scored),
        "n_duplicates": sum(row.n_duplicates or 0 for row in scored),
    }
    nothing = "no answered case has both relevant documents and contexts with ids"
    put(tree, "hit", share(scored, "hit", nothing))
    for column in ("recall", "mrr", "ndcg", "precision"):
        put(tree, column, _mean(scored, attrgetter(column), seed, nothing))
    return tree


def _rules(answered: Sequence[CaseRow]) -> Tree:
    tree: Tree = {}
    put(tree, "correct", share(answered, "rule_correct", "no answered case states an expectation"))
    put(tree, "faithful", share(answered, "faithful", "no answer states a key point of its case"))
    put(tree, "must_include", share(answered, "must_include_ok", "no answered case has must_include"))
    put(tree, "must_not_include", share(answered, "must_not_include_ok", "no answered case has must_not_include"))
    put(tree, "acceptable", share(answered, "acceptable_ok", "no answered case in scope has acceptable wordings"))
    stated = [row for row in answered if row.expect_refusal is not None and row.did_abstain is not None]
    nothing = "no answered case states whether a refusal is expected"
    put(tree, "refusal", _share_of(stated, lambda row: row.did_abstain == row.expect_refusal, nothing))
    checked = [row for row in answered if row.n_citations is not None]
    return tree | {
        "leaks": list(dict.fromkeys(row.id for row in answered if row.leak)),
        "n_leak_checked": sum(bool(row.leak_checked) for row in answered),
        "citations": {
            "dangling": sum(row.n_dangling_citations or 0 for row in checked),
            "checked": sum(row.n_citations or 0 for row in checked),
        },
    }


def _answers(answered: Sequence[CaseRow], seed: int) -> Tree:
    """What can be said of answers of which nothing is known: of production's, too. None of it is right or wrong."""
    stated = [row for row in answered if _states_something(row)]
    tree: Tree = {"n_without_expectation": len(answered) - len(stated)}
    put(tree, "declined", share(answered, "did_abstain", "no answer has a text"))
    known = [row for row in answered if row.n_contexts is not None]
    put(tree, "no_context", _share_of(known, lambda row: row.n_contexts == 0, "no answer says what was retrieved"))
    figures = [row for row in answered if row.n_unsupported_figures is not None]
    nothing = "no case without expectations has an answer and contexts with texts"
    put(tree, "unsupported_figures", _share_of(figures, attrgetter("n_unsupported_figures"), nothing))
    supported = [row for row in answered if row.lexical_support is not None]
    nothing = "no answer has contexts with texts"
    put(tree, "lexical_support", _mean(supported, attrgetter("lexical_support"), seed, nothing))
    tree["suspicious"] = list(dict.fromkeys(row.id for row in answered if row.suspicious))
    return tree


def _states_something(row: CaseRow) -> bool:
    """Whether a case states an expectation, beside which documents its tenant may see."""
    checks = (row.must_include_ok, row.must_not_include_ok, row.acceptable_ok, row.expect_refusal, row.hit)
    return any(check is not None for check in checks)


def _abstention(answered: Sequence[CaseRow]) -> Tree:
    """Expected against done, over the cases that state whether a refusal is expected."""
    pairs = Counter((row.expect_refusal, row.did_abstain) for row in answered)
    return {
        "should_and_did": pairs[True, True],
        "should_but_answered": pairs[True, False],
        "should_not_but_did": pairs[False, True],
        "should_not_and_answered": pairs[False, False],
        "unstated": sum(n for (expected, _), n in pairs.items() if expected is None),
        "unstated_and_did": pairs[None, True],
        "refused_then_answered": sum(bool(row.refused_then_answered) for row in answered),
        "flag_against_text": sum(bool(row.refusal_conflict) for row in answered),
    }


def _judge(answered: Sequence[CaseRow], seed: int, is_sampled: bool, has_pass_rule: bool) -> Tree:
    drawn = [row for row in answered if row.drawn]
    graded = [row for row in drawn if row.judge_pass is not None]
    unscored = [row for row in drawn if row.unscored_reason is not None]
    undecided = [row for row in drawn if row.undecided]
    tree: Tree = {"drawn": len(drawn), "graded": len(graded)}
    nothing = "no drawn case has a decided pass"
    put(tree, "pass", share(graded, "judge_pass", nothing))
    n_passed = sum(bool(row.judge_pass) for row in graded)
    n_open = len(undecided) + len(unscored)
    has_ends = bool(drawn) and has_pass_rule
    tree["pass_worst"] = n_passed / len(drawn) if has_ends else None
    tree["pass_best"] = (n_passed + n_open) / len(drawn) if has_ends else None
    for column in ("grounded", "complete", "should_abstain"):
        put(tree, column, share(drawn, column, "no drawn case has this field decided"))
    # A pass can be decided while `grounded` is not: such an answer counts neither as invented nor as supported.
    known = [row for row in graded if row.did_abstain or row.grounded is not None]
    claimed = [row for row in known if not row.did_abstain]
    has_grounded = any(row.grounded is not None for row in drawn)
    unknown = "no drawn case has this field decided" if graded and not has_grounded else None
    if unknown:
        known, claimed = [], []
    invented = _share_of(known, lambda row: not row.did_abstain and not row.grounded, unknown or nothing)
    put(tree, "fabrication", invented)
    put(tree, "correctness", _share_of(claimed, attrgetter("grounded"), unknown or "no graded case answered"))
    tree["undecided"] = len(undecided)
    tree["unscored"] = _counts(row.unscored_reason for row in unscored)
    put(tree, "flip_rate", share(drawn, "flipped", "no case has its first two repeats read"))
    put(tree, "alike", share(drawn, "alike", "no case has two replies"))
    put(tree, "unstable_share", share(drawn, "unstable", "no case has two repeats read"))
    expected = [row for row in drawn if row.should_abstain is not None and row.expect_refusal is not None]
    tree["expectation_conflict"] = sum(row.should_abstain != row.expect_refusal for row in expected)
    tree["sampled"] = {"n": len(drawn), "of": len(answered), "seed": seed} if is_sampled else None
    return tree


def _scores(drawn: Sequence[CaseRow], seed: int, score_range: tuple[int, int]) -> Tree | None:
    """Mean and histogram of the decided scores; the mean's interval is computed on the unit scale."""
    scored = [row for row in drawn if row.score is not None]
    if not scored:
        return None
    low, high = score_range

    def in_unit(row: CaseRow) -> float:
        return ((row.score or 0.0) - low) / (high - low)

    unit = _mean(scored, in_unit, seed, "no score")
    tree: Tree = {"histogram": _counts(f"{row.score:g}" for row in scored)}
    if isinstance(unit, Estimate):
        ends = [None if end is None else low + end * (high - low) for end in (unit.low, unit.high)]
        unit = Estimate(low + unit.value * (high - low), ends[0], ends[1], unit.level, unit.n, unit.method, unit.target)
    put(tree, "mean", unit)
    return tree


def _end_to_end(rows: Sequence[CaseRow], is_sampled: bool, is_part: bool) -> Tree:
    """Passed over decided; a case without an answer is wrong. With a judge sample the drawn cases stand for all."""
    tree: Tree = {"population": PART if is_part else DRAWN if is_sampled else "all cases"}
    kept = [row for row in rows if row.drawn] if is_sampled or is_part else list(rows)
    answered = sum(row.outcome != "no_answer" for row in rows)
    factor = answered / len(rows) if is_sampled and rows else 1.0
    correct = _correct(kept)
    put(tree, "correct", correct if isinstance(correct, NoEstimate) else scaled(correct, factor))
    n_passed = _n(kept, lambda row: row.outcome == "pass")
    n_open = _n(kept, lambda row: row.outcome in ("undecided", "unscored", "not_judged"))
    tree["worst"] = factor * n_passed / len(kept) if kept else None
    tree["best"] = factor * (n_passed + n_open) / len(kept) if kept else None
    tree |= {"n_passed": n_passed, "n_open": n_open, "n": len(kept)}
    return tree


def _correct(rows: Sequence[CaseRow]) -> Estimate | NoEstimate:
    decided = [row for row in rows if row.outcome in ("pass", "fail", "no_answer")]
    return _share_of(decided, lambda row: row.outcome == "pass", "no case has a decided outcome")


def _n(rows: Sequence[CaseRow], holds: Callable[[CaseRow], bool]) -> int:
    return sum(holds(row) for row in rows)
