"""Aborted and open transactions on the target: what no reader of committed records sees is not copied."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.mm2_formats import OffsetSync
from mirror_lib.cluster.topics.position_format import Position
from mirror_lib.cluster.topics.position_store import OffsetSyncWriter, PositionStore
from mirror_lib.config.topology import flow_topology, offset_syncs_topic
from mirror_lib.errors import OpenTransactionError
from mirror_lib.features.repair.map_rebuild import rebuild
from mirror_lib.features.repair.map_rebuild_plan import plan_rebuild
from mirror_lib.planning.flow_clusters import FlowClusters
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow
from tests.support.kafka import Record, consume, records, values
from tests.support.mirrored_topic import MirroredTopic
from tests.support.transforming import WITH_CHANCE, Killed, TransformHere, arrived, unchanged
from tests.support.verifying import verify

_TRANSACTIONAL = {"B.exactly.once.source.support": "enabled", "mirror.run.lease.seconds": "3"}


def mirror_maker(flow: Flow, topic: str, *, copied: int, synced: int = 0) -> None:
    """What MirrorMaker 2 stores once a transaction is committed."""
    connection = Connection.from_settings(flow.config.clients.offset_syncs_producer)
    with OffsetSyncWriter(connection, offset_syncs_topic(flow.config)) as writer:
        writer.write([OffsetSync(topic, 0, synced, synced)])
    internal = Connection.from_settings(flow.config.clients.target_internal)
    with PositionStore(internal, flow.config.offset_storage_topic, "A") as store:
        store.write([Position(topic, 0, copied - 1)])


@contextmanager
def transaction_of(pair: KafkaPair, topic: str, written: Sequence[Record], name: str) -> Iterator[Producer]:
    """An open transaction with these records; aborted in the end, if it is still open."""
    producer = Producer({"bootstrap.servers": pair.target.bootstrap_servers, "transactional.id": name, "log_level": 3})
    producer.init_transactions(30)
    producer.begin_transaction()
    for each in written:
        producer.produce(
            topic,
            value=each.value,
            key=each.key,
            headers=list(each.headers),
            timestamp=each.timestamp_ms or 0,
            partition=0,
        )
    producer.flush(30)
    yield producer


@pytest.fixture
def taken_over(mirrored: MirroredTopic) -> tuple[Flow, list[Record]]:
    """A source of 100 records, of which MirrorMaker 2 has copied 40 in a transaction that is committed."""
    mirrored.create()
    mirrored.create_remote()
    written = mirrored.produce(records(100))
    flow = mirrored.flow({"mirror.retry.max.seconds": "4"})
    flow.sync_topics()
    with transaction_of(mirrored.pair, mirrored.remote, records(40), f"mm2-{mirrored.name}") as producer:
        producer.commit_transaction(30)
    mirror_maker(flow, mirrored.name, copied=40)
    return flow, written


def test_given_mirror_makers_last_transaction_was_aborted_when_taken_over_then_its_records_are_copied(
    mirrored: MirroredTopic, taken_over: tuple[Flow, list[Record]]
) -> None:
    flow, written = taken_over
    with transaction_of(mirrored.pair, mirrored.remote, records(30, start=40), f"mm2-{mirrored.name}") as producer:
        producer.abort_transaction(30)

    report = flow.run()

    assert report.errors == ()
    assert (report.records, report.results[0].recovered) == (60, 40)
    assert values(mirrored.copied()) == values(written)
    assert verified(flow) == {"EQUAL"}
    assert rebuilt(flow) == [(100, 0)]


def test_given_a_transaction_that_stays_open_when_taken_over_then_its_producer_is_named_and_the_end_is_waited_for(
    mirrored: MirroredTopic, taken_over: tuple[Flow, list[Record]]
) -> None:
    flow, written = taken_over
    with transaction_of(mirrored.pair, mirrored.remote, records(30, start=40), f"mm2-{mirrored.name}") as producer:
        (error,) = flow.run().errors
        producer.abort_transaction(30)

    report = flow.run()

    assert isinstance(error, OpenTransactionError)
    assert f"mm2-{mirrored.name}" in error.what
    assert "offset 41" in error.what
    assert (error.where.topic, error.where.partition) == (mirrored.name, 0)
    assert "kafka-transactions.sh" in error.action
    assert report.errors == ()
    assert values(mirrored.copied()) == values(written)


def test_given_a_transaction_that_ends_while_the_take_over_waits_then_its_marker_is_no_foreign_record(
    mirrored: MirroredTopic, taken_over: tuple[Flow, list[Record]]
) -> None:
    flow, written = taken_over
    with transaction_of(mirrored.pair, mirrored.remote, records(30, start=40), f"mm2-{mirrored.name}") as producer:
        ending = threading.Timer(1.5, producer.abort_transaction, [30])
        ending.start()
        report = flow.run()
        ending.join()

    assert report.errors == ()
    assert values(mirrored.copied()) == values(written)


@pytest.mark.parametrize("third", ["in transactions", "without transactions"])
def test_given_a_plain_run_and_one_in_transactions_that_died_when_run_again_then_each_record_is_there_once(
    mirrored: MirroredTopic, third: str
) -> None:
    written = mirrored.create(records(600))
    settings = {**WITH_CHANCE, "mirror.batch.max.bytes": "4096", "mirror.run.lease.seconds": "3"}
    transactional = mirrored.flow(settings)
    plain = mirrored.flow({**settings, "B.exactly.once.source.support": "disabled"})
    remote = mirrored.remote
    dies(
        plain,
        TransformHere(unchanged, rows_at_once=50, dies_after=230, before_death=arrived(mirrored.target, remote, 100)),
    )
    dies(
        transactional,
        TransformHere(unchanged, rows_at_once=50, dies_after=500, before_death=arrived(mirrored.target, remote, 300)),
    )

    report = (transactional if third == "in transactions" else plain).run(runner=TransformHere(unchanged))

    assert report.errors == ()
    assert values(consume(mirrored.target, remote)) == values(written)


def test_given_a_transform_was_removed_when_its_transactions_are_taken_over_raw_then_their_writer_is_fenced(
    mirrored: MirroredTopic,
) -> None:
    written = mirrored.create(records(300))
    transform = {
        "A->B.mirror.transforms": "stamp",
        "A->B.mirror.transform.stamp.partition": "cast(rand() * 1 as int)",
        "mirror.batch.max.bytes": "4096",
    }
    settings = {**_TRANSACTIONAL, "mirror.run.lease.seconds": "60", "mirror.retry.max.seconds": "10"}
    transformed = mirrored.flow({**settings, **transform})
    remote = mirrored.remote
    dies(
        transformed,
        TransformHere(
            unchanged,
            exact=False,
            rows_at_once=50,
            dies_after=250,
            before_death=arrived(mirrored.target, remote, 100),
            route=lambda _: (None, 0),
        ),
    )

    report = mirrored.flow(settings).run()

    assert report.errors == ()
    # The lease was not waited out: the broker refuses the writer before.
    assert report.seconds < 30
    assert values(consume(mirrored.target, remote)) == values(written)


def verified(flow: Flow) -> set[str]:
    """The verdicts of a verification."""
    return {str(each.verdict).upper() for each in verify(flow).verdicts}


def rebuilt(flow: Flow) -> list[tuple[int, int]]:
    """What the logs alone tell of each partition: records that are mapped, and those that contradict the ledger."""
    with FlowClusters.connect(flow.config) as clusters:
        plans = plan_rebuild(flow.config, flow_topology(flow.config), clusters)
        found = rebuild(flow.config, plans, clusters, flow.ledger, lambda _: None)
    assert [each.error for each in found] == [None] * len(found)
    return [(each.match.columns.records, each.difference.contradicting) for each in found]  # type: ignore[union-attr]


def dies(flow: Flow, runner: TransformHere) -> None:
    with pytest.raises(Killed):
        flow.run(runner=runner)
