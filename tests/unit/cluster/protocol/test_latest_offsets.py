"""ListOffsets for many partitions."""

from __future__ import annotations

import struct

import pytest

from mirror_lib.cluster.protocol.latest_offsets import encode_latest_offsets, parse_latest_offsets
from mirror_lib.cluster.protocol.malformed import GarbledAnswerError
from mirror_lib.cluster.protocol.produce import encode_list_end


def test_one_partition_is_asked_for_as_by_the_request_for_one() -> None:
    for committed in (False, True):
        one = encode_list_end("orders", 3, replicated=True, committed=committed)
        assert b"".join(encode_latest_offsets([("orders", 3)], committed=committed)) == b"".join(one)


def test_every_partition_of_the_response_is_returned() -> None:
    def topic(name: bytes, *partitions: tuple[int, int, int]) -> bytes:
        listed = b"".join(struct.pack(">ihqqi", number, code, -1, offset, 5) for number, code, offset in partitions)
        return struct.pack(">h", len(name)) + name + struct.pack(">i", len(partitions)) + listed

    response = struct.pack(">ii", 0, 2) + topic(b"a", (0, 0, 7), (2, 6, -1)) + topic(b"b", (1, 0, 2**40))

    assert parse_latest_offsets(memoryview(response)) == [("a", 0, 0, 7), ("a", 2, 6, -1), ("b", 1, 0, 2**40)]
    for cut in range(len(response)):
        with pytest.raises(GarbledAnswerError):
            parse_latest_offsets(memoryview(response[:cut]))
