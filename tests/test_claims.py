"""Figures of a text, which of an answer's figures stand in no context, hints on clauses, sentences.

Oracles: Chinese numerals are written from integers by `in_chinese` below, digit by digit from the right, which shares
no code with the reader. The example of `eval/` is real text: an answer that quotes claims nothing of its own.
"""

import json
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_judge.claims import clause_hints, sentence_support, sentences, unsupported_quantities
from rag_judge.demo.rag_service import V1, Assistant, load_chunks
from rag_judge.quantities import held_quantities, plain_characters, quantities

EVAL = Path(__file__).resolve().parent.parent / "eval"


def read(text: str) -> list[tuple[Fraction, str]]:
    return [(quantity.value, quantity.unit) for quantity in quantities(text)]


def figures(*pairs: tuple[str | int, str]) -> list[tuple[Fraction, str]]:
    return [(Fraction(value), unit) for value, unit in pairs]


# --- reading figures --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        pytest.param("1,234 元", 1234, "cny", id="comma"),
        pytest.param("1 234 yuan", 1234, "cny", id="blank as separator"),
        pytest.param("1，234 块钱", 1234, "cny", id="full-width comma"),
        pytest.param("１２３４．５ 圆", "1234.5", "cny", id="full-width digits"),
        pytest.param("12,345,678.90", "12345678.9", "", id="several separators"),
        pytest.param("¥820", 820, "cny", id="sign before"),
        pytest.param("RMB 100", 100, "cny", id="code before"),
        pytest.param("US$5.40", "5.4", "usd", id="dollar sign"),
        pytest.param("3 美元", 3, "usd", id="dollars, Chinese"),
        pytest.param("$1.2 million", 1_200_000, "usd", id="million after a sign"),
        pytest.param("30%", 30, "percent", id="percent sign"),
        pytest.param("３０％", 30, "percent", id="full-width percent"),
        pytest.param("30 per cent", 30, "percent", id="per cent"),
        pytest.param("百分之三十", 30, "percent", id="percent, Chinese"),
        pytest.param("百分之99.9", "99.9", "percent", id="percent, mixed"),
        pytest.param("万分之三", "0.03", "percent", id="of ten thousand"),
        pytest.param("三分之一", "100/3", "percent", id="fraction"),
        pytest.param("两成", 20, "percent", id="tenths"),
        pytest.param("八折", 80, "discount", id="discount"),
        pytest.param("七五折", 75, "discount", id="discount of two digits"),
        pytest.param("8.5 折", 85, "discount", id="discount, Arabic"),
        pytest.param("三十天", 30, "day", id="thirty days"),
        pytest.param("30 日内", 30, "day", id="日 as a duration"),
        pytest.param("a 30-day refund", 30, "day", id="hyphen"),
        pytest.param("**30** 天", 30, "day", id="bold number"),
        pytest.param("3 个工作日", 3, "workday", id="working days, Chinese"),
        pytest.param("3 business days", 3, "workday", id="business days"),
        pytest.param("两周", 2, "week", id="两"),
        pytest.param("2 周一次", 2, "week", id="weeks, not Monday"),
        pytest.param("30 多天", 30, "day", id="a little more"),
        pytest.param("200ms", 200, "millisecond", id="unit close by"),
        pytest.param("三个月", 3, "month", id="months, Chinese"),
        pytest.param("两个半月", "2.5", "month", id="and a half month"),
        pytest.param("三年半", "3.5", "year", id="half after the unit"),
        pytest.param("半年", "0.5", "year", id="half a year, Chinese"),
        pytest.param("half a year", "0.5", "year", id="half a year"),
        pytest.param("two and a half hours", "2.5", "hour", id="and a half"),
        pytest.param("一刻钟", 15, "minute", id="quarter of an hour"),
        pytest.param("60岁", 60, "year", id="age"),
        pytest.param("twenty-five days", 25, "day", id="words"),
        pytest.param("two hundred and five", 205, "", id="more words"),
        pytest.param("64 MB", 64, "mb", id="megabytes"),
        pytest.param("3 万", 30_000, "", id="ten thousands"),
        pytest.param("1.5亿", 150_000_000, "", id="hundred millions"),
        pytest.param("3万5千元", 35_000, "cny", id="mixed powers"),
        pytest.param("十万元", 100_000, "cny", id="powers, Chinese"),
        pytest.param("两万五", 25_000, "", id="colloquial"),
        pytest.param("一千零五十", 1050, "", id="zero inside"),
        pytest.param("二〇二六", 2026, "", id="digit by digit"),
        pytest.param("壹万贰仟元整", 12_000, "cny", id="formal"),
        pytest.param("三萬個", 30_000, "count", id="traditional"),
        pytest.param("三点五倍", "3.5", "times", id="decimals, Chinese"),
        pytest.param("3 千克", 3, "kg", id="not three thousand"),
        pytest.param("400-555-0173", 4005550173, "", id="telephone"),
    ],
)
def test_a_number_is_read_with_its_unit(text: str, value: str | int, unit: str) -> None:
    assert read(text) == figures((value, unit))


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        pytest.param("2026-01-31", 20260131, "date", id="iso"),
        pytest.param("2026/1/31", 20260131, "date", id="slashes"),
        pytest.param("1/31/2026", 20260131, "date", id="American"),
        pytest.param("31/1/2026", 20260131, "date", id="British, day above 12"),
        pytest.param("2026 年 1 月 31 日", 20260131, "date", id="Chinese"),
        pytest.param("二〇二六年一月三十一日", 20260131, "date", id="Chinese numerals"),
        pytest.param("1月31号", 131, "date", id="without year"),
        pytest.param("Jan 31, 2026", 20260131, "date", id="month first"),
        pytest.param("31 January", 131, "date", id="day first"),
        pytest.param("the 31st of January 2026", 20260131, "date", id="ordinal day"),
        pytest.param("2026年", 20260000, "date", id="year"),
        pytest.param("in May", 500, "date", id="month"),
        pytest.param("9:30", 570, "time", id="clock"),
        pytest.param("18：30", 1110, "time", id="full-width colon"),
        pytest.param("18点30分", 1110, "time", id="点 and 分"),
        pytest.param("6 p.m.", 1080, "time", id="pm"),
        pytest.param("12:10 am", 10, "time", id="after midnight"),
        pytest.param("下午6点半", 1110, "time", id="part of the day"),
        pytest.param("中午 12 点半", 750, "time", id="noon"),
        pytest.param("晚上12点", 0, "time", id="midnight"),
        pytest.param("三点五十分", 230, "time", id="spelled minutes"),
    ],
)
def test_dates_and_times_of_day_are_kinds_of_their_own(text: str, value: int, unit: str) -> None:
    assert read(text) == figures((value, unit))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("见第3条、第1-2条和第二步", id="ordinals"),
        pytest.param("## 2 退款\n1️⃣ 方案1：可以", id="headings and labels"),
        pytest.param("the 20th entry", id="English ordinal"),
        pytest.param("version 4.2, v3, 1.2.3", id="versions"),
        pytest.param("qa-001, SHA-256, B1, 21H2, HY-LS-0417", id="ids"),
        pytest.param("1. 先登录\n2. 再申请\n3) 等待\n（4）完成\n四、其他", id="marks of a list"),
        pytest.param("如上 [doc#3][2] 【5】[来源：手册 7] (faq#12)", id="citations"),
        pytest.param("see https://example.org/a/30?days=5", id="address"),
        pytest.param("分三个步骤，有 4 种方式 and 3 steps", id="order of the text"),
        pytest.param("一个账号，一起，一线，统一，万一，千万别，十分重要", id="words with numerals"),
        pytest.param("两三天，几十人，双十一", id="about so many"),
        pytest.param("周五到周三", id="days of the week"),
        pytest.param("早一点，有两点，上半年", id="no times"),
        pytest.param("You may march on.", id="verbs"),
        pytest.param("one of them and the other one", id="one"),
        pytest.param("9" * 31, id="too long"),
        pytest.param("折叠 成功 ① ½", id="no numerals"),
        pytest.param("2026-13-45", id="no date"),
    ],
)
def test_what_only_looks_like_a_figure_is_none(text: str) -> None:
    assert read(text) == []


