"""A finished run → a file of another tool. What that format has no place for is left out and counted."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from rag_judge.answers import AnswerSet, answer_fields
from rag_judge.archive import FinishedRun, open_private, write_csv
from rag_judge.cases import CaseSet, case_fields
from rag_judge.errors import InputError
from rag_judge.formats.deepeval import ID_KEY
from rag_judge.records import Answer, Case
from rag_judge.rows import json_line

_GRADES = ("outcome", "cause", "layer", "rule_correct", "judge_pass", "score")


@dataclass(slots=True)
class Exported:
    """What was written where, and how many cases lost what."""

    format: str
    path: str
    n_rows: int = 0
    lost: dict[str, int] = field(default_factory=dict)

    def lose(self, what: str) -> None:
        """Count one more case that lost this."""
        self.lost[what] = self.lost.get(what, 0) + 1


@dataclass(frozen=True, slots=True)
class _Graded:
    case: Case
    answer: Answer
    grades: Mapping[str, Any]


def export_run(run: FinishedRun, format_name: str, out: Path, *, overwrite: bool = False) -> Exported:
    """What was exported. Raises InputError for a comparison, an unknown format, a file that is there already without
    `overwrite`, and an id that the format cannot hold.
    """
    if format_name not in WRITERS:
        raise InputError(f"no format {format_name!r}; there are: {', '.join(WRITERS)}")
    if run.manifest.get("kind") == "pairwise":
        raise InputError(f"{run.folder.path}: found a comparison, expected a run")
    if out.exists() and not overwrite:
        raise InputError(f"{out}: already there; give another --out, or --overwrite to replace it")
    exported = Exported(format_name, str(out))
    content = WRITERS[format_name](_graded(run, exported), out, exported)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        draft = out.with_name(f".{out.name}.part")
        with open_private(draft, "wb") as file:
            file.write(content)
        draft.replace(out)
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror}") from error
    return exported


def _graded(run: FinishedRun, exported: Exported) -> list[_Graded]:
    cases = CaseSet(run.folder.snapshot)
    answers = AnswerSet(run.folder.answers, cases.offsets)
    try:
        table = run.table()
        columns = table[["id", *_GRADES]].astype(object)
        rows = columns.where(columns.notna(), None).to_dict("records")
        grades: dict[str, dict[str, Any]] = {}
        for row in rows:  # of several answers to a case the first is exported
            grades.setdefault(row["id"], {str(name): value for name, value in row.items()})
        if answers.most > 1:
            exported.lost["further answers"] = len(answers.offsets)
        return [_Graded(case, answers.get(case.id), grades.get(case.id, {})) for case in cases]
    finally:
        answers.close()
        cases.close()


def _texts(answer: Answer, exported: Exported) -> list[str] | None:
    """The contexts' texts; None, and counted, where one of them is not known."""
    if answer.contexts is None:
        return None
    texts = [context.text for context in answer.contexts if context.text is not None]
    if len(texts) < len(answer.contexts):
        exported.lose("contexts")
        return None
    return texts


def _ragas(graded: Sequence[_Graded], out: Path, exported: Exported) -> bytes:
    """Samples as JSON Lines; a conversation becomes messages, and its contexts have no place there."""
    lines = []
    for one in graded:
        case, answer = one.case, one.answer
        row: dict[str, Any] = {"id": case.id, "user_input": case.question}
        if case.history:
            row["user_input"] = _messages(case, answer.answer)
            if answer.contexts is not None:
                exported.lose("contexts")
        else:
            row["retrieved_contexts"] = _texts(answer, exported)
            ids = [context.id for context in answer.contexts or ()]
            row["retrieved_context_ids"] = ids if ids and None not in ids else None
            row["reference_context_ids"] = [doc for doc, grade in case.relevant_docs.items() if grade > 0] or None
            row["response"] = answer.answer
        row["reference"] = case.reference
        _lose_expectations(case, exported)
        lines.append(json_line({name: value for name, value in row.items() if value is not None}))
    exported.n_rows = len(lines)
    return b"".join(lines)


def _messages(case: Case, answer: str | None) -> list[dict[str, str]]:
    """The turns as ragas' messages: a turn that does not say who spoke is the user's if it stands at an even place."""
    messages = []
    for i, turn in enumerate(case.history):
        role = turn.get("role") if isinstance(turn, Mapping) else None
        is_user = role == "user" if role else i % 2 == 0
        text = turn.get("content", "") if isinstance(turn, Mapping) else turn
        messages.append({"content": str(text), "type": "human" if is_user else "ai"})
    messages.append({"content": case.question, "type": "human"})
    return [*messages, *([] if answer is None else [{"content": answer, "type": "ai"}])]


