"""Ten million records: one that is missing, and one that was changed. Written by processes, a partition each."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice

from confluent_kafka import KafkaError, Message, Producer

from tests.support.kafka import watermarks
from tools.trials.damage import Changed, Damage, Missing, Plan, plan
from tools.trials.model import Expected, Finding
from tools.trials.records import Shape, changed
from tools.trials.scene import Copy, Scene, Trial, TrialError

_PARTITIONS = 4
_EACH = 2_500_000
_SHAPE = Shape(keys=1_000_000, size=24, headers=False, step_ms=1)
_SOURCE_BATCH, _TARGET_BATCH = 10_000, 7_000
_FLUSH_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Large:
    """A copy of ten million records with damage: pure data, made when it is called."""

    damage: tuple[Damage, ...]

    def __call__(self, scene: Scene) -> Copy:
        """Write both sides from the same data: to read the source would take as long again."""
        scene.create_both(partitions=_PARTITIONS)
        plans = [plan(number, _EACH, self.damage) for number in range(_PARTITIONS)]
        whole = [plan(number, _EACH, ()) for number in range(_PARTITIONS)]
        sides = (
            (scene.source.bootstrap_servers, scene.topic, whole, _SOURCE_BATCH, "lz4"),
            (scene.target.bootstrap_servers, scene.copy, plans, _TARGET_BATCH, "zstd"),
        )
        # Threads of the clients would not survive a fork.
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
            jobs = [
                pool.submit(_write, servers, topic, each, batch, codec)
                for servers, topic, wanted, batch, codec in sides
                for each in wanted
            ]
            for job in jobs:
                job.result()
        for cluster, topic, wanted in ((scene.source, scene.topic, whole), (scene.target, scene.copy, plans)):
            ends = [watermarks(cluster, topic, number)[1] for number in range(_PARTITIONS)]
            if ends != [each.records for each in wanted]:
                raise TrialError(f"{topic} ends at {ends}")
        found: list[Finding] = []
        for each in plans:
            found += each.findings()
        return Copy(Expected(tuple(found), equal=sum(each.equal for each in plans)), ("--processes", "2"))


def _write(servers: str, topic: str, wanted: Plan, batch: int, codec: str) -> None:
    """Write one partition."""
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            "compression.type": codec,
            "linger.ms": 200,
            "batch.num.messages": batch,
            "queue.buffering.max.messages": 2_000_000,
            "delivery.report.only.error": True,
            "log_level": 3,
        }
    )
    errors: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            errors.append(error)

    partition, record_of, produce = wanted.partition, _SHAPE.record, producer.produce
    numbers = (
        (number, each.part)
        for each in wanted.pieces
        if each.source is not None
        for number in range(each.source, each.source + each.count)
    )
    while some := list(islice(numbers, 20_000)):
        for number, part in some:
            record = record_of(number, partition)
            if part:
                record = changed(record, part)
            while True:
                try:
                    produce(
                        topic,
                        record.value,
                        record.key,
                        partition,
                        on_delivery=delivered,
                        timestamp=record.timestamp_ms or 0,
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
    if left := producer.flush(_FLUSH_SECONDS):
        raise TrialError(f"{topic} did not take {left} records within {_FLUSH_SECONDS:.0f} s")
    if errors:
        raise TrialError(f"{topic} did not take all records: {errors[0]}")


_MISSING = Large((Missing(1_777_777, 1_777_777, 2),))
TRIALS = (
    Trial("missing: one record in ten million", "own loop", _MISSING, large=True),
    Trial(
        "changed: one value in ten million",
        "own loop",
        replace(_MISSING, damage=(Changed(1_777_777, 1_777_777, "value", 2),)),
        large=True,
    ),
)
