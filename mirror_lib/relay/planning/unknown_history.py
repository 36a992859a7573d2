"""Positions in Kafka whose history the ledger lacks: it was restored from a backup, is new, or another one copied.

Copying goes on, since Kafka is the source of truth for positions. But gaps of the missing part are unknown, and so is
the map: nothing that depends on them is done until `mirror map rebuild`, or an operator, has closed the gap.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from mirror_lib.config import FlowConfig
from mirror_lib.counted import counted
from mirror_lib.errors import LedgerBehindError
from mirror_lib.identity import LedgerState, position_row
from mirror_lib.ledger import GapRow, GapState, Ledger
from mirror_lib.relay.model import PartitionFacts
from mirror_lib.relay.planning.facts import FlowClusters

_NAMED = 3


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
    flow: FlowConfig, clusters: FlowClusters, facts: Iterable[PartitionFacts], ledger: Ledger, *, run_id: str
) -> None:
    """Store what the ledger lacks as open gaps, and Kafka's positions, with which the next run compares.

    What the ledger has about another copy is removed: the newest position says that it is not true any more.

    Raises:
        LedgerError: the ledger cannot be written.
    """
    stored = clusters.positions_at_plan.positions
    rows = []
    for fact in facts:
        history, known = fact.history, stored.get(fact.source)
        if history.state in (LedgerState.CURRENT, LedgerState.AHEAD) or known is None:
            continue
        if history.is_gap:
            ledger.record_gap(_gap_row(flow, fact, run_id=run_id))
        if history.state is LedgerState.OTHER_COPY:
            ledger.replace_segments(str(flow.flow), *fact.source, [])
            ledger.forget_routes(str(flow.flow), fact.source)
        rows.append(position_row(flow, known.position))
    ledger.save_positions(rows)


def _gap_row(flow: FlowConfig, fact: PartitionFacts, *, run_id: str) -> GapRow:
    now, history = datetime.now(UTC), fact.history
    return GapRow(
        id=str(uuid.uuid4()),
        flow=str(flow.flow),
        topic=fact.source.topic,
        partition=fact.source.partition,
        cause=LedgerBehindError.reason,
        first_offset=history.first,
        next_offset=history.following,
        topic_id=fact.topic_id,
        detail=f"the ledger lacks the history of source offsets {history.first} to {history.following - 1}",
        run_id=run_id,
        found_at=now,
        state=GapState.OPEN.value,
    )
