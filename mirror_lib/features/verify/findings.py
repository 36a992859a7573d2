"""Findings of a comparison, and the verdicts of a verification: everything here pickles and prints.

Record content never appears: differences are described by offsets, names of parts and short digests.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mirror_lib.errors import MirrorError
from mirror_lib.topology.names import TopicPartition


class Verdict(StrEnum):
    """The verdict of a verification on a partition."""

    EQUAL = "equal"
    DIFFERENT = "different"
    #: Verification was not possible: see the reason.
    UNVERIFIABLE = "unverifiable"


class DifferenceKind(StrEnum):
    """How the target deviates from the source."""

    #: The source has a record that the target lacks.
    MISSING = "missing"
    #: The target has a record that the source lacks.
    EXTRA = "extra"
    #: Both have the record, with another key, value, header or timestamp.
    ALTERED = "altered"
    #: The records of a span are the same, and their order is not.
    REORDERED = "reordered"
    #: The map does not say where a record of the source went, or says it wrongly.
    UNMAPPED = "unmapped"
    #: By state: the target has a key that was copied, and the source has it no more.
    DELETION_LOST = "deletion-lost"
    #: By state: the newest record of the key on one side is of a transaction that was aborted on the other side, where
    #: readers of committed records do not see it.
    ABORTED = "aborted"


class Stopped(StrEnum):
    """Why a comparison ended before the end of its plan."""

    BYTES = "bytes"
    SECONDS = "seconds"


@dataclass(frozen=True, slots=True)
class VerifiedMark:
    """How far a partition was found equal: the next offset to compare on both sides."""

    source_next: int
    target_next: int


@dataclass(frozen=True, slots=True)
class Difference:
    """One deviation and where it is. An offset is None on the side that lacks the record."""

    kind: DifferenceKind
    source_offset: int | None
    target_offset: int | None
    #: Which parts differ, of `key`, `value`, `headers`, `timestamp`; empty where the kind says all.
    what: tuple[str, ...] = ()
    #: Short digests of the record's content on either side: enough to see whether two reports mean the same.
    source_digest: str | None = None
    target_digest: str | None = None
    #: Records concerned: more than one in a span that is out of order.
    records: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON and the ledger."""
        return {
            "kind": self.kind.value,
            "source_offset": self.source_offset,
            "target_offset": self.target_offset,
            "what": list(self.what),
            "source_digest": self.source_digest,
            "target_digest": self.target_digest,
            "records": self.records,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeOutcome:
    """The findings in one range, as far as it was compared."""

    source_first: int
    source_next: int
    target_first: int
    target_next: int
    #: True if the end of the range was reached.
    complete: bool
    #: Records found equal.
    records: int = 0
    #: Of these, records of batches that were compared without decoding.
    records_undecoded: int = 0
    #: Of these, records that are not in the map but are at their expected offset.
    outside_map: int = 0
    #: Records that compaction removed on one side since they were copied.
    compacted_source: int = 0
    compacted_target: int = 0
    #: Records that retention removed on one side while this was running.
    expired: int = 0
    #: Records of the map that are gone on both sides.
    gone_on_both: int = 0
    #: Records that the ledger names as not copied, or as changed on the source since.
    skipped: int = 0
    #: Records on the target that belong to other sources of a merge.
    foreign: int = 0
    #: By state: keys whose newest record is not copied yet, and those that the source has from before the map only.
    pending: int = 0
    before_map: int = 0
    #: By state: of the differences, keys that live on though the source has deleted them.
    deletions_lost: int = 0
    #: By state: of the differences, keys whose newest record is of an aborted transaction.
    aborted_keys: int = 0
    #: By state: records without a key on either side, which have no place in it.
    without_key: int = 0
    #: Compared records of aborted transactions, and of those that had not ended, which only readers of all records see
    #: on the side where they were written. Both see them on the other side.
    aborted: int = 0
    undecided: int = 0
    #: False where a log-append time of the target replaces the source's timestamps.
    timestamps_compared: bool = True
    #: See `docs/verification.md`; None where the end was not reached.
    digest: str | None = None
    difference_count: int = 0
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionVerdict:
    """The result of a verification for one partition."""

    source: TopicPartition
    target: TopicPartition
    verdict: Verdict
    #: Stable code of why it is unverifiable: `no-map`, `budget`, of `verify.planning.chains`, or `MirrorError.reason`.
    reason: str | None = None
    detail: str | None = None
    outcomes: tuple[RangeOutcome, ...] = ()
    source_bytes: int = 0
    target_bytes: int = 0
    seconds: float = 0.0
    #: Set when a budget ended the comparison before its plan's end.
    stopped: Stopped | None = None
    expired_before: int = 0
    offsets_before_map: int = 0
    differences: tuple[Difference, ...] = ()

    @classmethod
    def impossible(
        cls, source: TopicPartition, target: TopicPartition, reason: str, detail: str, **more: Any
    ) -> PartitionVerdict:
        """Nothing can be said."""
        return cls(source=source, target=target, verdict=Verdict.UNVERIFIABLE, reason=reason, detail=detail, **more)

    @classmethod
    def for_error(
        cls, source: TopicPartition, target: TopicPartition, error: MirrorError, **more: Any
    ) -> PartitionVerdict:
        """Nothing can be said because of an error."""
        return cls.impossible(source, target, error.reason, str(error), **more)

    @classmethod
    def for_unchanged(
        cls, source: TopicPartition, target: TopicPartition, mark: VerifiedMark, *, expired: int = 0
    ) -> PartitionVerdict:
        """Nothing is left to compare: all was found equal up to the mark, or has expired."""
        outcome = RangeOutcome(
            source_first=mark.source_next,
            source_next=mark.source_next,
            target_first=mark.target_next,
            target_next=mark.target_next,
            complete=True,
        )
        return cls(source=source, target=target, verdict=Verdict.EQUAL, outcomes=(outcome,), expired_before=expired)

    @property
    def records(self) -> int:
        """Records found equal."""
        return sum(each.records for each in self.outcomes)

    @property
    def is_empty(self) -> bool:
        """True if everything was compared, and neither the logs nor the map have a record of it."""
        ended = self.verdict is Verdict.EQUAL and self.stopped is None
        return ended and not (
            self.records or self.expired_records or self.compacted_records or self.skipped or self.pending_keys
        )

    @property
    def difference_count(self) -> int:
        """All differences found, also those that were not kept."""
        return sum(each.difference_count for each in self.outcomes)

    @property
    def skipped(self) -> int:
        """Records that the ledger names as not copied."""
        return sum(each.skipped for each in self.outcomes)

    @property
    def compacted_records(self) -> int:
        """Records that compaction removed since they were copied, on either side or on both."""
        return sum(each.compacted_source + each.compacted_target + each.gone_on_both for each in self.outcomes)

    @property
    def expired_records(self) -> int:
        """Records of the map that retention has removed on one side."""
        return self.expired_before + sum(each.expired for each in self.outcomes)

    @property
    def pending_keys(self) -> int:
        """By state: keys whose newest record is not copied yet."""
        return sum(each.pending for each in self.outcomes)

    @property
    def before_map(self) -> int:
        """By state: keys that the source has from before the map only."""
        return sum(each.before_map for each in self.outcomes)

    @property
    def deletions_lost(self) -> int:
        """By state: keys that live on though the source has deleted them."""
        return sum(each.deletions_lost for each in self.outcomes)

    @property
    def aborted_keys(self) -> int:
        """By state: keys whose newest record is of an aborted transaction."""
        return sum(each.aborted_keys for each in self.outcomes)

    @property
    def aborted(self) -> int:
        """Compared records of aborted transactions."""
        return sum(each.aborted for each in self.outcomes)

    @property
    def undecided(self) -> int:
        """Compared records of transactions that had not ended."""
        return sum(each.undecided for each in self.outcomes)

    @property
    def without_key(self) -> int:
        """By state: records without a key on either side."""
        return sum(each.without_key for each in self.outcomes)

    @property
    def timestamps_compared(self) -> bool:
        """True if timestamps could be compared everywhere."""
        return all(each.timestamps_compared for each in self.outcomes)

    @property
    def digest(self) -> str | None:
        """One digest over those of the ranges; None unless all of them were compared to their ends."""
        digests = [each.digest for each in self.outcomes if each.digest is not None]
        if not digests or len(digests) < len(self.outcomes) or self.stopped is not None:
            return None
        return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()

    @property
    def source_first(self) -> int | None:
        """Where the comparison began."""
        return self.outcomes[0].source_first if self.outcomes else None

    @property
    def source_next(self) -> int | None:
        """Where the comparison ended."""
        return self.outcomes[-1].source_next if self.outcomes else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "topic": self.source.topic,
            "partition": self.source.partition,
            "target_topic": self.target.topic,
            "verdict": self.verdict.value,
            "reason": self.reason,
            "detail": self.detail,
            "stopped": self.stopped.value if self.stopped else None,
            "records": self.records,
            "records_undecoded": sum(each.records_undecoded for each in self.outcomes),
            "outside_map": sum(each.outside_map for each in self.outcomes),
            "source_bytes": self.source_bytes,
            "target_bytes": self.target_bytes,
            "seconds": round(self.seconds, 3),
            "compacted": self.compacted_records,
            "expired": self.expired_records,
            "skipped": self.skipped,
            "pending": self.pending_keys,
            "before_map": self.before_map,
            "deletions_lost": self.deletions_lost,
            "aborted_keys": self.aborted_keys,
            "aborted": self.aborted,
            "undecided": self.undecided,
            "without_key": self.without_key,
            "foreign": sum(each.foreign for each in self.outcomes),
            "offsets_before_map": self.offsets_before_map,
            "timestamps_compared": self.timestamps_compared,
            "digest": self.digest,
            "difference_count": self.difference_count,
            "differences": [each.to_dict() for each in self.differences],
            "ranges": [
                {
                    "source_first": each.source_first,
                    "source_next": each.source_next,
                    "target_first": each.target_first,
                    "target_next": each.target_next,
                    "records": each.records,
                    "complete": each.complete,
                    "digest": each.digest,
                }
                for each in self.outcomes
            ],
        }


