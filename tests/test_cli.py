"""The command line as a user meets it: exit codes, messages, help."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.eval_sets import numbered_files, verdict, write_rows
from tests.misbehaviour import UNAUTHORIZED
from tests.servers import JudgeServer, RagServer

COMMANDS = ["init", "demo", "lint", "import", "export", "plan", "collect", "run", "pairwise", "regrade", "runs"]
COMMANDS += [
    "signals",
    "mine",
    "compare",
    "ab",
    "gate",
    "bias",
    "compare-judges",
    "review",
    "nightly",
    "trend",
    "report",
]
KEY = "sk-secret-0123456789"


def rag_judge(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("RAG_JUDGE_", "OPENAI_"))}
    ended = subprocess.run(
        [sys.executable, "-m", "rag_judge.cli", *map(str, arguments)],
        cwd=cwd,
        env={**plain, "PYTHONPATH": str(Path(__file__).parent.parent), **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended


def test_help_lists_every_command_and_each_command_has_an_example() -> None:
    overview = rag_judge("--help").stdout
    for command in COMMANDS:
        assert command in overview
    for command in COMMANDS:
        assert f"Example: rag-judge {command}" in rag_judge(command, "--help").stdout


@pytest.mark.parametrize(
    "arguments",
    [("nonsense",), ("run", "--nonsense"), ("run", "--k", "many"), ("run",), ("regrade",), ("collect", "--out", "x")],
)
def test_wrong_usage_ends_with_2(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ended = rag_judge(*arguments, cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.strip()


def test_a_bad_file_ends_with_2_and_says_where(tmp_path: Path) -> None:
    cases = write_rows(tmp_path / "cases.jsonl", [{"id": "a", "question": "x?"}, {"id": "b"}])
    ended = rag_judge("run", "--cases", cases, "--answers", cases, "--judge", "none", cwd=tmp_path)
    assert ended.returncode == 2
    assert f"{cases}:2: question is missing" in ended.stderr
    assert not (tmp_path / "runs").exists()


def test_rules_alone_end_with_0_and_print_the_lines_people_know(tmp_path: Path) -> None:
    cases, answers = numbered_files(tmp_path, 6)
    ended = rag_judge("run", "--cases", cases, "--answers", answers, "--judge", "none", "--lang", "zh", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[0] == "端到端正确率: 4/6 = 67%"
    assert lines[1] == "Hit@5 = 6/6 = 1.00"
    assert lines[2] == "检索 Recall@5: 1.00"
    assert lines[3] == "检索 MRR: 0.50"
    assert "失败样本 2 条(明细见 runs/" in ended.stdout
    assert "[fact] q0 期望文档=[d#0] 实际=[x#0, d#0] 拒答预期=- 层=generation" in lines


def test_in_chinese_a_missing_number_says_why_in_chinese(tmp_path: Path) -> None:
    cases = write_rows(tmp_path / "c.jsonl", [{"id": "a", "question": "问?", "answer": "答", "contexts": ["资料"]}])
    ended = rag_judge("run", "--cases", cases, "--judge", "none", "--lang", "zh", cwd=tmp_path)
    assert "Hit@5 = 不适用(没有已答用例兼有相关文档与带 id 的检索结果)" in ended.stdout


def test_json_is_one_object_and_quiet_is_quiet(tmp_path: Path) -> None:
    cases, answers = numbered_files(tmp_path, 3)
    ended = rag_judge(
        "run", "--cases", cases, "--answers", answers, "--judge", "none", "--json", "--quiet", cwd=tmp_path
    )
    printed = json.loads(ended.stdout)
    assert (printed["exit_code"], printed["summary"]["n_cases"], ended.stderr) == (0, 3, "")
    listed = json.loads(rag_judge("runs", "--json", cwd=tmp_path).stdout)["runs"]
    assert [run["status"] for run in listed] == ["complete"]
    shown = json.loads(rag_judge("runs", "show", Path(printed["run"]).name, "--json", cwd=tmp_path).stdout)
    assert shown["summary"] == printed["summary"]


def test_unreadable_verdicts_end_with_4_and_a_wrong_key_with_5_without_showing_it(tmp_path: Path) -> None:
    cases, answers = numbered_files(tmp_path, 3)
    arguments: list[str | Path] = [
        "run",
        "--cases",
        cases,
        "--answers",
        answers,
        "--model",
        "m",
        "--no-reask",
        "--base-url",
    ]
    with JudgeServer(lambda _: "fine, I think") as server:
        assert rag_judge(*arguments, server.base_url, cwd=tmp_path, OPENAI_API_KEY=KEY).returncode == 4
    with JudgeServer(lambda _: UNAUTHORIZED) as server:
        ended = rag_judge(*arguments, server.base_url, cwd=tmp_path, OPENAI_API_KEY=KEY)
    assert ended.returncode == 5
    assert "Incorrect API key provided" in ended.stderr
    assert "go on with: rag-judge run --resume" in ended.stderr
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert KEY.encode() not in kept
    assert KEY not in ended.stderr


def test_a_run_goes_on_by_its_id_alone(tmp_path: Path) -> None:
    cases, answers = numbered_files(tmp_path, 3)
    healthy = [False]
    with JudgeServer(lambda _: verdict() if healthy[0] else UNAUTHORIZED) as server:
        arguments: list[str | Path] = [
            "run",
            "--cases",
            cases,
            "--answers",
            answers,
            "--model",
            "m",
            "--base-url",
            server.base_url,
        ]
        assert rag_judge(*arguments, cwd=tmp_path).returncode == 5
        healthy[0] = True
        run_id = next((tmp_path / "runs").iterdir()).name
        assert "not complete; go on with" in rag_judge("runs", "show", run_id, cwd=tmp_path).stdout
        ended = rag_judge("run", "--resume", run_id, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_without_a_judge_it_says_what_to_set(tmp_path: Path) -> None:
    cases, answers = numbered_files(tmp_path, 2)
    ended = rag_judge("run", "--cases", cases, "--answers", answers, cwd=tmp_path)
    assert ended.returncode == 2
    for name in ("--base-url", "--model", "OPENAI_BASE_URL", "OPENAI_API_KEY", "--judge none"):
        assert name in ended.stderr


def test_collecting_and_a_settings_file_work_from_the_command_line(tmp_path: Path) -> None:
    cases, _ = numbered_files(tmp_path, 3)

    def answer(body: dict[str, object]) -> dict[str, object]:
        return {"out": {"text": f"{body['q']}", "v": body["v"]}}

    with RagServer(answer) as server:
        (tmp_path / "rag-judge.toml").write_text(
            f'[endpoint]\nurl = "{server.ask_url}"\n'
            '[endpoint.request]\nq = "{{ question }}"\nv = "{{ version }}"\n'
            '[endpoint.response]\nanswer = "out.text"\nmeta = "{version: out.v}"\n',
            encoding="utf-8",
        )
        ended = rag_judge("collect", "--cases", cases, "--out", "a.jsonl", "--set", "version=2", cwd=tmp_path)
        assert ended.stdout == "a.jsonl: 3 of 3 questions answered, 0 failed\n", ended.stderr
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["meta"] for row in rows] == [{"version": 2}] * 3
    ended = rag_judge("run", "--cases", cases, "--answers", "a.jsonl", "--judge", "none", "--set", "oops", cwd=tmp_path)
    assert (ended.returncode, "--set 'oops': expected key=value" in ended.stderr) == (2, True)


def test_init_lays_a_project_once_and_overwrites_nothing(tmp_path: Path) -> None:
    first = rag_judge("init", "mine", cwd=tmp_path)
    assert first.returncode == 0
    laid = tmp_path / "mine"
    for name in ("judge_prompts/passfail/prompt.toml", "eval/rag_cases.json", "runs/.gitkeep", "rag-judge.toml"):
        assert (laid / name).is_file()
    assert (laid / ".github" / "workflows" / "rag-judge.yml").is_file()
    schedules = {"crontab", "environment.example", "gitlab-ci.yml", "rag-judge.service", "rag-judge.timer"}
    assert {path.name for path in (laid / "schedules").iterdir()} == schedules
    (laid / "rag-judge.toml").write_text("[run]\nk = 3\n", encoding="utf-8")
    again = rag_judge("init", "mine", cwd=tmp_path)
    assert again.stdout.startswith("0 files written")
    assert (laid / "rag-judge.toml").read_text(encoding="utf-8") == "[run]\nk = 3\n"


def test_the_settings_that_init_lays_are_valid(tmp_path: Path) -> None:
    rag_judge("init", ".", cwd=tmp_path)
    ended = rag_judge(
        "plan", "--cases", "eval/rag_cases.json", "--answers", "eval/rag_cases.json", "--judge", "none", cwd=tmp_path
    )
    assert ended.returncode == 0, ended.stderr
    assert "judge calls: 0 to 0" in ended.stdout


def test_the_demo_without_a_judge_grades_the_shipped_example(tmp_path: Path) -> None:
    ended = rag_judge("demo", "--no-judge", "--json", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    summary = json.loads(ended.stdout)["summary"]
    assert summary["n_answered"] == summary["n_cases"] >= 24
    assert summary["rules"]["leaks"]
    assert summary["abstention"]["should_but_answered"] > 0


def test_a_plan_says_calls_tokens_money_and_the_first_prompt(tmp_path: Path) -> None:
    cases, answers = numbered_files(tmp_path, 4)
    (tmp_path / "rag-judge.toml").write_text(
        '[judge]\nmodel = "m"\n[judge.prices.m]\nprompt = 1.0\ncompletion = 2.0\n', encoding="utf-8"
    )
    ended = rag_judge("plan", "--cases", cases, "--answers", answers, cwd=tmp_path)
    assert "judge calls: 8 to 12" in ended.stdout
    assert "money: up to 0.0" in ended.stdout
    assert "USD (rag-judge.toml)" in ended.stdout
    assert "--- first prompt, system" in ended.stdout
    assert not (tmp_path / "runs").exists()


def test_control_characters_of_a_case_never_reach_the_terminal(tmp_path: Path) -> None:
    cases = write_rows(
        tmp_path / "c.jsonl", [{"id": "a\u001b[31m\nb", "question": "x?", "must_include": ["y"], "answer": "z"}]
    )
    ended = rag_judge("run", "--cases", cases, "--judge", "none", cwd=tmp_path)
    assert "\u001b" not in ended.stdout
    assert "a [31m b" in ended.stdout


def test_one_broken_run_hides_no_other_and_a_lost_file_is_said(tmp_path: Path) -> None:
    cases, answers = numbered_files(tmp_path, 2)
    for name in ("a", "b", "c"):
        rag_judge("run", "--cases", cases, "--answers", answers, "--judge", "none", "--name", name, cwd=tmp_path)
    first, second, third = sorted((tmp_path / "runs").iterdir())
    (first / "manifest.json").write_text("{", encoding="utf-8")
    (second / "hit.txt").unlink()
    listed = rag_judge("runs", cwd=tmp_path)
    assert (listed.returncode, f"{third.name}  complete" in listed.stdout) == (0, True)
    assert "broken: " in listed.stdout
    assert rag_judge("runs", "show", first.name, cwd=tmp_path).returncode == 2
    shown = rag_judge("runs", "show", second.name, cwd=tmp_path)
    assert (shown.returncode, "hit.txt: cannot be read" in shown.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--base-url", "http://.../v1", "--model", "m"], "expected http:// or https://"),
        (["--base-url", "http://exa mple/v1", "--model", "m"], "expected http:// or https://"),
        (["--base-url", "http://u:pw@h/v1", "--model", "m"], "a user and password"),
        (["--base-url", "http://h/v1", "--model", ""], "no judge model is set"),
        (["--judge", "none", "--set", "a=1e999"], ""),
        (["--judge", "none", "--set", "a=NaN"], ""),
    ],
)
def test_odd_arguments_end_with_2_or_are_taken_as_text_and_never_with_70(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    cases, answers = numbered_files(tmp_path, 1)
    ended = rag_judge("run", "--cases", cases, "--answers", answers, *arguments, cwd=tmp_path)
    assert ended.returncode == (2 if words else 0), ended.stderr
    assert words in ended.stderr
    assert "pw" not in ended.stderr.replace("password", "")


def test_a_reader_that_has_seen_enough_and_a_full_disk_end_quietly(tmp_path: Path) -> None:
    cases, answers = numbered_files(tmp_path, 2)
    command = f"{sys.executable} -m rag_judge.cli run --cases {cases} --answers {answers} --judge none"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    for line, code in ((f"{command} | head -c 1", 0), (f"{command} > /dev/full", 5)):
        ended = subprocess.run(
            line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert ended.returncode == code, ended.stderr
        assert "Traceback" not in ended.stderr
        assert "a fault of ours" not in ended.stderr
