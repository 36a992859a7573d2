"""Names of lock holders: what can be read back, and which processes are known to be gone (proc_pid_stat(5))."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.copy.run_lock import LockHolder, shown_holder

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
