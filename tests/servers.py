"""Real servers on loopback for tests: a judge that speaks OpenAI's protocol, and a RAG endpoint.

    with JudgeServer(lambda request: '{"grounded": true}') as judge:
        ...  # judge.base_url, judge.requests, judge.max_concurrency

A reply function returns a text, or one of the values of `misbehaviour`. It runs on the thread of its connection and
may block; what it raises is raised again where the server's block ends. As a process of its own:
`python -m tests.servers judge --help`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import signal
import socket
import socketserver
import struct
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from http.client import responses
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar
from urllib.parse import urlsplit

from rag_judge.dialect import PROBE_QUESTION
from rag_judge.token_counts import PART_MARK
from tests.misbehaviour import (
    TROUBLES,
    UNAUTHORIZED,
    Close,
    Drip,
    Garbage,
    JudgeRequest,
    Misbehaviour,
    Never,
    Request,
    Reset,
    Respond,
    Troubles,
    Truncated,
    completion,
    failure,
    seeded_reply,
)

PROJECT = Path(__file__).parents[1]
NOT_FOUND = failure(404, "Not Found")
R = TypeVar("R", bound=Request)


class _Sockets(socketserver.ThreadingTCPServer):
    """Accepts connections, a thread each, and knows them all, so that every thread can be ended and joined."""

    allow_reuse_address = True
    daemon_threads = False  # joined by server_close
    request_queue_size = 512

    def __init__(self, port: int, respond: Callable[[str, str, Mapping[str, str], bytes], Misbehaviour]) -> None:
        """`respond` gets method, path, headers and body."""
        super().__init__(("127.0.0.1", port), _Connection)
        self.respond = respond
        self.closing = threading.Event()
        self.errors: list[BaseException] = []
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def get_request(self) -> tuple[socket.socket, Any]:
        """The next connection, noted."""
        connection, address = super().get_request()
        with self._lock:
            self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        """End a connection, and forget it."""
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep what a reply function raised; that a client went away is no error of ours."""
        error = sys.exception()
        if error is not None and not isinstance(error, ConnectionError):
            self.errors.append(error)

    def close(self) -> None:
        """End the accepting, then every connection, then wait for their threads."""
        self.closing.set()
        self.shutdown()
        with self._lock:
            for connection in self._open:
                # One that its client has reset is no longer connected.
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self.server_close()


