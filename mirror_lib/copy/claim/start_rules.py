"""How a partition's copy may start, by its last position record and the end of its target. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mirror_lib.cluster.topics.mm2_formats import OffsetSync
from mirror_lib.cluster.topics.position_format import NOTHING_COPIED, Position, PositionState, has_same_offsets
from mirror_lib.config.model import ExistingTarget
from mirror_lib.errors import DirtyStartError, OffsetsDifferError, TargetNotEmptyError, TargetTruncatedError, Where
from mirror_lib.planning.backfills import again, let_flow_continue, or_dag
from mirror_lib.planning.model import PartitionPlan, Takeover
from mirror_lib.planning.next_steps import after_interrupted_merge, after_lost_records, set_position_or_copy_anew
from mirror_lib.topology.names import FlowId, TopicPartition


class TargetEnds(NamedTuple):
    """The extent of a target partition's log."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class StartRules:
    """A flow's settings and offset-syncs that determine starts.

    Attributes:
        existing_target: what a first start does if the target has records.
        lease_seconds: how long an earlier writer may still be alive.
        syncs: the newest offset-syncs of the partitions that MirrorMaker 2 copied last.
        most_holes: with `mirror.offsets = same`: number of offsets without a record that may be filled at once; None:
            records get other offsets than at the source.
    """

    flow: FlowId
    existing_target: ExistingTarget = ExistingTarget.FAIL
    lease_seconds: float = 0.0
    syncs: Mapping[TopicPartition, OffsetSync] | None = None
    most_holes: int | None = None


def needs_sync(position: Position | None) -> bool:
    """True if MirrorMaker 2 wrote the position, so that only an offset-sync shows where its records are."""
    return position is not None and position.target_offset is None and position.offset != NOTHING_COPIED


def start_of(
    rules: StartRules,
    partition: PartitionPlan,
    last: Mapping[TopicPartition, Position],
    writers: Iterable[TopicPartition],
    ends: TargetEnds,
) -> Takeover | None:
    """None if copying may start at the target's end; else the pair of offsets after which nothing is certain.

    Args:
        last: the last record of every source partition.
        writers: all source partitions that are copied to this target partition; more than one in a merge.
        ends: the extent of the target partition now.

    Raises:
        TargetNotEmptyError: nothing was ever copied, but the target is not empty.
        TargetTruncatedError: the target has less than was copied.
        DirtyStartError: it is not possible to find what was copied, or a backfill has not ended.
        OffsetsDifferError: records cannot get the offsets that they have at the source.
    """
    known = [last[source] for source in writers if source in last and _is_about(last[source], partition.target)]
    _check_backfills(rules, partition, known)
    merged = len(list(writers)) > 1
    if merged and rules.most_holes is not None:
        raise OffsetsDifferError(
            f"several source partitions are copied to {partition.target}: their records have the same offsets.",
            where=_where(rules, partition),
            action="Copy them to topics of their own, or set mirror.offsets=own.",
        )
    _check_offsets(rules, partition, known, ends)
    expected = max((position.target_offset for position in known if position.target_offset is not None), default=None)
    closed = all(position.state is PositionState.CLOSED for position in known)
    # The coordinator may not have written a marker (KAFKA-20734): a take-over checks that first.
    unmarked = any(position.in_transactions and position.state is PositionState.OPEN for position in known)
    if expected is not None and ends.end < expected and not unmarked:
        raise TargetTruncatedError(
            f"log end offset of {partition.target} is {ends.end}, expected at least {expected}: records of this flow "
            "are missing.",
            where=_where(rules, partition),
            action=after_lost_records(_where(rules, partition)),
        )
    if known and closed and expected == ends.end:
        return None
    if all(position.offset == NOTHING_COPIED and position.target_offset is None for position in known):
        _check_first_start(rules, partition, ends)
        return None
    position = next((each for each in known if each.source == partition.source), None)
    if merged:
        if closed or not all(each.in_transactions or each.state is PositionState.CLOSED for each in known):
            raise _merged_target_error(rules, partition, known, ends)
        # A source that is new in the merge starts at its planned offset.
        position = position or Position(*partition.source, partition.start - 1, expected, in_transactions=True)
    assert position is not None
    if position.target_offset is not None:
        return Takeover(
            source_offset=position.offset + 1,
            target_offset=position.target_offset,
            target_log_start=ends.start,
            producer_id=position.producer_id,
            epoch=position.epoch,
            lease_seconds=rules.lease_seconds,
            skipped=position.skipped,
            runs=position.runs,
            routes=position.routes,
            # Some sources of a merge may have been closed before the others were claimed.
            in_transactions=position.in_transactions or merged,
            hole_writers=position.hole_writers,
        )
    return _from_mirror_maker(rules, partition, position, ends)


def _is_about(position: Position, target: TopicPartition) -> bool:
    """True if a position is about this topic; the replication policy may name another one by now.

    The plan has compared positions after which there are records. The others are of interrupted first runs.
    """
    return position.target_topic in (None, target.topic)


def _check_backfills(rules: StartRules, partition: PartitionPlan, known: Iterable[Position]) -> None:
    """Refuse a start after a backfill: its records are not the source's next ones, and only it knows its progress."""
    for position in known:
        if position.backfill is not None and position.state is PositionState.OPEN:
            raise DirtyStartError(
                f"backfill {position.backfill} into {partition.target} is not finished.",
                where=_where(rules, partition),
                action=f"Finish it: {again(rules.flow, position.backfill)}, {or_dag(position.backfill)}. "
                f"To abandon it: {let_flow_continue(rules.flow, partition.source, position.offset + 1)}",
            )


