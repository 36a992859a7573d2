"""What cannot be copied, as the assembler leaves it out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mirror_lib.cluster.batches.damage import Damage
from mirror_lib.cluster.batches.header import Codec
from mirror_lib.cluster.batches.records import Record, encode_record
from mirror_lib.errors import MirrorError


class Unit(StrEnum):
    """What the raw bytes are."""

    #: A record as in an uncompressed batch of its own (KIP-98): its offset delta and timestamp delta are 0.
    RECORD = "record"
    #: A whole batch, or several damaged ones in a row, as the source sent them.
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Source offsets [first_offset, next_offset) that do not go to the target, and the bytes that stand there."""

    first_offset: int
    next_offset: int
    #: None where damage keeps the number hidden.
    records: int | None
    error: MirrorError
    raw: bytes
    unit: Unit
    #: How `raw` is compressed, None where damage keeps that hidden.
    codec: Codec | None = None
    #: Epoch milliseconds, None where damage keeps them hidden.
    first_timestamp: int | None = None
    last_timestamp: int | None = None


def left_out_record(record: Record, error: MirrorError) -> LeftOut:
    """One record that is well but not wanted."""
    return LeftOut(
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


def left_out_damage(data: bytes | memoryview, damage: Damage, *, first: int, end: int, error: MirrorError) -> LeftOut:
    """What cannot be read.

    Args:
        data: begins with the damage.
        first: the first source offset that is missing.
        end: where the copy ends; the damage may reach further.
    """
    return LeftOut(
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
