"""Flows that may not copy as fast as they could. Times have lower bounds only, which the limits themselves give."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from mirror_lib.config.loader import load
from mirror_lib.planning import rate_limits as rate
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow
from tests.support.kafka import consume, create_topic, produce, records
from tests.support.mirrored_topic import MirroredTopic

#: What a task may read at once: a second's worth that was saved up, and a second's worth that it is overdrawn by.
_BURST_SECONDS = 2.0
_LIMIT = 150_000
_RECORDS = 300


def fill(pair: KafkaPair, topic: str) -> None:
    """Two partitions of 300 kB, in batches that a small limit lets pass one by one."""
    create_topic(pair.source, topic, partitions=2)
    both = [*records(_RECORDS, size=1000), *records(_RECORDS, size=1000, partition=1)]
    produce(pair.source, topic, both, batch_size=9_000)


def copied(pair: KafkaPair, topic: str) -> bool:
    """Whether the target holds what the source does."""
    return consume(pair.target, f"A.{topic}") == consume(pair.source, topic)


def test_given_two_flows_that_share_a_clusters_limit_then_they_keep_it_together(mirrored: MirroredTopic) -> None:
    topics = {"A->B": f"{mirrored.name}-1", "A->C": f"{mirrored.name}-2"}
    for topic in topics.values():
        fill(mirrored.pair, topic)
    limit = 2 * _LIMIT
    settings = {
        "clusters": "A, B, C",
        "C.bootstrap.servers": mirrored.target.bootstrap_servers,
        "C.offset.storage.topic": f"{mirrored.name}-positions",
        "C.offset.storage.replication.factor": "1",
        "A->C.enabled": "true",
        "A->C.topics": topics["A->C"],
        "A.mirror.rate.limit.read.bytes": str(limit),
    }
    first = mirrored.flow(topics=topics["A->B"], settings=settings)
    second = replace(first, config=load(first.path).flow("A->C"))
    for flow in (first, second):
        flow.sync_topics()

    began = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda flow: flow.run(sync=False), (first, second)))
    seconds = time.monotonic() - began

    assert [report.errors for report in reports] == [(), ()]
    assert seconds >= sum(report.bytes for report in reports) / limit - _BURST_SECONDS
    assert all(copied(mirrored.pair, topic) for topic in topics.values())
    assert first.ledger.rate_claims() == ()


def test_given_more_than_a_round_may_copy_under_a_clusters_limit_then_one_run_copies_it_in_several(
    mirrored: MirroredTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate, "ROUND_SECONDS", 1)
    fill(mirrored.pair, mirrored.name)
    flow: Flow = mirrored.flow({"B.mirror.rate.limit.write.bytes": str(_LIMIT)})

    report = flow.run()

    assert report.errors == ()
    assert (report.records, report.rounds > 2) == (2 * _RECORDS, True)
    assert copied(mirrored.pair, mirrored.name)
