"""Requests to a broker whose connection is just being made."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw import brokers as broker_connections
from mirror_lib.cluster.raw.brokers import BrokerConnections

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


def test_given_requests_that_wait_for_a_connection_when_it_is_there_then_no_later_one_overtakes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Recorder.requests = []
    monkeypatch.setattr(broker_connections, "DataConnection", Recorder)

    async def scene() -> None:
        brokers = BrokerConnections(Connection("B", ("localhost:1",)))
        tasks: list[asyncio.Task[memoryview]] = []
        waiting = asyncio.Event()

        def ask(number: int) -> asyncio.Task[memoryview]:
            task = asyncio.create_task(brokers.ask(NODE, number, 0, (), slot=LANE))
            tasks.append(task)
            return task

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

    asyncio.run(scene())

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
