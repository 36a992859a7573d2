"""Open transactions of the source: records that a flow of committed records cannot see are lag, and have a reason."""

from __future__ import annotations

import asyncio
import json
import struct
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AlterConfigOpType
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.features.forecast.plan import forecast_flow
from mirror_lib.features.metrics.observation import observe_flow
from mirror_lib.features.metrics.queries import MetricsQueries
from mirror_lib.past_runs.outlooks import Outlook
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.transaction_checks import set_verification
from tests.support.clusters import KafkaCluster, KafkaPair
from tests.support.flows import Flow
from tests.support.kafka import Record, produce, values
from tests.support.mirrored_topic import MirroredTopic
from tests.support.records.record_batches import TRANSACTIONAL, SourceRecord, batch, sealed

_REASON = "source-transaction-open"
_HOUR_MS = 3_600_000
#: Of the producer's epoch in a batch, with the first sequence number behind it.
_EPOCH_AT = 51


@pytest.fixture
def flow(mirrored: MirroredTopic) -> Flow:
    mirrored.create(configs={"retention.ms": "86400000"})
    return mirrored.flow({"A.consumer.isolation.level": "read_committed"})


@pytest.fixture
def source(kafka_pair: KafkaPair) -> Iterator[KafkaCluster]:
    """Brokers that append what the coordinator has not heard of."""
    set_verification(kafka_pair.source, AlterConfigOpType.SET)
    yield kafka_pair.source
    set_verification(kafka_pair.source, AlterConfigOpType.DELETE)


def begun(cluster: KafkaCluster, topic: str, timestamp_ms: int) -> Producer:
    """A producer whose transaction with one record is open, with 500 committed records behind it."""
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": f"tests-{topic}", "log_level": 3}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, value=b"inside", partition=0, timestamp=timestamp_ms)
    producer.flush(30)
    produce(cluster, topic, [Record(value=b"behind-%d" % number) for number in range(500)])
    return producer


def hang(cluster: KafkaCluster, topic: str, timestamp_ms: int) -> int:
    """Begin a transaction of which no coordinator hears, with 500 records behind it; returns its producer id."""

    async def begin() -> int:
        async with open_clients(Connection("A", tuple(cluster.bootstrap_servers.split(",")))) as (client,):
            name = f"hanging-{topic}"
            identity = await client.producers.init_producer_id(name, deadline=time.monotonic() + 30)
            await client.refresh_leaders([topic])
            record = SourceRecord(0, timestamp_ms)
            raw = bytearray(batch([record], attributes=TRANSACTIONAL, producer_id=identity.producer_id))
            struct.pack_into(">hi", raw, _EPOCH_AT, identity.epoch, 0)
            leader = client.leader(TopicPartition(topic, 0))
            assert leader is not None
            written = [(topic, 0, sealed(raw))]
            (answer,) = await client.produce(leader, written, timeout_ms=10_000, transactional_id=name)
            assert answer.error_code == 0
            return identity.producer_id

    number = asyncio.run(begin())
    produce(cluster, topic, [Record(value=b"behind-%d" % number) for number in range(500)])
    return number


def abort(cluster: KafkaCluster, topic: str) -> None:
    """Have the marker of such a transaction written, as `kafka-transactions.sh abort` does."""

    async def end() -> None:
        async with open_clients(Connection("A", tuple(cluster.bootstrap_servers.split(",")))) as (client,):
            name, deadline = f"hanging-{topic}", time.monotonic() + 30
            identity = await client.producers.init_producer_id(name, deadline=deadline)
            await client.producers.add_to_transaction(name, identity, [TopicPartition(topic, 0)], deadline=deadline)
            await client.producers.end_transaction(name, identity, commit=False, deadline=deadline)

    asyncio.run(end())


def hour_ago() -> int:
    return int(time.time() * 1000) - _HOUR_MS


def command(name: str, flow: Flow) -> tuple[int, dict[str, Any], str]:
    """Exit code, document and text of a command."""
    arguments = [name, "--config", str(flow.path), "--flow", "A->B"]
    told = CliRunner().invoke(app, [*arguments, "--json"])
    return told.exit_code, json.loads(told.stdout), CliRunner().invoke(app, arguments).output


def test_records_behind_an_open_transaction_are_lag_and_no_alarm(mirrored: MirroredTopic, flow: Flow) -> None:
    mirrored.produce([Record(value=b"before")])
    # What the records' own times say is not when the transaction began.
    first = hour_ago()
    producer = begun(mirrored.source, mirrored.name, first)

    report = flow.run()
    seen = observe_flow(flow.config, flow.ledger)
    planned = plan_flow(flow.config, RunOptions(), flow.ledger)
    code, document, text = command("plan", flow)

    assert (report.exit_code, report.records, report.warnings) == (0, 1, ())
    (row,) = seen.partitions
    assert (row.position, row.log_end, row.records_behind, row.reason) == (1, 502, 501, None)
    assert row.behind_since == datetime.fromtimestamp(first / 1000, UTC)
    assert row.detail == "501 offsets are hidden by a transaction that is open on the source from offset 1"
    # A day of retention, of which the first hidden record has used an hour.
    assert seen.flow.headroom_seconds == pytest.approx(23 * 3600, abs=6 * 3600)
    assert (seen.flow.lagging, seen.flow.stalled) == (1, 0)
    (hidden,) = planned.hidden
    assert (planned.partitions, planned.idle, planned.problems) == ((), 0, ())
    assert hidden.records.transactional_id == f"tests-{mirrored.name}"
    assert time.time() * 1000 - (hidden.records.open_since or 0) < 60_000
    assert (code, document["hidden"][0]["offsets"]) == (0, 501)
    assert "501 offsets in 1 partition are hidden by open transactions" in text

    producer.commit_transaction(30)
    assert (flow.run().records, observe_flow(flow.config, flow.ledger).flow.records_behind) == (501, 0)


def test_a_hanging_transaction_stops_its_partition_with_a_reason_and_what_was_before_it_is_copied(
    mirrored: MirroredTopic, source: KafkaCluster, flow: Flow
) -> None:
    produce(source, mirrored.name, [Record(value=b"before")])
    number = hang(source, mirrored.name, hour_ago())

    report = flow.run()

    assert values(mirrored.copied()) == [b"before"]
    assert (report.records, report.exit_code) == (1, 3)
    (error,) = report.errors
    assert error.reason == _REASON
    assert f"producer id {number}" in error.what
    assert "501 offsets" in error.what
    assert f"abort --topic {mirrored.name} --partition 0 --start-offset 1" in error.action
    for name in ("plan", "observe"):
        code, _, text = command(name, flow)
        assert (code, _REASON in text) == (3, True)
    seen = observe_flow(flow.config, flow.ledger)
    (row,) = seen.partitions
    assert (row.records_behind, row.reason, row.outlook) == (501, _REASON, Outlook.WILL_BE_LOST.value)
    assert (seen.flow.stalled, seen.flow.records_behind) == (1, 501)
    (figures,) = MetricsQueries(flow.ledger).figures(["A->B"])
    assert figures.stalled_behind == {_REASON: 501}
    (expected,) = forecast_flow(flow.config, RunOptions(), flow.ledger).partitions
    assert "hidden by a transaction" in expected.reason
    # The run's own row, for `mirror status`.
    (run,) = flow.ledger.runs("A->B", 1)
    assert (run.error or {})["reason"] == _REASON

    abort(source, mirrored.name)
    last = flow.run()
    assert (last.records, last.exit_code) == (500, 0)
