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

    assert broker_work([7, 8], proc=tmp_path) == BrokerWork(seconds=8.0, compiling=4.0)


def test_a_thread_that_has_just_ended_counts_no_more(tmp_path: Path) -> None:
    thread(tmp_path, 7, 1, "java", user=SECOND, system=0)
    (tmp_path / "7" / "task" / "2").mkdir()

    assert broker_work([7], proc=tmp_path) == BrokerWork(seconds=1.0, compiling=0.0)


def test_this_process_has_worked() -> None:
    assert broker_work([os.getpid()]).seconds > 0


@pytest.mark.parametrize(
    ("before", "after", "part"),
    [
        (BrokerWork(10.0, 4.0), BrokerWork(14.0, 5.0), 0.25),
        (BrokerWork(10.0, 4.0), BrokerWork(14.0, 3.0), 0.0),
        (BrokerWork(10.0, 4.0), BrokerWork(10.0, 4.0), 0.0),
    ],
    ids=["some", "a compiler has ended", "no work at all"],
)
def test_compiling_is_a_part_of_the_work_between_two_looks(before: BrokerWork, after: BrokerWork, part: float) -> None:
    assert after.compiled_since(before) == part


def test_brokers_are_warm_when_ten_copies_were_quiet_on_average() -> None:
    warm_up = WarmUp()
    # Single quiet copies come early, and say little.
    for compiled in (0.4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.01, 0.0, 0.03, 0.08):
        warm_up.copied(compiled)
        assert not warm_up.done

    for _ in range(6):
        warm_up.copied(0.0)
    assert warm_up.share == pytest.approx(0.012)
    assert warm_up.done


def test_brokers_that_did_nothing_yet_are_not_warm() -> None:
    assert (WarmUp().share, WarmUp().done) == (1.0, False)
