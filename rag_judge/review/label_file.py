"""`review/labels.jsonl`: what people said of the cases of one run, a line an annotator and case.

Read from a sheet or from a labels file of elsewhere; a label that is there already is never changed silently.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from rag_judge.cases import read_id
from rag_judge.errors import InputError
from rag_judge.gold import Label
from rag_judge.records import Value, VerdictField
from rag_judge.review.labels import ItemLabel, is_blank, read_value, shown
from rag_judge.review.matching import spelled
from rag_judge.review.reading import N_ERRORS_SHOWN
from rag_judge.rows import Row, RowFile

_OTHERS = ("critique", "note")


def from_item(case_id: str, annotator: str, said: ItemLabel, version: str, sheet: str) -> Label:
    """The label that a sheet's item holds."""
    return Label(case_id, annotator, dict(said.values), said.critique, said.note, version, sheet, said.places)


def is_label_file(path: Path) -> bool:
    """True for JSON Lines whose first line names a case id: labels of elsewhere, no sheet of ours."""
    try:
        with path.open("rb") as file:
            first = file.readline(1_000_000)
    except OSError:
        return False
    return first.lstrip(b"\xef\xbb\xbf \t").startswith(b"{") and b'"case_id"' in first


def read_labels(path: Path, asked: Sequence[VerdictField], known: Collection[str] | None = None) -> list[Label]:
    """The labels of a file. Raises InputError naming file, line and field of what cannot be, of a second label of the
    same case by the same annotator, and, where `known` is given, of a case that is none of these.
    """
    fields = {f.name: f for f in asked}
    labels: list[Label] = []
    lines: dict[tuple[str, str], str] = {}
    strangers: list[str] = []
    with RowFile(path) as rows:
        for row in rows:
            label = _label(row, fields)
            if label.key in lines:
                raise InputError(
                    f"{row.where}: {label.annotator} labels {label.case_id} twice, first at {lines[label.key]}"
                )
            lines[label.key] = row.where
            if known is not None and label.case_id not in known:
                strangers.append(f"{row.where}: case_id: found {label.case_id!r}, which this run does not have")
            labels.append(label)
    if strangers:
        raise InputError(_listed(strangers))
    return labels


def _label(row: Row, asked: Mapping[str, VerdictField]) -> Label:
    fields = row.fields
    if fields.get("case_id") in (None, ""):
        raise InputError(f"{row.where}: case_id is missing; a label needs the id of its case")
    values: dict[str, Value | None] = {}
    for name, found in fields.items():
        if name not in asked or (is_blank(found) and (found is not None or row.is_text)):
            continue
        if found is None:
            values[name] = None
            continue
        try:
            values[name] = read_value(asked[name], found)
        except ValueError as error:
            raise InputError(f"{row.where}: {name}: found {shown(found)}, {error}") from error
    texts = {
        name: fields[name] for name in (*_OTHERS, "instructions_version", "sheet") if isinstance(fields.get(name), str)
    }
    case_id = read_id(fields["case_id"], f"{row.where}: case_id")
    annotator = str(fields.get("annotator") or "annotator")
    places = {name: f"{row.where}: {name}" for name in (*values, *texts)}
    return Label(case_id, annotator, values, **texts, places=places)


def merged(kept: Iterable[Label], new: Iterable[Label], *, replace: bool) -> tuple[list[Label], int]:
    """The labels with new ones added, and how many are new or fuller than before.

    A field that was blank may be filled in. Raises InputError naming places where a new label says something else
    than another new one, or, unless `replace` lets the new ones win, than the one that is there.
    """
    before = {label.key: label for label in kept}
    fresh, among_new = _joined({}, new, replace=False)
    after, with_kept = _joined(before, fresh.values(), replace=replace)
    if conflicts := [*among_new, *with_kept]:
        advice = "" if among_new else "; give --replace where the new ones are right"
        raise InputError(_listed(conflicts) + advice)
    return list(after.values()), sum(before.get(key) != label for key, label in after.items())


def _joined(
    into: Mapping[tuple[str, str], Label], labels: Iterable[Label], *, replace: bool
) -> tuple[dict[tuple[str, str], Label], list[str]]:
    """The labels by key with these added or filled in, and what contradicts."""
    joined, conflicts = dict(into), list[str]()
    for label in labels:
        before = joined.get(label.key)
        if before is None:
            joined[label.key] = label
            continue
        differing = [] if replace else _conflicts(before, label)
        conflicts += differing
        if not differing:
            joined[label.key] = _filled(before, label)
    return joined, conflicts


def _conflicts(before: Label, label: Label) -> list[str]:
    old, new = _all_of(before), _all_of(label)
    return [
        f"{label.places.get(name, name)}: found {spelled(value)}, but "
        f"{before.places.get(name, f'the label imported before, of case {label.case_id!r} by {label.annotator},')} "
        f"says {spelled(old[name])}"
        for name, value in new.items()
        if name in old and old[name] != value
    ]


def _all_of(label: Label) -> dict[str, Value | None]:
    """The answers and the texts of a label."""
    texts = {name: text for name, text in (("critique", label.critique), ("note", label.note)) if text}
    return {**label.values, **texts}


def _filled(before: Label, label: Label) -> Label:
    return Label(
        label.case_id,
        label.annotator,
        {**before.values, **label.values},
        label.critique or before.critique,
        label.note or before.note,
        label.instructions_version or before.instructions_version,
        label.sheet or before.sheet,
        {**before.places, **label.places},
    )


def _listed(errors: Sequence[str]) -> str:
    more = [f"… and {len(errors) - N_ERRORS_SHOWN} more"] if len(errors) > N_ERRORS_SHOWN else []
    return "\n".join(
        [f"{len(errors)} labels cannot be taken, and nothing was imported:", *errors[:N_ERRORS_SHOWN], *more]
    )
