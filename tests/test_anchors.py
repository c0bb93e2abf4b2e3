"""The judge held against its anchors: the rule by hand-worked counts, the check on rows, and real judges that move."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom

from rag_judge.anchor_rule import (
    Counts,
    fewest_anchors,
    has_moved,
    has_scattered,
    is_drift,
    scatter_p,
    smallest_net,
)
from rag_judge.anchor_words import WORDS, note_lines, note_text
from rag_judge.anchors import AnchorCheck, AnchorRun, anchor_hash, check, judge_changes, read_labels
from rag_judge.archive import RunFolder
from rag_judge.errors import InputError, LimitReached
from rag_judge.paired import mcnemar_p
from rag_judge.pipeline import real_world
from rag_judge.pipeline.anchors import check_anchors
from rag_judge.planning import smallest_detectable_difference
from rag_judge.records import Answer, Case, CaseRow, Context, Estimate, NoEstimate
from rag_judge.settings import Settings, load_settings
from tests.eval_sets import numbered_answers, numbered_cases, verdict, write_rows
from tests.misbehaviour import JudgeRequest, Misbehaviour, Respond
from tests.night_world import share_of
from tests.servers import JudgeServer, RagServer, reply_body

Said = str  # y, n or -: a verdict an anchor


# --- the rule ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # k of k one way: mid-p = 2/2^k - 1/2^k = 1/2^k
        pytest.param(Counts(30, 0, 4, n_twice=60), False, id="4 of 30 one way: p = 1/16"),
        pytest.param(Counts(30, 0, 5, n_twice=60), True, id="5 of 30 one way: p = 1/32"),
        pytest.param(Counts(30, 5, 0, n_twice=60), True, id="5 of 30 the other way"),
        pytest.param(Counts(200, 0, 10, n_twice=400), False, id="p = 1/1024, and just the tolerance"),
        pytest.param(Counts(200, 0, 11, n_twice=400), True, id="above the tolerance"),
        pytest.param(Counts(30, 0, 6, n_flipped=12, n_twice=60), False, id="on no more anchors than it flips on"),
        pytest.param(Counts(30, 0, 6, n_flipped=11, n_twice=60), True, id="on more"),
        pytest.param(Counts(30, 4, 4, n_twice=60), False, id="both ways"),
        pytest.param(Counts(30, 0, 6), True, id="flips not known: the test stands alone"),
        pytest.param(Counts(0, 0, 0), False, id="nothing"),
    ],
)
def test_a_judge_has_moved_by_more_than_chance_tolerance_and_its_own_flips(counts: Counts, expected: bool) -> None:
    assert has_moved(counts, mcnemar_p(counts.gained, counts.lost)) is expected


def test_changes_both_ways_alarm_when_its_flips_do_not_explain_them() -> None:
    # No flip on 30 anchors: Wilson's upper end z2/(30 + z2) = 3.8415/33.8415 = 0.1135. Of a net change of 2 the
    # tolerance lets pass 1, the whole anchors in 0.05 * 30; a net change of 1 all of it.
    assert Counts(30, 4, 4, n_twice=60).most_flips == pytest.approx(0.1135, abs=1e-4)
    for gained, lost, n_counted in ((4, 4, 8), (5, 4, 8), (6, 4, 9), (5, 5, 10)):
        found = scatter_p(Counts(30, gained, lost, n_twice=60))
        assert found == pytest.approx(binom.sf(n_counted - 1, 30, 3.8415 / 33.8415), rel=1e-3)
    assert not has_scattered(Counts(30, 5, 4, n_twice=60))
    assert has_scattered(Counts(30, 6, 4, n_twice=60))
    assert is_drift(Counts(30, 6, 4, n_twice=60))
    assert not has_scattered(Counts(30, 6, 4, n_twice=60), n_judges=3)
    assert not has_scattered(Counts(30, 5, 5, n_flipped=18, n_twice=60))
    assert not has_scattered(Counts(200, 0, 10, n_twice=400))  # one way, within the tolerance
    assert scatter_p(Counts(30, 15, 15)) == 1.0  # flips not known


def test_five_anchors_are_the_fewest_that_show_anything_and_more_for_several_judges() -> None:
    assert (fewest_anchors(), fewest_anchors(2), fewest_anchors(3)) == (5, 6, 6)
    assert smallest_net(4, 0.0) is None
    assert smallest_net(0, None) is None


@pytest.mark.parametrize(("n", "flip"), [(30, 0.0), (30, 0.05), (60, 0.15), (200, None)])
def test_the_smallest_change_is_what_the_planning_formula_finds_on_top_of_the_flips(n: int, flip: float | None) -> None:
    found = smallest_net(n, flip)
    assert found is not None
    assert smallest_detectable_difference(n, found + (flip or 0.0)) == pytest.approx(found, abs=1e-6)


def test_thirty_anchors_show_a_change_of_about_a_quarter() -> None:
    assert smallest_net(30, 0.05) == pytest.approx(0.28, abs=0.01)


# --- the check on rows ---------------------------------------------------------------------------------------------

MANIFEST: Mapping[str, Any] = {
    "repeats": 3,
    "vary": "none",
    "prompts": [{"name": "passfail", "lang": "en", "version": "a" * 64, "mode": "passfail"}],
    "judge": {
        "model": "m",
        "models_reported": ["m-1"],
        "parameters": {"sent": [{"model": "m", "temperature": 0, "seed": 0, "max_tokens": 400}]},
        "fallbacks": [],
        "embedded": False,
        "model_sha256": None,
    },
}


def judge_with(**changes: Any) -> dict[str, Any]:
    return {**MANIFEST, "judge": {**MANIFEST["judge"], **changes}}


def sent(*parameters: Mapping[str, Any]) -> dict[str, Any]:
    return judge_with(parameters={"sent": [{"model": "m", **one} for one in parameters]})


def said_of(letter: str) -> bool | None:
    return {"y": True, "n": False, "-": None}[letter]


def anchor_row(number: int, letter: str, flipped: bool | None = False) -> CaseRow:
    said = said_of(letter)
    outcome = "unscored" if said is None else "pass" if said else "fail"
    return CaseRow(f"a{number}", "fact", outcome, judge_pass=said, flipped=flipped)  # type: ignore[arg-type]


def anchor_run(
    verdicts: Said, name: str = "now", manifest: Mapping[str, Any] = MANIFEST, flipped: bool | None = False
) -> AnchorRun:
    rows = [anchor_row(i, letter, flipped) for i, letter in enumerate(verdicts)]
    return AnchorRun(name, manifest, rows, {row.id: f"hash of {row.id}" for row in rows})


def checked(before: Said, now: Said, **more: Any) -> AnchorCheck:
    found = check(anchor_run(now), anchor_run(before, "then"), more.pop("human", {}), **more)
    tree = found.tree()
    json.dumps(tree, allow_nan=False)  # what stands in the file
    for lang in ("en", "zh"):
        assert note_lines(tree, lang)
        assert found.why is None or note_text(found.why, lang)
    return found


def test_without_a_reference_it_is_the_first_time_and_says_what_so_many_anchors_could_show() -> None:
    tree = check(anchor_run("y" * 20 + "n" * 9 + "-"), None, {}).tree()
    assert (tree["verdict"], tree["n"], tree["n_anchors"], tree["n_open"]) == ("first", 29, 30, 0)
    assert tree["reason"] == "no earlier run of the anchors to hold it against"
    assert tree["smallest_detectable"] == pytest.approx(smallest_net(29, 0.0))
    assert tree["agreement"] is None
    assert tree["p_value"] is None
    assert tree["judges"][0]["verdict"] == "first"


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        pytest.param("y" * 30, "y" * 30, "same", id="the same"),
        pytest.param("y" * 30, "y" * 26 + "n" * 4, "same", id="four of thirty"),
        pytest.param("y" * 30, "y" * 25 + "n" * 5, "drifting", id="five of thirty"),
        pytest.param("y" * 15 + "n" * 15, "y" * 10 + "n" * 15 + "y" * 5, "drifting", id="five each way"),
        pytest.param("y" * 30, "y" * 26 + "-" * 4, "unknown", id="four of thirty unread"),
        pytest.param("y" * 30, "y" * 27 + "-" * 3, "same", id="three of thirty unread"),
        pytest.param("y" * 26 + "-" * 4, "y" * 30, "unknown", id="unread in the reference"),
        pytest.param("y" * 4, "n" * 4, "unknown", id="four anchors"),
        pytest.param("y" * 30, "-" * 30, "unknown", id="nothing read"),
        pytest.param("y" * 30, "-" * 4 + "n" * 20 + "y" * 6, "drifting", id="unread, and clear whatever they were"),
        pytest.param("y" * 30, "-" * 10 + "n" * 8 + "y" * 12, "unknown", id="unread, and open what they were"),
    ],
)
def test_the_verdict_follows_from_what_was_read(before: Said, now: Said, verdict: str) -> None:
    found = checked(before, now)
    assert found.verdict == verdict
    assert (found.why is None) is (verdict == "same")


def test_the_numbers_are_those_of_the_anchors_with_a_verdict_in_both_runs() -> None:
    tree = checked("y" * 20 + "n" * 9 + "-", "y" * 17 + "n" * 3 + "y" + "n" * 8 + "y").tree()
    assert (tree["n"], tree["n_open"], tree["gained"], tree["lost"]) == (29, 1, 1, 3)
    assert tree["net"]["value"] == pytest.approx(-2 / 29)
    assert tree["agreement"]["value"] == pytest.approx(25 / 29)
    assert tree["p_value"] == tree["p_holm"] == pytest.approx((2 * (1 + 4) - 4) / 16)
    assert (tree["flip_rate"], tree["excess_disagreement"]) == (0.0, pytest.approx(4 / 29))
    assert tree["smallest_detectable"] == pytest.approx(smallest_net(29, 0.0))


def test_too_little_read_says_how_many() -> None:
    found = checked("y" * 30, "y" * 20 + "-" * 10)
    assert found.tree()["reason"] == (
        "of 30 anchors 20 have a verdict in both runs (20 now, 30 in then); at most 10% may lack one"
    )
    assert "30 个锚点中只有 20 个" in note_text(found.why or {}, "zh")


def test_a_change_that_is_certain_and_small_or_within_the_flips_is_a_remark() -> None:
    small = checked("y" * 200, "y" * 190 + "n" * 10)
    assert (small.verdict, [note["code"] for note in small.remarks]) == ("same", ["within_tolerance"])
    assert checked("y" * 200, "y" * 190 + "n" * 10, tolerance=0.04).verdict == "drifting"
    runs = [anchor_run(said, flipped=True) for said in ("y" * 30, "y" * 24 + "n" * 6)]
    flipping = check(runs[1], runs[0], {})
    assert (flipping.verdict, [note["code"] for note in flipping.remarks]) == ("same", ["within_flips"])


def test_a_judge_that_disagrees_with_itself_more_than_within_a_run_is_told_before_it_alarms() -> None:
    found = checked("y" * 15 + "n" * 15, "y" * 11 + "n" * 15 + "y" * 4)
    assert (found.verdict, [note["code"] for note in found.remarks]) == ("same", ["scatters"])
    assert note_text(found.remarks[0], "en").startswith("disagrees with itself more than within a run: 27%")
    clear = checked("y" * 15 + "n" * 15, "y" * 8 + "n" * 15 + "y" * 7)
    assert (clear.verdict, (clear.why or {})["code"]) == ("drifting", "scatter")


def test_with_one_repeat_the_flips_are_not_known_and_the_test_stands_alone() -> None:
    runs = [anchor_run(said, flipped=None) for said in ("y" * 30, "y" * 24 + "n" * 6)]
    tree = check(runs[1], runs[0], {}).tree()
    assert (tree["verdict"], tree["flip_rate"], tree["excess_disagreement"]) == ("drifting", None, None)
    assert tree["flip_rate_reason"] == "no anchor was judged twice in one run"
    assert [note["code"] for note in tree["remarks"]] == ["one_repeat"]


def test_a_changed_judge_is_told_as_changed_and_that_it_drifts_too() -> None:
    before, other = anchor_run("y" * 30, "then"), judge_with(models_reported=["m-2"])
    calm = check(anchor_run("y" * 30, manifest=other), before, {})
    assert (calm.verdict, calm.is_drifting) == ("changed", False)
    assert calm.changed == ({"factor": "judge.models_reported", "before": "m-1", "now": "m-2"},)
    moved = check(anchor_run("y" * 20 + "n" * 10, manifest=other), before, {})
    assert (moved.verdict, moved.is_drifting) == ("changed", True)
    assert [note["code"] for note in moved.remarks] == ["also_drifting"]
    assert moved.tree()["judges"][0]["verdict"] == "drifting"
    unread = check(anchor_run("-" * 30, manifest=other), before, {})
    assert unread.verdict == "changed"


def test_anchors_that_were_edited_or_added_are_told_and_left_out() -> None:
    now, before = anchor_run("y" * 30), anchor_run("y" * 30, "then")
    rows = [*now.rows[:28], replace(now.rows[28], id="new"), now.rows[29]]
    hashes = {**now.hashes, "a1": "another", "a2": "another", "new": "hash"}
    found = check(AnchorRun("now", MANIFEST, rows, hashes), before, {})
    assert found.left_out == {"edited": ("a1", "a2"), "added": ("new",), "removed": ("a28",)}
    assert (found.verdict, found.tree()["n"]) == ("same", 27)
    assert [note_text(note, "en") for note in found.remarks] == [
        "edited since the reference and left out: a1, a2",
        "not in the reference and left out: new",
        "in the reference and no more among the anchors: a28",
    ]


def test_with_no_anchor_as_it_was_the_judge_is_seen_for_the_first_time() -> None:
    now, before = anchor_run("n" * 30), anchor_run("y" * 30, "then")
    found = check(replace(now, hashes=dict.fromkeys(now.hashes, "another")), before, {})
    assert (found.verdict, found.tree()["n"], found.is_drifting) == ("first", 30, False)
    assert "none of the 30 anchors is as it was in then" in found.tree()["reason"]


def test_labels_give_sensitivity_and_specificity_and_the_agreement_before_and_now() -> None:
    human = {f"a{i}": i < 20 for i in range(30)} | {"a29": None}
    # Of 20 that people pass 20 passed and 15 do; of 9 that they fail 2 passed and 4 do.
    found = checked("y" * 20 + "yy" + "n" * 8, "y" * 15 + "n" * 5 + "yyyy" + "n" * 6, human=human)
    tree = found.tree()
    assert tree["sensitivity_change"]["value"] == pytest.approx(-5 / 20)
    assert tree["specificity_change"]["value"] == pytest.approx(-2 / 9)
    assert (tree["people"]["before"]["value"], tree["people"]["now"]["value"]) == (27 / 29, 20 / 29)
    assert checked("y" * 30, "y" * 30).tree()["sensitivity_change"] is None


# --- several judges ------------------------------------------------------------------------------------------------


def panel_run(verdicts: Mapping[str, Said], name: str = "now") -> AnchorRun:
    """A panel's run; together they pass what more than half of them pass."""
    n = len(next(iter(verdicts.values())))
    rows = []
    for i in range(n):
        said = {model: said_of(letters[i]) for model, letters in verdicts.items()}
        together = sum(value is True for value in said.values()) * 2 > len(said)
        judges = json.dumps({model: {"pass": value, "undecided": False} for model, value in said.items()})
        rows.append(replace(anchor_row(i, "y" if together else "n"), judges=judges))
    entries = [{**MANIFEST["judge"], "model": model} for model in verdicts]
    manifest = {**MANIFEST, "judge": entries[0], "judges": entries}
    return AnchorRun(name, manifest, rows, {row.id: row.id for row in rows})


