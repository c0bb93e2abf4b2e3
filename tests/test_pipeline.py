"""Whole runs against real servers: what is written, what is counted, what is kept when something goes wrong."""

import asyncio
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rag_judge.archive import RunFolder, find_run, read_run
from rag_judge.errors import CannotGoOn, InputError
from rag_judge.pipeline import (
    Budget,
    RunRequest,
    RunResult,
    World,
    plan,
    regrade,
    resumed_request,
    retrying,
    run,
    run_async,
)
from rag_judge.settings import load_settings
from tests.eval_sets import numbered_files, verdict, write_rows
from tests.misbehaviour import (
    SERVER_ERROR,
    UNAUTHORIZED,
    JudgeRequest,
    Misbehaviour,
    Never,
    Respond,
    failure,
    seeded_reply,
)
from tests.servers import JudgeServer

KEY = "sk-secret-0123456789"
Reply = Callable[[JudgeRequest], str | Misbehaviour]


def world(said: list[str] | None = None, **environment: str) -> World:
    return World(
        {"OPENAI_API_KEY": KEY, **environment},
        lambda: datetime(2026, 1, 31, 12, tzinfo=UTC),
        time.monotonic,
        say=(said if said is not None else []).append,
    )


def request(folder: Path, base_url: str | None, n: int = 6, **flags: Any) -> RunRequest:
    cases, answers = numbered_files(folder, n)
    flags = {"out": str(folder / "runs"), "base_url": base_url, "model": "judge-1", "attempts": 2, **flags}
    settings = load_settings(None, {}, flags, folder=None)
    settings = replace(settings, judge=replace(settings.judge, backoff_s=0.0))
    return RunRequest(settings, cases, answers, Budget(sample=settings.judge.sample))


def journal(result_or_folder: RunResult | RunFolder) -> list[dict[str, Any]]:
    folder = result_or_folder.folder if isinstance(result_or_folder, RunResult) else result_or_folder
    return [json.loads(line) for line in folder.journal.read_text(encoding="utf-8").splitlines()]


def rows(result: RunResult) -> Mapping[str, Mapping[str, Any]]:
    return {row["id"]: row for row in read_run(result.folder.path).table().to_dict("records")}  # type: ignore[misc]


def same_bytes(one: RunFolder, other: RunFolder, *names: str) -> bool:
    return all((one.path / name).read_bytes() == (other.path / name).read_bytes() for name in names)


# --- what a run writes ---------------------------------------------------------------------------------------------


def test_a_run_writes_every_file_of_the_archive_and_they_agree(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict()) as server:
        result = run(request(tmp_path, server.base_url, name="first"), world())
    folder = result.folder
    assert folder.run_id == "2026-01-31-first"
    written = {path.relative_to(folder.path).as_posix() for path in folder.path.rglob("*") if path.is_file()}
    assert written == {
        "manifest.json",
        "request.json",
        "questions.snapshot.jsonl",
        "answers.jsonl",
        "prompts/passfail/prompt.toml",
        "prompts/passfail/en.j2",
        "prompts/passfail/zh.j2",
        "calls.jsonl",
        "cases.csv",
        "cases.parquet",
        "summary.json",
        "hit.txt",
        "report.html",
    }
    manifest = folder.read_json("manifest.json")
    assert (manifest["status"], manifest["eval_set"]["n"]) == ("complete", 6)
    assert manifest["judge"]["parameters"]["sent"][0]["temperature"] == 0
    assert (manifest["cost"]["calls"], manifest["cost"]["not_needed"], manifest["cost"]["resent"]) == (12, 6, 0)
    assert {prompt["lang"] for prompt in manifest["prompts"]} == {"en", "zh"}
    assert folder.snapshot.read_bytes() == (tmp_path / "cases.jsonl").read_bytes()
    summary = folder.read_json("summary.json")
    assert summary["judge"]["graded"] == 6
    assert summary["end_to_end"]["correct"]["value"] == pytest.approx(4 / 6)  # q0 and q5 lack their key point
    assert [row["outcome"] for row in rows(result).values()] == ["fail", "pass", "pass", "pass", "pass", "fail"]
    assert (folder.path / "hit.txt").read_text(encoding="utf-8").startswith("End-to-end correct: 4/6 = 67%")


