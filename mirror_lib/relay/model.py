"""The values that travel between plan, copy and commit: everything here pickles and prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mirror_lib.cluster import Connection
from mirror_lib.cluster.batches import ANY_RECORD, RecordRules
from mirror_lib.cluster.raw import HiddenRecords
from mirror_lib.cluster.topics import SOURCE_CONNECTOR, ClusterPair, LastRecord, OmittedRange, Position, Route
from mirror_lib.config import CopySettings
from mirror_lib.errors import MirrorError
from mirror_lib.observe import Expectation
from mirror_lib.offsets import OffsetRun
from mirror_lib.sync import CopiedTo, TargetPartition
from mirror_lib.topology import FlowId, TopicPartition
from mirror_lib.transform import TopicPath, TransformChain


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """What both clusters and the position topic say about one source partition."""

    source: TopicPartition
    target: TopicPartition
    #: First offset the source still holds.
    log_start: int
    #: Where a reader of the flow's isolation level would stop: high watermark or last stable offset.
    log_end: int
    #: None where the cluster is older than topic ids (KIP-516, Kafka 2.8).
    topic_id: str | None
    #: The offset to copy next, None when nothing is known to have been copied.
    position: int | None
    #: The source topic's id when the position was written, None when unknown (MM2 does not keep it).
    position_topic_id: str | None
    #: Bytes of the whole partition on disk, None when the cluster does not say.
    log_bytes: int | None
    #: Largest batch the target topic accepts.
    target_max_message_bytes: int
    #: The source's leader epoch of the last copied batch, None when unknown.
    position_leader_epoch: int | None = None
    #: Where that epoch ends in the source's log now (KIP-320); None where nobody asked or the cluster does not say.
    leader_epoch_end: int | None = None
    #: What the position says of a record before it, None where it does not.
    last_record: LastRecord | None = None
    #: Whether the source still has that record; None where nobody asked or nobody can tell.
    last_record_same: bool | None = None
    #: The offset that a first start by time begins at, None for other first starts.
    first_offset: int | None = None
    #: Somebody decided that this partition is not replicated any more.
    stopped: bool = False
    #: Where the source ended when it was found to end before this position, as long as nobody has decided about that.
    truncated_to: int | None = None
    #: What else the target topic demands of a record.
    target_rules: RecordRules = ANY_RECORD
    #: The run that stored the position has not closed it: what it did may not be in the ledger yet.
    interrupted: bool = False
    #: The target partition now; None where nobody asked.
    target_now: TargetPartition | None = None
    #: Where the position says that the copied records are; None where it says so of none.
    copied_to: CopiedTo | None = None
    #: The ids of both clusters; None if one of them reports no id.
    clusters: ClusterPair | None = None
    #: Number of partitions that the topic had when it was copied first; None where nobody knows.
    first_partitions: int | None = None
    #: As in the position.
    caught_up_at: int | None = None
    #: Epoch milliseconds, right before `log_end` was asked for; None where nobody asked.
    asked_at: int | None = None
    #: An operator has altered the position in Connect's form, and no run has stored it since.
    altered: bool = False
    #: Records behind `log_end` that open transactions hide and that are not copied; None where there are none.
    hidden: HiddenRecords | None = None

    @property
    def high_watermark(self) -> int:
        """Where the log ends for readers of all records: lag is measured against it."""
        return self.log_end if self.hidden is None else max(self.hidden.end, self.log_end)

    @property
    def added(self) -> bool:
        """Whether the partition was added to a topic that was copied already."""
        return self.first_partitions is not None and self.source.partition >= self.first_partitions


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """One partition's share of a run: copy [start, end) of the source, in order."""

    source: TopicPartition
    target: TopicPartition
    start: int
    end: int
    topic_id: str | None
    target_max_message_bytes: int
    #: Estimated from the log's size; 0 when the cluster does not say.
    estimated_bytes: int
    #: The source's leader epoch of the last record before `start`, None when unknown.
    leader_epoch: int | None = None
    #: A record of the source before `start`, by which its log can be known again.
    last_record: LastRecord | None = None
    #: What else the target topic demands of a record.
    target_rules: RecordRules = ANY_RECORD
    #: None before Kafka 2.8, or where the topic is not there yet.
    target_topic_id: str | None = None
    clusters: ClusterPair | None = None
    #: Number of partitions that the topic had when it was copied first.
    first_partitions: int | None = None
    #: Where the source's log ended, and when that was asked (epoch milliseconds); None in a backfill.
    log_end: int | None = None
    asked_at: int | None = None
    #: Epoch milliseconds: when the copy was at the end of the log before, or begins; None where that is not known.
    caught_up_at: int | None = None

    def named(self, position: Position) -> Position:
        """A position of the partition with what it is about: target topic, clusters, partitions at the first copy.

        And since when deletions behind it may be waiting: only a copy up to the log's end moves that moment.
        """
        caught_up = self.log_end is not None and position.offset + 1 >= self.log_end
        return replace(
            position,
            target_topic=self.target.topic,
            target_topic_id=self.target_topic_id,
            clusters=self.clusters,
            first_partitions=self.first_partitions,
            caught_up_at=self.asked_at if caught_up else self.caught_up_at,
        )

    @property
    def weight(self) -> int:
        """What balances bins: bytes, or offsets where bytes are unknown."""
        return max(self.estimated_bytes, self.end - self.start)


