"""From which replica a partition is read, and what of a follower's answers counts (KIP-392)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.fetch import FetchedPartition, FetchRequestPartition
from mirror_lib.copy.transfer.follower_fetch import Place, ReadReplicas
from mirror_lib.errors import BrokerUnreachableError
from mirror_lib.planning.model import CopyJob
from mirror_lib.records.validation import sound_batches
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.fake_cluster import FakeCluster, fill, job, opened
from tests.support.records.record_batches import SourceRecord, batch
from tests.unit.copy.conftest import Clock, CopyBetween

RACK = "r1"
LEADER, FOLLOWER = 1, 2
PARTITION = TopicPartition("orders", 0)
MAX_AGE = 300.0
SOUND = batch([SourceRecord(7)])
END = 100
ASKING, FROM_FOLLOWER, LEADER_ONLY = Place(LEADER, RACK), Place(FOLLOWER, follower=True), Place(LEADER)

Wanted = Sequence[FetchRequestPartition]


@pytest.fixture
def clock() -> Clock:
    return Clock(1_000.0)


@pytest.fixture
def replicas(clock: Clock) -> ReadReplicas:
    return ReadReplicas(RACK, MAX_AGE, clock=clock)


def answer(
    records: bytes = b"", *, error: int = 0, preferred: int | None = None, diverging: int | None = None
) -> FetchedPartition:
    return FetchedPartition(*PARTITION, error, END, END, 0, (), memoryview(records), diverging, preferred)


def takes(
    replicas: ReadReplicas,
    place: Place,
    given_answer: FetchedPartition,
    *,
    readable_to: int = END,
    alone: bool = False,
) -> bool:
    return replicas.takes(place, given_answer, readable_to=readable_to, end=END, alone=alone)


def refer(replicas: ReadReplicas) -> None:
    """The leader names the follower."""
    assert not takes(replicas, ASKING, answer(preferred=FOLLOWER))


def test_without_a_rack_only_leaders_are_read_and_none_is_told_one() -> None:
    assert ReadReplicas("", MAX_AGE).place(PARTITION, LEADER) == LEADER_ONLY


def test_a_leader_that_gives_records_to_a_reader_with_a_rack_is_read_on(replicas: ReadReplicas) -> None:
    assert replicas.place(PARTITION, LEADER) == ASKING
    assert takes(replicas, ASKING, answer(SOUND))
    assert replicas.place(PARTITION, LEADER) == ASKING


def test_given_a_leader_that_names_a_follower_then_that_is_read_until_the_choice_is_too_old(
    replicas: ReadReplicas, clock: Clock
) -> None:
    refer(replicas)

    assert replicas.place(PARTITION, LEADER) == FROM_FOLLOWER
    assert replicas.place(TopicPartition("orders", 1), LEADER) == ASKING
    assert takes(replicas, FROM_FOLLOWER, answer(SOUND))
    clock.now += MAX_AGE - 1
    assert replicas.place(PARTITION, LEADER) == FROM_FOLLOWER
    clock.now += 2
    assert replicas.place(PARTITION, LEADER) == ASKING


def test_given_a_follower_that_becomes_the_leader_then_it_is_read_as_one(replicas: ReadReplicas) -> None:
    refer(replicas)

    assert replicas.place(PARTITION, FOLLOWER) == Place(FOLLOWER, RACK)


def test_a_leader_that_names_itself_or_nobody_has_given_its_answer(replicas: ReadReplicas) -> None:
    for named in (LEADER, None):
        assert takes(replicas, ASKING, answer(preferred=named)), named


def test_given_a_follower_that_tells_of_anything_but_records_then_the_leader_is_read_without_being_told_a_rack(
    clock: Clock, subtests: pytest.Subtests
) -> None:
    for told in (
        # Java's consumer clears its preferred replica for each of these.
        answer(error=ErrorCode.OFFSET_OUT_OF_RANGE),
        answer(error=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        answer(error=ErrorCode.OFFSET_NOT_AVAILABLE),
        answer(error=ErrorCode.FENCED_LEADER_EPOCH),
        answer(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        answer(diverging=3),
        answer(SOUND[:-1] + b"?"),
    ):
        with subtests.test(told=told):
            replicas = ReadReplicas(RACK, MAX_AGE, clock=clock)
            refer(replicas)

            assert not takes(replicas, FROM_FOLLOWER, told)

            assert replicas.place(PARTITION, LEADER) == LEADER_ONLY
            clock.now += MAX_AGE
            assert replicas.place(PARTITION, LEADER) == ASKING


def test_what_a_leader_says_counts(replicas: ReadReplicas) -> None:
    for told in (answer(error=ErrorCode.OFFSET_OUT_OF_RANGE), answer(diverging=3), answer()):
        assert takes(replicas, ASKING, told, alone=True), told
        assert takes(replicas, LEADER_ONLY, told, alone=True), told


def test_a_follower_that_is_behind_is_waited_for_a_little(replicas: ReadReplicas) -> None:
    refer(replicas)

    for _ in range(2):
        assert not takes(replicas, FROM_FOLLOWER, answer(), readable_to=END - 1)
        assert replicas.place(PARTITION, LEADER) == FROM_FOLLOWER
    assert not takes(replicas, FROM_FOLLOWER, answer(), readable_to=END - 1)

    assert replicas.place(PARTITION, LEADER) == LEADER_ONLY


def test_a_follower_that_catches_up_is_read_on(replicas: ReadReplicas) -> None:
    refer(replicas)

    for _ in range(10):
        assert not takes(replicas, FROM_FOLLOWER, answer(), readable_to=END - 1)
        assert takes(replicas, FROM_FOLLOWER, answer(SOUND))

    assert replicas.place(PARTITION, LEADER) == FROM_FOLLOWER


def test_a_follower_without_records_is_believed_only_while_others_may_have_taken_the_room(
    replicas: ReadReplicas,
) -> None:
    refer(replicas)

    assert takes(replicas, FROM_FOLLOWER, answer(), alone=False)
    assert not takes(replicas, FROM_FOLLOWER, answer(), alone=True)
    assert replicas.place(PARTITION, LEADER) == LEADER_ONLY


def test_given_a_follower_that_does_not_answer_then_the_leader_is_asked(replicas: ReadReplicas) -> None:
    refer(replicas)

    assert replicas.leave_follower(FROM_FOLLOWER, PARTITION)
    assert replicas.place(PARTITION, LEADER) == LEADER_ONLY
    assert not replicas.leave_follower(LEADER_ONLY, PARTITION)


@given(st.integers(1, 5), st.integers(0, 200))
def test_batches_are_counted_as_far_as_they_are_whole(count: int, missing: int) -> None:
    batches = [batch([SourceRecord(offset)]) for offset in range(count)]
    data = b"".join(batches)
    cut = data[: max(len(data) - missing, 0)]

    whole = sum(len(cut) >= sum(map(len, batches[: number + 1])) for number in range(count))
    assert sound_batches(memoryview(cut)) == whole


@given(st.data())
def test_a_flipped_bit_under_the_checksum_is_found(data: st.DataObject) -> None:
    records = bytearray(SOUND + batch([SourceRecord(8)]))
    at = data.draw(st.integers(21, len(SOUND) - 1))
    records[at] ^= 1 << data.draw(st.integers(0, 7))

    assert sound_batches(memoryview(records)) is None


def from_rack(plain: CopyJob) -> CopyJob:
    return replace(plain, source=replace(plain.source, rack=RACK))


class Stage:
    """A source whose leader refers everybody with a rack to a follower."""

    def __init__(self) -> None:
        self.source, self.target = FakeCluster("A"), FakeCluster("B")
        self.values = fill(self.source.add("orders", leader=LEADER), [1000] * 10)
        self.source.on_fetch = self.answer
        self.broken_from = 5

    def broken(self, wanted: FetchRequestPartition) -> FetchedPartition | None:
        """What the follower answers from some offset on; None: the records."""
        del wanted
        return None

    def answer(self, node: int, wanted: Wanted) -> list[FetchedPartition] | None:
        (one,) = wanted
        told = self.source.racks_told[-1]
        if node == LEADER and told:
            return [self.source.fetched(one, b"")._replace(preferred_replica=FOLLOWER)]
        if node == FOLLOWER:
            assert told == ""
            found = self.broken(one) if one.offset >= self.broken_from else None
            return None if found is None else [found]
        return None

    def copy(self, copy_between: CopyBetween) -> None:
        wanted = job(opened(self.source, self.target), fetch_partition_max_bytes=1500, retry_max_seconds=0.0)
        (result,) = copy_between(self.source, self.target, from_rack(wanted))
        assert result.error is None
        assert self.target.partitions[TopicPartition("A.orders", 0)].values() == self.values

    def read_from(self, node: int) -> list[int]:
        return [wanted[0].offset for asked, wanted in self.source.fetches if asked == node]


def test_whatever_is_wrong_with_a_follower_the_rest_comes_from_the_leader(
    copy_between: CopyBetween, subtests: pytest.Subtests
) -> None:
    def broken(stage: Stage, what: str, wanted: FetchRequestPartition) -> FetchedPartition | None:
        empty = stage.source.fetched(wanted, b"")
        if what == "away":
            raise BrokerUnreachableError("it is gone.")
        if what == "damaged":
            sound = stage.source.partitions[PARTITION].batches[wanted.offset]
            return stage.source.fetched(wanted, sound[:-1] + bytes([sound[-1] ^ 1]))
        return {
            "error": empty._replace(error_code=ErrorCode.OFFSET_OUT_OF_RANGE),
            "diverging": empty._replace(diverging_end=0),
            "silent": empty,
            "behind": empty._replace(high_watermark=wanted.offset, last_stable_offset=wanted.offset),
        }[what]

    for what in ("error", "diverging", "damaged", "silent", "behind", "away"):
        with subtests.test(what=what):
            stage = Stage()
            stage.broken = partial(broken, stage, what)  # type: ignore[method-assign]

            stage.copy(copy_between)

            assert stage.read_from(LEADER)[:2] == [0, stage.broken_from]
            assert stage.source.racks_told.count(RACK) == 1
