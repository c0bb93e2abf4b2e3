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
from rag_judge.cases import CaseSet
from rag_judge.corpus import Corpus
from rag_judge.families import shared_family
from rag_judge.journal import JournalCost, JudgeShare
from rag_judge.judge import Probed
from rag_judge.money import Price, Spend
from rag_judge.records import Prompt
from rag_judge.settings import NOT_KEPT, Settings

Tree = dict[str, Any]
Kind = Literal["run", "pairwise"]
Purpose = Literal["anchors", "bridge"]  # of a run that is no ordinary one


def started(
    run: RunFolder,
    settings: Settings,
    now: datetime,
    parent: str | None = None,
    kind: Kind = "run",
    purpose: Purpose | None = None,
) -> Tree:
    """The manifest of a run that has just begun; its status is `incomplete`."""
    return {
        "format_version": FORMAT_VERSION,
        "run_id": run.run_id,
        "kind": kind,
        "purpose": purpose,
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


def same_family(models: Sequence[str], systems: Sequence[Mapping[str, Any]]) -> list[Tree]:
    """Judges that are of one family with a model whose answers they judge: they may favour their own kind."""
    found = [(judge, shared) for judge in models for system in systems if (shared := shared_family(judge, system))]
    return [{"judge": judge, "system": model, "family": family} for judge, (model, family) in dict.fromkeys(found)]


def corpus_entry(corpus: Corpus | None) -> Tree | None:
    """The knowledge base that a run was held against; None where none was given."""
    return None if corpus is None else {"path": str(corpus.path), "sha256": corpus.sha256, "n": len(corpus)}


def prompt_entries(prompts: Mapping[str, Prompt]) -> list[Tree]:
    """The prompts as the manifest names them, one a language."""
    return [{"name": p.name, "mode": p.mode, "lang": p.lang, "version": p.version} for p in prompts.values()]


def judge_entry(
    base_url: str | None,
    model: str,
    asked: Mapping[str, Any],
    share: JudgeShare,
    *,
    embedded: bool,
    model_sha256: str | None,
    probed: Probed | None = None,
) -> Tree:
    """Which judge, what was asked of it, and what it then really was sent (its server may refuse parameters)."""
    sent = [json.loads(parameters) for parameters in sorted(share.sent)]
    return {
        "base_url": base_url,
        "model": model,
        "models_reported": sorted(share.models),
        "parameters": {"asked": dict(asked), "sent": sent},
        "fallbacks": fallbacks(sent, wants_schema="response_format" in asked),
        "embedded": embedded,
        "model_sha256": model_sha256,
        "probe": None if probed is None else _probe_entry(probed),
    }


def _probe_entry(probed: Probed) -> Tree:
    """What the probe showed of the server; None in it is not known. Its tokens are not among those of the calls."""
    return {"schema_obeyed": probed.schema_obeyed, **asdict(probed.usage)}


def fallbacks(sent: Sequence[Mapping[str, Any]], *, wants_schema: bool = True) -> list[str]:
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
        if wants_schema and form != "json_schema":
            found.add(f"response_format {form} in place of json_schema")
        if parameters.get("system_role") is False:
            found.add("instructions in the user message: no system role")
    return sorted(found)


def cost_entry(cost: JournalCost, not_needed: int, prices: Sequence[Price | None]) -> Tree:
    """What the run cost; `not_needed` are the planned calls that could change nothing, `prices` are by judge.

    `usd` is of the tokens that the server counted: a lower bound where `usd_is_complete` is false, because it did not
    count for some replies; their estimated tokens stand apart. Without a price it is null.
    """
    spends = [cost.judges[judge].spend if judge in cost.judges else Spend() for judge in range(len(prices))]
    priced = [(spend, price) for spend, price in zip(spends, prices, strict=True) if price is not None]
    has_price = bool(priced) and len(priced) == len(spends)
    without_usage = sum(spend.without_usage for spend in spends)
    return {
        "calls": cost.calls,
        "cached": cost.cached,
        "resent": cost.resent,
        "reasked": cost.reasked,
        "not_needed": not_needed,
        "prompt_tokens": sum(spend.prompt_tokens for spend in spends),
        "completion_tokens": sum(spend.completion_tokens for spend in spends),
        "calls_without_usage": without_usage,
        "estimated_prompt_tokens": sum(spend.estimated_prompt_tokens for spend in spends),
        "estimated_completion_tokens": sum(spend.estimated_completion_tokens for spend in spends),
        "usd": sum(spend.usd(price) for spend, price in priced) if has_price else None,
        "usd_is_complete": without_usage == 0 if has_price else None,
        "usd_with_estimates": sum(spend.usd_with_estimates(price) for spend, price in priced) if has_price else None,
        "prices": [None if price is None else asdict(price) for price in prices],
    }


def saved_settings(settings: Settings) -> Tree:
    """The settings as `request.json` keeps them for a resume: without what may be a key in an address or header."""
    tree = asdict(settings)
    if settings.judge.base_url is not None:
        tree["judge"]["base_url"] = public_url(settings.judge.base_url)
    for member in tree["judge"]["panel"]:
        member["base_url"] = None if member["base_url"] is None else public_url(member["base_url"])
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
