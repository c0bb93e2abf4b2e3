"""The journal: what a crash leaves in it, what is kept, what is sent again."""

import json
import stat
from contextlib import closing
from pathlib import Path

import pytest

from rag_judge.errors import InputError
from rag_judge.journal import Journal, RecordedReplies, n_resent
from rag_judge.records import Call, CallFailure, Reply, Usage

SENT = {"model": "m"}


def call(name: str, repeat: int = 0) -> Call:
    return Call(name, "case", repeat, None, None, (), {})


def reply(text: str) -> Reply:
    return Reply(text, "stop", "m", Usage(7, 2), 0.1, 1, SENT)


FAILED = CallFailure("no_reply", "reset", 0.1, 3, SENT)


def entry(name: str, status: str = "ok") -> str:
    return json.dumps({"call_id": name, "status": status})


@pytest.mark.parametrize(
    ("text", "kept", "left", "n_dropped"),
    [
        pytest.param("", [], "", 0, id="empty"),
        pytest.param(f"{entry('a')}\n", ["a"], f"{entry('a')}\n", 0, id="whole"),
        pytest.param(f'{entry("a")}\n{{"call_id": "b', ["a"], f"{entry('a')}\n", 0, id="half a last line"),
        pytest.param(entry("a"), ["a"], f"{entry('a')}\n", 0, id="a last line without its end"),
        pytest.param('{"call_id"', [], "", 0, id="nothing but half a line"),
        pytest.param(f"{entry('a')}\n\x00\x00\x00", ["a"], f"{entry('a')}\n", 0, id="zeros after a power loss"),
        pytest.param(
            f"{entry('a')}\nbroken\n\n{entry('b')}\n",
            ["a", "b"],
            f"{entry('a')}\n{entry('b')}\n",
            2,
            id="broken in the middle",
        ),
        pytest.param(
            f"{entry('a', 'failed')}\n{entry('b')}\n{entry('a')}\n",
            ["a", "b"],
            f"{entry('a', 'failed')}\n{entry('b')}\n{entry('a')}\n",
            0,
            id="failed, then answered",
        ),
        pytest.param(f"{entry('a', 'failed')}\n", [], f"{entry('a', 'failed')}\n", 0, id="failed on the way"),
        pytest.param(f"[]\n7\n{entry('a')}", ["a"], f"{entry('a')}\n", 2, id="no objects"),
    ],
)
def test_a_crash_costs_at_most_the_line_it_broke(
    tmp_path: Path, text: str, kept: list[str], left: str, n_dropped: int
) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text(text, encoding="utf-8")
    with closing(Journal(path)) as journal:
        assert [name for name in ("a", "b") if journal.is_kept(name)] == kept
        assert journal.n_dropped == n_dropped
        assert path.read_text(encoding="utf-8") == left
        journal.append(call("z"), reply("fine"))
    assert path.read_text(encoding="utf-8").startswith(left)
    assert all(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def test_a_reply_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with closing(Journal(path)) as journal:
        journal.append(call("a"), reply("line\none \u2028 \ud83d 汉字"))
        journal.append(call("b"), FAILED)
        assert journal.result("a") == reply("line\none \u2028 \ud83d 汉字")
        assert journal.result("b") == FAILED
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with closing(Journal(path)) as again:
        assert again.result("a") == reply("line\none \u2028 \ud83d 汉字")


def test_of_two_lines_of_one_call_the_later_counts_and_both_cost_tokens(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with closing(Journal(path)) as journal:
        for result in (FAILED, reply("second")):
            journal.about_to_send(call("a"))
            journal.append(call("a"), result)
        journal.about_to_send(call("b", 1))
        journal.append(call("b", 1), reply("other"))
    with closing(RecordedReplies(path)) as replies:
        assert replies.of_case("case") == {(0, None): reply("second"), (1, None): reply("other")}
        assert replies.of_case("nobody") == {}
        cost = replies.cost
    assert (cost.calls, cost.resent) == (2, 1)
    assert (cost.judges[0].spend.prompt_tokens, cost.judges[0].spend.without_usage) == (14, 0)
    assert n_resent(path) == 1


def test_a_finished_journal_that_was_changed_is_not_graded(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text("{}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"calls\.jsonl:1: not a line of the call journal"):
        RecordedReplies(path)


def test_a_journal_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    with closing(RecordedReplies(tmp_path / "calls.jsonl")) as replies:
        assert replies.of_case("case") == {}
