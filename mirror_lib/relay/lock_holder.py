"""How a run lock's holder is named, so that others on the same host can tell that its process is gone."""

from __future__ import annotations

import os
import re
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

_TEXT = re.compile(
    r"process (?P<pid>\d+) on (?P<host>\S+)"
    r"(?: \(started (?P<start_ticks>\d+), boot (?P<boot>\S+), namespace (?P<namespace>\S+)\))?"
    r", lease (?P<lease>\S+)"
)
_ENDED_STATES = ("Z", "X")


class _Birth(NamedTuple):
    """What tells a process apart from every other one that has its number: all as Linux gives it."""

    #: Clock ticks from boot to its start.
    start_ticks: int
    boot: str
    #: The PID namespace: containers with the same host name have numbers of their own.
    namespace: str


@dataclass(frozen=True, slots=True)
class LockHolder:
    """One process that wants or has a lock, once: two leases of one process are two holders."""

    host: str
    pid: int
    lease: str
    #: None where the system does not tell (anything but Linux): such a process is never known to be gone.
    birth: _Birth | None = None

    @classmethod
    def here(cls) -> Self:
        """A new lease of this process."""
        pid = os.getpid()
        # White space would end the name early.
        host = re.sub(r"\s+", "-", socket.gethostname()) or "unknown"
        return cls(host, pid, uuid.uuid4().hex[:12], _birth(pid))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read what `str` of a holder gave; None when it is something else."""
        found = _TEXT.fullmatch(text)
        if found is None:
            return None
        birth = None
        if found["start_ticks"] is not None:
            birth = _Birth(int(found["start_ticks"]), found["boot"], found["namespace"])
        return cls(found["host"], int(found["pid"]), found["lease"], birth)

    @property
    def shown(self) -> str:
        """For people."""
        return f"process {self.pid} on {self.host}"

    @property
    def known_dead(self) -> bool:
        """Whether it is certain that the process has ended; False for one that cannot be seen from here."""
        if self.birth is None or (self.birth.boot, self.birth.namespace) != _place():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except (PermissionError, OverflowError):
            pass
        # What /proc does not show may still live: it can hide the processes of others (hidepid).
        present = _stat(self.pid)
        return present is not None and (present.ended or present.start_ticks != self.birth.start_ticks)

    def __str__(self) -> str:
        birth = self.birth
        told = f" (started {birth.start_ticks}, boot {birth.boot}, namespace {birth.namespace})" if birth else ""
        return f"{self.shown}{told}, lease {self.lease}"


def shown_holder(text: str) -> str:
    """A holder's text for people: without what only programs need."""
    holder = LockHolder.parse(text)
    return text if holder is None else holder.shown


class _Stat(NamedTuple):
    start_ticks: int
    ended: bool


def _stat(pid: int) -> _Stat | None:
    """Fields 3, 20 and 22 of /proc/<pid>/stat (proc_pid_stat(5)); the name before them may hold brackets and blanks."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    # A first thread may be a zombie while the others still run.
    return _Stat(int(fields[19]), fields[0] in _ENDED_STATES and int(fields[17]) <= 1)


def _place() -> tuple[str, str] | None:
    """The running system and the PID namespace we are in; None where that cannot be known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return boot, Path("/proc/self/ns/pid").readlink().name
    except OSError:
        return None


def _birth(pid: int) -> _Birth | None:
    place, present = _place(), _stat(pid)
    return None if place is None or present is None else _Birth(present.start_ticks, *place)
