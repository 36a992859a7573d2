import asyncio
import logging

import pytest

from mirror_lib.airflow.flow.deadline import tell_deadline_missed
from mirror_lib.config.loader import load
from mirror_lib.ledger.location import ledger_url, open_ledger
from tests.support.flow_files import LEDGER, write_flow
from tests.support.ledger.ledgers import ready_ledger


@pytest.fixture
def config(tmp_path):
    path = write_flow(tmp_path, LEDGER)
    ready_ledger(ledger_url(load(path))).close()
    return path


def miss(config, run_id="manual 1", **dag_run):
    context = {"dag_run": {"dag_run_id": run_id, **dag_run}, "deadline": {"id": "1"}}
    asyncio.run(tell_deadline_missed("A->B", str(config), 60.0, context=context))


def test_an_alert_is_told_even_when_the_file_is_gone(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        miss(tmp_path / "gone.properties")

    assert "missed its deadline" in caplog.text
    assert "could not be recorded in the audit log" in caplog.text


@pytest.mark.parametrize(("end", "is_late"), [("10:00:59Z", False), ("10:01:01Z", True), (None, True)])
def test_given_a_run_that_failed_in_time_then_airflows_alert_is_not_passed_on(config, caplog, end, is_late):
    # Airflow 3.3 forgets the deadlines of runs that succeed, and keeps those of runs that fail.
    ended = None if end is None else f"2026-11-27T{end}"
    miss(config, state="running" if end is None else "failed", queued_at="2026-11-27T10:00:00Z", end_date=ended)

    assert ("missed its deadline" in caplog.text) is is_late
    with open_ledger(load(config)) as ledger:
        assert len(ledger.audits.newest("A->B")) == is_late
