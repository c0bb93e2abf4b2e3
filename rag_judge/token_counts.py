"""Whether a server read the whole of a prompt, told by its own counts of prompt tokens.

A server that drops the front of a prompt that is too long for it answers 200 all the same. Its count of the prompt
gives it away: it is less than its counts of the two halves come to. No tokenizer is needed, only the server's own, and
the counts agree within a few tokens whether the server counts tokens, words or characters.

A prompt that is counted lower than one known to be whole fits. So few prompts need their halves counted: in n prompts
that come in no order, about ln(n) are the longest so far. Those that do not fit are all counted alike.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rag_judge.prompts import estimated_tokens
from rag_judge.records import Call

if TYPE_CHECKING:
    import asyncio

LEAST_SHARE = 0.6  # of the expected prompt tokens; tokenizers differ less between texts of one language
SURE_SHARE = 0.42  # of the expected tokens alone, where probe and prompt are of the same script
CHINESE_DENSITY = 0.35  # estimated tokens for a character, from which a text is largely Chinese
PLAUSIBLE_TOKENS_PER_ESTIMATE = (0.2, 5.0)  # outside, what the server reports is no count of this prompt
SMALLEST_CONTEXT = 1_500  # tokens that any server in use holds: what is counted lower is asked about on suspicion only
LEAST_COUNT = 256  # no server holds less: a smaller count is one of what a cache left over
# What tokens that meet at the border of two halves, and trimmed white space, can come to.
SLACK_TOKENS, SLACK_SHARE = 16, 0.02
PART_MARK = "rag-judge counts"  # begins each counted part, so that no server's prompt cache leaves out a part of it


@dataclass(frozen=True, slots=True)
class TokenCount:
    """How many prompt tokens a server counted for a prompt of known size."""

    estimate: int
    n_characters: int
    reported: int

    @property
    def density(self) -> float:
        """Estimated tokens for a character: a quarter for English, one for Chinese; tells the script."""
        return self.estimate / self.n_characters

    @property
    def is_plausible(self) -> bool:
        """True when the number can be a count of that prompt."""
        low, high = PLAUSIBLE_TOKENS_PER_ESTIMATE
        return low * self.estimate <= self.reported <= high * self.estimate

    def suggests_cut(self, later: TokenCount) -> bool:
        """True when a later prompt was counted as so short that a part of it may not have been read.

        By tokens and by characters, because a server may count either way.
        """
        if not self.is_plausible or later.reported < LEAST_COUNT or later.reported == self.reported:
            return False
        by_tokens = self.reported / self.estimate * later.estimate
        by_characters = self.reported / self.n_characters * later.n_characters
        if later.reported < LEAST_SHARE * min(by_tokens, by_characters):
            return True
        # Where probe and prompt are of the same script, tokens alone show it.
        is_alike = later.density <= self.density or self.density >= CHINESE_DENSITY
        return is_alike and later.reported < SURE_SHARE * by_tokens


def token_count(call: Call, reported: int | None) -> TokenCount | None:
    """What a server counted for a call's messages; None where it did not count."""
    if not reported:
        return None
    # A long run of one character is a single token to many tokenizers.
    text = re.sub(
        r"(.)\1{4,}", r"\1\1\1\1", "\n".join(str(message["content"]) for message in call.messages), flags=re.S
    )
    return TokenCount(max(1, estimated_tokens(text)), max(1, len(text)), reported)


def parts_of(call: Call) -> dict[str, Call]:
    """The call with the whole of its last message, each half of it, and none of it; each with a mark of its own.

    Everything else is the call's, so that what a server adds to every prompt is in each of the four counts.
    """
    *before, last = call.messages
    text = str(last["content"])
    middle = len(text) // 2
    border = text.rfind("\n", middle // 2, middle) + 1 or middle  # at the end of a line, where there is one
    parts = {"whole": text, "first": text[:border], "second": text[border:], "none": "."}
    return {name: _marked(call, name, (*before, {**last, "content": part})) for name, part in parts.items()}


def _marked(call: Call, name: str, messages: tuple[Mapping[str, str], ...]) -> Call:
    first, *rest = messages
    marked = {**first, "content": f"[{PART_MARK} {call.call_id[:12]} {name}]\n{first['content']}"}
    return replace(call, call_id="", variant="count", messages=(marked, *rest))


def is_cut(whole: int, first: int, second: int, none: int) -> bool:
    """True when the prompt was counted as less than its halves are, beyond what their border can come to."""
    expected = first + second - none
    return expected - whole > max(SLACK_TOKENS, SLACK_SHARE * expected)


class WholePrompts:
    """Which of one server's replies are to prompts that it has read the whole of."""

    def __init__(self, count: Callable[[Call], Awaitable[int | None]]) -> None:
        """`count` sends a call and gives the server's count of its prompt; None where it cannot."""
        self._count = count
        self._none: dict[tuple[str, ...], int | None] = {}  # by what stands before the last message
        self._known: dict[tuple[str, ...], str | None] = {}  # by prompt: repeats share theirs
        self._longest_whole = 0
        self._follows_length = True  # until two parts are seen to be counted alike
        self._lock: asyncio.Lock | None = None

    async def why_cut(self, call: Call, probe: TokenCount, reported: int | None) -> str | None:
        """Why a part of a prompt cannot have been read; None where nothing shows that."""
        import asyncio

        count = token_count(call, reported)
        if count is None:
            return None
        self._lock = self._lock or asyncio.Lock()
        async with self._lock:
            if not self._follows_length or count.reported == probe.reported or count.reported < LEAST_COUNT:
                return None
            is_longest = count.reported >= max(self._longest_whole, SMALLEST_CONTEXT)
            if not is_longest and not probe.suggests_cut(count):
                return None
            prompt = tuple(str(message["content"]) for message in call.messages)
            if prompt not in self._known:
                self._known[prompt] = await self._counted_in_halves(call, count.reported)
            why = self._known[prompt]
            if why is None:
                self._longest_whole = max(self._longest_whole, count.reported)
            return why

    async def _counted_in_halves(self, call: Call, reported: int) -> str | None:
        parts = parts_of(call)
        before = tuple(str(message["content"]) for message in call.messages[:-1])
        if before not in self._none:
            self._none[before] = await self._count(parts["none"])
        none = self._none[before]
        first, second = await self._count(parts["first"]), await self._count(parts["second"])
        if none is None or first is None or second is None:
            return None
        self._follows_length = first != none
        if not is_cut(reported, first, second, none):
            return None
        # A server may count only what its prompt cache did not hold: what is counted afresh decides.
        whole = await self._count(parts["whole"])
        if whole is None:
            return None
        if is_cut(whole, first, second, none):
            return _dropped(whole, first + second - none)
        # Behind one address there may be servers of different sizes. What all prompts begin with may be left out of a
        # count by a prompt cache; more than that was not read.
        is_cached = reported >= whole - none - max(SLACK_TOKENS, SLACK_SHARE * whole)
        return None if is_cached or reported >= LEAST_SHARE * whole else _dropped(reported, whole)


def _dropped(counted: int, expected: int) -> str:
    return (
        f"the server counted {counted} tokens of a prompt of about {expected}: it dropped a part of it; "
        "raise its context size"
    )
