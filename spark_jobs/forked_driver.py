"""Turn a forked copy of the driver host into a driver, with all that a new process would have been started with."""

from __future__ import annotations

import io
import logging
import os
import runpy
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from mirror_lib.features.warm_spark.driver_host_protocol import DriverRequest

#: Maximum length of a process name (prctl(2), PR_SET_NAME).
_NAME_BYTES = 15


def become_driver(request: DriverRequest, streams: Sequence[int], *, unwanted: Sequence[socket.socket]) -> NoReturn:
    """Run the request's module as `python -m` does, and end with its exit code; called right after a fork.

    Args:
        streams: the descriptors of standard input, output and error output.
        unwanted: sockets that the forking process has open.
    """
    code = 1
    try:
        os.setsid()
        for each in unwanted:
            each.close()
        _take_signals()
        _take_streams(streams)
        _take_environment(request)
        _forget()
        code = _run(request)
    except BaseException:
        traceback.print_exc()
    finally:
        _end(code)


def _take_signals() -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _take_streams(streams: Sequence[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)


def _take_environment(request: DriverRequest) -> None:
    os.environ.clear()
    os.environ.update(request.environment)
    os.umask(request.umask)
    time.tzset()
    # Python itself reads these variables only at its start.
    first = [request.directory, *request.environment.get("PYTHONPATH", "").split(os.pathsep)]
    sys.path[:] = dict.fromkeys([*filter(None, first), *sys.path])
    if isinstance(sys.stdout, io.TextIOWrapper):
        at_once = bool(request.environment.get("PYTHONUNBUFFERED"))
        sys.stdout.reconfigure(line_buffering=sys.stdout.isatty(), write_through=at_once)
    with suppress(OSError):
        Path("/proc/self/comm").write_bytes(request.module.rpartition(".")[2].encode()[:_NAME_BYTES])


def _forget() -> None:
    """Drop the host's logging, and state that two processes must not share. `random` reseeds itself at a fork."""
    for handler in list(logging.root.handlers):
        logging.root.removeHandler(handler)
    logging.root.setLevel(logging.WARNING)
    numbers = sys.modules.get("numpy.random")
    if numbers is not None:
        numbers.seed()


def _run(request: DriverRequest) -> int:
    sys.argv = [request.module, *request.arguments]
    # As the main module it must be another one than the module that others may have imported.
    sys.modules.pop(request.module, None)
    try:
        runpy.run_module(request.module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return (ended.code or 0) & 0xFF
        sys.stderr.write(f"{ended.code}\n")
        return 1
    return 0


def _end(code: int) -> NoReturn:
    """Exit without Python's finalization of all that the host has loaded."""
    with suppress(BaseException):
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)
