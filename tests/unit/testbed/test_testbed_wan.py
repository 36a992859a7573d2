"""The long line in front of plain servers: what arrives is what was sent, and no sooner than light allows."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mirror_lib.dev.ports import LOOPBACK, free_ports
from tools.testbed.wan import LongLine
from tools.testbed.wan_direction import LATE_SECONDS, LineQuality

LONG = 20.0


@contextmanager
def echoing() -> Iterator[int]:
    """A server that sends back all that comes, on a port."""
    with socket.create_server((LOOPBACK, 0)) as listener:

        def serve() -> None:
            try:
                connection, _ = listener.accept()
                with connection:
                    while data := connection.recv(65536):
                        connection.sendall(data)
            except OSError:
                pass

        thread = threading.Thread(target=serve)
        thread.start()
        yield int(listener.getsockname()[1])
        thread.join(LONG)


@contextmanager
def line(quality: LineQuality) -> Iterator[socket.socket]:
    """A connection over a line to an echoing server."""
    (port,) = free_ports(1)
    with (
        echoing() as behind,
        LongLine({port: lambda: behind}, quality),
        socket.create_connection((LOOPBACK, port), timeout=LONG) as connection,
    ):
        yield connection


def echo(connection: socket.socket, data: bytes) -> bytes:
    sender = threading.Thread(target=connection.sendall, args=(data,))
    sender.start()
    back = bytearray()
    while len(back) < len(data):
        received = connection.recv(1 << 20)
        assert received, "the line ended too soon"
        back += received
    sender.join(LONG)
    return bytes(back)


@pytest.mark.parametrize(
    "quality",
    [
        LineQuality(0.0),
        LineQuality(0.02, loss=0.5),
        LineQuality(0.02, bytes_per_second=20_000_000, window_bytes=300_000),
    ],
)
def test_what_comes_back_is_what_was_sent(quality: LineQuality) -> None:
    data = random.Random(1).randbytes(200_000)

    # `line` waits for the server's thread, which ends with its connection.
    with line(quality) as connection:
        assert echo(connection, data) == data


@pytest.mark.parametrize(
    ("quality", "count", "seconds"),
    [
        pytest.param(LineQuality(0.2), 5, 0.2, id="round trip"),
        pytest.param(LineQuality(0.0, bytes_per_second=1_000_000), 500_000, 0.5 - LATE_SECONDS, id="rate"),
        pytest.param(LineQuality(0.1, window_bytes=100_000), 500_000, 0.5 - LATE_SECONDS, id="window"),
    ],
)
def test_bytes_take_at_least_the_time_that_the_line_needs(quality: LineQuality, count: int, seconds: float) -> None:
    with line(quality) as connection:
        began = time.monotonic()
        echo(connection, bytes(count))

        assert time.monotonic() - began >= seconds
