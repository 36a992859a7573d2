"""The run lock under contention, deaths and a ledger that fails: never two holders, and nobody waits for the dead.

Names of lock holders: what can be read back, and which processes are known to be gone (proc_pid_stat(5)).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from mirror_lib.copy.run_lock import LockHolder, RunLease, hold_lock, shown_holder
from mirror_lib.errors import RunLockedError
from mirror_lib.ledger import database as database_module
from mirror_lib.ledger.store import Ledger
from tests.support.ledger.ledgers import ready_ledger
from tests.support.ledger.postgres import postgres_server

FLOW = "a->b"
#: Long enough for a process that has a core to itself only now and then.
LEASE = 3.0
LONG = 600.0
_spawn = multiprocessing.get_context("spawn")


@pytest.fixture(scope="module")
def postgres_url() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.integration)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A ledger with its tables and without locks."""
    url = f"sqlite:///{tmp_path}/ledger.sqlite3"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
    with ready_ledger(url) as ledger, ledger.database.write() as connection:
        connection.execute(text("DELETE FROM run_lock"))
    return url


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with Ledger.open(url) as ledger:
        yield ledger


@pytest.fixture
def sqlite_ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ready_ledger(f"sqlite:///{tmp_path}/one.sqlite3") as ledger:
        yield ledger


def wait_until_lost(lease: RunLease) -> RunLockedError:
    while (lost := lease.lost_error) is None:
        time.sleep(0.01)
    return lost


def take_over(ledger: Ledger, lease_seconds: float) -> None:
    """Run r2 gets the lock, and others see it."""
    with hold_lock(ledger, flow=FLOW, run_id="r2", lease_seconds=lease_seconds):
        held = ledger.lock_holder(FLOW)

    assert held.run_id == "r2"


def test_given_a_free_lock_when_held_then_others_see_it_and_at_the_end_it_is_free(ledger: Ledger) -> None:
    with hold_lock(ledger, flow=FLOW, run_id="r1", lease_seconds=LEASE) as lease:
        lease.check()
        held = ledger.lock_holder(FLOW)

    assert (held.run_id, held.holder, held.lease_seconds) == ("r1", lease.holder, LEASE)
    assert lease.lost_error is None
    assert ledger.lock_holder(FLOW) is None


def test_given_a_holder_that_lives_when_another_run_wants_the_lock_then_it_is_refused_with_all_it_must_know(
    ledger: Ledger,
) -> None:
    with hold_lock(ledger, flow=FLOW, run_id="r1", lease_seconds=LEASE) as lease:
        with (
            pytest.raises(RunLockedError, match="r1") as caught,
            hold_lock(ledger, flow=FLOW, run_id="r2", lease_seconds=LEASE),
        ):
            pass
        lease.check()
        held = ledger.lock_holder(FLOW)

    assert held.run_id == "r1"
    assert caught.value.where.flow == FLOW
    assert f"process {os.getpid()} on " in caught.value.what
    assert f"since {held.acquired_at:%Y-%m-%dT%H:%M:%SZ}" in caught.value.what
    assert "stop it" in caught.value.action
    assert caught.value.retriable
    assert caught.value.attributes()["holder_lives"]


def test_given_a_holder_that_does_not_renew_when_its_lease_ends_then_it_is_succeeded(ledger: Ledger) -> None:
    """Its process cannot be seen from here, so nothing but its silence tells."""
    ledger.acquire_lock(flow=FLOW, run_id="r1", holder="process 1 on elsewhere, lease x", lease_seconds=0.5)

    take_over(ledger, LEASE)


def test_given_a_release_while_another_run_waits_then_that_one_has_the_lock(sqlite_ledger: Ledger) -> None:
    waits = threading.Event()
    took: list[str] = []
    held = sqlite_ledger.acquire_lock(flow=FLOW, run_id="r1", holder="unknown", lease_seconds=LONG)

    def second() -> None:
        waits.set()
        with hold_lock(sqlite_ledger, flow=FLOW, run_id="r2", lease_seconds=LONG) as lease:
            took.append(lease.run_id)

    thread = threading.Thread(target=second)
    thread.start()
    waits.wait()
    sqlite_ledger.release_lock(flow=FLOW, run_id="r1", holder=held.holder)
    thread.join()

    assert took == ["r2"]


def _hold_until_killed(url: str, told: Connection) -> None:
    with Ledger.open(url) as ledger, hold_lock(ledger, flow=FLOW, run_id="r1", lease_seconds=LONG):
        told.send("held")
        signal.pause()


@pytest.mark.integration
def test_given_a_holder_on_this_host_that_was_killed_then_nobody_waits_for_its_lease(url: str, ledger: Ledger) -> None:
    told, tell = _spawn.Pipe(duplex=False)
    process = _spawn.Process(target=_hold_until_killed, args=(url, tell))
    process.start()
    assert told.recv() == "held"
    process.kill()
    process.join()

    take_over(ledger, LONG)


def _hold_and_tell(url: str, told: Connection) -> None:
    with Ledger.open(url) as ledger, hold_lock(ledger, flow=FLOW, run_id="r1", lease_seconds=1.0) as lease:
        told.send("held")
        told.recv()
        told.send(str(lease.lost_error))


