"""Cutovers between the shared clusters as people run them, with copies and comparisons in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupState, KafkaError, KafkaException, TopicPartition

from mirror_lib.config.loader import load
from mirror_lib.config.model import MirrorConfig
from mirror_lib.features.cutover.context import CutoverContext, Engine
from mirror_lib.features.cutover.machine import Machine, Progress, StepConfirmation, create, progress
from mirror_lib.features.cutover.model import Attempt, CutoverDefinition, CutoverState, Gate, Step, StepState
from mirror_lib.features.cutover.opening import failback_of, open_cutover
from mirror_lib.features.cutover.order import last_attempts
from mirror_lib.features.cutover.records import attempts_of
from mirror_lib.features.cutover.states.situation import Situation, situation_of
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.verify.raw.local import run_locally
from mirror_lib.ledger.store import Ledger
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, copy_here, pair_flow
from tests.support.kafka import Record, admin, consume, create_topic, produce
from tests.support.waiting import wait_for

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
_COORDINATOR_COMES = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)
HERE = Engine(copy=lambda: copy_here, compare=lambda _: run_locally(1))


@dataclass
class Migration:
    """Both flows between two clusters that keep topics' names, and what is done with them."""

    pair: KafkaPair
    there: Flow
    config: MirrorConfig

    @property
    def ledger(self) -> Ledger:
        """The ledger of both flows."""
        return self.there.ledger

    @property
    def back(self) -> Flow:
        """The flow from the target to the source."""
        return Flow(self.config.flow("B->A"), self.ledger, self.there.path)

    def define(self, name: str, topics: str, *, flow: str = "A->B", **settings: Any) -> CutoverDefinition:
        """A cutover that does not wait longer than a test wants to."""
        quick: dict[str, Any] = {"quiet_seconds": 0.5, "drain_seconds": 20.0, "watch_seconds": 0.0}
        definition = CutoverDefinition(name=name, flow=flow, topics=(topics,), **{**quick, **settings})
        create(self.ledger, definition, by="test", context=self.context(definition))
        return definition

    def context(self, definition: CutoverDefinition, engine: Engine | None = HERE) -> CutoverContext:
        """What the steps work with."""
        last = attempts_of(self.ledger, definition.name)
        return CutoverContext(
            definition=definition, config=self.config, ledger=self.ledger, by="test", engine=engine, last=last
        )

    def run(
        self,
        definition: CutoverDefinition,
        *,
        until: Step | None = None,
        wait: float = 0.0,
        agrees_to: Step | None = None,
        by: str = "ann",
    ) -> Progress:
        """Take it on, as a process of its own would; with the word of a person about what the last one has asked."""
        confirmation = None if agrees_to is None else StepConfirmation(agrees_to, by)
        return Machine(self.context(definition)).run(until=until, wait_seconds=wait, confirmation=confirmation)

    def run_to_the_end(self, definition: CutoverDefinition, *, until: Step | None = None) -> Progress:
        """Take it on, with a person who says yes to everything."""
        done = self.run(definition, until=until)
        while waiting := [attempt.step for attempt in done.attempts if attempt.state is StepState.WAITING]:
            done = self.run(definition, until=until, agrees_to=waiting[0])
        return done

    def finish(self, definition: CutoverDefinition) -> Progress:
        """Take it on to its end, which has to be a good one."""
        done = self.run_to_the_end(definition)
        assert done.state is CutoverState.FINISHED, [
            str(gate) for each in done.attempts for gate in each.gates if not gate.passed
        ]
        return done

    def fail_back(self, name: str, new_name: str | None = None, **settings: Any) -> CutoverDefinition:
        """Define the cutover that brings home what another one has moved."""
        back = replace(failback_of(self.config, self.ledger, name, new_name), **settings)
        create(self.ledger, back, by="test", context=self.context(back))
        return back

    def last(self, definition: CutoverDefinition, step: Step) -> Attempt:
        """The newest attempt at a step."""
        return last_attempts(self.where(definition).attempts)[step]

    def gates(self, definition: CutoverDefinition, step: Step) -> dict[str, Gate]:
        """The gates of the newest attempt at a step, by their names."""
        return {gate.name: gate for gate in self.last(definition, step).gates}

    def values(self, topic: str, *, target: bool = True) -> list[bytes]:
        """What a topic holds, in the order of the numbers."""
        cluster = self.pair.target if target else self.pair.source
        return sorted(record.value or b"" for record in consume(cluster, topic))

    def known(self, name: str) -> CutoverDefinition:
        """What a cutover is, as the ledger has it."""
        return open_cutover(self.ledger, name)

    def where(self, definition: CutoverDefinition) -> Progress:
        """Where it is."""
        return progress(self.ledger, definition)

    def present(self, name: str) -> Situation:
        """Who carries a cutover out, and what it asks."""
        return situation_of(self.ledger, name)


