"""The share of JVM compilers in the brokers' CPU, which occurs once in a broker's life.

A broker that has served a few copies is still being compiled: its compilers use a third of the CPU of the second copy,
and occasionally a tenth of that of the twentieth. On a machine with few cores the copier lacks this CPU. The halves of
the limit are hardly affected: they send the same few requests by the thousand, which are compiled first.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

#: HotSpot's names of its compiler threads, cut as Linux does.
_COMPILERS = ("C1 CompilerThre", "C2 CompilerThre")
#: Of the fields after the name in /proc/PID/stat (proc(5)): user and system time, in ticks.
_TIMES = slice(11, 13)
#: Maximum average share of compilers in the brokers' CPU, and over how many copies: single copies have a small share
#: long before all have.
_QUIET_SHARE, _QUIET_COPIES = 0.02, 10


@dataclass(frozen=True, slots=True)
class BrokerWork:
    """CPU seconds of brokers so far, and those of their compilers."""

    seconds: float
    compiling: float

    def compiled_since(self, before: BrokerWork) -> float:
        """Return the share of compilers in the CPU since an earlier measurement."""
        used = self.seconds - before.seconds
        # When compiler threads end, their times disappear.
        return max(self.compiling - before.compiling, 0.0) / used if used > 0 else 0.0


def broker_work(processes: Iterable[int], *, proc: Path = Path("/proc")) -> BrokerWork:
    """Measure the threads of some JVMs.

    Args:
        processes: their process ids.
        proc: the proc file system.
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
    """Decides when brokers are warm: when their compilers had little to do in the latest copies."""

    def __init__(self) -> None:
        self._latest: deque[float] = deque(maxlen=_QUIET_COPIES)

    def copied(self, compiled: float) -> None:
        """Add the share of compilers in the brokers' CPU of a copy."""
        self._latest.append(compiled)

    @property
    def share(self) -> float:
        """The share of compilers in the latest copies, 1 before there were any."""
        return fmean(self._latest) if self._latest else 1.0

    @property
    def done(self) -> bool:
        """True if the brokers are warm."""
        return len(self._latest) == _QUIET_COPIES and self.share <= _QUIET_SHARE
