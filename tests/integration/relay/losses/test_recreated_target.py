"""A target topic that is deleted, and perhaps created again, while a run is stopped: that run appends nothing to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.cluster.raw import backoff as retry
from mirror_lib.cluster.raw.client import ProducedPartition, RawClient
from mirror_lib.errors import MirrorError, TargetDeletedError, TargetRecreatedError
from mirror_lib.relay.copy.task import copy_bin
from mirror_lib.relay.model import PartitionResult
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, pair_flow
from tests.support.interruptions import asleep
from tests.support.kafka import consume, create_topic, delete_topic, produce, records, values
from tests.support.mirrored_topic import MirroredTopic

#: Records are copied in transactions then, as these are old; requests of transactions name topics.
BY_NAME = {"mirror.old.records.in.transactions": "true"}


@pytest.fixture(autouse=True)
def _short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic that a broker does not know counts as deleted sooner than after five seconds."""
    monkeypatch.setattr(retry, "_MISSING_TOPIC_SECONDS", 0.5)


class Scene:
    """A flow of one topic of which ten records are copied, and ten are new."""

    def __init__(self, pair: KafkaPair, topic: str, folder: Path, settings: dict[str, str]) -> None:
        self.pair, self.topic = pair, topic
        create_topic(pair.source, topic)
        self.flow: Flow = pair_flow(folder, pair, topics=topic, settings=settings)
        self.flow.sync_topics()

    @property
    def target(self) -> str:
        return f"A.{self.topic}"

    def produce(self, count: int, *, start: int = 0) -> None:
        produce(self.pair.source, self.topic, records(count, start=start))

    def recreate(self) -> None:
        delete_topic(self.pair.target, self.target)
        create_topic(self.pair.target, self.target)

    def on_target(self) -> list[bytes | None]:
        return values(consume(self.pair.target, self.target))


@pytest.fixture(params=[{}, BY_NAME], ids=["topic ids", "names"])
def scene(request: Any, mirrored: MirroredTopic) -> Scene:
    return Scene(mirrored.pair, mirrored.name, mirrored.folder, request.param)


def the_error(results: Sequence[PartitionResult]) -> MirrorError:
    (result,) = results
    assert result.error is not None
    assert result.records == 0
    return result.error


def test_given_a_run_that_slept_when_its_target_topic_was_created_again_then_it_appends_nothing(scene: Scene) -> None:
    # Offset 0 is where the run goes on, and where the new topic ends: only the id tells them apart.
    scene.produce(10)
    job = asleep(scene.flow)
    scene.recreate()

    error = the_error(copy_bin(job, 0))

    assert isinstance(error, TargetRecreatedError), error
    assert (error.where.flow, error.where.topic, error.where.partition) == ("A->B", scene.topic, 0)
    assert scene.on_target() == []


def test_given_a_run_that_slept_when_its_target_topic_was_deleted_then_it_says_so(scene: Scene) -> None:
    scene.produce(10)
    job = asleep(scene.flow)
    delete_topic(scene.pair.target, scene.target)

    assert isinstance(the_error(copy_bin(job, 0)), TargetDeletedError)


def test_given_a_request_that_is_held_up_when_the_topic_is_created_again_then_the_new_one_gets_nothing(
    mirrored: MirroredTopic,
) -> None:
    # The process is stopped between its last look and the end of its request.
    scene = Scene(mirrored.pair, mirrored.name, mirrored.folder, {})
    scene.produce(10)
    assert scene.flow.run().errors == ()
    scene.produce(10, start=10)

    with held_up(scene.target, scene.recreate):
        report = scene.flow.run(sync=False)

    (error,) = report.errors
    assert isinstance(error, TargetRecreatedError), error
    assert report.exit_code == 3
    assert scene.on_target() == []
    (planned,) = scene.flow.run(sync=False).errors
    assert isinstance(planned, TargetRecreatedError)


def held_up(topic: str, meanwhile: Callable[[], None]) -> Any:
    """Have something happen right before the first batch for a topic is sent."""
    patch = pytest.MonkeyPatch.context()
    send = RawClient.produce
    happened: list[bool] = []

    def held(
        client: RawClient, node: int, batches: Sequence[tuple[str, int, Any]], **options: Any
    ) -> Awaitable[list[ProducedPartition]]:
        if not happened and any(batch[0] == topic for batch in batches):
            happened.append(True)
            meanwhile()
        return send(client, node, batches, **options)

    class Held:
        def __enter__(self) -> None:
            patch.__enter__().setattr(RawClient, "produce", held)

        def __exit__(self, *_: object) -> None:
            patch.__exit__(None, None, None)
            assert happened

    return Held()
