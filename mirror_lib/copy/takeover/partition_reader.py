"""Read a log that two writers may have written: one fetch at a time, through leader changes and restarts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.kafka_errors import error_for_code
from mirror_lib.cluster.raw.client import FetchedPartition, FetchRequestPartition, RawClient
from mirror_lib.cluster.raw.partition_client import Patience
from mirror_lib.config.copy_settings import CopySettings
from mirror_lib.errors import DirtyStartError, MirrorError, OffsetOutOfRangeError, Where
from mirror_lib.planning.next_steps import set_position_or_copy_anew
from mirror_lib.records.spans import Span, read_spans
from mirror_lib.topology.access import Operation
from mirror_lib.topology.names import TopicPartition

_FETCH_WAIT_MS = 500
_READ_BYTES = 4 * 1024 * 1024


class PartitionReader(Patience):
    """Reads one partition a fetch at a time, through leader changes and restarts."""

    def __init__(
        self,
        client: RawClient,
        partition: TopicPartition,
        settings: CopySettings,
        *,
        read_committed: bool,
        interrupted: Where | None = None,
    ) -> None:
        """Args:
        interrupted: flow and source partition, if the log is read to compare an interrupted copy with its source.
        """
        where = Where(cluster=client.cluster, topic=partition.topic, partition=partition.partition)
        super().__init__(client, partition, settings.retry_max_seconds, where=where, operation=Operation.READ)
        self._read_committed = read_committed
        self._interrupted = interrupted

    async def read(self, offset: int) -> Sequence[Span]:
        """The spans from `offset` on; empty at the end of the readable log."""
        response = await self.fetch(offset)
        spans, _ = read_spans(response.records, response.aborted, read_committed=self._read_committed)
        return spans

    async def fetch(self, offset: int) -> FetchedPartition:
        """A broker's response from `offset` on; without records at the end of the readable log.

        Raises:
            DirtyStartError: the offset no longer exists, and an interrupted copy is compared.
            OffsetOutOfRangeError: the offset no longer exists.
            MirrorError: an error did not pass in time, or is not transient.
        """
        backoff = self.patient()
        while True:
            try:
                return await self._fetch(offset)
            except MirrorError as error:
                await self.pause(backoff, error)

    async def _fetch(self, offset: int) -> FetchedPartition:
        wanted = FetchRequestPartition(*self._partition, offset, _READ_BYTES)
        (response,) = await self._client.fetch(
            await self.leader(),
            [wanted],
            max_bytes=_READ_BYTES,
            max_wait_ms=_FETCH_WAIT_MS,
            read_committed=self._read_committed,
        )
        if response.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise self._gone(offset)
        if response.error_code:
            where = replace(self._where, offset=offset)
            raise error_for_code(response.error_code, where=where, doing="read the end of the log", needs=self._needs)
        return response

    def _gone(self, offset: int) -> MirrorError:
        what = f"{self._partition} on cluster {self._client.cluster} no longer has offset {offset}"
        if self._interrupted is not None:
            return DirtyStartError(
                f"{what}, so an interrupted copy cannot be compared with its source.",
                where=self._interrupted,
                action=set_position_or_copy_anew(self._interrupted),
            )
        return OffsetOutOfRangeError(
            f"{what}: retention or a client deleted records while they were read.",
            where=replace(self._where, offset=offset),
            action="Repeat the command: it starts at the records that the log has now.",
        )
