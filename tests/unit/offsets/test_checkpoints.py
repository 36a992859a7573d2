"""Which checkpoints a group gets (mm2-facts 4.7 and 4.8), held against MM2's algorithm written down plainly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.offsets.checkpoints import (
    CheckpointOffsets,
    Precision,
    Translation,
    checkpoint_after,
    is_more_recent,
    translate,
)
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.offsets.sync_store import LoadMode, OffsetSyncStore
from mirror_lib.offsets.syncs import BEFORE_ALL, EmissionState, SyncPoint, flush_syncs
from mirror_lib.topology.names import TopicPartition
from tests.support.records.offset_maps import records, run_lists

TP = TopicPartition("orders", 0)
_lags = st.sampled_from([0, 1, 3, 100])


def a_store(*syncs: tuple[int, int], mode: LoadMode = LoadMode.FULL) -> OffsetSyncStore:
    store = OffsetSyncStore(mode)
    for upstream, downstream in syncs:
        store.add(TP, SyncPoint(upstream, downstream))
    store.mark_loaded()
    return store


def true_position(runs: tuple[OffsetRun, ...], upstream_offset: int) -> int:
    """The target offset of the first record that a group at a source offset has not read; behind the last, its end."""
    copied = records(runs)
    return next((target for source, target in copied if source >= upstream_offset), copied[-1][1] + 1)


def model_translate(store: OffsetSyncStore, upstream: int) -> int | None:
    """`OffsetSyncStore.translateDownstream`, over the slots: None without a sync, -1 before the oldest."""
    slots = store.slots(TP)
    if not slots:
        return None
    chosen = next((slot for slot in slots if slot.upstream_offset <= upstream), slots[63])
    if chosen.upstream_offset > upstream:
        return -1
    return chosen.downstream_offset + (0 if chosen.upstream_offset == upstream else 1)


class ModelTask:
    """`MirrorCheckpointTask.checkpointsForGroup` for one group and partition: its memory, and what it wrote."""

    def __init__(self) -> None:
        self.last: tuple[int, int] | None = None
        self.written: list[tuple[int, int]] = []

    def poll(self, store: OffsetSyncStore, upstream: int) -> None:
        downstream = model_translate(store, upstream)
        if downstream is None or downstream < 0:
            return
        if self.last is None or upstream < self.last[0] or downstream > self.last[1]:
            self.last = (upstream, downstream)
            self.written.append(self.last)


def test_an_offset_is_exact_at_a_sync_and_one_behind_it() -> None:
    for upstream, expected in [
        (9, Translation(None, Precision.BEHIND_OLDEST_SYNC)),
        (10, Translation(110, Precision.EXACT)),
        (11, Translation(111, Precision.EXACT)),
        (12, Translation(111, Precision.BETWEEN_SYNCS)),
        (100, Translation(180, Precision.EXACT)),
        (101, Translation(181, Precision.EXACT)),
        (102, Translation(181, Precision.BEYOND_COPIED)),
    ]:
        assert translate(a_store((10, 110), (100, 180)), TP, upstream) == expected, upstream
    # The last record of a transaction, its marker at 101 and another one at 102: the group has read them all.
    for copied_to, precision in [
        (None, Precision.BEYOND_COPIED),
        (102, Precision.BEYOND_COPIED),
        (103, Precision.EXACT),
    ]:
        found = translate(a_store((100, 180)), TP, 103, copied_to=copied_to)
        assert found == Translation(181, precision), copied_to
    # A decision has voided the syncs, and those of what was copied since are missing.
    found = translate(a_store((BEFORE_ALL, 4)), TP, 103, copied_to=103)
    assert found == Translation(5, Precision.BETWEEN_SYNCS)
    for store, partition in ((a_store(), TP), (a_store((1, 1)), TopicPartition("orders", 1))):
        assert translate(store, partition, 5) == Translation(None, Precision.NO_SYNC), partition


def test_a_checkpoint_is_written_when_it_is_more_recent() -> None:
    for previous, new, expected in [
        (None, (5, 5), True),
        ((5, 5), (5, 5), False),
        ((5, 5), (9, 5), False),
        ((5, 5), (9, 6), True),
        ((5, 5), (9, 4), False),
        # The group went back on the source: its checkpoint follows.
        ((5, 5), (4, 4), True),
        ((5, 5), (4, 5), True),
    ]:
        before = None if previous is None else CheckpointOffsets(*previous)
        assert is_more_recent(before, CheckpointOffsets(*new)) is expected, previous


def test_the_last_checkpoint_counts_where_there_is_nothing_newer() -> None:
    last = CheckpointOffsets(50, 40)

    assert checkpoint_after(last, 60, 30) == last
    assert checkpoint_after(last, 60, None) == checkpoint_after(last, 50, None) == last
    assert checkpoint_after(None, 60, None) is None
    # A group went back, and nothing is known of the offset: at the old checkpoint it would skip records.
    assert checkpoint_after(last, 3, None) is None


@given(runs=run_lists(min_runs=1, max_count=40), lag=_lags, mode=st.sampled_from(LoadMode), data=st.data())
def test_no_translation_is_ever_beyond_the_true_position(
    runs: tuple[OffsetRun, ...], lag: int, mode: LoadMode, data: st.DataObject
) -> None:
    syncs, _ = flush_syncs(EmissionState(), runs, lag)
    store = a_store(*syncs, mode=mode)
    copied = records(runs)
    upstream = data.draw(st.integers(0, copied[-1][0] + 5))

    found = translate(store, TP, upstream)

    model = model_translate(store, upstream)
    assert found.downstream_offset == (None if model == -1 else model)
    if found.downstream_offset is None:
        assert found.precision is Precision.BEHIND_OLDEST_SYNC
        return
    truth = true_position(runs, upstream)
    assert found.downstream_offset <= truth
    if found.precision is Precision.EXACT:
        # Nothing that the group has read stands between the two.
        assert not [target for _, target in copied if found.downstream_offset <= target < truth]
    if found.precision is Precision.BEYOND_COPIED:
        assert upstream > copied[-1][0] + 1


@given(
    runs=run_lists(min_runs=1, max_runs=6, max_count=60),
    lag=_lags,
    moves=st.lists(st.tuples(st.integers(0, 120), st.booleans()), min_size=1, max_size=20),
)
def test_passes_that_start_anew_write_what_a_running_mm2_writes(
    runs: tuple[OffsetRun, ...], lag: int, moves: list[tuple[int, bool]]
) -> None:
    """Every pass of ours reads the topics from their beginning; MM2's task lives on and remembers."""
    syncs, _ = flush_syncs(EmissionState(), runs, lag)
    task, live = ModelTask(), OffsetSyncStore()
    live.mark_loaded()
    topic: list[CheckpointOffsets] = []
    told = 0
    for upstream, more in moves:
        for sync in syncs[told : told + 3] if more else ():
            live.add(TP, sync)
            told += 1
        task.poll(live, upstream)

        anew = a_store(*syncs[:told])
        last = topic[-1] if topic else None
        current = checkpoint_after(last, upstream, translate(anew, TP, upstream).downstream_offset)
        if current is not None and current != last:
            topic.append(current)

    assert [tuple(each) for each in topic] == task.written
