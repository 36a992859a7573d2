"""Read target partitions that transforms send records to: in any order, so their digests are summed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import RawClient, open_clients
from mirror_lib.errors import CorruptBatchError, MirrorError, Where
from mirror_lib.features.verify.compare.record_columns import Columns, columns
from mirror_lib.features.verify.kept_error import KeptError
from mirror_lib.features.verify.log_reader import LogReader, LogStream
from mirror_lib.features.verify.model import RoutedCheck
from mirror_lib.features.verify.routed.findings import Place, TargetDigests
from mirror_lib.features.verify.routed.multiset import Multiset, record_digests
from mirror_lib.records.compression.codecs import CodecError
from mirror_lib.records.records import RecordError
from mirror_lib.records.spans import Span

_log = logging.getLogger(__name__)
_CHUNK = 4 * 1024 * 1024
#: Offsets that are kept of unexpected records, and of identical records.
KEPT = 20


@dataclass(frozen=True, slots=True)
class DigestsJob:
    """Target partitions to read. Holds credentials: never log it.

    Attributes:
        bins: each is one task.
        key: of the digests.
        wanted: searched digests, whose offsets are returned; only their spans are read then.
    """

    flow: str
    target: Connection = field(repr=False)
    bins: tuple[tuple[RoutedCheck, ...], ...]
    key: bytes = field(repr=False)
    retry_seconds: float = 120.0
    #: Epoch seconds after which no further range is begun; None is no bound.
    ends_at: float | None = None
    wanted: Mapping[Place, frozenset[bytes]] = field(default_factory=dict)


def read_target_digests(job: DigestsJob, number: int) -> list[TargetDigests]:
    """Return the contents of the partitions of bin `number`; errors of a partition are in its result, never raised."""
    return asyncio.run(_read(job, job.bins[number]))


async def _read(job: DigestsJob, checks: Sequence[RoutedCheck]) -> list[TargetDigests]:
    try:
        async with open_clients(job.target) as (target,):
            return [await _Reading(job, check, target).run() for check in checks]
    except MirrorError as error:
        return [TargetDigests(check.target, error=error) for check in checks]


class _Reading:
    def __init__(self, job: DigestsJob, check: RoutedCheck, target: RawClient) -> None:
        self._job = job
        self._check = check
        self._target = target
        self._multisets = {each.number: Multiset() for each in check.spans}
        self._unexpected = 0
        self._unexpected_offsets: list[int] = []
        self._places: dict[tuple[int, bytes], list[int]] = {}
        self._times_replaced = False
        self._log_start = 0
        self._bytes = 0
        self._stopped = False

    async def run(self) -> TargetDigests:
        with KeptError(f"reading {self._check.target} for a verification") as kept:
            for each in self._check.spans:
                wanted = self._job.wanted.get((self._check.target, each.number))
                if wanted or not self._job.wanted:
                    await self._range(each.target_first, each.target_next, each.number, wanted)
            for first, end in () if self._job.wanted else self._check.outside:
                await self._range(first, end, None, None)
        return TargetDigests(
            target=self._check.target,
            multisets=self._multisets,
            unexpected=self._unexpected,
            unexpected_offsets=tuple(self._unexpected_offsets),
            times_replaced=self._times_replaced,
            log_start=self._log_start,
            read_bytes=self._bytes,
            stopped=self._stopped,
            error=kept.error,
            places={place: tuple(offsets) for place, offsets in self._places.items()},
        )

    async def _range(self, first: int, end: int, number: int | None, wanted: frozenset[bytes] | None) -> None:
        self._stopped = self._stopped or (self._job.ends_at is not None and time.time() >= self._job.ends_at)
        if self._stopped:
            return
        end = min(end, self._check.log_end)
        # Aborted records do not count.
        reader = LogReader(
            self._target,
            self._job.target,
            self._check.target,
            read_committed=True,
            retry_seconds=self._job.retry_seconds,
            chunk_bytes=_CHUNK,
        )
        stream = LogStream(reader, first, end)
        reached = first
        try:
            while reached < end:
                chunk = await stream.take(end)
                self._log_start = max(self._log_start, chunk.log_start or 0)
                self._bytes += chunk.size
                reached = chunk.next_offset
                for span in chunk.spans:
                    if not span.is_hidden:
                        assert isinstance(span, Span)
                        self._take(span, first, end, number, wanted)
        finally:
            await stream.close()

    def _take(self, span: Span, first: int, end: int, number: int | None, wanted: frozenset[bytes] | None) -> None:
        try:
            found = _within(columns(span), first, end)
        except (RecordError, CodecError) as error:
            raise CorruptBatchError(
                f"a batch cannot be decoded: {error}.",
                where=Where(
                    flow=self._job.flow, topic=self._check.target.topic, partition=self._check.target.partition
                ),
                action="Compare the replicas of the partition (kafka-dump-log).",
            ) from error
        if not found.offsets:
            return
        if number is None:
            self._unexpected += len(found.offsets)
            self._unexpected_offsets += found.offsets[: KEPT - len(self._unexpected_offsets)]
            return
        self._times_replaced |= self._check.timed and span.log_append_time
        digests = record_digests(self._job.key, found.times if self._check.timed else None, found.tails)
        if wanted is None:
            self._multisets[number].add(digests)
            return
        for at, digest in enumerate(np.ascontiguousarray(digests).view("V16").ravel().tolist()):
            if digest in wanted:
                places = self._places.setdefault((number, digest), [])
                places.append(found.offsets[at])
                # The last of them: additions are at the end.
                del places[:-KEPT]


def _within(found: Columns, first: int, end: int) -> Columns:
    """Of a whole batch, what lies in [first, end)."""
    if not found.offsets or (found.offsets[0] >= first and found.offsets[-1] < end):
        return found
    kept = [at for at, offset in enumerate(found.offsets) if first <= offset < end]
    return Columns(
        [found.offsets[at] for at in kept], [found.times[at] for at in kept], [found.tails[at] for at in kept]
    )


def bins_of(checks: Sequence[RoutedCheck], most: int) -> tuple[tuple[RoutedCheck, ...], ...]:
    """Divide the partitions that need reading into at most `most` tasks."""
    wanted = [check for check in checks if check.spans or check.outside]
    count = min(max(most, 1), len(wanted))
    return tuple(tuple(wanted[number::count]) for number in range(count))
