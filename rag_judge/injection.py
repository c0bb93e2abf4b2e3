"""What an answer holds that speaks to the judge and not to whoever asked: a verdict, a mark of the prompt, an order.

A hint for people, found by wording: it changes no outcome, and what it does not know it does not find. How the judge is
kept from obeying such a text is `prompts`' to see to.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from rag_judge.records import VerdictField

# The shipped prompts' fields. `complete` alone is a word of many programs, and no verdict of any prompt.
SHIPPED = (
    VerdictField("grounded", "boolean"),
    VerdictField("should_abstain", "boolean"),
    VerdictField("score", "score"),
    VerdictField("winner", "choice", ("A", "B", "tie")),
)
TOO_COMMON = frozenset({"complete"})
LONGEST_SHOWN = 60
_ZERO_WIDTH = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_QUOTES = "\"'“”„‟‘’‚‛"

_SECTIONS = (
    "answers?|questions?|contexts?|documents?|references?|materials?|rubrics?|instructions?|verdicts?|grading|judge"
    "|system|assistant|回答|答案|问题|资料|材料|参考答案|评分标准"
)
_JUDGED = (
    r"grad(?:e[drs]?|ing)|judg\w*|verdicts?|rubrics?|ignore|disregard|reply|respond"
    "|评分|评判|评审|打分|裁判|指令|提示词|忽略|判为"
)
_MARKS = (
    rf"</\s*(?:{_SECTIONS})\s*>",
    r"^[ \t]*<<\s*(?:[0-9A-F]{4,}|KEY)\b",
    r"^[ \t]*(?:[0-9A-F]{4,}|KEY)>>[ \t]*$",
    rf"^[^\w\n]{{0,20}}end of (?:the )?(?:{_SECTIONS})[^\w\n]{{0,20}}$",
    r"^[^\w\n]{0,20}(?:回答|答案|问题|资料|材料)(?:部分)?(?:到此)?(?:结束|完毕)[^\w\n]{0,20}$",
    r"<\|\s*(?:im_(?:start|end)|system|user|assistant|end\w*|eot_id|start_header_id|end_header_id)\s*\|>",
    r"\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>",
    rf"^[ \t>#*]*(?:system|assistant|developer|系统|助手)(?: message)?[ \t*]*:.*(?:{_JUDGED})",
)

_GAP = r"[\s,]{1,3}"
_IGNORE = rf"(?<!not )(?<!never )(?<!n't )(?<!n’t )\b(?:ignore|disregard|forget|override|overlook|bypass)(?:{_GAP}\w+)"
_EARLIER = r"(?:previous|prior|preceding|above|earlier|foregoing|original|initial|your|all|system)"
_TOLD = r"(?:instructions?|prompts?|rules|guidelines?|directions|directives)"
_ANSWER = rf"(?:this|the|my|that|every|each){_GAP}(?:\w+{_GAP})?(?:answer|response|reply|output|submission)"
_JUDGE = r"(?:judge|grader|evaluator|rater)\b"
_FIELD = r"(?:grounded|complete|should[ _-]?abstain|verdict|winner|score)"
_GRADE = (
    "(?:correct|right|true|pass(?:ed|ing)?|grounded|complete|perfect|full marks|highest|top|[45](?:/5)?|10(?:/10)?)"
)
_FIELD_WORDS = ("grounded", "complete", "abstain", "verdict", "winner", "score")
# An order, behind words of which it holds one: looking for these first takes a fraction of the time.
_ENGLISH: Sequence[tuple[tuple[str, ...], str]] = (
    (
        ("ignore", "disregard", "forget", "override", "overlook", "bypass"),
        rf"{_IGNORE}{{0,3}}?{_GAP}{_EARLIER}(?:{_GAP}\w+){{0,3}}?{_GAP}{_TOLD}\b"
        rf"|{_IGNORE}{{0,3}}?{_GAP}(?:rubric|grading|judging|scoring|system prompt|evaluation criteria)\b"
        rf"|{_IGNORE}{{0,2}}?{_GAP}{_TOLD}{_GAP}(?:above|before|so far|given|you)\b"
        rf"|{_IGNORE}{{0,1}}?{_GAP}(?:everything|anything|all|what|whatever)(?:{_GAP}\w+){{0,2}}?{_GAP}"
        r"(?:above|before|told|said)\b",
    ),
    (("instruction",), rf"\bnew{_GAP}(?:system{_GAP})?instructions?\s?:"),
    (
        ("judge", "grader", "evaluator", "rater"),
        rf"\byou{_GAP}are{_GAP}(?:now{_GAP})?(?:an?{_GAP}|the{_GAP})?(?:\w+{_GAP})?{_JUDGE}"
        r"|\b(?:dear|attention|note (?:to|for)|message (?:to|for)|hey|hello|hi)[\s,:]{1,3}"
        rf"(?:the )?(?:\w+ )?{_JUDGE}",
    ),
    (
        ("grading", "judging", "evaluation", "scoring"),
        r"\b(?:grading|judging|evaluation|scoring)(?: task| session)?\s(?:is|has been)\s(?:now )?"
        r"(?:over|done|completed?|finished|ended)\b",
    ),
    (
        _FIELD_WORDS,
        rf"\b(?:reply|respond|answer|output|return|write|say|print|emit|set|mark)\b(?:[\s,:]{{1,3}}\w+){{0,3}}?"
        rf"[\s,:{_QUOTES}]{{1,4}}{_FIELD}[\s{_QUOTES}:=]{{1,6}}(?:as |to |is )?[{_QUOTES}]?"
        r"(?:true|false|yes|no|pass|[1-5]|tie)\b",
    ),
    (
        ("mark", "grade", "rate", "score", "judge", "label", "evaluate"),
        rf"\b(?:mark|grade|rate|score|judge|label|evaluate){_GAP}(?:{_ANSWER}|it|this){_GAP}(?:as |with |an? ){{0,3}}"
        rf"{_GRADE}\b",
    ),
    (
        ("give", "award", "assign"),
        rf"\b(?:give|award|assign){_GAP}(?:{_ANSWER}|it|this|me|us){_GAP}(?:an? |the )?"
        r"(?:full|perfect|highest|top|maximum|max|best|pass(?:ing)?|5/5|10/10|score of)\b",
    ),
    (
        ("better", "best", "winner"),
        rf"\b(?:choose|pick|select|prefer|vote for|declare){_GAP}(?:{_ANSWER}|this one|(?:answer |response )?[AB])"
        rf"{_GAP}(?:as |to be )?(?:the )?(?:better|best|winner)\b",
    ),
)
_IGNORING = ("忽略", "无视", "忘记", "忘掉", "抛开", "不要理会", "不用理会", "不必理会", "别管", "不用管")
_IGNORE_ZH = rf"(?<!不要)(?<!不能)(?<!不可)(?<!切勿)(?<!请勿)(?:{'|'.join(_IGNORING)})掉?"
_ANSWER_ZH = "(?:这个?|本|该|此|上面的?)(?:条|份)?(?:回答|答案|答复|回复)"
_CHINESE: Sequence[tuple[tuple[str, ...], str]] = (
    (
        _IGNORING,
        rf"{_IGNORE_ZH}[^。!?;\n]{{0,8}}?"
        r"(?:以上|上述|上面|之前|前面|先前|此前|原有|原来|系统|你的|你收到|所有|一切|全部|任何)"
        r"[^。!?;\n]{0,8}?(?:指令|指示|命令|规则|提示|要求|标准|设定|内容)"
        rf"|{_IGNORE_ZH}[^。!?;\n]{{0,6}}?(?:评分|评判|评审|打分|评价|提示词|系统提示)",
    ),
    (
        ("评", "裁判", "打分"),
        r"你(?:现在)?(?:是|作为)(?:一[个名位])?[^。,\n]{0,4}?(?:评委|裁判|评审|评分员|评判员|打分员|评估员)"
        r"|(?:各位|尊敬的|亲爱的|致|请)(?:评委|裁判|评审|评分员|评判者|评估者)"
        r"|(?:评分|评判|评审|打分|评估)(?:现在|现已|已经?|到此)?(?:结束|完成|完毕)(?!后|时|前|之)",
    ),
    (("满分", "高分"), rf"(?:给|打|评|判)(?:我|它)?的?(?:{_ANSWER_ZH}|回答|答案)?[^。,\n]{{0,4}}?(?:满分|最高分|高分)"),
    (("答", "回复"), rf"{_ANSWER_ZH}[^。,\n]{{0,3}}?(?:判|评|标|打|记)(?:定|记|分)?(?:为|成|作)"),
    (
        _FIELD_WORDS,
        rf"(?:请|直接|只|必须|应当?|务必)(?:直接|只)?(?:回复|回答|输出|返回|给出|判|填)[^。\n]{{0,6}}?{_FIELD}"
        rf"[ \t{_QUOTES}:=为是]+(?:true|false|是|否|真|假|通过|[1-5])",
    ),
)
_MARK = re.compile("|".join(_MARKS), re.IGNORECASE | re.MULTILINE)
_ORDERS = tuple((words, re.compile(pattern, re.IGNORECASE)) for words, pattern in (*_ENGLISH, *_CHINESE))


def suspicious(text: str, asked: Sequence[VerdictField] = ()) -> str | None:
    """What of a text speaks to a judge: `verdict`, `mark`, `order`, each with its first place as it stands; else None.

    A verdict is a value of a field in JSON, of the shipped prompts' fields and of those `asked`.
    """
    plain = _ZERO_WIDTH.sub("", unicodedata.normalize("NFKC", text))
    found = {"verdict": _verdict_pattern((*SHIPPED, *asked)).search(plain), "mark": _MARK.search(plain)}
    found["order"] = _order(plain)
    return "; ".join(f"{kind}: {_shown(plain, hit)}" for kind, hit in found.items() if hit) or None


def _order(text: str) -> re.Match[str] | None:
    lower = text.lower()
    hits = (order.search(text) for words, order in _ORDERS if any(word in lower for word in words))
    return min(filter(None, hits), key=lambda hit: hit.start(), default=None)


def _shown(text: str, hit: re.Match[str]) -> str:
    whole = " ".join(text[hit.start() : max(hit.end(), hit.start() + LONGEST_SHOWN)].split())
    return whole if len(whole) <= LONGEST_SHOWN else f"{whole[: LONGEST_SHOWN - 1]}…"


@lru_cache(maxsize=16)
def _verdict_pattern(fields: tuple[VerdictField, ...]) -> re.Pattern[str]:
    """A field's name as a key, quoted or behind a brace, with one of its values."""
    stated = "|".join(
        rf"{_name(field.name)}[{_QUOTES}]?\s*:\s*[{_QUOTES}]?(?:{_values(field)})(?![\w.])"
        for field in dict.fromkeys(fields)
        if field.name not in TOO_COMMON
    )
    return re.compile(rf"(?:\{{\s*|[{_QUOTES}])(?:{stated})", re.IGNORECASE)


def _name(name: str) -> str:
    """The name in every spelling that a verdict's key may have."""
    return r"[\s_-]*".join(re.escape(part) for part in re.split(r"[\s_-]+", name))


def _values(field: VerdictField) -> str:
    if field.kind == "boolean":
        return "true|false|yes|no|是|否|[01]"
    if field.kind == "score":
        return "|".join(rf"{n}(?:\.0)?(?:/{field.high})?" for n in range(field.low, field.high + 1))
    return "|".join(map(re.escape, field.choices))
