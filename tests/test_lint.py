"""What `lint` finds: nothing in a clean set, each planted weakness under its own code, and nothing beside it."""

import copy
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rag_judge.cases import CaseSet, case_from_row, question_hash
from rag_judge.corpus import Corpus
from rag_judge.errors import InputError
from rag_judge.likeness import bare, nearly_alike
from rag_judge.lint import Finding, grading_of, lint, lint_runs
from rag_judge.lint_cases import asks_several
from rag_judge.lint_words import CODES, FOUND, REASONS
from rag_judge.rows import Row
from tests.eval_sets import numbered_files, write_rows
from tests.lint_sets import clean_set, write_set
from tests.test_cli import rag_judge

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 0.125  # what 40 cases can hold: ±0.121
Rows = dict[str, dict[str, Any]]


def found_in(
    folder: Path, cases: Rows, chunks: Rows | None, *, half_width: float = WIDTH, lang: str = "en"
) -> list[Finding]:
    cases_path, corpus_path = write_set(folder, cases, chunks or {"x": {"id": "x", "text": "x"}})
    with closing(CaseSet(cases_path)) as case_set:
        corpus = None if chunks is None else Corpus(corpus_path)
        return lint(case_set, corpus, half_width=half_width, lang=lang)


def codes(found: list[Finding]) -> list[tuple[str, str, str | None]]:
    return [(finding.code, finding.severity, finding.case_id) for finding in found]


def test_a_clean_set_gives_no_finding_with_and_without_its_corpus(tmp_path: Path) -> None:
    cases, chunks = clean_set()
    assert found_in(tmp_path, cases, chunks) == []
    assert found_in(tmp_path, cases, None) == []


LONG = "我上个星期在城东办事的时候借了一辆车，" * 7 + "这种情况该找谁？"

