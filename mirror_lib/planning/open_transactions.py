"""Open transactions of the source, for flows of committed records: pure rules and messages.

A transaction that is open for a moment is normal; its records are part of the lag. A transaction that is older than
the brokers' limit (`transaction.max.timeout.ms`) does not end by itself any more: an operator must abort it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.raw.open_transactions import HiddenRecords
from mirror_lib.counted import counted
from mirror_lib.errors import AuthorizationError, SourceTransactionOpenError, Where
from mirror_lib.past_runs.outlooks import duration
from mirror_lib.planning.model import HiddenPartition, PartitionProblem
from mirror_lib.planning.source_logs import LONG_OPEN_SECONDS
from mirror_lib.printable import printable
from mirror_lib.topology.names import FlowId

#: Kafka's default of `transaction.max.timeout.ms`, for brokers that do not report it.
DEFAULT_LONGEST_SECONDS = 900.0
#: A coordinator checks for transactions to abort every 10 s, and markers take a moment.
_GRACE_SECONDS = 60.0
_NAMED = 3


def longest_transaction_seconds(admin: ClusterAdmin) -> float:
    """Maximum seconds that a transaction may stay open on a cluster.

    Raises:
        MirrorError: the cluster did not respond in time.
    """
    try:
        configs = admin.broker_configs()
    except AuthorizationError:
        return DEFAULT_LONGEST_SECONDS
    return longest_by(configs)


def longest_by(configs: Mapping[str, str | None]) -> float:
    """The same, from a broker's configs."""
    limit = configs.get("transaction.max.timeout.ms")
    return int(limit) / 1000 if limit is not None and limit.isdigit() else DEFAULT_LONGEST_SECONDS


def is_hanging(hidden: HiddenRecords, *, now: float, longest_seconds: float) -> bool:
    """Return whether only an operator can end the transaction.

    Args:
        now: epoch seconds.
        longest_seconds: maximum seconds that a transaction may stay open on this cluster.
    """
    age, limit = _age(hidden, now), longest_seconds
    if hidden.is_coordinated and hidden.timeout_ms is not None:
        limit = hidden.timeout_ms / 1000
    return age is not None and age > limit + _GRACE_SECONDS


def hanging_problems(
    flow: FlowId, hidden: Iterable[HiddenPartition], *, now: float, longest_seconds: float
) -> tuple[PartitionProblem, ...]:
    """The partitions whose records stay hidden until an operator acts."""
    return tuple(
        PartitionProblem(each.source, _error(flow, each, now))
        for each in hidden
        if is_hanging(each.records, now=now, longest_seconds=longest_seconds)
    )


def _error(flow: FlowId, hidden: HiddenPartition, now: float) -> SourceTransactionOpenError:
    records, (topic, partition) = hidden.records, hidden.source
    place = f"--topic {topic} --partition {partition}"
    return SourceTransactionOpenError(
        f"a transaction on the source is open from offset {records.first}, {_since(records, now)} "
        f"({_producer(records)}): {counted(hidden.offsets, 'offset')} up to the high watermark {records.end} "
        "are hidden from "
        "read_committed consumers and cannot be copied, and retention may delete them.",
        where=Where(flow=str(flow), topic=topic, partition=partition, offset=records.first),
        action=f"On cluster {flow.source}: stop its producer if it still runs. Then `kafka-transactions.sh "
        f"--bootstrap-server ... find-hanging {place}`, and `kafka-transactions.sh --bootstrap-server ... abort "
        f"{place} --start-offset {records.first}`; the next run continues.",
    )


def open_transaction_notes(hidden: Sequence[HiddenPartition], *, now: float) -> Iterator[str]:
    """A sentence about transactions that have been open for long, oldest first, if there are any.

    Args:
        now: epoch seconds.
    """
    old = [each for each in hidden if (_age(each.records, now) or 0.0) > LONG_OPEN_SECONDS]
    old.sort(key=lambda each: -(_age(each.records, now) or 0.0))
    if old:
        shown = "; ".join(
            f"{each.source} from offset {each.records.first}, {_since(each.records, now)} "
            f"({_producer(each.records)}; {each.offsets:,} offsets are hidden)"
            for each in old[:_NAMED]
        )
        more = f"; and {len(old) - _NAMED:,} more partitions" if len(old) > _NAMED else ""
        yield f"Transactions are open on the source: {shown}{more}. They are copied once the transactions have ended."


def shown_transaction(hidden: HiddenRecords, *, now: float) -> str:
    """Since when a transaction is open, and its producer, as far as they are known.

    Args:
        now: epoch seconds.
    """
    return f"{_since(hidden, now)} ({_producer(hidden)})"


def hidden_detail(hidden: HiddenRecords, position: int) -> str:
    """The detail of an observation about hidden records that need no action."""
    offsets = hidden.end - max(hidden.first, position)
    return f"{offsets:,} offsets are hidden by a transaction that is open on the source from offset {hidden.first}"


def _age(hidden: HiddenRecords, now: float) -> float | None:
    return None if hidden.open_since is None else now - hidden.open_since / 1000


def _since(hidden: HiddenRecords, now: float) -> str:
    age = _age(hidden, now)
    if age is None or hidden.open_since is None:
        return "start time unknown"
    at = _moment(hidden.open_since)
    return f"since {at} ({duration(max(age, 0.0))})" if at else "start time unknown"


def _moment(milliseconds: int) -> str | None:
    try:
        return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, OSError, ValueError):
        return None


def _producer(hidden: HiddenRecords) -> str:
    if hidden.producer_id is None:
        return "producer id unknown"
    if hidden.transactional_id is None:
        return f"producer id {hidden.producer_id}, transactional id unknown to every coordinator"
    known = "" if hidden.is_coordinated else ", whose coordinator does not know that it covers the partition"
    return f"producer id {hidden.producer_id}, transactional id {printable(hidden.transactional_id)}{known}"
