"""Failback: the flow from the target to the source, prepared to continue at the cut of a cutover.

Up to the cut both sides hold the same records, paired by the exact offset map. So the failback flow begins at the cut
with the inverse of the map of this flow: nothing is copied twice, and group offsets translate over the whole log. What
the failback flow copies later extends that map, and a second cutover inverts it again.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mirror_lib.cluster.topics.position_format import name_of_copy
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.features.cutover.scope import ScopeTopic, without_handovers
from mirror_lib.features.repair.set_positions import position_at
from mirror_lib.identity.clusters import check_clusters
from mirror_lib.identity.positions import position_row, stored_positions
from mirror_lib.ledger.cutover_rows import CutRow
from mirror_lib.ledger.directions import inverse_run_id
from mirror_lib.ledger.offset_rows import SegmentRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.segment_runs import columns_of
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.unknown_history import note_histories
from mirror_lib.sync.admins import flow_admins
from mirror_lib.sync.topics.internal import ensure_internal_topics
from mirror_lib.topology.names import TopicPartition


@dataclass(frozen=True, slots=True)
class FailbackStart:
    """The result of preparing failback."""

    flow: str
    partitions: int
    segments: int


def why_no_failback(flow: FlowConfig, opposite: FlowConfig | None, topics: Iterable[ScopeTopic]) -> str | None:
    """Return why no failback is possible after a cutover; None if it is possible.

    Args:
        opposite: the enabled flow from the target to the source.
    """
    back = flow.flow.opposite
    if opposite is None:
        return f"the file has no enabled flow {back}: after the first write to the target, no failback is possible."
    if opposite.copy_settings.same_offsets and not flow.copy_settings.same_offsets:
        return f"flow {back} has mirror.offsets=same, and flow {flow.flow} copied to other offsets."
    topology = flow_topology(without_handovers(opposite))
    if topology.rename.merge or flow.rename.merge:
        return f"topics are merged: flow {back} could not separate records by their source."
    for topic in topics:
        if not topology.replicates(topic.target):
            return f"flow {back} does not select topic {topic.target} ({topology.exclusion(topic.target)})."
        if topology.remote_topic(topic.target) != topic.source:
            return (
                f"flow {back} would copy {topic.target} to {topology.remote_topic(topic.target)} instead of "
                f"{topic.source}."
            )
    return None


def ensure_topics(opposite: FlowConfig) -> None:
    """Create the state topics of the failback flow in advance, so that stopped writers do not wait for it.

    Raises:
        MirrorError: a cluster cannot be used.
    """
    with flow_admins(opposite) as (source, target):
        ensure_internal_topics(opposite, source, target)


def prepare_failback(flow: FlowConfig, opposite: FlowConfig, cuts: Sequence[CutRow], ledger: Ledger) -> FailbackStart:
    """Let the failback flow continue at the cut, with the inverse of this flow's offset map.

    The caller holds the run lock of the failback flow. The operation is idempotent. It copies no records and changes
    none.

    Args:
        flow: the flow of the cutover.
        opposite: the failback flow.
        cuts: of partitions that both flows select.

    Raises:
        MirrorError: a cluster or the ledger cannot be used.
    """
    ensure_topics(opposite)
    keeps_offsets = opposite.copy_settings.same_offsets
    unique, back = str(uuid.uuid4()), str(opposite.flow)
    run_id = f"way-back-{unique}"
    with FlowClusters.connect(opposite) as clusters:
        check_clusters(opposite, ledger, clusters.ids(), note=True)
        described = clusters.source_admin.describe_topics({cut.target_topic for cut in cuts})
        homes = clusters.target_admin.describe_topics({cut.topic for cut in cuts})
        snapshot = clusters.positions.read_all()
        # The map that is inverted has to be that of the present copy.
        led = {TopicPartition(cut.topic, cut.partition) for cut in cuts}
        there = {source: position for source, position in stored_positions(flow).items() if source in led}
        note_histories(flow, there, ledger, run_id=run_id)
        written, segments = [], 0
        # Partitions that only the target has are new to the failback flow: it copies all of their records.
        shared = Counter(cut.target_topic for cut in cuts)
        for cut in cuts:
            place = TopicPartition(cut.target_topic, cut.partition)
            stored = snapshot.positions.get(place)
            claim = snapshot.claims.get(place, 0) + 1
            before = None if stored is None else stored.position
            home = homes.get(cut.topic)
            position = position_at(
                place,
                cut.target_end,
                cut.source_end,
                before=before,
                topic_id=described[cut.target_topic].topic_id,
                claim=claim,
                run_id=run_id,
            )
            written.append(
                replace(
                    position,
                    target_topic=cut.topic,
                    target_topic_id=home.topic_id if home is not None else None,
                    clusters=clusters.ids(),
                    first_partitions=shared[cut.target_topic],
                    # Both logs hold the same records up to their ends.
                    copy=name_of_copy(run_id, same_offsets=keeps_offsets and cut.source_end == cut.target_end),
                )
            )
            led_here = ledger.segments(str(flow.flow), cut.topic, cut.partition)
            rows = [inverse(row, flow=back, topic=cut.target_topic, unique=unique) for row in led_here]
            ledger.replace_segments(back, cut.target_topic, cut.partition, rows)
            segments += len(rows)
        # The map first: as soon as there is a position, groups are translated.
        clusters.positions.write(written)
        ledger.save_positions([position_row(opposite, position) for position in written])
    return FailbackStart(back, len(written), segments)


def inverse(row: SegmentRow, *, flow: str, topic: str, unique: str) -> SegmentRow:
    """Return a segment of an offset map in the opposite direction.

    Args:
        flow: the failback flow.
        topic: the topic's name on the source of that flow.
        unique: identifies the hand-over.

    Raises:
        OffsetMapError: the segment is damaged.
    """
    runs = None
    if row.runs is not None:
        runs = columns_of(row).inverse().encode()
    return SegmentRow(
        flow=flow,
        topic=topic,
        partition=row.partition,
        source_first=row.target_first,
        source_next=row.target_next,
        target_first=row.source_first,
        target_next=row.source_next,
        records=row.records,
        runs=runs,
        run_id=inverse_run_id(row.run_id, unique),
    )
