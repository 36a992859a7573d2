"""The process between a client and its driver: take the request, fork the driver, forward signals, report its end.

The driver host may end meanwhile: neither this process nor the driver needs it.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import NoReturn, Protocol

from mirror_lib.features.warm_spark.driver_host_protocol import (
    EXIT_CODE,
    STREAMS,
    DriverRequest,
    Greeting,
    receive,
    send,
)
from spark_jobs.forked_driver import become_driver

#: A client sends its request as soon as it has the greeting.
_REQUEST_SECONDS = 10.0
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
_log = logging.getLogger(__name__)


class Opened(Protocol):
    """A file or a socket."""

    def close(self) -> None:
        """Close it."""


def attend(
    connection: socket.socket, greeting: Greeting, modules: Sequence[str], *, unwanted: Sequence[Opened]
) -> NoReturn:
    """Serve one client to the end of its driver; called in a process that the host has just forked.

    Args:
        modules: modules that may be run.
        unwanted: open files and sockets of the host.
    """
    code = 1
    try:
        # A signal that ends the host must not end this process or the driver.
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        for each in unwanted:
            each.close()
        _serve(connection, greeting, modules)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _serve(connection: socket.socket, greeting: Greeting, modules: Sequence[str]) -> None:
    connection.settimeout(_REQUEST_SECONDS)
    try:
        send(connection, asdict(greeting))
        received = receive(connection, STREAMS)
    except (OSError, ValueError) as error:
        _log.info("rejected an invalid driver request: %s", error)
        return
    if received is None:
        return
    connection.settimeout(None)
    message, streams = received
    try:
        request = DriverRequest.from_plain(message)
        if request.module not in modules:
            raise ValueError(f"{request.module} is not one of {', '.join(modules)}")
        os.chdir(request.directory)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        with suppress(OSError):
            send(connection, {"refused": str(error)})
        return
    _watch(connection, request, streams)


def _watch(connection: socket.socket, request: DriverRequest, streams: Sequence[int]) -> None:
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    pid = os.fork()
    if pid == 0:
        become_driver(request, streams, unwanted=(connection, woken, wake))
    for stream in streams:
        os.close(stream)
    # This process must not keep that folder's file system mounted.
    os.chdir("/")
    with suppress(OSError):
        send(connection, {"started": pid})
    _log.info("%s runs as process %d", request.module, pid)
    code = _wait(connection, woken, pid)
    with suppress(OSError):
        connection.send(EXIT_CODE.pack(code))
    _log.info("process %d ended with exit code %d", pid, code)


def _wait(connection: socket.socket, woken: socket.socket, pid: int) -> int:
    """The driver's exit code, negative if a signal ended it.

    A disconnected client is no reason to end the driver: its standard input shows the end (`spark_jobs.entry`).
    """
    watched = [connection, woken]
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        ready, _, _ = select.select(watched, [], [])
        if woken in ready:
            woken.recv(4096)
        if connection in ready:
            numbers = _receive(connection)
            if not numbers:
                watched.remove(connection)
            for number in numbers:
                if number in _PASSED_ON:
                    # Only this process waits for it, so the id is still its own, even if it has ended.
                    os.kill(pid, number)


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(64)
    except OSError:
        return b""
