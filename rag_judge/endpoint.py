"""Answers collected from a live RAG endpoint: each question asked once, each answer on disk before the next is asked.

A question that failed is an answer with an error: it is counted, never dropped. What came back is checked by the
same reader as an answers file (`answers`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlsplit

from rag_judge.addresses import checked_address, is_local
from rag_judge.answers import answer_from_row, error_of
from rag_judge.errors import CannotGoOn, InputError, LimitReached
from rag_judge.records import Case, Context
from rag_judge.rows import Row, json_line, kind_of
from rag_judge.sections import EndpointSettings

if TYPE_CHECKING:
    import aiohttp

DEAD_AFTER = 10  # failed questions in a row, each after all its tries, without one answer between them
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_WHOLE_EXPRESSION = re.compile(r"\{\{((?:(?!\}\}).)*)\}\}", re.DOTALL)
_ANSWER_FIELDS = ("answer", "contexts", "citations", "refused", "sent_contexts", "prompt", "meta")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A RAG endpoint ready to be asked: its settings with the environment's secrets and `--set` values in place."""

    settings: EndpointSettings
    url: str
    headers: Mapping[str, str]
    values: Mapping[str, Any]  # of --set, seen by the request template
    passages: Mapping[str, Sequence[Context]] = field(default_factory=dict)  # by case, in place of what it retrieves

    def body(self, case: Case) -> dict[str, Any]:
        """The JSON request for a case: the configured template, or query with tenant and history where it has them."""
        passages = self.passages.get(case.id)
        given = None if passages is None else [{"id": passage.id, "text": passage.text} for passage in passages]
        if self.settings.request is None:
            body: dict[str, Any] = {"query": case.question}
            if case.tenant is not None:
                body["tenant"] = case.tenant
            if case.history:
                body["history"] = list(case.history)
            return body if given is None else body | {"contexts": given}
        names: dict[str, Any] = {**self.values, "id": case.id, "question": case.question, "tenant": case.tenant}
        names["history"] = list(case.history) or None
        names["contexts"] = given
        filled = _filled(self.settings.request, names)
        if not isinstance(filled, dict):
            raise InputError("endpoint.request: expected a table")
        return filled

    @property
    def takes_passages(self) -> bool:
        """False when the request template has no place for passages."""
        return self.settings.request is None or "contexts" in json.dumps(self.settings.request)

    def key(self, case: Case) -> str:
        """What an answer depends on; an answer kept from an interrupted collection is used only under the same key."""
        asked = json.dumps([self.url, self.body(case)], sort_keys=True)
        return hashlib.sha256(asked.encode()).hexdigest()


def open_endpoint(settings: EndpointSettings, environment: Mapping[str, str], values: Mapping[str, Any]) -> Endpoint:
    """The endpoint of the settings. Raises InputError for a bad address or a header whose variable is not set."""
    url = checked_address(settings.url or "", "endpoint")
    headers = {}
    for name, value in settings.headers.items():
        for variable in _VARIABLE.findall(value):
            if variable not in environment:
                raise InputError(f"endpoint.headers.{name}: the environment variable {variable} is not set")
        headers[name] = _VARIABLE.sub(lambda found: environment[found.group(1)], value)
        if not _HEADER_NAME.fullmatch(name) or not headers[name].isprintable() or not headers[name].isascii():
            raise InputError(
                f"endpoint.headers: {name!r} cannot be sent: expected a name without blanks and an ASCII value"
            )
    check_mapping(settings.response)
    return Endpoint(settings, url, headers, values)


Numbered = tuple[str, int]  # a case's id, and which of several answers to it


class Collection:
    """Answers on their way: a file that grows by a line an answer and survives a kill; complete, it is put in order."""

    def __init__(self, path: Path) -> None:
        """Open or create the growing file; a half-written last line is dropped."""
        self._path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._kept: dict[Numbered, str] = {}  # key of what was asked; answers without an error only
        self._all: dict[Numbered, int] = {}  # offsets
        self._size = 0
        with path.open("rb") as file:
            for raw in file:
                if not raw.endswith(b"\n"):
                    os.ftruncate(self._fd, self._size)
                    break
                entry = json.loads(raw)
                self._note(entry, self._size)
                self._size += len(raw)

    def _note(self, entry: Mapping[str, Any], offset: int) -> None:
        numbered = (entry["row"]["id"], entry["row"].get("answer_no", 0))
        self._all[numbered] = offset
        if entry["row"].get("error") is None:
            self._kept[numbered] = entry["key"]
        else:
            self._kept.pop(numbered, None)

    def holds(self, case: Case, key: str, answer_no: int = 0) -> bool:
        """True when this answer to this very question is on disk; one that failed is asked again."""
        return self._kept.get((case.id, answer_no)) == key

    def append(self, key: str, row: Mapping[str, Any]) -> None:
        """Write one answer."""
        entry = {"key": key, "row": dict(row)}
        raw = json_line(entry)
        os.write(self._fd, raw)
        self._note(entry, self._size)
        self._size += len(raw)

    def rows(self, wanted: Iterable[Numbered]) -> Iterator[dict[str, Any]]:
        """The answers with these case ids and numbers, in this order; one that is not there is left out."""
        with self._path.open("rb") as file:
            for numbered in wanted:
                if numbered in self._all:
                    file.seek(self._all[numbered])
                    yield json.loads(file.readline())["row"]

    def write_to(self, target: BinaryIO, wanted: Iterable[Numbered]) -> None:
        """Write the answers with these case ids and numbers as JSON Lines."""
        for row in self.rows(wanted):
            target.write(json_line(row))

    def close(self, *, and_remove: bool = False) -> None:
        """Sync and close; a finished collection's growing file is removed."""
        os.fsync(self._fd)
        os.close(self._fd)
        if and_remove:
            self._path.unlink()


