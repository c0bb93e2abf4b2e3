"""Files of other tools → `cases.jsonl` and `answers.jsonl` in a folder. The formats themselves are read above.

All records of an import are held in memory: a trace is whole only at the end of its file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rag_judge.answers import answer_from_row
from rag_judge.archive import open_private
from rag_judge.cases import case_from_row, question_hash
from rag_judge.corpus import Corpus
from rag_judge.errors import InputError
from rag_judge.formats.citations import with_citations
from rag_judge.formats.deepeval import read_deepeval
from rag_judge.formats.detect import detected
from rag_judge.formats.found import Count, Found, LeftOut, Reader, Tally
from rag_judge.formats.genai import read_genai
from rag_judge.formats.langfuse import read_langfuse
from rag_judge.formats.langsmith import read_langsmith
from rag_judge.formats.mapping import Mapped, finds_something, parsed_mapping, with_mapping
from rag_judge.formats.openinference import read_openinference
from rag_judge.formats.plain import read_plain
from rag_judge.formats.promptfoo import read_promptfoo
from rag_judge.formats.ragas import read_ragas
from rag_judge.formats.trec import read_collection
from rag_judge.rows import Row, json_line

READERS: Mapping[str, Reader] = {
    "ragas": read_ragas,
    "deepeval": read_deepeval,
    "promptfoo": read_promptfoo,
    "langsmith": read_langsmith,
    "langfuse": read_langfuse,
    "openinference": read_openinference,
    "otel": read_genai,
    "trec": read_collection,
    "plain": read_plain,
}
OTHER_NAMES = {"phoenix": "openinference", "beir": "trec", "csv": "plain", "jsonl": "plain", "parquet": "plain"}
# A log holds much that is no question to a RAG system; in a set of questions a record without one is a mistake.
_LOGS = ("langsmith", "langfuse", "openinference", "otel", "promptfoo")


@dataclass(slots=True)
class Imported:
    """What came in, where it was written, and what was left out or is worth knowing."""

    format: str
    n_cases: int = 0
    n_answers: Mapping[str, int] = field(default_factory=dict)  # by path of the file
    cases: str = ""
    left_out: tuple[Count, ...] = ()
    remarks: tuple[Count, ...] = ()


@dataclass(slots=True)
class _Rows:
    """Cases by id, and answers by system and id, each with its place."""

    cases: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: dict[str | None, dict[str, dict[str, Any]]] = field(default_factory=dict)
    places: dict[tuple[str | None, str], str] = field(default_factory=dict)


def import_files(
    format_name: str,
    paths: Sequence[Path],
    out: Path,
    *,
    mapping: Sequence[str] = (),
    corpus: Path | None = None,
    overwrite: bool = False,
) -> Imported:
    """What was imported; `auto` as format is told from the first file.

    Raises InputError for a file that is not of that format, naming file and record, for files already there without
    `overwrite`, and where nothing came in.
    """
    mapped = parsed_mapping(mapping)
    if not paths:
        raise InputError("no file to import is given")
    name = detected(paths) if format_name == "auto" else OTHER_NAMES.get(format_name, format_name)
    if name not in READERS:
        known = ", ".join(["auto", *READERS, *OTHER_NAMES])
        raise InputError(f"no format {format_name!r}; there are: {known}")
    left_out, remarks = Tally(), Tally()
    found = list(_mapped(READERS[name](paths), mapped, left_out, is_log=name in _LOGS))
    if corpus is not None:
        found = _with_texts(found, Corpus(corpus))
    found, told = with_citations(found)
    if told is not None:
        remarks.add(told, found[0].where)
    rows = _rows(found, left_out, remarks, is_log=name in _LOGS)
    if not rows.cases:
        reasons = ", ".join(f"{count.n} x {count.remark} (first: {count.first})" for count in left_out.listed())
        raise InputError(f"nothing came in from {', '.join(map(str, paths))}: {reasons}; --map says where a field is")
    if not rows.answers:  # the files hold questions alone: that each lacks an answer is said once, by the command
        for remark in ("no_answer", "no_contexts"):
            remarks.counts.pop(remark, None)
    imported = Imported(name, len(rows.cases), left_out=left_out.listed(), remarks=remarks.listed())
    _write(rows, out, imported, overwrite=overwrite)
    return imported


def _mapped(
    records: Iterable[Found | LeftOut], mapping: Sequence[Mapped], left_out: Tally, *, is_log: bool
) -> Iterator[Found]:
    unused = list(mapping)
    for one in records:
        if isinstance(one, LeftOut):
            left_out.add(one.reason, one.where)
            continue
        unused = [mapped for mapped in unused if not finds_something(mapped, one)]
        found = with_mapping(one, mapping)
        if "question" in found.case:
            yield found
        elif is_log:
            left_out.add("no_question", found.where)
        else:
            shown = ", ".join(map(repr, list(found.record)[:20])) if isinstance(found.record, Mapping) else ""
            raise InputError(
                f"{found.where}: found no question among the fields {shown}; say where it is with --map question=…"
            )
    if unused:
        raise InputError(f"--map: {', '.join(repr(mapped.path) for mapped in unused)} leads to nothing in any record")


def _with_texts(found: Sequence[Found], corpus: Corpus) -> list[Found]:
    """The same with the corpus's texts in contexts that have an id alone."""
    filled = []
    for one in found:
        answer = dict(one.answer or {})
        if answer.get("contexts"):
            answer["contexts"] = [
                {**c, "text": text} if "text" not in c and (text := _text_in(corpus, c.get("id"))) is not None else c
                for c in answer["contexts"]
            ]
        filled.append(replace(one, answer=answer or one.answer))
    return filled


