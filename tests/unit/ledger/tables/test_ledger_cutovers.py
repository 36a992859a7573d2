"""What the ledger keeps of cutovers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mirror_lib.errors import LedgerError
from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.ledger.cutover_rows import CutRow, HandedOverRow
from mirror_lib.ledger.store import Ledger
from tests.support.ledger.cutover_rows import attempt_row, cutover_row

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
CUTOVER = cutover_row(
    "wave-1", flow="a->b", state="running", step="inventory", at=NOON, definition={"topics": ["orders"]}
)
STEP = attempt_row("wave-1", "inventory", state="failed", at=NOON)


@pytest.fixture
def cutovers(ledger: Ledger) -> Cutovers:
    found = Cutovers(ledger)
    found.create(CUTOVER)
    return found


def test_a_cutovers_name_is_given_once_and_where_it_is_can_be_changed(cutovers: Cutovers) -> None:
    assert (cutovers.find("wave-1"), cutovers.find("wave-2")) == (CUTOVER, None)
    with pytest.raises(LedgerError, match="wave-1"):
        cutovers.create(replace(CUTOVER, flow="b->a"))

    cutovers.move("wave-1", state="waiting", step="freeze")

    moved = cutovers.find("wave-1")
    assert moved == replace(CUTOVER, state="waiting", step="freeze", updated_at=moved.updated_at)
    assert moved.updated_at > NOON


def test_every_attempt_at_a_step_is_kept_in_the_order_of_time(cutovers: Cutovers) -> None:
    second = replace(STEP, attempt=2, state="passed", started_at=NOON + timedelta(minutes=1), gates=[{"name": "x"}])
    ended = replace(second, finished_at=NOON + timedelta(minutes=2))

    for row in (second, STEP, ended):
        cutovers.save_step(row)

    assert cutovers.steps("wave-1") == (STEP, ended)


def test_the_newest_cutovers_of_a_flow_come_first(cutovers: Cutovers) -> None:
    cutovers.create(replace(CUTOVER, name="wave-2", created_at=NOON + timedelta(hours=1)))
    cutovers.create(replace(CUTOVER, name="back", flow="b->a"))

    assert [row.name for row in cutovers.newest("a->b")] == ["wave-2", "wave-1"]
    assert len(cutovers.newest()) == 3


def test_the_cut_of_each_partition_is_kept(ledger: Ledger, cutovers: Cutovers) -> None:
    cut = CutRow(
        cutover="wave-1", topic="orders", partition=0, target_topic="orders", source_end=7, target_end=5, cut_at=NOON
    )

    cutovers.save_cuts("wave-1", [replace(cut, partition=1), cut])
    assert [(row.partition, row.source_end) for row in ledger.handovers.cuts("wave-1")] == [(0, 7), (1, 7)]

    # A later cut takes the place of the earlier one as a whole: a topic may have left the wave.
    cutovers.save_cuts("wave-1", [replace(cut, source_end=9)])
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