@dataclass(slots=True)
class Collected:
    """How the asking went: answers kept from before, questions asked now, and how many of these failed."""

    n_kept: int = 0
    n_asked: int = 0
    n_failed: int = 0


async def ask_all(
    cases: Iterable[Case],
    endpoint: Endpoint,
    collection: Collection,
    on_progress: Callable[[Collected], None] = lambda collected: None,
    is_late: Callable[[], bool] = lambda: False,
    n_answers: int = 1,
) -> Collected:
    """Ask the endpoint every question that the collection does not hold, `n_answers` times, round after round.

    Raises CannotGoOn when ten questions in a row fail, or when all do, and LimitReached once `is_late`: questions on
    their way are waited for. What was answered is kept.
    """
    import asyncio

    import aiohttp

    waiting = ((case, number) for number in range(n_answers) for case in cases)
    asking = _Asking(waiting, endpoint, collection, on_progress, is_late, numbered=n_answers > 1)
    limit = aiohttp.ClientTimeout(total=endpoint.settings.timeout_s)
    try:
        async with (
            aiohttp.ClientSession(timeout=limit, trust_env=not is_local(endpoint.url)) as session,
            asyncio.TaskGroup() as group,
        ):
            for _ in range(endpoint.settings.concurrency):
                group.create_task(asking.work(session))
    except* CannotGoOn as stopped:
        raise stopped.exceptions[0] from None
    return asking.ended()


class _Asking:
    """What the workers share: the questions that wait, the counts, and how many failed in a row."""

    def __init__(
        self,
        waiting: Iterator[tuple[Case, int]],
        endpoint: Endpoint,
        collection: Collection,
        on_progress: Callable[[Collected], None],
        is_late: Callable[[], bool],
        *,
        numbered: bool,
    ) -> None:
        self._numbered = numbered
        self._waiting, self._endpoint, self._collection = waiting, endpoint, collection
        self._on_progress, self._is_late = on_progress, is_late
        self._stopped_late = False
        self._collected = Collected()
        self._n_failed_in_a_row = 0
        self._last_error = ""

    async def work(self, session: aiohttp.ClientSession) -> None:
        """Ask one waiting question after another; each is taken by one worker, when its turn comes."""
        for case, number in self._waiting:
            key = self._endpoint.key(case)
            if self._collection.holds(case, key, number):
                self._collected.n_kept += 1
                continue
            if self._is_late():
                self._stopped_late = True
                return
            row = await _ask(case, self._endpoint, session)
            self._collection.append(key, row | {"answer_no": number} if self._numbered else row)
            self._count(row.get("error"))
            self._on_progress(self._collected)

    def _count(self, error: str | None) -> None:
        self._collected.n_asked += 1
        if error is None:
            self._n_failed_in_a_row = 0
            return
        self._collected.n_failed += 1
        self._n_failed_in_a_row += 1
        self._last_error = error
        if self._n_failed_in_a_row >= DEAD_AFTER:
            raise CannotGoOn(f"the endpoint failed {DEAD_AFTER} questions in a row; the last: {error}")

    def ended(self) -> Collected:
        """The counts. Raises CannotGoOn when not one question was answered, or not all for want of time."""
        counts = self._collected
        if self._stopped_late:
            n = counts.n_kept + counts.n_asked
            raise LimitReached(f"the deadline has passed while answers were collected; {n} are there")
        if counts.n_failed and counts.n_failed == counts.n_asked and not counts.n_kept:
            raise CannotGoOn(f"the endpoint answered none of {counts.n_failed} questions; the last: {self._last_error}")
        return counts


