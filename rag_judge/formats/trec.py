"""BEIR folders and TREC files → cases and, from a run, answers that hold what was retrieved."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_judge.errors import InputError
from rag_judge.formats.found import Found, LeftOut
from rag_judge.formats.source import records_of, text_of

_JSON_NAMES = (".jsonl", ".json", ".parquet")


@dataclass(slots=True)
class Collection:
    """What the files of one test collection hold together."""

    queries: dict[str, tuple[str, str, Mapping[str, Any]]] = field(default_factory=dict)  # id → text, place, record
    texts: dict[str, str] = field(default_factory=dict)
    grades: dict[str, dict[str, float]] = field(default_factory=dict)
    runs: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)  # tag → query → document → score


def read_collection(paths: Sequence[Path]) -> Iterator[Found | LeftOut]:
    """Yield a case a query, once for each run; a query that a run does not list has no answer in it.

    Takes a folder, or files: queries and corpus as JSON Lines with `_id`, topics as `id TAB text`, qrels of BEIR
    (three columns under a header) or of TREC (four), runs of TREC (six). Judged or retrieved ids without a query are
    left out.
    """
    known = Collection()
    for path in _files(paths):
        _read(path, known)
    if not known.queries:
        raise InputError(
            f"{', '.join(map(str, paths))}: found no queries, expected queries.jsonl or topics (id TAB text)"
        )
    for query in dict.fromkeys([*known.grades, *(q for run in known.runs.values() for q in run)]):
        if query not in known.queries:
            yield LeftOut("no_query", f"query {query}")
    none: dict[str, dict[str, float]] = {}
    for system in known.runs or [None]:
        run = none if system is None else known.runs[system]
        for query, (text, where, record) in known.queries.items():
            case: dict[str, Any] = {"id": query, "question": text}
            if query in known.grades:
                case["relevant_docs"] = known.grades[query]
            answer = {"contexts": _ranked(run[query], known.texts)} if query in run else None
            yield Found(case, answer, where, record, system=system)


def _ranked(scores: Mapping[str, float], texts: Mapping[str, str]) -> list[dict[str, Any]]:
    """By score, as trec_eval ranks: the rank column is not looked at, and ties go by id, the later first."""
    ordered = sorted(sorted(scores, reverse=True), key=lambda doc: -scores[doc])
    return [{"id": doc, **({"text": texts[doc]} if doc in texts else {}), "score": scores[doc]} for doc in ordered]


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = [p for p in sorted(path.rglob("*")) if p.is_file() and not p.name.startswith(".")]
        splits = [p for p in found if p.parent.name == "qrels"]
        if len(splits) > 1:
            names = ", ".join(p.name for p in splits)
            raise InputError(
                f"{path}: found the splits {names}; name the files: queries.jsonl, corpus.jsonl and one of them"
            )
        yield from (p for p in found if p.suffix in (".jsonl", ".tsv", ".qrels", ".run"))


def _read(path: Path, known: Collection) -> None:
    if path.suffix.lower() in _JSON_NAMES:
        _read_json(path, known)
        return
    for number, line in enumerate(text_of(path).splitlines(), 1):
        where = f"{path}:{number}"
        columns = line.split("\t") if "\t" in line else line.split()
        if not line.strip() or (
            number == 1 and [c.strip().lower() for c in columns] == ["query-id", "corpus-id", "score"]
        ):
            continue
        match [column.strip() for column in columns]:
            case [query, doc, grade] if _is_number(grade):
                _grade(known, query, doc, grade, where)
            case [query, _, doc, grade] if _is_number(grade):
                _grade(known, query, doc, grade, where)
            case [query, _, doc, _, score, tag] if _is_number(score):
                _score(known, query, doc, float(score), tag, where)
            case [query, text] if "\t" in line:
                _query(known, query, text, where, {"id": query, "text": text})
            case _:
                raise InputError(
                    f"{where}: found {len(columns)} columns ({line[:60]!r}), expected qrels (query, document, grade; "
                    "or query, 0, document, grade), a run (query, Q0, document, rank, score, tag) "
                    "or topics (query TAB text)"
                )


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _read_json(path: Path, known: Collection) -> None:
    is_corpus = path.name.startswith("corpus")
    for record in records_of(path):
        doc, text = record.fields.get("_id", record.fields.get("id")), record.fields.get("text")
        if not isinstance(doc, str | int) or isinstance(doc, bool) or not isinstance(text, str):
            shown = json.dumps(record.fields, ensure_ascii=True)[:60]
            raise InputError(f"{record.where}: found {shown}, expected an object with _id and text")
        if is_corpus or (not path.name.startswith("queries") and "title" in record.fields):
            title = record.fields.get("title")
            known.texts[str(doc)] = f"{title}\n{text}" if isinstance(title, str) and title.strip() else text
        else:
            _query(known, str(doc), text, record.where, record.fields)


def _query(known: Collection, query: str, text: str, where: str, record: Mapping[str, Any]) -> None:
    if query in known.queries:
        raise InputError(f"{where}: query {query!r} stands twice, first at {known.queries[query][1]}")
    known.queries[query] = (text, where, record)


def _grade(known: Collection, query: str, doc: str, grade: str, where: str) -> None:
    grades = known.grades.setdefault(query, {})
    if grades.get(doc, float(grade)) != float(grade):
        raise InputError(f"{where}: document {doc!r} of query {query!r} has two grades, {grades[doc]:g} and {grade}")
    grades[doc] = float(grade)


def _score(known: Collection, query: str, doc: str, score: float, tag: str, where: str) -> None:
    ranking = known.runs.setdefault(tag, {}).setdefault(query, {})
    if doc in ranking:
        raise InputError(f"{where}: document {doc!r} stands twice in the ranking of query {query!r} (run {tag!r})")
    ranking[doc] = score
