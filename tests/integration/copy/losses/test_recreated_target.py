"""A target topic that is deleted, and perhaps created again, while a run is stopped: that run appends nothing to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from mirror_lib.cluster.raw import backoff as retry
from mirror_lib.cluster.raw.client import ProducedPartition, RawClient
from mirror_lib.copy.transfer.task import copy_bin
from mirror_lib.errors import MirrorError, TargetDeletedError, TargetRecreatedError
from mirror_lib.planning.model import PartitionResult
from tests.support.flows import Flow
from tests.support.interruptions import asleep
from tests.support.kafka import delete_topic, records
from tests.support.mirrored_topic import MirroredTopic

#: Records are copied in transactions then, as these are old; requests of transactions name topics.
BY_NAME = {"mirror.old.records.in.transactions": "true"}


@pytest.fixture(autouse=True)
def _short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic that a broker does not know counts as deleted sooner than after five seconds."""
    monkeypatch.setattr(retry, "_MISSING_TOPIC_SECONDS", 0.5)


@pytest.fixture(params=[{}, BY_NAME], ids=["topic ids", "names"])
def flow(request: Any, mirrored: MirroredTopic) -> Flow:
    """A flow of a topic of which ten records are to be copied to a topic that is there."""
    mirrored.create(records(10))
    flow = mirrored.flow(request.param)
    flow.sync_topics()
    return flow


def recreate(mirrored: MirroredTopic) -> None:
    delete_topic(mirrored.target, mirrored.remote)
    mirrored.create_remote()


def the_error(results: Sequence[PartitionResult]) -> MirrorError:
    (result,) = results
    assert result.error is not None
    assert result.records == 0
    return result.error


def test_given_a_run_that_slept_when_its_target_topic_was_created_again_then_it_appends_nothing(
    mirrored: MirroredTopic, flow: Flow
) -> None:
    # Offset 0 is where the run goes on, and where the new topic ends: only the id tells them apart.
    job = asleep(flow)
    recreate(mirrored)

    error = the_error(copy_bin(job, 0))

    assert isinstance(error, TargetRecreatedError), error
    assert (error.where.flow, error.where.topic, error.where.partition) == ("A->B", mirrored.name, 0)
    assert mirrored.copied() == []


def test_given_a_run_that_slept_when_its_target_topic_was_deleted_then_it_says_so(
    mirrored: MirroredTopic, flow: Flow
) -> None:
    job = asleep(flow)
    delete_topic(mirrored.target, mirrored.remote)

    assert isinstance(the_error(copy_bin(job, 0)), TargetDeletedError)


def test_given_a_request_that_is_held_up_when_the_topic_is_created_again_then_the_new_one_gets_nothing(
    mirrored: MirroredTopic,
) -> None:
    # The process is stopped between its last look and the end of its request.
    mirrored.create(records(10))
    flow = mirrored.flow()
    assert flow.run().errors == ()
    mirrored.produce(records(10, start=10))

    with held_up(mirrored.remote, lambda: recreate(mirrored)):
        report = flow.run(sync=False)

    (error,) = report.errors
    assert isinstance(error, TargetRecreatedError), error
    assert report.exit_code == 3
    assert mirrored.copied() == []
    (planned,) = flow.run(sync=False).errors
    assert isinstance(planned, TargetRecreatedError)


@contextmanager
def held_up(topic: str, meanwhile: Callable[[], None]) -> Iterator[None]:
    """Have something happen right before the first batch for a topic is sent."""
    send = RawClient.produce
    happened: list[bool] = []

    def held(
        client: RawClient, node: int, batches: Sequence[tuple[str, int, Any]], **options: Any
    ) -> Awaitable[list[ProducedPartition]]:
        if not happened and any(batch[0] == topic for batch in batches):
            happened.append(True)
            meanwhile()
        return send(client, node, batches, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RawClient, "produce", held)
        yield
    assert happened
