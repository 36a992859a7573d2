"""What pages ask the ledger, in both databases."""

from __future__ import annotations

from datetime import timedelta
from math import inf
from typing import Any

from mirror_lib.ledger.observed_rows import PartitionObservationRow, StepOutcomeRow
from mirror_lib.ledger.queries.page import PARTITION_ORDERS, GroupSummary, PartitionFilter
from mirror_lib.ledger.queries.verdicts import Verdicts
from mirror_lib.ledger.rows import GapState, VerificationRow
from mirror_lib.ledger.store import Ledger
from tests.support.ledger import rows
from tests.support.ledger.rows import NOON

EVERYTHING = PartitionFilter()


def observe(ledger: Ledger, flow: str, minutes: int, behind: int) -> None:
    row = rows.observed_flow(flow=flow, observed_at=NOON + timedelta(minutes=minutes), records_behind=behind)
    ledger.observations.save_flow(row, [])


def partition(topic: str, **values: Any) -> PartitionObservationRow:
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
    _, partitions = ledger.pages.partitions("a->b", wanted, **page)
    return [f"{row.topic}-{row.partition}" for row in partitions]


def test_the_newest_observation_and_run_of_each_wanted_flow_are_found(ledger: Ledger) -> None:
    for flow, minutes, behind in (("a->b", 0, 1), ("a->b", 5, 2), ("b->c", 0, 3), ("x->y", 0, 4)):
        observe(ledger, flow, minutes, behind)
    for number in range(3):
        ledger.start_run(run_id=f"r{number}", flow="a->b", trigger="cli")

    observations = ledger.pages.newest_observations(["a->b", "b->c", "never->seen"])
    runs = ledger.pages.newest_runs(["a->b", "b->c"])

    assert {flow: row.records_behind for flow, row in observations.items()} == {"a->b": 2, "b->c": 3}
    assert runs == {"a->b": ledger.runs("a->b", 1)[0]}
    assert ledger.pages.newest_observations([]) == {}


def test_the_lag_since_a_moment_is_the_most_of_each_step_of_time(ledger: Ledger) -> None:
    for minutes, behind in ((12, 3), (0, 9), (5, 5), (14, 1), (31, 7)):
        observe(ledger, "a->b", minutes, behind)

    lag = ledger.pages.lag_since(["a->b", "b->c"], NOON + timedelta(minutes=5), timedelta(minutes=6))

    assert lag == {"a->b": {0: 5, 1: 3, 4: 7}}


def test_partitions_are_sorted_by_what_is_behind_and_cut_into_pages(ledger: Ledger) -> None:
    save(
        ledger,
        partition("a", position=90),
        partition("b", position=50),
        # Never copied: everything from the log's start on.
        partition("c", position=None, log_start=30),
        partition("d", log_end=None),
        # Copied beyond what the source has now.
        partition("e", position=120),
    )

    assert found(ledger, order="behind", descending=True) == ["c-0", "b-0", "a-0", "d-0", "e-0"]
    assert found(ledger, order="behind", descending=True, offset=1, limit=2) == ["b-0", "a-0"]
    assert found(ledger, PartitionFilter(lagging=True)) == ["a-0", "b-0", "c-0"]


def test_every_order_knows_rows_without_a_value(ledger: Ledger) -> None:
    save(ledger, partition("a"), partition("b", catch_up_seconds=inf, bytes_behind=3, reason="poison"))

    for order in PARTITION_ORDERS:
        for descending in (True, False):
            names = found(ledger, order=order, descending=descending)
            assert sorted(names) == ["a-0", "b-0"], order
            assert names == ["b-0", "a-0"] or order not in ("catch-up", "bytes", "reason"), (order, descending)


def test_partitions_are_narrowed_by_a_part_of_the_name_as_it_is_written(ledger: Ledger) -> None:
    save(ledger, partition("Orders"), partition("order_s"), partition("orderXs"), partition("100%"))

    assert found(ledger, PartitionFilter(topic="order")) == ["Orders-0", "orderXs-0", "order_s-0"]
    assert found(ledger, PartitionFilter(topic="r_s")) == ["order_s-0"]
    assert found(ledger, PartitionFilter(topic="%")) == ["100%-0"]


def test_partitions_are_counted_by_outlook_and_reason(ledger: Ledger) -> None:
    save(ledger, partition("a"), partition("b", reason="poison"), partition("c", reason="poison", outlook="tight"))

    assert ledger.pages.partition_counts("a->b") == ({"ok": 2, "tight": 1}, {"poison": 2})
    assert found(ledger, PartitionFilter(reason="poison", outlook="tight")) == ["c-0"]


def test_groups_are_summed_up_those_that_would_read_most_again_first(ledger: Ledger) -> None:
    late_rows = [
        rows.observed_group("late", 0, duplicates=5, reason="between-syncs"),
        rows.observed_group("late", 1, reason="pending"),
    ]
    ledger.observations.save_groups("a->b", [rows.observed_group("exact", duplicates=0), *late_rows])

    everyone = ledger.pages.groups("a->b", name=None, behind_only=False, offset=0, limit=10)
    behind = ledger.pages.groups("a->b", name="LAT", behind_only=True, offset=0, limit=10)

    late = GroupSummary(group="late", partitions=2, behind=2, duplicates=5, skipped=0, observed_at=NOON)
    exact = GroupSummary(group="exact", partitions=1, behind=0, duplicates=0, skipped=0, observed_at=NOON)
    assert everyone == (2, (late, exact))
    assert behind == (1, (late,))
    assert ledger.pages.group_reasons("a->b", ["late"]) == {"late": {"between-syncs": 1, "pending": 1}}
    assert [row.partition for row in ledger.pages.group_partitions("a->b", "late", 10)] == [0, 1]


def test_only_the_newest_comparison_of_a_partition_counts(ledger: Ledger) -> None:
    later = NOON + timedelta(hours=1)
    ledger.save_verifications(
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

    verdicts = ledger.pages.verdicts(NOON - timedelta(days=1))
    different = ledger.pages.different_partitions("a->b", NOON - timedelta(days=1), 10)

    assert verdicts == {"a->b": Verdicts(equal=1, different=1, last_at=later)}
    assert [(row.id, row.partition) for row in different] == [("v2", 1)]
    assert ledger.pages.verdicts(later + timedelta(minutes=1)) == {}


def test_a_verification_is_summed_up_over_its_partitions(ledger: Ledger) -> None:
    ledger.save_verifications([compared("v1", "equal"), compared("v1", "different", partition=1)])

    (summary,) = ledger.pages.newest_verifications("a->b", 10)

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
    assert ledger.pages.failed_steps() == {"a->b": 1}
    gap = ledger.pages.find_gap("g0")
    assert gap is not None
    assert gap.state == "accepted"
    assert ledger.pages.find_gap("g9") is None