def test_without_a_judge_a_run_is_complete_and_sends_nothing(tmp_path: Path) -> None:
    result = run(request(tmp_path, None, judge="none"), world())
    assert (result.exit_code, result.summary["judge"]) == (0, {"mode": "none"})
    assert result.summary["rules"]["correct"]["n"] == 6
    assert not result.folder.journal.exists()
    assert result.folder.read_json("manifest.json")["judge"] is None


def test_repeats_of_a_case_are_sent_one_after_another_next_to_each_other(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict()) as server:
        run(request(tmp_path, server.base_url, concurrency=1, repeats=4, early_stop=False), world())
        questions = [re.findall(r"Question (\d+)|第(\d+)题", r.text)[0] for r in server.requests]
    assert questions == [question for question in dict.fromkeys(questions) for _ in range(4)]


def test_concurrency_is_bounded_and_used(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict(), delay_s=0.05) as server:
        run(request(tmp_path, server.base_url, n=12, concurrency=3), world())
        assert server.max_concurrency == 3


def test_the_same_replies_give_the_same_bytes(tmp_path: Path) -> None:
    with JudgeServer(seeded_reply(1)) as server:
        one = run(request(tmp_path, server.base_url, n=20, concurrency=8), world())
        other = run(request(tmp_path, server.base_url, n=20, concurrency=1), world())
    assert same_bytes(one.folder, other.folder, "summary.json", "cases.csv")


def test_stopping_early_gives_the_decisions_of_all_repeats(tmp_path: Path) -> None:
    """The judge changes its mind by how often it was asked the same, so that early stopping has something to do."""

    def moody(req: JudgeRequest) -> str | Misbehaviour:
        return verdict(grounded=(len(req.text) + req.times_seen * 7) % 3 != 0)

    flags: dict[str, Any] = {"n": 30, "repeats": 5, "concurrency": 1}
    with JudgeServer(moody) as server:
        early = run(request(tmp_path, server.base_url, **flags), world())
    with JudgeServer(moody) as server:
        full = run(request(tmp_path, server.base_url, early_stop=False, **flags), world())
    decided = ("outcome", "cause", "grounded", "complete", "should_abstain", "judge_pass", "flipped")
    assert [[row[c] for c in decided] for row in rows(early).values()] == [
        [row[c] for c in decided] for row in rows(full).values()
    ]
    saved = early.folder.read_json("manifest.json")["cost"]
    assert saved["calls"] + saved["not_needed"] == full.folder.read_json("manifest.json")["cost"]["calls"] == 150
    assert saved["not_needed"] > 0


# --- replies that cannot be read ------------------------------------------------------------------------------------


def test_an_unreadable_reply_is_asked_again_once_in_a_call_of_its_own(tmp_path: Path) -> None:
    def clumsy(req: JudgeRequest) -> str | Misbehaviour:
        return verdict() if len(req.body["messages"]) > 2 else "I think it is fine."

    with JudgeServer(clumsy) as server:
        result = run(request(tmp_path, server.base_url, n=2), world())
    lines = journal(result)
    assert [line["variant"] for line in lines].count("reask") == 4
    assert (result.summary["judge"]["graded"], result.exit_code) == (2, 0)
    assert result.folder.read_json("manifest.json")["cost"]["reasked"] == 4


def test_without_another_try_an_unreadable_case_is_unscored_and_too_many_end_with_4(tmp_path: Path) -> None:
    with JudgeServer(lambda _: "I think it is fine.") as server:
        result = run(request(tmp_path, server.base_url, n=2, reask=False), world())
    assert result.summary["judge"]["unscored"] == {"unreadable": 2}
    assert result.summary["judge"]["pass"] is None
    assert result.exit_code == 4


