"""What is wrong or weak in an eval set, as findings, before anything is asked. Nothing here stops a run.

Here are the checks of the set as a whole and of finished runs; those of a single case stand in `lint_cases` and
`lint_corpus`, the words in `lint_words`. An error makes a case wrong; everything else is advice.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_judge.cases import CaseSet, case_from_row, question_hash
from rag_judge.corpus import Corpus, PairIndex
from rag_judge.errors import InputError
from rag_judge.estimates import rate
from rag_judge.likeness import bare, nearly_alike
from rag_judge.lint_cases import (
    check_case,
    expects_refusal,
    is_in_other_language,
    is_in_scope,
    is_short,
    key_points,
    relevant_ids,
)
from rag_judge.lint_corpus import CorpusChecks
from rag_judge.lint_words import Noted, Severity, sentences
from rag_judge.records import Case, NoEstimate
from rag_judge.rows import RowFile
from rag_judge.text import fold

if TYPE_CHECKING:
    import pandas as pd

LEAST_OUT_OF_SCOPE = 0.2  # share of the cases
LEAST_OF_TYPE = 5  # cases
COMMON = 0.2  # share of other cases, or of chunks, from which on a point tells nothing
N_TYPES_NAMED = 10
LOOKED_AT = ("id", "outcome", "flipped", "judges_disagree", "question_sha256")  # columns of a run's cases
DECIDED = ("pass", "fail", "undecided")
FEWEST_COMMON = 4  # of them, so that a small set or corpus is not accused


@dataclass(frozen=True, slots=True)
class Finding:
    """One weakness of an eval set. Without a case it is of the set as a whole.

    `what` may hold control characters of the user's file; whoever prints it takes them out.
    """

    code: str
    severity: Severity
    case_id: str | None
    line: int | None
    what: str
    why: str
    mend: str


class Placed(NamedTuple):
    """A case and its line in the user's file."""

    case: Case
    line: int


def lint(cases: CaseSet, corpus: Corpus | None = None, *, half_width: float = 0.1, lang: str = "en") -> list[Finding]:
    """The findings on an eval set, those of the whole set first, then by line.

    `half_width` is the wished half width of the interval of a rate of 80 %. Raises InputError for one outside (0, 0.5).
    """
    if not 0 < half_width < 0.5:
        raise InputError(f"--half-width: found {half_width}, expected a number above 0 and below 0.5, such as 0.1")
    placed = _placed(cases)
    found = [_finding(noted, None, lang) for noted in _of_the_set(placed, corpus, half_width)]
    found += [_finding(noted, placed[place], lang) for place, noted in _of_cases(placed, corpus)]
    return in_order(found)


def _finding(noted: Noted, placed: Placed | None, lang: str) -> Finding:
    case_id, line = (None, None) if placed is None else (placed.case.id, placed.line)
    return Finding(noted.code, noted.severity, case_id, line, *sentences(noted, lang))


def _placed(cases: CaseSet) -> list[Placed]:
    with RowFile(cases.path, unique_keys=True) as rows:  # a set of cases keeps no lines
        return [Placed(case_from_row(row), row.line) for row in rows]


# --- the set as a whole ---------------------------------------------------------------------------------------------


def _of_the_set(placed: Sequence[Placed], corpus: Corpus | None, half_width: float) -> Iterator[Noted]:
    cases = [case for case, _ in placed]
    n, needed = len(cases), _cases_needed(half_width)
    if n < needed:
        widths = {"width": f"{100 * _half_width(round(0.8 * n), n):.3g}", "wished": f"{100 * half_width:.3g}"}
        yield Noted("too-few-cases", "advice", values={"n": n, "needed": needed, **widths})
    n_out = sum(not is_in_scope(case) for case in cases)
    if n_out < LEAST_OUT_OF_SCOPE * n:
        share = f"{100 * LEAST_OUT_OF_SCOPE:g}"
        yield Noted("few-out-of-scope", "advice", values={"n": n_out, "of": n, "percent": share})
    has_tenants = any(case.tenant is not None for case in cases) or any(
        chunk.tenant is not None for chunk in corpus or ()
    )
    if has_tenants and not any(case.forbidden_docs and case.expect_refusal for case in cases):
        yield Noted("no-cross-tenant", "advice")
    if not any(case.red_line for case in cases):
        yield Noted("no-red-line", "advice")
    types = Counter(case.type for case in cases if case.type is not None)
    few = tuple(f"{name}: {count}" for name, count in types.items() if count < LEAST_OF_TYPE)
    if few:
        more = ("…",) if len(few) > N_TYPES_NAMED else ()
        yield Noted(
            "type-under-covered", "advice", values={"types": few[:N_TYPES_NAMED] + more, "least": LEAST_OF_TYPE}
        )


