"""Fencing a writer by its transactional id, also where the marker that does it is left out (KAFKA-20734)."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.errors import TransientError, Where
from mirror_lib.relay.takeover.fencing import fence_name
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.fake_cluster import PRODUCER_ID, FakeCluster

ORDERS, PAYMENTS = TopicPartition("A.orders", 0), TopicPartition("A.payments", 3)


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
