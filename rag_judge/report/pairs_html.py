"""Manifest, summary and pairs of a comparison → its `report.html`, one page that opens offline. Nothing is graded.

It is built like the page of a run (`html`), from the same parts and with the same care: every text is data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_judge.records import Answer, Case, PairRow
from rag_judge.report.html import ShownContext, expected, page_of, shown_contexts
from rag_judge.report.html_facts import Pairs, about, inputs_of, made_of, value_text
from rag_judge.report.html_numbers import Metric, estimate_text, intervals, missing, percent, sentence
from rag_judge.report.html_terms import COLUMNS
from rag_judge.report.html_words import FACTS, UNSCORED, WORDS
from rag_judge.report.pairs_words import ENDS, PAGE_WORDS, PAIR_METRICS, PAIR_OUTCOMES

Tree = Mapping[str, Any]

HEADLINES = ("win_rate_a", "consistency", "first_position", "flip_rate")
# The order of the page: what was won, then what the orders disagree on, then what has no verdict.
OUTCOMES_IN_ORDER = ("a", "b", "inconsistent", "undecided", "unscored", "tie")
TYPE_COUNTS = ("a_wins", "b_wins", "ties", "inconsistent")
SMALLEST_P_SHOWN = 0.001


@dataclass(frozen=True, slots=True)
class ReportPair:
    """One pair as the page shows it: its row, its question, and both answers."""

    row: PairRow
    case: Case
    answer_a: Answer
    answer_b: Answer


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """One side of a pair."""

    answer: Answer
    n_characters: int
    contexts: Sequence[ShownContext]
    n_contexts_left: int


@dataclass(frozen=True, slots=True)
class ShownOrder:
    """What the judge said with one of the answers first; `places` says whom it means by A and B."""

    heading: str
    cells: Pairs
    reason: str | None
    places: str


@dataclass(frozen=True, slots=True)
class ShownPair:
    """Everything the page says of one pair."""

    given: ReportPair
    outcome: str
    unscored: str | None
    expected: Sequence[tuple[str, Sequence[str]]]
    a: ShownAnswer
    b: ShownAnswer
    ab: ShownOrder
    ba: ShownOrder


def render_pairs_report(
    manifest: Mapping[str, Any], summary: Mapping[str, Any], pairs: Sequence[ReportPair], *, lang: str
) -> str:
    """The page as HTML. `pairs` are those shown, put in the page's order here; the summary counts all of them.

    The text holds no lone surrogate and can be written as UTF-8. Raises KeyError for a language without wording.
    """
    words = page_words(lang)
    numbers = summary["pairwise"]
    metrics = _metrics(numbers, lang)
    in_order = sorted(pairs, key=lambda given: place_on_page(given.row))
    n_ties_shown = sum(given.row.outcome == "tie" for given in pairs)
    factors, factor_notes = _factors(manifest, lang)
    return page_of(
        "pairs.html.j2",
        manifest,
        words,
        lang,
        about=[(words[side], _run_of(manifest, side, lang)) for side in ("a", "b")] + about(manifest, summary, lang),
        factors=factors,
        factor_notes=factor_notes,
        pairwise=numbers,
        ends=[(*ENDS[lang][name], n) for name, n in _ends(numbers).items()],
        end_notes=_end_notes(summary, lang),
        headlines=[metric for metric in metrics if metric.name in HEADLINES],
        metrics=metrics,
        levels=", ".join(dict.fromkeys(percent(level) for level, _, _ in intervals(numbers))),
        types=_types(numbers, lang),
        type_columns=[words["pairs_counted"], *(_end_label(name, lang) for name in TYPE_COUNTS), words["other_ends"]],
        pairs=[_shown(given, manifest.get("match", "exact"), lang) for given in in_order],
        n_more=numbers["pairs"] - len(pairs),
        n_more_ties=numbers["ties"] - n_ties_shown,
        made=_made(manifest, numbers, lang),
    )


def page_words(lang: str) -> dict[str, str]:
    """The words of the page: those of every page, and over them those of a comparison."""
    return {**WORDS[lang], **PAGE_WORDS[lang]}


def place_on_page(row: PairRow) -> int:
    """The place of a pair's kind on the page, for sorting before a list is cut."""
    return OUTCOMES_IN_ORDER.index(row.outcome)


def _say(lang: str, key: str, **values: object) -> str:
    return PAGE_WORDS[lang][key].format_map(values)


