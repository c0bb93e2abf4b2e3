"""The human review of one run: a blind sample out, labels back in, where it stands, and what it says of the judge.

Everything is kept in the run's `review/` folder and in `bias.json`; nothing else of a finished run is touched but its
report, which shows what the labels say.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rag_judge.answers import AnswerSet
from rag_judge.archive import FinishedRun, RunFolder, case_rows_of, pair_rows_of, read_run
from rag_judge.bias import human_pass
from rag_judge.cases import CaseSet
from rag_judge.errors import InputError
from rag_judge.gold import ADJUDICATOR, Label, by_case, is_disputed
from rag_judge.masking import mask
from rag_judge.planning import labels_for_half_width, labels_needed
from rag_judge.poststratification import strata_of
from rag_judge.prompts import load_prompt, pass_rule
from rag_judge.records import CaseRow, Mode, Prompt, Value, VerdictField
from rag_judge.review.design import (
    FEWEST,
    Design,
    check_annotator,
    design_fields,
    design_from_fields,
    draw_design,
    larger,
    strata_of_cases,
    strata_of_pairs,
)
from rag_judge.review.instructions import instructions_for, version_warning
from rag_judge.review.label_file import from_item, is_label_file, merged, read_labels
from rag_judge.review.labels import shown
from rag_judge.review.reading import read_sheets
from rag_judge.review.sheet import ItemKey, ReviewTexts, Sheet, fields_for, make_sheet, texts_of
from rag_judge.review.writing import SUFFIXES, Format, write_sheet
from rag_judge.rows import json_line
from rag_judge.sampling import n_for_fraction
from rag_judge.votes import derived_pass

EXPECTED_RATE = 0.8  # for planning, where the judge decided nothing
OWN_FIELDS = tuple(VerdictField(name, "boolean") for name in ("grounded", "complete", "should_abstain"))


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What a sample is to be. `annotators` are names; a half-width takes the place of the fraction."""

    fraction: float = 0.15
    half_width: float | None = None
    annotators: Sequence[str] = ("a1",)
    format: Format = "xlsx"
    disagreements: bool = False
    redact: bool = False
    oversample: bool = False
    lang: str | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Exported:
    """The sheets that were written, and the design behind them."""

    files: Sequence[Path]
    n_items: Mapping[str, int]  # by annotator
    design: Design
    n_masked: int


@dataclass(frozen=True, slots=True)
class Imported:
    """What came back."""

    n_new: int
    n_labels: int
    n_blank: Mapping[str, int]  # by annotator, of the imported sheets
    n_critiques_missing: int
    warnings: Sequence[str]


class ReviewedRun:
    """A finished run with its review folder: who asks for it finds rows, texts, fields, design and labels."""

    def __init__(self, path: Path) -> None:
        """Raises InputError for a run that is not complete."""
        self.run: FinishedRun = read_run(path)
        self.folder: RunFolder = self.run.folder
        self.is_pair = self.run.manifest.get("kind") == "pairwise"
        laid = sorted((self.folder.path / "prompts").glob("*/prompt.toml"))
        self.prompts: dict[str, Prompt] = load_prompt(laid[0].parent) if laid else {}

    @property
    def review(self) -> RunFolder:
        """The folder `review/` of the run."""
        return RunFolder(self.folder.path / "review")

    @property
    def mode(self) -> Mode:
        """What kind of labels the run takes."""
        return next((prompt.mode for prompt in self.prompts.values()), "passfail")

    @property
    def fields(self) -> tuple[VerdictField, ...]:
        """The fields that people are asked: the judge's, and what belongs to them."""
        asked = next((prompt.fields for prompt in self.prompts.values()), OWN_FIELDS)
        return fields_for(self.mode, asked)

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.run.manifest.get("seed") or 0)

    def design(self) -> Design | None:
        """The sample as drawn; None before the first export."""
        if not (self.review.path / "design.json").exists():
            return None
        return design_from_fields(self.review.read_json("design.json"))

    def labels(self) -> list[Label]:
        """The labels so far."""
        path = self.review.path / "labels.jsonl"
        return read_labels(path, self.fields) if path.exists() and path.stat().st_size else []

    def write_labels(self, labels: Sequence[Label]) -> None:
        """Replace the labels."""
        with self.review.replacing("labels.jsonl") as file:
            file.writelines(json_line(label.fields()) for label in labels)

    def texts(self, ids: Sequence[str]) -> dict[str, ReviewTexts]:
        """What a reviewer is to see of these cases."""
        with closing(CaseSet(self.folder.snapshot)) as cases:
            paths = [self.folder.answers_of(side) for side in ("a", "b")] if self.is_pair else [self.folder.answers]
            sets = [AnswerSet(path, cases.offsets) for path in paths]
            try:
                return {i: texts_of(cases.get(i), *(answers.get(i) for answers in sets)) for i in ids}
            finally:
                for answers in sets:
                    answers.close()

    def derived(self, row: CaseRow, values: Mapping[str, Value | None]) -> bool | None:
        """The pass that a label's fields come to, as for the judge."""
        prompt = next(iter(self.prompts.values()), None)
        if prompt is None:
            return None
        said = values.get("did_abstain")
        abstained = said if isinstance(said, bool) else bool(row.did_abstain)
        known = {f.name: values.get(f.name) for f in prompt.fields}
        return derived_pass(known, prompt.fields, pass_rule(prompt, abstained))


