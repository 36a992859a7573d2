"""What a verification is told of records that transforms send to other partitions than their source partition's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mirror_lib.topology.names import TopicPartition

#: In place of a stretch: where records went that are not compared this time.
NOT_COMPARED = -1
#: In place of a stretch: records of which the ledger knows that nothing of theirs was sent there.
UNEXPECTED = -2


class Share(NamedTuple):
    """Offsets [source_first, source_next) of a source partition."""

    source: TopicPartition
    source_first: int
    source_next: int


@dataclass(frozen=True, slots=True)
class RoutedStretch:
    """What stands in [target_first, target_next) of a target partition is what transforms send there of some shares.

    Attributes:
        number: tells the stretches of one target partition apart.
        records: that were written there, by the account of the runs.
    """

    number: int
    target_first: int
    target_next: int
    shares: tuple[Share, ...]
    records: int = 0


class Obstacle(NamedTuple):
    """Why something of a target partition cannot be verified.

    Attributes:
        reason: a stable code.
        lasting: whether it will still be so the next time.
    """

    reason: str
    detail: str
    lasting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedCheck:
    """What of a target partition is compared with what transforms send there again.

    Attributes:
        stretches: to compare.
        sources: all whose records went there.
        outside: target offsets [first, next) where nothing was written by the flow, to which the partition belongs.
        log_end: nothing is read from here on.
        timed: whether timestamps count: a broker may have put its own in their place.
        source_compacted: whether compaction may have removed records of a source since they were copied.
        target_compacted: whether compaction may have removed them here.
        expired: records of stretches that one side does not hold any more.
    """

    target: TopicPartition
    stretches: tuple[RoutedStretch, ...] = ()
    sources: tuple[TopicPartition, ...] = ()
    outside: tuple[tuple[int, int], ...] = ()
    log_end: int = 0
    timed: bool = True
    source_compacted: bool = False
    target_compacted: bool = False
    expired: int = 0
    obstacles: tuple[Obstacle, ...] = ()


class KnownRoute(NamedTuple):
    """What the ledger knows of where the records of a share went: to `target`, as part of a stretch."""

    share: Share
    target: TopicPartition
    #: Or `NOT_COMPARED`.
    stretch: int


@dataclass(frozen=True, slots=True)
class RoutedPlan:
    """All that is to be compared of what transforms send elsewhere.

    Attributes:
        covered: of which the ledger knows all target partitions that anything was sent to.
    """

    checks: tuple[RoutedCheck, ...] = ()
    known: tuple[KnownRoute, ...] = ()
    covered: tuple[Share, ...] = ()


NOTHING_ROUTED = RoutedPlan()
