"""A cluster in memory behind the interface of `RawClient`: brokers' rules for fetches and idempotent producers.

For faults that no real broker can be made to show at a given moment. The rules are those of Kafka 4.3: `fetch` is
KIP-74's (the first partition that has something gives a whole batch), `produce` is Java's `ProducerAppendInfo`, which
takes any sequence number from a producer that it does not know.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.topic_ids import NamedTopic
from mirror_lib.cluster.protocol.transactions import (
    DESCRIBE_PRODUCERS,
    DESCRIBE_PRODUCERS_VERSION,
    encode_describe_producers,
)
from mirror_lib.cluster.raw.client import FetchedPartition, FetchRequestPartition, ProducedPartition
from mirror_lib.cluster.raw.connection import Buffer
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.config.copy_settings import CopySettings
from mirror_lib.errors import BrokerUnreachableError, TransientError
from mirror_lib.planning.model import CopyJob, OpenPartition, PartitionPlan, ProducerMemory
from mirror_lib.records.header import parse_header
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.brokers.described_transactions import described_producers
from tests.support.records.record_batches import CONTROL, SourceRecord, batch, marker, read_with_aiokafka

#: The identity that `opened` gives to writers.
PRODUCER_ID, FIRST_EPOCH = 4711, 3
REMEMBERS_ALL = ProducerMemory(seconds=None)
_SEQUENCES = 2**31
_REMEMBERED = 5


@dataclass
class _Producer:
    """What a broker remembers of a producer on one partition."""

    producer_id: int
    epoch: int
    batches: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))


@dataclass
class FakePartition:
    """A partition's log, as batches with their base offsets."""

    batches: list[bytes] = field(default_factory=list)
    log_start: int = 0
    #: Set apart where the last records were removed.
    end: int = 0
    local_start: int = 0
    producer: _Producer | None = None

    def append(self, raw: bytes) -> int:
        """Append a batch of a producer without an identity; returns its base offset."""
        header = parse_header(raw)
        base = self.end
        self.batches.append(base.to_bytes(8, "big") + raw[8:])
        self.end = base + header.last_offset_delta + 1
        return base

    def values(self) -> list[bytes | None]:
        """The values of all records in their order, markers apart."""
        data = [raw for raw in self.batches if not parse_header(raw).attributes & CONTROL]
        return [record[3] for raw in data for record in read_with_aiokafka(raw)]


Produced = tuple[int, TopicPartition, bytes]