def _check_first_start(rules: StartRules, partition: PartitionPlan, ends: TargetEnds) -> None:
    if ends.end > ends.start and rules.existing_target is ExistingTarget.FAIL:
        ways = "Copy" if rules.most_holes is not None else "Append after them (mirror.target.existing=append), copy"
        raise TargetNotEmptyError(
            f"{partition.target} is not empty: it has offsets {ends.start} to {ends.end - 1} (records, or markers of "
            "transactions), and no position shows that this flow wrote them.",
            where=_where(rules, partition),
            action=f"{ways} to another name (mirror.topics.rename), or "
            "delete the target topic if it is not needed. If MirrorMaker 2 or this flow copied them, the "
            "position topic was deleted or is another one (offset.storage.topic), and appending would duplicate "
            f"them: set the right topic, or set the position: {_where(rules, partition).position_set()}.",
        )


def _check_offsets(rules: StartRules, partition: PartitionPlan, known: Sequence[Position], ends: TargetEnds) -> None:
    """Refuse a copy whose records cannot get the wanted offsets."""
    where, same = _where(rules, partition), rules.most_holes is not None
    stored = next((each for each in known if each.source == partition.source), None)
    if stored is not None and stored.offset != NOTHING_COPIED and has_same_offsets(stored.copy) is not same:
        now, then = ("same", "own") if same else ("own", "same")
        raise OffsetsDifferError(
            f"the records of {partition.target} were copied with mirror.offsets={then}, and it is {now} now.",
            where=where,
            action=f"Set mirror.offsets={then}, or copy the topic again under another name (docs/same-offsets.md).",
        )
    if rules.most_holes is None:
        return
    # A decision to copy again from offset 0 counts as nothing copied, and has the end of the target.
    is_closed = stored is not None and stored.state is PositionState.CLOSED
    if stored is not None and is_closed and partition.start < ends.end == stored.target_offset:
        raise OffsetsDifferError(
            f"the copy continues at source offset {partition.start}, and {partition.target} ends at offset {ends.end}: "
            "records cannot get their offsets there.",
            where=where,
            action="Delete the target topic: the next run creates it again. Or set the position where the target ends: "
            f"{where.position_set(ends.end)}.",
        )
    if ends.start == ends.end > partition.start:
        raise OffsetsDifferError(
            f"{partition.target} has no records, and its next offset is {ends.end}: the source's records from offset "
            f"{partition.start} on cannot get their offsets there.",
            where=where,
            action="Delete the target topic: the next run creates it again.",
        )
    if (holes := partition.start - ends.end) > rules.most_holes:
        raise OffsetsDifferError(
            f"{holes:,} offsets before {partition.start} have no record on {partition.target}, and "
            f"mirror.offsets.pad.max.records allows {rules.most_holes:,}.",
            where=where,
            action="Allow more (docs/same-offsets.md says how long they take), or copy the topic again.",
        )


def _from_mirror_maker(
    rules: StartRules, partition: PartitionPlan, position: Position, ends: TargetEnds
) -> Takeover | None:
    """MM2 stores no target offset, but its newest offset-sync is a certain pair, at most `offset.lag.max` behind."""
    sync = (rules.syncs or {}).get(partition.source)
    if sync is None:
        raise DirtyStartError(
            f"MirrorMaker 2 copied up to source offset {position.offset}, but no offset-sync maps that offset to "
            f"{partition.target}.",
            where=_where(rules, partition, position.offset),
            action="Check that emit.offset-syncs.enabled was true and offset-syncs.topic.location is unchanged. If the "
            f"offset is lost: {set_position_or_copy_anew(_where(rules, partition))}",
        )
    if sync.downstream_offset >= ends.end:
        raise TargetTruncatedError(
            f"log end offset of {partition.target} is {ends.end}, but MirrorMaker 2 wrote offset "
            f"{sync.downstream_offset}.",
            where=_where(rules, partition),
            action=after_lost_records(_where(rules, partition)),
        )
    return Takeover(
        source_offset=sync.upstream_offset,
        target_offset=sync.downstream_offset,
        target_log_start=ends.start,
        lease_seconds=rules.lease_seconds,
    )


def _merged_target_error(
    rules: StartRules, partition: PartitionPlan, known: list[Position], ends: TargetEnds
) -> DirtyStartError:
    unclosed = next((position for position in known if position.state is not PositionState.CLOSED), None)
    if unclosed is not None:
        owner = f"run {unclosed.run_id}" if unclosed.run_id else "MirrorMaker 2"
        what = f"the last position of {unclosed.source} was stored by {owner} and is still open"
    else:
        what = f"its log end offset {ends.end} is after the last copied record"
    return DirtyStartError(
        f"several topics are merged into {partition.target}, and {what}: the last copied offset of each topic cannot "
        "be determined from the target log.",
        where=_where(rules, partition),
        action=after_interrupted_merge(_where(rules, partition)),
    )


def _where(rules: StartRules, partition: PartitionPlan, offset: int | None = None) -> Where:
    return Where(
        flow=str(rules.flow), topic=partition.source.topic, partition=partition.source.partition, offset=offset
    )
