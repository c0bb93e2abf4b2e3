"""The sections of the settings: what each may say, its default, its limits, and its flag. Nothing is read here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rag_judge.retrieval import MatchLevel


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What a run grades and how its numbers are cut."""

    name: str = "run"
    out: str = "runs"
    k: int = 5
    seed: int = 0
    match: MatchLevel = "exact"  # the level at which ids are matched
    corpus: str | None = None  # the knowledge base's chunks: tells what was not retrieved from what was never written
    probe: bool = False  # ask unclear fails again, with the right passages in place of the retrieved
    lang: Literal["en", "zh"] = "en"  # for people; the prompts' language is judge.prompt_lang
    max_unscored: float = 0.02
    max_unanswered: float = 0.02


@dataclass(frozen=True, slots=True)
class PriceSettings:
    """US dollars per million tokens."""

    prompt: float
    completion: float


@dataclass(frozen=True, slots=True)
class PanelJudge:
    """One of several judges; what it does not say is as for the others."""

    model: str
    base_url: str | None = None
    api_key_env: str | None = None


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Which model judges, and how it is asked."""

    prompt: str = "passfail"
    prompt_lang: Literal["auto", "en", "zh"] = "auto"
    prompts: str = "judge_prompts"
    base_url: str | None = None
    model: str | None = None
    panel: list[PanelJudge] = field(default_factory=list)  # several judges in place of one
    api_key_env: str = "OPENAI_API_KEY"
    repeats: int = 3
    sample: int | None = None  # judge only that many cases, drawn by seed
    early_stop: bool = True
    reask: bool = True
    vary: Literal["none", "order"] = "none"  # order: further repeats show the contexts in another order
    concurrency: int = 8
    timeout_s: float = 120.0
    attempts: int = 5
    backoff_s: float = 0.5
    max_tokens: int | None = None
    probe: bool = True  # one request before the first, to learn what the server can do
    body: dict[str, Any] = field(default_factory=dict)  # further fields of every request, as the server wants them
    prices: dict[str, PriceSettings] = field(default_factory=dict)  # by model; they win over the table that ships
    max_usd: float | None = None  # of the whole run, however often it is resumed
    max_calls: int | None = None
    deadline: str | None = None  # a duration (90s, 30m, 2h) or a time of day (06:30)
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    cache: bool = True  # take readable replies of earlier runs to the very same requests
    cache_days: float = 30.0
    cache_mb: float = 500.0

    def members(self) -> list[JudgeSettings]:
        """The settings of each judge: of the panel's members, or of the only one."""
        return [
            replace(
                self,
                model=member.model,
                base_url=member.base_url or self.base_url,
                api_key_env=member.api_key_env or self.api_key_env,
                panel=[],
            )
            for member in self.panel
        ] or [self]


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """Where the RAG system answers, and how its requests and responses are mapped."""

    url: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    request: dict[str, Any] | None = None
    response: dict[str, str] = field(default_factory=dict)
    concurrency: int = 4
    timeout_s: float = 60.0
    attempts: int = 3
    backoff_s: float = 0.5


@dataclass(frozen=True, slots=True)
class CompareSettings:
    """What a comparison claims."""

    metrics: list[str] = field(default_factory=list)  # declared beforehand: the family that Holm adjusts


@dataclass(frozen=True, slots=True)
class GateSettings:
    """The rules of `gate`, beside red lines and the two limits of [run]."""

    floors: dict[str, float] = field(default_factory=dict)  # lowest acceptable value, by metric
    allowed_regression: dict[str, float] = field(default_factory=dict)  # against the baseline, by metric
    required_labels: int | None = None


@dataclass(frozen=True, slots=True)
class NightlySettings:
    """What the nightly job does beside `run`; the limits of [judge] hold for the whole night."""

    name: str = "nightly"  # of its runs
    cases: str | None = None  # the eval set
    answers: str | None = None  # an answers file, in place of the endpoint
    anchors: str | None = None  # the judge's frozen set, graded again first
    tolerance: float = 0.05  # net change of the judge on its anchors that is no drift
    bridge: bool = True  # grade the baseline's answers again when the judge has moved
    review_fraction: float = 0.15  # of the night's cases, for people; 0: no sample
    annotators: int = 2
    notify: Literal["always", "problems", "changes", "never"] = "always"  # changes: when it ends otherwise than before
    link: str | None = None  # where the reports can be read; {run} stands for the run's folder name
    keep_last: int = 30  # runs that are kept whole
    keep_days: int = 90  # younger runs are kept whole


