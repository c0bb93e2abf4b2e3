"""Times as production logs write them: ISO 8601 or numbers since 1970, and the time zones of their days.

No row of a log is read here.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from rag_judge.errors import InputError
from rag_judge.rows import kind_of

_EPOCH = (1e9, 4.1e9)  # 2001 to 2099 in seconds; in milliseconds and finer units the ranges do not overlap
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2}):?(\d{2})?")


class Moment(NamedTuple):
    """A time of the log. A date alone has a day and no moment; `clock` says how the time was written."""

    at: float | None
    day: str
    clock: str


def zone_of(name: str) -> tzinfo:
    """The time zone of a name (Asia/Shanghai) or an offset (+08:00). Raises InputError for any other text."""
    found = _OFFSET.fullmatch(name.strip())
    try:
        if found is None:
            return ZoneInfo(name.strip())
        ahead = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
        return timezone(ahead if found[1] == "+" else -ahead)
    except (LookupError, ValueError, OSError) as error:
        raise InputError(
            f"--timezone: found {name!r}, expected a name such as Asia/Shanghai or UTC, or an offset such as +08:00"
        ) from error


def read_time(value: Any, where: str, zone: tzinfo | None) -> Moment:
    """The moment of an ISO 8601 text or an epoch number, and its day in `zone`, else as the log writes it.

    Epoch numbers without a zone are taken by UTC days. Raises InputError for anything else, times before 2001 as
    epoch numbers included: they are no times.
    """
    try:
        if isinstance(value, str) and not value.strip().replace(".", "", 1).isdecimal():
            return _from_iso(value.strip(), zone)
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else 0.0
        scale = next(scale for scale in (1, 1e3, 1e6, 1e9) if _EPOCH[0] * scale <= number < _EPOCH[1] * scale)
        moment = datetime.fromtimestamp(number / scale, zone or UTC)
        return Moment(number / scale, moment.date().isoformat(), "epoch")
    except (ValueError, OverflowError, StopIteration) as error:
        raise InputError(
            f"{where}: found {kind_of(value)}, expected ISO 8601, such as 2026-01-31T09:30:00+08:00, or seconds or "
            "milliseconds since 1970"
        ) from error


def _from_iso(text: str, zone: tzinfo | None) -> Moment:
    if _DATE.fullmatch(text):
        return Moment(None, date.fromisoformat(text).isoformat(), "date")
    # Slashes, and a blank before the offset, are common in logs and leave nothing to guess.
    cleaned = re.sub(r" +(?=(?:[+-]\d{2}:?\d{2}|Z)$)", "", re.sub(r" ?UTC$", "Z", text))
    found = re.match(r"(\d{4})/(\d{1,2})/(\d{1,2})(?=[ T])", cleaned)
    if found:
        cleaned = f"{found[1]}-{int(found[2]):02}-{int(found[3]):02}{cleaned[found.end() :]}"
    moment = datetime.fromisoformat(cleaned)
    offset = moment.strftime("%z")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone or UTC)
    elif zone is not None:
        moment = moment.astimezone(zone)
    return Moment(moment.timestamp(), moment.date().isoformat(), f"{offset[:3]}:{offset[3:5]}" if offset else "none")
