"""One producer's transactions: rows of some source partitions, and in each transaction how far every one of them came.

The positions are written by the producer of the rows (as Connect's `ExactlyOnceWorkerSourceTask` does), so they count
when the rows count, and whoever is fenced can store none. What a run that died has left open is aborted by whoever
takes over the transactional id (KIP-98).

numpy and Arrow are not for the copy task: nothing that it imports may import this.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mirror_lib.cluster.batches import Codec, ReadyBatch, Record, encode_varint, rebuild, sized, stamp
from mirror_lib.cluster.protocol import ErrorCode, error_for_code
from mirror_lib.cluster.raw import ProducerIdentity, RawClient
from mirror_lib.cluster.topics import Position, PositionKeys, encode_value, partition_for
from mirror_lib.errors import MirrorError, Where
from mirror_lib.relay.copy import SEQUENCES
from mirror_lib.relay.model import CopyJob
from mirror_lib.relay.takeover import Markers, PartitionAppender, coordinator_deadline, overtime
from mirror_lib.topology import Grant, Operation, TopicPartition

_log = logging.getLogger(__name__)
#: What a broker takes unless the topic is set otherwise, less a little (`message.max.bytes`).
_BATCH_BYTES, _MESSAGE_BYTES = 512 * 1024, 1_000_000


class Transaction:
    """The transactions of one producer, one after the other. All but `covered` and `began` is for the event loop."""

    def __init__(
        self, job: CopyJob, client: RawClient, name: str, identity: ProducerIdentity, *, timeout_seconds: float
    ) -> None:
        """No transaction is open.

        Args:
            job: with a position topic.
            client: of the target, which holds the positions too.
            name: the transactional id.
            identity: which nobody has taken over.
            timeout_seconds: after which the coordinator aborts what is open.
        """
        assert job.positions is not None
        self.name = name
        self.identity = identity
        self._timeout_seconds = timeout_seconds
        #: When the open transaction began, by the monotonic clock; None when there is none.
        self.began: float | None = None
        self._covered: frozenset[TopicPartition] = frozenset()
        #: Partitions of the position topic that it covers.
        self._storing: Sequence[TopicPartition] = ()
        self._job = job
        self._client = client
        self._markers = Markers(
            client,
            name,
            retry_seconds=job.settings.retry_max_seconds,
            where=Where(flow=str(job.flow), cluster=client.cluster),
        )
        self._topic = job.positions.topic
        self._keys = PositionKeys(job.positions.source_alias, job.positions.connector)
        #: By the partition of the position topic; they go on from one transaction to the next.
        self._sequences: dict[int, int] = {}

    @property
    def covered(self) -> frozenset[TopicPartition]:
        """The target partitions that the open transaction writes to."""
        return self._covered

    def told(self, error: MirrorError) -> MirrorError:
        """An error of its producer, which is fenced as well when its own transaction took too long."""
        return overtime(
            error,
            self.name,
            began=self.began,
            limit_seconds=self._timeout_seconds,
            action="Give the flow more tasks (tasks.max) or runs that copy less; with mirror.poison.policy=fail "
            "transactions end every ten seconds. The next run goes on behind what is committed.",
        )

    async def cover(self, target: TopicPartition) -> None:
        """Take a target partition into the transaction, before anything is written there; begins one if need be.

        Raises:
            MirrorError: the coordinator refused, or did not answer in time.
        """
        await self._add([target])
        self.began = self.began or time.monotonic()
        self._covered |= {target}

    async def commit(self, positions: Sequence[Position], ends: Mapping[TopicPartition, int]) -> None:
        """Store positions and end the transaction, all of whose rows are acknowledged.

        Args:
            ends: of all that it covers, where the log ends behind its marker.

        Raises:
            FencedError: somebody has taken over, or it took too long; nothing of it counts.
            MirrorError: a broker refused, or did not answer in time: whether it counts is told by the positions.
        """
        if await self._partitions() is None:
            raise self._unknown_positions()
        by_partition = self._records(positions)
        wanted = [TopicPartition(self._topic, number) for number in by_partition]
        await self._add(wanted)
        self._storing = wanted
        for partition, records in zip(wanted, by_partition.values(), strict=True):
            for batch in _batches(records):
                await self._append(partition, batch)
        await self._end(commit=True)
        self._ended()
        # The next batch must find the marker in front of it. And without theirs the positions would not count, of which
        # whoever comes next is to know.
        await self._markers.complete(self.identity, ends, wanted)

    async def abort(self) -> None:
        """Give up what is open, so that readers need not wait for its timeout; that it fails is only logged."""
        if self.began is None:
            return
        storing = self._storing
        self._ended()
        try:
            await self._end(commit=False)
            if storing:
                # Again, for markers that were left out (`markers`): nobody else would have them written there, while
                # whoever takes over has them written to where the rows are.
                await self._add(storing)
                await self._end(commit=False)
        except MirrorError as error:
            _log.warning("the transaction of %s was not aborted; it ends by its timeout: %s", self.name, error)

    async def _add(self, partitions: Iterable[TopicPartition]) -> None:
        await self._client.producers.add_to_transaction(
            self.name, self.identity, partitions, deadline=coordinator_deadline()
        )

    async def _end(self, *, commit: bool) -> None:
        await self._client.producers.end_transaction(
            self.name, self.identity, commit=commit, deadline=coordinator_deadline()
        )

    def _ended(self) -> None:
        self.began, self._covered, self._storing = None, frozenset(), ()

    # ------------------------------------------------------------ positions

    async def _partitions(self) -> int | None:
        found = self._client.partition_count(self._topic)
        if found is None:
            await self._client.refresh_leaders([self._topic])
            found = self._client.partition_count(self._topic)
        return found

    def _records(self, positions: Sequence[Position]) -> dict[int, list[Record]]:
        """The records that hold the positions, by their partition of the position topic."""
        count = self._client.partition_count(self._topic) or 0
        now_ms = int(time.time() * 1000)
        found: dict[int, list[Record]] = {}
        for position in positions:
            key = self._keys.encode(position.source)
            records = found.setdefault(partition_for(key, count), [])
            records.append(Record(len(records), now_ms, sized(key) + sized(encode_value(position)) + _NO_HEADERS))
        return found

    async def _append(self, partition: TopicPartition, batch: ReadyBatch) -> None:
        sequence = self._sequences.get(partition.partition, 0)
        stamp(batch, self.identity.producer_id, self.identity.epoch, sequence, in_transaction=True)
        self._sequences[partition.partition] = (sequence + batch.count) % SEQUENCES
        writer = PartitionAppender(
            self._client,
            partition,
            self._job.settings.retry_max_seconds,
            where=Where(flow=str(self._job.flow), cluster=self._client.cluster, topic=self._topic),
            doing=f"store positions in {partition}",
            transactional_id=self.name,
        )
        await writer.append(batch)

    def _unknown_positions(self) -> MirrorError:
        where = Where(flow=str(self._job.flow), cluster=self._client.cluster, topic=self._topic)
        needs = Grant.on_topic(Operation.DESCRIBE, self._topic)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return error_for_code(code, where=where, doing="store positions", needs=needs)


_NO_HEADERS = encode_varint(0)


def _batches(records: Sequence[Record]) -> Iterator[ReadyBatch]:
    return rebuild(iter(records), codec=Codec.NONE, batch_max_bytes=_BATCH_BYTES, max_message_bytes=_MESSAGE_BYTES)
