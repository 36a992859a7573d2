"""One target partition from its writer's view: waiting batches, batches in flight, and what is known about them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.raw.backoff import Backoff
from mirror_lib.cluster.raw.client import ProducedPartition
from mirror_lib.copy.transfer.partition_progress import PartitionCopy
from mirror_lib.errors import MirrorError
from mirror_lib.planning.model import OpenPartition
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.records.stamping import stamp

#: Sequence numbers wrap around.
SEQUENCES = 2**31

#: Errors that mean that nothing was appended. Others can also follow an append: a leader that resigns while it waits
#: for its followers returns NOT_LEADER_OR_FOLLOWER, and the next leader may have the batch.
_NOT_APPENDED = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    }
)
#: Errors that mean another writer, or a log that lost acknowledged batches: such a position must not be closed.
NOT_ALONE = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    }
)
#: Connections that end with a batch in flight until it is sent alone: one of them may be an accident.
_SUSPECTED = 2


class Guard(Enum):
    """The guard that keeps a fenced writer from appending to a partition, and whether it is in force."""

    #: The broker's memory of the producer and its epoch.
    EPOCH = auto()
    #: A transaction is about to begin: nothing is sent before.
    BEGINNING = auto()
    #: A transaction: the coordinator is asked, regardless of what the broker remembers (KIP-890).
    TRANSACTION = auto()
    #: The transaction is about to end: no batch is added.
    ENDING = auto()
    #: A hole of the source is being filled: nothing is sent before.
    FILLING = auto()


class Step(Enum):
    """The next step of a partition over a connection, if its next batch can be sent."""

    #: Send it.
    SEND = auto()
    #: Check the log first: a writer that was suspended or disconnected may have been fenced since.
    LOOK = auto()
    #: Wait for the responses to the batches in flight.
    WAIT = auto()


#: Python 3.11 takes thirty times as long to look them up in their class, and each batch needs them.
EPOCH, TRANSACTION = Guard.EPOCH, Guard.TRANSACTION
SEND, LOOK, WAIT = Step.SEND, Step.LOOK, Step.WAIT


class ConnectionSlot(NamedTuple):
    """One of the connections to a broker."""

    leader: int
    connection: int


@dataclass(slots=True, eq=False)
class Outgoing:
    """A batch with its offset in the target's log, and the broker's response once there is one."""

    batch: ReadyBatch
    copy: PartitionCopy
    expected_offset: int
    sequence: int
    #: Its timestamps are so old that brokers may forget its producer.
    old: bool = False
    #: Whether a try got no response. Its request may still be in flight, and the broker accepts it until a newer epoch
    #: has written there: a log without the batch may still get it.
    got_no_response: bool = False
    response: ProducedPartition | MirrorError | None = field(default=None, init=False)
    tries: int = field(default=0, init=False)
    #: Whether the target may have the batch although it has not confirmed it.
    maybe_appended: bool = field(default=False, init=False)
    _maybe_before: bool = field(default=False, init=False)
    #: Connections that ended while it was in flight (`torn_connections`), and those of them with nothing else on them.
    torn: int = 0
    torn_alone: int = 0

    @property
    def next_offset(self) -> int:
        """The target offset after it."""
        return self.expected_offset + self.batch.count

    @property
    def is_suspected(self) -> bool:
        """True if it may be the cause of ended connections, so that it must be alone on its connection."""
        return self.torn >= _SUSPECTED

    def record_try(self) -> None:
        """Record another try."""
        self.tries += 1
        self.response = None
        self._maybe_before, self.maybe_appended = self.maybe_appended, True

    def record_response(self, response: ProducedPartition | MirrorError) -> None:
        """Record how the try ended."""
        self.response = response
        if not isinstance(response, ProducedPartition):
            self.got_no_response = True
        if isinstance(response, ProducedPartition) and response.error_code in _NOT_APPENDED:
            self.maybe_appended = self._maybe_before


class PartitionWriter:
    """One target partition: waiting batches, batches in flight, next sequence number and next offset."""

    def __init__(self, opened: OpenPartition, retry_seconds: float, *, same_offsets: bool = False) -> None:
        self.target = opened.plan.target
        #: Each record gets the offset that it has at the source (`holes`).
        self.same_offsets = same_offsets
        #: Id of the topic to write to, even if another topic gets its name; None before Kafka 2.8.
        self.topic_id = opened.plan.target_topic_id
        #: The leader for which it was counted, and its number among the partitions of that leader: it determines the
        #: connection of its batches.
        self.leader: int | None = None
        self.number = 0
        #: The connection slot of its last batches.
        self.slot: ConnectionSlot | None = None
        #: Its batches are larger, since its leader has high latency.
        self.gathers_more = False
        #: Source partitions that are written here: several in a merge.
        self.copies: list[PartitionCopy] = []
        self.producer_id = opened.producer_id
        self.epoch = opened.epoch
        #: The transactional id whose transactions hold all batches, and which are begun and ended elsewhere; None if
        #: there are none.
        self.transactions = opened.transactions
        #: The transactional id for transactions that begin and end here; None if the target refuses such ids.
        self.transactional_id = opened.transactional_id
        self.guard = EPOCH
        #: Old batches are sent only in a transaction.
        self.guards_old = False
        self.next_sequence = 0
        self.next_offset = opened.target_offset
        #: Log end offset after all that is acknowledged.
        self.end = opened.target_offset
        self.waiting: deque[Outgoing] = deque()
        self.in_flight: deque[Outgoing] = deque()
        #: The connection of `in_flight`; None if it had to be made first.
        self.connection: object = None
        #: The connection over which the leader has last acknowledged a batch, so that it knows the producer. Another
        #: connection may lead to another leader, or to the same broker after a restart.
        self.known_over: object = None
        #: Some of `waiting` may be in the log already, or another producer may have written: check the log before
        #: anything is sent.
        self.unsure = False
        #: Another writer may have taken over in the meantime: `unsure` as soon as nothing is in flight.
        self.stale = False
        self.looking = False
        #: The first of `waiting` was refused for its content; nothing is sent until that is handled.
        self.dividing = False
        #: The topic is unknown; nothing is sent until the cause is found.
        self.lost = False
        #: Batches with a response while an earlier one must be sent again: all are sent again, in order.
        self.resend: list[Outgoing] = []
        self.backoff = Backoff(retry_seconds)
        self.failed: MirrorError | None = None
        self.queued = False

    @property
    def has_failed(self) -> bool:
        return self.failed is not None

    @property
    def sendable(self) -> bool:
        return (
            bool(self.waiting)
            and not self.resend
            and not self.unsure
            and not self.dividing
            and self.failed is None
            and not self.backoff.is_waiting
            and ((self.guard is EPOCH and not self.guards_old) or self._is_guarded)
            and not (self.same_offsets and self._has_hole_ahead)
        )

    @property
    def _has_hole_ahead(self) -> bool:
        """True if the target must have markers before the first of `waiting`."""
        end = self.in_flight[-1].next_offset if self.in_flight else self.end
        return self.waiting[0].expected_offset > end

    @property
    def needs_filling(self) -> bool:
        """True if a hole must be filled before anything more is sent."""
        return (
            self.same_offsets
            and bool(self.waiting)
            and self.waiting[0].expected_offset > self.end
            and self.guard is EPOCH
            and self.failed is None
            and self.at_rest
            and not self.backoff.is_waiting
        )

    @property
    def _is_guarded(self) -> bool:
        """True if the guard that the next batch needs is in force."""
        if self.guard is EPOCH:
            return not (self.guards_old and self.waiting[0].old)
        # A batch that may be in an ending transaction is sent again, but no other one.
        return self.guard is TRANSACTION or self.waiting[0].maybe_appended

    @property
    def goes_one_by_one(self) -> bool:
        """True if its next batch waits until the one before it is acknowledged, since it is old.

        A partition that waits for a transaction leaves the queue; it is queued again when the transaction has begun.
        """
        return self.guard is EPOCH and not self.guards_old and bool(self.waiting) and self.waiting[0].old

    @property
    def needs_transaction(self) -> bool:
        """True if a transaction must begin before anything more is sent."""
        return (
            self.guards_old
            and self.guard is EPOCH
            and bool(self.waiting)
            and self.waiting[0].old
            and self.failed is None
            and self.at_rest
            and not self.backoff.is_waiting
        )

    def step_over(self, connection: object) -> Step:
        """The next step over a connection, while `sendable`."""
        if not self.in_flight:
            moved = self.connection is not None and connection != self.connection
            return LOOK if moved or self.stale else SEND
        if connection is None or not connection == self.connection == self.known_over or self.stale:
            return WAIT
        # A broker may forget the producer of an old batch as soon as it is appended, and then accepts any sequence
        # number. It does not forget a producer whose transaction is open.
        if (self.waiting[0].old or self.in_flight[-1].old) and self.guard is not TRANSACTION:
            return WAIT
        return SEND

    @property
    def at_rest(self) -> bool:
        """True if nothing is in flight or may be on the target unseen; after a failure only the former counts."""
        if self.failed is not None:
            return not self.in_flight
        return not (self.in_flight or self.resend or self.unsure or (self.waiting and self.waiting[0].maybe_appended))

    @property
    def is_untroubled(self) -> bool:
        """True if the log is as expected: nothing must be sent again, looked up, or sent alone."""
        return self.failed is None and not self.resend and not self.unsure

    def append(self, copy: PartitionCopy, batches: Sequence[ReadyBatch], *, old_before: int) -> int:
        """Queue batches after all that was written before; return their bytes.

        Args:
            old_before: epoch milliseconds; a batch whose newest timestamp is before it is old.
        """
        size, sequence, offset = 0, self.next_sequence, self.next_offset
        for batch in batches:
            if self.same_offsets:
                assert batch.source_runs[0][0] >= offset
                offset = batch.source_runs[0][0]
            self.waiting.append(Outgoing(batch, copy, offset, sequence, batch.max_timestamp < old_before))
            count = batch.count
            sequence = (sequence + count) % SEQUENCES
            offset += count
            size += len(batch.payload)
        self.next_sequence, self.next_offset = sequence, offset
        return size

    def record_marker(self) -> None:
        """Record that a transaction's marker follows what is acknowledged."""
        self.end += 1
        if not self.same_offsets:
            for outgoing in self.waiting:
                outgoing.expected_offset += 1
            self.next_offset += 1

    @property
    def names_in_request(self) -> str | None:
        """The transactional id of the next batch's transaction; None if it is in none."""
        if self.guard is not EPOCH:
            return self.transactional_id
        return self.transactions

    def next_over(self, connection: object, *, in_transaction: bool) -> Outgoing:
        """Move the first waiting batch in flight over a connection."""
        self.connection = connection
        outgoing = self.waiting.popleft()
        stamp(outgoing.batch, self.producer_id, self.epoch, outgoing.sequence, in_transaction=in_transaction)
        outgoing.record_try()
        self.in_flight.append(outgoing)
        return outgoing

    def divide_first(self, parts: Iterable[ReadyBatch]) -> None:
        """Replace the first waiting batch by several batches with the same records."""
        outgoing = self.waiting.popleft()
        old, unanswered = outgoing.old, outgoing.got_no_response
        torn, alone = outgoing.torn, min(outgoing.torn_alone, 1)
        self._place(
            [Outgoing(part, outgoing.copy, 0, 0, old, unanswered, torn=torn, torn_alone=alone) for part in parts],
            outgoing,
        )

    def drop_first(self) -> None:
        """Remove the first waiting batch; offsets of all later ones decrease. None of them may be on the target."""
        outgoing = self.waiting.popleft()
        behind = [Outgoing(each.batch, each.copy, 0, 0, each.old, each.got_no_response) for each in self.waiting]
        self.waiting.clear()
        self.next_sequence = (self.next_sequence - outgoing.batch.count) % SEQUENCES
        if not self.same_offsets:
            self.next_offset -= outgoing.batch.count
        self._place(behind, outgoing)

    def _place(self, placed: list[Outgoing], former: Outgoing) -> None:
        """Put batches in front of `waiting`, starting at the offset of the former batch."""
        offset, sequence = former.expected_offset, former.sequence
        for outgoing in placed:
            if self.same_offsets:
                offset = outgoing.batch.source_runs[0][0]
            outgoing.expected_offset, outgoing.sequence = offset, sequence
            sequence = (sequence + outgoing.batch.count) % SEQUENCES
            offset += outgoing.batch.count
        self.waiting.extendleft(reversed(placed))


