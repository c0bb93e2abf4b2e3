"""A night as it goes on, and what it tells the chats. What its steps do stands in `nightly`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from rag_judge.anchors import AnchorCheck
from rag_judge.archive import RunFolder
from rag_judge.errors import CannotGoOn
from rag_judge.gate import Gated
from rag_judge.nightly_words import WORDS
from rag_judge.nights import Past, ended_before, past_runs
from rag_judge.notify import channels_of, send
from rag_judge.notify_messages import Notice
from rag_judge.notify_words import NoticeDecision
from rag_judge.pipeline.steps import RunResult, World
from rag_judge.report.terminal import printable
from rag_judge.settings import Settings

NOT_YET = ("finished", "notices")  # of nightly.json, when the notice is sent
DAY_S = 86_400


@dataclass(slots=True)
class Night:
    """One night as it goes on: what its steps have found so far, and the lines for people."""

    settings: Settings  # with what is left of the night's money and calls
    world: World
    archive: Path
    ends_at: float | None  # on the world's monotonic clock
    fresh: bool = False  # begin anew where a night was interrupted
    lines: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)  # annotations for GitHub, where it runs us
    steps: list[dict[str, Any]] = field(default_factory=list)
    anchors_run: RunFolder | None = None
    anchors: AnchorCheck | None = None
    result: RunResult | None = None
    baseline: Past | None = None
    alike: Past | None = None  # the baseline as today's judge graded it
    judge_since: datetime | None = None  # when the judge became what it is, as far as its anchors tell
    moved: str | None = None  # why the judge is not the one it was
    gated: Gated | None = None
    exit_code: int = 0
    notices: list[dict[str, Any]] = field(default_factory=list)
    finished: bool = False  # with every step

    @property
    def words(self) -> Mapping[str, str]:
        """The wording in the language for people."""
        return WORDS[self.settings.run.lang]

    @property
    def run_folder(self) -> RunFolder:
        """The folder of the night's run. Raises CannotGoOn before there is one."""
        if self.result is None:
            raise CannotGoOn("the night has no run")
        return self.result.folder

    @property
    def ended(self) -> NoticeDecision | None:
        """How the night ended, as its notice names it; None before the gate."""
        if self.exit_code == CannotGoOn.exit_code:
            return "could_not_measure"
        if self.gated is None:
            return None
        return "not_comparable" if self.moved is not None and self.gated.decision != "hold" else self.gated.decision

    def limited(self, name: str) -> Settings:
        """The settings of one of the night's runs: its name, what is left of the time, and no reply of another judge.

        A kept reply counts only if it came after the judge became what it is; without anchors nobody knows when.
        """
        judge = self.settings.judge
        if self.ends_at is not None:
            judge = replace(judge, deadline=f"{max(0, math.ceil(self.ends_at - self.world.monotonic()))}s")
        if self.judge_since is None:
            judge = replace(judge, cache=False)
        else:
            age = max(0.0, (self.world.now() - self.judge_since).total_seconds()) / DAY_S
            judge = replace(judge, cache_days=min(judge.cache_days, age))
        return replace(self.settings, run=replace(self.settings.run, name=name), judge=judge)

    def tell(self, line: str) -> None:
        """Add a line for people."""
        self.lines.append(line)

    def tree(self) -> dict[str, Any]:
        """The night as `nightly.json` holds it."""
        return {
            "finished": self.finished,
            "comparable": self.moved is None,
            "moved": self.moved,
            "decision": None if self.gated is None else self.gated.decision,
            "ended": self.ended,
            "exit_code": self.exit_code,
            "baseline": None if self.baseline is None else self.baseline.folder.run_id,
            "compared_with": None if self.alike is None else self.alike.folder.run_id,
            "anchors_run": None if self.anchors_run is None else self.anchors_run.run_id,
            "steps": self.steps,
            "notices": self.notices,
        }


def tell_chats(night: Night) -> str:
    """Send the notice to every chat that the environment names; a failure is told and changes nothing."""
    settings, words, ended = night.settings, night.words, night.ended
    channels, problems = channels_of(night.world.environment, settings.run.lang)
    for problem in problems:
        night.world.say(f"warning: {problem}")
    run_id = None if night.result is None else night.result.folder.run_id
    before, since = ended_before(past_runs(night.archive), run_id or "")
    if ended is None or not channels:
        return "nobody to tell"
    wanted = {"always": True, "never": False, "problems": ended != "ship", "changes": ended != before}
    if not wanted[settings.nightly.notify]:
        return "not wanted"
    if ended == before and since is not None:
        night.tell(words["still"].format(since=since.date().isoformat()))
    link = settings.nightly.link
    address = None if link is None or run_id is None else link.replace("{run}", run_id)
    notice = Notice(
        decision=ended,
        run_id=run_id,
        lines=tuple(night.lines),
        link=address,
        facts={name: value for name, value in night.tree().items() if name not in NOT_YET}
        | {"run": run_id, "lines": night.lines, "link": address},
    )
    for sent in send(notice, channels, night.world.now(), settings.run.lang):
        told = {"channel": sent.channel, "ok": sent.ok, "detail": sent.detail, "ended": ended}
        night.notices.append(told)
        said = words["sent"] if sent.ok else words["not_sent"].format(detail=printable(sent.detail))
        night.world.say(words["notice"].format(channel=sent.channel, said=said))
    return f"{sum(one['ok'] for one in night.notices)} of {len(night.notices)} sent"
