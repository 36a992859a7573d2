"""The end offsets of a topic by one small request, which observes a copy fifty times a second.

An ordinary client also requests the topic's metadata each time, which took four times the CPU.
"""

from __future__ import annotations

import struct

from tools.bench.clusters.wire import Wire, frame
from tools.bench.errors import BenchError

#: ListOffsets; version 1 is the oldest that Kafka 4 speaks.
_API_KEY, _VERSION = 2, 1
#: Replica id of a consumer, and one topic; then the number of its partitions.
_HEAD, _COUNT = struct.Struct(">ii"), struct.Struct(">i")
_NO_REPLICA, _LATEST = -1, -1
_WANTED, _LISTED = struct.Struct(">iq"), struct.Struct(">ihqq")


class EndOffsets:
    """Requests the ends of a topic's partitions from the only broker of a cluster."""

    def __init__(self, bootstrap_server: str, topic: str, partitions: int) -> None:
        """Connect to the broker, which leads all partitions."""
        self._topic = topic
        name = topic.encode()
        wanted = b"".join(_WANTED.pack(partition, _LATEST) for partition in range(partitions))
        text = struct.pack(">h", len(name)) + name
        self._request = frame(
            _API_KEY, _VERSION, [_HEAD.pack(_NO_REPLICA, 1) + text + _COUNT.pack(partitions) + wanted]
        )
        #: The number of topics and the topic's name come before the partitions.
        self._skipped = _COUNT.size + len(text) + _COUNT.size
        self._wire = Wire(bootstrap_server)

    def total(self) -> int:
        """Return the sum of the end offsets.

        Raises:
            BenchError: the broker does not return one of them.
        """
        self._wire.send(self._request)
        total = 0
        for partition, error_code, _timestamp, offset in _LISTED.iter_unpack(self._wire.receive()[self._skipped :]):
            if error_code:
                raise BenchError(f"the end of {self._topic}-{partition} cannot be read: error {error_code}.")
            total += offset
        return total

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()
