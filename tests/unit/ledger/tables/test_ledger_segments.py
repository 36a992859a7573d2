"""The offset map in the ledger, on SQLite and PostgreSQL."""

from __future__ import annotations

import itertools
import logging
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mirror_lib.ledger.offset_rows import SegmentRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.offsets.runs import OffsetRun, Segment

FLOW = "a->b"
_flows = itertools.count()


def _dense(source_first: int, target_first: int, count: int, *, run_id: str = "r1", partition: int = 0) -> SegmentRow:
    return SegmentRow(
        flow=FLOW,
        topic="orders",
        partition=partition,
        source_first=source_first,
        source_next=source_first + count,
        target_first=target_first,
        target_next=target_first + count,
        records=count,
        run_id=run_id,
    )


def _row(runs: list[OffsetRun], *, run_id: str = "r1", flow: str = FLOW) -> SegmentRow:
    segment = Segment.of(runs)
    return SegmentRow(
        flow=flow,
        topic="orders",
        partition=0,
        source_first=segment.source_first,
        source_next=segment.source_next,
        target_first=segment.target_first,
        target_next=segment.target_next,
        records=segment.records,
        runs=segment.encoded_runs,
        run_id=run_id,
    )


def _map(rows: tuple[SegmentRow, ...]) -> dict[int, int]:
    """Every record's source and target offset."""
    pairs: dict[int, int] = {}
    for row in rows:
        segment = Segment.restore(
            source_first=row.source_first,
            source_next=row.source_next,
            target_first=row.target_first,
            target_next=row.target_next,
            runs=row.runs,
        )
        for run in segment.runs:
            pairs |= {run.source_first + each: run.target_first + each for each in range(run.count)}
    return pairs


def _segments(ledger: Ledger) -> tuple[SegmentRow, ...]:
    return ledger.segments(FLOW, "orders", 0)


def test_a_partition_without_holes_has_one_row_for_ever(ledger: Ledger) -> None:
    for run in range(5):
        ledger.append_segments([_dense(run * 10, 100 + run * 10, 10, run_id=f"r{run}")])

    assert _segments(ledger) == (_dense(0, 100, 50, run_id="r4"),)


def test_rows_of_one_call_merge_like_those_of_several(ledger: Ledger) -> None:
    ledger.append_segments([_dense(0, 0, 3), _dense(3, 3, 4), _dense(10, 7, 1), _dense(11, 8, 1)])

    assert _segments(ledger) == (_dense(0, 0, 7), _dense(10, 7, 2))


@pytest.mark.parametrize(("source_first", "target_first"), [(11, 10), (10, 11), (11, 11)])
def test_a_hole_on_either_side_begins_a_new_row(ledger: Ledger, source_first: int, target_first: int) -> None:
    """A fence leaves a marker on the target, a compacted or aborted record a hole in the source."""
    ledger.append_segments([_dense(0, 0, 10)])
    ledger.append_segments([_dense(source_first, target_first, 5)])

    assert _segments(ledger) == (_dense(0, 0, 10), _dense(source_first, target_first, 5))


def test_a_segment_with_holes_inside_keeps_its_runs_and_merges_with_nothing(ledger: Ledger) -> None:
    holes = _row([OffsetRun(10, 10, 5), OffsetRun(20, 15, 5)])

    ledger.append_segments([_dense(0, 0, 10)])
    ledger.append_segments([holes])
    ledger.append_segments([_dense(25, 20, 5)])

    assert _segments(ledger) == (_dense(0, 0, 10), holes, _dense(25, 20, 5))


def test_appending_the_same_rows_again_changes_nothing(ledger: Ledger) -> None:
    rows = [_dense(0, 0, 10), _dense(10, 10, 5), _row([OffsetRun(15, 15, 1), OffsetRun(20, 16, 1)]), _dense(21, 17, 2)]
    ledger.append_segments(rows)
    once = _segments(ledger)

    ledger.append_segments(rows)
    ledger.append_segments(rows[2:])

    assert _segments(ledger) == once


def test_partitions_topics_and_flows_do_not_mix(ledger: Ledger) -> None:
    rows = [
        _dense(0, 0, 5),
        _dense(5, 5, 5, partition=1),
        replace(_dense(5, 5, 5), topic="orders2"),
        replace(_dense(5, 5, 5), flow="b->a"),
    ]

    ledger.append_segments(rows)

    assert [ledger.segments(row.flow, row.topic, row.partition) for row in rows] == [(row,) for row in rows]


def test_a_segment_without_records_is_not_stored(ledger: Ledger) -> None:
    ledger.append_segments([_dense(7, 7, 0)])

    assert _segments(ledger) == ()


def test_no_segments_are_no_work(ledger: Ledger) -> None:
    ledger.append_segments([])

    assert _segments(ledger) == ()


def test_a_source_topic_created_anew_begins_a_new_map(ledger: Ledger) -> None:
    """Its offsets start at 0 again while the target goes on."""
    ledger.append_segments([_dense(0, 0, 100), _dense(110, 100, 10)])

    ledger.append_segments([_dense(0, 110, 20, run_id="r2"), _dense(20, 130, 5, run_id="r2")])

    assert _segments(ledger) == (_dense(0, 110, 25, run_id="r2"),)


