"""`prompt.toml` of a grader prompt, checked: mode, fields, when a case passes, patterns. No template is read here.

Everything that could only go wrong after replies were paid for is refused here, with the place and what to do.
"""

from __future__ import annotations

import keyword
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from re import _parser  # type: ignore[attr-defined]  # the one place that says how a pattern is made up
from typing import Any

from rag_judge.errors import InputError
from rag_judge.records import Value, VerdictField

MODES = ("passfail", "scale", "pairwise")
KINDS = ("boolean", "score", "choice")
SETTINGS = frozenset({"mode", "fields", "max_tokens", "pass_when", "pass_at", "reading"})
FIELD_SETTINGS: Mapping[str, frozenset[str]] = {
    "boolean": frozenset({"name", "kind"}),
    "score": frozenset({"name", "kind", "low", "high"}),
    "choice": frozenset({"name", "kind", "choices"}),
}
# What the project's own numbers are made of, and so may be of no other kind.
KIND_OF = {"grounded": "boolean", "complete": "boolean", "should_abstain": "boolean", "score": "score"}
NOT_NAMES = frozenset({"did_abstain", "reason", "self", "true", "false", "none"})
PAIR_CHOICES = ("A", "B", "tie")
MOST_LEVELS = 100
# How many ways a pattern may be tried at one place. Then the slowest takes seconds, half a minute at the worst, on
# the longest text that is searched; each further repeat without an end would multiply that by thousands.
MOST_WAYS = 4000
WAYS_OF_ENDLESS = 500


def checked_fields(settings: Mapping[str, Any], path: Path) -> tuple[VerdictField, ...]:
    """The fields that a `prompt.toml` asks for. Raises InputError for a setting that is wrong or unknown."""
    mode = settings.get("mode")
    if mode not in MODES:
        raise InputError(f"{path}: mode is {mode!r}, expected one of {', '.join(MODES)}")
    if unknown := sorted(set(settings) - SETTINGS):
        raise InputError(f"{path}: unknown setting {unknown[0]!r}; there are: {', '.join(sorted(SETTINGS))}")
    entries = settings.get("fields")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"{path}: no [[fields]]; the prompt must say, a table each, what it asks of the judge")
    fields = tuple(_field(entry, f"{path}: fields[{i}]") for i, entry in enumerate(entries))
    _check_names([field.name for field in fields], path)
    if mode == "pairwise" and not any(field.choices == PAIR_CHOICES for field in fields):
        raise InputError(f"{path}: mode pairwise needs a field of kind choice with choices {[*PAIR_CHOICES]}")
    if mode == "scale" and score_of(fields) is None:
        raise InputError(f"{path}: mode scale needs a field of kind score")
    _check_limits(settings, fields, path)
    return fields


def score_of(fields: Sequence[VerdictField]) -> VerdictField | None:
    """The field that is the case's score: the one of that name, else the only one of that kind; None without."""
    scores = [field for field in fields if field.kind == "score"]
    named = [field for field in scores if field.name == "score"]
    return named[0] if named else scores[0] if len(scores) == 1 else None


def _field(entry: Mapping[str, Any], where: str) -> VerdictField:
    name, kind = entry.get("name"), entry.get("kind")
    if not isinstance(name, str) or not name.isidentifier() or kind not in KINDS:
        raise InputError(f"{where}: found name {name!r}, kind {kind!r}; expected an identifier and one of {KINDS}")
    if name.lower() in NOT_NAMES or keyword.iskeyword(name):
        raise InputError(f"{where}: the name {name!r} has a meaning of its own here; choose another")
    if KIND_OF.get(name, kind) != kind:
        raise InputError(f"{where}: {name} is a {KIND_OF[name]} in every number of a run; found kind {kind!r}")
    if unknown := sorted(set(entry) - FIELD_SETTINGS[kind]):
        hint = "; settings of the prompt stand above the first [[fields]]" if unknown[0] in SETTINGS else ""
        known = ", ".join(sorted(FIELD_SETTINGS[kind]))
        raise InputError(f"{where}: a field of kind {kind} has no {unknown[0]!r}; it has: {known}{hint}")
    if kind == "choice":
        return VerdictField(name, kind, _choices(entry.get("choices"), where))
    low, high = entry.get("low", 1), entry.get("high", 5)
    for end in (low, high):
        if isinstance(end, bool) or not isinstance(end, int):
            raise InputError(f"{where}: low and high: found {end!r}, expected whole numbers")
    if kind == "score" and not low < high <= low + MOST_LEVELS:
        raise InputError(f"{where}: found low {low}, high {high}; expected low below high, {MOST_LEVELS} apart at most")
    return VerdictField(name, kind, (), low, high)


