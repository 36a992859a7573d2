"""What a verification compares, from facts to plan to the job of its tasks: everything here pickles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from mirror_lib.features.transforms.model import TransformChain
from mirror_lib.features.verify.findings import PartitionVerdict, VerifiedMark
from mirror_lib.ledger.directions import MapPart
from mirror_lib.offsets.runs import OffsetRun, decode, encode
from mirror_lib.topology.names import FlowId, TopicPartition

if TYPE_CHECKING:
    from mirror_lib.cluster.connection import Connection

#: In place of a span: the records went to a place that is not compared this time.
NOT_COMPARED = -1
#: In place of a span: by the ledger, none of these records were sent there.
UNEXPECTED = -2


class Share(NamedTuple):
    """Offsets [source_first, source_next) of a source partition."""

    source: TopicPartition
    source_first: int
    source_next: int


@dataclass(frozen=True, slots=True)
class RoutedSpan:
    """The records that transforms send of some shares to [target_first, target_next) of a target partition.

    Attributes:
        number: distinguishes the spans of one target partition.
        records: that the runs wrote there.
    """

    number: int
    target_first: int
    target_next: int
    shares: tuple[Share, ...]
    records: int = 0


class Obstacle(NamedTuple):
    """Why a part of a target partition cannot be verified.

    Attributes:
        reason: a stable code.
        lasting: True if this will be the same the next time.
    """

    reason: str
    detail: str
    lasting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedCheck:
    """The part of a target partition that is compared with the records that transforms send there.

    Attributes:
        spans: to compare.
        sources: all partitions whose records went there.
        outside: target offsets [first, next) where the flow that owns the partition wrote nothing.
        log_end: nothing is read from here on.
        timed: False if timestamps do not count: a broker may have replaced them.
        source_compacted: True if compaction may have removed records of a source since they were copied.
        target_compacted: True if compaction may have removed them here.
        expired: records of spans that one side no longer holds.
    """

    target: TopicPartition
    spans: tuple[RoutedSpan, ...] = ()
    sources: tuple[TopicPartition, ...] = ()
    outside: tuple[tuple[int, int], ...] = ()
    log_end: int = 0
    timed: bool = True
    source_compacted: bool = False
    target_compacted: bool = False
    expired: int = 0
    obstacles: tuple[Obstacle, ...] = ()


class KnownRoute(NamedTuple):
    """The ledger's account of where the records of a share went: to `target`, as part of a span."""

    share: Share
    target: TopicPartition
    #: Or `NOT_COMPARED`.
    span: int


@dataclass(frozen=True, slots=True)
class RoutedPlan:
    """Everything that is compared of what transforms send to other partitions.

    Attributes:
        covered: source offsets whose target partitions the ledger knows completely.
    """

    checks: tuple[RoutedCheck, ...] = ()
    known: tuple[KnownRoute, ...] = ()
    covered: tuple[Share, ...] = ()


NOTHING_ROUTED = RoutedPlan()


NO_CHAIN = TransformChain()


