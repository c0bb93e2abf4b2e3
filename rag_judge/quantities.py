"""The figures that a text states, in Chinese and English: numbers with units, dates, times of day. Pure and total.

Here: what counts as a figure, and what it is worth. Not here: which figures are equal or supported (`claims`).

No figures are ordinals (第3条), versions (1.2.3, v3), ids (qa-001, SHA-256), marks of a list ("1." at a line's
begin), citations ([doc#3]), addresses on the web, and numbers that only order a text (三个步骤, "3 steps"). What is
read once is never read again, and every pattern is bounded: the time is linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from rag_judge.numerals import (
    CHARACTER,
    DIGIT,
    IN_WORDS,
    NUMERAL,
    POWERS,
    SPELLED_DECIMALS,
    WORD_DIGITS,
    WORD_POWERS,
    numeral_value,
    words_value,
)

DATE, TIME = "date", "time"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A figure as it stands at text[start:end].

    `unit` is a name of `UNITS`, or "" for a bare number; `value` counts that unit (八折 is 80 of `discount`). The value
    of a `date` is yyyymmdd with zeros for what is not stated, that of a `time` the minutes since midnight.
    """

    value: Fraction
    unit: str
    text: str
    start: int
    end: int


# Longer wordings stand before shorter ones. English ones end where the letters end.
UNITS = {
    "percent": r"%|个?百分点|percent(?:age points?)?|per cent|pct",
    "permille": "‰",
    "discount": "折(?![旧叠算现成合扣磨])",
    "tenth": "成(?![为功员本交立品果长年就绩人分效都])",
    "workday": r"个?工作[日天]|(?:working|business|work)[ -]?days?",
    "hour": r"个?(?:工作)?小时|个?钟头|(?:(?:working|business) )?hours?|hrs?|h",
    "quarter_hour": "刻钟",
    "minute": "分钟|minutes?|mins?",
    "second": "秒钟?|seconds?|secs?",
    "millisecond": "毫秒|ms|milliseconds?",
    "week": "个?(?:周(?![年末边围报会]|[一二三四五六日](?![次回场]))|星期(?![一二三四五六日天](?![次回场]))|礼拜)"
    "|weeks?",
    "quarter": "个?季度|quarters?",
    "month": "个?自然月|个?整月|个月|月(?![份底初末])|months?",
    "year": "周?年(?![级代度纪龄轻初底末终])|周?岁|years?|yrs?",
    "day": "个?自然日|天(?![气空然津])|日(?![本常志历期元程])|(?:calendar )?days?",
    "mbps": "mbps|mb/s|兆带宽",
    "gbps": "gbps|gb/s",
    **{unit: rf"{unit[0]}i?b(?:ytes?)?" for unit in ("kb", "mb", "gb", "tb", "pb")},
    "usd": "美元|美金|(?:us )?dollars?|usd",
    "hkd": "港[币元]|hkd",
    "eur": "欧元|euros?|eur",
    "jpy": "日元|yen|jpy",
    "gbp": "英镑|pounds?|gbp",
    "cny": "元(?![旦素])|块钱|块(?!看)|圆|yuan|rmb|cny|人民币",
    "times": "倍|x",
    "km": "公里|千米|km",
    "cm": "厘米|cm",
    "metre": "米|met(?:re|er)s?",
    "kg": "公斤|千克|kg",
    "count": "个|[人名位家台项种页篇件套笔张份次条场期批回遍节层科组行列级门楼字部封款步处间辆票口道席分]"
    "|people|persons?|users?|seats?|members?|employees?|pages?|copies",
}
_SIGNS = {"us$": "usd", "hk$": "hkd", "$": "usd", "¥": "cny", "€": "eur", "£": "gbp", "人民币": "cny", "rmb": "cny"}
_LOOSE_COUNTERS = tuple("个条项种行列级门楼字部封款步处间辆票口道席分")  # 两个, 这三条, 一级: seldom figures
_LASTING = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_AS_UNIT = {
    "permille": (Fraction(1, 10), "percent"),
    "tenth": (Fraction(10), "percent"),
    "quarter_hour": (Fraction(15), "minute"),
}

# --- patterns -------------------------------------------------------------------------------------------------------

