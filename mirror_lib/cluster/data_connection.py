"""A broker connection for large frames: what arrives is read into its final place, what leaves is not joined first.

Record batches of gigabytes pass here. asyncio's streams would copy each byte several times on its way through their
buffers; here a frame is received straight into a buffer of its size (`asyncio.BufferedProtocol`), and the batches of
a request go to the socket one by one.
"""

from __future__ import annotations

import asyncio
import struct
import sys
from collections import deque
from collections.abc import Sequence
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap

#: Pieces of a request below this size are joined: a system call each would cost more than copying them.
_JOIN_BELOW = 16 * 1024
_SIZE = struct.Struct(">i")
#: API key, API version, correlation id, length of the client id (request header v1).
_HEADER = struct.Struct(">hhih")
_CORRELATION_IDS = 2**31
#: Brokers refuse and never send more (`socket.request.max.bytes`); a larger size means that the stream is garbled.
_LARGEST_FRAME = 2**30

#: Frames of this size and above are received into memory that was used before, as far as there is any.
_LARGE_FRAME = 64 * 1024
#: Multiples of this many bytes, so that what one answer leaves fits the next.
_FRAME_STEP = 1024 * 1024
_KEPT_BYTES = 96 * 1024 * 1024

Buffer = bytes | bytearray | memoryview


def _references(buffers: Sequence[mmap]) -> list[int]:
    """How many references there are to each of some buffers, those of the list and of counting among them."""
    return [sys.getrefcount(each) for each in buffers]


def _references_of_a_free_one() -> int | None:
    """What `_references` gives for a buffer without a view; None where this Python does not count views."""
    buffers = [mmap(-1, 1)]
    (free,) = _references(buffers)
    view = memoryview(buffers[0])[:1]
    (held,) = _references(buffers)
    del view
    return free if free < held and _references(buffers) == [free] else None


_FREE = _references_of_a_free_one()