# (code, severity, case) -> fields that are changed; None takes a field out. A chunk's id changes the chunk.
PLANTED = [
    pytest.param(
        "duplicate-question", "advice", "c02", {"c02": {"question": "头一回骑 要先压多少钱?"}}, id="duplicate"
    ),
    pytest.param(
        "near-duplicate-question",
        "advice",
        "c38",
        {"c38": {"question": "请问你们在海南有没有分公司？", "tenant": None}},
        id="near duplicate, Chinese",
    ),
    pytest.param(
        "near-duplicate-question",
        "advice",
        "c37",
        {"c37": {"question": "Do you rent out a rowing boat?"}},
        id="near duplicate, English",
    ),
    pytest.param(
        "near-duplicate-question",
        "advice",
        "c02",
        {
            "c01": {"question": "第一次骑车之前要先交多少押金？"},
            "c02": {
                "question": "第一次骑车之前需要先交多少押金？",
                "relevant_docs": ["rent#1"],
                "must_include": ["199 元"],
            },
        },
        id="near duplicate, the same answer",
    ),
    pytest.param(
        "question-copied-from-heading",
        "advice",
        "c01",
        {"c01": {"question": "首次用车押金规则是什么？"}, "rent#1": {"heading": "租车 > 首次用车押金规则"}},
        id="heading, Chinese",
    ),
    pytest.param(
        "question-copied-from-heading",
        "advice",
        "c19",
        {
            "c19": {"question": "What are the electric bike charging rules?"},
            "fleet#1": {"heading": "Fleet > Electric bike charging rules"},
        },
        id="heading, English",
    ),
    pytest.param(
        "question-copied-from-text",
        "advice",
        "c06",
        {"c06": {"question": "车辆丢失须在多少小时内报案，凭回执免赔？"}},
        id="text, Chinese",
    ),
    pytest.param(
        "question-copied-from-text",
        "advice",
        "c25",
        {"c25": {"question": "Can receipts be downloaded for 18 months, later ones on request?"}},
        id="text, English",
    ),
    pytest.param(
        "several-questions",
        "advice",
        "c09",
        {"c09": {"question": "出差去外地，月卡能先停多久？能停几次？"}},
        id="two question marks",
    ),
    pytest.param(
        "several-questions",
        "advice",
        "c09",
        {"c09": {"question": "月卡能先停多久以及怎么恢复"}},
        id="a connective, Chinese",
    ),
    pytest.param(
        "several-questions",
        "advice",
        "c21",
        {"c21": {"question": "How often do they get a wash, and also who does it?"}},
        id="a connective, English",
    ),
    pytest.param(
        "several-questions",
        "advice",
        "c21",
        {"c21": {"question": "How often do they get a wash and what comes first?"}},
        id="and what",
    ),
    pytest.param("vague-point", "advice", "c13", {"c13": {"must_include": ["3"]}}, id="a bare digit"),
    pytest.param("vague-point", "advice", "c13", {"c13": {"must_include": ["3 元", "元。"]}}, id="one character"),
    pytest.param(
        "vague-point",
        "advice",
        "c04",
        {"c04": {"must_include": ["每"]}, "rent#4": {"text": "停在框外每次加收 12 元。"}},
        id="one character of the text",
    ),
    pytest.param(
        "vague-acceptable",
        "advice",
        "c13",
        {"c13": {"must_include": None, "acceptable": ["3 元", "３"]}},
        id="acceptable of one character",
    ),
    pytest.param(
        "vague-acceptable",
        "error",
        "c13",
        {"c13": {"must_include": None, "acceptable": ["3 元", "无法回答"]}},
        id="a refusal is acceptable, Chinese",
    ),
    pytest.param(
        "vague-acceptable",
        "error",
        "c21",
        {"c21": {"must_include": None, "acceptable": ["fortnight", "no information"]}},
        id="a refusal is acceptable, English",
    ),
    pytest.param(
        "relevant-doc-missing-field", "advice", "c05", {"c05": {"relevant_docs": None}}, id="no relevant document"
    ),
    pytest.param(
        "relevant-doc-missing-field",
        "advice",
        "c05",
        {"c05": {"relevant_docs": {"rent#5": 0}}},
        id="none of a grade above 0",
    ),
    pytest.param(
        "relevant-doc-not-in-corpus",
        "error",
        "c05",
        {"c05": {"relevant_docs": ["rent#5", "rent#55"]}},
        id="unknown chunk",
    ),
    pytest.param(
        "relevant-doc-not-in-corpus", "error", "c05", {"c05": {"relevant_docs": ["Rent"]}}, id="unknown document"
    ),
    pytest.param(
        "key-point-not-in-relevant", "error", "c05", {"c05": {"must_include": [["半价", "五折"]]}}, id="nowhere"
    ),
    pytest.param(
        "key-point-not-in-relevant",
        "error",
        "c05",
        {"c05": {"must_include": ["调度费"]}},
        id="beside, in the same document",
    ),
    pytest.param(
        "key-point-not-in-relevant",
        "advice",
        "c05",
        {"c05": {"must_include": None, "acceptable": ["不要钱", "不收费"]}},
        id="acceptable, in other words",
    ),
    pytest.param(
        "key-point-not-in-relevant",
        "error",
        "c01",
        {"c01": {"must_include": ["99 元"]}},
        id="only inside a longer number",
    ),
    pytest.param(
        "key-point-split",
        "advice",
        "c05",
        {
            "rent#5": {"text": "车辆无法骑行时扫码报修，当次费用全"},
            "rent#6": {"text": "免。车辆丢失须在 24 小时内报案。"},
        },
        id="across a border",
    ),
    pytest.param(
        "stale-gold",
        "error",
        "c05",
        {"rent#5": {"text": "本条已废止。"}, "site#4": {"text": "沿江路的四个站点停用，当次费用全免。"}},
        id="moved to another document",
    ),
    pytest.param(
        "stale-gold",
        "advice",
        "c05",
        {
            "c05": {"must_include": None, "acceptable": ["全免"]},
            "rent#5": {"text": "本条已废止。"},
            "site#4": {"text": "沿江路的四个站点停用，当次费用全免。"},
        },
        id="moved, of an acceptable wording",
    ),
    pytest.param(
        "contradictory-expectation", "error", "c35", {"c35": {"must_include": ["海口"]}}, id="refusal with points"
    ),
    pytest.param(
        "contradictory-expectation", "error", "c35", {"c35": {"relevant_docs": ["site#1"]}}, id="refusal with documents"
    ),
    pytest.param(
        "contradictory-expectation", "error", "c01", {"c01": {"must_not_include": ["199元"]}}, id="needed and forbidden"
    ),
    pytest.param(
        "contradictory-expectation",
        "error",
        "c01",
        {"c01": {"must_not_include": ["99"]}},
        id="forbidden inside what is needed",
    ),
    pytest.param(
        "contradictory-expectation",
        "error",
        "c01",
        {"c01": {"must_include": None, "acceptable": ["199 元"], "must_not_include": ["199 元"]}},
        id="acceptable and forbidden",
    ),
    pytest.param(
        "contradictory-expectation",
        "error",
        "c05",
        {"c05": {"type": "refusal"}},
        id="a type that refuses, and an answer",
    ),
    pytest.param(
        "forbidden-doc-matches-nothing",
        "advice",
        "c27",
        {"c27": {"forbidden_docs": ["south#*", "tenant-*"]}},
        id="pattern",
    ),
    pytest.param(
        "forbidden-doc-matches-nothing",
        "advice",
        "c27",
        {"c27": {"forbidden_docs": ["south#*", "south"]}},
        id="a document in place of its chunks",
    ),
    pytest.param(
        "forbidden-doc-matches-nothing",
        "advice",
        "c27",
        {"c27": {"forbidden_docs": ["South#*", "south#*"]}},
        id="case matters",
    ),
    pytest.param(
        "forbidden-doc-is-relevant", "error", "c27", {"c27": {"forbidden_docs": ["*#1"]}}, id="forbidden by a pattern"
    ),
    pytest.param("forbidden-doc-is-relevant", "error", "c27", {"north#1": {"tenant": "south"}}, id="of another tenant"),
    pytest.param(
        "no-expectation",
        "advice",
        "c05",
        {"c05": {"relevant_docs": None, "must_include": None, "expect_refusal": None}},
        id="nothing is stated",
    ),
    pytest.param(
        "tenant-without-forbidden", "advice", "c27", {"c27": {"forbidden_docs": None}}, id="no forbidden document"
    ),
    pytest.param("question-too-long", "advice", "c05", {"c05": {"question": LONG}}, id="long, Chinese"),
    pytest.param(
        "question-too-long",
        "advice",
        "c21",
        {
            "c21": {
                "question": "I saw a muddy one near the station today and " * 12
                + "wonder: how often do they get a wash?"
            }
        },
        id="long, English",
    ),
    pytest.param(
        "language-mix",
        "advice",
        "c05",
        {"c05": {"question": "The chain broke halfway, do I have to pay for that trip?"}},
        id="English question, Chinese points",
    ),
    pytest.param(
        "language-mix",
        "advice",
        "c22",
        {"c22": {"question": "旧铃铛最后去哪儿了？"}},
        id="Chinese question, English points",
    ),
]


