"""A partition with holes has few rows in the ledger, and they say the same as the many that were appended."""

from __future__ import annotations

import itertools
import logging
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mirror_lib.ledger.directions import MapPart, map_parts
from mirror_lib.ledger.offset_rows import SegmentRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables import segments
from mirror_lib.ledger.tables.segment_runs import FULL_BYTES, FULL_RECORDS, RowSize, groups_to_merge
from mirror_lib.ledger.tables.segments import SMALL_ROWS_AT_MOST
from mirror_lib.offsets.offset_map import OffsetMap
from mirror_lib.offsets.run_columns import RunColumns
from mirror_lib.offsets.runs import OffsetRun, merge
from tests.support.ledger.rows import FLOW, segment_of
from tests.support.records.offset_maps import run_lists

_flows = itertools.count()


def _with_hole(number: int, **place: object) -> SegmentRow:
    """What one run adds to a transactional partition: four records, a marker, four records, a marker."""
    first = number * 10
    runs = (OffsetRun(first, number * 8, 4), OffsetRun(first + 5, number * 8 + 4, 4))
    return replace(segment_of(runs, run_id=f"r{number}"), **place)


def _stored(ledger: Ledger, partition: int = 0, flow: str = FLOW) -> tuple[SegmentRow, ...]:
    return ledger.segments(flow, "orders", partition)


def _all_runs(rows: tuple[SegmentRow, ...] | list[SegmentRow]) -> tuple[OffsetRun, ...]:
    return RunColumns.of_segments(rows).runs()


def test_rows_with_holes_stay_few_however_many_runs_there_are(ledger: Ledger) -> None:
    appended = [_with_hole(number) for number in range(5 * SMALL_ROWS_AT_MOST)]
    most = 0

    for row in appended:
        ledger.append_segments([row])
        most = max(most, len(_stored(ledger)))

    assert most <= SMALL_ROWS_AT_MOST + 1
    assert _all_runs(_stored(ledger)) == _all_runs(appended)
    assert sum(row.records for row in _stored(ledger)) == 8 * len(appended)


def test_a_rewind_into_a_compacted_row_keeps_every_record_before_it(ledger: Ledger) -> None:
    ledger.append_segments([_with_hole(number) for number in range(10)])
    ledger.compact_segments(FLOW, "orders", 0)

    ledger.append_segments([segment_of((OffsetRun(47, 200, 5),), run_id="again")])

    found = OffsetMap.of_segments(_stored(ledger))
    assert found.to_target(46).offset == 4 * 8 + 5
    assert [found.to_target(offset).offset for offset in (47, 51, 52)] == [200, 204, 205]
    assert found.source_records_between(0, 47) == 4 * 8 + 6


def test_other_partitions_are_left_alone(ledger: Ledger) -> None:
    """Theirs may be due as well, but nothing was appended to them."""
    others = [_with_hole(number, partition=1) for number in range(SMALL_ROWS_AT_MOST)]
    ledger.append_segments(others)

    for number in range(SMALL_ROWS_AT_MOST + 1):
        ledger.append_segments([_with_hole(number)])

    assert len(_stored(ledger)) == 1
    assert _stored(ledger, partition=1) == tuple(others)


