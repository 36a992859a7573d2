"""One partition of the target as its writer sees it: what waits, what is on its way, and what is known about it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from mirror_lib.cluster.batches import ReadyBatch, stamp
from mirror_lib.cluster.protocol import ErrorCode
from mirror_lib.cluster.raw import Backoff, ProducedPartition
from mirror_lib.errors import MirrorError
from mirror_lib.relay.copy.partition_progress import PartitionCopy
from mirror_lib.relay.model import OpenPartition

#: Sequence numbers go round.
SEQUENCES = 2**31

#: Brokers answer so only where they have appended nothing. Others can also come after the append: a leader that steps
#: down while it waits for its followers answers NOT_LEADER_OR_FOLLOWER, and the next one may have the batch.
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
#: These tell of another writer, or of a log that lost what it had acknowledged: such a position is not ours to close.
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
#: Connections that end while a batch is on its way until it is sent alone: one of them is an accident.
_SUSPECTED = 2


class Guard(Enum):
    """What keeps a writer that was overtaken from appending to a partition, and whether that is in force."""

    #: The broker's memory of the producer and its epoch.
    EPOCH = auto()
    #: A transaction is about to begin: nothing is sent before it has.
    BEGINNING = auto()
    #: A transaction: the coordinator is asked, whatever the broker remembers (KIP-890).
    TRANSACTION = auto()
    #: It is about to end: nothing more is put into it.
    ENDING = auto()


class Step(Enum):
    """What a partition whose next batch may be sent can do over a connection."""

    #: Send it.
    SEND = auto()
    #: Look at the log first: a writer that was stopped, or cut off, may have been overtaken since.
    LOOK = auto()
    #: Wait until what is on its way is answered.
    WAIT = auto()


#: Python 3.11 takes thirty times as long to find them in their classes, and they are asked for with each batch.
EPOCH, TRANSACTION = Guard.EPOCH, Guard.TRANSACTION
SEND, LOOK, WAIT = Step.SEND, Step.LOOK, Step.WAIT


class ConnectionSlot(NamedTuple):
    """One of the connections to a broker."""

    leader: int
    connection: int


@dataclass(slots=True, eq=False)
class Outgoing:
    """A batch with its place in the target's log, and the broker's answer once there is one."""

    batch: ReadyBatch
    copy: PartitionCopy
    expected_offset: int
    sequence: int
    #: Its timestamps are so old that brokers may forget who wrote it.
    old: bool = False
    #: Whether a try went unanswered. Its request may still be on its way, and the broker takes it until a newer epoch
    #: has written there: that the log does not hold the batch now does not say that it never will.
    unanswered: bool = False
    answer: ProducedPartition | MirrorError | None = field(default=None, init=False)
    tries: int = field(default=0, init=False)
    #: Whether the target may hold the batch although it has not said so.
    maybe_appended: bool = field(default=False, init=False)
    _maybe_before: bool = field(default=False, init=False)
    #: Connections that ended while it was on its way (`torn_connections`), and those of them with nothing else on them.
    torn: int = 0
    torn_alone: int = 0

    @property
    def suspected(self) -> bool:
        """Whether it may be what ends connections, so that it goes with nothing else on its connection."""
        return self.torn >= _SUSPECTED

    def sent(self) -> None:
        """Note another try."""
        self.tries += 1
        self.answer = None
        self._maybe_before, self.maybe_appended = self.maybe_appended, True

    def answered(self, answer: ProducedPartition | MirrorError) -> None:
        """Note how the try ended."""
        self.answer = answer
        if not isinstance(answer, ProducedPartition):
            self.unanswered = True
        if isinstance(answer, ProducedPartition) and answer.error_code in _NOT_APPENDED:
            self.maybe_appended = self._maybe_before


class PartitionWriter:
    """One target partition: what waits, what is on its way, and which sequence and offset come next."""

    def __init__(self, opened: OpenPartition, retry_seconds: float) -> None:
        self.target = opened.plan.target
        #: The topic that may be written to, whatever else gets its name; None before Kafka 2.8.
        self.topic_id = opened.plan.target_topic_id
        #: The leader that it was counted for, and its number among those of that leader: it decides over which of
        #: several connections its batches go.
        self.leader: int | None = None
        self.number = 0
        #: What its batches went over last.
        self.slot: ConnectionSlot | None = None
        #: Its batches are made larger, since its leader is far away.
        self.gathers_more = False
        #: What is written here: several source partitions in a merge.
        self.copies: list[PartitionCopy] = []
        self.producer_id = opened.producer_id
        self.epoch = opened.epoch
        #: The id of the producer whose transactions all batches are in, which somebody else begins and ends; None where
        #: there are none.
        self.transactions = opened.transactions
        #: The id of the producer, for transactions that begin and end here; None where the target refuses such ids.
        self.transactional_id = opened.transactional_id
        self.guard = EPOCH
        #: Old batches are sent in a transaction only.
        self.guards_old = False
        self.next_sequence = 0
        self.next_offset = opened.target_offset
        self.waiting: deque[Outgoing] = deque()
        self.in_flight: deque[Outgoing] = deque()
        #: What `in_flight` was sent over; None when the connection had to be made first.
        self.connection: object = None
        #: The connection over which the leader has last acknowledged a batch, so that it knows the producer. Another
        #: connection may lead to another leader, or to the same broker after a restart.
        self.known_over: object = None
        #: Some of `waiting` may be in the log already, or somebody else may have written: the log is to be looked at
        #: before anything is sent.
        self.unsure = False
        #: Time has passed in which another writer may have taken over: `unsure` as soon as nothing is on its way.
        self.stale = False
        self.looking = False
        #: The first of `waiting` was refused for what is in it; nothing is sent until that is seen to.
        self.dividing = False
        #: The topic is not known any more; nothing is sent until it is found out what has become of it.
        self.lost = False
        #: Batches that were answered while an earlier one must be sent again: they all go again, in order.
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
            and not self.backoff.waiting
            and ((self.guard is EPOCH and not self.guards_old) or self._guarded)
        )

    @property
    def _guarded(self) -> bool:
        """Whether the guard that the next batch needs is in force."""
        if self.guard is EPOCH:
            return not (self.guards_old and self.waiting[0].old)
        # What may be in a transaction that is to end is sent again, but nothing more.
        return self.guard is TRANSACTION or self.waiting[0].maybe_appended

    @property
    def goes_one_by_one(self) -> bool:
        """Whether its next batch waits until the one before it is acknowledged, since it is old.

        One that waits for a transaction leaves the queue: who begins it puts the partition there again.
        """
        return self.guard is EPOCH and not self.guards_old and bool(self.waiting) and self.waiting[0].old

    @property
    def needs_transaction(self) -> bool:
        """Whether a transaction is to begin before anything more is sent."""
        return (
            self.guards_old
            and self.guard is EPOCH
            and bool(self.waiting)
            and self.waiting[0].old
            and self.failed is None
            and self.at_rest
            and not self.backoff.waiting
        )

    def step_over(self, connection: object) -> Step:
        """What to do over a connection, while `sendable`."""
        if not self.in_flight:
            moved = self.connection is not None and connection != self.connection
            return LOOK if moved or self.stale else SEND
        if connection is None or not connection == self.connection == self.known_over or self.stale:
            return WAIT
        # A broker may forget the producer of an old batch as soon as it is there, and then takes any sequence number.
        # It forgets none whose transaction is open.
        if (self.waiting[0].old or self.in_flight[-1].old) and self.guard is not TRANSACTION:
            return WAIT
        return SEND

    @property
    def at_rest(self) -> bool:
        """Whether nothing of it is on its way or may be on the target unseen; what has failed is not looked for."""
        if self.failed is not None:
            return not self.in_flight
        return not (self.in_flight or self.resend or self.unsure or (self.waiting and self.waiting[0].maybe_appended))

    @property
    def untroubled(self) -> bool:
        """Whether all goes as it should: nothing is to be sent again, looked for, or left alone."""
        return self.failed is None and not self.resend and not self.unsure

    def append(self, copy: PartitionCopy, batches: Sequence[ReadyBatch], *, old_before: int) -> int:
        """Put batches behind all that was written before; returns their bytes.

        Args:
            old_before: epoch milliseconds; a batch whose newest timestamp lies before is old.
        """
        size, sequence, offset = 0, self.next_sequence, self.next_offset
        for batch in batches:
            self.waiting.append(Outgoing(batch, copy, offset, sequence, batch.max_timestamp < old_before))
            count = batch.count
            sequence = (sequence + count) % SEQUENCES
            offset += count
            size += len(batch.payload)
        self.next_sequence, self.next_offset = sequence, offset
        return size

    @property
    def acknowledged_end(self) -> int:
        """Where the log ends behind all that is acknowledged, while nothing is on its way."""
        return self.waiting[0].expected_offset if self.waiting else self.next_offset

    def marked(self) -> None:
        """Note that a transaction's marker stands behind what is acknowledged."""
        for outgoing in self.waiting:
            outgoing.expected_offset += 1
        self.next_offset += 1

    @property
    def names_in_request(self) -> str | None:
        """The id of the producer in whose transaction the next batch is; None where it is in none."""
        if self.guard is not EPOCH:
            return self.transactional_id
        return self.transactions

    def next_over(self, connection: object, *, in_transaction: bool) -> Outgoing:
        """Put the first that waits on its way over a connection."""
        self.connection = connection
        outgoing = self.waiting.popleft()
        stamp(outgoing.batch, self.producer_id, self.epoch, outgoing.sequence, in_transaction=in_transaction)
        outgoing.sent()
        self.in_flight.append(outgoing)
        return outgoing

    def divide_first(self, parts: Iterable[ReadyBatch]) -> None:
        """Put several batches with the same records in the place of the first that waits."""
        outgoing = self.waiting.popleft()
        old, unanswered = outgoing.old, outgoing.unanswered
        torn, alone = outgoing.torn, min(outgoing.torn_alone, 1)
        self._place(
            [Outgoing(part, outgoing.copy, 0, 0, old, unanswered, torn=torn, torn_alone=alone) for part in parts],
            outgoing,
        )

    def drop_first(self) -> None:
        """Take out the first that waits; all behind it move. Nothing of them may be on the target."""
        outgoing = self.waiting.popleft()
        behind = [Outgoing(each.batch, each.copy, 0, 0, each.old, each.unanswered) for each in self.waiting]
        self.waiting.clear()
        self.next_sequence = (self.next_sequence - outgoing.batch.count) % SEQUENCES
        self.next_offset -= outgoing.batch.count
        self._place(behind, outgoing)

    def _place(self, placed: list[Outgoing], former: Outgoing) -> None:
        """Put batches in front of `waiting`, from where another one was to stand."""
        offset, sequence = former.expected_offset, former.sequence
        for outgoing in placed:
            outgoing.expected_offset, outgoing.sequence = offset, sequence
            sequence = (sequence + outgoing.batch.count) % SEQUENCES
            offset += outgoing.batch.count
        self.waiting.extendleft(reversed(placed))


#: What a request holds: the batch of each target partition, and whose it is.
Chosen = dict[tuple[str, int], tuple[PartitionWriter, Outgoing]]


def first_of_each(
    queue: deque[PartitionWriter],
    slot: ConnectionSlot,
    connection: object,
    *,
    most: int,
    look: Callable[[PartitionWriter], None],
) -> Chosen:
    """Take what the next request is to hold: one batch of each partition that waits.

    Partitions that have more to send go to the end of the queue.

    Args:
        queue: partitions that may have something to send over the slot.
        connection: that the slot is now; None before it is made.
        most: bytes of all batches together, unless one alone is larger.
        look: given partitions whose log is to be looked at first.
    """
    chosen: Chosen = {}
    transactional_id: str | None = None
    size = 0
    for _ in range(len(queue)):
        writer = queue[0]
        name = writer.names_in_request
        if chosen and name != transactional_id:
            # A request speaks for one producer's transaction, or for none.
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
        if size >= most or outgoing.suspected:
            break
    return chosen


def _joins(outgoing: Outgoing, size: int, most: int) -> bool:
    return outgoing.torn < _SUSPECTED and size + len(outgoing.batch.payload) <= most
