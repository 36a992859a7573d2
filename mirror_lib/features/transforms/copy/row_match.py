"""Recognize the rows that an interrupted run has written, by transforming the same records again.

After the last certain pair of offsets the target has the first of the rows that the transform makes of the source from
there on, if it is deterministic and no other producer wrote there. So they are made again, and not sent while they
equal the rows on the target.

The copy task must not load numpy and Arrow: no module that it imports may import this one.
numpy and Arrow are not for the copy task: nothing that it imports may import this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from mirror_lib.cluster.raw.backoff import Backoff
from mirror_lib.config.copy_settings import CopySettings
from mirror_lib.copy.takeover.partition_reader import PartitionReader
from mirror_lib.errors import MirrorError, TargetDivergedError, TransientError, Where
from mirror_lib.features.transforms.arrow.decode_limits import DecodeLimits
from mirror_lib.features.transforms.arrow.read import ArrowPart, read_arrow
from mirror_lib.features.transforms.arrow.rows import LOG_APPEND_TIME
from mirror_lib.features.transforms.rows.columns import RowColumns
from mirror_lib.offsets.runs import OffsetRun, RunBuilder
from mirror_lib.planning.next_steps import with_the_previous_transform
from mirror_lib.topology.names import TopicPartition


class Tail:
    """The target's log from the certain pair to its end, compared with the rows that are made again."""

    def __init__(
        self, log: PartitionReader, partition: TopicPartition, first: int, end: int, *, settings: CopySettings
    ) -> None:
        """Args:
        log: reader of the target partition, with `read_committed`.
        first: target offset of the certain pair.
        end: log end offset, once its earlier writer is fenced.
        """
        self._log = log
        self._partition = partition
        self._next = first
        self._end = end
        self._retry_seconds = settings.retry_max_seconds
        self._limits = DecodeLimits.within(settings.task_memory_bytes)
        self._waiting: list[RowColumns] = []
        #: The rest of the last fetch, which becomes rows as needed.
        self._fetched: Iterator[ArrowPart] = iter(())
        self._runs = RunBuilder()
        self._last_source: int | None = None

    @property
    def runs(self) -> tuple[OffsetRun, ...]:
        """Target offsets at which the source's records were found."""
        return self._runs.runs()

    @property
    def source_next(self) -> int | None:
        """The source offset after the last row that was found; None before the first."""
        return None if self._last_source is None else self._last_source + 1

    async def fill(self) -> bool:
        """Ensure that there are rows to compare with; return False if all of the log was found again.

        Raises:
            MirrorError: the log cannot be read.
        """
        backoff = Backoff(self._retry_seconds)
        while not self._waiting and self._next < self._end:
            before = self._next
            if self._take():
                continue
            response = await self._log.fetch(self._next)
            self._fetched = read_arrow(
                response.records,
                response.aborted,
                topic=self._partition.topic,
                partition=self._partition.partition,
                start=self._next,
                end=self._end,
                read_committed=True,
                limits=self._limits,
            )
            if not self._take() and self._next == before:
                await self._log.pause(backoff, self._silent())
        return bool(self._waiting)

    def _take(self) -> bool:
        """Take the next part of the fetch; return False if there is none."""
        part = next(self._fetched, None)
        if part is not None:
            self._next = part.next_offset
            if part.records.num_rows:
                self._waiting.append(_columns(part.records))
        return part is not None

    def _silent(self) -> MirrorError:
        return TransientError(
            f"{self._partition} returns no records from offset {self._next}.", action="Check the target's brokers."
        )

    def match(self, rows: RowColumns, where: Where) -> int:
        """Number of the leading rows that were found; call it after `fill`.

        Raises:
            TargetDivergedError: the log has something else in place of the next row.
        """
        on_target = self._waiting[0]
        count = min(len(rows), len(on_target))
        mine, theirs = rows.part(0, count), on_target.part(0, count)
        timed = not bool((theirs.timestamp_types == LOG_APPEND_TIME).any())
        if not mine.same_as(theirs, timed=timed):
            raise self._divergence(mine, theirs, where, timed=timed)
        self._note(mine.offsets, theirs.offsets)
        if count == len(on_target):
            self._waiting.pop(0)
        else:
            self._waiting[0] = on_target.part(count, len(on_target))
        return count

    def _note(self, sources: Sequence[int] | np.ndarray, targets: Sequence[int] | np.ndarray) -> None:
        for source, target in zip(np.asarray(sources).tolist(), np.asarray(targets).tolist(), strict=True):
            # If one record became several rows, the offset map points to the first.
            if source != self._last_source:
                self._runs.add(source, target, 1)
                self._last_source = source

    def _divergence(self, mine: RowColumns, theirs: RowColumns, where: Where, *, timed: bool) -> MirrorError:
        first = mine.first_difference(theirs, timed=timed)
        source, target = int(mine.offsets[first]), int(theirs.offsets[first])
        return TargetDivergedError(
            f"{self._partition} offset {target} does not match the transform's result for source offset {source}: "
            "the transform has changed since a run was interrupted, or another producer wrote to it.",
            where=Where(flow=where.flow, topic=where.topic, partition=where.partition, offset=source),
            action=with_the_previous_transform(where),
        )


def _columns(records: pa.RecordBatch) -> RowColumns:
    return RowColumns(
        keys=records.column("key"),
        values=records.column("value"),
        headers=records.column("headers"),
        timestamps=records.column("timestamp"),
        offsets=records.column("offset").to_numpy(zero_copy_only=False),
        timestamp_types=records.column("timestampType").to_numpy(zero_copy_only=False),
    )
