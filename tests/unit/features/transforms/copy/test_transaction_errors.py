"""What is told of a transaction's producer that is fenced."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import cast

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.errors import FencedError, MirrorError, TransientError
from mirror_lib.features.transforms.copy.transactions import Transaction
from mirror_lib.planning.model import PositionTopic
from tests.support.brokers.fake_cluster import FakeCluster, job

FENCED = FencedError("a newer producer has taken over.")


def transaction(*, open_for: float | None) -> Transaction:
    positions = PositionTopic(Connection("B", ("localhost:2",)), "mm2-offsets.A.internal", "A", 60.0)
    client = cast("RawClient", FakeCluster())
    given = Transaction(
        replace(job(), positions=positions),
        client,
        "mirror:A->B:A.orders-0",
        ProducerIdentity(7, 1),
        timeout_seconds=60,
    )
    given.began = None if open_for is None else time.monotonic() - open_for
    return given


def test_given_a_transaction_that_took_too_long_when_its_producer_is_fenced_then_that_is_said() -> None:
    told = transaction(open_for=61).explain(FENCED)

    assert isinstance(told, FencedError)
    assert "after 60 s" in told.what
    assert "tasks.max" in told.action


def test_given_a_transaction_that_is_not_late_when_its_producer_is_fenced_then_somebody_has_taken_over() -> None:
    for open_for in (None, 5.0):
        assert transaction(open_for=open_for).explain(FENCED) is FENCED


def test_given_another_error_then_it_is_told_as_it_is_however_late_the_transaction_is() -> None:
    error: MirrorError = TransientError("no leader.")

    assert transaction(open_for=100).explain(error) is error
