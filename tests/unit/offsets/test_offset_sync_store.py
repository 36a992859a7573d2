"""What a reader of the offset-syncs topic makes of it (mm2-facts 4.7)."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.offsets.runs import OffsetRun, translate
from mirror_lib.offsets.sync_store import SLOTS, TOO_OLD, LoadMode, OffsetSyncStore
from mirror_lib.offsets.syncs import EmissionState, SyncPoint, flush_syncs
from mirror_lib.topology.names import TopicPartition
from tests.support.records.offset_maps import run_lists

TP = TopicPartition("orders", 0)
_lags = st.sampled_from([0, 1, 3, 10, 100])


def _store(syncs: list[SyncPoint] | tuple[SyncPoint, ...], mode: LoadMode = LoadMode.FULL) -> OffsetSyncStore:
    store = OffsetSyncStore(mode)
    for sync in syncs:
        store.add(TP, sync)
    store.mark_loaded()
    return store


def _slots_by_the_book(syncs: list[SyncPoint]) -> list[SyncPoint]:
    """The algorithm as mm2-facts 4.7 writes it down."""

    def near(x: SyncPoint, y: SyncPoint, i: int, j: int) -> bool:
        return x is y or x.upstream_offset <= y.upstream_offset + 2**j - 2**i

    def apart(x: SyncPoint, y: SyncPoint, i: int) -> bool:
        return x is y or x.upstream_offset >= y.upstream_offset + 2 ** max(i - 2, 0)

    slot: list[SyncPoint] = []
    for s in syncs:
        if not slot or s.upstream_offset < slot[0].upstream_offset:
            slot = [s] * 64
            continue
        old = list(slot)
        slot[0] = s
        cand = s
        k = 0
        for c in range(1, 64):
            while True:
                o = old[k]
                usable = (
                    near(slot[c - 1], o, c - 1, c)
                    and apart(slot[c - 1], o, c - 1)
                    and (c == 63 or apart(o, slot[c + 1], c))
                )
                if usable:
                    cand = o
                discard = (k < 63 and o is old[k + 1]) or not apart(slot[c - 1], o, c - 1)
                if usable or discard:
                    k += 1
                if not (discard and k < c):
                    break
            if near(slot[c - 1], slot[c], c - 1, c):
                break
            slot[c] = cand
    return slot


_sync_lists = st.lists(
    st.one_of(st.integers(0, 3), st.integers(0, 200), st.integers(0, 10**6)), min_size=1, max_size=120
).map(lambda steps: [SyncPoint(offset, offset + 5) for offset in itertools.accumulate(steps)])


def test_nothing_is_translated_before_the_topic_was_read() -> None:
    store = OffsetSyncStore()
    store.add(TP, SyncPoint(10, 20))
    assert store.translate(TP, 10) is None

    store.mark_loaded()

    assert store.translate(TP, 10) == 20


def test_a_sync_translates_exactly_and_what_follows_to_the_offset_after_it() -> None:
    store = _store([SyncPoint(10, 20)])

    assert [store.translate(TP, offset) for offset in (9, 10, 11, 1000)] == [TOO_OLD, 20, 21, 21]
    assert store.translate(TopicPartition("orders", 1), 10) is None
    assert store.slots(TopicPartition("orders", 1)) == ()


def test_after_a_restart_that_knows_no_checkpoints_only_the_newest_sync_counts() -> None:
    """Only until the topic was read: what comes later is history that this reader has seen (KAFKA-15905)."""
    store = OffsetSyncStore(LoadMode.LAST_ONLY)
    for offset in (100, 200):
        store.add(TP, SyncPoint(offset, offset))
    store.mark_loaded()
    assert store.translate(TP, 150) == TOO_OLD

    store.add(TP, SyncPoint(300, 300))

    assert store.translate(TP, 250) == 201


@given(_sync_lists, st.lists(st.integers(0, 300), max_size=3))
def test_the_slots_are_those_of_the_reference_through_rewinds(syncs: list[SyncPoint], rewinds: list[int]) -> None:
    history = [*syncs, *(SyncPoint(offset, 10**9 + place) for place, offset in enumerate(rewinds))]

    assert list(_store(history).slots(TP)) == _slots_by_the_book(history)
    assert len(_store(history).slots(TP)) == SLOTS


@given(run_lists(min_runs=1, max_runs=30, max_count=80), _lags, st.sampled_from([1, 4, 32]))
def test_translation_by_what_a_batch_job_writes_never_exceeds_the_true_offset(
    runs: tuple[OffsetRun, ...], lag_max: int, keep_last: int
) -> None:
    written, _ = flush_syncs(EmissionState(), runs, lag_max, keep_last=keep_last)
    store = _store(written)

    previous = TOO_OLD
    for source_offset in range(runs[-1].source_next + 5):
        translated = store.translate(TP, source_offset)
        assert translated is not None
        # The end of the map is where the last record's successor will stand, if no marker comes between.
        assert translated <= translate(runs, source_offset)
        assert translated >= previous
        previous = translated


@given(st.lists(run_lists(min_runs=1, max_runs=4, max_offset=0), min_size=1, max_size=6), _lags)
def test_flushes_after_one_another_translate_every_end_exactly_at_their_time(
    flushes: list[tuple[OffsetRun, ...]], lag_max: int
) -> None:
    store = OffsetSyncStore()
    store.mark_loaded()
    state = EmissionState()
    source = target = 0
    for runs in flushes:
        moved = [OffsetRun(source + run.source_first, target + run.target_first, run.count) for run in runs]
        written, state = flush_syncs(state, moved, lag_max)
        for sync in written:
            store.add(TP, sync)
        source, target = moved[-1].source_next, moved[-1].target_next

        assert store.translate(TP, source) == target


@given(st.integers(1, 100_000), st.integers(0, 100_000), _lags)
def test_a_thinned_dense_flush_falls_behind_by_no_more_than_the_distance_from_its_end(
    count: int, behind: int, lag_max: int
) -> None:
    """Slots double their distance, and so MM2's own precision does; thinning may cost as much again, and the lag."""
    behind = min(behind, count - 1)
    written, _ = flush_syncs(EmissionState(), [OffsetRun(0, 0, count)], lag_max)

    translated = _store(written).translate(TP, count - 1 - behind)

    assert translated is not None
    assert count - 1 - behind - translated <= 4 * behind + 2 * (lag_max + 1)