def test_a_range_gives_its_first_number_the_unit_of_its_last() -> None:
    for text in ("5 到 7 个工作日", "5-7 business days", "5～7 working days", "五到七个工作日", "5 to 7 workdays"):
        assert read(text) == figures((5, "workday"), (7, "workday")), text


def test_a_figure_knows_where_it_stands() -> None:
    text = "满３０ 天，【doc#1】付 1，234 元"
    assert [text[q.start : q.end] for q in quantities(text)] == [q.text for q in quantities(text)]
    assert [q.text for q in quantities(text)] == ["３０ 天", "1，234 元"]


# --- against contexts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "context"),
    [
        ("14 天", "两周"),
        ("two weeks", "14 天内"),
        ("72 小时", "3 days"),
        ("60 分钟", "一小时内"),
        ("12 个月", "1 年"),
        ("6 个月", "每半年"),
        ("15 minutes", "一刻钟"),
        ("八折", "按原价的 80% 收"),
        ("八折", "a 20% discount"),
        ("20% off", "打八折"),
        ("五折", "半价"),
        ("2 万元", "20,000 yuan"),
        ("18.6 万元", "186 000 元起"),
        ("30%", "百分之三十"),
        ("2 GB", "2000 MB"),
        ("2 GB", "2048 MB"),
        ("50 人起购", "50 个席位"),
        ("3 people", "三名管理员"),
        ("30 天", "有效期（天）：30"),
        ("保留 30", "30 天"),
        ("1月31日", "2026-01-31"),
        ("Jan 31, 2026", "2026年1月31日"),
        ("2026 年 1 月", "2026/1/31"),
        ("2026年1月31日", "1月31日截止"),
        ("每月 20 日", "leave on the 20th of the month"),
        ("下午 6 点", "18:00"),
        ("9:30", "上午九点半"),
        ("一年最多 3 次", "每年最多三次"),
        ("1 天", "一天内"),
        ("每年 2 次", "twice a year"),
        ("4 天", "four days a year"),
        ("五月", "in May and in November"),
    ],
)
def test_equal_figures_in_other_words_are_held(answer: str, context: str) -> None:
    assert unsupported_quantities(answer, [context]) == ()


