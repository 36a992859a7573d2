"""Which clusters the ledger's rows of a flow are about, and setting rows aside that are about others."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mirror_lib.ledger.cutover_rows import HandedOverRow
from mirror_lib.ledger.offset_rows import SegmentRow
from mirror_lib.ledger.rows import GapRow
from mirror_lib.ledger.store import Ledger

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def segment(flow: str) -> SegmentRow:
    return SegmentRow(
        flow=flow,
        topic="orders",
        partition=0,
        source_first=0,
        source_next=10,
        target_first=0,
        target_next=10,
        records=10,
        runs=None,
        run_id="r1",
    )


def gap(flow: str) -> GapRow:
    return GapRow(
        id=f"gap of {flow}",
        flow=flow,
        topic="orders",
        partition=0,
        cause="retention-gap",
        first_offset=0,
        next_offset=3,
        detail="",
        found_at=NOON,
    )


def fill(ledger: Ledger, flow: str) -> None:
    """A run, a map, a gap and a topic that was handed over."""
    ledger.start_run(run_id=f"run of {flow}", flow=flow, trigger="test")
    ledger.append_segments([segment(flow)])
    ledger.record_gap(gap(flow))


def stored(ledger: Ledger, flow: str) -> tuple[int, int, int]:
    """Numbers of runs, map segments and gaps."""
    return len(ledger.runs(flow, 10)), len(ledger.segments(flow, "orders", 0)), len(ledger.gaps(flow, limit=None))


def test_the_first_pair_is_noted_and_stays(ledger: Ledger) -> None:
    assert ledger.cluster_pairs.find("A->B") is None

    first = ledger.cluster_pairs.keep("A->B", "c-1", "c-2")
    second = ledger.cluster_pairs.keep("A->B", "c-1", "c-3")

    assert (first.source_id, first.target_id, first.by) == ("c-1", "c-2", None)
    assert second == first == ledger.cluster_pairs.find("A->B")


def test_an_operator_can_say_that_another_pair_is_the_same(ledger: Ledger) -> None:
    ledger.cluster_pairs.keep("A->B", "c-1", "c-2")
    fill(ledger, "A->B")

    ledger.cluster_pairs.replace("A->B", "c-1", "c-3", by="ann")

    found = ledger.cluster_pairs.find("A->B")
    assert found is not None
    assert (found.target_id, found.by) == ("c-3", "ann")
    assert stored(ledger, "A->B") == (1, 1, 1)


def test_beginning_anew_sets_the_rows_of_the_flow_aside(ledger: Ledger) -> None:
    ledger.cluster_pairs.keep("A->B", "c-1", "c-2")
    for flow in ("A->B", "A->B#backfill-x", "A->BC", "B->A"):
        fill(ledger, flow)
    handed = HandedOverRow(flow="A->B", topic="orders", target_topic="A.orders", cutover="w", since=NOON, by="ann")
    ledger.cutovers.hand_over([handed])

    aside = ledger.cluster_pairs.begin_anew("A->B", "c-1", "c-3", by="ann")

    assert aside is not None
    assert aside.startswith("A->B (c-1 -> c-2, until ")
    for flow in ("A->B", "A->B#backfill-x"):
        assert stored(ledger, flow) == (0, 0, 0)
    for flow in (aside, f"{aside}#backfill-x", "A->BC", "B->A"):
        assert stored(ledger, flow) == (1, 1, 1)
    assert [row.flow for row in ledger.cutovers.handed_over()] == [aside]


def test_a_pair_may_be_left_twice(ledger: Ledger) -> None:
    ledger.cluster_pairs.keep("A->B", "c-1", "c-2")
    asides = set()
    for target in ("c-3", "c-2", "c-3"):
        ledger.append_segments([segment("A->B")])
        asides.add(ledger.cluster_pairs.begin_anew("A->B", "c-1", target, by="ann"))

    assert len(asides) == 3


@pytest.mark.parametrize("flow", ["A_->B", "A%->B"])
def test_wildcards_in_aliases_touch_no_other_flow(ledger: Ledger, flow: str) -> None:
    ledger.cluster_pairs.keep(flow, "c-1", "c-2")
    fill(ledger, "Ax->B#backfill-x")

    ledger.cluster_pairs.begin_anew(flow, "c-1", "c-3", by="ann")

    assert stored(ledger, "Ax->B#backfill-x") == (1, 1, 1)
