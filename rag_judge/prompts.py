"""Grader prompts: loaded, versioned and rendered from `judge_prompts/NAME/`. No word of a prompt stands in Python.

Texts of cases and answers are data: they reach the template as values, which are never parsed again, and stand
between fences whose key occurs in none of them.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rag_judge.errors import InputError
from rag_judge.records import Answer, Case, Context, Prompt, Value, VerdictField
from rag_judge.text import is_chinese

if TYPE_CHECKING:
    from jinja2 import Environment, Template

LANGUAGES = ("en", "zh")
MODES = ("passfail", "scale", "pairwise")
KINDS = ("boolean", "score", "choice")
SETTINGS = frozenset({"mode", "fields", "max_tokens", "pass_when", "pass_at"})
BLOCKS = frozenset({"system", "user", "reask"})
TEMPLATE_NAMES = frozenset({"question", "answer", "contexts", "reference", "points", "history", "fence"})
_T = TypeVar("_T")


def shipped_folder(name: str) -> Path:
    """The folder of that name which the project ships: inside the wheel, or at the top of a checkout."""
    package = Path(__file__).parent
    installed = package / "shipped" / name
    return installed if installed.is_dir() else package.parent / name


def prompt_folder(name: str, own_prompts: Path) -> Path:
    """The folder of a prompt: a path as given, else the user's `judge_prompts/NAME`, else the shipped one.

    Raises InputError when there is none, naming those there are.
    """
    candidates = [own_prompts / name, shipped_folder("judge_prompts") / name]
    if "/" in name or "\\" in name:
        candidates = [Path(name)]
    for folder in candidates:
        if (folder / "prompt.toml").is_file():
            return folder
    known = sorted({f.parent.name for c in candidates for f in c.parent.glob("*/prompt.toml")})
    raise InputError(
        f"no judge prompt {name!r}: looked for prompt.toml in {candidates[0]}; there are: {', '.join(known)}"
    )


def load_prompt(folder: Path) -> dict[str, Prompt]:
    """The prompt in each of its languages. Raises InputError for a file that is missing or wrong."""
    settings_path = folder / "prompt.toml"
    sources = {name: _read(folder / name) for name in _file_names(folder)}
    try:
        settings = tomllib.loads(sources["prompt.toml"])
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{settings_path}: not valid TOML: {error}") from error
    fields = _checked_settings(settings, settings_path)
    digest = hashlib.sha256()
    for name in sorted(sources):
        digest.update(f"{name}\n{sources[name]}\n".encode())
    prompts = {}
    for lang in LANGUAGES:
        if f"{lang}.j2" in sources:
            prompts[lang] = Prompt(
                name=folder.name,
                mode=settings["mode"],
                lang=lang,
                version=digest.hexdigest(),
                fields=fields,
                pass_when=settings.get("pass_when"),
                pass_at=settings.get("pass_at"),
                max_tokens=settings.get("max_tokens", 400),
                template=sources[f"{lang}.j2"],
            )
            _check(prompts[lang], folder / f"{lang}.j2")
    if not prompts:
        raise InputError(f"{folder}: neither en.j2 nor zh.j2 is there")
    return prompts


def language_of(question: str, wanted: str, prompts: Mapping[str, Prompt]) -> str:
    """The language in which a case is judged: the wanted one, or with `auto` the question's if the prompt has it."""
    lang = wanted if wanted != "auto" else ("zh" if is_chinese(question) else "en")
    if lang in prompts:
        return lang
    if wanted != "auto":
        raise InputError(f"the judge prompt has no {wanted}.j2; it has: {', '.join(prompts)}")
    return next(iter(prompts))


def fence_for(seed: int, case_id: str, texts: Sequence[str]) -> str:
    """The fence key of a case: fixed by seed and case, the same over repeats, and in none of the texts."""
    attempt = 0
    while True:
        # Short, because it stands in the prompt eight times; a key that a text happens to hold is passed over.
        key = hashlib.sha256(json.dumps([seed, case_id, attempt]).encode()).hexdigest()[:4].upper()
        if not any(key in text for text in texts):
            return key
        attempt += 1


