"""Markers that a coordinator leaves out (KAFKA-20734), on real brokers, in runs that die before they see to it.

The coordinator is made to leave them out by not hearing of the partitions: then brokers must not ask it about them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AlterConfigOpType

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import RawClient, open_clients
from mirror_lib.cluster.raw.describe_producers import producer_states
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity, Producers
from mirror_lib.cluster.topics.reader import SmallTopicReader
from mirror_lib.copy.takeover import transaction_markers as markers
from mirror_lib.copy.takeover.fencing import fence_name
from mirror_lib.copy.takeover.transaction_markers import Markers
from mirror_lib.errors import Where
from mirror_lib.planning.model import CopyJob, PartitionResult
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.transaction_checks import set_verification
from tests.support.clusters import KafkaCluster, KafkaPair
from tests.support.flows import Flow
from tests.support.kafka import consume, create_topic, records
from tests.support.mirrored_topic import MirroredTopic
from tests.support.transforming import WITH_CHANCE, Killed, TransformHere, marked, originals

LeaveOut = Callable[[Callable[[TopicPartition], bool]], None]


@pytest.fixture
def target(kafka_pair: KafkaPair) -> Iterator[KafkaCluster]:
    """Brokers that append what the coordinator has not heard of."""
    set_verification(kafka_pair.target, AlterConfigOpType.SET)
    yield kafka_pair.target
    set_verification(kafka_pair.target, AlterConfigOpType.DELETE)


@pytest.fixture
def leave_out(monkeypatch: pytest.MonkeyPatch) -> LeaveOut:
    """Let the coordinator hear nothing of some partitions, and the run do nothing about it."""

    def begin(unmarked: Callable[[TopicPartition], bool]) -> None:
        add = Producers.add_to_transaction

        async def add_others(
            self: Producers,
            name: str,
            identity: ProducerIdentity,
            partitions: Iterable[TopicPartition],
            *,
            deadline: float,
        ) -> None:
            heard = [each for each in partitions if not unmarked(each)]
            if heard:
                await add(self, name, identity, heard, deadline=deadline)

        async def not_yet(*_: object) -> None:
            """Die before."""

        monkeypatch.setattr(Producers, "add_to_transaction", add_others)
        monkeypatch.setattr(Markers, "_write", not_yet)
        monkeypatch.setattr(markers, "LATE_SECONDS", 0.2)

    return begin


@pytest.mark.parametrize("hidden", ["rows", "positions"])
def test_given_a_run_that_died_behind_a_commit_without_markers_when_run_again_then_each_record_is_there_once(
    mirrored: MirroredTopic, target: KafkaCluster, leave_out: LeaveOut, monkeypatch: pytest.MonkeyPatch, hidden: str
) -> None:
    mirrored.create([*records(300), *records(200, partition=1)], partitions=2)
    flow = mirrored.flow(WITH_CHANCE)
    remote = mirrored.remote
    leave_out(lambda partition: (partition.topic == remote) == (hidden == "rows"))
    died(flow, TransformHere(marked, exact=False))
    monkeypatch.undo()
    if hidden == "rows":
        assert consume(target, remote, isolation="read_committed") == []
    else:
        monkeypatch.setattr(SmallTopicReader, "_may_continue", lambda _, deadline: time.monotonic() < deadline - 25)

    report = flow.run(runner=TransformHere(marked, exact=False))

    assert (report.errors, report.records) == ((), 0)
    assert originals(consume(target, remote, isolation="read_committed")) == originals(
        consume(mirrored.source, mirrored.name)
    )
    assert sum(result.recovered for result in report.results) == 500


def test_given_routes_when_a_run_died_behind_a_commit_without_markers_then_rows_elsewhere_are_committed_too(
    mirrored: MirroredTopic, target: KafkaCluster, leave_out: LeaveOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirrored.create(records(300))
    route = {"A->B.mirror.transform.stamp.topic": "if(rand() < 0.5, 'one', topic)"}
    flow = mirrored.flow({**WITH_CHANCE, **route})
    elsewhere = f"{mirrored.name}-else"
    runner = TransformHere(
        marked, exact=False, route=lambda value: (elsewhere if (value or b"")[-1] % 2 else None, None)
    )
    leave_out(lambda partition: partition.topic == elsewhere)
    died(flow, runner)
    monkeypatch.undo()

    report = flow.run(runner=runner)

    assert (report.errors, report.records) == ((), 0)
    found = [
        each for topic in (mirrored.remote, elsewhere) for each in consume(target, topic, isolation="read_committed")
    ]
    assert len(found) == 300
    assert len({(each.value or b"").split(b"#")[0] for each in found}) == 300


def test_given_a_fence_whose_marker_is_left_out_then_the_partition_is_fenced_again(
    mirrored: MirroredTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, here, there = f"tests-{mirrored.name}", TopicPartition(mirrored.name, 0), TopicPartition(mirrored.name, 1)
    create_topic(mirrored.target, mirrored.name, partitions=2)
    add = Producers.add_to_transaction
    asked: list[list[TopicPartition]] = []

    async def add_without_one(
        self: Producers, name: str, identity: ProducerIdentity, partitions: Any, *, deadline: float
    ) -> None:
        asked.append(list(partitions))
        await add(self, name, identity, asked[-1] if len(asked) > 1 else [here], deadline=deadline)

    monkeypatch.setattr(Producers, "add_to_transaction", add_without_one)
    where = Where(flow="A->B")

    async def scene(client: RawClient) -> tuple[ProducerIdentity, dict[TopicPartition, int]]:
        identity = await fence_name(client, name, [here, there], retry_seconds=20, where=where)
        known = await producer_states(client, [here, there], retry_seconds=20, where=where)
        return identity, {each: states[identity.producer_id].epoch for each, states in known.items()}

    async def connected() -> tuple[ProducerIdentity, dict[TopicPartition, int]]:
        servers = tuple(mirrored.target.bootstrap_servers.split(","))
        async with open_clients(Connection("B", servers)) as (client,):
            return await scene(client)

    identity, epochs = asyncio.run(connected())

    assert asked == [[here, there], [there]]
    # Both refuse all that came before; the second one has the newer marker.
    assert epochs[here] < epochs[there] == identity.epoch - 1


def died(flow: Flow, runner: TransformHere) -> None:
    """Run the flow until all is committed, and no further."""

    def dies_at_the_end(job: CopyJob) -> list[PartitionResult]:
        runner(job)
        raise Killed

    with pytest.raises(Killed):
        flow.run(runner=dies_at_the_end)
