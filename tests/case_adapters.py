"""What the kinds of case files check on the product's pure functions: an adapter a kind, and how values are compared.

An adapter gets a case and the folder of its file, and returns None when the case holds, else what differs; it raises
`Skipped` for what the product cannot do yet. Kinds that need a server and a run are in `case_adapters_runs`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from rag_judge.addresses import endpoint_url
from rag_judge.answers import answer_from_row
from rag_judge.cases import CaseSet
from rag_judge.errors import InputError
from rag_judge.estimates import mean_in_unit
from rag_judge.journal import Journal
from rag_judge.pairs import pair_row, summarise_pairs
from rag_judge.prompts import render_text
from rag_judge.records import Answer, CaseRow, Estimate, PairOutcome, PairRow, Unscored, Verdict, VerdictField
from rag_judge.records import Case as Question
from rag_judge.refusals import abstention
from rag_judge.responses import Accepted, CaseRefused, FallBack, RunRefused, TryAgain, meaning_of
from rag_judge.retrieval import score_ranking
from rag_judge.rows import RowFile
from rag_judge.summary import summarise
from rag_judge.verdicts import read_body, read_verdict
from rag_judge.votes import decide

FIELDS: Mapping[str, tuple[VerdictField, ...]] = {
    "passfail": tuple(VerdictField(name, "boolean") for name in ("grounded", "complete", "should_abstain")),
    "scale": (VerdictField("score", "score"),),
    "pairwise": (VerdictField("winner", "choice", ("A", "B", "tie")),),
}
Case = Mapping[str, Any]
NOT_BUILT = "not built yet"


class Skipped(Exception):
    """The product cannot do this kind yet."""


def differs(found: Any, expected: Any, tolerance: float = 1e-4) -> str | None:
    """None when they are equal, numbers within the tolerance; else what was found and what was expected."""
    same = found == expected and isinstance(found, bool) == isinstance(expected, bool)
    if isinstance(found, int | float) and isinstance(expected, int | float):
        same = abs(found - expected) <= tolerance
    return None if same else f"found {found!r}, expected {expected!r}"


def first_difference(*differences: str | None) -> str | None:
    """The first difference; None when there is none."""
    return next((difference for difference in differences if difference is not None), None)


def none_if_one_holds(differences: list[str | None]) -> str | None:
    """None when one of several permitted results holds."""
    return None if None in differences else differences[0]


# --- one adapter a kind ----------------------------------------------------------------------------------------------


def check_verdict(case: Case, folder: Path) -> str | None:
    """`raw` is the assistant's text or a whole chat completion."""
    expected = case["expect"]
    found = read_verdict(case["raw"], FIELDS[case["mode"]])
    status = "ok" if isinstance(found, Verdict) else "refused" if found.reason == "refused" else "invalid"
    if isinstance(found, Unscored) and found.reason == "content_filter":
        status = "refused"
    if status not in {expected["status"], *expected.get("alt_status", [])}:
        return f"found {status} ({found}), expected {expected['status']}"
    if not isinstance(found, Verdict):
        return None
    known = {**found.values, "reason": found.reason}
    return first_difference(
        *(differs(known.get(n), v) for n, v in expected.items() if n not in ("status", "alt_status"))
    )


def check_dataset(case: Case, folder: Path) -> str | None:
    """`file` is read as an eval set; a load gives ids in order and values, an error mentions what it is about."""
    path = folder / case["file"]
    wanted = [case["expect"], *([case["expect"]["or"]] if "or" in case["expect"] else [])]
    try:
        with closing(CaseSet(path)) as cases:
            ids = list(cases.offsets)
        with RowFile(path) as rows:
            answers = {str(row.fields["id"]): answer_from_row(row) for row in rows}
    except InputError as error:
        return none_if_one_holds([_error_differs(str(error), want) for want in wanted])
    differences: list[str | None] = []
    for want in wanted:
        if want["result"] != "load":
            differences.append("loaded, expected an error")
            continue
        values = [
            differs(getattr(answers[i], name, None), value)
            for i, fields in want.get("values", {}).items()
            for name, value in fields.items()
        ]
        carriage = "a value ends in CR" if any((a.answer or "").endswith("\r") for a in answers.values()) else None
        differences.append(first_difference(differs(ids, want["ids"]), carriage, *values))
    return none_if_one_holds(differences)


def _error_differs(message: str, want: Mapping[str, Any]) -> str | None:
    if want["result"] != "error":
        return f"error {message!r}, expected to load"
    missing = [text for text in want["mentions"] if text.lower() not in message.lower()]
    return f"the error {message!r} does not mention {missing}" if missing else None


