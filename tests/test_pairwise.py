"""Two runs' answers judged side by side over a real socket: both orders, what is counted, refused, kept and resumed."""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rag_judge.archive import RunFolder, read_run
from rag_judge.errors import CannotGoOn, InputError
from rag_judge.pipeline import (
    PairwiseRequest,
    RunRequest,
    RunResult,
    World,
    pairwise,
    regrade,
    resume_pairwise,
    run,
)
from rag_judge.settings import Settings, load_settings
from tests.eval_sets import write_rows
from tests.misbehaviour import SERVER_ERROR, JudgeRequest, Misbehaviour
from tests.servers import JudgeServer, obedient

WORLD = World({"OPENAI_API_KEY": "sk-secret-0123456789"}, lambda: datetime(2026, 1, 31, tzinfo=UTC), time.monotonic)
CONTEXT = {"id": "d#1", "text": "The hall has 120 seats and 4 doors."}
Judge = Callable[[str, str, JudgeRequest], str | Misbehaviour]


def settings(folder: Path, base_url: str | None = None, **flags: Any) -> Settings:
    made = load_settings(
        None, {}, {"out": str(folder / "runs"), "base_url": base_url, "model": "j", "attempts": 1, **flags}, folder=None
    )
    return replace(made, judge=replace(made.judge, backoff_s=0.0))


def finished(folder: Path, name: str, answers: Mapping[str, str | None], questions: Sequence[str] = ()) -> RunFolder:
    """A run by rules alone over these answers, by case id."""
    ids = list(answers)
    cases = [
        {"id": case_id, "question": f"How many seats, {question}?", "type": "fact"}
        for case_id, question in zip(ids, questions or ids, strict=True)
    ]
    given = [{"id": case_id, "answer": said, "contexts": [CONTEXT]} for case_id, said in answers.items()]
    files = write_rows(folder / f"{name}.cases.jsonl", cases), write_rows(folder / f"{name}.answers.jsonl", given)
    return run(RunRequest(settings(folder, judge="none", name=name), *files), WORLD).folder


def shown(request: JudgeRequest) -> tuple[str, str]:
    """The two answers in the order in which the judge sees them."""
    found = re.findall(r"<<(\w+) answer [AB]\n(.*?)\n\1>>", request.text, re.S)
    return found[0][1], found[1][1]


def judging(judge: Judge) -> Callable[[JudgeRequest], str | Misbehaviour]:
    """A reply function that is given the first and the second answer."""
    return lambda request: judge(*shown(request), request)


def winner(place: str, reason: str = "because") -> str:
    return json.dumps({"winner": place, "reason": reason})


def longer(first: str, second: str, request: JudgeRequest) -> str:
    return winner("tie" if len(first) == len(second) else "A" if len(first) > len(second) else "B")


def compare(folder: Path, says: Judge, a: RunFolder, b: RunFolder, *, common: bool = False, **flags: Any) -> RunResult:
    with JudgeServer(judging(says)) as server:
        request = PairwiseRequest(settings(folder, server.base_url, **{"judge": "pairwise", **flags}), a, b, common)
        return pairwise(request, WORLD)


def table(result: RunResult) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in read_run(result.folder.path).table().to_dict("records")}  # type: ignore[misc]


ANSWERS_A = {"q1": "120 seats in all", "q2": "many", "q3": "same", "q4": None}
ANSWERS_B = {"q1": "120", "q2": "there are 120 of them", "q3": "same", "q4": "120"}


@pytest.fixture
def both(tmp_path: Path) -> tuple[RunFolder, RunFolder]:
    return finished(tmp_path, "v1", ANSWERS_A), finished(tmp_path, "v2", ANSWERS_B)


# --- what a comparison finds -----------------------------------------------------------------------------------------


def test_a_judge_that_does_not_look_at_the_place_gives_wins_and_ties(
    tmp_path: Path, both: tuple[RunFolder, RunFolder]
) -> None:
    result = compare(tmp_path, longer, *both)
    pairs = table(result)
    assert [(case_id, pairs[case_id]["outcome"]) for case_id in pairs] == [("q1", "a"), ("q2", "b"), ("q3", "tie")]
    assert (pairs["q1"]["order_ab"], pairs["q1"]["order_ba"], pairs["q1"]["n_votes_ab"]) == ("a", "a", 2)
    numbers = result.summary["pairwise"]
    assert (numbers["pairs"], numbers["valid"], numbers["consistency"]["value"]) == (3, 3, 1.0)
    assert (numbers["win_rate_a"]["value"], numbers["first_position"]) == (0.5, None)
    assert numbers["length"]["n_longer_won"] == 2
    # q4 has no answer from A: it is no pair, and counted
    assert (result.summary["n_cases"], result.summary["n_errors"], result.summary["no_answer"]) == (
        4,
        1,
        {"a": 1, "b": 0},
    )
    assert result.exit_code == 4  # 1 of 4 unanswered is more than 2 %
    assert result.folder.run_id == "2026-01-31-v1-vs-v2"
    first = (result.folder.path / "pairs.csv").read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("id,outcome,order_ab,order_ba,n_votes_ab,n_votes_ba,")


