"""Majorities over planned repeats, and early stopping that decides as all repeats would."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_judge.records import Unscored, Value, Verdict, VerdictField
from rag_judge.votes import Vote, decide, is_settled

GROUNDED = (VerdictField("grounded", "boolean"),)
THREE = tuple(VerdictField(name, "boolean") for name in ("grounded", "complete", "should_abstain"))
SCORE = (VerdictField("score", "score"),)
WINNER = (VerdictField("winner", "choice", ("A", "B", "tie")),)


def votes(text: str) -> list[Vote]:
    """T and F are read verdicts of one field, x one that could not be read."""
    return [Unscored("unreadable") if c == "x" else Verdict({"grounded": c == "T"}) for c in text]


@pytest.mark.parametrize(
    ("given_votes", "n_planned", "value", "n_votes"),
    [
        pytest.param("TTF", 3, True, 3, id="two of three"),
        pytest.param("TF", 2, None, 2, id="even split"),
        pytest.param("TxF", 3, None, 2, id="a lost vote makes it even"),
        pytest.param("TxT", 3, True, 2, id="two of three planned"),
        pytest.param("xTx", 3, None, 1, id="one of three planned is no majority"),
        pytest.param("TTTFFxx", 7, None, 5, id="the lost votes could have turned it"),
        pytest.param("TT", 3, True, 2, id="stopped early"),
    ],
)
def test_a_value_needs_more_than_half_of_the_planned_repeats(
    given_votes: str, n_planned: int, value: bool | None, n_votes: int
) -> None:
    decision = decide(votes(given_votes), n_planned, GROUNDED, None)
    assert (decision.values["grounded"], decision.n_votes, decision.unscored) == (value, n_votes, False)


def test_no_read_vote_is_unscored_with_the_reason_of_the_last_repeat() -> None:
    decision = decide([Unscored("truncated"), Unscored("refused")], 2, GROUNDED, lambda values: True)
    assert (decision.unscored, decision.unscored_reason, decision.judge_pass) == (True, "refused", None)
    assert decision.values == {"grounded": None}


@pytest.mark.parametrize(
    ("given_votes", "flipped"), [("TF", True), ("TT", False), ("Tx", None), ("xTF", None), ("T", None), ("TTF", False)]
)
def test_a_flip_is_between_the_first_two_repeats_alone(given_votes: str, flipped: bool | None) -> None:
    assert decide(votes(given_votes), 3, GROUNDED, None).flipped is flipped


def test_pass_follows_where_every_value_of_an_undecided_field_gives_the_same() -> None:
    def passes(values: object) -> bool:
        assert isinstance(values, dict)
        return bool(values["grounded"] and values["complete"])

    def verdict(grounded: bool, complete: bool) -> Verdict:
        return Verdict({"grounded": grounded, "complete": complete, "should_abstain": False})

    # grounded is split; complete is false both times: it fails whatever grounded is
    failing = decide([verdict(True, False), verdict(False, False)], 2, THREE, passes)
    assert (failing.values["grounded"], failing.judge_pass) == (None, False)
    # grounded is split; complete is true: the pass hangs on grounded
    open_case = decide([verdict(True, True), verdict(False, True)], 2, THREE, passes)
    assert (open_case.values["grounded"], open_case.judge_pass) == (None, None)


@pytest.mark.parametrize(
    ("scores", "n_planned", "median"),
    [
        ([4, 4, 2], 3, 4.0),
        ([4, 5], 2, 4.5),
        ([3, None, None], 3, None),
        ([3, 5, None], 3, 4.0),
        ([1, 2, 3, 4], 5, 2.5),
    ],
)
def test_a_score_is_the_median_of_the_read_ones_if_more_than_half_were_read(
    scores: list[int | None], n_planned: int, median: float | None
) -> None:
    given_votes: list[Vote] = [Unscored("unreadable") if s is None else Verdict({"score": s}) for s in scores]
    assert decide(given_votes, n_planned, SCORE, None).values["score"] == median


def test_no_vote_and_more_votes_than_planned_are_faults_of_the_caller() -> None:
    with pytest.raises(ValueError, match="0 votes for 3 planned"):
        decide([], 3, GROUNDED, None)
    with pytest.raises(ValueError, match="3 votes for 2 planned"):
        decide(votes("TTT"), 2, GROUNDED, None)


# --- early stopping --------------------------------------------------------------------------------------------------


def stopped_early(all_votes: list[Vote], fields: tuple[VerdictField, ...]) -> list[Vote]:
    """The votes that are asked when asking stops as soon as the case is settled."""
    asked: list[Vote] = []
    for vote in all_votes:
        if is_settled(asked, len(all_votes), fields):
            break
        asked.append(vote)
    return asked


def vote_of(fields: tuple[VerdictField, ...]) -> st.SearchStrategy[Vote]:
    def values(field: VerdictField) -> st.SearchStrategy[Value]:
        if field.kind == "boolean":
            return st.booleans()
        return st.integers(1, 5) if field.kind == "score" else st.sampled_from(field.choices)

    read = st.fixed_dictionaries({field.name: values(field) for field in fields}).map(Verdict)
    return st.one_of(read, st.just(Unscored("unreadable")))


@pytest.mark.parametrize("fields", [GROUNDED, THREE, SCORE, WINNER], ids=["one", "three", "score", "winner"])
@given(data=st.data())
def test_stopping_early_decides_as_all_repeats_would(fields: tuple[VerdictField, ...], data: st.DataObject) -> None:
    all_votes = data.draw(st.lists(vote_of(fields), min_size=1, max_size=7))
    asked = stopped_early(all_votes, fields)
    early, full = (decide(some, len(all_votes), fields, None) for some in (asked, all_votes))
    assert early.values == full.values
    assert early.unscored == full.unscored
    assert early.flipped == full.flipped
    assert len(asked) >= min(2, len(all_votes))


def test_asking_goes_on_exactly_while_some_reply_could_still_change_something() -> None:
    """Exhaustive for one field and up to five repeats: settled if and only if every ending decides the same."""
    options = "TFx"
    for n_planned in range(2, 6):
        for n_asked in range(2, n_planned):
            for begun in product(options, repeat=n_asked):
                ends = {
                    (decision.values["grounded"], decision.unscored)
                    for rest in product(options, repeat=n_planned - n_asked)
                    for decision in [decide(votes("".join(begun + rest)), n_planned, GROUNDED, None)]
                }
                settled = is_settled(votes("".join(begun)), n_planned, GROUNDED)
                assert settled == (len(ends) == 1), (begun, n_planned, ends)
