"""A broker that does not offer some requests, as managed services do: what it says of them is changed on its way."""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress

from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.demo.ports import LOOPBACK

_ENTRY = struct.Struct(">hhh")
#: API keys that nobody knows.
_UNKNOWN = 20_000


def _versions(cluster: KafkaCluster, keys: Collection[int]) -> dict[bytes, bytes]:
    """The entries of the broker's list of requests for some API keys, and what takes their places.

    An entry has the same six bytes in every version of the answer.
    """
    listed = asyncio.run(_listed(cluster))
    return {_ENTRY.pack(key, *listed[key]): _ENTRY.pack(_UNKNOWN + key, *listed[key]) for key in keys if key in listed}


async def _listed(cluster: KafkaCluster) -> dict[int, tuple[int, int]]:
    host, _, port = cluster.bootstrap_servers.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    # ApiVersions v0, correlation id 0, no client id.
    writer.write(struct.pack(">ihhih", 10, 18, 0, 0, -1))
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    answer = await reader.readexactly(size)
    writer.close()
    (count,) = struct.unpack_from(">i", answer, 6)
    return {key: (low, high) for key, low, high in _ENTRY.iter_unpack(answer[10 : 10 + count * _ENTRY.size])}


@contextmanager
def hiding(cluster: KafkaCluster, listener: str, keys: Collection[int]) -> Iterator[str]:
    """Stand in front of a `proxied` listener of a cluster with one broker; yields where clients connect.

    Args:
        keys: API keys of the requests that are not offered.
    """
    changes = _versions(cluster, keys)
    ports = cluster.ports_of(1)

    async def first_answer(broker: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        head = await broker.readexactly(4)
        answer = await broker.readexactly(struct.unpack(">i", head)[0])
        for entry, instead in changes.items():
            answer = answer.replace(entry, instead)
        client.write(head + answer)
        await passed_on(broker, client)

    async def passed_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(1 << 16):
                sink.write(data)
                await sink.drain()
        sink.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Also where the proxy ends while a client is still connected.
        with closing(writer):
            broker, to_broker = await asyncio.open_connection(LOOPBACK, ports.listeners[listener])
            with closing(to_broker), suppress(ConnectionError, asyncio.IncompleteReadError):
                await asyncio.gather(passed_on(reader, to_broker), first_answer(broker, writer))

    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(serve, LOOPBACK, ports.advertised[listener]))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield cluster.bootstrap_servers_of(listener)
    finally:

        async def end() -> None:
            server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
