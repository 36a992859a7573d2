"""What is wrong with one partition is told with its place and what to do, and the others are copied."""

from __future__ import annotations

import pytest

from mirror_lib.copy.run import replicate
from mirror_lib.copy.run_options import CopyRunner, RunOptions
from mirror_lib.errors import CorruptBatchError, MirrorError, SourceRecreatedError, TopicMissingError
from mirror_lib.planning.model import CopyJob, PartitionResult
from tests.support.flows import copy_here
from tests.support.kafka import Record, consume, create_topic, delete_topic, produce, records, watermarks
from tests.support.mirrored_topic import MirroredTopic


def the_error(errors: tuple[MirrorError, ...], kind: type[MirrorError], topic: str, partition: int) -> MirrorError:
    """The only error, which must name its place and say what to do."""
    (error,) = errors
    assert isinstance(error, kind), error
    assert (error.where.flow, error.where.topic, error.where.partition) == ("A->B", topic, partition)
    assert error.action
    return error


def test_a_batch_with_a_wrong_crc_stops_only_its_partition(mirrored: MirroredTopic) -> None:
    mirrored.create(partitions=2)
    flow = mirrored.flow()
    mirrored.produce(records(10))
    mirrored.produce([Record(value=b"to be damaged")])
    mirrored.produce(records(20, partition=1))
    mirrored.damage(b"to be damaged")

    report = flow.run()

    error = the_error(report.errors, CorruptBatchError, mirrored.name, 0)
    assert (error.where.offset, report.exit_code) == (10, 3)
    assert "mirror.poison.policy" in (error.action or "")
    assert watermarks(mirrored.target, mirrored.remote, 0)[1] == 10
    assert watermarks(mirrored.target, mirrored.remote, 1)[1] == 20


def test_a_topic_that_vanishes_during_the_run_stops_only_itself(mirrored: MirroredTopic) -> None:
    vanishing = f"{mirrored.name}-vanishing"
    mirrored.create()
    create_topic(mirrored.source, vanishing)
    mirrored.produce(records(30))
    produce(mirrored.source, vanishing, records(30))
    flow = mirrored.flow(topics=f"{mirrored.name}, {vanishing}")

    def copy_after_deletion(job: CopyJob) -> list[PartitionResult]:
        delete_topic(mirrored.source, vanishing)
        return copy_here(job)

    report = flow.run(runner=copy_after_deletion)

    the_error(report.errors, TopicMissingError, vanishing, 0)
    assert report.records == 30
    assert mirrored.copied() == consume(mirrored.source, mirrored.name)


def test_given_a_topic_created_again_during_the_run_then_nothing_of_the_new_one_counts_as_the_old_ones(
    mirrored: MirroredTopic,
) -> None:
    mirrored.create(records(30))
    flow = mirrored.flow()
    flow.run()
    mirrored.produce(records(10, start=30))

    def copy_after_another_was_created(job: CopyJob) -> list[PartitionResult]:
        delete_topic(mirrored.source, mirrored.name)
        mirrored.create(records(60, start=1000))
        return copy_here(job)

    report = flow.run(runner=copy_after_another_was_created)

    the_error(report.errors, TopicMissingError, mirrored.name, 0)
    the_error(flow.run().errors, SourceRecreatedError, mirrored.name, 0)
    assert [record.key for record in mirrored.copied()] == [record.key for record in records(30)]


def test_a_runner_that_cannot_start_leaves_nothing_open(mirrored: MirroredTopic) -> None:
    mirrored.create(records(3))
    flow = mirrored.flow()
    flow.sync_topics()

    def no_spark() -> CopyRunner:
        raise RuntimeError("no Spark")

    with pytest.raises(RuntimeError):
        replicate(flow.config, ledger=flow.ledger, make_runner=no_spark, options=RunOptions())

    assert flow.run().records == 3