def planted(changes: Rows) -> tuple[Rows, Rows]:
    cases, chunks = copy.deepcopy(clean_set())
    for name, fields in changes.items():
        row = cases.get(name) or chunks[name]
        row.update(fields)
        for field in [field for field, value in row.items() if value is None]:
            del row[field]
    return cases, chunks


@pytest.mark.parametrize(("code", "severity", "case_id", "changes"), PLANTED)
def test_a_planted_weakness_is_found_under_its_code_and_no_other(
    tmp_path: Path, code: str, severity: str, case_id: str, changes: Rows
) -> None:
    found = found_in(tmp_path, *planted(changes))
    assert codes(found) == [(code, severity, case_id)]
    assert found[0].line == int(case_id[1:])


ONE_TYPE: Rows = {f"c{n:02}": {"type": "fact"} for n in range(1, 41)}
NO_TENANTS: Rows = {f"c{n:02}": {"tenant": None, "forbidden_docs": None} for n in range(27, 41)}
NO_TENANT_CHUNKS: Rows = {f"{name}#{n}": {"tenant": None} for name in ("north", "south") for n in (1, 2, 3)}


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        pytest.param(
            "few-out-of-scope",
            {
                "c37": {
                    "type": "fact",
                    "expect_refusal": False,
                    "must_include": ["Marta Voss"],
                    "relevant_docs": ["app#4"],
                }
            },
            id="7 of 40 refuse",
        ),
        pytest.param(
            "no-cross-tenant", {f"c{n}": {"forbidden_docs": None, "tenant": None} for n in (38, 39, 40)}, id="no case"
        ),
        pytest.param("no-cross-tenant", NO_TENANTS, id="tenants in the corpus alone"),
        pytest.param("no-red-line", {f"c{n}": {"red_line": None} for n in (38, 39, 40)}, id="no red line"),
        pytest.param("type-under-covered", {f"c{n:02}": {"type": "policy"} for n in range(1, 5)}, id="four of a type"),
    ],
)
def test_a_weakness_of_the_whole_set_has_no_case(tmp_path: Path, code: str, changes: Rows) -> None:
    found = found_in(tmp_path, *planted(changes))
    assert codes(found) == [(code, "advice", None)]
    assert found[0].line is None


