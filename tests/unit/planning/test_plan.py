"""Planning: facts in, plan out.

When a transaction of the source hangs, what is said of it, and what a plan and a forecast make of hidden records.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.raw.open_transactions import HiddenRecords
from mirror_lib.config.first_start import LATEST, FirstStarts
from mirror_lib.config.model import FirstStart
from mirror_lib.errors import MirrorError, RetentionGapError, SourceRecreatedError, SourceTruncatedError
from mirror_lib.features.forecast.verdicts import PartitionForecast, behind_transaction
from mirror_lib.past_runs.outlooks import Outlook
from mirror_lib.planning.model import PartitionFacts, PartitionPlan, SourceLoss
from mirror_lib.planning.open_transactions import hanging_problems, is_hanging, longest_by, open_transaction_notes
from mirror_lib.planning.plan import first_offset, pack, plan_round
from mirror_lib.records.last_records import LastRecord
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.brokers.partitions import partition_facts, partition_plan

FLOW = FlowId("A", "B")
FROM_THE_END = FirstStarts(default=LATEST)


def facts(partition: int = 0, **changed: Any) -> PartitionFacts:
    return partition_facts(changed.pop("topic", "orders"), partition, **changed)


def the_loss(fact: PartitionFacts) -> tuple[MirrorError, SourceLoss]:
    """Plan the partition beside a healthy one, which goes on, and tell why this one does not."""
    healthy = facts(9, position=40, position_topic_id="id-1")

    plan = plan_round(FLOW, [fact, healthy], tasks_max=1)

    assert [partition.source.partition for partition in plan.partitions] == [9]
    (problem,) = plan.problems
    assert problem.source == fact.source
    assert problem.loss is not None
    where = problem.error.where
    assert (where.flow, where.topic, where.partition, where.offset) == ("A->B", "orders", 0, fact.position)
    for command in ("accept", "recopy", "stop"):
        assert f"mirror gaps {command}" in problem.error.action
    return problem.error, problem.loss


def planned(partition: int, weight: int, **changed: Any) -> PartitionPlan:
    return partition_plan(partition=partition, end=1, estimated_bytes=weight, **changed)


class TestGivenASourceThatLostRecords:
    def test_each_loss_has_its_error_and_its_range(self, subtests: pytest.Subtests) -> None:
        truncated, recreated = SourceTruncatedError, SourceRecreatedError
        before_cut = {"last_record": LastRecord(offset=8, batch_bytes=100, checksum=1), "last_record_same": True}
        for changed, kind, said, lost in (
            # Retention passed the position: a gap up to the log start.
            ({"log_start": 60}, RetentionGapError, "40 to 59", (40, 60)),
            # An end before the position is a truncation of what was copied.
            ({"log_end": 30}, truncated, "", (30, 40)),
            # So is a leader epoch that ends before it, however far the log grew.
            (self.epoch_until(25, log_end=500), truncated, "records 25 to 39", (25, 40)),
            # The epoch tells more exactly than the end where the history divides.
            (self.epoch_until(25, log_end=30), truncated, "", (25, 40)),
            # A leader that does not know the epoch has another log.
            (self.epoch_until(-1, log_start=5), truncated, "does not know the leader epoch 3", (5, 40)),
            # Another record where the last one was copied is another history.
            (self.record_same(False, log_start=5), truncated, "the record at source offset 38 is not the", (5, 40)),
            # A record from before a cut proves nothing of what was behind it.
            ({"log_end": 500, "truncated_to": 30, **before_cut}, truncated, "", (30, 40)),
            # A truncation that nobody decided about is not hidden by new growth.
            ({"log_end": 500, "truncated_to": 30}, truncated, "", (30, 40)),
            # A truncated log that is growing again has its new history from where it was cut.
            ({"log_end": 35, "truncated_to": 30}, truncated, "", (30, 40)),
            # Another topic id is another topic whatever its size.
            ({"log_end": 500, "position_topic_id": "id-0"}, recreated, "0 to 499", (40, 40)),
            ({"log_end": 0, "position_topic_id": "id-0"}, recreated, "no records yet", (40, 40)),
        ):
            with subtests.test(changed=changed):
                error, loss = the_loss(facts(position=40, **changed))

                assert isinstance(error, kind)
                assert said in error.what
                assert loss == SourceLoss(*lost, "id-1")

    def test_what_kafka_streams_deletes_itself_has_another_way_out_than_retention(self) -> None:
        topic = "app-KSTREAM-AGGREGATE-STATE-STORE-0000000003-repartition"
        fact = facts(topic=topic, position=40, log_start=60, position_topic_id="id-1")
        (found,) = plan_round(FLOW, [fact], tasks_max=1).problems

        assert "topics.exclude" in found.error.action
        assert "Raise the source topic's retention" not in found.error.action

    @staticmethod
    def epoch_until(end: int, **changed: Any) -> dict[str, Any]:
        """The source's epoch of the last copied batch ends there."""
        return {"position_leader_epoch": 3, "leader_epoch_end": end, **changed}

    @staticmethod
    def record_same(same: bool | None, **changed: Any) -> dict[str, Any]:
        """Whether the source still has the record that was copied last."""
        known = LastRecord(offset=38, batch_bytes=100, checksum=1)
        return {"log_end": 500, "last_record": known, "last_record_same": same, **changed}

    def test_a_topic_that_has_no_id_any_more_is_not_the_one_that_was_copied(self) -> None:
        error, _ = the_loss(facts(position=40, position_topic_id="id-0", topic_id=None))

        assert isinstance(error, SourceRecreatedError)

    def test_nothing_is_lost_where_the_history_is_the_one_that_was_copied(self) -> None:
        for fact in (
            # The epoch holds the position.
            *(facts(position=40, **self.epoch_until(end, log_end=500)) for end in (40, 41, 500)),
            # Positions without topic id and epoch, such as MM2's, are judged by offsets.
            *(facts(position=40, position_topic_id=unknown) for unknown in (None, "")),
            # A first start can have lost nothing.
            facts(log_start=60),
        ):
            assert plan_round(FLOW, [fact], tasks_max=1).problems == (), fact

    def test_the_same_record_and_one_of_which_nobody_can_tell_stop_nothing(self) -> None:
        for same in (True, None):
            fact = facts(position=40, **self.record_same(same))

            plan = plan_round(FLOW, [fact], tasks_max=1)

            assert plan.problems == (), same
            # A copy that is interrupted before it has read anything still knows it.
            assert [each.last_record for each in plan.partitions] == [fact.last_record], same

    @given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100), st.none() | st.integers(-1, 100))
    def test_a_partition_is_copied_only_from_a_position_that_its_log_still_has(
        self, log_start: int, length: int, position: int, epoch_end: int | None
    ) -> None:
        log_end = log_start + length

        plan = plan_round(
            FLOW,
            [facts(log_start=log_start, log_end=log_end, position=position, leader_epoch_end=epoch_end)],
            tasks_max=1,
        )

        intact = log_start <= position <= log_end and (epoch_end is None or epoch_end >= position)
        assert intact is not bool(plan.problems)
        for problem in plan.problems:
            assert problem.loss is not None
            assert problem.loss.first_offset <= problem.loss.next_offset
            assert position in (problem.loss.first_offset, problem.loss.next_offset)


