"""Rule checks of one answer: key points, wording, refusal, citations, leaks."""

import fnmatch
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_judge.records import Answer, Case, Context, RuleChecks
from rag_judge.rules import check, dangling_citations, leaked_ids, lexical_support


def contexts(*texts: str, **ids_and_texts: str) -> tuple[Context, ...]:
    return tuple(Context(f"d#{i}", text) for i, text in enumerate(texts, 1)) + tuple(
        Context(name, text) for name, text in ids_and_texts.items()
    )


def checked(answer: str | None, *texts: str, citations: tuple[str, ...] | None = None, **case: Any) -> RuleChecks:
    refused = case.pop("refused", None)
    return check(Case("c", "q?", **case), Answer("c", answer, contexts(*texts), citations=citations, refused=refused))


@pytest.mark.parametrize(
    ("answer", "points", "ok", "missing"),
    [
        pytest.param("支持 500 个", (("500",),), True, (), id="found"),
        pytest.param("支持 1500 个", (("500",),), False, ("500",), id="inside a longer number"),
        pytest.param("three months", (("三个月", "three months"),), True, (), id="any of an inner list"),
        pytest.param("500", (("500",), ("day", "days")), False, ("day",), id="every entry is needed"),
        pytest.param("whatever", (), None, (), id="nothing stated"),
    ],
)
def test_every_entry_of_must_include_is_needed(
    answer: str, points: tuple[tuple[str, ...], ...], ok: bool | None, missing: tuple[str, ...]
) -> None:
    found = checked(answer, "x", must_include=points)
    assert (found.must_include_ok, found.missing_points) == (ok, missing)


def test_one_acceptable_wording_suffices_in_scope_and_is_a_refusal_wording_out_of_scope() -> None:
    assert checked("about 3 个月", acceptable=("三个月", "3 个月")).acceptable_ok is True
    assert checked("soon", acceptable=("三个月",)).rule_correct is False
    out_of_scope = checked("手册里查无此条。", acceptable=("查无此条",), expect_refusal=True)
    assert (out_of_scope.acceptable_ok, out_of_scope.did_abstain, out_of_scope.rule_correct) == (None, True, True)


def test_must_not_include_is_a_plain_folded_substring() -> None:
    found = checked("Un limited calls", must_not_include=("UNLIMITED", "free"))
    assert (found.must_not_include_ok, found.forbidden_found) == (False, ("UNLIMITED",))


@pytest.mark.parametrize(
    ("answer", "texts", "faithful", "unsupported"),
    [
        pytest.param("500 seats", ("has 500 seats",), True, (), id="stated and held"),
        pytest.param("500 seats", ("has 1500 seats",), False, ("500",), id="stated and not held"),
        pytest.param("many seats", ("has 500 seats",), None, (), id="none stated"),
        pytest.param("500 seats", ("has 5", "00 seats"), True, (), id="held over two neighbours"),
        pytest.param("500 seats", (), False, ("500",), id="nothing retrieved"),
    ],
)
def test_faithful_speaks_of_the_key_points_that_the_answer_states(
    answer: str, texts: tuple[str, ...], faithful: bool | None, unsupported: tuple[str, ...]
) -> None:
    found = checked(answer, *texts, must_include=(("500",),))
    assert (found.faithful, found.unsupported_points) == (faithful, unsupported)


def test_an_acceptable_wording_is_no_key_point() -> None:
    assert checked("14 days", "nothing of it", acceptable=("14 days",)).faithful is None


def test_faithful_is_unknown_without_context_texts() -> None:
    case = Case("c", "q?", must_include=(("500",),))
    assert check(case, Answer("c", "500")).faithful is None
    assert check(case, Answer("c", "500", (Context("d", None),))).faithful is None


@pytest.mark.parametrize(
    ("answer", "expect_refusal", "did_abstain", "then_answered", "correct"),
    [
        ("资料中没有相关信息。", True, True, False, True),
        ("可以,按两倍折现。", True, False, False, False),
        ("This is not mentioned in the material. However, refunds usually take two years.", True, False, True, False),
        ("资料中没有相关信息。", False, True, False, False),
        ("资料中没有相关信息。", None, True, False, None),
    ],
)
def test_declining_is_held_against_the_expectation_where_one_is_stated(
    answer: str, expect_refusal: bool | None, did_abstain: bool, then_answered: bool, correct: bool | None
) -> None:
    found = checked(answer, "x", expect_refusal=expect_refusal)
    assert (found.did_abstain, found.refused_then_answered, found.rule_correct) == (did_abstain, then_answered, correct)


def test_the_text_wins_over_the_flag_and_the_conflict_is_kept() -> None:
    found = checked("500 seats", refused=True, expect_refusal=False)
    assert (found.did_abstain, found.rule_correct, found.refusal_conflict) == (False, True, True)
    assert checked("没有相关信息", refused=True).refusal_conflict is False


