"""An operator's decision if an alias names another cluster than before: the same flow, or a new one."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from mirror_lib.cluster.topics.position_format import ClusterPair, Position, next_copy
from mirror_lib.cluster.topics.position_store import PositionSnapshot
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.claim.void_syncs import rewind_syncs
from mirror_lib.copy.commit.decided_positions import store_decided
from mirror_lib.errors import ClusterError, Where
from mirror_lib.identity.clusters import ledger_name
from mirror_lib.identity.histories import LedgerState
from mirror_lib.identity.ledger_positions import LedgerPositions, Past
from mirror_lib.ledger.rows import ClusterPairRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.topology.names import TopicPartition


class ClusterDecision(StrEnum):
    """How a flow continues with other clusters."""

    #: The new cluster has the same records at the same offsets (restored, or moved to a new id).
    SAME = "same"
    #: The new cluster is another one: no stored state is about it.
    NEW = "new"


@dataclass(frozen=True, slots=True)
class ClusterChange:
    """The effect of a decision; it can be printed before it is applied."""

    flow: str
    decision: ClusterDecision
    #: None if the ledger has none.
    before: ClusterPairRow | None
    now: ClusterPair
    #: Positions that are stored again with the present clusters.
    kept: tuple[Position, ...] = ()
    #: Partitions whose positions are deleted: the next run is their first.
    forgotten: tuple[TopicPartition, ...] = ()

    def __str__(self) -> str:
        if self.decision is ClusterDecision.SAME:
            return (
                f"flow {self.flow}: {len(self.kept)} positions continue at the same offsets on clusters "
                f"{self.now.source} -> {self.now.target}; the ledger's rows are kept"
            )
        return (
            f"flow {self.flow} starts over on clusters {self.now.source} -> {self.now.target}: {len(self.forgotten)} "
            "positions are deleted, and the ledger's rows (runs, map, gaps, hand-overs, cutovers) are archived"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        before = None if self.before is None else {"source": self.before.source_id, "target": self.before.target_id}
        return {
            "flow": self.flow,
            "decision": self.decision.value,
            "before": before,
            "now": self.now._asdict(),
            "positions_kept": len(self.kept),
            "positions_forgotten": len(self.forgotten),
        }


def plan_cluster_change(
    flow: FlowConfig, clusters: FlowClusters, ledger: Ledger, decision: ClusterDecision
) -> ClusterChange:
    """The effect of a decision about the clusters of a flow; change nothing.

    Raises:
        MirrorError: a cluster cannot be used or has no id, or the ledger cannot be used.
    """
    name, now = ledger_name(flow.flow), clusters.ids()
    if now is None:
        raise ClusterError(
            "a cluster reports no cluster id: brokers before Kafka 0.10.1 have none.", where=Where(flow=name)
        )
    snapshot = clusters.positions.read_all()
    before = ledger.cluster_pairs.find(name)
    # Another configuration with the same aliases may copy other topics to the same target.
    takes = flow_topology(flow).replicates
    others = {
        source: stored.position
        for source, stored in sorted(snapshot.positions.items())
        if takes(source.topic) and stored.position.clusters != now
    }
    if decision is ClusterDecision.NEW:
        return ClusterChange(name, decision, before, now, forgotten=tuple(others))
    known = LedgerPositions.read(ledger, flow.flow)
    kept = tuple(_on(now, position, snapshot, Past.of(position, known, source)) for source, position in others.items())
    return ClusterChange(name, decision, before, now, kept=kept)


def _on(now: ClusterPair, position: Position, snapshot: PositionSnapshot, past: Past) -> Position:
    """The position on other clusters: offsets and records are the same there, ids and leader epochs are not.

    A target that was restored to an older state has another copy: what was verified after that state is gone.
    """
    claim = None if position.claim is None else snapshot.claims.get(position.source, 0) + 1
    copy = next_copy(past.copy, f"accepted-{uuid.uuid4()}") if past.history.state is LedgerState.AHEAD else past.copy
    return replace(
        position, clusters=now, topic_id=None, target_topic_id=None, leader_epoch=None, claim=claim, copy=copy
    )


def apply_cluster_change(change: ClusterChange, clusters: FlowClusters, ledger: Ledger, *, by: str) -> None:
    """Apply a decision. No run may be copying: take the run lock first.

    Raises:
        MirrorError: the position topic or the ledger cannot be written.
    """
    aside = None
    # The ledger last: until then every run refuses, and the decision can be repeated.
    if change.decision is ClusterDecision.SAME:
        stored = clusters.positions.read_all().positions
        kept = {position.source: stored[position.source].position for position in change.kept}
        store_decided(clusters.flow, clusters.positions, ledger, change.kept, kept, run_id=f"same-{uuid.uuid4()}")
        ledger.cluster_pairs.replace(change.flow, *change.now, by=by)
    else:
        rewind_syncs(clusters.flow, dict.fromkeys(_former_copies(change, clusters, ledger), 0))
        clusters.positions.forget(change.forgotten)
        aside = ledger.cluster_pairs.begin_anew(change.flow, *change.now, by=by)
    ledger.audits.note(
        by=by,
        action="clusters-accept",
        subject=change.decision.value,
        flow=change.flow,
        detail={**change.to_dict(), "set_aside_as": aside},
    )


def _former_copies(change: ClusterChange, clusters: FlowClusters, ledger: Ledger) -> set[TopicPartition]:
    """The partitions whose copies are on another target, also where its position topic is not the present one."""
    takes = flow_topology(clusters.flow).replicates
    stored = clusters.positions.read_all().positions
    present = {source for source, each in stored.items() if each.position.clusters == change.now}
    known = {source for source in LedgerPositions.read(ledger, clusters.flow.flow).rows if takes(source.topic)}
    return {*change.forgotten, *known} - present
