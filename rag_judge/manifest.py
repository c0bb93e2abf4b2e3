"""What a run was made of and with, as `manifest.json` holds it: inputs, versions, parameters, cost. No grades.

No key stands in a manifest: addresses are written without user, password and query.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from rag_judge import __version__
from rag_judge.addresses import public_address, public_url
from rag_judge.answers import MAX_FACTOR_VALUES, AnswerSet
from rag_judge.archive import FORMAT_VERSION, RunFolder
from rag_judge.calls import JournalCost
from rag_judge.cases import CaseSet
from rag_judge.judge import Probed
from rag_judge.records import Prompt
from rag_judge.settings import NOT_KEPT, Settings

Tree = dict[str, Any]
Kind = Literal["run", "pairwise"]


def started(run: RunFolder, settings: Settings, now: datetime, parent: str | None = None, kind: Kind = "run") -> Tree:
    """The manifest of a run that has just begun; its status is `incomplete`."""
    return {
        "format_version": FORMAT_VERSION,
        "run_id": run.run_id,
        "kind": kind,
        "name": settings.run.name,
        "parent": parent,
        "status": "incomplete",
        "started_at": now.isoformat(timespec="seconds"),
        "finished_at": None,
        "k": settings.run.k,
        "match": settings.run.match,
        "seed": settings.run.seed,
        "repeats": settings.judge.repeats,
        "vary": settings.judge.vary,
        "package_version": __version__,
        "git_commit": git_commit(Path()),
    }


def finished(manifest: Mapping[str, Any], now: datetime, parts: Mapping[str, Any]) -> Tree:
    """The manifest of a finished run: what was known at its start, and `parts`."""
    return {**manifest, **parts, "status": "complete", "finished_at": now.isoformat(timespec="seconds")}


def inputs(
    cases: CaseSet, snapshot_sha256: str, answers: AnswerSet, sources: Mapping[str, str], system: Mapping[str, Any]
) -> Tree:
    """What was graded: the eval set, the answers, and what is known of the system that gave them.

    A factor that the settings state wins over the answers' `meta`; several values in the answers stand as a list.
    """
    from_answers = {
        name: min(values) if len(values) == 1 else sorted(values)
        for name, values in sorted(answers.factors.items())
        if len(values) <= MAX_FACTOR_VALUES
    }
    return {
        "eval_set": {
            "path": sources["cases"],
            "sha256": sources["cases_sha256"],
            "snapshot_sha256": snapshot_sha256,
            "n": len(cases),
        },
        "answers": {"source": sources["answers"], "sha256": answers.sha256},
        "system": {**from_answers, **system},
    }


def prompt_entries(prompts: Mapping[str, Prompt]) -> list[Tree]:
    """The prompts as the manifest names them, one a language."""
    return [{"name": p.name, "mode": p.mode, "lang": p.lang, "version": p.version} for p in prompts.values()]


def judge_entry(
    base_url: str | None,
    model: str,
    asked: Mapping[str, Any],
    cost: JournalCost,
    *,
    embedded: bool,
    model_sha256: str | None,
    probed: Probed | None = None,
) -> Tree:
    """Which judge, what was asked of it, and what it then really was sent (its server may refuse parameters)."""
    sent = [json.loads(parameters) for parameters in sorted(cost.sent)]
    return {
        "base_url": base_url,
        "model": model,
        "models_reported": sorted(cost.models),
        "parameters": {"asked": dict(asked), "sent": sent},
        "fallbacks": fallbacks(sent),
        "embedded": embedded,
        "model_sha256": model_sha256,
        "probe": None if probed is None else _probe_entry(probed),
    }


def _probe_entry(probed: Probed) -> Tree:
    """What the probe showed of the server; None in it is not known. Its tokens are not among those of the calls."""
    return {"schema_obeyed": probed.schema_obeyed, **asdict(probed.usage)}


def fallbacks(sent: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the server did not take as planned, read from what it was sent in the end."""
    found = set()
    for parameters in sent:
        if "temperature" not in parameters:
            found.add("temperature not sent: the server's default was used")
        if "seed" not in parameters:
            found.add("seed not sent")
        if "max_completion_tokens" in parameters:
            found.add("max_completion_tokens in place of max_tokens")
        if parameters.get("stream"):
            found.add("streamed: the server gives no reply in one piece")
        if parameters.get("enable_thinking") is False:
            found.add("thinking switched off")
        found |= {f"{name} not sent" for name in parameters.get("refused", ())}
        form = parameters.get("response_format", {}).get("type", "none")
        if form != "json_schema":
            found.add(f"response_format {form} in place of json_schema")
        if parameters.get("system_role") is False:
            found.add("instructions in the user message: no system role")
    return sorted(found)


def cost_entry(cost: JournalCost, not_needed: int, prices: tuple[float | None, float | None]) -> Tree:
    """What the run cost; `not_needed` are the planned calls that could change nothing.

    `usd` is null without prices; tokens that a server did not count are named, not guessed.
    """
    usd = None
    if None not in prices:
        usd = (cost.prompt_tokens * (prices[0] or 0) + cost.completion_tokens * (prices[1] or 0)) / 1_000_000
    return {
        "calls": cost.calls,
        "cached": 0,
        "resent": cost.resent,
        "reasked": cost.reasked,
        "not_needed": not_needed,
        "prompt_tokens": cost.prompt_tokens,
        "completion_tokens": cost.completion_tokens,
        "calls_without_usage": cost.without_usage,
        "usd": usd,
    }


def saved_settings(settings: Settings) -> Tree:
    """The settings as `request.json` keeps them for a resume: without what may be a key in an address or header."""
    tree = asdict(settings)
    if settings.judge.base_url is not None:
        tree["judge"]["base_url"] = public_url(settings.judge.base_url)
    if settings.endpoint.url is not None:
        tree["endpoint"]["url"] = public_address(settings.endpoint.url)
    tree["endpoint"]["headers"] = {
        name: value if "${" in value else NOT_KEPT for name, value in settings.endpoint.headers.items()
    }
    return tree


def git_commit(folder: Path) -> str | None:
    """The commit checked out in a folder, or None outside a checkout or without git."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() if found.returncode == 0 else None
