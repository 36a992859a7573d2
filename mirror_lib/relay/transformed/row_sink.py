"""The writing half of a transformed copy: rows as they come from Spark to the target, each exactly once.

Batches are sent by the same writer as those of the raw copy (`relay.writing`), so that sequence numbers, expected
offsets and retries are the same.

numpy and Arrow are not for the copy task: nothing that it imports may import this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from mirror_lib.cluster.batches.header import Codec
from mirror_lib.cluster.rows.columns import RowColumns, Slice, by_place
from mirror_lib.cluster.rows.hand_over import HandOver
from mirror_lib.cluster.rows.layout import number_and_codec
from mirror_lib.errors import MirrorError, TargetDivergedError, TargetTruncatedError
from mirror_lib.relay.copy.task import for_attempt
from mirror_lib.relay.model import PartitionResult, RoutedRecords
from mirror_lib.relay.takeover.partition_reader import CHOICES
from mirror_lib.relay.transformed.model import ReadEnd, ReadEnds, RowJob, ends_from_json, first_number
from mirror_lib.relay.transformed.outputs import Outlet, Sluice
from mirror_lib.relay.transformed.record_boundaries import WholeRecords
from mirror_lib.relay.transformed.sink_loop import Sending
from mirror_lib.relay.transformed.transactions import Transaction
from mirror_lib.topology.names import TopicPartition

#: How long a transaction stays open while rows come: readers of committed records see nothing of it for so long, and
#: so much is written again when a run dies.
TRANSACTION_SECONDS = 10.0


def write_bin(job: RowJob, number: int, attempt: int, rows: Iterable[pa.RecordBatch]) -> list[PartitionResult]:
    """Write the rows that are made of bin `number`; a result for each of its partitions.

    Args:
        rows: of `layout.WRITTEN_DDL`; those of each partition in the order of their offsets.

    Raises:
        MirrorError: the rows ended before the source was read to the end, or are not what a transform gives.
    """
    sending = Sending(for_attempt(job.copy, number, attempt), number, exact=job.exact, routes=job.routes)
    writing = _Writing(sending, first_number(job.copy, number))
    try:
        for batch in rows:
            writing.take(by_place(batch, routes=job.routes))
        return writing.results(ends_from_json(HandOver(job.secret, number, attempt).take()))
    except BaseException:
        sending.stop()
        raise


def finish_bin(job: RowJob, number: int, attempt: int) -> list[PartitionResult]:
    """End a bin of which no row is left, all of its source having been read to the end."""
    first = first_number(job.copy, number)
    ends = {at: ReadEnd(opened.plan.end) for at, opened in enumerate(job.copy.bins[number], first)}
    sending = Sending(for_attempt(job.copy, number, attempt), number, exact=job.exact, routes=job.routes)
    return _Writing(sending, first).results(ends)


class _Writing:
    """Everything that happens in the thread of the rows."""

    def __init__(self, sending: Sending, first: int) -> None:
        self._sending = sending
        self._first = first
        self._whole = WholeRecords(lambda number: self._sluice(number).transaction is not None)

    def take(self, slices: Iterable[Slice]) -> None:
        """Take the rows of one batch of Spark's."""
        for each in self._whole.passed(slices):
            self._take(each)
        for transaction in self._sending.due(TRANSACTION_SECONDS):
            self._commit(transaction, self._whole.next_offset)

    def results(self, ends: ReadEnds) -> list[PartitionResult]:
        """End every partition as its reading did, and wait until all is acknowledged."""
        for each in self._whole.rest():
            self._take(each)
        for number, sluice in enumerate(self._sending.sluices, self._first):
            self._finish(sluice, ends[number])
        for transaction in self._sending.transactions:
            self._commit(transaction, lambda number: ends[number].source_next)
        for number, sluice in enumerate(self._sending.sluices, self._first):
            self._sending.end(sluice, ends[number])
        finished = enumerate(self._sending.finish(), self._first)
        return [_result(sluice, ends[number]) for number, sluice in finished]

    def _sluice(self, number: int) -> Sluice:
        return self._sending.sluices[number - self._first]

    def _take(self, rows: Slice) -> None:
        """Take rows of one partition that go to the same one."""
        number, codec = number_and_codec(rows.place)
        sluice = self._sluice(number)
        if sluice.failed:
            return
        columns = rows.rows
        if sluice.transaction is not None:
            # What is before was committed by an earlier attempt, whose job is read again from its beginning.
            columns = columns.part(int(np.searchsorted(columns.offsets, sluice.start)), len(columns))
        if not len(columns):
            return
        try:
            outlet = self._outlet(sluice, rows)
        except MirrorError as error:
            self._sending.fail(sluice, error, certain=all(each.tail is None for each in sluice.outlets))
            return
        self._write(sluice, outlet, columns, codec)

    def _commit(self, transaction: Transaction, source_next_of: Callable[[int], int | None]) -> None:
        """End a transaction: all rows of the source before these offsets have been taken.

        Args:
            source_next_of: given the number of a partition; None where no row of it has come.
        """
        nexts: dict[TopicPartition, int] = {}
        sharing = self._sending.sharing(transaction)
        for number, sluice in enumerate(self._sending.sluices, self._first):
            source_next = source_next_of(number) if sluice.transaction is transaction else None
            if source_next is None:
                continue
            nexts[sluice.opened.plan.source] = max(source_next, sluice.start)
            self._flush(sluice, source_next)
        try:
            self._sending.commit(transaction, nexts)
        except MirrorError as error:
            self._sending.fail(sharing[0], error, certain=False)

    def _flush(self, sluice: Sluice, source_next: int) -> None:
        """Send what waits for more rows."""
        for outlet in sluice.outlets:
            if sluice.failed:
                return
            try:
                for batch in outlet.batches.end(source_next):
                    self._sending.send(sluice, outlet, batch)
            except MirrorError as error:
                self._sending.fail(sluice, error, certain=True)

    def _outlet(self, sluice: Sluice, rows: Slice) -> Outlet:
        main = sluice.main.copy
        topic = main.target.topic if rows.topic is None else rows.topic
        # A partition of another topic is the source's, as one of the remote topic is.
        partition = rows.partition if rows.partition is not None else main.target.partition
        target = TopicPartition(topic, partition)
        return sluice.main if target == main.target else self._sending.route(sluice, target)

    def _write(self, sluice: Sluice, outlet: Outlet, rows: RowColumns, codec: Codec) -> None:
        parts, left_out = outlet.batches.without_too_large(rows, codec)
        try:
            if left_out:
                self._sending.leave_out(outlet, left_out)
        except MirrorError as error:
            self._sending.fail(sluice, error, certain=outlet.tail is None)
        for part in parts:
            rest = self._behind_tail(sluice, outlet, part)
            if rest is None:
                return
            try:
                for batch in outlet.batches.take(rest, codec):
                    self._sending.send(sluice, outlet, batch)
            except MirrorError as error:
                self._sending.fail(sluice, error, certain=True)
                return

    def _behind_tail(self, sluice: Sluice, outlet: Outlet, rows: RowColumns) -> RowColumns | None:
        """The rows that are yet to be written; None where there are none."""
        while outlet.tail is not None and len(rows) and not sluice.failed:
            try:
                if not self._sending.run(outlet.tail.fill()):
                    self._found(sluice, outlet, int(rows.offsets[0]))
                    break
                rows = rows.part(outlet.tail.match(rows, outlet.copy.where()), len(rows))
            except MirrorError as error:
                self._sending.fail(sluice, error, certain=False)
        return rows if len(rows) and not sluice.failed else None

    def _found(self, sluice: Sluice, outlet: Outlet, source_next: int) -> None:
        """All that an interrupted run wrote is found; from `source_next` on nothing is written."""
        tail, outlet.tail = outlet.tail, None
        assert tail is not None
        if source_next >= outlet.known_to:
            self._sending.found(outlet, tail.runs, source_next)
            return
        self._sending.fail(
            sluice,
            TargetTruncatedError(
                f"{outlet.copy.target} holds what the transform makes of the source only up to offset "
                f"{source_next - 1}, though it was stored as copied up to {outlet.known_to - 1}.",
                where=outlet.copy.where(),
                action="The target lost data, or the transform is another one: find out which, then say where "
                "copying goes on (`mirror position set`).",
            ),
            certain=False,
        )

    def _finish(self, sluice: Sluice, end: ReadEnd) -> None:
        for outlet in sluice.outlets:
            if outlet.tail is not None and not sluice.failed:
                self._finish_tail(sluice, outlet, end)
        self._flush(sluice, end.source_next)
        self._sending.note_poison(sluice, end.poison)

    def _finish_tail(self, sluice: Sluice, outlet: Outlet, end: ReadEnd) -> None:
        """No more rows come, and there was none behind what was found so far."""
        tail = outlet.tail
        assert tail is not None
        try:
            more = self._sending.run(tail.fill())
        except MirrorError as error:
            self._sending.fail(sluice, error, certain=False)
            return
        if not more and end.error is None:
            self._found(sluice, outlet, end.source_next)
        elif not more and tail.source_next is not None and tail.source_next >= outlet.known_to:
            self._found(sluice, outlet, tail.source_next)
        elif end.error is None:
            self._sending.fail(
                sluice,
                TargetDivergedError(
                    f"{outlet.copy.target} holds more than the transform makes of the source up to offset "
                    f"{end.source_next - 1}: the transform is another one since a run was interrupted, or somebody "
                    "else wrote there.",
                    where=outlet.copy.where(),
                    action=f"Run once with the transform as it was, or: {CHOICES}",
                ),
                certain=False,
            )
        else:
            self._sending.fail(sluice, end.error, certain=False)


