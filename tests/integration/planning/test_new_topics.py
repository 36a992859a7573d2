"""`mirror.first.start=latest` passes over what was there when the flow began, and nothing that came later."""

from __future__ import annotations

import pytest

from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.planning.model import CopyJob, PartitionResult
from tests.support.flows import Flow, copy_here
from tests.support.kafka import add_partitions, consume, create_topic, produce, records, values, watermarks
from tests.support.mirrored_topic import MirroredTopic

LATEST = {"A->B.mirror.first.start": "latest"}


@pytest.fixture
def flow(mirrored: MirroredTopic) -> Flow:
    """A flow that has run, with a topic that it has passed over."""
    create_topic(mirrored.source, f"{mirrored.name}-old")
    produce(mirrored.source, f"{mirrored.name}-old", records(10))
    # A topic that the flow does not select yet.
    create_topic(mirrored.source, f"other-{mirrored.name}")
    produce(mirrored.source, f"other-{mirrored.name}", records(10))
    flow = mirrored.flow(LATEST, topics=f"{mirrored.name}-.*")
    assert (flow.run().errors, flow.run().records) == ((), 0)
    return flow


def test_given_a_topic_that_was_created_after_the_last_run_then_it_is_copied_whole(
    mirrored: MirroredTopic, flow: Flow
) -> None:
    topic = f"{mirrored.name}-new"
    create_topic(mirrored.source, topic, partitions=2)
    for partition in (0, 1):
        produce(mirrored.source, topic, records(100, partition=partition))

    planned = plan_flow(flow.config, RunOptions(), flow.ledger).partitions
    assert sum(each.end - each.start for each in planned) == 200
    # A run of another topic does not make it an old one, nor does a run without its target topic.
    assert flow.run(topics=[f"{mirrored.name}-old"], sync=False).records == 0
    assert [error.reason for error in flow.run(sync=False).errors] == ["topic-missing", "topic-missing"]
    report = flow.run()

    assert (report.errors, report.records) == ((), 200)
    assert values(consume(mirrored.target, f"A.{topic}", partitions=[1])) == values(records(100))


def test_given_a_topic_that_was_created_before_the_first_start_became_latest_then_it_is_copied_whole(
    mirrored: MirroredTopic,
) -> None:
    """The runs until then had nothing to copy, and began at the first record."""
    create_topic(mirrored.source, f"{mirrored.name}-empty")
    assert mirrored.flow(topics=f"{mirrored.name}-.*").run().errors == ()
    create_topic(mirrored.source, f"{mirrored.name}-new")
    produce(mirrored.source, f"{mirrored.name}-new", records(10))

    assert mirrored.flow(LATEST, topics=f"{mirrored.name}-.*").run().records == 10


@pytest.mark.parametrize("count", [0, 5])
def test_given_a_lost_ledger_then_a_topic_that_was_created_meanwhile_is_copied_whole(
    mirrored: MirroredTopic, count: int
) -> None:
    """Only the ledger knew which topics there were; the positions show that this is not the first run."""
    create_topic(mirrored.source, f"{mirrored.name}-old")
    produce(mirrored.source, f"{mirrored.name}-old", records(count))
    chosen = f"{mirrored.name}-.*"
    assert mirrored.flow(LATEST, topics=chosen).run().records == 0
    create_topic(mirrored.source, f"{mirrored.name}-new")
    produce(mirrored.source, f"{mirrored.name}-new", records(10))
    another = {**LATEST, "mirror.ledger.url": f"sqlite:///{mirrored.folder}/another.sqlite3"}

    assert mirrored.flow(another, topics=chosen).run().records == 10

    create_topic(mirrored.source, f"{mirrored.name}-newer")
    produce(mirrored.source, f"{mirrored.name}-newer", records(3))
    assert mirrored.flow(another, topics=chosen).run().records == 3


def test_given_a_topic_that_was_there_at_the_last_run_when_it_is_selected_then_its_records_are_passed_over(
    mirrored: MirroredTopic, flow: Flow
) -> None:
    wider = mirrored.flow(LATEST, topics=f"{mirrored.name}-.*, other-{mirrored.name}")
    assert wider.run().records == 0
    produce(mirrored.source, f"other-{mirrored.name}", records(3, start=10))

    assert wider.run().records == 3
    assert watermarks(mirrored.target, f"A.other-{mirrored.name}") == (0, 3)


def test_given_topics_and_partitions_that_are_created_during_a_run_then_it_ends_well_and_the_next_copies_them(
    mirrored: MirroredTopic,
) -> None:
    mirrored.create(records(10))
    flow = mirrored.flow(topics=f"{mirrored.name}.*")
    created: list[str] = []

    def copy_while_others_create(job: CopyJob) -> list[PartitionResult]:
        if not created:
            created.append(f"{mirrored.name}-late")
            create_topic(mirrored.source, created[0])
            add_partitions(mirrored.source, mirrored.name, 2)
            mirrored.produce([*records(5, start=10), *records(5, partition=1)])
            produce(mirrored.source, created[0], records(5))
        return copy_here(job)

    report = flow.run(runner=copy_while_others_create, max_seconds=60)

    assert (report.errors, report.exit_code, report.records) == ((), 0, 15)
    assert any("2 partitions were created since the run began" in each for each in report.warnings)
    following = flow.run()
    assert (following.errors, following.records) == ((), 10)
