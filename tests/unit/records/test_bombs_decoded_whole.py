"""Batches that are decoded as a whole: each takes a bounded amount of memory, and only one is held at a time."""

from __future__ import annotations

import struct

from mirror_lib.outside_limits import BATCH_BODY_BYTES
from mirror_lib.records.compression.codecs import compress
from mirror_lib.records.header import HEADER_SIZE, Codec
from mirror_lib.records.last_records import find_last_records, is_same
from mirror_lib.records.legacy import read_legacy
from mirror_lib.records.spans import read_spans
from tests.support.own_process import MEBIBYTE, measured
from tests.support.records.record_batches import SourceRecord, batch, message_set, sealed

#: A body, and its copy out of the decoder's buffer. The reader's base in docs/security.md.
_LAST_RECORD = 2 * BATCH_BODY_BYTES + 16 * MEBIBYTE
_OLD_MESSAGES = 10


def nearly_largest(codec: Codec) -> bytes:
    """A small batch whose body is almost as large as one may be."""
    raw = bytearray(batch([SourceRecord(5 + at, value=bytes(MEBIBYTE)) for at in range(126)]))
    raw[HEADER_SIZE:] = compress(codec, bytes(raw[HEADER_SIZE:]))
    struct.pack_into(">i", raw, 8, len(raw) - 12)
    raw[22] = codec
    return sealed(raw)


def recognized(data: bytes) -> bool | None:
    record = find_last_records(memoryview(data), end=1 << 40).of_log
    return None if record is None else is_same(memoryview(data), record)


def test_the_last_record_of_a_bomb_is_recognized_within_twice_the_largest_body() -> None:
    found = measured(recognized, nearly_largest(Codec.ZSTD))

    assert found.result is True
    assert found.grown < _LAST_RECORD


def old_bombs(count: int, values: int) -> bytes:
    return b"".join(
        message_set(
            [SourceRecord(number * values + at, value=bytes(MEBIBYTE)) for at in range(values)],
            magic=1,
            codec=Codec.GZIP,
        )
        for number in range(count)
    )


def read_old(data: bytes) -> int:
    """The number of records, read as every reader does: on from where the last response ended."""
    found, position = 0, 0
    while position < len(data):
        spans, size = read_spans(memoryview(data)[position:], (), read_committed=True)
        found += sum(len(each.records()) for each in spans)
        position += size
    return found


def test_a_response_of_old_bombs_is_read_message_by_message() -> None:
    data = old_bombs(_OLD_MESSAGES, 8)

    found = measured(read_old, data)

    assert found.result == 8 * _OLD_MESSAGES
    assert found.grown < 48 * MEBIBYTE


def count_old(data: bytes) -> int:
    return sum(1 for _ in read_legacy(memoryview(data), 1))


def test_messages_inside_an_old_one_are_not_all_held() -> None:
    # 150,000 of them would take 30 MB as objects.
    data = message_set([SourceRecord(at, value=None) for at in range(150_000)], magic=1, codec=Codec.GZIP)

    found = measured(count_old, data)

    assert found.result == 150_000
    assert found.grown < 20 * MEBIBYTE
