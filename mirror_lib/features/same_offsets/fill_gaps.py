"""Accept a retention gap of a copy with the same offsets without a marker for each of its offsets.

A log can be filled quickly only where it is empty. So the target deletes the records that it has, and the next sync of
topics moves its end to the source's first record, as for a new partition (`starts`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.config.model import FlowConfig
from mirror_lib.copy.gaps.gaps import apply_decisions, plan_decisions
from mirror_lib.copy.gaps.resolutions import Decision, Resolution
from mirror_lib.errors import MirrorError, OffsetsDifferError, RetentionGapError, Where
from mirror_lib.features.same_offsets.starts import Deletable
from mirror_lib.ledger.rows import GapRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.topology.names import TopicPartition


@dataclass(frozen=True, slots=True)
class FilledGap:
    """A gap of one partition, and the offsets of the target whose records are deleted: [start, end)."""

    resolution: Resolution
    target: TopicPartition
    start: int
    end: int

    def __str__(self) -> str:
        lost = "nothing" if self.start == self.end else f"what it has at offsets {self.start} to {self.end - 1}"
        after = self.resolution.after
        upto = (
            ""
            if after is None
            else f"; the next run moves its end to offset {after.offset + 1}, where copying continues"
        )
        return f"{self.resolution.source}: {self.target} loses {lost}{upto}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {
            **self.resolution.to_dict(),
            "target_topic": self.target.topic,
            "deleted_from": self.start,
            "deleted_to": self.end,
        }


def plan_fills(
    flow: FlowConfig, clusters: FlowClusters, ledger: Ledger, gaps: Sequence[GapRow], *, run_id: str
) -> tuple[tuple[FilledGap, ...], tuple[MirrorError, ...]]:
    """Return what accepting retention gaps deletes, and the errors of partitions where it is not possible.

    Args:
        gaps: open gaps of the flow; those of other causes stay.
        run_id: the run id in the new positions.
    """
    chosen = [gap for gap in gaps if gap.cause == RetentionGapError.reason]
    planned = plan_decisions(flow, clusters, ledger, Decision.ACCEPT, chosen, run_id=run_id)
    errors = [each.error for each in planned if each.error is not None]
    targets = {
        TopicPartition(each.after.target_topic or "", each.source.partition): each
        for each in planned
        if each.after is not None and each.error is None
    }
    starts = clusters.target_admin.list_offsets(targets, OffsetSpec.EARLIEST)
    fills: list[FilledGap] = []
    for target, resolution in targets.items():
        assert resolution.after is not None
        start, end, wanted = starts[target], resolution.lands_at, resolution.after.offset + 1
        if start.error is not None:
            errors.append(start.error)
        elif wanted - end > flow.copy_settings.offsets_pad_max_records:
            errors.append(_too_many(flow, resolution.source, wanted - end))
        else:
            fills.append(FilledGap(resolution, target, start.offset, end))
    return tuple(fills), tuple(errors)


def _too_many(flow: FlowConfig, source: TopicPartition, holes: int) -> OffsetsDifferError:
    return OffsetsDifferError(
        f"the gap has {holes:,} offsets, and mirror.offsets.pad.max.records allows "
        f"{flow.copy_settings.offsets_pad_max_records:,}.",
        where=Where(flow=str(flow.flow), topic=source.topic, partition=source.partition),
        action="Allow more, and repeat the command.",
    )


def apply_fills(
    flow: FlowConfig,
    clusters: FlowClusters,
    ledger: Ledger,
    fills: Sequence[FilledGap],
    *,
    by: str,
    note: str | None = None,
) -> tuple[Mapping[TopicPartition, MirrorError], tuple[str, ...]]:
    """Delete the records and store the decisions.

    Returns:
        The errors of source partitions where that failed, and what was not set back on target topics.

    The records first: if this is killed, the gap is still open, and the command can be repeated.

    Raises:
        MirrorError: a cluster or the ledger cannot be used.
    """
    target = clusters.target_admin
    ends = {each.target: each.end for each in fills if each.start < each.end}
    with Deletable(target, {place.topic for place in ends}) as topics:
        failed: dict[TopicPartition, MirrorError] = {
            place: topics.refused[place.topic] for place in ends if place.topic in topics.refused
        }
        deleted = target.delete_records({place: end for place, end in ends.items() if place not in failed})
        failed |= {place: error for place, error in deleted.items() if error is not None}
    done = [each.resolution for each in fills if each.target not in failed]
    apply_decisions(flow, clusters, ledger, done, by=by, note=note)
    errors = {each.resolution.source: failed[each.target] for each in fills if each.target in failed}
    return errors, topics.still_deleting()
