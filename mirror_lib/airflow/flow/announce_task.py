"""The task `announce_new_records` of a flow's DAG: it emits the asset events of the topics that got records."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mirror_lib.airflow.compatibility import AirflowSkipException
from mirror_lib.airflow.flow.assets import flow_alias, new_records, topic_asset
from mirror_lib.config.loader import load_flow
from mirror_lib.config.topology import flow_topology
from mirror_lib.ledger.location import open_ledger
from mirror_lib.past_runs.airflow_runs import trigger_text

_log = logging.getLogger(__name__)

#: Maximum number of attempts of `replicate` in one DAG run that are read.
_RUNS_LOOKED_AT = 50


def announce_new_records(flow: str, config_path: str, params: Mapping[str, Any], **context: Any) -> dict[str, Any]:
    """Emit an asset event for each target topic with new records, also if other partitions failed.

    Raises:
        AirflowSkipException: there are none.
    """
    if params.get("dry_run"):
        raise AirflowSkipException("a dry run copies nothing.")
    config, settings = load_flow(Path(config_path), flow)
    policy = flow_topology(settings).policy
    dag_run = context["dag_run"]
    with open_ledger(config) as ledger:
        runs = ledger.runs(flow, _RUNS_LOOKED_AT, trigger=trigger_text(dag_run.dag_id, dag_run.run_id))
        found = new_records(row for run in runs for row in ledger.partition_runs(run.id))
    # Heartbeats come with every run and would trigger DAGs that wait for data.
    found = tuple(each for each in found if not policy.is_heartbeats_topic(each.source_topic))
    if not found:
        raise AirflowSkipException("no topic got new records.")
    events = context["outlet_events"][flow_alias(flow)]
    for each in found:
        asset = topic_asset(settings.flow.target, each.topic)
        events.add(asset, extra=each.extra(flow))
        _log.info("%s has %d new records.", asset.uri, each.records)
    return {"topics": len(found), "records": sum(each.records for each in found)}
