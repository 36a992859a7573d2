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
from tests.support.ledger.rows import FLOW, segment, segment_of

_flows = itertools.count()


def _map(rows: tuple[SegmentRow, ...]) -> dict[int, int]:
    """Every record's source and target offset."""
    pairs: dict[int, int] = {}
    for row in rows:
        restored = Segment.restore(
            source_first=row.source_first,
            source_next=row.source_next,
            target_first=row.target_first,
            target_next=row.target_next,
            runs=row.runs,
        )
        for run in restored.runs:
            pairs |= {run.source_first + each: run.target_first + each for each in range(run.count)}
    return pairs


def _segments(ledger: Ledger) -> tuple[SegmentRow, ...]:
    return ledger.segments(FLOW, "orders", 0)


def test_rows_of_one_call_merge_like_those_of_several_and_those_without_records_are_not_stored(ledger: Ledger) -> None:
    for nothing in ([], [replace(segment(7, 7, 1), source_next=7, target_next=7, records=0)]):
        ledger.append_segments(nothing)
        assert _segments(ledger) == ()

    ledger.append_segments([segment(0, 0, 3), segment(3, 3, 4), segment(10, 7, 1), segment(11, 8, 1)])

    assert _segments(ledger) == (segment(0, 0, 7), segment(10, 7, 2))


def test_partitions_topics_and_flows_do_not_mix(ledger: Ledger) -> None:
    rows = [
        segment(0, 0, 5),
        segment(5, 5, 5, partition=1),
        replace(segment(5, 5, 5), topic="orders2"),
        replace(segment(5, 5, 5), flow="b->a"),
    ]

    ledger.append_segments(rows)

    assert [ledger.segments(row.flow, row.topic, row.partition) for row in rows] == [(row,) for row in rows]


def test_what_was_copied_again_counts_where_it_stands_last(ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    runs = OffsetRun(10, 10, 5), OffsetRun(20, 15, 5)
    again: dict[str, tuple[list[SegmentRow], list[SegmentRow], list[SegmentRow]]] = {
        # Its offsets start at 0 again while the target goes on.
        "source created anew": (
            [segment(0, 0, 100), segment(110, 100, 10)],
            [segment(0, 110, 20, run_id="r2"), segment(20, 130, 5, run_id="r2")],
            [segment(0, 110, 25, run_id="r2")],
        ),
        # A person sets the position back to 50: what follows stands behind the older copy on the target.
        "rewind": (
            [segment(0, 0, 100)],
            [segment(50, 100, 60, run_id="r2")],
            [segment(0, 0, 50), segment(50, 100, 60, run_id="r2")],
        ),
        "rewind in the same call": (
            [],
            [segment(0, 0, 100), segment(50, 100, 60, run_id="r2")],
            [segment(0, 0, 50), segment(50, 100, 60, run_id="r2")],
        ),
        "target created anew": (
            [segment(0, 0, 100)],
            [segment(100, 0, 10, run_id="r2")],
            [segment(100, 0, 10, run_id="r2")],
        ),
        "rewind into holes": (
            [segment(0, 0, 10), segment_of(runs)],
            [segment(22, 30, 3, run_id="r2")],
            [segment(0, 0, 10), segment_of([runs[0], OffsetRun(20, 15, 2)]), segment(22, 30, 3, run_id="r2")],
        ),
        "overlap of the same distance": (
            [segment(0, 5, 10)],
            [segment(8, 13, 10, run_id="r2")],
            [segment(0, 5, 18, run_id="r2")],
        ),
    }
    for topic, (first, second, stored) in again.items():
        for rows in (first, second):
            ledger.append_segments([replace(row, topic=topic) for row in rows])
        assert ledger.segments(FLOW, topic, 0) == tuple(replace(row, topic=topic) for row in stored), topic

    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert any("rewind-0 was copied again from source offset 50" in warning for warning in warnings)


def test_a_row_whose_numbers_contradict_each_other_cannot_be_made() -> None:
    row = segment(0, 0, 10)

    for changed in ({"records": 9}, {"target_next": 11}, {"records": 11, "target_next": 11, "runs": b"x"}):
        with pytest.raises(ValueError, match="do not fit"):
            replace(row, **changed)  # type: ignore[arg-type]


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
    rows = [segment_of(runs, flow=flow) for runs in history]
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
            row = segment_of(runs, flow=flow)
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
            [replace(segment(start, start, 5), topic=f"t{n % 100}", partition=n // 100) for n in range(10_000)]
        )

    assert ledger.segments(FLOW, "t99", 99) == (replace(segment(0, 0, 10), topic="t99", partition=99),)
