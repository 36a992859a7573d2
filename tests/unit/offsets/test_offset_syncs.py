"""When offset-syncs are due (mm2-facts 4.6), and what a batch job writes of them.

What a reader of the offset-syncs topic makes of it (mm2-facts 4.7).
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.offsets.runs import OffsetRun, translate
from mirror_lib.offsets.sync_store import SLOTS, TOO_OLD, LoadMode, OffsetSyncStore
from mirror_lib.offsets.syncs import (
    KEEP_LAST,
    EmissionState,
    OffsetSyncEmitter,
    SyncPoint,
    due_syncs,
    flush_syncs,
    thin,
)
from mirror_lib.topology.names import TopicPartition
from tests.support.records.offset_maps import records, run_lists

_states = st.builds(EmissionState, st.integers(-1, 30), st.integers(-1, 30), st.integers(-1, 30))
_lags = st.one_of(st.integers(0, 12), st.just(100))


def _due_offsets(pairs: list[tuple[int, int]], lag_max: int) -> list[int]:
    emitter = OffsetSyncEmitter(lag_max)
    return [sync.upstream_offset for pair in pairs if (sync := emitter.acknowledge(*pair)) is not None]


def test_syncs_are_due_as_in_mm2(subtests: pytest.Subtests) -> None:
    for case, pairs, lag_max, due in [
        ("every 101st record with the default lag", [(n, n) for n in range(305)], 100, [0, 101, 202, 303]),
        ("every record without lag", [(n, n + 7) for n in range(5)], 0, [0, 1, 2, 3, 4]),
        (
            "every transaction of three records: the marker has a source offset and nothing on the target",
            [(0, 0), (1, 1), (2, 2), (4, 3), (5, 4), (6, 5), (8, 6)],
            100,
            [0, 4, 8],
        ),
        ("a rewind of the source", [(10, 10), (11, 11), (5, 12), (6, 13)], 100, [10, 5]),
        ("a truncated target", [(10, 10), (11, 11), (12, 3), (13, 4)], 100, [10, 12]),
        # Only the lag rule looks at how far the target has come.
        ("not a hole of the target alone", [(0, 0), (1, 5), (2, 6)], 100, [0]),
        ("a hole of the target as long as the lag", [(0, 0), (1, 101), (2, 102)], 100, [0, 1]),
    ]:
        with subtests.test(case):
            assert _due_offsets(pairs, lag_max) == due
    assert OffsetSyncEmitter(100).acknowledge(500, 40) == SyncPoint(500, 40), "the first record"


def test_a_commit_sends_the_last_record_once_and_only_if_it_had_no_sync() -> None:
    emitter = OffsetSyncEmitter(100)
    assert emitter.commit() is None
    emitter.acknowledge(0, 0)
    assert emitter.commit() is None
    emitter.acknowledge(1, 1)
    emitter.acknowledge(2, 2)
    assert emitter.commit() == SyncPoint(2, 2)
    assert emitter.commit() is None


def test_a_commit_does_not_shift_when_the_next_sync_is_due() -> None:
    emitter = OffsetSyncEmitter(100)
    due = []
    for offset in range(250):
        due.append(emitter.acknowledge(offset, offset))
        if offset % 7 == 0:
            emitter.commit()

    assert [sync.upstream_offset for sync in due if sync] == [0, 101, 202]


@given(_states, run_lists(), _lags)
def test_arithmetic_gives_exactly_what_the_records_would(
    state: EmissionState, runs: tuple[OffsetRun, ...], lag_max: int
) -> None:
    emitter = OffsetSyncEmitter(lag_max, state)
    expected = [sync for pair in records(runs) if (sync := emitter.acknowledge(*pair)) is not None]

    syncs, after = due_syncs(state, runs, lag_max)

    assert list(syncs) == expected
    assert after == emitter.state


@given(run_lists(max_count=100), _lags)
def test_a_sequence_of_syncs_behaves_like_the_tuple_of_them(runs: tuple[OffsetRun, ...], lag_max: int) -> None:
    syncs, _ = due_syncs(EmissionState(), runs, lag_max)
    listed = tuple(syncs)

    assert len(syncs) == len(listed)
    assert tuple(syncs[index] for index in range(len(listed))) == listed
    assert tuple(syncs[index] for index in range(-len(listed), 0)) == listed
    assert syncs[1:7:2] == listed[1:7:2]
    assert syncs[::-1] == listed[::-1]
    for outside in (len(listed), -len(listed) - 1):
        with pytest.raises(IndexError):
            syncs[outside]


def test_a_thousand_million_records_are_worked_out_and_not_counted() -> None:
    syncs, state = due_syncs(EmissionState(), [OffsetRun(0, 0, 1_000_000_000)], 100)
    written, _ = flush_syncs(EmissionState(), [OffsetRun(0, 0, 1_000_000_000)], 100)

    assert len(syncs) == -(-1_000_000_000 // 101)
    assert state.previous_upstream_offset == 999_999_999
    assert len(written) <= 2 * 64


@given(run_lists(min_runs=1), _lags)
def test_a_flush_ends_with_its_last_record(runs: tuple[OffsetRun, ...], lag_max: int) -> None:
    """As at MM2's commit: what is delayed becomes pending."""
    written, _ = flush_syncs(EmissionState(), runs, lag_max)

    assert written[-1] == records(runs)[-1]