@dataclass(frozen=True, slots=True)
class RoutedDifference:
    """A record that one side has more often than the other.

    Attributes:
        source: partition and offset of a source record from which it is made; None where the source makes none.
        target_offset: of such a record; None where there is none.
        records: how many too many, or too few.
    """

    kind: DifferenceKind
    source: TopicPartition | None = None
    source_offset: int | None = None
    target_offset: int | None = None
    records: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with the keys that a `Difference` has."""
        return {
            "kind": self.kind.value,
            "source_topic": self.source.topic if self.source else None,
            "source_partition": self.source.partition if self.source else None,
            "source_offset": self.source_offset,
            "target_offset": self.target_offset,
            "what": [],
            "records": self.records,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedVerdict:
    """The comparison of one target partition with all records that transforms send there.

    Attributes:
        sources: partitions whose records went there.
        reason: stable code of why it is unverifiable.
        lasting: True if it will be unverifiable the next time too.
        records: found equal.
        made: records that the source makes for the compared spans.
        standing: records on the target in the compared spans.
        compacted: records that compaction removed on either side since they were copied.
        expired: records of spans that one side no longer holds.
        skipped: records that the ledger names as not copied.
        difference_count: missing and surplus records; a lower bound if they were too many to identify.
    """

    target: TopicPartition
    verdict: Verdict
    sources: tuple[TopicPartition, ...] = ()
    reason: str | None = None
    detail: str | None = None
    lasting: bool = False
    records: int = 0
    made: int = 0
    standing: int = 0
    compacted: int = 0
    expired: int = 0
    skipped: int = 0
    target_bytes: int = 0
    timestamps_compared: bool = True
    difference_count: int = 0
    differences: tuple[RoutedDifference, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with the keys that the verdict of a partition has where they mean the same."""
        return {
            "topic": self.target.topic,
            "partition": self.target.partition,
            "sources": [[each.topic, each.partition] for each in self.sources],
            "verdict": self.verdict.value,
            "reason": self.reason,
            "detail": self.detail,
            "records": self.records,
            "made": self.made,
            "standing": self.standing,
            "compacted": self.compacted,
            "expired": self.expired,
            "skipped": self.skipped,
            "target_bytes": self.target_bytes,
            "timestamps_compared": self.timestamps_compared,
            "difference_count": self.difference_count,
            "differences": [each.to_dict() for each in self.differences],
        }
