"""What brokers refuse or hide for a while: the target stays a prefix of the source, and nothing untrue is told."""

from __future__ import annotations

import time
from pathlib import Path

from confluent_kafka import Producer

from mirror_lib.errors import RecordRefusedError
from tests.support.clusters import KafkaPair
from tests.support.flows import pair_flow
from tests.support.kafka import Record, consume, create_topic, produce, records, set_config, watermarks

_DAY_MS = 86_400_000


def test_nothing_that_follows_a_refused_first_record_reaches_the_target(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    remote = f"A.{topic_name}"
    create_topic(kafka_pair.source, topic_name, configs={"message.timestamp.after.max.ms": str(30 * _DAY_MS)})
    create_topic(kafka_pair.target, remote, configs={"message.timestamp.after.max.ms": str(_DAY_MS)})
    late = Record(value=b"from the future", timestamp_ms=int(time.time() * 1000) + 10 * _DAY_MS)
    written = produce(kafka_pair.source, topic_name, [late, *records(30)], batch_num_messages=1, linger_ms=0)
    # Each record in a batch and a request of its own.
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name).with_settings(batch_passthrough_min_bytes=0)

    report = flow.run()

    (error,) = report.errors
    assert isinstance(error, RecordRefusedError)
    assert error.where.offset == 0
    assert watermarks(kafka_pair.target, remote)[1] == 0

    set_config(kafka_pair.target, remote, "message.timestamp.after.max.ms", str(30 * _DAY_MS))
    assert flow.run().errors == ()
    assert consume(kafka_pair.target, remote) == written


def test_a_flow_that_begins_to_hide_open_transactions_waits_for_them(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(kafka_pair.source, topic_name)
    producer = Producer(
        {"bootstrap.servers": kafka_pair.source.bootstrap_servers, "transactional.id": f"tests-{topic_name}"}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic_name, value=b"inside", partition=0)
    producer.flush(30)
    assert pair_flow(tmp_path, kafka_pair, topics=topic_name).run().records == 1
    committed = {"A.consumer.isolation.level": "read_committed"}
    flow = pair_flow(tmp_path, kafka_pair, topics=topic_name, settings=committed)

    # The position is behind what such a reader sees, and yet nothing was truncated.
    assert flow.run().errors == ()

    producer.commit_transaction(30)
    produce(kafka_pair.source, topic_name, [Record(value=b"after")])
    assert flow.run().records == 1
    copied = consume(kafka_pair.target, f"A.{topic_name}")
    assert [record.value for record in copied] == [b"inside", b"after"]