class Frames:
    """Memory for answers. Large ones are given out again when nobody has a view of them any more.

    The kernel has to find and clear each page of fresh memory, which costs more than what is then copied into it.
    """

    def __init__(self) -> None:
        self._kept: list[mmap] = []
        self._kept_bytes = 0

    def take(self, size: int) -> memoryview:
        """A buffer of `size` bytes; whoever holds it, or a part of it, holds its content."""
        if size < _LARGE_FRAME:
            return memoryview(bytearray(size))
        fitting = [
            (len(kept), number)
            for number, (kept, references) in enumerate(zip(self._kept, _references(self._kept), strict=True))
            if len(kept) >= size and references == _FREE
        ]
        if fitting:
            return memoryview(self._kept[min(fitting)[1]])[:size]
        # Mapped, so that pages which no answer reaches take no memory.
        fresh = mmap(-1, -(-size // _FRAME_STEP) * _FRAME_STEP, flags=MAP_PRIVATE | MAP_ANONYMOUS)
        self._keep(fresh)
        return memoryview(fresh)[:size]

    def _keep(self, fresh: mmap) -> None:
        """Keep it for later, instead of smaller ones that nobody has now; it is not kept where there are enough."""
        for number, references in reversed(list(enumerate(_references(self._kept)))):
            if self._kept_bytes + len(fresh) <= _KEPT_BYTES:
                break
            if len(self._kept[number]) < len(fresh) and references == _FREE:
                self._kept_bytes -= len(self._kept.pop(number))
        if _FREE is not None and self._kept_bytes + len(fresh) <= _KEPT_BYTES:
            self._kept.append(fresh)
            self._kept_bytes += len(fresh)


class DataConnection(asyncio.BufferedProtocol):
    """Speaks Kafka's framing on a transport whose handshake (versions, SASL) is over.

    Answers come in the order of the requests, as brokers promise for one connection. Every failure ends the
    connection and all its requests with `ConnectionError` or `TimeoutError`.
    """

    def __init__(
        self, transport: asyncio.Transport, *, client_id: str, timeout: float, frames: Frames | None = None
    ) -> None:
        """Take over the transport.

        Args:
            timeout: seconds that an answer may take.
            frames: memory for answers, which several connections may share.
        """
        self._transport = transport
        self._client_id = client_id.encode()
        self._timeout = timeout
        self._correlation_id = 0
        self._waiting: deque[tuple[int, asyncio.Future[memoryview]]] = deque()
        self._size = bytearray(_SIZE.size)
        self._frames = frames or Frames()
        self._frame: memoryview | None = None
        self._received = 0
        self._closed: BaseException | None = None
        transport.set_protocol(self)

    @property
    def open(self) -> bool:
        """Whether requests can be sent."""
        return self._closed is None and not self._transport.is_closing()

    async def request(self, api_key: int, api_version: int, body: Sequence[Buffer]) -> memoryview:
        """Send a request and wait for its answer.

        Args:
            body: the encoded request in pieces; they must not be changed before the answer is there.

        Returns:
            The answer without its header (response header v0).

        Raises:
            ConnectionError: the connection ended.
            TimeoutError: no answer came in time; the connection was ended.
        """
        if not self.open:
            raise ConnectionResetError("the connection is closed")
        self._correlation_id = (self._correlation_id + 1) % _CORRELATION_IDS
        answer: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        self._waiting.append((self._correlation_id, answer))
        self._send(_HEADER.pack(api_key, api_version, self._correlation_id, len(self._client_id)), body)
        try:
            async with asyncio.timeout(self._timeout):
                return await answer
        except TimeoutError:
            late = TimeoutError(f"no answer within {self._timeout:g} s")
            self._end(late)
            raise late from None

    def close(self) -> None:
        """End the connection."""
        self._end(ConnectionResetError("the connection was closed"))

    def _send(self, header: bytes, body: Sequence[Buffer]) -> None:
        size = len(header) + len(self._client_id) + sum(len(piece) for piece in body)
        joined = bytearray(_SIZE.pack(size))
        joined += header
        joined += self._client_id
        for piece in body:
            if len(piece) < _JOIN_BELOW:
                joined += piece
                continue
            if joined:
                self._transport.write(joined)
                joined = bytearray()
            self._transport.write(piece)
        if joined:
            self._transport.write(joined)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the transport puts what it reads next: the rest of the current size or frame."""
        del sizehint
        return (memoryview(self._size) if self._frame is None else self._frame)[self._received :]

    def buffer_updated(self, nbytes: int) -> None:
        """Note that bytes were read into the buffer."""
        self._received += nbytes
        if self._frame is None:
            if self._received == len(self._size):
                self._begin_frame(_SIZE.unpack(self._size)[0])
        elif self._received == len(self._frame):
            frame, self._frame, self._received = self._frame, None, 0
            self._answered(frame)

    def _begin_frame(self, size: int) -> None:
        if not _SIZE.size <= size <= _LARGEST_FRAME:
            self._end(ConnectionResetError(f"the broker announced an answer of {size} bytes"))
            return
        self._frame, self._received = self._frames.take(size), 0

    def _answered(self, view: memoryview) -> None:
        (correlation_id,) = _SIZE.unpack_from(view)
        expected = self._waiting[0][0] if self._waiting else None
        if correlation_id != expected:
            self._end(ConnectionResetError(f"the broker answered request {correlation_id} instead of {expected}"))
            return
        _, answer = self._waiting.popleft()
        if not answer.done():
            answer.set_result(view[_SIZE.size :])

    def eof_received(self) -> bool:
        """The broker will send no more: let the transport close."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport is gone."""
        self._end(exc or ConnectionResetError("the broker closed the connection"))

    def _end(self, why: BaseException) -> None:
        if self._closed is not None:
            return
        self._closed = why
        self._frame, self._received = None, 0
        self._transport.abort()
        while self._waiting:
            _, answer = self._waiting.popleft()
            if not answer.done():
                answer.set_exception(ConnectionResetError(str(why) or type(why).__name__))
