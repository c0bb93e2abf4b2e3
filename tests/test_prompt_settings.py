"""A wrong `prompt.toml` is refused when it is loaded: with the place, what was found, and what to do."""

import tomllib
from pathlib import Path

import pytest

from rag_judge.errors import InputError
from rag_judge.prompt_settings import checked_fields, score_of
from rag_judge.prompts import load_prompt
from rag_judge.records import VerdictField

PATH = Path("mine/prompt.toml")
GOOD = """
mode = "passfail"
pass_when = "cited"
[[fields]]
name = "cited"
kind = "boolean"
[[fields]]
name = "clarity"
kind = "score"
low = 1
high = 3
[[fields]]
name = "register"
kind = "choice"
choices = ["formal", "casual"]
"""


def fields_of(text: str) -> tuple[VerdictField, ...]:
    return checked_fields(tomllib.loads(text), PATH)


def test_boolean_score_and_choice_fields_are_read() -> None:
    assert fields_of(GOOD) == (
        VerdictField("cited", "boolean"),
        VerdictField("clarity", "score", (), 1, 3),
        VerdictField("register", "choice", ("formal", "casual")),
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param("low = 1", "low = 3", "found low 3, high 3; expected low below high", id="an empty scale"),
        pytest.param("low = 1", "low = 7", "found low 7, high 3", id="a scale upside down"),
        pytest.param("low = 1", 'low = "1"', "found '1', expected whole numbers", id="an end as text"),
        pytest.param("high = 3", "high = 3.5", "found 3.5, expected whole numbers", id="a fraction"),
        pytest.param("high = 3", "high = 30000", "100 apart at most", id="a scale without end"),
        pytest.param('["formal", "casual"]', "[1, 2]", "a list of at least two choices, texts all", id="numbers"),
        pytest.param('["formal", "casual"]', '"abc"', "a list of at least two choices", id="a text for a list"),
        pytest.param('["formal", "casual"]', '["Yes", "yes "]', "two of them are read alike", id="alike but for case"),
        pytest.param('name = "clarity"', 'name = "ci_ted"', "two of them are read alike", id="fields read alike"),
        pytest.param('name = "clarity"', 'name = "grounded"', "grounded is a boolean in every number", id="of ours"),
        pytest.param('name = "register"', 'name = "score"', "score is a score in every number", id="score as choice"),
        pytest.param('name = "cited"', 'name = "true"', "'true' has a meaning of its own", id="a word of the rules"),
        pytest.param('name = "cited"', 'name = "reason"', "'reason' has a meaning of its own", id="a name of ours"),
        pytest.param("high = 3", 'high = 3\npass_when = "x"', "stand above the first", id="a setting below the fields"),
        pytest.param("high = 3", "high = 3\nlevels = 4", "kind score has no 'levels'", id="an unknown key"),
        pytest.param(
            'kind = "boolean"', 'kind = "boolean"\nlow = 1', "kind boolean has no 'low'", id="of another kind"
        ),
        pytest.param('pass_when = "cited"', "pass_when = true", "pass_when: found True", id="a rule that is no text"),
        pytest.param('pass_when = "cited"', "pass_at = 9", "pass_at is 9, expected 1 to 3", id="out of reach"),
        pytest.param('pass_when = "cited"', 'pass_when = "cited"\npass_at = 2', "side by side", id="two rules"),
        pytest.param('mode = "passfail"', 'mode = "pairwise"', "needs a field of kind choice", id="pairwise without"),
    ],
)
def test_what_could_only_fail_after_replies_were_paid_for_is_refused(old: str, new: str, message: str) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    with pytest.raises((InputError, tomllib.TOMLDecodeError), match=message):
        fields_of(text)


@pytest.mark.parametrize(
    "text", ['mode = "scale"', 'mode = "scale"\nfields = ["a"]', 'mode = "scale"\n[fields]\na = 1']
)
def test_fields_are_tables_and_there_is_one(text: str) -> None:
    with pytest.raises(InputError, match=r"no \[\[fields\]\]"):
        fields_of(text)


def test_the_score_is_the_field_of_that_name_or_the_only_one_of_its_kind() -> None:
    one, named = VerdictField("clarity", "score"), VerdictField("score", "score")
    assert score_of((one,)) == one
    assert score_of((one, named)) == named
    assert score_of((one, VerdictField("depth", "score"))) is None
    assert score_of((VerdictField("cited", "boolean"),)) is None


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        pytest.param("1 / (clarity - 2) > 0", "with .*'clarity': 2.0.*division by zero", id="a middle score"),
        pytest.param("{1: true, 3: false}[clarity]", "gives Undefined for .*'clarity': 1.5", id="a median"),
        pytest.param("register", "gives 'formal' for", id="a text passes everything"),
    ],
)
def test_a_pass_rule_is_tried_on_every_decision_that_can_come(tmp_path: Path, rule: str, message: str) -> None:
    (tmp_path / "prompt.toml").write_text(GOOD.replace('"cited"', f'"{rule}"', 1), encoding="utf-8")
    (tmp_path / "en.j2").write_text("{% block system %}s{% endblock %}{% block user %}u{% endblock %}", "utf-8")
    with pytest.raises(InputError, match=message):
        load_prompt(tmp_path)
