"""Append to a small topic next to the copy itself: one batch at a time, each until it is acknowledged."""

from __future__ import annotations

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.kafka_errors import error_for_code
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.partition_client import Patience
from mirror_lib.errors import MirrorError, Where
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.topology.access import Operation
from mirror_lib.topology.names import TopicPartition

_PRODUCE_TIMEOUT_MS = 30_000


class PartitionAppender(Patience):
    """Appends to one partition, through leader changes and restarts."""

    def __init__(
        self,
        client: RawClient,
        partition: TopicPartition,
        retry_seconds: float,
        *,
        where: Where,
        doing: str,
        transactional_id: str | None = None,
    ) -> None:
        """Args:
        retry_seconds: how long transient errors may last.
        where: the location of errors.
        doing: the purpose, such as `store positions in mm2-offsets-0`.
        transactional_id: of the producer whose open transaction contains the batches.
        """
        super().__init__(client, partition, retry_seconds, where=where, operation=Operation.WRITE)
        self._doing = doing
        self._transactional_id = transactional_id

    async def append(self, batch: ReadyBatch) -> int | None:
        """Append a stamped batch; return its first offset. A batch without a producer may be appended twice.

        The offset is None if an earlier try without a response had appended it.

        Raises:
            MirrorError: an error did not pass in time, or is not transient.
        """
        backoff = self.patient()
        while True:
            try:
                return await self._append(batch)
            except MirrorError as error:
                await self.pause(backoff, error)

    async def _append(self, batch: ReadyBatch) -> int | None:
        (response,) = await self._client.produce(
            await self.leader(),
            [(*self._partition, batch.payload)],
            timeout_ms=_PRODUCE_TIMEOUT_MS,
            transactional_id=self._transactional_id,
        )
        if response.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            return None
        if response.error_code:
            raise error_for_code(response.error_code, where=self._where, doing=self._doing, needs=self._needs)
        return response.base_offset
