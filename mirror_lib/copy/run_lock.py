"""One run of a flow at a time: a lock in the ledger with a lease, which its holder renews while it is alive.

The lock keeps cooperating runs apart, so that they do not fence each other; exactly-once does not depend on it. Its
holder counts the lease from before it requested the renewal, all others from when the ledger stored it: the holder
notices first that it has expired.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Self

from mirror_lib.errors import AnotherRunError, LedgerError, RunLockedError, Where
from mirror_lib.ledger.rows import RunLockRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.locks import is_held_by

_TEXT = re.compile(
    r"process (?P<pid>\d+) on (?P<host>\S+)"
    r"(?: \(started (?P<start_ticks>\d+), boot (?P<boot>\S+), namespace (?P<namespace>\S+)\))?"
    r", lease (?P<lease>\S+)"
)
_ENDED_STATES = ("Z", "X")


class _Birth(NamedTuple):
    """The identity of a process among all others with the same PID, as Linux reports it."""

    #: Clock ticks from boot to its start.
    start_ticks: int
    boot: str
    #: The PID namespace: containers with the same host name have their own numbers.
    namespace: str


@dataclass(frozen=True, slots=True)
class LockHolder:
    """One request of a process for a lock: two leases of one process are two holders."""

    host: str
    pid: int
    lease: str
    #: None if the system does not report it (all but Linux): such a process is never known to be dead.
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
        """Parse the `str` of a holder; None if the text is something else."""
        found = _TEXT.fullmatch(text)
        if found is None:
            return None
        birth = None
        if found["start_ticks"] is not None:
            birth = _Birth(int(found["start_ticks"]), found["boot"], found["namespace"])
        return cls(found["host"], int(found["pid"]), found["lease"], birth)

    @property
    def text(self) -> str:
        """Text for operators."""
        return f"process {self.pid} on {self.host}"

    @property
    def known_dead(self) -> bool:
        """True if the process has certainly ended; False if it cannot be seen from here."""
        if self.birth is None or (self.birth.boot, self.birth.namespace) != _place():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except (PermissionError, OverflowError):
            pass
        # A process missing in /proc may still be alive: hidepid can hide the processes of others.
        present = _stat(self.pid)
        return present is not None and (present.ended or present.start_ticks != self.birth.start_ticks)

    def __str__(self) -> str:
        birth = self.birth
        birth_text = f" (started {birth.start_ticks}, boot {birth.boot}, namespace {birth.namespace})" if birth else ""
        return f"{self.text}{birth_text}, lease {self.lease}"


def shown_holder(text: str) -> str:
    """A holder's text for operators, without the parts for programs."""
    holder = LockHolder.parse(text)
    return text if holder is None else holder.text


class _Stat(NamedTuple):
    start_ticks: int
    ended: bool


def _stat(pid: int) -> _Stat | None:
    """Fields 3, 20 and 22 of /proc/<pid>/stat (proc_pid_stat(5)); the name before them may have brackets and blanks."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    # A main thread may be a zombie while the others still run.
    return _Stat(int(fields[19]), fields[0] in _ENDED_STATES and int(fields[17]) <= 1)


def _place() -> tuple[str, str] | None:
    """The boot id and the PID namespace of this process; None if they are unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return boot, Path("/proc/self/ns/pid").readlink().name
    except OSError:
        return None


def _birth(pid: int) -> _Birth | None:
    place, present = _place(), _stat(pid)
    return None if place is None or present is None else _Birth(present.start_ticks, *place)


_log = logging.getLogger(__name__)
#: Number of renewals within a lease, so that a few may fail.
_RENEWALS_PER_LEASE = 3
#: Checks of a lock that another run holds: number per lease, and the maximum interval in seconds.
_LOOKS_PER_LEASE, _LONGEST_LOOK_SECONDS = 20, 1.0
_LONGEST_JOIN_SECONDS = 5.0