def test_without_tenants_nobody_asks_for_cases_across_them(tmp_path: Path) -> None:
    assert found_in(tmp_path, *planted(NO_TENANTS | NO_TENANT_CHUNKS)) == []


def test_a_set_too_small_says_how_many_cases_it_takes(tmp_path: Path) -> None:
    # Wilson at 0.8: half width z*sqrt(0.16/n + z^2/4n^2)/(1 + z^2/n) is 0.1213 for 40, 0.0998 for 60, 0.1041 for 55.
    cases, _ = clean_set()
    (found,) = found_in(tmp_path, cases, None, half_width=0.1)
    assert found.code == "too-few-cases"
    assert found.what == "40 cases give a rate of 80 % to within ±12.1 points; for ±10 it takes 60"


@pytest.mark.parametrize("half_width", [0.0, 0.5, -1.0, float("nan")])
def test_a_half_width_that_no_rate_has_is_refused(tmp_path: Path, half_width: float) -> None:
    with pytest.raises(InputError, match="--half-width"):
        found_in(tmp_path, clean_set()[0], None, half_width=half_width)


def test_a_point_in_every_fifth_case_or_chunk_is_vague(tmp_path: Path) -> None:
    everywhere: Rows = {f"c{n:02}": {"must_include": ["按规定办理"]} for n in range(1, 9)}
    cases, chunks = planted(everywhere)
    found = found_in(tmp_path, cases, None)  # 7 of the 31 others that have points: 23 %
    assert codes(found) == [("vague-point", "advice", f"c{n:02}") for n in range(1, 9)]
    assert "“按规定办理” stands in what more than 20 % of the other cases" in found[0].what
    fewer = planted({name: fields for name, fields in everywhere.items() if name < "c08"})[0]
    assert found_in(tmp_path, fewer, None) == []  # 6 of 31: 19 %
    for chunk in list(chunks.values())[:7]:  # 7 of 32 chunks: 22 %
        chunk["text"] += "按规定办理。"
    alone = planted({"c01": {"must_include": ["按规定办理"]}})[0]
    assert codes(found_in(tmp_path, alone, chunks)) == [("vague-point", "advice", "c01")]


