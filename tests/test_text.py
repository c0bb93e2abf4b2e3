"""Folding and key points."""

import pytest

from rag_judge.text import fold, holds_point, in_one_or_two, words


@pytest.mark.parametrize(
    ("text", "point", "found"),
    [
        ("支持 500 个并发", "500", True),
        ("up to 1500 calls", "500", False),
        ("5000 calls", "500", False),
        ("500.5 units", "500", False),
        ("1,500 units", "500", False),
        ("500,000 units", "500", False),
        ("costs 500.", "500", True),
        ("costs 500, at most", "500", True),
        ("v.500 is out", "500", True),
        ("1500 or 500 calls", "500", True),
        ("支持500个", "５００ 个", True),
        ("THREE  months", "three months", True),
        ("三个\n月", "三个月", True),
        ("99%的用户", "99%", True),
        ("199%", "99%", False),
        ("第3季度", "3季度", True),
        ("第13季度", "3季度", False),
    ],
)
def test_a_key_point_is_found_whole_and_never_inside_a_longer_number(text: str, point: str, found: bool) -> None:
    assert holds_point(fold(text), fold(point)) is found


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        pytest.param(["支持 800 并发"], True, id="in one"),
        pytest.param(["支持 8", "00 并发"], True, id="over two neighbours"),
        pytest.param(["支持 8", "无关", "00 并发"], False, id="not over a gap"),
        pytest.param(["支持 8", "0", "0 并发"], False, id="not over three"),
        pytest.param([], False, id="in none"),
    ],
)
def test_a_key_point_may_stand_over_two_neighbouring_chunks(texts: list[str], found: bool) -> None:
    assert in_one_or_two([fold(text) for text in texts], "800") is found


def test_words_are_runs_of_letters_and_pairs_of_cjk_characters() -> None:
    assert words("企业版支持 500 users") == ["企业", "业版", "版支", "支持", "500", "users"]
    assert words("年A假 ok") == ["年", "a", "假", "ok"]
    assert words("…!") == []
