"""Poison of a source partition: skipped data, or the error that stops the partition."""

from __future__ import annotations

from dataclasses import replace

from mirror_lib.errors import CorruptBatchError, MirrorError, OversizedBatchError, Where
from mirror_lib.records.compression.codecs import CodecError
from mirror_lib.records.damage import Damage
from mirror_lib.records.records import Record, RecordError
from mirror_lib.records.skipped import SkippedRecords, skipped_damage, skipped_record

#: Operator action for poison, in addition to removing its cause.
POLICIES = "Or skip such records: mirror.poison.policy=quarantine keeps a copy of them, skip does not."
#: Skipped data that may be held until it is stored: each record has an error of its own, about 850 bytes together.
MOST_SKIPPED = 1 << 15
MOST_SKIPPED_BYTES = 16 * 1024 * 1024
_NO_END = "It cannot be skipped, because the end of the damage is unknown."


class Poison:
    """The poison found in one partition: records that the target rejects, and batches that cannot be read."""

    def __init__(self, where: Where, end: int, *, skip: bool) -> None:
        """Start without poison.

        Args:
            where: its topic and partition.
            end: the source offset at which the copy ends.
            skip: skip poison instead of failing.
        """
        self._where = where
        self._end = end
        self.skip = skip
        #: Why the partition cannot continue; None without an error.
        self.failure: MirrorError | None = None
        self._skipped: list[SkippedRecords] = []
        self._skipped_bytes = 0

    @property
    def is_full(self) -> bool:
        """True if `take_skipped` must be called before more is skipped."""
        return len(self._skipped) >= MOST_SKIPPED or self._skipped_bytes >= MOST_SKIPPED_BYTES

    def take_skipped(self) -> list[SkippedRecords]:
        """Skipped data since the last call, in order."""
        taken, self._skipped = sorted(self._skipped, key=lambda each: each.first_offset), []
        self._skipped_bytes = 0
        return taken

    def fail(self, cause: Exception, *, at: int) -> None:
        """Stop the partition.

        Args:
            at: the source offset that the copy has reached.
        """
        self.failure = self.error_at(cause, at=at)
        # No policy skips an oversized batch, so none is suggested.
        if not isinstance(cause, OversizedBatchError):
            more = _NO_END if self.skip else POLICIES
            self.failure.action = f"{self.failure.action} {more}"

    def leave_out_record(self, record: Record, error: MirrorError) -> None:
        """Skip a valid record that the target rejects."""
        self._add(skipped_record(record, self.error_at(error, at=record.offset)))

    def skip_damage(self, data: bytes | memoryview, damage: Damage, cause: Exception, *, first: int) -> int:
        """Skip unreadable data; return the source offset after it.

        Args:
            data: starts with the damage.
            first: the first missing source offset.
        """
        skipped = skipped_damage(data, damage, first=first, end=self._end, error=self.error_at(cause, at=first))
        self._add(skipped)
        return skipped.next_offset

    def _add(self, skipped: SkippedRecords) -> None:
        self._skipped.append(skipped)
        self._skipped_bytes += len(skipped.raw)

    def error_at(self, cause: Exception, *, at: int) -> MirrorError:
        """The cause as an error of this partition, including any exception that damaged bytes can raise."""
        damage = f"{cause}" if isinstance(cause, RecordError | CodecError) else f"{type(cause).__name__}: {cause}"
        error = (
            cause if isinstance(cause, MirrorError) else CorruptBatchError(f"the source's batch is damaged: {damage}.")
        )
        _release_frames(error)
        offset = at if error.where.offset is None else error.where.offset
        if isinstance(error, CorruptBatchError):
            error.action = (
                "Compare the source's replicas of this partition (kafka-dump-log); the position stays before the batch."
            )
        error.where = replace(error.where, topic=self._where.topic, partition=self._where.partition, offset=offset)
        return error


def _release_frames(error: BaseException | None) -> None:
    """Drop the tracebacks of an error that is kept until the task ends: their frames hold fetches and bodies."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
