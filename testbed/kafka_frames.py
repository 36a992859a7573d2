"""Requests and answers of Kafka's protocol as they pass by in a stream: as much as is needed to tell them apart. Pure.

https://kafka.apache.org/protocol#protocol_common: a size of four bytes, then the message; a request begins with api
key, api version and correlation id, an answer with the correlation id of its request.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

PRODUCE = 0
_SIZE = struct.Struct(">i")
_REQUEST = struct.Struct(">ihhi")
_ANSWER = struct.Struct(">ii")
#: The first byte of a TLS connection (RFC 8446, content type handshake); no Kafka message has 350 MB.
_TLS_HANDSHAKE = 0x16


class RequestHeader(NamedTuple):
    """What a request begins with."""

    api_key: int
    api_version: int
    correlation_id: int


class FrameSplitter:
    """Cuts one direction of a connection into whole messages, each with its size; what is encrypted passes as it is."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._opaque: bool | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that these bytes complete."""
        if self._opaque is None and data:
            self._opaque = data[0] == _TLS_HANDSHAKE
        if self._opaque:
            return [data]
        self._held += data
        found = []
        start = 0
        while len(self._held) - start >= _SIZE.size:
            # Something else than Kafka may give any size: it is passed on by the end of the connection at the latest.
            end = start + _SIZE.size + max(0, _SIZE.unpack_from(self._held, start)[0])
            if end > len(self._held):
                break
            found.append(bytes(self._held[start:end]))
            start = end
        del self._held[:start]
        return found

    def rest(self) -> bytes:
        """What came of a message that never was completed."""
        held = bytes(self._held)
        self._held.clear()
        return held


def request_header(frame: bytes) -> RequestHeader | None:
    """How a request begins, None when it is too short to be one."""
    return RequestHeader(*_REQUEST.unpack_from(frame)[1:]) if len(frame) >= _REQUEST.size else None


def answered_correlation_id(frame: bytes) -> int | None:
    """Which request an answer belongs to, None when it is too short to be one."""
    return int(_ANSWER.unpack_from(frame)[1]) if len(frame) >= _ANSWER.size else None
