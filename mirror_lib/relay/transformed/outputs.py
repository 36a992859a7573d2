"""Where the rows of a source partition go, and whose they are: values that the two threads of a writing half share.

The positions of such a partition, which name all the places of its rows, are made here too.

numpy and Arrow are not for the copy task: nothing that it imports may import this.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mirror_lib.cluster.topics import Position, Route
from mirror_lib.relay.copy import PartitionCopy, open_position, open_position_of
from mirror_lib.relay.model import CopyJob, OpenPartition
from mirror_lib.relay.transformed.batch_builder import OutgoingBatches
from mirror_lib.relay.transformed.row_match import Tail
from mirror_lib.relay.transformed.transactions import Transaction
from mirror_lib.topology import TopicPartition

_log = logging.getLogger(__name__)
#: Of the offset map in a position; they take two or three bytes each, and a record a megabyte.
_MOST_RUNS = 100_000


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
class Output:
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

    def declared(self, run_id: str) -> Position:
        """The position that claims it, by who writes now: the pair of offsets behind which nothing is certain.

        Args:
            run_id: of the run that writes.
        """
        now = self.main.copy.opened
        return replace(open_position(self.opened, run_id), producer_id=now.producer_id, epoch=now.epoch)

    def committed(self, job: CopyJob, source_next: int, ends: Mapping[TopicPartition, int]) -> Position:
        """How far it is once the transaction is committed.

        Args:
            job: that it is a part of.
            source_next: all rows of source records before this offset are in the transaction or in earlier ones.
            ends: the offset behind the transaction, by target partition; without those that it does not write to.
        """
        copy = self.main.copy
        known = open_position_of(copy, job.run_id)
        few = copy.run_count <= _MOST_RUNS
        if not few:
            _log.warning(
                "flow %s: the offset map of %s has %d spans by now, which would be lost if this run were "
                "interrupted: no position can hold them",
                job.flow,
                copy.source,
                copy.run_count,
            )
        return replace(
            known,
            offset=source_next - 1,
            target_offset=ends.get(copy.target, copy.target_next),
            routes=self.routes,
            runs=known.runs if few else (),
        )
