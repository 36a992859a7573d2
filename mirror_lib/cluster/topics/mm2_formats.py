"""MM2's own record formats: offset-syncs, checkpoints and heartbeats; that of positions is in `position_format`.

The same bytes as the classes of these names in `org.apache.kafka.connect.mirror` write with Kafka's protocol types:
big-endian integers, and strings as a 16-bit length in bytes followed by UTF-8. As in Java, readers ignore trailing
bytes and treat any version as version 0. None of these topics may ever hold a tombstone: MM2 stops on one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Self

from mirror_lib.errors import ClusterError

_VERSION = 0
_MAX_STRING_BYTES = 32_767
_INT16, _INT32, _INT64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")
_OFFSETS = struct.Struct(">qq")
_VERSIONED_OFFSETS = struct.Struct(">hqq")
_VERSIONED_TIME = struct.Struct(">hq")


class RecordFormatError(ClusterError):
    """A record of an internal topic is malformed (Java `SchemaException`)."""

    reason = "record-format"


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """The source record at `upstream_offset` has `downstream_offset` on the target."""

    #: The topic's name on the source.
    topic: str
    partition: int
    upstream_offset: int
    downstream_offset: int

    def key(self) -> bytes:
        """The record's key: topic and partition."""
        return _string(self.topic) + _int32(self.partition)

    def value(self) -> bytes:
        """The record's value: always 16 bytes, without a version."""
        return _OFFSETS.pack(self.upstream_offset, self.downstream_offset)

    @classmethod
    def decode(cls, key: bytes | None, value: bytes | None) -> Self:
        """Read a record.

        Raises:
            RecordFormatError: it is too short, a string has a negative length, or there is no value.
        """
        reader = _Reader("offset sync key", key)
        topic, partition = reader.string(), reader.int32()
        upstream, downstream = _Reader("offset sync value", value).unpack(_OFFSETS)
        return cls(topic, partition, upstream, downstream)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A group that continues at `upstream_offset` on the source continues at `downstream_offset` on the target."""

    group: str
    #: The topic's name on the target.
    topic: str
    partition: int
    upstream_offset: int
    downstream_offset: int
    metadata: str = ""

    def key(self) -> bytes:
        """The record's key: group, topic and partition."""
        return _string(self.group) + _string(self.topic) + _int32(self.partition)

    def value(self) -> bytes:
        """The record's value: version, both offsets and the commit's metadata."""
        return _VERSIONED_OFFSETS.pack(_VERSION, self.upstream_offset, self.downstream_offset) + _string(self.metadata)

    @classmethod
    def decode(cls, key: bytes | None, value: bytes | None) -> Self:
        """Read a record.

        Raises:
            RecordFormatError: as for `OffsetSync.decode`.
        """
        keys = _Reader("checkpoint key", key)
        group, topic, partition = keys.string(), keys.string(), keys.int32()
        values = _Reader("checkpoint value", value)
        _, upstream, downstream = values.unpack(_VERSIONED_OFFSETS)
        return cls(group, topic, partition, upstream, downstream, values.string())


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The flow `source` -> `target` was alive at `timestamp` (epoch milliseconds)."""

    source: str
    target: str
    timestamp: int

    def key(self) -> bytes:
        """The record's key: both cluster aliases."""
        return _string(self.source) + _string(self.target)

    def value(self) -> bytes:
        """The record's value: version and time."""
        return _VERSIONED_TIME.pack(_VERSION, self.timestamp)

    @classmethod
    def decode(cls, key: bytes | None, value: bytes | None) -> Self:
        """Read a record.

        Raises:
            RecordFormatError: as for `OffsetSync.decode`.
        """
        keys = _Reader("heartbeat key", key)
        source, target = keys.string(), keys.string()
        _, timestamp = _Reader("heartbeat value", value).unpack(_VERSIONED_TIME)
        return cls(source, target, timestamp)


def _string(text: str) -> bytes:
    data = text.encode()
    if len(data) > _MAX_STRING_BYTES:
        raise RecordFormatError(
            f"a name of {len(data)} bytes does not fit MM2's format.",
            action=f"Names may have at most {_MAX_STRING_BYTES} bytes.",
        )
    return _INT16.pack(len(data)) + data


def _int32(number: int) -> bytes:
    return _INT32.pack(number)


class _Reader:
    """Reads the fields of a record's key or value one after the other."""

    def __init__(self, what: str, data: bytes | None) -> None:
        if data is None:
            raise RecordFormatError(f"the {what} is null.", action=_ACTION)
        self._what = what
        self._data = data
        self._at = 0

    def unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        try:
            fields: tuple[int, ...] = layout.unpack_from(self._data, self._at)
        except struct.error:
            raise self._short(layout.size) from None
        self._at += layout.size
        return fields

    def int32(self) -> int:
        return self.unpack(_INT32)[0]

    def string(self) -> str:
        (length,) = self.unpack(_INT16)
        if length < 0:
            raise RecordFormatError(f"the {self._what} has a string of length {length}.", action=_ACTION)
        end = self._at + length
        if end > len(self._data):
            raise self._short(length)
        # Java replaces invalid UTF-8 with replacement characters instead of failing.
        text = self._data[self._at : end].decode(errors="replace")
        self._at = end
        return text

    def _short(self, wanted: int) -> RecordFormatError:
        return RecordFormatError(
            f"the {self._what} has {len(self._data)} bytes; {wanted} more were expected after byte {self._at}.",
            action=_ACTION,
        )


_ACTION = "Find out which program writes to this topic: only MirrorMaker 2 and its replacements may."
