"""Deletions that the source's cleaner removes between two runs."""

from __future__ import annotations

import time
from dataclasses import replace

from mirror_lib.errors import DeletionsPossiblyLostError
from mirror_lib.relay.gaps.gaps import apply_decisions, plan_decisions
from mirror_lib.relay.gaps.resolutions import Decision
from mirror_lib.relay.health.forecast import forecast_plan
from mirror_lib.relay.health.observation import observe_flow
from mirror_lib.relay.planning.facts import FlowClusters
from mirror_lib.relay.run import plan_flow
from mirror_lib.relay.run_options import RunOptions
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.compaction import create_compacted, forget, put, state
from tests.support.kafka import consume
from tests.support.mirrored_topic import MirroredTopic

REASON = DeletionsPossiblyLostError.reason


def test_a_run_that_comes_too_late_for_a_deletion_says_so_and_copies_on(mirrored: MirroredTopic) -> None:
    create_compacted(mirrored.source, mirrored.name, partitions=2)
    put(mirrored.source, mirrored.name, {"kept": "1", "deleted": "1"})
    put(mirrored.source, mirrored.name, {"other": "1"}, partition=1)
    flow = mirrored.flow()
    assert flow.run().exit_code == 0
    put(mirrored.source, mirrored.name, {"deleted": None})
    forget(mirrored.source, mirrored.name, ["deleted"])
    put(mirrored.source, mirrored.name, {"new": "1"})
    # Here nothing was removed, so nothing can be lost.
    put(mirrored.source, mirrored.name, {"another": "1"}, partition=1)

    expected = forecast_plan(flow.config, plan_flow(flow.config, RunOptions(), flow.ledger), flow.ledger)
    report = flow.run()

    assert any("delete.retention.ms" in warning and mirrored.name in warning for warning in expected.warnings())
    # The fault: the key lives on, and the copy goes on behind it.
    assert "deleted" in state(mirrored.target, mirrored.remote)
    assert state(mirrored.target, mirrored.remote)["new"] == "1"
    assert report.exit_code == 3
    assert [(problem.source.partition, problem.error.reason) for problem in report.deletions] == [(0, REASON)]
    (gap,) = flow.ledger.open_gaps(str(flow.config.flow))
    assert (gap.topic, gap.partition, gap.cause) == (mirrored.name, 0, REASON)
    assert gap.first_offset == gap.next_offset, "nothing may be excused by it"

    # Somebody decides, and the flow goes on as ever.
    with FlowClusters.connect(flow.config) as clusters:
        (planned,) = plan_decisions(flow.config, clusters, flow.ledger, Decision.RECOPY, [gap], run_id="r")
        assert planned.error is not None
        assert "does not delete" in planned.error.what
        decisions = plan_decisions(flow.config, clusters, flow.ledger, Decision.ACCEPT, [gap], run_id="a")
        apply_decisions(flow.config, clusters, flow.ledger, decisions, by="somebody")
    put(mirrored.source, mirrored.name, {"later": "1"})
    assert flow.run().exit_code == 0
    assert flow.ledger.open_gaps(str(flow.config.flow)) == ()


def test_a_topic_that_was_seen_idle_since_its_last_copy_lost_nothing_before_that(mirrored: MirroredTopic) -> None:
    create_compacted(mirrored.source, mirrored.name, delete_retention_ms="30000")
    put(mirrored.source, mirrored.name, {"kept": "1"})
    flow = mirrored.flow()
    flow.run()
    with FlowClusters.connect(flow.config) as clusters:
        # As if that had been an hour ago.
        before = clusters.positions.read_all().positions[TopicPartition(mirrored.name, 0)].position
        long_ago = int(time.time() * 1000) - 3_600_000
        claim = (before.claim or 0) + 1
        clusters.positions.write([replace(before, caught_up_at=long_ago, claim=claim)])
    observe_flow(flow.config, flow.ledger)
    # Overwritten and cleaned: a hole, and no deletion in it.
    put(mirrored.source, mirrored.name, {"seen": "1"})
    put(mirrored.source, mirrored.name, {"seen": "2"})
    _until_cleaned(mirrored)

    report = flow.run()

    assert report.exit_code == 0
    assert state(mirrored.target, mirrored.remote)["seen"] == "2"


def _until_cleaned(mirrored: MirroredTopic) -> None:
    deadline = time.monotonic() + 60
    while sum(record.key == b"seen" for record in consume(mirrored.source, mirrored.name)) > 1:
        assert time.monotonic() < deadline, "the cleaner has not come by"
        put(mirrored.source, mirrored.name, {"ballast": str(time.monotonic())})
        time.sleep(0.3)
