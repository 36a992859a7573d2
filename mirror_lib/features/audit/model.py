"""The job of an audit, and what it reports. Plain data; a job travels to other processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from mirror_lib.cluster.connection import Connection
from mirror_lib.errors import MirrorError
from mirror_lib.features.audit.account import Reached
from mirror_lib.features.audit.differences import Difference
from mirror_lib.features.audit.findings import WRONG, Finding, Kind, Offsets, count_by_kind
from mirror_lib.features.audit.marks import Positions
from mirror_lib.features.audit.sampling import Sample
from mirror_lib.topology.names import TopicPartition

DEFAULT_MEMORY_BYTES = 256 * 1024 * 1024


class Verdict(StrEnum):
    """What is true of a partition, a topic, or all."""

    EQUAL = "equal"
    WRONG = "wrong"
    UNVERIFIABLE = "unverifiable"
    #: Hardly a record of one side is on the other.
    NO_COPY = "not a copy"


#: Ids of a topic and of its copy; None before Kafka 2.8.
TopicIds = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class PartitionPair:
    """A partition and its copy, with both logs as they were when the audit began."""

    source: TopicPartition
    target: TopicPartition
    source_start: int
    source_end: int
    target_start: int
    target_end: int
    source_compacted: bool = False
    target_compacted: bool = False
    #: True if other sources write to the copy, too.
    merged: bool = False
    #: Offsets whose places are wanted, ascending.
    source_marks: tuple[int, ...] = ()
    target_marks: tuple[int, ...] = ()
    ids: TopicIds = (None, None)
    #: How far an earlier audit has come.
    reached: Reached | None = None

    @property
    def first(self) -> tuple[int, int]:
        """Where the comparison begins on each side."""
        if self.reached is None:
            return self.source_start, self.target_start
        return self.reached.source_next, self.reached.target_next


@dataclass(frozen=True, slots=True)
class KeyedTopic:
    """A topic whose copy has other partitions: keys are compared. Start and end of each log as the audit began."""

    source: str
    target: str
    source_logs: tuple[tuple[int, int], ...]
    target_logs: tuple[tuple[int, int], ...]
    source_compacted: bool = False
    target_compacted: bool = False
    #: False if the target's brokers replace timestamps.
    times: bool = True
    ids: TopicIds = (None, None)

    @property
    def offsets(self) -> int:
        """Number of offsets of the source."""
        return sum(end - start for start, end in self.source_logs)


@dataclass(frozen=True, slots=True)
class AuditJob:
    """Which partitions to compare, and how. It holds secrets: never print it."""

    source: Connection = field(repr=False)
    target: Connection = field(repr=False)
    pairs: tuple[PartitionPair, ...] = ()
    topics: tuple[KeyedTopic, ...] = ()
    #: Epoch seconds until which records of the source are awaited on the target.
    awaited_until: float = 0.0
    #: How long a cluster that does not answer is asked again.
    retry_seconds: float = 90.0
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    read_committed: bool = True
    #: Names of headers that are not compared.
    ignored_headers: tuple[str, ...] = ()
    ignore_times: bool = False
    #: Records are to have the offsets that they have on the source.
    same_offsets: bool = False
    #: Compare only ranges, as long as they are equal.
    sample: Sample | None = None
    #: Ids of the clusters.
    clusters: tuple[str | None, str | None] = (None, None)
    #: File of a `Journal`.
    journal: Path | None = None

    @property
    def offsets(self) -> int:
        """Number of offsets of the source."""
        return sum(each.source_end - each.first[0] for each in self.pairs) + sum(e.offsets for e in self.topics)


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """What is true of one partition."""

    source: TopicPartition
    target: TopicPartition
    verdict: Verdict
    #: Pairs of equal records.
    equal: int = 0
    #: Records of a merged copy that are not of this source.
    others: int = 0
    source_range: Offsets | None = None
    target_range: Offsets | None = None
    findings: tuple[Finding, ...] = ()
    #: Why nothing can be said, or not about everything.
    why: str = ""
    #: What to do about that.
    action: str = ""
    #: How often the source was read.
    passes: int = 1
    #: True if the order of each key was compared, and not that of the partition: the copy has other partitions.
    by_key: bool = False
    #: False if the target's brokers replace timestamps.
    times_compared: bool = True
    source_bytes: int = 0
    target_bytes: int = 0
    seconds: float = 0.0
    #: The ranges of the source that were compared; empty if all was.
    sampled: tuple[Offsets, ...] = ()
    #: The places of the pair's marks; None if the comparison has not come to its end.
    positions: Positions | None = None

    @property
    def counts(self) -> Mapping[Kind, int]:
        """Number of records of each kind."""
        return count_by_kind(self.findings)

    @property
    def paired(self) -> int:
        """Number of pairs of records that are equal, or were with the same timestamps."""
        return self.equal + sum(each.records for each in self.findings if each.parts == ("timestamp",))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "topic": self.source.topic,
            "partition": self.source.partition,
            "target_topic": self.target.topic,
            "target_partition": self.target.partition,
            "verdict": self.verdict.value,
            "equal": self.equal,
            "others": self.others,
            **{kind.value: self.counts.get(kind, 0) for kind in Kind},
            "source": None if self.source_range is None else self.source_range.to_dict(),
            "target": None if self.target_range is None else self.target_range.to_dict(),
            "findings": [each.to_dict() for each in self.findings],
            "why": self.why,
            "action": self.action,
            "sampled": [each.to_dict() for each in self.sampled],
            "passes": self.passes,
            "by_key": self.by_key,
            "times_compared": self.times_compared,
            "source_bytes": self.source_bytes,
            "target_bytes": self.target_bytes,
            "seconds": round(self.seconds, 3),
        }


def verdict_of(findings: tuple[Finding, ...], *, why: str) -> Verdict:
    """The verdict by what was found."""
    kinds = {each.kind for each in findings}
    if kinds & WRONG:
        return Verdict.WRONG
    return Verdict.UNVERIFIABLE if why or kinds else Verdict.EQUAL


@dataclass(frozen=True, slots=True)
class Jump:
    """Where a group would continue on the target, and what that means: numbers of records there."""

    offset: int
    skips: int
    duplicates: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"offset": self.offset, "skips": self.skips, "duplicates": self.duplicates}


@dataclass(frozen=True, slots=True)
class GroupReport:
    """A group in one partition."""

    group: str
    source: TopicPartition
    target: TopicPartition
    #: Its committed offset on the source.
    committed: int
    #: Where it continues on the target without skipping or reading anything again.
    exact: int
    #: By the newest checkpoint; None without one.
    checkpoint: Jump | None = None
    #: By its committed offset on the target; None without one.
    commit: Jump | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "group": self.group,
            "topic": self.source.topic,
            "partition": self.source.partition,
            "target_topic": self.target.topic,
            "committed": self.committed,
            "exact": self.exact,
            "checkpoint": None if self.checkpoint is None else self.checkpoint.to_dict(),
            "commit": None if self.commit is None else self.commit.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What is true of all topics."""

    partitions: tuple[PartitionReport, ...]
    #: Topics of the source without a copy.
    alone: tuple[str, ...] = ()
    #: Topics of the source with several possible copies.
    ambiguous: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Sentences about what could not be read.
    notes: tuple[str, ...] = ()
    #: Epoch milliseconds at which the ends of the source were fixed.
    began_at: int = 0
    seconds: float = 0.0
    #: Which records consumer groups would skip or read twice.
    groups: tuple[GroupReport, ...] = ()
    #: Why it is not known of some of them.
    group_errors: tuple[MirrorError, ...] = ()
    #: Configs and ACLs of the copies that are not as the source's.
    differences: tuple[Difference, ...] = ()
    #: Epoch milliseconds: older records were not compared; None: all were.
    since: int | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst one."""
        found = {each.verdict for each in self.partitions}
        if found & {Verdict.WRONG, Verdict.NO_COPY}:
            return Verdict.WRONG
        return Verdict.UNVERIFIABLE if Verdict.UNVERIFIABLE in found or not self.partitions else Verdict.EQUAL

    @property
    def equal(self) -> int:
        """Pairs of equal records of all partitions."""
        return sum(each.equal for each in self.partitions)

    @property
    def counts(self) -> Mapping[Kind, int]:
        """Number of records of each kind, of all partitions."""
        return count_by_kind(finding for each in self.partitions for finding in each.findings)

    def exit_code(self, *, strict: bool = False) -> int:
        """0 right, 3 wrong, 1 not verifiable: of the records.

        Args:
            strict: topics without a copy, groups that would skip records, and differing configs and ACLs count as
                wrong.
        """
        skips = any(jump.skips for each in self.groups for jump in (each.checkpoint, each.commit) if jump is not None)
        rest = self.alone or self.differences or skips
        if self.verdict is Verdict.WRONG or (strict and rest):
            return 3
        return 0 if self.verdict is Verdict.EQUAL else 1

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "verdict": self.verdict.value,
            "equal": self.equal,
            **{kind.value: self.counts.get(kind, 0) for kind in Kind},
            "partitions": [each.to_dict() for each in self.partitions],
            "topics_without_copy": list(self.alone),
            "topics_with_several_copies": {name: list(copies) for name, copies in self.ambiguous.items()},
            "notes": list(self.notes),
            "groups": [each.to_dict() for each in self.groups],
            "group_errors": [str(each) for each in self.group_errors],
            "differences": [each.to_dict() for each in self.differences],
            "began_at": self.began_at,
            "since": self.since,
            "seconds": round(self.seconds, 3),
        }
