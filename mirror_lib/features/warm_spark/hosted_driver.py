"""A driver that a driver host forks: it has already imported the modules that a new process would import first."""

from __future__ import annotations

import select
import shutil
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.warm_spark.driver_host_protocol import (
    EXIT_CODE,
    DriverRequest,
    Greeting,
    code_stamp,
    is_ours,
    python_stamp,
    receive,
    send,
    socket_address,
)

#: A host only responds to requests. One that does not respond is stopped, or its machine is overloaded.
_GREETING_SECONDS = 5.0
#: Exit code of a driver whose end is unknown: the process that watched it was killed, as it was, too.
_LOST = -int(signal.SIGKILL)


class NoDriverHostError(Exception):
    """No host provides a driver, and none was started. It has the reason; the caller starts its own process."""


class HostedDriver:
    """The driver, with the interface of `subprocess.Popen`; a context manager, whose end does not end the driver."""

    def __init__(self, connection: socket.socket, module: str, pid: int) -> None:
        """Args:
        connection: connection to the host, which has started the driver.
        pid: process id of the driver, as its host sees it.
        """
        self._connection = connection
        self._module = module
        self.pid = pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def poll(self) -> int | None:
        """Its exit code, None while it runs."""
        try:
            return self.wait(0.0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, seconds: float | None = None) -> int:
        """Wait for its end; return its exit code, negative if a signal ended it.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        if not poll.poll(None if seconds is None else seconds * 1000):
            raise subprocess.TimeoutExpired(self._module, seconds or 0.0)
        try:
            # It stays in the buffer: a signal handler that ends the driver may call this at the same time.
            exit_code = self._connection.recv(EXIT_CODE.size, socket.MSG_PEEK)
        except OSError:
            return _LOST
        if len(exit_code) < EXIT_CODE.size:
            return _LOST
        (code,) = EXIT_CODE.unpack(exit_code)
        return int(code)

    def terminate(self) -> None:
        """Ask it to end (SIGTERM); do nothing if it has ended."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it; do nothing if it has ended."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        # Through its host, which knows whether the process with this id is still the driver.
        with suppress(OSError):
            self._connection.send(bytes([number]))


def ask_for_driver(path: Path, request: DriverRequest, streams: Sequence[int], *, python: str) -> HostedDriver:
    """Request a driver from the host at this socket.

    Args:
        streams: the descriptors of its input, output and error output, which stay open here.
        python: the program that would otherwise run the driver: a name on the path, or a path.

    Raises:
        NoDriverHostError: no host listens, or its code differs from this process; nothing was started.
    """
    connection = _connect(path)
    try:
        _check(_receive_greeting(connection), python)
        # No timeout from here on: whether a driver was started must be known.
        connection.settimeout(None)
        send(connection, request.to_plain(), streams)
        response = receive(connection)
        if response is None:
            raise NoDriverHostError("the driver host closed the connection.")
        if "started" not in response[0]:
            raise NoDriverHostError(
                f"the driver host rejected the request: {response[0].get('refused', 'it does not say why')}."
            )
        return HostedDriver(connection, request.module, int(response[0]["started"]))
    except (OSError, ValueError) as error:
        connection.close()
        raise NoDriverHostError(f"the connection to the driver host failed: {error}.") from error
    except BaseException:
        connection.close()
        raise


def greeting_of(path: Path) -> Greeting:
    """The greeting of the host at this socket.

    Raises:
        NoDriverHostError: no host listens.
    """
    with _connect(path) as connection:
        return _receive_greeting(connection)


def _connect(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(_GREETING_SECONDS)
        with socket_address(path) as address:
            connection.connect(address)
        if not is_ours(connection):
            raise NoDriverHostError(f"the process that listens on {path} belongs to another user.")
    except ConfigurationError as error:
        connection.close()
        raise NoDriverHostError(str(error)) from error
    except OSError as error:
        connection.close()
        raise NoDriverHostError(f"no response from a driver host on {path}: {error.strerror or error}.") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _receive_greeting(connection: socket.socket) -> Greeting:
    try:
        response = receive(connection)
        if response is None:
            raise NoDriverHostError("the driver host closed the connection at once.")
        return Greeting(code=str(response[0]["code"]), python=str(response[0]["python"]))
    except (OSError, ValueError, KeyError) as error:
        raise NoDriverHostError(f"the driver host sent no greeting: {error}.") from error


def _check(greeting: Greeting, python: str) -> None:
    ours = code_stamp()
    if greeting.code != ours:
        raise NoDriverHostError(f"the driver host runs batch-mirror {greeting.code}, but {ours} is installed here.")
    wanted = python_stamp(shutil.which(python) or python)
    if greeting.python != wanted:
        raise NoDriverHostError(f"the driver host runs Python {greeting.python}, but the driver needs {wanted}.")
