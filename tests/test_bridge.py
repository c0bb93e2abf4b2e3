"""An older run's answers under today's judge: what is the same, what moved, and which labels still count."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from rag_judge.archive import RunFolder, case_rows_of, list_runs, read_run
from rag_judge.bridge_command import bridge as bridge_command
from rag_judge.bridge_words import WORDS, bridge_lines
from rag_judge.errors import InputError, LimitReached
from rag_judge.pipeline import Budget, RunRequest, RunResult, pairwise, real_world, run
from rag_judge.pipeline.anchors import check_anchors
from rag_judge.pipeline.bias import judge_bias
from rag_judge.pipeline.bridge import TakenLabels, bridge, bridge_name, taken_labels
from rag_judge.pipeline.pairwise import PairwiseRequest
from rag_judge.pipeline.review import ExportRequest, ReviewedRun, export_review
from rag_judge.poststratification import share_value, strata_of
from rag_judge.settings import Settings, load_settings
from tests.eval_sets import numbered_files, write_rows
from tests.labelled_runs import label_all
from tests.servers import JudgeServer, RagServer
from tests.test_anchors import MovingJudge, anchors_file

N = 40


def settings_of(folder: Path, server: JudgeServer, **flags: Any) -> Settings:
    known = {"base_url": server.base_url, "model": "m", "out": str(folder / "runs"), "attempts": 1, **flags}
    return load_settings(None, {}, known, folder=None)


def older_run(folder: Path, server: JudgeServer, budget: Budget | None = None, **flags: Any) -> RunFolder:
    cases, answers = numbered_files(folder, N)
    known = {"name": "base", "k": 1, "seed": 7, "system": {"prompt": "v1"}, **flags}
    settings = settings_of(folder, server, **known)
    return run(RunRequest(settings, cases, answers, budget or Budget()), real_world()).folder


def bridged(folder: Path, server: JudgeServer, parent: RunFolder, **flags: Any) -> RunResult:
    return bridge(parent, settings_of(folder, server, name="new", **flags), real_world())


def test_all_but_the_judge_is_as_it_was(tmp_path: Path) -> None:
    judge = MovingJudge()
    with JudgeServer(judge) as server:
        parent = older_run(tmp_path, server, repeats=1)
        judge.strictness, judge.model = 0.5, "judge-2"
        result = bridged(tmp_path, server, parent, repeats=3, k=9, seed=1, system={"prompt": "v2"})
    before, after = parent.manifest(), result.folder.manifest()
    assert (after["purpose"], after["parent"], after["name"]) == ("bridge", parent.run_id, "new")
    assert [before[name] for name in ("eval_set", "answers", "system", "k", "match", "seed", "corpus")] == [
        after[name] for name in ("eval_set", "answers", "system", "k", "match", "seed", "corpus")
    ]
    assert (before["repeats"], after["repeats"]) == (1, 3)
    assert after["judge"]["models_reported"] == ["judge-2"]
    runs = [read_run(folder.path) for folder in (parent, result.folder)]
    assert runs[0].summary["retrieval"] == runs[1].summary["retrieval"]
    assert runs[0].summary["rules"] == runs[1].summary["rules"]
    for name in ("answers.jsonl", "questions.snapshot.jsonl"):
        assert (parent.path / name).read_bytes() == (result.folder.path / name).read_bytes()


def test_the_comparison_beside_it_is_paired_and_names_the_judge(tmp_path: Path) -> None:
    judge = MovingJudge()
    with JudgeServer(judge) as server:
        parent = older_run(tmp_path, server)
        judge.strictness = 0.5
        result = bridged(tmp_path, server, parent)
    tree = result.folder.read_json("comparison.json")
    moved = tree["metrics"]["pass"]
    rows = [case_rows_of(read_run(folder.path)) for folder in (parent, result.folder)]
    lost = sum(bool(one.judge_pass) and not other.judge_pass for one, other in zip(*rows, strict=True))
    assert (tree["a"], tree["b"], moved["lost"], moved["won"]) == (parent.run_id, result.folder.run_id, lost, 0)
    assert lost > 0
    assert moved["difference"]["value"] == pytest.approx(-lost / N)
    assert tree["changed_factors"] == []
    lines = bridge_lines(tree, [], 0, "no_labels", "en")
    assert "nothing that is recorded of the judge differs" in lines[1]
    assert f"of {N} cases 0 pass now and failed then, {lost} the other way round" in lines[3]
    assert "the judge's doing and not the system's" in lines[4]


def test_a_drifted_judge_is_asked_anew_whatever_the_cache_holds(tmp_path: Path) -> None:
    judge = MovingJudge()
    with JudgeServer(judge) as server:
        parent = older_run(tmp_path, server)  # fills the cache
        judge.strictness = 1.0
        result = bridged(tmp_path, server, parent, seed=7, k=1)
        assert result.folder.manifest()["cost"]["cached"] == 0
        assert result.summary["judge"]["pass"]["value"] == 0.0
        settings = settings_of(tmp_path, server, name="trusting")
        trusting = bridge(parent, settings, real_world(), use_cache=True)
    assert trusting.folder.manifest()["cost"]["cached"] == trusting.folder.manifest()["cost"]["calls"]


def test_the_endpoint_is_not_asked_and_the_parent_is_not_touched(tmp_path: Path) -> None:
    def never(body: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError("the endpoint was asked")

    with JudgeServer(MovingJudge()) as server, RagServer(never) as rag:
        parent = older_run(tmp_path, server)
        before = {path.name: path.read_bytes() for path in parent.path.iterdir() if path.is_file()}
        bridged(tmp_path, server, parent, endpoint=rag.ask_url, corpus="nowhere", counterfactual=False)
    assert {path.name: path.read_bytes() for path in parent.path.iterdir() if path.is_file()} == before


def test_the_same_sample_is_judged(tmp_path: Path) -> None:
    with JudgeServer(MovingJudge()) as server:
        parent = older_run(tmp_path, server, Budget(sample=12))
        result = bridged(tmp_path, server, parent, seed=99)
    drawn = [{row.id for row in case_rows_of(read_run(f.path)) if row.drawn} for f in (parent, result.folder)]
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) == 12
    assert result.summary["judge"]["sampled"]["seed"] == 7


def test_an_interrupted_bridge_goes_on_and_only_as_a_bridge_of_its_parent(tmp_path: Path) -> None:
    judge = MovingJudge()
    with JudgeServer(judge) as server:
        parent = older_run(tmp_path, server)
        n_before = judge.n_asked
        with pytest.raises(LimitReached, match=f"rag-judge bridge {parent.run_id} --resume"):
            bridged(tmp_path, server, parent, max_calls=20)
        begun = next(folder for folder in list_runs(tmp_path / "runs") if not folder.is_complete)
        with pytest.raises(InputError, match="not a bridge of"):
            bridge(parent, settings_of(tmp_path, server), real_world(), parent)
        more = settings_of(tmp_path, server, name="new", max_calls=500)
        with pytest.raises(InputError, match="--repeats: found 5, but"):
            bridge(parent, more, real_world(), begun, flags={"repeats": 5})
        result = bridge(parent, more, real_world(), begun)
        assert judge.n_asked - n_before == 2 * N
        again = bridge(parent, more, real_world(), begun)
    assert (result.folder.path, again.folder.path) == (begun.path, begun.path)
    manifest = result.folder.manifest()
    assert (manifest["purpose"], manifest["parent"], manifest["status"]) == ("bridge", parent.run_id, "complete")
    assert manifest["eval_set"] == parent.manifest()["eval_set"]
    assert (result.folder.path / "comparison.json").exists()


@pytest.mark.parametrize("what", ["no judge", "unfinished", "changed", "comparison", "anchors", "pruned"])
def test_what_cannot_be_bridged_costs_nothing(tmp_path: Path, what: str) -> None:
    judge = MovingJudge()
    with JudgeServer(judge) as server:
        parent = older_run(tmp_path, server)
        settings, found = settings_of(tmp_path, server), ""
        if what == "no judge":
            settings, found = settings_of(tmp_path, server, judge="none"), "needs today's judge"
        elif what == "unfinished":
            parent.write_json("manifest.json", {**parent.manifest(), "status": "incomplete"})
            found = "not complete"
        elif what == "changed":
            with parent.answers.open("a", encoding="utf-8") as file:
                file.write('{"id": "q0"}\n')
            found = "changed after the run"
        elif what == "comparison":
            other = older_run(tmp_path, server, name="other")
            flags = {"judge": "pairwise"}
            parent = pairwise(
                PairwiseRequest(settings_of(tmp_path, server, **flags), parent, other), real_world()
            ).folder
            found = "a comparison of two runs"
        elif what == "anchors":
            parent, _ = check_anchors(anchors_file(tmp_path), None, settings, real_world())
            found = "a run of anchors"
        else:
            parent.write_json("pruned.json", {"at": "2026-01-01"})
            found = "pruned"
        n_asked = judge.n_asked
        with pytest.raises(InputError, match=found):
            bridge(parent, settings, real_world())
    assert judge.n_asked == n_asked


def test_a_run_that_no_judge_saw_gets_one_and_nothing_is_claimed_of_the_difference(tmp_path: Path) -> None:
    with JudgeServer(MovingJudge()) as server:
        parent = older_run(tmp_path, server, judge="none")
        result = bridged(tmp_path, server, parent)
    assert result.summary["judge"]["graded"] == N
    lines = bridge_lines(result.folder.read_json("comparison.json"), [], 0, "no_labels", "en")
    assert lines[1] == "how far the judge moved is not known: no question has a verdict in both runs"


def test_a_gone_knowledge_base_is_told_and_one_that_is_there_is_used(tmp_path: Path) -> None:
    corpus = write_rows(tmp_path / "kb.jsonl", [{"id": f"d#{i}", "text": f"The hall has {100 + i}."} for i in range(N)])
    said: list[str] = []
    with JudgeServer(MovingJudge()) as server:
        parent = older_run(tmp_path, server, corpus=str(corpus))
        assert bridged(tmp_path, server, parent).folder.manifest()["corpus"] == parent.manifest()["corpus"]
        corpus.unlink()
        result = bridge(parent, settings_of(tmp_path, server), real_world(say=said.append))
    assert result.folder.manifest()["corpus"] is None
    assert any("knowledge base" in line and "is gone" in line for line in said)


# --- labels --------------------------------------------------------------------------------------------------------


def test_labels_are_taken_along_with_their_probabilities_and_correct_todays_judge(tmp_path: Path) -> None:
    judge = MovingJudge()
    judge.strictness = 0.3
    with JudgeServer(judge) as server:
        parent = older_run(tmp_path, server)
        reviewed = ReviewedRun(parent.path)
        design = export_review(reviewed, ExportRequest(fraction=0.5, format="csv")).design
        labels = [{"case_id": i, "annotator": "li", "passed": int(i[1:]) % 5 != 0} for i in design.drawn]
        with (parent.path / "review" / "labels.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(label) + "\n" for label in labels)
        judge.strictness = 0.7
        result = bridged(tmp_path, server, parent)
    assert taken_labels(parent, result.folder) == TakenLabels(len(labels), None)
    of_bridge = ReviewedRun(result.folder.path)
    assert of_bridge.design() == reviewed.design()
    found, old = judge_bias(of_bridge), judge_bias(reviewed)
    pass_now, pass_then = found["fields"]["pass"], old["fields"]["pass"]
    assert pass_now["rule"] in ("R3", "R4")
    # Today's judge is far stricter, and the people say of the answers what they said before.
    assert pass_now["bias"]["value"] < pass_then["bias"]["value"]
    assert pass_now["corrected"]["low"] < 0.8 < pass_now["corrected"]["high"]
    # What was taken once is not taken again over labels that the bridge has got since.
    (result.folder.path / "review" / "labels.jsonl").write_text(json.dumps(labels[0]) + "\n", encoding="utf-8")
    with JudgeServer(judge) as server:
        bridge(parent, settings_of(tmp_path, server, name="new"), real_world(), result.folder)
    assert len(of_bridge.labels()) == 1


def test_labels_of_fields_that_todays_prompt_does_not_ask_stay_where_they_are(tmp_path: Path) -> None:
    with JudgeServer(MovingJudge()) as server:
        parent = older_run(tmp_path, server)
        label_all(ReviewedRun(parent.path), tmp_path, [True] * N)
        result = bridged(tmp_path, server, parent, judge="scale")
    assert taken_labels(parent, result.folder) == TakenLabels(0, "other_fields")
    assert not (result.folder.path / "review").exists()


def test_labels_drawn_by_the_old_judges_verdicts_are_unbiased_under_the_new_ones() -> None:
    """The strata are old probability by new verdict. Of 200 cases 150 pass by people; each of 400 draws takes three
    tenths of what the old judge passed and six of what it failed; the mean of the corrected rates must be the true one.
    """
    rng = random.Random(5)
    human = [i % 4 != 0 for i in range(200)]
    old = [said if rng.random() < 0.8 else not said for said in human]
    new = [said if rng.random() < 0.7 else not said for said in human]
    known: list[float | None] = [0.3 if said else 0.6 for said in old]
    truth, values = fmean(human), []
    for _ in range(400):
        drawn: set[int] = set()
        for verdict, share in ((True, 0.3), (False, 0.6)):
            ids = [i for i, said in enumerate(old) if said is verdict]
            drawn |= set(rng.sample(ids, round(share * len(ids))))
        strata = strata_of(new, [said if i in drawn else None for i, said in enumerate(human)], known)
        values.append(share_value(strata))
    # The rate of a draw spreads by about 0.05, so the mean of 400 by 0.0025; four of these.
    assert fmean(values) == pytest.approx(truth, abs=0.01)


# --- words and command ---------------------------------------------------------------------------------------------


def test_every_word_is_in_both_languages() -> None:
    assert WORDS["en"].keys() == WORDS["zh"].keys()


def test_the_name_is_the_parents_with_a_mark_and_never_too_long(tmp_path: Path) -> None:
    def named(name: str) -> RunFolder:
        folder = RunFolder(tmp_path / name[:20])
        folder.path.mkdir(exist_ok=True)
        folder.write_json("manifest.json", {"format_version": 1, "run_id": "r", "status": "complete", "name": name})
        return folder

    assert bridge_name(named("nightly")) == "nightly-bridge"
    assert bridge_name(named("nightly-bridge")) == "nightly-bridge"
    assert len(bridge_name(named("x" * 80))) == 80


app = typer.Typer()
app.command()(bridge_command)


def invoked(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str]:
    monkeypatch.chdir(folder)
    ended = CliRunner().invoke(app, list(arguments))
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return ended.exit_code, ended.stdout


@pytest.mark.parametrize(
    ("lang", "said"),
    [("en", "this is the judge's doing and not the system's"), ("zh", "这是评审的变化,不是系统的变化")],
)
def test_the_command_says_whose_doing_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lang: str, said: str
) -> None:
    judge = MovingJudge()
    with JudgeServer(judge) as server:
        parent = older_run(tmp_path, server)
        judge.strictness, judge.model = 0.5, "judge-2"
        code, out = invoked(
            tmp_path,
            monkeypatch,
            parent.run_id,
            "--base-url",
            server.base_url,
            "--model",
            "m",
            "--lang",
            lang,
            "--quiet",
        )
    assert code == 0
    assert said in out
    assert "judge.models_reported" in out
    assert "judge-1 -> judge-2" in out
    assert "base-bridge" in out


def test_the_command_answers_machines_with_one_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with JudgeServer(MovingJudge()) as server:
        parent = older_run(tmp_path, server)
        code, out = invoked(
            tmp_path, monkeypatch, parent.run_id, "--base-url", server.base_url, "--model", "m", "--json", "--quiet"
        )
    tree: Mapping[str, Any] = json.loads(out)
    assert (code, tree["exit_code"], tree["parent"]) == (0, 0, parent.run_id)
    assert (tree["moved"]["difference"]["value"], tree["judge_changes"]) == (0.0, [])
    assert tree["labels"] == {"n": 0, "why": "no_labels"}


def test_an_unknown_run_is_wrong_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no run 'nowhere'"):
        invoked(tmp_path, monkeypatch, "nowhere", "--quiet")