def test_outstanding_bytes_are_the_share_of_the_log_that_is_left() -> None:
    plan = plan_round(FLOW, [facts(log_start=0, log_end=100, position=75, log_bytes=4_000)], tasks_max=1)

    assert plan.estimated_bytes == 1_000


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=60), st.integers(1, 12))
def test_every_partition_is_in_exactly_one_bin(weights: list[int], tasks_max: int) -> None:
    partitions = [planned(number, weight) for number, weight in enumerate(weights)]

    bins = pack(partitions, tasks_max)

    assert sorted(p.source for bin_ in bins for p in bin_) == [p.source for p in partitions]
    assert len(bins) == min(tasks_max, len(partitions))


def test_sources_merged_into_one_target_partition_share_a_bin() -> None:
    shared = TopicPartition("all-orders", 0)
    merged = [replace(planned(n, 10, target=shared), source=TopicPartition(f"orders-{n}", 0)) for n in range(3)]

    bins = pack([*merged, planned(5, 10)], tasks_max=4)

    assert sorted(len(bin_) for bin_ in bins) == [1, 3]


def test_at_least_one_task_runs() -> None:
    for tasks_max in (0, 1):
        assert len(pack([planned(0, 1), planned(1, 1)], tasks_max)) == 1, tasks_max


class TestGivenAFirstStartAtTheEnd:
    def test_the_position_is_planned_and_nothing_is_copied(self) -> None:
        plan = plan_round(FLOW, [facts(log_end=100)], tasks_max=1, first_starts=FROM_THE_END)
        assert plan.bins == ()
        assert [(partition.start, partition.end) for partition in plan.first_seen] == [(100, 100)]

    def test_a_partition_with_a_position_goes_on_from_there(self) -> None:
        plan = plan_round(FLOW, [facts(log_end=100, position=100)], tasks_max=1, first_starts=FROM_THE_END)
        assert plan.first_seen == ()
        plan = plan_round(FLOW, [facts(log_end=120, position=100)], tasks_max=1, first_starts=FROM_THE_END)
        assert [(partition.start, partition.end) for partition in plan.partitions] == [(100, 120)]

    def test_an_empty_first_start_from_the_beginning_is_stored_once(self) -> None:
        # Never written, and emptied by retention.
        for offset in (0, 500):
            empty = facts(log_start=offset, log_end=offset)

            plan = plan_round(FLOW, [empty], tasks_max=1)

            assert (plan.bins, plan.idle) == ((), 1), offset
            assert [(each.start, each.end) for each in plan.first_seen] == [(offset, offset)], offset
            assert plan_round(FLOW, [replace(empty, position=offset)], tasks_max=1).first_seen == (), offset


