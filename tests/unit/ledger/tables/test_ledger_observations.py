"""What the ledger keeps of how flows stand, and of what people did."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from math import inf

from mirror_lib.ledger.observed_rows import HeartbeatObservationRow, StepOutcomeRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.observations import HISTORY
from tests.support.ledger.rows import NOON, observed_flow, observed_group, observed_partition


def test_durations_that_never_end_and_unknown_ones_come_back_as_they_were(ledger: Ledger) -> None:
    row = observed_flow(catch_up_seconds=inf, headroom_seconds=None, seconds_behind=1.5)

    ledger.observations.save_flow(row, [])

    assert ledger.observations.newest("a->b") == row


def test_the_history_of_a_flow_is_told_from_the_oldest_on(ledger: Ledger) -> None:
    times = [NOON + timedelta(minutes=minutes) for minutes in (10, 0, 5)]
    for at in times:
        ledger.observations.save_flow(observed_flow(observed_at=at), [])

    found = ledger.observations.history("a->b", NOON + timedelta(minutes=5))

    assert [row.observed_at for row in found] == sorted(times)[1:]


def test_history_that_is_too_old_is_forgotten(ledger: Ledger) -> None:
    ledger.observations.save_flow(observed_flow(), [])
    ledger.observations.save_flow(observed_flow(flow="b->a"), [])

    later = NOON + HISTORY + timedelta(seconds=1)
    ledger.observations.save_flow(observed_flow(observed_at=later), [])

    assert [row.observed_at for row in ledger.observations.history("a->b", NOON)] == [later]
    assert ledger.observations.history("b->a", NOON)


def test_partitions_that_are_gone_are_not_shown_any_more(ledger: Ledger) -> None:
    orders = [observed_partition(), observed_partition(partition=1)]
    ledger.observations.save_flow(observed_flow(), [*orders, observed_partition(topic="gone")])
    ledger.observations.save_flow(observed_flow(flow="b->a"), [observed_partition(flow="b->a", topic="other")])

    ledger.observations.save_flow(observed_flow(), orders)

    left = [(row.topic, row.partition) for row in ledger.observations.partitions("a->b")]
    assert left == [("orders", 0), ("orders", 1)]
    assert len(ledger.observations.partitions("b->a")) == 1


def test_what_a_partition_is_behind_counts_from_its_position_or_from_the_start_of_the_log() -> None:
    assert observed_partition(log_start=2, log_end=10, position=7).records_behind == 3
    assert observed_partition(log_start=2, log_end=10).records_behind == 8
    assert observed_partition(log_start=2, log_end=10, position=10).records_behind == 0
    assert observed_partition().records_behind == 0


def test_partitions_that_stand_still_are_counted_by_reason(ledger: Ledger) -> None:
    reasons = (None, "retention-gap", "retention-gap", "target-diverged")
    rows = [observed_partition(partition=number, reason=reason) for number, reason in enumerate(reasons)]

    ledger.observations.save_flow(observed_flow(), rows)

    assert ledger.observations.reasons() == {"a->b": {"retention-gap": 2, "target-diverged": 1}}


def test_groups_and_heartbeats_are_replaced_as_a_whole(ledger: Ledger) -> None:
    beat = HeartbeatObservationRow(flow="a->b", pair="a->b", observed_at=NOON, verdict="ok")
    ledger.observations.save_groups("a->b", [observed_group("billing"), observed_group("shipping", 1)])
    ledger.observations.save_heartbeats("a->b", [beat, replace(beat, pair="c->a")])

    ledger.observations.save_groups("a->b", [observed_group("shipping", 1)])
    ledger.observations.save_heartbeats("a->b", [replace(beat, verdict="late")])

    assert [row.group for row in ledger.observations.groups("a->b")] == ["shipping"]
    assert [(row.pair, row.verdict) for row in ledger.observations.heartbeats()] == [("a->b", "late")]


def test_only_the_last_outcome_of_a_step_is_kept(ledger: Ledger) -> None:
    first = StepOutcomeRow(flow="a->b", step="sync_topic_acls", finished_at=NOON, differences=3, summary={"created": 3})
    last = replace(first, finished_at=NOON + timedelta(hours=1), differences=0, summary={})

    ledger.observations.save_step(first)
    ledger.observations.save_step(last)

    assert ledger.observations.steps("a->b") == (last,)


def test_what_people_did_is_told_from_the_newest_on(ledger: Ledger) -> None:
    ledger.audits.note(by="ann", action="pause", subject="mirror__a__b", flow="a->b")
    ledger.audits.note(by="bob", action="verify", subject="a->b", flow="a->b", detail={"mode": "full"})
    ledger.audits.note(by="cid", action="pause", subject="mirror__b__a", flow="b->a")

    assert [row.by for row in ledger.audits.newest()] == ["cid", "bob", "ann"]
    assert [(row.action, row.detail) for row in ledger.audits.newest("a->b")] == [
        ("verify", {"mode": "full"}),
        ("pause", {}),
    ]
