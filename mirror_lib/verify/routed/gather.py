"""Reading what a plan needs of target partitions that transforms send records to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mirror_lib.cluster.admin import ClusterAdmin, OffsetSpec
from mirror_lib.cluster.positions import Position, PositionState
from mirror_lib.errors import MirrorError
from mirror_lib.ledger.offset_rows import RoutedRangeRow
from mirror_lib.topology.names import TopicPartition
from mirror_lib.verify.routed.model import Obstacle
from mirror_lib.verify.routed.plan import RoutedTarget, target_of


def routed_targets_of(rows: Iterable[RoutedRangeRow], target: ClusterAdmin) -> Mapping[TopicPartition, RoutedTarget]:
    """What the target cluster says of the partitions that records are sent to.

    Raises:
        MirrorError: the cluster cannot be reached.
    """
    places = {target_of(row) for row in rows if not row.own}
    if not places:
        return {}
    # What a run has written and not committed is not to be read.
    ends = target.list_offsets(places, OffsetSpec.LAST_STABLE)
    starts = target.list_offsets(places, OffsetSpec.EARLIEST)
    configs = target.topic_configs({place.topic for place in places})
    found = {}
    for place in places:
        error = starts[place].error or ends[place].error or configs.errors.get(place.topic)
        if error is not None:
            found[place] = RoutedTarget(obstacle=_obstacle(error))
            continue
        values = configs[place.topic]
        policy = values.value("cleanup.policy") or ""
        found[place] = RoutedTarget(
            start=starts[place].offset,
            end=ends[place].offset,
            compacted="compact" in [part.strip() for part in policy.split(",")],
            timed=values.value("message.timestamp.type") != "LogAppendTime",
        )
    return found


def is_ahead(position: Position, known: int | None) -> bool:
    """Whether more may stand on the target of a source partition than is known.

    Args:
        known: of `RoutedFacts.known_to`.
    """
    if position.state is not PositionState.CLOSED:
        return True
    return known is not None and position.offset + 1 > known


def _obstacle(error: MirrorError) -> Obstacle:
    return Obstacle(error.reason, str(error))
