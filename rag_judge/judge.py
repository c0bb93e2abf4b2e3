"""One request to an OpenAI-compatible model server: sent, tried again where that can help, and kept whole.

The server's quirks are learned by one probe before the first call and by what it refuses later (`dialect`), and
remembered for the run. What a field of the verdict means is not known here. Everything goes through
`AsyncOpenAI.post`, the client's lower door, because it hands over the raw bytes: HTML or an error object inside a 200
stays visible, and the journal keeps what the server really sent.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol
from urllib.parse import urlsplit

from rag_judge.addresses import endpoint_url, is_local, public_url
from rag_judge.dialect import Dialect, as_sent, body_for, obeys_schema, probe_for
from rag_judge.errors import CannotGoOn
from rag_judge.money import estimated_prompt
from rag_judge.pace import DeadlinePassed, Pace
from rag_judge.records import Call, CallFailure, Reply, Usage
from rag_judge.responses import (
    Accepted,
    CaseRefused,
    FallBack,
    RunRefused,
    TryAgain,
    meaning_of,
    reply_text,
    whole,
)
from rag_judge.token_counts import TokenCount, WholePrompts, token_count

if TYPE_CHECKING:
    import asyncio

    from openai import AsyncOpenAI

# Ollama, vLLM, LM Studio, llama.cpp, SGLang and their like, as they listen unless told otherwise.
LOCAL_PORTS = (11434, 8000, 1234, 8080, 30000)
LONGEST_WAIT_S = 3600.0  # a longer Retry-After ends the run, which can be resumed
LARGEST_REPLY_BYTES = 8_000_000  # no verdict is that long
NO_KEY = "none"  # what is sent where no key is set: most local servers want some
MAX_REPAIRS = 8  # parameters given up for one request before it counts as refused


class Judge(Protocol):
    """Whatever answers calls: a model server, or a finished run that is replayed."""

    async def ask(self, call: Call) -> Reply | CallFailure:
        """The reply to a call, or why none came. Raises CannotGoOn when no call can be answered any more."""
        ...

    async def kept(self, call: Call) -> Reply | None:
        """A reply that is at hand and costs nothing; None where the call must be sent."""
        ...

    async def is_alive(self, call: Call) -> bool:
        """Whether it still answers at all, after many calls in a row brought no reply."""
        ...


@dataclass(frozen=True, slots=True)
class Server:
    """Where the judge is and how patiently it is asked. `api_key` never leaves this object but in the request."""

    base_url: str
    model: str
    api_key: str = field(repr=False)
    timeout_s: float = 120.0
    attempts: int = 5
    backoff_s: float = 0.5
    probe: bool = True
    counts_parts: bool = True  # False for a server that is known to refuse what it cannot hold
    body: Mapping[str, Any] = field(default_factory=dict)  # further fields of every request, from the settings


@dataclass(frozen=True, slots=True)
class Probed:
    """What the probe showed: whether a JSON schema is enforced (None: not seen), and how prompt tokens are counted.

    `usage` is of the probe and of the prompts whose parts were counted.
    """

    schema_obeyed: bool | None
    tokens: TokenCount | None
    usage: Usage


class ModelServer:
    """A judge behind an OpenAI-compatible address. Use it in an `async with`."""

    def __init__(
        self, server: Server, now: Callable[[], datetime], say: Callable[[str], None], pace: Pace | None = None
    ) -> None:
        """`now` is the clock for Retry-After dates; `say` gets a line when the server asks to wait long."""
        self.server = server
        self.pace = pace or Pace(1_000_000, time.monotonic)
        self.dialect = Dialect()
        self.probed: Probed | None = None  # known after the first call
        self.has_replied = False
        self._probing: asyncio.Lock | None = None
        self._stopped: CannotGoOn | None = None
        self._whole = WholePrompts(self._count)
        self._now = now
        self._say = say
        self._url = endpoint_url(server.base_url)
        self._client: AsyncOpenAI | None = None

    async def __aenter__(self) -> ModelServer:
        import httpx2
        from openai import AsyncOpenAI, DefaultAioHttpClient

        # A proxy from the environment must not be asked for the machine's own loopback servers.
        self._client = AsyncOpenAI(
            base_url=public_url(self.server.base_url),
            api_key=self.server.api_key,
            max_retries=0,
            http_client=DefaultAioHttpClient(
                follow_redirects=False,  # what is judged goes to the named server and nowhere else
                trust_env=not is_local(self._url),
                timeout=httpx2.Timeout(self.server.timeout_s, connect=10.0),
            ),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.close()

    async def ask(self, call: Call) -> Reply | CallFailure:
        """The reply to a call, or why none came after every try. Raises CannotGoOn for a fault of the whole run."""
        from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

        await self.learn(call)
        started = time.monotonic()
        attempts = 0
        try:
            async for attempt in AsyncRetrying(
                stop=stop_after_attempt(self.server.attempts),
                wait=self._pause,
                retry=retry_if_exception_type(_Passing),
                reraise=True,
            ):
                with attempt:
                    attempts += 1
                    body, raw, meaning = await self._accepted_or_refused(call)
        except _Passing as fault:
            elapsed = time.monotonic() - started
            cause: Literal["server_error", "no_reply"] = "server_error" if fault.answered else "no_reply"
            return CallFailure(cause, self._redacted(str(fault)), elapsed, attempts, fault.sent)
        sent = as_sent(body, call, self.server.body)
        elapsed = time.monotonic() - started
        if isinstance(meaning, CaseRefused):
            return CallFailure(meaning.cause, self._redacted(meaning.detail), elapsed, attempts, sent)
        cut = await self._why_cut(call, meaning.usage)
        raw = self._redacted(raw)
        return Reply(raw, meaning.finish_reason, meaning.model, meaning.usage, elapsed, attempts, sent, cut)

    def scale(self) -> tuple[float, int]:
        """Prompt tokens for one that we estimate, and how many times the planned completion tokens are asked for."""
        tokens = None if self.probed is None else self.probed.tokens
        per_token = tokens.reported / tokens.estimate if tokens is not None and tokens.is_plausible else 1.0
        return per_token, self.dialect.max_tokens_factor

    def overhead(self) -> Usage:
        """The tokens of the probe and of prompts whose parts were counted, as the server counted them."""
        return Usage(None, None) if self.probed is None else self.probed.usage

    def body(self, call: Call) -> dict[str, Any]:
        """The request that a call is, as far as the server is known by now."""
        return body_for(call, self.dialect, self.server.model, self.server.body)

    async def learn(self, call: Call) -> None:
        """Send one probe like this call, before any call goes out. What it cannot show is learned from refusals."""
        import asyncio

        if self.probed is not None or not self.server.probe:
            return
        self._probing = self._probing or asyncio.Lock()
        async with self._probing:
            if self._stopped is not None:
                raise self._stopped
            if self.probed is not None:
                return
            probe = probe_for(call)
            try:
                _, raw, meaning = await self._accepted_or_refused(probe)
            except CannotGoOn as stopped:
                self._stopped = stopped  # for the calls that wait for the probe
                raise
            except _Passing:  # the calls themselves are tried again; they meet the same fault, or it has passed
                meaning = None
            if not isinstance(meaning, Accepted):
                self.probed = Probed(None, None, Usage(None, None))
                return
            asked = "response_format" in probe.parameters and self.dialect.response_format == "json_schema"
            obeyed = obeys_schema(reply_text(raw), meaning.finish_reason) if asked else None
            if obeyed is False:
                self.dialect = replace(self.dialect, response_format="json_object")
            self.probed = Probed(obeyed, token_count(probe, meaning.usage.prompt_tokens), meaning.usage)

    async def _why_cut(self, call: Call, usage: Usage) -> str | None:
        """Why a part of the prompt was not read, as the server's own counts of its tokens show; None: nothing shows."""
        known = None if self.probed is None else self.probed.tokens
        if known is None or not self.server.counts_parts:
            return None
        return await self._whole.why_cut(call, known, usage.prompt_tokens)

    async def _count(self, part: Call) -> int | None:
        """The server's count of the prompt of a call whose reply is not needed; None where it gives none now."""
        try:
            _, _, meaning = await self._accepted_or_refused(part)
        except (CannotGoOn, DeadlinePassed, _Passing):
            return None  # the calls themselves meet the same fault, and say it
        if not isinstance(meaning, Accepted) or self.probed is None:
            return None
        self.probed = replace(self.probed, usage=self.probed.usage + meaning.usage)
        return meaning.usage.prompt_tokens

    async def _accepted_or_refused(self, call: Call) -> tuple[dict[str, Any], str, Accepted | CaseRefused]:
        """One try, in which refused parameters are given up one after another."""
        for _ in range(MAX_REPAIRS + 1):
            dialect = self.dialect
            body = self.body(call)
            sent = as_sent(body, call, self.server.body)
            entered_at = await self.pace.enter(estimated_prompt(call))
            with self.pace.counted():
                status, headers, raw = await self._post(body, sent)
            meaning = meaning_of(status, headers, raw, self._now(), public_url(self.server.base_url))
            if isinstance(meaning, Accepted | CaseRefused):
                self.has_replied = True
                self.pace.succeeded(headers)
                return body, raw, meaning
            if isinstance(meaning, TryAgain):
                if (meaning.wait_s or 0) <= LONGEST_WAIT_S:
                    self._slow_down(meaning, headers, entered_at)
                if (meaning.wait_s or 0) > LONGEST_WAIT_S:
                    wait = f"the judge asks to wait {meaning.wait_s:.0f} s, go on later"
                    raise CannotGoOn(self._redacted(f"{wait}: {meaning.detail}"))
                raise _Passing(meaning.detail, meaning.wait_s, answered=True, sent=sent)
            if isinstance(meaning, RunRefused):
                if status == 200 and self.has_replied:
                    # A page instead of a reply is a wrong address at first, and a passing fault of some proxy later.
                    raise _Passing(meaning.detail, None, answered=True, sent=sent)
                refused = next((name for name in self.server.body if names(meaning.detail, name)), None)
                if meaning.cause == "bad_request" and refused is None and self.has_replied:
                    # What the server has taken from others it refuses of this one, for a reason that we cannot read.
                    return body, raw, CaseRefused("server_error", meaning.detail)
                if meaning.cause != "bad_request" or refused is None:
                    no_key = self.server.api_key == NO_KEY and meaning.cause == "auth"
                    hint = "; no key was sent: set the environment variable that api_key_env names" if no_key else ""
                    raise CannotGoOn(
                        self._redacted(f"the judge cannot be used ({meaning.cause}): {meaning.detail}{hint}")
                    )
                meaning = FallBack("drop_field", meaning.detail, refused)
            refusal = meaning
            self._give_up(refusal, dialect)
        raise CannotGoOn(self._redacted(f"the judge refused {MAX_REPAIRS} parameters in turn: {refusal.detail}"))

    def _slow_down(self, meaning: TryAgain, headers: Mapping[str, str], entered_at: float) -> None:
        """Hold all calls back as the server asks. Raises DeadlinePassed when that is longer than there is time."""
        if meaning.too_fast:
            self.pace.too_fast(meaning.wait_s, headers, entered_at)
        else:
            self.pace.pause(meaning.wait_s)
        if self.pace.is_late(meaning.wait_s or 0.0):
            raise DeadlinePassed

    async def is_alive(self, call: Call) -> bool:
        """Whether the server answers a probe like this call, however it treats the call itself."""
        try:
            await self._accepted_or_refused(probe_for(call))
        except _Passing:
            return False
        return True

    async def kept(self, call: Call) -> Reply | None:
        """Always None: a server answers when it is asked. But it is known from here on, limits go by what it wants."""
        await self.learn(call)
        return None

    def _give_up(self, refusal: FallBack, dialect: Dialect) -> None:
        """Learn from a refused parameter. Another call may have learned the same meanwhile: then nothing is lost."""
        if self.dialect != dialect:
            return
        weaker = dialect.without(refusal)
        if weaker is None:
            raise CannotGoOn(self._redacted(f"the judge refuses the request (bad_request): {refusal.detail}"))
        self.dialect = weaker

    async def _post(self, body: Mapping[str, Any], sent: Mapping[str, Any]) -> tuple[int, Mapping[str, str], str]:
        """Status, headers (names in lower case) and body of one HTTP exchange. Raises _Passing when it breaks."""
        import asyncio

        import aiohttp
        import httpx2
        import openai

        if self._client is None:
            raise RuntimeError("ModelServer is used in an `async with`")
        try:
            # The client's own limit is per read: a server that drips a byte a second would never meet it.
            async with asyncio.timeout(self.server.timeout_s):
                response = await self._client.post(self._url, body=dict(body), cast_to=httpx2.Response)
                raw = response.content
        except openai.APIStatusError as error:
            response, raw = error.response, error.response.content
        except TimeoutError as error:
            raise _Passing(f"no reply within {self.server.timeout_s:g} s", None, answered=False, sent=sent) from error
        except (openai.APIConnectionError, httpx2.HTTPError, aiohttp.ClientError) as error:
            # The transport calls a closed connection a time-out, and lets some of aiohttp's own errors through.
            raise _Passing(f"connection failed: {error.__cause__ or error}", None, answered=False, sent=sent) from error
        if len(raw) > LARGEST_REPLY_BYTES:
            raise _Passing(f"a reply of {len(raw) / 1e6:.0f} MB, which is no verdict", None, answered=True, sent=sent)
        headers = {name.lower(): value for name, value in response.headers.items()}
        return response.status_code, headers, whole(raw.decode("utf-8", errors="replace"))

    def _pause(self, state: Any) -> float:
        """Seconds until the next try: what the server asked for, else twice as long each time, up to 30 s."""
        fault = state.outcome.exception()
        if fault.wait_s is not None:
            if fault.wait_s >= 30:
                self._say(f"the judge asks to wait {fault.wait_s:.0f} s: {self._redacted(str(fault))}")
            return float(fault.wait_s)
        return float(min(30.0, self.server.backoff_s * 2 ** (state.attempt_number - 1)))

    def _redacted(self, text: str) -> str:
        """The text without the key, should a server echo it."""
        for secret in (self.server.api_key, urlsplit(self._url).query):
            if is_secret(secret):
                text = text.replace(secret, "[redacted]")
        return text


