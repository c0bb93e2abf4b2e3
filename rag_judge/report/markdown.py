"""A run, and what was joined to it → one page of Markdown, for a pull request or a chat. Nothing is computed.

It says what `report.html` says, shorter. Every text of a case, a model or a setting is data: it becomes no markup, no
HTML, no mention of anybody, no link and no row of a table, whatever the place that shows it makes of plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_judge.report.html import ReportCase, joined_sections, parts_of, tables
from rag_judge.report.html_facts import about, made_of, value_text
from rag_judge.report.html_numbers import Section, sentence
from rag_judge.report.html_terms import CAUSES
from rag_judge.report.html_words import LAYERS, OUTCOMES, WORDS
from rag_judge.report.joined import Block, Cell, Joined, Part
from rag_judge.report.joined_words import JOINED_WORDS
from rag_judge.report.terminal import WORDS as TERMINAL_WORDS
from rag_judge.report.terminal import pair_lines, printable

Tree = Mapping[str, Any]

MOST_BYTES = 58_000  # of a page; places that show it take 65,536 characters
N_CASES_SHOWN, N_ROWS_SHOWN, N_IDS_SHOWN = 24, 24, 24
N_CHARACTERS_SHOWN = 160  # of a text in a table
JOINER = "\u2060"  # takes no room and joins what stands beside it: what it parts is no mention and no link

_INTERVAL = r"\[[-+\d., %]*\d[-+\d., %]*\](?![(\[:])"  # of a number of ours; no link can be made of it
_SPECIAL = re.compile(
    rf"(?P<keep>{_INTERVAL})"
    r"|(?P<scheme>://)"
    r"|(?P<www>www(?=\.))"
    r"|(?P<dot>(?<=[^\W_])\.(?=[^\W\d_]{2}))"  # of a bare host name
    r"|(?P<emoji>:(?=[\w+-]+:))"
    r"|(?P<issue>(?<![0-9a-z])GH-(?=[0-9]))"
    r"|(?P<hash>(?<![0-9a-z])(?=[0-9]*[a-f])[0-9a-f]{7,40}(?![0-9a-z]))"  # of a commit
    r"|(?P<mark>[\\`*_\[\]<>&|~#@!$%^])",
    re.IGNORECASE,
)
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "|": "&#124;", "`": "&#96;"}
_BACKSLASHED = frozenset("\\*_[]~#$")
_REFERRING = frozenset("@#!$%&~^")  # begin a mention or a reference in one place or another
_GO_ON = frozenset("_-\"'{/")  # and a reference goes on with these, or with a letter or digit
_CODE = re.compile(r"[^\W_][\w.:/#+-]{0,79}")
_LINE_START = re.compile(r"(?:[-+=]|\d+(?=[.)]))")


# --- texts that are data ---------------------------------------------------------------------------------------------


def escaped(text: str, most: int = N_CHARACTERS_SHOWN) -> str:
    """The text on one line, shortened, as Markdown that shows it and nothing else."""
    flat = " ".join(printable(text[: 4 * most]).split())
    flat = flat if len(flat) <= most else f"{flat[:most]}…"
    return _SPECIAL.sub(_harmless, flat)


def _harmless(found: re.Match[str]) -> str:
    text, kind = found[0], found.lastgroup
    if kind == "keep":
        return text
    if kind == "scheme":
        return f":{JOINER}//"
    if kind == "hash":
        return f"{text[:3]}{JOINER}{text[3:]}"
    if kind != "mark":
        return f"{text}{JOINER}"
    shown = _ENTITIES.get(text, f"\\{text}" if text in _BACKSLASHED else text)
    after = found.string[found.end() : found.end() + 1]
    return f"{shown}{JOINER}" if text in _REFERRING and (after.isalnum() or after in _GO_ON) else shown


def code(text: str) -> str:
    """An id or a name: as code where that can hold it, which keeps it whole for copying, else escaped."""
    if _CODE.fullmatch(text) and "//" not in text and not text.lower().startswith("www."):
        return f"`{text}`"
    return escaped(text)


def _shown(text: str, most: int = N_CHARACTERS_SHOWN) -> str:
    """The text escaped; what would not stay as it is, and can be code, as code."""
    plain = escaped(text, most)
    return plain if plain == text else code(text) if _CODE.fullmatch(text) else plain


def _paragraph(text: str) -> str:
    """A line of its own, which begins no list, heading or rule."""
    shown = escaped(text, 4 * N_CHARACTERS_SHOWN)
    start = _LINE_START.match(shown)
    if start is None:
        return shown
    return f"{start[0]}\\{shown[start.end() :]}" if start[0][0].isdigit() else f"\\{shown}"


def _row(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table; its cells are Markdown already."""
    yield ""
    yield _row([escaped(column) for column in columns])
    yield _row(["---"] * len(columns))
    yield from map(_row, rows)
    yield ""


