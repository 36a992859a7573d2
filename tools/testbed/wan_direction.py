"""One direction of one connection over a high-latency line: when which bytes arrive."""

from __future__ import annotations

import asyncio
import random
import socket
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from math import sqrt

#: Bytes of a TCP stream in an Ethernet frame over IPv4 without options.
SEGMENT_BYTES = 1460
_READ_BYTES = 256 * 1024
#: Of one direction of one connection, if nothing else limits it: more than any line's rate times its delay.
_MOST_HELD_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LineQuality:
    """Delay, loss and rate of a line, in each direction.

    Args:
        round_trip_seconds: half of it in each direction.
        loss: the share of segments that are lost. A lost one arrives a round trip later (a fast retransmission), and so
            does all after it; and a connection is no faster than TCP with Cubic or Reno is then in the long run:
            1.22 segments per round trip, over the root of the loss (Mathis et al. 1997; RFC 8312 section 5: below its
            own formula for long fat lines Cubic keeps Reno's). BBR does better.
        bytes_per_second: of all connections together; 0: no limit.
        window_bytes: the bytes in flight of one connection (the smaller of the sender's and the receiver's
            socket buffers): a broker's default of `socket.send.buffer.bytes` is 102400; 0: no limit.
    """

    round_trip_seconds: float = 0.150
    loss: float = 0.0
    bytes_per_second: float = 0.0
    window_bytes: int = 0

    @property
    def bytes_per_second_of_a_connection(self) -> float:
        """The rate that loss and window allow to one connection; 0: no limit."""
        limits = []
        if self.round_trip_seconds and self.window_bytes:
            limits.append(self.window_bytes / self.round_trip_seconds)
        if self.round_trip_seconds and self.loss:
            limits.append(1.22 * SEGMENT_BYTES / (self.round_trip_seconds * sqrt(self.loss)))
        return min(limits, default=0.0)


#: A timer that wakes late must not reduce the rate of a line: this much time is made up for.
LATE_SECONDS = 0.02


class Carrier:
    """A line with a rate: computes when given bytes have been sent."""

    def __init__(self, bytes_per_second: float) -> None:
        """Set the rate; 0: unlimited."""
        self._bytes_per_second = bytes_per_second
        self._free_at = float("-inf")

    def left_at(self, now: float, count: int) -> float:
        """Return when the last of these bytes has been sent, after all earlier ones."""
        if not self._bytes_per_second:
            return now
        self._free_at = max(now - LATE_SECONDS, self._free_at) + count / self._bytes_per_second
        return max(now, self._free_at)


class Direction:
    """Forwards from one socket to the other, until the first one ends."""

    def __init__(
        self,
        source: socket.socket,
        sink: socket.socket,
        quality: LineQuality,
        line: Carrier,
        chance: random.Random,
    ) -> None:
        self._source = source
        self._sink = sink
        self._quality = quality
        self._line = line
        self._connection = Carrier(quality.bytes_per_second_of_a_connection)
        self._chance = chance
        self._under_way: deque[tuple[float, bytes]] = deque()
        self._held = 0
        self._changed = asyncio.Event()
        self._last_arrival = 0.0
        # A chunk is what a slow line transmits in some milliseconds, so that data flows evenly.
        slowest = min(filter(None, (quality.bytes_per_second_of_a_connection, quality.bytes_per_second)), default=0.0)
        self._read_bytes = min(_READ_BYTES, max(SEGMENT_BYTES, int(slowest / 100))) if slowest else _READ_BYTES

    async def carry(self) -> None:
        """Forward all bytes and then the end of the stream; raises OSError if a side breaks."""
        reading = asyncio.ensure_future(self._read())
        writing = asyncio.ensure_future(self._write())
        try:
            await asyncio.gather(reading, writing)
        finally:
            for task in (reading, writing):
                task.cancel()
            await asyncio.gather(reading, writing, return_exceptions=True)
            # The other direction must not wait for a peer that is gone.
            for each in (self._source, self._sink):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        while data := await loop.sock_recv(self._source, self._read_bytes):
            now = loop.time()
            left = max(self._connection.left_at(now, len(data)), self._line.left_at(now, len(data)))
            self._put(left + self._quality.round_trip_seconds / 2 + self._repair_seconds(len(data)), data)
            # A sender is limited by bytes that are not acknowledged yet, not by bytes that the line has already sent.
            if (pause := left - loop.time()) > 0:
                await asyncio.sleep(pause)
            while self._held > _MOST_HELD_BYTES:
                self._changed.clear()
                await self._changed.wait()
        self._put(loop.time() + self._quality.round_trip_seconds / 2, b"")

    def _repair_seconds(self, count: int) -> float:
        if not self._quality.loss:
            return 0.0
        segments = -(-count // SEGMENT_BYTES)
        lost = self._chance.random() < 1.0 - (1.0 - self._quality.loss) ** segments
        return self._quality.round_trip_seconds if lost else 0.0

    def _put(self, arrival: float, data: bytes) -> None:
        self._last_arrival = max(arrival, self._last_arrival)
        self._under_way.append((self._last_arrival, data))
        self._held += len(data)
        self._changed.set()

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while not self._under_way:
                self._changed.clear()
                await self._changed.wait()
            arrival, data = self._under_way.popleft()
            if (pause := arrival - loop.time()) > 0:
                await asyncio.sleep(pause)
            if not data:
                return
            await loop.sock_sendall(self._sink, data)
            self._held -= len(data)
            self._changed.set()
