"""What the kinds `cache` and `cost` check: which requests share a kept reply, what is kept, what a journal costs.

A field, a word or a unit that is not known makes the case skipped, so that it never passes unchecked. The other kinds
are in `case_adapters` and `case_adapters_runs`.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rag_judge.addresses import public_url
from rag_judge.cache import reply_key
from rag_judge.errors import CannotGoOn
from rag_judge.journal import Journal, RecordedReplies
from rag_judge.judge import ModelServer, Server
from rag_judge.manifest import cost_entry
from rag_judge.money import Price
from rag_judge.pipeline import RunRequest, World, run
from rag_judge.records import Call, CallFailure, Reply, Usage
from rag_judge.settings import load_settings
from tests.case_adapters import Case, Skipped, differs, first_difference
from tests.eval_sets import verdict, write_rows
from tests.misbehaviour import SERVER_ERROR, Misbehaviour, Never, Respond, completion, failure
from tests.servers import JudgeServer

# --- cache -----------------------------------------------------------------------------------------------------------

OF_SERVER = frozenset({"base_url", "model", "api_key"})
OF_CALL = {"case_id": "c", "repeat": 0, "order": None, "variant": None}  # and what stands there unless a case says
PARAMETERS = frozenset({"temperature", "seed", "max_tokens", "response_format"})
# What a version changes shows in messages and parameters; as a name alone it changes nothing that is sent.
SAYS_NOTHING = frozenset({"prompt_version"})

CUT_OFF = Respond(200, completion('{"grounded": tr', finish_reason="length"))
FILTERED = Respond(200, completion(None, finish_reason="content_filter"))
SAID: Mapping[str, str | Misbehaviour] = {
    "ok": verdict(),
    "invalid": "I think that it is fine.",
    "unreadable": "I think that it is fine.",
    "empty": "",
    "conflicting": verdict(grounded=True) + "\n" + verdict(grounded=False),
    "truncated": CUT_OFF,
    "length": CUT_OFF,
    "refused": "I'm sorry, but I can't help with that.",
    "content_filter": FILTERED,
    "context_too_long": failure(400, "maximum context length is 8192 tokens", code="context_length_exceeded"),
    "error": SERVER_ERROR,
    "failed": SERVER_ERROR,
    "server_error": SERVER_ERROR,
    "no_reply": Never(),
    "timeout": Never(),
}


def check_cache(case: Case, folder: Path) -> str | None:
    """Whether requests `a` and `b` have one key, or whether a reply of `reply_status` is kept by a run on a server."""
    if "reply_status" in case:
        return differs(_is_kept(case["reply_status"]), case["expect"]["stored"])
    return differs(_key(case["a"]) == _key(case["b"]), case["expect"]["same_key"])


def _key(request: Mapping[str, Any]) -> str:
    """The key under which a run looks for the reply to this request."""
    known = OF_SERVER | OF_CALL.keys() | PARAMETERS | SAYS_NOTHING | {"messages", "body"}
    if strangers := sorted(request.keys() - known):
        raise Skipped(f"cache: {strangers} of a request are not known")
    parameters = {name: request[name] for name in PARAMETERS & request.keys()}
    of_call = {name: request.get(name, usual) for name, usual in OF_CALL.items()}
    call = Call("", messages=tuple(request["messages"]), parameters={"max_tokens": 300, **parameters}, **of_call)
    server = Server(request["base_url"], request["model"], request.get("api_key", "k"), body=request.get("body", {}))
    judge = ModelServer(server, lambda: datetime.now(UTC), lambda line: None)
    return reply_key(public_url(server.base_url), call, judge.body(call))


def _is_kept(status: str) -> bool:
    """True when a second run of the same case takes such a reply from the first, and asks nothing."""
    if status not in SAID:
        raise Skipped(f"cache: a reply of status {status!r} is not known")
    with tempfile.TemporaryDirectory() as temporary, JudgeServer(lambda request: SAID[status]) as server:
        path = Path(temporary)
        flags = {"out": str(path / "runs"), "base_url": server.base_url, "model": "judge-1", "attempts": 1}
        settings = load_settings(None, {}, {**flags, "repeats": 1, "reask": False, "timeout_s": 0.5}, folder=None)
        settings = replace(settings, judge=replace(settings.judge, backoff_s=0.0))
        cases = write_rows(path / "cases.jsonl", [{"id": "c", "question": "Which number?"}])
        contexts = [{"id": "d", "text": "The number is 7."}]
        answers = write_rows(path / "answers.jsonl", [{"id": "c", "answer": "The number 7.", "contexts": contexts}])
        n_requests = [_asked(RunRequest(settings, cases, answers), server) for _ in range(2)]
    if n_requests[0] == 0:
        raise RuntimeError("the first run asked nothing")
    return n_requests[1] == 0


def _asked(request: RunRequest, server: JudgeServer) -> int:
    """How many requests a run sends; one whose judge never replies ends early, which is no matter here."""
    n_before = len(server.requests)
    world = World({"OPENAI_API_KEY": "sk-of-the-cases-01"}, lambda: datetime.now(UTC), time.monotonic)
    try:
        run(request, world)
    except CannotGoOn:
        return len(server.requests) - n_before
    return len(server.requests) - n_before


# --- cost ------------------------------------------------------------------------------------------------------------

TOKENS_PER_UNIT = {"1m": 1e6, "m": 1e6, "million": 1e6, "1k": 1e3, "k": 1e3, "thousand": 1e3, "1": 1.0, "": 1.0}
OF_COST_CALL = frozenset({"prompt", "completion", "usage", "outcome", "from_cache"})
READ_AS = {"ok": verdict(), "invalid": SAID["invalid"], "unreadable": SAID["invalid"], "refused": SAID["refused"]}
NEVER_CAME = frozenset({"no_reply", "server_error", "timeout", "failed", "error"})


def check_cost(case: Case, folder: Path) -> str | None:
    """What a journal of these calls costs at this price, as a manifest says it."""
    expected = case["expect"]
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "calls.jsonl"
        with closing(Journal(path)) as journal:
            repeat, variant = 0, None
            for told in case["calls"]:
                call = _call(repeat, variant)
                journal.append(call, _result(told))
                # An unreadable reply is asked again once; anything else is followed by the next repeat.
                is_asked_again = told.get("outcome") in ("invalid", "unreadable") and variant is None
                repeat, variant = (repeat, "reask") if is_asked_again else (repeat + 1, None)
        with closing(RecordedReplies(path)) as replies:
            said = cost_entry(replies.cost, 0, [_price(case["price"])])
    found = {"cost": said["usd"], "complete": said["usd_is_complete"], "calls": said["calls"]}
    found |= {"calls_without_usage": said["calls_without_usage"], "cached": said["cached"]}
    if unknown := sorted(expected.keys() - found.keys()):
        return f"expectations that are not known: {unknown}"
    # Costs are millionths of a dollar.
    return first_difference(*(differs(found[name], value, tolerance=1e-9) for name, value in expected.items()))


def _price(told: Mapping[str, Any]) -> Price:
    """US dollars per million tokens, from whatever number of tokens the case's prices are for."""
    unit = re.fullmatch(r"per\s+(\w*?)\s*tokens?", told.get("unit", "per 1M tokens").strip().lower())
    if unit is None or unit[1] not in TOKENS_PER_UNIT:
        raise Skipped(f"cost: the unit {told.get('unit')!r} is not known")
    of_a_million = 1e6 / TOKENS_PER_UNIT[unit[1]]
    return Price(told["in"] * of_a_million, told["out"] * of_a_million, "case")