# --- what is compared ---------------------------------------------------------------------------------------------


def _side(manifest: Tree, side: str) -> Tree:
    found: Tree = (manifest.get("pair") or {}).get(side) or {}
    return found


def _run_of(manifest: Tree, side: str, lang: str) -> str:
    run = _side(manifest, side)
    names = dict.fromkeys(value_text(run[key], lang) for key in ("run_id", "name") if run.get(key))
    return " · ".join(names) or WORDS[lang]["not_recorded"]


def _factors(manifest: Tree, lang: str) -> tuple[list[tuple[str, str, str]], list[str]]:
    """The recorded factors that differ, as (name, A's value, B's value), and what is to be said of the others."""
    words = page_words(lang)
    a, b = (_side(manifest, side).get("system") or {} for side in ("a", "b"))
    values = {str(name): (_exact(a.get(name)), _exact(b.get(name))) for name in dict.fromkeys((*a, *b))}
    differ = [(name, *both) for name, both in values.items() if both[0] != both[1]]
    n_same = len(values) - len(differ)
    notes = []
    if not values:
        notes.append(words["nothing_recorded"])
    elif not differ:
        notes.append(_say(lang, "none_differs", n=n_same))
    elif n_same:
        notes.append(_say(lang, "same_factors", n=n_same))
    eval_sets = {(_side(manifest, side).get("eval_set") or {}).get("sha256") for side in ("a", "b")}
    if len(eval_sets - {None}) > 1:
        notes.append(words["other_questions"])
    return [(name, left or words["unknown"], right or words["unknown"]) for name, left, right in differ], notes