def test_the_same_question_with_another_expectation_is_an_error(tmp_path: Path) -> None:
    found = found_in(tmp_path, *planted({"c33": {"question": "头一回骑要先压多少钱"}}))
    assert codes(found) == [
        ("duplicate-question", "advice", "c33"),
        ("contradictory-expectation", "error", "c33"),
    ]
    assert "the same question as c01 (line 1)" in found[1].what


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"c40": {"question": "Southgate 商场一趟付你们多少？"}}, id="the same question of another tenant"),
        pytest.param(
            {"c02": {"question": "头一回骑要先压多少钱？", "history": ["我想办月卡"]}}, id="after other turns"
        ),
        pytest.param(
            {"c07": {"question": "办一张月卡能骑多少次？"}, "c09": {"question": "办一张月卡能停多少天？"}},
            id="other points",
        ),
        pytest.param({"c37": {"question": "Do you rent out racing boats?", "expect_refusal": True}}, id="far enough"),
        pytest.param(
            {"c34": {"question": "你们在海南有 2 个分公司吗？"}, "c35": {"question": "你们在海南有 3 个分公司吗？"}},
            id="numbers",
        ),
        pytest.param({"c01": {"question": "还有多久才能拿回押金？"}}, id="a connective that connects nothing"),
        pytest.param({"c21": {"question": "When and how often do they get a wash?"}}, id="when and how often"),
        pytest.param(
            {"c05": {"question": "链接 https://bike.example/?a=1 打不开，坏车还收钱吗？"}}, id="a mark in an address"
        ),
        pytest.param({"c01": {"must_include": [["一百九十九", "199 元"]]}}, id="one wording in the chunk suffices"),
        pytest.param({"c01": {"relevant_docs": ["rent"]}}, id="a document in place of its chunks"),
        pytest.param({"c01": {"relevant_docs": {"rent#1": 2, "gone#1": 0}}}, id="a document of grade 0 may be gone"),
        pytest.param(
            {"c08": {"must_include": None, "acceptable": ["不可转让", "不可分给家人"]}}, id="a no that answers"
        ),
        pytest.param({"c02": {"must_not_include": ["118 元"]}}, id="forbidden is more than what is needed"),
        pytest.param(
            {
                "c07": {"must_include": ["60 次"], "question": "How many rides are in the monthly pass?"},
                "card#1": {"text": "The pass includes 60 次 (rides)."},
            },
            id="points in both languages",
        ),
        pytest.param(
            {"c36": {"reference": "No."}, "c35": {"acceptable": ["没有相关信息"]}},
            id="refusal wordings where they belong",
        ),
    ],
)
def test_what_is_no_weakness_is_not_found(tmp_path: Path, changes: Rows) -> None:
    assert codes(found_in(tmp_path, *planted(changes))) == []


def test_a_relevant_document_that_is_forbidden_is_seen_without_the_corpus(tmp_path: Path) -> None:
    cases, chunks = planted(
        {"c27": {"forbidden_docs": ["*#1"]}, "c28": {"relevant_docs": ["north"], "forbidden_docs": ["north#*"]}}
    )
    assert codes(found_in(tmp_path, cases, None)) == [("forbidden-doc-is-relevant", "error", "c27")]
    both = [("forbidden-doc-is-relevant", "error", "c27"), ("forbidden-doc-is-relevant", "error", "c28")]
    assert codes(found_in(tmp_path, cases, chunks)) == both  # a document stands for all of its chunks


def test_findings_are_sorted_by_line_after_those_of_the_set(tmp_path: Path) -> None:
    cases, chunks = planted(
        {"c30": {"forbidden_docs": None}, "c05": {"relevant_docs": None}, "c01": {"must_include": ["元"]}}
    )
    found = found_in(tmp_path, cases, chunks, half_width=0.1)
    assert [(finding.code, finding.line) for finding in found] == [
        ("too-few-cases", None),
        ("vague-point", 1),
        ("relevant-doc-missing-field", 5),
        ("tenant-without-forbidden", 30),
    ]


