"""`summary.json` → what `report.html` says of each number: its text, its interval, what it means. Nothing is computed.

A number that is null says why. Rounding never makes an exact 0 or 1 of what is neither.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_judge.report.html_glossary import METRICS
from rag_judge.report.html_words import OUTCOMES, UNSCORED, WORDS
from rag_judge.report.sentences import SENTENCES_ZH

Tree = Mapping[str, Any]

RANKING = ("hit", "recall", "mrr", "ndcg", "precision")
RULE_RATES = ("correct", "must_include", "acceptable", "must_not_include", "faithful", "refusal")
PEOPLE_SHARES = ("corrected", "human_rate", "false_pass", "false_fail", "agreement", "sensitivity", "specificity")
JUDGE_RATES = ("grounded", "complete", "should_abstain", "fabrication", "correctness")
HEADLINES = ("end_to_end.correct", "retrieval.hit", "rules.refusal", "rules.leaks", "judge.pass")


@dataclass(frozen=True, slots=True)
class Metric:
    """One number as the page shows it. `bar` is (low, value, high) in percent where there is an interval to draw."""

    name: str
    label: str
    says: str
    value: str
    bar: tuple[float, float, float] | None = None
    notes: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()  # the cases behind it, where they are listed
    is_missing: bool = False
    is_alarming: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """A group of numbers of one source."""

    name: str
    metrics: Sequence[Metric]
    notes: Sequence[str] = ()


def say(lang: str, key: str, **values: object) -> str:
    """The page's wording with values put in."""
    return WORDS[lang][key].format_map(values)


def sentence(text: str, lang: str) -> str:
    """A fixed sentence of summary or manifest in the page's language; an unknown one as it stands."""
    return SENTENCES_ZH.get(text, text) if lang == "zh" else text


def percent(share: float) -> str:
    """A share as '71 %', with more digits where 0 or 100 would not be exact."""
    for digits in (0, 1, 2):
        text = f"{share:.{digits}%}".removesuffix("%")
        if share in (0.0, 1.0) or float(text) not in (0.0, 100.0):
            return f"{text} %"
    return "< 0.01 %" if share < 0.5 else "> 99.99 %"


def decimal(value: float) -> str:
    """A value as '0.84', with more digits where 0 or 1 would not be exact."""
    for digits in (2, 3, 4):
        text = f"{value:.{digits}f}"
        if value in (0.0, 1.0) or float(text) not in (0.0, 1.0):
            return text
    return "< 0.0001" if value < 0.5 else "> 0.9999"


def signed_percent(share: float) -> str:
    """A difference of shares as '-13 %'."""
    return f"{share:+.0%}".replace("%", " %")


def missing(reason: str | None, lang: str) -> str:
    """'n/a' with its reason."""
    if not reason:
        return WORDS[lang]["not_applicable"]
    return say(lang, "not_applicable_because", reason=sentence(reason, lang))


def score(value: float) -> str:
    """A score as '3.52'."""
    return f"{value:.2f}"


def estimate_text(tree: Tree, name: str, lang: str, shown: Callable[[float], str] = percent) -> str:
    """'57/80 = 71 % [60 %, 80 %]' for a share of cases, '0.84 [0.79, 0.89], n = 70' for a mean, or n/a and why."""
    estimate = tree.get(name)
    if estimate is None or not math.isfinite(estimate["value"]):
        return missing(tree.get(f"{name}_reason"), lang)
    value, n, method = estimate["value"], estimate["n"], estimate["method"]
    if estimate["low"] is None or estimate["high"] is None:
        return f"{shown(value)}, n = {n}" + say(lang, "no_interval", why=sentence(method.removeprefix("none: "), lang))
    interval = f"[{shown(estimate['low'])}, {shown(estimate['high'])}]"
    if method == "wilson":  # a scaled rate or a mean is no fraction of its n
        return f"{round(value * n)}/{n} = {shown(value)} {interval}"
    return f"{shown(value)} {interval}, n = {n}"


def models_of(manifest: Tree, lang: str) -> str:
    """The models that judged a run, as its manifest names them."""
    models = [one.get("model") for one in manifest.get("judges") or [manifest.get("judge")] if one]
    return ", ".join(str(model or WORDS[lang]["not_recorded"]) for model in models) or WORDS[lang]["no_judge"]


def share_text(share: float | None, reason: str | None, lang: str) -> str:
    """A plain share as text, or n/a and why."""
    return missing(reason, lang) if share is None else percent(share)


