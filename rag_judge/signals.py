"""Rates of a production log: no result, asked again, handed off, refused, and how long answers took.

They point at where to look; none of them says that an answer was right or wrong, and no number of quality is made of
them. What a row does not say leaves it out of that rate, and is counted beside it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_judge.clusters import clustered_quantile, clustered_rate, effective_n, rows_for_quantile
from rag_judge.errors import InputError
from rag_judge.likeness import bare, nearly_alike
from rag_judge.log_words import REASONS, WORDS, remarks
from rag_judge.production_log import Log, LogFormat, Turn
from rag_judge.records import Estimate, NoEstimate
from rag_judge.summary import put

SIGNALS = ("no_result", "asked_again", "handed_off", "refused")
QUANTILES = {"median": 0.5, "p95": 0.95}
LEAST_ASKERS = 10  # people with fewer are a handful of stories, and no rate
SAME_WORDS = 2 / 3  # share of the words that carry meaning in common (Jaccard) from which two ask the same
N_LATER = 50  # questions of the same asker that are looked at
# Words and characters that ask, address or link, and leave what is asked about.
_SMALL_WORDS = frozenset(  # as text: sixty lines of one word each would hide them
    re.findall(
        r"\w+",
        "a an and are be can could do does for from get give has have hello hi how i if in is it me my no not of on or "
        "please so tell that the there this to was we what when where which who why will with would you your",
    )
)
_SMALL_CHARACTERS = re.compile(
    "请问|怎么样|怎样|怎么|如何|什么|为何|哪里|哪儿|哪个|多少|你好|您好|"
    "[的了吗呢啊吧呀嘛么我你您他们几能可以是在有没要想把给这那个去做弄和与或及]"
)
_PART = re.compile(r"[\u3400-\u9fff]|\d+|[^\W\d_\u3400-\u9fff]+")

Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Marks:
    """What is known of each turn of a log, by signal, in file order."""

    values: Mapping[str, Sequence[bool | None]]
    asked_again_in_time: Sequence[bool | None]  # None also where the log ends before the window does


def marks_of(turns: Sequence[Turn], window_s: float) -> Marks:
    """The signals of each turn. Raises InputError for a window that is not above 0."""
    if not 0 < window_s < float("inf"):
        raise InputError(f"--window: found {window_s / 60:g}, expected minutes, above 0")
    again = asked_again(turns, window_s)
    end = max((turn.at for turn in turns if turn.at is not None), default=0.0)
    in_time = [
        known if turn.at is not None and turn.at + window_s <= end else None
        for known, turn in zip(again, turns, strict=True)
    ]
    values: dict[str, Sequence[bool | None]] = {
        "no_result": [turn.no_result for turn in turns],
        "asked_again": again,
        "handed_off": [turn.handed_off for turn in turns],
        "refused": [turn.refused for turn in turns],
    }
    return Marks(values, in_time)


def asked_again(turns: Sequence[Turn], window_s: float) -> list[bool | None]:
    """For each turn whether the same user, or someone in the same conversation, soon asked the same once more.

    Soon: later, by no more than the window. None without a time, or without user and conversation.
    """
    found: list[bool | None] = [None] * len(turns)
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, turn in enumerate(turns):
        if turn.at is None or turn.asker is None:
            continue
        found[place] = False
        for kind, name in (("user", turn.user), ("conversation", turn.conversation)):
            if name is not None:
                groups[kind, name].append(place)
    for (kind, _), places in groups.items():
        # A conversation of one user is part of that user's questions.
        users = {turns[place].user for place in places}
        if len(places) > 1 and (kind == "user" or None in users or len(users) > 1):
            for place in _asked_again_in(places, turns, window_s):
                found[place] = True
    return found


def _asked_again_in(places: list[int], turns: Sequence[Turn], window_s: float) -> Iterable[int]:
    """The places, of those of one asker, that are followed by the same question."""
    at = {place: turns[place].at or 0.0 for place in places}
    places.sort(key=lambda place: (at[place], place))
    asked = [bare(turns[place].question) for place in places]
    roots = list(range(len(places)))

    def soon(earlier: int, later: int) -> bool:
        return at[places[later]] - at[places[earlier]] <= window_s

    for later, earlier in sorted(nearly_alike(asked, soon).items()):
        roots[later] = roots[earlier]
    parts = [_parts(turns[place].question) for place in places]
    for n, place in enumerate(places):
        for later in range(n + 1, min(n + 1 + N_LATER, len(places))):
            if not soon(n, later):
                break
            if at[places[later]] > at[place] and (roots[n] == roots[later] or _same_words(parts[n], parts[later])):
                yield place
                break


def _parts(question: str) -> frozenset[str]:
    """The words, and the Chinese characters, of a question that say what it is about."""
    plain = _SMALL_CHARACTERS.sub(" ", unicodedata.normalize("NFKC", question).casefold())
    return frozenset(_PART.findall(plain)) - _SMALL_WORDS


def _same_words(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two questions hold nearly the same words that carry meaning, two or more, and the same numbers."""
    both = one & other
    if len(both) < 2 or len(both) < SAME_WORDS * len(one | other):
        return False
    return not any(part.isdecimal() for part in one ^ other)