def test_lines_are_those_of_the_users_file(tmp_path: Path) -> None:
    cases = [{"id": "a", "question": "Is it open?", "expect_refusal": True}, {"id": "b", "question": "Who knows?"}]
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(cases, indent=2), encoding="utf-8")
    with closing(CaseSet(path)) as case_set:
        lines = {finding.code: finding.line for finding in lint(case_set)}
    assert lines["no-expectation"] == 7


# --- words ----------------------------------------------------------------------------------------------------------


def test_every_code_has_words_in_both_languages_and_stands_in_the_documentation() -> None:
    page = (ROOT / "docs" / "lint.md").read_text(encoding="utf-8")
    assert REASONS["en"].keys() == REASONS["zh"].keys()
    assert FOUND["en"].keys() == FOUND["zh"].keys()
    assert {key.partition("/")[0] for key in FOUND["en"]} == set(CODES)
    assert [code for code in CODES if f"`{code}`" not in page] == []


@pytest.mark.parametrize(("code", "severity", "case_id", "changes"), PLANTED)
def test_every_finding_is_worded_in_chinese(
    tmp_path: Path, code: str, severity: str, case_id: str, changes: Rows
) -> None:
    for finding in found_in(tmp_path, *planted(changes), lang="zh"):
        for said in (finding.what, finding.why, finding.mend):
            assert any("\u4e00" <= c <= "\u9fff" for c in said)
            assert "{" not in said
            assert not said.endswith(("。", "."))


def test_words_of_the_file_are_no_templates(tmp_path: Path) -> None:
    (found,) = found_in(tmp_path, *planted({"c01": {"must_include": ["{lang} {0} {"]}}))
    assert "“{lang} {0} {”" in found.what


# --- alike questions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("How long is the trial?", "how long is  the trial", True),
        ("C++ 支持吗", "C 支持吗", False),
        ("降到 1.5 了吗", "降到 15 了吗", False),
        ("试用期“多久”?", "试用期多久", True),
    ],
)
def test_punctuation_and_case_make_no_other_question(one: str, other: str, alike: bool) -> None:
    assert (bare(one) == bare(other)) is alike


def test_the_most_alike_earlier_question_is_named() -> None:
    questions = [
        "第一次骑车之前要先交多少押金",
        "冬天在江边还车要注意什么",
        "第一次骑车之前先交多少押金",
        "第一次骑车之前先交多少押金呢",
    ]
    assert nearly_alike(questions, lambda one, other: True) == {2: 0, 3: 2}
    assert nearly_alike(questions, lambda one, other: one != 2) == {2: 0}


def test_alike_questions_are_found_among_thousands_of_one_template() -> None:
    names = [
        f"{a}{b}{c}" for a in "甲乙丙丁戊己庚辛壬癸" for b in "子丑寅卯辰巳午未申酉" for c in "天地玄黄宇宙洪荒日月"
    ]
    questions = [f"请问{name}号仓库的值班电话是多少" for name in names]
    copies = {len(questions) + n: 97 * n for n in range(10)}
    questions += [f"{questions[earlier]}呀" for earlier in copies.values()]
    found = nearly_alike(questions, lambda one, other: other >= 1000)
    assert found == copies


@pytest.mark.parametrize(
    ("question", "several"),
    [
        ("一共几个人，分别是谁？", False),
        ("押金多少？什么时候退？", True),
        ("What does it cost? Is it worth it?", True),
        ("Really?! How long?", True),
        ("What is it, really?!", False),
        ("试用期多久，另外转正要交什么材料", True),
        ("另外请问转正要交什么材料", False),
        ("How many seats and how much storage does the plan have?", True),
        ("Where and when is the meeting?", False),
        ("Do you sell bells and whistles?", False),
    ],
)
def test_several_questions_are_told_from_one(question: str, several: bool) -> None:
    assert asks_several(question) is several


# --- after runs -----------------------------------------------------------------------------------------------------


