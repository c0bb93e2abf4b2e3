"""Try a folder of case files on the product: `python tests/case_runner.py DIR`.

One JSON object a line, a file a kind (`verdicts.jsonl`, `datasets.jsonl` …); each case has `id`, `expect` and what its
kind needs. The last line is `N passed, M failed, K skipped`; the exit code is 0 when none failed, else 1. A kind that
the product cannot do yet is skipped, with the reason. The formats are described in `tests/cases/README.md`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.case_adapters import (
    NOT_BUILT,
    Case,
    Skipped,
    check_aggregate,
    check_base_url,
    check_dataset,
    check_decline,
    check_http,
    check_metrics,
    check_prompt,
    check_resume,
    check_verdict,
)
from tests.case_adapters_compare import check_compare
from tests.case_adapters_replies import check_cache, check_cost
from tests.case_adapters_review import check_export, check_label_import
from tests.case_adapters_runs import check_runtime
from tests.case_adapters_stats import check_stats
from tests.case_adapters_texts import check_injection, check_report


@dataclass(frozen=True)
class Result:
    """What became of one case: passed, failed or skipped, and why."""

    case_id: str
    verdict: str
    detail: str = ""


def run_folder(folder: Path) -> Iterator[Result]:
    """Yield the result of every case of every file in a folder."""
    for path in sorted(folder.glob("*.jsonl")):
        check = ADAPTERS.get(path.stem)
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line.strip():
                yield _result(decoded(json.loads(line)), check, folder, path.stem)


def _result(case: Case, check: Callable[[Case, Path], str | None] | None, folder: Path, kind: str) -> Result:
    if check is None:
        return Result(case["id"], "skipped", f"{kind}: {NOT_BUILT}")
    try:
        difference = check(case, folder)
    except Skipped as reason:
        return Result(case["id"], "skipped", str(reason))
    except Exception as fault:  # noqa: BLE001 - a crash of the product is a failed case, whatever it is
        return Result(case["id"], "failed", f"crash: {type(fault).__name__}: {fault}")
    return Result(case["id"], "passed" if difference is None else "failed", difference or "")


def decoded(value: Any) -> Any:
    """The value with its stand-ins replaced: repeated text, float NaN, a lone surrogate."""
    if isinstance(value, dict):
        if "$repeat" in value:
            return value["$repeat"] * value["times"]
        if "$float" in value:
            return float(value["$float"])
        if "$lone_surrogate" in value:
            return chr(int(value["$lone_surrogate"], 16)) + value.get("then", "")
        return {name: decoded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [decoded(part) for part in value]
    return value


ADAPTERS: Mapping[str, Callable[[Case, Path], str | None]] = {
    "aggregate": check_aggregate,
    "base_url": check_base_url,
    "cache": check_cache,
    "compare": check_compare,
    "cost": check_cost,
    "datasets": check_dataset,
    "decline_detection": check_decline,
    "export": check_export,
    "http": check_http,
    "injection": check_injection,
    "label_import": check_label_import,
    "metrics": check_metrics,
    "prompt": check_prompt,
    "report": check_report,
    "resume": check_resume,
    "runtime": check_runtime,
    "stats": check_stats,
    "verdicts": check_verdict,
}


def main(arguments: list[str]) -> int:
    """Run every case of a folder, print what failed or was skipped, and answer the exit code."""
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print("usage: python tests/case_runner.py DIR", file=sys.stderr)
        return 2
    counts: Counter[str] = Counter()
    for result in run_folder(Path(arguments[0])):
        counts[result.verdict] += 1
        if result.verdict != "passed":
            print(f"{result.verdict} {result.case_id}: {result.detail}".encode("utf-8", "replace").decode())
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