# --- out ---------------------------------------------------------------------------------------------------------


def export_review(run: ReviewedRun, request: ExportRequest) -> Exported:
    """Draw the sample, keep its design, and write one sheet for each annotator.

    A run that has a sample keeps it: a larger one holds it, and an annotator is given only what is new. Raises
    InputError where nothing is left to give, or where more cases are needed than there are.
    """
    for name in request.annotators:
        check_annotator(name)
    before = run.design()
    design = _wanted_design(run, request, before)
    if request.disagreements:
        ids_of = {ADJUDICATOR: [c for c in disputed_cases(run) if c not in design.given_to(ADJUDICATOR)]}
        nothing = "no two annotators differ on a case that the third reader has not been given"
    else:
        ids_of = {name: [c for c in design.drawn if c not in design.given_to(name)] for name in request.annotators}
        nothing = "each annotator has been given all of it; draw more with --fraction or --half-width"
    if not any(ids_of.values()):
        raise InputError(f"{run.folder.path}: the sample has {len(design.drawn)} cases, and {nothing}")
    lang = request.lang or run.folder.read_json("request.json")["settings"]["run"].get("lang", "en")
    told = instructions_for(run.mode, run.fields, lang)
    run.review.path.mkdir(mode=0o700, exist_ok=True)
    files: list[Path] = []
    n_masked = 0
    for name, ids in ids_of.items():
        if not ids:
            continue
        texts, masked = _masked(run.texts(ids)) if request.redact else (run.texts(ids), 0)
        n_masked += masked
        sheet, keys = _laid(run, texts, name, lang, told.version)
        path = _free_path(run.review.path, name, SUFFIXES[request.format])
        design = design.with_sheet(sheet, keys, path.name)
        run.review.write_json("design.json", design_fields(design))  # before the sheet: it could not be read without
        files += write_sheet(sheet, path, request.format)
    for path in files:
        path.chmod(0o600)
    return Exported(files, {name: len(ids) for name, ids in ids_of.items()}, design, n_masked)


def _laid(
    run: ReviewedRun, texts: Mapping[str, ReviewTexts], annotator: str, lang: str, version: str
) -> tuple[Sheet, dict[str, ItemKey]]:
    """A sheet of random ids: nobody who knows the run's seed may guess what an id stands for."""
    kind, rng = run.mode, random.SystemRandom()
    return make_sheet(texts, annotator, mode=kind, fields=run.fields, lang=lang, instructions_version=version, rng=rng)