def test_what_only_one_case_meets_is_unscored_with_its_reason_and_the_run_goes_on(tmp_path: Path) -> None:
    def partly(req: JudgeRequest) -> str | Misbehaviour:
        if "Question 1" in req.text:
            return failure(400, "maximum context length is 8192 tokens", code="context_length_exceeded")
        if "Question 2" in req.text:
            return failure(400, "filtered", code="content_filter")
        if "Question 4" in req.text:
            return Never()
        if "Question 5" in req.text:
            return SERVER_ERROR
        return verdict()

    with JudgeServer(partly) as server:
        result = run(request(tmp_path, server.base_url, n=7, timeout_s=0.5), world())
    assert result.summary["judge"]["unscored"] == {
        "content_filter": 1,
        "context_too_long": 1,
        "no_reply": 1,
        "server_error": 1,
    }
    assert (result.summary["judge"]["graded"], result.exit_code) == (3, 4)


# --- a grade from 1 to 5 --------------------------------------------------------------------------------------------


def test_a_scale_decides_the_median_and_no_pass_unless_the_prompt_says_from_where(tmp_path: Path) -> None:
    def graded(req: JudgeRequest) -> str | Misbehaviour:
        return json.dumps({"score": 5 if "Question 1" in req.text else 3, "reason": "ok"})

    with JudgeServer(graded) as server:
        plain = run(request(tmp_path, server.base_url, n=4, judge="scale"), world())
        own = Path(shutil.copytree(plain.folder.path / "prompts" / "scale", tmp_path / "judge_prompts" / "strict"))
        text = (own / "prompt.toml").read_text(encoding="utf-8")
        (own / "prompt.toml").write_text(text.replace("# pass_at = 4", "pass_at = 4"), encoding="utf-8")
        strict = run(request(tmp_path, server.base_url, n=4, judge=str(own)), world())
    judge = plain.summary["judge"]
    assert (judge["mode"], judge["score"]["mean"]["value"], judge["score"]["histogram"]) == (
        "scale",
        3.5,
        {"3": 3, "5": 1},
    )
    assert (judge["pass"], judge["pass_worst"], judge["undecided"], judge["unscored"]) == (None, None, 0, {})
    assert [row["outcome"] for row in rows(plain).values()] == ["fail", "not_judged", "not_judged", "not_judged"]
    assert [row["outcome"] for row in rows(strict).values()] == ["fail", "pass", "fail", "fail"]
    assert [row["score"] for row in rows(strict).values()] == [3.0, 5.0, 3.0, 3.0]


# --- what stops a run, and going on --------------------------------------------------------------------------------


def test_a_wrong_key_stops_the_run_at_once_with_the_cause_and_no_key_anywhere(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict(), api_key="another") as server:
        with pytest.raises(CannotGoOn, match=r"auth.*\n.*go on with: rag-judge run --resume"):
            run(request(tmp_path, server.base_url, concurrency=4), world())
        assert len(server.requests) <= 4
    folder = find_run(tmp_path / "runs", "2026-01-31-run")
    assert not folder.is_complete
    kept = b"".join(path.read_bytes() for path in folder.path.rglob("*") if path.is_file())
    assert KEY.encode() not in kept


def test_a_dead_judge_ends_the_run_after_a_bounded_number_of_calls_and_a_resume_completes_it(tmp_path: Path) -> None:
    healthy = [False]

    def sick(req: JudgeRequest) -> str | Misbehaviour:
        return verdict() if healthy[0] else SERVER_ERROR

    with JudgeServer(sick) as server:
        with pytest.raises(CannotGoOn, match=r"no reply to 10 calls in a row; the last: HTTP 500"):
            run(request(tmp_path, server.base_url, n=40, concurrency=4), world())
        assert len(server.requests) <= 2 * (10 + 2 * 3)  # those on their way, and what came in the same moment
        healthy[0] = True
        folder = find_run(tmp_path / "runs", "2026-01-31-run")
        result = run(resumed_request(folder, {}, {}), world(), folder)
        undisturbed = run(request(tmp_path, server.base_url, n=40), world())
    assert {line["call_id"] for line in journal(result)} == {line["call_id"] for line in journal(undisturbed)}
    assert result.folder.read_json("manifest.json")["cost"]["resent"] > 0
    assert same_bytes(result.folder, undisturbed.folder, "summary.json", "cases.csv")