def _choices(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(c, str) and c.strip() for c in value):
        raise InputError(f"{where}: a choice needs a list of at least two choices, texts all, found {value!r}")
    # Replies are read without regard to case, so two choices that differ in it alone are one.
    if len({choice.strip().casefold() for choice in value}) < len(value):
        raise InputError(f"{where}: choices {value}: two of them are read alike")
    return tuple(value)


def _check_names(names: Sequence[str], path: Path) -> None:
    """Keys of a reply are compared without case and underscores: no two fields may be alike then."""
    if len({name.replace("_", "").casefold() for name in names}) < len(names):
        raise InputError(f"{path}: fields {[*names]}: two of them are read alike; each name once")


def _check_limits(settings: Mapping[str, Any], fields: Sequence[VerdictField], path: Path) -> None:
    for name, least in (("max_tokens", 1), ("pass_at", -(10**6))):
        value = settings.get(name, least)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 10**6:
            raise InputError(f"{path}: {name}: found {value!r}, expected a whole number of at least {least}")
    rule = settings.get("pass_when", "true")
    if not isinstance(rule, str) or not rule.strip():
        raise InputError(f"{path}: pass_when: found {rule!r}, expected an expression over the fields, as text")
    if "pass_at" not in settings:
        return
    score = score_of(fields)
    if score is None:
        raise InputError(f"{path}: pass_at needs a field of kind score (where there are several, one named score)")
    if "pass_when" in settings:
        raise InputError(f"{path}: pass_at and pass_when stand side by side; keep one of them")
    if not score.low <= settings["pass_at"] <= score.high:
        raise InputError(
            f"{path}: pass_at is {settings['pass_at']}, expected {score.low} to {score.high}, as {score.name}"
        )


# --- patterns that read a verdict from prose -----------------------------------------------------------------------


def checked_reading(
    settings: Mapping[str, Any], fields: Sequence[VerdictField], path: Path
) -> dict[str, dict[Value, tuple[str, ...]]]:
    """Per field and value the patterns that name the value; empty where the judge is to answer in JSON.

    Raises InputError for a field or value without patterns or unknown, and for a pattern that could not be relied on.
    """
    tables = settings.get("reading")
    if tables is None:
        return {}
    names = [field.name for field in fields]
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise InputError(f"{path}: reading: expected a table for each field, as [reading.{names[0]}]")
    _check_menu(tables, names, f"{path}: reading", "field")
    reading: dict[str, dict[Value, tuple[str, ...]]] = {}
    for field in fields:
        values = {_as_key(value): value for value in _values_of(field)}
        where = f"{path}: reading.{field.name}"
        _check_menu(tables[field.name], values, where, "value")
        reading[field.name] = {
            value: _patterns(tables[field.name][key], f"{where}.{key}") for key, value in values.items()
        }
    return reading


