"""The rows of detached drivers."""

from __future__ import annotations

import pytest

from mirror_lib.features.warm_spark.tables import DetachedDrivers, DriverRow, DriverState
from mirror_lib.ledger.store import Ledger


@pytest.fixture
def drivers(ledger: Ledger) -> DetachedDrivers:
    return DetachedDrivers(ledger)


def begin(drivers: DetachedDrivers, id: str, *, lease_seconds: float = 60.0) -> DriverRow:
    settings = {"trigger": "dag/run", "request": "--flow", "host": "h", "folder": "/f"}
    return drivers.begin(id=id, flow="A->B", lease_seconds=lease_seconds, **settings)


def test_a_driver_runs_until_its_end_is_recorded(drivers: DetachedDrivers) -> None:
    assert begin(drivers, "d") == drivers.find("d") == drivers.running("A->B")
    assert drivers.states(["d", "unknown"]) == {"d": DriverState.RUNNING}
    assert not drivers.renew("d")

    drivers.end("d", exit_code=3, report={"exit_code": 3})
    drivers.end("d", exit_code=1, report=None)

    found = drivers.find("d")
    assert (found.exit_code, found.report, found.ended_at is None) == (3, {"exit_code": 3}, False)
    assert drivers.running("A->B") is None
    assert drivers.states(["d"]) == {"d": DriverState.ENDED}


def test_a_driver_that_does_not_renew_its_row_is_silent_and_does_not_run(drivers: DetachedDrivers) -> None:
    alive = begin(drivers, "alive")
    begin(drivers, "dead", lease_seconds=0.0)

    assert drivers.states(["alive", "dead"]) == {"alive": DriverState.RUNNING, "dead": DriverState.SILENT}
    assert (drivers.running("A->B"), drivers.running("B->A")) == (alive, None)


def test_a_cancelled_driver_is_told_with_its_next_renewal_unless_it_has_ended(drivers: DetachedDrivers) -> None:
    for name in ("running", "ended", "other"):
        begin(drivers, name)
    drivers.end("ended", exit_code=0, report=None)

    for name, is_cancelled in (("running", True), ("ended", False)):
        assert drivers.cancel(name) is is_cancelled
        assert drivers.renew(name) is is_cancelled
    assert not drivers.renew("other")
