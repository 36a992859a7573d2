"""Which clusters the ledger's rows of a flow are about, and setting rows aside that are about others."""

from __future__ import annotations

from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.ledger.cutover_rows import HandedOverRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables import cluster_pairs
from tests.support.ledger.rows import NOON, gap, segment
from tests.support.ledger.tables import METADATA


def fill(ledger: Ledger, flow: str) -> None:
    """A run, a map, a gap and a topic that was handed over."""
    ledger.start_run(run_id=f"run of {flow}", flow=flow, trigger="test")
    ledger.append_segments([segment(0, 0, 10, flow=flow)])
    ledger.record_gap(gap(id=f"gap of {flow}", flow=flow))


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
    assert (found.target_id, found.by) == ("c-3", "ann")
    assert stored(ledger, "A->B") == (1, 1, 1)


def test_beginning_anew_sets_the_rows_of_the_flow_aside(ledger: Ledger) -> None:
    ledger.cluster_pairs.keep("A->B", "c-1", "c-2")
    for flow in ("A->B", "A->B#backfill-x", "A->BC", "B->A"):
        fill(ledger, flow)
    handed = HandedOverRow(flow="A->B", topic="orders", target_topic="A.orders", cutover="w", since=NOON, by="ann")
    Cutovers(ledger).hand_over([handed])

    aside = ledger.cluster_pairs.begin_anew("A->B", "c-1", "c-3", by="ann")

    assert aside.startswith("A->B (c-1 -> c-2, until ")
    for flow in ("A->B", "A->B#backfill-x"):
        assert stored(ledger, flow) == (0, 0, 0)
    for flow in (aside, f"{aside}#backfill-x", "A->BC", "B->A"):
        assert stored(ledger, flow) == (1, 1, 1)
    assert [row.flow for row in ledger.handovers.handed_over()] == [aside]


def test_a_pair_may_be_left_twice(ledger: Ledger) -> None:
    ledger.cluster_pairs.keep("A->B", "c-1", "c-2")
    asides = set()
    for target in ("c-3", "c-2", "c-3"):
        ledger.append_segments([segment(0, 0, 10, flow="A->B")])
        asides.add(ledger.cluster_pairs.begin_anew("A->B", "c-1", target, by="ann"))

    assert len(asides) == 3


def test_wildcards_in_aliases_touch_no_other_flow(ledger: Ledger) -> None:
    fill(ledger, "Ax->B#backfill-x")

    for flow in ("A_->B", "A%->B"):
        ledger.cluster_pairs.keep(flow, "c-1", "c-2")
        ledger.cluster_pairs.begin_anew(flow, "c-1", "c-3", by="ann")
        assert stored(ledger, "Ax->B#backfill-x") == (1, 1, 1), flow


def test_no_table_with_rows_of_a_flow_is_forgotten() -> None:
    of_flows = {table.name for table in METADATA.sorted_tables if "flow" in table.columns}
    # A pair is replaced, a lock and a driver end with their process, and the audit log is about operators.
    others = {"cluster_pair", "run_lock", "detached_driver", "audit"}
    assert of_flows - others == {*cluster_pairs._KEPT, *cluster_pairs._DELETED}