def test_each_judge_of_a_panel_is_held_against_itself() -> None:
    same = "y" * 30
    before = panel_run({"m1": same, "m2": same, "m3": same}, "then")
    # 6 of 30 one way: p = 1/64, and Holm over three judges 3/64 = 0.047
    found = check(panel_run({"m1": same, "m2": "y" * 24 + "n" * 6, "m3": same}), before, {})
    tree = found.tree()
    assert (found.verdict, tree["net"]["value"]) == ("drifting", 0.0)  # the majority did not move
    assert [(judge["model"], judge["verdict"]) for judge in tree["judges"]] == [
        ("m1", "same"),
        ("m2", "drifting"),
        ("m3", "same"),
    ]
    assert tree["judges"][1]["p_holm"] == tree["p_holm"] == pytest.approx(3 / 64)
    assert tree["reason"].startswith("m2: net -20% of 30 anchors")
    # 5 of 30: p = 1/32 would do for one judge, 3/32 does not
    assert check(panel_run({"m1": same, "m2": "y" * 25 + "n" * 5, "m3": same}), before, {}).verdict == "same"


def test_a_panel_with_another_judge_in_it_has_changed_and_the_common_ones_are_compared() -> None:
    same = "y" * 30
    before = panel_run({"m1": same, "m2": same}, "then")
    found = check(panel_run({"m1": "n" * 30, "m9": same}), before, {})
    assert found.verdict == "changed"
    assert found.changed == ({"factor": "judge.model", "before": "m1, m2", "now": "m1, m9"},)
    assert [(judge.model, judge.alarm is not None) for judge in found.judges] == [("m1", True)]


