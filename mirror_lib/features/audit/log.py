"""One of the two logs of an audit: read as a stream, once or again, and asked for its end."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator
from dataclasses import dataclass

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.features.audit.ignored_headers import Rewrite, without_headers
from mirror_lib.features.audit.model import AuditJob
from mirror_lib.features.verify.compare.record_columns import Columns, columns
from mirror_lib.features.verify.log_reader import LogReader, LogStream
from mirror_lib.topology.names import TopicPartition

CHUNK_BYTES = 4 * 1024 * 1024


@dataclass(slots=True)
class Log:
    """A partition of a cluster."""

    client: RawClient
    connection: Connection
    partition: TopicPartition
    read_committed: bool
    retry_seconds: float
    #: Changes what is compared of a record.
    rewrite: Rewrite | None = None
    bytes: int = 0

    @classmethod
    def of(cls, job: AuditJob, partition: TopicPartition, client: RawClient, *, of_source: bool) -> Log:
        """A partition of the source or of the target of a job."""
        connection = job.source if of_source else job.target
        rewrite = without_headers(job.ignored_headers)
        return cls(client, connection, partition, job.read_committed, job.retry_seconds, rewrite)

    def _reader(self, *, read_committed: bool, gather_small: bool = False) -> LogReader:
        return LogReader(
            self.client,
            self.connection,
            self.partition,
            read_committed=read_committed,
            retry_seconds=self.retry_seconds,
            chunk_bytes=CHUNK_BYTES,
            gather_small=gather_small,
        )

    def stream(self, first: int, end: int) -> LogStream:
        """Its spans, small batches gathered to blocks."""
        return LogStream(self._reader(read_committed=self.read_committed, gather_small=True), first, end)

    async def end(self) -> int:
        """The present end, as this reader sees it.

        Raises:
            MirrorError: the cluster does not say it.
        """
        which = OffsetSpec.LAST_STABLE if self.read_committed else OffsetSpec.LATEST

        def ask() -> int:
            with ClusterAdmin(self.connection) as admin:
                fact = admin.list_offsets([self.partition], which)[self.partition]
            if fact.error is not None:
                raise fact.error
            return fact.offset

        return await asyncio.to_thread(ask)

    async def offset_at(self, time: int) -> int | None:
        """The offset of the first record with this timestamp or a later one; None if there is none.

        Raises:
            MirrorError: the cluster does not say it.
        """

        def ask() -> int | None:
            with ClusterAdmin(self.connection) as admin:
                fact = admin.offsets_at({self.partition: time})[self.partition]
            if fact.error is not None:
                raise fact.error
            return None if fact.offset < 0 else fact.offset

        return await asyncio.to_thread(ask)

    async def records(self, first: int, end: int, *, read_committed: bool) -> AsyncIterator[Columns]:
        """All records of [first, end), batch by batch."""
        stream = LogStream(self._reader(read_committed=read_committed), first, end)
        try:
            at = first
            while at < end:
                chunk = await stream.take(end)
                self.bytes += chunk.size
                for span in chunk.spans:
                    if span.is_hidden:
                        continue
                    found = _within(columns(span), at, end)
                    if self.rewrite is not None:
                        found = found._replace(tails=list(map(self.rewrite, found.tails)))
                    if found.offsets:
                        yield found
                at = chunk.next_offset
        finally:
            await stream.close()


def _within(found: Columns, first: int, end: int) -> Columns:
    """The records of [first, end)."""
    start, stop = bisect_left(found.offsets, first), bisect_left(found.offsets, end)
    if stop - start == len(found.offsets):
        return found
    return Columns(found.offsets[start:stop], found.times[start:stop], found.tails[start:stop])
