"""A simple copier with confluent-kafka: consume from the source, produce to the target, record by record.

Some processes share the partitions of a topic. Each has a consumer and an idempotent producer, both tuned for
throughput, and forwards every record with its key, value, headers, timestamp and partition. It stores no positions.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from typing import Any, Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from mirror_lib.cluster.connection import Connection
from mirror_lib.config.model import ClientSettings
from tools.bench.copiers.settings import CopySetup
from tools.bench.errors import BenchError
from tools.bench.limit.halves import split
from tools.bench.machine.process_tree import ProcessTree
from tools.bench.workloads.workload import Workload

#: Usual settings for throughput, with ordering and no duplicates as long as a process lives.
PRODUCER: Mapping[str, Any] = {
    "enable.idempotence": True,
    "linger.ms": 50,
    "batch.size": 512 * 1024,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 256 * 1024,
    # A delivery report for each record would cost a call into Python.
    "delivery.report.only.error": True,
}
CONSUMER: Mapping[str, Any] = {
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "fetch.max.bytes": 64 * 1024 * 1024,
    "receive.message.max.bytes": 65 * 1024 * 1024,
    "max.partition.fetch.bytes": 4 * 1024 * 1024,
    "queued.min.messages": 1_000_000,
    "queued.max.messages.kbytes": 256 * 1024,
}
_RECORDS_AT_ONCE, _CONSUME_SECONDS = 10_000, 0.05
_FULL_QUEUE_SECONDS = 0.05
_FLUSH_SECONDS = 120.0
_STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class LoopShare:
    """The share of one process: partitions of a topic, each from 0 to its end offset."""

    consumer: Mapping[str, Any]
    producer: Mapping[str, Any]
    topic: str
    target_topic: str
    ends: Mapping[int, int]


def shares(setup: CopySetup, workload: Workload, partitions: int) -> list[LoopShare]:
    """Return the configuration of each process; the target is written with the workload's own codec."""

    def client(role: str, bootstrap_servers: str) -> dict[str, Any]:
        properties = {"bootstrap.servers": bootstrap_servers, **setup.client}
        return Connection.from_settings(ClientSettings(cluster="bench", role=role, properties=properties)).librdkafka()

    return [
        LoopShare(
            consumer={**client("consumer", setup.source_bootstrap), "group.id": setup.source_alias, **CONSUMER},
            producer={
                **client("producer", setup.target_bootstrap),
                "compression.type": workload.codec.value,
                **PRODUCER,
            },
            topic=setup.topic,
            target_topic=setup.target_topic,
            ends={partition: workload.records_of(partition, partitions) for partition in part},
        )
        for part in split(range(partitions), setup.tasks)
    ]


class ClientLoop:
    """The processes, which start to copy at once; a context manager, within which their CPU can be read."""

    def __init__(self, parts: list[LoopShare]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Pipe] = []
        self._processes = []
        for part in parts:
            pipe, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, part), name="client-loop", daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(pipe)
            self._processes.append(process)
        self._trees = [ProcessTree(process.pid) for process in self._processes if process.pid is not None]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(_STOP_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()

    def cpu_seconds(self) -> float:
        """Return user and system seconds of all of them so far."""
        return sum(tree.cpu_seconds() for tree in self._trees)

    def still_running(self) -> None:
        """Raise if a process has failed; a finished one stays until the end."""
        for pipe in self._pipes:
            try:
                why = pipe.recv() if pipe.poll() else None
            except EOFError as error:
                raise BenchError("a process of the client loop ended.") from error
            if why is not None:
                raise BenchError(f"the client loop failed: {why}")


def _serve(pipe: Pipe, share: LoopShare) -> None:
    """Copy, then stay until stopped, so that the CPU time can still be read."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        copy(share)
    except Exception as error:
        with suppress(OSError):
            pipe.send(f"{type(error).__name__}: {error}")
    with suppress(EOFError, OSError):
        pipe.recv()


def copy(share: LoopShare) -> None:
    """Copy the share and return when the target has acknowledged all of it.

    Raises:
        BenchError: a record could not be read or was not acknowledged.
    """
    failed: list[KafkaError] = []
    producer = Producer({**share.producer, "on_delivery": lambda error, _: failed.append(error) if error else None})
    consumer = Consumer(dict(share.consumer))
    left = {partition: end for partition, end in share.ends.items() if end}
    try:
        consumer.assign([TopicPartition(share.topic, partition, 0) for partition in left])
        while left:
            for message in consumer.consume(_RECORDS_AT_ONCE, timeout=_CONSUME_SECONDS):
                if message.error() is not None:
                    raise BenchError(f"{share.topic} cannot be read: {message.error()}.")
                _pass_on(producer, share.target_topic, message)
                partition, after = message.partition() or 0, (message.offset() or 0) + 1
                if after >= share.ends[partition]:
                    left.pop(partition, None)
            producer.poll(0)
            _check(share, failed)
        unsent = producer.flush(_FLUSH_SECONDS)
        _check(share, failed)
        if unsent:
            raise BenchError(f"{share.target_topic}: {unsent} records were not acknowledged.")
    finally:
        consumer.close()


def _pass_on(producer: Producer, topic: str, message: Message) -> None:
    while True:
        try:
            producer.produce(
                topic,
                message.value(),
                message.key(),
                message.partition() or 0,
                timestamp=message.timestamp()[1],
                headers=message.headers(),
            )
        except BufferError:
            producer.poll(_FULL_QUEUE_SECONDS)
        else:
            return


def _check(share: LoopShare, failed: list[KafkaError]) -> None:
    if failed:
        raise BenchError(f"{share.target_topic} refused a record: {failed[0]}.")