class RunLease:
    """A held lock; created by `hold_lock`. Threads may share it."""

    def __init__(self, ledger: Ledger, *, flow: str, run_id: str, lease_seconds: float) -> None:
        """Create it without taking the lock."""
        self.flow = flow
        self.run_id = run_id
        self.lease_seconds = lease_seconds
        #: The holder's text in the ledger.
        self.holder = str(LockHolder.here())
        self._ledger = ledger
        self._guard = threading.Lock()
        self._renewed = _clock()
        self._lost: RunLockedError | None = None
        self._silence: LedgerError | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"run-lock-{flow}", daemon=True)

    @property
    def lost_error(self) -> RunLockedError | None:
        """Why this run no longer holds the lock, None while it holds it; a lost lock stays lost."""
        with self._guard:
            if self._lost is None and _clock() - self._renewed >= self.lease_seconds:
                self._lost = self._not_renewed()
            return self._lost

    def check(self) -> None:
        """Check that this run holds the lock.

        Raises:
            RunLockedError: it does not; this run must not write any more.
        """
        if (lost := self.lost_error) is not None:
            # A new exception for every caller: threads would extend each other's traceback.
            raise RunLockedError(lost.what, where=lost.where, action=lost.action)

    def acquire(self) -> None:
        """Take the lock and keep renewing it; called by `hold_lock`.

        Raises:
            AnotherRunError: another run holds it and is alive.
            LedgerError: the ledger cannot be used.
        """
        watched: RunLockRow | None = None
        watched_since = 0.0
        dead: RunLockRow | None = None
        while True:
            requested_at = _clock()
            present = self._ledger.acquire_lock(
                flow=self.flow,
                run_id=self.run_id,
                holder=self.holder,
                lease_seconds=self.lease_seconds,
                instead_of=dead,
            )
            if is_held_by(present, self.run_id, self.holder):
                break
            if watched is None:
                watched, watched_since = present, requested_at
                _log.info("flow %s: waiting for the lock of run %s, held by %s.", *_identity(present))
            elif present != watched:
                raise _locked_error(present)
            holder = LockHolder.parse(present.holder)
            # By the local clock as well: the database's may have been set back meanwhile.
            silent = _clock() - watched_since >= present.lease_seconds
            dead = present if silent or (holder is not None and holder.known_dead) else None
            if dead is None:
                time.sleep(min(present.lease_seconds / _LOOKS_PER_LEASE, _LONGEST_LOOK_SECONDS))
        if watched is not None:
            _log.info("flow %s: acquired the lock of run %s, held by %s.", *_identity(watched))
        self._renewed = requested_at
        self._thread.start()

    def release(self) -> None:
        """Release the lock; called by `hold_lock`. A ledger that does not respond is logged: the lease will expire."""
        self._ended.set()
        # A renewal in progress then finds nothing to renew.
        self._thread.join(min(self.lease_seconds, _LONGEST_JOIN_SECONDS))
        try:
            self._ledger.release_lock(flow=self.flow, run_id=self.run_id, holder=self.holder)
        except LedgerError as error:
            _log.warning("flow %s: the run lock was not released; its lease will expire: %s", self.flow, error)

    def _keep(self) -> None:
        pause = self.lease_seconds / _RENEWALS_PER_LEASE
        while not self._ended.wait(pause) and self.lost_error is None:
            requested_at = _clock()
            try:
                renewed = self._ledger.renew_lock(flow=self.flow, run_id=self.run_id, holder=self.holder)
                present = None if renewed else self._ledger.lock_holder(self.flow)
            except LedgerError as error:
                if self._silence is None:
                    _log.warning("flow %s: the run lock was not renewed yet: %s", self.flow, error)
                with self._guard:
                    self._silence = error
                pause = self.lease_seconds / _LOOKS_PER_LEASE
                continue
            pause = self.lease_seconds / _RENEWALS_PER_LEASE
            with self._guard:
                self._silence = None
                if not renewed:
                    self._lost = self._lost or self._taken_error(present)
                elif _clock() - self._renewed < self.lease_seconds:
                    # A late response shows that no other run took the lock, but this run may have stopped already.
                    self._renewed = requested_at
        if not self._ended.is_set():
            _log.error("%s", self.lost_error)

    def _taken_error(self, present: RunLockRow | None) -> RunLockedError:
        if present is None:
            what = f"the lock of run {self.run_id} was taken away."
        else:
            what = (
                f"run {present.run_id} ({shown_holder(present.holder)}) took over the lock of run {self.run_id} at "
                f"{_time(present.acquired_at)}."
            )
        return RunLockedError(what, where=Where(flow=self.flow), action="No action needed: the next run continues.")

    def _not_renewed(self) -> RunLockedError:
        why = "the ledger did not respond." if self._silence is None else self._silence.what
        return RunLockedError(
            f"run {self.run_id} could not renew its lock for {self.lease_seconds:g} s: {why}",
            where=Where(flow=self.flow),
            action=(self._silence.action if self._silence else "") or "Check that the ledger's database runs.",
        )


@contextmanager
def hold_lock(
    ledger: Ledger,
    *,
    flow: str,
    run_id: str,
    lease_seconds: float,
    wait_seconds: float = 0.0,
    waiting: Callable[[RunLockedError], None] = lambda _: None,
) -> Iterator[RunLease]:
    """Hold a flow's run lock; wait for a holder that does not renew it until its lease expires.

    A holder on this host whose process is dead is succeeded at once. The lock is renewed in the background; code under
    the lock calls `RunLease.check` before it writes.

    Args:
        ledger: ledger with existing tables.
        flow: as configured.
        run_id: the run that will hold the lock.
        lease_seconds: time until the lock expires without renewal.
        wait_seconds: how long to wait for a live holder.
        waiting: called each time that the holder is found alive.

    Raises:
        AnotherRunError: another run holds the lock and is alive.
        LedgerError: the ledger cannot be used.
    """
    deadline = _clock() + wait_seconds
    while True:
        lease = RunLease(ledger, flow=flow, run_id=run_id, lease_seconds=lease_seconds)
        try:
            lease.acquire()
            break
        except RunLockedError as error:
            if _clock() >= deadline:
                raise
            waiting(error)
    try:
        yield lease
    finally:
        lease.release()


def _locked_error(row: RunLockRow) -> AnotherRunError:
    return AnotherRunError(
        f"run {row.run_id} is active since {_time(row.acquired_at)}: {shown_holder(row.holder)} renewed its lock at "
        f"{_time(row.renewed_at)}.",
        where=Where(flow=row.flow),
        action="Wait for it to end, or stop it.",
    )


def _identity(row: RunLockRow) -> tuple[str, str, str]:
    return row.flow, row.run_id, shown_holder(row.holder)


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _clock() -> float:
    """Monotonic seconds that, on Linux, include suspend."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
