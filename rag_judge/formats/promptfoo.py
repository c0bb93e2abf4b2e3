"""promptfoo's results → cases, and the answers of each provider and prompt that was tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_judge.errors import InputError
from rag_judge.formats.found import Found, LeftOut, Remark, without_none
from rag_judge.formats.shapes import answer_text, contexts_of, decoded, question_of
from rag_judge.formats.source import Record, records_of
from rag_judge.rows import kind_of

_ERROR = 2  # failureReason: the provider failed. 1 is an assertion that did not hold, whose message is in `error`, too
_VARS_OF_CONTEXTS = ("context", "contexts", "documents", "chunks", "docs")


def read_promptfoo(paths: Sequence[Path]) -> Iterator[Found | LeftOut]:
    """Yield a case and an answer a result. Raises InputError for a record that is neither results nor one of them."""
    results = [result for path in paths for record in records_of(path) for result in _results(record)]
    tried: dict[str, set[Any]] = {}
    for result in results:
        tried.setdefault(_provider(result.fields), set()).add(str(result.fields.get("promptIdx")))
    for result in results:
        provider, prompt = _provider(result.fields), result.fields.get("promptIdx")
        yield _found(result, provider if len(tried[provider]) == 1 else f"{provider}-{prompt}")


def _results(record: Record) -> list[Record]:
    """The results of a whole evaluation, which nests them in `results` once or twice; or the result itself."""
    results, where = record.fields.get("results"), record.where
    if isinstance(results, Mapping):
        results = results.get("results")
    if results is None and ("vars" in record.fields or "testIdx" in record.fields):
        return [record]
    if not isinstance(results, list):
        raise InputError(f"{where}: found no results, expected those of `promptfoo eval --output FILE.json`")
    found = []
    for i, result in enumerate(results):
        if not isinstance(result, dict):
            raise InputError(f"{where}: results[{i}]: found {kind_of(result)}, expected an object")
        found.append(Record(result, f"{where}: results[{i}]"))
    return found


def _provider(fields: Mapping[str, Any]) -> str:
    provider = fields.get("provider")
    name = (provider.get("label") or provider.get("id")) if isinstance(provider, Mapping) else provider
    return str(name or "unknown")


def _found(record: Record, system: str) -> Found:
    fields, where = record.fields, record.where
    test = fields.get("testCase") if isinstance(fields.get("testCase"), Mapping) else {}
    variables = fields.get("vars") or (test or {}).get("vars") or {}
    if not isinstance(variables, Mapping):
        raise InputError(f"{where}: vars: found {kind_of(variables)}, expected an object")
    stated, remarks = _expectations((test or {}).get("assert") or [])
    question, history = question_of({k: v for k, v in variables.items() if k not in _VARS_OF_CONTEXTS})
    about = {name: (test or {}).get(name) or None for name in ("description", "metadata")}
    case = {"question": question, "history": history or None, **stated, "imported": without_none(about) or None}
    return Found(
        without_none(case),
        _answer(fields, variables, where),
        where,
        fields,
        system=system,
        remarks=tuple(remarks),
        id_is_stated=False,
    )


def _answer(fields: Mapping[str, Any], variables: Mapping[str, Any], where: str) -> dict[str, Any]:
    response = fields.get("response") if isinstance(fields.get("response"), Mapping) else {}
    output = decoded((response or {}).get("output"))
    error = (response or {}).get("error") or (fields.get("error") if fields.get("failureReason") == _ERROR else None)
    latency = fields.get("latencyMs")
    told = [output, (response or {}).get("metadata"), variables]
    held = next(
        (part[key] for part in told if isinstance(part, Mapping) for key in _VARS_OF_CONTEXTS if key in part), None
    )
    contexts = [] if held == "" else contexts_of(held, f"{where}: contexts")
    answer = {
        "answer": None if error else answer_text(output),
        "contexts": contexts,
        "error": str(error) if error else None,
        "latency_s": latency / 1000 if isinstance(latency, int | float) and not isinstance(latency, bool) else None,
        "meta": {"provider": _provider(fields)},
    }
    return without_none(answer)


def _expectations(asserts: Any) -> tuple[dict[str, Any], list[Remark]]:
    """What assertions on wording state, as fields of a case; those with a template in them are left out."""
    must: list[Any] = []
    must_not: list[str] = []
    stated: dict[str, Any] = {}
    remarks: list[Remark] = []
    for one in asserts if isinstance(asserts, list) else []:
        kind, value = (str(one.get("type", "")), one.get("value")) if isinstance(one, Mapping) else ("", None)
        texts = [str(v) for v in (value if isinstance(value, list) else [value]) if isinstance(v, str) and v.strip()]
        if any("{{" in text for text in texts):
            remarks.append("template_asserts")
            continue
        match kind:
            case "contains" | "icontains" | "contains-all" | "icontains-all":
                must += texts
            case "contains-any" | "icontains-any" if texts:
                must.append(texts)
            case "not-contains" | "not-icontains" | "not-contains-any" | "not-icontains-any":
                must_not += texts
            case "equals" | "factuality" if texts:
                stated["reference"] = texts[0]
            case "is-refusal" | "not-is-refusal":
                stated["expect_refusal"] = kind == "is-refusal"
    return stated | ({"must_include": must} if must else {}) | (
        {"must_not_include": must_not} if must_not else {}
    ), remarks
