"""The plan of a run that begins now, with what the preflight says of it; and the forecast, if its feature is there."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.config.model import FlowConfig
from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.errors import MirrorError
from mirror_lib.feature import Hook
from mirror_lib.installed_features import installed_features
from mirror_lib.ledger.store import Ledger
from mirror_lib.past_runs.outlooks import Outlook
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import RunPlan
from mirror_lib.planning.open_transactions import open_transaction_notes
from mirror_lib.planning.plan import hot_partition_warnings
from mirror_lib.planning.unselected import unselected_notes
from mirror_lib.topology.names import TopicPartition


class PartitionForecast(Protocol):
    """What the core reads of the forecast of a partition; seconds count from now, None is not known."""

    @property
    def source(self) -> TopicPartition: ...
    @property
    def lag_bytes(self) -> int | None: ...
    @property
    def writes_per_second(self) -> float | None: ...
    @property
    def catch_up_seconds(self) -> float | None: ...
    @property
    def deleted_by_time_seconds(self) -> float | None: ...
    @property
    def deleted_by_size_seconds(self) -> float | None: ...
    @property
    def outlook(self) -> Outlook: ...


class FlowForecast(Protocol):
    """What the core reads of a flow's forecast."""

    @property
    def partitions(self) -> Sequence[PartitionForecast]: ...
    @property
    def catch_up_seconds(self) -> float | None: ...
    def warnings(self) -> list[str]: ...


def forecast_of(
    flow: FlowConfig,
    plan: RunPlan,
    ledger: Ledger | None,
    *,
    run_begins: bool = False,
    connected: ClusterAdmin | None = None,
) -> FlowForecast | None:
    """Return the forecast of a plan; None without the feature that makes it.

    Args:
        run_begins: a run of this plan begins now; otherwise one begins within the usual interval.
        connected: an open client of the source.

    Raises:
        MirrorError: the source cannot be reached, or the ledger cannot be used.
    """
    for make in installed_features().at(Hook.FORECAST):
        found: FlowForecast = make(flow, plan, ledger, run_begins=run_begins, connected=connected)
        return found
    return None


@dataclass(frozen=True, slots=True)
class NextRun:
    """A run that begins now, before its topics are synced."""

    #: None if planning failed.
    plan: RunPlan | None
    warnings: tuple[str, ...]


def look_at_next_run(flow: FlowConfig, options: RunOptions, ledger: Ledger | None, clusters: FlowClusters) -> NextRun:
    """The plan of a run that begins now, with its warnings; an error that prevents the forecast becomes a warning.

    The warnings cover partitions for which the run waits, too.
    """
    plan = None
    try:
        plan = plan_flow(flow, options, ledger, clusters)
        expected = forecast_of(flow, plan, ledger, run_begins=True, connected=clusters.source_admin)
        open_ = open_transaction_notes(plan.hidden, now=time.time())
        gone = unselected_notes(plan.flow, plan.unselected)
        losses = () if expected is None else expected.warnings()
        return NextRun(plan, (*hot_partition_warnings(plan.hot), *open_, *gone, *losses))
    except MirrorError as error:
        return NextRun(plan, (f"Whether retention deletes records before they are copied is unknown: {error}",))