def test_a_case_that_states_nothing_is_neither_right_nor_wrong() -> None:
    assert checked("anything", "x", type="in_scope").rule_correct is None
    assert checked("anything", "x", tenant="a").rule_correct is None


def test_contexts_without_an_answer_are_checked_for_leaks_alone() -> None:
    found = checked(None, "x", must_include=(("500",),), expect_refusal=False)
    assert (found.must_include_ok, found.did_abstain, found.rule_correct, found.leak) == (None, None, None, False)
    leaking = check(Case("c", "q?", forbidden_docs=("d#*",)), Answer("c", None, contexts("x")))
    assert (leaking.rule_correct, leaking.leak) == (False, True)


# --- leaks and citations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "doc", "matches"),
    [
        ("tenant-b#*", "tenant-b#1", True),
        ("tenant-b#?", "tenant-b#12", False),
        ("tenant-b#1", "tenant-b#1", True),
        ("tenant-b#1", "tenant-b#10", False),
        ("Tenant-b#*", "tenant-b#1", False),
        ("doc[1]#*", "doc[1]#3", True),
        ("doc[1]#*", "doc1#3", False),
        ("*secret*", "a.secret.b", True),
        ("a.b", "axb", False),
    ],
)
def test_forbidden_ids_are_globs_of_star_and_question_mark_alone(pattern: str, doc: str, matches: bool) -> None:
    case = Case("c", "q?", forbidden_docs=(pattern,))
    assert leaked_ids(case, Answer("c", "a", (Context(doc, "t"),))) == ((doc,) if matches else ())


def test_a_leak_is_seen_at_any_rank_and_in_a_citation_alone() -> None:
    case = Case("c", "q?", forbidden_docs=("b#*",))
    deep = Answer("c", "a", (*contexts(*["x"] * 20), Context("b#7", "t")))
    assert leaked_ids(case, deep) == ("b#7",)
    assert leaked_ids(case, Answer("c", "a", (), citations=("b#9",))) == ("b#9",)


@pytest.mark.parametrize(
    ("case_tenant", "context_tenant", "leaks"),
    [("a", "b", True), ("a", "a", False), ("a", None, False), (None, "b", False), (None, None, False)],
)
def test_a_context_of_another_tenant_is_a_leak(
    case_tenant: str | None, context_tenant: str | None, leaks: bool
) -> None:
    found = check(Case("c", "q?", tenant=case_tenant), Answer("c", "a", (Context("d#1", "t", tenant=context_tenant),)))
    assert (found.leak, found.rule_correct) == (leaks, False if leaks else None)


def test_a_right_answer_that_leaks_is_not_correct() -> None:
    found = checked("500", "has 500", must_include=(("500",),), forbidden_docs=("d#1",))
    assert (found.must_include_ok, found.leak, found.rule_correct) == (True, True, False)


def test_citations_that_point_at_nothing_retrieved_are_named_once() -> None:
    assert dangling_citations(Answer("c", "a", contexts("x"), citations=("d#1", "d#9", "d#9"))) == ("d#9",)
    assert dangling_citations(Answer("c", "a", (), citations=("d#9",))) == ("d#9",)
    assert dangling_citations(Answer("c", "a", None, citations=("d#9",))) == ()
    assert dangling_citations(Answer("c", "a", (Context(None, "x"),), citations=("d#9",))) == ()


def test_lexical_support_is_the_share_of_the_answers_words_found_in_contexts() -> None:
    # a, trial, lasts, 14, days: four of five stand in the contexts ("runs" does not)
    assert lexical_support(Answer("c", "a trial runs 14 days", contexts("a trial lasts 14 days"))) == pytest.approx(0.8)
    # pairs of 支持五百: 支持 持五 五百; two of three stand there
    assert lexical_support(Answer("c", "支持五百", contexts("支持一百", "五百"))) == pytest.approx(2 / 3)
    assert lexical_support(Answer("c", "…", contexts("x"))) is None
    assert lexical_support(Answer("c", "a", None)) is None
    assert lexical_support(Answer("c", "a b", ())) == 0.0


@given(pattern=st.text("ab*?", max_size=8), doc=st.text("ab", max_size=8))
def test_globs_of_star_and_question_mark_mean_what_fnmatch_means(pattern: str, doc: str) -> None:
    found = leaked_ids(Case("c", "q?", forbidden_docs=(pattern,)), Answer("c", "a", (Context(doc, "t"),)))
    assert bool(found) == fnmatch.fnmatchcase(doc, pattern)


def test_a_pattern_of_many_stars_takes_no_longer_than_its_length_times_the_ids() -> None:
    case = Case("c", "q?", forbidden_docs=("*a" * 200 + "b",))
    assert leaked_ids(case, Answer("c", "a", (Context("a" * 5000, "t"),))) == ()
