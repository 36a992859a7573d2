"""What a plan has to know of records that were written to the source of a topic after a cutover had moved its writers.

The feature `backfill` finds them, and copies them. Without it, a flow with such topics does not run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mirror_lib.cluster.topics.position_store import StoredPosition
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.feature import Hook
from mirror_lib.installed_features import provided
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import PartitionFacts, PartitionProblem
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.names import FlowId, TopicPartition


@dataclass(frozen=True, slots=True)
class AfterCutover:
    """The consequences of late records for a flow, which cutovers have moved topics from or to."""

    #: Late records on the source of topics that the flow no longer copies.
    late: tuple[PartitionProblem, ...] = ()
    #: Sentences about partitions whose late records cannot be distinguished from the opposite flow's.
    notes: tuple[str, ...] = ()
    #: Late records on the flow's target: these partitions are not copied.
    refused: tuple[PartitionProblem, ...] = ()
    #: Positions after late records on the target that an operator has resolved, or after markers: copying may continue
    #: there, although the log does not end where the position says.
    moved: Mapping[TopicPartition, StoredPosition] = field(default_factory=dict)


def after_cutovers(
    flow: FlowConfig,
    topology: FlowTopology,
    clusters: FlowClusters,
    facts: Sequence[PartitionFacts],
    ledger: Ledger | None,
) -> AfterCutover:
    """Return what late records mean for a flow.

    Raises:
        ConfigurationError: the feature that finds them cannot be used here.
        MirrorError: the source does not respond, or the ledger cannot be used.
    """
    plain = FlowId(topology.flow.source, topology.flow.target)
    if ledger is None or not (flow.handovers.here or ledger.handovers.handed_over(str(plain))):
        return AfterCutover()
    try:
        find = provided(Hook.AFTER_CUTOVER, by="backfill")
    except ConfigurationError as error:
        raise ConfigurationError(
            f"a flow with topics that a cutover has moved {error.what}",
            where=Where(flow=str(plain)),
            action=error.action,
        ) from error
    found: AfterCutover = find(flow, topology, clusters, facts, ledger)
    return found
