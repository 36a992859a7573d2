"""Work in a process of its own, and how much memory it takes there."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEBIBYTE = 1 << 20
_KIBIBYTE = 1 << 10


@dataclass(frozen=True)
class Measured:
    """What a process has made, and the most that it held at any time beside what its modules take."""

    result: Any
    grown: int


def measured(work: Callable[..., Any], *arguments: Any) -> Measured:
    """Run a function in a new process.

    Args:
        work: of a module that the process imports; what it imports itself counts as held.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_measured, work, arguments).result()


def _measured(work: Callable[..., Any], arguments: tuple[Any, ...]) -> Measured:
    before = _most_held()
    result = work(*arguments)
    return Measured(result, _most_held() - before)


def _most_held() -> int:
    # Of this process alone: what `getrusage` says begins with the parent's.
    lines = Path("/proc/self/status").read_text().splitlines()
    (most,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(most) * _KIBIBYTE
