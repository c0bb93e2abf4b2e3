"""Which family a model is of, by names as providers, hubs and servers write them."""

from __future__ import annotations

import pytest

from rag_judge.families import family_of, shared_family


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("gpt-5-mini", "openai"),
        ("openai/gpt-oss-120b", "openai"),
        ("azure/GPT-4o", "openai"),
        ("o3", "openai"),
        ("o4-mini-2025-04-16", "openai"),
        ("claude-sonnet-4-5", "claude"),
        ("anthropic.claude-3-haiku-v1:0", "claude"),
        ("gemini-2.5-flash", "gemini"),
        ("google/gemma-3-27b-it", "gemini"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen"),
        ("QwQ-32B", "qwen"),
        ("deepseek-chat", "deepseek"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama"),
        ("tinyllama", "llama"),
        ("mistralai/Mixtral-8x7B", "mistral"),
        ("zai-org/GLM-4.5", "glm"),
        ("chatglm3-6b", "glm"),
        ("01-ai/Yi-34B-Chat", "yi"),
        ("moonshotai/Kimi-K2", "kimi"),
        ("doubao-seed-1.6", "doubao"),
        ("ERNIE-4.5", "ernie"),
        ("microsoft/phi-4", "phi"),
        ("command-r-plus", "command"),
        ("x-ai/grok-4", "grok"),
        ("SmolLM2-135M-Instruct", "smollm"),
    ],
)
def test_a_family_is_told_by_the_name(name: str, family: str) -> None:
    assert family_of(name) == family


@pytest.mark.parametrize(
    ("name", "family"),
    [
        pytest.param("ollama/qwen2.5:7b", "qwen", id="ollama"),
        pytest.param("ollama/llama3.2", "llama", id="a llama on ollama"),
        pytest.param("ollama/nomic", None, id="ollama alone"),
        pytest.param("llama.cpp/qwen3-8b.gguf", "qwen", id="llama.cpp"),
        pytest.param("llamafile:mistral-7b", "mistral", id="llamafile"),
        pytest.param("groq/llama-3.3-70b", "llama", id="groq is not grok"),
        pytest.param("openai/qwen-plus", "qwen", id="a server that speaks as another does"),
    ],
)
def test_what_serves_a_model_is_not_its_family(name: str, family: str | None) -> None:
    assert family_of(name) == family


@pytest.mark.parametrize("name", ["", "judge-1", "model", "foo1-bar", "my-custom-model", "solo3", "playing-yi"])
def test_an_unknown_name_is_of_no_family(name: str) -> None:
    assert family_of(name) is None


def test_a_distilled_model_is_of_the_base_it_names_first() -> None:
    assert family_of("deepseek-r1-distill-llama-8b") == "deepseek"


@pytest.mark.parametrize(
    ("system", "found"),
    [
        pytest.param({"model": "qwen-plus"}, ("qwen-plus", "qwen"), id="the same family"),
        pytest.param({"llm": ["gpt-5", "Qwen3-8B"]}, ("Qwen3-8B", "qwen"), id="one of several"),
        pytest.param({"model": "gpt-5"}, None, id="another family"),
        pytest.param({"embedding": "qwen3-embedding"}, None, id="an embedding writes no answer"),
        pytest.param({"model": 7, "llm": None}, None, id="no text"),
        pytest.param({}, None, id="nothing known"),
    ],
)
def test_the_answering_model_of_the_judges_family_is_found(
    system: dict[str, object], found: tuple[str, str] | None
) -> None:
    assert shared_family("qwen3-max", system) == found


def test_two_unknown_models_share_no_family() -> None:
    assert shared_family("judge-1", {"model": "judge-1"}) is None
