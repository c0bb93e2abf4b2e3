"""Personal data in a question, put out of sight so that the question can still be read. By form alone, no model.

Found is what has a form: addresses, numbers, keys, and names that stand beside a title or a label. A name or a story in
running text has none, and stays. When in doubt a long number is masked and a word is not.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from rag_judge.text import is_chinese

# What stands in place of each kind, by the language of the question.
SIGNS: Mapping[str, tuple[str, str]] = {
    "email": ("[email]", "【邮箱】"),
    "phone": ("[phone]", "【手机号】"),
    "id_card": ("[ID card]", "【身份证号】"),
    "bank_card": ("[card number]", "【银行卡号】"),
    "ip": ("[IP address]", "【IP 地址】"),
    "url": ("[parameters]", "【参数】"),
    "token": ("[token]", "【密钥】"),
    "number": ("[number]", "【号码】"),
    "name": ("[name]", "【姓名】"),
    "plate": ("[plate]", "【车牌号】"),
}
_WIDE = {ord("！") + n: ord("!") + n for n in range(94)} | {0x3000: 0x20}  # full-width signs, one for one
_SURNAMES = (
    "欧阳|上官|司马|诸葛|东方|皇甫|尉迟|公孙|慕容|司徒|令狐|"
    "[王李张刘陈杨赵黄周吴徐孙胡朱林何郭罗梁宋郑谢韩唐冯董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪田任姜范石姚谭廖邹熊"
    "陆郝孔白崔康毛邱秦江史顾侯邵孟龙段雷钱汤尹黎易常武乔贺赖龚庞樊殷施陶洪翟颜倪严牛温芦季俞章鲁葛韦毕聂焦柳邢岳齐梅莫庄辛祝纪詹]"
)
_TITLES = "先生|女士|小姐|太太"
_PROVINCES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
_SECRETS = "密码|口令|验证码|password|passwd|pwd|api key"
_ACCOUNTS = "qq|微信|wechat|vx|wx"
_NOT_NAMES = re.compile(r"(?i:sir|madam|team|support|customer|all|colleagues?|everyone|hr|it|user|friends?)\b")
_UNITS = re.compile(
    r" ?(?:[元块万亿人个件天年月日%％]|usd|eur|rmb|cny|dollars?|euros?|people|rows?|bytes?|kb|mb)", re.I
)
_AMOUNT = re.compile(r"(?:[$€£¥￥]|usd|rmb|cny|eur) ?$", re.I)
_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


@dataclass(frozen=True, slots=True)
class Masked:
    """A text without what was found in it, and how often each kind was found."""

    text: str
    counts: Mapping[str, int]


def mask(text: str) -> Masked:
    """The text with personal data masked, in the language of the text; masking twice changes nothing more."""
    counts: Counter[str] = Counter()
    lang = int(is_chinese(text))
    plain = text.translate(_WIDE)
    for pattern, needs, judge in _RULES:
        if not needs(plain):
            continue
        parts, last = [], 0
        for found in pattern.finditer(plain):
            kind = judge(found)
            if kind is None or _is_sign(text, found):
                continue
            start, end = found.span("hide") if "hide" in pattern.groupindex else found.span()
            parts += [text[last:start], SIGNS[kind][lang]]
            last = end
            counts[kind] += 1
        if parts:
            text = "".join([*parts, text[last:]])
            plain = text.translate(_WIDE)
    return Masked(text, dict(counts))


def _is_sign(text: str, found: re.Match[str]) -> bool:
    """Whether what was found is a sign that already stands for something."""
    return any(sign in text[found.start() : found.end()] for pair in SIGNS.values() for sign in pair)


# --- what a form must hold to be meant --------------------------------------------------------------------------------


def is_id_card(number: str) -> bool:
    """Whether 18 characters are a mainland ID card number: a date of birth and the right check character."""
    if not re.fullmatch(r"[1-9]\d{16}[\dXx]", number) or not _is_date(number[6:14]):
        return False
    total = sum(int(digit) * weight for digit, weight in zip(number, _ID_WEIGHTS, strict=False))
    return "10X98765432"[total % 11] == number[17].upper()


def is_bank_card(number: str) -> bool:
    """Whether 13 to 19 digits pass the Luhn check and are not all the same."""
    if not re.fullmatch(r"[1-9]\d{12,18}", number) or len(set(number)) == 1:
        return False
    doubled = (2 * int(digit) if at % 2 else int(digit) for at, digit in enumerate(reversed(number)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def _is_date(eight: str) -> bool:
    if eight[:2] not in ("19", "20"):
        return False
    try:
        datetime.strptime(eight[:8], "%Y%m%d")
    except ValueError:
        return False
    return True


def _digits(found: re.Match[str]) -> str | None:
    """The kind of a run of digits: one number, however it is grouped."""
    number = re.sub(r"[ -]", "", found[0])
    groups = re.split(r"[ -]", found[0])
    if len(groups) > 1 and all(re.fullmatch(r"(?:19|20)\d\d|\d+00", group) for group in groups):
        return None  # a list or range of years or sizes
    if is_id_card(number):
        return "id_card"
    if is_bank_card(number):
        return "bank_card"
    if len(groups) > 1:
        is_date = re.match(r"(?:19|20)\d\d-\d{1,2}(?:-|$)", found[0])
        return None if is_date or len(number) < 10 else "number"
    if number.isdecimal() and len(number) in (8, 12, 14) and _is_date(number):
        return None
    before, after = found.string[: found.start()], found.string[found.end() :]
    return None if _UNITS.match(after) or _AMOUNT.search(before) else "number"


def _address(found: re.Match[str]) -> str | None:
    """Whether an IP address is meant, and not the number of a version or a section."""
    if re.search(r"(?:\bv|version|release|section|版本|版|第|§)[ :.]*$", found.string[: found.start()], re.I):
        return None
    try:
        ipaddress.ip_address(found[0])
    except ValueError:
        return None
    return "ip"


def _token(found: re.Match[str]) -> str | None:
    """A long run of letters and digits that no word is."""
    run = found[0]
    n_digits = sum(char.isdecimal() for char in run)
    return "token" if n_digits >= 4 and len(run) - n_digits >= 4 else None


def _no_role(found: re.Match[str]) -> str | None:
    return None if _NOT_NAMES.match(found["hide"]) else "name"


def _chinese_name(found: re.Match[str]) -> str | None:
    """Whether a name stands after a label, and not a question for it."""
    return None if re.search("什么|哪|谁|怎么|多少", found["hide"]) else "name"


def _always(kind: str, found: re.Match[str]) -> str | None:
    return kind


def _holds(*signs: str) -> Callable[[str], bool]:
    return lambda text: any(sign in text for sign in signs)


_HAS_DIGITS = re.compile(r"\d(?:\D{0,3}\d){4}").search
_SECRET = re.compile(rf"(?i){_SECRETS}").search
_ACCOUNT = re.compile(rf"(?i){_ACCOUNTS}").search
_CALLED = re.compile(r"(?i)\b(?:mr|mrs|ms|dr|dear|name)\b").search


def _rule(
    pattern: str, needs: Callable[[str], object], judge: Callable[[re.Match[str]], str | None] | str
) -> tuple[re.Pattern[str], Callable[[str], object], Callable[[re.Match[str]], str | None]]:
    return re.compile(pattern), needs, partial(_always, judge) if isinstance(judge, str) else judge


# In this order: what holds another goes first. `hide` is the part that is masked, else all of it. Chinese stands
# beside Latin letters without a blank, so that \b is no border between them.
_RULES = (
    # A user and password, and whatever follows ? or # (keys, ids, what was searched for), of a web address.
    _rule(r"(?i)(?<![a-z])https?://(?P<hide>[^\s/@?#]{1,200}@)", _holds("://"), "token"),
    _rule(
        r"(?i)(?<![a-z])https?://[^\s?#\u3000-\u9fff]{1,500}[?#](?P<hide>[!-~]{1,100}=(?:[!-~]*[A-Za-z0-9_/=%&-])?)",
        _holds("://"),
        "url",
    ),
    _rule(r"[A-Za-z0-9_.%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{2,63}){1,4}", _holds("@"), "email"),
    _rule(r"(?i)(?<![a-z])(?:bearer |sk-)(?P<hide>[\w.-]{8,})", _holds("earer ", "sk-", "SK-"), "token"),
    _rule(rf"(?i)(?:{_SECRETS})\s?(?:是|为|is|:|=)\s?(?P<hide>[!-~]{{0,40}}\d[!-~]*)", _SECRET, "token"),
    _rule(r"(?<![A-Za-z0-9_-])(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{24,}(?![A-Za-z0-9_-])", _HAS_DIGITS, _token),
    _rule(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.]*\d)", _holds("."), _address),
    _rule(r"(?<![\w:])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:])", _holds(":"), _address),
    # Telephones: mainland mobile, with a country code, with an area code.
    _rule(
        r"(?<![\d.])(?<!\d[ -])(?:(?:\+|00)?86[ -]?)?1[3-9]\d[ -]?\d{4}[ -]?\d{4}(?![ -]?\d|\.\d)", _HAS_DIGITS, "phone"
    ),
    _rule(r"(?<![\d+])\+\d{1,3}(?:[ .()-]{0,2}\d){6,13}(?!\d)", _holds("+"), "phone"),
    _rule(r"(?<![\d-])(?<!\d )(?:\(0\d{2,3}\) ?|0\d{2,3}[ -])\d{3,4}[ -]?\d{4}(?![ -]?\d)", _HAS_DIGITS, "phone"),
    _rule(r"(?<![\d-])(?<!\d )(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-. ]\d{4}(?![ -]?\d)", _HAS_DIGITS, "phone"),
    _rule(r"(?<![\dA-Za-z.,-])[1-9]\d{16}[Xx](?![\dA-Za-z])", _HAS_DIGITS, _digits),
    _rule(r"(?<![\d.,-])\d{3,6}(?:(?P<gap>[ -])\d{3,6})(?:(?P=gap)\d{2,6}){1,4}(?![\d-]|[.,]\d)", _HAS_DIGITS, _digits),
    _rule(r"(?<![\dA-Za-z.,])(?:[A-Za-z]{1,4}-?)?\d{8,}[A-Za-z0-9]*(?![\dA-Za-z]|[.,]\d)", _HAS_DIGITS, _digits),
    _rule(
        rf"(?i)(?<![a-z])(?:{_ACCOUNTS})(?:号码|号| id)?\s?[:是为]?\s?(?P<hide>[a-z0-9_-]{{0,20}}\d[a-z0-9_-]{{2,20}})",
        _ACCOUNT,
        "number",
    ),
    _rule(
        rf"[{_PROVINCES}][A-HJ-NP-Z][·. ]?(?=[A-HJ-NP-Z]*\d)[A-HJ-NP-Z0-9]{{5,6}}(?![A-Za-z0-9])", is_chinese, "plate"
    ),
    _rule(rf"(?P<hide>(?:{_SURNAMES})[\u4e00-\u9fff]{{0,2}}?)(?:{_TITLES})", _holds(*_TITLES.split("|")), "name"),
    _rule(
        r"(?:姓名|名字|联系人|收件人|收货人)\s?(?:是|为|叫|:)\s?(?P<hide>[\u4e00-\u9fff·]{2,4})(?![\u4e00-\u9fff])",
        _holds("姓名", "名字", "人"),
        _chinese_name,
    ),
    _rule(
        rf"(?:我叫|我的名字是|本人叫)\s?(?P<hide>(?:{_SURNAMES})[\u4e00-\u9fff]{{1,2}})(?![\u4e00-\u9fff])",
        _holds("我", "本人"),
        "name",
    ),
    _rule(r"\b(?:[Mm][Rr][Ss]?|[Mm][Ss]|[Dd][Rr])\.? (?P<hide>[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?)", _CALLED, _no_role),
    _rule(r"\bDear (?P<hide>[A-Z][a-z'’-]+(?: [A-Z][a-z'’-]+)?)(?=,)", _CALLED, _no_role),
    _rule(r"\b[Mm]y (?:full )?name is (?P<hide>[A-Z][\w'’-]+(?: [A-Z][\w'’-]+){0,2})", _CALLED, _no_role),
)
