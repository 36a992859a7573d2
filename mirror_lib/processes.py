"""Processes of this machine, and those of one session, which end together. Linux only: the facts come from /proc."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_POLL_SECONDS = 0.02
_ZOMBIE_STATES = ("Z", "X")


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """The used fields of /proc/<pid>/stat; times in clock ticks."""

    pid: int
    state: str
    session: int
    start_ticks: int
    user_ticks: int
    system_ticks: int
    threads: int

    @property
    def is_alive(self) -> bool:
        """True if any of it still runs: the first thread may be a zombie while the others are ending."""
        return self.state not in _ZOMBIE_STATES or self.threads > 1


def parse_stat(text: str) -> ProcessFacts:
    """Parse /proc/<pid>/stat (proc_pid_stat(5)); the name in brackets may itself hold brackets and blanks."""
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    return ProcessFacts(
        pid=int(head.partition(" ")[0]),
        state=fields[0],
        session=int(fields[3]),
        user_ticks=int(fields[11]),
        system_ticks=int(fields[12]),
        threads=int(fields[17]),
        start_ticks=int(fields[19]),
    )


def process_facts(pid: int) -> ProcessFacts | None:
    """Return the facts of /proc about a process, None if there is no such process."""
    try:
        return parse_stat(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace"))
    except (FileNotFoundError, ProcessLookupError):
        return None


def session_members(session: int) -> tuple[int, ...]:
    """Return the ids of the living processes of a session (zombies are not living)."""
    found = []
    for entry in os.listdir("/proc"):  # noqa: PTH208 - a plain list of names is all that is needed
        facts = process_facts(int(entry)) if entry.isdigit() else None
        if facts is not None and facts.session == session and facts.is_alive:
            found.append(facts.pid)
    return tuple(found)


def end_session(process: subprocess.Popen[Any], number: signal.Signals, seconds: float) -> bool:
    """Send a signal to every process of a child's own session; return True if all have ended within this time."""
    deadline = time.monotonic() + seconds
    for pid in session_members(process.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    while session_members(process.pid):
        if time.monotonic() > deadline:
            return False
        # Reaps the leader; as a zombie it is not a member any more.
        process.poll()
        time.sleep(_POLL_SECONDS)
    process.wait()
    return True


def tail(path: Path, lines: int) -> str:
    """Return the last lines of a text file; empty if there is none. Reads at most the last 64 kB."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 65_536))
            text = file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
