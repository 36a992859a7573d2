"""The proxy's inner side, in its event loop: one broker's port, its connections, and their faults."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from mirror_lib.features.demo.ports import LOOPBACK
from tools.testbed.kafka_frames import FrameSplitter, answered_correlation_id, request_header

_READ_BYTES = 256 * 1024
#: Messages in flight in one direction of one connection; Kafka's clients have about five.
_MOST_UNDER_WAY = 64
#: Closing sends a reset instead of what is left (socket(7), SO_LINGER with a time of zero).
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Swallow:
    """A response that must not arrive."""

    api_key: int
    happened: threading.Event


@dataclass(slots=True)
class Faults:
    """The present faults of the connections to one broker."""

    one_way_seconds: float = 0.0
    #: Share of requests and responses that is lost together with the connection.
    drop_rate: float = 0.0
    swallows: list[Swallow] = field(default_factory=list)
    #: Cleared while no byte passes.
    flowing: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.flowing.set()

    def clear(self) -> None:
        """End all of them."""
        self.one_way_seconds = self.drop_rate = 0.0
        self.swallows.clear()
        self.flowing.set()


class BrokerPort:
    """The port in front of one broker."""

    def __init__(self, port: int, broker_port: Callable[[], int], chance: random.Random) -> None:
        self.faults = Faults()
        self._port = port
        self._broker_port = broker_port
        self._chance = chance
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._connections)

    async def accept(self) -> None:
        """Accept connections; raises OSError if the port is taken."""
        if self._server is None:
            self._server = await asyncio.start_server(self.connected, LOOPBACK, self._port)

    async def refuse(self) -> None:
        """Accept no more connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
            # The socket is closed by the event loop's next turn.
            await asyncio.sleep(0)

    async def cut(self) -> int:
        """Reset all connections; return their number."""
        connections = tuple(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        return len(connections)

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a new connection."""
        # Not a coroutine started by asyncio: those log an error when they are cancelled.
        connection = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)
        # A task that is cancelled before its first step does not close the connection itself.
        connection.add_done_callback(lambda _: writer.transport.abort())

    async def _serve(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            from_broker, to_broker = await asyncio.open_connection(LOOPBACK, self._broker_port())
        except BaseException as error:
            await _reset(to_client)
            if not isinstance(error, OSError):
                raise
            return
        link = _Link(self.faults, self._chance)
        try:
            await _first_of(
                _pass_on(from_client, to_broker, self.faults, link.request_passes),
                _pass_on(from_broker, to_client, self.faults, link.answer_passes),
            )
            await _close(to_client, to_broker)
        except (_LostError, OSError):
            await _reset(to_client, to_broker)
        except BaseException:
            await _reset(to_client, to_broker)
            raise


class _LostError(Exception):
    """A fault ends the connection."""


class _Link:
    """The state of one connection: requests that wait for their responses."""

    def __init__(self, faults: Faults, chance: random.Random) -> None:
        self._faults = faults
        self._chance = chance
        self._asked: dict[int, int] = {}

    def request_passes(self, frame: bytes) -> None:
        """Raise `_LostError` if the request must not arrive."""
        self._may_drop()
        if (header := request_header(frame)) is not None:
            self._asked[header.correlation_id] = header.api_key

    def answer_passes(self, frame: bytes) -> None:
        """Raise `_LostError` if the response must not arrive."""
        self._may_drop()
        correlation_id = answered_correlation_id(frame)
        api_key = None if correlation_id is None else self._asked.pop(correlation_id, None)
        for swallow in tuple(self._faults.swallows):
            if swallow.happened.is_set():
                # It was set for several brokers, and another one came first.
                self._faults.swallows.remove(swallow)
            elif swallow.api_key == api_key:
                swallow.happened.set()
                raise _LostError

    def _may_drop(self) -> None:
        if self._faults.drop_rate and self._chance.random() < self._faults.drop_rate:
            raise _LostError


async def _pass_on(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, faults: Faults, passes: Callable[[bytes], None]
) -> None:
    """Forward one direction, until its end; raises `_LostError` or OSError if it breaks."""
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_MOST_UNDER_WAY)
    now = asyncio.get_running_loop().time

    async def read() -> None:
        splitter = FrameSplitter()
        while data := await source.read(_READ_BYTES):
            for frame in splitter.feed(data):
                await under_way.put((now() + faults.one_way_seconds, frame))
        if rest := splitter.rest():
            await under_way.put((now() + faults.one_way_seconds, rest))
        await under_way.join()

    async def write() -> None:
        while True:
            due, frame = await under_way.get()
            if (pause := due - now()) > 0:
                await asyncio.sleep(pause)
            await faults.flowing.wait()
            passes(frame)
            sink.write(frame)
            await sink.drain()
            under_way.task_done()

    await _first_of(read(), write())


async def _first_of(*work: Coroutine[None, None, None]) -> None:
    """Run all until one ends, and cancel the others; raises the exception of that one."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def _reset(*writers: asyncio.StreamWriter) -> None:
    """Reset connections like a broken network: data in flight is lost, and the other side gets a reset."""
    for writer in writers:
        with suppress(OSError):
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        writer.transport.abort()
    await _closed(writers)


async def _close(*writers: asyncio.StreamWriter) -> None:
    """Close connections cleanly: written data still arrives."""
    for writer in writers:
        writer.close()
    await _closed(writers)


async def _closed(writers: Iterable[asyncio.StreamWriter]) -> None:
    for writer in writers:
        with suppress(OSError):
            await writer.wait_closed()
