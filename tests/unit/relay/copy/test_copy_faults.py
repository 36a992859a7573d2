"""Faults that concern a whole copy task: every partition still gets a true account."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

import mirror_lib.relay.copy.task as copy_module
from mirror_lib.cluster.raw.client import FetchRequestPartition
from mirror_lib.errors import AuthenticationError, BrokerUnreachableError, MirrorError, TransientError, Where
from mirror_lib.relay.copy.task import copy_bin
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.fake_cluster import FakeCluster, fill, job
from tests.unit.relay.conftest import CopyBetween, FakePair


def test_a_fault_of_this_program_leaves_true_accounts(pair: FakePair) -> None:
    # One partition is done, one has a batch on its way, one has not begun when an answer cannot be understood.
    for partition in range(3):
        fill(pair.source.add("orders", partition, leader=partition), [100])
    partitions = [pair.opened(partition=n) for n in range(3)]
    pair.target.leaders[TopicPartition("A.orders", 1)] = 7
    done = asyncio.Event()

    async def answer(node: int, keys: Sequence[TopicPartition]) -> None:
        if node == 7:
            done.set()
            await asyncio.Event().wait()

    async def fail(node: int, wanted: Sequence[FetchRequestPartition]) -> None:
        if node == 2:
            await done.wait()
            await asyncio.sleep(0.05)
            raise ZeroDivisionError("a fault")

    pair.target.before_answer, pair.source.on_fetch = answer, fail

    finished, sent, unread = pair.copy(*partitions)

    assert (finished.error, finished.complete, finished.certain) == (None, True, True)
    assert sent.error is not None
    assert "ZeroDivisionError" in sent.error.what
    assert (sent.source_next, sent.certain) == (0, False)
    assert unread.error is not None
    assert unread.error.where.partition == 2
    assert (unread.source_next, unread.certain) == (0, True)


def test_an_error_of_all_partitions_names_each(pair: FakePair, monkeypatch: pytest.MonkeyPatch) -> None:
    for topic in ("first", "second"):
        fill(pair.source.add(topic), [100])

    @asynccontextmanager
    async def refused(*_: object) -> AsyncIterator[None]:
        raise AuthenticationError("the cluster refused our credentials.", where=Where(cluster="B"))
        yield

    monkeypatch.setattr(copy_module, "open_clients", refused)

    results = copy_bin(job(pair.opened("first"), pair.opened("second")), 0)

    places = [result.error.where for result in results if result.error is not None]
    assert places == [Where("A->B", "B", "first", 0), Where("A->B", "B", "second", 0)]
    assert all(result.certain for result in results)


def test_connecting_is_tried_again_until_the_time_is_up(
    copy_between: CopyBetween, monkeypatch: pytest.MonkeyPatch
) -> None:
    away: list[MirrorError] = []

    @asynccontextmanager
    async def clients(*_: object) -> AsyncIterator[tuple[FakeCluster, FakeCluster]]:
        if away:
            raise away.pop()
        yield pair.source, pair.target

    monkeypatch.setattr(copy_module, "open_clients", clients)
    for error in (BrokerUnreachableError("nobody answers."), TransientError("no KDC answered.")):
        pair = FakePair(copy_between)
        fill(pair.source.add("orders"), [100])
        away += [error, error]

        (result,) = copy_bin(job(pair.opened(), retry_max_seconds=5.0), 0)

        assert (result.complete, away) == (True, []), error


def test_an_exception_that_nobody_asked_for_ends_nothing(pair: FakePair) -> None:
    # A client library may drop a future that failed: whoever needed it has been told otherwise.
    fill(pair.source.add("orders"), [100])

    def drop(*_: object) -> None:
        asyncio.get_running_loop().create_future().set_exception(OSError("the connection is gone"))
        gc.collect()

    pair.source.on_fetch = drop

    result = pair.copy_orders()

    assert result.complete


def test_a_lost_broker_that_a_fault_tells_of_does_not_begin_the_task_again(pair: FakePair) -> None:
    # What was on its way is not known any more, so the same accounts cannot go on.
    fill(pair.source.add("orders"), [100])

    async def fail(*_: object) -> None:
        asyncio.get_running_loop().call_soon(throw)
        await asyncio.Event().wait()

    def throw() -> None:
        raise BrokerUnreachableError("gone.")

    pair.source.on_fetch = fail

    result = pair.copy_orders(retry_max_seconds=3.0)

    assert isinstance(result.error, BrokerUnreachableError)
    assert len(pair.source.fetches) == 1