def test_a_judge_that_takes_the_first_is_inconsistent_on_every_pair_and_found_out(
    tmp_path: Path, both: tuple[RunFolder, RunFolder]
) -> None:
    result = compare(tmp_path, lambda first, second, request: winner("A"), *both)
    numbers = result.summary["pairwise"]
    assert (numbers["inconsistent"], numbers["consistency"]["value"], numbers["win_rate_a"]["value"]) == (3, 0.0, 0.5)
    # 3 of 3 reversals favour the first place: two-sided p = 2 * (1/2)^3 = 0.25
    assert (numbers["first_position"]["value"], numbers["first_position_p"]) == (1.0, pytest.approx(0.25))
    assert {row["outcome"] for row in table(result).values()} == {"inconsistent"}


def test_swapping_the_runs_swaps_the_wins(tmp_path: Path, both: tuple[RunFolder, RunFolder]) -> None:
    forth, back = compare(tmp_path, longer, *both), compare(tmp_path, longer, both[1], both[0])
    assert [row["outcome"] for row in table(forth).values()] == ["a", "b", "tie"]
    assert [row["outcome"] for row in table(back).values()] == ["b", "a", "tie"]


def test_half_a_swap_decides_nothing_and_no_reply_at_all_is_unscored(
    tmp_path: Path, both: tuple[RunFolder, RunFolder]
) -> None:
    def half(first: str, second: str, request: JudgeRequest) -> str:
        if "q2" in request.text or ("q1" in request.text and first == ANSWERS_B["q1"]):
            return "I would rather not say."
        return longer(first, second, request)

    result = compare(tmp_path, half, *both)
    pairs = table(result)
    assert (pairs["q1"]["outcome"], pairs["q1"]["n_votes_ab"], pairs["q1"]["n_votes_ba"]) == ("undecided", 2, 0)
    assert (pairs["q2"]["outcome"], pairs["q2"]["unscored_reason"]) == ("unscored", "unreadable")
    numbers = result.summary["pairwise"]
    assert (numbers["pairs"], numbers["valid"], numbers["undecided"], numbers["unscored"]) == (3, 1, 1, 1)
    assert result.summary["judge"]["unscored"] == {"unreadable": 1}


def test_an_order_is_decided_by_the_majority_of_its_planned_repeats(
    tmp_path: Path, both: tuple[RunFolder, RunFolder]
) -> None:
    def wavering(first: str, second: str, request: JudgeRequest) -> str:
        # Repeats differ in their seed: 0 says tie, 1 and 2 say the longer.
        return winner("tie") if request.body["seed"] == 0 else longer(first, second, request)

    pairs = table(compare(tmp_path, wavering, *both))
    assert (pairs["q1"]["outcome"], pairs["q1"]["n_votes_ab"], pairs["q1"]["flipped_ab"]) == ("a", 3, True)
    assert (pairs["q3"]["outcome"], pairs["q3"]["n_votes_ab"], pairs["q3"]["flipped_ab"]) == ("tie", 2, False)


def test_asking_stops_early_without_changing_what_is_decided(tmp_path: Path, both: tuple[RunFolder, RunFolder]) -> None:
    early = compare(tmp_path, longer, *both)
    full = compare(tmp_path, longer, *both, early_stop=False)
    saved, whole = (read_run(result.folder.path).manifest["cost"] for result in (early, full))
    assert (saved["calls"], saved["not_needed"]) == (12, 6)  # 3 pairs, 2 orders, 2 of 3 repeats
    assert (whole["calls"], whole["not_needed"]) == (18, 0)
    outcomes = [[row["outcome"] for row in table(result).values()] for result in (early, full)]
    assert outcomes[0] == outcomes[1]


def test_the_prompt_names_no_system_and_shows_each_side_its_contexts(
    tmp_path: Path, both: tuple[RunFolder, RunFolder]
) -> None:
    with JudgeServer(judging(longer)) as server:
        pairwise(PairwiseRequest(settings(tmp_path, server.base_url, judge="pairwise"), *both), WORLD)
        texts = [request.text for request in server.requests]
    assert not any("v1" in text or "v2" in text for text in texts)
    assert all(text.count(CONTEXT["text"]) == 1 for text in texts)  # the same on both sides, shown once
    assert {shown(request) for request in server.requests if "q1" in request.text} == {
        (ANSWERS_A["q1"], ANSWERS_B["q1"]),
        (ANSWERS_B["q1"], ANSWERS_A["q1"]),
    }


