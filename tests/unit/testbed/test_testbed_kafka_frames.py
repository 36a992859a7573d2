"""Messages of Kafka's protocol in a stream of bytes; the proxy: tests/integration/features/demo/test_proxy.py."""

from __future__ import annotations

import struct
from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from tools.testbed.kafka_frames import FrameSplitter, RequestHeader, answered_correlation_id, request_header


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(1, 30), max_size=20), st.binary(max_size=3))
def test_messages_are_found_however_the_stream_is_cut(bodies: list[bytes], cuts: list[int], begun: bytes) -> None:
    frames = [struct.pack(">i", len(body)) + body for body in bodies]
    # The size of the next one, not yet whole; 0x16 would mean TLS where it stands first.
    stream = b"".join(frames) + begun.replace(b"\x16", b"\x00")
    ends = [0, *(end for end in accumulate(cuts) if end < len(stream)), len(stream)]
    splitter = FrameSplitter()

    found = [frame for first, end in pairwise(ends) for frame in splitter.feed(stream[first:end])]

    assert found == frames
    assert splitter.rest() == stream[sum(map(len, frames)) :]
    # Encrypted bytes pass as they come.
    encrypted = FrameSplitter()
    assert encrypted.feed(b"\x16\x03\x01") == [b"\x16\x03\x01"]
    assert encrypted.feed(b"\x00\x00") == [b"\x00\x00"]


def test_headers_are_those_of_kafkas_protocol() -> None:
    # An ApiVersions request, version 3, correlation id 1, client id "a", and an answer to it.
    asked = bytes.fromhex("0000000b 0012 0003 00000001 0001 61")

    assert request_header(asked) == RequestHeader(api_key=18, api_version=3, correlation_id=1)
    assert answered_correlation_id(bytes.fromhex("00000006 00000001 0000")) == 1
    assert request_header(asked[:11]) is None
    assert answered_correlation_id(b"\x00\x00\x00\x00") is None
