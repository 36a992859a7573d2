"""When a transaction of the source hangs, what is said of it, and what a plan and a forecast make of hidden records."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from mirror_lib.cluster.raw.open_transactions import HiddenRecords
from mirror_lib.features.forecast.verdicts import PartitionForecast, behind_transaction
from mirror_lib.observe.outlooks import Outlook
from mirror_lib.relay.model import PartitionFacts
from mirror_lib.relay.planning.open_transactions import (
    hanging_problems,
    is_hanging,
    longest_by,
    open_transaction_notes,
)
from mirror_lib.relay.planning.plan import plan_round
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.brokers.partitions import partition_facts

FLOW = FlowId("A", "B")
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


def facts(position: int | None, found: HiddenRecords | None = None, log_end: int = 100) -> PartitionFacts:
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
    plan = plan_round(FLOW, [facts(100, hidden(5))], tasks_max=1)

    assert (plan.partitions, plan.idle, plan.hidden_offsets) == ((), 0, 500)
    (found,) = plan.hidden
    assert (found.is_all, found.plan.start, found.plan.end) == (True, 100, 600)
    assert found.plan.estimated_bytes == 5_000


def test_only_long_transactions_are_named_and_only_hanging_ones_are_problems(subtests: pytest.Subtests) -> None:
    for age in (5, 120, 3_600):
        with subtests.test(age=age):
            plan = plan_round(FLOW, [facts(100, hidden(age))], tasks_max=1)

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
