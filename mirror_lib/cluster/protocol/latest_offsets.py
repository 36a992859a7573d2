"""ListOffsets for the latest offsets of many partitions in one request: a poller sends it every few seconds."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from mirror_lib.cluster.protocol.fields import encode_string
from mirror_lib.cluster.protocol.malformed import response_of
from mirror_lib.cluster.protocol.produce import by_topic, read_string
from mirror_lib.cluster.raw.connection import Buffer

#: The replica id of a consumer, the isolation level, the number of topics.
_HEAD = struct.Struct(">ibi")
_COUNT = struct.Struct(">i")
#: Partition, leader epoch (unknown), timestamp (the end; Java `LATEST_TIMESTAMP`).
_WANTED = struct.Struct(">iiq")
#: Partition, error code, timestamp, offset, leader epoch.
_LISTED = struct.Struct(">ihqqi")
_THROTTLE_BYTES = 4


def encode_latest_offsets(partitions: Iterable[tuple[str, int]], *, committed: bool) -> list[Buffer]:
    """A ListOffsets request (version 5) for the ends of partitions.

    Args:
        committed: the end for readers of committed records (last stable offset) instead of the high watermark.
    """
    grouped = by_topic(list(partitions))
    parts = [_HEAD.pack(-1, int(committed), len(grouped))]
    for topic, wanted in grouped.items():
        parts += (encode_string(topic), _COUNT.pack(len(wanted)))
        parts += (_WANTED.pack(partition, -1, -1) for _, partition in wanted)
    return [b"".join(parts)]


@response_of("ListOffsets")
def parse_latest_offsets(view: memoryview) -> list[tuple[str, int, int, int]]:
    """Parse the response to `encode_latest_offsets`: topic, partition, error code, offset."""
    found: list[tuple[str, int, int, int]] = []
    (topics,) = _COUNT.unpack_from(view, _THROTTLE_BYTES)
    position = _THROTTLE_BYTES + _COUNT.size
    for _ in range(topics):
        topic, position = read_string(view, position)
        (partitions,) = _COUNT.unpack_from(view, position)
        position += _COUNT.size
        for _ in range(partitions):
            partition, error_code, _timestamp, offset, _epoch = _LISTED.unpack_from(view, position)
            position += _LISTED.size
            found.append((topic, partition, error_code, offset))
    return found