_UNIT = re.compile(
    r"[ \t]{0,2}\*{0,2}[ \t]{0,2}-?(?:"
    + "|".join(f"(?P<{name}>{wordings})" for name, wordings in UNITS.items())
    + r")(?:(?<![a-z])|(?![a-z0-9]))"
)
_THROUGH = re.compile(rf"[ \t]?(?:到|至|~|-|–|—|to|or|或)[ \t]?{NUMERAL}")
_HALF_MORE = re.compile("个半(?=小时|月|钟头|星期|季度)")
_ABOUT = re.compile(" ?[多余来](?! ?[0-9])")
_HALF_AFTER = re.compile("半(?![天年月小价个])")
_ORDINAL = re.compile("(?:st|nd|rd|th)(?![a-z0-9])")
_MAGNITUDE = re.compile("[ -]?(hundred|thousand|million|billion)(?![a-z])")
_STRUCTURE = re.compile(  # what only orders the text
    "[ \t]?(?:主要|不同|关键|基本)?的?(?:方面|步骤|方式|方法|情况|情形|要点|部分|原因|阶段|途径|选项|类型|场景|问题)"
    "|[ -](?:steps|ways|options|reasons|types|kinds|cases|things|aspects)(?![a-z])"
)
_DAYPART = "凌晨|清晨|早上|早晨|上午|中午|正午|午后|下午|傍晚|晚上|晚间|夜里|夜间|半夜|深夜"
_AFTER_NOON = ("午后", "下午", "傍晚", "晚上", "晚间", "夜里", "夜间")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?"
    "|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)(?![a-z])"
)
_YEAR = r"[12]\d{3}(?!\d)"
_ZH_YEAR = "[12][0-9]{3}|[一二][〇零一二三四五六七八九]{3}"
_ZH_MONTH = "1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九]"
_ZH_DAY = "[12][0-9]|3[01]|0?[1-9]|[二三]?十[一二三四五六七八九]?|[一二三四五六七八九]"
_ZH_HOUR = "2[0-4]|[01]?[0-9]|二十[一二三四]?|十[一二三四五六七八九]?|[零一二两三四五六七八九]"
_ZH_MINUTE = f"[0-5]?[0-9]|[二三四五]?十{DIGIT}?|零?{DIGIT}"
CITED = (
    r"\[(?:[^\[\]\n]{0,60}[#†][^\[\]\n]{0,60}|\^?\d{1,4}(?:[, –-]{1,2}\d{1,4}){0,20}|[a-z][\w./-]{0,80}"
    r"|(?:来源|出处|文档|资料|片段|参考|引用|sources?|docs?|documents?|contexts?|refs?|id)[^\[\]\n]{0,60})\]"
    r"|\([^()\s]{0,60}#[^()\s]{1,20}\)"
)
_NO_FIGURE = (
    rf"{CITED}|(?:https?://|www\.)[^\s\u3000-\u9fff]{{1,2000}}"
    r"|^[ \t]{0,20}(?:[-*•·>#+][ \t]{0,3}){0,6}\(?(?:\d{1,3}|[一二三四五六七八九十]{1,3})[.、)](?=[ \t]{0,9}[^\d\s])"
    r"|^[ \t]{0,20}#{1,6} ?\d{1,2}(?:\.\d{1,2}){0,3}(?= )|\d\ufe0f?\u20e3"  # headings, and digits drawn as keys
    rf"|\d{{31,}}|{CHARACTER}{{41,}}|第 ?{NUMERAL}(?: ?[-~–至到、] ?{NUMERAL})?|#\d{{1,30}}"
    r"|(?<![a-z])(?:steps?|nos?\.|sections?|chapter|article|clause|figure|table|option|example|version|ver\.)"
    r" ?\d[\d.]{0,20}"
    r"|(?:步骤|章节|版本|附录|方案|情况|问题|选项|场景|要点|示例) ?\d[\d.]{0,20}"
)
_ADVERBS: dict[str, tuple[int, str]] = {"twice": (2, ""), "once": (1, "")}
_ADVERBS |= {"hourly": (1, "hour"), "daily": (1, "day"), "weekly": (1, "week"), "monthly": (1, "month")}
_ADVERBS |= {"quarterly": (1, "quarter"), "yearly": (1, "year"), "annually": (1, "year"), "annual": (1, "year")}
_ADVERBS |= {"noon": (720, TIME), "midday": (720, TIME), "中午": (720, TIME), "midnight": (0, TIME), "午夜": (0, TIME)}

# --- reading one place of the text ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Read:
    """What a place says and where that ends; a weak one is no claim, and can still hold the claim of another text."""

    value: Fraction
    unit: str
    end: int
    is_weak: bool = False


