"""What the kinds `report` and `injection` check: texts of other people on a page, and in a prompt.

Every page of the product that shows such a text is rendered, in both languages; every shipped prompt that does, too.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rag_judge.pipeline import RunRequest, World, run
from rag_judge.prompts import load_prompt, messages_for, pair_messages_for, shipped_folder
from rag_judge.records import Answer, CaseRow, Context
from rag_judge.records import Case as Question
from rag_judge.report.html import render_report
from rag_judge.review.html_sheet import render_html
from rag_judge.review.instructions import instructions_for
from rag_judge.settings import load_settings
from rag_judge.summary import summarise
from tests import test_report_pairs as pair_pages
from tests.case_adapters import Case, Skipped, first_difference
from tests.eval_sets import write_rows
from tests.report_pages import graded, judge, manifest, page_of
from tests.review_sheets import sheet_of, texts

LANGUAGES = ("en", "zh")
Pages = Iterator[str]

# --- report ----------------------------------------------------------------------------------------------------------

# Where a text of a case can stand, with that case and answer.
PLACES: Mapping[str, Callable[[str], tuple[Question, Answer]]] = {
    "answer": lambda text: (Question("q1", "?"), Answer("q1", text)),
    "question": lambda text: (Question("q1", text), Answer("q1", "It is so.")),
    "context": lambda text: (Question("q1", "?"), Answer("q1", "It is so.", (Context("d#1", text),))),
    "context_id": lambda text: (
        Question("q1", "?", None, {text: 1.0}),
        Answer("q1", "So.", (Context(text, "It is."),)),
    ),
    "id": lambda text: (Question(text, "?"), Answer(text, "It is so.")),
    "type": lambda text: (Question("q1", "?", text), Answer("q1", "It is so.")),
    "reference": lambda text: (Question("q1", "?", reference=text), Answer("q1", "It is so.")),
    "must_include": lambda text: (Question("q1", "?", must_include=((text,),)), Answer("q1", "It is so.")),
    "history": lambda text: (Question("q1", "?", history=(text,)), Answer("q1", "It is so.")),
    "tenant": lambda text: (Question("q1", "?", tenant=text), Answer("q1", "It is so.")),
    "citation": lambda text: (Question("q1", "?"), Answer("q1", "It is so.", (), (text,))),
    "error": lambda text: (Question("q1", "?"), Answer("q1", error=text)),
}
ALIASES = {
    "case_id": "id",
    "contexts": "context",
    "citations": "citation",
    "evidence": "reason",
    "model": "judge_model",
}
METRICS = ("recall", "mrr", "ndcg", "precision", "lexical_support", "score")


def check_report(case: Case, folder: Path) -> str | None:
    """`value` at `where` on every page that shows such a thing: what no page may hold, or the English one must."""
    expected = case["expect"]
    if not expected or expected.keys() - {"html_not_contains", "html_contains"}:
        return f"html_not_contains or html_contains is to be expected; found {sorted(expected)}"
    where = str(ALIASES.get(case["where"], case["where"]))
    pages = list(_pages(where, case["value"]))
    present = [text for text in expected.get("html_not_contains", ()) if any(text in page for page in pages)]
    missing = [text for text in expected.get("html_contains", ()) if text not in pages[0]]
    return f"present {present}, missing {missing}" if present or missing else None


def _pages(where: str, value: Any) -> Pages:
    """The pages with the value on them, the English page of a run first."""
    if where == "metric":
        yield from _pages_without(value)
    elif where == "embedded_json":
        yield from _pages_with_json(value)
    elif where in ("reason", "judge_model", "run_id", "system"):
        yield from _pages_made_of(where, value)
    elif where in PLACES:
        yield from _pages_of_a_case(*PLACES[where](value))
        if where in ("question", "answer", "context"):
            yield from _sheets(where, value)
    else:
        raise Skipped(f"report: a value at {where!r} is not known")


def _pages_of_a_case(question: Question, answer: Answer, **columns: Any) -> Pages:
    other = Answer(question.id, "It is not so.")
    for lang in LANGUAGES:
        outcome = "fail" if answer.error is None else "no_answer"
        yield page_of([graded(question.id, outcome, case=question, answer=answer, **columns)], lang)
        for a, b in ((answer, other), (other, answer)):
            yield pair_pages.html_of([pair_pages.pair(question.id, "a", case=question, a=a, b=b)], lang)


def _pages_made_of(where: str, value: str) -> Pages:
    """The value in what the judge said, or in what a manifest says of its run."""
    changes: Mapping[str, dict[str, Any]] = {
        "reason": {},
        "judge_model": {"judge": judge(model=value)},
        "run_id": {"run_id": value},
        "system": {"system": {value: value, "nested": {value: [value]}}},
    }
    made = changes[where]
    reasons: dict[str, Any] = {"reason_ab": value, "reason_ba": value} if where == "reason" else {}
    for lang in LANGUAGES:
        yield page_of([graded(evidence=value if where == "reason" else None)], lang, made=manifest(**made))
        yield pair_pages.html_of([pair_pages.pair(**reasons)], lang, made=pair_pages.compared(**made))


def _pages_with_json(value: str) -> Pages:
    """The value in everything that is, or is made from, JSON: settings of a system, further fields, a sheet's data."""
    for lang in LANGUAGES:
        made = manifest(system={"note": {"text": value}, value: [value, 1]})
        yield page_of([graded(other_fields=f'{{"tone": "{value}"}}')], lang, made=made)
    for where in ("question", "answer", "context"):
        yield from _sheets(where, value)


