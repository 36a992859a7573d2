"""The values that are passed between plan, copy and commit: all of them can be pickled and printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.open_transactions import HiddenRecords
from mirror_lib.cluster.topics.position_format import SOURCE_CONNECTOR, ClusterPair, OmittedRange, Position, Route
from mirror_lib.config.copy_settings import CopySettings
from mirror_lib.errors import MirrorError
from mirror_lib.identity.histories import SOUND_HISTORY, History
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.records.last_records import LastRecord
from mirror_lib.records.rules import ANY_RECORD, RecordRules
from mirror_lib.records.transactions import TransactionCount
from mirror_lib.topology.names import FlowId, TopicPartition

if TYPE_CHECKING:
    # Copy tasks import this module.
    from mirror_lib.config.data_plane import TopicChain
    from mirror_lib.identity.targets import CopiedTo, TargetPartition
    from mirror_lib.identity.unselected import Unselected
    from mirror_lib.past_runs.costs import Expectation
    from mirror_lib.planning.record_paths import TopicPath


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """The facts of one source partition, from both clusters and the position topic."""

    source: TopicPartition
    target: TopicPartition
    #: First offset that the source still has.
    log_start: int
    #: The end for a consumer with the flow's isolation level: high watermark or last stable offset.
    log_end: int
    #: None if the cluster has no topic ids (KIP-516, Kafka 2.8).
    topic_id: str | None
    #: The offset to copy next, None if nothing is known to have been copied.
    position: int | None
    #: The source topic's id when the position was written, None if unknown (MM2 does not store it).
    position_topic_id: str | None
    #: Bytes of the whole partition on disk, None if the cluster does not report it.
    log_bytes: int | None
    #: Largest batch the target topic accepts.
    target_max_message_bytes: int
    #: The source's leader epoch of the last copied batch, None if unknown.
    position_leader_epoch: int | None = None
    #: The current end of that epoch in the source's log (KIP-320); None if not requested or not reported.
    leader_epoch_end: int | None = None
    #: The record before the position that it describes, None if it describes none.
    last_record: LastRecord | None = None
    #: Whether the source still has that record; None if not requested or unknown.
    last_record_same: bool | None = None
    #: The same for the target: a copied record there, and whether it is still there.
    target_record: LastRecord | None = None
    target_record_same: bool | None = None
    #: The start offset of a first start by time, None for other first starts.
    first_offset: int | None = None
    #: An operator has stopped the replication of this partition.
    stopped: bool = False
    #: Log end offset of the source when it was found to be before this position, until an operator has decided.
    truncated_to: int | None = None
    #: Of a source that lost copied records: only its records before this offset are known to be those that were copied;
    #: None if that was not asked.
    same_to: int | None = None
    #: Further rules of the target topic for records.
    target_rules: RecordRules = ANY_RECORD
    #: The run that stored the position has not closed it: its results may not be in the ledger yet.
    interrupted: bool = False
    #: The target partition now; None if not requested.
    target_now: TargetPartition | None = None
    #: Where the copied records are by the position; None if it does not say.
    copied_to: CopiedTo | None = None
    #: The ids of both clusters; None if one of them reports no id.
    clusters: ClusterPair | None = None
    #: Number of partitions of the topic when it was first copied; None if unknown.
    first_partitions: int | None = None
    #: The topic was created after the flow's last run.
    is_new: bool = False
    #: By the ledger a run has begun the partition at its beginning, and copied nothing: only its position is lost.
    was_begun: bool = False
    #: As in the position.
    caught_up_at: int | None = None
    #: Epoch milliseconds, right before `log_end` was requested; None if it was not.
    asked_at: int | None = None
    #: An operator has altered the position in Connect's form, and no run has stored it since.
    altered: bool = False
    #: Records after `log_end` that open transactions hide and that are not copied; None if there are none.
    hidden: HiddenRecords | None = None
    #: As in the position: the copy that it belongs to.
    copy: str | None = None
    #: Whether the ledger has the history of the position.
    history: History = SOUND_HISTORY

    @property
    def high_watermark(self) -> int:
        """The end of the log for consumers of all records: lag is measured against it."""
        return self.log_end if self.hidden is None else max(self.hidden.end, self.log_end)

    @property
    def was_added(self) -> bool:
        """True if the partition was added to a topic that was copied already."""
        return self.first_partitions is not None and self.source.partition >= self.first_partitions


#: If the cluster does not report the sizes of its logs.
ASSUMED_BYTES_PER_OFFSET = 1024


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """One partition's share of a run: copy [start, end) of the source, in order."""

    source: TopicPartition
    target: TopicPartition
    start: int
    end: int
    topic_id: str | None
    target_max_message_bytes: int
    #: Estimated from the log's size; 0 if the cluster does not report it.
    estimated_bytes: int
    #: The source's leader epoch of the last record before `start`, None if unknown.
    leader_epoch: int | None = None
    #: A record of the source before `start` that identifies its log, and a copied one of the target.
    last_record: LastRecord | None = None
    target_record: LastRecord | None = None
    #: Further rules of the target topic for records.
    target_rules: RecordRules = ANY_RECORD
    #: None before Kafka 2.8, or if the topic does not exist yet.
    target_topic_id: str | None = None
    clusters: ClusterPair | None = None
    #: Number of partitions of the topic when it was first copied.
    first_partitions: int | None = None
    #: Log end offset of the source, and the time of that request (epoch milliseconds); None in a backfill.
    log_end: int | None = None
    asked_at: int | None = None
    #: Epoch milliseconds: when the copy was last at the end of the log, or begins; None if unknown.
    caught_up_at: int | None = None
    #: As in the position: the copy that is continued.
    copy: str | None = None
    #: The count of records of transactions that earlier runs have copied; None if there are none.
    transactions: TransactionCount | None = None

    def with_identity(self, position: Position) -> Position:
        """A position of the partition with its identity: target topic, clusters, partitions at the first copy.

        It also has the time since which deletions may be pending: only a copy up to the log's end moves that time.
        """
        caught_up = self.log_end is not None and position.offset + 1 >= self.log_end
        return replace(
            position,
            target_topic=self.target.topic,
            target_topic_id=self.target_topic_id,
            clusters=self.clusters,
            first_partitions=self.first_partitions,
            caught_up_at=self.asked_at if caught_up else self.caught_up_at,
            copy=self.copy,
        )

    @property
    def weight(self) -> int:
        """The weight for balancing bins: bytes, or offsets if bytes are unknown."""
        return max(self.estimated_bytes, self.end - self.start)


