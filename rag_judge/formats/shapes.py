"""Questions, answers and contexts in the shapes in which other tools keep them. Nothing is read from a file here.

A shape that is not known gives None, and whoever asked says so; nothing is made up in its place.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from rag_judge.errors import InputError
from rag_judge.formats.found import without_none
from rag_judge.rows import kind_of

QUESTION_KEYS = ("question", "query", "user_input", "user_query", "input", "q", "prompt", "text", "content")
ANSWER_KEYS = (
    "answer",
    "response",
    "output",
    "actual_output",
    "completion",
    "result",
    "output_text",
    "text",
    "content",
)
CONTEXTS_KEYS = (
    "contexts",
    "context",
    "documents",
    "retrieved_contexts",
    "source_documents",
    "chunks",
    "docs",
    "nodes",
    "source_nodes",
    "results",
    "matches",
    "hits",
    "output",
)
_ID_KEYS = ("id", "doc_id", "document_id", "chunk_id", "_id", "id_", "node_id", "docid")
_TEXT_KEYS = ("text", "content", "page_content", "pageContent", "body", "chunk", "snippet", "document")
_SCORE_KEYS = ("score", "relevance_score", "similarity", "relevance")
_USER_ROLES = ("user", "human")
_ASSISTANT_ROLES = ("assistant", "ai", "model")


def decoded(value: Any) -> Any:
    """A text that is a JSON object or array as that; every other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


# --- messages ------------------------------------------------------------------------------------------------------


def message_text(message: Any) -> str | None:
    """The text of a chat message or of its parts, other media left aside; None without any."""
    if isinstance(message, str):
        return message
    if isinstance(message, list):
        texts = [text for part in message if (text := message_text(part))]
        return "\n".join(texts) or None
    if not isinstance(message, Mapping) or message.get("type") in ("tool_call", "tool_use", "reasoning", "thinking"):
        return None
    inner = message.get("kwargs") if message.get("type") == "constructor" else message.get("message")
    if isinstance(inner, Mapping):
        return message_text(inner)
    for key in ("content", "parts", "text"):
        if message.get(key) is not None:
            return message_text(message[key])
    return None


def role_of(message: Any) -> str | None:
    """`user` or `assistant`, whatever the tool calls them; None for a system's or a tool's message."""
    if not isinstance(message, Mapping):
        return None
    inner = message.get("message")
    if isinstance(inner, Mapping):  # {"message.role": …} of OpenInference, nested
        return role_of(inner)
    if message.get("type") == "constructor":
        name = str((message.get("id") or [""])[-1]).lower()
        return "user" if name.startswith("human") else "assistant" if name.startswith("ai") else None
    for key in ("role", "type"):
        role = str(message.get(key, "")).lower()
        if role in _USER_ROLES:
            return "user"
        if role in _ASSISTANT_ROLES:
            return "assistant"
    return None


def conversation(messages: Sequence[Any]) -> tuple[str | None, list[dict[str, str]], str | None]:
    """(last question of the user, turns before it, what the assistant said after it) of a list of messages."""
    turns = [(role, text) for message in messages if (role := role_of(message)) and (text := message_text(message))]
    asked = [i for i, (role, _) in enumerate(turns) if role == "user"]
    if not asked:
        return None, [], None
    last = asked[-1]
    history = [{"role": role, "content": text} for role, text in turns[:last]]
    replies = [text for role, text in turns[last + 1 :] if role == "assistant"]
    return turns[last][1], history, replies[-1] if replies else None


def _are_messages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(role_of(v) or _is_silent(v) for v in value)


def _is_silent(message: Any) -> bool:
    return isinstance(message, Mapping) and ("role" in message or "type" in message)


def question_of(value: Any) -> tuple[str | None, list[dict[str, str]]]:
    """(question, turns before it) of the input of an application: text, messages, or an object with a known key."""
    value = decoded(value)
    if isinstance(value, str):
        return (value if value.strip() else None), []
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]  # LangChain gives batches of messages
    if _are_messages(value):
        return conversation(value)[:2]
    if not isinstance(value, Mapping):
        return None, []
    for key in ("messages", "input_messages"):
        if key in value:
            return question_of(value[key])
    earlier: list[Any] = next(
        (value[key] for key in ("chat_history", "history") if isinstance(value.get(key), list)), []
    )
    text = next((asked for key in QUESTION_KEYS if (asked := question_of(value.get(key))[0])), None)
    if text is None and len(value) == 1 and isinstance(only := next(iter(value.values())), str):
        text = only
    turns = [
        {"role": role, "content": said} for turn in earlier if (role := role_of(turn)) and (said := message_text(turn))
    ]
    return (text if text and text.strip() else None), turns


