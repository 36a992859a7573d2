"""What is noted of a flow that was looked at: a row for each partition, and their sum."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any

import pytest

from mirror_lib.config.first_start import LATEST, FirstStarts
from mirror_lib.config.model import FirstStart
from mirror_lib.errors import RecordTooLargeError, TopicMissingError
from mirror_lib.features.forecast.plan import FlowForecast
from mirror_lib.features.forecast.verdicts import PartitionForecast
from mirror_lib.features.metrics.figures import GroupTotals
from mirror_lib.features.metrics.observation import STOPPED, Failure, FlowObserved, Seen, observed_rows
from mirror_lib.identity.unselected import Unselected
from mirror_lib.ledger.observed_rows import PartitionObservationRow
from mirror_lib.past_runs.outlooks import Outlook
from mirror_lib.planning.model import WHOLE_TOPIC, PartitionFacts, PartitionProblem
from mirror_lib.planning.plan import plan_round
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.brokers.partitions import partition_facts

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
FLOW = FlowId("A", "B")
_FROM_THE_START = FirstStarts()


def source(number: int, topic: str = "orders") -> TopicPartition:
    return TopicPartition(topic, number)


def fact(number: int, position: int | None = 10, start: int = 0, end: int = 10, **more: Any) -> PartitionFacts:
    return partition_facts(partition=number, position=position, log_start=start, log_end=end, topic_id=None, **more)


def expected(number: int, **values: Any) -> PartitionForecast:
    made = PartitionForecast(
        source=source(number),
        lag=1,
        lag_bytes=100,
        writes_per_second=2.0,
        copies_per_second=None,
        catch_up_seconds=30.0,
        deleted_by_time_seconds=500.0,
        deleted_by_size_seconds=None,
        outlook=Outlook.OK,
        reason="",
    )
    return replace(made, **values)


def row(number: int, **values: Any) -> PartitionObservationRow:
    made = PartitionObservationRow(
        flow=str(FLOW), topic="orders", partition=number, target_topic="A.orders", observed_at=NOON, outlook="ok"
    )
    return replace(made, **values)


def observe(
    *facts: PartitionFacts,
    forecasts: tuple[PartitionForecast, ...] = (),
    problems: tuple[PartitionProblem, ...] = (),
    starts: FirstStarts = _FROM_THE_START,
    unselected: tuple[Unselected, ...] = (),
    **more: Any,
) -> FlowObserved:
    settings = {"first_timestamps": {}, "failures": {}, "remote_topics": {"orders": "A.orders"}, **more}
    plan = plan_round(FLOW, facts, tasks_max=1, problems=problems, first_starts=starts)
    return observed_rows(
        Seen(
            flow=str(FLOW),
            now=NOON,
            facts=facts,
            plan=replace(plan, unselected=unselected),
            forecast=FlowForecast(forecasts, speed=None, interval_seconds=None),
            **settings,
        )
    )


def milliseconds(age: float) -> int:
    return int((NOON.timestamp() - age) * 1000)


def test_a_flow_at_the_end_of_its_source_is_not_behind_and_nothing_can_be_lost() -> None:
    seen = observe(fact(0), fact(1, end=0, position=None))

    assert (seen.flow.partitions, seen.flow.lagging, seen.flow.stalled, seen.flow.records_behind) == (2, 0, 0, 0)
    assert (seen.flow.seconds_behind, seen.flow.catch_up_seconds, seen.flow.headroom_seconds) == (0, 0, inf)
    assert (seen.flow.bytes_behind, seen.flow.outlook) == (0, "ok")
    assert [row.partition for row in seen.partitions] == [0, 1]
    assert all(row.reason is None and row.behind_since is None for row in seen.partitions)


def test_a_flow_is_as_late_as_its_oldest_record_that_is_not_copied() -> None:
    seen = observe(
        fact(0, position=4),
        fact(1, position=None, start=3),
        fact(2),
        forecasts=(expected(0), expected(1, deleted_by_time_seconds=None, deleted_by_size_seconds=70.0)),
        first_timestamps={source(0): milliseconds(20), source(1): milliseconds(300)},
    )

    assert (seen.flow.lagging, seen.flow.records_behind, seen.flow.bytes_behind) == (2, 13, 200)
    assert (seen.flow.seconds_behind, seen.flow.catch_up_seconds, seen.flow.headroom_seconds) == (300, 30, 70)
    first, second, _ = seen.partitions
    assert (first.records_behind, first.behind_since) == (6, NOON - timedelta(seconds=20))
    assert (second.records_behind, second.headroom_seconds) == (7, 70)


def test_where_no_age_is_known_none_is_told_and_a_record_from_the_future_is_not_late() -> None:
    unknown = observe(fact(0, position=4), forecasts=(expected(0, lag_bytes=None),))
    assert (unknown.flow.seconds_behind, unknown.flow.bytes_behind) == (None, None)

    early = observe(fact(0, position=4), first_timestamps={source(0): milliseconds(-60)})
    assert early.flow.seconds_behind == 0

    # No calendar has that time.
    late = observe(fact(0, position=4), first_timestamps={source(0): 2**62})
    assert late.partitions[0].behind_since is None


def test_what_a_run_could_not_copy_is_told_as_long_as_it_is_not_copied() -> None:
    failures = {number: Failure(RecordTooLargeError.reason, "too large") for number in (source(0), source(1))}

    seen = observe(fact(0, position=4), fact(1), failures=failures)

    assert [(row.reason, row.detail) for row in seen.partitions] == [("record-too-large", "too large"), (None, None)]
    assert seen.flow.stalled == 1


def test_a_missing_target_partition_stalls_if_a_run_has_not_created_it(subtests: pytest.Subtests) -> None:
    for seen_minutes_ago, reason_then, run_minutes_ago, reason in (
        # A new topic: never seen, or no run since.
        (None, None, 5, None),
        (1, None, 5, None),
        (1, None, None, None),
        # A run has begun since, and did not create its target.
        (5, None, 1, "topic-missing"),
        # It stays missing until it exists.
        (1, "topic-missing", 5, "topic-missing"),
    ):
        with subtests.test(seen_minutes_ago=seen_minutes_ago, reason_then=reason_then, run_minutes_ago=run_minutes_ago):

            def ago(minutes: float | None) -> datetime | None:
                return None if minutes is None else NOON - timedelta(minutes=minutes)

            then = ago(seen_minutes_ago)
            before = () if then is None else (replace(row(0), observed_at=then, reason=reason_then),)
            missing = {source(0): Failure("topic-missing", "A.orders-0 does not exist on the target yet.")}

            seen = observe(
                fact(0, position=None), missing_targets=missing, before=before, run_started=ago(run_minutes_ago)
            )

            (found,) = seen.partitions
            assert (found.reason, seen.flow.stalled) == (reason, int(reason is not None))
            assert found.detail == "A.orders-0 does not exist on the target yet."


def test_a_target_topic_that_may_not_be_described_stalls_at_once() -> None:
    refused = {source(0): Failure("authorization", "no rights")}

    (found,) = observe(fact(0, position=None), missing_targets=refused).partitions

    assert (found.reason, found.detail) == ("authorization", "no rights")


def test_partitions_of_which_nothing_is_known_have_a_row_with_the_reason() -> None:
    error = TopicMissingError("it is gone.", action="Look.")
    problems = (PartitionProblem(source(1), error), PartitionProblem(TopicPartition("pay", WHOLE_TOPIC), error))

    seen = observe(fact(0), problems=problems, remote_topics={"orders": "A.orders", "pay": "A.pay"})

    rows = {(row.topic, row.partition): row for row in seen.partitions}
    assert rows["orders", 1].reason == rows["pay", WHOLE_TOPIC].reason == "topic-missing"
    assert rows["pay", WHOLE_TOPIC].target_topic == "A.pay"
    assert rows["orders", 1].detail == "it is gone. Look."
    assert (seen.flow.partitions, seen.flow.stalled, seen.flow.outlook) == (3, 2, "unknown")


def test_a_partition_that_somebody_took_out_stands_still_for_no_reason_to_look_at() -> None:
    seen = observe(fact(0, position=None, end=0, stopped=True))

    (row,) = seen.partitions
    assert (row.reason, row.detail, row.records_behind, row.log_end) == (None, STOPPED, 0, None)
    assert seen.flow.stalled == 0


def test_what_a_first_start_leaves_out_is_not_behind() -> None:
    for start, lagging, position, records in ((LATEST, 0, 10, 0), (FirstStart(offset=7), 1, 7, 3)):
        seen = observe(fact(0, position=None), starts=FirstStarts(start), forecasts=(expected(0),) * lagging)

        assert seen.flow.lagging == lagging
        assert (seen.partitions[0].position, seen.partitions[0].records_behind) == (position, records)


def test_what_was_written_counts_since_the_last_look() -> None:
    def before(number: int, end: int) -> PartitionObservationRow:
        return row(number, observed_at=NOON - timedelta(seconds=10), log_end=end)

    # The second was created again since, and the third is new.
    seen = observe(fact(0), fact(1), fact(2), before=(before(0, 5), before(1, 40)))

    assert seen.flow.writes_per_second == 0.5


def test_a_partition_that_is_selected_no_longer_is_stalled_as_it_was_last_seen() -> None:
    last = NOON - timedelta(hours=1)
    gone = Unselected(source(1), "deleted", 4, log_end=9, observed_at=last)
    before = (row(0, observed_at=NOON - timedelta(seconds=10), log_end=5), row(1, observed_at=last, log_end=9))

    seen = observe(fact(0), unselected=(gone,), before=before)

    kept = seen.partitions[1]
    assert (kept.observed_at, kept.records_behind, kept.reason) == (last, 5, "no-longer-selected")
    assert (seen.flow.partitions, seen.flow.stalled, seen.flow.writes_per_second) == (1, 1, 0.5)


def test_without_an_earlier_look_the_forecast_says_what_is_written() -> None:
    assert observe(fact(0, position=1), forecasts=(expected(0),)).flow.writes_per_second == 2
    assert observe(fact(0)).flow.writes_per_second is None


def test_groups_and_losses_come_along() -> None:
    seen = observe(fact(0), groups=GroupTotals(5, 2, 30), open_gaps=3, run_id="r").flow

    assert (seen.groups, seen.groups_behind, seen.duplicates, seen.open_gaps, seen.run_id) == (5, 2, 30, 3, "r")
    assert observe(fact(0)).flow.groups is None


def test_json_says_never_and_not_known_in_words() -> None:
    data = observe(fact(0), fact(1, position=4)).to_dict()

    assert data["observed_at"] == "2026-01-31T12:00:00+00:00"
    assert data["seconds_behind"] is None
    assert [row["headroom_seconds"] for row in data["partition_rows"]] == ["never", None]
    assert [row["records_behind"] for row in data["partition_rows"]] == [0, 6]
