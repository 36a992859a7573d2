"""How many probes it takes to know how far away a broker is."""

from __future__ import annotations

import asyncio
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.raw.brokers import is_settled, measure_round_trip
from mirror_lib.cluster.raw.connection import DataConnection


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


def test_given_a_broker_that_answers_then_it_is_asked_until_that_tells() -> None:
    connection = Answering()

    seconds = asyncio.run(measure_round_trip(cast("DataConnection", connection)))

    assert seconds >= 0
    assert 1 <= connection.requests <= 6