def test_resuming_a_complete_run_sends_and_writes_nothing_and_answers_as_it_did(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict(grounded=False)) as server:
        first = run(request(tmp_path, server.base_url), world())
        before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in first.folder.path.rglob("*.*")}
        n_requests = len(server.requests)
        again = run(resumed_request(first.folder, {}, {}), world(), first.folder)
        assert len(server.requests) == n_requests
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in first.folder.path.rglob("*.*")} == before
    assert (again.summary, again.lines, again.exit_code) == (first.summary, first.lines, first.exit_code)


def interrupted(tmp_path: Path, n: int, n_replies: int) -> tuple[RunFolder, int]:
    """A run whose judge was lost after some replies, and the port where it was."""
    with JudgeServer(lambda req: verdict() if req.number <= n_replies else UNAUTHORIZED) as server:
        asked = request(tmp_path, server.base_url, n=n, concurrency=1)
        with pytest.raises(CannotGoOn):
            run(asked, world())
        return find_run(tmp_path / "runs", "2026-01-31-run"), int(server.base_url.split(":")[-1].split("/")[0])


def test_a_kept_reply_is_never_asked_for_again(tmp_path: Path) -> None:
    folder, port = interrupted(tmp_path, n=6, n_replies=5)
    kept = journal(folder)
    assert len(kept) == 5
    with JudgeServer(lambda _: verdict(), port=port) as server:
        result = run(resumed_request(folder, {}, {}), world(), folder)
        # two repeats of six cases are needed; the call that met the wrong key goes out again and counts as resent
        assert len(server.requests) == 12 - 5
    assert journal(result)[:5] == kept
    assert result.folder.read_json("manifest.json")["cost"]["resent"] == 1


def test_a_resume_with_other_arguments_is_refused_and_with_more_patience_is_not(tmp_path: Path) -> None:
    folder, _ = interrupted(tmp_path, n=4, n_replies=2)
    with pytest.raises(InputError, match=r"--k: found 7, but .* was begun with 5"):
        resumed_request(folder, {"k": 7}, {})
    with pytest.raises(InputError, match=r"was started with --cases .*, not other\.jsonl"):
        resumed_request(folder, {}, {"cases": Path("other.jsonl")})
    assert resumed_request(folder, {"concurrency": 2, "k": 5}, {}).settings.judge.concurrency == 2


def test_unreadable_replies_are_asked_again_only_on_request(tmp_path: Path) -> None:
    good = [False]

    def learning(req: JudgeRequest) -> str | Misbehaviour:
        if "Question 5" in req.text and not good[0]:
            return UNAUTHORIZED
        return verdict() if good[0] or "Question 1" not in req.text else "no verdict here"

    with JudgeServer(learning) as server:
        with pytest.raises(CannotGoOn):
            run(request(tmp_path, server.base_url, concurrency=1, reask=False), world())
        folder = find_run(tmp_path / "runs", "2026-01-31-run")
        copy = RunFolder(Path(shutil.copytree(folder.path, folder.path.with_name("2026-01-31-copy"))))
        good[0] = True
        kept = run(resumed_request(folder, {}, {}), world(), folder)
        asked = run(retrying(resumed_request(copy, {}, {}), copy), world(), copy)
    assert kept.summary["judge"]["unscored"] == {"unreadable": 1}
    assert asked.summary["judge"]["unscored"] == {}
    with pytest.raises(InputError, match="complete, and a finished run is never rewritten"):
        retrying(resumed_request(copy, {}, {}), copy)


# --- a sample, a plan, a notebook ----------------------------------------------------------------------------------


def test_a_judge_sample_is_drawn_by_seed_and_a_larger_one_is_a_longer_prefix(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict()) as server:
        drawn = {}
        for n in (3, 6):
            result = run(request(tmp_path, server.base_url, n=20, judge_sample=n), world())
            drawn[n] = {case_id for case_id, row in rows(result).items() if row["drawn"]}
            assert result.summary["judge"]["sampled"] == {"n": n, "of": 20, "seed": 0}
    assert drawn[3] < drawn[6]
    assert len(drawn[6]) == 6


