"""What the kinds of case files check that need a judge to talk to: a real server on loopback, and whole runs on it.

A server is described in words (`never_answers`, `503 always`, `429 then ok`); a word that is not known makes the case
skipped, an expectation that is not known makes it fail, so that neither passes unchecked. What needs no server is in
`case_adapters`.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http.client import responses
from pathlib import Path
from typing import Any

from rag_judge.errors import CannotGoOn, RagJudgeError
from rag_judge.pipeline import RunRequest, RunResult, World, run, run_async
from rag_judge.records import Verdict
from rag_judge.settings import load_settings
from rag_judge.verdicts import read_body
from tests.case_adapters import FIELDS, Case, Skipped, differs, first_difference, none_if_one_holds
from tests.eval_sets import verdict, write_rows
from tests.misbehaviour import (
    CHOICES_EMPTY,
    CHOICES_NULL,
    ERROR_200,
    HTML_200,
    NOT_JSON,
    SERVER_ERROR,
    UNAUTHORIZED,
    UNAVAILABLE,
    Close,
    Drip,
    Garbage,
    JudgeRequest,
    Misbehaviour,
    Never,
    Reset,
    Respond,
    Truncated,
    completion,
    failure,
    rate_limited,
)
from tests.servers import JudgeServer, obedient

Reply = Callable[[JudgeRequest], str | Misbehaviour]
LONGEST_S = 120.0  # a case that takes longer fails, and is left alone
TIMEOUT_S = 5.0  # of one call, where the case does not say: the product's own two minutes are too long to wait for
SLOW_S = 0.3  # well below every limit of time
OUT_OF_REACH = ("no_reply", "server_error")
FLAGS = {"timeout_s": "timeout_s", "max_attempts": "attempts", "concurrency": "concurrency", "repeats": "repeats"}
SETUP = frozenset({"items", "server", "called_from", *FLAGS})


# --- the server, by its words --------------------------------------------------------------------------------------


def _slow(request: JudgeRequest) -> str:
    threading.Event().wait(SLOW_S)  # on the thread of its connection, so that the server counts it as on its way
    return verdict()


WORDS: Mapping[str, str | Misbehaviour | Reply] = {
    "ok": verdict(),
    "slow": _slow,
    "never_answers": Never(),
    "malformed_json_body": NOT_JSON,
    "empty_body": Respond(200, ""),
    "truncated_body": Truncated(completion(verdict()), 20),
    "html_200": HTML_200,
    "error_200": ERROR_200,
    "choices_null": CHOICES_NULL,
    "choices_empty": CHOICES_EMPTY,
    "reset": Reset(),
    "reset_after_headers": Reset(after_headers=True),
    "close": Close(),
    "garbage": Garbage(),
    "drip": Drip(completion(verdict()), 1.0),
    "prose": "I think that it is fine.",
}
STATUSES: Mapping[int, Respond] = {401: UNAUTHORIZED, 429: rate_limited(), 500: SERVER_ERROR, 503: UNAVAILABLE}


def reply_in_words(words: str) -> Reply:
    """A reply function: `A then B` is A at a request's first try and B at all later ones, `A twice` and then ok.

    Raises Skipped for a word that is not known.
    """
    steps: list[str | Misbehaviour | Reply] = []
    is_counted = False
    for part in re.split(r"\bthen\b", words):
        key = re.sub(r"[\s_-]+", "_", part.strip().lower()).removeprefix("http_")
        found = re.fullmatch(r"(.+?)(?:_(always|once|twice|(\d)_times))?", key)
        if found is None:
            raise Skipped(f"runtime: a server that does {part.strip()!r} is not known")
        count = {None: 1, "always": 1, "once": 1, "twice": 2}.get(found[2]) or int(found[3])
        is_counted = found[2] not in (None, "always")
        steps += [_in_one_word(found[1])] * count
    if is_counted:
        steps.append(WORDS["ok"])

    def reply(request: JudgeRequest) -> str | Misbehaviour:
        step = steps[min(request.times_seen, len(steps)) - 1]
        return step(request) if callable(step) else step

    return reply


def _in_one_word(word: str) -> str | Misbehaviour | Reply:
    if word in WORDS:
        return WORDS[word]
    if re.fullmatch(r"[45]\d\d", word):
        status = int(word)
        return STATUSES.get(status) or failure(status, responses.get(status, "an error"))
    raise Skipped(f"runtime: a server that does {word!r} is not known")


def _server_of(server: str | Mapping[str, str], ids: Sequence[str]) -> Reply:
    """What the server does with each item's requests; a request about none of them, the probe, is as of the others."""
    words = {"others": server} if isinstance(server, str) else dict(server)
    others = reply_in_words(words.pop("others", "ok"))
    if strangers := sorted(set(words) - set(ids)):
        raise Skipped(f"runtime: {strangers} are not among the items")
    replies = {item: reply_in_words(does) for item, does in words.items()}

    def reply(request: JudgeRequest) -> str | Misbehaviour:
        found = re.search(r"item_\d+", request.text)
        return replies.get(found[0] if found else "", others)(request)

    return reply


