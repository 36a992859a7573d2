"""Faults of the project's own processes: killed, stopped and continued, or two in place of one."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from tools.faults.drivers.drivers import DRIVER_DIED, Driver
from tools.faults.drivers.fault_points import FaultPoint
from tools.faults.kinds.scene import Scene
from tools.faults.world import pause

#: A continued zombie sends its pending data within moments.
_AWAKE_SECONDS = 2.0


def worker_killed(scene: Scene) -> bool:
    """One of the Python workers that copy is killed; Spark fails the job and the driver lives."""
    with scene.braked():
        driver = scene.begin()
        hit = scene.wait_mid_copy(driver)
        # The run needs both, so either one is copying.
        for pid in driver.workers()[:1] if scene.rng.random() < 0.5 else driver.workers()[-1:]:
            _send([pid], signal.SIGKILL)
    scene.end(driver)
    return hit


def driver_killed(scene: Scene) -> bool:
    """The driver's process is killed, and the next run begins before the JVM and the workers have noticed."""
    with scene.braked():
        driver = scene.begin()
        hit = scene.wait_mid_copy(driver)
        scene.afterwards(lambda: scene.world.drivers.bury(driver))
        driver.kill_itself()
    scene.end(driver)
    return hit


def session_killed(scene: Scene) -> bool:
    """Driver, JVM and workers are killed at once, like a crash of their machine."""
    with scene.braked():
        driver = scene.begin()
        hit = scene.wait_mid_copy(driver)
        driver.kill()
    scene.end(driver)
    scene.world.drivers.bury(driver)
    return hit


def killed_at(point: FaultPoint, scene: Scene) -> bool:
    """The driver kills itself between two steps of the commit protocol."""
    driver = scene.begin(fault_point=point)
    end = scene.end(driver)
    scene.world.drivers.bury(driver)
    return end is DRIVER_DIED


def two_runs(scene: Scene) -> bool:
    """Two runs with the same ledger: one waits or skips."""
    return _both(scene, scene.world.configs.main)


def two_runs_unlocked(scene: Scene) -> bool:
    """Two runs with different ledgers: no lock keeps them apart, only the brokers' fencing."""
    return _both(scene, scene.world.configs.stranger)


def _both(scene: Scene, config: Path) -> bool:
    other = scene.world.drivers.reserve
    other.wait_warm()
    with scene.braked():
        driver = scene.begin()
        hit = scene.wait_mid_copy(driver) if scene.rng.random() < 0.7 else not driver.answered
        scene.run(other, config=config)
        scene.end(other)
    scene.end(driver)
    return hit


def zombie_driver(scene: Scene) -> bool:
    """Driver, JVM and workers are stopped; a successor copies everything; then they are continued."""
    with scene.braked():
        driver = scene.begin()
        hit = scene.wait_mid_copy(driver)
        driver.stop()
        # Nobody can write to SQLite while a stopped process does: its successor would wait for ever.
        while not _may_write(scene.world.configs.main_ledger):
            driver.wake()
            pause(0.1)
            driver.stop()
    _succeed(scene, driver)
    driver.wake()
    # It may continue while another run is copying.
    if scene.rng.random() < 0.5:
        scene.run(scene.driver)
    scene.end(driver)
    return hit


def _may_write(ledger: Path) -> bool:
    """Return whether nobody is writing to an SQLite database."""
    with closing(sqlite3.connect(ledger, timeout=0.5, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        connection.execute("ROLLBACK")
    return True


def zombie_worker(scene: Scene) -> bool:
    """The workers are stopped with batches in flight, and their driver dies; they continue after a successor is
    done.
    """
    with scene.braked():
        driver = scene.begin()
        hit = scene.wait_mid_copy(driver)
        workers = driver.workers()
        _send(workers, signal.SIGSTOP)
        driver.kill(spare=workers)
    scene.end(driver)
    _succeed(scene, driver)
    _send(workers, signal.SIGCONT)
    scene.keep_running_for(_AWAKE_SECONDS)
    return hit


def _succeed(scene: Scene, driver: Driver) -> None:
    """Let another driver copy everything, and wait until the target's brokers forget producers of old records."""
    scene.afterwards(lambda: scene.world.drivers.bury(driver))
    scene.world.drivers.lose(driver)
    pause(0.1)
    scene.catch_up()
    pause(scene.world.forget_seconds)


def _send(pids: tuple[int, ...] | list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
