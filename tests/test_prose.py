"""A judge that answers in prose: which wordings are a verdict, which are none, and which patterns a folder may have."""

import asyncio
import json
import re
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_judge.errors import InputError
from rag_judge.grading import CaseGrading, GradingPlan, PairGrading, decision_of, vote_of
from rag_judge.judge import ModelServer, Server
from rag_judge.pairs import pair_row
from rag_judge.prompts import load_prompt
from rag_judge.prose import MOST_CHARACTERS, read_prose
from rag_judge.records import Answer, Call, Case, Context, Prompt, Reply, Unscored, Usage, Value, Verdict
from tests.servers import JudgeServer

DOC = (Path(__file__).parent.parent / "docs" / "reading-prose.md").read_text(encoding="utf-8")
PAIR_TOML = DOC.partition("```toml\n")[2].partition("```")[0]  # the page's own example, so that it stays true
TEMPLATE = (
    "{% block system %}Compare.{% endblock %}{% block user %}{{ first.answer }} or {{ second.answer }}?{% endblock %}"
    "{% block reask %}End with the sentence asked for.{% endblock %}"
)
GRADES_TOML = r"""
mode = "passfail"
pass_when = "grounded and clarity >= 2"
[[fields]]
name = "grounded"
kind = "boolean"
[[fields]]
name = "clarity"
kind = "score"
high = 3
[reading.grounded]
true = ['\bgrounded: yes\b', '有依据']
false = ['\bgrounded: no\b', '无依据']
[reading.clarity]
1 = ['\bclarity: 1\b']
2 = ['\bclarity: 2\b']
3 = ['\bclarity: 3\b']
"""
GRADES_TEMPLATE = TEMPLATE.replace("first.answer", "question").replace("second.answer", "answer")
USAGE = Usage(None, None)


@pytest.fixture
def pair(tmp_path: Path) -> Prompt:
    return loaded(tmp_path, PAIR_TOML, TEMPLATE)


@pytest.fixture
def grades(tmp_path: Path) -> Prompt:
    return loaded(tmp_path, GRADES_TOML, GRADES_TEMPLATE)


def loaded(folder: Path, toml: str, template: str) -> Prompt:
    (folder / "prompt.toml").write_text(toml, encoding="utf-8")
    (folder / "en.j2").write_text(template, encoding="utf-8")
    return load_prompt(folder)["en"]


def reply(content: object, finish_reason: str | None = "stop", **more: Any) -> Reply:
    message = {"role": "assistant", "content": content, **more}
    raw = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]})
    return Reply(raw, finish_reason, "m", USAGE, 0.1, 1, {})


def said(found: Verdict | Unscored) -> Value | str:
    """The winner, or the reason why there is none."""
    return found.reason if isinstance(found, Unscored) else found.values["winner"]