def _probed(reply: Reply) -> Reply:
    """The same server at the probe: what it says there is what a server says that enforces its schema."""

    def on_probe(request: JudgeRequest) -> str | Misbehaviour:
        said = reply(request)
        return obedient(request) if isinstance(said, str) else said

    return on_probe


# --- the run -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ended:
    """How one run ended."""

    n_ok: int  # cases whose verdict was read
    out_of_reach: list[str]  # cases whose reply never came
    message: str  # what the user is told of what went wrong, without this machine's addresses and folders
    exit_code: int
    is_stopped: bool
    seconds: float
    n_requests: int  # that reached the server, the probe among them


@dataclass(frozen=True, slots=True)
class Seen:
    """What one case showed: its runs in order, and what they left behind."""

    runs: Sequence[Ended]
    patched: Sequence[str]  # parts of asyncio that are no longer what they were
    max_concurrency: int


class _Script:
    """The runs of one case on one server: each in a folder of its own, in a plain process or inside a loop."""

    def __init__(
        self, setup: Mapping[str, Any], expected: Set[str], folder: Path, server: JudgeServer, ids: Sequence[str]
    ) -> None:
        """`expected` holds the names of what will be looked at."""
        self._setup, self._expected = setup, expected
        self._folder, self._server = folder, server
        cases = [{"id": i, "question": f"Which number stands on the door of {i}?"} for i in ids]
        contexts = {i: [{"id": f"doc-{i}", "text": f"The door of {i} bears the number 7."}] for i in ids}
        answers = [{"id": i, "answer": "The number 7.", "contexts": contexts[i]} for i in ids]
        self._cases = write_rows(folder / "cases.jsonl", cases)
        self._answers = write_rows(folder / "answers.jsonl", answers)
        self._world = World({"OPENAI_API_KEY": "sk-of-the-cases-01"}, lambda: datetime.now(UTC), time.monotonic)

    def play(self) -> Seen:
        """Run as often and from where the case says."""
        is_in_loop = _is_in_loop(self._setup.get("called_from", "a plain script"))
        # Each archive in a folder of its own: beside it lie the replies that a second run would take instead of asking.
        outs = [self._folder / "first" / "runs"]
        if is_in_loop or "second_call_works" in self._expected:
            outs.append(self._folder / "second" / "runs")
        before = _parts_of_asyncio()
        runs = asyncio.run(self._inside_a_loop(outs)) if is_in_loop else [self._plain(out) for out in outs]
        after = _parts_of_asyncio()
        patched = [name for name, part in before.items() if after.get(name) is not part]
        return Seen(runs, patched, self._server.max_concurrency)

    def _plain(self, out: Path) -> Ended:
        started, n_before = time.monotonic(), self._n_requests
        try:
            found: RunResult | RagJudgeError = run(self._request(out), self._world)
        except RagJudgeError as error:
            found = error
        return self._ended(found, out, time.monotonic() - started, n_before)

    async def _inside_a_loop(self, outs: Sequence[Path]) -> list[Ended]:
        runs = []
        for out in outs:
            started, n_before = time.monotonic(), self._n_requests
            try:
                found: RunResult | RagJudgeError = await run_async(self._request(out), self._world)
            except RagJudgeError as error:
                found = error
            runs.append(self._ended(found, out, time.monotonic() - started, n_before))
        return runs

    def _request(self, out: Path) -> RunRequest:
        given = {FLAGS[name]: value for name, value in self._setup.items() if name in FLAGS}
        flags = {"out": str(out), "base_url": self._server.base_url, "model": "judge-1"}
        settings = load_settings(None, {}, {"repeats": 1, "timeout_s": TIMEOUT_S, **flags, **given}, folder=None)
        if "finishes_within_s" not in self._expected:  # only where time is measured are the pauses the product's own
            settings = replace(settings, judge=replace(settings.judge, backoff_s=0.0))
        return RunRequest(settings, self._cases, self._answers)

    def _ended(self, found: RunResult | RagJudgeError, out: Path, seconds: float, n_before: int) -> Ended:
        read, failures = _journalled(out)
        lost = [item for item, failure in failures.items() if failure["cause"] in OUT_OF_REACH]
        message = "\n".join(failure["detail"] for failure in failures.values())
        if isinstance(found, RagJudgeError):
            message = str(found)
        else:
            read = [row.id for row in found.rows if row.n_votes]
            lost = [row.id for row in found.rows if row.unscored_reason in OUT_OF_REACH]
        # A port or a folder's random name may hold any number: 500 is looked for in what the server said.
        for private in (self._server.base_url, self._server.url, str(self._folder)):
            message = message.replace(private, "…")
        is_stopped, n_requests = isinstance(found, CannotGoOn), self._n_requests - n_before
        return Ended(len(read), lost, message, found.exit_code, is_stopped, seconds, n_requests)

    @property
    def _n_requests(self) -> int:
        return len(self._server.requests) + len(self._server.probes)