def sections(summary: Tree, lang: str) -> list[Section]:
    """Every number of a summary in the order of the page; the judge's last, and only where one was asked."""
    found = [_end_to_end(summary, lang), _retrieval(summary, lang), _rules(summary, lang)]
    if "answers" in summary:  # a run of an older version has none
        found.append(_answers(summary, lang))
    return found if summary["judge"]["mode"] == "none" else [*found, _judge(summary["judge"], lang)]


def _answers(summary: Tree, lang: str) -> Section:
    tree = summary["answers"]
    metrics = [_metric(tree, f"answers.{name}", lang) for name in ("declined", "no_context", "unsupported_figures")]
    metrics.append(_metric(tree, "answers.lexical_support", lang, decimal))
    suspicious = tree.get("suspicious")  # of a run from before there was this hint, nothing is known
    if suspicious is not None:
        found = {"ids": tuple(suspicious), "is_alarming": bool(suspicious)}
        metrics.append(_plain("answers.suspicious", str(len(suspicious)), lang, **found))
    return Section("answers", metrics, [WORDS[lang]["answers_note"]])


def people_section(bias: Tree, lang: str) -> Section:
    """What people's labels say of the judge's pass, from `bias.json`."""
    tree = bias["fields"]["pass"]
    first = [_metric(tree, f"people.{name}", lang) for name in PEOPLE_SHARES]
    others = [replace(_metric(tree, f"people.{name}", lang, decimal), bar=None) for name in ("kappa", "ac1")]
    difference = replace(_metric(tree, "people.bias", lang, signed_percent), bar=None)
    reason = sentence(tree["rule_reason"], lang)
    notes = [
        say(lang, "people_note", n=bias["n_labelled"], rule=tree["rule"], reason=reason),
        say(lang, "people_cells", **tree["confusion"]),
    ]
    missing_labels = bias.get("non_response")
    if missing_labels and missing_labels["n"]:
        notes.append(say(lang, "people_missing", n=missing_labels["n"], of=missing_labels["of"]))
    return Section("people", [*first[:2], difference, *first[2:], *others], notes)


def intervals(tree: object) -> list[tuple[float, str, str]]:
    """The distinct (level, target, method) of every estimate in a summary, sorted."""
    found: set[tuple[float, str, str]] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            if "method" in node and "level" in node:
                found.add((node["level"], node["target"], node["method"]))
            waiting.extend(node.values())
    return sorted(found)


def _metric(
    tree: Tree,
    name: str,
    lang: str,
    shown: Callable[[float], str] = percent,
    *,
    notes: Sequence[str] = (),
    **values: object,
) -> Metric:
    """The metric of an estimate; `name` is its path, the last part of it its name in `tree`."""
    label, says = METRICS[lang][name]
    key = name.rpartition(".")[2]
    estimate = tree.get(key)
    bar = None
    if estimate is not None and shown is not score and estimate["low"] is not None and estimate["high"] is not None:
        bar = (100 * estimate["low"], 100 * estimate["value"], 100 * estimate["high"])
    return Metric(
        name=name,
        label=label.format_map(values),
        says=says.format_map(values),
        value=estimate_text(tree, key, lang, shown),
        bar=bar,
        notes=tuple(notes),
        is_missing=estimate is None,
    )


def _plain(name: str, value: str, lang: str, **more: Any) -> Metric:
    label, says = METRICS[lang][name]
    return Metric(name, label, says, value, **more)


def _end_to_end(summary: Tree, lang: str) -> Section:
    tree = summary["end_to_end"]
    reason = tree.get("correct_reason") or WORDS[lang]["nothing_counted"]
    worst, best = (share_text(tree[end], reason, lang) for end in ("worst", "best"))
    notes = [say(lang, "worst_best", worst=worst, best=best)]
    if "population" in tree:
        notes.append(say(lang, "population", population=sentence(tree["population"], lang)))
    about = [say(lang, "n_answered", **{name: summary[name] for name in ("n_cases", "n_answered", "n_errors")})]
    if summary.get("repeats"):
        about.append(say(lang, "repeats", **{name: summary["repeats"][name] for name in ("n_questions", "n_answers")}))
    if summary.get("outcomes"):
        outcomes = summary["outcomes"]
        counted = (f"{word} {outcomes[name]}" for name, word in OUTCOMES[lang].items() if name in outcomes)
        about.append(say(lang, "outcomes", list=" · ".join(counted)))
    return Section("end_to_end", [_metric(tree, "end_to_end.correct", lang, notes=notes)], about)


