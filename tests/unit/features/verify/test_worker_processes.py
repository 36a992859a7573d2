"""Processes that share the work of one command, and the end of it."""

from __future__ import annotations

import multiprocessing
import time

import pytest

from mirror_lib.features.verify.worker_processes import worker_processes


def interrupted() -> None:
    """Work that is interrupted while it runs."""
    with worker_processes(2) as pool:
        # Longer than any test may take.
        running = [pool.submit(time.sleep, 3_600) for _ in range(2)]
        while not all(each.running() for each in running):
            time.sleep(0.01)
        raise KeyboardInterrupt


def test_given_an_interruption_then_nobody_waits_for_what_is_running() -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert multiprocessing.active_children() == []
