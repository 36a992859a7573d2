"""The leanest client for requests that carry data: a blocking socket, frames made beforehand, one buffer for answers.

Nothing but the kernel's own copies and a few system calls for a request is left, so that the limit which is measured
with it is the brokers' and the kernel's, not that of an event loop. In clear only.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from bench.errors import BenchError

Buffer = bytes | bytearray | memoryview

_SIZE = struct.Struct(">i")
#: API key, API version, correlation id, and no client id (request header v1).
_HEADER = struct.Struct(">hhih")
_NO_CLIENT_ID = -1
#: Pieces below this size are joined: the kernel takes few large ones faster.
_JOIN_BELOW = 16 * 1024
#: Linux takes 1024 pieces at once (UIO_MAXIOV).
_PIECES_MOST = 1024
_CONNECT_SECONDS = 10.0

Frame = Sequence[memoryview]


def frame(api_key: int, version: int, body: Sequence[Buffer]) -> list[memoryview]:
    """A whole request as it goes to the socket; large pieces of the body are not copied."""
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
    """One connection to a broker. Answers come in the order of the requests; use as a context manager."""

    def __init__(self, address: str, *, answer_bytes: int = 64 * 1024) -> None:
        """Connect to `host:port`.

        Args:
            answer_bytes: room for an answer; a larger one makes it grow.
        """
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS)
        # Without a timeout the kernel itself waits for all of an answer.
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Not zeros, which would get their memory only when the first answer is written there.
        self._buffer = memoryview(bytearray(b"\1" * answer_bytes))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def send(self, request: Frame) -> None:
        """Hand all of a request to the kernel."""
        left = sum(len(piece) for piece in request)
        pieces = request
        while True:
            sent = self._socket.sendmsg(pieces[:_PIECES_MOST])
            left -= sent
            if not left:
                return
            pieces = _behind(pieces, sent)

    def receive(self) -> memoryview:
        """The next answer without its header (v0). It is overwritten by the one after it.

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
    """What is left of the pieces after their first `sent` bytes."""
    for number, piece in enumerate(pieces):
        if sent < len(piece):
            return [piece[sent:], *pieces[number + 1 :]]
        sent -= len(piece)
    return []
