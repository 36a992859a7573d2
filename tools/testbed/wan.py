"""A high-latency line between Kafka clients and brokers: a TCP proxy that delays bytes without limiting those in
flight.

Unlike `testbed.proxy`, which breaks connections, it does not parse messages: every chunk of bytes is forwarded as it
comes and arrives half a round trip later, after earlier chunks. In front of one broker or several:

    python -m tools.testbed.wan --route 19092=9092 --round-trip-ms 150

or, for a cluster with a `proxied` listener, `LongLine.in_front_of(cluster, "PROXY", LineQuality(...))`. The effects of
loss and windows are computed, by the formulas in `LineQuality`, and not TCP's own. The kernel's netem has the real
effects, where it is available.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.demo.ports import LOOPBACK
from tools.testbed.wan_direction import Carrier, Direction, LineQuality

_START_SECONDS = 30.0


class LongLine:
    """The line of all routes together, running between `start` and `stop`; the routes share its bytes per second."""

    def __init__(self, routes: Mapping[int, Callable[[], int]], quality: LineQuality, *, seed: int = 0) -> None:
        """Nothing listens yet.

        Args:
            routes: by the port that clients use, the broker's port, read at every connection.
            quality: of the line, for both directions.
            seed: for the loss of segments.
        """
        self._routes = routes
        self._quality = quality
        self._chance = random.Random(seed)
        self._to_brokers, self._to_clients = Carrier(quality.bytes_per_second), Carrier(quality.bytes_per_second)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @classmethod
    def in_front_of(cls, cluster: KafkaCluster, listener: str, quality: LineQuality, *, seed: int = 0) -> Self:
        """Return a line for a listener that the cluster has as `proxied`; either may be started first."""

        def behind(node_id: int) -> Callable[[], int]:
            return lambda: cluster.ports_of(node_id).listeners[listener]

        ports = {node_id: cluster.ports_of(node_id).advertised[listener] for node_id in cluster.node_ids}
        return cls({ports[node_id]: behind(node_id) for node_id in cluster.node_ids}, quality, seed=seed)

    def start(self) -> Self:
        """Listen; raises OSError if a port is taken."""
        listening: list[OSError] = []
        ready = threading.Event()

        async def serve() -> None:
            self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
            try:
                servers = [await self._listen(port, behind) for port, behind in self._routes.items()]
            except OSError as error:
                listening.append(error)
                return
            finally:
                ready.set()
            await self._ended.wait()
            for server in servers:
                server.cancel()
            ended = [*servers, *self._connections]
            for task in ended:
                task.cancel()
            await asyncio.gather(*ended, return_exceptions=True)

        self._thread = threading.Thread(target=lambda: asyncio.run(serve()), name="long-line", daemon=True)
        self._thread.start()
        ready.wait(_START_SECONDS)
        if listening:
            raise listening[0]
        return self

    def stop(self) -> None:
        """End all connections; nothing to do if it does not run."""
        if self._thread is None or self._loop is None or self._ended is None:
            return
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def _listen(self, port: int, broker_port: Callable[[], int]) -> asyncio.Task[None]:
        listener = socket.create_server((LOOPBACK, port), backlog=128)
        listener.setblocking(False)

        async def accept() -> None:
            with listener:
                while True:
                    client, _ = await asyncio.get_running_loop().sock_accept(listener)
                    connection = asyncio.create_task(self._serve(client, broker_port()))
                    self._connections.add(connection)
                    connection.add_done_callback(self._connections.discard)

        return asyncio.create_task(accept())

    async def _serve(self, client: socket.socket, broker_port: int) -> None:
        broker = socket.socket()
        with client, broker:
            for each in (client, broker):
                each.setblocking(False)
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # A handshake takes a round trip before the client's first byte is sent; the client's own handshake with
            # this proxy took none.
            await asyncio.sleep(self._quality.round_trip_seconds)
            with suppress(OSError):
                await asyncio.get_running_loop().sock_connect(broker, (LOOPBACK, broker_port))
                there = Direction(client, broker, self._quality, self._to_brokers, self._chance)
                back = Direction(broker, client, self._quality, self._to_clients, self._chance)
                await asyncio.gather(there.carry(), back.carry())


def _route(text: str) -> tuple[int, int]:
    near, _, far = text.partition("=")
    return int(near), int(far)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a line until it is interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tools.testbed.wan", description="A long line before brokers.")
    parser.add_argument(
        "--route", type=_route, action="append", required=True, metavar="PORT=BROKER_PORT", help="may be repeated"
    )
    parser.add_argument("--round-trip-ms", type=float, default=150.0)
    parser.add_argument("--loss", type=float, default=0.0, help="share of segments that are lost, 0.01 for 1 %%")
    parser.add_argument("--bytes-per-second", type=float, default=0.0, help="of the line, each way; 0: no limit")
    parser.add_argument("--window-bytes", type=int, default=0, help="under way per connection and way; 0: no limit")
    parser.add_argument("--seed", type=int, default=0, help="of which segments are lost")
    given = parser.parse_args(arguments)
    quality = LineQuality(given.round_trip_ms / 1000, given.loss, given.bytes_per_second, given.window_bytes)
    routes: dict[int, Callable[[], int]] = {near: (lambda far=far: far) for near, far in given.route}  # type: ignore[misc]
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with LongLine(routes, quality, seed=given.seed):
        print(f"{quality} on ports {', '.join(map(str, routes))}", flush=True)
        ended.wait()


if __name__ == "__main__":
    main()
