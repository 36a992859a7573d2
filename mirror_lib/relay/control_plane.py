"""Runs that copy nothing but heartbeats, in this process and without Spark."""

from __future__ import annotations

from mirror_lib.config import FlowConfig, replication_policy
from mirror_lib.ledger import Ledger
from mirror_lib.relay.claim import chains_of
from mirror_lib.relay.copy import copy_bin
from mirror_lib.relay.model import CopyJob, PartitionResult, RunPlan
from mirror_lib.relay.planning import FlowClusters
from mirror_lib.relay.run import replicate_if
from mirror_lib.relay.run_options import RunOptions, RunReport

#: Offsets of heartbeats topics that are copied here. More belong to a first copy, which is for Spark.
_MOST_OFFSETS = 1_000


def replicate_control_plane(flow: FlowConfig, *, ledger: Ledger, options: RunOptions) -> RunReport | None:
    """Make the run of a flow that has nothing to copy but heartbeats; None, with nothing begun, where it has more.

    It is a run like any other: it takes the lock, compares both clusters with what is stored, and is in the ledger.

    Raises:
        MirrorError: as `replicate`.
    """

    def wanted(plan: RunPlan, clusters: FlowClusters) -> bool:
        return has_only_heartbeats(flow, plan) and not _goes_through_transactions(flow, plan, clusters)

    return replicate_if(wanted, flow, ledger=ledger, make_runner=lambda: _copy, options=options)


def has_only_heartbeats(flow: FlowConfig, plan: RunPlan) -> bool:
    """Whether a plan has no problem, and nothing to copy but a few heartbeats."""
    is_heartbeats = replication_policy(flow).is_heartbeats_topic
    return (
        not plan.problems
        and all(is_heartbeats(each.source.topic) for each in plan.partitions)
        and sum(each.end - each.start for each in plan.partitions) <= _MOST_OFFSETS
    )


def _goes_through_transactions(flow: FlowConfig, plan: RunPlan, clusters: FlowClusters) -> bool:
    """Whether some partition is not copied as it is: Spark has the code for that."""
    if not plan.partitions:
        return False
    merged = any(len(clusters.sources_of(each.target)) > 1 for each in plan.partitions)
    return (flow.transactions and merged) or bool(chains_of(flow, {each.source.topic for each in plan.partitions}))


def _copy(job: CopyJob) -> list[PartitionResult]:
    return [result for number in range(len(job.bins)) for result in copy_bin(job, number)]
