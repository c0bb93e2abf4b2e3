"""The commands `import` and `export`. No logic lives here.

As in `cli`, what a command needs is imported when it runs.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag_judge.options import Config, Json, Lang, Quiet, flags_of
from rag_judge.printing import let_pipes_end, print_json
from rag_judge.progress import Voice
from rag_judge.report.terminal import printable

if TYPE_CHECKING:
    from rag_judge.formats import Exported, Imported

_FORMATS = "auto, ragas, deepeval, promptfoo, langsmith, langfuse, openinference, otel, trec, plain"
_WRITTEN = "ragas, deepeval, trec-run, trec-qrels, plain"

WORDS = {
    "en": {
        "cases": "{path}: {n} cases ({format})",
        "answers": "{path}: {n} answers",
        "no_answers": "no answers: the files hold questions alone",
        "left_out": "left out: {n} x {what} (first: {first})",
        "remark": "note: {n} x {what} (first: {first})",
        "exported": "{path}: {n} rows ({format})",
        "lost": "left out: {what} of {n} cases",
        "next": "next: rag-judge run --cases {cases} --answers {answers} --judge none",
        "no_question": "no question found; if it is there, say where with --map question=…",
        "no_turns": "a scenario without turns asks nothing yet",
        "repeated_span": "the same span delivered again",
        "no_query": "judged or retrieved for a query that is not among the queries",
        "asked_again": "another answer to the same case; a case has one answer",
        "made_ids": "no id in the export; one was made from the question",
        "repeated_question": "the same question again; its id ends in -2, -3 …",
        "no_answer": "no answer",
        "no_contexts": "no contexts recorded: no retrieval metrics, and no judging",
        "unreadable_contexts": "retrieved documents of a shape that is not known; say where they are with --map",
        "several_retrievals": "several retrievals in one trace; their documents stand one after another, each once",
        "joined_contexts": "contexts joined with | in the export: one that holds | itself has come apart",
        "no_context_ids": "contexts without id: no retrieval metrics",
        "no_context_texts": "contexts without text; --corpus adds it by id",
        "citations_from_0": "numbers in brackets read as citations, counted from 0 in all answers",
        "citations_from_1": "numbers in brackets read as citations, counted from 1 in all answers",
        "citations_unresolved": "citations that point at no context's id; kept as citations_unresolved",
        "citations_undecided": "numbers in brackets not read as citations: they may count from 0 or 1, or be ids",
        "template_asserts": "an assertion with a template in it",
    },
    "zh": {
        "cases": "{path}:{n} 条用例({format})",
        "answers": "{path}:{n} 条回答",
        "no_answers": "没有回答:文件里只有问题",
        "left_out": "未导入:{n} 条,{what}(首见:{first})",
        "remark": "注意:{n} 条,{what}(首见:{first})",
        "exported": "{path}:{n} 行({format})",
        "lost": "未导出:{n} 条用例的 {what}",
        "next": "下一步:rag-judge run --cases {cases} --answers {answers} --judge none",
        "no_question": "找不到问题;若确有,请用 --map question=… 指明位置",
        "no_turns": "只有场景、没有轮次,尚未提问",
        "repeated_span": "同一个 span 重复送达",
        "no_query": "评判或检索所属的查询不在查询之列",
        "asked_again": "同一用例的另一个回答;一条用例只有一个回答",
        "made_ids": "导出中没有 id,已由问题生成",
        "repeated_question": "同一问题再次出现,其 id 以 -2、-3 … 结尾",
        "no_answer": "没有回答",
        "no_contexts": "没有记录上下文:无法算检索指标,也无法评审",
        "unreadable_contexts": "检索结果的形状无法识别;请用 --map 指明位置",
        "several_retrievals": "一条 trace 中有多次检索,其文档依次排列、去重",
        "joined_contexts": "导出中上下文以 | 连接:自身含 | 的上下文已被拆开",
        "no_context_ids": "上下文没有 id:无法算检索指标",
        "no_context_texts": "上下文没有正文;--corpus 可按 id 补上",
        "citations_from_0": "方括号中的数字按引用读取,全部回答从 0 数起",
        "citations_from_1": "方括号中的数字按引用读取,全部回答从 1 数起",
        "citations_unresolved": "引用对不上任何上下文的 id,已留在 citations_unresolved",
        "citations_undecided": "方括号中的数字未按引用读取:可能从 0 或 1 数起,也可能就是 id",
        "template_asserts": "断言里含有模板",
    },
}

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that are there already.")]


def import_(
    format_name: Annotated[str, typer.Argument(metavar="FORMAT", help=f"{_FORMATS}; auto tells it from the file.")],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="The exported files; for trec, or a folder.")],
    out: Annotated[Path, typer.Option("--out", help="The folder for cases.jsonl and answers.jsonl.")],
    mapping: Annotated[
        list[str] | None,
        typer.Option("--map", help="FIELD=PATH, as question=vars.q or contexts[].text=docs[].body; several times."),
    ] = None,
    corpus: Annotated[
        Path | None,
        typer.Option("--corpus", help="Chunks that give contexts their text, where an export has ids alone."),
    ] = None,
    overwrite: Overwrite = False,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read another tool's export as cases and answers of ours. Nothing is asked or sent.

    Example: rag-judge import ragas dataset.jsonl --out imported

    Example: rag-judge import plain log.csv --out imported --map question=query --map contexts[].text=docs[].body
    """
    from rag_judge.formats import import_files
    from rag_judge.settings import load_settings

    of_run = load_settings(config, os.environ, flags_of(locals(), "lang")).run
    with Voice(quiet=quiet):
        imported = import_files(format_name, files, out, mapping=mapping or (), corpus=corpus, overwrite=overwrite)
    let_pipes_end()
    if as_json:
        print_json(asdict(imported))
    else:
        _print_imported(imported, WORDS[of_run.lang], quiet=quiet)


