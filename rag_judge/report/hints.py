"""Hints for whoever reads an answer on the page: what the program sees without understanding it. Never a verdict."""

from __future__ import annotations

from collections.abc import Iterator

from rag_judge.claims import clause_hints, sentence_support, unsupported_quantities
from rag_judge.records import Answer, Case

LITTLE_SUPPORT = 0.5  # share of a sentence's words in the one context that holds most of it, below which it is named
MOST_HINTS = 12
LONGEST_ANSWER = 20_000  # characters; a longer one is read by nobody, and hints to it cost seconds
LONGEST_SENTENCE = 160
WORDS = {
    "en": {
        "figures": "in no context: {figures}",
        "clause": "“{point}”: “{sign}” stands only in the {side}: “{answer}” / [{rank}] “{context}”",
        "answer": "answer",
        "context": "context",
        "sentence": "little of it stands in one context ({share}): “{sentence}”",
        "more": "and {n} more",
    },
    "zh": {
        "figures": "任何一段资料里都没有：{figures}",
        "clause": "“{point}”：只有{side}里有“{sign}”：“{answer}” / [{rank}] “{context}”",
        "answer": "回答",
        "context": "资料",
        "sentence": "这句话在任何一段资料里都找不到多少（{share}）：“{sentence}”",
        "more": "还有 {n} 条",
    },
}


def hints_of(case: Case, answer: Answer, lang: str) -> list[str]:
    """Figures without a source, words of condition beside a key point, sentences that little supports; a line each."""
    texts = [context.text for context in answer.contexts or () if context.text]
    if not answer.answer or not texts or len(answer.answer) > LONGEST_ANSWER:
        return []
    found = list(_hints(case, answer.answer, texts, lang))
    more = [WORDS[lang]["more"].format(n=len(found) - MOST_HINTS)] if len(found) > MOST_HINTS else []
    return found[:MOST_HINTS] + more


def _hints(case: Case, said: str, texts: list[str], lang: str) -> Iterator[str]:
    words = WORDS[lang]
    figures = dict.fromkeys(q.text for q in unsupported_quantities(said, texts, question=case.question))
    if figures:
        yield words["figures"].format(figures=", ".join(figures))
    for point in (wording for any_of in case.must_include for wording in any_of):
        for hint in clause_hints(said, texts, point):
            yield words["clause"].format(
                point=point,
                sign=hint.sign,
                side=words[hint.stands_in],
                answer=hint.answer_clause,
                rank=hint.context + 1,
                context=hint.context_clause,
            )
    for support in sentence_support(said, texts):
        if support.share is not None and support.share < LITTLE_SUPPORT:
            yield words["sentence"].format(share=f"{support.share:.0%}", sentence=support.sentence[:LONGEST_SENTENCE])
