"""Points where a driver can kill itself: between the steps of the commit protocol, too short to hit from outside.

The production code is not aware of it: methods that mark the steps are wrapped in the campaign's own driver process.
"""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any

from mirror_lib.cluster.topics.position_format import Position, PositionState
from mirror_lib.cluster.topics.position_store import PositionStore
from mirror_lib.ledger.store import Ledger


class FaultPoint(StrEnum):
    """A moment of a run."""

    #: The partitions are claimed, and nothing has been copied.
    AFTER_OPEN = "after-open"
    #: All data is on the target, and the closed positions are not stored.
    BEFORE_POSITIONS = "before-positions"
    #: The closed positions are stored, and the ledger has no record of them.
    AFTER_POSITIONS = "after-positions"
    #: The ledger has what was copied, and not the end of the run.
    BEFORE_END = "before-end"


class FaultPoints:
    """The points of this process; at most one is armed, and reaching it kills the process, like a crash."""

    def __init__(self, crash: Callable[[], None] | None = None) -> None:
        self.armed: FaultPoint | None = None
        self._crash = crash or _kill_self

    def install(self) -> Callable[[], None]:
        """Wrap the methods that mark the points; return a function that restores them."""
        write, finish_run = PositionStore.write, Ledger.finish_run

        @functools.wraps(write)
        def guarded_write(store: PositionStore, positions: Iterable[Position], *args: Any, **kwargs: Any) -> Any:
            listed = list(positions)
            states = {position.state for position in listed}
            if PositionState.CLOSED in states:
                self._reach(FaultPoint.BEFORE_POSITIONS)
            written = write(store, listed, *args, **kwargs)
            if PositionState.CLOSED in states:
                self._reach(FaultPoint.AFTER_POSITIONS)
            elif states:
                self._reach(FaultPoint.AFTER_OPEN)
            return written

        @functools.wraps(finish_run)
        def guarded_finish_run(ledger: Ledger, *args: Any, **kwargs: Any) -> None:
            self._reach(FaultPoint.BEFORE_END)
            finish_run(ledger, *args, **kwargs)

        _put(guarded_write, guarded_finish_run)
        return lambda: _put(write, finish_run)

    def _reach(self, point: FaultPoint) -> None:
        if self.armed is point:
            self._crash()


def _put(write: Callable[..., Any], finish_run: Callable[..., Any]) -> None:
    # setattr, because mypy forbids assigning to methods.
    for owner, method in ((PositionStore, write), (Ledger, finish_run)):
        setattr(owner, method.__name__, method)


def _kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
