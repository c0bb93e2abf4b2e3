"""The review sample of one run: which cases were drawn with which probability, and what each sheet's ids stand for.

Kept in `review/design.json`, written before a sheet leaves the house. A later, larger draw keeps the strata and the
seed of the first, so that it holds every case drawn before. No label is known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rag_judge.errors import InputError
from rag_judge.gold import ADJUDICATOR
from rag_judge.records import CaseRow, PairRow
from rag_judge.review.sheet import ItemKey, Sheet, sheet_fields, sheet_from_fields
from rag_judge.sampling import FLOOR, UNDECIDED, DrawnStratum, allocate, review_strata, seeded_order

FORMAT_VERSION = 1
FEWEST = 8
SUSPECT, SUSPECT_WEIGHT = "suspect", 3.0  # drawn three times as often with --oversample


@dataclass(frozen=True, slots=True)
class Design:
    """Who was drawn, and with which probability; the sheets that were made of it."""

    seed: int
    strata: Mapping[str, str]  # of every case of the population
    probabilities: Mapping[str, float]  # of every such case: to be drawn for review, times the judge sample's
    drawn: tuple[str, ...]
    judge_share: float = 1.0  # of the answered cases that the judge saw, where it saw a sample
    oversampled: bool = False
    sheets: Mapping[str, Sheet] = field(default_factory=dict)
    keys: Mapping[str, ItemKey] = field(default_factory=dict)  # by item id
    files: Mapping[str, str] = field(default_factory=dict)  # of each sheet

    @property
    def table(self) -> list[DrawnStratum]:
        """The strata with their sizes, by name."""
        n_cases, n_drawn = _count(self.strata.values()), _count(self.strata[case_id] for case_id in self.drawn)
        return [
            DrawnStratum(name, n, n_drawn.get(name, 0), n_drawn.get(name, 0) / n) for name, n in sorted(n_cases.items())
        ]

    def given_to(self, annotator: str) -> set[str]:
        """The cases that stand on some sheet of an annotator."""
        mine = [sheet for sheet in self.sheets.values() if sheet.annotator == annotator]
        return {self.keys[item.id].case_id for sheet in mine for item in sheet.items}

    def with_sheet(self, sheet: Sheet, keys: Mapping[str, ItemKey], file: str) -> Design:
        """The design with one more sheet."""
        return replace(
            self,
            sheets={**self.sheets, sheet.sheet_id: sheet},
            keys={**self.keys, **keys},
            files={**self.files, sheet.sheet_id: file},
        )


def _count(names: Iterable[str]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for name in names:
        counted[name] = counted.get(name, 0) + 1
    return counted


# --- who is drawn ----------------------------------------------------------------------------------------------------


def decision_of_row(row: CaseRow) -> bool | None:
    """What the judge decided of a case; by the rules where no judge was asked. None: undecided or unscored."""
    return row.judge_pass if row.n_planned is not None or row.judge_pass is not None else row.rule_correct


def is_suspect(row: CaseRow) -> bool:
    """True where the judge's repeats differ, where rules and judge do, or where several judges do."""
    against = row.judge_pass is not None and row.rule_correct is not None and row.judge_pass != row.rule_correct
    return bool(row.flipped or row.judges_disagree or against)


def strata_of_cases(rows: Sequence[CaseRow], n: int, *, oversample: bool) -> dict[str, str]:
    """The stratum of each case: its decision, by type where every stratum keeps four labels; or suspect or not."""
    if any(row.score is not None for row in rows) and all(row.judge_pass is None for row in rows):
        return _strata_of_scores(rows, n)
    judge = [decision_of_row(row) for row in rows]
    if not oversample:
        names = review_strata(judge, n, [row.type or "untyped" for row in rows])
        return {row.id: name for row, name in zip(rows, names, strict=True)}
    names = review_strata(judge, n)
    return {
        row.id: f"{SUSPECT}/{name}" if is_suspect(row) and name != UNDECIDED else name
        for row, name in zip(rows, names, strict=True)
    }


