"""Whether the machine has anything else to do is seen in what it does now, not in what it did a minute ago."""

from __future__ import annotations

import subprocess
import sys

from bench.machine.description import describe


def test_a_process_that_keeps_a_core_busy_makes_the_machine_busy() -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        machine = describe(java="17", kafka="4.3.1")
    finally:
        busy.kill()
        busy.wait()

    assert machine.busy
    assert f"cores busy before {machine.busy_cores:.2f}" in machine.line()