def check_metrics(case: Case, folder: Path) -> str | None:
    """A ranking, gold ids and k, or a list of per-question values to be averaged."""
    expected = case["expect"]
    if "items" in case:
        values = [item["recall"] for item in case["items"] if item["recall"] is not None]
        mean = mean_in_unit(values, seed=0)
        value = mean.value if isinstance(mean, Estimate) else None
        return first_difference(
            differs(value, expected["mean_recall"]),
            differs(len(values), expected["n"]),
            differs(len(case["items"]) - len(values), expected["not_applicable"]),
        )
    level = "document" if case.get("level") == "doc" else "exact"
    qrels = dict.fromkeys((str(doc) for doc in case["relevant"]), 1.0)
    scores = score_ranking([str(doc) for doc in case["retrieved"]], qrels, case["k"], level)  # type: ignore[arg-type]
    found = {"hit": None, "recall": None, "rr": None}
    if scores is not None:
        found = {"hit": int(scores.hit), "recall": scores.recall, "rr": scores.mrr}  # type: ignore[dict-item]
    return first_difference(*(differs(found[name], expected[name]) for name in found if name in expected))


def check_aggregate(case: Case, folder: Path) -> str | None:
    """Majorities over planned repeats, means with their bounds, the table of declining, pairs in both orders."""
    kind, expected = case["kind"], case["expect"]
    if kind == "majority":
        return _majority_differs(case["votes"], expected["result"])
    if kind == "mean":
        return _mean_differs(case["items"], expected)
    if kind == "swap":
        return _swap_differs(case["first"], case["second"], expected)
    if kind == "winrate":
        return _win_rate_differs(case, expected)
    if kind == "abstention":
        rows = [
            CaseRow(str(i), None, "not_judged", did_abstain=item["declined"], expect_refusal=item["should_abstain"])
            for i, item in enumerate(case["items"])
        ]
        table = summarise(rows, k=5, seed=0, mode="none")["abstention"]
        names = {
            "right_decline": "should_and_did",
            "unsupported_answer": "should_but_answered",
            "over_refusal": "should_not_but_did",
            "right_answer_attempt": "should_not_and_answered",
        }
        return first_difference(*(differs(table[names[name]], value) for name, value in expected.items()))
    raise Skipped(f"aggregate, {kind}: {NOT_BUILT}")


def _majority_differs(votes: list[Any], expected: Any) -> str | None:
    fields = (VerdictField("grounded", "boolean"),)
    read = [Unscored("unreadable") if v == "invalid" else Verdict({"grounded": v}) for v in votes]
    decision = decide(read, len(votes), fields, None)
    value = decision.values["grounded"]
    found = "invalid" if decision.unscored else "undecided" if value is None else value
    return differs(found, expected)


def _mean_differs(items: list[Any], expected: Mapping[str, Any]) -> str | None:
    """A run whose cases pass, fail or are unscored, as the summary reports it."""
    rows = [
        CaseRow(str(i), None, "unscored", did_abstain=False, drawn=True, n_votes=0, unscored_reason="unreadable")
        if item == "invalid"
        else CaseRow(
            str(i), None, "pass", did_abstain=False, drawn=True, n_votes=1, grounded=True, judge_pass=bool(item)
        )
        for i, item in enumerate(items)
    ]
    judge = summarise(rows, k=5, seed=0, mode="passfail")["judge"]
    value = None if judge["pass"] is None else judge["pass"]["value"]
    checks = [differs(value, expected["mean"]), differs(judge["graded"], expected["graded"])]
    checks.append(differs(judge["drawn"], expected["total"]))
    if "bounds" in expected:
        checks += [
            differs(judge["pass_worst"], expected["bounds"][0]),
            differs(judge["pass_best"], expected["bounds"][1]),
        ]
    return first_difference(*checks)


def _swap_differs(first: Mapping[str, Any], second: Mapping[str, Any], expected: Mapping[str, Any]) -> str | None:
    """One repeat of each order; who stands first in the first order is system a."""
    if first["slots"] != {"A": second["slots"]["B"], "B": second["slots"]["A"]}:
        return "the second order does not swap the first"
    winners = [half["winner"] for half in (first, second)]
    votes = [Verdict({"winner": w}) if w in ("A", "B", "tie") else Unscored("unreadable") for w in winners]
    ab, ba = (decide([vote], 1, FIELDS["pairwise"], None) for vote in votes)
    row = pair_row(Question("q", "?"), ab, ba, Answer("q", "one"), Answer("q", "two"), "winner")
    names = {"a": first["slots"]["A"], "b": first["slots"]["B"], "unscored": "invalid"}
    consistent = row.outcome in ("a", "b", "tie")
    return first_difference(
        differs(names.get(row.outcome, row.outcome), expected["result"]),
        differs(consistent, bool(expected.get("consistent", consistent))),
    )


def _win_rate_differs(case: Case, expected: Mapping[str, Any]) -> str | None:
    outcomes: Mapping[str, PairOutcome] = {
        "wins": "a", "losses": "b", "ties": "tie", "inconsistent": "inconsistent", "invalid": "unscored",
    }  # fmt: skip
    rows = [PairRow("q", outcome) for name, outcome in outcomes.items() for _ in range(case.get(name, 0))]
    found = summarise_pairs(rows, seed=0)["win_rate_a"]
    return differs(None if found is None else found["value"], expected["win_rate"])