def _sheets(where: str, value: str) -> Pages:
    """The page that people judge on, which holds its texts as data of a script."""
    shown = {"question": texts(value), "answer": texts(answer=value), "context": texts(contexts=[(value, value)])}
    for lang in LANGUAGES:
        sheet = sheet_of([shown[where]], lang=lang, annotator=value)
        yield render_html(sheet, instructions_for(sheet.mode, sheet.fields, lang))


def _pages_without(value: float | None) -> Pages:
    """Pages of runs whose numbers are the value, and of runs with nothing to count at all."""
    for lang in LANGUAGES:
        yield page_of([graded(**dict.fromkeys(METRICS, value), hit=None if value is None else True)], lang)
        for mode in ("none", "passfail", "scale"):
            yield render_report(manifest(), summarise([], k=5, seed=0, mode=mode), [], n_not_passed=0, lang=lang)
        rows = [CaseRow("q1", None, "no_answer")]
        yield render_report(manifest(), summarise(rows, k=5, seed=0, mode="passfail"), [], n_not_passed=1, lang=lang)
        yield pair_pages.html_of([], lang)


# --- injection -------------------------------------------------------------------------------------------------------

OF_CASE = frozenset({"answer", "question", "context", "reference"})
HARMLESS = "It is so."


def check_injection(case: Case, folder: Path) -> str | None:
    """A text as `answer` (or question, context, reference) in every shipped prompt, and as the answer of a run."""
    expected = case["expect"]
    if not expected or expected.keys() - EXPECTATIONS.keys():
        return f"expected are some of {sorted(EXPECTATIONS)}; found {sorted(expected)}"
    if len(places := OF_CASE & case.keys()) != 1:
        raise Skipped(f"injection: one of {sorted(OF_CASE)} is looked at; found {sorted(places)}")
    (place,) = places
    found = {name: EXPECTATIONS[name](place, case[place]) for name in expected}
    return first_difference(
        *(f"{name}: found {found[name]}, expected {value}" for name, value in expected.items() if found[name] != value)
    )


def _prompts(place: str, text: str) -> list[str]:
    """The user's message of every shipped prompt in every language, with the text at its place."""
    question = Question("q1", text if place == "question" else "?", reference=text if place == "reference" else None)
    contexts = (Context("d#1", text if place == "context" else "It is so."),)
    given, other = Answer("q1", text if place == "answer" else HARMLESS, contexts), Answer("q1", "Or not.", ())
    found: list[Sequence[Mapping[str, str]]] = []
    for folder in sorted(path.parent for path in shipped_folder("judge_prompts").glob("*/prompt.toml")):
        for prompt in load_prompt(folder).values():
            if prompt.mode == "pairwise":
                found += [pair_messages_for(prompt, question, a, b, 0) for a, b in ((given, other), (other, given))]
            else:
                found.append(messages_for(prompt, question, given, 0))
    return [messages[-1]["content"] for messages in found]


def _is_enclosed(place: str, text: str) -> bool:
    """True when every prompt has as many marks as with a harmless text, and the text lies whole between two of them."""
    for prompt, plain in zip(_prompts(place, text), _prompts(place, HARMLESS), strict=True):
        opening = re.match(r"<<(\w+) ", prompt)
        usual = re.match(r"<<(\w+) ", plain)
        if opening is None or usual is None:
            return False
        if prompt.count(opening[1]) != plain.count(usual[1]):
            return False
        if not any(text in section for section in prompt.split(f"\n{opening[1]}>>")):
            return False
    return True


def _is_verbatim(place: str, text: str) -> bool:
    return all(text in prompt for prompt in _prompts(place, text))


def _is_flagged(place: str, text: str) -> bool:
    """True when a run on this answer lists its case, in its table and in its summary, and grades it as another."""
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary)
        cases = [{"id": f"q{i}", "question": text if place == "question" else "Is it?"} for i in range(2)]
        contexts = [{"id": "d", "text": text if place == "context" else "It is so."}]
        said = [text if place == "answer" else HARMLESS, HARMLESS]
        rows = [{"id": f"q{i}", "answer": answer, "contexts": contexts} for i, answer in enumerate(said)]
        settings = load_settings(None, {}, {"out": str(path / "runs"), "judge": "none"}, folder=None)
        files = write_rows(path / "cases.jsonl", cases), write_rows(path / "answers.jsonl", rows)
        ended = run(RunRequest(settings, *files), World({}, lambda: datetime.now(UTC), time.monotonic))
    flagged, other = ended.rows
    if (flagged.outcome, other.suspicious) != (other.outcome, None):
        raise RuntimeError(f"a flag changed an outcome, or a harmless answer has one: {flagged}, {other}")
    if (flagged.suspicious is not None) != (flagged.id in ended.summary["answers"]["suspicious"]):
        raise RuntimeError(f"table and summary differ: {flagged}, {ended.summary['answers']}")
    return flagged.suspicious is not None


EXPECTATIONS: Mapping[str, Callable[[str, str], bool]] = {
    "data_cannot_close_its_section": _is_enclosed,
    "rendered_verbatim": _is_verbatim,
    "flag_for_review": _is_flagged,
}
