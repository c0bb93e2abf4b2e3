"""Repeats of one case → its decision, and when asking more cannot change it. One case at a time.

A value of a field needs more than half of the *planned* repeats; a reply that could not be read is a missing vote,
never a no. The case's pass is derived from the fields' decisions, never from any single reply's pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from statistics import median

from rag_judge.prompts import possible_values
from rag_judge.records import Decision, Unscored, Value, Verdict, VerdictField

Vote = Verdict | Unscored
# (field values, did_abstain) -> pass; None where no rule says when a case passes
PassRule = Callable[[Mapping[str, Value]], bool] | None


def decide(votes: Sequence[Vote], n_planned: int, fields: Sequence[VerdictField], passes: PassRule) -> Decision:
    """The decision of one case from the votes of its planned repeats, in order; fewer when asking stopped early.

    Raises ValueError for no vote at all or for more votes than were planned.
    """
    if not 0 < len(votes) <= n_planned:
        raise ValueError(f"{len(votes)} votes for {n_planned} planned repeats")
    read = [vote for vote in votes if isinstance(vote, Verdict)]
    values = {field.name: _field_decision(field, read, n_planned) for field in fields}
    last = votes[-1]
    return Decision(
        values=values,
        judge_pass=derived_pass(values, fields, passes) if read else None,
        n_planned=n_planned,
        n_asked=len(votes),
        n_votes=len(read),
        flipped=_flipped(votes),
        unstable=len({tuple(_grades(v).items()) for v in read}) > 1 if len(read) > 1 else None,
        unscored_reason=last.reason if not read and isinstance(last, Unscored) else None,
        unscored_detail=last.detail if not read and isinstance(last, Unscored) else None,
        reason=next((v.reason for v in reversed(read) if v.reason), None),
    )


def panel_decision(decisions: Sequence[Decision], fields: Sequence[VerdictField], passes: PassRule) -> Decision:
    """The decision of several judges on one case: per field what more than half of the judges decided.

    A judge without a decision on a field is a missing vote, as a reply that could not be read is among repeats. Counts
    are of all judges together; with a single judge its decision is returned as it is.
    """
    if len(decisions) == 1:
        return decisions[0]
    values = {field.name: _panel_value(field, decisions) for field in fields}
    passed = derived_pass(values, fields, passes)
    read = [decision for decision in decisions if not decision.unscored]
    last = decisions[-1]
    return Decision(
        values=values,
        judge_pass=passed if read else None,
        n_planned=sum(decision.n_planned for decision in decisions),
        n_asked=sum(decision.n_asked for decision in decisions),
        n_votes=sum(decision.n_votes for decision in decisions),
        flipped=_any([decision.flipped for decision in decisions]),
        unstable=_any([decision.unstable for decision in decisions]),
        unscored_reason=None if read else last.unscored_reason,
        unscored_detail=None if read else last.unscored_detail,
        reason=next((d.reason for d in read if d.reason and d.judge_pass == passed), None),  # of the majority
        alike=_all([decision.alike for decision in decisions]),
    )


def judges_disagree(decisions: Sequence[Decision]) -> bool | None:
    """Whether two judges decided a field differently; None unless two decided anything."""
    read = [decision for decision in decisions if not decision.unscored]
    if len(read) < 2:
        return None
    names = read[0].values.keys()
    return any(len({d.values[name] for d in read if d.values[name] is not None}) > 1 for name in names)


def _panel_value(field: VerdictField, decisions: Sequence[Decision]) -> Value | None:
    decided = [value for decision in decisions if (value := decision.values[field.name]) is not None]
    if field.kind != "score":
        return decision_of_votes(decided, len(decisions))
    return median(float(value) for value in decided) if 2 * len(decided) > len(decisions) else None


def _any(known: Sequence[bool | None]) -> bool | None:
    said = [value for value in known if value is not None]
    return any(said) if said else None


def _all(known: Sequence[bool | None]) -> bool | None:
    said = [value for value in known if value is not None]
    return all(said) if said else None


def is_settled(votes: Sequence[Vote], n_planned: int, fields: Sequence[VerdictField]) -> bool:
    """True when no possible remaining reply can change a field's decision, nor undecided against unscored.

    Never before two planned repeats, so that the flip rate rests on the first two of every case. That the pass is
    already certain does not settle a case: each field's rate is a number of its own.
    """
    n_left = n_planned - len(votes)
    if n_left <= 0:
        return True
    if len(votes) < 2:
        return False
    read = [vote for vote in votes if isinstance(vote, Verdict)]
    if not read:
        return False
    return all(_field_settled(field, read, n_planned, n_left) for field in fields)


def decision_of_votes(values: Sequence[Value], n_planned: int) -> Value | None:
    """The value with more than half of the planned votes, or None: an even split or lost votes decide nothing."""
    if not values:
        return None
    value, count = Counter(values).most_common(1)[0]
    return value if 2 * count > n_planned else None


def _field_decision(field: VerdictField, read: Sequence[Verdict], n_planned: int) -> Value | None:
    values = [verdict.values[field.name] for verdict in read]
    if field.kind != "score":
        return decision_of_votes(values, n_planned)
    if 2 * len(values) <= n_planned:
        return None
    return median(float(value) for value in values)


def _field_settled(field: VerdictField, read: Sequence[Verdict], n_planned: int, n_left: int) -> bool:
    values = [verdict.values[field.name] for verdict in read]
    if field.kind != "score":
        count = max(Counter(values).values(), default=0)
        return 2 * count > n_planned or 2 * (count + n_left) <= n_planned
    # A median moves with each value it is taken over: all remaining lowest and all highest bound every other ending,
    # for each number of them that may come to be read.
    numbers = [float(value) for value in values]
    endings = {
        median(numbers + [float(end)] * n_read) if 2 * (len(numbers) + n_read) > n_planned else None
        for n_read in range(n_left + 1)
        for end in (field.low, field.high)
    }
    return len(endings) == 1


def derived_pass(values: Mapping[str, Value | None], fields: Sequence[VerdictField], passes: PassRule) -> bool | None:
    """The pass that every value of the undecided fields would give; None where they differ or nothing says."""
    if passes is None:
        return None
    names = [field.name for field in fields]
    options = [possible_values(field) if (value := values[field.name]) is None else [value] for field in fields]
    ends = {passes(dict(zip(names, chosen, strict=True))) for chosen in product(*options)}
    return ends.pop() if len(ends) == 1 else None


def _grades(verdict: Verdict) -> dict[str, Value]:
    return dict(sorted(verdict.values.items()))


def _flipped(votes: Sequence[Vote]) -> bool | None:
    """Whether the first two planned repeats differ in any field; None unless both were read."""
    if len(votes) < 2:
        return None
    first, second = votes[0], votes[1]
    if not isinstance(first, Verdict) or not isinstance(second, Verdict):
        return None
    return _grades(first) != _grades(second)
