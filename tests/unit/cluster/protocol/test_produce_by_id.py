"""Produce by topic ids, against an encoder and a decoder of the test's own."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.fields import FieldReader, decode_topic_id, encode_topic_id
from mirror_lib.cluster.protocol.produce import ProducedPartition, encode_produce_by_id, parse_produce_by_id
from mirror_lib.cluster.protocol.topic_ids import NamedTopic, parse_topic_ids
from tests.support.wire import compact, varint

NAMES = {"orders": b"\x01" * 16, "payments": b"\xfe" * 16, "stock": bytes(range(16))}
TOPICS = {raw: name for name, raw in NAMES.items()}
INT16, INT32, INT64 = (st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (16, 32, 64))


@dataclass(frozen=True)
class Answered:
    """What a broker says of one batch."""

    produced: ProducedPartition
    refused_records: tuple[str, ...]
    message: str | None
    tagged: bytes


ANSWERS = st.lists(
    st.builds(
        Answered,
        st.builds(ProducedPartition, st.sampled_from(sorted(NAMES)), INT32, INT16, INT64, INT64),
        st.lists(st.text(max_size=200), max_size=3).map(tuple),
        st.none() | st.text(max_size=200),
        st.binary(max_size=20),
    ),
    max_size=6,
)


@given(ANSWERS, st.integers(0, 2**31 - 1), st.binary(max_size=10))
def test_an_answer_is_read_whatever_is_refused(answers: list[Answered], throttle: int, tagged: bytes) -> None:
    parts = [b"\0", varint(len(answers) + 1)]
    for each in answers:
        _, partition, code, base, start = each.produced
        parts += [NAMES[each.produced.topic], varint(2), struct.pack(">ihqqq", partition, code, base, -1, start)]
        parts.append(varint(len(each.refused_records) + 1))
        parts += [struct.pack(">i", 0) + compact(message) + b"\0" for message in each.refused_records]
        parts += [compact(each.message), tags(each.tagged), b"\0"]
    answer = b"".join([*parts, struct.pack(">i", throttle), tags(tagged)])

    assert parse_produce_by_id(memoryview(answer), TOPICS) == ([each.produced for each in answers], throttle)


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(sorted(NAMES)), st.integers(0, 2**31 - 1)), st.binary(max_size=300), min_size=1
    ),
    st.integers(0, 2**31 - 1),
)
def test_a_request_names_each_topic_by_its_id(payloads: dict[tuple[str, int], bytes], timeout_ms: int) -> None:
    batches = [(*place, payload) for place, payload in payloads.items()]

    body = memoryview(b"".join(encode_produce_by_id(batches, NAMES, timeout_ms=timeout_ms)))

    request = FieldReader(body, flexible=True)
    request.skip_tags()
    assert (request.count(), request.int16(), request.int32()) == (0, -1, timeout_ms)
    found = {}
    for _ in range(request.count()):
        topic = TOPICS[request.topic_id()]
        for _ in range(request.count()):
            partition, size = request.int32(), request.count()
            found[topic, partition] = bytes(request.numbers(struct.Struct(f"{size}s"))[0])
            request.skip_tags()
        request.skip_tags()
    request.skip_tags()
    assert found == payloads
    assert body == b"".join(encode_produce_by_id(batches, NAMES, timeout_ms=timeout_ms))


@given(st.binary(min_size=16, max_size=16))
def test_a_topic_id_is_the_same_in_both_forms(raw: bytes) -> None:
    assert encode_topic_id(decode_topic_id(raw)) == raw
    assert len(decode_topic_id(raw)) == 22


def test_an_answer_about_topics_tells_ids_and_missing_ones() -> None:
    broker = struct.pack(">i", 1) + compact("host") + struct.pack(">i", 9092) + compact(None) + b"\0"
    partition = struct.pack(">hiii", 0, 0, 1, 5) + (varint(2) + struct.pack(">i", 1)) * 2 + varint(1) + b"\0"
    orders = struct.pack(">h", 0) + compact("orders") + NAMES["orders"] + b"\0" + varint(3) + partition * 2 + bytes(5)
    missing = struct.pack(">h", 3) + compact("stock") + bytes(16) + b"\0" + varint(1) + bytes(5)
    head = b"\0" + bytes(4) + varint(2) + broker + compact("cluster") + struct.pack(">i", 1)
    answer = head + varint(3) + orders + missing + bytes(5)

    assert parse_topic_ids(memoryview(answer)) == {
        "orders": NamedTopic(0, decode_topic_id(NAMES["orders"])),
        "stock": NamedTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
    }


def tags(value: bytes) -> bytes:
    return varint(1) + varint(0) + varint(len(value)) + value if value else b"\0"
