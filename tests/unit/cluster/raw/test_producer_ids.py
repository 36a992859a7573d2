"""Producer ids: what is waited for, and what is not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity, Producers
from mirror_lib.errors import AuthorizationError, RetriesExhaustedError


class FakeBrokers:
    """One broker that answers with these error codes, and then with a producer id."""

    cluster = "B"

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)

    async def from_any(self, ask: Callable[[int], Awaitable[Any]]) -> Any:
        return await ask(1)

    async def send(self, node: int, request: object) -> Any:
        code = self.codes.pop(0) if self.codes else ErrorCode.NONE
        return SimpleNamespace(error_code=code, producer_id=7, producer_epoch=0)


def ask(brokers: Any, *, seconds: float) -> ProducerIdentity:
    return asyncio.run(Producers(brokers).new_producer_id(deadline=time.monotonic() + seconds))


def test_given_a_broker_that_has_just_started_when_asked_for_a_producer_id_then_it_is_waited_for() -> None:
    brokers = FakeBrokers(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    assert ask(brokers, seconds=60) == ProducerIdentity(7, 0)
    assert not brokers.codes


def test_given_a_broker_that_never_has_a_producer_id_when_time_is_up_then_the_brokers_are_named() -> None:
    with pytest.raises(RetriesExhaustedError) as failed:
        ask(FakeBrokers(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE), seconds=-1)

    assert "get a producer id" in str(failed.value)
    assert "__transaction_state" not in failed.value.action


def test_given_a_refusal_when_asked_for_a_producer_id_then_nothing_is_waited_for() -> None:
    brokers = FakeBrokers(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.NONE)

    with pytest.raises(AuthorizationError, match="IdempotentWrite"):
        ask(brokers, seconds=60)

    assert brokers.codes == [ErrorCode.NONE]
