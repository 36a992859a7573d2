"""A broker connection for large frames: received bytes go directly to their destination, sent pieces are not joined.

Gigabytes of record batches pass here. asyncio's streams would copy each byte several times between their buffers; here
a frame is received directly into a buffer of its size (`asyncio.BufferedProtocol`), and the batches of a request go to
the socket one by one.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Any, NamedTuple, TypeVar

from mirror_lib.cluster.raw.response_limits import ALWAYS_ALLOWED, largest_response, size_problem
from mirror_lib.cluster.raw.sessions import Session

#: Pieces of a request are joined if they are smaller than this on average: sending each separately would cost more than
#: the copy.
_JOIN_BELOW = 8 * 1024
_SIZE = struct.Struct(">i")
#: API key, API version, correlation id, length of the client id (request header v1).
_HEADER = struct.Struct(">hhih")
_CORRELATION_IDS = 2**31

#: Frames of this size and above are received into reused memory, if there is any.
_LARGE_FRAME = 64 * 1024
#: Buffer sizes are multiples of this, so that the buffer of one response fits the next.
_FRAME_STEP = 1024 * 1024
_KEPT_BYTES = 96 * 1024 * 1024

#: Minimum bytes of a large frame to wait for before a read: a wake-up costs as much as copying a hundred kilobytes.
_WAKE_BYTES = 512 * 1024

#: Responses up to this size need one system call, others one more; this number of bytes of each is copied.
_BEGINNING_BYTES = 4096

Buffer = bytes | bytearray | memoryview

_Response = TypeVar("_Response")


def _references(buffers: Sequence[mmap]) -> list[int]:
    """The number of references to each of some buffers, including those of the list and of the count."""
    return [sys.getrefcount(each) for each in buffers]


def _references_of_a_free_one() -> int | None:
    """The result of `_references` for a buffer without a view; None if this Python does not count views."""
    buffers = [mmap(-1, 1)]
    (free,) = _references(buffers)
    view = memoryview(buffers[0])[:1]
    (held,) = _references(buffers)
    del view
    return free if free < held and _references(buffers) == [free] else None


_FREE = _references_of_a_free_one()


class Frames:
    """Memory for responses. Large buffers are reused once no view of them exists.

    The kernel must find and clear each page of fresh memory, which costs more than the copy into it.
    """

    def __init__(self) -> None:
        self._kept: list[mmap] = []
        self._kept_bytes = 0

    def take(self, size: int) -> memoryview:
        """A buffer of `size` bytes; its content is kept as long as a reference to it or to a part of it exists."""
        if size < _LARGE_FRAME:
            return memoryview(bytearray(size))
        fitting = [
            (len(kept), number)
            for number, (kept, references) in enumerate(zip(self._kept, _references(self._kept), strict=True))
            if len(kept) >= size and references == _FREE
        ]
        if fitting:
            return memoryview(self._kept[min(fitting)[1]])[:size]
        # Mapped, so that pages without data take no memory.
        fresh = mmap(-1, -(-size // _FRAME_STEP) * _FRAME_STEP, flags=MAP_PRIVATE | MAP_ANONYMOUS)
        self._keep(fresh)
        return memoryview(fresh)[:size]

    def _keep(self, fresh: mmap) -> None:
        """Keep a buffer for later, in place of smaller unused ones; drop it if there are enough."""
        for number, references in reversed(list(enumerate(_references(self._kept)))):
            if self._kept_bytes + len(fresh) <= _KEPT_BYTES:
                break
            if len(self._kept[number]) < len(fresh) and references == _FREE:
                self._kept_bytes -= len(self._kept.pop(number))
        if _FREE is not None and self._kept_bytes + len(fresh) <= _KEPT_BYTES:
            self._kept.append(fresh)
            self._kept_bytes += len(fresh)


class _Thread(threading.local):
    def __init__(self) -> None:
        self.frames = Frames()


_THREAD = _Thread()


def frames_of_this_thread() -> Frames:
    """Memory shared by all connections of a thread; it outlives them.

    Spark's workers copy repeatedly, in rounds of a second; they end when they have been idle for a minute.
    """
    return _THREAD.frames


class _Wakeups:
    """The number of bytes that must arrive before the event loop wakes up (`SO_RCVLOWAT`).

    Over TLS any byte wakes it up: missing bytes of a frame may have left the socket already.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        plain = sys.platform == "linux" and transport.get_extra_info("sslcontext") is None
        self._socket = transport.get_extra_info("socket") if plain else None
        self._least = 1

    def set_missing(self, missing: int) -> None:
        """Set how many bytes of a frame are missing; with 0, the next byte starts a new frame."""
        least = max(min(missing, _WAKE_BYTES), 1)
        if least != self._least and self._socket is not None:
            self._least = least
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)


