"""Rows of batches that become far more than they are: within the memory that is given, or an error that says which."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from random import Random

import pytest

from mirror_lib.errors import BeyondMemoryError, OversizedBatchError, Where
from mirror_lib.features.transforms.arrow.decode_limits import DecodeLimits
from mirror_lib.features.transforms.arrow.read import read_arrow
from mirror_lib.features.transforms.arrow.record_blocks import RecordBlock, read_blocks
from mirror_lib.features.transforms.arrow.streaming import pieces, zstd_windows
from mirror_lib.records.compression.codecs import compress
from mirror_lib.records.header import HEADER_SIZE, Codec
from mirror_lib.records.spans import read_spans
from tests.support.own_process import MEBIBYTE, measured
from tests.support.records.record_batches import SourceRecord, batch, message_set, sealed, with_body

_MEMORY = 24 * MEBIBYTE
_LIMITS = DecodeLimits.within(_MEMORY)
#: Beside it, while rows are made: what is decompressed, what is found in it, and Arrow's copy.
_BASE = 40 * MEBIBYTE
_CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


@cache
def plain(shape: str) -> bytes:
    """A batch that takes at least `_MEMORY + _BASE`, or in what is found in it."""
    match shape:
        case "large":
            return batch([SourceRecord(number, value=bytes(MEBIBYTE)) for number in range(80)])
        case "many":
            return batch([SourceRecord(number, value=None) for number in range(400_000)])
    headers = (("", None),) * 10_000
    return batch([SourceRecord(number, headers=headers) for number in range(50)])


def bomb(codec: int, shape: str) -> bytes:
    raw = bytearray(plain(shape))
    raw[HEADER_SIZE:] = compress(codec, bytes(raw[HEADER_SIZE:]))
    struct.pack_into(">i", raw, 8, len(raw) - 12)
    raw[22] = codec
    return sealed(raw)


def read(data: bytes, start: int = 0, end: int = 1 << 60, limits: DecodeLimits = _LIMITS) -> Iterator[tuple[int, int]]:
    """(rows, next offset) of each part; no part is held."""
    for part in read_arrow(
        memoryview(data), (), topic="orders", partition=3, start=start, end=end, read_committed=True, limits=limits
    ):
        assert part.records.nbytes <= 2 * limits.part
        yield part.records.num_rows, part.next_offset


def read_bombs(bombs: list[tuple[str, bytes]]) -> list[int]:
    return [sum(count for count, _ in read(data)) for _, data in bombs]


def test_no_bomb_of_any_codec_takes_more_than_is_given() -> None:
    bombs = [(f"{codec.name} {shape}", bomb(codec, shape)) for codec in _CODECS for shape in ("large", "headers")]
    bombs.append(("ZSTD many", bomb(Codec.ZSTD, "many")))

    found = measured(read_bombs, bombs)

    assert found.result == [80, 50] * len(_CODECS) + [400_000]
    assert found.grown < _MEMORY + _BASE


def test_a_batch_is_gone_on_with_in_its_middle() -> None:
    data = bomb(Codec.LZ4, "large")

    assert sum(count for count, _ in read(data, start=60)) == 20
    assert list(read(data, start=60, end=62)) == [(1, 61), (1, 62)]


def test_a_record_that_does_not_fit_is_an_error_of_its_own_behind_those_before_it(subtests: pytest.Subtests) -> None:
    for codec in (Codec.NONE, *_CODECS):
        with subtests.test(codec=codec):
            limits = replace(_LIMITS, record=2 * MEBIBYTE, body=MEBIBYTE)
            sizes = [100, 100, 3 * MEBIBYTE, 100]
            data = batch([SourceRecord(7 + at, value=bytes(size)) for at, size in enumerate(sizes)], codec=codec)

            assert list(read(data, limits=limits)) == [(2, 9)]
            with pytest.raises(BeyondMemoryError, match=r"mirror\.task\.memory\.bytes") as caught:
                list(read(data, start=9, limits=limits))
            assert caught.value.where == Where(topic="orders", partition=3, offset=9)
            assert list(read(data, start=10, limits=limits)) == [(1, 11)]


def test_so_is_a_record_of_more_headers_than_there_is_room_for() -> None:
    limits = replace(_LIMITS, record=2 * MEBIBYTE)
    data = batch([SourceRecord(0), SourceRecord(1, headers=(("", None),) * 20_000)], codec=Codec.ZSTD)

    with pytest.raises(BeyondMemoryError) as caught:
        list(read(data, start=1, limits=limits))
    assert caught.value.where.offset == 1


def test_pieces_are_what_the_body_is() -> None:
    for codec in _CODECS:
        for size in (0, 1, 4096, 300_000):
            body = bytes(range(256)) * (size // 256) + bytes(size % 256)

            assert b"".join(pieces(codec, compress(codec, body), piece=1000, largest=MEBIBYTE)) == body, (codec, size)


def test_a_body_beyond_the_bound_is_refused_before_a_row_is_made() -> None:
    # 1.5 GB in blocks of four bytes that are 128 kB each, and valid to its last byte but for the records.
    run_length = struct.pack("<I", 131072 << 3 | 1 << 1)[:3] + b"\0"
    body = b"\x28\xb5\x2f\xfd\x00\x58" + run_length * 12_000

    with pytest.raises(OversizedBatchError, match="134217728"):
        list(read(with_body(batch([SourceRecord(0)], codec=Codec.ZSTD), body)))


def test_windows_of_zstd_frames() -> None:
    for frame, windows in (
        # RFC 8878: a window descriptor of exponent 10 and mantissa 1 is 1 MiB and an eighth.
        (b"\x28\xb5\x2f\xfd\x00\x51" + b"\x01\0\0", [MEBIBYTE + MEBIBYTE // 8]),
        # A single segment has its content's size for a window; eight bytes of it here.
        (b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 40) + b"\x01\0\0", [1 << 40]),
        # A skippable frame has none, and another may follow.
        (b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc" + b"\x28\xb5\x2f\xfd\x00\x00" + b"\x01\0\0", [1024]),
        (b"no frame at all", []),
    ):
        assert list(zstd_windows(frame)) == windows, frame


def test_a_frame_that_has_its_decoder_remember_too_much_is_refused() -> None:
    # A window of 2 GiB, which a decoder would take at once.
    frame = b"\x28\xb5\x2f\xfd\x00\xa8" + b"\x01\0\0"

    with pytest.raises(BeyondMemoryError, match="2147483648"):
        list(pieces(Codec.ZSTD, compress(Codec.ZSTD, bytes(100)) + frame, piece=1000, largest=MEBIBYTE))


def test_messages_of_old_formats_are_decompressed_as_far_as_there_is_room() -> None:
    entries = [
        message_set([SourceRecord(at, value=bytes(MEBIBYTE)), SourceRecord(at + 1)], magic=1, codec=Codec.GZIP)
        for at in range(0, 20, 2)
    ]

    found, size = read_spans(memoryview(b"".join(entries)), (), read_committed=True, old_bytes=3 * MEBIBYTE)

    assert [each.next_offset for each in found] == [2, 4, 6]
    assert size == sum(map(len, entries[:3]))


def test_small_batches_of_a_fetch_become_no_more_than_a_bounded_number_of_bytes_together() -> None:
    # Eight small batches, of a megabyte each, and one large batch that parts them from the next eight.
    values = [Random(at).randbytes(20_000) if at % 9 == 8 else bytes(MEBIBYTE) for at in range(36)]
    data = b"".join(batch([SourceRecord(at, value=value)], codec=Codec.ZSTD) for at, value in enumerate(values))

    found, _ = read_blocks(memoryview(data), (), read_committed=True)

    held = [len(each.content) for each in found if isinstance(each, RecordBlock)]
    assert 8 * MEBIBYTE < sum(held) <= 16 * MEBIBYTE
    assert found[-1].next_offset == 36
