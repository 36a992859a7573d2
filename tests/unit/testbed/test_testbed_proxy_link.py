"""Connections that the proxy has only just taken."""

from __future__ import annotations

import asyncio
import random

from mirror_lib.dev.ports import LOOPBACK, free_ports
from testbed.proxy_link import BrokerPort


def test_given_a_connection_that_nobody_serves_yet_when_all_are_ended_then_it_is_too() -> None:
    async def end_at_once() -> bool:
        (port,) = free_ports(1)
        taken: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
        proxied = BrokerPort(port, lambda: port, random.Random(0))

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            before = asyncio.all_tasks()
            proxied.connected(reader, writer)
            # As the proxy does when it is stopped: what serves the connection has not had its first step.
            for task in asyncio.all_tasks() - before:
                task.cancel()
            taken.set_result(writer)

        server = await asyncio.start_server(connected, LOOPBACK, port)
        _, writer = await asyncio.open_connection(LOOPBACK, port)
        of_proxy = await taken
        await proxied.cut()
        ended = of_proxy.transport.is_closing()
        writer.close()
        of_proxy.close()
        server.close()
        await asyncio.sleep(0)
        return ended

    assert asyncio.run(end_at_once())
