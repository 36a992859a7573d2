"""Forks drivers from a process that has loaded all they need: `python -m spark_jobs.driver_host SOCKET`.

A driver that uses a Spark Connect server spends most of its time before the first record on imports. Here they are done
once. The host itself opens no connection and starts no thread, since neither survives a fork (`grpc`, fork support): it
only listens on a Unix socket, in a folder that only its owner can enter.
"""

from __future__ import annotations

import argparse
import fcntl
import gc
import importlib
import logging
import os
import select
import signal
import socket
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from mirror_lib.errors import ConfigurationError, MirrorError
from mirror_lib.features.warm_spark.driver_host_protocol import (
    DRIVER_HOST_VARIABLE,
    Greeting,
    code_stamp,
    is_ours,
    python_stamp,
    socket_address,
)
from mirror_lib.features.warm_spark.hosted_driver import NoDriverHostError, greeting_of
from mirror_lib.private_files import open_lock
from spark_jobs.driver_watch import Opened, attend
from spark_jobs.job_log import configure_log

#: Modules that may be run.
MODULES = ("spark_jobs.replicate", "spark_jobs.verify", "spark_jobs.cutover")
#: Loaded if installed.
_OPTIONAL = (
    "psycopg",
    "sqlalchemy.dialects.postgresql.psycopg",
    "spark_jobs.transforms.job",
    "mirror_lib.features.transforms.sql.select_text",
)
#: In addition, modules that these load after their start: Spark's client, modules for connections to it and to the
#: ledger, and modules for flows with transforms. Each driver loads the users' functions itself.
PRELOADED = (
    *MODULES,
    "pyspark.sql.functions",
    "pyspark.sql.connect.session",
    "pyspark.sql.connect.client.retries",
    "grpc._channel",
    "encodings.idna",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "sqlite3",
    *_OPTIONAL,
)
_WAITING = 64
_ENDING = (signal.SIGTERM, signal.SIGINT)
#: On loading, numpy's library starts a thread for each core, and Arrow's allocator (jemalloc) a background thread. No
#: driver needs them.
_NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
_log = logging.getLogger(__name__)


def serve(path: Path, *, modules: Sequence[str] = MODULES, preloaded: Sequence[str] = PRELOADED) -> None:
    """Fork drivers for this user's requests on this socket, until a signal ends it. Drivers keep running then.

    Args:
        path: path of the socket. A missing folder is created.
        modules: modules that may be run.
        preloaded: modules that are loaded before.

    Raises:
        ConfigurationError: other users may enter the folder, another host listens there, or the loaded modules have
            started threads.
    """
    # Before anything is loaded: files that change meanwhile must not count as loaded.
    greeting = Greeting(code=code_stamp(), python=python_stamp(sys.executable))
    _load(preloaded)
    with _alone(path) as lock, _listen(path) as listener, _asked_to_end() as (ending, wake):
        _log.info("driver host of batch-mirror %s listens on %s", greeting.code, path)
        while True:
            ready, _, _ = select.select([listener, ending], [], [])
            if ending in ready:
                return
            with closing(listener.accept()[0]) as connection:
                if not is_ours(connection):
                    _log.warning("rejected a driver request of another user")
                    continue
                _fork(connection, greeting, modules, unwanted=(lock, listener, ending, wake))


def _fork(connection: socket.socket, greeting: Greeting, modules: Sequence[str], *, unwanted: Sequence[Opened]) -> None:
    """Fork a process that handles the request: a slow or silent client then blocks no other one."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    try:
        forked = os.fork()
    except OSError as error:
        # The client sees the connection end.
        _log.error("a process cannot be started: %s", error)
        return
    if forked == 0:
        attend(connection, greeting, modules, unwanted=unwanted)


def _load(modules: Sequence[str]) -> None:
    for name, value in _NO_THREADS.items():
        os.environ.setdefault(name, value)
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            if module not in _OPTIONAL:
                raise ConfigurationError(
                    f"the dependencies of drivers cannot be loaded: {error}.",
                    action="Install batch-mirror[spark] here.",
                ) from error
    started = thread_names()
    if len(started) > 1:
        raise ConfigurationError(
            f"a driver host must not have threads, but its imports started some: {', '.join(started)}.",
            action=f"Unset {DRIVER_HOST_VARIABLE}: drivers then run as separate processes.",
        )
    # The loaded objects are permanent, and their pages stay shared as long as no collection marks them.
    gc.collect()
    gc.freeze()


def thread_names() -> list[str]:
    """Names of all threads of this process, including native ones."""
    return sorted(each.joinpath("comm").read_text().strip() for each in Path("/proc/self/task").iterdir())


@contextmanager
def _alone(path: Path) -> Iterator[Opened]:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with socket_address(path.with_name(f"{path.name}.lock")) as address:
        try:
            opened = open_lock(address)
        except OSError as error:
            raise ConfigurationError(
                f"the lock file {path}.lock cannot be opened: {error.strerror}.",
                action="Remove it if it is a link; use a socket in a folder of this user only.",
            ) from error
    with os.fdopen(opened, "a") as lock:
        try:
            # The lock belongs to this process: running drivers do not hold it.
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigurationError(
                f"another driver host listens on {path}.", action="Use another socket, or stop that driver host first."
            ) from error
        yield lock


@contextmanager
def _listen(path: Path) -> Iterator[socket.socket]:
    _remove(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        with socket_address(path) as address:
            listener.bind(address)
        try:
            listener.listen(_WAITING)
            yield listener
        finally:
            _remove(path)


def _remove(path: Path) -> None:
    """Remove the socket that a killed host has left."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise ConfigurationError(
                f"{path} is not a socket.", action="Use another name for the driver host's socket."
            )
        path.unlink()


@contextmanager
def _asked_to_end() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A pair of sockets whose first end is readable after a signal. The handlers do nothing, not even in a fork."""
    ending, wake = socket.socketpair()
    with ending, wake:
        wake.setblocking(False)
        signal.set_wakeup_fd(wake.fileno())
        for number in _ENDING:
            signal.signal(number, lambda _number, _frame: None)
        # The host does not wait for the processes that watch drivers.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            yield ending, wake
        finally:
            signal.set_wakeup_fd(-1)


def main(argv: Sequence[str]) -> int:
    """Run the host; return the exit code: 0 after a signal, or that of the error."""
    parser = argparse.ArgumentParser(prog="python -m spark_jobs.driver_host", description=(__doc__ or "").split(":")[0])
    parser.add_argument("socket", nargs="?", type=Path, help=f"socket to listen on; default ${DRIVER_HOST_VARIABLE}")
    parser.add_argument(
        "--check", action="store_true", help="only check whether a driver host listens there; exit code 0 if so"
    )
    chosen = parser.parse_args(argv)
    named = os.environ.get(DRIVER_HOST_VARIABLE)
    path = chosen.socket or (Path(named) if named else None)
    if path is None:
        parser.error(f"no socket is set, neither as argument nor in {DRIVER_HOST_VARIABLE}")
    configure_log()
    try:
        if chosen.check:
            sys.stdout.write(f"driver host of batch-mirror {greeting_of(path).code}\n")
        else:
            serve(path)
    except MirrorError as error:
        _log.error("%s", error)
        return error.exit_code
    except NoDriverHostError as error:
        _log.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