# --- rates ------------------------------------------------------------------------------------------------------------


def signals_of(path: str, log: Log, form: LogFormat, *, window_s: float, lang: str = "en") -> Tree:
    """The signals of a log over all rows, by day and by the values of each slice, as one JSON object.

    Days in order of time, values of a slice by number of rows, rows that state none last. Reasons and remarks are in
    `lang`. Raises InputError for a window that is not above 0.
    """
    turns = log.turns
    table = _Table(turns, marks_of(turns, window_s), window_s, lang)
    by_slice: list[Tree] = []
    for at, field in enumerate(form.slices):
        groups = table.grouped(turn.slices[at] for turn in turns)
        order = sorted(groups, key=lambda value: (value is None, -len(groups[value]), value or ""))
        by_slice += [{"field": field, "value": value} | table.group(groups[value]) for value in order]
    days = table.grouped(turn.day for turn in turns)
    return {
        "log": path,
        "window_s": window_s,
        "timezone": None if form.zone is None else str(form.zone),
        "n_broken": log.n_broken,
        "broken": list(log.broken),
        "overall": table.group(range(len(turns))),
        "by_day": [
            {"day": day} | table.group(days[day]) for day in sorted(days, key=lambda day: (day is None, day or ""))
        ],
        "by_slice": by_slice,
        "remarks": remarks(oddities(log), lang),
        "note": WORDS[lang]["point"],
    }


def oddities(log: Log) -> Tree:
    """What is odd about a log, as counts, for `remarks`."""
    return {
        "broken": log.n_broken,
        "conflicts": log.n_refusal_conflicts,
        "no_asker": sum(turn.asker is None for turn in log.turns),
        "no_time": sum(turn.at is None for turn in log.turns),
        "clocks": log.clocks,
        "unfound": log.unfound,
    }


class _Table:
    """The columns of a log from which the numbers of any group of its rows are computed."""

    def __init__(self, turns: Sequence[Turn], marks: Marks, window_s: float, lang: str) -> None:
        # A row of which nobody knows who asked is an asker of its own.
        self._askers = [turn.asker or f"row:{turn.line}" for turn in turns]
        self._columns = dict(marks.values) | {"asked_again": marks.asked_again_in_time}
        self._can_ask_again = [known is not None for known in marks.values["asked_again"]]
        self._latencies = [turn.latency_s for turn in turns]
        self._reasons = REASONS[lang]
        self._minutes = window_s / 60

    def grouped(self, names: Iterable[str | None]) -> dict[str | None, list[int]]:
        """Places of rows by the name that each has."""
        groups: dict[str | None, list[int]] = defaultdict(list)
        for place, name in enumerate(names):
            groups[name].append(place)
        return groups

    def group(self, places: Sequence[int]) -> Tree:
        """The numbers of the rows at these places."""
        return {
            "n": len(places),
            "n_askers": len({self._askers[place] for place in places}),
            "signals": {name: self._signal(name, places) for name in SIGNALS},
            "latency_s": self._latency(places),
        }

    def _signal(self, name: str, places: Sequence[int]) -> Tree:
        column = self._columns[name]
        known = [(value, self._askers[place]) for place in places if (value := column[place]) is not None]
        values, askers = [value for value, _ in known], [asker for _, asker in known]
        n_askers = len(set(askers))
        tree: Tree = {
            "n_true": sum(values),
            "n": len(known),
            "n_unknown": len(places) - len(known),
            "n_askers": n_askers,
        }
        estimate: Estimate | NoEstimate
        if n_askers >= LEAST_ASKERS:
            estimate = clustered_rate(values, askers)
        elif known:
            estimate = self._withheld("few_askers", n=n_askers, least=LEAST_ASKERS)
        elif name != "asked_again":
            estimate = self._withheld("nothing")
        elif any(self._can_ask_again[place] for place in places):
            estimate = self._withheld("no_window", minutes=self._minutes)
        else:
            estimate = self._withheld("no_asker")
        put(tree, "rate", estimate)
        return tree

    def _latency(self, places: Sequence[int]) -> Tree:
        known = [(value, self._askers[place]) for place in places if (value := self._latencies[place]) is not None]
        values, askers = [value for value, _ in known], [asker for _, asker in known]
        n_askers = len(set(askers))
        tree: Tree = {"n": len(known), "n_unknown": len(places) - len(known), "n_askers": n_askers}
        for name, q in QUANTILES.items():
            estimate = clustered_quantile(values, q, askers, nothing=self._reasons["nothing"])
            if isinstance(estimate, Estimate):
                worth = effective_n([value <= estimate.value for value in values], askers)
                if n_askers < LEAST_ASKERS:
                    estimate = self._withheld("few_askers", n=n_askers, least=LEAST_ASKERS)
                elif worth < rows_for_quantile(q):
                    estimate = self._withheld("few_rows", n=math.floor(worth), least=rows_for_quantile(q))
            put(tree, name, estimate)
        return tree

    def _withheld(self, reason: str, **values: float) -> NoEstimate:
        return NoEstimate(self._reasons[reason].format_map(values))
