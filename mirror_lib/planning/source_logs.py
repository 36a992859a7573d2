"""The current state of the source's logs: their extent, their leader epochs, their sizes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mirror_lib.cluster.admin.client import ClusterAdmin, OffsetFact
from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.kafka_errors import UnsupportedRequestError
from mirror_lib.cluster.raw.client import RawClient, open_clients
from mirror_lib.cluster.raw.open_transactions import HiddenRecords, describe_hidden
from mirror_lib.cluster.topics.position_store import StoredPosition
from mirror_lib.config.first_start import FirstStarts
from mirror_lib.errors import AuthorizationError, ClusterError, MirrorError
from mirror_lib.identity.last_records import compare_last_records
from mirror_lib.planning.idle_looks import in_turn
from mirror_lib.records.last_records import LastRecord
from mirror_lib.topology.names import TopicPartition

Positions = Mapping[TopicPartition, StoredPosition]

#: Transactions that last longer than a producer's default `transaction.timeout.ms` are named.
LONG_OPEN_SECONDS = 60


@dataclass(frozen=True, slots=True)
class SourceLogs:
    """The source's responses about some partitions; each may be an error."""

    starts: Mapping[TopicPartition, OffsetFact]
    #: The end for a consumer with the flow's isolation level.
    ends: Mapping[TopicPartition, OffsetFact]
    #: For first starts by time: the offset of that time, -1 if all records are older.
    firsts: Mapping[TopicPartition, OffsetFact]
    #: End of the leader epoch of the last copied record, -1 if the leader does not know it.
    epoch_ends: Mapping[TopicPartition, int | MirrorError]
    #: Bytes on disk; empty if not authorized, since sizes only balance the bins.
    sizes: Mapping[TopicPartition, int]
    #: Topics that have new records.
    behind: frozenset[str]
    #: Epoch milliseconds, right before the ends were requested.
    asked_at: int
    #: Records that open transactions hide from a `read_committed` consumer.
    hidden: Mapping[TopicPartition, HiddenRecords] = field(default_factory=dict)
    #: Whether the source still has the records in the positions; missing if not requested or unknown.
    last_records: Mapping[TopicPartition, bool | MirrorError] = field(default_factory=dict)

    def error(self, source: TopicPartition) -> MirrorError | None:
        """Why a partition cannot be planned now, None if it can."""
        first, epoch_end = self.firsts.get(source), self.epoch_ends.get(source)
        error = self.starts[source].error or self.ends[source].error or (first.error if first else None)
        # Without waiting for the new leader, a truncation would go unnoticed.
        if error is None and isinstance(epoch_end, MirrorError) and not _never_answers(epoch_end):
            error = epoch_end
        same = self.last_records.get(source)
        if error is None and isinstance(same, MirrorError):
            error = same
        return error

    def epoch_end(self, source: TopicPartition) -> int | None:
        """As `epoch_ends`, None if not requested or not reported."""
        end = self.epoch_ends.get(source)
        return None if isinstance(end, MirrorError) else end

    def last_record_same(self, source: TopicPartition) -> bool | None:
        """As `last_records`, None if not requested or unknown."""
        same = self.last_records.get(source)
        return None if isinstance(same, MirrorError) else same

    def first_offset(self, source: TopicPartition) -> int | None:
        """As `firsts`, None if not requested or if all records are older."""
        first = self.firsts.get(source)
        return None if first is None or first.offset < 0 else first.offset


def _never_answers(error: MirrorError) -> bool:
    return isinstance(error, (AuthorizationError, UnsupportedRequestError))


def read_source_logs(
    admin: ClusterAdmin,
    data: Connection,
    partitions: Sequence[TopicPartition],
    positions: Positions,
    *,
    read_committed: bool,
    first_starts: FirstStarts,
    known_again: set[TopicPartition] | None = None,
    turn: Callable[[], int] | None = None,
) -> SourceLogs:
    """Query the source about partitions; sizes only if there is something to copy.

    Args:
        known_again: partitions whose last copied records need not be checked; those that are found are added.
        turn: the number of this plan, if not all idle partitions can be checked in each; None checks them all.
    """
    starts = admin.list_offsets(partitions, OffsetSpec.EARLIEST)
    asked_at = int(time.time() * 1000)
    # Before the last stable offsets: records committed in between must not look hidden.
    replicated = admin.list_offsets(partitions, OffsetSpec.LATEST)
    ends: dict[TopicPartition, OffsetFact] = dict(replicated)
    hidden: Mapping[TopicPartition, HiddenRecords] = {}
    if read_committed:
        stable = admin.list_offsets(partitions, OffsetSpec.LAST_STABLE)
        hidden = dict(_hidden_records(replicated, stable))
        ends = {**stable, **dict(_hidden_ends(replicated, stable, positions))}
    times = {
        source: milliseconds
        for source in partitions
        if source not in positions and (milliseconds := first_starts.of(source.topic).timestamp_ms) is not None
    }
    behind = frozenset(
        source.topic for source in partitions if _is_behind(starts[source], ends[source], positions.get(source))
    )
    epochs = dict(_epochs(ends, positions))
    known = dict(_last_records(starts, ends, positions))
    idle = {each for each in known if positions[each].position.offset + 1 == ends[each].offset}
    asked = in_turn(known, idle, turn)
    known_again = set() if known_again is None else known_again
    records = {source: record for source, record in asked.items() if source not in known_again}
    sizes, epoch_ends, last_records, hidden = (
        asyncio.run(_ask_leaders(data, behind, epochs, records, hidden, asked_at=asked_at))
        if behind or epochs or hidden or records
        else ({}, {}, {}, hidden)
    )
    known_again.update(source for source, same in last_records.items() if same is True)
    firsts = admin.offsets_at(times) if times else {}
    return SourceLogs(starts, ends, firsts, epoch_ends, sizes, behind, asked_at, hidden, last_records)


