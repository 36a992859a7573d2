"""Every kind of source with every event. The table: `./run integration FOLDER -k kinds_and_events -v`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from mirror_lib.features.demo.broker import KafkaCluster
from tests.support.brokers.compaction import create_compacted, forget, put
from tests.support.console import Console
from tests.support.cutovers import IDENTITY, migration
from tests.support.flows import Flow, copy_here
from tests.support.interruptions import asleep, claimed, interrupted, killed_after, up_to
from tests.support.kafka import (
    add_partitions,
    consume,
    create_topic,
    delete_records,
    open_transaction,
    produce,
    records,
    transaction,
    watermarks,
)
from tests.support.mirrored_topic import MirroredTopic
from tests.support.waiting import wait_for

#: Writes to a partition of a topic.
_Write = Callable[[KafkaCluster, str, int], None]
_COMMITTED = {f"{alias}.consumer.isolation.level": "read_committed" for alias in "AB"}


def _plain(cluster: KafkaCluster, topic: str, partition: int) -> None:
    for codec in ("none", "lz4", "zstd", "gzip"):
        produce(cluster, topic, records(3, partition=partition), compression_type=codec)


def _in_transactions(cluster: KafkaCluster, topic: str, partition: int) -> None:
    """Two committed ones with an aborted one between them, then a record outside."""
    for count, commit in ((3, True), (2, False), (1, True)):
        end = watermarks(cluster, topic, partition)[1]
        transaction(cluster, topic, [b"in a transaction"] * count, commit=commit, partition=partition)
        # The marker comes shortly after the answer.
        wait_for(lambda end=end, count=count: watermarks(cluster, topic, partition)[1] == end + count + 1)  # type: ignore[misc]
    produce(cluster, topic, records(1, partition=partition))


def _interleaved(cluster: KafkaCluster, topic: str, partition: int) -> None:
    """Transactions of three producers, in and over each other; the last one is aborted."""
    end = watermarks(cluster, topic, partition)[1]
    writers = [
        open_transaction(cluster, topic, [b"%d" % number] * 2, name=f"{topic}-{number}", partition=partition)
        for number in range(3)
    ]
    writers[1].commit_transaction(30)
    produce(cluster, topic, records(1, partition=partition))
    writers[0].commit_transaction(30)
    writers[2].abort_transaction(30)
    wait_for(lambda: watermarks(cluster, topic, partition)[1] == end + 10)


def _compacted(cluster: KafkaCluster, topic: str, partition: int) -> None:
    for number in range(4):
        put(cluster, topic, {f"key-{each}": str(number) for each in range(4)}, partition=partition)
    put(cluster, topic, {"gone": None}, partition=partition)
    forget(cluster, topic, ["gone"], partition=partition)


@dataclass(frozen=True)
class Kind:
    """A kind of source."""

    write: _Write
    settings: Mapping[str, str] = field(default_factory=dict)
    is_compacted: bool = False
    begins_later: bool = False

    def create(self, mirrored: MirroredTopic) -> None:
        """Create the topic with some records."""
        if self.is_compacted:
            create_compacted(mirrored.source, mirrored.name)
            # One that does not compact itself while it is compared.
            create_topic(mirrored.target, mirrored.name)
        else:
            create_topic(mirrored.source, mirrored.name)
        if self.begins_later:
            produce(mirrored.source, mirrored.name, records(30))
            delete_records(mirrored.source, mirrored.name, before=30)
        self.write(mirrored.source, mirrored.name, 0)


KINDS = {
    "plain": Kind(_plain),
    "begins-later": Kind(_plain, begins_later=True),
    "transactions": Kind(_in_transactions),
    "committed": Kind(_in_transactions, _COMMITTED),
    "interleaved": Kind(_interleaved, _COMMITTED),
    "compacted": Kind(_compacted, is_compacted=True),
}


@pytest.fixture
def flow(mirrored: MirroredTopic, kind: Kind) -> Flow:
    kind.create(mirrored)
    common = {"replication.policy.class": IDENTITY, "mirror.run.lease.seconds": "3", "mirror.offsets": "same"}
    return mirrored.flow({**common, **kind.settings})


def _kill(mirrored: MirroredTopic, kind: Kind, flow: Flow) -> None:
    start, end = watermarks(mirrored.source, mirrored.name)
    interrupted(flow, killed_after(up_to((start + end) // 2)))
    kind.write(mirrored.source, mirrored.name, 0)


def _zombie(mirrored: MirroredTopic, kind: Kind, flow: Flow) -> None:
    job = asleep(flow)
    assert flow.run().errors == ()
    before = watermarks(mirrored.target, mirrored.name)
    for seconds_ago in (0, 60):
        (result,) = copy_here(claimed(job, seconds_ago=seconds_ago))
        assert result.error is not None
        assert watermarks(mirrored.target, mirrored.name) == before
    kind.write(mirrored.source, mirrored.name, 0)


def _retention(mirrored: MirroredTopic, kind: Kind, flow: Flow) -> None:
    assert flow.run().errors == ()
    kind.write(mirrored.source, mirrored.name, 0)
    end = watermarks(mirrored.source, mirrored.name)[1]
    kind.write(mirrored.source, mirrored.name, 0)
    delete_records(mirrored.source, mirrored.name, before=end)
    (error,) = flow.run().errors
    assert error.reason == "retention-gap"
    assert Console(flow.path).say("gaps", "accept", "--all", "--yes").exit_code == 0


def _growth(mirrored: MirroredTopic, kind: Kind, flow: Flow) -> None:
    assert flow.run().errors == ()
    add_partitions(mirrored.source, mirrored.name, 2)
    for number in range(2):
        kind.write(mirrored.source, mirrored.name, number)


_EVENTS = {"kill": _kill, "zombie": _zombie, "retention": _retention, "growth": _growth}
#: Compacted topics have no retention here.
_ALL = {
    f"{name}-{what}": (kind, event)
    for name, kind in KINDS.items()
    for what, event in _EVENTS.items()
    if not (kind.is_compacted and event is _retention)
}


@pytest.mark.parametrize(("kind", "event"), _ALL.values(), ids=_ALL)
def test_the_copy_is_at_the_same_numbers(
    mirrored: MirroredTopic, kind: Kind, flow: Flow, event: Callable[[MirroredTopic, Kind, Flow], None]
) -> None:
    event(mirrored, kind, flow)

    assert flow.run().errors == ()

    assert_same(mirrored, kind)


#: The compacted one forgets deletions within a second, for which a gate stops cutovers.
_MOVED = {name: kind for name, kind in KINDS.items() if not kind.is_compacted}


@pytest.mark.parametrize("kind", _MOVED.values(), ids=_MOVED)
def test_a_cutover_and_a_failback_keep_the_numbers(mirrored: MirroredTopic, kind: Kind) -> None:
    kind.create(mirrored)
    moving = migration(mirrored.folder, mirrored.pair, mirrored.name, {"mirror.offsets": "same", **kind.settings})
    assert moving.there.run().errors == ()
    moving.finish(moving.define("there", mirrored.name))
    assert_same(mirrored, kind)
    kind.write(mirrored.target, mirrored.name, 0)
    assert moving.back.run().errors == ()
    moving.finish(moving.fail_back("there"))
    assert_same(mirrored, kind)
    kind.write(mirrored.source, mirrored.name, 0)
    assert moving.there.run().errors == ()

    assert_same(mirrored, kind)
    moving.ledger.close()


def assert_same(mirrored: MirroredTopic, kind: Kind) -> None:
    """What the source still has is on the target at its offset, and both logs have the same ends."""
    isolation = "read_committed" if kind.settings else "read_uncommitted"
    wanted = consume(mirrored.source, mirrored.name, isolation=isolation)
    found = consume(mirrored.target, mirrored.name, isolation=isolation)
    starts = {number: watermarks(mirrored.source, mirrored.name, number)[0] for number in {e.partition for e in wanted}}
    held = [each for each in found if (each.offset or 0) >= starts.get(each.partition, 0)]
    if kind.is_compacted:
        # The source's cleaner goes on.
        held = [each for each in held if each in wanted]
    assert held == wanted
    for number in starts:
        ends = [watermarks(cluster, mirrored.name, number)[1] for cluster in (mirrored.source, mirrored.target)]
        assert ends[0] == ends[1]