# --- what changed of the judge -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now", "factors"),
    [
        pytest.param(MANIFEST, MANIFEST, [], id="nothing"),
        pytest.param(MANIFEST, judge_with(model="m2"), ["judge.model"], id="the model asked"),
        pytest.param(MANIFEST, judge_with(models_reported=["m-2"]), ["judge.models_reported"], id="the model named"),
        pytest.param(
            MANIFEST, judge_with(models_reported=["m-1", "m-2"]), ["judge.models_reported"], id="a second model"
        ),
        pytest.param(MANIFEST, judge_with(models_reported=[]), [], id="a server that names none"),
        pytest.param(
            MANIFEST,
            {**MANIFEST, "prompts": [{**MANIFEST["prompts"][0], "version": "b" * 64}]},
            ["judge.prompt"],
            id="the prompt",
        ),
        pytest.param(
            MANIFEST,
            {**MANIFEST, "prompts": [{**MANIFEST["prompts"][0], "name": "copy", "lang": "zh"}]},
            [],
            id="the prompt's name alone",
        ),
        pytest.param(MANIFEST, {**MANIFEST, "repeats": 5}, ["judge.repeats"], id="repeats"),
        pytest.param(MANIFEST, {**MANIFEST, "vary": "order"}, ["judge.vary"], id="order"),
        pytest.param({**MANIFEST, "vary": None}, MANIFEST, [], id="a run before there was an order to vary"),
        pytest.param(
            MANIFEST,
            judge_with(fallbacks=["seed not sent"]),
            ["judge.fallbacks"],
            id="fallbacks",
        ),
        pytest.param(MANIFEST, judge_with(model_sha256="0" * 64), [], id="weights known on one side alone"),
        pytest.param(
            judge_with(model_sha256="1" * 64), judge_with(model_sha256="0" * 64), ["judge.weights"], id="weights"
        ),
        pytest.param(
            sent({"temperature": 0, "max_tokens": 400}),
            sent({"temperature": 0.7, "max_tokens": 400}),
            ["judge.temperature"],
            id="temperature",
        ),
        pytest.param(
            sent({"temperature": 0}), sent({"temperature": 0, "top_p": 0.5}), ["judge.top_p"], id="a field of the body"
        ),
        pytest.param(
            sent({"temperature": 0, "seed": 0}, {"temperature": 0, "seed": 1}),
            sent({"temperature": 0, "seed": 0}, {"temperature": 0, "seed": 2}),
            [],
            id="seeds, of which an early stop leaves some out",
        ),
        pytest.param(
            sent({"max_tokens": 400}, {"max_tokens": 3200}), sent({"max_tokens": 3200}), [], id="learned on the way"
        ),
        pytest.param(
            sent({"max_tokens": 400}), sent({"max_completion_tokens": 400}), [], id="the same under another name"
        ),
        pytest.param(MANIFEST, judge_with(parameters={"sent": []}), [], id="a run that sent nothing"),
        pytest.param(MANIFEST, {**MANIFEST, "judge": None}, ["judge.model"], id="no judge"),
        pytest.param({**MANIFEST, "judge": None}, {**MANIFEST, "judge": None}, [], id="never a judge"),
    ],
)
def test_what_is_otherwise_about_the_judge_is_named(
    before: Mapping[str, Any], now: Mapping[str, Any], factors: Sequence[str]
) -> None:
    assert [one["factor"] for one in judge_changes(before, now)] == factors
    assert [one["factor"] for one in judge_changes(now, before)] == factors


