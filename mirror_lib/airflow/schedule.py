"""`mirror.schedule` as Airflow understands it."""

from __future__ import annotations

import re
from datetime import timedelta

_INTERVAL = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def airflow_schedule(text: str | None) -> str | timedelta | None:
    """An interval such as `5m` becomes a timedelta; cron expressions and presets are Airflow's own."""
    if text is None:
        return None
    match = _INTERVAL.fullmatch(text)
    if match is None:
        return text
    return timedelta(**{_UNITS[match.group(2)]: int(match.group(1))})
