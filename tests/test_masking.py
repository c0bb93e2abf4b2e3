"""Personal data is masked by its form, and what only looks like it stays."""

import time

import pytest

from rag_judge.masking import is_bank_card, is_id_card, mask


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("我的手机号是13800138000,怎么改绑?", "我的手机号是【手机号】,怎么改绑?", id="mobile"),
        pytest.param("手机 138 0013 8000 收不到短信", "手机 【手机号】 收不到短信", id="mobile, grouped"),
        pytest.param("+86-138-0013-8000 呢", "【手机号】 呢", id="mobile, country code"),
        pytest.param("１３８００１３８０００ 换号", "【手机号】 换号", id="mobile, full-width"),
        pytest.param("call +1 (415) 555-2671 please", "call [phone] please", id="international"),
        pytest.param("call (021) 5555 6666 or 555-123-4567", "call [phone] or [phone]", id="area codes"),
        pytest.param("身份证11010519491231002X能办吗", "身份证【身份证号】能办吗", id="ID card"),
        pytest.param("身份证 110105194912310021 错了吗", "身份证 【号码】 错了吗", id="ID card, wrong check"),
        pytest.param("card 4111 1111 1111 1111 declined", "card [card number] declined", id="card"),
        pytest.param("卡号4111111111111111", "卡号【银行卡号】", id="card, Chinese"),
        pytest.param("order 9000000012346 is late", "order [number] is late", id="long run"),
        pytest.param("SO20260131001 状态", "【号码】 状态", id="run with letters"),
        pytest.param("passport E12345678?", "passport [number]?", id="passport"),
        pytest.param("mail a.b+c@example.co.uk bounced", "mail [email] bounced", id="mail"),
        pytest.param("邮箱abc@example.com收不到", "邮箱【邮箱】收不到", id="mail between Chinese"),
        pytest.param("服务器 192.168.1.10 连不上", "服务器 【IP 地址】 连不上", id="IPv4"),
        pytest.param("is 2001:db8::1 up?", "is [IP address] up?", id="IPv6"),
        pytest.param("see https://x.com/a?token=abc&u=5 fails", "see https://x.com/a?[parameters] fails", id="address"),
        pytest.param("打开https://x.com/p?id=1,看不到", "打开https://x.com/p?【参数】,看不到", id="address in Chinese"),
        pytest.param("https://user:pw@host.com/x", "https://[token]host.com/x", id="user in address"),
        pytest.param("key sk-abcdefghijk123456 fails", "key sk-[token] fails", id="key"),
        pytest.param("550e8400-e29b-41d4-a716-446655440000?", "[token]?", id="UUID"),
        pytest.param("密码是abc12345登录不了", "密码是【密钥】登录不了", id="password"),
        pytest.param("我的QQ123456被盗", "我的QQ【号码】被盗", id="QQ"),
        pytest.param("粤B12345 停车", "【车牌号】 停车", id="plate"),
        pytest.param("请找王小明先生", "请找【姓名】先生", id="name before a title"),
        pytest.param("我叫张三,怎么请假", "我叫【姓名】,怎么请假", id="my name, Chinese"),
        pytest.param("收件人:李小龙", "收件人:【姓名】", id="label"),
        pytest.param("My name is John Smith and I wait", "My name is [name] and I wait", id="my name"),
        pytest.param("Dear Anna, does Mr. Smith know?", "Dear [name], does Mr. [name] know?", id="titles"),
    ],
)
def test_what_has_the_form_of_personal_data_is_masked_in_the_language_of_the_question(text: str, expected: str) -> None:
    masked = mask(text)
    assert masked.text == expected
    assert sum(masked.counts.values()) >= 1
    assert mask(expected).text == expected


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31 10:00 的会议",
        "20260131 之前",
        "2023-2024 and 2020 2021 2022",
        "预算10000000元够吗",
        "is $12000000 too much, or 12,000,000 dollars?",
        "pages 100 200 300",
        "pi is 3.14159265358979",
        "版本 1.2.3.4 和 v10.2.3.4 和 第3.2.1.1节",
        "10:30:45 会议",
        "工号100234,尾号8888,RTX4090",
        "密码是什么,怎么改",
        "我叫什么名字,联系人是什么",
        "我是新员工",
        "Dear Team, who is in charge",
        "https://x.com/docs#section",
        "error 0x80070005",
        "supercalifragilisticexpialidocious",
    ],
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    assert mask(text).text == text
    assert mask(text).counts == {}


def test_kinds_are_counted() -> None:
    counts = mask("13800138000 or 13900139000, mail a@example.com").counts
    assert counts == {"email": 1, "phone": 2}


def test_the_check_character_of_an_id_card_is_worked_out() -> None:
    # The standard's own example: the weighted sum is 167, 167 mod 11 = 2, and the check character of 2 is X.
    digits, weights = "11010519491231002", (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    assert sum(int(d) * w for d, w in zip(digits, weights, strict=True)) % 11 == 2
    assert [end for end in "0123456789X" if is_id_card(digits + end)] == ["X"]
    assert not is_id_card("11010519491331002X")  # no month 13


def test_a_card_number_passes_luhn() -> None:
    # 4111 1111 1111 1111: doubled are 4 and seven 1s = 8 + 14, the others are eight 1s = 8; 30 ends with 0.
    assert is_bank_card("4111111111111111")
    assert not is_bank_card("4111111111111112")
    assert not is_bank_card("0" * 16)


@pytest.mark.parametrize(
    "text",
    [
        "1" * 20_000,
        "1 " * 10_000,
        "A1" * 10_000,
        "a" * 20_000 + "@",
        "https://" * 3_000,
        ":" * 20_000,
        "王" * 9_000 + "先",
    ],
    ids=["digits", "grouped", "mixed", "mail", "address", "colons", "surnames"],
)
def test_odd_texts_take_no_time(text: str) -> None:
    begun = time.process_time()
    mask(text)
    assert time.process_time() - begun < 1