def test_a_plan_counts_calls_and_renders_the_first_prompt_without_sending(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict()) as server:
        planned = plan(request(tmp_path, server.base_url, n=6, repeats=3), world())
        assert server.requests == []
        run(request(tmp_path, server.base_url, n=6, repeats=3), world())
        first = next(r for r in server.requests if "第0题" in r.text)
    assert (planned.n_to_judge, planned.calls_at_least, planned.calls_at_most) == (6, 12, 18)
    assert list(planned.first_messages) == first.body["messages"]
    assert planned.usd_at_most is None
    assert not (tmp_path / "runs" / "2026-01-31-run-2").exists()


def test_inside_a_running_loop_a_run_is_awaited_twice_in_a_row(tmp_path: Path) -> None:
    async def notebook(base_url: str) -> list[int]:
        return [(await run_async(request(tmp_path, base_url, n=3), world())).exit_code for _ in range(2)]

    with JudgeServer(lambda _: verdict()) as server:
        assert asyncio.run(notebook(server.base_url)) == [0, 0]


# --- regrade --------------------------------------------------------------------------------------------------------


def test_a_regraded_run_sends_nothing_names_its_parent_and_agrees(tmp_path: Path) -> None:
    with JudgeServer(seeded_reply(3)) as server:
        parent = run(request(tmp_path, server.base_url, n=12), world())
        n_requests = len(server.requests)
        again = regrade(parent.folder, world(), {})
        assert len(server.requests) == n_requests
    assert again.moved == []
    assert same_bytes(parent.folder, again.result.folder, "summary.json", "cases.csv", "calls.jsonl")
    assert again.result.folder.read_json("manifest.json")["parent"] == parent.folder.run_id


def test_a_regrade_by_another_rule_shows_which_outcomes_moved(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict(complete=False)) as server:
        parent = run(request(tmp_path, server.base_url, n=4), world())
    own = tmp_path / "judge_prompts" / "lenient"
    shutil.copytree(parent.folder.path / "prompts" / "passfail", own)
    text = (own / "prompt.toml").read_text(encoding="utf-8")
    (own / "prompt.toml").write_text(text.replace(" and grounded and complete", " and grounded"), encoding="utf-8")
    again = regrade(parent.folder, world(), {"judge": str(own)})
    # q0 lacks its key point: the rules fail it, whatever the judge's rule
    assert again.moved == [("q1", "fail", "pass"), ("q2", "fail", "pass"), ("q3", "fail", "pass")]


# --- inputs that cannot be used ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"base_url": "judge.test/v1"}, "expected http:// or https://"),
        ({"model": None}, "no judge model is set"),
        ({"judge": "nowhere"}, "no judge prompt 'nowhere'"),
        ({"name": "../x"}, "run name"),
    ],
)
def test_a_wrong_setting_is_said_before_anything_is_written(
    tmp_path: Path, flags: dict[str, Any], message: str
) -> None:
    asked = request(tmp_path, flags.pop("base_url", "http://127.0.0.1:9/v1"), **flags)
    with pytest.raises(InputError, match=message):
        run(asked, world())
    assert not (tmp_path / "runs").exists()


def test_a_judged_run_of_answers_without_text_is_refused(tmp_path: Path) -> None:
    asked = request(tmp_path, "http://127.0.0.1:9/v1", n=2)
    write_rows(tmp_path / "answers.jsonl", [{"id": "q0", "contexts": []}])
    with pytest.raises(InputError, match="no row has an answer, so no judge can be asked"):
        run(asked, world())


def test_nothing_to_grade_is_said(tmp_path: Path) -> None:
    asked = replace(request(tmp_path, None, n=2, judge="none"), answers=None)
    with pytest.raises(InputError, match="no answers: give --answers FILE or --endpoint URL"):
        run(asked, world())


def test_a_row_may_carry_case_and_answer_at_once(tmp_path: Path) -> None:
    cases = write_rows(
        tmp_path / "both.jsonl",
        [{"id": "a", "question": "q?", "must_include": ["5"], "answer": "5", "contexts": ["5"]}],
    )
    asked = replace(request(tmp_path, None, judge="none"), cases=cases, answers=None)
    result = run(asked, world())
    assert result.summary["rules"]["correct"]["value"] == 1.0
    assert rows(result)["a"]["faithful"] is True