class _Passing(Exception):
    """A fault that may pass; carries what the retry policy and the journal need."""

    def __init__(self, detail: str, wait_s: float | None, *, answered: bool, sent: Mapping[str, Any]) -> None:
        super().__init__(detail)
        self.wait_s = wait_s
        self.answered = answered
        self.sent = sent


def is_secret(key: str) -> bool:
    """True for what may be a key; the stand-ins that local servers are given (none, EMPTY) are words of any reply."""
    return len(key) > 3 and not (key.isalpha() and len(key) < 8)


def names(detail: str, field_name: str) -> bool:
    """True when an error message speaks of a field by its whole name."""
    return re.search(rf"(?<![\w.]){re.escape(field_name)}(?![\w])", detail) is not None


def answering_local_servers(ports: Sequence[int] = LOCAL_PORTS) -> list[str]:
    """Base URLs of model servers that answer `GET /v1/models` on the usual local ports; nothing else is sent."""
    import http.client

    found = []
    for port in ports:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=0.3)
        try:
            connection.request("GET", "/v1/models")
            response = connection.getresponse()
            if response.status == 200 and response.read(65536).lstrip()[:1] == b"{":
                found.append(f"http://127.0.0.1:{port}/v1")
        except (OSError, http.client.HTTPException):
            continue
        finally:
            connection.close()
    return found
