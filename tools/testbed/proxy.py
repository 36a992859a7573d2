"""Faults between Kafka clients and the brokers of a local cluster: a TCP proxy with one port per broker.

Clients of any kind can use it, because the brokers advertise the proxy's ports on a separate listener:

    cluster = KafkaCluster(..., listeners={"PLAINTEXT": "PLAINTEXT", "PROXY": "PLAINTEXT"}, proxied=["PROXY"])
    with cluster, KafkaProxy.in_front_of(cluster, "PROXY") as proxy:
        connect(cluster.bootstrap_servers_of("PROXY"))
        proxy.cut()

Messages are forwarded whole. On a TLS listener the bytes are forwarded as they come, without parsing responses.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from mirror_lib.errors import MirrorError
from mirror_lib.features.demo.broker import KafkaCluster
from tools.testbed.kafka_frames import PRODUCE
from tools.testbed.proxy_link import BrokerPort, Faults, Swallow

_Answer = TypeVar("_Answer")
_CALL_SECONDS = 30.0


class ProxyError(MirrorError):
    """The proxy cannot listen, or does not run."""

    reason = "proxy"


@dataclass(frozen=True, slots=True)
class Route:
    """One port of the proxy, and the broker's port behind it, which may change with a restart."""

    port: int
    broker_port: Callable[[], int]


class KafkaProxy:
    """The proxy of a cluster, running between `start` and `stop`.

    Every call has taken effect when it returns. `broker` is a node id; None means all of them. Threads may share it.
    """

    def __init__(self, routes: Mapping[int, Route], *, seed: int = 0) -> None:
        """Nothing listens yet.

        Args:
            routes: by node id.
            seed: for `drop_rate`.
        """
        self._brokers = {
            node_id: BrokerPort(route.port, route.broker_port, random.Random(f"{seed} {node_id}"))
            for node_id, route in routes.items()
        }
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @classmethod
    def in_front_of(cls, cluster: KafkaCluster, listener: str, *, seed: int = 0) -> Self:
        """Return a proxy for a listener that the cluster has as `proxied`; either may be started first."""

        def route(node_id: int) -> Route:
            advertised = cluster.ports_of(node_id).advertised[listener]
            return Route(advertised, lambda: cluster.ports_of(node_id).listeners[listener])

        return cls({node_id: route(node_id) for node_id in cluster.node_ids}, seed=seed)

    def start(self) -> Self:
        """Listen, and forward everything.

        Raises:
            ProxyError: a port is taken.
        """
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kafka-proxy", daemon=True)
        self._thread.start()
        try:
            self.accept()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Cut all connections and stop listening; nothing to do if it does not run."""
        if self._loop is None or self._thread is None:
            return
        self.refuse()
        self.cut()
        self._do(_end_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def connections(self, broker: int | None = None) -> int:
        """Return the number of open connections."""

        async def count() -> int:
            return sum(each.connections for each in self._chosen(broker))

        return self._do(count())

    def latency(self, milliseconds: float, broker: int | None = None) -> None:
        """Delay every round trip by this time, half of it in each direction; 0 ends it."""

        def change(faults: Faults) -> None:
            faults.one_way_seconds = milliseconds / 2000

        self._change(broker, change)

    def stall(self, broker: int | None = None) -> None:
        """Forward no bytes, while connections stay and new ones are accepted."""
        self._change(broker, lambda faults: faults.flowing.clear())

    def resume(self, broker: int | None = None) -> None:
        """End `stall`: delayed data is forwarded."""
        self._change(broker, lambda faults: faults.flowing.set())

    def drop_rate(self, share: float, broker: int | None = None) -> None:
        """Lose this share (0 to 1) of requests and responses, each together with its connection; 0 ends it."""

        def change(faults: Faults) -> None:
            faults.drop_rate = share

        self._change(broker, change)

    def swallow_next_answer(self, api_key: int = PRODUCE, broker: int | None = None) -> threading.Event:
        """Lose the next response to a kind of request, together with its connection: the broker has done the request.

        Args:
            api_key: the kind, by Kafka's protocol.
            broker: of the response; None: the first one from any broker.

        Returns:
            Set as soon as that has happened.
        """
        swallow = Swallow(api_key, threading.Event())
        self._change(broker, lambda faults: faults.swallows.append(swallow))
        return swallow.happened

    def cut(self, broker: int | None = None) -> int:
        """Reset all connections, on both sides; return their number. New ones are accepted."""

        async def cut() -> int:
            return sum([await each.cut() for each in self._chosen(broker)])

        return self._do(cut())

    def refuse(self, broker: int | None = None) -> None:
        """Accept no new connections: clients are refused as if nothing listened there. Open ones stay."""

        async def refuse() -> None:
            for each in self._chosen(broker):
                await each.refuse()

        self._do(refuse())

    def accept(self, broker: int | None = None) -> None:
        """End `refuse`.

        Raises:
            ProxyError: the port was taken meanwhile.
        """

        async def accept() -> None:
            for each in self._chosen(broker):
                await each.accept()

        try:
            self._do(accept())
        except OSError as error:
            raise ProxyError(f"The proxy cannot listen: {error}.", action="Start the cluster anew.") from error

    def heal(self) -> None:
        """End all faults, including pending ones."""
        self._change(None, Faults.clear)
        self.accept()

    def _change(self, broker: int | None, change: Callable[[Faults], object]) -> None:
        async def apply() -> None:
            for each in self._chosen(broker):
                change(each.faults)

        self._do(apply())

    def _chosen(self, broker: int | None) -> list[BrokerPort]:
        return list(self._brokers.values()) if broker is None else [self._brokers[broker]]

    def _do(self, work: Coroutine[Any, Any, _Answer]) -> _Answer:
        if self._loop is None:
            work.close()
            raise ProxyError("The proxy does not run.", action="Start it first.")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_CALL_SECONDS)


async def _end_others() -> None:
    """Cancel the tasks of connections that were just being accepted, too."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        # The event loop has to handle what these have begun or ended.
        await asyncio.sleep(0)
