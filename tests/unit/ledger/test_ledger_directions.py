"""Which flow has copied what, through any number of hand-overs."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.ledger.directions import MapPart, inverse_run_id, is_by_opposite, map_parts, run_id_in


@dataclass(frozen=True)
class Row:
    """A segment of a map."""

    source_first: int
    target_first: int
    run_id: str


@given(rounds=st.lists(st.integers(0, 2), min_size=1, max_size=6))
def test_each_part_of_a_map_is_the_work_of_the_flow_that_copied_it(rounds: list[int]) -> None:
    # Given two flows that hand over to each other, and copy some segments each time
    rows: list[tuple[Row, int]] = []
    for number, segments in enumerate(rounds):
        if number:
            rows = [
                (Row(row.target_first, row.source_first, inverse_run_id(row.run_id, f"h{number}")), copied)
                for row, copied in rows
            ]
        rows += [(Row(len(rows) + each, len(rows) + each, f"run-{number}"), number) for each in range(segments)]

    # Then who copies now knows its own work, and the other flow's
    now = (len(rounds) - 1) % 2
    assert [is_by_opposite(row.run_id) for row, _ in rows] == [copied % 2 != now for _, copied in rows]


def test_parts_begin_where_the_direction_changes() -> None:
    rows = [Row(0, 0, "way-back-1"), Row(10, 12, "way-back-1"), Row(20, 25, "run-1"), Row(30, 36, "rebuild-1")]

    parts = map_parts(rows)

    assert parts == (MapPart(0, 0, by_opposite=True), MapPart(20, 25, by_opposite=False))
    assert [is_by_opposite(run_id_in(part, "rebuild-2")) for part in parts] == [True, False]
