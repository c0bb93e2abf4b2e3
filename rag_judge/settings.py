"""`rag-judge.toml`, the environment and the flags → one checked object; the strongest of them that says something wins.

Flag, then environment (`RAG_JUDGE_…`), then file, then default. Keys are never settings: they come from the
environment variable that `judge.api_key_env` names, and stay there.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rag_judge.addresses import public_address, public_url
from rag_judge.errors import InputError
from rag_judge.sections import (
    AT_LEAST,
    AT_MOST,
    NOTICE_VARIABLES,
    OURS_IN_BODY,
    PLACES,
    SECTIONS,
    SWITCHES,
    CompareSettings,
    EndpointSettings,
    GateSettings,
    JudgeSettings,
    NightlySettings,
    RunSettings,
)

CONFIG_NAME = "rag-judge.toml"
NOT_KEPT = "[not kept]"  # stands for a header's literal value, which may be a key


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a command may be told, checked."""

    run: RunSettings = field(default_factory=RunSettings)
    judge: JudgeSettings = field(default_factory=JudgeSettings)
    endpoint: EndpointSettings = field(default_factory=EndpointSettings)
    compare: CompareSettings = field(default_factory=CompareSettings)
    gate: GateSettings = field(default_factory=GateSettings)
    nightly: NightlySettings = field(default_factory=NightlySettings)
    system: dict[str, Any] = field(default_factory=dict)  # the system under test, for the manifest


_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def load_settings(
    config: Path | None, environment: Mapping[str, str], flags: Mapping[str, Any], folder: Path | None = Path()
) -> Settings:
    """The settings of one command. `flags` holds what was given, by the names of `PLACES`, and `system` (a mapping).

    Without `config`, `rag-judge.toml` in `folder` is read if it is there; with a folder of None, no file is.
    Raises InputError naming the place (file, variable or flag), what was found and what was expected.
    """
    tree: dict[str, dict[str, Any]] = {section: {} for section in (*SECTIONS, "system")}
    origin: dict[tuple[str, str], str] = {}
    found = folder / CONFIG_NAME if folder is not None and (folder / CONFIG_NAME).is_file() else None
    path = config or found
    if path is not None:
        for section, values in _read_toml(path).items():
            if section not in tree or not isinstance(values, dict):
                raise InputError(f"{path}: unknown section or value {section!r}; there are: {', '.join(tree)}")
            tree[section].update(values)
            origin.update({(section, name): f"{path}: {section}.{name}" for name in values})
    _from_environment(environment, tree, origin)
    for name, value in flags.items():
        if name == "system":
            tree["system"].update(value)
        elif name == "models":
            _take_models(tree["judge"], value)
        elif value is not None:
            section, key = PLACES[name]
            tree[section][key] = value
            origin[section, key] = f"--{name.replace('_', '-')}"
    return _checked(tree, origin)


def _take_models(judge: dict[str, Any], models: Sequence[str]) -> None:
    """One `--model` is the judge, several are a panel; what the file says of a member by its model stays."""
    known = {member.get("model"): member for member in judge.get("panel", []) if isinstance(member, dict)}
    if len(models) == 1 and models[0] not in known:
        judge.update(model=models[0], panel=[])
    else:
        judge["panel"] = [known.get(model, {"model": model}) for model in models]


def unknown_variables(environment: Mapping[str, str], settings: Settings) -> list[str]:
    """Variables that look like settings and are none, most likely misspelt; one that a setting names is the user's."""
    own = " ".join([settings.judge.api_key_env, *settings.endpoint.headers.values()])
    known = {f"RAG_JUDGE_{name.upper()}" for name in PLACES} | NOTICE_VARIABLES
    alike = (name for name in environment if name.startswith("RAG_JUDGE_") and name not in known)
    return sorted(name for name in alike if name not in own)


# What may differ when a run is resumed: how patiently things are asked, never what is asked.
PATIENCE = frozenset(
    {
        *("concurrency", "timeout_s", "attempts", "endpoint_concurrency", "endpoint_timeout_s", "endpoint_attempts"),
        *("lang", "max_usd", "max_calls", "deadline", "cache"),
    }
)


def resumed_settings(saved: Mapping[str, Any], flags: Mapping[str, Any], today: Settings, run: str) -> Settings:
    """A run's own settings with today's patience, and with the secrets of addresses and headers, which no run keeps.

    Raises InputError for a flag that differs from the run's own.
    """
    for name, value in flags.items():
        if value is None or name in PATIENCE:
            continue
        section, key = PLACES.get(name, ("system", name))
        if name == "models":
            before: Any = [member["model"] for member in saved["judge"]["panel"]] or [saved["judge"]["model"]]
        else:
            before = saved["system"] if name == "system" else _kept(saved, section, key)
        if name in ("base_url", "endpoint"):
            value = public_url(value) if name == "base_url" else public_address(value)
        if name == "system" and all(before.get(factor) == told for factor, told in value.items()):
            continue
        if before != value:
            raise InputError(f"--{name.replace('_', '-')}: found {value!r}, but {run} was begun with {before!r}")
    own = changed_settings(saved, {name: value for name, value in flags.items() if name in PATIENCE})
    return _with_secrets(own, today)


def _kept(saved: Mapping[str, Any], section: str, key: str) -> Any:
    """A setting as a run kept it; of a run of an older version that did not know it, its default."""
    return saved.get(section, {}).get(key, getattr(getattr(Settings(), section), key))


