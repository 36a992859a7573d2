"""Access to one partition outside the copy itself: follows leader changes and retries through restarts."""

from __future__ import annotations

import asyncio

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.kafka_errors import error_for_code
from mirror_lib.cluster.raw.backoff import Backoff, may_pass
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.errors import MirrorError, Where
from mirror_lib.topology.access import Grant, Operation
from mirror_lib.topology.names import TopicPartition

#: Minimum pause: records that are not replicated yet will be soon, and more requests are not worthwhile.
_SHORTEST_PAUSE = 0.05


class Patience:
    """Finds a partition's leader, and retries errors for a limited time."""

    def __init__(
        self, client: RawClient, partition: TopicPartition, retry_seconds: float, *, where: Where, operation: Operation
    ) -> None:
        """Args:
        retry_seconds: maximum duration of errors that may pass.
        where: the place of errors.
        operation: the required permission on the topic.
        """
        self._client = client
        self._partition = partition
        self._retry_seconds = retry_seconds
        self._where = where
        self._needs = Grant.on_topic(operation, partition.topic)

    def patient(self) -> Backoff:
        """A new backoff for the attempts at one operation."""
        return Backoff(self._retry_seconds)

    async def leader(self) -> int:
        """The partition's leader.

        Raises:
            TransientError: there is none now.
            MirrorError: the topic does not exist, or may not be described.
        """
        leader = self._client.leader(self._partition)
        if leader is None:
            failed = await self._client.refresh_leaders([self._partition.topic])
            leader = self._client.leader(self._partition)
            if leader is None:
                code = failed.get(self._partition.topic, ErrorCode.LEADER_NOT_AVAILABLE)
                raise error_for_code(code, where=self._where, doing="find the leader", needs=self._needs)
        return leader

    async def pause(self, backoff: Backoff, error: MirrorError) -> None:
        """Wait before another attempt; raise the error if it is not retriable or has lasted too long."""
        if not may_pass(error) or not backoff.record_failure(error):
            raise error
        await asyncio.sleep(max(backoff.pause_left, _SHORTEST_PAUSE))
        try:
            await self._client.refresh_leaders([self._partition.topic])
        except MirrorError as silence:
            if not may_pass(silence):
                raise
