"""Target partitions for the rows of a source partition: values that the two threads of a writing half share.

The positions of such a partition, which name all its target partitions, are made here too.

The copy task must not load numpy and Arrow: no module that it imports may import this one.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mirror_lib.cluster.topics.position_format import Position, Route
from mirror_lib.copy.transfer.open_positions import open_position, open_position_of
from mirror_lib.copy.transfer.partition_progress import PartitionCopy
from mirror_lib.features.transforms.copy.batch_builder import OutgoingBatches
from mirror_lib.features.transforms.copy.row_match import Tail
from mirror_lib.features.transforms.copy.transactions import Transaction
from mirror_lib.planning.model import CopyJob, OpenPartition
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)
#: Maximum number of offset map runs in a position; they take two or three bytes each, and a record a megabyte.
_MOST_RUNS = 100_000


@dataclass(slots=True, eq=False)
class PartitionSink:
    """One target partition for rows of one source partition."""

    #: Used only by the event loop once rows come.
    copy: PartitionCopy
    #: Like the tail, used only by the rows' thread.
    batches: OutgoingBatches
    #: The rows of an interrupted run, until all of them are found again.
    tail: Tail | None = None
    #: Source offset at which the stored position starts the copy: the rows found must reach it.
    known_to: int = 0


@dataclass(slots=True, eq=False)
class Output:
    """A source partition of the bin, and its target partitions: its own one and routed ones."""

    #: The partition as it was claimed.
    opened: OpenPartition
    main: PartitionSink
    routed: dict[TopicPartition, PartitionSink] = field(default_factory=dict)
    #: First offset written in each of `routed` for this claim, or for the one that it took over.
    routes: tuple[Route, ...] = ()
    #: The transaction of its rows; None if they are written without one.
    transaction: Transaction | None = None
    #: With a transaction: rows of records before this offset are on the target already.
    start: int = 0
    #: Whether it has ended for another reason than the end of reading its source.
    broken: bool = False

    @property
    def sinks(self) -> tuple[PartitionSink, ...]:
        """All sinks, its own first."""
        return (self.main, *self.routed.values())

    @property
    def has_failed(self) -> bool:
        """True if nothing more is written for it."""
        return any(sink.copy.error is not None for sink in self.sinks)

    def claim_position(self, run_id: str) -> Position:
        """The position that claims it, with the present writer: the pair of offsets after which nothing is certain.

        Args:
            run_id: id of the run that writes.
        """
        now = self.main.copy.opened
        return replace(open_position(self.opened, run_id), producer_id=now.producer_id, epoch=now.epoch)

    def committed_position(self, job: CopyJob, source_next: int, ends: Mapping[TopicPartition, int]) -> Position:
        """The position once the transaction is committed.

        Args:
            job: the job of this output.
            source_next: all rows of source records before this offset are in the transaction or in earlier ones.
            ends: log end offset after the transaction, by target partition to which it writes.
        """
        copy = self.main.copy
        known = open_position_of(copy, job.run_id)
        few = copy.run_count <= _MOST_RUNS
        if not few:
            _log.warning(
                "flow %s: the offset map of %s has %d spans; they would be lost if this run were interrupted, "
                "because they do not fit into a position",
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