#: Stands for the partition where a problem concerns a topic as a whole.
WHOLE_TOPIC = -1


@dataclass(frozen=True, slots=True)
class SourceLoss:
    """Source records [first_offset, next_offset) that the target cannot get, or has as the source had them before.

    The range is empty where nobody can know what was lost.
    """

    first_offset: int
    next_offset: int
    #: The source topic's id now.
    topic_id: str | None


@dataclass(frozen=True, slots=True)
class PartitionProblem:
    """A partition that this run does not copy, and why."""

    #: Its partition is `WHOLE_TOPIC` when not even the partitions of the topic are known.
    source: TopicPartition
    error: MirrorError
    #: What the source has lost, if that is the problem: a person has to decide about it.
    loss: SourceLoss | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output and the report file."""
        return {"topic": self.source.topic, "partition": self.source.partition, **self.error.attributes()}


@dataclass(frozen=True, slots=True)
class HotPartition:
    """A target partition whose records are more than a task's fair share; it has one writer, so it is never split."""

    #: Of the sources that go there, the one with most; others are those of a merge.
    source: TopicPartition
    #: Bytes, or offsets where bytes are not known.
    weight: int
    #: Of all tasks, if everything could be split evenly.
    fair_share: int
    tasks: int
    #: Whether `weight` and `fair_share` are bytes.
    in_bytes: bool

    @property
    def times_fair_share(self) -> float:
        """How many times a task's fair share this partition is."""
        return self.weight / self.fair_share

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {
            "topic": self.source.topic,
            "partition": self.source.partition,
            "weight": self.weight,
            "fair_share": self.fair_share,
            "tasks": self.tasks,
            "unit": "bytes" if self.in_bytes else "offsets",
            "times_fair_share": round(self.times_fair_share, 2),
        }