@given(run_lists(max_runs=8), _lags)
def test_a_small_flush_writes_everything_due_and_the_end_of_every_run(
    runs: tuple[OffsetRun, ...], lag_max: int
) -> None:
    due, after = due_syncs(EmissionState(), runs, lag_max)
    expected = {*due, *(SyncPoint(run.source_next - 1, run.target_next - 1) for run in runs)}

    written, state = flush_syncs(EmissionState(), runs, lag_max, keep_last=1000)

    assert written == tuple(sorted(expected))
    assert state == after


@given(run_lists(max_runs=40, max_count=60), _lags)
def test_what_a_flush_writes_is_true_and_ascends(runs: tuple[OffsetRun, ...], lag_max: int) -> None:
    written, _ = flush_syncs(EmissionState(), runs, lag_max, keep_last=4)

    assert set(written) <= {SyncPoint(*pair) for pair in records(runs)}
    assert list(written) == sorted(set(written))


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=300), st.integers(1, 40))
def test_thinning_keeps_the_ends_the_order_and_a_bounded_distance(steps: list[int], keep_last: int) -> None:
    syncs = [SyncPoint(offset, offset * 2) for offset in itertools.accumulate(steps)]

    kept = thin(syncs, keep_last=keep_last)

    assert kept[0] == syncs[0]
    assert kept[-keep_last:] == tuple(syncs[-keep_last:])
    assert list(kept) == sorted(set(kept))
    assert set(kept) <= set(syncs)
    end = syncs[-1].upstream_offset
    places = {sync: place for place, sync in enumerate(syncs)}
    for older, newer in itertools.pairwise(kept):
        # Nothing between them was left out, or the next distance is at most half again as far as had to be.
        between = syncs[places[older] + 1 : places[newer]]
        distance = end - newer.upstream_offset
        assert all(end - sync.upstream_offset < distance + max(distance // 2, 1) for sync in between)


def test_thinning_ten_million_syncs_leaves_about_a_hundred_and_always_the_last() -> None:
    syncs, _ = due_syncs(EmissionState(), [OffsetRun(0, 0, 1_000_000_000)], 99)

    assert len(syncs) == 10_000_000
    assert KEEP_LAST < len(thin(syncs)) < 100
    with pytest.raises(ValueError, match="always written"):
        thin([SyncPoint(0, 0)], keep_last=0)
    state = EmissionState(5, 5, 5)
    assert flush_syncs(state, [], 100) == ((), state), "nothing is acknowledged"


TP = TopicPartition("orders", 0)
_store_lags = st.sampled_from([0, 1, 3, 10, 100])


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


@given(run_lists(min_runs=1, max_runs=30, max_count=80), _store_lags, st.sampled_from([1, 4, 32]))
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


@given(st.lists(run_lists(min_runs=1, max_runs=4, max_offset=0), min_size=1, max_size=6), _store_lags)
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


@given(st.integers(1, 100_000), st.integers(0, 100_000), _store_lags)
def test_a_thinned_dense_flush_falls_behind_by_no_more_than_the_distance_from_its_end(
    count: int, behind: int, lag_max: int
) -> None:
    """Slots double their distance, and so MM2's own precision does; thinning may cost as much again, and the lag."""
    behind = min(behind, count - 1)
    written, _ = flush_syncs(EmissionState(), [OffsetRun(0, 0, count)], lag_max)

    translated = _store(written).translate(TP, count - 1 - behind)

    assert translated is not None
    assert count - 1 - behind - translated <= 4 * behind + 2 * (lag_max + 1)
