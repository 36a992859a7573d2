"""The gaps of poison records that a flow's policy has skipped."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from mirror_lib.cluster.topics.position_format import OmittedRange
from mirror_lib.config.copy_settings import PoisonPolicy
from mirror_lib.ledger.rows import GapRow, GapState
from mirror_lib.planning.model import PartitionResult
from mirror_lib.topology.names import FlowId, TopicPartition


def gap_rows(
    flow: FlowId,
    run_id: str,
    results: Sequence[PartitionResult],
    policy: PoisonPolicy,
    *,
    found_at: datetime | None = None,
) -> list[GapRow]:
    """The ranges that a round skipped, as gaps that its policy has accepted.

    The same records have the same id in every run that skips them: a take-over finds them again.
    """
    found = found_at or datetime.now(UTC)
    return [
        GapRow(
            id=_gap_id(flow, result.source, poison.first_offset, poison.next_offset, poison.cause),
            flow=str(flow),
            topic=result.source.topic,
            partition=result.source.partition,
            cause=poison.cause,
            first_offset=poison.first_offset,
            next_offset=poison.next_offset,
            records=poison.records,
            first_time=_time(poison.first_timestamp),
            last_time=_time(poison.last_timestamp),
            detail=poison.detail,
            run_id=run_id,
            found_at=found,
            state=GapState.ACCEPTED.value,
            decided_by=f"policy {policy.value}",
            decided_at=found,
        )
        for result in results
        for poison in result.poison
    ]


def omission_rows(
    flow: FlowId, source: TopicPartition, omissions: Sequence[OmittedRange], *, run_id: str, by: str
) -> list[GapRow]:
    """The ranges that an interrupted run skipped, from its position, if no run will take that position over."""
    now = datetime.now(UTC)
    return [
        GapRow(
            id=_gap_id(flow, source, omitted.first_offset, omitted.next_offset, omitted.cause),
            flow=str(flow),
            topic=source.topic,
            partition=source.partition,
            cause=omitted.cause,
            first_offset=omitted.first_offset,
            next_offset=omitted.next_offset,
            records=omitted.records,
            detail="skipped by an interrupted run, as stored in its position.",
            run_id=run_id,
            found_at=now,
            state=GapState.ACCEPTED.value,
            decided_by=by,
            decided_at=now,
        )
        for omitted in omissions
    ]


def _gap_id(flow: FlowId, source: TopicPartition, first_offset: int, next_offset: int, cause: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{flow} {source} {first_offset} {next_offset} {cause}"))


def _time(milliseconds: int | None) -> datetime | None:
    """None for a missing timestamp too: before 1970, or beyond the range of a calendar."""
    if milliseconds is None or milliseconds < 0:
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