@pytest.mark.parametrize(
    ("answer", "context", "found"),
    [
        ("15 天", "14 天", ["15 天"]),
        ("30 GB", "30 MB", ["30 GB"]),
        ("30 天", "30 元", ["30 天"]),
        ("3 天", "3 个工作日", ["3 天"]),
        ("30 天", "1 个月", ["30 天"]),
        ("九折", "八折", ["九折"]),
        ("二折", "八折", ["二折"]),
        ("500", "1500 和 500.5", ["500"]),
        ("1,500 元", "1,5000 元和 150 元", ["1,500 元"]),
        ("18:30", "8:30", ["18:30"]),
        ("6 pm", "6 am", ["6 pm"]),
        ("3月5日", "5月3日", ["3月5日"]),
        ("2027 年 1 月 31 日", "2026-01-31", ["2027 年 1 月 31 日"]),
        ("3 美元", "3 元", ["3 美元"]),
        ("比价三家，付 5%", "比价四家，付 5%", ["三家"]),
        ("拨 8021", "拨 8012", ["8021"]),
        ("付 100 元，限 3 次", "", ["100 元", "3 次"]),
    ],
)
def test_a_figure_of_another_value_or_unit_is_found(answer: str, context: str, found: list[str]) -> None:
    assert [q.text for q in unsupported_quantities(answer, [context])] == found


def test_a_number_of_the_question_is_no_claim_of_the_answer() -> None:
    answer = "买 45 个席位可以打九折。"
    assert [q.text for q in unsupported_quantities(answer, ["九折"])] == ["45 个"]
    assert unsupported_quantities(answer, ["九折"], question="买45席有优惠吗") == ()


def test_citations_claim_nothing() -> None:
    assert unsupported_quantities("可以 [refund#12]【3】[7]", ["可以"]) == ()


def test_a_figure_cut_by_the_border_of_two_contexts_is_held_in_whatever_order_they_came() -> None:
    left, right = "须在期满前 1", "8 天交到人事系统"
    for contexts in ([left, right], [right, left], [left, "别的", right]):
        assert unsupported_quantities("提前 18 天", contexts) == ()
        assert [q.text for q in unsupported_quantities("提前 81 天", contexts)] == ["81 天"]
    assert unsupported_quantities("within 24 hours", ["within 24", "hours"]) == ()


