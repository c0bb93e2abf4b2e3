"""Finished runs → points over time, in lines that hold together only what can be compared. Pure; no file is read.

A line of a metric goes on from one run to the next while nothing changed that makes the two numbers speak of different
things. A change of the system under test is marked and cuts no line: it is what a trend is for. What a run does not
have stays a gap with its reason, never 0, and what is no point is left out with a reason of the list below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Literal

from rag_judge.records import Estimate, NoEstimate
from rag_judge.trend_marks import JUDGE_KINDS, Mark, judge_marks, marks_of, measured_alike
from rag_judge.trend_values import METRICS, TrendRun, is_embedded, is_judged, judges_of, values_of

Tree = Mapping[str, Any]
Reason = Literal[
    "unfinished",
    "broken",
    "pairwise",
    "anchors",
    "other_purpose",
    "regraded",
    "no_time",
    "other_name",
    "older",
    "bridge_without_parent",
    "bridge_without_judge",
    "bridge_of_same_judge",
]


@dataclass(frozen=True, slots=True)
class TrendValue:
    """One number of a run and the line it belongs to: values of one line can be compared. None: it is of no line."""

    estimate: Estimate | NoEstimate
    line: int | None


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """One run in its place. A bridge stands in the place of the run whose answers it graded again."""

    run_id: str
    name: str | None
    at: str  # when the run of its place began, as the manifest writes it
    made_at: str
    is_bridge: bool
    parent: str | None
    judge: str | None
    is_embedded: bool
    n_cases: int | None
    values: Mapping[str, TrendValue]
    marks: tuple[Mark, ...] = ()  # what changed since the run before


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A run that is no point, and why; for a bridge `detail` names the run of its answers, else it is a message."""

    run_id: str
    reason: Reason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Trend:
    """The points in the order of their places, and the runs that are none."""

    points: tuple[TrendPoint, ...]
    left_out: tuple[LeftOut, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()  # (run id, file): files of the points that are there and cannot be read


@dataclass(frozen=True, slots=True)
class ClearChange:
    """Two neighbours of one line whose intervals do not overlap."""

    metric: str
    before: TrendPoint
    after: TrendPoint


def trend_of(
    runs: Sequence[TrendRun],
    left_out: Sequence[LeftOut] = (),
    *,
    is_named: bool = False,
    name: str | None = None,
    last: int | None = None,
    elsewhere: Sequence[Tree] = (),
) -> Trend:
    """The trend of these runs, in archive order; of those named `name` and of the `last` of them where that is given.

    `is_named`: the user chose the runs, so that a regraded one is a point as well, and `elsewhere` are manifests of
    other runs, by which a bridge finds its place.
    """
    out = list(left_out)
    nights, bridges = _points_and_bridges(runs, out, keep_regraded=is_named)
    nights = _chosen(nights, name, last, out)
    stand = _bridges_in_place(bridges, nights, out, elsewhere if is_named else ())
    return _joined(nights, stand, out)


def strokes(points: Sequence[TrendPoint], metric: str) -> list[list[TrendPoint]]:
    """The points of a metric that are joined, line by line and in order; a gap ends a stroke."""
    found: dict[int, list[list[TrendPoint]]] = {}
    for point in points:
        value = point.values[metric]
        if value.line is None:
            continue
        of_line = found.setdefault(value.line, [[]])
        if isinstance(value.estimate, Estimate):
            of_line[-1].append(point)
        else:
            of_line.append([])
    return [stroke for line in sorted(found) for stroke in found[line] if stroke]


def last_clear_change(points: Sequence[TrendPoint], metric: str) -> ClearChange | None:
    """The latest two joined neighbours whose intervals do not overlap; None where there are none. Names no cause."""
    place = {id(point): i for i, point in enumerate(points)}
    clear = [
        ClearChange(metric, before, after)
        for stroke in strokes(points, metric)
        for before, after in pairwise(stroke)
        if _apart(before.values[metric].estimate, after.values[metric].estimate)
    ]
    return max(clear, key=lambda change: place[id(change.after)], default=None)


def changes_between(points: Sequence[TrendPoint], change: ClearChange) -> list[Mark]:
    """What is known to have changed between the two, at the runs after the first up to the second."""
    place = {id(point): i for i, point in enumerate(points)}
    between = points[place[id(change.before)] + 1 : place[id(change.after)] + 1]
    return [mark for point in between for mark in point.marks]


def _apart(one: Estimate | NoEstimate, other: Estimate | NoEstimate) -> bool:
    if isinstance(one, NoEstimate) or isinstance(other, NoEstimate):
        return False
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.high < other.low or other.high < one.low


# --- which runs are points, and where ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Bridge:
    run: TrendRun
    parent: Tree  # the manifest of the run in whose place it stands


def _points_and_bridges(
    runs: Sequence[TrendRun], out: list[LeftOut], *, keep_regraded: bool
) -> tuple[list[TrendRun], list[TrendRun]]:
    """The ordinary runs in the order of time, and the bridges in that of their making."""
    nights: list[TrendRun] = []
    bridges: list[TrendRun] = []
    ids = {_named(run) for run in runs if why_left_out(run.manifest) is None}
    for run in runs:
        reason = why_left_out(run.manifest)
        is_bridge = run.manifest.get("purpose") == "bridge"
        if reason is None and not is_bridge and run.manifest.get("parent") in ids and not keep_regraded:
            reason = "regraded"
        if reason is None and _time(run.manifest) is None:
            reason = "no_time"
        if reason is not None:
            out.append(LeftOut(run.run_id, reason))
        else:
            (bridges if is_bridge else nights).append(run)
    return sorted(nights, key=_when), sorted(bridges, key=_when)


def why_left_out(manifest: Tree) -> Reason | None:
    """Why a run's manifest alone makes it no point; None where it may be one."""
    if manifest.get("kind") == "pairwise":
        return "pairwise"
    if manifest.get("purpose") not in (None, "bridge"):
        return "anchors" if manifest["purpose"] == "anchors" else "other_purpose"
    return None if manifest.get("status") == "complete" else "unfinished"


def _chosen(nights: list[TrendRun], name: str | None, last: int | None, out: list[LeftOut]) -> list[TrendRun]:
    if name is not None:
        out += [LeftOut(run.run_id, "other_name") for run in nights if run.manifest.get("name") != name]
        nights = [run for run in nights if run.manifest.get("name") == name]
    if last is not None:
        out += [LeftOut(run.run_id, "older") for run in nights[:-last]]
        nights = nights[-last:]
    return nights


def _bridges_in_place(
    bridges: Sequence[TrendRun], nights: Sequence[TrendRun], out: list[LeftOut], elsewhere: Sequence[Tree]
) -> list[_Bridge]:
    """The bridges whose place is known, each with the run that it stands for; one of a run that is left out is, too."""
    places = {str(tree.get("run_id")): tree for tree in elsewhere if _time(tree) is not None}
    places |= {_named(run): run.manifest for run in nights}
    above = {str(tree.get("run_id")): tree for tree in elsewhere} | {_named(run): run.manifest for run in bridges}
    gone = {left.run_id: left.reason for left in out}
    found = []
    for bridge in bridges:
        root = _root(_named(bridge), above)
        if not is_judged(bridge.manifest):
            out.append(LeftOut(bridge.run_id, "bridge_without_judge", root))
        elif root in places:
            found.append(_Bridge(bridge, places[root]))
        else:
            because = gone.get(root)
            is_unasked = because in ("older", "other_name")
            out.append(LeftOut(bridge.run_id, because if because and is_unasked else "bridge_without_parent", root))
    return found


def _named(run: TrendRun) -> str:
    """The id by which other runs name this one; its folder may have been renamed."""
    return str(run.manifest.get("run_id", run.run_id))


def _root(run_id: str, manifests: Mapping[str, Tree]) -> str:
    """The run at the end of a chain of bridges; of a chain that runs in a circle, one of it."""
    seen: set[str] = set()
    while run_id not in seen and manifests.get(run_id, {}).get("purpose") == "bridge":
        seen.add(run_id)
        run_id = str(manifests[run_id].get("parent"))
    return run_id


def _time(manifest: Tree) -> datetime | None:
    """When a run began; a time without a zone is taken as UTC. None where there is none to be read."""
    try:
        time = datetime.fromisoformat(str(manifest.get("started_at")))
        return time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _when(run: TrendRun) -> datetime:
    return _time(run.manifest) or datetime.min.replace(tzinfo=UTC)


# --- lines --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Placed:
    """A run in its place. Runs of one `judge` epoch were graded by a judge that nothing shows to have changed.

    `end` is the same for what ends a case, where no judge is a judge of its own. A run without a judge stands in the
    epoch that goes on over it, as a gap.
    """

    run: TrendRun
    place: tuple[datetime, int, int]
    at: str
    judge: int
    end: int
    marks: tuple[Mark, ...] = ()


def _joined(nights: Sequence[TrendRun], bridges: Sequence[_Bridge], out: list[LeftOut]) -> Trend:
    placed = _with_epochs(nights)
    both = sorted([*placed, *_bridges_with_epochs(bridges, placed, out)], key=lambda one: one.place)
    lines = {name: _lines(both, name) for name in METRICS}
    points = [_point(one, {name: of_metric[i] for name, of_metric in lines.items()}) for i, one in enumerate(both)]
    unread = [(one.run.run_id, file) for one in both for file in one.run.unread]
    return Trend(tuple(points), tuple(out), tuple(unread))


def _with_epochs(nights: Sequence[TrendRun]) -> list[_Placed]:
    found: list[_Placed] = []
    judge, end, state = 0, 0, ""
    for i, (run, marks) in enumerate(zip(nights, marks_of(nights), strict=True)):
        judge += any(mark.kind in JUDGE_KINDS for mark in marks)
        was = state
        if not is_embedded(run.manifest):
            state = f"judge {judge}" if is_judged(run.manifest) else "none"
        end += was != state
        found.append(_Placed(run, (_when(run), i, 0), str(run.manifest["started_at"]), judge, end, marks))
    return found


def _bridges_with_epochs(bridges: Sequence[_Bridge], nights: Sequence[_Placed], out: list[LeftOut]) -> list[_Placed]:
    """Each bridge with the epoch of the runs that its judge graded; a judge that graded none yet has its own."""
    found: list[_Placed] = []
    for number, bridge in enumerate(bridges, 1):
        under = next((one for one in nights if one.run.manifest is bridge.parent), None)
        twin = _home(bridge.run, nights) or next((o for o in found if not judge_marks(o.run, bridge.run)), None)
        if twin and under and twin.judge == under.judge and is_judged(under.run.manifest):
            out.append(LeftOut(bridge.run.run_id, "bridge_of_same_judge", under.run.run_id))
            continue
        when = _time(bridge.parent) or _when(bridge.run)
        place = (when, under.place[1] if under is not None else -1, number)
        epoch = (twin.judge, twin.end) if twin is not None else (-number, -number)
        found.append(_Placed(bridge.run, place, str(bridge.parent["started_at"]), *epoch))
    return found


def _home(bridge: TrendRun, nights: Sequence[_Placed]) -> _Placed | None:
    """The night whose judge graded the bridge: the latest before it of the same judge, else the first after it."""
    alike = [one for one in nights if is_judged(one.run.manifest) and not judge_marks(one.run, bridge)]
    before = [one for one in alike if one.place[0] <= _when(bridge)]
    return before[-1] if before else alike[0] if alike else None


def _lines(placed: Sequence[_Placed], metric: str) -> list[int | None]:
    """The number of the line of each run, counted in the order in which lines begin; None: of no line."""
    ends: dict[int, tuple[_Placed, int]] = {}
    n_lines = 0
    found: list[int | None] = []
    for one in placed:
        epoch = one.judge if METRICS[metric].is_judged else one.end if metric == "end_to_end" else _of_run(one)
        if epoch is None:
            found.append(None)
            continue
        before = ends.get(epoch)
        if before is not None and measured_alike(before[0].run, one.run, metric):
            line = before[1]
        else:
            line, n_lines = n_lines, n_lines + 1
        ends[epoch] = (one, line)
        found.append(line)
    return found


def _of_run(one: _Placed) -> int | None:
    """What no judge said is told by the run itself; a bridge has the very answers of its parent."""
    return None if one.run.manifest.get("purpose") == "bridge" else 0


def _point(one: _Placed, lines: Mapping[str, int | None]) -> TrendPoint:
    manifest, values = one.run.manifest, values_of(one.run)
    is_bridge = manifest.get("purpose") == "bridge"
    if is_bridge:
        again = NoEstimate("a bridge grades answers again: this number stands at the run that it names")
        values = {
            name: value if METRICS[name].is_judged or name == "end_to_end" else again for name, value in values.items()
        }
    n = (manifest.get("eval_set") or {}).get("n")
    name, parent = manifest.get("name"), manifest.get("parent")
    return TrendPoint(
        run_id=one.run.run_id,
        name=None if name is None else str(name),
        at=one.at,
        made_at=str(manifest["started_at"]),
        is_bridge=is_bridge,
        parent=None if parent is None else str(parent),
        judge=", ".join(str(judge.get("model")) for judge in judges_of(manifest)) or None,
        is_embedded=is_embedded(manifest),
        n_cases=n if isinstance(n, int) else None,
        values={name: TrendValue(value, lines[name]) for name, value in values.items()},
        marks=one.marks,
    )