def test_a_damaged_row_keeps_nothing_from_being_stored(ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    broken = replace(_with_hole(0), runs=b"\x01no runs")
    ledger.append_segments([broken, *(_with_hole(number) for number in range(1, SMALL_ROWS_AT_MOST))])

    with caplog.at_level(logging.WARNING):
        ledger.append_segments([_with_hole(SMALL_ROWS_AT_MOST)])

    assert len(_stored(ledger)) == SMALL_ROWS_AT_MOST + 1
    assert "orders-0 is unchanged" in caplog.text


def test_a_partitions_map_is_replaced_as_a_whole(ledger: Ledger) -> None:
    ledger.append_segments([_with_hole(0), _with_hole(1), _with_hole(1, partition=1)])

    ledger.replace_segments(FLOW, "orders", 0, [_with_hole(7), _with_hole(8)])

    assert _stored(ledger) == (_with_hole(7), _with_hole(8))
    assert _stored(ledger, partition=1) == (_with_hole(1, partition=1),)


def test_sizes_are_told_without_reading_maps(ledger: Ledger) -> None:
    ledger.append_segments([_with_hole(0), _with_hole(1), segment_of((OffsetRun(7, 9, 5),), partition=2)])

    first, second = ledger.map_sizes(FLOW)

    assert (first.topic, first.partition, first.segments, first.records) == ("orders", 0, 2, 16)
    assert (first.source_first, first.source_next, first.target_first, first.target_next) == (0, 19, 0, 16)
    blobs = sum(len(row.runs or b"") for row in _stored(ledger))
    assert first.bytes == blobs + 2 * (len(FLOW) + len("orders") + len("r0") + 6 * 8)
    assert (second.partition, second.segments, second.records) == (2, 1, 5)
    assert second.bytes_per_million_records == second.bytes / 5 * 1_000_000
    assert ledger.map_sizes("b->a") == ()


_each_example_its_own_flow = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@_each_example_its_own_flow
@given(parts=st.lists(run_lists(min_runs=1, max_runs=3), min_size=1, max_size=6), data=st.data())
def test_compaction_never_changes_the_map(
    ledger: Ledger, parts: list[tuple[OffsetRun, ...]], data: st.DataObject
) -> None:
    flow = f"flow {next(_flows)}"
    appended: list[SegmentRow] = []
    source = target = 0
    for part in parts:
        moved = merge(OffsetRun(run.source_first + source, run.target_first + target, run.count) for run in part)
        source, target = moved[-1].source_next, moved[-1].target_next
        appended.append(segment_of(moved, flow=flow))
        ledger.append_segments([appended[-1]])
        if data.draw(st.booleans()):
            ledger.compact_segments(flow, "orders", 0)
        again = data.draw(st.sampled_from(appended))
        ledger.append_segments([again])

    assert _all_runs(ledger.segments(flow, "orders", 0)) == _all_runs(appended)


class TestWhichRowsBecomeOne:
    SMALL = RowSize(0, 10, 100)

    def test_small_neighbours_until_the_row_is_full(self) -> None:
        small = [replace(self.SMALL, source_first=number) for number in range(5)]
        halves = [RowSize(number, 10, FULL_BYTES // 2) for number in range(5)]
        full, huge = RowSize(10, FULL_RECORDS, 5), RowSize(5, 10, 100 * FULL_BYTES)

        for rows, merged in (
            ([], []),
            ([self.SMALL], []),
            (small, [small]),
            (halves, [halves[:2], halves[2:4]]),
            # Full rows are rewritten only with a small one before them, and huge ones never.
            ([full, full, full], []),
            ([full, self.SMALL, full, full], [[self.SMALL, full]]),
            ([self.SMALL, huge, self.SMALL, self.SMALL], [[self.SMALL, self.SMALL]]),
        ):
            assert groups_to_merge(rows) == merged

    @given(sizes=st.lists(st.tuples(st.integers(1, 2 * FULL_RECORDS), st.integers(0, 20 * FULL_BYTES)), max_size=200))
    def test_few_small_rows_are_left_but_beside_huge_ones(self, sizes: list[tuple[int, int]]) -> None:
        rows = [RowSize(number, *size) for number, size in enumerate(sizes)]

        groups = groups_to_merge(rows)

        in_groups = [row for group in groups for row in group]
        alone = [row for row in rows if row.small and row not in in_groups]
        huge = [row for row in rows if row.bytes > FULL_BYTES]
        assert len(alone) <= len(huge) + 1
        assert in_groups == sorted(in_groups, key=lambda row: row.source_first)


def test_no_more_partitions_than_planned_are_compacted_in_one_call(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "_COMPACTED_AT_ONCE", 1)
    for number in range(SMALL_ROWS_AT_MOST):
        ledger.append_segments([_with_hole(number), _with_hole(number, partition=1)])

    ledger.append_segments([_with_hole(SMALL_ROWS_AT_MOST), _with_hole(SMALL_ROWS_AT_MOST, partition=1)])
    after_one = [len(_stored(ledger)), len(_stored(ledger, partition=1))]
    later = SMALL_ROWS_AT_MOST + 1
    ledger.append_segments([_with_hole(later), _with_hole(later, partition=1)])

    assert after_one == [1, SMALL_ROWS_AT_MOST + 1]
    assert [len(_stored(ledger)), len(_stored(ledger, partition=1))] == [2, 1]


def test_rows_that_both_flows_have_copied_stay_apart(ledger: Ledger) -> None:
    # Given the map that a hand-over inverted, and behind it many runs of the flow itself
    inverted = [_with_hole(number, run_id="way-back-1") for number in range(3)]
    ledger.replace_segments(FLOW, "orders", 0, inverted)
    appended = [_with_hole(number) for number in range(3, 3 * SMALL_ROWS_AT_MOST)]
    for row in appended:
        ledger.append_segments([row])

    stored = _stored(ledger)

    assert len(stored) < SMALL_ROWS_AT_MOST + 3
    assert map_parts(stored) == (
        MapPart(inverted[0].source_first, inverted[0].target_first, by_opposite=True),
        MapPart(appended[0].source_first, appended[0].target_first, by_opposite=False),
    )
    assert _all_runs(stored) == _all_runs([*inverted, *appended])


def test_a_row_without_holes_does_not_continue_one_that_the_opposite_flow_has_copied(ledger: Ledger) -> None:
    ledger.replace_segments(FLOW, "orders", 0, [segment_of((OffsetRun(0, 0, 10),), run_id="way-back-1")])

    ledger.append_segments([segment_of((OffsetRun(10, 10, 5),))])
    ledger.append_segments([segment_of((OffsetRun(15, 15, 5),))])

    assert map_parts(_stored(ledger)) == (MapPart(0, 0, by_opposite=True), MapPart(10, 10, by_opposite=False))
    assert len(_stored(ledger)) == 2