# --- what is refused  -----------------------------------------------------------------------------------------


def test_other_questions_are_refused_and_with_common_left_out_and_counted(tmp_path: Path) -> None:
    a = finished(tmp_path, "v1", {"q1": "120 seats", "q2": "many"}, ["one", "two"])
    b = finished(tmp_path, "v2", {"q1": "120", "q2": "none", "q3": "x"}, ["one", "another two", "three"])
    with pytest.raises(InputError, match=r"differ in 3 questions; .* --common"):
        compare(tmp_path, longer, a, b)
    result = compare(tmp_path, longer, a, b, common=True)
    assert list(table(result)) == ["q1"]
    assert result.summary["n_cases"] == 1


def test_a_prompt_of_another_mode_an_unfinished_run_and_a_comparison_are_refused(
    tmp_path: Path, both: tuple[RunFolder, RunFolder]
) -> None:
    with pytest.raises(InputError, match="a comparison needs one of mode pairwise"):
        pairwise(PairwiseRequest(settings(tmp_path, "http://127.0.0.1:1/v1", judge="passfail"), *both), WORLD)
    result = compare(tmp_path, longer, *both)
    with pytest.raises(InputError, match="a comparison, not a run with answers"):
        compare(tmp_path, longer, result.folder, both[1])
    (both[0].answers).write_text(both[0].answers.read_text("utf-8").replace("many", "most"), encoding="utf-8")
    with pytest.raises(InputError, match="the file was changed after the run"):
        compare(tmp_path, longer, *both)


# --- kept, and gone on with ------------------------------------------------------------------------------------------


def test_a_comparison_whose_judge_went_down_is_gone_on_with_and_ends_as_an_undisturbed_one(
    tmp_path: Path, both: tuple[RunFolder, RunFolder]
) -> None:
    def dying(first: str, second: str, request: JudgeRequest) -> str | Misbehaviour:
        return longer(first, second, request) if request.number <= 5 else SERVER_ERROR

    flags: dict[str, Any] = {"judge": "pairwise", "repeats": 9, "early_stop": False}
    undisturbed = compare(tmp_path, longer, *both, **flags)
    with JudgeServer(judging(dying), on_probe=lambda r: obedient(r) if r.number == 1 else SERVER_ERROR) as server:
        asked = settings(tmp_path, server.base_url, concurrency=1, name="again", **flags)
        port = int(server.base_url.split(":")[2].split("/")[0])
        with pytest.raises(CannotGoOn, match="rag-judge pairwise --resume"):
            pairwise(PairwiseRequest(asked, *both), WORLD)
    folder = RunFolder(tmp_path / "runs" / "2026-01-31-again")
    assert not folder.is_complete
    with JudgeServer(judging(longer), port=port):
        result = resume_pairwise(folder, {}, Settings(), WORLD)
    assert [row["outcome"] for row in table(result).values()] == [row["outcome"] for row in table(undisturbed).values()]
    assert read_run(folder.path).manifest["cost"]["calls"] == 3 * 2 * 9
    again = resume_pairwise(folder, {}, Settings(), WORLD)  # complete: answers as it did, asks nobody
    assert (again.summary, again.exit_code) == (result.summary, result.exit_code)


def test_a_regraded_comparison_asks_nobody_and_decides_as_it_did(
    tmp_path: Path, both: tuple[RunFolder, RunFolder]
) -> None:
    result = compare(tmp_path, longer, *both)
    again = regrade(result.folder, WORLD, {"name": "again"})
    assert again.moved == []
    for name in ("summary.json", "pairs.csv"):
        assert (again.result.folder.path / name).read_bytes() == (result.folder.path / name).read_bytes()
    manifest = read_run(again.result.folder.path).manifest
    assert (manifest["parent"], manifest["kind"]) == (result.folder.run_id, "pairwise")
    prompt = result.folder.path / "prompts" / "pairwise" / "prompt.toml"
    other = tmp_path / "other"
    other.mkdir()
    for file in prompt.parent.iterdir():
        (other / file.name).write_bytes(file.read_bytes().replace(b'name = "winner"', b'name = "better"'))
    moved = regrade(result.folder, WORLD, {"judge": str(other)}).moved
    assert [(case_id, after) for case_id, _, after in moved] == [(c, "unscored") for c in ("q1", "q2", "q3")]


def test_the_same_replies_give_the_same_bytes(tmp_path: Path, both: tuple[RunFolder, RunFolder]) -> None:
    one, other = (compare(tmp_path, longer, *both).folder for _ in range(2))
    for name in ("summary.json", "pairs.csv", "hit.txt"):
        assert (one.path / name).read_bytes() == (other.path / name).read_bytes()
