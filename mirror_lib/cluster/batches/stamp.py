"""The last thing done to a batch before it is sent."""

from __future__ import annotations

from mirror_lib.cluster.batches.header import stamp_producer
from mirror_lib.cluster.batches.ready import ReadyBatch


def stamp(batch: ReadyBatch, producer_id: int, epoch: int, base_sequence: int, *, in_transaction: bool = False) -> None:
    """Make the batch the next one of an idempotent producer (KIP-98), in place.

    Args:
        base_sequence: the first record's number among all of this producer for the partition, modulo 2**31.
        in_transaction: whether it belongs to the producer's open transaction.
    """
    stamp_producer(
        batch.payload,
        producer_id,
        epoch,
        base_sequence,
        source_checksums=batch.source_checksums,
        in_transaction=in_transaction,
    )
