"""Detached drivers as real processes, and what the ledger has of them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mirror_lib.copy.job.report import without_details
from mirror_lib.features.warm_spark.tables import DetachedDrivers, DriverRow
from mirror_lib.ledger.store import Ledger

_SECONDS = 60
#: Begins as `spark_jobs.entry` does for a Spark Connect server.
_DRIVER = """
import signal, sys, time
from mirror_lib.errors import ConfigurationError
from mirror_lib.ledger.store import Ledger
from mirror_lib.features.warm_spark.sign_of_life import SignOfLife

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGTERM, interrupt)
with Ledger.open(sys.argv[1]) as ledger, SignOfLife(ledger, "d") as sign_of_life:
    if sys.argv[2] == "waits":
        time.sleep(300)
    if sys.argv[2] == "refuses":
        raise ConfigurationError("no such flow.")
    sign_of_life.ended_with(0, {"exit_code": 0, "records": 7})
"""


class Driver:
    """A driver with a row in a ledger."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder}/ledger.sqlite3"
        self.ledger = Ledger.open(self.url)
        self.ledger.migrate()
        DetachedDrivers(self.ledger).begin(
            id="d", flow="A->B", trigger="t", request="", host="h", folder="/f", lease_seconds=_SECONDS
        )

    def run(self, what: str) -> DriverRow:
        subprocess.run(
            [sys.executable, "-c", _DRIVER, self.url, what], check=False, timeout=_SECONDS, capture_output=True
        )
        return DetachedDrivers(self.ledger).find("d")


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    found = Driver(tmp_path)
    with found.ledger:
        yield found


def test_a_driver_that_is_cancelled_interrupts_itself_and_records_its_end(driver: Driver) -> None:
    DetachedDrivers(driver.ledger).cancel("d")

    row = driver.run("waits")

    assert row.ended_at is not None
    assert (row.exit_code, row.report) == (128 + signal.SIGTERM, None)


def test_the_result_of_a_driver_is_in_its_row(driver: Driver) -> None:
    row = driver.run("copies")

    assert row.seen_at > row.started_at
    assert (row.exit_code, row.report) == (0, {"exit_code": 0, "records": 7})


def test_the_error_of_a_driver_is_in_its_row(driver: Driver) -> None:
    row = driver.run("refuses")

    assert row.exit_code == 2
    assert row.report is not None
    assert row.report["error"]["reason"] == "configuration"


def test_rows_of_partitions_without_problems_stay_out_of_the_ledger() -> None:
    good = {"topic": "t", "partition": 0, "error": None, "poison": []}
    bad = {**good, "error": {"reason": "poison"}}
    skipped = {**good, "poison": [{"first_offset": 1}]}

    content = {"exit_code": 1, "partitions": [good, bad, skipped], "round_lags": [{}], "problems": []}

    assert without_details(content) == {"exit_code": 1, "partitions": [bad, skipped], "problems": []}
