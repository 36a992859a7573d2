"""Coordinators that move, are away or refuse while groups are asked about: what real brokers show only by chance.

A broker that does not answer takes its time once, not once for every request that asks for something of it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from mirror_lib.cluster.admin import requests as admin_calls
from mirror_lib.cluster.admin.groups import CommittedOffset, GroupAdmin
from mirror_lib.cluster.admin.requests import AdminCalls, Question
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.leader_wait import LEADER_SECONDS, LeaderWait
from mirror_lib.cluster.protocol import groups as protocol
from mirror_lib.cluster.protocol.error_codes import ErrorCode, LocalCode
from mirror_lib.errors import AuthorizationError, BrokerUnreachableError, MirrorError, RetriesExhaustedError, Where
from mirror_lib.topology.access import Grant, Operation
from mirror_lib.topology.names import TopicPartition
from tests.support.wire import compact

PLACE = TopicPartition("t", 0)
NO_TAGS, NOTHING = b"\x00", b"\x01"


class FakeBrokers:
    """Two brokers behind the interface of `RawClient`. Broker 1 coordinates every group until it says otherwise."""

    cluster = "A"

    def __init__(self) -> None:
        self.coordinator = 1
        #: What a group's coordinator answers first; then it answers with an offset.
        self.refusals: dict[str, list[int]] = {}
        self.away: list[int] = []
        self.refreshed = 0
        self.asked: list[tuple[int, int]] = []

    async def __aenter__(self) -> FakeBrokers:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    def brokers(self) -> list[int]:
        return [1, 2]

    async def speaks(self, node: int, api_key: int, version: int) -> bool:
        return True

    async def refresh_leaders(self, topics: Sequence[str]) -> dict[str, int]:
        self.refreshed += 1
        return {}

    async def ask(self, node: int, api_key: int, version: int, body: Sequence[bytes]) -> memoryview:
        self.asked.append((node, api_key))
        if api_key == protocol.FIND_COORDINATOR:
            return memoryview(self._coordinators(body))
        if node in self.away:
            self.away.remove(node)
            raise BrokerUnreachableError("it is away.")
        return memoryview(self._offsets(body))

    def _coordinators(self, body: Sequence[bytes]) -> bytes:
        # No tags, the type of key, the names.
        names = _names(b"".join(body)[2:])
        one = [
            compact(name) + self.coordinator.to_bytes(4) + compact("h") + bytes(4) + bytes(2) + NOTHING + NO_TAGS
            for name in names
        ]
        return NO_TAGS + bytes(4) + bytes([len(one) + 1]) + b"".join(one) + NO_TAGS

    def _offsets(self, body: Sequence[bytes]) -> bytes:
        answers = []
        for name in _names(b"".join(body)[1:], behind=2):
            refusals = self.refusals.get(name, [])
            code = refusals.pop(0) if refusals else 0
            place = bytes(4) + (7).to_bytes(8) + bytes(4) + NOTHING + bytes(2) + NO_TAGS
            topics = NOTHING if code else b"\x02" + compact("t") + b"\x02" + place + NO_TAGS
            answers.append(compact(name) + topics + code.to_bytes(2) + NO_TAGS)
        return NO_TAGS + bytes(4) + bytes([len(answers) + 1]) + b"".join(answers) + NO_TAGS


def _names(data: bytes, behind: int = 0) -> list[str]:
    names, at = [], 1
    for _ in range(data[0] - 1):
        end = at + data[at]
        names.append(data[at + 1 : end].decode())
        at = end + behind
    return names


@pytest.fixture
def brokers() -> FakeBrokers:
    return FakeBrokers()


@pytest.fixture
def groups(brokers: FakeBrokers, monkeypatch: pytest.MonkeyPatch) -> GroupAdmin:
    monkeypatch.setattr("mirror_lib.cluster.admin.groups._PAUSE_SECONDS", 0.0)
    admin: Any = GroupAdmin(Connection("A", ("localhost:1",)), timeout_seconds=5.0)
    admin._client = brokers
    return admin


def test_given_a_group_that_moved_when_asked_then_its_new_coordinator_answers(
    brokers: FakeBrokers, groups: GroupAdmin
) -> None:
    for asked, code in enumerate((ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), start=1):
        brokers.refusals["moved"] = [code, code]

        with groups:
            found = groups.fetch_committed(["moved", "still"])

        assert found.offsets == {group: {PLACE: CommittedOffset(7)} for group in ("moved", "still")}, code
        assert (found.errors, brokers.refreshed) == ({}, 2 * asked), code


def test_given_a_group_we_may_not_see_when_asked_then_only_its_answer_is_an_error(
    brokers: FakeBrokers, groups: GroupAdmin
) -> None:
    brokers.refusals["hidden"] = [ErrorCode.GROUP_AUTHORIZATION_FAILED]

    with groups:
        found = groups.fetch_committed(["hidden", "seen"])

    assert list(found.offsets) == ["seen"]
    assert isinstance(found.errors["hidden"], AuthorizationError)


def test_given_a_coordinator_that_goes_away_when_asked_then_it_is_asked_again(
    brokers: FakeBrokers, groups: GroupAdmin
) -> None:
    brokers.away = [1]

    with groups:
        assert list(groups.fetch_committed(["g"]).offsets) == ["g"]

    assert brokers.asked.count((1, protocol.OFFSET_FETCH)) == 2


def test_given_no_coordinator_in_time_when_asked_then_the_cluster_is_told_from_the_group(
    brokers: FakeBrokers, groups: GroupAdmin
) -> None:
    impatient: Any = groups
    impatient._timeout = -1.0
    brokers.refusals["g"] = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    with groups:
        found = groups.fetch_committed(["g", "h"])
        assert isinstance(found.errors["g"], RetriesExhaustedError)
        assert list(found.offsets) == ["h"]

        brokers.away = [1]
        with pytest.raises(BrokerUnreachableError):
            groups.fetch_committed(["g"])


def test_given_groups_without_a_coordinator_when_asked_several_times_then_they_are_waited_for_once(
    brokers: FakeBrokers, groups: GroupAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirror_lib.cluster.leader_wait._LEAST_SECONDS", 0.0)
    groups.leader_wait = LeaderWait()
    groups.leader_wait.note(time.monotonic() - LEADER_SECONDS + 0.1)
    brokers.refusals["g"] = [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 1_000_000

    with groups:
        assert set(groups.fetch_committed(["g", "h"]).errors) == {"g"}
        before = len(brokers.asked)
        assert set(groups.fetch_committed(["g"]).errors) == {"g"}

    assert [api for _, api in brokers.asked[before:]].count(protocol.OFFSET_FETCH) == 1


_SECONDS = 0.4


def test_after_a_silence_the_requests_behind_it_get_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_calls, "_AFTER_SILENCE_SECONDS", 0.01)
    given: list[float] = []

    def ask(keys: Sequence[int], seconds: float) -> Mapping[int, Future[Any]]:
        """Every tenth key is led by a broker that does not answer."""
        given.append(seconds)
        futures: dict[int, Future[Any]] = {key: Future() for key in keys}
        for key, future in futures.items():
            if key % 10:
                future.set_result(key)
            else:
                future.set_exception(KafkaException(KafkaError(LocalCode.TIMED_OUT)))
        return futures

    question = Question(
        "ask", 10, ask, lambda _: Where(cluster="A"), lambda _: Grant.on_topic(Operation.DESCRIBE, "orders")
    )

    found, codes = AdminCalls(Connection("A", ("localhost:1",)), 30.0).ask_once(question, range(300), _SECONDS)

    assert sorted(found) == list(range(300))
    assert {key for key, answer in found.items() if not isinstance(answer, MirrorError)} == set(codes) ^ set(range(300))
    assert codes == dict.fromkeys(range(0, 300, 10), LocalCode.TIMED_OUT)
    assert len(given) == 30
    assert (set(given[:8]), set(given[8:])) == ({_SECONDS}, {0.01})
