"""`mirror.schedule` as an Airflow schedule, and what else may start a run."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from mirror_lib.airflow.compatibility import KNOWN_RUN_TYPES

#: All of Airflow's kinds of runs except its backfills. A run copies what is new and has no data interval, so a backfill
#: would be many runs of the same work, with its own limit of ten at a time instead of `max_active_runs`.
RUN_TYPES: Final = tuple(
    each
    for each in ("scheduled", "manual", "operator_triggered", "asset_triggered", "asset_materialization")
    if each in KNOWN_RUN_TYPES
)
_INTERVAL = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def airflow_schedule(text: str | None) -> str | timedelta | None:
    """Convert an interval such as `5m` to a timedelta; cron expressions and presets are passed to Airflow."""
    if text is None:
        return None
    match = _INTERVAL.fullmatch(text)
    if match is None:
        return text
    return timedelta(**{_UNITS[match.group(2)]: int(match.group(1))})
