"""One producer's transactions: each holds rows of some source partitions, and the position of every one of them.

The producer of the rows also writes the positions (as in Connect's `ExactlyOnceWorkerSourceTask`), so both are
committed together, and a fenced producer cannot store positions. A dead run's open transaction is aborted by the
take-over of the transactional id (KIP-98).

The copy task must not load numpy and Arrow: no module that it imports may import this one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.kafka_errors import error_for_code
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.cluster.topics.position_format import Position, PositionKeys, encode_value, partition_for
from mirror_lib.copy.takeover.hanging_transactions import coordinator_deadline
from mirror_lib.copy.takeover.partition_appender import PartitionAppender
from mirror_lib.copy.takeover.transaction_markers import Markers, overtime
from mirror_lib.copy.transfer.producer_state import SEQUENCES
from mirror_lib.errors import MirrorError, Where
from mirror_lib.planning.model import CopyJob
from mirror_lib.records.builder import rebuild
from mirror_lib.records.header import Codec
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.records.records import Record
from mirror_lib.records.stamping import stamp
from mirror_lib.records.varint import encode_varint, with_size
from mirror_lib.topology.access import Grant, Operation
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)
#: A little less than the default batch limit of a broker (`message.max.bytes`).
_BATCH_BYTES, _MESSAGE_BYTES = 512 * 1024, 1_000_000


class Transaction:
    """The transactions of one producer, one after the other. All but `covered` and `began` is for the event loop."""

    def __init__(
        self, job: CopyJob, client: RawClient, name: str, identity: ProducerIdentity, *, timeout_seconds: float
    ) -> None:
        """Start without a transaction.

        Args:
            job: a job with a position topic.
            client: client of the target, which has the position topic too.
            name: the transactional id.
            identity: its current producer id and epoch.
            timeout_seconds: time after which the coordinator aborts an open transaction.
        """
        assert job.positions is not None
        self.name = name
        self.identity = identity
        self._timeout_seconds = timeout_seconds
        #: When the open transaction began, by the monotonic clock; None if there is none.
        self.began: float | None = None
        self._covered: frozenset[TopicPartition] = frozenset()
        #: Partitions of the position topic in the open transaction.
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
        #: By partition of the position topic; the numbers continue from one transaction to the next.
        self._sequences: dict[int, int] = {}

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The target partitions in the open transaction."""
        return self._covered

    def explain(self, error: MirrorError) -> MirrorError:
        """An error of its producer, which is fenced as well if its own transaction took too long."""
        return overtime(
            error,
            self.name,
            began=self.began,
            limit_seconds=self._timeout_seconds,
            action="Raise tasks.max, or copy less per run; with mirror.poison.policy=fail transactions end every ten "
            "seconds. The next run continues at the last committed record.",
        )

    async def cover(self, target: TopicPartition) -> None:
        """Add a target partition to the transaction before it is written; begin a transaction if none is open.

        Raises:
            MirrorError: the coordinator refused, or did not respond in time.
        """
        await self._add([target])
        self.began = self.began or time.monotonic()
        self._covered |= {target}

    async def commit(self, positions: Sequence[Position], ends: Mapping[TopicPartition, int]) -> None:
        """Store positions and commit the transaction, all of whose rows are acknowledged.

        Args:
            ends: log end offset after the marker, for all its target partitions.

        Raises:
            FencedError: another run has taken over, or the transaction took too long; it is not committed.
            MirrorError: a broker refused, or did not respond in time: the positions show whether it is committed.
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
        self._reset()
        # The next batch must follow the marker. And without the markers of the position topic, the next run would not
        # see the positions.
        await self._markers.complete(self.identity, ends, wanted)

    async def abort(self) -> None:
        """Abort the open transaction, so that readers need not wait for its timeout; a failure is only logged."""
        if self.began is None:
            return
        storing = self._storing
        self._reset()
        try:
            await self._end(commit=False)
            if storing:
                # Again, for missing markers in the position topic (`transaction_markers`): no other run would have them
                # written there, while a take-over completes those on the target partitions of the rows.
                await self._add(storing)
                await self._end(commit=False)
        except MirrorError as error:
            _log.warning("the transaction of %s was not aborted; it ends at its timeout: %s", self.name, error)

    async def _add(self, partitions: Iterable[TopicPartition]) -> None:
        await self._client.producers.add_to_transaction(
            self.name, self.identity, partitions, deadline=coordinator_deadline()
        )

    async def _end(self, *, commit: bool) -> None:
        await self._client.producers.end_transaction(
            self.name, self.identity, commit=commit, deadline=coordinator_deadline()
        )

    def _reset(self) -> None:
        self.began, self._covered, self._storing = None, frozenset(), ()

    # ------------------------------------------------------------ positions

    async def _partitions(self) -> int | None:
        found = self._client.partition_count(self._topic)
        if found is None:
            await self._client.refresh_leaders([self._topic])
            found = self._client.partition_count(self._topic)
        return found

    def _records(self, positions: Sequence[Position]) -> dict[int, list[Record]]:
        """The records of the positions, by their partition of the position topic."""
        count = self._client.partition_count(self._topic) or 0
        now_ms = int(time.time() * 1000)
        found: dict[int, list[Record]] = {}
        for position in positions:
            key = self._keys.encode(position.source)
            records = found.setdefault(partition_for(key, count), [])
            records.append(
                Record(len(records), now_ms, with_size(key) + with_size(encode_value(position)) + _NO_HEADERS)
            )
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
