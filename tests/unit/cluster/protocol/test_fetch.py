"""Fetch as it stands on the wire (Kafka's FetchRequest.json and FetchResponse.json, versions 11 to 13)."""

from __future__ import annotations

import base64
import struct
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.protocol.fetch import (
    EPOCH_CHECKING_VERSION,
    PLAIN_VERSION,
    TOPIC_ID_VERSION,
    FetchedPartition,
    FetchRequestPartition,
    encode_fetch,
    names_by_id,
    parse_fetch,
)
from mirror_lib.cluster.protocol.malformed import GarbledAnswerError
from mirror_lib.cluster.raw.connection import Buffer
from mirror_lib.errors import MirrorError
from tests.support.wire import varint

THROTTLE, NO_ERROR, NO_SESSION = 7, 0, 0
LONG_NAME = "n" * 200
IDS = {name: uuid.uuid5(uuid.NAMESPACE_DNS, name).bytes for name in ("a", "orders.é", LONG_NAME)}
NAMES = {topic_id: name for name, topic_id in IDS.items()}


def answer(*partitions: FetchedPartition, version: int, error_code: int = NO_ERROR) -> memoryview:
    """The answer with one topic for each partition; the newer one with tagged fields that nobody knows."""
    head = struct.pack(">ihi", THROTTLE, error_code, NO_SESSION)
    compact = version >= EPOCH_CHECKING_VERSION
    body = (b"\0" + head + varint(len(partitions) + 1)) if compact else head + struct.pack(">i", len(partitions))
    for each in partitions:
        name = each.topic.encode()
        replica = -1 if each.preferred_replica is None else each.preferred_replica
        facts = struct.pack(
            ">ihqqq", each.partition, each.error_code, each.high_watermark, each.last_stable_offset, each.log_start
        )
        aborted = [struct.pack(">qq", *pair) for pair in each.aborted]
        if not compact:
            body += struct.pack(">h", len(name)) + name + struct.pack(">i", 1) + facts
            body += struct.pack(">i", len(aborted)) + b"".join(aborted)
            body += struct.pack(">ii", replica, len(each.records)) + bytes(each.records)
            continue
        tags = [(1, b"\x09unknown..")]
        if each.diverging_end is not None:
            tags.insert(0, (0, struct.pack(">iq", 3, each.diverging_end) + b"\0"))
        body += IDS[each.topic] if version >= TOPIC_ID_VERSION else varint(len(name) + 1) + name
        body += varint(2) + facts
        body += varint(len(aborted) + 1) + b"".join(pair + b"\0" for pair in aborted)
        body += struct.pack(">i", replica) + varint(len(each.records) + 1) + bytes(each.records)
        body += varint(len(tags)) + b"".join(varint(tag) + varint(len(data)) + data for tag, data in tags)
        body += b"\0"
    return memoryview(body + (b"\0" if compact else b""))


numbers = st.integers(-(2**63), 2**63 - 1)
fetched = st.builds(
    FetchedPartition,
    topic=st.sampled_from(["a", "orders.é", LONG_NAME]),
    partition=st.integers(0, 2**31 - 1),
    error_code=st.integers(-1, 120),
    high_watermark=numbers,
    last_stable_offset=numbers,
    log_start=numbers,
    aborted=st.lists(st.tuples(numbers, numbers), max_size=3).map(tuple),
    records=st.binary(max_size=300).map(memoryview),
    diverging_end=st.none(),
    preferred_replica=st.none() | st.integers(0, 2**31 - 1),
)


@given(st.lists(fetched, max_size=4))
def test_the_plain_answer_is_read(partitions: list[FetchedPartition]) -> None:
    assert parse_fetch(answer(*partitions, version=PLAIN_VERSION), PLAIN_VERSION) == partitions


@given(st.lists(st.builds(FetchedPartition._replace, fetched, diverging_end=st.none() | numbers), max_size=4))
def test_the_checking_answer_is_read_with_what_diverges(partitions: list[FetchedPartition]) -> None:
    for version in (EPOCH_CHECKING_VERSION, TOPIC_ID_VERSION):
        assert parse_fetch(answer(*partitions, version=version), version, NAMES) == partitions


