"""The task `observe` of a flow's DAG: it records the state of the flow after the run in the ledger."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mirror_lib.copy.health.after_run import observe_after_run
from mirror_lib.ledger.handovers import load_flow_as_it_runs
from mirror_lib.ledger.location import open_ledger
from mirror_lib.past_runs.airflow_runs import trigger_text

if TYPE_CHECKING:
    from mirror_lib.config.model import FlowConfig
    from mirror_lib.ledger.store import Ledger

_log = logging.getLogger(__name__)


def observe(flow: str, config_path: str, **context: Any) -> dict[str, Any]:
    """The task: store the lag of all partitions, for the flow's newest run of this DAG run."""
    config, settings = load_flow_as_it_runs(Path(config_path), flow)
    dag_run = context["dag_run"]
    with open_ledger(config) as ledger:
        runs = ledger.runs(flow, 1, trigger=trigger_text(dag_run.dag_id, dag_run.run_id))
        return observe_now(settings, ledger, runs[0].id if runs else None)


def observe_now(settings: FlowConfig, ledger: Ledger, run_id: str | None) -> dict[str, Any]:
    """Record the state of a flow in the ledger, and log it; nothing without the feature that observes flows.

    Raises:
        MirrorError: a cluster or the ledger cannot be used.
    """
    found = observe_after_run(settings, ledger, run_id)
    if found is None:
        return {}
    seen = found.flow
    behind = "unknown" if seen.seconds_behind is None else f"{seen.seconds_behind:.0f} s"
    _log.info(
        "Flow %s: lag %d records on %d of %d partitions, oldest %s; %d partitions stalled.",
        settings.flow,
        seen.records_behind,
        seen.lagging,
        seen.partitions,
        behind,
        seen.stalled,
    )
    return {"records_behind": seen.records_behind, "lagging": seen.lagging, "stalled": seen.stalled}
