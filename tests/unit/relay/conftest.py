"""Copy tasks between clusters in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

import mirror_lib.relay.copy as copy_module
from mirror_lib.relay.copy import copy_bin
from mirror_lib.relay.model import CopyJob, PartitionResult
from mirror_lib.relay.reading import Memory
from tests.support.fake_cluster import FakeCluster

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


@pytest.fixture
def memories(monkeypatch: pytest.MonkeyPatch) -> list[Memory]:
    """The accounts of memory of all tasks that the test runs."""
    made: list[Memory] = []

    class Watched(Memory):
        def __init__(self, limit: int) -> None:
            super().__init__(limit)
            made.append(self)

    monkeypatch.setattr(copy_module, "Memory", Watched)
    return made
