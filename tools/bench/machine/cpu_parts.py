"""CPU of the parts of a Spark session on this machine: its driver, the JVM and the Python workers."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from tools.bench.machine.process_tree import GONE, ProcessTree, is_daemon

DRIVER, JVM, WORKERS = "driver", "JVM", "Python workers"
Parts = Mapping[str, float]


def cpu_parts(tree: ProcessTree) -> Parts:
    """Return user and system seconds of each part so far."""
    used = dict.fromkeys((DRIVER, JVM, WORKERS), 0.0)
    for process in tree.members():
        with contextlib.suppress(*GONE):
            times = process.cpu_times()
            own = times.user + times.system
            if is_daemon(process):
                # Workers that have ended are included in the times of the daemon that forked them.
                used[WORKERS] += own + times.children_user + times.children_system
            else:
                used[JVM if process.name() == "java" else DRIVER] += own
    return used


def since(before: Parts, after: Parts) -> dict[str, float]:
    """Return the CPU between two measurements; after the end of a process, that of a part may appear as zero."""
    return {name: max(after[name] - before.get(name, 0.0), 0.0) for name in after}