def _exact(value: object) -> str:
    """A factor's value unrounded, so that what differs looks different; empty for what was not recorded."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _made(manifest: Tree, numbers: Tree, lang: str) -> list[tuple[str, Pairs]]:
    """What the comparison was made of and with, each of its two runs after the comparison itself."""
    words, names = page_words(lang), FACTS[lang]
    made = made_of(manifest, lang)
    for side in ("a", "b"):
        if run := _side(manifest, side):
            known = [(names[key], value_text(run.get(key), lang)) for key in ("run_id", "name")]
            made.append((words[side], [*known, *inputs_of(run, lang), *_system(run, lang)]))
    how = [
        (words["interval"].format(level=percent(level), target=words.get(target, target)), sentence(method, lang))
        for level, target, method in intervals(numbers)
    ]
    return [*made, (words["intervals"], how)] if how else made


def _system(run: Tree, lang: str) -> Pairs:
    words = page_words(lang)
    factors = [(str(name), _exact(value) or words["unknown"]) for name, value in (run.get("system") or {}).items()]
    return factors or [(words["system"], words["factors_unknown"])]


# --- the numbers --------------------------------------------------------------------------------------------------


def _ends(numbers: Tree) -> dict[str, int]:
    """How many pairs ended in which way; the ways exclude each other and sum up to all pairs."""
    first = numbers["first_position"]
    n_first = round(first["value"] * first["n"]) if first else 0
    return {
        "a_wins": numbers["a_wins"],
        "b_wins": numbers["b_wins"],
        "ties": numbers["ties"],
        "first_twice": n_first,
        "second_twice": numbers["n_reversals"] - n_first,
        "leans_first": numbers["leans_first"],
        "leans_second": numbers["leans_second"],
        "undecided": numbers["undecided"],
        "unscored": numbers["unscored"],
    }


def _end_label(name: str, lang: str) -> str:
    return PAGE_WORDS[lang][name] if name == "inconsistent" else ENDS[lang][name][0]


def _end_notes(summary: Tree, lang: str) -> list[str]:
    numbers, judge = summary["pairwise"], summary["judge"]
    notes = []
    if reasons := numbers["unscored_reasons"]:
        by_reason = " · ".join(f"{UNSCORED[lang].get(name, name)} {n}" for name, n in reasons.items())
        notes.append(f"{ENDS[lang]['unscored'][0]}: {by_reason}")
    if n_left := summary["n_cases"] - numbers["pairs"]:
        n_errors, n_bare = summary["n_errors"], summary["n_without_contexts"]
        counts = {"n": n_left, "n_cases": summary["n_cases"], "n_errors": n_errors, "n_bare": n_bare}
        notes.append(_say(lang, "not_paired", n_rest=n_left - n_errors - n_bare, **counts, **summary["no_answer"]))
    if judge.get("sampled"):
        notes.append(_say(lang, "pairs_sampled", **judge["sampled"]))
    return notes


def _metrics(numbers: Tree, lang: str) -> list[Metric]:
    """Every number of the comparison with what it can and cannot tell, in the order of the page."""
    ends, length = _ends(numbers), numbers["length"]
    first, ratio = numbers["first_position"], length["median_ratio"]
    n_half = numbers["ties"] + numbers["inconsistent"]
    won = _say(lang, "half_wins", a_wins=numbers["a_wins"], b_wins=numbers["b_wins"], n=n_half)
    n_first = _say(lang, "n_first", n=ends["first_twice"], of=first["n"]) if first else None
    median = None if ratio is None else _say(lang, "median_ratio", ratio=f"{ratio:.2f}")
    leans = _say(lang, "leans", first=numbers["leans_first"], second=numbers["leans_second"])
    return [
        _metric(numbers, "win_rate_a", lang, won if numbers["valid"] else None),
        _metric(numbers, "consistency", lang),
        _metric(numbers, "first_position", lang, n_first, _p(numbers["first_position_p"], lang)),
        Metric("leans", *PAIR_METRICS[lang]["leans"], leans),
        _metric(length, "longer_won", lang, _p(length["longer_won_p"], lang), median),
        _metric(numbers, "flip_rate", lang),
    ]


def _metric(tree: Tree, name: str, lang: str, *notes: str | None) -> Metric:
    """The metric of an estimate, or of the reason why there is none."""
    label, says = PAIR_METRICS[lang][name]
    estimate = tree[name]
    if estimate is None:
        reason = sentence(tree.get(f"{name}_reason") or "", lang)
        return Metric(name, label, says, missing(reason, lang), is_missing=True)
    bar = None
    if estimate["low"] is not None and estimate["high"] is not None:
        bar = (100 * estimate["low"], 100 * estimate["value"], 100 * estimate["high"])
    said = tuple(note for note in notes if note is not None)
    return Metric(name, label, says, estimate_text(tree, name, lang), bar, said)


def _p(value: float | None, lang: str) -> str | None:
    if value is None:
        return None
    shown = f"p < {SMALLEST_P_SHOWN}" if value < SMALLEST_P_SHOWN else f"p = {value:.3g}"
    return _say(lang, "p", p=shown)


def _types(numbers: Tree, lang: str) -> list[tuple[str, Sequence[int]]]:
    """Per type: the number of pairs, how they ended, and how many have no verdict."""
    types: list[tuple[str, Sequence[int]]] = []
    for name, entry in numbers["by_type"].items():
        counts = [entry[key] for key in TYPE_COUNTS]
        shown = WORDS[lang]["untyped"] if name == "untyped" else name
        types.append((shown, [entry["n"], *counts, entry["n"] - sum(counts)]))
    return types


# --- one pair -----------------------------------------------------------------------------------------------------


def _shown(given: ReportPair, match: str, lang: str) -> ShownPair:
    row, case = given.row, given.case
    reason = row.unscored_reason
    return ShownPair(
        given=given,
        outcome=PAIR_OUTCOMES[lang][row.outcome],
        unscored=None if reason is None else UNSCORED[lang].get(reason, reason),
        expected=expected(case, lang),
        a=_answer(case, given.answer_a, row.n_characters_a, match),
        b=_answer(case, given.answer_b, row.n_characters_b, match),
        ab=_order(row, "ab", lang),
        ba=_order(row, "ba", lang),
    )


def _answer(case: Case, answer: Answer, n_characters: int, match: str) -> ShownAnswer:
    contexts, n_left = shown_contexts(case, answer, match, has_leak=False)
    return ShownAnswer(answer, n_characters, contexts, n_left)


def _order(row: PairRow, order: str, lang: str) -> ShownOrder:
    words, names = page_words(lang), COLUMNS[lang]
    winner, flipped = getattr(row, f"order_{order}"), getattr(row, f"flipped_{order}")
    cells = [
        (words["winner"], words["no_majority"] if winner is None else words.get(winner, winner)),
        (names["n_votes"], str(getattr(row, f"n_votes_{order}"))),
        (names["n_asked"], str(getattr(row, f"n_asked_{order}"))),
        (names["n_planned"], str(row.n_planned)),
    ]
    if flipped is not None:
        cells.append((names["flipped"], value_text(flipped, lang)))
    return ShownOrder(words[f"order_{order}"], cells, getattr(row, f"reason_{order}"), words[f"places_{order}"])
