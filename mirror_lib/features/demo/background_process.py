"""Child processes that may outlive this process: each leads its own session, and ends with all its descendants.

A process is remembered by its id, its start time and its boot, so an id that was reused is never mistaken for it.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from mirror_lib.errors import MirrorError
from mirror_lib.printable import LINES
from mirror_lib.private_files import write_atomically
from mirror_lib.processes import ProcessFacts, process_facts, session_members, tail

_POLL_SECONDS = 0.02


class ProcessError(MirrorError):
    """A helper process did not start, ended too early, or cannot be ended."""

    reason = "process"
    #: The end of a log.
    layout = LINES


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
