"""One partition of the target as its writer sees it: what waits, what is on its way, and what is known about it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mirror_lib.cluster.batches.assemble import ReadyBatch
from mirror_lib.cluster.batches.stamp import stamp
from mirror_lib.cluster.error_codes import ErrorCode
from mirror_lib.cluster.raw import ProducedPartition
from mirror_lib.cluster.retry import Backoff
from mirror_lib.errors import MirrorError
from mirror_lib.relay.model import OpenPartition
from mirror_lib.relay.partition_copy import PartitionCopy

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
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    }
)
#: Connections that end while a batch is on its way until it is sent alone: one of them is an accident.
_SUSPECTED = 2


class Lane(NamedTuple):
    """One of the connections to a broker."""

    leader: int
    connection: int


@dataclass(slots=True, eq=False)
class Outgoing:
    """A batch with its place in the target's log, and the broker's answer once there is one."""

    batch: ReadyBatch
    copy: PartitionCopy
    expected_offset: int
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
        #: The leader that it was counted for, and its number among those of that leader: it decides over which of
        #: several connections its batches go.
        self.leader: int | None = None
        self.number = 0
        #: What its batches went over last.
        self.lane: Lane | None = None
        #: Its batches are made larger, since its leader is far away.
        self.gathers_more = False
        #: What is written here: several source partitions in a merge.
        self.copies: list[PartitionCopy] = []
        self.producer_id = opened.producer_id
        self.epoch = opened.epoch
        #: The id of the producer whose transactions all batches are in; None where they are in none.
        self.transactional_id = opened.transactions
        self.next_sequence = 0
        self.next_offset = opened.target_offset
        self.waiting: deque[Outgoing] = deque()
        self.in_flight: deque[Outgoing] = deque()
        #: What `in_flight` was sent over; None when the connection had to be made first.
        self.connection: object = None
        #: The connection over which the leader has last acknowledged a batch, so that it knows the producer. Another
        #: connection may lead to another leader, or to the same broker after a restart.
        self.known_over: object = None
        #: Some of `waiting` may be in the log already: to be looked for before anything is sent.
        self.unsure = False
        self.looking = False
        #: The first of `waiting` was refused for what is in it; nothing is sent until that is seen to.
        self.dividing = False
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
        )

    def sendable_over(self, connection: object) -> bool:
        if self.in_flight and (connection is None or not connection == self.connection == self.known_over):
            return False
        return self.sendable

    @property
    def untroubled(self) -> bool:
        """Whether all goes as it should: nothing is to be sent again, looked for, or left alone."""
        return self.failed is None and not self.resend and not self.unsure

    def append(self, copy: PartitionCopy, batches: Sequence[ReadyBatch]) -> int:
        """Put batches behind all that was written before; returns their bytes."""
        size, sequence, offset = 0, self.next_sequence, self.next_offset
        producer_id, epoch, in_transaction = self.producer_id, self.epoch, self.transactional_id is not None
        for batch in batches:
            stamp(batch, producer_id, epoch, sequence, in_transaction=in_transaction)
            self.waiting.append(Outgoing(batch, copy, offset))
            count = batch.count
            sequence = (sequence + count) % SEQUENCES
            offset += count
            size += len(batch.payload)
        self.next_sequence, self.next_offset = sequence, offset
        return size

    def next_over(self, connection: object) -> Outgoing | None:
        """Put the first that waits on its way over a connection; None where nothing may be sent over it now."""
        if not self.sendable_over(connection):
            return None
        self.connection = connection
        outgoing = self.waiting.popleft()
        outgoing.sent()
        self.in_flight.append(outgoing)
        return outgoing

    def divide_first(self, parts: Iterable[ReadyBatch]) -> None:
        """Put several batches with the same records in the place of the first that waits."""
        outgoing = self.waiting.popleft()
        torn, alone = outgoing.torn, min(outgoing.torn_alone, 1)
        placed = [Outgoing(part, outgoing.copy, 0, outgoing.unanswered, torn=torn, torn_alone=alone) for part in parts]
        self._place(placed, outgoing.expected_offset)

    def drop_first(self) -> None:
        """Take out the first that waits; all behind it move. Nothing of them may be on the target."""
        outgoing = self.waiting.popleft()
        behind = [Outgoing(each.batch, each.copy, 0, each.unanswered) for each in self.waiting]
        self.waiting.clear()
        self.next_sequence = (self.next_sequence - outgoing.batch.count) % SEQUENCES
        self.next_offset -= outgoing.batch.count
        self._place(behind, outgoing.expected_offset)

    def _place(self, placed: list[Outgoing], offset: int) -> None:
        """Put batches in front of `waiting`, from a target offset on."""
        # What is between there and the end of all that was written has the last of the sequence numbers.
        sequence = (self.next_sequence - (self.next_offset - offset)) % SEQUENCES
        in_transaction = self.transactional_id is not None
        for outgoing in placed:
            outgoing.expected_offset = offset
            stamp(outgoing.batch, self.producer_id, self.epoch, sequence, in_transaction=in_transaction)
            sequence = (sequence + outgoing.batch.count) % SEQUENCES
            offset += outgoing.batch.count
        self.waiting.extendleft(reversed(placed))


#: What a request holds: the batch of each target partition, and whose it is.
Chosen = dict[tuple[str, int], tuple[PartitionWriter, Outgoing]]


def first_of_each(queue: deque[PartitionWriter], lane: Lane, connection: object, *, most: int) -> Chosen:
    """Take what the next request is to hold: one batch of each partition that waits.

    Partitions that have more to send go to the end of the queue.

    Args:
        queue: partitions that may have something to send over the lane.
        connection: that the lane is now; None before it is made.
        most: bytes of all batches together, unless one alone is larger.
    """
    chosen: Chosen = {}
    transactional_id: str | None = None
    size = 0
    for _ in range(len(queue)):
        writer = queue[0]
        if chosen and writer.transactional_id != transactional_id:
            # A request speaks for one producer's transaction, or for none.
            break
        if chosen and writer.waiting and not _joins(writer.waiting[0], size, most):
            break
        queue.popleft()
        outgoing = writer.next_over(connection)
        if outgoing is None:
            writer.queued = False
            continue
        if writer.waiting and writer.lane == lane:
            queue.append(writer)
        else:
            writer.queued = False
        transactional_id = writer.transactional_id
        chosen[writer.target] = writer, outgoing
        size += len(outgoing.batch.payload)
        if size >= most or outgoing.suspected:
            break
    return chosen


def _joins(outgoing: Outgoing, size: int, most: int) -> bool:
    return not outgoing.suspected and size + len(outgoing.batch.payload) <= most