def _deepeval(graded: Sequence[_Graded], out: Path, exported: Exported) -> bytes:
    """Goldens as one JSON array, each with its answer and contexts, and the id under its metadata."""
    rows = []
    for one in graded:
        case, answer = one.case, one.answer
        texts = _texts(answer, exported)
        marked = None
        if texts is not None and answer.contexts is not None:
            pairs = zip(answer.contexts, texts, strict=True)
            marked = [f"deepeval_source={c.id},deepeval_context={t}" if c.id is not None else t for c, t in pairs]
        if case.history:
            exported.lose("history")
        if case.relevant_docs:
            exported.lose("relevant_docs")
        _lose_expectations(case, exported)
        row = {"input": case.question, "actual_output": answer.answer, "expected_output": case.reference}
        rows.append({**row, "retrieval_context": marked, "context": None, "additional_metadata": {ID_KEY: case.id}})
    exported.n_rows = len(rows)
    return (json.dumps(rows, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "replace")


def _lose_expectations(case: Case, exported: Exported) -> None:
    for name in ("must_include", "must_not_include", "acceptable", "expect_refusal", "forbidden_docs", "tenant"):
        if getattr(case, name) not in (None, ()):
            exported.lose(name)


def _trec_run(graded: Sequence[_Graded], out: Path, exported: Exported) -> bytes:
    """Rankings in six columns; where scores are missing or do not fall, n, n - 1 … stand in their place."""
    lines = []
    for one in graded:
        contexts = one.answer.contexts
        if contexts is None or any(context.id is None for context in contexts):
            exported.lose("contexts")
            continue
        scores = {str(c.id): c.score for c in reversed(contexts)}  # of a repeated document, the first
        docs = list(dict.fromkeys(str(context.id) for context in contexts))
        known = [score for doc in docs if (score := scores[doc]) is not None]
        is_falling = len(known) == len(docs) and all(a > b for a, b in pairwise(known))
        if not is_falling:
            exported.lose("scores")
        for rank, doc in enumerate(docs, 1):
            score = known[rank - 1] if is_falling else len(docs) - rank + 1
            lines.append(f"{_column(one.case.id)} Q0 {_column(doc)} {rank} {score!r} rag-judge\n")
    exported.n_rows = len(lines)
    return "".join(lines).encode()


def _trec_qrels(graded: Sequence[_Graded], out: Path, exported: Exported) -> bytes:
    """Grades in four columns."""
    lines = [
        f"{_column(one.case.id)} 0 {_column(doc)} {grade:g}\n"
        for one in graded
        for doc, grade in one.case.relevant_docs.items()
    ]
    exported.n_rows = len(lines)
    return "".join(lines).encode()


def _column(text: str) -> str:
    if not text or any(c.isspace() for c in text):
        raise InputError(f"the id {text!r} holds white space, which separates the columns of TREC files")
    return text


def _plain(graded: Sequence[_Graded], out: Path, exported: Exported) -> bytes:
    """A row a case with its answer and how it ended; CSV, Parquet or JSON Lines by the file's name."""
    rows = []
    for one in graded:
        answer = answer_fields(one.answer)
        if "contexts" in answer:
            answer["contexts"] = [{k: v for k, v in c.items() if v is not None} for c in answer["contexts"]]
        grades = {name: one.grades.get(name) for name in _GRADES if one.grades.get(name) is not None}
        rows.append({**case_fields(one.case), **answer, **{f"grade_{name}": value for name, value in grades.items()}})
    exported.n_rows = len(rows)
    if out.suffix.lower() == ".csv":
        columns = list(dict.fromkeys(name for row in rows for name in row))
        text = io.StringIO(newline="")
        write_csv(text, columns, ([_cell(row.get(name)) for name in columns] for row in rows))
        return text.getvalue().encode("utf-8", "replace")
    if out.suffix.lower() == ".parquet":
        return _parquet(rows)
    if out.suffix.lower() in (".xlsx", ".xls", ".ods"):
        raise InputError(f"{out}: no workbook is written; name a file that ends in .csv, .parquet or .jsonl")
    return b"".join(json_line(row) for row in rows)


def _cell(value: Any) -> Any:
    is_nested = isinstance(value, list | tuple | dict)
    return json.dumps(value, ensure_ascii=False) if is_nested else value


def _parquet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Columns of one type each: what is nested is JSON as text, as it is in CSV."""
    import pyarrow as pa
    import pyarrow.parquet

    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = {name: [_cell(row.get(name)) for row in rows] for name in columns}
    target = io.BytesIO()
    try:
        pyarrow.parquet.write_table(pa.table(cells), target)
    except (pa.ArrowException, UnicodeEncodeError) as error:
        raise InputError(f"a column cannot be written as Parquet: {error}; export to JSON Lines") from error
    return target.getvalue()


WRITERS: Mapping[str, Callable[[Sequence[_Graded], Path, Exported], bytes]] = {
    "ragas": _ragas,
    "deepeval": _deepeval,
    "trec-run": _trec_run,
    "trec-qrels": _trec_qrels,
    "plain": _plain,
}
