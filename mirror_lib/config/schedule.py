"""The values of `mirror.schedule` and `mirror.verify.schedule`."""

from __future__ import annotations

import re
from datetime import date, timedelta
from functools import cache
from itertools import pairwise
from typing import Final

#: The presets that Airflow knows.
PRESETS = ("@once", "@continuous", "@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")

#: `mirror.schedule`: a run starts when the source has new records (`mirror.schedule.poll`, `mirror.schedule.longest`).
ON_NEW_RECORDS: Final = "on-new-records"

_INTERVAL = re.compile(r"([1-9][0-9]*)([smhd])\Z", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

_MINUTE, _HOUR, _DAY, _WEEK, _YEAR = 60.0, 3600.0, 86_400.0, 604_800.0, 366 * 86_400.0
_FIRST_DAY: Final = date(2001, 1, 1)
_PRESET_SECONDS = {
    "@hourly": _HOUR,
    "@daily": _DAY,
    "@weekly": _WEEK,
    "@monthly": 31 * _DAY,
    "@quarterly": 92 * _DAY,
    "@yearly": _YEAR,
}


_LONGEST = timedelta(days=3660)
_MOST_DIGITS = len("316224000")


def parse_schedule(text: str | None) -> str | timedelta | None:
    """Return an Airflow schedule: a cron expression or preset, an interval, or None for runs by hand only.

    Raises:
        ValueError: the text is none of these; the message completes "must be".
    """
    stripped = (text or "").strip()
    if not stripped:
        return None
    interval = _INTERVAL.match(stripped)
    if interval:
        digits, unit = interval[1], _UNITS[interval[2]]
        # Longer ones exceed the range of dates.
        if len(digits) > _MOST_DIGITS or timedelta(**{unit: int(digits)}) > _LONGEST:
            raise ValueError(f"an interval of at most {_LONGEST.days} days")
        return timedelta(**{unit: int(digits)})
    if stripped.startswith("@"):
        if stripped not in PRESETS:
            raise ValueError(f"one of {', '.join(PRESETS)}")
        return stripped
    _check_cron(stripped)
    return " ".join(stripped.split())


def parse_flow_schedule(text: str | None) -> str | timedelta | None:
    """As `parse_schedule`, for `mirror.schedule`, which may also be `on-new-records`."""
    if (text or "").strip() == ON_NEW_RECORDS:
        return ON_NEW_RECORDS
    return parse_schedule(text)


def parse_interval(text: str) -> timedelta:
    """Return an interval such as `30s`.

    Raises:
        ValueError: the text is not an interval; the message completes "must be".
    """
    stripped = text.strip()
    if _INTERVAL.match(stripped) and isinstance(parsed := parse_schedule(stripped), timedelta):
        return parsed
    raise ValueError("an interval such as 2s, 10m, 1h or 1d")


def _check_cron(text: str) -> None:
    fields = text.split()
    if len(fields) != 5:
        raise ValueError(
            "a cron expression of five fields (minute hour day month weekday), a preset such as @hourly, "
            "or an interval such as 30s, 5m, 2h or 1d"
        )
    ranges = (("minute", 0, 59, ()), ("hour", 0, 23, ()), ("day", 1, 31, ()), ("month", 1, 12, _MONTHS))
    for field, (name, low, high, names) in zip(fields, (*ranges, ("weekday", 0, 7, _DAYS)), strict=True):
        if not all(_is_item(item, low, high, names) for item in field.split(",")):
            raise ValueError(f"a cron expression with {name} between {low} and {high}; {field!r} is not valid")
    if not _days(text):
        raise ValueError(f"a cron expression with a day that exists; {' '.join(fields[2:4])!r} is none")


def _is_item(item: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    """Return True if an item is `*`, a value or a range, each with an optional step."""
    span, slash, step = item.partition("/")
    if slash and not (step.isascii() and step.isdigit() and int(step) > 0):
        return False
    if span == "*":
        return True
    first, dash, last = span.partition("-")
    start, end = _number(first, names), _number(last if dash else first, names)
    return start is not None and end is not None and low <= start <= end <= high


def _number(text: str, names: tuple[str, ...]) -> int | None:
    if text.lower() in names:
        # Months count from 1, weekdays from 0.
        return names.index(text.lower()) + (1 if names is _MONTHS else 0)
    return int(text) if text.isascii() and text.isdigit() else None


def longest_interval_seconds(schedule: str | None) -> float | None:
    """Return the longest time between two runs of a schedule, in seconds.

    Args:
        schedule: as for `parse_schedule`.

    Returns:
        None if runs are not periodic: without a schedule, after `@once`, and for `@continuous`, whose runs follow each
        other without a clock.

    Raises:
        ValueError: the text is not a schedule.
    """
    parsed = parse_schedule(schedule)
    if isinstance(parsed, timedelta):
        return parsed.total_seconds()
    if parsed is None or parsed.startswith("@"):
        return _PRESET_SECONDS.get(parsed or "")
    return _longest_cron_interval(parsed)


def _longest_cron_interval(expression: str) -> float:
    minute, hour, *_ = expression.split()
    minutes = [at * 60 + each for at in sorted(_values(hour, 0, 23)) for each in sorted(_values(minute, 0, 59))]
    within = max((later - earlier for earlier, later in pairwise(minutes)), default=0)
    days = max(later - earlier for earlier, later in pairwise(_days(expression)))
    return max(within * _MINUTE, days * _DAY - (minutes[-1] - minutes[0]) * _MINUTE)


@cache
def _days(expression: str) -> tuple[int, ...]:
    """Return the days of a cron expression in 28 years, after which weekdays fall on the same dates again.

    As in croniter, which Airflow uses: if both days of the month and weekdays are limited, one of them is enough. Only
    `*` does not limit: with `*/1` or `1-7`, which contain every day, such a schedule runs daily.
    """
    _, _, day, month, weekday = expression.split()
    of_month, of_year = _values(day, 1, 31), _values(month, 1, 12, _MONTHS)
    # Sunday has two numbers.
    of_week = {value % 7 for value in _values(weekday, 0, 7, _DAYS)}
    limits_both = not any("*" in field.split(",") for field in (day, weekday))
    found = []
    for ordinal in range(_FIRST_DAY.toordinal(), _FIRST_DAY.replace(year=_FIRST_DAY.year + 28).toordinal() + 366):
        at = date.fromordinal(ordinal)
        matches = at.day in of_month, at.isoweekday() % 7 in of_week
        if at.month in of_year and (any(matches) if limits_both else all(matches)):
            found.append(ordinal)
    return tuple(found)


def _values(field: str, low: int, high: int, names: tuple[str, ...] = ()) -> set[int]:
    """Return all numbers that a field of a cron expression matches."""
    found: set[int] = set()
    for item in field.split(","):
        span, slash, step = item.partition("/")
        first, dash, last = span.partition("-")
        start, end = (low, high) if span == "*" else (_number(first, names), _number(last if dash else first, names))
        assert start is not None
        assert end is not None
        # `5/10` continues from 5 (as in croniter, which Airflow uses).
        stop = high if slash and not dash else end
        found.update(range(start, stop + 1, int(step) if slash else 1))
    return found