def test_given_an_answer_with_the_id_of_another_topic_then_it_is_refused() -> None:
    stranger = FetchedPartition("a", 3, 0, 70, 60, 5, (), memoryview(b""))

    with pytest.raises(GarbledAnswerError):
        parse_fetch(answer(stranger, version=TOPIC_ID_VERSION), TOPIC_ID_VERSION, {IDS[LONG_NAME]: LONG_NAME})


def test_an_error_of_the_whole_answer_is_raised(subtests: pytest.Subtests) -> None:
    for version in (PLAIN_VERSION, EPOCH_CHECKING_VERSION, TOPIC_ID_VERSION):
        with subtests.test(version=version), pytest.raises(MirrorError):
            parse_fetch(answer(version=version, error_code=29), version)


def java_uuid(topic: str) -> str:
    """A topic's id as Java writes it."""
    return base64.urlsafe_b64encode(IDS[topic]).decode().rstrip("=")


WANTED = [
    FetchRequestPartition("a", 3, 70, 1_000, last_epoch=5, topic_id=java_uuid("a")),
    FetchRequestPartition("a", 4, 80, 2_000, topic_id=java_uuid("a")),
    FetchRequestPartition(LONG_NAME, 0, 90, 3_000, topic_id=java_uuid(LONG_NAME)),
]


def request(version: int, rack: str = "") -> bytes:
    parts: list[Buffer] = encode_fetch(
        WANTED, max_bytes=9_000, max_wait_ms=500, min_bytes=1, read_committed=True, version=version, rack=rack
    )
    return b"".join(bytes(part) for part in parts)


def test_the_plain_request_says_nothing_of_epochs() -> None:
    def partition(number: int, offset: int, size: int) -> bytes:
        return struct.pack(">iiqqi", number, -1, offset, -1, size)

    assert request(PLAIN_VERSION) == (
        struct.pack(">iiiibii", -1, 500, 1, 9_000, 1, 0, -1)
        + struct.pack(">i", 2)
        + (b"\0\1a" + struct.pack(">i", 2) + partition(3, 70, 1_000) + partition(4, 80, 2_000))
        + (struct.pack(">h", 200) + LONG_NAME.encode() + struct.pack(">i", 1) + partition(0, 90, 3_000))
        + (struct.pack(">i", 0) + b"\0\0")
    )


def test_the_checking_request_says_of_which_epoch_the_record_before_was(subtests: pytest.Subtests) -> None:
    def partition(number: int, offset: int, epoch: int, size: int) -> bytes:
        return struct.pack(">iiqiqi", number, -1, offset, epoch, -1, size) + b"\0"

    names = {name: varint(len(name) + 1) + name.encode() for name in ("a", LONG_NAME)}
    for version, topics in ((EPOCH_CHECKING_VERSION, names), (TOPIC_ID_VERSION, IDS)):
        with subtests.test(version=version):
            assert request(version) == (
                b"\0"  # the header's tagged fields
                + struct.pack(">iiiibii", -1, 500, 1, 9_000, 1, 0, -1)
                + varint(3)
                + (topics["a"] + varint(3) + partition(3, 70, 5, 1_000) + partition(4, 80, -1, 2_000) + b"\0")
                + (topics[LONG_NAME] + varint(2) + partition(0, 90, -1, 3_000) + b"\0")
                + (b"\1\1\0")
            )


def test_the_names_of_a_request_are_known_only_where_every_topic_has_an_id() -> None:
    assert names_by_id(WANTED) == {IDS["a"]: "a", IDS[LONG_NAME]: LONG_NAME}
    assert names_by_id([*WANTED, FetchRequestPartition("b", 0, 0, 1_000)]) == {}


def test_a_rack_stands_at_the_end_of_the_request() -> None:
    for version, end in (
        (PLAIN_VERSION, struct.pack(">i", 0) + b"\0\5rack1"),
        (EPOCH_CHECKING_VERSION, b"\1\6rack1\0"),
    ):
        assert request(version, "rack1").endswith(end), version
