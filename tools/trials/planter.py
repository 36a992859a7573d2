"""The project's own copying loop: an ordinary consumer and producer, with the damage that a trial names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, cycle, groupby
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from mirror_lib.features.demo.broker import KafkaCluster
from tests.support.kafka import Record
from tools.trials.damage import Damage, Missing, Plan, plan
from tools.trials.model import Expected, Finding
from tools.trials.records import PLAIN, Shape, changed, foreign
from tools.trials.scene import Copy, Scene, TrialError

_FLUSH_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Batches:
    """How records are divided into batches."""

    #: Numbers of records of batches in a row, again and again.
    sizes: tuple[int, ...] = (500,)
    codec: str = "none"

    def divided(self, records: Sequence[Record]) -> Iterator[Sequence[Record]]:
        """Yield the batches of records in a row."""
        sizes, start = cycle(self.sizes), 0
        while start < len(records):
            size = next(sizes)
            yield records[start : start + size]
            start += size


SMALL = Batches((1, 7, 40, 3), "lz4")
LARGE = Batches((2_000,), "zstd")
PLAIN_BATCHES = Batches()


def write(
    cluster: KafkaCluster,
    topic: str,
    batches: Iterable[Sequence[Record]],
    codec: str = "none",
    *,
    transactional: str = "",
) -> None:
    """Write batches of records as batches of these very records.

    Args:
        transactional: a transactional id; then each batch is a transaction.

    Raises:
        KafkaException: the cluster refuses a record.
        TrialError: it does not take all of them in time.
    """
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "enable.idempotence": True,
            "compression.type": codec,
            # Batches end where they are flushed.
            "linger.ms": 10_000,
            "batch.num.messages": 100_000,
            "batch.size": 4_000_000,
            "message.max.bytes": 4_000_000,
            "log_level": 3,
            **({"transactional.id": transactional} if transactional else {}),
        }
    )
    if transactional:
        producer.init_transactions(_FLUSH_SECONDS)
    errors: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            errors.append(error)

    for batch in batches:
        if transactional:
            producer.begin_transaction()
        for each in batch:
            timed: dict[str, Any] = {} if each.timestamp_ms is None else {"timestamp": each.timestamp_ms}
            producer.produce(
                topic,
                value=each.value,
                key=each.key,
                headers=list(each.headers),
                partition=each.partition,
                on_delivery=delivered,
                **timed,
            )
        if left := producer.flush(_FLUSH_SECONDS):
            raise TrialError(f"{topic} did not take {left} records within {_FLUSH_SECONDS:.0f} s")
        if errors:
            raise KafkaException(errors[0])
        if transactional:
            producer.commit_transaction(_FLUSH_SECONDS)


@dataclass(frozen=True, slots=True)
class Planting:
    """A copy with damage: pure data, made when it is called."""

    damage: tuple[Damage, ...] = ()
    #: Number of records of each partition.
    records: int = 3_000
    partitions: int = 1
    shape: Shape = PLAIN
    source_batches: Batches = PLAIN_BATCHES
    #: None: as the source's, batch by batch.
    target_batches: Batches | None = PLAIN_BATCHES
    source_configs: Mapping[str, str] = field(default_factory=dict)
    target_configs: Mapping[str, str] = field(default_factory=dict)
    #: Number of records of each transaction on the target; 0: none.
    transaction: int = 0
    options: tuple[str, ...] = ()

    def plans(self) -> tuple[Plan, ...]:
        """Return what is written into each partition of the copy."""
        return tuple(plan(number, self.records, self.damage) for number in range(self.partitions))

    def expected(self) -> Expected:
        """Return what an audit must find, from the damage alone."""
        plans = self.plans()
        found: list[Finding] = []
        for each in plans:
            found += each.findings(among_equal=self.shape.run, marker_every=self.transaction)
        are_replaced = self.target_configs.get("message.timestamp.type") == "LogAppendTime"
        return Expected(tuple(found), equal=sum(each.equal for each in plans), times_compared=not are_replaced)

    def __call__(self, scene: Scene) -> Copy:
        """Write the source, and copy it with the damage."""
        scene.create_both(partitions=self.partitions, source=self.source_configs, target=self.target_configs)
        write_source(scene, self.shape, self.records, self.partitions, self.source_batches)
        read = by_partition(scene.written())
        batches = chain.from_iterable(self._batches(list(planted(each, read[each.partition]))) for each in self.plans())
        codec = (self.target_batches or self.source_batches).codec
        write(scene.target, scene.copy, batches, codec, transactional=scene.topic if self.transaction else "")
        return Copy(self.expected(), self.options)

    def _batches(self, records: Sequence[Record]) -> Iterator[Sequence[Record]]:
        if self.transaction:
            yield from Batches((self.transaction,)).divided(records)
            return
        if self.target_batches is not None:
            yield from self.target_batches.divided(records)
            return
        # The batch of the source to which each record belongs; a record of another producer is a batch for itself.
        bounds = [number for number, size in enumerate(_sizes(self.source_batches, self.records)) for _ in range(size)]
        for _, batch in groupby(records, key=lambda each: -1 if each.offset is None else bounds[each.offset]):
            yield list(batch)


def _sizes(batches: Batches, count: int) -> Iterator[int]:
    sizes = cycle(batches.sizes)
    while count > 0:
        size = min(next(sizes), count)
        yield size
        count -= size


def write_source(
    scene: Scene, shape: Shape, count: int, partitions: int = 1, batches: Batches = PLAIN_BATCHES, *, start: int = 0
) -> None:
    """Write records of a shape into each partition of the source."""
    # One producer: each asks for its id half a second after its start.
    divided = (batches.divided(shape.records(count, each, start=start)) for each in range(partitions))
    write(scene.source, scene.topic, chain.from_iterable(divided), batches.codec)


def planted(wanted: Plan, read: Sequence[Record]) -> Iterator[Record]:
    """Yield the records of a partition of the copy."""
    time = 0
    number = 0
    for each in wanted.pieces:
        if each.source is None:
            for _ in range(each.count):
                yield foreign(number, wanted.partition, time or read[0].timestamp_ms or 0)
                number += 1
            continue
        for record in read[each.source : each.source + each.count]:
            time = record.timestamp_ms or 0
            yield changed(record, each.part) if each.part else record


def by_partition(records: Iterable[Record]) -> dict[int, list[Record]]:
    """Return the records of each partition, in order.

    Raises:
        TrialError: their offsets have holes, so that what is planted would be elsewhere.
    """
    found: dict[int, list[Record]] = {}
    for each in records:
        found.setdefault(each.partition, []).append(each)
    for partition, mine in found.items():
        if [each.offset for each in mine] != list(range(len(mine))):
            raise TrialError(f"partition {partition} has holes or does not begin at 0")
    return found


def copy_loop(
    scene: Scene,
    *,
    copy: str = "",
    batches: Batches = LARGE,
    change: Callable[[Record], Record] = lambda each: each,
) -> list[Record]:
    """Copy every committed record of the source, partition by partition; return them."""
    read = scene.written()
    by_partitions = groupby(map(change, read), key=lambda each: each.partition)
    divided = (batches.divided(list(mine)) for _, mine in by_partitions)
    write(scene.target, copy or scene.copy, chain.from_iterable(divided), batches.codec)
    return read


def without(read: Sequence[Record], lost: Missing) -> list[Record]:
    """Return the records without those that are missing."""
    return [
        each for each in read if each.partition != lost.partition or not lost.first <= (each.offset or 0) <= lost.last
    ]


def plain(records: Iterable[Record]) -> list[Record]:
    """Return records without their offsets, which may differ between clusters."""
    return [replace(each, offset=None) for each in records]