def table(**outcomes: Any) -> pd.DataFrame:
    """A run's cases by id: an outcome, or its cells."""
    rows = [
        {"id": name, "flipped": None, "judges_disagree": None}
        | (cells if isinstance(cells, dict) else {"outcome": cells})
        for name, cells in outcomes.items()
    ]
    frame = pd.DataFrame(rows).convert_dtypes(dtype_backend="pyarrow")
    return frame.astype({"flipped": "bool[pyarrow]", "judges_disagree": "bool[pyarrow]"})


def test_a_set_is_saturated_when_every_case_passed_in_every_run() -> None:
    assert codes(lint_runs([table(a="pass", b="pass"), table(a="pass", b="pass")])) == [("saturated", "advice", None)]
    assert lint_runs([table(a="pass", b="pass"), table(a="pass", b="unscored")]) == []
    assert lint_runs([]) == []


def test_a_case_is_flaky_only_between_runs_of_the_same_system_and_answers() -> None:
    runs = [table(a="pass", b="pass", c="pass"), table(a="fail", b="pass", c="no_answer")]
    (found,) = lint_runs(runs)
    assert (found.code, found.case_id, found.what) == (
        "flaky",
        "a",
        "ended as pass, fail in runs of the same system and answers",
    )
    assert lint_runs(runs, gradings=["v1", "v2"]) == []


def test_a_case_on_which_judges_or_repeats_differ_is_disputed_once() -> None:
    cells = {"outcome": "fail", "flipped": True, "judges_disagree": True}
    found = lint_runs([table(a=cells, b="pass"), table(a=cells, b={"outcome": "pass", "flipped": True})])
    assert [(finding.case_id, finding.code) for finding in found] == [("a", "disputed"), ("b", "disputed")]
    assert found[0].what != found[1].what


def test_rows_of_other_questions_are_left_out(tmp_path: Path) -> None:
    rows = [{"id": "b", "question": "b?"}, {"id": "a", "question": "a?"}]
    hashes = {str(row["id"]): question_hash(case_from_row(Row(row, "", 1, 0, False))) for row in rows}
    tables = [
        table(
            a={"outcome": outcome, "question_sha256": hashes["a"]},
            b={"outcome": outcome, "question_sha256": "of another wording"},
            gone={"outcome": outcome, "question_sha256": hashes["a"]},
        )
        for outcome in ("pass", "fail")
    ]
    with closing(CaseSet(write_rows(tmp_path / "c.jsonl", rows))) as cases:
        found = lint_runs(tables, cases)
    assert [(finding.code, finding.case_id, finding.line) for finding in found] == [("flaky", "a", 2)]


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_prints_a_line_a_finding_and_ends_with_its_code(tmp_path: Path) -> None:
    cases, corpus = write_set(tmp_path, *planted({"c05": {"must_include": ["半价"]}, "c30": {"forbidden_docs": None}}))
    arguments = ("lint", cases, "--corpus", corpus, "--half-width", str(WIDTH))
    ended = rag_judge(*arguments, cwd=tmp_path)
    lines = ended.stdout.splitlines()
    assert (ended.returncode, len(lines), lines[2]) == (2, 3, "40 cases: 1 errors, 1 pieces of advice")
    assert lines[0].startswith("error key-point-not-in-relevant c05 (line 5): “半价” stands nowhere in the corpus. An ")
    assert " -> " in lines[0]
    assert lines[1].startswith("advice tenant-without-forbidden c30 (line 30): ")
    chinese = rag_judge(*arguments, "--lang", "zh", cwd=tmp_path).stdout.splitlines()
    assert chinese[0].startswith("错误 key-point-not-in-relevant c05(第 5 行): 整个知识库中都没有 “半价”。")
    assert chinese[2] == "40 条用例:1 个错误,1 条建议"


