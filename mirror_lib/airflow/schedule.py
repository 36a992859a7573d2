"""`mirror.schedule` as Airflow understands it, and what may start a run beside it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

#: All of Airflow's kinds of runs but its backfills. A run copies what is new and knows no interval of the past, so
#: those would be many runs of the same work; they go by a limit of their own, ten at a time, not by `max_active_runs`.
RUN_TYPES: Final = ("scheduled", "manual", "operator_triggered", "asset_triggered", "asset_materialization")
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