class FakeCluster:
    """Implements what `copy_bin` uses of `RawClient`."""

    def __init__(self, name: str = "B") -> None:
        self.cluster = name
        self.partitions: dict[TopicPartition, FakePartition] = {}
        self.leaders: dict[TopicPartition, int] = {}
        self.refreshes = 0
        self.looks = 0
        #: Records at the end of every log that are not replicated yet.
        self.unreplicated = 0
        self.fetches: list[tuple[int, list[FetchRequestPartition]]] = []
        #: Bytes of records given to all fetches.
        self.served = 0
        self.produced: list[Produced] = []
        #: Epochs that the transaction coordinator has given out.
        self.epochs: dict[str, int] = {}
        #: How often the coordinator writes no marker to a partition, as where it has no leader (KAFKA-20734).
        self.markers_left_out: dict[TopicPartition, int] = {}
        #: Its brokers do not tell who writes to their partitions.
        self.too_old = False
        self.described = 0
        #: How often each broker has restarted.
        self.restarts: dict[int, int] = {}
        #: Locks belong to the event loop of one copy.
        self._turns: WeakKeyDictionary[object, dict[tuple[int, int, int | None], asyncio.Lock]] = WeakKeyDictionary()
        self._appending = False
        self._restart_then: list[tuple[int, bool]] = []
        #: Seconds to a broker and back; the next room where nothing is said.
        self.round_trips: dict[int, float] = {}
        #: The connections that were used, of all brokers.
        self.lanes_fetched: set[int] = set()
        #: What each fetch told of where the reader is.
        self.racks_told: list[str] = []
        self.lanes_produced: dict[TopicPartition, set[int]] = {}
        #: What a topic's metadata says instead of its leaders.
        self.topic_errors: dict[str, int] = {}
        #: Bytes of batches in a request above which a broker closes the connection, and how often it did.
        self.request_max_bytes = 2**31
        self.torn = 0
        #: Called before a batch is appended; a code refuses it.
        self.refuse: Callable[[Produced], int | None] = lambda _: None
        #: Called after a batch was appended; a code or exception is answered instead of success.
        self.lose: Callable[[Produced], int | Exception | None] = lambda _: None
        #: Called (and awaited, where they are coroutines) with a node and its partitions before a produce request is
        #: worked on, and before it is answered.
        self.before_produce: Callable[[int, Sequence[TopicPartition]], Any] = lambda *_: None
        self.before_answer: Callable[[int, Sequence[TopicPartition]], Any] = lambda *_: None
        #: The same for a fetch; what it returns or raises is the answer, None leaves it to the rules.
        self.on_fetch: Callable[[int, Sequence[FetchRequestPartition]], Any] = lambda *_: None

    def add(self, topic: str, partition: int = 0, *, leader: int = 1) -> FakePartition:
        """Create a partition."""
        key = TopicPartition(topic, partition)
        self.leaders[key] = leader
        return self.partitions.setdefault(key, FakePartition())

    @property
    def producers(self) -> FakeCluster:
        """It is its transaction coordinator, too."""
        return self

    def leader(self, partition: TopicPartition) -> int | None:
        return self.leaders.get(partition)

    async def refresh_leaders(self, topics: Iterable[str]) -> dict[str, int]:
        self.refreshes += 1
        await asyncio.sleep(0)
        return {topic: code for topic in topics if (code := self.topic_errors.get(topic))}

    def restart(self, node: int, forget: bool) -> None:
        """A broker restarts, after the request that it works on: it will answer nothing that it has received.

        Args:
            forget: whether it forgets the producers of the partitions that it leads, or all but their last batches.
        """
        if self._appending:
            self._restart_then.append((node, forget))
            return
        self.restarts[node] = self.restarts.get(node, 0) + 1
        for key, leader in self.leaders.items():
            log = self.partitions.get(key)
            if leader == node and log is not None and log.producer is not None:
                if forget:
                    log.producer = None
                else:
                    log.producer.batches = deque(list(log.producer.batches)[-1:], maxlen=_REMEMBERED)

    async def fence(
        self, transactional_id: str, *targets: TopicPartition, deadline: float, commit: bool = False
    ) -> ProducerIdentity:
        """An aborted transaction of a higher epoch: its marker is on the partitions, and older epochs are refused."""
        del deadline, commit
        await asyncio.sleep(0)
        # The coordinator raises it when the transaction is begun and when it has ended.
        epoch = self.epochs[transactional_id] = self.epochs.get(transactional_id, FIRST_EPOCH) + 2
        for target in targets:
            if self.markers_left_out.get(target, 0) > 0:
                self.markers_left_out[target] -= 1
                continue
            log = self.partitions[target]
            log.append(marker(0, PRODUCER_ID, abort=True))
            log.producer = _Producer(PRODUCER_ID, epoch - 1)
        return ProducerIdentity(PRODUCER_ID, epoch)

    async def speaks(self, node: int, api_key: int, version: int) -> bool:
        """Of the requests that are asked for by their keys it speaks one, unless it is too old."""
        return (api_key, version) == (DESCRIBE_PRODUCERS, DESCRIBE_PRODUCERS_VERSION) and not self.too_old

    async def ask(self, node: int, api_key: int, version: int, body: Sequence[Buffer]) -> memoryview:
        assert await self.speaks(node, api_key, version)
        self.described += 1
        (key,) = [each for each in self.partitions if b"".join(body) == b"".join(encode_describe_producers(each))]
        if self.leaders.get(key) != node:
            return described_producers(key, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        known = self.partitions[key].producer
        return described_producers(key, [] if known is None else [(known.producer_id, known.epoch, -1)])

    def why_no_leader(self, partition: TopicPartition) -> int:
        return self.topic_errors.get(partition.topic, ErrorCode.LEADER_NOT_AVAILABLE)

    def produces_by_id(self, node: int) -> bool:
        """It is older than topic ids."""
        return False

    async def topic_ids(self, topics: Iterable[str], *, node: int | None = None) -> dict[str, NamedTopic]:
        """It is older than topic ids."""
        return {}

    async def log_ends(self, node: int, partition: TopicPartition) -> tuple[int, int]:
        await asyncio.sleep(0)
        self.looks += 1
        if self.leaders.get(partition) != node:
            raise TransientError("not the leader.")
        end = self.partitions[partition].end
        return end - self.unreplicated, end

    async def last_stable_offset(self, node: int, partition: TopicPartition) -> int:
        """No transaction is ever open."""
        return (await self.log_ends(node, partition))[0]

    async def names_of(self, producer_ids: Collection[int]) -> list[str]:
        """Those that were given out; they all have the same producer id."""
        return sorted(self.epochs) if PRODUCER_ID in producer_ids else []

    async def local_log_start(self, node: int, partition: TopicPartition) -> int | None:
        await asyncio.sleep(0)
        return self.partitions[partition].local_start

    async def fetch(
        self,
        node: int,
        partitions: Sequence[FetchRequestPartition],
        *,
        max_bytes: int,
        max_wait_ms: int,
        read_committed: bool,
        min_bytes: int = 1,
        slot: int = 0,
        rack: str = "",
    ) -> list[FetchedPartition]:
        self.lanes_fetched.add(slot)
        self.racks_told.append(rack)
        self.fetches.append((node, list(partitions)))
        await asyncio.sleep(0)
        scripted: list[FetchedPartition] | None = await _awaited(self.on_fetch(node, partitions))
        if scripted is not None:
            return scripted
        answer = []
        left, first = max_bytes, True
        for wanted in partitions:
            data = self._read(wanted, left, first)
            left -= len(data)
            first = first and not data
            self.served += len(data)
            answer.append(self.fetched(wanted, data))
        if first:
            await asyncio.sleep(0.001)
        return answer

    def fetched(self, wanted: FetchRequestPartition, data: bytes, *, error_code: int = 0) -> FetchedPartition:
        """An answer about one partition."""
        log = self.partitions[TopicPartition(wanted.topic, wanted.partition)]
        return FetchedPartition(
            wanted.topic, wanted.partition, error_code, log.end, log.end, log.log_start, (), memoryview(data)
        )

    def _read(self, wanted: FetchRequestPartition, left: int, first: bool) -> bytes:
        log = self.partitions[TopicPartition(wanted.topic, wanted.partition)]
        data = b""
        for raw in log.batches:
            header = parse_header(raw)
            if header.base_offset + header.last_offset_delta < wanted.offset:
                continue
            if len(data) + len(raw) > min(wanted.max_bytes, left) and not (first and not data):
                break
            data += raw
        return data

    async def connect(self, node: int) -> None:
        await asyncio.sleep(0)

    def round_trip(self, node: int) -> float:
        return self.round_trips.get(node, 0.0)

    def connection(self, node: int, slot: int = 0) -> object:
        return node, slot, self.restarts.get(node)

    async def produce(
        self,
        node: int,
        batches: Sequence[tuple[str, int, bytes | bytearray]],
        *,
        timeout_ms: int,
        slot: int = 0,
        connection: object | None = None,
        transactional_id: str | None = None,
        topic_ids: Mapping[str, bytes] = MappingProxyType({}),
    ) -> list[ProducedPartition]:
        keys = [TopicPartition(topic, partition) for topic, partition, _ in batches]
        assert len(set(keys)) == len(keys), "a request may hold one batch for a partition"
        for key in keys:
            self.lanes_produced.setdefault(key, set()).add(slot)
        restarts = self.restarts.get(node)
        if connection not in (None, self.connection(node, slot)):
            raise BrokerUnreachableError("the connection has ended.")
        # Brokers work on the requests of a connection one after the other.
        turns = self._turns.setdefault(asyncio.get_running_loop(), {})
        async with turns.setdefault((node, slot, restarts), asyncio.Lock()):
            await _awaited(self.before_produce(node, keys))
            await asyncio.sleep(0)
            if sum(len(raw) for _, _, raw in batches) > self.request_max_bytes:
                self.torn += 1
                self.restart(node, forget=False)
            self._check_running(node, restarts)
            self._appending = True
            answers = [self._append(node, key, bytes(raw)) for key, (_, _, raw) in zip(keys, batches, strict=True)]
            self._appending = False
            while self._restart_then:
                self.restart(*self._restart_then.pop())
        await _awaited(self.before_answer(node, keys))
        await asyncio.sleep(0)
        self._check_running(node, restarts)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return [answer for answer in answers if isinstance(answer, ProducedPartition)]

    def _check_running(self, node: int, restarts: int | None) -> None:
        if self.restarts.get(node) != restarts:
            raise BrokerUnreachableError("the broker restarts.") from ConnectionResetError("closed")

    def _append(self, node: int, key: TopicPartition, raw: bytes) -> ProducedPartition | Exception:
        request = (node, key, raw)
        self.produced.append(request)
        code = self.refuse(request)
        base = -1
        if code is None and node != self.leaders.get(key):
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if code is None:
            code, base = self._as_producer(self.partitions[key], raw)
            lost = self.lose(request)
            if isinstance(lost, Exception):
                return lost
            if lost is not None:
                code, base = lost, -1
        return ProducedPartition(key.topic, key.partition, code or 0, base, 0)

    @staticmethod
    def _as_producer(log: FakePartition, raw: bytes) -> tuple[int, int]:
        header = parse_header(raw)
        if header.producer_id < 0:
            return ErrorCode.NONE, log.append(raw)
        first = header.base_sequence
        last = (first + header.last_offset_delta) % _SEQUENCES
        known = log.producer
        if known is not None and known.producer_id == header.producer_id:
            if header.producer_epoch < known.epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH, -1
            if header.producer_epoch == known.epoch:
                for seen_first, seen_last, base in known.batches:
                    if (seen_first, seen_last) == (first, last):
                        return ErrorCode.NONE, base
                if known.batches and (known.batches[-1][1] + 1) % _SEQUENCES != first:
                    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            elif first != 0:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            else:
                log.producer = _Producer(header.producer_id, header.producer_epoch)
        else:
            log.producer = _Producer(header.producer_id, header.producer_epoch)
        assert log.producer is not None
        base = log.append(raw)
        log.producer.batches.append((first, last, base))
        return ErrorCode.NONE, base


async def _awaited(hooked: Any) -> Any:
    return await hooked if asyncio.iscoroutine(hooked) else hooked


def fill(log: FakePartition, sizes: Sequence[int], *, records_each: int = 1, prefix: str = "") -> list[bytes]:
    """Append one batch for each size (bytes of each value); returns the values."""
    written: list[bytes] = []
    for size in sizes:
        values = [f"{prefix}{len(written) + number}-".encode().ljust(size, b"x") for number in range(records_each)]
        log.append(batch([SourceRecord(number, value=value) for number, value in enumerate(values)]))
        written += values
    return written


def opened(
    source: FakeCluster,
    target: FakeCluster,
    topic: str = "orders",
    partition: int = 0,
    *,
    to: str | None = None,
    max_message_bytes: int = 1_048_588,
    leader_epoch: int | None = None,
) -> OpenPartition:
    """A partition of the source, opened to be copied whole."""
    key, remote = TopicPartition(topic, partition), TopicPartition(to or f"A.{topic}", partition)
    if remote not in target.partitions:
        target.add(*remote)
    log = source.partitions[key]
    plan = PartitionPlan(
        source=key,
        target=remote,
        start=log.log_start,
        end=log.end,
        topic_id="id",
        target_max_message_bytes=max_message_bytes,
        estimated_bytes=0,
        leader_epoch=leader_epoch,
    )
    return OpenPartition(
        plan,
        f"mirror:A->B:{remote}",
        PRODUCER_ID,
        FIRST_EPOCH,
        target.partitions[remote].end,
        claimed_at=time.time(),
    )


def job(
    *partitions: OpenPartition,
    read_committed: bool = False,
    memory: ProducerMemory = REMEMBERS_ALL,
    **settings: object,
) -> CopyJob:
    """A job of one bin; batches go one by one unless the settings say otherwise."""
    defaults: dict[str, object] = {"batch_passthrough_min_bytes": 0, "retry_max_seconds": 1.0}
    return CopyJob(
        flow=FlowId("A", "B"),
        run_id="run",
        source=Connection("A", ("localhost:1",)),
        target=Connection("B", ("localhost:2",)),
        read_committed=read_committed,
        settings=CopySettings(**{**defaults, **settings}),
        bins=(partitions,),
        producer_memory=memory,
    )