# --- texts of a judge that compares ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Output (a)", "A", id="the name alone"),
        pytest.param("**Output (b)**.", "B", id="the name alone, set in bold"),
        pytest.param("## Output (b) is better.\n", "B", id="the verdict as a heading"),
        pytest.param("output (A) is better", "A", id="in another case"),
        pytest.param("Output\u00a0(a)\r\n is\tbetter.", "A", id="other white space"),
        pytest.param("Out\u200bput (a) is better.", "A", id="a zero-width character"),
        pytest.param("Output (b)\n\nExplanation:\nOutput (a) names no price, while", "B", id="then about the other"),
        pytest.param("Output (a) is better. Output (b) leaves out the date. Therefore, Output (a) is better.", "A",
                     id="said twice"),
        pytest.param("Output (a) is shorter. Output (b) has the date. Therefore, Output (b) is better.", "B",
                     id="both named, one concluded"),
        pytest.param("Output (b) is better in style, and Output (a) is better in substance. "
                     "Thus Output (a) is the better one.", "A", id="criteria weighed"),
        pytest.param("I come to the conclusion that Output (b) is better.\nAnother reader argued that Output (a) is "
                     "better, for its length.\nI disagree. Therefore, Output (b) is better.", "B",
                     id="another's view reported"),
        pytest.param("I must not promote gambling. Therefore I must choose Output (a) as the better option.", "A",
                     id="a scruple, then a choice"),
        pytest.param("Both are fine and as likely to win. Therefore, Output (a) is better.", "A",
                     id="hedged, but concluded"),
        pytest.param("Both outputs are equally good in tone. However, only Output (a) has the fee. "
                     "Therefore, Output (a) is better.", "A", id="equal in one respect"),
        pytest.param("Both say 30 days. Therefore, both outputs are equally good.", "tie", id="a tie"),
        pytest.param("Overall, both Output (a) and Output (b) are equally good for a beginner.", "tie",
                     id="a tie by both names"),
        pytest.param('{"winner": "A"}\nTherefore, Output (b) is better.', "B", id="JSON is not looked for"),
        pytest.param("Output (a) is better. It says why. Therefore, Output (b) is better.", "conflicting",
                     id="first one, then the other"),
        pytest.param("Therefore, Output (b) is better. Thus, Output (a) is better.", "conflicting",
                     id="the last does not win"),
        pytest.param("Therefore, both outputs are equally good. Therefore, Output (a) is better.", "conflicting",
                     id="a tie and a winner"),
        pytest.param("Therefore, Output (a) is better in style, but not in substance.", "unreadable",
                     id="a conclusion with a but"),
        pytest.param("Output (a) may be better. It depends on the reader.", "unreadable", id="perhaps"),
        pytest.param("In terms of style, both outputs are equally good. In terms of detail, both", "unreadable",
                     id="it breaks off before it concludes"),
        pytest.param("Output (a): names a price.\nOutput (b): names none.", "unreadable", id="a list"),
        pytest.param("Both Output (a) and Output (b) answer the question.", "unreadable", id="no conclusion"),
        pytest.param('{"winner": "A"}', "unreadable", id="JSON alone"),
        pytest.param('["Output (a)"] and more', "unreadable", id="a list in brackets"),
        pytest.param("f3", "unreadable", id="noise"),
        pytest.param("I cannot assist with comparing these.", "refused", id="declines"),
        pytest.param("很抱歉,我无法评估这些内容。", "refused", id="declines in Chinese"),
        pytest.param(" \n\u200b", "no_reply", id="blank"),
    ],
)  # fmt: skip
def test_a_text_is_read_by_what_it_concludes(pair: Prompt, text: str, expected: str) -> None:
    assert said(vote_of(reply(text), pair)) == expected
    assert said(read_prose(text, pair.reading)) == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(reply("<think>Output (a) is better.</think>Output (b) is better."), "B", id="thinking in tags"),
        pytest.param(reply("Output (a) is better.</think>\nOutput (b) is better."), "B", id="tag opened by the server"),
        pytest.param(reply("<think>{</think>Output (b) is better."), "B", id="a brace in the thinking"),
        pytest.param(reply("<think>Therefore, Output (a) is better."), "unreadable", id="thinking without end"),
        pytest.param(reply("Output (b) is better.\n<think>But no,"), "unreadable", id="thinking after it"),
        pytest.param(reply("<think>Output (a) is better.</think>"), "unreadable", id="thinking alone"),
        pytest.param(reply("Output (b)", reasoning_content="Output (a)"), "B", id="thinking in a field"),
        pytest.param(reply(None, reasoning_content="Output (a)"), "no_reply", id="a field of thinking alone"),
        pytest.param(reply([{"type": "text", "text": "Output "}, {"type": "text", "text": "(b)"}]), "B", id="in parts"),
        pytest.param(reply("Therefore, Output (a) is better.", "length"), "truncated", id="cut after a verdict"),
        pytest.param(reply("Output (a) is better. Thus, Output (b) is better. And", "max_tokens"), "truncated",
                     id="cut after two"),
        pytest.param(reply("<think>Output (a) is", "length"), "truncated", id="cut while thinking"),
        pytest.param(reply("Output (a) is better.", "content_filter"), "content_filter", id="filtered"),
        pytest.param(reply("", refusal="No."), "refused", id="the field refusal"),
        pytest.param(reply("I cannot help with this", "length"), "refused", id="cut while declining"),
        pytest.param(replace(reply("Output (a)"), cut="the front was dropped"), "context_too_long", id="prompt cut"),
        pytest.param(replace(reply(""), raw='{"error": {"message": "down"}}'), "server_error", id="an error as reply"),
        pytest.param(replace(reply(""), raw="Output (a)"), "unreadable", id="no chat completion"),
    ],
)  # fmt: skip
def test_only_a_whole_finished_text_counts(pair: Prompt, message: Reply, expected: str) -> None:
    assert said(vote_of(message, pair)) == expected