def test_without_figures_or_contexts_there_is_nothing_to_raise() -> None:
    assert unsupported_quantities("", []) == ()
    assert unsupported_quantities("没有", []) == ()
    assert [q.text for q in unsupported_quantities("3 天", [])] == ["3 天"]


# --- properties -------------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        *"0123456789〇一二两三十百千万亿点半折成%年月日天周时分秒元块个第每到至-–~:/.,，。；！？ \n[]【】()#*“”'\"",
        *("小时", "工作日", "分之", "１", "５", "①", "²", "\ud800", "İ", "不", "没有", "仅", "除非", "…"),
        *(" days", " hours", "GB", "$", "¥", "Jan ", " May ", "pm", "two ", "hundred ", "and a half", "e.g.", "No. "),
        *(" not ", " only ", " at least ", "https://", "doc#3", "v1.2"),
    ]
)
HOSTILE_TEXT = st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=40).map("".join))


@given(HOSTILE_TEXT)
def test_a_text_supports_itself(text: str) -> None:
    assert unsupported_quantities(text, [text]) == ()
    assert unsupported_quantities(text, [], question=text) == ()


@given(HOSTILE_TEXT)
def test_figures_stand_in_order_and_never_in_each_other(text: str) -> None:
    found = held_quantities(text)
    assert [q.text for q in found] == [text[q.start : q.end] for q in found]
    assert all(q.start < q.end for q in found)
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert set(quantities(text)) <= set(found)
    assert len(plain_characters(text)) == len(text)


@given(HOSTILE_TEXT, HOSTILE_TEXT, HOSTILE_TEXT)
def test_nothing_raises_on_any_text(answer: str, context: str, other: str) -> None:
    unsupported_quantities(answer, [context, other], question=other)
    clause_hints(answer, [context, other], other)
    clause_hints(answer, [context], answer[:3])
    assert len(sentence_support(answer, [context, other])) == len(sentences(answer))


def in_chinese(number: int) -> str:
    """The Chinese numeral of 0..10**12: the part above the highest power, its name, 零 over a gap, the rest."""
    written = _in_chinese(number)
    return written[1:] if written.startswith("一十") else written


def _in_chinese(number: int) -> str:
    for power, name in ((10**8, "亿"), (10**4, "万"), (1000, "千"), (100, "百"), (10, "十")):
        if number >= power:
            above, below = divmod(number, power)
            gap = "零" if 0 < below < power // 10 else ""
            return _in_chinese(above) + name + gap + (_in_chinese(below) if below else "")
    return "零一二三四五六七八九"[number]


@pytest.mark.parametrize(
    ("number", "numeral"),
    [
        (0, "零"),
        (7, "七"),
        (10, "十"),
        (15, "十五"),
        (20, "二十"),
        (105, "一百零五"),
        (110, "一百一十"),
        (1005, "一千零五"),
        (10_000, "一万"),
        (10_005, "一万零五"),
        (120_000, "十二万"),
        (100_000_000, "一亿"),
    ],
)
def test_the_oracle_writes_numerals_as_people_do(number: int, numeral: str) -> None:
    assert in_chinese(number) == numeral


NUMBERS = st.one_of(st.integers(0, 10**8), st.integers(0, 9).flatmap(lambda n: st.integers(0, 10**n)))


@given(NUMBERS)
def test_a_number_keeps_its_value_in_any_spelling(number: int) -> None:
    full_width = str(number).translate({ord("0") + digit: ord("０") + digit for digit in range(10)})
    spellings = [
        f"{number} 天",
        f"{number:,} 天",
        f"{number:,} 天".replace(",", " "),
        f"{number:,} 天".replace(",", "，"),
    ]
    spellings += [f"{full_width}天", f"{in_chinese(number)}天", f"{in_chinese(number).replace('二千', '两千')}天"]
    spellings += [f"{number / 10_000:.4f} 万天"] if number >= 10_000 else []
    for spelling in spellings:
        assert read(f"共{spelling}") == figures((number, "day")), spelling


@given(NUMBERS, NUMBERS)
def test_two_numbers_are_equal_only_if_their_values_are(one: int, other: int) -> None:
    is_held = unsupported_quantities(f"满{one}元", [f"满{in_chinese(other)}元"]) == ()
    assert is_held is (one == other)


