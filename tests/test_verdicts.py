"""What a reply says, or why it says nothing: single rules as tables, and properties over generated replies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_judge.records import Unscored, Verdict, VerdictField
from rag_judge.repair import read_objects
from rag_judge.verdicts import read_body, read_verdict

# No field of the product's own prompts: nothing may be hard-wired.
FIELDS = (
    VerdictField("cites_source", "boolean"),
    VerdictField("depth", "score", low=1, high=5),
    VerdictField("tone", "choice", choices=("Formal", "casual", "mixed")),
)
FLAG = (VerdictField("cites_source", "boolean"),)
DEPTH = (VerdictField("depth", "score"),)
TONE = (VerdictField("tone", "choice", choices=("Formal", "casual", "mixed")),)
GRADES: dict[str, bool | int | float | str] = {"cites_source": True, "depth": 4, "tone": "casual"}
PLAIN = '{"cites_source": true, "depth": 4, "tone": "casual", "reason": "ok"}'
OTHER = '{"cites_source": false, "depth": 1, "tone": "mixed", "reason": "no"}'
ESCAPED = PLAIN.replace('"', '\\"')


def completion(content: object = None, finish: object = "stop", **message: object) -> dict[str, Any]:
    """A chat completion with one choice."""
    said = {"role": "assistant", "content": content, **message}
    return {"object": "chat.completion", "choices": [{"index": 0, "message": said, "finish_reason": finish}]}


def values(text: str, fields: tuple[VerdictField, ...] = FIELDS) -> dict[str, Any]:
    """The values of a reply that must be readable."""
    found = read_verdict(text, fields)
    assert isinstance(found, Verdict), found
    return dict(found.values)


def reason(reply: object, fields: tuple[VerdictField, ...] = FIELDS, **options: Any) -> str:
    """Why a reply that must not be readable is unscored."""
    found = read_verdict(reply, fields, **options)  # type: ignore[arg-type]
    assert isinstance(found, Unscored), found
    assert len(found.detail) <= 200
    assert found.detail.isprintable()
    return found.reason


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(PLAIN, id="plain"),
        pytest.param(f"```json\n{PLAIN}\n```", id="fence"),
        pytest.param(f"~~~\n{PLAIN}\n~~~", id="tilde_fence"),
        pytest.param(f"```JSON\n{PLAIN}", id="fence_never_closed"),
        pytest.param(f"It's my verdict: {PLAIN} Hope it's useful.", id="apostrophes_in_prose"),
        pytest.param(f'The 5" pipe and the "set {{a, b}}" are fine. {PLAIN}', id="quotes_and_set_in_prose"),
        pytest.param(f"For {{x: see below}} and ${{y}} and \\frac{{1}}{{2}}: {PLAIN}", id="braces_in_prose_before"),
        pytest.param(f"{PLAIN}\nUse {{name}} or {{'tis}} or {{ next time.", id="braces_in_prose_after"),
        pytest.param(f"A brace {{ that is never closed. {PLAIN}", id="lone_brace_before"),
        pytest.param(f"{{https://host/path}} {PLAIN}", id="address_in_braces"),
        pytest.param(f"{{{{cases}}}} {{#each}} {PLAIN}", id="template_in_prose"),
        pytest.param(f"{{{PLAIN}}}", id="doubled_braces"),
        pytest.param(f'The context says {{"price": 5}}. {PLAIN}', id="another_object_before"),
        pytest.param(f'The context says {{"price": about 5}}. {PLAIN}', id="another_broken_object_before"),
        pytest.param("\ufeff" + PLAIN, id="byte_order_mark"),
        pytest.param(PLAIN.replace(",", "\u200b,").replace(":", "\u200b:\u00a0"), id="zero_width_and_hard_spaces"),
        pytest.param(PLAIN.replace("true", "tr\u200bue").replace('"depth', '"\u200bdepth'), id="zero_width_in_words"),
        pytest.param(PLAIN.replace("}", ",}"), id="trailing_comma"),
        pytest.param(PLAIN.replace("}", " , \n }"), id="trailing_comma_apart"),
        pytest.param(PLAIN.replace("true,", "true, // it does\n"), id="line_comment"),
        pytest.param(PLAIN.replace("true,", "true, # it does, } or not\n"), id="sharp_comment"),
        pytest.param(PLAIN.replace("{", '{ /* not {"depth": 1} */ '), id="block_comment"),
        pytest.param("{'cites_source': True, 'depth': 4, 'tone': 'casual', 'reason': None}", id="python"),
        pytest.param(
            "{\"cites_source\": True, 'depth': 4, 'tone': \"casual\", 'reason': 'It\\'s'}", id="python_mixed_quotes"
        ),
        pytest.param("{“cites_source”: true, “depth”: 4, “tone”: “casual”}", id="curly_quotes"),
        pytest.param("{‘cites_source’: true, ‘depth’: 4, ‘tone’: ‘casual’}", id="single_curly_quotes"),
        pytest.param("｛＂cites_source＂：true，＂depth＂：4，＂tone＂：＂casual＂｝", id="full_width_marks"),
        pytest.param("{cites_source: true, depth: 4, tone: 'casual'}", id="unquoted_keys"),
        pytest.param("{cites-source: true, Depth : 4, tone: 'casual'}", id="unquoted_key_with_hyphen"),
        pytest.param('{"Cites Source": true, "DEPTH": 4, "to_ne": "casual"}', id="keys_in_another_spelling"),
        pytest.param('{"citesSource": true, "depth": 4, "tone": "casual"}', id="camel_case_key"),
        pytest.param(PLAIN.replace('"ok"', '"one\ntwo\tthree"'), id="raw_line_break"),
        pytest.param(PLAIN.replace('"ok"', '"a } and , } and ] and {"'), id="marks_inside_a_string"),
        pytest.param(PLAIN.replace('"ok"', '"ok", "extra": [{"depth": 1}], "p": NaN'), id="extra_keys"),
        pytest.param(PLAIN.replace('"ok"', '"ok", "depth": "4"'), id="same_key_same_value"),
        pytest.param(f"{PLAIN}\n{PLAIN.replace('ok', 'yes')}", id="twice_the_same_grades"),
        pytest.param(f'{PLAIN} In short {{"depth": 4}}.', id="a_part_that_agrees"),
        pytest.param(f'{{"result": {PLAIN}}}', id="one_outer_object"),
        pytest.param(f'Here: {{"result": {PLAIN}, "confidence": 0.9}}', id="one_outer_object_in_prose"),
        pytest.param(f"[{PLAIN}]", id="array_of_one"),
        pytest.param(json.dumps(PLAIN), id="json_string"),
        pytest.param(PLAIN + "}", id="stray_brace_after"),
        pytest.param(f"<think>{OTHER}</think>{PLAIN}", id="think"),
        pytest.param(f'<THINKING>\n{{"depth": 1</THINKING> {PLAIN}', id="thinking_with_a_cut_draft"),
        pytest.param(f"<reasoning>a <reasoning>b</reasoning> {OTHER}</reasoning>{PLAIN}", id="nested_reasoning"),
        pytest.param(f"{OTHER} hmm </think> {PLAIN}", id="only_a_closing_tag"),
        pytest.param(f'Maybe {{"depth": "3" or "4"}} hmm </think> {PLAIN}', id="broken_draft_before_a_closing_tag"),
        pytest.param(f"[THINK]{OTHER}[/THINK]{PLAIN}", id="bracket_tags"),
        pytest.param(f"<think/>{PLAIN}", id="empty_tag"),
        pytest.param(f"<think></think>\n```json\n{PLAIN}\n```", id="empty_reasoning_then_fence"),
    ],
)
def test_a_verdict_is_read_through_what_cannot_change_its_meaning(text: str) -> None:
    assert values(text) == GRADES


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{}", id="no_field"),
        pytest.param("4", id="a_bare_number"),
        pytest.param("null", id="null"),
        pytest.param("Depth: 4, tone: casual, and it cites its source.", id="prose"),
        pytest.param('{"cites_source": true, "depth": 4}', id="missing_field"),
        pytest.param(PLAIN.replace("tone", "style"), id="field_under_another_name"),
        pytest.param(PLAIN.replace("true", "null"), id="null_value"),
        pytest.param(PLAIN.replace("4", "NaN"), id="nan"),
        pytest.param(PLAIN.replace("4", "Infinity"), id="infinity"),
        pytest.param(PLAIN.replace("true", "TRUE"), id="no_json_word"),
        pytest.param(PLAIN[:-1], id="no_last_brace"),
        pytest.param(PLAIN[1:], id="no_first_brace"),
        pytest.param(f"'depth': 4, 'reason': 'It holds {PLAIN}'}}", id="no_first_brace_and_another_quoted"),
        pytest.param(f'{{"reason": "It holds " }} {PLAIN} ", "depth": 3}}', id="closed_by_what_it_quotes"),
        pytest.param(PLAIN.replace(":", "", 1), id="no_colon"),
        pytest.param(PLAIN.replace(",", "", 1), id="no_comma"),
        pytest.param(PLAIN.replace(",", ",,", 1), id="two_commas"),
        pytest.param(PLAIN.replace("ok", 'says "ok" twice'), id="inner_quotes"),
        pytest.param(PLAIN.replace("ok", "\\q"), id="unknown_escape"),
        pytest.param("{'cites_source': True, 'depth': 4, 'tone': 'casual', 'reason': 'it's'}", id="inner_apostrophe"),
        pytest.param(PLAIN.replace("4,", "4, // comment"), id="comment_that_eats_the_rest"),
        pytest.param(PLAIN.replace("4,", "4, /* comment"), id="comment_that_never_ends"),
        pytest.param(f"<think>{PLAIN}", id="reasoning_never_closed"),
        pytest.param(f"{PLAIN}\n<think>or is it", id="reasoning_begun_again"),
        pytest.param(f"<think>{PLAIN}</think>", id="only_reasoning"),
        pytest.param(f"<think>{PLAIN}</reasoning>", id="closed_by_another_tag"),
        pytest.param(f"{PLAIN}</think>", id="closing_tag_last"),
        pytest.param(f'{{"result": {PLAIN}', id="outer_object_cut"),
        pytest.param(f'{{"result": {PLAIN}, "note": "x', id="outer_object_cut_later"),
        pytest.param(f"{{draft: {PLAIN}, tone: 'm", id="outer_object_with_bare_keys_cut"),
        pytest.param(f"[{PLAIN}, ", id="array_cut"),
        pytest.param(f'{{"a": {{"b": {PLAIN}}}}}', id="two_outer_objects"),
        pytest.param(f'{{"output": "{ESCAPED}"}}', id="string_in_an_object"),
        pytest.param(f'{{"reason": "The answer holds {ESCAPED}"}}', id="quoted_in_a_reason_alone"),
        pytest.param(PLAIN.replace('"', '\\"'), id="escaped_quotes"),
        pytest.param('{"cites_source": true, "more": {"depth": 4, "tone": "casual"}}', id="fields_spread"),
        pytest.param(f'{{"cites_source": true, "depth": {PLAIN}', id="cut_before_an_intact_one"),
        pytest.param(f'{{"depth": 4, "reason": "It says " {PLAIN} " }}', id="quoted_without_escapes"),
        pytest.param(f'{{"depth": 4, "reason": "It says "x }} {PLAIN} " }}', id="string_left_too_early"),
        pytest.param(f'{{"depth": 4, "reason": "\\d </think> {PLAIN}"}}', id="tag_and_verdict_in_a_bad_string"),
        pytest.param(f'{{"depth": 4, "reason": "It says "</think>{PLAIN}" }}', id="tag_and_verdict_without_escapes"),
        pytest.param(
            f'{{"depth": x, "reason": "a }} {{cites_source: no}} </think> {ESCAPED}"}}', id="string_after_a_break"
        ),
        pytest.param(f"{{'depth': x, 'reason': 'a }} </think> {PLAIN}'}}", id="python_string_after_a_break"),
        pytest.param(f"{{'depth': x, 'reason': 'a }} </think> {PLAIN}", id="python_string_after_a_break_cut"),
        pytest.param('{"a":' * 100_000, id="nested_without_end"),
        pytest.param("[" * 100_000 + "]" * 100_000, id="nested_too_deep_for_python"),
    ],
)
def test_nothing_is_guessed_completed_or_closed(text: str) -> None:
    assert reason(text) == "unreadable"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{PLAIN}\n{OTHER}", id="two_verdicts"),
        pytest.param(f"{OTHER}\n{PLAIN}", id="order_does_not_decide"),
        pytest.param(f"The answer contains {PLAIN} to steer me. {OTHER}", id="quoted_then_own"),
        pytest.param(f"[{PLAIN}, {OTHER}]", id="array_of_two"),
        pytest.param(f'{{"draft": {OTHER}, "final": {PLAIN}}}', id="draft_and_final"),
        pytest.param(f'{{"final": {PLAIN}, "drafts": [{OTHER}]}}', id="another_one_deeper"),
        pytest.param(PLAIN.replace('"ok"', '"ok", "depth": 3'), id="key_twice"),
        pytest.param(PLAIN.replace('"ok"', '"ok", "Cites-Source": "no"'), id="key_twice_in_two_spellings"),
        pytest.param(PLAIN.replace('"ok"', '"ok", "depth": null'), id="key_twice_once_null"),
        pytest.param(PLAIN.replace('"ok"', '"ok", "Reason": "not ok"'), id="reason_twice"),
        pytest.param(f"{PLAIN} {PLAIN.replace('4', '9')}", id="beside_an_invalid_one"),
        pytest.param(f'{PLAIN} In short {{"depth": 3}}.', id="a_part_that_differs"),
        pytest.param(f'{PLAIN} No: {{"cites_source": false, "depth": ', id="contradicted_by_a_cut_one"),
    ],
)
def test_verdicts_that_differ_conflict(text: str) -> None:
    assert reason(text) == "conflicting"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f'The form is {{"cites_source": true|false, "depth": <1-5>}}. {PLAIN}', id="form_repeated_first"),
        pytest.param(f'{{"cites_source": , "depth": 1}} Again: {PLAIN}', id="broken_then_intact"),
        pytest.param(f'{PLAIN}\n{{"cites_source": fal', id="intact_then_cut"),
    ],
)
def test_a_broken_object_contributes_no_value_beside_an_intact_one(text: str) -> None:
    assert values(text) == GRADES


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        *[(w, True) for w in ("true", "1", '"true"', '"Yes"', '" YES "', '"1"', '"是"', '"\u200byes"')],
        *[(w, False) for w in ("false", "0", '"FALSE"', '"no"', '"0"', '"否"')],
        *[(w, None) for w in ("5", "-1", "1.0", "0.5", "null", "[]", "{}", "[true]", '{"value": true}', "1e999")],
        *[(w, None) for w in ('""', '"y"', '"n"', '"on"', '"partly"', '"yes."', '"不是"', '"对"', '"错"', '"null"')],
    ],
)
def test_a_boolean_is_one_of_a_closed_set(written: str, expected: bool | None) -> None:
    found = read_verdict(f'{{"cites_source": {written}}}', FLAG)
    assert (found.values["cites_source"] if isinstance(found, Verdict) else None) is expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        *[(w, 4) for w in ("4", "4.0", "4.000", "4e0", '"4"', '" 4 "', '"4.0"', '"4/5"', '"4 / 5"')],
        *[("1", 1), ("5", 5), ('"1/5"', 1)],
        *[
            (w, None)
            for w in ("0", "6", "-4", "4.5", "true", "null", "NaN", "1e999", "40e-1", "4.00000000000000000001")
        ],
        *[
            (w, None)
            for w in ('"8/10"', '"4/10"', '"4/05"', '"6/5"', '"4.5"', '"four"', '"4 out of 5"', '"+4"', '"04"')
        ],
        *[(w, None) for w in ('"４"', '"٤"', '"4,0"', '""', "[4]", '{"value": 4}', "9" * 100_000, '"4-5"', '"4/5/5"')],
    ],
)
def test_a_score_is_a_whole_number_of_the_scale(written: str, expected: int | None) -> None:
    found = read_verdict(f'{{"depth": {written}}}', DEPTH)
    got = found.values["depth"] if isinstance(found, Verdict) else None
    assert got == expected
    assert type(got) is type(expected)


def test_the_scale_is_the_fields_own() -> None:
    wide = (VerdictField("depth", "score", low=0, high=10),)
    assert values('{"depth": "8/10"}', wide) == {"depth": 8}
    assert values('{"depth": 0}', wide) == {"depth": 0}
    assert reason('{"depth": "4/5"}', wide) == "unreadable"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        *[('"Formal"', "Formal"), ('"FORMAL"', "Formal"), ('" Casual "', "casual"), ('"mixed"', "mixed")],
        *[(w, None) for w in ('"formal and casual"', '"form"', '"none"', '""', "null", "true", "1", '["mixed"]')],
        *[(w, None) for w in ('"Formal."', '"tone: formal"', '"ｆormal"')],
    ],
)
def test_a_choice_is_one_of_its_menu_in_the_menus_spelling(written: str, expected: str | None) -> None:
    found = read_verdict(f'{{"tone": {written}}}', TONE)
    assert (found.values["tone"] if isinstance(found, Verdict) else None) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{"depth": 2, "reason": "Lists A, } and ,] here"}', "Lists A, } and ,] here", id="marks"),
        pytest.param('{"depth": 2, "reason": "It has <think>x</think>."}', "It has <think>x</think>.", id="tags"),
        pytest.param(
            'Sure: {"depth": 2, "reason": "It has </think> in it"}', "It has </think> in it", id="tag_in_prose"
        ),
        pytest.param(
            '{"depth": 2, "reason": "http://x // y /* z */ # w",}', "http://x // y /* z */ # w", id="comments"
        ),
        pytest.param('{"depth": 2, "reason": "“a”：b，{True: None}",}', "“a”：b，{True: None}", id="curly_inside"),
        pytest.param(
            "{'depth': 2, 'reason': 'a \"b\" \\'c\\' \\u00e9\\n'}", "a \"b\" 'c' \u00e9\n", id="python_escapes"
        ),
        pytest.param("{'depth': 2, 'reason': '\\x1f\\U0001f600'}", "\x1f\U0001f600", id="python_code_escapes"),
        pytest.param('{“depth”: 2, “reason”: “a "b" \\” c”}', 'a "b" ” c', id="curly_escapes"),
        pytest.param('{"depth": 2, "reason": "a\r\nb\u200b\u00a0c",}', "a\r\nb\u200b\u00a0c", id="raw_line_break"),
        pytest.param('{"depth": 2, "reason": "\\ud83d\\ude00",}', "\U0001f600", id="surrogate_pair"),
        pytest.param('{"depth": 2, "reason": "I\'m sorry, I can\'t help."}', "I'm sorry, I can't help.", id="refusal"),
        pytest.param('{"depth": 2, "reason": ["a"]}', None, id="a_list_is_no_text"),
        pytest.param('{"depth": 2, "reason": null}', None, id="null"),
        pytest.param('{"depth": 2}', None, id="none"),
    ],
)
def test_the_inside_of_a_string_is_never_changed(text: str, expected: str | None) -> None:
    found = read_verdict(text, DEPTH)
    assert found == Verdict({"depth": 2}, expected)


REFUSALS = """I cannot assist with rating this.
I'm unable to evaluate texts of this kind.
As an AI model, I can’t provide an assessment.
Sorry, I won't be able to judge this.
I apologize for the trouble, but I am not allowed to grade this.
**I must respectfully decline.**
Your request violates our usage policy.
抱歉，我无法协助评分。
作为一个语言模型，我不能评价这段内容。
對不起，我無法提供評分。
对不起，您的请求违反了使用政策。"""
NO_REFUSALS = """I cannot tell whether the fee is right.
I can't help but notice a wrong date.
I don't think that this is right.
I cannot rate this higher than 2.
I'm sorry to say that the passage is silent.
The answer says: "I'm sorry, I can't help with that."
答案无法提供期限。
该回答违反了事实。
抱歉，资料中没有期限。"""


@pytest.mark.parametrize("text", REFUSALS.splitlines())
def test_a_text_that_declines_to_judge_is_refused(text: str) -> None:
    assert reason(text) == "refused"
    assert reason(f"<think>{PLAIN}</think>\n{text}") == "refused"
    assert values(f"{text} Still: {PLAIN}") == GRADES  # JSON is looked for first


@pytest.mark.parametrize("text", NO_REFUSALS.splitlines())
def test_a_text_that_judges_in_prose_is_unreadable_and_not_refused(text: str) -> None:
    assert reason(text) == "unreadable"


def test_a_broken_verdict_beside_a_refusal_is_unreadable() -> None:
    assert reason('I cannot assist with that. {"depth": 4, "cites_source": maybe}') == "unreadable"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param({}, "no_reply", id="empty_object"),
        pytest.param({"choices": []}, "no_reply", id="no_choices"),
        pytest.param({"choices": None}, "no_reply", id="choices_null"),
        pytest.param({"choices": [None]}, "no_reply", id="choice_null"),
        pytest.param({"choices": [{"message": None}]}, "no_reply", id="message_null"),
        pytest.param(completion(None), "no_reply", id="content_null"),
        pytest.param(completion(""), "no_reply", id="content_empty"),
        pytest.param(completion(" \n\u200b"), "no_reply", id="content_blank"),
        pytest.param(completion([]), "no_reply", id="no_parts"),
        pytest.param(completion({"a": 1}), "no_reply", id="content_is_an_object"),
        pytest.param(completion(None, "length", reasoning_content=PLAIN), "truncated", id="only_reasoning_then_cut"),
        pytest.param(completion("", "length"), "truncated", id="nothing_before_the_limit"),
        pytest.param(completion(PLAIN[:-1], "length"), "truncated", id="cut_object"),
        pytest.param(completion(f"<think>{PLAIN}", "length"), "truncated", id="cut_while_reasoning"),
        pytest.param(completion(PLAIN[:-1], "MAX_TOKENS"), "truncated", id="another_word_for_length"),
        pytest.param(completion(PLAIN[:-1]), "unreadable", id="cut_without_saying"),
        pytest.param(completion('{"depth": 9}', "length"), "unreadable", id="whole_but_invalid_at_the_limit"),
        pytest.param(completion(f"{PLAIN}{OTHER}", "length"), "conflicting", id="two_at_the_limit"),
        pytest.param(completion(None, "content_filter"), "content_filter", id="filter"),
        pytest.param(completion(PLAIN[:-1], "content_filter"), "content_filter", id="filter_cut"),
        pytest.param(completion(None, refusal="No."), "refused", id="refusal_field"),
        pytest.param(completion(PLAIN[:-1], refusal="No."), "refused", id="refusal_field_beside_a_cut_one"),
        pytest.param(completion([{"type": "refusal", "refusal": "No."}]), "refused", id="refusal_part"),
        pytest.param(completion(None, refusal=""), "no_reply", id="refusal_empty"),
        pytest.param(completion("I can't assist with that.", "length"), "refused", id="refusal_text_at_the_limit"),
        pytest.param({"error": {"message": "overloaded"}}, "server_error", id="error_object"),
        pytest.param({"error": "overloaded", "choices": []}, "server_error", id="error_text"),
        pytest.param({"object": "error", "message": "down"}, "server_error", id="object_error"),
        pytest.param({"choices": [{"error": {"code": 502}, "message": {}}]}, "server_error", id="error_in_the_choice"),
        pytest.param(None, "unreadable", id="not_even_an_object"),
    ],
)
def test_the_reason_says_what_kind_of_reply_came(reply: object, expected: str) -> None:
    assert reason(reply) == expected


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(completion(PLAIN, "length"), id="whole_at_the_limit"),
        pytest.param(completion(f"{PLAIN} And further, the", "length"), id="chatter_cut_at_the_limit"),
        pytest.param(completion(PLAIN, "content_filter"), id="whole_before_the_filter"),
        pytest.param(completion(PLAIN, refusal="No."), id="refusal_field_beside_a_verdict"),
        pytest.param(completion(PLAIN, None, reasoning=OTHER, reasoning_content=OTHER), id="reasoning_fields"),
        pytest.param(
            completion(PLAIN, tool_calls=[{"function": {"name": "f", "arguments": OTHER}}]), id="tool_unasked"
        ),
        pytest.param(
            completion(
                [{"type": "thinking", "thinking": [{"type": "text", "text": OTHER}]}, {"type": "text", "text": PLAIN}]
            ),
            id="thinking_part",
        ),
        pytest.param(
            completion([{"type": "text", "text": PLAIN[:20]}, {"type": "text", "text": PLAIN[20:]}]), id="text_in_parts"
        ),
        pytest.param({"choices": completion(PLAIN)["choices"] + completion(OTHER)["choices"]}, id="first_choice"),
        pytest.param(completion(PLAIN) | {"error": None}, id="error_null"),
    ],
)
def test_the_verdict_is_taken_from_the_part_that_counts(reply: dict[str, Any]) -> None:
    assert read_verdict(reply, FIELDS) == Verdict(GRADES, "ok")
    assert read_body(json.dumps(reply), FIELDS) == Verdict(GRADES, "ok")


@pytest.mark.parametrize("arguments", [PLAIN, json.loads(PLAIN)], ids=["text", "object"])
def test_tool_arguments_count_only_when_that_tool_was_asked_for(arguments: object) -> None:
    call = {"type": "function", "function": {"name": "grade", "arguments": arguments}}
    for message in ({"tool_calls": [call]}, {"function_call": call["function"]}):
        reply = completion(None, "tool_calls", **message)
        assert read_verdict(reply, FIELDS, asked_tool="grade") == Verdict(GRADES, "ok")
        assert reason(reply) == "no_reply"
        assert reason(reply, asked_tool="other") == "no_reply"
        assert reason(completion(OTHER, **message), asked_tool="grade") == "conflicting"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param("", "no_reply", id="empty"),
        pytest.param(" \n", "no_reply", id="blank"),
        pytest.param("<html>502 Bad Gateway</html>", "unreadable", id="html"),
        pytest.param('{"choices": [', "unreadable", id="cut_body"),
        pytest.param('"text"', "unreadable", id="a_string"),
        pytest.param("[]", "unreadable", id="a_list"),
        pytest.param("[" * 100_000, "unreadable", id="nested_too_deep"),
        pytest.param("{}", "no_reply", id="no_choices"),
        pytest.param('{"error": {"message": "no capacity"}}', "server_error", id="error"),
        pytest.param('[{"error": {"message": "no capacity"}}]', "server_error", id="error_in_a_list"),
    ],
)
def test_a_body_that_is_no_completion_says_why(raw: str, expected: str) -> None:
    found = read_body(raw, FIELDS)
    assert isinstance(found, Unscored)
    assert found.reason == expected


def test_a_body_with_an_endless_number_is_still_read() -> None:
    body = json.dumps(completion(PLAIN)).replace('"index": 0', f'"index": {"9" * 10_000}')
    assert read_body("\ufeff" + body, FIELDS) == Verdict(GRADES, "ok")


def test_the_detail_names_what_was_found() -> None:
    found = read_verdict('{"depth": "\ud83d four\x1b[31m"}', DEPTH)
    assert isinstance(found, Unscored)
    assert found.detail.startswith("depth is '")
    assert "four" in found.detail
    assert found.detail.endswith("expected a whole number from 1 to 5")
    assert found.detail.isprintable()


# --- properties -----------------------------------------------------------------------------------------------------

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([PLAIN, OTHER[:30]]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
MARKS = [
    "{",
    "}",
    "[",
    "]",
    '"',
    "'",
    "“",
    "”",
    ":",
    "，",
    ",",
    "\\",
    "/*",
    "*/",
    "//",
    "#",
    "<think>",
    "</think>",
    "true",
]
WORDS = ["True", "null", "4", "depth", '"depth":', "cites_source", '"tone": "mixed"', "I cannot ", "\n", " ", "\\x1f"]
PIECES = st.sampled_from([*MARKS, *WORDS, "\ud83d", PLAIN, OTHER])
TANGLES = st.lists(PIECES, max_size=30).map("".join)
PROSE = st.text(st.characters(exclude_characters="{}[]<>｛｝［］◁▷"), max_size=40)
REASONS = st.text(max_size=30) | TANGLES


def written(grades: Mapping[str, object], style: str) -> str:
    """A verdict as models write it."""
    text = json.dumps(grades, ensure_ascii=False)
    if style == "python":
        return repr(dict(grades))
    if style == "bare_keys":
        return "{" + ", ".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in grades.items()) + "}"
    return {
        "json": text,
        "outer": f'{{"result": {text}}}',
        "array": f"[{text}]",
        "comment": text.replace("{", "{// a\n", 1),
    }[style]


STYLES = st.sampled_from(["json", "python", "bare_keys", "outer", "array", "comment"])


@given(st.text(max_size=60) | TANGLES)
def test_no_text_raises_and_every_value_read_is_on_the_menu(text: str) -> None:
    for found in (
        read_verdict(text, FIELDS),
        read_body(text, FIELDS),
        read_verdict(completion(text, "length"), FIELDS),
    ):
        if isinstance(found, Verdict):
            assert isinstance(found.values["cites_source"], bool)
            assert found.values["depth"] in (1, 2, 3, 4, 5)
            assert found.values["tone"] in ("Formal", "casual", "mixed")


@given(
    JSON_VALUES,
    st.sampled_from(["error", "choices", "choice", "message", "content", "refusal", "tool_calls", "call", "finish"]),
)
def test_no_json_in_any_place_of_a_completion_raises(value: Any, place: str) -> None:
    reply: dict[str, Any] = completion(PLAIN, value if place == "finish" else "stop")
    message = reply["choices"][0]["message"]
    if place in ("error", "choices"):
        reply[place] = value
    elif place == "choice":
        reply["choices"] = [value]
    elif place == "message":
        reply["choices"][0]["message"] = value
    elif place == "call":
        message["tool_calls"] = [value, {"function": value}, {"function": {"name": "grade", "arguments": value}}]
    else:
        message[place] = value
    assert isinstance(read_verdict(reply, FIELDS, asked_tool="grade"), Verdict | Unscored)
    assert isinstance(read_body(json.dumps(reply), FIELDS, asked_tool="grade"), Verdict | Unscored)


@given(PROSE, REASONS, PROSE)
def test_prose_around_a_verdict_changes_nothing(before: str, why: str, after: str) -> None:
    text = before + json.dumps(GRADES | {"reason": why}) + after
    assert read_verdict(text, FIELDS) == Verdict(GRADES, why)


@given(REASONS, STYLES, st.data())
def test_a_cut_verdict_is_never_read(why: str, style: str, data: st.DataObject) -> None:
    for grades in (GRADES | {"reason": why}, {"reason": why} | GRADES):
        text = written(grades, style)
        cut = text[: data.draw(st.integers(0, len(text) - 1))]
        assert isinstance(read_verdict(cut, FIELDS), Unscored)


@given(
    st.sampled_from([PLAIN, OTHER, f"</think>{OTHER}", f"<think>{OTHER}", f'"}} {OTHER}', f"'}} {OTHER}"]),
    PROSE,
    STYLES,
)
def test_a_verdict_quoted_in_a_reason_never_becomes_the_verdict(quoted: str, prose: str, style: str) -> None:
    text = written(GRADES | {"reason": f"{prose}{quoted}{prose}"}, style)
    assert values(text) == GRADES
    assert values(f"```json\n{text}\n```") == GRADES


@given(st.dictionaries(st.text(max_size=8), JSON_VALUES, min_size=1, max_size=4))
def test_the_lenient_grammar_contains_strict_json(members: dict[str, Any]) -> None:
    text = json.dumps(members)
    strict, lenient = read_objects(text), read_objects(f": {text}")
    assert lenient.found[0].value == strict.found[0].value
    assert lenient.found[0].text == text


TANGLED = ["{", "}", '"', "\\", '{"', "{'", "{“", '{"a":', "{a:", "{a:{", '{"a":[', "{/*", "{//", "{#", "[", "[ ", "< "]
TAGGED = ["<think>", "</think>", "</think><think>", '{"a":x</think>', '{"a":"x</think>', '</think>{"a":', "<think>{"]
BROKEN = ['{"a":x', '{"a":x}', '{"a":1}', '{"a":"x\\d"', "{'a':x'", '{"a":"x" y}', "“{a:1", '"depth', "{a:1,"]


@pytest.mark.parametrize("piece", [*TANGLED, *TAGGED, *BROKEN])
def test_the_work_grows_with_the_length_of_a_tangled_text_and_no_faster(piece: str) -> None:
    small, large = (read_objects(piece * n).steps for n in (2_000, 8_000))
    assert large <= 4 * small + 1_000
    assert large <= 17 * len(piece) * 8_000 + 1_000


@settings(max_examples=50)
@given(TANGLES)
def test_the_work_on_any_repeated_text_is_bounded(piece: str) -> None:
    text = piece * 50
    # Never more than the allowance, and the one step that used it up.
    assert read_objects(text).steps <= 17 * len(text) + 1_001
