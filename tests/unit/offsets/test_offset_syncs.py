"""When offset-syncs are due (mm2-facts 4.6), and what a batch job writes of them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.offsets.syncs import (
    KEEP_LAST,
    EmissionState,
    OffsetSyncEmitter,
    SyncPoint,
    due_syncs,
    flush_syncs,
    thin,
)
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