def answer_text(value: Any) -> str | None:
    """The text of an application's output: text, a message, messages, or an object with a known key."""
    value = decoded(value)
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
        said = [text for part in value if role_of(part) != "user" and (text := message_text(part)) is not None]
        return said[-1] if said else None
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("messages"), list):
        return answer_text(value["messages"])
    for key in ANSWER_KEYS:
        if (text := answer_text(value.get(key))) is not None:
            return text
    only = next(iter(value.values())) if len(value) == 1 else None
    return only if isinstance(only, str) else None


# --- contexts ------------------------------------------------------------------------------------------------------


def contexts_of(value: Any, where: str) -> list[dict[str, Any]] | None:
    """The contexts in a list, in an object that holds a list under a known key, or a text alone; None for null.

    Raises InputError naming `where` for any other shape: a list in a list, a number, an object without a known key.
    """
    value = decoded(value)
    if value is None:
        return None
    if isinstance(value, str):
        return [{"text": value}]
    if isinstance(value, Mapping):
        for key in CONTEXTS_KEYS:
            if isinstance(value.get(key), list):
                return contexts_of(value[key], f"{where}.{key}")
        return [context_of(value, where)]
    if not isinstance(value, list):
        raise InputError(f"{where}: found {kind_of(value)}, expected a list of contexts")
    return [context_of(part, f"{where}[{i}]") for i, part in enumerate(value)]


def context_of(value: Any, where: str) -> dict[str, Any]:
    """One context: id, text, score and tenant where it has them, the rest under `metadata`. A distance is no score."""
    if isinstance(value, str):
        return {"text": value}
    if not isinstance(value, Mapping):
        raise InputError(
            f"{where}: found {kind_of(value)}, expected a context: text, or an object with an id or a text"
        )
    fields = _opened(value)
    metadata = decoded(fields.pop("metadata", None))
    kept = dict(metadata) if isinstance(metadata, Mapping) else without_none({"metadata": metadata})
    text, score = _taken(fields, _TEXT_KEYS, _is_text), _taken(fields, _SCORE_KEYS, _is_score)
    doc = _taken(fields, _ID_KEYS, _is_id)
    if doc is None:
        doc = _taken(kept, _ID_KEYS, _is_id)
    if doc is None and text is None:
        raise InputError(
            f"{where}: found neither an id nor a text among {', '.join(map(repr, value)) or 'no fields'}; "
            "say where they are with --map contexts[].text=…"
        )
    tenant = _taken(fields, ("tenant",), _is_id)
    tenant = kept.get("tenant") if tenant is None and _is_id(kept.get("tenant")) else tenant
    rest = kept | {name: part for name, part in fields.items() if part is not None and name not in ("type", "lc")}
    return without_none({"id": doc, "text": text, "score": score, "tenant": tenant, "metadata": rest or None})


def _opened(value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a document, out of the objects that tools wrap around it, beside a score of the wrapper's own."""
    fields = {str(name).removeprefix("document."): part for name, part in value.items()}
    if fields.get("type") == "constructor" and isinstance(fields.get("kwargs"), Mapping):
        return _opened(fields["kwargs"])
    for key in ("document", "node", "doc"):
        if isinstance(fields.get(key), Mapping):
            inner = fields.pop(key)
            return _opened(inner) | fields
    return fields


def _taken(fields: dict[str, Any], keys: Sequence[str], fits: Any) -> Any:
    """The first value under one of these keys that fits, taken out of the fields; None without one."""
    for key in keys:
        if fits(fields.get(key)):
            return fields.pop(key)
    return None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_id(value: Any) -> bool:
    return (isinstance(value, str) and bool(value.strip())) or (isinstance(value, int) and not isinstance(value, bool))


def _is_score(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def zipped(texts: Any, ids: Any, where: str) -> list[dict[str, Any]] | None:
    """Contexts of two parallel lists, either of which may be missing. Raises InputError where the lengths differ."""
    contexts = None if texts is None else contexts_of(texts, where)
    if ids is None:
        return contexts
    if not isinstance(ids, list):
        raise InputError(f"{where}: found ids that are {kind_of(ids)}, expected a list")
    if contexts is None:
        return [{"id": doc} for doc in ids]
    if len(contexts) != len(ids):
        raise InputError(f"{where}: found {len(contexts)} texts and {len(ids)} ids, expected an id for each text")
    return [{**context, "id": doc} for doc, context in zip(ids, contexts, strict=True)]