def test_retrieval_alone_needs_no_answers(tmp_path: Path) -> None:
    asked = request(tmp_path, None, n=2, judge="none")
    write_rows(tmp_path / "answers.jsonl", [{"id": "q0", "contexts": [{"id": "d#0"}]}, {"id": "q1", "contexts": []}])
    summary = run(asked, world()).summary
    assert (summary["retrieval"]["hit"]["value"], summary["retrieval"]["hit"]["n"]) == (0.5, 2)
    assert summary["n_errors"] == 0
    assert summary["rules"]["correct"] is None


def test_the_manifest_holds_a_git_commit_only_inside_a_checkout(tmp_path: Path) -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    result = run(request(tmp_path, None, judge="none"), world())
    assert result.folder.read_json("manifest.json")["git_commit"] == (head or None)


@pytest.mark.parametrize(
    "fault", [SERVER_ERROR, Respond(200, '{"choices": []}'), Respond(307, "", (("Location", "/x"),))]
)
def test_a_judge_that_replies_to_no_call_at_all_ends_a_small_run_too_and_it_can_be_resumed(
    tmp_path: Path, fault: Misbehaviour
) -> None:
    with JudgeServer(lambda _: fault) as server, pytest.raises(CannotGoOn, match=r"HTTP 500|choice|redirects"):
        run(request(tmp_path, server.base_url, n=1), world())
    assert not find_run(tmp_path / "runs", "2026-01-31-run").is_complete


def test_an_unreachable_judge_is_said_with_its_cause(tmp_path: Path) -> None:
    with pytest.raises(CannotGoOn, match=r"no reply to any of 3 calls; the last: connection failed"):
        run(request(tmp_path, "http://127.0.0.1:9/v1", n=1, attempts=1), world())


def test_a_regrade_of_a_run_whose_files_were_changed_or_lost_is_refused(tmp_path: Path) -> None:
    with JudgeServer(lambda _: verdict()) as server:
        parent = run(request(tmp_path, server.base_url, n=2), world()).folder
    for name, message in (
        ("calls.jsonl", "journal is missing"),
        ("answers.jsonl", "changed after the run"),
        ("questions.snapshot.jsonl", "changed after the run"),
    ):
        copy = RunFolder(Path(shutil.copytree(parent.path, tmp_path / f"copy-{name}")))
        if name == "calls.jsonl":
            (copy.path / name).unlink()
        else:
            with (copy.path / name).open("a", encoding="utf-8") as file:
                file.write('{"id": "z", "question": "new?"}\n')
        with pytest.raises(InputError, match=message):
            regrade(copy, world(), {})
    (parent.path / "calls.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"calls\.jsonl:1: not a line of the call journal"):
        regrade(parent, world(), {})


def test_with_vary_order_each_further_repeat_shows_the_same_contexts_in_another_order(tmp_path: Path) -> None:
    cases = write_rows(tmp_path / "many.jsonl", [{"id": "q", "question": "How many seats?"}])
    contexts = [{"id": f"d#{i}", "text": f"Passage {i}."} for i in range(8)]
    answers = write_rows(tmp_path / "given.jsonl", [{"id": "q", "answer": "120", "contexts": contexts}])
    shown: list[list[list[str]]] = []
    with JudgeServer(lambda req: verdict()) as server:
        for vary in ("order", "order", "none"):
            asked = request(tmp_path, server.base_url, vary=vary, early_stop=False, cache=False)
            result = run(replace(asked, cases=cases, answers=answers), world())
            texts = [req.text for req in server.requests[-3:]]
            shown.append([re.findall(r"Passage \d", text) for text in texts])
    varied, again, plain = shown
    assert varied[0] == plain[0] == [f"Passage {i}" for i in range(8)]  # the first repeat is as retrieved
    assert len({tuple(order) for order in varied}) == 3
    assert [sorted(order) for order in varied] == [sorted(plain[0])] * 3
    assert varied == again  # fixed by seed, case and repeat
    assert plain == [plain[0]] * 3
    assert read_run(result.folder.path).manifest["vary"] == "none"
