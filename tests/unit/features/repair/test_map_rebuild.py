"""What the ledger and the logs say about the same partition, and what is written of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.repair.map_rebuild import Difference, Rebuilt
from mirror_lib.features.repair.map_rebuild_plan import RebuildPlan
from mirror_lib.offsets.run_columns import RunColumns
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.topology.names import TopicPartition
from tests.support.records.offset_maps import records, run_lists


@given(ledger=run_lists(), logs=run_lists())
def test_records_are_compared_one_by_one(ledger: tuple[OffsetRun, ...], logs: tuple[OffsetRun, ...]) -> None:
    known, told = dict(records(ledger)), dict(records(logs))

    found = Difference.between(RunColumns.of(ledger), RunColumns.of(logs))

    both = known.keys() & told.keys()
    assert found == Difference(
        same=sum(known[source] == told[source] for source in both),
        only_in_ledger=len(known.keys() - both),
        only_in_logs=len(told.keys() - both),
        contradicting=sum(known[source] != told[source] for source in both),
    )


@given(runs=run_lists(), data=st.data())
def test_a_map_that_the_logs_do_not_add_to_is_left_as_it_is(runs: tuple[OffsetRun, ...], data: st.DataObject) -> None:
    """Retention has taken some of it: what the ledger knows of that is still true."""
    whole = RunColumns.of(runs)
    pairs = records(runs)
    kept = [pair for pair in pairs if data.draw(st.booleans())]
    difference = Difference.between(whole, RunColumns.of([OffsetRun(*pair, 1) for pair in kept]))

    place = TopicPartition("orders", 0)
    rebuilt = Rebuilt(RebuildPlan(place, place, 0, 1, 0, 1, certain_end=True), difference=difference)

    assert not rebuilt.changes
    assert (difference.same, difference.only_in_ledger) == (len(kept), len(pairs) - len(kept))
