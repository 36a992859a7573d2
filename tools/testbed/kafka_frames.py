"""Parse requests and responses of Kafka's protocol in a stream, as far as needed to match them. Pure.

https://kafka.apache.org/protocol#protocol_common: a size of four bytes, then the message; a request begins with api
key, api version and correlation id, a response with the correlation id of its request.
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
    """The beginning of a request."""

    api_key: int
    api_version: int
    correlation_id: int


class FrameSplitter:
    """Splits one direction of a connection into whole messages, each with its size; encrypted data passes unchanged."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._opaque: bool | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that these bytes complete."""
        if self._opaque is None and data:
            self._opaque = data[0] == _TLS_HANDSHAKE
        if self._opaque:
            return [data]
        self._held += data
        found = []
        start = 0
        while len(self._held) - start >= _SIZE.size:
            # Data of other protocols may have any size field: it is passed on at the end of the connection at the
            # latest.
            end = start + _SIZE.size + max(0, _SIZE.unpack_from(self._held, start)[0])
            if end > len(self._held):
                break
            found.append(bytes(self._held[start:end]))
            start = end
        del self._held[:start]
        return found

    def rest(self) -> bytes:
        """Return the part of a message that was never completed."""
        held = bytes(self._held)
        self._held.clear()
        return held


def request_header(frame: bytes) -> RequestHeader | None:
    """Return the beginning of a request, None if it is too short to be one."""
    return RequestHeader(*_REQUEST.unpack_from(frame)[1:]) if len(frame) >= _REQUEST.size else None


def answered_correlation_id(frame: bytes) -> int | None:
    """Return the correlation id of a response, None if it is too short to be one."""
    return int(_ANSWER.unpack_from(frame)[1]) if len(frame) >= _ANSWER.size else None