# --- the example ------------------------------------------------------------------------------------------------------


def quoting_answers() -> list[tuple[str, dict[str, Any]]]:
    assistant = Assistant(load_chunks(EVAL / "kb"), V1)
    cases = json.loads((EVAL / "rag_cases.json").read_text("utf-8"))
    more = [json.loads(line) for line in (EVAL / "questions.jsonl").read_text("utf-8").splitlines()]
    asked = [(case.get("question") or case["q"], case.get("tenant")) for case in cases + more]
    return [(question, assistant.answer(question, tenant)) for question, tenant in asked]


def test_answers_that_quote_claim_nothing_and_one_changed_digit_is_found() -> None:
    n_changed = n_found = 0
    for question, reply in quoting_answers():
        answer, texts = reply["answer"], [context["text"] for context in reply["contexts"]]
        assert unsupported_quantities(answer, texts, question) == ()
        for quantity in quantities(answer):
            for at in range(quantity.start, quantity.end):
                if answer[at] in "123456789":
                    digit = str(int(answer[at]) % 9 + 1)
                    changed = answer[:at] + digit + answer[at + 1 :]
                    n_changed += 1
                    n_found += bool(unsupported_quantities(changed, texts, question))
                    break
    assert n_changed > 200
    assert n_found / n_changed > 0.9  # the rest stands in another passage by chance: 1 次, 2 天


# --- hints on clauses -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "context", "point", "kinds"),
    [
        pytest.param("券能与教育优惠叠加。", "券不能与教育优惠叠加。", "与教育优惠叠加", ["negation"], id="dropped 不"),
        pytest.param("3 天内不退款。", "3 天内退款。", "退款", ["negation"], id="added 不"),
        pytest.param("You can share links.", "You can never share links.", "share links", ["negation"], id="never"),
        pytest.param("It is refunded.", "It isn’t refunded.", "refunded", ["negation"], id="contraction"),
        pytest.param("团队版可用。", "仅团队版可用。", "团队版可用", ["only"], id="仅"),
        pytest.param("Team may export.", "Only Team may export.", "Team may export", ["only"], id="only"),
        pytest.param("可以导出。", "除非欠费可以导出。", "可以导出", ["exception"], id="除非"),
        pytest.param("It is free.", "It is free unless you share it.", "free", ["exception"], id="unless"),
        pytest.param("提前 3 天登记", "至少提前 3 天登记", "3 天", ["at least"], id="至少"),
        pytest.param("带 5 位访客", "最多带 5 位访客", "5 位", ["at most"], id="最多"),
        pytest.param("above 500 yuan", "up to 500 yuan", "500 yuan", ["at least", "at most"], id="turned round"),
        pytest.param("不少于 9 天", "至少 9 天", "9 天", [], id="same bound in other words"),
        pytest.param("不仅 3 天", "3 天", "3 天", [], id="不仅 denies nothing"),
        pytest.param("可以，3 天。不行", "3 天", "3 天", [], id="another clause"),
        pytest.param("3 天内不退", "3 天内不退", "3 天", [], id="alike"),
        pytest.param("3 天", "5 天", "3 天", [], id="point not in the context"),
        pytest.param("3 天", "3 天", "", [], id="no point"),
    ],
)
def test_a_negation_or_condition_on_one_side_alone_is_a_hint(
    answer: str, context: str, point: str, kinds: list[str]
) -> None:
    assert [hint.kind for hint in clause_hints(answer, [context], point)] == kinds


def test_a_hint_quotes_both_clauses_and_names_the_context() -> None:
    (hint,) = clause_hints("好的，券能叠加。", ["别的", "满减可用，券不能叠加。"], "叠加")
    assert (hint.answer_clause, hint.context_clause) == ("券能叠加", "券不能叠加")
    assert (hint.kind, hint.sign, hint.stands_in, hint.context) == ("negation", "不", "context", 1)


def test_contexts_that_say_it_both_ways_give_no_hint() -> None:
    assert clause_hints("券能叠加", ["券不能叠加", "券能叠加"], "叠加") == ()