def export(
    run_name: Annotated[str, typer.Argument(metavar="RUN", help="A finished run: its folder or id.")],
    format_name: Annotated[str, typer.Option("--format", help=f"{_WRITTEN}.")],
    out: Annotated[
        Path, typer.Option("--out", help="The file to write; plain goes by its ending: csv, parquet, jsonl.")
    ],
    runs: Annotated[str | None, typer.Option("--runs", help="The archive in which RUN is looked for. [runs]")] = None,
    overwrite: Overwrite = False,
    config: Config = None,
    lang: Lang = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a finished run's cases and answers as a file of another tool.

    Example: rag-judge export 2026-01-31-baseline --format ragas --out baseline.jsonl
    """
    from rag_judge.archive import find_run, read_run
    from rag_judge.formats import export_run
    from rag_judge.settings import load_settings

    of_run = load_settings(config, os.environ, flags_of(locals(), "lang")).run
    with Voice(quiet=quiet):
        run = read_run(find_run(Path(runs or of_run.out), run_name).path)
        exported = export_run(run, format_name, out, overwrite=overwrite)
    let_pipes_end()
    if as_json:
        print_json(asdict(exported))
    else:
        _print_exported(exported, WORDS[of_run.lang])


def _print_imported(imported: Imported, words: dict[str, str], *, quiet: bool) -> None:
    named = {"path": printable(imported.cases), "n": imported.n_cases, "format": imported.format}
    typer.echo(words["cases"].format_map(named))
    for path, n in imported.n_answers.items():
        typer.echo(words["answers"].format(path=printable(path), n=n))
    if not imported.n_answers:
        typer.echo(words["no_answers"])
    for name, counts in (("left_out", imported.left_out), ("remark", imported.remarks)):
        for count in counts:
            typer.echo(words[name].format(n=count.n, what=words[count.remark], first=printable(count.first)))
    if imported.n_answers and not quiet:
        answers = next(iter(imported.n_answers))
        typer.echo(words["next"].format(cases=printable(imported.cases), answers=printable(answers)))


def _print_exported(exported: Exported, words: dict[str, str]) -> None:
    named = {"path": printable(exported.path), "n": exported.n_rows, "format": exported.format}
    typer.echo(words["exported"].format_map(named))
    for what, n in exported.lost.items():
        typer.echo(words["lost"].format(what=what, n=n))
