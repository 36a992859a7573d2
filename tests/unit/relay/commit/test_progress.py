"""Progress is a courtesy: a ledger or a cluster that does not answer must not end a round whose positions are open."""

from __future__ import annotations

import logging
import threading
from types import SimpleNamespace

import pytest

import mirror_lib.relay.commit.progress as progress
from mirror_lib.errors import LedgerError
from mirror_lib.ledger.rows import PartitionRunRow
from mirror_lib.relay.commit.progress import RoundProgress
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.fake_cluster import FakeCluster, fill, job, opened


class Watched:
    """A target's ends as scripted, and the rows that the ledger got."""

    def __init__(self, looks: list[dict[TopicPartition, int]]) -> None:
        self._looks = iter(looks)
        self.saved: list[dict[int, int]] = []
        self.seen_all = threading.Event()

    def list_offsets(self, partitions: list[TopicPartition], _: object) -> dict[TopicPartition, SimpleNamespace]:
        ends = next(self._looks, None)
        if ends is None:
            self.seen_all.set()
            return {each: SimpleNamespace(error=LedgerError("no more looks."), offset=0) for each in partitions}
        return {each: SimpleNamespace(error=None, offset=ends[each]) for each in partitions}

    def save_partition_runs(self, rows: list[PartitionRunRow]) -> None:
        self.saved.append({row.partition: row.records for row in rows})

    def heartbeat(self, _: str) -> None:
        pass


def test_only_partitions_that_have_come_on_are_told_to_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = FakeCluster("A"), FakeCluster("B")
    for partition in (0, 1):
        fill(source.add("orders", partition), [100] * 9)
    first, second = TopicPartition("A.orders", 0), TopicPartition("A.orders", 1)
    watched = Watched([{first: 3, second: 0}, {first: 3, second: 4}, {first: 3, second: 4}])
    monkeypatch.setattr(progress, "_INTERVAL_SECONDS", 0.001)
    copied = job(*(opened(source, target, partition=number) for number in (0, 1)))
    clusters = SimpleNamespace(target_admin=watched)

    with RoundProgress(copied, clusters, watched, round_number=1):  # type: ignore[arg-type]
        assert watched.seen_all.wait(10)

    assert not [each for each in threading.enumerate() if each.name == "round-progress"]
    assert watched.saved[:4] == [{0: 0, 1: 0}, {0: 3, 1: 0}, {1: 4}, {}]


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