def _wanted_design(run: ReviewedRun, request: ExportRequest, before: Design | None) -> Design:
    if request.disagreements:
        if before is None:
            raise InputError(f"{run.folder.path}: nothing was exported yet, so no annotators can differ")
        return before
    if before is not None:
        if request.seed not in (None, before.seed) or request.oversample > before.oversampled:
            raise InputError(
                f"{run.folder.path}: a sample was drawn with seed {before.seed}, and --seed and --oversample cannot "
                "change it; leave them out, and it is made larger"
            )
        return larger(before, _n_wanted(run, request, len(before.strata)))
    strata, share = _strata(run, request)
    n = _n_wanted(run, request, len(strata))
    seed = run.seed if request.seed is None else request.seed
    return draw_design(strata(n), n, seed, judge_share=share, oversampled=request.oversample)


def _strata(run: ReviewedRun, request: ExportRequest) -> tuple[Any, float]:
    """How the population is divided for n labels, and the judge's share of the answered cases."""
    if run.is_pair:
        rows = pair_rows_of(run.run)
        fixed = strata_of_pairs(rows)
        return _Strata(fixed), 1.0
    cases = population_of(case_rows_of(run.run))
    if not cases:
        raise InputError(f"{run.folder.path}: no case was answered, so there is nothing to review")
    n_answered = run.run.summary["n_answered"]
    sampled = run.run.summary["judge"].get("sampled")
    return _Strata(None, cases, request.oversample), len(cases) / n_answered if sampled and n_answered else 1.0


@dataclass(frozen=True, slots=True)
class _Strata:
    """The strata of a run, which may depend on how many labels there are to be."""

    fixed: Mapping[str, str] | None
    rows: Sequence[CaseRow] = ()
    oversample: bool = False

    def __len__(self) -> int:
        return len(self.rows) if self.fixed is None else len(self.fixed)

    def __call__(self, n: int) -> Mapping[str, str]:
        return strata_of_cases(self.rows, n, oversample=self.oversample) if self.fixed is None else self.fixed


def population_of(rows: Sequence[CaseRow]) -> list[CaseRow]:
    """The cases that can be reviewed: those that the judge saw, or all answered ones where none was asked."""
    drawn = [row for row in rows if row.drawn]
    return drawn or [row for row in rows if row.outcome != "no_answer"]


def _n_wanted(run: ReviewedRun, request: ExportRequest, n_cases: int) -> int:
    if request.half_width is not None:
        return max(min(FEWEST, n_cases), _n_for_half_width(run, request.half_width, n_cases))
    try:
        n = n_for_fraction(n_cases, request.fraction)
    except ValueError as error:
        raise InputError(f"--fraction: {error}") from error
    return min(n_cases, max(FEWEST, n))


def _n_for_half_width(run: ReviewedRun, half_width: float, n_cases: int) -> int:
    """How many labels a half-width of the pass rate takes. Raises InputError where no number of them reaches it."""
    if not 0 < half_width < 0.5:
        raise InputError(f"--half-width: found {half_width}, expected a number above 0 and below 0.5, such as 0.10")
    labels = by_case(run.labels())
    if labels and not run.is_pair:
        rows, design = population_of(case_rows_of(run.run)), run.design()
        human = [said_pass(run, row, labels.get(row.id, ())) for row in rows]
        known = [None if design is None else design.probabilities.get(row.id) for row in rows]
        needed = labels_needed(strata_of([row.judge_pass for row in rows], human, known), half_width)
        if needed.n is not None:
            return needed.n
    else:
        judged = None if run.is_pair else run.run.summary["judge"].get("pass")
        n = labels_for_half_width(half_width, judged["value"] if judged else EXPECTED_RATE)
        if n <= n_cases:
            return n
    raise InputError(
        f"--half-width {half_width:g}: labelling all {n_cases} cases would not reach it for questions like these; more "
        "cases are needed (rag-judge lint --half-width says how many), or a wider interval"
    )


def said_pass(run: ReviewedRun, row: CaseRow, labels: Sequence[Label]) -> bool | None:
    """Whether people pass a case, by all labels of it; None where they differ, are unsure, or were not asked."""
    return human_pass(row, labels, run.derived)