class _Waiting(NamedTuple):
    """A request without a response yet."""

    correlation_id: int
    response: asyncio.Future[Any]
    #: By the event loop's clock.
    deadline: float
    read: Callable[[memoryview], Any]
    api_key: int
    request_bytes: int
    fetch_bytes: int


class _Held(NamedTuple):
    """A request that is delayed until the login is renewed."""

    api_key: int
    api_version: int
    body: Sequence[Buffer]
    response: asyncio.Future[Any]
    read: Callable[[memoryview], Any]
    fetch_bytes: int


def _as_received(response: memoryview) -> memoryview:
    return response


def _as_it_was(why: BaseException) -> BaseException:
    return why


class DataConnection(asyncio.BufferedProtocol):
    """Implements Kafka's framing on a transport after its handshake (versions, SASL).

    Responses come in the order of the requests, as brokers guarantee for one connection. Every failure closes the
    connection, and all its requests fail with `ConnectionError` or `TimeoutError`.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        *,
        client_id: str,
        timeout: float,
        frames: Frames | None = None,
        convert_error: Callable[[BaseException], BaseException] = _as_it_was,
        session: Session | None = None,
    ) -> None:
        """Take over the transport.

        Args:
            timeout: maximum seconds for a response.
            frames: memory for responses, which several connections may share.
            convert_error: converts the error that closed the connection to the requests' error.
            session: of its login, which is renewed before it ends; requests wait meanwhile, in their order.
        """
        self._transport = transport
        self._client_id = client_id.encode()
        self._timeout = timeout
        self._correlation_id = 0
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Waiting] = deque()
        #: One timer for all requests, since responses come in their order.
        self._watch: asyncio.TimerHandle | None = None
        #: Buffer for the beginnings of responses: small ones, such as to appends, arrive as a whole and often together.
        self._beginning = memoryview(bytearray(_BEGINNING_BYTES))
        self._begun = 0
        self._frames = frames or Frames()
        self._convert_error = convert_error
        self._wakeups = _Wakeups(transport)
        self._frame: memoryview | None = None
        self._received = 0
        self._closed: BaseException | None = None
        self._session = session
        #: None unless the login is being renewed.
        self._held: deque[_Held] | None = None
        self._renewal: asyncio.Task[None] | None = None
        transport.set_protocol(self)

    @property
    def open(self) -> bool:
        """True if requests can be sent."""
        return self._closed is None and not self._transport.is_closing()

    @property
    def is_renewing(self) -> bool:
        """True while the login is renewed and requests wait."""
        return self._held is not None

    def request(
        self, api_key: int, api_version: int, body: Sequence[Buffer], *, fetch_bytes: int = 0
    ) -> asyncio.Future[memoryview]:
        """As `request_read`, for the unparsed response."""
        return self.request_read(api_key, api_version, body, _as_received, fetch_bytes=fetch_bytes)

    def request_read(
        self,
        api_key: int,
        api_version: int,
        body: Sequence[Buffer],
        read: Callable[[memoryview], _Response],
        *,
        fetch_bytes: int = 0,
    ) -> asyncio.Future[_Response]:
        """Send a request.

        Args:
            body: the encoded request in pieces; they must not be changed before the response is there.
            read: parses the response without its header (response header v0).
            fetch_bytes: of a fetch, the bytes that it requests; a much larger response ends the connection.

        Returns:
            A future for the result or exception of `read`; a `ConnectionError` if the connection ends; a `TimeoutError`
            if no response comes in time, which closes the connection, too; both converted by `convert_error`.

        Raises:
            ConnectionError: the connection has ended.
        """
        if not self.open:
            raise ConnectionResetError("the connection is closed")
        response: asyncio.Future[_Response] = self._loop.create_future()
        if self._held is None and self._session is not None and self._session.is_due:
            self._held = deque()
            self._renewal = self._loop.create_task(self._renew(self._session))
        if self._held is None:
            self._dispatch(api_key, api_version, body, response, read, fetch_bytes)
        else:
            self._held.append(_Held(api_key, api_version, body, response, read, fetch_bytes))
        return response

    def _dispatch(
        self,
        api_key: int,
        api_version: int,
        body: Sequence[Buffer],
        response: asyncio.Future[Any],
        read: Callable[[memoryview], Any],
        fetch_bytes: int,
    ) -> None:
        self._correlation_id = number = (self._correlation_id + 1) % _CORRELATION_IDS
        size, deadline = sum(map(len, body)), self._loop.time() + self._timeout
        self._waiting.append(_Waiting(number, response, deadline, read, api_key, size, fetch_bytes))
        if self._watch is None:
            self._watch = self._loop.call_later(self._timeout, self._look_for_late)
        self._send(_HEADER.pack(api_key, api_version, number, len(self._client_id)), body, size)

    async def _renew(self, session: Session) -> None:
        """Log in again, then send the delayed requests.

        Brokers process the requests of a connection one after the other, so those in flight need not be waited for.
        """

        async def ask(api_key: int, api_version: int, body: Sequence[bytes]) -> memoryview:
            response: asyncio.Future[memoryview] = self._loop.create_future()
            self._dispatch(api_key, api_version, body, response, _as_received, 0)
            return await response

        try:
            await session.renew(ask)
        except Exception as error:
            # The next connection reports the error of the login.
            self._end(ConnectionResetError(f"the login could not be renewed: {error}"))
            return
        held, self._held = self._held or deque(), None
        for each in held:
            if not each.response.done() and self.open:
                self._dispatch(*each)

    def _look_for_late(self) -> None:
        self._watch = None
        if not self._waiting:
            return
        left = self._waiting[0].deadline - self._loop.time()
        if left > 0:
            self._watch = self._loop.call_later(left, self._look_for_late)
        else:
            self._end(TimeoutError(f"no response within {self._timeout:g} s"))

    def close(self) -> None:
        """Close the connection."""
        self._end(ConnectionResetError("the connection was closed"))

    def _send(self, header: bytes, body: Sequence[Buffer], size: int) -> None:
        head = _SIZE.pack(len(header) + len(self._client_id) + size) + header + self._client_id
        # At once: each separate write would wake up the broker.
        if size < _JOIN_BELOW * len(body):
            self._transport.write(head + b"".join(body))
        else:
            self._transport.writelines((head, *body))

    def get_buffer(self, sizehint: int) -> memoryview:
        """The buffer for the transport's next read: the rest of the current frame, or the beginning of one."""
        del sizehint
        return self._beginning[self._begun :] if self._frame is None else self._frame[self._received :]

    def buffer_updated(self, nbytes: int) -> None:
        """Process bytes that were read into the buffer."""
        if self._frame is None:
            self._begin_frames(self._begun + nbytes)
            return
        self._received += nbytes
        missing = len(self._frame) - self._received
        if len(self._frame) >= _LARGE_FRAME:
            self._wakeups.set_missing(missing)
        if missing == 0:
            frame, self._frame, self._received = self._frame, None, 0
            self._handle_response(frame)

    def _begin_frames(self, filled: int) -> None:
        """Process the first `filled` bytes of `_beginning`."""
        beginning, position = self._beginning, 0
        while filled - position >= _SIZE.size and self._closed is None:
            (size,) = _SIZE.unpack_from(beginning, position)
            if not _SIZE.size <= size <= ALWAYS_ALLOWED and (problem := self._size_problem(size)) is not None:
                self._end(ConnectionResetError(problem))
                return
            position += _SIZE.size
            here = beginning[position : min(position + size, filled)]
            position += len(here)
            if len(here) == size:
                self._handle_response(memoryview(bytes(here)))
            else:
                self._frame, self._received = self._frames.take(size), len(here)
                self._frame[: len(here)] = here
                if size >= _LARGE_FRAME:
                    self._wakeups.set_missing(size - len(here))
        left = filled - position
        beginning[:left] = beginning[position:filled]
        self._begun = left

    def _size_problem(self, size: int) -> str | None:
        if not self._waiting or size < _SIZE.size:
            return f"the broker announced a response of {size} bytes, and no request waits for it"
        oldest = self._waiting[0]
        return size_problem(
            size, oldest.api_key, largest_response(oldest.api_key, oldest.request_bytes, oldest.fetch_bytes)
        )

    def _handle_response(self, view: memoryview) -> None:
        (correlation_id,) = _SIZE.unpack_from(view)
        expected = self._waiting[0].correlation_id if self._waiting else None
        if correlation_id != expected:
            self._end(ConnectionResetError(f"the broker responded to request {correlation_id} instead of {expected}"))
            return
        waiting = self._waiting.popleft()
        response = waiting.response
        if response.done():
            return
        try:
            found = waiting.read(view[_SIZE.size :])
        except Exception as error:
            response.set_exception(error)
        else:
            response.set_result(found)

    def eof_received(self) -> bool:
        """The broker sends no more data: let the transport close."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport is closed."""
        self._end(exc or ConnectionResetError("the broker closed the connection"))

    def _end(self, why: BaseException) -> None:
        if self._closed is not None:
            return
        self._closed = why
        self._frame, self._received, self._begun = None, 0, 0
        self._transport.abort()
        if self._watch is not None:
            self._watch.cancel()
        late = isinstance(why, TimeoutError)
        if self._renewal is not None and self._renewal is not asyncio.current_task(self._loop):
            self._renewal.cancel()
        held, self._held = self._held or deque(), None
        unsent = ConnectionResetError(str(why) or type(why).__name__)
        for each in held:
            if not each.response.done():
                each.response.set_exception(self._convert_error(unsent))
        while self._waiting:
            response = self._waiting.popleft().response
            if not response.done():
                # The request that has timed out; those after it lose their connection.
                reason = why if late else ConnectionResetError(str(why) or type(why).__name__)
                response.set_exception(self._convert_error(reason))
            late = False
