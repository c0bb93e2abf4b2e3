"""Coverage-guided fuzzing of the reading of verdicts, as a process of its own: python -m tests.fuzz_verdicts SECONDS.

Whatever the bytes, a reading ends in a verdict whose values its fields can take, or in Unscored; it never raises.
"""

from __future__ import annotations

import sys
from typing import Any

import atheris

with atheris.instrument_imports(include=["rag_judge.verdicts", "rag_judge.repair"]):
    from rag_judge.records import Unscored, Verdict, VerdictField
    from rag_judge.verdicts import read_body, read_verdict

FIELDS = (
    VerdictField("grounded", "boolean"),
    VerdictField("depth", "score", low=1, high=5),
    VerdictField("tone", "choice", choices=("formal", "casual", "mixed")),
)


def one_input(data: bytes) -> None:
    """Read the bytes as a reply's text and as a whole body."""
    text = data.decode("utf-8", "surrogateescape" if data[:1] == b"x" else "replace")
    for found in (read_verdict(text, FIELDS), read_body(text, FIELDS)):
        if isinstance(found, Unscored):
            continue
        assert isinstance(found, Verdict)
        values: dict[str, Any] = dict(found.values)
        assert set(values) == {field.name for field in FIELDS}
        assert isinstance(values["grounded"], bool)
        assert values["depth"] in (1, 2, 3, 4, 5)
        assert values["tone"] in ("formal", "casual", "mixed")


if __name__ == "__main__":
    atheris.Setup([sys.argv[0], f"-max_total_time={sys.argv[1]}", "-max_len=4096", "-seed=1"], one_input)
    atheris.Fuzz()
