"""Brokers far away get more connections, larger requests and larger batches; those next door are left as they are."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.protocol.fetch import FetchRequestPartition
from mirror_lib.copy.transfer.broker_connections import (
    FAR_SECONDS,
    FetchPace,
    far_batch_bytes,
    far_request_bytes,
    reach,
)
from mirror_lib.errors import BrokerUnreachableError
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.fake_cluster import FakeCluster, fill, job
from tests.unit.copy.conftest import CopyBetween, FakePair

MIB = 1024 * 1024
PARTITIONS = 6


def test_ten_milliseconds_of_round_trip_are_worth_a_connection_and_two_are_the_least() -> None:
    for round_trip, connections in ((None, 2), (0.0, 2), (0.009, 2), (0.02, 2), (0.021, 3), (0.15, 15), (3.0, 16)):
        assert reach(round_trip).connections == connections, round_trip


def test_next_door_the_tasks_of_a_job_share_two_connections_and_far_away_each_has_its_own() -> None:
    for round_trip, tasks, connections in (
        *((0.001, 1, 2), (0.001, 2, 1), (0.001, 3, 1), (0.001, 16, 1)),
        *((0.01, 16, 2), (0.02, 16, 2), (0.15, 16, 15)),
    ):
        assert reach(round_trip, tasks=tasks).connections == connections, (round_trip, tasks)


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

    def test_answers_that_were_not_full_let_it_not_grow_and_those_to_what_was_asked_for_together_once(self) -> None:
        for answers, received, asked in ((1, MIB // 4, MIB), (4, MIB, 2 * MIB)):
            pace = FetchPace()

            for _ in range(answers):
                pace.record_response(MIB, received, 0.2)

            assert pace.ask(20 * MIB) == asked, received

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


def copy_whole(pair: FakePair, **settings: object) -> None:
    """Copy partitions that `filled` has made: all records arrive."""
    written = filled(pair.source)

    results = pair.copy_all(PARTITIONS, **settings)

    assert all(result.complete for result in results)
    assert {partition: pair.copied(partition) for partition in written} == written


def lanes_produced(target: FakeCluster) -> set[int]:
    return {slot for slots in target.lanes_produced.values() for slot in slots}


def test_a_source_far_away_is_read_over_several_connections(pair: FakePair) -> None:
    pair.source.round_trips[1] = 0.04

    copy_whole(pair)

    assert pair.source.lanes_fetched == {0, 1, 2, 3}
    assert max(wanted.max_bytes for _, request in pair.source.fetches for wanted in request) > MIB


def test_a_target_far_away_gets_few_large_batches_each_partition_over_one_connection(pair: FakePair) -> None:
    pair.target.round_trips[1] = 0.04

    copy_whole(pair)

    assert lanes_produced(pair.target) == {0, 1, 2, 3}
    assert all(len(slots) == 1 for slots in pair.target.lanes_produced.values())
    sizes = [len(raw) for _, key, raw in pair.target.produced if key.partition == 0]
    assert max(sizes) > MIB / 2
    # What is read while nothing is under way does not wait for more.
    assert len(sizes) <= math.ceil(60 * 20 * 2_100 / (MIB / 2)) + 1
    assert all(size <= 1_048_588 for size in sizes)


def test_next_door_batches_of_forty_kilobytes_go_on_as_they_are(pair: FakePair) -> None:
    copy_whole(pair)

    assert len([key for _, key, _ in pair.target.produced if key.partition == 0]) == 60
    assert pair.source.lanes_fetched == {0, 1}
    assert lanes_produced(pair.target) == {0, 1}


def test_one_of_several_tasks_puts_its_partitions_into_common_requests(
    pair: FakePair, copy_between: CopyBetween
) -> None:
    written = filled(pair.source)
    requests: list[int] = []
    pair.target.before_produce = lambda _node, keys: requests.append(len(keys))
    alone = job(*(pair.opened(partition=n) for n in range(PARTITIONS)))

    copy_between(pair.source, pair.target, replace(alone, bins=(*alone.bins, ())))

    assert {partition: pair.copied(partition) for partition in written} == written
    assert lanes_produced(pair.target) == {0}
    assert max(requests) == PARTITIONS


def test_each_leader_gets_all_its_connections_where_leaders_change_from_partition_to_partition(pair: FakePair) -> None:
    filled(pair.source)
    copies = [pair.opened(partition=n) for n in range(PARTITIONS)]
    for key in pair.target.leaders:
        pair.target.leaders[key] = 1 + key.partition % 2

    pair.copy(*copies)

    for leader in (1, 2):
        slots = [slots for key, slots in pair.target.lanes_produced.items() if pair.target.leaders[key] == leader]
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


def test_partitions_whose_leaders_are_away_do_not_hold_all_that_the_others_need(
    copy_between: CopyBetween, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setattr("mirror_lib.copy.transfer.fetcher._LEAST_AHEAD", 0)
    settings = {"fetch_max_bytes": 200_000, "fetch_partition_max_bytes": 100_000, "retry_max_seconds": 20.0}
    for away in (1, PARTITIONS - 1):
        with subtests.test(away=away):
            pair = FakePair(copy_between)
            pair.target = AwayUntil("B", {TopicPartition("A.orders", partition) for partition in range(away)}, 1_200)

            copy_whole(pair, **settings)


def test_a_source_far_away_that_gives_no_answer_in_time_is_asked_for_less(pair: FakePair) -> None:
    pair.source.round_trips[1] = 0.15

    def too_slow(_: int, wanted: Sequence[FetchRequestPartition]) -> None:
        """A line that carries half a mebibyte of a partition in the time that an answer has."""
        if any(each.max_bytes > MIB // 2 for each in wanted):
            raise BrokerUnreachableError("no answer within 30 s.")

    pair.source.on_fetch = too_slow

    copy_whole(pair)