def migration(folder: Path, pair: KafkaPair, topics: str, settings: Mapping[str, str] | None = None) -> Migration:
    """Both flows for some topics: A->B copies, B->A leads back."""
    flow = pair_flow(
        folder,
        pair,
        topics=topics,
        settings={
            "replication.policy.class": IDENTITY,
            "B->A.enabled": "true",
            "B->A.topics": topics,
            "B->A.mirror.failback": "true",
            "A.offset.storage.replication.factor": "1",
            "A.offset.storage.partitions": "5",
            "checkpoints.topic.replication.factor": "1",
            "sync.group.offsets.enabled": "true",
            **(settings or {}),
        },
    )
    return Migration(pair, flow, load(flow.path))


@contextmanager
def moving_topic(
    folder: Path, pair: KafkaPair, topic: str, *, partitions: int, count: int = 100
) -> Iterator[Migration]:
    """Both flows for a topic of the source, which A->B has copied."""
    create_topic(pair.source, topic, partitions=partitions)
    produce(pair.source, topic, numbered(0, count, partitions))
    made = migration(folder, pair, topic)
    made.there.run()
    yield made
    made.ledger.close()


def commit(cluster: KafkaCluster, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """Let a group stand at some offsets, without members."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "log_level": 3})
    places = [TopicPartition(topic, number, offset) for number, offset in offsets.items()]
    stored: list[TopicPartition] = []

    def is_stored() -> bool:
        try:
            stored.extend(consumer.commit(offsets=places, asynchronous=False))
        except KafkaException as error:
            # A coordinator is elected at a group's first commit, and reads its log first.
            if error.args[0].code() not in _COORDINATOR_COMES:
                raise
            return False
        return True

    wait_for(is_stored, 60)
    for place in stored:
        assert place.error is None, place.error
    consumer.close()


def committed(cluster: KafkaCluster, group: str, topic: str, partitions: int) -> dict[int, int]:
    """Where a group stands; -1001 without a position."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "log_level": 3})
    found = consumer.committed([TopicPartition(topic, number) for number in range(partitions)], timeout=20)
    consumer.close()
    return {place.partition: place.offset for place in found}


class Reader:
    """A member of a group that reads and commits until it is stopped."""

    def __init__(self, cluster: KafkaCluster, group: str, *topics: str) -> None:
        """Joins at once."""
        self.values: list[bytes] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 3,
            }
        )
        self._consumer.subscribe(list(topics))
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def stop(self) -> list[bytes]:
        """Commit, leave, and tell what was read."""
        self._ended.set()
        self._thread.join(30)
        return self.values

    def _read(self) -> None:
        while not self._ended.is_set():
            for message in self._consumer.consume(500, 0.2):
                if message.error() is None:
                    self.values.append(message.value())
        if self.values:
            self._consumer.commit(asynchronous=False)
        self._consumer.close()


class Writer:
    """Writes numbered records, some at a time, until it is stopped."""

    def __init__(self, cluster: KafkaCluster, topic: str, partitions: int, start: int = 0) -> None:
        """Begins at once."""
        self._next, self._partitions = start, partitions
        self._cluster, self._topic = cluster, topic
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """Wait for what is under way; returns how many records were written, from number 0 on."""
        self._ended.set()
        self._thread.join(30)
        return self._next

    def _write(self) -> None:
        while not self._ended.wait(0.02):
            batch = [
                Record(b"%08d" % number, partition=number % self._partitions)
                for number in range(self._next, self._next + 20)
            ]
            produce(self._cluster, self._topic, batch)
            self._next += len(batch)


def numbers(*ranges: tuple[int, int]) -> list[bytes]:
    """The values of numbered records, [first, following) each, as `Migration.values` has them."""
    return sorted(b"%08d" % number for first, following in ranges for number in range(first, following))


def numbered(first: int, following: int, partitions: int = 1) -> list[Record]:
    """Records [first, following) of a `Writer`."""
    return [Record(b"%08d" % number, partition=number % partitions) for number in range(first, following)]


def has_members(cluster: KafkaCluster, group: str) -> bool:
    """Whether a group has members that are through with joining."""
    # The answer does not come without its client.
    client = admin(cluster)
    listed = client.list_consumer_groups(request_timeout=20).result(timeout=30).valid
    return any(each.group_id == group and each.state is ConsumerGroupState.STABLE for each in listed)
