"""Where the rows of a source partition go, and whose they are: values that the two threads of a writing half share.

numpy and Arrow are not for the copy task: nothing that it imports may import this.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mirror_lib.cluster.positions import Route
from mirror_lib.relay.model import OpenPartition
from mirror_lib.relay.partition_copy import PartitionCopy
from mirror_lib.relay.transformed.outgoing import OutgoingBatches
from mirror_lib.relay.transformed.tail import Tail
from mirror_lib.relay.transformed.transactions import Transaction
from mirror_lib.topology.names import TopicPartition


@dataclass(slots=True, eq=False)
class Outlet:
    """One target partition as a place for rows of one source partition."""

    #: Used by the event loop alone once rows come.
    copy: PartitionCopy
    #: As the tail, used by the rows' thread alone.
    batches: OutgoingBatches
    #: What an interrupted run has written there, as long as not all of it was found again.
    tail: Tail | None = None
    #: Where copying was to begin by what is stored: what was found must reach it.
    known_to: int = 0


@dataclass(slots=True, eq=False)
class Sluice:
    """A source partition of the bin, and where its rows go: its own target partition, and those that are named."""

    #: As it was claimed.
    opened: OpenPartition
    main: Outlet
    routed: dict[TopicPartition, Outlet] = field(default_factory=dict)
    #: Where each of `routed` was first written for this claim, or for the one that it took over.
    routes: tuple[Route, ...] = ()
    #: What its rows are written in; None where they are in no transaction.
    transaction: Transaction | None = None
    #: In a transaction: rows of records before this offset are on the target already.
    start: int = 0
    #: It has ended for another reason than that its source was not read further.
    broken: bool = False

    @property
    def outlets(self) -> tuple[Outlet, ...]:
        """All of them, its own first."""
        return (self.main, *self.routed.values())

    @property
    def failed(self) -> bool:
        """Whether nothing more is written for it."""
        return any(outlet.copy.error is not None for outlet in self.outlets)
