"""Where target partitions begin with `mirror.offsets = same`: interrupted filling, gaps that are accepted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.errors import FencedError, MirrorError, OffsetsDifferError, TargetNotEmptyError
from mirror_lib.features.same_offsets import padding
from mirror_lib.features.same_offsets.padding import pad
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.connections import connection_of
from tests.support.flows import Flow
from tests.support.kafka import Record, consume, delete_records, records, watermarks
from tests.support.mirrored_topic import MirroredTopic

_SAME = {"A->B.mirror.offsets": "same", "mirror.run.lease.seconds": "3"}


@pytest.fixture
def flow(mirrored: MirroredTopic) -> Flow:
    return mirrored.flow(_SAME)


def assert_same(mirrored: MirroredTopic) -> None:
    """Each record of the source is on the target at its offset, and both logs have the same end."""
    assert mirrored.copied() == consume(mirrored.source, mirrored.name)
    ends = [watermarks(mirrored.source, mirrored.name)[1], watermarks(mirrored.target, mirrored.remote)[1]]
    assert ends[0] == ends[1]


def begin_later(
    mirrored: MirroredTopic, flow: Flow, *, at: int = 250, configs: Mapping[str, str] | None = None
) -> None:
    """A source that begins at an offset, and an empty target."""
    mirrored.create(records(at + 50))
    mirrored.create_remote(configs=configs)
    flow.sync_internal_topics()
    delete_records(mirrored.source, mirrored.name, before=at)


def fill(
    mirrored: MirroredTopic, *, upto: int, meanwhile: Callable[[int], None] = lambda _: None
) -> dict[TopicPartition, MirrorError]:
    """Write filler without deleting it, as a step that is killed has done; return the errors.

    Args:
        meanwhile: what happens after each batch, while the step stands still.
    """

    async def write() -> dict[TopicPartition, MirrorError]:
        async with open_clients(connection_of(mirrored.target.bootstrap_servers)) as (client,):
            ends = {TopicPartition(mirrored.remote, 0): (0, upto)}
            return await pad(client, FlowId("A", "B"), ends, retry_seconds=10, on_padded=meanwhile)

    return asyncio.run(write())


@pytest.mark.parametrize("upto", [1, 100, 250])
def test_filling_that_was_interrupted_goes_on(mirrored: MirroredTopic, flow: Flow, upto: int) -> None:
    begin_later(mirrored, flow)
    assert fill(mirrored, upto=upto) == {}

    flow.sync_topics()

    assert watermarks(mirrored.target, mirrored.remote) == (250, 250)
    assert flow.run().errors == ()
    assert_same(mirrored)


def test_a_step_that_wakes_up_after_the_copy_has_begun_appends_nothing(
    mirrored: MirroredTopic, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_later(mirrored, flow)
    monkeypatch.setattr(padding, "MOST_RECORDS", 100)

    def copy_meanwhile(_: int) -> None:
        with ThreadPoolExecutor(1) as another:
            assert another.submit(flow.run).result().errors == ()

    (error,) = fill(mirrored, upto=250, meanwhile=copy_meanwhile).values()

    assert isinstance(error, FencedError)
    assert_same(mirrored)


def test_two_steps_at_once_fill_no_further_than_one(
    mirrored: MirroredTopic, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_later(mirrored, flow)
    monkeypatch.setattr(padding, "MOST_RECORDS", 10)

    def fill_again(_: int) -> None:
        with ThreadPoolExecutor(1) as another:
            failed.append(another.submit(fill, mirrored, upto=250).result())

    failed: list[dict[TopicPartition, MirrorError]] = []
    failed.append(fill(mirrored, upto=250, meanwhile=lambda done: fill_again(done) if not failed else None))

    (first,), (second,) = (each.values() for each in failed)
    assert isinstance(first, OffsetsDifferError)
    assert isinstance(second, FencedError)
    assert flow.run().errors == ()
    assert_same(mirrored)


@pytest.mark.parametrize("codec", ["gzip", "uncompressed"])
def test_filler_is_known_in_the_compression_of_the_topic(mirrored: MirroredTopic, flow: Flow, codec: str) -> None:
    begin_later(mirrored, flow, configs={"compression.type": codec})
    assert fill(mirrored, upto=100) == {}

    flow.sync_topics()

    assert watermarks(mirrored.target, mirrored.remote) == (250, 250)


@pytest.mark.parametrize(
    "other", [Record(b""), Record(key=b""), Record(headers=(("a", b""),))], ids=["value", "key", "headers"]
)
def test_a_record_of_others_is_not_taken_for_filler(mirrored: MirroredTopic, flow: Flow, other: Record) -> None:
    begin_later(mirrored, flow)
    assert fill(mirrored, upto=10) == {}
    mirrored.produce_remote([other])

    flow.sync_topics()

    assert watermarks(mirrored.target, mirrored.remote) == (0, 11)
    (error,) = flow.run().errors
    assert isinstance(error, TargetNotEmptyError)


def test_copied_records_without_content_are_not_taken_for_filler(mirrored: MirroredTopic, flow: Flow) -> None:
    """They are what the source had, and the operator decides about the gap behind them."""
    empty = [Record()] * 5
    mirrored.create(empty)
    assert flow.run().errors == ()
    mirrored.produce(empty)
    delete_records(mirrored.source, mirrored.name, before=8)

    flow.sync_topics()

    assert watermarks(mirrored.target, mirrored.remote) == (0, 5)
    (error,) = flow.run().errors
    assert error.reason == "retention-gap"
