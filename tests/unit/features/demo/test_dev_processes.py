"""Background processes: found again, never mistaken, and ended with all they started."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from mirror_lib.features.demo import background_process as processes
from mirror_lib.features.demo.background_process import BackgroundProcess, recall, start
from mirror_lib.private_files import write_atomically
from mirror_lib.processes import parse_stat, process_facts, session_members
from tests.support.waiting import wait_for

# proc_pid_stat(5): 52 fields; utime is the 14th, stime the 15th, starttime the 22nd.
STAT = "4711 ((a) b)) S 1 4700 4699 0 -1 4194560 1 2 3 4 150 50 6 7 20 0 12 0 987654 1000 200 " + "0 " * 28


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "child.log"


def shell(script: str, log: Path, **more: Path) -> BackgroundProcess:
    return start(["/bin/sh", "-c", script], log=log, **more)


def test_stat_is_read_also_when_the_name_holds_brackets_and_blanks() -> None:
    facts = parse_stat(STAT)

    assert (facts.pid, facts.state, facts.session) == (4711, "S", 4699)
    assert (facts.user_ticks, facts.system_ticks, facts.threads, facts.start_ticks) == (150, 50, 12, 987654)


def test_a_zombie_lives_as_long_as_one_of_its_threads() -> None:
    zombie = replace(parse_stat(STAT), state="Z")

    assert zombie.is_alive
    assert not replace(zombie, threads=1).is_alive


def test_given_a_child_that_started_others_when_stopped_then_all_of_them_end(log: Path) -> None:
    child = shell("sleep 30 & sleep 30 & wait", log)
    wait_for(lambda: len(session_members(child.pid)) == 3)

    child.stop(grace_seconds=5)

    assert session_members(child.pid) == ()
    assert process_facts(child.pid) is None, "a zombie is left"


def test_given_a_child_that_ignores_the_signal_when_stopped_then_it_is_killed_after_the_grace(log: Path) -> None:
    child = shell("trap '' TERM; echo ready; while :; do sleep 0.2; done", log)
    wait_for(lambda: child.log_tail() == "ready")

    began = time.monotonic()
    child.stop(grace_seconds=0.3)

    assert not child.is_running
    assert time.monotonic() - began >= 0.3


def test_given_a_leader_that_has_gone_when_stopped_then_what_it_left_ends_too(log: Path) -> None:
    child = shell("sleep 30 &", log)
    assert child.wait(10)
    assert session_members(child.pid) != ()

    child.stop(grace_seconds=5)

    assert session_members(child.pid) == ()


def test_a_process_is_found_again_by_its_pid_file(log: Path, tmp_path: Path) -> None:
    child = shell("exec sleep 30", log, pid_file=tmp_path / "run" / "child.pid")
    try:
        found = recall(tmp_path / "run" / "child.pid")
        assert found == child
        assert found.is_running
    finally:
        child.kill()
    assert not child.is_running


def test_a_pid_file_that_cannot_be_read_remembers_nothing(tmp_path: Path) -> None:
    assert recall(tmp_path / "missing") is None
    for text in ("", "nonsense", "{}", '{"pid": 1}'):
        (tmp_path / "pid").write_text(text)
        assert recall(tmp_path / "pid") is None, text


def test_a_stranger_with_the_same_number_is_neither_running_nor_stopped(log: Path) -> None:
    child = shell("exec sleep 30", log)
    try:
        for stranger in (replace(child, start_ticks=1), replace(child, boot_id="another")):
            assert not stranger.is_running
            assert stranger.cpu_seconds == 0
            stranger.stop()
            stranger.kill()
            assert child.is_running
    finally:
        child.kill()


def test_given_an_interrupt_while_a_child_is_remembered_when_started_then_it_is_not_left_running(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid_file = tmp_path / "child.pid"
    born: list[BackgroundProcess] = []

    def interrupted(path: Path, text: str) -> None:
        born.append(BackgroundProcess(**json.loads(text)))
        write_atomically(path, text)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(processes, "write_atomically", interrupted)
    with pytest.raises(KeyboardInterrupt):
        shell("exec sleep 30", log, pid_file=pid_file)

    assert len(born) == 1
    assert not born[0].is_running
    assert not pid_file.exists()