def check_prompt(case: Case, folder: Path) -> str | None:
    """A template and its variables: what stands in the rendered text, or which name an error is about."""
    expected = case["expect"]
    try:
        text = render_text(case["template"], case["vars"])
    except InputError as error:
        wanted = expected.get("error")
        return None if wanted is not None and wanted in str(error) else f"error: {error}"
    if "error" in expected:
        return f"rendered, expected an error about {expected['error']!r}"
    missing = [part for part in expected.get("contains", []) if part not in text]
    present = [part for part in expected.get("not_contains", []) if part in text]
    return f"missing {missing}, present {present}, in {text!r}" if missing or present else None


def check_resume(case: Case, folder: Path) -> str | None:
    """A journal as a killed run left it: which calls are kept, which are sent again, and that it stays valid."""
    expected = case["expect"]
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "calls.jsonl"
        path.write_bytes(_as_journal(case["file_text"]).encode())
        with closing(Journal(path)) as journal:
            kept = [item for item in case["items"] if journal.is_kept(item)]
        rerun = [item for item in case["items"] if item not in kept]
        text = path.read_text(encoding="utf-8")
        valid = all(json.loads(line) for line in text.splitlines()) and (not text or text.endswith("\n"))
    return first_difference(
        differs(kept, expected["kept"]),
        differs(rerun, expected["rerun"]),
        None if valid or not expected.get("file_valid_after_append") else f"the journal is not valid: {text!r}",
    )


def _as_journal(text: str) -> str:
    """The case's lines under the journal's own field names; what is half-written stays half-written."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        ok = entry["status"] != "failed"
        lines[i] = json.dumps(
            {"call_id": entry["item_id"], "status": "ok" if ok else "failed", "raw": line, "usage": None}
        )
    return "\n".join(lines)


def check_decline(case: Case, folder: Path) -> str | None:
    """Whether an answer's text declines."""
    found = abstention(case["answer"], case.get("refusal_phrases", ()))
    return differs(found.did_abstain, case["expect"]["declined"])


def check_base_url(case: Case, folder: Path) -> str | None:
    """The address that is asked, and the advice when it turns out to be wrong."""
    expected = case["expect"]
    permitted_error = "config_error" in (expected.get("error"), expected.get("or"))
    try:
        url = endpoint_url(case["base_url"])
    except InputError as error:
        return None if permitted_error else f"error: {error}"
    if "endpoint" not in expected:
        return f"found {url}, expected an error"
    checks = [differs(url, expected["endpoint"])]
    if hint := expected.get("hint_on_404_or_html"):
        for status, kind, body in ((404, "application/json", "{}"), (200, "text/html", "<html></html>")):
            meaning = meaning_of(status, {"content-type": kind}, body, datetime.now(UTC), case["base_url"])
            checks.append(None if hint in getattr(meaning, "detail", "") else f"no hint at {hint} in {meaning}")
    return first_difference(*checks)


def check_http(case: Case, folder: Path) -> str | None:
    """What one response of a judge means."""
    response, expected = case["response"], case["expect"]
    raw = response["body"] if isinstance(response["body"], str) else json.dumps(response["body"])
    now = parsedate_to_datetime(case["now"]) if "now" in case else datetime.now(UTC)
    meaning = meaning_of(response["status"], response["headers"], raw, now, "https://judge.example.test/v1")
    names = {Accepted: "accept", TryAgain: "retry", CaseRefused: "give_up", RunRefused: "give_up"}
    found = f"fallback:{meaning.what}" if isinstance(meaning, FallBack) else names[type(meaning)]
    checks = [differs(found, expected)]
    if isinstance(meaning, TryAgain) and "wait_s" in case:
        bounds = case["wait_s"]
        inside = meaning.wait_s is not None and bounds["min"] <= meaning.wait_s <= bounds.get("max", meaning.wait_s)
        checks.append(None if inside else f"waits {meaning.wait_s} s, expected {bounds}")
    if isinstance(meaning, CaseRefused | RunRefused):
        scope = "item" if isinstance(meaning, CaseRefused) else "run"
        checks.append(differs(scope, case.get("scope", scope)))
        cause = "context_length" if meaning.cause == "context_too_long" else meaning.cause
        if "cause" in case and cause not in (case["cause"], *case.get("alt_cause", [])):
            checks.append(f"cause {cause}, expected {case['cause']}")
    if "verdict_status" in case:
        verdict = read_body(raw, FIELDS["passfail"])
        checks.append(differs("ok" if isinstance(verdict, Verdict) else "invalid", case["verdict_status"]))
    if "tokens" in case and isinstance(meaning, Accepted):
        checks.append(differs(meaning.usage.prompt_tokens, case["tokens"]))
    return first_difference(*checks)