def _is_in_loop(called_from: str) -> bool:
    if re.search(r"\b(loop|notebook|jupyter|async)\b", called_from, re.I):
        return True
    if re.search(r"\b(script|process|command)\b", called_from, re.I):
        return False
    raise Skipped(f"runtime: called from {called_from!r} is not known")


def _parts_of_asyncio() -> dict[str, Any]:
    """What a library that makes loops re-entrant would replace, by name."""
    owners = (asyncio, asyncio.events, asyncio.tasks, asyncio.runners, asyncio.BaseEventLoop)
    return {
        f"{owner.__name__}.{name}": part
        for owner in (*owners, asyncio.SelectorEventLoop)
        for name, part in vars(owner).items()
        if callable(part)
    }


def _journalled(out: Path) -> tuple[list[str], dict[str, Mapping[str, str]]]:
    """What a run has kept, however it ended: the cases whose verdict can be read, and why the others' calls failed."""
    last: dict[str, Mapping[str, Any]] = {}
    for path in out.glob("*/calls.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            last[entry["case_id"]] = entry
    replied = {item: entry["raw"] for item, entry in last.items() if entry["status"] == "ok"}
    read = [item for item, raw in replied.items() if isinstance(read_body(raw, FIELDS["passfail"]), Verdict)]
    return read, {item: entry["failure"] for item, entry in last.items() if item not in replied}


# --- what is expected ----------------------------------------------------------------------------------------------


def _out_of_reach_differs(seen: Seen, expected: list[str] | int) -> str | None:
    found = sorted(seen.runs[0].out_of_reach)
    return differs(len(found), expected) if isinstance(expected, int) else differs(found, sorted(expected))


def _second_differs(seen: Seen, expected: bool) -> str | None:
    one, two = seen.runs
    works = not two.is_stopped and (two.n_ok, two.out_of_reach) == (one.n_ok, one.out_of_reach)
    return None if works == expected else f"found {two}, after {one}"


def _cause_differs(seen: Seen, expected: str) -> str | None:
    said = re.search(rf"(?<!\w){re.escape(expected)}(?!\w)", seen.runs[0].message)
    return None if said else f"not said: {expected}"


def _contains_differs(seen: Seen, expected: str | list[str]) -> str | None:
    missing = [text for text in _texts(expected) if text not in seen.runs[0].message]
    return f"missing {missing}" if missing else None


def _not_contains_differs(seen: Seen, expected: str | list[str]) -> str | None:
    present = [text for text in _texts(expected) if text in seen.runs[0].message]
    return f"present {present}" if present else None


def _texts(expected: str | list[str]) -> list[str]:
    return [expected] if isinstance(expected, str) else expected


def _at_most(found: float, bound: float) -> str | None:
    return None if found <= bound else f"found {found:g}, expected at most {bound:g}"


EXPECTATIONS: Mapping[str, Callable[[Seen, Any], str | None]] = {
    "ok": lambda seen, value: differs(seen.runs[0].n_ok, value),
    "error": _out_of_reach_differs,
    "exit_code": lambda seen, value: differs(seen.runs[0].exit_code, value),
    "exit_code_nonzero": lambda seen, value: differs(seen.runs[0].exit_code != 0, value),
    "stopped": lambda seen, value: differs(seen.runs[0].is_stopped, value),
    "cause": _cause_differs,
    "error_message_contains": _contains_differs,
    "error_message_not_contains": _not_contains_differs,
    "calls_at_most": lambda seen, value: _at_most(seen.runs[0].n_requests, value),
    "calls_at_least": lambda seen, value: _at_most(value, seen.runs[0].n_requests),
    "concurrency_at_most": lambda seen, value: _at_most(seen.max_concurrency, value),
    "finishes_within_s": lambda seen, value: _at_most(seen.runs[0].seconds, value),
    "second_call_works": _second_differs,
    "loop_patched": lambda seen, value: differs(bool(seen.patched), value),
}


def check_runtime(case: Case, folder: Path) -> str | None:
    """`setup` is really run: a judge that does what its words say, and a run of as many items with one repeat."""
    setup, expected = case["setup"], case["expect"]
    wanted = [expected, *([expected["or"]] if "or" in expected else [])]
    names = {name for want in wanted for name in want} - {"or"}
    if unknown := sorted(names - set(EXPECTATIONS)):
        return f"expectations that are not known: {unknown}"
    if not all(set(want) - {"or"} for want in wanted):
        return "nothing is expected"
    if strangers := sorted(set(setup) - SETUP):
        raise Skipped(f"runtime: {strangers} are not known in a setup")
    ids = [f"item_{i}" for i in range(setup["items"])]
    reply = _server_of(setup["server"], ids)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary,
        JudgeServer(reply, on_probe=_probed(reply)) as server,
    ):
        # In a thread, so that a run which hangs is a failed case; the server's end then ends its calls.
        thread = ThreadPoolExecutor(1)
        playing = thread.submit(_Script(setup, names, Path(temporary), server, ids).play)
        wait([playing], LONGEST_S)
        thread.shutdown(wait=False)
        if not playing.done():
            return f"has not ended within {LONGEST_S:g} s"
        seen = playing.result()
    return none_if_one_holds([_seen_differs(seen, want) for want in wanted])


def _seen_differs(seen: Seen, want: Mapping[str, Any]) -> str | None:
    found = {name: EXPECTATIONS[name](seen, value) for name, value in want.items() if name != "or"}
    said = f"; it said {seen.runs[0].message!r}" if seen.runs[0].message else ""
    return first_difference(*(f"{name}: {difference}{said}" for name, difference in found.items() if difference))
