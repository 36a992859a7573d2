"""The schedule of a DAG that new records start."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mirror_lib.airflow import Asset, airflow_schedule, is_external
from mirror_lib.config.model import FlowConfig
from mirror_lib.topology.names import FlowId

_log = logging.getLogger(__name__)


def watched_schedule(flow: FlowConfig, config_path: Path | str) -> Any:
    """Return an asset whose trigger sends an event if the source has new records, or `mirror.schedule.longest`.

    Without asset watchers in this Airflow only the latter.
    """
    longest = airflow_schedule(flow.schedule_longest)
    if not has_watchers():
        _log.warning(
            "flow %s: %s no asset watchers, so mirror.schedule = on-new-records has no effect: runs "
            "start every %s (mirror.schedule.longest). Set an interval as mirror.schedule, or use Airflow 3.3 with "
            "mirror.airflow.execution = in-process.",
            flow.flow,
            "external execution has" if is_external() else "this Airflow has",
            flow.schedule_longest,
        )
        return longest
    from airflow.sdk import AssetOrTimeSchedule, AssetWatcher, DeltaTriggerTimetable

    from mirror_lib.features.watch.airflow.trigger import NewRecordsTrigger

    assert isinstance(longest, timedelta)
    trigger = NewRecordsTrigger(flow=str(flow.flow), config_path=str(config_path))
    asset = watched_asset(flow.flow, [AssetWatcher(name=f"new records of {flow.flow}", trigger=trigger)])
    return AssetOrTimeSchedule(timetable=DeltaTriggerTimetable(longest), assets=[asset])


def has_watchers() -> bool:
    """True if this Airflow has asset watchers whose triggers can share a poller (Airflow 3.3)."""
    if is_external():
        return False
    # Only here, since most files need none of it.
    try:
        from airflow.sdk import AssetWatcher
        from airflow.triggers.base import BaseEventTrigger
    except ImportError:
        return False
    return AssetWatcher is not None and hasattr(BaseEventTrigger, "shared_stream_key")


def watched_asset(flow: FlowId, watchers: list[Any]) -> Asset:
    """Return the asset that gets an event if a flow's source has new records. Its name is stable."""
    uri = f"mirror-source://{quote(flow.source, safe='')}/{quote(flow.target, safe='')}"
    return Asset(uri, watchers=watchers)