async def _ask(case: Case, endpoint: Endpoint, session: aiohttp.ClientSession) -> dict[str, Any]:
    """One answer row; with `error` set when the question failed after every try."""
    import aiohttp
    from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_exponential

    settings = endpoint.settings
    started = time.monotonic()
    row: dict[str, Any] = {"id": case.id}
    try:
        async for attempt in AsyncRetrying(
            stop=stop_after_attempt(settings.attempts),
            wait=wait_exponential(multiplier=settings.backoff_s, max=30),
            retry=retry_if_exception_type(_Passing),
            reraise=True,
        ):
            with attempt:
                started = time.monotonic()
                response = await _post(case, endpoint, session)
        row |= mapped(response, settings.response)
        row["error"] = error_of(row.get("error"))
        answer_from_row(Row(row, "the endpoint's response", 0, 0, False))
    except (_Passing, _Refused, InputError) as fault:
        row = {"id": case.id, "answer": None, "error": _redacted(str(fault), endpoint)}
    except TimeoutError:
        row = {"id": case.id, "answer": None, "error": f"no answer within {settings.timeout_s:g} s"}
    except aiohttp.ClientError as fault:
        row = {"id": case.id, "answer": None, "error": _redacted(f"{type(fault).__name__}: {fault}", endpoint)}
    return row | {"latency_s": round(time.monotonic() - started, 4)}


async def _post(case: Case, endpoint: Endpoint, session: aiohttp.ClientSession) -> Any:
    import aiohttp

    try:
        async with session.post(
            endpoint.url, json=endpoint.body(case), headers=dict(endpoint.headers), allow_redirects=False
        ) as response:
            raw = await response.read()
            status = response.status
    except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as fault:
        if isinstance(fault, TimeoutError):  # aiohttp's own time-outs are both; waiting again would not be shorter
            raise TimeoutError from fault
        raise _Passing(f"connection failed: {fault}") from fault
    text = raw.decode("utf-8", "replace")
    shown = " ".join(text.split())[:200]
    if status >= 500 or status == 429:
        raise _Passing(f"HTTP {status} from the endpoint: {shown}")
    if 300 <= status < 400:
        raise _Refused(f"HTTP {status}: the endpoint redirects to another address; name the right one")
    if status != 200:
        raise _Refused(f"HTTP {status} from the endpoint: {shown}")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise _Refused(f"the endpoint's response is not JSON: {shown!r}") from fault


def check_mapping(mapping: Mapping[str, str]) -> None:
    """Raise InputError for a response mapping of an unknown field or with an expression that is no JMESPath."""
    import jmespath
    from jmespath.exceptions import JMESPathError

    for name, expression in mapping.items():
        if name not in (*_ANSWER_FIELDS, "error"):
            raise InputError(f"endpoint.response.{name}: unknown field; there are: {', '.join(_ANSWER_FIELDS)}, error")
        try:
            jmespath.compile(expression)
        except JMESPathError as error:
            raise InputError(f"endpoint.response.{name}: {expression!r} is not valid JMESPath: {error}") from error


def mapped(response: Any, mapping: Mapping[str, str]) -> dict[str, Any]:
    """The answer's fields out of a response: by JMESPath where the settings name one, else by their own names.

    Raises InputError for a response that does not fit.
    """
    import jmespath
    from jmespath.exceptions import JMESPathError

    row: dict[str, Any] = {}
    if isinstance(response, dict):
        row = {name: response[name] for name in (*_ANSWER_FIELDS, "error") if name in response}
    elif not mapping:
        raise InputError(f"the endpoint's response: found {kind_of(response)}, expected an object")
    for name, expression in mapping.items():
        try:
            row[name] = jmespath.search(expression, response)
        except JMESPathError as error:  # an expression that is valid, over a value of the wrong kind
            raise InputError(f"endpoint.response.{name}: {expression!r}: {error}") from error
    if row.get("answer") is None and not row.get("error") and "contexts" not in row:
        raise InputError("the endpoint's response holds no answer; map its fields in [endpoint.response]")
    return row


def _filled(template: Any, names: Mapping[str, Any]) -> Any:
    """The request template with the case in place. One whole expression keeps its type; None is left out."""
    if isinstance(template, dict):
        parts = {name: _filled(part, names) for name, part in template.items()}
        return {name: part for name, part in parts.items() if part is not None}
    if isinstance(template, list):
        return [_filled(part, names) for part in template]
    if not isinstance(template, str) or "{{" not in template:
        return template
    from jinja2 import StrictUndefined, TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
    try:
        whole = _WHOLE_EXPRESSION.fullmatch(template.strip())
        if whole is None:
            return environment.from_string(template).render(names)
        value = environment.compile_expression(whole.group(1), undefined_to_none=False)(**names)
        return str(value) if isinstance(value, StrictUndefined) else value  # str() raises, naming the variable
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"endpoint.request: {template!r}: {error or type(error).__name__}") from error


def _redacted(text: str, endpoint: Endpoint) -> str:
    """The text without header values, which may be keys, should an endpoint echo them."""
    for value in (*endpoint.headers.values(), urlsplit(endpoint.url).query):
        if len(value) > 3:
            text = text.replace(value, "[redacted]")
    return text


class _Passing(Exception):
    """A fault that may pass: worth another try."""


class _Refused(Exception):
    """A response that another try would not change."""
