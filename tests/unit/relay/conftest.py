"""Copy tasks between clusters in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

import mirror_lib.relay.copy.task as copy_module
from mirror_lib.relay.copy.fetcher import Memory
from mirror_lib.relay.copy.task import copy_bin
from mirror_lib.relay.model import CopyJob, PartitionResult
from tests.support.brokers.fake_cluster import FakeCluster

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
