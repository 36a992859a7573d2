"""Copy tasks between clusters in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest

import mirror_lib.copy.transfer.task as copy_module
from mirror_lib.copy.transfer.fetcher import Memory
from mirror_lib.copy.transfer.task import copy_bin
from mirror_lib.errors import BrokerUnreachableError
from mirror_lib.planning.model import CopyJob, OpenPartition, PartitionResult
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.fake_cluster import FakeCluster, job, opened

CopyBetween = Callable[[FakeCluster, FakeCluster, CopyJob], list[PartitionResult]]


@pytest.fixture
def copy_between(monkeypatch: pytest.MonkeyPatch) -> CopyBetween:
    """Runs the only bin of a job between two clusters in memory."""

    def copy(source: FakeCluster, target: FakeCluster, job: CopyJob) -> list[PartitionResult]:
        @asynccontextmanager
        async def clients(*_: object) -> AsyncIterator[tuple[FakeCluster, FakeCluster]]:
            yield source, target

        monkeypatch.setattr(copy_module, "open_clients", clients)
        return copy_bin(job, 0)

    return copy


class Clock:
    """A clock that only a test moves."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class FakePair:
    """A source and a target in memory, and copies between them."""

    def __init__(self, copy_between: CopyBetween) -> None:
        self.source, self.target = FakeCluster("A"), FakeCluster("B")
        self._copy_between = copy_between

    def opened(self, topic: str = "orders", partition: int = 0, **more: Any) -> OpenPartition:
        return opened(self.source, self.target, topic, partition, **more)

    def copy(self, *partitions: OpenPartition, **settings: Any) -> list[PartitionResult]:
        """Copy these partitions in one job with these settings."""
        return self._copy_between(self.source, self.target, job(*partitions, **settings))

    def copy_all(self, partitions: int, **settings: Any) -> list[PartitionResult]:
        """Copy the first partitions of the topic."""
        return self.copy(*(self.opened(partition=number) for number in range(partitions)), **settings)

    def copy_orders(self, **settings: Any) -> PartitionResult:
        """Copy the topic's only partition."""
        (result,) = self.copy_all(1, **settings)
        return result

    def assert_whole_copy(self, values: Sequence[bytes], **settings: Any) -> PartitionResult:
        """Copy the topic's only partition, of which these values must arrive without an error."""
        result = self.copy_orders(**settings)
        assert result.error is None
        assert result.complete
        assert self.copied() == values
        return result

    def end_connection_at(self, number: int) -> None:
        """The connection ends before the target has worked on this request."""
        requests = count(1)

        def end(*_: object) -> None:
            if next(requests) == number:
                raise BrokerUnreachableError("the connection has ended.")

        self.target.before_produce = end

    def copied(self, partition: int = 0) -> list[bytes | None]:
        """Values of the topic's records on the target."""
        return self.target.partitions[TopicPartition("A.orders", partition)].values()


@pytest.fixture
def pair(copy_between: CopyBetween) -> FakePair:
    return FakePair(copy_between)


class WatchedMemory(Memory):
    """Remembers its highest use."""

    highest = _used = 0

    @property
    def used(self) -> int:
        return self._used

    @used.setter
    def used(self, value: int) -> None:
        self._used = value
        self.highest = max(self.highest, value)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[WatchedMemory]]:
    """The accounts of all tasks that the test runs; at its end none may have lost a byte or found one."""
    made: list[WatchedMemory] = []

    def make(limit: int) -> Memory:
        made.append(WatchedMemory(limit))
        return made[-1]

    monkeypatch.setattr(copy_module, "Memory", make)
    yield made
    assert [each.used for each in made] == [0] * len(made)
