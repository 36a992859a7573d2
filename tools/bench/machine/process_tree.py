"""The cost of a copier: CPU seconds and memory of a process with all its descendants."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import psutil

#: Exceptions for a process that has ended.
GONE = (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied, ProcessLookupError)
#: Listing all processes of a machine costs milliseconds; new workers are found at this interval.
_REFRESH_SECONDS = 1.0


class ProcessTree:
    """A process and its descendants, observed from outside.

    The time of a process that ended and was waited for is in its parent's children times, so the sum over living
    processes misses nothing and counts nothing twice.
    """

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._members: list[psutil.Process] = []
        self._listed = float("-inf")

    def members(self) -> list[psutil.Process]:
        """Return the processes alive now, as last listed."""
        if time.monotonic() - self._listed > _REFRESH_SECONDS:
            with contextlib.suppress(*GONE):
                self._members = [self._root, *self._root.children(recursive=True)]
            self._listed = time.monotonic()
        return self._members

    def cpu_seconds(self) -> float:
        """Return user and system seconds so far of the process, its descendants and those of them that have ended."""
        total = 0.0
        for process in self.members():
            with contextlib.suppress(*GONE):
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    def python_workers(self) -> list[int]:
        """Return process ids of Spark's Python workers: the children that its daemon forked."""
        self._listed = float("-inf")
        workers = []
        for process in self.members():
            with contextlib.suppress(*GONE):
                parent = process.parent()
                if parent is not None and is_daemon(process) and is_daemon(parent):
                    workers.append(process.pid)
        return workers


def is_daemon(process: psutil.Process) -> bool:
    """Return True for the daemon and its workers, which keep its command line; its last argument names the worker."""
    return "pyspark.worker" in process.cmdline()


def reset_peak_memory(pid: int) -> None:
    """Reset the kernel's record of a process's peak memory (Linux: proc(5), clear_refs)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_memory(pid: int) -> int:
    """Return the peak RAM of the process since its start or the last reset (VmHWM), in bytes."""
    return _status(pid, "VmHWM")


def resident_memory(pid: int) -> int:
    """Return the present RAM of the process (VmRSS), in bytes."""
    return _status(pid, "VmRSS")


def _status(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} has no {name}")
