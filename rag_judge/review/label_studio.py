"""A review sheet as Label Studio tasks with their labelling configuration, and what its two JSON exports say.

Tasks carry no predictions: what is pre-filled is no longer a person's own judgement.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from xml.sax.saxutils import quoteattr

from rag_judge.records import VerdictField
from rag_judge.review.cells import PLACES, WORDS, cells_of, context_title
from rag_judge.review.instructions import Instructions
from rag_judge.review.sheet import FREE_FIELDS, ReviewItem, Sheet, columns_of, text_digest, writable

_VALUES = {
    "en": {"yes": "yes", "no": "no", "unsure": "unsure", "tie": "tie"},
    "zh": {"yes": "是", "no": "否", "unsure": "不确定", "tie": "平局"},
}
_HOTKEYS = "1234567890qwertyuiopasdfghjklzxcvbnm"
HEADINGS = {
    "en": {
        "question": "Question",
        "answer": "Answer",
        "answer_a": "Answer A",
        "answer_b": "Answer B",
        "contexts": "Contexts",
    },
    "zh": {"question": "问题", "answer": "回答", "answer_a": "回答 A", "answer_b": "回答 B", "contexts": "资料"},
}


def tasks_of(sheet: Sheet) -> str:
    """The tasks as JSON text, in the order of the sheet."""
    tasks = [{"data": _data(sheet, item)} for item in sheet.items]
    return json.dumps(tasks, ensure_ascii=False, indent=1) + "\n"


def _data(sheet: Sheet, item: ReviewItem) -> dict[str, Any]:
    cells = cells_of(item.texts, sheet.lang)
    words = WORDS[sheet.lang]
    contexts = []
    for place, part in zip(PLACES, item.texts.contexts, strict=False):
        prefix = f"{place} " if len(item.texts.contexts) > 1 else ""
        if not part:
            text = words["no_contexts"] if part is None else words["empty_contexts"]
            contexts.append({"title": prefix.strip() or "-", "text": text})
        for rank, context in enumerate(part or (), 1):
            text = words["no_text"] if context.text is None else context.text
            contexts.append({"title": writable(prefix + context_title(rank, context)), "text": writable(text)})
    return {
        "item": item.id,
        "digest": text_digest(item),
        "instructions": sheet.instructions_version,
        **{name: writable(text) for name, text in cells.items() if name != "contexts"},
        "contexts": contexts,
    }


def configuration_of(sheet: Sheet, told: Instructions) -> str:
    """The labelling configuration, as XML; its choices are exported as yes, no, unsure in either language."""
    heads = HEADINGS[sheet.lang]
    answers = [name for name in columns_of(sheet) if name.startswith("answer")]
    shown = [line for name in ("question", *answers) for line in _text_lines(name, heads[name])]
    context = [
        f'      <Header size="4" value={quoteattr(heads["contexts"])}/>',
        '      <Repeater on="$contexts" indexFlag="{{idx}}">',
        '        <View style="border: 1px solid #d0d5db; border-radius: 6px; padding: 8px; margin-bottom: 8px">',
        '          <Header size="5" value="$contexts[{{idx}}].title"/>',
        '          <Text name="context_{{idx}}" value="$contexts[{{idx}}].text" selectionEnabled="false"/>',
        "        </View>",
        "      </Repeater>",
    ]
    keys = iter(_HOTKEYS)
    asked = [line for field in sheet.fields for line in _field_lines(field, told, answers[0], sheet.lang, keys)]
    free = [line for name in FREE_FIELDS for line in _free_lines(name, told, answers[0])]
    lines = [
        "<View>",
        '  <View style="display: grid; grid-template-columns: 1fr 1fr; gap: 1.5rem">',
        "    <View>",
        *shown,
        *asked,
        *free,
        "    </View>",
        "    <View>",
        *context,
        "    </View>",
        "  </View>",
        "</View>",
    ]
    return "\n".join(lines) + "\n"


def _text_lines(name: str, heading: str) -> list[str]:
    return [
        f'      <Header size="4" value={quoteattr(heading)}/>',
        f'      <Text name="{name}" value="${name}" selectionEnabled="false"/>',
    ]


def _field_lines(field: VerdictField, told: Instructions, about: str, lang: str, keys: Iterator[str]) -> list[str]:
    words = told.fields[field.name]
    heading = quoteattr(f"{words.label}: {words.question}")
    lines = [
        f'      <Header size="5" value={heading}/>',
        f'      <Choices name={quoteattr(field.name)} toName="{about}" choice="single-radio" showInLine="true">',
    ]
    for alias, value in _choices(field, told, lang):
        key = next(keys, None)
        hotkey = "" if key is None else f' hotkey="{key}"'
        lines.append(f"        <Choice alias={quoteattr(alias)} value={quoteattr(value)}{hotkey}/>")
    return [*lines, "      </Choices>"]


def _choices(field: VerdictField, told: Instructions, lang: str) -> list[tuple[str, str]]:
    """(what is exported, what is shown) of each choice."""
    words = _VALUES[lang]
    unsure = ("unsure", words["unsure"])
    if field.kind == "boolean":
        return [("yes", words["yes"]), ("no", words["no"]), unsure]
    if field.kind == "score":
        return [*((str(score), str(score)) for score in range(field.low, field.high + 1)), unsure]
    if field.name == "cause":
        return [(cause, f"{cause} · {meaning}") for cause, meaning in told.causes.items()]
    return [*((choice, words.get(choice, choice)) for choice in field.choices), unsure]


def _free_lines(name: str, told: Instructions, about: str) -> list[str]:
    words = told.fields[name]
    return [
        f'      <Header size="5" value={quoteattr(f"{words.label}: {words.question}")}/>',
        f'      <TextArea name="{name}" toName="{about}" rows="2" editable="true" maxSubmissions="1"/>',
    ]


# --- reading back ---------------------------------------------------------------------------------------------------


def answers_of(task: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (which annotation, what it says by field) of each annotation of an exported task that was submitted.

    A field with several choices holds the list of them. Of the short export (JSON-MIN) a task is one annotation.
    """
    if "data" not in task:
        yield "", {name: _short(value) for name, value in task.items()}
        return
    annotations = task.get("annotations", task.get("completions"))
    for n, annotation in enumerate(annotations if isinstance(annotations, list) else (), 1):
        if not isinstance(annotation, dict) or annotation.get("was_cancelled"):
            continue
        said: dict[str, Any] = {}
        results = annotation.get("result")
        for result in results if isinstance(results, list) else ():
            if isinstance(result, dict) and isinstance(result.get("value"), dict):
                said[str(result.get("from_name"))] = _said(result["value"])
        yield f", annotation {n}", said


def _said(value: Mapping[str, Any]) -> Any:
    for kind in ("choices", "text", "rating", "number"):
        if kind in value:
            return _one(value[kind], joins=kind == "text")
    return None


def _short(value: Any) -> Any:
    return _one(value["choices"], joins=False) if isinstance(value, dict) and "choices" in value else value


def _one(value: Any, *, joins: bool) -> Any:
    if not isinstance(value, list):
        return value
    if joins:
        return "\n".join(map(str, value))
    return value[0] if len(value) == 1 else value