# --- sentences --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param(
            "第一句。第二句！第三句？第四；第五", ["第一句。", "第二句！", "第三句？", "第四；", "第五"], id="Chinese"
        ),
        pytest.param("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"], id="English"),
        pytest.param("“好。”他说「行！」走了", ["“好。”", "他说「行！」", "走了"], id="quotes stay"),
        pytest.param(
            "退款。[a#1] 付 3 天。【2】[3]完", ["退款。[a#1]", "付 3 天。【2】[3]", "完"], id="citations stay"
        ),
        pytest.param("It is so.[a#1] And so. [b#2]", ["It is so.[a#1]", "And so. [b#2]"], id="citations, English"),
        pytest.param("It is 3.5 days, v1.2.3, a.b@c.de. Ok", ["It is 3.5 days, v1.2.3, a.b@c.de.", "Ok"], id="dots"),
        pytest.param(
            "See e.g. this, i.e. that vs. No. 3.", ["See e.g. this, i.e. that vs. No. 3."], id="abbreviations"
        ),
        pytest.param("No. You can't.", ["No.", "You can't."], id="No as an answer"),
        pytest.param("Files, etc. are kept. Mail etc. Then", ["Files, etc. are kept.", "Mail etc.", "Then"], id="etc"),
        pytest.param("At 6 p.m. we close.", ["At 6 p.m. we close."], id="pm"),
        pytest.param("等等……再说。Well... maybe", ["等等……再说。", "Well...", "maybe"], id="ellipses"),
        pytest.param("1. 登录\n2. 申请。\n- 等\n\n* ok", ["1. 登录", "2. 申请。", "- 等", "* ok"], id="lists"),
        pytest.param("真的？！好", ["真的？！", "好"], id="two stops"),
        pytest.param("英文.中文。", ["英文.", "中文。"], id="ASCII stop in Chinese"),
        pytest.param("\n。 ！\n---\n", [], id="nothing"),
        pytest.param("", [], id="empty"),
    ],
)
def test_sentences_of_both_languages(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts


@given(HOSTILE_TEXT)
def test_sentences_lose_no_letter_and_are_never_empty(text: str) -> None:
    found = sentences(text)
    assert [c for part in found for c in part if c.isalnum()] == [c for c in text if c.isalnum()]
    assert all(part == part.strip() and any(c.isalnum() for c in part) for part in found)


def test_each_sentence_names_the_context_that_holds_most_of_it() -> None:
    # 退款|款需|需要|要3天 as pairs and words: 退款 款需 需要 要 3 天; the second context holds all, the first none.
    refund, weather, refs = sentence_support(
        "退款需要三天 [a#1]。Nobody knows. [b#2] 的了。", ["weather", "退款需要三天"]
    )
    assert (refund.share, refund.context) == (1.0, 1)
    assert (weather.share, weather.context) == (0.0, None)
    assert (refs.share, refs.context) == (None, None)
    half = sentence_support("red green", ["green blue", "red"])[0]
    assert (half.share, half.context) == (0.5, 0)


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "piece",
    [
        *("1", "万", "1万", "1,", "1 234 ", "1,234,", "1-", "12-34-", "1:", "1.", "2026-", "1/1/", "\n1.", "Jan 1 "),
        *("[", "[#", "[1,", "(#", "【", "a-", "hundred and ", "two-", "https://", "- ", "e.g. ", "only "),
        *(
            "百分之",
            "一分之",
            "第一",
            "半",
            "3点",
            "一点",
            "3到",
            "壹",
            "一两",
            "除",
            "。",
            "。[a#1]",
            "…",
            "”",
            "不",
            "至少",
        ),
    ],
)
def test_the_time_is_linear_in_the_length(piece: str) -> None:
    def seconds(work: Callable[[str], object], length: int) -> float:
        text = (piece * length)[:length]
        started = time.process_time()
        work(text)
        return time.process_time() - started

    for work in (
        lambda text: unsupported_quantities(text, ["x"]),
        lambda text: sentence_support(text, ["x"]),
        lambda text: clause_hints(text, [text], "1"),
    ):
        assert seconds(work, 40_000) < 0.5 + 20 * seconds(work, 4_000)  # 10 times the text; quadratic would be 100


def test_200_kb_of_digits_and_brackets_take_a_moment() -> None:
    for piece in ("7", "[", "万", "(", "7 "):
        text = piece * (200_000 // len(piece))
        started = time.process_time()
        unsupported_quantities(text, [text])
        assert time.process_time() - started < 20
