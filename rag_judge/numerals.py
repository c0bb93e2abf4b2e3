"""What a number is worth: Arabic digits with separators, Chinese numerals, English number words. Pure and total.

Here: the patterns by which a numeral is found and its value. Not here: what it counts, and whether it is a figure at
all (`quantities`). The patterns expect the characters that `quantities.plain_characters` gives.
"""

from __future__ import annotations

import re
from fractions import Fraction

# --- digits: 1,234.5, 3 万 5 千, 一百二十, 三点五 -------------------------------------------------------------------

DIGITS = {char: value for value, chars in enumerate(("〇零", "一", "二两", *"三四五六七八九")) for char in chars}
POWERS = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "亿": 10**8}
DIGIT = "[〇零一二两三四五六七八九]"
CHARACTER = "[〇零一二两三四五六七八九十百千万亿]"
_ARABIC = r"(?:\d{1,3}(?:[, ]\d{3}){1,8}(?!\d)|\d{1,30}(?!\d))(?:\.\d{1,30}(?!\d))?"
_END = "(?![分克米瓦])"  # 3 千克 is no three thousand
_WITH_POWERS = (
    rf"{_ARABIC}(?: ?[百千]?亿(?: ?{_ARABIC} ?千?万)?"
    rf"| ?[百千]?万亿?{_END}(?: ?{_ARABIC} ?千{_END})?(?: ?{_ARABIC} ?百{_END})?"
    rf"| ?千{_END}(?: ?{_ARABIC} ?百{_END})?| ?百{_END})?"
)
SPELLED_DECIMALS = rf"点{DIGIT}{{1,6}}(?![十分刻〇零一二两三四五六七八九])"  # 三点五, but not the time 三点五十分
NUMERAL = rf"(?:{CHARACTER}{{1,20}}{SPELLED_DECIMALS}[百千万亿]{{0,2}}|{_WITH_POWERS}|{CHARACTER}{{1,40}})"


def numeral_value(numeral: str) -> Fraction | None:
    """What a match of `NUMERAL` is worth; None where it is no number (万万, 百) or only about one (两三, 三五)."""
    numeral = numeral.replace(" ", "").replace(",", "")
    if numeral.isdecimal():
        return Fraction(int(numeral))
    if all(char in DIGITS for char in numeral):
        if len(numeral) == 2 and not set(numeral) & set("〇零"):
            return None
        return Fraction(_digits(numeral))
    whole, _, decimals = numeral.partition("点")
    sum_of_powers = _sum_of_powers(re.findall(r"\d+(?:\.\d+)?|.", whole))
    if sum_of_powers is None:
        return None
    value = Fraction(sum_of_powers)
    digits = decimals.rstrip("百千万亿")
    if digits:
        value += Fraction(_digits(digits), 10 ** len(digits))
    for power in decimals[len(digits) :]:
        value *= POWERS[power]
    return value


def _digits(characters: str) -> int:
    return int("".join(str(DIGITS[char]) for char in characters))


def _sum_of_powers(parts: list[str]) -> int | Fraction | None:
    """The sum of digits times powers, section by section of 万 and 亿; None where it is not written as one number."""
    total: int | Fraction = 0
    section: int | Fraction = 0
    digit: int | Fraction = 0
    last = 1
    for part in parts:
        power = POWERS.get(part)
        if power is None:
            if digit:
                return None  # two digits side by side
            digit = DIGITS[part] if part in DIGITS else Fraction(part) if "." in part else int(part)
            last = 1 if digit == 0 else last
        elif power < POWERS["万"]:
            if not digit and power != 10:
                return None
            section, digit, last = section + (digit or 1) * power, 0, power
        else:
            higher = section + digit
            if not higher and (power == POWERS["万"] or not total):
                return None
            total = (total + higher) * power if power == POWERS["亿"] else total + higher * power
            section, digit, last = 0, 0, power
    colloquial = last >= 100 and 0 < digit < 10 and parts[-1] in DIGITS  # 两万五, 一百二
    return total + section + (digit * last // 10 if colloquial else digit)


# --- words: twenty-five, two hundred and five, two and a half -------------------------------------------------------

_SMALL = re.findall(
    "[a-z]+",
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen",
)
_TENS = re.findall("[a-z]+", "twenty thirty forty fifty sixty seventy eighty ninety")
WORD_DIGITS = {word: n for n, word in enumerate(_SMALL)} | {word: 10 * n for n, word in enumerate(_TENS, 2)}
WORD_POWERS = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_WORD = "(?:" + "|".join(sorted((*WORD_DIGITS, *WORD_POWERS), key=len, reverse=True)) + ")"
_AND = "(?:(?<=hundred)|(?<=thousand)|(?<=million)) and "
IN_WORDS = rf"{_WORD}(?:(?:{_AND}|[ -]){_WORD}(?![a-z])){{0,8}}(?: and a half)?"


def words_value(wording: str) -> Fraction | None:
    """What a match of `IN_WORDS` is worth; None where its words are several numbers ("one two")."""
    body = wording.removesuffix(" and a half")
    total = section = Fraction(0)
    for word in re.findall("[a-z]+", body.replace(" and ", " ")):
        if word == "hundred":
            section = (section or Fraction(1)) * 100
        elif word in WORD_POWERS:
            total, section = total + (section or 1) * WORD_POWERS[word], Fraction(0)
        elif section % 100 and not (section % 100 >= 20 and section % 10 == 0 and WORD_DIGITS[word] < 10):
            return None
        else:
            section += WORD_DIGITS[word]
    return total + section + (Fraction(1, 2) if body != wording else 0)
