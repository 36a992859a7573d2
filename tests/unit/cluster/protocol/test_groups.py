"""Answers about groups that brokers give rarely; the common ones come from real brokers in the integration tests.

Bytes are written down by the message schemas of Kafka 4.3 (`clients/src/main/resources/common/message`).
"""

from mirror_lib.cluster.protocol.groups import (
    BATCH_FIND_COORDINATOR,
    LIST_GROUPS_WITH_KINDS,
    CommittedOffset,
    CoordinatorFields,
    GroupOffsets,
    ListedGroupFields,
    encode_commit,
    encode_find_coordinators,
    parse_fetch_group_offsets,
    parse_fetch_offsets,
    parse_find_coordinators,
    parse_list_groups,
)
from mirror_lib.topology.names import TopicPartition
from tests.support.wire import compact, plain

NO_TAGS = b"\x00"
#: One unknown tagged field: count, tag, size, content.
A_TAG = b"\x01\x05\x02xy"
THROTTLE = bytes(4)


def committed(partition: int, offset: int, metadata: bytes, error: int) -> bytes:
    epoch = (-1).to_bytes(4, "big", signed=True)
    return partition.to_bytes(4, "big") + offset.to_bytes(8, "big", signed=True) + epoch + metadata + error.to_bytes(2)


def test_offsets_that_are_not_there_are_left_out_and_errors_are_kept_by_partition() -> None:
    partitions = (
        committed(0, 5, compact("note"), 0)
        + A_TAG
        + committed(1, -1, b"\x00", 0)
        + NO_TAGS
        + committed(2, -1, b"\x01", 29)
        + NO_TAGS
    )
    topic = b"\x02" + compact("orders") + b"\x04" + partitions + A_TAG
    group = compact("g") + topic + (0).to_bytes(2) + A_TAG
    refused = compact("h") + b"\x01" + (30).to_bytes(2) + NO_TAGS
    answer = A_TAG + THROTTLE + b"\x03" + group + refused + NO_TAGS

    found = parse_fetch_offsets(memoryview(answer))

    offsets = {TopicPartition("orders", 0): CommittedOffset(5, "note")}
    assert found == [
        GroupOffsets("g", 0, offsets, {TopicPartition("orders", 2): 29}),
        GroupOffsets("h", 30, {}, {}),
    ]


def test_an_old_broker_tells_the_same_in_the_plain_encoding() -> None:
    one = (1).to_bytes(4)
    topic = plain("orders") + one + committed(3, 7, (-1).to_bytes(2, "big", signed=True), 0)
    answer = THROTTLE + one + topic + (0).to_bytes(2)

    found = parse_fetch_group_offsets(memoryview(answer), "g")

    assert found == GroupOffsets("g", 0, {TopicPartition("orders", 3): CommittedOffset(7)}, {})


def test_a_group_without_a_coordinator_comes_with_its_error() -> None:
    nobody = (-1).to_bytes(4, "big", signed=True)
    good = compact("g") + (7).to_bytes(4) + compact("host") + (9092).to_bytes(4) + (0).to_bytes(2) + b"\x00" + NO_TAGS
    bad = compact("h") + nobody + compact("") + nobody + (15).to_bytes(2) + compact("not yet") + A_TAG
    answer = NO_TAGS + THROTTLE + b"\x03" + good + bad + NO_TAGS

    found = parse_find_coordinators(memoryview(answer))

    assert found == [CoordinatorFields("g", 0, 7), CoordinatorFields("h", 15, -1)]


def test_groups_are_listed_with_state_and_kind() -> None:
    group = compact("g") + compact("consumer") + compact("Stable") + compact("Consumer") + A_TAG
    answer = NO_TAGS + THROTTLE + (0).to_bytes(2) + b"\x02" + group + NO_TAGS

    found = parse_list_groups(memoryview(answer), LIST_GROUPS_WITH_KINDS)

    assert found == (0, [ListedGroupFields("g", "consumer", "Stable", "Consumer")])


def test_many_groups_are_counted_in_a_varint_of_several_bytes() -> None:
    assert BATCH_FIND_COORDINATOR == 4
    names = ["g"] * 500
    # No tags, key type 0, 501 as a varint, the names, no tags.
    assert b"".join(encode_find_coordinators(names)) == b"\x00\x00" + b"\xf5\x03" + b"\x02g" * 500 + b"\x00"


def test_a_commit_names_no_member_and_no_generation() -> None:
    offsets = {TopicPartition("t", 2): CommittedOffset(300, "é")}

    body = b"".join(encode_commit("g", offsets))

    nobody, null, one = b"\xff\xff\xff\xff", b"\xff\xff", (1).to_bytes(4)
    place = (2).to_bytes(4) + (300).to_bytes(8) + nobody + plain("é")
    assert body == plain("g") + nobody + plain("") + null + one + plain("t") + one + place
