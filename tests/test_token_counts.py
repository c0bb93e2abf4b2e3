"""Servers that read a part of a prompt and answer all the same: their own counts tell; no honest one is accused."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from rag_judge.dialect import PROBE_QUESTION
from rag_judge.grading import vote_of
from rag_judge.records import Call, Reply, Unscored
from rag_judge.token_counts import PART_MARK, TokenCount, is_cut, parts_of, token_count
from tests.misbehaviour import SERVER_ERROR, JudgeRequest, Respond, completion
from tests.servers import JudgeServer
from tests.test_dialect import PROMPT, VERDICT, ask, call, reply_of

Counter = Callable[[str], int]
# How servers really count: a tokenizer of words and single Chinese characters, estimates from characters or bytes.
COUNTERS: dict[str, Counter] = {
    "tokens": lambda text: len(re.findall(r"[A-Za-z]{1,6}|[0-9]|[^\sA-Za-z0-9]", text)),
    "characters": lambda text: len(text) // 4,
    "bytes": lambda text: len(text.encode()) // 3,
    "words": lambda text: len(text.split()),
}
ENGLISH = "Every trial runs for 14 days, and then it ends by itself unless a plan was chosen.\n"
CHINESE = "试用期为十四天,到期自动结束,除非已经选择了套餐 Pro 500。\n"


def counting(limit: int, per_token: float = 4) -> Callable[[JudgeRequest], Respond]:
    """A server that holds `limit` tokens: it drops the front of a longer prompt and answers all the same."""

    def reply(request: JudgeRequest) -> Respond:
        said = '{"p": "zq7"}' if PROBE_QUESTION in request.text else VERDICT
        return Respond(200, completion(said, n_prompt_tokens=min(limit, round(len(request.text) / per_token))))

    return reply


@pytest.mark.parametrize(
    "text", ["Every trial runs for 14 days. " * 700, "试用期为十四天,到期自动结束。" * 700], ids=["en", "zh"]
)
def test_a_server_that_drops_the_front_of_a_prompt_gets_no_vote(text: str) -> None:
    small = counting(2048, per_token=4 if text.isascii() else 1.5)
    with JudgeServer(small, on_probe=small, on_count=small) as server:
        results, _ = ask(server, [call(0, "short"), call(1, text)])
    assert reply_of(results).cut is None
    cut = results[1]
    assert isinstance(cut, Reply)
    assert cut.cut is not None
    assert "the server counted 2048 tokens" in cut.cut
    assert vote_of(cut, PROMPT) == Unscored("context_too_long", cut.cut)


@pytest.mark.parametrize(
    ("probe", "later", "shows"),
    [
        # estimate, characters, reported
        pytest.param((100, 400, 110), (6000, 24000, 6500), False, id="whole"),
        pytest.param((100, 400, 110), (6000, 24000, 2048), True, id="a third of it read"),
        pytest.param((100, 400, 110), (6000, 24000, 4400), False, id="a prose that packs better"),
        pytest.param((100, 400, 10), (6000, 24000, 10), False, id="a server that reports a constant"),
        pytest.param((100, 400, 9), (6000, 24000, 300), False, id="counts that are none"),
        pytest.param((100, 400, 110), (6000, 24000, 30), False, id="only what a cache left over"),
        # English instructions count 4 characters a token, Chinese material 1.6: neither measure alone would do.
        pytest.param((100, 400, 100), (6000, 6000, 3700), False, id="material of another language"),
        pytest.param((100, 400, 133), (6000, 6000, 2000), False, id="a server that counts characters by three"),
        pytest.param((170, 372, 124), (5100, 5300, 1770), False, id="the same, both Chinese"),
        pytest.param((170, 372, 170), (5100, 5300, 2048), True, id="Chinese, of which two fifths were read"),
    ],
)
def test_a_count_far_too_small_suggests_a_cut(
    probe: tuple[int, int, int], later: tuple[int, int, int], shows: bool
) -> None:
    assert TokenCount(*probe).suggests_cut(TokenCount(*later)) is shows


def test_a_server_that_counts_no_tokens_shows_nothing_and_a_run_of_one_character_counts_little() -> None:
    assert token_count(call(), None) is None
    assert token_count(call(), 0) is None
    ruled, plain = token_count(call(text="-" * 9000), 50), token_count(call(text="----"), 50)
    assert ruled == plain


# --- counted in halves -----------------------------------------------------------------------------------------------


def holding(limit: int, count: Counter, seen: list[str] | None = None) -> Callable[[JudgeRequest], Respond]:
    """A server that holds `limit` tokens of each prompt. With `seen` it counts only what its prompt cache lacks."""

    def reply(request: JudgeRequest) -> Respond:
        said = '{"p": "zq7"}' if PROBE_QUESTION in request.text else VERDICT
        n_cached = 0
        if seen is not None:
            n_cached = max((shared(request.text, other) for other in seen), default=0)
            seen.append(request.text)
        return Respond(200, completion(said, n_prompt_tokens=min(limit, count(request.text[n_cached:]))))

    return reply


def shared(one: str, other: str) -> int:
    """How many characters two texts have in common in front."""
    n = 0
    while n < min(len(one), len(other)) and one[n] == other[n]:
        n += 1
    return n


@pytest.mark.parametrize("material", [ENGLISH, CHINESE, ENGLISH + CHINESE], ids=["en", "zh", "mixed"])
@pytest.mark.parametrize("name", COUNTERS)
def test_of_many_prompts_just_those_that_do_not_fit_get_no_vote(name: str, material: str) -> None:
    count, draw = COUNTERS[name], random.Random(name)
    calls = [call(n, material * draw.randint(1, 900)) for n in range(60)]
    sizes = [count("\n".join(m["content"] for m in each.messages)) for each in calls]
    limit = sorted(sizes)[40]  # a third of them does not fit
    server_reads = holding(limit, count)
    with JudgeServer(server_reads, on_probe=server_reads, on_count=server_reads) as server:
        results, _ = ask(server, calls)
        n_counted = len(server.counted)
    for size, result in zip(sizes, results, strict=True):
        assert isinstance(result, Reply)
        if size <= limit:
            assert result.cut is None, (size, limit)
        elif size > 1.05 * limit and limit >= 1_500:
            assert result.cut is not None, (size, limit)
    # one for what all prompts share, two for each longest so far, three for each that does not fit
    assert n_counted <= 1 + 2 * 60 + sum(size > limit for size in sizes)


def test_an_honest_server_has_few_prompts_counted_in_halves_and_repeats_none() -> None:
    draw = random.Random(5)
    calls = [call(n, ENGLISH * draw.randint(40, 400)) for n in range(200)]
    reads = holding(1_000_000, COUNTERS["tokens"])
    with JudgeServer(reads, on_probe=reads, on_count=reads) as server:
        results, judge = ask(server, [*calls, *calls])
        n_counted = len(server.counted)
    assert all(isinstance(result, Reply) and result.cut is None for result in results)
    assert n_counted <= 1 + 2 * 20  # the 200 hold about ln(200) = 5 longest so far; three times as many are rare
    assert judge.probed is not None
    assert judge.probed.usage.prompt_tokens is not None
    assert judge.probed.usage.prompt_tokens > 1000  # what the counting used is said with the probe's tokens


def test_a_server_that_counts_only_what_its_prompt_cache_lacks_is_not_accused() -> None:
    reads = holding(1_000_000, COUNTERS["tokens"], seen=[])
    with JudgeServer(reads, on_probe=reads, on_count=reads) as server:
        results, _ = ask(server, [call(n, f"{n}\n" + ENGLISH * (100 + 7 * n)) for n in range(30)])
        assert server.counted
    assert all(isinstance(result, Reply) and result.cut is None for result in results)


def test_a_server_whose_parts_cannot_be_counted_keeps_its_votes() -> None:
    reads = holding(1_000_000, COUNTERS["words"])
    with JudgeServer(reads, on_probe=reads, on_count=lambda request: SERVER_ERROR) as server:
        results, _ = ask(server, [call(n, ENGLISH * (100 + n)) for n in range(3)])
        n_counted = len(server.counted)
    assert reply_of(results).cut is None
    assert n_counted <= 12


def test_a_reply_from_a_smaller_server_behind_the_same_address_is_told_by_a_fresh_count() -> None:
    large = holding(1_000_000, COUNTERS["tokens"])
    small = holding(2_000, COUNTERS["tokens"])

    def balanced(request: JudgeRequest) -> Respond:
        return small(request) if request.number == 2 else large(request)

    calls = [call(n, f"{n}\n" + ENGLISH * 400) for n in range(4)]
    with JudgeServer(balanced, on_probe=large, on_count=large) as server:
        results, _ = ask(server, calls)
        at_small = server.requests[1].text
    cut = [isinstance(result, Reply) and result.cut is not None for result in results]
    assert cut == [f"{n}\n" + ENGLISH in at_small for n in range(4)]


def test_nothing_is_counted_in_halves_where_the_server_is_not_to_be_probed() -> None:
    reads = holding(500, COUNTERS["words"])
    with JudgeServer(reads, on_probe=reads, on_count=reads) as server:
        results, _ = ask(server, [call(0, ENGLISH * 200)], probe=False)
        assert not server.counted
    assert reply_of(results).cut is None


def test_the_parts_are_the_call_with_less_text_and_begin_differently() -> None:
    whole = call(3, "one\ntwo\nthree\nfour")
    parts = parts_of(whole)
    texts = {name: part.messages[-1]["content"] for name, part in parts.items()}
    assert texts == {"whole": "one\ntwo\nthree\nfour", "first": "one\ntwo\n", "second": "three\nfour", "none": "."}
    firsts = {part.messages[0]["content"] for part in parts.values()}
    assert len(firsts) == 4
    assert all(first.startswith(f"[{PART_MARK} 000000000000 ") for first in firsts)
    assert all(part.parameters == whole.parameters for part in parts.values())
    alone = Call("x" * 40, "c", 0, None, None, ({"role": "user", "content": "abcdef"},), {"max_tokens": 5})
    assert [part.messages[0]["content"].split("\n")[1] for part in parts_of(alone).values()] == [
        "abcdef",
        "abc",
        "def",
        ".",
    ]


@pytest.mark.parametrize(
    ("whole", "first", "second", "none", "cut"),
    [
        (1000, 600, 500, 100, False),
        (985, 600, 500, 100, False),  # 15 tokens are what a border can come to
        (975, 600, 500, 100, True),
        (9850, 5100, 5000, 100, False),  # of 10,000, two in a hundred
        (9790, 5100, 5000, 100, True),
        (2048, 2048, 2048, 300, True),  # the halves do not fit either
        (300, 300, 300, 300, False),  # a server that says a constant
    ],
)
def test_a_prompt_is_cut_when_its_halves_count_for_more(
    whole: int, first: int, second: int, none: int, cut: bool
) -> None:
    assert is_cut(whole, first, second, none) is cut