def test_records_copied_again_count_where_they_stand_last(ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    """A person sets the position back to 50: what follows stands behind the older copy on the target."""
    ledger.append_segments([_dense(0, 0, 100)])

    with caplog.at_level(logging.WARNING):
        ledger.append_segments([_dense(50, 100, 60, run_id="r2")])

    assert _segments(ledger) == (_dense(0, 0, 50), _dense(50, 100, 60, run_id="r2"))
    assert "orders-0 was copied again from source offset 50" in caplog.text


def test_a_target_created_anew_leaves_nothing_of_the_older_map(ledger: Ledger) -> None:
    ledger.append_segments([_dense(0, 0, 100)])

    ledger.append_segments([_dense(100, 0, 10, run_id="r2")])

    assert _segments(ledger) == (_dense(100, 0, 10, run_id="r2"),)


def test_a_rewind_into_holes_keeps_every_record_before_it(ledger: Ledger) -> None:
    holes = _row([OffsetRun(10, 10, 5), OffsetRun(20, 15, 5)])
    ledger.append_segments([_dense(0, 0, 10), holes])

    ledger.append_segments([_dense(22, 30, 3, run_id="r2")])

    kept = _row([OffsetRun(10, 10, 5), OffsetRun(20, 15, 2)])
    assert _segments(ledger) == (_dense(0, 0, 10), kept, _dense(22, 30, 3, run_id="r2"))


def test_an_overlap_of_the_same_distance_makes_the_row_longer(ledger: Ledger) -> None:
    ledger.append_segments([_dense(0, 5, 10)])

    ledger.append_segments([_dense(8, 13, 10, run_id="r2")])

    assert _segments(ledger) == (_dense(0, 5, 18, run_id="r2"),)


@pytest.mark.parametrize(
    ("records", "source_next", "target_next", "runs"), [(9, 10, 10, None), (10, 10, 11, None), (11, 10, 11, b"x")]
)
def test_a_row_whose_numbers_contradict_each_other_cannot_be_made(
    records: int, source_next: int, target_next: int, runs: bytes | None
) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        replace(_dense(0, 0, 10), records=records, source_next=source_next, target_next=target_next, runs=runs)


@st.composite
def _histories(draw: st.DrawFn) -> list[list[OffsetRun]]:
    """Segments of one partition in ascending order, each a few runs; holes are often absent."""
    hole = st.sampled_from([0, 0, 0, 1, 7])
    source = draw(st.integers(0, 5))
    target = draw(st.integers(0, 5))
    history = []
    for _ in range(draw(st.integers(1, 6))):
        runs = []
        for _ in range(draw(st.integers(1, 3))):
            source += draw(hole)
            target += draw(hole)
            count = draw(st.integers(1, 4))
            runs.append(OffsetRun(source, target, count))
            source += count
            target += count
        history.append(runs)
    return history


_each_example_its_own_flow = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@_each_example_its_own_flow
@given(history=_histories(), data=st.data())
def test_the_stored_map_is_exactly_what_was_appended(
    ledger: Ledger, history: list[list[OffsetRun]], data: st.DataObject
) -> None:
    """However the segments are spread over calls, and whichever of them are appended again."""
    flow = f"flow {next(_flows)}"
    rows = [_row(runs, flow=flow) for runs in history]
    done = 0
    while done < len(rows):
        again = data.draw(st.integers(0, done))
        upto = data.draw(st.integers(done + 1, len(rows)))
        ledger.append_segments(rows[again:upto])
        done = upto

    stored = ledger.segments(flow, "orders", 0)

    expected = {
        run.source_first + each: run.target_first + each
        for runs in history
        for run in runs
        for each in range(run.count)
    }
    assert _map(stored) == expected
    assert sum(row.records for row in stored) == len(expected)
    joined = (
        earlier.runs is None
        and later.runs is None
        and (earlier.source_next, earlier.target_next) == (later.source_first, later.target_first)
        for earlier, later in itertools.pairwise(stored)
    )
    assert not any(joined)


@_each_example_its_own_flow
@given(histories=st.lists(_histories(), min_size=2, max_size=3))
def test_after_any_rewind_the_map_ascends_and_holds_the_newest_copy(
    ledger: Ledger, histories: list[list[list[OffsetRun]]]
) -> None:
    flow = f"flow {next(_flows)}"
    ever: set[tuple[int, int]] = set()
    for history in histories:
        for runs in history:
            row = _row(runs, flow=flow)
            ledger.append_segments([row])

            pairs = _map(ledger.segments(flow, "orders", 0))
            newest = _map((row,))
            ever |= set(newest.items())
            assert pairs.items() >= newest.items()
            assert set(pairs.items()) <= ever
            targets = [pairs[source] for source in sorted(pairs)]
            assert targets == sorted(set(targets))


def test_ten_thousand_partitions_are_appended(ledger: Ledger) -> None:
    for start in (0, 5):
        ledger.append_segments(
            [replace(_dense(start, start, 5), topic=f"t{n % 100}", partition=n // 100) for n in range(10_000)]
        )

    assert ledger.segments(FLOW, "t99", 99) == (replace(_dense(0, 0, 10), topic="t99", partition=99),)