def messages_for(prompt: Prompt, case: Case, answer: Answer, seed: int) -> tuple[dict[str, str], ...]:
    """The system and user message of one grading call. Raises InputError when the template uses an unknown name."""
    points = [" / ".join(alternatives) for alternatives in case.must_include]
    if case.acceptable and not case.expect_refusal:
        points.append(" / ".join(case.acceptable))
    history = [turn if isinstance(turn, str) else json.dumps(turn, ensure_ascii=False) for turn in case.history]
    contexts = [{"id": context.id, "text": context.text} for context in answer.contexts or ()]
    data: dict[str, Any] = {
        "question": case.question,
        "answer": answer.answer,
        "contexts": contexts,
        "reference": case.reference,
        "points": points,
        "history": history,
    }
    data["fence"] = fence_for(seed, case.id, [json.dumps(data, ensure_ascii=False)])
    return (
        {"role": "system", "content": render_block(prompt, "system", data)},
        {"role": "user", "content": render_block(prompt, "user", data)},
    )


def reask_message(prompt: Prompt) -> str | None:
    """What is said once after an unreadable reply, or None where the prompt has no `reask` block."""
    template = _template(prompt.template)
    return render_block(prompt, "reask", {}) if "reask" in template.blocks else None


def render_block(prompt: Prompt, block: str, data: Mapping[str, Any]) -> str:
    """One block of a prompt's template with the data in place, ready for UTF-8."""
    where = f"judge prompt {prompt.name}/{prompt.lang}.j2, block {block}"
    template = _template(prompt.template)
    return _guarded(where, lambda: "".join(template.blocks[block](template.new_context(dict(data)))))


def render_text(source: str, data: Mapping[str, Any]) -> str:
    """A whole template rendered as prompts are: sandboxed, strict, no escaping, None as nothing."""
    return _guarded("template", lambda: _template(source).render(dict(data)))


def json_schema(fields: Sequence[VerdictField], reason_max_length: int | None = None) -> dict[str, Any]:
    """The JSON schema of a verdict, in the strict form (all properties required, none besides)."""
    kinds: dict[str, Any] = {}
    for field in fields:
        if field.kind == "boolean":
            kinds[field.name] = {"type": "boolean"}
        elif field.kind == "score":
            kinds[field.name] = {"type": "integer", "enum": list(range(field.low, field.high + 1))}
        else:
            kinds[field.name] = {"type": "string", "enum": list(field.choices)}
    kinds["reason"] = {"type": "string"} | ({} if reason_max_length is None else {"maxLength": reason_max_length})
    return {"type": "object", "properties": kinds, "required": list(kinds), "additionalProperties": False}


def estimated_tokens(text: str) -> int:
    """About how many tokens a text is, for plans: one a CJK character, one for four others. No tokenizer is asked."""
    n_cjk = sum("\u2e80" <= c <= "\u9fff" or "\uf900" <= c <= "\uffef" for c in text)
    return n_cjk + (len(text) - n_cjk + 3) // 4


def pass_rule(prompt: Prompt, did_abstain: bool) -> Callable[[Mapping[str, Value]], bool] | None:
    """When a case passes, in terms of the fields: from `pass_when`, or a score of at least `pass_at`; else None."""
    if prompt.pass_when is not None:
        expression = _expression(prompt.pass_when)
        return lambda values: bool(expression(**values, did_abstain=did_abstain))
    if prompt.pass_at is not None:
        score = next(field.name for field in prompt.fields if field.kind == "score")
        limit = prompt.pass_at
        return lambda values: float(values[score]) >= limit
    return None


def _checked_settings(settings: Mapping[str, Any], settings_path: Path) -> tuple[VerdictField, ...]:
    """The fields that `prompt.toml` asks for. Raises InputError for a setting that is wrong or unknown."""
    mode = settings.get("mode")
    if mode not in MODES:
        raise InputError(f"{settings_path}: mode is {mode!r}, expected one of {', '.join(MODES)}")
    if unknown := sorted(set(settings) - SETTINGS):
        raise InputError(f"{settings_path}: unknown setting {unknown[0]!r}; there are: {', '.join(sorted(SETTINGS))}")
    fields = tuple(_field(entry, f"{settings_path}: fields[{i}]") for i, entry in enumerate(settings.get("fields", [])))
    names = [field.name for field in fields]
    if len(set(names)) < len(names) or {"did_abstain", "reason"} & set(names):
        raise InputError(f"{settings_path}: fields {names}: each name once, and none of did_abstain and reason")
    for name, least in (("max_tokens", 1), ("pass_at", -(10**6))):
        value = settings.get(name, least)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 10**6:
            raise InputError(f"{settings_path}: {name}: found {value!r}, expected a whole number of at least {least}")
    if not fields:
        raise InputError(f"{settings_path}: no [[fields]]; the prompt must say what it asks of the judge")
    return fields


