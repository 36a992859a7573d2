"""Realistic input for the demo: a shop's topics with keys, headers, old timestamps, every codec, tombstones,
transactions and a consumer group in the middle of its partitions.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not marked so for type checkers
    AdminClient,
    NewTopic,
    OffsetSpec,
)

#: Called with the number of records written since the last call.
Progress = Callable[[int], None]
Header = tuple[str, str | bytes | None]

GROUP = "billing"
_DAY_MS = 86_400_000
_HISTORY_DAYS = 30
_WAIT_SECONDS = 30.0
_TRANSACTION_RECORDS = 500
#: Syslog's number, as librdkafka takes it.
_ERRORS_ONLY = 3


@dataclass(frozen=True, slots=True)
class DemoTopic:
    """One topic of the shop and its share of the records."""

    name: str
    partitions: int
    codec: str
    share: float
    #: With the default retention of a week, records with old timestamps would be deleted at once.
    configs: dict[str, str] = field(default_factory=lambda: {"retention.ms": "-1"})
    #: Every tenth record deletes its key.
    tombstones: bool = False
    #: Written in transactions, every third of which is aborted.
    transactional: bool = False

    @property
    def dense(self) -> bool:
        """True if every offset holds a record that stays."""
        return not self.transactional and self.configs.get("cleanup.policy") != "compact"


TOPICS = (
    DemoTopic("orders", 4, "lz4", 0.30),
    DemoTopic("payments", 3, "zstd", 0.20),
    DemoTopic("clicks", 4, "none", 0.20),
    DemoTopic("shipments", 3, "snappy", 0.12),
    DemoTopic("invoices", 2, "gzip", 0.08),
    DemoTopic("customers", 2, "lz4", 0.06, {"cleanup.policy": "compact"}, tombstones=True),
    DemoTopic("settlements", 2, "zstd", 0.04, transactional=True),
)


@dataclass(frozen=True, slots=True)
class Order:
    """One record to write."""

    key: str
    value: bytes | None
    headers: list[Header]
    timestamp_ms: int


def create_topics(bootstrap: str) -> None:
    """Create the shop's topics if they do not exist yet."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": _ERRORS_ONLY})
    existing = admin.list_topics(timeout=_WAIT_SECONDS).topics
    missing = [
        NewTopic(topic.name, num_partitions=topic.partitions, replication_factor=1, config=topic.configs)
        for topic in TOPICS
        if topic.name not in existing
    ]
    for future in admin.create_topics(missing).values() if missing else ():
        future.result(timeout=_WAIT_SECONDS)


def write_orders(bootstrap: str, total: int, progress: Progress) -> dict[str, int]:
    """Write about `total` records over all topics; return the committed records of each topic.

    It can be repeated: the same keys are used again, like returning customers.
    """
    seed = time.time_ns()
    written = {}
    for topic in TOPICS:
        count = max(int(total * topic.share), 10 * topic.partitions)
        orders = _orders(topic, count, random.Random(f"{topic.name}-{seed}"))
        write = _write_transactions if topic.transactional else _write_plain
        written[topic.name] = write(bootstrap, topic, orders, progress)
    return written


def commit_group(bootstrap: str) -> dict[int, int]:
    """Commit offsets of the group `billing` in the middle of every partition of `orders`; return them."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": _ERRORS_ONLY})
    orders = TOPICS[0]
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    specs = {TopicPartition(orders.name, number): latest for number in range(orders.partitions)}
    middle = {
        place.partition: future.result(timeout=_WAIT_SECONDS).offset // 2
        for place, future in admin.list_offsets(specs).items()
    }
    offsets = [TopicPartition(orders.name, number, offset) for number, offset in middle.items()]
    for future in admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP, offsets)]).values():
        future.result(timeout=_WAIT_SECONDS)
    return middle


def _orders(topic: DemoTopic, count: int, chance: random.Random) -> Iterator[Order]:
    now = int(time.time() * 1000)
    step = _HISTORY_DAYS * _DAY_MS / count
    for number in range(count):
        customer = chance.randrange(5_000)
        deleted = topic.tombstones and number % 10 == 9
        order_id = chance.getrandbits(48)
        value = None if deleted else _document(topic.name, order_id, customer, chance)
        yield Order(
            key=f"customer-{customer:05d}" if topic.tombstones else f"order-{order_id:012x}",
            value=value,
            headers=[
                ("trace-id", b"%032x" % chance.getrandbits(128)),
                ("origin", b"shop-%d" % (customer % 7)),
                ("campaign", None if number % 3 else b"autumn"),
            ],
            timestamp_ms=now - _HISTORY_DAYS * _DAY_MS + int(number * step),
        )


def _document(kind: str, order_id: int, customer: int, chance: random.Random) -> bytes:
    document = {
        "kind": kind,
        "order": f"{order_id:012x}",
        "customer": customer,
        "amount_cents": chance.randrange(100, 50_000),
        "currency": ("EUR", "USD", "CHF")[customer % 3],
        "items": [{"sku": f"SKU-{chance.randrange(2_000):04d}", "count": chance.randrange(1, 4)} for _ in range(2)],
        "note": "Lieferung bis zur Tür, bitte zweimal klingeln",
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _producer(bootstrap: str, topic: DemoTopic, **more: object) -> Producer:
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            # Errors that librdkafka recovers from are not shown.
            "log_level": _ERRORS_ONLY,
            "compression.type": topic.codec,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 20,
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": 200_000,
            **more,
        }
    )


def _write_plain(bootstrap: str, topic: DemoTopic, orders: Iterator[Order], progress: Progress) -> int:
    producer = _producer(bootstrap, topic)
    count = 0
    for order in orders:
        _produce(producer, topic, order)
        count += 1
        if count % 1000 == 0:
            progress(1000)
    _flush(producer, topic)
    progress(count % 1000)
    return count


def _write_transactions(bootstrap: str, topic: DemoTopic, orders: Iterator[Order], progress: Progress) -> int:
    """Abort every third transaction: a `read_committed` mirror must skip its records."""
    producer = _producer(bootstrap, topic, **{"transactional.id": f"demo-{topic.name}"})
    producer.init_transactions(_WAIT_SECONDS)
    committed = 0
    for number, chunk in enumerate(_chunks(orders, _TRANSACTION_RECORDS)):
        producer.begin_transaction()
        for order in chunk:
            _produce(producer, topic, order)
        if number % 3 == 1:
            producer.flush(_WAIT_SECONDS)
            producer.abort_transaction(_WAIT_SECONDS)
        else:
            producer.commit_transaction(_WAIT_SECONDS)
            committed += len(chunk)
        progress(len(chunk))
    return committed


def _chunks(orders: Iterator[Order], size: int) -> Iterator[list[Order]]:
    chunk: list[Order] = []
    for order in orders:
        chunk.append(order)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _produce(producer: Producer, topic: DemoTopic, order: Order) -> None:
    while True:
        try:
            producer.produce(
                topic.name, key=order.key, value=order.value, headers=order.headers, timestamp=order.timestamp_ms
            )
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return


def _flush(producer: Producer, topic: DemoTopic) -> None:
    left = producer.flush(_WAIT_SECONDS)
    if left:
        raise TimeoutError(f"{left} records of topic {topic.name} were not acknowledged in {_WAIT_SECONDS:.0f} s")
