"""Records after the last stable offset, which read-committed consumers do not see, and their transactions.

The last stable offset of a partition is the start of its oldest open transaction. A coordinator aborts a transaction
after its timeout; a hanging transaction (KIP-664: no coordinator knows that it covers the partition) stays open until
an operator aborts it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from mirror_lib.cluster.protocol.transactions import ProducerState, TransactionState
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.describe_producers import described_producers
from mirror_lib.cluster.raw.leaders import by_leader
from mirror_lib.errors import MirrorError
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)
#: Timeout in seconds for all coordinators together: a plan must not wait long for optional information.
_COORDINATOR_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class HiddenRecords:
    """Offsets [first, end) of a partition that are after the last stable offset, and their oldest transaction."""

    #: The last stable offset: the first offset of the oldest open transaction.
    first: int
    #: The high watermark.
    end: int
    #: Of the first record, epoch milliseconds; None if it cannot be read.
    first_timestamp: int | None = None
    #: The producer of the oldest transaction; None if it was not requested, or brokers are older than Kafka 2.8.
    producer_id: int | None = None
    #: None if no coordinator reports it, or the permission is missing.
    transactional_id: str | None = None
    #: When the transaction began (epoch milliseconds), and its timeout; None if no coordinator knows that a transaction
    #: covers the partition.
    began_at: int | None = None
    timeout_ms: int | None = None

    @property
    def open_since(self) -> int | None:
        """Epoch milliseconds; without a coordinator, the first record's timestamp, which producers set."""
        return self.first_timestamp if self.began_at is None else self.began_at

    @property
    def is_coordinated(self) -> bool:
        """True if a coordinator knows the transaction, and so ends it at its timeout."""
        return self.began_at is not None


async def describe_hidden(
    client: RawClient, hidden: Mapping[TopicPartition, HiddenRecords], *, old_before: int
) -> dict[TopicPartition, HiddenRecords]:
    """Add everything that brokers report; the rest stays unknown.

    Args:
        client: of the cluster, as a consumer.
        old_before: epoch milliseconds; transactions whose first record is newer are not looked up.
    """
    if not hidden:
        return {}
    # Copy tasks load this module, and need only the other function.
    from mirror_lib.cluster.raw.timestamps import read_first_timestamps

    timestamps: dict[TopicPartition, int] = {}
    try:
        first = {place: each.first for place, each in hidden.items()}
        # A read-committed fetch returns nothing from there on.
        await read_first_timestamps(client, first, timestamps, read_committed=False)
    except MirrorError as error:
        _log.info("The age of open transactions on cluster %s is unknown: %s", client.cluster, error)
    found = {place: replace(each, first_timestamp=timestamps.get(place)) for place, each in hidden.items()}
    old = [place for place in found if timestamps.get(place, 0) < old_before]
    try:
        return found | await _with_transactions(client, {place: found[place] for place in old}) if old else found
    except MirrorError as error:
        _log.info("The producers of open transactions on cluster %s are unknown: %s", client.cluster, error)
        return found


async def _with_transactions(
    client: RawClient, hidden: Mapping[TopicPartition, HiddenRecords]
) -> dict[TopicPartition, HiddenRecords]:
    before = await _oldest(client, hidden)
    ids = {state.producer_id for state in before.values()}
    names = {number: name for name, number in (await client.producers.transactional_ids(ids) or {}).items()}
    transactions = await _query_transactions(client, (names[each] for each in ids if each in names))
    # A transaction that has ended in between is no longer known to its coordinator, and does not hang.
    after = await _oldest(client, {place: hidden[place] for place in before})
    found = {}
    for place, state in after.items():
        if before[place] != state:
            continue
        name = names.get(state.producer_id)
        known = transactions.get(name) if name is not None else None
        found[place] = _with_transaction(hidden[place], state, name, known, place)
    return found


def _with_transaction(
    hidden: HiddenRecords,
    state: ProducerState,
    name: str | None,
    transaction: TransactionState | None,
    place: TopicPartition,
) -> HiddenRecords:
    named = replace(hidden, producer_id=state.producer_id, transactional_id=name)
    if (
        transaction is None
        or transaction.producer_id != state.producer_id
        or place not in transaction.partitions
        or transaction.began_at < 0
    ):
        return named
    return replace(named, began_at=transaction.began_at, timeout_ms=transaction.timeout_ms)


async def _oldest(
    client: RawClient, hidden: Mapping[TopicPartition, HiddenRecords]
) -> dict[TopicPartition, ProducerState]:
    """The producer of the oldest open transaction of each partition, if its leader reports it."""
    led = by_leader(client, sorted(hidden)).led
    responses = await asyncio.gather(*(described_producers(client, *each) for each in led.items()))
    found = {}
    for place, described in ((place, each) for response in responses for place, each in response.items()):
        open_ = [each for each in described.producers.values() if each.open_from is not None]
        if open_:
            found[place] = min(open_, key=lambda each: each.open_from or 0)
    return found


async def _query_transactions(client: RawClient, names: Iterable[str]) -> dict[str, TransactionState]:
    deadline = time.monotonic() + _COORDINATOR_SECONDS
    wanted = sorted(names)
    requests = (client.producers.transaction_state(name, deadline=deadline) for name in wanted)
    responses = await asyncio.gather(*requests, return_exceptions=True)
    found = {}
    for name, response in zip(wanted, responses, strict=True):
        if isinstance(response, TransactionState):
            found[name] = response
        elif response is not None and not isinstance(response, MirrorError):
            raise response
    return found
