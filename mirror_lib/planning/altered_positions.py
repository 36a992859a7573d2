"""Positions that an operator has altered in Connect's form: `{"offset": N}` after a position of this program.

`PATCH /connectors/.../offsets` (KIP-875) writes such records, and an operator can. They look like those of
MirrorMaker 2, which continues after N. A run does the same, at the end of the target, as after `mirror position set`.
If another producer has written to the target since, it may have been MirrorMaker 2: then its positions are taken over,
unless they decrease, which its own never do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import NAMESPACE_OID, uuid5

from mirror_lib.cluster.topics.position_format import Position, PositionState, next_copy
from mirror_lib.cluster.topics.position_store import StoredPosition
from mirror_lib.cluster.topics.records import RecordPlace
from mirror_lib.errors import DirtyStartError, Where
from mirror_lib.ledger.rows import POSITION_SET, GapRow, GapState
from mirror_lib.ledger.store import Ledger
from mirror_lib.topology.names import FlowId, TopicPartition

_BY = "Connect's form of a position"
_NAMED = 3


@dataclass(frozen=True, slots=True)
class AlteredPosition:
    """A position that a record in Connect's form has changed."""

    before: Position
    #: Including the fields that the record lacks.
    after: Position
    record: RecordPlace

    def __str__(self) -> str:
        first, following = self.before.offset + 1, self.after.offset + 1
        what = f"{self.after.source} continues at source offset {following} instead of {first}"
        if following > first:
            return f"{what}, and offsets {first} to {following - 1} are skipped"
        return f"{what}, and records copied since then are copied again" if following < first else what


def altered_position(
    flow: FlowId, source: TopicPartition, stored: StoredPosition, target_end: int | None
) -> AlteredPosition | DirtyStartError | None:
    """The meaning of a record in Connect's form; None if it is MirrorMaker 2's, or there is no such record.

    Args:
        target_end: log end offset of the target partition; None if unknown.
    """
    altered = stored.altered
    if altered is None:
        return None
    before, offset = altered.before, stored.position.offset
    if before.state is PositionState.CLOSED and before.target_offset == target_end:
        # The target has not changed since: MirrorMaker 2 stores no position without records.
        known, place = before.last_record, stored.record
        # If it goes back, an offset means two records: another copy.
        after = replace(
            before,
            offset=offset,
            leader_epoch=before.leader_epoch if offset == before.offset else None,
            last_record=known if known is not None and known.offset <= offset else None,
            copy=before.copy
            if offset >= before.offset
            else next_copy(before.copy, f"altered-{place.partition}-{place.offset}"),
        )
        return AlteredPosition(before, after, stored.record)
    if offset >= altered.highest:
        return None
    where = Where(flow=str(flow), topic=source.topic, partition=source.partition, offset=offset)
    return DirtyStartError(
        f"a record in Connect's format (partition {stored.record.partition}, offset {stored.record.offset} of the "
        f"position topic) resets the position to source offset {offset + 1}, but the target content is uncertain: it "
        f"was copied up to source offset {altered.highest}, and written to after the last closed position.",
        where=where,
        action=f"Set the position: {where.position_set(offset + 1)} copies from there again, after the target's end.",
    )


def altered_notes(altered: Sequence[AlteredPosition]) -> Iterator[str]:
    """A sentence about altered positions, if there are any."""
    if altered:
        more = f"; and {len(altered) - _NAMED:,} more" if len(altered) > _NAMED else ""
        yield (
            "Positions were changed by records in Connect's format, as after `mirror position set`: "
            f"{'; '.join(map(str, altered[:_NAMED]))}{more}."
        )


def note_altered(flow: FlowId, altered: Iterable[AlteredPosition], ledger: Ledger, *, run_id: str) -> None:
    """Record the altered positions in the ledger, each once."""
    known = {gap.id for gap in ledger.gaps(str(flow), limit=None)} if altered else set()
    now = datetime.now(UTC)
    for each in altered:
        row = _gap_row(flow, each, now, run_id=run_id)
        if row.id not in known:
            ledger.record_gap(row)


def _gap_row(flow: FlowId, altered: AlteredPosition, now: datetime, *, run_id: str) -> GapRow:
    before, after, place = altered.before, altered.after, altered.record
    first, following = before.offset + 1, max(after.offset, before.offset) + 1
    forward = following > first
    return GapRow(
        id=str(uuid5(NAMESPACE_OID, f"{flow} {after.source} {place.partition} {place.offset}")),
        flow=str(flow),
        topic=after.topic,
        partition=after.partition,
        cause=POSITION_SET,
        first_offset=first,
        next_offset=following,
        topic_id=after.topic_id,
        detail=str(altered),
        run_id=run_id,
        found_at=now,
        state=(GapState.ACCEPTED if forward else GapState.RECOPIED).value,
        decided_by=_BY,
        decided_at=now,
    )


def with_altered(
    known: Mapping[TopicPartition, StoredPosition], altered: Iterable[AlteredPosition]
) -> dict[TopicPartition, StoredPosition]:
    """Stored positions, with the missing fields of altered ones filled in."""
    return {**known, **{each.after.source: StoredPosition(each.after, each.record) for each in altered}}