def _result(sluice: Sluice, end: ReadEnd) -> PartitionResult:
    """What became of a source partition, wherever its rows went."""
    main = sluice.main.copy.result()
    others = [outlet.copy.result() for outlet in sluice.routed.values()]
    whole = not sluice.broken and all(outlet.copy.certain for outlet in sluice.outlets)
    if whole:
        # Whatever ended it did so before the record at this offset, and all before it is written.
        main = replace(main, source_next=end.source_next)
    if not others:
        return main
    everything = [main, *others]
    # What an interrupted run had sent there counts too, where this one has taken over from it.
    began = {TopicPartition(route.topic, route.partition): route.target_offset for route in sluice.routes}
    first = [each.first_timestamp for each in everything if each.first_timestamp is not None]
    last = [each.last_timestamp for each in everything if each.last_timestamp is not None]
    error = next((each.error for each in everything if each.error is not None), None)
    return replace(
        main,
        # How far all of them came together is not known otherwise: the next run finds it out.
        certain=whole,
        error=error,
        records=sum(each.records for each in everything),
        bytes=sum(each.bytes for each in everything),
        batches=sum(each.batches for each in everything),
        recovered=sum(each.recovered for each in everything),
        first_timestamp=min(first, default=None),
        last_timestamp=max(last, default=None),
        routed=tuple(
            RoutedRecords(
                each.target,
                began.get(each.target, each.target_first),
                each.target_next,
                each.records + each.recovered,
            )
            for each in others
        ),
    )