def _cases_needed(half_width: float) -> int:
    """The least number of cases, in steps of five, at which a rate of 80 % is known as closely as wished."""
    fives = range(1, 10**15)
    return 5 * fives[bisect_left(fives, True, key=lambda m: _half_width(4 * m, 5 * m) <= half_width)]


def _half_width(n_true: int, n: int) -> float:
    found = rate(n_true, n)
    if isinstance(found, NoEstimate) or found.low is None or found.high is None:
        return 1.0
    return (found.high - found.low) / 2


# --- each case, alone and among the others --------------------------------------------------------------------------


def _of_cases(placed: Sequence[Placed], corpus: Corpus | None) -> Iterator[tuple[int, Noted]]:
    """What is to be said of each case, with its place in the set."""
    checks = None if corpus is None else CorpusChecks(corpus)
    for place, (case, _) in enumerate(placed):
        yield from ((place, noted) for noted in check_case(case))
        texts: list[str] = []
        if checks is not None and corpus is not None:
            yield from ((place, noted) for noted in checks.check(case))
            texts = [corpus.text_of(chunk) for chunk in checks.relevant_chunks(case)]
        if is_in_other_language(case, texts):
            yield place, Noted("language-mix", "advice")
    yield from _repeated(placed)
    yield from _common_points([case for case, _ in placed], corpus)


def _repeated(placed: Sequence[Placed]) -> Iterator[tuple[int, Noted]]:
    """Questions that are asked twice, or nearly so, of the same tenant after the same turns."""
    questions = [bare(case.question) for case, _ in placed]
    settings = [(case.tenant, json.dumps(case.history, sort_keys=True)) for case, _ in placed]
    firsts: dict[Hashable, int] = {}
    for place, key in enumerate(zip(questions, settings, strict=True)):
        first = firsts.setdefault(key, place)
        if first == place:
            continue
        yield place, Noted("duplicate-question", "advice", values=_named(placed[first]))
        if {expects_refusal(placed[first].case), expects_refusal(placed[place].case)} == {True, False}:
            yield place, Noted("contradictory-expectation", "error", "twins", _named(placed[first]))
    kept = list(firsts.values())

    def may_be_same(one: int, other: int) -> bool:
        at, then = kept[one], kept[other]
        return settings[at] == settings[then] and _may_want_the_same(placed[at].case, placed[then].case)

    for later, earlier in nearly_alike([questions[place] for place in kept], may_be_same).items():
        yield kept[later], Noted("near-duplicate-question", "advice", values=_named(placed[kept[earlier]]))


def _named(placed: Placed) -> dict[str, Any]:
    return {"other": placed.case.id, "other_line": placed.line}


def _may_want_the_same(one: Case, other: Case) -> bool:
    """False where two cases want different documents, points or behaviour: a contrast is no repetition."""
    behaviours = [{expected} - {None} for expected in (expects_refusal(one), expects_refusal(other))]
    pairs: list[tuple[set[Any], set[Any]]] = [
        (set(relevant_ids(one)), set(relevant_ids(other))),
        ({fold(point) for point in key_points(one)}, {fold(point) for point in key_points(other)}),
        (behaviours[0], behaviours[1]),
    ]
    return not any(first and second and first.isdisjoint(second) for first, second in pairs)


def _common_points(cases: Sequence[Case], corpus: Corpus | None) -> Iterator[tuple[int, Noted]]:
    """Points so common that they tell no answer from another."""
    wordings = [(key_points(case), case.acceptable) if is_in_scope(case) else ([], ()) for case in cases]
    texts = ["\0".join(fold(wording) for wording in (*points, *accepted)) for points, accepted in wordings]
    texts = [text for text in texts if text]
    index = PairIndex(texts)
    most_cases = 1 + max(COMMON * (len(texts) - 1), FEWEST_COMMON - 1)
    most_chunks = 0 if corpus is None else max(COMMON * len(corpus), FEWEST_COMMON - 1)

    @cache
    def fault(folded: str) -> str:
        if index.is_common(folded, most_cases):
            return "common"
        return "everywhere" if corpus is not None and corpus.is_common(folded, most_chunks) else ""

    for place, (points, accepted) in enumerate(wordings):
        for code, said in (("vague-point", points), ("vague-acceptable", accepted)):
            faults = [(wording, fault(fold(wording))) for wording in said if not is_short(wording)]
            for name in ("common", "everywhere"):
                common = tuple(wording for wording, its in faults if its == name)
                if common:
                    yield place, Noted(code, "advice", name, {"wordings": common, "percent": f"{100 * COMMON:g}"})