# --- the anchors themselves ----------------------------------------------------------------------------------------

CASE = Case("a", "How many?", acceptable=("three",), tags=("x",))
ANSWER = Answer("a", "Three.", (Context("d#1", "There are three."),), meta={"model": "s"}, latency_s=1.0)


@pytest.mark.parametrize(
    ("case", "answer", "is_same"),
    [
        (replace(CASE, tags=("y",), extra={"labels": {"passed": True}}), ANSWER, True),
        (CASE, replace(ANSWER, latency_s=2.0, meta={}), True),
        (replace(CASE, question="How few?"), ANSWER, False),
        (replace(CASE, refusal_phrases=("no",)), ANSWER, False),
        (CASE, replace(ANSWER, answer="Four."), False),
        (CASE, replace(ANSWER, contexts=(Context("d#1", "There are four."),)), False),
    ],
    ids=["labels and tags", "latency and meta", "question", "refusal wording", "answer", "context"],
)
def test_an_anchor_is_the_same_when_all_that_the_judge_sees_is(case: Case, answer: Answer, is_same: bool) -> None:
    assert (anchor_hash(case, answer) == anchor_hash(CASE, ANSWER)) is is_same


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("yes", "not JSON"),
        ([True], "expected an object"),
        ({"pass": True}, "found 'pass', expected one of"),
        ({"passed": "yes"}, r"labels\.passed: found \"yes\" \(text\), expected true, false or null"),
        ({"grounded": 1}, r"labels\.grounded"),
    ],
)
def test_labels_that_are_none_are_named(value: Any, found: str) -> None:
    with pytest.raises(InputError, match=found):
        read_labels(value, "anchors.jsonl:3")


