"""Write lost tombstones: for keys that the source has deleted, by the flow's own writer.

The source's cleaner has removed the keys and their tombstones before they were copied
(`planning.lost_deletions`), so the source has no record whose copy would delete them on the target. An operator
decides; then the tombstones of a partition and its position after them are written in one transaction: a later run
finds both or neither. Their offsets are not copies of source records: the map does not have them, and each tombstone
says so itself (`records.own_deletions`).
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.cluster.raw.client import RawClient, open_clients
from mirror_lib.cluster.topics.position_format import Position, PositionState
from mirror_lib.config.model import Fencing, FlowConfig
from mirror_lib.copy.run_lock import RunLease
from mirror_lib.copy.takeover.hanging_transactions import coordinator_deadline
from mirror_lib.copy.takeover.partition_appender import PartitionAppender
from mirror_lib.copy.takeover.partition_reader import PartitionReader
from mirror_lib.copy.transfer.open_positions import transactional_id
from mirror_lib.errors import (
    ConfigurationError,
    DeletionsPossiblyLostError,
    DirtyStartError,
    MirrorError,
    RunLockedError,
    TargetDivergedError,
    Where,
)
from mirror_lib.features.transforms.copy.transactions import Transaction
from mirror_lib.features.verify.own_deletions import deletion
from mirror_lib.identity.positions import position_row
from mirror_lib.ledger.rows import DELETIONS_WRITTEN, GapRow, GapState
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.facts import with_flow
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import CopyJob, PositionTopic
from mirror_lib.planning.unknown_history import note_histories
from mirror_lib.records.builder import rebuild
from mirror_lib.records.header import Codec
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.records.records import Record
from mirror_lib.records.stamping import stamp
from mirror_lib.records.varint import decode_varint
from mirror_lib.topology.names import TopicPartition

#: Maximum number of keys of a batch, and the bytes of a batch with several of them, or with one.
_KEYS_AT_ONCE, _BATCH_BYTES, _MESSAGE_BYTES = 2_000, 64 * 1024, 1_000_000
#: Timeout of the transaction with which the identity is requested.
_TRANSACTION_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class KeyDeletion:
    """The tombstones to be written to one partition; they can be printed before."""

    source: TopicPartition
    target: TopicPartition
    keys: tuple[bytes, ...]
    #: Source offset up to which no record has these keys.
    source_read_to: int
    before: Position
    #: The last claim number of the partition.
    claim: int

    def __str__(self) -> str:
        return (
            f"{self.source}: {len(self.keys):,} keys exist on {self.target} that the source has deleted; their "
            f"tombstones are written from offset {self.before.target_offset}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {
            "topic": self.source.topic,
            "partition": self.source.partition,
            "target_topic": self.target.topic,
            "keys": len(self.keys),
            "target_offset": self.before.target_offset,
        }


def plan_key_deletion(
    flow: FlowConfig,
    clusters: FlowClusters,
    source: TopicPartition,
    target: TopicPartition,
    offsets: Set[int],
    *,
    source_read_to: int,
) -> KeyDeletion:
    """Return the tombstones to write to a partition; change nothing.

    No run may be copying: take the run lock before the offsets are determined.

    Args:
        offsets: offsets of the newest records of the keys on the target.
        source_read_to: source offset up to which no record has the keys.

    Raises:
        ConfigurationError: the flow has no transactional ids.
        DirtyStartError: the last run did not end cleanly, or another producer wrote to the target.
        MirrorError: a cluster does not respond.
    """
    where = Where(flow=str(flow.flow), topic=source.topic, partition=source.partition)
    if flow.fencing is not Fencing.TRANSACTIONAL:
        raise ConfigurationError(
            "tombstones are written in a transaction, but mirror.fencing=none uses no transactional ids.",
            where=where,
            action="Copy the topic again: delete it on the target, run the flow, and `mirror gaps recopy`.",
        )
    snapshot = clusters.positions.read_all()
    stored = snapshot.positions.get(source)
    end = clusters.target_admin.list_offsets([target], OffsetSpec.LATEST)[target]
    if end.error is not None:
        raise with_flow(flow, end.error, source)
    position = None if stored is None else stored.position
    if position is None or position.state is not PositionState.CLOSED or position.target_offset != end.offset:
        raise DirtyStartError(
            f"the last run did not end cleanly, or another producer wrote to {target}.",
            where=where,
            action="Run the flow, which finds out, then repeat the command.",
        )
    keys = asyncio.run(_keys(flow, clusters, target, offsets, end.offset))
    return KeyDeletion(source, target, keys, source_read_to, position, snapshot.claims.get(source, 0))


async def _keys(
    flow: FlowConfig, clusters: FlowClusters, target: TopicPartition, offsets: Set[int], end: int
) -> tuple[bytes, ...]:
    """The keys of the records at some offsets."""
    found: list[bytes] = []
    async with open_clients(clusters.target_data) as (client,):
        reader = PartitionReader(client, target, flow.copy_settings, read_committed=True)
        async for record in _records(reader, min(offsets, default=end), end):
            if record.offset in offsets:
                key = _key(record)
                assert key is not None
                found.append(key)
    return tuple(found)


async def _records(reader: PartitionReader, offset: int, end: int | None = None) -> AsyncIterator[Record]:
    """The records of a log from an offset to `end`, or to the log's end."""
    while end is None or offset < end:
        spans = await reader.read(offset)
        if not spans:
            return
        for span in spans:
            for record in span.records():
                if offset <= record.offset and (end is None or record.offset < end):
                    yield record
        offset = max(offset, spans[-1].next_offset)


