"""The shortcut for small LZ4 frames reads what another implementation writes, and leaves the rest to a real decoder."""

from __future__ import annotations

from pathlib import Path

import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.batches.codecs import CodecError, compress, decompress
from mirror_lib.cluster.batches.header import HEADER_SIZE, Codec
from mirror_lib.cluster.batches.lz4_frames import decompress_single_block

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


@pytest.mark.parametrize("cut", range(0, 33, 3))
def test_a_damaged_frame_is_refused(cut: int) -> None:
    frame = bytearray(lz4.frame.compress(b"some text " * 20, store_size=False))
    assert decompress_single_block(bytes(frame[:cut])) is None
    frame[11] = 0xFF
    with pytest.raises(CodecError):
        decompress(Codec.LZ4, bytes(frame))
