"""A topic's requirements for records in addition to their size, as brokers check them (Java `LogValidator`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mirror_lib.errors import RecordRefusedError, Where
from mirror_lib.records.records import Record
from mirror_lib.records.varint import decode_varint

#: A key of length -1.
NULL_KEY = 0x01
_NO_TIMESTAMP = -1
_EARLIEST, _LATEST = -(2**63), 2**63 - 1
#: The broker's clock decides, at a later moment: timestamps within this margin of a bound are left to the broker.
_CLOCK_MARGIN_MS = 60_000


class AllowedTimes(NamedTuple):
    """The allowed epoch milliseconds at one moment, both included."""

    earliest: int = _EARLIEST
    latest: int = _LATEST


@dataclass(frozen=True, slots=True)
class RecordRules:
    """The requirements of one topic; None means no bound.

    Attributes:
        timestamp_before_max_ms: maximum age of timestamps (`message.timestamp.before.max.ms`, KIP-937).
        timestamp_after_max_ms: maximum distance of timestamps into the future.
        needs_key: records without a key are rejected (`cleanup.policy` with `compact`).
    """

    timestamp_before_max_ms: int | None = None
    timestamp_after_max_ms: int | None = None
    needs_key: bool = False

    @property
    def has_time_bound(self) -> bool:
        """True if timestamps have a bound."""
        return self.timestamp_before_max_ms is not None or self.timestamp_after_max_ms is not None

    @property
    def has_any(self) -> bool:
        """True if any record may be rejected."""
        return self.has_time_bound or self.needs_key

    def allowed_times(self, now_ms: int) -> AllowedTimes:
        """The timestamps that are not certainly rejected at `now_ms`."""
        before, after = self.timestamp_before_max_ms, self.timestamp_after_max_ms
        return AllowedTimes(
            _EARLIEST if before is None else now_ms - before - _CLOCK_MARGIN_MS,
            _LATEST if after is None else now_ms + after + _CLOCK_MARGIN_MS,
        )

    def refusal(self, record: Record, times: AllowedTimes) -> RecordRefusedError | None:
        """Why the topic certainly rejects the record; None if it may not. `Where` has only its offset.

        Args:
            times: of `allowed_times`. Records without a timestamp (-1) are always allowed.
        """
        if self.needs_key and record.tail[0] == NULL_KEY:
            return RecordRefusedError(
                "the record has no key, and the target topic is compacted.",
                where=Where(offset=record.offset),
                action="Remove `compact` from cleanup.policy of the target topic.",
            )
        if times.earliest <= record.timestamp <= times.latest or record.timestamp == _NO_TIMESTAMP:
            return None
        before = record.timestamp < times.earliest
        side, bound = ("before", self.timestamp_before_max_ms) if before else ("after", self.timestamp_after_max_ms)
        return RecordRefusedError(
            f"the record's timestamp {record.timestamp} (epoch milliseconds) is more than {bound} ms {side} the "
            "present, and the target topic rejects it.",
            where=Where(offset=record.offset),
            action=f"Raise message.timestamp.{side}.max.ms of the target topic.",
        )


#: A topic that accepts every record.
ANY_RECORD = RecordRules()


def lacks_key(body: bytes | memoryview, count: int) -> bool:
    """True if any record of an uncompressed body has no key.

    Raises:
        IndexError, ValueError: the body does not hold `count` records.
    """
    position = 0
    for _ in range(count):
        length, position = decode_varint(body, position)
        _timestamp, at = decode_varint(body, position + 1)
        _offset, at = decode_varint(body, at)
        if body[at] == NULL_KEY:
            return True
        position += length
    return False
