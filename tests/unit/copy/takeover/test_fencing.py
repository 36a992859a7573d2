"""Fencing a writer by its transactional id, also where the marker that does it is left out (KAFKA-20734).

Taking over from a run that died before it saw that markers of its last commit were missing (KAFKA-20734).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import pytest

from mirror_lib.cluster.protocol.transactions import (
    DESCRIBE_PRODUCERS,
    DESCRIBE_PRODUCERS_VERSION,
    TransactionState,
    encode_describe_producers,
)
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.connection import Buffer
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.copy.takeover import hanging_transactions as hanging
from mirror_lib.copy.takeover.fencing import fence_name
from mirror_lib.copy.takeover.hanging_transactions import Hanging
from mirror_lib.errors import TransientError, Where
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.described_transactions import described_producers
from tests.support.brokers.fake_cluster import PRODUCER_ID, FakeCluster

ORDERS, PAYMENTS = TopicPartition("A.orders", 0), TopicPartition("A.payments", 3)
EPOCH = 4
FIRST_OPEN = 3


@pytest.fixture
def target() -> FakeCluster:
    cluster = FakeCluster()
    cluster.add(*ORDERS)
    cluster.add(*PAYMENTS)
    return cluster


def fence(cluster: FakeCluster, retry_seconds: float = 5.0) -> ProducerIdentity:
    client, where = cast("RawClient", cluster), Where(flow="A->B")
    return asyncio.run(fence_name(client, "mirror:A->B", [ORDERS, PAYMENTS], retry_seconds=retry_seconds, where=where))


def test_given_markers_everywhere_when_fenced_then_once(target: FakeCluster) -> None:
    identity = fence(target)

    assert [target.partitions[each].end for each in (ORDERS, PAYMENTS)] == [1, 1]
    assert (identity.producer_id, identity.epoch) == (PRODUCER_ID, target.epochs["mirror:A->B"])


def test_given_an_earlier_marker_of_the_same_producer_when_the_next_is_left_out_then_it_is_not_taken_for_it(
    target: FakeCluster,
) -> None:
    fence(target)
    target.markers_left_out = {PAYMENTS: 1}

    fence(target)

    assert target.partitions[PAYMENTS].end == 2


def test_given_a_marker_that_never_appears_when_fenced_then_that_is_told(target: FakeCluster) -> None:
    target.markers_left_out = {PAYMENTS: 1_000_000}

    with pytest.raises(TransientError, match=r"could not be fenced on A\.payments-3"):
        fence(target, retry_seconds=0.05)


def test_given_a_leader_that_is_found_late_when_fenced_then_it_is_waited_for(
    target: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refreshed(topics: object) -> dict[str, int]:
        target.leaders[PAYMENTS] = 1
        return {}

    monkeypatch.setattr(target, "refresh_leaders", refreshed)
    del target.leaders[PAYMENTS]

    fence(target)

    assert target.partitions[PAYMENTS].end == 1


def test_given_brokers_that_do_not_tell_who_writes_when_fenced_then_the_coordinator_is_believed(
    target: FakeCluster,
) -> None:
    target.too_old = True
    target.markers_left_out = {PAYMENTS: 1}

    fence(target)

    assert (target.described, target.partitions[PAYMENTS].end) == (0, 0)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hanging, "LATE_SECONDS", 0.01)


def told(state: str, *covered: TopicPartition) -> TransactionState:
    return TransactionState(0, state, PRODUCER_ID, EPOCH, frozenset(covered))


class Target:
    """A cluster whose coordinator tells one state after the other, and where partitions hold rows without a marker."""

    cluster = "B"

    def __init__(self, *states: TransactionState | None, open_on: Iterable[TopicPartition] = ()) -> None:
        self._states = list(states)
        self.open = set(open_on)
        self.epoch = EPOCH
        self.deaf = False
        self.next_identity: ProducerIdentity | None = None
        #: How many questions a late marker takes.
        self.closes_after: int | None = None
        self.added: list[TopicPartition] = []
        self.ended: list[bool] = []

    @property
    def producers(self) -> Target:
        return self

    async def transaction_state(self, name: str, *, deadline: float) -> TransactionState | None:
        return self._states.pop(0) if len(self._states) > 1 else self._states[0]

    async def init_producer_id(self, name: str, *, deadline: float) -> ProducerIdentity:
        self.epoch += 1
        return self.next_identity or ProducerIdentity(PRODUCER_ID, self.epoch)

    async def add_to_transaction(
        self, name: str, identity: ProducerIdentity, partitions: Iterable[TopicPartition], *, deadline: float
    ) -> None:
        assert identity.epoch == self.epoch
        self.added += partitions

    async def end_transaction(self, name: str, identity: ProducerIdentity, *, commit: bool, deadline: float) -> None:
        self.ended.append(commit)
        if not self.deaf:
            self.open -= set(self.added)

    def leader(self, partition: TopicPartition) -> int:
        return 1

    async def speaks(self, node: int, api_key: int, version: int) -> bool:
        return (api_key, version) == (DESCRIBE_PRODUCERS, DESCRIBE_PRODUCERS_VERSION)

    async def ask(self, node: int, api_key: int, version: int, body: Sequence[Buffer]) -> memoryview:
        (asked,) = [each for each in (ORDERS, PAYMENTS) if encode_describe_producers(each) == body]
        if self.closes_after is not None:
            self.closes_after -= 1
            if self.closes_after < 0:
                self.open.clear()
        # Somebody else's transaction, too, which is nobody's business here.
        others = (PRODUCER_ID + 1, 0, 0)
        return described_producers(asked, [(PRODUCER_ID, self.epoch, FIRST_OPEN if asked in self.open else -1), others])


def settle(
    target: Target, *, counted: Mapping[TopicPartition, int] | None = None, retry_seconds: float = 5.0
) -> list[TopicPartition]:
    client = cast("RawClient", target)
    given = Hanging(client, "mirror:A->B:*", retry_seconds=retry_seconds, where=Where(flow="A->B"))

    async def scene() -> list[TopicPartition]:
        found = await given.find([ORDERS, PAYMENTS])
        return [] if found is None else await given.settle(found, counted or {})

    return asyncio.run(scene())


def test_given_an_end_without_a_marker_when_taken_over_then_it_is_written_as_it_was_decided(
    caplog: pytest.LogCaptureFixture, subtests: pytest.Subtests
) -> None:
    for state, committed in (("CompleteCommit", True), ("CompleteAbort", False)):
        with subtests.test(state=state):
            target = Target(told(state), open_on=[PAYMENTS])
            caplog.clear()

            with caplog.at_level(logging.WARNING):
                settled = settle(target)

            assert settled == [PAYMENTS]
            assert (target.added, target.ended, target.open) == ([PAYMENTS], [committed], set())
            assert "wrote no marker for A.payments-3" in caplog.text


def test_given_a_marker_that_is_only_late_when_taken_over_then_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hanging, "LATE_SECONDS", 20.0)
    target = Target(told("CompleteCommit"), open_on=[PAYMENTS])
    target.closes_after = 3

    assert settle(target) == []
    assert (target.epoch, target.ended) == (EPOCH, [])


def test_given_nothing_that_can_be_settled_when_taken_over_then_nothing_is_done(subtests: pytest.Subtests) -> None:
    for case, state, open_on in (
        ("all markers are there", told("CompleteCommit"), []),
        # What is not decided is left to the fence.
        *((state, told(state), [ORDERS, PAYMENTS]) for state in ("Ongoing", "Empty", "Dead")),
        ("an id that nobody knows", None, [ORDERS]),
    ):
        with subtests.test(case=case):
            target = Target(state, open_on=open_on)

            assert settle(target) == []
            assert (target.epoch, target.ended) == (EPOCH, [])


def test_given_positions_that_count_what_is_open_when_taken_over_then_it_is_committed_whatever_came_later(
    subtests: pytest.Subtests,
) -> None:
    for state in ("Ongoing", "Empty", "CompleteAbort"):
        with subtests.test(state=state):
            # As where a run died, or gave up, while it had the missing markers written.
            target = Target(told(state), open_on=[ORDERS, PAYMENTS])

            settle(target, counted={ORDERS: FIRST_OPEN + 1, PAYMENTS: FIRST_OPEN})

            assert (target.added[0], target.ended[0]) == (ORDERS, True)
            # The other one is not proven: an abort is an abort, and what is not decided is left.
            assert target.ended[1:] == ([False] if state == "CompleteAbort" else [])


def test_given_rows_that_count_but_are_in_an_open_transaction_when_taken_over_then_they_are_left_to_the_fence() -> None:
    target = Target(told("Ongoing", ORDERS), open_on=[ORDERS])

    assert settle(target, counted={ORDERS: FIRST_OPEN + 1}) == []
    assert target.ended == []


def test_given_markers_that_are_being_written_when_taken_over_then_they_are_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hanging, "LAST_LOOK", 0.001)
    target = Target(told("PrepareCommit"), told("PrepareCommit"), told("CompleteCommit"), open_on=[ORDERS])

    settle(target)

    assert (target.added, target.ended) == ([ORDERS], [True])


def test_given_another_transaction_since_when_taken_over_then_only_what_positions_count_is_committed() -> None:
    target = Target(told("CompleteCommit"), open_on=[ORDERS, PAYMENTS])
    # The coordinator aborted one of the run that still lived: that raises the epoch, too.
    target.epoch += 1

    settled = settle(target, counted={PAYMENTS: FIRST_OPEN + 1})

    assert (settled, target.added, target.ended) == ([PAYMENTS], [PAYMENTS], [True])


def test_given_markers_that_never_appear_or_epochs_that_are_used_up_when_taken_over_then_that_is_told() -> None:
    deaf, exhausted = (Target(told("CompleteCommit"), open_on=[ORDERS]) for _ in range(2))
    deaf.deaf = True
    exhausted.next_identity = ProducerIdentity(PRODUCER_ID + 1, 0)

    for target in (deaf, exhausted):
        with pytest.raises(TransientError, match=r"did not appear on A\.orders-0"):
            settle(target, retry_seconds=0.05)

    # No other producer writes markers.
    assert exhausted.ended == []
