"""When MM2 writes offset-syncs, and how a batch job writes fewer with the same result for readers.

The rule is that of `OffsetSyncWriter.PartitionState` and `OffsetSyncWriter.maybeQueueOffsetSyncs` in Kafka's
connect/mirror. `OffsetSyncEmitter` is the rule as MM2 runs it, record by record; `due_syncs` computes the same syncs
from runs, and `flush_syncs` returns the syncs that a batch job writes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple, overload

from mirror_lib.offsets.runs import OffsetRun

#: Number of syncs at the newest end of a flush that `thin` always keeps.
KEEP_LAST = 32
#: The source offset of a sync that voids all earlier syncs of its partition: their records are not on the target.
BEFORE_ALL = -1


class SyncPoint(NamedTuple):
    """The source record at `upstream_offset` has `downstream_offset` on the target."""

    upstream_offset: int
    downstream_offset: int


class EmissionState(NamedTuple):
    """MM2's state of a partition between records; a task does not store it, so every run starts with a new one."""

    previous_upstream_offset: int = -1
    previous_downstream_offset: int = -1
    last_sync_downstream_offset: int = -1


class OffsetSyncEmitter:
    """MM2's rule for one source partition, record by record: the specification of `due_syncs`.

    `lag_max` is `offset.lag.max`: the target offsets that a translation may be too early before a sync is due.
    """

    def __init__(self, lag_max: int, state: EmissionState | None = None) -> None:
        self._lag_max = lag_max
        self.state = state or EmissionState()
        self._delayed: SyncPoint | None = None

    def acknowledge(self, upstream_offset: int, downstream_offset: int) -> SyncPoint | None:
        """Record that the target has acknowledged a record; return its sync if one is due."""
        previous_upstream, previous_downstream, last_sync = self.state
        sync = SyncPoint(upstream_offset, downstream_offset)
        due = (
            last_sync == -1
            # A reader translates an offset past the last sync to one after that sync, so staleness counts from there.
            or downstream_offset - (last_sync + 1) >= self._lag_max
            or upstream_offset - previous_upstream != 1
            or downstream_offset < previous_downstream
        )
        self.state = EmissionState(upstream_offset, downstream_offset, downstream_offset if due else last_sync)
        self._delayed = None if due else sync
        return sync if due else None

    def commit(self) -> SyncPoint | None:
        """The last record if it has no sync yet: MM2 sends it at every offset flush (KAFKA-15906)."""
        delayed, self._delayed = self._delayed, None
        return delayed


class SyncSequence(Sequence[SyncPoint]):
    """Many syncs at regular distances, stored as a few numbers: a dense flush has one per `offset.lag.max` records."""

    def __init__(self, strides: Iterable[_Stride]) -> None:
        self._strides = tuple(strides)
        self._starts = tuple(accumulate((stride.length for stride in self._strides), initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    def __iter__(self) -> Iterator[SyncPoint]:
        for stride in self._strides:
            yield from map(stride.point, range(stride.length))

    @overload
    def __getitem__(self, index: int) -> SyncPoint: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[SyncPoint, ...]: ...
    def __getitem__(self, index: int | slice) -> SyncPoint | tuple[SyncPoint, ...]:
        if isinstance(index, slice):
            return tuple(self[each] for each in range(*index.indices(len(self))))
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(index)
        nth = bisect_right(self._starts, place) - 1
        return self._strides[nth].point(place - self._starts[nth])


class _Stride(NamedTuple):
    """Syncs whose offsets grow by `step` on both sides."""

    upstream_offset: int
    downstream_offset: int
    step: int
    length: int

    def point(self, index: int) -> SyncPoint:
        distance = index * self.step
        return SyncPoint(self.upstream_offset + distance, self.downstream_offset + distance)


def due_syncs(
    state: EmissionState, runs: Iterable[OffsetRun], lag_max: int
) -> tuple[Sequence[SyncPoint], EmissionState]:
    """The results of `OffsetSyncEmitter.acknowledge` for every record of the runs, and the state after them."""
    strides, after = _strides(state, runs, lag_max, run_ends=False)
    return SyncSequence(strides), after


def flush_syncs(
    state: EmissionState, runs: Sequence[OffsetRun], lag_max: int, *, keep_last: int = KEEP_LAST
) -> tuple[tuple[SyncPoint, ...], EmissionState]:
    """The syncs to write for records that were all acknowledged since the last flush, in the order to write them.

    These are the due syncs and the last record of every run, thinned. The very last record is always included, as at
    MM2's commit; the ends of runs, which MM2's rule lacks, make the translation right after a run exact.

    Args:
        state: returned by the previous flush of the same run, or `EmissionState()`.
        runs: ascending on both sides, as `RunBuilder` returns them.
        lag_max: `offset.lag.max`.
        keep_last: see `thin`.
    """
    strides, after = _strides(state, runs, lag_max, run_ends=True)
    return thin(SyncSequence(strides), keep_last=keep_last), after


def thin(syncs: Sequence[SyncPoint], *, keep_last: int = KEEP_LAST) -> tuple[SyncPoint, ...]:
    """Select syncs without a difference for readers, who keep at most 64 syncs at doubling distances.

    MM2, too, sends only the newest pending sync of a partition while its window of 10 requests is full, so readers
    never rely on a particular sync. The selection has the first, the last `keep_last`, and between them one whenever
    the distance from the end grows by half: about 64 for a flush of a thousand million records.

    Args:
        syncs: in ascending order of upstream offset.
        keep_last: how many at the newest end are always kept, at least one.

    Raises:
        ValueError: `keep_last` is less than one.
    """
    if keep_last < 1:
        raise ValueError(f"keep_last is {keep_last}: the last sync of a flush is always written")
    if len(syncs) <= keep_last:
        return tuple(syncs)
    newest = syncs[-1].upstream_offset
    place = len(syncs) - keep_last
    chosen = [syncs[place]]
    while place > 0:
        distance = newest - syncs[place].upstream_offset
        bound = newest - distance - max(distance // 2, 1)
        place = bisect_right(syncs, bound, hi=place, key=attrgetter("upstream_offset")) - 1
        # Before the oldest sync: it is kept as the first record of the flush.
        place = max(place, 0)
        chosen.append(syncs[place])
    chosen.reverse()
    return (*chosen, *syncs[len(syncs) - keep_last + 1 :])


def _strides(
    state: EmissionState, runs: Iterable[OffsetRun], lag_max: int, *, run_ends: bool
) -> tuple[list[_Stride], EmissionState]:
    strides: list[_Stride] = []
    for run in runs:
        step = max(lag_max + 1, 1)
        first = _first_due(state, run, lag_max)
        last_sync = state.last_sync_downstream_offset
        if first < run.count:
            length = (run.count - 1 - first) // step + 1
            stride = _Stride(run.source_first + first, run.target_first + first, step, length)
            strides.append(stride)
            last_sync = stride.point(length - 1).downstream_offset
        if run_ends and last_sync != run.target_next - 1:
            strides.append(_Stride(run.source_next - 1, run.target_next - 1, 1, 1))
        state = EmissionState(run.source_next - 1, run.target_next - 1, last_sync)
    return strides, state


def _first_due(state: EmissionState, run: OffsetRun, lag_max: int) -> int:
    """Index of the run's first record with a due sync; may lie beyond the run. Only the lag rule acts inside a run."""
    if (
        state.last_sync_downstream_offset == -1
        or run.source_first - state.previous_upstream_offset != 1
        or run.target_first < state.previous_downstream_offset
    ):
        return 0
    return max(state.last_sync_downstream_offset + 1 + lag_max - run.target_first, 0)