@pytest.mark.integration
def test_given_a_holder_that_slept_longer_than_its_lease_when_it_wakes_then_it_knows_at_once(
    url: str, ledger: Ledger
) -> None:
    pipe, theirs = _spawn.Pipe()
    process = _spawn.Process(target=_hold_and_tell, args=(url, theirs))
    process.start()
    assert pipe.recv() == "held"
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)

    with hold_lock(ledger, flow=FLOW, run_id="r2", lease_seconds=LEASE) as lease:
        os.kill(process.pid, signal.SIGCONT)
        pipe.send("are you well?")
        answer = pipe.recv()
        process.join()
        lease.check()
        held = ledger.lock_holder(FLOW)

    assert "run r1 could not renew its lock for 1 s" in answer or "run r2" in answer
    assert held.run_id == "r2"


def test_given_a_lock_that_another_took_when_it_is_renewed_then_it_is_lost_and_stays_with_the_other(
    ledger: Ledger,
) -> None:
    with hold_lock(ledger, flow=FLOW, run_id="r1", lease_seconds=LEASE) as lease:
        taken = ledger.acquire_lock(
            flow=FLOW, run_id="r2", holder="other", lease_seconds=LONG, instead_of=ledger.lock_holder(FLOW)
        )
        lost = wait_until_lost(lease)

        with pytest.raises(RunLockedError):
            lease.check()

    assert taken.run_id == "r2"
    assert "run r2 (other) took over the lock of run r1" in lost.what
    assert "holder_lives" not in lost.attributes()
    assert ledger.lock_holder(FLOW) == taken


def test_given_a_ledger_that_fails_for_a_whole_lease_then_the_lock_is_lost_with_its_words(
    sqlite_ledger: Ledger,
) -> None:
    with hold_lock(sqlite_ledger, flow=FLOW, run_id="r1", lease_seconds=1.0) as lease:
        with sqlite_ledger.database.write() as connection:
            connection.execute(text("ALTER TABLE run_lock RENAME TO away"))

        lost = wait_until_lost(lease)

    assert "run r1 could not renew its lock for 1 s: " in lost.what
    assert "no such table: run_lock" in lost.what
    assert lost.action


def test_given_a_ledger_that_does_not_answer_at_all_then_the_lock_is_lost_all_the_same(
    sqlite_ledger: Ledger,
) -> None:
    """A writer waits for another one much longer than this lease lasts."""
    assert database_module.BUSY_SECONDS > 1.0
    with (
        hold_lock(sqlite_ledger, flow=FLOW, run_id="r1", lease_seconds=1.0) as lease,
        sqlite_ledger.database.write() as connection,
    ):
        connection.execute(text("DELETE FROM run"))
        lost = wait_until_lost(lease)

    assert "the ledger did not respond" in lost.what


@pytest.mark.integration
def test_given_a_shorter_outage_then_it_is_logged_and_the_lock_is_kept(
    sqlite_ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    with hold_lock(sqlite_ledger, flow=FLOW, run_id="r1", lease_seconds=9.0) as lease:
        with sqlite_ledger.database.write() as connection:
            connection.execute(text("ALTER TABLE run_lock RENAME TO away"))
        while "was not renewed yet" not in caplog.text:
            time.sleep(0.01)
        with sqlite_ledger.database.write() as connection:
            connection.execute(text("ALTER TABLE away RENAME TO run_lock"))
        before = sqlite_ledger.lock_holder(FLOW)
        while sqlite_ledger.lock_holder(FLOW) == before:
            time.sleep(0.01)

        lease.check()

    assert caplog.text.count("was not renewed yet") == 1


_names = st.from_regex(r"[!-~]{1,40}", fullmatch=True)


@given(_names, st.integers(min_value=0), _names)
def test_a_name_can_be_read_back(host: str, pid: int, lease: str) -> None:
    holder = LockHolder(host, pid, lease)

    assert LockHolder.parse(str(holder)) == holder


def test_our_own_name_can_be_read_back_is_alive_and_another_one_for_each_lease() -> None:
    holder = LockHolder.here()

    assert LockHolder.parse(str(holder)) == holder
    assert not holder.known_dead
    assert str(LockHolder.here()) != str(LockHolder.here())


@given(st.text())
def test_any_other_text_is_no_holder_and_shown_as_it_is(text: str) -> None:
    assert LockHolder.parse(text) is None
    assert shown_holder(text) == text


def test_people_see_the_process_and_its_host_only() -> None:
    holder = replace(LockHolder.here(), host="worker-1", pid=4711)

    assert shown_holder(str(holder)) == "process 4711 on worker-1"


def wait_until_dead(holder: LockHolder) -> None:
    while not holder.known_dead:
        time.sleep(0.01)


def test_a_process_that_ended_is_known_dead_also_before_its_parent_has_noticed() -> None:
    program = "from mirror_lib.copy.run_lock import LockHolder; print(LockHolder.here(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        holder = LockHolder.parse(process.stdout.readline().strip())
        assert not holder.known_dead

        process.kill()
        # A zombie from here on, until the block's end.
        wait_until_dead(holder)
    wait_until_dead(holder)


def test_a_number_of_another_process_is_known_dead_and_one_of_another_machine_or_container_never() -> None:
    here = LockHolder.here()
    assert here.birth is not None
    gone = replace(here, birth=here.birth._replace(start_ticks=1))

    assert gone.known_dead
    assert replace(here, birth=here.birth._replace(start_ticks=here.birth.start_ticks - 1)).known_dead
    assert not replace(gone, birth=here.birth._replace(start_ticks=1, boot="other")).known_dead
    assert not replace(gone, birth=here.birth._replace(start_ticks=1, namespace="pid:[1]")).known_dead
    assert not replace(gone, birth=None).known_dead
