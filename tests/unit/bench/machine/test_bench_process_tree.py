"""CPU and memory of a process with its descendants, from outside."""

import os
import subprocess
import sys

from tools.bench.machine.process_tree import ProcessTree, peak_memory, reset_peak_memory, resident_memory

#: Uses some CPU in a child that ends, tells what the kernel counts for both, and waits.
_PARENT = """
import os, subprocess, sys
subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.3: pass"])
print(sum(os.times()[:4]), flush=True)
sys.stdin.read()
"""
#: Times are told in ticks, rounded down, for four kinds of time.
_ROUNDING = 4 / os.sysconf("SC_CLK_TCK")
_MEGABYTE = 1024 * 1024


def test_cpu_of_children_that_ended_is_counted() -> None:
    with subprocess.Popen([sys.executable, "-c", _PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        told = float(parent.stdout.readline())

        used = ProcessTree(parent.pid).cpu_seconds()

        parent.communicate()
    assert told > 0.3 - _ROUNDING
    assert abs(used - told) <= _ROUNDING


def test_a_peak_is_forgotten_when_reset() -> None:
    pid = os.getpid()
    block = bytearray(os.urandom(_MEGABYTE)) * 64
    with_block = peak_memory(pid)
    del block

    reset_peak_memory(pid)

    assert peak_memory(pid) < with_block - 32 * _MEGABYTE
    assert 0 < resident_memory(pid) <= peak_memory(pid) + _MEGABYTE
