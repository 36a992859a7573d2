"""How much of the brokers' work is that of their JVMs' compilers, which is done once in a broker's life.

A broker that has served a few copies is still being compiled: its compilers take a third of the CPU of the second copy,
and a tenth now and then of the twentieth. On a machine with few cores that is taken from whoever copies. Hardly
anything of it is taken from the halves of the limit: they send the same few requests by the thousand, which are
compiled first.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

#: What HotSpot calls its compiler threads, as far as Linux keeps a thread's name.
_COMPILERS = ("C1 CompilerThre", "C2 CompilerThre")
#: Of the fields behind the name in /proc/PID/stat (proc(5)): user and system time, in ticks.
_TIMES = slice(11, 13)
#: Part of the brokers' CPU that their compilers may take on average, and of how many copies: single ones are quiet long
#: before all are.
_QUIET_SHARE, _QUIET_COPIES = 0.02, 10


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
    """Says when brokers are warm: when their compilers had little to do in the latest copies."""

    def __init__(self) -> None:
        self._latest: deque[float] = deque(maxlen=_QUIET_COPIES)

    def copied(self, compiled: float) -> None:
        """Note which part of the brokers' work in a copy was compiling."""
        self._latest.append(compiled)

    @property
    def share(self) -> float:
        """Which part of the work was compiling in the latest copies, 1 before there were any."""
        return fmean(self._latest) if self._latest else 1.0

    @property
    def done(self) -> bool:
        """Whether the next copy is one of many to the brokers."""
        return len(self._latest) == _QUIET_COPIES and self.share <= _QUIET_SHARE