def _hidden_records(
    replicated: Mapping[TopicPartition, OffsetFact], stable: Mapping[TopicPartition, OffsetFact]
) -> Iterator[tuple[TopicPartition, HiddenRecords]]:
    for source, end in replicated.items():
        first = stable[source]
        if end.error is None and first.error is None and first.offset < end.offset:
            yield source, HiddenRecords(first.offset, end.offset)


def _hidden_ends(
    replicated: Mapping[TopicPartition, OffsetFact], stable: Mapping[TopicPartition, OffsetFact], positions: Positions
) -> Iterator[tuple[TopicPartition, OffsetFact]]:
    """Positions after the last stable offset and not after the log's end: there is nothing to read there now.

    They are from a time when the flow copied open transactions.
    """
    for source, fact in stable.items():
        if fact.error is not None or source not in positions:
            continue
        following, end = positions[source].position.offset + 1, replicated[source]
        if following > fact.offset and end.error is None and end.offset >= following:
            yield source, OffsetFact(offset=following)


def _is_behind(start: OffsetFact, end: OffsetFact, stored: StoredPosition | None) -> bool:
    if start.error or end.error or start.offset == end.offset:
        return False
    return stored is None or stored.position.offset + 1 != end.offset


def _epochs(ends: Mapping[TopicPartition, OffsetFact], positions: Positions) -> Iterator[tuple[TopicPartition, int]]:
    """The leader epochs of positions that are before the log's end, or after it."""
    for source, end in ends.items():
        position = positions[source].position if source in positions else None
        if position is None or position.leader_epoch is None or end.error is not None:
            continue
        if position.offset + 1 != end.offset:
            yield source, position.leader_epoch


def _last_records(
    starts: Mapping[TopicPartition, OffsetFact], ends: Mapping[TopicPartition, OffsetFact], positions: Positions
) -> Iterator[tuple[TopicPartition, LastRecord]]:
    """The records in the positions, if the log still has their offsets."""
    for source, end in ends.items():
        position = positions[source].position if source in positions else None
        if position is None or position.last_record is None or starts[source].error or end.error:
            continue
        if position.offset + 1 <= end.offset and starts[source].offset <= position.last_record.offset:
            yield source, position.last_record


async def _ask_leaders(
    data: Connection,
    topics: Iterable[str],
    epochs: Mapping[TopicPartition, int],
    records: Mapping[TopicPartition, LastRecord],
    hidden: Mapping[TopicPartition, HiddenRecords],
    *,
    asked_at: int,
) -> tuple[
    Mapping[TopicPartition, int],
    Mapping[TopicPartition, int | MirrorError],
    Mapping[TopicPartition, bool | MirrorError],
    Mapping[TopicPartition, HiddenRecords],
]:
    """Sizes of topics, ends of epochs, existing last records, and hiding transactions, over one set of connections."""
    sized = {*topics, *(source.topic for source in hidden)}
    try:
        async with open_clients(data) as (client,):
            sizes, ends, same = await asyncio.gather(
                _log_sizes(client, sized), client.epoch_ends(epochs), compare_last_records(client, records)
            )
            described = await describe_hidden(client, hidden, old_before=asked_at - LONG_OPEN_SECONDS * 1000)
            return sizes, ends, same, described
    except ClusterError as error:
        return {}, dict.fromkeys(epochs, error), dict.fromkeys(records, error) if error.retriable else {}, hidden


async def _log_sizes(client: RawClient, topics: Iterable[str]) -> Mapping[TopicPartition, int]:
    try:
        return await client.log_sizes(topics) if topics else {}
    except ClusterError:
        return {}
