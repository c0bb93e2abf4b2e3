"""One case at the judge: which call comes next, and what its replies decide. Pure; both ask the same walk.

The plan of a case is its repeats in order. A repeat whose reply cannot be read may be asked once more in a call of
its own; asking stops early when nothing can change any more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_judge.prompts import json_schema, messages_for, pass_rule, reask_message
from rag_judge.records import Answer, Call, CallFailure, Case, Decision, Prompt, Reply, Unscored
from rag_judge.verdicts import read_body
from rag_judge.votes import Vote, decide, is_settled

Result = Reply | CallFailure
# Only a reply that came in the wrong form is worth asking again; a refusal or a filter would answer the same.
ASKED_AGAIN = frozenset({"unreadable", "conflicting"})


@dataclass(frozen=True, slots=True)
class GradingPlan:
    """How every case of a run is graded: all that its calls depend on besides the case itself."""

    prompts: Mapping[str, Prompt]  # by language
    server: str  # normalised base URL, or `embedded:` and the model's hash
    model: str
    n_repeats: int
    seed: int
    early_stop: bool = True
    reask: bool = True
    max_tokens: int | None = None  # in place of the prompt's own
    reason_max_length: int | None = None


@dataclass(frozen=True, slots=True)
class Walk:
    """Where a case stands: the votes so far, and the call that is needed next (None: finished)."""

    votes: list[Vote]
    next_call: Call | None
    n_reasked: int


@dataclass(slots=True)
class CaseGrading:
    """One case with its answer, ready to be asked about. Messages are rendered when the first call is planned."""

    case: Case
    answer: Answer
    prompt: Prompt
    plan: GradingPlan
    did_abstain: bool
    _messages: tuple[Mapping[str, str], ...] | None = field(default=None, init=False)

    @property
    def case_id(self) -> str:
        """The id of the case."""
        return self.case.id

    def next_call(self, replies: Mapping[str, Result]) -> Call | None:
        """The call that is needed next, given the replies so far by call id; None when the case is finished."""
        return self.walk(replies).next_call

    def walk(self, replies: Mapping[str, Result]) -> Walk:
        """Go through the planned repeats as far as replies are known."""
        votes: list[Vote] = []
        n_reasked = 0
        for repeat in range(self.plan.n_repeats):
            if self.plan.early_stop and is_settled(votes, self.plan.n_repeats, self.prompt.fields):
                break
            call = self.planned(repeat)
            if call.call_id not in replies:
                return Walk(votes, call, n_reasked)
            vote = vote_of(replies[call.call_id], self.prompt)
            again = self.reasked(call, replies[call.call_id], vote)
            if again is not None:
                if again.call_id not in replies:
                    return Walk(votes, again, n_reasked)
                n_reasked += 1
                vote = vote_of(replies[again.call_id], self.prompt)
            votes.append(vote)
        return Walk(votes, None, n_reasked)

    def planned(self, repeat: int) -> Call:
        """The call of one planned repeat."""
        if self._messages is None:
            self._messages = messages_for(self.prompt, self.case, self.answer, self.plan.seed)
        return self._call(repeat, self._messages, variant=None)

    def reasked(self, call: Call, result: Result, vote: Vote) -> Call | None:
        """The one further call after a reply that could not be read; None where none is due."""
        if not self.plan.reask or isinstance(result, CallFailure):
            return None
        if not isinstance(vote, Unscored) or vote.reason not in ASKED_AGAIN:
            return None
        request = reask_message(self.prompt)
        if request is None:
            return None
        said = {"role": "assistant", "content": reply_text(result.raw)}
        return self._call(call.repeat, (*call.messages, said, {"role": "user", "content": request}), variant="reask")

    def _call(self, repeat: int, messages: tuple[Mapping[str, str], ...], variant: str | None) -> Call:
        schema = json_schema(self.prompt.fields, self.plan.reason_max_length)
        parameters: dict[str, Any] = {
            "temperature": 0,
            "max_tokens": self.plan.max_tokens or self.prompt.max_tokens,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "verdict", "strict": True, "schema": schema},
            },
        }
        return Call(
            call_id=call_id(self.plan, self.case.id, self.prompt.version, repeat, variant, messages, parameters),
            case_id=self.case.id,
            repeat=repeat,
            order=None,
            variant=variant,
            messages=messages,
            parameters=parameters,
        )


def vote_of(result: Result, prompt: Prompt) -> Vote:
    """The verdict in a reply, or why there is none."""
    if isinstance(result, CallFailure):
        return Unscored(result.cause, result.detail)
    return read_body(result.raw, prompt.fields)


def decision_of(
    recorded: Mapping[tuple[int, str | None], Result], prompt: Prompt, n_planned: int, did_abstain: bool
) -> Decision:
    """What the kept replies of one case decide, by (repeat, variant), read with today's parser.

    A further try stands in for a reply that cannot be read. No reply at all is a case whose reply never came.
    """
    votes: list[Vote] = []
    for repeat in range(n_planned):
        if (repeat, None) not in recorded:
            break
        vote = vote_of(recorded[repeat, None], prompt)
        again = recorded.get((repeat, "reask"))
        if again is not None and isinstance(vote, Unscored) and vote.reason in ASKED_AGAIN:
            vote = vote_of(again, prompt)
        votes.append(vote)
    votes = votes or [Unscored("no_reply", "no reply is kept")]
    return decide(votes, n_planned, prompt.fields, pass_rule(prompt, did_abstain))


def call_id(
    plan: GradingPlan,
    case_id: str,
    prompt_version: str,
    repeat: int,
    variant: str | None,
    messages: tuple[Mapping[str, str], ...],
    parameters: Mapping[str, Any],
) -> str:
    """40 hex digits of the sha256 over all that determines a reply, as planned; the order of keys does not matter."""
    determining = {
        "server": plan.server,
        "model": plan.model,
        "case_id": case_id,
        "prompt_version": prompt_version,
        "repeat": repeat,
        "variant": variant,
        "messages": [dict(message) for message in messages],
        "parameters": dict(parameters),
    }
    return hashlib.sha256(json.dumps(determining, sort_keys=True).encode()).hexdigest()[:40]


def reply_text(raw: str) -> str:
    """The assistant's text in a raw reply, at most 4,000 characters; "" where there is none."""
    try:
        content = json.loads(raw)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return ""
    return content[:4000] if isinstance(content, str) else ""
