"""The leanest client for requests that carry data: a blocking socket, prepared frames, one buffer for responses.

Only the kernel's own copies and a few system calls for a request are left, so that the measured limit is that of the
brokers and the kernel, not that of an event loop. Without TLS only.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from tools.bench.errors import BenchError

Buffer = bytes | bytearray | memoryview

_SIZE = struct.Struct(">i")
#: API key, API version, correlation id, and no client id (request header v1).
_HEADER = struct.Struct(">hhih")
_NO_CLIENT_ID = -1
#: Pieces below this size are joined: the kernel handles few large ones faster.
_JOIN_BELOW = 16 * 1024
#: Linux accepts 1024 pieces at once (UIO_MAXIOV).
_PIECES_MOST = 1024
_CONNECT_SECONDS = 10.0

Frame = Sequence[memoryview]


def frame(api_key: int, version: int, body: Sequence[Buffer]) -> list[memoryview]:
    """Return a whole request as sent to the socket; large pieces of the body are not copied."""
    header = _HEADER.pack(api_key, version, 0, _NO_CLIENT_ID)
    joined = bytearray(_SIZE.pack(len(header) + sum(len(piece) for piece in body)) + header)
    pieces: list[memoryview] = []
    for piece in body:
        if len(piece) < _JOIN_BELOW:
            joined += piece
            continue
        if joined:
            pieces.append(memoryview(joined))
            joined = bytearray()
        pieces.append(memoryview(piece))
    if joined:
        pieces.append(memoryview(joined))
    return pieces


class Wire:
    """One connection to a broker. Responses come in the order of the requests; use as a context manager."""

    def __init__(self, address: str, *, answer_bytes: int = 64 * 1024) -> None:
        """Connect to `host:port`.

        Args:
            answer_bytes: initial size of the buffer for a response.
        """
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS)
        # Without a timeout the kernel itself waits for all of a response.
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Not zeros, for which the kernel would allocate memory only when the first response is written there.
        self._buffer = memoryview(bytearray(b"\1" * answer_bytes))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def send(self, request: Frame) -> None:
        """Pass all of a request to the kernel."""
        left = sum(len(piece) for piece in request)
        pieces = request
        while True:
            sent = self._socket.sendmsg(pieces[:_PIECES_MOST])
            left -= sent
            if not left:
                return
            pieces = _behind(pieces, sent)

    def receive(self) -> memoryview:
        """Return the next response without its header (v0). The following one overwrites it.

        Raises:
            BenchError: the broker closed the connection.
        """
        (size,) = _SIZE.unpack(self._exactly(_SIZE.size))
        return self._exactly(size)[_SIZE.size :]

    def _exactly(self, size: int) -> memoryview:
        if size > len(self._buffer):
            self._buffer = memoryview(bytearray(size))
        view, received = self._buffer[:size], 0
        while received < size:
            read = self._socket.recv_into(view[received:], size - received, socket.MSG_WAITALL)
            if not read:
                raise BenchError("a broker closed the connection over which the limit was measured.")
            received += read
        return view


def _behind(pieces: Frame, sent: int) -> Frame:
    """Return the rest of the pieces after their first `sent` bytes."""
    for number, piece in enumerate(pieces):
        if sent < len(piece):
            return [piece[sent:], *pieces[number + 1 :]]
        sent -= len(piece)
    return []
