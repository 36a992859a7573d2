"""The rows of detached drivers."""

from __future__ import annotations

from mirror_lib.features.warm_spark.tables import DetachedDrivers, DriverRow, DriverState
from mirror_lib.ledger.store import Ledger


def begin(ledger: Ledger, id: str, *, flow: str = "A->B", lease_seconds: float = 60.0) -> DriverRow:
    return DetachedDrivers(ledger).begin(
        id=id, flow=flow, trigger="dag/run", request="--flow", host="h", folder="/f", lease_seconds=lease_seconds
    )


def test_a_driver_runs_until_its_end_is_recorded(ledger: Ledger) -> None:
    row = begin(ledger, "d")

    assert DetachedDrivers(ledger).find("d") == DetachedDrivers(ledger).running("A->B") == row
    assert DetachedDrivers(ledger).states(["d", "unknown"]) == {"d": DriverState.RUNNING}
    assert not DetachedDrivers(ledger).renew("d")

    DetachedDrivers(ledger).end("d", exit_code=3, report={"exit_code": 3})
    DetachedDrivers(ledger).end("d", exit_code=1, report=None)

    found = DetachedDrivers(ledger).find("d")
    assert found is not None
    assert (found.exit_code, found.report) == (3, {"exit_code": 3})
    assert found.ended_at is not None
    assert DetachedDrivers(ledger).running("A->B") is None
    assert DetachedDrivers(ledger).states(["d"]) == {"d": DriverState.ENDED}


def test_a_driver_that_does_not_renew_its_row_is_silent_and_does_not_run(ledger: Ledger) -> None:
    begin(ledger, "alive")
    begin(ledger, "dead", lease_seconds=0.0)

    states = DetachedDrivers(ledger).states(["alive", "dead"])
    assert states == {"alive": DriverState.RUNNING, "dead": DriverState.SILENT}
    running = DetachedDrivers(ledger).running("A->B")
    assert running is not None
    assert running.id == "alive"
    assert DetachedDrivers(ledger).running("B->A") is None


def test_a_cancelled_driver_is_told_with_its_next_renewal_unless_it_has_ended(ledger: Ledger) -> None:
    for name in ("running", "ended", "other"):
        begin(ledger, name)
    DetachedDrivers(ledger).end("ended", exit_code=0, report=None)

    for name, is_cancelled in (("running", True), ("ended", False)):
        assert DetachedDrivers(ledger).cancel(name) is is_cancelled
        assert DetachedDrivers(ledger).renew(name) is is_cancelled
    assert not DetachedDrivers(ledger).renew("other")