def test_a_partition_whose_run_was_interrupted_is_planned_though_nothing_is_left_to_copy() -> None:
    """The run may have copied everything, and neither closed its position nor told the ledger."""
    done, interrupted = facts(topic="done", position=100), facts(topic="open", position=100, interrupted=True)

    made = plan_round(FLOW, [done, interrupted], tasks_max=4)

    assert [(each.source.topic, each.start, each.end) for each in made.partitions] == [("open", 100, 100)]
    assert made.idle == 1


def test_a_first_start_at_an_offset_outside_the_log_becomes_its_start_or_its_end() -> None:
    for wanted, expected in ((0, 10), (9, 10), (10, 10), (99, 99), (100, 100), (10**12, 100)):
        rules = FirstStarts(default=FirstStart(offset=wanted))

        assert first_offset(facts(log_start=10), rules) == expected, wanted


NOW = 1_800_000_000.0
ORDERS = TopicPartition("orders", 0)


def hidden(age: float | None, *, began: float | None = None, timeout: float = 60.0) -> HiddenRecords:
    """A transaction whose first record is `age` seconds old; one that a coordinator knows began `began` seconds ago."""
    first = None if age is None else int((NOW - age) * 1000)
    known = HiddenRecords(100, 600, first, 7)
    if began is None:
        return known
    began_at, timeout_ms = int((NOW - began) * 1000), int(timeout * 1000)
    return replace(known, transactional_id="payments", began_at=began_at, timeout_ms=timeout_ms)


def hiding(position: int | None, found: HiddenRecords | None = None, log_end: int = 100) -> PartitionFacts:
    return partition_facts(position=position, hidden=found, log_end=log_end, log_bytes=6_000)


def test_a_transaction_hangs_when_nobody_ends_it_in_its_time() -> None:
    for found, hanging in (
        (hidden(30), False),
        (hidden(900), False),
        (hidden(3_600), True),
        (hidden(None), False),
        # Old records in a transaction that began just now.
        (hidden(10_000_000, began=5), False),
        # Its coordinator will abort it, as late as it may.
        (hidden(3_000, began=3_000, timeout=3_600), False),
        (hidden(3_000, began=3_000, timeout=600), True),
    ):
        assert is_hanging(found, now=NOW, longest_seconds=900) is hanging, found


def test_the_longest_transaction_is_the_brokers_setting() -> None:
    for configs, seconds in (
        ({}, 900),
        ({"transaction.max.timeout.ms": None}, 900),
        ({"transaction.max.timeout.ms": "3600000"}, 3_600),
    ):
        assert longest_by(configs) == seconds, configs


def test_hidden_records_are_no_part_of_what_is_copied_and_no_idle_partition() -> None:
    plan = plan_round(FLOW, [hiding(100, hidden(5))], tasks_max=1)

    assert (plan.partitions, plan.idle, plan.hidden_offsets) == ((), 0, 500)
    (found,) = plan.hidden
    assert (found.is_all, found.plan.start, found.plan.end) == (True, 100, 600)
    assert found.plan.estimated_bytes == 5_000


def test_only_long_transactions_are_named_and_only_hanging_ones_are_problems(subtests: pytest.Subtests) -> None:
    for age in (5, 120, 3_600):
        with subtests.test(age=age):
            plan = plan_round(FLOW, [hiding(100, hidden(age))], tasks_max=1)

            notes = list(open_transaction_notes(plan.hidden, now=NOW))
            problems = hanging_problems(FLOW, plan.hidden, now=NOW, longest_seconds=900)

            assert len(notes) == (age > 60)
            assert [problem.error.reason for problem in problems] == ["source-transaction-open"] * (age > 960)


def test_what_stays_hidden_is_never_copied_and_may_be_deleted(subtests: pytest.Subtests) -> None:
    for deleted_in, before, after in (
        (7_200.0, Outlook.OK, Outlook.WILL_BE_LOST),
        (inf, Outlook.OK, Outlook.UNKNOWN),
        (None, Outlook.OK, Outlook.UNKNOWN),
        (0.0, Outlook.ALREADY_LOST, Outlook.ALREADY_LOST),
    ):
        with subtests.test(deleted_in=deleted_in):
            found = PartitionForecast(ORDERS, 500, None, None, None, 3.0, deleted_in, inf, before, "it was")
            if deleted_in is None:
                found = replace(found, deleted_by_size_seconds=None)

            expected = behind_transaction(found, 500)

            assert (expected.outlook, expected.catch_up_seconds) == (after, inf)
