"""What follows a commit: the markers that its coordinator writes late, or leaves out for ever (KAFKA-20734)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.produce import ProducedPartition
from mirror_lib.cluster.protocol.transactions import (
    DESCRIBE_PRODUCERS,
    DESCRIBE_PRODUCERS_VERSION,
    encode_describe_producers,
)
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.connection import Buffer
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.cluster.topics.position_format import Position
from mirror_lib.copy.takeover import transaction_markers as markers
from mirror_lib.copy.takeover.transaction_markers import Markers
from mirror_lib.errors import AuthorizationError, MirrorError, TransientError, Where
from mirror_lib.features.transforms.copy.transactions import Transaction
from mirror_lib.planning.model import PositionTopic
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.described_transactions import described_producers
from tests.support.brokers.fake_cluster import job

ORDERS, PAYMENTS = TopicPartition("A.orders", 0), TopicPartition("A.payments", 0)
POSITIONS = TopicPartition("mm2-offsets.A.internal", 0)
OURS = ProducerIdentity(7, 1)
POSITION = Position("orders", 0, 4)


class Coordinator:
    """A target whose transaction coordinator writes the first markers of some partitions late or not at all."""

    cluster = "B"

    def __init__(
        self,
        *,
        late: Iterable[TopicPartition] = (),
        unmarked: Iterable[TopicPartition] = (),
        never: Iterable[TopicPartition] = (),
    ) -> None:
        #: Where each log ends; five rows stand on both.
        self.ends = {ORDERS: 5, PAYMENTS: 5, POSITIONS: 0}
        self._late, self._unmarked, self._never = set(late), set(unmarked), set(never)
        #: Where rows stand that have no marker yet.
        self.open = {ORDERS, PAYMENTS}
        self._covered: list[TopicPartition] = [ORDERS, PAYMENTS]
        self._owed: list[TopicPartition] = []
        self.commits: list[list[TopicPartition]] = []
        self.aborts: list[list[TopicPartition]] = []
        #: What appending positions ends with.
        self.refuse: MirrorError | None = None

    @property
    def producers(self) -> Coordinator:
        return self

    async def add_to_transaction(
        self, name: str, identity: ProducerIdentity, partitions: Iterable[TopicPartition], *, deadline: float
    ) -> None:
        # As a real one, it answers CONCURRENT_TRANSACTIONS until the transaction before is complete.
        for partition in self._owed:
            self._mark(partition)
        self._owed = []
        self._covered += [partition for partition in partitions if partition not in self._covered]

    async def end_transaction(self, name: str, identity: ProducerIdentity, *, commit: bool, deadline: float) -> None:
        first = not self.commits and not self.aborts
        for partition in self._covered:
            if first and partition in self._late:
                self._owed.append(partition)
            elif partition not in self._never and not (first and partition in self._unmarked):
                self._mark(partition)
        (self.commits if commit else self.aborts).append(self._covered)
        self._covered = []

    def _mark(self, partition: TopicPartition) -> None:
        self.ends[partition] += 1
        self.open.discard(partition)

    async def speaks(self, node: int, api_key: int, version: int) -> bool:
        return (api_key, version) == (DESCRIBE_PRODUCERS, DESCRIBE_PRODUCERS_VERSION)

    async def ask(self, node: int, api_key: int, version: int, body: Sequence[Buffer]) -> memoryview:
        (asked,) = [each for each in self.ends if b"".join(encode_describe_producers(each)) == b"".join(body)]
        return described_producers(asked, [(OURS.producer_id, OURS.epoch, 3 if asked in self.open else -1), (8, 0, 2)])

    async def produce(
        self, node: int, batches: Sequence[tuple[str, int, Any]], **_: object
    ) -> Sequence[ProducedPartition]:
        if self.refuse is not None:
            raise self.refuse
        ((topic, partition, _payload),) = batches
        place = TopicPartition(topic, partition)
        self.ends[place] += 1
        self.open.add(place)
        return [ProducedPartition(topic, partition, 0, self.ends[place] - 1, 0)]

    async def log_ends(self, node: int, partition: TopicPartition) -> tuple[int, int]:
        return self.ends[partition], self.ends[partition]

    async def refresh_leaders(self, topics: Iterable[str]) -> dict[str, int]:
        return {}

    def leader(self, partition: TopicPartition) -> int:
        return 1

    def partition_count(self, topic: str) -> int:
        return 1


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markers, "LATE_SECONDS", 0.02)


def transaction(target: Coordinator) -> Transaction:
    positions = PositionTopic(Connection("B", ("localhost:2",)), POSITIONS.topic, "A", 60.0)
    given = Transaction(
        replace(job(retry_max_seconds=0.05), positions=positions),
        cast("RawClient", target),
        "mirror:A->B:A.orders-0",
        OURS,
        timeout_seconds=60,
    )
    given.began = 1.0
    return given


def commit(target: Coordinator) -> None:
    """Commit five rows of each of two partitions, and a position."""
    asyncio.run(transaction(target).commit([POSITION], {ORDERS: 6, PAYMENTS: 6}))


def test_given_markers_that_are_late_or_left_out_when_committed_then_those_that_lack_are_written(
    caplog: pytest.LogCaptureFixture, subtests: pytest.Subtests
) -> None:
    # At the end of the positions: the position, and the marker that shows it to readers.
    for case, given, written, said, positions_end in (
        ("in time", {}, [], "", 2),
        ("left out", {"unmarked": [PAYMENTS, POSITIONS]}, [[POSITIONS, PAYMENTS]], "no marker for A.payments-0", 2),
        ("late: not written twice", {"late": [PAYMENTS]}, [[POSITIONS]], "", 3),
        (
            "only that of the positions left out",
            {"unmarked": [POSITIONS]},
            [[POSITIONS]],
            "no marker for mm2-offsets.A.internal-0",
            2,
        ),
        ("that of the positions late: one more is in nobody's way", {"late": [POSITIONS]}, [[POSITIONS]], "", 3),
    ):
        with subtests.test(case=case):
            target = Coordinator(**given)
            caplog.clear()

            with caplog.at_level(logging.WARNING):
                commit(target)

            assert target.commits == [[ORDERS, PAYMENTS, POSITIONS], *written]
            assert POSITIONS not in target.open
            # Each has one marker.
            assert (target.ends[ORDERS], target.ends[PAYMENTS], target.ends[POSITIONS]) == (6, 6, positions_end)
            assert said in caplog.text
            assert bool(said) == bool(caplog.text)


def test_given_a_marker_that_never_appears_when_committed_then_that_is_told(subtests: pytest.Subtests) -> None:
    for never, committed in ((PAYMENTS, commit), (POSITIONS, commit), (ORDERS, behind)):
        with subtests.test(never=never), pytest.raises(TransientError, match=f"did not appear on {never}"):
            committed(Coordinator(never=[never]))


async def test_given_a_commit_that_fails_when_aborted_then_positions_have_a_marker_even_if_it_was_left_out() -> None:
    target = Coordinator(unmarked=[POSITIONS])
    target.refuse = AuthorizationError("not allowed.")
    given = transaction(target)
    with pytest.raises(AuthorizationError):
        await given.commit([POSITION], {ORDERS: 6, PAYMENTS: 6})

    await given.abort()

    assert target.commits == []
    assert target.aborts == [[ORDERS, PAYMENTS, POSITIONS], [POSITIONS]]
    assert target.ends[POSITIONS] == 1


async def test_given_no_position_yet_when_aborted_then_that_is_all() -> None:
    target = Coordinator()

    await transaction(target).abort()

    assert target.aborts == [[ORDERS, PAYMENTS]]


# ------------------------------------------------------------ a transaction of one partition, which has no positions


def behind(target: Coordinator) -> int:
    """Commit five rows of a partition; returns where the next batch is expected."""
    name = "mirror:A->B:A.orders-0"

    async def scene() -> int:
        await target.end_transaction(name, OURS, commit=True, deadline=0)
        own = Markers(cast("RawClient", target), name, retry_seconds=0.05, where=Where())
        return await own.behind(OURS, ORDERS, 6)

    return asyncio.run(scene())


def test_given_one_partition_when_its_marker_is_there_then_the_next_batch_is_expected_behind_it(
    caplog: pytest.LogCaptureFixture, subtests: pytest.Subtests
) -> None:
    for case, given, end, written, said in (
        ("in time", {}, 6, [], ""),
        ("left out: it is written", {"unmarked": [ORDERS]}, 6, [[ORDERS]], "wrote no marker for A.orders-0"),
        ("late: behind both", {"late": [ORDERS]}, 7, [[ORDERS]], ""),
    ):
        with subtests.test(case=case):
            target = Coordinator(**given)

            with caplog.at_level(logging.WARNING):
                assert behind(target) == target.ends[ORDERS] == end

            assert target.commits[1:] == written
            assert said in caplog.text