def _bullets(texts: Sequence[str]) -> Iterator[str]:
    yield from (f"- {_paragraph(text)}" for text in texts)


def _facts(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield from (f"- **{escaped(name)}**: {_shown(value)}" for name, value in pairs)


# --- the page --------------------------------------------------------------------------------------------------------


def render_markdown(
    manifest: Tree,
    summary: Tree,
    cases: Sequence[ReportCase],
    *,
    n_not_passed: int,
    lang: str,
    joined: Joined,
) -> str:
    """The page: what was decided, the numbers, what differs from another run, and the first cases that did not pass.

    Below 60 kB, and cut at the end of a line where it would not be. Raises KeyError for a language without wording.
    """
    words = WORDS[lang]
    first, others = parts_of(summary, joined, lang)
    lines = [f"# {escaped(words['title'])}: {code(str(manifest.get('run_id')))}", ""]
    lines += _facts(about(manifest, summary, lang))
    lines += _warnings(manifest, summary, lang)
    for part in first:
        lines += _part(part, lang)
    lines += ["", f"## {words['numbers']}", ""]
    for section in joined_sections(summary, joined, lang):
        lines += _section(section, summary, lang)
    for part in others:
        lines += _part(part, lang)
    lines += _where(summary, lang)
    lines += _made(manifest, lang)
    lines += _cases(cases, n_not_passed, lang)  # last: they are what a limit cuts first
    return _fitting(lines, lang)


def render_pairs_markdown(manifest: Tree, summary: Tree, lang: str) -> str:
    """The page of a pairwise comparison: its lines for people."""
    names = [str(((manifest.get("pair") or {}).get(side) or {}).get("run_id")) for side in ("a", "b")]
    embedded = bool((manifest.get("judge") or {}).get("embedded"))
    title = f"# {escaped(WORDS[lang]['title'])}: {code(str(manifest.get('run_id')))}"
    lines = pair_lines(summary, (names[0], names[1]), lang, embedded=embedded)
    return _fitting([title, "", *_facts(about(manifest, summary, lang)), "", *_bullets(lines)], lang)


def _warnings(manifest: Tree, summary: Tree, lang: str) -> Iterator[str]:
    """What to know before reading a number."""
    words, judge = WORDS[lang], manifest.get("judge") or {}
    said = []
    if judge.get("embedded"):
        said.append((words["embedded_title"], words["embedded"]))
    if summary["judge"]["mode"] == "none":
        said.append((words["no_judge_title"], words["no_judge_note"]))
    said += [
        (words["same_family_title"], words["same_family"].format_map(one)) for one in manifest.get("same_family") or ()
    ]
    if judge.get("fallbacks"):
        said.append((words["fallbacks_title"], "; ".join(sentence(text, lang) for text in judge["fallbacks"])))
    for title, says in said:
        yield from ("", f"> **{escaped(title)}** {escaped(says, 4 * N_CHARACTERS_SHOWN)}")


def _section(section: Section, summary: Tree, lang: str) -> Iterator[str]:
    """The numbers of one source as a table, each with its interval."""
    words = WORDS[lang]
    yield from (f"### {escaped(words['section.' + section.name])}", "")
    rows = []
    for metric in section.metrics:
        ids = ", ".join(map(code, metric.ids[:N_IDS_SHOWN]))
        left = len(metric.ids) - N_IDS_SHOWN
        more = escaped(JOINED_WORDS[lang]["more_ids"].format(n=left)) if left > 0 else ""
        about_it = [*map(escaped, metric.notes), *filter(None, (ids, more))]
        shown = escaped(metric.value, 2 * N_CHARACTERS_SHOWN)
        shown = f"**{shown}**" if metric.is_alarming else shown
        rows.append([escaped(metric.label), shown, " ".join(about_it)])
    if rows:
        joined_words = JOINED_WORDS[lang]
        yield from _table([joined_words["metric"], joined_words["value"], joined_words["detail"]], rows)
    notes = list(section.notes)
    if section.name == "rules":
        notes.insert(
            0,
            TERMINAL_WORDS[lang]["refusal"] + TERMINAL_WORDS[lang]["refusal_detail"].format_map(summary["abstention"]),
        )
    yield from (*_bullets(notes), "")


def _part(part: Part, lang: str) -> Iterator[str]:
    yield from ("", f"## {escaped(part.title)}", "")
    for block in part.blocks:
        yield from _block(block, lang)


def _block(block: Block, lang: str) -> Iterator[str]:
    if block.notice:
        yield from (f"> **{escaped(block.heading)}** {escaped(block.notice, 4 * N_CHARACTERS_SHOWN)}", "")
    elif block.heading:
        yield from (f"### {escaped(block.heading)}", "")
    yield from _bullets(block.lines)
    yield from _facts(block.facts)
    if block.rows:
        yield from _table(block.columns, [list(map(_cell, row)) for row in block.rows[:N_ROWS_SHOWN]])
    if block.ids:
        yield f"- {', '.join(map(code, block.ids[:N_IDS_SHOWN]))}"
    left = max(len(block.rows) - N_ROWS_SHOWN, len(block.ids) - N_IDS_SHOWN)
    if left > 0:
        yield _paragraph(JOINED_WORDS[lang]["more_ids"].format(n=left))
    if block.note:
        yield _paragraph(block.note)
    yield ""


def _cell(cell: Cell) -> str:
    if cell.is_case:
        return code(cell.text)
    shown = _shown(cell.text, 2 * N_CHARACTERS_SHOWN)
    return f"**{shown}**" if cell.tone == "red" else shown


def _where(summary: Tree, lang: str) -> Iterator[str]:
    """By type, and by cause."""
    words, found = WORDS[lang], tables(summary, lang)
    yield from ("", f"## {words['where']}")
    is_judged = summary["judge"]["mode"] != "none"
    columns = [words["type"], words["n"], words["rules"], *([words["section.judge"]] if is_judged else [])]
    columns.append(words["section.end_to_end"])
    types = found["types"]
    if types:
        rows = [[_shown(name), str(n), *map(escaped, values)] for name, n, values in types[:N_ROWS_SHOWN]]
        yield from ("", f"### {words['by_type']}", *_table(columns, rows))
        if len(types) > N_ROWS_SHOWN:
            yield _paragraph(JOINED_WORDS[lang]["more_ids"].format(n=len(types) - N_ROWS_SHOWN))
    if found["causes"]:
        rows = []
        for name, n, meaning, layer in found["causes"][:N_ROWS_SHOWN]:
            label, means, mend = meaning or (name, "", "")
            rows.append([escaped(label), str(n), *map(escaped, (layer or "", means, mend))])
        columns = [words[name] for name in ("cause", "n", "layer", "means", "mend")]
        yield from ("", f"### {words['causes']}", *_table(columns, rows))


def _cases(cases: Sequence[ReportCase], n_not_passed: int, lang: str) -> Iterator[str]:
    """The first cases that did not pass, a row each; the run's page and files hold them whole."""
    words = WORDS[lang]
    yield from ("", f"## {words['cases']} ({n_not_passed})", "")
    rows = []
    for given in cases[:N_CASES_SHOWN]:
        row = given.row
        number = "" if row.answer_no is None else f" ({row.answer_no})"
        cause = "" if row.cause is None else CAUSES[lang].get(row.cause, (row.cause, "", ""))[0]
        layer = "" if row.layer is None else LAYERS[lang].get(row.layer, row.layer)
        ended = OUTCOMES[lang].get(row.outcome, row.outcome)
        why = " · ".join(filter(None, (cause, layer)))
        texts = (row.type or "", ended, why, given.case.question, row.evidence or "")
        rows.append([code(row.id) + number, *map(_shown, texts)])
    if rows:
        joined_words = JOINED_WORDS[lang]
        columns = [joined_words["case"], words["type"], joined_words["outcome"], words["cause"], words["question"]]
        yield from _table([*columns, words["evidence"]], rows)
    if n_not_passed > len(rows):
        yield _paragraph(words["more_cases"].format(n=n_not_passed - len(rows)))


def _made(manifest: Tree, lang: str) -> Iterator[str]:
    """What was graded, and by what."""
    words = WORDS[lang]
    system = [(str(name), value_text(value, lang)) for name, value in (manifest.get("system") or {}).items()]
    yield from ("", f"## {words['made']}")
    for heading, pairs in [*made_of(manifest, lang), (words["system"], system[:N_ROWS_SHOWN])]:
        if pairs:
            yield from ("", f"### {escaped(heading)}", "", *_facts(pairs))


def _fitting(lines: Sequence[str], lang: str) -> str:
    """The lines as one text without a blank line twice, cut after the last that fits."""
    note = f"\n{JOINED_WORDS[lang]['cut']}\n"
    kept: list[str] = []
    n_bytes = len(note.encode())
    for line in lines:
        if not line and kept and not kept[-1]:
            continue
        n_bytes += len(line.encode("utf-8", "replace")) + 1
        if n_bytes > MOST_BYTES:
            return "\n".join(kept) + "\n" + note
        kept.append(line)
    return "\n".join(kept).rstrip() + "\n"
