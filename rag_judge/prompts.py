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

from rag_judge.cases import turn_text
from rag_judge.errors import InputError
from rag_judge.prompt_settings import PAIR_CHOICES, checked_fields, checked_reading, score_of
from rag_judge.records import Answer, Case, Context, Prompt, Value, VerdictField
from rag_judge.text import is_chinese

if TYPE_CHECKING:
    from jinja2 import Environment, Template

LANGUAGES = ("en", "zh")
BLOCKS = frozenset({"system", "user", "reask"})
TEMPLATE_NAMES = frozenset({"question", "answer", "contexts", "reference", "points", "history", "fence"})
PAIR_NAMES = (TEMPLATE_NAMES - {"answer", "contexts"}) | {"first", "second", "same_contexts"}
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
    fields = checked_fields(settings, settings_path)
    reading = checked_reading(settings, fields, settings_path)
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
                reading=reading,
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
        # Short, because it stands in the prompt eight times; a key that a text happens to hold is passed over. No text
        # holds all of the longer ones.
        n_digits = 4 + attempt // 32
        key = hashlib.sha256(json.dumps([seed, case_id, attempt]).encode()).hexdigest()[:n_digits].upper()
        if not any(key in text for text in texts):
            return key
        attempt += 1


def messages_for(prompt: Prompt, case: Case, answer: Answer, seed: int) -> tuple[dict[str, str], ...]:
    """The system and user message of one grading call. Raises InputError when the template uses an unknown name."""
    data = _known_of(case) | _shown(answer)
    data["fence"] = fence_for(seed, case.id, [json.dumps(data, ensure_ascii=False)])
    return _messages(prompt, data)


def pair_messages_for(
    prompt: Prompt, case: Case, first: Answer, second: Answer, seed: int
) -> tuple[dict[str, str], ...]:
    """The messages that show two answers side by side, the first as A; nothing says which system gave which."""
    sides = [_shown(first), _shown(second)]
    same = sides[0]["contexts"] == sides[1]["contexts"]
    data = _known_of(case) | {"first": sides[0], "second": sides[1], "same_contexts": same}
    # The same fence in both orders, so that they differ in the order alone.
    texts = [json.dumps(part, ensure_ascii=False) for part in (_known_of(case), *sides)]
    data["fence"] = fence_for(seed, case.id, texts)
    return _messages(prompt, data)


def pair_field(prompt: Prompt) -> str:
    """The field of a pairwise prompt that names the better answer: a choice of A, B and tie."""
    return next(field.name for field in prompt.fields if field.choices == PAIR_CHOICES)


def _known_of(case: Case) -> dict[str, Any]:
    """What a template sees of a case."""
    points = [" / ".join(alternatives) for alternatives in case.must_include]
    if case.acceptable and not case.expect_refusal:
        points.append(" / ".join(case.acceptable))
    history = [turn_text(turn) for turn in case.history]
    return {"question": case.question, "reference": case.reference, "points": points, "history": history}


def _shown(answer: Answer) -> dict[str, Any]:
    """What a template sees of an answer."""
    contexts = [{"id": context.id, "text": context.text} for context in answer.contexts or ()]
    return {"answer": answer.answer, "contexts": contexts}


def _messages(prompt: Prompt, data: Mapping[str, Any]) -> tuple[dict[str, str], ...]:
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


def possible_values(field: VerdictField) -> list[Value]:
    """Every value that a case's decision on a field can take."""
    if field.kind == "boolean":
        return [True, False]
    if field.kind == "choice":
        return list(field.choices)
    return [level / 2 for level in range(2 * field.low, 2 * field.high + 1)]  # a median may fall between two levels


def pass_rule(prompt: Prompt, did_abstain: bool) -> Callable[[Mapping[str, Value]], bool] | None:
    """When a case passes, in terms of the fields: from `pass_when`, or a score of at least `pass_at`; else None."""
    if prompt.pass_when is not None:
        expression = _expression(prompt.pass_when)
        return lambda values: bool(expression({**values, "did_abstain": did_abstain}))
    if prompt.pass_at is not None:
        score, limit = score_of(prompt.fields), prompt.pass_at
        return None if score is None else lambda values: float(values[score.name]) >= limit
    return None


def _file_names(folder: Path) -> list[str]:
    return ["prompt.toml"] + [f"{lang}.j2" for lang in LANGUAGES if (folder / f"{lang}.j2").is_file()]


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: the encoding is not UTF-8; save the file as UTF-8") from error


def _check(prompt: Prompt, path: Path) -> None:
    """Find a broken template or pass rule when it is loaded, not after the first reply was paid for."""
    blocks = _guarded(str(path), lambda: _template(prompt.template)).blocks
    if unknown := sorted(set(blocks) - BLOCKS):
        raise InputError(f"{path}: unknown block {unknown[0]!r}; a prompt has the blocks {', '.join(sorted(BLOCKS))}")
    missing = [name for name in ("system", "user") if name not in blocks]
    if missing:
        raise InputError(f"{path}: no {{% block {missing[0]} %}}; a prompt has a system and a user block")
    _check_names(prompt.template, str(path), PAIR_NAMES if prompt.mode == "pairwise" else TEMPLATE_NAMES)
    _check_rendering(prompt)
    if prompt.pass_when is not None:
        known = frozenset(field.name for field in prompt.fields) | {"did_abstain"}
        where = f"{path.parent / 'prompt.toml'}: pass_when"
        _check_names(f"{{{{ {prompt.pass_when} }}}}", where, known)
        _check_pass_when(prompt, where)


def _check_rendering(prompt: Prompt) -> None:
    """Render every block once, so that what fails does so before anything is paid for."""
    case = Case("example", "?", must_include=(("point",),), reference="reference", history=("turn",))
    full, empty = Answer("example", "answer", (Context("id", "text"),)), Answer("example", "", ())
    if prompt.mode == "pairwise":
        pair_messages_for(prompt, case, full, empty, seed=0)
        pair_messages_for(prompt, Case("example", "?"), full, full, seed=0)
    else:
        messages_for(prompt, case, full, seed=0)
        messages_for(prompt, Case("example", "?"), empty, seed=0)
    reask_message(prompt)


def _check_pass_when(prompt: Prompt, where: str) -> None:
    """Try the rule on every verdict that the fields admit (the first thousands of them)."""
    expression = _guarded(where, partial(_expression, prompt.pass_when or ""))
    names = [field.name for field in prompt.fields]
    for did_abstain in (True, False):
        for chosen in islice(product(*map(possible_values, prompt.fields)), 4096):
            verdict = dict(zip(names, chosen, strict=True)) | {"did_abstain": did_abstain}
            result = _guarded(f"{where}, with {verdict}", partial(expression, verdict))
            if not isinstance(result, bool):
                raise InputError(f"{where}: gives {result!r} for {verdict}, expected true or false")


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
