"""The values of `mirror.schedule` and `mirror.verify.schedule`."""

from __future__ import annotations

import re
from datetime import timedelta

#: The presets that Airflow knows.
PRESETS = ("@once", "@continuous", "@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")

_INTERVAL = re.compile(r"([1-9][0-9]*)([smhd])\Z", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def parse_schedule(text: str | None) -> str | timedelta | None:
    """What Airflow takes as a schedule: a cron expression or preset, an interval, or None for runs by hand only.

    Raises:
        ValueError: the text is none of these; the message completes "must be".
    """
    stripped = (text or "").strip()
    if not stripped:
        return None
    interval = _INTERVAL.match(stripped)
    if interval:
        return timedelta(**{_UNITS[interval[2]]: int(interval[1])})
    if stripped.startswith("@"):
        if stripped not in PRESETS:
            raise ValueError(f"one of {', '.join(PRESETS)}")
        return stripped
    _check_cron(stripped)
    return " ".join(stripped.split())


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
            raise ValueError(f"a cron expression whose {name} lies between {low} and {high}; {field!r} does not fit")


def _is_item(item: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    """Whether an item is `*`, a value or a range, each with an optional step."""
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
