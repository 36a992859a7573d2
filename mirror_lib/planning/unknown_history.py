"""Positions in Kafka whose history the ledger lacks: it was restored from a backup, is new, or another one copied.

Copying continues, since Kafka is the source of truth for positions. But gaps of the missing part are unknown, and so is
the map: nothing that depends on them is done until `mirror map rebuild`, or an operator, has closed the gap.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from mirror_lib.cluster.topics.position_format import Position
from mirror_lib.config.model import FlowConfig, IsolationLevel
from mirror_lib.counted import counted
from mirror_lib.errors import LedgerBehindError
from mirror_lib.identity.histories import History, LedgerState
from mirror_lib.identity.ledger_positions import LedgerPositions, Past, missing_part
from mirror_lib.identity.positions import position_row
from mirror_lib.ledger.offset_rows import TransactionCountRow
from mirror_lib.ledger.rows import GapRow, GapState
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.aborted_records import count_of, count_row
from mirror_lib.planning.model import PartitionFacts
from mirror_lib.records.transactions import TransactionCount
from mirror_lib.topology.names import TopicPartition

_NAMED = 3
#: If it is not known when a position was stored: pending deletions count as late.
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def history_notes(flow: FlowConfig, facts: Iterable[PartitionFacts]) -> Iterator[str]:
    """A sentence about the partitions whose history the ledger lacks, if there are any."""
    behind = [fact for fact in facts if fact.history.is_gap]
    if not behind:
        return
    named = ", ".join(
        f"{fact.source} (offsets {fact.history.first} to {fact.history.following - 1})" for fact in behind[:_NAMED]
    )
    more = f", and {len(behind) - _NAMED:,} more" if len(behind) > _NAMED else ""
    yield (
        f"The ledger lacks the history of {counted(len(behind), 'partition')}: {named}{more}. It was restored from a "
        "backup, or is another one than the last run's. Consumer groups with offsets before these ends are not "
        f"committed until `mirror map rebuild --flow '{flow.flow}' --apply` has read them from the logs, or "
        f"`mirror gaps accept --flow '{flow.flow}'` leaves them unknown."
    )


def note_histories(
    flow: FlowConfig, positions: Mapping[TopicPartition, Position], ledger: Ledger, *, run_id: str
) -> None:
    """Store what the ledger lacks of the way to these positions as open gaps, and the positions.

    What the ledger has about another copy is removed: the newest position says that it is void. Call this before
    another position is stored in the ledger: afterwards nothing shows the difference.

    Args:
        flow: the flow.
        positions: in Kafka now.
        ledger: the flow's.
        run_id: the run or decision that finds it.

    Raises:
        LedgerError: the ledger cannot be used.
    """
    known = LedgerPositions.read(ledger, flow.flow)
    past = {source: Past.of(position, known, source) for source, position in positions.items()}
    rows = []
    for source, (_, history, row) in past.items():
        if history.is_gap:
            ledger.record_gap(_gap_row(flow, source, history, positions[source].topic_id, run_id=run_id))
        if history.state is LedgerState.OTHER_COPY:
            ledger.replace_segments(str(flow.flow), *source, [])
            ledger.forget_routes(str(flow.flow), source)
        if history.state in (LedgerState.BEHIND, LedgerState.OTHER_COPY):
            # When the copy was at the log's end is not known better than before.
            stored_at = _LONG_AGO if row is None else row.updated_at
            rows.append(position_row(flow, positions[source], stored_at=stored_at))
    if rows:
        ledger.save_positions(rows)
    gaps = {source: history for source, (_, history, _) in past.items() if history.is_gap}
    if gaps and flow.isolation_level is not IsolationLevel.READ_COMMITTED:
        counts = {TopicPartition(row.topic, row.partition): row for row in ledger.transaction_counts(str(flow.flow))}
        uncounted = [_uncounted(flow, positions[each], history, counts.get(each)) for each, history in gaps.items()]
        ledger.save_transaction_counts(uncounted)


def _uncounted(
    flow: FlowConfig, position: Position, history: History, row: TransactionCountRow | None
) -> TransactionCountRow:
    """The count of a partition's records of transactions: what the ledger lacks is in none of its numbers."""
    continues = row is not None and row.copy == position.copy and row.counted_to <= history.following
    known = count_of(row) if row is not None and continues else TransactionCount(counted_to=history.first)
    return count_row(flow.flow, position.source, position.copy, known.continued_at(history.following))


def _gap_row(
    flow: FlowConfig, source: TopicPartition, history: History, topic_id: str | None, *, run_id: str
) -> GapRow:
    return GapRow(
        id=str(uuid.uuid4()),
        flow=str(flow.flow),
        topic=source.topic,
        partition=source.partition,
        cause=LedgerBehindError.reason,
        first_offset=history.first,
        next_offset=history.following,
        topic_id=topic_id,
        detail=missing_part(history),
        run_id=run_id,
        found_at=datetime.now(UTC),
        state=GapState.OPEN.value,
    )
