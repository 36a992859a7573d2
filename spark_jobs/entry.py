"""The start of every Spark job: its log, its session, and its reaction to signals."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from mirror_lib.spark.argument_file import expand
from mirror_lib.spark.connect_server import END_WITH_INPUT_VARIABLE, REMOTE_VARIABLE, ConnectAddress, is_connect
from spark_jobs.job_log import configure_log
from spark_jobs.session import connect_session, submitted_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Takes the name that Spark shows.
OpenSession = Callable[[str], "SparkSession"]
_log = logging.getLogger("mirror")
_INTERRUPTING = (signal.SIGTERM, signal.SIGINT)
_INTERRUPTED = 128 + signal.SIGTERM
#: Seconds from SIGTERM to SIGKILL, for a driver whose starter is gone and cannot kill it.
_GRACE_SECONDS = 15.0


def start(argv: Sequence[str], run: Callable[[Sequence[str], OpenSession], int], *, copies: bool) -> int:
    """Run a job to its end.

    Args:
        argv: the job's arguments, which may be in a file (`mirror_lib.spark.argument_file`), and maybe
            `--remote=sc://...`; an address with a token belongs into the environment (`SPARK_REMOTE`), which other
            users of the machine cannot list.
        run: takes the job's own arguments and a function that opens a session; returns the exit code.
        copies: whether its tasks write.
    """
    configure_log()
    remote, rest = take_remote(expand(argv), os.environ)
    if remote is None:
        return run(rest, partial(submitted_session, copies=copies))
    # These imports take seconds, while the configuration is read and both clusters respond.
    threading.Thread(target=importlib.import_module, args=("pyspark.sql.connect.session",)).start()
    for number in _INTERRUPTING:
        signal.signal(number, _interrupt)
    if os.environ.get(END_WITH_INPUT_VARIABLE):
        threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        leave(run(rest, lambda _name: connect_session(ConnectAddress.parse(remote), copies=copies)))
    except KeyboardInterrupt:
        # Spark's client has ended the operation on the server by now (`SparkConnectClient`, on this exception).
        _log.error("interrupted: the tasks on the Spark Connect server were stopped too.")
        leave(_INTERRUPTED)
    except Exception:
        _log.exception("the job failed")
        leave(1)


def leave(code: int) -> NoReturn:
    """End a process that has a session of a Spark Connect server.

    After a failed operation, Python's exit would wait for gRPC's channel without an end (`SparkSession.__del__`,
    pyspark 4.2). Nothing else is left to do by then.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        # The reader of the output may be gone.
        with suppress(OSError):
            stream.flush()
    os._exit(code)


def take_remote(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[str | None, list[str]]:
    """The session's address, None for Spark's own choice, and the other arguments."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--remote")
    found, rest = parser.parse_known_args(argv)
    named = environment.get(REMOTE_VARIABLE, "")
    return found.remote or (named if is_connect(named) else None), rest


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # Once: a second signal would interrupt the clean-up of the first.
    for number in _INTERRUPTING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_with_input() -> None:
    while os.read(0, 1024):
        pass
    # The output has no reader any more, and the clean-up must not fail because of that.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)
