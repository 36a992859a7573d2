"""Data that cannot be copied, as the assembler skips it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mirror_lib.errors import MirrorError
from mirror_lib.records.damage import Damage
from mirror_lib.records.header import Codec
from mirror_lib.records.records import Record, encode_record


class Unit(StrEnum):
    """The content of the raw bytes."""

    #: A record as in an uncompressed batch of its own (KIP-98): its offset delta and timestamp delta are 0.
    RECORD = "record"
    #: A whole batch, or several consecutive damaged ones, as the source sent them.
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class SkippedRecords:
    """Source offsets [first_offset, next_offset) that are not copied, and their bytes."""

    first_offset: int
    next_offset: int
    #: None if the damage hides the number.
    records: int | None
    error: MirrorError
    raw: bytes
    unit: Unit
    #: The codec of `raw`; None if the damage hides it.
    codec: Codec | None = None
    #: Epoch milliseconds; None if the damage hides them.
    first_timestamp: int | None = None
    last_timestamp: int | None = None


def skipped_record(record: Record, error: MirrorError) -> SkippedRecords:
    """One valid record that is not wanted."""
    return SkippedRecords(
        first_offset=record.offset,
        next_offset=record.offset + 1,
        records=1,
        error=error,
        raw=encode_record(record, offset_delta=0, timestamp_delta=0),
        unit=Unit.RECORD,
        codec=Codec.NONE,
        first_timestamp=record.timestamp,
        last_timestamp=record.timestamp,
    )


def skipped_damage(
    data: bytes | memoryview, damage: Damage, *, first: int, end: int, error: MirrorError
) -> SkippedRecords:
    """Unreadable data.

    Args:
        data: starts with the damage.
        first: the first missing source offset.
        end: the end of the copy; the damage may extend beyond it.
    """
    return SkippedRecords(
        first_offset=first,
        next_offset=min(damage.next_offset, end),
        records=damage.records if damage.next_offset <= end else None,
        error=error,
        raw=bytes(data[: damage.size]),
        unit=Unit.BATCH,
        codec=damage.codec,
        first_timestamp=damage.first_timestamp,
        last_timestamp=damage.max_timestamp,
    )