def test_the_reason_is_the_text_and_the_detail_shows_both_wordings(pair: Prompt) -> None:
    found = vote_of(reply("<think>hm</think>Output (a) is better.\n\nIt {has}\tthe fee. "), pair)
    assert found == Verdict({"winner": "A"}, "Output (a) is better.\nIt {has} the fee.")
    both = vote_of(reply("Output (a) is better. Therefore, Output (b) is better."), pair)
    assert both == Unscored(
        "conflicting", "winner is both: A (Output (a) is better.) and B (Therefore, Output (b) is better.)"
    )


def test_a_text_longer_than_is_searched_is_not_read_in_part(pair: Prompt) -> None:
    verdict = "Output (a) is better. "
    filled = verdict + "x" * (MOST_CHARACTERS - len(verdict))
    assert said(vote_of(reply(filled), pair)) == "A"
    assert vote_of(reply(filled + "x"), pair) == Unscored(
        "unreadable", "a text of 20001 characters; at most 20000 are searched"
    )


def test_both_orders_are_joined_by_system(pair: Prompt) -> None:
    case, a, b = Case("q1", "How long?"), Answer("q1", "A year."), Answer("q1", "Two years.")

    def outcome(ab: str, ba: str) -> str:
        first, second = (decision_of({(0, None): reply(text)}, pair, 1, did_abstain=False) for text in (ab, ba))
        return pair_row(case, first, second, a, b, "winner").outcome

    assert outcome("Therefore, Output (a) is better.", "Therefore, Output (b) is better.") == "a"
    assert outcome("Output (a)", "Output (a)") == "inconsistent"
    assert outcome("Thus, both outputs are equally good.", "Overall, both outputs are equally good.") == "tie"
    assert outcome("Output (a)", "Output (a) and Output (b) differ.") == "undecided"


# --- several fields ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Grounded: yes. Clarity: 3.", {"grounded": True, "clarity": 3}, id="in order"),
        pytest.param("Clarity: 1\n结论:无依据。", {"grounded": False, "clarity": 1}, id="in any order and language"),
        pytest.param("Grounded: yes.", "unreadable", id="one field is missing"),
        pytest.param("Grounded: yes. Clarity: 10.", "unreadable", id="off the scale"),
        pytest.param("Grounded: yes. Clarity: 2. On reflection, clarity: 3.", "conflicting", id="two scores"),
        pytest.param("Grounded: yes. Grounded: no.", "conflicting", id="a conflict beside a missing field"),
    ],
)
def test_every_field_is_read_or_the_reply_is_unscored(grades: Prompt, text: str, expected: object) -> None:
    found = vote_of(reply(text), grades)
    assert (found.reason if isinstance(found, Unscored) else found.values) == expected
    if isinstance(found, Verdict):
        assert isinstance(found.values["grounded"], bool)
        assert not isinstance(found.values["clarity"], bool)


WORDINGS = ["Output (a) is better.", "Therefore, Output (b) is better.", "Thus, both outputs are equally good."]
PIECES = [
    *WORDINGS,
    "Output (a)",
    "<think>",
    "</think>",
    "{",
    '"',
    "[",
    "\n",
    " ",
    "\u200b",
    "\ufdd0",
    "\ud83d",
    "I cannot help.",
]