def _unit_at(plain: str, at: int) -> tuple[str, int]:
    """The unit at a place and where it ends; "" and the place itself where there is none."""
    found = _UNIT.match(plain, at)
    return (found.lastgroup or "", found.end()) if found else ("", at)


def _number(found: re.Match[str]) -> _Read | None:
    plain, numeral, start, end = found.string, found["numeral"], found.start("numeral"), found.end()
    is_spelled = not numeral[0].isdecimal()
    value = numeral_value(numeral)
    if value is None and len(numeral) == 2 and plain[end : end + 1] == "折":
        value = numeral_value("零" + numeral)  # 七五折
    is_vague = plain[start - 1 : start] in tuple("数几双上") and numeral[0] in "十百千万"  # 几十, 双十一
    if value is None or is_vague or plain[end : end + 1] in tuple("几数"):
        return None
    more = None if is_spelled else _MAGNITUDE.match(plain, end)
    if more:
        value, end = value * WORD_POWERS[more[1]], more.end()
    if found["sign"]:
        return _Read(value, _SIGNS.get(found["sign"], found["sign"]), end)
    return _counted(plain, start, end, value, is_spelled)


def _in_words(found: re.Match[str]) -> _Read | None:
    value = words_value(found[0])
    return None if value is None else _counted(found.string, found.start(), found.end(), value, True)


def _counted(plain: str, start: int, end: int, value: Fraction, is_spelled: bool) -> _Read | None:
    """A number with the unit that follows it, or with that of the number it ranges to (5 到 7 天)."""
    numeral = plain[start:end]
    if _HALF_MORE.match(plain, end):
        value, end = value + Fraction(1, 2), end + 2
    about = _ABOUT.match(plain, end)
    end = about.end() if about else end
    unit, unit_end = _unit_at(plain, end)
    if unit in _LASTING and _HALF_AFTER.match(plain, unit_end):
        value, unit_end = value + Fraction(1, 2), unit_end + 1
    if not unit:
        if ordinal := _ORDINAL.match(plain, end):
            return _Read(value, "day", ordinal.end(), is_weak=True)
        if plain[end : end + 1].isascii() and plain[end : end + 1].isalpha():
            return None  # 21H2
        through = _THROUGH.match(plain, end)
        unit = _unit_at(plain, through.end())[0] if through else ""
    if not unit and (numeral == "一" or plain[start - 1 : start] in tuple("周期拜")):
        return None  # 一起, 周五
    is_weak = is_spelled and _is_passing(numeral, unit, plain[unit_end - 1], plain[start - 1 : start])
    is_weak = is_weak or (unit in ("", "count") and _STRUCTURE.match(plain, unit_end) is not None)
    factor, same = _AS_UNIT.get(unit, (Fraction(10 if unit == "discount" and value < 10 else 1), unit))
    return _Read(value if factor == 1 else value * factor, same, unit_end, is_weak)


def _is_passing(numeral: str, unit: str, last: str, before: str) -> bool:
    """Whether a numeral in characters or words states no figure: 一个, 这两条, 哪一天, 五端, "one of them"."""
    if numeral in ("一", "one") and (unit in ("", "count", "times") or before in tuple("同统唯每另单专某任哪这那有头")):
        return True
    is_short = len(numeral) == 1 or numeral in WORD_DIGITS
    return is_short and (not unit or last == "块" or (unit == "count" and last in _LOOSE_COUNTERS))


def _half(found: re.Match[str]) -> _Read | None:
    unit, end = _unit_at(found.string, found.end())
    if unit and unit not in ("percent", "discount", "count", "times"):
        return _Read(Fraction(1, 2), unit, end)
    is_share = found[0] in ("半价", "一半", "half")
    return _Read(Fraction(50), "percent", found.end(), is_weak=found[0] == "half") if is_share else None


def _each(found: re.Match[str]) -> _Read | None:
    unit, end = _unit_at(found.string, found.end())
    return _Read(Fraction(1), unit, end, is_weak=True) if unit in _LASTING else None


def _adverb(found: re.Match[str]) -> _Read:
    value, unit = _ADVERBS[found[0]]
    return _Read(Fraction(value), unit, found.end(), is_weak=found[0] != "twice")


