"""A trend for machines: a JSON tree, text of it that no terminal obeys, and rows of a CSV. Nothing is computed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rag_judge.records import NoEstimate
from rag_judge.trend import Trend, TrendPoint, TrendValue, last_clear_change, strokes
from rag_judge.trend_values import METRICS

CSV_COLUMNS = (
    *("place", "run_id", "name", "at", "made_at", "is_bridge", "parent", "judge", "metric"),
    *("value", "low", "high", "level", "n", "method", "target", "line", "reason"),
)


def trend_tree(trend: Trend) -> dict[str, Any]:
    """The trend as JSON: points with their values, marks and lines, what was left out, and the last clear changes."""
    clear = [change for name in METRICS if (change := last_clear_change(trend.points, name)) is not None]
    return {
        "metrics": {name: {"unit": metric.unit, "is_judged": metric.is_judged} for name, metric in METRICS.items()},
        "points": [_point_tree(point) for point in trend.points],
        "strokes": {name: [[p.run_id for p in s] for s in strokes(trend.points, name)] for name in METRICS},
        "clear_changes": [{"metric": c.metric, "before": c.before.run_id, "after": c.after.run_id} for c in clear],
        "left_out": [asdict(left) for left in trend.left_out],
        "unread": [{"run_id": run_id, "file": file} for run_id, file in trend.unread],
    }


def _point_tree(point: TrendPoint) -> dict[str, Any]:
    tree = {f: getattr(point, f) for f in ("run_id", "name", "at", "made_at", "is_bridge", "parent", "judge")}
    values = {name: _value_tree(value) for name, value in point.values.items()}
    marks = [asdict(mark) | {"breaks": list(mark.breaks)} for mark in point.marks]
    return tree | {"is_embedded": point.is_embedded, "n_cases": point.n_cases, "values": values, "marks": marks}


def _value_tree(value: TrendValue) -> dict[str, Any]:
    found = value.estimate
    if isinstance(found, NoEstimate):
        return {"value": None, "reason": found.reason, "line": value.line}
    return asdict(found) | {"line": value.line}


def csv_rows(points: Sequence[TrendPoint]) -> Iterator[list[object]]:
    """A row a run and metric, as `CSV_COLUMNS` names them."""
    for place, point in enumerate(points, 1):
        head = [place, *(getattr(point, name) for name in CSV_COLUMNS[1:8])]
        for name, value in point.values.items():
            tree = _value_tree(value)
            yield [*head, name, *(tree.get(column) for column in CSV_COLUMNS[9:])]


def json_text(tree: Mapping[str, Any]) -> str:
    """One JSON object as text, in which whatever a terminal would obey, or UTF-8 cannot hold, is escaped."""
    text = json.dumps(tree, ensure_ascii=False, indent=1, allow_nan=False)
    return re.sub(r"[^\n -~]", lambda c: c[0] if c[0].isprintable() else json.dumps(c[0])[1:-1], text)