#: Content of a request: the batch of each target partition, and its writer.
Chosen = dict[tuple[str, int], tuple[PartitionWriter, Outgoing]]


def first_of_each(
    queue: deque[PartitionWriter],
    slot: ConnectionSlot,
    connection: object,
    *,
    most: int,
    look: Callable[[PartitionWriter], None],
) -> Chosen:
    """Take the content of the next request: one batch of each waiting partition.

    Partitions that have more to send go to the end of the queue.

    Args:
        queue: partitions that may have batches to send over the slot.
        connection: the slot's current connection; None before it is made.
        most: maximum bytes of all batches together, unless a single one is larger.
        look: collects partitions whose log must be checked first.
    """
    chosen: Chosen = {}
    transactional_id: str | None = None
    size = 0
    for _ in range(len(queue)):
        writer = queue[0]
        name = writer.names_in_request
        if chosen and name != transactional_id:
            # A request names one producer's transaction, or none.
            break
        if chosen and writer.waiting and not _joins(writer.waiting[0], size, most):
            break
        queue.popleft()
        step = writer.step_over(connection) if writer.sendable else WAIT
        if step is not SEND:
            writer.queued = False
            if step is LOOK:
                look(writer)
            continue
        outgoing = writer.next_over(connection, in_transaction=name is not None)
        if writer.waiting and writer.slot == slot:
            queue.append(writer)
        else:
            writer.queued = False
        transactional_id = name
        chosen[writer.target] = writer, outgoing
        size += len(outgoing.batch.payload)
        if size >= most or outgoing.is_suspected:
            break
    return chosen


def _joins(outgoing: Outgoing, size: int, most: int) -> bool:
    return outgoing.torn < _SUSPECTED and size + len(outgoing.batch.payload) <= most