# --- after runs -----------------------------------------------------------------------------------------------------


def lint_runs(
    tables: Sequence[pd.DataFrame],
    cases: CaseSet | None = None,
    *,
    gradings: Sequence[Hashable] | None = None,
    lang: str = "en",
) -> list[Finding]:
    """The findings on an eval set that finished runs show; `tables` are their cases, as `read_run` gives them.

    With `cases`, the findings have lines, and rows of other questions are left out (an id may have been given to a new
    one). `gradings` says, a value a table, which runs are of the same system, answers and judge: only these can be
    flaky. Without it, all are.
    """
    lines = None if cases is None else {case.id: (line, question_hash(case)) for case, line in _placed(cases)}
    runs = [_rows_of(table, lines) for table in tables]
    found = []
    if runs and all(rows and all(row["outcome"] == "pass" for row in rows.values()) for rows in runs):
        found.append(_finding(Noted("saturated", "advice", values={"n": len(runs)}), None, lang))
    for case_id, noted in (*_flaky(runs, gradings), *_disputed(runs)):
        line = None if lines is None else lines[case_id][0]
        found.append(replace(_finding(noted, None, lang), case_id=case_id, line=line))
    return in_order(found)


def in_order(findings: Sequence[Finding]) -> list[Finding]:
    """The findings as they are shown: those of the whole set first, then by line; else as they were found."""
    return sorted(findings, key=lambda found: (found.case_id is not None, found.line or 0))


def grading_of(manifest: Mapping[str, Any]) -> str:
    """What is equal for two runs of the same system and answers, graded by the same judges with the same prompts."""
    judge = manifest["judge"] or {}
    judges = [judge.get("model"), *(member.get("model") for member in judge.get("panel") or ())]
    answers = manifest["answers"].get("sha256")
    return json.dumps([manifest["system"], answers, manifest["prompts"], judges, manifest["repeats"]], sort_keys=True)


def _rows_of(table: pd.DataFrame, lines: Mapping[str, tuple[int, str]] | None) -> dict[str, dict[str, Any]]:
    """The rows of one run by id, of the cells that are looked at; None for an empty one."""
    cells = table[[name for name in LOOKED_AT if name in table.columns]]
    rows = cells.astype(object).where(cells.notna(), None).to_dict("records")
    asked = {case_id: question for case_id, (_, question) in (lines or {}).items()}
    return {
        str(row["id"]): {str(name): value for name, value in row.items()}
        for row in rows
        if lines is None or (row["id"] in asked and row.get("question_sha256") in (None, asked[row["id"]]))
    }


def _flaky(
    runs: Sequence[Mapping[str, Mapping[str, Any]]], gradings: Sequence[Hashable] | None
) -> Iterator[tuple[str, Noted]]:
    """Cases that were decided otherwise in another run of the same grading; what was not decided tells nothing."""
    ended: dict[tuple[str, Hashable], list[str]] = {}
    for run, grading in zip(runs, gradings or [None] * len(runs), strict=True):
        for case_id, row in run.items():
            if row["outcome"] in DECIDED:
                ended.setdefault((case_id, grading), []).append(row["outcome"])
    told = set()
    for (case_id, _), outcomes in ended.items():
        if len(set(outcomes)) > 1 and case_id not in told:
            told.add(case_id)
            yield case_id, Noted("flaky", "advice", values={"outcomes": ", ".join(outcomes)})


def _disputed(runs: Sequence[Mapping[str, Mapping[str, Any]]]) -> Iterator[tuple[str, Noted]]:
    for case_id in dict.fromkeys(case_id for run in runs for case_id in run):
        rows = [run[case_id] for run in runs if case_id in run]
        for column, fault in (("judges_disagree", "judges"), ("flipped", "repeats")):
            if any(row.get(column) for row in rows):
                yield case_id, Noted("disputed", "advice", fault)
                break
