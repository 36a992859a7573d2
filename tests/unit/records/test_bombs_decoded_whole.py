"""Batches that are decoded as a whole: each takes a bounded amount of memory, and only one is held at a time."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

from mirror_lib.records.compression.codecs import compress
from mirror_lib.records.header import HEADER_SIZE, Codec
from mirror_lib.records.last_records import find_last_records, is_same
from mirror_lib.records.rules import RecordRules
from mirror_lib.records.spans import read_spans
from mirror_lib.records.varint import encode_varint, with_size
from tests.support.own_process import MEBIBYTE, measured
from tests.support.records.record_batches import (
    LOG_APPEND_TIME,
    SourceRecord,
    assembler,
    batch,
    fed,
    message_set,
    sealed,
)

#: A body, held once; docs/security.md.
_ONE_BODY = 150_000_000
_RECORDS = 100
_OLD_MESSAGES = 10


def with_body(body: bytes, codec: int, *, count: int, last: int = 130, bits: int = 0) -> bytes:
    """A batch from offset 5 around a compressed body."""
    raw = bytearray(batch([SourceRecord(5)], last_offset=last, attributes=bits)[:HEADER_SIZE] + body)
    struct.pack_into(">i", raw, 8, len(raw) - 12)
    raw[22] |= codec
    struct.pack_into(">i", raw, 57, count)
    return sealed(raw)


@cache
def zeros() -> bytes:
    """A body of 100 records of 1 MiB."""
    return batch([SourceRecord(5 + at, key=b"k", value=bytes(MEBIBYTE)) for at in range(_RECORDS)])[HEADER_SIZE:]


def nearly_largest(codec: int) -> bytes:
    """A small batch whose body is almost as large as one may be."""
    return with_body(compress(codec, zeros()), codec, count=_RECORDS, last=4 + _RECORDS)


def wide_zstd(blocks: int) -> bytes:
    """A frame with a window of 128 MiB, and blocks that repeat a byte 128 KiB times (RFC 8878)."""
    block = (0x20000 << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    return (0xFD2FB528).to_bytes(4, "little") + b"\0\x88" + block * blocks + b"\1\0\0"


def recognized(data: bytes) -> bool | None:
    record = find_last_records(memoryview(data), end=1 << 40).of_log
    return None if record is None else is_same(memoryview(data), record)


def copied(cases: dict[str, tuple[bytes, dict[str, Any]]]) -> dict[str, tuple[int, str | None]]:
    """How many records the target gets of each fetch, and the reason if the partition stops."""
    found = {}
    for name, (data, options) in cases.items():
        assert "ZSTD" not in name or recognized(data)
        subject = assembler(target_max_message_bytes=1 << 21, **options)
        ready = fed(subject, data)
        found[name] = sum(each.count for each in ready), subject.failure and subject.failure.reason
    return found


def test_whatever_is_decoded_to_copy_it_a_body_is_held_once() -> None:
    last, bits = 4 + _RECORDS, LOG_APPEND_TIME
    tail = b"\1" + with_size(bytes(100 * MEBIBYTE)) + b"\0"
    alone = encode_varint(3 + len(tail)) + b"\0\0\0" + tail
    tiny = with_size(bytes.fromhex("000000010100")) * (1 << 20)
    old = [SourceRecord(5 + at, value=bytes(MEBIBYTE)) for at in range(_RECORDS)]
    middle, joined, zstd = {"start": 6}, {"passthrough_min_bytes": 1 << 30}, Codec.ZSTD
    rebuilt, refused = (_RECORDS - 1, None), (0, "oversized-batch")
    cases: dict[str, tuple[bytes, dict[str, Any], tuple[int, str | None]]] = {
        **{codec.name: (nearly_largest(codec), middle, rebuilt) for codec in list(Codec)[1:]},
        "keys": (nearly_largest(Codec.LZ4), {"rules": RecordRules(needs_key=True)}, (_RECORDS, None)),
        **{
            f"one record, {codec.name}": (
                with_body(compress(codec, alone), codec, count=1, last=5, bits=bits),
                {},
                (1, None),
            )
            for codec in (Codec.GZIP, zstd)
        },
        "tiny": (with_body(compress(zstd, tiny), zstd, count=1 << 20, last=1 << 20), middle, (0, None)),
        "joined": (nearly_largest(1) + batch([SourceRecord(last + 1)], codec=1), joined, (_RECORDS + 1, None)),
        "wide window": (with_body(wide_zstd(1000), zstd, count=1, last=5, bits=bits), {}, refused),
        "beyond": (with_body(compress(1, bytes(200 * MEBIBYTE)), 1, count=1, last=5, bits=bits), {}, refused),
        "old": (message_set(old, magic=1, codec=Codec.GZIP), middle, rebuilt),
    }

    found = measured(copied, {name: case[:2] for name, case in cases.items()})

    assert found.result == {name: case[2] for name, case in cases.items()}
    assert found.grown < _ONE_BODY


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
