"""The writing half of a transformed copy: rows from Spark to the target, each exactly once.

Batches are sent by the same writer as in the raw copy (`relay.copy.producer`), so that sequence numbers, expected
offsets and retries are the same.

The copy task must not load numpy and Arrow: no module that it imports may import this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from mirror_lib.cluster.batches import Codec
from mirror_lib.errors import MirrorError, TargetDivergedError, TargetTruncatedError
from mirror_lib.features.transforms.copy.model import ReadEnd, ReadEnds, RowJob, ends_from_json, first_number
from mirror_lib.features.transforms.copy.outputs import Outlet, Output
from mirror_lib.features.transforms.copy.record_boundaries import WholeRecords
from mirror_lib.features.transforms.copy.sink_loop import Sending
from mirror_lib.features.transforms.copy.transactions import Transaction
from mirror_lib.features.transforms.rows import ReaderResult, RowColumns, Slice, by_place, number_and_codec
from mirror_lib.relay import PartitionResult, RoutedRecords, with_the_previous_transform
from mirror_lib.relay.copy import for_attempt
from mirror_lib.topology import TopicPartition

#: How long a transaction stays open while rows come: `read_committed` consumers see its rows with this delay, and a
#: run that dies has to write as much again.
TRANSACTION_SECONDS = 10.0


def write_bin(job: RowJob, number: int, attempt: int, rows: Iterable[pa.RecordBatch]) -> list[PartitionResult]:
    """Write the transformed rows of bin `number`; return a result for each of its partitions.

    Args:
        rows: batches of `layout.WRITTEN_DDL`; the rows of each partition in the order of their offsets.

    Raises:
        MirrorError: the rows ended before the source was read to the end, or are not valid output of a transform.
    """
    sending = Sending(for_attempt(job.copy, number, attempt), number, exact=job.exact, routes=job.routes)
    writing = _Writing(sending, first_number(job.copy, number))
    try:
        for batch in rows:
            writing.take(by_place(batch, routes=job.routes))
        return writing.results(ends_from_json(ReaderResult(job.secret, number, attempt).take()))
    except BaseException:
        sending.stop()
        raise


def finish_bin(job: RowJob, number: int, attempt: int) -> list[PartitionResult]:
    """End a bin without further rows, when all of its source was read to the end."""
    first = first_number(job.copy, number)
    ends = {at: ReadEnd(opened.plan.end) for at, opened in enumerate(job.copy.bins[number], first)}
    sending = Sending(for_attempt(job.copy, number, attempt), number, exact=job.exact, routes=job.routes)
    return _Writing(sending, first).results(ends)


class _Writing:
    """The work in the thread of the rows."""

    def __init__(self, sending: Sending, first: int) -> None:
        self._sending = sending
        self._first = first
        self._whole = WholeRecords(lambda number: self._output(number).transaction is not None)

    def take(self, slices: Iterable[Slice]) -> None:
        """Take the rows of one of Spark's batches."""
        for each in self._whole.release(slices):
            self._take(each)
        for transaction in self._sending.due(TRANSACTION_SECONDS):
            self._commit(transaction, self._whole.next_offset)

    def results(self, ends: ReadEnds) -> list[PartitionResult]:
        """End every partition as its reading ended, and wait until all is acknowledged."""
        for each in self._whole.rest():
            self._take(each)
        for number, output in enumerate(self._sending.outputs, self._first):
            self._finish(output, ends[number])
        for transaction in self._sending.transactions:
            self._commit(transaction, lambda number: ends[number].source_next)
        for number, output in enumerate(self._sending.outputs, self._first):
            self._sending.end(output, ends[number])
        finished = enumerate(self._sending.finish(), self._first)
        return [_result(output, ends[number]) for number, output in finished]

    def _output(self, number: int) -> Output:
        return self._sending.outputs[number - self._first]

    def _take(self, rows: Slice) -> None:
        """Take rows of one partition that have the same target partition."""
        number, codec = number_and_codec(rows.place)
        output = self._output(number)
        if output.has_failed:
            return
        columns = rows.rows
        if output.transaction is not None:
            # An earlier attempt committed the rows before; its job is repeated from the beginning.
            columns = columns.part(int(np.searchsorted(columns.offsets, output.start)), len(columns))
        if not len(columns):
            return
        try:
            outlet = self._outlet(output, rows)
        except MirrorError as error:
            self._sending.fail(output, error, certain=all(each.tail is None for each in output.outlets))
            return
        self._write(output, outlet, columns, codec)

    def _commit(self, transaction: Transaction, source_next_of: Callable[[int], int | None]) -> None:
        """Commit a transaction: all rows of the source before these offsets have been taken.

        Args:
            source_next_of: called with the number of a partition; None if it has had no rows.
        """
        nexts: dict[TopicPartition, int] = {}
        sharing = self._sending.outputs_of(transaction)
        for number, output in enumerate(self._sending.outputs, self._first):
            source_next = source_next_of(number) if output.transaction is transaction else None
            if source_next is None:
                continue
            nexts[output.opened.plan.source] = max(source_next, output.start)
            self._flush(output, source_next)
        try:
            self._sending.commit(transaction, nexts)
        except MirrorError as error:
            self._sending.fail(sharing[0], error, certain=False)

    def _flush(self, output: Output, source_next: int) -> None:
        """Send the incomplete batch."""
        for outlet in output.outlets:
            if output.has_failed:
                return
            try:
                for batch in outlet.batches.end(source_next):
                    self._sending.send(output, outlet, batch)
            except MirrorError as error:
                self._sending.fail(output, error, certain=True)

    def _outlet(self, output: Output, rows: Slice) -> Outlet:
        main = output.main.copy
        topic = main.target.topic if rows.topic is None else rows.topic
        # For another topic the partition number is the source's, as for the remote topic.
        partition = rows.partition if rows.partition is not None else main.target.partition
        target = TopicPartition(topic, partition)
        return output.main if target == main.target else self._sending.route(output, target)

    def _write(self, output: Output, outlet: Outlet, rows: RowColumns, codec: Codec) -> None:
        parts, skipped = outlet.batches.without_too_large(rows, codec)
        try:
            if skipped:
                self._sending.skip(outlet, skipped)
        except MirrorError as error:
            self._sending.fail(output, error, certain=outlet.tail is None)
        for part in parts:
            rest = self._behind_tail(output, outlet, part)
            if rest is None:
                return
            try:
                for batch in outlet.batches.take(rest, codec):
                    self._sending.send(output, outlet, batch)
            except MirrorError as error:
                self._sending.fail(output, error, certain=True)
                return

    def _behind_tail(self, output: Output, outlet: Outlet, rows: RowColumns) -> RowColumns | None:
        """The rows that are still to be written; None if there are none."""
        while outlet.tail is not None and len(rows) and not output.has_failed:
            try:
                if not self._sending.run(outlet.tail.fill()):
                    self._record_recovered(output, outlet, int(rows.offsets[0]))
                    break
                rows = rows.part(outlet.tail.match(rows, outlet.copy.where()), len(rows))
            except MirrorError as error:
                self._sending.fail(output, error, certain=False)
        return rows if len(rows) and not output.has_failed else None

    def _record_recovered(self, output: Output, outlet: Outlet, source_next: int) -> None:
        """Record that all rows of an interrupted run are found; no rows from `source_next` on were written."""
        tail, outlet.tail = outlet.tail, None
        assert tail is not None
        if source_next >= outlet.known_to:
            self._sending.record_recovered(outlet, tail.runs, source_next)
            return
        self._sending.fail(
            output,
            TargetTruncatedError(
                f"{outlet.copy.target} contains the transform's results only up to source offset {source_next - 1}, "
                f"but the stored position says that they were copied up to {outlet.known_to - 1}.",
                where=outlet.copy.where(),
                action="The target lost records, or the transform has changed: find the cause, then set the position: "
                f"{outlet.copy.where().position_set()}.",
            ),
            certain=False,
        )

    def _finish(self, output: Output, end: ReadEnd) -> None:
        for outlet in output.outlets:
            if outlet.tail is not None and not output.has_failed:
                self._finish_tail(output, outlet, end)
        self._flush(output, end.source_next)
        self._sending.note_poison(output, end.poison)

    def _finish_tail(self, output: Output, outlet: Outlet, end: ReadEnd) -> None:
        """End the comparison with an interrupted run: there are no more rows."""
        tail = outlet.tail
        assert tail is not None
        try:
            more = self._sending.run(tail.fill())
        except MirrorError as error:
            self._sending.fail(output, error, certain=False)
            return
        if not more and end.error is None:
            self._record_recovered(output, outlet, end.source_next)
        elif not more and tail.source_next is not None and tail.source_next >= outlet.known_to:
            self._record_recovered(output, outlet, tail.source_next)
        elif end.error is None:
            self._sending.fail(
                output,
                TargetDivergedError(
                    f"{outlet.copy.target} contains more than the transform's results up to source offset "
                    f"{end.source_next - 1}: the transform has changed since a run was interrupted, or another "
                    "producer wrote to it.",
                    where=outlet.copy.where(),
                    action=with_the_previous_transform(outlet.copy.where()),
                ),
                certain=False,
            )
        else:
            self._sending.fail(output, end.error, certain=False)


def _result(output: Output, end: ReadEnd) -> PartitionResult:
    """The result of a source partition over all its target partitions."""
    main = output.main.copy.result()
    others = [outlet.copy.result() for outlet in output.routed.values()]
    whole = not output.broken and all(outlet.copy.certain for outlet in output.outlets)
    if whole:
        # The error is at the record of this offset, and all records before it are written.
        main = replace(main, source_next=end.source_next)
    if not others:
        return main
    everything = [main, *others]
    # Rows that an interrupted run had routed there count too, if this run has taken over from it.
    began = {TopicPartition(route.topic, route.partition): route.target_offset for route in output.routes}
    first = [each.first_timestamp for each in everything if each.first_timestamp is not None]
    last = [each.last_timestamp for each in everything if each.last_timestamp is not None]
    error = next((each.error for each in everything if each.error is not None), None)
    return replace(
        main,
        # How far all of them came together is otherwise unknown: the next run finds it.
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
