"""`python -m tests.support.reaper COMMAND ...` runs a test command and ends every process that it leaves running.

Brokers, Airflow and Spark lead sessions of their own, so they survive a test worker that dies. Their orphans become
children of this process (PR_SET_CHILD_SUBREAPER, prctl(2)), wherever below it they were started: it takes their exit
statuses, as init does, and when the command has ended it kills those that still run, and says which.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

import psutil

_PR_SET_CHILD_SUBREAPER = 36
#: What a worker started last may still be on its way out when the command ends.
_GRACE_SECONDS = 2.0
_KILL_SECONDS = 20.0
_POLL_SECONDS = 0.05
_FAILED = 1


def run(command: Sequence[str]) -> int:
    """Run a command; return its exit code, or 1 if it succeeded and left processes running."""
    _become_reaper()
    child = subprocess.Popen(command)
    for number in (signal.SIGINT, signal.SIGTERM):
        # A terminal sends its interrupt to the command itself, too.
        signal.signal(number, lambda got, _: child.send_signal(got) if got == signal.SIGTERM else None)
    code = _reap_until_end_of(child.pid)
    left = end_leftovers()
    for line in left:
        print(f"left running, ended now: {line}", file=sys.stderr)
    return code or (_FAILED if left else 0)


def end_leftovers(grace_seconds: float = _GRACE_SECONDS) -> list[str]:
    """Kill all descendants of this process that do not end by themselves; return their command lines."""
    deadline = time.monotonic() + grace_seconds
    while (running := _running_descendants()) and time.monotonic() < deadline:
        _reap()
        time.sleep(_POLL_SECONDS)
    left: dict[int, str] = {}
    deadline = time.monotonic() + _KILL_SECONDS
    while running and time.monotonic() < deadline:
        for process in running:
            try:
                left.setdefault(process.pid, f"process {process.pid}: {' '.join(process.cmdline())[:300]}")
                process.kill()
            except psutil.NoSuchProcess:
                continue
        time.sleep(_POLL_SECONDS)
        _reap()
        # What was killed may have started another process just before.
        running = _running_descendants()
    return list(left.values())


def _become_reaper() -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _reap_until_end_of(pid: int) -> int:
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            if code < 0:
                print(f"the tests were ended by {signal.Signals(-code).name}", file=sys.stderr)
            # As a shell reports an end by a signal.
            return code if code >= 0 else 128 - code


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _running_descendants() -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
