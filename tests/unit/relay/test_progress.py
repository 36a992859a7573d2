"""Progress is a courtesy: a ledger or a cluster that does not answer must not end a round whose positions are open."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

import mirror_lib.relay.progress as progress
from mirror_lib.errors import LedgerError
from mirror_lib.relay.progress import RoundProgress
from tests.support.fake_cluster import FakeCluster, fill, job, opened


def test_a_ledger_that_fails_does_not_end_the_round(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    source, target = FakeCluster("A"), FakeCluster("B")
    fill(source.add("orders"), [100])

    def refuse(*_: object) -> None:
        raise LedgerError("the ledger is locked.")

    monkeypatch.setattr(progress, "_INTERVAL_SECONDS", 0.01)
    ledger = SimpleNamespace(save_partition_runs=refuse, heartbeat=refuse)

    with (
        caplog.at_level(logging.WARNING),
        RoundProgress(job(opened(source, target)), SimpleNamespace(), ledger, round_number=1),  # type: ignore[arg-type]
    ):
        pass

    assert "the ledger is locked" in caplog.text
