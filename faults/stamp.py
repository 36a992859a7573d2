"""What every record of the input carries: who wrote it, as which record of its partition, and a checksum of it all.

The stamp is a header, so that keys and values can be anything, also null. Nothing here is shared with the copier.
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
    #: Whether it is the producer's last record of this partition.
    end: bool
    checksum: int

    def encode(self) -> bytes:
        """The header's value, readable in any console consumer."""
        return f"{self.producer}:{self.sequence}:{'end' if self.end else 'on'}:{self.checksum:08x}".encode()

    @classmethod
    def decode(cls, value: bytes) -> Stamp:
        """Read the header's value.

        Raises:
            ValueError: it is no stamp.
        """
        parts = value.decode("ascii").split(":")
        if len(parts) != 4 or parts[2] not in ("on", "end"):
            raise ValueError(f"{value!r} is no stamp")
        return cls(int(parts[0]), int(parts[1]), parts[2] == "end", int(parts[3], 16))


@dataclass(frozen=True, slots=True)
class Content:
    """All of a record that must arrive as it was, apart from the stamp itself."""

    #: The source topic's name, on either side.
    topic: str
    partition: int
    #: Epoch milliseconds.
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    def checksum(self, producer: int, sequence: int, *, end: bool) -> int:
        """CRC-32 of everything, with the lengths of the parts, so that no byte can move from one to the next."""
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
        """The stamp that belongs to this content."""
        return Stamp(producer, sequence, end, self.checksum(producer, sequence, end=end))
