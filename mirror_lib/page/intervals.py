"""The maximum time between two scheduled runs, by the schedule alone."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

from mirror_lib.config import parse_schedule

_MINUTE, _HOUR, _DAY, _WEEK = 60.0, 3600.0, 86_400.0, 604_800.0
_YEAR = 366 * _DAY
_PRESETS = {
    # A run starts when the previous one has ended, which takes some time.
    "@continuous": _MINUTE,
    "@hourly": _HOUR,
    "@daily": _DAY,
    "@weekly": _WEEK,
    "@monthly": 31 * _DAY,
    "@quarterly": 92 * _DAY,
    "@yearly": _YEAR,
}


def interval_seconds(schedule: str | None) -> float | None:
    """Return the longest time between two runs of `mirror.schedule`, at least a minute; None for runs by hand."""
    parsed = parse_schedule(schedule)
    if parsed is None or parsed == "@once":
        return None
    if isinstance(parsed, timedelta):
        return max(parsed.total_seconds(), _MINUTE)
    return _PRESETS[parsed] if parsed.startswith("@") else _longest_pause(parsed)


def _longest_pause(cron: str) -> float:
    minute, hour, day, month, weekday = cron.split()
    if month != "*":
        return _YEAR
    if day != "*":
        return 31 * _DAY
    minutes, hours = _values(minute, 0, 59), _values(hour, 0, 23)
    days = sorted({value % 7 for value in _weekdays(weekday)})
    starts = [(each * 24 + at) * _HOUR + when * _MINUTE for each in days for at in hours for when in minutes]
    around = [*starts, starts[0] + _WEEK]
    return max(later - earlier for earlier, later in pairwise(around))


def _weekdays(field: str) -> list[int]:
    names = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
    lowered = field.lower()
    for number, name in enumerate(names):
        lowered = lowered.replace(name, str(number))
    return _values(lowered, 0, 6)


def _values(field: str, low: int, high: int) -> list[int]:
    """Return the values that a field of a valid cron expression allows, in order."""
    found: set[int] = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        if span == "*":
            first, last = low, high
        else:
            begin, dash, end = span.partition("-")
            first = int(begin)
            last = int(end) if dash else high if step else first
        found.update(range(first, last + 1, int(step) if step else 1))
    return sorted(found)