def _retrieval(summary: Tree, lang: str) -> Section:
    tree = summary["retrieval"]
    notes = [say(lang, name, n=tree[name]) for name in ("n_excluded", "n_duplicates") if tree[name]]
    metrics = [_metric(tree, f"retrieval.{name}", lang, decimal, k=tree["k"]) for name in RANKING]
    return Section("retrieval", metrics, notes)


def _rules(summary: Tree, lang: str) -> Section:
    tree, abstention = summary["rules"], summary["abstention"]
    metrics = [_metric(tree, f"rules.{name}", lang) for name in RULE_RATES if name in tree]
    metrics += [_leaks(tree, lang), _citations(tree["citations"], lang)]
    notes = []
    for key, name in (("then_answered", "refused_then_answered"), ("flag_against_text", "flag_against_text")):
        if abstention.get(name):
            notes.append(say(lang, key, n=abstention[name]))
    if abstention.get("unstated"):
        notes.append(say(lang, "unstated", n=abstention["unstated"], did=abstention["unstated_and_did"]))
    return Section("rules", metrics, notes)


def _leaks(rules: Tree, lang: str) -> Metric:
    leaks, n_checked = rules["leaks"], rules["n_leak_checked"]
    is_missing = not leaks and not n_checked
    value = missing(WORDS[lang]["not_leak_checked"], lang) if is_missing else f"{len(leaks)}/{n_checked}"
    return _plain("rules.leaks", value, lang, ids=tuple(leaks), is_missing=is_missing, is_alarming=bool(leaks))


def _citations(citations: Tree, lang: str) -> Metric:
    is_missing = not citations["checked"]
    value = f"{citations['dangling']}/{citations['checked']}"
    if is_missing:
        value = missing(WORDS[lang]["no_citations"], lang)
    return _plain("rules.citations", value, lang, is_missing=is_missing, is_alarming=bool(citations["dangling"]))


def _panel(panel: Tree | None, lang: str) -> list[Metric]:
    """What each of several judges says, and how far each two agree."""
    if panel is None:
        return []
    words = WORDS[lang]
    each = [
        Metric(
            "judge.panel", say(lang, "panel_judge", model=judge["model"]), words["panel_judge_says"], _rate(judge, lang)
        )
        for judge in panel["judges"]
    ]
    agreeing = [
        Metric(
            "judge.agreement", say(lang, "panel_pair", **pair), words["panel_pair_says"], _rate(pair, lang, "agreement")
        )
        for pair in panel["pairs"]
    ]
    label, n_disagree = words["panel_disagree"], str(panel["n_disagree"])
    ids = tuple(panel["disagree"])
    return [*each, *agreeing, Metric("judge.disagree", label, words["panel_disagree_says"], n_disagree, ids=ids)]


def _rate(tree: Tree, lang: str, name: str = "pass") -> str:
    return estimate_text(tree, name, lang)


def _judge(tree: Tree, lang: str) -> Section:
    reason = tree.get("pass_reason") or WORDS[lang]["nothing_counted"]
    worst, best = (share_text(tree[f"pass_{end}"], reason, lang) for end in ("worst", "best"))
    metrics = [_metric(tree, "judge.pass", lang, notes=[say(lang, "worst_best", worst=worst, best=best)])]
    metrics += [_metric(tree, f"judge.{name}", lang) for name in JUDGE_RATES]
    if tree.get("score"):
        counted = " · ".join(f"{name}: {n}" for name, n in tree["score"]["histogram"].items())
        metrics.append(_metric(tree["score"], "judge.score.mean", lang, score, notes=[counted]))
    by_reason = " · ".join(f"{UNSCORED[lang].get(name, name)} {n}" for name, n in tree["unscored"].items())
    metrics += [
        _plain("judge.undecided", str(tree["undecided"]), lang),
        _plain("judge.unscored", str(sum(tree["unscored"].values())), lang, notes=(by_reason,) if by_reason else ()),
        _metric(tree, "judge.flip_rate", lang),
        _metric(tree, "judge.alike", lang),
        _metric(tree, "judge.unstable_share", lang),
        _plain("judge.expectation_conflict", str(tree["expectation_conflict"]), lang),
        *_panel(tree.get("panel"), lang),
    ]
    notes = [WORDS[lang]["judge_note"], say(lang, "judge_counts", drawn=tree["drawn"], graded=tree["graded"])]
    if tree.get("part"):
        notes.append(say(lang, "part", **tree["part"]))
    if tree.get("sampled"):
        notes.append(say(lang, "sampled", **tree["sampled"]))
    return Section("judge", metrics, notes)
