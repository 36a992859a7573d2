"""What a copier costs: CPU seconds and memory of a process with all its descendants."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import psutil

#: What is raised for a process that has ended.
GONE = (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied, ProcessLookupError)
#: Listing all processes of a machine costs milliseconds; new workers are noticed this often.
_REFRESH_SECONDS = 1.0


class ProcessTree:
    """A process and its descendants, seen from outside.

    A process that ended and was waited for lives on in its parent's children times, so the sum over those alive misses
    nothing and counts nothing twice.
    """

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._members: list[psutil.Process] = []
        self._listed = float("-inf")

    def members(self) -> list[psutil.Process]:
        """The processes alive now, as last listed."""
        if time.monotonic() - self._listed > _REFRESH_SECONDS:
            with contextlib.suppress(*GONE):
                self._members = [self._root, *self._root.children(recursive=True)]
            self._listed = time.monotonic()
        return self._members

    def cpu_seconds(self) -> float:
        """User and system seconds used so far by the process, its descendants and those of them that have ended."""
        total = 0.0
        for process in self.members():
            with contextlib.suppress(*GONE):
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    def python_workers(self) -> list[int]:
        """Process ids of Spark's Python workers: the children that its daemon forked."""
        self._listed = float("-inf")
        workers = []
        for process in self.members():
            with contextlib.suppress(*GONE):
                parent = process.parent()
                if parent is not None and is_daemon(process) and is_daemon(parent):
                    workers.append(process.pid)
        return workers


def is_daemon(process: psutil.Process) -> bool:
    """Workers keep the command line of the daemon that forked them; its last argument names the worker."""
    return "pyspark.worker" in process.cmdline()


def reset_peak_memory(pid: int) -> None:
    """Let the kernel's record of a process's peak memory begin anew (Linux: proc(5), clear_refs)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_memory(pid: int) -> int:
    """The most bytes of RAM that the process held since its start or the last reset (VmHWM)."""
    return _status(pid, "VmHWM")


def resident_memory(pid: int) -> int:
    """The bytes of RAM that the process holds now (VmRSS)."""
    return _status(pid, "VmRSS")


def _status(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} has no {name}")
