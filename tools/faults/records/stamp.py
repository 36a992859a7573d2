"""The stamp of every record of the input: its producer, its number in the partition, and a checksum of the record.

The stamp is a header, so that keys and values can be anything, including null. Nothing here is shared with the copy.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

#: The header's name; a record has it once.
STAMP_HEADER = "stamp"
_LENGTH = struct.Struct(">i")
_PLACE = struct.Struct(">iq")

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class Stamp:
    """A record's identity: the `sequence`-th record (from 0) that a producer wrote to one partition."""

    producer: int
    sequence: int
    #: True if it is the producer's last record of this partition.
    end: bool
    checksum: int

    def encode(self) -> bytes:
        """Return the header's value, readable in any console consumer."""
        return f"{self.producer}:{self.sequence}:{'end' if self.end else 'on'}:{self.checksum:08x}".encode()

    @classmethod
    def decode(cls, value: bytes) -> Stamp:
        """Parse the header's value.

        Raises:
            ValueError: it is not a stamp.
        """
        parts = value.decode("ascii").split(":")
        if len(parts) != 4 or parts[2] not in ("on", "end"):
            raise ValueError(f"{value!r} is not a stamp")
        return cls(int(parts[0]), int(parts[1]), parts[2] == "end", int(parts[3], 16))


@dataclass(frozen=True, slots=True)
class Content:
    """All of a record that must arrive unchanged, apart from the stamp itself."""

    #: The source topic's name, on either side.
    topic: str
    partition: int
    #: Epoch milliseconds.
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    def checksum(self, producer: int, sequence: int, *, end: bool) -> int:
        """Return CRC-32 of everything, with the lengths of the parts, so that no byte can move from one to the next."""
        crc = zlib.crc32(_PLACE.pack(self.partition, self.timestamp))
        crc = zlib.crc32(f"{self.topic}:{producer}:{sequence}:{end}".encode(), crc)
        parts: list[bytes | None] = [self.key, self.value]
        for name, value in self.headers:
            parts += [name.encode(), value]
        for part in parts:
            crc = zlib.crc32(_LENGTH.pack(-1 if part is None else len(part)), crc)
            crc = zlib.crc32(part or b"", crc)
        return crc

    def stamp(self, producer: int, sequence: int, *, end: bool = False) -> Stamp:
        """Return the stamp for this content."""
        return Stamp(producer, sequence, end, self.checksum(producer, sequence, end=end))
