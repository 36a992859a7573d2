"""What brokers refuse or hide for a while: the target stays a prefix of the source, and nothing untrue is told."""

from __future__ import annotations

import time

from mirror_lib.errors import RecordRefusedError
from tests.support.kafka import Record, consume, open_transaction, records, set_config, values, watermarks
from tests.support.mirrored_topic import MirroredTopic

_DAY_MS = 86_400_000


def test_nothing_that_follows_a_refused_first_record_reaches_the_target(mirrored: MirroredTopic) -> None:
    remote = mirrored.remote
    mirrored.create(configs={"message.timestamp.after.max.ms": str(30 * _DAY_MS)})
    mirrored.create_remote(configs={"message.timestamp.after.max.ms": str(_DAY_MS)})
    late = Record(value=b"from the future", timestamp_ms=int(time.time() * 1000) + 10 * _DAY_MS)
    written = mirrored.produce([late, *records(30)], batch_num_messages=1, linger_ms=0)
    # Each record in a batch and a request of its own.
    flow = mirrored.flow().with_settings(batch_passthrough_min_bytes=0)

    report = flow.run()

    (error,) = report.errors
    assert isinstance(error, RecordRefusedError)
    assert error.where.offset == 0
    assert watermarks(mirrored.target, remote)[1] == 0

    set_config(mirrored.target, remote, "message.timestamp.after.max.ms", str(30 * _DAY_MS))
    assert flow.run().errors == ()
    assert consume(mirrored.target, remote) == written


def test_a_flow_that_begins_to_hide_open_transactions_waits_for_them(mirrored: MirroredTopic) -> None:
    mirrored.create()
    producer = open_transaction(mirrored.source, mirrored.name, [b"inside"])
    assert mirrored.flow().run().records == 1
    committed = {"A.consumer.isolation.level": "read_committed"}
    flow = mirrored.flow(committed)

    # The position is behind what such a reader sees, and yet nothing was truncated.
    assert flow.run().errors == ()

    producer.commit_transaction(30)
    mirrored.produce([Record(value=b"after")])
    assert flow.run().records == 1
    copied = mirrored.copied()
    assert values(copied) == [b"inside", b"after"]
