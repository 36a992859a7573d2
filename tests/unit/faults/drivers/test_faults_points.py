"""Where a driver kills itself: the points lie between the steps of the commit protocol."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pytest

from mirror_lib.cluster.topics.position_format import Position, PositionState
from mirror_lib.cluster.topics.position_store import PositionStore
from mirror_lib.ledger.store import Ledger
from tools.faults.drivers.fault_points import FaultPoint, FaultPoints

_OPEN = Position("orders", 0, 9, target_offset=10, state=PositionState.OPEN)
_CLOSED = Position("orders", 0, 19, target_offset=20, state=PositionState.CLOSED)


class Crash(BaseException):
    """Stands for the end of the process."""


class Steps:
    """What a run did before it ended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []

        def write(store: PositionStore, positions: Iterable[Position]) -> tuple[()]:
            self.done.append(f"positions {' '.join(str(position.state) for position in positions)}")
            return ()

        def finish_run(ledger: Ledger, run_id: str, **_: Any) -> None:
            self.done.append("end")

        monkeypatch.setattr(PositionStore, "write", write)
        write.__name__ = "write"
        monkeypatch.setattr(Ledger, "finish_run", finish_run)
        self._store, self._ledger = object.__new__(PositionStore), object.__new__(Ledger)

    def run(self) -> None:
        """The steps of a run that concern the points."""
        self._store.write([_OPEN])
        self.done.append("data")
        self._store.write(iter([_CLOSED]))
        self.done.append("ledger")
        self._ledger.finish_run("run-1", state="succeeded")


@pytest.mark.parametrize(
    ("point", "done"),
    [
        (FaultPoint.AFTER_OPEN, ["positions open"]),
        (FaultPoint.BEFORE_POSITIONS, ["positions open", "data"]),
        (FaultPoint.AFTER_POSITIONS, ["positions open", "data", "positions closed"]),
        (FaultPoint.BEFORE_END, ["positions open", "data", "positions closed", "ledger"]),
        (None, ["positions open", "data", "positions closed", "ledger", "end"]),
    ],
)
def test_a_driver_dies_at_its_point_and_goes_through_without_one(
    point: FaultPoint | None, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash() -> None:
        raise Crash

    steps, points = Steps(monkeypatch), FaultPoints(crash)
    uninstall = points.install()
    points.armed = point

    with suppress(Crash):
        steps.run()

    uninstall()
    assert steps.done == done