class VerifyMode(StrEnum):
    """Which part of a partition is compared."""

    #: Everything that both sides still hold and the map covers.
    FULL = "full"
    #: Random spans of it.
    SAMPLE = "sample"
    #: What was added since the last verification that found all equal.
    RECENT = "recent"
    #: The newest record of each key of compacted topics, whatever compaction has removed.
    STATE = "state"


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds of one verification over all partitions; None is no bound."""

    #: Of the source's log as it is read, compressed.
    max_bytes: int | None = None
    max_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class KnownGap:
    """Source offsets [first_offset, next_offset) that, by the ledger, are missing or different on the target."""

    first_offset: int
    next_offset: int
    #: As `ledger.rows.GapRow.cause`.
    cause: str

    @property
    def rewritten(self) -> bool:
        """Return True if the source itself has other records there now than those that were copied."""
        return self.cause in ("source-truncated", "source-recreated")


@dataclass(frozen=True, slots=True)
class OppositeFacts:
    """Facts about what the opposite flow copied, before a hand-over inverted its map."""

    #: See `VerifyFacts`, seen from that flow: offsets of this flow's target.
    known_gaps: tuple[KnownGap, ...] = ()
    #: See `VerifyFacts`: other sources go into the partition of this flow's source too.
    shared_target: bool = False


NO_OPPOSITE = OppositeFacts()


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyFacts:
    """The facts of the ledger and both clusters about one partition, before anything of it is read."""

    source: TopicPartition
    target: TopicPartition
    #: The exact map, ascending on both sides.
    runs: tuple[OffsetRun, ...]
    source_start: int
    #: Where a reader of the flow's isolation level would stop.
    source_end: int
    target_start: int
    target_end: int
    #: Source offset to copy next and target offset expected next, when no run was writing; None while one may be.
    settled: VerifiedMark | None = None
    #: True if `cleanup.policy` of the topic contains `compact`.
    source_compacted: bool = False
    target_compacted: bool = False
    #: Bytes of the source's partition on disk, None where the cluster does not say.
    source_bytes: int | None = None
    verified: VerifiedMark | None = None
    known_gaps: tuple[KnownGap, ...] = ()
    #: Target offsets [first, next) of records that, by the ledger, never were on the source.
    known_foreign: Sequence[tuple[int, int]] = ()
    #: Other source partitions (a merge) or a backfill write into this target partition too: records that are not in the
    #: map may be theirs.
    shared_target: bool = False
    #: Transforms of the records; empty where they are copied unchanged.
    chain: TransformChain = field(default=NO_CHAIN, repr=False)
    #: Source offsets below it are copied, as the position said before the target's end was read; None where there is no
    #: position.
    copied_to: int | None = None
    #: True if a first start may skip records: `mirror.first.start` of the topic is not `earliest`.
    starts_late: bool = False
    #: Which of both flows copied what; empty where only this one did.
    parts: tuple[MapPart, ...] = ()
    opposite: OppositeFacts = NO_OPPOSITE


@dataclass(frozen=True, slots=True)
class StateCheck:
    """What comparing a partition by state needs besides its range."""

    #: As in `VerifyFacts`.
    copied_to: int
    #: True if no run was writing when the position was read.
    settled: bool
    #: True if the flow was to skip what the source had before its first start.
    starts_late: bool = False
    #: Target offsets that the opposite flow has copied, as `offsets.runs.encode` gives their inverse map.
    by_opposite: bytes = encode(())


@dataclass(frozen=True, slots=True)
class CheckRange:
    """A span to compare: source [source_first, source_next) with target [target_first, target_next)."""

    source_first: int
    source_next: int
    target_first: int
    target_next: int
    #: Records that the map places there.
    records: int
    #: The map of the span as `offsets.runs.encode` gives it.
    encoded_runs: bytes
    estimated_bytes: int = 0
    #: Nothing may follow on the target: the range ends with the log, and no run was writing.
    to_end: bool = False
    #: It is read only for what transforms send to other partitions.
    routed_only: bool = False
    #: The opposite flow has copied it: see `verify.compare.inverted`.
    by_opposite: bool = False
    #: Target offsets before it that the map does not name and that the target has deleted: records that the map lacks
    #: may have been there.
    unknown_deleted: int = 0

    @property
    def runs(self) -> tuple[OffsetRun, ...]:
        """The map of the span."""
        return decode(self.encoded_runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCheck:
    """One partition's share of a verification."""

    source: TopicPartition
    target: TopicPartition
    ranges: tuple[CheckRange, ...]
    #: The target's end when this was planned; nothing after it is read.
    target_end: int
    source_compacted: bool = False
    target_compacted: bool = False
    shared_target: bool = False
    known_gaps: tuple[KnownGap, ...] = ()
    #: As in `VerifyFacts`.
    known_foreign: tuple[tuple[int, int], ...] = ()
    #: As in `VerifyFacts`.
    opposite: OppositeFacts = NO_OPPOSITE
    #: Records of the map that are below the log start of one side.
    expired: int = 0
    #: Held source offsets before the map's first: copied before there was a map, or never.
    offsets_before_map: int = 0
    #: Records of the map that both sides hold; what a sample is taken from.
    population: int = 0
    #: Applied to the source again before the comparison; empty where records are copied unchanged.
    chain: TransformChain = field(default=NO_CHAIN, repr=False)
    #: One source record may become several on the target.
    several: bool = False
    #: It has no map, which is right as long as nothing is copied: the source holds no record for readers, or transforms
    #: drop them all.
    nothing_copied: bool = False
    #: Set where keys are compared by their newest records, None where records are compared in order.
    state: StateCheck | None = None

    @property
    def routed_only(self) -> bool:
        """Return True if nothing of its own target is compared."""
        return all(each.routed_only for each in self.ranges)

    @property
    def records(self) -> int:
        """Records to compare, by the map."""
        return sum(each.records for each in self.ranges)

    @property
    def estimated_bytes(self) -> int:
        """Bytes of the source's log to read; 0 where the cluster does not say."""
        return sum(each.estimated_bytes for each in self.ranges)

    @property
    def weight(self) -> int:
        """The weight for balancing bins: bytes, or records where bytes are unknown."""
        return max(self.estimated_bytes, self.records)


