"""What a verification says of a target partition that transforms send records to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mirror_lib.topology.names import TopicPartition
from mirror_lib.verify.findings import DifferenceKind, Verdict


@dataclass(frozen=True, slots=True)
class RoutedDifference:
    """A record that one side has more often than the other.

    Attributes:
        source: partition and offset of a record from which it is made; None where the source makes none of it.
        target_offset: where such a record stands; None where none does.
        records: how many too much, or too few.
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
    """The comparison of one target partition with all that transforms send there.

    Attributes:
        sources: partitions whose records went there.
        reason: stable code of why it is unverifiable.
        lasting: whether it will be unverifiable the next time too.
        records: found equal.
        made: records that the source makes for what was compared.
        standing: records on the target in what was compared.
        compacted: records that compaction removed on either side since they were copied.
        expired: records of stretches that one side does not hold any more.
        left_out: records that the ledger names as not copied.
        difference_count: records that are missing or too much; where there were too many to be told apart, at least so
            many.
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
    left_out: int = 0
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
            "left_out": self.left_out,
            "target_bytes": self.target_bytes,
            "timestamps_compared": self.timestamps_compared,
            "difference_count": self.difference_count,
            "differences": [each.to_dict() for each in self.differences],
        }