def _call(repeat: int, variant: str | None) -> Call:
    messages = ({"role": "user", "content": "Is it so?"},)
    return Call(f"{repeat}{variant or ''}", "c", repeat, None, variant, messages, {"max_tokens": 300})


def _result(told: Mapping[str, Any]) -> Reply | CallFailure:
    """What came of one call of a case."""
    outcome = told.get("outcome", "ok")
    if strangers := sorted(told.keys() - OF_COST_CALL):
        raise Skipped(f"cost: {strangers} of a call are not known")
    is_counted = "prompt" in told or "completion" in told
    if outcome in NEVER_CAME and not is_counted:
        return CallFailure("no_reply", outcome, 0.1, 1, {})
    if outcome not in READ_AS:
        raise Skipped(f"cost: a call with the outcome {outcome!r} is not known")
    counts = (told.get("usage") or {}) if not is_counted else told
    usage = Usage(
        counts.get("prompt", counts.get("prompt_tokens")), counts.get("completion", counts.get("completion_tokens"))
    )
    raw = completion(str(READ_AS[outcome]))
    body = json.dumps({name: part for name, part in json.loads(raw).items() if name != "usage"})
    return Reply(body, "stop", "judge-1", usage, 0.1, 1, {}, cached=bool(told.get("from_cache", False)))
