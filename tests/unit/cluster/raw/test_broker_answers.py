"""The end of a log is believed only while one broker leads it: followers answer too, and may be behind.

A broker that throttles us answers a fetch with nothing at all; that is no answer about any partition.

Producer ids: what is waited for, and what is not.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.raw.client import FetchRequestPartition, RawClient
from mirror_lib.cluster.raw.connection import Buffer
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity, Producers
from mirror_lib.errors import AuthorizationError, MirrorError, RetriesExhaustedError, TransientError
from mirror_lib.topology.names import TopicPartition

PLACE = TopicPartition("orders", 3)
NOT_LEADER = 6


class Answer(NamedTuple):
    """A broker's answer about the end of a partition (ListOffsetsResponse.json, version 5)."""

    offset: int
    epoch: int
    error_code: int = 0

    def frame(self) -> memoryview:
        head = struct.pack(">iih", 0, 1, len(PLACE.topic)) + PLACE.topic.encode() + struct.pack(">i", 1)
        return memoryview(head + struct.pack(">ihqqi", PLACE.partition, self.error_code, -1, self.offset, self.epoch))


class Scripted(RawClient):
    """A client of a broker that leads, or does not, as the script says."""

    def __init__(self, *answers: Answer) -> None:
        super().__init__(Connection("B", ("localhost:1",)))
        self._answers = list(answers)
        #: A consumer (-1) gets an answer from leaders only, a debugging replica (-2) from all.
        self.replicas: list[int] = []

    async def ask(
        self, node: int, api_key: int, version: int, body: Sequence[Buffer], *, over: object | None = None
    ) -> memoryview:
        (replica,) = struct.unpack_from(">i", b"".join(bytes(part) for part in body))
        self.replicas.append(replica)
        return self._answers.pop(0).frame()


def ends(client: RawClient) -> tuple[int, int]:
    return asyncio.run(client.log_ends(1, PLACE))


def test_a_leader_tells_the_high_watermark_and_the_end() -> None:
    client = Scripted(Answer(40, 7), Answer(45, 7), Answer(42, 7))

    assert ends(client) == (42, 45)
    assert client.replicas == [-1, -2, -1]


def test_a_broker_that_did_not_lead_all_the_time_is_not_believed(subtests: pytest.Subtests) -> None:
    for answers in (
        # It was no leader when it was asked first, or last.
        (Answer(-1, -1, NOT_LEADER),),
        (Answer(40, 7), Answer(30, 7), Answer(-1, -1, NOT_LEADER)),
        # It led, followed, and leads again: what it had in between is not the end.
        (Answer(40, 7), Answer(30, 7), Answer(40, 9)),
    ):
        with subtests.test(answers=answers):
            with pytest.raises(MirrorError) as caught:
                ends(Scripted(*answers))

            assert isinstance(caught.value, TransientError)


_WANTED = FetchRequestPartition("orders", 0, 5, 1024)


def answer(*, throttle_ms: int, partitions: int) -> memoryview:
    """A Fetch answer v11: throttle time, error code, session; then topics with partitions without records."""
    head = struct.pack(">ihi", throttle_ms, 0, 0)
    if not partitions:
        return memoryview(head + struct.pack(">i", 0))
    name = b"orders"
    partition = struct.pack(">ihqqqiii", 0, 0, 9, 9, 0, 0, -1, 0)
    return memoryview(head + struct.pack(">ih", 1, len(name)) + name + struct.pack(">i", 1) + partition)


class Throttled(RawClient):
    """Gives scripted answers."""

    def __init__(self, *answers: memoryview) -> None:
        super().__init__(Connection("A", ("localhost:1",)))
        self.left = list(answers)

    async def speaks(self, node: int, api_key: int, version: int) -> bool:
        return False

    async def ask(self, node: int, api_key: int, version: int, body: Sequence[Buffer], **_: Any) -> memoryview:
        return self.left.pop(0)


def fetched(client: RawClient) -> list[tuple[str, int, int]]:
    found = asyncio.run(client.fetch(1, [_WANTED], max_bytes=1024, max_wait_ms=1, read_committed=False))
    return [(each.topic, each.partition, each.high_watermark) for each in found]


def test_a_throttled_fetch_is_sent_again_after_the_time_that_the_broker_tells() -> None:
    client = Throttled(
        answer(throttle_ms=5, partitions=0), answer(throttle_ms=1, partitions=0), answer(throttle_ms=0, partitions=1)
    )

    assert fetched(client) == [("orders", 0, 9)]
    assert client.left == []


def test_an_answer_that_is_throttled_and_has_partitions_counts() -> None:
    client = Throttled(answer(throttle_ms=5_000, partitions=1))

    assert fetched(client) == [("orders", 0, 9)]


def test_an_answer_without_partitions_that_is_not_throttled_is_left_to_the_caller() -> None:
    assert fetched(Throttled(answer(throttle_ms=0, partitions=0))) == []


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