#: Placeholder for the partition if a problem concerns a whole topic.
WHOLE_TOPIC = -1


@dataclass(frozen=True, slots=True)
class SourceLoss:
    """Source records [first_offset, next_offset) that the target cannot get, or has in an earlier version.

    The range is empty if it is unknown what was lost.
    """

    first_offset: int
    next_offset: int
    #: The source topic's id now.
    topic_id: str | None


@dataclass(frozen=True, slots=True)
class PartitionProblem:
    """A partition that this run does not copy, and why."""

    #: Its partition is `WHOLE_TOPIC` if not even the partitions of the topic are known.
    source: TopicPartition
    error: MirrorError
    #: What the source has lost, if that is the problem: an operator has to decide about it.
    loss: SourceLoss | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output and the report file."""
        return {"topic": self.source.topic, "partition": self.source.partition, **self.error.attributes()}


@dataclass(frozen=True, slots=True)
class HotPartition:
    """A target partition with more records than a task's fair share; it has one writer, which prevents a split."""

    #: The source partition with the most records; in a merge there are others.
    source: TopicPartition
    #: Bytes, or offsets if bytes are unknown.
    weight: int
    #: Weight per task if everything could be split evenly.
    fair_share: int
    tasks: int
    #: Whether `weight` and `fair_share` are bytes.
    in_bytes: bool

    @property
    def times_fair_share(self) -> float:
        """The weight as a multiple of a task's fair share."""
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
    """Records of a partition that no run can copy before a transaction on the source has ended."""

    #: From the first offset that is not copied to the high watermark.
    plan: PartitionPlan
    records: HiddenRecords
    #: True if there is nothing to copy before them.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedTransactions:
    """Records of transactions that ended without a commit, or had not ended, on the target of a topic."""

    topic: str
    aborted: int = 0
    undecided: int = 0
    uncounted: int = 0
    #: The open transactions: source partition, producer id, first source offset, records.
    open: tuple[tuple[TopicPartition, int, int, int], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {
            "topic": self.topic,
            "aborted": self.aborted,
            "undecided": self.undecided,
            "uncounted": self.uncounted,
            "open": [
                {"partition": place.partition, "producer_id": producer, "first_offset": first, "records": records}
                for place, producer, first, records in self.open
            ],
        }


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The plan of one round of a flow: printable, comparable, and computed without requests."""

    flow: FlowId
    #: Each bin is one Spark task; a partition is in exactly one.
    bins: tuple[tuple[PartitionPlan, ...], ...]
    problems: tuple[PartitionProblem, ...]
    #: Partitions with nothing to copy.
    idle: int
    #: Partitions without a position that have nothing to copy: only their start is stored.
    first_seen: tuple[PartitionPlan, ...] = ()
    #: Partitions with nothing to copy whose positions do not name target topic and clusters yet, or were altered.
    unnamed: tuple[PartitionPlan, ...] = ()
    #: Number of partitions that an operator has stopped.
    stopped: int = 0
    #: Warnings about records that target topics may refuse, and about partitions for which the run waits.
    warnings: tuple[str, ...] = ()
    #: Those of the warnings that are about records which target topics refuse, alter or delete early.
    limits: tuple[str, ...] = ()
    #: Those about records of other producers on the target.
    foreign: tuple[str, ...] = ()
    #: Partitions with more than a task's fair share, heaviest first.
    hot: tuple[HotPartition, ...] = ()
    #: Expected cost of a round of this plan, by earlier rounds of the flow; None if the ledger was not queried.
    expected: Expectation | None = None
    #: How the records of each topic get to the target; empty if not requested.
    paths: tuple[TopicPath, ...] = ()
    #: Partitions with records that open transactions on the source hide.
    hidden: tuple[HiddenPartition, ...] = ()
    #: Partitions that were copied and are selected no longer, of deleted topics too.
    unselected: tuple[Unselected, ...] = ()
    #: Records of aborted and of open transactions that are on the target, by topic; empty if not requested.
    copied_transactions: tuple[CopiedTransactions, ...] = ()

    @property
    def undecided(self) -> tuple[Unselected, ...]:
        """Those of the unselected partitions that need a decision."""
        return tuple(each for each in self.unselected if each.needs_decision)

    @property
    def hidden_offsets(self) -> int:
        """Offsets of all partitions that open transactions on the source hide."""
        return sum(each.offsets for each in self.hidden)

    @property
    def partitions(self) -> tuple[PartitionPlan, ...]:
        """All partitions to copy, bin by bin."""
        return tuple(partition for bin_ in self.bins for partition in bin_)

    @property
    def estimated_bytes(self) -> int:
        """Sum over the partitions; a lower bound if some sizes are unknown."""
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
            "unselected": [each.to_dict() for each in self.unselected],
            "copied_transactions": [each.to_dict() for each in self.copied_transactions],
            "hot_partitions": [each.to_dict() for each in self.hot],
            "expected": None if self.expected is None else self.expected.to_dict(),
            "paths": [each.to_dict() for each in self.paths],
        }


@dataclass(frozen=True, slots=True)
class Takeover:
    """The end of certainty: an earlier run or attempt may have written after this pair of offsets, and may be alive.

    The copy then starts by fencing that writer and finding the records on the target.
    """

    #: Everything of the source before this offset is on the target, or rightly dropped ...
    source_offset: int
    #: ... before this offset.
    target_offset: int
    #: The earlier writer, None if unknown (MM2, a deleted record).
    producer_id: int | None = None
    epoch: int | None = None
    #: The first offset that the target still has.
    target_log_start: int = 0
    #: Seconds that the earlier writer may be alive if the broker cannot fence it.
    lease_seconds: float = 0.0
    #: Ranges that the earlier writer skipped, by its position; the ledger may not have them. Ascending.
    skipped: tuple[OmittedRange, ...] = ()
    #: Where its records before this pair are, by its position; the ledger may not have them.
    runs: tuple[OffsetRun, ...] = ()
    #: Other target partitions to which it has written after this pair, by its position.
    routes: tuple[Route, ...] = ()
    #: Whether it wrote in transactions: once it is fenced, no committed record follows this pair, or a later pair that
    #: its last transaction has stored.
    in_transactions: bool = False
    #: The writers of markers that may have begun a transaction there (`Position.hole_writers`).
    hole_writers: tuple[int, ...] = ()


class HoleWriter(NamedTuple):
    """The producer of a task's markers with `mirror.offsets = same`."""

    #: Its transactional id is `hole_writer_id` of this number.
    number: int
    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class OpenPartition:
    """A planned partition whose position is open: the writer's identity and the target offset of its first batch."""

    plan: PartitionPlan
    #: None if the target refuses transactional ids (`mirror.fencing=none`).
    transactional_id: str | None
    producer_id: int
    epoch: int
    target_offset: int
    #: Set if the copy task has to find the identity and `target_offset` itself.
    takeover: Takeover | None = None
    #: Whether it has done so.
    taken_over: bool = False
    #: The claim number.
    claim: int = 1
    #: The transactional id whose transactions hold all that is written for it, and its positions; None if it is written
    #: without transactions.
    transactions: str | None = None
    #: Epoch seconds before the writer's identity was requested: another run may have taken over since. 0: unknown.
    claimed_at: float = 0.0
    #: Seconds in which no other run can take over: the lease of the flow's lock.
    lease_seconds: float = 30.0
    #: Only with `mirror.offsets = same`.
    hole_writer: HoleWriter | None = None


@dataclass(frozen=True, slots=True)
class PositionTopic:
    """The topic in which a copy task stores positions while it copies."""

    connection: Connection = field(repr=False)
    topic: str
    source_alias: str
    flush_seconds: float
    #: Connector name of the positions: a backfill has its own.
    connector: str = SOURCE_CONNECTOR


@dataclass(frozen=True, slots=True)
class ProducerMemory:
    """Expiration of producer state on the target's brokers, for producers that write without transactions."""

    #: Seconds since the newest timestamp of its last batch (`producer.id.expiration.ms`); None: for ever.
    seconds: float | None = 86_400.0
    #: Whether they verify each transactional batch with the coordinator (KIP-890, since Kafka 3.6).
    verifies_transactions: bool = False

    def old_before(self, now: float) -> int:
        """Epoch milliseconds; the producer of a batch whose newest timestamp is earlier may be forgotten soon.

        This is half of the expiration time: during the other half a fenced writer is still known.

        Args:
            now: epoch seconds.
        """
        return _NEVER if self.seconds is None else int((now - self.seconds / 2) * 1000)


#: Before all timestamps that Kafka accepts.
_NEVER = -(2**63)


@dataclass(frozen=True, slots=True)
class CopyJob:
    """All that an executor needs. Its connections hold credentials: never log it."""

    flow: FlowId
    run_id: str
    source: Connection = field(repr=False)
    target: Connection = field(repr=False)
    read_committed: bool
    settings: CopySettings
    bins: tuple[tuple[OpenPartition, ...], ...]
    #: None: positions are stored only at the end.
    positions: PositionTopic | None = None
    #: The quarantine topic of that policy.
    quarantine_topic: str = ""
    #: Maximum bytes per second that all tasks together read from the source; None: no limit.
    bytes_per_second: int | None = None
    #: The transforms of source topics that have some; all others are copied unchanged.
    chains: Mapping[str, TopicChain] = field(default_factory=dict, repr=False)
    producer_memory: ProducerMemory = ProducerMemory()


@dataclass(frozen=True, slots=True)
class Poison:
    """Source records [first_offset, next_offset) that could not be copied and that the flow's policy skipped."""

    first_offset: int
    next_offset: int
    #: None if damage hides the number.
    records: int | None
    #: `MirrorError.reason` of their error.
    cause: str
    detail: str
    #: Epoch milliseconds, None if damage hides them.
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
    """The result of one partition: source [start, source_next) read, target [target_first, target_next) written."""

    source: TopicPartition
    target: TopicPartition
    start: int
    end: int
    #: The source offset to resume from: everything before it is acknowledged on the target, or dropped as intended.
    source_next: int
    target_first: int
    target_next: int
    records: int
    bytes: int
    batches: int
    #: Epoch milliseconds, None if no record was copied.
    first_timestamp: int | None
    last_timestamp: int | None
    seconds: float
    #: Target offsets of each span of records; the counts add up to `records` and `recovered`, except for records that a
    #: transform has routed elsewhere or multiplied.
    runs: tuple[OffsetRun, ...]
    #: Whether `source_next` and `target_next` are certain: False if a response of the target was lost.
    certain: bool = True
    error: MirrorError | None = None
    #: The writer's identity at the end; None if it never got one.
    producer_id: int | None = None
    epoch: int | None = None
    #: The source's leader epoch of the last copied batch.
    leader_epoch: int | None = None
    #: A record of the source before `source_next` that identifies its log, and one of the target before `target_next`.
    last_record: LastRecord | None = None
    target_record: LastRecord | None = None
    #: Records of earlier attempts that were found on the target; `runs` covers them, `records` does not.
    recovered: int = 0
    poison: tuple[Poison, ...] = ()
    #: The part of `records` and `recovered` that a transform has routed elsewhere.
    routed: tuple[RoutedRecords, ...] = ()
    #: The count of records of transactions that were copied before `source_next`; None if there is nothing to count, or
    #: they are not counted.
    transactions: TransactionCount | None = None
    #: The part of its aborted records that this run has found to be aborted.
    aborted: int = 0

    @property
    def complete(self) -> bool:
        """True if everything that was planned is on the target."""
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
            "skipped": sum(poison.records or 1 for poison in self.poison),
            "poison": [poison.to_dict() for poison in self.poison],
            "routed": [each.to_dict() for each in self.routed],
            "aborted": self.aborted,
            "undecided": self.transactions.undecided if self.transactions else 0,
            "seconds": round(self.seconds, 3),
            "error": self.error.attributes() if self.error else None,
        }