def _share(found: re.Match[str]) -> _Read | None:
    below, above = numeral_value(found["below"]), numeral_value(found["above"])
    if found["below"] in POWERS:
        below = Fraction(POWERS[found["below"]])
    if found["above"] == "百":
        above = Fraction(100)
    return _Read(above * 100 / below, "percent", found.end()) if below and above is not None else None


def _phone(found: re.Match[str]) -> _Read:
    return _Read(Fraction(int(found[0].replace("-", ""))), "", found.end())


def _parts(found: re.Match[str]) -> dict[str, str]:
    """What the numbered groups matched, by their names without the number: year1 and year2 are the year."""
    return {name[:-1]: part for name, part in found.groupdict().items() if part and name[-1].isdecimal()}


def _date(found: re.Match[str]) -> _Read | None:
    parts = _parts(found)
    if parts.get("month", "").isalpha() and parts["month"].isascii():
        parts["month"] = str(_MONTHS.index(parts["month"][:3]) + 1)
    year, month, day = (
        int(numeral_value(parts[name]) or 99) if name in parts else 0 for name in ("year", "month", "day")
    )
    if 12 < month <= 31 and 0 < day <= 12:  # 31/1/2026
        month, day = day, month
    return _Read(Fraction(year * 10000 + month * 100 + day), DATE, found.end()) if month <= 12 and day <= 31 else None


def _time(found: re.Match[str]) -> _Read | None:
    """A time of day; with a part of the day, or am and pm, hours up to 12 are meant as in "6 pm" and 晚上12点."""
    parts = _parts(found)
    part, half = parts.get("part", ""), parts.get("half", "")
    if parts["hour"] in ("一", "两") and not part and found.end() == found.end("hour3") + 1:
        return None  # 早一点, 有两点
    hour, minute = (int(numeral_value(parts.get(name, "0")) or 0) for name in ("hour", "minute"))
    minute = {"半": 30, "一刻": 15, "三刻": 45}.get(parts.get("quarter", ""), minute)
    is_noon = part in ("中午", "正午")
    if hour < 12 and (half == "p" or part in _AFTER_NOON or (is_noon and hour < 10)):
        hour += 12
    elif hour == 12 and (half == "a" or part[:1] in tuple("凌晚夜半深")):
        hour = 0
    return _Read(Fraction(hour % 24 * 60 + minute), TIME, found.end())


# --- reading the text -------------------------------------------------------------------------------------------------

# Tried in this order at every place of the text; the first that fits is read, or passed over whole.
_KINDS: dict[str, tuple[str, Callable[[re.Match[str]], _Read | None] | None]] = {
    "no_figure": (_NO_FIGURE, None),
    "iso_date": (
        r"(?P<year1>[12]\d{3})(?P<between>[-/.])(?P<month1>\d{1,2})(?P=between)(?P<day1>\d{1,2})(?!\d|[-.]\d)",
        _date,
    ),
    "slashed_date": (rf"(?P<month2>\d{{1,2}})/(?P<day2>\d{{1,2}})/(?P<year2>{_YEAR})", _date),
    "zh_date": (
        rf"(?:(?P<year3>{_ZH_YEAR}) ?年度? ?)?(?P<month3>{_ZH_MONTH}) ?月份?(?: ?(?P<day3>{_ZH_DAY}) ?[日号])?"
        rf"|(?P<year4>{_ZH_YEAR}) ?年(?![级代])",
        _date,
    ),
    "month_first": (
        rf"(?<![a-z])(?P<month5>{_MONTH})(?:\.? (?P<day5>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:a-z%]))?"
        rf"(?:,? (?P<year5>{_YEAR}))?",
        _date,
    ),
    "day_first": (
        rf"(?P<day6>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<month6>{_MONTH})(?:\.?,? (?P<year6>{_YEAR}))?",
        _date,
    ),
    "clock": (
        rf"(?:(?P<part1>{_DAYPART}) ?)?(?P<hour1>[01]?\d|2[0-4]):(?P<minute1>[0-5]\d)(?::[0-5]\d)?(?!\d)"
        r"(?: ?(?P<half1>[ap])\.?m(?![a-z])\.?)?",
        _time,
    ),
    "am_pm": (r"(?P<hour2>1[0-2]|0?[1-9]) ?(?P<half2>[ap])\.?m(?![a-z])\.?", _time),
    "zh_time": (
        rf"(?:(?P<part3>{_DAYPART}) ?)?(?P<hour3>{_ZH_HOUR}) ?(?!{SPELLED_DECIMALS})"
        "(?:点钟?(?![建注原要意说结评数位子赞击餐滴])|时(?![间候代长段限效]))"
        rf"(?: ?(?:(?P<quarter3>半|[一三]刻)|(?P<minute3>{_ZH_MINUTE}) ?分(?![钟之])))?",
        _time,
    ),
    "version": (r"\d{1,9}(?:\.\d{1,9}){2,9}", None),
    "phone": (r"\d{2,5}(?:-\d{2,8}){2,4}(?!\d)|0\d{2,3}-\d{7,8}(?!\d)", _phone),
    "share": (rf"(?P<below>[百千万]|{NUMERAL})分之 ?(?P<above>百(?!分)|{NUMERAL})", _share),
    "number": (
        r"(?:(?<![a-z])(?P<sign>(?:us|hk)?\$|[¥€£]|rmb|cny|usd|eur|jpy|gbp|hkd|人民币) {0,2})?"
        rf"(?P<numeral>{NUMERAL})",
        _number,
    ),
    "in_words": (rf"(?<![a-z]){IN_WORDS}(?![a-z])", _in_words),
    "half": ("半价|一半|(?<![a-z])half(?:[ -]an?)?(?![a-z])|(?<![上下前后大])半个?", _half),
    "each": ("[每全当次整隔]个?|/ ?|(?<![a-z])(?:an?|per|each|every) ", _each),
    "adverb": (rf"(?<![a-z])(?:{'|'.join(_ADVERBS)})(?![a-z])", _adverb),
    "word": (r"[a-z_][a-z0-9_]*(?:[-#./@][a-z0-9_]+)*", None),  # ids too: qa-001, SHA-256
}
_SCAN = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, (pattern, _) in _KINDS.items()), re.MULTILINE)


