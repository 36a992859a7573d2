"""Positions that cannot be read because a dead run's hanging transaction blocks the last stable offset."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.cluster.raw.describe_producers import producer_states
from mirror_lib.config.model import FlowConfig
from mirror_lib.copy.takeover.hanging_transactions import Hanging
from mirror_lib.copy.transfer.open_positions import names_of_flow
from mirror_lib.errors import Where
from mirror_lib.topology.names import TopicPartition


def uncover_positions(flow: FlowConfig, target: Connection, partitions: Collection[int]) -> bool:
    """End hanging transactions in partitions of the position topic by their coordinators' decision; return True if any.

    Only transactions of the flow's own producers are ended, and none that is undecided.

    Raises:
        MirrorError: the target did not respond in time, or refused the request.
    """
    return asyncio.run(_uncover(flow, target, partitions))


async def _uncover(flow: FlowConfig, target: Connection, partitions: Collection[int]) -> bool:
    hidden = [TopicPartition(flow.offset_storage_topic, number) for number in partitions]
    retry_seconds = flow.copy_settings.retry_max_seconds
    ended = False
    async with open_clients(target) as (client,):
        where = Where(flow=str(flow.flow), cluster=client.cluster)
        known = await producer_states(client, hidden, retry_seconds=retry_seconds, where=where)
        writing = {
            state.producer_id for states in known.values() for state in states.values() if state.open_from is not None
        }
        names = await client.producers.names_of(writing) if writing else []
        for name in names_of_flow(flow.flow, names):
            hanging = Hanging(client, name, retry_seconds=retry_seconds, where=where)
            found = await hanging.find(hidden)
            if found is not None and await hanging.settle(found, {}):
                ended = True
    return ended