def _key(record: Record) -> bytes | None:
    size, at = decode_varint(record.tail, 0)
    return None if size < 0 else bytes(record.tail[at : at + size])


def delete_keys(
    flow: FlowConfig,
    clusters: FlowClusters,
    ledger: Ledger,
    lease: RunLease,
    planned: KeyDeletion,
    *,
    run_id: str,
    by: str,
    note: str | None = None,
) -> int:
    """Write the tombstones of a partition, and record in the ledger who decided; return the number of tombstones.

    A key that exists on the source again is skipped: its new record is after the position and will be copied.

    Raises:
        RunLockedError: the run lock was lost, or a run has claimed the partition nevertheless.
        TargetDivergedError: another producer wrote to the target meanwhile.
        MirrorError: a cluster refused, or did not respond in time. Then either all or nothing is committed.
    """
    return asyncio.run(_Writing(flow, clusters, ledger, lease, planned, run_id).run(by, note))


@dataclass(slots=True)
class _Writing:
    _flow: FlowConfig
    _clusters: FlowClusters
    _ledger: Ledger
    _lease: RunLease
    _planned: KeyDeletion
    _run_id: str
    _name: str = field(init=False)
    _where: Where = field(init=False)

    def __post_init__(self) -> None:
        source = self._planned.source
        self._name = transactional_id(self._flow.flow, self._planned.target)
        self._where = Where(flow=str(self._flow.flow), topic=source.topic, partition=source.partition)

    async def run(self, by: str, note: str | None) -> int:
        async with open_clients(self._clusters.source_data, self._clusters.target_data) as (source, target):
            keys = await self._still_deleted(source)
            first = self._planned.before.target_offset
            assert first is not None
            after = await self._write(target, keys, first) if keys else self._planned.before
        self._note(after, first, len(keys), by=by, note=note)
        return len(keys)

    async def _still_deleted(self, source: RawClient) -> Sequence[bytes]:
        """The keys that the source has not got again since it was read."""
        reader = PartitionReader(
            source, self._planned.source, self._flow.copy_settings, read_committed=self._clusters.read_committed
        )
        again = {_key(record) async for record in _records(reader, self._planned.source_read_to)}
        return [key for key in self._planned.keys if key not in again]

    async def _write(self, client: RawClient, keys: Sequence[bytes], first: int) -> Position:
        # It brings numpy along, which runs do without.
        planned = self._planned
        self._lease.check()
        identity = await client.producers.init_producer_id(self._name, deadline=coordinator_deadline())
        opened = replace(
            planned.before,
            state=PositionState.OPEN,
            producer_id=identity.producer_id,
            epoch=identity.epoch,
            run_id=self._run_id,
            claim=planned.claim + 1,
            skipped=(),
            runs=(),
            map_parts=0,
            in_transactions=True,
        )
        await asyncio.to_thread(self._claim, opened)
        transaction = Transaction(self._job(), client, self._name, identity, timeout_seconds=_TRANSACTION_SECONDS)
        writer = PartitionAppender(
            client,
            planned.target,
            self._flow.copy_settings.retry_max_seconds,
            where=self._where,
            doing=f"write tombstones to {planned.target}",
            transactional_id=self._name,
        )
        end = first
        try:
            await transaction.cover(planned.target)
            for number in range(0, len(keys), _KEYS_AT_ONCE):
                for batch in self._batches(keys[number : number + _KEYS_AT_ONCE], end):
                    stamp(batch, identity.producer_id, identity.epoch, end - first, in_transaction=True)
                    await writer.append(batch)
                    end += batch.count
            self._lease.check()
            # The transaction's marker takes an offset too.
            closed = replace(opened, state=PositionState.CLOSED, target_offset=end + 1, in_transactions=False)
            await transaction.commit([closed], {planned.target: end + 1})
        except MirrorError:
            await transaction.abort()
            raise
        _, log_end = await client.log_ends(await writer.leader(), planned.target)
        if log_end != end + 1:
            raise TargetDivergedError(
                f"the log of {planned.target} ends at {log_end}, expected {end + 1}: another producer wrote to it.",
                where=self._where,
                action="Find the other producer. The tombstones are written; the next run stops the partition.",
            )
        return closed

    def _batches(self, keys: Sequence[bytes], base_offset: int) -> Iterator[ReadyBatch]:
        """One batch for each group of keys that fits; each batch has the offset at which it will be appended."""
        now_ms = int(time.time() * 1000)
        left = list(keys)
        while left:
            flow = str(self._flow.flow)
            records = [Record(at, now_ms, deletion(key, flow, base_offset)) for at, key in enumerate(left)]
            batch = next(
                rebuild(iter(records), codec=Codec.NONE, batch_max_bytes=_BATCH_BYTES, max_message_bytes=_MESSAGE_BYTES)
            )
            yield batch
            del left[: batch.count]
            base_offset += batch.count

    def _claim(self, opened: Position) -> None:
        store = self._clusters.positions
        before = store.read_all()
        if before.claims.get(opened.source, 0) != self._planned.claim:
            raise self._overtaken()
        store.write([opened])
        for stored in store.read_since(before):
            other = stored.position
            if other.source == opened.source and other.run_id != self._run_id:
                raise self._overtaken()

    def _overtaken(self) -> MirrorError:
        return RunLockedError(
            f"another run claimed {self._planned.source} at the same time.",
            where=self._where,
            action="Let only one run be active at a time, then repeat the command.",
        )

    def _job(self) -> CopyJob:
        flow = self._flow
        return CopyJob(
            flow=flow.flow,
            run_id=self._run_id,
            source=self._clusters.source_data,
            target=self._clusters.target_data,
            read_committed=self._clusters.read_committed,
            settings=flow.copy_settings,
            bins=(),
            positions=PositionTopic(
                self._clusters.positions_connection,
                flow.offset_storage_topic,
                flow.source_alias,
                flush_seconds=0.0,
            ),
        )

    def _note(self, after: Position, first: int, count: int, *, by: str, note: str | None) -> None:
        flow, source, now = str(self._flow.flow), self._planned.source, datetime.now(UTC)
        if count:
            note_histories(self._flow, {source: self._planned.before}, self._ledger, run_id=self._run_id)
            self._ledger.save_positions([position_row(self._flow, after)])
        for gap in self._ledger.open_gaps(flow):
            if (gap.topic, gap.partition) == source and gap.cause == DeletionsPossiblyLostError.reason:
                self._ledger.decide_gap(gap.id, GapState.ACCEPTED, by=by, note=note)
        at = after.offset + 1
        self._ledger.record_gap(
            GapRow(
                id=str(uuid.uuid4()),
                flow=flow,
                topic=source.topic,
                partition=source.partition,
                cause=DELETIONS_WRITTEN,
                # No record of the source is concerned.
                first_offset=at,
                next_offset=at,
                topic_id=after.topic_id,
                detail=f"{count} tombstones were written to {self._planned.target}, offsets {first} to "
                f"{first + count - 1}."
                if count
                else "no key is left to delete.",
                run_id=self._run_id,
                found_at=now,
                state=GapState.ACCEPTED.value,
                decided_by=by,
                decided_at=now,
                note=note,
            )
        )