def _strata_of_scores(rows: Sequence[CaseRow], n: int) -> dict[str, str]:
    """By score where every score keeps four labels; else the scored ones together, so that each can be drawn."""
    names = {row.id: UNDECIDED if row.score is None else f"score {row.score:g}" for row in rows}
    sizes = _count(name for name in names.values() if name != UNDECIDED)
    n_undecided = len(rows) - sum(sizes.values())
    if sum(min(FLOOR, size) for size in sizes.values()) <= n - min(n_undecided, n // 2):
        return names
    return {case_id: name if name == UNDECIDED else "scored" for case_id, name in names.items()}


def strata_of_pairs(rows: Sequence[PairRow]) -> dict[str, str]:
    """The stratum of each pair: its outcome; undecided and unscored ones together."""
    return {row.id: UNDECIDED if row.outcome in ("undecided", "unscored") else row.outcome for row in rows}


def draw_design(strata: Mapping[str, str], n: int, seed: int, *, judge_share: float, oversampled: bool) -> Design:
    """The sample of n cases. Undecided ones are all taken while they fill at most half of it, else half of it is drawn.

    A larger n over the same strata holds every smaller sample.
    """
    by_stratum: dict[str, list[str]] = {}
    for case_id, stratum in strata.items():
        by_stratum.setdefault(stratum, []).append(case_id)
    sizes = {name: len(ids) for name, ids in by_stratum.items()}
    n_undecided = sizes.pop(UNDECIDED, 0)
    n_rest = sum(sizes.values())
    from_undecided = min(n_undecided, max(n // 2, n - n_rest))
    weights = {name: SUSPECT_WEIGHT * size if name.startswith(f"{SUSPECT}/") else size for name, size in sizes.items()}
    n_of = allocate(sizes, min(n - from_undecided, n_rest), weights, certain=())
    n_of[UNDECIDED] = from_undecided
    drawn: list[str] = []
    probabilities: dict[str, float] = {}
    for name, ids in sorted(by_stratum.items()):
        drawn += seeded_order(ids, seed)[: n_of[name]]
        probabilities |= dict.fromkeys(ids, n_of[name] / len(ids) * judge_share)
    return Design(
        seed,
        dict(strata),
        {case_id: probabilities[case_id] for case_id in strata},
        tuple(seeded_order(drawn, seed, purpose="review")),
        judge_share,
        oversampled,
    )


def larger(design: Design, n: int) -> Design:
    """The same design with n cases drawn; one that is as large already stays as it is."""
    if n <= len(design.drawn):
        return design
    grown = draw_design(design.strata, n, design.seed, judge_share=design.judge_share, oversampled=design.oversampled)
    return replace(grown, sheets=design.sheets, keys=design.keys, files=design.files)


def check_annotator(name: str) -> None:
    """Raise InputError for a name of which no file name can be made everywhere, and for the third reader's."""
    if not re.fullmatch(r"[^\W_][\w-]{0,38}", name):
        raise InputError(f"annotator {name!r}: expected up to 39 letters, digits, - and _, a letter or digit first")
    if name.casefold() == ADJUDICATOR:
        raise InputError(f"annotator {name!r}: that is the third reader, who is given a sheet by --disagreements")


# --- on disk ---------------------------------------------------------------------------------------------------------


def design_fields(design: Design) -> dict[str, Any]:
    """The design as `design.json` holds it."""
    return {
        "format_version": FORMAT_VERSION,
        "seed": design.seed,
        "N": len(design.strata),
        "n_drawn": len(design.drawn),
        "judge_share": design.judge_share,
        "oversampled": design.oversampled,
        "strata": [
            {"stratum": s.stratum, "N": s.n_cases, "n": s.n_drawn, "probability": s.probability} for s in design.table
        ],
        "cases": {
            case_id: {"stratum": stratum, "probability": design.probabilities[case_id]}
            for case_id, stratum in design.strata.items()
        },
        "drawn": list(design.drawn),
        "sheets": [
            {
                "file": design.files[sheet_id],
                "keys": {item.id: asdict(design.keys[item.id]) for item in sheet.items},
                **sheet_fields(sheet),
            }
            for sheet_id, sheet in design.sheets.items()
        ],
    }


def design_from_fields(fields: Mapping[str, Any]) -> Design:
    """The design that `design_fields` gave. Raises InputError for fields that it cannot have given."""
    found = fields.get("format_version")
    if found != FORMAT_VERSION:
        raise InputError(
            f"design.json has format version {found}, this program reads {FORMAT_VERSION}; "
            "read it with the version of rag-judge that wrote it"
        )
    try:
        return _design_of(fields)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"design.json is not what an export wrote ({error!r}); no sheet can be read without it: put back a copy"
        ) from error


def _design_of(fields: Mapping[str, Any]) -> Design:
    sheets: dict[str, Sheet] = {}
    keys: dict[str, ItemKey] = {}
    files: dict[str, str] = {}
    for entry in fields["sheets"]:
        own = {name: value for name, value in entry.items() if name not in ("file", "keys")}
        sheet = sheet_from_fields(own)
        sheets[sheet.sheet_id], files[sheet.sheet_id] = sheet, entry["file"]
        keys |= {item_id: ItemKey(**key) for item_id, key in entry["keys"].items()}
    return Design(
        fields["seed"],
        {case_id: case["stratum"] for case_id, case in fields["cases"].items()},
        {case_id: case["probability"] for case_id, case in fields["cases"].items()},
        tuple(fields["drawn"]),
        fields["judge_share"],
        fields["oversampled"],
        sheets,
        keys,
        files,
    )
