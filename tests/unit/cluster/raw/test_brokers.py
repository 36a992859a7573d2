"""Requests to a broker whose connection is just being made.

How many probes it takes to know how far away a broker is.
"""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw import brokers as broker_connections
from mirror_lib.cluster.raw.brokers import BrokerConnections, is_settled, measure_round_trip
from mirror_lib.cluster.raw.connection import DataConnection

NODE, LANE = 1, 1


class Recorder:
    """A connection that notes the requests in the order in which they come."""

    open = True
    requests: list[int]

    def __init__(self, *_: object, **__: object) -> None:
        pass

    async def request(self, api_key: int, version: int, body: object, **_: object) -> memoryview:
        self.requests.append(api_key)
        return memoryview(b"")


async def test_given_requests_that_wait_for_a_connection_when_it_is_there_then_no_later_one_overtakes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Recorder.requests = []
    monkeypatch.setattr(broker_connections, "DataConnection", Recorder)
    brokers = BrokerConnections(Connection("B", ("localhost:1",)))
    tasks: list[asyncio.Task[memoryview]] = []
    waiting = asyncio.Event()

    def ask(number: int) -> None:
        tasks.append(asyncio.create_task(brokers.ask(NODE, number, 0, (), slot=LANE)))

    async def shake_hands_with(node: int) -> Any:
        await waiting.wait()
        # Its first step comes before the turn of those that wait already.
        ask(3)
        return SimpleNamespace(detach=lambda: None, versions=dict.fromkeys(range(10), (0, 0)), session=None)

    brokers._client = SimpleNamespace(shake_hands_with=shake_hands_with)
    for number in range(3):
        ask(number)
        await asyncio.sleep(0)
    waiting.set()
    await tasks[0]
    ask(4)
    await asyncio.gather(*tasks)
    await asyncio.gather(*tasks)

    assert Recorder.requests == [0, 1, 2, 3, 4]


def test_given_a_session_that_ends_soon_then_the_connection_is_replaced_when_no_answer_is_to_come(
    subtests: pytest.Subtests,
) -> None:
    for nearly_over, waiting, kept in (
        (False, False, True),
        (False, True, True),
        (True, True, True),
        (True, False, False),
    ):
        with subtests.test(nearly_over=nearly_over, waiting=waiting):
            closed: list[bool] = []
            found = SimpleNamespace(
                connected=lambda: True,
                is_nearly_over=nearly_over,
                is_waiting=waiting,
                close=partial(closed.append, True),
            )
            client: Any = SimpleNamespace(_conns={(NODE, "group"): found})

            assert (broker_connections._Client._open_connection(client, NODE, "group") is found) is kept  # type: ignore[arg-type]
            assert closed == ([] if kept else [True])


def test_given_probes_then_those_that_may_come_from_a_busy_machine_are_in_doubt() -> None:
    for probes, told in (
        ([0.001], True),
        ([0.02], False),
        # Next door, but busy: more probes are needed.
        ([0.012, 0.015], False),
        ([0.012, 0.015, 0.011, 0.0004], True),
        # As far away as the next continent.
        ([0.151], False),
        ([0.151, 0.150], True),
    ):
        assert is_settled(probes) == told, probes


@given(st.lists(st.floats(0, 10), min_size=6, max_size=6))
def test_given_any_answers_then_six_probes_are_enough(probes: list[float]) -> None:
    assert is_settled(probes)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=6), st.floats(0, 0.0049))
def test_given_one_quick_answer_then_the_broker_is_near(probes: list[float], quick: float) -> None:
    assert is_settled([*probes, quick])


class Answering:
    """A connection whose broker answers at once."""

    def __init__(self) -> None:
        self.requests = 0

    async def request(self, *_: object) -> memoryview:
        self.requests += 1
        return memoryview(b"")


async def test_given_a_broker_that_answers_then_it_is_asked_until_that_tells() -> None:
    connection = Answering()

    seconds = await measure_round_trip(cast("DataConnection", connection))

    assert seconds >= 0
    assert 1 <= connection.requests <= 6