@dataclass(frozen=True, slots=True)
class HiddenPartition:
    """Records of a partition that no run can copy before a transaction of the source has ended."""

    #: From the first offset that is not copied up to the high watermark.
    plan: PartitionPlan
    records: HiddenRecords
    #: Whether there is nothing to copy before them.
    is_all: bool

    @property
    def source(self) -> TopicPartition:
        """The partition."""
        return self.plan.source

    @property
    def offsets(self) -> int:
        """Offsets that are hidden and not copied."""
        return self.records.end - max(self.records.first, self.plan.start)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {
            "topic": self.source.topic,
            "partition": self.source.partition,
            "first_offset": self.records.first,
            "high_watermark": self.records.end,
            "offsets": self.offsets,
            "open_since": self.records.open_since,
            "producer_id": self.records.producer_id,
            "transactional_id": self.records.transactional_id,
        }


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What one round of a flow will do: printable, comparable, and computed without asking anybody."""

    flow: FlowId
    #: Each bin is one Spark task; a partition is in exactly one.
    bins: tuple[tuple[PartitionPlan, ...], ...]
    problems: tuple[PartitionProblem, ...]
    #: Partitions with nothing to copy.
    idle: int
    #: Partitions without a position that have nothing to copy: only their start is to be stored.
    first_seen: tuple[PartitionPlan, ...] = ()
    #: Partitions with nothing to copy whose positions do not name target topic and clusters yet, or were altered.
    unnamed: tuple[PartitionPlan, ...] = ()
    #: Partitions that somebody decided not to replicate any more.
    stopped: int = 0
    #: What the target topics may refuse, and partitions that the run waits for, in words.
    warnings: tuple[str, ...] = ()
    #: Partitions with more than a task's fair share, heaviest first.
    hot: tuple[HotPartition, ...] = ()
    #: What a round of this plan costs by the earlier rounds of the flow; None where nobody asked the ledger.
    expected: Expectation | None = None
    #: How the records of each topic get to the target; empty where nobody asked.
    paths: tuple[TopicPath, ...] = ()
    #: Partitions with records that open transactions of the source hide.
    hidden: tuple[HiddenPartition, ...] = ()

    @property
    def hidden_offsets(self) -> int:
        """Offsets of all partitions that open transactions of the source hide."""
        return sum(each.offsets for each in self.hidden)

    @property
    def partitions(self) -> tuple[PartitionPlan, ...]:
        """All partitions to copy, bin by bin."""
        return tuple(partition for bin_ in self.bins for partition in bin_)

    @property
    def estimated_bytes(self) -> int:
        """Sum over the partitions; a lower bound where some sizes are unknown."""
        return sum(partition.estimated_bytes for partition in self.partitions)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {
            "flow": str(self.flow),
            "tasks": len(self.bins),
            "idle_partitions": self.idle,
            "stopped_partitions": self.stopped,
            "estimated_bytes": self.estimated_bytes,
            "partitions": [
                {
                    "task": number,
                    "topic": partition.source.topic,
                    "partition": partition.source.partition,
                    "target_topic": partition.target.topic,
                    "start": partition.start,
                    "end": partition.end,
                    "estimated_bytes": partition.estimated_bytes,
                }
                for number, bin_ in enumerate(self.bins)
                for partition in bin_
            ],
            "problems": [problem.to_dict() for problem in self.problems],
            "warnings": list(self.warnings),
            "hidden": [each.to_dict() for each in self.hidden],
            "hot_partitions": [each.to_dict() for each in self.hot],
            "expected": None if self.expected is None else self.expected.to_dict(),
            "paths": [each.to_dict() for each in self.paths],
        }


@dataclass(frozen=True, slots=True)
class Takeover:
    """Where certainty ends: an earlier run or attempt may have written behind this pair of offsets, and may still live.

    The copy then begins by fencing that writer and finding out what stands on the target.
    """

    #: Everything of the source before this offset is on the target, or rightly dropped ...
    source_offset: int
    #: ... before this offset.
    target_offset: int
    #: The writer before, None when it is not known (MM2, a deleted record).
    producer_id: int | None = None
    epoch: int | None = None
    #: The first offset that the target still holds.
    target_log_start: int = 0
    #: How long the writer before may still live where the broker cannot refuse it.
    lease_seconds: float = 0.0
    #: What the writer before had left out, as far as its position tells; the ledger may not know it. Ascending.
    left_out: tuple[OmittedRange, ...] = ()
    #: Where its records stand before this pair, as far as its position tells; the ledger may not know it.
    runs: tuple[OffsetRun, ...] = ()
    #: Where else it had written behind this pair, as far as its position tells.
    routes: tuple[Route, ...] = ()
    #: Whether it wrote in transactions: once it is fenced, nothing that is committed stands behind this pair, or behind
    #: a later one that its last transaction has stored.
    in_transactions: bool = False


@dataclass(frozen=True, slots=True)
class OpenPartition:
    """A planned partition whose position is open: the writer's identity and where its first batch must land."""

    plan: PartitionPlan
    #: None where the target refuses transactional ids (`mirror.fencing=none`).
    transactional_id: str | None
    producer_id: int
    epoch: int
    target_offset: int
    #: Set when the identity and `target_offset` are to be found out by the copy task itself.
    takeover: Takeover | None = None
    #: Whether that was done.
    taken_over: bool = False
    #: The number of this claim of the partition.
    claim: int = 1
    #: The id of the producer in whose transactions all is written for it, and its positions with it; None where it is
    #: written without any.
    transactions: str | None = None


@dataclass(frozen=True, slots=True)
class PositionTopic:
    """Where a copy task stores positions while it copies."""

    connection: Connection = field(repr=False)
    topic: str
    source_alias: str
    flush_seconds: float
    #: Whose positions: a backfill has its own.
    connector: str = SOURCE_CONNECTOR


@dataclass(frozen=True, slots=True)
class ProducerMemory:
    """What the target's brokers remember of a producer that writes in no transaction, and for how long."""

    #: Since the newest timestamp of its last batch (`producer.id.expiration.ms`); None: for ever.
    seconds: float | None = 86_400.0
    #: Whether they ask the coordinator about each batch that is in a transaction (KIP-890, since Kafka 3.6).
    verifies_transactions: bool = False

    def old_before(self, now: float) -> int:
        """Epoch milliseconds; of a batch whose newest timestamp lies before, the producer may be forgotten soon.

        That is half of the time that they remember: a writer that was overtaken is known for the other half.

        Args:
            now: epoch seconds.
        """
        return _NEVER if self.seconds is None else int((now - self.seconds / 2) * 1000)


