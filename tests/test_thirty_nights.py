"""Thirty nights on the example: the judge changes on the twelfth, the system gets worse on the twentieth.

The first is told as the judge's, the second as the system's, the trend shows both, and no other night alarms.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from rag_judge.demo.rag_service import running_service
from rag_judge.pipeline import RunRequest, run
from rag_judge.pipeline.demo import write_cases
from rag_judge.pipeline.night import Night
from rag_judge.pipeline.nightly import nightly
from rag_judge.pipeline.trend import trend
from rag_judge.prompts import shipped_folder
from rag_judge.records import Estimate
from rag_judge.settings import load_settings
from tests.chat_receivers import ChatReceiver
from tests.eval_sets import verdict, write_rows
from tests.misbehaviour import JudgeRequest, Misbehaviour, Respond
from tests.night_world import Nights, share_of
from tests.servers import JudgeServer, reply_body

JUDGE_CHANGES, SYSTEM_WORSE, LAST = 12, 20, 30
N_ANCHORS = 40


class NoisyJudge:
    """Judges by the words of the prompt, flips by itself now and then, and turns stricter when told to."""

    def __init__(self) -> None:
        self.strictness = 0.2
        self.flips = 0.02

    def __call__(self, request: JudgeRequest) -> Misbehaviour:
        said = share_of(request.text) >= self.strictness
        # another draw for each repeat and night, as a server that samples all the same would make
        if share_of(f"{request.number} {request.text}") < self.flips:
            said = not said
        return Respond(200, reply_body(verdict(complete=said), request, "judge-1"))


@contextmanager
def example(folder: Path) -> Iterator[tuple[dict[str, str], Path]]:
    """Both versions of the example's service, and its cases."""
    cases = folder / "cases.jsonl"
    write_cases(shipped_folder("eval"), cases)
    kb = shipped_folder("eval") / "kb"
    with ExitStack() as opened:
        urls = {name: opened.enter_context(running_service(name, kb)) for name in ("v1", "v2")}
        yield {name: f"{url}/ask" for name, url in urls.items()}, cases


def settings_text(folder: Path, cases: Path, url: str, judge_url: str) -> str:
    return (
        f'[run]\nout = "{folder / "runs"}"\nk = 4\n[endpoint]\nurl = "{url}"\n'
        f'[judge]\nbase_url = "{judge_url}"\nmodel = "judge"\nrepeats = 3\n'
        "[gate.allowed_regression]\npass = 0.1\nrule_correct = 0.1\nhit = 0.1\n"
        f'[nightly]\ncases = "{cases}"\nanchors = "{folder / "anchors.jsonl"}"\n'
        'notify = "changes"\nreview_fraction = 0\n'
    )


def anchors_of(cases: Path, run: Path) -> list[dict[str, Any]]:
    """The first questions of the example with the answers of one night, frozen."""
    answers = {row["id"]: row for row in map(json.loads, (run / "answers.jsonl").read_text("utf-8").splitlines())}
    asked = [json.loads(line) for line in cases.read_text("utf-8").splitlines()]
    return [{**case, **answers[case["id"]]} for case in asked[:N_ANCHORS]]


@pytest.mark.slow
def test_each_change_is_told_as_whose_it_is_and_no_other_night_alarms(tmp_path: Path) -> None:
    at, judge, ends = Nights(tmp_path), NoisyJudge(), []
    with example(tmp_path) as (urls, cases), JudgeServer(judge) as server, ChatReceiver() as chat:
        at.environment["RAG_JUDGE_WEBHOOK_URL"] = chat.url
        config = tmp_path / "rag-judge.toml"

        def night_with(version: str) -> Night:
            config.write_text(settings_text(tmp_path, cases, urls[version], server.base_url), encoding="utf-8")
            return nightly(load_settings(config, at.environment, {}), at.world())

        # the anchors are answers of the evening before the first night
        config.write_text(settings_text(tmp_path, cases, urls["v2"], server.base_url), encoding="utf-8")
        flags = {"judge": "none", "out": str(tmp_path / "before")}
        collected = run(RunRequest(load_settings(config, {}, flags), cases), at.world())
        write_rows(tmp_path / "anchors.jsonl", anchors_of(cases, collected.folder.path))

        for at.night in range(1, LAST + 1):
            if at.night == JUDGE_CHANGES:
                judge.strictness = 0.6
            found = night_with("v1" if at.night >= SYSTEM_WORSE else "v2")
            ends.append((found.exit_code, found.ended))
            if at.night == JUDGE_CHANGES:
                assert found.anchors is not None
                assert found.anchors.verdict == "drifting"
        told = [json.loads(body)["ended"] for body in chat.bodies]

    before, after = [(0, "ship")] * (JUDGE_CHANGES - 1), [(0, "ship")] * (SYSTEM_WORSE - JUDGE_CHANGES - 1)
    worse = [(1, "hold")] * (LAST - SYSTEM_WORSE + 1)
    assert ends == [*before, (3, "not_comparable"), *after, *worse]
    assert told == ["ship", "not_comparable", "ship", "hold"]

    shown = trend(at.archive, name="nightly").points
    nights = [point for point in shown if not point.is_bridge]
    assert len(nights) == LAST
    changed = {n: {mark.factor for mark in point.marks} for n, point in enumerate(nights, 1) if point.marks}
    assert "anchors.verdict" in changed[JUDGE_CHANGES]
    assert "system.version" in changed[SYSTEM_WORSE]
    # the judge's line is cut where it drifted, and the new one begins with the bridge in the place of the night before
    lines = [point.values["pass"].line for point in shown]
    of_night = {n: point.values["pass"].line for n, point in enumerate(nights, 1)}
    assert of_night[JUDGE_CHANGES - 1] != of_night[JUDGE_CHANGES] == of_night[LAST]
    (bridge,) = [point for point in shown if point.is_bridge]
    assert bridge.values["pass"].line == of_night[JUDGE_CHANGES]
    assert len(set(lines)) == 2
    rules = {point.values["rule_correct"].line for point in nights}
    assert len(rules) == 1
    worse_night = nights[SYSTEM_WORSE - 1].values["rule_correct"].estimate
    assert isinstance(worse_night, Estimate)
    assert worse_night.value < 0.5
