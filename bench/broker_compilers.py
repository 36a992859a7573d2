"""How much of the brokers' work is that of their JVMs' compilers, which is done once in a broker's life.

A broker that has served a few copies is still being compiled: its compilers take a third of the CPU of the second copy,
and a tenth now and then of the twentieth. On a machine with few cores that is taken from whoever copies.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

#: What HotSpot calls its compiler threads, as far as Linux keeps a thread's name.
_COMPILERS = ("C1 CompilerThre", "C2 CompilerThre")
#: Of the fields behind the name in /proc/PID/stat (proc(5)): user and system time, in ticks.
_TIMES = slice(11, 13)
#: Part of the brokers' CPU that their compilers may take in a copy, and in how many copies in a row.
_QUIET_SHARE, _QUIET_COPIES = 0.05, 5


@dataclass(frozen=True, slots=True)
class BrokerWork:
    """CPU seconds of brokers so far, and those of them that their compilers have used."""

    seconds: float
    compiling: float

    def compiled_since(self, before: BrokerWork) -> float:
        """Which part of the work since an earlier look was compiling."""
        used = self.seconds - before.seconds
        # Compiler threads that end take their times along.
        return max(self.compiling - before.compiling, 0.0) / used if used > 0 else 0.0


def broker_work(processes: Iterable[int], *, proc: Path = Path("/proc")) -> BrokerWork:
    """Look at the threads of some JVMs.

    Args:
        processes: their process ids.
        proc: where the kernel tells of processes.
    """
    seconds = compiling = 0.0
    for process in processes:
        for thread in (proc / str(process) / "task").iterdir():
            try:
                name, used = _thread((thread / "stat").read_text())
            except OSError:
                continue  # It has just ended.
            seconds += used
            if name in _COMPILERS:
                compiling += used
    return BrokerWork(seconds, compiling)


def _thread(stat: str) -> tuple[str, float]:
    # Names may hold spaces and parentheses.
    begin, end = stat.index("(") + 1, stat.rindex(")")
    ticks = sum(map(int, stat[end + 2 :].split()[_TIMES]))
    return stat[begin:end], ticks / os.sysconf("SC_CLK_TCK")


class WarmUp:
    """Says when brokers are warm: when their compilers had little to do in some copies in a row."""

    def __init__(self) -> None:
        self._quiet = 0

    def copied(self, compiled: float) -> None:
        """Note which part of the brokers' work in a copy was compiling."""
        self._quiet = self._quiet + 1 if compiled <= _QUIET_SHARE else 0

    @property
    def done(self) -> bool:
        """Whether the next copy is one of many to the brokers."""
        return self._quiet >= _QUIET_COPIES
