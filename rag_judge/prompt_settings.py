"""`prompt.toml` of a grader prompt, checked: its mode, its fields, and when a case passes. No template is read here.

Everything that could only go wrong after replies were paid for is refused here, with the place and what to do.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_judge.errors import InputError
from rag_judge.records import VerdictField

MODES = ("passfail", "scale", "pairwise")
KINDS = ("boolean", "score", "choice")
SETTINGS = frozenset({"mode", "fields", "max_tokens", "pass_when", "pass_at"})
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
