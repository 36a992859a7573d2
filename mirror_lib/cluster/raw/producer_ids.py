"""Producer ids and transactions, by which brokers decide who may append to partitions (KIP-98)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import aiokafka.errors as aiokafka_errors
from aiokafka.protocol.transaction import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.kafka_errors import error_for_code
from mirror_lib.cluster.protocol.produce import by_topic
from mirror_lib.cluster.protocol.transactions import (
    DESCRIBE_TRANSACTIONS,
    DESCRIBE_TRANSACTIONS_VERSION,
    LIST_TRANSACTIONS,
    LIST_TRANSACTIONS_VERSION,
    TransactionState,
    encode_describe_transaction,
    encode_list_transactions,
    parse_describe_transaction,
    parse_list_transactions,
)
from mirror_lib.cluster.raw.brokers import BrokerConnections
from mirror_lib.errors import BrokerUnreachableError, RetriesExhaustedError, Where
from mirror_lib.topology.access import Grant, Operation
from mirror_lib.topology.names import TopicPartition

_Answer = TypeVar("_Answer")

#: Long enough for the next run to start and to end properly what a run that died has left open.
_TRANSACTION_TIMEOUT_MS = 600_000
#: Kafka's own producers' default, for clusters that allow no more (`transaction.max.timeout.ms`).
_SHORT_TRANSACTION_TIMEOUT_MS = 60_000

#: Seconds until the first retry. A transaction that is ending needs some milliseconds for its markers.
_FIRST_PAUSE = 0.002

_MOVED = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
_COORDINATOR_RETRIES = _MOVED | {ErrorCode.CONCURRENT_TRANSACTIONS}
_TOO_LONG = frozenset({ErrorCode.INVALID_TRANSACTION_TIMEOUT})
_ENDED_MEANWHILE = frozenset({ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """A producer id with its epoch, by which a broker rejects an older writer (KIP-98)."""

    producer_id: int
    epoch: int


class Producers:
    """Requests about the producers of one cluster, to their transaction coordinators."""

    def __init__(self, brokers: BrokerConnections) -> None:
        self._brokers = brokers
        self._coordinators: dict[str, int] = {}

    async def init_producer_id(
        self, transactional_id: str, *, deadline: float, transaction_timeout_ms: int = _TRANSACTION_TIMEOUT_MS
    ) -> ProducerIdentity:
        """Take over a transactional id: return its producer id with an increased epoch (KIP-98).

        Args:
            deadline: `time.monotonic()` value after which a busy coordinator is given up.
            transaction_timeout_ms: time after which the coordinator aborts a transaction of this producer.
        """
        doing = "take over transactional id"
        request = InitProducerIdRequest(transactional_id, transaction_timeout_ms)
        long = transaction_timeout_ms == _TRANSACTION_TIMEOUT_MS
        taken = _TOO_LONG if long else frozenset[int]()
        response = await self._ask_coordinator(transactional_id, request, deadline, doing, taken=taken)
        if response.error_code in taken:
            request = InitProducerIdRequest(transactional_id, _SHORT_TRANSACTION_TIMEOUT_MS)
            response = await self._ask_coordinator(transactional_id, request, deadline, doing)
        return ProducerIdentity(response.producer_id, response.producer_epoch)

    async def new_producer_id(self, *, deadline: float) -> ProducerIdentity:
        """A producer id without a transactional id: it fences no other producer (KIP-98).

        A broker that has just started has none until the controller has responded to it.

        Args:
            deadline: `time.monotonic()` value after which such a broker is given up.
        """
        request = InitProducerIdRequest(None, _TRANSACTION_TIMEOUT_MS)

        async def ask() -> tuple[int, Any]:
            response = await self._brokers.from_any(lambda node: self._brokers.send(node, request))
            return _coordinator_error(response), response

        # Since Kafka 2.8 every user who may write to any topic may do so (KIP-679).
        needs = Grant.on_cluster(Operation.IDEMPOTENT_WRITE)
        response = await self._retry_until_response(
            ask, deadline, "get a producer id", lambda _: needs, request="the brokers and their controller"
        )
        return ProducerIdentity(response.producer_id, response.producer_epoch)

    async def fence(
        self, transactional_id: str, *targets: TopicPartition, deadline: float, commit: bool = False
    ) -> ProducerIdentity:
        """Fence every older epoch of this id on the partitions, and make everything that it appended visible.

        An empty transaction is aborted: when the final InitProducerId returns, its marker is on the partitions and
        replicated, so older epochs get INVALID_PRODUCER_EPOCH and the high watermark covers their records. Uses one
        offset of each partition.

        Args:
            commit: commit an open transaction if it covers no other partitions; otherwise it is aborted.
        """
        if commit:
            await self._commit_open(transactional_id, targets, deadline=deadline)
        identity = await self.init_producer_id(transactional_id, deadline=deadline)
        await self.add_to_transaction(transactional_id, identity, targets, deadline=deadline)
        await self.end_transaction(transactional_id, identity, commit=False, deadline=deadline)
        return await self.init_producer_id(transactional_id, deadline=deadline)

    async def _commit_open(
        self, transactional_id: str, targets: Collection[TopicPartition], *, deadline: float
    ) -> None:
        transaction = await self.transaction_state(transactional_id, deadline=deadline)
        if transaction is None or not transaction.open or not transaction.partitions <= set(targets):
            return
        request = EndTxnRequest(transactional_id, transaction.producer_id, transaction.epoch, True)
        doing = "commit the transaction of"
        await self._ask_coordinator(transactional_id, request, deadline, doing, taken=_ENDED_MEANWHILE)

    async def add_to_transaction(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: Iterable[TopicPartition],
        *,
        deadline: float,
    ) -> None:
        """Add partitions to the producer's transaction before it writes to them; begin one if there is none.

        Raises:
            FencedError: the producer has been fenced, or its transaction has timed out.
            MirrorError: the coordinator rejected the request, or did not respond in time.
        """
        topics = [(topic, [each[1] for each in wanted]) for topic, wanted in by_topic(list(partitions)).items()]
        request = AddPartitionsToTxnRequest(transactional_id, identity.producer_id, identity.epoch, topics)
        doing, topic = "add partitions to the transaction of", ", ".join(name for name, _ in topics)
        await self._ask_coordinator(transactional_id, request, deadline, doing, topic=topic)

    async def end_transaction(
        self, transactional_id: str, identity: ProducerIdentity, *, commit: bool, deadline: float
    ) -> None:
        """Commit or abort the producer's transaction. Its markers are written shortly after the response.

        Raises:
            FencedError: the producer has been fenced, or its transaction has timed out and is aborted.
            MirrorError: the coordinator rejected the request, or did not respond in time: the result is not known.
        """
        request = EndTxnRequest(transactional_id, identity.producer_id, identity.epoch, commit)
        doing = f"{'commit' if commit else 'abort'} the transaction of"
        await self._ask_coordinator(transactional_id, request, deadline, doing)

    async def transaction_state(self, transactional_id: str, *, deadline: float) -> TransactionState | None:
        """The coordinator's state of the transactions of an id; None for an unknown id.

        None, too, if the coordinator is older than Kafka 3.0.

        Raises:
            MirrorError: the coordinator rejected the request, or did not respond in time.
        """
        question = encode_describe_transaction(transactional_id)

        async def ask(node: int) -> tuple[int, TransactionState | None]:
            if not await self._brokers.speaks(node, DESCRIBE_TRANSACTIONS, DESCRIBE_TRANSACTIONS_VERSION):
                return ErrorCode.NONE, None
            response = await self._brokers.ask(node, DESCRIBE_TRANSACTIONS, DESCRIBE_TRANSACTIONS_VERSION, question)
            described = parse_describe_transaction(response)
            if described.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                return ErrorCode.NONE, None
            return described.error_code, described

        return await self._from_coordinator(transactional_id, ask, deadline, "describe the transaction of")

    async def names_of(self, producer_ids: Collection[int]) -> list[str]:
        """The transactional ids of producers that this user may describe; empty before Kafka 3.0.

        Raises:
            MirrorError: a broker did not respond, or rejected the request.
        """
        return sorted(await self.transactional_ids(producer_ids) or ()) if producer_ids else []

    async def transactional_ids(self, producer_ids: Collection[int] = ()) -> dict[str, int] | None:
        """The producer ids of transactional ids that this user may describe; None before Kafka 3.0.

        Args:
            producer_ids: only of these producers; empty for all.

        Raises:
            MirrorError: a broker did not respond, or rejected the request.
        """
        found = await asyncio.gather(*(self._names_of(node, producer_ids) for node in self._brokers.brokers()))
        listed = [names for names in found if names is not None]
        return {name: each for names in listed for name, each in names.items()} if listed else None

    async def _names_of(self, node: int, producer_ids: Collection[int]) -> dict[str, int] | None:
        if not await self._brokers.speaks(node, LIST_TRANSACTIONS, LIST_TRANSACTIONS_VERSION):
            return None
        question = encode_list_transactions(producer_ids)
        response = await self._brokers.ask(node, LIST_TRANSACTIONS, LIST_TRANSACTIONS_VERSION, question)
        code, names = parse_list_transactions(response)
        if code:
            raise error_for_code(code, where=Where(cluster=self._brokers.cluster), doing="list transactions")
        return names

    async def _ask_coordinator(
        self,
        transactional_id: str,
        request: Any,
        deadline: float,
        doing: str,
        *,
        topic: str = "",
        taken: Collection[int] = (),
    ) -> Any:
        """The coordinator's response; with an error code only if that is among `taken`."""

        async def ask(node: int) -> tuple[int, Any]:
            response = await self._brokers.send(node, request, coordination=True)
            code = _coordinator_error(response)
            return ErrorCode.NONE if code in taken else code, response

        return await self._from_coordinator(transactional_id, ask, deadline, doing, topic=topic)

    async def _from_coordinator(
        self,
        transactional_id: str,
        ask: Callable[[int], Awaitable[tuple[int, _Answer]]],
        deadline: float,
        doing: str,
        *,
        topic: str = "",
    ) -> _Answer:
        """The result of a request to the coordinator of an id; `ask` returns it with its error code."""

        async def attempt() -> tuple[int, _Answer]:
            try:
                code, response = await ask(await self._coordinator(transactional_id))
            except BrokerUnreachableError:
                self._coordinators.pop(transactional_id, None)
                raise
            if code in _MOVED:
                self._coordinators.pop(transactional_id, None)
            return code, response

        return await self._retry_until_response(
            attempt,
            deadline,
            f"{doing} {transactional_id}",
            lambda code: _transactional(code, transactional_id, topic),
            request="the brokers that hold __transaction_state",
        )

    async def _retry_until_response(
        self,
        attempt: Callable[[], Awaitable[tuple[int, _Answer]]],
        deadline: float,
        doing: str,
        needs: Callable[[int], Grant],
        *,
        request: str,
    ) -> _Answer:
        """Retry until there is a result without a retriable error; `request` names the brokers that must be healthy."""
        pause = _FIRST_PAUSE
        while True:
            try:
                code, response = await attempt()
            except BrokerUnreachableError:
                if time.monotonic() > deadline:
                    raise
                code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            else:
                if code == ErrorCode.NONE:
                    return response
            where = Where(cluster=self._brokers.cluster)
            if code not in _COORDINATOR_RETRIES:
                raise error_for_code(code, where=where, doing=doing, needs=needs(code))
            if time.monotonic() > deadline:
                raise RetriesExhaustedError(
                    f"could not {doing} in time (error code {code}).",
                    where=where,
                    action=f"Check {request}; run again when they are healthy.",
                )
            await asyncio.sleep(pause)
            pause = min(pause * 2, 1.0)

    async def _coordinator(self, transactional_id: str) -> int:
        node = self._coordinators.get(transactional_id)
        if node is None:
            try:
                node = await self._brokers.transaction_coordinator(transactional_id)
            except aiokafka_errors.TransactionalIdAuthorizationFailed as error:
                raise error_for_code(
                    error.errno,
                    where=Where(cluster=self._brokers.cluster),
                    doing=f"use transactional id {transactional_id}",
                    needs=Grant.on_transactional_id(Operation.WRITE, transactional_id),
                ) from error
            self._coordinators[transactional_id] = node
        return node


def _transactional(code: int, transactional_id: str, topic: str) -> Grant:
    """The permission that a request of a transaction's owner needs: on the id and, if it names one, on the topic."""
    if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return Grant.on_topic(Operation.WRITE, topic)
    return Grant.on_transactional_id(Operation.WRITE, transactional_id)


def _coordinator_error(response: Any) -> int:
    if hasattr(response, "error_code"):
        return int(response.error_code)
    codes = [int(code) for _topic, partitions in response.errors for _partition, code in partitions]
    # Of several partitions one is refused, and the others were not tried.
    return next((code for code in sorted(codes, key=_is_consequence) if code), ErrorCode.NONE)


def _is_consequence(code: int) -> bool:
    return code == ErrorCode.OPERATION_NOT_ATTEMPTED
