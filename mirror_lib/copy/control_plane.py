"""Runs that copy only heartbeats, in this process and without Spark."""

from __future__ import annotations

from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import replication_policy
from mirror_lib.copy.claim.claim import chains_of
from mirror_lib.copy.run import replicate_if
from mirror_lib.copy.run_options import RunOptions, RunReport
from mirror_lib.copy.transfer.task import copy_bin
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import CopyJob, PartitionResult, RunPlan

#: Maximum number of heartbeat offsets that are copied here. More belong to a first copy, which needs Spark.
_MOST_OFFSETS = 1_000


def replicate_control_plane(flow: FlowConfig, *, ledger: Ledger, options: RunOptions) -> RunReport | None:
    """Run a flow that has only heartbeats to copy; return None, with nothing started, if it has more.

    It is an ordinary run: it takes the run lock, compares both clusters with the stored state, and is in the ledger.

    Raises:
        MirrorError: as `replicate`.
    """

    def is_wanted(plan: RunPlan, clusters: FlowClusters) -> bool:
        return has_only_heartbeats(flow, plan) and not _goes_through_transactions(flow, plan, clusters)

    return replicate_if(is_wanted, flow, ledger=ledger, make_runner=lambda: _copy, options=options)


def has_only_heartbeats(flow: FlowConfig, plan: RunPlan) -> bool:
    """True if a plan has no problem, and only a few heartbeats to copy."""
    is_heartbeats = replication_policy(flow).is_heartbeats_topic
    return (
        not plan.problems
        and all(is_heartbeats(each.source.topic) for each in plan.partitions)
        and sum(each.end - each.start for each in plan.partitions) <= _MOST_OFFSETS
    )


def _goes_through_transactions(flow: FlowConfig, plan: RunPlan, clusters: FlowClusters) -> bool:
    """True if some partition has transforms: those need Spark."""
    if not plan.partitions:
        return False
    merged = any(len(clusters.sources_of(each.target)) > 1 for each in plan.partitions)
    return (flow.transactions and merged) or bool(chains_of(flow, {each.source.topic for each in plan.partitions}))


def _copy(job: CopyJob) -> list[PartitionResult]:
    return [result for number in range(len(job.bins)) for result in copy_bin(job, number)]