def _file_names(folder: Path) -> list[str]:
    return ["prompt.toml"] + [f"{lang}.j2" for lang in LANGUAGES if (folder / f"{lang}.j2").is_file()]


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: the encoding is not UTF-8; save the file as UTF-8") from error


def _field(entry: Mapping[str, Any], where: str) -> VerdictField:
    name, kind = entry.get("name"), entry.get("kind")
    if not isinstance(name, str) or not name.isidentifier() or kind not in KINDS:
        raise InputError(f"{where}: found name {name!r}, kind {kind!r}; expected an identifier and one of {KINDS}")
    choices = tuple(entry.get("choices", ()))
    if kind == "choice" and len(choices) < 2:
        raise InputError(f"{where}: a choice needs at least two choices, found {list(choices)}")
    return VerdictField(name, kind, choices, entry.get("low", 1), entry.get("high", 5))


def _check(prompt: Prompt, path: Path) -> None:
    """Find a broken template or pass rule when it is loaded, not after the first reply was paid for."""
    blocks = _guarded(str(path), lambda: _template(prompt.template)).blocks
    if unknown := sorted(set(blocks) - BLOCKS):
        raise InputError(f"{path}: unknown block {unknown[0]!r}; a prompt has the blocks {', '.join(sorted(BLOCKS))}")
    missing = [name for name in ("system", "user") if name not in blocks]
    if missing:
        raise InputError(f"{path}: no {{% block {missing[0]} %}}; a prompt has a system and a user block")
    _check_names(prompt.template, str(path), TEMPLATE_NAMES)
    _check_rendering(prompt)
    if prompt.pass_at is not None and not any(field.kind == "score" for field in prompt.fields):
        raise InputError(f"{path.parent / 'prompt.toml'}: pass_at needs a field of kind score")
    if prompt.pass_when is not None:
        known = frozenset(field.name for field in prompt.fields) | {"did_abstain"}
        where = f"{path.parent / 'prompt.toml'}: pass_when"
        _check_names(f"{{{{ {prompt.pass_when} }}}}", where, known)
        _check_pass_when(prompt, where)


def _check_rendering(prompt: Prompt) -> None:
    """Render every block once, so that what fails does so before anything is paid for."""
    case = Case("example", "?", must_include=(("point",),), reference="reference", history=("turn",))
    messages_for(prompt, case, Answer("example", "answer", (Context("id", "text"),)), seed=0)
    messages_for(prompt, Case("example", "?"), Answer("example", "", ()), seed=0)
    reask_message(prompt)


def _check_pass_when(prompt: Prompt, where: str) -> None:
    """Try the rule on every verdict that the fields admit (the first thousands of them)."""
    options: list[list[Value]] = [
        [True, False] if f.kind == "boolean" else list(f.choices) if f.kind == "choice" else [f.low, f.high]
        for f in prompt.fields
    ]
    names = [field.name for field in prompt.fields]
    for did_abstain in (True, False):
        rule = pass_rule(prompt, did_abstain)
        for chosen in islice(product(*options), 4096):
            verdict = dict(zip(names, chosen, strict=True))
            if rule is not None:
                _guarded(where, partial(rule, verdict))


def _check_names(source: str, where: str, known: frozenset[str]) -> None:
    """Every name must be known, also one that the example at hand would not reach."""
    from jinja2.meta import find_undeclared_variables

    used = _guarded(where, lambda: find_undeclared_variables(_environment().parse(source)))
    if unknown := sorted(used - known):
        raise InputError(f"{where}: {unknown[0]!r} is not known here; there are: {', '.join(sorted(known))}")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(
        undefined=StrictUndefined,
        autoescape=False,
        finalize=lambda value: "" if value is None else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@lru_cache(maxsize=64)
def _template(source: str) -> Template:
    return _environment().from_string(source)


@lru_cache(maxsize=64)
def _expression(source: str) -> Callable[..., Any]:
    return _guarded("pass_when", lambda: _environment().compile_expression(source, undefined_to_none=False))


def _guarded(where: str, act: Callable[[], _T]) -> _T:
    from jinja2 import TemplateError

    try:
        result = act()
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise InputError(f"{where}{f', line {line}' if line else ''}: {error or type(error).__name__}") from error
    return _without_lone_surrogates(result) if isinstance(result, str) else result  # type: ignore[return-value]


def _without_lone_surrogates(text: str) -> str:
    """Half an emoji, as broken JSON escapes leave it, cannot be sent as UTF-8: it becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