NO_COPIES: Mapping[TopicPartition, str | None] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class VerifyPlan:
    """What a verification will read: printable, comparable, and computed without requests."""

    flow: FlowId
    mode: VerifyMode
    budget: Budget
    seed: int
    #: Each bin is one task.
    bins: tuple[tuple[PartitionCheck, ...], ...]
    #: Partitions that cannot be verified, each with its reason.
    unverifiable: tuple[PartitionVerdict, ...] = ()
    #: Partitions with nothing to compare.
    idle: int = 0
    #: Those of them that were found equal up to the end of the copy, which is where it still ends.
    confirmed: tuple[PartitionVerdict, ...] = ()
    #: What transforms send to partitions other than the source partition's own.
    routed: RoutedPlan = NOTHING_ROUTED
    #: Which copy of each partition is compared, as in its position.
    copies: Mapping[TopicPartition, str | None] = field(default_factory=dict)

    @property
    def partitions(self) -> tuple[PartitionCheck, ...]:
        """All partitions to compare, bin by bin."""
        return tuple(check for bin_ in self.bins for check in bin_)

    @property
    def estimated_bytes(self) -> int:
        """Bytes of the source's logs to read; a lower bound where some sizes are unknown."""
        return sum(check.estimated_bytes for check in self.partitions)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {
            "flow": str(self.flow),
            "mode": self.mode.value,
            "seed": self.seed,
            "tasks": len(self.bins),
            "idle_partitions": self.idle,
            "estimated_bytes": self.estimated_bytes,
            "partitions": [
                {
                    "topic": check.source.topic,
                    "partition": check.source.partition,
                    "target_topic": check.target.topic,
                    "ranges": [[each.source_first, each.source_next] for each in check.ranges],
                    "transforms": list(check.chain.names),
                    "records": check.records,
                    "estimated_bytes": check.estimated_bytes,
                }
                for check in self.partitions
            ],
            "routed": [
                {
                    "topic": check.target.topic,
                    "partition": check.target.partition,
                    "ranges": [[each.target_first, each.target_next] for each in check.spans],
                    "records": sum(each.records for each in check.spans),
                    "obstacles": [each.reason for each in check.obstacles],
                }
                for check in self.routed.checks
            ],
        }


@dataclass(frozen=True, slots=True)
class VerifyJob:
    """All that a task needs. Holds credentials in its connections: never log it."""

    flow: FlowId
    source: Connection = field(repr=False)
    target: Connection = field(repr=False)
    read_committed: bool
    bins: tuple[tuple[PartitionCheck, ...], ...]
    #: Bytes of the source's log that each task may read; None is no bound.
    bin_max_bytes: int | None = None
    #: Epoch seconds after which nothing more is read; None is no bound.
    ends_at: float | None = None
    retry_seconds: float = 120.0
    memory_bytes: int = 96 * 1024 * 1024
    #: Maximum time until Spark gives the job its first executor; 0: no limit.
    executor_wait_seconds: float = 600.0
    #: Differences of a partition that are kept; all are counted.
    keep_differences: int = 20
    routed: RoutedPlan = NOTHING_ROUTED
    #: Key of the digests of records of routed partitions, and of keys in a comparison by state.
    digest_key: bytes = field(default=b"", repr=False)
