"""A review sheet as one HTML page that works offline: one item at a time, judged by keys, kept in the browser.

The page names nothing outside itself; its one script is allowed by its hash. Texts travel as JSON and are put on the
page as text, never as markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from rag_judge.records import Value, VerdictField
from rag_judge.review.cells import WORDS as CELL_WORDS
from rag_judge.review.html_words import WORDS
from rag_judge.review.instructions import FieldWords, Instructions
from rag_judge.review.sheet import ReviewContext, ReviewItem, Sheet, asks_why, text_digest, writable

if TYPE_CHECKING:
    from jinja2 import Template

EXPORT_FORMAT = "rag-judge-review-labels"  # what the file that the page saves calls itself
_FOLDER = "templates"


def render_html(sheet: Sheet, told: Instructions) -> str:
    """The page. Raises KeyError for a language without wording."""
    words = WORDS[sheet.lang]
    script = _text("sheet.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _template().render(
        w=words,
        told=told,
        annotator=writable(sheet.annotator),
        sheet_id=sheet.sheet_id,
        style=_text("sheet.css"),
        script=script,
        script_hash=f"sha256-{digest}",
        keys=words_of_keys(sheet),
        sheet_json=_json(_page_data(sheet, told)),
    )


def words_of_keys(sheet: Sheet) -> list[tuple[str, str]]:
    """(key, what it does) of every key of the page."""
    words = WORDS[sheet.lang]
    kinds = {field.kind for field in sheet.fields if field.name != "cause"}
    names = [name for kind, name in (("boolean", "y n u"), ("score", "digits"), ("choice", "letters")) if kind in kinds]
    rest = [
        "field",
        "next",
        "previous",
        "gap",
        "critique",
        "note",
        "clear",
        "undo",
        "highlight",
        "export",
        "help",
        "leave",
    ]
    if any(field.name == "cause" for field in sheet.fields):
        rest.insert(4, "cause")
    if kinds == {"score"}:
        rest.remove("field")
    return [(words[f"key.{name}"], words[f"does.{name}"]) for name in (*names, *rest)]


def _page_data(sheet: Sheet, told: Instructions) -> dict[str, Any]:
    return {
        "format": EXPORT_FORMAT,
        "sheet": sheet.sheet_id,
        "annotator": writable(sheet.annotator),
        "instructions_version": sheet.instructions_version,
        "fields": [_field(field, told, sheet.lang) for field in sheet.fields],
        "free": {name: _words(told.fields[name]) for name in ("critique", "note")},
        "items": [_item(item, sheet.lang) for item in sheet.items],
        "words": {name: text for name, text in WORDS[sheet.lang].items() if name.startswith("js.")},
    }


def _words(words: FieldWords) -> dict[str, str]:
    return {"label": words.label, "question": words.question, "how": words.how}


def _field(field: VerdictField, told: Instructions, lang: str) -> dict[str, Any]:
    return {
        "name": field.name,
        "kind": "cause" if field.name == "cause" else field.kind,
        **_words(told.fields[field.name]),
        "options": _options(field, told, lang),
        "asks_why_of": _asks_why_of(field),
    }


def _asks_why_of(field: VerdictField) -> list[str]:
    """The values of a field that ask for a critique, as the page spells them."""
    values: dict[str, Value] = {"no": False} if field.kind == "boolean" else {}
    if field.kind == "score":
        values = {str(n): n for n in range(field.low, field.high + 1)}
    return [spelled for spelled, value in values.items() if asks_why(field, value)]


def _options(field: VerdictField, told: Instructions, lang: str) -> list[dict[str, str]]:
    words = WORDS[lang]
    unsure = _option("unsure", words["unsure"], "u")
    if field.kind == "boolean":
        return [_option("yes", words["yes"], "y"), _option("no", words["no"], "n"), unsure]
    if field.kind == "score":
        scores = range(field.low, field.high + 1)
        return [*(_option(str(n), str(n), str(n) if 0 <= n <= 9 else "") for n in scores), unsure]
    if field.name == "cause":
        return [_option(cause, f"{cause} · {meaning}", "") for cause, meaning in told.causes.items()]
    taken = {"u"}
    options = []
    for choice in field.choices:
        key = choice[:1].casefold()
        options.append(_option(choice, words.get(f"choice.{choice}", choice), "" if key in taken else key))
        taken.add(key)
    return [*options, unsure]


def _option(value: str, label: str, key: str) -> dict[str, str]:
    return {"value": value, "label": label, "key": key}


def _item(item: ReviewItem, lang: str) -> dict[str, Any]:
    texts = item.texts
    return {
        "id": item.id,
        "digest": text_digest(item),
        "history": [writable(turn) for turn in texts.history],
        "question": writable(texts.question),
        "answers": [writable(answer) for answer in texts.answers],
        "contexts": [None if part is None else [_context(c, lang) for c in part] for part in texts.contexts],
    }


def _context(context: ReviewContext, lang: str) -> dict[str, str]:
    text = CELL_WORDS[lang]["no_text"] if context.text is None else context.text
    return {"id": writable(context.id or ""), "text": writable(text)}


def _json(value: Any) -> str:
    """JSON that may stand in a script element or in a single-quoted attribute: nothing in it can end either."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&'\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _text(name: str) -> str:
    return (resources.files("rag_judge.review") / _FOLDER / name).read_text(encoding="utf-8")


@lru_cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("rag_judge.review", _FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("sheet.html.j2")