def test_labels_may_be_unsure_or_of_the_prompts_own_fields_or_missing() -> None:
    assert read_labels({"passed": None, "polite": True}, "x", ["polite"]) == {"passed": None, "polite": True}
    assert read_labels('{"passed": true}', "x") == {"passed": True}
    assert read_labels(None, "x") == read_labels("", "x") == {}


def test_every_note_has_words_in_both_languages() -> None:
    assert WORDS["en"].keys() == WORDS["zh"].keys()


# --- real judges ---------------------------------------------------------------------------------------------------

N_ANCHORS = 30


class MovingJudge:
    """Fails a share of the answers by their text alone; flips at random as often as told; named as told."""

    def __init__(self) -> None:
        self.model, self.strictness, self.flips, self.is_silent = "judge-1", 0.0, 0.0, False
        self.n_asked = 0

    def __call__(self, request: JudgeRequest) -> Misbehaviour:
        self.n_asked += 1
        if self.is_silent:
            return Respond(503, "down")
        said = share_of(request.text) >= self.strictness
        if share_of(f"{request.number} {request.text}") < self.flips:
            said = not said
        return Respond(200, reply_body(verdict(complete=said), request, self.model))


def anchors_file(folder: Path, n: int = N_ANCHORS, **more: Any) -> Path:
    rows = zip(numbered_cases(n), numbered_answers(n), strict=True)
    return write_rows(folder / "anchors.jsonl", [{**case, **answer, **more} for case, answer in rows])