def _text_in(corpus: Corpus, doc: Any) -> str | None:
    return corpus.text_of(str(doc)) if str(doc) in corpus else None


def _rows(found: Sequence[Found], left_out: Tally, remarks: Tally, *, is_log: bool) -> _Rows:
    rows = _Rows()
    made: dict[tuple[str | None, str], int] = {}
    for one in found:
        case_id = _id_of(one, made, remarks)
        case = {"id": case_id, **{name: value for name, value in one.case.items() if name != "id"}}
        case_from_row(Row(case, one.where, 0, 0, False))
        known = rows.cases.get(case_id)
        if known is not None and known["question"] != case["question"]:
            raise InputError(f"{one.where}: id {case_id!r} has two questions, first {known['question'][:60]!r}")
        key = (one.system, case_id)
        if key in rows.places and (one.answer is None or case_id in rows.answers.get(one.system, {})):
            if not is_log:
                raise InputError(
                    f"{one.where}: id {case_id!r} stands twice, first at {rows.places[key]}; ids must be unique"
                )
            left_out.add("asked_again", one.where)
            continue
        rows.places.setdefault(key, one.where)
        rows.cases[case_id] = case if known is None else {**case, **known}
        if one.answer is not None:
            answer = {"id": case_id, **one.answer}
            answer_from_row(Row(answer, one.where, 0, 0, False))
            rows.answers.setdefault(one.system, {})[case_id] = answer
        _remark(one, remarks)
    return rows


def _id_of(found: Found, made: dict[tuple[str | None, str], int], remarks: Tally) -> str:
    """The id that the export states; else one made of the question, so that two exports of a question pair."""
    stated = found.case.get("id")
    if stated is not None and stated != "":
        row = Row({"id": stated, "question": "?"}, found.where, 0, 0, False)
        return case_from_row(row).id
    case = case_from_row(Row({**found.case, "id": "?"}, found.where, 0, 0, False))
    base = f"q-{question_hash(case)[:10]}"
    remarks.add("made_ids", found.where)
    number = made[found.system, base] = made.get((found.system, base), 0) + 1
    if number == 1:
        return base
    remarks.add("repeated_question", found.where)
    return f"{base}-{number}"


def _remark(found: Found, remarks: Tally) -> None:
    """Count what the export says of this record, and what it does not hold."""
    for remark in found.remarks:
        remarks.add(remark, found.where)
    answer = found.answer or {}
    if answer.get("answer") is None and answer.get("error") is None:
        remarks.add("no_answer", found.where)
    contexts = answer.get("contexts")
    if contexts is None:
        remarks.add("no_contexts", found.where)
        return
    if any("id" not in context for context in contexts):
        remarks.add("no_context_ids", found.where)
    if any("text" not in context for context in contexts):
        remarks.add("no_context_texts", found.where)


def _write(rows: _Rows, out: Path, imported: Imported, *, overwrite: bool) -> None:
    files = {out / "cases.jsonl": list(rows.cases.values())}
    names: set[str] = set()
    for system, answers in sorted(rows.answers.items(), key=lambda named: named[0] or ""):
        stem = "answers" if len(rows.answers) == 1 else f"answers.{_slug(system, names)}"
        files[out / f"{stem}.jsonl"] = list(answers.values())
    there = [str(path) for path in files if path.exists()]
    if there and not overwrite:
        raise InputError(f"{', '.join(there)}: already there; give another --out, or --overwrite to replace them")
    lines = {path: [json_line(row) for row in of_file] for path, of_file in files.items()}
    try:
        out.mkdir(parents=True, exist_ok=True)
        for path, content in lines.items():
            draft = path.with_name(f".{path.name}.part")
            with open_private(draft, "wb") as file:
                file.writelines(content)
            draft.replace(path)
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror}") from error
    first, *others = files
    imported.cases = str(first)
    imported.n_answers = {str(path): len(files[path]) for path in others}


def _slug(system: str | None, taken: set[str]) -> str:
    """A name of the system for a file, unlike those before it."""
    base = re.sub(r"[^\w.+-]+", "-", system or "unnamed").strip("-.")[:60] or "unnamed"
    name, number = base, 1
    while name.casefold() in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name.casefold())
    return name
