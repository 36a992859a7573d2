"""Take over a copy with the same offsets: each record of the target is at the offset of its source record.

There is no place for the marker that makes a leader refuse the earlier writer of a partition. So coordinators end its
transactions and those of its markers, and its lease is waited out.

Unlike the tail of another copy (`tail_match`), nothing has to be guessed: whatever the target has at an offset is
compared with what the source has there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace

from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.cluster.topics.position_format import OmittedRange
from mirror_lib.copy.takeover.fencing import FENCING_SECONDS, check_not_truncated
from mirror_lib.copy.takeover.partition_reader import PartitionReader
from mirror_lib.copy.takeover.stable_end import stable_end
from mirror_lib.copy.takeover.tail_match import MismatchError, TailMatch, print_of
from mirror_lib.copy.transfer.open_positions import hole_writer_id
from mirror_lib.errors import Where
from mirror_lib.offsets.runs import RunBuilder
from mirror_lib.planning.model import HoleWriter, OpenPartition
from mirror_lib.records.spans import Span
from mirror_lib.topology.names import FlowId

#: Reads the spans of a log from an offset on; none at its end.
Read = Callable[[int], Awaitable[Sequence[Span]]]
_Print = tuple[bytes, int]


async def end_markers(flow: FlowId, partitions: Sequence[OpenPartition], client: RawClient) -> list[OpenPartition]:
    """End the transactions that earlier writers of a task's partitions have begun for markers.

    Each marker fills the hole for which it was begun, since nothing else is written to a partition meanwhile.

    Returns:
        The partitions with the task's newest writer of markers.

    Raises:
        MirrorError: the cluster did not respond in time, or refused.
    """
    deadline = time.monotonic() + FENCING_SECONDS
    (own,) = {each.hole_writer.number for each in partitions if each.hole_writer is not None}
    earlier = {number for each in partitions if each.takeover for number in each.takeover.hole_writers}
    identities = {
        number: await client.producers.init_producer_id(hole_writer_id(flow, number), deadline=deadline)
        for number in sorted(earlier | {own})
    }
    writer = HoleWriter(own, identities[own].producer_id, identities[own].epoch)
    return [replace(each, hole_writer=writer) for each in partitions]


async def fence_without_marker(
    opened: OpenPartition, client: RawClient, log: PartitionReader, *, retry_seconds: float, where: Where
) -> tuple[ProducerIdentity, int]:
    """End what the earlier writer of a partition may do; return the new one, and the end of the target's log.

    Raises:
        TargetTruncatedError: the target is shorter than what was certainly copied.
        MirrorError: the cluster did not respond in time, or refused.
    """
    takeover, target = opened.takeover, opened.plan.target
    assert takeover is not None
    assert opened.transactional_id is not None
    deadline = time.monotonic() + FENCING_SECONDS
    identity = await client.producers.init_producer_id(opened.transactional_id, deadline=deadline)
    await asyncio.sleep(opened.lease_seconds)
    end = await stable_end(client, target, log, retry_seconds=retry_seconds, where=where)
    check_not_truncated(target, end, takeover.target_offset, where)
    return identity, end


async def match_by_offset(
    read_source: Read,
    read_target: Read,
    first: int,
    end: int,
    *,
    source_offset: int,
    skipped: Sequence[OmittedRange] = (),
) -> TailMatch:
    """Compare the records of both logs at [first, end).

    A record that only one side has may have been compacted away on the other one; a marker may not have its place.

    Args:
        source_offset: the source offset before which all is on the target, or rightly dropped.
        skipped: ranges of source offsets that the earlier writer has skipped.

    Raises:
        MismatchError: other records, or a marker in the place of one.
    """
    runs, records, unknown, offset = RunBuilder(), 0, 0, first
    while offset < end:
        target = await read_target(offset)
        if not target:
            break
        stop = min(target[-1].next_offset, end)
        there, hidden, retimed = _prints(target, offset, stop)
        here, known = await _source_prints(read_source, offset, stop)
        for place in sorted(there.keys() | here.keys()):
            mine, theirs = here.get(place), there.get(place)
            if theirs is None:
                is_lost = any(start <= place < after for start, after in hidden)
                if is_lost and not any(each.first_offset <= place < each.next_offset for each in skipped):
                    raise MismatchError(place, place)
            elif mine is None:
                unknown += 1
            elif mine[0] != theirs[0] or (mine[1] != theirs[1] and not retimed):
                raise MismatchError(place, place)
            else:
                runs.add(place, place, 1)
                records += 1
        if known < stop:
            # The source's next records will have these offsets.
            raise MismatchError(known, known)
        offset = stop
    return TailMatch(max(source_offset, end), records, unknown, runs.runs())


def _prints(spans: Iterable[Span], first: int, end: int) -> tuple[dict[int, _Print], list[tuple[int, int]], bool]:
    """Prints of records by offset, ranges that no consumer sees, and whether the broker set timestamps."""
    found: dict[int, _Print] = {}
    hidden: list[tuple[int, int]] = []
    retimed = False
    for span in spans:
        if span.is_hidden:
            hidden.append((max(span.first, first), min(span.next_offset, end)))
            continue
        retimed |= span.log_append_time
        found.update((each.offset, print_of(each)) for each in span.records() if first <= each.offset < end)
    return found, hidden, retimed


async def _source_prints(read: Read, first: int, end: int) -> tuple[dict[int, _Print], int]:
    """Prints of records by offset, and the offset up to which the source has been read: its end may come before."""
    found: dict[int, _Print] = {}
    offset = first
    while offset < end:
        spans = await read(offset)
        if not spans:
            break
        found.update(_prints(spans, offset, end)[0])
        offset = spans[-1].next_offset
    return found, offset