@given(st.text(max_size=40) | st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_no_text_raises_and_every_value_is_on_the_menu(text: str) -> None:
    found = read_prose(text, READING)
    assert isinstance(found, Unscored) or found.values["winner"] in ("A", "B", "tie")


@given(st.permutations(["Therefore, Output (a) is better.", "Fine.", "Thus, Output (b) is better.", "So it is."]))
def test_two_verdicts_conflict_in_every_order(sentences: list[str]) -> None:
    assert said(read_prose(" ".join(sentences), READING)) == "conflicting"


READING: dict[str, dict[Value, tuple[str, ...]]] = {
    "winner": {
        "A": (r"^output \(a\) is better\.", r"\btherefore, output \(a\) is better\."),
        "B": (r"\b(?:therefore|thus), output \(b\) is better\.",),
        "tie": (r"both outputs are equally good\.",),
    }
}


# --- what is sent -----------------------------------------------------------------------------------------------------


def first_call(prompt: Prompt) -> Call:
    plan = GradingPlan({"en": prompt}, "http://127.0.0.1:1/v1", "m", n_repeats=1, seed=0)
    case, answer = Case("q1", "How long?"), Answer("q1", "A year.", (Context("c", "A year."),))
    grading = PairGrading(case, answer, answer, prompt, plan) if prompt.mode == "pairwise" else None
    call = (grading or CaseGrading(case, answer, prompt, plan)).next_call({})
    assert call is not None
    return call


def test_neither_call_nor_probe_asks_for_a_schema(pair: Prompt) -> None:
    call = first_call(pair)
    assert set(call.parameters) == {"temperature", "seed", "max_tokens"}

    async def asked(base_url: str) -> object:
        server = Server(base_url, "m", "k", timeout_s=5.0, attempts=1, backoff_s=0.0)
        async with ModelServer(server, lambda: datetime.now(UTC), lambda line: None) as judge:
            return await judge.ask(call)

    with JudgeServer(lambda request: "Output (a)", on_probe=lambda request: "Blue.") as server:
        result = asyncio.run(asked(server.base_url))
        bodies = [request.body for request in (*server.probes, *server.requests)]
    assert len(bodies) == 2
    assert not any("response_format" in body for body in bodies)
    assert isinstance(result, Reply)
    assert said(vote_of(result, pair)) == "A"


def test_without_patterns_the_schema_is_sent_as_ever(tmp_path: Path) -> None:
    prompt = loaded(tmp_path, GRADES_TOML.partition("[reading")[0], GRADES_TEMPLATE)
    assert prompt.reading == {}
    assert first_call(prompt).parameters["response_format"]["type"] == "json_schema"
    assert said(vote_of(reply("Grounded: yes. Clarity: 3."), prompt)) == "unreadable"


def test_an_unreadable_reply_is_asked_for_once_more(pair: Prompt) -> None:
    plan = GradingPlan({"en": pair}, "http://127.0.0.1:1/v1", "m", n_repeats=1, seed=0)
    answer = Answer("q1", "A year.")
    repeats = PairGrading(Case("q1", "How long?"), answer, answer, pair, plan).repeats("ab")
    call = repeats.planned(0)
    again = repeats.walk({call.call_id: reply("Hard to say.")}).next_call
    assert again is not None
    assert again.messages[-1]["content"] == "End with the sentence asked for."
    assert "response_format" not in again.parameters


# --- what is refused on load ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param("[reading.clarity]", "[reading.clearness]", "no field is called 'clearness'", id="unknown field"),
        pytest.param("[reading.grounded]", "[reading.clarity.x]", "the field 'grounded'", id="one left out"),
        pytest.param("1 = [", "0 = [", "no value is called '0'; there are: 1, 2, 3", id="off the scale"),
        pytest.param("true = [", "True = [", "no value is called 'True'", id="a boolean in another spelling"),
        pytest.param(r"3 = ['\bclarity: 3\b']", "", "no patterns for the value '3'", id="a level left out"),
        pytest.param(r"['\bclarity: 3\b']", "[]", r"found \[\], expected a list", id="an empty list"),
        pytest.param(r"['\bclarity: 3\b']", "'x'", "expected a list of regular expressions", id="a text"),
        pytest.param(r"['\bclarity: 3\b']", "[3]", "expected a list of regular expressions", id="a number"),
        pytest.param("[reading.grounded]", "[[reading.grounded]]", "expected a table for each field", id="a list"),
    ],
)  # fmt: skip
def test_every_value_of_every_field_has_patterns(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GRADES_TOML
    with pytest.raises(InputError, match=message):
        loaded(tmp_path, GRADES_TOML.replace(old, new, 1), GRADES_TEMPLATE)


def test_a_comparison_needs_a_wording_for_a_tie(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"reading\.winner: no patterns for the value 'tie'"):
        loaded(tmp_path, PAIR_TOML.partition("tie = [\n")[0], TEMPLATE)


@pytest.mark.parametrize("reading", ["reading = {}", "reading = 'x'"])
def test_a_reading_without_fields_is_no_reading(tmp_path: Path, reading: str) -> None:
    with pytest.raises(InputError, match=r"prompt\.toml: reading: "):
        loaded(tmp_path, reading + GRADES_TOML.partition("[reading")[0], GRADES_TEMPLATE)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        pytest.param("(better", "no regular expression: missing", id="not closed"),
        pytest.param("[[a]better", "no regular expression: Possible nested set", id="to be read otherwise one day"),
        pytest.param("a(?i)b", "no regular expression: global flags not at the start", id="a flag in the middle"),
        pytest.param("(?L)better", "no regular expression: ", id="a flag of bytes"),
        pytest.param("a{99999999999}", "no regular expression: ", id="a repeat too large"),
        pytest.param("(" * 5000 + ")" * 5000, "no regular expression: ", id="too deep"),
        pytest.param("", "matches where nothing stands", id="empty"),
        pytest.param("x*", "matches where nothing stands", id="all optional"),
        pytest.param(r"\bx?|better", "matches where nothing stands", id="one branch of nothing"),
        pytest.param("(?=better)", "matches where nothing stands", id="a look ahead alone"),
        pytest.param("(a+)+b", "too many ways", id="nested"),
        pytest.param("(?:a*)*b", "too many ways", id="nested stars"),
        pytest.param("(?:a+b?)+?c", "too many ways", id="nested, lazy"),
        pytest.param("(?:a|ab)*c", "too many ways", id="branches in a repeat"),
        pytest.param("(?:a|a?b)+c", "too many ways", id="an optional part in a repeat"),
        pytest.param("(?:(?:ab){1,9}c?){1,30}d", "too many ways", id="nested, with ends"),
        pytest.param(r"(?:\s+x?)+y", "too many ways", id="white space in a repeat"),
        pytest.param(r".*better.*yes", "too many ways", id="two without an end"),
        pytest.param(r".{0,90}better.{0,90}yes", "too many ways", id="two too wide"),
        pytest.param("a?" * 12 + "b", "too many ways", id="many optional parts"),
        pytest.param(r"(.*)\1b", "too many ways", id="a long group again"),
        pytest.param("(?=(?:a+)+b)a", "too many ways", id="in a look ahead"),
        pytest.param("(?>(?:a+)+b)", "too many ways", id="in an atomic group"),
        pytest.param("(x)?(?(1)(?:a+)+b|c)", "too many ways", id="in a condition"),
    ],
)
def test_a_pattern_that_cannot_be_relied_on_is_refused(tmp_path: Path, pattern: str, message: str) -> None:
    toml = GRADES_TOML.replace(r"'\bclarity: 3\b'", json.dumps(pattern))
    with pytest.raises(InputError, match=rf"reading.clarity.3: .* {re.escape(message)}|reading.clarity.3: .*{message}"):
        loaded(tmp_path, toml, GRADES_TEMPLATE)


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(r"therefore,?\s+output\s*\(a\)\s+is\s+(?:much\s+)?better\s*[.!]", id="white space everywhere"),
        pytest.param(r"therefore.*better", id="one without an end"),
        pytest.param(r"better.{0,60}than.{0,60}b", id="two with an end"),
        pytest.param(r"(?m)^verdict: (?:first|second|neither|both|none|all)$", id="words"),
        pytest.param(r"(?:very ){0,5}good", id="a repeated word"),
        pytest.param(r"([*_]{2})yes\1", id="a short group again"),
        pytest.param(r"(?:结论|因此)[:,\s]{0,3}回答一更好", id="Chinese"),
    ],
)
def test_a_pattern_of_an_honest_kind_is_taken(tmp_path: Path, pattern: str) -> None:
    toml = GRADES_TOML.replace(r"'\bclarity: 3\b'", f"'{pattern}'")
    assert loaded(tmp_path, toml, GRADES_TEMPLATE).reading["clarity"][3] == (pattern,)


HOSTILE = [
    pytest.param(r".*b", "a", id="one without an end"),
    pytest.param(r"a.{0,60}a.{0,60}b", "a", id="two with an end"),
    pytest.param("a?" * 11 + "b", "a", id="optional parts"),
    pytest.param(r"\s*\s*\s*\s*b", " \n", id="white space"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("pattern", "piece"), HOSTILE)
def test_what_is_taken_ends_on_the_longest_text(tmp_path: Path, pattern: str, piece: str) -> None:
    prompt = loaded(tmp_path, GRADES_TOML.replace(r"'\bclarity: 3\b'", f"'{pattern}'"), GRADES_TEMPLATE)
    text = "grounded: yes clarity: 1 " + piece * (MOST_CHARACTERS // len(piece) - 50)
    started = time.process_time()
    assert isinstance(vote_of(reply(text), prompt), Verdict)
    assert time.process_time() - started < 60
