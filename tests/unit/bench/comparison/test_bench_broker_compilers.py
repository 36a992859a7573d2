"""Brokers count as warm when the compilers of their JVMs have little left to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.comparison.broker_compilers import BrokerWork, WarmUp, broker_work

SECOND = os.sysconf("SC_CLK_TCK")


def thread(proc: Path, process: int, number: int, name: str, *, user: int, system: int) -> None:
    folder = proc / str(process) / "task" / str(number)
    folder.mkdir(parents=True)
    before = "S 1 2 3 4 5 6 7 8 9 10"
    (folder / "stat").write_text(f"{number} ({name}) {before} {user} {system} 0 0 20 0 30 0 100\n")


def test_the_time_of_all_threads_is_work_and_that_of_compilers_is_compiling(tmp_path: Path) -> None:
    thread(tmp_path, 7, 1, "java", user=SECOND, system=SECOND)
    thread(tmp_path, 7, 2, "C2 CompilerThre", user=3 * SECOND, system=0)
    thread(tmp_path, 8, 3, "C1 CompilerThre", user=0, system=SECOND)
    thread(tmp_path, 8, 4, "data-plane (1) x", user=2 * SECOND, system=0)
    # A thread that has just ended.
    (tmp_path / "7" / "task" / "5").mkdir()

    work = broker_work([7, 8], proc=tmp_path)

    assert work == BrokerWork(seconds=8.0, compiling=4.0)
    assert work.compiled_since(BrokerWork(4.0, 3.0)) == 0.25
    # A compiler has ended, and no work at all.
    assert work.compiled_since(BrokerWork(4.0, 5.0)) == 0.0
    assert work.compiled_since(work) == 0.0


def test_brokers_are_warm_when_ten_copies_were_quiet_on_average() -> None:
    warm_up = WarmUp()
    assert (warm_up.share, warm_up.done) == (1.0, False)
    # Single quiet copies come early, and say little.
    for compiled in (0.4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.01, 0.0, 0.03, 0.08):
        warm_up.copied(compiled)
        assert not warm_up.done

    for _ in range(6):
        warm_up.copied(0.0)
    assert warm_up.share == pytest.approx(0.012)
    assert warm_up.done
