"""Deletions that the source's cleaner removes between two runs."""

from __future__ import annotations

import time

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.mm2_formats import OffsetSync
from mirror_lib.cluster.topics.position_format import PositionKeys, partition_for
from mirror_lib.cluster.topics.position_store import OffsetSyncWriter
from mirror_lib.config.topology import offset_syncs_topic
from mirror_lib.copy.flow_plan import plan_flow, plan_with_facts
from mirror_lib.copy.gaps.gaps import apply_decisions, plan_decisions
from mirror_lib.copy.gaps.resolutions import Decision
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.errors import DeletionsPossiblyLostError
from mirror_lib.features.forecast.plan import forecast_plan
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.compaction import create_compacted, forget, put, state
from tests.support.kafka import Record, consume, produce, transaction
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


def test_given_a_run_that_has_seen_a_partition_idle_then_it_was_caught_up_at_that_moment(
    mirrored: MirroredTopic,
) -> None:
    """Else the markers of a transaction in a run that polls for hours look like deletions that came too late."""
    create_compacted(mirrored.source, mirrored.name)
    put(mirrored.source, mirrored.name, {"kept": "1"})
    flow = mirrored.flow()
    flow.run()

    with FlowClusters.connect(flow.config) as clusters:
        began = int(time.time() * 1000)
        idle, _ = plan_with_facts(flow.config, clusters, RunOptions(), flow.ledger, topics_synced=True)
        transaction(mirrored.source, mirrored.name, [b"1"], commit=True, key=b"new")
        behind, _ = plan_with_facts(flow.config, clusters, RunOptions(), flow.ledger, topics_synced=True)

    assert (idle.partitions, idle.idle) == ((), 1)
    (planned,) = behind.partitions
    assert planned.caught_up_at is not None
    assert planned.caught_up_at >= began


def test_given_mirror_maker_stood_still_longer_than_tombstones_are_kept_when_taken_over_then_it_says_so(
    mirrored: MirroredTopic,
) -> None:
    create_compacted(mirrored.source, mirrored.name)
    put(mirrored.source, mirrored.name, {"deleted": "1", "kept": "1"})
    flow = mirrored.flow()
    flow.sync_topics()
    mirrored.produce_remote(consume(mirrored.source, mirrored.name))
    syncs = Connection.from_settings(flow.config.clients.offset_syncs_producer)
    with OffsetSyncWriter(syncs, offset_syncs_topic(flow.config)) as writer:
        writer.write([OffsetSync(mirrored.name, 0, 1, 1)])
    source = TopicPartition(mirrored.name, 0)
    key = PositionKeys("A").encode(source)
    hour_ago = int(time.time() * 1000) - 3_600_000
    stored = Record(key=key, value=b'{"offset":1}', partition=partition_for(key, 5), timestamp_ms=hour_ago)
    produce(mirrored.target, flow.config.offset_storage_topic, [stored])
    put(mirrored.source, mirrored.name, {"deleted": None})
    forget(mirrored.source, mirrored.name, ["deleted"])
    put(mirrored.source, mirrored.name, {"new": "1"})

    report = flow.run()

    assert (report.errors, report.exit_code) == ((), 3)
    assert [problem.error.reason for problem in report.deletions] == [REASON]
    assert "later, the source keeps tombstones" in report.deletions[0].error.what