def _check_menu(given: Iterable[str], wanted: Iterable[str], where: str, kind: str) -> None:
    """A value that no pattern names could never be given, and the others' shares would be of something else."""
    wanted = list(wanted)
    if unknown := sorted(set(given) - set(wanted)):
        raise InputError(f"{where}: no {kind} is called {unknown[0]!r}; there are: {', '.join(wanted)}")
    if missing := [name for name in wanted if name not in given]:
        raise InputError(f"{where}: no patterns for the {kind} {missing[0]!r}; every {kind} needs some")


def _values_of(field: VerdictField) -> Sequence[Value]:
    if field.kind == "boolean":
        return (True, False)
    return field.choices if field.kind == "choice" else range(field.low, field.high + 1)


def _as_key(value: Value) -> str:
    """How `prompt.toml` writes a value as a key."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _patterns(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(pattern, str) for pattern in value):
        raise InputError(f"{where}: found {value!r}, expected a list of regular expressions, at least one")
    for pattern in value:
        _check_pattern(pattern, f"{where}: {pattern!r}")
    return tuple(value)


def _check_pattern(pattern: str, where: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what Python warns of will be read otherwise by a later Python
            re.compile(pattern, re.IGNORECASE)
            parts = _parser.parse(pattern, re.IGNORECASE)
    except (re.error, ValueError, OverflowError, RecursionError, Warning) as error:
        raise InputError(f"{where} is no regular expression: {error}") from error
    if parts.getwidth()[0] == 0:
        raise InputError(f"{where} matches where nothing stands; say what must be written there")
    if _n_ways(parts) > MOST_WAYS:
        raise InputError(
            f"{where} can be tried in too many ways, and Python cannot interrupt it: let no repeat stand in another, "
            "and give repeats an end, as in .{0,40}"
        )


def _n_ways(parts: Any) -> int:
    """In how many ways at most a parsed pattern can be tried at one place; above `MOST_WAYS` no matter how many."""
    n_ways = 1
    for code, argument in parts:
        match str(code):
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                n_ways *= _n_ways_repeated(*argument)
            case "BRANCH":
                n_ways *= 1 if _exclude_each_other(argument[1]) else sum(map(_n_ways, argument[1]))
            case "GROUPREF_EXISTS":
                n_ways *= sum(_n_ways(branch) for branch in argument[1:] if branch is not None)
            case "SUBPATTERN" | "ASSERT" | "ASSERT_NOT":
                n_ways *= _n_ways(argument[-1])
            case "ATOMIC_GROUP":
                n_ways *= _n_ways(argument)
            case "GROUPREF":  # compares all that its group holds: nothing for one that may be long
                n_ways *= MOST_WAYS // WAYS_OF_ENDLESS + 1
    return min(n_ways, MOST_WAYS + 1)


def _exclude_each_other(branches: Sequence[Any]) -> bool:
    """True for plain words of which none begins another: at one place at most one of them stands."""
    if any(str(code) != "LITERAL" for branch in branches for code, _ in branch):
        return False
    words = sorted("".join(chr(character) for _, character in branch).casefold() for branch in branches)
    return not any(longer.startswith(shorter) for shorter, longer in pairwise(words))


def _n_ways_repeated(least: int, most: int, parts: Any) -> int:
    if _is_space(parts):  # a run of white space is one character in the text that is searched
        return min(most - least + 1, 2)
    once = _n_ways(parts)
    if most == _parser.MAXREPEAT:
        least, most = 0, WAYS_OF_ENDLESS - 1
    n_ways = 0
    for n in range(least, most + 1):
        n_ways += min(once, MOST_WAYS + 1) ** min(n, 12) if once > 1 else 1
        if n_ways > MOST_WAYS:
            break
    return n_ways


def _is_space(parts: Any) -> bool:
    """True for one character that can be white space alone."""
    if len(parts) != 1:
        return False
    code, argument = parts[0]
    choices = argument if str(code) == "IN" else [(code, argument)]
    return all(
        (str(kind) == "CATEGORY" and str(one) == "CATEGORY_SPACE") or (str(kind) == "LITERAL" and chr(one).isspace())
        for kind, one in choices
    )