def settings_of(folder: Path, server: JudgeServer, **flags: Any) -> Settings:
    known = {"base_url": server.base_url, "model": "m", "out": str(folder / "runs"), "attempts": 1, **flags}
    return load_settings(None, {}, known, folder=None)


@pytest.mark.parametrize(
    ("move", "verdict_name"),
    [
        pytest.param(lambda judge: None, "same", id="the same judge"),
        pytest.param(lambda judge: setattr(judge, "model", "judge-2"), "changed", id="another model under the name"),
        pytest.param(lambda judge: setattr(judge, "strictness", 0.5), "drifting", id="stricter, with the same id"),
        pytest.param(lambda judge: setattr(judge, "flips", 0.1), "same", id="flips by itself"),
    ],
)
def test_a_judge_is_held_against_what_it_said_before(
    tmp_path: Path, move: Callable[[MovingJudge], None], verdict_name: str
) -> None:
    judge = MovingJudge()
    with JudgeServer(judge) as server:
        anchors, settings = anchors_file(tmp_path), settings_of(tmp_path, server)
        reference, first = check_anchors(anchors, None, settings, real_world())
        n_first = judge.n_asked
        move(judge)
        folder, found = check_anchors(anchors, reference, settings, real_world())
    assert (first.verdict, found.verdict) == ("first", verdict_name)
    assert n_first == 2 * N_ANCHORS
    assert judge.n_asked >= 2 * n_first  # never from the cache
    manifest = folder.manifest()
    assert (manifest["purpose"], manifest["name"], manifest["kind"]) == ("anchors", "anchors", "run")
    assert found.tree()["reference"] == reference.run_id