#: Before all timestamps that Kafka allows.
_NEVER = -(2**63)


@dataclass(frozen=True, slots=True)
class CopyJob:
    """All that an executor needs. Holds credentials in its connections: never log it."""

    flow: FlowId
    run_id: str
    source: Connection = field(repr=False)
    target: Connection = field(repr=False)
    read_committed: bool
    settings: CopySettings
    bins: tuple[tuple[OpenPartition, ...], ...]
    #: None: positions are stored at the end only.
    positions: PositionTopic | None = None
    #: Where poison goes under that policy.
    quarantine_topic: str = ""
    #: How many bytes all tasks together may read from the source in a second; None: as many as they can.
    bytes_per_second: int | None = None
    #: What the records of some source topics go through; those of all others are copied as they are.
    chains: Mapping[str, TransformChain] = field(default_factory=dict, repr=False)
    producer_memory: ProducerMemory = ProducerMemory()


@dataclass(frozen=True, slots=True)
class Poison:
    """Source records [first_offset, next_offset) that could not be copied and were left out by the flow's policy."""

    first_offset: int
    next_offset: int
    #: None where damage keeps the number hidden.
    records: int | None
    #: `MirrorError.reason` of what is wrong with them.
    cause: str
    detail: str
    #: Epoch milliseconds, None where damage keeps them hidden.
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    quarantined: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output and the report file."""
        return {
            "first_offset": self.first_offset,
            "next_offset": self.next_offset,
            "records": self.records,
            "cause": self.cause,
            "detail": self.detail,
            "quarantined": self.quarantined,
        }


@dataclass(frozen=True, slots=True)
class RoutedRecords:
    """Records of a source partition that a transform has sent to another target partition than its own."""

    target: TopicPartition
    target_first: int
    target_next: int
    records: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {
            "topic": self.target.topic,
            "partition": self.target.partition,
            "target_first": self.target_first,
            "target_next": self.target_next,
            "records": self.records,
        }


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """What became of one partition: source [start, source_next) read, target [target_first, target_next) written."""

    source: TopicPartition
    target: TopicPartition
    start: int
    end: int
    #: The source offset to resume from: all before it is acknowledged on the target, or rightly dropped.
    source_next: int
    target_first: int
    target_next: int
    records: int
    bytes: int
    batches: int
    #: Epoch milliseconds, None when no record was copied.
    first_timestamp: int | None
    last_timestamp: int | None
    seconds: float
    #: Where each span of records went; sums to `records` and `recovered`, but for records that a transform has sent
    #: elsewhere, or has made of others.
    runs: tuple[OffsetRun, ...]
    #: Whether `source_next` and `target_next` are known for certain: False when an answer of the target was lost.
    certain: bool = True
    error: MirrorError | None = None
    #: The writer's identity in the end; None when it never got one.
    producer_id: int | None = None
    epoch: int | None = None
    #: The source's leader epoch of the last copied batch.
    leader_epoch: int | None = None
    #: A record of the source before `source_next`, by which its log can be known again.
    last_record: LastRecord | None = None
    #: Records of earlier attempts that were found on the target; `runs` covers them, `records` does not.
    recovered: int = 0
    poison: tuple[Poison, ...] = ()
    #: What of `records` and `recovered` a transform has sent elsewhere.
    routed: tuple[RoutedRecords, ...] = ()

    @property
    def complete(self) -> bool:
        """Everything that was planned is on the target."""
        return self.error is None and self.source_next >= self.end

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {
            "topic": self.source.topic,
            "partition": self.source.partition,
            "target_topic": self.target.topic,
            "start": self.start,
            "end": self.end,
            "source_next": self.source_next,
            "target_first": self.target_first,
            "target_next": self.target_next,
            "records": self.records,
            "bytes": self.bytes,
            "batches": self.batches,
            "recovered": self.recovered,
            "left_out": sum(poison.records or 1 for poison in self.poison),
            "poison": [poison.to_dict() for poison in self.poison],
            "routed": [each.to_dict() for each in self.routed],
            "seconds": round(self.seconds, 3),
            "error": self.error.attributes() if self.error else None,
        }