# Addresses and secrets of the nightly job's notices stand in the environment alone; `notify` reads them.
NOTICE_VARIABLES = frozenset(
    {
        *("RAG_JUDGE_SLACK_URL", "RAG_JUDGE_FEISHU_URL", "RAG_JUDGE_FEISHU_SECRET", "RAG_JUDGE_DINGTALK_URL"),
        *("RAG_JUDGE_DINGTALK_SECRET", "RAG_JUDGE_WECOM_URL", "RAG_JUDGE_WEBHOOK_URL"),
    }
)
# Flag (and RAG_JUDGE_ variable in capitals) -> its place in the file.
PLACES: Mapping[str, tuple[str, str]] = {
    "name": ("run", "name"),
    "out": ("run", "out"),
    "k": ("run", "k"),
    "seed": ("run", "seed"),
    "match": ("run", "match"),
    "corpus": ("run", "corpus"),
    "counterfactual": ("run", "probe"),
    "lang": ("run", "lang"),
    "max_unscored": ("run", "max_unscored"),
    "max_unanswered": ("run", "max_unanswered"),
    "judge": ("judge", "prompt"),
    "prompt_lang": ("judge", "prompt_lang"),
    "prompts": ("judge", "prompts"),
    "base_url": ("judge", "base_url"),
    "model": ("judge", "model"),
    "api_key_env": ("judge", "api_key_env"),
    "repeats": ("judge", "repeats"),
    "judge_sample": ("judge", "sample"),
    "early_stop": ("judge", "early_stop"),
    "reask": ("judge", "reask"),
    "vary": ("judge", "vary"),
    "concurrency": ("judge", "concurrency"),
    "timeout_s": ("judge", "timeout_s"),
    "attempts": ("judge", "attempts"),
    "max_tokens": ("judge", "max_tokens"),
    "max_usd": ("judge", "max_usd"),
    "max_calls": ("judge", "max_calls"),
    "deadline": ("judge", "deadline"),
    "cache": ("judge", "cache"),
    "endpoint": ("endpoint", "url"),
    "endpoint_concurrency": ("endpoint", "concurrency"),
    "endpoint_timeout_s": ("endpoint", "timeout_s"),
    "endpoint_attempts": ("endpoint", "attempts"),
}
# Fields of a request that say what the run claims to have asked for.
OURS_IN_BODY = frozenset(
    {"model", "messages", "temperature", "seed", "max_tokens", "max_completion_tokens", "n", "stream"}
)
SECTIONS: Mapping[str, type] = {
    "run": RunSettings,
    "judge": JudgeSettings,
    "endpoint": EndpointSettings,
    "compare": CompareSettings,
    "gate": GateSettings,
    "nightly": NightlySettings,
}
SWITCHES = frozenset({"early_stop", "reask", "probe", "cache", "bridge"})  # `probe` of [run] and of [judge]
AT_MOST: Mapping[str, float] = {
    "run.max_unscored": 1,
    "run.max_unanswered": 1,
    "nightly.tolerance": 1,
    "nightly.review_fraction": 1,
    "nightly.annotators": 20,
}
AT_LEAST: Mapping[str, float] = {
    "gate.required_labels": 0,
    "nightly.tolerance": 0,
    "nightly.review_fraction": 0,
    "nightly.annotators": 1,
    "nightly.keep_last": 1,
    "nightly.keep_days": 0,
    "judge.max_usd": 0,
    "judge.max_calls": 0,
    "judge.requests_per_minute": 1,
    "judge.tokens_per_minute": 1,
    "judge.cache_days": 0,
    "judge.cache_mb": 0,
    "run.k": 1,
    "run.seed": 0,
    "run.max_unscored": 0,
    "run.max_unanswered": 0,
    "judge.repeats": 1,
    "judge.sample": 1,
    "judge.concurrency": 1,
    "judge.timeout_s": 0.001,
    "judge.attempts": 1,
    "judge.backoff_s": 0,
    "judge.max_tokens": 1,
    "endpoint.concurrency": 1,
    "endpoint.timeout_s": 0.001,
    "endpoint.attempts": 1,
    "endpoint.backoff_s": 0,
}
