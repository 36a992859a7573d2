"""The running account of one source partition: what was read, what is acknowledged, how it ended."""

from __future__ import annotations

import time
from copy import copy
from dataclasses import replace

from mirror_lib.cluster.batches.assemble import BatchAssembler, ReadyBatch
from mirror_lib.config.model import CopySettings
from mirror_lib.errors import MirrorError, Where
from mirror_lib.offsets.runs import RunBuilder
from mirror_lib.relay.model import OpenPartition, PartitionResult
from mirror_lib.relay.retry import Backoff
from mirror_lib.topology.names import FlowId


class PartitionCopy:
    """State of one partition inside a task. Reading and writing both update it; nobody else does."""

    def __init__(self, flow: FlowId, opened: OpenPartition, settings: CopySettings, *, read_committed: bool) -> None:
        plan = opened.plan
        self.flow = flow
        self.opened = opened
        self.source = plan.source
        self.target = plan.target
        self.assembler = BatchAssembler(
            topic=plan.source.topic,
            partition=plan.source.partition,
            start=plan.start,
            end=plan.end,
            passthrough_min_bytes=settings.batch_passthrough_min_bytes,
            batch_max_bytes=settings.batch_max_bytes,
            target_max_message_bytes=plan.target_max_message_bytes,
            read_committed=read_committed,
        )
        self.backoff = Backoff(settings.retry_max_seconds)
        self.fetching = False
        self.last_served = 0.0
        #: Fetches in a row that returned nothing although there should be something.
        self.empty_fetches = 0
        #: Nothing more will be handed to the writer.
        self.read_done = False
        self.unacknowledged_batches = 0
        self.unacknowledged_bytes = 0
        #: Bytes in the assembler that the task's memory counts.
        self.held_bytes = 0
        self.error: MirrorError | None = None
        self.certain = True
        self.finished = False
        self.source_next = plan.start
        self._began = time.monotonic()
        self._ended = self._began
        self._runs = RunBuilder()
        self._target_first: int | None = None
        self._target_next = opened.target_offset
        self._records = self._bytes = self._batches = 0
        self._first_timestamp: int | None = None
        self._last_timestamp: int | None = None

    def where(self, offset: int | None = None) -> Where:
        """This partition as the place of an error."""
        return Where(flow=str(self.flow), topic=self.source.topic, partition=self.source.partition, offset=offset)

    def acknowledged(self, batch: ReadyBatch, base_offset: int) -> None:
        """Note that the target holds this batch from `base_offset` on."""
        target = base_offset
        for first, count in batch.source_runs:
            self._runs.add(first, target, count)
            target += count
        if self._target_first is None:
            self._target_first = base_offset
        self._target_next = target
        self.source_next = batch.source_next
        self._records += batch.count
        self._bytes += len(batch.payload)
        self._batches += 1
        # Producers may give any timestamps, so the batches' own extremes are what can be said.
        if self._first_timestamp is None:
            self._first_timestamp = batch.first_timestamp
        self._last_timestamp = max(batch.max_timestamp, self._last_timestamp or batch.max_timestamp)
        self.unacknowledged_batches -= 1
        self.unacknowledged_bytes -= len(batch.payload)

    def fail(self, error: MirrorError, *, certain: bool = True) -> None:
        """Stop reading. The first error is the one reported, as one of this partition."""
        if self.error is None:
            # Several partitions may share an error, and each has a place of its own.
            told, where, mine = copy(error), error.where, self.where()
            place = (where.topic or mine.topic, mine.partition if where.partition is None else where.partition)
            offset = where.offset if place == self.source else None
            told.where = replace(mine, cluster=where.cluster, offset=offset)
            self.error = told
        self.certain = self.certain and certain
        self.read_done = True

    def finish_if_settled(self) -> bool:
        """Close the account when all that was read is acknowledged; returns whether it is closed."""
        if not self.finished and self.read_done and self.unacknowledged_batches == 0:
            self.finished = True
            self._ended = time.monotonic()
            if self.error is None:
                # Dropped records at the very end (markers, aborted ones) belong to no batch.
                self.source_next = max(self.source_next, self.assembler.next_offset)
        return self.finished

    def result(self) -> PartitionResult:
        """The account as a value."""
        return PartitionResult(
            source=self.source,
            target=self.target,
            start=self.opened.plan.start,
            end=self.opened.plan.end,
            source_next=self.source_next,
            target_first=self._target_next if self._target_first is None else self._target_first,
            target_next=self._target_next,
            records=self._records,
            bytes=self._bytes,
            batches=self._batches,
            first_timestamp=self._first_timestamp,
            last_timestamp=self._last_timestamp,
            seconds=self._ended - self._began,
            runs=self._runs.runs(),
            certain=self.certain,
            error=self.error,
        )