def test_nothing_but_the_judge_is_asked_and_all_anchors_are(tmp_path: Path) -> None:
    def never(body: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError("the endpoint was asked")

    with JudgeServer(MovingJudge()) as server, RagServer(never) as rag:
        flags = {"endpoint": rag.ask_url, "judge_sample": 3, "name": "nightly", "corpus": "nowhere", "system": {"k": 1}}
        settings = settings_of(tmp_path, server, **flags)
        folder, found = check_anchors(anchors_file(tmp_path), None, settings, real_world())
    assert (found.n_read, folder.manifest()["system"]) == (N_ANCHORS, {})
    assert settings.run.name == "nightly"


def test_the_labels_of_the_file_are_what_people_say(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in anchors_file(tmp_path).read_text("utf-8").splitlines()]
    labels: list[Any] = [{"passed": False}, {"passed": None}, {"grounded": True, "complete": True}, {"grounded": False}]
    # The last two are derived by the prompt's rule: a pass needs both where the contexts suffice.
    labels = [labels[0], labels[1], {**labels[2], "should_abstain": False}, {**labels[3], "should_abstain": False}]
    path = write_rows(tmp_path / "a.jsonl", [row | {"labels": said} for row, said in zip(rows, labels, strict=False)])
    with JudgeServer(MovingJudge()) as server:
        _, found = check_anchors(path, None, settings_of(tmp_path, server), real_world())
    assert isinstance(found.people_now, Estimate)
    assert found.people_now.value == pytest.approx(1 / 3)
    assert found.people_now.n == 3
    assert isinstance(found.people_before, NoEstimate)


def test_an_interrupted_run_of_anchors_goes_on_and_a_complete_one_is_taken_as_it_is(tmp_path: Path) -> None:
    judge = MovingJudge()
    with JudgeServer(judge) as server:
        anchors = anchors_file(tmp_path)
        with pytest.raises(LimitReached):
            check_anchors(anchors, None, settings_of(tmp_path, server, max_calls=20), real_world())
        (path,) = (tmp_path / "runs").iterdir()
        before, settings = judge.n_asked, settings_of(tmp_path, server, max_calls=200)
        folder, found = check_anchors(anchors, None, settings, real_world(), resume=RunFolder(path))
        assert folder.path == path
        assert folder.manifest()["purpose"] == "anchors"
        assert (found.n_read, judge.n_asked) == (N_ANCHORS, 2 * N_ANCHORS)
        assert before == 20
        judge.is_silent = True
        again, same = check_anchors(anchors, None, settings, real_world(), resume=folder)
    assert (again.path, same.n_read) == (path, N_ANCHORS)


@pytest.mark.parametrize(
    ("flags", "found"), [({"judge": "none"}, "no judge is asked"), ({"model": "embedded"}, "no better than chance")]
)
def test_without_a_judge_to_hold_it_says_why(tmp_path: Path, flags: Mapping[str, Any], found: str) -> None:
    with JudgeServer(MovingJudge()) as server:
        settings = settings_of(tmp_path, server, **flags)
        with pytest.raises(InputError, match=found):
            check_anchors(anchors_file(tmp_path), None, settings, real_world())


def test_wrong_labels_cost_nothing(tmp_path: Path) -> None:
    judge = MovingJudge()
    with JudgeServer(judge) as server, pytest.raises(InputError, match=r"anchors\.jsonl:1: labels: found 'pass'"):
        check_anchors(anchors_file(tmp_path, labels={"pass": True}), None, settings_of(tmp_path, server), real_world())
    assert judge.n_asked == 0
    assert not (tmp_path / "runs").exists()


def test_an_edited_anchor_is_left_out_and_new_labels_leave_it_in(tmp_path: Path) -> None:
    with JudgeServer(MovingJudge()) as server:
        anchors, settings = anchors_file(tmp_path), settings_of(tmp_path, server)
        reference, _ = check_anchors(anchors, None, settings, real_world())
        rows = [json.loads(line) for line in anchors.read_text("utf-8").splitlines()]
        rows[3]["answer"] = "There are no seats."
        write_rows(anchors, [row | {"labels": {"passed": True}} for row in rows])
        _, found = check_anchors(anchors, reference, settings, real_world())
    assert found.left_out["edited"] == ("q3",)
    assert found.tree()["n"] == N_ANCHORS - 1


def test_a_reference_whose_texts_were_pruned_is_none(tmp_path: Path) -> None:
    with JudgeServer(MovingJudge()) as server:
        anchors, settings = anchors_file(tmp_path), settings_of(tmp_path, server)
        reference, _ = check_anchors(anchors, None, settings, real_world())
        for name in ("questions.snapshot.jsonl", "answers.jsonl", "cases.parquet"):
            (reference.path / name).unlink()
        reference.write_json("pruned.json", {"at": datetime(2026, 1, 1, tzinfo=UTC).isoformat()})
        _, found = check_anchors(anchors, reference, settings, real_world())
    assert (found.verdict, (found.why or {})["code"]) == ("first", "pruned")


def test_a_panel_of_real_judges_is_held_each_against_itself(tmp_path: Path) -> None:
    one, other = MovingJudge(), MovingJudge()
    other.model = "judge-2"

    def reply(request: JudgeRequest) -> Misbehaviour:
        return one(request) if request.body["model"] == "m1" else other(request)

    with JudgeServer(reply) as server:
        anchors = anchors_file(tmp_path)
        settings = load_settings(
            None,
            {},
            {"base_url": server.base_url, "models": ["m1", "m2"], "out": str(tmp_path / "runs")},
            folder=None,
        )
        reference, _ = check_anchors(anchors, None, settings, real_world())
        other.strictness = 0.5
        _, found = check_anchors(anchors, reference, settings, real_world())
    assert found.verdict == "drifting"
    assert [(judge.model, judge.alarm is not None) for judge in found.judges] == [("m1", False), ("m2", True)]
