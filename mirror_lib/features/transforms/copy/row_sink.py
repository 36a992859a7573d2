"""The writing half of a transformed copy: rows from Spark to the target, each exactly once.

Batches are sent by the same writer as in the raw copy (`copy.transfer.producer`), so that sequence numbers, expected
offsets and retries are the same.

The copy task must not load numpy and Arrow: no module that it imports may import this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from mirror_lib.copy.transfer.task import for_attempt
from mirror_lib.errors import MirrorError, TargetDivergedError, TargetTruncatedError
from mirror_lib.features.transforms.copy.model import ReadEnd, ReadEnds, RowJob, ends_from_json, first_number
from mirror_lib.features.transforms.copy.outputs import Output, PartitionSink
from mirror_lib.features.transforms.copy.record_boundaries import WholeRecords
from mirror_lib.features.transforms.copy.sink_loop import SinkLoop
from mirror_lib.features.transforms.copy.transactions import Transaction
from mirror_lib.features.transforms.rows.columns import RowColumns, Slice, by_place
from mirror_lib.features.transforms.rows.layout import number_and_codec
from mirror_lib.features.transforms.rows.reader_result import ReaderResult
from mirror_lib.planning.model import PartitionResult, RoutedRecords
from mirror_lib.planning.next_steps import with_the_previous_transform
from mirror_lib.records.header import Codec
from mirror_lib.topology.names import TopicPartition

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
    loop = SinkLoop(for_attempt(job.copy, number, attempt), number, exact=job.exact, routes=job.routes)
    writing = _Writing(loop, first_number(job.copy, number))
    try:
        for batch in rows:
            writing.take(by_place(batch, routes=job.routes))
        return writing.results(ends_from_json(ReaderResult(job.secret, number, attempt).take()))
    except BaseException:
        loop.stop()
        raise


def finish_bin(job: RowJob, number: int, attempt: int) -> list[PartitionResult]:
    """End a bin without further rows, when all of its source was read to the end."""
    first = first_number(job.copy, number)
    ends = {at: ReadEnd(opened.plan.end) for at, opened in enumerate(job.copy.bins[number], first)}
    loop = SinkLoop(for_attempt(job.copy, number, attempt), number, exact=job.exact, routes=job.routes)
    return _Writing(loop, first).results(ends)


class _Writing:
    """The work in the thread of the rows."""

    def __init__(self, loop: SinkLoop, first: int) -> None:
        self._loop = loop
        self._first = first
        self._whole = WholeRecords(lambda number: self._output(number).transaction is not None)

    def take(self, slices: Iterable[Slice]) -> None:
        """Take the rows of one of Spark's batches."""
        for each in self._whole.release(slices):
            self._take(each)
        for transaction in self._loop.due(TRANSACTION_SECONDS):
            self._commit(transaction, self._whole.next_offset)

    def results(self, ends: ReadEnds) -> list[PartitionResult]:
        """End every partition as its reading ended, and wait until all is acknowledged."""
        for each in self._whole.rest():
            self._take(each)
        for number, output in enumerate(self._loop.outputs, self._first):
            self._finish(output, ends[number])
        for transaction in self._loop.transactions:
            self._commit(transaction, lambda number: ends[number].source_next)
        for number, output in enumerate(self._loop.outputs, self._first):
            self._loop.end(output, ends[number])
        finished = enumerate(self._loop.finish(), self._first)
        return [_result(output, ends[number]) for number, output in finished]

    def _output(self, number: int) -> Output:
        return self._loop.outputs[number - self._first]

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
            sink = self._sink(output, rows)
        except MirrorError as error:
            self._loop.fail(output, error, certain=all(each.tail is None for each in output.sinks))
            return
        self._write(output, sink, columns, codec)

    def _commit(self, transaction: Transaction, source_next_of: Callable[[int], int | None]) -> None:
        """Commit a transaction: all rows of the source before these offsets have been taken.

        Args:
            source_next_of: called with the number of a partition; None if it has had no rows.
        """
        nexts: dict[TopicPartition, int] = {}
        sharing = self._loop.outputs_of(transaction)
        for number, output in enumerate(self._loop.outputs, self._first):
            source_next = source_next_of(number) if output.transaction is transaction else None
            if source_next is None:
                continue
            nexts[output.opened.plan.source] = max(source_next, output.start)
            self._flush(output, source_next)
        try:
            self._loop.commit(transaction, nexts)
        except MirrorError as error:
            self._loop.fail(sharing[0], error, certain=False)

    def _flush(self, output: Output, source_next: int) -> None:
        """Send the incomplete batch."""
        for sink in output.sinks:
            if output.has_failed:
                return
            try:
                for batch in sink.batches.end(source_next):
                    self._loop.send(output, sink, batch)
            except MirrorError as error:
                self._loop.fail(output, error, certain=True)

    def _sink(self, output: Output, rows: Slice) -> PartitionSink:
        main = output.main.copy
        topic = main.target.topic if rows.topic is None else rows.topic
        # For another topic the partition number is the source's, as for the remote topic.
        partition = rows.partition if rows.partition is not None else main.target.partition
        target = TopicPartition(topic, partition)
        return output.main if target == main.target else self._loop.route(output, target)

    def _write(self, output: Output, sink: PartitionSink, rows: RowColumns, codec: Codec) -> None:
        parts, skipped = sink.batches.without_too_large(rows, codec)
        try:
            if skipped:
                self._loop.skip(sink, skipped)
        except MirrorError as error:
            self._loop.fail(output, error, certain=sink.tail is None)
        for part in parts:
            rest = self._behind_tail(output, sink, part)
            if rest is None:
                return
            try:
                for batch in sink.batches.take(rest, codec):
                    self._loop.send(output, sink, batch)
            except MirrorError as error:
                self._loop.fail(output, error, certain=True)
                return

    def _behind_tail(self, output: Output, sink: PartitionSink, rows: RowColumns) -> RowColumns | None:
        """The rows that are still to be written; None if there are none."""
        while sink.tail is not None and len(rows) and not output.has_failed:
            try:
                if not self._loop.run(sink.tail.fill()):
                    self._record_recovered(output, sink, int(rows.offsets[0]))
                    break
                rows = rows.part(sink.tail.match(rows, sink.copy.where()), len(rows))
            except MirrorError as error:
                self._loop.fail(output, error, certain=False)
        return rows if len(rows) and not output.has_failed else None

    def _record_recovered(self, output: Output, sink: PartitionSink, source_next: int) -> None:
        """Record that all rows of an interrupted run are found; no rows from `source_next` on were written."""
        tail, sink.tail = sink.tail, None
        assert tail is not None
        if source_next >= sink.known_to:
            self._loop.record_recovered(sink, tail.runs, source_next)
            return
        self._loop.fail(
            output,
            TargetTruncatedError(
                f"{sink.copy.target} contains the transform's results only up to source offset {source_next - 1}, "
                f"but the stored position says that they were copied up to {sink.known_to - 1}.",
                where=sink.copy.where(),
                action="The target lost records, or the transform has changed: find the cause, then set the position: "
                f"{sink.copy.where().position_set()}.",
            ),
            certain=False,
        )

    def _finish(self, output: Output, end: ReadEnd) -> None:
        for sink in output.sinks:
            if sink.tail is not None and not output.has_failed:
                self._finish_tail(output, sink, end)
        self._flush(output, end.source_next)
        self._loop.note_poison(output, end.poison)

    def _finish_tail(self, output: Output, sink: PartitionSink, end: ReadEnd) -> None:
        """End the comparison with an interrupted run: there are no more rows."""
        tail = sink.tail
        assert tail is not None
        try:
            more = self._loop.run(tail.fill())
        except MirrorError as error:
            self._loop.fail(output, error, certain=False)
            return
        if not more and end.error is None:
            self._record_recovered(output, sink, end.source_next)
        elif not more and tail.source_next is not None and tail.source_next >= sink.known_to:
            self._record_recovered(output, sink, tail.source_next)
        elif end.error is None:
            self._loop.fail(
                output,
                TargetDivergedError(
                    f"{sink.copy.target} contains more than the transform's results up to source offset "
                    f"{end.source_next - 1}: the transform has changed since a run was interrupted, or another "
                    "producer wrote to it.",
                    where=sink.copy.where(),
                    action=with_the_previous_transform(sink.copy.where()),
                ),
                certain=False,
            )
        else:
            self._loop.fail(output, end.error, certain=False)


def _result(output: Output, end: ReadEnd) -> PartitionResult:
    """The result of a source partition over all its target partitions."""
    main = output.main.copy.result()
    others = [sink.copy.result() for sink in output.routed.values()]
    whole = not output.broken and all(sink.copy.certain for sink in output.sinks)
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
