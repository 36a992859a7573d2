"""What the tasks of a verification collect about routed records: sums, never the records."""

from __future__ import annotations

from dataclasses import dataclass, field

from mirror_lib.errors import MirrorError
from mirror_lib.features.verify.findings import Stopped
from mirror_lib.features.verify.model import Share
from mirror_lib.features.verify.routed.multiset import Multiset
from mirror_lib.topology.names import TopicPartition

#: A target partition and the number of a span of it.
Place = tuple[TopicPartition, int]


@dataclass(slots=True)
class RoutedFindings:
    """What the source makes for other partitions.

    Attributes:
        made: by destination; `UNEXPECTED` in place of a span for records that the ledger does not expect there.
        doubtful: what may be missing there, of records that the ledger names as skipped; not in `made`.
        unknown: number of records for target partitions where the ledger does not know their route.
        senders: target partitions with source partitions that send records there unknown to the ledger.
        read: source offsets [first, next) of each source partition that are included completely.
        errors: that ended the reading of a source partition.
        stopped: the budget that ended it.
    """

    made: dict[Place, Multiset] = field(default_factory=dict)
    doubtful: dict[Place, Multiset] = field(default_factory=dict)
    unknown: dict[Place, int] = field(default_factory=dict)
    senders: set[tuple[TopicPartition, TopicPartition]] = field(default_factory=set)
    read: dict[TopicPartition, list[tuple[int, int]]] = field(default_factory=dict)
    errors: dict[TopicPartition, MirrorError] = field(default_factory=dict)
    stopped: dict[TopicPartition, Stopped] = field(default_factory=dict)

    def take(self, other: RoutedFindings) -> None:
        """Add the findings of another task."""
        for mine, theirs in ((self.made, other.made), (self.doubtful, other.doubtful)):
            for place, multiset in theirs.items():
                mine[place] = mine[place].plus(multiset) if place in mine else multiset
        for place, count in other.unknown.items():
            self.unknown[place] = self.unknown.get(place, 0) + count
        self.senders |= other.senders
        for source, ranges in other.read.items():
            self.read.setdefault(source, []).extend(ranges)
        self.errors.update(other.errors)
        self.stopped.update(other.stopped)

    def has_read(self, share: Share) -> bool:
        """Return True if all of a share is included."""
        reached = share.source_first
        for first, following in sorted(self.read.get(share.source, ())):
            if first > reached:
                break
            reached = max(reached, following)
        return reached >= share.source_next


@dataclass(frozen=True, slots=True)
class TargetDigests:
    """What a target partition holds.

    Attributes:
        multisets: multiset digests by the number of the span.
        unexpected: unexpected records, where the flow has written nothing, and the offsets of the first of them.
        times_replaced: True if the broker replaced timestamps that count.
        log_start: where retention moved the start of the log during reading; 0: nowhere.
        stopped: True if the budget of seconds was used up before all was read.
        places: offsets of searched records, by span and digest, ascending.
    """

    target: TopicPartition
    multisets: dict[int, Multiset] = field(default_factory=dict)
    unexpected: int = 0
    unexpected_offsets: tuple[int, ...] = ()
    times_replaced: bool = False
    log_start: int = 0
    read_bytes: int = 0
    stopped: bool = False
    error: MirrorError | None = None
    places: dict[tuple[int, bytes], tuple[int, ...]] = field(default_factory=dict)
