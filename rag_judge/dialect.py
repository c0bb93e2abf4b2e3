"""What one model server accepts, learned from one probe and from what it refuses; and how a call is worded for it.

Pure: nothing is sent here. The probe asks for something that no model says by itself, so that a server which takes a
JSON schema and then ignores it is found out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rag_judge.records import Call
from rag_judge.responses import FallBack

# A schema with values that no model would choose: only a server that enforces it answers with one of them.
PROBE_VALUES = ("zq7", "xk2")
PROBE_SCHEMA = {
    "type": "object",
    "properties": {"p": {"type": "string", "enum": list(PROBE_VALUES)}},
    "required": ["p"],
    "additionalProperties": False,
}
# The word JSON must stand in it: some servers refuse a response format without.
PROBE_QUESTION = (
    'Nothing is graded yet. Reply with one line of JSON, {"sky": "<its colour on a clear day>"}, and no more.'
)
MAX_TOKENS_FACTOR = 8  # for a server that finds the verdict's budget too small: it thinks first


@dataclass(frozen=True, slots=True)
class Dialect:
    """What this server accepts, as learned so far."""

    temperature: bool = True
    seed: bool = True
    max_tokens_name: str = "max_tokens"
    max_tokens_factor: int = 1
    response_format: str = "json_schema"  # then json_object, then none
    system_role: bool = True
    stream: bool = False
    thinking: bool = True  # False: switched off, because the server demands it
    dropped: frozenset[str] = field(default_factory=frozenset)  # fields of the user's settings that it refused

    def without(self, refusal: FallBack) -> Dialect | None:
        """The dialect after giving up one thing; None where there is nothing of it to give up."""
        changes = self._changes(refusal)
        weaker = replace(self, **changes)
        return None if weaker == self else weaker

    def _changes(self, refusal: FallBack) -> dict[str, Any]:
        match refusal.what:
            case "drop_temperature":
                return {"temperature": False}
            case "drop_seed":
                return {"seed": False}
            case "max_completion_tokens":
                return {"max_tokens_name": "max_completion_tokens"}
            case "raise_max_tokens":
                return {"max_tokens_factor": MAX_TOKENS_FACTOR}
            case "response_format":
                return {"response_format": "json_object" if self.response_format == "json_schema" else "none"}
            case "system_to_user":
                return {"system_role": False}
            case "stream_only":
                return {"stream": True}
            case "thinking_off":
                return {"thinking": False}
            case "drop_field":
                return {"dropped": self.dropped | ({refusal.field} if refusal.field else set())}
            case "drop_logprobs":
                return {"dropped": self.dropped | {"logprobs", "top_logprobs"}}
            case "n_single":
                return {"dropped": self.dropped | {"n"}}


def body_for(call: Call, dialect: Dialect, model: str, more: Mapping[str, Any]) -> dict[str, Any]:
    """The request as this server accepts it; `more` are the fields that the user's settings add."""
    planned = call.parameters
    body: dict[str, Any] = {"model": model, "messages": _messages(call, dialect)}
    if dialect.temperature:
        body["temperature"] = planned.get("temperature", 0)
    if dialect.seed and "seed" in planned:
        body["seed"] = planned["seed"]
    body[dialect.max_tokens_name] = planned["max_tokens"] * dialect.max_tokens_factor
    schema = planned.get("response_format")
    if schema is not None and dialect.response_format == "json_schema":
        body["response_format"] = schema
    elif schema is not None and dialect.response_format == "json_object":
        body["response_format"] = {"type": "json_object"}
    if dialect.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    if not dialect.thinking:
        body["enable_thinking"] = False
    return body | {name: value for name, value in more.items() if name not in dialect.dropped}


def as_sent(body: Mapping[str, Any], call: Call, more: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters as they went out, for the journal; the schema itself is part of the plan and not repeated."""
    sent = {name: value for name, value in body.items() if name != "messages"}
    if "response_format" in sent:
        sent["response_format"] = {"type": sent["response_format"]["type"]}
    if call.messages[0]["role"] == "system" and body["messages"][0]["role"] != "system":
        sent["system_role"] = False
    if refused := sorted(set(more) - set(body)):
        sent["refused"] = refused
    return sent


def _messages(call: Call, dialect: Dialect) -> list[dict[str, str]]:
    """The messages; a server without a system role gets the instructions in front of the first user message."""
    messages = [dict(message) for message in call.messages]
    if dialect.system_role or messages[0]["role"] != "system":
        return messages
    first, second, *rest = messages
    return [{"role": "user", "content": f"{first['content']}\n{second['content']}"}, *rest]


# --- the probe -----------------------------------------------------------------------------------------------------


def probe_for(call: Call) -> Call:
    """A call like this one, of no case: the same instructions and parameters, another question and schema.

    No schema where the call has none: what the server does with schemas is then neither learned nor needed.
    """
    parameters = dict(call.parameters)
    if "response_format" in parameters:
        parameters["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "probe", "strict": True, "schema": PROBE_SCHEMA},
        }
    instructions = [message for message in call.messages if message["role"] == "system"]
    messages = (*instructions, {"role": "user", "content": PROBE_QUESTION})
    return Call("probe", "", repeat=0, order=None, variant="probe", messages=messages, parameters=parameters)


def obeys_schema(content: str, finish_reason: str | None) -> bool | None:
    """True when the probe's schema was enforced, False when it was ignored, None when the reply does not show it."""
    if not content.strip() or finish_reason == "length":
        return None  # a model that thinks first may have used up its budget
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("p") in PROBE_VALUES
