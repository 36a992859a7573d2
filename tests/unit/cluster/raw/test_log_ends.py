"""The end of a log is believed only while one broker leads it: followers answer too, and may be behind."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.connection import Buffer
from mirror_lib.errors import MirrorError, TransientError
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
