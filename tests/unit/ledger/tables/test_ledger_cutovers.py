"""What the ledger keeps of cutovers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mirror_lib.errors import LedgerError
from mirror_lib.features.cutover.tables import Cutovers
from mirror_lib.ledger.cutover_rows import CutRow, HandedOverRow
from mirror_lib.ledger.store import Ledger
from tests.support.ledger.cutover_rows import attempt_row, cutover_row

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
CUTOVER = cutover_row(
    "wave-1", flow="a->b", state="running", step="inventory", at=NOON, definition={"topics": ["orders"]}
)
STEP = attempt_row("wave-1", "inventory", state="failed", at=NOON)


def test_a_cutover_is_found_by_its_name_which_is_given_once(ledger: Ledger) -> None:
    Cutovers(ledger).create(CUTOVER)

    assert Cutovers(ledger).find("wave-1") == CUTOVER
    assert Cutovers(ledger).find("wave-2") is None
    with pytest.raises(LedgerError, match="wave-1"):
        Cutovers(ledger).create(replace(CUTOVER, flow="b->a"))


def test_where_a_cutover_is_can_be_changed_and_what_it_is_cannot(ledger: Ledger) -> None:
    Cutovers(ledger).create(CUTOVER)

    Cutovers(ledger).move("wave-1", state="waiting", step="freeze")

    moved = Cutovers(ledger).find("wave-1")
    assert moved is not None
    assert (moved.state, moved.step, moved.definition) == ("waiting", "freeze", CUTOVER.definition)
    assert moved.updated_at > NOON


def test_every_attempt_at_a_step_is_kept_in_the_order_of_time(ledger: Ledger) -> None:
    Cutovers(ledger).create(CUTOVER)
    second = replace(STEP, attempt=2, state="passed", started_at=NOON + timedelta(minutes=1), gates=[{"name": "x"}])

    for row in (second, STEP, replace(second, finished_at=NOON + timedelta(minutes=2))):
        Cutovers(ledger).save_step(row)

    found = Cutovers(ledger).steps("wave-1")
    assert [(row.attempt, row.state) for row in found] == [(1, "failed"), (2, "passed")]
    assert found[1].finished_at == NOON + timedelta(minutes=2)
    assert found[1].gates == [{"name": "x"}]


def test_the_newest_cutovers_of_a_flow_come_first(ledger: Ledger) -> None:
    Cutovers(ledger).create(CUTOVER)
    Cutovers(ledger).create(replace(CUTOVER, name="wave-2", created_at=NOON + timedelta(hours=1)))
    Cutovers(ledger).create(replace(CUTOVER, name="back", flow="b->a"))

    assert [row.name for row in Cutovers(ledger).newest("a->b")] == ["wave-2", "wave-1"]
    assert len(Cutovers(ledger).newest()) == 3


def test_the_cut_of_each_partition_is_kept(ledger: Ledger) -> None:
    Cutovers(ledger).create(CUTOVER)
    cut = CutRow(
        cutover="wave-1", topic="orders", partition=0, target_topic="orders", source_end=7, target_end=5, cut_at=NOON
    )

    Cutovers(ledger).save_cuts("wave-1", [replace(cut, partition=1), cut])
    assert [(row.partition, row.source_end) for row in ledger.handovers.cuts("wave-1")] == [(0, 7), (1, 7)]

    # A later cut takes the place of the earlier one as a whole: a topic may have left the wave.
    Cutovers(ledger).save_cuts("wave-1", [replace(cut, source_end=9)])
    assert [(row.partition, row.source_end) for row in ledger.handovers.cuts("wave-1")] == [(0, 9)]


def test_topics_are_handed_over_and_taken_back(ledger: Ledger) -> None:
    rows = [
        HandedOverRow(flow="a->b", topic=topic, target_topic=topic, cutover="wave-1", since=NOON, by="ann")
        for topic in ("orders", "payments")
    ]
    other = replace(rows[0], flow="b->a")
    Cutovers(ledger).hand_over([*rows, other])

    Cutovers(ledger).hand_over((), take_back_from="a->b", topics=["orders"])

    assert ledger.handovers.handed_over("a->b") == (rows[1],)
    assert set(ledger.handovers.handed_over()) == {rows[1], other}
