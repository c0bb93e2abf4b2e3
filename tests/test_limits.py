"""Whole runs that stop at a limit, that replay earlier replies, and what they say they cost; on real servers."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rag_judge.addresses import public_url
from rag_judge.answers import AnswerSet
from rag_judge.archive import RunFolder, find_run
from rag_judge.calls import send_all
from rag_judge.cases import CaseSet
from rag_judge.cli import app
from rag_judge.errors import CannotGoOn, InputError, LimitReached
from rag_judge.grading import CaseGrading, GradingPlan, decision_of
from rag_judge.journal import Journal, RecordedJudge, RecordedReplies
from rag_judge.pipeline import RunRequest, RunResult, World, resumed_request, run
from rag_judge.pipeline.judging import deadline_s
from rag_judge.prompts import estimated_tokens, language_of, load_prompt
from rag_judge.records import Decision
from rag_judge.sections import PriceSettings
from rag_judge.settings import load_settings
from rag_judge.summary import PART
from tests.eval_sets import numbered_files, verdict
from tests.misbehaviour import JudgeRequest, Misbehaviour, Respond, completion, refused_parameter, seeded_reply
from tests.servers import JudgeServer, RagServer

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
PRICE = PriceSettings(prompt=2.0, completion=10.0)  # US dollars per million tokens
Reply = Callable[[JudgeRequest], str | Misbehaviour]


def world(said: list[str] | None = None, monotonic: Callable[[], float] = time.monotonic) -> World:
    return World({"OPENAI_API_KEY": "sk-secret-0123456789"}, lambda: NOW, monotonic, (said or list[str]()).append)


def request(folder: Path, base_url: str, n: int = 6, *, priced: bool = False, **flags: Any) -> RunRequest:
    cases, answers = numbered_files(folder, n)
    flags = {"out": str(folder / "runs"), "base_url": base_url, "model": "judge-1", "attempts": 1, **flags}
    settings = load_settings(None, {}, flags, folder=None)
    prices = {"judge-1": PRICE, "judge-2": PRICE} if priced else {}
    return RunRequest(replace(settings, judge=replace(settings.judge, backoff_s=0.0, prices=prices)), cases, answers)


def journal(folder: RunFolder) -> list[dict[str, Any]]:
    return [json.loads(line) for line in folder.journal.read_text(encoding="utf-8").splitlines()]


def cost(result: RunResult) -> dict[str, Any]:
    found: dict[str, Any] = result.folder.read_json("manifest.json")["cost"]
    return found


def same_bytes(*results: RunResult) -> bool:
    """True when the runs say the same of every case and in sum."""
    names = ("summary.json", "cases.csv")
    return all(len({(result.folder.path / name).read_bytes() for result in results}) == 1 for name in names)


def counted(n_prompt_tokens: int | None, n_completion_tokens: int = 20, said: str = verdict()) -> Respond:
    """A verdict with this count of tokens; None: the server counts none."""
    body = json.loads(completion(said))
    body["usage"] = {"prompt_tokens": n_prompt_tokens, "completion_tokens": n_completion_tokens}
    if n_prompt_tokens is None:
        del body["usage"]
    return Respond(200, json.dumps(body))


# --- replies of earlier runs -----------------------------------------------------------------------------------------


def test_a_second_run_takes_every_reply_from_the_first_and_says_the_same_for_nothing(tmp_path: Path) -> None:
    with JudgeServer(seeded_reply(1)) as server:
        asked = request(tmp_path, server.base_url, n=12, priced=True)
        first = run(asked, world())
        n_requests, n_probes = len(server.requests), len(server.probes)
        second = run(asked, world())
        assert (len(server.requests), len(server.probes)) == (n_requests, n_probes)
    one, two = cost(first), cost(second)
    assert (one["calls"], one["cached"]) == (n_requests, 0)
    assert (two["calls"], two["cached"]) == (n_requests, n_requests)
    assert one["usd"] == pytest.approx((2 * one["prompt_tokens"] + 10 * one["completion_tokens"]) / 1e6)
    assert (two["usd"], two["usd_is_complete"], two["usd_with_estimates"], two["prompt_tokens"]) == (0.0, True, 0.0, 0)
    assert same_bytes(first, second)
    assert {line["raw"] for line in journal(first.folder)} == {line["raw"] for line in journal(second.folder)}


def test_with_one_case_changed_only_that_case_is_asked_again(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict()) as server:
        asked = request(tmp_path, server.base_url)
        run(asked, world())
        text = asked.answers.read_text(encoding="utf-8") if asked.answers else ""
        (tmp_path / "answers.jsonl").write_text(text.replace("There are 102 seats.", "102 seats."), encoding="utf-8")
        n_before = len(server.requests)
        result = run(asked, world())
        assert len(server.requests) - n_before == 2  # two of three repeats settle a case
        assert all("102 seats." in late.text for late in server.requests[n_before:])
    assert (cost(result)["calls"], cost(result)["cached"]) == (12, 10)


def test_without_the_cache_every_call_is_asked_and_nothing_is_kept(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict()) as server:
        run(request(tmp_path, server.base_url, cache=False), world())
        assert not (tmp_path / ".rag-judge").exists()
        run(request(tmp_path, server.base_url), world())
        assert (tmp_path / ".rag-judge" / "replies.sqlite").exists()
        assert len(server.requests) == 24
        result = run(request(tmp_path, server.base_url, cache=False), world())
        assert (len(server.requests), cost(result)["cached"]) == (36, 0)


@pytest.mark.parametrize("takes_seed", [True, False], ids=["a seed a repeat", "all repeats look the same"])
def test_each_repeat_is_asked_for_itself_and_gets_its_own_reply_back(tmp_path: Path, takes_seed: bool) -> None:
    """Every reply of the server is one of its kind, by its reason."""

    def numbered(req: JudgeRequest) -> str | Misbehaviour:
        if "seed" in req.body and not takes_seed:
            return refused_parameter("seed")
        return verdict(reason=f"reply {req.number}", grounded=req.number % 2 == 0)

    with JudgeServer(numbered) as server:
        asked = request(tmp_path, server.base_url, n=4, repeats=5, early_stop=False, concurrency=1)
        first, second = run(asked, world()), run(asked, world())
        n_refused = sum("seed" in req.body for req in server.requests) if not takes_seed else 0
        assert len(server.requests) - n_refused == 20
        bodies = Counter(json.dumps(req.body, sort_keys=True) for req in server.requests)
    assert max(bodies.values()) == (1 if takes_seed else 5)
    replies = [{(x["case_id"], x["repeat"]): x["raw"] for x in journal(result.folder)} for result in (first, second)]
    assert len(set(replies[0].values())) == 20
    assert replies[0] == replies[1]
    assert (cost(second)["cached"], same_bytes(first, second)) == (20, True)


def test_a_second_try_is_not_answered_by_the_first_and_an_unreadable_first_is_asked_again(tmp_path: Path) -> None:
    def clumsy(req: JudgeRequest) -> str | Misbehaviour:
        return verdict() if len(req.body["messages"]) > 2 else "I think it is fine."

    with JudgeServer(clumsy) as server:
        asked = request(tmp_path, server.base_url, n=2)
        first = run(asked, world())
        assert len(server.requests) == 8  # 2 cases, 2 of 3 repeats, 2 tries
        second = run(asked, world())
        assert len(server.requests) == 8 + 4
    assert {(line["variant"], line["cached"]) for line in journal(second.folder)} == {(None, False), ("reask", True)}
    assert (cost(second)["calls"], cost(second)["cached"], cost(second)["reasked"]) == (8, 4, 4)
    assert same_bytes(first, second)


@pytest.mark.parametrize("content", [b"no database at all" * 100, None], ids=["broken", "a folder"])
def test_a_cache_that_cannot_be_used_is_said_and_the_run_goes_on_without(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / ".rag-judge" / "replies.sqlite"
    path.parent.mkdir()
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    said: list[str] = []
    with JudgeServer(lambda _: verdict()) as server:
        spoken = replace(world(), say=said.append)
        results = [run(request(tmp_path, server.base_url), spoken) for _ in range(2)]
        assert len(server.requests) == 24
    assert [result.exit_code for result in results] == [0, 0]
    assert ["replies.sqlite cannot be used" in line for line in said] == [True, True]
    assert content is None or path.read_bytes() == content


# --- limits ----------------------------------------------------------------------------------------------------------


def stopped(asked: RunRequest, reason: str, spoken: World | None = None) -> RunFolder:
    """The folder of a run that ends at a limit."""
    with pytest.raises(CannotGoOn, match=f"(?s){reason}.*go on with: rag-judge run --resume") as found:
        run(asked, spoken or world())
    assert found.value.exit_code == 5
    folder = find_run(Path(asked.settings.run.out), "2026-01-31-run")
    assert not folder.is_complete
    return folder


def assert_as_undisturbed(folder: RunFolder, resumed: RunResult, undisturbed: RunResult) -> None:
    assert resumed.folder.path == folder.path
    ids = [Counter(line["call_id"] for line in journal(result.folder)) for result in (resumed, undisturbed)]
    assert ids[0] == ids[1]
    assert same_bytes(resumed, undisturbed)
    names = ("calls", "prompt_tokens", "completion_tokens", "resent", "usd")
    assert [cost(resumed)[name] for name in names] == [cost(undisturbed)[name] for name in names]


@pytest.mark.parametrize("concurrency", [1, 8])
def test_just_so_many_calls_go_out_and_a_resume_with_a_higher_limit_ends_as_an_undisturbed_run(
    tmp_path: Path, concurrency: int
) -> None:
    with JudgeServer(seeded_reply(2), delay_s=0.02) as server:
        asked = request(tmp_path, server.base_url, cache=False, max_calls=5, concurrency=concurrency, priced=True)
        folder = stopped(asked, "the limit of 5 calls is reached")
        assert (len(server.requests), len(journal(folder))) == (5, 5)
        # of the whole run: five of them are spent already
        with pytest.raises(CannotGoOn, match="the limit of 9 calls is reached"):
            run(resumed_request(folder, {"max_calls": 9}, {}), world(), folder)
        assert (len(server.requests), len(journal(folder))) == (9, 9)
        with pytest.raises(CannotGoOn, match="the limit of 9 calls is reached"):
            run(resumed_request(folder, {"max_calls": 9}, {}), world(), folder)
        assert len(server.requests) == 9
        resumed = run(resumed_request(folder, {"max_calls": 1000}, {}), world(), folder)
        n_all = len(server.requests)
        undisturbed = run(request(tmp_path, server.base_url, cache=False, priced=True), world())
        assert len(server.requests) == 2 * n_all
    assert_as_undisturbed(folder, resumed, undisturbed)


def test_a_limit_that_is_just_enough_ends_no_run(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict()) as server:
        result = run(request(tmp_path, server.base_url, max_calls=12), world())
        assert (result.exit_code, len(server.requests)) == (0, 12)


def test_replies_of_an_earlier_run_do_not_count_not_even_after_a_resume(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict()) as server:
        run(request(tmp_path, server.base_url, n=2, name="smaller"), world())
        assert len(server.requests) == 4
        # 12 calls are needed, of which 4 are kept: 8 go out
        folder = stopped(request(tmp_path, server.base_url, max_calls=5, concurrency=1), "the limit of 5 calls")
        assert (len(server.requests), len(journal(folder))) == (4 + 5, 4 + 5)
        result = run(resumed_request(folder, {"max_calls": 8}, {}), world(), folder)
        assert len(server.requests) == 4 + 8
    assert (cost(result)["calls"], cost(result)["cached"]) == (12, 4)


def test_a_failed_call_counts_and_is_sent_again_by_the_resume(tmp_path: Path) -> None:
    sick = [True]

    def reply(req: JudgeRequest) -> str | Misbehaviour:
        return Respond(503, "busy") if sick[0] and req.number == 2 else verdict()

    with JudgeServer(reply) as server:
        asked = request(tmp_path, server.base_url, cache=False, max_calls=3, concurrency=1)
        folder = stopped(asked, "the limit of 3 calls is reached")
        assert [line["status"] for line in journal(folder)] == ["ok", "failed", "ok"]
        sick[0] = False
        with pytest.raises(CannotGoOn, match="the limit of 4 calls is reached"):
            run(resumed_request(folder, {"max_calls": 4}, {}), world(), folder)
        assert len(server.requests) == 4


def test_calls_on_their_way_when_a_limit_is_reached_are_waited_for_and_kept(tmp_path: Path) -> None:
    """Eight workers, of which three may send: five are refused while three are on their way."""
    with JudgeServer(lambda _: verdict(), delay_s=0.3) as server:
        folder = stopped(request(tmp_path, server.base_url, max_calls=3, concurrency=8), "limit of 3 calls")
        assert server.max_concurrency == 3
        asked_for = {req.body["messages"][-1]["content"] for req in server.requests}
    kept = journal(folder)
    assert (len(asked_for), len(kept)) == (3, 3)
    assert all(line["status"] == "ok" for line in kept)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_no_more_money_is_spent_than_allowed_and_a_resume_with_more_ends_as_an_undisturbed_run(
    tmp_path: Path, concurrency: int
) -> None:
    # A call costs 10 * 2 + 300 * 10 = 3020 millionths. It is reserved at more than that: at all its completion tokens.
    with JudgeServer(lambda _: counted(10, 300), delay_s=0.01) as server:
        flags: dict[str, Any] = {"cache": False, "priced": True, "concurrency": concurrency}
        folder = stopped(request(tmp_path, server.base_url, max_usd=0.02, **flags), r"the limit of 0\.02 USD")
        n_first = len(server.requests)
        assert 0 < n_first < 12
        assert len(journal(folder)) == n_first
        assert n_first * 3020e-6 <= 0.02
        resumed = run(resumed_request(folder, {"max_usd": 1.0}, {}), world(), folder)
        assert len(server.requests) == 12
        undisturbed = run(request(tmp_path, server.base_url, **flags), world())
    assert cost(resumed)["usd"] == pytest.approx(12 * 3020e-6)
    assert_as_undisturbed(folder, resumed, undisturbed)


def test_the_money_of_a_run_is_that_of_all_its_judges(tmp_path: Path) -> None:
    # 12 calls of the first judge are 12 * 0.00302 = 0.03624 USD: too little is left for all of the second's
    with JudgeServer(lambda _: counted(10, 300)) as server:
        models = ["judge-1", "judge-2"]
        asked = request(tmp_path, server.base_url, models=models, priced=True, max_usd=0.045, concurrency=1)
        stopped(asked, r"the limit of 0\.045 USD")
        sent = Counter(req.body["model"] for req in server.requests)
    assert sent["judge-1"] == 12
    assert sent.total() * 3020e-6 <= 0.045


def test_no_money_at_all_sends_nothing(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict()) as server:
        folder = stopped(request(tmp_path, server.base_url, max_usd=0.0, priced=True), "the limit of 0 USD")
        assert server.requests == []
    assert journal(folder) == []


@pytest.mark.parametrize("model", ["judge-1", "gpt-4o-mini"], ids=["an unknown model", "a listed name on this machine"])
def test_a_limit_of_money_without_a_price_is_an_error_before_anything_is_written(tmp_path: Path, model: str) -> None:
    with JudgeServer(lambda _: verdict()) as server:
        asked = request(tmp_path, server.base_url, model=model, max_usd=1.0)
        with pytest.raises(InputError, match=rf"max_usd: no price of {model} is known; .*max_calls"):
            run(asked, world())
        assert (server.requests, server.probes) == ([], [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.jsonl", "cases.jsonl"]


@dataclass
class Ticking:
    """A clock that stands still but when a reply is given."""

    now: float = 500.0
    step: float = 10.0

    def __call__(self) -> float:
        return self.now

    def reply(self, req: JudgeRequest) -> str:
        self.now += self.step
        return verdict()


def test_after_the_deadline_no_call_goes_out_and_a_later_one_goes_on(tmp_path: Path) -> None:
    clock = Ticking()
    with JudgeServer(clock.reply) as server:
        flags: dict[str, Any] = {"cache": False, "concurrency": 1}
        timed = replace(world(), monotonic=clock)
        # calls go out at 0, 10 and 20 s; at 30 s it is too late
        folder = stopped(request(tmp_path, server.base_url, deadline="25s", **flags), "the deadline has passed", timed)
        assert (len(server.requests), len(journal(folder))) == (3, 3)
        with pytest.raises(CannotGoOn, match="the deadline has passed"):  # it counts from the resume
            run(resumed_request(folder, {"deadline": "15s"}, {}), timed, folder)
        assert len(server.requests) == 5
        resumed = run(resumed_request(folder, {"deadline": "1h"}, {}), timed, folder)
        assert len(server.requests) == 12
        undisturbed = run(request(tmp_path, server.base_url, **flags), world())
    assert_as_undisturbed(folder, resumed, undisturbed)


@pytest.mark.parametrize(
    ("text", "now", "seconds"),
    [
        ("90", "12:00", 90),
        ("90s", "12:00", 90),
        ("30m", "12:00", 1800),
        ("2h", "12:00", 7200),
        ("1h30m", "12:00", 5400),
        ("06:30", "06:00", 1800),
        ("06:30", "07:00", 23.5 * 3600),  # tomorrow
        (" 06:30 ", "06:00", 1800),
        ("06:30:15", "06:30", 15),
        ("00:00", "23:59", 60),
    ],
)
def test_a_deadline_is_a_duration_or_the_next_such_time_of_day(text: str, now: str, seconds: float) -> None:
    assert deadline_s(text, datetime.fromisoformat(f"2026-01-31T{now}:00+02:00")) == seconds


@pytest.mark.parametrize("text", ["soon", "", "25:00", "6:30pm", "3 days", "2026-01-31"])
def test_any_other_deadline_is_an_error_before_anything_is_written(tmp_path: Path, text: str) -> None:
    with JudgeServer(lambda _: verdict()) as server:
        asked = request(tmp_path, server.base_url)
        asked = replace(asked, settings=replace(asked.settings, judge=replace(asked.settings.judge, deadline=text)))
        with pytest.raises(InputError, match=r"deadline: found .*expected a duration .* or a time of day"):
            run(asked, world())
        assert server.requests == []
    assert not (tmp_path / "runs").exists()


# --- what a run says it cost -----------------------------------------------------------------------------------------


def test_without_a_count_the_cost_is_a_lower_bound_and_estimates_stand_apart(tmp_path: Path) -> None:
    with JudgeServer(lambda req: counted(100 if req.number <= 5 else None)) as server:
        result = run(request(tmp_path, server.base_url, priced=True, concurrency=1), world())
        uncounted = [
            sum(estimated_tokens(message["content"]) for message in req.body["messages"]) for req in server.requests[5:]
        ]
    said = cost(result)
    assert (said["calls"], said["calls_without_usage"]) == (12, 7)
    assert (said["prompt_tokens"], said["completion_tokens"]) == (500, 100)
    assert (said["usd"], said["usd_is_complete"]) == (pytest.approx((500 * 2 + 100 * 10) / 1e6), False)
    assert said["estimated_prompt_tokens"] == sum(uncounted)
    assert said["estimated_completion_tokens"] == 7 * ((len(verdict()) + 3) // 4)
    more = said["estimated_prompt_tokens"] * 2 + said["estimated_completion_tokens"] * 10
    assert said["usd_with_estimates"] == pytest.approx(said["usd"] + more / 1e6)


def test_without_a_price_there_is_no_cost_and_tokens_are_counted_all_the_same(tmp_path: Path) -> None:
    with JudgeServer(lambda _: counted(100)) as server:
        said = cost(run(request(tmp_path, server.base_url), world()))
    assert (said["usd"], said["usd_is_complete"], said["usd_with_estimates"]) == (None, None, None)
    assert (said["prompt_tokens"], said["completion_tokens"], said["calls_without_usage"]) == (1200, 240, 0)


def test_unreadable_and_second_tries_cost_as_all_others(tmp_path: Path) -> None:
    def clumsy(req: JudgeRequest) -> str | Misbehaviour:
        return counted(100, said=verdict() if len(req.body["messages"]) > 2 else "I think it is fine.")

    with JudgeServer(clumsy) as server:
        said = cost(run(request(tmp_path, server.base_url, n=2, priced=True), world()))
    assert (said["calls"], said["reasked"], said["prompt_tokens"]) == (8, 4, 800)
    assert said["usd"] == pytest.approx(8 * (100 * 2 + 20 * 10) / 1e6)


# --- a finished run as a judge ---------------------------------------------------------------------------------------


def replayed(folder: RunFolder, into: Path, plan: GradingPlan) -> dict[str, Decision]:
    """What each case decides when the calls of a plan are answered by a finished run; nothing is sent."""
    with (
        closing(CaseSet(folder.snapshot)) as cases,
        closing(AnswerSet(folder.answers, cases.offsets)) as answers,
        closing(Journal(folder.journal)) as recorded,
        closing(Journal(into)) as new,
    ):
        gradings = [
            CaseGrading(
                case, answers.get(case.id), plan.prompts[language_of(case.question, "auto", plan.prompts)], plan
            )
            for case in map(cases.get, cases.offsets)
        ]
        asyncio.run(send_all(gradings, RecordedJudge(recorded), new, concurrency=4))
    return decided(into, gradings)


def decided(path: Path, gradings: Sequence[CaseGrading]) -> dict[str, Decision]:
    with closing(RecordedReplies(path)) as replies:
        return {
            one.case_id: decision_of(replies.of_case(one.case_id), one.prompt, one.plan.n_repeats, False)
            for one in gradings
        }


def test_a_finished_run_answers_its_own_calls_as_it_did_and_no_other(tmp_path: Path) -> None:
    with JudgeServer(seeded_reply(5)) as server:
        finished = run(request(tmp_path, server.base_url, n=9), world())
        base_url, n_requests = server.base_url, len(server.requests)
    prompts = load_prompt(finished.folder.path / "prompts" / "passfail")
    plan = GradingPlan(prompts, public_url(base_url), "judge-1", n_repeats=3, seed=0)
    decisions = replayed(finished.folder, tmp_path / "replayed.jsonl", plan)
    for row in finished.rows:
        one = decisions[row.id]
        assert (one.judge_pass, one.n_asked, one.flipped) == (row.judge_pass, row.n_asked, row.flipped)
        assert [one.values[name] for name in ("grounded", "complete")] == [row.grounded, row.complete]
    old, new = journal(finished.folder), (tmp_path / "replayed.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(new) == n_requests
    assert sorted(map(str, old)) == sorted(str(json.loads(line)) for line in new)
    for stranger in (replace(plan, seed=1), replace(plan, model="judge-2"), replace(plan, early_stop=False)):
        with pytest.raises(CannotGoOn, match="the recorded run never made this call of case 'q"):
            replayed(finished.folder, tmp_path / f"{stranger.seed}{stranger.model}.jsonl", stranger)


# --- how far it went -------------------------------------------------------------------------------------------------


def test_a_run_that_a_limit_stopped_says_the_numbers_of_the_cases_it_finished(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict()) as server:
        asked = request(tmp_path, server.base_url, cache=False, max_calls=5, concurrency=1)
        with pytest.raises(LimitReached) as stopped:
            run(asked, world())
        so_far = stopped.value.result
        assert isinstance(so_far, RunResult)
        # two calls a case: two cases are finished, the third one has half of its calls
        assert stopped.value.finished == {"q0", "q1"}
        judge = so_far.summary["judge"]
        assert (judge["drawn"], judge["graded"], judge["part"]) == (2, 2, {"n": 2, "of": 6})
        assert judge["sampled"] is None
        end = so_far.summary["end_to_end"]
        assert (end["n"], end["population"]) == (2, PART)
        assert {row.outcome for row in so_far.rows if row.id not in {"q0", "q1"}} <= {"not_judged", "fail"}  # by rules
        assert any("judged before the limit 2/6" in line for line in so_far.lines)
        folder = so_far.folder
        assert not folder.is_complete
        assert json.loads((folder.path / "summary.json").read_text()) == so_far.summary
        assert "no random part" in (folder.path / "report.html").read_text(encoding="utf-8")
        resumed = run(resumed_request(folder, {"max_calls": 100}, {}), world(), folder)
        undisturbed = run(request(tmp_path, server.base_url, cache=False), world())
    assert_as_undisturbed(folder, resumed, undisturbed)


def test_of_a_panel_only_cases_that_every_judge_has_seen_are_finished(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict()) as server:
        for limit, finished in ((5, set()), (17, {"q0", "q1"})):
            flags: dict[str, Any] = {"cache": False, "max_calls": limit, "concurrency": 1}
            asked = request(tmp_path, server.base_url, models=["judge-1", "judge-2"], **flags)
            with pytest.raises(LimitReached) as stopped:
                run(asked, world())
            assert stopped.value.finished == finished


def test_the_deadline_ends_the_collecting_too_and_a_later_one_goes_on(tmp_path: Path) -> None:
    clock = Ticking()

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        clock.now += clock.step
        return {"answer": "14 days", "contexts": [{"id": "d#1", "text": "The trial runs for 14 days."}]}

    cases, _ = numbered_files(tmp_path, 6)
    with RagServer(answer) as rag:
        flags = {"out": str(tmp_path / "runs"), "endpoint": rag.ask_url, "endpoint_concurrency": 1, "judge": "none"}
        settings = load_settings(None, {}, {**flags, "deadline": "25s"}, folder=None)
        timed = replace(world(), monotonic=clock)
        with pytest.raises(LimitReached, match="the deadline has passed while answers were collected; 3 are there"):
            run(RunRequest(settings, cases), timed)
        assert len(rag.requests) == 3
        folder = find_run(tmp_path / "runs", "2026-01-31-run")
        result = run(resumed_request(folder, {"deadline": "1h"}, {}), timed, folder)
        assert (result.summary["n_answered"], len(rag.requests)) == (6, 6)


def test_an_unfinished_run_is_listed_with_its_judge_and_cases(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict()) as server:
        stopped(request(tmp_path, server.base_url, cache=False, max_calls=3, concurrency=1), "the limit of 3 calls")
    listed = CliRunner().invoke(app, ["runs", "--out", str(tmp_path / "runs")])
    assert "2026-01-31-run  incomplete  cases=6  judge=judge-1" in listed.output


@pytest.mark.parametrize("deadline", ["0s", "0.001s"])
def test_a_deadline_before_the_first_call_ends_as_any_other_and_is_resumed(tmp_path: Path, deadline: str) -> None:
    with JudgeServer(lambda _: verdict()) as server:
        folder = stopped(request(tmp_path, server.base_url, cache=False, deadline=deadline), "the deadline has passed")
        assert (len(server.probes), len(server.requests)) == (0, 0)
        result = run(resumed_request(folder, {"deadline": "1h"}, {}), world(), folder)
    assert result.exit_code == 0
