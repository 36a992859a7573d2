"""Checks if a source partition still has the log that was copied: pure rules, for copies and consumer groups.

An unclean leader election, or a disk that is restored from a snapshot, takes records that were copied. What is written
since has the same offsets, and perhaps the same leader epochs.
"""

from __future__ import annotations

from typing import NamedTuple

from mirror_lib.records.last_records import LastRecord

#: A leader's response for an epoch that it does not know (Java `OffsetsForLeaderEpochResponse`).
UNDEFINED_OFFSET = -1


class CopiedFrom(NamedTuple):
    """What a position says of the source's log."""

    #: The source offset after the last copied record.
    following: int
    leader_epoch: int | None = None
    last_record: LastRecord | None = None


class SourceLog(NamedTuple):
    """The current state of a source log."""

    start: int
    end: int
    #: The end of the position's leader epoch; None if not requested or not reported.
    epoch_end: int | None = None
    #: Whether the log has the position's record; None if not requested or unknown.
    record_same: bool | None = None


class Truncation(NamedTuple):
    """A source log that no longer has all copied records."""

    #: No record from this offset on is known to be the copied one.
    first: int
    what: str
    #: The log may have been restored from a snapshot whose end an operator knows.
    restored: bool = False


def find_truncation(then: CopiedFrom, now: SourceLog) -> Truncation | None:
    """What shows that copied records are lost; None if nothing does.

    KIP-320: an epoch that ends before its last copied record was truncated (Java `SubscriptionState`).
    """
    if now.epoch_end is not None and UNDEFINED_OFFSET < now.epoch_end < then.following:
        first = max(now.epoch_end, now.start)
        return Truncation(
            first,
            f"the source lost records {first} to {then.following - 1} after they were copied: the leader epoch "
            f"{then.leader_epoch} of the last one now ends at offset {now.epoch_end}. Later records at these "
            "offsets belong to another history.",
        )
    if then.following > now.end:
        return Truncation(
            now.end,
            f"log end offset of the source is {now.end}, before the position: records {now.end} to "
            f"{then.following - 1} were lost at the source after they were copied.",
        )
    if now.epoch_end == UNDEFINED_OFFSET:
        return Truncation(
            now.start,
            f"the source does not know the leader epoch {then.leader_epoch} of the last copied record: its log is not "
            "the log that was copied.",
        )
    if now.record_same is False and then.last_record is not None:
        return Truncation(
            now.start,
            f"the record at source offset {then.last_record.offset} is not the record that was copied from there: "
            f"the log was restored from a snapshot, or truncated, and has grown to offset {now.end} since.",
            restored=True,
        )
    return None
