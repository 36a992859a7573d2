"""Transaction state of partition leaders and coordinators (KIP-664): if they differ, a transaction hangs.

DescribeProducers, DescribeTransactions and ListTransactions, encoded and decoded here: librdkafka's admin client has
none of them.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from typing import NamedTuple

from mirror_lib.cluster.protocol.fields import EMPTY_ARRAY, NO_TAGS, FieldReader, encode_compact, encode_varint
from mirror_lib.cluster.protocol.malformed import response_of
from mirror_lib.cluster.raw.connection import Buffer
from mirror_lib.outside_limits import LIST_ELEMENTS
from mirror_lib.topology.names import TopicPartition

#: Since Kafka 2.8, the others since 3.0; all in the compact encoding.
DESCRIBE_PRODUCERS, DESCRIBE_PRODUCERS_VERSION = 61, 0
DESCRIBE_TRANSACTIONS, DESCRIBE_TRANSACTIONS_VERSION = 65, 0
LIST_TRANSACTIONS, LIST_TRANSACTIONS_VERSION = 66, 0
#: AddPartitionsToTxn in the version with which brokers verify the content of a transaction (KIP-890, Kafka 3.6).
ADD_PARTITIONS_TO_TXN, VERIFYING_VERSION = 24, 4

_INT32, _INT64 = struct.Struct(">i"), struct.Struct(">q")
#: Id and epoch, last sequence number and timestamp, the coordinator's epoch, start offset of the open transaction.
_PRODUCER = struct.Struct(">qiiqiq")
#: Timeout and start of the transaction, producer id and epoch.
_TRANSACTION = struct.Struct(">iqqh")
_OPEN = "Ongoing"
_COMMITTED, _ABORTED = "CompleteCommit", "CompleteAbort"
_ENDING = frozenset({"PrepareCommit", "PrepareAbort", "PrepareEpochFence"})


class ProducerState(NamedTuple):
    """The state of one producer in a partition's log."""

    producer_id: int
    #: The highest seen epoch: lower ones are rejected.
    epoch: int
    #: The first offset of its transaction without a marker; None without an open transaction.
    open_from: int | None


class TransactionState(NamedTuple):
    """The coordinator's state of a transactional id; with an error code the other fields are invalid."""

    error_code: int
    #: The name in Java's `TransactionState`.
    state: str
    producer_id: int
    epoch: int
    #: The partitions of the transaction, if it is not over yet.
    partitions: frozenset[TopicPartition]
    #: The coordinator aborts it after this time.
    timeout_ms: int = 0
    #: Epoch milliseconds; negative without an open transaction.
    began_at: int = -1

    @property
    def open(self) -> bool:
        """True if it is not decided whether the transaction commits or aborts."""
        return self.state == _OPEN

    @property
    def is_ending(self) -> bool:
        """True if it is decided, and markers are still to be written."""
        return self.state in _ENDING

    @property
    def has_committed(self) -> bool | None:
        """True if the last one committed, with all its markers according to the coordinator; None if not known."""
        return {_COMMITTED: True, _ABORTED: False}.get(self.state)


def encode_describe_producers(*partitions: TopicPartition) -> list[Buffer]:
    """A request for the producers of partitions, to their common leader."""
    numbers: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    body = [NO_TAGS, encode_varint(len(numbers) + 1)]
    for topic, found in numbers.items():
        body += [encode_compact(topic), encode_varint(len(found) + 1), *map(_INT32.pack, found), NO_TAGS]
    return [b"".join((*body, NO_TAGS))]


class DescribedProducers(NamedTuple):
    """The producers of one partition by id; empty with an error code."""

    error_code: int
    producers: Mapping[int, ProducerState]


@response_of("DescribeProducers")
def parse_describe_producers(view: memoryview) -> DescribedProducers:
    """Parse the response to `encode_describe_producers` for one partition."""
    reader = FieldReader(view, flexible=True)
    reader.skip_tags()
    _throttle, _topics, _topic, _partitions = reader.int32(), reader.count(), reader.string(), reader.count()
    return _read_producers(reader)[1]


@response_of("DescribeProducers")
def parse_describe_all_producers(view: memoryview) -> dict[TopicPartition, DescribedProducers]:
    """Parse the response to `encode_describe_producers` for any number of partitions."""
    reader = FieldReader(view, flexible=True)
    reader.skip_tags()
    _throttle = reader.int32()
    found = {}
    for _ in range(reader.count()):
        topic = reader.string()
        for _ in range(reader.count()):
            number, described = _read_producers(reader)
            reader.skip_tags()
            found[TopicPartition(topic, number)] = described
        reader.skip_tags()
    return found


def _read_producers(reader: FieldReader) -> tuple[int, DescribedProducers]:
    """The number of a partition and its producers."""
    number, error_code, _message = reader.int32(), reader.int16(), reader.string()
    states = {}
    for _ in range(reader.count()):
        producer_id, epoch, _sequence, _timestamp, _coordinator, open_from = reader.numbers(_PRODUCER)
        reader.skip_tags()
        states[producer_id] = ProducerState(producer_id, epoch, open_from if open_from >= 0 else None)
    return number, DescribedProducers(error_code, states)


def encode_describe_transaction(transactional_id: str) -> list[Buffer]:
    """A request for the transaction of an id, to its coordinator."""
    return [NO_TAGS + encode_varint(2) + encode_compact(transactional_id) + NO_TAGS]


@response_of("DescribeTransactions")
def parse_describe_transaction(view: memoryview) -> TransactionState:
    """Parse the response to `encode_describe_transaction`."""
    reader = FieldReader(view, flexible=True)
    reader.skip_tags()
    _throttle, _transactions = reader.int32(), reader.count()
    error_code, _name, state = reader.int16(), reader.string(), reader.string()
    timeout_ms, began_at, producer_id, epoch = reader.numbers(_TRANSACTION)
    partitions = []
    for _ in range(reader.count()):
        topic = reader.string()
        partitions += [TopicPartition(topic, reader.int32()) for _ in range(reader.count())]
        reader.skip_tags()
    return TransactionState(error_code, state, producer_id, epoch, frozenset(partitions), timeout_ms, began_at)


def encode_list_transactions(producer_ids: Collection[int]) -> list[Buffer]:
    """A request for the transactions of some producers that the broker coordinates; without ids, for all."""
    wanted = b"".join(map(_INT64.pack, producer_ids))
    return [NO_TAGS + EMPTY_ARRAY + encode_varint(len(producer_ids) + 1) + wanted + NO_TAGS]


@response_of("ListTransactions")
def parse_list_transactions(view: memoryview) -> tuple[int, dict[str, int]]:
    """Parse the response to `encode_list_transactions`: its error code, and the transactional ids' producer ids."""
    reader = FieldReader(view, flexible=True, elements=LIST_ELEMENTS)
    reader.skip_tags()
    _throttle, error_code = reader.int32(), reader.int16()
    _unknown = [reader.string() for _ in range(reader.count())]
    names = {}
    for _ in range(reader.count()):
        name, names[name] = reader.string(), reader.int64()
        _state = reader.string()
        reader.skip_tags()
    return error_code, names
