"""Running writers and readers that a cutover moves, and their observations."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, Message, Producer

from tools.bench.errors import BenchError

_PAUSE = 0.05
_TIMEOUT = 60.0
_COMMIT_SECONDS = 1.0
#: Topic and partition.
Place = tuple[str, int]


@dataclass
class LiveWriter:
    """Numbers the records of every partition from 0 on, without a gap, on one cluster after the other."""

    topics: Sequence[str]
    partitions: int
    records_per_second: int
    #: The next number of each partition; only acknowledged records count.
    next: dict[Place, int] = field(default_factory=lambda: defaultdict(int))
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _failed: str = ""

    def start(self, bootstrap_servers: str) -> None:
        """Start, or continue, on a cluster."""
        self._ended.clear()
        self._thread = threading.Thread(target=self._write, args=(bootstrap_servers,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop when all written records are acknowledged.

        Raises:
            BenchError: one was not.
        """
        self._ended.set()
        assert self._thread is not None
        self._thread.join(_TIMEOUT)
        if self._failed or self._thread.is_alive():
            raise BenchError(f"the writer failed: {self._failed or 'it did not end'}.")

    def _write(self, bootstrap_servers: str) -> None:
        producer = Producer(
            {"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "linger.ms": 5, "log_level": 3}
        )
        places = [(topic, number) for topic in self.topics for number in range(self.partitions)]
        each = max(round(self.records_per_second * _PAUSE / len(places)), 1)
        pause = each * len(places) / self.records_per_second

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                self._failed = self._failed or str(error)

        while not self._ended.wait(pause):
            for place in places:
                topic, partition = place
                for _ in range(each):
                    value = b"%d" % self.next[place]
                    producer.produce(topic, value=value, partition=partition, on_delivery=delivered)
                    self.next[place] += 1
            producer.poll(0)
        if producer.flush(_TIMEOUT):
            self._failed = self._failed or "not everything was acknowledged in time"


class LiveReader:
    """One group with one member: reads some topics, checks every number, commits after the checked records."""

    def __init__(self, group: str, topics: Sequence[str]) -> None:
        """Nothing is read yet."""
        self.group, self.topics = group, tuple(topics)
        #: The next expected number of each partition.
        self.next: dict[Place, int] = defaultdict(int)
        self.missed = self.repeated = self.read = 0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, bootstrap_servers: str) -> None:
        """Join, or join again, on a cluster."""
        self._ended.clear()
        self._thread = threading.Thread(target=self._run, args=(bootstrap_servers,), daemon=True)
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Start to commit and leave; `wait` waits for it."""
        self._ended.set()

    def wait(self) -> None:
        """Wait until it has left.

        Raises:
            BenchError: it does not.
        """
        assert self._thread is not None
        self._thread.join(_TIMEOUT)
        if self._thread.is_alive():
            raise BenchError(f"group {self.group} did not leave.")

    def has_read(self, written: dict[Place, int]) -> bool:
        """Return True if it has read all records of its topics."""
        return all(self.next[place] >= count for place, count in written.items() if place[0] in self.topics)

    def _run(self, bootstrap_servers: str) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": self.group,
                # A group without a position would read everything again, and the count would show it.
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 3,
            }
        )
        consumer.subscribe(list(self.topics))
        committed = time.monotonic()
        try:
            while not self._ended.is_set():
                for message in consumer.consume(1000, 0.2):
                    if message.error() is None:
                        self._note(message)
                if self.read and time.monotonic() - committed >= _COMMIT_SECONDS:
                    consumer.commit(asynchronous=True)
                    committed = time.monotonic()
            if self.read:
                consumer.commit(asynchronous=False)
        finally:
            consumer.close()

    def _note(self, message: Message) -> None:
        place = (str(message.topic()), int(message.partition() or 0))
        number, expected = int(message.value() or b"0"), self.next[place]
        self.read += 1
        if number < expected:
            self.repeated += 1
            return
        self.missed += number - expected
        self.next[place] = number + 1


def wait_until(condition: object, seconds: float, what: str) -> None:
    """Wait until a condition is true.

    Raises:
        BenchError: it is not true in time.
    """
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise BenchError(f"{what} did not happen within {seconds:g} s.")
        time.sleep(0.1)
