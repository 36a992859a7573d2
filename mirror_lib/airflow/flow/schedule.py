"""The schedule of a flow's DAG."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from mirror_lib.airflow.schedule import airflow_schedule
from mirror_lib.config.model import FlowConfig
from mirror_lib.feature import Hook
from mirror_lib.installed_features import installed_features

_log = logging.getLogger(__name__)


def flow_schedule(flow: FlowConfig, config_path: Path | str) -> Any:
    """Return the schedule of a flow's DAG; with `mirror.schedule = on-new-records` as the feature watch makes it."""
    if not flow.starts_on_new_records:
        return airflow_schedule(flow.schedule)
    for schedule in installed_features().at(Hook.ON_NEW_RECORDS):
        return schedule(flow, config_path)
    _log.warning(
        "flow %s: the feature watch is not installed, so mirror.schedule = on-new-records has no effect: runs start "
        "every %s (mirror.schedule.longest).",
        flow.flow,
        flow.schedule_longest,
    )
    return airflow_schedule(flow.schedule_longest)