def _masked(texts: Mapping[str, ReviewTexts]) -> tuple[dict[str, ReviewTexts], int]:
    """The texts with personal data masked, and in how many places."""
    n = Counter[str]()

    def masked(text: str) -> str:
        found = mask(text)
        n.update(found.counts)
        return found.text

    hidden = {}
    for case_id, seen in texts.items():
        contexts = tuple(
            None if part is None else tuple(replace(c, text=None if c.text is None else masked(c.text)) for c in part)
            for part in seen.contexts
        )
        answers, history = tuple(map(masked, seen.answers)), tuple(map(masked, seen.history))
        hidden[case_id] = ReviewTexts(masked(seen.question), answers, contexts, history)
    return hidden, n.total()


def _free_path(folder: Path, annotator: str, suffix: str) -> Path:
    for number in range(1, 1000):
        path = folder / f"sheet-{annotator}{'' if number == 1 else f'-{number}'}{suffix}"
        if not path.exists():
            return path
    raise InputError(f"{folder}: there are 999 sheets of {annotator} already")


# --- back in -----------------------------------------------------------------------------------------------------


def import_review(run: ReviewedRun, files: Sequence[Path], *, replace_labels: bool) -> Imported:
    """Take the labels of sheets of this run, and of labels files; all of them or none.

    Raises InputError for whatever is wrong in any of them, and for labels that say something else than before.
    """
    of_elsewhere = [path for path in files if is_label_file(path)]
    for path in files:
        if path.suffix.lower() == ".jsonl" and path not in of_elsewhere:
            raise InputError(f"{path}: no labels: each line needs case_id, annotator, and what the annotator said")
    found = _of_sheets(run, [path for path in files if path not in of_elsewhere])
    for path in of_elsewhere:
        for label in read_labels(path, run.fields, _case_ids(run)):
            found.take(label)
    labels, n_new = merged(run.labels(), found.labels, replace=replace_labels)
    if version := version_warning({label.instructions_version for label in labels if label.instructions_version}):
        found.warnings.append(version)
    if n_new:
        run.review.path.mkdir(mode=0o700, exist_ok=True)
        run.write_labels(labels)
    return Imported(n_new, len(labels), dict(found.n_blank), found.n_critiques_missing, found.warnings)


@dataclass(slots=True)
class _Found:
    """What the files hold so far."""

    labels: list[Label] = field(default_factory=list)
    n_blank: Counter[str] = field(default_factory=Counter)  # by annotator
    n_critiques_missing: int = 0
    warnings: list[str] = field(default_factory=list)

    def take(self, label: Label) -> None:
        """Add a label; one without any answer is blank, whatever is noted beside it."""
        if label.values:
            self.labels.append(label)
        else:
            self.n_blank[label.annotator] += 1


def _of_sheets(run: ReviewedRun, sheets: Sequence[Path]) -> _Found:
    found, design = _Found(), run.design()
    if not sheets:
        return found
    if design is None:
        raise InputError(f"{run.folder.path}: no sheet was exported of this run; a sheet of another run cannot be read")
    for read in read_sheets(sheets, design.sheets):
        for item_id, said in read.labels.items():
            key = design.keys[item_id]
            if "winner" in said.values:
                said = replace(said, values={**said.values, "winner": key.winner(said.values["winner"])})
            found.take(from_item(key.case_id, read.annotator, said, read.instructions_version, read.sheet_id))
        found.n_blank[read.annotator] += read.n_blank
        found.n_critiques_missing += read.n_critiques_missing
        found.warnings += read.warnings
        for item_id, only in read.notes_only.items():
            text = shown(only.critique or only.note)
            found.warnings.append(f"item {item_id} of {read.annotator} has a note and no answer: {text}")
    return found


def _case_ids(run: ReviewedRun) -> set[str]:
    return {row.id for row in (pair_rows_of(run.run) if run.is_pair else case_rows_of(run.run))}


def disputed_cases(run: ReviewedRun) -> list[str]:
    """The cases on which two annotators differ in any yes/no, score or winner, in the order of the sample."""
    names = [f.name for f in run.fields if f.name != "cause"]
    found = by_case(run.labels())
    return [c for c, labels in found.items() if any(is_disputed(labels, name) for name in names)]