class _Connection(BaseHTTPRequestHandler):
    """One connection, kept alive over many requests."""

    server: _Sockets
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionResetError("the client went away within its request")
        self._serve(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: tests read `requests`."""

    def _serve(self, body: bytes) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._do(self.server.respond(self.command, self.path, headers, body))

    def _do(self, what: Misbehaviour) -> None:
        if not isinstance(what, Respond):
            self.close_connection = True
        match what:
            case Respond(status, body, headers, content_type):
                sent = _utf8(body)
                self.wfile.write(_head(status, len(sent), content_type, headers) + sent)
            case Truncated(body, n_bytes):
                sent = _utf8(body)
                self.wfile.write(_head(200, len(sent)) + sent[:n_bytes])
            case Drip(body, pause_s, n_bytes):
                self._drip(_utf8(body), pause_s, n_bytes)
            case Garbage(sent):
                self.wfile.write(sent)
            case Reset(after_headers):
                if after_headers:
                    self.wfile.write(_head(200, 1000) + b'{"choices": ')
                self._reset()
            case Never():
                self.connection.recv(1)  # returns when the client goes away, or when this server is closed
            case Close():
                self.connection.shutdown(socket.SHUT_RDWR)

    def _drip(self, body: bytes, pause_s: float, n_bytes: int) -> None:
        self.wfile.write(_head(200, len(body)))
        for start in range(0, len(body), n_bytes):
            if self.server.closing.wait(pause_s):
                return
            self.wfile.write(body[start : start + n_bytes])

    def _reset(self) -> None:
        """Close at once, without lingering, which the other side sees as a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()  # holds the socket open as well
        self.connection.close()


def _utf8(body: str) -> bytes:
    """The bytes of a body. A lone surrogate, which UTF-8 cannot say, becomes the escape that JSON has for it."""
    return body.encode("utf-8", errors="backslashreplace")


def _head(
    status: int, n_bytes: int, content_type: str = "application/json", headers: tuple[tuple[str, str], ...] = ()
) -> bytes:
    """Status line and headers of a response."""
    fields = (("Content-Type", content_type), ("Content-Length", str(n_bytes)), *headers)
    return "\r\n".join(
        (f"HTTP/1.1 {status} {responses.get(status, '')}", *(f"{k}: {v}" for k, v in fields), "", "")
    ).encode()


class _Loopback(ABC, Generic[R]):
    """A server of one kind of request on a free port of 127.0.0.1, from `with` to the end of the block."""

    def __init__(self, *, port: int = 0, delay_s: float = 0.0) -> None:
        """Each answer waits `delay_s` first; `port` is for a server that comes back where one was."""
        self.url = ""  # known inside the block
        self.requests: list[R] = []  # of this kind, whole, in the order of their arrival
        self.max_concurrency = 0  # most requests at a time between their arrival and their reply being ready
        self._port = port
        self._delay_s = delay_s
        self._n_now = 0
        self._seen: Counter[bytes] = Counter()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._sockets = _Sockets(self._port, self._respond)
        self.url = f"http://127.0.0.1:{self._sockets.server_address[1]}"
        # The argument is how often it looks whether the block has ended.
        self._thread = threading.Thread(target=self._sockets.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._sockets.close()
        self._thread.join()
        if self._sockets.errors and error is None:
            raise self._sockets.errors[0]

    @abstractmethod
    def _respond(self, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> Misbehaviour: ...

    def _answered(
        self, kind: type[R], path: str, headers: Mapping[str, str], raw: bytes, answer: Callable[[R], Misbehaviour]
    ) -> Misbehaviour:
        """What `answer` says to a request, which is counted and kept; a 400 to a body that is no JSON object."""
        try:
            body = json.loads(raw)
        except ValueError:
            return failure(400, "We could not parse the JSON body of your request.")
        if not isinstance(body, dict):
            return failure(400, "The body must be a JSON object.")
        request = self._noted(kind(path, headers, body, number=0, times_seen=0))
        try:
            self._sockets.closing.wait(self._delay_s)
            return answer(request)
        finally:
            with self._lock:
                self._n_now -= 1

    def _noted(self, request: R) -> R:
        """The request with its numbers, after it was put on the list."""
        digest = hashlib.sha256(request.identity.encode()).digest()
        with self._lock:
            self._seen[digest] += 1
            self._n_now += 1
            self.max_concurrency = max(self.max_concurrency, self._n_now)
            numbered = replace(request, number=len(self.requests) + 1, times_seen=self._seen[digest])
            self.requests.append(numbered)
        return numbered


def obedient(request: JudgeRequest) -> str:
    """The reply to the probe of a server that enforces the JSON schema it is given."""
    schema = (request.body.get("response_format") or {}).get("json_schema", {}).get("schema", {})
    return '{"p": "zq7"}' if "p" in schema.get("properties", {}) else '{"sky": "blue"}'


def reply_body(text: str, request: JudgeRequest, model: str = "judge-1") -> str:
    """The chat completion that says this text to this request."""
    return completion(text, model=model, n_prompt_tokens=(len(request.text) + 1) // 2)


def _last_message(raw: bytes) -> str:
    try:
        return str(json.loads(raw)["messages"][-1]["content"])
    except (ValueError, KeyError, IndexError, TypeError):
        return ""


class JudgeServer(_Loopback[JudgeRequest]):
    """An OpenAI-compatible judge: `GET /v1/models` and `POST /v1/chat/completions`."""

    def __init__(
        self,
        reply: Callable[[JudgeRequest], str | Misbehaviour],
        *,
        port: int = 0,
        delay_s: float = 0.0,
        model: str = "judge-1",
        api_key: str | None = None,
        on_probe: Callable[[JudgeRequest], str | Misbehaviour] = obedient,
        on_count: Callable[[JudgeRequest], str | Misbehaviour] = obedient,
    ) -> None:
        """A text from `reply` becomes a chat completion. With `api_key`, requests without it get a 401.

        The one request by which rag-judge learns what a server can do goes to `on_probe`, and is in `probes`, not in
        `requests`; by default the server does all that it is asked. Parts of prompts, sent for their token counts
        alone, go to `on_count` and are in `counted`.
        """
        super().__init__(port=port, delay_s=delay_s)
        self.probes: list[JudgeRequest] = []
        self.counted: list[JudgeRequest] = []
        self._reply = reply
        self._on_probe = on_probe
        self._on_count = on_count
        self._model = model
        self._api_key = api_key

    @property
    def base_url(self) -> str:
        """The address as clients want it, ending in /v1."""
        return f"{self.url}/v1"

    def _respond(self, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> Misbehaviour:
        if self._api_key is not None and headers.get("authorization") != f"Bearer {self._api_key}":
            return UNAUTHORIZED
        match method, urlsplit(path).path:
            case "GET", "/v1/models":
                model = {"id": self._model, "object": "model", "created": 0, "owned_by": "tests"}
                return Respond(200, json.dumps({"object": "list", "data": [model]}))
            case "POST", "/v1/chat/completions" if PROBE_QUESTION in _last_message(raw):
                self.probes.append(JudgeRequest(path, headers, json.loads(raw), len(self.probes) + 1, 1))
                return self._said(self._on_probe(self.probes[-1]), self.probes[-1])
            case "POST", "/v1/chat/completions" if PART_MARK.encode() in raw:
                self.counted.append(JudgeRequest(path, headers, json.loads(raw), len(self.counted) + 1, 1))
                return self._said(self._on_count(self.counted[-1]), self.counted[-1])
            case "POST", "/v1/chat/completions":
                return self._answered(JudgeRequest, path, headers, raw, self._completion)
        return NOT_FOUND

    def _completion(self, request: JudgeRequest) -> Misbehaviour:
        return self._said(self._reply(request), request)

    def _said(self, said: str | Misbehaviour, request: JudgeRequest) -> Misbehaviour:
        return Respond(200, reply_body(said, request, self._model)) if isinstance(said, str) else said


class RagServer(_Loopback[Request]):
    """A RAG system: `POST /ask`."""

    def __init__(
        self,
        answer: Callable[[dict[str, Any]], Mapping[str, Any] | Misbehaviour],
        *,
        port: int = 0,
        delay_s: float = 0.0,
    ) -> None:
        """A mapping from `answer`, which gets the request's body, is sent as a JSON object."""
        super().__init__(port=port, delay_s=delay_s)
        self._answer = answer

    @property
    def ask_url(self) -> str:
        """The address that is asked."""
        return f"{self.url}/ask"

    def _respond(self, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> Misbehaviour:
        if (method, urlsplit(path).path) != ("POST", "/ask"):
            return NOT_FOUND
        return self._answered(Request, path, headers, raw, self._object)

    def _object(self, request: Request) -> Misbehaviour:
        said = self._answer(dict(request.body))
        return Respond(200, json.dumps(said, ensure_ascii=False)) if isinstance(said, Mapping) else said


# --- as a process of its own ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def judge_process(*arguments: str) -> Iterator[str]:
    """The base URL of a judge in a process of its own, started with these arguments, until the end of the block."""
    command = [sys.executable, "-m", "tests.servers", "judge", *arguments]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip() if process.stdout else ""
        finally:
            process.terminate()


def _main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.servers", description=__doc__)
    judge = parser.add_subparsers(required=True).add_parser(
        "judge",
        help="a judge that replies by seed; it ends on SIGTERM, on Ctrl-C, and with the process that started it",
    )
    judge.add_argument("--port", type=int, default=0)
    judge.add_argument("--seed", type=int, default=1, help="of the replies and of the faults")
    judge.add_argument("--delay", type=float, default=0.0, metavar="SECONDS", help="before each reply")
    judge.add_argument("--fault-rate", type=float, default=0.0, metavar="SHARE", help="of the tries that go wrong")
    judge.add_argument("--odd-rate", type=float, default=0.0, metavar="SHARE", help="of the replies in an odd form")
    judge.add_argument("--lasting-rate", type=float, default=0.0, metavar="SHARE", help="of the cases never answered")
    judge.add_argument("--record", type=Path, metavar="FILE", help="append a JSON line for each request")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    parent = os.getppid()
    server = JudgeServer(_seeded(options), port=options.port, delay_s=options.delay)
    with contextlib.suppress(KeyboardInterrupt), server:
        print(server.base_url, flush=True)
        while os.getppid() == parent:
            threading.Event().wait(0.5)


def _seeded(options: argparse.Namespace) -> Callable[[JudgeRequest], Misbehaviour]:
    """A seeded reply or what becomes of it, after it was written down with its request."""
    reply, lock = seeded_reply(options.seed), threading.Lock()
    troubles = Troubles(options.seed, passing=options.fault_rate, odd=options.odd_rate, lasting=options.lasting_rate)

    def answer(request: JudgeRequest) -> Misbehaviour:
        name, body = troubles(request), reply_body(reply(request), request)
        what = Respond(200, body) if name is None else TROUBLES[name](body)
        if options.record is not None:
            line = {"number": request.number, "times_seen": request.times_seen, "identity": request.identity}
            line |= {"trouble": name, "body": getattr(what, "body", None)}
            with lock, options.record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        return what

    return answer


if __name__ == "__main__":
    _main()
