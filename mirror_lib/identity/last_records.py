"""Check that a cluster still has the last copied records: a fetch from each leader, one batch per partition."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping

from mirror_lib.cluster.admin.results import batches
from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.kafka_errors import error_for_code
from mirror_lib.cluster.raw.client import FetchedPartition, FetchRequestPartition, RawClient
from mirror_lib.cluster.raw.leaders import by_leader
from mirror_lib.errors import ClusterError, MirrorError, Where
from mirror_lib.records.last_records import LastRecord, is_same, last_record_at
from mirror_lib.topology.access import Grant, Operation
from mirror_lib.topology.names import TopicPartition

#: Maximum bytes of one response; the batches of most partitions fit.
_REQUEST_BYTES = 8 * 1024 * 1024
#: The part of a partition in a response, if the size of its batch is not known.
_SHARE_BYTES = 128 * 1024
#: A record before the log's end is returned at once.
_WAIT_MS = 500

#: Whether the response to a fetch has the known record; None if that cannot be determined.
IsSame = Callable[[memoryview, LastRecord], bool | None]
Known = Mapping[TopicPartition, LastRecord]
#: Partitions, and bytes of their last batches, that are compared although nothing requires it now.
MOST_PARTITIONS = 1_000
MOST_BYTES = 64 * 1024 * 1024
#: An error if no leader responded.
Comparisons = dict[TopicPartition, bool | MirrorError]


def newest_copies(
    copies: Iterable[tuple[TopicPartition, LastRecord | None, int]],
) -> dict[TopicPartition, LastRecord]:
    """Return the record to compare in each target partition: the one that was written last, of several sources.

    Args:
        copies: target partition, record of a source's position, and log end offset of the target.
    """
    newest: dict[TopicPartition, LastRecord] = {}
    for target, record, end in copies:
        if record is not None and record.offset < end and (target not in newest or newest[target] < record):
            newest[target] = record
    return newest


async def compare_last_records(client: RawClient, known: Known, *, compare: IsSame = is_same) -> Comparisons:
    """Return whether the records still exist; partitions with an unknown result are missing."""
    if not known:
        return {}
    found: Comparisons = {}
    again = dict(known)
    # The first response may come from a broker that has just lost the leadership.
    for _ in range(2):
        failed = await client.refresh_leaders(partition.topic for partition in again)
        grouped = by_leader(client, again)
        for partition in grouped.without:
            code = failed.get(partition.topic) or ErrorCode.LEADER_NOT_AVAILABLE
            found[partition] = _error(client, partition, code)
        requests = (
            _ask(client, node, {each: again[each] for each in led}, compare) for node, led in grouped.led.items()
        )
        for compared in await asyncio.gather(*requests):
            found |= compared
        again = {
            each: known[each]
            for each, compared in found.items()
            if isinstance(compared, MirrorError) and compared.retriable
        }
        if not again:
            break
    # If a broker cannot read a batch, the copy reports the error if it needs that batch.
    return {each: compared for each, compared in found.items() if isinstance(compared, bool) or compared.retriable}


async def read_records_at(
    client: RawClient, offsets: Mapping[TopicPartition, int], *, append_times: bool = False
) -> dict[TopicPartition, LastRecord]:
    """Return the records at some offsets; those that cannot be read are missing.

    It reads about `MOST_BYTES` at most.

    Args:
        append_times: also those of logs that replace timestamps.
    """
    await client.refresh_leaders({partition.topic for partition in offsets})
    found: dict[TopicPartition, LastRecord] = {}
    for node, led in by_leader(client, offsets).led.items():
        found |= await _read_at(client, node, {each: offsets[each] for each in led}, append_times=append_times)
    return found


async def _read_at(
    client: RawClient, node: int, offsets: Mapping[TopicPartition, int], *, append_times: bool
) -> dict[TopicPartition, LastRecord]:
    found: dict[TopicPartition, LastRecord] = {}
    # A batch that is larger than its share is returned whole only to a request without other partitions.
    parts = list(batches(list(offsets), _REQUEST_BYTES // _SHARE_BYTES))
    size = 0
    try:
        while parts and size < MOST_BYTES:
            part = parts.pop(0)
            wanted = [FetchRequestPartition(*each, offsets[each], _SHARE_BYTES) for each in part]
            for response in await client.fetch(
                node, wanted, max_bytes=_REQUEST_BYTES, max_wait_ms=_WAIT_MS, read_committed=False
            ):
                partition = TopicPartition(response.topic, response.partition)
                size += len(response.records)
                if (
                    record := last_record_at(response.records, offsets[partition], append_times=append_times)
                ) is not None:
                    found[partition] = record
                elif not response.error_code and not _is_whole(response) and len(part) > 1:
                    parts.append([partition])
    except ClusterError:
        return found
    return found


async def _ask(client: RawClient, node: int, known: Known, compare: IsSame) -> Comparisons:
    found: Comparisons = {}
    unread: list[TopicPartition] = []
    try:
        for part in _requests(known):
            for response in await _fetch(client, node, part, known):
                partition = TopicPartition(response.topic, response.partition)
                if response.error_code:
                    found[partition] = _error(client, partition, response.error_code)
                elif (same := compare(response.records, known[partition])) is not None:
                    found[partition] = same
                elif not _is_whole(response):
                    unread.append(partition)
        # A batch that is larger than the copied one is returned whole only to a request without other partitions.
        for partition in unread:
            for response in await _fetch(client, node, [partition], known):
                same = None if response.error_code else compare(response.records, known[partition])
                if same is not None:
                    found[partition] = same
    except ClusterError as error:
        return {**dict.fromkeys(known, error), **found}
    return found


def _is_whole(response: FetchedPartition) -> bool:
    """True if the response has a whole batch: the record is then not in it."""
    size = len(response.records)
    return size >= _LENGTH_END and size >= _LENGTH_END + int.from_bytes(response.records[8:_LENGTH_END], "big")


#: Where the length field of a batch ends; the length counts from here.
_LENGTH_END = 12


async def _fetch(
    client: RawClient, node: int, partitions: Iterable[TopicPartition], known: Known
) -> list[FetchedPartition]:
    wanted = [FetchRequestPartition(*each, known[each].offset, known[each].batch_bytes) for each in partitions]
    return await client.fetch(node, wanted, max_bytes=_REQUEST_BYTES, max_wait_ms=_WAIT_MS, read_committed=False)


def _requests(known: Known) -> Iterator[list[TopicPartition]]:
    part: list[TopicPartition] = []
    size = 0
    for partition, record in known.items():
        if part and size + record.batch_bytes > _REQUEST_BYTES:
            yield part
            part, size = [], 0
        part.append(partition)
        size += record.batch_bytes
    if part:
        yield part


def _error(client: RawClient, partition: TopicPartition, code: int) -> MirrorError:
    where = Where(cluster=client.cluster, topic=partition.topic, partition=partition.partition)
    needs = Grant.on_topic(Operation.READ, partition.topic)
    return error_for_code(code, where=where, doing="read the last copied record", needs=needs)