def _with_secrets(own: Settings, today: Settings) -> Settings:
    """Addresses and headers as they are set today, where they are those of the run but for what it may not keep."""
    judge, endpoint = own.judge, own.endpoint
    if judge.base_url and today.judge.base_url and public_url(today.judge.base_url) == judge.base_url:
        judge = replace(judge, base_url=today.judge.base_url)
    if [member.model for member in judge.panel] == [member.model for member in today.judge.panel]:
        judge = replace(judge, panel=today.judge.panel)
    if endpoint.url and today.endpoint.url and public_address(today.endpoint.url) == endpoint.url:
        endpoint = replace(endpoint, url=today.endpoint.url)
    if NOT_KEPT in endpoint.headers.values():
        endpoint = replace(endpoint, headers=today.endpoint.headers)
    return replace(own, judge=judge, endpoint=endpoint)


def changed_settings(saved: Mapping[str, Any], flags: Mapping[str, Any]) -> Settings:
    """Settings as a run kept them, with some of them changed by flags."""
    # A run of an older version lacks what has come since: it has its default.
    tree: dict[str, dict[str, Any]] = {name: {} for name in (*SECTIONS, "system")}
    tree |= {section: dict(values) for section, values in saved.items()}
    origin = {}
    for name, value in flags.items():
        if value is not None and name in PLACES:
            section, key = PLACES[name]
            tree[section][key] = value
            origin[section, key] = f"--{name.replace('_', '-')}"
    return _checked(tree, origin)


def _from_environment(
    environment: Mapping[str, str], tree: dict[str, dict[str, Any]], origin: dict[tuple[str, str], str]
) -> None:
    for name, (section, key) in PLACES.items():
        variable = f"RAG_JUDGE_{name.upper()}"
        if environment.get(variable):
            tree[section][key] = environment[variable]
            origin[section, key] = variable
    if "base_url" not in tree["judge"] and environment.get("OPENAI_BASE_URL"):
        tree["judge"]["base_url"] = environment["OPENAI_BASE_URL"]
        origin["judge", "base_url"] = "OPENAI_BASE_URL"


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: the encoding is not UTF-8; save the file as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}") from error


@lru_cache(maxsize=1)
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(Settings)


def _checked(tree: Mapping[str, Mapping[str, Any]], origin: Mapping[tuple[str, str], str]) -> Settings:
    from pydantic import ValidationError

    for section, kind in SECTIONS.items():
        known = [f.name for f in fields(kind)]
        for name in tree[section]:
            if name not in known:
                where = origin.get((section, name), f"{section}.{name}")
                raise InputError(f"{where}: unknown setting; [{section}] has: {', '.join(known)}")
    for section, values in tree.items():
        for name, value in values.items():
            if section != "system" and isinstance(value, bool) and name not in SWITCHES:
                raise InputError(f"{origin.get((section, name), f'{section}.{name}')}: found {value}, expected no flag")
    try:
        settings = _adapter().validate_python(tree)
    except ValidationError as error:
        first = error.errors()[0]
        section, name = str(first["loc"][0]), str(first["loc"][1])
        where = origin.get((section, name), f"{section}.{name}")
        raise InputError(f"{where}: found {first['input']!r}: {first['msg']}") from error
    _check_ranges(settings, origin)
    _check_texts(settings, origin)
    return settings  # type: ignore[no-any-return]


def _check_ranges(settings: Settings, origin: Mapping[tuple[str, str], str]) -> None:
    for place, limit in AT_LEAST.items():
        section, name = place.split(".")
        value = getattr(getattr(settings, section), name)
        most = AT_MOST.get(place, 1e9)
        if value is None or limit <= value <= most:
            continue
        where = origin.get((section, name), place)
        if value > most:
            raise InputError(f"{where}: found a number above {most:g}, expected at most that")
        raise InputError(f"{where}: found {value}, expected at least {limit:g}")


def _check_texts(settings: Settings, origin: Mapping[tuple[str, str], str]) -> None:
    if not settings.run.out.strip():
        raise InputError(f"{origin.get(('run', 'out'), 'run.out')}: found blank text, expected a folder")
    models = [member.model for member in settings.judge.panel]
    if len(set(models)) < len(models):
        raise InputError(f"judge.panel: found {models}, expected each model once")
    if not all(_VARIABLE_NAME.fullmatch(member.api_key_env) for member in settings.judge.members()):
        # What stands there may be the key itself: it is not repeated.
        raise InputError("judge.api_key_env: expected the name of an environment variable, not a key")
    for model, price in settings.judge.prices.items():
        if not (0 <= price.prompt <= 1e6 and 0 <= price.completion <= 1e6):
            raise InputError(f"judge.prices.{model}: found {price}, expected US dollars per million tokens, at least 0")
    if taken := sorted(set(settings.judge.body) & OURS_IN_BODY):
        raise InputError(f"judge.body: {taken[0]} is set by rag-judge itself; leave it out")
    for name, value in settings.system.items():
        if not _is_json(value):
            raise InputError(
                f"system.{name}: found {value!r}, expected text, a number, true or false, a list or a table"
            )


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_json(part) for name, part in value.items())
    if isinstance(value, list):
        return all(_is_json(part) for part in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | bool) or (isinstance(value, int) and abs(value) < 10**18)
