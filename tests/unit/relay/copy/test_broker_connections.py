"""Brokers far away get more connections, larger requests and larger batches; those next door are left as they are."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.protocol.fetch import FetchRequestPartition
from mirror_lib.errors import BrokerUnreachableError
from mirror_lib.relay.copy.broker_connections import FAR_SECONDS, FetchPace, far_batch_bytes, far_request_bytes, reach
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.fake_cluster import FakeCluster, fill, job, opened
from tests.unit.relay.conftest import CopyBetween

MIB = 1024 * 1024
PARTITIONS = 6


def test_ten_milliseconds_of_round_trip_are_worth_a_connection_and_two_are_the_least() -> None:
    for round_trip, connections in ((None, 2), (0.0, 2), (0.009, 2), (0.02, 2), (0.021, 3), (0.15, 15), (3.0, 16)):
        assert reach(round_trip).connections == connections, round_trip


def test_next_door_the_tasks_of_a_job_have_two_connections_together() -> None:
    for tasks, connections in ((1, 2), (2, 1), (3, 1), (16, 1)):
        assert reach(0.001, tasks=tasks).connections == connections, tasks


def test_far_away_each_task_has_connections_as_if_it_were_alone() -> None:
    for round_trip, connections in ((0.01, 2), (0.02, 2), (0.15, 15)):
        assert reach(round_trip, tasks=16).connections == connections, round_trip


@given(round_trip=st.none() | st.floats(0, 5), asked=st.integers(1, 64))
def test_the_number_that_somebody_asked_for_counts(round_trip: float | None, asked: int) -> None:
    found = reach(round_trip, asked)

    assert found.connections == asked
    assert found.far == (round_trip is not None and round_trip >= FAR_SECONDS)


@given(memory=st.integers(1, 2**36), requests=st.integers(1, 1000), at_least=st.integers(1024, 48 * MIB))
def test_all_requests_together_fit_the_memory_unless_that_is_less_than_next_door(
    memory: int, requests: int, at_least: int
) -> None:
    size = far_request_bytes(memory, requests, at_least)

    assert at_least <= size <= 48 * MIB
    assert size == at_least or size * requests <= memory


class TestFetchPace:
    """How much is asked of brokers far away, by how long they took to answer."""

    def test_it_grows_while_full_answers_come_quickly_up_to_what_memory_allows(self) -> None:
        pace = FetchPace()

        asked = []
        for _ in range(8):
            asked.append(pace.ask(20 * MIB))
            pace.record_response(asked[-1], asked[-1], 0.2)

        assert asked == [MIB, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB, 20 * MIB, 20 * MIB, 20 * MIB]

    def test_answers_that_were_not_full_say_nothing_of_the_line(self) -> None:
        pace = FetchPace()

        pace.record_response(MIB, MIB // 4, 0.2)

        assert pace.ask(20 * MIB) == MIB

    def test_answers_to_what_was_asked_for_together_let_it_grow_once(self) -> None:
        pace = FetchPace()

        for _ in range(4):
            pace.record_response(MIB, MIB, 0.2)

        assert pace.ask(20 * MIB) == 2 * MIB

    @given(bytes_per_second=st.floats(10_000, 100_000_000))
    def test_it_settles_at_what_the_line_carries_in_some_seconds(self, bytes_per_second: float) -> None:
        pace = FetchPace()

        for _ in range(20):
            asked = pace.ask(48 * MIB)
            pace.record_response(asked, asked, asked / bytes_per_second)

        seconds = pace.ask(48 * MIB) / bytes_per_second
        assert seconds <= 12
        assert seconds >= 1 or pace.ask(48 * MIB) == 48 * MIB

    def test_no_answer_in_time_halves_it_down_to_a_least(self) -> None:
        pace = FetchPace()

        asked = []
        for _ in range(8):
            asked.append(pace.ask(20 * MIB))
            pace.record_timeout(asked[-1])

        assert asked[:3] == [MIB, MIB // 2, MIB // 4]
        assert asked[-1] == 32 * 1024


@given(accepted=st.integers(1024, 10 * MIB), batch_max=st.integers(1024, 2 * MIB))
def test_batches_for_far_away_are_as_large_as_the_topic_accepts_and_a_mebibyte_suffices(
    accepted: int, batch_max: int
) -> None:
    assert far_batch_bytes(accepted, batch_max) == min(accepted, max(MIB, batch_max))


def filled(source: FakeCluster) -> dict[int, list[bytes]]:
    written = {}
    for partition in range(PARTITIONS):
        written[partition] = fill(
            source.add("orders", partition), [2_000] * 60, records_each=20, prefix=f"{partition}-"
        )
    return written


def arrived(target: FakeCluster, partition: int) -> list[bytes]:
    return target.partitions[TopicPartition("A.orders", partition)].values()


def test_a_source_far_away_is_read_over_several_connections(copy_between: CopyBetween) -> None:
    source, target = FakeCluster("A"), FakeCluster("B")
    written = filled(source)
    source.round_trips[1] = 0.04

    results = copy_between(source, target, job(*(opened(source, target, partition=n) for n in range(PARTITIONS))))

    assert all(result.complete for result in results)
    assert {partition: arrived(target, partition) for partition in written} == written
    assert source.lanes_fetched == {0, 1, 2, 3}
    assert max(wanted.max_bytes for _, request in source.fetches for wanted in request) > MIB


def test_a_target_far_away_gets_few_large_batches_each_partition_over_one_connection(copy_between: CopyBetween) -> None:
    source, target = FakeCluster("A"), FakeCluster("B")
    written = filled(source)
    target.round_trips[1] = 0.04

    results = copy_between(source, target, job(*(opened(source, target, partition=n) for n in range(PARTITIONS))))

    assert all(result.complete for result in results)
    assert {partition: arrived(target, partition) for partition in written} == written
    assert {slot for slots in target.lanes_produced.values() for slot in slots} == {0, 1, 2, 3}
    assert all(len(slots) == 1 for slots in target.lanes_produced.values())
    sizes = [len(raw) for _, key, raw in target.produced if key.partition == 0]
    assert max(sizes) > MIB / 2
    # What is read while nothing is under way does not wait for more.
    assert len(sizes) <= math.ceil(60 * 20 * 2_100 / (MIB / 2)) + 1
    assert all(size <= 1_048_588 for size in sizes)


def test_next_door_batches_of_forty_kilobytes_go_on_as_they_are(copy_between: CopyBetween) -> None:
    source, target = FakeCluster("A"), FakeCluster("B")
    filled(source)

    copy_between(source, target, job(*(opened(source, target, partition=n) for n in range(PARTITIONS))))

    assert len([key for _, key, _ in target.produced if key.partition == 0]) == 60
    assert source.lanes_fetched == {0, 1}
    assert {slot for slots in target.lanes_produced.values() for slot in slots} == {0, 1}


def test_one_of_several_tasks_puts_its_partitions_into_common_requests(copy_between: CopyBetween) -> None:
    source, target = FakeCluster("A"), FakeCluster("B")
    written = filled(source)
    requests: list[int] = []
    target.before_produce = lambda _node, keys: requests.append(len(keys))
    alone = job(*(opened(source, target, partition=n) for n in range(PARTITIONS)))

    copy_between(source, target, replace(alone, bins=(*alone.bins, ())))

    assert {partition: arrived(target, partition) for partition in written} == written
    assert {slot for slots in target.lanes_produced.values() for slot in slots} == {0}
    assert max(requests) == PARTITIONS


def test_each_leader_gets_all_its_connections_where_leaders_change_from_partition_to_partition(
    copy_between: CopyBetween,
) -> None:
    source, target = FakeCluster("A"), FakeCluster("B")
    filled(source)
    copies = [opened(source, target, partition=n) for n in range(PARTITIONS)]
    for key in target.leaders:
        target.leaders[key] = 1 + key.partition % 2

    copy_between(source, target, job(*copies))

    for leader in (1, 2):
        slots = [slots for key, slots in target.lanes_produced.items() if target.leaders[key] == leader]
        assert set().union(*slots) == {0, 1}


class AwayUntil(FakeCluster):
    """The leaders of some partitions are away until the others have all that is meant for them."""

    def __init__(self, alias: str, away: Container[TopicPartition], expected: int) -> None:
        super().__init__(alias)
        self._away, self._expected = away, expected

    def leader(self, partition: TopicPartition) -> int | None:
        others = [log for key, log in self.partitions.items() if key not in self._away]
        if partition in self._away and any(log.end < self._expected for log in others):
            return None
        return super().leader(partition)


@pytest.mark.parametrize("away", [1, PARTITIONS - 1], ids=["one of them", "all but one"])
def test_partitions_whose_leaders_are_away_do_not_hold_all_that_the_others_need(
    copy_between: CopyBetween, monkeypatch: pytest.MonkeyPatch, away: int
) -> None:
    monkeypatch.setattr("mirror_lib.relay.copy.fetcher._LEAST_AHEAD", 0)
    source = FakeCluster("A")
    target = AwayUntil("B", {TopicPartition("A.orders", partition) for partition in range(away)}, 1_200)
    written = filled(source)
    settings = {"fetch_max_bytes": 200_000, "fetch_partition_max_bytes": 100_000, "retry_max_seconds": 20.0}
    copies = [opened(source, target, partition=n) for n in range(PARTITIONS)]

    results = copy_between(source, target, job(*copies, **settings))

    assert all(result.complete for result in results)
    assert {partition: arrived(target, partition) for partition in written} == written


def test_a_source_far_away_that_gives_no_answer_in_time_is_asked_for_less(copy_between: CopyBetween) -> None:
    source, target = FakeCluster("A"), FakeCluster("B")
    written = filled(source)
    source.round_trips[1] = 0.15

    def too_slow(_: int, wanted: Sequence[FetchRequestPartition]) -> None:
        """A line that carries half a mebibyte of a partition in the time that an answer has."""
        if any(each.max_bytes > MIB // 2 for each in wanted):
            raise BrokerUnreachableError("no answer within 30 s.")

    source.on_fetch = too_slow

    results = copy_between(source, target, job(*(opened(source, target, partition=n) for n in range(PARTITIONS))))

    assert all(result.complete for result in results)
    assert {partition: arrived(target, partition) for partition in written} == written
