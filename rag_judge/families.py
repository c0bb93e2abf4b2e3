"""Which family a model is of, by its name: a judge may favour answers of its own kind. Nothing is asked of a server."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Parts of names as providers write them; the first that fits, so that a distilled model is of the base it names first.
FAMILIES: Mapping[str, str] = {
    "openai": r"gpt(?!4all)|davinci|\bo[134](?:-|\b)",
    "claude": r"claude",
    "gemini": r"gemini|gemma|palm",
    "qwen": r"qwen|qwq|tongyi",
    "deepseek": r"deepseek",
    "llama": r"(?<!o)llama(?!file|[._-]?cpp)|vicuna|tulu",  # programs that serve any model have it in their names
    "mistral": r"mistral|mixtral|ministral|magistral|codestral",
    "glm": r"glm",
    "yi": r"\byi-",
    "kimi": r"kimi|moonshot",
    "doubao": r"doubao|skylark|\bseed-",
    "ernie": r"ernie|wenxin",
    "hunyuan": r"hunyuan",
    "baichuan": r"baichuan",
    "internlm": r"internlm",
    "minimax": r"minimax|abab",
    "phi": r"\bphi-?\d",
    "command": r"command-[ar]|cohere",
    "grok": r"grok",
    "granite": r"granite",
    "smollm": r"smollm",
}
# Factors of the system under test that name the model which writes its answers.
ANSWERING = ("model", "llm", "generator", "generation_model", "chat_model", "answer_model", "llm_model")


def family_of(model: str) -> str | None:
    """The family of a model name; None for one that is not known here."""
    name = model.casefold()
    found = [(match.start(), family) for family, sign in FAMILIES.items() if (match := re.search(sign, name))]
    return min(found)[1] if found else None


def shared_family(judge: str, system: Mapping[str, object]) -> tuple[str, str] | None:
    """The answering model and its family where the judge is of the same one; None where it is not, or not known."""
    own = family_of(judge)
    for factor in ANSWERING:
        for model in _texts(system.get(factor)):
            if own is not None and family_of(model) == own:
                return model, own
    return None


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [part for part in value if isinstance(part, str)] if isinstance(value, list | tuple) else []
