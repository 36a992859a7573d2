"""Child processes that may outlive this process: each leads its own session, and ends with all its descendants.

A process is remembered by its id, its start time and its boot, so an id that was reused is never mistaken for it. Linux
only: the facts come from /proc.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mirror_lib.errors import MirrorError
from mirror_lib.printable import LINES
from mirror_lib.private_files import write_atomically

_POLL_SECONDS = 0.02
_ZOMBIE_STATES = ("Z", "X")


class ProcessError(MirrorError):
    """A helper process did not start, ended too early, or cannot be ended."""

    reason = "process"
    #: The end of a log.
    layout = LINES


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


@cache
def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


@dataclass(frozen=True, slots=True)
class BackgroundProcess:
    """A process that leads its own session; also usable from a program that did not start it."""

    pid: int
    start_ticks: int
    boot_id: str
    command: str
    log: str

    @property
    def is_running(self) -> bool:
        """True if the process that was started still runs."""
        facts = process_facts(self.pid)
        if facts is not None and self._is_self(facts) and facts.is_alive:
            return True
        self._reap()
        return False

    @property
    def cpu_seconds(self) -> float:
        """User and system time of the process itself and its threads so far; 0 if it is gone."""
        self._reap()
        facts = process_facts(self.pid)
        if facts is None or not self._is_self(facts):
            return 0.0
        return (facts.user_ticks + facts.system_ticks) / os.sysconf("SC_CLK_TCK")

    def stop(self, grace_seconds: float = 15.0) -> None:
        """Ask the whole session to end, and kill the rest after the grace period; nothing to do if it is gone.

        Raises:
            ProcessError: a process of it survives even that.
        """
        if self._signal(signal.SIGTERM) and not self._wait_gone(grace_seconds):
            self.kill()

    def kill(self) -> None:
        """Kill the whole session at once, like a crash.

        Raises:
            ProcessError: a process of it survives.
        """
        deadline = time.monotonic() + 10.0
        while self._signal(signal.SIGKILL):
            # Repeatedly: a process may have started another one between the listing and the signal.
            if self._wait_gone(0.5):
                return
            if time.monotonic() > deadline:
                raise ProcessError(f"{self.command} (process {self.pid}) cannot be ended.", action="End it by hand.")

    def wait(self, timeout_seconds: float) -> bool:
        """Wait until the process has ended by itself; return False if it still runs after the timeout."""
        deadline = time.monotonic() + timeout_seconds
        while self.is_running:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def log_tail(self, lines: int = 20) -> str:
        """Return the last lines of the process's output."""
        return tail(Path(self.log), lines)

    def save(self, pid_file: Path) -> None:
        """Store the process for other programs."""
        write_atomically(pid_file, json.dumps(asdict(self), indent=1) + "\n")

    def _is_self(self, facts: ProcessFacts) -> bool:
        return facts.start_ticks == self.start_ticks and self.boot_id == _boot_id()

    def _members(self) -> tuple[int, ...]:
        """Return the living processes of the session; empty if the leader's id now belongs to another process."""
        leader = process_facts(self.pid)
        if self.boot_id != _boot_id() or (leader is not None and not self._is_self(leader)):
            return ()
        # The kernel reuses an id only if no session has it, so members without a leader belong to this session.
        members = session_members(self.pid)
        if not members:
            self._reap()
        return members

    def _signal(self, number: signal.Signals) -> bool:
        members = self._members()
        for pid in members:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return bool(members)

    def _wait_gone(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self._members():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def _reap(self) -> None:
        # Only the parent can read the exit status; for any other process it is not a child and init reaps it.
        facts = process_facts(self.pid)
        if facts is not None and self._is_self(facts):
            with suppress(ChildProcessError):
                os.waitpid(self.pid, os.WNOHANG)


def start(
    command: Sequence[str],
    *,
    log: Path,
    pid_file: Path | None = None,
    env: Mapping[str, str] | None = None,
    wait: Callable[[BackgroundProcess], None] | None = None,
) -> BackgroundProcess:
    """Start a process in its own session, with no standard input and all output appended to a log file.

    An interrupt (Ctrl-C, or a signal that is handled like it) leaves nothing behind: started processes are killed.

    Args:
        command: program (a path, or a name on the PATH) and arguments.
        log: for both outputs.
        pid_file: where to store it.
        env: the whole environment, by default this process's.
        wait: returns once the program is ready; if it raises, the process is stopped.

    Raises:
        ProcessError: the program cannot be started.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    started: list[BackgroundProcess] = []

    def start_and_remember() -> BackgroundProcess:
        process = _spawn(command, log, os.environ if env is None else env)
        started.append(process)
        if pid_file is not None:
            process.save(pid_file)
        return process

    try:
        # Interrupts are raised in the main thread, also between the start of a process and storing its id.
        with ThreadPoolExecutor(max_workers=1) as pool:
            process = pool.submit(start_and_remember).result()
    except BaseException:
        for process in started:
            process.kill()
            if pid_file is not None:
                pid_file.unlink(missing_ok=True)
        raise
    try:
        if wait is not None:
            wait(process)
    except BaseException:
        process.stop()
        raise
    return process


def _spawn(command: Sequence[str], log: Path, env: Mapping[str, str]) -> BackgroundProcess:
    name = Path(command[0]).name
    actions: list[tuple[int, int, str, int, int] | tuple[int, int, int]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    try:
        pid = os.posix_spawnp(
            command[0],
            list(command),
            dict(env),
            file_actions=actions,
            setsid=True,
            # Python ignores SIGPIPE, and a shell makes background jobs ignore SIGINT; a child would inherit both.
            setsigdef=[signal.SIGPIPE, signal.SIGINT],
        )
    except OSError as error:
        raise ProcessError(f"{name} cannot be started: {error.strerror}.", action=f"Check {command[0]}.") from error
    facts = process_facts(pid)
    # A child that is not reaped stays visible in /proc even if it has ended already.
    assert facts is not None
    return BackgroundProcess(pid, facts.start_ticks, _boot_id(), name, str(log))


def recall(pid_file: Path) -> BackgroundProcess | None:
    """Return the process in a pid file, running or not; None if there is no readable file."""
    try:
        return BackgroundProcess(**json.loads(pid_file.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def running(pid_file: Path) -> BackgroundProcess | None:
    """Return the process in a pid file if it runs."""
    process = recall(pid_file)
    return process if process is not None and process.is_running else None


def stop_running(pid_file: Path) -> bool:
    """Stop the process in a pid file; return True if it ran.

    Raises:
        ProcessError: it cannot be ended.
    """
    process = running(pid_file)
    if process is not None:
        process.stop()
    return process is not None


def tail(path: Path, lines: int) -> str:
    """Return the last lines of a text file; empty if there is none. Reads at most the last 64 kB."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 65_536))
            text = file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