def test_advice_alone_ends_with_0_and_strictly_with_1(tmp_path: Path) -> None:
    cases, _ = write_set(tmp_path, *planted({"c30": {"forbidden_docs": None}}))
    arguments = ("lint", cases, "--half-width", str(WIDTH), "--json")
    ended = rag_judge(*arguments, cwd=tmp_path)
    printed = json.loads(ended.stdout)
    assert (ended.returncode, printed["cases"], printed["errors"], printed["advice"]) == (0, 40, 0, 1)
    assert printed["findings"][0].keys() == {"code", "severity", "case_id", "line", "what", "why", "mend"}
    assert rag_judge(*arguments, "--strict", cwd=tmp_path).returncode == 1
    clean, _ = write_set(tmp_path, *clean_set())
    assert rag_judge("lint", clean, "--half-width", str(WIDTH), "--strict", cwd=tmp_path).returncode == 0


def test_no_control_character_of_a_case_reaches_the_terminal(tmp_path: Path) -> None:
    evil = "c\x1b[2J\x9b31m\u202e\ud800"
    rows = [{"id": evil, "question": f"{evil}?", "must_include": [evil, "5"], "relevant_docs": [evil], "type": evil}]
    (tmp_path / "c.jsonl").write_text(json.dumps(rows[0]) + "\n", encoding="utf-8")
    corpus = write_rows(tmp_path / "k.jsonl", [{"id": "x", "text": "x"}])
    for extra in ((), ("--json",)):
        ended = rag_judge("lint", "c.jsonl", "--corpus", corpus, *extra, cwd=tmp_path)
        assert ended.returncode == 2, ended.stderr
        assert [c for c in ended.stdout + ended.stderr if not c.isprintable() and c != "\n"] == []
    named = {finding["case_id"] for finding in json.loads(ended.stdout)["findings"]}
    assert named == {None, evil}


def test_runs_of_the_same_cases_are_looked_at(tmp_path: Path) -> None:
    cases, answers = numbered_files(tmp_path, 4)
    for name in ("one", "two"):
        ended = rag_judge(
            "run", "--cases", cases, "--answers", answers, "--judge", "none", "--name", name, cwd=tmp_path
        )
        assert ended.returncode == 0, ended.stderr
    names = [path.name for path in sorted((tmp_path / "runs").iterdir())]
    assert grading_of(json.loads((tmp_path / "runs" / names[0] / "manifest.json").read_bytes())) == grading_of(
        json.loads((tmp_path / "runs" / names[1] / "manifest.json").read_bytes())
    )
    ended = rag_judge("lint", cases, "--runs", names[0], "--runs", names[1], "--json", cwd=tmp_path)
    found = [finding["code"] for finding in json.loads(ended.stdout)["findings"]]
    assert "saturated" not in found  # q0 lacks its key point
    write_rows(tmp_path / "passed.jsonl", [{"id": "q1", "question": "Question 1: how many seats?"}])
    ended = rag_judge("lint", "passed.jsonl", "--runs", names[0], "--json", cwd=tmp_path)
    assert "saturated" in [finding["code"] for finding in json.loads(ended.stdout)["findings"]]
    missing = rag_judge("lint", cases, "--runs", "2020-01-01-none", cwd=tmp_path)
    assert (missing.returncode, "no run '2020-01-01-none'" in missing.stderr) == (2, True)


def test_help_has_an_example() -> None:
    assert "Example: rag-judge lint" in rag_judge("lint", "--help").stdout


def test_a_bad_file_ends_with_2_and_says_where(tmp_path: Path) -> None:
    cases = write_rows(tmp_path / "c.jsonl", [{"id": "a", "question": "x?"}])
    corpus = write_rows(tmp_path / "k.jsonl", [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}])
    for arguments, message in (
        (("lint", corpus), f"{corpus}:1: question is missing"),
        (("lint", cases, "--corpus", corpus), f"{corpus}:2: id 'a' stands twice"),
        (("lint", cases, "--half-width", "0.7"), "--half-width: found 0.7"),
    ):
        ended = rag_judge(*arguments, cwd=tmp_path)
        assert (ended.returncode, message in ended.stderr) == (2, True), ended.stderr
