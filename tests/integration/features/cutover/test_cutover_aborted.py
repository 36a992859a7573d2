"""A failback where the flow there has copied records of aborted transactions, as MM2 does by default."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from mirror_lib.config.topology import flow_topology
from mirror_lib.features.repair.map_rebuild import apply_rebuilt, rebuild
from mirror_lib.features.repair.map_rebuild_plan import plan_rebuild
from mirror_lib.features.verify.findings import DifferenceKind, Verdict
from mirror_lib.features.verify.report import VerifyReport
from mirror_lib.ledger.handovers import with_handovers
from mirror_lib.ledger.tables.segment_runs import columns_of, of_columns
from mirror_lib.planning.flow_clusters import FlowClusters
from tests.support.cutovers import Migration, migration, numbered
from tests.support.flows import Flow
from tests.support.kafka import produce, transaction, watermarks
from tests.support.mirrored_topic import MirroredTopic
from tests.support.verifying import verify

PARTITIONS = 1


@pytest.fixture
def moving(mirrored: MirroredTopic) -> Iterator[Migration]:
    """A topic of the source with an aborted transaction between committed records; both flows read uncommitted ones."""
    mirrored.create(numbered(0, 10, PARTITIONS), partitions=PARTITIONS)
    transaction(mirrored.source, mirrored.name, [b"aborted there"] * 5, commit=False)
    mirrored.produce(numbered(15, 20, PARTITIONS))
    made = migration(mirrored.folder, mirrored.pair, mirrored.name)
    made.there.run()
    yield made
    made.ledger.close()


def verified(flow: Flow, topic: str) -> VerifyReport:
    return verify(replace(flow, config=with_handovers(flow.config, flow.ledger)), topics=(topic,))


def differences(report: VerifyReport) -> list[tuple[DifferenceKind, int | None, int | None]]:
    return [
        (each.kind, each.source_offset, each.target_offset) for found in report.verdicts for each in found.differences
    ]


def lose_first_records(flow: Flow, topic: str, count: int) -> None:
    """Let the ledger know nothing of the first records of the map."""
    name = str(flow.config.flow)
    first, *others = flow.ledger.segments(name, topic, 0)
    kept = columns_of(first).behind(source=count, target=0)
    flow.ledger.replace_segments(name, topic, 0, [of_columns(kept, like=first), *others])


def rebuilt(moving: Migration, topic: str) -> list[tuple[int, int, int]]:
    """Rebuild the map of the flow back: records, those that only the logs tell of, and contradictions."""
    ledger = moving.ledger
    flow, opposite = (with_handovers(moving.config.flow(name), ledger) for name in ("B->A", "A->B"))
    with FlowClusters.connect(flow) as clusters:
        plans = plan_rebuild(flow, flow_topology(flow, (topic,)), clusters)
        found = rebuild(flow, plans, clusters, ledger, lambda _: None, opposite=opposite)
        assert [each.error for each in found] == [None]
        apply_rebuilt(flow, clusters, ledger, found, run_id="rebuild-1", by="ann")
    return [
        (each.match.columns.records, each.difference.only_in_logs, each.difference.contradicting)
        for each in found
        if each.match is not None and each.difference is not None
    ]


def test_a_topic_with_aborted_records_that_were_copied_comes_home_and_goes_there_again(
    moving: Migration, topic_name: str
) -> None:
    # Given a topic that has moved, with 5 records of an aborted transaction that are ordinary records on the target
    moving.finish(moving.define("scope", topic_name))
    produce(moving.pair.target, topic_name, numbered(20, 25, PARTITIONS))
    # And another one that writers have aborted on the target
    transaction(moving.pair.target, topic_name, [b"aborted here"] * 3, commit=False)
    moving.back.run()
    # And a ledger that has lost a part of what the first flow had copied
    lose_first_records(moving.back, topic_name, 12)
    assert rebuilt(moving, topic_name) == [(28, 12, 0)]

    # When both failbacks and a second cutover are taken to their ends
    moving.finish(moving.fail_back("scope"))
    produce(moving.pair.source, topic_name, numbered(28, 30, PARTITIONS))
    moving.there.run()

    # Then what each flow has copied is equal, whichever flow reads it
    report = verified(moving.there, topic_name)
    assert [each.verdict for each in report.verdicts] == [Verdict.EQUAL], differences(report)
    assert report.records == 30
    moving.finish(moving.define("again", topic_name))
    moving.finish(moving.fail_back("again"))


def test_a_loss_on_either_side_is_a_difference_all_the_same(moving: Migration, topic_name: str) -> None:
    # Given a topic that has moved, where the source then gets a record that no flow copies
    moving.finish(moving.define("scope", topic_name))
    source_end = watermarks(moving.pair.source, topic_name)[1]
    produce(moving.pair.source, topic_name, numbered(90, 91, PARTITIONS))

    report = verified(moving.back, topic_name)

    assert differences(report) == [(DifferenceKind.EXTRA, None, source_end)]
