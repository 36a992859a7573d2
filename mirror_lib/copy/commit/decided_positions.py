"""Stores the positions of decisions: in Kafka first, which is the source of truth, then in the ledger."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from mirror_lib.cluster.topics.position_format import Position
from mirror_lib.cluster.topics.position_store import PositionStore
from mirror_lib.config.model import FlowConfig
from mirror_lib.copy.commit.transaction_counts import counts_after_decisions
from mirror_lib.identity.positions import position_row
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.unknown_history import note_histories
from mirror_lib.topology.names import TopicPartition


def store_decided(
    flow: FlowConfig,
    store: PositionStore,
    ledger: Ledger,
    decided: Sequence[Position],
    former: Mapping[TopicPartition, Position],
    *,
    forgotten: Collection[TopicPartition] = (),
    run_id: str,
) -> None:
    """Store decided positions, and first what the ledger lacks of the former ones: afterwards nothing shows it.

    No run may be copying.

    Args:
        flow: the flow of the positions.
        store: the position topic.
        ledger: the flow's.
        decided: the new positions.
        former: the positions in Kafka until now.
        forgotten: partitions whose position is deleted, so that the next run is their first.
        run_id: the decision.

    Raises:
        MirrorError: the position topic or the ledger cannot be written.
    """
    note_histories(flow, former, ledger, run_id=run_id)
    counts = list(counts_after_decisions(ledger.transaction_counts(str(flow.flow)), decided, former))
    store.write(decided)
    if forgotten:
        store.forget(forgotten)
        # Else the next run would take the positions for lost.
        ledger.forget_positions(str(flow.flow), forgotten)
    ledger.save_positions([position_row(flow, position) for position in decided])
    ledger.save_transaction_counts(counts)
