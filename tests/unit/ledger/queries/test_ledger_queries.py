"""What metrics are made of, added up by the database.

What pages ask the ledger, in both databases.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from math import inf
from typing import Any

from mirror_lib.copy.run_lock import hold_lock
from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.features.metrics.figures import FlowFigures, GapTotals, GroupTotals
from mirror_lib.features.metrics.queries import MetricsQueries
from mirror_lib.features.page.queries import PARTITION_ORDERS, GroupSummary, PageQueries, PartitionFilter
from mirror_lib.features.verify.tables import VerificationRow, Verifications
from mirror_lib.features.verify.verdicts import VerdictQueries, Verdicts
from mirror_lib.ledger.observed_rows import HeartbeatObservationRow, PartitionObservationRow, StepOutcomeRow
from mirror_lib.ledger.rows import GapState
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.locks import lock_name
from tests.support.ledger import rows
from tests.support.ledger.cutover_rows import cutover_row
from tests.support.ledger.rows import FLOW, NOON

MINUTE = timedelta(minutes=1)


def only(ledger: Ledger, flow: str = FLOW, **options: int) -> FlowFigures:
    (found,) = MetricsQueries(ledger).figures([flow], **options)
    return found


def observe(ledger: Ledger, *partitions: PartitionObservationRow, **values: object) -> None:
    ledger.observations.save_flow(rows.observed_flow(**values), partitions)


def partition(number: int, position: int | None, **values: object) -> PartitionObservationRow:
    return rows.observed_partition(partition=number, position=position, log_start=0, log_end=100, **values)


def test_a_flow_that_the_ledger_does_not_know_has_no_figures(ledger: Ledger) -> None:
    assert only(ledger) == FlowFigures(FLOW)


def test_flows_that_were_not_asked_for_are_left_out_and_the_others_come_in_the_order_asked_for(ledger: Ledger) -> None:
    for name in ("a->b", "b->a", "c->a"):
        observe(ledger, flow=name)

    found = MetricsQueries(ledger).figures(["c->a", "a->b", "c->a"])

    assert [each.flow for each in found] == ["c->a", "a->b"]
    assert all(each.observed is not None and each.observed.flow == each.flow for each in found)


def test_the_two_newest_observations_are_told(ledger: Ledger) -> None:
    for minutes in (1, 3, 2):
        observe(ledger, observed_at=NOON + minutes * MINUTE)

    found = only(ledger)

    assert found.observed is not None
    assert found.observed_before is not None
    assert (found.observed.observed_at, found.observed_before.observed_at) == (NOON + 3 * MINUTE, NOON + 2 * MINUTE)


def test_runs_are_added_up(ledger: Ledger) -> None:
    for number, state in enumerate(("succeeded", "partial", "failed", "succeeded")):
        ledger.start_run(run_id=f"r{number}", flow=FLOW, trigger="cli")
        ledger.finish_run(f"r{number}", state=state, records=10, bytes=1_000)
    ledger.start_run(run_id="now", flow=FLOW, trigger="cli")
    ledger.start_run(run_id="other", flow="b->a", trigger="cli")

    found = only(ledger)

    assert found.runs[:4] == (5, 2, 40, 4_000)
    last = ledger.run("r3")
    assert found.runs.last_success == last.finished_at
    assert found.last_run == last
    assert found.newest_run == ledger.run("now")


def test_a_run_is_under_way_as_long_as_it_holds_the_lock_of_its_flow(ledger: Ledger) -> None:
    ledger.acquire_lock(flow=FLOW, run_id="now", holder="here", lease_seconds=300)
    ledger.start_run(run_id="now", flow=FLOW, trigger="cli")
    assert only(ledger).is_running

    # It dies: nobody notes how it ended, and its lock is let go or taken by another one.
    ledger.release_lock(flow=FLOW, run_id="now", holder="here")
    assert not only(ledger).is_running
    ledger.acquire_lock(flow=FLOW, run_id="next", holder="there", lease_seconds=300)
    assert not only(ledger).is_running


def test_the_times_of_the_newest_run_with_records_are_told_round_by_round(ledger: Ledger) -> None:
    copied = {"records": 5, "seconds": 2.0, "updated_at": NOON}
    for run_id, records in (("old", 5), ("new", 5), ("idle", 0)):
        ledger.start_run(run_id=run_id, flow=FLOW, trigger="cli")
        ledger.finish_run(run_id, state="succeeded", records=records)
    ledger.save_partition_runs(
        [
            rows.partition_run("old", first_timestamp=1, last_timestamp=11, **copied),
            rows.partition_run("new", first_timestamp=200, last_timestamp=210, **copied),
            rows.partition_run(
                "new", 1, first_timestamp=100, last_timestamp=110, records=5, seconds=3.0, updated_at=NOON + MINUTE
            ),
            rows.partition_run("new", 2, seconds=2.0, updated_at=NOON),
            rows.partition_run("new", round=2, first_timestamp=300, last_timestamp=310, **copied),
        ]
    )

    assert sorted(only(ledger).times) == [(100, 210, NOON + MINUTE, 3.0), (300, 310, NOON, 2.0)]


def test_gaps_are_added_up_by_cause_and_count_offsets_where_the_records_are_not_known(ledger: Ledger) -> None:
    decided = {"state": GapState.ACCEPTED.value}
    for row in (
        rows.gap(id="g1"),
        rows.gap(id="g2", first_offset=40, next_offset=50, partition=1, records=3, **decided),
        rows.gap(id="g3", cause="record-too-large", records=1, **decided),
    ):
        ledger.record_gap(row)

    assert only(ledger).gaps == {"retention-gap": GapTotals(2, 23, 1), "record-too-large": GapTotals(1, 1, 0)}


def test_verifications_are_added_up_against_what_is_copied(ledger: Ledger) -> None:
    observe(ledger, partition(0, position=80), partition(1, position=50), partition(2, position=70))
    compared: list[tuple[int, int, dict[str, object]]] = [
        (0, 0, {}),
        (0, 2, {"source_next": 60}),
        (1, 3, {}),
        # It differed after it was found equal: nothing is known to be equal now.
        (2, 0, {"source_next": 70}),
        (2, 1, {"verdict": "different", "source_next": 20}),
        # A sample leaves out what lies between.
        (1, 4, {"mode": "sample"}),
    ]
    Verifications(ledger).save(
        [
            rows.verification(id=f"v{minutes}", partition=number, finished_at=NOON + minutes * MINUTE, **values)
            for number, minutes, values in compared
        ]
    )

    found = only(ledger).verified

    assert (found.mismatches, found.partitions, found.equal) == (1, 3, 2)
    assert found.oldest_equal == NOON + 2 * MINUTE
    assert (found.unverified, found.waiting_since) == (20, NOON + 2 * MINUTE)


def test_what_was_found_equal_again_after_a_difference_counts_from_there(ledger: Ledger) -> None:
    again = rows.verification(id="v2", finished_at=NOON + MINUTE)
    Verifications(ledger).save([rows.verification(verdict="different"), again])

    found = only(ledger).verified

    assert (found.mismatches, found.equal, found.oldest_equal) == (1, 1, NOON + MINUTE)
    # Where the partition stands nobody has looked.
    assert (found.unverified, found.waiting_since) == (0, None)


def test_partitions_that_stand_still_and_groups_out_of_sync_are_counted_by_reason(ledger: Ledger) -> None:
    stalled = [partition(number, 1, reason="retention-gap") for number in (0, 1)]
    groups = [("x", 0, "refused"), ("y", 0, None), ("y", 1, "pending")]
    observe(ledger, *stalled, partition(2, 100))
    ledger.observations.save_groups(FLOW, [rows.observed_group(*each, reason=reason) for *each, reason in groups])

    found = only(ledger)

    assert found.stalled == {"retention-gap": 2}
    assert found.stalled_behind == {"retention-gap": 2 * (100 - 1)}
    assert found.unsynced == {"refused": 1, "pending": 1}


def test_groups_count_once_and_not_for_topics_that_are_not_the_flows(ledger: Ledger) -> None:
    assert MetricsQueries(ledger).group_totals(FLOW) is None

    # Where no map can tell what would be read again, there is no sum.
    ledger.observations.save_groups(FLOW, [rows.observed_group("x"), rows.observed_group("y")])
    assert MetricsQueries(ledger).group_totals(FLOW) == GroupTotals(groups=2, behind=0, duplicates=None)

    ledger.observations.save_groups(
        FLOW,
        [
            rows.observed_group("x", 0, duplicates=5, skipped=9),
            rows.observed_group("x", 1, duplicates=7, reason="between-syncs"),
            rows.observed_group("y", 0),
            rows.observed_group("z", 0, reason="topic-not-replicated"),
            rows.observed_group("w", 0, reason="topic-handed-over"),
            rows.observed_group("w", 1, duplicates=1, skipped=2),
        ],
    )
    assert MetricsQueries(ledger).group_totals(FLOW) == GroupTotals(groups=3, behind=1, duplicates=13, skipped=11)
    assert only(ledger).groups == GroupTotals(groups=3, behind=1, duplicates=13, skipped=11)


def test_steps_heartbeats_and_cutovers_belong_to_their_flow(ledger: Ledger) -> None:
    step = StepOutcomeRow(flow=FLOW, step="sync_topics", finished_at=NOON, summary={"created": 1})
    beat = HeartbeatObservationRow(flow=FLOW, pair="a->b", observed_at=NOON, verdict="fresh")
    ledger.observations.save_step(step)
    ledger.observations.save_step(replace(step, flow="b->a"))
    ledger.observations.save_heartbeats(FLOW, [beat])
    for number in (1, 2):
        Cutovers(ledger).create(cutover_row(f"c{number}", flow=FLOW, state="running", at=NOON + number * MINUTE))

    with hold_lock(ledger, flow=lock_name("c1"), run_id="job", lease_seconds=30.0):
        found = only(ledger)

    assert (found.steps, found.heartbeats) == ((step,), (beat,))
    assert [each.name for each in found.cutovers] == ["c2", "c1"]
    assert found.carried == {"c1"}
    assert only(ledger).carried == frozenset()


def test_the_partitions_furthest_behind_come_first(ledger: Ledger) -> None:
    observe(ledger, partition(0, 100), partition(1, 20), partition(2, 99), partition(3, None))

    for number, partitions in ((0, []), (2, [3, 1]), (9, [3, 1, 2])):
        assert [row.partition for row in only(ledger, worst_partitions=number).worst] == partitions


EVERYTHING = PartitionFilter()


def save_flow(ledger: Ledger, flow: str, minutes: int, behind: int) -> None:
    row = rows.observed_flow(flow=flow, observed_at=NOON + timedelta(minutes=minutes), records_behind=behind)
    ledger.observations.save_flow(row, [])


def known(topic: str, **values: Any) -> PartitionObservationRow:
    return rows.observed_partition(**{"topic": topic, "log_start": 0, "log_end": 100, "position": 100, **values})


def compared(id: str, verdict: str, hours: int = 0, partition: int = 0, mode: str = "full") -> VerificationRow:
    finished_at = NOON + timedelta(hours=hours)
    return rows.verification(
        id=id, verdict=verdict, partition=partition, mode=mode, finished_at=finished_at, records=10, bytes=1000
    )


def save(ledger: Ledger, *partitions: PartitionObservationRow) -> None:
    ledger.observations.save_flow(rows.observed_flow(), partitions)


def found(ledger: Ledger, wanted: PartitionFilter = EVERYTHING, **more: Any) -> list[str]:
    page = {"order": "topic", "descending": False, "offset": 0, "limit": 100, **more}
    _, partitions = PageQueries(ledger).partitions("a->b", wanted, **page)
    return [f"{row.topic}-{row.partition}" for row in partitions]


def test_the_newest_observation_and_run_of_each_wanted_flow_are_found(ledger: Ledger) -> None:
    for flow, minutes, behind in (("a->b", 0, 1), ("a->b", 5, 2), ("b->c", 0, 3), ("x->y", 0, 4)):
        save_flow(ledger, flow, minutes, behind)
    for number in range(3):
        ledger.start_run(run_id=f"r{number}", flow="a->b", trigger="cli")

    observations = PageQueries(ledger).newest_observations(["a->b", "b->c", "never->seen"])
    runs = PageQueries(ledger).newest_runs(["a->b", "b->c"])

    assert {flow: row.records_behind for flow, row in observations.items()} == {"a->b": 2, "b->c": 3}
    assert runs == {"a->b": ledger.runs("a->b", 1)[0]}
    assert PageQueries(ledger).newest_observations([]) == {}


def test_the_lag_since_a_moment_is_the_most_of_each_step_of_time(ledger: Ledger) -> None:
    for minutes, behind in ((12, 3), (0, 9), (5, 5), (14, 1), (31, 7)):
        save_flow(ledger, "a->b", minutes, behind)

    lag = PageQueries(ledger).lag_since(["a->b", "b->c"], NOON + timedelta(minutes=5), timedelta(minutes=6))

    assert lag == {"a->b": {0: 5, 1: 3, 4: 7}}


def test_partitions_are_sorted_by_what_is_behind_and_cut_into_pages(ledger: Ledger) -> None:
    save(
        ledger,
        known("a", position=90),
        known("b", position=50),
        # Never copied: everything from the log's start on.
        known("c", position=None, log_start=30),
        known("d", log_end=None),
        # Copied beyond what the source has now.
        known("e", position=120),
    )

    assert found(ledger, order="behind", descending=True) == ["c-0", "b-0", "a-0", "d-0", "e-0"]
    assert found(ledger, order="behind", descending=True, offset=1, limit=2) == ["b-0", "a-0"]
    assert found(ledger, PartitionFilter(lagging=True)) == ["a-0", "b-0", "c-0"]


def test_every_order_knows_rows_without_a_value(ledger: Ledger) -> None:
    save(ledger, known("a"), known("b", catch_up_seconds=inf, bytes_behind=3, reason="poison"))

    for order in PARTITION_ORDERS:
        for descending in (True, False):
            names = found(ledger, order=order, descending=descending)
            assert sorted(names) == ["a-0", "b-0"], order
            assert names == ["b-0", "a-0"] or order not in ("catch-up", "bytes", "reason"), (order, descending)


def test_partitions_are_narrowed_by_a_part_of_the_name_as_it_is_written(ledger: Ledger) -> None:
    save(ledger, known("Orders"), known("order_s"), known("orderXs"), known("100%"))

    assert found(ledger, PartitionFilter(topic="order")) == ["Orders-0", "orderXs-0", "order_s-0"]
    assert found(ledger, PartitionFilter(topic="r_s")) == ["order_s-0"]
    assert found(ledger, PartitionFilter(topic="%")) == ["100%-0"]


def test_partitions_are_counted_by_outlook_and_reason(ledger: Ledger) -> None:
    save(ledger, known("a"), known("b", reason="poison"), known("c", reason="poison", outlook="tight"))

    assert PageQueries(ledger).partition_counts("a->b") == ({"ok": 2, "tight": 1}, {"poison": 2})
    assert found(ledger, PartitionFilter(reason="poison", outlook="tight")) == ["c-0"]


def test_groups_are_summed_up_those_that_would_read_most_again_first(ledger: Ledger) -> None:
    late_rows = [
        rows.observed_group("late", 0, duplicates=5, reason="between-syncs"),
        rows.observed_group("late", 1, reason="pending"),
    ]
    ledger.observations.save_groups("a->b", [rows.observed_group("exact", duplicates=0), *late_rows])

    everyone = PageQueries(ledger).groups("a->b", name=None, behind_only=False, offset=0, limit=10)
    behind = PageQueries(ledger).groups("a->b", name="LAT", behind_only=True, offset=0, limit=10)

    late = GroupSummary(group="late", partitions=2, behind=2, duplicates=5, skipped=0, observed_at=NOON)
    exact = GroupSummary(group="exact", partitions=1, behind=0, duplicates=0, skipped=0, observed_at=NOON)
    assert everyone == (2, (late, exact))
    assert behind == (1, (late,))
    assert PageQueries(ledger).group_reasons("a->b", ["late"]) == {"late": {"between-syncs": 1, "pending": 1}}
    assert [row.partition for row in PageQueries(ledger).group_partitions("a->b", "late", 10)] == [0, 1]


def test_only_the_newest_comparison_of_a_partition_counts(ledger: Ledger) -> None:
    later = NOON + timedelta(hours=1)
    Verifications(ledger).save(
        [
            compared("v1", "different"),
            compared("v2", "equal", 1),
            compared("v1", "equal", partition=1),
            compared("v2", "different", 1, partition=1),
            # It proves nothing, and takes nothing back.
            compared("v3", "equal", 2, partition=1, mode="sample"),
            compared("v1", "unverifiable", partition=2),
        ]
    )

    verdicts = VerdictQueries(ledger).of_flows(NOON - timedelta(days=1))
    different = VerdictQueries(ledger).different_partitions("a->b", NOON - timedelta(days=1), 10)

    assert verdicts == {"a->b": Verdicts(equal=1, different=1, last_at=later)}
    assert [(row.id, row.partition) for row in different] == [("v2", 1)]
    assert VerdictQueries(ledger).of_flows(later + timedelta(minutes=1)) == {}


def test_a_verification_is_summed_up_over_its_partitions(ledger: Ledger) -> None:
    Verifications(ledger).save([compared("v1", "equal"), compared("v1", "different", partition=1)])

    (summary,) = VerdictQueries(ledger).newest_verifications("a->b", 10)

    assert (summary.partitions, summary.equal, summary.different, summary.unverifiable) == (2, 1, 1, 0)
    assert (summary.records, summary.bytes, summary.finished_at) == (20, 2000, NOON)


def test_gaps_that_wait_and_steps_that_were_refused_are_counted_by_flow(ledger: Ledger) -> None:
    for number in range(3):
        ledger.record_gap(rows.gap(id=f"g{number}", partition=number))
    ledger.decide_gap("g0", GapState.ACCEPTED, by="marta")
    for step, failed in (("sync_topics", 0), ("sync_topic_acls", 2)):
        ledger.observations.save_step(
            StepOutcomeRow(flow="a->b", step=step, finished_at=NOON, failed=failed, summary={})
        )

    (waiting,) = ledger.open_gaps_by_cause()
    assert (waiting.flow, waiting.gaps, waiting.topics, waiting.named) == ("a->b", 2, 1, (rows.gap().topic,))
    assert PageQueries(ledger).failed_steps() == {"a->b": 1}
    gap = PageQueries(ledger).find_gap("g0")
    assert gap.state == "accepted"
    assert PageQueries(ledger).find_gap("g9") is None