def quantities(text: str) -> tuple[Quantity, ...]:
    """The figures of a text in order, none inside another."""
    return tuple(quantity for quantity, is_weak in _scan(text) if not is_weak)


def held_quantities(text: str) -> tuple[Quantity, ...]:
    """The figures of a text, and what it says of numbers in passing: 每年, "a day", 一个, "once", 五端."""
    return tuple(quantity for quantity, _ in _scan(text))


def _scan(text: str) -> Iterator[tuple[Quantity, bool]]:
    plain = plain_characters(text)
    at = 0
    while found := _SCAN.search(plain, at):
        kind, start = found.lastgroup or "", found.start()
        reader = _KINDS[kind][1]
        read = (
            reader(found) if reader and not (kind in ("month_first", "day_first") and _is_verb(found, text)) else None
        )
        at = read.end if read else found.end()
        if read:
            yield Quantity(read.value, read.unit, text[start:at], start, at), read.is_weak


def _is_verb(found: re.Match[str], text: str) -> bool:
    """Whether "may" or "march" is no month: in small letters, or "May" without a day, a year or "in" beside it."""
    parts = _parts(found)
    month = parts["month"]
    before = found.string[max(0, found.start() - 12) : found.start()].split()
    alone = "day" not in parts and "year" not in parts
    names_time = before[-1:] and before[-1] in ("in", "of", "by", "since", "until", "from", "to", "and", "or", "each")
    at = found.start("month5") if found["month5"] else found.start("month6")
    return not text[at].isupper() or (alone and month in ("may", "march") and not names_time)


@cache
def _plain_character(char: str) -> str:
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    if unicodedata.category(char) == "No":  # ①, ² and ½ are no digits of a number
        return char
    folded = unicodedata.normalize("NFKC", char).lower()
    return folded if len(folded) == 1 else char


_SPELLINGS = str.maketrans("萬億兩個週號點時鐘間條張圓塊紀項種頁【】", "万亿两个周号点时钟间条张圆块纪项种页[]")
_FORMAL = str.maketrans("壹贰貳叁參肆伍陆陸柒捌玖拾佰仟", "一二二三三四五六六七八九十百千")
_FORMAL_NUMERAL = re.compile("[壹贰貳叁參肆伍陆陸柒捌玖拾佰仟零万亿]{2,40}(?=[元圆整])")


def plain_characters(text: str) -> str:
    """The text, equally long: full-width, traditional and formal characters as the plain ones, small letters."""
    if text.isascii():
        return text.lower()
    plain = "".join(map(_plain_character, text)).translate(_SPELLINGS)
    return _FORMAL_NUMERAL.sub(lambda found: found[0].translate(_FORMAL), plain)
