"""The shortcut for small LZ4 frames reads what another implementation writes, and leaves the rest to a real decoder."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import lz4.frame
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.arrow.lz4_many import LaidOut, single_blocks
from mirror_lib.records.compression.codecs import CodecError, compress, decompress
from mirror_lib.records.compression.lz4_frames import decompress_single_block
from mirror_lib.records.header import HEADER_SIZE, Codec

CONTENTS = st.one_of(st.binary(max_size=400), st.binary(max_size=30).map(lambda part: part * 700))


@given(CONTENTS, st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.sampled_from([4, 5, 7]))
def test_frames_of_every_kind_are_read(
    content: bytes, linked: bool, block_checksum: bool, content_checksum: bool, store_size: bool, block_size: int
) -> None:
    frame = lz4.frame.compress(
        content,
        block_size=block_size,
        block_linked=linked,
        block_checksum=block_checksum,
        content_checksum=content_checksum,
        store_size=store_size,
    )
    assert decompress(Codec.LZ4, frame) == content
    assert decompress(Codec.LZ4, memoryview(frame)) == content


@given(CONTENTS)
def test_what_we_write_is_read_by_another_implementation(content: bytes) -> None:
    assert lz4.frame.decompress(compress(Codec.LZ4, content)) == content


def test_a_frame_that_java_wrote_takes_the_shortcut() -> None:
    raw = (Path(__file__).parent / "data" / "magic-2-lz4.bin").read_bytes()
    frame = raw[HEADER_SIZE:]
    assert decompress_single_block(frame) == lz4.frame.decompress(frame)


def test_a_frame_of_several_blocks_does_not() -> None:
    frame = lz4.frame.compress(bytes(200_000), block_size=4, store_size=False)
    assert decompress_single_block(frame) is None
    assert decompress(Codec.LZ4, frame) == bytes(200_000)


def test_a_damaged_frame_is_refused(subtests: pytest.Subtests) -> None:
    for cut in range(0, 33, 3):
        with subtests.test(cut=cut):
            frame = bytearray(lz4.frame.compress(b"some text " * 20, store_size=False))
            assert decompress_single_block(bytes(frame[:cut])) is None
            frame[11] = 0xFF
            with pytest.raises(CodecError):
                decompress(Codec.LZ4, bytes(frame))


@given(
    st.lists(
        st.tuples(CONTENTS, st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.sampled_from([4, 5])),
        min_size=1,
        max_size=12,
    ),
    st.binary(max_size=20),
)
def test_many_frames_take_the_shortcut_where_each_of_them_would(
    kinds: list[tuple[bytes, bool, bool, bool, bool, int]], other: bytes
) -> None:
    frames = [
        lz4.frame.compress(
            content,
            block_size=size,
            block_linked=linked,
            block_checksum=block_checksum,
            content_checksum=content_checksum,
            store_size=store_size,
        )
        for content, linked, block_checksum, content_checksum, store_size, size in kinds
    ] + [other]
    data = b"".join(frames)
    ends = np.cumsum([len(frame) for frame in frames])
    # A header is in front of each frame of a log, so something always is.
    padded, starts = bytes(HEADER_SIZE) + data, HEADER_SIZE + ends - [len(frame) for frame in frames]

    plain, firsts, lasts = single_blocks(np.frombuffer(padded, dtype=np.uint8), starts, HEADER_SIZE + ends)

    alone = [decompress_single_block(frame) if frame is not other else None for frame in frames]
    assert plain.tolist() == [content is not None for content in alone]
    laid_out = LaidOut(1 << 30)
    laid_out.add_blocks(padded, firsts[plain].tolist(), lasts[plain].tolist())
    bounds, joined = laid_out.bounds, laid_out.join()
    assert [joined[first:last] for first, last in pairwise(bounds)] == [each for each in alone if each is not None]


def test_contents_that_take_too_much_are_refused() -> None:
    laid_out = LaidOut(1_000)
    laid_out.add(bytes(1_000))

    laid_out.add(b"x")

    with pytest.raises(ValueError, match="more than 1000 bytes"):
        laid_out.join()
